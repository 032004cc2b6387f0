//! A point in the user's units, as the log stores it.

use serde::{Deserialize, Serialize};

/// A point of a space or of a list of candidates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "python", derive(pyo3::FromPyObject, pyo3::IntoPyObject))]
#[serde(rename_all = "snake_case")]
pub enum Point {
    /// One number for each searched parameter: the value, the position of a choice in its list, or None if inactive.
    Numbers(Vec<Option<f64>>),
    /// The row number of a candidate.
    Candidate(usize),
}

impl Point {
    /// Creates a point whose parameters are all active.
    pub fn at(numbers: &[f64]) -> Self {
        Point::Numbers(numbers.iter().copied().map(Some).collect())
    }

    /// Returns the row number of a candidate, or None for a point of a space.
    pub(crate) fn index(&self) -> Option<usize> {
        match self {
            Point::Numbers(_) => None,
            Point::Candidate(index) => Some(*index),
        }
    }

    /// Returns the point with −0 replaced by 0.
    pub(crate) fn unsigned_zeros(mut self) -> Self {
        if let Point::Numbers(numbers) = &mut self {
            numbers
                .iter_mut()
                .flatten()
                .for_each(|number| *number += 0.0);
        }
        self
    }
}
