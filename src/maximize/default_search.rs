//! The default search in a box:
//!
//! 1. many starting points are scored, in blocks;
//! 2. short local searches run from the best distinct points, and from the best points with other combinations of the
//!    discrete coordinates. These searches treat integers as continuous and round the result;
//! 3. longer searches start from the best end points. Local search over the continuous coordinates alternates with
//!    sweeps over single coordinates until convergence;
//! 4. if the box has discrete coordinates, further short searches start from random perturbations of the best end point
//!    (iterated local search, Lourenço et al. 2003). A last long search starts from the best end point of all searches.

use std::collections::HashSet;

use ndarray::{Array2, ArrayView1, Axis};
use rand::RngExt;

use super::argmax::Argmax;
use super::scoring::Search;
use super::sweep::is_large;
use crate::error::{Result, check, refuse};
use crate::numerics::lbfgsb::Tolerance;
use crate::numerics::order::best_first;
use crate::problem::{Coordinate, LinearSet, columns};
use crate::random::Rng;

/// The largest number of rounds (a local search and a sweep) of one search. Searches usually converge far earlier.
const MAX_ROUNDS: usize = 50;
/// The smallest root mean square difference between the columns of two starts. Searches from nearer starts usually
/// reach the same local maximum.
const MIN_START_DISTANCE: f64 = 0.05;
/// End points count as equal if all columns differ by at most this tolerance.
pub(super) const SAME_END: f64 = 1e-3;

/// The probability that a coordinate is redrawn in a perturbation.
const REDRAW_PROBABILITY: f64 = 0.3;

/// The numbers of points and searches, and the tolerances.
pub(super) struct Plan {
    /// The number of evenly spread points, including the stretched points.
    pub n_even: usize,
    /// The largest number of corners.
    pub n_corners: usize,
    /// The number of steps from the best observed points.
    pub n_steps: usize,
    /// The number of starts of local searches.
    pub n_starts: usize,
    /// The number of further starts, with other combinations of the discrete coordinates.
    pub n_combinations: usize,
    /// The number of searches that run to convergence.
    pub n_converged: usize,
    /// The number of searches from perturbations of the best end point.
    pub n_restarts: usize,
    pub coarse: Tolerance,
    pub fine: Tolerance,
}

impl Plan {
    /// Creates the plan for an effort. `perturb` allows searches from perturbations if the box has discrete
    /// coordinates.
    pub fn new(coordinates: &[Coordinate], effort: f64, perturb: bool) -> Result<Plan> {
        if !(effort > 0.0 && effort.is_finite()) {
            return Err(refuse(
                "effort",
                effort,
                "it must be a positive number; 1 is the default",
            ));
        }
        let scaled = |count: f64| ((count * effort).ceil() as usize).max(1);
        let d = coordinates.len() as f64;
        let n_even = (256.0 + 128.0 * d).min(1280.0);
        let discrete = coordinates.iter().any(|c| c.levels() > Some(1));
        // In a box without discrete coordinates, steps find better starts, so fewer starts suffice.
        let (n_steps, n_starts) = match discrete {
            true => (128.0, (8.0 + 2.0 * d).min(32.0)),
            false => (256.0, (6.0 + 1.5 * d).min(24.0)),
        };
        let perturb = perturb && discrete;
        // With discrete coordinates, more searches run to convergence than in other boxes, because the maximum for one
        // combination of discrete values gives little information about other combinations. Few evenly spread points
        // have a good combination of discrete values, so half of these starts are perturbed points instead.
        let n_converged = match (discrete, perturb) {
            (false, _) => 2.0,
            (true, false) => 6.0,
            (true, true) => 3.0,
        };
        Ok(Plan {
            n_even: scaled(if perturb { 0.5 * n_even } else { n_even }),
            n_corners: scaled(32.0),
            n_steps: scaled(n_steps),
            n_starts: scaled(if perturb { 0.4 * n_starts } else { n_starts }),
            n_combinations: if discrete { scaled(20.0) } else { 0 },
            n_converged: scaled(n_converged),
            n_restarts: if perturb { scaled(8.0 * effort) } else { 0 },
            coarse: Tolerance {
                projected_gradient: 1e-3,
                relative_reduction: 1e-3,
                max_iterations: 5,
            },
            fine: Tolerance {
                projected_gradient: 1e-7,
                relative_reduction: if effort < 0.5 { 1e-6 } else { 1e-9 },
                max_iterations: 100,
            },
        })
    }
}

impl Search<'_, '_> {
    /// Searches from the starting points. Returns the best starting point or end point, or `None` if all values are
    /// NaN.
    ///
    /// Searches also start from excluded members, but the best scored member that is not excluded is returned.
    pub fn run(
        &mut self,
        points: &Array2<f64>,
        plan: &Plan,
        rng: &mut Rng,
    ) -> Result<Option<Argmax>> {
        let values = self.score(points.view())?;
        let mut order = best_first(&values);
        order.retain(|&i| !values[i].is_nan());
        let Some(&first) = order.first() else {
            return Ok(None);
        };
        let mut best = (points.row(first).to_vec(), values[first]);

        order.retain(|&i| values[i].is_finite());
        if best.1.is_finite() {
            self.set_scale(&values, &order);
        } else {
            order.clear();
        }
        let mut starts = distinct(points, &order, plan.n_starts);
        self.add_combinations(&mut starts, points, &order, plan.n_combinations);
        let mut ends = Vec::with_capacity(starts.len());
        for i in starts {
            check(self.stop)?;
            let start = points.row(i).to_vec();
            ends.push(self.local_search(start, values[i], true, &plan.coarse)?);
        }
        ends.sort_by(|a, b| b.1.total_cmp(&a.1));
        let tolerance = if plan.n_restarts > 0 {
            &plan.coarse
        } else {
            &plan.fine
        };
        let mut converged: Vec<Vec<f64>> = Vec::new();
        for (mut x, mut value) in ends {
            if converged.len() >= plan.n_converged {
                break;
            }
            if converged.iter().any(|y| distance(y, &x) < SAME_END) {
                continue;
            }
            self.converge(&mut x, &mut value, tolerance)?;
            if value >= best.1 {
                best = (x.clone(), value);
            }
            converged.push(x);
        }
        if plan.n_restarts > 0 && best.1.is_finite() {
            self.search_from_perturbations(&mut best, plan, rng)?;
        }
        if !self.excluded.is_empty() {
            let left = self.best_left.take();
            return Ok(left.map(|(x, value)| Argmax::of(x, value)));
        }
        Ok(Some(Argmax::of(best.0, best.1)))
    }

    /// Alternates local search and sweep until a sweep does not increase a(x).
    fn converge(&mut self, x: &mut Vec<f64>, value: &mut f64, tolerance: &Tolerance) -> Result<()> {
        for _ in 0..MAX_ROUNDS {
            check(self.stop)?;
            (*x, *value) = self.local_search(std::mem::take(x), *value, false, tolerance)?;
            if !self.sweep(x, value)? {
                break;
            }
        }
        // The end point of a continuous search may be a point that was not scored.
        if !self.excluded.is_empty() && self.product.has_active_continuous(x) {
            self.keep_if_left(ArrayView1::from(&*x), *value);
        }
        Ok(())
    }

    /// Runs short searches from perturbations of the best end point, and then a long search from the best member that
    /// is not excluded.
    fn search_from_perturbations(
        &mut self,
        best: &mut (Vec<f64>, f64),
        plan: &Plan,
        rng: &mut Rng,
    ) -> Result<()> {
        for _ in 0..plan.n_restarts {
            let mut x = self.perturbed(&best.0, rng);
            let mut value = self.score(ArrayView1::from(&x).insert_axis(Axis(0)))?[0];
            if value.is_finite() {
                self.converge(&mut x, &mut value, &plan.coarse)?;
                if value > best.1 {
                    *best = (x, value);
                }
            }
        }
        if let Some(left) = &self.best_left {
            best.clone_from(left);
        }
        self.converge(&mut best.0, &mut best.1, &plan.fine)
    }

    /// Returns `x` after redrawing one random coordinate and, with probability [`REDRAW_PROBABILITY`] each, the others.
    fn perturbed(&self, x: &[f64], rng: &mut Rng) -> Vec<f64> {
        let spans: Vec<_> = columns(self.product).collect();
        let always = rng.random_range(0..spans.len());
        let mut y = x.to_vec();
        let linear = self.product.linear();
        for (i, (coordinate, at)) in spans.into_iter().enumerate() {
            if i == always || rng.random::<f64>() < REDRAW_PROBABILITY {
                let lattice = linear.and_then(|linear| linear.lattice_of(at.start));
                if lattice.is_some_and(|lattice| !lattice.can_be_relaxed()) {
                    continue;
                }
                match coordinate.levels() {
                    Some(levels) => coordinate.write(rng.random_range(0..levels), &mut y[at]),
                    None => y[at.start] = rng.random(),
                }
            }
        }
        for lattice in linear.into_iter().flat_map(LinearSet::rigid) {
            lattice.redraw(REDRAW_PROBABILITY, &mut y, rng);
        }
        self.product.snap(&mut y);
        y
    }

    /// Adds up to `count` rows of `order`, best first, each with a combination of categoricals and small integers that
    /// no earlier start has.
    pub fn add_combinations(
        &self,
        starts: &mut Vec<usize>,
        points: &Array2<f64>,
        order: &[usize],
        count: usize,
    ) {
        let combination = |i: usize| -> Vec<u64> {
            let x = points.row(i).to_vec();
            columns(self.product)
                .filter(|(coordinate, _)| !is_large(coordinate))
                .map(|(coordinate, at)| coordinate.index(&x[at]))
                .collect()
        };
        let most = starts.len() + count;
        let mut seen: HashSet<Vec<u64>> = starts.iter().map(|&i| combination(i)).collect();
        for &i in order {
            if starts.len() >= most {
                break;
            }
            if seen.insert(combination(i)) {
                starts.push(i);
            }
        }
    }
}

/// The largest absolute difference over all columns.
pub(super) fn distance(x: &[f64], y: &[f64]) -> f64 {
    x.iter()
        .zip(y)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f64::max)
}

/// Returns up to `count` rows of `order`, best first, at pairwise distances of at least [`MIN_START_DISTANCE`].
pub(super) fn distinct(points: &Array2<f64>, order: &[usize], count: usize) -> Vec<usize> {
    let mut taken: Vec<usize> = Vec::with_capacity(count);
    for &i in order {
        if taken.len() == count {
            break;
        }
        let row = points.row(i);
        let far = |&j: &usize| {
            let squared: f64 = row
                .iter()
                .zip(points.row(j))
                .map(|(a, b)| (a - b) * (a - b))
                .sum();
            squared > MIN_START_DISTANCE * MIN_START_DISTANCE * points.ncols() as f64
        };
        if taken.iter().all(far) {
            taken.push(i);
        }
    }
    taken
}
