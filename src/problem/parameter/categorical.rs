//! Choices without an order.

use super::{Kind, one_of, place};
use crate::domain::Coordinate;

/// A categorical parameter. Its numbers are the places of its choices, from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Categorical {
    labels: Vec<String>,
    coordinate: Coordinate,
}

impl Categorical {
    /// The choices are known by their labels only, which messages use.
    pub fn new(labels: Vec<String>) -> Self {
        Self {
            coordinate: Coordinate::Categorical { n: labels.len() },
            labels,
        }
    }
}

impl Kind for Categorical {
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
