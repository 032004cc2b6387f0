//! `Optimizer` and `TrialRecord`: the log and its strategy.

use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::error::{Error, Result, Stop, check};
use crate::ledger::{Action, Event, Point, State, Trial};
use crate::optimizer::{Definition, Lease, Method, Optimizer as Core};
use crate::python::domain::Domain;
use crate::python::errors::{raise, warn};
use crate::python::gaussian_process::GaussianProcess;
use crate::python::interrupt::detached;
use crate::python::owned1;
use crate::python::settings::{clock, settings};

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
    trial: Trial,
}

/// (point, candidate index, posterior mean, posterior std)
type Recommended<'py> = (Bound<'py, PyArray1<f64>>, Option<usize>, f64, f64);

impl Optimizer {
    fn new(
        py: Python<'_>,
        domain: &Domain,
        context_width: usize,
        time: &Bound<'_, PyAny>,
        seed: u64,
        method: Method,
    ) -> PyResult<Self> {
        let definition = Definition {
            domain: domain.core.clone(),
            context_width,
            clock: clock(py, time)?,
            seed,
            method,
        };
        detached(py, |_| Core::new(definition)).map(Self::from_core)
    }

    fn draft(&self, py: Python<'_>, action: Action, now: Option<f64>) -> PyResult<Option<String>> {
        detached(py, |stop| match self.lock(stop)?.draft(action, now)? {
            Some(event) => event.to_json().map(Some),
            None => Ok(None),
        })
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

fn point(x: PyReadonlyArray1<'_, f64>, index: Option<usize>) -> Point {
    Point {
        x: owned1(x).to_vec(),
        index,
    }
}

#[pymethods]
impl Optimizer {
    #[staticmethod]
    fn random_search(
        py: Python<'_>,
        domain: &Domain,
        context_width: usize,
        clock: &Bound<'_, PyAny>,
        seed: u64,
    ) -> PyResult<Self> {
        Self::new(py, domain, context_width, clock, seed, Method::RandomSearch)
    }

    #[staticmethod]
    #[pyo3(signature = (domain, context_width, clock, seed, settings))]
    fn bayes_opt(
        py: Python<'_>,
        domain: &Domain,
        context_width: usize,
        clock: &Bound<'_, PyAny>,
        seed: u64,
        settings: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let method = Method::BayesOpt(Box::new(self::settings(settings)?));
        Self::new(py, domain, context_width, clock, seed, method)
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
                    let mut abandon = |number| optimizer.act(Action::Abandon { number }, now);
                    numbers.iter().try_for_each(|&number| abandon(number))
                })?;
                return Err(raised);
            }
        }
        Ok(numbers)
    }

    #[pyo3(signature = (n, context, now, wall=None, expires_after=None))]
    fn propose(
        &self,
        py: Python<'_>,
        n: usize,
        context: Option<PyReadonlyArray1<'_, f64>>,
        now: Option<f64>,
        wall: Option<f64>,
        expires_after: Option<f64>,
    ) -> PyResult<Vec<String>> {
        let context = self::context(context);
        let lease = Lease {
            wall,
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
    fn draft_observe(
        &self,
        py: Python<'_>,
        number: usize,
        value: f64,
        now: Option<f64>,
        amend: bool,
        std: Option<f64>,
    ) -> PyResult<Option<String>> {
        let action = Action::Observe {
            number,
            value,
            std,
            amend,
        };
        self.draft(py, action, now)
    }

    fn draft_fail(
        &self,
        py: Python<'_>,
        number: usize,
        now: Option<f64>,
    ) -> PyResult<Option<String>> {
        self.draft(py, Action::Fail { number }, now)
    }

    fn draft_abandon(
        &self,
        py: Python<'_>,
        number: usize,
        now: Option<f64>,
    ) -> PyResult<Option<String>> {
        self.draft(py, Action::Abandon { number }, now)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "what a trial is made of, as Python passes it"
    )]
    #[pyo3(signature = (point, index, context, value, now, std=None))]
    fn draft_add(
        &self,
        py: Python<'_>,
        point: PyReadonlyArray1<'_, f64>,
        index: Option<usize>,
        context: Option<PyReadonlyArray1<'_, f64>>,
        value: Option<f64>,
        now: Option<f64>,
        std: Option<f64>,
    ) -> PyResult<Option<String>> {
        let action = Action::Add {
            point: self::point(point, index),
            context: self::context(context),
            value,
            std,
        };
        self.draft(py, action, now)
    }

    fn draft_enqueue(
        &self,
        py: Python<'_>,
        point: PyReadonlyArray1<'_, f64>,
        index: Option<usize>,
    ) -> PyResult<Option<String>> {
        let action = Action::Enqueue {
            point: self::point(point, index),
        };
        self.draft(py, action, Some(0.0))
    }

    fn extend(&self, py: Python<'_>, events: Vec<String>) -> PyResult<()> {
        detached(py, |stop| {
            let events: Result<Vec<_>> = events.iter().map(|text| Event::from_json(text)).collect();
            self.lock(stop)?.apply_untrusted(events?)
        })
    }

    fn events(&self, py: Python<'_>, start: usize) -> PyResult<Vec<String>> {
        detached(py, |stop| {
            let core = self.lock(stop)?;
            let events = core.ledger().events();
            events[start.min(events.len())..]
                .iter()
                .map(Event::to_json)
                .collect()
        })
    }

    fn n_events(&self, py: Python<'_>) -> PyResult<usize> {
        detached(py, |stop| Ok(self.lock(stop)?.ledger().events().len()))
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
        let action = Action::Observe {
            number,
            value,
            std,
            amend,
        };
        detached(py, |stop| self.lock(stop)?.act(action, now))
    }

    fn fail(&self, py: Python<'_>, number: usize, now: Option<f64>) -> PyResult<()> {
        detached(py, |stop| {
            self.lock(stop)?.act(Action::Fail { number }, now)
        })
    }

    fn abandon(&self, py: Python<'_>, number: usize, now: Option<f64>) -> PyResult<()> {
        detached(py, |stop| {
            self.lock(stop)?.act(Action::Abandon { number }, now)
        })
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "what a trial is made of, as Python passes it"
    )]
    #[pyo3(signature = (point, index, context, value, now, std=None))]
    fn add(
        &self,
        py: Python<'_>,
        point: PyReadonlyArray1<'_, f64>,
        index: Option<usize>,
        context: Option<PyReadonlyArray1<'_, f64>>,
        value: Option<f64>,
        now: Option<f64>,
        std: Option<f64>,
    ) -> PyResult<usize> {
        let action = Action::Add {
            point: self::point(point, index),
            context: self::context(context),
            value,
            std,
        };
        detached(py, |stop| {
            let mut core = self.lock(stop)?;
            core.act(action, now)?;
            Ok(core.ledger().trials().len() - 1)
        })
    }

    fn enqueue(
        &self,
        py: Python<'_>,
        point: PyReadonlyArray1<'_, f64>,
        index: Option<usize>,
    ) -> PyResult<()> {
        let action = Action::Enqueue {
            point: self::point(point, index),
        };
        // When a point was queued is of no account to anything.
        detached(py, |stop| self.lock(stop)?.act(action, Some(0.0)))
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

    #[pyo3(signature = (now, pending, wall=None))]
    fn surrogate(
        &self,
        py: Python<'_>,
        now: Option<f64>,
        pending: bool,
        wall: Option<f64>,
    ) -> PyResult<Option<(GaussianProcess, f64, f64)>> {
        let surrogate = detached(py, |stop| {
            self.lock(stop)?.surrogate(now, wall, pending, stop)
        })?;
        Ok(surrogate.map(|s| (GaussianProcess::from_core(s.model), s.center, s.scale)))
    }

    fn trial(&self, py: Python<'_>, number: usize) -> PyResult<TrialRecord> {
        detached(py, |stop| {
            let core = self.lock(stop)?;
            let trial = core.ledger().trial(number)?.clone();
            Ok(TrialRecord { number, trial })
        })
    }

    fn numbers(&self, py: Python<'_>, state: Option<&str>) -> PyResult<Vec<usize>> {
        let states = [
            State::Pending,
            State::Observed,
            State::Failed,
            State::Abandoned,
        ];
        let wanted = match state {
            None => None,
            Some(name) => match states.into_iter().find(|s| s.name() == name) {
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
        PyArray1::from_slice(py, &self.trial.point.x)
    }

    #[getter]
    fn index(&self) -> Option<usize> {
        self.trial.point.index
    }

    #[getter]
    fn context<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, &self.trial.context)
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
        self.trial.std
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
