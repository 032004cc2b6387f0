//! The argmax of an acquisition function over a domain.
//!
//! Notation: a(x) the objective, larger is better; d columns; points are rows. In a box the search goes
//! wide, then deep, then around:
//! 1. *raw points*, scored in blocks: an evenly spread sequence, part of it stretched beyond the box and clipped back
//!    so that faces are hit; corners; the incumbents and Gaussian steps of several sizes from them;
//! 2. from the best few that are not neighbours, L-BFGS-B over the continuous coordinates, in turn with
//! 3. a *sweep*: moves of a single coordinate (to other levels; to both ends, if continuous) scored in
//!    one batch, the best one taken if it improves.
//!
//! A short climb from every start decides which few go on until nothing improves. In it integers of many
//! levels move as if continuous and are rounded afterwards: a(x) is asked between the members then.

mod raw;

use ndarray::{Array2, ArrayView1, ArrayView2, Axis};
use rand::RngExt;

use crate::domain::{Coordinate, Domain, columns};
use crate::error::{Error, Result, Stop, check};
use crate::numerics::lbfgsb::{self, Tolerance};
use crate::random::Rng;

/// Rows scored between two looks at `stop`.
const BLOCK: usize = 256;
/// Gradient evaluations between two looks at `stop`.
const EVALUATIONS: usize = 16;
/// Up to this many, the combinations of the discrete coordinates are all among the raw points.
const ENUMERATED: u64 = 1000;
/// A sweep tries every level of an integer up to this many, beyond that steps of ±1, ±2, ±4, …
const FEW_LEVELS: u64 = 16;
/// Climbs and sweeps of one start; a bound on what ends by itself long before.
const ROUNDS: usize = 50;
/// Starts this near (root mean square over the columns) to a better one would climb the same hill.
const MIN_START_DISTANCE: f64 = 0.05;

/// What is maximised: an acquisition over a posterior, as a rule.
pub trait Objective {
    /// a at every row of `points`.
    fn values(&mut self, points: ArrayView2<f64>, out: &mut [f64]);

    /// a(x), and da/dx in `gradient`.
    fn value_and_gradient(&mut self, x: &[f64], gradient: &mut [f64]) -> f64;
}

/// A member of the domain and its value; `index` is its row if the domain is a list of candidates.
#[derive(Clone, Debug, PartialEq)]
pub struct Argmax {
    pub point: Vec<f64>,
    pub index: Option<usize>,
    pub value: f64,
}

/// How a box is searched. Candidates are always scored one and all.
#[derive(Clone, Debug, PartialEq)]
pub enum Maximizer {
    /// The search described above; `effort` scales its counts, 1 being about 15 ms at d = 6.
    Default { effort: f64 },
    /// The literature's: `n_raw` uniform points, then `n_starts` L-BFGS-B runs from other uniform points.
    /// For boxes only; the incumbents play no part.
    Multistart { n_raw: usize, n_starts: usize },
}

impl Default for Maximizer {
    fn default() -> Maximizer {
        Maximizer::Default { effort: 1.0 }
    }
}

/// The best member of `domain` that the search finds.
///
/// `incumbents` are good observed points, best first; rows of the domain's width, possibly none. NaN never
/// wins; where `objective` is nothing but NaN, the answer is a uniformly random member with value NaN.
pub fn maximize(
    objective: &mut dyn Objective,
    domain: &Domain,
    incumbents: ArrayView2<f64>,
    maximizer: &Maximizer,
    rng: &mut Rng,
    stop: &mut Stop,
) -> Result<Argmax> {
    if incumbents.nrows() > 0 && incumbents.ncols() != domain.width() {
        return Err(Error::Shape(format!(
            "incumbents have {} columns, the domain has {}; pass rows of the domain",
            incumbents.ncols(),
            domain.width()
        )));
    }
    let found = match (domain, maximizer) {
        (Domain::Candidates(points), Maximizer::Default { .. }) => {
            best_row(objective, points.view(), rng, stop)?
        }
        (Domain::Candidates(_), Maximizer::Multistart { .. }) => {
            return Err(Error::InvalidSetting {
                name: "maximizer",
                got: "multistart".into(),
                expected: "candidates are all scored; use the default maximizer, or a box",
            });
        }
        (Domain::Box(coordinates), Maximizer::Default { effort }) => {
            let continuous = coordinates.contains(&Coordinate::Continuous);
            if !continuous && domain.combinations() <= ENUMERATED {
                let all = raw::combinations(coordinates, domain.width());
                best_row(objective, all.view(), rng, stop)?.map(|best| Argmax {
                    index: None,
                    ..best
                })
            } else {
                let plan = Plan::new(coordinates.len(), *effort)?;
                let raw = raw::raw_points(domain, coordinates, incumbents, &plan, rng);
                Search::new(objective, coordinates, stop).run(&raw, &plan)?
            }
        }
        (Domain::Box(coordinates), Maximizer::Multistart { n_raw, n_starts }) => {
            let mut raw = Array2::zeros((*n_raw, domain.width()));
            for mut row in raw.outer_iter_mut() {
                row.assign(&ArrayView1::from(&domain.sample_uniform(rng).0));
            }
            let mut best = best_row(objective, raw.view(), rng, stop)?;
            let mut search = Search::new(objective, coordinates, stop);
            for _ in 0..*n_starts {
                check(search.stop)?;
                let start = domain.sample_uniform(rng).0;
                let run = search.climb(start, f64::NEG_INFINITY, false, &SCIPY)?;
                // −∞ may stand for NaN here, and wins nothing anyway.
                let valid = run.1 > f64::NEG_INFINITY;
                if valid && best.as_ref().is_none_or(|best| run.1 >= best.value) {
                    best = Some(Argmax {
                        point: run.0,
                        index: None,
                        value: run.1,
                    });
                }
            }
            best.map(|best| Argmax {
                index: None,
                ..best
            })
        }
    };
    let mut argmax = found.unwrap_or_else(|| {
        let (point, index) = domain.sample_uniform(rng);
        Argmax {
            point,
            index,
            value: f64::NAN,
        }
    });
    if argmax.index.is_none() {
        domain.snap(&mut argmax.point);
    }
    Ok(argmax)
}

/// The tolerances of scipy's `minimize(method="L-BFGS-B")`.
const SCIPY: Tolerance = Tolerance {
    projected_gradient: 1e-5,
    relative_reduction: 2.2e-9,
    max_iterations: 15_000,
};

/// How many of everything.
struct Plan {
    /// Evenly spread points, including the stretched ones.
    spread: usize,
    /// At most so many corners, and so many steps from incumbents.
    corners: usize,
    local: usize,
    /// Starts, and those of them that run to convergence.
    starts: usize,
    finalists: usize,
    short: Tolerance,
    long: Tolerance,
}

impl Plan {
    fn new(coordinates: usize, effort: f64) -> Result<Plan> {
        if !(effort > 0.0 && effort.is_finite()) {
            return Err(Error::InvalidSetting {
                name: "effort",
                got: effort.to_string(),
                expected: "it must be a positive number; 1 is the default",
            });
        }
        let scaled = |count: f64| ((count * effort).ceil() as usize).max(1);
        let d = coordinates as f64;
        Ok(Plan {
            spread: scaled((256.0 + 128.0 * d).min(1280.0)),
            corners: scaled(32.0),
            local: scaled(128.0),
            starts: scaled((8.0 + 2.0 * d).min(32.0)),
            finalists: scaled(2.0),
            short: Tolerance {
                projected_gradient: 1e-3,
                relative_reduction: 1e-3,
                max_iterations: 6,
            },
            long: Tolerance {
                projected_gradient: 1e-7,
                relative_reduction: if effort < 0.5 { 1e-6 } else { 1e-9 },
                max_iterations: 100,
            },
        })
    }
}

/// The best row, exact ties broken uniformly at random; `None` if every value is NaN.
fn best_row(
    objective: &mut dyn Objective,
    points: ArrayView2<f64>,
    rng: &mut Rng,
    stop: &mut Stop,
) -> Result<Option<Argmax>> {
    let mut values = [0.0; BLOCK];
    let mut best: Option<(usize, f64)> = None;
    let mut ties = 0;
    for (block, rows) in points.axis_chunks_iter(Axis(0), BLOCK).enumerate() {
        check(stop)?;
        let values = &mut values[..rows.nrows()];
        objective.values(rows, values);
        for (i, &value) in values.iter().enumerate() {
            let ahead = best.map_or(!value.is_nan(), |(_, most)| value > most);
            if ahead {
                ties = 1;
            } else if best.is_some_and(|(_, most)| value == most) {
                // The m-th of equals replaces the one held with probability 1/m.
                ties += 1;
            }
            let tied = best.is_some_and(|(_, most)| value == most);
            if ahead || (tied && rng.random_range(0..ties) == 0) {
                best = Some((block * BLOCK + i, value));
            }
        }
    }
    Ok(best.map(|(index, value)| Argmax {
        point: points.row(index).to_vec(),
        index: Some(index),
        value,
    }))
}

/// Steps 2 and 3: climbing from good raw points.
struct Search<'a, 's> {
    objective: &'a mut dyn Objective,
    coordinates: &'a [Coordinate],
    stop: &'a mut Stop<'s>,
    /// L-BFGS-B sees (reference − a) / scale, so that its tolerances mean the same for every surface.
    reference: f64,
    scale: f64,
}

impl<'a, 's> Search<'a, 's> {
    fn new(
        objective: &'a mut dyn Objective,
        coordinates: &'a [Coordinate],
        stop: &'a mut Stop<'s>,
    ) -> Search<'a, 's> {
        Search {
            objective,
            coordinates,
            stop,
            reference: 0.0,
            scale: 1.0,
        }
    }

    fn score(&mut self, points: ArrayView2<f64>) -> Result<Vec<f64>> {
        let mut values = vec![0.0; points.nrows()];
        for (rows, out) in points
            .axis_chunks_iter(Axis(0), BLOCK)
            .zip(values.chunks_mut(BLOCK))
        {
            check(self.stop)?;
            self.objective.values(rows, out);
        }
        Ok(values)
    }

    /// The best of the raw points and of what can be reached from them; `None` if all values are NaN.
    fn run(&mut self, raw: &Array2<f64>, plan: &Plan) -> Result<Option<Argmax>> {
        let values = self.score(raw.view())?;
        let mut order: Vec<usize> = (0..values.len()).filter(|&i| !values[i].is_nan()).collect();
        order.sort_by(|&i, &j| values[j].total_cmp(&values[i]));
        let Some(&first) = order.first() else {
            return Ok(None);
        };
        let mut best = (raw.row(first).to_vec(), values[first]);

        order.retain(|&i| values[i].is_finite());
        if best.1.is_finite() {
            // The spread of the upper tenth: far below it an acquisition may be anything.
            let spread = |rank: usize| values[first] - values[order[rank]];
            self.reference = values[first];
            self.scale = [spread(order.len() / 10), spread(order.len() - 1)]
                .into_iter()
                .find(|s| *s > 0.0 && s.is_finite())
                .unwrap_or(1.0);
        } else {
            order.clear();
        }
        let mut runs = Vec::with_capacity(plan.starts);
        for i in distinct(raw, &order, plan.starts) {
            check(self.stop)?;
            let (start, value) = (raw.row(i).to_vec(), values[i]);
            runs.push(self.climb(start, value, true, &plan.short)?);
        }
        runs.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut done: Vec<(Vec<f64>, f64)> = Vec::new();
        for (mut x, mut value) in runs {
            if done.len() >= plan.finalists {
                break;
            }
            if done.iter().any(|(y, _)| distance(y, &x) < 1e-3) {
                continue;
            }
            for _ in 0..ROUNDS {
                check(self.stop)?;
                (x, value) = self.climb(x, value, false, &plan.long)?;
                if !self.sweep(&mut x, &mut value)? {
                    break;
                }
            }
            if value >= best.1 {
                best = (x.clone(), value);
            }
            done.push((x, value));
        }
        let (point, value) = best;
        Ok(Some(Argmax {
            point,
            index: None,
            value,
        }))
    }

    /// L-BFGS-B over the continuous coordinates, the discrete ones held; if `relaxed`, large integers move
    /// too and end on the nearest member. Never worse than the `start` of this `value`.
    fn climb(
        &mut self,
        start: Vec<f64>,
        value: f64,
        relaxed: bool,
        tolerance: &Tolerance,
    ) -> Result<(Vec<f64>, f64)> {
        let (mut lower, mut upper) = (start.clone(), start.clone());
        let mut rounded = false;
        for (coordinate, at) in columns(self.coordinates) {
            let large = relaxed && is_large(coordinate);
            rounded |= large;
            if large || *coordinate == Coordinate::Continuous {
                (lower[at.start], upper[at.start]) = (0.0, 1.0);
            }
        }
        let (reference, scale) = (self.reference, self.scale);
        let (objective, stop) = (&mut *self.objective, &mut *self.stop);
        let (mut count, mut interrupted) = (0, Ok(()));
        let mut downhill = |x: &[f64], gradient: &mut [f64]| {
            count += 1;
            if count % EVALUATIONS == 0 && interrupted.is_ok() {
                interrupted = check(stop);
            }
            if interrupted.is_err() {
                return f64::NAN; // the quickest way for the solver to give up
            }
            let value = objective.value_and_gradient(x, gradient);
            for g in gradient.iter_mut() {
                *g /= -scale;
            }
            (reference - value) / scale
        };
        let (mut x, least) = lbfgsb::minimize(&mut downhill, &start, &lower, &upper, tolerance);
        interrupted?;
        let mut found = reference - scale * least;
        if rounded {
            for (coordinate, at) in columns(self.coordinates) {
                if is_large(coordinate) {
                    x[at.start] = coordinate.position(coordinate.index(&x[at.clone()]));
                }
            }
            self.objective.values(
                ArrayView1::from(&x).insert_axis(Axis(0)),
                std::slice::from_mut(&mut found),
            );
        }
        Ok(if found >= value {
            (x, found)
        } else {
            (start, value)
        })
    }

    /// Take the best move of a single coordinate, if it improves.
    fn sweep(&mut self, x: &mut [f64], value: &mut f64) -> Result<bool> {
        let mut moves: Vec<f64> = Vec::new();
        let mut y = x.to_vec();
        for (coordinate, at) in columns(self.coordinates) {
            if let Some(levels) = coordinate.levels() {
                let here = coordinate.index(&x[at.clone()]);
                let targets: Vec<u64> = if is_large(coordinate) {
                    (0..u64::BITS)
                        .map(|bit| 1 << bit)
                        .take_while(|&step| step < levels)
                        .flat_map(|step| [here.checked_sub(step), Some(here + step)])
                        .flatten()
                        .filter(|&index| index < levels)
                        .collect()
                } else {
                    (0..levels).filter(|&index| index != here).collect()
                };
                for index in targets {
                    coordinate.write(index, &mut y[at.clone()]);
                    moves.extend_from_slice(&y);
                }
            } else {
                for end in [0.0, 1.0] {
                    y[at.start] = end;
                    moves.extend_from_slice(&y);
                }
            }
            y[at.clone()].copy_from_slice(&x[at]);
        }
        let width = x.len();
        let moves = Array2::from_shape_vec((moves.len() / width, width), moves)
            .map_err(|e| Error::Shape(e.to_string()))?;
        let values = self.score(moves.view())?;
        let mut improved = false;
        for (row, v) in moves.outer_iter().zip(values) {
            if v > *value + 1e-9 * self.scale {
                x.iter_mut().zip(row).for_each(|(x, y)| *x = *y);
                *value = v;
                improved = true;
            }
        }
        Ok(improved)
    }
}

fn is_large(coordinate: &Coordinate) -> bool {
    matches!(coordinate, Coordinate::Integer { .. }) && coordinate.levels() > Some(FEW_LEVELS)
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

#[cfg(test)]
mod tests;
