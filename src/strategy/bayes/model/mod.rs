//! The model: the log folded into rows, their targets, the fit and the posterior.
//!
//! * [`warp`]: a map that brings a long tail of bad values nearer; [`targets`]: from observed values to targets
//! * [`note`]: fits, as the log keeps them; [`arriving`]: which trials still count as arriving
//! * [`training_set`]: the rows, and the posterior kept over them
//! * [`candidates`]: a finite domain, solved against the factor once and kept
//! * [`success`]: the chance that a trial succeeds, where some have failed
//! * [`refit`]: the fit of the hyperparameters

pub mod arriving;
pub mod candidates;
pub mod note;
pub mod refit;
pub mod success;
pub mod targets;
pub mod training_set;
pub mod warp;
