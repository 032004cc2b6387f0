//! The choice of the units of the curves: values as reported, or a [`Warp`] of them.
//!
//! In many searches, some curves end far below the others, for example at chance level. In the reported units these
//! curves determine the covariance, and forecasts of good curves are much too uncertain.

use super::Curve;
use super::covariance::Kernel;
use super::table::{Table, complete_curves, grid};
use crate::error::{Result, Stop};
use crate::numerics::warp::Warp;

/// The number of steps with which the units are compared.
const STEPS: usize = 12;

/// A value of a curve diverges if it is further below the knee than a diverging target, by this factor. The early values
/// of all curves may be far below their last values.
const FURTHER: f64 = 100.0;

/// The smallest difference of the log evidence that counts, so that few curves do not choose a warp by chance.
const CLEAR: f64 = 3.0;

/// Returns the warp with the largest evidence, or `None` if the evidence for a warp is not clear. Also returns the kernel
/// of the residuals in these units on a small grid.
///
/// The knee is the median of the last values of ended curves, and the widths equal the widths of the warp of targets. The
/// evidence is the density of all reports in the reported units. It is the evidence of the differences y(t) − y(T) in
/// the units of the warp, the normal density of the last values, and Σ log t′(y) over the reports.
pub fn choose(
    curves: &[&Curve],
    last_step: u32,
    stop: &mut Stop,
) -> Result<(Option<Warp>, Option<Kernel>)> {
    let (curves, finals): (Vec<&Curve>, Vec<f64>) = complete_curves(curves, last_step).unzip();
    let proposals = Warp::proposals(&finals, &vec![1.0; finals.len()]);
    let Some(first) = proposals.first() else {
        return Ok((None, None));
    };
    let lowest = first.knee - FURTHER * (first.knee - first.diverging);
    // The other steps are not used.
    let steps = grid(&curves, last_step, STEPS);
    let is_kept = |(t, _): &&(u32, f64)| *t == last_step || steps.contains(t);
    let kept = |curve: &&Curve| curve.iter().filter(is_kept).copied().collect();
    let kept: Vec<Vec<(u32, f64)>> = curves.iter().map(kept).collect();
    let kept: Vec<&Curve> = kept.iter().map(Vec::as_slice).collect();
    let bounded = |warp| Warp {
        diverging: lowest,
        limit: lowest,
        ..warp
    };
    let Some((plain, kernel)) = evidence(&kept, last_step, None, None, stop)? else {
        return Ok((None, None));
    };
    let mut best = (plain + CLEAR, None, kernel);
    for warp in proposals.into_iter().map(bounded) {
        let found = evidence(&kept, last_step, Some(warp), Some(&best.2), stop)?;
        if let Some((found, kernel)) = found
            && found > best.0
        {
            best = (found, Some(warp), kernel);
        }
    }
    Ok((best.1, Some(best.2)))
}

/// Returns the evidence of the units and the kernel, or `None` with too few curves.
fn evidence(
    curves: &[&Curve],
    last_step: u32,
    warp: Option<Warp>,
    similar: Option<&Kernel>,
    stop: &mut Stop,
) -> Result<Option<(f64, Kernel)>> {
    let Some(table) = Table::of(curves, last_step, warp, STEPS) else {
        return Ok(None);
    };
    let (n, k) = table.residuals.dim();
    let (n, k) = (n as f64, k as f64);
    let moments = table.moments();
    let kernel = Kernel::fit(&table.steps, last_step, moments.view(), n, similar, stop)?;
    let of_differences = kernel.log_evidence(moments.view(), n, &mut [0.0; 4]);
    let mean = table.lasts.iter().sum::<f64>() / n;
    let squares = table.lasts.iter().map(|z| (z - mean).powi(2));
    let variance = squares.sum::<f64>() / n + 1e-6;
    let of_finals = -0.5 * n * ((std::f64::consts::TAU * variance).ln() + 1.0);
    let in_reported = table.log_slopes - n * (k + 1.0) * table.units.scale.ln();
    Ok(Some((of_differences + of_finals + in_reported, kernel)))
}
