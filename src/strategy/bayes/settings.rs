//! The settings of Bayesian optimisation and their defaults. The fields have the names that are used in JSON.
//!
//! Values of f and standard deviations are in units of f, except that the standard deviations of the surrogate are in
//! units of the targets. By default, the targets are standardized values of f. Lengthscales are in units of the encoded
//! columns.

use serde::{Deserialize, Serialize};

use crate::error::{Result, refuse};
use crate::problem::{Coordinate, Direction, Goal, Product};
use crate::strategy::Setup;
use crate::strategy::bayes::acquisitions::Acquisition;
use crate::strategy::bayes::settings::pending::{Hallucinate, Integrate, Pending};
use crate::strategy::bayes::settings::search::Search;
use crate::strategy::bayes::settings::surrogate::{GP, PriorMean, TargetScale};
use crate::strategy::checks::{COUNT_OR_NONE, MAX_COUNT, check};
use crate::strategy::from_settings::tagged;

pub mod pending;
pub mod search;
pub mod surrogate;
mod theory;

/// If there are at least this many dimensions, `PriorMean::Auto` means `Estimated`.
const MANY_DIMENSIONS: usize = 5;

/// The default number of initial points is at most this number. When the limit was 20, a run with a hundred trials and
/// nine parameters spent a fifth of the trials on initial points (docs/defaults.md).
pub const MAX_INITIAL: usize = 10;

/// The settings of Bayesian optimisation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    pub acquisition: Acquisition,
    #[serde(deserialize_with = "tagged")]
    pub search: Search,
    /// The policy for pending trials. `None` means `Integrate` if the acquisition can be averaged over fantasies, and
    /// `Hallucinate` otherwise.
    pub pending: Option<Pending>,
    #[serde(deserialize_with = "tagged")]
    pub surrogate: GP,
    #[serde(deserialize_with = "tagged")]
    pub initial: Initial,
    /// The window m: a pending trial counts as arriving for this time. `None` means that there is no limit.
    pub window: Option<Window>,
    /// Whether a point of a finite domain may be suggested again while other points have not been observed.
    pub repeats: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            acquisition: Acquisition::default(),
            search: Search::default(),
            pending: None,
            surrogate: GP::default(),
            initial: Initial::default(),
            window: None,
            repeats: true,
        }
    }
}

/// The window m.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", expecting = "expected a number or \"auto\"")]
pub enum Window {
    /// A quantile of the delays so far (`model/window.rs`).
    Auto,
    /// A time in units of the clock.
    #[serde(untagged)]
    Length(f64),
}

/// The design of the trials that start before the model has data.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", deny_unknown_fields, default)]
pub struct Initial {
    /// The number of initial points. If `n` is `None`, the number depends on the dimension.
    pub n: Option<usize>,
    pub how: DesignMethod,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DesignMethod {
    #[default]
    QuasiRandom,
    Uniform,
    /// Uncertainty sampling (Kandasamy et al. 2017, proposition 2). Each point has the largest variance given the
    /// earlier points.
    Uncertainty,
}

impl Initial {
    /// The number of initial points in d dimensions.
    pub fn n_points(&self, d: usize) -> usize {
        self.n.unwrap_or((2 * d).clamp(4, MAX_INITIAL))
    }
}

impl Settings {
    /// Returns an error if a setting is invalid. `width` is the number of columns of a row.
    pub fn check(&self, width: usize, candidates: bool) -> Result<()> {
        self.surrogate.check(width)?;
        self.acquisition.check(candidates)?;
        self.search.check(candidates)?;
        let has_window = self.window.is_some();
        self.pending().check(&self.acquisition, has_window)?;
        match self.window {
            Some(Window::Length(m)) => check(m > 0.0, "window", m, "give a number above 0")?,
            Some(Window::Auto) => check(
                self.pending().is_censor(),
                "window",
                "auto",
                "it needs pending=\"censor\"; give a number, or leave it out",
            )?,
            None => {}
        }
        self.check_theory()?;
        let n = self.initial.n.unwrap_or(0);
        check(n <= MAX_COUNT, "initial.n", n, COUNT_OR_NONE)
    }

    /// Returns an error if the settings do not support the problem. Local penalties and AEGiS are defined in boxes of
    /// continuous parameters.
    pub fn check_setup(&self, setup: &Setup) -> Result<()> {
        let linear = setup.domain.product().and_then(Product::linear);
        if linear.is_some() && self.search.is_literature() {
            return Err(refuse(
                "search",
                "multistart or direct",
                "they do not support linear constraints: leave one out",
            ));
        }
        let continuous = |product: &Product| {
            let mut coordinates = product.iter();
            !product.is_conditional() && coordinates.all(|c| *c == Coordinate::Continuous)
        };
        if setup.context.is_empty() && setup.domain.product().is_some_and(continuous) {
            return Ok(());
        }
        const CONTINUOUS: &str = "it needs a space in which every parameter is a Real without step and without when, \
                                  and no context: use another setting";
        if let Acquisition::AEGiS(_) = self.acquisition {
            return Err(refuse("acquisition", "aegis", CONTINUOUS));
        }
        let pending = self.pending();
        let penalizes = pending.penalizer().is_some();
        check(!penalizes, "pending", pending.kind(), CONTINUOUS)
    }

    /// Returns an error if the settings do not support several outcomes.
    pub fn check_outcomes(&self, setup: &Setup) -> Result<()> {
        if setup.outcomes.is_empty() {
            return Ok(());
        }
        const ALONE: &str =
            "it does not support outcomes: use another setting, or report one value";
        let pending = self.pending();
        let is_bounded = setup.outcomes.iter().any(|it| it.bounds().is_some());
        check(!pending.is_censor(), "pending", pending.kind(), ALONE)?;
        check(self.window.is_none(), "window", "a number", ALONE)?;
        check(
            !self.search.is_literature(),
            "search",
            "multistart or direct",
            ALONE,
        )?;
        check(
            !is_bounded || pending.penalizer().is_none(),
            "pending",
            pending.kind(),
            ALONE,
        )?;
        if setup
            .outcomes
            .iter()
            .any(|it| matches!(it.goal, Goal::Front(..)))
        {
            const OF_FRONT: &str =
                "several objectives need the acquisition LogEI and the pending policy Integrate";
            let is_log_ei = matches!(self.acquisition, Acquisition::LogEI(_));
            check(is_log_ei, "acquisition", self.acquisition.kind(), OF_FRONT)?;
            let averages = pending.n_fantasies().is_some();
            check(averages, "pending", pending.kind(), OF_FRONT)?;
        }
        let is_aegis = matches!(self.acquisition, Acquisition::AEGiS(_));
        check(!is_bounded || !is_aegis, "acquisition", "aegis", ALONE)
    }

    /// Converts the settings that are values of f, so that larger values are better.
    pub fn oriented(mut self, direction: Direction) -> Self {
        self.pending = self.pending.map(|pending| pending.oriented(direction));
        if let PriorMean::Number(mean) = &mut self.surrogate.mean {
            *mean = direction.oriented(*mean);
        }
        self
    }

    /// The policy for pending trials.
    pub fn pending(&self) -> Pending {
        // For an upper confidence bound, averaging over fantasies has the same result as `Hallucinate`. `Ignore` is not
        // the default for draws, because draws would often be largest at points in flight.
        let averages = self.acquisition.rule().traits().averages_fantasies;
        self.pending.unwrap_or(match averages {
            true => Pending::Integrate(Integrate::default()),
            false => Pending::Hallucinate(Hallucinate::default()),
        })
    }

    /// Whether the search maximises the logarithm of a positive function.
    pub fn maximizes_logarithm(&self) -> bool {
        let traits = self.acquisition.rule().traits();
        traits.is_logarithm || self.pending().penalizer().is_some()
    }

    /// The window, or `None` if no window is set. `chosen` is the last window that was chosen from delays. Before the
    /// first choice, the window has no end: all trials are within the window.
    pub fn window(&self, chosen: Option<f64>) -> Option<f64> {
        Some(match self.window? {
            Window::Length(m) => m,
            Window::Auto => chosen.unwrap_or(f64::INFINITY),
        })
    }

    /// Whether a warp may be applied to shorten a long tail of bad values.
    pub fn warps(&self) -> bool {
        // Under `Censor`, values are not warped, because targets are distances from the floor.
        self.surrogate.targets == TargetScale::Robust && !self.pending().is_censor()
    }

    /// Whether the prior mean is estimated. d is the number of dimensions of the point and the context together.
    pub fn estimates_mean(&self, d: usize) -> bool {
        let wanted = match self.surrogate.mean {
            PriorMean::Estimated => true,
            PriorMean::Auto => d >= MANY_DIMENSIONS,
            _ => false,
        };
        wanted && self.surrogate.targets != TargetScale::Raw && !self.pending().is_censor()
    }
}

#[cfg(test)]
mod tests;
