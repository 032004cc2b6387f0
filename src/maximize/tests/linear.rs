//! Tests of the search under linear constraints, by known nearest points and by enumeration.

use rand::{RngExt, SeedableRng};

use super::search;
use crate::maximize::Maximizer;
use crate::numerics::slsqp::testing::onto_simplex;
use crate::problem::{Declaration, Domain, Linear, Parameter, Real, Role, Space};
use crate::random::Rng;

/// A mixture of d parts with total 1, with a step or further constraints.
fn mixture(d: usize, step: Option<f64>, more: Vec<Linear>) -> Domain {
    let names: Vec<String> = (0..d).map(|i| format!("x{i}")).collect();
    let declared = names.iter().map(|name| {
        Declaration::new(
            name,
            Parameter::Real(Real::new(0.0, 1.0, false, None).unwrap()),
        )
    });
    let space = Space::new(Role::Params, declared.collect()).unwrap();
    let total = Linear {
        terms: names.iter().map(|name| (name.clone(), 1.0)).collect(),
        at_least: Some(1.0),
        at_most: Some(1.0),
        step,
        tolerance: 0.0,
        counts: false,
    };
    let space = space.with_linear([vec![total], more].concat()).unwrap();
    space.domain().as_ref().clone()
}

fn distance(x: &[f64], z: &[f64]) -> f64 {
    let squares = x.iter().zip(z).map(|(x, z)| (x - z) * (x - z));
    squares.sum::<f64>().sqrt()
}

/// The value −|x − z|² and its gradient.
fn near(z: &[f64]) -> impl FnMut(&[f64], &mut [f64]) -> f64 {
    move |x, g| {
        g.iter_mut()
            .zip(x.iter().zip(z))
            .for_each(|(g, (x, z))| *g = 2.0 * (z - x));
        -distance(x, z).powi(2)
    }
}

#[test]
fn nearest_point_of_a_mixture_is_found_and_projected() {
    for (seed, d) in [2, 3, 6, 12].into_iter().enumerate() {
        let domain = mixture(d, None, vec![]);
        let mut rng = Rng::seed_from_u64(seed as u64);
        for _ in 0..5 {
            let z: Vec<f64> = (0..d).map(|_| 2.0 * rng.random::<f64>() - 0.5).collect();
            let expected = onto_simplex(&z);
            let found = search(near(&z), &domain, &[], &Maximizer::default(), 1);
            assert!(
                distance(&found.point, &expected) < 1e-5,
                "{d} {:?} {expected:?}",
                found.point
            );
            let mut x = z.clone();
            domain.snap(&mut x);
            assert!(distance(&x, &expected) < 1e-12);
        }
    }
}

#[test]
fn maximum_within_a_cut_mixture_is_on_the_cut() {
    // x0 <= 0.3 cuts the simplex; the nearest point then has x0 = 0.3, and the rest is a smaller simplex.
    let cut = Linear {
        terms: vec![("x0".to_string(), 1.0)],
        at_least: None,
        at_most: Some(0.3),
        step: None,
        tolerance: 0.0,
        counts: false,
    };
    let domain = mixture(4, None, vec![cut]);
    let z = [0.9, 0.1, 0.4, 0.05];
    let found = search(near(&z), &domain, &[], &Maximizer::default(), 1).point;
    let rest: Vec<f64> = z[1..].iter().map(|z| z / 0.7).collect();
    let rest = onto_simplex(&rest).into_iter().map(|x| 0.7 * x);
    let expected: Vec<f64> = std::iter::once(0.3).chain(rest).collect();
    assert!(distance(&found, &expected) < 1e-5, "{found:?} {expected:?}");
}

#[test]
fn best_point_of_a_lattice_is_found_by_enumeration_and_by_exchanges() {
    // 5 parts in steps of 0.1 are 1,001 points; 10 parts are 92,378; 12 parts are 352,716, above the limit.
    for d in [5, 10, 12] {
        let domain = mixture(d, Some(0.1), vec![]);
        let mut rng = Rng::seed_from_u64(d as u64);
        let z: Vec<f64> = (0..d).map(|_| rng.random::<f64>() - 0.2).collect();
        // The nearest lattice point, by moving single steps from the projection until none is nearer: the squared
        // distance is a sum of convex functions, so that exchanges of single steps reach the minimum.
        let mut k: Vec<i64> = vec![0; d];
        k[0] = 10;
        let cost =
            |k: &[i64]| distance(&k.iter().map(|k| *k as f64 / 10.0).collect::<Vec<_>>(), &z);
        loop {
            let moves = (0..d).flat_map(|i| (0..d).map(move |j| (i, j)));
            let moved = moves.filter(|&(i, j)| i != j && k[i] > 0).map(|(i, j)| {
                let mut next = k.clone();
                (next[i], next[j]) = (next[i] - 1, next[j] + 1);
                next
            });
            let next = moved.min_by(|a, b| cost(a).total_cmp(&cost(b))).unwrap();
            if cost(&next) >= cost(&k) {
                break;
            }
            k = next;
        }
        let found = search(near(&z), &domain, &[], &Maximizer::default(), 2).point;
        assert!(
            (distance(&found, &z) - cost(&k)).abs() < 1e-9,
            "{d} {found:?} {k:?}"
        );
    }
}
