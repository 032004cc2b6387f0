//! What an acquisition provides, and what it is given.

use ndarray::ArrayView2;

use crate::acquisition::Acquisition as Formula;
use crate::error::Result;
use crate::gp::GaussianProcess;
use crate::random::Rng;
use crate::strategy::Query;
use crate::strategy::bayes::acquisitions::bound::Bound;
use crate::strategy::bayes::acquisitions::box_search::BoxSearch;
use crate::strategy::bayes::acquisitions::draws::Draws;

/// The posterior that a point is chosen from, and how pending trials count.
pub struct Situation<'a> {
    pub gp: &'a mut GaussianProcess,
    /// The targets of the observed rows.
    pub targets: &'a [f64],
    /// The rows of pending trials.
    pub tail: ArrayView2<'a, f64>,
    /// The number of their outcomes to average over, if the policy asks for that.
    pub n_outcomes: Option<usize>,
    /// The multiplier of sigma.
    pub nu: f64,
    /// A lower bound of the maximum of f, for an acquisition that explores while trials are in flight.
    pub lower_bound: Option<f64>,
    pub query: Query<'a>,
}

/// What is maximised.
pub enum Maximand {
    Formula(Formula),
    /// A draw from the posterior, made by the search, because it depends on the domain.
    Draw(Draws),
}

/// What every acquisition provides.
pub trait Rule {
    /// What is maximised now.
    fn maximand(&self, situation: Situation, rng: &mut Rng) -> Result<Maximand>;

    /// What a search of a box spends.
    fn search(&self) -> BoxSearch;

    /// Refuses invalid settings, except those of the bound and the search.
    fn check(&self, _candidates: bool) -> Result<()> {
        Ok(())
    }

    /// The upper confidence bound, or the widening of draws.
    fn bound(&self) -> Option<Bound> {
        None
    }

    /// Whether it can be averaged over outcomes of pending trials.
    fn averages_outcomes(&self) -> bool {
        false
    }

    /// Whether it explores while trials are in flight, and needs a lower bound of the maximum for that.
    fn explores(&self) -> bool {
        false
    }

    /// Whether it is the logarithm of a positive acquisition.
    fn is_logarithm(&self) -> bool {
        false
    }
}
