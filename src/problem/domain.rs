//! The search space: a finite list of candidates, or a box of continuous, integer and categorical coordinates.
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
//!
//! Candidates have a continuous or categorical coordinate for each column of the user's table.

use ndarray::{Array2, ArrayView2};

use super::{Coordinate, Product, Rows};
use crate::error::{Error, Result};

/// A point is a member if all entries are within this tolerance of an exact member.
const TOLERANCE: f64 = 1e-9;

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

/// The encoded points that may be suggested.
#[derive(Clone, Debug, PartialEq)]
pub enum Domain {
    /// One point per row.
    Candidates(Rows),
    Box(Product),
}

impl Domain {
    /// Creates a finite domain from points, one point per row. Each column is a number.
    pub fn candidates(points: Array2<f64>) -> Result<Domain> {
        checked(points).map(|points| Domain::Candidates(Rows::of_numbers(points)))
    }

    /// The coordinates of a box, or None for candidates.
    pub fn product(&self) -> Option<&Product> {
        match self {
            Domain::Candidates(_) => None,
            Domain::Box(product) => Some(product),
        }
    }

    /// Whether the domain has finitely many members.
    pub fn is_finite(&self) -> bool {
        match self {
            Domain::Candidates(_) => true,
            Domain::Box(product) => product.is_finite(),
        }
    }

    /// The number of encoded columns, which is the length of a point.
    pub fn width(&self) -> usize {
        match self {
            Domain::Candidates(points) => points.ncols(),
            Domain::Box(coordinates) => coordinates.iter().map(Coordinate::width).sum(),
        }
    }

    /// d, the number of parameters: the coordinates of a box, or the columns of candidates as they were given.
    pub fn dimensions(&self) -> usize {
        match self {
            Domain::Candidates(rows) => rows.coordinates().len(),
            Domain::Box(coordinates) => coordinates.len(),
        }
    }

    /// Whether the same member can be suggested twice. In a box, this is possible if each continuous coordinate has
    /// conditions, or if there are no continuous coordinates.
    pub fn can_repeat(&self) -> bool {
        match self {
            Domain::Candidates(_) => true,
            Domain::Box(product) => product
                .iter()
                .enumerate()
                .all(|(i, c)| *c != Coordinate::Continuous || !product.conditions_of(i).is_empty()),
        }
    }

    /// The number of combinations of the active discrete coordinates (saturating), or the number of candidates.
    pub fn combinations(&self) -> u64 {
        match self {
            Domain::Candidates(points) => points.nrows() as u64,
            Domain::Box(product) => product.combinations(),
        }
    }

    /// Whether `x` is a member, up to 1e-9 in every column.
    pub fn contains(&self, x: &[f64]) -> bool {
        let near = |(a, b): (&f64, &f64)| (a - b).abs() <= TOLERANCE;
        x.len() == self.width()
            && match self {
                Domain::Candidates(points) => {
                    let mut rows = points.outer_iter();
                    rows.any(|row| row.iter().zip(x).all(near))
                }
                Domain::Box(product) => {
                    let mut nearest = x.to_vec();
                    product.snap(&mut nearest);
                    nearest.iter().zip(x).all(near)
                }
            }
    }

    /// Replaces `x` (width,) by the nearest member, and returns the row number if the member is a candidate.
    pub fn snap(&self, x: &mut [f64]) -> Option<usize> {
        match self {
            Domain::Candidates(points) => {
                let nearest = nearest(points.view(), x);
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

/// Returns the rows in row-major order. Refuses an empty array and non-finite entries.
pub(super) fn checked(points: Array2<f64>) -> Result<Array2<f64>> {
    let (rows, width) = points.dim();
    if rows == 0 || width == 0 {
        return Err(Error::InvalidSpace(format!(
            "candidates of shape ({rows}, {width}) are empty; pass at least one row and one column"
        )));
    }
    if let Some(((row, column), value)) = points.indexed_iter().find(|(_, v)| !v.is_finite()) {
        return Err(Error::InvalidSpace(format!(
            "candidate {row} has the entry {value} in column {column}; all entries must be finite numbers"
        )));
    }
    // Blocks of rows are read as slices.
    Ok(points.as_standard_layout().into_owned())
}

/// The index of the row nearest to `x`. Of equally near rows, the first row is returned.
fn nearest(points: ArrayView2<f64>, x: &[f64]) -> usize {
    let (mut nearest, mut least) = (0, f64::INFINITY);
    for (i, row) in points.outer_iter().enumerate() {
        let distance: f64 = row.iter().zip(x).map(|(a, b)| (a - b) * (a - b)).sum();
        if distance < least {
            (nearest, least) = (i, distance);
        }
    }
    nearest
}

/// A function a(x) to maximise, such as an acquisition.
pub trait Objective {
    /// Writes a(x) for every row x of `points` (N, width) to `out` (N,).
    fn values(&mut self, points: ArrayView2<f64>, out: &mut [f64]);

    /// Returns a(x) and writes da/dx to `gradient` (width,).
    fn value_and_gradient(&mut self, x: &[f64], gradient: &mut [f64]) -> f64;

    /// The lengthscale of a(x) in each column (width,), if known.
    fn lengthscales(&self) -> Option<&[f64]> {
        None
    }
}

impl<T: Objective> Objective for &mut T {
    fn values(&mut self, points: ArrayView2<f64>, out: &mut [f64]) {
        (**self).values(points, out);
    }

    fn value_and_gradient(&mut self, x: &[f64], gradient: &mut [f64]) -> f64 {
        (**self).value_and_gradient(x, gradient)
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::super::conditions::{Condition, Conditions};
    use super::*;
    use crate::error::Error;

    pub(crate) fn integer(low: i64, high: i64, log: bool) -> Coordinate {
        Coordinate::Integer { low, high, log }
    }

    impl Domain {
        /// A box of the given coordinates.
        pub(crate) fn new_box(coordinates: Vec<Coordinate>) -> Result<Domain> {
            let when = vec![Vec::new(); coordinates.len()];
            Domain::conditional_box(coordinates, when)
        }

        /// A box of the given coordinates, with the conditions of each coordinate.
        pub(crate) fn conditional_box(
            coordinates: Vec<Coordinate>,
            when: Vec<Vec<Condition>>,
        ) -> Result<Domain> {
            let conditions = Conditions::new(when);
            let conditions = conditions.map_err(|_| Error::InvalidSpace("a circle".into()))?;
            Ok(Domain::Box(Product::new(coordinates, conditions)))
        }
    }
}
