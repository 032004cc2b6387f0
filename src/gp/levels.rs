//! The levels of a fit, from coarse to fine. Each level uses a subset of the rows, evenly spread over the order of
//! arrival.

use ndarray::{Array2, Axis};

use super::RowNoise;
use super::evidence::Data;

/// The largest number of rows for which every start runs on all rows. With more rows, the starts are compared on a
/// subset.
const ALL_ROWS: usize = 150;

/// The ratio between the numbers of rows at successive levels. The coarsest level has at least `COARSEST` rows, and at
/// least `COARSEST_PER_COLUMN` rows per column.
const REFINEMENT: usize = 2;
const COARSEST: usize = 100;
const COARSEST_PER_COLUMN: usize = 15;

/// The number of rows of each level, for n rows and d columns. The last level has n rows.
pub(super) fn levels(n: usize, d: usize) -> Vec<usize> {
    let coarsest = COARSEST.max(COARSEST_PER_COLUMN * d);
    let mut levels = vec![n];
    let mut rows = n;
    while rows > coarsest + ALL_ROWS / 3 {
        rows = (rows / REFINEMENT).max(coarsest);
        levels.push(rows);
    }
    levels.reverse();
    levels
}

/// The indices of n out of `rows` rows, evenly spread over the order of arrival.
pub(crate) fn chosen(rows: usize, n: usize) -> Vec<usize> {
    (0..n).map(|i| i * rows / n).collect()
}

/// The data of a subset of the rows.
pub(super) struct Part {
    x: Array2<f64>,
    y: Vec<f64>,
    noise: Vec<RowNoise>,
    about_mean: bool,
}

impl Part {
    /// The data of the chosen rows.
    pub(super) fn of(data: Data, chosen: &[usize]) -> Self {
        Self {
            x: data.x.select(Axis(0), chosen),
            y: chosen.iter().map(|&i| data.y[i]).collect(),
            noise: match data.noise {
                [] => Vec::new(),
                noise => chosen.iter().map(|&i| noise[i]).collect(),
            },
            about_mean: data.about_mean,
        }
    }

    pub(super) fn data(&self) -> Data<'_> {
        Data {
            x: self.x.view(),
            y: &self.y,
            noise: &self.noise,
            about_mean: self.about_mean,
        }
    }
}
