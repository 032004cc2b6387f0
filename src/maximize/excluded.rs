//! Members of a domain that are not to be the answer while others are left.

use std::collections::HashSet;

use rand::RngExt;

use crate::domain::{Coordinate, Domain, Product, columns, indices};
use crate::random::Rng;

/// Uniform members drawn in search of one that is not excluded, before all are gone through in order.
const MAX_DRAWS: usize = 64;

/// A set of members of a domain, none of which has an active continuous coordinate: such ones are never used up.
#[derive(Debug, Clone, Default)]
pub struct Excluded {
    /// Rows of a list of candidates.
    rows: HashSet<usize>,
    /// Members of a box, by the index of each coordinate.
    members: HashSet<Vec<u64>>,
}

impl Excluded {
    /// These points of the domain. Those of candidates are known by their row; others than rows are no members.
    pub fn new<'a>(
        domain: &Domain,
        points: impl IntoIterator<Item = (&'a [f64], Option<usize>)>,
    ) -> Self {
        let mut excluded = Self::default();
        match domain {
            Domain::Candidates(_) => {
                let rows = points.into_iter().filter_map(|(_, row)| row);
                excluded.rows.extend(rows);
            }
            Domain::Box(_) if !domain.can_repeat() => {}
            Domain::Box(product) => {
                let points = points.into_iter().map(|(x, _)| x);
                let discrete = points.filter(|x| !product.has_active_continuous(x));
                excluded
                    .members
                    .extend(discrete.map(|x| indices(product, x)));
            }
        }
        excluded
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.members.is_empty()
    }

    pub fn contains(&self, domain: &Domain, x: &[f64], row: Option<usize>) -> bool {
        match domain {
            Domain::Candidates(_) => row.is_some_and(|row| self.contains_row(row)),
            Domain::Box(product) => self.contains_member(product, x),
        }
    }

    pub(super) fn contains_row(&self, row: usize) -> bool {
        self.rows.contains(&row)
    }

    pub(super) fn contains_member(&self, product: &Product, x: &[f64]) -> bool {
        !self.members.is_empty() && self.members.contains(&indices(product, x))
    }

    /// Whether no member of the domain is left.
    pub fn is_all_of(&self, domain: &Domain) -> bool {
        let n_excluded = self.rows.len().max(self.members.len());
        !self.is_empty() && domain.is_finite() && n_excluded as u64 >= domain.combinations()
    }

    /// A uniformly random member that is left; any member if none is.
    pub fn sample_left(&self, domain: &Domain, rng: &mut Rng) -> (Vec<f64>, Option<usize>) {
        let (mut x, mut row) = domain.sample_uniform(rng);
        if self.is_all_of(domain) {
            return (x, row);
        }
        for _ in 0..MAX_DRAWS {
            if !self.contains(domain, &x, row) {
                return (x, row);
            }
            (x, row) = domain.sample_uniform(rng);
        }
        // At most as many steps as members are excluded.
        while self.contains(domain, &x, row) {
            next_member(domain, &mut x, &mut row);
        }
        if let Domain::Box(product) = domain
            && let Some(active) = product.active(&x)
        {
            // What is continuous and became active on the way stands in the middle.
            for ((coordinate, at), active) in columns(product).zip(active) {
                if active && *coordinate == Coordinate::Continuous {
                    x[at.start] = rng.random();
                }
            }
        }
        (x, row)
    }
}

/// Move to the next member, after the last to the first.
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
