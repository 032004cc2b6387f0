//! Tests of the argmax, by known maxima, a comparison with many dense starts, and general properties.

mod conditional;
mod discrete;
mod excluded;
mod linear;

use super::argmax::Argmax;
use super::excluded::Excluded;
use super::{Maximizer, maximize};
use crate::error::Error;
use crate::maximize::constrained::Allowed;
use crate::problem::{Coordinate, Domain, Objective};
use crate::random::{Call, Rng};
use ndarray::{Array2, ArrayView2};
use proptest::prelude::{Just, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use rand::{RngExt, SeedableRng};
use rand_distr::StandardNormal;
use std::ops::ControlFlow;

/// An objective whose closure returns the value and writes the gradient.
struct Function<F: FnMut(&[f64], &mut [f64]) -> f64>(F);

impl<F: FnMut(&[f64], &mut [f64]) -> f64> Objective for Function<F> {
    fn values(&mut self, points: ArrayView2<f64>, out: &mut [f64]) {
        let mut gradient = vec![0.0; points.ncols()];
        for (row, out) in points.outer_iter().zip(out) {
            *out = self.0(&row.to_vec(), &mut gradient);
        }
    }

    fn value_and_gradient(&mut self, x: &[f64], gradient: &mut [f64]) -> f64 {
        self.0(x, gradient)
    }
}

pub(super) fn search(
    f: impl FnMut(&[f64], &mut [f64]) -> f64,
    domain: &Domain,
    best_observed: &[f64],
    maximizer: &Maximizer,
    seed: u64,
) -> Argmax {
    search_without(
        f,
        domain,
        best_observed,
        maximizer,
        &Excluded::default(),
        seed,
    )
}

pub(super) fn search_without(
    f: impl FnMut(&[f64], &mut [f64]) -> f64,
    domain: &Domain,
    best_observed: &[f64],
    maximizer: &Maximizer,
    excluded: &Excluded,
    seed: u64,
) -> Argmax {
    let width = domain.width();
    let best_observed =
        ArrayView2::from_shape((best_observed.len() / width, width), best_observed).unwrap();
    let mut rng = Rng::seed_from_u64(seed);
    let mut go_on = || ControlFlow::Continue(());
    maximize(
        &mut Function(f),
        domain,
        best_observed,
        maximizer,
        Allowed::except(excluded),
        &mut Call::new(&mut rng, &mut go_on),
    )
    .unwrap()
}

pub(super) fn cube(d: usize) -> Domain {
    Domain::new_box(vec![Coordinate::Continuous; d]).unwrap()
}

pub(super) fn integer(low: i64, high: i64, log: bool) -> Coordinate {
    Coordinate::Integer { low, high, log }
}

/// A draw from a Gaussian process prior, as a sum of 100 cosines with random frequencies and phases.
fn surface(
    d: usize,
    lengthscale: f64,
    rng: &mut Rng,
) -> impl Fn(&[f64], &mut [f64]) -> f64 + use<> {
    let waves: Vec<f64> = (0..100 * d)
        .map(|_| rng.sample::<f64, _>(StandardNormal) / lengthscale)
        .collect();
    let phases: Vec<f64> = (0..100)
        .map(|_| std::f64::consts::TAU * rng.random::<f64>())
        .collect();
    move |x, gradient| {
        gradient.fill(0.0);
        let mut sum = 0.0;
        for (w, phase) in waves.chunks(x.len()).zip(&phases) {
            let t = phase + w.iter().zip(x).map(|(w, x)| w * x).sum::<f64>();
            sum += t.cos();
            gradient
                .iter_mut()
                .zip(w)
                .for_each(|(g, w)| *g -= t.sin() * w);
        }
        sum
    }
}

#[test]
fn the_search_is_as_good_as_many_dense_starts() {
    for (d, share) in [(1, 0.95), (2, 0.95), (4, 0.95), (6, 0.75)] {
        let mut rng = Rng::seed_from_u64(d as u64);
        let mut good = 0;
        for seed in 0..20 {
            let f = surface(d, 0.2 + 0.3 * rng.random::<f64>(), &mut rng);
            let found = search(&f, &cube(d), &[], &Maximizer::default(), seed).value;
            let dense = Maximizer::Multistart {
                n_raw: 2000,
                n_starts: 64,
            };
            let rival = search(&f, &cube(d), &[], &dense, seed).value;
            let lowest = -search(
                |x, g| -f(x, g),
                &cube(d),
                &[],
                &Maximizer::Multistart {
                    n_raw: 2000,
                    n_starts: 0,
                },
                seed,
            )
            .value;
            good += usize::from(found >= rival - 0.01 * (rival - lowest));
        }
        assert!(good as f64 >= share * 20.0, "d = {d}: {good} of 20");
    }
}

#[test]
fn a_narrow_hill_of_one_choice_is_found_among_broad_hills_of_others() {
    // The narrow hill has the highest maximum, but starting points on it have far smaller values than starting points
    // on the broad hills.
    let mut coordinates = vec![Coordinate::Continuous; 4];
    coordinates.push(Coordinate::Categorical { n: 6 });
    let domain = Domain::new_box(coordinates).unwrap();
    let hills = |x: &[f64], g: &mut [f64]| {
        let (height, centre, steepness) = match x[9] {
            1.0 => (1.0, 0.8, 8.0),
            _ => (0.9, 0.2, 0.5),
        };
        g.fill(0.0);
        let mut value = height;
        for (g, x) in g.iter_mut().zip(&x[..4]) {
            *g = -2.0 * steepness * (x - centre);
            value -= steepness * (x - centre).powi(2);
        }
        value
    };
    for effort in [0.4, 1.0] {
        for seed in 0..10 {
            let found = search(hills, &domain, &[], &Maximizer::Default { effort }, seed);
            assert!(found.value > 0.999, "{effort} {seed}: {found:?}");
        }
    }
}

#[test]
fn corners_and_thin_faces_are_reached_exactly() {
    for d in [1, 2, 6, 20] {
        let weights: Vec<f64> = (0..d)
            .map(|i| (i as f64 - 0.3 * d as f64 - 0.1) * 1e-3)
            .collect();
        let plane = |x: &[f64], g: &mut [f64]| {
            g.copy_from_slice(&weights);
            x.iter().zip(&weights).map(|(x, w)| x * w).sum()
        };
        let corner: Vec<f64> = weights
            .iter()
            .map(|w| f64::from(u8::from(*w > 0.0)))
            .collect();
        for maximizer in [
            Maximizer::default(),
            Maximizer::Multistart {
                n_raw: 100,
                n_starts: 5,
            },
        ] {
            assert_eq!(search(plane, &cube(d), &[], &maximizer, 3).point, corner);
        }
        // The function has a ridge of width 1e-4 at x₀ = 0 (or 1), and a broad hill of half the height in the middle.
        for face in [0.0, 1.0] {
            let ridge = |x: &[f64], g: &mut [f64]| {
                let away = (x[0] - face).abs();
                let thin = (-away / 1e-4).exp();
                let hill: f64 = x[1..].iter().map(|x| (x - 0.3).powi(2)).sum();
                g[0] = thin / 1e-4 * if face == 0.0 { -1.0 } else { 1.0 } - (x[0] - 0.5);
                g[1..]
                    .iter_mut()
                    .zip(&x[1..])
                    .for_each(|(g, x)| *g = -2.0 * (x - 0.3));
                thin - 0.5 * (x[0] - 0.5).powi(2) - hill
            };
            let found = search(ridge, &cube(d), &[], &Maximizer::default(), 4);
            assert_eq!(found.point[0], face);
            assert!(found.value > 0.874, "d = {d}: {}", found.value);
        }
    }
}

#[test]
fn a_narrow_maximum_near_an_observed_point_is_found() {
    // The log of a bump of width 2e-3 is −∞ where the bump underflows, like log-EI late in a search.
    let d = 6;
    let bump = |x: &[f64], g: &mut [f64]| {
        let squared: f64 = x.iter().map(|x| ((x - 0.4321) / 2e-3).powi(2)).sum();
        g.iter_mut()
            .zip(x)
            .for_each(|(g, x)| *g = -(x - 0.4321) / 2e-3_f64.powi(2));
        if squared > 1400.0 {
            f64::NEG_INFINITY
        } else {
            -0.5 * squared
        }
    };
    let found = search(bump, &cube(d), &[0.4331; 6], &Maximizer::default(), 1);
    assert!(found.value > -1e-4, "{}", found.value);
    let blind = search(bump, &cube(d), &[], &Maximizer::default(), 1);
    assert_eq!(blind.value, f64::NEG_INFINITY);
}

#[test]
fn ties_of_candidates_are_uniform_and_nan_is_never_the_best() {
    let domain = Domain::candidates(Array2::from_shape_fn((600, 1), |(i, _)| i as f64)).unwrap();
    let top = |x: &[f64], _: &mut [f64]| match x[0] as usize {
        10 | 300 | 599 => 1.0,
        i if i % 2 == 0 => f64::NAN,
        _ => f64::NEG_INFINITY,
    };
    let mut wins = [0; 600];
    for seed in 0..900 {
        let found = search(top, &domain, &[], &Maximizer::default(), seed);
        assert_eq!(
            (found.value, found.point[0] as usize),
            (1.0, found.index.unwrap())
        );
        wins[found.index.unwrap()] += 1;
    }
    // The counts are within three standard deviations of a binomial with mean 300.
    assert!(
        [10, 300, 599]
            .iter()
            .all(|&i| (258..=342).contains(&wins[i]))
    );
    let found = search(|_, _| f64::NAN, &domain, &[], &Maximizer::default(), 1);
    assert!(found.value.is_nan() && found.index.is_some() && domain.contains(&found.point));
}

#[test]
fn the_best_members_of_discrete_coordinates_are_found() {
    // The best of 4 × 5 × 3 combinations is far better than the others, and each combination has a different best x.
    let domain = Domain::new_box(vec![
        integer(1, 4, false),
        Coordinate::Continuous,
        Coordinate::Categorical { n: 5 },
        integer(10, 1000, true),
    ])
    .unwrap();
    let target = Domain::new_box(vec![integer(10, 1000, true)]).unwrap();
    let Domain::Box(last) = &target else {
        unreachable!()
    };
    let peak = last[0].position(137 - 10);
    let f = |x: &[f64], g: &mut [f64]| {
        let combination = 3.0 * x[0]
            + x[2..7]
                .iter()
                .zip(0..)
                .map(|(v, i)| v * f64::from(i))
                .sum::<f64>();
        let bonus = if combination == 3.0 {
            0.3
        } else {
            0.1 * (7.0 * combination).sin()
        };
        let centre = 0.1 + 0.1 * combination;
        g.fill(0.0);
        g[1] = -2.0 * (x[1] - centre);
        g[7] = -20.0 * (x[7] - peak);
        bonus - (x[1] - centre).powi(2) - 10.0 * (x[7] - peak).powi(2)
    };
    for seed in 0..10 {
        let found = search(f, &domain, &[], &Maximizer::default(), seed);
        assert!(domain.contains(&found.point));
        assert!((found.value - 0.3).abs() < 1e-6, "{found:?}");
        assert_eq!(last[0].index(&found.point[7..]), 137 - 10);
    }
    // A discrete box with few members: the best member is found exactly.
    let grid =
        Domain::new_box(vec![integer(0, 9, false), Coordinate::Categorical { n: 3 }]).unwrap();
    let f = |x: &[f64], _: &mut [f64]| (40.0 * x[0]).sin() + x[2] * 0.01;
    let best = (0..10)
        .map(|i| (40.0 * f64::from(i) / 9.0).sin() + 0.01)
        .fold(f64::MIN, f64::max);
    assert_eq!(search(f, &grid, &[], &Maximizer::default(), 1).value, best);
    // A discrete box with very many members.
    let wide = Domain::new_box(vec![integer(0, 1 << 40, false); 3]).unwrap();
    let f = |x: &[f64], g: &mut [f64]| {
        g.iter_mut().zip(x).for_each(|(g, x)| *g = -2.0 * (x - 0.7));
        -x.iter().map(|x| (x - 0.7).powi(2)).sum::<f64>()
    };
    let found = search(f, &wide, &[], &Maximizer::default(), 1);
    assert!(
        found.value > -1e-10 && wide.contains(&found.point),
        "{found:?}"
    );
}

proptest! {
    #[test]
    fn the_result_is_a_member_and_is_reproducible(
        seed: u64,
        bad in prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(f64::NEG_INFINITY), Just(0.0)],
        everywhere in any::<bool>(),
        kind in 0..4usize,
    ) {
        let coordinates = [
            vec![Coordinate::Continuous; 3],
            vec![Coordinate::Continuous, integer(1, 500, true), Coordinate::Categorical { n: 3 }],
            vec![integer(-5, 10_000, false), Coordinate::Categorical { n: 40 }],
            vec![integer(3, 3, false), Coordinate::Categorical { n: 1 }],
        ];
        let domain = Domain::new_box(coordinates[kind].clone()).unwrap();
        let f = |x: &[f64], g: &mut [f64]| {
            g.fill(if x[0] > 0.2 { f64::NAN } else { 1.0 });
            if everywhere || x[0] > 0.5 { bad } else { x[0] }
        };
        for maximizer in [Maximizer::default(), Maximizer::Multistart { n_raw: 20, n_starts: 2 }] {
            let found = search(f, &domain, &[], &maximizer, seed);
            prop_assert!(domain.contains(&found.point));
            prop_assert!(everywhere || !found.value.is_nan());
            let again = search(f, &domain, &[], &maximizer, seed);
            prop_assert_eq!(found.value.to_bits(), again.value.to_bits());
            prop_assert_eq!(found.point, again.point);
        }
    }
}

#[test]
fn interruption_and_invalid_input_are_errors() {
    let mut calls = 0;
    let mut flat = Function(|_: &[f64], g: &mut [f64]| {
        g.fill(0.0);
        0.0
    });
    let none = Array2::zeros((0, 2));
    let mut run =
        |domain: &Domain, best_observed: &Array2<f64>, maximizer: &Maximizer, limit: usize| {
            let mut stop = || {
                calls += 1;
                if calls > limit {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            };
            maximize(
                &mut flat,
                domain,
                best_observed.view(),
                maximizer,
                Allowed::except(&Excluded::default()),
                &mut Call::new(&mut Rng::seed_from_u64(1), &mut stop),
            )
        };
    assert_eq!(
        run(&cube(2), &none, &Maximizer::default(), 2),
        Err(Error::Interrupted)
    );
    let list = Domain::candidates(Array2::zeros((9, 2))).unwrap();
    assert_eq!(
        run(&list, &none, &Maximizer::default(), 0),
        Err(Error::Interrupted)
    );
    let multistart = Maximizer::Multistart {
        n_raw: 1,
        n_starts: 1,
    };
    assert!(matches!(
        run(&list, &none, &multistart, 99),
        Err(Error::InvalidSetting { .. })
    ));
    let lazy = Maximizer::Default { effort: 0.0 };
    assert!(matches!(
        run(&cube(2), &none, &lazy, 99),
        Err(Error::InvalidSetting { .. })
    ));
    let wide = Array2::zeros((1, 3));
    assert!(matches!(
        run(&cube(2), &wide, &Maximizer::default(), 99),
        Err(Error::Shape(_))
    ));
}
