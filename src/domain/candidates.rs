//! Finite domains. A finite domain is a list of candidates, one per row.

use ndarray::{Array2, ArrayView2};

use super::coordinate::TOLERANCE;
use crate::error::{Error, Result};

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
    // The order is row-major, because blocks of rows are read as slices.
    Ok(points.as_standard_layout().into_owned())
}

/// Whether `x` equals a row, up to the tolerance.
pub(super) fn contains(points: ArrayView2<f64>, x: &[f64]) -> bool {
    points
        .outer_iter()
        .any(|row| row.iter().zip(x).all(|(&a, &b)| (a - b).abs() <= TOLERANCE))
}

/// The index of the row nearest to `x`. Of equally near rows, the first row is returned.
pub(super) fn nearest(points: ArrayView2<f64>, x: &[f64]) -> usize {
    let (mut nearest, mut least) = (0, f64::INFINITY);
    for (i, row) in points.outer_iter().enumerate() {
        let distance: f64 = row.iter().zip(x).map(|(a, b)| (a - b) * (a - b)).sum();
        if distance < least {
            (nearest, least) = (i, distance);
        }
    }
    nearest
}

#[cfg(test)]
mod tests {
    use super::super::Domain;
    use crate::error::Error;
    use crate::random::Rng;
    use ndarray::{Array2, array};
    use rand::SeedableRng;

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
