//! The Python classes `Observation`, `Action` (a report on a trial) and `TrialRecord` (the record of a trial).

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyFloat;

use crate::error::Result;
use crate::ledger::{
    self, Again, Data, Event, Failure, Happened, Ledger, Mark, Noted, Queued, Reading, State,
    TrialNumber, View, What,
};
use crate::optimizer;
use crate::problem::Point;
use crate::stopping::DIVERGED;

/// Observed values of outcomes, and the data reported with them. The numbers are checked here; the point and the
/// attributes are checked when they are recorded. `what` is the trial or the added point, for messages.
#[pyclass(frozen, module = "belated._core")]
pub struct Observation {
    core: ledger::Observation,
}

/// The positions of outcomes, their values, and the standard deviations of their noise.
type Values = Vec<(u32, f64, Option<f64>)>;

#[pymethods]
impl Observation {
    #[new]
    #[pyo3(signature = (values, cost=None, duration=None, point=None, attrs=None, *, marks=None, what="the trial"))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        values: &Bound<'_, PyAny>,
        cost: Option<f64>,
        duration: Option<f64>,
        point: Option<Point>,
        attrs: Option<String>,
        marks: Option<Vec<(u32, f64, f64)>>,
        what: &str,
    ) -> PyResult<Self> {
        let values: Values = match values.cast_exact::<PyFloat>() {
            Ok(value) => vec![(0, value.value(), None)],
            Err(_) => values.extract()?,
        };
        let values = values.into_iter();
        let core = ledger::Observation {
            readings: values
                .map(|(outcome, value, std)| (outcome, Reading { value, std }))
                .collect(),
            data: Data {
                cost,
                duration,
                point,
                attrs,
                ..Data::default()
            },
            marks: marks.map(|marks| {
                let marks = marks.into_iter();
                marks
                    .map(|(outcome, low, high)| Mark { outcome, low, high })
                    .collect()
            }),
        };
        core.check_numbers(what)?;
        Ok(Self { core })
    }
}

/// An action on a trial, which is checked when it is recorded.
#[pyclass(frozen, module = "belated._core")]
pub struct Action {
    pub(super) core: ledger::Action,
}

/// Returns the entries of two JSON objects; those of the second replace those of the first.
fn merged_attrs(earlier: Option<&str>, later: &str) -> PyResult<String> {
    let read = |text: &str| {
        serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text)
            .map_err(|error| PyValueError::new_err(error.to_string()))
    };
    let mut found = read(earlier.unwrap_or("{}"))?;
    found.extend(read(later)?);
    Ok(serde_json::Value::from(found).to_string())
}

/// An event that a core drafted, and the number of its trial.
#[pyclass(frozen, module = "belated._core")]
pub struct Draft {
    pub(super) core: optimizer::Draft,
    #[pyo3(get)]
    number: Option<usize>,
}

impl Draft {
    /// Before the event, the log has `n_trials` trials.
    pub(super) fn new(core: optimizer::Draft, n_trials: usize) -> Self {
        let number = core.event.trial_number(n_trials);
        Self { core, number }
    }
}

#[pymethods]
impl Draft {
    /// The event as JSON, as stores keep it.
    #[getter]
    fn text(&self) -> PyResult<String> {
        Ok(self.core.event.to_json()?)
    }

    /// The same suggestion with attributes of its trial, as JSON. Attributes of an enqueued point with other keys stay.
    fn with_attrs(&self, attrs: &str) -> PyResult<Self> {
        let mut core = self.core.clone();
        if let What::Suggested(it) = &mut core.event.what {
            it.attrs = Some(merged_attrs(it.attrs.as_deref(), attrs)?);
        }
        Ok(Self {
            core,
            number: self.number,
        })
    }

    /// The same event with its author.
    fn with_author(&self, by: String) -> Self {
        let mut core = self.core.clone();
        core.event.by = Some(by);
        Self {
            core,
            number: self.number,
        }
    }

    /// The marked values of the event.
    #[getter]
    fn marks(&self) -> Vec<MarkedValue> {
        marked_values(&self.core.event)
    }
}

/// The position of an outcome, its value, and the interval in which the value was expected.
pub(super) type MarkedValue = (u32, f64, f64, f64);

/// The marked values of an event.
pub(super) fn marked_values(event: &Event) -> Vec<MarkedValue> {
    let readings = match event.marks() {
        [] => Vec::new(),
        _ => event.readings(),
    };
    let value = |mark: &Mark| {
        let found = readings
            .iter()
            .find(|(outcome, _)| *outcome == mark.outcome);
        found.map(|(outcome, it)| (*outcome, it.value, mark.low, mark.high))
    };
    event.marks().iter().filter_map(value).collect()
}

/// The record of a trial, in the user's units and sign.
#[pyclass(frozen, get_all, module = "belated._core")]
pub struct TrialRecord {
    number: usize,
    /// The point of the search space at which the trial was started.
    pub(super) place: Point,
    run: Option<Point>,
    /// Whether the trial was run beyond a bound or at a row that is not a candidate.
    outside: bool,
    context: Vec<f64>,
    state: &'static str,
    suggested: bool,
    queued: bool,
    value: Option<f64>,
    std: Option<f64>,
    cost: Option<f64>,
    duration: Option<f64>,
    fidelity: Option<f64>,
    attrs: Vec<String>,
    /// The remarks, their wall-clock times and their authors.
    remarks: Vec<(String, Option<f64>, Option<String>)>,
    /// The outcomes whose values are marked, each with the interval in which the value was expected.
    marks: Vec<(u32, f64, f64)>,
    error: Option<ErrorFacts>,
    /// The last withdrawn result.
    withdrawal: Option<WithdrawalFacts>,
    note: Option<String>,
    suggested_at: f64,
    started_at: Option<f64>,
    finished_at: Option<f64>,
    started_by: Option<String>,
    finished_by: Option<String>,
    observed_at: Option<f64>,
    ended_at: Option<f64>,
    expires_at: Option<f64>,
    /// The reported steps and their values, in the user's sign. The value of a failed step is NaN.
    curve: Vec<(u32, f64)>,
    attempt: u32,
    /// How the curve ended before its last step: "stopped", "diverged" or None.
    ended_early: Option<&'static str>,
    /// Why a revision left the trial out.
    left_out: Option<String>,
    /// The eras of `place`, `run`, `context` and `fidelity`.
    era: usize,
    era_of_run: usize,
    era_of_context: usize,
    era_of_fidelity: usize,
    /// The outcomes of the trial in the order of their declaration, if outcomes are declared.
    outcomes: Vec<OutcomeFacts>,
}

/// Returns the point in an event, or None if the event does not have a point.
#[pyfunction]
pub fn point_of(event: &str) -> PyResult<Option<Point>> {
    Ok(Event::from_json(event)?.point().cloned())
}

/// The author of an event, what it did, the outcomes with what happened to each (with the value and its noise, if there
/// are any), the step and its value, the text, and the confirmed outcomes.
type EventFacts = (
    Option<String>,
    &'static str,
    Vec<(u32, &'static str, Option<f64>, Option<f64>)>,
    Option<(u32, Option<f64>)>,
    Option<String>,
    Vec<u32>,
);

/// Returns the facts of an event, for the history of its trial.
#[pyfunction]
pub fn facts_of(event: &str) -> PyResult<EventFacts> {
    let event = Event::from_json(event)?;
    let new = |outcome: u32, it: Reading| (outcome, "new", Some(it.value), it.std);
    let (what, results, step, text, confirmed) = match event.what {
        What::Suggested(_) => ("suggested", vec![], None, None, vec![]),
        What::Added(it) => {
            let results = it.results.into_iter().map(|(i, it)| new(i, it)).collect();
            ("added", results, None, None, vec![])
        }
        What::Enqueued(_) => ("enqueued", vec![], None, None, vec![]),
        What::Reported(it) => ("reported", vec![], Some((it.step, it.value)), None, vec![]),
        What::Revised(_) => ("revised", vec![], None, None, vec![]),
        What::Noted(it) => {
            let confirmed = it.confirms.unwrap_or_default();
            ("noted", vec![], None, it.remark, confirmed)
        }
        What::Resulted(it) => {
            let happened = |(outcome, happened): (u32, Happened)| match happened {
                Happened::New(it) => new(outcome, it),
                Happened::Amended(it) => (outcome, "amended", Some(it.value), it.std),
                Happened::Failed => (outcome, "failed", None, None),
                Happened::Abandoned => (outcome, "abandoned", None, None),
                Happened::Stopped => (outcome, "stopped", None, None),
                Happened::Withdrawn { .. } => (outcome, "withdrawn", None, None),
            };
            let results = it.results.into_iter().map(happened).collect();
            let text = it
                .data
                .and_then(|it| it.reason.or(it.error.map(|error| error.message)));
            ("resulted", results, None, text, vec![])
        }
    };
    Ok((event.by, what, results, step, text, confirmed))
}

/// Returns an event without its wall-clock time.
#[pyfunction]
pub fn without_time(event: &str) -> PyResult<String> {
    let mut event = Event::from_json(event)?;
    event.at = None;
    Ok(event.to_json()?)
}

/// Returns a suggested event without the note of its strategy.
#[pyfunction]
pub fn without_note(event: &str) -> PyResult<String> {
    let mut event = Event::from_json(event)?;
    if let What::Suggested(it) = &mut event.what {
        it.note = None;
    }
    Ok(event.to_json()?)
}

/// Returns the event of a revision. The definition and the arguments are JSON.
#[pyfunction]
#[pyo3(signature = (definition, fill, map, keep, constrained, refused, time, now, by=None))]
#[allow(clippy::too_many_arguments)]
pub fn revision_event(
    definition: String,
    fill: Option<String>,
    map: Option<String>,
    keep: Option<String>,
    constrained: bool,
    refused: Vec<TrialNumber>,
    time: Option<f64>,
    now: f64,
    by: Option<String>,
) -> PyResult<String> {
    let event = Event {
        at: time,
        by,
        now,
        what: What::Revised(ledger::Revision {
            definition,
            fill,
            map,
            keep,
            constrained,
            refused,
        }),
    };
    Ok(event.to_json()?)
}

/// The texts, the flag and the refused trials of a revision.
type Revision = (
    String,
    Option<String>,
    Option<String>,
    Option<String>,
    bool,
    Vec<TrialNumber>,
);

/// Returns (definition, fill, map, keep, constrained, refused) of the event of a revision, or None for another event.
#[pyfunction]
pub fn revision_of(event: &str) -> PyResult<Option<Revision>> {
    Ok(match Event::from_json(event)?.what {
        What::Revised(it) => Some((
            it.definition,
            it.fill,
            it.map,
            it.keep,
            it.constrained,
            it.refused,
        )),
        _ => None,
    })
}

/// The state before a withdrawal, the value, the reason, and the wall-clock time of the withdrawal.
type WithdrawalFacts = (&'static str, Option<f64>, Option<String>, Option<f64>);

/// The state of an outcome, its value, the standard deviation of its noise, the time of its arrival on the clock, the
/// wall-clock time when it got its state, and its last withdrawn result.
type OutcomeFacts = (
    &'static str,
    Option<f64>,
    Option<f64>,
    Option<f64>,
    Option<f64>,
    Option<WithdrawalFacts>,
);

/// The type, message and traceback of an error.
type ErrorFacts = (String, String, Option<String>);

#[pymethods]
impl Action {
    #[staticmethod]
    fn observe(number: usize, observation: &Observation, amend: bool, replicate: bool) -> Self {
        let again = match (amend, replicate) {
            (_, true) => Again::Replicate,
            (true, false) => Again::Amend,
            (false, false) => Again::Refuse,
        };
        let core = ledger::Action::Observe {
            number,
            observation: observation.core.clone(),
            again,
        };
        Self { core }
    }

    #[staticmethod]
    #[pyo3(signature = (number, error, attrs, duration=None, outcome=None))]
    fn fail(
        number: usize,
        error: Option<ErrorFacts>,
        attrs: Option<String>,
        duration: Option<f64>,
        outcome: Option<usize>,
    ) -> Self {
        let error = error.map(|(kind, message, traceback)| Failure {
            kind,
            message,
            traceback,
        });
        let core = ledger::Action::Fail {
            number,
            outcome,
            error,
            duration,
            attrs,
        };
        Self { core }
    }

    #[staticmethod]
    #[pyo3(signature = (number, outcome=None))]
    fn abandon(number: usize, outcome: Option<usize>) -> Self {
        let core = ledger::Action::Abandon { number, outcome };
        Self { core }
    }

    #[staticmethod]
    #[pyo3(signature = (number, step, value, attempt=0))]
    fn report(number: usize, step: u32, value: f64, attempt: u32) -> Self {
        let core = ledger::Action::Report {
            number,
            step,
            value,
            attempt,
        };
        Self { core }
    }

    #[staticmethod]
    fn stop(number: usize) -> Self {
        let core = ledger::Action::Stop { number };
        Self { core }
    }

    #[staticmethod]
    #[pyo3(signature = (number, reason=None, outcome=None))]
    fn withdraw(number: usize, reason: Option<String>, outcome: Option<usize>) -> Self {
        let core = ledger::Action::Withdraw {
            number,
            outcome,
            reason,
        };
        Self { core }
    }

    /// Attributes as JSON and a remark, without a result.
    #[staticmethod]
    #[pyo3(signature = (number, attrs=None, remark=None))]
    fn note(number: usize, attrs: Option<String>, remark: Option<String>) -> Self {
        let core = ledger::Action::Note(Noted {
            trial: number,
            attrs,
            remark,
            confirms: None,
        });
        Self { core }
    }

    /// A report had no effect; the event keeps its key.
    #[staticmethod]
    fn acknowledge(number: usize) -> Self {
        let core = ledger::Action::Acknowledge { number };
        Self { core }
    }

    /// Marked values of a trial are right.
    #[staticmethod]
    #[pyo3(signature = (number, outcome=None))]
    fn confirm(number: usize, outcome: Option<usize>) -> Self {
        let core = ledger::Action::Confirm { number, outcome };
        Self { core }
    }

    /// A trial that was started elsewhere, and the outcomes that are known.
    #[staticmethod]
    #[pyo3(signature = (place, context, observation, fidelity=None, attrs=None))]
    fn add(
        place: Point,
        context: Option<Vec<f64>>,
        observation: Option<&Observation>,
        fidelity: Option<f64>,
        attrs: Option<String>,
    ) -> Self {
        let core = ledger::Action::Add {
            point: place,
            context: context.unwrap_or_default(),
            fidelity,
            observation: observation.map_or_else(Default::default, |it| it.core.clone()),
            attrs,
        };
        Self { core }
    }

    #[staticmethod]
    #[pyo3(signature = (place, fidelity=None, partial=false))]
    fn enqueue(place: Point, fidelity: Option<f64>, partial: bool) -> Self {
        let core = ledger::Action::Enqueue(Queued {
            point: place,
            partial,
            fidelity,
            attrs: None,
        });
        Self { core }
    }
}

/// The last withdrawn result of a trial in a view.
fn withdrawal(view: View, number: TrialNumber) -> Option<WithdrawalFacts> {
    let last = view.of(number).withdrawals().last()?;
    let at = view.log.time(last.by as usize);
    Some((last.outcome.name(), last.value, last.reason.clone(), at))
}

impl TrialRecord {
    pub(super) fn new(ledger: &Ledger, number: TrialNumber) -> Result<Self> {
        let view = ledger.view();
        let trial = view.trial(number)?;
        let error = trial.error().cloned();
        let objective = ledger.objective().of(number);
        let has_diverged = objective
            .failure()
            .is_some_and(|error| error.kind == DIVERGED);
        let (start, eras) = (ledger.start(number), ledger.eras(number));
        let attrs = start.attrs.into_iter();
        Ok(Self {
            number,
            place: start.point,
            run: ledger.run_point(number),
            outside: trial.is_outside() && !trial.left_out,
            context: start.context,
            state: trial.state().name(),
            suggested: trial.suggested,
            queued: trial.queued,
            value: ledger.value(number),
            std: trial.std(),
            cost: trial.cost(),
            duration: trial.duration(),
            fidelity: trial.fidelity(),
            attrs: attrs
                .chain(trial.reported_attrs().iter().cloned())
                .collect(),
            remarks: ledger.remarks(number),
            marks: ledger
                .marks(number)
                .into_iter()
                .map(|mark| (mark.outcome, mark.low, mark.high))
                .collect(),
            error: error.map(|error| (error.kind, error.message, error.traceback)),
            ended_early: match objective.state() {
                State::Stopped => Some("stopped"),
                State::Failed if has_diverged => Some("diverged"),
                _ => None,
            },
            withdrawal: withdrawal(view, number),
            outcomes: (0..ledger.problem().outcomes.len())
                .map(|outcome| {
                    let view = ledger.outcome(outcome);
                    let result = view.of(number);
                    (
                        result.state().name(),
                        result.reported_value(),
                        result.std(),
                        result.observed_at(),
                        view.finished_at(number),
                        withdrawal(view, number),
                    )
                })
                .collect(),
            note: start.note,
            suggested_at: trial.suggested_at,
            started_at: ledger.started_at(number),
            finished_at: view.finished_at(number),
            started_by: ledger.started_by(number),
            finished_by: view.finished_by(number),
            observed_at: trial.observed_at(),
            ended_at: trial.ended_at(),
            expires_at: trial.expires_at(),
            curve: ledger.reports(number),
            attempt: trial.attempt(),
            left_out: ledger.left_out(number).map(str::to_string),
            era: eras.start,
            era_of_run: eras.run,
            era_of_context: eras.context,
            era_of_fidelity: eras.fidelity,
        })
    }
}
