//! An upper bound on the maximum information gain gamma_t, which the theoretical confidence bounds contain. A greedy
//! algorithm computes the upper bound.
//!
//! Notation: gamma_t is the maximum of ½ log det(I + K/λ) over t of N points, and λ is the noise variance. The greedy
//! algorithm makes t choices, and each choice is the point with the largest variance. By submodularity, the gain of
//! these choices is at least (1 − 1/e)·gamma_t (Srinivas et al. 2010, section 3). Therefore the greedy gain divided by
//! 1 − 1/e is an upper bound on gamma_t for the N points. The gain of the actual trials would only be a lower bound on
//! gamma_t.

use ndarray::{Array2, Axis, concatenate};
use rand::SeedableRng;

use crate::error::{Result, Stop, check};
use crate::gp::GaussianProcess;
use crate::gp::kernel::{Kernel, ScaledPoints};
use crate::numerics::simd::add_multiple;
use crate::problem::{Domain, unit_sequence};
use crate::random::Rng;

/// The number of points N for a box, and the maximum N for candidates. N is limited because each choice stores one
/// number per point.
const N_BOX: usize = 512;
const MAX_CANDIDATES: usize = 4096;

/// The gains of greedy choices among a set of points, for one θ. Gains are computed on demand.
pub struct InformationGain {
    kernel: Kernel,
    noise: f64,
    points: Array2<f64>,
    scaled: ScaledPoints,
    /// The variance at every point, given the choices so far.
    variance: Vec<f64>,
    /// The columns c of the partial Cholesky factor. The variance is k(x, x) − Σ c².
    columns: Vec<Vec<f64>>,
    /// The gains ½ log det(I + K/λ) of the first 0, 1, 2, … choices.
    gains: Vec<f64>,
}

impl InformationGain {
    /// Creates the state before the first choice. Points are chosen among the rows of `points` (N, d). `noise` is the
    /// noise variance λ, which must be positive.
    pub fn new(kernel: &Kernel, noise: f64, points: Array2<f64>) -> Self {
        let prior = points.axis_iter(Axis(0)).map(|x| kernel.prior_variance(x));
        Self {
            variance: prior.collect(),
            scaled: kernel.scale(points.view()),
            kernel: kernel.clone(),
            noise,
            points,
            columns: Vec::new(),
            gains: vec![0.0],
        }
    }

    /// Returns the gains for this θ. If θ has not changed, the gains in `slot` are reused. The points are the
    /// candidates, or an evenly spaced selection if there are many candidates. In a box, the points are spread evenly.
    /// Future contexts are unknown, so the values in the `context` columns are spread over the unit cube.
    pub fn kept<'a>(
        slot: &'a mut Option<Self>,
        domain: &Domain,
        context: usize,
        gp: &GaussianProcess,
    ) -> &'a mut Self {
        let kept = slot.take();
        let valid = kept.filter(|kept| kept.is_for(gp.kernel(), gp.noise_variance()));
        slot.insert(valid.unwrap_or_else(|| {
            // The seed is fixed, so that the bound does not depend on the seed of the optimizer.
            let mut rng = Rng::seed_from_u64(0);
            let x = match domain {
                Domain::Candidates(list) => {
                    let n = list.nrows().min(MAX_CANDIDATES);
                    let picked: Vec<usize> = (0..n).map(|i| i * list.nrows() / n).collect();
                    list.select(Axis(0), &picked)
                }
                Domain::Box(_) => domain.quasi_random(N_BOX, &mut rng),
            };
            let contexts = unit_sequence(x.nrows(), context, &mut rng);
            Self::new(
                gp.kernel(),
                gp.noise_variance(),
                concatenate![Axis(1), x, contexts],
            )
        }))
    }

    pub fn is_for(&self, kernel: &Kernel, noise: f64) -> bool {
        self.kernel == *kernel && self.noise == noise
    }

    /// An upper bound on gamma_t. Every new choice costs O(N t).
    pub fn bound(&mut self, t: usize, stop: &mut Stop) -> Result<f64> {
        while self.gains.len() <= t {
            check(stop)?;
            self.choose();
        }
        Ok(self.gains[t] / (1.0 - (-1f64).exp()))
    }

    fn choose(&mut self) {
        let largest = self.variance.iter().enumerate();
        let Some((i, &variance)) = largest.max_by(|a, b| a.1.total_cmp(b.1)) else {
            self.gains.push(0.0); // without points, the gain is 0
            return;
        };
        // c = (k(x_i, ·) − Σ_s c_s(x_i) c_s) / sqrt(var_i + λ)
        let mut column = vec![0.0; self.variance.len()];
        let x: Vec<f64> = self.points.row(i).to_vec();
        self.kernel.row(&x, &self.scaled, &mut column);
        for earlier in &self.columns {
            add_multiple(-earlier[i], earlier, &mut column);
        }
        let root = (variance + self.noise).sqrt();
        for (c, variance) in column.iter_mut().zip(&mut self.variance) {
            *c /= root;
            *variance = (*variance - *c * *c).max(0.0);
        }
        self.columns.push(column);
        let so_far = self.gains[self.gains.len() - 1];
        self.gains
            .push(so_far + 0.5 * (variance / self.noise).ln_1p());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gp::kernel::KernelFamily;
    use crate::gp::tests::{model, wave};
    use crate::numerics::cholesky::factor_in_place;
    use std::ops::ControlFlow;

    fn gain(kernel: &Kernel, noise: f64, points: &Array2<f64>, chosen: &[usize]) -> f64 {
        let mut a = kernel.gram(points.select(Axis(0), chosen).view()) / noise;
        a.diag_mut().iter_mut().for_each(|a| *a += 1.0);
        factor_in_place(&mut a).unwrap();
        a.diag().iter().map(|l| l.ln()).sum()
    }

    #[test]
    fn the_bound_holds_and_is_within_the_guarantee() {
        let mut go_on = || ControlFlow::Continue(());
        for family in KernelFamily::ALL {
            let kernel = model(family, 1).kernel().clone();
            let points = wave(7, 2, 0.9);
            let mut gains = InformationGain::new(&kernel, 0.1, points.clone());
            let bound = gains.bound(3, &mut go_on).unwrap();
            // Compute the gain for every choice of three points, including choices that repeat a point.
            let all = (0..343).map(|i| gain(&kernel, 0.1, &points, &[i % 7, i / 7 % 7, i / 49]));
            let best = all.fold(0.0, f64::max);
            assert!(
                best <= bound && bound <= best / (1.0 - (-1f64).exp()) + 1e-9,
                "{best} {bound}"
            );
            assert!(gains.bound(2, &mut go_on).unwrap() < bound);
            assert!(gains.is_for(&kernel, 0.1) && !gains.is_for(&kernel, 0.2));
        }
    }

    #[test]
    fn gains_equal_log_determinants_of_greedy_choices() {
        let mut go_on = || ControlFlow::Continue(());
        for family in KernelFamily::ALL {
            let kernel = model(family, 1).kernel().clone();
            let points = wave(7, 2, 0.9);
            let mut gains = InformationGain::new(&kernel, 0.1, points.clone());
            let mut chosen = Vec::new();
            for t in 1..=6 {
                let all =
                    (0..7).map(|i| gain(&kernel, 0.1, &points, &[&chosen[..], &[i]].concat()));
                let all: Vec<f64> = all.collect();
                // Among points with equal gains, the last point is chosen.
                let best = (0..7).fold(0, |a, b| if all[b] >= all[a] { b } else { a });
                chosen.push(best);
                let bound = gains.bound(t, &mut go_on).unwrap();
                let greedy = bound * (1.0 - (-1f64).exp());
                assert!((greedy - all[best]).abs() < 1e-9, "{family:?} {t}");
            }
        }
    }
}
