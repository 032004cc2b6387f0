//! Reusable buffers for evaluations of a path.

#[derive(Debug, Default)]
pub struct Workspace {
    pub(super) k: Vec<f64>,
    pub(super) slope: Vec<f64>,
    pub(super) sines: Vec<f64>,
    pub(super) cosines: Vec<f64>,
    pub(super) by_prior: Vec<f64>,
    pub(super) by_norm: Vec<f64>,
}

impl Workspace {
    pub(super) fn resize(&mut self, n: usize, features: usize) {
        self.k.resize(n, 0.0);
        self.slope.resize(n, 0.0);
        for buffer in [
            &mut self.sines,
            &mut self.cosines,
            &mut self.by_prior,
            &mut self.by_norm,
        ] {
            buffer.resize(features, 0.0);
        }
    }
}
