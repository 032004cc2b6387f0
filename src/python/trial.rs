//! The Python classes `Action` (a report on a trial) and `TrialRecord` (the record of a trial).

use pyo3::prelude::*;

use crate::error::Result;
use crate::ledger::{self, Again, Event, Failure, Ledger, Trial, TrialNumber};
use crate::problem::Point;
use crate::python::errors::raise;
use crate::python::place::Place;

/// An action on a trial. The action is checked when it is recorded.
#[pyclass(frozen, module = "belated._core")]
pub struct Action {
    pub(super) core: ledger::Action,
}

/// The record of a trial.
#[pyclass(frozen, module = "belated._core")]
pub struct TrialRecord {
    number: usize,
    started: Point,
    run: Option<Point>,
    context: Vec<f64>,
    /// The value, with the user's sign.
    value: Option<f64>,
    started_at: Option<f64>,
    finished_at: Option<f64>,
    trial: Trial,
}

/// An observation. `place` is the point where the trial was run.
#[derive(FromPyObject)]
struct Observation {
    value: f64,
    std: Option<f64>,
    cost: Option<f64>,
    duration: Option<f64>,
    place: Option<Place>,
    attrs: Option<String>,
}

/// Returns the point in an event, or None if the event does not have a point.
#[pyfunction]
pub fn point_of(py: Python<'_>, event: &str) -> PyResult<Option<Place>> {
    let event = Event::from_json(event).map_err(|error| raise(py, error))?;
    Ok(event.point().cloned().map(Place::from))
}

/// Returns an event without its wall-clock time.
#[pyfunction]
pub fn without_time(py: Python<'_>, event: &str) -> PyResult<String> {
    let stripped = Event::from_json(event).and_then(|mut event| {
        event.forget_time();
        event.to_json()
    });
    stripped.map_err(|error| raise(py, error))
}

/// Returns a suggested event without the note of its strategy.
#[pyfunction]
pub fn without_note(py: Python<'_>, event: &str) -> PyResult<String> {
    let stripped = Event::from_json(event).and_then(|mut event| {
        if let Event::Suggested { note, .. } = &mut event {
            *note = None;
        }
        event.to_json()
    });
    stripped.map_err(|error| raise(py, error))
}

/// The type, message and traceback of an error.
type ErrorFacts = (String, String, Option<String>);

impl From<Observation> for ledger::Observation {
    fn from(observation: Observation) -> Self {
        Self {
            value: observation.value,
            std: observation.std,
            cost: observation.cost,
            duration: observation.duration,
            point: observation.place.map(Point::from),
            attrs: observation.attrs,
        }
    }
}

#[pymethods]
impl Action {
    #[staticmethod]
    fn observe(number: usize, observation: Observation, amend: bool, replicate: bool) -> Self {
        let again = match (amend, replicate) {
            (_, true) => Again::Replicate,
            (true, false) => Again::Amend,
            (false, false) => Again::Refuse,
        };
        let core = ledger::Action::Observe {
            number,
            observation: observation.into(),
            again,
        };
        Self { core }
    }

    #[staticmethod]
    fn fail(number: usize, error: Option<ErrorFacts>, attrs: Option<String>) -> Self {
        let error = error.map(|(kind, message, traceback)| Failure {
            kind,
            message,
            traceback,
        });
        let core = ledger::Action::Fail {
            number,
            error,
            attrs,
        };
        Self { core }
    }

    #[staticmethod]
    fn abandon(number: usize) -> Self {
        let core = ledger::Action::Abandon { number };
        Self { core }
    }

    #[staticmethod]
    #[pyo3(signature = (place, context, observation, fidelity=None, attrs=None))]
    fn add(
        place: Place,
        context: Option<Vec<f64>>,
        observation: Option<Observation>,
        fidelity: Option<f64>,
        attrs: Option<String>,
    ) -> Self {
        let core = ledger::Action::Add {
            point: place.into(),
            context: context.unwrap_or_default(),
            fidelity,
            observation: observation.map(ledger::Observation::from),
            attrs,
        };
        Self { core }
    }

    #[staticmethod]
    #[pyo3(signature = (place, fidelity=None))]
    fn enqueue(place: Place, fidelity: Option<f64>) -> Self {
        let core = ledger::Action::Enqueue {
            point: place.into(),
            fidelity,
            attrs: None,
        };
        Self { core }
    }
}

impl TrialRecord {
    /// The point where the trial was started.
    pub(super) fn started(&self) -> &Point {
        &self.started
    }

    pub(super) fn new(ledger: &Ledger, number: TrialNumber) -> Result<Self> {
        Ok(Self {
            number,
            trial: ledger.trial(number)?.clone(),
            started: ledger.started_point(number),
            run: ledger.run_point(number),
            context: ledger.context_numbers(number).to_vec(),
            value: ledger.value(number),
            started_at: ledger.started_at(number),
            finished_at: ledger.finished_at(number),
        })
    }
}

#[pymethods]
impl TrialRecord {
    #[getter]
    fn number(&self) -> usize {
        self.number
    }

    #[getter]
    fn place(&self) -> Place {
        self.started.clone().into()
    }

    #[getter]
    fn run(&self) -> Option<Place> {
        self.run.clone().map(Place::from)
    }

    #[getter]
    fn context(&self) -> Vec<f64> {
        self.context.clone()
    }

    #[getter]
    fn state(&self) -> &'static str {
        self.trial.state.name()
    }

    #[getter]
    fn suggested(&self) -> bool {
        self.trial.suggested
    }

    #[getter]
    fn value(&self) -> Option<f64> {
        self.value
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
    fn duration(&self) -> Option<f64> {
        self.trial.duration()
    }

    #[getter]
    fn fidelity(&self) -> Option<f64> {
        self.trial.fidelity()
    }

    #[getter]
    fn attrs(&self) -> Vec<&str> {
        self.trial.attrs().collect()
    }

    #[getter]
    fn error(&self) -> Option<ErrorFacts> {
        let error = self.trial.error()?.clone();
        Some((error.kind, error.message, error.traceback))
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
    fn started_at(&self) -> Option<f64> {
        self.started_at
    }

    #[getter]
    fn finished_at(&self) -> Option<f64> {
        self.finished_at
    }

    #[getter]
    fn observed_at(&self) -> Option<f64> {
        self.trial.observed_at()
    }

    #[getter]
    fn ended_at(&self) -> Option<f64> {
        self.trial.ended_at()
    }

    #[getter]
    fn expires_at(&self) -> Option<f64> {
        self.trial.expires_at()
    }
}
