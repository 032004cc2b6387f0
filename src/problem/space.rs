//! Named parameters with conditions: which of them are active, and the encoding of a point.
//!
//! Notation: a point in the user's units is a list of numbers, one per parameter; None stands for a parameter that is
//! not given or inactive.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Parameter;
use super::declaration_checks::{list, name_the_widest, refuse_circles, without_constants};
use crate::domain::{Condition, Conditions, Coordinate, Domain};
use crate::error::{Error, Result};

/// A parameter as it is declared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Declaration {
    /// The name, which is unique in a space. Messages use it.
    pub name: String,
    /// The range of values, or the choices.
    pub parameter: Parameter,
    /// The parameter is active if each of these other parameters is active and has one of the given levels.
    pub when: Vec<(String, Vec<u64>)>,
}

impl Declaration {
    /// A parameter that is always active.
    pub fn new(name: &str, parameter: Parameter) -> Self {
        Self {
            name: name.to_string(),
            parameter,
            when: Vec::new(),
        }
    }
}

/// What the points of a space are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// The points are suggested.
    Params,
    /// A context has no conditions.
    Context,
}

/// The parameters of a search space or of contexts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Saved", into = "Saved")]
pub struct Space {
    role: Role,
    names: Vec<String>,
    parameters: Vec<Parameter>,
    /// The conditions among all parameters, constants included; None if there are none.
    conditions: Option<Conditions>,
    /// The numbers of the parameters that are not constants, with their columns.
    searched: Vec<(usize, std::ops::Range<usize>)>,
    domain: Arc<Domain>,
}

impl Space {
    /// Refuses conditions on unknown or continuous parameters, conditions that can never hold or that form a circle,
    /// and spaces with constants alone or too many columns.
    pub fn new(role: Role, declared: Vec<Declaration>) -> Result<Self> {
        let argument = role.argument();
        let names: Vec<String> = declared.iter().map(|each| each.name.clone()).collect();
        let (mut parameters, mut named) = (Vec::new(), Vec::new());
        for each in declared {
            parameters.push(each.parameter);
            named.push(each.when);
        }
        let mut when = vec![Vec::new(); names.len()];
        for (i, own) in named.into_iter().enumerate() {
            for (parent, levels) in own {
                let what = format!("{argument}['{}'] has when={{'{parent}': …}}", names[i]);
                let refuse = |why: String| Err(Error::InvalidSpace(format!("{what}, {why}")));
                let Some(at) = names.iter().position(|name| *name == parent) else {
                    return refuse(format!(
                        "which is not a parameter of {argument}: name one of {}",
                        list(&names)
                    ));
                };
                if parameters[at].n_levels().is_none() {
                    return refuse(format!(
                        "and '{parent}' is a continuous Real: give that one a step, or make it an Integer, Ordinal or \
                         Categorical"
                    ));
                }
                when[i].push(Condition(at, levels));
            }
        }
        refuse_circles(argument, &names, &when)?;
        let coordinates: Vec<Coordinate> = parameters.iter().map(coordinate).collect();
        let conditions = Conditions::new(&coordinates, when)?;
        let mut searched = Vec::new();
        let mut width = 0;
        for (i, parameter) in parameters.iter().enumerate() {
            if !parameter.is_constant() {
                searched.push((i, width..width + parameter.width()));
                width += parameter.width();
            }
        }
        if searched.is_empty() {
            return Err(Error::InvalidSpace(format!(
                "{argument} has constants alone: give at least one parameter to search, as {{'x': (0.0, 1.0)}}"
            )));
        }
        let of_searched = match &conditions {
            None => vec![Vec::new(); searched.len()],
            Some(conditions) => {
                without_constants(argument, &names, &parameters, &searched, conditions)?
            }
        };
        let kept = searched.iter().map(|(i, _)| coordinates[*i].clone());
        let domain = Domain::conditional_box(kept.collect(), of_searched)
            .map_err(|error| name_the_widest(argument, &names, &parameters, error))?;
        Ok(Self {
            role,
            names,
            parameters,
            conditions,
            searched,
            domain: Arc::new(domain),
        })
    }

    /// The parameters as they were declared.
    fn declared(&self) -> Vec<Declaration> {
        let when = |i: usize| {
            let own = self.conditions.iter().flat_map(move |all| &all.when[i]);
            own.map(|Condition(parent, levels)| (self.names[*parent].clone(), levels.clone()))
                .collect()
        };
        let named = self.names.iter().zip(&self.parameters).enumerate();
        named
            .map(|(i, (name, parameter))| Declaration {
                name: name.clone(),
                parameter: parameter.clone(),
                when: when(i),
            })
            .collect()
    }

    /// The encoded domain of the parameters that are searched.
    pub(crate) fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// The numbers of the parameters that are searched: all except constants.
    pub(crate) fn searched(&self) -> impl Iterator<Item = usize> {
        self.searched.iter().map(|(i, _)| *i)
    }

    /// The number of parameters, constants included.
    pub(crate) fn n_parameters(&self) -> usize {
        self.parameters.len()
    }

    /// The number of parameters that are searched.
    pub(crate) fn n_searched(&self) -> usize {
        self.searched.len()
    }

    /// Whether each parameter is active. A parameter is inactive if one of its parents is not given.
    pub(crate) fn active(&self, numbers: &[Option<f64>]) -> Vec<bool> {
        match &self.conditions {
            None => vec![true; self.names.len()],
            Some(conditions) => conditions.active(&self.levels(numbers)),
        }
    }

    /// The numbers of a point, with constants filled in.
    ///
    /// Refuses a point with missing or inactive parameters. `unknown` are other names that were given, as the message
    /// shows them; NaN stands for a value that the caller refuses.
    pub(crate) fn complete(
        &self,
        numbers: &[Option<f64>],
        unknown: &[String],
    ) -> Result<Vec<Option<f64>>> {
        let levels = self.levels(numbers);
        let mut active = vec![true; self.names.len()];
        // Missing active parameters, and the children that depend on them.
        let mut unsettled = vec![false; self.names.len()];
        if let Some(conditions) = &self.conditions {
            for &i in &conditions.order {
                let met = |Condition(parent, allowed): &Condition| {
                    active[*parent] && allowed.binary_search(&levels[*parent]).is_ok()
                };
                let own = &conditions.when[i];
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
        }
        let given = |i: usize| numbers[i].is_some() || self.parameters[i].is_constant();
        let named: Vec<bool> = (0..self.names.len())
            .map(|i| active[i] || numbers[i].is_some())
            .collect();
        self.check_names(|i| given(i) || !active[i], &named, unknown)?;
        let number = |i: usize| match self.parameters[i].is_constant() {
            true => Some(self.parameters[i].kind().member(0)),
            false => numbers[i],
        };
        Ok((0..self.names.len())
            .map(|i| active[i].then(|| number(i)).flatten())
            .collect())
    }

    /// Refuses missing and unknown names in a space without conditions, before any value is read.
    pub(crate) fn check_given(&self, given: &[bool], unknown: &[String]) -> Result<()> {
        if self.conditions.is_some() {
            return Ok(());
        }
        let is_there = |i: usize| given[i] || self.parameters[i].is_constant();
        self.check_names(is_there, &vec![true; self.names.len()], unknown)
    }

    /// Refuses names that are not in the space.
    pub(crate) fn check_known(&self, unknown: &[String]) -> Result<()> {
        self.check_names(|_| true, &vec![true; self.names.len()], unknown)
    }

    /// The columns of a point that `complete` returned.
    pub(crate) fn encode(&self, numbers: &[Option<f64>]) -> Vec<f64> {
        self.encode_searched(&self.only_searched(numbers))
    }

    /// The columns of the numbers of the searched parameters; None for inactive ones.
    pub(crate) fn encode_searched(&self, numbers: &[Option<f64>]) -> Vec<f64> {
        let mut x = vec![0.0; self.domain.width()];
        for ((i, at), number) in self.searched.iter().zip(numbers) {
            let kind = self.parameters[*i].kind();
            match number {
                Some(number) => kind.encode(*number, &mut x[at.clone()]),
                None => x[at.clone()].fill(kind.coordinate().inactive()),
            }
        }
        x
    }

    /// The numbers of the searched parameters at the point nearest to these columns; None for inactive ones.
    pub(crate) fn decode_searched(&self, x: &[f64]) -> Vec<Option<f64>> {
        let number = |(i, at): &(usize, std::ops::Range<usize>)| {
            Some(self.parameters[*i].kind().decode(&x[at.clone()]))
        };
        let numbers: Vec<Option<f64>> = self.searched.iter().map(number).collect();
        match self.conditions {
            None => numbers,
            Some(_) => self.only_searched(&self.spread(&numbers)),
        }
    }

    /// The numbers of the point nearest to these columns; None for inactive parameters.
    pub(crate) fn decode(&self, x: &[f64]) -> Vec<Option<f64>> {
        self.spread(&self.decode_searched(x))
    }

    /// The numbers of the searched parameters among the numbers of all.
    pub(crate) fn only_searched(&self, numbers: &[Option<f64>]) -> Vec<Option<f64>> {
        self.searched().map(|i| numbers[i]).collect()
    }

    /// The numbers of all parameters from the numbers of the searched ones; None for inactive parameters.
    pub(crate) fn spread(&self, searched: &[Option<f64>]) -> Vec<Option<f64>> {
        let parameters = self.parameters.iter();
        let mut numbers: Vec<Option<f64>> = parameters
            .map(|each| each.is_constant().then(|| each.kind().member(0)))
            .collect();
        for ((i, _), number) in self.searched.iter().zip(searched) {
            numbers[*i] = *number;
        }
        if self.conditions.is_some() {
            let active = self.active(&numbers);
            for (number, active) in numbers.iter_mut().zip(active) {
                *number = number.filter(|_| active);
            }
        }
        numbers
    }

    /// Refuses numbers of the searched parameters that are not those of one point of this space.
    pub(crate) fn check(&self, searched: &[Option<f64>]) -> Result<()> {
        if searched.len() != self.searched.len() {
            return Err(self.role.error(format!(
                "{} has {} numbers; give one for each of {}",
                self.role.point(),
                searched.len(),
                list(
                    &self
                        .searched()
                        .map(|i| self.names[i].clone())
                        .collect::<Vec<_>>()
                )
            )));
        }
        for ((i, _), number) in self.searched.iter().zip(searched) {
            let kind = self.parameters[*i].kind();
            if let Some(number) = number
                && kind.checked(*number) != Some(*number)
            {
                return Err(self.role.error(format!(
                    "{}['{}']={number:?} is not usable: pass {}",
                    self.role.point(),
                    self.names[*i],
                    kind.expected()
                )));
            }
        }
        let is_complete = match self.conditions {
            None => searched.iter().all(Option::is_some),
            Some(_) => {
                let mut numbers = self.spread(&vec![None; searched.len()]);
                for ((i, _), number) in self.searched.iter().zip(searched) {
                    numbers[*i] = *number;
                }
                let active = self.active(&numbers);
                self.searched
                    .iter()
                    .zip(searched)
                    .all(|((i, _), number)| number.is_some() == active[*i])
            }
        };
        match is_complete {
            true => Ok(()),
            false => Err(self.role.error(format!(
                "{} needs a number for each active parameter, and none for inactive ones",
                self.role.point()
            ))),
        }
    }

    /// The level of each given parameter; 0 for constants.
    fn levels(&self, numbers: &[Option<f64>]) -> Vec<u64> {
        let each = self.parameters.iter().zip(numbers);
        each.map(|(parameter, number)| match number {
            _ if parameter.is_constant() => 0,
            Some(number) if !number.is_nan() => parameter.kind().level(*number),
            _ => NO_LEVEL,
        })
        .collect()
    }

    fn inactive(&self, i: usize, number: Option<f64>) -> Error {
        let (name, kind) = (&self.names[i], self.parameters[i].kind());
        let number = number.filter(|number| !number.is_nan());
        let label = number.map_or(String::new(), |number| format!("={}", kind.label(number)));
        self.role.error(format!(
            "{}['{name}']{label} is inactive here: leave it out, as it needs {}",
            self.role.point(),
            self.in_words(i)
        ))
    }

    /// The conditions of a parameter as part of a sentence: kernel='poly' and n in [1, 2].
    fn in_words(&self, i: usize) -> String {
        let own = self.conditions.iter().flat_map(|all| &all.when[i]);
        let words = own.map(|Condition(parent, levels)| {
            let (name, kind) = (&self.names[*parent], self.parameters[*parent].kind());
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
        named: &[bool],
        unknown: &[String],
    ) -> Result<()> {
        let all = || 0..self.names.len();
        let of = |those: Vec<usize>| those.iter().map(|&i| self.names[i].clone()).collect();
        let missing: Vec<String> = of(all().filter(|&i| !is_there(i)).collect());
        if missing.is_empty() && unknown.is_empty() {
            return Ok(());
        }
        let expected: Vec<String> = of(all().filter(|&i| named[i]).collect());
        let mut found = Vec::new();
        if !missing.is_empty() {
            found.push(format!("misses {}", list(&missing)));
        }
        if !unknown.is_empty() {
            found.push(format!("has unknown [{}]", unknown.join(", ")));
        }
        Err(self.role.error(format!(
            "{} {}: pass exactly the names {}",
            self.role.point(),
            found.join(" and "),
            list(&expected)
        )))
    }
}

/// The saved form: the declarations. Reading calls the constructor, which checks them.
type Saved = (Role, Vec<Declaration>);

impl TryFrom<Saved> for Space {
    type Error = Error;

    fn try_from((role, declared): Saved) -> Result<Self> {
        Space::new(role, declared)
    }
}

impl From<Space> for Saved {
    fn from(space: Space) -> Self {
        (space.role, space.declared())
    }
}

/// The level of a parameter that is not given; it meets no condition.
const NO_LEVEL: u64 = u64::MAX;

impl Role {
    /// The argument of an optimizer, for messages.
    fn argument(self) -> &'static str {
        match self {
            Role::Params => "space",
            Role::Context => "context",
        }
    }

    /// The argument that a point is passed as, for messages.
    fn point(self) -> &'static str {
        match self {
            Role::Params => "params",
            Role::Context => "context",
        }
    }

    fn error(self, message: String) -> Error {
        match self {
            Role::Params => Error::InvalidPoint(message),
            Role::Context => Error::InvalidContext(message),
        }
    }
}

fn coordinate(parameter: &Parameter) -> Coordinate {
    parameter.kind().coordinate().clone()
}
