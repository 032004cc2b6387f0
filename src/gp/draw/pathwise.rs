//! Draws by Matheron's rule: a draw from the prior plus a correction at the rows.
//!
//! Notation: g(x) = wᵀc(x) is a draw from the prior by spectral features, ε ~ N(0, λ) is noise at the rows X, and ν
//! multiplies standard deviations. Then mu(x) + ν·(g(x) − k(x, X) A⁻¹ (g(X) + ε)) is a draw from GP(mu, ν²·Σ) (Wilson
//! et al. 2020), in which only g is approximate.

use super::exact::standard_normal;
use super::features::Features;
use super::workspace::Workspace;
use crate::error::{Result, check};
use crate::gp::{GaussianProcess, as_row};
use crate::numerics::simd::dot;
use crate::random::Call;

/// The draw ν·g(x) + k(x, X)ᵀq with q = α − ν A⁻¹(g(X) + ε).
#[derive(Debug, Clone)]
pub(super) struct Pathwise {
    /// The coefficients q (n,).
    coefficients: Vec<f64>,
    /// ν, which multiplies standard deviations.
    multiplier: f64,
}

impl Pathwise {
    /// Draws a function: n spectral features, their weights, and the coefficients of the correction.
    pub fn draw(
        gp: &GaussianProcess,
        multiplier: f64,
        n: usize,
        call: &mut Call,
    ) -> Result<(Features, Vec<f64>, Self)> {
        let features = Features::draw(gp.kernel(), n, call.rng);
        let n = features.len();
        let amplitude = gp.kernel().signal_variance.sqrt() * features.amplitude();
        let mut weights = standard_normal(n, call.rng);
        weights.iter_mut().for_each(|w| *w *= amplitude);
        let (mut sines, mut cosines) = (vec![0.0; n], vec![0.0; n]);
        let mut prior = Vec::with_capacity(gp.len());
        for x in gp.rows().rows() {
            check(call.stop)?;
            features.evaluate(&x.to_vec(), &mut sines, &mut cosines);
            prior.push(dot(&weights, &cosines));
        }
        let mut correction = as_row(gp.whitened_prior(&prior, call.rng));
        gp.factor().backward_substitution(correction.view_mut());
        let coefficients = gp
            .alpha()
            .iter()
            .zip(correction.row(0))
            .map(|(a, c)| a - multiplier * c)
            .collect();
        let form = Self {
            coefficients,
            multiplier,
        };
        Ok((features, weights, form))
    }

    /// The draw at x, given `prior` = g(x).
    pub fn value(&self, gp: &GaussianProcess, x: &[f64], prior: f64, k: &mut [f64]) -> f64 {
        gp.kernel().row(x, gp.scaled_rows(), k);
        self.multiplier * prior + dot(k, &self.coefficients)
    }

    /// Returns the draw at x, and computes its gradient. With by_prior = −w s, ∇g = Σ_i by_prior_i ∇(ω_iᵀw(x)).
    pub fn value_and_gradient(
        &self,
        gp: &GaussianProcess,
        x: &[f64],
        prior: f64,
        features: &Features,
        workspace: &mut Workspace,
        gradient: &mut [f64],
    ) -> f64 {
        let Workspace {
            k, slope, by_prior, ..
        } = workspace;
        let points = gp.scaled_rows();
        gp.kernel().row_with_slope(x, points, k, slope);
        gp.kernel()
            .contract_gradient(x, points, slope, &self.coefficients, gradient);
        for d in gp.kernel().plain_columns() {
            gradient[d] += self.multiplier * features.contract_phases(x, d, by_prior);
        }
        self.multiplier * prior + dot(k, &self.coefficients)
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use crate::random::Rng;
    use rand::SeedableRng;

    use super::super::exact::tests::{check_moments, posterior};
    use super::super::path::Path;
    use super::*;
    use crate::gp::kernel::KernelFamily;
    use crate::gp::tests::{model, wave};

    #[test]
    fn draws_have_the_moments_of_the_posterior() {
        let mut go_on = || ControlFlow::Continue(());
        let mut rng = Rng::seed_from_u64(6);
        for multiplier in [1.0, 2.0] {
            let gp = model(KernelFamily::SquaredExponential, 6);
            let z = wave(4, 2, 7.7);
            let (mean, covariance) = posterior(&gp, z.view());
            let mut workspace = Workspace::default();
            let draws: Vec<Vec<f64>> = (0..4000)
                .map(|_| {
                    let path =
                        Path::pathwise(&gp, multiplier, 200, &mut Call::new(&mut rng, &mut go_on))
                            .unwrap();
                    z.rows()
                        .into_iter()
                        .map(|x| path.value(&gp, &x.to_vec(), &mut workspace))
                        .collect()
                })
                .collect();
            check_moments(&draws, &mean, &(covariance * multiplier * multiplier), 1e-3);
        }
    }
}
