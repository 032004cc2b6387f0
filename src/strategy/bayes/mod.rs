//! Bayesian optimisation with a Gaussian process.
//!
//! * [`columns`]: the dimension of each column of a row
//! * [`acquisitions`]: the functions that are maximised to choose a point; [`settings`]: all settings
//! * [`model`]: the rows and targets computed from the log, the fit of the hyperparameters and the posterior
//! * [`terms`]: the terms that are added to an acquisition; [`choose`]: the choice of a point from the posterior
//! * [`bayes_opt`]: the strategy; `initial`: its first points; `fits`: the fits of all its models; `prepare`: the
//!   posterior, the acquisition and the terms of a suggestion; `model_access`: access to its model; `guard`: the values
//!   that it expects

pub mod acquisitions;
pub mod bayes_opt;
pub mod choose;
pub mod columns;
mod fits;
mod guard;
mod initial;
pub mod model;
mod model_access;
mod prepare;
pub mod settings;
pub mod terms;

pub use bayes_opt::BayesOpt;
