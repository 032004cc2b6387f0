//! The search of a box under constraints. All points are scored; only the best points are checked.
//!
//! Checks are slow and scores are fast. After step 1 of [`super::default_search`], the best starting points are
//! checked. The starting points include a pool of feasible members, which need no check. Local searches ignore the
//! constraints. If a local search ends at an infeasible point, the last feasible point on the segment from its start
//! is kept, and random steps continue from that point along the boundary.

use ndarray::{Array2, ArrayView1, ArrayView2, Axis, concatenate};
use rand::RngExt;
use rand_distr::StandardNormal;

use super::default_search::{Plan, SAME_END, Search, distance, distinct};
use super::excluded::Excluded;
use super::feasible::{Feasible, Pool};
use super::starting_points::starting_points;
use super::sweep::other_levels;
use super::{Argmax, as_rows, exhaustive};
use crate::domain::{Coordinate, Domain, Objective, columns};
use crate::error::{Error, Result, Stop, check};
use crate::random::Rng;

/// The smallest number of points spread over the box, in addition to the pool.
const MIN_SPREAD: usize = 64;
/// The number of the best starting points that are checked, in addition to the pool.
const MAX_CHECKED_STARTS: usize = 96;
/// The number of spread points that are also checked. Bisection turns each infeasible one of them, and at most
/// `MAX_SEGMENTS_TO_BEST` of the best infeasible points, into a point on the boundary.
const MAX_CHECKED_SPREAD: usize = 192;
const MAX_SEGMENTS_TO_BEST: usize = 64;
const BISECTIONS: usize = 8;
/// The smallest number of local searches, and the smallest number that run to convergence.
const MIN_STARTS: usize = 12;
const MIN_CONVERGED: usize = 4;
/// The number of points checked in one pass between a start and an end. Every local search gets one pass, the best
/// searches up to `MAX_PASSES`.
const CUTS: usize = 7;
const MAX_PASSES: usize = 3;
/// Random steps: the number of rounds; the steps per round of all ends together, at an effort of 1; the bounds on the
/// steps of one end; the period of steps in a free direction; the number of best steps per end that are checked.
const ROUNDS: usize = 16;
const N_STEPS: f64 = 72.0;
const STEPS_OF_ONE: (f64, f64) = (12.0, 18.0);
const FREE_STEP_EVERY: usize = 3;
const MAX_CHECKED_STEPS: usize = 12;
/// Changes of single discrete coordinates are tried every N rounds.
const SWEEP_EVERY: usize = 4;
/// The length of the first steps, its factor after an accepted step, and its factor after a round without one.
const FIRST_LENGTH: f64 = 0.1;
const LONGER: f64 = 1.5;
const SHORTER: f64 = 0.35;

/// The rules for the members of a domain that a search may return.
#[derive(Debug, Clone, Copy)]
pub struct Allowed<'a> {
    pub excluded: &'a Excluded,
    pub feasible: Feasible<'a>,
    /// Present if and only if there are constraints.
    pub pool: Option<&'a Pool>,
}

/// The best feasible member that the search finds. The rows of `best_observed` must be feasible; the other arguments
/// are as in [`super::maximize`].
pub(super) fn best_feasible(
    objective: &mut dyn Objective,
    domain: &Domain,
    best_observed: ArrayView2<f64>,
    effort: f64,
    (allowed, pool): (Allowed, &Pool),
    rng: &mut Rng,
    stop: &mut Stop,
) -> Result<Argmax> {
    let Domain::Box(product) = domain else {
        return Err(Error::InvalidSetting {
            name: "constraints",
            got: "functions".into(),
            expected: "candidates do not support constraints; leave out the rows that violate them",
        });
    };
    let (none, excluded) = (Excluded::default(), allowed.excluded);
    let found = if pool.is_complete() {
        let is_left = |x: ArrayView1<f64>| !excluded.contains_member(product, &x.to_vec());
        let any_left = pool.points().rows().into_iter().any(is_left);
        let skip = |x: ArrayView1<f64>| any_left && !is_left(x);
        exhaustive::best_row(objective, pool.points(), &skip, rng, stop)?
    } else {
        let mut plan = Plan::new(product, effort, false)?;
        // A boundary has many narrow maxima, so these smallest numbers apply at every effort.
        plan.n_starts = plan.n_starts.max(MIN_STARTS);
        plan.n_converged = plan.n_converged.max(MIN_CONVERGED);
        // The pool replaces the spread points that are expected to violate the constraints.
        plan.n_even = (plan.n_even as f64 * pool.share()) as usize + MIN_SPREAD;
        let spread = starting_points(domain, product, best_observed, &plan, rng);
        let n_unknown = spread.nrows();
        let points = concatenate![Axis(0), spread, pool.points(), best_observed];
        let search = Search::new(objective, product, &none, stop);
        let mut search = Constrained {
            search,
            domain,
            excluded,
            feasible: allowed.feasible,
        };
        search.run(&points, n_unknown, &plan, effort, rng)?
    };
    Ok(match found {
        Some(found) => Argmax {
            index: None,
            ..found
        },
        None => Argmax {
            point: pool.sample_left(domain, allowed.feasible, excluded, rng, stop)?,
            index: None,
            value: f64::NAN,
        },
    })
}

/// A member and its value; `cut` if its segment was cut by the constraints.
#[derive(Debug, Clone)]
struct End {
    x: Vec<f64>,
    value: f64,
    cut: bool,
}

/// The segment from an allowed member to the end of its local search.
struct Segment {
    start: End,
    end: Vec<f64>,
    value: f64,
}

struct Constrained<'a, 's> {
    search: Search<'a, 's>,
    domain: &'a Domain,
    excluded: &'a Excluded,
    feasible: Feasible<'a>,
}

impl Constrained<'_, '_> {
    /// The best allowed member among the points and the ends of searches from them, if any. Points from row `n_unknown`
    /// on are known to be feasible.
    fn run(
        &mut self,
        points: &Array2<f64>,
        n_unknown: usize,
        plan: &Plan,
        effort: f64,
        rng: &mut Rng,
    ) -> Result<Option<Argmax>> {
        let mut values = self.search.score(points.view())?;
        let mut order: Vec<usize> = (0..values.len())
            .filter(|&i| values[i].is_finite())
            .collect();
        order.sort_by(|&i, &j| values[j].total_cmp(&values[i]));
        self.search.set_scale(&values, &order);

        let unknown = order.iter().copied().filter(|&i| i < n_unknown);
        let mut unknown: Vec<usize> = unknown.take(MAX_CHECKED_STARTS).collect();
        let n_best = unknown.len();
        let others = (0..n_unknown.min(MAX_CHECKED_SPREAD)).filter(|i| !unknown.contains(i));
        let others: Vec<usize> = others.collect();
        unknown.extend(others);
        let mut allowed: Vec<bool> = (0..values.len())
            .map(|i| i >= n_unknown && !self.is_excluded(points.row(i)))
            .collect();
        let checked = self.allowed(points.select(Axis(0), &unknown).view())?;
        let mut outside = Vec::new();
        let mut n_outside_best = 0;
        for (k, (i, passed)) in unknown.into_iter().zip(checked).enumerate() {
            allowed[i] = passed;
            n_outside_best += usize::from(!passed && k < n_best);
            if !passed && (k >= n_best || n_outside_best <= MAX_SEGMENTS_TO_BEST) {
                outside.push(i);
            }
        }
        order.retain(|&i| allowed[i]);
        // The maximum is often on the boundary, but very few of the points are.
        let boundary = self.on_boundary(points, &order, &outside)?;
        let scored = self.search.score(boundary.view())?;
        let points = &concatenate![Axis(0), points.view(), boundary];
        order.extend(values.len()..values.len() + scored.len());
        values.extend(scored);
        order.retain(|&i| values[i].is_finite());
        order.sort_by(|&i, &j| values[j].total_cmp(&values[i]));

        let mut starts = distinct(points, &order, plan.n_starts);
        (self.search).add_combinations(&mut starts, points, &order, plan.n_combinations);
        let mut segments = Vec::with_capacity(starts.len());
        for i in starts {
            check(self.search.stop)?;
            let (x, value) = (points.row(i).to_vec(), values[i]);
            let (end, reached) =
                (self.search).local_search(x.clone(), value, true, &plan.coarse)?;
            segments.push(Segment::new(x, value, end, reached));
        }
        let mut ends = self.last_allowed(segments, 1)?;
        ends.sort_by(|a, b| b.value.total_cmp(&a.value));

        let mut segments: Vec<Segment> = Vec::new();
        for End { x, value, cut } in ends {
            if segments.len() >= plan.n_converged {
                break;
            }
            if segments
                .iter()
                .all(|segment| distance(&segment.start.x, &x) >= SAME_END)
            {
                check(self.search.stop)?;
                // Use the coarse tolerance once the path leaves the feasible set.
                let tolerance = if cut { &plan.coarse } else { &plan.fine };
                let (end, reached) =
                    (self.search).local_search(x.clone(), value, false, tolerance)?;
                segments.push(Segment::new(x, value, end, reached));
            }
        }
        let mut ends = self.last_allowed(segments, MAX_PASSES)?;
        self.random_steps(&mut ends, effort, rng)?;
        let best = ends
            .into_iter()
            .max_by(|a, b| a.value.total_cmp(&b.value))
            .map(|best| Argmax {
                point: best.x,
                index: None,
                value: best.value,
            });
        Ok(best)
    }

    /// An allowed point near the boundary for each of the points `outside`, by bisection of the segment from the
    /// nearest point `inside`.
    fn on_boundary(
        &self,
        points: &Array2<f64>,
        inside: &[usize],
        outside: &[usize],
    ) -> Result<Array2<f64>> {
        let squared = |i: usize, j: usize| -> f64 {
            let differences = points.row(i).into_iter().zip(points.row(j));
            differences.map(|(a, b)| (a - b) * (a - b)).sum()
        };
        let nearest = |o: usize| {
            let inside = inside.iter().copied();
            inside.min_by(|&i, &j| squared(i, o).total_cmp(&squared(j, o)))
        };
        let starts: Vec<usize> = outside.iter().filter_map(|&o| nearest(o)).collect();
        let mut allowed = points.select(Axis(0), &starts);
        let mut beyond = points.select(Axis(0), &outside[..starts.len()]);
        for _ in 0..BISECTIONS {
            let mut middle = 0.5 * (&allowed + &beyond);
            for mut row in middle.rows_mut() {
                let mut x = row.to_vec();
                self.domain.snap(&mut x);
                row.assign(&ArrayView1::from(&x));
            }
            for (i, passed) in self.allowed(middle.view())?.into_iter().enumerate() {
                let end = if passed { &mut allowed } else { &mut beyond };
                end.row_mut(i).assign(&middle.row(i));
            }
        }
        Ok(allowed)
    }

    fn is_excluded(&self, x: ArrayView1<f64>) -> bool {
        !self.excluded.is_empty()
            && (self.excluded).contains_member(self.search.product, &x.to_vec())
    }

    fn allowed(&self, rows: ArrayView2<f64>) -> Result<Vec<bool>> {
        let mut allowed = self.feasible.of_rows(rows)?;
        for (row, allowed) in rows.rows().into_iter().zip(&mut allowed) {
            *allowed = *allowed && !self.is_excluded(row);
        }
        Ok(allowed)
    }

    /// Returns the end of each segment if it is allowed, else the last allowed point before the first point that is
    /// not, located in `passes` passes. Returns the start if it is better.
    fn last_allowed(&mut self, mut segments: Vec<Segment>, passes: usize) -> Result<Vec<End>> {
        let width = self.domain.width();
        let mut rows = Array2::zeros((segments.len(), width));
        for (segment, mut row) in segments.iter_mut().zip(rows.rows_mut()) {
            self.domain.snap(&mut segment.end);
            row.assign(&ArrayView1::from(&segment.end));
        }
        let reached = self.allowed(rows.view())?;
        // Fractions of the segment: the first one is allowed, the second one is not.
        let mut cut: Vec<(usize, f64, f64)> = (0..segments.len())
            .filter(|&i| !reached[i])
            .map(|i| (i, 0.0, 1.0))
            .collect();
        let mut last: Vec<Option<Vec<f64>>> = vec![None; segments.len()];
        for _ in 0..passes {
            check(self.search.stop)?;
            let mut rows = Array2::zeros((cut.len() * CUTS, width));
            for (k, mut row) in rows.rows_mut().into_iter().enumerate() {
                let (i, low, high) = cut[k / CUTS];
                let share = low + (high - low) * (k % CUTS + 1) as f64 / (CUTS + 1) as f64;
                let ends = segments[i].start.x.iter().zip(&segments[i].end);
                let mut x: Vec<f64> = ends.map(|(a, b)| a + share * (b - a)).collect();
                self.domain.snap(&mut x);
                row.assign(&ArrayView1::from(&x));
            }
            let allowed = self.allowed(rows.view())?;
            for (k, (i, low, high)) in cut.iter_mut().enumerate() {
                let own = k * CUTS..(k + 1) * CUTS;
                let n = allowed[own.clone()].iter().take_while(|a| **a).count();
                if n > 0 {
                    last[*i] = Some(rows.row(own.start + n - 1).to_vec());
                }
                let step = (*high - *low) / (CUTS + 1) as f64;
                *low += n as f64 * step;
                *high = *low + step;
            }
        }
        let scored: Vec<usize> = (0..segments.len()).filter(|&i| last[i].is_some()).collect();
        let rows: Vec<f64> = scored
            .iter()
            .flat_map(|&i| last[i].clone())
            .flatten()
            .collect();
        let values = self.search.score(as_rows(rows, width)?.view())?;
        let mut values = values.into_iter();
        let ends = segments.into_iter().zip(last).zip(reached);
        Ok(ends
            .map(|((segment, last), reached)| {
                let (x, value) = match last {
                    _ if reached => (segment.end, segment.value),
                    Some(x) => (x, values.next().unwrap_or(f64::NAN)),
                    None => return segment.start,
                };
                let end = End {
                    x,
                    value,
                    cut: !reached,
                };
                if end.value >= segment.start.value {
                    end
                } else {
                    segment.start
                }
            })
            .collect())
    }

    /// Improves ends by random steps to better allowed members. Without discrete coordinates, only ends that the
    /// constraints have cut are improved.
    fn random_steps(&mut self, ends: &mut [End], effort: f64, rng: &mut Rng) -> Result<()> {
        let (least, most) = STEPS_OF_ONE;
        let n_steps = (N_STEPS * effort / ends.len() as f64).clamp(least, most) as usize;
        let mut lengths = vec![FIRST_LENGTH; ends.len()];
        let mut uphill: Vec<Option<Vec<f64>>> = vec![None; ends.len()];
        for round in 0..ROUNDS {
            check(self.search.stop)?;
            let (mut rows, mut owners) = (Vec::new(), Vec::new());
            for (k, end) in ends.iter().enumerate() {
                let before = rows.len();
                if round % SWEEP_EVERY == 0 {
                    self.push_other_levels(&end.x, &mut rows);
                }
                if end.cut {
                    let direction = uphill[k].get_or_insert_with(|| self.uphill(&end.x));
                    for step in 0..n_steps {
                        let length = lengths[k];
                        match step % FREE_STEP_EVERY {
                            0 => self.push_free_step(&end.x, length, rng, &mut rows),
                            _ => self.push_step_across(&end.x, direction, length, rng, &mut rows),
                        }
                    }
                }
                let n = (rows.len() - before) / self.domain.width();
                owners.extend(std::iter::repeat_n(k, n));
            }
            if owners.is_empty() {
                continue;
            }
            let rows = as_rows(rows, self.domain.width())?;
            let values = self.search.score(rows.view())?;
            let mut better: Vec<usize> = Vec::new();
            for (k, end) in ends.iter().enumerate() {
                let least = end.value + 1e-9 * self.search.scale;
                let own = (0..owners.len()).filter(|&i| owners[i] == k && values[i] > least);
                let mut own: Vec<usize> = own.collect();
                own.sort_by(|&i, &j| values[j].total_cmp(&values[i]));
                better.extend(own.into_iter().take(MAX_CHECKED_STEPS));
            }
            let allowed = self.allowed(rows.select(Axis(0), &better).view())?;
            let mut moved = vec![false; ends.len()];
            for (i, allowed) in better.into_iter().zip(allowed) {
                let k = owners[i];
                if allowed && !moved[k] {
                    moved[k] = true;
                    // From now on further steps start at this end, even if it was a local maximum.
                    ends[k] = End {
                        x: rows.row(i).to_vec(),
                        value: values[i],
                        cut: true,
                    };
                    uphill[k] = None;
                }
            }
            for (length, moved) in lengths.iter_mut().zip(moved) {
                *length = (*length * if moved { LONGER } else { SHORTER }).min(FIRST_LENGTH);
            }
        }
        Ok(())
    }

    /// The direction of the projected gradient over the continuous coordinates; zero if the projection is zero.
    fn uphill(&mut self, x: &[f64]) -> Vec<f64> {
        let mut gradient = vec![0.0; x.len()];
        self.search.objective.value_and_gradient(x, &mut gradient);
        let mut direction = vec![0.0; x.len()];
        for (coordinate, at) in columns(self.search.product) {
            let g = gradient[at.start];
            let leaves = (x[at.start] >= 1.0 && g > 0.0) || (x[at.start] <= 0.0 && g < 0.0);
            if *coordinate == Coordinate::Continuous && g.is_finite() && !leaves {
                direction[at.start] = g;
            }
        }
        normalise(&mut direction);
        direction
    }

    /// A step in a random direction, of about this length in every numerical coordinate.
    fn push_free_step(&self, x: &[f64], length: f64, rng: &mut Rng, rows: &mut Vec<f64>) {
        let mut y = x.to_vec();
        for (coordinate, at) in columns(self.search.product) {
            match coordinate {
                Coordinate::Categorical { n } => {
                    if rng.random::<f64>() < 0.1 {
                        coordinate.write(rng.random_range(0..*n as u64), &mut y[at]);
                    }
                }
                _ => y[at.start] += length * rng.sample::<f64, _>(StandardNormal),
            }
        }
        self.domain.snap(&mut y);
        rows.extend(y);
    }

    /// A step of this length orthogonal to the uphill direction, plus a small part along it, because the better
    /// feasible points near a boundary are in a narrow wedge.
    fn push_step_across(
        &self,
        x: &[f64],
        uphill: &[f64],
        length: f64,
        rng: &mut Rng,
        rows: &mut Vec<f64>,
    ) {
        let mut across = vec![0.0; x.len()];
        for (coordinate, at) in columns(self.search.product) {
            if *coordinate == Coordinate::Continuous {
                across[at.start] = rng.sample(StandardNormal);
            }
        }
        let along: f64 = across.iter().zip(uphill).map(|(a, u)| a * u).sum();
        for (a, u) in across.iter_mut().zip(uphill) {
            *a -= along * u;
        }
        normalise(&mut across);
        // The shares cover three orders of magnitude, so that some steps hit narrow wedges.
        let share = libm::pow(10.0, -3.0 * rng.random::<f64>());
        let step = across
            .iter()
            .zip(uphill)
            .map(|(a, u)| length * (a + share * u));
        let mut y: Vec<f64> = x.iter().zip(step).map(|(x, s)| x + s).collect();
        self.domain.snap(&mut y);
        rows.extend(y);
    }

    /// Appends changes of single discrete coordinates.
    fn push_other_levels(&self, x: &[f64], rows: &mut Vec<f64>) {
        for (coordinate, at) in columns(self.search.product) {
            if let Some(levels) = coordinate.levels() {
                for index in other_levels(coordinate, levels, coordinate.index(&x[at.clone()])) {
                    let mut y = x.to_vec();
                    coordinate.write(index, &mut y[at.clone()]);
                    self.domain.snap(&mut y);
                    rows.extend(y);
                }
            }
        }
    }
}

impl Segment {
    fn new(x: Vec<f64>, value: f64, end: Vec<f64>, reached: f64) -> Self {
        let cut = true;
        Self {
            start: End { x, value, cut },
            end,
            value: reached,
        }
    }
}

/// Scales to length one, unless the direction is zero.
fn normalise(direction: &mut [f64]) {
    let length = direction.iter().map(|u| u * u).sum::<f64>().sqrt();
    if length > 0.0 {
        direction.iter_mut().for_each(|u| *u /= length);
    }
}

#[cfg(test)]
mod tests;
