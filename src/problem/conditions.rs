//! Conditions of the coordinates of a box. A condition depends on the index of another coordinate. The conditions of a
//! coordinate determine whether this coordinate is active.
//!
//! A coordinate with conditions is a *child*; the coordinates in its conditions are its *parents*. The child is active
//! if all of its conditions hold. A condition holds if the parent is active and the index of the parent is among the
//! levels of the condition.

use std::collections::{BTreeMap, BTreeSet};

use super::{Cell, Coordinate};

/// The largest number of combinations of parents that are enumerated to count members. With more combinations, the
/// count is `u64::MAX`.
const MAX_VISITS: usize = 1 << 16;

/// The number of a parent, and the indices of the parent at which the condition holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition(pub usize, pub Vec<u64>);

/// The conditions of a box.
#[derive(Clone, Debug, PartialEq)]
pub struct Conditions {
    /// The conditions of each coordinate, with their levels in ascending order.
    pub when: Vec<Vec<Condition>>,
    pub is_parent: Vec<bool>,
    /// The numbers of the coordinates, with parents before their children.
    pub order: Vec<usize>,
}

impl Conditions {
    /// Creates the conditions of a box. `when` has one list per coordinate. If the conditions form a circle, the error has
    /// the coordinates of the circle.
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

    /// Whether coordinate i is active for every combination of indices of its parents in the cells.
    pub fn hold_throughout(&self, i: usize, cells: &[Cell]) -> bool {
        self.when[i].iter().all(|Condition(parent, levels)| {
            let Cell::Range(first, last) = cells[*parent] else {
                return false;
            };
            // The levels are sorted and unique. They contain the whole range first..=last if and only if the level
            // (last − first) places after `first` is `last`.
            let at = levels.binary_search(&first).unwrap_or(levels.len());
            levels.get(at + (last - first) as usize) == Some(&last)
                && self.hold_throughout(*parent, cells)
        })
    }

    /// The number of combinations of the active discrete coordinates. The number is exact, or `u64::MAX` if there are
    /// too many combinations to count.
    pub(super) fn combinations(&self, coordinates: &[Coordinate]) -> u64 {
        let classes = (0..coordinates.len()).map(|i| match self.is_parent[i] {
            true => self.classes(i, coordinates[i].levels().unwrap_or(1)),
            false => Vec::new(),
        });
        let mut count = Count {
            coordinates,
            conditions: self,
            classes: classes.collect(),
            active: vec![false; coordinates.len()],
            indices: vec![0; coordinates.len()],
            n_visits: 0,
        };
        // Coordinates that are not connected by conditions are independent.
        let components = self.components();
        components.iter().fold(1, |product: u64, component| {
            count.n_visits = 0;
            product.saturating_mul(count.members(component))
        })
    }

    /// Returns one level and the size of each class of levels of a parent. The same conditions hold at all levels of a
    /// class.
    fn classes(&self, parent: usize, n_levels: u64) -> Vec<(u64, u64)> {
        let conditions = self.when.iter().flatten();
        let lists: Vec<&Vec<u64>> = conditions
            .filter(|condition| condition.0 == parent)
            .map(|condition| &condition.1)
            .collect();
        let named: BTreeSet<u64> = lists.iter().flat_map(|list| list.iter().copied()).collect();
        let mut classes: BTreeMap<Vec<bool>, (u64, u64)> = BTreeMap::new();
        for &level in &named {
            let held = lists.iter().map(|list| list.binary_search(&level).is_ok());
            classes.entry(held.collect()).or_insert((level, 0)).1 += 1;
        }
        let mut classes: Vec<(u64, u64)> = classes.into_values().collect();
        let n_others = n_levels.saturating_sub(named.len() as u64);
        if let (true, Some(other)) = (n_others > 0, (0..n_levels).find(|i| !named.contains(i))) {
            classes.push((other, n_others));
        }
        classes
    }

    /// The connected components of the conditions, each in the order of `self.order`.
    fn components(&self) -> Vec<Vec<usize>> {
        // Each coordinate links to a coordinate of its component with a smaller number. The coordinate with the
        // smallest number links to itself.
        let mut link: Vec<usize> = (0..self.when.len()).collect();
        fn smallest(link: &[usize], mut i: usize) -> usize {
            while link[i] != i {
                i = link[i];
            }
            i
        }
        for (i, own) in self.when.iter().enumerate() {
            for Condition(parent, _) in own {
                let (a, b) = (smallest(&link, i), smallest(&link, *parent));
                link[a.max(b)] = a.min(b);
            }
        }
        let mut components: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for &i in &self.order {
            components.entry(smallest(&link, i)).or_default().push(i);
        }
        components.into_values().collect()
    }
}

/// The state of the enumeration that counts members. Parents are enumerated before their children.
struct Count<'a> {
    coordinates: &'a [Coordinate],
    conditions: &'a Conditions,
    /// The classes of each parent; see [`Conditions::classes`].
    classes: Vec<Vec<(u64, u64)>>,
    active: Vec<bool>,
    indices: Vec<u64>,
    n_visits: usize,
}

impl Count<'_> {
    /// The number of combinations of these coordinates, given the current indices of the coordinates before them.
    fn members(&mut self, order: &[usize]) -> u64 {
        self.n_visits += 1;
        if self.n_visits > MAX_VISITS {
            return u64::MAX;
        }
        let mut factor: u64 = 1;
        for (place, &i) in order.iter().enumerate() {
            self.active[i] = self.conditions.holds(i, &self.active, &self.indices);
            if !self.active[i] {
                continue;
            }
            if self.conditions.is_parent[i] {
                let mut sum: u64 = 0;
                for class in 0..self.classes[i].len() {
                    let (level, size) = self.classes[i][class];
                    self.indices[i] = level;
                    let rest = self.members(&order[place + 1..]);
                    sum = sum.saturating_add(size.saturating_mul(rest));
                }
                return factor.saturating_mul(sum);
            }
            factor = factor.saturating_mul(self.coordinates[i].levels().unwrap_or(1));
        }
        factor
    }
}

/// The numbers of the coordinates, with parents before children and otherwise in ascending order. If the conditions form
/// a circle, the error has the coordinates of the circle.
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
    // Each coordinate that still waits has a parent that waits, so following these parents leads to a circle.
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
    use std::collections::HashSet;

    /// A box of small coordinates with random conditions. Parents may come before or after their children.
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

    /// The members of all combinations of the discrete coordinates.
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
            let mut seen = HashSet::new();
            for _ in 0..expected.len() {
                prop_assert!(domain.contains(&x));
                seen.insert(indices(product(&domain), &x));
                product(&domain).next_combination(&mut x);
            }
            prop_assert_eq!(seen, expected);
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
    fn independent_conditions_are_counted_separately_and_large_counts_saturate() {
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
        assert_eq!((count(1), count(20)), (6, 6u64.pow(20)));
        assert_eq!(count(40), u64::MAX);
        // One child with 30 parents has 2^30 + 4 combinations, too many to enumerate.
        let mut coordinates = vec![Coordinate::Categorical { n: 2 }; 30];
        coordinates.push(integer(1, 5, false));
        let mut when = vec![vec![]; 30];
        when.push((0..30).map(|i| Condition(i, vec![1])).collect());
        let domain = Domain::conditional_box(coordinates, when).unwrap();
        assert_eq!(domain.combinations(), u64::MAX);
    }
}
