//! Tests of the model of learning curves.

use std::ops::ControlFlow;

use ndarray::{Array1, Array2};
use rand::{RngExt, SeedableRng};
use rand_distr::StandardNormal;

use super::covariance::{Kernel, P};
use super::table::{Table, Units, fill};
use super::{Curve, CurveModel, PseudoObservation};
use crate::error::Error;
use crate::numerics::cholesky::factor_in_place;
use crate::random::Rng;

type Reports = Vec<(u32, f64)>;

fn fit(ended: &[Reports], last_step: u32) -> Option<CurveModel> {
    CurveModel::fit(ended, last_step, &mut || ControlFlow::Continue(())).unwrap()
}

/// Curves that converge from below, with random sizes and noise.
fn simulate(n: usize, last_step: u32, seed: u64) -> Vec<Reports> {
    let mut rng = Rng::seed_from_u64(seed);
    let mut normal = || rng.sample::<f64, _>(StandardNormal);
    let mut curve = || {
        let (end, size, rate) = (normal(), 2.0 + 0.3 * normal(), 0.5 + 0.05 * normal());
        let value = |t: u32| (t, end - size * f64::from(t).powf(-rate) + 0.02 * normal());
        (1..=last_step).map(value).collect()
    };
    (0..n).map(|_| curve()).collect()
}

fn prefix(curve: &Reports, known: usize) -> Reports {
    curve[..known].to_vec()
}

fn changed(curves: &[Reports], change: impl Fn(f64) -> f64) -> Vec<Reports> {
    let of = |curve: &Reports| curve.iter().map(|&(t, y)| (t, change(y))).collect();
    curves.iter().map(of).collect()
}

/// Solves A x = b and returns x and log |A|, by elimination.
fn solve(a: &Array2<f64>, b: &Array1<f64>) -> (Array1<f64>, f64) {
    let (mut a, mut b, n) = (a.clone(), b.clone(), b.len());
    for p in 0..n {
        for i in p + 1..n {
            let factor = a[[i, p]] / a[[p, p]];
            for j in p..n {
                a[[i, j]] -= factor * a[[p, j]];
            }
            b[i] -= factor * b[p];
        }
    }
    for p in (0..n).rev() {
        for j in p + 1..n {
            b[p] -= a[[p, j]] * b[j];
        }
        b[p] /= a[[p, p]];
    }
    (b, a.diag().iter().map(|d| d.ln()).sum())
}

const STEPS: [u32; 6] = [1, 2, 4, 7, 11, 18];
const LAST: u32 = 30;

fn kernel() -> Kernel {
    let times = STEPS.iter().chain([&LAST]).map(|&t| f64::from(t));
    Kernel {
        times: times.collect(),
        theta: [0.4, 0.2, 1.3, -1.7],
    }
}

/// The covariance of g + ε at the steps and T, from the formula.
fn with_last(kernel: &Kernel) -> Array2<f64> {
    let [a, alpha, beta, _] = kernel.theta.map(f64::exp);
    let k = |i: usize, j: usize| (beta / (kernel.times[i] + kernel.times[j] + beta)).powf(alpha);
    let n = kernel.times.len();
    Array2::from_shape_fn((n, n), |(i, j)| {
        let noise = if i == j { kernel.noise() } else { 0.0 };
        a * (k(i, j) - k(i, n - 1) * k(j, n - 1) / k(n - 1, n - 1)) + noise
    })
}

#[test]
fn the_evidence_is_the_evidence_of_curves_with_a_flat_prior_of_h() {
    let kernel = kernel();
    let (k, n) = (with_last(&kernel), 9);
    let (ones, m) = (Array1::ones(k.nrows()), k.nrows() as f64);
    let curves = Array2::from_shape_fn((n, k.nrows()), |(i, j)| ((7 * i + 3 * j) as f64).sin());
    let mut expected = 0.0;
    for y in curves.rows() {
        let (weights, log_determinant) = solve(&k, &ones);
        let precision: f64 = weights.sum();
        let estimate = weights.dot(&y) / precision;
        let square = y.dot(&solve(&k, &y.to_owned()).0) - precision * estimate * estimate;
        let constant = (m - 1.0) * (2.0 * std::f64::consts::PI).ln();
        expected -= 0.5 * (square + log_determinant + precision.ln() + constant);
    }
    let difference = |i: usize, j: usize| curves[[i, j]] - curves[[i, k.nrows() - 1]];
    let size = STEPS.len();
    let moments = Array2::from_shape_fn((size, size), |(s, t)| {
        let products = (0..n).map(|i| difference(i, s) * difference(i, t));
        products.sum::<f64>() / n as f64
    });
    let found = kernel.log_evidence(moments.view(), n as f64, &mut [0.0; P]);
    assert!(
        (found - expected).abs() < 1e-9 * expected.abs(),
        "{found} {expected}"
    );
    let difference = kernel.covariance() - k.slice(ndarray::s![..size, ..size]);
    assert!(difference.iter().all(|d| d.abs() < 1e-12));
}

#[test]
fn the_gradient_of_the_evidence_agrees_with_differences() {
    let mut kernel = kernel();
    let size = STEPS.len();
    let moments = Array2::from_shape_fn((size, size), |(s, t)| {
        0.8f64.powi((s + t) as i32) + if s == t { 0.1 } else { 0.0 }
    });
    let (mut gradient, mut unused) = ([0.0; P], [0.0; P]);
    kernel.log_evidence(moments.view(), 12.0, &mut gradient);
    for i in 0..P {
        let theta = kernel.theta;
        let mut at = |step: f64| {
            kernel.theta[i] = theta[i] + step;
            kernel.log_evidence(moments.view(), 12.0, &mut unused)
        };
        let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
        kernel.theta = theta;
        assert!(
            (gradient[i] - slope).abs() < 1e-6 * (1.0 + slope.abs()),
            "{i}"
        );
    }
}

#[test]
fn a_fit_is_a_maximum_of_the_evidence_times_the_prior() {
    let ended = simulate(40, 30, 3);
    let ended: Vec<&Curve> = ended.iter().map(Vec::as_slice).collect();
    let table = Table::of(&ended, 30, None, 63).unwrap();
    let n = table.residuals.nrows() as f64;
    let moments = table.residuals.t().dot(&table.residuals) / n;
    let stop = &mut || ControlFlow::Continue(());
    let mut kernel = Kernel::fit(&table.steps, 30, moments.view(), n, None, stop).unwrap();
    let largest = moments.diag().iter().copied().fold(0.0, f64::max);
    let centre = [0.0, 0.0, 3f64.ln(), 0.5 * largest.ln() + 0.1f64.ln()];
    let mut objective = |theta: [f64; P]| {
        kernel.theta = theta;
        let prior = (1..P).map(|i| ((theta[i] - centre[i]) / 2.0).powi(2));
        kernel.log_evidence(moments.view(), n, &mut [0.0; P]) - 0.5 * prior.sum::<f64>()
    };
    let theta = Kernel::fit(&table.steps, 30, moments.view(), n, None, stop)
        .unwrap()
        .theta;
    let best = objective(theta);
    for i in 0..P {
        for step in [-0.1, 0.1] {
            let mut near = theta;
            near[i] += step;
            assert!(objective(near) < best + 1e-3, "{i} {step}");
        }
    }
}

/// The model with the kernel's covariance, a mean curve and units.
fn model() -> CurveModel {
    let covariance = kernel().covariance();
    let mut factor = covariance.clone();
    factor_in_place(&mut factor).unwrap();
    CurveModel {
        last_step: LAST,
        units: Units {
            centre: 5.0,
            scale: 3.0,
            warp: None,
        },
        steps: STEPS.to_vec(),
        slope: (0..STEPS.len()).map(|s| 0.2 * s as f64 - 0.1).collect(),
        mean: STEPS.iter().map(|&t| -1.0 / f64::from(t)).collect(),
        covariance,
        factor,
        inflation: 1.25,
        noise: kernel().noise(),
    }
}

#[test]
fn pseudo_observations_give_the_posterior_of_the_joint_gaussian_process() {
    let model = model();
    let [centre, scale] = [model.units.centre, model.units.scale];
    let points = [0.1, 0.35, 0.5, 0.8, 0.8];
    let reported: [&[usize]; 5] = [&[0], &[0, 1, 2, 3], &[1, 3, 5], &[0, 1, 2, 3, 4, 5], &[2]];
    let (signal, between) = (2.0, 0.3);
    let f = |x: f64, z: f64| signal * (-(x - z) * (x - z) / 0.08).exp();
    let mut all = Vec::new();
    let mut found: Vec<PseudoObservation> = Vec::new();
    for (i, steps) in reported.iter().enumerate() {
        let value = |s: usize| ((5 * i + 3 * s) as f64).sin();
        all.extend(steps.iter().map(|&s| (i, s, value(s))));
        let curve = steps.iter().map(|&s| (STEPS[s], centre + scale * value(s)));
        found.push(
            model
                .pseudo_observation(&curve.collect::<Reports>())
                .unwrap(),
        );
    }
    // Standardise the observations of h, and remove the factor for the uncertainty of the model.
    let h = Array1::from_iter(found.iter().map(|s| (s.value - centre) / scale));
    let errors: Vec<f64> = found.iter().map(|s| s.variance / 1.25 / 9.0).collect();
    let same = |i: usize, j: usize, value: f64| if i == j { value } else { 0.0 };
    let short = Array2::from_shape_fn((5, 5), |(i, j)| {
        f(points[i], points[j]) + same(i, j, between + errors[i])
    });
    let long = Array2::from_shape_fn((all.len(), all.len()), |(a, b)| {
        let ((i, s, _), (j, t, _)) = (all[a], all[b]);
        let of_h = f(points[i], points[j]) + same(i, j, between);
        model.slope[s] * model.slope[t] * of_h + same(i, j, model.covariance[[s, t]])
    });
    let r = Array1::from_iter(all.iter().map(|&(_, s, y)| y - model.mean[s]));
    for x in [0.0, 0.42, 0.8] {
        let to_short = Array1::from_iter(points.iter().map(|&z| f(x, z)));
        let to_long = all
            .iter()
            .map(|&(i, s, _)| model.slope[s] * f(x, points[i]));
        let to_long = Array1::from_iter(to_long);
        let mean = [
            solve(&short, &h).0.dot(&to_short),
            solve(&long, &r).0.dot(&to_long),
        ];
        let variance = [
            solve(&short, &to_short).0.dot(&to_short),
            solve(&long, &to_long).0.dot(&to_long),
        ];
        assert!((mean[0] - mean[1]).abs() < 1e-8, "{mean:?}");
        assert!((variance[0] - variance[1]).abs() < 1e-8, "{variance:?}");
    }
}

#[test]
fn a_pseudo_observation_needs_a_report_before_the_last_step_on_the_grid() {
    let model = model();
    assert_eq!(model.pseudo_observation(&[]), None);
    assert_eq!(model.pseudo_observation(&[(1, f64::NAN), (3, 0.4)]), None);
    assert_eq!(model.pseudo_observation(&[(1, 0.3), (LAST, 0.4)]), None);
    let known = model.pseudo_observation(&[(1, 0.3), (4, 0.9)]);
    assert!(known.is_some());
    assert_eq!(
        known,
        model.pseudo_observation(&[(1, 0.3), (2, f64::INFINITY), (3, 7.0), (4, 0.9)])
    );
}

#[test]
fn a_model_needs_five_curves_with_common_steps() {
    let ended = simulate(5, 20, 1);
    assert!(fit(&ended, 20).is_some());
    assert!(fit(&ended[..4], 20).is_none());
    assert!(fit(&ended, 21).is_none()); // none of the curves has ended
    let last_only: Vec<Reports> = ended.iter().map(|curve| vec![curve[19]]).collect();
    assert!(fit(&last_only, 20).is_none());
    assert!(fit(&simulate(9, 1, 1), 1).is_none());
    let different = |(i, curve): (usize, &Reports)| vec![curve[i], curve[19]];
    let different: Vec<Reports> = ended.iter().enumerate().map(different).collect();
    assert!(fit(&different, 20).is_none());
    let stopped = CurveModel::fit(&ended, 20, &mut || ControlFlow::Break(()));
    assert_eq!(stopped.err(), Some(Error::Interrupted));
}

#[test]
fn pseudo_observations_of_new_curves_have_the_predicted_errors() {
    let (n, known) = (400, 12);
    let model = fit(&simulate(200, 40, 5), 40).unwrap();
    let mut sum = 0.0;
    for curve in simulate(n, 40, 6) {
        let pseudo = model.pseudo_observation(&prefix(&curve, known)).unwrap();
        let error = curve[39].1 - pseudo.value;
        sum += error * error / (pseudo.variance + model.noise());
    }
    let ratio = sum / n as f64;
    assert!((0.7..1.3).contains(&ratio), "{ratio}");
}

#[test]
fn reports_that_do_not_depend_on_the_last_value_say_almost_nothing() {
    let last = |i: usize| (7.0 * i as f64).sin();
    let constant = |i: usize| (1..20).map(|t| (t, 0.3)).chain([(20, last(i))]);
    let ended: Vec<Reports> = (0..12).map(|i| constant(i).collect()).collect();
    let model = fit(&ended, 20).unwrap();
    if let Some(pseudo) = model.pseudo_observation(&[(1, 0.3), (2, 0.3)]) {
        assert!(pseudo.variance > 100.0, "{}", pseudo.variance);
    }
}

#[test]
fn more_reports_give_smaller_variances() {
    let model = fit(&simulate(30, 40, 5), 40).unwrap();
    let curve = simulate(1, 40, 8).remove(0);
    let mut before = f64::INFINITY;
    for known in 1..40 {
        let variance = model
            .pseudo_observation(&prefix(&curve, known))
            .unwrap()
            .variance;
        assert!(variance <= before * (1.0 + 1e-9), "{known}");
        before = variance;
    }
}

#[test]
fn neither_the_order_of_curves_nor_units_matter() {
    let ended = simulate(25, 30, 2);
    let curve = prefix(&simulate(1, 30, 9)[0], 10);
    let pseudo = |ended: &[Reports], curve: &Reports| {
        fit(ended, 30).unwrap().pseudo_observation(curve).unwrap()
    };
    let base = pseudo(&ended, &curve);
    assert_eq!(base, pseudo(&ended, &curve));
    let close = |a: f64, b: f64| (a - b).abs() < 1e-6 * b.abs();
    let mut reversed = ended.clone();
    reversed.reverse();
    let other = pseudo(&reversed, &curve);
    assert!(close(other.value, base.value) && close(other.variance, base.variance));
    for (factor, shift) in [(1e-9, 0.0), (-3.0, 70.0), (1e9, 1e8)] {
        let change = |y: f64| factor * y + shift;
        let curve = changed(std::slice::from_ref(&curve), change).remove(0);
        let other = pseudo(&changed(&ended, change), &curve);
        assert!(close(other.value, change(base.value)), "{other:?} {base:?}");
        assert!(close(other.variance, factor * factor * base.variance));
    }
}

#[test]
fn the_grid_has_logarithmic_spacing_among_the_steps_with_reports() {
    let every_ten: Vec<Reports> = simulate(6, 2000, 4)
        .into_iter()
        .map(|curve| curve.into_iter().filter(|(t, _)| t % 10 == 0).collect())
        .collect();
    let steps = fit(&every_ten, 2000).unwrap().steps;
    assert!(steps.len() > 40 && steps.len() <= 63, "{}", steps.len());
    assert_eq!(steps[..4], [10, 20, 30, 40]);
    assert_eq!(steps.last(), Some(&1990));
    assert!(steps.is_sorted_by(|s, t| s < t && t % 10 == 0));
    let ratio = |pair: &[u32]| f64::from(pair[1]) / f64::from(pair[0]);
    assert!(steps[20..].windows(2).all(|pair| ratio(pair) < 1.14));
    let all: Vec<u32> = (1..64).collect();
    assert_eq!(fit(&simulate(6, 64, 4), 64).unwrap().steps, all);
}

#[test]
fn missing_residuals_are_interpolated_over_the_log_of_the_step() {
    let logs: Vec<f64> = STEPS.iter().map(|&t| f64::from(t).ln()).collect();
    let end = f64::from(LAST).ln();
    let line: Array1<f64> = logs.iter().map(|log| 2.0 * (end - log)).collect();
    for missing in [vec![], vec![2], vec![1, 3, 4], vec![5], vec![4, 5]] {
        let mut row = line.clone();
        missing.iter().for_each(|&j: &usize| row[j] = f64::NAN);
        fill(row.view_mut(), &logs, end);
        assert!(
            (&row - &line).iter().all(|d| d.abs() < 1e-12),
            "{missing:?}"
        );
    }
    let mut row = line.clone();
    row.slice_mut(ndarray::s![..2]).fill(f64::NAN);
    fill(row.view_mut(), &logs, end);
    assert_eq!((row[0], row[1]), (line[2], line[2]));
}

#[test]
fn the_size_of_a_diverging_training_has_no_effect_beyond_a_bound() {
    let ended = simulate(30, 30, 2);
    let curve = prefix(&simulate(1, 30, 9)[0], 10);
    let pseudo = |value: f64| {
        let mut ended = ended.clone();
        for report in &mut ended[7][3..29] {
            report.1 = value;
        }
        fit(&ended, 30).unwrap().pseudo_observation(&curve).unwrap()
    };
    assert_eq!(pseudo(-100.0), pseudo(-1e6));
    // The other curves still determine the pseudo-observation. For comparison, the variance of h is 1.
    let before = fit(&ended, 30).unwrap().pseudo_observation(&curve).unwrap();
    for value in [-10.0, -100.0, -1e3, -1e4, -1e6, -1e300] {
        let found = pseudo(value);
        assert!(found.variance < 0.1, "{value}: {found:?}");
        assert!((found.value - before.value).abs() < 0.2, "{value}");
    }
}

#[test]
fn degenerate_curves_give_finite_pseudo_observations_or_none() {
    let ended = simulate(8, 12, 7);
    let alter = |change: &dyn Fn(usize, u32, f64) -> f64| -> Vec<Reports> {
        let of = |(i, curve): (usize, &Reports)| {
            curve.iter().map(|&(t, y)| (t, change(i, t, y))).collect()
        };
        ended.iter().enumerate().map(of).collect()
    };
    let last = |t: u32| t == 12;
    let kinds = [
        alter(&|_, _, _| 0.0),
        alter(&|_, _, _| 3.0),
        alter(&|i, _, _| i as f64),
        alter(&|_, t, _| f64::from(t)),
        alter(&|_, t, y| if last(t) { 0.0 } else { y }),
        alter(&|_, t, y| if last(t) { y } else { 0.0 }),
        alter(&|_, t, y| if last(t) { 1e300 } else { 1e-10 * y }),
        alter(&|i, _, y| if i < 6 { 1.0 } else { y }),
        alter(&|_, _, y| y * 1e300),
        alter(&|_, _, y| y * 1e-300),
        alter(&|_, _, y| y * 1e-320),
        alter(&|_, _, y| y * 1e-12 + 1.0),
        alter(&|i, _, y| if i == 2 { 1e300 } else { y }),
        alter(&|_, _, y| y.signum() * f64::MAX),
        alter(&|i, t, y| {
            if (i + t as usize).is_multiple_of(3) && !last(t) {
                f64::NAN
            } else {
                y
            }
        }),
        alter(&|i, t, y| {
            if i == 1 && !last(t) {
                f64::NEG_INFINITY
            } else {
                y
            }
        }),
    ];
    for (kind, ended) in kinds.iter().enumerate() {
        let Some(model) = fit(ended, 12) else {
            panic!("{kind}");
        };
        let (mut curves, mut given) = (ended.clone(), 0);
        curves.push(vec![(1, 1e300), (2, -1e300)]);
        curves.push(vec![(3, 0.0), (5, 1.0), (8, 1e-300)]);
        for curve in &curves {
            for known in 1..curve.len().min(12) {
                if let Some(found) = model.pseudo_observation(&prefix(curve, known)) {
                    assert!(found.value.is_finite(), "{kind}");
                    assert!(found.variance.is_finite() && found.variance > 0.0, "{kind}");
                    given += 1;
                }
            }
        }
        // Variances of values near 1e300 or 1e-300 overflow or underflow.
        assert!(given > 0 || [6, 8, 9, 10, 13].contains(&kind), "{kind}");
    }
}

#[test]
fn identical_curves_give_small_variances() {
    let curve = simulate(1, 20, 3).remove(0);
    let model = fit(&vec![curve.clone(); 10], 20).unwrap();
    let pseudo = model.pseudo_observation(&prefix(&curve, 8)).unwrap();
    assert!((pseudo.value - curve[19].1).abs() < 1e-6);
    assert!(pseudo.variance > 0.0 && pseudo.variance < 1e-6);
}

/// Curves of which a third stays far below the others.
fn with_failures(n: usize, last_step: u32, seed: u64) -> Vec<Reports> {
    let mut rng = Rng::seed_from_u64(seed);
    let mut curves = simulate(n, last_step, seed);
    for curve in curves.iter_mut().step_by(3) {
        let depth = 100.0 + 100.0 * rng.random::<f64>();
        curve
            .iter_mut()
            .for_each(|report| report.1 = 30.0 * report.1 - depth);
    }
    curves
}

#[test]
fn curves_that_end_far_below_the_others_choose_a_warp() {
    for seed in 0..4 {
        assert!(fit(&simulate(30, 40, seed), 40).unwrap().warp().is_none());
        let ended = with_failures(30, 40, seed);
        let warped = fit(&ended, 40).unwrap();
        let curve = prefix(&simulate(1, 40, 9 + seed)[0], 12);
        // Without the warp, the bad curves determine the covariance.
        let table = warped.pseudo_observation(&curve).unwrap();
        let good: Vec<Reports> = ended.iter().filter(|c| c[39].1 > -50.0).cloned().collect();
        let of_good = fit(&good, 40).unwrap().pseudo_observation(&curve).unwrap();
        assert!(warped.warp().is_some());
        assert!((table.value - of_good.value).abs() < 3.0 * of_good.variance.sqrt());
        assert!(
            table.variance < 10.0 * of_good.variance,
            "{table:?} {of_good:?}"
        );
    }
}

#[test]
fn a_warp_gives_the_model_of_warped_reports() {
    let ended = with_failures(30, 40, 5);
    let model = fit(&ended, 40).unwrap();
    let warp = model.warp().unwrap();
    let by_hand = fit(&changed(&ended, |y| warp.apply(y)), 40).unwrap();
    assert!(by_hand.warp().is_none());
    for curve in [&ended[0], &ended[1], &simulate(1, 40, 9)[0]] {
        let found = model.pseudo_observation(&prefix(curve, 10)).unwrap();
        let curve = changed(std::slice::from_ref(curve), |y| warp.apply(y)).remove(0);
        let expected = by_hand.pseudo_observation(&prefix(&curve, 10)).unwrap();
        let slope = warp.log_slope(found.value).exp();
        let close = |a: f64, b: f64| (a - b).abs() < 1e-6 * b.abs();
        assert!(close(warp.apply(found.value), expected.value));
        assert!(close(found.variance * slope * slope, expected.variance));
        assert!(close(found.noise * slope * slope, expected.noise));
    }
}

#[test]
fn missing_values_are_replaced_by_their_expectation() {
    let mut ended = simulate(9, 6, 1);
    ended[2][3].1 = f64::NAN;
    ended[4][0].1 = f64::NAN;
    ended[4][2].1 = f64::NAN;
    let ended: Vec<&Curve> = ended.iter().map(Vec::as_slice).collect();
    let mut table = Table::of(&ended, 6, None, 63).unwrap();
    let covariance = Array2::from_shape_fn((5, 5), |(i, j)| {
        0.7f64.powi((i as i32 - j as i32).abs()) + if i == j { 0.1 } else { 0.0 }
    });
    let (before, mean, slope) = (
        table.residuals.clone(),
        table.mean.clone(),
        table.slope.clone(),
    );
    table.impute(&covariance);
    // The expectation of residual `m` given the others of curve i.
    let given = |i: usize, known: &[usize], m: usize| {
        let k = Array2::from_shape_fn((known.len(), known.len()), |(a, b)| {
            covariance[[known[a], known[b]]]
        });
        let cross = Array1::from_iter(known.iter().map(|&a| covariance[[a, m]]));
        let weights = solve(&k, &cross).0;
        let r = Array1::from_iter(known.iter().map(|&a| before[[i, a]]));
        (weights.dot(&r), covariance[[m, m]] - weights.dot(&cross))
    };
    for (i, known, m) in [
        (2, &[0, 1, 2, 4][..], 3),
        (4, &[1, 3, 4], 0),
        (4, &[1, 3, 4], 2),
    ] {
        let (expected, _) = given(i, known, m);
        // The regression changed, but the value did not.
        let last = table.lasts[i];
        let value = table.residuals[[i, m]] + table.mean[m] + (table.slope[m] - 1.0) * last;
        let expected = expected + mean[m] + (slope[m] - 1.0) * last;
        assert!((value - expected).abs() < 1e-12, "{i} {m}");
    }
    let hidden = given(2, &[0, 1, 2, 4], 3).1;
    let products = table.residuals.column(3).dot(&table.residuals.column(3));
    assert!((9.0 * table.moments()[[3, 3]] - products - hidden).abs() < 1e-12);
}

/// Curves with different rates of learning and little noise; three in ten reports before the last are missing.
fn with_gaps(n: usize, seed: u64) -> Vec<Reports> {
    let mut rng = Rng::seed_from_u64(seed);
    let mut curve = || {
        let end = rng.sample::<f64, _>(StandardNormal);
        let rate = (-0.8 * end + 0.3 * rng.sample::<f64, _>(StandardNormal)).exp();
        let value = |t: u32, noise: f64| {
            let rest = (-rate * f64::from(t) / 8.0).exp() - (-5.0 * rate).exp();
            end - 3.0 * rest + 0.05 * noise
        };
        let mut report = |t: u32| match t < 40 && rng.random_bool(0.3) {
            true => (t, f64::NAN),
            false => (t, value(t, rng.sample(StandardNormal))),
        };
        (1..=40).map(&mut report).collect()
    };
    (0..n).map(|_| curve()).collect()
}

#[test]
fn missing_reports_do_not_make_pseudo_observations_too_certain() {
    let mut squares = Vec::new();
    for seed in 0..20 {
        let model = fit(&with_gaps(10, seed), 40).unwrap();
        for curve in with_gaps(20, 100 + seed) {
            if let Some(pseudo) = model.pseudo_observation(&prefix(&curve, 12)) {
                let error = curve[39].1 - pseudo.value;
                squares.push(error * error / (pseudo.variance + pseudo.noise));
            }
        }
    }
    let mean = squares.iter().sum::<f64>() / squares.len() as f64;
    assert!(mean < 2.25, "{mean}");
}

#[test]
fn neither_gaps_nor_one_diverging_start_choose_a_warp() {
    let mut rng = Rng::seed_from_u64(7);
    for seed in 0..8 {
        let mut ended = simulate(30, 12, seed);
        for report in &mut ended[3][..10] {
            report.1 = -1e8;
        }
        assert!(fit(&ended, 12).unwrap().warp().is_none(), "{seed}");
        for share in [0.3, 0.45] {
            let mut ended = simulate(30, 12, seed);
            for report in ended.iter_mut().flat_map(|curve| &mut curve[..11]) {
                if rng.random_bool(share) {
                    report.1 = f64::NAN;
                }
            }
            assert!(fit(&ended, 12).unwrap().warp().is_none(), "{seed} {share}");
        }
    }
}

#[test]
fn trials_with_a_last_report_only_do_not_matter() {
    let ended = with_failures(30, 40, 1);
    let mut others = ended.clone();
    others.extend((0..31).map(|i| vec![(40, f64::from(i))]));
    let [one, two] = [&ended, &others].map(|ended| fit(ended, 40).unwrap());
    assert!(one.warp().is_some() && one.warp() == two.warp());
    let curve = prefix(&simulate(1, 40, 9)[0], 12);
    assert_eq!(
        one.pseudo_observation(&curve),
        two.pseudo_observation(&curve)
    );
}
