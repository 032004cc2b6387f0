//! The model of success, which predicts the probability that a trial succeeds, and is fitted to the observed and the
//! failed trials.
//!
//! The model is a Gaussian process of labels. Labels are positive for observed trials and negative for failed trials
//! (see [`crate::strategy::bayes::acquisitions::log_success_probability`]). The probability P of success follows from
//! the label at a point. The model assumes that failures form a region.
//!
//! There are two models of a region. In the first, all trials in the region fail and all others succeed. Near an
//! accident, which is a failure outside the region, its P is small. In the second, trials outside the region may fail
//! by accident: the labels have a larger noise variance, and their prior mean is 0. The second model is used if it
//! predicts the later trials clearly better.
//!
//! Failures may have other explanations. At each suggestion, the evidence of three explanations is compared
//! ([`Success::explain`]): a constant rate of failures, a rate that changes in time ([`Rates`]), and a region. Points
//! with P < ½ are excluded only if a region is more probable than the other explanations together, and the trials where
//! P was smallest failed with few exceptions: if a part of the trials in a region succeed, the best point may lie in it.
//! Otherwise failures only lower the scores of acquisitions that are logarithms, and by little if success hardly
//! depends on the point.
//!
//! While most trials fail, some suggestions prefer points with P ≥ ½ without excluding the others. Their part is the
//! largest of three numbers: the share of success that depends on the point, the probability of a region, and ½ if the
//! rate of failures has risen. The results of both kinds of suggestions tell a region from failures that do not depend
//! on the point.

use ndarray::Array2;

use crate::error::{Error, Result, Stop};
use crate::gp::fit::{FitSettings, fit};
use crate::gp::kernel::KernelFamily;
use crate::gp::{Hyperparameters, RowNoise};
use crate::ledger::{State, TrialNumber, View};
use crate::numerics::special::{log_cdf, normal_quantile};
use crate::random::Call;
use crate::strategy::bayes::acquisitions::formula::Moments;
use crate::strategy::bayes::acquisitions::log_success_probability::Labels;
use crate::strategy::bayes::columns::Columns;
use crate::strategy::bayes::model::candidates::SolvedCandidates;
use crate::strategy::bayes::model::kept_process::{KeptProcess, Wanted};
use crate::strategy::bayes::model::labels::{FAILED, FAMILY, NOISE, SIGNAL_VARIANCE, labels};
use crate::strategy::bayes::model::note::{Evidence, SuccessFit};
use crate::strategy::bayes::model::training_set::TrainingSet;

/// The shortest lengthscale. Many points lie near the border of a failing region, where the labels jump. A model with a
/// shorter lengthscale would follow the jump closely and predict success in the interior of the region. Points in the
/// interior would then be suggested again.
const MIN_LENGTHSCALE: f64 = 0.5;

/// The smallest probability with which the model of a region predicts a success or a failure. Without this bound, a
/// few accidents could rule out a region.
const CONTRADICTION: f64 = 0.1;

/// The bounds between the levels of P. The predictions at each level are corrected by the earlier trials of the level.
const LEVELS: [f64; 2] = [CONTRADICTION, 0.5];

/// The bounds between the levels of P in the model of a region with accidents.
const LEVELS_WITH_ACCIDENTS: [f64; 2] = [0.3, 0.5];

/// The smallest probability with which the evidence of a region with accidents predicts a success or a failure.
const LEAST: f64 = 0.03;

/// The model of a region with accidents is used if the log probability of the later half of the trials exceeds the log
/// probability under the other model by this number. The first half does not count, because its predictions follow
/// from the prior means.
const CLEARLY: f64 = 3.0;

/// The labels in a region with accidents. c is the noise variance of the labels.
const WITH_ACCIDENTS: Labels = Labels {
    mean: 0.0,
    variance: 0.3,
};

/// Points are excluded if the rate of success at the lowest level of P is at most this number.
const MOST_EXCEPTIONS: f64 = 0.3;

/// The rate of failures has risen if the next trial succeeds with at most this part of the long-run probability.
const RISEN: f64 = 0.7;

/// The least part of the suggestions that stay near successes if the rate of failures has risen.
const WHEN_RISEN: f64 = 0.5;

/// While at most this number of trials have succeeded, their rates hardly tell a region from a constant rate.
const FEW_SUCCESSES: usize = 3;

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

/// Counts of the trials at each level of P.
#[derive(Default)]
struct Levels {
    /// The numbers of successes and failures at each level.
    counts: [[f64; 2]; LEVELS.len() + 1],
}

impl Levels {
    /// Adds a trial, and returns the log of its probability under a model that predicts success with probability `p`.
    /// The border of a region is uncertain, so P is corrected by the earlier trials at the same level of P. Their rate
    /// of success has the prior Beta(P, 1 − P).
    fn add(&mut self, p: f64, bounds: [f64; 2], fails: bool) -> f64 {
        let p = p.clamp(CONTRADICTION, 1.0 - CONTRADICTION);
        let counts = &mut self.counts[bounds.partition_point(|bound| *bound < p)];
        let n: f64 = counts.iter().sum();
        let share = if fails { 1.0 - p } else { p };
        let count = &mut counts[usize::from(fails)];
        let log_probability = ((share + *count) / (1.0 + n)).ln();
        *count += 1.0;
        log_probability
    }
}

/// How well a region explains the trials.
struct Explanation {
    log_evidence: f64,
    /// The log probability of the later half of the trials, each given the earlier trials.
    later: f64,
    /// The rates of success where the region predicted failure and success.
    rates: [f64; 2],
    /// The rate of success at the lowest level of P.
    lowest_rate: f64,
}

/// Returns a rate of success with the prior Beta(`prior`, 1 − `prior`), given the numbers of successes and failures.
fn rate([succeeded, failed]: [f64; 2], prior: f64) -> f64 {
    (succeeded + prior) / (succeeded + failed + 1.0)
}

/// The model of a region.
pub struct Region {
    pub process: KeptProcess,
    pub labels: Labels,
    pub candidates: Option<SolvedCandidates>,
}

/// The model of success, which is kept between suggestions.
pub struct Success {
    /// The model of a region without accidents.
    certain: Region,
    with_accidents: Region,
    has_accidents: bool,
    /// The log evidence of the explanations.
    pub evidence: Evidence,
    /// The share s of the probability of success that depends on the point. The next trial succeeds with a probability
    /// that is proportional to 1 − s + s P.
    pub share: f64,
    /// Whether the next suggestion stays where P ≥ ½ if it can. It does if points are excluded. While most trials fail,
    /// a part of the suggestions does. If all of them did, the search could try one failing point many times, and such
    /// failures do not tell a region from a high rate of failures. If none of them did, the search could also try one
    /// failing point many times, because f is unknown there.
    pub avoids: bool,
    /// Whether points are excluded: a region is more probable than the other explanations together, few trials at the
    /// lowest level of P have succeeded, and some trial has succeeded.
    pub excludes: bool,
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

/// Returns whether each trial failed.
fn failed(log: View, numbers: &[TrialNumber]) -> Vec<bool> {
    let failed = |number: &TrialNumber| log.of(*number).state() == State::Failed;
    numbers.iter().map(failed).collect()
}

/// Fits the lengthscales of the model of success. Returns `None` if no trial has failed.
pub fn fit_success(
    columns: &Columns,
    training: &TrainingSet,
    log: View,
    call: &mut Call,
) -> Result<Option<SuccessFit>> {
    let n_failed = training.n_failed(log);
    if n_failed == 0 {
        return Ok(None);
    }
    let gp = &training.settings.surrogate;
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
    let labels = labels(failed(log, rows).iter().map(|fails| !fails), -1.0);
    let theta = fit(x.view(), &labels, &start, &fitted, call)?;
    Ok(Some(SuccessFit {
        lengthscale: at_least(theta.lengthscale),
        rows: rows.len(),
        evidence: None,
    }))
}

impl Success {
    /// Updates the `kept` model of success for this log and returns it. Returns `None` if no trial has failed.
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
        let base = fit.map_or(0, |fit| fit.rows).min(rows.len());
        let noise = vec![RowNoise::default(); rows.len()];
        let mut update = |kept: Option<Region>, noise_variance: f64, labels: Labels| {
            let theta = Hyperparameters {
                noise_variance,
                ..theta.clone()
            };
            let wanted = Wanted {
                family: FAMILY,
                theta: &theta,
                categories: &columns.categories,
                trials: rows,
                noise: &noise,
                points: &|range| training.encode(log, &rows[range]),
                base,
                n_moves: training.fold.n_moves,
            };
            let (process, candidates) = match kept {
                Some(kept) => (Some(kept.process), kept.candidates),
                None => (None, None),
            };
            let generation = process.as_ref().map_or(0, |it| it.version.generation);
            let process = KeptProcess::update(process, &wanted, generation, stop)?;
            Ok::<_, Error>(Region {
                process,
                labels,
                candidates,
            })
        };
        let (certain, with_accidents) = match kept.take() {
            Some(kept) => (Some(kept.certain), Some(kept.with_accidents)),
            None => (None, None),
        };
        let success = kept.insert(Self {
            certain: update(certain, NOISE, Labels::CERTAIN)?,
            with_accidents: update(with_accidents, WITH_ACCIDENTS.variance, WITH_ACCIDENTS)?,
            has_accidents: false,
            evidence: Evidence::default(),
            share: 0.0,
            avoids: false,
            excludes: false,
        });
        success.explain(&failed(log, rows), log.n_trials())?;
        Ok(Some(success))
    }

    /// Updates the `kept` model of success. `failures` has its rows, if they are not the rows of the objective.
    pub fn of<'a>(
        kept: &'a mut Option<Self>,
        failures: Option<&TrainingSet>,
        objective: &TrainingSet,
        columns: &Columns,
        log: View,
        stop: &mut Stop,
    ) -> Result<Option<&'a mut Self>> {
        let (training, log) = match failures {
            Some(failures) => (failures, log.log.success()),
            None => (objective, log),
        };
        Self::update(kept, training, columns, log, stop)
    }

    /// The model of a region that predicts success.
    pub fn region(&self) -> &Region {
        match self.has_accidents {
            true => &self.with_accidents,
            false => &self.certain,
        }
    }

    pub fn region_mut(&mut self) -> &mut Region {
        match self.has_accidents {
            true => &mut self.with_accidents,
            false => &mut self.certain,
        }
    }

    /// Compares the explanations of the failures: a constant rate, a rate that changes in time, and a region. The
    /// explanations have equal prior probabilities, and so have the two models of a region. Sets `has_accidents`,
    /// `evidence`, `share`, `avoids` and `excludes`.
    ///
    /// If w is the probability of an explanation, the next trial succeeds with probability
    /// Σ w (1 − r) + Σ w (l + (h − l) P). The first sum is over the rates, and r is the probability of failure. The
    /// second sum is over the models of a region. There, l and h are the rates of success where the model predicted
    /// failure and success. P is the same in all terms.
    ///
    /// `number` is the number of the next trial.
    fn explain(&mut self, failed: &[bool], number: TrialNumber) -> Result<()> {
        let (constant, changing) = (Rates::of(failed, 0.0), Rates::of(failed, CHANGE));
        let certain = self.certain.explain(failed)?;
        let with_accidents = self.with_accidents.explain_with_accidents(failed)?;
        self.has_accidents = with_accidents.later > certain.later + CLEARLY;
        let regions = [certain, with_accidents];
        let largest = regions[0].log_evidence.max(regions[1].log_evidence);
        let weights = regions.iter().map(|it| (it.log_evidence - largest).exp());
        let region = largest + (0.5 * weights.sum::<f64>()).ln();
        self.evidence = Evidence {
            constant: constant.log_evidence,
            changing: changing.log_evidence,
            region,
        };
        let others = [&constant, &changing];
        let n_successes = failed.iter().filter(|fails| !**fails).count();
        let odds = others
            .iter()
            .map(|other| (other.log_evidence - region).exp());
        let few_succeed = regions[usize::from(self.has_accidents)].lowest_rate <= MOST_EXCEPTIONS;
        let probability = 1.0 / (1.0 + odds.sum::<f64>());
        self.excludes = n_successes > 0 && probability > 0.5 && few_succeed;
        // The probabilities of success are divided by the probability of a region.
        let success = |other: &&Rates| (other.log_evidence - region).exp() * (1.0 - other.next);
        let (mut depends, mut total) = (0.0, others.iter().map(success).sum::<f64>());
        for it in regions {
            let (weight, [low, high]) = (0.5 * (it.log_evidence - region).exp(), it.rates);
            depends += weight * (high - low).max(0.0);
            total += weight * high;
        }
        self.share = depends / total;
        // A success far from the failures tells a region from an outage. If all suggestions stayed near successes, the
        // best point would hardly be searched between two outages.
        let has_risen = changing.log_evidence > constant.log_evidence
            && 1.0 - changing.next < RISEN * (1.0 - constant.next);
        let mostly_fails = changing.next > 0.5;
        let of_region = if n_successes <= FEW_SUCCESSES {
            probability
        } else {
            0.0
        };
        let of_change = if has_risen { WHEN_RISEN } else { 0.0 };
        let part = self.share.max(of_region).max(of_change);
        let is_turn = (number as f64 * GOLDEN).fract() < part;
        self.avoids = self.excludes || mostly_fails && is_turn;
        Ok(())
    }
}

impl Region {
    /// Sets the labels of a region without accidents. The log evidence is the sum of the log probabilities of the
    /// trials, each given the earlier trials. The rates belong to the trials with P ≤ ½ and with P > ½.
    ///
    /// The factor contains these predictions: row i has mean y_i − z_i L_ii and variance L_ii² given the earlier rows.
    fn explain(&mut self, failed: &[bool]) -> Result<Explanation> {
        let (gp, half) = (&mut self.process.gp, failed.len() / 2);
        let labels = labels(failed.iter().map(|fails| !fails), FAILED);
        gp.set_targets(&labels)?;
        let whitened = gp.whitened_targets();
        let (mut levels, mut log_evidence, mut later) = (Levels::default(), 0.0, 0.0);
        for (i, fails) in failed.iter().enumerate() {
            let pivot = gp.factor().at(i, i);
            let at = Moments {
                mean: labels[i] - whitened[i] * pivot,
                variance: (pivot * pivot - NOISE).max(0.0),
            };
            let p = self.labels.log_probability(at).exp();
            let log_probability = levels.add(p, LEVELS, *fails);
            log_evidence += log_probability;
            later += if i < half { 0.0 } else { log_probability };
        }
        let [lowest, low, high] = levels.counts;
        let low = [lowest[0] + low[0], lowest[1] + low[1]];
        Ok(Explanation {
            log_evidence,
            later,
            rates: [rate(low, CONTRADICTION), rate(high, 1.0 - CONTRADICTION)],
            lowest_rate: rate(lowest, CONTRADICTION),
        })
    }

    /// Sets the labels of a region with accidents, which are 1 and −1.
    ///
    /// The evidence compares the region with a constant rate, so both predict the same where the labels of neighbours
    /// are uninformative. If q is the rate of success of the earlier trials, the labels are standardised by their mean
    /// 2 q − 1 and their standard deviation 2 √(q (1 − q)), and the predicted mean of the standardised label of row i
    /// is mu_i. The predicted probability of success is Φ(Φ⁻¹(q) + mu_i), and q until a trial has succeeded and another
    /// has failed. The rates belong to the trials with mu_i < 0 and mu_i ≥ 0.
    fn explain_with_accidents(&mut self, failed: &[bool]) -> Result<Explanation> {
        let (n, gp) = (failed.len(), &mut self.process.gp);
        let labels: Vec<f64> = failed.iter().map(|f| if *f { -1.0 } else { 1.0 }).collect();
        gp.set_targets(&labels)?;
        let mut ones = Array2::ones((1, n));
        gp.factor().forward_substitution(ones.view_mut());
        let whitened = gp.whitened_targets();
        let (mut log_evidence, mut later) = (0.0, 0.0);
        let (mut levels, mut counts, mut seen) = (Levels::default(), [[0.0; 2]; 2], [0.0; 2]);
        for (i, fails) in failed.iter().enumerate() {
            let pivot = gp.factor().at(i, i);
            let label = labels[i] - whitened[i] * pivot;
            let one = 1.0 - ones[[0, i]] * pivot;
            let q = rate(seen, 0.5);
            let mu = (label - (2.0 * q - 1.0) * one) / (2.0 * (q * (1.0 - q)).sqrt());
            let p = match seen.contains(&0.0) {
                true => q,
                false => {
                    let (log_p, _) = log_cdf(normal_quantile(q) + mu);
                    log_p.exp().clamp(LEAST, 1.0 - LEAST)
                }
            };
            log_evidence += if *fails { 1.0 - p } else { p }.ln();
            let at = Moments {
                mean: label,
                variance: (pivot * pivot - WITH_ACCIDENTS.variance).max(0.0),
            };
            let p = self.labels.log_probability(at).exp();
            let log_probability = levels.add(p, LEVELS_WITH_ACCIDENTS, *fails);
            later += if i < n / 2 { 0.0 } else { log_probability };
            let fails = usize::from(*fails);
            counts[usize::from(mu >= 0.0)][fails] += 1.0;
            seen[fails] += 1.0;
        }
        let q = rate(seen, 0.5);
        Ok(Explanation {
            log_evidence,
            later,
            rates: counts.map(|counts| rate(counts, q)),
            lowest_rate: rate(levels.counts[0], CONTRADICTION),
        })
    }
}

#[cfg(test)]
mod tests;
