//! The outcomes of a trial: values that are measured together or apart. One outcome is the objective, or two or three
//! outcomes are the objectives of a front; the others have bounds, or are only recorded.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Direction, Problem};
use crate::error::{Result, refuse};

/// The largest number of objectives.
const MAX_OBJECTIVES: usize = 3;

/// A declared outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The name, which is unique.
    pub name: String,
    /// How the outcome affects the choice of points.
    pub goal: Goal,
    /// The values that are possible. Reports of other values are refused.
    pub plausible: Interval,
}

/// How an outcome affects the choice of points.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Goal {
    /// The outcome is optimised. It may have bounds, too.
    Objective(Direction, Interval),
    /// The outcome is one of the objectives of a front. A trial whose value is not better than the reference, if one is
    /// given, does not count.
    Front(Direction, Option<f64>),
    /// The outcome must lie within bounds.
    Within(Interval),
    /// The outcome is stored. It is not modelled.
    Record,
}

/// The values from `low` to `high`, in the user's units. None means that there is no bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The smallest allowed value.
    pub low: Option<f64>,
    /// The largest allowed value.
    pub high: Option<f64>,
}

impl Interval {
    /// Whether a value lies within the bounds.
    pub fn contains(&self, value: f64) -> bool {
        self.low.is_none_or(|low| value >= low) && self.high.is_none_or(|high| value <= high)
    }

    /// The distance of a value from these values.
    pub(crate) fn distance(&self, value: f64) -> f64 {
        let below = self.low.map_or(0.0, |low| low - value);
        let above = self.high.map_or(0.0, |high| value - high);
        below.max(above).max(0.0)
    }

    /// Whether there is a bound.
    pub fn is_bounded(&self) -> bool {
        self.low.is_some() || self.high.is_some()
    }

    /// The bounds of the oriented value. A missing bound is infinite.
    pub(crate) fn oriented(&self, direction: Direction) -> (f64, f64) {
        let low = self.low.unwrap_or(f64::NEG_INFINITY);
        let high = self.high.unwrap_or(f64::INFINITY);
        match direction {
            Direction::Maximize => (low, high),
            Direction::Minimize => (-high, -low),
        }
    }
}

impl Outcome {
    /// The direction in which the values of this outcome are stored. Models compress long tails of low values, so
    /// values that may only exceed a bound from above are stored with the opposite sign.
    pub(crate) fn direction(&self) -> Direction {
        match self.goal {
            Goal::Objective(direction, _) | Goal::Front(direction, _) => direction,
            Goal::Within(Interval { low: None, .. }) => Direction::Minimize,
            Goal::Within(_) | Goal::Record => Direction::Maximize,
        }
    }

    /// Whether the outcome is an objective.
    pub fn is_objective(&self) -> bool {
        matches!(self.goal, Goal::Objective(..) | Goal::Front(..))
    }

    /// The goal of this outcome among the objectives of a front. A bound becomes the reference.
    fn of_front(self) -> Result<Self> {
        let Goal::Objective(direction, bounds) = self.goal else {
            return Ok(self);
        };
        let (reference, other) = match direction {
            Direction::Maximize => (bounds.low, bounds.high),
            Direction::Minimize => (bounds.high, bounds.low),
        };
        match other {
            None => Ok(Self {
                goal: Goal::Front(direction, reference),
                ..self
            }),
            Some(bound) => Err(refuse(
                "outcomes",
                format!("{:?} with the bound {bound}", self.name),
                "an objective among several has one bound on the worse side, from which it is worthless: declare a \
                 further outcome with this bound",
            )),
        }
    }

    /// The reference of an objective of a front, if it was declared.
    pub fn reference(&self) -> Option<f64> {
        match self.goal {
            Goal::Front(_, reference) => reference,
            _ => None,
        }
    }

    /// The bounds, if the outcome has any.
    pub fn bounds(&self) -> Option<Interval> {
        match self.goal {
            Goal::Objective(_, bounds) | Goal::Within(bounds) => {
                Some(bounds).filter(Interval::is_bounded)
            }
            Goal::Front(..) | Goal::Record => None,
        }
    }
}

impl Problem {
    /// Declares the outcomes of a trial. The direction of the problem becomes the direction of its first objective.
    /// Several objectives are the objectives of a front. Refuses equal names, bounds that no value satisfies, and more
    /// than three objectives.
    pub fn with_outcomes(self, outcomes: Vec<Outcome>) -> Result<Self> {
        let mut names = BTreeSet::new();
        for Outcome { name, goal, .. } in &outcomes {
            if !names.insert(name) {
                return Err(refuse(
                    "outcomes",
                    format!("{name:?} twice"),
                    "outcomes have different names",
                ));
            }
            let bounds = match goal {
                Goal::Objective(_, bounds) | Goal::Within(bounds) => *bounds,
                Goal::Front(..) | Goal::Record => Interval::default(),
            };
            let finite = |bound: Option<f64>| bound.is_none_or(f64::is_finite);
            let ordered = bounds
                .low
                .zip(bounds.high)
                .is_none_or(|(low, high)| low < high);
            if !(finite(bounds.low) && finite(bounds.high) && ordered) {
                return Err(refuse(
                    "outcomes",
                    format!(
                        "{name:?} with the bounds {:?} and {:?}",
                        bounds.low, bounds.high
                    ),
                    "bounds are finite, and the lower bound is below the upper bound",
                ));
            }
        }
        let n_objectives = outcomes.iter().filter(|it| it.is_objective()).count();
        if n_objectives > MAX_OBJECTIVES {
            return Err(refuse(
                "outcomes",
                format!("{n_objectives} objectives"),
                "at most three outcomes are objectives: give the others bounds, or record them",
            ));
        }
        let outcomes = match n_objectives {
            0 | 1 => outcomes,
            _ => outcomes
                .into_iter()
                .map(Outcome::of_front)
                .collect::<Result<_>>()?,
        };
        let objective = outcomes.iter().find(|outcome| outcome.is_objective());
        Ok(Self {
            direction: objective.map_or(self.direction, Outcome::direction),
            outcomes,
            ..self
        })
    }

    /// The position of the objective, or None if there is not exactly one.
    pub(crate) fn objective(&self) -> Option<usize> {
        let mut objectives = (0..self.outcomes.len()).filter(|&i| self.outcomes[i].is_objective());
        objectives.next().filter(|_| objectives.next().is_none())
    }

    /// The positions of the objectives of a front, or None without a front.
    pub(crate) fn front(&self) -> Option<Vec<usize>> {
        let is_part = |i: &usize| matches!(self.outcomes[*i].goal, Goal::Front(..));
        let found: Vec<usize> = (0..self.outcomes.len()).filter(is_part).collect();
        (!found.is_empty()).then_some(found)
    }

    /// The position of the objective, or of the first objective of a front.
    pub(crate) fn first_objective(&self) -> Option<usize> {
        self.outcomes.iter().position(Outcome::is_objective)
    }

    /// The direction in which the values of an outcome, or of f, are stored.
    pub(crate) fn direction_of(&self, outcome: Option<usize>) -> Direction {
        let declared = outcome.and_then(|outcome| self.outcomes.get(outcome));
        declared.map_or(self.direction, Outcome::direction)
    }
}
