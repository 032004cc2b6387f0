//! The effects of events on trials and their results.

use crate::error::{Error, Result};
use crate::ledger::Ledger;
use crate::ledger::event::{Data, Event, Happened, TrialNumber, What};
use crate::ledger::results::{Entry, OfSuccess, Withdrawal};
use crate::ledger::trial::{AtFidelity, Details, State, Trial};
use crate::problem::{Goal, Point, Position};

impl Ledger {
    /// Updates the state with an event. All changes of the state go through this function.
    pub(super) fn apply(&mut self, event: &Event) -> Result<()> {
        let now = event.now;
        match &event.what {
            What::Suggested(it) => {
                self.n_dequeued += usize::from(it.queued);
                self.n_suggested += 1;
                let fidelity = self.at_fidelity(it.fidelity);
                let trial = Trial {
                    suggested: true,
                    queued: it.queued,
                    ..self.started(now, fidelity, it.expires_at)
                };
                self.add_trial(trial, &it.point, &it.context)
            }
            What::Added(it) => {
                let number = self.trials.len();
                let fidelity = self.at_fidelity(it.fidelity);
                let trial = self.started(now, fidelity, None);
                self.add_trial(trial, &it.point, &it.context)?;
                let known = it.results.iter();
                let mut results: Vec<(u32, Happened)> = known
                    .map(|&(outcome, reading)| (outcome, Happened::New(reading)))
                    .collect();
                if !it.awaited {
                    let is_known = |i: &u32| it.results.iter().any(|(outcome, _)| outcome == i);
                    let others = (0..self.n_outcomes() as u32).filter(|i| !is_known(i));
                    results.extend(others.map(|outcome| (outcome, Happened::Abandoned)));
                }
                match results.is_empty() {
                    true => Ok(()),
                    false => self.result(number, &results, it.data()),
                }
            }
            What::Enqueued(queued) => {
                self.enqueued.push(queued.clone());
                Ok(())
            }
            What::Reported(it) => {
                let started_at = self.started_at(it.trial);
                let trial = &mut self.trials[it.trial];
                trial.report(it.step, it.value, it.attempt, event.at);
                if let (Some(started_at), Some(at)) = (started_at, event.at) {
                    trial.renew_lease(started_at, at);
                }
                Ok(())
            }
            What::Resulted(it) => self.result(it.trial, &it.results, it.data()),
            What::Noted(it) => {
                let event = self.len() as u32;
                let reported = self.trials[it.trial].reported_mut();
                reported.attrs.extend(it.attrs.clone());
                let remark = it.remark.iter().map(|text| (event, text.clone()));
                reported.remarks.extend(remark);
                for outcome in it.confirms.iter().flatten() {
                    self.results.set_mark(it.trial, *outcome as usize, None);
                }
                Ok(())
            }
            What::Revised(_) => Err(Error::Corrupt(
                "a revision is logged together with the points of the trials".to_string(),
            )),
        }
    }

    /// A trial that starts now.
    fn started(&self, now: f64, fidelity: Option<AtFidelity>, expires_at: Option<f64>) -> Trial {
        let details = Details {
            fidelity,
            expires_at,
            ..Details::default()
        };
        Trial {
            suggested: false,
            queued: false,
            left_out: false,
            position: Position::Member,
            index: None,
            suggested_at: now,
            started_by: self.len() as u32,
            details: (details != Details::default()).then(|| Box::new(details)),
        }
    }

    fn add_trial(&mut self, trial: Trial, point: &Point, context: &[f64]) -> Result<()> {
        self.rows.extend(self.problem.encode(point)?);
        self.rows.extend(self.problem.encode_context(context));
        // A suggested point was checked: it is in the domain.
        let position = match trial.suggested {
            true => Position::Member,
            false => self.problem.position(point),
        };
        self.pending.insert(self.trials.len());
        self.results.start(trial.started_by);
        self.trials.push(Trial {
            position,
            index: point.index().map(|index| index as u32),
            ..trial
        });
        Ok(())
    }

    /// Stores the results and the data of a report.
    fn result(
        &mut self,
        number: TrialNumber,
        results: &[(u32, Happened)],
        data: &Data,
    ) -> Result<()> {
        let value_before = self.value(number);
        let state_before = self.entry(number, self.trial_column()).state();
        self.trials[number].set_data(data);
        if let Some(point) = &data.point {
            self.move_to_run(number, point)?;
        }
        let (outcomes, _) = self.split_trial(results);
        for (outcome, happened) in outcomes {
            self.change(*outcome as usize, number, *happened, data);
        }
        let is_withdrawn = results
            .iter()
            .any(|(_, it)| matches!(it, Happened::Withdrawn { .. }));
        if is_withdrawn {
            self.last_withdrawal = Some(self.len());
        }
        if self.has_outcomes() {
            let withdrawn = value_before.filter(|_| is_withdrawn);
            self.settle(number, withdrawn, data.reason.as_ref());
            let column = self.trial_column();
            let state = self.entry(number, column).state();
            let is_news = results
                .iter()
                .any(|(_, it)| !matches!(it, Happened::Abandoned | Happened::Withdrawn { .. }));
            let abandoned = &mut self.columns[column].abandoned;
            if is_news {
                abandoned.clear();
            } else if state == State::Abandoned && state != state_before {
                abandoned.push(number);
            }
        } else {
            self.rank_value(number, is_withdrawn);
        }
        if self.n_outcomes() > 1 {
            self.update_success(number);
        }
        Ok(())
    }

    /// Changes the result of one outcome.
    fn change(&mut self, outcome: usize, number: TrialNumber, happened: Happened, data: &Data) {
        let here = self.len() as u32;
        let left_out = self.trials[number].left_out;
        match happened {
            Happened::New(reading) | Happened::Amended(reading) => {
                if matches!(happened, Happened::New(_)) {
                    self.end(outcome, number, State::Observed);
                }
                let column = &mut self.columns[outcome];
                column.abandoned.clear();
                if !left_out && let Some(from @ &mut u32::MAX) = column.shown_from.get_mut(&number)
                {
                    // The first value of an outcome that a revision added.
                    *from = here;
                }
                let is_new = self.entry(number, outcome).value().is_none();
                self.columns[outcome].n_observed += usize::from(is_new && !left_out);
                let known_std = self.entry(number, outcome).std();
                if self.entry(number, outcome).value() != Some(reading.value) {
                    // A report of another cost or of another point does not confirm a value.
                    let mut marks = data.marks.iter().flatten();
                    let mark = marks.find(|mark| mark.outcome as usize == outcome);
                    self.results.set_mark(number, outcome, mark.copied());
                }
                self.results.stored_mut(number, outcome).value = reading.value;
                if known_std != reading.std {
                    self.results.extra_mut(number, outcome).std = reading.std;
                }
            }
            Happened::Failed => {
                self.end(outcome, number, State::Failed);
                if data.error.is_some() {
                    self.results.extra_mut(number, outcome).error = data.error.clone();
                }
            }
            Happened::Abandoned => {
                self.end(outcome, number, State::Abandoned);
                self.columns[outcome].abandoned.push(number);
            }
            Happened::Stopped => self.end(outcome, number, State::Stopped),
            Happened::Withdrawn { awaited } => {
                let value = self.entry(number, outcome).value();
                self.withdraw(number, outcome, value, data.reason.as_ref());
                if awaited {
                    self.results.stored_mut(number, outcome).state = State::Pending;
                }
                self.columns[outcome].n_observed -= usize::from(value.is_some() && !left_out);
            }
        }
    }

    /// Ends a result by the present event, and releases the points of abandoned trials.
    fn end(&mut self, column: usize, number: TrialNumber, state: State) {
        if state != State::Abandoned {
            self.columns[column].abandoned.clear();
        }
        if column == self.trial_column() {
            self.pending.remove(&number);
        }
        self.results.end(number, column, state, self.len() as u32);
    }

    /// Takes back a result. `value` is the withdrawn value.
    fn withdraw(
        &mut self,
        number: TrialNumber,
        column: usize,
        value: Option<f64>,
        reason: Option<&String>,
    ) {
        let withdrawal = Withdrawal {
            outcome: self.entry(number, column).state(),
            value,
            reason: reason.cloned(),
            by: self.len() as u32,
        };
        self.results.withdraw(number, column, withdrawal);
    }

    /// Sets the state of a trial from its results. If results were withdrawn, `withdrawn` is the withdrawn value of the
    /// objective and `reason` is the reason.
    pub(super) fn settle(
        &mut self,
        number: TrialNumber,
        withdrawn: Option<f64>,
        reason: Option<&String>,
    ) {
        let column = self.trial_column();
        let state = State::of_trial(self.results(number).map(Entry::state));
        match (self.entry(number, column).state(), state) {
            (before, after) if before == after => {}
            (_, State::Withdrawn) => self.withdraw(number, column, withdrawn, reason),
            (_, State::Pending) => self.results.stored_mut(number, column).state = State::Pending,
            _ => self.results.end(number, column, state, self.len() as u32),
        }
        match state {
            State::Pending => self.pending.insert(number),
            _ => self.pending.remove(&number),
        };
    }

    /// Sets the success of a trial from its results.
    fn update_success(&mut self, number: TrialNumber) {
        let column = self.n_outcomes() + 1;
        // An outcome that is only recorded does not affect suggestions.
        let outcomes = self.problem.outcomes.iter().zip(self.results(number));
        let affecting = outcomes.filter(|(outcome, _)| outcome.goal != Goal::Record);
        let wanted = State::of_success(affecting.map(|(_, it)| it.state()));
        let known = self.entry(number, column).state();
        let withdraws = match wanted {
            State::Failed => known == State::Observed,
            State::Pending => known.can_be_withdrawn(),
            _ => false,
        };
        let event = self.len() as u32;
        if withdraws {
            self.withdraw(number, column, None, None);
            let state = State::Withdrawn;
            self.success_changes.push(OfSuccess { event, state });
        }
        if wanted != State::Pending && wanted != known {
            self.end(column, number, wanted);
            let state = wanted;
            self.success_changes.push(OfSuccess { event, state });
        }
    }

    /// Moves the row of a trial to the point where the trial was run.
    fn move_to_run(&mut self, number: TrialNumber, point: &Point) -> Result<()> {
        let x = self.problem.encode(point)?;
        if self.run_here(number) {
            let first = number * (self.widths.0 + self.widths.1);
            self.rows[first..first + self.widths.0].copy_from_slice(&x);
            let trial = &mut self.trials[number];
            trial.index = point.index().map(|index| index as u32);
            let (was_outside, position) = (trial.is_outside(), self.problem.position(point));
            trial.position = position;
            if trial.is_outside() && !was_outside && self.value(number).is_some() {
                // The ranked value is no longer inside the domain.
                self.rank();
            }
        }
        Ok(())
    }

    /// Records that a trial was run at a point of the present problem. Returns whether strategies use the trial from the
    /// present event on.
    fn run_here(&mut self, number: TrialNumber) -> bool {
        let (now, here) = (self.len() as u32, self.era());
        let Some(revised) = self.revised.get_mut(number) else {
            return true;
        };
        revised.eras.run = here;
        if self.trials[number].left_out && self.has_situation(number) {
            self.trials[number].left_out = false;
            for column in 0..self.columns.len() {
                let has_value = self.entry(number, column).value().is_some();
                let column = &mut self.columns[column];
                column.shown_from.insert(number, now);
                column.n_observed += usize::from(has_value);
            }
        }
        !self.trials[number].left_out
    }

    pub(super) fn at_fidelity(&self, fidelity: Option<f64>) -> Option<AtFidelity> {
        // Adding 0 turns −0 into 0.
        let (value, z) = (fidelity? + 0.0, self.problem.z(fidelity)?);
        Some(AtFidelity { value, z })
    }
}
