//! Named parameters with conditions: which parameters are active, and how points are encoded.
//!
//! Notation: a point in the user's units is a list of numbers, one per parameter. None stands for a parameter that is
//! missing or inactive.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::conditions::{Condition, Conditions};
use super::declarations::{
    Declaration, Role, check_names, check_width, conditions, list, without_constants,
};
use super::parameter::Kind;
use super::restriction::{Allowed, Held, Restriction};
use super::{Domain, Parameter, Product, columns};
use crate::error::{Error, Result};

/// The parameters of a search space or of contexts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Saved", into = "Saved")]
pub struct Space {
    role: Role,
    declared: Vec<Declaration>,
    /// The conditions among all parameters, including constants.
    conditions: Conditions,
    /// The positions of the searched parameters (all but constants) among all parameters.
    searched: Vec<usize>,
    /// The columns of the searched parameters.
    at: Vec<std::ops::Range<usize>>,
    domain: Arc<Domain>,
}

impl Space {
    /// Creates a space. Refuses conditions on unknown or continuous parameters, conditions that can never hold, circles
    /// of conditions, and spaces without searched parameters or with too many columns.
    pub fn new(role: Role, declared: Vec<Declaration>) -> Result<Self> {
        let conditions = conditions(role, &declared)?;
        check_width(role, &declared)?;
        let is_searched = |i: &usize| !declared[*i].parameter.is_constant();
        let searched: Vec<usize> = (0..declared.len()).filter(is_searched).collect();
        let of_searched = without_constants(role, &declared, &searched, &conditions)?;
        let coordinates = searched
            .iter()
            .map(|&i| declared[i].parameter.kind().coordinate());
        let product = Product::new(coordinates.collect(), of_searched);
        Ok(Self {
            role,
            declared,
            conditions,
            searched,
            at: columns(&product).map(|(_, at)| at).collect(),
            domain: Arc::new(Domain::Box(product)),
        })
    }

    fn kind(&self, i: usize) -> &dyn Kind {
        self.declared[i].parameter.kind()
    }

    /// The value of a constant, or None if parameter i is searched.
    fn constant(&self, i: usize) -> Option<f64> {
        let parameter = &self.declared[i].parameter;
        parameter.is_constant().then(|| parameter.kind().member(0))
    }

    /// The encoded domain of the parameters that are searched.
    pub(crate) fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// The positions of the searched parameters among all parameters.
    pub(crate) fn searched(&self) -> &[usize] {
        &self.searched
    }

    /// The first column of each parameter whose choices have descriptors, and the vectors of its choices.
    pub(crate) fn descriptors(&self) -> Vec<(usize, Vec<Vec<f64>>)> {
        let searched = self.searched.iter().zip(&self.at);
        let described = searched.filter_map(|(&i, at)| match &self.declared[i].parameter {
            Parameter::Described(choices) => Some((at.start, choices.vectors().to_vec())),
            _ => None,
        });
        described.collect()
    }

    /// The number of parameters, including constants.
    pub(crate) fn n_parameters(&self) -> usize {
        self.declared.len()
    }

    /// Whether each parameter is active. A parameter is inactive if one of its parents is not given.
    pub(crate) fn active(&self, numbers: &[Option<f64>]) -> Vec<bool> {
        self.conditions.active(&self.levels(numbers))
    }

    /// Returns the numbers of a point, and fills in the constants.
    ///
    /// Refuses a point in which an active parameter is missing, or an inactive parameter is given. `unknown`:
    /// undeclared names, formatted for the message. NaN stands for a value that the caller refuses.
    pub(crate) fn complete(
        &self,
        numbers: &[Option<f64>],
        unknown: &[String],
    ) -> Result<Vec<Option<f64>>> {
        let n = self.declared.len();
        let levels = self.levels(numbers);
        let mut active = vec![true; n];
        // Whether a parameter is active and missing, or would be active at some values of missing parameters.
        let mut unsettled = vec![false; n];
        for &i in &self.conditions.order {
            let met = |Condition(parent, allowed): &Condition| {
                active[*parent] && allowed.binary_search(&levels[*parent]).is_ok()
            };
            let own = &self.conditions.when[i];
            let is_active = own.iter().all(met);
            unsettled[i] = match is_active {
                true => levels[i] == NO_LEVEL,
                false => own.iter().all(|each| unsettled[each.0] || met(each)),
            };
            active[i] = is_active;
            if !active[i] && !unsettled[i] && numbers[i].is_some() {
                return Err(self.inactive(i, numbers[i]));
            }
        }
        let given = |i: usize| numbers[i].is_some() || self.constant(i).is_some();
        let is_named = |i: usize| active[i] || numbers[i].is_some();
        self.check_names(|i| given(i) || !active[i], is_named, unknown)?;
        let number = |i: usize| active[i].then(|| self.constant(i).or(numbers[i])).flatten();
        Ok((0..n).map(number).collect())
    }

    /// Refuses names that are not in the space.
    pub(crate) fn check_known(&self, unknown: &[String]) -> Result<()> {
        self.check_names(|_| true, |_| true, unknown)
    }

    /// The columns of a point that `complete` returned.
    pub(crate) fn encode(&self, numbers: &[Option<f64>]) -> Vec<f64> {
        let searched = self.only_searched(numbers);
        self.encode_searched(|k| searched[k])
    }

    /// Returns the columns of a point, given the number of each searched parameter (None if inactive).
    pub(crate) fn encode_searched(&self, number: impl Fn(usize) -> Option<f64>) -> Vec<f64> {
        let mut x = vec![0.0; self.domain.width()];
        for (k, (&i, at)) in self.searched.iter().zip(&self.at).enumerate() {
            let kind = self.kind(i);
            match number(k) {
                Some(number) => kind.encode(number, &mut x[at.clone()]),
                None => x[at.clone()].fill(kind.coordinate().inactive()),
            }
        }
        x
    }

    /// The numbers of the searched parameters (None if inactive) at the point nearest to these columns.
    pub(crate) fn decode_searched(&self, x: &[f64]) -> Vec<Option<f64>> {
        let active = self.domain.product().and_then(|product| product.active(x));
        let is_active = |k: usize| active.as_ref().is_none_or(|active| active[k]);
        let all = self.searched.iter().zip(&self.at).enumerate();
        let number = |(k, (i, at)): (usize, (&usize, &std::ops::Range<usize>))| {
            is_active(k).then(|| self.kind(*i).decode(&x[at.clone()]))
        };
        all.map(number).collect()
    }

    /// The numbers of all parameters (None if inactive) at the point nearest to these columns.
    pub(crate) fn decode(&self, x: &[f64]) -> Vec<Option<f64>> {
        self.spread(&self.decode_searched(x))
    }

    /// Selects the numbers of the searched parameters from the numbers of all parameters.
    pub(crate) fn only_searched(&self, numbers: &[Option<f64>]) -> Vec<Option<f64>> {
        self.searched.iter().map(|&i| numbers[i]).collect()
    }

    /// Returns the numbers of all parameters, given the numbers of the searched parameters (None if inactive).
    pub(crate) fn spread(&self, searched: &[Option<f64>]) -> Vec<Option<f64>> {
        let constants = (0..self.declared.len()).map(|i| self.constant(i));
        let mut numbers: Vec<Option<f64>> = constants.collect();
        for (&i, number) in self.searched.iter().zip(searched) {
            numbers[i] = *number;
        }
        if !self.conditions.is_empty() {
            let active = self.active(&numbers);
            for (number, active) in numbers.iter_mut().zip(active) {
                *number = number.filter(|_| active);
            }
        }
        numbers
    }

    /// Refuses n numbers that are not a point of this space. A point has one number per searched parameter (None if
    /// inactive).
    pub(crate) fn check(&self, n: usize, number: impl Fn(usize) -> Option<f64>) -> Result<()> {
        let is_value = |kind: &dyn Kind, number| kind.checked(number) == Some(number);
        self.check_numbers(n, number, is_value, |kind| kind.expected())
    }

    /// Refuses numbers that cannot be the point of a measurement. A measurement may lie beyond bounds and between steps.
    pub(crate) fn check_measured(&self, numbers: &[Option<f64>]) -> Result<()> {
        let is_usable = |kind: &dyn Kind, number| kind.measured(number) == Some(number);
        let expected = |kind: &dyn Kind| kind.expected_measured();
        self.check_numbers(numbers.len(), |k| numbers[k], is_usable, expected)
    }

    /// Whether each number of a point is a value of its parameter.
    pub(crate) fn has_values(&self, numbers: &[Option<f64>]) -> bool {
        self.all(numbers, |kind, number| kind.checked(number) == Some(number))
    }

    /// Whether a number of a measurement lies beyond a bound.
    pub(crate) fn is_beyond(&self, numbers: &[Option<f64>]) -> bool {
        !self.all(numbers, |kind, number| !kind.is_beyond(number))
    }

    fn all(&self, numbers: &[Option<f64>], holds: impl Fn(&dyn Kind, f64) -> bool) -> bool {
        let mut kinds = self.searched.iter().map(|&i| self.kind(i)).zip(numbers);
        kinds.all(|(kind, number)| number.is_none_or(|number| holds(kind, number)))
    }

    /// Refuses n numbers, unless each number is usable and the active parameters have numbers.
    fn check_numbers(
        &self,
        n: usize,
        number: impl Fn(usize) -> Option<f64>,
        is_usable: impl Fn(&dyn Kind, f64) -> bool,
        expected: impl Fn(&dyn Kind) -> String,
    ) -> Result<()> {
        if n != self.searched.len() {
            let names = list(self.searched.iter().map(|&i| &self.declared[i].name));
            let message = format!(" has {n} numbers; give one for each of {names}");
            return Err(self.role.error(&message));
        }
        for (k, &i) in self.searched.iter().enumerate() {
            if let Some(number) = number(k)
                && !is_usable(self.kind(i), number)
            {
                let (name, expected) = (&self.declared[i].name, expected(self.kind(i)));
                let message = format!("['{name}']={number:?} is not usable: pass {expected}");
                return Err(self.role.error(&message));
            }
        }
        // A parent has a number if and only if it is active, because parents are checked by the same rule.
        let meets = |Condition(parent, levels): &Condition| {
            let kind = self.kind(self.searched[*parent]);
            number(*parent).is_some_and(|number| levels.binary_search(&kind.level(number)).is_ok())
        };
        let product = self.domain.product();
        let own = |k: usize| product.map_or(&[][..], |product| product.conditions_of(k));
        match (0..n).all(|k| number(k).is_some() == own(k).iter().all(meets)) {
            true => Ok(()),
            false => Err(self
                .role
                .error(" needs a number for each active parameter, and none for inactive ones")),
        }
    }

    /// The restriction to the members with these values of the searched parameters. A parameter with values is active
    /// at each of these members.
    pub(crate) fn restrict(&self, held: &[Option<Held>]) -> Result<Restriction> {
        if held.len() != self.searched.len() {
            let n = self.searched.len();
            let message = format!("fixed has {} entries; give one for each of {n}", held.len());
            return Err(Error::InvalidPoint(message));
        }
        let allowed = held.iter().enumerate().map(|(k, held)| {
            let held = held.as_ref();
            held.map(|held| self.allowed(self.searched[k], held))
                .transpose()
        });
        let allowed: Result<Vec<Option<Allowed>>> = allowed.collect();
        Restriction::of_box(&self.domain, allowed?, held.to_vec()).map_err(|k| {
            let i = self.searched[k];
            Error::InvalidPoint(format!(
                "fixed['{}'] is inactive where the other values of fixed hold: leave it out, as it needs {}",
                self.declared[i].name,
                self.in_words(i)
            ))
        })
    }

    /// The values that searched parameter k may have, or None if it is continuous or has more than `limit` values.
    pub(crate) fn values_of(
        &self,
        k: usize,
        held: Option<&Held>,
        limit: usize,
    ) -> Option<Vec<f64>> {
        let kind = self.kind(self.searched[k]);
        let levels = || {
            let n = kind.coordinate().levels()?;
            (n <= limit as u64).then(|| (0..n).map(|level| kind.member(level)))
        };
        match held {
            Some(Held::Values(values)) => (values.len() <= limit).then(|| values.clone()),
            Some(Held::Range(low, high)) => {
                let inside = levels()?.filter(|value| (low..=high).contains(&value));
                Some(inside.collect())
            }
            None => Some(levels()?.collect()),
        }
    }

    /// The allowed part of the coordinate of parameter i.
    fn allowed(&self, i: usize, held: &Held) -> Result<Allowed> {
        let kind = self.kind(i);
        let refuse = |got: String, expected: &str| {
            Err(Error::InvalidPoint(format!(
                "fixed['{}']={got} is not usable: pass {expected}",
                self.declared[i].name
            )))
        };
        let column = |number: f64| {
            let mut u = [0.0];
            kind.encode(number, &mut u);
            u[0]
        };
        let coordinate = kind.coordinate();
        match held {
            Held::Values(values) => {
                let unusable = values.iter().find(|&&v| kind.checked(v) != Some(v));
                if let Some(number) = unusable {
                    return refuse(format!("{number:?}"), &kind.expected());
                }
                if values.is_empty() {
                    return refuse("[]".to_string(), "at least one value");
                }
                Ok(match coordinate.levels() {
                    Some(_) => {
                        let mut levels: Vec<u64> = values.iter().map(|&v| kind.level(v)).collect();
                        levels.sort_unstable();
                        levels.dedup();
                        Allowed::Levels(levels)
                    }
                    None => {
                        let mut columns: Vec<f64> = values.iter().map(|&v| column(v)).collect();
                        columns.sort_by(f64::total_cmp);
                        columns.dedup();
                        Allowed::Columns(columns)
                    }
                })
            }
            Held::Range(low, high) => {
                let got = format!("({low:?}, {high:?})");
                let is_inside = |end: f64| end.is_finite() && !kind.is_beyond(end);
                let is_range = low <= high && is_inside(*low) && is_inside(*high);
                if !coordinate.is_ordered() || !is_range {
                    return refuse(
                        got,
                        "(low, high) with low <= high inside the bounds of a number",
                    );
                }
                let Some(n) = coordinate.levels() else {
                    return Ok(Allowed::Interval(column(*low), column(*high)));
                };
                let (mut first, mut last) = (kind.level(*low), kind.level(*high));
                first += u64::from(kind.member(first) < *low);
                if kind.member(last) > *high {
                    last = last.wrapping_sub(1);
                }
                match first <= last && last < n {
                    true => Ok(Allowed::Steps(first, last)),
                    false => refuse(got, "a range with at least one value"),
                }
            }
        }
    }

    /// The level of each parameter: 0 for a constant, `NO_LEVEL` for a missing parameter.
    fn levels(&self, numbers: &[Option<f64>]) -> Vec<u64> {
        let level = |(i, number): (usize, &Option<f64>)| match number {
            _ if self.constant(i).is_some() => 0,
            Some(number) if !number.is_nan() => self.kind(i).level(*number),
            _ => NO_LEVEL,
        };
        numbers.iter().enumerate().map(level).collect()
    }

    fn inactive(&self, i: usize, number: Option<f64>) -> Error {
        let number = number.filter(|number| !number.is_nan());
        let label = |number| format!("={}", self.kind(i).label(number));
        self.role.error(&format!(
            "['{}']{} is inactive here: leave it out, as it needs {}",
            self.declared[i].name,
            number.map(label).unwrap_or_default(),
            self.in_words(i)
        ))
    }

    /// The conditions of a parameter in words, such as: kernel='poly' and n in [1, 2].
    fn in_words(&self, i: usize) -> String {
        let words = self.conditions.when[i]
            .iter()
            .map(|Condition(parent, levels)| {
                let (name, kind) = (&self.declared[*parent].name, self.kind(*parent));
                let label = |level: &u64| kind.label(kind.member(*level));
                let labels: Vec<String> = levels.iter().map(label).collect();
                match &labels[..] {
                    [one] => format!("{name}={one}"),
                    several => format!("{name} in [{}]", several.join(", ")),
                }
            });
        words.collect::<Vec<_>>().join(" and ")
    }

    fn check_names(
        &self,
        is_there: impl Fn(usize) -> bool,
        is_named: impl Fn(usize) -> bool,
        unknown: &[String],
    ) -> Result<()> {
        let names = self.declared.iter().map(|each| &each.name);
        check_names(self.role, names, is_there, is_named, unknown)
    }
}

/// The saved form of a space, which is read through the constructor and its checks.
type Saved = (Role, Vec<Declaration>);

impl TryFrom<Saved> for Space {
    type Error = Error;

    fn try_from((role, declared): Saved) -> Result<Self> {
        Space::new(role, declared)
    }
}

impl From<Space> for Saved {
    fn from(space: Space) -> Self {
        (space.role, space.declared)
    }
}

/// The level of a missing parameter, which does not satisfy any condition.
const NO_LEVEL: u64 = u64::MAX;
