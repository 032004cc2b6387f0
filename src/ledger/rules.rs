//! What may happen: which event an action amounts to, and which events a log can have.

use crate::error::{Error, Result};
use crate::ledger::event::{Action, Event, Point, TrialNumber};
use crate::ledger::{Ledger, State};

impl Ledger {
    /// The event that an action amounts to; None where it changes nothing. Nothing is logged.
    pub fn validate(&self, action: Action, now: f64) -> Result<Option<Event>> {
        Ok(match action {
            Action::Observe {
                number,
                value,
                std,
                cost,
                amend,
            } => {
                let trial = self.trial(number)?;
                check_report(number, Some(value), std, cost)?;
                match trial.value {
                    None => Some(Event::Observed {
                        number,
                        value,
                        std,
                        cost,
                        now,
                    }),
                    Some(known)
                        if known == value
                            && (std.is_none() || std == trial.std())
                            && (cost.is_none() || cost == trial.cost()) =>
                    {
                        None
                    }
                    Some(_) if amend => Some(Event::Amended {
                        number,
                        value,
                        std,
                        cost,
                    }),
                    Some(value) => return Err(Error::AlreadyObserved { number, value }),
                }
            }
            Action::Fail { number, error } => {
                let failed = self.state_without_value(number)? == State::Failed;
                (!failed).then_some(Event::Failed { number, now, error })
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
                std,
                cost,
                attrs,
            } => {
                let std = std.filter(|_| value.is_some());
                check_report(self.trials().len(), value, std, cost)?;
                Some(Event::Added {
                    point,
                    context,
                    fidelity,
                    value,
                    std,
                    cost,
                    now,
                    attrs,
                })
            }
            Action::Enqueue {
                point,
                fidelity,
                attrs,
            } => Some(Event::Enqueued {
                point,
                fidelity,
                attrs,
            }),
        })
    }

    /// The state of a trial that has no value.
    fn state_without_value(&self, number: TrialNumber) -> Result<State> {
        let trial = self.trial(number)?;
        match trial.value {
            Some(value) => Err(Error::AlreadyObserved { number, value }),
            None => Ok(trial.state),
        }
    }

    /// Whether the event could have happened after those of the log.
    pub(super) fn allows(&self, event: &Event) -> Result<bool> {
        let has_value = |number: &TrialNumber| Ok(self.trial(*number)?.value.is_some());
        let finite = |x: &Option<f64>| x.is_none_or(f64::is_finite);
        let report =
            |std: &Option<f64>, cost: &Option<f64>| std.is_none_or(is_deviation) && finite(cost);
        Ok(match event {
            Event::Suggested {
                point,
                context,
                fidelity,
                now,
                expires_at,
                queued,
                ..
            } => {
                self.fits(point, Some(context))
                    && finite(fidelity)
                    && now.is_finite()
                    && finite(expires_at)
                    && (!queued || self.next_queued().is_some_and(|next| next.point == *point))
            }
            Event::Added {
                point,
                context,
                fidelity,
                value,
                std,
                cost,
                now,
                ..
            } => {
                self.fits(point, Some(context))
                    && finite(fidelity)
                    && now.is_finite()
                    && finite(value)
                    && report(std, cost)
                    && (value.is_some() || std.is_none())
            }
            Event::Enqueued {
                point, fidelity, ..
            } => self.fits(point, None) && finite(fidelity),
            Event::Observed {
                number,
                value,
                std,
                cost,
                now,
            } => value.is_finite() && report(std, cost) && now.is_finite() && !has_value(number)?,
            Event::Amended {
                number,
                value,
                std,
                cost,
            } => value.is_finite() && report(std, cost) && has_value(number)?,
            Event::Failed { number, now, .. } | Event::Abandoned { number, now } => {
                now.is_finite() && !has_value(number)?
            }
        })
    }

    /// Whether a point, with its context, makes a row of this log.
    fn fits(&self, point: &Point, context: Option<&Vec<f64>>) -> bool {
        let small = |index: usize| u32::try_from(index).is_ok();
        point.x.len() == self.widths().0
            && point.index.is_none_or(small)
            && context.is_none_or(|context| context.len() == self.widths().1)
    }
}

fn check_report(
    number: TrialNumber,
    value: Option<f64>,
    std: Option<f64>,
    cost: Option<f64>,
) -> Result<()> {
    if let Some(got) = value.filter(|value| !value.is_finite()) {
        return Err(Error::InvalidValue { number, got });
    }
    if let Some(got) = std.filter(|std| !is_deviation(*std)) {
        return Err(Error::InvalidDeviation { number, got });
    }
    match cost.filter(|cost| !cost.is_finite()) {
        Some(got) => Err(Error::InvalidCost { number, got }),
        None => Ok(()),
    }
}

fn is_deviation(std: f64) -> bool {
    std >= 0.0 && std.is_finite()
}
