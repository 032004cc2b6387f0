//! The Python class `Optimizer`: a log and its strategy.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use std::time::Duration;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::delays::fit::Options;
use crate::error::{Result, Stop, check, refuse};
use crate::ledger::revise::RevisedTrial;
use crate::ledger::{Action, Event, Ledger, State};
use crate::maximize::feasible::Feasible;
use crate::optimizer::{Definition, Optimizer as Core, Request, Shared as CoreShared};
use crate::problem::{Fixed as CoreFixed, Held as CoreHeld, Point, Problem as CoreProblem};
use crate::python::constraints::{check_not_calling, detached_with};
use crate::python::delays::DelayDistribution;
use crate::python::durations::DurationModel;
use crate::python::errors::warn;
use crate::python::gaussian_process::{GaussianProcess, predict_in_blocks};
use crate::python::interrupt::detached;
use crate::python::problem::Problem;
use crate::python::trial::{Action as PyAction, Draft, TrialRecord, marked_values};
use crate::python::{Vector, owned2};
use crate::stopping::Stopping;
use crate::strategy::units::UnitsHere;
use crate::strategy::{Limit, Resource};

const BETWEEN_TRIES: Duration = Duration::from_micros(200);

/// A log of trials, and the strategy that proposes the next trial.
///
/// The mutex is locked only while the GIL is released, so a waiting thread does not hold the GIL.
#[pyclass(frozen, module = "belated._core")]
pub struct Optimizer {
    problem: RwLock<Arc<CoreProblem>>,
    core: Mutex<Core>,
}

/// Means and standard deviations.
type Moments<'py> = (Vector<'py>, Vector<'py>);

/// Trial numbers, and the mean and standard deviation of the value of each trial.
type LeftOut<'py> = (Vec<usize>, Vector<'py>, Vector<'py>);

impl Optimizer {
    fn from_core(core: Core) -> Self {
        Self {
            problem: RwLock::new(core.definition().problem.clone()),
            core: Mutex::new(core),
        }
    }

    /// Returns a number of each trial, with NaN in place of None.
    fn of_all<'py>(
        &self,
        py: Python<'py>,
        number: impl Fn(&Ledger, usize) -> Option<f64> + Sync,
    ) -> PyResult<Vector<'py>> {
        let found = self.with_core(py, |core, _| {
            let ledger = core.ledger();
            let all = 0..ledger.n_trials();
            let found: Vec<f64> = all.map(|i| number(ledger, i).unwrap_or(f64::NAN)).collect();
            Ok(found)
        })?;
        Ok(found.into_pyarray(py))
    }

    fn problem(&self) -> Arc<CoreProblem> {
        let problem = self.problem.read();
        problem.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the core, and then the problem.
    fn set_problem(&self, problem: Arc<CoreProblem>) {
        let known = self.problem.write();
        *known.unwrap_or_else(PoisonError::into_inner) = problem;
    }

    /// Converts a value that is maximised to a value of f, or a value of f to a value that is maximised.
    fn oriented(&self, value: f64) -> f64 {
        self.problem().direction.oriented(value)
    }

    /// Converts means and variances of targets to means and standard deviations of an outcome, or of f. `units` returns
    /// the conversion for each row.
    fn in_units(
        &self,
        units: impl Fn(usize) -> UnitsHere,
        outcome: Option<usize>,
        mean: Vec<f64>,
        variance: Vec<f64>,
    ) -> (Vec<f64>, Vec<f64>) {
        let direction = self.problem().direction_of(outcome);
        let moments = mean.into_iter().zip(variance).enumerate();
        let in_units = moments.map(|(i, (m, v))| units(i).moments(m, v.sqrt()));
        in_units.map(|(m, s)| (direction.oriented(m), s)).unzip()
    }

    /// The address of this optimizer, which identifies the optimizer while it is borrowed.
    fn address(&self) -> usize {
        std::ptr::from_ref(&self.core) as usize
    }

    /// Acquires the lock. A different thread may hold the lock during a suggestion. The wait can be interrupted.
    ///
    /// A poisoned lock is usable, because events are appended as a whole and a panic cannot leave a partial event.
    fn lock(&self, stop: &mut Stop) -> Result<MutexGuard<'_, Core>> {
        check_not_calling(self.address())?;
        loop {
            match self.core.try_lock() {
                Ok(core) => return Ok(core),
                Err(TryLockError::Poisoned(core)) => return Ok(core.into_inner()),
                Err(TryLockError::WouldBlock) => check(stop)?,
            }
            std::thread::sleep(BETWEEN_TRIES);
        }
    }

    /// Runs a computation on the optimizer, with the GIL released.
    fn with_core<T: Send>(
        &self,
        py: Python<'_>,
        compute: impl FnOnce(&mut Core, &mut Stop) -> Result<T> + Send,
    ) -> PyResult<T> {
        detached(py, |stop| compute(&mut *self.lock(stop)?, stop))
    }

    /// Releases the GIL and runs a computation, whose suggested points satisfy the constraints.
    fn under_constraints<T: Send>(
        &self,
        py: Python<'_>,
        constraints: Option<Py<PyAny>>,
        compute: impl FnOnce(&mut Core, Feasible, &mut Stop) -> Result<T> + Send,
    ) -> PyResult<T> {
        let (address, problem) = (self.address(), self.problem());
        detached_with(py, address, &problem, constraints, |feasible, stop| {
            compute(&mut *self.lock(stop)?, feasible, stop)
        })
    }
}

/// A trial in the new problem: start point, run point, context, fidelity, whether the new problem has the fidelity, and the
/// reason for leaving the trial out; see [`RevisedTrial`].
type ConvertedTrial = (
    Option<Point>,
    Option<Point>,
    Option<Vec<f64>>,
    Option<f64>,
    bool,
    Option<String>,
);

fn revised_trial(
    (start, run, context, fidelity, has_fidelity, left_out): ConvertedTrial,
) -> RevisedTrial {
    RevisedTrial {
        start,
        run,
        context,
        fidelity,
        has_fidelity,
        left_out,
    }
}

/// The values of a fixed parameter: (low, high) or a list of numbers.
#[derive(FromPyObject)]
enum Held {
    Range((f64, f64)),
    Values(Vec<f64>),
}

/// The fixed values of each searched parameter, or the numbers of the candidates that may be suggested.
#[derive(FromPyObject)]
enum Fixed {
    Rows(Vec<usize>),
    Parameters(Vec<Option<Held>>),
}

impl Fixed {
    fn core(self) -> CoreFixed {
        let held = |held: Held| match held {
            Held::Range((low, high)) => CoreHeld::Range(low, high),
            Held::Values(values) => CoreHeld::Values(values),
        };
        match self {
            Fixed::Rows(rows) => CoreFixed::Rows(rows),
            Fixed::Parameters(all) => {
                CoreFixed::Parameters(all.into_iter().map(|each| each.map(held)).collect())
            }
        }
    }
}

/// The positions of the shared parameters, or the groups of candidates that have the shared values in common.
#[derive(FromPyObject)]
enum Shared {
    Parameters(Vec<usize>),
    Rows(Vec<Vec<usize>>),
}

impl Shared {
    fn core(self) -> CoreShared {
        match self {
            Shared::Parameters(positions) => CoreShared::Parameters(positions),
            Shared::Rows(groups) => CoreShared::Rows(groups),
        }
    }
}

/// Reads events from JSON.
fn parsed(events: Vec<String>) -> Result<Vec<Event>> {
    events.iter().map(|text| Event::from_json(text)).collect()
}

/// Returns the ledger, or an error if a trial does not exist.
fn known<'a>(ledger: &'a Ledger, numbers: &[usize]) -> Result<&'a Ledger> {
    numbers
        .iter()
        .try_for_each(|&number| ledger.trial(number).map(drop))?;
    Ok(ledger)
}

#[pymethods]
impl Optimizer {
    #[new]
    #[pyo3(signature = (problem, seed, strategy, stopping=None))]
    fn new(
        py: Python<'_>,
        problem: &Problem,
        seed: u64,
        strategy: &str,
        stopping: Option<&str>,
    ) -> PyResult<Self> {
        detached(py, |_| {
            Core::new(Definition {
                stopping: stopping.map(Stopping::from_json).transpose()?,
                ..Definition::from_json(problem.core.clone(), seed, strategy)?
            })
        })
        .map(Self::from_core)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the arguments of a suggestion, as Python passes them"
    )]
    #[pyo3(signature = (n, context, time, feasible=None, fidelity=None, limit=None, fixed=None, shared=None))]
    fn suggest(
        &self,
        py: Python<'_>,
        n: usize,
        context: Option<Vec<f64>>,
        time: Option<f64>,
        feasible: Option<Py<PyAny>>,
        fidelity: Option<f64>,
        limit: Option<(String, f64)>,
        fixed: Option<Fixed>,
        shared: Option<Shared>,
    ) -> PyResult<Vec<usize>> {
        let context = context.unwrap_or_default();
        let limit = limit_of(limit);
        let (fixed, shared) = (fixed.map(Fixed::core), shared.map(Shared::core));
        let (numbers, warnings) =
            self.under_constraints(py, feasible, |core, feasible, stop| {
                let request = Request {
                    context: &context,
                    fidelity,
                    time,
                    feasible,
                    limit,
                    fixed: fixed.as_ref(),
                    shared: shared.as_ref(),
                    ..Request::default()
                };
                core.suggest(n, request, stop)
            })?;
        for warning in warnings {
            if let Err(raised) = warn(py, &warning) {
                // If warnings are raised as errors, the caller does not receive the new trials, so abandon them.
                self.with_core(py, |core, _| {
                    numbers.iter().try_for_each(|&number| {
                        core.record(Action::abandon(number), time).map(drop)
                    })
                })?;
                return Err(raised);
            }
        }
        Ok(numbers)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the arguments of a suggestion, as Python passes them"
    )]
    #[pyo3(signature = (n, context, time, expires_after=None, feasible=None, fidelity=None, limit=None, fixed=None, shared=None))]
    fn propose(
        &self,
        py: Python<'_>,
        n: usize,
        context: Option<Vec<f64>>,
        time: Option<f64>,
        expires_after: Option<f64>,
        feasible: Option<Py<PyAny>>,
        fidelity: Option<f64>,
        limit: Option<(String, f64)>,
        fixed: Option<Fixed>,
        shared: Option<Shared>,
    ) -> PyResult<Vec<Draft>> {
        let context = context.unwrap_or_default();
        let limit = limit_of(limit);
        let (fixed, shared) = (fixed.map(Fixed::core), shared.map(Shared::core));
        let (drafts, warnings) = self.under_constraints(py, feasible, |core, feasible, stop| {
            let request = Request {
                context: &context,
                fidelity,
                time,
                lease: expires_after,
                feasible,
                limit,
                fixed: fixed.as_ref(),
                shared: shared.as_ref(),
            };
            let n_trials = core.ledger().n_trials();
            let (drafts, warnings) = core.propose(n, request, stop)?;
            let drafts = drafts.into_iter().zip(n_trials..);
            let drafts: Vec<_> = drafts
                .map(|(core, number)| Draft::new(core, number))
                .collect();
            Ok((drafts, warnings))
        })?;
        for warning in warnings {
            warn(py, &warning)?;
        }
        Ok(drafts)
    }

    /// Returns the fidelity of the next suggestion, or None for full fidelity.
    fn next_fidelity(
        &self,
        py: Python<'_>,
        time: Option<f64>,
        feasible: Option<Py<PyAny>>,
    ) -> PyResult<Option<f64>> {
        self.under_constraints(py, feasible, |core, feasible, stop| {
            let request = Request {
                time,
                feasible,
                ..Request::default()
            };
            let (drafts, _) = core.propose(1, request, stop)?;
            Ok(drafts.first().and_then(|draft| draft.event.fidelity()))
        })
    }

    /// The enqueued points that have not been suggested yet, and whether each is partial.
    fn queued(&self, py: Python<'_>) -> PyResult<Vec<(Point, bool)>> {
        self.with_core(py, |core, _| {
            let points = core.ledger().queued().iter();
            let points = points.map(|queued| (queued.point.clone(), queued.partial));
            Ok(points.collect())
        })
    }

    #[pyo3(signature = (action, time, fits=false))]
    fn validate(
        &self,
        py: Python<'_>,
        action: &PyAction,
        time: Option<f64>,
        fits: bool,
    ) -> PyResult<Option<Draft>> {
        self.with_core(py, |core, stop| {
            let draft = core.validate(action.core.clone(), time, fits, stop)?;
            let n_trials = core.ledger().n_trials();
            Ok(draft.map(|core| Draft::new(core, n_trials)))
        })
    }

    fn commit(&self, py: Python<'_>, drafts: Vec<Py<Draft>>) -> PyResult<Vec<Option<usize>>> {
        let drafts = drafts.iter().map(|draft| draft.get().core.clone());
        let drafts = drafts.collect();
        self.with_core(py, |core, _| core.commit(drafts))
    }

    /// Logs an action. `notice` is called with the number of the trial and each marked value.
    #[pyo3(signature = (action, time, notice=None))]
    fn record(
        &self,
        py: Python<'_>,
        action: &PyAction,
        time: Option<f64>,
        notice: Option<Py<PyAny>>,
    ) -> PyResult<Option<usize>> {
        let (number, marked) = self.with_core(py, |core, stop| {
            let draft = core.validate(action.core.clone(), time, false, stop)?;
            let marked = draft.as_ref().map(|draft| marked_values(&draft.event));
            let numbers = core.commit(draft.into_iter().collect())?;
            let number = numbers.into_iter().next().flatten();
            Ok((number, marked.unwrap_or_default()))
        })?;
        if let Some(notice) = notice {
            for value in marked {
                notice.call1(py, (number, value))?;
            }
        }
        Ok(number)
    }

    /// Returns the interval in which a value of an outcome of a trial without this value is expected, or None if too
    /// little is known.
    #[pyo3(signature = (number, outcome, time, fits=false))]
    fn expected(
        &self,
        py: Python<'_>,
        number: usize,
        outcome: Option<usize>,
        time: Option<f64>,
        fits: bool,
    ) -> PyResult<Option<(f64, f64)>> {
        self.with_core(py, |core, stop| {
            core.expected(number, outcome.unwrap_or(0), time, fits, stop)
        })
    }

    fn extend(&self, py: Python<'_>, events: Vec<String>) -> PyResult<Vec<Option<usize>>> {
        self.with_core(py, |core, _| core.extend(parsed(events)?))
    }

    fn replace(&self, py: Python<'_>, events: Vec<String>) -> PyResult<Vec<Option<usize>>> {
        self.with_core(py, |core, _| {
            let mut other = core.emptied()?;
            let numbers = other.extend(parsed(events)?)?;
            self.set_problem(other.definition().problem.clone());
            *core = other;
            Ok(numbers)
        })
    }

    /// Replaces the problem, the strategy and the rule that stops trials, and logs the event of the revision. With
    /// `only_check`, the optimizer is unchanged.
    #[expect(
        clippy::too_many_arguments,
        reason = "the arguments of a revision, as Python passes them"
    )]
    fn revise(
        &self,
        py: Python<'_>,
        problem: &Problem,
        strategy: &str,
        stopping: Option<&str>,
        event: &str,
        trials: Vec<ConvertedTrial>,
        queue: Vec<(Point, bool)>,
        only_check: bool,
    ) -> PyResult<()> {
        let trials = trials.into_iter().map(revised_trial).collect();
        self.with_core(py, |core, _| {
            let seed = core.definition().seed;
            let definition = Definition {
                stopping: stopping.map(Stopping::from_json).transpose()?,
                ..Definition::from_json(problem.core.clone(), seed, strategy)?
            };
            let revised = core.revised(definition, &Event::from_json(event)?, trials, queue)?;
            if !only_check {
                *core = revised;
                self.set_problem(problem.core.clone());
            }
            Ok(())
        })
    }

    /// The number of the event of the last revision, or 0 without a revision.
    fn last_revision(&self, py: Python<'_>) -> PyResult<usize> {
        self.with_core(py, |core, _| Ok(core.ledger().last_revision()))
    }

    #[pyo3(signature = (start, end=None))]
    fn events(&self, py: Python<'_>, start: usize, end: Option<usize>) -> PyResult<Vec<String>> {
        self.with_core(py, |core, _| {
            let wanted = end.map_or(usize::MAX, |end| end.saturating_sub(start));
            let events = core.ledger().events(start).take(wanted);
            events.map(|event| event.to_json()).collect()
        })
    }

    fn n_events(&self, py: Python<'_>) -> PyResult<usize> {
        self.with_core(py, |core, _| Ok(core.ledger().len()))
    }

    #[pyo3(signature = (context, time, feasible=None, n=1, fixed=None))]
    fn recommend(
        &self,
        py: Python<'_>,
        context: Option<Vec<f64>>,
        time: Option<f64>,
        feasible: Option<Py<PyAny>>,
        n: usize,
        fixed: Option<Fixed>,
    ) -> PyResult<Vec<(Point, f64, f64)>> {
        let context = context.unwrap_or_default();
        let fixed = fixed.map(Fixed::core);
        let found = self.under_constraints(py, feasible, |core, feasible, stop| {
            let request = Request {
                context: &context,
                time,
                feasible,
                fixed: fixed.as_ref(),
                ..Request::default()
            };
            core.recommend(n, request, stop)
        })?;
        let found = found.into_iter();
        Ok(found.map(|it| (it.point, it.mean, it.std)).collect())
    }

    #[pyo3(signature = (time, pending, outcome=None))]
    fn surrogate(
        &self,
        py: Python<'_>,
        time: Option<f64>,
        pending: bool,
        outcome: Option<usize>,
    ) -> PyResult<Option<(GaussianProcess, f64, f64, f64)>> {
        let surrogate = self.with_core(py, |core, stop| {
            let surrogate = core.surrogate(time, pending, outcome, stop)?;
            Ok(surrogate.map(|s| (s.gp.to_owned(), s.mean_units(), s.log_slope)))
        })?;
        Ok(surrogate.map(|(gp, units, log_slope)| {
            // The prior mean is in units of f. If bad values are compressed, the scale applies only to the
            // other values. If contexts have different units, the mean and the scale belong to the mean of the contexts.
            let direction = self.problem().direction_of(outcome);
            let (mean, scale) = (direction.oriented(units.value(0.0)), units.scale());
            (GaussianProcess::from_core(gp), mean, scale, log_slope)
        }))
    }

    #[pyo3(signature = (points, time, pending, outcome=None))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        points: PyReadonlyArray2<'py, f64>,
        time: Option<f64>,
        pending: bool,
        outcome: Option<usize>,
    ) -> PyResult<Option<Moments<'py>>> {
        let points = owned2(points);
        let moments = self.with_core(py, |core, stop| {
            core.check_rows(points.view())?;
            let Some(surrogate) = core.surrogate(time, pending, outcome, stop)? else {
                return Ok(None);
            };
            let (mean, variance) = predict_in_blocks(&surrogate.gp, points.view(), stop)?;
            let units = |i: usize| surrogate.units_at(&points.row(i).to_vec());
            Ok(Some(self.in_units(units, outcome, mean, variance)))
        })?;
        Ok(moments.map(|(mean, std)| (mean.into_pyarray(py), std.into_pyarray(py))))
    }

    #[pyo3(signature = (points, context, time, feasible=None))]
    fn acquisition<'py>(
        &self,
        py: Python<'py>,
        points: PyReadonlyArray2<'py, f64>,
        context: Option<Vec<f64>>,
        time: Option<f64>,
        feasible: Option<Py<PyAny>>,
    ) -> PyResult<Option<Vector<'py>>> {
        let (points, context) = (owned2(points), context.unwrap_or_default());
        let values = self.under_constraints(py, feasible, |core, feasible, stop| {
            core.acquisition(points.view(), &context, time, feasible, stop)
        })?;
        Ok(values.map(|values| values.into_pyarray(py)))
    }

    fn feasibility<'py>(
        &self,
        py: Python<'py>,
        points: PyReadonlyArray2<'py, f64>,
        time: Option<f64>,
    ) -> PyResult<Option<Vector<'py>>> {
        let points = owned2(points);
        let found = self.with_core(py, |core, stop| core.feasibility(points.view(), time, stop))?;
        Ok(found.map(|found| found.into_pyarray(py)))
    }

    #[pyo3(signature = (time, outcome=None))]
    fn leave_one_out<'py>(
        &self,
        py: Python<'py>,
        time: Option<f64>,
        outcome: Option<usize>,
    ) -> PyResult<Option<LeftOut<'py>>> {
        let left_out = self.with_core(py, |core, stop| {
            let Some(surrogate) = core.surrogate(time, false, outcome, stop)? else {
                return Ok(None);
            };
            let (mean, variance) = surrogate.gp.leave_one_out(stop)?;
            let rows = surrogate.gp.rows();
            let units = |i: usize| surrogate.units_at(&rows.row(i).to_vec());
            let (mean, std) = self.in_units(units, outcome, mean, variance);
            Ok(Some((surrogate.rows.to_vec(), mean, std)))
        })?;
        Ok(left_out
            .map(|(numbers, mean, std)| (numbers, mean.into_pyarray(py), std.into_pyarray(py))))
    }

    fn forecast_value(
        &self,
        py: Python<'_>,
        number: usize,
        time: Option<f64>,
    ) -> PyResult<Option<(f64, f64)>> {
        let found = self.with_core(py, |core, stop| core.forecast(number, time, stop))?;
        Ok(found.map(|found| (self.oriented(found.value.0), found.value.1)))
    }

    fn durations(&self, py: Python<'_>, time: Option<f64>) -> PyResult<Option<DurationModel>> {
        let model = self.with_core(py, |core, stop| core.durations(time, stop))?;
        Ok(model.map(|core| DurationModel { core }))
    }

    fn status(&self, py: Python<'_>, time: Option<f64>) -> PyResult<Option<String>> {
        let status = self.with_core(py, |core, stop| core.status(time, stop))?;
        Ok(status.map(|status| status.to_string()))
    }

    /// The time on the optimizer's clock.
    fn now(&self, py: Python<'_>, time: Option<f64>) -> PyResult<f64> {
        self.with_core(py, |core, _| core.ledger().now(time))
    }

    fn trial(&self, py: Python<'_>, number: usize) -> PyResult<TrialRecord> {
        self.with_core(py, |core, _| TrialRecord::new(core.ledger(), number))
    }

    fn numbers(&self, py: Python<'_>, state: Option<&str>) -> PyResult<Vec<usize>> {
        let named = |name: &str| {
            let mut all = State::ALL.into_iter();
            all.find(|state| state.name() == name).ok_or_else(|| {
                refuse(
                    "state",
                    format!("{name:?}"),
                    "\"pending\", \"observed\", \"failed\", \"abandoned\", \"stopped\", \"withdrawn\" or None",
                )
            })
        };
        let wanted = state.map(named).transpose()?;
        self.with_core(py, |core, _| {
            if wanted == Some(State::Pending) {
                return Ok(core.ledger().view().all_pending().collect());
            }
            let trials = core.ledger().view().trials().enumerate();
            let found = trials.filter(|(_, it)| wanted.is_none_or(|state| it.state() == state));
            Ok(found.map(|(number, _)| number).collect())
        })
    }

    /// The values of all trials, in the user's sign: of an outcome, or of the trials. NaN stands for a missing value.
    #[pyo3(signature = (outcome=None))]
    fn values<'py>(&self, py: Python<'py>, outcome: Option<usize>) -> PyResult<Vector<'py>> {
        self.of_all(py, move |ledger, number| match outcome {
            Some(i) if i < ledger.problem().outcomes.len() => ledger.value_of(number, i),
            _ => ledger.value(number),
        })
    }

    /// The numbers of a declared parameter at the points where the trials were run. NaN stands for a point without it.
    fn parameter<'py>(&self, py: Python<'py>, position: usize) -> PyResult<Vector<'py>> {
        self.of_all(py, move |ledger, number| ledger.number_at(number, position))
    }

    /// The numbers of the trials that an author started or ended.
    fn numbers_by(&self, py: Python<'_>, author: &str) -> PyResult<Vec<usize>> {
        self.with_core(py, |core, _| {
            let ledger = core.ledger();
            let all = 0..ledger.n_trials();
            Ok(all.filter(|&number| ledger.is_by(number, author)).collect())
        })
    }

    /// Facts about all trials: the position of the state in the list of states; whether a value is marked, an outcome has
    /// failed, and the trial has reported steps; whether it lies outside the domain or is left out; and whether its value
    /// may be the best.
    fn traits<'py>(&self, py: Python<'py>) -> PyResult<[Bound<'py, PyArray1<u8>>; 6]> {
        let columns = self.with_core(py, |core, _| {
            let mut columns: [Vec<u8>; 6] = Default::default();
            for it in core.ledger().traits() {
                let facts = [
                    it.is_marked,
                    it.has_failed,
                    it.has_curve,
                    it.is_outside,
                    it.counts,
                ];
                columns[0].push(it.state as u8);
                for (column, fact) in columns[1..].iter_mut().zip(facts) {
                    column.push(u8::from(fact));
                }
            }
            Ok(columns)
        })?;
        Ok(columns.map(|column| column.into_pyarray(py)))
    }

    /// The action that ends the evaluation of a trial after its last report, or None.
    fn ending(
        &self,
        py: Python<'_>,
        number: usize,
        time: Option<f64>,
    ) -> PyResult<Option<PyAction>> {
        let action = self.with_core(py, |core, stop| core.ending(number, time, stop))?;
        Ok(action.map(|core| PyAction { core }))
    }

    /// The time on the clock, the delay distribution, and the ages of the trials in flight by number. The distribution is
    /// fitted without the lock.
    #[pyo3(signature = (time, outcome=None, in_wall_time=false))]
    fn delays(
        &self,
        py: Python<'_>,
        time: Option<f64>,
        outcome: Option<usize>,
        in_wall_time: bool,
    ) -> PyResult<(f64, DelayDistribution, BTreeMap<usize, f64>)> {
        let (now, delays, in_flight) =
            self.with_core(py, |core, _| match time.filter(|_| in_wall_time) {
                Some(time) => core.wall_delays(time, outcome),
                None => core.delays(time, outcome),
            })?;
        let distribution = DelayDistribution::of(py, delays, &Options::default())?;
        Ok((now, distribution, in_flight))
    }

    fn arrivals<'py>(
        &self,
        py: Python<'py>,
        in_wall_time: bool,
    ) -> PyResult<(Vector<'py>, Vector<'py>)> {
        let times = self.with_core(py, |core, _| {
            Ok(core.ledger().view().arrivals(in_wall_time))
        })?;
        Ok((times.0.into_pyarray(py), times.1.into_pyarray(py)))
    }

    /// The distribution of delays in wall-clock time, and the trials that are or were late. The distribution is fitted
    /// without the lock.
    fn lateness(&self, py: Python<'_>, time: f64) -> PyResult<(DelayDistribution, Vec<usize>)> {
        let delays = self.with_core(py, |core, _| {
            core.ledger().now(Some(time))?; // checks the time
            Ok(core.ledger().view().wall_delays(time))
        })?;
        let distribution = DelayDistribution::of(py, Arc::new(delays), &Options::default())?;
        let known = distribution.known();
        let late = self.with_core(py, |core, _| core.ledger().view().late(time, known))?;
        Ok((distribution, late))
    }

    fn window(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        self.with_core(py, |core, _| core.window())
    }

    #[pyo3(signature = (outside=false))]
    fn best(&self, py: Python<'_>, outside: bool) -> PyResult<Option<usize>> {
        self.with_core(py, |core, _| {
            Ok(match outside {
                true => core.ledger().best_anywhere(),
                false => core.ledger().best(),
            })
        })
    }

    fn best_first(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        self.with_core(py, |core, _| Ok(core.ledger().best_first()))
    }

    fn pareto(&self, py: Python<'_>, excluded: Vec<usize>) -> PyResult<Vec<usize>> {
        self.with_core(py, |core, _| Ok(core.ledger().pareto(&excluded)))
    }

    fn hypervolume(
        &self,
        py: Python<'_>,
        numbers: Vec<usize>,
        reference: Vec<f64>,
    ) -> PyResult<f64> {
        self.with_core(py, |core, _| {
            let ledger = known(core.ledger(), &numbers)?;
            Ok(ledger.hypervolume(&numbers, &reference))
        })
    }

    fn reference(&self, py: Python<'_>, numbers: Vec<usize>) -> PyResult<Vec<Option<f64>>> {
        self.with_core(py, |core, _| {
            Ok(known(core.ledger(), &numbers)?.reference(&numbers))
        })
    }

    fn contradiction(
        &self,
        py: Python<'_>,
        numbers: Vec<usize>,
    ) -> PyResult<Option<(Option<usize>, usize, usize)>> {
        self.with_core(py, |core, _| Ok(core.ledger().contradiction(&numbers)))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.with_core(py, |core, _| Ok(core.ledger().trials().len()))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.with_core(py, |core, _| core.to_bytes())?;
        Ok(PyBytes::new(py, &bytes))
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        detached(py, |_| Core::from_bytes(data)).map(Self::from_core)
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let py = slf.py();
        let restore = slf.get_type().getattr("from_bytes")?;
        Ok((restore, (slf.get().to_bytes(py)?,)))
    }
}

/// The limit of a run, from ("time" or "cost", used share).
fn limit_of(limit: Option<(String, f64)>) -> Option<Limit> {
    let (of, used) = limit?;
    let of = match of.as_str() {
        "time" => Resource::Time,
        _ => Resource::Cost,
    };
    Some(Limit { of, used })
}
