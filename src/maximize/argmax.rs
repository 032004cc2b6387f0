//! The result of a search.

use crate::problem::Member;

/// A member of the domain and its value. `index` is the row number if the member is a candidate.
#[derive(Clone, Debug, PartialEq)]
pub struct Argmax {
    pub point: Vec<f64>,
    pub index: Option<usize>,
    pub value: f64,
}

impl Argmax {
    /// A member of a box.
    pub fn of(point: Vec<f64>, value: f64) -> Self {
        Self {
            point,
            index: None,
            value,
        }
    }

    /// The member without its value.
    pub fn member(self) -> Member {
        Member::new(self.point, self.index)
    }
}
