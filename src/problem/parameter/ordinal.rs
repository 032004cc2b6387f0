//! Ordered values, whose neighbours are equally far apart.

use super::{Kind, numbered, one_of, place};
use crate::domain::Coordinate;

/// An ordinal parameter. Its numbers are the places of its values, from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Ordinal {
    labels: Vec<String>,
    coordinate: Coordinate,
}

impl Ordinal {
    /// The values are known by their labels only, which messages use.
    pub fn new(labels: Vec<String>) -> Self {
        Self {
            coordinate: numbered(labels.len() as u64),
            labels,
        }
    }
}

impl Kind for Ordinal {
    fn coordinate(&self) -> &Coordinate {
        &self.coordinate
    }

    fn expected(&self) -> String {
        one_of(&self.labels)
    }

    fn checked(&self, number: f64) -> Option<f64> {
        place(number, self.labels.len())
    }

    fn level(&self, number: f64) -> u64 {
        number as u64
    }

    fn member(&self, level: u64) -> f64 {
        level as f64
    }

    fn label(&self, number: f64) -> String {
        self.labels[number as usize].clone()
    }
}
