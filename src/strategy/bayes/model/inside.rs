//! The model of the probability that an outcome lies within its bounds.
//!
//! There are three models. Bounds include their ends in all of them.
//!
//! * The model of the *values* of the outcome. Where f equals a bound on a whole region, its probability is about ½.
//! * The *censored* model. A value that equals a bound only says that a latent value lies at the bound or further
//!   inside. The target of its row is the mean of the latent value given the other rows, truncated at the bound.
//! * The model of *labels*: every value is inside or outside. It suits outcomes that jump, such as counts and flags. Its
//!   labels, kernel and noise are those of the model of success ([`super::success`]).
//!
//! A fit chooses among the models by the evidence of the labels ([`choose_inside`]).

use ndarray::{Array2, s};

use crate::error::{Result, check};
use crate::gp::fit::fit;
use crate::gp::{GaussianProcess, contiguous};
use crate::ledger::Ledger;
use crate::numerics::special::log_cdf;
use crate::random::Call;
use crate::strategy::Query;
use crate::strategy::bayes::acquisitions::formula::{Moments, OfMoments};
use crate::strategy::bayes::acquisitions::log_inside::LogProbabilityInside;
use crate::strategy::bayes::columns::Columns;
use crate::strategy::bayes::model::note::{InsideFit, SuccessFit};
use crate::strategy::bayes::model::success::{CONTRADICTION, at_least, fit_settings};
use crate::strategy::bayes::model::training_set::{Posterior, TrainingSet};
use crate::strategy::bayes::settings::Settings;

/// The interval of labels inside the bounds, about the prior mean of the labels, which is 1.
pub const LABEL_INSIDE: LogProbabilityInside = LogProbabilityInside {
    low: -1.0,
    high: f64::INFINITY,
};

/// The number of times that every censored target is computed from the others.
const SWEEPS: usize = 2;

/// The labels contradict the model of values if their log probability is lower than expected by this number of nats
/// plus twice the standard deviation.
const MAX_LOSS: f64 = 3.0;

/// If no value equals a bound, another model is chosen only if its evidence is larger by this number of nats.
const MARGIN: f64 = 3.0;

/// Returns the label of each value minus the prior mean. `outside` is the label outside the bounds.
pub fn labels(is_inside: &[bool], outside: f64) -> Vec<f64> {
    let label = |inside: &bool| if *inside { 0.0 } else { outside - 1.0 };
    is_inside.iter().map(label).collect()
}

/// The rows whose value equals a bound, each with 1 for the upper and −1 for the lower bound.
pub fn touching(values: &[Option<f64>], (low, high): (f64, f64)) -> Vec<(usize, f64)> {
    let side = |value: f64| match (value == low, value == high) {
        (false, true) => Some(1.0),
        (true, false) => Some(-1.0),
        _ => None,
    };
    let rows = values.iter().enumerate();
    rows.filter_map(|(row, value)| Some((row, side((*value)?)?)))
        .collect()
}

/// Sets the targets of the process, with the targets of some rows replaced by the mean of a latent value inside the
/// bounds. `rows` are these rows, each with the side of its bound.
///
/// The latent value of row i given the other targets is normal with the mean m = y_i − α_i/[A⁻¹]_ii and the variance
/// s² = 1/[A⁻¹]_ii. With the distance u of the bound from m in units of s, towards the inside, its mean below the upper
/// bound is m − s φ(u)/Φ(u).
pub fn censor(
    gp: &mut GaussianProcess,
    mut targets: Vec<f64>,
    inside: LogProbabilityInside,
    rows: &[(usize, f64)],
) -> Result<()> {
    let n = targets.len();
    let mut inverse = Array2::zeros((rows.len(), n));
    for (k, (row, _)) in rows.iter().enumerate() {
        inverse[[k, *row]] = 1.0;
    }
    gp.factor().forward_substitution(inverse.view_mut());
    gp.factor().backward_substitution(inverse.view_mut());
    let mut alpha = gp.alpha().to_vec();
    for _ in 0..SWEEPS {
        for (k, &(row, side)) in rows.iter().enumerate() {
            let bound = if side > 0.0 { inside.high } else { inside.low };
            let variance = 1.0 / inverse[[k, row]];
            let (mean, std) = (targets[row] - alpha[row] * variance, variance.sqrt());
            let (_, ratio) = log_cdf(side * (bound - mean) / std);
            let change = mean - side * std * ratio - targets[row];
            targets[row] += change;
            let column = inverse.slice(s![k, ..]);
            let both = alpha.iter_mut().zip(contiguous(column));
            both.for_each(|(alpha, a)| *alpha += change * a);
        }
    }
    gp.set_targets(&targets)
}

/// The log probabilities of labels.
#[derive(Default)]
struct Evidence {
    sum: f64,
    /// The expectation and the variance of the sum if the probabilities are right.
    expected: f64,
    variance: f64,
}

impl Evidence {
    /// The evidence of labels with these log probabilities of the label inside.
    fn of(log_p: impl Iterator<Item = f64>, is_inside: &[bool]) -> Self {
        let mut evidence = Self::default();
        for (log_p, inside) in log_p.zip(is_inside) {
            let p = log_p.exp().clamp(CONTRADICTION, 1.0 - CONTRADICTION);
            let (yes, no) = (p.ln(), (1.0 - p).ln());
            evidence.sum += if *inside { yes } else { no };
            evidence.expected += p * yes + (1.0 - p) * no;
            evidence.variance += p * (1.0 - p) * (yes - no).powi(2);
        }
        evidence
    }

    /// Whether the labels contradict the probabilities.
    fn is_poor(&self) -> bool {
        self.expected - self.sum > MAX_LOSS + 2.0 * self.variance.sqrt()
    }
}

/// log P of the label inside for each of these rows of a process, given the earlier rows.
///
/// The factor contains these predictions: row i has mean y_i − z_i L_ii and variance L_ii² given the earlier rows.
fn log_probabilities(
    gp: &GaussianProcess,
    rows: &[usize],
    inside: LogProbabilityInside,
) -> Vec<f64> {
    let (targets, whitened) = (gp.targets(), gp.whitened_targets());
    let log_p = |&row: &usize| {
        let pivot = gp.factor().at(row, row);
        inside.value(Moments {
            mean: targets[row] - whitened[row] * pivot,
            variance: pivot * pivot,
        })
    };
    rows.iter().map(log_p).collect()
}

/// Chooses the model after a fit of θ, which must be in use. The log probability of the labels, each given the earlier
/// rows, is compared. The other models are considered only if a value equals a bound or the labels contradict the model
/// of values.
pub fn choose_inside(
    training: &mut TrainingSet,
    bounds: (f64, f64),
    settings: &Settings,
    columns: &Columns,
    log: &Ledger,
    query: Query,
    call: &mut Call,
) -> Result<Option<InsideFit>> {
    let touching = touching(training.known_values(), bounds);
    let (numbers, is_inside) = training.known(bounds);
    let rows = training.known_rows();
    let touched = training.known_values().iter().flatten().any(|value| *value == bounds.0 || *value == bounds.1);
    let Some(posterior) = training.posterior(log, query, call.stop)? else {
        return Ok(None);
    };
    let Posterior { gp, targets, .. } = posterior;
    let inside = LogProbabilityInside::of(bounds, targets.units);
    let plain = Evidence::of(log_probabilities(&gp, &rows, inside).into_iter(), &is_inside);
    if !touched && !plain.is_poor() {
        return Ok(None);
    }
    let margin = if touched { 0.0 } else { MARGIN };
    let mut best = (plain.sum + margin, None);
    if !touching.is_empty() {
        let gp = gp.censor(targets.values, inside, &touching)?;
        let evidence = Evidence::of(log_probabilities(&gp, &rows, inside).into_iter(), &is_inside);
        if std::env::var("DBG").is_ok() { eprintln!("censored {}", evidence.sum); }
        if evidence.sum > best.0 {
            best = (evidence.sum, Some(InsideFit::Censored));
        }
    }
    check(call.stop)?;
    let fit = fit_labels(training, &is_inside, &numbers, settings, columns, log, call)?;
    let (gp, inside) = training.labelled(&fit, bounds, log, call.stop)?;
    let rows: Vec<usize> = (0..numbers.len()).collect();
    let evidence = Evidence::of(log_probabilities(&gp, &rows, inside).into_iter(), &is_inside);
    if std::env::var("DBG").is_ok() { eprintln!("n {} plain {} labels {} touched {touched}", numbers.len(), plain.sum, evidence.sum); }
    if evidence.sum > best.0 {
        best = (evidence.sum, Some(InsideFit::Labels(fit)));
    }
    Ok(best.1)
}

/// Fits the lengthscales of the model of labels, as [`super::success::fit_success`] does.
fn fit_labels(
    training: &TrainingSet,
    is_inside: &[bool],
    numbers: &[usize],
    settings: &Settings,
    columns: &Columns,
    log: &Ledger,
    call: &mut Call,
) -> Result<SuccessFit> {
    let n_outside = is_inside.iter().filter(|inside| !**inside).count();
    let fitted = fit_settings(columns, n_outside.max(1), settings.surrogate.n_refit_restarts);
    let mut theta = fitted.prior_mode();
    if n_outside > 0 {
        let x = training.encode(log, numbers);
        theta = fit(x.view(), &labels(is_inside, -1.0), &theta, &fitted, call)?;
    }
    Ok(SuccessFit {
        lengthscale: at_least(theta.lengthscale),
        rows: numbers.len(),
    })
}
