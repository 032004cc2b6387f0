//! The term that the model of success adds to an acquisition.

use ndarray::Array2;

use crate::error::{Result, Stop};
use crate::gp::GaussianProcess;
use crate::problem::Objective;
use crate::strategy::Query;
use crate::strategy::bayes::acquisitions::formula::{Formula, Scorer};
use crate::strategy::bayes::acquisitions::log_success_probability::{
    LogSuccessProbability, ShortfallOfSuccess,
};
use crate::strategy::bayes::model::candidates::solved;
use crate::strategy::bayes::model::kept_process::KeptProcess;
use crate::strategy::bayes::model::success::{Region, Success};
use crate::strategy::bayes::settings::Settings;

/// log ½, minus a margin for rounding errors.
const LOG_HALF: f64 = -std::f64::consts::LN_2 - 1e-6;

/// The weight of the penalty where P < ½, if the search should stay where P ≥ ½. The values of the acquisition differ
/// by about 1, so the penalty exceeds every difference between values as soon as the predicted label is below −0.001,
/// where P = ½ at label 0.
const PENALTY: f64 = 1e3;

/// The weight of a penalty on the label or on the probability of bounds, if the acquisition is a bound, mean, draw or
/// variance of the posterior `gp` of f.
///
/// The weight is finite. An infinite weight multiplied by a shortfall of 0 would be NaN.
pub fn penalty_weight(gp: &GaussianProcess, nu: f64) -> f64 {
    let variance = gp.hyperparameters().signal_variance;
    let unit = variance.max(variance.sqrt()) * (1.0 + nu.abs());
    (PENALTY * unit).min(1e300)
}

/// The model of success, and the term that this model adds to the acquisition.
pub struct Addition<'a> {
    model: &'a mut Success,
    formula: Box<dyn Formula>,
    /// A point is excluded if the added term is below this value. If points are not excluded, the value is −∞.
    least: f64,
}

impl<'a> Addition<'a> {
    /// The term for an acquisition that is the logarithm of a positive function. The term is log(1 − s + s P), so the
    /// sum is the logarithm of the function multiplied by the probability of success, up to a constant. s is the share
    /// of the probability of success that depends on the point.
    ///
    /// If the search stays where P ≥ ½, the term is log P with a penalty. Without the penalty, a point in the failing
    /// region could have the largest sum, because the logarithm of the function may be arbitrarily low outside the
    /// failing region where f is known well.
    pub fn log_probability(model: &'a mut Success) -> Self {
        let (share, weight) = match model.avoids {
            false => (model.share, 0.0),
            true => (1.0, PENALTY * PENALTY),
        };
        let least = match model.excludes {
            false => f64::NEG_INFINITY,
            true => LOG_HALF,
        };
        let labels = model.region().labels;
        let penalty = ShortfallOfSuccess { weight, labels };
        Self {
            model,
            formula: Box::new(LogSuccessProbability { share, penalty }),
            least,
        }
    }

    /// The term for an acquisition that is a bound, mean, draw or variance of the posterior `gp` of f. The term is a
    /// penalty where P < ½ if the search avoids these points, and 0 otherwise. The penalty is not made proportional to
    /// s: at the optimum, where the values of the acquisition differ little, even a small penalty would keep the search
    /// away from a point that failed by accident.
    pub fn penalty(model: &'a mut Success, gp: &GaussianProcess, nu: f64) -> Self {
        let weight = match model.avoids {
            false => 0.0,
            true => penalty_weight(gp, nu),
        };
        let least = match model.excludes {
            false => f64::NEG_INFINITY,
            true => 0.0,
        };
        let labels = model.region().labels;
        Self {
            model,
            formula: Box::new(ShortfallOfSuccess { weight, labels }),
            least,
        }
    }

    /// Replaces the added term by the penalty that suits the variance of f as an acquisition.
    pub fn into_penalty(self, gp: &GaussianProcess) -> Self {
        Self::penalty(self.model, gp, 0.0)
    }

    /// The term that suits the acquisition in these settings.
    pub fn to(model: &'a mut Success, settings: &Settings, gp: &GaussianProcess, nu: f64) -> Self {
        match settings.maximizes_logarithm() {
            true => Self::log_probability(model),
            false => Self::penalty(model, gp, nu),
        }
    }

    /// Whether a point is excluded, given the value of the added term at this point.
    pub fn excludes(&self, added: f64) -> bool {
        added < self.least
    }

    /// The number of rows of the model of success.
    pub fn n_rows(&self) -> usize {
        self.model.region().process.gp.len()
    }

    /// The added term as an objective.
    pub fn scorer<'b>(&'b self, context: &'b [f64]) -> Box<dyn Objective + 'b> {
        let scorer = Scorer::new(
            &self.model.region().process.gp,
            self.formula.as_ref(),
            context,
        );
        Box::new(scorer)
    }

    /// The added term at every candidate.
    pub fn of_candidates(
        &mut self,
        list: &Array2<f64>,
        query: Query,
        stop: &mut Stop,
    ) -> Result<Vec<f64>> {
        let Region {
            process,
            candidates,
            ..
        } = self.model.region_mut();
        let KeptProcess { version, gp, .. } = process;
        let solved = solved(candidates, list, query, *version, gp, stop)?;
        Ok(solved.score(gp, self.formula.as_ref()))
    }
}
