//! The search space: a finite list of candidates, or a box of continuous, integer and categorical coordinates.
//!
//! * [`coordinate`]: one coordinate; [`cell`]: parts of a coordinate; [`product`]: boxes of coordinates;
//!   [`conditions`] under which coordinates are active; [`candidates`]: finite lists
//! * [`sampling`]: uniform and evenly spread members; [`objective`]: functions over a domain
//! * [`fidelity`]: the share of a full evaluation that a trial runs
//!
//! Notation: a point is a row of `width` numbers, the encoded *columns*. In a box each *coordinate* (a named parameter)
//! has one or more columns, in the order of the coordinates:
//!
//! | coordinate | columns | values |
//! |---|---|---|
//! | `Continuous` | 1 | u ∈ [0, 1] |
//! | `Integer {low, high}` | 1 | (i − low) / (high − low), or (ln i − ln low) / (ln high − ln low); 0 if low = high |
//! | `Categorical {n}` | n | one-hot |
//! | inactive | | ½; zeros for a one-hot group |

mod candidates;
pub mod cell;
mod conditions;
pub mod coordinate;
pub mod fidelity;
mod objective;
mod product;
mod sampling;

use crate::error::Result;
use ndarray::Array2;

pub use cell::Cell;
pub use conditions::Condition;
pub(crate) use conditions::{Conditions, order};
pub use coordinate::Coordinate;
pub use fidelity::{Fidelity, PowerCost};
pub use objective::Objective;
pub(crate) use product::indices;
pub use product::{Product, columns};
pub(crate) use sampling::{hold_inactive, unit_sequence, write_quantiles};

/// An encoded point of a domain, and its row number if the domain is a list of candidates.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Member {
    pub x: Vec<f64>,
    pub index: Option<usize>,
}

impl Member {
    pub fn new(x: Vec<f64>, index: Option<usize>) -> Self {
        Self { x, index }
    }
}

/// The set of points that may be suggested.
#[derive(Clone, Debug, PartialEq)]
pub enum Domain {
    /// One point per row.
    Candidates(Array2<f64>),
    Box(Product),
}

impl Domain {
    /// A finite domain; one point per row.
    pub fn candidates(points: Array2<f64>) -> Result<Domain> {
        candidates::checked(points).map(Domain::Candidates)
    }

    /// A box of the given coordinates.
    pub fn new_box(coordinates: Vec<Coordinate>) -> Result<Domain> {
        let when = vec![Vec::new(); coordinates.len()];
        Domain::conditional_box(coordinates, when)
    }

    /// A box of the given coordinates, with the conditions of each.
    pub fn conditional_box(
        coordinates: Vec<Coordinate>,
        when: Vec<Vec<Condition>>,
    ) -> Result<Domain> {
        Product::new(coordinates, when).map(Domain::Box)
    }

    /// Whether the domain has finitely many members.
    pub fn is_finite(&self) -> bool {
        match self {
            Domain::Candidates(_) => true,
            Domain::Box(coordinates) => !coordinates.contains(&Coordinate::Continuous),
        }
    }

    /// The number of encoded columns, which is the length of a point.
    pub fn width(&self) -> usize {
        match self {
            Domain::Candidates(points) => points.ncols(),
            Domain::Box(coordinates) => coordinates.iter().map(Coordinate::width).sum(),
        }
    }

    /// d, the number of named parameters: the coordinates of a box, or the columns of candidates.
    pub fn dimensions(&self) -> usize {
        match self {
            Domain::Candidates(points) => points.ncols(),
            Domain::Box(coordinates) => coordinates.len(),
        }
    }

    /// Whether some members have no active continuous coordinate, so that the same member can be suggested twice.
    pub fn can_repeat(&self) -> bool {
        match self {
            Domain::Candidates(_) => true,
            Domain::Box(product) => product
                .iter()
                .enumerate()
                .all(|(i, c)| *c != Coordinate::Continuous || product.has_conditions(i)),
        }
    }

    /// The number of combinations of the active discrete coordinates (saturating); the number of rows for candidates.
    pub fn combinations(&self) -> u64 {
        match self {
            Domain::Candidates(points) => points.nrows() as u64,
            Domain::Box(product) => product.combinations(),
        }
    }

    /// Whether `x` is a member, up to 1e-9 in every column.
    pub fn contains(&self, x: &[f64]) -> bool {
        x.len() == self.width()
            && match self {
                Domain::Candidates(points) => candidates::contains(points.view(), x),
                Domain::Box(product) => product::contains(product, x),
            }
    }

    /// Replaces `x`, which has `width` entries, by the nearest member. For candidates, returns the row number of the
    /// member.
    pub fn snap(&self, x: &mut [f64]) -> Option<usize> {
        match self {
            Domain::Candidates(points) => {
                let nearest = candidates::nearest(points.view(), x);
                for (x, v) in x.iter_mut().zip(points.row(nearest)) {
                    *x = *v;
                }
                Some(nearest)
            }
            Domain::Box(product) => {
                product.snap(x);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Coordinate;

    pub(super) fn integer(low: i64, high: i64, log: bool) -> Coordinate {
        Coordinate::Integer { low, high, log }
    }
}
