//! Bayesian optimisation with a Gaussian process.
//!
//! * [`checks`]: refusals of invalid settings; [`columns`]: the dimension of each column of a row
//! * [`acquisitions`]: what is maximised; [`settings`]: everything that can be chosen
//! * [`model`]: the log folded into rows, their targets, the fit and the posterior
//! * [`choose`]: from a posterior to a point
//! * [`bayes_opt`]: the strategy; [`model_based`] and `model_access`: what can be read of its model

pub mod acquisitions;
pub mod bayes_opt;
pub mod checks;
pub mod choose;
pub mod columns;
pub mod model;
mod model_access;
pub mod model_based;
pub mod settings;

pub use bayes_opt::BayesOpt;
pub use model_based::{ModelBased, Surrogate};
