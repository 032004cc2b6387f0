//! The logarithm of an acquisition above a level, which makes the acquisition positive, so that it can be multiplied by
//! penalties.

use crate::gp::GaussianProcess;
use crate::strategy::bayes::acquisitions::formula::{Block, Buffers, Formula};

/// The smallest difference between the acquisition and the level.
const MIN_DIFFERENCE: f64 = 1e-12;

/// The acquisition log(a − minimum).
pub struct LogAbove<'a> {
    pub formula: Box<dyn Formula + 'a>,
    pub minimum: f64,
}

impl Formula for LogAbove<'_> {
    fn in_units_of_f(&self, value: f64, scale: f64, _value_of: &dyn Fn(f64) -> f64) -> f64 {
        value + scale.ln()
    }

    fn values(&self, block: &Block, buffers: &mut Buffers, out: &mut [f64]) {
        self.formula.values(block, buffers, out);
        for value in out {
            *value = (*value - self.minimum).max(MIN_DIFFERENCE).ln();
        }
    }

    fn value_and_gradient(
        &self,
        gp: &GaussianProcess,
        x: &[f64],
        buffers: &mut Buffers,
        gradient: &mut [f64],
    ) -> f64 {
        let value = self.formula.value_and_gradient(gp, x, buffers, gradient);
        let difference = (value - self.minimum).max(MIN_DIFFERENCE);
        gradient.iter_mut().for_each(|g| *g /= difference);
        difference.ln()
    }

    fn effort(&self, n: usize) -> f64 {
        self.formula.effort(n)
    }
}
