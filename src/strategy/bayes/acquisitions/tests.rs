//! Tests of all acquisitions. Gradients must equal finite differences, and a block of points must give the same values
//! as single points.

use ndarray::{Array2, ArrayView2, Axis, s};

use super::formula::{Formula, Scorer, Sum, values_of_solved};
use super::log_ei::LogExpectedImprovement;
use super::log_noisy_expected_improvement::LogNoisyExpectedImprovement;
use super::log_success_probability::{Labels, LogSuccessProbability, ShortfallOfSuccess};
use super::max_variance::MaxVariance;
use super::ucb::UpperConfidenceBound;
use super::ucb_pe::PureExploration;
use crate::error::Result;
use crate::gp::draw::path::Path;
use crate::gp::kernel::KernelFamily;
use crate::gp::tests::{model, wave};
use crate::gp::{Conditioned, GaussianProcess, Hyperparameters, Target};
use crate::maximize::feasible::Feasible;
use crate::problem::Objective;
use crate::random::{Call, Rng};
use crate::strategy::Query;
use rand::SeedableRng;

const OTHER: Labels = Labels {
    mean: 0.0,
    variance: 0.3,
};

/// Returns a(x) at one point, without a context.
pub(super) fn value(gp: &GaussianProcess, acquisition: &dyn Formula, x: &[f64]) -> f64 {
    let mut out = [0.0];
    let row = ArrayView2::from_shape((1, x.len()), x).unwrap();
    Scorer::new(gp, acquisition, &[]).values(row, &mut out);
    out[0]
}

pub(super) fn query(feasible: Feasible) -> Query {
    Query {
        feasible,
        ..Query::default()
    }
}

pub(super) fn on_the_left(points: ArrayView2<f64>) -> Result<Vec<bool>> {
    Ok(points.rows().into_iter().map(|x| x[0] < 0.0).collect())
}

/// The model of another outcome, about x_0 + x_1, which was observed at n other points.
pub(super) fn outcome(n: usize) -> GaussianProcess {
    let theta = Hyperparameters::new(vec![1.5, 1.2], 2.0, 0.02);
    let mut gp = GaussianProcess::new(KernelFamily::Matern52, &theta).unwrap();
    let x = wave(n, 2, 1.7);
    gp.append_rows(x.view()).unwrap();
    let y: Vec<f64> = x.rows().into_iter().map(|x| x[0] + x[1]).collect();
    gp.set_targets(&y).unwrap();
    gp
}

/// The model given p hallucinated rows.
fn given_pending(gp: GaussianProcess, p: usize) -> Conditioned<GaussianProcess> {
    Conditioned::on(gp, wave(p, 2, 5.0).view(), &vec![Target::PosteriorMean; p]).unwrap()
}

#[test]
fn gradients_equal_finite_differences() {
    let gp = model(KernelFamily::Matern52, 15);
    let mut rng = Rng::seed_from_u64(1);
    let with_tail = given_pending(model(KernelFamily::Matern52, 15), 2);
    let fantasies = with_tail.fantasies(wave(5, 2, 0.3)).unwrap();
    let explores = |lower_bound| PureExploration {
        multiplier: 0.8,
        lower_bound,
    };
    let bound = |multiplier, noise| UpperConfidenceBound { multiplier, noise };
    let incumbents = vec![1.0, 2.0, 0.5, 9.0, 1.4];
    let mut go_on = || std::ops::ControlFlow::Continue(());
    let path = Path::pathwise(&gp, 1.0, 64, &mut Call::new(&mut rng, &mut go_on)).unwrap();
    let penalty = ShortfallOfSuccess {
        weight: 3.0,
        labels: Labels::CERTAIN,
    };
    let acquisitions: [(&GaussianProcess, Box<dyn Formula>); 12] = [
        (&with_tail, Box::new(explores(-50.0))), // everywhere inside the region
        (&with_tail, Box::new(explores(50.0))),  // everywhere outside
        (&gp, Box::new(MaxVariance {})),
        (
            &with_tail,
            Box::new(LogNoisyExpectedImprovement {
                fantasies,
                incumbents,
            }),
        ),
        (&gp, Box::new(bound(2.0, 0.0))),
        (&gp, Box::new(bound(0.7, 0.1))),
        (&gp, Box::new(LogExpectedImprovement { incumbent: 1.0 })),
        (&gp, Box::new(LogExpectedImprovement { incumbent: 9.0 })),
        (
            &gp,
            Box::new(LogSuccessProbability {
                share: 1.0,
                penalty,
            }),
        ),
        (
            &gp,
            Box::new(LogSuccessProbability {
                share: 0.7,
                penalty: ShortfallOfSuccess {
                    weight: 0.0,
                    labels: OTHER,
                },
            }),
        ),
        (
            &gp,
            Box::new(ShortfallOfSuccess {
                weight: 30.0,
                labels: OTHER,
            }),
        ),
        (&gp, Box::new(path)),
    ];
    for (gp, acquisition) in &acquisitions {
        for context in [vec![], vec![0.2]] {
            let mut scorer = Scorer::new(gp, acquisition.as_ref(), &context);
            let x = [0.13, -0.41];
            let x = &x[..2 - context.len()];
            let mut gradient = vec![0.0; x.len()];
            let value = scorer.value_and_gradient(x, &mut gradient);
            let mut at = |x: &[f64]| {
                let mut out = [0.0];
                scorer.values(ArrayView2::from_shape((1, x.len()), x).unwrap(), &mut out);
                out[0]
            };
            assert!((value - at(x)).abs() < 1e-9 * value.abs().max(1.0));
            for d in 0..x.len() {
                let (mut up, mut down) = (x.to_vec(), x.to_vec());
                up[d] += 1e-5;
                down[d] -= 1e-5;
                let slope = (at(&up) - at(&down)) / 2e-5;
                assert!((gradient[d] - slope).abs() < 1e-4 * slope.abs().max(1.0));
            }
        }
    }
}

#[test]
fn a_solved_block_gives_the_values_of_its_rows() {
    let gp = given_pending(model(KernelFamily::Matern52, 15), 2);
    let fantasies = gp.fantasies(wave(5, 2, 0.3)).unwrap();
    let rows = wave(300, 2, 7.7);
    let mut v = Array2::zeros((0, gp.len()));
    gp.predict_with(rows.view(), &mut |block| v.append(Axis(0), block).unwrap());
    let acquisitions: [Box<dyn Formula>; 5] = [
        Box::new(MaxVariance {}),
        Box::new(PureExploration {
            multiplier: 0.8,
            lower_bound: 1.0,
        }),
        Box::new(LogExpectedImprovement { incumbent: 1.0 }),
        Box::new(LogSuccessProbability {
            share: 1.0,
            penalty: ShortfallOfSuccess {
                weight: 3.0,
                labels: Labels::CERTAIN,
            },
        }),
        Box::new(LogNoisyExpectedImprovement {
            fantasies,
            incumbents: vec![1.0, 2.0, 0.5, 9.0, 1.4],
        }),
    ];
    for acquisition in &acquisitions {
        let acquisition = acquisition.as_ref();
        let solved = values_of_solved(acquisition, &gp, rows.view(), v.view());
        let mut scored = vec![0.0; 300];
        Scorer::new(&gp, acquisition, &[]).values(rows.view(), &mut scored);
        for (a, b) in solved.iter().zip(&scored) {
            assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} {b}");
        }
    }
}

#[test]
fn the_region_of_exploration_depends_on_observed_rows_only() {
    let observed = model(KernelFamily::Matern52, 15);
    let gp = given_pending(observed.clone(), 3);
    let rows = wave(300, 2, 7.7);
    let (mean, variance) = observed.predict(rows.view());
    let (_, shrunk) = gp.predict(rows.view());
    let (multiplier, lower_bound) = (0.8, 0.5);
    let explores = PureExploration {
        multiplier,
        lower_bound,
    };
    let mut inside = 0;
    for i in 0..300 {
        let margin = mean[i] + 2.0 * multiplier * variance[i].sqrt() - lower_bound;
        let expected = if margin > 0.0 { shrunk[i] } else { margin };
        let found = value(&gp, &explores, rows.row(i).to_slice().unwrap());
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        inside += usize::from(margin > 0.0);
    }
    assert!((30..270).contains(&inside), "{inside}");
}

#[test]
fn a_sum_adds_values_and_gradients_on_two_posteriors() {
    let gp = model(KernelFamily::Matern52, 15);
    let mut other = model(KernelFamily::SquaredExponential, 6);
    other
        .set_targets(&[0.0, -2.0, -2.0, 0.0, 0.0, -2.0])
        .unwrap();
    let log_ei = LogExpectedImprovement { incumbent: 1.0 };
    let log_success = LogSuccessProbability {
        share: 1.0,
        penalty: ShortfallOfSuccess {
            weight: 3.0,
            labels: Labels::CERTAIN,
        },
    };
    let rows = wave(300, 2, 7.7);
    let chance = || -> Box<dyn Objective> { Box::new(Scorer::new(&other, &log_success, &[])) };
    for second in [false, true] {
        let mut sum = Sum::of(
            Scorer::new(&gp, &log_ei, &[]),
            second.then(chance).into_iter().collect(),
        );
        let mut found = vec![0.0; 300];
        sum.values(rows.view(), &mut found);
        for (i, found) in found.into_iter().enumerate() {
            let x = rows.row(i).to_vec();
            let mut expected = value(&gp, &log_ei, &x);
            if second {
                expected += value(&other, &log_success, &x);
            }
            assert!((found - expected).abs() < 1e-9 * expected.abs().max(1.0));
        }
        let x = [0.13, -0.41];
        let mut gradient = [0.0; 2];
        sum.value_and_gradient(&x, &mut gradient);
        for d in 0..2 {
            let at = |h: f64| {
                let mut x = x;
                x[d] += h;
                let first = value(&gp, &log_ei, &x);
                first
                    + if second {
                        value(&other, &log_success, &x)
                    } else {
                        0.0
                    }
            };
            let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
            assert!((gradient[d] - slope).abs() < 1e-4 * slope.abs().max(1.0));
        }
    }
}

#[test]
fn a_context_of_several_columns_follows_the_columns_of_a_point() {
    let theta = crate::gp::Hyperparameters::new(vec![0.7, 1.1, 0.4], 1.3, 0.01);
    let mut gp = GaussianProcess::new(KernelFamily::Matern52, &theta).unwrap();
    gp.append_rows(wave(8, 3, 0.4).view()).unwrap();
    gp.set_targets(&[1.0, -1.0, 0.5, 2.0, 0.0, 0.25, -0.5, 1.5])
        .unwrap();
    let acquisition = LogExpectedImprovement { incumbent: 1.0 };
    let rows = ndarray::array![[0.1, 0.2, 0.7], [-0.4, 0.2, 0.7]];
    let (mut scored, mut expected) = ([0.0; 2], [0.0; 2]);
    let points = rows.slice(s![.., ..1]);
    let mut scorer = Sum::of(Scorer::new(&gp, &acquisition, &[0.2, 0.7]), Vec::new());
    scorer.values(points, &mut scored);
    Scorer::new(&gp, &acquisition, &[]).values(rows.view(), &mut expected);
    assert_eq!(scored, expected);
    assert_eq!(scorer.lengthscales(), Some(&[0.7][..]));
}
