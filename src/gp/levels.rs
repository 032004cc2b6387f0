//! Fits from coarse to fine: how many rows each level has, and which.

use ndarray::{Array2, Axis};

use super::evidence::Data;

/// Up to this many rows every start is run on all of them; above, starts compete on a part.
const ALL_ROWS: usize = 150;

/// A level has this many times the rows of the one below it, which has no fewer than `COARSEST`, or this many a column.
const REFINEMENT: usize = 2;
const COARSEST: usize = 100;
const COARSEST_PER_COLUMN: usize = 15;

/// Numbers of rows to fit to in turn, for d columns, ending with n.
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

/// The numbers of n of these many rows, evenly spread over the order of their arrival.
pub(super) fn chosen(rows: usize, n: usize) -> Vec<usize> {
    (0..n).map(|i| i * rows / n).collect()
}

/// Some of the rows.
pub(super) struct Part {
    x: Array2<f64>,
    y: Vec<f64>,
    noise: Vec<Option<f64>>,
    about_mean: bool,
}

impl Part {
    /// These rows.
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
