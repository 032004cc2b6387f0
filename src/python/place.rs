//! The conversion of points between Python and the log.

use pyo3::prelude::*;

use crate::problem::Point;

/// A point in the form that Python passes. It has one number per searched parameter, or the row number of a candidate.
#[derive(FromPyObject, IntoPyObject)]
pub enum Place {
    Candidate(usize),
    Numbers(Vec<Option<f64>>),
}

impl From<Place> for Point {
    fn from(place: Place) -> Self {
        match place {
            Place::Candidate(index) => Point::Candidate(index),
            Place::Numbers(numbers) => Point::Numbers(numbers),
        }
    }
}

impl From<Point> for Place {
    fn from(point: Point) -> Self {
        match point {
            Point::Candidate(index) => Place::Candidate(index),
            Point::Numbers(numbers) => Place::Numbers(numbers),
        }
    }
}
