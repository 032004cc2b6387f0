//! Rules against suggesting the same point twice.
//!
//! * [`Repeats::excluded`]: the rule for points without an active continuous coordinate
//! * [`repeats_exact_value`]: the rule for points with an active continuous coordinate
//!
//! Notation: an observed value is called *exact* if its noise is declared to be zero, or if the fitted noise is
//! negligible. After a failure, a point with equal values is also exact. A point is called *failing* if the last trial
//! that ended at this point failed.

use std::collections::{HashMap, HashSet};

use ndarray::{Array2, ArrayView2};

use crate::gp::{GaussianProcess, NOISELESS};
use crate::ledger::{State, TrialNumber, View, Viewed};
use crate::maximize::excluded::{Excluded, Key, key_of_row};
use crate::maximize::feasible::Pool;
use crate::problem::Domain;
use crate::strategy::Query;
use crate::strategy::bayes::model::training_set::TrainingSet;
use crate::strategy::bayes::settings::surrogate::MIN_NOISE;
use crate::strategy::bayes::settings::{MAX_INITIAL, Settings};

/// After its k-th failure, a point waits for 2ᵏ times this number of values.
const WAIT: usize = 10;

/// If at most this share of the trials failed, the failures are probably accidents.
const FEW_FAILURES: f64 = 0.1;

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

/// The failures of a failing point.
#[derive(Default)]
struct Failed {
    times: u32,
    /// The number of values that were observed in this context before the last failure.
    before: usize,
    /// The number of further values for which the point waits.
    wait: usize,
}

/// The rules that exclude points from suggestions.
pub struct Repeats<'a> {
    /// The searched domain.
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
    /// are excluded. A point is excluded if it is in flight, was abandoned after the last result, has an exact value, or
    /// failed recently. Only trials in the context of the query count. Among the initial points, in small domains whose
    /// noise is unknown, and by the setting `repeats`, every point is tried once before any point is repeated.
    pub fn excluded(&self, log: View, query: Query, first: bool) -> Excluded {
        let mut excluded = self.in_flight(log, query);
        if self.may_repeat() || !self.domain.can_repeat() {
            return excluded;
        }
        let ended = || self.training.fold.ended.iter().copied();
        let is_small = || self.has_few_members && !self.has_noise(log);
        if first || !self.settings.repeats || is_small() {
            let mut tried = excluded.clone();
            tried.extend(self.members(log, query, ended()));
            if first || !self.covers_domain(&tried) {
                return tried;
            }
        }
        let exact = self.exact(log, query, log.n_trials());
        let (failures, n_observed) = self.failures(log, query, &exact);
        excluded.extend(exact);
        let waiting = failures
            .into_iter()
            .filter(|(_, it)| n_observed - it.before < it.wait);
        waiting.for_each(|(key, _)| excluded.insert(key));
        excluded
    }

    /// Whether points in flight and points with an exact value may be suggested again.
    fn may_repeat(&self) -> bool {
        self.settings.pending().repeats() && self.settings.repeats
    }

    /// The points that were abandoned after the last result. Points in flight are also included, unless the policy
    /// allows repeating these points.
    pub fn in_flight(&self, log: View, query: Query) -> Excluded {
        if !self.domain.can_repeat() {
            return Excluded::default();
        }
        // A trial is in flight while any of its outcomes is missing.
        let log = log.log.view();
        let mut excluded = self.members(log, query, log.recently_abandoned().into_iter());
        if !self.may_repeat() {
            let pending = self.training.arriving(log, query).into_iter();
            excluded.extend(self.members(log, query, pending));
        }
        excluded
    }

    /// Whether the domain is exhausted: every point is `excluded`, and at least one point has an exact value.
    pub fn is_exhausted(&self, log: View, query: Query, excluded: &Excluded) -> bool {
        !self.may_repeat()
            && self.covers_domain(excluded)
            && !self.exact(log, query, log.n_trials()).is_empty()
    }

    /// The points that are excluded if the domain is exhausted. Failing points are excluded, because a further trial
    /// would probably fail again. Points with an exact value may be repeated.
    pub fn excluded_if_exhausted(&self, log: View, query: Query) -> Excluded {
        let mut excluded = self.in_flight(log, query);
        let (failures, _) = self.failures(log, query, &Excluded::default());
        failures.into_keys().for_each(|key| excluded.insert(key));
        excluded
    }

    /// Whether the last trial repeated a point with an exact value, because the domain was already exhausted.
    pub fn repeats_already(&self, log: View, query: Query) -> bool {
        let Some(last) = log.n_trials().checked_sub(1) else {
            return false;
        };
        let exact = self.exact(log, query, last);
        let tried = log.tried(last);
        let tried = tried.and_then(|(x, index)| query.lower(&x, index));
        tried.is_some_and(|(x, _)| exact.contains(self.domain, &x))
    }

    /// The failures of each failing point, and the number of values that were observed in this context.
    ///
    /// After its k-th failure, a point waits until 2ᵏ · [`WAIT`] values have been observed at other points. If fewer
    /// points were left after the failure, the point waits for only one value per point left. A point is left if it is
    /// not failing and does not have an exact value. If no other point was left, the point is not tried again. Failures
    /// do not shorten the wait, because the points of a failing region would otherwise be tried in turn. A repeated
    /// exact value does not shorten the wait either, because it gives no information.
    fn failures(&self, log: View, query: Query, exact: &Excluded) -> (HashMap<Key, Failed>, usize) {
        let mut failures: HashMap<Key, Failed> = HashMap::new();
        if !self.has_failure(log) {
            return (failures, 0);
        }
        let ended = self.training.fold.ended.iter().copied();
        let here = ended.filter(|&number| log.context(number) == query.context);
        let here: Vec<TrialNumber> = here.collect();
        // More points than twice the number of trials make no difference.
        let n_members = self.n_members(2 * here.len());
        let (mut done, mut n_observed) = (HashSet::new(), 0);
        for number in here {
            let is_failed = log.of(number).state() == State::Failed;
            let Some(key) = self.key(log, query, number) else {
                n_observed += usize::from(!is_failed);
                continue;
            };
            if !is_failed {
                failures.remove(&key);
                let is_new = match exact.contains_key(&key) {
                    true => done.insert(key),
                    false => {
                        done.remove(&key);
                        true
                    }
                };
                n_observed += usize::from(is_new);
                continue;
            }
            done.insert(key.clone());
            let failed = failures.entry(key).or_default();
            failed.times += 1;
            failed.before = n_observed;
            let wait = 2_usize.saturating_pow(failed.times).saturating_mul(WAIT);
            failed.wait = match n_members.saturating_sub(done.len()) {
                0 => usize::MAX,
                n_left => wait.min(n_left),
            };
        }
        (failures, n_observed)
    }

    /// The number of feasible points, or `limit` if there are more points.
    fn n_members(&self, limit: usize) -> usize {
        match (self.domain, self.pool) {
            (_, Some(pool)) if pool.is_complete() => pool.points().nrows().min(limit),
            (Domain::Candidates(list), _) => {
                let mut distinct = HashSet::new();
                let new = list
                    .outer_iter()
                    .filter(|x| distinct.insert(key_of_row(*x)));
                new.take(limit).count()
            }
            (Domain::Box(_), None) if self.domain.is_finite() => {
                usize::try_from(self.domain.combinations())
                    .unwrap_or(limit)
                    .min(limit)
            }
            _ => limit,
        }
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

    /// The points that the trials in `numbers` tried in this context.
    fn members(
        &self,
        log: View,
        query: Query,
        numbers: impl Iterator<Item = TrialNumber>,
    ) -> Excluded {
        let here = numbers.filter(|&number| log.context(number) == query.context);
        let mut excluded = Excluded::default();
        here.filter_map(|number| self.key(log, query, number))
            .for_each(|key| excluded.insert(key));
        excluded
    }

    /// The key of the point that a trial tried, or `None` if this point cannot be excluded.
    fn key(&self, log: View, query: Query, number: TrialNumber) -> Option<Key> {
        let (x, index) = log.tried(number)?;
        let (x, index) = query.lower(&x, index)?;
        Excluded::key(self.domain, &x, index)
    }

    /// The points with an exact value among the trials with a number below `end`.
    fn exact(&self, log: View, query: Query, end: TrialNumber) -> Excluded {
        let ended = self.training.fold.ended.iter().copied();
        let observed =
            ended.filter(|&number| number < end && log.of(number).state() == State::Observed);
        let observed: Vec<TrialNumber> = observed.collect();
        let trusts_fit = self.trusts_fit(log);
        let exact = observed.iter().copied();
        let exact = exact.filter(|&number| self.is_exact(log.of(number), trusts_fit));
        let mut exact = self.members(log, query, exact);
        if self.has_failure(log) {
            exact.extend(self.equal_replicates(log, query, &observed));
        }
        exact
    }

    /// Whether an observed trial has an exact value, or counts as exact because its point must not be repeated.
    fn is_exact(&self, trial: Viewed, trusts_fit: bool) -> bool {
        match trial.std().or(self.settings.surrogate.noise_std) {
            _ if !self.settings.repeats => true,
            Some(std) => std == 0.0,
            None => {
                let fit = self.training.fit().filter(|_| trusts_fit);
                fit.is_some_and(|fit| fit.theta.noise_variance <= NOISELESS)
            }
        }
    }

    /// Whether a fitted noise near zero makes values exact. If many trials have failed, a value is exact only if it was
    /// observed twice at its point: the other points of a finite domain are then likely to fail, and a second value
    /// costs less than a failure.
    fn trusts_fit(&self, log: View) -> bool {
        let n_ended = self.training.fold.ended.len() as f64;
        self.training.n_failed(log) as f64 <= FEW_FAILURES * n_ended
    }

    /// The points where two or more trials have the same value, and no noise of these values is declared. If the values
    /// of any point differ, values have noise, and the result is empty.
    fn equal_replicates(&self, log: View, query: Query, observed: &[TrialNumber]) -> Excluded {
        let mut values: HashMap<Key, Option<f64>> = HashMap::new();
        let mut equal = Excluded::default();
        for &number in observed {
            let trial = log.of(number);
            let is_unknown = trial.std().or(self.settings.surrogate.noise_std).is_none();
            if !is_unknown || log.context(number) != query.context {
                continue;
            }
            let Some(key) = self.key(log, query, number) else {
                continue;
            };
            match values.insert(key.clone(), trial.value()) {
                None => {}
                Some(value) if value == trial.value() => equal.insert(key),
                Some(_) => return Excluded::default(),
            }
        }
        equal
    }

    /// Whether any trial has failed.
    fn has_failure(&self, log: View) -> bool {
        self.training.n_failed(log) > 0
    }

    /// Whether values are known to have noise.
    fn has_noise(&self, log: View) -> bool {
        let noisy = |std: Option<f64>| std.is_some_and(|std| std > 0.0);
        let mut ended = self.training.fold.ended.iter();
        noisy(self.settings.surrogate.noise_std) || ended.any(|&number| noisy(log.of(number).std()))
    }
}

/// Whether a row equals, up to rounding, an observed row with an exact value, so that a trial at this row would not
/// give information.
///
/// The criterion is the standard deviation of f at the row, given only the most informative observation. The standard
/// deviation given all observations would also be small at new points where the model is certain. A trial at such a new
/// point can still improve the last digits of the maximum.
///
/// After a failure, values are exact here only if their noise is declared to be zero, or if they were observed twice and
/// no noise is declared. If repeats were refused because of the fitted noise, the largest variance outside the observed
/// points would often lie in the failing region.
pub fn repeats_exact_value(
    gp: &GaussianProcess,
    row: ArrayView2<f64>,
    log: View,
    settings: &Settings,
) -> bool {
    let failed = |trial: Viewed| trial.state() == State::Failed;
    let noise = gp.row_noise()[..gp.n_observed()].iter();
    let exact: Vec<bool> = match log.trials().any(failed) {
        true => {
            let declared = |trial: Viewed| trial.std().or(settings.surrogate.noise_std).is_some();
            let equal = match log.trials().any(declared) {
                true => vec![false; gp.n_observed()],
                false => equal_rows(gp),
            };
            let exact = noise.zip(equal);
            exact
                .map(|(noise, equal)| equal || *noise <= MIN_NOISE)
                .collect()
        }
        false => noise.map(|noise| *noise <= NOISELESS).collect(),
    };
    let least = least_std(gp, row, exact.into_iter());
    least <= TIMES_JITTER * (MIN_NOISE + gp.factor().jitter()).sqrt()
}

/// For each observed row: whether an equal row has the same target. If equal rows have different targets, the values
/// have noise, and the result is false for all rows.
fn equal_rows(gp: &GaussianProcess) -> Vec<bool> {
    let (rows, targets) = (gp.rows(), gp.targets());
    let rows = rows.rows().into_iter().take(gp.n_observed());
    let keys: Vec<Vec<u64>> = rows
        .map(|row| row.iter().map(|x| x.to_bits()).collect())
        .collect();
    // The targets are recomputed from the factor, with rounding errors.
    let largest = targets.iter().fold(0.0, |most: f64, y| most.max(y.abs()));
    let mut known: HashMap<&[u64], (f64, usize)> = HashMap::new();
    for (key, target) in keys.iter().zip(&targets) {
        let (first, times) = known.entry(key).or_insert((*target, 0));
        if (*first - target).abs() > 1e-9 * largest {
            return vec![false; keys.len()];
        }
        *times += 1;
    }
    keys.iter().map(|key| known[&key[..]].1 > 1).collect()
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
