//! Where a trial may lie: a finite list of candidates, or a box of continuous, integer and categorical coordinates.
//!
//! Notation: a point is a row of `width` numbers. In a box every *coordinate* owns one or more *columns*
//! of that row, in order:
//!
//! | coordinate | columns | values |
//! |---|---|---|
//! | `Continuous` | 1 | u ∈ [0, 1] |
//! | `Integer {low, high}` | 1 | (i − low) / (high − low), or (ln i − ln low) / (ln high − ln low); 0 if low = high |
//! | `Categorical(k)` | k | one-hot |
//!
//! The members of a discrete coordinate are numbered 0, 1, …, levels − 1: the *index* (i − low for an integer).

use std::ops::Range;

use ndarray::{Array2, ArrayView2, Axis, concatenate};
use rand::RngExt;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

use crate::random::Rng;

/// How far an entry may be from the exact one and still belong to the domain.
const TOLERANCE: f64 = 1e-9;

/// Indices up to this are exact in a double and survive the division by (high − low).
const WIDEST: u64 = 1 << 52;

/// Up to here neighbouring integers are now apart by their logarithms with room to spare.
const HIGHEST_LOG: i64 = 1 << 40;

/// A row of more columns than this is a mistake rather than a search space.
pub(crate) const MAX_COLUMNS: usize = 4096;

/// Beyond, R_d has steps so close to a simple fraction that whole slices of a coordinate stay empty for
/// hundreds of points (first at d = 9, half of all slices at d = 20); Latin squares take over.
const MAX_GOLDEN: usize = 8;

/// One coordinate of a box.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Coordinate {
    Continuous,
    Integer { low: i64, high: i64, log: bool },
    Categorical(usize),
}

impl Coordinate {
    /// How many columns it owns.
    pub fn width(&self) -> usize {
        match self {
            Coordinate::Categorical(k) => *k,
            _ => 1,
        }
    }

    /// How many members it has; `None` if continuous.
    pub fn levels(&self) -> Option<u64> {
        match self {
            Coordinate::Continuous => None,
            Coordinate::Integer { low, high, .. } => Some(high.abs_diff(*low) + 1),
            Coordinate::Categorical(k) => Some(*k as u64),
        }
    }

    /// The encoded column of member `index` of an integer; exactly 0.0 and 1.0 at the ends.
    pub fn position(&self, index: u64) -> f64 {
        match self {
            Coordinate::Integer { low, high, .. } if low == high => 0.0,
            Coordinate::Integer {
                low,
                high,
                log: true,
            } => {
                let (bottom, top) = (libm::log(*low as f64), libm::log(*high as f64));
                (libm::log((*low as u64 + index) as f64) - bottom) / (top - bottom)
            }
            Coordinate::Integer { low, high, .. } => index as f64 / high.abs_diff(*low) as f64,
            _ => index as f64,
        }
    }

    /// The index of the member nearest to these columns (for a one-hot group its first largest entry).
    pub fn index(&self, columns: &[f64]) -> u64 {
        match self {
            Coordinate::Continuous => 0,
            Coordinate::Integer { low, high, .. } if low == high => 0,
            Coordinate::Integer { low, high, log } => {
                let (u, last) = (clip(columns[0]), high.abs_diff(*low));
                if !log {
                    return (u * last as f64).round() as u64;
                }
                let (bottom, top) = (libm::log(*low as f64), libm::log(*high as f64));
                let level = libm::exp(bottom + u * (top - bottom));
                let below = ((level - *low as f64).max(0.0) as u64).min(last);
                let above = (below + 1).min(last);
                // Nearest on the logarithmic axis, where √(i(i+1)) is half way.
                let distance = |index| (self.position(index) - u).abs();
                if distance(above) < distance(below) {
                    above
                } else {
                    below
                }
            }
            Coordinate::Categorical(_) => {
                let mut best = 0;
                for (i, v) in columns.iter().enumerate() {
                    if *v > columns[best] || columns[best].is_nan() {
                        best = i;
                    }
                }
                best as u64
            }
        }
    }

    /// The integer itself that these columns stand for; for a categorical the number of the choice.
    pub fn level(&self, columns: &[f64]) -> i64 {
        match self {
            Coordinate::Integer { low, .. } => low.wrapping_add_unsigned(self.index(columns)),
            _ => self.index(columns) as i64,
        }
    }

    /// Write member `index` of a discrete coordinate into its columns.
    pub fn write(&self, index: u64, columns: &mut [f64]) {
        match self {
            Coordinate::Continuous => {}
            Coordinate::Integer { .. } => columns[0] = self.position(index),
            Coordinate::Categorical(_) => {
                columns.fill(0.0);
                columns[index as usize] = 1.0;
            }
        }
    }

    /// Write the member at the quantile u ∈ [0, 1] of the uniform (with `log`, log-uniform) law.
    fn write_quantile(&self, u: f64, columns: &mut [f64]) {
        match self {
            Coordinate::Continuous => columns[0] = clip(u),
            // Every integer owns the interval of ± ½ around itself, so that the ends count in full.
            Coordinate::Integer {
                low,
                high,
                log: true,
            } => {
                let (bottom, top) = (libm::log(*low as f64 - 0.5), libm::log(*high as f64 + 0.5));
                let level = libm::exp(bottom + clip(u) * (top - bottom)).round();
                let index = (level - *low as f64).max(0.0) as u64;
                self.write(index.min(high.abs_diff(*low)), columns);
            }
            _ => {
                let levels = self.levels().unwrap_or(1);
                let index = (clip(u) * levels as f64) as u64;
                self.write(index.min(levels - 1), columns);
            }
        }
    }

    fn check(&self) -> std::result::Result<(), String> {
        match *self {
            Coordinate::Continuous => Ok(()),
            Coordinate::Integer { low, high, .. } if low > high => Err(format!(
                "an integer from {low} to {high} has no members; swap low and high"
            )),
            Coordinate::Integer { low, log: true, .. } if low < 1 => Err(format!(
                "a logarithmic integer must start at 1 or above, got low={low}; raise low or drop log"
            )),
            Coordinate::Integer { low, high, .. } if high.abs_diff(low) > WIDEST => Err(format!(
                "the integers from {low} to {high} are more than 2^52; use a continuous coordinate"
            )),
            Coordinate::Integer {
                low,
                high,
                log: true,
            } if high > HIGHEST_LOG => Err(format!(
                "a logarithmic integer from {low} to {high} goes beyond 2^40; use a continuous coordinate"
            )),
            Coordinate::Categorical(0) => {
                Err("a categorical without choices has no members; name at least one".into())
            }
            _ => Ok(()),
        }
    }
}

/// u clipped to [0, 1]; not a number becomes the middle, −0.0 becomes 0.0.
fn clip(u: f64) -> f64 {
    if u.is_nan() {
        0.5
    } else {
        u.clamp(0.0, 1.0) + 0.0
    }
}

/// The set of points that may be suggested.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub enum Domain {
    /// One point per row.
    Candidates(Array2<f64>),
    Box(Vec<Coordinate>),
}

impl Domain {
    /// A finite domain; one point per row.
    pub fn candidates(points: Array2<f64>) -> Result<Domain> {
        let (rows, width) = points.dim();
        if rows == 0 || width == 0 {
            return Err(Error::InvalidSpace(format!(
                "candidates of shape ({rows}, {width}) are empty; pass at least one row and one column"
            )));
        }
        if let Some(((row, column), value)) = points.indexed_iter().find(|(_, v)| !v.is_finite()) {
            return Err(Error::InvalidSpace(format!(
                "candidate {row} has the entry {value} in column {column}; all entries must be finite numbers"
            )));
        }
        // Blocks of rows are read as they lie, so they had better lie in row order.
        Ok(Domain::Candidates(points.as_standard_layout().into_owned()))
    }

    /// A box of the given coordinates.
    pub fn new_box(coordinates: Vec<Coordinate>) -> Result<Domain> {
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
        Ok(Domain::Box(coordinates))
    }

    /// Numbers in a point.
    pub fn width(&self) -> usize {
        match self {
            Domain::Candidates(points) => points.ncols(),
            Domain::Box(coordinates) => coordinates.iter().map(Coordinate::width).sum(),
        }
    }

    /// Whether `x` is a member, up to 1e-9 in every column.
    pub fn contains(&self, x: &[f64]) -> bool {
        if x.len() != self.width() {
            return false;
        }
        let near = |a: f64, b: f64| (a - b).abs() <= TOLERANCE;
        match self {
            Domain::Candidates(points) => points
                .outer_iter()
                .any(|row| row.iter().zip(x).all(|(&a, &b)| near(a, b))),
            Domain::Box(coordinates) => columns(coordinates).all(|(coordinate, at)| {
                let own = &x[at];
                let index = coordinate.index(own);
                match coordinate {
                    Coordinate::Continuous => near(own[0], clip(own[0])),
                    Coordinate::Integer { .. } => near(own[0], coordinate.position(index)),
                    Coordinate::Categorical(_) => own
                        .iter()
                        .enumerate()
                        .all(|(i, &v)| near(v, f64::from(u8::from(i as u64 == index)))),
                }
            }),
        }
    }

    /// Move `x` (of the right width) to the nearest member; for candidates also which row that is.
    pub fn snap(&self, x: &mut [f64]) -> Option<usize> {
        match self {
            Domain::Candidates(points) => {
                let (mut nearest, mut least) = (0, f64::INFINITY);
                for (i, row) in points.outer_iter().enumerate() {
                    let distance: f64 = row.iter().zip(&*x).map(|(a, b)| (a - b) * (a - b)).sum();
                    if distance < least {
                        (nearest, least) = (i, distance);
                    }
                }
                for (x, v) in x.iter_mut().zip(points.row(nearest)) {
                    *x = *v;
                }
                Some(nearest)
            }
            Domain::Box(coordinates) => {
                for (coordinate, at) in columns(coordinates) {
                    let own = &mut x[at];
                    match coordinate {
                        Coordinate::Continuous => own[0] = clip(own[0]),
                        _ => coordinate.write(coordinate.index(own), own),
                    }
                }
                None
            }
        }
    }

    /// A member drawn uniformly (logarithmic integers log-uniformly); for candidates also which row it is.
    pub fn sample_uniform(&self, rng: &mut Rng) -> (Vec<f64>, Option<usize>) {
        match self {
            Domain::Candidates(points) => {
                let index = rng.random_range(0..points.nrows());
                (points.row(index).to_vec(), Some(index))
            }
            Domain::Box(coordinates) => {
                let mut x = vec![0.0; self.width()];
                for (coordinate, at) in columns(coordinates) {
                    coordinate.write_quantile(rng.random(), &mut x[at]);
                }
                (x, None)
            }
        }
    }

    /// `n` members spread evenly: for a box a randomly shifted R_d sequence (a Latin square if
    /// d > 8), for candidates rows without repetition until all are used.
    pub fn quasi_random(&self, n: usize, rng: &mut Rng) -> Array2<f64> {
        let mut points = Array2::zeros((n, self.width()));
        match self {
            Domain::Candidates(all) => {
                let mut order: Vec<usize> = (0..all.nrows()).collect();
                order.shuffle(rng);
                for (mut row, &i) in points.outer_iter_mut().zip(order.iter().cycle()) {
                    row.assign(&all.row(i));
                }
            }
            Domain::Box(coordinates) => {
                let unit = unit_sequence(n, coordinates.len(), rng);
                write_quantiles(coordinates, unit.view(), &mut points);
            }
        }
        points
    }

    /// `n` evenly spread points as from `quasi_random`, and `more` that go on from there, should they be wanted.
    pub fn quasi_random_and_more(&self, n: usize, more: usize, rng: &mut Rng) -> Array2<f64> {
        match self {
            // A Latin square is even only as a whole.
            Domain::Box(coordinates) if coordinates.len() > MAX_GOLDEN => concatenate![
                Axis(0),
                self.quasi_random(n, rng),
                self.quasi_random(more, rng)
            ],
            _ => self.quasi_random(n + more, rng),
        }
    }

    /// How many members the discrete coordinates have together (saturating); for candidates their number.
    pub fn combinations(&self) -> u64 {
        match self {
            Domain::Candidates(points) => points.nrows() as u64,
            Domain::Box(coordinates) => coordinates
                .iter()
                .filter_map(Coordinate::levels)
                .fold(1, u64::saturating_mul),
        }
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

/// Rows of the unit cube (one column per *coordinate*) → rows of the box.
pub(crate) fn write_quantiles(
    coordinates: &[Coordinate],
    unit: ArrayView2<f64>,
    points: &mut Array2<f64>,
) {
    let mut buffer = vec![0.0; points.ncols()];
    for (u, mut row) in unit.outer_iter().zip(points.outer_iter_mut()) {
        for ((coordinate, at), &u) in columns(coordinates).zip(u) {
            coordinate.write_quantile(u, &mut buffer[at]);
        }
        for (entry, v) in row.iter_mut().zip(&buffer) {
            *entry = *v;
        }
    }
}

/// `n` evenly spread rows of [0, 1)^d: a Latin square if d is large, else
/// R_d, Roberts' generalised golden ratio: row i is frac(s + i α) with α_j = φ^(−j), where φ > 1 solves
/// φ^(d+1) = φ + 1, and s is a uniform shift.
pub(crate) fn unit_sequence(n: usize, d: usize, rng: &mut Rng) -> Array2<f64> {
    let mut unit = Array2::zeros((n, d));
    if d > MAX_GOLDEN {
        let mut cells: Vec<usize> = (0..n).collect();
        for mut column in unit.axis_iter_mut(Axis(1)) {
            cells.shuffle(rng);
            for (entry, &cell) in column.iter_mut().zip(&cells) {
                *entry = (cell as f64 + rng.random::<f64>()) / n as f64;
            }
        }
        return unit;
    }
    // The fixed point of φ = (1 + φ)^(1/(d+1)); the map contracts by 1/(2(d+1)) or better.
    let mut phi = 2.0_f64;
    for _ in 0..64 {
        phi = libm::pow(1.0 + phi, 1.0 / (d as f64 + 1.0));
    }
    let mut alpha = 1.0;
    for mut column in unit.axis_iter_mut(Axis(1)) {
        alpha /= phi;
        let shift: f64 = rng.random();
        for (i, entry) in column.iter_mut().enumerate() {
            *entry = (shift + (i + 1) as f64 * alpha).fract();
        }
    }
    unit
}

/// A domain as it is saved: decoding goes through the checked constructors.
#[derive(Serialize, Deserialize)]
enum Stored {
    Candidates { width: usize, entries: Vec<f64> },
    Box(Vec<Coordinate>),
}

impl From<Domain> for Stored {
    fn from(domain: Domain) -> Stored {
        match domain {
            Domain::Candidates(points) => Stored::Candidates {
                width: points.ncols(),
                entries: points.iter().copied().collect(),
            },
            Domain::Box(coordinates) => Stored::Box(coordinates),
        }
    }
}

impl TryFrom<Stored> for Domain {
    type Error = Error;

    fn try_from(stored: Stored) -> Result<Domain> {
        match stored {
            Stored::Candidates { width, entries } => {
                let rows = entries.len().checked_div(width).unwrap_or(0);
                let points = Array2::from_shape_vec((rows, width), entries)
                    .map_err(|e| Error::Corrupt(format!("candidates: {e}")))?;
                Domain::candidates(points)
            }
            Stored::Box(coordinates) => Domain::new_box(coordinates),
        }
    }
}

#[cfg(test)]
mod tests {
    // By name as well: proptest's prelude has an `Rng` of its own.
    use super::{Rng, *};
    use ndarray::array;
    use proptest::prelude::*;
    use rand::SeedableRng;

    fn integer(low: i64, high: i64, log: bool) -> Coordinate {
        Coordinate::Integer { low, high, log }
    }

    fn coordinate() -> impl Strategy<Value = Coordinate> {
        prop_oneof![
            Just(Coordinate::Continuous),
            (1..6usize).prop_map(Coordinate::Categorical),
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

        #[test]
        fn every_integer_comes_back(low in 1..1_000_000i64, n in 1..(1i64 << 39), part in 0.0..=1.0f64, log: bool) {
            let c = integer(low, low + n, log);
            let index = (part * n as f64) as u64;
            prop_assert_eq!(c.index(&[c.position(index)]), index);
            prop_assert_eq!(c.level(&[c.position(index)]), low + index as i64);
            prop_assert_eq!((c.position(0), c.position(n as u64)), (0.0, 1.0));
        }
    }

    #[test]
    fn the_ends_of_the_widest_ranges_are_exact() {
        for c in [
            integer(i64::MIN, i64::MIN + (1 << 52), false),
            integer(1, 1 << 40, true),
        ] {
            let last = c.levels().unwrap() - 1;
            for index in [0, 1, last - 1, last] {
                assert_eq!(c.index(&[c.position(index)]), index);
            }
            assert_eq!((c.position(0), c.position(last)), (0.0, 1.0));
        }
        assert_eq!(integer(7, 7, true).position(0), 0.0);
    }

    #[test]
    fn each_way_to_be_wrong_has_its_message() {
        let of = |c| Domain::new_box(vec![c]).unwrap_err().to_string();
        for (text, part) in [
            (of(integer(3, 2, false)), "swap"),
            (of(integer(0, 9, true)), "start at 1"),
            (of(integer(i64::MIN, i64::MAX, false)), "2^52"),
            (of(integer(1, i64::MAX >> 12, true)), "2^40"),
            (of(Coordinate::Categorical(0)), "at least one"),
            (of(Coordinate::Categorical(1 << 30)), "columns"),
            (
                Domain::new_box(vec![]).unwrap_err().to_string(),
                "no coordinates",
            ),
        ] {
            assert!(text.contains(part), "{text}");
        }
        for points in [
            array![[0.0, f64::NAN]],
            Array2::zeros((0, 2)),
            Array2::zeros((2, 0)),
        ] {
            assert!(matches!(
                Domain::candidates(points),
                Err(Error::InvalidSpace(_))
            ));
        }
        let inverted = postcard::to_stdvec(&Stored::Box(vec![integer(3, 2, false)])).unwrap();
        assert!(postcard::from_bytes::<Domain>(&inverted).is_err());
    }

    #[test]
    fn candidates_snap_to_the_nearest_row_and_are_saved_bit_for_bit() {
        let domain = Domain::candidates(array![[0.1, 5.0], [-0.0, 1e-300], [2.0, 2.0]]).unwrap();
        let mut x = [1.7, 2.4];
        assert_eq!(domain.snap(&mut x), Some(2));
        assert_eq!(x, [2.0, 2.0]);
        assert!(domain.contains(&[0.1, 5.0 + 1e-10]) && !domain.contains(&[0.1]));
        let bytes = postcard::to_stdvec(&domain).unwrap();
        assert_eq!(postcard::from_bytes::<Domain>(&bytes).unwrap(), domain);
        let spread = domain.quasi_random(3, &mut Rng::seed_from_u64(1));
        let mut sums: Vec<f64> = spread.rows().into_iter().map(|r| r.sum()).collect();
        sums.sort_by(f64::total_cmp);
        assert_eq!(sums, [1e-300, 4.0, 5.1]);
    }

    #[test]
    fn both_sequences_fill_every_coordinate_evenly() {
        for d in [1, 2, 3, 4, 5, 6, 7, 8, 9, 20, 300] {
            let unit = unit_sequence(400, d, &mut Rng::seed_from_u64(d as u64));
            for column in unit.axis_iter(Axis(1)) {
                let mut cells = [0; 20];
                for u in column {
                    cells[(u * 20.0) as usize] += 1;
                }
                // 20 are expected; the step 0.588 ≈ 10/17 at d = 6 needs the slack.
                assert!(
                    cells.iter().all(|c| (12..=36).contains(c)),
                    "d={d} {cells:?}"
                );
            }
        }
        let levels =
            Domain::new_box(vec![integer(1, 5, false), Coordinate::Categorical(3)]).unwrap();
        assert_eq!(levels.combinations(), 15);
        let points = levels.quasi_random(300, &mut Rng::seed_from_u64(9));
        for level in 0..5 {
            let n = points
                .column(0)
                .iter()
                .filter(|u| (**u * 4.0).round() == f64::from(level))
                .count();
            assert!((50..=70).contains(&n), "level {level}: {n}");
        }
    }
}
