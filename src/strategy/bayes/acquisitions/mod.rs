//! Acquisitions, with their settings, defaults and formulas.
//!
//! To add an acquisition, write a file with its settings, its [`rule::Rule`] and its formula, and add a variant to
//! [`any::Acquisition`].
//!
//! * [`rule`]: the interface of an acquisition
//! * [`any`]: one type that contains all acquisitions
//! * [`log_ei`], [`ucb`], [`ucb_pe`], [`thompson_sampling`], [`max_variance`]: one acquisition each
//! * [`bound`]: the multiplier of sigma without delays; [`draws`]: settings of draws from the posterior
//! * [`formula`]: the interface of a formula, and its use in a search
//! * [`log_noisy_expected_improvement`]: the formula of [`log_ei`] averaged over fantasies
//! * [`log_success_probability`]: the terms that the model of success adds
//! * [`incumbents`]: the values from which improvement is measured

pub mod any;
pub mod bound;
pub mod draws;
pub mod formula;
pub mod incumbents;
pub mod log_ei;
pub mod log_noisy_expected_improvement;
pub mod log_success_probability;
pub mod max_variance;
pub mod rule;
pub mod thompson_sampling;
pub mod ucb;
pub mod ucb_pe;

#[cfg(test)]
mod tests;
