//! Minimisation under linear constraints by sequential least-squares programming (Kraft 1988), with the crate `basin`.
//!
//! Notation: l ≤ x ≤ u, A x = b, G x ≤ h; f is the objective, and g is its gradient.

use std::cell::RefCell;
use std::convert::Infallible;

use basin::{
    BoxBounds, ConstraintDescription, ConstraintSet, Constraints, CostFunction, DenseMatrix,
    Executor, Gradient, LinearBlock, LinearBlocks, SelectedFirstOrderState, Slsqp,
};

use super::linear_program::Row;

/// The feasible set.
#[derive(Clone, Debug)]
pub struct Feasible<'a> {
    pub lower: &'a [f64],
    pub upper: &'a [f64],
    /// The rows of A and b, which must be linearly independent.
    pub equal: &'a [Row],
    /// The rows of G and h.
    pub at_most: &'a [Row],
}

/// Minimises `f` from a feasible point x0, over the coordinates x_i/unit_i. `f(x, gradient)` fills the gradient and
/// returns the value. The solver stops if the decrease of f falls below `accuracy`, or after `max_iterations`.
///
/// Returns the best evaluated point and its value.
pub fn minimize(
    f: &mut dyn FnMut(&[f64], &mut [f64]) -> f64,
    x0: &[f64],
    feasible: &Feasible,
    units: &[f64],
    (accuracy, max_iterations): (f64, u64),
) -> (Vec<f64>, f64) {
    let unit = |i: usize| units.get(i).copied().unwrap_or(1.0);
    let units: Vec<f64> = (0..x0.len()).map(unit).collect();
    let scaled = |x: &[f64]| -> Vec<f64> { x.iter().zip(&units).map(|(x, u)| x / u).collect() };
    let block = |rows: &[Row]| -> Block {
        let entries = rows.iter().flat_map(|(a, _)| a.iter().zip(&units));
        let entries: Vec<f64> = entries.map(|(a, u)| a * u).collect();
        let right: Vec<f64> = rows.iter().map(|(_, b)| *b).collect();
        let matrix = DenseMatrix::from_row_slice(rows.len(), x0.len(), &entries);
        LinearBlock::optional((!rows.is_empty()).then_some((matrix, right)))
    };
    let state = RefCell::new(State {
        f,
        best: x0.to_vec(),
        best_value: f64::INFINITY,
    });
    let problem = Problem {
        lower: scaled(feasible.lower),
        upper: scaled(feasible.upper),
        equal: block(feasible.equal),
        at_most: block(feasible.at_most),
        units: &units,
        state: &state,
    };
    let solver = Slsqp::new().with_absolute_accuracy_tolerance(accuracy);
    let start = SelectedFirstOrderState::new(scaled(x0));
    let state = {
        // The best evaluated point is returned even if the solver stops with an error.
        let run = Executor::new(problem, solver, start);
        let _ = run.max_iter(max_iterations).run();
        state.into_inner()
    };
    (state.best, state.best_value)
}

struct State<'f> {
    f: &'f mut dyn FnMut(&[f64], &mut [f64]) -> f64,
    best: Vec<f64>,
    best_value: f64,
}

/// The problem in the form that the solver expects, in units.
struct Problem<'a, 'f> {
    lower: Vec<f64>,
    upper: Vec<f64>,
    equal: Block,
    at_most: Block,
    units: &'a [f64],
    state: &'a RefCell<State<'f>>,
}

type Block = LinearBlock<DenseMatrix<f64>, Vec<f64>>;

impl Constraints for Problem<'_, '_> {
    type Set = ConstraintSet<BoxBounds<Vec<f64>>, LinearBlocks<Block, Block>>;

    fn constraints(&self) -> <Self::Set as ConstraintDescription>::Borrowed<'_> {
        ConstraintSet::new()
            .with_bounds(BoxBounds::new(Some(&self.lower), Some(&self.upper)))
            .with_linear_equalities(LinearBlock::optional(
                self.equal.matrix().zip(self.equal.rhs()),
            ))
            .with_linear_inequalities(LinearBlock::optional(
                self.at_most.matrix().zip(self.at_most.rhs()),
            ))
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
        let x: Vec<f64> = x.iter().zip(self.units).map(|(x, u)| x * u).collect();
        let mut gradient = vec![0.0; x.len()];
        let mut state = self.state.borrow_mut();
        let value = (state.f)(&x, &mut gradient);
        if value < state.best_value {
            state.best_value = value;
            state.best = x;
        }
        for (g, u) in gradient.iter_mut().zip(self.units) {
            *g = if g.is_finite() { *g * u } else { 0.0 };
        }
        Ok((value, gradient))
    }
}

#[cfg(test)]
pub(crate) mod testing {
    /// The projection of a point onto the simplex, by the sorted form (Held et al. 1974).
    pub(crate) fn onto_simplex(z: &[f64]) -> Vec<f64> {
        let mut sorted = z.to_vec();
        sorted.sort_by(|a, b| b.total_cmp(a));
        let (mut sum, mut shift) = (0.0, 0.0);
        for (i, v) in sorted.iter().enumerate() {
            sum += v;
            let candidate = (sum - 1.0) / (i + 1) as f64;
            if v - candidate > 0.0 {
                shift = candidate;
            }
        }
        z.iter().map(|v| (v - shift).max(0.0)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::testing::onto_simplex;
    use super::*;

    #[test]
    fn nearest_point_of_a_simplex_is_found_in_any_units() {
        let z = [0.9, 0.4, -0.3, 0.1];
        let mut squared = |x: &[f64], g: &mut [f64]| {
            let mut sum = 0.0;
            for (g, (x, z)) in g.iter_mut().zip(x.iter().zip(z)) {
                *g = 2.0 * (x - z);
                sum += (x - z) * (x - z);
            }
            sum
        };
        let feasible = Feasible {
            lower: &[0.0; 4],
            upper: &[1.0; 4],
            equal: &[(vec![0.5; 4], 0.5)],
            at_most: &[(vec![1.0, 0.0, 0.0, 0.0], 2.0)],
        };
        for units in [vec![], vec![0.1, 1.0, 3.0, 0.5]] {
            let found = minimize(&mut squared, &[0.25; 4], &feasible, &units, (1e-14, 100));
            for (x, expected) in found.0.iter().zip(onto_simplex(&z)) {
                assert!((x - expected).abs() < 1e-6, "{:?}", found.0);
            }
        }
    }
}
