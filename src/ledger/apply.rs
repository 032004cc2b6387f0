//! Updates of the states of trials by events.

use crate::error::Result;
use crate::ledger::entry::{Entry, Fault};
use crate::ledger::event::{Event, Report, TrialNumber};
use crate::ledger::trial::{AtFidelity, Details, State, Trial};
use crate::ledger::{Ledger, Queued};
use crate::problem::Point;

impl Ledger {
    /// Updates the state with an event. All changes of the state go through this function.
    pub(super) fn apply(&mut self, event: Event) -> Result<Entry> {
        let entry = match event {
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
                let details = Details {
                    fidelity: self.at_fidelity(fidelity),
                    expires_at,
                    note,
                    attrs,
                    ..Details::default()
                };
                let number = self.start(&point, &context, now, true, details)?;
                self.n_dequeued += usize::from(queued);
                self.n_suggested += 1;
                Entry::Suggested { number, queued }
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
                let details = Details {
                    fidelity: self.at_fidelity(fidelity),
                    attrs,
                    ..Details::default()
                };
                let number = self.start(&point, &context, now, false, details)?;
                let value = value.map(|value| self.problem.direction.oriented(value));
                let report = Report {
                    std,
                    cost,
                    duration,
                    ..Report::default()
                };
                if let Some(value) = value {
                    self.set_value(number as usize, value, &report, Some(now))?;
                }
                Entry::Added {
                    number,
                    value,
                    report: report.boxed(),
                }
            }
            Event::Enqueued {
                point,
                fidelity,
                attrs,
            } => {
                self.enqueued.push(Queued {
                    point,
                    fidelity,
                    attrs,
                });
                Entry::Enqueued {
                    position: self.enqueued.len() as u32 - 1,
                }
            }
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
                let report = Report {
                    std,
                    cost,
                    duration,
                    point,
                    attrs,
                };
                let value = self.problem.direction.oriented(value);
                self.set_value(number, value, &report, Some(now))?;
                Entry::Observed {
                    number: number as u32,
                    value,
                    report: report.boxed(),
                    now,
                }
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
                let report = Report {
                    std,
                    cost,
                    duration,
                    point,
                    attrs,
                };
                let value = self.problem.direction.oriented(value);
                self.set_value(number, value, &report, None)?;
                Entry::Amended {
                    number: number as u32,
                    value,
                    report: report.boxed(),
                }
            }
            Event::Failed {
                number,
                now,
                error,
                attrs,
            } => {
                self.end(number, State::Failed, now);
                let fault = Fault { error, attrs };
                self.trials[number].set_fault(&fault);
                Entry::Failed {
                    number: number as u32,
                    now,
                    fault: (fault != Fault::default()).then(|| Box::new(fault)),
                }
            }
            Event::Abandoned { number, now } => {
                self.end(number, State::Abandoned, now);
                Entry::Abandoned {
                    number: number as u32,
                    now,
                }
            }
        };
        Ok(entry)
    }

    fn start(
        &mut self,
        point: &Point,
        context: &[f64],
        now: f64,
        suggested: bool,
        details: Details,
    ) -> Result<u32> {
        let number = self.trials.len();
        self.rows.extend(self.problem.encode(point)?);
        self.rows.extend(self.problem.encode_context(context));
        self.numbers.extend(numbers_of(point));
        self.numbers
            .extend(context.iter().map(|number| number + 0.0));
        self.trials.push(Trial {
            state: State::Pending,
            suggested,
            index: point.index().map(|index| index as u32),
            value: None,
            suggested_at: now,
            ended_at: None,
            details: details.boxed(),
        });
        self.pending.insert(number);
        Ok(number as u32)
    }

    /// Sets the value of a trial. It is the first value of the trial if `now` is given. Otherwise it replaces an
    /// earlier value.
    fn set_value(
        &mut self,
        number: TrialNumber,
        value: f64,
        report: &Report,
        now: Option<f64>,
    ) -> Result<()> {
        if let Some(point) = &report.point {
            self.set_run_point(number, point)?;
        }
        if let Some(now) = now {
            self.end(number, State::Observed, now);
            self.n_observed += 1;
        }
        self.trials[number].value = Some(value);
        self.trials[number].set_report(report);
        self.ranking.insert(number, &self.trials);
        Ok(())
    }

    /// Sets the point where a trial was run.
    fn set_run_point(&mut self, number: TrialNumber, point: &Point) -> Result<()> {
        let x = self.problem.encode(point)?;
        let started = self.started_point(number);
        let first = number * (self.widths.0 + self.widths.1);
        self.rows[first..first + self.widths.0].copy_from_slice(&x);
        let first = number * (self.n_numbers.0 + self.n_numbers.1);
        for (old, new) in self.numbers[first..].iter_mut().zip(numbers_of(point)) {
            *old = new;
        }
        let trial = &mut self.trials[number];
        trial.index = point.index().map(|index| index as u32);
        trial.reported_mut().started = Some(started);
        Ok(())
    }

    fn at_fidelity(&self, fidelity: Option<f64>) -> Option<AtFidelity> {
        // Adding 0 turns −0 into 0.
        let (value, z) = (fidelity? + 0.0, self.problem.z(fidelity)?);
        Some(AtFidelity { value, z })
    }

    /// Sets the state of a trial and its end time. If the same state is reported again, the earlier time is kept.
    fn end(&mut self, number: TrialNumber, state: State, now: f64) {
        self.pending.remove(&number);
        let trial = &mut self.trials[number];
        if trial.state != state {
            trial.state = state;
            trial.ended_at = Some(now);
        }
    }
}

/// The numbers of a point of a space, with NaN for inactive parameters and 0 for −0. The iterator is empty for a
/// candidate.
fn numbers_of(point: &Point) -> impl Iterator<Item = f64> {
    let numbers = match point {
        Point::Numbers(numbers) => numbers.as_slice(),
        Point::Candidate(_) => &[],
    };
    numbers
        .iter()
        .map(|number| number.unwrap_or(f64::NAN) + 0.0)
}
