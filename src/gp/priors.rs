//! Priors on the hyperparameters, for targets of unit scale.
//!
//! Notation: d is the number of dimensions, and p = (log ℓ…, log σ_f², log λ). For each group of columns, p has one
//! entry log ℓ.

/// The mean and standard deviation of a normal prior on one entry of p.
type NormalPrior = (f64, f64);

/// The kind of entry i of p, given the number of lengthscales: 0 for ℓ, 1 for σ_f², 2 for λ.
pub(super) fn kind(i: usize, n_lengthscales: usize) -> usize {
    (i + 1).saturating_sub(n_lengthscales)
}

/// Priors on log ℓ, log σ_f² and log λ.
///
/// The prior ℓ ~ LogNormal(√2 + ½ log d, √3) grows with the dimension, because distances grow with the dimension
/// (Hvarfner et al. 2024). The density of ℓ has its mode at exp(mean − variance) with variance = 3. The normal prior on
/// log ℓ is centred at the log of this mode. The prior on log σ_f² is N(0, 1). The prior N(−5, 3) on log λ is wide
/// enough for noiseless functions, and for values that are mostly noise.
pub(super) fn priors(d: usize) -> [NormalPrior; 3] {
    let log_lengthscale = std::f64::consts::SQRT_2 + 0.5 * (d as f64).ln();
    [
        (log_lengthscale - 3.0, 3f64.sqrt()),
        (0.0, 1.0),
        (-5.0, 3.0),
    ]
}

/// The modes of ℓ, σ_f² and λ.
pub(super) fn modes(d: usize) -> [f64; 3] {
    priors(d).map(|(mean, _)| mean.exp())
}

/// Returns the log prior density at p, up to a constant. Adds the gradient of the log density to `gradient`.
/// Lengthscales are divided by `spreads`.
pub(super) fn add_log_density(p: &[f64], d: usize, spreads: &[f64], gradient: &mut [f64]) -> f64 {
    let n_lengthscales = p.len() - 2;
    let priors = priors(d);
    let mut log_density = 0.0;
    for i in 0..p.len() {
        let (mean, std) = priors[kind(i, n_lengthscales)];
        let unit = if i < n_lengthscales { spreads[i] } else { 1.0 };
        let u = (p[i] - unit.ln() - mean) / std;
        log_density -= 0.5 * u * u;
        gradient[i] -= u / std;
    }
    log_density
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengthscales_are_at_the_mode_of_the_log_normal_density() {
        for (d, expected) in [(1, 0.204_787), (4, 0.409_573), (16, 0.819_147)] {
            assert!((modes(d)[0] - expected).abs() < 1e-6, "{d}");
        }
    }
}
