//! Uniform draws from a domain, and space-filling sequences.
//!
//! Notation: n is the number of points and d the number of coordinates; u ∈ [0, 1]^d has one entry per *coordinate*.

use std::collections::BTreeSet;

use ndarray::{Array2, ArrayView1, ArrayView2, Axis, concatenate};
use rand::RngExt;
use rand::seq::SliceRandom;

use super::{Coordinate, Domain, Product, columns};
use crate::random::Rng;

/// The largest d for which R_d is used; for larger d, Latin squares are used. At larger d, some steps of R_d are close
/// to simple fractions, so that whole slices of a coordinate stay empty for hundreds of points: first at d = 9, and
/// half of all slices at d = 20.
const MAX_GOLDEN: usize = 8;

/// The largest maximin design, the number of subsets among which it is chosen, and the number of points per point of
/// the design from which subsets are drawn.
const MAX_MAXIMIN: usize = 48;
const N_SUBSETS: usize = 256;
const POOL_PER_POINT: usize = 16;

impl Domain {
    /// Draws a uniform point (log-uniform for logarithmic integers). For candidates, the row number is also returned.
    pub fn sample_uniform(&self, rng: &mut Rng) -> (Vec<f64>, Option<usize>) {
        match self {
            Domain::Candidates(points) => {
                let index = rng.random_range(0..points.nrows());
                (points.row(index).to_vec(), Some(index))
            }
            Domain::Box(coordinates) => {
                let mut x = vec![0.0; self.width()];
                for (coordinate, at) in columns(coordinates) {
                    coordinate.write_within(coordinate.whole(), rng.random(), &mut x[at]);
                }
                coordinates.hold_inactive(&mut x);
                coordinates.redraw_linear(&mut x, rng);
                (x, None)
            }
        }
    }

    /// Draws a member of a box in which a random number of coordinates is away from the first or the last value of the
    /// range, or from the first or the last choice. All other coordinates are at this end.
    pub fn sample_sparse(&self, rng: &mut Rng) -> Vec<f64> {
        let Domain::Box(coordinates) = self else {
            return self.sample_uniform(rng).0;
        };
        let mut x = vec![0.0; self.width()];
        let d = coordinates.len();
        let most = rng.random_range(1..=d);
        let n = rng.random_range(1..=most);
        let away: BTreeSet<usize> = rand::seq::index::sample(rng, d, n).into_iter().collect();
        let (ordered_at_last, choices_at_last): (bool, bool) = (rng.random(), rng.random());
        for (i, (coordinate, at)) in columns(coordinates).enumerate() {
            let at_last = match coordinate.is_ordered() {
                true => ordered_at_last,
                false => choices_at_last,
            };
            let is_away = away.contains(&i);
            match coordinate.levels() {
                Some(levels) => {
                    let offset = if is_away && levels > 1 {
                        rng.random_range(1..levels)
                    } else {
                        0
                    };
                    let level = if at_last { levels - 1 - offset } else { offset };
                    coordinate.write(level, &mut x[at]);
                }
                None if is_away => x[at.start] = rng.random(),
                None => x[at.start] = f64::from(u8::from(at_last)),
            }
        }
        coordinates.hold_inactive(&mut x);
        coordinates.redraw_linear(&mut x, rng);
        x
    }

    /// Returns `n` evenly spread members, shape (n, width). In a box, the members are a randomly shifted R_d sequence,
    /// or a Latin square if d > 8. Under linear constraints, the constrained columns are a maximin design. In a list of
    /// candidates, the members are a random permutation of the rows, which is repeated if n exceeds their number.
    pub fn quasi_random(&self, n: usize, rng: &mut Rng) -> Array2<f64> {
        let mut points = Array2::zeros((n, self.width()));
        match self {
            Domain::Candidates(all) => {
                let mut order: Vec<usize> = (0..all.nrows()).collect();
                order.shuffle(rng);
                for (mut row, &i) in points.outer_iter_mut().zip(order.iter().cycle()) {
                    row.assign(&all.row(i));
                }
            }
            Domain::Box(coordinates) => {
                let unit = unit_sequence(n, coordinates.len(), rng);
                write_quantiles(coordinates, unit.view(), &mut points);
                hold_inactive(coordinates, &mut points);
                write_spread(coordinates, &mut points, rng);
            }
        }
        points
    }

    /// Returns the `n` evenly spread points of `quasi_random`, followed by `n_extra` points that continue the sequence.
    pub fn quasi_random_and_more(&self, n: usize, n_extra: usize, rng: &mut Rng) -> Array2<f64> {
        match self {
            // Only a complete Latin square, and a complete maximin design, is evenly spread.
            Domain::Box(coordinates)
                if coordinates.len() > MAX_GOLDEN || coordinates.linear().is_some() =>
            {
                concatenate![
                    Axis(0),
                    self.quasi_random(n, rng),
                    self.quasi_random(n_extra, rng)
                ]
            }
            _ => self.quasi_random(n + n_extra, rng),
        }
    }
}

/// Maps rows of the unit cube (one column per *coordinate*) to rows of the box. Inactive columns are not set to their
/// fixed values.
pub(crate) fn write_quantiles(
    coordinates: &[Coordinate],
    unit: ArrayView2<f64>,
    points: &mut Array2<f64>,
) {
    let mut buffer = vec![0.0; points.ncols()];
    for (u, mut row) in unit.outer_iter().zip(points.outer_iter_mut()) {
        for ((coordinate, at), &u) in columns(coordinates).zip(u) {
            coordinate.write_within(coordinate.whole(), u, &mut buffer[at]);
        }
        for (entry, v) in row.iter_mut().zip(&buffer) {
            *entry = *v;
        }
    }
}

/// Writes points to the columns with linear constraints. The points of up to [`MAX_MAXIMIN`] rows are far from each
/// other: of many random subsets of a uniform sample, the subset with the largest smallest distance. More rows get
/// uniform points.
pub(crate) fn write_spread(product: &Product, points: &mut Array2<f64>, rng: &mut Rng) {
    let Some(linear) = product.linear() else {
        return;
    };
    let width = points.ncols();
    let bodies = points.outer_iter();
    let bodies: Vec<usize> = bodies
        .map(|row| product.body(linear, &row.to_vec()))
        .collect();
    for body in bodies.iter().copied().collect::<BTreeSet<usize>>() {
        let own: Vec<usize> = (0..bodies.len()).filter(|&i| bodies[i] == body).collect();
        let (n, per_point) = (
            own.len(),
            if own.len() <= MAX_MAXIMIN {
                POOL_PER_POINT
            } else {
                1
            },
        );
        let pool = linear.sample(body, n * per_point, width, rng);
        let mut chosen = match per_point {
            1 => (0..n).collect(),
            _ => maximin(&pool, n, rng),
        };
        // The points of a chain are near their neighbours in the chain.
        chosen.shuffle(rng);
        for (i, k) in own.into_iter().zip(chosen) {
            let mut x = points.row(i).to_vec();
            linear.copy(body, &pool[k], &mut x);
            points.row_mut(i).assign(&ArrayView1::from(&x));
        }
    }
}

/// The best of many random subsets of n points: the smallest distance between two of its points is largest.
fn maximin(pool: &[Vec<f64>], n: usize, rng: &mut Rng) -> Vec<usize> {
    let squared = |i: usize, j: usize| -> f64 {
        let pairs = pool[i].iter().zip(&pool[j]);
        pairs.map(|(a, b)| (a - b) * (a - b)).sum()
    };
    let mut best = (f64::NEG_INFINITY, (0..n).collect());
    for _ in 0..N_SUBSETS {
        let subset = rand::seq::index::sample(rng, pool.len(), n).into_vec();
        let mut least = f64::INFINITY;
        for (i, &a) in subset.iter().enumerate() {
            let earlier = subset[..i].iter().map(|&b| squared(a, b));
            least = earlier.fold(least, f64::min);
            if least <= best.0 {
                break;
            }
        }
        if least > best.0 {
            best = (least, subset);
        }
    }
    best.1
}

/// Writes the fixed values to the inactive columns of every row.
pub(crate) fn hold_inactive(product: &Product, points: &mut Array2<f64>) {
    if product.is_conditional() {
        for mut row in points.outer_iter_mut() {
            let mut x = row.to_vec();
            product.hold_inactive(&mut x);
            row.assign(&ArrayView1::from(&x));
        }
    }
}

/// Returns `n` evenly spread rows of [0, 1)^d: an R_d sequence, or a Latin square if d is large.
pub(crate) fn unit_sequence(n: usize, d: usize, rng: &mut Rng) -> Array2<f64> {
    if d > MAX_GOLDEN {
        latin_square(n, d, rng)
    } else {
        golden_sequence(n, d, rng)
    }
}

/// Returns a Latin hypercube. Each column is a random permutation of n equal cells, with a uniform draw in each cell.
fn latin_square(n: usize, d: usize, rng: &mut Rng) -> Array2<f64> {
    let mut unit = Array2::zeros((n, d));
    let mut cells: Vec<usize> = (0..n).collect();
    for mut column in unit.axis_iter_mut(Axis(1)) {
        cells.shuffle(rng);
        for (entry, &cell) in column.iter_mut().zip(&cells) {
            *entry = (cell as f64 + rng.random::<f64>()) / n as f64;
        }
    }
    unit
}

/// Returns the sequence R_d of Roberts (2018), which uses the generalised golden ratio. Row i is frac(s + i α) with a
/// uniform shift s and α_j = φ^(−j). The ratio φ > 1 solves φ^(d+1) = φ + 1.
fn golden_sequence(n: usize, d: usize, rng: &mut Rng) -> Array2<f64> {
    let mut unit = Array2::zeros((n, d));
    // φ is the fixed point of φ = (1 + φ)^(1/(d+1)). The map contracts by a factor of at most 1/(2(d+1)).
    let mut phi = 2.0_f64;
    for _ in 0..64 {
        phi = libm::pow(1.0 + phi, 1.0 / (d as f64 + 1.0));
    }
    let mut alpha = 1.0;
    for mut column in unit.axis_iter_mut(Axis(1)) {
        alpha /= phi;
        let shift: f64 = rng.random();
        for (i, entry) in column.iter_mut().enumerate() {
            *entry = (shift + (i + 1) as f64 * alpha).fract();
        }
    }
    unit
}

#[cfg(test)]
mod tests {
    use super::super::domain::testing::integer;
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn both_sequences_fill_every_coordinate_evenly() {
        for d in [1, 2, 3, 4, 5, 6, 7, 8, 9, 20, 300] {
            let unit = unit_sequence(400, d, &mut Rng::seed_from_u64(d as u64));
            for column in unit.axis_iter(Axis(1)) {
                let mut cells = [0; 20];
                for u in column {
                    cells[(u * 20.0) as usize] += 1;
                }
                // A slice is expected to have 20 points. The bounds are loose, because the step 0.588 at d = 6 is close
                // to 10/17.
                assert!(
                    cells.iter().all(|c| (12..=36).contains(c)),
                    "d={d} {cells:?}"
                );
            }
        }
        let levels =
            Domain::new_box(vec![integer(1, 5, false), Coordinate::Categorical { n: 3 }]).unwrap();
        assert_eq!(levels.combinations(), 15);
        assert_eq!((levels.width(), levels.dimensions()), (4, 2));
        let points = levels.quasi_random(300, &mut Rng::seed_from_u64(9));
        for level in 0..5 {
            let n = points
                .column(0)
                .iter()
                .filter(|u| (**u * 4.0).round() == f64::from(level))
                .count();
            assert!((50..=70).contains(&n), "level {level}: {n}");
        }
    }
}
