//! The settings of BPE-Delay, their defaults and their checks. The fields have the names that are used in JSON.
//!
//! Values of f and standard deviations are in units of f. Lengthscales are in units of the encoded columns.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::gp::Hyperparameters;
use crate::gp::kernel::KernelFamily;
use crate::problem::Clock;
use crate::strategy::bayes::settings::surrogate::Lengthscale;
use crate::strategy::checks::{
    NOT_NEGATIVE, POSITIVE, check, check_count, is_not_negative, is_positive, is_std, refuse,
};
use crate::strategy::elimination::schedule::Schedule;
use crate::strategy::from_settings::tagged;
use crate::strategy::theory::Theory;

pub use crate::strategy::elimination::schedule::{Lengths, SubExponential, Tail};

/// The smallest noise variance, divided by the signal variance. The model uses this noise variance if the given noise
/// variance is smaller.
const MIN_NOISE: f64 = 1e-10;

/// The settings of BPE-Delay. A setting is required if its default is `None`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The horizon T: the total number of suggestions.
    pub horizon: Option<usize>,
    /// ℓ: one lengthscale per column, or one lengthscale for all columns.
    pub lengthscale: Option<Lengthscale>,
    /// σ, the standard deviation of the noise.
    pub noise_std: Option<f64>,
    pub signal_std: f64,
    pub kernel: KernelFamily,
    /// The prior mean of f. In the theorems, the constant `rkhs_bound` bounds the norm of f − mean.
    pub mean: f64,
    pub delay: Delay,
    pub beta: Beta,
    #[serde(deserialize_with = "tagged")]
    pub theory: Theory,
    /// The number of points that represent a box.
    pub n_points: usize,
    /// Whether the data of earlier rounds are used. The theorems assume that only the data of the current round are
    /// used.
    pub keep_rounds: bool,
    pub tail: Tail,
    pub lengths: Lengths,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            horizon: None,
            lengthscale: None,
            noise_std: None,
            signal_std: 1.0,
            kernel: KernelFamily::Matern52,
            mean: 0.0,
            delay: Delay::EstimatedDelay(EstimatedDelay {}),
            beta: Beta::Fixed(2.5),
            theory: Theory::default(),
            n_points: 2500,
            keep_rounds: false,
            tail: Tail::Max,
            lengths: Lengths::Paper,
        }
    }
}

/// The delay model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", deny_unknown_fields)]
pub enum Delay {
    EstimatedDelay(EstimatedDelay),
    NoDelay(NoDelay),
    SubExponential(SubExponential),
}

/// The delay model is estimated from the results that have arrived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EstimatedDelay {}

/// Every result arrives before the next suggestion. With this delay model, the strategy is BPE.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NoDelay {}

/// The multiplier of the standard deviation in the bounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(
    rename_all = "snake_case",
    expecting = "expected a number or \"theory\" for beta"
)]
pub enum Beta {
    /// The multiplier of Theorem 6.1 for finite sets, and of Theorem 6.2 for boxes.
    Theory,
    #[serde(untagged)]
    Fixed(f64),
}

impl Settings {
    /// The schedule of rounds. Returns an error if T is missing or out of range.
    pub fn schedule(&self) -> Result<Schedule> {
        const EXPECTED: &str =
            "give the total number of suggestions of the search, from 1 to 1,000,000,000";
        let horizon = self
            .horizon
            .ok_or_else(|| refuse("horizon", "None", EXPECTED))?;
        let holds = (1..=1_000_000_000).contains(&horizon);
        check(holds, "horizon", horizon, EXPECTED)?;
        Ok(Schedule {
            horizon,
            delta: self.theory.delta,
            tail: self.tail,
            lengths: self.lengths,
        })
    }

    /// The hyperparameters θ from the settings, for rows with `width` columns.
    pub fn theta(&self, width: usize) -> Result<Hyperparameters> {
        const EXPECTED: &str = "the theory assumes a known kernel: give one finite number above 0, or one for every \
             encoded column";
        let lengthscale = self.lengthscale.as_ref();
        let lengthscale = lengthscale.ok_or_else(|| refuse("lengthscale", "None", EXPECTED))?;
        let lengthscale = lengthscale.per_column(width);
        let fits = lengthscale.len() == width && lengthscale.iter().all(|l| is_positive(*l));
        check(fits, "lengthscale", format!("{lengthscale:?}"), EXPECTED)?;
        let signal_std = self.signal_std;
        check(is_std(signal_std), "signal_std", signal_std, POSITIVE)?;
        let noise_std = self.noise_std.ok_or_else(|| {
            refuse(
                "noise_std",
                "None",
                "give the standard deviation of the noise, 0 or above",
            )
        })?;
        let holds = noise_std == 0.0 || is_std(noise_std);
        check(holds, "noise_std", noise_std, NOT_NEGATIVE)?;
        let noise = self.row_noise(self.theory.regularization.unwrap_or(noise_std));
        Ok(Hyperparameters::new(
            lengthscale,
            signal_std * signal_std,
            noise,
        ))
    }

    /// The σ that the theorems use, which is at least the smallest standard deviation of the noise in the model.
    pub fn theory_noise(&self) -> f64 {
        self.row_noise(self.noise_std.unwrap_or(f64::NAN)).sqrt()
    }

    /// The noise variance of a value whose noise has standard deviation `std`.
    pub fn row_noise(&self, std: f64) -> f64 {
        (std * std).max(MIN_NOISE * self.signal_std * self.signal_std)
    }

    /// Checks the settings, and returns the schedule and θ.
    pub fn check(&self, width: usize, clock: Clock) -> Result<(Schedule, Hyperparameters)> {
        let schedule = self.schedule()?;
        let theta = self.theta(width)?;
        let mean = self.mean;
        check(mean.is_finite(), "mean", mean, "give a finite value of f")?;
        let b_y = self.theory.value_bound;
        let got = b_y.unwrap_or(f64::NAN);
        let expected = "it is for pending=\"censor\"; leave it out";
        check(b_y.is_none(), "theory.value_bound", got, expected)?;
        let r = self.theory.noise_bound;
        let (got, expected) = (
            r.unwrap_or(f64::NAN),
            "it is for BayesOpt; leave it out and give noise_std",
        );
        check(r.is_none(), "theory.noise_bound", got, expected)?;
        self.theory.check()?;
        check_count("n_points", self.n_points)?;
        match (self.beta, self.theory.rkhs_bound) {
            (Beta::Fixed(beta), _) => {
                check(is_not_negative(beta), "beta", beta, NOT_NEGATIVE)?;
            }
            (Beta::Theory, None) => {
                let expected =
                    "beta=\"theory\" needs a bound on the norm of f: give one, or a fixed beta";
                return Err(refuse("theory.rkhs_bound", "None", expected));
            }
            (Beta::Theory, Some(_)) => {}
        }
        if let Delay::SubExponential(delay) = self.delay {
            for (name, value) in [
                ("delay.mean", delay.mean),
                ("delay.xi", delay.xi),
                ("delay.b", delay.b),
            ] {
                check(is_not_negative(value), name, value, NOT_NEGATIVE)?;
            }
        }
        if let (Some(delay), Clock::Iterations) = (self.known_delay(), clock) {
            let first = schedule.length(1, 0, delay);
            if first > schedule.horizon as f64 {
                let expected = "the first round alone is longer, because it waits for results: give a longer horizon, or \
                     smaller delays";
                return Err(refuse("horizon", schedule.horizon, expected));
            }
        }
        Ok((schedule, theta))
    }

    /// The delay model from the settings, or `None` if the delay model is estimated.
    pub fn known_delay(&self) -> Option<SubExponential> {
        match self.delay {
            Delay::EstimatedDelay(_) => None,
            Delay::NoDelay(_) => Some(SubExponential::default()),
            Delay::SubExponential(delay) => Some(delay),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use serde_json::Value;
    use serde_json::json;

    fn refused(change: Value) -> &'static str {
        let mut settings = json!({"horizon": 100, "lengthscale": 0.3, "noise_std": 0.1});
        let fields = change.as_object().unwrap().clone();
        settings.as_object_mut().unwrap().extend(fields);
        let settings: Settings = serde_json::from_value(settings).unwrap();
        match settings.check(2, Clock::Iterations) {
            Err(Error::InvalidSetting { name, .. }) => name,
            other => panic!("{change}: {other:?}"),
        }
    }

    #[test]
    fn each_bad_setting_is_refused_by_name() {
        let theory = |name: &str, x: f64| json!({"theory": {"kind": "Theory", name: x}});
        for (name, change) in [
            ("horizon", json!({"horizon": null})),
            ("horizon", json!({"horizon": 0})),
            ("horizon", json!({"horizon": 1_000_000_001})),
            (
                "horizon",
                json!({"delay": {"kind": "SubExponential", "mean": 90.5}}),
            ),
            ("lengthscale", json!({"lengthscale": null})),
            ("lengthscale", json!({"lengthscale": 0.0})),
            ("lengthscale", json!({"lengthscale": [1.0, 2.0, 3.0]})),
            ("noise_std", json!({"noise_std": null})),
            ("noise_std", json!({"noise_std": -1.0})),
            ("theory.regularization", theory("regularization", 0.0)),
            ("theory.value_bound", theory("value_bound", 1.0)),
            ("theory.noise_bound", theory("noise_bound", 1.0)),
            ("signal_std", json!({"signal_std": 0.0})),
            ("theory.delta", theory("delta", 1.0)),
            ("n_points", json!({"n_points": 0})),
            ("beta", json!({"beta": -1.0})),
            ("theory.rkhs_bound", json!({"beta": "theory"})),
            ("theory.rkhs_bound", theory("rkhs_bound", -1.0)),
            (
                "delay.xi",
                json!({"delay": {"kind": "SubExponential", "xi": -1.0}}),
            ),
            (
                "delay.b",
                json!({"delay": {"kind": "SubExponential", "b": -1.0}}),
            ),
        ] {
            assert_eq!(refused(change), name);
        }
    }
}
