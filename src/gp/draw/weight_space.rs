//! Draws by Bayesian linear regression on normalised features, as in the code of Verma et al. 2022.
//!
//! Notation: the features are h(x) = σ_f·c(x)/|c(x)|, the rows of H (n, M) are the features at X, and f(x) = wᵀh(x).
//! With Σ = HᵀH + λI, the posterior of w is N(Σ⁻¹Hᵀy, λΣ⁻¹).

use ndarray::{Array2, ArrayView1};

use super::exact::standard_normal;
use super::features::Features;
use super::workspace::Workspace;
use crate::error::{Result, check};
use crate::gp::{GaussianProcess, as_row};
use crate::numerics::cholesky::gram;
use crate::numerics::growing_cholesky::GrowingCholesky;
use crate::numerics::simd::dot;
use crate::random::Call;

/// The draw σ_f·wᵀc(x)/|c(x)|.
#[derive(Debug, Clone)]
pub(super) struct WeightSpace {
    /// The signal standard deviation σ_f.
    signal_std: f64,
}

impl WeightSpace {
    /// Returns n normalised features, a draw of their weights, and the scale of the draw. Row i of H, whose noise has
    /// variance λ_i, is multiplied by sqrt(λ/λ_i).
    pub fn draw(
        gp: &GaussianProcess,
        n: usize,
        call: &mut Call,
    ) -> Result<(Features, Vec<f64>, Self)> {
        let features = Features::draw(gp.kernel(), n, call.rng);
        let n = features.len();
        let signal_std = gp.kernel().signal_variance.sqrt();
        let mut h = Array2::zeros((gp.len(), n));
        let (mut sines, mut cosines) = (vec![0.0; n], vec![0.0; n]);
        for (x, mut row) in gp.rows().rows().into_iter().zip(h.rows_mut()) {
            check(call.stop)?;
            features.evaluate(&x.to_vec(), &mut sines, &mut cosines);
            row.assign(&ArrayView1::from(&cosines));
            row *= signal_std / dot(&cosines, &cosines).sqrt();
        }
        let noise_variance = gp.noise_variance();
        let counts = gp.row_noise().iter().map(|v| (noise_variance / v).sqrt());
        let mut y = gp.targets();
        for ((mut row, y), count) in h.rows_mut().into_iter().zip(&mut y).zip(counts) {
            row *= count;
            *y *= count;
        }
        let mut sigma = gram(h.view());
        sigma
            .diag_mut()
            .iter_mut()
            .for_each(|s| *s += noise_variance);
        let mut root = GrowingCholesky::new();
        root.extend(Array2::zeros((n, 0)).view(), sigma)?;
        // Given Σ = L Lᵀ and ξ ~ N(0, I), the draw of the weights is w = L⁻ᵀ(L⁻¹ Hᵀy + sqrt(λ) ξ).
        let mut weights = as_row(h.t().dot(&ArrayView1::from(&y)).to_vec());
        root.forward_substitution(weights.view_mut());
        let noise_std = noise_variance.sqrt();
        for (w, xi) in weights.iter_mut().zip(standard_normal(n, call.rng)) {
            *w += noise_std * xi;
        }
        root.backward_substitution(weights.view_mut());
        let weights = weights.into_raw_vec_and_offset().0;
        Ok((features, weights, Self { signal_std }))
    }

    /// The draw at a point, given `product` = wᵀc.
    pub fn value(&self, product: f64, cosines: &[f64]) -> f64 {
        self.signal_std * product / dot(cosines, cosines).sqrt()
    }

    /// Returns the draw at a point, and computes its gradient. With t = wᵀc and q = |c|, f = σ_f·t/q and ∇f = σ_f·(∇t/q
    /// − t·∇q²/(2q³)). Here ∇t = Σ_i by_prior_i p_i and ∇q² = −2 Σ_i c_i s_i p_i with p_i = ∇(ω_iᵀw(x)).
    pub fn value_and_gradient(
        &self,
        x: &[f64],
        product: f64,
        features: &Features,
        workspace: &mut Workspace,
        gradient: &mut [f64],
    ) -> f64 {
        let (sines, cosines) = (&workspace.sines, &workspace.cosines);
        let (by_prior, by_norm) = (&workspace.by_prior, &mut workspace.by_norm);
        for ((b, c), s) in by_norm.iter_mut().zip(cosines).zip(sines) {
            *b = -2.0 * c * s;
        }
        let q2 = dot(cosines, cosines);
        let q = q2.sqrt();
        for (d, g) in gradient.iter_mut().enumerate() {
            let d_product = features.contract_phases(x, d, by_prior);
            let d_q2 = features.contract_phases(x, d, by_norm);
            *g = self.signal_std * (d_product / q - product * d_q2 / (2.0 * q2 * q));
        }
        self.signal_std * product / q
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use crate::random::Rng;
    use rand::SeedableRng;

    use super::super::path::Path;
    use super::*;
    use crate::gp::kernel::KernelFamily;
    use crate::gp::tests::{model, wave};

    #[test]
    fn draws_fit_dense_data() {
        // With many features and rows, the mean of the regression is close to the posterior mean.
        let mut go_on = || ControlFlow::Continue(());
        let mut rng = Rng::seed_from_u64(10);
        let gp = model(KernelFamily::SquaredExponential, 40);
        let z = wave(5, 2, 0.9);
        let mut workspace = Workspace::default();
        let mean = gp.mean(z.view());
        let n = 300;
        let mut sums = [0.0; 5];
        for _ in 0..n {
            let path = Path::weight_space(&gp, 200, &mut Call::new(&mut rng, &mut go_on)).unwrap();
            for (sum, x) in sums.iter_mut().zip(z.rows()) {
                *sum += path.value(&gp, &x.to_vec(), &mut workspace) / n as f64;
            }
        }
        for (sum, mean) in sums.iter().zip(mean) {
            assert!((sum - mean).abs() < 0.1, "{sum} {mean}");
        }
    }
}
