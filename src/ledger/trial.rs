//! Trials, and the ranking of observed values.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::ledger::event::{Data, Failure, TrialNumber};
use crate::problem::fidelity::TOLERANCE;
use crate::problem::{Point, Position};

/// The state of a trial. A trial in any other state can become `Observed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The trial was started, and its result has not arrived.
    Pending,
    /// The trial has a value.
    Observed,
    /// The evaluation ended without a value.
    Failed,
    /// The result is no longer expected.
    Abandoned,
    /// The evaluation was ended before the last step of its curve.
    Stopped,
    /// The value, the failure or the curve was taken back.
    Withdrawn,
}

impl State {
    pub(crate) const ALL: [State; 6] = [
        State::Pending,
        State::Observed,
        State::Failed,
        State::Abandoned,
        State::Stopped,
        State::Withdrawn,
    ];

    /// The name of the state in Python and in messages.
    pub fn name(self) -> &'static str {
        match self {
            State::Pending => "pending",
            State::Observed => "observed",
            State::Failed => "failed",
            State::Abandoned => "abandoned",
            State::Stopped => "stopped",
            State::Withdrawn => "withdrawn",
        }
    }
}

/// The states of a trial without a missing outcome, in their order: the trial has the first state that an outcome has.
const ORDER: [State; 5] = [
    State::Observed,
    State::Stopped,
    State::Withdrawn,
    State::Failed,
    State::Abandoned,
];

impl State {
    /// The state of a trial whose outcomes have these states. A trial is pending while an outcome is missing.
    pub(super) fn of_trial(states: impl Iterator<Item = State> + Clone) -> State {
        let has = |state: State| states.clone().any(|other| other == state);
        match has(State::Pending) {
            true => State::Pending,
            false => ORDER
                .into_iter()
                .find(|state| has(*state))
                .unwrap_or(State::Abandoned),
        }
    }

    /// The state of success of a trial whose outcomes have these states, without outcomes that are only recorded. The
    /// trial has failed if any of them failed, and succeeded if any of them was observed.
    pub(super) fn of_success(states: impl Iterator<Item = State> + Clone) -> State {
        let has = |state: State| states.clone().any(|other| other == state);
        match (has(State::Failed), has(State::Observed)) {
            (true, _) => State::Failed,
            (false, true) => State::Observed,
            (false, false) => State::Pending,
        }
    }

    /// Whether a result in this state can be taken back.
    pub(super) fn can_be_withdrawn(self) -> bool {
        matches!(self, State::Observed | State::Failed | State::Stopped)
    }

    /// Whether the models leave out a result in this state.
    pub(super) fn is_dropped(self) -> bool {
        matches!(self, State::Abandoned | State::Withdrawn)
    }
}

/// The data of a trial that its results do not change. The [`crate::ledger::Ledger`] stores the points, the context and
/// the results of a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// Whether this optimizer suggested the trial. False if the trial was added.
    pub suggested: bool,
    /// Whether the point came from the queue.
    pub(crate) queued: bool,
    /// Whether a revision left the trial out: the present problem does not have its point. Strategies ignore such a
    /// trial.
    pub(crate) left_out: bool,
    /// Where the point at which the trial was run lies relative to the points that may be suggested.
    pub(crate) position: Position,
    /// The row number of the candidate at which the trial was run, if the domain is a list of candidates.
    pub(crate) index: Option<u32>,
    /// The time when the trial was suggested or added, on the optimizer's clock.
    pub suggested_at: f64,
    /// The number of the event that started the trial.
    pub(super) started_by: u32,
    /// Data that few trials have. Without the box, a million trials would need four times the memory.
    pub(super) details: Option<Box<Details>>,
}

/// Data that most trials do not have.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Details {
    pub fidelity: Option<AtFidelity>,
    pub expires_at: Option<f64>,
    pub cost: Option<f64>,
    pub reported: Option<Box<Reported>>,
    pub curve: Option<Box<Curve>>,
}

/// The learning curve of a trial.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Curve {
    /// The last attempt that reported. Its reports replace the curve from the first step of the attempt on.
    pub attempt: u32,
    /// The steps in ascending order, with values in the user's sign. The value of a failed step is None.
    pub reports: Vec<(u32, Option<f64>)>,
    /// The end of the lease after the last report.
    pub expires_at: Option<f64>,
    /// The first and the last step of this attempt whose wall-clock times are known, with these times.
    pub times: Option<[(u32, f64); 2]>,
}

/// A fidelity in the user's units, and the same fidelity z in [0, 1].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct AtFidelity {
    pub value: f64,
    pub z: f64,
}

/// Data that very few reports have.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Reported {
    pub duration: Option<f64>,
    /// The point where the trial was run, if reported.
    pub run: Option<Point>,
    /// The attributes of reports, in order of arrival.
    pub attrs: Vec<String>,
    pub error: Option<Failure>,
    /// The remarks in order of arrival, with the numbers of their events.
    pub remarks: Vec<(u32, String)>,
}

impl Trial {
    /// Whether the strategy chose the point. Trials that were added or enqueued were not chosen.
    pub(crate) fn is_chosen(&self) -> bool {
        self.suggested && !self.queued
    }

    /// Whether the trial was run beyond a bound or at a row that is not a candidate. Such a trial informs the model, but
    /// is not the best trial.
    pub fn is_outside(&self) -> bool {
        self.position == Position::Outside
    }

    /// The cost of the evaluation, if reported.
    pub fn cost(&self) -> Option<f64> {
        self.details.as_ref()?.cost
    }

    /// The duration of the evaluation in seconds.
    pub fn duration(&self) -> Option<f64> {
        self.reported()?.duration
    }

    /// The fidelity in the user's units, if given.
    pub fn fidelity(&self) -> Option<f64> {
        Some(self.details.as_ref()?.fidelity?.value)
    }

    /// The fidelity z in [0, 1]. If the fidelity was not given, z is 1.
    pub(crate) fn z(&self) -> f64 {
        let details = self.details.as_ref();
        details
            .and_then(|details| details.fidelity)
            .map_or(1.0, |fidelity| fidelity.z)
    }

    /// The wall-clock time in seconds when the lease of the trial ends. Each report renews the lease.
    pub fn expires_at(&self) -> Option<f64> {
        let details = self.details.as_ref()?;
        let renewed = details.curve.as_ref().and_then(|curve| curve.expires_at);
        renewed.or(details.expires_at)
    }

    /// The reported steps of the learning curve in ascending order, in the user's sign. The value of a failed step is
    /// None.
    pub(super) fn reports(&self) -> &[(u32, Option<f64>)] {
        let curve = self
            .details
            .as_ref()
            .and_then(|details| details.curve.as_ref());
        curve.map_or(&[], |curve| &curve.reports)
    }

    /// The attempt that reported last.
    pub(crate) fn attempt(&self) -> u32 {
        let curve = self
            .details
            .as_ref()
            .and_then(|details| details.curve.as_ref());
        curve.map_or(0, |curve| curve.attempt)
    }

    /// Forecasts the duration of a complete evaluation in seconds, from the times of the reports: the time up to the
    /// last report, plus the remaining steps at the mean time per step. Returns `None` if the times are unknown or not
    /// in the order of the steps. The start of a later attempt is unknown, so all steps of this attempt are assumed to
    /// take the mean time.
    pub(crate) fn complete_duration(&self, started_at: Option<f64>, steps: u32) -> Option<f64> {
        let curve = self.details.as_ref()?.curve.as_ref()?;
        let [(first, first_at), (last, last_at)] = curve.times?;
        let elapsed = started_at
            .filter(|_| curve.attempt == 0)
            .map(|start| last_at - start);
        let per_step = match last > first {
            true => (last_at - first_at) / f64::from(last - first),
            false => elapsed? / f64::from(last),
        };
        let elapsed = elapsed.unwrap_or(per_step * f64::from(last));
        let duration = elapsed + per_step * f64::from(steps.saturating_sub(last));
        (per_step > 0.0 && duration > 0.0 && duration.is_finite()).then_some(duration)
    }

    /// Adds a step to the curve, with its wall-clock time. A new attempt replaces the curve from the first step of the
    /// attempt on.
    pub(super) fn report(&mut self, step: u32, value: Option<f64>, attempt: u32, at: Option<f64>) {
        let details = self.details.get_or_insert_default();
        let curve = details.curve.get_or_insert_default();
        if attempt > curve.attempt {
            curve.attempt = attempt;
            curve.reports.retain(|report| report.0 < step);
            curve.times = None;
        }
        match (&mut curve.times, at) {
            (times @ None, Some(at)) => *times = Some([(step, at); 2]),
            (Some([_, last]), Some(at)) if step > last.0 => *last = (step, at),
            _ => {}
        }
        match curve.reports.binary_search_by_key(&step, |report| report.0) {
            Ok(i) => curve.reports[i].1 = value,
            Err(i) => curve.reports.insert(i, (step, value)),
        }
    }

    /// Renews the lease for its original length, counted from time `at`.
    pub(super) fn renew_lease(&mut self, started_at: f64, at: f64) {
        let Some(details) = self.details.as_mut() else {
            return;
        };
        if let (Some(end), Some(curve)) = (details.expires_at, details.curve.as_mut()) {
            let known = curve.expires_at.unwrap_or(end);
            curve.expires_at = Some(known.max(at + (end - started_at)));
        }
    }

    /// The attributes of reports as JSON objects, in order of arrival.
    pub fn reported_attrs(&self) -> &[String] {
        self.reported().map_or(&[], |reported| &reported.attrs)
    }

    /// The remarks in order of arrival, with the numbers of their events.
    pub(super) fn remarks(&self) -> &[(u32, String)] {
        self.reported().map_or(&[], |reported| &reported.remarks)
    }

    /// The error of a failure, if reported.
    pub fn error(&self) -> Option<&Failure> {
        self.reported()?.error.as_ref()
    }

    /// The point where the trial was run, if reported.
    pub(super) fn run(&self) -> Option<&Point> {
        self.reported()?.run.as_ref()
    }

    fn reported(&self) -> Option<&Reported> {
        self.details.as_ref()?.reported.as_deref()
    }

    pub(super) fn reported_mut(&mut self) -> &mut Reported {
        let details = self.details.get_or_insert_default();
        details.reported.get_or_insert_default()
    }

    /// Stores the data of a report. Earlier data are kept if the report has none.
    pub(super) fn set_data(&mut self, data: &Data) {
        if data.cost.is_some() {
            self.details.get_or_insert_default().cost = data.cost;
        }
        if data.point.is_none()
            && data.error.is_none()
            && data.duration.is_none()
            && data.attrs.is_none()
        {
            return;
        }
        let reported = self.reported_mut();
        if let Some(point) = &data.point {
            reported.run = Some(point.clone().unsigned_zeros());
        }
        reported.error = data.error.clone().or(reported.error.take());
        reported.duration = data.duration.or(reported.duration);
        reported.attrs.extend(data.attrs.clone());
    }
}

/// The eras of the parts of a trial: the problem of an era has the part. A part that a revision could not convert stays
/// in its earlier era.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Eras {
    pub start: usize,
    /// The era of the point where the trial was run, if it was reported.
    pub run: usize,
    pub context: usize,
    pub fidelity: usize,
}

impl Eras {
    /// All parts belong to one era.
    pub fn all(era: usize) -> Self {
        Self {
            start: era,
            run: era,
            context: era,
            fidelity: era,
        }
    }
}

/// What the ledger stores for a trial that started before the last revision.
#[derive(Debug, Clone, Default)]
pub(super) struct Revised {
    /// The point of the start. None if it is the point of the event.
    pub start: Option<Point>,
    /// The context. None if it is the context of the event.
    pub context: Option<Vec<f64>>,
    pub eras: Eras,
    pub left_out: Option<String>,
    /// The point where the trial was run before the last revision to another problem, if it was reported.
    pub run: Option<Point>,
}

/// The ranking of the current values at the highest fidelity observed, without trials that were run outside the domain.
/// If values are equal, the trial with the smallest number comes first.
///
/// The ranking is a heap of all values. An outdated entry, or an entry with a lower fidelity, stays in the heap until
/// it reaches the top. Therefore replacing a value costs O(log n) instead of O(n).
#[derive(Debug, Clone, Default)]
pub(super) struct Ranking {
    heap: BinaryHeap<Ranked>,
    /// The highest fidelity of a trial with a value.
    highest: f64,
}

#[derive(Debug, Clone, PartialEq)]
struct Ranked {
    value: f64,
    number: u32,
}

impl Ranked {
    fn new(value: f64, number: TrialNumber) -> Self {
        Self {
            value: value + 0.0, // −0.0 and 0.0 are equal values
            number: number as u32,
        }
    }
}

impl Eq for Ranked {}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_value = self.value.total_cmp(&other.value);
        by_value.then_with(|| other.number.cmp(&self.number))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

// `ranked` returns the present value of a trial, oriented so that larger values are better, and its fidelity z.
impl Ranking {
    /// Ranks the present values of `n` trials.
    pub fn of(n: usize, ranked: impl Fn(TrialNumber) -> Option<(f64, f64)>) -> Self {
        let mut ranking = Self::default();
        (0..n).for_each(|number| ranking.insert(number, &ranked));
        ranking
    }

    /// Inserts the present value of a trial.
    pub fn insert(
        &mut self,
        number: TrialNumber,
        ranked: impl Fn(TrialNumber) -> Option<(f64, f64)>,
    ) {
        let Some((value, z)) = ranked(number) else {
            return;
        };
        self.highest = self.highest.max(z);
        if z < self.lowest() {
            return;
        }
        self.heap.push(Ranked::new(value, number));
        self.drop_outdated(ranked);
    }

    /// Updates the ranking after a value at fidelity `z` was withdrawn from one of `n` trials. If this trial was the
    /// last one at the highest fidelity, the highest fidelity decreases.
    pub fn withdraw(
        &mut self,
        z: f64,
        n: usize,
        ranked: impl Fn(TrialNumber) -> Option<(f64, f64)>,
    ) {
        let is_highest = |number| ranked(number).is_some_and(|(_, z)| z >= self.highest);
        if z < self.highest || (0..n).any(is_highest) {
            self.drop_outdated(ranked);
        } else {
            *self = Self::of(n, ranked);
        }
    }

    /// The lowest fidelity that counts as the highest fidelity.
    fn lowest(&self) -> f64 {
        self.highest - TOLERANCE
    }

    /// Removes outdated entries from the top of the heap.
    fn drop_outdated(&mut self, ranked: impl Fn(TrialNumber) -> Option<(f64, f64)>) {
        let lowest = self.lowest();
        let is_current = |top: &Ranked| {
            let present = ranked(top.number as usize);
            present.is_some_and(|(value, z)| value == top.value && z >= lowest)
        };
        while self.heap.peek().is_some_and(|top| !is_current(top)) {
            self.heap.pop();
        }
    }

    /// The trial with the best value.
    pub fn best(&self) -> Option<TrialNumber> {
        self.heap.peek().map(|top| top.number as usize)
    }
}
