//! Forecasts of the final values of running and stopped trials from their curves.
//!
//! Notation: T is the last step of a curve, t the last reported step, and f* the incumbent. The value at step T is
//! h + ε, where h = f(x) + u, and u differs between trainings at the same point. The noise variance λ of the values of
//! the model is var u + σ², where σ² is the variance of ε. The pseudo-observation of a curve is the estimate of h from
//! its reports alone, with the variance of its error ([`crate::curves`]).

use crate::curves::UNCERTAINTY;
use crate::error::Result;
use crate::gp::{Target, as_row};
use crate::ledger::{State, TrialNumber, View};
use crate::random::Call;
use crate::strategy::Query;
use crate::strategy::bayes::BayesOpt;
use crate::strategy::bayes::acquisitions::formula::floored_std;
use crate::strategy::bayes::acquisitions::incumbents::incumbent;
use crate::strategy::bayes::acquisitions::log_ei::log_improvement;
use crate::strategy::bayes::model::fit_purpose::FitPurpose;
use crate::strategy::bayes::model::targets::variance_of_target;
use crate::strategy::model_based::Forecast;

/// The smallest share of var u in the noise variance λ. λ and σ² are separate estimates, so λ − σ² can be negative.
const LEAST_BETWEEN: f64 = 0.1;

/// Forecasts the value of a running or stopped trial. Returns `None` without a pseudo-observation or a model.
///
/// Expected improvements are E max(0, f − f*) without the curve and E max(0, h − f*) given the curve. Let s = h + e be
/// the pseudo-observation, with e ~ N(0, v), and let b be the variance of u. The curve of a running trial is not a row of
/// the model, so h ~ N(E f, var f + b) before s is known. The curve of a stopped trial is a row, so f is given s. Then
/// h = f + w(s − f) + r with w = b/(b + v) and r ~ N(0, w v).
///
/// With n observed values, var f and b are multiplied by 1 + [`UNCERTAINTY`]/n, because the hyperparameters are estimates.
pub fn forecast(
    bayes: &mut BayesOpt,
    log: View,
    number: TrialNumber,
    query: Query,
    call: &mut Call,
) -> Result<Option<Forecast>> {
    let is_running = matches!(log.of(number).state(), State::Pending | State::Stopped);
    if !is_running || log.of(number).left_out {
        return Ok(None);
    }
    let Some(pseudo) = bayes.objective.training.pseudo_observations.of(log, number) else {
        return Ok(None);
    };
    bayes.fit_objective(FitPurpose::Decide, log.log, query, call)?;
    let query = Query {
        context: log.context(number),
        ..query
    };
    let Some(posterior) = bayes.objective.training.posterior(log, query, call.stop)? else {
        return Ok(None);
    };
    let (gp, units) = (&*posterior.gp, posterior.units(query.context));
    let comparable = posterior.contexts.comparable_pseudo(pseudo, query.context);
    let Target::PseudoObserved { value, variance } = posterior.targets.pseudo_observed(comparable)
    else {
        return Ok(None);
    };
    let (mean, f_variance) = gp.predict(as_row(log.row(number).to_vec()).view());
    let (mean, f_variance) = (mean[0], f_variance[0]);
    let noise = comparable.noise.sqrt();
    let noise = variance_of_target(posterior.targets.units, comparable.value, noise);
    let between = (gp.noise_variance() - noise).max(LEAST_BETWEEN * gp.noise_variance());
    let inflation = 1.0 + UNCERTAINTY / log.n_observed().max(1) as f64;
    let (inflated, between) = (f_variance * inflation, between * inflation);
    let h = match log.of(number).state() {
        State::Stopped => {
            let weight = between / (between + variance);
            let rest = (1.0 - weight).powi(2) * inflated + weight * variance;
            (mean + weight * (value - mean), rest)
        }
        _ => {
            let prior = inflated + between;
            let weight = prior / (prior + variance);
            (mean + weight * (value - mean), prior * (1.0 - weight))
        }
    };
    let incumbent = incumbent(gp, &posterior.unranked, query)?;
    let log_improvement = |(mean, variance): (f64, f64)| {
        let std = floored_std(variance);
        std.ln() + log_improvement((mean - incumbent) / std).0
    };
    Ok(Some(Forecast {
        value: units.moments(h.0, (h.1 + noise).sqrt()),
        log_improvement: log_improvement(h),
        log_improvement_before: log_improvement((mean, f_variance)),
    }))
}
