//! The settings of the surrogate.
//!
//! Standard deviations are in units of the targets. By default, the targets are standardized values of f. A given prior
//! mean is a value of f. Lengthscales are in units of the encoded columns.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::gp::Hyperparameters;
use crate::gp::fit::FitSettings;
use crate::gp::kernel::KernelFamily;
use crate::strategy::bayes::columns::Columns;
use crate::strategy::checks::{
    MAX_COUNT, NOT_NEGATIVE, POSITIVE, VALUE_OF_F, check, check_count, check_given, is_positive,
    is_std,
};

/// The smallest noise variance, in units of the targets. A smaller noise variance would make the factor inaccurate.
pub const MIN_NOISE: f64 = 1e-10;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", deny_unknown_fields, default)]
pub struct GP {
    pub kernel: KernelChoice,
    /// Whether each dimension has a separate lengthscale. If false, all dimensions share one lengthscale. A dimension
    /// may have several columns.
    pub ard: bool,
    /// One lengthscale per column, or one lengthscale for all columns. `lengthscale`, `signal_std` and `noise_std` are
    /// fitted if they are `None`.
    pub lengthscale: Option<Lengthscale>,
    pub signal_std: Option<f64>,
    pub noise_std: Option<f64>,
    pub mean: PriorMean,
    pub priors: bool,
    pub targets: TargetScale,
    pub inputs: Inputs,
    /// The number of starting points of the first fit. Later fits use `n_refit_restarts` starting points, including the
    /// last θ, unless they start again as a first fit does.
    pub n_restarts: usize,
    pub n_refit_restarts: usize,
    pub refit_every: usize,
    pub refit_clock: RefitClock,
    pub fit_rows: FitRows,
    /// The first starting point (lengthscale, signal_std, noise_std) of the first fit.
    pub initial_theta: Option<[f64; 3]>,
}

impl Default for GP {
    fn default() -> Self {
        Self {
            kernel: KernelChoice::Auto,
            ard: true,
            lengthscale: None,
            signal_std: None,
            noise_std: None,
            mean: PriorMean::Auto,
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
#[serde(rename_all = "snake_case", expecting = "unknown kernel")]
pub enum KernelChoice {
    /// Two kernels are fitted, and the kernel with the larger evidence is used.
    Auto,
    #[serde(untagged)]
    Family(KernelFamily),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number or a list of numbers")]
pub enum Lengthscale {
    Shared(f64),
    PerColumn(Vec<f64>),
}

impl Lengthscale {
    fn given(&self) -> &[f64] {
        match self {
            Lengthscale::Shared(l) => std::slice::from_ref(l),
            Lengthscale::PerColumn(each) => each,
        }
    }

    /// Returns one lengthscale for each of `width` columns. If a single lengthscale is given, it is used for all
    /// columns.
    pub fn per_column(&self, width: usize) -> Vec<f64> {
        match self.given() {
            [l] => vec![*l; width],
            each => each.to_vec(),
        }
    }
}

/// The prior mean of f.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(
    rename_all = "snake_case",
    expecting = "expected a value of f, \"auto\", \"estimated\", \"zero\" or \"median\" for mean"
)]
pub enum PriorMean {
    /// The prior mean of the targets is 0. In units of f, the prior mean is the mean of the observed values. Under
    /// `Censor`, the prior mean is the floor. For raw targets, the prior mean is 0.
    Zero,
    /// The median of the observed values.
    Median,
    /// The prior mean of the targets is a constant with prior N(0, 1), and is estimated together with θ. The mean of
    /// the observed values would be biased, because many points lie where f is large. Under `Censor` and for raw
    /// targets, `Estimated` equals `Zero`.
    Estimated,
    /// `Estimated` in many dimensions, and `Zero` in few dimensions, where `Estimated` and `Zero` perform equally well.
    Auto,
    #[serde(untagged)]
    Number(f64),
}

/// The units of the targets in the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetScale {
    /// Values are first transformed by a [`crate::numerics::warp::Warp`] and then standardized. The warp is used only
    /// if a model of the warped values explains the data better.
    Robust,
    /// Values are shifted and scaled, so that targets are of order one.
    Standardized,
    /// Values are used as observed.
    Raw,
}

/// The transformation of the numeric columns of a point in the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Inputs {
    /// A [`crate::gp::kernel::Kumaraswamy`] map stretches a column if a model with the map explains the data better.
    Warped,
    /// Columns are used as encoded.
    Plain,
}

/// If there are more numeric columns than this number, columns are not warped, because a fit would have to try a warp
/// for every numeric column.
const MAX_WARPABLE: usize = 20;

/// The rule that determines when a refit is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefitClock {
    /// A refit is due after `refit_every` new observations. If the last fit used few observations, a refit is due
    /// earlier. If the last fit used many observations, a refit is due when the number of observations has grown by 5
    /// %.
    Observations,
    /// A refit is due if the number of trials is divisible by `refit_every`.
    Trials,
}

/// The rows to which θ is fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FitRows {
    /// θ is fitted to the observed rows. Under `Censor`, θ is also fitted to the censored rows.
    Policy,
    Observed,
    /// θ is fitted to the observed rows and all rows of the tail. The target of a hallucinated row is the posterior
    /// mean at the row.
    All,
}

impl GP {
    /// Returns an error if a setting is invalid. `width` is the number of columns of a row.
    pub fn check(&self, width: usize) -> Result<()> {
        if let Some(lengthscale) = &self.lengthscale {
            let each = lengthscale.given();
            let fits = each.len() == 1 || each.len() == width;
            check(
                fits && each.iter().all(|l| is_positive(*l)),
                "surrogate.lengthscale",
                format!("{each:?}"),
                "give one finite number above 0, or one for every encoded column of point and context",
            )?;
        }
        check_given(self.signal_std, "surrogate.signal_std", is_std, POSITIVE)?;
        let zero_or_std = |std: f64| std == 0.0 || is_std(std);
        let name = "surrogate.noise_std";
        check_given(self.noise_std, name, zero_or_std, NOT_NEGATIVE)?;
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

    /// Returns the kernels to fit. After the fit, the kernel with the largest evidence is used.
    ///
    /// Functions of discrete parameters are rougher than functions of continuous numbers. For discrete parameters,
    /// Matern 3/2 was better on tables of tuning experiments, and worse on smooth functions (docs/defaults.md).
    pub fn families(&self, columns: &Columns) -> Vec<KernelFamily> {
        match self.kernel {
            KernelChoice::Auto => {
                let first = match columns.discrete {
                    true => KernelFamily::Matern32,
                    false => KernelFamily::Matern52,
                };
                vec![first, KernelFamily::SquaredExponential]
            }
            KernelChoice::Family(family) => vec![family],
        }
    }

    /// Returns the settings of a fit, for rows with these columns.
    pub fn fit_settings(&self, columns: &Columns) -> FitSettings {
        let per_column = |lengthscale: &Lengthscale| lengthscale.per_column(columns.width());
        FitSettings {
            groups: self.groups(columns),
            lengthscale: self.lengthscale.as_ref().map(per_column),
            signal_variance: self.signal_std.map(square),
            noise_variance: self.noise_std.map(noise_variance),
            priors: self.priors,
            spreads: self.spreads(columns),
            warpable: self.warpable(columns),
            ..columns.fit_settings(self.families(columns)[0], self.n_restarts)
        }
    }

    /// Returns the columns that a fit may warp.
    fn warpable(&self, columns: &Columns) -> Vec<usize> {
        let stationary = self.families(columns).iter().all(|f| f.is_stationary());
        let warps = self.inputs == Inputs::Warped && stationary && self.lengthscale.is_none();
        match warps && columns.numbers.len() <= MAX_WARPABLE {
            true => columns.numbers.clone(),
            false => Vec::new(),
        }
    }

    /// Returns the group of each column. Columns in the same group share a lengthscale. If the lengthscale is given,
    /// every column is a separate group.
    fn groups(&self, columns: &Columns) -> Vec<usize> {
        match (&self.lengthscale, self.ard) {
            (Some(_), _) => (0..columns.width()).collect(),
            (None, true) => columns.dimension.clone(),
            (None, false) => vec![0; columns.width()],
        }
    }

    /// Returns the spread of each group in [`Self::groups`]. If all columns share a lengthscale, the result is a single
    /// number, the root mean square of all spreads.
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

    /// Whether the kernel or any hyperparameter is fitted.
    pub fn fits(&self) -> bool {
        let given = self.lengthscale.is_some() && self.signal_std.is_some();
        self.kernel == KernelChoice::Auto || !given || self.noise_std.is_none()
    }

    /// Whether all hyperparameters are fitted, with priors, and no prior mean is given.
    pub fn fits_all(&self) -> bool {
        let given =
            self.lengthscale.is_some() || self.signal_std.is_some() || self.noise_std.is_some();
        self.priors && self.ard && !given && !matches!(self.mean, PriorMean::Number(_))
    }

    /// Whether a fit chooses the units of the targets, which then do not change until the next fit.
    pub fn keeps_units(&self) -> bool {
        self.fits() && self.refit_clock == RefitClock::Observations
    }

    /// The first starting point of the first fit.
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

    /// Whether a refit is due when there are `rows` rows and `trials` trials. The last fit used `fitted` rows.
    pub fn refit_due(&self, fitted: Option<usize>, rows: usize, trials: usize) -> bool {
        let Some(fitted) = fitted else { return true };
        match self.refit_clock {
            RefitClock::Trials => trials.is_multiple_of(self.refit_every),
            RefitClock::Observations => {
                // While there are few observations, every new observation changes θ considerably. Later, θ changes
                // slowly.
                let interval = (fitted / 10).clamp(1, self.refit_every).max(fitted / 20);
                rows >= fitted + interval
            }
        }
    }
}

/// Returns the noise variance for a standard deviation. If the standard deviation is 0, return the smallest noise
/// variance for which the factor is accurate.
fn noise_variance(std: f64) -> f64 {
    if std == 0.0 { MIN_NOISE } else { square(std) }
}

fn square(std: f64) -> f64 {
    std * std
}

#[cfg(test)]
mod tests;
