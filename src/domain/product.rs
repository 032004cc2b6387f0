//! Boxes: products of coordinates. The columns of the coordinates follow one another in a row.
//!
//! Coordinates may have conditions. If these do not hold, the coordinate is *inactive* and its columns have fixed
//! values (½ in a single column, zeros in a one-hot group). So points that differ only in inactive coordinates are
//! the same row.

use std::ops::{Deref, Range};

use super::conditions::{Condition, Conditions};
use super::coordinate::{TOLERANCE, clip};
use super::{Cell, Coordinate};
use crate::error::{Error, Result};

/// The largest number of columns of a box.
const MAX_COLUMNS: usize = 4096;

/// The coordinates of a box, and their conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct Product {
    coordinates: Vec<Coordinate>,
    /// None if every coordinate is always active.
    conditions: Option<Conditions>,
    combinations: u64,
}

impl Deref for Product {
    type Target = [Coordinate];

    fn deref(&self) -> &[Coordinate] {
        &self.coordinates
    }
}

impl Product {
    /// A box; `when` has the conditions of each coordinate.
    pub(super) fn new(coordinates: Vec<Coordinate>, when: Vec<Vec<Condition>>) -> Result<Self> {
        check(&coordinates)?;
        let conditions = Conditions::new(&coordinates, when)?;
        let combinations = match &conditions {
            Some(conditions) => conditions.combinations(&coordinates),
            None => coordinates
                .iter()
                .filter_map(Coordinate::levels)
                .fold(1, u64::saturating_mul),
        };
        Ok(Self {
            coordinates,
            conditions,
            combinations,
        })
    }

    /// Whether any coordinate has a condition.
    pub fn is_conditional(&self) -> bool {
        self.conditions.is_some()
    }

    /// Whether coordinate i has conditions.
    pub fn has_conditions(&self, i: usize) -> bool {
        self.conditions
            .as_ref()
            .is_some_and(|conditions| !conditions.when[i].is_empty())
    }

    /// Whether other coordinates depend on coordinate i.
    pub fn is_parent(&self, i: usize) -> bool {
        self.conditions
            .as_ref()
            .is_some_and(|conditions| conditions.is_parent[i])
    }

    /// The number of combinations of the active discrete coordinates (saturating).
    pub fn combinations(&self) -> u64 {
        self.combinations
    }

    /// Whether each coordinate is active at `x`; None if no coordinate has conditions.
    pub fn active(&self, x: &[f64]) -> Option<Vec<bool>> {
        let conditions = self.conditions.as_ref()?;
        let parents = columns(self).zip(&conditions.is_parent);
        let indices: Vec<u64> = parents
            .map(|((coordinate, at), is_parent)| match is_parent {
                true => coordinate.index(&x[at]),
                false => 0,
            })
            .collect();
        Some(conditions.active(&indices))
    }

    /// Whether coordinate i is active at all points in these cells.
    pub fn is_active_throughout(&self, i: usize, cells: &[Cell]) -> bool {
        self.conditions
            .as_ref()
            .is_none_or(|conditions| conditions.hold_throughout(i, cells))
    }

    /// Whether a continuous coordinate is active at `x`.
    pub fn has_active_continuous(&self, x: &[f64]) -> bool {
        match self.active(x) {
            None => self.contains(&Coordinate::Continuous),
            Some(active) => self
                .iter()
                .zip(active)
                .any(|(coordinate, active)| active && *coordinate == Coordinate::Continuous),
        }
    }

    /// Writes the fixed values to the inactive columns of `x`; each coordinate of `x` must be a member.
    pub fn hold_inactive(&self, x: &mut [f64]) {
        if let Some(active) = self.active(x) {
            for ((coordinate, at), active) in columns(self).zip(active) {
                if !active {
                    x[at].fill(coordinate.inactive());
                }
            }
        }
    }

    /// Replaces `x` by the nearest member. A coordinate that becomes active takes the middle, or its first choice.
    pub fn snap(&self, x: &mut [f64]) {
        for (coordinate, at) in columns(self) {
            let own = &mut x[at];
            match coordinate {
                Coordinate::Continuous => own[0] = clip(own[0]),
                _ => coordinate.write(coordinate.index(own), own),
            }
        }
        self.hold_inactive(x);
    }

    /// Replaces the discrete coordinates of `x` by their next combination; the first combination follows the last.
    pub fn next_combination(&self, x: &mut [f64]) {
        let Some(conditions) = &self.conditions else {
            // Add one to the mixed-radix number whose digits are the indices; the levels are the bases.
            for (coordinate, at) in columns(self) {
                let Some(levels) = coordinate.levels() else {
                    continue;
                };
                let index = coordinate.index(&x[at.clone()]);
                let carry = index + 1 == levels;
                coordinate.write(if carry { 0 } else { index + 1 }, &mut x[at]);
                if !carry {
                    break;
                }
            }
            return;
        };
        // Do the same for the active coordinates, with children as the lower digits; children restart when a parent
        // changes.
        let spans: Vec<(&Coordinate, Range<usize>)> = columns(self).collect();
        let active = self.active(x).unwrap_or_default();
        let mut first_changed = 0;
        for (place, &i) in conditions.order.iter().enumerate().rev() {
            let (coordinate, at) = &spans[i];
            let index = coordinate.index(&x[at.clone()]);
            if active[i] && coordinate.levels().is_some_and(|n| index + 1 < n) {
                coordinate.write(index + 1, &mut x[at.clone()]);
                first_changed = place + 1;
                break;
            }
        }
        for &i in &conditions.order[first_changed..] {
            let (coordinate, at) = &spans[i];
            coordinate.write(0, &mut x[at.clone()]);
        }
        self.hold_inactive(x);
    }
}

/// The coordinates of a box, each with the columns it owns.
pub fn columns(coordinates: &[Coordinate]) -> impl Iterator<Item = (&Coordinate, Range<usize>)> {
    coordinates.iter().scan(0, |start, coordinate| {
        let at = *start..*start + coordinate.width();
        *start = at.end;
        Some((coordinate, at))
    })
}

/// Refuses a box without coordinates, a coordinate without members, and too many columns.
fn check(coordinates: &[Coordinate]) -> Result<()> {
    if coordinates.is_empty() {
        return Err(Error::InvalidSpace(
            "the space has no coordinates; name at least one".into(),
        ));
    }
    let mut width: usize = 0;
    for (i, coordinate) in coordinates.iter().enumerate() {
        coordinate
            .check()
            .map_err(|what| Error::InvalidSpace(format!("coordinate {i}: {what}")))?;
        width = width.saturating_add(coordinate.width());
    }
    if width > MAX_COLUMNS {
        return Err(Error::InvalidSpace(format!(
            "the space has {width} columns, more than {MAX_COLUMNS}; merge some choices"
        )));
    }
    Ok(())
}

/// Whether `x` is a member, up to the tolerance in every column.
pub(super) fn contains(product: &Product, x: &[f64]) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() <= TOLERANCE;
    let active = product.active(x);
    columns(product).enumerate().all(|(i, (coordinate, at))| {
        let own = &x[at];
        if active.as_ref().is_some_and(|active| !active[i]) {
            return own.iter().all(|&v| near(v, coordinate.inactive()));
        }
        let index = coordinate.index(own);
        match coordinate {
            Coordinate::Continuous => near(own[0], clip(own[0])),
            Coordinate::Integer { .. } => near(own[0], coordinate.position(index)),
            Coordinate::Categorical { .. } => own
                .iter()
                .enumerate()
                .all(|(i, &v)| near(v, f64::from(u8::from(i as u64 == index)))),
        }
    })
}

/// The index of every coordinate at `x`; 0 for a continuous or inactive coordinate. The indices identify the
/// combination of the discrete coordinates.
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
    use super::super::tests::integer;
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

    #[test]
    fn each_invalid_coordinate_has_its_message() {
        let of = |c| Domain::new_box(vec![c]).unwrap_err().to_string();
        for (text, part) in [
            (of(integer(3, 2, false)), "swap"),
            (of(integer(0, 9, true)), "start at 1"),
            (of(integer(i64::MIN, i64::MAX, false)), "2^52"),
            (of(integer(1, i64::MAX >> 12, true)), "2^40"),
            (of(Coordinate::Categorical { n: 0 }), "at least one"),
            (of(Coordinate::Categorical { n: 1 << 30 }), "columns"),
            (
                Domain::new_box(vec![]).unwrap_err().to_string(),
                "no coordinates",
            ),
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
}
