//! The model of durations for predictions to a user: the model of expenses, fitted to the durations of all trials that
//! have ended.

use ndarray::{ArrayView2, Axis};

use crate::error::{Result, Stop, check, unless_numerical};
use crate::gp::{BLOCK, GaussianProcess};
use crate::ledger::View;
use crate::random::Call;
use crate::strategy::bayes::columns::Columns;
use crate::strategy::bayes::model::expense::data::{Data, Expenses};
use crate::strategy::bayes::model::expense::linear::Linear;
use crate::strategy::bayes::model::expense::{Censored, fit_residuals, residuals};
use crate::strategy::bayes::model::fit_purpose::FitPurpose;
use crate::strategy::bayes::model::note::ExpenseFit;
use crate::strategy::bayes::model::training_set::TrainingSet;
use crate::strategy::bayes::settings::Settings;
use crate::strategy::model_based::Durations;
use crate::strategy::{Query, Resource};

/// The largest number of parts of a cross-validation.
const PARTS: usize = 10;

/// Fits the model of durations. The fit of the hyperparameters is kept until the log grows, and does not depend on the
/// fits for suggestions. Returns `None` if fewer than two positive durations are known.
///
/// The variance of a prediction is the variance of the model plus a constant. The constant is the mean square error in
/// the cross-validation minus the mean variance in the cross-validation, or 0 if the difference is negative. The
/// constant accounts for the uncertainty of the linear model and of the hyperparameters.
pub fn durations(
    kept: &mut Option<(usize, Option<ExpenseFit>)>,
    settings: &Settings,
    columns: &Columns,
    training: &TrainingSet,
    log: View,
    query: Query,
    call: &mut Call,
) -> Result<Option<Durations>> {
    let Some(data) = Data::of(training, log, query, Resource::Time) else {
        return Ok(None);
    };
    let fit = match kept.take() {
        Some((len, fit)) if FitPurpose::Durations.keeps(len, None, training, log) => fit,
        _ => {
            // The fit must not depend on the time of this call, so running trials are left out.
            let query = Query {
                wall_time: None,
                ..query
            };
            match Data::of(training, log, query, Resource::Time) {
                Some(ended) => {
                    fit_residuals(&ended, Resource::Time, None, (settings, columns), call)?
                }
                None => None,
            }
        }
    };
    *kept = Some((log.len(), fit.clone()));
    let mut left_out = cross_validation(&data, fit.as_ref(), columns, call.stop)?;
    let errors = data.expenses.log_expenses.iter().zip(&left_out.0);
    let square_errors = errors.map(|(y, mean)| (y - mean).powi(2)).sum::<f64>();
    let variances = left_out.1.iter().map(|std| std * std).sum::<f64>();
    let added_variance = ((square_errors - variances) / data.n_known() as f64).max(0.0);
    widen(&mut left_out.1, added_variance);
    let explained = match &fit {
        Some(fit) => fit.explained,
        None => data.explained(data.scale * data.scale),
    };
    let model = Model::new(&data, fit.as_ref(), columns, call.stop)?;
    let predict = move |rows: ArrayView2<f64>, stop: &mut Stop| {
        let (mut means, mut stds) = (Vec::with_capacity(rows.nrows()), Vec::new());
        for block in rows.axis_chunks_iter(Axis(0), BLOCK) {
            check(stop)?;
            let (mean, std) = model.moments(block);
            means.extend(mean);
            stds.extend(std);
        }
        widen(&mut stds, added_variance);
        Ok((means, stds))
    };
    Ok(Some(Durations {
        numbers: data.expenses.known,
        log_durations: data.expenses.log_expenses,
        explained,
        predict: Box::new(predict),
        left_out,
    }))
}

/// Adds a variance to standard deviations.
fn widen(stds: &mut [f64], variance: f64) {
    stds.iter_mut()
        .for_each(|std| *std = (*std * *std + variance).sqrt());
}

/// The model without its data.
struct Model {
    linear: Linear,
    residuals: Option<Censored<GaussianProcess>>,
}

impl Model {
    fn new(
        data: &Data,
        fit: Option<&ExpenseFit>,
        columns: &Columns,
        stop: &mut Stop,
    ) -> Result<Self> {
        let residuals = match fit.filter(|_| data.has_residuals()) {
            None => None,
            // Without a model of the residuals, the linear model is used.
            Some(fit) => unless_numerical(
                residuals(None, fit, data, (columns, 0), stop)
                    .and_then(|process| Censored::of(process.gp, data)),
            )?,
        };
        Ok(Self {
            linear: data.linear.clone(),
            residuals,
        })
    }

    /// The means and standard deviations of log d at the rows.
    fn moments(&self, rows: ArrayView2<f64>) -> (Vec<f64>, Vec<f64>) {
        let linear = rows.rows().into_iter().map(|x| self.linear.mean(x));
        let Some(Censored { gp, scale }) = &self.residuals else {
            return (
                linear.collect(),
                vec![self.linear.variance.sqrt(); rows.nrows()],
            );
        };
        let noise = gp.noise_variance();
        let (mean, variance) = gp.predict(rows);
        let mean = linear.zip(mean).map(|(linear, mean)| linear + scale * mean);
        let std = variance.into_iter().map(|v| scale * (v + noise).sqrt());
        (mean.collect(), std.collect())
    }
}

/// The means and standard deviations of the known log d. The trials are split into at most ten parts, and each part is
/// predicted from the other parts, with the hyperparameters of the fit to all trials.
fn cross_validation(
    data: &Data,
    fit: Option<&ExpenseFit>,
    columns: &Columns,
    stop: &mut Stop,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let n = data.n_known();
    let (mut means, mut stds) = (vec![0.0; n], vec![0.0; n]);
    let parts = PARTS.min(n);
    for part in 0..parts {
        check(stop)?;
        let others = without(data, |i| i % parts == part);
        let model = Model::new(&others, fit, columns, stop)?;
        let rows: Vec<usize> = (part..n).step_by(parts).collect();
        let (mean, std) = model.moments(data.x.select(Axis(0), &rows).view());
        for ((i, mean), std) in rows.into_iter().zip(mean).zip(std) {
            (means[i], stds[i]) = (mean, std);
        }
    }
    Ok((means, stds))
}

/// The data without the known durations for which `is_left_out` is true.
fn without(data: &Data, is_left_out: impl Fn(usize) -> bool) -> Data {
    let (all, n) = (&data.expenses, data.n_known());
    let known: Vec<usize> = (0..n).filter(|&i| !is_left_out(i)).collect();
    let running: Vec<usize> = (n..data.x.nrows()).collect();
    let expenses = Expenses {
        known: known.iter().map(|&i| all.known[i]).collect(),
        log_expenses: known.iter().map(|&i| all.log_expenses[i]).collect(),
        out: all.out.clone(),
        log_ages: all.log_ages.clone(),
    };
    let rows = [known, running].concat();
    Data::new(expenses, data.x.select(Axis(0), &rows))
}
