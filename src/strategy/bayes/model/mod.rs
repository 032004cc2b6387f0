//! The model, which consists of the rows computed from the log, their targets, the fit and the posterior.
//!
//! * [`targets`]: the targets computed from observed values
//! * [`note`]: fits in the form in which the log stores them; [`expiry`]: whether the lease or window of a trial has
//!   passed
//! * [`training_set`]: the rows and their cached posterior
//! * [`candidates`]: the candidates of a finite domain, with kept solutions against the factor
//! * [`success`]: the probability that a trial succeeds, if any trial has failed
//! * [`refit`]: the fit of the hyperparameters

pub mod candidates;
pub mod expiry;
pub mod note;
pub mod refit;
pub mod success;
pub mod targets;
pub mod training_set;
