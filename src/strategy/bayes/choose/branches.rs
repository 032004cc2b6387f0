//! Branches: the choices of a category on which other parameters depend.
//!
//! A branch has its own parameters, and f may change faster there than in other branches. The model has one set of
//! hyperparameters, and is too certain of the values of a branch with few trials. Therefore each branch gets a least
//! share of the trials until its values show that its best point is worse than the best observed point.

use crate::ledger::{State, View};
use crate::problem::{Coordinate, Domain, Fixed, Held, Restriction, columns};
use crate::strategy::Query;

/// Each open branch has at least this share of the mean number of trials of the open branches.
const LEAST_SHARE: f64 = 0.6;

/// The largest value in a branch is estimated to be at most y₁ + [`GAPS`] · (y₁ − y₂), where y₁ and y₂ are the two
/// largest values that were observed there. The bound holds with probability 3/4 for independent values (D. S. Robson
/// and J. H. Whitlock 1964, "Estimation of a truncation point", Biometrika 51).
const GAPS: f64 = 3.0;

/// The trials of a branch.
#[derive(Clone, Debug, Default)]
struct Branch {
    n_trials: usize,
    /// Whether any trial was observed or failed.
    has_result: bool,
    /// The two largest values.
    largest: [Option<f64>; 2],
}

impl Branch {
    fn insert(&mut self, value: f64) {
        let [first, second] = self.largest;
        self.largest = match first {
            Some(first) if value <= first => {
                [Some(first), Some(second.map_or(value, |y| y.max(value)))]
            }
            first => [Some(value), first],
        };
    }

    /// Whether the branch may contain a better point than the point with the value `best`. A branch without any result is
    /// open. A branch in which all trials failed is closed.
    fn is_open(&self, best: f64) -> bool {
        match self.largest {
            [Some(first), Some(second)] => first + GAPS * (first - second) >= best,
            [Some(_), None] => true,
            _ => !self.has_result,
        }
    }
}

/// The branches of category k, which is described by its coordinate and its columns.
fn branches(log: View, (coordinate, at): (&Coordinate, std::ops::Range<usize>)) -> Vec<Branch> {
    let mut branches = vec![Branch::default(); coordinate.choices().unwrap_or(0) as usize];
    for (number, trial) in log.log.trials().iter().enumerate() {
        if trial.left_out {
            continue;
        }
        let own = &mut branches[coordinate.index(&log.x(number)[at.clone()]) as usize];
        let result = log.of(number);
        own.n_trials += 1;
        own.has_result |= matches!(result.state(), State::Observed | State::Failed);
        let is_allowed =
            !trial.is_outside() && (!log.has_outcomes() || log.is_within_bounds(number));
        if let Some(value) = result.value().filter(|_| is_allowed) {
            own.insert(value);
        }
    }
    branches
}

/// The restriction to the open branch with the fewest trials, if it has less than its share. Several categories may be
/// restricted, each to one choice. None if each branch has its share.
///
/// A branch of a category that itself depends on another parameter does not get a share.
pub fn neglected_branch(domain: &Domain, log: View, query: Query) -> Option<Restriction> {
    let product = domain.product()?;
    let held = query.restriction().and_then(Restriction::held);
    let mut held = held.map_or_else(|| vec![None; product.len()], <[_]>::to_vec);
    let mut found = None;
    for (k, (coordinate, at)) in columns(product).enumerate() {
        if coordinate.is_ordered() || !product.is_parent(k) || !product.conditions_of(k).is_empty()
        {
            continue;
        }
        let branches = branches(log, (coordinate, at));
        let mut open: Vec<usize> = (0..branches.len()).collect();
        if let Some(Held::Values(values)) = &held[k] {
            open.retain(|&choice| values.contains(&(choice as f64)));
        }
        let values = open
            .iter()
            .filter_map(|&choice| branches[choice].largest[0]);
        let best = values.fold(f64::NEG_INFINITY, f64::max);
        open.retain(|&choice| branches[choice].is_open(best));
        open.sort_by_key(|&choice| branches[choice].n_trials);
        let total: usize = open.iter().map(|&choice| branches[choice].n_trials).sum();
        let share = LEAST_SHARE * total as f64 / open.len() as f64;
        let has_too_few = |&choice: &usize| (branches[choice].n_trials as f64) < share;
        for choice in open.iter().copied().take_while(has_too_few) {
            let mut narrowed = held.clone();
            narrowed[k] = Some(Held::Values(vec![choice as f64]));
            let fixed = Fixed::Parameters(narrowed.clone());
            // Linear constraints may exclude the branch.
            let Ok(restriction) = log.problem().restrict(&fixed) else {
                continue;
            };
            if has_more_members(&restriction, branches[choice].n_trials) {
                (held, found) = (narrowed, Some(restriction));
                break;
            }
        }
    }
    found
}

/// Whether a branch has more points than trials. A branch with one point is left to the model.
fn has_more_members(branch: &Restriction, n_trials: usize) -> bool {
    let domain = branch.domain();
    branch.single().is_none() && !(domain.is_finite() && domain.combinations() <= n_trials as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn branch(values: &[f64], has_result: bool) -> Branch {
        let mut branch = Branch {
            has_result,
            ..Branch::default()
        };
        values.iter().for_each(|&value| branch.insert(value));
        branch
    }

    #[test]
    fn a_branch_closes_if_its_largest_values_are_close_together_and_worse() {
        assert!(branch(&[], false).is_open(1.0) && !branch(&[], true).is_open(1.0));
        for (values, expected) in [
            (&[0.0][..], true),
            (&[0.0, 0.8], true),
            (&[0.8, 0.0], true),
            (&[0.8, 0.0, 0.7], true),
            (&[0.8, 0.0, 0.75], false),
            (&[0.75, 0.8, 0.0], false),
            (&[0.9, 0.9, 0.9], false),
            (&[1.0, 1.0], true),
        ] {
            assert_eq!(branch(values, true).is_open(1.0), expected, "{values:?}");
        }
    }
}
