//! Whether the evaluation of a running trial should go on.
//!
//! Notation: T is the last step of a curve, t the last reported step, o = f(x) + u the value at step T, and f* the
//! incumbent. u is the noise of a value.

use crate::error::Result;
use crate::gp::{Target, as_row};
use crate::ledger::{Ledger, State, TrialNumber};
use crate::random::Call;
use crate::strategy::Query;
use crate::strategy::bayes::BayesOpt;
use crate::strategy::bayes::acquisitions::formula::floored_std;
use crate::strategy::bayes::acquisitions::incumbents::incumbent;
use crate::strategy::bayes::acquisitions::log_ei::log_improvement;
use crate::strategy::bayes::model::training_set::stated;

/// A trial ends if less than this share of its expected improvement per step is left. With the share 1, almost every
/// trial would end by chance, since this is examined at each step.
const SHARE: f64 = 1.0 / 3.0;

/// Returns whether the evaluation of a trial should end, because its curve has made it much less promising.
///
/// The trial ends if E max(0, o − f*)/(T − t)^power, given its curve, is less than the [`SHARE`] of
/// E max(0, f − f*)/T^power without its curve. Both use the values and curves of all trials that have ended. Trials go on
/// before a model of curves has been fitted. They also go on after T/2: little is saved then, and complete curves show
/// how curves end.
pub fn should_end(
    bayes: &mut BayesOpt,
    log: &Ledger,
    number: TrialNumber,
    power: f64,
    query: Query,
    call: &mut Call,
) -> Result<bool> {
    let trial = &log.trials()[number];
    let (Some(declared), Some(&(step, _))) = (log.problem().curve, trial.curve().last()) else {
        return Ok(false);
    };
    if trial.state != State::Pending || step > declared.steps / 2 {
        return Ok(false);
    }
    let Some(said) = bayes.training.statement(log, number) else {
        return Ok(false);
    };
    let query = Query {
        context: log.context(number),
        ..query
    };
    bayes.fit_for_decisions(log, query, call)?;
    let Some(posterior) = bayes.training.posterior(log, query, call.stop)? else {
        return Ok(false);
    };
    let gp = &*posterior.gp;
    let Target::Stated { value, variance } = stated(posterior.targets.units, said) else {
        return Ok(false);
    };
    let (mean, f_variance) = gp.predict(as_row(log.row(number).to_vec()).view());
    let incumbent = incumbent(gp, &posterior.stopped, query)?;
    let log_ei = |mean: f64, variance: f64| {
        let std = floored_std(variance);
        std.ln() + log_improvement((mean - incumbent) / std).0
    };
    let before = log_ei(mean[0], f_variance[0]);
    // The variance of o without the curve, and the weight of the statement.
    let o_variance = f_variance[0] + gp.noise_variance();
    let weight = o_variance / (o_variance + variance);
    let o_mean = mean[0] + weight * (value - mean[0]);
    let now = log_ei(o_mean, o_variance * (1.0 - weight));
    let left = f64::from(declared.steps - step) / f64::from(declared.steps);
    Ok(now - before < SHARE.ln() + power * left.ln())
}
