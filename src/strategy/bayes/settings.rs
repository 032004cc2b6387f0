//! What can be chosen about Bayesian optimisation: every value with its defaults, as JSON has them.
//!
//! Values of f and standard deviations are in units of f; those of the surrogate in units of the targets, which are
//! f standardized as a rule. Lengthscales are in units of the encoded columns.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::gp::Hyperparameters;
use crate::gp::fit::{Draws, FitSettings};
use crate::gp::kernel::{InputWarp, KernelFamily};
use crate::strategy::bayes::columns::Columns;
use crate::strategy::bayes::pending::{Hallucinate, Integrate, Pending};
use crate::strategy::bayes::training_set::MIN_NOISE;
use crate::strategy::registry::as_json;

pub use crate::strategy::bayes::acquisitions::{
    Acquisition, Beta, DrawMethod, Incumbent, LogEI, MaxVariance, Multistart, Schedule,
    ThompsonSampling, UCB, UCBPE,
};

/// Everything that can be chosen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    pub acquisition: Acquisition,
    /// None: `Integrate` where the acquisition can be averaged over outcomes, else `Hallucinate`.
    pub pending: Option<Pending>,
    pub surrogate: Surrogate,
    pub initial: Initial,
    /// How long a pending trial counts as arriving, in units of the clock; for ever if None.
    pub window: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", deny_unknown_fields)]
pub enum Surrogate {
    GP(GP),
}

impl Default for Surrogate {
    fn default() -> Self {
        Surrogate::GP(GP::default())
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GP {
    pub kernel: KernelChoice,
    /// One lengthscale per dimension, whatever its columns, or one for all.
    pub ard: bool,
    /// One per column, or a single one for all; None is fitted, as for the two below.
    pub lengthscale: Option<Lengthscale>,
    pub signal_std: Option<f64>,
    pub noise_std: Option<f64>,
    pub mean: PriorMean,
    pub priors: bool,
    pub targets: TargetScale,
    pub inputs: Inputs,
    /// Starts of the first fit; of later ones, the first of which is the last result.
    pub n_restarts: usize,
    pub n_refit_restarts: usize,
    pub refit_every: usize,
    pub refit_clock: RefitClock,
    pub fit_rows: FitRows,
    /// (lengthscale, signal_std, noise_std) that the first fit starts from.
    pub initial_theta: Option<[f64; 3]>,
}

impl Default for GP {
    fn default() -> Self {
        Self {
            kernel: KernelChoice::Auto(Auto::Auto),
            ard: true,
            lengthscale: None,
            signal_std: None,
            noise_std: None,
            mean: PriorMean::Named(NamedMean::Auto),
            priors: true,
            targets: TargetScale::Robust,
            inputs: Inputs::Warped,
            n_restarts: 4,
            n_refit_restarts: 2,
            refit_every: 10,
            refit_clock: RefitClock::Observations,
            fit_rows: FitRows::Observed,
            initial_theta: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "unknown kernel")]
pub enum KernelChoice {
    Auto(Auto),
    Family(KernelFamily),
}

/// The better explained of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Auto {
    Auto,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number or a list of numbers")]
pub enum Lengthscale {
    Shared(f64),
    PerColumn(Vec<f64>),
}

/// The prior mean of f.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a value of f, \"auto\", \"estimated\", \"zero\" or \"median\" for mean"
)]
pub enum PriorMean {
    Number(f64),
    Named(NamedMean),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NamedMean {
    /// 0 after scaling: the mean of the observed, the floor under `Censor`, 0 for raw targets.
    Zero,
    /// The median of the observed.
    Median,
    /// A constant of prior N(0, 1) after scaling, estimated with θ: not the mean of the observed, as those crowd where f is
    /// large. As `Zero` where that is not the mean of the observed.
    Estimated,
    /// `Estimated` in many dimensions, `Zero` in few: where space is small the two do equally well.
    Auto,
}

/// From so many dimensions on `Auto` is `Estimated`.
const MANY_DIMENSIONS: usize = 5;

/// The units that the model works in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetScale {
    /// As `Standardized`, after a [`crate::strategy::bayes::warp::Warp`] where the data are explained better with it.
    Robust,
    /// Scaled to order one by the observed.
    Standardized,
    /// As observed.
    Raw,
}

/// The numbers of a point as the model sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Inputs {
    /// Stretched by a [`crate::gp::kernel::Kumaraswamy`] where the data are explained better with it.
    Warped,
    /// As encoded.
    Plain,
}

/// With more numbers than this none is warped: a fit tries each of them.
const MAX_WARPABLE: usize = 20;

/// What the refit schedule counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefitClock {
    /// New observations since the last fit: `refit_every` of them, fewer while there are few, 5 % when many.
    Observations,
    /// Trials: whenever their number is divisible by `refit_every`.
    Trials,
}

/// The rows that θ is fitted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FitRows {
    /// Observed rows, and censored ones under `Censor`.
    Policy,
    Observed,
    /// Observed rows and the whole tail, hallucinated rows at their mean.
    All,
}

/// The trials before there is a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", deny_unknown_fields)]
pub enum Initial {
    Initial(InitialDesign),
}

impl Default for Initial {
    fn default() -> Self {
        Initial::Initial(InitialDesign::default())
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct InitialDesign {
    /// How many; None: by dimension.
    pub n: Option<usize>,
    pub how: DesignMethod,
}

impl Default for InitialDesign {
    fn default() -> Self {
        Self {
            n: None,
            how: DesignMethod::QuasiRandom,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DesignMethod {
    QuasiRandom,
    Uniform,
    /// Each where the model's variance, given the points before it, is largest: uncertainty sampling (Kandasamy et al.
    /// 2017, proposition 2).
    Uncertainty,
}

/// Every value that the settings may hold, with its defaults.
pub fn values() -> Vec<Value> {
    let acquisitions = Acquisition::defaults().into_iter().map(as_json);
    let policies = Pending::defaults().into_iter().map(as_json);
    let others = [as_json(Surrogate::default()), as_json(Initial::default())];
    acquisitions.chain(policies).chain(others).collect()
}

impl Settings {
    /// What a pending trial means to the model.
    pub fn pending(&self) -> Pending {
        // Averaged over outcomes, a bound is the hallucinated one; and draws that ignore what is out go where it is.
        self.pending.unwrap_or(match self.acquisition {
            Acquisition::LogEI(_) => Pending::Integrate(Integrate::default()),
            _ => Pending::Hallucinate(Hallucinate::default()),
        })
    }

    pub fn gp(&self) -> &GP {
        let Surrogate::GP(gp) = &self.surrogate;
        gp
    }

    pub fn design(&self) -> &InitialDesign {
        let Initial::Initial(design) = &self.initial;
        design
    }

    pub fn window_or_infinite(&self) -> f64 {
        self.window.unwrap_or(f64::INFINITY)
    }

    /// Whether bad values may be brought nearer to the others.
    pub fn warps(&self) -> bool {
        // The targets of `Censor` are distances from the floor.
        self.gp().targets == TargetScale::Robust && !self.pending().is_censor()
    }

    /// Whether the prior mean is estimated, in d dimensions of point and context.
    pub fn estimates_mean(&self, d: usize) -> bool {
        let wanted = match self.gp().mean {
            PriorMean::Named(NamedMean::Estimated) => true,
            PriorMean::Named(NamedMean::Auto) => d >= MANY_DIMENSIONS,
            _ => false,
        };
        wanted && self.gp().targets != TargetScale::Raw && !self.pending().is_censor()
    }
}

impl GP {
    /// One of these, whichever has the larger evidence.
    ///
    /// Functions of choices and steps are rougher than those of a box: there Matern 3/2 was better on tables of tuning
    /// experiments, and worse on smooth functions (docs/defaults.md).
    pub fn families(&self, columns: &Columns) -> Vec<KernelFamily> {
        match self.kernel {
            KernelChoice::Auto(_) => {
                let first = match columns.discrete {
                    true => KernelFamily::Matern32,
                    false => KernelFamily::Matern52,
                };
                vec![first, KernelFamily::SquaredExponential]
            }
            KernelChoice::Family(family) => vec![family],
        }
    }

    /// What is fitted, for rows of these columns.
    pub fn fit_settings(&self, columns: &Columns) -> FitSettings {
        let width = columns.width();
        let per_column = |lengthscale: &Lengthscale| match lengthscale {
            Lengthscale::Shared(l) => vec![*l; width],
            Lengthscale::PerColumn(l) if l.len() == 1 => vec![l[0]; width],
            Lengthscale::PerColumn(l) => l.clone(),
        };
        FitSettings {
            family: self.families(columns)[0],
            groups: self.groups(columns),
            categories: columns.categories.clone(),
            lengthscale: self.lengthscale.as_ref().map(per_column),
            signal_variance: self.signal_std.map(square),
            noise_variance: self.noise_std.map(noise_variance),
            priors: self.priors,
            n_restarts: self.n_restarts,
            draws: Draws::Unit,
            dimensions: columns.dimensions,
            spreads: self.spreads(columns),
            input_warp: InputWarp::default(),
            warpable: self.warpable(columns),
        }
    }

    /// The columns that a fit may warp.
    fn warpable(&self, columns: &Columns) -> Vec<usize> {
        let stationary = self.families(columns).iter().all(|f| f.is_stationary());
        let warps = self.inputs == Inputs::Warped && stationary && self.lengthscale.is_none();
        match warps && columns.numbers.len() <= MAX_WARPABLE {
            true => columns.numbers.clone(),
            false => Vec::new(),
        }
    }

    /// The columns that share a lengthscale: what is given is given by column.
    fn groups(&self, columns: &Columns) -> Vec<usize> {
        match (&self.lengthscale, self.ard) {
            (Some(_), _) => (0..columns.width()).collect(),
            (None, true) => columns.dimension.clone(),
            (None, false) => vec![0; columns.width()],
        }
    }

    /// The spread of each of the [`Self::groups`]; where all columns share a lengthscale, the root mean square.
    fn spreads(&self, columns: &Columns) -> Vec<f64> {
        match (&self.lengthscale, self.ard) {
            (Some(_), _) => vec![1.0; columns.width()],
            (None, true) => columns.spreads.clone(),
            (None, false) => {
                let squares = columns.spreads.iter().map(|s| s * s).sum::<f64>();
                vec![(squares / columns.dimensions as f64).sqrt()]
            }
        }
    }

    /// Whether anything is fitted.
    pub fn fits(&self) -> bool {
        let given = self.lengthscale.is_some() && self.signal_std.is_some();
        self.kernel == KernelChoice::Auto(Auto::Auto) || !given || self.noise_std.is_none()
    }

    /// Whether the units of the targets are chosen with θ, and stay until the next fit.
    pub fn keeps_units(&self) -> bool {
        self.fits() && self.refit_clock == RefitClock::Observations
    }

    /// Where the first fit starts.
    pub fn first_theta(&self, columns: &Columns) -> Hyperparameters {
        let mut theta = self.fit_settings(columns).prior_mode();
        if let Some([lengthscale, signal_std, noise_std]) = self.initial_theta {
            if self.lengthscale.is_none() {
                theta.lengthscale.fill(lengthscale);
            }
            theta.signal_variance = square(self.signal_std.unwrap_or(signal_std));
            theta.noise_variance = noise_variance(self.noise_std.unwrap_or(noise_std));
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

/// The variance of the noise; none stands for a variance that the factor's digits do not show.
fn noise_variance(std: f64) -> f64 {
    if std == 0.0 { MIN_NOISE } else { square(std) }
}

fn square(std: f64) -> f64 {
    std * std
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn gp(fields: Value) -> GP {
        serde_json::from_value(fields).unwrap()
    }

    #[test]
    fn something_is_fitted_unless_all_is_given() {
        let given =
            json!({"kernel": "matern52", "lengthscale": 0.3, "signal_std": 2.0, "noise_std": 0.5});
        assert!(!gp(given.clone()).fits() && GP::default().fits());
        for (field, value) in [
            ("kernel", json!("auto")),
            ("lengthscale", Value::Null),
            ("signal_std", Value::Null),
            ("noise_std", Value::Null),
        ] {
            let mut fields = given.clone();
            fields[field] = value;
            assert!(gp(fields).fits(), "{field}");
        }
    }

    #[test]
    fn standard_deviations_are_squared_and_no_noise_is_the_least_that_a_factor_shows() {
        let fields = json!({"lengthscale": [0.3], "signal_std": 3.0, "noise_std": 0.5});
        let fit = gp(fields.clone()).fit_settings(&Columns::plain(2));
        assert_eq!(fit.lengthscale, Some(vec![0.3; 2]));
        assert_eq!(
            (fit.signal_variance, fit.noise_variance),
            (Some(9.0), Some(0.25))
        );
        let noiseless = gp(json!({"noise_std": 0.0, "lengthscale": [0.3, 0.4]}))
            .fit_settings(&Columns::plain(2));
        assert_eq!(noiseless.noise_variance, Some(MIN_NOISE));
        assert_eq!(noiseless.lengthscale, Some(vec![0.3, 0.4]));
        // What is given stands before where the fit would start.
        let mut fields = fields;
        fields["initial_theta"] = json!([0.5, 2.0, 0.25]);
        let theta = gp(fields).first_theta(&Columns::plain(2));
        assert_eq!((theta.signal_variance, theta.noise_variance), (9.0, 0.25));
        assert_eq!(theta.lengthscale, [0.3; 2]);
        let theta = gp(json!({"initial_theta": [0.5, 2.0, 0.25]})).first_theta(&Columns::plain(2));
        assert_eq!((theta.signal_variance, theta.noise_variance), (4.0, 0.0625));
        assert_eq!(theta.lengthscale, [0.5; 2]);
    }

    #[test]
    fn the_mean_is_estimated_where_asked_for_or_in_many_dimensions() {
        let estimated = json!({"mean": "estimated"});
        let raw = json!({"mean": "estimated", "targets": "raw"});
        let censor = json!({"kind": "Censor"});
        for (fields, pending, d, expected) in [
            (estimated.clone(), Value::Null, 1, true),
            (json!({"mean": "auto"}), Value::Null, 4, false),
            (json!({"mean": "auto"}), Value::Null, 5, true),
            (json!({"mean": "zero"}), Value::Null, 9, false),
            (json!({"mean": 1.0}), Value::Null, 9, false),
            (raw, Value::Null, 9, false),
            (estimated, censor, 9, false),
        ] {
            let pending = serde_json::from_value(pending).unwrap();
            let settings = Settings {
                pending,
                surrogate: Surrogate::GP(gp(fields.clone())),
                ..Settings::default()
            };
            assert_eq!(settings.estimates_mean(d), expected, "{fields} {d}");
        }
    }

    #[test]
    fn refits_become_rarer_as_observations_grow() {
        let gp = GP::default(); // refit_every = 10
        assert!(gp.refit_due(None, 0, 0));
        // After a tenth more, at most 10; with many, after a twentieth more.
        for (fitted, interval) in [(0, 1), (5, 1), (50, 5), (150, 10), (400, 20)] {
            for more in 0..2 * interval {
                let due = gp.refit_due(Some(fitted), fitted + more, 1);
                assert_eq!(due, more >= interval, "{fitted} {more}");
            }
        }
        let by_trials = GP {
            refit_clock: RefitClock::Trials,
            ..gp
        };
        let due: Vec<usize> = (1..25)
            .filter(|&t| by_trials.refit_due(Some(5), 90, t))
            .collect();
        assert_eq!(due, [10, 20]);
    }
}
