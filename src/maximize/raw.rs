//! The raw points of a search in a box: spread evenly, on faces and corners, around the incumbents.
//!
//! Notation: d coordinates, `width` columns, points are rows; u ∈ [0, 1]^d has one entry per coordinate.

use ndarray::{Array2, ArrayView1, ArrayView2, Axis, s};
use rand::RngExt;
use rand::seq::SliceRandom;
use rand_distr::StandardNormal;

use super::{ENUMERATED, Plan};
use crate::domain::{Coordinate, Domain, columns, unit_sequence, write_quantiles};
use crate::random::Rng;

/// Standard deviations of the steps away from incumbents.
const STEPS: [f64; 4] = [0.2, 0.05, 0.01, 0.002];

/// Every combination of the discrete coordinates, one per row; continuous columns are 0.
pub(super) fn combinations(coordinates: &[Coordinate], width: usize) -> Array2<f64> {
    let count = coordinates
        .iter()
        .filter_map(Coordinate::levels)
        .product::<u64>();
    let mut points = Array2::zeros((count as usize, width));
    for (number, mut row) in points.outer_iter_mut().enumerate() {
        // The digits of the row number, the levels being the bases.
        let mut rest = number as u64;
        let mut x = vec![0.0; width];
        for (coordinate, at) in columns(coordinates) {
            if let Some(levels) = coordinate.levels() {
                coordinate.write(rest % levels, &mut x[at]);
                rest /= levels;
            }
        }
        row.assign(&ArrayView1::from(&x));
    }
    points
}

/// Step 1 of the search: where to look first.
pub(super) fn raw_points(
    domain: &Domain,
    coordinates: &[Coordinate],
    incumbents: ArrayView2<f64>,
    plan: &Plan,
    rng: &mut Rng,
) -> Array2<f64> {
    let (d, width) = (coordinates.len(), domain.width());
    let enumerate = (2..=ENUMERATED).contains(&domain.combinations());
    let count = match domain.combinations() {
        few if enumerate => plan.spread.max(3 * few as usize),
        _ => plan.spread,
    };
    let corners = match d {
        0..=16 if (1 << d) <= plan.corners => 1 << d,
        _ => plan.corners,
    };
    let local = if incumbents.nrows() > 0 {
        plan.local
    } else {
        0
    };

    // Every other row is stretched about the centre until a share `face` of each coordinate lands outside.
    let face = (2.0 / d as f64).clamp(0.15, 0.3);
    let mut unit = Array2::zeros((count + corners, d));
    unit.slice_mut(s![..count, ..])
        .assign(&unit_sequence(count, d, rng));
    for mut row in unit.slice_mut(s![..count;2, ..]).outer_iter_mut() {
        row.mapv_inplace(|u| (0.5 + (u - 0.5) / (1.0 - face)).clamp(0.0, 1.0));
    }
    for i in 0..corners {
        for j in 0..d {
            let up = if corners == 1 << d {
                i >> j & 1 == 1
            } else {
                rng.random()
            };
            unit[[count + i, j]] = f64::from(u8::from(up));
        }
    }
    let mut points = Array2::zeros((count + corners, width));
    write_quantiles(coordinates, unit.view(), &mut points);

    if enumerate {
        let all = combinations(coordinates, width);
        let mut order: Vec<usize> = Vec::with_capacity(count + all.nrows());
        while order.len() < count {
            let round = order.len();
            order.extend(0..all.nrows());
            order[round..].shuffle(rng);
        }
        for (mut row, &number) in points.outer_iter_mut().zip(&order[..count]) {
            for (coordinate, at) in columns(coordinates) {
                if *coordinate != Coordinate::Continuous {
                    row.slice_mut(s![at.clone()])
                        .assign(&all.slice(s![number, at]));
                }
            }
        }
    }

    let mut around = Array2::zeros((incumbents.nrows() + local, width));
    for (i, mut row) in around.outer_iter_mut().enumerate() {
        // The incumbents themselves, then every size of step from the best, the second best, …
        let taken = i.checked_sub(incumbents.nrows());
        let centre = taken.map_or(i, |k| k / STEPS.len() % incumbents.nrows());
        let mut x = incumbents.row(centre).to_vec();
        if let Some(k) = taken {
            let step = STEPS[k % STEPS.len()];
            // Half of the steps leave about half of the coordinates as they are.
            let moving = if rng.random() { 1.0 } else { 0.5 };
            for (coordinate, at) in columns(coordinates) {
                if rng.random::<f64>() >= moving {
                    continue;
                }
                match coordinate {
                    Coordinate::Categorical { n } if rng.random::<f64>() < 0.25 => {
                        coordinate.write(rng.random_range(0..*n as u64), &mut x[at]);
                    }
                    Coordinate::Categorical { .. } => {}
                    _ => x[at.start] += step * rng.sample::<f64, _>(StandardNormal),
                }
            }
        }
        domain.snap(&mut x);
        row.assign(&ArrayView1::from(&x));
    }
    ndarray::concatenate![Axis(0), points, around]
}
