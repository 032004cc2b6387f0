//! Tests of the search in conditional boxes.

use std::ops::ControlFlow;

use ndarray::{Array2, ArrayView2};
use rand::SeedableRng;

use crate::maximize::argmax::Argmax;
use crate::maximize::constrained::Allowed;
use crate::maximize::excluded::Excluded;
use crate::maximize::{Maximizer, maximize};
use crate::problem::{Condition, Coordinate, Domain, Objective};
use crate::random::{Call, Rng};

/// Returns a box with the columns branch (3), u, n and v. In the first branch n is active, and v is active unless n has
/// its lowest level. In the second branch u is active.
fn tree() -> Domain {
    let integer = Coordinate::Integer {
        low: 1,
        high: 400,
        log: false,
    };
    let coordinates = vec![
        Coordinate::Categorical { n: 3 },
        Coordinate::Continuous,
        integer,
        Coordinate::Continuous,
    ];
    let when = vec![
        vec![],
        vec![Condition(0, vec![1])],
        vec![Condition(0, vec![0])],
        vec![Condition(2, (1..400).collect())],
    ];
    Domain::conditional_box(coordinates, when).unwrap()
}

struct Function<F>(F, Domain);

impl<F: Fn(&[f64]) -> f64> Function<F> {
    fn value(&self, x: &[f64]) -> f64 {
        (self.0)(x)
    }
}

impl<F: Fn(&[f64]) -> f64> Objective for Function<F> {
    fn values(&mut self, points: ArrayView2<f64>, out: &mut [f64]) {
        for (row, out) in points.outer_iter().zip(out) {
            let row = row.to_vec();
            assert!(self.1.contains(&row), "{row:?} is not a member");
            *out = self.value(&row);
        }
    }

    fn value_and_gradient(&mut self, x: &[f64], gradient: &mut [f64]) -> f64 {
        for i in 0..x.len() {
            let (mut up, mut down) = (x.to_vec(), x.to_vec());
            up[i] += 1e-7;
            down[i] -= 1e-7;
            gradient[i] = (self.value(&up) - self.value(&down)) / 2e-7;
        }
        self.value(x)
    }
}

fn search(f: impl Fn(&[f64]) -> f64, excluded: &Excluded, how: &Maximizer, seed: u64) -> Argmax {
    let domain = tree();
    let none = Array2::zeros((0, domain.width()));
    let mut go_on = || ControlFlow::Continue(());
    maximize(
        &mut Function(f, tree()),
        &domain,
        none.view(),
        how,
        Allowed::except(excluded),
        &mut Call::new(&mut Rng::seed_from_u64(seed), &mut go_on),
    )
    .unwrap()
}

/// A function with its maximum in the first branch at n = 0.3 and v = 0.8, and an almost equal value in the second
/// branch at u = 0.1.
fn two_hills(x: &[f64]) -> f64 {
    x[0] * (1.0 - (x[4] - 0.3).powi(2) - (x[5] - 0.8).powi(2))
        + x[1] * (0.9 - (x[3] - 0.1).powi(2))
        + x[2] * 0.5
}

#[test]
fn the_best_of_all_branches_is_found_and_every_scored_row_is_a_member() {
    for seed in 0..5 {
        for how in [
            Maximizer::default(),
            Maximizer::Multistart {
                n_raw: 2000,
                n_starts: 30,
            },
        ] {
            let found = search(two_hills, &Excluded::default(), &how, seed);
            assert!(tree().contains(&found.point), "{found:?}");
            let tolerance = if how == Maximizer::default() {
                1e-5
            } else {
                1e-2
            };
            assert!(found.value > 1.0 - tolerance, "{found:?}");
            assert_eq!(found.point[3], 0.5);
        }
    }
}

#[test]
fn excluded_branches_without_continuous_coordinates_are_left_out() {
    let domain = tree();
    // Only the third point has an active continuous coordinate.
    let third = [0.0, 0.0, 1.0, 0.5, 0.5, 0.5];
    let least = [1.0, 0.0, 0.0, 0.5, 0.0, 0.5];
    let second = [0.0, 1.0, 0.0, 0.1, 0.5, 0.5];
    assert!([third, least, second].iter().all(|x| domain.contains(x)));
    let points = [third, least, second];
    let excluded = Excluded::new(&domain, points.iter().map(|x| (x.as_slice(), None)));
    assert!(excluded.contains(&domain, &third) && excluded.contains(&domain, &least));
    assert!(!excluded.contains(&domain, &second) && !excluded.is_all_of(&domain));
    for seed in 0..5 {
        // The maximum is in the third branch, and is found to full precision.
        let f = |x: &[f64]| two_hills(x) + 9.0 * x[2];
        let found = search(f, &excluded, &Maximizer::default(), seed);
        assert!(found.value > 1.0 - 1e-5 && found.value < 2.0, "{found:?}");
        let (x, _) = excluded.sample_left(&domain, &mut Rng::seed_from_u64(seed));
        assert!(domain.contains(&x) && !excluded.contains(&domain, &x));
    }
}
