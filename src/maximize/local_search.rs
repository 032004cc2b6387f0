//! Local search by L-BFGS-B over the continuous coordinates of a box, or by SLSQP or projected gradients under linear
//! constraints.

use ndarray::{ArrayView1, Axis};

use super::scoring::Search;
use crate::error::{Result, check};
use crate::numerics::lbfgsb::{Scaling, Tolerance, minimize_scaled};
use crate::numerics::linear_program::Row;
use crate::numerics::{projected_gradient, slsqp};
use crate::problem::{Coordinate, Lattice, Product};

/// The number of gradient evaluations between two checks of `stop`.
const EVALUATIONS: usize = 16;
/// The largest number of free columns for SLSQP, whose iterations take a time in proportion to the cube of this number.
/// With more columns, the projected gradient method is used.
const MAX_SLSQP: usize = 16;

impl Search<'_, '_> {
    /// Runs L-BFGS-B or SLSQP over the active continuous coordinates. With `relaxed`, active integers with three or
    /// more levels that are not parents vary too, and are rounded at the end. All other coordinates are fixed. The
    /// returned point is at least as good as `start`, whose value is `value`.
    pub fn local_search(
        &mut self,
        start: Vec<f64>,
        value: f64,
        relaxed: bool,
        tolerance: &Tolerance,
    ) -> Result<(Vec<f64>, f64)> {
        let (mut lower, mut upper) = (start.clone(), start.clone());
        let mut rounded = Vec::new();
        let lattice_of = |column| self.product.linear()?.lattice_of(column);
        for (i, coordinate, at) in self.product.active_columns(&start) {
            let free = relaxed
                && can_be_relaxed(coordinate)
                && !self.product.is_parent(i)
                && lattice_of(at.start).is_none_or(Lattice::can_be_relaxed);
            if free || *coordinate == Coordinate::Continuous {
                (lower[at.start], upper[at.start]) = (0.0, 1.0);
            }
            if free {
                rounded.push((coordinate, at));
            }
        }
        let (reference, scale) = (self.reference, self.scale);
        let scaling = Scaling {
            units: &self.units,
            first_step: self.first_step,
        };
        let (objective, stop) = (&mut *self.objective, &mut *self.stop);
        let (mut count, mut interrupted) = (0, Ok(()));
        let mut minimised = |x: &[f64], gradient: &mut [f64]| {
            count += 1;
            if count % EVALUATIONS == 0 && interrupted.is_ok() {
                interrupted = check(stop);
            }
            if interrupted.is_err() {
                return f64::NAN; // stops the solver
            }
            let value = objective.value_and_gradient(x, gradient);
            for g in gradient.iter_mut() {
                *g /= -scale;
            }
            (reference - value) / scale
        };
        let (equal, at_most) = linear_rows(self.product, &start, relaxed);
        let (mut x, least) = if equal.is_empty() && at_most.is_empty() {
            minimize_scaled(&mut minimised, &start, &lower, &upper, tolerance, scaling)
        } else {
            let feasible = slsqp::Feasible {
                lower: &lower,
                upper: &upper,
                equal: &equal,
                at_most: &at_most,
            };
            let accuracy = (tolerance.relative_reduction, tolerance.max_iterations);
            match projection(self.product, &start, (&lower, &upper), relaxed) {
                Some(project) => {
                    projected_gradient::minimize(&mut minimised, &start, &project, accuracy)
                }
                None => slsqp::minimize(&mut minimised, &start, &feasible, &self.units, accuracy),
            }
        };
        interrupted?;
        let mut found = reference - scale * least;
        if !rounded.is_empty() {
            if self.product.linear().is_some() {
                self.product.snap(&mut x);
            }
            for (coordinate, at) in rounded {
                x[at.start] = coordinate.position(coordinate.index(&x[at.clone()]));
            }
            found = self.score(ArrayView1::from(&x).insert_axis(Axis(0)))?[0];
        } else if self.product.linear().is_some() {
            self.product.snap(&mut x);
        }
        Ok(if found >= value {
            (x, found)
        } else {
            (start, value)
        })
    }
}

/// The projection onto the bounds and the linear constraints, if there are many free columns and it is fast.
fn projection<'a>(
    product: &'a Product,
    start: &[f64],
    (lower, upper): (&'a [f64], &'a [f64]),
    relaxed: bool,
) -> Option<impl Fn(&mut [f64]) + 'a> {
    let linear = product.linear()?;
    let is_free = |column: usize| lower[column] < upper[column];
    if (0..start.len()).filter(|&column| is_free(column)).count() <= MAX_SLSQP {
        return None;
    }
    let lattices = linear.lattices.iter().filter(|each| each.can_be_relaxed());
    let mut parts = lattices.flat_map(|each| &each.columns);
    if relaxed && !parts.all(|&column| is_free(column)) {
        return None;
    }
    let body = product.body(linear, start);
    if linear
        .columns_of(body)
        .is_some_and(|(_, body)| !body.projects_fast())
    {
        return None;
    }
    let bounded = (0..start.len()).filter(move |&column| {
        let is_part = relaxed
            && linear
                .lattice_of(column)
                .is_some_and(Lattice::can_be_relaxed);
        !(is_part || is_free(column) && linear.is_constrained(column))
    });
    let bounded: Vec<usize> = bounded.collect();
    Some(move |x: &mut [f64]| {
        for &i in &bounded {
            x[i] = x[i].clamp(lower[i], upper[i]);
        }
        match relaxed {
            true => linear.snap_relaxed(body, x),
            false => linear.snap(body, x),
        }
    })
}

/// The linear constraints on the continuous coordinates that are active at `x`: equalities and inequalities. With
/// `relaxed`, the parts of relaxed lattices also keep their sum.
fn linear_rows(product: &Product, x: &[f64], relaxed: bool) -> (Vec<Row>, Vec<Row>) {
    let (mut equal, mut at_most) = (Vec::new(), Vec::new());
    let Some(linear) = product.linear() else {
        return (equal, at_most);
    };
    if let Some((columns, body)) = linear.columns_of(product.body(linear, x)) {
        let wide = |(a, b): &Row| {
            let mut row = vec![0.0; x.len()];
            columns
                .iter()
                .zip(a)
                .for_each(|(&column, a)| row[column] = *a);
            (row, *b)
        };
        let (hull, inequalities) = body.constraints();
        equal.extend(hull.iter().map(wide));
        at_most.extend(inequalities.iter().map(wide));
    }
    if relaxed {
        equal.extend(
            linear
                .lattices
                .iter()
                .filter_map(|lattice| lattice.row(x.len())),
        );
    }
    (equal, at_most)
}

/// Whether values of a(x) between the levels of the coordinate are informative about the best level.
fn can_be_relaxed(coordinate: &Coordinate) -> bool {
    coordinate.is_ordered() && coordinate.levels() > Some(2)
}
