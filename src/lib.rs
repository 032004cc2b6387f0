//! Black-box optimisation when results come late, out of order, or never.
//!
//! A tour, from the ground up:
//!
//! * [`error`]: every way to be wrong; [`random`]: one stream a suggestion; [`numerics`]: the doors to other libraries
//! * [`domain`]: where a trial may be
//! * [`ledger`]: the append-only log of what happened to trials
//! * [`gp`]: Gaussian processes: covariance, posterior with its tail of pending trials, fits, draws
//! * [`acquisition`] → [`maximize`]: the value of a point, the best point
//! * [`strategy`]: what proposes the next trial from the log
//! * [`optimizer`]: a log and its strategy together; [`snapshot`]: their bytes
//! * `python`: the bindings, behind the feature of that name
//!
//! Everything maximises. State is the log: an optimizer restored from its events suggests the same points, bit for
//! bit.

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
pub mod snapshot;
pub mod strategy;
