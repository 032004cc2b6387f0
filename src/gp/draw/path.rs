//! A draw from a posterior as a function of x, for Thompson sampling on a box.
//!
//! Notation: w are the weights of the features; c and s are the cosines and sines of their phases; ω_i are their
//! frequencies.

use super::features::Features;
use super::pathwise::Pathwise;
use super::weight_space::WeightSpace;
use crate::error::Result;
use crate::gp::GaussianProcess;
use crate::numerics::simd::dot;
use crate::random::Call;

pub use super::workspace::Workspace;

/// A draw from a posterior as a function of x, on a box.
#[derive(Debug, Clone)]
pub struct Path {
    features: Features,
    /// The weights w. In `Form::Pathwise` they contain the factor σ_f a, where a is the amplitude of the features.
    weights: Vec<f64>,
    form: Form,
}

/// How the value of the draw is computed from wᵀc.
#[derive(Debug, Clone)]
enum Form {
    Pathwise(Pathwise),
    WeightSpace(WeightSpace),
}

impl Path {
    /// A draw from GP(mu, multiplier²·Σ) by Matheron's rule with n spectral features.
    pub fn pathwise(
        gp: &GaussianProcess,
        multiplier: f64,
        n: usize,
        call: &mut Call,
    ) -> Result<Self> {
        let (features, weights, form) = Pathwise::draw(gp, multiplier, n, call)?;
        let form = Form::Pathwise(form);
        Ok(Self {
            features,
            weights,
            form,
        })
    }

    /// A draw by Bayesian regression on n normalised features, given the targets y of the rows.
    pub fn weight_space(gp: &GaussianProcess, n: usize, call: &mut Call) -> Result<Self> {
        let (features, weights, form) = WeightSpace::draw(gp, n, call)?;
        let form = Form::WeightSpace(form);
        Ok(Self {
            features,
            weights,
            form,
        })
    }

    /// Returns the draw at x.
    pub fn value(&self, gp: &GaussianProcess, x: &[f64], workspace: &mut Workspace) -> f64 {
        let product = self.evaluate_features(gp, x, workspace);
        match &self.form {
            Form::Pathwise(form) => form.value(gp, x, product, &mut workspace.k),
            Form::WeightSpace(form) => form.value(product, &workspace.cosines),
        }
    }

    /// Returns the draw at x and writes its gradient to `gradient`.
    pub fn value_and_gradient(
        &self,
        gp: &GaussianProcess,
        x: &[f64],
        workspace: &mut Workspace,
        gradient: &mut [f64],
    ) -> f64 {
        let product = self.evaluate_features(gp, x, workspace);
        // ∇(wᵀc) = −Σ_i w_i s_i ∇(phase i)
        let weights = self.weights.iter().zip(&workspace.sines);
        for (b, (w, s)) in workspace.by_prior.iter_mut().zip(weights) {
            *b = -w * s;
        }
        let features = &self.features;
        match &self.form {
            Form::Pathwise(form) => {
                form.value_and_gradient(gp, x, product, features, workspace, gradient)
            }
            Form::WeightSpace(form) => {
                form.value_and_gradient(x, product, features, workspace, gradient)
            }
        }
    }

    /// Writes s and c at x to the workspace and returns wᵀc.
    fn evaluate_features(&self, gp: &GaussianProcess, x: &[f64], workspace: &mut Workspace) -> f64 {
        workspace.resize(gp.len(), self.features.len());
        let Workspace { sines, cosines, .. } = workspace;
        self.features.evaluate(x, sines, cosines);
        dot(&self.weights, cosines)
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use crate::random::Rng;
    use rand::SeedableRng;

    use super::*;
    use crate::gp::kernel::{KernelFamily, Kumaraswamy};
    use crate::gp::tests::{model, with_warp};

    #[test]
    fn gradients_of_paths_equal_finite_differences() {
        let mut go_on = || ControlFlow::Continue(());
        let mut rng = Rng::seed_from_u64(9);
        let plain = model(KernelFamily::Matern52, 8);
        let warped = with_warp(&plain, vec![Kumaraswamy(4.0, 1.0), Kumaraswamy(1.0, 0.5)]);
        let (mut workspace, mut gradient) = (Workspace::default(), vec![0.0; 2]);
        for (gp, path) in [&plain, &warped].into_iter().flat_map(|gp| {
            let pathwise =
                Path::pathwise(gp, 1.4, 64, &mut Call::new(&mut rng, &mut go_on)).unwrap();
            let weight_space =
                Path::weight_space(gp, 64, &mut Call::new(&mut rng, &mut go_on)).unwrap();
            [(gp, pathwise), (gp, weight_space)]
        }) {
            let x = [0.3, 0.6];
            let value = path.value_and_gradient(gp, &x, &mut workspace, &mut gradient);
            assert!((value - path.value(gp, &x, &mut workspace)).abs() < 1e-12);
            for d in 0..2 {
                let mut at = |h: f64| {
                    let mut x = x;
                    x[d] += h;
                    path.value(gp, &x, &mut workspace)
                };
                assert!((gradient[d] - (at(1e-5) - at(-1e-5)) / 2e-5).abs() < 1e-6);
            }
        }
    }
}
