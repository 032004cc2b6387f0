//! The known expenses, the ages of trials that have not ended, and the linear model of both.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use ndarray::{Array2, ArrayView2, Axis, s};

use crate::ledger::{State, TrialNumber, View};
use crate::numerics::special::mills_ratio;
use crate::strategy::bayes::model::expense::linear::{Design, Linear};
use crate::strategy::bayes::model::training_set::TrainingSet;
use crate::strategy::{Query, Resource};

/// The number of rounds of the EM algorithm.
const ROUNDS: usize = 10;

/// An expense of 0 counts as this share of the smallest positive expense.
const SMALLEST: f64 = 0.1;

/// Residuals with a smaller variance are not modelled.
const MIN_VARIANCE: f64 = 1e-12;

/// The trials whose expense is known, in the order in which they ended, and the trials that have not ended.
pub struct Expenses {
    pub known: Vec<TrialNumber>,
    pub log_expenses: Vec<f64>,
    pub out: Vec<TrialNumber>,
    pub log_ages: Vec<f64>,
}

/// The expense of a trial that has ended or was stopped, if known.
fn expense_of(log: View, number: TrialNumber, resource: Resource) -> Option<f64> {
    let trial = log.of(number);
    if resource == Resource::Cost {
        return trial.cost();
    }
    let complete = || {
        let curve = log.curve()?;
        trial.complete_duration(log.started_at(number), curve.steps)
    };
    match trial.outcome() {
        State::Failed => complete().or(trial.duration()),
        State::Stopped => complete(),
        _ => trial.duration(),
    }
}

impl Expenses {
    /// Returns `None` if fewer than two positive expenses are known.
    pub fn of(log: View, ended: &[TrialNumber], query: Query, resource: Resource) -> Option<Self> {
        let expense = |number: TrialNumber| Some((number, expense_of(log, number, resource)?));
        let mut is_known = vec![false; log.n_trials()];
        ended.iter().for_each(|&number| is_known[number] = true);
        // These trials are not rows of the model of f. A duration may arrive with another outcome.
        let has_ended = |number: &TrialNumber| {
            let trial = log.of(*number);
            let has_result = log.has_result(*number) || trial.state() == State::Stopped;
            (has_result || trial.is_withdrawn()) && !trial.left_out && !is_known[*number]
        };
        let mut found: Vec<_> = ended.iter().copied().filter_map(expense).collect();
        let n_ended = found.len();
        found.extend((0..log.n_trials()).filter(has_ended).filter_map(expense));
        if found.len() > n_ended {
            found.sort_by_key(|(number, _)| log.of(*number).ended_by());
        }
        let (known, expenses): (Vec<_>, Vec<f64>) = found.into_iter().unzip();
        known.iter().for_each(|&number| is_known[number] = true);
        let positive = expenses.iter().copied().filter(|d| *d > 0.0);
        if positive.clone().count() < 2 {
            return None;
        }
        let smallest = SMALLEST * positive.fold(f64::INFINITY, f64::min);
        let age = |number: TrialNumber| {
            let end = match log.of(number).outcome() {
                _ if log.of(number).left_out || is_known[number] => None,
                State::Pending => query.wall_time,
                State::Abandoned | State::Stopped => log.finished_at(number),
                State::Observed | State::Failed | State::Withdrawn => None,
            };
            let age = end? - log.started_at(number)?;
            (age > 0.0).then(|| (number, age.ln()))
        };
        let (out, log_ages) = match resource {
            Resource::Time => (0..log.n_trials()).filter_map(age).unzip(),
            Resource::Cost => (Vec::new(), Vec::new()),
        };
        let logs = expenses.iter().map(|d| d.max(smallest).ln());
        Some(Self {
            known,
            log_expenses: logs.collect(),
            out,
            log_ages,
        })
    }

    /// The variance of the known log d.
    pub fn variance(&self) -> f64 {
        let n = self.log_expenses.len() as f64;
        let mean = self.log_expenses.iter().sum::<f64>() / n;
        let squares = self.log_expenses.iter().map(|y| (y - mean).powi(2));
        squares.sum::<f64>() / n
    }

    /// The linear model, fitted by the EM algorithm. `x` has the rows of the known trials, followed by the rows of the
    /// trials that have not ended.
    fn linear(&self, x: ArrayView2<f64>) -> Linear {
        let n = self.known.len();
        let mut y = [&self.log_expenses[..], &self.log_ages].concat();
        let mut model = Linear::fit(x.slice(s![..n, ..]), &y[..n]);
        if self.out.is_empty() {
            return model;
        }
        let design = Design::of(x);
        for _ in 0..ROUNDS {
            for (i, log_age) in self.log_ages.iter().enumerate() {
                let mean = model.mean(x.row(n + i));
                y[n + i] = mean_above(mean, model.variance.sqrt(), *log_age);
            }
            model = design.fit(&y);
        }
        model
    }
}

/// The expenses with their rows and the linear model.
pub struct Data {
    pub expenses: Expenses,
    /// The rows of the known trials, followed by the rows of the trials that have not ended.
    pub x: Array2<f64>,
    pub linear: Linear,
    /// The residuals of the known log d.
    pub residuals: Vec<f64>,
    /// The root mean square of the residuals.
    pub scale: f64,
}

impl Data {
    pub fn of(training: &TrainingSet, log: View, query: Query, resource: Resource) -> Option<Self> {
        let expenses = Expenses::of(log, &training.fold.ended, query, resource)?;
        let x = training.encode(log, &[&expenses.known[..], &expenses.out].concat());
        Some(Self::new(expenses, x))
    }

    /// Fits the linear model.
    pub fn new(expenses: Expenses, x: Array2<f64>) -> Self {
        let linear = expenses.linear(x.view());
        let known = expenses.log_expenses.iter().zip(x.rows());
        let residuals: Vec<f64> = known.map(|(y, x)| y - linear.mean(x)).collect();
        let squares = residuals.iter().map(|r| r * r);
        let scale = (squares.sum::<f64>() / residuals.len() as f64).sqrt();
        Self {
            expenses,
            x,
            linear,
            residuals,
            scale,
        }
    }

    pub fn n_known(&self) -> usize {
        self.residuals.len()
    }

    pub fn has_residuals(&self) -> bool {
        self.scale * self.scale >= MIN_VARIANCE
    }

    /// The chosen rows of the known trials, and their residuals in units of the root mean square of all residuals.
    pub fn rows(&self, chosen: &[usize]) -> (Array2<f64>, Vec<f64>) {
        let targets = chosen.iter().map(|&i| self.residuals[i] / self.scale);
        (self.x.select(Axis(0), chosen), targets.collect())
    }

    /// The share of the variance of the known log d that a model explains, if its squared residuals have this mean. The
    /// mean is corrected for the degrees of freedom of the linear model, as in generalised cross-validation.
    pub fn explained(&self, mean_square: f64) -> f64 {
        let left = 1.0 - self.linear.freedom / self.n_known() as f64;
        let variance = self.expenses.variance();
        if left <= 0.0 || variance == 0.0 {
            return 0.0;
        }
        (1.0 - mean_square / (left * left) / variance).clamp(0.0, 1.0)
    }
}

/// E[Y | Y > y] for Y ~ N(mean, std²).
pub fn mean_above(mean: f64, std: f64, y: f64) -> f64 {
    if std == 0.0 {
        return mean.max(y);
    }
    let z = (y - mean) / std;
    let hazard = if z > 1.0 {
        1.0 / mills_ratio(z).0
    } else {
        let density = (-0.5 * z * z).exp() / (2.0 * PI).sqrt();
        density / (0.5 * libm::erfc(z * FRAC_1_SQRT_2))
    };
    mean + std * hazard
}
