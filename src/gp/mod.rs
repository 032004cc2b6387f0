//! Gaussian-process regression on observed rows and a tail of pending rows.
//!
//! * [`posterior`]: the posterior of rows and targets; [`hyperparameters`]: θ
//! * [`tail`]: the posterior conditioned on rows of pending trials; [`solved_tail`]: the solutions of these rows, which
//!   are kept between suggestions; [`fantasies`]: sampled values of pending trials
//! * `leave_one_out`: the prediction of each target from the other targets; [`calibration`]: a larger signal variance
//!   if predictions are overconfident, and the comparison of models by leave-one-out predictions
//! * [`spread`]: a subset of rows without crowded rows
//! * [`evidence`]: log p(y | X, θ) and its gradient; [`priors`]: priors on θ
//! * [`fit`]: the fit of θ by maximum a posteriori; [`fit_settings`]: the settings of a fit; [`starts`]: the starts of
//!   its searches; [`levels`]: the rows that the searches use; [`search`]: the local searches; [`refine`]: the search
//!   on increasing numbers of rows; [`input_warps`]: the choice of the columns that are warped;
//!   [`described`]: the choice between categories with descriptors and plain categories; [`group_units`]: the offsets
//!   and scales of groups of rows
//! * [`kernel`]: covariance functions; [`draw`]: draws at points, and draws as functions

pub mod calibration;
mod described;
pub mod draw;
pub mod evidence;
pub mod fantasies;
pub mod fit;
mod fit_settings;
pub mod group_units;
mod hyperparameters;
mod input_warps;
pub mod kernel;
mod leave_one_out;
pub(crate) mod levels;
mod posterior;
mod priors;
mod refine;
mod search;
mod solved_tail;
pub mod spread;
mod starts;
mod tail;
#[cfg(test)]
pub(crate) mod tests;

pub use hyperparameters::Hyperparameters;
pub(crate) use hyperparameters::NOISELESS;
pub(crate) use posterior::{BLOCK, as_row, contiguous, dot_row, variance_left};
pub use posterior::{GaussianProcess, RowNoise, Workspace};
pub use tail::{Conditioned, Target};
