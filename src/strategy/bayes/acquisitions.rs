//! Acquisitions as settings: their values with all defaults, and the formulas that they stand for.
//!
//! A new one is a variant of [`Acquisition`] and its line in each of the lists below; its formula is a file of
//! [`crate::acquisition`].

use serde::{Deserialize, Serialize};

use crate::acquisition::{
    self as formulas, Acquisition as Formula, LogExpectedImprovement, UpperConfidenceBound,
};
use crate::error::Result;
use crate::random::Rng;
use crate::strategy::Query;
use crate::strategy::bayes::bound::Bound;
use crate::strategy::bayes::incumbents::{incumbent, largest_feasible, noisy_expected_improvement};
use crate::strategy::bayes::pending::Pending;
use crate::strategy::bayes::settings::Settings;
use crate::strategy::bayes::training_set::Posterior;

/// What is maximised to choose a point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", deny_unknown_fields)]
pub enum Acquisition {
    LogEI(LogEI),
    UCB(UCB),
    ThompsonSampling(ThompsonSampling),
    /// Pure exploration.
    MaxVariance(MaxVariance),
}

impl Default for Acquisition {
    fn default() -> Self {
        Acquisition::LogEI(LogEI::default())
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogEI {
    /// What improvement is measured from, unless it is averaged over outcomes.
    pub incumbent: Incumbent,
    pub multistart: Option<Multistart>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Incumbent {
    /// The largest posterior mean at an observed point.
    #[default]
    PosteriorMean,
    /// The largest observed value, noise included (Kandasamy et al. 2017).
    BestValue,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UCB {
    pub beta: Beta,
    /// For `Beta::Theory`: B_f, a bound on the norm of f in the kernel's space, and δ, the chance that the bound fails.
    pub rkhs_bound: f64,
    pub delta: f64,
    /// Whether sigma includes the noise.
    pub predictive_std: bool,
    pub multistart: Option<Multistart>,
}

impl Default for UCB {
    fn default() -> Self {
        Self {
            beta: Beta::Constant(2.0),
            rkhs_bound: 1.0,
            delta: 0.1,
            predictive_std: false,
            multistart: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ThompsonSampling {
    /// Under `Censor`, what draws are widened by besides the delays.
    pub beta: Beta,
    /// As for [`UCB`].
    pub rkhs_bound: f64,
    pub delta: f64,
    /// How draws are made where they cannot be exact, and random features of one.
    pub draws: DrawMethod,
    pub n_features: usize,
    /// Whether draws under `Censor` deviate nu_t times as far from the mean.
    pub widen: bool,
    /// Whether sigma in nu_t includes the noise.
    pub predictive_std: bool,
    pub multistart: Option<Multistart>,
}

impl Default for ThompsonSampling {
    fn default() -> Self {
        Self {
            beta: Beta::Constant(1.0),
            rkhs_bound: 1.0,
            delta: 0.1,
            draws: DrawMethod::Pathwise,
            n_features: 1024,
            widen: true,
            predictive_std: false,
            multistart: None,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MaxVariance {
    pub multistart: Option<Multistart>,
}

/// The literature's search of a box: uniform points, then L-BFGS-B runs from other uniform points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Multistart(
    /// Points.
    pub usize,
    /// Runs.
    pub usize,
);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DrawMethod {
    Pathwise,
    WeightSpace,
}

/// The multiplier of sigma in upper confidence bounds, before delays are accounted for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a number, \"kandasamy\" or \"theory\" for beta"
)]
pub enum Beta {
    /// The same at every step; Verma et al. 2022 use 1.
    Constant(f64),
    Schedule(Schedule),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// sqrt(beta_j) with beta_j = 0.2·d·log(2j + 1), j the trials so far (Kandasamy et al. 2017).
    Kandasamy,
    /// B_f + R·sqrt(2(gamma_{j−1} + 1 + log(1/δ))) (Chowdhury & Gopalan 2017, theorem 2); under `Censor`
    /// B_f + (R + B_y)·sqrt(2(gamma_{j−1} + 1 + log(2/δ))), for draws log(4/δ) (Verma et al. 2022, theorems 1 and 2).
    ///
    /// In the model's units, with R = sqrt(λ), B_y = 1 and gamma the greedy upper bound of
    /// [`crate::strategy::bayes::information`].
    Theory,
}

impl Acquisition {
    /// Every acquisition with its defaults.
    pub fn defaults() -> Vec<Self> {
        vec![
            Acquisition::LogEI(LogEI::default()),
            Acquisition::UCB(UCB::default()),
            Acquisition::ThompsonSampling(ThompsonSampling::default()),
            Acquisition::MaxVariance(MaxVariance::default()),
        ]
    }

    /// The formula to maximise; None for Thompson sampling, whose draw depends on the domain.
    pub fn formula(
        &self,
        posterior: &mut Posterior,
        nu: f64,
        settings: &Settings,
        query: Query,
        rng: &mut Rng,
    ) -> Result<Option<Formula>> {
        let gp = &mut *posterior.gp;
        Ok(match self {
            Acquisition::UCB(ucb) => {
                let noise = if ucb.predictive_std {
                    gp.noise_variance()
                } else {
                    0.0
                };
                Some(Formula::UpperConfidenceBound(UpperConfidenceBound {
                    multiplier: nu,
                    noise,
                }))
            }
            Acquisition::LogEI(log_ei) => Some(match settings.pending() {
                Pending::Integrate(integrate) => {
                    let tail = posterior.tail.rows.view();
                    noisy_expected_improvement(gp, tail, integrate.n, query, rng)?
                }
                _ => Formula::LogExpectedImprovement(LogExpectedImprovement {
                    incumbent: match log_ei.incumbent {
                        Incumbent::PosteriorMean => incumbent(gp, query)?,
                        Incumbent::BestValue => {
                            largest_feasible(gp, &posterior.targets.values, query)?
                        }
                    },
                }),
            }),
            Acquisition::MaxVariance(_) => Some(Formula::MaxVariance(formulas::MaxVariance)),
            Acquisition::ThompsonSampling(_) => None,
        })
    }

    /// The literature's search of a box, where that is asked for.
    pub fn multistart(&self) -> Option<Multistart> {
        match self {
            Acquisition::LogEI(LogEI { multistart, .. })
            | Acquisition::MaxVariance(MaxVariance { multistart })
            | Acquisition::UCB(UCB { multistart, .. })
            | Acquisition::ThompsonSampling(ThompsonSampling { multistart, .. }) => *multistart,
        }
    }

    /// The part of an upper confidence bound, or of the widening of draws; None where there is neither.
    pub fn bound(&self) -> Option<Bound> {
        let (beta, rkhs_bound, delta, predictive_std, draws) = match self {
            Acquisition::UCB(ucb) => (
                ucb.beta,
                ucb.rkhs_bound,
                ucb.delta,
                ucb.predictive_std,
                false,
            ),
            Acquisition::ThompsonSampling(ts) => {
                (ts.beta, ts.rkhs_bound, ts.delta, ts.predictive_std, true)
            }
            Acquisition::LogEI(_) | Acquisition::MaxVariance(_) => return None,
        };
        Some(Bound {
            beta,
            rkhs_bound,
            delta,
            predictive_std,
            draws,
        })
    }
}
