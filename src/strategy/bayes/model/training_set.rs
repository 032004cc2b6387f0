//! The training set: the rows of the model, which are computed from the log, and the cached posterior.
//!
//! There are two kinds of state. The *fold* is the state that is computed from the log event by event. If suggestions
//! at the end of the log are dropped, the fold can undo their changes. The *posterior* is a cache that is computed from
//! the fold, and depends, bit for bit, only on the fold ([`KeptProcess`]).

mod fold;

use std::ops::{Deref, Range};
use std::sync::Arc;

use ndarray::{Array2, ArrayView2, Axis};

use crate::error::{Result, Stop};
use crate::gp::kernel::Category;
use crate::gp::{Conditioned, GaussianProcess, Hyperparameters, RowNoise, Target};
use crate::ledger::{State, TrialNumber, View};
use crate::numerics::warp::Warp;
use crate::strategy::Query;
use crate::strategy::bayes::acquisitions::log_inside::LogProbabilityInside;
use crate::strategy::bayes::acquisitions::rule::TailKind;
use crate::strategy::bayes::columns::Columns;
use crate::strategy::bayes::model::context_units::ContextUnits;
use crate::strategy::bayes::model::kept_process::{KeptProcess, Version, Wanted};
use crate::strategy::bayes::model::labels::{
    FAILED, FAMILY, LABEL_INSIDE, NOISE, SIGNAL_VARIANCE, censor, labels, touching,
};
use crate::strategy::bayes::model::note::{Fit, InsideFit, LabelsFit};
use crate::strategy::bayes::model::pseudo_observations::PseudoObservations;
use crate::strategy::bayes::model::targets::{MAX_NOISE, RowValue, Targets, variance_of_target};
use crate::strategy::bayes::model::window::{ChosenWindow, choose_window};
use crate::strategy::bayes::settings::surrogate::MIN_NOISE;
use crate::strategy::bayes::settings::{Settings, Window};
use crate::strategy::model_based::Further;
use crate::strategy::units::{Units, UnitsHere};

pub use fold::Fold;

/// The training set: the trials that are rows of the model, the hyperparameters θ, and the posterior given the rows.
pub struct TrainingSet {
    pub settings: Arc<Settings>,
    width: usize,
    categories: Vec<Category>,
    contexts: Vec<Range<usize>>,
    d: usize,
    pub fold: Fold,
    pub pseudo_observations: PseudoObservations,
    kept: Option<KeptProcess>,
    /// The process of labels, if the model of the probability inside the bounds is a model of labels.
    kept_labels: Option<KeptProcess>,
    /// The number of factors built so far.
    generation: u64,
}

/// The posterior given the rows, and the tail on which it can be conditioned.
pub struct Posterior<'a, G = Observed<'a>> {
    pub gp: G,
    pub targets: Targets,
    /// The units of f in each context.
    pub contexts: ContextUnits,
    /// The trial of each row.
    pub rows: &'a [TrialNumber],
    /// The rows that are not incumbents: stopped trials, and trials that were run outside the domain.
    pub unranked: Vec<usize>,
    pub tail: Tail,
    pub version: Version,
}

/// The pending trials that the policy adds to the model.
pub struct Tail {
    pub trials: Vec<TrialNumber>,
    /// The encoded points and contexts of the trials.
    pub rows: Array2<f64>,
    pub targets: Vec<Target>,
}

/// The prediction of a further value, in units of the targets. The standard deviation contains the noise, and is
/// enlarged if the earlier values had larger prediction errors than the model assumes.
pub struct Predictive {
    pub mean: f64,
    pub std: f64,
    pub units: UnitsHere,
}

/// A factor of this number of rows is computed within a millisecond.
const FEW_ROWS: usize = 200;

/// With more rows, a prediction takes more than a few milliseconds.
const MANY_ROWS: usize = 2000;

/// The number of rows that may be appended to the factor before a prediction.
const FEW_LATER: usize = 64;

/// 95 % of the absolute values of a standard normal variable are smaller.
const NORMAL: f64 = 1.96;

/// The posterior given the rows and a tail.
pub type ConditionedPosterior<'a> = Posterior<'a, Conditioned<&'a mut GaussianProcess>>;

/// The process of the rows. Only [`Posterior::condition`] changes it.
pub struct Observed<'a>(&'a mut GaussianProcess);

impl Deref for Observed<'_> {
    type Target = GaussianProcess;

    fn deref(&self) -> &GaussianProcess {
        self.0
    }
}

impl<G> Posterior<'_, G> {
    /// The conversion between targets and values of f in the context of an encoded row, or in this context.
    pub fn units(&self, row: &[f64]) -> UnitsHere {
        self.contexts.units(self.targets.units, row)
    }
}

impl<'a> Observed<'a> {
    /// Censors the targets of some rows ([`censor`]).
    pub(super) fn censor(self, targets: Vec<f64>, rows: &[(usize, f64)]) -> Result<Self> {
        censor(self.0, targets, rows)?;
        Ok(self)
    }

    /// Conditions the process on noiseless rows at these points.
    pub fn condition(
        self,
        points: ArrayView2<f64>,
    ) -> Result<Conditioned<&'a mut GaussianProcess>> {
        let (points, none) = points.split_at(Axis(0), points.nrows());
        Conditioned::on_noiseless(self.0, points, none)
    }
}

impl<'a> Posterior<'a> {
    /// Conditions the posterior on a tail.
    pub fn condition(self, kind: &TailKind) -> Result<ConditionedPosterior<'a>> {
        let (gp, pending) = (self.gp.0, self.tail.rows.view());
        Ok(Posterior {
            gp: match kind {
                TailKind::Nothing => Conditioned::on_nothing(gp),
                TailKind::Policy => Conditioned::on(gp, pending, &self.tail.targets)?,
                TailKind::Noiseless { baseline } => {
                    Conditioned::on_noiseless(gp, baseline.view(), pending)?
                }
            },
            targets: self.targets,
            contexts: self.contexts,
            rows: self.rows,
            unranked: self.unranked,
            tail: self.tail,
            version: self.version,
        })
    }
}

/// Sets the targets of the rows. If the prior mean is estimated, the estimate is subtracted from the targets.
///
/// d is the number of dimensions of the point and the context together.
fn set_targets(
    gp: &mut GaussianProcess,
    targets: &mut Targets,
    settings: &Settings,
    d: usize,
) -> Result<()> {
    if settings.estimates_mean(d) {
        let mean = gp.set_targets_about_mean(&targets.values)?;
        if (targets.units.center + mean * targets.units.scale).is_finite() {
            targets.move_center(mean);
            return Ok(());
        }
    }
    gp.set_targets(&targets.values)
}

impl TrainingSet {
    /// Creates an empty training set for rows with these columns.
    pub fn new(settings: Settings, columns: &Columns) -> Self {
        let fit_settings = settings.surrogate.fit_settings(columns);
        let family = fit_settings.family;
        let given = fit_settings.given();
        let fold = Fold {
            fit: given.map(|theta| Arc::new(Fit::given(family, theta))),
            ..Fold::default()
        };
        Self {
            settings: Arc::new(settings),
            width: columns.width(),
            categories: columns.categories.clone(),
            contexts: columns.contexts.clone(),
            d: columns.dimensions,
            fold,
            pseudo_observations: PseudoObservations::default(),
            kept: None,
            kept_labels: None,
            generation: 0,
        }
    }

    /// Updates the fold with the events since the last call.
    pub fn catch_up(&mut self, log: View) -> Result<()> {
        self.fold.catch_up(log, &self.settings)?;
        let fold = &self.fold;
        self.pseudo_observations
            .catch_up(log, &fold.ended, fold.n_revisions, &fold.rows)
    }

    /// Prepares a suggestion at time `now`. If late values are discarded, trials whose window has passed become rows.
    /// `rewind` undoes this change.
    pub fn before_suggestion(&mut self, now: f64) {
        self.fold.before_suggestion(now);
    }

    /// The last fit, or the given θ.
    pub fn fit(&self) -> Option<&Fit> {
        self.fold.fit.as_deref()
    }

    /// The window that is in force. If the window is chosen from delays, all pending trials count as arriving for this
    /// window. For discarding a value, the window at the time of the suggestion counts instead.
    pub fn window(&self) -> Option<f64> {
        self.fold.window_of(TrialNumber::MAX, &self.settings)
    }

    /// The window that is chosen from delays before the next suggestion, if a choice is due.
    pub fn new_window(
        &self,
        log: View,
        query: Query,
        stop: &mut Stop,
    ) -> Result<Option<ChosenWindow>> {
        match self.settings.window {
            Some(Window::Auto) => {
                let last = self.fit().and_then(|fit| fit.window);
                choose_window(last, log, query, stop)
            }
            _ => Ok(None),
        }
    }

    /// The number of failed trials. Failed trials are rows of the model of success, and not of the model of f.
    pub fn n_failed(&self, log: View) -> usize {
        let failed = |number: &&TrialNumber| log.of(**number).state() == State::Failed;
        self.fold.ended.iter().filter(failed).count()
    }

    /// The squared whitened targets z² of the observed values after the first n rows.
    pub fn later_squares(&mut self, n: usize, log: View, stop: &mut Stop) -> Result<Vec<f64>> {
        let mut targets = self.targets(log);
        self.update_posterior(log, &mut targets, stop)?;
        let whitened = self.kept.iter().flat_map(|kept| kept.gp.whitened_targets());
        let later = whitened.zip(&self.fold.values).skip(n);
        let squares = later.filter_map(|(z, value)| value.map(|_| z * z));
        Ok(squares.collect())
    }

    /// Computes the targets of the rows in the units of the last fit. If the units may change between fits, compute the
    /// units from the current values and keep the warp of the last fit.
    pub fn targets(&self, log: View) -> Targets {
        match self.fit() {
            Some(fit) if self.settings.surrogate.keeps_units() => {
                Targets::in_units(&self.row_values(log), &self.settings, fit.units)
            }
            fit => self.warped_targets(log, fit.and_then(|fit| fit.units.warp)),
        }
    }

    /// Computes the targets of the rows under a warp, in units computed from the current values.
    pub fn warped_targets(&self, log: View, warp: Option<Warp>) -> Targets {
        Targets::of(&self.row_values(log), &self.settings, warp)
    }

    /// The units of f in each context in the last fit.
    pub fn context_units(&self) -> ContextUnits {
        let units = self.fit().map_or(&[][..], |fit| &fit.contexts);
        ContextUnits::new(&self.contexts, units, self.width)
    }

    /// Returns the comparable value of each row, in the units of the contexts in the last fit.
    pub fn row_values(&self, log: View) -> Vec<RowValue> {
        self.comparable_values(log, &self.context_units())
    }

    /// Returns the comparable value of each row, where the contexts have these units.
    pub fn comparable_values(&self, log: View, contexts: &ContextUnits) -> Vec<RowValue> {
        let rows = self.fold.rows.iter().zip(self.values_of_f(log));
        rows.map(|(&number, value)| value.comparable(contexts, log.row(number)))
            .collect()
    }

    /// Returns the value of each row, in units of f.
    fn values_of_f(&self, log: View) -> Vec<RowValue> {
        let rows = self.fold.rows.iter().zip(&self.fold.values);
        rows.zip(&self.fold.stds)
            .map(|((&number, value), &std)| match *value {
                Some(value) => RowValue::Observed { value, std },
                None if log.of(number).state() == State::Stopped => {
                    RowValue::Stopped(self.pseudo_observations.of_row(number))
                }
                None => RowValue::Discarded,
            })
            .collect()
    }

    /// Computes the noise variance of each row in these units.
    pub fn row_noise(&self, log: View, units: Units) -> Vec<RowNoise> {
        noise_of(&self.row_values(log), units)
    }

    /// Returns one row per trial: the encoded point, followed by the encoded context.
    pub fn encode(&self, log: View, numbers: &[TrialNumber]) -> Array2<f64> {
        encode(log, numbers, self.width)
    }

    /// The pending trials that count as arriving.
    pub fn arriving(&self, log: View, query: Query) -> Vec<TrialNumber> {
        let window = self.window();
        let pending = log.pending();
        let arriving = |number: &TrialNumber| {
            let trial = log.of(*number);
            trial.is_arriving(query.now, query.wall_time, window)
        };
        pending.filter(arriving).collect()
    }

    /// Returns the pending trials that the policy adds to the model, and their targets.
    ///
    /// The rows with pseudo-observations come first. The policies `Censor` and `Ignore` do not use curves of running
    /// trials.
    pub fn tail(&self, log: View, query: Query, targets: &Targets) -> Tail {
        let (pending, window) = (self.settings.pending(), self.window());
        let contexts = self.context_units();
        let mut tail: Vec<(TrialNumber, Target)> = log
            .pending()
            .filter(|number| !self.fold.rows.contains(number))
            .filter_map(|number| {
                let trial = log.of(number);
                let arriving = trial.is_arriving(query.now, query.wall_time, window);
                let target = pending.target(arriving, targets.levels)?;
                let pseudo = match pending.uses_curves() {
                    true => self.pseudo_observations.of(log, number),
                    false => None,
                };
                let pseudo = pseudo.map(|it| contexts.comparable_pseudo(it, log.row(number)));
                Some((
                    number,
                    pseudo.map_or(target, |pseudo| targets.pseudo_observed(pseudo)),
                ))
            })
            .collect();
        tail.sort_by_key(|(_, target)| !matches!(target, Target::PseudoObserved { .. }));
        let (trials, targets): (Vec<_>, Vec<_>) = tail.into_iter().unzip();
        Tail {
            rows: self.encode(log, &trials),
            trials,
            targets,
        }
    }

    /// Returns the posterior given the rows, or `None` before the first θ is known.
    pub fn posterior(
        &mut self,
        log: View,
        query: Query,
        stop: &mut Stop,
    ) -> Result<Option<Posterior<'_>>> {
        // Without a fit, do not return the kept posterior: it may belong to a fit that was undone.
        if self.fold.fit.is_none() {
            return Ok(None);
        }
        let mut targets = self.targets(log);
        self.update_posterior(log, &mut targets, stop)?;
        let tail = self.tail(log, query, &targets);
        let contexts = self.context_units();
        Ok(self.kept.as_mut().map(|kept| Posterior {
            gp: Observed(&mut kept.gp),
            targets,
            contexts,
            rows: &self.fold.rows,
            unranked: unranked_rows(&self.fold, log),
            tail,
            version: kept.version,
        }))
    }

    /// Returns the prediction of a further value from the rows, or `None` without a fit. Unless `builds`, the result is
    /// also `None` if most of the factor would have to be computed.
    pub fn predictive(
        &mut self,
        log: View,
        further: Further,
        builds: bool,
        stop: &mut Stop,
    ) -> Result<Option<Predictive>> {
        let Some(fit) = self.fold.fit.clone() else {
            return Ok(None);
        };
        let n = self.fold.rows.len();
        let is_quick = n <= FEW_ROWS
            || (n <= MANY_ROWS
                && !self.fold.reordered
                && self.kept.as_ref().is_some_and(|kept| {
                    kept.gp.len() + FEW_LATER >= n
                        && kept.version.base == self.fold.base
                        && kept.gp.hyperparameters() == fit.theta
                }));
        if !(builds || is_quick) {
            return Ok(None);
        }
        let mut targets = self.targets(log);
        self.update_posterior(log, &mut targets, stop)?;
        let units = self.context_units().units(targets.units, further.row);
        let Some(kept) = &self.kept else {
            return Ok(None);
        };
        let point = ArrayView2::from_shape((1, further.row.len()), further.row);
        let point = point.expect("the row has one entry for each column");
        let replaced = further
            .replaces
            .and_then(|it| self.fold.rows.iter().position(|n| *n == it));
        let (mean, variance) = match replaced {
            Some(i) => kept.gp.predict_without(point, i),
            None => {
                let (mean, variance) = kept.gp.predict(point);
                (mean[0], variance[0])
            }
        };
        let noise = match further.std {
            Some(std) => {
                let std = std / units.here.scale;
                variance_of_target(targets.units, targets.units.value(mean), std).max(MIN_NOISE)
            }
            None => kept.gp.noise_variance(),
        };
        // The whitened targets of the rows are their prediction errors, given the rows before.
        let mut errors: Vec<f64> = kept.gp.whitened_targets().iter().map(|z| z.abs()).collect();
        errors.sort_by(f64::total_cmp);
        let typical = errors[(errors.len() - 1) * 19 / 20] / NORMAL;
        Ok(Some(Predictive {
            mean,
            std: (variance + noise).sqrt() * typical.max(1.0),
            units,
        }))
    }

    /// Updates the posterior for the current rows and these targets. If the prior mean is estimated, the estimate is
    /// subtracted from the targets. Before the first θ is known, this method does nothing.
    ///
    /// The declared noise of values is converted to the unit of the last fit. If all hyperparameters are given, the
    /// declared noise is converted to the current unit, which changes with every value.
    fn update_posterior(
        &mut self,
        log: View,
        targets: &mut Targets,
        stop: &mut Stop,
    ) -> Result<()> {
        let Some(fit) = self.fold.fit.clone() else {
            return Ok(());
        };
        let fits = self.settings.surrogate.fits();
        // If rows were removed or changed, use the base that the next suggestion will set: all current rows.
        let known = |std: &Option<f64>| std.is_some();
        let moving =
            !fits && (self.fold.stds.iter().any(known) || self.pseudo_observations.is_fitted());
        let base = match self.fold.reordered || moving {
            true => self.fold.rows.len(),
            false => self.fold.base,
        };
        let units = Units {
            scale: if fits {
                fit.units.scale
            } else {
                targets.units.scale
            },
            ..targets.units
        };
        let noise = self.row_noise(log, units);
        let rows = &self.fold.rows;
        let wanted = Wanted {
            family: fit.family,
            theta: &fit.theta,
            categories: &self.categories,
            trials: rows,
            noise: &noise,
            points: &|range| encode(log, &rows[range], self.width),
            base,
            n_moves: self.fold.n_moves,
        };
        let kept = KeptProcess::update(self.kept.take(), &wanted, self.generation, stop)?;
        self.generation = kept.version.generation;
        let kept = self.kept.insert(kept);
        set_targets(&mut kept.gp, targets, &self.settings, self.d)
    }

    /// Returns the process that predicts whether the outcome lies within its bounds, and the bounds in units of its
    /// targets. Returns `None` before the first θ is known.
    pub fn inside(
        &mut self,
        bounds: (f64, f64),
        log: View,
        query: Query,
        stop: &mut Stop,
    ) -> Result<Option<(Observed<'_>, LogProbabilityInside)>> {
        let chosen = self.fit().and_then(|fit| fit.inside.clone());
        let at_bound = match &chosen {
            None => Vec::new(),
            Some(InsideFit::Censored) => touching(&self.fold.values, bounds),
            Some(InsideFit::Labels(fit)) => {
                return self
                    .labelled(fit, (bounds, FAILED, NOISE), log, stop)
                    .map(Some);
            }
        };
        let Some(posterior) = self.posterior(log, query, stop)? else {
            return Ok(None);
        };
        let inside = LogProbabilityInside::of(bounds, posterior.units(query.context));
        let Posterior { gp, targets, .. } = posterior;
        let gp = match at_bound.is_empty() {
            true => gp,
            false => gp.censor(targets.values, &at_bound)?,
        };
        Ok(Some((gp, inside)))
    }

    /// The posterior of labels, and the bounds of a label inside. `outside` is the label outside the bounds.
    pub(super) fn labelled(
        &mut self,
        fit: &LabelsFit,
        (bounds, outside, noise): ((f64, f64), f64, f64),
        log: View,
        stop: &mut Stop,
    ) -> Result<(Observed<'_>, LogProbabilityInside)> {
        let (rows, is_inside) = self.known(bounds);
        let labels = labels(is_inside.iter().copied(), outside);
        let theta = Hyperparameters::new(fit.lengthscale.clone(), SIGNAL_VARIANCE, noise);
        let wanted = Wanted {
            family: FAMILY,
            theta: &theta,
            categories: &self.categories,
            trials: &rows,
            noise: &vec![RowNoise::default(); rows.len()],
            points: &|range| encode(log, &rows[range], self.width),
            base: fit.rows.min(rows.len()),
            n_moves: self.fold.n_moves,
        };
        let kept = KeptProcess::update(self.kept_labels.take(), &wanted, 0, stop)?;
        let kept = self.kept_labels.insert(kept);
        kept.gp.set_targets(&labels)?;
        Ok((Observed(&mut kept.gp), LABEL_INSIDE))
    }

    /// The value of each row, or `None` if the trial was stopped or its window has passed.
    pub fn known_values(&self) -> &[Option<f64>] {
        &self.fold.values
    }

    /// The rows with a value.
    pub(super) fn known_rows(&self) -> Vec<usize> {
        let values = &self.fold.values;
        (0..values.len())
            .filter(|row| values[*row].is_some())
            .collect()
    }

    /// The trials with a value, and whether each value lies within these bounds.
    pub(super) fn known(&self, (low, high): (f64, f64)) -> (Vec<TrialNumber>, Vec<bool>) {
        let rows = self.fold.rows.iter().zip(&self.fold.values);
        rows.filter_map(|(&number, value)| Some((number, (low..=high).contains(&(*value)?))))
            .unzip()
    }

    /// Frees the memory of the factor. The same factor, bit for bit, can be rebuilt from the rows.
    pub fn drop_factor(&mut self) {
        self.kept = None;
    }
}

/// Computes the noise variances of rows with these comparable values, in these units.
pub fn noise_of(rows: &[RowValue], units: Units) -> Vec<RowNoise> {
    let noise = |row: &RowValue| match *row {
        RowValue::Observed { std: None, .. } | RowValue::Discarded => RowNoise::default(),
        RowValue::Observed {
            value,
            std: Some(std),
        } => RowNoise::Known(variance_of_target(units, value, std).max(MIN_NOISE)),
        RowValue::Stopped(Some(pseudo)) => RowNoise::Added(variance_of_target(
            units,
            pseudo.value,
            pseudo.variance.sqrt(),
        )),
        RowValue::Stopped(None) => RowNoise::Known(MAX_NOISE),
    };
    rows.iter().map(noise).collect()
}

/// Returns the encoded rows of trials, which have this width.
fn encode(log: View, numbers: &[TrialNumber], width: usize) -> Array2<f64> {
    let rows = numbers.iter().flat_map(|&number| log.row(number));
    Array2::from_shape_vec((numbers.len(), width), rows.copied().collect())
        .expect("every row of the log has this width")
}

/// The rows of stopped trials, and of trials that were run outside the domain. If no other row is left, only the rows of
/// stopped trials, because improvement needs an incumbent.
fn unranked_rows(fold: &Fold, log: View) -> Vec<usize> {
    let trial = |row: &usize| log.of(fold.rows[*row]);
    let is_stopped = |row: &usize| trial(row).state() == State::Stopped;
    let is_unranked = |row: &usize| is_stopped(row) || trial(row).is_outside();
    let unranked: Vec<usize> = (0..fold.rows.len()).filter(is_unranked).collect();
    match unranked.len() < fold.rows.len() {
        true => unranked,
        false => unranked.into_iter().filter(is_stopped).collect(),
    }
}

#[cfg(test)]
mod tests;
