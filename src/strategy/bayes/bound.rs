//! The multiplier of sigma in upper confidence bounds and widened draws.
//!
//! Notation follows Verma et al. 2022: m the window, nu_t the multiplier, beta_t its part that does not come from delays,
//! B_y = 1 the bound on |y| in the model's units.

use ndarray::Array2;

use crate::gp::GaussianProcess;
use crate::ledger::{Ledger, State, Trial, TrialNumber};
use crate::strategy::Query;
use crate::strategy::bayes::settings::{Beta, Schedule, Settings};
use crate::strategy::bayes::training_set::is_arriving;

/// What the multiplier of sigma is made from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    pub beta: Beta,
    pub rkhs_bound: f64,
    pub delta: f64,
    pub predictive_std: bool,
    /// Whether j is the same for all points of a batch: then it does not count trials in flight.
    pub per_batch: bool,
    /// Whether it widens draws rather than a bound.
    pub draws: bool,
}

impl Bound {
    /// Whether the information gain matters.
    pub fn is_theory(self) -> bool {
        self.beta == Beta::Schedule(Schedule::Theory)
    }

    /// beta_t for trial j = 1, 2, … in d dimensions; gamma and λ matter to the theory's alone.
    pub fn multiplier(self, d: usize, j: usize, gamma: f64, noise: f64, censored: bool) -> f64 {
        match self.beta {
            Beta::Constant(beta) => beta,
            Beta::Schedule(Schedule::Kandasamy) => {
                (0.2 * d as f64 * (2.0 * j as f64 + 1.0).ln()).sqrt()
            }
            Beta::Schedule(Schedule::KandasamyCode) => {
                let d = d as f64;
                (5.0 * d * (2.0 * d * j as f64 + 1.0).ln()).sqrt()
            }
            Beta::Schedule(Schedule::Theory) => {
                let (b_y, events) = match (censored, self.draws) {
                    (false, _) => (0.0, 1.0),
                    (true, false) => (1.0, 2.0),
                    (true, true) => (1.0, 4.0),
                };
                let information = gamma + 1.0 + (events / self.delta).ln();
                self.rkhs_bound + (noise.sqrt() + b_y) * (2.0 * information).sqrt()
            }
        }
    }
}

/// The trials that nu_t sums over: those of the last m, observed or not (Algorithm 1 of Verma et al. 2022).
///
/// Without a window only pending ones: nothing else is censored, and a sum over all trials would grow for ever. A pending
/// trial counts as long as it counts as arriving.
pub(super) fn recent_trials(log: &Ledger, query: Query, settings: &Settings) -> Vec<TrialNumber> {
    if !settings.pending().is_censor() {
        return Vec::new();
    }
    let counts = |(_, trial): &(usize, &Trial)| match trial.state {
        State::Pending => is_arriving(trial, query, settings),
        State::Abandoned => false,
        State::Observed | State::Failed => {
            trial.suggested
                && settings
                    .window
                    .is_some_and(|m| query.now - trial.suggested_at <= m)
        }
    };
    let trials = log.trials().iter().enumerate();
    trials.filter(counts).map(|(number, _)| number).collect()
}

/// In d dimensions, nu_t = B_y·Σ_{s=max(1,t−m)}^{t−1} sigma_{t−1}(x_s) + beta_t under `Censor`, beta_t otherwise.
pub(super) fn multiplier(
    gp: &GaussianProcess,
    d: usize,
    log: &Ledger,
    recent: &Array2<f64>,
    gamma: f64,
    bound: Bound,
    settings: &Settings,
) -> f64 {
    let in_flight = match bound.per_batch {
        true => log.pending().len(),
        false => 0,
    };
    let j = log.trials().len() - in_flight + 1;
    let noise = gp.noise_variance();
    let beta = bound.multiplier(d, j, gamma, noise, settings.pending().is_censor());
    let noise = if bound.predictive_std { noise } else { 0.0 };
    let (_, variance) = gp.predict(recent.view());
    beta + variance.iter().map(|v| (v + noise).sqrt()).sum::<f64>()
}
