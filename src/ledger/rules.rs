//! The rules of the log: which event an action causes, and which events are valid.

use std::fmt::{Debug, Display};

use crate::error::{Error, Result, refuse};
use crate::ledger::event::{Action, Again, Event, Observation, Reading, TrialNumber};
use crate::ledger::{Ledger, Queued, State, json};
use crate::problem::Point;

impl Ledger {
    /// Returns the event of an action, or None if the action would have no effect. The log is not changed. `now` is the
    /// time on the optimizer's clock, and `at` is the wall-clock time. Outcomes must not be declared.
    pub(crate) fn validate(
        &self,
        action: Action,
        now: f64,
        at: Option<f64>,
    ) -> Result<Option<Event>> {
        Ok(match action {
            Action::Observe {
                number,
                observation,
                again,
            } => {
                self.trial(number)?;
                self.check_observation(number, &observation)?;
                match (self.value(number), again) {
                    (None, Again::Refuse) if self.repeats_withdrawn(number, &observation) => None,
                    (None, _) => Some(Event::Observed {
                        number,
                        observation,
                        now,
                        at,
                    }),
                    (Some(_), Again::Replicate) => {
                        let mut observation = observation;
                        let run = observation.point.take();
                        let (point, context, fidelity) = self.replicated(number, run)?;
                        Some(Event::Added {
                            point,
                            context,
                            fidelity,
                            observation: Some(observation),
                            now,
                            at,
                            attrs: None,
                        })
                    }
                    (Some(_), _) if self.repeats(number, &observation) => None,
                    (Some(_), Again::Amend) => Some(Event::Amended {
                        number,
                        observation,
                        at,
                    }),
                    (Some(value), Again::Refuse) => {
                        return Err(Error::AlreadyObserved { number, value });
                    }
                }
            }
            Action::Fail {
                number,
                error,
                duration,
                attrs,
            } => {
                let state = self.state_without_value(number)?;
                check_amount("duration", duration, format_args!("trial {number}"))?;
                check_attrs(attrs.as_deref())?;
                // The error and the duration may be reported later than the failure.
                let trial = self.trial(number)?;
                let news = state != State::Failed
                    || (error.is_some() && trial.error().is_none())
                    || (duration.is_some() && trial.duration().is_none());
                // A repeated report of a withdrawn failure has no effect.
                let repeated = trial.withdrawals().iter().any(|withdrawn| {
                    withdrawn.outcome == State::Failed
                        && (error.is_none() || error.as_ref() == trial.error())
                });
                let news = news && !(state == State::Withdrawn && repeated);
                news.then_some(Event::Failed {
                    number,
                    now,
                    at,
                    error,
                    duration,
                    attrs,
                })
            }
            Action::Abandon { number } => {
                self.state_without_value(number)?;
                let left_out = self.trial(number)?.is_dropped();
                (!left_out).then_some(Event::Abandoned { number, now, at })
            }
            Action::Report {
                number,
                step,
                value,
                attempt,
            } => {
                let trial = self.trial(number)?;
                self.check_report(number, step, value)?;
                let value = (!value.is_nan()).then_some(value);
                let known = self.reported(number, step);
                if attempt < trial.attempt() {
                    // The report belongs to an attempt that a later attempt has replaced.
                    None
                } else if attempt == trial.attempt()
                    && let Some(known) = known
                {
                    if known == value {
                        return Ok(None);
                    }
                    return Err(Error::AlreadyReported {
                        number,
                        step,
                        value: known.unwrap_or(f64::NAN),
                    });
                } else {
                    Some(Event::Reported {
                        number,
                        step,
                        value,
                        attempt,
                        at,
                    })
                }
            }
            Action::Stop { number } => {
                self.state_without_value(number)?;
                let stopped = self.trial(number)?.outcome() == State::Stopped;
                (!stopped).then_some(Event::Stopped { number, now, at })
            }
            Action::Withdraw { number, reason } => {
                let state = self.trial(number)?.state;
                if !Self::can_be_withdrawn(state) {
                    return Err(Error::NotWithdrawable {
                        number,
                        state: state.name(),
                    });
                }
                Some(Event::Withdrawn {
                    number,
                    reason,
                    now,
                    at,
                })
            }
            Action::Add {
                point,
                context,
                fidelity,
                mut observation,
                attrs,
            } => {
                self.problem.check_measured(&point)?;
                self.problem.check_context(&context)?;
                self.problem.check_fidelity(fidelity)?;
                if let Some(observation) = &observation {
                    self.check_observation(self.trials().len(), observation)?;
                }
                check_attrs(attrs.as_deref())?;
                // An added trial has a single point, the point where the trial was run.
                let run = observation
                    .as_mut()
                    .and_then(|observed| observed.point.take());
                Some(Event::Added {
                    point: run.unwrap_or(point),
                    context,
                    fidelity,
                    observation,
                    now,
                    at,
                    attrs,
                })
            }
            Action::Enqueue {
                point,
                given,
                fidelity,
                attrs,
            } => {
                self.problem.check_point(&point)?;
                check_given(&point, given.as_deref())?;
                self.problem.check_fidelity(fidelity)?;
                check_attrs(attrs.as_deref())?;
                Some(Event::Enqueued {
                    point,
                    given,
                    fidelity,
                    at,
                    attrs,
                })
            }
            Action::ObserveOutcomes { .. }
            | Action::OfOutcome { .. }
            | Action::AddOutcomes { .. } => {
                return Err(refuse(
                    "outcome",
                    "the name of an outcome",
                    "no outcomes are declared: report a number, or declare outcomes=",
                ));
            }
        })
    }

    /// Whether the value and data of an observation are already stored in the trial. Attributes are not compared.
    fn repeats(&self, number: TrialNumber, observation: &Observation) -> bool {
        let trial = &self.trials()[number];
        let same = |reported: &Option<f64>, known| reported.is_none() || *reported == known;
        let run = observation.point.as_ref();
        self.value(number) == Some(observation.reading.value)
            && same(&observation.reading.std, trial.std())
            && same(&observation.cost, trial.cost())
            && same(&observation.duration, trial.duration())
            && run.is_none_or(|point| self.was_run_at(number, point))
    }

    /// Whether an observation repeats a withdrawn value of a withdrawn trial. A repeated report must not restore a value
    /// that was taken back.
    pub(super) fn repeats_withdrawn(&self, number: TrialNumber, observation: &Observation) -> bool {
        let trial = &self.trials()[number];
        let value = self.problem.direction.oriented(observation.reading.value);
        let mut withdrawn = trial.withdrawals().iter();
        trial.state == State::Withdrawn && withdrawn.any(|it| it.value == Some(value))
    }

    /// Whether a trial in this state has a result that can be taken back.
    pub(super) fn can_be_withdrawn(state: State) -> bool {
        matches!(state, State::Observed | State::Failed | State::Stopped)
    }

    /// Returns the state of a trial that does not have a value. Returns an error if the trial has a value.
    fn state_without_value(&self, number: TrialNumber) -> Result<State> {
        let trial = self.trial(number)?;
        match self.value(number) {
            Some(value) => Err(Error::AlreadyObserved { number, value }),
            None => Ok(trial.state),
        }
    }

    /// Refuses an event that is not valid after the events of the log. `allows` decides whether an event with a valid
    /// point, context and fidelity may follow.
    pub(super) fn check_event(
        &self,
        event: &Event,
        allows: impl Fn(&Self, &Event) -> Result<bool>,
    ) -> Result<()> {
        match (event, event.point()) {
            (_, None) => {}
            (Event::Suggested { .. } | Event::Enqueued { .. }, Some(point)) => {
                self.problem.check_point(point)?;
            }
            (_, Some(point)) => self.problem.check_measured(point)?,
        }
        if let Some(context) = event.context() {
            self.problem.check_context(context)?;
        }
        self.problem.check_fidelity(event.fidelity())?;
        let finite = |time: Option<f64>| time.is_none_or(f64::is_finite);
        let allowed = allows(self, event)?;
        if finite(event.at()) && allowed {
            return Ok(());
        }
        Err(Error::Corrupt(format!(
            "event {} of the log could not have happened: {event:?}",
            self.len()
        )))
    }

    /// Whether an event may follow the events of the log. The points, contexts and fidelities of the event must already
    /// be valid.
    pub(super) fn allows(&self, event: &Event) -> Result<bool> {
        let has_value =
            |number: &TrialNumber| self.trial(*number).map(|_| self.value(*number).is_some());
        let data = |attrs: &Option<String>| check_attrs(attrs.as_deref()).is_ok();
        let valid =
            |number, observed: &Observation| self.check_observation(number, observed).is_ok();
        Ok(match event {
            Event::Suggested {
                point,
                fidelity,
                now,
                expires_at,
                queued,
                note,
                attrs,
                ..
            } => {
                // A suggestion of an enqueued point does not have a note, unless a strategy completed the point.
                let is_next = |next: &Queued| {
                    let same = next.fidelity.is_none() || next.fidelity == *fidelity;
                    let completes = match (&next.given, &next.point, point) {
                        (Some(given), Point::Numbers(next), Point::Numbers(numbers)) => {
                            given.iter().all(|&k| next[k] == numbers[k])
                        }
                        _ => next.point == *point && note.is_none(),
                    };
                    completes && same
                };
                now.is_finite()
                    && expires_at.is_none_or(f64::is_finite)
                    && data(attrs)
                    && (!queued || self.next_queued().is_some_and(is_next))
            }
            Event::Added {
                observation,
                now,
                attrs,
                ..
            } => {
                let fits = |observed: &Observation| valid(self.trials().len(), observed);
                let observation = observation.as_ref();
                now.is_finite()
                    && observation.is_none_or(|observed| fits(observed) && observed.point.is_none())
                    && data(attrs)
            }
            Event::Enqueued {
                point,
                given,
                attrs,
                ..
            } => data(attrs) && check_given(point, given.as_deref()).is_ok(),
            Event::Observed {
                number,
                observation,
                now,
                ..
            } => valid(*number, observation) && now.is_finite() && !has_value(number)?,
            Event::Amended {
                number,
                observation,
                ..
            } => valid(*number, observation) && has_value(number)?,
            Event::Failed {
                number,
                now,
                duration,
                attrs,
                ..
            } => {
                now.is_finite()
                    && check_amount("duration", *duration, number).is_ok()
                    && data(attrs)
                    && !has_value(number)?
            }
            Event::Abandoned { number, now, .. } | Event::Stopped { number, now, .. } => {
                now.is_finite() && !has_value(number)?
            }
            Event::Withdrawn { number, now, .. } => {
                now.is_finite() && Self::can_be_withdrawn(self.trial(*number)?.state)
            }
            Event::Reported {
                number,
                step,
                value,
                attempt,
                ..
            } => {
                self.check_report(*number, *step, value.unwrap_or(f64::NAN))
                    .is_ok()
                    && *attempt >= self.trial(*number)?.attempt()
            }
            // `Ledger::revise` logs revisions.
            Event::Revised { .. } => false,
            Event::OfOutcome { .. } | Event::AddedMeasured { .. } => false,
        })
    }

    /// The report of the current attempt at a step, in the user's sign. The value of a failed step is None.
    fn reported(&self, number: TrialNumber, step: u32) -> Option<Option<f64>> {
        let curve = self.trials()[number].curve();
        let i = curve.binary_search_by_key(&step, |report| report.0).ok()?;
        Some(curve[i].1.map(|y| self.problem.direction.oriented(y)))
    }

    /// Refuses a report without a declared curve, at a step outside the curve, or with an infinite value.
    fn check_report(&self, number: TrialNumber, step: u32, value: f64) -> Result<()> {
        let Some(curve) = self.problem.curve else {
            return Err(Error::NoCurve { number });
        };
        if step < 1 || step > curve.steps {
            let what = format_args!("trial {number}");
            let expected = format!("an integer from 1 to {}", curve.steps);
            return Err(unusable("step", step, what, expected));
        }
        let what = format_args!("step {step} of trial {number}");
        let expected = "a finite number, or NaN for a step that failed";
        match value.is_infinite() {
            true => Err(unusable("value", value, what, expected)),
            false => Ok(()),
        }
    }

    /// Refuses an observation whose numbers, point or attributes are invalid.
    pub(super) fn check_observation(
        &self,
        number: TrialNumber,
        observation: &Observation,
    ) -> Result<()> {
        observation.check_numbers(format_args!("trial {number}"))?;
        if let Some(point) = &observation.point {
            self.problem.check_measured(point)?;
        }
        check_attrs(observation.attrs.as_deref())
    }
}

impl Observation {
    /// Refuses a value, standard deviation, cost or duration outside its range. `what` is the trial or the point to
    /// which the observation belongs, for messages.
    pub(crate) fn check_numbers(&self, what: impl Display + Copy) -> Result<()> {
        let Reading { value, std } = self.reading;
        if !value.is_finite() {
            let expected = "a finite number, or report a crash with fail";
            return Err(unusable("value", value, what, expected));
        }
        check_amount("std", std, what)?;
        check_amount("cost", self.cost, what)?;
        check_amount("duration", self.duration, what)
    }
}

fn check_amount(name: &'static str, amount: Option<f64>, what: impl Display) -> Result<()> {
    match amount.filter(|x| !(*x >= 0.0 && x.is_finite())) {
        Some(got) => Err(unusable(
            name,
            got,
            what,
            "a finite number >= 0, or leave it out",
        )),
        None => Ok(()),
    }
}

/// The error for a reported number outside its range.
fn unusable(
    name: &'static str,
    got: impl Debug,
    what: impl Display,
    expected: impl ToString,
) -> Error {
    Error::InvalidValue {
        name,
        got: format!("{got:?}"),
        what: what.to_string(),
        expected: expected.to_string(),
    }
}

/// Refuses positions of parameters that do not have a number in an enqueued point.
fn check_given(point: &Point, given: Option<&[usize]>) -> Result<()> {
    let Some(given) = given else {
        return Ok(());
    };
    let has_number = |k: &usize| match point {
        Point::Numbers(numbers) => numbers.get(*k).is_some_and(Option::is_some),
        Point::Candidate(_) => false,
    };
    match given.iter().all(has_number) {
        true => Ok(()),
        false => Err(Error::InvalidPoint(format!(
            "given={given:?} does not name numbers of the enqueued point; give the positions of parameters with numbers"
        ))),
    }
}

fn check_attrs(attrs: Option<&str>) -> Result<()> {
    match attrs.filter(|attrs| !json::is_object(attrs)) {
        Some(attrs) => Err(Error::InvalidAttrs(attrs.chars().take(100).collect())),
        None => Ok(()),
    }
}
