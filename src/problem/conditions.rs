//! Conditions in a box. The conditions of a coordinate determine whether the coordinate is active.
//!
//! A coordinate with conditions is a *child*; the coordinates in its conditions are its *parents*. The child is active
//! if all of its conditions hold. A condition holds if the parent is active and the index of the parent is among the
//! levels of the condition.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{Cell, Coordinate};

/// In a box with conditions, the combinations of the discrete coordinates are counted up to this number. No search
/// enumerates more members.
const MAX_COUNT: u64 = 100_000;

/// A condition: the number of the parent, and the indices of the parent at which the condition holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition(pub usize, pub Vec<u64>);

/// The conditions of a box.
#[derive(Clone, Debug, PartialEq)]
pub struct Conditions {
    /// The conditions of each coordinate, with their levels in ascending order.
    pub when: Vec<Vec<Condition>>,
    pub is_parent: Vec<bool>,
    /// The numbers of all coordinates, ordered so that parents come before their children.
    pub order: Vec<usize>,
}

impl Conditions {
    /// Creates the conditions of a box. `when` has one list per coordinate. If the conditions form a circle, the error
    /// contains the coordinates of the circle.
    pub fn new(mut when: Vec<Vec<Condition>>) -> Result<Self, Vec<usize>> {
        let mut is_parent = vec![false; when.len()];
        for Condition(parent, levels) in when.iter_mut().flatten() {
            levels.sort_unstable();
            levels.dedup();
            is_parent[*parent] = true;
        }
        Ok(Self {
            order: order(&when)?,
            when,
            is_parent,
        })
    }

    /// Whether all coordinates are always active.
    pub fn is_empty(&self) -> bool {
        self.when.iter().all(Vec::is_empty)
    }

    /// Whether each coordinate is active. Only the indices of active parents are read.
    pub fn active(&self, indices: &[u64]) -> Vec<bool> {
        let mut active = vec![false; self.when.len()];
        for &i in &self.order {
            active[i] = self.holds(i, &active, indices);
        }
        active
    }

    /// Whether coordinate i is active, given `active` and `indices` for its parents.
    fn holds(&self, i: usize, active: &[bool], indices: &[u64]) -> bool {
        self.when[i].iter().all(|Condition(parent, levels)| {
            active[*parent] && levels.binary_search(&indices[*parent]).is_ok()
        })
    }

    /// Whether coordinate i is active at all points in these cells.
    pub fn hold_throughout(&self, i: usize, cells: &[Cell]) -> bool {
        self.when[i].iter().all(|Condition(parent, levels)| {
            let Cell::Range(first, last) = cells[*parent] else {
                return false;
            };
            // The levels are sorted and unique, so all levels from `first` to `last` are present if and only if `last`
            // is (last − first) positions after `first`.
            let at = levels.binary_search(&first).unwrap_or(levels.len());
            levels.get(at + (last - first) as usize) == Some(&last)
                && self.hold_throughout(*parent, cells)
        })
    }

    /// Whether coordinate i is active at any member. For each ancestor, the levels that the conditions of i and of the
    /// other ancestors allow must overlap.
    pub fn can_hold(&self, i: usize) -> bool {
        let mut allowed: HashMap<usize, Vec<u64>> = HashMap::new();
        let (mut seen, mut children) = (HashSet::from([i]), vec![i]);
        while let Some(child) = children.pop() {
            for Condition(parent, levels) in &self.when[child] {
                let own = allowed.entry(*parent).or_insert_with(|| levels.clone());
                own.retain(|level| levels.binary_search(level).is_ok());
                if own.is_empty() {
                    return false;
                }
                if seen.insert(*parent) {
                    children.push(*parent);
                }
            }
        }
        true
    }

    /// The number of combinations of the active discrete coordinates. In a box with conditions, `u64::MAX` is
    /// returned if the sum over the levels of a parent exceeds [`MAX_COUNT`].
    pub(super) fn combinations(&self, coordinates: &[Coordinate]) -> u64 {
        let n = coordinates.len();
        self.count(
            coordinates,
            &self.order,
            &mut vec![false; n],
            &mut vec![0; n],
        )
    }

    /// The number of combinations of the coordinates in `order`, given the states of all earlier coordinates.
    fn count(
        &self,
        coordinates: &[Coordinate],
        order: &[usize],
        active: &mut [bool],
        indices: &mut [u64],
    ) -> u64 {
        let mut factor: u64 = 1;
        for (place, &i) in order.iter().enumerate() {
            active[i] = self.holds(i, active, indices);
            if !active[i] {
                continue;
            }
            let levels = coordinates[i].levels().unwrap_or(1);
            if !self.is_parent[i] {
                factor = factor.saturating_mul(levels);
                continue;
            }
            let mut sum: u64 = 0;
            for level in 0..levels {
                indices[i] = level;
                let rest = self.count(coordinates, &order[place + 1..], active, indices);
                sum = sum.saturating_add(rest);
                if sum > MAX_COUNT {
                    return u64::MAX;
                }
            }
            return factor.saturating_mul(sum);
        }
        factor
    }
}

/// The numbers of all coordinates: parents before their children, and otherwise smaller numbers first. If the
/// conditions form a circle, the error contains the coordinates of the circle.
fn order(when: &[Vec<Condition>]) -> Result<Vec<usize>, Vec<usize>> {
    let mut order = Vec::with_capacity(when.len());
    let mut n_waited_for: Vec<usize> = when.iter().map(Vec::len).collect();
    let mut children = vec![Vec::new(); when.len()];
    for (i, own) in when.iter().enumerate() {
        for Condition(parent, _) in own {
            children[*parent].push(i);
        }
    }
    let free = (0..when.len()).filter(|&i| n_waited_for[i] == 0);
    let mut ready: BTreeSet<usize> = free.collect();
    while let Some(i) = ready.pop_first() {
        order.push(i);
        for &child in &children[i] {
            n_waited_for[child] -= 1;
            if n_waited_for[child] == 0 {
                ready.insert(child);
            }
        }
    }
    // Each waiting coordinate has a parent that waits, too, so following the waiting parents leads to a circle.
    let waits = |&i: &usize| n_waited_for[i] > 0;
    let mut path: Vec<usize> = (0..when.len()).find(waits).into_iter().collect();
    while let Some(&last) = path.last() {
        let mut parents = when[last].iter().map(|condition| condition.0);
        let next = parents.find(waits).unwrap_or(last);
        if let Some(start) = path.iter().position(|&i| i == next) {
            return Err(path.split_off(start));
        }
        path.push(next);
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::super::domain::testing::integer;
    use super::super::{Domain, Product, columns, indices};
    use super::*;
    use crate::random::Rng;
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};

    /// A box of coordinates that have few values, with random conditions. Parents may come before or after their children.
    fn random_box(rng: &mut Rng) -> Domain {
        let d = rng.random_range(2..7usize);
        let mut coordinates = Vec::new();
        let mut when: Vec<Vec<Condition>> = Vec::new();
        for i in 0..d {
            let levels = rng.random_range(1..4i64);
            coordinates.push(match rng.random_range(0..4) {
                0 if i > 0 => Coordinate::Continuous,
                0 | 1 => integer(2, 1 + levels, rng.random()),
                _ => Coordinate::Categorical { n: levels as usize },
            });
            let mut own: Vec<Condition> = Vec::new();
            for _ in 0..rng.random_range(0..3) {
                let parent = rng.random_range(0..d);
                let Some(n) = coordinates.get(parent).and_then(Coordinate::levels) else {
                    continue;
                };
                if parent < i && own.iter().all(|condition| condition.0 != parent) {
                    let drawn = (0..n).filter(|_| rng.random());
                    let mut levels: Vec<u64> = drawn.collect();
                    levels.push(rng.random_range(0..n));
                    own.push(Condition(parent, levels));
                }
            }
            when.push(own);
        }
        if rng.random() {
            coordinates.reverse();
            when.reverse();
            for condition in when.iter_mut().flatten() {
                condition.0 = d - 1 - condition.0;
            }
        }
        Domain::conditional_box(coordinates, when).unwrap()
    }

    fn product(domain: &Domain) -> &Product {
        match domain {
            Domain::Box(product) => product,
            Domain::Candidates(_) => unreachable!(),
        }
    }

    /// The members for all combinations of discrete values.
    fn members(domain: &Domain) -> HashSet<Vec<u64>> {
        let product = product(domain);
        let levels = product.iter().map(|c| c.levels().unwrap_or(1));
        let n_flat: u64 = levels.product();
        let rows = (0..n_flat).map(|number| {
            let (mut rest, mut x) = (number, vec![0.0; domain.width()]);
            for (coordinate, at) in columns(product) {
                let levels = coordinate.levels().unwrap_or(1);
                coordinate.write(rest % levels, &mut x[at]);
                rest /= levels;
            }
            domain.snap(&mut x);
            indices(product, &x)
        });
        rows.collect()
    }

    proptest! {
        #[test]
        fn combinations_are_counted_and_enumerated_once(seed: u64) {
            let domain = random_box(&mut Rng::seed_from_u64(seed));
            let expected = members(&domain);
            prop_assert_eq!(domain.combinations(), expected.len() as u64);
            let mut x = domain.sample_uniform(&mut Rng::seed_from_u64(seed)).0;
            let (mut seen, mut has_continuous) = (HashSet::new(), false);
            for _ in 0..expected.len() {
                prop_assert!(domain.contains(&x));
                has_continuous |= product(&domain).has_active_continuous(&x);
                seen.insert(indices(product(&domain), &x));
                product(&domain).next_combination(&mut x);
            }
            prop_assert_eq!(seen, expected);
            prop_assert_eq!(domain.is_finite(), !has_continuous);
        }

        #[test]
        fn points_that_differ_only_in_inactive_columns_are_the_same_row(seed: u64) {
            let mut rng = Rng::seed_from_u64(seed);
            let domain = random_box(&mut rng);
            let (x, _) = domain.sample_uniform(&mut rng);
            let active = product(&domain).active(&x);
            let mut y = x.clone();
            for (i, (_, at)) in columns(product(&domain)).enumerate() {
                if active.as_ref().is_some_and(|active| !active[i]) {
                    y[at].iter_mut().for_each(|y| *y = rng.random());
                }
            }
            domain.snap(&mut y);
            prop_assert_eq!(&x, &y);
            for row in domain.quasi_random(9, &mut rng).outer_iter() {
                let mut row = row.to_vec();
                let before = row.clone();
                prop_assert!(domain.contains(&row));
                domain.snap(&mut row);
                prop_assert_eq!(row, before);
            }
        }
    }

    #[test]
    fn counts_are_exact_up_to_the_largest_count() {
        let mut coordinates = Vec::new();
        let mut when = Vec::new();
        for i in 0..40 {
            coordinates.extend([Coordinate::Categorical { n: 2 }, integer(1, 5, false)]);
            when.extend([vec![], vec![Condition(2 * i, vec![1])]]);
        }
        let count = |n: usize| {
            let (coordinates, when) = (coordinates[..2 * n].to_vec(), when[..2 * n].to_vec());
            Domain::conditional_box(coordinates, when)
                .unwrap()
                .combinations()
        };
        assert_eq!((count(1), count(6)), (6, 6u64.pow(6)));
        assert_eq!((count(7), count(40)), (u64::MAX, u64::MAX));
        // One child with 30 parents has 2^30 + 4 combinations.
        let mut coordinates = vec![Coordinate::Categorical { n: 2 }; 30];
        coordinates.push(integer(1, 5, false));
        let mut when = vec![vec![]; 30];
        when.push((0..30).map(|i| Condition(i, vec![1])).collect());
        let domain = Domain::conditional_box(coordinates, when).unwrap();
        assert_eq!(domain.combinations(), u64::MAX);
    }
}
