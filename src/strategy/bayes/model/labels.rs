//! Labels of successes and failures, or of values inside and outside bounds, and censored values at a bound.

use ndarray::{Array2, s};

use crate::error::Result;
use crate::gp::kernel::KernelFamily;
use crate::gp::{GaussianProcess, contiguous};
use crate::numerics::special::log_cdf;
use crate::strategy::bayes::acquisitions::log_inside::LogProbabilityInside;

/// The signal variance of labels.
pub(super) const SIGNAL_VARIANCE: f64 = 1.0;

/// The label of a failed trial in the model. With this label, P decreases on the way from a success to a failure, and
/// reaches ½ within the first quarter of the way. The search may choose points up to the distance at which P = ½, and
/// about a quarter of these points fail. With the label −1, about half of these points would fail.
pub(super) const FAILED: f64 = -4.25;

/// The noise variance of labels. It is small, because a trial in a failing region always fails.
pub(super) const NOISE: f64 = 1e-4;

/// The kernel. Its predictions can change quickly at the border of a region, and it still predicts failures behind the
/// border.
pub(super) const FAMILY: KernelFamily = KernelFamily::Matern32;

/// The interval of labels inside the bounds, about the prior mean of the labels, which is 1.
pub const LABEL_INSIDE: LogProbabilityInside = LogProbabilityInside {
    low: -1.0,
    high: f64::INFINITY,
};

/// The number of times that every censored target is computed from the others.
const SWEEPS: usize = 2;

/// Returns the label of each value minus the prior mean, which is 1. `outside` is the label outside the bounds, or of a
/// failed trial.
pub fn labels(is_inside: impl Iterator<Item = bool>, outside: f64) -> Vec<f64> {
    let label = |inside| if inside { 0.0 } else { outside - 1.0 };
    is_inside.map(label).collect()
}

/// The rows whose value equals a bound, each with 1 for the upper and −1 for the lower bound.
pub fn touching(values: &[Option<f64>], (low, high): (f64, f64)) -> Vec<(usize, f64)> {
    let side = |value: f64| match (value == low, value == high) {
        (false, true) => Some(1.0),
        (true, false) => Some(-1.0),
        _ => None,
    };
    let rows = values.iter().enumerate();
    rows.filter_map(|(row, value)| Some((row, side((*value)?)?)))
        .collect()
}

/// Whether most of the values that do not equal a bound occur several times, as the values of counts and flags do.
/// Steps look like noise to the model of values.
pub fn repeats(values: &[Option<f64>], (low, high): (f64, f64)) -> bool {
    let values = values.iter().flatten().copied();
    let mut others: Vec<f64> = values.filter(|y| *y != low && *y != high).collect();
    others.sort_unstable_by(f64::total_cmp);
    let runs = others.chunk_by(|a, b| a == b);
    let repeated: usize = runs.map(<[f64]>::len).filter(|n| *n > 1).sum();
    2 * repeated > others.len()
}

/// Sets the targets of the process, with the targets of some rows replaced by the mean of a latent value inside the
/// bounds. `rows` are these rows, each with the side of its bound. Their targets are the bounds.
///
/// The latent value of row i given the other targets is normal with the mean m = y_i − α_i/[A⁻¹]_ii and the variance
/// s² = 1/[A⁻¹]_ii. With the distance u of the bound from m in units of s, towards the inside, its mean below the upper
/// bound is m − s φ(u)/Φ(u).
pub fn censor(
    gp: &mut GaussianProcess,
    mut targets: Vec<f64>,
    rows: &[(usize, f64)],
) -> Result<()> {
    let n = targets.len();
    let mut inverse = Array2::zeros((rows.len(), n));
    for (k, (row, _)) in rows.iter().enumerate() {
        inverse[[k, *row]] = 1.0;
    }
    gp.factor().forward_substitution(inverse.view_mut());
    gp.factor().backward_substitution(inverse.view_mut());
    let mut alpha = gp.alpha().to_vec();
    // The values of these rows equal a bound, so their targets are the bounds.
    let bounds: Vec<f64> = rows.iter().map(|(row, _)| targets[*row]).collect();
    for _ in 0..SWEEPS {
        for (k, &(row, side)) in rows.iter().enumerate() {
            let bound = bounds[k];
            let variance = 1.0 / inverse[[k, row]];
            let (mean, std) = (targets[row] - alpha[row] * variance, variance.sqrt());
            let (_, ratio) = log_cdf(side * (bound - mean) / std);
            let change = mean - side * std * ratio - targets[row];
            targets[row] += change;
            let column = inverse.slice(s![k, ..]);
            let both = alpha.iter_mut().zip(contiguous(column));
            both.for_each(|(alpha, a)| *alpha += change * a);
        }
    }
    gp.set_targets(&targets)
}
