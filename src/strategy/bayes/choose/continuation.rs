//! Forecasts of the values of running and stopped trials, and whether the evaluation of a running trial should go on.
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
use crate::strategy::units::Units;

/// A trial ends if less than this share of its expected improvement per step is left. With the share 1, almost every
/// trial would end by chance, since this is examined at each step.
const SHARE: f64 = 1.0 / 3.0;

/// Forecasts of a trial with a curve, in units of the targets. Each is a mean and a variance.
struct Forecast {
    /// f at the point of the trial. Only the curves of stopped trials are used.
    f: (f64, f64),
    /// o, given the curve of the trial.
    o: (f64, f64),
    incumbent: f64,
    units: Units,
}

/// Forecasts the value of a running or stopped trial. Returns `None` if its curve says nothing, or without a model.
///
/// Let s = o + e be the statement of the curve, with e ~ N(0, v), and let λ be the variance of u. The curve of a running
/// trial is not a row of the model, so o ~ N(E f, var f + λ) before s is known. The curve of a stopped trial is a row, so
/// f is given s. Then o = f + w(s − f) + r with w = λ/(λ + v) and r ~ N(0, w v).
fn forecast(
    bayes: &mut BayesOpt,
    log: &Ledger,
    number: TrialNumber,
    query: Query,
    call: &mut Call,
) -> Result<Option<Forecast>> {
    let Some(said) = bayes.training.statement(log, number) else {
        return Ok(None);
    };
    bayes.fit_for_decisions(log, query, call)?;
    let query = Query {
        context: log.context(number),
        ..query
    };
    let Some(posterior) = bayes.training.posterior(log, query, call.stop)? else {
        return Ok(None);
    };
    let (gp, units) = (&*posterior.gp, posterior.targets.units);
    let Target::Stated { value, variance } = posterior.targets.stated(said) else {
        return Ok(None);
    };
    let (mean, f_variance) = gp.predict(as_row(log.row(number).to_vec()).view());
    let (mean, f_variance, noise) = (mean[0], f_variance[0], gp.noise_variance());
    let o = match log.trials()[number].state {
        State::Stopped => {
            let weight = noise / (noise + variance);
            let rest = (1.0 - weight).powi(2) * f_variance + weight * variance;
            (mean + weight * (value - mean), rest)
        }
        _ => {
            let prior = f_variance + noise;
            let weight = prior / (prior + variance);
            (mean + weight * (value - mean), prior * (1.0 - weight))
        }
    };
    Ok(Some(Forecast {
        f: (mean, f_variance),
        o,
        incumbent: incumbent(gp, &posterior.stopped, query)?,
        units,
    }))
}

/// Returns the mean and standard deviation of the value at the last step of a running or stopped trial, in units of f, or
/// `None` if its curve says nothing.
pub fn forecast_value(
    bayes: &mut BayesOpt,
    log: &Ledger,
    number: TrialNumber,
    query: Query,
    call: &mut Call,
) -> Result<Option<(f64, f64)>> {
    if !matches!(log.trials()[number].state, State::Pending | State::Stopped) {
        return Ok(None);
    }
    let found = forecast(bayes, log, number, query, call)?;
    Ok(found.map(|found| found.units.moments(found.o.0, found.o.1.sqrt())))
}

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
    let Some(found) = forecast(bayes, log, number, query, call)? else {
        return Ok(false);
    };
    let log_ei = |(mean, variance): (f64, f64)| {
        let std = floored_std(variance);
        std.ln() + log_improvement((mean - found.incumbent) / std).0
    };
    let left = f64::from(declared.steps - step) / f64::from(declared.steps);
    Ok(log_ei(found.o) - log_ei(found.f) < SHARE.ln() + power * left.ln())
}
