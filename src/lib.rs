//! Black-box optimisation when results come late, out of order, or never.
//!
//! The modules, from low level to high level:
//!
//! * [`error`]: the error type; [`random`]: the random generator of each suggestion; [`numerics`]: wrappers of
//!   numerical libraries
//! * [`domain`]: the set of encoded points that can be suggested; [`problem`]: its parameters in the user's units
//! * [`ledger`]: the append-only log of the events of trials
//! * [`gp`]: Gaussian processes (covariances, posteriors with pending trials, fits and draws)
//! * [`acquisition`]: acquisition functions; [`maximize`]: their maximisation over a domain
//! * [`strategy`]: algorithms that propose the next trial from the log
//! * [`optimizer`]: a log together with its strategy; [`snapshot`]: saved optimizers
//! * `python`: the Python bindings, compiled with the feature `python`
//!
//! Strategies maximise. The log is the whole state of an optimizer. An optimizer that is restored from its events
//! suggests the same points, bit for bit.

pub mod acquisition;
pub mod domain;
pub mod error;
pub mod gp;
pub mod ledger;
pub mod maximize;
pub mod numerics;
pub mod optimizer;
pub mod problem;
#[cfg(feature = "python")]
mod python;
pub mod random;
pub mod snapshot;
pub mod strategy;
