//! The model of the probability that an outcome lies within its bounds.
//!
//! There are three models. Bounds include their ends in all of them.
//!
//! * The model of the *values* of the outcome. Where f equals a bound on a whole region, its probability is about ½.
//! * The *censored* model. A value that equals a bound only says that a latent value lies at the bound or further
//!   inside. The target of its row is the mean of the latent value given the other rows, truncated at the bound.
//! * The model of *labels*: every value is inside or outside. It suits outcomes that jump, such as counts and flags. It
//!   has the labels, kernel and noise of the model of success ([`super::success`]).
//!
//! A fit chooses among the models by the evidence of the labels ([`choose_inside`]).

use ndarray::ArrayView1;

use crate::error::{Result, Stop};
use crate::gp::fit::fit;
use crate::gp::{GaussianProcess, NOISELESS};
use crate::ledger::View;
use crate::random::Call;
use crate::strategy::Query;
use crate::strategy::bayes::acquisitions::formula::{Moments, OfMoments};
use crate::strategy::bayes::acquisitions::log_inside::LogProbabilityInside;
use crate::strategy::bayes::columns::Columns;
use crate::strategy::bayes::model::labels::{labels, touching};
use crate::strategy::bayes::model::note::{InsideFit, LabelsFit};
use crate::strategy::bayes::model::success::{at_least, fit_settings};
use crate::strategy::bayes::model::training_set::{Posterior, TrainingSet};

/// The label outside the bounds in a fit and for the evidence. The label of a failed trial shifts the border towards
/// the inside, which would count against the model.
const EVEN: f64 = -1.0;

/// The noise variance of labels for the evidence. With the small noise of the model, one contradiction near the border
/// would change the predictions in its surroundings.
const SOFT: f64 = 0.1;

/// The smallest probability of a label for the evidence. Without this bound, a single contradiction could rule out a
/// model.
const CONTRADICTION: f64 = 0.02;

/// If no value equals a bound, another model is considered if the evidence of the model of values is below this number.
const POOR: f64 = -4.0;

/// If no value equals a bound, another model is chosen only if its evidence is larger by this number of nats.
const MARGIN: f64 = 3.0;

/// The noise explains a jump if the mean square difference between neighbours is below this share of its expectation.
const JUMP: f64 = 0.1;

/// The log evidence of labels: the sum of their log probabilities, each given the other rows. `rows` are their rows of
/// the process, and `inside` returns the bounds of a row in the units of its target.
fn log_evidence(
    gp: &GaussianProcess,
    inside: &dyn Fn(usize) -> LogProbabilityInside,
    (rows, is_inside): (&[usize], &[bool]),
    stop: &mut Stop,
) -> Result<f64> {
    let (means, variances) = gp.leave_one_out(stop)?;
    let log_p = |(&row, &is_inside): (&usize, &bool)| {
        let (mean, variance) = (means[row], variances[row]);
        let p = inside(row).value(Moments { mean, variance }).exp();
        let p = p.clamp(CONTRADICTION, 1.0 - CONTRADICTION);
        if is_inside { p.ln() } else { (1.0 - p).ln() }
    };
    Ok(rows.iter().zip(is_inside).map(log_p).sum())
}

/// Whether the fitted noise explains a jump over a bound: between neighbours with the same label, the mean square
/// difference of the targets is much smaller than independent noise would make it.
fn explains_jump(gp: &GaussianProcess, (rows, is_inside): (&[usize], &[bool])) -> bool {
    let expected = 2.0 * gp.noise_variance();
    let both = is_inside.contains(&true) && is_inside.contains(&false);
    if !both || gp.noise_variance() <= NOISELESS {
        return false;
    }
    let (targets, points) = (gp.targets(), gp.rows());
    let lengthscale = &gp.kernel().lengthscale;
    let distance = |i: usize, j: usize| -> f64 {
        let columns = points.row(i).into_iter().zip(points.row(j));
        let scaled = columns.zip(lengthscale).map(|((a, b), l)| (a - b) / l);
        scaled.map(|difference| difference * difference).sum()
    };
    let labelled = || rows.iter().copied().zip(is_inside);
    let squares = labelled().filter_map(|(i, label)| {
        let same = labelled().filter(|&(j, other)| j != i && other == label);
        let distances = same.map(|(j, _)| (j, distance(i, j)));
        let (nearest, _) = distances.min_by(|(_, a), (_, b)| a.total_cmp(b))?;
        Some((targets[i] - targets[nearest]).powi(2))
    });
    let squares: Vec<f64> = squares.collect();
    squares.iter().sum::<f64>() < JUMP * expected * squares.len() as f64
}

/// Chooses the model after a fit of θ, which must be in use. If a value equals a bound, the model with the largest
/// evidence is chosen. Without such a value, the model of labels is chosen if the fitted noise explains a jump, or if the
/// evidence of the model of values is poor and the evidence of labels is clearly larger.
pub fn choose_inside(
    training: &mut TrainingSet,
    bounds: (f64, f64),
    columns: &Columns,
    log: View,
    query: Query,
    call: &mut Call,
) -> Result<Option<InsideFit>> {
    let (numbers, is_inside) = training.known(bounds);
    let (values, known) = (training.known_values(), training.known_rows());
    let touches = |value: &f64| *value == bounds.0 || *value == bounds.1;
    let is_touched = values.iter().flatten().any(touches);
    let touching = touching(values, bounds);
    let labels = (&known[..], &is_inside[..]);
    let Some(posterior) = training.posterior(log, query, call.stop)? else {
        return Ok(None);
    };
    let points = posterior.gp.rows();
    let of_row =
        |x: ArrayView1<f64>| LogProbabilityInside::of(bounds, posterior.units(&x.to_vec()));
    let each: Vec<LogProbabilityInside> = points.rows().into_iter().map(of_row).collect();
    let inside = |row: usize| each[row];
    let Posterior { gp, targets, .. } = posterior;
    let evidence = log_evidence(&gp, &inside, labels, call.stop)?;
    let jumps = !is_touched && explains_jump(&gp, labels);
    let margin = if is_touched { 0.0 } else { MARGIN };
    if !(is_touched || jumps || evidence < POOR) {
        return Ok(None);
    }
    let mut best = (evidence + margin, None);
    if !touching.is_empty() {
        let gp = gp.censor(targets.values, &touching)?;
        let evidence = log_evidence(&gp, &inside, labels, call.stop)?;
        if evidence > best.0 {
            best = (evidence, Some(InsideFit::Censored));
        }
    }
    let fit = fit_labels(training, &is_inside, &numbers, columns, log, call)?;
    let labels = (&(0..numbers.len()).collect::<Vec<_>>()[..], &is_inside[..]);
    let (gp, inside) = training.labelled(&fit, (bounds, EVEN, SOFT), log, call.stop)?;
    let labelled = log_evidence(&gp, &|_| inside, labels, call.stop)?;
    if jumps || labelled > best.0 {
        best = (labelled, Some(InsideFit::Labels(fit)));
    }
    Ok(best.1)
}

/// Fits the lengthscales of the model of labels, as [`super::success::fit_success`] does.
fn fit_labels(
    training: &TrainingSet,
    is_inside: &[bool],
    numbers: &[usize],
    columns: &Columns,
    log: View,
    call: &mut Call,
) -> Result<LabelsFit> {
    let n_outside = is_inside.iter().filter(|inside| !**inside).count();
    let fitted = fit_settings(
        columns,
        n_outside.max(1),
        training.settings.surrogate.n_refit_restarts,
    );
    let mut theta = fitted.prior_mode();
    if n_outside > 0 {
        let x = training.encode(log, numbers);
        // Other draws do not depend on whether labels are considered.
        let mut rng = call.rng.clone();
        let call = &mut Call::new(&mut rng, call.stop);
        theta = fit(
            x.view(),
            &labels(is_inside.iter().copied(), EVEN),
            &theta,
            &fitted,
            call,
        )?;
    }
    Ok(LabelsFit {
        lengthscale: at_least(theta.lengthscale),
        rows: numbers.len(),
    })
}

#[cfg(test)]
mod tests;
