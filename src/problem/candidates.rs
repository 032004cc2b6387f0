//! Finite domains: a list of candidates in the user's units, and its encoding as columns in [0, 1].

use std::collections::BTreeSet;
use std::ops::{Deref, Range};
use std::sync::Arc;

use ndarray::{Array2, ArrayView1, ArrayView2, Axis};

use serde::{Deserialize, Serialize};

use super::declarations::{MAX_COLUMNS, check_names};
use super::domain::checked;
use super::parameter::MAX_COLUMN;
use super::{Coordinate, Domain, Parameter, Role, columns};
use crate::error::{Error, Result};

/// The column of a gap in a column of numbers: as for an inactive parameter of a box, but the float after ½, so that
/// the row differs from a row with the number in the middle of the range.
const GAP: f64 = 0.5 + f64::EPSILON / 2.0;

/// The encoded rows of a list of candidates. Each coordinate is a number or a category.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    points: Array2<f64>,
    coordinates: Vec<Coordinate>,
}

impl Rows {
    /// Rows in which each column is a number.
    pub(super) fn of_numbers(points: Array2<f64>) -> Self {
        let coordinates = vec![Coordinate::Continuous; points.ncols()];
        Self {
            points,
            coordinates,
        }
    }

    /// The rows with these numbers.
    pub(super) fn at(&self, numbers: &[usize]) -> Self {
        Self {
            points: self.points.select(Axis(0), numbers),
            coordinates: self.coordinates.clone(),
        }
    }

    /// The coordinates, in the order of their columns.
    pub fn coordinates(&self) -> &[Coordinate] {
        &self.coordinates
    }
}

impl Deref for Rows {
    type Target = Array2<f64>;

    fn deref(&self) -> &Array2<f64> {
        &self.points
    }
}

/// A named column of candidates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// The name, which is unique and shown in messages.
    pub name: String,
    /// The choices of a category, which may have descriptors, or None for a column of numbers.
    pub category: Option<Parameter>,
}

/// A list of candidates, one per row. If the columns have names, a column may be a category, whose entries are the
/// positions of choices, and NaN stands for a *gap*: the parameter does not apply to the row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Saved", into = "Saved")]
pub struct Candidates {
    points: Array2<f64>,
    /// Empty if the columns do not have names.
    declared: Vec<Column>,
    /// How the numbers of each column are scaled.
    scales: Vec<Scale>,
    domain: Arc<Domain>,
}

impl Candidates {
    /// Creates a list of candidates. Refuses an empty list and entries that are not finite.
    pub fn new(points: Array2<f64>) -> Result<Self> {
        Ok(Self::of(checked(points)?, Vec::new()))
    }

    /// An entry of a row; None for a gap.
    pub(super) fn number_at(&self, row: usize, column: usize) -> Option<f64> {
        let number = self.points.get([row, column]).copied();
        number.filter(|number| !number.is_nan())
    }

    /// Creates a list of candidates with named columns. Refuses an empty list, equal names, infinite numbers, positions
    /// without a choice, and too many encoded columns.
    pub fn named(points: Array2<f64>, declared: Vec<Column>) -> Result<Self> {
        let refuse = |why: String| Err(Error::InvalidSpace(format!("candidates {why}")));
        if points.is_empty() || declared.len() != points.ncols() {
            let (rows, width) = points.dim();
            return refuse(format!(
                "of shape ({rows}, {width}) have {} names: pass at least one row and one column, and one name for each",
                declared.len()
            ));
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = declared.iter().find(|each| !names.insert(&each.name)) {
            return refuse(format!("have the name '{}' twice: keep one", twice.name));
        }
        for (column, of_column) in declared.iter().zip(points.columns()) {
            let is_usable = |entry: &f64| entry.is_nan() || column.is_entry(*entry);
            if let Some(wrong) = of_column.iter().find(|entry| !is_usable(entry)) {
                return refuse(format!(
                    "have the entry {wrong} in column '{}': pass {}",
                    column.name,
                    column.expected()
                ));
            }
        }
        let widths = declared.iter().map(|each| each.coordinate().width());
        let total: usize = widths.clone().sum();
        if total > MAX_COLUMNS {
            let widest = widths.zip(&declared).max_by_key(|(width, _)| *width);
            let widest = widest.map(|(width, column)| {
                let name = &column.name;
                format!(
                    ": column '{name}' has {width} different texts; leave it out, or merge some"
                )
            });
            return refuse(format!(
                "have {total} encoded columns, more than {MAX_COLUMNS}{}",
                widest.unwrap_or_default()
            ));
        }
        Ok(Self::of(points, declared))
    }

    fn of(points: Array2<f64>, declared: Vec<Column>) -> Self {
        let coordinates = match declared.is_empty() {
            true => vec![Coordinate::Continuous; points.ncols()],
            false => declared.iter().map(Column::coordinate).collect(),
        };
        let of_columns = points.columns().into_iter().zip(&coordinates);
        let scales = of_columns.map(|(column, coordinate)| match coordinate.choices() {
            Some(_) => Scale::default(),
            None => Scale::of(column),
        });
        let scales: Vec<Scale> = scales.collect();
        let rows = encoded(points.view(), &scales, &coordinates);
        let rows = Rows {
            points: rows,
            coordinates,
        };
        Self {
            points,
            declared,
            scales,
            domain: Arc::new(Domain::Candidates(rows)),
        }
    }

    /// The encoded domain.
    pub(crate) fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    fn rows(&self) -> &Rows {
        match self.domain.as_ref() {
            Domain::Candidates(rows) => rows,
            Domain::Box(_) => unreachable!("the constructor makes a list"),
        }
    }

    /// The number of candidates.
    pub(crate) fn n_rows(&self) -> usize {
        self.points.nrows()
    }

    /// The columns of a candidate.
    pub(crate) fn row(&self, index: usize) -> Vec<f64> {
        self.rows().row(index).to_vec()
    }

    /// The encoded columns of rows that are given in the user's units. The columns of a row that is not a candidate may
    /// be outside [0, 1].
    pub(crate) fn encode(&self, rows: ArrayView2<f64>) -> Array2<f64> {
        encoded(rows, &self.scales, &self.rows().coordinates)
    }

    /// The rows whose numbers are far from the others: row and column, and the range of the other numbers.
    pub(crate) fn far_rows(&self) -> Vec<(usize, usize, (f64, f64))> {
        let far = |k: usize| {
            let (scale, column) = (&self.scales[k], self.points.column(k));
            let is_far = |x: &f64| !scale.knots.is_empty() && (*x < scale.low || *x > scale.high);
            let rows: Vec<usize> = (0..column.len()).filter(|&i| is_far(&column[i])).collect();
            rows.into_iter()
                .map(move |i| (i, k, (scale.low, scale.high)))
        };
        (0..self.scales.len()).flat_map(far).collect()
    }

    /// The columns of a measurement at numbers that need not be a candidate.
    pub(crate) fn encode_measured(&self, numbers: &[Option<f64>]) -> Vec<f64> {
        let row: Vec<f64> = numbers
            .iter()
            .map(|each| each.unwrap_or(f64::NAN))
            .collect();
        let row = ArrayView2::from_shape((1, row.len()), &row).expect("one row of this length");
        self.encode(row).into_iter().collect()
    }

    /// Refuses numbers that cannot be the point of a measurement: one finite number for each column is needed. In named
    /// columns, there may be gaps, and a category needs one of its choices.
    pub(crate) fn check_measured(&self, numbers: &[Option<f64>]) -> Result<()> {
        let is_usable = |(i, number): (usize, &Option<f64>)| match (self.declared.get(i), number) {
            (None, number) => number.is_some_and(f64::is_finite),
            (Some(_), None) => true,
            (Some(column), Some(number)) => column.is_entry(*number),
        };
        match numbers.len() == self.points.ncols() && numbers.iter().enumerate().all(is_usable) {
            true => Ok(()),
            false => Err(Error::InvalidPoint(format!(
                "params of a measurement need a finite number for each of the {} columns of candidates",
                self.points.ncols()
            ))),
        }
    }

    /// Refuses a point with an unknown name, or without the entry of a column that does not have gaps. `unknown`:
    /// undeclared names, formatted for the message.
    pub(crate) fn check_names(&self, numbers: &[Option<f64>], unknown: &[String]) -> Result<()> {
        let names = self.declared.iter().map(|each| &each.name);
        let has_gap = |i: usize| self.points.column(i).iter().any(|entry| entry.is_nan());
        let is_there = |i: usize| numbers[i].is_some() || has_gap(i);
        check_names(Role::Params, names, is_there, |_| true, unknown)
    }

    /// The first column of each category with descriptors, and the vectors of its choices.
    pub(crate) fn descriptors(&self) -> Vec<(usize, Vec<Vec<f64>>)> {
        let declared = self.declared.iter().zip(columns(&self.rows().coordinates));
        let described = declared.filter_map(|(column, (_, at))| match &column.category {
            Some(Parameter::Described(choices)) => Some((at.start, choices.vectors().to_vec())),
            _ => None,
        });
        described.collect()
    }

    /// The index of the first candidate that equals this row. NaN equals NaN.
    pub(crate) fn find(&self, row: ArrayView1<f64>) -> Option<usize> {
        let is_same = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan());
        let mut rows = self.points.outer_iter();
        rows.position(|each| each.len() == row.len() && each.iter().zip(row).all(is_same))
    }
}

impl Column {
    fn coordinate(&self) -> Coordinate {
        match &self.category {
            Some(category) => category.kind().coordinate(),
            None => Coordinate::Continuous,
        }
    }

    /// Whether a number is an entry of this column.
    fn is_entry(&self, number: f64) -> bool {
        match &self.category {
            Some(category) => category.kind().checked(number) == Some(number),
            None => number.is_finite(),
        }
    }

    /// The entries of this column, for messages.
    fn expected(&self) -> String {
        match &self.category {
            Some(category) => category.kind().expected(),
            None => "finite numbers".to_string(),
        }
    }
}

/// The saved form: the number of columns, the entries of all rows, and the named columns.
type Saved = (usize, Vec<f64>, Vec<Column>);

impl TryFrom<Saved> for Candidates {
    type Error = Error;

    fn try_from((width, entries, declared): Saved) -> Result<Self> {
        let rows = entries.len().checked_div(width).unwrap_or(0);
        let points = Array2::from_shape_vec((rows, width), entries)
            .map_err(|error| Error::Corrupt(format!("candidates: {error}")))?;
        match declared.is_empty() {
            true => Candidates::new(points),
            false => Candidates::named(points, declared),
        }
    }
}

impl From<Candidates> for Saved {
    fn from(candidates: Candidates) -> Self {
        (
            candidates.points.ncols(),
            candidates.points.iter().copied().collect(),
            candidates.declared,
        )
    }
}

/// A gap that is this many times as long as the range of most numbers separates far numbers from these.
const FAR: f64 = 10.0;
/// The smallest share of the rows that are not far.
const NEAR_SHARE: f64 = 0.9;
/// The length of the part of a column for the far numbers on one side, relative to the part of the others.
const FAR_PART: f64 = 0.5;

/// A column is scaled by ranks if more than half of its different numbers are within this part of their range. The
/// smallest such part of 300 numbers is about 0.5 if they are uniform, 0.2 if they are normal, 0.12 if they are
/// exponential, and 0.03 if they are even over three decades. It is 0.099 for the levels 1, 10, 100 and 1000.
const SMALL_PART: f64 = 0.1;

/// The scale of a column of numbers. If one number is far from the others, for example because of another unit, linear
/// scaling makes the others almost equal. Far numbers are therefore scaled by their ranks. If the other numbers are
/// uneven, too, such as numbers over several decades, all numbers are scaled by their ranks.
#[derive(Clone, Debug, PartialEq, Default)]
struct Scale {
    /// The smallest and the largest number that is not far, or 0 if there is none.
    low: f64,
    high: f64,
    /// Increasing numbers with their places in [0, 1]: `low`, `high` and the far numbers, or all numbers. Empty if the
    /// scale is linear from `low` to `high`. Between two knots, the scale is linear.
    knots: Vec<(f64, f64)>,
}

impl Scale {
    fn of(column: ArrayView1<f64>) -> Self {
        let mut sorted: Vec<f64> = column.iter().copied().filter(|x| !x.is_nan()).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let (Some(&low), Some(&high)) = (sorted.first(), sorted.last()) else {
            return Self::default();
        };
        let ends = near(&sorted);
        let (low_near, high_near) = (sorted[ends.0], sorted[ends.1]);
        sorted.dedup();
        let below = sorted.partition_point(|x| *x < low_near);
        let above = sorted.partition_point(|x| *x <= high_near);
        let scale = |knots| Self {
            low: low_near,
            high: high_near,
            knots,
        };
        if is_uneven(&sorted[below..above]) {
            let last = (sorted.len() - 1) as f64;
            let ranked = sorted.iter().enumerate();
            return scale(ranked.map(|(i, &x)| (x, i as f64 / last)).collect());
        }
        if low_near == low && high_near == high {
            return scale(Vec::new());
        }
        let n_above = sorted.len() - above;
        // Of m far numbers on one side, number i is FAR_PART (1 + i/m)/2 away from the others.
        let away = |i: usize, m: usize| 0.5 * FAR_PART * (1.0 + (i + 1) as f64 / m as f64);
        let first = if below > 0 { FAR_PART } else { 0.0 };
        let last = if n_above > 0 { FAR_PART } else { 0.0 };
        let place = |u: f64| (first + u) / (first + 1.0 + last);
        let lower = (0..below).map(|i| (sorted[i], place(-away(below - 1 - i, below))));
        let middle = [(low_near, place(0.0)), (high_near, place(1.0))];
        let upper = (0..n_above).map(|i| (sorted[above + i], place(1.0 + away(i, n_above))));
        scale(lower.chain(middle).chain(upper).collect())
    }

    fn scaled(&self, x: f64) -> f64 {
        if self.knots.is_empty() {
            return scaled(x, (self.low, self.high));
        }
        let after = self.knots.partition_point(|knot| knot.0 <= x);
        let after = after.clamp(1, self.knots.len() - 1);
        let ((from, at), (to, end)) = (self.knots[after - 1], self.knots[after]);
        (at + (end - at) * scaled(x, (from, to))).clamp(-MAX_COLUMN, MAX_COLUMN)
    }
}

/// Whether most of these increasing numbers are within a small part of their range.
fn is_uneven(increasing: &[f64]) -> bool {
    let most = increasing.len() / 2 + 1;
    // Halves, because the difference of two large floats can overflow.
    let length = |of: &[f64]| of[of.len() - 1] / 2.0 - of[0] / 2.0;
    let mut parts = increasing.windows(most);
    parts.any(|part| length(part) < SMALL_PART * length(increasing))
}

/// The first and the last position of the numbers that are not far, in a sorted list. They include the shortest
/// interval with most numbers and two different ones, and all numbers that no long gap separates from it.
fn near(sorted: &[f64]) -> (usize, usize) {
    let n = sorted.len();
    // Halves, because the difference of two large floats can overflow.
    let length = |i: usize, k: usize| sorted[k] / 2.0 - sorted[i] / 2.0;
    let n_near = (NEAR_SHARE * n as f64).ceil() as usize;
    let interval = |i: usize| {
        let end = sorted
            .partition_point(|x| *x <= sorted[i])
            .max(i + n_near - 1);
        (end < n).then_some((i, end))
    };
    let shortest = (0..=n - n_near).filter_map(interval);
    let shortest = shortest.min_by(|a, b| length(a.0, a.1).total_cmp(&length(b.0, b.1)));
    let Some((mut first, mut last)) = shortest else {
        return (0, n - 1);
    };
    loop {
        let range = FAR * length(first, last);
        if first > 0 && length(first - 1, first) <= range {
            first -= 1;
        } else if last + 1 < n && length(last, last + 1) <= range {
            last += 1;
        } else {
            return (first, last);
        }
    }
}

/// Returns the encoded columns of rows in the user's units. A category is one-hot, and its columns are 0 in a gap.
fn encoded(rows: ArrayView2<f64>, scales: &[Scale], coordinates: &[Coordinate]) -> Array2<f64> {
    let at: Vec<Range<usize>> = columns(coordinates).map(|(_, at)| at).collect();
    let width = at.last().map_or(0, |last| last.end);
    let mut encoded = Array2::zeros((rows.nrows(), width));
    for (row, mut x) in rows.outer_iter().zip(encoded.outer_iter_mut()) {
        for (k, &entry) in row.iter().enumerate() {
            match (coordinates[k].choices(), entry.is_nan()) {
                (Some(_), true) => {}
                (Some(_), false) => x[at[k].start + entry as usize] = 1.0,
                (None, true) => x[at[k].start] = GAP,
                (None, false) => x[at[k].start] = scales[k].scaled(entry),
            }
        }
    }
    encoded
}

/// Returns (x − low) / (high − low), or 0 in a column with a single value. Between low and high, the result is clipped
/// to [0, 1], which rounding could leave.
fn scaled(x: f64, (low, high): (f64, f64)) -> f64 {
    // The difference is computed in halves, because the difference of two large floats can overflow.
    let span = high / 2.0 - low / 2.0;
    let span = if span == 0.0 { 1.0 } else { span };
    let u = (x / 2.0 - low / 2.0) / span;
    match (low..=high).contains(&x) {
        true => u.clamp(0.0, 1.0),
        false => u.clamp(-MAX_COLUMN, MAX_COLUMN),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Choices;
    use super::*;
    use crate::random::Rng;
    use ndarray::array;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn far_numbers_do_not_compress_the_others() {
        let mut rng = Rng::seed_from_u64(0);
        let near: Vec<f64> = (0..300).map(|_| rng.random()).collect();
        let scale_of = |far: &[f64]| Scale::of(ArrayView1::from(&[&near[..], far].concat()));
        let plain = scale_of(&[]);
        assert!(plain.knots.is_empty());
        assert!(scale_of(&[3.0]).knots.is_empty());
        for far in [
            &[1000.0][..],
            &[-1e6],
            &[1e3, -1e3, 1e3],
            &[1e300, 40.0, 50.0, -1e308],
        ] {
            let scale = scale_of(far);
            let all: Vec<f64> = near.iter().chain(far).map(|x| scale.scaled(*x)).collect();
            assert!(all.iter().all(|u| (0.0..=1.0).contains(u)), "{far:?}");
            // The other numbers keep their proportions, and fill at least half of the column.
            let share = scale.scaled(plain.high) - scale.scaled(plain.low);
            assert!(share >= 0.5 - 1e-12, "{far:?}");
            for x in &near {
                let expected = scale.scaled(plain.low) + share * plain.scaled(*x);
                assert!((scale.scaled(*x) - expected).abs() < 1e-12);
            }
            // The scale increases, also beyond the ends.
            let mut sorted = [&near[..], far, &[-1.5e308, 1.5e308, -2.0, 2.0]].concat();
            sorted.sort_by(f64::total_cmp);
            assert!(
                sorted
                    .windows(2)
                    .all(|w| scale.scaled(w[0]) <= scale.scaled(w[1]))
            );
        }
    }

    #[test]
    fn uneven_numbers_are_scaled_by_their_ranks() {
        let mut rng = Rng::seed_from_u64(1);
        let uniform: Vec<f64> = (0..300).map(|_| rng.random()).collect();
        let of = |f: &dyn Fn(f64) -> f64| -> Vec<f64> { uniform.iter().map(|u| f(*u)).collect() };
        let scale_of = |column: &[f64]| Scale::of(ArrayView1::from(column));
        let even: [&dyn Fn(f64) -> f64; 4] = [&|u| u, &|u| u * u, &|u| -libm::log(1.0 - u), &|u| {
            libm::pow(10.0, u)
        }];
        for f in even {
            assert!(scale_of(&of(f)).knots.is_empty());
        }
        let uneven: [&dyn Fn(f64) -> f64; 3] = [
            &|u| libm::pow(10.0, 3.0 * u),
            &|u| -libm::pow(10.0, 6.0 * u),
            &|u| if u < 0.6 { u } else { 1e3 * u },
        ];
        for f in uneven {
            let mut numbers: Vec<f64> = of(f);
            let scale = scale_of(&numbers);
            numbers.sort_by(f64::total_cmp);
            numbers.dedup();
            for (i, x) in numbers.iter().enumerate() {
                let rank = i as f64 / (numbers.len() - 1) as f64;
                assert!((scale.scaled(*x) - rank).abs() < 1e-12);
            }
            // Numbers that are not candidates are between their neighbours.
            let between = scale.scaled(0.5 * numbers[7] + 0.5 * numbers[8]);
            let neighbours = scale.scaled(numbers[7])..scale.scaled(numbers[8]);
            assert!(neighbours.contains(&between));
        }
        // The levels of a design do not depend on the numbers of their rows.
        for levels in [&[1e-6, 1e-4, 1e-2, 1.0][..], &[0.0, 1.0, 1000.0]] {
            let column: Vec<f64> = levels.iter().flat_map(|x| [*x; 5]).collect();
            let places: Vec<f64> = levels
                .iter()
                .map(|x| scale_of(&column).scaled(*x))
                .collect();
            let expected = (0..levels.len()).map(|i| i as f64 / (levels.len() - 1) as f64);
            assert_eq!(places, expected.collect::<Vec<f64>>());
        }
    }

    #[test]
    fn a_few_levels_may_have_a_far_one() {
        let column = |entries: &[(f64, usize)]| -> Vec<f64> {
            let each = entries.iter().map(|(x, n)| vec![*x; *n]);
            each.flatten().collect()
        };
        let is_plain = |column: &[f64]| Scale::of(ArrayView1::from(column)).knots.is_empty();
        assert!(is_plain(&column(&[(0.0, 99), (1.0, 1)])));
        assert!(is_plain(&[7.0]) && is_plain(&[]));
        assert!(!is_plain(&column(&[(0.0, 90), (1.0, 5), (1000.0, 1)])));
        assert!(!is_plain(&column(&[
            (0.0, 5),
            (1.0, 5),
            (2.0, 5),
            (3.0, 5),
            (1000.0, 1)
        ])));
    }

    #[test]
    fn columns_are_scaled_and_rows_are_found() {
        let x = array![[10.0, 7.0, -1e308], [20.0, 7.0, 1e308], [30.0, 7.0, 0.0]];
        let candidates = Candidates::new(x.clone()).unwrap();
        let expected = array![[0.0, 0.0, 0.0], [0.5, 0.0, 1.0], [1.0, 0.0, 0.5]];
        assert_eq!(candidates.encode(x.view()), expected);
        assert_eq!(
            *candidates.domain().as_ref(),
            Domain::candidates(expected).unwrap()
        );
        assert_eq!(candidates.find(x.row(2)), Some(2));
        assert_eq!(candidates.find(array![20.0, 7.0, 1.0].view()), None);
        assert!(Candidates::new(array![[f64::NAN]]).is_err());
    }

    #[test]
    fn empty_lists_and_non_finite_entries_are_refused() {
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
    }

    #[test]
    fn candidates_snap_to_the_nearest_row() {
        let domain = Domain::candidates(array![[0.1, 5.0], [-0.0, 1e-300], [2.0, 2.0]]).unwrap();
        assert_eq!((domain.width(), domain.dimensions()), (2, 2));
        let mut x = [1.7, 2.4];
        assert_eq!(domain.snap(&mut x), Some(2));
        assert_eq!(x, [2.0, 2.0]);
        assert!(domain.contains(&[0.1, 5.0 + 1e-10]) && !domain.contains(&[0.1]));
        let spread = domain.quasi_random(3, &mut Rng::seed_from_u64(1));
        let mut sums: Vec<f64> = spread.rows().into_iter().map(|r| r.sum()).collect();
        sums.sort_by(f64::total_cmp);
        assert_eq!(sums, [1e-300, 4.0, 5.1]);
    }

    fn category(labels: &[&str]) -> Option<Parameter> {
        let labels = labels.iter().map(|label| label.to_string());
        Some(Parameter::Categorical(Choices::unordered(labels.collect())))
    }

    fn column(name: &str, category: Option<Parameter>) -> Column {
        Column {
            name: name.to_string(),
            category,
        }
    }

    #[test]
    fn named_columns_are_encoded_as_in_a_box() {
        let x = array![[10.0, 1.0], [20.0, 0.0], [f64::NAN, f64::NAN], [30.0, 1.0]];
        let declared = vec![column("T", None), column("c", category(&["a", "b"]))];
        let named = Candidates::named(x.clone(), declared).unwrap();
        let expected = [
            [0.0, 0.0, 1.0],
            [0.5, 1.0, 0.0],
            [0.5, 0.0, 0.0],
            [1.0, 0.0, 1.0],
        ];
        for (i, row) in expected.iter().enumerate() {
            assert!(
                named
                    .row(i)
                    .iter()
                    .zip(row)
                    .all(|(a, b)| (a - b).abs() < 1e-15)
            );
            assert_eq!(named.find(x.row(i)), Some(i));
        }
        assert_ne!(named.row(2)[0], 0.5); // a gap differs from a number in the middle of the range
        assert_eq!(
            (named.domain().width(), named.domain().dimensions()),
            (3, 2)
        );
        let measured = [Some(50.0), None];
        assert!(named.check_measured(&measured).is_ok());
        assert_eq!(named.encode_measured(&measured), [2.0, 0.0, 0.0]);
        assert!(named.check_measured(&[Some(10.0), Some(2.0)]).is_err());
        assert!(named.check_names(&[None, None], &[]).is_ok());
        let bytes = postcard::to_allocvec(&named).unwrap();
        let read: Candidates = postcard::from_bytes(&bytes).unwrap();
        assert_eq!(read.domain(), named.domain());
        assert_eq!(read.declared, named.declared);
    }

    #[test]
    fn named_numbers_have_the_columns_of_an_array() {
        let x = array![[0.1, 7.0, -1e308], [0.7, 7.0, 1e308], [0.3, 7.0, 3.0]];
        let declared = ["a", "b", "c"].map(|name| column(name, None)).to_vec();
        let named = Candidates::named(x.clone(), declared).unwrap();
        assert_eq!(named.domain(), Candidates::new(x).unwrap().domain());
    }

    #[test]
    fn invalid_named_candidates_are_refused() {
        let many: Vec<String> = (0..5000).map(|i| i.to_string()).collect();
        let wide = Some(Parameter::Categorical(Choices::unordered(many)));
        for (points, declared) in [
            (array![[1.0, 2.0]], vec![column("a", None)]),
            (
                array![[1.0, 2.0]],
                vec![column("a", None), column("a", None)],
            ),
            (array![[f64::INFINITY]], vec![column("a", None)]),
            (array![[2.0]], vec![column("a", category(&["u", "v"]))]),
            (array![[0.5]], vec![column("a", category(&["u", "v"]))]),
            (Array2::zeros((0, 1)), vec![column("a", None)]),
            (array![[0.0]], vec![column("a", wide)]),
        ] {
            let found = Candidates::named(points, declared);
            assert!(matches!(found, Err(Error::InvalidSpace(_))));
        }
    }
}
