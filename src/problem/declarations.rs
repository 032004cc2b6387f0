//! Declarations of named parameters, checks of the declarations, and the conditions among the parameters.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Parameter;
use super::conditions::{Condition, Conditions};
use crate::error::{Error, Result};

/// The largest number of columns of a space.
pub(super) const MAX_COLUMNS: usize = 4096;

/// The role of a space: points to suggest, or contexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// Points that are suggested.
    Params,
    /// Contexts, whose parameters do not have conditions.
    Context,
}

impl Role {
    /// The optimizer's argument that declares the space, for messages.
    fn argument(self) -> &'static str {
        match self {
            Role::Params => "space",
            Role::Context => "context",
        }
    }

    /// Returns the error for an invalid point, with a message that starts with the argument's name.
    pub(super) fn error(self, message: &str) -> Error {
        match self {
            Role::Params => Error::InvalidPoint(format!("params{message}")),
            Role::Context => Error::InvalidContext(format!("context{message}")),
        }
    }
}

/// A named parameter and its conditions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Declaration {
    /// The name, which is unique in a space and shown in messages.
    pub name: String,
    /// The range of values, or the choices.
    pub parameter: Parameter,
    /// The names of other parameters, each with a list of levels. The parameter is active if each named parameter is
    /// active and has one of the listed levels.
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

/// Refuses a point with missing or unknown names. `is_there`: whether parameter i is given or may be missing;
/// `is_named`: whether the message names parameter i as expected; `unknown`: undeclared names, formatted for the
/// message.
pub(super) fn check_names<'a>(
    role: Role,
    names: impl Iterator<Item = &'a String> + Clone,
    is_there: impl Fn(usize) -> bool,
    is_named: impl Fn(usize) -> bool,
    unknown: &[String],
) -> Result<()> {
    let all = || names.clone().enumerate();
    let mut found = Vec::new();
    let mut missing = all().filter(|(i, _)| !is_there(*i)).peekable();
    if missing.peek().is_some() {
        found.push(format!("misses {}", list(missing.map(|(_, name)| name))));
    }
    if !unknown.is_empty() {
        found.push(format!("has unknown [{}]", unknown.join(", ")));
    }
    if found.is_empty() {
        return Ok(());
    }
    let expected = all().filter(|(i, _)| is_named(*i)).map(|(_, name)| name);
    Err(role.error(&format!(
        " {}: pass exactly the names {}",
        found.join(" and "),
        list(expected)
    )))
}

/// Formats a list of names as Python does.
pub(super) fn list<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    let quoted = names.into_iter().map(|name| format!("'{name}'"));
    format!("[{}]", quoted.collect::<Vec<_>>().join(", "))
}

/// Returns the conditions among all parameters. Refuses parameters without values, and conditions that cannot hold.
pub(super) fn conditions(role: Role, declared: &[Declaration]) -> Result<Conditions> {
    let argument = role.argument();
    let refuse = |why: String| Err(Error::InvalidSpace(format!("{argument}{why}")));
    let mut when = vec![Vec::new(); declared.len()];
    for (each, own) in declared.iter().zip(&mut when) {
        if each.parameter.n_levels() == Some(0) {
            return refuse(format!(
                "['{}'] has no values: give at least one",
                each.name
            ));
        }
        let mut named = BTreeSet::new();
        for (parent, levels) in &each.when {
            let refuse = |why: &str| {
                let name = &each.name;
                refuse(format!("['{name}'] has when={{'{parent}': …}}, {why}"))
            };
            let Some(at) = declared.iter().position(|other| other.name == *parent) else {
                return refuse(&format!(
                    "which is not a parameter of {argument}: name one of {}",
                    list(declared.iter().map(|other| &other.name))
                ));
            };
            let Some(n) = declared[at].parameter.n_levels() else {
                return refuse(&format!(
                    "and '{parent}' is a continuous Real: give that one a step, or make it an Integer, Ordinal or \
                     Categorical"
                ));
            };
            match levels.iter().max() {
                _ if !named.insert(at) => {
                    return refuse("which it names twice: name all levels at once");
                }
                None => return refuse("at no level: name at least one"),
                Some(last) if *last >= n => {
                    return refuse(&format!("at level {last} of {n}: name levels below {n}"));
                }
                Some(_) => own.push(Condition(at, levels.clone())),
            }
        }
    }
    Conditions::new(when).map_err(|circle| circle_error(role, declared, &circle))
}

fn circle_error(role: Role, declared: &[Declaration], circle: &[usize]) -> Error {
    Error::InvalidSpace(format!(
        "{}: {} depend on each other in a circle by when=: drop the condition of one of them",
        role.argument(),
        list(circle.iter().map(|&i| &declared[i].name))
    ))
}

/// Returns the conditions among the searched parameters. A condition on a constant parent is replaced by the parent's
/// own conditions.
pub(super) fn without_constants(
    role: Role,
    declared: &[Declaration],
    searched: &[usize],
    conditions: &Conditions,
) -> Result<Conditions> {
    let mut resolved: Vec<BTreeMap<usize, BTreeSet<u64>>> = vec![BTreeMap::new(); declared.len()];
    for &i in &conditions.order {
        let mut all: Vec<(usize, BTreeSet<u64>)> = Vec::new();
        for Condition(parent, levels) in &conditions.when[i] {
            match declared[*parent].parameter.is_constant() {
                true => all.extend(resolved[*parent].clone()),
                false => all.push((*parent, levels.iter().copied().collect())),
            }
        }
        for (parent, levels) in all {
            let own = resolved[i].entry(parent).or_insert_with(|| levels.clone());
            own.retain(|level| levels.contains(level));
            if own.is_empty() {
                return Err(Error::InvalidSpace(format!(
                    "{}['{}'] can never be active: its conditions on '{}' exclude each other",
                    role.argument(),
                    declared[i].name,
                    declared[parent].name
                )));
            }
        }
    }
    let kept = searched.iter().map(|&i| {
        let own = resolved[i].iter().filter_map(|(parent, levels)| {
            let at = searched.binary_search(parent).ok()?;
            Some(Condition(at, levels.iter().copied().collect()))
        });
        own.collect()
    });
    Conditions::new(kept.collect()).map_err(|circle| {
        let circle: Vec<usize> = circle.iter().map(|&k| searched[k]).collect();
        circle_error(role, declared, &circle)
    })
}

/// Refuses a space without columns or with too many columns. The error names the parameter with the most columns.
pub(super) fn check_width(role: Role, declared: &[Declaration]) -> Result<()> {
    let argument = role.argument();
    let widths = declared.iter().map(|each| each.parameter.width());
    let total = widths.clone().fold(0, usize::saturating_add);
    if total == 0 {
        return Err(Error::InvalidSpace(format!(
            "{argument} has constants alone: give at least one parameter to search, as {{'x': (0.0, 1.0)}}"
        )));
    }
    if total <= MAX_COLUMNS {
        return Ok(());
    }
    let widest = widths
        .enumerate()
        .max_by_key(|&(i, width)| (width, std::cmp::Reverse(i)));
    let widest = widest.filter(|(_, width)| *width > 1).map(|(i, width)| {
        let name = &declared[i].name;
        format!(
            ", of which {argument}['{name}'] has {width}, one for each choice; bl.Ordinal and bl.Integer have one column"
        )
    });
    Err(Error::InvalidSpace(format!(
        "the space has {total} columns, more than {MAX_COLUMNS}; merge some choices{}",
        widest.unwrap_or_default()
    )))
}
