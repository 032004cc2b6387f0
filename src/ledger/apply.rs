//! Applies events to the states of trials.

use crate::error::Result;
use crate::ledger::entry::{Entry, Fault};
use crate::ledger::event::{Event, Observation, TrialNumber};
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
                at: _,
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
                observation,
                now,
                at: _,
                attrs,
            } => {
                let details = Details {
                    fidelity: self.at_fidelity(fidelity),
                    attrs,
                    ..Details::default()
                };
                let number = self.start(&point, &context, now, false, details)?;
                let (value, full) = match observation {
                    None => (None, None),
                    Some(observation) => {
                        let (value, full) =
                            self.observe(number as usize, observation, Some(now))?;
                        (Some(value), full)
                    }
                };
                Entry::Added {
                    number,
                    value,
                    full,
                }
            }
            Event::Enqueued {
                point,
                fidelity,
                at: _,
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
                observation,
                now,
                at: _,
            } => {
                let (value, full) = self.observe(number, observation, Some(now))?;
                Entry::Observed {
                    number: number as u32,
                    value,
                    full,
                    now,
                }
            }
            Event::Amended {
                number,
                observation,
                at: _,
            } => {
                let (value, full) = self.observe(number, observation, None)?;
                Entry::Amended {
                    number: number as u32,
                    value,
                    full,
                }
            }
            Event::Failed {
                number,
                now,
                at: _,
                error,
                duration,
                attrs,
            } => {
                self.end(number, State::Failed, now);
                let fault = Fault {
                    error,
                    duration,
                    attrs,
                };
                self.trials[number].set_fault(&fault);
                Entry::Failed {
                    number: number as u32,
                    now,
                    fault: (fault != Fault::default()).then(|| Box::new(fault)),
                }
            }
            Event::Abandoned { number, now, at: _ } => {
                self.end(number, State::Abandoned, now);
                Entry::Abandoned {
                    number: number as u32,
                    now,
                }
            }
            Event::Reported {
                number,
                step,
                value,
                attempt,
                at,
            } => {
                let value = value.map(|y| self.problem.direction.oriented(y));
                let started_at = self.started_at(number);
                let trial = &mut self.trials[number];
                trial.report(step, value, attempt, at);
                if let (Some(started_at), Some(at)) = (started_at, at) {
                    trial.renew_lease(started_at, at);
                }
                Entry::Reported {
                    number: number as u32,
                    step,
                    attempt,
                    value,
                }
            }
            Event::Stopped { number, now, at: _ } => {
                self.end(number, State::Stopped, now);
                Entry::Stopped {
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
            ended_at: now,
            started_by: self.entries.len() as u32,
            ended_by: 0,
            details: details.boxed(),
        });
        self.pending.insert(number);
        Ok(number as u32)
    }

    /// Stores an observation of a trial. If `now` is given, this is the first observation of the trial. Otherwise the
    /// observation replaces an earlier observation. Returns the value in the form that strategies read. Also returns
    /// the observation if the observation contains more than the value.
    fn observe(
        &mut self,
        number: TrialNumber,
        observation: Observation,
        now: Option<f64>,
    ) -> Result<(f64, Option<Box<Observation>>)> {
        if let Some(point) = &observation.point {
            self.set_run_point(number, point)?;
        }
        if let Some(now) = now {
            self.end(number, State::Observed, now);
            self.n_observed += 1;
        }
        let value = self.problem.direction.oriented(observation.value);
        let trial = &mut self.trials[number];
        trial.value = Some(value);
        trial.set_data(&observation);
        self.ranking.insert(number, &self.trials);
        let full = (!observation.is_plain()).then(|| Box::new(observation));
        Ok((value, full))
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

    /// Sets the state of a trial, and the time when the trial reached this state. If the trial already has this state,
    /// the earlier time is kept.
    fn end(&mut self, number: TrialNumber, state: State, now: f64) {
        self.pending.remove(&number);
        let trial = &mut self.trials[number];
        if trial.state != state {
            trial.state = state;
            trial.ended_at = now;
            trial.ended_by = self.entries.len() as u32;
        }
    }
}

/// The numbers of a point of a space. The number of an inactive parameter is NaN, and −0 becomes 0. The iterator is
/// empty for a candidate.
fn numbers_of(point: &Point) -> impl Iterator<Item = f64> {
    let numbers = match point {
        Point::Numbers(numbers) => numbers.as_slice(),
        Point::Candidate(_) => &[],
    };
    numbers
        .iter()
        .map(|number| number.unwrap_or(f64::NAN) + 0.0)
}
