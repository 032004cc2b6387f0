//! The rules of the log: which event an action causes, and which events are valid.

use std::fmt::{Debug, Display};

use crate::error::{Error, Result};
use crate::ledger::event::{
    Action, Added, Again, Data, Event, Failure, Happened, Mark, Noted, Observation, Reading,
    Resulted, Step, Suggested, TrialNumber, What,
};
use crate::ledger::results::Entry;
use crate::ledger::{Ledger, Queued, State, json};
use crate::problem::{Interval, Point};

/// The largest number of characters of the author of an event.
pub const LONGEST_AUTHOR: usize = 200;

// Drafts.

impl Ledger {
    /// Returns the event of an action, or None if the action would have no effect. The log is not changed. `now` is the
    /// time on the optimizer's clock, and `at` is the wall-clock time.
    pub(crate) fn validate(
        &self,
        action: Action,
        now: f64,
        at: Option<f64>,
    ) -> Result<Option<Event>> {
        let what = match action {
            Action::Observe {
                number,
                observation,
                again,
            } => self.observed(number, observation, again)?,
            Action::Fail {
                number,
                outcome,
                error,
                duration,
                attrs,
            } => self.failed(number, outcome, error, duration, attrs)?,
            Action::Abandon { number, outcome } => self.abandoned(number, outcome)?,
            Action::Stop { number } => self.stopped(number)?,
            Action::Withdraw {
                number,
                outcome,
                reason,
            } => self.withdrawn(number, outcome, reason)?,
            Action::Report {
                number,
                step,
                value,
                attempt,
            } => self.reported(number, step, value, attempt)?,
            Action::Add {
                point,
                context,
                fidelity,
                observation,
                attrs,
            } => Some(self.added(point, context, fidelity, observation, attrs)?),
            Action::Enqueue(queued) => {
                self.check_queued(&queued)?;
                Some(What::Enqueued(queued))
            }
            Action::Note(noted) => self.noted(noted)?,
            Action::Confirm { number, outcome } => self.confirmed(number, outcome)?,
            Action::Acknowledge { number } => Some(self.acknowledged(number)?),
        };
        Ok(what.map(|what| Event {
            at,
            by: None,
            now,
            what,
        }))
    }

    /// Values that arrived together.
    fn observed(
        &self,
        number: TrialNumber,
        observation: Observation,
        again: Again,
    ) -> Result<Option<What>> {
        self.trial(number)?;
        self.check_observation(number, &observation)?;
        let Observation { readings, data, .. } = &observation;
        let known = readings.iter().find_map(|&(outcome, reading)| {
            let value = self.entry(number, outcome as usize).value()?;
            Some((outcome, reading, value))
        });
        if again == Again::Replicate && known.is_some() {
            return self.replicate(number, observation).map(Some);
        }
        if again == Again::Refuse {
            self.check_run(number, data.point.as_ref())?;
        }
        let mut results = Vec::with_capacity(readings.len());
        for &(outcome, reading) in readings {
            let happened = self.change_of(number, outcome as usize, reading, again)?;
            results.extend(happened.map(|happened| (outcome, happened)));
        }
        if results.is_empty()
            && let Some((outcome, reading, value)) = known
            && self.are_other_data(number, data)
        {
            // The values are known, and their data are not.
            if again == Again::Refuse {
                return Err(self.already_observed(number, outcome as usize, value));
            }
            results.push((outcome, Happened::Amended(reading)));
        }
        if data.point.is_some() && !results.is_empty() {
            self.list_moved(number, &mut results);
        }
        // A repeated report of a withdrawn value has no effect, and neither have its attributes.
        match results.is_empty() && known.is_some() {
            true => self.noted_attrs(number, observation.data.attrs),
            false => Ok(resulted(number, results, observation.data)),
        }
    }

    /// Attributes that arrived with a result that is known.
    fn noted_attrs(&self, trial: TrialNumber, attrs: Option<String>) -> Result<Option<What>> {
        self.noted(Noted {
            trial,
            attrs,
            remark: None,
            confirms: None,
        })
    }

    /// The confirmation of marked values.
    fn confirmed(&self, trial: TrialNumber, only: Option<usize>) -> Result<Option<What>> {
        self.trial(trial)?;
        only.map_or(Ok(()), |outcome| self.check_outcome(outcome))?;
        let marked = self.marks(trial).into_iter().map(|mark| mark.outcome);
        let confirmed = marked.filter(|i| only.is_none_or(|only| only == *i as usize));
        let confirms: Vec<u32> = confirmed.collect();
        Ok((!confirms.is_empty()).then_some(What::Noted(Noted {
            trial,
            attrs: None,
            remark: None,
            confirms: Some(confirms),
        })))
    }

    /// Attributes and a remark of a trial. Parts that the trial already has are left out, so that a repeated request does
    /// not repeat a remark.
    fn noted(&self, mut it: Noted) -> Result<Option<What>> {
        let trial = self.trial(it.trial)?;
        check_attrs(it.attrs.as_deref())?;
        let last = trial.remarks().last().map(|(_, text)| text);
        it.attrs = it.attrs.filter(|attrs| !self.has_attrs(it.trial, attrs));
        it.remark = it.remark.filter(|remark| Some(remark) != last);
        let is_news = it.attrs.is_some() || it.remark.is_some();
        Ok(is_news.then_some(What::Noted(it)))
    }

    /// A note that changes nothing: it has attributes without entries.
    fn acknowledged(&self, trial: TrialNumber) -> Result<What> {
        self.trial(trial)?;
        Ok(What::Noted(Noted {
            trial,
            attrs: Some("{}".to_string()),
            remark: None,
            confirms: None,
        }))
    }

    /// Values of another trial at the point of a trial.
    fn replicate(
        &self,
        number: TrialNumber,
        Observation {
            readings, mut data, ..
        }: Observation,
    ) -> Result<What> {
        self.check_all_plausible(number, &readings)?;
        let (point, context, fidelity) = self.replicated(number, data.point.take())?;
        Ok(What::Added(Added {
            point,
            context,
            fidelity,
            attrs: None,
            results: readings,
            // A replicate measures these outcomes only.
            awaited: false,
            data: data.boxed(),
        }))
    }

    /// Refuses a point of a later report that differs from the point of the values that are known.
    fn check_run(&self, number: TrialNumber, run: Option<&Point>) -> Result<()> {
        let is_elsewhere = |run| !self.was_run_at(number, run);
        let mut results = self.results(number);
        match self.has_outcomes()
            && results.any(|it| it.value().is_some())
            && run.is_some_and(is_elsewhere)
        {
            true => Err(Error::RunElsewhere { number }),
            false => Ok(()),
        }
    }

    /// What a value does to the result of an outcome, or None if it has no effect.
    fn change_of(
        &self,
        number: TrialNumber,
        outcome: usize,
        reading: Reading,
        again: Again,
    ) -> Result<Option<Happened>> {
        let entry = self.entry(number, outcome);
        match entry.value() {
            None if again == Again::Refuse
                && self.repeats_withdrawn(number, outcome, reading.value) =>
            {
                Ok(None)
            }
            None => {
                self.check_plausible(number, outcome, reading.value)?;
                Ok(Some(Happened::New(reading)))
            }
            Some(value)
                if value == reading.value
                    && (reading.std.is_none() || reading.std == entry.std()) =>
            {
                Ok(None)
            }
            Some(value) => {
                // A revision may have narrowed the plausible range since the value was stored.
                if value != reading.value {
                    self.check_plausible(number, outcome, reading.value)?;
                }
                match again {
                    Again::Amend => Ok(Some(Happened::Amended(reading))),
                    _ => Err(self.already_observed(number, outcome, value)),
                }
            }
        }
    }

    /// Adds the values that belong to the point of the report from now on.
    fn list_moved(&self, number: TrialNumber, results: &mut Vec<(u32, Happened)>) {
        for (outcome, entry) in self.results(number).enumerate() {
            let outcome = outcome as u32;
            if let Some(reading) = entry.reading()
                && results.iter().all(|(listed, _)| *listed != outcome)
            {
                results.push((outcome, Happened::Amended(reading)));
            }
        }
    }

    fn failed(
        &self,
        number: TrialNumber,
        only: Option<usize>,
        error: Option<Failure>,
        duration: Option<f64>,
        attrs: Option<String>,
    ) -> Result<Option<What>> {
        let open = self.open(number, only)?;
        check_amount("duration", duration, format_args!("trial {number}"))?;
        check_attrs(attrs.as_deref())?;
        let has_duration = self.trials[number].duration().is_some();
        let is_news = |it: &Entry| {
            // The error and the duration may be reported later than the failure.
            let news = it.state() != State::Failed
                || (error.is_some() && it.error().is_none())
                || (duration.is_some() && !has_duration);
            // A repeated report of a withdrawn failure has no effect.
            let repeated = it.withdrawals().iter().any(|withdrawn| {
                withdrawn.outcome == State::Failed
                    && (error.is_none() || error.as_ref() == it.error())
            });
            news && !(it.state() == State::Withdrawn && repeated)
        };
        let is_known = open.iter().any(|(_, it)| it.state() == State::Failed);
        let failed = open.into_iter().filter(|(_, it)| is_news(it));
        let results = failed.map(|(outcome, _)| (outcome, Happened::Failed));
        let results = self.of_trial(only, Happened::Failed, results.collect());
        if results.is_empty() && is_known {
            return self.noted_attrs(number, attrs);
        }
        let data = Data {
            error,
            duration,
            attrs,
            ..Data::default()
        };
        Ok(resulted(number, results, data))
    }

    fn abandoned(&self, number: TrialNumber, only: Option<usize>) -> Result<Option<What>> {
        let open = self.open(number, only)?;
        let open = open.into_iter().filter(|(_, it)| !it.state().is_dropped());
        let results = open.map(|(outcome, _)| (outcome, Happened::Abandoned));
        let results = self.of_trial(only, Happened::Abandoned, results.collect());
        Ok(resulted(number, results, Data::default()))
    }

    /// A stop concerns the curve of the objective. The other outcomes are abandoned.
    fn stopped(&self, number: TrialNumber) -> Result<Option<What>> {
        let open = self.open(number, None)?;
        if open.iter().all(|(_, it)| it.outcome() == State::Stopped) {
            return Ok(None);
        }
        let stopped = |(outcome, it): (u32, Entry)| {
            let (state, happened) = match Some(outcome as usize) == self.objective_column() {
                true => (State::Stopped, Happened::Stopped),
                false => (State::Abandoned, Happened::Abandoned),
            };
            (it.state() != state).then_some((outcome, happened))
        };
        let results = open.into_iter().filter_map(stopped).collect();
        let results = self.of_trial(None, Happened::Stopped, results);
        Ok(resulted(number, results, Data::default()))
    }

    fn withdrawn(
        &self,
        number: TrialNumber,
        only: Option<usize>,
        reason: Option<String>,
    ) -> Result<Option<What>> {
        self.trial(number)?;
        only.map_or(Ok(()), |outcome| self.check_outcome(outcome))?;
        let results = self.results(number).enumerate();
        let concerned = results.filter(|(i, _)| only.is_none_or(|only| only == *i));
        let ended: Vec<u32> = concerned
            .filter(|(_, it)| it.state().can_be_withdrawn())
            .map(|(i, _)| i as u32)
            .collect();
        if ended.is_empty() {
            let column = only.unwrap_or(self.trial_column());
            return Err(Error::NotWithdrawable {
                number,
                state: self.entry(number, column).state().name(),
            });
        }
        let awaited = self.is_pending(number);
        let withdrawn = Happened::Withdrawn { awaited };
        let results = ended.into_iter().map(|outcome| (outcome, withdrawn));
        let results = self.of_trial(only, withdrawn, results.collect());
        let data = Data {
            reason,
            ..Data::default()
        };
        Ok(resulted(number, results, data))
    }

    /// Adds the trial to the outcomes that a report about the whole trial changes. `only` is the outcome that the report
    /// names.
    fn of_trial(
        &self,
        only: Option<usize>,
        happened: Happened,
        mut results: Vec<(u32, Happened)>,
    ) -> Vec<(u32, Happened)> {
        if only.is_none() && self.has_outcomes() && !results.is_empty() {
            results.push((self.trial_column() as u32, happened));
        }
        results
    }

    fn added(
        &self,
        point: Point,
        context: Vec<f64>,
        fidelity: Option<f64>,
        observation: Observation,
        attrs: Option<String>,
    ) -> Result<What> {
        self.check_observation(self.trials.len(), &observation)?;
        self.check_all_plausible(self.trials.len(), &observation.readings)?;
        let Observation {
            readings, mut data, ..
        } = observation;
        // An added trial has a single point, the point where the trial was run.
        let run = data.point.take();
        let added = Added {
            point: run.unwrap_or(point),
            context,
            fidelity,
            attrs,
            results: readings,
            awaited: true,
            data: data.boxed(),
        };
        self.check_added(&added)?;
        Ok(What::Added(added))
    }

    fn reported(
        &self,
        number: TrialNumber,
        step: u32,
        value: f64,
        attempt: u32,
    ) -> Result<Option<What>> {
        let trial = self.trial(number)?;
        self.check_report(number, step, value)?;
        let value = (!value.is_nan()).then_some(value);
        let known = self.known_step(number, step);
        if attempt < trial.attempt() {
            // The report belongs to an attempt that a later attempt has replaced.
            return Ok(None);
        }
        if attempt == trial.attempt()
            && let Some(known) = known
        {
            return match known == value {
                true => Ok(None),
                false => Err(Error::AlreadyReported {
                    number,
                    step,
                    value: known.unwrap_or(f64::NAN),
                }),
            };
        }
        Ok(Some(What::Reported(Step {
            trial: number,
            step,
            value,
            attempt,
        })))
    }

    /// Whether a report has other data than the trial. Attributes are not compared.
    fn are_other_data(&self, number: TrialNumber, data: &Data) -> bool {
        let trial = &self.trials[number];
        let differs = |reported: Option<f64>, known| reported.is_some() && reported != known;
        let is_elsewhere = |point| !self.was_run_at(number, point);
        differs(data.cost, trial.cost())
            || differs(data.duration, trial.duration())
            || data.point.as_ref().is_some_and(is_elsewhere)
    }

    /// Whether a value repeats a withdrawn value of a result, which may be awaited again. A repeated report must not
    /// restore a value that was taken back.
    fn repeats_withdrawn(&self, number: TrialNumber, outcome: usize, value: f64) -> bool {
        let mut withdrawn = self.entry(number, outcome).withdrawals().iter();
        withdrawn.any(|it| it.value == Some(value))
    }

    /// The outcomes that the end of a trial, or of `only` one outcome, concerns: the missing outcomes, or all outcomes
    /// without a value if none is missing. An error if all of them have values.
    fn open(&self, number: TrialNumber, only: Option<usize>) -> Result<Vec<(u32, Entry<'_>)>> {
        self.trial(number)?;
        only.map_or(Ok(()), |outcome| self.check_outcome(outcome))?;
        let is_concerned = |i: usize| only.is_none_or(|only| only == i);
        let is_pending = only.is_none() && self.is_pending(number);
        let results = self.results(number).enumerate();
        let open = results.clone().filter(|(i, it)| {
            is_concerned(*i)
                && it.value().is_none()
                && (!is_pending || it.state() == State::Pending)
        });
        let open: Vec<(u32, Entry)> = open.map(|(i, it)| (i as u32, it)).collect();
        let mut values = results.filter_map(|(i, it)| it.value().filter(|_| is_concerned(i)));
        match (open.is_empty(), values.next()) {
            (true, Some(value)) => Err(Error::AlreadyObserved { number, value }),
            _ => Ok(open),
        }
    }

    /// Whether an outcome of the trial is missing.
    fn is_pending(&self, number: TrialNumber) -> bool {
        let mut results = self.results(number);
        results.any(|it| it.state() == State::Pending)
    }

    fn already_observed(&self, number: TrialNumber, outcome: usize, value: f64) -> Error {
        match self.problem.outcomes.get(outcome) {
            Some(declared) => Error::OutcomeAlreadyObserved {
                number,
                outcome: declared.name.clone(),
                value,
            },
            None => Error::AlreadyObserved { number, value },
        }
    }

    /// Refuses a position that is not one of an outcome.
    fn check_outcome(&self, outcome: usize) -> Result<()> {
        match outcome < self.n_outcomes() {
            true => Ok(()),
            false => self.declared(outcome).map(drop),
        }
    }
}

// Checks of drafts and of stored events.

impl Ledger {
    /// Refuses an event that is not valid after the events of the log.
    pub(super) fn check(&self, event: &Event) -> Result<()> {
        let is_finite = |time: f64| match time.is_finite() {
            true => Ok(()),
            false => Err(self.impossible("a time that is not finite")),
        };
        is_finite(event.now)?;
        event.at.map_or(Ok(()), is_finite)?;
        let is_name = |by: &String| !by.is_empty() && by.chars().count() <= LONGEST_AUTHOR;
        if !event.by.as_ref().is_none_or(is_name) {
            return Err(self.impossible(format_args!(
                "an author without 1 to {LONGEST_AUTHOR} characters"
            )));
        }
        match &event.what {
            What::Suggested(it) => {
                it.expires_at.map_or(Ok(()), is_finite)?;
                self.check_suggested(it)
            }
            What::Added(it) => self.check_added(it),
            What::Enqueued(it) => self.check_queued(it),
            What::Reported(it) => self.check_step(it),
            What::Resulted(it) => self.check_resulted(it),
            What::Noted(it) => self.check_noted(it),
            What::Revised(_) => Err(self.impossible("a revision, which `Ledger::revise` logs")),
        }
    }

    /// The error for an event that could not have happened.
    fn impossible(&self, why: impl Display) -> Error {
        let i = self.len();
        Error::Corrupt(format!(
            "event {i} of the log could not have happened: {why}"
        ))
    }

    fn check_suggested(&self, it: &Suggested) -> Result<()> {
        self.problem.check_point(&it.point)?;
        self.problem.check_context(&it.context)?;
        self.problem.check_fidelity(it.fidelity)?;
        check_attrs(it.attrs.as_deref())?;
        // A suggestion of an enqueued point does not have a note, unless a strategy completed the point.
        let is_next = |next: &Queued| {
            let same = next.fidelity.is_none() || next.fidelity == it.fidelity;
            let completes = match (next.partial, &next.point, &it.point) {
                (true, Point::Numbers(given), Point::Numbers(numbers)) => {
                    let mut pairs = given.iter().zip(numbers);
                    pairs.all(|(given, number)| given.is_none() || given == number)
                }
                _ => next.point == it.point && it.note.is_none(),
            };
            completes && same
        };
        match !it.queued || self.next_queued().is_some_and(is_next) {
            true => Ok(()),
            false => Err(self.impossible("the suggested point is not the next of the queue")),
        }
    }

    fn check_added(&self, it: &Added) -> Result<()> {
        self.problem.check_measured(&it.point)?;
        self.problem.check_context(&it.context)?;
        self.problem.check_fidelity(it.fidelity)?;
        check_attrs(it.attrs.as_deref())?;
        let number = self.trials.len();
        self.check_data(number, it.data())?;
        self.check_listed(it.results.iter().map(|(outcome, _)| *outcome))?;
        for (_, reading) in &it.results {
            reading.check(format_args!("trial {number}"))?;
        }
        let is_known = |needed: bool| !needed || !it.results.is_empty();
        let data = it.data();
        self.check_marks(data.marks.as_ref(), &it.results)?;
        match data.point.is_none()
            && data.reason.is_none()
            && data.error.is_none()
            && is_known(!it.awaited)
            && is_known(*data != Data::default())
        {
            true => Ok(()),
            false => Err(self.impossible("an added trial with data of another report")),
        }
    }

    pub(super) fn check_queued(&self, it: &Queued) -> Result<()> {
        match &it.point {
            Point::Numbers(numbers) if it.partial => self.problem.check_part(numbers)?,
            Point::Candidate(_) if it.partial => {
                return Err(self.impossible("a candidate that is given in part"));
            }
            point => self.problem.check_point(point)?,
        }
        self.problem.check_fidelity(it.fidelity)?;
        check_attrs(it.attrs.as_deref())
    }

    fn check_step(&self, it: &Step) -> Result<()> {
        let trial = self.trial(it.trial)?;
        self.check_report(it.trial, it.step, it.value.unwrap_or(f64::NAN))?;
        match it.attempt >= trial.attempt() {
            true => Ok(()),
            false => Err(self.impossible("a report of an earlier attempt")),
        }
    }

    fn check_noted(&self, it: &Noted) -> Result<()> {
        self.trial(it.trial)?;
        check_attrs(it.attrs.as_deref())?;
        let confirms = it.confirms.as_deref().unwrap_or_default();
        self.check_listed(confirms.iter().copied())?;
        let is_marked = |i: &u32| self.entry(it.trial, *i as usize).mark().is_some();
        if !confirms.iter().all(is_marked) || it.confirms.as_ref().is_some_and(Vec::is_empty) {
            return Err(self.impossible("a confirmation of values without marks"));
        }
        match it.attrs.is_some() || it.remark.is_some() || !confirms.is_empty() {
            true => Ok(()),
            false => Err(self.impossible("a note without attributes and without a remark")),
        }
    }

    /// Refuses marks that do not belong to the new values of an event.
    fn check_marks(&self, marks: Option<&Vec<Mark>>, new: &[(u32, Reading)]) -> Result<()> {
        let Some(marks) = marks else {
            return Ok(());
        };
        self.check_listed(marks.iter().map(|mark| mark.outcome))?;
        let is_right = |mark: &Mark| {
            let reading = new.iter().find(|(outcome, _)| *outcome == mark.outcome);
            let is_outside = |value: f64| !(mark.low..=mark.high).contains(&value);
            mark.low.is_finite()
                && mark.high.is_finite()
                && mark.low <= mark.high
                && reading.is_some_and(|(_, reading)| is_outside(reading.value))
        };
        match !marks.is_empty() && marks.iter().all(is_right) {
            true => Ok(()),
            false => Err(self.impossible("marks that do not belong to its values")),
        }
    }

    fn check_resulted(&self, it: &Resulted) -> Result<()> {
        let (number, data) = (it.trial, it.data());
        self.trial(number)?;
        self.check_data(number, data)?;
        let (outcomes, of_trial) = self.split_trial(&it.results);
        self.check_listed(outcomes.iter().map(|(outcome, _)| *outcome))?;
        if data.marks.is_some() {
            self.check_marks(data.marks.as_ref(), &it.readings())?;
        }
        for (outcome, happened) in outcomes {
            if let Some(reading) = happened.reading() {
                reading.check(format_args!("trial {number}"))?;
            }
            if !self.has_effect(number, (*outcome, *happened), outcomes, data) {
                return Err(self.impossible(format_args!("outcome {outcome}: {happened:?}")));
            }
        }
        // A stop abandons the outcomes without a curve.
        let agrees = |whole: &Happened| {
            let mut all = outcomes.iter();
            all.all(|(_, it)| {
                it == whole || (*whole, *it) == (Happened::Stopped, Happened::Abandoned)
            })
        };
        match !outcomes.is_empty()
            && of_trial.is_none_or(|whole| whole.reading().is_none() && agrees(&whole))
            && self.explains(number, outcomes, data)
        {
            true => Ok(()),
            false => Err(self.impossible("a report without all results that it changes")),
        }
    }

    /// Whether an entry of a report changes the result of its outcome.
    fn has_effect(
        &self,
        number: TrialNumber,
        (outcome, happened): (u32, Happened),
        outcomes: &[(u32, Happened)],
        data: &Data,
    ) -> bool {
        let entry = self.entry(number, outcome as usize);
        let (state, has_value) = (entry.state(), entry.value().is_some());
        match happened {
            Happened::New(_) => !has_value,
            Happened::Amended(reading) => {
                has_value && (entry.reading() != Some(reading) || *data != Data::default())
            }
            Happened::Failed => !has_value && (state != State::Failed || *data != Data::default()),
            Happened::Abandoned => !has_value && state != State::Abandoned,
            Happened::Stopped => {
                let is_objective = Some(outcome as usize) == self.objective_column();
                !has_value && state != State::Stopped && is_objective
            }
            Happened::Withdrawn { awaited } => {
                let is_listed = |i: usize| outcomes.iter().any(|(at, _)| *at as usize == i);
                let mut results = self.results(number).enumerate();
                let is_missing_elsewhere =
                    results.any(|(i, it)| it.state() == State::Pending && !is_listed(i));
                state.can_be_withdrawn() && awaited == is_missing_elsewhere
            }
        }
    }

    /// Whether a report lists the results to which its data belong.
    fn explains(&self, number: TrialNumber, outcomes: &[(u32, Happened)], data: &Data) -> bool {
        let moves_others = data.point.is_some() && {
            let mut all = outcomes.to_vec();
            self.list_moved(number, &mut all);
            all.len() > outcomes.len()
        };
        let any = |found: fn(&Happened) -> bool| outcomes.iter().any(|(_, it)| found(it));
        let is_measured = data.point.is_some() || data.cost.is_some();
        !moves_others
            && (data.error.is_none() || any(|it| *it == Happened::Failed))
            && (data.reason.is_none() || any(|it| matches!(it, Happened::Withdrawn { .. })))
            && (!is_measured || any(|it| it.reading().is_some()))
    }

    /// The outcomes that a report lists, and what happened to the trial if the report is about the whole trial.
    pub(super) fn split_trial<'a>(
        &self,
        results: &'a [(u32, Happened)],
    ) -> (&'a [(u32, Happened)], Option<Happened>) {
        match results.split_last() {
            Some((&(at, whole), outcomes))
                if self.has_outcomes() && at as usize == self.trial_column() =>
            {
                (outcomes, Some(whole))
            }
            _ => (results, None),
        }
    }

    /// Refuses positions without an outcome, and repeated positions.
    fn check_listed(&self, outcomes: impl Iterator<Item = u32> + Clone) -> Result<()> {
        let mut numbered = outcomes.clone().enumerate();
        let is_wrong = |&(i, outcome): &(usize, u32)| {
            let is_repeated = outcomes.clone().take(i).any(|earlier| earlier == outcome);
            is_repeated || outcome as usize >= self.n_outcomes()
        };
        match numbered.find(is_wrong) {
            None => Ok(()),
            Some((_, outcome)) => Err(self.impossible(format_args!("outcome {outcome}"))),
        }
    }

    fn check_data(&self, number: TrialNumber, data: &Data) -> Result<()> {
        data.check_numbers(format_args!("trial {number}"))?;
        if let Some(point) = &data.point {
            self.problem.check_measured(point)?;
        }
        check_attrs(data.attrs.as_deref())
    }

    /// The report of the current attempt at a step, in the user's sign. The value of a failed step is None.
    fn known_step(&self, number: TrialNumber, step: u32) -> Option<Option<f64>> {
        let curve = self.trials[number].reports();
        let i = curve.binary_search_by_key(&step, |report| report.0).ok()?;
        Some(curve[i].1)
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

    /// Refuses an observation whose outcomes, numbers, point or attributes are invalid.
    fn check_observation(&self, number: TrialNumber, observation: &Observation) -> Result<()> {
        let Observation {
            readings,
            data,
            marks,
        } = observation;
        for (outcome, reading) in readings {
            self.check_outcome(*outcome as usize)?;
            reading.check(format_args!("trial {number}"))?;
        }
        self.check_listed(readings.iter().map(|(outcome, _)| *outcome))?;
        self.check_marks(marks.as_ref().filter(|it| !it.is_empty()), readings)?;
        match data.error.is_none() && data.reason.is_none() && data.marks.is_none() {
            true => self.check_data(number, data),
            false => Err(self.impossible("a value with an error, a reason or a mark")),
        }
    }
}

impl Ledger {
    fn check_all_plausible(&self, number: TrialNumber, new: &[(u32, Reading)]) -> Result<()> {
        new.iter().try_for_each(|(outcome, reading)| {
            self.check_plausible(number, *outcome as usize, reading.value)
        })
    }

    /// Refuses a value outside the plausible range of its outcome.
    fn check_plausible(&self, number: TrialNumber, outcome: usize, value: f64) -> Result<()> {
        let declared = self.problem.outcomes.get(outcome);
        let Some(declared) = declared.filter(|it| !it.plausible.contains(value)) else {
            return Ok(());
        };
        let Interval { low, high } = declared.plausible;
        let (low, high) = (
            low.unwrap_or(f64::NEG_INFINITY),
            high.unwrap_or(f64::INFINITY),
        );
        let what = format!("{:?} of trial {number}", declared.name);
        let expected = format!("a value in its plausible range, from {low} to {high}");
        Err(unusable("value", value, what, expected))
    }
}

impl Reading {
    /// Refuses a value or a standard deviation outside its range. `what` is the trial or the point to which the reading
    /// belongs, for messages.
    fn check(self, what: impl Display + Copy) -> Result<()> {
        if !self.value.is_finite() {
            let expected = "a finite number, or report a crash with fail";
            return Err(unusable("value", self.value, what, expected));
        }
        check_amount("std", self.std, what)
    }
}

impl Data {
    /// Refuses a cost or a duration outside its range.
    fn check_numbers(&self, what: impl Display + Copy) -> Result<()> {
        check_amount("cost", self.cost, what)?;
        check_amount("duration", self.duration, what)
    }
}

impl Observation {
    /// Refuses a value, standard deviation, cost or duration outside its range. `what` is the trial or the point to
    /// which the observation belongs, for messages.
    pub(crate) fn check_numbers(&self, what: impl Display + Copy) -> Result<()> {
        for (_, reading) in &self.readings {
            reading.check(what)?;
        }
        self.data.check_numbers(what)
    }
}

/// A report of these results, or None if it concerns no outcome.
fn resulted(trial: TrialNumber, results: Vec<(u32, Happened)>, data: Data) -> Option<What> {
    (!results.is_empty()).then_some(What::Resulted(Resulted {
        trial,
        results,
        data: data.boxed(),
    }))
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

fn check_attrs(attrs: Option<&str>) -> Result<()> {
    match attrs.filter(|attrs| !json::is_object(attrs)) {
        Some(attrs) => Err(Error::InvalidAttrs(attrs.chars().take(100).collect())),
        None => Ok(()),
    }
}
