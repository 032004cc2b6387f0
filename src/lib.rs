//! Black-box optimisation when results come late, out of order, or never.
//!
//! A tour, from the ground up. Two towers stand on it: Gaussian processes, and the log of trials.
//!
//! * [`error`]: every way to be wrong; [`linalg`], [`lbfgsb`]: the doors to faer and basin
//! * [`kernel`], [`pending`] → [`gp`]: covariance, what pending trials mean, the posterior with its pending tail
//! * [`domain`], [`acquisition`] → [`maximize`]: where a trial may be, what a place is worth, the best place
//! * [`ledger`] → [`strategy`]: the append-only log, and what proposes from it; [`random_search`], [`bayes`]
//! * [`optimizer`]: a log and a strategy together, with what is checked at the door
//! * `python`: the bindings, behind the feature of that name
//!
//! Everything maximises. State is the log and the hyperparameters in it: an optimizer restored from its events
//! suggests the same points, bit for bit.

pub mod acquisition;
pub mod domain;
pub mod error;
pub mod gp;
pub mod ledger;
pub mod maximize;
pub mod numerics;
pub mod optimizer;
#[cfg(feature = "python")]
mod python;
pub mod random;
pub mod strategy;
