//! A minimum distance between proposals and pending trials, for boxes with continuous coordinates.
//!
//! If the model has noise, some variance remains at a pending point, so the acquisition may still be largest at this
//! point. Two points at a small distance from each other give more information than two equal points.

use ndarray::{Array2, ArrayView1, ArrayView2};
use rand_distr::{Distribution, StandardNormal};

use crate::error::Result;
use crate::maximize::feasible::Feasible;
use crate::problem::{Domain, Member, Objective, Product};
use crate::random::Rng;

/// The minimum distance between pending trials, as a fraction of the diagonal of the box.
const MIN_SEPARATION: f64 = 1.5e-3;

/// Distances between a proposal and its alternatives, as multiples of the minimum distance. There are [`PER_STEP`]
/// alternatives at each distance.
const STEPS: [f64; 4] = [1.5, 4.0, 15.0, 60.0];
const PER_STEP: usize = 32;
/// The number of additional alternatives that are spread over the box.
const SPREAD: usize = 64;

/// Returns the proposal, or a replacement if a pending point is too near. The replacement is the best alternative that
/// is far enough from all pending points and satisfies the constraints.
///
/// The proposal is also returned if a replacement is not found, or if the proposal does not have an active continuous
/// coordinate.
pub fn enforce_separation(
    objective: &mut dyn Objective,
    domain: &Domain,
    proposal: Member,
    pending: ArrayView2<f64>,
    feasible: Feasible,
    rng: &mut Rng,
) -> Result<Member> {
    let Domain::Box(product) = domain else {
        return Ok(proposal);
    };
    if !product.has_active_continuous(&proposal.x) {
        return Ok(proposal);
    }
    let least = least_distance(product);
    let separated = |x: &[f64]| is_separated(product, x, pending);
    if separated(&proposal.x) {
        return Ok(proposal);
    }
    let mut alternatives = alternatives(domain, &proposal.x, least, rng);
    // Drop alternatives without an active continuous coordinate: [`super::repeats`] determines which of these points
    // may be suggested.
    alternatives.retain(|x| separated(x) && product.has_active_continuous(x));
    let mut points = Array2::zeros((alternatives.len(), domain.width()));
    for (mut row, x) in points.rows_mut().into_iter().zip(&alternatives) {
        row.assign(&ArrayView1::from(x));
    }
    let mut values = vec![0.0; alternatives.len()];
    objective.values(points.view(), &mut values);
    // Among equal values, the last alternative comes first.
    let mut order: Vec<usize> = (0..values.len()).filter(|&i| !values[i].is_nan()).collect();
    order.reverse();
    order.sort_by(|&i, &j| values[j].total_cmp(&values[i]));
    Ok(match feasible.first(1, &order, points.view())?.first() {
        Some(&best) => Member::new(alternatives.swap_remove(best), None),
        None => proposal,
    })
}

/// The minimum distance between pending trials.
fn least_distance(product: &Product) -> f64 {
    MIN_SEPARATION * (product.len() as f64).sqrt()
}

/// Whether a point of a box is far enough from all these points.
pub fn is_separated(product: &Product, x: &[f64], points: ArrayView2<f64>) -> bool {
    let least = least_distance(product);
    points.rows().into_iter().all(|row| {
        let squares = row.iter().zip(x).map(|(a, b)| (a - b) * (a - b));
        squares.sum::<f64>() >= least * least
    })
}

/// Returns members of the box at several distances from `x`, in random directions, followed by members spread over the
/// box.
fn alternatives(domain: &Domain, x: &[f64], least: f64, rng: &mut Rng) -> Vec<Vec<f64>> {
    let mut alternatives: Vec<Vec<f64>> = Vec::new();
    for step in STEPS {
        for _ in 0..PER_STEP {
            let direction: Vec<f64> = x.iter().map(|_| StandardNormal.sample(rng)).collect();
            let length = direction.iter().map(|u| u * u).sum::<f64>().sqrt();
            let length = length.max(1e-300);
            let along = direction.iter().map(|u| step * least * u / length);
            let mut moved: Vec<f64> = x.iter().zip(along).map(|(x, u)| x + u).collect();
            domain.snap(&mut moved);
            alternatives.push(moved);
        }
    }
    let spread = domain.quasi_random(SPREAD, rng);
    alternatives.extend(spread.rows().into_iter().map(|row| row.to_vec()));
    alternatives
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Condition, Coordinate};
    use rand::SeedableRng;

    /// An objective that increases towards the corner (1, …, 1).
    struct Sum;

    impl Objective for Sum {
        fn values(&mut self, points: ArrayView2<f64>, out: &mut [f64]) {
            for (row, out) in points.rows().into_iter().zip(out) {
                *out = row.sum();
            }
        }

        fn value_and_gradient(&mut self, x: &[f64], gradient: &mut [f64]) -> f64 {
            gradient.fill(1.0);
            x.iter().sum()
        }
    }

    fn separate(
        domain: &Domain,
        proposal: Member,
        pending: ArrayView2<f64>,
        rng: &mut Rng,
    ) -> Member {
        enforce_separation(
            &mut Sum,
            domain,
            proposal,
            pending,
            Feasible::EVERYWHERE,
            rng,
        )
        .unwrap()
    }

    fn corner(d: usize) -> Member {
        Member::new(vec![1.0; d], None)
    }

    #[test]
    fn proposals_on_one_corner_spread_out_but_stay_near() {
        let mut rng = Rng::seed_from_u64(4);
        for d in [1, 2, 6] {
            let domain = Domain::new_box(vec![Coordinate::Continuous; d]).unwrap();
            let mut pending = Array2::zeros((0, d));
            for _ in 0..16 {
                let x = separate(&domain, corner(d), pending.view(), &mut rng).x;
                assert!(domain.contains(&x));
                for row in pending.rows() {
                    let distance: f64 = row.iter().zip(&x).map(|(a, b)| (a - b).powi(2)).sum();
                    assert!(distance.sqrt() >= 1e-3 * (d as f64).sqrt());
                }
                assert!(x.iter().all(|x| *x > 0.5), "{x:?}");
                pending.push_row(ArrayView1::from(&x)).unwrap();
            }
        }
    }

    #[test]
    fn alternatives_lie_at_the_given_distances_and_all_over_the_box() {
        let mut rng = Rng::seed_from_u64(4);
        for d in [1, 3] {
            let domain = Domain::new_box(vec![Coordinate::Continuous; d]).unwrap();
            let (x, least) = (vec![0.5; d], 1.0 / 128.0);
            let points = alternatives(&domain, &x, least, &mut rng);
            assert_eq!(points.len(), STEPS.len() * PER_STEP + SPREAD);
            let (near, spread) = points.split_at(STEPS.len() * PER_STEP);
            for (points, step) in near.chunks(PER_STEP).zip(STEPS) {
                for point in points {
                    let squares: f64 = point.iter().zip(&x).map(|(a, b)| (a - b).powi(2)).sum();
                    assert!((squares.sqrt() - step * least).abs() < 1e-12);
                }
                // Alternatives must lie in every direction.
                for k in 0..d {
                    let up = points.iter().filter(|point| point[k] > 0.5).count();
                    assert!((4..=28).contains(&up), "{up}");
                }
            }
            let low = spread.iter().filter(|point| point[0] < 0.25).count();
            assert!((8..=24).contains(&low), "{low}");
        }
    }

    #[test]
    fn proposals_in_discrete_boxes_and_separated_proposals_are_unchanged() {
        let mut rng = Rng::seed_from_u64(4);
        let pending = Array2::from_elem((1, 1), 1.0);
        let discrete = Domain::new_box(vec![Coordinate::Integer {
            low: 0,
            high: 3,
            log: false,
        }])
        .unwrap();
        assert_eq!(
            separate(&discrete, corner(1), pending.view(), &mut rng),
            corner(1)
        );
        let continuous = Domain::new_box(vec![Coordinate::Continuous]).unwrap();
        let elsewhere = Member::new(vec![0.9], None);
        let kept = separate(&continuous, elsewhere.clone(), pending.view(), &mut rng);
        assert_eq!(kept, elsewhere);
    }

    #[test]
    fn inactive_columns_and_discrete_branches_are_unchanged() {
        let coordinates = vec![
            Coordinate::Categorical { n: 2 },
            Coordinate::Continuous,
            Coordinate::Continuous,
        ];
        let when = vec![
            vec![],
            vec![Condition(0, vec![1])],
            vec![Condition(0, vec![1])],
        ];
        let domain = Domain::conditional_box(coordinates, when).unwrap();
        let mut rng = Rng::seed_from_u64(4);
        let discrete = Member::new(vec![1.0, 0.0, 0.5, 0.5], None);
        let pending = Array2::from_shape_vec((1, 4), discrete.x.clone()).unwrap();
        let kept = separate(&domain, discrete.clone(), pending.view(), &mut rng);
        assert_eq!(kept, discrete);
        let corner = Member::new(vec![0.0, 1.0, 1.0, 1.0], None);
        let pending = Array2::from_shape_vec((1, 4), corner.x.clone()).unwrap();
        let moved = separate(&domain, corner.clone(), pending.view(), &mut rng);
        assert!(moved != corner && domain.contains(&moved.x) && moved.x[1] == 1.0);
    }
}
