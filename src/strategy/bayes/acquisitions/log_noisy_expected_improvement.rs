//! The logarithm of noisy expected improvement. The expected improvement is averaged over fantasies, and every fantasy
//! has a separate incumbent (Letham et al. 2019). The fantasies include the pending points (Balandat et al. 2020), and
//! the computation uses logarithms (Ament et al. 2023). The posterior is conditioned on noiseless rows: the baseline
//! points, which are the observed points that may be the best, and the pending points.
//!
//! Notation: m is the number of fantasies; mu_i and f*_i are the mean and incumbent under fantasy i; u_i = (mu_i −
//! f*_i)/sigma; h, φ, Φ and Mills' ratio R are as in [`super::log_ei`].

use std::borrow::BorrowMut;

use multiversion::multiversion;
use ndarray::{Array2, ArrayView1, ArrayView2, Axis, concatenate, s};

use super::formula::{Block, Buffers, Formula, floored_std};
use super::incumbents::{MARGIN, best_elsewhere, feasible_rows, is_here, rows_in_context};
use super::log_inside::FRAC_1_SQRT_2_PI;
use super::rule::Situation;
use crate::error::Result;
use crate::gp::fantasies::Fantasies;
use crate::gp::{Conditioned, GaussianProcess, Target};
use crate::numerics::cholesky::sum;
use crate::numerics::order::best_first;
use crate::numerics::special::{exp_nonpositive, mills_ratio, normal_quantile};
use crate::problem::unit_sequence;
use crate::random::Rng;
use crate::strategy::Query;

/// The largest number of baseline points.
pub(super) const MAX_BASELINE: usize = 16;

/// The acquisition log (1/m) Σ_i E max(0, f − f*_i).
#[derive(Debug, Clone)]
pub struct LogNoisyExpectedImprovement {
    pub fantasies: Fantasies,
    /// The incumbents f*_i, shape (m,).
    pub incumbents: Vec<f64>,
}

impl LogNoisyExpectedImprovement {
    /// Draws n quasi-random fantasies of f at the noiseless rows of the tail: the baseline points and the pending points.
    /// The incumbent of a fantasy is its largest value, or the largest lower bound at a point observed in another context.
    pub fn draw(situation: Situation, n: usize, rng: &mut Rng) -> Result<Self> {
        let (gp, query) = (situation.gp, situation.query);
        let fantasies = draw_fantasies(&situation, n, rng)?;
        let (_, elsewhere) = best_elsewhere(gp, situation.unranked, query, |_| true)?;
        let points = incumbent_points(gp, &elsewhere, query);
        let (values, margins) = values(gp, &fantasies, points.view());
        let largest = |draw: ArrayView1<f64>| {
            let lower = draw.iter().zip(&margins).map(|(f, margin)| f - margin);
            lower.fold(f64::NEG_INFINITY, f64::max)
        };
        Ok(Self {
            incumbents: values.rows().into_iter().map(largest).collect(),
            fantasies,
        })
    }
}

/// Draws n quasi-random fantasies at the tail.
pub(super) fn draw_fantasies(situation: &Situation, n: usize, rng: &mut Rng) -> Result<Fantasies> {
    let draws = unit_sequence(n, situation.gp.tail().nrows(), rng);
    fantasies_of(situation.gp, draws, situation.pending)
}

/// The points of the tail in the context of the query, followed by points of other contexts. An incumbent is the value
/// of a point in this context, because the best point would be used in this context.
pub(super) fn incumbent_points<G: BorrowMut<GaussianProcess>>(
    gp: &Conditioned<G>,
    elsewhere: &Array2<f64>,
    query: Query,
) -> Array2<f64> {
    concatenate![
        Axis(0),
        rows_in_context(gp.tail(), query.context),
        *elsewhere
    ]
}

/// The fantasies of uniform draws (n, p). `pending` contains the targets of the last rows of the tail.
pub(super) fn fantasies_of<G: BorrowMut<GaussianProcess>>(
    gp: &Conditioned<G>,
    mut draws: Array2<f64>,
    pending: &[Target],
) -> Result<Fantasies> {
    draws.mapv_inplace(|u| normal_quantile(u.clamp(1e-12, 1.0 - 1e-12)));
    gp.condition_draws(&mut draws, pending)?;
    gp.fantasies(draws)
}

/// The posterior means (m fantasies, p) at the rows of `points` (p, d), which are the rows of the tail in a context,
/// followed by other points; and 2 sigma at the points that differ from their rows of the tail, or 0 at the others, whose
/// values a fantasy contains. Only the points that differ need solves.
pub(super) fn values<G: BorrowMut<GaussianProcess>>(
    gp: &Conditioned<G>,
    fantasies: &Fantasies,
    points: ArrayView2<f64>,
) -> (Array2<f64>, Vec<f64>) {
    let (tail, p) = (gp.tail(), points.nrows());
    let at_tail = fantasies.means_at_tail(gp);
    let moved: Vec<usize> = (0..p)
        .filter(|&i| i >= tail.nrows() || tail.row(i) != points.row(i))
        .collect();
    let mut margins = vec![0.0; p];
    if moved.is_empty() {
        return (at_tail, margins);
    }
    let mut values = Array2::zeros((fantasies.len(), p));
    values.slice_mut(s![.., ..tail.nrows()]).assign(&at_tail);
    let (means, variance) = fantasies.predict(gp, points.select(Axis(0), &moved).view());
    for ((&i, means), variance) in moved.iter().zip(means.rows()).zip(variance) {
        values.column_mut(i).assign(&means);
        margins[i] = MARGIN * variance.sqrt();
    }
    (values, margins)
}

/// The baseline points, sorted by mu: the points observed in this context that may be the best points, without the points
/// of the `unranked` rows. Points observed in other contexts are not in the baseline, because conditioning on noiseless
/// rows there would leave nothing to gain from observing these points in this context.
///
/// Let l be mu − 2 sigma at the point with the largest mu. A point may be the best point if mu + 2 sigma at this point
/// is at least l.
pub fn baseline_points(
    gp: &GaussianProcess,
    unranked: &[usize],
    query: Query,
) -> Result<Array2<f64>> {
    let here = is_here(gp, query.context);
    let mut means = gp.means_at_rows();
    means.truncate(here.len());
    let mut order = best_first(&means);
    order.retain(|row| here[*row] && !unranked.contains(row));
    let order = feasible_rows(gp, &order, MAX_BASELINE, query)?;
    let points = gp.rows();
    let (mean, variance) = gp.predict(points.select(Axis(0), &order).view());
    let upper = |i: usize| mean[i] + 2.0 * variance[i].sqrt();
    let lower_of_best = mean
        .first()
        .map_or(0.0, |best| best - 2.0 * variance[0].sqrt());
    let kept: Vec<usize> = (0..order.len())
        .filter(|&i| upper(i) >= lower_of_best)
        .map(|i| order[i])
        .collect();
    Ok(points.select(Axis(0), &kept))
}

/// The posterior means (N, m) and variances (N,) at the rows of a block.
pub(super) fn moments(fantasies: &Fantasies, block: &Block) -> (Array2<f64>, Vec<f64>) {
    let Some(v) = block.solved else {
        return fantasies.predict(block.gp, block.rows);
    };
    let (mean, variance) = block.moments();
    let mut means = Array2::zeros((mean.len(), fantasies.len()));
    fantasies.means(&mean, v, means.view_mut());
    (means, variance)
}

impl Formula for LogNoisyExpectedImprovement {
    fn in_units_of_f(&self, value: f64, scale: f64, _value_of: &dyn Fn(f64) -> f64) -> f64 {
        value + scale.ln()
    }

    fn values(&self, block: &Block, buffers: &mut Buffers, out: &mut [f64]) {
        let (mut means, variance) = moments(&self.fantasies, block);
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
    use crate::gp::kernel::KernelFamily;
    use crate::gp::tests::{model, wave};
    use crate::maximize::feasible::Feasible;
    use crate::strategy::bayes::acquisitions::log_ei::log_improvement;
    use crate::strategy::bayes::acquisitions::tests::{on_the_left, query};
    use rand::SeedableRng;

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

    #[test]
    fn baseline_points_are_the_possibly_best_points_in_order_of_their_means() {
        let gp = model(KernelFamily::Matern52, 15);
        for constrained in [false, true] {
            let feasible = match constrained {
                true => Feasible::by(&on_the_left),
                false => Feasible::EVERYWHERE,
            };
            let mut expected = Vec::new();
            for x in gp.rows().rows() {
                let (mean, variance) = gp.predict(x.insert_axis(Axis(0)));
                if !constrained || x[0] < 0.0 {
                    expected.push((mean[0], variance[0].sqrt(), x.to_vec()));
                }
            }
            expected.sort_by(|a, b| b.0.total_cmp(&a.0));
            let lower = expected[0].0 - 2.0 * expected[0].1;
            expected.retain(|(mean, std, _)| mean + 2.0 * std >= lower);
            let points = baseline_points(&gp, &[], query(feasible)).unwrap();
            let points: Vec<_> = points.rows().into_iter().map(|x| x.to_vec()).collect();
            let expected: Vec<_> = expected.into_iter().map(|(_, _, x)| x).collect();
            assert_eq!(points, expected);
        }
    }

    #[test]
    fn values_of_fantasies_equal_predictions_in_every_context() {
        let tail = wave(4, 2, 5.0);
        let (baseline, pending) = tail.view().split_at(Axis(0), 2);
        let gp = model(KernelFamily::Matern52, 15);
        let gp = Conditioned::on_noiseless(gp, baseline, pending).unwrap();
        let fantasies = gp.fantasies(wave(6, 4, 2.2)).unwrap();
        // The second context equals the context of one row.
        for context in [vec![], vec![tail[[2, 1]]]] {
            let points = rows_in_context(tail.view(), &context);
            let (expected, variance) = fantasies.predict(&gp, points.view());
            let (values, margins) = values(&gp, &fantasies, points.view());
            assert!((values - expected.t()).iter().all(|e| e.abs() < 1e-9));
            for (i, (margin, variance)) in margins.iter().zip(&variance).enumerate() {
                let expected = match points.row(i) == tail.row(i) {
                    true => 0.0,
                    false => 2.0 * variance.sqrt(),
                };
                assert!((margin - expected).abs() < 1e-9, "{margin} {expected}");
            }
        }
    }

    #[test]
    fn incumbents_of_noisy_improvement_are_draws_of_the_largest_value() {
        // The only row has mean m and variance v. A pending point is far from this row, and has the prior mean 0 and
        // the prior variance 1.3.
        let n = 4096;
        for tail in [0, 1] {
            let mut gp = model(KernelFamily::Matern52, 1);
            let (mean, variance) = gp.predict(wave(1, 2, 0.4).view());
            let (m, v) = (mean[0], variance[0]);
            let far = Array2::from_elem((tail, 2), 500.0);
            let mut rng = Rng::seed_from_u64(1);
            let query = query(Feasible::EVERYWHERE);
            let baseline = baseline_points(&gp, &[], query).unwrap();
            let situation = Situation {
                gp: &Conditioned::on_noiseless(&mut gp, baseline.view(), far.view()).unwrap(),
                targets: &[],
                unranked: &[],
                pending: &vec![Target::PosteriorMean; tail],
                n_fantasies: Some(n),
                nu: 1.0,
                lower_bound: None,
                query,
            };
            let noisy = LogNoisyExpectedImprovement::draw(situation, n, &mut rng).unwrap();
            assert_eq!(noisy.incumbents.len(), n);
            let average = |f: &dyn Fn(f64) -> f64| {
                noisy.incumbents.iter().map(|y| f(*y)).sum::<f64>() / n as f64
            };
            let (first, second) = (average(&|y| y), average(&|y| y * y));
            // The expected values of max and max² for two independent normal variables, with a² = v + 1.3 and α = m/a
            // (Clark 1961).
            let (expected_first, expected_second) = match tail {
                0 => (m, v + m * m),
                _ => {
                    let a = (v + 1.3).sqrt();
                    let alpha = m / a;
                    let cdf = 0.5 * libm::erfc(-alpha / std::f64::consts::SQRT_2);
                    let density = (-0.5 * alpha * alpha).exp() / std::f64::consts::TAU.sqrt();
                    let second = (m * m + v) * cdf + 1.3 * (1.0 - cdf) + m * a * density;
                    (m * cdf + a * density, second)
                }
            };
            assert!(
                (first - expected_first).abs() < 0.01,
                "{first} {expected_first}"
            );
            assert!(
                (second - expected_second).abs() < 0.03,
                "{second} {expected_second}"
            );
        }
    }
}
