//! The trait for acquisitions.

use ndarray::Array2;

use crate::error::Result;
use crate::gp::{Conditioned, GaussianProcess, Target};
use crate::random::Rng;
use crate::strategy::bayes::acquisitions::bound::Bound;
use crate::strategy::bayes::acquisitions::draws::Draws;
use crate::strategy::bayes::acquisitions::formula::Formula;
use crate::strategy::{Query, Resource};

/// The posterior from which a point is chosen, and the treatment of pending trials.
pub struct Situation<'a> {
    /// The posterior given the tail of [`Rule::tail`].
    pub gp: &'a Conditioned<&'a mut GaussianProcess>,
    /// The targets of the observed rows.
    pub targets: &'a [f64],
    /// The observed rows that are not incumbents: the values of stopped trials are not known, and trials that were run
    /// outside the domain are not the best trials.
    pub unranked: &'a [usize],
    /// The targets of pending trials, whose rows are the last rows of the tail.
    pub pending: &'a [Target],
    /// The number of fantasies of pending trials over which the acquisition is averaged, or `None` if the policy
    /// does not average.
    pub n_fantasies: Option<usize>,
    /// nu_t, the multiplier of sigma in bounds and widened draws.
    pub nu: f64,
    /// A lower bound on the maximum of f, for an acquisition that explores while trials are in flight.
    pub lower_bound: Option<f64>,
    pub query: Query<'a>,
}

/// A tail on which the posterior is conditioned.
pub enum TailKind {
    Nothing,
    /// The rows of pending trials with the targets of the policy.
    Policy,
    /// Noiseless rows at the posterior mean: these baseline points, followed by the points of pending trials.
    Noiseless {
        baseline: Array2<f64>,
    },
}

/// The function to maximise.
pub enum Maximand<'a> {
    Formula(Box<dyn Formula + 'a>),
    /// A draw from the posterior. The search makes the draw, because the method used to make a draw depends on the
    /// domain.
    Draw(Draws),
    /// A random point of the Pareto set of the posterior mean and standard deviation.
    ParetoSet,
}

/// The properties of an acquisition on which its treatment depends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traits {
    /// The acquisition can be averaged over fantasies of pending trials.
    pub averages_fantasies: bool,
    /// The acquisition explores while trials are in flight, and needs a lower bound on the maximum.
    pub explores: bool,
    /// The acquisition is the logarithm of a positive function.
    pub is_logarithm: bool,
    /// The function to maximise is drawn at each suggestion, so the acquisition does not have a value.
    pub is_random: bool,
}

/// The methods that every acquisition implements.
pub trait Rule {
    /// The tail for the next suggestion. `observed` is the posterior given the observed rows.
    fn tail(
        &self,
        _observed: &GaussianProcess,
        _unranked: &[usize],
        _n_fantasies: Option<usize>,
        _query: Query,
    ) -> Result<TailKind> {
        Ok(TailKind::Policy)
    }

    /// The function to maximise for the next suggestion.
    fn maximand(&self, situation: Situation, rng: &mut Rng) -> Result<Maximand<'static>>;

    /// Returns an error if a setting is invalid. [`Bound::check`] checks the settings of the bound.
    fn check(&self, _candidates: bool) -> Result<()> {
        Ok(())
    }

    /// The settings that determine the multiplier of sigma in upper confidence bounds and in widened draws.
    fn bound(&self) -> Option<Bound> {
        None
    }

    /// The resource whose expected use divides the acquisition, and the power of the divisor. `None` if the acquisition
    /// is not divided.
    fn per(&self, _query: Query) -> Result<Option<(Resource, f64)>> {
        Ok(None)
    }

    /// The resource of [`Self::per`] if the user named it. `None` if the limit of a run determines it.
    fn asks_for(&self) -> Option<Resource> {
        None
    }

    fn traits(&self) -> Traits {
        Traits::default()
    }
}
