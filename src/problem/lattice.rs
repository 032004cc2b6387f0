//! Points of a mixture with a step: the integers k with 0 ≤ k_i ≤ L_i and Σ k_i = K.
//!
//! Notation: the column of k_i is k_i / L_i. The points are ordered lexicographically.

use rand::RngExt;

use super::band::Band;
use crate::random::Rng;

/// The points of a mixture with a step, in columns of a box.
#[derive(Clone, Debug, PartialEq)]
pub struct Lattice {
    /// The column of each k_i.
    pub columns: Vec<usize>,
    /// L_i.
    levels: Vec<u64>,
    /// K.
    total: u64,
    /// The number of ways in which k_i, k_{i+1}, … sum to s, in row i and column s.
    ways: Vec<Vec<f64>>,
}

impl Lattice {
    /// Creates a lattice, or returns None if it is empty.
    pub fn new(columns: Vec<usize>, levels: Vec<u64>, total: u64) -> Option<Self> {
        let n_sums = total as usize + 1;
        let mut ways = vec![vec![0.0; n_sums]; levels.len() + 1];
        ways[levels.len()][0] = 1.0;
        for (i, &level) in levels.iter().enumerate().rev() {
            // The sum over k ≤ L slides along the row below.
            let mut window = 0.0;
            for s in 0..n_sums {
                window += ways[i + 1][s];
                if s as u64 > level {
                    window -= ways[i + 1][s - level as usize - 1];
                }
                ways[i][s] = window;
            }
        }
        let is_empty = levels.iter().sum::<u64>() < total;
        (!is_empty).then_some(Self {
            columns,
            levels,
            total,
            ways,
        })
    }

    /// The columns, with L of each, and K.
    pub fn parts(&self) -> (impl Iterator<Item = (usize, u64)>, u64) {
        let columns = self.columns.iter().copied();
        (columns.zip(self.levels.iter().copied()), self.total)
    }

    /// The number of points (saturating).
    pub fn n_points(&self) -> u64 {
        self.ways[0][self.total as usize] as u64
    }

    /// The coefficients and the right side of Σ L_i x_i = K.
    pub fn row(&self, width: usize) -> (Vec<f64>, f64) {
        let mut a = vec![0.0; width];
        for (&column, &level) in self.columns.iter().zip(&self.levels) {
            a[column] = level as f64;
        }
        (a, self.total as f64)
    }

    /// Replaces the columns by the nearest point of Σ L_i x_i = K in the cube.
    pub fn snap_relaxed(&self, x: &mut [f64]) {
        let size = self
            .levels
            .iter()
            .map(|l| (l * l) as f64)
            .sum::<f64>()
            .sqrt();
        let total = self.total as f64 / size;
        let coefficients = self.levels.iter().map(|&level| level as f64 / size);
        let band = Band {
            coefficients: coefficients.collect(),
            low: total,
            high: total,
        };
        let mut own: Vec<f64> = self.columns.iter().map(|&column| x[column]).collect();
        band.project(&mut own);
        self.columns
            .iter()
            .zip(own)
            .for_each(|(&column, v)| x[column] = v);
    }

    fn read(&self, x: &[f64]) -> Vec<u64> {
        let columns = self.columns.iter().zip(&self.levels);
        columns
            .map(|(&column, &level)| (x[column] * level as f64).round() as u64)
            .collect()
    }

    fn write(&self, k: &[u64], x: &mut [f64]) {
        for ((&column, &level), &k) in self.columns.iter().zip(&self.levels).zip(k) {
            x[column] = k as f64 / level as f64;
        }
    }

    /// Draws a uniform point.
    pub fn sample(&self, x: &mut [f64], rng: &mut Rng) {
        let mut left = self.total as usize;
        let mut k = vec![0; self.levels.len()];
        for (i, k) in k.iter_mut().enumerate() {
            let mut share = rng.random::<f64>() * self.ways[i][left];
            let last = (self.levels[i] as usize).min(left);
            let mut chosen = None;
            for value in 0..=last {
                let ways = self.ways[i + 1][left - value];
                if ways > 0.0 {
                    chosen = Some(value);
                    share -= ways;
                    if share < 0.0 {
                        break;
                    }
                }
            }
            let value = chosen.unwrap_or(last);
            (*k, left) = (value as u64, left - value);
        }
        self.write(&k, x);
    }

    /// Replaces the columns by the nearest point. Each k_i is rounded, and then steps of ±1 with the least increase of
    /// the squared distance restore the sum; for a sum of convex functions this is the minimum.
    pub fn snap(&self, x: &mut [f64]) {
        let target = |i: usize| {
            let u = x[self.columns[i]];
            let u = if u.is_nan() { 0.5 } else { u.clamp(0.0, 1.0) };
            u * self.levels[i] as f64
        };
        let target: Vec<f64> = (0..self.levels.len()).map(target).collect();
        let mut k: Vec<u64> = target.iter().map(|t| t.round() as u64).collect();
        loop {
            let sum: u64 = k.iter().sum();
            let up = match sum.cmp(&self.total) {
                std::cmp::Ordering::Equal => break,
                order => order == std::cmp::Ordering::Less,
            };
            let can_move = |&i: &usize| if up { k[i] < self.levels[i] } else { k[i] > 0 };
            let cost = |i: usize| match up {
                true => k[i] as f64 - target[i],
                false => target[i] - k[i] as f64,
            };
            let movable = (0..k.len()).filter(can_move);
            let Some(i) = movable.min_by(|&i, &j| cost(i).total_cmp(&cost(j))) else {
                break;
            };
            k[i] = if up { k[i] + 1 } else { k[i] - 1 };
        }
        self.write(&k, x);
    }

    /// Writes the first point.
    pub fn write_first(&self, x: &mut [f64]) {
        let mut k = vec![0; self.levels.len()];
        self.fill(&mut k, 0, self.total);
        self.write(&k, x);
    }

    /// Writes the first values from position `from` on that sum to `left`.
    fn fill(&self, k: &mut [u64], from: usize, mut left: u64) {
        for i in (from..k.len()).rev() {
            k[i] = self.levels[i].min(left);
            left -= k[i];
        }
    }

    /// Replaces the columns by the next point, or by the first point after the last one. Returns whether there was a
    /// next point.
    pub fn advance(&self, x: &mut [f64]) -> bool {
        let mut k = self.read(x);
        let mut after = 0;
        for i in (0..k.len()).rev() {
            if after > 0 && k[i] < self.levels[i] {
                k[i] += 1;
                self.fill(&mut k, i + 1, after - 1);
                self.write(&k, x);
                return true;
            }
            after += k[i];
        }
        self.write_first(x);
        false
    }

    /// Calls `visit` with the points that differ by an exchange: 1, 2, 4, … steps move from one k_i to another.
    pub fn exchanges(&self, x: &[f64], mut visit: impl FnMut(&[f64])) {
        let k = self.read(x);
        let mut y = x.to_vec();
        for i in 0..k.len() {
            for j in (0..k.len()).filter(|&j| j != i) {
                let most = k[i].min(self.levels[j] - k[j]);
                let mut step = 1;
                while step <= most {
                    y[self.columns[i]] = (k[i] - step) as f64 / self.levels[i] as f64;
                    y[self.columns[j]] = (k[j] + step) as f64 / self.levels[j] as f64;
                    visit(&y);
                    step *= 2;
                }
                y[self.columns[i]] = x[self.columns[i]];
                y[self.columns[j]] = x[self.columns[j]];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use std::collections::{BTreeSet, HashMap};

    /// All points, by nested loops.
    fn all(levels: &[u64], total: u64) -> Vec<Vec<u64>> {
        let mut points = vec![vec![]];
        for &level in levels {
            points = points
                .into_iter()
                .flat_map(|p: Vec<u64>| (0..=level).map(move |k| [p.clone(), vec![k]].concat()))
                .collect();
        }
        points.retain(|p| p.iter().sum::<u64>() == total);
        points
    }

    #[test]
    fn points_are_counted_visited_drawn_and_nearest() {
        for (levels, total) in [(vec![4, 2, 3], 5), (vec![6, 6, 6, 6], 6), (vec![1, 5], 6)] {
            let columns = (0..levels.len()).collect();
            let lattice = Lattice::new(columns, levels.clone(), total).unwrap();
            let expected = all(&levels, total);
            assert_eq!(lattice.n_points(), expected.len() as u64);
            let mut x = vec![0.0; levels.len()];
            lattice.write_first(&mut x);
            let mut visited = vec![lattice.read(&x)];
            while lattice.advance(&mut x) {
                visited.push(lattice.read(&x));
            }
            assert_eq!(visited, expected);
            let mut rng = Rng::seed_from_u64(3);
            let mut counts: HashMap<Vec<u64>, f64> = HashMap::new();
            let n_draws = 400 * expected.len();
            for _ in 0..n_draws {
                lattice.sample(&mut x, &mut rng);
                *counts.entry(lattice.read(&x)).or_default() += 1.0;
            }
            // A count is near 400, with a standard deviation of at most 20.
            assert!(expected.iter().all(|p| (counts[p] - 400.0).abs() < 110.0));
            for _ in 0..50 {
                let z: Vec<f64> = levels.iter().map(|_| rng.random()).collect();
                let distance = |k: &[u64]| -> f64 {
                    let steps = k.iter().zip(&z).zip(&levels);
                    steps
                        .map(|((k, z), l)| (*k as f64 - z * *l as f64).powi(2))
                        .sum()
                };
                let least = expected
                    .iter()
                    .map(|k| distance(k))
                    .fold(f64::INFINITY, f64::min);
                x.copy_from_slice(&z);
                lattice.snap(&mut x);
                let k = lattice.read(&x);
                assert!((distance(&k) - least).abs() < 1e-12);
                let mut near = BTreeSet::new();
                lattice.exchanges(&x, |y| {
                    near.insert(lattice.read(y));
                });
                let is_near = |p: &&Vec<u64>| {
                    let moved: Vec<u64> = p.iter().zip(&k).map(|(a, b)| a.abs_diff(*b)).collect();
                    moved.iter().filter(|m| **m > 0).count() == 2
                        && moved.iter().max().unwrap().is_power_of_two()
                };
                assert_eq!(near, expected.iter().filter(is_near).cloned().collect());
            }
        }
        assert_eq!(Lattice::new(vec![0, 1], vec![1, 1], 3), None);
    }
}
