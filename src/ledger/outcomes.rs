//! Trials with several outcomes.
//!
//! Each outcome has a *part*: a log in which a trial has only this outcome. An event of the log is an event of one part
//! or of several parts. The state of an outcome is the state of the trial in its part, and the state of the trial
//! follows from the states of its outcomes. A model of one outcome reads one part.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::error::{Error, Result, refuse};
use crate::ledger::event::{Action, Again, Event, Observation, TrialNumber};
use crate::ledger::{Ledger, State, Trial};
use crate::problem::fidelity::TOLERANCE;
use crate::problem::{Goal, Outcome, Problem};

/// The states of a trial that is not pending, in their order: the trial has the first state that an outcome has.
const ORDER: [State; 5] = [
    State::Observed,
    State::Stopped,
    State::Withdrawn,
    State::Failed,
    State::Abandoned,
];

impl Ledger {
    pub(super) fn parts_of(problem: &Problem) -> Vec<Ledger> {
        let parts = 0..problem.outcomes.len();
        parts
            .map(|outcome| Ledger::new(Arc::new(problem.part(outcome))))
            .collect()
    }

    pub(super) fn failures_of(problem: &Problem) -> Option<Box<Ledger>> {
        (problem.outcomes.len() > 1).then(|| Box::new(Ledger::new(Arc::new(problem.part(0)))))
    }

    /// The declared outcomes.
    fn outcomes(&self) -> &[Outcome] {
        &self.problem().outcomes
    }

    /// The outcomes of a trial that are missing, by their positions.
    pub(crate) fn missing(&self, number: TrialNumber) -> Vec<usize> {
        let missing = |&outcome: &usize| self.outcome_state(outcome, number) == State::Pending;
        (0..self.parts.len()).filter(missing).collect()
    }

    /// Whether an outcome that affects suggestions is missing.
    pub(crate) fn is_awaited(&self, number: TrialNumber) -> bool {
        let missing = self.missing(number).into_iter();
        let mut goals = missing.map(|outcome| self.outcomes()[outcome].goal);
        goals.any(|goal| goal != Goal::Record)
    }

    fn outcome_state(&self, outcome: usize, number: TrialNumber) -> State {
        self.parts[outcome].trials[number].state
    }

    /// Whether all outcomes with bounds have values within their bounds.
    pub(crate) fn is_within_bounds(&self, number: TrialNumber) -> bool {
        let outcomes = self.outcomes().iter().zip(&self.parts);
        outcomes.into_iter().all(|(outcome, part)| {
            let value = part.value(number);
            match outcome.bounds() {
                Some(bounds) => value.is_some_and(|value| bounds.contains(value)),
                None => true,
            }
        })
    }

    /// Whether an outcome has bounds.
    pub(crate) fn has_bounds(&self) -> bool {
        self.outcomes().iter().any(|it| it.bounds().is_some())
    }

    /// For each trial: the sum of the distances of its outcomes from their bounds, in units of the range of the
    /// observed values. It is 0 for a trial within all bounds, and positive if an outcome with bounds is not known.
    pub(crate) fn violations(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.trials.len()];
        for (outcome, part) in self.outcomes().iter().zip(&self.parts) {
            let Some(bounds) = outcome.bounds() else {
                continue;
            };
            let values: Vec<Option<f64>> = (0..self.trials.len()).map(|i| part.value(i)).collect();
            let known = || values.iter().flatten().copied();
            let (low, high) = (known().reduce(f64::min), known().reduce(f64::max));
            let range = low
                .zip(high)
                .map_or(0.0, |(low, high)| 0.5 * high - 0.5 * low);
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum += match value {
                    Some(value) => bounds.distance(value) / range.max(f64::MIN_POSITIVE),
                    None => f64::MIN_POSITIVE,
                };
            }
        }
        sums
    }

    /// The trial with the best objective at the highest fidelity, among the trials whose outcomes with bounds have
    /// values within their bounds.
    pub(super) fn best_within_bounds(
        &self,
        counts: impl Fn(&Trial) -> bool,
    ) -> Option<TrialNumber> {
        let objective = self.objective_part()?;
        let found = (0..self.trials.len()).filter_map(|number| {
            let value = objective.trials[number].value?;
            let trial = &self.trials[number];
            let holds = counts(trial) && self.is_within_bounds(number);
            holds.then_some((trial.z(), value + 0.0, number))
        });
        let found: Vec<(f64, f64, TrialNumber)> = found.collect();
        let highest = found.iter().map(|(z, ..)| *z).fold(0.0, f64::max);
        let best = found
            .into_iter()
            .filter(|(z, ..)| *z >= highest - TOLERANCE);
        let order = |a: &(f64, f64, usize), b: &(f64, f64, usize)| {
            a.1.total_cmp(&b.1).then_with(|| b.2.cmp(&a.2))
        };
        best.max_by(order).map(|(.., number)| number)
    }

    // Revisions.

    /// The logs of the outcomes of another problem, and the log for the model of success. `revise` changes a log to the
    /// given problem.
    ///
    /// Outcomes are found again by their names, and a value without a name becomes the objective. A new outcome is
    /// missing in pending trials, and abandoned in the others.
    pub(super) fn revised_parts(
        &self,
        problem: &Problem,
        revise: impl Fn(&mut Ledger, Arc<Problem>) -> Result<()>,
    ) -> Result<(Vec<Ledger>, Option<Box<Ledger>>)> {
        if problem.outcomes.is_empty() && self.has_outcomes() {
            return Err(refuse(
                "outcomes",
                "None",
                "a revision keeps outcomes; declare those that are still measured",
            ));
        }
        let mut parts = Vec::with_capacity(problem.outcomes.len());
        for (i, outcome) in problem.outcomes.iter().enumerate() {
            let named = self
                .outcomes()
                .iter()
                .position(|it| it.name == outcome.name);
            let known = match self.has_outcomes() {
                true => named.map(|i| &self.parts[i]),
                false => outcome.is_objective().then_some(self),
            };
            let mut part = known.unwrap_or(self.parts.first().unwrap_or(self)).clone();
            revise(&mut part, Arc::new(problem.part(i)))?;
            if known.is_none() {
                part.forget_results(&self.all_pending());
            }
            parts.push(part);
        }
        let objective = problem.objective().unwrap_or(0);
        let failures = match (&self.failures, parts.get(objective)) {
            _ if parts.len() < 2 => None,
            (Some(failures), _) => {
                let mut failures = failures.clone();
                revise(&mut failures, Arc::new(problem.part(0)))?;
                Some(failures)
            }
            (None, part) => part.cloned().map(Box::new),
        };
        Ok((parts, failures))
    }

    /// Replaces the logs of the outcomes after a revision, and sets the states of the trials.
    pub(super) fn set_parts(&mut self, (parts, failures): (Vec<Ledger>, Option<Box<Ledger>>)) {
        self.parts = parts;
        self.failures = failures;
        if self.has_outcomes() {
            for number in 0..self.trials.len() {
                self.settle(number, self.trials[number].ended_at, None);
            }
        }
    }

    /// Turns the log of an outcome into the log of an outcome that was never measured: it is missing in the pending
    /// trials.
    fn forget_results(&mut self, pending: &[TrialNumber]) {
        for (number, trial) in self.trials.iter_mut().enumerate() {
            trial.value = None;
            trial.forget_result();
            trial.state = match pending.binary_search(&number) {
                Ok(_) => State::Pending,
                Err(_) => State::Abandoned,
            };
            // Strategies do not see the results of the other outcome.
            self.shown_from.insert(number, u32::MAX);
        }
        // The sets of pending trials are made again from the states.
        self.pending = pending.iter().copied().collect();
        self.pending_left_out.clear();
        for revised in &mut self.revised {
            revised.value = None;
        }
        self.notes_from = self.len();
        self.recount();
    }

    // Rules.

    /// Returns the events of an action, which are logged together. The log is not changed.
    pub(crate) fn validate_all(
        &self,
        action: Action,
        now: f64,
        at: Option<f64>,
    ) -> Result<Vec<Event>> {
        if !self.has_outcomes() {
            return Ok(self.validate(action, now, at)?.into_iter().collect());
        }
        match action {
            Action::ObserveOutcomes {
                number,
                observations,
                again,
            } => self.validate_observations(number, observations, again, now, at),
            Action::AddOutcomes { add, observations } => {
                let added = self.validate(*add, now, at)?;
                let observations = self.measured(self.trials.len(), observations)?;
                let event = added.map(|added| Event::AddedMeasured {
                    added: Box::new(added),
                    observations,
                    complete: false,
                });
                Ok(event.into_iter().collect())
            }
            Action::OfOutcome { outcome, action } => {
                let part = self.part(outcome)?;
                let event = part.validate(*action, now, at)?;
                let event = event.map(|event| of_outcome(outcome, event));
                Ok(event.into_iter().collect())
            }
            Action::Fail { number, .. } | Action::Abandon { number } | Action::Stop { number } => {
                self.trial(number)?;
                let open = self.open(number);
                if open.is_empty() {
                    // All outcomes have values. The error is the same as in every part.
                    return self.parts[0].validate(action, now, at).map(|_| Vec::new());
                }
                for outcome in open {
                    let event = self.parts[outcome].validate(action.clone(), now, at)?;
                    if let Some(event) = event {
                        return Ok(vec![event]);
                    }
                }
                Ok(Vec::new())
            }
            Action::Withdraw { number, reason } => {
                let state = self.trial(number)?.state;
                let ended = |part: &Ledger| Self::can_be_withdrawn(part.trials[number].state);
                match self.parts.iter().any(ended) {
                    true => Ok(vec![Event::Withdrawn {
                        number,
                        reason,
                        now,
                        at,
                    }]),
                    false => Err(Error::NotWithdrawable {
                        number,
                        state: state.name(),
                    }),
                }
            }
            Action::Observe { .. }
            | Action::Add {
                observation: Some(_),
                ..
            } => Err(refuse(
                "value",
                "a number",
                "outcomes are declared: give a mapping of their names to values",
            )),
            Action::Report { number, .. } => {
                self.trial(number)?;
                let event = self.validate(action, now, at)?;
                Ok(event.into_iter().collect())
            }
            Action::Add { .. } | Action::Enqueue { .. } => {
                Ok(self.validate(action, now, at)?.into_iter().collect())
            }
        }
    }

    /// The events of values that arrived together.
    fn validate_observations(
        &self,
        number: TrialNumber,
        observations: Vec<(usize, Observation)>,
        again: Again,
        now: f64,
        at: Option<f64>,
    ) -> Result<Vec<Event>> {
        self.trial(number)?;
        let is_known = |(outcome, _): &(usize, Observation)| {
            self.part(*outcome)
                .is_ok_and(|part| part.value(number).is_some())
        };
        if again == Again::Replicate && observations.iter().any(is_known) {
            let run = observations.iter().find_map(|(_, it)| it.point.clone());
            let (point, context, fidelity) = self.replicated(number, run)?;
            let added = Event::Added {
                point,
                context,
                fidelity,
                observation: None,
                now,
                at,
                attrs: None,
            };
            // A replicate measures these outcomes only.
            return Ok(vec![Event::AddedMeasured {
                added: Box::new(added),
                observations: self.measured(number, observations)?,
                complete: true,
            }]);
        }
        let run = observations.iter().find_map(|(_, it)| it.point.as_ref());
        let has_value = self.parts.iter().any(|part| part.value(number).is_some());
        if again == Again::Refuse
            && has_value
            && run.is_some_and(|run| !self.was_run_at(number, run))
        {
            return Err(Error::RunElsewhere { number });
        }
        let mut events = Vec::with_capacity(observations.len());
        for (outcome, observation) in self.with_data_of_new_value(number, observations) {
            let action = Action::Observe {
                number,
                observation,
                again,
            };
            let event = self.part(outcome)?.validate(action, now, at);
            let event = event.map_err(|error| match error {
                Error::AlreadyObserved { number, value } => Error::OutcomeAlreadyObserved {
                    number,
                    outcome: self.outcomes()[outcome].name.clone(),
                    value,
                },
                error => error,
            })?;
            events.extend(event.map(|event| of_outcome(outcome, event)));
        }
        Ok(events)
    }

    /// Moves the data of the trial from a repeated value to a new value of the same report. A repeated value does not
    /// change the log, so its data would be lost.
    fn with_data_of_new_value(
        &self,
        number: TrialNumber,
        mut observations: Vec<(usize, Observation)>,
    ) -> Vec<(usize, Observation)> {
        let is_new = |(outcome, observation): &(usize, Observation)| {
            let part = self.parts.get(*outcome);
            part.is_some_and(|part| {
                part.value(number).is_none() && !part.repeats_withdrawn(number, observation)
            })
        };
        let is_repeated = |(outcome, observation): &(usize, Observation)| {
            let part = self.parts.get(*outcome);
            part.is_some_and(|part| {
                part.value(number) == Some(observation.reading.value)
                    || part.repeats_withdrawn(number, observation)
            })
        };
        // The first observation has the data.
        if let Some(new @ 1..) = observations.iter().position(is_new)
            && is_repeated(&observations[0])
        {
            let (repeated, rest) = observations.split_at_mut(1);
            let (from, to) = (&mut repeated[0].1, &mut rest[new - 1].1);
            to.point = from.point.take();
            to.cost = from.cost.take();
            to.duration = from.duration.take();
            to.attrs = from.attrs.take();
        }
        observations
    }

    /// The observations of an added trial, which has a single point.
    fn measured(
        &self,
        number: TrialNumber,
        observations: Vec<(usize, Observation)>,
    ) -> Result<Vec<(u32, Observation)>> {
        let checked = observations.into_iter().map(|(outcome, observation)| {
            self.part(outcome)?;
            self.check_observation(number, &observation)?;
            let observation = Observation {
                point: None,
                ..observation
            };
            Ok((outcome as u32, observation))
        });
        checked.collect()
    }

    /// The log of an outcome, or an error if the position is not one of a declared outcome.
    pub(crate) fn part(&self, outcome: usize) -> Result<&Ledger> {
        self.parts.get(outcome).ok_or_else(|| {
            refuse(
                "outcome",
                outcome.to_string(),
                "give the position of a declared outcome",
            )
        })
    }

    /// The outcomes that a failure or an abandonment of the trial concerns: the missing outcomes, or all outcomes
    /// without a value if none is missing.
    fn open(&self, number: TrialNumber) -> Vec<usize> {
        let missing = self.missing(number);
        match missing.is_empty() {
            true => (0..self.parts.len())
                .filter(|&outcome| self.parts[outcome].value(number).is_none())
                .collect(),
            false => missing,
        }
    }

    /// Whether an event may follow the events of this log. The point, context and fidelity of the event must already be
    /// valid.
    pub(super) fn allows_for_outcomes(&self, event: &Event) -> Result<bool> {
        let concerned = match event {
            Event::OfOutcome { outcome, event } => {
                let valid = matches!(
                    **event,
                    Event::Observed { .. }
                        | Event::Amended { .. }
                        | Event::Failed { .. }
                        | Event::Abandoned { .. }
                        | Event::Withdrawn { .. }
                );
                let part = self.parts.get(*outcome as usize);
                return Ok(valid && part.is_some_and(|part| part.check(event).is_ok()));
            }
            Event::Observed { .. } | Event::Amended { .. } => return Ok(false),
            Event::AddedMeasured {
                added,
                observations,
                ..
            } => {
                let number = self.trials.len();
                let mut known = BTreeSet::new();
                let valid = |(outcome, observed): &(u32, Observation)| {
                    known.insert(*outcome)
                        && (*outcome as usize) < self.parts.len()
                        && observed.point.is_none()
                        && self.check_observation(number, observed).is_ok()
                };
                let is_plain = matches!(
                    **added,
                    Event::Added {
                        observation: None,
                        ..
                    }
                );
                return Ok(is_plain && observations.iter().all(valid) && self.allows(added)?);
            }
            Event::Added { observation, .. } if observation.is_some() => return Ok(false),
            Event::Suggested { .. } | Event::Added { .. } | Event::Enqueued { .. } => {
                return self.allows(event);
            }
            Event::Reported { .. } => return self.allows(event),
            Event::Revised { .. } => return Ok(false),
            Event::Failed { .. }
            | Event::Abandoned { .. }
            | Event::Stopped { .. }
            | Event::Withdrawn { .. } => self.projections(event),
        };
        let any = concerned.iter().any(Option::is_some);
        let valid = concerned
            .iter()
            .zip(&self.parts)
            .all(|(event, part)| event.as_ref().is_none_or(|event| part.check(event).is_ok()));
        Ok(any && valid)
    }

    // Effects.

    /// The event that each part logs for an event of this log.
    fn projections(&self, event: &Event) -> Vec<Option<Event>> {
        let parts = 0..self.parts.len();
        let Some(number) = event.trial_number(self.trials.len()) else {
            return parts.map(|_| Some(event.clone())).collect();
        };
        let objective = self.problem().objective();
        match event {
            Event::Suggested { note, .. } => {
                let notes = self.split_note(note.as_deref());
                let suggested = notes.into_iter().map(|own| {
                    let mut event = event.clone();
                    if let Event::Suggested { note, .. } = &mut event {
                        *note = own;
                    }
                    Some(event)
                });
                suggested.collect()
            }
            Event::AddedMeasured {
                added,
                observations,
                ..
            } => {
                let measured = |i: usize| {
                    let mut event = (**added).clone();
                    if let Event::Added { observation, .. } = &mut event {
                        let own = observations
                            .iter()
                            .find(|(outcome, _)| *outcome as usize == i);
                        *observation = own.map(|(_, observation)| observation.clone());
                    }
                    Some(event)
                };
                parts.map(measured).collect()
            }
            Event::OfOutcome { outcome, event } => parts
                .map(|i| (i == *outcome as usize).then(|| (**event).clone()))
                .collect(),
            _ if number >= self.trials.len() => parts.map(|_| Some(event.clone())).collect(),
            Event::Failed {
                error,
                duration,
                attrs,
                ..
            } => {
                let action = Action::Fail {
                    number,
                    error: error.clone(),
                    duration: *duration,
                    attrs: attrs.clone(),
                };
                self.changed_by(&action, number, event)
            }
            Event::Abandoned { .. } => self.changed_by(&Action::Abandon { number }, number, event),
            Event::Stopped { number, now, at } => {
                let open = self.open(*number);
                let stopped = |i: usize| match Some(i) == objective {
                    true => event.clone(),
                    false => Event::Abandoned {
                        number: *number,
                        now: *now,
                        at: *at,
                    },
                };
                parts
                    .map(|i| open.contains(&i).then(|| stopped(i)))
                    .collect()
            }
            Event::Withdrawn { .. } => parts
                .map(|i| {
                    Self::can_be_withdrawn(self.outcome_state(i, number)).then(|| event.clone())
                })
                .collect(),
            Event::Reported { .. } => parts
                .map(|i| (Some(i) == objective).then(|| event.clone()))
                .collect(),
            _ => parts.map(|_| Some(event.clone())).collect(),
        }
    }

    /// The event for each open outcome that the action of the event changes.
    fn changed_by(
        &self,
        action: &Action,
        number: TrialNumber,
        event: &Event,
    ) -> Vec<Option<Event>> {
        let open = self.open(number);
        let changes = |&i: &usize| {
            let event = self.parts[i].validate(action.clone(), 0.0, None);
            open.contains(&i) && matches!(event, Ok(Some(_)))
        };
        (0..self.parts.len())
            .map(|i| changes(&i).then(|| event.clone()))
            .collect()
    }

    /// The notes of the parts, from the note of a suggestion.
    fn split_note(&self, note: Option<&str>) -> Vec<Option<String>> {
        let mut notes = note.map_or_else(Vec::new, |note| split_notes(note).unwrap_or_default());
        notes.resize(self.parts.len(), None);
        notes
    }

    /// Updates the state with an event if outcomes are declared.
    pub(super) fn apply_to_outcomes(&mut self, event: &Event) -> Result<()> {
        let projections = self.projections(event);
        for (part, event) in self.parts.iter_mut().zip(&projections) {
            if let Some(event) = event {
                part.push(event.clone())?;
            }
        }
        let number = event.trial_number(self.trials.len());
        match event {
            Event::Suggested { .. } | Event::Added { .. } | Event::Enqueued { .. } => {
                let objective = self.problem().objective().unwrap_or(0);
                if let Some(failures) = &mut self.failures {
                    failures.push(
                        projections[objective]
                            .clone()
                            .unwrap_or_else(|| event.clone()),
                    )?;
                }
                return self.apply(event);
            }
            Event::Reported { .. } => {
                self.apply(event)?;
                return self.renew_leases(number.unwrap_or_default());
            }
            Event::AddedMeasured {
                added,
                observations,
                complete,
            } => return self.apply_measured(added, observations, *complete),
            _ => {}
        }
        let Some(number) = number else {
            return Ok(());
        };
        let (now, inner) = match event {
            Event::OfOutcome { event, .. } => (now_of(event), &**event),
            event => (now_of(event), event),
        };
        self.store_data(number, event, inner)?;
        let reason = match inner {
            Event::Withdrawn { reason, .. } => reason.clone(),
            _ => None,
        };
        let now = now.unwrap_or(self.trials[number].ended_at);
        self.settle(number, now, reason);
        if matches!(inner, Event::Withdrawn { .. }) {
            self.last_withdrawal = Some(self.len());
            self.reopen(number);
        } else if !matches!(inner, Event::Abandoned { .. }) {
            self.abandoned.clear();
        }
        if matches!(event, Event::Abandoned { .. }) && self.trials[number].state == State::Abandoned
        {
            self.abandoned.push(number);
        }
        self.update_failures(number, inner)
    }

    /// Adds a trial with known outcomes. The parts have logged the trial.
    fn apply_measured(
        &mut self,
        added: &Event,
        observations: &[(u32, Observation)],
        complete: bool,
    ) -> Result<()> {
        let (number, at) = (self.trials.len(), added.at());
        if let Some(failures) = &mut self.failures {
            failures.push(added.clone())?;
        }
        self.apply(added)?;
        let now = self.trials[number].suggested_at;
        for (outcome, observation) in observations {
            let inner = Event::Observed {
                number,
                observation: observation.clone(),
                now,
                at,
            };
            self.store_data(
                number,
                &of_outcome(*outcome as usize, inner.clone()),
                &inner,
            )?;
            self.update_failures(number, &inner)?;
        }
        if complete {
            for outcome in self.missing(number) {
                self.parts[outcome].push(Event::Abandoned { number, now, at })?;
            }
        }
        self.settle(number, now, None);
        self.abandoned.clear();
        Ok(())
    }

    /// Stores the data of an event that belong to the whole trial: the point where the trial was run, costs, durations,
    /// attributes and errors.
    fn store_data(&mut self, number: TrialNumber, event: &Event, inner: &Event) -> Result<()> {
        if let Event::Failed {
            error,
            duration,
            attrs,
            ..
        } = inner
        {
            self.trials[number].set_report(error.as_ref(), *duration, attrs.as_ref());
        }
        let Some(observation) = inner.observation() else {
            return Ok(());
        };
        let own = match event {
            Event::OfOutcome { outcome, .. } => Some(*outcome as usize),
            _ => None,
        };
        let is_objective = own == self.problem().objective();
        let mut data = observation.clone();
        if !is_objective {
            data.reading.std = self.trials[number].std();
        }
        self.trials[number].set_data(&data);
        data.attrs = None;
        if let Some(point) = &data.point {
            self.move_to_run(number, point)?;
        }
        for (outcome, part) in self.parts.iter_mut().enumerate() {
            if Some(outcome) == own {
                continue;
            }
            data.reading.std = part.trials[number].std();
            match (&data.point, part.value(number)) {
                (Some(_), Some(value)) => {
                    let mut observation = data.clone();
                    observation.reading.value = value;
                    part.push(Event::Amended {
                        number,
                        observation,
                        at: inner.at(),
                    })?;
                }
                (Some(point), None) => {
                    part.move_to_run(number, point)?;
                    part.trials[number].set_data(&data);
                }
                (None, _) => part.trials[number].set_data(&data),
            }
        }
        Ok(())
    }

    /// Sets the state and the value of a trial from its outcomes. `reason` is the reason of a withdrawal.
    fn settle(&mut self, number: TrialNumber, now: f64, reason: Option<String>) {
        let states: Vec<State> = (0..self.parts.len())
            .map(|outcome| self.outcome_state(outcome, number))
            .collect();
        let state = match states.contains(&State::Pending) {
            true => State::Pending,
            false => ORDER
                .into_iter()
                .find(|state| states.contains(state))
                .unwrap_or(State::Abandoned),
        };
        let objective = self.objective_part();
        let value = objective.and_then(|part| part.trials[number].value);
        let mut before = self.trials[number].value;
        if self.trials[number].left_out {
            // The value is not in the trial.
            let present = self.value(number);
            let known = std::mem::replace(&mut self.revised[number].value, present);
            before = known.map(|y| self.problem.direction.oriented(y));
        }
        let trial = &mut self.trials[number];
        self.n_observed -= usize::from(trial.value.is_some());
        self.n_observed += usize::from(value.is_some());
        let by = self.events.len() as u32;
        match (trial.state, state) {
            (State::Pending, State::Pending) => trial.value = value,
            (known, State::Withdrawn) if known != State::Withdrawn => {
                trial.value = None;
                trial.withdraw(before, reason, by);
                self.pending.remove(&number);
                self.pending_left_out.remove(&number);
            }
            (_, State::Pending) => {
                trial.value = value;
                trial.state = State::Pending;
                self.insert_pending(number);
            }
            _ => {
                trial.value = value;
                let recently_abandoned = std::mem::take(&mut self.abandoned);
                self.end(number, state, now);
                self.abandoned = recently_abandoned;
            }
        }
    }

    /// After a withdrawal: the withdrawn outcomes of a pending trial are missing again.
    fn reopen(&mut self, number: TrialNumber) {
        if self.trials[number].state != State::Pending {
            return;
        }
        for part in &mut self.parts {
            if part.trials[number].state == State::Withdrawn {
                part.trials[number].state = State::Pending;
                part.insert_pending(number);
            }
        }
    }

    /// Adds a trial to the pending trials.
    fn insert_pending(&mut self, number: TrialNumber) {
        match self.trials[number].left_out {
            true => self.pending_left_out.insert(number),
            false => self.pending.insert(number),
        };
    }

    /// Copies the end of a renewed lease to the outcomes that do not have the curve.
    fn renew_leases(&mut self, number: TrialNumber) -> Result<()> {
        let expires_at = self.trials[number].expires_at();
        let objective = self.problem().objective();
        let others = self.parts.iter_mut().enumerate();
        for (_, part) in others.filter(|(outcome, _)| Some(*outcome) != objective) {
            if expires_at.is_some() {
                let details = part.trials[number].details.get_or_insert_default();
                details.expires_at = expires_at;
            }
        }
        Ok(())
    }

    /// Updates the log that a model of success reads. A trial has succeeded if an outcome is observed and none failed.
    fn update_failures(&mut self, number: TrialNumber, event: &Event) -> Result<()> {
        let Some(mut failures) = self.failures.take() else {
            return Ok(());
        };
        // An outcome that is only recorded does not affect suggestions.
        let affects = |outcome: &Outcome| outcome.goal != Goal::Record;
        let any = |state| {
            let mut outcomes = self.outcomes().iter().zip(&self.parts);
            outcomes.any(|(outcome, part)| affects(outcome) && part.trials[number].state == state)
        };
        let wanted = match (any(State::Failed), any(State::Observed)) {
            (true, _) => State::Failed,
            (false, true) => State::Observed,
            (false, false) => State::Pending,
        };
        let (known, at) = (failures.trials[number].state, event.at());
        let now = now_of(event).unwrap_or(self.trials[number].suggested_at);
        let is_result = matches!(known, State::Observed | State::Failed);
        let observation = Observation {
            point: self
                .run_point(number)
                .filter(|_| self.problems(number).run == self.n_revisions()),
            ..Observation::new(0.0, None)
        };
        let withdrawn = Event::Withdrawn {
            number,
            reason: None,
            now,
            at,
        };
        let mut events = Vec::new();
        match wanted {
            State::Failed if known != State::Failed => {
                if known == State::Observed {
                    events.push(withdrawn);
                }
                events.push(Event::Failed {
                    number,
                    now,
                    at,
                    error: None,
                    duration: None,
                    attrs: None,
                });
            }
            State::Observed if known != State::Observed => events.push(Event::Observed {
                number,
                observation,
                now,
                at,
            }),
            State::Observed if event.point().is_some() => events.push(Event::Amended {
                number,
                observation,
                at,
            }),
            State::Pending if is_result => events.push(withdrawn),
            _ => {}
        }
        for event in events {
            failures.push(event)?;
        }
        self.failures = Some(failures);
        Ok(())
    }
}

fn of_outcome(outcome: usize, event: Event) -> Event {
    Event::OfOutcome {
        outcome: outcome as u32,
        event: Box::new(event),
    }
}

/// The time of an event on the optimizer's clock. An amendment has none.
fn now_of(event: &Event) -> Option<f64> {
    match event {
        Event::Observed { now, .. }
        | Event::Failed { now, .. }
        | Event::Abandoned { now, .. }
        | Event::Stopped { now, .. }
        | Event::Withdrawn { now, .. } => Some(*now),
        _ => None,
    }
}

/// The note of a suggestion, from the notes of the models of the outcomes. None if no model wrote a note.
pub(crate) fn join_notes(notes: &[Option<String>]) -> Option<String> {
    let any = notes.iter().any(Option::is_some);
    any.then(|| serde_json::json!(notes).to_string())
}

/// The notes of the models of the outcomes, from the note of a suggestion.
pub(crate) fn split_notes(note: &str) -> Result<Vec<Option<String>>> {
    serde_json::from_str(note).map_err(|error| {
        Error::Corrupt(format!("the note {note:?} is not a list of notes: {error}"))
    })
}
