//! The model, which consists of the rows and targets computed from the log, the fit of the hyperparameters, and the
//! posterior.
//!
//! * [`outcome_model`]: the model of one outcome, with its rows, fits and bounds
//! * [`targets`]: the targets computed from observed values
//! * [`note`]: the text in which the log stores a fit
//! * [`window`]: the window that is chosen from delays
//! * [`pseudo_observations`]: pseudo-observations of the values of running and stopped trials, from their curves
//! * [`training_set`]: the rows and their cached posterior; [`kept_process`]: a process that is kept between suggestions
//! * [`candidates`]: solutions that are kept for the candidates of a finite domain
//! * [`expense`]: the durations or costs of evaluations
//! * [`inside`]: the probability that an outcome lies within its bounds
//! * [`success`]: the probability that a trial succeeds, if any trial has failed
//! * [`fit_purpose`]: when hyperparameters are fitted; [`fit_hyperparameters`]: the fit

pub mod candidates;
pub mod context_units;
pub mod expense;
pub mod fit_hyperparameters;
pub mod fit_purpose;
pub mod inside;
pub mod kept_process;
pub mod labels;
pub mod note;
pub mod outcome_model;
pub mod pseudo_observations;
pub mod success;
pub mod targets;
pub mod training_set;
pub mod window;
