//! Thompson sampling, which maximises a draw from the posterior.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::gp::draw::path::Path;
use crate::gp::{GaussianProcess, contiguous};
use crate::random::Rng;
use crate::strategy::bayes::acquisitions::bound::{Beta, Bound};
use crate::strategy::bayes::acquisitions::draws::{DrawMethod, Draws};
use crate::strategy::bayes::acquisitions::formula::{Block, Buffers, Formula};
use crate::strategy::bayes::acquisitions::rule::{Maximand, Rule, Situation, Traits};
use crate::strategy::checks::{check, check_count};
use crate::strategy::from_settings::tagged;
use crate::strategy::theory::Theory;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ThompsonSampling {
    /// The multiplier of draws under `Censor`, before the term for delays is added.
    pub beta: Beta,
    #[serde(deserialize_with = "tagged")]
    pub theory: Theory,
    /// The method for draws that cannot be exact. Such draws use `n_features` random features.
    pub draws: DrawMethod,
    pub n_features: usize,
    /// Whether, under `Censor`, the deviation of a draw from the posterior mean is multiplied by nu_t.
    pub widen: bool,
    /// Whether nu_t sums standard deviations that include the noise.
    pub predictive_std: bool,
}

impl Default for ThompsonSampling {
    fn default() -> Self {
        Self {
            beta: Beta::Constant(1.0),
            theory: Theory::default(),
            draws: DrawMethod::Pathwise,
            n_features: 1024,
            widen: true,
            predictive_std: false,
        }
    }
}

impl Rule for ThompsonSampling {
    fn maximand(&self, _situation: Situation, _rng: &mut Rng) -> Result<Maximand<'static>> {
        Ok(Maximand::Draw(Draws {
            method: self.draws,
            n_features: self.n_features,
            widen: self.widen,
        }))
    }

    fn check(&self, candidates: bool) -> Result<()> {
        check_count("acquisition.n_features", self.n_features)?;
        check(
            !candidates || self.draws == DrawMethod::Pathwise,
            "acquisition.draws",
            "weight_space",
            "draws on candidates are exact; weight-space draws are for boxes",
        )
    }

    fn bound(&self) -> Option<Bound> {
        Some(Bound {
            beta: self.beta,
            constants: self.theory,
            predictive_std: self.predictive_std,
            per_batch: false,
            draws: true,
        })
    }

    fn traits(&self) -> Traits {
        Traits {
            is_random: true,
            ..Traits::default()
        }
    }
}

impl Formula for Path {
    fn in_units_of_f(&self, value: f64, _scale: f64, value_of: &dyn Fn(f64) -> f64) -> f64 {
        value_of(value)
    }

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

    /// The search effort is large, because an evaluation of a draw costs only O(n) and the surface is rough.
    fn effort(&self, n: usize) -> f64 {
        (1200.0 / n as f64).clamp(0.4, 2.0)
    }
}
