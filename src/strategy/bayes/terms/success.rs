//! The term of the model of success.

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
use crate::strategy::bayes::terms::Term;

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

/// The model of success, and its term.
pub struct SuccessTerm<'a> {
    model: &'a mut Success,
    formula: Box<dyn Formula>,
    /// A point is excluded if the term is below this value. If points are not excluded, the value is −∞.
    least: f64,
}

impl<'a> SuccessTerm<'a> {
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
        let (formula, least) = penalty(model, gp, nu);
        Self {
            model,
            formula,
            least,
        }
    }

    /// The term that suits the acquisition in these settings.
    pub fn to(model: &'a mut Success, settings: &Settings, gp: &GaussianProcess, nu: f64) -> Self {
        match settings.maximizes_logarithm() {
            true => Self::log_probability(model),
            false => Self::penalty(model, gp, nu),
        }
    }

    /// The term as a function of the point, in this context.
    pub fn scorer<'b>(&'b self, context: &'b [f64]) -> Box<dyn Objective + 'b> {
        let scorer = Scorer::new(
            &self.model.region().process.gp,
            self.formula.as_ref(),
            context,
        );
        Box::new(scorer)
    }
}

impl Term for SuccessTerm<'_> {
    fn scorer<'b>(&'b mut self, context: &'b [f64]) -> Box<dyn Objective + 'b> {
        SuccessTerm::scorer(self, context)
    }

    fn of_candidates(
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

    fn excludes(&self, value: f64) -> bool {
        value < self.least
    }

    fn constrains(&self) -> bool {
        true
    }

    fn prepare_for_variance(&mut self, gp: &GaussianProcess) -> bool {
        (self.formula, self.least) = penalty(self.model, gp, 0.0);
        true
    }

    fn n_rows(&self) -> usize {
        self.model.region().process.gp.len()
    }
}

/// The penalty where P < ½, and the value below which it excludes a point.
fn penalty(model: &Success, gp: &GaussianProcess, nu: f64) -> (Box<dyn Formula>, f64) {
    let weight = match model.avoids {
        false => 0.0,
        true => penalty_weight(gp, nu),
    };
    let least = match model.excludes {
        false => f64::NEG_INFINITY,
        true => 0.0,
    };
    let labels = model.region().labels;
    (Box::new(ShortfallOfSuccess { weight, labels }), least)
}
