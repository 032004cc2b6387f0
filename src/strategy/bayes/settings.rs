//! What can be chosen about Bayesian optimisation, with defaults, and the checks on it.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::gp::Hyperparameters;
use crate::gp::fit::{Draws, FitSettings};
use crate::gp::kernel::KernelFamily;
use crate::strategy::bayes::pending::{Lie, PendingPolicy};

/// Outcomes that expected improvement is averaged over; more of them decide no better.
pub const FANTASIES: usize = 32;

/// Counts above this are taken for mistakes: memory would run out before anything else.
pub(crate) const MAX_COUNT: usize = 1_000_000;

/// Which formula chooses the next point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AcquisitionKind {
    UpperConfidenceBound,
    LogExpectedImprovement,
    Thompson,
    /// Pure exploration.
    MaxVariance,
}

/// The width of the upper confidence bound, before delays are accounted for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Beta {
    /// The same at every step; Verma et al. 2022 use 1.
    Constant(f64),
    /// sqrt(beta_j) with beta_j = 0.2·d·log(2j + 1), j the trials so far (Kandasamy et al. 2017).
    Kandasamy,
    /// B_f + R·sqrt(2(gamma_{j−1} + 1 + log(1/δ))) (Chowdhury & Gopalan 2017, theorem 2); under `Censor`
    /// B_f + (R + B_y)·sqrt(2(gamma_{j−1} + 1 + log(2/δ))), for draws log(4/δ) (Verma et al. 2022, theorems 1 and 2).
    ///
    /// In the model's units, with R = sqrt(λ), B_y = 1 and gamma the greedy upper bound of
    /// [`crate::strategy::bayes::information`].
    Theory {
        /// B_f, a bound on the norm of f in the kernel's space.
        rkhs_bound: f64,
        /// δ, the chance that the bound fails.
        delta: f64,
    },
}

impl Beta {
    /// The factor of sigma for trial j = 1, 2, … in d dimensions; `gamma` and λ matter to the theory's alone.
    pub fn width(self, d: usize, j: usize, gamma: f64, noise: f64, settings: &Settings) -> f64 {
        match self {
            Beta::Constant(width) => width,
            Beta::Kandasamy => (0.2 * d as f64 * (2.0 * j as f64 + 1.0).ln()).sqrt(),
            Beta::Theory { rkhs_bound, delta } => {
                let censored = settings.pending == PendingPolicy::Censor;
                let draws = settings.acquisition == AcquisitionKind::Thompson;
                let (b_y, events) = match (censored, draws) {
                    (false, _) => (0.0, 1.0),
                    (true, false) => (1.0, 2.0),
                    (true, true) => (1.0, 4.0),
                };
                let information = gamma + 1.0 + (events / delta).ln();
                rkhs_bound + (noise.sqrt() + b_y) * (2.0 * information).sqrt()
            }
        }
    }
}

/// What a value that arrives after its window is worth to the model. The log keeps it either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Late {
    Accept,
    /// The trial stays at the floor for good, as in the experiments of Verma et al. 2022.
    Discard,
}

/// What the refit schedule counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RefitClock {
    /// New observations since the last fit: `refit_every` of them, fewer while there are few, 5 % when many.
    Observations,
    /// Trials: whenever their number is divisible by `refit_every`.
    Trials,
}

/// The rows that θ is fitted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FitRows {
    /// Observed rows, and censored ones under `Censor`.
    Policy,
    Observed,
    /// Observed rows and the whole tail, hallucinated rows at their mean.
    All,
}

/// Where the first trials go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Initial {
    QuasiRandom,
    Uniform,
}

/// The prior mean of f.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum PriorMean {
    /// 0 after scaling: the mean of the observed, the floor under `Censor`, 0 for raw targets.
    Zero,
    /// The median of the observed.
    Median,
    Number(f64),
    /// A constant of prior N(0, 1) after scaling, estimated with θ: not the mean of the observed, as those crowd where f is
    /// large. As `Zero` where that is not the mean of the observed.
    Estimated,
    /// `Estimated` in many columns, `Zero` in few: where space is small the two do equally well.
    Auto,
}

/// From so many columns on `PriorMean::Auto` is estimated.
const MANY_COLUMNS: usize = 5;

/// The units that the model works in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TargetScale {
    /// Scaled to order one by the observed.
    Standardized,
    /// As observed.
    Raw,
}

/// How Thompson draws are made where they cannot be exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DrawMethod {
    Pathwise,
    WeightSpace,
}

/// How an acquisition is maximised over a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BoxSearch {
    Default,
    /// Uniform points, then L-BFGS-B runs from other uniform points.
    Multistart {
        n_raw: usize,
        n_starts: usize,
    },
}

/// Everything that can be chosen; values are in the units of f, lengthscales in those of the encoded columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// One of these, whichever has the larger evidence; at least one.
    pub kernels: Vec<KernelFamily>,
    pub ard: bool,
    /// One per column, or a single one for all; None is fitted, as for the two below.
    pub lengthscale: Option<Vec<f64>>,
    pub variance: Option<f64>,
    pub noise: Option<f64>,
    pub priors: bool,
    pub n_restarts: usize,
    pub refit_every: usize,
    pub refit_clock: RefitClock,
    pub fit_rows: FitRows,
    /// (lengthscale, variance, noise) that the first fit starts from.
    pub initial_theta: Option<[f64; 3]>,
    pub acquisition: AcquisitionKind,
    pub beta: Beta,
    pub pending: PendingPolicy,
    /// How long a pending trial counts as arriving; infinite if None.
    pub window: Option<f64>,
    /// The known or assumed minimum of f; the worst observed value if None.
    pub floor: Option<f64>,
    pub late: Late,
    pub n_initial: Option<usize>,
    pub initial: Initial,
    pub mean: PriorMean,
    pub targets: TargetScale,
    /// Whether sigma in bounds includes the noise.
    pub predictive_std: bool,
    /// Whether draws under `Censor` deviate nu_t times as much from the mean.
    pub scale_draws: bool,
    pub thompson: DrawMethod,
    pub n_features: usize,
    pub maximizer: BoxSearch,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            kernels: vec![KernelFamily::Matern52, KernelFamily::SquaredExponential],
            ard: true,
            lengthscale: None,
            variance: None,
            noise: None,
            priors: true,
            n_restarts: 4,
            refit_every: 10,
            refit_clock: RefitClock::Observations,
            fit_rows: FitRows::Policy,
            initial_theta: None,
            acquisition: AcquisitionKind::LogExpectedImprovement,
            beta: Beta::Constant(1.0),
            pending: PendingPolicy::Integrate(FANTASIES),
            window: None,
            floor: None,
            late: Late::Accept,
            n_initial: None,
            initial: Initial::QuasiRandom,
            mean: PriorMean::Auto,
            targets: TargetScale::Standardized,
            predictive_std: false,
            scale_draws: true,
            thompson: DrawMethod::Pathwise,
            n_features: 1024,
            maximizer: BoxSearch::Default,
        }
    }
}

impl Settings {
    /// Refuses settings that cannot be meant, and gives every column its lengthscale.
    pub fn checked(mut self, width: usize, candidates: bool) -> Result<Self> {
        let refuse = |name, got: String, expected| {
            Err(Error::InvalidSetting {
                name,
                got,
                expected,
            })
        };
        if self.kernels.is_empty() {
            return refuse("kernel", "[]".to_string(), "give at least one");
        }
        let positive = |x: f64| x > 0.0 && x.is_finite();
        if let Some(lengthscale) = &mut self.lengthscale {
            if lengthscale.len() == 1 {
                *lengthscale = vec![lengthscale[0]; width];
            }
            if lengthscale.len() != width || !lengthscale.iter().all(|l| positive(*l)) {
                return refuse(
                    "lengthscale",
                    format!("{lengthscale:?}"),
                    "give one finite number above 0, or one for every encoded column of point and context",
                );
            }
        }
        for (name, given) in [("variance", self.variance), ("noise", self.noise)] {
            if let Some(given) = given.filter(|x| !positive(*x)) {
                return refuse(name, given.to_string(), "give a finite number above 0");
            }
        }
        if let Some(start) = self
            .initial_theta
            .filter(|s| !s.iter().all(|x| positive(*x)))
        {
            return refuse(
                "initial_theta",
                format!("{start:?}"),
                "give (lengthscale, variance, noise), each finite and above 0",
            );
        }
        if let Some(window) = self.window.filter(|w| w.is_nan() || *w <= 0.0) {
            return refuse("window", window.to_string(), "give a number above 0");
        }
        if let Some(floor) = self.floor.filter(|f| !f.is_finite()) {
            return refuse("floor", floor.to_string(), "give a finite value of f");
        }
        if let PriorMean::Number(mean) = self.mean
            && !mean.is_finite()
        {
            return refuse("mean", mean.to_string(), "give a finite value of f");
        }
        if let Beta::Constant(beta) = self.beta
            && !(beta >= 0.0 && beta.is_finite())
        {
            return refuse("beta", beta.to_string(), "give a finite number, 0 or above");
        }
        if let PendingPolicy::Liar(Lie::Number(lie)) = self.pending
            && !lie.is_finite()
        {
            return refuse("lie", lie.to_string(), "give a finite value of f");
        }
        if matches!(self.pending, PendingPolicy::Integrate(_))
            && self.acquisition != AcquisitionKind::LogExpectedImprovement
        {
            return refuse(
                "pending",
                "integrate".to_string(),
                "it needs acquisition=\"log_ei\": on average over outcomes a bound or variance is that of \
                 \"hallucinate\", a draw that of \"ignore\"",
            );
        }
        if let Beta::Theory { rkhs_bound, delta } = self.beta {
            if !(rkhs_bound >= 0.0 && rkhs_bound.is_finite()) {
                return refuse(
                    "rkhs_bound",
                    rkhs_bound.to_string(),
                    "give a finite number, 0 or above",
                );
            }
            if !(delta > 0.0 && delta < 1.0) {
                return refuse("delta", delta.to_string(), "give a number between 0 and 1");
            }
        }
        let (n_nearest, n_fantasies) = match self.pending {
            PendingPolicy::Nearest(k) => (k, 1),
            PendingPolicy::Integrate(n) => (1, n),
            _ => (1, 1),
        };
        let (n_raw, n_starts) = match self.maximizer {
            BoxSearch::Multistart { n_raw, n_starts } => (n_raw, n_starts),
            BoxSearch::Default => (1, 0),
        };
        for (name, count, least) in [
            ("n_restarts", self.n_restarts, 1),
            ("refit_every", self.refit_every.min(MAX_COUNT), 1),
            ("n_features", self.n_features, 1),
            ("n_initial", self.n_initial.unwrap_or(0), 0),
            ("n_nearest", n_nearest, 1),
            ("n_fantasies", n_fantasies, 1),
            ("n_raw", n_raw, 1),
            ("n_starts", n_starts, 0),
        ] {
            if !(least..=MAX_COUNT).contains(&count) {
                let expected = match least {
                    0 => "give a number from 0 to 1,000,000",
                    _ => "give a number of 1 or above, and no more than 1,000,000",
                };
                return refuse(name, count.to_string(), expected);
            }
        }
        if self.late == Late::Discard
            && (self.pending != PendingPolicy::Censor || self.window.is_none())
        {
            return refuse(
                "late",
                "discard".to_string(),
                "it needs pending=\"censor\" and a window, after which a value is too late",
            );
        }
        if candidates && self.thompson == DrawMethod::WeightSpace {
            return refuse(
                "thompson",
                "weight_space".to_string(),
                "draws on candidates are exact; weight-space draws are for boxes",
            );
        }
        if candidates && self.maximizer != BoxSearch::Default {
            return refuse(
                "maximizer",
                "multistart".to_string(),
                "it is for boxes; candidates are all scored",
            );
        }
        Ok(self)
    }

    pub fn window_or_infinite(&self) -> f64 {
        self.window.unwrap_or(f64::INFINITY)
    }

    pub fn fit_settings(&self) -> FitSettings {
        FitSettings {
            family: self.kernels[0],
            ard: self.ard,
            lengthscale: self.lengthscale.clone(),
            signal_variance: self.variance,
            noise_variance: self.noise,
            priors: self.priors,
            n_restarts: self.n_restarts,
            draws: Draws::Unit,
        }
    }

    /// Whether the prior mean is estimated, for rows of so many columns.
    pub fn estimates_mean(&self, width: usize) -> bool {
        let wanted = match self.mean {
            PriorMean::Estimated => true,
            PriorMean::Auto => width >= MANY_COLUMNS,
            _ => false,
        };
        wanted && self.targets == TargetScale::Standardized && self.pending != PendingPolicy::Censor
    }

    /// Whether anything is fitted.
    pub fn fits(&self) -> bool {
        self.kernels.len() > 1 || self.fit_settings().given().is_none()
    }

    /// Where the first fit starts.
    pub fn first_theta(&self, width: usize) -> Hyperparameters {
        let mut theta = self.fit_settings().prior_mode(width);
        if let Some([lengthscale, variance, noise]) = self.initial_theta {
            if self.lengthscale.is_none() {
                theta.lengthscale.fill(lengthscale);
            }
            theta.signal_variance = self.variance.unwrap_or(variance);
            theta.noise_variance = self.noise.unwrap_or(noise);
        }
        theta
    }

    /// Whether a refit is due with `rows` rows and `trials` trials, the last having been at `fitted` rows.
    pub fn refit_due(&self, fitted: Option<usize>, rows: usize, trials: usize) -> bool {
        let Some(fitted) = fitted else { return true };
        match self.refit_clock {
            RefitClock::Trials => trials.is_multiple_of(self.refit_every),
            RefitClock::Observations => {
                // Few observations change θ a lot, many only slowly.
                let interval = (fitted / 10).clamp(1, self.refit_every).max(fitted / 20);
                rows >= fitted + interval
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bad_setting_is_refused_by_name() {
        type Change = fn(&mut Settings);
        let bad: [(&str, Change); 25] = [
            ("lengthscale", |s| s.lengthscale = Some(vec![1.0, 2.0])),
            ("lengthscale", |s| s.lengthscale = Some(vec![0.0])),
            ("variance", |s| s.variance = Some(f64::NAN)),
            ("noise", |s| s.noise = Some(0.0)),
            ("initial_theta", |s| s.initial_theta = Some([1.0, 0.0, 1.0])),
            ("window", |s| s.window = Some(0.0)),
            ("window", |s| s.window = Some(f64::NAN)),
            ("floor", |s| s.floor = Some(f64::INFINITY)),
            ("mean", |s| s.mean = PriorMean::Number(f64::NAN)),
            ("beta", |s| s.beta = Beta::Constant(-1.0)),
            ("n_restarts", |s| s.n_restarts = 0),
            ("refit_every", |s| s.refit_every = 0),
            ("n_features", |s| s.n_features = 0),
            ("n_features", |s| s.n_features = MAX_COUNT + 1),
            ("n_restarts", |s| s.n_restarts = MAX_COUNT + 1),
            ("n_initial", |s| s.n_initial = Some(usize::MAX)),
            ("n_raw", |s| {
                s.maximizer = BoxSearch::Multistart {
                    n_raw: 0,
                    n_starts: 1,
                }
            }),
            ("n_starts", |s| {
                s.maximizer = BoxSearch::Multistart {
                    n_raw: 1,
                    n_starts: usize::MAX,
                }
            }),
            ("late", |s| s.late = Late::Discard),
            ("rkhs_bound", |s| {
                s.beta = Beta::Theory {
                    rkhs_bound: -1.0,
                    delta: 0.1,
                };
            }),
            ("delta", |s| {
                s.beta = Beta::Theory {
                    rkhs_bound: 1.0,
                    delta: 1.0,
                };
            }),
            ("lie", |s| {
                s.pending = PendingPolicy::Liar(Lie::Number(f64::NAN));
            }),
            ("n_nearest", |s| s.pending = PendingPolicy::Nearest(0)),
            ("n_fantasies", |s| {
                s.pending = PendingPolicy::Integrate(MAX_COUNT + 1);
            }),
            ("pending", |s| {
                s.pending = PendingPolicy::Integrate(8);
                s.acquisition = AcquisitionKind::Thompson;
            }),
        ];
        for (expected, change) in bad {
            let mut settings = Settings::default();
            change(&mut settings);
            match settings.checked(3, false) {
                Err(Error::InvalidSetting { name, .. }) => assert_eq!(name, expected),
                other => panic!("{expected}: {other:?}"),
            }
        }
        for change in [
            (|s| s.thompson = DrawMethod::WeightSpace) as fn(&mut Settings),
            |s| {
                s.maximizer = BoxSearch::Multistart {
                    n_raw: 10,
                    n_starts: 1,
                };
            },
        ] {
            let mut settings = Settings::default();
            change(&mut settings);
            assert!(settings.clone().checked(3, true).is_err());
            assert!(settings.checked(3, false).is_ok());
        }
    }

    #[test]
    fn refits_are_dense_at_first_and_sparse_later() {
        let settings = Settings::default();
        assert!(settings.refit_due(None, 3, 3));
        for (fitted, rows, due) in [
            (5, 5, false),
            (5, 6, true),
            (100, 109, false),
            (100, 110, true),
            (1000, 1049, false),
            (1000, 1050, true),
        ] {
            assert_eq!(settings.refit_due(Some(fitted), rows, 0), due);
        }
        let by_trials = Settings {
            refit_clock: RefitClock::Trials,
            ..settings
        };
        assert!(by_trials.refit_due(Some(7), 7, 20) && !by_trials.refit_due(Some(7), 9, 21));
    }
}
