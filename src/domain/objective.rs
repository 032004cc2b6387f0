//! The interface of an objective function on a domain.

use ndarray::ArrayView2;

/// A function a(x) to maximise, such as an acquisition.
pub trait Objective {
    /// Writes a(x) for every row x of `points` (N, width) to `out` (N,).
    fn values(&mut self, points: ArrayView2<f64>, out: &mut [f64]);

    /// Returns a(x) and writes da/dx to `gradient` (width,).
    fn value_and_gradient(&mut self, x: &[f64], gradient: &mut [f64]) -> f64;
}
