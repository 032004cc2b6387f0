//! The problem in the user's units: its points, contexts, fidelities and direction.
//!
//! * [`parameter`]: the kinds of parameters; [`space`]: named parameters; [`declarations`] and their checks; [`point`]:
//!   one point; [`fidelity`]: the share of a full evaluation
//! * [`domain`]: the encoded form that strategies read, which is [`candidates`] or a [`product`] of coordinates with
//!   [`conditions`]; [`restriction`]: the members that one suggestion may have; [`sampling`]: uniform and evenly spread
//!   members
//! * [`outcomes`]: the outcomes of a trial; [`linear`]: linear constraints; [`polytope`]: the points that satisfy them;
//!   [`lattice`]: the points that satisfy constraints on discrete parameters
//!
//! This module checks the user's numbers and encodes them as columns. Strategies maximise over encoded points.

mod band;
pub mod candidates;
mod conditions;
mod declarations;
pub mod domain;
pub mod fidelity;
mod lattice;
mod linear;
mod outcomes;
pub mod parameter;
mod point;
mod polytope;
mod product;
mod restriction;
mod sampling;
mod simplices;
pub mod space;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

pub use candidates::{Candidates, Column, Rows};
#[cfg(test)]
pub use conditions::Condition;
pub use declarations::{Declaration, Role};
pub use domain::{Domain, Member, Objective};
pub use fidelity::{Fidelity, PowerCost};
pub(crate) use lattice::Lattice;
pub use linear::Linear;
pub(crate) use linear::LinearSet;
pub use outcomes::{Goal, Interval, Outcome};
pub use parameter::{
    Cell, Choices, Coordinate, Described, Integer, Kind, Offered, Parameter, Real,
};
pub use point::Point;
pub(crate) use product::indices;
pub use product::{Product, columns};
pub use restriction::Held;
pub(crate) use restriction::Restriction;
pub(crate) use sampling::{hold_inactive, unit_sequence, write_quantiles, write_spread};
pub use space::Space;

/// The unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// The number of suggestions so far. A result that arrives before the next suggestion has delay 1.
    Iterations,
    /// The time in seconds, given by the caller.
    Seconds,
}

/// Whether larger or smaller values are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Larger values are better.
    Maximize,
    /// Smaller values are better.
    Minimize,
}

impl Direction {
    /// Converts a value of f to a value to maximise, or back.
    pub(crate) fn oriented(self, value: f64) -> f64 {
        match self {
            Direction::Maximize => value,
            Direction::Minimize => -value,
        }
    }
}

/// The points that may be suggested.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Members {
    /// The points of a space of parameters.
    Space(Space),
    /// The rows of a list.
    Candidates(Candidates),
}

/// What the points of a request have in common with given values.
#[derive(Debug, Clone, PartialEq)]
pub enum Fixed {
    /// The values of each searched parameter of a space, or None for any value.
    Parameters(Vec<Option<Held>>),
    /// The numbers of the candidates that may be suggested, in ascending order.
    Rows(Vec<usize>),
}

/// Which value of a learning curve is the value of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CurveValue {
    /// The value at the last step.
    Last,
    /// The best value at any step.
    Best,
}

/// The learning curve of each trial, with a value at each of the steps 1, 2, …, `steps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Curve {
    /// The last step.
    pub steps: u32,
    /// Which value of the curve is the value of the trial.
    pub value: CurveValue,
}

/// Where a measurement lies relative to the points that may be suggested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// At a point that may be suggested.
    Member,
    /// Within the bounds, and between the steps of a parameter.
    Between,
    /// Beyond a bound, or at a row that is not a candidate.
    Outside,
}

/// The optimisation problem, which does not depend on the strategy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Problem {
    /// The points that may be suggested.
    pub members: Members,
    /// The parameters of the context, which the caller gives with each request. None if there is no context.
    pub context: Option<Space>,
    /// The range of fidelities. None if every trial is a full evaluation.
    pub fidelity: Option<Fidelity>,
    /// The learning curve of a trial. None if trials do not report steps.
    #[serde(default)]
    pub curve: Option<Curve>,
    /// Whether the problem is a maximisation or a minimisation.
    pub direction: Direction,
    /// The unit of the times of the log.
    pub clock: Clock,
    /// The outcomes of a trial. The list is empty if a trial has a single value without a name.
    #[serde(default)]
    pub outcomes: Vec<Outcome>,
}

impl Problem {
    /// Creates a maximisation problem over a space, without contexts or fidelities. The clock counts suggestions.
    pub fn new(space: Space) -> Self {
        Self {
            members: Members::Space(space),
            context: None,
            fidelity: None,
            curve: None,
            direction: Direction::Maximize,
            clock: Clock::Iterations,
            outcomes: Vec::new(),
        }
    }

    /// Creates a maximisation problem over a unit cube, with contexts in a second unit cube. Points equal their encoded
    /// columns.
    pub fn unit_cube(width: usize, context_width: usize, clock: Clock) -> Result<Self> {
        let cube = |role, name: &str, n: usize| {
            let unit = || Parameter::Real(Real::UNIT);
            let declared = (0..n).map(|i| Declaration::new(&format!("{name}{i}"), unit()));
            Space::new(role, declared.collect())
        };
        let context = match context_width {
            0 => None,
            n => Some(cube(Role::Context, "z", n)?),
        };
        Ok(Self {
            context,
            clock,
            ..Self::new(cube(Role::Params, "x", width)?)
        })
    }

    /// The encoded domain of the points.
    pub(crate) fn domain(&self) -> &Arc<Domain> {
        match &self.members {
            Members::Space(space) => space.domain(),
            Members::Candidates(candidates) => candidates.domain(),
        }
    }

    /// The encoded coordinates of a context, or an empty list if a context is not declared.
    pub(crate) fn context_coordinates(&self) -> &[Coordinate] {
        let context = self.context.as_ref();
        let product = context.and_then(|space| space.domain().product());
        product.map_or(&[], |product| product)
    }

    /// The descriptors of choices in a point followed by its context: the first column of each parameter whose choices
    /// have descriptors, and the vectors of its choices.
    pub(crate) fn descriptors(&self) -> Vec<(usize, Vec<Vec<f64>>)> {
        let of_points = match &self.members {
            Members::Space(space) => space.descriptors(),
            Members::Candidates(list) => list.descriptors(),
        };
        let context = self.context.iter().flat_map(Space::descriptors);
        let width = self.domain().width();
        let of_context = context.map(|(start, vectors)| (width + start, vectors));
        of_points.into_iter().chain(of_context).collect()
    }

    /// The numbers of columns of an encoded point and of an encoded context.
    pub(crate) fn widths(&self) -> (usize, usize) {
        let context = self.context.as_ref();
        let context_width = context.map_or(0, |space| space.domain().width());
        (self.domain().width(), context_width)
    }

    /// The numbers of searched parameters of a point (0 for candidates) and of a context.
    pub fn n_numbers(&self) -> (usize, usize) {
        let n = |space: &Space| space.searched().len();
        let n_searched = match &self.members {
            Members::Space(space) => n(space),
            Members::Candidates(_) => 0,
        };
        (n_searched, self.context.as_ref().map_or(0, n))
    }

    /// Refuses a point where nothing can have been measured. A measurement may lie beyond the bounds of a number, between
    /// its steps, or at a row that is not a candidate. Such points are never suggested.
    pub fn check_measured(&self, point: &Point) -> Result<()> {
        match (&self.members, point) {
            (Members::Space(space), Point::Numbers(numbers)) => space.check_measured(numbers),
            (Members::Candidates(list), Point::Numbers(numbers)) => list.check_measured(numbers),
            (_, Point::Candidate(_)) => self.check_point(point),
        }
    }

    /// Where a measurement lies relative to the points that may be suggested.
    pub(crate) fn position(&self, point: &Point) -> Position {
        match (&self.members, point) {
            (Members::Space(space), Point::Numbers(numbers)) => match space.is_beyond(numbers) {
                true => Position::Outside,
                false if space.is_member(numbers) => Position::Member,
                false => Position::Between,
            },
            (Members::Candidates(_), Point::Numbers(_)) => Position::Outside,
            (_, Point::Candidate(_)) => Position::Member,
        }
    }

    /// Refuses a point that is not in the domain.
    pub fn check_point(&self, point: &Point) -> Result<()> {
        match (&self.members, point) {
            (Members::Space(space), Point::Numbers(numbers)) => {
                space.check(numbers.len(), |k| numbers[k])?;
                space.check_linear(numbers)
            }
            (Members::Candidates(list), Point::Candidate(index)) if *index < list.n_rows() => {
                Ok(())
            }
            (Members::Candidates(list), Point::Candidate(index)) => {
                Err(Error::InvalidPoint(format!(
                    "candidate {index} does not exist: there are {}",
                    list.n_rows()
                )))
            }
            (Members::Space(_), Point::Candidate(index)) => Err(Error::InvalidPoint(format!(
                "candidate {index} is not a point of a space; give one number for each parameter"
            ))),
            (Members::Candidates(_), Point::Numbers(_)) => Err(Error::InvalidPoint(
                "a point of candidates is named by its row number".to_string(),
            )),
        }
    }

    /// Refuses numbers of a point if no point of the domain has them.
    pub(crate) fn check_part(&self, numbers: &[Option<f64>]) -> Result<()> {
        match &self.members {
            Members::Space(space) => space.check_part(numbers),
            Members::Candidates(_) => self.check_point(&Point::Numbers(numbers.to_vec())),
        }
    }

    /// The members that agree with `fixed`. Refuses values that are not usable, and values without a member.
    pub(crate) fn restrict(&self, fixed: &Fixed) -> Result<Restriction> {
        match (&self.members, fixed) {
            (Members::Space(space), Fixed::Parameters(held)) => space.restrict(held, "fixed"),
            (Members::Candidates(_), Fixed::Parameters(_)) => Err(Error::InvalidPoint(
                "the fixed values of candidates are given as row numbers".to_string(),
            )),
            (_, Fixed::Rows(rows)) => Restriction::to_rows(self.domain(), rows.clone()),
        }
    }

    /// The fixed values of a request. If the space has values that are not offered, they are restricted, even if the
    /// request does not fix values.
    pub(crate) fn fixed_or_offered(&self, fixed: Option<&Fixed>) -> Option<Fixed> {
        match &self.members {
            Members::Space(space) if fixed.is_none() && space.has_offered() => {
                Some(Fixed::Parameters(vec![None; space.searched().len()]))
            }
            _ => fixed.cloned(),
        }
    }

    /// Refuses a context that is undeclared, missing or out of range. A context has one number per searched parameter.
    pub fn check_context(&self, context: &[f64]) -> Result<()> {
        match (&self.context, context) {
            (None, []) => Ok(()),
            (None, _) => Err(Error::InvalidContext(
                "a context was given, but none is declared; declare it with context=".to_string(),
            )),
            (Some(_), []) => Err(Error::InvalidContext(
                "a context is declared but none was given; pass context=".to_string(),
            )),
            (Some(space), _) => space.check(context.len(), |k| Some(context[k])),
        }
    }

    /// Refuses a fidelity that is undeclared or out of range.
    pub fn check_fidelity(&self, fidelity: Option<f64>) -> Result<()> {
        match (&self.fidelity, fidelity) {
            (_, None) => Ok(()),
            (Some(declared), Some(value)) => declared.check_value(value),
            (None, Some(value)) => Err(Error::InvalidFidelity(format!(
                "a fidelity ({value}) was given, but none is declared; declare it with fidelity="
            ))),
        }
    }

    /// The columns of a point. Refuses a point of the wrong kind or length.
    pub fn encode(&self, point: &Point) -> Result<Vec<f64>> {
        match (&self.members, point) {
            (Members::Space(space), Point::Numbers(numbers))
                if numbers.len() == space.searched().len() =>
            {
                Ok(space.encode_searched(|k| numbers[k]))
            }
            (Members::Candidates(list), Point::Candidate(index)) if *index < list.n_rows() => {
                Ok(list.row(*index))
            }
            (Members::Candidates(list), Point::Numbers(numbers)) => {
                list.check_measured(numbers)?;
                Ok(list.encode_measured(numbers))
            }
            _ => self.check_point(point).map(|()| Vec::new()),
        }
    }

    /// Returns the point of a member. The values that a restriction fixes are unchanged.
    pub(crate) fn decode(&self, member: &Member, restriction: Option<&Restriction>) -> Point {
        match (&self.members, member.index) {
            (Members::Space(space), _) => {
                let mut numbers = space.decode_exactly(&member.x);
                if let Some(restriction) = restriction {
                    restriction.hold(&mut numbers);
                }
                let closest = |k, number| restriction.map_or(number, |own| own.closest(k, number));
                space.round_parts(&mut numbers, closest);
                Point::Numbers(numbers)
            }
            (Members::Candidates(_), Some(index)) => Point::Candidate(index),
            (Members::Candidates(list), None) => {
                let nearest = list.domain().snap(&mut member.x.clone());
                Point::Candidate(nearest.unwrap_or_default())
            }
        }
    }

    /// The number of a declared parameter, or of a column of candidates, at an encoded point. None if it is inactive or if
    /// the point is not a candidate.
    pub(crate) fn number_at(&self, parameter: usize, x: &[f64], index: Option<u32>) -> Option<f64> {
        match &self.members {
            Members::Space(space) => space.number_at(parameter, x),
            Members::Candidates(list) => list.number_at(index? as usize, parameter),
        }
    }

    /// Converts a predicate on points to a constraint for [`crate::maximize::feasible::Feasible::by`]. The predicate gets
    /// the value of each searched parameter as a number, or None if the parameter is inactive. Candidates always satisfy
    /// the constraint.
    pub fn constraint(
        &self,
        holds: impl Fn(&[Option<f64>]) -> bool,
    ) -> impl Fn(ArrayView2<f64>) -> Result<Vec<bool>> {
        move |rows| {
            let rows = rows.outer_iter();
            let answers = rows.map(|row| match &self.members {
                Members::Space(space) => holds(&space.decode_searched(&row.to_vec())),
                Members::Candidates(_) => true,
            });
            Ok(answers.collect())
        }
    }

    /// The encoded columns of a valid context, which has one number per searched parameter.
    pub fn encode_context(&self, context: &[f64]) -> Vec<f64> {
        match &self.context {
            None => Vec::new(),
            Some(space) => space.encode_searched(|k| context.get(k).copied()),
        }
    }

    /// Converts a fidelity in the user's units to z in [0, 1].
    pub(crate) fn z(&self, fidelity: Option<f64>) -> Option<f64> {
        let declared = self.fidelity.as_ref()?;
        fidelity.map(|value| declared.encode(value))
    }

    /// Converts z to a fidelity in the user's units. Returns None if the problem does not declare a fidelity.
    pub(crate) fn fidelity_at(&self, z: f64) -> Option<f64> {
        self.fidelity.as_ref().map(|declared| declared.decode(z))
    }
}
