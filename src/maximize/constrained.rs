//! The search in a box under constraints, which are checked only at the best points.
//!
//! Checks are slow, and scoring is fast. After step 1 of [`super::default_search`], the best starting points are
//! checked. The starting points include a pool of feasible members, which are not checked again. Local searches ignore
//! the constraints. If a local search ends at an infeasible point, the *segment* from its start to its end point is cut
//! at the last feasible point, and [`random_steps`] continue from there along the boundary.

mod random_steps;

use ndarray::{Array2, ArrayView1, ArrayView2, Axis, concatenate};

use super::argmax::Argmax;
use super::default_search::{Plan, SAME_END, distance, distinct};
use super::excluded::Excluded;
use super::exhaustive;
use super::feasible::{Feasible, Pool};
use super::scoring::Search;
use super::starting_points::starting_points;
use super::sweep::as_rows;
use crate::error::{Result, check, refuse};
use crate::numerics::order::best_first;
use crate::problem::{Domain, Objective};
use crate::random::{Call, Rng};

/// The smallest number of points that are spread over the box, in addition to the pool.
const MIN_SPREAD: usize = 64;
/// The number of best starting points at which the constraints are checked. Points of the pool are not checked.
const MAX_CHECKED_STARTS: usize = 96;
/// The largest number of other spread points at which the constraints are checked. Bisection moves the infeasible
/// spread points, and at most `MAX_SEGMENTS_TO_BEST` of the best infeasible starting points, to the boundary.
const MAX_CHECKED_SPREAD: usize = 192;
const MAX_SEGMENTS_TO_BEST: usize = 64;
const BISECTIONS: usize = 8;
/// The smallest numbers of short local searches and of local searches that run to convergence.
const MIN_STARTS: usize = 12;
const MIN_CONVERGED: usize = 4;
/// The number of points of a segment that are checked in one pass. Segments of short searches are checked in one pass,
/// and segments of long searches in up to `MAX_PASSES` passes.
const CUTS: usize = 7;
const MAX_PASSES: usize = 3;

/// The rules that determine which members of a domain a search may return.
#[derive(Debug, Clone, Copy)]
pub struct Allowed<'a> {
    pub excluded: &'a Excluded,
    pub feasible: Feasible<'a>,
    /// A pool of feasible members, or None without constraints.
    pub pool: Option<&'a Pool>,
}

impl<'a> Allowed<'a> {
    /// Allows all members that are not excluded.
    pub fn except(excluded: &'a Excluded) -> Self {
        Self {
            excluded,
            feasible: Feasible::EVERYWHERE,
            pool: None,
        }
    }
}

/// Returns the best feasible member that the search finds. The rows of `best_observed` must be feasible. All other
/// arguments are as in [`super::maximize`].
pub(super) fn best_feasible(
    objective: &mut dyn Objective,
    domain: &Domain,
    best_observed: ArrayView2<f64>,
    effort: f64,
    (allowed, pool): (Allowed, &Pool),
    call: &mut Call,
) -> Result<Argmax> {
    let Domain::Box(product) = domain else {
        return Err(refuse(
            "constraints",
            "functions",
            "candidates do not support constraints; leave out the rows that violate them",
        ));
    };
    let (none, excluded) = (Excluded::default(), allowed.excluded);
    let found = if pool.is_complete() {
        let is_left = |x: ArrayView1<f64>| !excluded.contains_member(product, &x.to_vec());
        let any_left = pool.points().rows().into_iter().any(is_left);
        let skip = |x: ArrayView1<f64>| any_left && !is_left(x);
        exhaustive::best_row(objective, pool.points(), &skip, call)?
    } else {
        let mut plan = Plan::new(product, effort, false)?;
        // The acquisition may have many narrow maxima on a boundary, so these minimum numbers apply at every effort.
        plan.n_starts = plan.n_starts.max(MIN_STARTS);
        plan.n_converged = plan.n_converged.max(MIN_CONVERGED);
        // The pool replaces spread points that are likely to violate the constraints.
        plan.n_even = (plan.n_even as f64 * pool.share()) as usize + MIN_SPREAD;
        let spread = starting_points(domain, product, best_observed, &plan, call.rng);
        let n_unknown = spread.nrows();
        let points = concatenate![Axis(0), spread, pool.points(), best_observed];
        let search = Search::new(objective, product, &none, call.stop);
        let mut search = Constrained {
            search,
            domain,
            excluded,
            feasible: allowed.feasible,
        };
        search.run(&points, n_unknown, &plan, effort, call.rng)?
    };
    Ok(match found {
        Some(found) => Argmax {
            index: None,
            ..found
        },
        None => Argmax {
            point: pool.sample_left(domain, allowed.feasible, excluded, call)?,
            index: None,
            value: f64::NAN,
        },
    })
}

/// A member and its value. `cut`: whether the constraints have cut the segment of the local search.
#[derive(Debug, Clone)]
struct End {
    x: Vec<f64>,
    value: f64,
    cut: bool,
}

/// The segment from an allowed member to the end point of its local search.
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
    /// Searches from the points and returns the best allowed member, or None if none is found. All rows from
    /// `n_unknown` on are known to be feasible.
    fn run(
        &mut self,
        points: &Array2<f64>,
        n_unknown: usize,
        plan: &Plan,
        effort: f64,
        rng: &mut Rng,
    ) -> Result<Option<Argmax>> {
        let mut values = self.search.score(points.view())?;
        let mut order = best_first(&values);
        order.retain(|&i| values[i].is_finite());
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
        // The maximum is often on the boundary, but few of the points are on the boundary.
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
            .map(|best| Argmax::of(best.x, best.value));
        Ok(best)
    }

    /// Returns an allowed point near the boundary for each of the points `outside`, by bisection towards the nearest
    /// point of `inside`.
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

    /// Returns one allowed point per segment: the end if allowed, and otherwise the last allowed point before the
    /// boundary or, if better, the start. `passes` passes locate the last allowed point.
    fn last_allowed(&mut self, mut segments: Vec<Segment>, passes: usize) -> Result<Vec<End>> {
        let width = self.domain.width();
        let mut rows = Array2::zeros((segments.len(), width));
        for (segment, mut row) in segments.iter_mut().zip(rows.rows_mut()) {
            self.domain.snap(&mut segment.end);
            row.assign(&ArrayView1::from(&segment.end));
        }
        let reached = self.allowed(rows.view())?;
        // A segment's number and two fractions of its length: the point at the first is allowed, and the point at the
        // second is not.
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

#[cfg(test)]
mod tests;
