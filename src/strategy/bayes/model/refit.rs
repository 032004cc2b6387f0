//! The fit of the hyperparameters: the choice of the rows and of the starting points.

use std::iter;

use crate::error::{Error, Result};
use crate::gp::calibration::widened;
use crate::gp::evidence::Data;
use crate::gp::fit::{FitSettings, Variant, fit_again, fit_best, has_levels};
use crate::gp::spread::spread_weights;
use crate::gp::{RowNoise, Target};
use crate::ledger::{Ledger, TrialNumber};
use crate::random::Call;
use crate::strategy::Query;
use crate::strategy::bayes::columns::Columns;
use crate::strategy::bayes::model::expense::fit_expense;
use crate::strategy::bayes::model::note::Fit;
use crate::strategy::bayes::model::success::fit_success;
use crate::strategy::bayes::model::targets::{RowValue, Targets};
use crate::strategy::bayes::model::training_set::TrainingSet;
use crate::strategy::bayes::settings::Settings;
use crate::strategy::bayes::settings::surrogate::FitRows;
use crate::strategy::units::Units;
use crate::strategy::warp::Warp;

/// The kernel, the transform of the values and the input warp are chosen again after the number of rows has grown by
/// about this factor.
const GROWTH: f64 = 1.5;

/// Fits θ to the current rows. Depending on the settings, θ is also fitted to the rows of the tail.
pub fn refit(
    settings: &Settings,
    columns: &Columns,
    training: &mut TrainingSet,
    log: &Ledger,
    query: Query,
    call: &mut Call,
) -> Result<Fit> {
    let gp_settings = settings.gp();
    let with_tail = match gp_settings.fit_rows {
        FitRows::Observed => false,
        FitRows::All => true,
        FitRows::Policy => settings.pending().is_censor(),
    };
    let mut fit_settings = gp_settings.fit_settings(columns);
    let outdated = training.is_outdated(log, call.stop)?;
    let keeps = |last: &&Fit| {
        gp_settings.keeps_units()
            && !outdated
            && keeps_choices(last, training.fold.rows.len(), &fit_settings)
    };
    let kept = training.fit().filter(keeps).cloned();
    let warp = kept.as_ref().and_then(|last| last.units.warp);
    let mut targets = training.warped_targets(log, warp);
    let mut numbers = training.fold.rows.to_vec();
    let mut noise = training.row_noise(log, targets.units);
    if with_tail {
        let posterior = match training.posterior(log, query, call.stop) {
            // The values are too large for the units of the last fit, so predictions in these units overflow.
            Err(Error::Overflow { .. }) => None,
            found => found?,
        };
        let tail = match posterior {
            Some(posterior) => {
                let means = posterior
                    .gp
                    .tail_means(posterior.tail.rows.view(), &posterior.tail.targets);
                // The means are in the units of the posterior.
                let (before, units) = (posterior.targets.units, targets.units);
                let means = means.into_iter().map(|mean| match before == units {
                    true => mean,
                    false => units.target(before.value(mean)),
                });
                targets.values.extend(means);
                posterior.tail
            }
            None => {
                let tail = training.tail(log, query, &targets);
                // Before the first fit, the posterior mean is the prior mean.
                targets.values.extend(tail.targets.iter().map(prior_mean));
                tail
            }
        };
        numbers.extend(&tail.trials);
        noise.resize(numbers.len(), RowNoise::default());
    }
    let x = training.encode(log, &numbers);
    // Free the current factor, because a fit allocates two matrices. The factor is seldom used after the fit.
    training.drop_factor();
    let about_mean = settings.estimates_mean(columns.dimensions);
    let data = Data {
        x: x.view(),
        y: &targets.values,
        noise: &noise,
        about_mean,
    };
    let with_warps = match settings.warps() && !with_tail && kept.is_none() {
        true => warped(columns, training, log),
        false => Vec::new(),
    };
    let log_slopes = log_slopes(training, log, targets.units);
    let plain = Variant {
        data,
        log_slope: if with_warps.is_empty() {
            &[]
        } else {
            &log_slopes
        },
    };
    let variants = with_warps.iter().map(|warped| Variant {
        data: Data {
            x: x.view(),
            y: &warped.targets.values,
            noise: &warped.noise,
            about_mean,
        },
        log_slope: &warped.log_slopes,
    });
    let variants: Vec<_> = iter::once(plain).chain(variants).collect();
    let found = match kept {
        Some(last) => {
            fit_settings.family = last.family;
            fit_again(data, &last.theta, &fit_settings, call.stop)?
        }
        None => {
            let first = gp_settings.first_theta(columns);
            let starts = match training.fit() {
                None => vec![first],
                // The last θ and its input warp may not suit the current data, so the fit also starts from the θ that
                // was the first starting point of the first fit.
                Some(fit) if outdated => vec![first, fit.theta.clone()],
                Some(fit) => {
                    // The last θ is the best starting point. The fit also uses other starting points, because a
                    // different θ may now have a larger evidence.
                    fit_settings.n_restarts = gp_settings.n_refit_restarts;
                    vec![fit.theta.clone()]
                }
            };
            let families = gp_settings.families(columns);
            fit_best(&variants, &starts, &fit_settings, &families, call)?
        }
    };
    let theta = match gp_settings.keeps_units() {
        true => widened(
            &found,
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
        success: fit_success(settings, columns, training, log, call)?,
        expense: fit_expense(settings, columns, training, log, query, call)?,
        window: training.fit().and_then(|fit| fit.window),
    })
}

/// Whether a fit to `rows` rows keeps the kernel, the transform of the values and the input warp of the last fit. In
/// fits to many rows, these choices are compared on a part of the rows, so few more rows seldom change them. They are
/// made again when the number of rows passes a power of [`GROWTH`]. Without priors, the evidence often has several
/// maxima, so every fit uses several starting points.
fn keeps_choices(last: &Fit, rows: usize, settings: &FitSettings) -> bool {
    let power = |rows: usize| (rows as f64).log(GROWTH).floor();
    let few_more = |fitted| has_levels(fitted, settings) && power(fitted) == power(rows);
    settings.priors && last.rows.is_some_and(few_more)
}

/// Returns the targets of the rows under every warp that may suit the values.
fn warped(columns: &Columns, training: &TrainingSet, log: &Ledger) -> Vec<Warped> {
    let rows = training.fold.rows.iter().zip(training.row_values(log));
    let (rows, values): (Vec<TrialNumber>, Vec<_>) = rows
        .filter_map(|(&number, row)| match row {
            RowValue::Observed { value, .. } => Some((number, value)),
            RowValue::Stopped(_) | RowValue::Discarded => None,
        })
        .unzip();
    let x = training.encode(log, &rows);
    let weights = spread_weights(x.view(), columns.dimensions);
    let warps = Warp::proposals(&values, &weights).into_iter();
    warps
        .map(|warp| {
            let targets = training.warped_targets(log, Some(warp));
            Warped {
                noise: training.row_noise(log, targets.units),
                log_slopes: log_slopes(training, log, targets.units),
                targets,
            }
        })
        .collect()
}

/// Returns log d target/dy for each row. Rows without a value y get 0.
fn log_slopes(training: &TrainingSet, log: &Ledger, units: Units) -> Vec<f64> {
    let rows = training.row_values(log).into_iter();
    rows.map(|row| row.value().map_or(0.0, |y| units.log_slope(y)))
        .collect()
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
        Target::Value(y) | Target::Stated { value: y, .. } => *y,
        Target::PosteriorMean | Target::NearestMean(_) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gp::Hyperparameters;
    use crate::gp::kernel::{InputWarp, KernelFamily};
    use crate::problem::{Coordinate, Domain};
    use crate::strategy::bayes::settings::surrogate::GP;

    #[test]
    fn choices_are_made_again_when_the_rows_pass_a_power_of_the_growth() {
        let theta = Hyperparameters {
            lengthscale: vec![1.0],
            signal_variance: 1.0,
            noise_variance: 0.1,
            input_warp: InputWarp::default(),
        };
        let given = Fit::given(KernelFamily::Matern52, theta);
        let settings = |d| {
            let domain = Domain::new_box(vec![Coordinate::Continuous; d]).unwrap();
            GP::default().fit_settings(&Columns::of(&domain, &[]))
        };
        assert!(!keeps_choices(&given, 200, &settings(2)));
        let without_priors = FitSettings {
            priors: false,
            ..settings(2)
        };
        // 1.5¹³ = 194.6 and 1.5¹⁴ = 291.9. With 16 parameters, fits to up to 290 rows have one level.
        for (d, fitted, rows, keeps) in [
            (2, 150, 160, false),
            (2, 151, 194, true),
            (2, 190, 195, false),
            (2, 200, 291, true),
            (2, 200, 292, false),
            (16, 280, 291, false),
            (16, 291, 291, true),
        ] {
            let last = Fit {
                rows: Some(fitted),
                ..given.clone()
            };
            assert!(!keeps_choices(&last, rows, &without_priors));
            assert_eq!(
                keeps_choices(&last, rows, &settings(d)),
                keeps,
                "{fitted} {rows}"
            );
        }
    }
}
