//! Lists of values, with or without an order. A value is represented by its position in the list, from 0.

use super::{Kind, numbered};
use crate::domain::Coordinate;

/// The largest number of values that a message shows.
const MAX_SHOWN: usize = 6;

/// A list of values, of which only the labels are stored. Messages use the labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Choices {
    labels: Vec<String>,
    coordinate: Coordinate,
}

impl Choices {
    /// Creates a list of ordered values. The distance between neighbours is always the same.
    pub fn ordered(labels: Vec<String>) -> Self {
        let coordinate = numbered(labels.len() as u64);
        Self { labels, coordinate }
    }

    /// The labels, one per value.
    pub(crate) fn labels(&self) -> &[String] {
        &self.labels
    }

    /// Creates a list of values without an order.
    pub fn unordered(labels: Vec<String>) -> Self {
        let coordinate = Coordinate::Categorical { n: labels.len() };
        Self { labels, coordinate }
    }
}

impl Kind for Choices {
    fn coordinate(&self) -> &Coordinate {
        &self.coordinate
    }

    fn expected(&self) -> String {
        let shown = self.labels[..self.labels.len().min(MAX_SHOWN)].join(", ");
        let more = if self.labels.len() > MAX_SHOWN {
            ", ..."
        } else {
            ""
        };
        format!("one of [{shown}{more}]")
    }

    fn checked(&self, number: f64) -> Option<f64> {
        let is_place = number.fract() == 0.0 && (0.0..self.labels.len() as f64).contains(&number);
        is_place.then_some(number)
    }

    fn level(&self, number: f64) -> u64 {
        number as u64
    }

    fn member(&self, level: u64) -> f64 {
        level as f64
    }

    fn label(&self, number: f64) -> String {
        self.labels
            .get(number as usize)
            .cloned()
            .unwrap_or_default()
    }
}
