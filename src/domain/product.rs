//! Boxes: products of coordinates, whose columns follow one another in a row.

use std::ops::Range;

use super::coordinate::clip;
use super::{Coordinate, TOLERANCE};
use crate::error::{Error, Result};

/// A row of more columns than this is a mistake rather than a search space.
pub(crate) const MAX_COLUMNS: usize = 4096;

/// The coordinates of a box, each with the columns it owns.
pub fn columns(coordinates: &[Coordinate]) -> impl Iterator<Item = (&Coordinate, Range<usize>)> {
    coordinates.iter().scan(0, |start, coordinate| {
        let at = *start..*start + coordinate.width();
        *start = at.end;
        Some((coordinate, at))
    })
}

/// An error unless these coordinates make a box: at least one, each with members, not too many columns.
pub(super) fn check(coordinates: &[Coordinate]) -> Result<()> {
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
pub(super) fn contains(coordinates: &[Coordinate], x: &[f64]) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() <= TOLERANCE;
    columns(coordinates).all(|(coordinate, at)| {
        let own = &x[at];
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

/// Move `x` to the nearest member.
pub(super) fn snap(coordinates: &[Coordinate], x: &mut [f64]) {
    for (coordinate, at) in columns(coordinates) {
        let own = &mut x[at];
        match coordinate {
            Coordinate::Continuous => own[0] = clip(own[0]),
            _ => coordinate.write(coordinate.index(own), own),
        }
    }
}

/// The index of every coordinate at `x`, 0 where it is continuous: what tells the members of a discrete box apart.
pub(crate) fn indices(coordinates: &[Coordinate], x: &[f64]) -> Vec<u64> {
    columns(coordinates)
        .map(|(coordinate, at)| coordinate.index(&x[at]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::integer;
    use super::super::{Coordinate, Domain, Stored};
    use crate::random::Rng;
    use proptest::prelude::*;
    // By name as well: proptest's prelude has an `Rng` of its own.
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
        fn whatever_is_drawn_or_snapped_belongs(
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
            let bytes = postcard::to_stdvec(&domain).unwrap();
            prop_assert_eq!(postcard::from_bytes::<Domain>(&bytes).unwrap(), domain);
        }
    }

    #[test]
    fn each_way_to_be_wrong_has_its_message() {
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
        let inverted = serde_json::to_string(&[integer(3, 2, false)]).unwrap();
        let bytes = postcard::to_stdvec(&Stored::Box(inverted)).unwrap();
        assert!(postcard::from_bytes::<Domain>(&bytes).is_err());
    }
}
