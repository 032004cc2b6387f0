//! Weights and subsets of rows, which reduce the influence of rows that are crowded near the optimum.

use ndarray::{ArrayView1, ArrayView2};

/// The distance below which two points are near each other. Distances are divided by the square root of the number of
/// dimensions. In these units, the distance of two random points is 0.41.
pub(super) const NEAR: f64 = 0.1;

/// The weight of each row, which is 1 / (number of rows near it, including the row itself).
pub fn spread_weights(x: ArrayView2<f64>, dimensions: usize) -> Vec<f64> {
    let mut near = vec![1.0; x.nrows()];
    for i in 0..x.nrows() {
        for j in 0..i {
            if are_near(x.row(i), x.row(j), dimensions, NEAR) {
                near[i] += 1.0;
                near[j] += 1.0;
            }
        }
    }
    near.into_iter().map(f64::recip).collect()
}

/// A subset of the rows, chosen in order. A row is kept if its distance from all kept rows is at least `distance`, in
/// the units of [`NEAR`].
pub(super) fn spread_rows(
    x: ArrayView2<f64>,
    rows: &[usize],
    dimensions: usize,
    distance: f64,
) -> Vec<usize> {
    let mut kept: Vec<usize> = Vec::new();
    for &i in rows {
        if !kept
            .iter()
            .any(|&j| are_near(x.row(i), x.row(j), dimensions, distance))
        {
            kept.push(i);
        }
    }
    kept
}

fn are_near(a: ArrayView1<f64>, b: ArrayView1<f64>, dimensions: usize, distance: f64) -> bool {
    let squares = a.iter().zip(b).map(|(a, b)| (a - b).powi(2));
    squares.sum::<f64>() < distance * distance * dimensions as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn nearby_points_share_the_weight_of_one_point() {
        let x = array![[0.0, 0.0], [0.05, 0.0], [0.0, 0.1], [1.0, 1.0]];
        assert_eq!(
            spread_weights(x.view(), 2),
            [1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0, 1.0]
        );
        assert_eq!(spread_rows(x.view(), &[0, 1, 2, 3], 2, NEAR), [0, 3]);
        assert_eq!(spread_rows(x.view(), &[3, 2], 2, NEAR), [3, 2]);
        assert_eq!(spread_rows(x.view(), &[0, 1, 2], 2, 0.05), [0, 2]);
    }
}
