//! The points that are suggested before the model has data.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use ndarray::{Array2, ArrayView1, ArrayView2, s};

use crate::error::Result;
use crate::gp::GaussianProcess;
use crate::gp::kernel::Kernel;
use crate::ledger::{TrialNumber, View};
use crate::maximize::constrained::Allowed;
use crate::maximize::excluded::Excluded;
use crate::maximize::feasible::Pool;
use crate::maximize::{Maximizer, maximize};
use crate::problem::{Domain, Member};
use crate::random::{Call, Rng};
use crate::strategy::bayes::acquisitions::formula::{Formula, Scorer};
use crate::strategy::bayes::acquisitions::max_variance::MaxVariance;
use crate::strategy::bayes::columns::Columns;
use crate::strategy::bayes::settings::DesignMethod;
use crate::strategy::{Query, uniform_point};

/// The number of quasi-random points after the first n, for trials that start before the first observation.
const N_EXTRA: usize = 128;

/// Known rows of another context cover points of the design if the correlation between the contexts is at least this
/// number. Before the data tell how similar the contexts are, the prior of the lengthscales gives correlations above it.
const LEAST_CORRELATION: f64 = 0.1;

/// Returns the first n points. Candidates are drawn without replacement. Quasi-random points fill the domain evenly; in
/// this case, [`N_EXTRA`] more points are returned after the first n. For uncertainty sampling, each point depends on
/// the earlier points, and the result only serves to count the points that known rows cover.
pub fn initial_design(domain: &Domain, n: usize, how: DesignMethod, rng: &mut Rng) -> Vec<Member> {
    let of_box = |x: ArrayView1<f64>| Member::new(x.to_vec(), None);
    match (domain, how) {
        (Domain::Candidates(list), _) => {
            rand::seq::index::sample(rng, list.nrows(), n.min(list.nrows()))
                .into_iter()
                .map(|i| Member::new(list.row(i).to_vec(), Some(i)))
                .collect()
        }
        (Domain::Box(_), DesignMethod::Uniform) => {
            (0..n).map(|_| uniform_point(domain, rng)).collect()
        }
        (Domain::Box(_), DesignMethod::QuasiRandom | DesignMethod::Uncertainty) => {
            let points = domain.quasi_random_and_more(n, N_EXTRA, rng);
            points.rows().into_iter().map(of_box).collect()
        }
    }
}

/// The initial design of a strategy, and the pool of feasible points if there are constraints.
pub struct Design<'a> {
    /// The searched domain.
    pub domain: &'a Domain,
    pub columns: &'a Columns,
    pub how: DesignMethod,
    /// The number of points that are suggested before the model chooses.
    pub n: usize,
    pub points: Cow<'a, [Member]>,
    /// The trials that failed before the first success.
    pub failed: HashSet<TrialNumber>,
    pub pool: Option<&'a Pool>,
    /// The kernel of the model, if θ is given or has been fitted.
    pub kernel: Option<Kernel>,
    /// The choices of the contexts whose rows do not predict the values in this context.
    pub unlike: Vec<Vec<u64>>,
}

impl Design<'_> {
    /// The place of the next design point, or `None` if the design is complete.
    ///
    /// Without added or enqueued trials, trial number i takes point i. Otherwise, every trial covers the nearest design
    /// point, and covered points are skipped. If points are drawn one by one, one point less is drawn for each covered
    /// point. Points that the strategy suggested count in every context. If they counted only in their own context, a
    /// continuous context would never complete the design.
    pub fn next_place(
        &self,
        log: View,
        query: Query,
        excluded: &Excluded,
    ) -> Result<Option<usize>> {
        let (n, n_chosen) = (self.n, log.n_chosen());
        if n_chosen == log.n_trials() {
            return Ok(Some(n_chosen).filter(|&number| number < n));
        }
        let points: Vec<Vec<f64>> = match self.pool {
            None => {
                let points = self.points.iter().take(n);
                points.map(|point| point.x.clone()).collect()
            }
            Some(pool) => {
                let points = pool.points();
                points
                    .outer_iter()
                    .take(n)
                    .map(|row| row.to_vec())
                    .collect()
            }
        };
        let mut rows = self.given_rows(log, query.context);
        let lifted: Vec<Vec<f64>> = points.iter().map(|x| query.lift(x)).collect();
        let covered_by_given = covered(&lifted, &rows, self.columns);
        let n_covered = covered_by_given.iter().filter(|&&covered| covered).count();
        if self.takes_points_in_order() {
            rows.extend(chosen_rows(log)?);
            let covered = covered(&lifted, &rows, self.columns);
            let is_left =
                |&place: &usize| !covered[place] && !excluded.contains(self.domain, &points[place]);
            let place = (0..points.len()).find(is_left);
            if place.is_some() || points.len() == n {
                return Ok(place);
            }
        }
        // Points after the end of the list are drawn.
        let place = n_chosen.max(points.len());
        Ok(Some(place).filter(|_| n_chosen + n_covered < n))
    }

    /// Returns the points of the rows that were not chosen by the strategy: added and enqueued trials, in this context and
    /// in all contexts from which the model predicts f in this context. Several equal values of another context do not
    /// tell where f is large, nor do values of a context that turned out to be unlike this context.
    /// Trials that failed before the first success, were withdrawn, or were abandoned before the last value or failure,
    /// are left out, because they give no information about f.
    fn given_rows<'l>(&self, log: View<'l>, context: &[f64]) -> Vec<Cow<'l, [f64]>> {
        let recently_abandoned = log.recently_abandoned();
        let varying = varying_contexts(log);
        let mut last = (context, true);
        let mut predicts = |other| {
            if last.0 != other {
                let varies = || varying.get(&key(other)).is_none_or(|varies| *varies);
                let is_like = || !self.unlike.contains(&self.columns.choices(other));
                let predicts = other == context
                    || (varies() && self.are_correlated(other, context) && is_like());
                last = (other, predicts);
            }
            last.1
        };
        let mut is_given = |&number: &TrialNumber| {
            let trial = log.of(number);
            !trial.is_chosen()
                && !trial.left_out
                && !self.failed.contains(&number)
                && (!trial.is_dropped() || recently_abandoned.contains(&number))
                && predicts(log.context(number))
        };
        let numbers = (0..log.n_trials()).filter(&mut is_given);
        numbers
            .map(|number| Cow::Borrowed(log.log.x(number)))
            .collect()
    }

    /// Whether the values of a point in these contexts are correlated. Without a kernel, they may be.
    fn are_correlated(&self, one: &[f64], other: &[f64]) -> bool {
        let Some(kernel) = &self.kernel else {
            return true;
        };
        let mut rows = Array2::zeros((2, kernel.width()));
        let first = kernel.width() - one.len();
        rows.slice_mut(s![0, first..])
            .assign(&ArrayView1::from(one));
        rows.slice_mut(s![1, first..])
            .assign(&ArrayView1::from(other));
        let k = kernel.gram(rows.view());
        k[[0, 1]] >= LEAST_CORRELATION * (k[[0, 0]] * k[[1, 1]]).sqrt()
    }

    /// Whether the initial points are the points of a list, in order. Other initial points are drawn one by one.
    pub fn takes_points_in_order(&self) -> bool {
        match self.how {
            DesignMethod::QuasiRandom => true,
            DesignMethod::Uniform => self.pool.is_none(),
            DesignMethod::Uncertainty => false,
        }
    }
}

/// Whether the values differ, for each context with several values.
fn varying_contexts(log: View) -> HashMap<Vec<u64>, bool> {
    let mut first = HashMap::new();
    let mut several = HashMap::new();
    let values = log.trials().map(|trial| trial.value()).enumerate();
    for (number, value) in values.filter_map(|(number, value)| Some((number, value?))) {
        let key = key(log.context(number));
        match first.get(&key) {
            None => drop(first.insert(key, value)),
            Some(&first) => *several.entry(key).or_insert(false) |= value != first,
        }
    }
    several
}

/// The bits of an encoded context.
fn key(context: &[f64]) -> Vec<u64> {
    context.iter().map(|number| number.to_bits()).collect()
}

/// Returns for each design point whether a row covers it. Each row covers the nearest design point, or the first of
/// several nearest points. Equal design points are covered together. In the distance, every parameter counts equally:
/// the differences of a column are divided by the spread of its dimension.
fn covered(points: &[Vec<f64>], rows: &[Cow<[f64]>], columns: &Columns) -> Vec<bool> {
    let mut covered = vec![false; points.len()];
    let distance = |a: &[f64], b: &[f64]| {
        let differences = a.iter().zip(b).zip(&columns.dimension);
        let scaled = differences.map(|((a, b), &dimension)| (a - b) / columns.spreads[dimension]);
        scaled
            .map(|difference| difference * difference)
            .sum::<f64>()
    };
    for row in rows {
        let distances = points.iter().map(|point| distance(point, row));
        if let Some((nearest, _)) = distances.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)) {
            covered[nearest] = true;
        }
    }
    for later in 1..points.len() {
        let is_equal = |earlier: usize| covered[earlier] && points[earlier] == points[later];
        covered[later] |= (0..later).any(is_equal);
    }
    covered
}

/// Returns the suggested points of the trials whose points the strategy chose, in every context.
fn chosen_rows(log: View<'_>) -> Result<Vec<Cow<'_, [f64]>>> {
    let is_chosen = |&number: &TrialNumber| {
        let trial = log.of(number);
        trial.is_chosen() && !trial.left_out
    };
    let numbers = (0..log.n_trials()).filter(is_chosen);
    numbers.map(|number| log.log.started_x(number)).collect()
}

/// Uncertainty sampling (Kandasamy et al. 2017, proposition 2). Return the point with the largest variance in this
/// context, given the rows `before`. The variance depends on the points of the rows, and not on the observed values.
pub fn most_uncertain(
    mut prior: GaussianProcess,
    before: ArrayView2<f64>,
    (domain, query): (&Domain, Query),
    allowed: Allowed,
    call: &mut Call,
) -> Result<Member> {
    prior.append_rows(before)?;
    prior.set_targets(&vec![0.0; before.nrows()])?;
    let variance = MaxVariance {};
    let maximizer = Maximizer::Default {
        effort: variance.effort(before.nrows()),
    };
    let mut scorer = Scorer::new(&prior, &variance, query.context);
    let nowhere = Array2::zeros((0, domain.width()));
    let around = nowhere.view();
    let best = match query.restriction() {
        None => maximize(&mut scorer, domain, around, &maximizer, allowed, call)?,
        Some(restriction) => {
            let scorer = &mut restriction.lifted(&mut scorer);
            maximize(scorer, domain, around, &maximizer, allowed, call)?
        }
    };
    Ok(best.member())
}

/// Returns the trials whose points should not be suggested next. The result contains every trial, except trials that
/// were withdrawn, trials that were abandoned before the last value or failure was reported, and trials that a revision
/// left out.
pub fn standing(log: View) -> Vec<TrialNumber> {
    let recent = log.recently_abandoned();
    let stands = |number: &TrialNumber| {
        let trial = log.of(*number);
        !trial.left_out && (!trial.is_dropped() || recent.contains(number))
    };
    (0..log.n_trials()).filter(stands).collect()
}
