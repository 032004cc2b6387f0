//! Minimisation over a box by L-BFGS-B, with the crate `basin`.
//!
//! Notation: d is the number of coordinates, l ≤ x ≤ u, f is the objective, and g is its gradient. Bounds may be
//! infinite. Coordinates with l = u are fixed, and the solver receives only the free coordinates, in the units of
//! [`Scaling`].

use std::cell::RefCell;
use std::convert::Infallible;

use basin::{
    BoxBounds, ConstraintDescription, ConstraintSet, Constraints, CostFunction, Executor,
    FirstOrderState, Gradient, Lbfgsb,
};

/// Stopping criteria, any of which stops the solver.
#[derive(Clone, Debug, PartialEq)]
pub struct Tolerance {
    /// The threshold for the largest absolute entry of the projected gradient.
    pub projected_gradient: f64,
    /// The threshold for the relative reduction (f_old − f_new) / max(|f_old|, |f_new|, 1) in one iteration.
    pub relative_reduction: f64,
    /// The largest number of iterations. An iteration takes at most twenty evaluations, and usually one.
    pub max_iterations: u64,
}

/// The units of the coordinates. Fewer evaluations suffice if one unit of every coordinate changes f by a similar
/// amount.
#[derive(Clone, Copy, Debug)]
pub struct Scaling<'a> {
    /// The unit of each coordinate (d,). If `units` is empty, all units are 1.
    pub units: &'a [f64],
    /// The largest change of a coordinate in the first step, in units. If all bounds are finite, the first step of
    /// L-BFGS-B is −g, which may lead far away from the minimum.
    pub first_step: f64,
}

impl Scaling<'_> {
    /// All units are 1, and the first step is not limited.
    pub const NONE: Scaling<'static> = Scaling {
        units: &[],
        first_step: f64::INFINITY,
    };
}

/// Minimises `f` over [lower, upper] from `x0` with L-BFGS-B. `f(x, gradient)` fills the gradient and returns the
/// value.
///
/// Returns the best evaluated point and its value. `x0` is first clipped to the bounds. A non-finite value counts as
/// +∞, and the line search then shortens its step. If the value at `x0` is not finite, (x0, +∞) is returned after one
/// evaluation.
pub fn minimize(
    f: &mut dyn FnMut(&[f64], &mut [f64]) -> f64,
    x0: &[f64],
    lower: &[f64],
    upper: &[f64],
    tolerance: &Tolerance,
) -> (Vec<f64>, f64) {
    minimize_scaled(f, x0, lower, upper, tolerance, Scaling::NONE)
}

/// Minimises `f` as [`minimize`] does, over the coordinates x_i/unit_i, to which the tolerance of the projected
/// gradient applies. The solver receives a multiple c·f that limits the first step.
pub fn minimize_scaled(
    f: &mut dyn FnMut(&[f64], &mut [f64]) -> f64,
    x0: &[f64],
    lower: &[f64],
    upper: &[f64],
    tolerance: &Tolerance,
    scaling: Scaling,
) -> (Vec<f64>, f64) {
    // `clamp` would panic on inverted bounds.
    let start: Vec<f64> = x0
        .iter()
        .zip(lower)
        .zip(upper)
        .map(|((&x, &l), &u)| x.max(l).min(u.max(l)))
        .collect();
    let free: Vec<usize> = (0..start.len()).filter(|&i| upper[i] > lower[i]).collect();
    let restrict = |full: &[f64]| -> Vec<f64> { free.iter().map(|&i| full[i]).collect() };

    let evaluations = RefCell::new(Evaluations {
        f,
        lower,
        upper,
        x: start.clone(),
        gradient: vec![0.0; start.len()],
        best: start.clone(),
        best_value: f64::INFINITY,
        best_gradient: vec![0.0; start.len()],
    });
    let mut slope = vec![0.0; free.len()];
    let first = evaluations
        .borrow_mut()
        .evaluate(&free, &restrict(&start), &mut slope);
    let movable = slope.iter().any(|g| *g != 0.0);
    if first.is_finite() && movable && tolerance.max_iterations > 0 {
        let unit = |i: usize| scaling.units.get(i).copied().unwrap_or(1.0);
        let units: Vec<f64> = free.iter().map(|&i| unit(i)).collect();
        let scaled =
            |full: &[f64]| -> Vec<f64> { free.iter().map(|&i| full[i] / unit(i)).collect() };
        let mut steepest: f64 = 0.0;
        for ((s, u), &i) in slope.iter_mut().zip(&units).zip(&free) {
            *s = (*s * u).clamp(-f64::MAX, f64::MAX);
            let at_bound = start[i] == if *s > 0.0 { lower[i] } else { upper[i] };
            steepest = steepest.max(if at_bound { 0.0 } else { s.abs() });
        }
        let factor = (scaling.first_step / steepest).min(1.0);
        slope.iter_mut().for_each(|s| *s *= factor);
        let problem = Problem {
            lower: scaled(lower),
            upper: scaled(upper),
            units,
            factor,
            first: RefCell::new(Some((factor * first, slope))),
            free: &free,
            evaluations: &evaluations,
        };
        // The solver panics on NaN and on negative thresholds.
        let threshold = |t: f64| {
            if t > 0.0 {
                (factor * t).min(f64::MAX)
            } else {
                0.0
            }
        };
        let solver = Lbfgsb::new()
            .with_absolute_projected_gradient_tolerance(threshold(tolerance.projected_gradient))
            .with_relative_cost_reduction_tolerance(threshold(tolerance.relative_reduction));
        // The best evaluated point is returned even if the solver stops with an error.
        let _ = Executor::new(problem, solver, FirstOrderState::new(scaled(&start)))
            .max_iter(tolerance.max_iterations)
            .run();
    }
    let evaluations = evaluations.into_inner();
    (evaluations.best, evaluations.best_value)
}

/// The objective with its buffers, and the best evaluated point.
struct Evaluations<'a> {
    f: &'a mut dyn FnMut(&[f64], &mut [f64]) -> f64,
    lower: &'a [f64],
    upper: &'a [f64],
    x: Vec<f64>,
    gradient: Vec<f64>,
    best: Vec<f64>,
    best_value: f64,
    best_gradient: Vec<f64>,
}

impl Evaluations<'_> {
    /// Returns f at the free coordinates `z`, and writes its gradient with respect to `z` to `slope`.
    fn evaluate(&mut self, free: &[usize], z: &[f64], slope: &mut [f64]) -> f64 {
        for (&i, &v) in free.iter().zip(z) {
            // The solver moves to a bound u by computing x + (u − x), which may differ from u by a rounding error.
            let on =
                |bound: f64| (v - bound).abs() <= 4.0 * f64::EPSILON * bound.abs().clamp(1.0, 1e9);
            self.x[i] = match (self.lower[i], self.upper[i]) {
                (l, _) if on(l) => l,
                (_, u) if on(u) => u,
                _ => v,
            };
        }
        let value = (self.f)(&self.x, &mut self.gradient);
        if !value.is_finite() {
            slope.fill(0.0);
            if !self.best_value.is_finite() {
                return f64::INFINITY;
            }
            // The line search interpolates and needs a finite value: f* + |g*ᵀ(x − x*)|, which rises as fast as f falls
            // at the best point x*. The step is then shortened by a factor of four to nine.
            let rise: f64 = free
                .iter()
                .map(|&i| self.best_gradient[i] * (self.x[i] - self.best[i]))
                .sum();
            return self.best_value + rise.abs();
        }
        for (s, &i) in slope.iter_mut().zip(free) {
            let g = self.gradient[i];
            *s = if g.is_finite() { g } else { 0.0 };
        }
        if value < self.best_value {
            self.best_value = value;
            self.best.copy_from_slice(&self.x);
            for (&i, s) in free.iter().zip(slope) {
                self.best_gradient[i] = *s;
            }
        }
        value
    }
}

/// The problem in the form that the solver expects: minimise `factor`·f over the free coordinates x_i/unit_i.
struct Problem<'a, 'f> {
    lower: Vec<f64>,
    upper: Vec<f64>,
    units: Vec<f64>,
    factor: f64,
    /// The value and gradient at the start, for the first evaluation that the solver requests.
    first: RefCell<Option<(f64, Vec<f64>)>>,
    free: &'a [usize],
    evaluations: &'a RefCell<Evaluations<'f>>,
}

impl Constraints for Problem<'_, '_> {
    type Set = ConstraintSet<BoxBounds<Vec<f64>>>;

    fn constraints(&self) -> <Self::Set as ConstraintDescription>::Borrowed<'_> {
        ConstraintSet::new().with_bounds(BoxBounds::new(Some(&self.lower), Some(&self.upper)))
    }
}

impl CostFunction for Problem<'_, '_> {
    type Param = Vec<f64>;
    type Output = f64;
    type Error = Infallible;

    fn cost(&self, x: &Vec<f64>) -> Result<f64, Infallible> {
        Ok(self.cost_and_gradient(x)?.0)
    }
}

impl Gradient for Problem<'_, '_> {
    type Gradient = Vec<f64>;

    fn gradient(&self, x: &Vec<f64>) -> Result<Vec<f64>, Infallible> {
        Ok(self.cost_and_gradient(x)?.1)
    }

    fn cost_and_gradient(&self, x: &Vec<f64>) -> Result<(f64, Vec<f64>), Infallible> {
        let mut gradient = vec![0.0; x.len()];
        let value = self.cost_and_gradient_into(x, &mut gradient)?;
        Ok((value, gradient))
    }

    fn cost_and_gradient_into(&self, x: &Vec<f64>, out: &mut Vec<f64>) -> Result<f64, Infallible> {
        if let Some((value, gradient)) = self.first.borrow_mut().take() {
            *out = gradient;
            return Ok(value);
        }
        out.resize(x.len(), 0.0);
        let z: Vec<f64> = x.iter().zip(&self.units).map(|(x, u)| x * u).collect();
        let value = self.evaluations.borrow_mut().evaluate(self.free, &z, out);
        for (g, u) in out.iter_mut().zip(&self.units) {
            *g *= self.factor * u;
        }
        Ok(self.factor * value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIGHT: Tolerance = Tolerance {
        projected_gradient: 1e-8,
        relative_reduction: 1e-15,
        max_iterations: 500,
    };

    fn rosenbrock(x: &[f64], g: &mut [f64]) -> f64 {
        g.fill(0.0);
        let mut value = 0.0;
        for i in 0..x.len() - 1 {
            let (a, b) = (1.0 - x[i], x[i + 1] - x[i] * x[i]);
            value += a * a + 100.0 * b * b;
            g[i] += -2.0 * a - 400.0 * x[i] * b;
            g[i + 1] += 200.0 * b;
        }
        value
    }

    #[test]
    fn minima_inside_and_on_the_bounds_are_found() {
        for d in [2, 10] {
            let (lower, upper) = (vec![f64::NEG_INFINITY; d], vec![f64::INFINITY; d]);
            let mut count = 0;
            let mut f = |x: &[f64], g: &mut [f64]| {
                count += 1;
                rosenbrock(x, g)
            };
            let (x, value) = minimize(&mut f, &vec![-0.5; d], &lower, &upper, &TIGHT);
            assert!(value < 1e-12, "{value}");
            assert!(x.iter().all(|v| (v - 1.0).abs() < 1e-5));
            assert!(count < 120, "{count} evaluations");
        }
        // For x₀ ≤ 0.5, the minimum is at x₁ = x₀² and has the value (1 − 0.5)².
        let (x, value) = minimize(
            &mut rosenbrock,
            &[-1.2, 1.0],
            &[-2.0, -2.0],
            &[0.5, 2.0],
            &TIGHT,
        );
        assert_eq!(x[0], 0.5);
        assert!((x[1] - 0.25).abs() < 1e-6 && (value - 0.25).abs() < 1e-10);
    }

    #[test]
    fn a_corner_is_reached_exactly_and_can_be_left() {
        let mut plane = |x: &[f64], g: &mut [f64]| {
            g.copy_from_slice(&[1.0, -3.0, 0.2]);
            x[0] - 3.0 * x[1] + 0.2 * x[2]
        };
        let (x, _) = minimize(&mut plane, &[0.3; 3], &[0.0; 3], &[1.0; 3], &TIGHT);
        assert_eq!(x, [0.0, 1.0, 0.0]);
        let (x, _) = minimize(&mut plane, &[1.0, 0.0, 1.0], &[0.0; 3], &[1.0; 3], &TIGHT);
        assert_eq!(x, [0.0, 1.0, 0.0]);
    }

    #[test]
    fn suitable_units_reduce_the_evaluations_and_do_not_change_the_minimum() {
        // The function changes over a distance of 0.02 in the first coordinate, and of 2 in the others.
        let units = [0.02, 2.0, 2.0];
        let (lower, upper) = ([0.0; 3], [1.0; 3]);
        let count = |scaling: Scaling| {
            let mut points: Vec<Vec<f64>> = Vec::new();
            let mut f = |x: &[f64], g: &mut [f64]| {
                points.push(x.to_vec());
                let z: Vec<f64> = x.iter().zip(&units).map(|(x, u)| x / u).collect();
                let centre = [15.0, 0.1, 0.7];
                let squares = |i: usize| (z[i] - centre[i]).powi(2);
                let size = 1.0 + squares(0) + squares(1) + squares(2);
                for i in 0..3 {
                    g[i] = 2.0 * (z[i] - centre[i]) / (size * units[i]);
                }
                size.ln()
            };
            let (x, value) =
                minimize_scaled(&mut f, &[0.29, 0.9, 0.4], &lower, &upper, &TIGHT, scaling);
            assert!((x[0] - 0.3).abs() < 1e-6 && (x[1] - 0.2).abs() < 1e-4 && x[2] == 1.0);
            assert!((value - 1.04f64.ln()).abs() < 1e-10);
            points
        };
        let scaling = Scaling {
            units: &units,
            first_step: 0.1,
        };
        let scaled = count(scaling);
        let moved = |i: usize| (scaled[1][i] - scaled[0][i]).abs() / units[i];
        let largest = moved(0).max(moved(1)).max(moved(2));
        assert!((largest - 0.1).abs() < 1e-12, "{largest}");
        let unscaled = count(Scaling::NONE);
        assert!(
            3 * scaled.len() < 2 * unscaled.len(),
            "{} {}",
            scaled.len(),
            unscaled.len()
        );
    }

    #[test]
    fn many_starts_end_exactly_on_the_bounds() {
        for i in 0..200 {
            let start = |k: i32| (f64::from(i) * 0.618 * f64::from(k)).fract();
            let mut skewed = |x: &[f64], g: &mut [f64]| {
                let (a, b) = (x[0] - 1.7 + 0.3 * x[1], x[1] + 0.9 - 0.2 * x[0]);
                g[0] = 2.0 * a - 0.4 * b;
                g[1] = 0.6 * a + 2.0 * b;
                a * a + b * b
            };
            let (lower, upper) = ([0.1, 0.1], [1.1, 0.7]);
            let x0 = [0.1 + start(1), 0.1 + 0.6 * start(2)];
            for units in [[1.0, 1.0], [0.3, 0.07]] {
                let scaling = Scaling {
                    units: &units,
                    first_step: 0.3,
                };
                let (x, _) = minimize_scaled(&mut skewed, &x0, &lower, &upper, &TIGHT, scaling);
                assert_eq!(x, [1.1, 0.1]);
            }
            let (x, _) = minimize(&mut skewed, &x0, &lower, &upper, &TIGHT);
            assert_eq!(x, [1.1, 0.1]);
        }
    }

    #[test]
    fn fixed_coordinates_are_unchanged_and_a_start_outside_is_clipped() {
        let mut bowl = |x: &[f64], g: &mut [f64]| {
            for (g, x) in g.iter_mut().zip(x) {
                *g = 2.0 * (x - 0.4);
            }
            x.iter().map(|x| (x - 0.4).powi(2)).sum()
        };
        let (x, _) = minimize(
            &mut bowl,
            &[0.9, 7.0, -3.0],
            &[0.9, 0.0, 0.0],
            &[0.9, 1.0, 0.2],
            &TIGHT,
        );
        assert_eq!((x[0], x[2]), (0.9, 0.2));
        assert!((x[1] - 0.4).abs() < 1e-7);
        let (x, value) = minimize(&mut bowl, &[0.3], &[0.7], &[0.7], &TIGHT);
        assert_eq!(x, [0.7]);
        assert!((value - 0.09).abs() < 1e-15);
        assert_eq!(minimize(&mut |_, _| 1.5, &[], &[], &[], &TIGHT).1, 1.5);
    }

    #[test]
    fn the_line_search_leaves_regions_with_nan_values() {
        for hole in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            // The function −log x − log(0.5 − x) is undefined for x ≥ 0.5. Its minimum is at 0.25.
            let mut barrier = |x: &[f64], g: &mut [f64]| {
                if x[0] >= 0.5 {
                    g[0] = f64::NAN;
                    return hole;
                }
                g[0] = -1.0 / x[0] + 1.0 / (0.5 - x[0]);
                -x[0].ln() - (0.5 - x[0]).ln()
            };
            let (x, value) = minimize(&mut barrier, &[0.01], &[1e-3], &[1.0], &TIGHT);
            assert!((x[0] - 0.25).abs() < 1e-6, "{x:?} {value}");
            let (x, value) = minimize(&mut barrier, &[0.8], &[1e-3], &[1.0], &TIGHT);
            assert_eq!((x[0], value), (0.8, f64::INFINITY));
        }
        let (x, value) = minimize(
            &mut |x, g| {
                g.fill(f64::NAN);
                x[0]
            },
            &[0.5, 0.5],
            &[0.0; 2],
            &[1.0; 2],
            &TIGHT,
        );
        assert_eq!((x, value), (vec![0.5, 0.5], 0.5));
    }

    #[test]
    fn a_flat_objective_costs_one_evaluation() {
        let mut count = 0;
        let mut flat = |_: &[f64], g: &mut [f64]| {
            count += 1;
            g.fill(0.0);
            3.0
        };
        let (x, value) = minimize(&mut flat, &[0.2, 0.3], &[0.0; 2], &[1.0; 2], &TIGHT);
        assert_eq!((x, value, count), (vec![0.2, 0.3], 3.0, 1));
    }

    #[test]
    fn inverted_bounds_and_invalid_tolerances_do_not_panic() {
        let odd = Tolerance {
            projected_gradient: f64::NAN,
            relative_reduction: -1.0,
            max_iterations: 50,
        };
        let mut bowl = |x: &[f64], g: &mut [f64]| {
            g[0] = 2.0 * x[0];
            x[0] * x[0]
        };
        for (x0, l, u) in [
            (f64::NAN, -1.0, 1.0),
            (0.5, 1.0, -1.0),
            (0.5, f64::NAN, 1.0),
            (0.5, -1.0, f64::INFINITY),
        ] {
            assert!(minimize(&mut bowl, &[x0], &[l], &[u], &odd).1 <= 1.0);
        }
    }
}
