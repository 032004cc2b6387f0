//! The search of a box: many points are scored, local searches start from the best of them, moves of single coordinates
//! follow.
//!
//! 1. the starting points are scored in blocks;
//! 2. a short local search runs from each of the best few that are not neighbours, and from the best of some further
//!    combinations of the discrete coordinates; in it integers move as if continuous and are rounded afterwards, so a(x)
//!    is evaluated between the members too;
//! 3. the best ends are searched to convergence, local search over the continuous coordinates and sweep in turn, until
//!    nothing improves.

use std::collections::HashSet;

use ndarray::{Array2, ArrayView1, ArrayView2, Axis};

use super::excluded::Excluded;
use super::sweep::is_large;
use super::{Argmax, BLOCK};
use crate::domain::Objective;
use crate::domain::{Coordinate, Product, columns};
use crate::error::{Error, Result, Stop, check};
use crate::numerics::lbfgsb::Tolerance;

/// Local searches and sweeps of one start; a bound on what ends by itself long before.
const MAX_ROUNDS: usize = 50;
/// Starts this near (root mean square over the columns) to a better one would lead to the same local maximum.
const MIN_START_DISTANCE: f64 = 0.05;
/// Ends of local searches are the same if no column differs by more.
const SAME_END: f64 = 1e-3;

/// How many of everything.
pub(super) struct Plan {
    /// Evenly spread points, including the stretched ones.
    pub n_even: usize,
    /// At most so many corners, and so many steps from the best observed points.
    pub n_corners: usize,
    pub n_steps: usize,
    /// Starts of local searches, further ones in other combinations, and those of all that run to convergence.
    n_starts: usize,
    n_combinations: usize,
    n_converged: usize,
    coarse: Tolerance,
    fine: Tolerance,
}

impl Plan {
    pub fn new(coordinates: &[Coordinate], effort: f64) -> Result<Plan> {
        if !(effort > 0.0 && effort.is_finite()) {
            return Err(Error::InvalidSetting {
                name: "effort",
                got: effort.to_string(),
                expected: "it must be a positive number; 1 is the default",
            });
        }
        let scaled = |count: f64| ((count * effort).ceil() as usize).max(1);
        let d = coordinates.len() as f64;
        // The maxima of two combinations may have nothing in common. Measured on 5790 suggestions in a box of five
        // mixed coordinates: the best of 300 random points beats 7, and 44 without, at 1.2 to 2.1 times the cost.
        let discrete = coordinates.iter().any(|c| c.levels() > Some(1));
        Ok(Plan {
            n_even: scaled((256.0 + 128.0 * d).min(1280.0)),
            n_corners: scaled(32.0),
            n_steps: scaled(128.0),
            n_starts: scaled((8.0 + 2.0 * d).min(32.0)),
            n_combinations: if discrete { scaled(20.0) } else { 0 },
            n_converged: scaled(if discrete { 6.0 } else { 2.0 }),
            coarse: Tolerance {
                projected_gradient: 1e-3,
                relative_reduction: 1e-3,
                max_iterations: 6,
            },
            fine: Tolerance {
                projected_gradient: 1e-7,
                relative_reduction: if effort < 0.5 { 1e-6 } else { 1e-9 },
                max_iterations: 100,
            },
        })
    }
}

/// An objective on a box while it is searched.
pub(super) struct Search<'a, 's> {
    pub objective: &'a mut dyn Objective,
    pub product: &'a Product,
    excluded: &'a Excluded,
    /// The best member scored so far that is not excluded; kept only where something is.
    best_left: Option<(Vec<f64>, f64)>,
    pub stop: &'a mut Stop<'s>,
    /// L-BFGS-B minimises (reference − a) / scale, so that its tolerances mean the same for every surface.
    pub reference: f64,
    pub scale: f64,
}

impl<'a, 's> Search<'a, 's> {
    pub fn new(
        objective: &'a mut dyn Objective,
        product: &'a Product,
        excluded: &'a Excluded,
        stop: &'a mut Stop<'s>,
    ) -> Search<'a, 's> {
        Search {
            objective,
            product,
            excluded,
            best_left: None,
            stop,
            reference: 0.0,
            scale: 1.0,
        }
    }

    /// a at every row, all of which are members of the box.
    pub fn score(&mut self, points: ArrayView2<f64>) -> Result<Vec<f64>> {
        let mut values = vec![0.0; points.nrows()];
        for (rows, out) in points
            .axis_chunks_iter(Axis(0), BLOCK)
            .zip(values.chunks_mut(BLOCK))
        {
            check(self.stop)?;
            self.objective.values(rows, out);
        }
        if !self.excluded.is_empty() {
            for (x, &value) in points.outer_iter().zip(&values) {
                self.keep_if_left(x, value);
            }
        }
        Ok(values)
    }

    fn keep_if_left(&mut self, x: ArrayView1<f64>, value: f64) {
        let best = self.best_left.as_ref();
        if best.map_or(!value.is_nan(), |(_, most)| value > *most) {
            let x = x.to_vec();
            if !self.excluded.contains_member(self.product, &x) {
                self.best_left = Some((x, value));
            }
        }
    }

    /// The best of the starting points and of what is reached from them; `None` if all values are NaN.
    ///
    /// Excluded members are searched from like others, but the best of those left that were scored is the answer.
    pub fn run(&mut self, points: &Array2<f64>, plan: &Plan) -> Result<Option<Argmax>> {
        let values = self.score(points.view())?;
        let mut order: Vec<usize> = (0..values.len()).filter(|&i| !values[i].is_nan()).collect();
        order.sort_by(|&i, &j| values[j].total_cmp(&values[i]));
        let Some(&first) = order.first() else {
            return Ok(None);
        };
        let mut best = (points.row(first).to_vec(), values[first]);

        order.retain(|&i| values[i].is_finite());
        if best.1.is_finite() {
            // The range of the upper tenth: far below it an acquisition may be anything.
            let range = |rank: usize| values[first] - values[order[rank]];
            self.reference = values[first];
            self.scale = [range(order.len() / 10), range(order.len() - 1)]
                .into_iter()
                .find(|s| *s > 0.0 && s.is_finite())
                .unwrap_or(1.0);
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
        let mut converged: Vec<Vec<f64>> = Vec::new();
        for (mut x, mut value) in ends {
            if converged.len() >= plan.n_converged {
                break;
            }
            if converged.iter().any(|y| distance(y, &x) < SAME_END) {
                continue;
            }
            for _ in 0..MAX_ROUNDS {
                check(self.stop)?;
                (x, value) = self.local_search(x, value, false, &plan.fine)?;
                if !self.sweep(&mut x, &mut value)? {
                    break;
                }
            }
            if value >= best.1 {
                best = (x.clone(), value);
            }
            // An end over continuous coordinates need not be among the points that were scored.
            if !self.excluded.is_empty() && self.product.has_active_continuous(&x) {
                self.keep_if_left(ArrayView1::from(&x), value);
            }
            converged.push(x);
        }
        if !self.excluded.is_empty() {
            return Ok(self.best_left.take().map(argmax));
        }
        Ok(Some(argmax(best)))
    }

    /// Add up to `count` of the rows in `order`, best first, whose categoricals and small integers are together like those
    /// of no start before.
    fn add_combinations(
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

fn argmax((point, value): (Vec<f64>, f64)) -> Argmax {
    Argmax {
        point,
        index: None,
        value,
    }
}

/// The largest difference in any column.
fn distance(x: &[f64], y: &[f64]) -> f64 {
    x.iter()
        .zip(y)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f64::max)
}

/// Up to `count` of the rows in `order`, best first, none too near to one taken before.
fn distinct(points: &Array2<f64>, order: &[usize], count: usize) -> Vec<usize> {
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
