//! The model: the rows that follow from the log, their targets, the fit and the posterior.
//!
//! * [`warp`]: a map that shortens a long tail of bad values; [`targets`]: from observed values to targets
//! * [`note`]: fits, as the log keeps them; [`expiry`]: whether the lease or window of a trial has passed
//! * [`training_set`]: the rows and their cached posterior
//! * [`candidates`]: the candidates of a finite domain, solved against the factor once and kept
//! * [`success`]: the probability that a trial succeeds, if any has failed
//! * [`refit`]: the fit of the hyperparameters

pub mod candidates;
pub mod expiry;
pub mod note;
pub mod refit;
pub mod success;
pub mod targets;
pub mod training_set;
pub mod warp;
