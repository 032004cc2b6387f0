//! Parameters: named quantities in the user's units, one file per kind.
//!
//! A *number* is a value of a parameter as the log keeps it: the value itself, or the place of a choice, from 0. The
//! values of a discrete parameter are also numbered from 0; that number is the *level*. A parameter with one value is a
//! *constant* and has no columns.
//!
//! To add a kind, write its file with an implementation of [`Kind`], add its variant to [`Parameter`] and a constructor to
//! `src/python/problem.rs`; in Python, write its class in `belated/space/` and add it to `dimensions.py` and
//! `shorthand.py` there. A kind whose columns are not yet in [`Coordinate`] needs a variant there too.

mod choices;
mod decimal;
mod integer;
mod real;

use serde::{Deserialize, Serialize};

use crate::domain::Coordinate;
use crate::error::{Error, Result};

pub use choices::Choices;
pub use integer::Integer;
pub use real::Real;

/// A parameter of any kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "SavedParameter", into = "SavedParameter")]
pub enum Parameter {
    Real(Real),
    Integer(Integer),
    Ordinal(Choices),
    Categorical(Choices),
}

/// The interface of a kind of parameter.
pub trait Kind {
    /// The encoded columns of this parameter, its discrete members, their neighbours and their halves.
    fn coordinate(&self) -> &Coordinate;

    /// The values that the parameter may have, for messages.
    fn expected(&self) -> String;

    /// The value that this number stands for except for rounding; None if there is none.
    fn checked(&self, number: f64) -> Option<f64>;

    /// The level of a value; 0 for a continuous parameter.
    fn level(&self, number: f64) -> u64;

    /// The value at this level; unspecified for a continuous parameter.
    fn member(&self, level: u64) -> f64;

    /// A value, for messages.
    fn label(&self, number: f64) -> String;

    /// Writes the columns of a value.
    fn encode(&self, number: f64, columns: &mut [f64]) {
        self.coordinate().write(self.level(number), columns);
    }

    /// The value nearest to these columns.
    fn decode(&self, columns: &[f64]) -> f64 {
        self.member(self.coordinate().index(columns))
    }
}

impl Parameter {
    /// The parameter as its kind.
    pub fn kind(&self) -> &dyn Kind {
        match self {
            Parameter::Real(kind) => kind,
            Parameter::Integer(kind) => kind,
            Parameter::Ordinal(kind) | Parameter::Categorical(kind) => kind,
        }
    }

    /// The number of values; None if continuous.
    pub fn n_levels(&self) -> Option<u64> {
        self.kind().coordinate().levels()
    }

    /// Whether the parameter has one value, so that it is not searched.
    pub fn is_constant(&self) -> bool {
        self.n_levels() == Some(1)
    }

    /// The number of encoded columns; 0 for a constant.
    pub fn width(&self) -> usize {
        match self.is_constant() {
            true => 0,
            false => self.kind().coordinate().width(),
        }
    }
}

/// The saved form of a parameter: its declaration. Reading calls the constructor, which checks it.
#[derive(Clone, Serialize, Deserialize)]
enum SavedParameter {
    Real(f64, f64, bool, Option<f64>),
    Integer(f64, f64, bool, Option<f64>),
    Ordinal(Vec<String>),
    Categorical(Vec<String>),
}

impl TryFrom<SavedParameter> for Parameter {
    type Error = Error;

    fn try_from(saved: SavedParameter) -> Result<Self> {
        Ok(match saved {
            SavedParameter::Real(low, high, log, step) => {
                Parameter::Real(Real::new(low, high, log, step)?)
            }
            SavedParameter::Integer(low, high, log, step) => {
                Parameter::Integer(Integer::new(low, high, log, step)?)
            }
            SavedParameter::Ordinal(labels) => Parameter::Ordinal(Choices::ordered(labels)),
            SavedParameter::Categorical(labels) => {
                Parameter::Categorical(Choices::unordered(labels))
            }
        })
    }
}

impl From<Parameter> for SavedParameter {
    fn from(parameter: Parameter) -> Self {
        match parameter {
            Parameter::Real(real) => {
                let (low, high, log, step) = real.declared();
                SavedParameter::Real(low, high, log, step)
            }
            Parameter::Integer(integer) => {
                let (low, high, log, step) = integer.declared();
                SavedParameter::Integer(low, high, log, step)
            }
            Parameter::Ordinal(choices) => SavedParameter::Ordinal(choices.labels().to_vec()),
            Parameter::Categorical(choices) => {
                SavedParameter::Categorical(choices.labels().to_vec())
            }
        }
    }
}

/// The coordinate of n members in order, numbered from 0.
fn numbered(n: u64) -> Coordinate {
    Coordinate::Integer {
        low: 0,
        high: n as i64 - 1,
        log: false,
    }
}
