//! The model of success, which predicts the probability that a trial succeeds, and is fitted to the observed and the
//! failed trials.
//!
//! The model is a Gaussian process of labels with a prior mean of 1. Labels are positive for observed trials and
//! negative for failed trials (see [`crate::strategy::bayes::acquisitions::log_success_probability`]). The probability
//! P of success follows from the label at a point. The model assumes that failures form a region.
//!
//! Failures may have other explanations. At each suggestion, the evidence of three explanations is compared
//! ([`Success::explain`]): a constant rate of failures, a rate that changes in time ([`Rates`]), and a region. Points
//! with P < ½ are excluded only if a region has the largest evidence. Otherwise failures only lower the scores of
//! acquisitions that are logarithms, and by little if success hardly depends on the point.
//!
//! While most trials fail, suggestions may prefer points with P ≥ ½ without excluding the others. All suggestions do so
//! if the rate of failures has risen. Otherwise some of them do so, and the more of them, the more success depends on
//! the point. The results of both kinds of suggestions tell a region from failures that do not depend on the point.

use crate::error::{Result, Stop};
use crate::gp::RowNoise;
use crate::gp::fit::{FitSettings, fit};
use crate::gp::kernel::KernelFamily;
use crate::ledger::{State, TrialNumber, View};
use crate::random::Call;
use crate::strategy::bayes::acquisitions::formula::Moments;
use crate::strategy::bayes::acquisitions::log_success_probability::log_probability;
use crate::strategy::bayes::columns::Columns;
use crate::strategy::bayes::model::candidates::SolvedCandidates;
use crate::strategy::bayes::model::kept_process::{KeptProcess, Wanted};
use crate::strategy::bayes::model::labels::{FAILED, FAMILY, NOISE, SIGNAL_VARIANCE};
use crate::strategy::bayes::model::note::{Evidence, SuccessFit};
use crate::strategy::bayes::model::training_set::TrainingSet;
use crate::strategy::bayes::settings::Settings;

/// The shortest lengthscale. Many points lie near the border of a failing region, where the labels jump. A model with a
/// shorter lengthscale would follow the jump closely and predict success in the interior of the region. Points in the
/// interior would then be suggested again.
const MIN_LENGTHSCALE: f64 = 0.5;

/// The smallest probability with which the model of a region predicts a success or a failure. Without this bound, a
/// few accidents could rule out a region.
const CONTRADICTION: f64 = 0.1;

/// The bounds between the levels of P. The predictions at each level are corrected by the earlier trials of the level.
const LEVELS: [f64; 2] = [CONTRADICTION, 0.5];

/// The rate of failures has risen if the next trial succeeds with at most this part of the long-run probability.
const RISEN: f64 = 0.7;

/// The fractional parts of the multiples of this number, which is the golden ratio minus 1, fill the unit interval
/// evenly.
const GOLDEN: f64 = 0.618_033_988_749_895;

/// The probability that the rate of failures changes between two trials.
const CHANGE: f64 = 0.05;

/// Possible starts of the present rate are dropped if their probability is at most this number.
const NEGLIGIBLE: f64 = 1e-9;

/// A rate of failures that changes before each trial with a fixed probability, which is 0 for a constant rate. The
/// trials are in the order in which they ended in the log. Each rate has the prior Beta(½, ½). The sum over all moments
/// of the changes is computed as in Adams & MacKay 2007.
struct Rates {
    log_evidence: f64,
    /// The probability that the next trial fails.
    next: f64,
}

impl Rates {
    fn of(failed: &[bool], change: f64) -> Self {
        // For each possible start of the present rate: the probability of this start, and the numbers of successes and
        // failures since then.
        let mut starts = vec![(1.0, [0.0; 2])];
        let mut log_evidence = 0.0;
        let chance = |counts: [f64; 2], fails: bool| {
            (counts[usize::from(fails)] + 0.5) / (counts[0] + counts[1] + 1.0)
        };
        for &fails in failed {
            for (p, counts) in &mut starts {
                *p *= chance(*counts, fails);
                counts[usize::from(fails)] += 1.0;
            }
            let sum: f64 = starts.iter().map(|(p, _)| p).sum();
            log_evidence += sum.ln();
            starts
                .iter_mut()
                .for_each(|(p, _)| *p *= (1.0 - change) / sum);
            starts.retain(|(p, _)| *p > NEGLIGIBLE);
            if change > 0.0 {
                starts.push((change, [0.0; 2]));
            }
        }
        let next = starts.iter().map(|(p, counts)| p * chance(*counts, true));
        Self {
            log_evidence,
            next: next.sum(),
        }
    }
}

/// The model of success, which is kept between suggestions.
pub struct Success {
    pub process: KeptProcess,
    /// The log evidence of the explanations.
    pub evidence: Evidence,
    /// The share s of the probability of success that depends on the point. The next trial succeeds with a probability
    /// that is proportional to 1 − s + s P.
    pub share: f64,
    /// Whether the next suggestion stays where P ≥ ½ if it can. It does if points are excluded. While most trials fail,
    /// all suggestions do if the rate of failures has risen; otherwise a part √s of them does. If all of them did, the
    /// search could try one failing point many times, and such failures do not tell a region from a high rate of
    /// failures. The square root, which was chosen by measurements, finds a region while its evidence is still small.
    pub avoids: bool,
    /// Whether points are excluded: a region has the largest evidence, and some trial has succeeded.
    pub excludes: bool,
    pub candidates: Option<SolvedCandidates>,
}

/// The settings for fitting the model of success. Only the lengthscales are fitted. In the fit, the label of a failed
/// trial is −1, and the noise variance is larger than in the model, because single failures may be accidents. The noise
/// variance decreases with the number of failures.
pub(super) fn fit_settings(columns: &Columns, n_failed: usize, n_restarts: usize) -> FitSettings {
    FitSettings {
        signal_variance: Some(SIGNAL_VARIANCE),
        noise_variance: Some(SIGNAL_VARIANCE / n_failed as f64),
        ..columns.fit_settings(KernelFamily::Matern52, n_restarts)
    }
}

pub(super) fn at_least(lengthscale: Vec<f64>) -> Vec<f64> {
    let lengthscale = lengthscale.into_iter();
    lengthscale.map(|l| l.max(MIN_LENGTHSCALE)).collect()
}

/// Returns the label of each trial minus the prior mean. `failed` is the label of a failed trial.
fn labels(log: View, numbers: &[TrialNumber], failed: f64) -> Vec<f64> {
    let label = |number: &TrialNumber| match log.of(*number).state() {
        State::Failed => failed - 1.0,
        _ => 0.0,
    };
    numbers.iter().map(label).collect()
}

/// Fits the lengthscales of the model of success. Returns `None` if this strategy does not use a model of success.
pub fn fit_success(
    settings: &Settings,
    columns: &Columns,
    training: &TrainingSet,
    log: View,
    call: &mut Call,
) -> Result<Option<SuccessFit>> {
    let n_failed = training.n_failed(log);
    if n_failed == 0 {
        return Ok(None);
    }
    let gp = &settings.surrogate;
    let last = training.fit().and_then(|fit| fit.success.as_ref());
    let n_restarts = match last {
        Some(_) => gp.n_refit_restarts,
        None => gp.n_restarts,
    };
    let fitted = fit_settings(columns, n_failed, n_restarts);
    let mut start = fitted.prior_mode();
    if let Some(last) = last {
        start.lengthscale.clone_from(&last.lengthscale);
    }
    let rows = &training.fold.ended;
    let x = training.encode(log, rows);
    let labels = labels(log, rows, -1.0);
    let theta = fit(x.view(), &labels, &start, &fitted, call)?;
    Ok(Some(SuccessFit {
        lengthscale: at_least(theta.lengthscale),
        rows: rows.len(),
        evidence: None,
    }))
}

impl Success {
    /// Updates the `kept` model of success for this log and returns it. Returns `None` if this strategy does not use a
    /// model of success.
    pub fn update<'a>(
        kept: &'a mut Option<Self>,
        training: &TrainingSet,
        columns: &Columns,
        log: View,
        stop: &mut Stop,
    ) -> Result<Option<&'a mut Self>> {
        let n_failed = training.n_failed(log);
        if n_failed == 0 {
            *kept = None;
            return Ok(None);
        }
        let fit = training.fit().and_then(|fit| fit.success.as_ref());
        let mut theta = fit_settings(columns, n_failed, 1).prior_mode();
        theta.lengthscale = match fit {
            Some(fit) => fit.lengthscale.clone(),
            None => at_least(theta.lengthscale),
        };
        let rows = &training.fold.ended;
        theta.noise_variance = NOISE;
        let base = fit.map_or(0, |fit| fit.rows).min(rows.len());
        let wanted = Wanted {
            family: FAMILY,
            theta: &theta,
            categories: &columns.categories,
            trials: rows,
            noise: &vec![RowNoise::default(); rows.len()],
            points: &|range| training.encode(log, &rows[range]),
            base,
            n_moves: training.fold.n_moves,
        };
        let (process, candidates) = match kept.take() {
            Some(kept) => (Some(kept.process), kept.candidates),
            None => (None, None),
        };
        let generation = process.as_ref().map_or(0, |it| it.version.generation);
        let mut process = KeptProcess::update(process, &wanted, generation, stop)?;
        let labels = labels(log, rows, FAILED);
        process.gp.set_targets(&labels)?;
        let success = kept.insert(Self {
            process,
            evidence: Evidence::default(),
            share: 0.0,
            avoids: false,
            excludes: false,
            candidates,
        });
        success.explain(&labels, log.n_trials());
        Ok(Some(success))
    }

    /// Compares the explanations of the failures: a constant rate, a rate that changes in time, and a region. The
    /// explanations have equal prior probabilities. Sets `evidence`, `share`, `avoids` and `excludes`.
    ///
    /// If w is the probability of a region, the next trial succeeds with probability (1 − w)(1 − r) + w (l + (h − l) P).
    /// r is the probability of failure under the other explanations. l and h are the rates of success where the region
    /// predicted failure and success.
    ///
    /// `number` is the number of the next trial.
    fn explain(&mut self, labels: &[f64], number: TrialNumber) {
        let failed: Vec<bool> = labels.iter().map(|label| *label < 0.0).collect();
        let (constant, changing) = (Rates::of(&failed, 0.0), Rates::of(&failed, CHANGE));
        let (region, [low, high]) = self.region(&failed, labels);
        self.evidence = Evidence {
            constant: constant.log_evidence,
            changing: changing.log_evidence,
            region,
        };
        let others = [&constant, &changing];
        let any_success = failed.contains(&false);
        self.excludes = any_success && others.iter().all(|other| other.log_evidence < region);
        // Both probabilities of success are divided by w.
        let success = |other: &&Rates| (other.log_evidence - region).exp() * (1.0 - other.next);
        let elsewhere = others.iter().map(success).sum::<f64>();
        self.share = (high - low).max(0.0) / (elsewhere + high);
        // A success far from the failures tells a region from an outage.
        let has_risen = changing.log_evidence > constant.log_evidence
            && 1.0 - changing.next < RISEN * (1.0 - constant.next);
        let mostly_fails = changing.next > 0.5;
        let is_turn = (number as f64 * GOLDEN).fract() < self.share.sqrt();
        self.avoids = self.excludes || mostly_fails && (has_risen || is_turn);
    }

    /// The log evidence of a region: the sum of the log probabilities of the trials, each given the earlier trials.
    /// Also returns the rates of success among the trials with P ≤ ½ and with P > ½.
    ///
    /// The factor contains these predictions: row i has mean y_i − z_i L_ii and variance L_ii² given the earlier rows.
    /// The border of a region is uncertain, so P is corrected by the earlier trials at the same level of P. Their rate
    /// of success has the prior Beta(P, 1 − P).
    fn region(&self, failed: &[bool], labels: &[f64]) -> (f64, [f64; 2]) {
        let whitened = self.process.gp.whitened_targets();
        let mut counts = [[0.0; 2]; LEVELS.len() + 1];
        let mut log_evidence = 0.0;
        for i in 0..failed.len() {
            let pivot = self.process.gp.factor().at(i, i);
            let at = Moments {
                mean: labels[i] - whitened[i] * pivot,
                variance: (pivot * pivot - NOISE).max(0.0),
            };
            let p = log_probability(at).exp();
            let p = p.clamp(CONTRADICTION, 1.0 - CONTRADICTION);
            let level = LEVELS.partition_point(|level| *level < p);
            let n: f64 = counts[level].iter().sum();
            let count = &mut counts[level][usize::from(failed[i])];
            let share = if failed[i] { 1.0 - p } else { p };
            log_evidence += ((share + *count) / (1.0 + n)).ln();
            *count += 1.0;
        }
        let [lowest, low, high] = counts;
        let rate = |[succeeded, failed]: [f64; 2], prior: f64| {
            (succeeded + prior) / (succeeded + failed + 1.0)
        };
        let low = [lowest[0] + low[0], lowest[1] + low[1]];
        let rates = [rate(low, CONTRADICTION), rate(high, 1.0 - CONTRADICTION)];
        (log_evidence, rates)
    }
}

#[cfg(test)]
mod tests;
