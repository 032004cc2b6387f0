//! Acquisitions as settings: their values with all defaults, and the formulas that they stand for.
//!
//! A new one is a variant of [`Acquisition`] and its line in each of the lists below; its formula is a file of
//! [`crate::acquisition`].

use serde::{Deserialize, Serialize};

use crate::acquisition::{
    self as formulas, Acquisition as Formula, LogExpectedImprovement, PureExploration,
    UpperConfidenceBound,
};
use crate::error::Result;
use crate::maximize::Maximizer;
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
    /// An upper confidence bound where nothing is in flight, else pure exploration where the maximum may be.
    UCBPE(UCBPE),
}

impl Default for Acquisition {
    fn default() -> Self {
        Acquisition::LogEI(LogEI::default())
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogEI {
    /// What improvement is measured from, unless it is averaged over outcomes.
    pub incumbent: Incumbent,
    pub multistart: Option<Multistart>,
    /// The points that DIRECT chooses in a box, about so many: another search of the literature.
    pub direct: Option<usize>,
    /// What the default search spends, as a multiple of what it spends by default.
    pub effort: f64,
}

impl Default for LogEI {
    fn default() -> Self {
        Self {
            incumbent: Incumbent::default(),
            multistart: None,
            direct: None,
            effort: 1.0,
        }
    }
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
    /// B_y, in the model's units; None for the default of [`Bound`].
    pub value_bound: Option<f64>,
    /// Whether sigma includes the noise.
    pub predictive_std: bool,
    /// Whether all points of a batch have the beta of its first one.
    pub per_batch: bool,
    pub multistart: Option<Multistart>,
    pub direct: Option<usize>,
    pub effort: f64,
}

impl Default for UCB {
    fn default() -> Self {
        Self {
            beta: Beta::Constant(2.0),
            rkhs_bound: 1.0,
            delta: 0.1,
            value_bound: None,
            predictive_std: false,
            per_batch: false,
            multistart: None,
            direct: None,
            effort: 1.0,
        }
    }
}

/// GP-UCB-PE (Contal et al. 2013), with the beta of a batch's first point for all of its points.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UCBPE {
    pub beta: Beta,
    /// As for [`UCB`].
    pub rkhs_bound: f64,
    pub delta: f64,
    pub multistart: Option<Multistart>,
    pub direct: Option<usize>,
    pub effort: f64,
}

impl Default for UCBPE {
    fn default() -> Self {
        Self {
            beta: Beta::Constant(2.0),
            rkhs_bound: 1.0,
            delta: 0.1,
            multistart: None,
            direct: None,
            effort: 1.0,
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
    pub value_bound: Option<f64>,
    /// How draws are made where they cannot be exact, and random features of one.
    pub draws: DrawMethod,
    pub n_features: usize,
    /// Whether draws under `Censor` deviate nu_t times as far from the mean.
    pub widen: bool,
    /// Whether sigma in nu_t includes the noise.
    pub predictive_std: bool,
    pub multistart: Option<Multistart>,
    pub direct: Option<usize>,
    pub effort: f64,
}

impl Default for ThompsonSampling {
    fn default() -> Self {
        Self {
            beta: Beta::Constant(1.0),
            rkhs_bound: 1.0,
            delta: 0.1,
            value_bound: None,
            draws: DrawMethod::Pathwise,
            n_features: 1024,
            widen: true,
            predictive_std: false,
            multistart: None,
            direct: None,
            effort: 1.0,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MaxVariance {
    pub multistart: Option<Multistart>,
    pub direct: Option<usize>,
    pub effort: f64,
}

impl Default for MaxVariance {
    fn default() -> Self {
        Self {
            multistart: None,
            direct: None,
            effort: 1.0,
        }
    }
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
    expecting = "expected a number, \"kandasamy\", \"kandasamy_code\" or \"theory\" for beta"
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
    /// As their code has it: sqrt(beta_j) with beta_j = 5·d·log(2dj + 1).
    KandasamyCode,
    /// B_f + R·sqrt(2(gamma_{j−1} + 1 + log(1/δ))) (Chowdhury & Gopalan 2017, theorem 2); under `Censor`
    /// B_f + (R + B_y)·sqrt(2(gamma_{j−1} + 1 + log(2/δ))), for draws log(4/δ) (Verma et al. 2022, theorems 1 and 2).
    ///
    /// In the model's units, with R = sqrt(λ) and gamma the greedy upper bound of
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
            Acquisition::UCBPE(UCBPE::default()),
        ]
    }

    /// Whether it explores now, some trials being in flight, and needs a lower bound of the maximum for that.
    pub fn explores(&self, n_in_flight: usize) -> bool {
        matches!(self, Acquisition::UCBPE(_)) && n_in_flight > 0
    }

    /// The formula to maximise; None for Thompson sampling, whose draw depends on the domain. `lower_bound` is that of
    /// the maximum of f where it `explores`.
    pub fn formula(
        &self,
        posterior: &mut Posterior,
        nu: f64,
        lower_bound: Option<f64>,
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
            Acquisition::UCBPE(_) => Some(match lower_bound {
                None => Formula::UpperConfidenceBound(UpperConfidenceBound {
                    multiplier: nu,
                    noise: 0.0,
                }),
                Some(lower_bound) => Formula::PureExploration(PureExploration {
                    multiplier: nu,
                    lower_bound,
                }),
            }),
            Acquisition::ThompsonSampling(_) => None,
        })
    }

    /// The counts of the literature's searches of a box, where one is asked for.
    pub fn literature_search(&self) -> (Option<Multistart>, Option<usize>) {
        match self {
            Acquisition::LogEI(LogEI {
                multistart, direct, ..
            })
            | Acquisition::MaxVariance(MaxVariance {
                multistart, direct, ..
            })
            | Acquisition::UCBPE(UCBPE {
                multistart, direct, ..
            })
            | Acquisition::UCB(UCB {
                multistart, direct, ..
            })
            | Acquisition::ThompsonSampling(ThompsonSampling {
                multistart, direct, ..
            }) => (*multistart, *direct),
        }
    }

    /// What the default search spends, as a multiple of what it spends by default.
    pub fn effort(&self) -> f64 {
        match self {
            Acquisition::LogEI(LogEI { effort, .. })
            | Acquisition::MaxVariance(MaxVariance { effort, .. })
            | Acquisition::UCBPE(UCBPE { effort, .. })
            | Acquisition::UCB(UCB { effort, .. })
            | Acquisition::ThompsonSampling(ThompsonSampling { effort, .. }) => *effort,
        }
    }

    /// The literature's search of a box, where that is asked for.
    pub fn maximizer(&self) -> Option<Maximizer> {
        match self.literature_search() {
            (Some(Multistart(n_raw, n_starts)), _) => {
                Some(Maximizer::Multistart { n_raw, n_starts })
            }
            (None, Some(n_evaluations)) => Some(Maximizer::Direct { n_evaluations }),
            (None, None) => None,
        }
    }

    /// The part of an upper confidence bound, or of the widening of draws; None where there is neither.
    pub fn bound(&self) -> Option<Bound> {
        match self {
            Acquisition::UCB(ucb) => Some(Bound {
                beta: ucb.beta,
                rkhs_bound: ucb.rkhs_bound,
                delta: ucb.delta,
                value_bound: ucb.value_bound,
                predictive_std: ucb.predictive_std,
                per_batch: ucb.per_batch,
                draws: false,
            }),
            Acquisition::UCBPE(ucb_pe) => Some(Bound {
                beta: ucb_pe.beta,
                rkhs_bound: ucb_pe.rkhs_bound,
                delta: ucb_pe.delta,
                value_bound: None,
                predictive_std: false,
                per_batch: true,
                draws: false,
            }),
            Acquisition::ThompsonSampling(ts) => Some(Bound {
                beta: ts.beta,
                rkhs_bound: ts.rkhs_bound,
                delta: ts.delta,
                value_bound: ts.value_bound,
                predictive_std: ts.predictive_std,
                per_batch: false,
                draws: true,
            }),
            Acquisition::LogEI(_) | Acquisition::MaxVariance(_) => None,
        }
    }
}
