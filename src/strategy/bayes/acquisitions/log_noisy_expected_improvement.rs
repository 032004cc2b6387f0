//! The logarithm of noisy expected improvement. The expected improvement is averaged over fantasies, and every fantasy
//! has a separate incumbent (Letham et al. 2019). The fantasies include the pending points (Balandat et al. 2020), and
//! the computation uses logarithms (Ament et al. 2023).
//!
//! Notation: m is the number of fantasies; mu_i and f*_i are the mean and incumbent under fantasy i; u_i = (mu_i −
//! f*_i)/sigma; h, φ, Φ and Mills' ratio R are as in [`super::log_ei`].

use multiversion::multiversion;
use ndarray::Array2;

use super::formula::{Block, Buffers, Formula, floored_std};
use crate::gp::GaussianProcess;
use crate::gp::fantasies::Fantasies;
use crate::numerics::cholesky::sum;
use crate::numerics::special::{exp_nonpositive, mills_ratio};

/// The acquisition log (1/m) Σ_i E max(0, f − f*_i).
#[derive(Debug, Clone)]
pub struct LogNoisyExpectedImprovement {
    pub fantasies: Fantasies,
    /// The incumbents f*_i, shape (m,).
    pub incumbents: Vec<f64>,
}

impl Formula for LogNoisyExpectedImprovement {
    fn in_units_of_f(&self, value: f64, scale: f64, _value_of: &dyn Fn(f64) -> f64) -> f64 {
        value + scale.ln()
    }

    fn values(&self, block: &Block, buffers: &mut Buffers, out: &mut [f64]) {
        let (mut means, variance) = match block.solved {
            Some(v) => {
                let (mean, variance) = block.moments();
                let mut means = Array2::zeros((mean.len(), self.fantasies.len()));
                self.fantasies.means(&mean, v, means.view_mut());
                (means, variance)
            }
            None => self.fantasies.predict(block.gp, block.rows),
        };
        let scratch = &mut buffers.scratch;
        let rows = means.rows_mut().into_iter().zip(variance);
        for ((mut means, variance), out) in rows.zip(out) {
            *out = means.as_slice_mut().map_or(f64::NAN, |means| {
                log_mean_improvement(means, variance, &self.incumbents, scratch).0
            });
        }
    }

    fn value_and_gradient(
        &self,
        gp: &GaussianProcess,
        x: &[f64],
        buffers: &mut Buffers,
        gradient: &mut [f64],
    ) -> f64 {
        let (workspace, means) = (&mut buffers.workspace, &mut buffers.means);
        let by_tail = &mut buffers.by_tail;
        let (mean, variance) = gp.predict_at(x, workspace);
        means.resize(self.fantasies.len(), 0.0);
        self.fantasies.means_at(mean, workspace.whitened(), means);
        let (scratch, incumbents) = (&mut buffers.scratch, &self.incumbents);
        let (value, by_std) = log_mean_improvement(means, variance, incumbents, scratch);
        let by_means = &*means;
        // Each fantasy has a vector δ_i, and mu_i is mu plus the inner product of δ_i and the v of the pending rows. So
        // the gradient of mu_i contains ∇v of the pending rows.
        self.fantasies.blend(by_means, by_tail);
        // ∇sigma = ∇var / (2 sigma)
        let by_variance = by_std / (2.0 * floored_std(variance));
        gp.gradient(x, sum(by_means), by_variance, by_tail, workspace, gradient);
        value
    }
}

/// Returns log (1/m) Σ_i sigma h(u_i) and its derivative with respect to sigma. Overwrites each entry mu_i of `means`
/// with the derivative with respect to mu_i. `scratch` is a buffer.
///
/// All terms are in units of exp(r). If all u_i < 0, r = −min u_i²/2; otherwise r = 0. For a = |u| and R = R(a), Φ(−a)
/// = φ R and h(−a) = φ (1 − a R); for u ≥ 0, Φ(a) = 1 − Φ(−a) and h(a) = a + h(−a). d(sigma h)/d sigma = φ.
fn log_mean_improvement(
    means: &mut [f64],
    variance: f64,
    incumbents: &[f64],
    scratch: &mut Vec<f64>,
) -> (f64, f64) {
    let (m, std) = (means.len(), floored_std(variance));
    let leads = means.iter().zip(incumbents).map(|(mean, f)| mean - f);
    // Multiply by 1/sigma, as in the computation of u_i. A division would round differently, and the exponent of e^r
    // would amplify the difference. The lower limit prevents an overflow when `largest` is squared.
    let precision = 1.0 / std;
    let largest = (leads.fold(f64::MIN, f64::max) * precision).clamp(-1e150, 0.0);
    let reference = -0.5 * largest * largest;
    scratch.resize(2 * m, 0.0);
    let (improvements, densities) = scratch.split_at_mut(m);
    improve(
        means,
        incumbents,
        precision,
        reference,
        improvements,
        densities,
    );
    let total = sum(improvements);
    let value = std.ln() + reference + (total / m as f64).ln();
    let slope = 1.0 / (std * total);
    means.iter_mut().for_each(|mean| *mean *= slope);
    (value, sum(densities) * slope)
}

/// Writes h(u_i) and φ(u_i) in units of exp(reference). Overwrites the means with Φ(u_i).
#[multiversion(targets = "simd")]
fn improve(
    means: &mut [f64],
    incumbents: &[f64],
    precision: f64,
    reference: f64,
    improvements: &mut [f64],
    densities: &mut [f64],
) {
    const FRAC_1_SQRT_2_PI: f64 = 0.398_942_280_401_432_7;
    let ends = improvements.iter_mut().zip(densities);
    for (((mean, incumbent), h), phi) in means
        .iter_mut()
        .zip(incumbents)
        .zip(ends)
        .map(|(start, (h, phi))| ((start, h), phi))
    {
        let u = (*mean - incumbent) * precision;
        let a = if u.abs() < 1e150 { u.abs() } else { 1e150 };
        let (ratio, rest) = mills_ratio(a);
        let density = FRAC_1_SQRT_2_PI * exp_nonpositive(-0.5 * a * a - reference);
        let below = density * ratio;
        *phi = density;
        *h = density * rest + if u > 0.0 { u } else { 0.0 };
        *mean = if u > 0.0 { 1.0 - below } else { below };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::bayes::acquisitions::log_ei::log_improvement;

    #[test]
    fn mean_improvement_matches_high_precision_values() {
        // The expected values of log (1/3) Σ sigma h(u_i) were computed with 80 digits.
        for (means, incumbents, sigma, expected) in [
            (
                [0.3, -0.2, 1.1],
                [0.5, 0.6, 0.1],
                0.7,
                -0.868_471_402_894_072_6,
            ),
            (
                [-3.0, -9.0, -2.5],
                [0.0, 1.0, 0.5],
                0.4,
                -34.445_850_185_517_02,
            ),
            (
                [-3.0, -30.0, -20.0],
                [0.0, 1.0, 0.5],
                0.01,
                -45_018.030_319_289_21,
            ),
            (
                [5.0, 4.0, 3.5],
                [0.0, 1.0, 9.0],
                0.01,
                0.980_829_253_011_721_2,
            ),
        ] {
            let value =
                log_mean_improvement(&mut means.clone(), sigma * sigma, &incumbents, &mut vec![]).0;
            assert!((value / expected - 1.0).abs() < 1e-12, "{value} {expected}");
        }
        for mean in [-1e300, -1e8, 1e300] {
            let mut means = [mean; 3];
            let (value, slope) = log_mean_improvement(&mut means, 1e-4, &[0.0; 3], &mut vec![]);
            assert!(value.is_finite() && slope.is_finite() && means[0].is_finite());
        }
    }

    #[test]
    fn equal_fantasies_give_log_expected_improvement() {
        for i in 0..1200 {
            let (mean, sigma) = (0.05 * i as f64 - 40.0, 0.7);
            let mut means = vec![mean; 11];
            let (value, by_sigma) =
                log_mean_improvement(&mut means, sigma * sigma, &[0.4; 11], &mut vec![]);
            let u = (mean - 0.4) / sigma;
            let (log_h, slope) = log_improvement(u);
            assert!(
                (value - sigma.ln() - log_h).abs() < 1e-12 * value.abs().max(1.0),
                "{u}"
            );
            let by_mean: f64 = means.iter().sum();
            assert!((by_mean * sigma / slope - 1.0).abs() < 1e-10, "{u}");
            let expected = (1.0 - slope * u) / sigma;
            // Both numbers may be large, so the tolerance is relative.
            assert!(
                (by_sigma - expected).abs() < 1e-9 * (slope * u).abs().max(1.0),
                "{u}"
            );
        }
    }
}
