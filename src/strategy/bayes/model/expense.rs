//! The model of expenses, where the expense d of an evaluation is its duration or its cost. An acquisition per unit of
//! expense needs the expected log d at every point.
//!
//! The expected log d is the sum of a [`linear`] model and of a Gaussian process, which is fitted to the residuals of the
//! linear model. With few rows, the linear model predicts well. With many rows, the Gaussian process adds what is not
//! linear.
//!
//! The expense of a failed trial is as good as the expense of an observed trial, because both evaluations have ended.
//! Trials that have not ended are right-censored at their age a: log d is replaced by E[log d | d > a] (the EM algorithm
//! of Schmee & Hahn 1979).
//!
//! If a curve is declared, d is the duration of a complete evaluation. A trial that was stopped, or that failed after
//! reports, has the duration that the times of its reports forecast. Otherwise the model would learn that bad regions
//! are cheap, since their trials are stopped early.

mod data;
pub mod durations;
mod linear;
pub mod missing;

use std::borrow::BorrowMut;

use ndarray::{Array2, ArrayView1, ArrayView2, Axis, s};

use crate::error::{Result, Stop, unless_numerical};
use crate::gp::fit::fit;
use crate::gp::kernel::KernelFamily;
use crate::gp::levels::chosen;
use crate::gp::{Conditioned, GaussianProcess, RowNoise, Target, Workspace};
use crate::ledger::{TrialNumber, View};
use crate::problem::Objective;
use crate::random::Call;
use crate::strategy::bayes::columns::Columns;
use crate::strategy::bayes::model::kept_process::{KeptProcess, Wanted};
use crate::strategy::bayes::model::note::ExpenseFit;
use crate::strategy::bayes::model::training_set::TrainingSet;
use crate::strategy::bayes::settings::Settings;
use crate::strategy::{Query, Resource};
use data::{Data, mean_above};
use linear::Linear;

/// The smallest number of known expenses for which residuals are modelled.
const MIN_ROWS: usize = 5;

/// The largest number of rows of the Gaussian process at a fit. The rows are evenly spread over the order in which the
/// trials ended. Expenses that become known after the fit add further rows. The linear model uses all rows.
const MAX_ROWS: usize = 150;

/// A trial that has not ended is a row of the Gaussian process if its log age is above the expected log d minus this
/// number of standard deviations. At a smaller age, E[log d | d > a] is nearly the expected log d.
const SURPRISE: f64 = -1.0;

/// The largest number of trials that have not ended and are rows. The rows with the most surprising ages are used.
const MAX_CENSORED: usize = 32;

/// The smallest noise variance of the residuals, in units of their variance. With less noise, the factor of rows that lie
/// near each other would be inaccurate.
const MIN_NOISE: f64 = 1e-4;

/// The kernel of the residuals.
const FAMILY: KernelFamily = KernelFamily::Matern52;

/// The exponent of the expense, which [`Rule::per`](super::super::acquisitions::rule::Rule::per) returns, is multiplied by
/// s²/(s² + SPREAD²), where s² is the part of the variance of log d that the model explains. Therefore, choices do not
/// depend on durations if durations do not depend on the point. Expected improvement looks only one trial ahead, so
/// preferring points that are a little cheaper loses more than it saves. The constant was chosen on the tables of
/// `benchmarks/tables.py` (docs/compared.md).
const SPREAD: f64 = 0.7;

/// The Gaussian process of the residuals, conditioned also on the ages of the trials that have not ended.
struct Censored<G: BorrowMut<GaussianProcess>> {
    gp: Conditioned<G>,
    /// The size of one unit of the targets, as a difference of log expenses.
    scale: f64,
}

/// Fits the hyperparameters of the residuals. Returns `None` if the acquisition is not divided by an expense, or if
/// few expenses are known.
pub fn fit_expense(
    columns: &Columns,
    training: &TrainingSet,
    log: View,
    query: Query,
    call: &mut Call,
) -> Result<Option<ExpenseFit>> {
    let settings = &training.settings;
    let Some((resource, _)) = settings.acquisition.rule().per(query)? else {
        return Ok(None);
    };
    match Data::of(training, log, query, resource) {
        Some(data) => {
            let last = last_fit(training, resource);
            fit_residuals(&data, resource, last, (settings, columns), call)
        }
        None => Ok(None),
    }
}

/// Fits the hyperparameters of the residuals, starting from the last fit. Returns `None` if few expenses are known.
fn fit_residuals(
    data: &Data,
    resource: Resource,
    last: Option<&ExpenseFit>,
    (settings, columns): (&Settings, &Columns),
    call: &mut Call,
) -> Result<Option<ExpenseFit>> {
    if data.n_known() < MIN_ROWS || !data.has_residuals() {
        return Ok(None);
    }
    let fitted = columns.fit_settings(FAMILY, settings.surrogate.n_refit_restarts);
    let start = last.map_or_else(|| fitted.prior_mode(), ExpenseFit::theta);
    let (x, y) = data.rows(&rows_of_fit(data.n_known()));
    let mut theta = fit(x.view(), &y, &start, &fitted, call)?;
    theta.noise_variance = theta.noise_variance.max(MIN_NOISE);
    let mut model = GaussianProcess::new(FAMILY, &theta)?.with_categories(&columns.categories);
    let means = model
        .append_rows(x.view())
        .and_then(|()| model.set_targets(&y))
        .and_then(|()| model.leave_one_out(call.stop));
    // Without a model of the residuals, the linear model is used.
    let Some((means, _)) = unless_numerical(means)? else {
        return Ok(None);
    };
    let errors = y.iter().zip(means).map(|(y, mean)| (y - mean).powi(2));
    let mean_square = data.scale * data.scale * errors.sum::<f64>() / y.len() as f64;
    Ok(Some(ExpenseFit {
        per: resource,
        lengthscale: theta.lengthscale,
        signal_variance: theta.signal_variance,
        noise_variance: theta.noise_variance,
        explained: data.explained(mean_square),
        rows: data.n_known(),
    }))
}

/// The rows that a fit uses, if n expenses are known.
fn rows_of_fit(n: usize) -> Vec<usize> {
    chosen(n, n.min(MAX_ROWS))
}

/// The last fit to expenses of this kind.
fn last_fit(training: &TrainingSet, resource: Resource) -> Option<&ExpenseFit> {
    let fit = training.fit()?.expense.as_ref();
    fit.filter(|fit| fit.per == resource)
}

/// Returns the process of the residuals, updated for these data.
fn residuals(
    kept: Option<KeptProcess>,
    fit: &ExpenseFit,
    data: &Data,
    (columns, n_moves): (&Columns, usize),
    stop: &mut Stop,
) -> Result<KeptProcess> {
    let mut rows = rows_of_fit(fit.rows.min(data.n_known()));
    let base = rows.len();
    rows.extend(fit.rows..data.n_known());
    let (x, targets) = data.rows(&rows);
    let trials: Vec<TrialNumber> = rows.iter().map(|&i| data.expenses.known[i]).collect();
    let wanted = Wanted {
        family: FAMILY,
        theta: &fit.theta(),
        categories: &columns.categories,
        trials: &trials,
        noise: &vec![RowNoise::default(); rows.len()],
        points: &|range| x.slice(s![range, ..]).to_owned(),
        base,
        n_moves,
    };
    let mut process = KeptProcess::update(kept, &wanted, 0, stop)?;
    process.gp.set_targets(&targets)?;
    Ok(process)
}

impl<G: BorrowMut<GaussianProcess>> Censored<G> {
    /// Conditions the residuals on the trials that have not ended and whose age is surprising.
    fn of(gp: G, data: &Data) -> Result<Self> {
        let process = gp.borrow();
        let (scale, log_ages) = (data.scale, &data.expenses.log_ages);
        let theta = process.hyperparameters();
        let noise = theta.noise_variance;
        let largest = scale * (theta.signal_variance + noise).sqrt();
        let x = data.x.slice(s![data.n_known().., ..]);
        let linear: Vec<f64> = x.rows().into_iter().map(|x| data.linear.mean(x)).collect();
        let means = process.mean(x);
        let surprise = |i: usize| (log_ages[i] - linear[i] - scale * means[i]) / largest;
        let mut chosen: Vec<usize> = (0..log_ages.len()).collect();
        chosen.retain(|&i| surprise(i) > SURPRISE);
        chosen.sort_by(|&i, &j| surprise(j).total_cmp(&surprise(i)));
        chosen.truncate(MAX_CENSORED);
        chosen.sort_unstable();
        let x = x.select(Axis(0), &chosen);
        let (means, variances) = process.predict(x.view());
        let rows = chosen.iter().zip(means).zip(variances);
        let targets: Vec<Target> = rows
            .map(|((&i, mean), variance)| {
                let std = scale * (variance + noise).sqrt();
                let expected = mean_above(linear[i] + scale * mean, std, log_ages[i]);
                Target::Value((expected - linear[i]) / scale)
            })
            .collect();
        let gp = Conditioned::on(gp, x.view(), &targets)?;
        Ok(Self { gp, scale })
    }
}

/// The term −c·E[log d(x)], which is added to an acquisition in a context.
pub struct ExpenseTerm<'a> {
    exponent: f64,
    linear: Linear,
    residuals: Option<Censored<&'a mut GaussianProcess>>,
    /// A row of the model. The columns of the context follow the columns of the point.
    row: Vec<f64>,
    gradient: Vec<f64>,
    width: usize,
    workspace: Workspace,
}

impl<'a> ExpenseTerm<'a> {
    /// Fits the linear model and updates the kept model of the residuals. Returns `None` if the acquisition is
    /// not divided by an expense, or if fewer than two expenses are known.
    pub fn update(
        kept: &'a mut Option<KeptProcess>,
        columns: &Columns,
        training: &TrainingSet,
        log: View,
        query: Query,
        stop: &mut Stop,
    ) -> Result<Option<Self>> {
        let Some((resource, power)) = training.settings.acquisition.rule().per(query)? else {
            return Ok(None);
        };
        let Some(data) = Data::of(training, log, query, resource) else {
            return Ok(None);
        };
        let fit = last_fit(training, resource);
        let residuals = match fit.filter(|_| data.has_residuals()) {
            None => None,
            Some(fit) => {
                let context = (columns, training.fold.n_moves);
                let process = residuals(kept.take(), fit, &data, context, stop);
                // Without a model of the residuals, the linear model is used.
                unless_numerical(
                    process.and_then(|it| Censored::of(&mut kept.insert(it).gp, &data)),
                )?
            }
        };
        let explained = match fit {
            Some(fit) => fit.explained,
            None => data.explained(data.scale * data.scale),
        };
        let variance = explained * data.expenses.variance();
        let width = columns.width();
        let mut row = vec![0.0; width];
        row[width - query.context.len()..].copy_from_slice(query.context);
        Ok(Some(Self {
            exponent: power * variance / (variance + SPREAD * SPREAD),
            linear: data.linear,
            residuals,
            row,
            gradient: vec![0.0; width],
            width: width - query.context.len(),
            workspace: Workspace::default(),
        }))
    }

    /// The expected log d of the row in `self.row`.
    fn mean(&mut self) -> f64 {
        let residual = self.residuals.as_ref().map_or(0.0, |model| {
            model.scale * model.gp.mean_at(&self.row, &mut self.workspace)
        });
        self.linear.mean(ArrayView1::from(&self.row)) + residual
    }
}

impl Objective for ExpenseTerm<'_> {
    fn values(&mut self, points: ArrayView2<f64>, out: &mut [f64]) {
        let mut rows = Array2::zeros((points.nrows(), self.row.len()));
        rows.slice_mut(s![.., ..self.width]).assign(&points);
        let context = ArrayView1::from(&self.row[self.width..]);
        rows.slice_mut(s![.., self.width..]).assign(&context);
        let linear = rows.rows().into_iter().map(|x| self.linear.mean(x));
        out.iter_mut().zip(linear).for_each(|(out, y)| *out = y);
        if let Some(model) = &self.residuals {
            let means = model.gp.mean(rows.view());
            let both = out.iter_mut().zip(means);
            both.for_each(|(out, mean)| *out += model.scale * mean);
        }
        out.iter_mut().for_each(|out| *out *= -self.exponent);
    }

    fn value_and_gradient(&mut self, x: &[f64], gradient: &mut [f64]) -> f64 {
        self.row[..x.len()].copy_from_slice(x);
        let mean = self.mean();
        self.gradient.fill(0.0);
        if let Some(model) = &self.residuals {
            let (gradient, workspace) = (&mut self.gradient, &mut self.workspace);
            model
                .gp
                .gradient(&self.row, model.scale, 0.0, &[], workspace, gradient);
        }
        let both = self.gradient[..self.width].iter().zip(self.linear.slope());
        let slopes = both.map(|(residual, linear)| residual + linear);
        gradient
            .iter_mut()
            .zip(slopes)
            .for_each(|(g, slope)| *g = -self.exponent * slope);
        -self.exponent * mean
    }
}

#[cfg(test)]
mod tests;
