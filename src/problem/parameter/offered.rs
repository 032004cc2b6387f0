//! A parameter of which only some values are suggested. Measurements may have all of its values, and models know them.

use serde::{Deserialize, Serialize};

use super::{Coordinate, Kind, Parameter};
use crate::error::{Error, Result};

/// The relative tolerance within which a number equals an offered value.
const TOLERANCE: f64 = 1e-9;

/// A parameter and the values that may be suggested. Points are encoded as without this restriction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Offered {
    whole: Box<Parameter>,
    numbers: Vec<f64>,
}

impl Offered {
    /// Refuses an empty list, and numbers that are not values of the parameter.
    pub fn new(whole: Parameter, numbers: Vec<f64>) -> Result<Self> {
        let is_value = |&number: &f64| whole.kind().checked(number) == Some(number);
        if numbers.is_empty() || !numbers.iter().all(is_value) {
            return Err(Error::InvalidSpace(format!(
                "offered={numbers:?} is not usable: pass at least one of the values, {}",
                whole.kind().expected()
            )));
        }
        let whole = Box::new(whole);
        Ok(Self { whole, numbers })
    }

    /// The parameter with all of its values.
    pub(crate) fn whole(&self) -> &Parameter {
        &self.whole
    }

    /// The values that may be suggested.
    pub(crate) fn numbers(&self) -> &[f64] {
        &self.numbers
    }
}

impl Kind for Offered {
    fn coordinate(&self) -> Coordinate {
        self.whole.kind().coordinate()
    }

    fn expected(&self) -> String {
        let labels: Vec<String> = self.numbers.iter().map(|&v| self.label(v)).collect();
        match &labels[..] {
            [only] => format!("{only}, the only value that is offered"),
            several => format!("one of the offered values [{}]", several.join(", ")),
        }
    }

    fn checked(&self, number: f64) -> Option<f64> {
        let equals = |offered: &&f64| (**offered - number).abs() <= TOLERANCE * offered.abs();
        self.numbers.iter().find(equals).copied()
    }

    fn measured(&self, number: f64) -> Option<f64> {
        self.whole.kind().measured(number)
    }

    fn expected_measured(&self) -> String {
        self.whole.kind().expected_measured()
    }

    fn is_beyond(&self, number: f64) -> bool {
        self.checked(number).is_none()
    }

    fn level(&self, number: f64) -> u64 {
        self.whole.kind().level(number)
    }

    fn member(&self, level: u64) -> f64 {
        self.whole.kind().member(level)
    }

    fn label(&self, number: f64) -> String {
        self.whole.kind().label(number)
    }

    fn encode(&self, number: f64, columns: &mut [f64]) {
        self.whole.kind().encode(number, columns);
    }

    fn decode(&self, columns: &[f64]) -> f64 {
        self.whole.kind().decode(columns)
    }
}
