//! Finite domains: a list of candidates in the user's units, and its encoding as columns in [0, 1].

use std::sync::Arc;

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, s};

use serde::{Deserialize, Serialize};

use super::Domain;
use super::domain::checked;
use super::parameter::MAX_COLUMN;
use crate::error::{Error, Result};

/// A list of candidates, one per row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Saved", into = "Saved")]
pub struct Candidates {
    points: Array2<f64>,
    low: Array1<f64>,
    high: Array1<f64>,
    domain: Arc<Domain>,
}

impl Candidates {
    /// Creates a list of candidates. Refuses an empty list and entries that are not finite.
    pub fn new(points: Array2<f64>) -> Result<Self> {
        let points = checked(points)?;
        let bound = |start: f64, better: fn(f64, f64) -> f64| {
            points.map_axis(Axis(0), |column| column.iter().copied().fold(start, better))
        };
        let (low, high) = (
            bound(f64::INFINITY, f64::min),
            bound(f64::NEG_INFINITY, f64::max),
        );
        let domain = Domain::Candidates(scaled(points.view(), &low, &high));
        Ok(Self {
            points,
            low,
            high,
            domain: Arc::new(domain),
        })
    }

    /// The encoded domain.
    pub(crate) fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// The number of candidates.
    pub(crate) fn n_rows(&self) -> usize {
        self.points.nrows()
    }

    /// The columns of a candidate.
    pub(crate) fn row(&self, index: usize) -> Vec<f64> {
        let row = self.points.slice(s![index..=index, ..]);
        self.encode(row).into_iter().collect()
    }

    /// The encoded columns of rows that are given in the user's units. The columns of a row that is not a candidate may
    /// be outside [0, 1].
    pub(crate) fn encode(&self, rows: ArrayView2<f64>) -> Array2<f64> {
        scaled(rows, &self.low, &self.high)
    }

    /// The columns of a measurement at numbers that need not be a candidate.
    pub(crate) fn encode_measured(&self, numbers: &[Option<f64>]) -> Vec<f64> {
        let row = numbers.iter().map(|number| number.unwrap_or(f64::NAN));
        let row = Array1::from_iter(row).insert_axis(Axis(0));
        self.encode(row.view()).into_iter().collect()
    }

    /// Refuses numbers that cannot be the point of a measurement: one finite number for each column is needed.
    pub(crate) fn check_measured(&self, numbers: &[Option<f64>]) -> Result<()> {
        let is_finite = |number: &Option<f64>| number.is_some_and(f64::is_finite);
        match numbers.len() == self.points.ncols() && numbers.iter().all(is_finite) {
            true => Ok(()),
            false => Err(Error::InvalidPoint(format!(
                "params of a measurement need a finite number for each of the {} columns of candidates",
                self.points.ncols()
            ))),
        }
    }

    /// The index of the first candidate that equals this row.
    pub(crate) fn find(&self, row: ArrayView1<f64>) -> Option<usize> {
        self.points
            .outer_iter()
            .position(|candidate| candidate == row)
    }
}

/// The saved form: the number of columns, and the entries of all rows.
type Saved = (usize, Vec<f64>);

impl TryFrom<Saved> for Candidates {
    type Error = Error;

    fn try_from((width, entries): Saved) -> Result<Self> {
        let rows = entries.len().checked_div(width).unwrap_or(0);
        let points = Array2::from_shape_vec((rows, width), entries)
            .map_err(|error| Error::Corrupt(format!("candidates: {error}")))?;
        Candidates::new(points)
    }
}

impl From<Candidates> for Saved {
    fn from(candidates: Candidates) -> Self {
        (
            candidates.points.ncols(),
            candidates.points.iter().copied().collect(),
        )
    }
}

/// Returns (rows − low) / (high − low). The entries are 0 in a column with a single value. Entries between low and high
/// are clipped to [0, 1], which rounding could leave.
fn scaled(rows: ArrayView2<f64>, low: &Array1<f64>, high: &Array1<f64>) -> Array2<f64> {
    let mut scaled = rows.to_owned();
    for mut row in scaled.outer_iter_mut() {
        for ((x, low), high) in row.iter_mut().zip(low).zip(high) {
            // The difference is computed in halves, because the difference of two large floats can overflow.
            let span = high / 2.0 - low / 2.0;
            let span = if span == 0.0 { 1.0 } else { span };
            let u = (*x / 2.0 - low / 2.0) / span;
            *x = match (*low..=*high).contains(x) {
                true => u.clamp(0.0, 1.0),
                false => u.clamp(-MAX_COLUMN, MAX_COLUMN),
            };
        }
    }
    scaled
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rng;
    use ndarray::array;
    use rand::SeedableRng;

    #[test]
    fn columns_are_scaled_and_rows_are_found() {
        let x = array![[10.0, 7.0, -1e308], [20.0, 7.0, 1e308], [30.0, 7.0, 0.0]];
        let candidates = Candidates::new(x.clone()).unwrap();
        let expected = array![[0.0, 0.0, 0.0], [0.5, 0.0, 1.0], [1.0, 0.0, 0.5]];
        assert_eq!(candidates.encode(x.view()), expected);
        assert_eq!(
            *candidates.domain().as_ref(),
            Domain::candidates(expected).unwrap()
        );
        assert_eq!(candidates.find(x.row(2)), Some(2));
        assert_eq!(candidates.find(array![20.0, 7.0, 1.0].view()), None);
        assert!(Candidates::new(array![[f64::NAN]]).is_err());
    }

    #[test]
    fn empty_lists_and_non_finite_entries_are_refused() {
        for points in [
            array![[0.0, f64::NAN]],
            Array2::zeros((0, 2)),
            Array2::zeros((2, 0)),
        ] {
            assert!(matches!(
                Domain::candidates(points),
                Err(Error::InvalidSpace(_))
            ));
        }
    }

    #[test]
    fn candidates_snap_to_the_nearest_row() {
        let domain = Domain::candidates(array![[0.1, 5.0], [-0.0, 1e-300], [2.0, 2.0]]).unwrap();
        assert_eq!((domain.width(), domain.dimensions()), (2, 2));
        let mut x = [1.7, 2.4];
        assert_eq!(domain.snap(&mut x), Some(2));
        assert_eq!(x, [2.0, 2.0]);
        assert!(domain.contains(&[0.1, 5.0 + 1e-10]) && !domain.contains(&[0.1]));
        let spread = domain.quasi_random(3, &mut Rng::seed_from_u64(1));
        let mut sums: Vec<f64> = spread.rows().into_iter().map(|r| r.sum()).collect();
        sums.sort_by(f64::total_cmp);
        assert_eq!(sums, [1e-300, 4.0, 5.1]);
    }
}
