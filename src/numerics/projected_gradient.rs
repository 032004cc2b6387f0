//! Minimisation over a convex set by the spectral projected gradient method (Birgin, Martínez and Raydan 2000).
//!
//! Notation: f is the objective, g is its gradient, and P(x) is the nearest point of the set. A step goes along
//! d = P(x − λ g) − x, where 1/λ is the curvature of f along the step before (Barzilai and Borwein 1988).

/// The number of earlier values of f that a new value is compared with. f may increase for some steps.
const MEMORY: usize = 10;
/// The number of iterations per iteration of a quasi-Newton method.
const ITERATIONS: u64 = 4;
/// The required decrease of f, as a share of the decrease along the tangent.
const DECREASE: f64 = 1e-4;
/// The range of λ, and the largest number of shorter steps.
const LAMBDA: (f64, f64) = (1e-12, 1e12);
const MAX_HALVINGS: usize = 30;
/// The largest change of a coordinate in the first step, and the change that counts as none.
const FIRST_STEP: f64 = 0.1;
const NO_STEP: f64 = 1e-10;

/// Minimises `f` from a point x0 of the set. `f(x, gradient)` fills the gradient and returns the value. The solver
/// stops if the decrease of f within `MEMORY` iterations falls below `accuracy`.
///
/// Returns the best evaluated point and its value.
pub fn minimize(
    f: &mut dyn FnMut(&[f64], &mut [f64]) -> f64,
    x0: &[f64],
    project: &dyn Fn(&mut [f64]),
    (accuracy, max_iterations): (f64, u64),
) -> (Vec<f64>, f64) {
    let n = x0.len();
    let (mut x, mut gradient) = (x0.to_vec(), vec![0.0; n]);
    let mut value = f(&x, &mut gradient);
    let mut best = (x.clone(), value);
    if !(value.is_finite() && gradient.iter().all(|g| g.is_finite())) {
        return (x, f64::INFINITY);
    }
    let (mut next, mut next_gradient) = (x.clone(), gradient.clone());
    let mut step = vec![0.0; n];
    let largest = gradient.iter().fold(0.0, |most: f64, g| most.max(g.abs()));
    let mut lambda = FIRST_STEP / largest.max(f64::MIN_POSITIVE);
    let mut values = vec![value];
    for _ in 0..ITERATIONS * max_iterations {
        let points = step.iter_mut().zip(&x).zip(&gradient);
        points.for_each(|((to, x), g)| *to = x - lambda * g);
        project(&mut step);
        step.iter_mut().zip(&x).for_each(|(to, x)| *to -= x);
        let slope: f64 = step.iter().zip(&gradient).map(|(d, g)| d * g).sum();
        let length = step.iter().fold(0.0, |most: f64, d| most.max(d.abs()));
        if length <= NO_STEP || slope.is_nan() || slope >= 0.0 {
            break;
        }
        let recent = &values[values.len().saturating_sub(MEMORY)..];
        let reference = recent.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (mut share, mut found) = (1.0, f64::NAN);
        for _ in 0..MAX_HALVINGS {
            let points = next.iter_mut().zip(&x).zip(&step);
            points.for_each(|((to, x), d)| *to = x + share * d);
            found = f(&next, &mut next_gradient);
            if found <= reference + DECREASE * share * slope {
                break;
            }
            // The minimum of the parabola through the value, the slope and the new value.
            let minimum = -0.5 * share * slope / ((found - value) / share - slope);
            let limits = (0.1 * share, 0.5 * share);
            share = match minimum.is_finite() {
                true => minimum.clamp(limits.0, limits.1),
                false => limits.0,
            };
        }
        let is_finite = found.is_finite() && next_gradient.iter().all(|g| g.is_finite());
        if !is_finite || found > reference {
            break;
        }
        let (mut squared, mut curvature) = (0.0, 0.0);
        for i in 0..n {
            let moved = next[i] - x[i];
            squared += moved * moved;
            curvature += moved * (next_gradient[i] - gradient[i]);
        }
        lambda = match curvature > 0.0 {
            true => (squared / curvature).clamp(LAMBDA.0, LAMBDA.1),
            false => LAMBDA.1.min(10.0 * lambda),
        };
        std::mem::swap(&mut x, &mut next);
        std::mem::swap(&mut gradient, &mut next_gradient);
        value = found;
        if value < best.1 {
            best = (x.clone(), value);
        }
        values.push(value);
        if let Some(before) = values.len().checked_sub(MEMORY + 1)
            && values[..=before]
                .iter()
                .copied()
                .fold(f64::INFINITY, f64::min)
                - best.1
                < accuracy
        {
            break;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::slsqp::testing::onto_simplex;
    use crate::numerics::slsqp::{self, Feasible};

    /// Σ c_i (x_i − z_i)² + (Σ i x_i)².
    fn quadratic(x: &[f64], gradient: &mut [f64]) -> f64 {
        let weighted = x.iter().enumerate().map(|(i, x)| i as f64 * x).sum::<f64>();
        let mut sum = weighted * weighted;
        for (i, (x, g)) in x.iter().zip(gradient).enumerate() {
            let (c, z) = (1.0 + 9.0 * (i % 3) as f64, (i as f64).sin());
            sum += c * (x - z) * (x - z);
            *g = 2.0 * c * (x - z) + 2.0 * weighted * i as f64;
        }
        sum
    }

    #[test]
    fn minimum_on_a_simplex_is_as_low_as_by_quadratic_programs() {
        for n in [2, 5, 20] {
            let start = vec![1.0 / n as f64; n];
            let feasible = Feasible {
                lower: &vec![0.0; n],
                upper: &vec![1.0; n],
                equal: &[(vec![1.0; n], 1.0)],
                at_most: &[],
            };
            let expected = slsqp::minimize(&mut quadratic, &start, &feasible, &[], (1e-14, 200));
            let project = |x: &mut [f64]| x.copy_from_slice(&onto_simplex(x));
            let found = minimize(&mut quadratic, &start, &project, (1e-14, 200));
            assert!((found.0.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            assert!(
                found.1 < expected.1 + 1e-8,
                "{n}: {} {}",
                found.1,
                expected.1
            );
        }
    }
}
