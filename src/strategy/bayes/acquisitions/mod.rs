//! Acquisitions: their settings, defaults and formulas.
//!
//! To add an acquisition, write a file with its settings, its [`rule::Rule`] and its formula, and add a variant to
//! [`Acquisition`].
//!
//! * [`rule`]: the trait for acquisitions
//! * [`log_ei`], [`ucb`], [`ucb_pe`], [`thompson_sampling`], [`max_variance`], [`aegis`]: one module per acquisition
//! * [`bound`]: the multiplier of sigma before the term for delays is added; [`draws`]: settings of draws from the
//!   posterior
//! * [`formula`]: the trait for formulas, and objectives that let a search maximise a formula
//! * [`log_noisy_expected_improvement`]: the formula of [`log_ei`] averaged over fantasies
//! * [`log_constrained_improvement`]: this formula where other outcomes must lie inside bounds; [`bounded_baseline`]:
//!   its baseline points; [`log_inside`]: the probability that a value lies inside bounds, and the penalty where it is
//!   small
//! * [`log_hypervolume_improvement`]: the formula of the hypervolume improvement of two or three objectives
//! * [`log_sum`]: the logarithm of a sum of terms
//! * [`log_above`]: the logarithm of an acquisition above a level, which local penalties are added to
//! * [`log_success_probability`]: the terms that the model of success adds to an acquisition
//! * [`incumbents`]: the incumbents, relative to which improvement is measured

pub mod aegis;
pub mod bound;
pub mod bounded_baseline;
pub mod draws;
pub mod formula;
pub mod incumbents;
pub mod log_above;
pub mod log_constrained_improvement;
pub mod log_ei;
pub mod log_hypervolume_improvement;
pub mod log_inside;
pub mod log_noisy_expected_improvement;
pub mod log_success_probability;
pub mod log_sum;
pub mod max_variance;
pub mod rule;
pub mod thompson_sampling;
pub mod ucb;
pub mod ucb_pe;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::strategy::from_settings::as_json;
use aegis::AEGiS;
use log_ei::LogEI;
use max_variance::MaxVariance;
use rule::Rule;
use thompson_sampling::ThompsonSampling;
use ucb::UCB;
use ucb_pe::UCBPE;

/// The function that is maximised to choose a point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", deny_unknown_fields)]
pub enum Acquisition {
    LogEI(LogEI),
    UCB(UCB),
    ThompsonSampling(ThompsonSampling),
    /// Pure exploration.
    MaxVariance(MaxVariance),
    /// GP-UCB-PE. If all trials have ended, this acquisition is an upper confidence bound. While trials are in flight,
    /// the acquisition explores the region that may contain the maximum.
    UCBPE(UCBPE),
    /// The maximum of the mean, a draw, or a random compromise between mean and standard deviation.
    AEGiS(AEGiS),
}

impl Default for Acquisition {
    fn default() -> Self {
        Acquisition::LogEI(LogEI::default())
    }
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
            Acquisition::AEGiS(AEGiS::default()),
        ]
    }

    /// The acquisition as a [`Rule`].
    pub fn rule(&self) -> &dyn Rule {
        match self {
            Acquisition::LogEI(rule) => rule,
            Acquisition::UCB(rule) => rule,
            Acquisition::ThompsonSampling(rule) => rule,
            Acquisition::MaxVariance(rule) => rule,
            Acquisition::UCBPE(rule) => rule,
            Acquisition::AEGiS(rule) => rule,
        }
    }

    /// The name of the acquisition's class.
    pub fn kind(&self) -> String {
        let kind = &as_json(self)["kind"];
        kind.as_str().unwrap_or_default().to_string()
    }

    /// Returns an error if a setting is invalid.
    pub fn check(&self, candidates: bool) -> Result<()> {
        let rule = self.rule();
        if let Some(bound) = rule.bound() {
            bound.check()?;
        }
        rule.check(candidates)
    }
}
