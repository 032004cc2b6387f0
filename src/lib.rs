//! Black-box optimisation when results come late, out of order, or never.
//!
//! A tour, from the ground up:
//!
//! * [`error`]: the error type, one variant per kind; [`random`]: one random stream per suggestion; [`numerics`]:
//!   wrappers of numerical libraries
//! * [`domain`]: the set of points that can be suggested, encoded; [`problem`]: its parameters in the user's units
//! * [`ledger`]: the append-only log of the events of trials
//! * [`gp`]: Gaussian processes: covariance, posterior with its tail of pending trials, fits, draws
//! * [`acquisition`]: the value of a point; [`maximize`]: the best point
//! * [`strategy`]: algorithms that propose the next trial from the log
//! * [`optimizer`]: a log together with its strategy; [`snapshot`]: saved optimizers
//! * `python`: the Python bindings, compiled with the feature `python`
//!
//! Strategies maximise. The log is the whole state: an optimizer restored from its events suggests the same points, bit
//! for bit.

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
