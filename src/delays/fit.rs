//! The maximum of the posterior of each family, by a damped Newton method, and the weights of the families.

use ndarray::Array2;

use super::family::Family;
use super::likelihood::{
    Expansion, FAIL_LOCATION, FAIL_SPREAD, FAILS, LOCATION, NEVER, P, SPREAD, negative_log,
};
use super::records::{Cells, Records};
use crate::error::{Result, Stop, check};
use crate::numerics::cholesky::{LowerFactor, factor_in_place};

/// The bounds of θ. With a spread of 0.001, delays agree to one part in a thousand.
pub const LOWER: [f64; P] = [-60.0, -6.9, -25.0, -25.0, -60.0, -6.9];
pub const UPPER: [f64; P] = [60.0, 3.0, 25.0, 25.0, 60.0, 3.0];

/// With at least twice this number of groups for an ending, a fit starts at the maximum for a sample of about this
/// size per ending.
const SAMPLE: usize = 2048;

/// With a larger damping λ, steps are too small to change θ.
const MAX_DAMPING: f64 = 1e12;

/// The settings of a fit.
#[derive(Clone, Debug)]
pub struct Options {
    pub families: Vec<Family>,
    /// Whether weak priors are used.
    pub priors: bool,
    /// Whether some trials may never end.
    pub cure: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            families: Family::ALL.to_vec(),
            priors: true,
            cure: true,
        }
    }
}

/// A fitted family.
pub struct Fit {
    pub family: Family,
    pub theta: [f64; P],
    /// The indices of the fitted parameters.
    pub free: Vec<usize>,
    /// The negative log-posterior at θ.
    pub minimum: Expansion,
    /// The log-likelihood at θ, for times in units of the clock.
    pub log_likelihood: f64,
    /// The weight exp(−AICc/2), normalised.
    pub weight: f64,
}

impl Fit {
    /// The probabilities that a trial arrives, fails, and never ends.
    pub fn probabilities(&self) -> [f64; 3] {
        probabilities(&self.theta)
    }
}

pub fn probabilities(theta: &[f64; P]) -> [f64; 3] {
    let (never, fails) = (theta[NEVER].exp(), theta[FAILS].exp());
    let sum = 1.0 + never + fails;
    [1.0 / sum, fails / sum, never / sum]
}

/// Fits all families.
pub fn fit_families(records: &Records, options: &Options, stop: &mut Stop) -> Result<Vec<Fit>> {
    let sample = records.sample(SAMPLE);
    let mut fits = Vec::new();
    for &family in &options.families {
        fits.push(fit_family(records, sample.as_ref(), family, options, stop)?);
    }
    // AICc = −2 log L + 2k + 2k(k + 1)/(n − k − 1) (Hurvich and Tsai 1989), where n counts arrivals, and k counts the
    // parameters of the delays of arrivals and of the probabilities. The other parameters are the same in all families.
    // The denominator is at least 4, because the priors make large penalties unnecessary.
    let n = records.arrived.total();
    let criterion = |fit: &Fit| {
        let k = fit.free.iter().filter(|&&i| i < FAIL_LOCATION).count() as f64;
        let correction = k * (k + 1.0) / (n - k - 1.0).max(4.0);
        fit.log_likelihood - k - correction
    };
    let scores: Vec<f64> = fits.iter().map(criterion).collect();
    let best = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = scores.iter().map(|s| (s - best).exp()).sum();
    for (fit, score) in fits.iter_mut().zip(&scores) {
        fit.weight = (score - best).exp() / sum;
    }
    Ok(fits)
}

fn fit_family(
    records: &Records,
    sample: Option<&Records>,
    family: Family,
    options: &Options,
    stop: &mut Stop,
) -> Result<Fit> {
    let mut free = vec![LOCATION];
    if family != Family::Exponential {
        free.push(SPREAD);
    }
    if options.cure {
        free.push(NEVER);
    }
    if records.failed.len() > 0 {
        free.extend([FAILS, FAIL_LOCATION, FAIL_SPREAD]);
    }
    let on = |records, start, stop: &mut Stop| {
        let mut objective =
            |theta: &[f64; P]| negative_log(records, family, theta, &free, options.priors);
        minimize(&mut objective, start, &free, stop)
    };
    let rough = sample.unwrap_or(records);
    let mut best: Option<([f64; P], Expansion)> = None;
    for start in starts(rough, family, options) {
        let found = on(rough, start, stop)?;
        // The second start must be clearly better, so that rounding does not decide between equal maxima.
        if best
            .as_ref()
            .is_none_or(|b| found.1.value < b.1.value - 1e-9)
        {
            best = Some(found);
        }
    }
    let (mut theta, mut minimum) = best.expect("there is at least one start");
    if sample.is_some() {
        (theta, minimum) = on(records, theta, stop)?;
    }
    let likelihood = negative_log(records, family, &theta, &free, false).value;
    Ok(Fit {
        family,
        theta,
        free,
        minimum,
        log_likelihood: -likelihood - records.log_jacobian,
        weight: 0.0,
    })
}

/// Returns a start at which all trials in flight never end, and a start at which most of them arrive later.
fn starts(records: &Records, family: Family, options: &Options) -> Vec<[f64; P]> {
    let (n, lost) = (records.arrived.total(), records.censored.total());
    let mut start = [f64::NEG_INFINITY; P];
    let at = |cells: &Cells| {
        let (mean, std) = moments(cells);
        (mean, std.clamp(0.1, 3.0).ln())
    };
    (start[LOCATION], start[SPREAD]) = at(&records.arrived);
    (start[FAIL_LOCATION], start[FAIL_SPREAD]) = (0.0, 0.0);
    if records.failed.len() > 0 {
        start[FAILS] = (records.failed.total() / n).ln();
        (start[FAIL_LOCATION], start[FAIL_SPREAD]) = at(&records.failed);
    }
    if options.cure {
        start[NEVER] = ((lost + 0.5) / (n + 0.5)).ln();
    }
    if family == Family::Exponential {
        start[SPREAD] = 0.0;
    }
    if lost == 0.0 {
        return vec![start];
    }
    // The location of an exponential distribution: the log of the total time divided by the number of arrivals.
    let exposure = |cells: &Cells| -> f64 {
        cells
            .high
            .iter()
            .zip(&cells.weight)
            .map(|(x, w)| w * x.min(60.0).exp())
            .sum()
    };
    let mut later = start;
    later[LOCATION] = ((exposure(&records.arrived) + exposure(&records.censored)) / n).ln();
    if family != Family::Exponential {
        later[SPREAD] = later[SPREAD].max(0.0);
    }
    if options.cure {
        later[NEVER] = -3.0;
        vec![start, later]
    } else {
        vec![later]
    }
}

/// The mean and standard deviation of the log of delays. Intervals from 0 count as their upper end.
fn moments(cells: &Cells) -> (f64, f64) {
    let centre = |i: usize| match cells.low[i] > f64::NEG_INFINITY {
        true => 0.5 * (cells.low[i] + cells.high[i]),
        false => cells.high[i],
    };
    let total = cells.total();
    let average = |f: &dyn Fn(usize) -> f64| -> f64 {
        let sum: f64 = (0..cells.len()).map(|i| cells.weight[i] * f(i)).sum();
        sum / total
    };
    let mean = average(&centre);
    let variance = average(&|i| (centre(i) - mean).powi(2));
    (mean, variance.sqrt())
}

/// Minimises a function by Newton's method with damping (Levenberg 1944).
fn minimize(
    f: &mut dyn FnMut(&[f64; P]) -> Expansion,
    start: [f64; P],
    free: &[usize],
    stop: &mut Stop,
) -> Result<([f64; P], Expansion)> {
    let mut theta = start;
    for &i in free {
        theta[i] = theta[i].clamp(LOWER[i], UPPER[i]);
    }
    let mut here = f(&theta);
    // Widen the spread until the likelihood of the largest ages does not underflow.
    while !here.value.is_finite() && theta[SPREAD] < UPPER[SPREAD] && free.contains(&SPREAD) {
        theta[SPREAD] += 0.5;
        here = f(&theta);
    }
    let mut damping = 0.0;
    for _ in 0..200 {
        check(stop)?;
        // Coordinates at a bound stay there if the gradient points outwards.
        let moving: Vec<usize> = free
            .iter()
            .copied()
            .filter(|&i| {
                let g = here.gradient[i];
                !(theta[i] <= LOWER[i] && g > 0.0 || theta[i] >= UPPER[i] && g < 0.0)
            })
            .collect();
        let Some(step) = newton_step(&here, &moving, &mut damping) else {
            break;
        };
        let mut next = theta;
        for (&i, s) in moving.iter().zip(&step) {
            // Limit the step, because the quadratic model is useful only near θ.
            next[i] = (theta[i] + s.clamp(-3.0, 3.0)).clamp(LOWER[i], UPPER[i]);
        }
        let expected: f64 = moving
            .iter()
            .zip(&step)
            .map(|(&i, s)| -0.5 * here.gradient[i] * s)
            .sum();
        let there = f(&next);
        let converged = expected < 1e-13 * (1.0 + here.value.abs());
        if there.value.is_finite() && (there.value < here.value || !here.value.is_finite()) {
            (theta, here) = (next, there);
            damping *= 0.1;
        } else if converged {
            break;
        } else {
            damping = increased(damping);
        }
        if converged || damping > MAX_DAMPING {
            break;
        }
    }
    Ok((theta, here))
}

/// Returns −(H + λ D)⁻¹ g over some coordinates. The damping is increased until the matrix is positive definite.
fn newton_step(at: &Expansion, moving: &[usize], damping: &mut f64) -> Option<Vec<f64>> {
    let l = factor(at, moving, damping)?;
    let gradient = moving.iter().map(|&i| -at.gradient[i]).collect();
    let mut step = Array2::from_shape_vec((1, moving.len()), gradient).ok()?;
    let l = LowerFactor::of(&l);
    l.forward_substitution(step.view_mut());
    l.backward_substitution(step.view_mut());
    let step = step.into_raw_vec_and_offset().0;
    step.iter().all(|s| s.is_finite()).then_some(step)
}

/// Returns the Cholesky factor of H + λ D over some coordinates, where D is the diagonal of |H|. Increases the damping
/// λ until the matrix is positive definite.
pub fn factor(at: &Expansion, moving: &[usize], damping: &mut f64) -> Option<Array2<f64>> {
    let n = moving.len();
    let h = Array2::from_shape_fn((n, n), |(i, j)| at.hessian[moving[i]][moving[j]]);
    if n == 0 || !h.iter().all(|v| v.is_finite()) {
        return None;
    }
    while *damping <= MAX_DAMPING {
        let mut a = h.clone();
        for i in 0..n {
            a[[i, i]] += *damping * (h[[i, i]].abs() + 1e-6);
        }
        if factor_in_place(&mut a).is_ok() {
            return Some(a);
        }
        *damping = increased(*damping);
    }
    None
}

fn increased(damping: f64) -> f64 {
    (8.0 * damping).max(1e-3)
}
