//! A function over the points of a domain, as searches ask for it.

use ndarray::ArrayView2;

/// A function a(x) to be maximised: an acquisition over a posterior, as a rule.
pub trait Objective {
    /// a at every row of `points`.
    fn values(&mut self, points: ArrayView2<f64>, out: &mut [f64]);

    /// a(x), and da/dx in `gradient`.
    fn value_and_gradient(&mut self, x: &[f64], gradient: &mut [f64]) -> f64;
}
