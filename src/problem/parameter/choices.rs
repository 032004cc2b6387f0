//! Lists of values, with or without an order. A value is represented by its position in the list, from 0. A measurement
//! between two ordered values has a position between theirs.

use serde::{Deserialize, Serialize};

use super::{Coordinate, Kind};

/// The largest number of values that a message shows.
const MAX_SHOWN: usize = 6;

/// A list of values. Only their labels are stored, for messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Choices<const ORDERED: bool> {
    labels: Vec<String>,
}

impl Choices<true> {
    /// Creates a list of ordered values at equal distances.
    pub fn ordered(labels: Vec<String>) -> Self {
        Self { labels }
    }
}

impl Choices<false> {
    /// Creates a list of values without an order.
    pub fn unordered(labels: Vec<String>) -> Self {
        Self { labels }
    }
}

impl<const ORDERED: bool> Kind for Choices<ORDERED> {
    fn coordinate(&self) -> Coordinate {
        match ORDERED {
            true => Coordinate::numbered(self.labels.len() as u64),
            false => Coordinate::Categorical {
                n: self.labels.len(),
            },
        }
    }

    fn expected(&self) -> String {
        let shown = self.labels[..self.labels.len().min(MAX_SHOWN)].join(", ");
        let more = match self.labels.len() > MAX_SHOWN {
            true => ", ...",
            false => "",
        };
        format!("one of [{shown}{more}]")
    }

    fn checked(&self, number: f64) -> Option<f64> {
        let is_place = number.fract() == 0.0 && (0.0..self.labels.len() as f64).contains(&number);
        is_place.then_some(number + 0.0)
    }

    fn measured(&self, number: f64) -> Option<f64> {
        let is_between = ORDERED && (0.0..=self.labels.len() as f64 - 1.0).contains(&number);
        self.checked(number).or(is_between.then_some(number))
    }

    fn level(&self, number: f64) -> u64 {
        number.round() as u64
    }

    fn member(&self, level: u64) -> f64 {
        level as f64
    }

    fn encode(&self, number: f64, columns: &mut [f64]) {
        match self.checked(number) {
            Some(_) => self.coordinate().write(self.level(number), columns),
            None => columns[0] = number / (self.labels.len() as f64 - 1.0),
        }
    }

    fn label(&self, number: f64) -> String {
        let found = self.labels.get(number as usize);
        found.cloned().unwrap_or_default()
    }
}
