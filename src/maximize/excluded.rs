//! Excluded members of a domain, which a search returns only if all members are excluded.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use ndarray::ArrayView1;
use rand::RngExt;

use crate::problem::{Coordinate, Domain, Product, indices};
use crate::random::Rng;

/// The number of uniform draws in search of a member that is not excluded, before members are enumerated in order.
const MAX_DRAWS: usize = 64;

/// A multiset of members without active continuous coordinates. Equal rows of candidates are one member. A member must
/// be removed as often as it was inserted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Excluded(HashMap<Key, usize>);

/// The key of a member, the same for equal members.
pub type Key = Vec<u64>;

/// The key of an encoded row. Adding 0 turns −0 into 0.
pub fn key_of_row(row: ArrayView1<f64>) -> Key {
    row.iter().map(|x| (x + 0.0).to_bits()).collect()
}

impl Excluded {
    /// Creates the set of these points of the domain. Candidates are identified by their row numbers, and points
    /// without a row number are ignored.
    pub fn new<'a>(
        domain: &Domain,
        points: impl IntoIterator<Item = (&'a [f64], Option<usize>)>,
    ) -> Self {
        let mut excluded = Self::default();
        for (x, row) in points {
            if let Some(key) = Self::key(domain, x, row) {
                excluded.insert(key);
            }
        }
        excluded
    }

    /// The key of a point, or None if the point cannot be excluded.
    pub fn key(domain: &Domain, x: &[f64], row: Option<usize>) -> Option<Key> {
        match domain {
            Domain::Candidates(list) => row.map(|row| key_of_row(list.row(row))),
            Domain::Box(_) if !domain.can_repeat() => None,
            Domain::Box(product) if product.has_active_continuous(x) => None,
            Domain::Box(product) => Some(indices(product, x)),
        }
    }

    /// Adds a member.
    pub fn insert(&mut self, key: Key) {
        *self.0.entry(key).or_default() += 1;
    }

    /// Undoes one insertion of a member.
    pub fn remove(&mut self, key: Key) {
        if let Entry::Occupied(mut found) = self.0.entry(key) {
            *found.get_mut() -= 1;
            if *found.get() == 0 {
                found.remove();
            }
        }
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the member with this key is in the set.
    pub fn contains_key(&self, key: &Key) -> bool {
        self.0.contains_key(key)
    }

    /// Adds the points of another set.
    pub fn extend(&mut self, other: Self) {
        for (key, n) in other.0 {
            *self.0.entry(key).or_default() += n;
        }
    }

    /// Whether the member `x` is excluded.
    pub fn contains(&self, domain: &Domain, x: &[f64]) -> bool {
        match domain {
            Domain::Candidates(_) => self.contains_row(ArrayView1::from(x)),
            Domain::Box(product) => self.contains_member(product, x),
        }
    }

    pub(super) fn contains_row(&self, row: ArrayView1<f64>) -> bool {
        !self.is_empty() && self.0.contains_key(&key_of_row(row))
    }

    pub(super) fn contains_member(&self, product: &Product, x: &[f64]) -> bool {
        !self.is_empty() && self.0.contains_key(&indices(product, x))
    }

    /// Whether every member of the domain is excluded.
    pub fn is_all_of(&self, domain: &Domain) -> bool {
        match domain {
            _ if self.is_empty() => false,
            // `all` stops at the first row that is not excluded.
            Domain::Candidates(list) => list.rows().into_iter().all(|row| self.contains_row(row)),
            Domain::Box(_) => domain.is_finite() && self.0.len() as u64 >= domain.combinations(),
        }
    }

    /// Returns a random member that is not excluded, or any member if all members are excluded.
    pub fn sample_left(&self, domain: &Domain, rng: &mut Rng) -> (Vec<f64>, Option<usize>) {
        let (mut x, mut row) = domain.sample_uniform(rng);
        if self.is_all_of(domain) {
            return (x, row);
        }
        for _ in 0..MAX_DRAWS {
            if !self.contains(domain, &x) {
                return (x, row);
            }
            (x, row) = domain.sample_uniform(rng);
        }
        // There are at most as many steps as excluded members.
        while self.contains(domain, &x) {
            next_member(domain, &mut x, &mut row);
        }
        if let Domain::Box(product) = domain
            && product.is_conditional()
        {
            // A coordinate that became active is at the middle of its range, so draw the continuous coordinates at
            // random.
            let before = x.clone();
            for (_, coordinate, at) in product.active_columns(&before) {
                if *coordinate == Coordinate::Continuous {
                    x[at.start] = rng.random();
                }
            }
            product.redraw_linear(&mut x, rng);
        }
        (x, row)
    }
}

/// Advances to the next member, or from the last member to the first.
fn next_member(domain: &Domain, x: &mut [f64], row: &mut Option<usize>) {
    match domain {
        Domain::Candidates(points) => {
            let next = row.map_or(0, |row| (row + 1) % points.nrows());
            x.iter_mut()
                .zip(points.row(next))
                .for_each(|(x, v)| *x = *v);
            *row = Some(next);
        }
        Domain::Box(product) => product.next_combination(x),
    }
}
