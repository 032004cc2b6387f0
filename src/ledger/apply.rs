//! The effects of events: on the states of trials, and as the changes that strategies read.

use std::cmp::Ordering;

use crate::error::{Error, Result};
use crate::ledger::event::{Event, Observation, Reading, TrialNumber};
use crate::ledger::trial::{AtFidelity, Details, Ranking, State, Trial};
use crate::ledger::{Ledger, Queued};
use crate::problem::{Point, Position};

/// The change of one trial by one event. Strategies read changes instead of events.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub number: TrialNumber,
    pub effect: Effect,
}

/// The effect of an event on its trial, as of that event. Later events do not alter it.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// The trial was started. A trial that was added may have a value from the start.
    Started {
        /// Whether this optimizer suggested the trial. False if the trial was added.
        suggested: bool,
        /// The note of the strategy that proposed the point.
        note: Option<String>,
        reading: Option<Reading>,
    },
    /// The trial has this value from now on, which may replace an earlier value.
    Valued {
        reading: Reading,
        /// The point where the trial was run, if it was reported with the value.
        run: Option<Point>,
    },
    Failed,
    /// The evaluation was ended early. The learning curve is still used.
    Stopped,
    /// The trial lacks a value, and its result is no longer expected.
    Dropped,
    /// The value, the failure or the curve of the trial was taken back.
    Withdrawn,
    /// The learning curve has another step.
    Reported,
}

impl Ledger {
    /// Returns the change by event number i, or None if the event does not concern a trial.
    pub(crate) fn change(&self, i: usize) -> Option<Change> {
        let event = self.event(i);
        // The number of a started trial is the number of trials before its event.
        let before = |trial: &Trial| (trial.started_by as usize) < i;
        let number = match event {
            Event::Suggested { .. } | Event::Added { .. } | Event::AddedMeasured { .. } => {
                self.trials.partition_point(before)
            }
            _ => event.trial_number(0)?,
        };
        let reading = |observed: &Observation| Reading {
            value: self.problem.direction.oriented(observed.reading.value),
            ..observed.reading
        };
        let hidden = self
            .shown_from
            .get(&number)
            .map(|from| i.cmp(&(*from as usize)));
        if hidden == Some(Ordering::Less) {
            return None;
        }
        if hidden == Some(Ordering::Equal) {
            // The report of this event has a point of the present problem. The strategy did not know the trial.
            return Some(Change {
                number,
                effect: Effect::Started {
                    suggested: false,
                    note: None,
                    reading: event.observation().map(reading),
                },
            });
        }
        let effect = match event {
            Event::Enqueued { .. } | Event::Revised { .. } => return None,
            Event::Suggested { note, .. } => Effect::Started {
                suggested: true,
                note: note.filter(|_| i >= self.notes_from),
                reading: None,
            },
            Event::Added { observation, .. } => Effect::Started {
                suggested: false,
                note: None,
                reading: observation.as_ref().map(reading),
            },
            Event::Observed { observation, .. } | Event::Amended { observation, .. } => {
                Effect::Valued {
                    reading: reading(&observation),
                    run: observation
                        .point
                        .map(|point| self.present_point(i, number, point)),
                }
            }
            Event::Failed { .. } => Effect::Failed,
            Event::Stopped { .. } => Effect::Stopped,
            Event::Abandoned { .. } => Effect::Dropped,
            Event::Withdrawn { .. } => Effect::Withdrawn,
            Event::Reported { .. } => Effect::Reported,
            // Strategies that read whole trials read only their points.
            Event::OfOutcome { .. } => match self.trials[number].is_dropped() {
                true => Effect::Withdrawn,
                false => Effect::Reported,
            },
            Event::AddedMeasured { .. } => Effect::Started {
                suggested: false,
                note: None,
                reading: None,
            },
        };
        Some(Change { number, effect })
    }

    /// Updates the state with an event. All changes of the state go through this function.
    pub(super) fn apply(&mut self, event: &Event) -> Result<()> {
        match event {
            Event::Suggested {
                point,
                context,
                fidelity,
                now,
                expires_at,
                queued,
                ..
            } => {
                let details = Details {
                    fidelity: self.at_fidelity(*fidelity),
                    expires_at: *expires_at,
                    ..Details::default()
                };
                let trial = Trial::started(*now, details);
                let (suggested, queued) = (true, *queued);
                let trial = Trial {
                    suggested,
                    queued,
                    ..trial
                };
                self.add_trial(trial, point, context)?;
                self.n_dequeued += usize::from(queued);
                self.n_suggested += 1;
            }
            Event::Added {
                point,
                context,
                fidelity,
                observation,
                now,
                ..
            } => {
                let details = Details {
                    fidelity: self.at_fidelity(*fidelity),
                    ..Details::default()
                };
                self.add_trial(Trial::started(*now, details), point, context)?;
                if let Some(observation) = observation {
                    self.observe(self.trials.len() - 1, observation, Some(*now))?;
                }
            }
            Event::Enqueued {
                point,
                given,
                fidelity,
                attrs,
                ..
            } => self.enqueued.push(Queued {
                point: point.clone(),
                given: given.clone(),
                fidelity: *fidelity,
                attrs: attrs.clone(),
            }),
            Event::Observed {
                number,
                observation,
                now,
                ..
            } => self.observe(*number, observation, Some(*now))?,
            Event::Amended {
                number,
                observation,
                ..
            } => self.observe(*number, observation, None)?,
            Event::Failed {
                number,
                now,
                error,
                duration,
                attrs,
                ..
            } => {
                self.end(*number, State::Failed, *now);
                self.trials[*number].set_report(error.as_ref(), *duration, attrs.as_ref());
            }
            Event::Abandoned { number, now, .. } => {
                self.end(*number, State::Abandoned, *now);
                self.abandoned.push(*number);
            }
            Event::Reported {
                number,
                step,
                value,
                attempt,
                at,
            } => {
                let value = value.map(|y| self.problem.direction.oriented(y));
                let started_at = self.started_at(*number);
                let trial = &mut self.trials[*number];
                trial.report(*step, value, *attempt, *at);
                if let (Some(started_at), Some(at)) = (started_at, *at) {
                    trial.renew_lease(started_at, at);
                }
            }
            Event::Stopped { number, now, .. } => self.end(*number, State::Stopped, *now),
            Event::Revised { .. } => {
                return Err(Error::Corrupt(
                    "a revision is logged together with the points of the trials".to_string(),
                ));
            }
            Event::OfOutcome { .. } | Event::AddedMeasured { .. } => {
                return Err(Error::Corrupt(
                    "an event of an outcome, and no outcomes are declared".to_string(),
                ));
            }
            Event::Withdrawn { number, reason, .. } => {
                let withdrawn_by = self.len() as u32;
                let trial = &mut self.trials[*number];
                self.n_observed -= usize::from(trial.value.is_some());
                let mut value = trial.value.take();
                if trial.left_out {
                    value = self.revised[*number].value.take();
                    value = value.map(|y| self.problem.direction.oriented(y));
                }
                trial.withdraw(value, reason.clone(), withdrawn_by);
                self.ranking.withdraw(*number, &self.trials);
                self.last_withdrawal = Some(self.len());
            }
        }
        Ok(())
    }

    fn add_trial(&mut self, trial: Trial, point: &Point, context: &[f64]) -> Result<()> {
        self.rows.extend(self.problem.encode(point)?);
        self.rows.extend(self.problem.encode_context(context));
        self.pending.insert(self.trials.len());
        // A suggested point was checked: it is in the domain.
        let position = match trial.suggested {
            true => Position::Member,
            false => self.problem.position(point),
        };
        self.trials.push(Trial {
            position,
            index: point.index().map(|index| index as u32),
            started_by: self.len() as u32,
            ..trial
        });
        Ok(())
    }

    /// Stores an observation of a trial. If `now` is given, this is the first observation of the trial. Otherwise the
    /// observation replaces an earlier observation.
    fn observe(
        &mut self,
        number: TrialNumber,
        observation: &Observation,
        now: Option<f64>,
    ) -> Result<()> {
        if let Some(point) = &observation.point {
            self.move_to_run(number, point)?;
        }
        if let Some(now) = now {
            self.end(number, State::Observed, now);
        }
        self.abandoned.clear();
        let value = observation.reading.value;
        let here = self.len() as u32;
        if !self.trials[number].left_out
            && let Some(from @ &mut u32::MAX) = self.shown_from.get_mut(&number)
        {
            // The first value of an outcome that a revision added.
            *from = here;
        }
        let trial = &mut self.trials[number];
        if trial.left_out {
            self.revised[number].value = Some(value);
        } else {
            self.n_observed += usize::from(trial.value.is_none());
            trial.value = Some(self.problem.direction.oriented(value));
        }
        trial.set_data(observation);
        self.ranking.insert(number, &self.trials);
        Ok(())
    }

    /// Moves the row of a trial to the point where the trial was run.
    pub(super) fn move_to_run(&mut self, number: TrialNumber, point: &Point) -> Result<()> {
        let x = self.problem.encode(point)?;
        if self.run_here(number) {
            let first = number * (self.widths.0 + self.widths.1);
            self.rows[first..first + self.widths.0].copy_from_slice(&x);
            let trial = &mut self.trials[number];
            trial.index = point.index().map(|index| index as u32);
            let (was_outside, position) = (trial.is_outside(), self.problem.position(point));
            trial.position = position;
            if trial.value.is_some() && trial.is_outside() && !was_outside {
                // The ranked value is no longer inside the domain.
                self.ranking = Ranking::of(&self.trials);
            }
        }
        Ok(())
    }

    /// Records that a trial was run at a point of the present problem. Returns whether strategies use the trial from the
    /// present event on.
    pub(super) fn run_here(&mut self, number: TrialNumber) -> bool {
        let (now, here) = (self.len() as u32, self.n_revisions());
        let Some(revised) = self.revised.get_mut(number) else {
            return true;
        };
        revised.problems.run = here;
        let may_return = revised.problems.context == here && revised.problems.fidelity == here;
        let trial = &mut self.trials[number];
        if !trial.left_out {
            return true;
        }
        if may_return {
            trial.left_out = false;
            self.shown_from.insert(number, now);
            self.n_chosen_left_out -= usize::from(trial.is_chosen());
            if self.pending_left_out.remove(&number) {
                self.pending.insert(number);
            }
        }
        !trial.left_out
    }

    /// The point of an event at which a trial was run, in the present problem. If the event is older than the problem, the
    /// result is the last point that was reported for the earlier problem.
    fn present_point(&self, event: usize, number: TrialNumber, point: Point) -> Point {
        let revised = self.revised.get(number).filter(|_| event < self.notes_from);
        revised.and_then(|it| it.run.clone()).unwrap_or(point)
    }

    pub(super) fn at_fidelity(&self, fidelity: Option<f64>) -> Option<AtFidelity> {
        // Adding 0 turns −0 into 0.
        let (value, z) = (fidelity? + 0.0, self.problem.z(fidelity)?);
        Some(AtFidelity { value, z })
    }

    /// Sets the state of a trial, and the time when the trial reached this state. If the trial already has this state
    /// or had this state when it was withdrawn, the earlier time is kept.
    pub(super) fn end(&mut self, number: TrialNumber, state: State, now: f64) {
        let ended_by = self.len() as u32;
        if state != State::Abandoned {
            self.abandoned.clear();
        }
        self.pending.remove(&number);
        self.pending_left_out.remove(&number);
        let trial = &mut self.trials[number];
        // A value that replaces a withdrawn value keeps the time when the first value arrived.
        if trial.outcome() != state {
            trial.ended_at = now;
            trial.ended_by = ended_by;
        }
        trial.state = state;
    }
}
