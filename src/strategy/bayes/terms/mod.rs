//! The terms that are added to an acquisition.
//!
//! * [`success`]: the probability that a trial succeeds
//! * [`bounds`]: the probabilities that outcomes lie within their bounds
//! * [`front`]: the objectives of a front, which the acquisition contains
//! * [`expense`]: the expected duration or cost
//! * [`local_penalty`]: penalties near pending trials

pub mod bounds;
pub mod expense;
pub mod front;
pub mod local_penalty;
pub mod success;

use ndarray::Array2;

use crate::error::{Result, Stop};
use crate::gp::GaussianProcess;
use crate::problem::Objective;
use crate::strategy::Query;

/// A function that is added to an acquisition.
pub trait Term {
    /// The term as a function of the point, in this context.
    fn scorer<'b>(&'b mut self, context: &'b [f64]) -> Box<dyn Objective + 'b>;

    /// The values at all candidates.
    fn of_candidates(
        &mut self,
        list: &Array2<f64>,
        query: Query,
        _stop: &mut Stop,
    ) -> Result<Vec<f64>> {
        let mut values = vec![0.0; list.nrows()];
        self.scorer(query.context).values(list.view(), &mut values);
        Ok(values)
    }

    /// Whether a point is excluded, given the value of the term at this point.
    fn excludes(&self, _value: f64) -> bool {
        false
    }

    /// Whether the term is kept if every point has been observed without noise. The point with the largest mean is then
    /// suggested again.
    fn constrains(&self) -> bool {
        false
    }

    /// Prepares the term for a search that maximises the variance of f. Returns false if such a search does not use the
    /// term.
    fn prepare_for_variance(&mut self, _gp: &GaussianProcess) -> bool {
        false
    }

    /// The number of rows of a model whose solutions are kept for the candidates.
    fn n_rows(&self) -> usize {
        0
    }
}

/// The terms of an acquisition.
pub type Terms<'a> = Vec<Box<dyn Term + 'a>>;
