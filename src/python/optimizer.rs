//! `Optimizer` and `TrialRecord`: the log and its strategy.

use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use ndarray::Axis;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::{Error, Result, Stop, check};
use crate::gp::BLOCK;
use crate::ledger::{Action, Event, Point, State, Trial};
use crate::optimizer::{Definition, Lease, Optimizer as Core, Settings};
use crate::python::domain::Domain;
use crate::python::errors::{raise, warn};
use crate::python::gaussian_process::GaussianProcess;
use crate::python::interrupt::detached;
use crate::python::{owned1, owned2};

const BETWEEN_TRIES: Duration = Duration::from_micros(200);

/// A log of trials and the strategy that proposes the next one.
///
/// The mutex is taken only with the GIL released: a thread that waits for it holds nothing.
#[pyclass(frozen, module = "belated._core")]
pub struct Optimizer {
    core: Mutex<Core>,
}

/// One trial as the log knows it.
#[pyclass(frozen, module = "belated._core")]
pub struct TrialRecord {
    number: usize,
    point: Point,
    context: Vec<f64>,
    trial: Trial,
}

/// Mean and standard deviation.
type Moments<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

/// Trial numbers; mean and standard deviation of the value of each.
type LeftOut<'py> = (
    Vec<usize>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
);

/// (point, candidate index, posterior mean, posterior std)
type Recommended<'py> = (Bound<'py, PyArray1<f64>>, Option<usize>, f64, f64);

impl Optimizer {
    fn validate(
        &self,
        py: Python<'_>,
        action: Action,
        now: Option<f64>,
    ) -> PyResult<Option<String>> {
        detached(py, |stop| match self.lock(stop)?.validate(action, now)? {
            Some(event) => event.to_json().map(Some),
            None => Ok(None),
        })
    }

    fn record(&self, py: Python<'_>, action: Action, now: Option<f64>) -> PyResult<()> {
        detached(py, |stop| self.lock(stop)?.record(action, now))
    }

    fn from_core(core: Core) -> Self {
        Self {
            core: Mutex::new(core),
        }
    }

    /// Waits for its turn as long as nobody asks to stop: another thread's suggestion may take a while.
    ///
    /// A panic cannot leave the log half written (events are appended whole), so a poisoned lock is usable.
    fn lock(&self, stop: &mut Stop) -> Result<MutexGuard<'_, Core>> {
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

fn context(array: Option<PyReadonlyArray1<'_, f64>>) -> Vec<f64> {
    array.map_or(Vec::new(), |z| owned1(z).to_vec())
}

fn point(x: PyReadonlyArray1<'_, f64>, index: Option<usize>, given: Option<Vec<f64>>) -> Point {
    Point {
        x: owned1(x).to_vec(),
        index,
        given,
    }
}

#[pymethods]
impl Optimizer {
    #[new]
    fn new(py: Python<'_>, domain: &Domain, definition: &str) -> PyResult<Self> {
        detached(py, |_| {
            Core::new(Definition {
                domain: domain.core.clone(),
                settings: Settings::from_json(definition)?,
            })
        })
        .map(Self::from_core)
    }

    fn suggest(
        &self,
        py: Python<'_>,
        n: usize,
        context: Option<PyReadonlyArray1<'_, f64>>,
        now: Option<f64>,
    ) -> PyResult<Vec<usize>> {
        let context = self::context(context);
        let (numbers, warnings) =
            detached(py, |stop| self.lock(stop)?.suggest(n, &context, now, stop))?;
        for warning in warnings {
            if let Err(raised) = warn(py, &warning) {
                // Where warnings are errors nobody will learn of these trials.
                detached(py, |stop| {
                    let mut optimizer = self.lock(stop)?;
                    let mut abandon = |number| optimizer.record(Action::Abandon { number }, now);
                    numbers.iter().try_for_each(|&number| abandon(number))
                })?;
                return Err(raised);
            }
        }
        Ok(numbers)
    }

    #[pyo3(signature = (n, context, now, wall_time=None, expires_after=None))]
    fn propose(
        &self,
        py: Python<'_>,
        n: usize,
        context: Option<PyReadonlyArray1<'_, f64>>,
        now: Option<f64>,
        wall_time: Option<f64>,
        expires_after: Option<f64>,
    ) -> PyResult<Vec<String>> {
        let context = self::context(context);
        let lease = Lease {
            wall_time,
            seconds: expires_after,
        };
        let (events, warnings) = detached(py, |stop| {
            let (events, warnings) = self.lock(stop)?.propose(n, &context, now, lease, stop)?;
            let events: Result<Vec<_>> = events.iter().map(Event::to_json).collect();
            Ok((events?, warnings))
        })?;
        for warning in warnings {
            warn(py, &warning)?;
        }
        Ok(events)
    }

    #[pyo3(signature = (number, value, now, amend, std=None))]
    fn validate_observe(
        &self,
        py: Python<'_>,
        number: usize,
        value: f64,
        now: Option<f64>,
        amend: bool,
        std: Option<f64>,
    ) -> PyResult<Option<String>> {
        self.validate(py, Action::observe(number, value, std, amend), now)
    }

    fn validate_fail(
        &self,
        py: Python<'_>,
        number: usize,
        now: Option<f64>,
    ) -> PyResult<Option<String>> {
        self.validate(py, Action::fail(number), now)
    }

    fn validate_abandon(
        &self,
        py: Python<'_>,
        number: usize,
        now: Option<f64>,
    ) -> PyResult<Option<String>> {
        self.validate(py, Action::Abandon { number }, now)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "what a trial is made of, as Python passes it"
    )]
    #[pyo3(signature = (point, index, given, context, value, now, std=None))]
    fn validate_add(
        &self,
        py: Python<'_>,
        point: PyReadonlyArray1<'_, f64>,
        index: Option<usize>,
        given: Option<Vec<f64>>,
        context: Option<PyReadonlyArray1<'_, f64>>,
        value: Option<f64>,
        now: Option<f64>,
        std: Option<f64>,
    ) -> PyResult<Option<String>> {
        let point = self::point(point, index, given);
        let action = Action::add(point, self::context(context), value, std);
        self.validate(py, action, now)
    }

    fn validate_enqueue(
        &self,
        py: Python<'_>,
        point: PyReadonlyArray1<'_, f64>,
        index: Option<usize>,
        given: Option<Vec<f64>>,
    ) -> PyResult<Option<String>> {
        self.validate(py, Action::enqueue(self::point(point, index, given)), None)
    }

    fn extend(&self, py: Python<'_>, events: Vec<String>) -> PyResult<Vec<Option<usize>>> {
        detached(py, |stop| {
            let events: Result<Vec<_>> = events.iter().map(|text| Event::from_json(text)).collect();
            self.lock(stop)?.extend(events?)
        })
    }

    fn events(&self, py: Python<'_>, start: usize) -> PyResult<Vec<String>> {
        detached(py, |stop| {
            let core = self.lock(stop)?;
            let events = core.ledger().events(start);
            events.map(|event| event.to_json()).collect()
        })
    }

    fn n_events(&self, py: Python<'_>) -> PyResult<usize> {
        detached(py, |stop| Ok(self.lock(stop)?.ledger().len()))
    }

    #[pyo3(signature = (number, value, now, amend, std=None))]
    fn observe(
        &self,
        py: Python<'_>,
        number: usize,
        value: f64,
        now: Option<f64>,
        amend: bool,
        std: Option<f64>,
    ) -> PyResult<()> {
        self.record(py, Action::observe(number, value, std, amend), now)
    }

    fn fail(&self, py: Python<'_>, number: usize, now: Option<f64>) -> PyResult<()> {
        self.record(py, Action::fail(number), now)
    }

    fn abandon(&self, py: Python<'_>, number: usize, now: Option<f64>) -> PyResult<()> {
        self.record(py, Action::Abandon { number }, now)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "what a trial is made of, as Python passes it"
    )]
    #[pyo3(signature = (point, index, given, context, value, now, std=None))]
    fn add(
        &self,
        py: Python<'_>,
        point: PyReadonlyArray1<'_, f64>,
        index: Option<usize>,
        given: Option<Vec<f64>>,
        context: Option<PyReadonlyArray1<'_, f64>>,
        value: Option<f64>,
        now: Option<f64>,
        std: Option<f64>,
    ) -> PyResult<usize> {
        let point = self::point(point, index, given);
        let action = Action::add(point, self::context(context), value, std);
        detached(py, |stop| {
            let mut core = self.lock(stop)?;
            core.record(action, now)?;
            Ok(core.ledger().trials().len() - 1)
        })
    }

    fn enqueue(
        &self,
        py: Python<'_>,
        point: PyReadonlyArray1<'_, f64>,
        index: Option<usize>,
        given: Option<Vec<f64>>,
    ) -> PyResult<()> {
        self.record(py, Action::enqueue(self::point(point, index, given)), None)
    }

    fn recommend<'py>(
        &self,
        py: Python<'py>,
        context: Option<PyReadonlyArray1<'py, f64>>,
        now: Option<f64>,
    ) -> PyResult<Option<Recommended<'py>>> {
        let context = self::context(context);
        let best = detached(py, |stop| self.lock(stop)?.recommend(&context, now, stop))?;
        Ok(best.map(|best| {
            let x = best.point.x.into_pyarray(py);
            (x, best.point.index, best.mean, best.std)
        }))
    }

    #[pyo3(signature = (now, pending, wall_time=None))]
    fn surrogate(
        &self,
        py: Python<'_>,
        now: Option<f64>,
        pending: bool,
        wall_time: Option<f64>,
    ) -> PyResult<Option<(GaussianProcess, f64, f64)>> {
        let surrogate = detached(py, |stop| {
            let mut core = self.lock(stop)?;
            let surrogate = core.surrogate(now, wall_time, pending, stop)?;
            Ok(surrogate.map(|s| (s.gp.clone(), s.center, s.scale)))
        })?;
        Ok(surrogate.map(|(gp, center, scale)| (GaussianProcess::from_core(gp), center, scale)))
    }

    #[pyo3(signature = (points, now, pending, wall_time=None))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        points: PyReadonlyArray2<'py, f64>,
        now: Option<f64>,
        pending: bool,
        wall_time: Option<f64>,
    ) -> PyResult<Option<Moments<'py>>> {
        let points = owned2(points);
        let moments = detached(py, |stop| {
            let mut core = self.lock(stop)?;
            core.check_rows(points.view())?;
            let Some(surrogate) = core.surrogate(now, wall_time, pending, stop)? else {
                return Ok(None);
            };
            let (mut mean, mut std) = (Vec::with_capacity(points.nrows()), Vec::new());
            for block in points.axis_chunks_iter(Axis(0), BLOCK) {
                check(stop)?;
                let (block_mean, variance) = surrogate.gp.predict(block);
                mean.extend(
                    block_mean
                        .iter()
                        .map(|m| surrogate.center + surrogate.scale * m),
                );
                std.extend(variance.iter().map(|v| surrogate.scale * v.sqrt()));
            }
            Ok(Some((mean, std)))
        })?;
        Ok(moments.map(|(mean, std)| (mean.into_pyarray(py), std.into_pyarray(py))))
    }

    #[pyo3(signature = (points, context, now, wall_time=None))]
    fn acquisition<'py>(
        &self,
        py: Python<'py>,
        points: PyReadonlyArray2<'py, f64>,
        context: Option<PyReadonlyArray1<'py, f64>>,
        now: Option<f64>,
        wall_time: Option<f64>,
    ) -> PyResult<Option<Bound<'py, PyArray1<f64>>>> {
        let (points, context) = (owned2(points), self::context(context));
        let values = detached(py, |stop| {
            let mut core = self.lock(stop)?;
            core.acquisition(points.view(), &context, now, wall_time, stop)
        })?;
        Ok(values.map(|values| values.into_pyarray(py)))
    }

    #[pyo3(signature = (now, wall_time=None))]
    fn leave_one_out<'py>(
        &self,
        py: Python<'py>,
        now: Option<f64>,
        wall_time: Option<f64>,
    ) -> PyResult<Option<LeftOut<'py>>> {
        let left_out = detached(py, |stop| {
            let mut core = self.lock(stop)?;
            let Some(surrogate) = core.surrogate(now, wall_time, false, stop)? else {
                return Ok(None);
            };
            let (center, scale) = (surrogate.center, surrogate.scale);
            let (mut mean, variance) = surrogate.gp.leave_one_out(stop)?;
            mean.iter_mut().for_each(|m| *m = center + scale * *m);
            let std: Vec<f64> = variance.iter().map(|v| scale * v.sqrt()).collect();
            Ok(Some((surrogate.rows.to_vec(), mean, std)))
        })?;
        Ok(left_out
            .map(|(numbers, mean, std)| (numbers, mean.into_pyarray(py), std.into_pyarray(py))))
    }

    /// The time on the optimizer's clock.
    fn now(&self, py: Python<'_>, now: Option<f64>) -> PyResult<f64> {
        detached(py, |stop| self.lock(stop)?.ledger().now(now))
    }

    fn trial(&self, py: Python<'_>, number: usize) -> PyResult<TrialRecord> {
        detached(py, |stop| {
            let core = self.lock(stop)?;
            let ledger = core.ledger();
            Ok(TrialRecord {
                number,
                trial: ledger.trial(number)?.clone(),
                point: ledger.point(number),
                context: ledger.context(number).to_vec(),
            })
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

#[pymethods]
impl TrialRecord {
    #[getter]
    fn number(&self) -> usize {
        self.number
    }

    #[getter]
    fn point<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, &self.point.x)
    }

    #[getter]
    fn index(&self) -> Option<usize> {
        self.point.index
    }

    #[getter]
    fn given(&self) -> Option<Vec<f64>> {
        self.point.given.clone()
    }

    #[getter]
    fn context<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, &self.context)
    }

    #[getter]
    fn state(&self) -> &'static str {
        self.trial.state.name()
    }

    #[getter]
    fn value(&self) -> Option<f64> {
        self.trial.value
    }

    #[getter]
    fn std(&self) -> Option<f64> {
        self.trial.std()
    }

    #[getter]
    fn cost(&self) -> Option<f64> {
        self.trial.cost()
    }

    #[getter]
    fn fidelity(&self) -> Option<f64> {
        self.trial.fidelity()
    }

    #[getter]
    fn attrs(&self) -> Option<&str> {
        self.trial.attrs()
    }

    #[getter]
    fn note(&self) -> Option<&str> {
        self.trial.note()
    }

    #[getter]
    fn suggested_at(&self) -> f64 {
        self.trial.suggested_at
    }

    #[getter]
    fn observed_at(&self) -> Option<f64> {
        self.trial.observed_at
    }
}
