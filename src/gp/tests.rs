//! Tests of the posterior and its tail, by comparison with dense formulas and finite differences.

mod limits;
mod pseudo_observed;

use ndarray::{Array2, Axis, array};

use super::kernel::{InputWarp, KernelFamily, Kumaraswamy};
use super::posterior::dot_row;
use super::{Conditioned, GaussianProcess, Hyperparameters, RowNoise, Target, Workspace, as_row};
use crate::error::Error;
use crate::numerics::growing_cholesky::GrowingCholesky;

#[test]
fn targets_that_overflow_are_refused_and_large_targets_are_accepted() {
    let theta = Hyperparameters::new(vec![0.7, 1.1], 1.0, 1e-6);
    let rows = ndarray::arr2(&[[0.1, 0.2], [0.1, 0.2], [0.9, 0.3]]);
    let mut gp = GaussianProcess::new(KernelFamily::Matern52, &theta).unwrap();
    gp.append_rows(rows.view()).unwrap();
    let refused = gp.set_targets(&[1e305, -1e305, 1.0]);
    assert_eq!(refused, Err(Error::Overflow { largest: 1e305 }));
    gp.set_targets(&[1e300, -1e300, 1e-300]).unwrap();
    assert!(gp.mean(rows.view()).iter().all(|m| m.is_finite()));
    let refused = Conditioned::on(gp, rows.view(), &[Target::Value(f64::MIN); 3]);
    assert_eq!(refused.err(), Some(Error::Overflow { largest: f64::MAX }));
}

#[test]
fn a_target_whose_mean_rounds_to_infinity_is_refused() {
    // In exact arithmetic, v · (y / v) equals y. In floating-point arithmetic, the product may be infinite.
    let (y, v) = (f64::MAX, 1.9613911470226837);
    let theta = Hyperparameters::new(vec![0.03], v, 0.0);
    let mut gp = GaussianProcess::new(KernelFamily::Matern52, &theta).unwrap();
    gp.append_rows(Array2::zeros((1, 1)).view()).unwrap();
    assert_eq!(gp.set_targets(&[y]), Err(Error::Overflow { largest: y }));
}

pub(crate) fn wave(n: usize, d: usize, seed: f64) -> Array2<f64> {
    Array2::from_shape_fn((n, d), |(i, k)| {
        (((i * 7 + k * 13) as f64 + seed) * 1.618).sin()
    })
}

/// The posterior of the same rows and targets with an input warp.
pub(crate) fn with_warp(gp: &GaussianProcess, maps: Vec<Kumaraswamy>) -> GaussianProcess {
    let theta = Hyperparameters {
        input_warp: InputWarp::new(maps),
        ..gp.hyperparameters()
    };
    let mut warped = GaussianProcess::new(gp.kernel().family, &theta).unwrap();
    warped.append_rows(gp.rows()).unwrap();
    warped.set_targets(&gp.targets()).unwrap();
    warped
}

pub(crate) fn model(family: KernelFamily, n: usize) -> GaussianProcess {
    let theta = Hyperparameters::new(vec![0.7, 1.1], 1.3, 0.01);
    let mut gp = GaussianProcess::new(family, &theta).unwrap();
    let x = wave(n, 2, 0.4);
    gp.append_rows(x.view()).unwrap();
    let y: Vec<f64> = x.rows().into_iter().map(|r| r[0] * 2.0 - r[1]).collect();
    gp.set_targets(&y).unwrap();
    gp
}

/// A warped posterior equals the posterior at rows that are warped beforehand, where w continues with slope 1 outside
/// [0, 1].
#[test]
fn rows_beyond_a_bound_are_used_where_they_are() {
    let map = Kumaraswamy(4.0, 0.25);
    let w = |u: f64| match u {
        0.0..=1.0 => 1.0 - (1.0 - u.powi(4)).powf(0.25),
        _ => u,
    };
    for family in KernelFamily::ALL {
        let theta = Hyperparameters::new(vec![0.7], 1.3, 0.01);
        let mut plain = GaussianProcess::new(family, &theta).unwrap();
        let rows = array![[0.1], [0.5], [0.9], [1.0], [1.01], [1.2], [-0.5]];
        let (points, y) = (
            array![[0.3], [1.01], [1.2], [-0.1]],
            [1.0, 2.0, 0.5, 0.0, 3.0, -1.0, 1.0],
        );
        plain.append_rows(rows.view()).unwrap();
        plain.set_targets(&y).unwrap();
        let warped = with_warp(&plain, vec![map]);
        let mut mapped = GaussianProcess::new(family, &theta).unwrap();
        mapped.append_rows(rows.mapv(w).view()).unwrap();
        mapped.set_targets(&y).unwrap();
        let (mean, variance) = warped.predict(points.view());
        let (expected, expected_variance) = mapped.predict(points.mapv(w).view());
        for i in 0..4 {
            assert!((mean[i] - expected[i]).abs() < 1e-9);
            assert!((variance[i] - expected_variance[i]).abs() < 1e-9);
        }
        assert!((mean[1] - mean[2]).abs() > 1e-3);
    }
}

#[test]
fn hallucinated_rows_keep_the_mean_and_reduce_the_variance() {
    for family in KernelFamily::ALL {
        let gp = model(family, 20);
        let z = wave(9, 2, 3.3);
        let (mean, variance) = gp.predict(z.view());
        let tail = wave(3, 2, 8.8);
        let gp = Conditioned::on(gp, tail.view(), &[Target::PosteriorMean; 3]).unwrap();
        let (mean_after, variance_after) = gp.predict(z.view());
        for i in 0..9 {
            assert!((mean[i] - mean_after[i]).abs() < 1e-10);
            assert!(variance_after[i] <= variance[i] + 1e-12);
        }
        assert!(variance_after.iter().sum::<f64>() < variance.iter().sum::<f64>());
        let tail_means = gp.targets();
        assert!((tail_means[20] - gp.mean(tail.view())[0]).abs() < 1e-9);
    }
}

#[test]
fn means_at_rows_equal_predictions() {
    for family in KernelFamily::ALL {
        let mut gp = model(family, 20);
        // The second of two equal noiseless rows needs jitter.
        let rows =
            ndarray::concatenate![Axis(0), wave(1, 2, 8.8), wave(1, 2, 8.8), wave(1, 2, 5.0)];
        gp.append_noisy_rows(
            rows.view(),
            &[
                RowNoise::Known(0.0),
                RowNoise::Known(0.0),
                RowNoise::default(),
            ],
        )
        .unwrap();
        assert!(gp.factor().jitter() > 0.0);
        // Equal rows have equal targets. Otherwise, α would be very large, and rounding errors would be large.
        let y: Vec<f64> = (0..23)
            .map(|i| f64::from(if i == 21 { 20 } else { i }).sin())
            .collect();
        gp.set_targets(&y).unwrap();
        for tail in [0, 3] {
            let values = vec![Target::Value(0.4); tail];
            let gp = Conditioned::on(&mut gp, wave(tail, 2, 1.7).view(), &values).unwrap();
            let (means, expected) = (gp.means_at_rows(), gp.mean(gp.rows()));
            assert_eq!(means.len(), 23 + tail);
            for (mean, expected) in means.iter().zip(expected) {
                assert!((mean - expected).abs() < 1e-9, "{mean} {expected}");
            }
        }
    }
}

#[test]
fn nearest_means_equal_a_brute_force_search() {
    let mut gp = model(KernelFamily::Matern52, 20);
    let tail = wave(4, 2, 8.8);
    let (rows, mean) = (gp.rows().to_owned(), gp.mean(gp.rows()));
    for k in [1, 3, 20, 99] {
        let gp = Conditioned::on(&mut gp, tail.view(), &[Target::NearestMean(k); 4]).unwrap();
        let tail_means = gp.targets();
        for (i, x) in tail.rows().into_iter().enumerate() {
            let distance =
                |j: usize| ((rows[[j, 0]] - x[0]) / 0.7).hypot((rows[[j, 1]] - x[1]) / 1.1);
            let mut order: Vec<usize> = (0..20).collect();
            order.sort_by(|&a, &b| distance(a).total_cmp(&distance(b)));
            let expected =
                order[..k.min(20)].iter().map(|&j| mean[j]).sum::<f64>() / k.min(20) as f64;
            assert!((tail_means[20 + i] - expected).abs() < 1e-9);
        }
    }
    let mut empty = GaussianProcess::new(KernelFamily::Matern52, &gp.hyperparameters()).unwrap();
    empty.set_targets(&[]).unwrap();
    let empty = Conditioned::on(empty, tail.view(), &[Target::NearestMean(2); 4]).unwrap();
    assert_eq!(empty.mean(tail.view()), [0.0; 4]);
}

#[test]
fn a_tail_of_values_acts_as_data_and_can_be_dropped() {
    let mut gp = model(KernelFamily::Matern52, 15);
    let (x, z) = (wave(2, 2, 5.0), wave(4, 2, 9.0));
    let before = gp.predict(z.view());
    let values = [Target::Value(-1.0), Target::Value(0.5)];
    let conditioned = Conditioned::on(&mut gp, x.view(), &values).unwrap();
    let with_tail = conditioned.predict(z.view());
    drop(conditioned);
    let mut other = model(KernelFamily::Matern52, 15);
    let mut y = other.targets();
    other.append_rows(x.view()).unwrap();
    y.extend([-1.0, 0.5]);
    other.set_targets(&y).unwrap();
    let as_data = other.predict(z.view());
    for i in 0..4 {
        assert!((with_tail.0[i] - as_data.0[i]).abs() < 1e-10);
        assert!((with_tail.1[i] - as_data.1[i]).abs() < 1e-10);
    }
    assert_eq!(gp.predict(z.view()), before);
}

#[test]
fn gradients_equal_finite_differences() {
    for family in KernelFamily::ALL {
        let gp = model(family, 12);
        let x = [0.21, -0.33];
        let mut workspace = Workspace::default();
        let (mean, variance) = gp.predict_at(&x, &mut workspace);
        let at = |x: &[f64]| {
            let (m, v) = gp.predict(as_row(x.to_vec()).view());
            (m[0], v[0])
        };
        assert!((mean - at(&x).0).abs() < 1e-12 && (variance - at(&x).1).abs() < 1e-12);
        for (by_mean, by_variance, by_tail) in [
            (1.0, 0.0, vec![]),
            (0.0, 1.0, vec![]),
            (0.7, -0.3, vec![]),
            (0.2, 0.4, vec![1.0, -2.0, 0.5]),
        ] {
            let mut gradient = [0.0; 2];
            gp.predict_at(&x, &mut workspace);
            gp.gradient(
                &x,
                by_mean,
                by_variance,
                &by_tail,
                &mut workspace,
                &mut gradient,
            );
            let mut weighted = |x: &[f64]| {
                let (mean, variance) = gp.predict_at(x, &mut workspace);
                let tail: f64 = by_tail
                    .iter()
                    .zip(&workspace.whitened()[9..])
                    .map(|(w, v)| w * v)
                    .sum();
                by_mean * mean + by_variance * variance + tail
            };
            for d in 0..2 {
                let h = 1e-5;
                let (mut up, mut down) = (x, x);
                up[d] += h;
                down[d] -= h;
                let slope = (weighted(&up) - weighted(&down)) / (2.0 * h);
                assert!((gradient[d] - slope).abs() < 1e-6);
            }
        }
    }
}

/// A constant mean with prior N(0, 1) is equivalent to adding the constant 1 to the kernel.
#[test]
fn an_estimated_mean_equals_a_constant_kernel() {
    for family in KernelFamily::ALL {
        let mut gp = model(family, 12);
        let y: Vec<f64> = gp.targets().iter().map(|y| y + 3.0).collect();
        let mut a = gp.kernel().gram(gp.rows()) + 1.0;
        a.diag_mut()
            .iter_mut()
            .for_each(|a| *a += gp.noise_variance());
        let mut factor = GrowingCholesky::new();
        factor.extend(Array2::zeros((12, 0)).view(), a).unwrap();
        let mut alpha = y.clone();
        factor.forward_substitution_vector(&mut alpha);
        factor.backward_substitution_vector(&mut alpha);
        let z = wave(4, 2, 0.9);
        let mut k = Array2::zeros((4, 12));
        gp.kernel().cross(z.view(), gp.scaled_rows(), k.view_mut());
        let mean = gp.set_targets_about_mean(&y).unwrap();
        for (own, k) in gp.mean(z.view()).iter().zip((k + 1.0).rows()) {
            let expected = dot_row(k, &alpha);
            assert!((own + mean - expected).abs() < 1e-9 * expected.abs().max(1.0));
        }
    }
}

#[test]
fn invalid_hyperparameters_are_refused() {
    for (lengthscale, signal_variance, noise_variance) in [
        (0.0, 1.0, 1.0),
        (f64::NAN, 1.0, 1.0),
        (1.0, -1.0, 1.0),
        (1.0, 1.0, -1.0),
        (1.0, 1.0, f64::INFINITY),
    ] {
        let theta = Hyperparameters::new(vec![lengthscale], signal_variance, noise_variance);
        assert!(matches!(
            GaussianProcess::new(KernelFamily::Matern52, &theta),
            Err(Error::InvalidSetting { .. })
        ));
    }
}

#[test]
fn nearest_rows_are_measured_in_lengthscales() {
    let theta = Hyperparameters::new(vec![0.1, 10.0], 1.0, 0.01);
    let mut gp = GaussianProcess::new(KernelFamily::Matern52, &theta).unwrap();
    // The distances from the origin are 3 lengthscales and 0.09 lengthscales.
    let rows = ndarray::array![[0.3, 0.0], [0.0, 0.9]];
    gp.append_rows(rows.view()).unwrap();
    gp.set_targets(&[5.0, -1.0]).unwrap();
    let at = gp.predict(rows.view()).0;
    let origin = Array2::zeros((1, 2));
    for (k, expected) in [(1, at[1]), (2, (at[0] + at[1]) / 2.0)] {
        let mean = gp.tail_means(origin.view(), &[Target::NearestMean(k)]);
        assert!((mean[0] - expected).abs() < 1e-12);
    }
}
