//! A linear model of log d, with the regularisation that maximises the evidence.
//!
//! Notation: log d = b + wᵀφ(x) + ε, where φ(x) contains the columns of x minus their means, w ~ N(0, σ²/κ · I) and
//! ε ~ N(0, σ²).

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};

use crate::numerics::cholesky::{LowerFactor, factor_in_place};

/// The values of κ that are compared.
const RATIOS: [f64; 9] = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0, 1000.0];

/// The estimate of σ² contains one pseudo-row, whose squared residual is this share of the variance of log d. Without
/// the pseudo-row, the estimate for few rows would be 0.
const PSEUDO_RESIDUAL: f64 = 0.1;

/// A variance of log d below this number counts as 0.
const MIN_VARIANCE: f64 = 1e-12;

/// The rows, and the factors that depend only on the rows. With these factors, each further y is fitted at a small
/// cost.
pub struct Design {
    center: Array1<f64>,
    /// The rows φ(x).
    phi: Array2<f64>,
    /// For each κ, the factor of G + κI with G = φᵀφ, the logarithm of its determinant, and the degrees of freedom.
    factors: Vec<(f64, Array2<f64>, f64, f64)>,
}

impl Design {
    /// Factorises G + κI for every κ at which the matrix is positive definite. There must be at least one row.
    pub fn of(x: ArrayView2<f64>) -> Self {
        let center = x.sum_axis(Axis(0)) / x.nrows() as f64;
        let phi = &x - &center;
        let gram = phi.t().dot(&phi);
        let factor = |ratio: f64| {
            let mut factor = gram.clone();
            factor.diag_mut().iter_mut().for_each(|g| *g += ratio);
            factor_in_place(&mut factor).ok()?;
            let log_det = 2.0 * factor.diag().iter().map(|l| l.ln()).sum::<f64>();
            // The trace of G(G + κI)⁻¹ is w − κ tr((G + κI)⁻¹), and tr(A⁻¹) is the squared norm of L⁻¹.
            let mut inverse = Array2::eye(gram.nrows());
            LowerFactor::of(&factor).forward_substitution(inverse.view_mut());
            let trace = inverse.iter().map(|l| l * l).sum::<f64>();
            let freedom = 1.0 + gram.nrows() as f64 - ratio * trace;
            Some((ratio, factor, log_det, freedom))
        };
        Self {
            factors: RATIOS.into_iter().filter_map(factor).collect(),
            center,
            phi,
        }
    }

    /// Fits the model to y, with the κ of the largest evidence. For each κ, w is the posterior mean, and σ² maximises
    /// the evidence.
    pub fn fit(&self, y: &[f64]) -> Linear {
        let n = y.len() as f64;
        let intercept = y.iter().sum::<f64>() / n;
        let y: Array1<f64> = y.iter().map(|y| y - intercept).collect();
        let (product, total) = (self.phi.t().dot(&y), y.dot(&y));
        let constant = Linear {
            weights: Array1::zeros(self.center.len()),
            center: self.center.clone(),
            intercept,
            variance: total / n,
            freedom: 1.0,
        };
        if constant.variance < MIN_VARIANCE {
            return constant;
        }
        let pseudo = PSEUDO_RESIDUAL * total / n;
        let mut best = (f64::NEG_INFINITY, constant);
        for (ratio, factor, log_det, freedom) in &self.factors {
            let mut solved = product.clone().insert_axis(Axis(0));
            LowerFactor::of(factor).forward_substitution(solved.view_mut());
            LowerFactor::of(factor).backward_substitution(solved.view_mut());
            let weights = solved.remove_axis(Axis(0));
            let variance = (total - product.dot(&weights) + pseudo) / n;
            let width = weights.len() as f64;
            let evidence = -0.5 * (n * variance.ln() + log_det - width * ratio.ln());
            if evidence > best.0 {
                let fitted = Linear {
                    weights,
                    variance,
                    freedom: *freedom,
                    ..best.1
                };
                best = (evidence, fitted);
            }
        }
        best.1
    }
}

/// The fitted model.
#[derive(Debug, Clone)]
pub struct Linear {
    center: Array1<f64>,
    weights: Array1<f64>,
    intercept: f64,
    /// σ².
    pub variance: f64,
    /// The number of degrees of freedom that the fit used, including the intercept.
    pub freedom: f64,
}

impl Linear {
    /// Fits the model to at least one row.
    pub fn fit(x: ArrayView2<f64>, y: &[f64]) -> Self {
        Design::of(x).fit(y)
    }

    /// The expected log d at x.
    pub fn mean(&self, x: ArrayView1<f64>) -> f64 {
        let moved = x.iter().zip(&self.center).zip(&self.weights);
        self.intercept + moved.map(|((x, c), w)| w * (x - c)).sum::<f64>()
    }

    /// The gradient of the mean, which is the same at every x.
    pub fn slope(&self) -> &[f64] {
        self.weights.as_slice().expect("weights are contiguous")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gp::tests::wave;

    #[test]
    fn the_evidence_and_the_weights_equal_the_formulas_of_a_gaussian_process_with_a_linear_kernel()
    {
        let x = wave(9, 3, 2.0);
        let y: Vec<f64> = (0..9)
            .map(|i| 0.3 + x[[i, 0]] - 2.0 * x[[i, 2]] + 0.1 * (i as f64).sin())
            .collect();
        let model = Linear::fit(x.view(), &y);
        // The posterior mean of the Gaussian process with k(x, x') = φ(x)ᵀφ(x')/κ and noise variance 1.
        let mean = y.iter().sum::<f64>() / 9.0;
        let phi = &x - &(x.sum_axis(Axis(0)) / 9.0);
        let predictions = RATIOS.map(|ratio| {
            let mut k: Array2<f64> = phi.dot(&phi.t()) / ratio;
            k.diag_mut().iter_mut().for_each(|k| *k += 1.0);
            factor_in_place(&mut k).unwrap();
            let mut alpha = Array2::from_shape_fn((1, 9), |(_, i)| y[i] - mean);
            LowerFactor::of(&k).forward_substitution(alpha.view_mut());
            LowerFactor::of(&k).backward_substitution(alpha.view_mut());
            mean + alpha.row(0).dot(&phi.dot(&phi.row(4))) / ratio
        });
        let found = model.mean(x.row(4));
        assert!(
            predictions.iter().any(|p| (p - found).abs() < 1e-9),
            "{found} {predictions:?}"
        );
    }

    #[test]
    fn equal_values_give_a_constant_and_few_rows_a_finite_model() {
        let (x, nine) = (wave(3, 5, 1.0), ArrayView1::from(&[9.0; 5]));
        let model = Linear::fit(x.view(), &[2.0; 3]);
        assert_eq!((model.mean(nine), model.slope()), (2.0, &[0.0; 5][..]));
        let model = Linear::fit(x.slice(ndarray::s![..1, ..]), &[3.0]);
        assert_eq!(model.mean(nine), 3.0);
        let model = Linear::fit(x.slice(ndarray::s![..2, ..]), &[3.0, 5.0]);
        assert!(model.mean(x.row(2)).is_finite() && model.variance > 0.0);
    }
}
