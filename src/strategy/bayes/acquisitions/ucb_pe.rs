//! GP-UCB-PE. If all trials have ended, the acquisition is an upper confidence bound. While trials are in flight, the
//! acquisition is the variance, and the search is restricted to the region that may contain the maximum (Contal et al.
//! 2013).
//!
//! Notation: the n observed rows precede the pending rows; sigma is the standard deviation given all rows; s is the
//! standard deviation given the observed rows; β is a multiplier; y• = max_x mu(x) − β·s(x) is a lower bound on the
//! maximum. Pending rows do not change the mean, so mu is the mean given the observed rows. The region is {x : mu(x) +
//! 2β·s(x) > y•}.

use ndarray::ArrayView1;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::gp::{GaussianProcess, contiguous, dot_row, variance_left};
use crate::random::Rng;
use crate::strategy::bayes::acquisitions::bound::{Beta, Bound};
use crate::strategy::bayes::acquisitions::formula::{Block, Buffers, Formula, floored_std};
use crate::strategy::bayes::acquisitions::rule::{Maximand, Rule, Situation, Traits};
use crate::strategy::bayes::acquisitions::ucb::UpperConfidenceBound;
use crate::strategy::from_settings::tagged;
use crate::strategy::theory::Theory;

/// GP-UCB-PE (Contal et al. 2013). All points of a batch use the beta that was computed for the first point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UCBPE {
    pub beta: Beta,
    #[serde(deserialize_with = "tagged")]
    pub theory: Theory,
}

impl Default for UCBPE {
    fn default() -> Self {
        Self {
            beta: Beta::Constant(2.0),
            theory: Theory::default(),
        }
    }
}

impl Rule for UCBPE {
    fn maximand(&self, situation: Situation, _rng: &mut Rng) -> Result<Maximand<'static>> {
        let multiplier = situation.nu;
        Ok(Maximand::Formula(match situation.lower_bound {
            None => Box::new(UpperConfidenceBound {
                multiplier,
                noise: 0.0,
            }),
            Some(lower_bound) => Box::new(PureExploration {
                multiplier,
                lower_bound,
            }),
        }))
    }

    fn bound(&self) -> Option<Bound> {
        Some(Bound {
            beta: self.beta,
            constants: self.theory,
            predictive_std: false,
            per_batch: true,
            draws: false,
        })
    }

    fn traits(&self) -> Traits {
        Traits {
            explores: true,
            ..Traits::default()
        }
    }
}

/// Inside the region, the acquisition is sigma² ≥ 0. Outside the region, the acquisition is the margin mu + 2β·s − y• ≤
/// 0.
#[derive(Debug, Clone)]
pub struct PureExploration {
    /// The multiplier β.
    pub multiplier: f64,
    /// The lower bound y•.
    pub lower_bound: f64,
}

impl PureExploration {
    /// Returns the margin mu + 2β·s − y•.
    fn margin(&self, mean: f64, observed_variance: f64) -> f64 {
        mean + 2.0 * self.multiplier * observed_variance.sqrt() - self.lower_bound
    }
}

/// Returns s². Only the entries of v that belong to observed rows are used, because these entries do not depend on the
/// pending rows.
fn observed_variance(gp: &GaussianProcess, x: ArrayView1<f64>, v: &[f64]) -> f64 {
    let observed = ArrayView1::from(&v[..gp.n_observed()]);
    variance_left(gp.kernel().prior_variance(x), observed)
}

impl Formula for PureExploration {
    // A negative value is a difference of two targets, and a nonnegative value is a variance.
    fn in_units_of_f(&self, value: f64, scale: f64, _value_of: &dyn Fn(f64) -> f64) -> f64 {
        match value < 0.0 {
            true => scale * value,
            false => scale * scale * value,
        }
    }

    fn values(&self, block: &Block, _buffers: &mut Buffers, out: &mut [f64]) {
        let Block { gp, rows, solved } = block;
        let mut rows_of_v = rows.rows().into_iter().zip(out);
        let mut each = |v: ArrayView1<f64>| {
            let Some((x, out)) = rows_of_v.next() else {
                return;
            };
            let mean = dot_row(v, gp.whitened_targets());
            let margin = self.margin(mean, observed_variance(gp, x, contiguous(v)));
            *out = match margin > 0.0 {
                true => variance_left(gp.kernel().prior_variance(x), v),
                false => margin,
            };
        };
        match solved {
            Some(v) => v.rows().into_iter().for_each(each),
            None => {
                gp.predict_with(*rows, &mut |v| v.rows().into_iter().for_each(&mut each));
            }
        }
    }

    fn value_and_gradient(
        &self,
        gp: &GaussianProcess,
        x: &[f64],
        buffers: &mut Buffers,
        gradient: &mut [f64],
    ) -> f64 {
        let (mean, variance) = gp.predict_at(x, &mut buffers.workspace);
        let v = buffers.workspace.whitened();
        let observed = observed_variance(gp, ArrayView1::from(x), v);
        let margin = self.margin(mean, observed);
        if margin > 0.0 {
            gp.gradient(x, 0.0, 1.0, &[], &mut buffers.workspace, gradient);
            return variance;
        }
        // ∇(2β·s) = (β/s)·∇s², and s² = sigma² + Σ_tail v_i².
        let by_variance = self.multiplier / floored_std(observed);
        let tail = v[gp.n_observed()..].iter();
        buffers.by_tail.clear();
        buffers.by_tail.extend(tail.map(|v| 2.0 * by_variance * v));
        let (by_tail, workspace) = (&buffers.by_tail, &mut buffers.workspace);
        gp.gradient(x, 1.0, by_variance, by_tail, workspace, gradient);
        margin
    }
}
