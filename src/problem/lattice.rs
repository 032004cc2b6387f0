//! Discrete coordinates under constraints on sums: mixtures with a step, counts of nonzero values, and weighted sums of
//! integers.
//!
//! Notation: level k_i of part i has the weight w_ij(k_i) ≥ 0 in row j. A point satisfies low_j ≤ Σ_i w_ij(k_i) ≤ high_j
//! for every row j. The *state* before part i is high_j − Σ_{h<i} w_hj(k_h) for every row j, packed in one number. The
//! points are ordered lexicographically by their levels.

use std::ops::Range;

use rand::RngExt;

use super::Coordinate;
use super::band::Band;
use crate::random::Rng;

/// A coordinate, its columns, and the weights of its levels, level by level.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    pub coordinate: Coordinate,
    pub at: Range<usize>,
    pub weights: Vec<Vec<u64>>,
}

/// The points that satisfy the constraints, in columns of a box.
#[derive(Clone, Debug, PartialEq)]
pub struct Lattice {
    /// The columns of all parts.
    pub columns: Vec<usize>,
    parts: Vec<Part>,
    /// low_j and high_j.
    bounds: Vec<(u64, u64)>,
    /// The sum K of the levels, if the lattice consists of the points of ordered parts with this sum.
    total: Option<u64>,
    /// The number of ways in which parts i, i + 1, … can be completed, in row i and the column of a state.
    ways: Vec<Vec<f64>>,
}

impl Lattice {
    /// Creates a lattice from the bounds of every row, or returns None if it is empty.
    pub fn new(mut parts: Vec<Part>, bounds: Vec<(i64, i64)>) -> Option<Self> {
        let mut own = Vec::new();
        for (j, (mut low, mut high)) in bounds.into_iter().enumerate() {
            let mut most = 0;
            for part in &mut parts {
                let least = part.weights.iter().map(|w| w[j]).min()?;
                part.weights.iter_mut().for_each(|w| w[j] -= least);
                most += part.weights.iter().map(|w| w[j]).max()? as i64;
                (low, high) = (low.saturating_sub(least as i64), high - least as i64);
            }
            (low, high) = (low.max(0), high.min(most));
            if low > high {
                return None;
            }
            own.push((low as u64, high as u64));
        }
        let is_level = |part: &Part| {
            part.coordinate.is_ordered() && (0..).zip(&part.weights).all(|(k, w)| w[0] == k)
        };
        let total = match &own[..] {
            [(low, high)] if low == high && parts.iter().all(is_level) => Some(*high),
            _ => None,
        };
        let mut lattice = Self {
            columns: parts.iter().flat_map(|part| part.at.clone()).collect(),
            parts,
            bounds: own,
            total,
            ways: Vec::new(),
        };
        lattice.ways = match total {
            Some(total) => lattice.ways_to(total as usize),
            None => lattice.ways_with(|_, _| true),
        };
        let can_hold = total.is_some() || lattice.ways[0][lattice.whole()] > 0.0;
        can_hold.then_some(lattice)
    }

    /// The number of entries of the table that counts the points, times the number of levels of a part.
    pub fn size(parts: &[Part], bounds: &[(i64, i64)]) -> f64 {
        let states: f64 = bounds
            .iter()
            .map(|bound| bound.1.max(0) as f64 + 1.0)
            .product();
        states
            * parts
                .iter()
                .map(|part| part.weights.len() as f64)
                .sum::<f64>()
    }

    /// The table `ways` for levels with the sum `total`.
    fn ways_to(&self, total: usize) -> Vec<Vec<f64>> {
        let n_sums = total + 1;
        let mut ways = vec![vec![0.0; n_sums]; self.parts.len() + 1];
        ways[self.parts.len()][0] = 1.0;
        for (i, part) in self.parts.iter().enumerate().rev() {
            // The sum over k ≤ L slides along the row below.
            let mut window = 0.0;
            for s in 0..n_sums {
                window += ways[i + 1][s];
                if s >= part.weights.len() {
                    window -= ways[i + 1][s - part.weights.len()];
                }
                ways[i][s] = window;
            }
        }
        ways
    }

    /// The table `ways`, in which part i has the levels for which `is_free(i, level)`.
    fn ways_with(&self, is_free: impl Fn(usize, usize) -> bool) -> Vec<Vec<f64>> {
        let n = self.parts.len();
        let mut ways = vec![vec![0.0; self.whole() + 1]; n + 1];
        for (state, ways) in ways[n].iter_mut().enumerate() {
            *ways = f64::from(u8::from(self.is_end(state)));
        }
        for i in (0..n).rev() {
            let levels: Vec<usize> = (0..self.parts[i].weights.len())
                .filter(|&k| is_free(i, k))
                .collect();
            for state in 0..=self.whole() {
                let after = levels.iter().filter_map(|&k| self.after(state, i, k));
                ways[i][state] = after.map(|next| ways[i + 1][next]).sum();
            }
        }
        ways
    }

    /// The state before the first part, which is the largest state.
    fn whole(&self) -> usize {
        let sizes = self.bounds.iter().map(|bound| bound.1 as usize + 1);
        sizes.product::<usize>() - 1
    }

    /// The state after level k of part i, or None if a sum exceeds its bound.
    fn after(&self, state: usize, i: usize, k: usize) -> Option<usize> {
        let (mut next, mut stride) = (state, 1);
        for ((_, high), &weight) in self.bounds.iter().zip(&self.parts[i].weights[k]) {
            let size = *high as usize + 1;
            if weight > (state / stride % size) as u64 {
                return None;
            }
            next -= weight as usize * stride;
            stride *= size;
        }
        Some(next)
    }

    /// Whether a state after the last part satisfies the lower bounds.
    fn is_end(&self, mut state: usize) -> bool {
        self.bounds.iter().all(|(low, high)| {
            let left = state % (*high as usize + 1);
            state /= *high as usize + 1;
            left as u64 <= high - low
        })
    }

    /// The parts, and the bounds of every row.
    pub fn parts(&self) -> (&[Part], impl Iterator<Item = (i64, i64)>) {
        let bounds = self.bounds.iter();
        (
            &self.parts,
            bounds.map(|(low, high)| (*low as i64, *high as i64)),
        )
    }

    /// The number of points (saturating).
    pub fn n_points(&self) -> u64 {
        self.ways[0][self.whole()] as u64
    }

    /// Whether the number of points is finite as a float, as uniform draws require.
    pub fn is_counted(&self) -> bool {
        self.ways[0][self.whole()].is_finite()
    }

    /// Whether points between the levels of the parts are searched.
    pub fn can_be_relaxed(&self) -> bool {
        self.total.is_some()
    }

    /// L_i, the last level of part i.
    fn last(&self, i: usize) -> usize {
        self.parts[i].weights.len() - 1
    }

    /// The coefficients and the right side of Σ L_i x_i = K, if the sum of the levels is K.
    pub fn row(&self, width: usize) -> Option<(Vec<f64>, f64)> {
        let mut a = vec![0.0; width];
        for (i, part) in self.parts.iter().enumerate() {
            a[part.at.start] = self.last(i) as f64;
        }
        self.total.map(|total| (a, total as f64))
    }

    /// Replaces the columns by the nearest point of Σ L_i x_i = K in the cube, if the sum of the levels is K.
    pub fn snap_relaxed(&self, x: &mut [f64]) {
        let Some((a, total)) = self.row(x.len()) else {
            return;
        };
        let levels: Vec<f64> = self.columns.iter().map(|&column| a[column]).collect();
        let size = levels.iter().map(|l| l * l).sum::<f64>().sqrt();
        let total = total / size;
        let band = Band {
            coefficients: levels.iter().map(|level| level / size).collect(),
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

    fn read(&self, x: &[f64]) -> Vec<usize> {
        let parts = self.parts.iter();
        parts
            .map(|part| part.coordinate.index(&x[part.at.clone()]) as usize)
            .collect()
    }

    fn write(&self, k: &[usize], x: &mut [f64]) {
        for (part, &k) in self.parts.iter().zip(k) {
            part.coordinate.write(k as u64, &mut x[part.at.clone()]);
        }
    }

    /// Draws a uniform point.
    pub fn sample(&self, x: &mut [f64], rng: &mut Rng) {
        let k = self.draw(&self.ways, |_, _| true, rng);
        self.write(&k, x);
    }

    /// Redraws random parts of a point: part i with probability `share`. The new levels are uniform among those that
    /// satisfy the constraints.
    pub fn redraw(&self, share: f64, x: &mut [f64], rng: &mut Rng) {
        let before = self.read(x);
        let moves: Vec<bool> = before.iter().map(|_| rng.random::<f64>() < share).collect();
        let is_free = |i: usize, k: usize| moves[i] || k == before[i];
        let k = self.draw(&self.ways_with(is_free), is_free, rng);
        self.write(&k, x);
    }

    fn draw(
        &self,
        ways: &[Vec<f64>],
        is_free: impl Fn(usize, usize) -> bool,
        rng: &mut Rng,
    ) -> Vec<usize> {
        let mut state = self.whole();
        let mut k = vec![0; self.parts.len()];
        for (i, k) in k.iter_mut().enumerate() {
            let mut share = rng.random::<f64>() * ways[i][state];
            let mut chosen = (0, state);
            for level in (0..=self.last(i)).filter(|&level| is_free(i, level)) {
                // Weights of a sum increase with the level.
                let Some(next) = self.after(state, i, level) else {
                    if self.total.is_some() {
                        break;
                    }
                    continue;
                };
                if ways[i + 1][next] > 0.0 {
                    chosen = (level, next);
                    share -= ways[i + 1][next];
                    if share < 0.0 {
                        break;
                    }
                }
            }
            (*k, state) = chosen;
        }
        k
    }

    /// Replaces the columns by the nearest point.
    pub fn snap(&self, x: &mut [f64]) {
        let parts = self.parts.iter().enumerate();
        let rounded = parts.map(|(i, part)| {
            let costs = (0..=self.last(i)).map(|k| (k, self.cost(i, k, x)));
            match part.coordinate.is_ordered() {
                true => part.coordinate.index(&x[part.at.clone()]) as usize,
                false => costs
                    .min_by(|a, b| a.1.total_cmp(&b.1))
                    .map_or(0, |(k, _)| k),
            }
        });
        let mut k: Vec<usize> = rounded.collect();
        if let Some(total) = self.total {
            self.restore(&mut k, total, x);
        } else if !self.holds(&k) {
            k = self.cheapest(x);
        }
        self.write(&k, x);
    }

    /// The squared distance of `x` from level k of part i, in the columns of the part.
    fn cost(&self, i: usize, k: usize, x: &[f64]) -> f64 {
        let Part { coordinate, at, .. } = &self.parts[i];
        let difference = |u: f64, v: f64| {
            if u.is_nan() {
                0.5 - v
            } else {
                u.clamp(0.0, 1.0) - v
            }
        };
        if coordinate.is_ordered() {
            return difference(x[at.start], coordinate.position(k as u64)).powi(2);
        }
        let columns = x[at.clone()].iter().enumerate();
        let squares = columns.map(|(m, &u)| difference(u, f64::from(u8::from(m == k))).powi(2));
        squares.sum()
    }

    /// Restores the sum of rounded levels by steps of ±1 with the least increase of the squared distance, in units of
    /// levels; for a sum of convex functions this is the minimum.
    fn restore(&self, k: &mut [usize], total: u64, x: &[f64]) {
        let target = |i: usize| {
            let u = x[self.columns[i]];
            let u = if u.is_nan() { 0.5 } else { u.clamp(0.0, 1.0) };
            u * self.last(i) as f64
        };
        let target: Vec<f64> = (0..k.len()).map(target).collect();
        loop {
            let sum = k.iter().sum::<usize>() as u64;
            let up = match sum.cmp(&total) {
                std::cmp::Ordering::Equal => break,
                order => order == std::cmp::Ordering::Less,
            };
            let can_move = |&i: &usize| if up { k[i] < self.last(i) } else { k[i] > 0 };
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
    }

    /// The levels of the point nearest to `x`, by dynamic programming over the states.
    fn cheapest(&self, x: &[f64]) -> Vec<usize> {
        let n = self.parts.len();
        // The least cost of parts i, i + 1, … from each state.
        let mut least = vec![vec![f64::INFINITY; self.whole() + 1]; n + 1];
        for (state, least) in least[n].iter_mut().enumerate() {
            *least = if self.is_end(state) {
                0.0
            } else {
                f64::INFINITY
            };
        }
        let costs =
            |i: usize| -> Vec<f64> { (0..=self.last(i)).map(|k| self.cost(i, k, x)).collect() };
        let best = |least: &[f64], i: usize, costs: &[f64], state: usize| {
            let after = (0..costs.len()).filter_map(|k| Some((k, self.after(state, i, k)?)));
            let after = after.map(|(k, next)| (costs[k] + least[next], k, next));
            after.min_by(|a, b| a.0.total_cmp(&b.0))
        };
        for i in (0..n).rev() {
            let costs = costs(i);
            for state in 0..=self.whole() {
                let found = best(&least[i + 1], i, &costs, state);
                least[i][state] = found.map_or(f64::INFINITY, |found| found.0);
            }
        }
        let mut state = self.whole();
        let level = |i: usize| {
            let found = best(&least[i + 1], i, &costs(i), state);
            let (_, k, next) = found.unwrap_or((0.0, 0, state));
            state = next;
            k
        };
        (0..n).map(level).collect()
    }

    /// The sums of all rows.
    fn sums(&self, k: &[usize]) -> Vec<u64> {
        let parts = || self.parts.iter().zip(k);
        let rows = 0..self.bounds.len();
        rows.map(|j| parts().map(|(part, &k)| part.weights[k][j]).sum())
            .collect()
    }

    fn holds(&self, k: &[usize]) -> bool {
        let sums = self.sums(k);
        let mut rows = sums.iter().zip(&self.bounds);
        rows.all(|(sum, (low, high))| low <= sum && sum <= high)
    }

    /// Writes the first point.
    pub fn write_first(&self, x: &mut [f64]) {
        let mut k = vec![0; self.parts.len()];
        self.fill(&mut k, 0, self.whole());
        self.write(&k, x);
    }

    /// Writes the first levels from part `from` on that satisfy the constraints.
    fn fill(&self, k: &mut [usize], from: usize, mut state: usize) {
        for i in from..k.len() {
            let mut after = (0..=self.last(i)).filter_map(|k| Some((k, self.after(state, i, k)?)));
            if let Some(found) = after.find(|(_, next)| self.ways[i + 1][*next] > 0.0) {
                (k[i], state) = found;
            }
        }
    }

    /// Replaces the columns by the next point, or by the first point after the last one. Returns whether there was a
    /// next point.
    pub fn advance(&self, x: &mut [f64]) -> bool {
        let mut k = self.read(x);
        let mut states = vec![self.whole()];
        for (i, &k) in k.iter().enumerate() {
            states.push(self.after(states[i], i, k).unwrap_or(0));
        }
        for i in (0..k.len()).rev() {
            let mut after =
                (k[i] + 1..=self.last(i)).filter_map(|k| Some((k, self.after(states[i], i, k)?)));
            if let Some((level, next)) = after.find(|(_, next)| self.ways[i + 1][*next] > 0.0) {
                k[i] = level;
                self.fill(&mut k, i + 1, next);
                self.write(&k, x);
                return true;
            }
        }
        self.write_first(x);
        false
    }

    /// The other levels of part i that are tried from level k: steps of ±1, ±2, ±4, … and the level with the least
    /// weight, or all choices.
    fn other_levels(&self, i: usize, k: usize) -> Vec<usize> {
        let n = self.parts[i].weights.len();
        if !self.parts[i].coordinate.is_ordered() {
            return (0..n).filter(|&level| level != k).collect();
        }
        let steps = (0..usize::BITS)
            .map(|bit| 1 << bit)
            .take_while(|&step| step < n);
        let near = steps.flat_map(|step: usize| [k.checked_sub(step), Some(k + step)]);
        let mut near: Vec<usize> = near.flatten().filter(|&level| level < n).collect();
        let least = (0..n).min_by_key(|&level| self.parts[i].weights[level].iter().sum::<u64>());
        near.extend(least.filter(|level| *level != k && !near.contains(level)));
        near
    }

    /// Calls `visit` with the points that differ in one part, and with the points that differ by an exchange: part j
    /// gets a level that it cannot have alone, and part i makes room for it.
    pub fn exchanges(&self, x: &[f64], mut visit: impl FnMut(&[f64])) {
        let k = self.read(x);
        let sums = self.sums(&k);
        // Whether the sums keep their upper bounds, and the lower bounds if `both`, after the levels of parts change.
        let keeps = |moved: &[(usize, usize)], both: bool| {
            (0..sums.len()).all(|j| {
                let changes = moved.iter().map(|&(i, level)| {
                    let weights = &self.parts[i].weights;
                    weights[level][j] as i64 - weights[k[i]][j] as i64
                });
                let sum = sums[j] as i64 + changes.sum::<i64>();
                let (low, high) = self.bounds[j];
                sum <= high as i64 && (!both || sum >= low as i64)
            })
        };
        let mut y = x.to_vec();
        let mut move_to = |moved: &[(usize, usize)]| {
            for &(i, level) in moved {
                let Part { coordinate, at, .. } = &self.parts[i];
                coordinate.write(level as u64, &mut y[at.clone()]);
            }
            visit(&y);
            for &(i, _) in moved {
                let at = self.parts[i].at.clone();
                y[at.clone()].copy_from_slice(&x[at]);
            }
        };
        let (mut rooms, mut others) = (vec![Vec::new(); k.len()], vec![Vec::new(); k.len()]);
        for i in 0..k.len() {
            for level in self.other_levels(i, k[i]) {
                match keeps(&[(i, level)], true) {
                    true => move_to(&[(i, level)]),
                    false => others[i].push(level),
                }
                if keeps(&[(i, level)], false) {
                    rooms[i].push(level);
                }
            }
        }
        for (i, rooms) in rooms.iter().enumerate() {
            for (j, others) in others.iter().enumerate().filter(|(j, _)| *j != i) {
                for moved in rooms
                    .iter()
                    .flat_map(|&room| others.iter().map(move |&k| [(i, room), (j, k)]))
                {
                    if keeps(&moved, true) {
                        move_to(&moved);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use std::collections::{BTreeSet, HashMap};

    /// Parts with the levels 0, …, L_i and the total K.
    fn mixture(levels: &[usize], total: i64) -> Option<Lattice> {
        let part = |(i, &level): (usize, &usize)| Part {
            coordinate: Coordinate::Integer {
                low: 0,
                high: level as i64,
                log: false,
            },
            at: i..i + 1,
            weights: (0..=level as u64).map(|k| vec![k]).collect(),
        };
        Lattice::new(
            levels.iter().enumerate().map(part).collect(),
            vec![(total, total)],
        )
    }

    /// All points of a mixture, by nested loops.
    fn all(levels: &[usize], total: i64) -> Vec<Vec<usize>> {
        let mut points = vec![vec![]];
        for &level in levels {
            points = points
                .into_iter()
                .flat_map(|p: Vec<usize>| (0..=level).map(move |k| [p.clone(), vec![k]].concat()))
                .collect();
        }
        points.retain(|p| p.iter().sum::<usize>() == total as usize);
        points
    }

    #[test]
    fn points_are_counted_visited_drawn_and_nearest() {
        for (levels, total) in [(vec![4, 2, 3], 5), (vec![6, 6, 6, 6], 6), (vec![1, 5], 6)] {
            let lattice = mixture(&levels, total).unwrap();
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
            let mut counts: HashMap<Vec<usize>, f64> = HashMap::new();
            let n_draws = 400 * expected.len();
            for _ in 0..n_draws {
                lattice.sample(&mut x, &mut rng);
                *counts.entry(lattice.read(&x)).or_default() += 1.0;
            }
            // A count is near 400, with a standard deviation of at most 20.
            assert!(expected.iter().all(|p| (counts[p] - 400.0).abs() < 110.0));
            for _ in 0..50 {
                let z: Vec<f64> = levels.iter().map(|_| rng.random()).collect();
                let distance = |k: &[usize]| -> f64 {
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
                let is_near = |p: &&Vec<usize>| {
                    let moved: Vec<usize> = p.iter().zip(&k).map(|(a, b)| a.abs_diff(*b)).collect();
                    moved.iter().filter(|m| **m > 0).count() == 2
                        && moved.iter().max().unwrap().is_power_of_two()
                };
                assert_eq!(near, expected.iter().filter(is_near).cloned().collect());
            }
        }
        assert_eq!(mixture(&[1, 1], 3), None);
    }

    /// A count of nonzero levels, a weighted sum, or both, on integers and categories with random weights.
    fn random_lattice(rng: &mut Rng) -> (Vec<Part>, Vec<(i64, i64)>) {
        let mut width = 0;
        let mut parts = Vec::new();
        for _ in 0..rng.random_range(1..5) {
            let n = rng.random_range(1..5_usize);
            let coordinate = match rng.random() {
                true => Coordinate::Categorical { n },
                false => Coordinate::Integer {
                    low: 0,
                    high: n as i64 - 1,
                    log: false,
                },
            };
            let zero = rng.random_range(0..n);
            let slope = rng.random_range(0..3_u64);
            let weight = |k: usize| vec![u64::from(k != zero), 1 + slope * k as u64];
            let at = width..width + coordinate.width();
            width = at.end;
            let weights = (0..n).map(weight).collect();
            parts.push(Part {
                coordinate,
                at,
                weights,
            });
        }
        let bound = |rng: &mut Rng| {
            let low = rng.random_range(-3..3);
            (low, low + rng.random_range(1..9))
        };
        (parts, vec![bound(rng), bound(rng)])
    }

    #[test]
    fn points_of_several_rows_are_counted_visited_drawn_and_nearest() {
        let mut rng = Rng::seed_from_u64(1);
        let (mut n_empty, mut n_points) = (0, 0);
        for _ in 0..200 {
            let (parts, bounds) = random_lattice(&mut rng);
            let holds = |k: &[usize]| {
                (0..2).all(|j| {
                    let sum: u64 = parts
                        .iter()
                        .zip(k)
                        .map(|(part, &k)| part.weights[k][j])
                        .sum();
                    (bounds[j].0..=bounds[j].1).contains(&(sum as i64))
                })
            };
            let levels = parts.iter().map(|part| 0..part.weights.len());
            let mut expected: Vec<Vec<usize>> = vec![vec![]];
            for own in levels {
                let longer = |k: Vec<usize>| {
                    own.clone()
                        .map(move |level| [k.clone(), vec![level]].concat())
                };
                expected = expected.into_iter().flat_map(longer).collect();
            }
            expected.retain(|k| holds(k));
            let Some(lattice) = Lattice::new(parts.clone(), bounds.clone()) else {
                assert!(expected.is_empty());
                n_empty += 1;
                continue;
            };
            n_points += expected.len();
            assert_eq!(lattice.n_points(), expected.len() as u64);
            let mut x = vec![0.0; lattice.columns.len()];
            lattice.write_first(&mut x);
            let mut visited = vec![lattice.read(&x)];
            while lattice.advance(&mut x) {
                visited.push(lattice.read(&x));
            }
            assert_eq!(visited, expected);
            let mut counts: HashMap<Vec<usize>, f64> = HashMap::new();
            for _ in 0..100 * expected.len() {
                lattice.sample(&mut x, &mut rng);
                *counts.entry(lattice.read(&x)).or_default() += 1.0;
            }
            // A count is near 100, with a standard deviation of at most 10.
            assert!(expected.iter().all(|k| (counts[k] - 100.0).abs() < 55.0));
            let columns = |k: &[usize]| {
                let mut x = vec![0.0; lattice.columns.len()];
                lattice.write(k, &mut x);
                x
            };
            for _ in 0..10 {
                let z: Vec<f64> = x.iter().map(|_| rng.random()).collect();
                let distance =
                    |x: &[f64]| x.iter().zip(&z).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
                let distances = expected.iter().map(|k| distance(&columns(k)));
                let least = distances.fold(f64::INFINITY, f64::min);
                x.copy_from_slice(&z);
                lattice.snap(&mut x);
                assert!(holds(&lattice.read(&x)) && (distance(&x) - least).abs() < 1e-12);
                let k = lattice.read(&x);
                let mut near = BTreeSet::new();
                lattice.exchanges(&x, |y| {
                    near.insert(lattice.read(y));
                });
                assert!(near.iter().all(|other| holds(other) && *other != k));
                // Every point that differs in one category is near.
                let is_near = |other: &&Vec<usize>| {
                    let mut moved = (0..k.len()).filter(|&i| other[i] != k[i]);
                    let first = moved.next();
                    moved.next().is_none()
                        && first.is_some_and(|i| !parts[i].coordinate.is_ordered())
                };
                assert!(
                    expected
                        .iter()
                        .filter(is_near)
                        .all(|other| near.contains(other))
                );
                lattice.redraw(0.5, &mut x, &mut rng);
                assert!(holds(&lattice.read(&x)));
            }
        }
        assert!(n_empty > 20 && n_points > 500, "{n_empty} {n_points}");
    }
}
