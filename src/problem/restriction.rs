//! Restrictions: the members of a domain that one suggestion may have, as a smaller domain.
//!
//! Notation: the *full* domain is the domain of the problem. In the *restricted* domain, a coordinate with one allowed
//! value has no columns, and a coordinate with several allowed values is a category. A restricted row x is *lifted* to
//! the full row c + Mx. Each coordinate of the full domain has a [`Part`] that describes its entries of c and M.

use std::ops::Range;
use std::sync::Arc;

use ndarray::{Array2, ArrayView1, ArrayView2};

use super::conditions::{Condition, Conditions};
use super::lattice::{self, Lattice};
use super::linear::{LinearSet, TOLERANCE, Weighted};
use super::{Coordinate, Domain, Member, Objective, Product, columns};
use crate::error::{Error, Result};

/// The values that a parameter may have in a suggestion, as numbers in the user's units.
#[derive(Clone, Debug, PartialEq)]
pub enum Held {
    /// One of these values.
    Values(Vec<f64>),
    /// The values from the first number to the second number, both included.
    Range(f64, f64),
}

/// The values that a coordinate may have.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Allowed {
    /// These members of a discrete coordinate, in ascending order.
    Levels(Vec<u64>),
    /// The members of an integer coordinate from the first to the last, both included.
    Steps(u64, u64),
    /// These columns of a continuous coordinate.
    Columns(Vec<f64>),
    /// The columns of a continuous coordinate in an interval.
    Interval(f64, f64),
}

/// A coordinate of the full domain in the restricted domain.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    /// The columns have the values of `origin`, because one value is allowed, or because the coordinate is never
    /// active.
    Constant,
    /// The coordinate is unchanged. Its first restricted column is given.
    Same(usize),
    /// u = low + (high − low) x, for these levels of a discrete coordinate.
    Scaled(usize, f64, f64, Option<(u64, u64)>),
    /// A category whose choices are these columns of the coordinate.
    Choices(usize, Vec<Vec<f64>>),
}

/// Why the values of coordinates cannot be fixed.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Unusable {
    /// This coordinate is inactive where the other coordinates have allowed values.
    Inactive(usize),
    /// This coordinate has linear constraints, and is fixed to a list of values.
    Listed(usize),
    /// A linear constraint does not hold at any allowed point.
    Contradiction,
}

/// The members that a suggestion may have.
#[derive(Clone, Debug, PartialEq)]
pub struct Restriction {
    domain: Domain,
    form: Form,
}

#[derive(Clone, Debug, PartialEq)]
enum Form {
    /// The rows of these candidates, in ascending order.
    Rows(Vec<usize>),
    Box(Map),
}

/// The map between a box and its restriction.
#[derive(Clone, Debug, PartialEq)]
struct Map {
    full: Arc<Domain>,
    /// c, the lifted row without its terms.
    origin: Vec<f64>,
    /// The entries of M: full column, restricted column, weight.
    terms: Vec<(usize, usize, f64)>,
    /// One part for each coordinate of the full domain.
    parts: Vec<Part>,
    /// The full coordinate and the full columns of each restricted coordinate.
    kept: Vec<(Coordinate, Range<usize>)>,
    /// The values that the user gave for each parameter.
    held: Vec<Option<Held>>,
}

impl Restriction {
    /// The restriction to these candidates, whose row numbers are in ascending order.
    pub(super) fn to_rows(full: &Domain, rows: Vec<usize>) -> Result<Self> {
        let Domain::Candidates(list) = full else {
            return Err(Error::InvalidPoint(
                "row numbers name candidates, and the domain is a space".to_string(),
            ));
        };
        if rows.is_empty() || rows.iter().any(|&row| row >= list.nrows()) {
            return Err(Error::InvalidPoint(format!(
                "fixed has no candidates: give the values of at least one of the {} candidates",
                list.nrows()
            )));
        }
        Ok(Self {
            domain: Domain::Candidates(list.at(&rows)),
            form: Form::Rows(rows),
        })
    }

    /// The restriction of a box to the allowed values of its coordinates. A coordinate with `is_active` is active at
    /// each of the members. `held` has the allowed numbers.
    ///
    /// If a linear constraint cannot hold with some choices of a parameter, because they make parts inactive, these
    /// choices are left out.
    pub(super) fn of_box(
        full: &Arc<Domain>,
        allowed: Vec<Option<Allowed>>,
        is_active: &[bool],
        held: Vec<Option<Held>>,
    ) -> std::result::Result<Self, Unusable> {
        let made =
            |allowed, is_active: &[bool]| Self::of_allowed(full, allowed, is_active, held.clone());
        let found = made(allowed.clone(), is_active);
        let (Err(Unusable::Contradiction), Some(product)) = (&found, full.product()) else {
            return found;
        };
        let terms = product.linear().into_iter().flat_map(LinearSet::weighted);
        let parts = terms.flat_map(|each| each.terms.iter().map(|term| term.0));
        let conditions = parts.flat_map(|i| product.conditions_of(i));
        for parent in conditions.map(|Condition(parent, _)| *parent) {
            let levels: Vec<u64> = match (&allowed[parent], product[parent].levels()) {
                (Some(Allowed::Levels(levels)), _) => levels.clone(),
                (Some(Allowed::Steps(first, last)), _) => (*first..=*last).collect(),
                (None, Some(n)) => (0..n).collect(),
                _ => continue,
            };
            let with = |levels| {
                let (mut narrowed, mut is_active) = (allowed.clone(), is_active.to_vec());
                narrowed[parent] = Some(Allowed::Levels(levels));
                is_active[parent] = true;
                made(narrowed, &is_active)
            };
            let kept = levels
                .into_iter()
                .filter(|level| with(vec![*level]).is_ok());
            let kept: Vec<u64> = kept.collect();
            if !kept.is_empty() {
                return with(kept);
            }
        }
        found
    }

    fn of_allowed(
        full: &Arc<Domain>,
        mut allowed: Vec<Option<Allowed>>,
        is_active: &[bool],
        held: Vec<Option<Held>>,
    ) -> std::result::Result<Self, Unusable> {
        let Some(product) = full.product() else {
            return Err(Unusable::Inactive(0));
        };
        let given: Vec<usize> = (0..allowed.len())
            .filter(|&i| allowed[i].is_some() && is_active[i])
            .collect();
        for &i in &given {
            activate(product, i, &mut allowed).map_err(|()| Unusable::Inactive(i))?;
        }
        let is_certain = always_active(product, given);
        let mut map = Map {
            full: full.clone(),
            origin: vec![0.0; full.width()],
            terms: Vec::new(),
            parts: vec![Part::Constant; product.len()],
            kept: Vec::new(),
            held,
        };
        let spans: Vec<(&Coordinate, Range<usize>)> = columns(product).collect();
        let never = never_active(product, &allowed);
        let mut coordinates: Vec<Coordinate> = Vec::new();
        // The restricted coordinate of each full coordinate.
        let mut position: Vec<Option<usize>> = vec![None; product.len()];
        let mut width = 0;
        for (i, (coordinate, at)) in spans.iter().enumerate() {
            if never[i] {
                map.origin[at.clone()].fill(coordinate.inactive());
                continue;
            }
            let own = (allowed[i].as_ref(), is_certain[i]);
            if let Some(restricted) = map.add(i, coordinate, at, own, width) {
                position[i] = Some(coordinates.len());
                coordinates.push(restricted);
                map.kept.push((**coordinate, at.clone()));
                width += restricted.width();
            }
        }
        let when = (0..product.len()).filter(|&i| position[i].is_some());
        let when = when.map(|i| {
            let own = product.conditions_of(i).iter();
            // A parent without columns always has a level of the condition, because the child can be active.
            let own = own.filter_map(|Condition(parent, levels)| {
                let at = position[*parent]?;
                let levels: Vec<u64> = match &allowed[*parent] {
                    Some(Allowed::Levels(kept)) => {
                        let kept = kept.iter().enumerate();
                        let kept = kept.filter(|(_, level)| levels.contains(level));
                        kept.map(|(index, _)| index as u64).collect()
                    }
                    Some(Allowed::Steps(first, last)) => {
                        let own = levels.iter().filter(|level| (first..=last).contains(level));
                        own.map(|level| level - first).collect()
                    }
                    _ => levels.clone(),
                };
                let holds_always = coordinates[at].levels() == Some(levels.len() as u64)
                    && product.conditions_of(*parent).is_empty();
                (!holds_always).then_some(Condition(at, levels))
            });
            own.collect()
        });
        let conditions = Conditions::new(when.collect());
        let conditions = conditions.map_err(|circle| Unusable::Inactive(circle[0]))?;
        let mut restricted = Product::new(coordinates, conditions);
        if let Some(linear) = product.linear() {
            let linear = map.constraints(linear, &restricted, &position, &never)?;
            restricted = restricted.with_linear(linear);
        }
        Ok(Self {
            domain: Domain::Box(restricted),
            form: Form::Box(map),
        })
    }

    /// The restricted domain.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// The member, if the restriction allows a single point of a box.
    pub fn single(&self) -> Option<Member> {
        let is_single = self
            .domain
            .product()
            .is_some_and(|product| product.is_empty());
        is_single.then(|| self.lift_member(Member::default()))
    }

    /// The values that each parameter of a box may have, if they were given.
    pub fn held(&self) -> Option<&[Option<Held>]> {
        match &self.form {
            Form::Rows(_) => None,
            Form::Box(map) => Some(&map.held),
        }
    }

    /// The row numbers of the allowed candidates, or None in a box.
    pub fn rows(&self) -> Option<&[usize]> {
        match &self.form {
            Form::Rows(rows) => Some(rows),
            Form::Box(_) => None,
        }
    }

    /// The full row of a restricted row.
    pub fn lift(&self, x: &[f64]) -> Vec<f64> {
        match &self.form {
            Form::Rows(_) => x.to_vec(),
            Form::Box(map) => {
                let mut full = vec![0.0; map.origin.len()];
                self.write(map, x, &mut full);
                full
            }
        }
    }

    /// The full rows of restricted rows.
    pub fn lift_rows(&self, rows: ArrayView2<f64>) -> Array2<f64> {
        let Form::Box(map) = &self.form else {
            return rows.to_owned();
        };
        let mut lifted = Array2::zeros((rows.nrows(), map.origin.len()));
        let (mut x, mut full) = (vec![0.0; rows.ncols()], vec![0.0; map.origin.len()]);
        for (from, mut to) in rows.outer_iter().zip(lifted.outer_iter_mut()) {
            x.iter_mut().zip(from).for_each(|(x, from)| *x = *from);
            self.write(map, &x, &mut full);
            to.assign(&ArrayView1::from(&full));
        }
        lifted
    }

    fn write(&self, map: &Map, x: &[f64], full: &mut [f64]) {
        full.copy_from_slice(&map.origin);
        for &(to, from, weight) in &map.terms {
            full[to] += weight * x[from];
        }
        let product = self.domain.product();
        if let Some(active) = product.and_then(|product| product.active(x)) {
            for ((coordinate, at), active) in map.kept.iter().zip(active) {
                if !active {
                    full[at.clone()].fill(coordinate.inactive());
                }
            }
        }
    }

    /// The member of the full domain.
    pub fn lift_member(&self, member: Member) -> Member {
        match &self.form {
            Form::Rows(rows) => Member {
                index: member.index.map(|i| rows[i]),
                ..member
            },
            Form::Box(map) => {
                let mut full = self.lift(&member.x);
                map.full.snap(&mut full);
                Member::new(full, None)
            }
        }
    }

    /// The restricted row and its row number, or None if a point of the full domain is not allowed.
    pub fn lower(&self, x: &[f64], index: Option<usize>) -> Option<(Vec<f64>, Option<usize>)> {
        match &self.form {
            Form::Rows(rows) => {
                let at = rows.binary_search(&index?).ok()?;
                Some((x.to_vec(), Some(at)))
            }
            Form::Box(map) => {
                let (lowered, is_allowed) = self.project(map, x);
                is_allowed.then_some((lowered, None))
            }
        }
    }

    /// The restricted row near a point of the full domain, which may not be allowed.
    pub fn nearest(&self, x: &[f64]) -> Vec<f64> {
        match &self.form {
            Form::Rows(_) => x.to_vec(),
            Form::Box(map) => self.project(map, x).0,
        }
    }

    /// The restricted row near `x`, and whether `x` is allowed.
    fn project(&self, map: &Map, x: &[f64]) -> (Vec<f64>, bool) {
        let (mut lowered, mut is_allowed) = (vec![0.0; self.domain.width()], true);
        let Some(product) = map.full.product() else {
            return (lowered, false);
        };
        let active = product.active(x);
        for (i, (coordinate, at)) in columns(product).enumerate() {
            let u = &x[at.clone()];
            let is_active = active.as_ref().is_none_or(|active| active[i]);
            match &map.parts[i] {
                Part::Constant => is_allowed &= *u == map.origin[at],
                Part::Same(first) => lowered[*first..*first + u.len()].copy_from_slice(u),
                Part::Scaled(first, low, high, levels) => {
                    let v = (u[0] - low) / (high - low);
                    let inside = match levels {
                        Some((first, last)) => (*first..=*last).contains(&coordinate.index(u)),
                        None => (*low..=*high).contains(&u[0]),
                    };
                    is_allowed &= inside || !is_active;
                    lowered[*first] = if is_active { v.clamp(0.0, 1.0) } else { 0.5 };
                }
                Part::Choices(first, choices) if is_active => {
                    let distance = |choice: &Vec<f64>| -> f64 {
                        let both = choice.iter().zip(u);
                        both.map(|(a, b)| (a - b) * (a - b)).sum()
                    };
                    let all = (0..choices.len()).map(|m| (m, distance(&choices[m])));
                    let nearest = all.min_by(|a, b| a.1.total_cmp(&b.1));
                    let nearest = nearest.map_or(0, |(m, _)| m);
                    is_allowed &= choices[nearest] == u;
                    lowered[first + nearest] = 1.0;
                }
                Part::Choices(..) => {}
            }
        }
        self.domain.snap(&mut lowered);
        (lowered, is_allowed)
    }

    /// Writes the values that the user gave to the numbers of a member, because decoding may round them.
    pub fn hold(&self, numbers: &mut [Option<f64>]) {
        for (k, number) in numbers.iter_mut().enumerate() {
            *number = number.map(|number| self.closest(k, number));
        }
    }

    /// The closest number to this number that the user's values of parameter k include.
    pub fn closest(&self, k: usize, number: f64) -> f64 {
        let held = match &self.form {
            Form::Rows(_) => None,
            Form::Box(map) => map.held.get(k).and_then(Option::as_ref),
        };
        match held {
            None => number,
            Some(Held::Range(low, high)) => number.clamp(*low, *high),
            Some(Held::Values(values)) => {
                let distance = |value: &&f64| (**value - number).abs();
                let nearest = values
                    .iter()
                    .min_by(|a, b| distance(a).total_cmp(&distance(b)));
                nearest.copied().unwrap_or(number)
            }
        }
    }

    /// The objective on restricted rows.
    pub fn lifted<'a>(&'a self, objective: &'a mut dyn Objective) -> Lifted<'a> {
        let lengthscales = match (&self.form, objective.lengthscales()) {
            (Form::Box(map), Some(full)) => {
                let mut own = vec![1.0; self.domain.width()];
                for &(to, from, weight) in &map.terms {
                    own[from] = full[to] / weight.abs();
                }
                Some(own)
            }
            (_, full) => full.map(<[f64]>::to_vec),
        };
        Lifted {
            restriction: self,
            gradient: Vec::new(),
            lengthscales,
            objective,
        }
    }
}

impl Map {
    /// The linear constraints on the coordinates of the restricted domain. `position` has the restricted coordinate of
    /// each full coordinate, and `never` marks the coordinates that are never active.
    fn constraints(
        &self,
        linear: &LinearSet,
        restricted: &Product,
        position: &[Option<usize>],
        never: &[bool],
    ) -> std::result::Result<LinearSet, Unusable> {
        let product = self.full.product().map_or(&[][..], |product| product);
        let start: Vec<usize> = columns(product).map(|(_, at)| at.start).collect();
        let mut weighted = Vec::new();
        for each in linear.weighted() {
            let mut own = Weighted {
                terms: Vec::new(),
                ..*each
            };
            // The size of the terms, for the tolerance.
            let mut size = 0.0;
            for &(i, a, at_low) in each.terms.iter().filter(|term| !never[term.0]) {
                size += a.abs() + at_low.abs();
                // The parameter is a_low + a_slope·x, with the restricted column x.
                let (slope, constant) = match &self.parts[i] {
                    Part::Constant => (0.0, at_low + a * self.origin[start[i]]),
                    Part::Same(_) => (a, at_low),
                    Part::Scaled(_, low, high, _) => (a * (high - low), at_low + a * low),
                    Part::Choices(..) => return Err(Unusable::Listed(i)),
                };
                match position[i] {
                    Some(k) => own.terms.push((k, slope, constant)),
                    None => {
                        own.low -= constant;
                        own.high -= constant;
                    }
                }
            }
            let slack = TOLERANCE * size;
            match own.terms.is_empty() {
                true if own.low > slack || own.high < -slack => {
                    return Err(Unusable::Contradiction);
                }
                true => {}
                false => weighted.push(own),
            }
        }
        let own_columns: Vec<Range<usize>> = columns(restricted).map(|(_, at)| at).collect();
        let mut lattices = Vec::new();
        for lattice in &linear.lattices {
            let (parts, bounds) = lattice.parts();
            let (mut bounds, mut left) = (bounds.collect::<Vec<_>>(), Vec::new());
            for part in parts {
                let i = start.partition_point(|&at| at < part.at.start);
                let weights = |k: u64| part.weights[k as usize].clone();
                let own: Vec<Vec<u64>> = match &self.parts[i] {
                    Part::Constant => {
                        let only = part.coordinate.index(&self.origin[part.at.clone()]);
                        for (bound, weight) in bounds.iter_mut().zip(weights(only)) {
                            *bound = (bound.0 - weight as i64, bound.1 - weight as i64);
                        }
                        continue;
                    }
                    Part::Same(_) => part.weights.clone(),
                    Part::Scaled(.., levels) => {
                        let last = part.weights.len() as u64 - 1;
                        let (first, last) = levels.unwrap_or((0, last));
                        (first..=last).map(weights).collect()
                    }
                    Part::Choices(_, choices) => {
                        let level = |choice: &Vec<f64>| weights(part.coordinate.index(choice));
                        choices.iter().map(level).collect()
                    }
                };
                let k = position[i].unwrap_or_default();
                left.push(lattice::Part {
                    coordinate: restricted[k],
                    at: own_columns[k].clone(),
                    weights: own,
                });
            }
            let is_empty = left.is_empty();
            let lattice = Lattice::new(left, bounds).ok_or(Unusable::Contradiction)?;
            lattices.extend((!is_empty).then_some(lattice));
        }
        let own: Vec<usize> = own_columns.iter().map(|at| at.start).collect();
        let patterns = restricted.patterns(&weighted);
        LinearSet::new(weighted, lattices, &own, &patterns).map_err(|_| Unusable::Contradiction)
    }

    /// Adds full coordinate i, whose first restricted column is `first`. Returns the restricted coordinate, or None if
    /// one value is allowed and the coordinate `is_certain` to be active.
    fn add(
        &mut self,
        i: usize,
        coordinate: &Coordinate,
        at: &Range<usize>,
        (allowed, is_certain): (Option<&Allowed>, bool),
        first: usize,
    ) -> Option<Coordinate> {
        let member = |level: u64| {
            let mut columns = vec![0.0; at.len()];
            coordinate.write(level, &mut columns);
            columns
        };
        let choices: Vec<Vec<f64>> = match allowed {
            None => {
                self.parts[i] = Part::Same(first);
                self.terms
                    .extend(at.clone().enumerate().map(|(k, to)| (to, first + k, 1.0)));
                return Some(*coordinate);
            }
            Some(Allowed::Interval(low, high)) if low < high => {
                return Some(self.scale(i, at, first, (*low, *high), None, *coordinate));
            }
            Some(Allowed::Interval(low, _)) => vec![vec![*low]],
            Some(Allowed::Columns(values)) => values.iter().map(|u| vec![*u]).collect(),
            Some(Allowed::Levels(levels)) => levels.iter().map(|&level| member(level)).collect(),
            Some(Allowed::Steps(bottom, top)) => match coordinate {
                Coordinate::Integer { low, log, .. } if bottom < top => {
                    let ends = (coordinate.position(*bottom), coordinate.position(*top));
                    let restricted = Coordinate::Integer {
                        low: low + *bottom as i64,
                        high: low + *top as i64,
                        log: *log,
                    };
                    let levels = Some((*bottom, *top));
                    return Some(self.scale(i, at, first, ends, levels, restricted));
                }
                _ => vec![member(*bottom)],
            },
        };
        if let [only] = &choices[..]
            && is_certain
        {
            self.origin[at.clone()].copy_from_slice(only);
            return None;
        }
        let n = choices.len();
        for (m, choice) in choices.iter().enumerate() {
            let entries = at.clone().zip(choice).filter(|(_, u)| **u != 0.0);
            self.terms
                .extend(entries.map(|(to, u)| (to, first + m, *u)));
        }
        self.parts[i] = Part::Choices(first, choices);
        Some(Coordinate::Categorical { n })
    }

    fn scale(
        &mut self,
        i: usize,
        at: &Range<usize>,
        first: usize,
        (low, high): (f64, f64),
        levels: Option<(u64, u64)>,
        restricted: Coordinate,
    ) -> Coordinate {
        self.origin[at.start] = low;
        self.terms.push((at.start, first, high - low));
        self.parts[i] = Part::Scaled(first, low, high, levels);
        restricted
    }
}

/// Restricts the parents of coordinate i to the levels at which coordinate i is active, and so on for their parents.
fn activate(
    product: &Product,
    i: usize,
    allowed: &mut [Option<Allowed>],
) -> std::result::Result<(), ()> {
    for Condition(parent, levels) in product.conditions_of(i) {
        let kept: Vec<u64> = match &allowed[*parent] {
            Some(Allowed::Levels(own)) => {
                let own = own.iter().copied();
                own.filter(|level| levels.contains(level)).collect()
            }
            Some(Allowed::Steps(first, last)) => {
                let own = levels.iter().copied();
                own.filter(|level| (first..=last).contains(&level))
                    .collect()
            }
            _ => levels.clone(),
        };
        if kept.is_empty() {
            return Err(());
        }
        allowed[*parent] = Some(Allowed::Levels(kept));
        activate(product, *parent, allowed)?;
    }
    Ok(())
}

/// Whether each coordinate is active at all members: it does not have conditions, or it or a child is in `left`.
fn always_active(product: &Product, mut left: Vec<usize>) -> Vec<bool> {
    let mut found = vec![false; product.len()];
    while let Some(i) = left.pop() {
        found[i] = true;
        left.extend(product.conditions_of(i).iter().map(|each| each.0));
    }
    (0..product.len())
        .map(|i| found[i] || product.conditions_of(i).is_empty())
        .collect()
}

/// Whether each coordinate is inactive at all allowed members.
fn never_active(product: &Product, allowed: &[Option<Allowed>]) -> Vec<bool> {
    (0..product.len())
        .map(|i| activate(product, i, &mut allowed.to_vec()).is_err())
        .collect()
}

/// An objective on the rows of a restricted domain.
pub struct Lifted<'a> {
    objective: &'a mut dyn Objective,
    restriction: &'a Restriction,
    gradient: Vec<f64>,
    lengthscales: Option<Vec<f64>>,
}

impl Objective for Lifted<'_> {
    fn values(&mut self, points: ArrayView2<f64>, out: &mut [f64]) {
        match &self.restriction.form {
            Form::Rows(_) => self.objective.values(points, out),
            Form::Box(_) => {
                let lifted = self.restriction.lift_rows(points);
                self.objective.values(lifted.view(), out);
            }
        }
    }

    fn value_and_gradient(&mut self, x: &[f64], gradient: &mut [f64]) -> f64 {
        let Form::Box(map) = &self.restriction.form else {
            return self.objective.value_and_gradient(x, gradient);
        };
        let full = self.restriction.lift(x);
        self.gradient.resize(full.len(), 0.0);
        let value = self.objective.value_and_gradient(&full, &mut self.gradient);
        gradient.fill(0.0);
        for &(to, from, weight) in &map.terms {
            gradient[from] += weight * self.gradient[to];
        }
        value
    }

    fn lengthscales(&self) -> Option<&[f64]> {
        self.lengthscales.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::{RngExt, SeedableRng};

    use super::super::domain::testing::integer;
    use super::super::indices;
    use super::*;
    use crate::maximize::combinations;
    use crate::random::Rng;
    use ndarray::Axis;

    /// A box of discrete coordinates with random conditions on earlier coordinates, and random allowed values.
    fn random_box(rng: &mut Rng) -> (Arc<Domain>, Vec<Option<Allowed>>) {
        let (mut coordinates, mut when, mut allowed) = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..rng.random_range(1..6usize) {
            let n = rng.random_range(2..5i64);
            let is_category = rng.random();
            coordinates.push(match is_category {
                true => Coordinate::Categorical { n: n as usize },
                false => integer(1, n, rng.random()),
            });
            let mut own = Vec::new();
            if i > 0 && rng.random() {
                let parent = rng.random_range(0..i);
                let levels: u64 = coordinates[parent].levels().unwrap();
                own.push(Condition(
                    parent,
                    (0..levels).filter(|_| rng.random()).chain([0]).collect(),
                ));
            }
            when.push(own);
            let first = rng.random_range(0..n as u64);
            let last = rng.random_range(first..n as u64);
            allowed.push(match rng.random_range(0..3) {
                0 => None,
                1 if !is_category => Some(Allowed::Steps(first, last)),
                _ => Some(Allowed::Levels(
                    BTreeSet::from([first, last]).into_iter().collect(),
                )),
            });
        }
        (
            Arc::new(Domain::conditional_box(coordinates, when).unwrap()),
            allowed,
        )
    }

    #[test]
    fn restricted_members_are_the_members_with_allowed_values() {
        let mut rng = Rng::seed_from_u64(0);
        let (mut n_refused, mut n_checked) = (0, 0);
        for _ in 0..400 {
            let (full, allowed) = random_box(&mut rng);
            let product = full.product().unwrap();
            let held = vec![None; product.len()];
            let forced: Vec<bool> = (0..product.len()).map(|_| rng.random()).collect();
            let is_member = |x: &Vec<f64>| {
                let (active, indices) = (product.active(x), indices(product, x));
                allowed.iter().enumerate().all(|(i, allowed)| {
                    let is_active = active.as_ref().is_none_or(|active| active[i]);
                    match allowed {
                        None => true,
                        Some(_) if !is_active && !forced[i] => true,
                        Some(Allowed::Levels(levels)) => is_active && levels.contains(&indices[i]),
                        Some(Allowed::Steps(first, last)) => {
                            is_active && (*first..=*last).contains(&indices[i])
                        }
                        Some(_) => unreachable!(),
                    }
                })
            };
            let rows = |domain: &Domain| -> Vec<Vec<f64>> {
                let all = combinations(domain.product().unwrap(), domain.width());
                all.outer_iter().map(|row| row.to_vec()).collect()
            };
            let expected: Vec<Vec<f64>> = rows(&full).into_iter().filter(is_member).collect();
            let Ok(restriction) = Restriction::of_box(&full, allowed.clone(), &forced, held) else {
                assert!(expected.is_empty());
                n_refused += 1;
                continue;
            };
            let members = match restriction.single() {
                Some(only) => vec![only.x],
                None => {
                    let restricted = rows(restriction.domain());
                    assert_eq!(restricted.len() as u64, restriction.domain().combinations());
                    for x in &restricted {
                        let lowered = restriction.lower(&restriction.lift(x), None);
                        assert_eq!(lowered.unwrap().0, *x);
                        n_checked += 1;
                    }
                    let lifted = restricted.into_iter();
                    let members = lifted.map(|x| restriction.lift_member(Member::new(x, None)).x);
                    members.collect()
                }
            };
            let as_bits = |rows: &[Vec<f64>]| -> BTreeSet<Vec<u64>> {
                let row = |x: &Vec<f64>| x.iter().map(|u| u.to_bits()).collect();
                rows.iter().map(row).collect()
            };
            assert_eq!(as_bits(&members), as_bits(&expected));
            for x in rows(&full) {
                let is_allowed = restriction.lower(&x, None).is_some();
                assert_eq!(is_allowed, is_member(&x), "{x:?} {allowed:?}");
            }
        }
        assert!(n_refused > 5 && n_checked > 500, "{n_refused} {n_checked}");
    }

    /// a(x) = Σ_i c_i sin(i + x_i).
    struct Waves;

    impl Objective for Waves {
        fn values(&mut self, points: ArrayView2<f64>, out: &mut [f64]) {
            for (row, out) in points.rows().into_iter().zip(out) {
                let terms = row.iter().enumerate();
                *out = terms
                    .map(|(i, x)| (i + 1) as f64 * (i as f64 + x).sin())
                    .sum();
            }
        }

        fn value_and_gradient(&mut self, x: &[f64], gradient: &mut [f64]) -> f64 {
            let terms = x.iter().enumerate();
            let slopes = terms.map(|(i, x)| (i + 1) as f64 * (i as f64 + x).cos());
            gradient
                .iter_mut()
                .zip(slopes)
                .for_each(|(g, slope)| *g = slope);
            let terms = x.iter().enumerate();
            terms
                .map(|(i, x)| (i + 1) as f64 * (i as f64 + x).sin())
                .sum()
        }
    }

    #[test]
    fn gradients_on_restricted_rows_equal_finite_differences() {
        let coordinates = vec![
            Coordinate::Continuous,
            Coordinate::Categorical { n: 3 },
            Coordinate::Continuous,
            integer(1, 9, true),
            Coordinate::Continuous,
        ];
        let full = Arc::new(Domain::new_box(coordinates).unwrap());
        let allowed = vec![
            Some(Allowed::Interval(0.2, 0.5)),
            Some(Allowed::Levels(vec![0, 2])),
            Some(Allowed::Columns(vec![0.25, 0.75])),
            Some(Allowed::Steps(2, 5)),
            Some(Allowed::Columns(vec![0.1])),
        ];
        let restriction = Restriction::of_box(&full, allowed, &[true; 5], vec![None; 5]).unwrap();
        assert_eq!(restriction.domain().width(), 6);
        let x = [0.3, 1.0, 0.0, 0.0, 1.0, 0.6];
        let (mut waves, mut gradient) = (Waves, [0.0; 6]);
        let mut lifted = restriction.lifted(&mut waves);
        let value = lifted.value_and_gradient(&x, &mut gradient);
        for i in 0..6 {
            let mut moved = x;
            moved[i] += 1e-6;
            let mut out = [0.0];
            lifted.values(ArrayView1::from(&moved).insert_axis(Axis(0)), &mut out);
            assert!(((out[0] - value) / 1e-6 - gradient[i]).abs() < 1e-4, "{i}");
        }
        let full = restriction.lift(&x);
        assert_eq!((full[0], full[4], full[6]), (0.2 + 0.3 * 0.3, 0.75, 0.1));
    }
}
