//! Checks of the declarations of a space, and the conditions among its searched parameters.

use std::collections::{BTreeMap, BTreeSet};

use super::Parameter;
use crate::domain::{Condition, Conditions, order};
use crate::error::{Error, Result};

/// Formats a list of names as Python does.
pub(super) fn list(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    format!("[{}]", quoted.join(", "))
}

/// Refuses conditions that form a circle, and names its parameters.
pub(super) fn refuse_circles(
    argument: &str,
    names: &[String],
    when: &[Vec<Condition>],
) -> Result<()> {
    let parents = |i: usize| when[i].iter().map(|condition| condition.0);
    let Err(waiting) = order(when) else {
        return Ok(());
    };
    let mut path = vec![waiting[0]];
    loop {
        let last = path[path.len() - 1];
        let Some(next) = parents(last).find(|parent| waiting.contains(parent)) else {
            return Ok(());
        };
        if let Some(start) = path.iter().position(|&i| i == next) {
            let circle: Vec<String> = path[start..].iter().map(|&i| names[i].clone()).collect();
            return Err(Error::InvalidSpace(format!(
                "{argument}: {} depend on each other in a circle by when=: drop the condition of one of them",
                list(&circle)
            )));
        }
        path.push(next);
    }
}

/// Returns the conditions between the searched parameters. A constant parent is active if and only if the conditions of
/// that parent hold. So these conditions replace a condition on a constant parent.
pub(super) fn without_constants(
    argument: &str,
    names: &[String],
    parameters: &[Parameter],
    searched: &[(usize, std::ops::Range<usize>)],
    conditions: &Conditions,
) -> Result<Vec<Vec<Condition>>> {
    let mut resolved: Vec<BTreeMap<usize, BTreeSet<u64>>> = vec![BTreeMap::new(); names.len()];
    for &i in &conditions.order {
        let mut own: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
        let mut add = |parent: usize, levels: BTreeSet<u64>| {
            let both = match own.get(&parent) {
                Some(found) => found & &levels,
                None => levels,
            };
            own.insert(parent, both);
        };
        for Condition(parent, levels) in &conditions.when[i] {
            match parameters[*parent].is_constant() {
                true => resolved[*parent]
                    .iter()
                    .for_each(|(at, levels)| add(*at, levels.clone())),
                false => add(*parent, levels.iter().copied().collect()),
            }
        }
        if let Some((parent, _)) = own.iter().find(|(_, levels)| levels.is_empty()) {
            return Err(Error::InvalidSpace(format!(
                "{argument}['{}'] can never be active: its conditions on '{}' exclude each other",
                names[i], names[*parent]
            )));
        }
        resolved[i] = own;
    }
    let place = |parent: usize| searched.iter().position(|(i, _)| *i == parent);
    let kept = searched.iter().map(|(i, _)| {
        let own = resolved[*i].iter();
        own.filter_map(|(parent, levels)| {
            place(*parent).map(|at| Condition(at, levels.iter().copied().collect()))
        })
        .collect()
    });
    Ok(kept.collect())
}

/// Returns the error of a box with too many columns. The error names the parameter with the most columns.
pub(super) fn name_the_widest(
    argument: &str,
    names: &[String],
    parameters: &[Parameter],
    error: Error,
) -> Error {
    let widest = (0..names.len()).max_by_key(|&i| (parameters[i].width(), std::cmp::Reverse(i)));
    match (error, widest) {
        (Error::InvalidSpace(what), Some(i)) if parameters[i].width() > 1 => {
            Error::InvalidSpace(format!(
                "{what}, of which {argument}['{}'] has {}, one for each choice; bl.Ordinal and bl.Integer have one \
                 column",
                names[i],
                parameters[i].width()
            ))
        }
        (error, _) => error,
    }
}
