//! The refinement of θ on increasing numbers of rows, with a quasi-Newton method.
//!
//! An evaluation of the evidence costs O(n³), so the method avoids evaluations. The curvature of the log evidence per
//! row depends little on the number of rows. Therefore the Hessian is computed once, on few rows, and is then updated on
//! each level. A search stops if the Hessian predicts a small improvement.
//!
//! Notation: n is the number of rows of a level. The objective is f(p) = −2/n (log evidence + log prior) with gradient g,
//! and H is the approximate Hessian of f. For the step s = −H⁻¹g, H predicts an improvement of −n/4 gᵀs nats.

use std::ops::ControlFlow;

use ndarray::Array2;

use super::evidence::Evidence;
use super::levels::{Part, chosen};
use super::search::{COARSE, End, FINE, Problem, best};
use super::{as_row, contiguous};
use crate::error::{Result, Stop, check};
use crate::numerics::cholesky::{LowerFactor, factor_in_place};
use crate::numerics::simd::dot;

/// A search stops if the predicted improvement, in nats per row, is smaller than this number.
const NEGLIGIBLE: f64 = 2e-4;

/// A search stops after a step if the improvement agreed with the prediction, and the improvement, in nats per row, was
/// smaller than this number. A further step would improve the evidence by a small part of this number.
const SMALL: f64 = 2e-3;

/// An improvement agrees with its prediction if their relative difference is at most this number.
const AGREEMENT: f64 = 0.3;

/// The largest number of steps on a level.
const MAX_STEPS: usize = 15;

/// The largest change of an entry of p in one step. The entries of p are logarithms.
const MAX_CHANGE: f64 = 1.5;

/// The factors by which a step is multiplied in turn, until f decreases.
const FACTORS: [f64; 4] = [1.0, 0.3, 0.1, 0.01];

/// A start is dropped if its log evidence on a level is smaller than the largest log evidence by this number of nats.
const DROPPED: f64 = 10.0;

/// A large λ that is tried as a start, for noisy data.
const MUCH_NOISE: f64 = 0.05;

/// With a smaller λ, the log evidence is far from quadratic, and L-BFGS-B is used.
const LITTLE_NOISE: f64 = 1e-4;

/// The step of an entry of p in finite differences of gradients.
const DIFFERENCE: f64 = 0.2;

/// The number that is added to the diagonal of H, in units of the largest entry on the diagonal. This number limits the
/// steps in directions in which f is flat.
const LEAST_CURVATURE: f64 = 0.03;

/// Searches on each level after the coarsest level, whose rows are `coarsest`. Returns the end point on all rows.
///
/// A search on a subset of the rows may lead to a poor θ. Therefore the end point of each level is compared on the next
/// level with other starts, until the evidence of these starts is much smaller. On the first level, searches run from
/// all starts that were not dropped. A fit to few rows often ends with a small λ. The derivative d log p(y) / d log λ
/// is proportional to λ, so a search on many rows needs many steps to raise a small λ. Therefore a larger λ is also
/// tried.
pub(super) fn refine(
    problem: Problem,
    levels: &[usize],
    coarsest: &[usize],
    mut starts: Vec<Vec<f64>>,
    stop: &mut Stop,
) -> Result<Vec<f64>> {
    let few = Part::of(problem.data, coarsest);
    let mut hessian = hessian(problem.on(few.data()), &starts[0], stop)?;
    let mut tries_noise = true;
    for (i, &n) in levels[1..].iter().enumerate() {
        let part = Part::of(problem.data, &chosen(problem.data.y.len(), n));
        let problem = Problem {
            tolerance: match n < problem.data.y.len() {
                true => &COARSE,
                false => &FINE,
            },
            ..problem.on(part.data())
        };
        let mut level = Level {
            problem,
            evidence: Evidence::new(part.data()),
            last: Vec::new(),
            stop,
        };
        let mut ends: Vec<End> = Vec::with_capacity(starts.len());
        // Evaluate the first start last, because it is usually the best start, and the search needs the factor of the
        // best start.
        for start in starts.iter().rev() {
            let is_first = start == &starts[0];
            let mut noisy = problem.with_more_noise(start);
            let mut values = Vec::new();
            if (is_first && tries_noise) || (!is_first && i == 0) {
                values.extend(noisy.take().map(|p| level.end(p)).transpose()?);
            }
            let own = level.end(start.clone())?;
            if own.1 == f64::INFINITY {
                values.extend(noisy.take().map(|p| level.end(p)).transpose()?);
            }
            if is_first {
                tries_noise = values.iter().any(|(_, value)| *value < own.1 + DROPPED);
            }
            values.push(own.clone());
            ends.push(best(values).unwrap_or(own));
        }
        let Some(top) = best(ends.clone()) else {
            continue;
        };
        let first = ends.pop();
        // Without priors, the evidence often has several maxima.
        let dropped = match problem.settings.priors || i > 0 {
            true => top.1 + DROPPED,
            false => f64::INFINITY,
        };
        ends.retain(|(_, value)| *value < dropped);
        // After the first level, the end point of each level is compared only with the start of the fit.
        let others = ends.iter().take(1).map(|(start, _)| start.clone());
        let others: Vec<_> = others.collect();
        let mut searched = vec![top];
        if i == 0 {
            let first = first.into_iter().filter(|(_, value)| *value < dropped);
            searched = first.chain(ends).collect();
        }
        let noise_variance = starts[0][starts[0].len() - 1].exp();
        let ends = match problem.settings.priors && noise_variance > LITTLE_NOISE {
            true => {
                let search = |start| level.search(start, &mut hessian);
                searched.into_iter().map(search).collect::<Result<_>>()?
            }
            false => {
                let searched: Vec<_> = searched.into_iter().map(|(start, _)| start).collect();
                problem.search_all(&searched, level.stop)?
            }
        };
        let p = best(ends).map_or_else(|| starts.swap_remove(0), |(p, _)| p);
        starts = [vec![p], others].concat();
    }
    Ok(starts.swap_remove(0))
}

impl Problem<'_, '_> {
    /// Returns p with a large λ, or `None` if λ is already as large or is given.
    fn with_more_noise(&self, p: &[f64]) -> Option<Vec<f64>> {
        let last = p.len() - 1;
        let (low, high) = (self.bounds.0[last], self.bounds.1[last]);
        let mut noisy = p.to_vec();
        noisy[last] = p[last].max(MUCH_NOISE.ln()).max(low).min(high);
        (noisy[last] != p[last]).then_some(noisy)
    }
}

/// A level: the problem on a subset of the rows.
struct Level<'d, 'a, 's, 't> {
    problem: Problem<'d, 'a>,
    evidence: Evidence<'d>,
    /// The point of the last `value`, whose factor `evidence` contains.
    last: Vec<f64>,
    stop: &'s mut Stop<'t>,
}

impl Level<'_, '_, '_, '_> {
    /// Half the number of rows. Multiplying f by this unit gives nats.
    fn unit(&self) -> f64 {
        0.5 * self.problem.data.y.len() as f64
    }

    /// A start with its value.
    fn end(&mut self, p: Vec<f64>) -> Result<End> {
        let value = self.value(&p)?;
        Ok((p, value))
    }

    /// Minus the log evidence (times prior) at p.
    fn value(&mut self, p: &[f64]) -> Result<f64> {
        let Self {
            problem,
            evidence,
            stop,
            last,
        } = self;
        last.clear();
        last.extend(p);
        let mut cancelled = || stop() == ControlFlow::Break(());
        let value = problem.settings.value(evidence, p, &mut cancelled);
        check(stop)?;
        Ok(-value)
    }

    /// g at p.
    fn gradient(&mut self, p: &[f64]) -> Result<Vec<f64>> {
        if self.last != p {
            self.value(p)?;
        }
        let unit = self.unit();
        let Self {
            problem,
            evidence,
            stop,
            ..
        } = self;
        let mut gradient = vec![0.0; p.len()];
        let mut cancelled = || stop() == ControlFlow::Break(());
        let settings = problem.settings;
        settings.gradient(evidence, p, &mut gradient, &mut cancelled);
        check(stop)?;
        gradient.iter_mut().for_each(|g| *g /= -unit);
        Ok(gradient)
    }

    /// Returns the end point of a search. Updates H.
    fn search(&mut self, (mut p, mut value): End, hessian: &mut Array2<f64>) -> Result<End> {
        let n = self.problem.data.y.len() as f64;
        let mut before: Option<(Vec<f64>, Vec<f64>)> = None;
        for _ in 0..MAX_STEPS {
            let gradient = self.gradient(&p)?;
            if let Some((last_p, last_gradient)) = before {
                update(
                    hessian,
                    &difference(&p, &last_p),
                    &difference(&gradient, &last_gradient),
                );
            }
            let Some(step) = step(hessian, &p, &gradient, self.problem.bounds) else {
                break;
            };
            let predicted = -0.5 * self.unit() * dot(&gradient, &step);
            if predicted < NEGLIGIBLE * n {
                break;
            }
            let Some((next, least)) = self.decrease(&p, &step, value)? else {
                break;
            };
            before = Some((std::mem::replace(&mut p, next), gradient));
            let improvement = value - least;
            value = least;
            let agrees = (improvement - predicted).abs() < AGREEMENT * predicted;
            if predicted < SMALL * n && agrees {
                break;
            }
        }
        Ok((p, value))
    }

    /// The first point along the step at which the value is smaller than `value`, and the value at this point.
    fn decrease(&mut self, p: &[f64], step: &[f64], value: f64) -> Result<Option<(Vec<f64>, f64)>> {
        let (lower, upper) = self.problem.bounds;
        for factor in FACTORS {
            let moved = p.iter().zip(step).map(|(p, s)| p + factor * s);
            let clipped = moved
                .zip(lower)
                .zip(upper)
                .map(|((p, l), u)| p.max(*l).min(*u));
            let next: Vec<f64> = clipped.collect();
            let least = self.value(&next)?;
            if least < value {
                return Ok(Some((next, least)));
            }
        }
        Ok(None)
    }
}

/// H at p, from differences of gradients, with a positive number added to the diagonal. H is the identity if
/// derivatives are infinite.
fn hessian(problem: Problem, p: &[f64], stop: &mut Stop) -> Result<Array2<f64>> {
    let d = p.len();
    let (lower, upper) = problem.bounds;
    let mut level = Level {
        problem,
        evidence: Evidence::new(problem.data),
        last: Vec::new(),
        stop,
    };
    let mut hessian = Array2::zeros((d, d));
    if !level.value(p)?.is_finite() {
        return Ok(Array2::eye(d));
    }
    let gradient = level.gradient(p)?;
    for i in (0..d).filter(|&i| lower[i] < upper[i]) {
        let mut moved = p.to_vec();
        let change = if p[i] + DIFFERENCE > upper[i] {
            -DIFFERENCE
        } else {
            DIFFERENCE
        };
        moved[i] += change;
        if !level.value(&moved)?.is_finite() {
            continue;
        }
        let slope = difference(&level.gradient(&moved)?, &gradient);
        for (k, slope) in slope.into_iter().enumerate() {
            hessian[[i, k]] += 0.5 * slope / change;
            hessian[[k, i]] += 0.5 * slope / change;
        }
    }
    if hessian.iter().any(|h: &f64| !h.is_finite()) {
        return Ok(Array2::eye(d));
    }
    let largest = hessian.diag().iter().copied().fold(1e-3, f64::max);
    let mut added = LEAST_CURVATURE * largest;
    hessian.diag_mut().iter_mut().for_each(|h| *h += added);
    while factor_in_place(&mut hessian.clone()).is_err() {
        hessian.diag_mut().iter_mut().for_each(|h| *h += added);
        added *= 2.0;
    }
    Ok(hessian)
}

/// The step −H⁻¹g, with entries limited to `MAX_CHANGE`. Entries of p that would leave their bounds are fixed.
fn step(
    hessian: &Array2<f64>,
    p: &[f64],
    gradient: &[f64],
    (lower, upper): &(Vec<f64>, Vec<f64>),
) -> Option<Vec<f64>> {
    let d = p.len();
    let fixed = |i: usize| {
        (p[i] <= lower[i] && gradient[i] >= 0.0) || (p[i] >= upper[i] && gradient[i] <= 0.0)
    };
    let mut free = hessian.clone();
    let mut step = vec![0.0; d];
    for i in 0..d {
        if fixed(i) {
            free.row_mut(i).fill(0.0);
            free.column_mut(i).fill(0.0);
            free[[i, i]] = 1.0;
        } else {
            step[i] = -gradient[i];
        }
    }
    factor_in_place(&mut free).ok()?;
    let factor = LowerFactor::of(&free);
    let mut step = as_row(step);
    factor.forward_substitution(step.view_mut());
    factor.backward_substitution(step.view_mut());
    let mut step = contiguous(step.row(0)).to_vec();
    let largest = step
        .iter()
        .fold(MAX_CHANGE, |largest, s| s.abs().max(largest));
    step.iter_mut().for_each(|s| *s *= MAX_CHANGE / largest);
    Some(step)
}

/// The BFGS update of H for a step s that changed the gradient by y (Nocedal & Wright 2006, eq. 6.19). H is unchanged if
/// the curvature yᵀs is too small.
fn update(hessian: &mut Array2<f64>, s: &[f64], y: &[f64]) {
    let rows = hessian.rows().into_iter();
    let hs: Vec<f64> = rows.map(|row| dot(contiguous(row), s)).collect();
    let (curvature, expected) = (dot(y, s), dot(&hs, s));
    if !(curvature > 1e-3 * expected && expected > 0.0) {
        return;
    }
    for i in 0..s.len() {
        for k in 0..s.len() {
            hessian[[i, k]] += y[i] * y[k] / curvature - hs[i] * hs[k] / expected;
        }
    }
}

fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

#[cfg(test)]
mod tests {
    use super::super::fit_settings::{Draws, FitSettings};
    use super::super::kernel::{InputWarp, KernelFamily};
    use super::super::levels;
    use super::super::search::ONLY;
    use super::super::tests::wave;
    use super::*;
    use crate::gp::evidence::Data;

    #[test]
    fn refined_evidence_is_close_to_the_evidence_of_a_search_with_a_tight_tolerance() {
        let settings = FitSettings {
            family: KernelFamily::Matern52,
            groups: vec![0, 1, 2],
            categories: Vec::new(),
            descriptor_groups: Vec::new(),
            lengthscale: None,
            signal_variance: None,
            noise_variance: None,
            priors: true,
            n_restarts: 1,
            draws: Draws::Wide,
            dimensions: 3,
            spreads: vec![1.0; 3],
            input_warp: InputWarp::default(),
            warpable: Vec::new(),
        };
        let x = wave(420, 3, 1.7);
        for noise in [0.03, 0.3, 1.0] {
            let value = |(i, x): (usize, ndarray::ArrayView1<f64>)| {
                (3.0 * x[0]).sin() + x[1] * x[2] + noise * (i as f64 * 78.233).sin()
            };
            let y: Vec<f64> = x.rows().into_iter().enumerate().map(value).collect();
            let data = Data {
                x: x.view(),
                y: &y,
                noise: &[],
                about_mean: true,
            };
            let first = settings.encode(&settings.prior_mode());
            let bounds = settings.bounds(&first);
            let problem = Problem {
                data,
                settings: &settings,
                bounds: &bounds,
                tolerance: &ONLY,
            };
            let mut go_on = || ControlFlow::Continue(());
            let levels = levels::levels(420, 3);
            let coarsest = chosen(420, levels[0]);
            let part = Part::of(data, &coarsest);
            let few = problem.on(part.data());
            let ends = few.search_all(std::slice::from_ref(&first), &mut go_on);
            let starts = vec![best(ends.unwrap()).unwrap().0];
            let p = refine(problem, &levels, &coarsest, starts, &mut go_on).unwrap();
            let ends = problem.search_all(std::slice::from_ref(&p), &mut go_on);
            let least = best(ends.unwrap()).unwrap().1;
            let value = problem.value(&p, &mut || false);
            assert!(value < least + 0.002 * 420.0, "{value} {least}");
        }
    }

    #[test]
    fn an_updated_hessian_maps_the_step_to_the_change_of_the_gradient() {
        let mut hessian = ndarray::arr2(&[[2.0, 0.3], [0.3, 1.0]]);
        let (s, y) = ([0.4, -0.2], [0.5, 0.1]);
        update(&mut hessian, &s, &y);
        for (row, y) in hessian.rows().into_iter().zip(y) {
            assert!((dot(contiguous(row), &s) - y).abs() < 1e-14);
        }
        let before = hessian.clone();
        update(&mut hessian, &s, &[-0.5, 0.1]);
        assert_eq!(hessian, before);
    }

    #[test]
    fn a_step_keeps_entries_at_their_bounds_and_is_limited() {
        let hessian = ndarray::arr2(&[[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 4.0]]);
        let bounds = (vec![0.0; 3], vec![9.0; 3]);
        let found = step(&hessian, &[0.0, 1.0, 2.0], &[3.0, 0.4, -0.6], &bounds).unwrap();
        assert_eq!(found[0], 0.0);
        // The free part of the step solves [[1, 0.2], [0.2, 4]] s = (−0.4, 0.6).
        assert!((found[1] + 0.2 * found[2] + 0.4).abs() < 1e-14);
        assert!((0.2 * found[1] + 4.0 * found[2] - 0.6).abs() < 1e-14);
        let long = step(&hessian, &[1.0; 3], &[-30.0, 4.0, 6.0], &bounds).unwrap();
        let largest = long
            .iter()
            .fold(0.0, |largest: f64, s| s.abs().max(largest));
        assert!((largest - MAX_CHANGE).abs() < 1e-14);
    }
}
