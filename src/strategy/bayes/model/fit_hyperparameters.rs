//! The fit of the hyperparameters: the choice of the rows and of the starting points.

use std::iter;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::gp::calibration::widened;
use crate::gp::evidence::Data;
use crate::gp::fit::{FitSettings, Found, Variant, fit_again, fit_best, has_levels};
use crate::gp::group_units::{GroupUnits, fit_group_units};
use crate::gp::spread::spread_weights;
use crate::gp::{Hyperparameters, RowNoise, Target};
use crate::ledger::{TrialNumber, View};
use crate::numerics::warp::Warp;
use crate::random::Call;
use crate::strategy::Query;
use crate::strategy::bayes::columns::Columns;
use crate::strategy::bayes::model::context_units::ContextUnits;
use crate::strategy::bayes::model::fit_purpose::is_outdated;
use crate::strategy::bayes::model::note::Fit;
use crate::strategy::bayes::model::targets::{RowValue, Targets};
use crate::strategy::bayes::model::training_set::{TrainingSet, noise_of};
use crate::strategy::bayes::settings::Settings;
use crate::strategy::bayes::settings::surrogate::FitRows;
use crate::strategy::units::Units;

/// A fit starts again if the number of rows has grown by about this factor, because the last θ and the transforms may
/// belong to a poor maximum of the evidence.
const GROWTH: f64 = 1.5;

/// Fits θ to the current rows. Depending on the settings, θ is also fitted to the rows of the tail. The fit lacks the
/// models of success and of durations.
pub fn fit_hyperparameters(
    columns: &Columns,
    training: &mut TrainingSet,
    log: View,
    query: Query,
    call: &mut Call,
) -> Result<Fit> {
    let settings = &*training.settings.clone();
    let gp_settings = &settings.surrogate;
    let with_tail = match gp_settings.fit_rows {
        FitRows::Observed => false,
        FitRows::All => true,
        FitRows::Policy => settings.pending().is_censor(),
    };
    let start = Start::of(columns, training, with_tail, log, call)?;
    let values = &start.values;
    let warp = start.kept.as_ref().and_then(|last| last.units.warp);
    let mut targets = Targets::of(values, settings, warp);
    let mut numbers = training.fold.rows.to_vec();
    let mut noise = noise_of(values, targets.units);
    if with_tail {
        numbers.extend(add_tail(&mut targets, training, log, query, call)?);
        noise.resize(numbers.len(), RowNoise::default());
    }
    let x = training.encode(log, &numbers);
    // Free the current factor, because a fit allocates two matrices. The factor is seldom used after the fit.
    training.drop_factor();
    let about_mean = settings.estimates_mean(columns.dimensions);
    let with_warps = match !with_tail && start.kept.is_none() {
        true => warped(&start.warps, settings, values),
        false => Vec::new(),
    };
    let log_slopes = match with_warps.is_empty() {
        true => Vec::new(),
        false => log_slopes(values, targets.units),
    };
    let variant = |y, noise, log_slope| Variant {
        data: Data {
            x: x.view(),
            y,
            noise,
            about_mean,
        },
        log_slope,
    };
    let others = with_warps.iter();
    let others = others.map(|it| variant(&it.targets.values, &it.noise, &it.log_slopes));
    let plain = variant(&targets.values, &noise, &log_slopes);
    let variants: Vec<_> = iter::once(plain).chain(others).collect();
    let last = training.fit().map(|fit| fit.theta.clone());
    let (found, fit_settings) = start.fit(&variants, last, settings, columns, call)?;
    let theta = match gp_settings.keeps_units() {
        true => widened(
            found.family,
            found.theta,
            variants[found.variant].data,
            &fit_settings,
            call.stop,
        )?,
        false => found.theta,
    };
    let units = match found.variant {
        0 => targets.units,
        i => with_warps[i - 1].targets.units,
    };
    Ok(Fit {
        family: found.family,
        theta,
        rows: Some(training.fold.rows.len()),
        units,
        contexts: start.contexts,
        success: None,
        expense: None,
        window: training.fit().and_then(|fit| fit.window),
        inside: None,
    })
}

/// What a fit starts from.
struct Start {
    /// The last fit, if only its θ is fitted again.
    kept: Option<Fit>,
    /// Whether the fit uses as many starts as a first fit.
    fresh: bool,
    /// The units of the contexts, and the comparable values of the rows in these units.
    contexts: Vec<GroupUnits>,
    values: Vec<RowValue>,
    /// The warps that may suit the values.
    warps: Vec<Warp>,
}

impl Start {
    fn of(
        columns: &Columns,
        training: &mut TrainingSet,
        with_tail: bool,
        log: View,
        call: &mut Call,
    ) -> Result<Self> {
        let settings = &*training.settings.clone();
        let gp_settings = &settings.surrogate;
        let fit_settings = gp_settings.fit_settings(columns);
        let outdated = is_outdated(training, log, call.stop)?;
        let rows = training.fold.rows.len();
        let last_warp = training.fit().and_then(|last| last.units.warp);
        let (keeps_units, fit) = (gp_settings.keeps_units(), training.fit());
        // In fits to many rows, the kernel and the transforms are compared on a part of the rows, so a few more rows
        // seldom change the choice.
        let fitted_levels = |last: &Fit| last.rows.is_some_and(|n| has_levels(n, &fit_settings));
        // A fit that starts again uses as many starts as a first fit, and chooses the kernel and the transforms again.
        let starts_again = |last: &Fit| outdated || has_grown(last.rows, rows);
        let mut fresh = keeps_units && fit.is_none_or(starts_again);
        // Without priors, the evidence often has several maxima, so every fit uses several starting points.
        let may_keep = keeps_units && fit_settings.priors && fit.is_some_and(fitted_levels);
        let groups_grow = columns.contexts.iter().any(|context| {
            let fitted = fit.and_then(|last| last.rows).unwrap_or(0);
            contexts_have_grown(training, log, context, fitted)
        });
        let may_differ = keeps_units && !with_tail && settings.warps() && gp_settings.fits_all();
        let last_contexts = fit.map_or(&[][..], |last| &last.contexts);
        let contexts = match may_differ && (fresh || groups_grow) {
            true => fit_contexts(settings, columns, training, log, &fit_settings, call)?,
            false => last_contexts.to_vec(),
        };
        fresh |= contexts.is_empty() != last_contexts.is_empty();
        let contexts_of = ContextUnits::new(&columns.contexts, &contexts, columns.width());
        let values = training.comparable_values(log, &contexts_of);
        // Propose warps only if needed, because a proposal costs O(n²) for n rows.
        let warps = match settings.warps() && (fresh || !may_keep || last_warp.is_some()) {
            true => proposed_warps(columns, training, log, &values),
            false => Vec::new(),
        };
        // The warp of the last fit would not be proposed for the present values.
        let is_old = |warp: Warp| !warps.iter().any(|other| other.is_near(&warp));
        fresh |= keeps_units && last_warp.is_some_and(is_old);
        Ok(Self {
            kept: training.fit().filter(|_| may_keep && !fresh).cloned(),
            fresh,
            contexts,
            values,
            warps,
        })
    }

    /// Fits θ to these variants of the data. `last` is the last θ.
    fn fit(
        &self,
        variants: &[Variant],
        last: Option<Hyperparameters>,
        settings: &Settings,
        columns: &Columns,
        call: &mut Call,
    ) -> Result<(Found, FitSettings)> {
        let gp_settings = &settings.surrogate;
        let mut fit_settings = gp_settings.fit_settings(columns);
        if let Some(kept) = &self.kept {
            fit_settings.family = kept.family;
            let found = fit_again(variants[0].data, &kept.theta, &fit_settings, call.stop)?;
            return Ok((found, fit_settings));
        }
        let first = gp_settings.first_theta(columns);
        // The last θ may belong to a poor maximum of the evidence, or may not suit the current data. Therefore the first
        // start of a first fit comes first, and the last θ second. A fit that starts again also has random starts, like
        // a first fit.
        if last.is_some() && !self.fresh {
            fit_settings.n_restarts = gp_settings.n_refit_restarts;
        }
        let starts: Vec<_> = match gp_settings.keeps_units() {
            true => iter::once(first).chain(last).collect(),
            // Replays of the literature start from the last θ.
            false => vec![last.unwrap_or(first)],
        };
        let families = gp_settings.families(columns);
        let found = fit_best(variants, &starts, &fit_settings, &families, call)?;
        Ok((found, fit_settings))
    }
}

/// Adds the targets of the tail to the targets, for replays that also fit θ to pending trials. Returns the trials of the
/// tail.
fn add_tail(
    targets: &mut Targets,
    training: &mut TrainingSet,
    log: View,
    query: Query,
    call: &mut Call,
) -> Result<Vec<TrialNumber>> {
    let posterior = match training.posterior(log, query, call.stop) {
        // The values are too large for the units of the last fit, so predictions in these units overflow.
        Err(Error::Overflow { .. }) => None,
        found => found?,
    };
    let Some(posterior) = posterior else {
        let tail = training.tail(log, query, targets);
        // Before the first fit, the posterior mean is the prior mean.
        targets.values.extend(tail.targets.iter().map(prior_mean));
        return Ok(tail.trials);
    };
    let tail = posterior.tail;
    let means = posterior.gp.tail_means(tail.rows.view(), &tail.targets);
    // Convert the means from the units of the posterior to the new units.
    let (before, units) = (posterior.targets.units, targets.units);
    let means = means.into_iter().map(|mean| match before == units {
        true => mean,
        false => units.target(before.value(mean)),
    });
    targets.values.extend(means);
    Ok(tail.trials)
}

/// Whether the number of rows has passed a power of [`GROWTH`] since the last fit.
fn has_grown(fitted: Option<usize>, rows: usize) -> bool {
    let power = |rows: usize| (rows as f64).log(GROWTH).floor();
    fitted.is_none_or(|fitted| power(fitted) != power(rows))
}

/// The warps that may suit the values of the rows.
fn proposed_warps(
    columns: &Columns,
    training: &TrainingSet,
    log: View,
    values: &[RowValue],
) -> Vec<Warp> {
    let rows = training.fold.rows.iter().zip(values);
    let (rows, values): (Vec<TrialNumber>, Vec<_>) = rows
        .filter_map(|(&number, row)| match row {
            RowValue::Observed { value, .. } => Some((number, *value)),
            RowValue::Stopped(_) | RowValue::Discarded => None,
        })
        .unzip();
    let x = training.encode(log, &rows);
    let weights = spread_weights(x.view(), columns.dimensions);
    Warp::proposals(&values, &weights)
}

/// Returns the targets of the rows under each warp.
fn warped(warps: &[Warp], settings: &Settings, values: &[RowValue]) -> Vec<Warped> {
    let of_warp = |&warp: &Warp| {
        let targets = Targets::of(values, settings, Some(warp));
        Warped {
            noise: noise_of(values, targets.units),
            log_slopes: log_slopes(values, targets.units),
            targets,
        }
    };
    warps.iter().map(of_warp).collect()
}

/// Returns log d target/dy for each row. Rows without a value y get 0.
fn log_slopes(values: &[RowValue], units: Units) -> Vec<f64> {
    let slope = |row: &RowValue| row.value().map_or(0.0, |y| units.log_slope(y));
    values.iter().map(slope).collect()
}

/// Whether the number of rows of a choice of a context has passed a power of [`GROWTH`] since the first `fitted` rows.
fn contexts_have_grown(
    training: &TrainingSet,
    log: View,
    context: &Range<usize>,
    fitted: usize,
) -> bool {
    let rows = &training.fold.rows;
    let counts = |rows: &[TrialNumber]| {
        let mut counts = vec![0; context.len()];
        for &number in rows {
            let columns = log.row(number)[context.clone()].iter();
            let choices = columns.zip(&mut counts);
            choices.for_each(|(e, count)| *count += usize::from(*e > 0.5));
        }
        counts
    };
    let before = counts(&rows[..fitted.min(rows.len())]);
    let mut pairs = before.into_iter().zip(counts(rows));
    pairs.any(|(before, now)| now > 0 && (before == 0 || has_grown(Some(before), now)))
}

/// The units of f in the contexts, or none if the evidence for different units is not strong.
fn fit_contexts(
    settings: &Settings,
    columns: &Columns,
    training: &TrainingSet,
    log: View,
    fit_settings: &FitSettings,
    call: &mut Call,
) -> Result<Vec<GroupUnits>> {
    let equal = ContextUnits::default();
    let values = training.comparable_values(log, &equal).into_iter();
    let rows = values.zip(&training.fold.rows);
    let observed = rows.filter(|(value, _)| matches!(value, RowValue::Observed { .. }));
    let (values, numbers): (Vec<RowValue>, Vec<TrialNumber>) = observed.unzip();
    if columns.contexts.is_empty() || values.is_empty() {
        return Ok(Vec::new());
    }
    let targets = Targets::of(&values, settings, None);
    let x = training.encode(log, &numbers);
    let data = Data {
        x: x.view(),
        y: &targets.values,
        noise: &noise_of(&values, targets.units),
        about_mean: settings.estimates_mean(columns.dimensions),
    };
    let known = [settings.surrogate.first_theta(columns)];
    let found = fit_group_units(data, &columns.contexts, &known, fit_settings, call.stop)?;
    let Units { center, scale, .. } = targets.units;
    let mut found = found.unwrap_or_default();
    for units in &mut found {
        units.offset *= scale;
    }
    // Every row has one choice of the first context, so its offsets also contain the center.
    let first = found.iter_mut().take(columns.contexts[0].len());
    first.for_each(|units| units.offset += center);
    Ok(found)
}

/// The targets of the rows under a warp, with their noise variances and log slopes.
struct Warped {
    targets: Targets,
    noise: Vec<RowNoise>,
    log_slopes: Vec<f64>,
}

/// Before the first fit, the target of a row in the tail, computed from the prior mean.
fn prior_mean(target: &Target) -> f64 {
    match target {
        Target::Value(y) | Target::PseudoObserved { value: y, .. } => *y,
        Target::PosteriorMean | Target::NearestMean(_) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fits_start_again_when_the_rows_pass_a_power_of_the_growth() {
        // 1.5¹³ = 194.6 and 1.5¹⁴ = 291.9.
        assert!(has_grown(None, 200));
        for (fitted, rows, grown) in [
            (150, 194, false),
            (190, 195, true),
            (200, 291, false),
            (200, 292, true),
        ] {
            assert_eq!(has_grown(Some(fitted), rows), grown, "{fitted} {rows}");
        }
    }
}
