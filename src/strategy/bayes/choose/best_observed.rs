//! The best observed points. The search of a box also starts around the best observed points.

use ndarray::{Array2, Axis};

use crate::error::Result;
use crate::ledger::{TrialNumber, View};
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
