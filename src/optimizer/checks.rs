//! Checks of points, contexts and fidelities before an event is logged.

use ndarray::ArrayView2;

use super::Optimizer;
use crate::domain::Domain;
use crate::error::{Error, Result};
use crate::ledger::Point;
use crate::maximize::feasible::Feasible;

impl Optimizer {
    /// Refuses rows that are not (x, context) rows of this optimizer.
    pub fn check_rows(&self, rows: ArrayView2<f64>) -> Result<()> {
        let (width, context_width) = self.ledger.widths();
        if rows.ncols() != width + context_width {
            return Err(Error::Shape(format!(
                "rows of {} columns, where point and context have {}",
                rows.ncols(),
                width + context_width
            )));
        }
        match rows.iter().find(|x| !x.is_finite()) {
            Some(bad) => Err(Error::InvalidPoint(format!(
                "the rows contain {bad}; all entries must be finite"
            ))),
            None => Ok(()),
        }
    }

    pub(super) fn check_point(&self, point: &Point) -> Result<()> {
        let (width, _) = self.ledger.widths();
        if point.x.len() != width {
            return Err(Error::InvalidPoint(format!(
                "a point of {} columns for a domain of {width}; encode it in the columns of the domain",
                point.x.len()
            )));
        }
        if point.x.iter().any(|x| !x.is_finite()) {
            return Err(Error::InvalidPoint(
                "a point with NaN or infinite coordinates; give finite ones".to_string(),
            ));
        }
        if point.given.iter().flatten().any(|x| !x.is_finite()) {
            return Err(Error::InvalidPoint(
                "a point given with NaN or infinite numbers; give finite ones".to_string(),
            ));
        }
        if let (Some(index), Domain::Candidates(list)) =
            (point.index, self.definition.domain.as_ref())
            && index >= list.nrows()
        {
            return Err(Error::InvalidPoint(format!(
                "candidate {index} does not exist: there are {}",
                list.nrows()
            )));
        }
        Ok(())
    }

    /// As `check_point`, for suggested points, which must also be in the box.
    pub(super) fn check_origin(&self, point: &Point) -> Result<()> {
        if matches!(self.definition.domain.as_ref(), Domain::Candidates(_)) {
            return Ok(());
        }
        if point.index.is_some() || !point.x.iter().all(|x| (0.0..=1.0).contains(x)) {
            return Err(Error::InvalidPoint(format!(
                "{point:?} is not a point of a box: its columns must be in [0, 1], and it must not have an index"
            )));
        }
        Ok(())
    }

    pub(super) fn check_constraints(&self, feasible: Feasible) -> Result<()> {
        match self.definition.domain.as_ref() {
            Domain::Candidates(_) if feasible.is_constrained() => Err(Error::InvalidSetting {
                name: "constraints",
                got: "functions".into(),
                expected: "candidates do not support constraints; leave out the rows that violate them",
            }),
            _ => Ok(()),
        }
    }

    pub(super) fn check_fidelity(&self, fidelity: Option<f64>) -> Result<()> {
        let Some(z) = fidelity else { return Ok(()) };
        if self.definition.settings.fidelity.is_none() {
            return Err(Error::InvalidFidelity(format!(
                "a fidelity (z = {z}) was given, but none is declared; declare it with fidelity="
            )));
        }
        if !(0.0..=1.0).contains(&z) {
            return Err(Error::InvalidFidelity(format!(
                "the fidelity z = {z} is not in [0, 1]; give one within the declared range"
            )));
        }
        Ok(())
    }

    pub(super) fn check_context(&self, context: &[f64]) -> Result<()> {
        let (_, width) = self.ledger.widths();
        if context.len() != width {
            return Err(Error::InvalidContext(match (width, context.len()) {
                (0, _) => "a context was given, but none is declared; declare it with context="
                    .to_string(),
                (_, 0) => "a context is declared but none was given; pass context=".to_string(),
                (_, got) => format!("a context of {got} columns, where {width} are declared"),
            }));
        }
        if context.iter().any(|z| !z.is_finite()) {
            return Err(Error::InvalidContext(
                "a context with NaN or infinite entries; give finite ones".to_string(),
            ));
        }
        Ok(())
    }
}
