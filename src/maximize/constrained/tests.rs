//! Tests of the search under constraints, on bowls with known constrained maxima.

use std::ops::ControlFlow;

use rand::SeedableRng;

use super::*;
use crate::maximize::{Maximizer, maximize};
use crate::problem::Coordinate;
use crate::random::Call;

/// The objective −|x − centre|².
struct Bowl(Vec<f64>);

impl Objective for Bowl {
    fn values(&mut self, points: ArrayView2<f64>, out: &mut [f64]) {
        for (row, out) in points.rows().into_iter().zip(out) {
            *out = -row
                .iter()
                .zip(&self.0)
                .map(|(x, c)| (x - c).powi(2))
                .sum::<f64>();
        }
    }

    fn value_and_gradient(&mut self, x: &[f64], gradient: &mut [f64]) -> f64 {
        for ((g, x), c) in gradient.iter_mut().zip(x).zip(&self.0) {
            *g = -2.0 * (x - c);
        }
        -x.iter()
            .zip(&self.0)
            .map(|(x, c)| (x - c).powi(2))
            .sum::<f64>()
    }
}

/// Returns the constrained maximum that the search finds for the bowl.
fn best(domain: &Domain, centre: &[f64], inside: &dyn Fn(&[f64]) -> bool, seed: u64) -> Argmax {
    let mut rng = Rng::seed_from_u64(seed);
    let mut go_on = || ControlFlow::Continue(());
    let check = |rows: ArrayView2<f64>| -> Result<Vec<bool>> {
        let rows = rows.rows().into_iter();
        Ok(rows.map(|row| inside(&row.to_vec())).collect())
    };
    let feasible = Feasible::by(&check);
    let pool = Pool::new(domain, feasible, &mut Call::new(&mut rng, &mut go_on)).unwrap();
    let allowed = Allowed {
        excluded: &Excluded::default(),
        feasible,
        pool: Some(&pool),
    };
    let none = Array2::zeros((0, domain.width()));
    let mut bowl = Bowl(centre.to_vec());
    maximize(
        &mut bowl,
        domain,
        none.view(),
        &Maximizer::default(),
        allowed,
        &mut Call::new(&mut rng, &mut go_on),
    )
    .unwrap()
}

#[test]
fn constrained_maxima_of_a_bowl_are_projections_of_its_centre() {
    for d in 2..5 {
        let domain = Domain::new_box(vec![Coordinate::Continuous; d]).unwrap();
        let below = |x: &[f64]| x.iter().sum::<f64>() <= 1.0;
        for seed in 0..3 {
            let found = best(&domain, &vec![0.7; d], &below, seed);
            assert!(below(&found.point));
            let exact = -(d as f64) * (0.7 - 1.0 / d as f64).powi(2);
            assert!(found.value > exact - 5e-3, "{d} {seed} {found:?} {exact}");
        }
    }
    // The feasible ring has 5 % of the area of the square. The first bowl has its maximum in the hole of the ring, and
    // the second bowl outside the ring.
    let square = Domain::new_box(vec![Coordinate::Continuous; 2]).unwrap();
    let radius = |x: &[f64]| ((x[0] - 0.5).powi(2) + (x[1] - 0.5).powi(2)).sqrt();
    let ring = |x: &[f64]| (0.432..=0.45).contains(&radius(x));
    for (centre, exact) in [([0.6, 0.5], 0.332), ([0.9, 0.9], 0.32f64.sqrt() - 0.45)] {
        let found = best(&square, &centre, &ring, 5);
        assert!(
            ring(&found.point) && found.value > -exact * exact - 1e-3,
            "{found:?}"
        );
    }
}

#[test]
fn feasible_unconstrained_maxima_are_found_exactly_and_small_domains_are_enumerated() {
    let domain = Domain::new_box(vec![Coordinate::Continuous; 3]).unwrap();
    let found = best(&domain, &[0.2, 0.3, 0.1], &|x| x[0] <= 0.5, 1);
    assert!(found.value > -1e-9, "{found:?}");
    let n = Coordinate::Integer {
        low: 0,
        high: 20,
        log: false,
    };
    let grid = Domain::new_box(vec![n; 2]).unwrap();
    let found = best(&grid, &[1.0, 1.0], &|x| x[0] + x[1] < 0.06, 1);
    assert!((found.point[0] + found.point[1] - 0.05).abs() < 1e-12);
    // The domain has too many members to enumerate.
    let wide = Coordinate::Integer {
        low: 0,
        high: 100,
        log: false,
    };
    let grid = Domain::new_box(vec![wide; 3]).unwrap();
    let found = best(&grid, &[0.9, 0.9, 0.0], &|x| x[0] + x[1] <= 1.0 + 1e-9, 1);
    assert!(found.value > -2.0 * 0.16 - 0.005, "{found:?}");
}
