//! Minimisation over the unit cube by DIRECT (Jones, Perttunen & Stuckman 1993), with the crate `basin`.
//!
//! The algorithm divides the cube into boxes and evaluates their centres, without randomness or gradients.

use std::cell::RefCell;
use std::convert::Infallible;

use basin::{
    BoxBounds, ConstraintDescription, ConstraintSet, Constraints, CostFunction, Direct, Executor,
    PointState,
};

/// Evaluates `f` at about `n_evaluations` points of [0, 1]^d, which DIRECT chooses.
///
/// The last round of divisions is always completed, which may take a few additional evaluations. The search stops early
/// when its best box is smaller than 1e-6. NaN counts as +∞. No point is returned: `f` must store the best point.
pub fn minimize<'a>(f: &'a mut Function<'a>, d: usize, n_evaluations: usize) {
    if d == 0 {
        f(&[]);
        return;
    }
    let problem = Problem {
        lower: vec![0.0; d],
        upper: vec![1.0; d],
        f: RefCell::new(f),
    };
    let n = n_evaluations as u64;
    // The result is ignored, because `f` stores the best point.
    let _ = Executor::new(problem, Direct::new(), PointState::new(vec![0.5; d]))
        .max_cost_evals(n)
        .max_iter(n)
        .run();
}

/// The function that is minimised.
type Function<'a> = dyn FnMut(&[f64]) -> f64 + 'a;

/// The problem in the form that the solver expects.
struct Problem<'a> {
    lower: Vec<f64>,
    upper: Vec<f64>,
    f: RefCell<&'a mut Function<'a>>,
}

impl Constraints for Problem<'_> {
    type Set = ConstraintSet<BoxBounds<Vec<f64>>>;

    fn constraints(&self) -> <Self::Set as ConstraintDescription>::Borrowed<'_> {
        ConstraintSet::new().with_bounds(BoxBounds::new(Some(&self.lower), Some(&self.upper)))
    }
}

impl CostFunction for Problem<'_> {
    type Param = Vec<f64>;
    type Output = f64;
    type Error = Infallible;

    fn cost(&self, x: &Vec<f64>) -> Result<f64, Infallible> {
        Ok((*self.f.borrow_mut())(x))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the best point, its value and the number of evaluations.
    fn best(f: impl Fn(&[f64]) -> f64, d: usize, n: usize) -> (Vec<f64>, f64, usize) {
        let (mut best, mut least, mut count) = (vec![f64::NAN; d], f64::INFINITY, 0);
        let mut kept = |x: &[f64]| {
            let value = f(x);
            count += 1;
            if value < least {
                (best, least) = (x.to_vec(), value);
            }
            value
        };
        minimize(&mut kept, d, n);
        (best, least, count)
    }

    #[test]
    fn the_global_minimum_of_rastrigin_is_found() {
        // Rastrigin's function with its minimum at (0.3, 0.6) has about a hundred local minima.
        let wave = |u: f64| u * u - 10.0 * (2.0 * std::f64::consts::PI * u).cos() + 10.0;
        let f = |x: &[f64]| wave(10.0 * (x[0] - 0.3)) + wave(10.0 * (x[1] - 0.6));
        let (x, least, count) = best(f, 2, 2000);
        assert!(least < 1e-3 && (x[0] - 0.3).abs() < 1e-3, "{x:?} {least}");
        assert!((1000..2500).contains(&count), "{count}");
    }

    #[test]
    fn the_centre_comes_first_and_runs_are_reproducible() {
        let f = |x: &[f64]| x.iter().map(|x| (x - 0.5).powi(2)).sum();
        assert_eq!(best(f, 4, 1).1, 0.0);
        assert_eq!(best(f, 4, 500), best(f, 4, 500));
        assert_eq!(best(|_| 7.0, 0, 100), (vec![], 7.0, 1));
    }

    #[test]
    fn nan_values_are_ignored() {
        let f = |x: &[f64]| {
            if x[0] > 0.4 {
                f64::NAN
            } else {
                (x[0] - 0.2).abs()
            }
        };
        let (x, least, _) = best(f, 1, 300);
        assert!(least < 1e-3, "{x:?} {least}");
        assert!(best(|_| f64::NAN, 3, 200).2 < 400);
    }
}
