//! Boxes, which are products of coordinates. A row contains the columns of all coordinates in order.
//!
//! Coordinates may have conditions. If the conditions of a coordinate do not hold, the coordinate is *inactive*, and
//! its columns have fixed values (½ in a single column, zeros in a one-hot group). So points that differ only in
//! inactive coordinates are the same row.

use std::ops::{Deref, Range};

use crate::random::Rng;

use super::conditions::{Condition, Conditions};
use super::linear::{LinearSet, Weighted};
use super::{Cell, Coordinate};

/// The coordinates of a box, and their conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct Product {
    coordinates: Vec<Coordinate>,
    conditions: Conditions,
    is_conditional: bool,
    is_finite: bool,
    combinations: u64,
    /// Linear constraints among the coordinates. None if there are none.
    linear: Option<LinearSet>,
}

impl Deref for Product {
    type Target = [Coordinate];

    fn deref(&self) -> &[Coordinate] {
        &self.coordinates
    }
}

impl Product {
    pub fn new(coordinates: Vec<Coordinate>, conditions: Conditions) -> Self {
        let mut all = coordinates.iter().enumerate();
        Self {
            is_conditional: !conditions.is_empty(),
            is_finite: all.all(|(i, c)| *c != Coordinate::Continuous || !conditions.can_hold(i)),
            combinations: conditions.combinations(&coordinates),
            coordinates,
            conditions,
            linear: None,
        }
    }

    /// Adds linear constraints, each on continuous or on discrete coordinates.
    pub fn with_linear(mut self, linear: LinearSet) -> Self {
        let mut others = self.coordinates.clone();
        for ((_, at), other) in columns(&self.coordinates).zip(&mut others) {
            if linear.lattice_of(at.start).is_some() {
                *other = Coordinate::Continuous;
            }
        }
        let n_points = linear.lattices.iter().map(|each| each.n_points());
        self.combinations =
            n_points.fold(self.conditions.combinations(&others), u64::saturating_mul);
        self.linear = Some(linear);
        self
    }

    /// The linear constraints among the coordinates.
    pub fn linear(&self) -> Option<&LinearSet> {
        self.linear.as_ref()
    }

    /// The sets of coordinates that are active together, for these constraints. The result is a single set if the
    /// constrained coordinates are always active.
    pub fn patterns(&self, weighted: &[Weighted]) -> Vec<Vec<bool>> {
        if !self.has_conditions(weighted) {
            return vec![vec![true; self.coordinates.len()]];
        }
        let mut x = self.first_combination(self.iter().map(Coordinate::width).sum());
        let mut patterns = Vec::new();
        for _ in 0..self.combinations() {
            patterns.extend(self.active(&x));
            self.next_combination(&mut x);
        }
        patterns
    }

    /// Whether a coordinate of the constraints has conditions.
    pub fn has_conditions(&self, weighted: &[Weighted]) -> bool {
        let mut terms = weighted.iter().flat_map(|each| &each.terms);
        terms.any(|term| !self.conditions_of(term.0).is_empty())
    }

    /// The number of the body that contains the constrained columns of `x`.
    pub fn body(&self, linear: &LinearSet, x: &[f64]) -> usize {
        linear.body(self.active(x).as_deref())
    }

    /// Draws the constrained columns of `x` at random.
    pub fn redraw_linear(&self, x: &mut [f64], rng: &mut Rng) {
        if let Some(linear) = &self.linear {
            let body = self.body(linear, x);
            let row = &linear.sample(body, 1, x.len(), rng)[0];
            linear.copy(body, row, x);
        }
    }

    /// Whether any coordinate has a condition.
    pub fn is_conditional(&self) -> bool {
        self.is_conditional
    }

    /// The conditions of coordinate i.
    pub fn conditions_of(&self, i: usize) -> &[Condition] {
        &self.conditions.when[i]
    }

    /// Whether other coordinates depend on coordinate i.
    pub fn is_parent(&self, i: usize) -> bool {
        self.conditions.is_parent[i]
    }

    /// Whether the number of members is finite, because no continuous coordinate is active at any member.
    pub fn is_finite(&self) -> bool {
        self.is_finite
    }

    /// The number of combinations of the active discrete coordinates (saturating).
    pub fn combinations(&self) -> u64 {
        self.combinations
    }

    /// Whether each coordinate is active at `x`. None if no coordinate has conditions.
    pub fn active(&self, x: &[f64]) -> Option<Vec<bool>> {
        if !self.is_conditional {
            return None;
        }
        let parents = columns(self).zip(&self.conditions.is_parent);
        let indices: Vec<u64> = parents
            .map(|((coordinate, at), is_parent)| match is_parent {
                true => coordinate.index(&x[at]),
                false => 0,
            })
            .collect();
        Some(self.conditions.active(&indices))
    }

    /// Whether coordinate i is active at all points in these cells.
    pub fn is_active_throughout(&self, i: usize, cells: &[Cell]) -> bool {
        self.conditions.hold_throughout(i, cells)
    }

    /// The coordinates that are active at `x`, each with its number and its columns.
    pub fn active_columns(
        &self,
        x: &[f64],
    ) -> impl Iterator<Item = (usize, &Coordinate, Range<usize>)> {
        let active = self.active(x);
        let all = columns(self).enumerate();
        let all = all.filter(move |(i, _)| active.as_ref().is_none_or(|active| active[*i]));
        all.map(|(i, (coordinate, at))| (i, coordinate, at))
    }

    /// Whether a continuous coordinate is active at `x`.
    pub fn has_active_continuous(&self, x: &[f64]) -> bool {
        let mut active = self.active_columns(x);
        active.any(|(_, coordinate, _)| *coordinate == Coordinate::Continuous)
    }

    /// Writes the fixed values to the inactive columns of `x`. The columns of each discrete coordinate of
    /// `x` must encode one of its members.
    pub fn hold_inactive(&self, x: &mut [f64]) {
        if let Some(active) = self.active(x) {
            for ((coordinate, at), active) in columns(self).zip(active) {
                if !active {
                    x[at].fill(coordinate.inactive());
                }
            }
        }
    }

    /// Replaces `x` by the nearest member. A coordinate that becomes active is set to the middle of its range, or to
    /// its first choice.
    pub fn snap(&self, x: &mut [f64]) {
        if let Some(linear) = &self.linear {
            linear.lattices.iter().for_each(|each| each.snap(x));
        }
        for (coordinate, at) in columns(self) {
            // The nearest point that satisfies linear constraints may belong to a column beyond a bound.
            let is_beyond =
                |linear: &LinearSet| linear.is_constrained(at.start) && x[at.start].is_finite();
            if !self.linear.as_ref().is_some_and(is_beyond) {
                coordinate.snap(&mut x[at]);
            }
        }
        self.hold_inactive(x);
        if let Some(linear) = &self.linear {
            linear.snap(self.body(linear, x), x);
        }
    }

    /// The first combination of the discrete coordinates, with 0 in active continuous columns.
    pub fn first_combination(&self, width: usize) -> Vec<f64> {
        let mut x = vec![0.0; width];
        for (coordinate, at) in columns(self) {
            coordinate.write(0, &mut x[at]);
        }
        self.hold_inactive(&mut x);
        if let Some(linear) = &self.linear {
            linear
                .lattices
                .iter()
                .for_each(|each| each.write_first(&mut x));
        }
        x
    }

    /// Whether a coordinate is in a lattice.
    fn is_in_lattice(&self, column: usize) -> bool {
        let linear = self.linear.as_ref();
        linear.is_some_and(|linear| linear.lattice_of(column).is_some())
    }

    /// Replaces the discrete coordinates of `x` by their next combination. After the last combination, the first
    /// combination follows.
    pub fn next_combination(&self, x: &mut [f64]) {
        for lattice in self.linear.iter().flat_map(|linear| &linear.lattices) {
            if lattice.advance(x) {
                return;
            }
        }
        if !self.is_conditional {
            // Add one to the mixed-radix number whose digits are the indices, and whose bases are the numbers of
            // levels.
            for (coordinate, at) in columns(self) {
                let Some(levels) = coordinate.levels() else {
                    continue;
                };
                if self.is_in_lattice(at.start) {
                    continue;
                }
                let index = coordinate.index(&x[at.clone()]);
                let carry = index + 1 == levels;
                coordinate.write(if carry { 0 } else { index + 1 }, &mut x[at]);
                if !carry {
                    break;
                }
            }
            return;
        }
        // Add one to the number whose digits are the indices of the active coordinates. The indices of children are
        // lower digits than the indices of their parents, and restart when a parent changes.
        let spans: Vec<(&Coordinate, Range<usize>)> = columns(self).collect();
        let active = self.active(x).unwrap_or_default();
        let mut first_changed = 0;
        for (place, &i) in self.conditions.order.iter().enumerate().rev() {
            let (coordinate, at) = &spans[i];
            let index = coordinate.index(&x[at.clone()]);
            if self.is_in_lattice(at.start) {
                continue;
            }
            if active[i] && coordinate.levels().is_some_and(|n| index + 1 < n) {
                coordinate.write(index + 1, &mut x[at.clone()]);
                first_changed = place + 1;
                break;
            }
        }
        for &i in &self.conditions.order[first_changed..] {
            let (coordinate, at) = &spans[i];
            if !self.is_in_lattice(at.start) {
                coordinate.write(0, &mut x[at.clone()]);
            }
        }
        self.hold_inactive(x);
    }
}

/// The coordinates of a box, each with the range of its columns.
pub fn columns(coordinates: &[Coordinate]) -> impl Iterator<Item = (&Coordinate, Range<usize>)> {
    coordinates.iter().scan(0, |start, coordinate| {
        let at = *start..*start + coordinate.width();
        *start = at.end;
        Some((coordinate, at))
    })
}

/// The index of every coordinate at `x`, which is 0 if continuous or inactive. The indices identify the combination of
/// the discrete coordinates.
pub(crate) fn indices(product: &Product, x: &[f64]) -> Vec<u64> {
    let mut indices: Vec<u64> = columns(product)
        .map(|(coordinate, at)| coordinate.index(&x[at]))
        .collect();
    if let Some(active) = product.active(x) {
        for (index, active) in indices.iter_mut().zip(active) {
            *index *= u64::from(active);
        }
    }
    indices
}

#[cfg(test)]
mod tests {
    use super::super::domain::testing::integer;
    use super::super::{Coordinate, Domain};
    use crate::random::Rng;
    use proptest::prelude::*;
    // Imported by name, because proptest's prelude has another `Rng`.
    use rand::{RngExt, SeedableRng};

    fn coordinate() -> impl Strategy<Value = Coordinate> {
        prop_oneof![
            Just(Coordinate::Continuous),
            (1..6usize).prop_map(|n| Coordinate::Categorical { n }),
            (-50..50i64, 0..100i64).prop_map(|(low, n)| integer(low, low + n, false)),
            (1..50i64, 0..100_000i64).prop_map(|(low, n)| integer(low, low + n, true)),
        ]
    }

    proptest! {
        #[test]
        fn drawn_and_snapped_points_are_members(
            coordinates in prop::collection::vec(coordinate(), 1..6), seed: u64, noise in -3.0..3.0f64,
        ) {
            let domain = Domain::new_box(coordinates).unwrap();
            let mut rng = Rng::seed_from_u64(seed);
            let (mut x, index) = domain.sample_uniform(&mut rng);
            prop_assert!(index.is_none() && domain.contains(&x));
            let before = x.clone();
            domain.snap(&mut x);
            prop_assert_eq!(&x, &before); // members do not move
            for row in domain.quasi_random(7, &mut rng).outer_iter() {
                prop_assert!(domain.contains(&row.to_vec()));
            }
            for v in &mut x {
                *v += noise * (rng.random::<f64>() - 0.5);
            }
            x[0] = f64::NAN;
            domain.snap(&mut x);
            prop_assert!(domain.contains(&x));
        }
    }
}
