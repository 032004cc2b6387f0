//! The state of a search in a box, and the scoring of members.

use ndarray::{ArrayView1, ArrayView2, Axis};

use super::excluded::Excluded;
use super::exhaustive::BLOCK;
use crate::error::{Result, Stop, check};
use crate::numerics::lbfgsb::Scaling;
use crate::problem::{Objective, Product};

/// The largest change of a coordinate in the first step of a local search, in units of the coordinate.
const FIRST_STEP: f64 = 0.3;
/// The unit of a coordinate is its lengthscale, limited to this range (the box has width 1).
const UNITS: [f64; 2] = [0.05, 3.0];

/// The state of a search for the maximum of an objective in a box.
pub(super) struct Search<'a, 's> {
    pub objective: &'a mut dyn Objective,
    pub product: &'a Product,
    pub excluded: &'a Excluded,
    /// The best scored member that is not excluded, stored only if there are excluded members.
    pub best_left: Option<(Vec<f64>, f64)>,
    pub stop: &'a mut Stop<'s>,
    /// L-BFGS-B minimises (reference − a(x)) / scale, so that its tolerances are relative to the range of a(x).
    pub reference: f64,
    pub scale: f64,
    /// The units of the coordinates, and the largest first step in these units, for L-BFGS-B.
    pub units: Vec<f64>,
    pub first_step: f64,
}

impl<'a, 's> Search<'a, 's> {
    pub fn new(
        objective: &'a mut dyn Objective,
        product: &'a Product,
        excluded: &'a Excluded,
        stop: &'a mut Stop<'s>,
    ) -> Search<'a, 's> {
        Search {
            objective,
            product,
            excluded,
            best_left: None,
            stop,
            reference: 0.0,
            scale: 1.0,
            units: Vec::new(),
            first_step: Scaling::NONE.first_step,
        }
    }

    /// Returns a(x) for every row x. All rows must be members of the box.
    pub fn score(&mut self, points: ArrayView2<f64>) -> Result<Vec<f64>> {
        let mut values = vec![0.0; points.nrows()];
        for (rows, out) in points
            .axis_chunks_iter(Axis(0), BLOCK)
            .zip(values.chunks_mut(BLOCK))
        {
            check(self.stop)?;
            self.objective.values(rows, out);
        }
        if !self.excluded.is_empty() {
            for (x, &value) in points.outer_iter().zip(&values) {
                self.keep_if_left(x, value);
            }
        }
        Ok(values)
    }

    /// Stores a member that is not excluded if its value is larger than the stored value.
    pub fn keep_if_left(&mut self, x: ArrayView1<f64>, value: f64) {
        let best = self.best_left.as_ref();
        if best.map_or(!value.is_nan(), |(_, most)| value > *most) {
            let x = x.to_vec();
            if !self.excluded.contains_member(self.product, &x) {
                self.best_left = Some((x, value));
            }
        }
    }

    /// Sets the reference, the scale and the units. `order` lists the values, best first.
    pub fn set_scale(&mut self, values: &[f64], order: &[usize]) {
        let lengthscales = self.objective.lengthscales().unwrap_or_default();
        self.units = lengthscales
            .iter()
            .map(|l| l.clamp(UNITS[0], UNITS[1]))
            .collect();
        self.first_step = FIRST_STEP;
        let Some(&first) = order.first() else {
            return;
        };
        // The scale is the range of the largest tenth of the values, because the smaller values are not informative.
        let range = |rank: usize| values[first] - values[order[rank]];
        self.reference = values[first];
        self.scale = [range(order.len() / 10), range(order.len() - 1)]
            .into_iter()
            .find(|s| *s > 0.0 && s.is_finite())
            .unwrap_or(1.0);
    }
}
