//! The Python class `Optimizer`: a log and its strategy.

use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use ndarray::Axis;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::{Error, Result, Stop, check};
use crate::gp::BLOCK;
use crate::ledger::{Action, Event, State};
use crate::optimizer::{Definition, Optimizer as Core, Request};
use crate::problem::Problem as CoreProblem;
use crate::python::constraints::{check_not_calling, detached_with};
use crate::python::errors::{raise, warn};
use crate::python::gaussian_process::GaussianProcess;
use crate::python::interrupt::detached;
use crate::python::owned2;
use crate::python::place::Place;
use crate::python::problem::Problem;
use crate::python::trial::{Action as PyAction, TrialRecord};

const BETWEEN_TRIES: Duration = Duration::from_micros(200);

/// A log of trials, and the strategy that proposes the next trial.
///
/// The mutex is locked only while the GIL is released, so a waiting thread does not hold the GIL.
#[pyclass(frozen, module = "belated._core")]
pub struct Optimizer {
    problem: Arc<CoreProblem>,
    core: Mutex<Core>,
}

/// Means and standard deviations.
type Moments<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

/// Trial numbers, and the mean and standard deviation of the value of each trial.
type LeftOut<'py> = (
    Vec<usize>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
);

impl Optimizer {
    fn from_core(core: Core) -> Self {
        Self {
            problem: core.definition().problem.clone(),
            core: Mutex::new(core),
        }
    }

    /// Converts a value to maximise to a value of f, or back.
    fn oriented(&self, value: f64) -> f64 {
        self.problem.direction.oriented(value)
    }

    /// The address of this optimizer. It identifies the optimizer while the optimizer is borrowed.
    fn address(&self) -> usize {
        std::ptr::from_ref(&self.core) as usize
    }

    /// Acquires the lock, which another thread may hold during a suggestion. The wait can be interrupted.
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
}

#[pymethods]
impl Optimizer {
    #[new]
    fn new(py: Python<'_>, problem: &Problem, seed: u64, strategy: &str) -> PyResult<Self> {
        detached(py, |_| {
            let definition = Definition::from_json(problem.core.clone(), seed, strategy)?;
            Core::new(definition)
        })
        .map(Self::from_core)
    }

    #[pyo3(signature = (n, context, time, feasible=None, fidelity=None))]
    fn suggest(
        &self,
        py: Python<'_>,
        n: usize,
        context: Option<Vec<f64>>,
        time: Option<f64>,
        feasible: Option<Py<PyAny>>,
        fidelity: Option<f64>,
    ) -> PyResult<Vec<usize>> {
        let context = context.unwrap_or_default();
        let (numbers, warnings) = detached_with(
            py,
            self.address(),
            &self.problem,
            feasible,
            |feasible, stop| {
                let request = Request {
                    context: &context,
                    fidelity,
                    time,
                    feasible,
                    ..Request::default()
                };
                self.lock(stop)?.suggest(n, request, stop)
            },
        )?;
        for warning in warnings {
            if let Err(raised) = warn(py, &warning) {
                // If warnings are errors, the caller does not receive these trials, so abandon them.
                detached(py, |stop| {
                    let mut optimizer = self.lock(stop)?;
                    numbers.iter().try_for_each(|&number| {
                        optimizer.record(Action::Abandon { number }, time).map(drop)
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
    #[pyo3(signature = (n, context, time, expires_after=None, feasible=None, fidelity=None))]
    fn propose(
        &self,
        py: Python<'_>,
        n: usize,
        context: Option<Vec<f64>>,
        time: Option<f64>,
        expires_after: Option<f64>,
        feasible: Option<Py<PyAny>>,
        fidelity: Option<f64>,
    ) -> PyResult<Vec<String>> {
        let context = context.unwrap_or_default();
        let (address, problem) = (self.address(), &self.problem);
        let (events, warnings) =
            detached_with(py, address, problem, feasible, |feasible, stop| {
                let request = Request {
                    context: &context,
                    fidelity,
                    time,
                    lease: expires_after,
                    feasible,
                };
                let (events, warnings) = self.lock(stop)?.propose(n, request, stop)?;
                let events: Result<Vec<_>> = events.iter().map(Event::to_json).collect();
                Ok((events?, warnings))
            })?;
        for warning in warnings {
            warn(py, &warning)?;
        }
        Ok(events)
    }

    /// Returns the fidelity of the next suggestion, or None for full fidelity.
    fn next_fidelity(
        &self,
        py: Python<'_>,
        time: Option<f64>,
        feasible: Option<Py<PyAny>>,
    ) -> PyResult<Option<f64>> {
        detached_with(
            py,
            self.address(),
            &self.problem,
            feasible,
            |feasible, stop| {
                let request = Request {
                    time,
                    feasible,
                    ..Request::default()
                };
                let (events, _) = self.lock(stop)?.propose(1, request, stop)?;
                Ok(events.first().and_then(Event::fidelity))
            },
        )
    }

    /// The enqueued points that have not been suggested yet.
    fn queued(&self, py: Python<'_>) -> PyResult<Vec<Place>> {
        detached(py, |stop| {
            let core = self.lock(stop)?;
            let points = core.ledger().queued().iter();
            Ok(points.map(|queued| queued.point.clone().into()).collect())
        })
    }

    fn was_enqueued(&self, py: Python<'_>, number: usize) -> PyResult<bool> {
        detached(py, |stop| {
            Ok(self.lock(stop)?.ledger().was_enqueued(number))
        })
    }

    fn is_report_of(
        &self,
        py: Python<'_>,
        event: &str,
        concerned: Option<usize>,
        action: &PyAction,
    ) -> PyResult<bool> {
        detached(py, |stop| {
            let event = Event::from_json(event)?;
            let core = self.lock(stop)?;
            Ok(core.ledger().is_report_of(&event, concerned, &action.core))
        })
    }

    fn validate(
        &self,
        py: Python<'_>,
        action: &PyAction,
        time: Option<f64>,
    ) -> PyResult<Option<(String, Option<usize>)>> {
        let action = action.core.clone();
        detached(py, |stop| {
            let core = self.lock(stop)?;
            let Some(event) = core.validate(action, time)? else {
                return Ok(None);
            };
            let number = event.trial_number(core.ledger().trials().len());
            Ok(Some((event.to_json()?, number)))
        })
    }

    fn record(
        &self,
        py: Python<'_>,
        action: &PyAction,
        time: Option<f64>,
    ) -> PyResult<Option<usize>> {
        let action = action.core.clone();
        detached(py, |stop| self.lock(stop)?.record(action, time))
    }

    fn extend(&self, py: Python<'_>, events: Vec<String>) -> PyResult<Vec<Option<usize>>> {
        detached(py, |stop| {
            let events: Result<Vec<_>> = events.iter().map(|text| Event::from_json(text)).collect();
            self.lock(stop)?.extend(events?)
        })
    }

    fn replace(&self, py: Python<'_>, events: Vec<String>) -> PyResult<Vec<Option<usize>>> {
        detached(py, |stop| {
            let events: Result<Vec<_>> = events.iter().map(|text| Event::from_json(text)).collect();
            let mut core = self.lock(stop)?;
            let mut other = Core::new(core.definition().clone())?;
            let numbers = other.extend(events?)?;
            *core = other;
            Ok(numbers)
        })
    }

    #[pyo3(signature = (start, end=None))]
    fn events(&self, py: Python<'_>, start: usize, end: Option<usize>) -> PyResult<Vec<String>> {
        detached(py, |stop| {
            let core = self.lock(stop)?;
            let wanted = end.map_or(usize::MAX, |end| end.saturating_sub(start));
            let events = core.ledger().events(start).take(wanted);
            events.map(|event| event.to_json()).collect()
        })
    }

    fn n_events(&self, py: Python<'_>) -> PyResult<usize> {
        detached(py, |stop| Ok(self.lock(stop)?.ledger().len()))
    }

    #[pyo3(signature = (context, time, feasible=None))]
    fn recommend(
        &self,
        py: Python<'_>,
        context: Option<Vec<f64>>,
        time: Option<f64>,
        feasible: Option<Py<PyAny>>,
    ) -> PyResult<Option<(Place, f64, f64)>> {
        let context = context.unwrap_or_default();
        let best = detached_with(
            py,
            self.address(),
            &self.problem,
            feasible,
            |feasible, stop| self.lock(stop)?.recommend(&context, time, feasible, stop),
        )?;
        Ok(best.map(|best| (best.point.into(), best.mean, best.std)))
    }

    #[pyo3(signature = (time, pending))]
    fn surrogate(
        &self,
        py: Python<'_>,
        time: Option<f64>,
        pending: bool,
    ) -> PyResult<Option<(GaussianProcess, f64, f64, f64)>> {
        let surrogate = detached(py, |stop| {
            let mut core = self.lock(stop)?;
            let surrogate = core.surrogate(time, pending, stop)?;
            Ok(surrogate.map(|s| (s.gp.clone(), s.units, s.log_slope)))
        })?;
        Ok(surrogate.map(|(gp, units, log_slope)| {
            // The prior mean is in units of f. If bad values are compressed, the scale applies to the values that are
            // not compressed.
            let (mean, scale) = (self.oriented(units.value(0.0)), units.scale);
            (GaussianProcess::from_core(gp), mean, scale, log_slope)
        }))
    }

    #[pyo3(signature = (points, time, pending))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        points: PyReadonlyArray2<'py, f64>,
        time: Option<f64>,
        pending: bool,
    ) -> PyResult<Option<Moments<'py>>> {
        let points = owned2(points);
        let moments = detached(py, |stop| {
            let mut core = self.lock(stop)?;
            core.check_rows(points.view())?;
            let Some(surrogate) = core.surrogate(time, pending, stop)? else {
                return Ok(None);
            };
            let (mut mean, mut std) = (Vec::with_capacity(points.nrows()), Vec::new());
            for block in points.axis_chunks_iter(Axis(0), BLOCK) {
                check(stop)?;
                let (block_mean, variance) = surrogate.gp.predict(block);
                for (m, v) in block_mean.iter().zip(variance) {
                    let (m, s) = surrogate.units.moments(*m, v.sqrt());
                    mean.push(self.oriented(m));
                    std.push(s);
                }
            }
            Ok(Some((mean, std)))
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
    ) -> PyResult<Option<Bound<'py, PyArray1<f64>>>> {
        let (points, context) = (owned2(points), context.unwrap_or_default());
        let values = detached_with(
            py,
            self.address(),
            &self.problem,
            feasible,
            |feasible, stop| {
                let mut core = self.lock(stop)?;
                core.acquisition(points.view(), &context, time, feasible, stop)
            },
        )?;
        Ok(values.map(|values| values.into_pyarray(py)))
    }

    fn leave_one_out<'py>(
        &self,
        py: Python<'py>,
        time: Option<f64>,
    ) -> PyResult<Option<LeftOut<'py>>> {
        let left_out = detached(py, |stop| {
            let mut core = self.lock(stop)?;
            let Some(surrogate) = core.surrogate(time, false, stop)? else {
                return Ok(None);
            };
            let (mean, variance) = surrogate.gp.leave_one_out(stop)?;
            let moments = mean.into_iter().zip(variance);
            let in_units = moments.map(|(m, v)| surrogate.units.moments(m, v.sqrt()));
            let (mean, std): (Vec<f64>, Vec<f64>) =
                in_units.map(|(m, s)| (self.oriented(m), s)).unzip();
            Ok(Some((surrogate.rows.to_vec(), mean, std)))
        })?;
        Ok(left_out
            .map(|(numbers, mean, std)| (numbers, mean.into_pyarray(py), std.into_pyarray(py))))
    }

    fn status(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let status = detached(py, |stop| self.lock(stop)?.status(stop))?;
        Ok(status.map(|status| status.to_string()))
    }

    /// The time on the optimizer's clock.
    fn now(&self, py: Python<'_>, time: Option<f64>) -> PyResult<f64> {
        detached(py, |stop| self.lock(stop)?.ledger().now(time))
    }

    fn trial(&self, py: Python<'_>, number: usize) -> PyResult<TrialRecord> {
        detached(py, |stop| {
            let core = self.lock(stop)?;
            TrialRecord::new(core.ledger(), number)
        })
    }

    fn numbers(&self, py: Python<'_>, state: Option<&str>) -> PyResult<Vec<usize>> {
        let wanted = match state {
            None => None,
            Some(name) => match State::ALL.into_iter().find(|s| s.name() == name) {
                Some(state) => Some(state),
                None => {
                    let error = Error::InvalidSetting {
                        name: "state",
                        got: format!("{name:?}"),
                        expected: "\"pending\", \"observed\", \"failed\", \"abandoned\" or None",
                    };
                    return Err(raise(py, error));
                }
            },
        };
        detached(py, |stop| {
            let core = self.lock(stop)?;
            Ok(match wanted {
                Some(State::Pending) => core.ledger().pending().iter().copied().collect(),
                _ => {
                    let trials = core.ledger().trials().iter().enumerate();
                    trials
                        .filter(|(_, trial)| wanted.is_none_or(|state| trial.state == state))
                        .map(|(number, _)| number)
                        .collect()
                }
            })
        })
    }

    fn best(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        detached(py, |stop| Ok(self.lock(stop)?.ledger().best()))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        detached(py, |stop| Ok(self.lock(stop)?.ledger().trials().len()))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = detached(py, |stop| self.lock(stop)?.to_bytes())?;
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
