//! Conditions: which coordinates of a box are active, given the indices of others.
//!
//! A coordinate with conditions is a *child* of the coordinates that these name. It is active where all of its conditions
//! hold: where each of its *parents* is active itself, with an index among the levels of the condition.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Coordinate;
use crate::error::{Error, Result};

/// Members are counted by going through so many combinations of parents at most: more are too many to be used up.
const MAX_VISITS: usize = 1 << 16;

/// The number of a parent, and those of its indices at which the condition holds; in JSON `[parent, [levels…]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition(pub usize, pub Vec<u64>);

/// The conditions of a box in which at least one coordinate has one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Conditions {
    /// Those of each coordinate, the levels in ascending order.
    pub when: Vec<Vec<Condition>>,
    pub is_parent: Vec<bool>,
    /// The coordinates' numbers, parents before their children.
    pub order: Vec<usize>,
}

impl Conditions {
    /// `when` has a list for each coordinate; None where all of them are empty.
    pub fn new(coordinates: &[Coordinate], mut when: Vec<Vec<Condition>>) -> Result<Option<Self>> {
        if when.iter().all(Vec::is_empty) {
            return Ok(None);
        }
        let mut is_parent = vec![false; coordinates.len()];
        for (i, own) in when.iter_mut().enumerate() {
            let mut parents = BTreeSet::new();
            for condition in own {
                check(coordinates, condition)
                    .and_then(|()| match parents.insert(condition.0) {
                        true => Ok(()),
                        false => Err("which it names twice; name all levels at once".into()),
                    })
                    .map_err(|what: String| {
                        let parent = condition.0;
                        Error::InvalidSpace(format!(
                            "coordinate {i} depends on coordinate {parent}, {what}"
                        ))
                    })?;
                condition.1.sort_unstable();
                condition.1.dedup();
                is_parent[condition.0] = true;
            }
        }
        let order = order(&when)?;
        Ok(Some(Self {
            when,
            is_parent,
            order,
        }))
    }

    /// Which coordinates are active; only the indices of active parents matter.
    pub fn active(&self, indices: &[u64]) -> Vec<bool> {
        let mut active = vec![false; self.when.len()];
        for &i in &self.order {
            active[i] = self.holds(i, &active, indices);
        }
        active
    }

    /// Whether coordinate i is active, where `active` and `indices` are known of its parents.
    fn holds(&self, i: usize, active: &[bool], indices: &[u64]) -> bool {
        self.when[i].iter().all(|Condition(parent, levels)| {
            active[*parent] && levels.binary_search(&indices[*parent]).is_ok()
        })
    }

    /// The number of combinations of active discrete coordinates: exact, or `u64::MAX` where there are very many.
    pub fn combinations(&self, coordinates: &[Coordinate]) -> u64 {
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
        // What is not connected by conditions is independent.
        let components = self.components();
        components.iter().fold(1, |product: u64, component| {
            count.n_visits = 0;
            product.saturating_mul(count.members(component))
        })
    }

    /// The levels of a parent, sorted into classes that the same conditions hold at: one level of each, and their number.
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

    /// Sets of coordinates between which there are no conditions, each in the order of `self.order`.
    fn components(&self) -> Vec<Vec<usize>> {
        // Every coordinate points to one of its component with a smaller number, the smallest to itself.
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

/// The count of members while coordinates are gone through, parents first.
struct Count<'a> {
    coordinates: &'a [Coordinate],
    conditions: &'a Conditions,
    /// Of each parent, see [`Conditions::classes`].
    classes: Vec<Vec<(u64, u64)>>,
    active: Vec<bool>,
    indices: Vec<u64>,
    n_visits: usize,
}

impl Count<'_> {
    /// The number of combinations of these coordinates, where the parents before them stand.
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

/// What makes a condition impossible, if anything.
fn check(coordinates: &[Coordinate], condition: &Condition) -> std::result::Result<(), String> {
    let Condition(parent, levels) = condition;
    let n = match coordinates.get(*parent) {
        None => return Err("which does not exist; name another".into()),
        Some(parent) => parent.levels(),
    };
    match (n, levels.iter().max()) {
        (None, _) => Err("which is continuous; only discrete ones can be depended on".into()),
        (_, None) => Err("at no level; name at least one".into()),
        (Some(n), Some(last)) if *last >= n => {
            Err(format!("at level {last} of {n}; name levels below {n}"))
        }
        _ => Ok(()),
    }
}

/// The coordinates' numbers in ascending order as far as parents can stand before their children.
fn order(when: &[Vec<Condition>]) -> Result<Vec<usize>> {
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
    match (0..when.len()).find(|&i| n_waited_for[i] > 0) {
        None => Ok(order),
        Some(i) => Err(Error::InvalidSpace(format!(
            "coordinate {i} depends on itself, by way of others perhaps; remove one of these conditions"
        ))),
    }
}
