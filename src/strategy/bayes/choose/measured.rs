//! What measured outcomes say about bounds at the points where they were measured.
//!
//! A value is *exact* if its noise is declared to be 0; or if no noise is declared, the values at no point differ, and
//! its point has two equal values, the fitted noise is negligible, or the outcome has a model of labels. A point *holds*
//! if all outcomes with bounds have values within their bounds. A point *violates* a bound if a value lies outside its
//! bounds, unless noise is declared or the values at some point differ. Points near a point that violates a bound count
//! as violating it, unless they hold.

use std::collections::{HashMap, HashSet};

use ndarray::ArrayView1;

use crate::gp::NOISELESS;
use crate::ledger::{Ledger, TrialNumber, View};
use crate::maximize::excluded::{Key, key_of_row};
use crate::problem::Domain;
use crate::strategy::bayes::model::labels::repeats;
use crate::strategy::bayes::model::note::{Fit, InsideFit};
use crate::strategy::bayes::model::outcome_model::OutcomeModel;
use crate::strategy::bayes::model::training_set::TrainingSet;

/// A point of a box within this distance of a point that violates a bound violates it, too. It is the largest distance
/// in any column.
const NEAR: f64 = 1e-6;

/// If values that equal a bound are censored, values are exact up to this fitted noise variance, in units of the
/// targets. A kink at the bound looks like a little noise.
const NOISE_OF_KINK: f64 = 1e-3;

/// The same for values that repeat. The steps of counts look like more noise: the variance of rounding is a twelfth.
const NOISE_OF_STEPS: f64 = 0.1;

/// The rows, which are encoded points with their contexts, where bounds hold or are violated.
pub struct Measured {
    /// Whether the values are exact where bounds hold.
    holds: HashMap<Key, bool>,
    /// Each row with whether the value is exact.
    violates: Vec<(Vec<f64>, bool)>,
    near: f64,
    /// Whether some outcome equals its bound or jumps. P is then uncertain between the rows.
    jumps: bool,
}

/// Whether noise of the values of an outcome is declared or shown, and where values are exact.
struct Exactness {
    declared: Option<f64>,
    differ: bool,
    equal: HashSet<Key>,
    fitted: bool,
}

impl Exactness {
    fn of(bounds: (f64, f64), training: &TrainingSet, part: View) -> Self {
        let (mut first, mut equal, mut differ) = (HashMap::new(), HashSet::new(), false);
        for (number, trial) in part.trials().enumerate() {
            let Some(value) = trial.value() else {
                continue;
            };
            let key = key_of_row(ArrayView1::from(part.row(number)));
            match first.insert(key.clone(), value) {
                None => {}
                Some(other) if other == value => _ = equal.insert(key),
                Some(_) => differ = true,
            }
        }
        let is_exact = |fit: &Fit| match fit.inside {
            None => fit.theta.noise_variance <= NOISELESS,
            Some(InsideFit::Censored) => {
                let repeats = repeats(training.known_values(), bounds);
                let most = if repeats {
                    NOISE_OF_STEPS
                } else {
                    NOISE_OF_KINK
                };
                fit.theta.noise_variance <= most
            }
            Some(InsideFit::Labels(_)) => true,
        };
        Self {
            declared: training.settings.surrogate.noise_std,
            differ,
            equal,
            fitted: training.fit().is_some_and(is_exact),
        }
    }

    fn declared(&self, part: View, number: TrialNumber) -> Option<f64> {
        part.of(number).std().or(self.declared)
    }

    fn is_exact(&self, part: View, number: TrialNumber) -> bool {
        match self.declared(part, number) {
            Some(std) => std == 0.0,
            None => {
                let key = || key_of_row(ArrayView1::from(part.row(number)));
                !self.differ && (self.fitted || self.equal.contains(&key()))
            }
        }
    }

    fn is_noisy(&self, part: View, number: TrialNumber) -> bool {
        match self.declared(part, number) {
            Some(std) => std > 0.0,
            None => self.differ,
        }
    }
}

impl Measured {
    /// Reads the values of the outcomes with bounds.
    pub fn of(models: &[OutcomeModel], log: &Ledger, domain: &Domain) -> Self {
        let mut jumps = false;
        let outcomes: Vec<_> = models
            .iter()
            .filter_map(|model| {
                let (bounds, part, training) = (model.bounds?, model.view(log), &model.training);
                jumps |= training.fit().is_some_and(|fit| fit.inside.is_some());
                Some((bounds, part, Exactness::of(bounds, training, part)))
            })
            .collect();
        let mut measured = Self {
            holds: HashMap::new(),
            violates: Vec::new(),
            near: match domain {
                Domain::Box(_) => NEAR,
                Domain::Candidates(_) => 0.0,
            },
            jumps,
        };
        for number in 0..log.n_trials() {
            let (mut all_hold, mut all_exact) = (true, true);
            for ((low, high), part, exactness) in &outcomes {
                let value = part.of(number).value();
                let is_inside = value.is_some_and(|value| (*low..=*high).contains(&value));
                if value.is_some() && !is_inside && !exactness.is_noisy(*part, number) {
                    let row = part.row(number).to_vec();
                    let exact = exactness.is_exact(*part, number);
                    measured.violates.push((row, exact));
                }
                all_hold &= is_inside;
                all_exact &= is_inside && exactness.is_exact(*part, number);
            }
            if all_hold {
                let row = ArrayView1::from(log.row(number));
                let exact = measured.holds.entry(key_of_row(row)).or_default();
                *exact |= all_exact;
            }
        }
        measured
    }

    /// Whether all outcomes lie within their bounds at a row, or `None` if no exact value says so.
    pub fn exactly_inside(&self, row: &[f64]) -> Option<bool> {
        let holds = self.holds.get(&key_of_row(ArrayView1::from(row)));
        match self.is_near(row, |exact| exact) {
            true => Some(false),
            false => holds.is_some_and(|exact| *exact).then_some(true),
        }
    }

    /// Whether only measured points are recommended: P is uncertain between the rows, and exact values show that at least
    /// one of these rows lies within the bounds.
    pub fn suffices(&self, mut rows: impl Iterator<Item = Vec<f64>>) -> bool {
        self.jumps && rows.any(|row| self.exactly_inside(&row) == Some(true))
    }

    /// Whether a bound was measured to be violated at a row.
    pub fn violates(&self, row: &[f64]) -> bool {
        self.is_near(row, |_| true)
    }

    fn is_near(&self, row: &[f64], counts: impl Fn(bool) -> bool) -> bool {
        let holds = self.holds.contains_key(&key_of_row(ArrayView1::from(row)));
        let distance = if holds { 0.0 } else { self.near };
        let near = |(a, b): (&f64, &f64)| (a - b).abs() <= distance;
        let mut violates = self.violates.iter();
        violates.any(|(other, exact)| counts(*exact) && row.iter().zip(other).all(near))
    }
}
