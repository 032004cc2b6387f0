//! The search in a box by DIRECT, a deterministic method without gradients, to reproduce experiments of the literature.

use ndarray::ArrayView2;

use super::argmax::Argmax;
use crate::error::{Result, Stop, check};
use crate::numerics::direct;
use crate::problem::{Domain, Objective};

/// The number of evaluations between two checks of `stop`.
const EVALUATIONS: usize = 64;

/// Returns the best of about `n_evaluations` members of the box, or `None` if all values are NaN.
///
/// DIRECT divides the unit cube of all columns. The value of a point of the cube is a(x) at the nearest member x.
pub(super) fn best_centre(
    objective: &mut dyn Objective,
    domain: &Domain,
    n_evaluations: usize,
    stop: &mut Stop,
) -> Result<Option<Argmax>> {
    let width = domain.width();
    let mut best: Option<Argmax> = None;
    let (mut count, mut interrupted) = (0, Ok(()));
    let mut minimised = |x: &[f64]| {
        count += 1;
        if count % EVALUATIONS == 0 && interrupted.is_ok() {
            interrupted = check(stop);
        }
        if interrupted.is_err() {
            return f64::NAN; // the remaining evaluations are skipped
        }
        let mut point = x.to_vec();
        domain.snap(&mut point);
        let mut value = [f64::NAN];
        if let Ok(row) = ArrayView2::from_shape((1, width), &point) {
            objective.values(row, &mut value);
        }
        let [value] = value;
        if best
            .as_ref()
            .map_or(!value.is_nan(), |best| value > best.value)
        {
            best = Some(Argmax::of(point, value));
        }
        -value
    };
    direct::minimize(&mut minimised, width, n_evaluations);
    interrupted?;
    Ok(best)
}
