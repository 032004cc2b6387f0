//! Parameters, the named quantities in the user's units. Each kind has a file.
//!
//! A *number* is a value of a parameter in the form that the log stores. For a choice, the number is the position in
//! the list of choices, from 0. For any other kind of value, the number is the value itself. The *level* of a value is
//! its position among the values of a discrete parameter, from 0. A parameter with one value is a *constant* and does
//! not have columns.
//!
//! To add a kind in Rust, implement [`Kind`] in a new file, add a variant to [`Parameter`], export it in
//! `src/problem/mod.rs`, and add a constructor to `src/python/problem.rs` and `_core.pyi`. In Python, write its class in
//! `belated/space/dimensions.py`. If [`Coordinate`] cannot represent the columns of the kind, add a variant to
//! [`Coordinate`].

mod cell;
mod choices;
mod coordinate;
mod decimal;
mod described;
mod integer;
mod offered;
mod range;
mod real;

use serde::{Deserialize, Serialize};

pub use cell::Cell;
pub use choices::Choices;
pub use coordinate::Coordinate;
pub use described::Described;
pub use integer::Integer;
pub use offered::Offered;
pub(super) use range::MAX_COLUMN;
pub use real::Real;

/// A parameter of any kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Parameter {
    /// A number in an interval, or on a grid of equal steps.
    Real(Real),
    /// A whole number in an interval.
    Integer(Integer),
    /// A choice from an ordered list.
    Ordinal(Choices<true>),
    /// A choice from a list without an order.
    Categorical(Choices<false>),
    /// A choice from a list without an order, whose choices have descriptors.
    Described(Described),
    /// A parameter of which only some values are suggested.
    Offered(Offered),
}

/// The interface of a kind of parameter.
pub trait Kind {
    /// The encoded coordinate of this parameter.
    fn coordinate(&self) -> Coordinate;

    /// The values that the parameter may have, for messages.
    fn expected(&self) -> String;

    /// Returns the value that equals this number up to rounding (0.0 for −0.0), or None if the number is not a value of
    /// the parameter.
    fn checked(&self, number: f64) -> Option<f64>;

    /// Returns the number of a measurement, or None if the parameter cannot have been measured at this number.
    /// Measurements may also lie beyond a bound or between two steps.
    fn measured(&self, number: f64) -> Option<f64> {
        self.checked(number)
    }

    /// The numbers of measurements, for messages.
    fn expected_measured(&self) -> String {
        self.expected()
    }

    /// Whether the number of a measurement lies beyond a bound.
    fn is_beyond(&self, _number: f64) -> bool {
        false
    }

    /// The level of a value, or 0 if the parameter is continuous. A measurement has the level of the nearest value.
    fn level(&self, number: f64) -> u64;

    /// The value at this level, unspecified if the parameter is continuous.
    fn member(&self, level: u64) -> f64;

    /// A value, for messages.
    fn label(&self, number: f64) -> String;

    /// Writes the columns of a value or of a measurement. Beyond a bound, the column is outside [0, 1].
    fn encode(&self, number: f64, columns: &mut [f64]) {
        self.coordinate().write(self.level(number), columns);
    }

    /// The value nearest to these columns.
    fn decode(&self, columns: &[f64]) -> f64 {
        self.member(self.coordinate().index(columns))
    }
}

impl Parameter {
    /// The parameter as an implementation of [`Kind`].
    pub(crate) fn kind(&self) -> &dyn Kind {
        match self {
            Parameter::Real(kind) => kind,
            Parameter::Integer(kind) => kind,
            Parameter::Ordinal(kind) => kind,
            Parameter::Categorical(kind) => kind,
            Parameter::Described(kind) => kind,
            Parameter::Offered(kind) => kind,
        }
    }

    /// The parameter with all values that a model knows, whether or not they are suggested.
    pub(crate) fn whole(&self) -> &Parameter {
        match self {
            Parameter::Offered(offered) => offered.whole(),
            whole => whole,
        }
    }

    /// The values that may be suggested, or None if all values may be suggested.
    pub(crate) fn offered(&self) -> Option<&[f64]> {
        match self {
            Parameter::Offered(offered) => Some(offered.numbers()),
            _ => None,
        }
    }

    /// The number of values, or None if the parameter is continuous.
    pub(crate) fn n_levels(&self) -> Option<u64> {
        self.kind().coordinate().levels()
    }

    /// Whether the parameter has a single value, and is therefore not searched.
    pub(crate) fn is_constant(&self) -> bool {
        self.n_levels() == Some(1)
    }

    /// The number of encoded columns, which is 0 for a constant.
    pub(crate) fn width(&self) -> usize {
        match self.is_constant() {
            true => 0,
            false => self.kind().coordinate().width(),
        }
    }
}
