//! The best observed points. The search of a box also starts around the best observed points.

use ndarray::{Array2, Axis};

use crate::error::Result;
use crate::ledger::{TrialNumber, View};
use crate::numerics::hypervolume::non_dominated;
use crate::numerics::order::best_first;
use crate::problem::Domain;
use crate::strategy::Query;

/// The maximum number of best observed points.
const MAX_BEST_OBSERVED: usize = 5;

/// Returns the points of the searched domain nearest to the rows with the best targets, best first. Under constraints,
/// only feasible points are returned. If outcomes have bounds, the trials within all bounds come first.
pub fn best_observed(
    domain: &Domain,
    log: View,
    rows: &[TrialNumber],
    targets: &[f64],
    query: Query,
) -> Result<Array2<f64>> {
    let feasible = query.feasible_members();
    let mut order = best_first(targets);
    if log.log.has_bounds() {
        // The maximum lies near the best points within the bounds or, if there are none, near the smallest violations.
        let violations = log.log.violations();
        order.sort_by(|&i, &j| violations[rows[i]].total_cmp(&violations[rows[j]]));
    }
    if let Some(objectives) = log.log.problem().front() {
        // The maximum lies near the front.
        order = front_first(log, rows, &order, &objectives);
    }
    if !feasible.is_constrained() {
        order.truncate(MAX_BEST_OBSERVED);
    }
    let mut points = Array2::zeros((order.len(), domain.width()));
    for (mut point, row) in points.rows_mut().into_iter().zip(order) {
        let mut x = match query.restriction() {
            None => log.x(rows[row]).to_vec(),
            Some(restriction) => restriction.nearest(log.x(rows[row])),
        };
        // The row may lie beyond a bound or between steps.
        if let Domain::Box(product) = domain {
            product.snap(&mut x);
        }
        point.iter_mut().zip(x).for_each(|(p, x)| *p = x);
    }
    let order: Vec<usize> = (0..points.nrows()).collect();
    let kept = feasible.first(MAX_BEST_OBSERVED, &order, points.view())?;
    Ok(points.select(Axis(0), &kept))
}

/// The rows in this order, after rows that are spread over the front of the observed values.
fn front_first(
    log: View,
    rows: &[TrialNumber],
    order: &[usize],
    objectives: &[usize],
) -> Vec<usize> {
    let value = |row: usize, outcome: usize| log.log.outcome(outcome).of(rows[row]).value();
    let is_known = |&&row: &&usize| objectives.iter().all(|o| value(row, *o).is_some());
    let known: Vec<usize> = order.iter().filter(is_known).copied().collect();
    let shape = (known.len(), objectives.len());
    let values = Array2::from_shape_fn(shape, |(k, o)| {
        value(known[k], objectives[o]).unwrap_or(f64::NEG_INFINITY)
    });
    let mut front = non_dominated(values.view());
    front.sort_by(|&i, &j| values[[j, 0]].total_cmp(&values[[i, 0]]));
    let n = front.len();
    // Both ends come first, then the middle, then the others.
    let places = [0, n.saturating_sub(1), n / 2, n / 4, 3 * n / 4];
    let mut found: Vec<usize> = Vec::new();
    let spread = places.iter().filter_map(|place| front.get(*place));
    for row in spread.map(|k| known[*k]).chain(order.iter().copied()) {
        if !found.contains(&row) {
            found.push(row);
        }
    }
    found
}
