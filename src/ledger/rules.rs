//! The rules of the log. They give the event of an action, and decide whether an event is valid.

use crate::error::{Error, Result};
use crate::ledger::event::{Action, Again, Event, Report, TrialNumber};
use crate::ledger::{Ledger, Queued, State, json};
use crate::problem::Point;

impl Ledger {
    /// Returns the event of an action, or None if the action would have no effect. The log is not changed.
    pub(crate) fn validate(&self, action: Action, now: f64) -> Result<Option<Event>> {
        Ok(match action {
            Action::Observe {
                number,
                value,
                report,
                again,
            } => {
                let trial = self.trial(number)?;
                check_report(number, Some(value), &report)?;
                match (self.value(number), again) {
                    (None, _) => Some(report.observed(number, value, now)),
                    (Some(_), Again::Replicate) => Some(report.added(
                        self.point(number),
                        self.context_numbers(number).to_vec(),
                        trial.fidelity(),
                        Some(value),
                        now,
                    )),
                    (Some(known), _) if known == value && self.repeats(number, &report) => None,
                    (Some(_), Again::Amend) => Some(report.amended(number, value)),
                    (Some(value), Again::Refuse) => {
                        return Err(Error::AlreadyObserved { number, value });
                    }
                }
            }
            Action::Fail {
                number,
                error,
                attrs,
            } => {
                let failed = self.state_without_value(number)? == State::Failed;
                check_attrs(attrs.as_deref())?;
                // The error may be reported later than the failure.
                let news = !failed || (error.is_some() && self.trial(number)?.error().is_none());
                news.then_some(Event::Failed {
                    number,
                    now,
                    error,
                    attrs,
                })
            }
            Action::Abandon { number } => {
                let abandoned = self.state_without_value(number)? == State::Abandoned;
                (!abandoned).then_some(Event::Abandoned { number, now })
            }
            Action::Add {
                point,
                context,
                fidelity,
                value,
                report,
            } => {
                // Without a value, only the attributes of the report are kept.
                let report = match value {
                    Some(_) => Report {
                        point: None,
                        ..report
                    },
                    None => Report {
                        attrs: report.attrs,
                        ..Report::default()
                    },
                };
                check_report(self.trials().len(), value, &report)?;
                Some(report.added(point, context, fidelity, value, now))
            }
            Action::Enqueue {
                point,
                fidelity,
                attrs,
            } => {
                check_attrs(attrs.as_deref())?;
                Some(Event::Enqueued {
                    point,
                    fidelity,
                    attrs,
                })
            }
        })
    }

    /// Whether the data of a report of the same value are already stored in the trial. Attributes are not compared.
    fn repeats(&self, number: TrialNumber, report: &Report) -> bool {
        let trial = &self.trials()[number];
        let Report {
            std,
            cost,
            duration,
            point,
            attrs: _,
        } = report;
        let same = |reported: &Option<f64>, known| reported.is_none() || *reported == known;
        same(std, trial.std())
            && same(cost, trial.cost())
            && same(duration, trial.duration())
            && point
                .as_ref()
                .is_none_or(|point| *point == self.point(number))
    }

    /// The state of a trial without a value. A trial with a value is an error.
    fn state_without_value(&self, number: TrialNumber) -> Result<State> {
        let trial = self.trial(number)?;
        match self.value(number) {
            Some(value) => Err(Error::AlreadyObserved { number, value }),
            None => Ok(trial.state),
        }
    }

    /// Whether the event is valid after the events of the log.
    pub(super) fn allows(&self, event: &Event) -> Result<bool> {
        let has_value = |number: &TrialNumber| Ok(self.trial(*number)?.value.is_some());
        let finite = |x: &Option<f64>| x.is_none_or(f64::is_finite);
        let share = |v: &Option<f64>| self.problem.check_fidelity(*v).is_ok();
        let report = |std: &Option<f64>, cost: &Option<f64>, duration: &Option<f64>| {
            [std, cost, duration].into_iter().flatten().all(is_amount)
        };
        let data = |attrs: &Option<String>| attrs.as_deref().is_none_or(json::is_object);
        let run = |point: &Option<Point>| point.as_ref().is_none_or(|p| self.fits(p, None));
        Ok(match event {
            Event::Suggested {
                point,
                context,
                fidelity,
                now,
                expires_at,
                queued,
                note,
                attrs,
            } => {
                // An enqueued point lacks a note, because it was not proposed by a strategy.
                let is_next = |next: &Queued| {
                    let same = next.fidelity.is_none() || next.fidelity == *fidelity;
                    next.point == *point && same && note.is_none()
                };
                self.fits(point, Some(context))
                    && share(fidelity)
                    && now.is_finite()
                    && finite(expires_at)
                    && data(attrs)
                    && (!queued || self.next_queued().is_some_and(is_next))
            }
            Event::Added {
                point,
                context,
                fidelity,
                value,
                std,
                cost,
                duration,
                now,
                attrs,
            } => {
                self.fits(point, Some(context))
                    && share(fidelity)
                    && now.is_finite()
                    && finite(value)
                    && report(std, cost, duration)
                    && data(attrs)
                    && (value.is_some() || (std, cost, duration) == (&None, &None, &None))
            }
            Event::Enqueued {
                point,
                fidelity,
                attrs,
            } => self.fits(point, None) && share(fidelity) && data(attrs),
            Event::Observed {
                number,
                value,
                std,
                cost,
                duration,
                point,
                attrs,
                now,
            } => {
                value.is_finite()
                    && report(std, cost, duration)
                    && run(point)
                    && data(attrs)
                    && now.is_finite()
                    && !has_value(number)?
            }
            Event::Amended {
                number,
                value,
                std,
                cost,
                duration,
                point,
                attrs,
            } => {
                value.is_finite()
                    && report(std, cost, duration)
                    && run(point)
                    && data(attrs)
                    && has_value(number)?
            }
            Event::Failed {
                number, now, attrs, ..
            } => now.is_finite() && data(attrs) && !has_value(number)?,
            Event::Abandoned { number, now } => now.is_finite() && !has_value(number)?,
        })
    }

    /// Whether a point and its context belong to the problem of this log.
    fn fits(&self, point: &Point, context: Option<&Vec<f64>>) -> bool {
        let small = |index: usize| u32::try_from(index).is_ok();
        self.problem.check_point(point).is_ok()
            && point.index().is_none_or(small)
            && context.is_none_or(|context| self.problem.check_context(context).is_ok())
    }
}

impl Report {
    fn observed(self, number: TrialNumber, value: f64, now: f64) -> Event {
        Event::Observed {
            number,
            value,
            std: self.std,
            cost: self.cost,
            duration: self.duration,
            point: self.point,
            attrs: self.attrs,
            now,
        }
    }

    fn amended(self, number: TrialNumber, value: f64) -> Event {
        Event::Amended {
            number,
            value,
            std: self.std,
            cost: self.cost,
            duration: self.duration,
            point: self.point,
            attrs: self.attrs,
        }
    }

    /// Returns the event of a new trial. Its point is the point of the report if the report has a point, else `point`.
    fn added(
        self,
        point: Point,
        context: Vec<f64>,
        fidelity: Option<f64>,
        value: Option<f64>,
        now: f64,
    ) -> Event {
        Event::Added {
            point: self.point.unwrap_or(point),
            context,
            fidelity,
            value,
            std: self.std,
            cost: self.cost,
            duration: self.duration,
            now,
            attrs: self.attrs,
        }
    }
}

fn check_report(number: TrialNumber, value: Option<f64>, report: &Report) -> Result<()> {
    if let Some(got) = value.filter(|value| !value.is_finite()) {
        return Err(Error::InvalidValue { number, got });
    }
    let wrong = |amount: &Option<f64>| amount.filter(|amount| !is_amount(amount));
    if let Some(got) = wrong(&report.std) {
        return Err(Error::InvalidDeviation { number, got });
    }
    if let Some(got) = wrong(&report.cost) {
        return Err(Error::InvalidCost { number, got });
    }
    if let Some(got) = wrong(&report.duration) {
        return Err(Error::InvalidDuration { number, got });
    }
    check_attrs(report.attrs.as_deref())
}

fn check_attrs(attrs: Option<&str>) -> Result<()> {
    match attrs.filter(|attrs| !json::is_object(attrs)) {
        Some(attrs) => Err(Error::InvalidAttrs(attrs.chars().take(100).collect())),
        None => Ok(()),
    }
}

/// Whether a standard deviation, a cost or a duration is valid.
fn is_amount(amount: &f64) -> bool {
    *amount >= 0.0 && amount.is_finite()
}
