//! A common search of the literature, in a box: uniform points are evaluated, and then L-BFGS-B runs from other
//! uniform points.

use ndarray::{Array2, ArrayView1};

use super::argmax::Argmax;
use super::excluded::Excluded;
use super::exhaustive;
use super::scoring::Search;
use crate::error::{Result, check};
use crate::numerics::lbfgsb::Tolerance;
use crate::problem::{Domain, Objective, Product};
use crate::random::Call;

/// The tolerances of scipy's `minimize(method="L-BFGS-B")`.
const SCIPY: Tolerance = Tolerance {
    projected_gradient: 1e-5,
    relative_reduction: 2.2e-9,
    max_iterations: 15_000,
};

/// Returns the best of `n_raw` uniform points and `n_starts` end points, or `None` if all values are NaN.
pub(super) fn best_of_starts(
    objective: &mut dyn Objective,
    domain: &Domain,
    product: &Product,
    (n_raw, n_starts): (usize, usize),
    call: &mut Call,
) -> Result<Option<Argmax>> {
    let mut raw = Array2::zeros((n_raw, domain.width()));
    for mut row in raw.outer_iter_mut() {
        row.assign(&ArrayView1::from(&domain.sample_uniform(call.rng).0));
    }
    let mut best = exhaustive::best_row(objective, raw.view(), &|_| false, call)?;
    let none = Excluded::default();
    let mut search = Search::new(objective, product, &none, call.stop);
    for _ in 0..n_starts {
        check(search.stop)?;
        let start = domain.sample_uniform(call.rng).0;
        let (point, value) = search.local_search(start, f64::NEG_INFINITY, false, &SCIPY)?;
        // −∞ may stand for NaN, so it is never the best value.
        let valid = value > f64::NEG_INFINITY;
        if valid && best.as_ref().is_none_or(|best| value >= best.value) {
            best = Some(Argmax::of(point, value));
        }
    }
    Ok(best)
}
