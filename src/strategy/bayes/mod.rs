//! Bayesian optimisation with a Gaussian process.
//!
//! * [`settings`]: what can be chosen; [`checks`]: what is refused; [`acquisitions`]: what is maximised; [`pending`]: what
//!   pending trials mean to the model
//! * [`columns`]: which dimension each column of a row belongs to; [`targets`]: from observed values to the model's targets,
//!   with [`warp`], which brings a long tail of bad ones near
//! * [`training_set`]: the log folded into rows, and the posterior kept over them; [`note`]: fits, as the log keeps them
//! * [`design`]: points before there is a model; `refit`: the fit of the hyperparameters
//! * [`incumbents`]: the best observed points, and improvement on them
//! * [`candidates`]: a finite domain, solved against the factor once and kept
//! * [`information`]: the information gain that the theory's multipliers are made of
//! * [`bound`]: the multiplier of sigma; `search`: the best point of the domain
//! * `success`: the chance that a trial succeeds, where some have failed
//! * [`spacing`]: proposals near pending trials are moved; `repeats`: points that are not suggested twice
//! * [`bayes_opt`]: the strategy itself; `model_access`: what can be read of its model

pub mod acquisitions;
pub mod bayes_opt;
pub mod bound;
pub mod candidates;
pub mod checks;
pub mod choose;
pub mod columns;
pub mod design;
pub mod information;
mod model_access;
pub mod note;
mod refit;
mod repeats;
mod search;
pub mod settings;
pub mod spacing;
mod success;
pub mod targets;
pub mod training_set;
pub mod warp;

pub use bayes_opt::BayesOpt;

use ndarray::ArrayView2;

use crate::error::{Result, Stop};
use crate::gp::GaussianProcess;
use crate::ledger::{Ledger, TrialNumber};
use crate::random::Rng;
use crate::strategy::bayes::targets::Units;
use crate::strategy::{Query, Strategy};

/// The posterior of f that a strategy works with, in units of its own.
pub struct Surrogate<'a> {
    pub gp: &'a GaussianProcess,
    /// The trial of each observed row.
    pub rows: &'a [TrialNumber],
    pub units: Units,
    /// log of the density of the observed values over that of their targets: Σ log d target/dy.
    pub log_slope: f64,
}

/// A strategy that has a posterior.
pub trait ModelBased: Strategy {
    /// The posterior over (x, context) rows, for a log that it has caught up with; None while nothing is observed.
    ///
    /// With `pending` it is the one that the next suggestion would be made from.
    fn surrogate(
        &mut self,
        log: &Ledger,
        query: Query,
        pending: bool,
        rng: &mut Rng,
        stop: &mut Stop,
    ) -> Result<Option<Surrogate<'_>>>;

    /// The acquisition that the next suggestion would maximise at the rows of `points`, in units of f; None while
    /// nothing is observed. `rng` is that suggestion's; `rewind` takes back what this leaves in the fold.
    fn acquisition(
        &mut self,
        log: &Ledger,
        query: Query,
        points: ArrayView2<f64>,
        rng: &mut Rng,
        stop: &mut Stop,
    ) -> Result<Option<Vec<f64>>>;
}
