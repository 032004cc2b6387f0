//! Tests of tails with pseudo-observations, by comparison with models whose rows are the pseudo-observations.

use ndarray::{Array2, ArrayView1, s};

use super::{model, wave};
use crate::gp::kernel::KernelFamily;
use crate::gp::{Conditioned, GaussianProcess, RowNoise, Target};

const PSEUDO_OBSERVATIONS: [(f64, f64); 3] = [(0.9, 0.3), (-1.2, 1e-6), (0.4, 50.0)];

/// The posterior of 12 rows and of the pseudo-observations of the first three points, with this noise variance of a value.
fn with_pseudo_observations(points: &Array2<f64>, variance_of_value: f64) -> GaussianProcess {
    let mut gp = model(KernelFamily::Matern52, 12);
    let mut targets = gp.targets();
    targets.extend(PSEUDO_OBSERVATIONS.map(|(value, _)| value));
    let noise =
        PSEUDO_OBSERVATIONS.map(|(_, variance)| RowNoise::Known(variance_of_value + variance));
    gp.append_noisy_rows(points.slice(s![..3, ..]), &noise)
        .unwrap();
    gp.set_targets(&targets).unwrap();
    gp
}

/// The pseudo-observations, followed by two other targets.
fn targets(rest: Target) -> [Target; 5] {
    let [a, b, c] =
        PSEUDO_OBSERVATIONS.map(|(value, variance)| Target::PseudoObserved { value, variance });
    [a, b, c, rest, rest]
}

#[test]
fn a_tail_with_pseudo_observations_has_the_mean_given_them() {
    let points = wave(5, 2, 8.8);
    let mut gp = model(KernelFamily::Matern52, 12);
    let expected = with_pseudo_observations(&points, gp.noise_variance());
    let at = wave(30, 2, 3.3);
    let mut given = |rest| {
        let gp = Conditioned::on(&mut gp, points.view(), &targets(rest)).unwrap();
        (gp.mean(at.view()), gp.targets())
    };
    let (means, before) = given(Target::PosteriorMean);
    for (mean, expected) in means.iter().zip(expected.mean(at.view())) {
        assert!((mean - expected).abs() < 1e-9, "{mean} {expected}");
    }
    // Values after the pseudo-observations do not change the targets of the first rows.
    let (_, targets) = given(Target::Value(0.7));
    for (i, (target, before)) in targets.iter().zip(before).enumerate() {
        let expected = if i < 15 { before } else { 0.7 };
        assert!((target - expected).abs() < 1e-9, "{i} {target} {expected}");
    }
}

#[test]
fn draws_given_pseudo_observations_have_the_joint_distribution_given_them() {
    let points = wave(5, 2, 8.8);
    let baseline = wave(2, 2, 1.3);
    let gp = model(KernelFamily::Matern52, 12);
    let gp = Conditioned::on_noiseless(gp, baseline.view(), points.view()).unwrap();
    // The first draw is the mean, and the others are the mean plus a column of a square root of the covariance.
    let mut draws = Array2::zeros((8, 7));
    draws.slice_mut(s![1.., ..]).diag_mut().fill(1.0);
    gp.condition_draws(&mut draws, &targets(Target::PosteriorMean))
        .unwrap();
    let values = gp.fantasies(draws).unwrap().means_at_tail(&gp);
    let roots = &values.slice(s![1.., ..]) - &values.row(0);
    let expected = with_pseudo_observations(&points, gp.noise_variance());
    for (part, at) in [(0..2, baseline), (2..7, points)] {
        let (mean, variance) = expected.predict(at.view());
        for (i, j) in part.enumerate() {
            let root: ArrayView1<f64> = roots.column(j);
            assert!((values[[0, j]] - mean[i]).abs() < 1e-8);
            assert!((root.dot(&root) - variance[i]).abs() < 1e-8);
        }
    }
}
