//! Tests of the models of the probability inside bounds.

use super::*;
use crate::gp::kernel::KernelFamily;
use crate::gp::{Hyperparameters, RowNoise};
use crate::strategy::bayes::model::labels::{censor, repeats};
use ndarray::Array2;

/// A process with rows at these points of the unit interval.
fn process(points: &[f64], targets: &[f64], noise: f64) -> GaussianProcess {
    let theta = Hyperparameters::new(vec![0.3], 1.0, noise);
    let mut gp = GaussianProcess::new(KernelFamily::Matern52, &theta).unwrap();
    let x = Array2::from_shape_vec((points.len(), 1), points.to_vec()).unwrap();
    let noise = vec![RowNoise::default(); points.len()];
    gp.append_noisy_rows(x.view(), &noise).unwrap();
    gp.set_targets(targets).unwrap();
    gp
}

#[test]
fn only_values_that_equal_one_bound_touch_it() {
    let values = [Some(0.0), None, Some(1.0), Some(0.5), Some(-1.0)];
    assert_eq!(touching(&values, (0.0, 1.0)), [(0, -1.0), (2, 1.0)]);
    assert_eq!(touching(&values, (f64::NEG_INFINITY, 1.0)), [(2, 1.0)]);
    assert_eq!(touching(&values, (1.0, 1.0)), []);
}

#[test]
fn the_values_of_steps_repeat_beside_the_bound() {
    let below = (f64::NEG_INFINITY, 0.0);
    for (values, expected) in [
        (vec![0.0, 0.0, 1.0, 1.0, 2.0], true),
        (vec![0.0, 0.0, 1.0, 1.0, 2.0, 3.0], false),
        (vec![0.0, 0.0, 0.0, 0.31, 0.32], false),
        (vec![0.0, 0.0], false),
        (vec![1.0, -1.0, 1.0, -1.0], true),
    ] {
        let mut values: Vec<Option<f64>> = values.into_iter().map(Some).collect();
        values.push(None);
        assert_eq!(repeats(&values, below), expected, "{values:?}");
    }
}

#[test]
fn a_censored_target_is_the_mean_of_the_latent_value_inside_the_bound() {
    let (points, targets) = ([0.1, 0.3, 0.5], [0.4, 0.6, 1.0]);
    for (side, low, high) in [(1.0, f64::NEG_INFINITY, 1.0), (-1.0, 1.0, f64::INFINITY)] {
        let mut gp = process(&points, &targets, 1e-4);
        censor(&mut gp, targets.to_vec(), &[(2, side)]).unwrap();
        // The moments of the last target given the first two, and the truncated mean as a sum over a grid.
        let rest = process(&points[..2], &targets[..2], 1e-4);
        let at = Array2::from_elem((1, 1), points[2]);
        let (mean, variance) = rest.predict(at.view());
        let (mean, variance) = (mean[0], variance[0] + 1e-4);
        let (mut total, mut sum) = (0.0, 0.0);
        for i in -200_000..200_000 {
            let g = 1.0 + 1e-4 * (f64::from(i) + 0.5);
            let density = (-0.5 * (g - mean).powi(2) / variance).exp();
            if low <= g && g <= high {
                total += density;
                sum += density * g;
            }
        }
        let found = gp.targets()[2];
        assert!(
            (found - sum / total).abs() < 1e-5,
            "{found} {}",
            sum / total
        );
    }
}

#[test]
fn noise_explains_a_jump_only_if_neighbours_with_the_same_label_agree() {
    let points: Vec<f64> = (0..40).map(|i| f64::from(i) / 39.0).collect();
    let is_inside: Vec<bool> = points.iter().map(|x| *x < 0.5).collect();
    let rows: Vec<usize> = (0..40).collect();
    let jump: Vec<f64> = points
        .iter()
        .map(|x| f64::from(u8::from(*x >= 0.5)))
        .collect();
    let noise = |i: usize| if i.is_multiple_of(2) { 0.5 } else { -0.5 };
    let noisy: Vec<f64> = points
        .iter()
        .enumerate()
        .map(|(i, x)| x + noise(i))
        .collect();
    let explains = |targets: &[f64], noise: f64, labels: &[bool]| {
        explains_jump(&process(&points, targets, noise), (&rows, labels))
    };
    assert!(explains(&jump, 0.25, &is_inside));
    assert!(!explains(&noisy, 0.25, &is_inside));
    assert!(!explains(&jump, 1e-8, &is_inside));
    assert!(!explains(&jump, 0.25, &[true; 40]));
}

#[test]
fn the_evidence_is_the_sum_of_the_predictions_from_the_other_rows() {
    let (points, targets) = ([0.1, 0.3, 0.5, 0.9], [0.4, 0.6, 1.0, -0.2]);
    let inside = LogProbabilityInside {
        low: f64::NEG_INFINITY,
        high: 0.7,
    };
    let is_inside = targets.map(|y| y <= 0.7);
    let gp = process(&points, &targets, 1e-2);
    let labels = (&[0, 1, 2, 3][..], &is_inside[..]);
    let mut go = || std::ops::ControlFlow::Continue(());
    let found = log_evidence(&gp, &|_| inside, labels, &mut go).unwrap();
    let mut expected = 0.0;
    for i in 0..4 {
        let without = |values: [f64; 4]| -> Vec<f64> {
            (0..4).filter(|j| *j != i).map(|j| values[j]).collect()
        };
        let rest = process(&without(points), &without(targets), 1e-2);
        let (mean, variance) = rest.predict(Array2::from_elem((1, 1), points[i]).view());
        let u = (0.7 - mean[0]) / (variance[0] + 1e-2).sqrt();
        let p = 0.5 * libm::erfc(-u / std::f64::consts::SQRT_2);
        let p = p.clamp(CONTRADICTION, 1.0 - CONTRADICTION);
        expected += if is_inside[i] { p.ln() } else { (1.0 - p).ln() };
    }
    assert!((found - expected).abs() < 1e-9, "{found} {expected}");
}
