//! Checks of method arguments.

use ndarray::ArrayView2;

use super::Optimizer;
use crate::error::{Error, Result, refuse};
use crate::maximize::feasible::Feasible;
use crate::problem::Domain;

impl Optimizer {
    /// Refuses rows that are not valid (x, context) rows of this optimizer.
    pub(crate) fn check_rows(&self, rows: ArrayView2<f64>) -> Result<()> {
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

    pub(super) fn check_constraints(&self, feasible: Feasible) -> Result<()> {
        match self.definition.problem.domain().as_ref() {
            Domain::Candidates(_) if feasible.is_constrained() => Err(refuse(
                "constraints",
                "functions",
                "candidates do not support constraints; leave out the rows that violate them",
            )),
            _ => Ok(()),
        }
    }
}
