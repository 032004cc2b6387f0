//! A draw from the posterior as an acquisition. Its argmax is a Thompson sample.

use super::{Block, Buffers, Formula};
use crate::gp::draw::path::Path;
use crate::gp::{GaussianProcess, contiguous};

impl Formula for Path {
    fn values(&self, block: &Block, buffers: &mut Buffers, out: &mut [f64]) {
        for (x, out) in block.rows.rows().into_iter().zip(out) {
            *out = self.value(block.gp, contiguous(x), &mut buffers.path);
        }
    }

    fn value_and_gradient(
        &self,
        gp: &GaussianProcess,
        x: &[f64],
        buffers: &mut Buffers,
        gradient: &mut [f64],
    ) -> f64 {
        Path::value_and_gradient(self, gp, x, &mut buffers.path, gradient)
    }

    /// The effort is large, because an evaluation costs only O(n) and the surface is rough.
    fn effort(&self, n: usize) -> f64 {
        (1200.0 / n as f64).clamp(0.4, 2.0)
    }
}
