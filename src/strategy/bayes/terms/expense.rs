//! The term of durations or costs, which makes an acquisition an acquisition per unit of time or cost.

use crate::problem::Objective;
use crate::strategy::bayes::model::expense::ExpenseTerm;
use crate::strategy::bayes::terms::Term;

impl Term for ExpenseTerm<'_> {
    fn scorer<'b>(&'b mut self, _context: &'b [f64]) -> Box<dyn Objective + 'b> {
        Box::new(self)
    }
}
