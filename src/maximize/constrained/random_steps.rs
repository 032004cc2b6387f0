//! Random steps along the boundary of the feasible set, and changes of single discrete coordinates.

use ndarray::Axis;
use rand::RngExt;
use rand_distr::StandardNormal;

use super::{Constrained, End};
use crate::error::{Result, check};
use crate::maximize::sweep::{as_rows, other_levels};
use crate::problem::{Coordinate, columns};
use crate::random::Rng;

/// The number of rounds of random steps.
const ROUNDS: usize = 16;
/// The number of random steps per round from all end points together, at an effort of 1.
const N_STEPS: f64 = 72.0;
/// The smallest and the largest number of random steps per round from each end point.
const STEPS_OF_ONE: (f64, f64) = (12.0, 18.0);
/// One of every `FREE_STEP_EVERY` random steps goes in any direction. The other steps are orthogonal to the gradient.
const FREE_STEP_EVERY: usize = 3;
/// The number of best steps per end point and round at which the constraints are checked.
const MAX_CHECKED_STEPS: usize = 12;
/// Changes of single discrete coordinates are tried once in `SWEEP_EVERY` rounds.
const SWEEP_EVERY: usize = 4;
/// The length of the first steps. The length is multiplied by `LONGER` after an accepted step, and by `SHORTER` after a
/// round without an accepted step.
const FIRST_LENGTH: f64 = 0.1;
const LONGER: f64 = 1.5;
const SHORTER: f64 = 0.35;

impl Constrained<'_, '_> {
    /// Moves the end points of local searches to better allowed members by random steps. If all coordinates are
    /// continuous, only end points that the constraints have cut are moved.
    pub(super) fn random_steps(
        &mut self,
        ends: &mut [End],
        effort: f64,
        rng: &mut Rng,
    ) -> Result<()> {
        let (least, most) = STEPS_OF_ONE;
        let n_steps = (N_STEPS * effort / ends.len() as f64).clamp(least, most) as usize;
        let mut lengths = vec![FIRST_LENGTH; ends.len()];
        let mut uphill: Vec<Option<Vec<f64>>> = vec![None; ends.len()];
        for round in 0..ROUNDS {
            check(self.search.stop)?;
            let (mut rows, mut owners) = (Vec::new(), Vec::new());
            for (k, end) in ends.iter().enumerate() {
                let before = rows.len();
                if round % SWEEP_EVERY == 0 {
                    self.push_other_levels(&end.x, &mut rows);
                }
                if end.cut {
                    let direction = uphill[k].get_or_insert_with(|| self.uphill(&end.x));
                    for step in 0..n_steps {
                        let length = lengths[k];
                        match step % FREE_STEP_EVERY {
                            0 => self.push_free_step(&end.x, length, rng, &mut rows),
                            _ => self.push_step_across(&end.x, direction, length, rng, &mut rows),
                        }
                    }
                }
                let n = (rows.len() - before) / self.domain.width();
                owners.extend(std::iter::repeat_n(k, n));
            }
            if owners.is_empty() {
                continue;
            }
            let rows = as_rows(rows, self.domain.width())?;
            let values = self.search.score(rows.view())?;
            let mut better: Vec<usize> = Vec::new();
            for (k, end) in ends.iter().enumerate() {
                let least = end.value + 1e-9 * self.search.scale;
                let own = (0..owners.len()).filter(|&i| owners[i] == k && values[i] > least);
                let mut own: Vec<usize> = own.collect();
                own.sort_by(|&i, &j| values[j].total_cmp(&values[i]));
                better.extend(own.into_iter().take(MAX_CHECKED_STEPS));
            }
            let allowed = self.allowed(rows.select(Axis(0), &better).view())?;
            let mut moved = vec![false; ends.len()];
            for (i, allowed) in better.into_iter().zip(allowed) {
                let k = owners[i];
                if allowed && !moved[k] {
                    moved[k] = true;
                    // Further steps start at the new point, even if the old point was a local maximum.
                    ends[k] = End {
                        x: rows.row(i).to_vec(),
                        value: values[i],
                        cut: true,
                    };
                    uphill[k] = None;
                }
            }
            for (length, moved) in lengths.iter_mut().zip(moved) {
                *length = (*length * if moved { LONGER } else { SHORTER }).min(FIRST_LENGTH);
            }
        }
        Ok(())
    }

    /// Returns the direction of the projected gradient over the continuous coordinates, or zero if the gradient is
    /// zero.
    fn uphill(&mut self, x: &[f64]) -> Vec<f64> {
        let mut gradient = vec![0.0; x.len()];
        self.search.objective.value_and_gradient(x, &mut gradient);
        let mut direction = vec![0.0; x.len()];
        for (coordinate, at) in columns(self.search.product) {
            let g = gradient[at.start];
            let leaves = (x[at.start] >= 1.0 && g > 0.0) || (x[at.start] <= 0.0 && g < 0.0);
            if *coordinate == Coordinate::Continuous && g.is_finite() && !leaves {
                direction[at.start] = g;
            }
        }
        normalise(&mut direction);
        direction
    }

    /// Appends a random step from x with standard deviation `length` in each numerical coordinate.
    fn push_free_step(&self, x: &[f64], length: f64, rng: &mut Rng, rows: &mut Vec<f64>) {
        let mut y = x.to_vec();
        for (coordinate, at) in columns(self.search.product) {
            match coordinate.choices() {
                Some(n) if rng.random::<f64>() < 0.1 => {
                    coordinate.write(rng.random_range(0..n), &mut y[at]);
                }
                Some(_) => {}
                None => y[at.start] += length * rng.sample::<f64, _>(StandardNormal),
            }
        }
        self.domain.snap(&mut y);
        rows.extend(y);
    }

    /// Appends a step of this length orthogonal to the uphill direction, plus a small step uphill. Near a boundary,
    /// better feasible points lie in a narrow wedge.
    fn push_step_across(
        &self,
        x: &[f64],
        uphill: &[f64],
        length: f64,
        rng: &mut Rng,
        rows: &mut Vec<f64>,
    ) {
        let mut across = vec![0.0; x.len()];
        for (coordinate, at) in columns(self.search.product) {
            if *coordinate == Coordinate::Continuous {
                across[at.start] = rng.sample(StandardNormal);
            }
        }
        let along: f64 = across.iter().zip(uphill).map(|(a, u)| a * u).sum();
        for (a, u) in across.iter_mut().zip(uphill) {
            *a -= along * u;
        }
        normalise(&mut across);
        // The uphill steps cover three orders of magnitude, so that some steps end in the wedge.
        let share = libm::pow(10.0, -3.0 * rng.random::<f64>());
        let step = across
            .iter()
            .zip(uphill)
            .map(|(a, u)| length * (a + share * u));
        let mut y: Vec<f64> = x.iter().zip(step).map(|(x, s)| x + s).collect();
        self.domain.snap(&mut y);
        rows.extend(y);
    }

    /// Appends changes of single discrete coordinates.
    fn push_other_levels(&self, x: &[f64], rows: &mut Vec<f64>) {
        for (coordinate, at) in columns(self.search.product) {
            if let Some(levels) = coordinate.levels() {
                for index in other_levels(coordinate, levels, coordinate.index(&x[at.clone()])) {
                    let mut y = x.to_vec();
                    coordinate.write(index, &mut y[at.clone()]);
                    self.domain.snap(&mut y);
                    rows.extend(y);
                }
            }
        }
    }
}

/// Scales a direction to length one, unless it is zero.
fn normalise(direction: &mut [f64]) {
    let length = direction.iter().map(|u| u * u).sum::<f64>().sqrt();
    if length > 0.0 {
        direction.iter_mut().for_each(|u| *u /= length);
    }
}
