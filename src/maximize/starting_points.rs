//! The starting points of a search in a box: evenly spread, on faces, at corners, and near the best observed points.
//!
//! Notation: d is the number of coordinates; points are rows; u ∈ [0, 1]^d has one entry per coordinate.

use std::collections::BTreeMap;

use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut2, Axis, concatenate, s};
use rand::RngExt;
use rand::seq::SliceRandom;
use rand_distr::StandardNormal;

use super::default_search::Plan;
use super::exhaustive::{MAX_COMBINATIONS, combinations};
use crate::problem::{
    Coordinate, Domain, LinearSet, Product, columns, hold_inactive, unit_sequence, write_quantiles,
    write_spread,
};
use crate::random::Rng;

/// Standard deviations of the random steps that start at the best observed points.
const STEPS: [f64; 4] = [0.2, 0.05, 0.01, 0.002];
/// The largest probability that a step redraws a part of a lattice.
const REDRAWN: f64 = 0.25;

/// Returns the members of the box that are scored in step 1 of the search.
pub(super) fn starting_points(
    domain: &Domain,
    product: &Product,
    best_observed: ArrayView2<f64>,
    plan: &Plan,
    rng: &mut Rng,
) -> Array2<f64> {
    let combinations = domain.combinations();
    let enumerate = (2..=MAX_COMBINATIONS).contains(&combinations);
    let n_even = if enumerate {
        plan.n_even.max(3 * combinations as usize)
    } else {
        plan.n_even
    };
    let unit = even_points_and_corners(n_even, plan.n_corners, product.len(), rng);
    let mut points = Array2::zeros((unit.nrows(), domain.width()));
    write_quantiles(product, unit.view(), &mut points);
    if enumerate {
        write_combinations(product, points.slice_mut(s![..n_even, ..]), rng);
    }
    hold_inactive(product, &mut points);
    write_within_constraints(product, &mut points, n_even, rng);
    let n_steps = match best_observed.nrows() {
        0 => 0,
        _ => plan.n_steps,
    };
    let around = steps(domain, product, best_observed, n_steps, rng);
    concatenate![Axis(0), points, around]
}

/// Returns `n_even` evenly spread points of the unit cube, followed by all its corners, or `n_corners` random corners
/// if the cube has more.
fn even_points_and_corners(
    n_even: usize,
    n_corners: usize,
    d: usize,
    rng: &mut Rng,
) -> Array2<f64> {
    let all_corners = d <= 16 && (1 << d) <= n_corners;
    let n_corners = if all_corners { 1 << d } else { n_corners };
    let mut unit = Array2::zeros((n_even + n_corners, d));
    unit.slice_mut(s![..n_even, ..])
        .assign(&unit_sequence(n_even, d, rng));
    // Every second row is stretched about the centre, so that a share `outside` of its entries is clipped to 0 or 1.
    let outside = (2.0 / d as f64).clamp(0.15, 0.3);
    for mut row in unit.slice_mut(s![..n_even;2, ..]).outer_iter_mut() {
        row.mapv_inplace(|u| (0.5 + (u - 0.5) / (1.0 - outside)).clamp(0.0, 1.0));
    }
    for i in 0..n_corners {
        for j in 0..d {
            let up = if all_corners {
                i >> j & 1 == 1
            } else {
                rng.random()
            };
            unit[[n_even + i, j]] = f64::from(u8::from(up));
        }
    }
    unit
}

/// Writes points to the columns with linear constraints. Of the first `n_even` rows, every second one is moved
/// outwards, often to a face; the rows that follow get vertices and points on segments between two vertices.
fn write_within_constraints(
    product: &Product,
    points: &mut Array2<f64>,
    n_even: usize,
    rng: &mut Rng,
) {
    let Some(linear) = product.linear() else {
        return;
    };
    write_spread(product, points, rng);
    let mut vertices = BTreeMap::new();
    for (i, mut row) in points.outer_iter_mut().enumerate() {
        let mut x = row.to_vec();
        let number = product.body(linear, &x);
        let Some((columns, body)) = linear.columns_of(number) else {
            continue;
        };
        let mut own: Vec<f64> = columns.iter().map(|&column| x[column]).collect();
        if i >= n_even {
            let vertices = vertices.entry(number).or_insert_with(|| body.vertices());
            own = vertices.draw(rng);
            if i % 2 == 1 {
                let (other, share) = (vertices.draw(rng), rng.random::<f64>());
                own.iter_mut()
                    .zip(other)
                    .for_each(|(v, o)| *v += share * (o - *v));
            }
        } else if i % 2 == 0 {
            body.push_outwards(&mut own);
        }
        columns
            .iter()
            .zip(own)
            .for_each(|(&column, v)| x[column] = v);
        row.assign(&ArrayView1::from(&x));
    }
}

/// Writes the combinations of the discrete coordinates to the rows in random order, repeated if there are more rows.
fn write_combinations(product: &Product, mut points: ArrayViewMut2<f64>, rng: &mut Rng) {
    let all = combinations(product, points.ncols());
    let mut order: Vec<usize> = Vec::with_capacity(points.nrows() + all.nrows());
    while order.len() < points.nrows() {
        let round = order.len();
        order.extend(0..all.nrows());
        order[round..].shuffle(rng);
    }
    for (mut row, number) in points.outer_iter_mut().zip(order) {
        for (coordinate, at) in columns(product) {
            if *coordinate != Coordinate::Continuous {
                row.slice_mut(s![at.clone()])
                    .assign(&all.slice(s![number, at]));
            }
        }
    }
}

/// Returns the best observed points, followed by random steps from them: one step of every length in `STEPS` from each
/// point, best first.
fn steps(
    domain: &Domain,
    product: &Product,
    best_observed: ArrayView2<f64>,
    n_steps: usize,
    rng: &mut Rng,
) -> Array2<f64> {
    let n_observed = best_observed.nrows();
    let linear = product.linear();
    let mut points = Array2::zeros((n_observed + n_steps, domain.width()));
    for (i, mut row) in points.outer_iter_mut().enumerate() {
        let step = i.checked_sub(n_observed);
        let centre = step.map_or(i, |k| k / STEPS.len() % n_observed);
        let mut x = best_observed.row(centre).to_vec();
        if let Some(k) = step {
            let length = STEPS[k % STEPS.len()];
            // Half of the steps leave about half of the coordinates unchanged.
            let moving = if rng.random() { 1.0 } else { 0.5 };
            for (coordinate, at) in columns(product) {
                let lattice = linear.and_then(|linear| linear.lattice_of(at.start));
                if lattice.is_some_and(|lattice| !lattice.can_be_relaxed())
                    || rng.random::<f64>() >= moving
                {
                    continue;
                }
                match coordinate.choices() {
                    Some(n) if rng.random::<f64>() < 0.25 => {
                        coordinate.write(rng.random_range(0..n), &mut x[at]);
                    }
                    Some(_) => {}
                    None => x[at.start] += length * rng.sample::<f64, _>(StandardNormal),
                }
            }
            for lattice in linear.into_iter().flat_map(LinearSet::rigid) {
                lattice.redraw(REDRAWN * moving, &mut x, rng);
            }
        }
        domain.snap(&mut x);
        row.assign(&ArrayView1::from(&x));
    }
    points
}
