//! The settings of the surrogate.
//!
//! Values of f and standard deviations are in units of the targets, which are f standardized by default. Lengthscales are in
//! units of the encoded columns.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::gp::Hyperparameters;
use crate::gp::fit::{Draws, FitSettings};
use crate::gp::kernel::{InputWarp, KernelFamily};
use crate::strategy::bayes::checks::{
    MAX_COUNT, NOT_NEGATIVE, POSITIVE, VALUE_OF_F, check, check_count, is_positive, is_std,
};
use crate::strategy::bayes::columns::Columns;

/// The smallest noise variance, in units of the targets. With a smaller one a factor loses its digits.
pub const MIN_NOISE: f64 = 1e-10;

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
    /// Whether each dimension, of one column or several, has a lengthscale; otherwise all dimensions share one.
    pub ard: bool,
    /// One per column, or a single one for all. If None, it is fitted; the same holds for the next two fields.
    pub lengthscale: Option<Lengthscale>,
    pub signal_std: Option<f64>,
    pub noise_std: Option<f64>,
    pub mean: PriorMean,
    pub priors: bool,
    pub targets: TargetScale,
    pub inputs: Inputs,
    /// The number of starts of the first fit, and of later fits. The first start of a later fit is the last result.
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

/// The better of two kernels, by the evidence.
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
    /// 0 after scaling: the mean of the observed values, the floor under `Censor`, or 0 for raw targets.
    Zero,
    /// The median of the observed values.
    Median,
    /// A constant with prior N(0, 1) after scaling, estimated with θ. The mean of the observed values would be
    /// biased, because points crowd where f is large. The same as `Zero` under `Censor` and for raw targets.
    Estimated,
    /// `Estimated` in many dimensions, `Zero` in few, because in few dimensions both do equally well.
    Auto,
}

/// The units that the model works in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetScale {
    /// As `Standardized`, after a [`crate::strategy::bayes::model::warp::Warp`] if the data are explained better with
    /// it.
    Robust,
    /// Scaled to order one by the observed values.
    Standardized,
    /// As observed.
    Raw,
}

/// The transformation of a point's numbers before they enter the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Inputs {
    /// Stretched by a [`crate::gp::kernel::Kumaraswamy`] map if the data are explained better with it.
    Warped,
    /// As encoded.
    Plain,
}

/// If a point has more numbers than this, none is warped, because a fit tries each of them.
const MAX_WARPABLE: usize = 20;

/// The count that the refit schedule follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefitClock {
    /// New observations since the last fit. A refit needs `refit_every` of them, fewer if there are few, and 5 % if
    /// there are many.
    Observations,
    /// Trials. A refit is due whenever their number is divisible by `refit_every`.
    Trials,
}

/// The rows that θ is fitted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FitRows {
    /// Observed rows, and under `Censor` also censored rows.
    Policy,
    Observed,
    /// Observed rows and the whole tail; hallucinated rows are at their mean.
    All,
}

impl GP {
    /// Refuses invalid settings, for rows of this many columns.
    pub fn check(&self, width: usize) -> Result<()> {
        if let Some(lengthscale) = &self.lengthscale {
            let each = match lengthscale {
                Lengthscale::Shared(l) => std::slice::from_ref(l),
                Lengthscale::PerColumn(each) => each,
            };
            let fits = each.len() == 1 || each.len() == width;
            check(
                fits && each.iter().all(|l| is_positive(*l)),
                "surrogate.lengthscale",
                format!("{each:?}"),
                "give one finite number above 0, or one for every encoded column of point and context",
            )?;
        }
        if let Some(std) = self.signal_std {
            check(is_std(std), "surrogate.signal_std", std, POSITIVE)?;
        }
        if let Some(std) = self.noise_std {
            let holds = std == 0.0 || is_std(std);
            check(holds, "surrogate.noise_std", std, NOT_NEGATIVE)?;
        }
        if let Some(theta) = self.initial_theta {
            check(
                is_positive(theta[0]) && theta[1..].iter().all(|x| is_std(*x)),
                "surrogate.initial_theta",
                format!("{theta:?}"),
                "give (lengthscale, signal_std, noise_std), each finite and above 0",
            )?;
        }
        if let PriorMean::Number(mean) = self.mean {
            check(mean.is_finite(), "surrogate.mean", mean, VALUE_OF_F)?;
        }
        check_count("surrogate.n_restarts", self.n_restarts)?;
        check_count("surrogate.n_refit_restarts", self.n_refit_restarts)?;
        check_count("surrogate.refit_every", self.refit_every.min(MAX_COUNT))
    }

    /// The kernels to fit; the one with the largest evidence is used.
    ///
    /// Functions of choices and steps are rougher than functions of continuous numbers. For discrete parameters
    /// Matern 3/2 was better on tables of tuning experiments, and worse on smooth functions (docs/defaults.md).
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

    /// The settings of a fit, for rows of these columns.
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

    /// The columns that share a lengthscale. A given lengthscale is per column.
    fn groups(&self, columns: &Columns) -> Vec<usize> {
        match (&self.lengthscale, self.ard) {
            (Some(_), _) => (0..columns.width()).collect(),
            (None, true) => columns.dimension.clone(),
            (None, false) => vec![0; columns.width()],
        }
    }

    /// The spread of each of the [`Self::groups`]; the root mean square of all spreads if all columns share a
    /// lengthscale.
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

    /// Whether a fit chooses the units of the targets, which then stay until the next fit.
    pub fn keeps_units(&self) -> bool {
        self.fits() && self.refit_clock == RefitClock::Observations
    }

    /// The start of the first fit.
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

    /// Whether to refit now, at `rows` rows and `trials` trials, if the last fit used `fitted` rows.
    pub fn refit_due(&self, fitted: Option<usize>, rows: usize, trials: usize) -> bool {
        let Some(fitted) = fitted else { return true };
        match self.refit_clock {
            RefitClock::Trials => trials.is_multiple_of(self.refit_every),
            RefitClock::Observations => {
                // While there are few observations, each changes θ a lot; later θ changes slowly.
                let interval = (fitted / 10).clamp(1, self.refit_every).max(fitted / 20);
                rows >= fitted + interval
            }
        }
    }
}

/// The variance of the noise. A standard deviation of 0 is replaced by a variance that the factor can represent.
fn noise_variance(std: f64) -> f64 {
    if std == 0.0 { MIN_NOISE } else { square(std) }
}

fn square(std: f64) -> f64 {
    std * std
}

#[cfg(test)]
mod tests;
