//! Branches: the choices with the same active parameters, of a category on which other parameters depend.
//!
//! A branch has its own parameters, and f may change faster there than in other branches. The model has one set of
//! hyperparameters, and is too certain of the values of a branch with few trials. Therefore each branch gets a minimum
//! share of the trials while it is *open*: while its best point may be the best point, and at most half of its results
//! are failures, stopped trials or values beyond a bound.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::ledger::View;
use crate::problem::{Coordinate, Domain, Fixed, Held, Product, Restriction, columns};
use crate::strategy::Query;

/// The minimum share of the trials of open branches, relative to the share that random points have.
const MINIMUM_SHARE: f64 = 0.6;

/// The best value in a branch is estimated to be at most y₁ + [`GAPS`] · (y₁ − y₂), where y₁ and y₂ are the two largest
/// values that were observed there. The bound holds with probability about 3/4 for independent values from one distribution
/// with a positive density at its largest value (D. S. Robson and J. H. Whitlock 1964, "Estimation of a truncation point",
/// Biometrika 51).
const GAPS: f64 = 3.0;

/// Choices with the same active parameters.
#[derive(Clone, Debug, PartialEq)]
struct Branch {
    choices: Vec<f64>,
    /// The number of trials that were started in the branch, whether or not they have a result.
    n_trials: usize,
    /// The number of trials that were started or run in the branch.
    n_tried: usize,
    n_values: usize,
    /// The number of trials that failed, were stopped, or have a value beyond a bound.
    n_ruled_out: usize,
    /// The two largest values.
    largest: [f64; 2],
}

impl Branch {
    fn new(choices: Vec<f64>) -> Self {
        Self {
            choices,
            n_trials: 0,
            n_tried: 0,
            n_values: 0,
            n_ruled_out: 0,
            largest: [f64::NEG_INFINITY; 2],
        }
    }

    fn insert(&mut self, value: f64) {
        let [first, second] = self.largest;
        self.largest = [first.max(value), second.max(first.min(value))];
        self.n_values += 1;
    }

    /// Whether the best point of the branch may be the best point: `best` is the value of the best observed point.
    fn is_open(&self, best: f64) -> bool {
        let [first, second] = self.largest;
        let may_be_best = self.n_values < 2 || first + GAPS * (first - second) >= best;
        first == best || (may_be_best && self.n_ruled_out <= self.n_values)
    }
}

/// The restriction to the open branches that have too few trials, or None if all open branches have enough trials. A
/// restriction has one branch of each category that has such a branch. A category that depends on another parameter is
/// left to the model.
pub fn branches_below_minimum(domain: &Domain, log: View, query: Query) -> Option<Restriction> {
    let product = domain.product()?;
    let held = query.restriction().and_then(Restriction::held);
    let mut held = held.map_or_else(|| vec![None; product.len()], <[_]>::to_vec);
    let mut found = None;
    for (k, (coordinate, at)) in columns(product).enumerate() {
        let is_category = coordinate.choices().is_some();
        if !is_category || !product.is_parent(k) || !product.conditions_of(k).is_empty() {
            continue;
        }
        let mut branches = branches(product, k, held[k].as_ref());
        count(&mut branches, log, coordinate, at);
        let best = branches.iter().map(|branch| branch.largest[0]);
        let best = best.fold(f64::NEG_INFINITY, f64::max);
        branches.retain(|branch| branch.is_open(best));
        let n_trials: usize = branches.iter().map(|branch| branch.n_trials).sum();
        let n_choices: usize = branches.iter().map(|branch| branch.choices.len()).sum();
        let per_choice = n_trials as f64 / n_choices as f64;
        let lacks = |branch: &Branch| {
            let minimum = MINIMUM_SHARE * per_choice * branch.choices.len() as f64;
            // If there are many branches, trying each of them in turn takes too many trials.
            minimum >= 1.0 && (branch.n_trials as f64) < minimum
        };
        branches.retain(lacks);
        let density = |branch: &Branch| branch.n_trials as f64 / branch.choices.len() as f64;
        branches.sort_by(|a, b| density(a).total_cmp(&density(b)));
        for branch in branches {
            let mut narrowed = held.clone();
            narrowed[k] = Some(Held::Values(branch.choices));
            // Linear constraints may exclude the branch.
            let restricted = log.problem().restrict(&Fixed::Parameters(narrowed.clone()));
            let restricted = restricted
                .ok()
                .filter(|it| has_more_members(it, branch.n_tried));
            if restricted.is_some() {
                (held, found) = (narrowed, restricted);
                break;
            }
        }
    }
    found
}

/// The branches of category k, without choices that are not allowed.
fn branches(product: &Product, k: usize, allowed: Option<&Held>) -> Vec<Branch> {
    let mut found = BTreeMap::<Vec<bool>, Vec<f64>>::new();
    for choice in 0..product[k].choices().unwrap_or(0) {
        let number = choice as f64;
        if matches!(allowed, Some(Held::Values(values)) if !values.contains(&number)) {
            continue;
        }
        let conditions = (0..product.len()).flat_map(|i| product.conditions_of(i));
        let own = conditions.filter(|condition| condition.0 == k);
        let active = own.map(|condition| condition.1.contains(&choice)).collect();
        found.entry(active).or_default().push(number);
    }
    found.into_values().map(Branch::new).collect()
}

/// Counts the trials of the branches of a category, which is given by its coordinate and its columns.
fn count(branches: &mut [Branch], log: View, coordinate: &Coordinate, at: Range<usize>) {
    let mut of_choice = vec![None; coordinate.choices().unwrap_or(0) as usize];
    for (i, branch) in branches.iter().enumerate() {
        for &number in &branch.choices {
            of_choice[number as usize] = Some(i);
        }
    }
    let branch = |x: &[f64]| of_choice[coordinate.index(&x[at.clone()]) as usize];
    for (number, trial) in log.log.trials().iter().enumerate() {
        if trial.left_out {
            continue;
        }
        let (started, run) = (log.started_x(number), branch(log.x(number)));
        let started = started.ok().and_then(|x| branch(&x));
        if let Some(i) = started {
            branches[i].n_trials += 1;
            branches[i].n_tried += 1;
        }
        if let Some(i) = run.filter(|_| run != started) {
            branches[i].n_tried += 1;
        }
        let Some(i) = run.filter(|_| !trial.is_outside()) else {
            continue;
        };
        if log.is_ruled_out(number) {
            branches[i].n_ruled_out += 1;
        } else if let Some(value) = log.of(number).value() {
            branches[i].insert(value);
        }
    }
}

/// Whether a branch has more points than trials, and more than one point.
fn has_more_members(branch: &Restriction, n_tried: usize) -> bool {
    let domain = branch.domain();
    let is_tried = domain.is_finite() && domain.combinations() <= n_tried as u64;
    branch.single().is_none() && !is_tried
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_closes_if_its_largest_values_are_close_together_and_worse_or_if_most_trials_failed()
    {
        for (values, n_ruled_out, expected) in [
            (&[][..], 0, true),
            (&[], 1, false),
            (&[0.0], 0, true),
            (&[0.0], 1, true),
            (&[0.0], 2, false),
            (&[0.0, 0.8], 2, true),
            (&[0.0, 0.8], 3, false),
            (&[0.8, 0.0], 0, true),
            (&[0.8, 0.0, 0.7], 0, true),
            (&[0.8, 0.0, 0.75], 0, false),
            (&[0.75, 0.8, 0.0], 0, false),
            (&[0.9, 0.9, 0.9], 0, false),
            (&[1.0, 1.0], 0, true),
            (&[1.0, 0.0], 9, true),
        ] {
            let mut branch = Branch::new(vec![0.0]);
            branch.n_ruled_out = n_ruled_out;
            values.iter().for_each(|&value| branch.insert(value));
            assert_eq!(branch.is_open(1.0), expected, "{values:?} {n_ruled_out}");
        }
    }
}
