//! Rules against suggesting the same point twice.
//!
//! * [`Repeats::excluded`]: the rule for points without an active continuous coordinate
//! * [`repeats_exact_value`]: the rule for points with an active continuous coordinate
//!
//! Notation: an observed value is called *exact* if its noise is declared to be zero, or if the fitted noise is
//! negligible.

use std::collections::HashSet;

use ndarray::{Array2, ArrayView2};

use crate::gp::{GaussianProcess, NOISELESS};
use crate::ledger::{Ledger, State, Trial, TrialNumber};
use crate::maximize::excluded::{Excluded, key_of_row};
use crate::maximize::feasible::Pool;
use crate::problem::Domain;
use crate::strategy::Query;
use crate::strategy::bayes::model::expiry::is_arriving;
use crate::strategy::bayes::model::training_set::TrainingSet;
use crate::strategy::bayes::settings::surrogate::MIN_NOISE;
use crate::strategy::bayes::settings::{MAX_INITIAL, Settings};

/// The threshold for exact values, in the units of the model. A value is exact if the noise variance is at most this
/// threshold.
///
/// If any trial has failed, values are exact only if their noise is declared to be zero. After a failure, a fitted
/// noise near zero does not make a value exact. If points were excluded because of the fitted noise, only the failing
/// region might be left for the search, and repeating a point is cheaper than a trial in the failing region.
fn exact_noise(log: &Ledger) -> f64 {
    let failed = |trial: &Trial| trial.state == State::Failed;
    if log.trials().iter().any(failed) {
        MIN_NOISE
    } else {
        NOISELESS
    }
}

/// A point counts as new if the standard deviation of f at this point exceeds the standard deviation of the jitter by
/// more than this factor.
const TIMES_JITTER: f64 = 10.0;

/// Whether a domain has at most [`MAX_INITIAL`] members. Equal candidates count as one member.
pub fn has_few_members(domain: &Domain) -> bool {
    match domain {
        Domain::Candidates(list) => {
            let mut distinct = HashSet::new();
            let mut rows = list.rows().into_iter();
            rows.all(|row| {
                distinct.insert(key_of_row(row));
                distinct.len() <= MAX_INITIAL
            })
        }
        Domain::Box(_) => domain.is_finite() && domain.combinations() <= MAX_INITIAL as u64,
    }
}

/// The rules that exclude points from suggestions.
pub struct Repeats<'a> {
    pub domain: &'a Domain,
    pub settings: &'a Settings,
    pub training: &'a TrainingSet,
    /// The pool of feasible points, if there are constraints.
    pub pool: Option<&'a Pool>,
    /// Whether the domain has few members.
    pub has_few_members: bool,
}

impl Repeats<'_> {
    /// The points that are excluded while other points are left. Only points without an active continuous coordinate
    /// are excluded. A point is excluded if it is in flight, was abandoned after the last result, or has an exact
    /// value. Only trials in the context of the query count. Among the initial points, and in small domains whose noise
    /// is unknown, every point is tried once before any point is repeated.
    pub fn excluded(&self, log: &Ledger, query: Query, first: bool) -> Excluded {
        let mut excluded = self.in_flight(log, query);
        if self.settings.pending().repeats() || !self.domain.can_repeat() {
            return excluded;
        }
        let ended = || self.training.fold.ended.iter().copied();
        if first || (self.has_few_members && !self.has_noise(log)) {
            let mut tried = excluded.clone();
            tried.extend(self.members(log, query, ended()));
            if first || !self.covers_domain(&tried) {
                return tried;
            }
        }
        // A point where a trial failed is not excluded, because the failure may have been an accident. The model of
        // success determines when the point is tried again.
        let noise = exact_noise(log);
        let done = ended().filter(|&number| self.is_exact(&log.trials()[number], noise));
        excluded.extend(self.members(log, query, done));
        excluded
    }

    /// The points that were abandoned after the last result. Points in flight are also included, unless the policy
    /// allows repeating these points.
    pub fn in_flight(&self, log: &Ledger, query: Query) -> Excluded {
        if !self.domain.can_repeat() {
            return Excluded::default();
        }
        let mut excluded = self.members(log, query, log.recently_abandoned().into_iter());
        if !self.settings.pending().repeats() {
            let window = self.training.window();
            let arriving =
                |number: &TrialNumber| is_arriving(&log.trials()[*number], query, window);
            let pending = log.pending().iter().copied().filter(arriving);
            excluded.extend(self.members(log, query, pending));
        }
        excluded
    }

    /// Whether the domain is exhausted: every point is `excluded` or has failed, and at least one point has an exact
    /// value.
    pub fn is_exhausted(&self, log: &Ledger, query: Query, excluded: &Excluded) -> bool {
        let ended = || self.training.fold.ended.iter().copied();
        let noise = exact_noise(log);
        let mut exact = ended().filter(|&number| self.is_exact(&log.trials()[number], noise));
        if excluded.is_empty() || !exact.any(|number| log.context(number) == query.context) {
            return false;
        }
        let mut tried = excluded.clone();
        let failed = ended().filter(|&number| log.trials()[number].state == State::Failed);
        tried.extend(self.members(log, query, failed));
        !self.settings.pending().repeats() && self.covers_domain(&tried)
    }

    /// Whether the last trial repeated a point with an exact value. If the last trial repeated such a point, the domain
    /// was already exhausted before the last suggestion.
    pub fn repeats_already(&self, log: &Ledger, query: Query) -> bool {
        let Some(last) = log.trials().len().checked_sub(1) else {
            return false;
        };
        let noise = exact_noise(log);
        let exact = (0..last).filter(|&number| self.is_exact(&log.trials()[number], noise));
        let exact = self.members(log, query, exact);
        exact.contains(self.domain, log.x(last))
    }

    /// Whether every feasible member of the domain is excluded.
    pub fn covers_domain(&self, excluded: &Excluded) -> bool {
        match self.pool {
            Some(pool) if pool.is_complete() => {
                let points = pool.points();
                points
                    .rows()
                    .into_iter()
                    .all(|x| excluded.contains(self.domain, &x.to_vec()))
            }
            _ => excluded.is_all_of(self.domain),
        }
    }

    /// The points of the trials in `numbers` that were run in this context.
    fn members(
        &self,
        log: &Ledger,
        query: Query,
        numbers: impl Iterator<Item = TrialNumber>,
    ) -> Excluded {
        let here = numbers.filter(|&number| log.context(number) == query.context);
        let points = here.map(|number| {
            let index = log.trials()[number].index.map(|index| index as usize);
            (log.x(number), index)
        });
        Excluded::new(self.domain, points)
    }

    /// Whether a trial has an exact value.
    fn is_exact(&self, trial: &Trial, exact_noise: f64) -> bool {
        trial.state == State::Observed
            && match trial.std() {
                Some(std) => std == 0.0,
                None => match self.settings.gp().noise_std {
                    Some(std) => std == 0.0,
                    None => (self.training.fit())
                        .is_some_and(|fit| fit.theta.noise_variance <= exact_noise),
                },
            }
    }

    /// Whether values are known to have noise.
    fn has_noise(&self, log: &Ledger) -> bool {
        let noisy = |std: Option<f64>| std.is_some_and(|std| std > 0.0);
        let mut ended = self.training.fold.ended.iter();
        noisy(self.settings.gp().noise_std)
            || ended.any(|&number| noisy(log.trials()[number].std()))
    }
}

/// Whether a row equals, up to rounding, an observed row with an exact value. A trial that repeats an exact value would
/// not give information.
///
/// The criterion is the standard deviation of f at the row, given only the most informative observation. The standard
/// deviation given all observations would also be small at new points where the model is certain. A trial at such a new
/// point can still improve the last digits of the maximum.
pub fn repeats_exact_value(gp: &GaussianProcess, row: ArrayView2<f64>, log: &Ledger) -> bool {
    let (noise, largest) = (gp.row_noise()[..gp.n_observed()].iter(), exact_noise(log));
    let exact = noise.map(|noise| *noise <= largest);
    let least = least_std(gp, row, exact);
    least <= TIMES_JITTER * (MIN_NOISE + gp.factor().jitter()).sqrt()
}

/// The standard deviation of f at `row`, given f at one other row. Among the rows for which `counts` is true, the most
/// informative row is used.
pub fn least_std(
    gp: &GaussianProcess,
    row: ArrayView2<f64>,
    counts: impl Iterator<Item = bool>,
) -> f64 {
    let kernel = gp.kernel();
    let mut covariance = Array2::zeros((1, gp.len()));
    kernel.cross(row, gp.scaled_rows(), covariance.view_mut());
    let prior = kernel.prior_variance(row.row(0));
    let rows = gp.rows();
    let rows = rows.rows().into_iter().zip(&covariance).zip(counts);
    let explained = rows
        .filter(|(_, counts)| *counts)
        .map(|((x, k), _)| k * k / kernel.prior_variance(x))
        .fold(0.0, f64::max);
    (prior - explained).max(0.0).sqrt()
}
