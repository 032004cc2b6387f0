//! Lists of choices with descriptors. The descriptors of a choice are numbers that describe it, such as the properties
//! of a solvent.

use serde::{Deserialize, Serialize};

use super::{Choices, Coordinate, Kind};
use crate::error::{Error, Result};

/// A list of choices without an order, with one vector of descriptors for each choice. Points are encoded as without
/// descriptors. A model may read how near two choices are from the distance between their vectors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Described {
    choices: Choices<false>,
    vectors: Vec<Vec<f64>>,
}

impl Described {
    /// Refuses vectors unless there is one for each choice, and all are finite and have the same length.
    pub fn new(labels: Vec<String>, vectors: Vec<Vec<f64>>) -> Result<Self> {
        let width = vectors.first().map_or(0, Vec::len);
        let is_vector = |each: &Vec<f64>| each.len() == width && each.iter().all(|v| v.is_finite());
        if vectors.len() != labels.len() || !vectors.iter().all(is_vector) {
            return Err(Error::InvalidSpace(format!(
                "descriptors={vectors:?} is not usable: pass one vector of finite numbers for each of {} choices",
                labels.len()
            )));
        }
        let choices = Choices::unordered(labels);
        Ok(Self { choices, vectors })
    }

    /// The vectors of the choices.
    pub(crate) fn vectors(&self) -> &[Vec<f64>] {
        &self.vectors
    }
}

impl Kind for Described {
    fn coordinate(&self) -> Coordinate {
        self.choices.coordinate()
    }

    fn expected(&self) -> String {
        self.choices.expected()
    }

    fn checked(&self, number: f64) -> Option<f64> {
        self.choices.checked(number)
    }

    fn level(&self, number: f64) -> u64 {
        self.choices.level(number)
    }

    fn member(&self, level: u64) -> f64 {
        self.choices.member(level)
    }

    fn label(&self, number: f64) -> String {
        self.choices.label(number)
    }
}
