//! The table of results: the results of all outcomes of all trials.

use std::collections::BTreeMap;

use crate::ledger::event::{Failure, Mark, Reading, TrialNumber};
use crate::ledger::trial::State;

/// The results of all trials. A trial has a result in each column.
#[derive(Debug, Clone, Default)]
pub(super) struct Results {
    n_columns: usize,
    stored: Vec<Stored>,
    /// Data that few results have, by trial and column.
    extras: BTreeMap<(TrialNumber, usize), Extra>,
    /// The time of each event on the optimizer's clock.
    pub times: Vec<f64>,
}

/// The result of one outcome in one trial, as the table stores it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stored {
    /// The value in the user's units and sign, or NaN if there is none.
    pub value: f64,
    /// The number of the event at which the state last became another state than pending. Before the first such event,
    /// this event is the start of the trial. A withdrawal does not change this number.
    pub ended_by: u32,
    pub state: State,
}

/// Data that most results do not have.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Extra {
    pub std: Option<f64>,
    pub error: Option<Failure>,
    /// The withdrawn results, in order.
    pub withdrawn: Vec<Withdrawal>,
    /// The time of the end, if it differs from the time of the event: a revision can end a trial that lacks only results
    /// of removed outcomes.
    pub ended_at: Option<f64>,
    /// The mark of the value, until it is confirmed.
    pub mark: Option<Mark>,
}

/// The result of one outcome in one trial, in the user's units and sign.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'a> {
    table: &'a Results,
    number: TrialNumber,
    column: usize,
    pub stored: Stored,
}

impl Extra {
    /// These data in another column.
    fn at_column(&self, column: usize) -> Self {
        let outcome = column as u32;
        Self {
            mark: self.mark.map(|mark| Mark { outcome, ..mark }),
            ..self.clone()
        }
    }
}

impl Stored {
    /// The missing result of a trial that an event started.
    pub fn missing(started_by: u32) -> Self {
        Self {
            state: State::Pending,
            value: f64::NAN,
            ended_by: started_by,
        }
    }
}

impl Results {
    pub fn new(n_columns: usize) -> Self {
        Self {
            n_columns,
            ..Self::default()
        }
    }

    pub fn reserve(&mut self, n_trials: usize, n_events: usize) {
        self.stored.reserve(n_trials * self.n_columns);
        self.times.reserve(n_events);
    }

    /// Adds the missing results of a trial that an event started.
    pub fn start(&mut self, started_by: u32) {
        let missing = std::iter::repeat_n(Stored::missing(started_by), self.n_columns);
        self.stored.extend(missing);
    }

    /// Removes the last trial, whose event is the last one.
    pub fn pop(&mut self) {
        let n = self.stored.len() - self.n_columns;
        self.stored.truncate(n);
        self.times.pop();
    }

    pub fn entry(&self, number: TrialNumber, column: usize) -> Entry<'_> {
        Entry {
            table: self,
            number,
            column,
            stored: self.stored[number * self.n_columns + column],
        }
    }

    pub fn stored_mut(&mut self, number: TrialNumber, column: usize) -> &mut Stored {
        &mut self.stored[number * self.n_columns + column]
    }

    pub fn extra_mut(&mut self, number: TrialNumber, column: usize) -> &mut Extra {
        self.extras.entry((number, column)).or_default()
    }

    /// Marks the value of a result, or removes its mark.
    pub fn set_mark(&mut self, number: TrialNumber, column: usize, mark: Option<Mark>) {
        match mark {
            Some(_) => self.extra_mut(number, column).mark = mark,
            None => {
                if let Some(extra) = self.extras.get_mut(&(number, column)) {
                    extra.mark = None;
                }
            }
        }
    }

    /// Ends a result by an event.
    pub fn end(&mut self, number: TrialNumber, column: usize, state: State, event: u32) {
        // If the result has this state or had it when it was withdrawn, the event that ended it before is kept.
        if self.entry(number, column).outcome() != state {
            self.stored_mut(number, column).ended_by = event;
            if let Some(extra) = self.extras.get_mut(&(number, column)) {
                extra.ended_at = None;
            }
        }
        self.stored_mut(number, column).state = state;
    }

    /// Takes back a result.
    pub fn withdraw(&mut self, number: TrialNumber, column: usize, withdrawal: Withdrawal) {
        let extra = self.extra_mut(number, column);
        extra.withdrawn.push(withdrawal);
        extra.std = None;
        extra.mark = None;
        let stored = self.stored_mut(number, column);
        stored.value = f64::NAN;
        stored.state = State::Withdrawn;
    }

    /// Replaces the columns by copies of the source columns. `trials` is the earlier column of whole trials.
    pub fn revise(&mut self, sources: &[Source], trials: usize) {
        let mut stored = Vec::with_capacity(self.stored.len() / self.n_columns * sources.len());
        for known in self.stored.chunks_exact(self.n_columns) {
            let never_measured = match known[trials].state {
                State::Pending => State::Pending,
                _ => State::Abandoned,
            };
            stored.extend(sources.iter().map(|&(source, is_known)| match is_known {
                true => known[source],
                false => Stored {
                    value: f64::NAN,
                    state: never_measured,
                    ..known[source]
                },
            }));
        }
        self.stored = stored;
        self.n_columns = sources.len();
        for ((number, column), extra) in std::mem::take(&mut self.extras) {
            let own = sources.iter().enumerate();
            let own = own.filter(|(_, source)| **source == (column, true));
            let copies = own.map(|(i, _)| ((number, i), extra.at_column(i)));
            self.extras.extend(copies);
        }
    }
}

impl<'a> Entry<'a> {
    pub fn state(self) -> State {
        self.stored.state
    }

    /// The value, if there is one.
    pub fn value(self) -> Option<f64> {
        Some(self.stored.value).filter(|value| !value.is_nan())
    }

    /// The value with its noise, if there is one.
    pub fn reading(self) -> Option<Reading> {
        let (value, std) = (self.value()?, self.std());
        Some(Reading { value, std })
    }

    fn extra(self) -> Option<&'a Extra> {
        self.table.extras.get(&(self.number, self.column))
    }

    pub fn std(self) -> Option<f64> {
        self.extra()?.std
    }

    pub fn error(self) -> Option<&'a Failure> {
        self.extra()?.error.as_ref()
    }

    /// The mark of the value, if nobody has confirmed the value.
    pub fn mark(self) -> Option<Mark> {
        self.extra()?.mark
    }

    /// The results that were taken back, in order.
    pub fn withdrawals(self) -> &'a [Withdrawal] {
        self.extra().map_or(&[], |extra| &extra.withdrawn)
    }

    /// The state or, for a withdrawn result, the state before the withdrawal. A withdrawn result may be awaited again.
    pub fn outcome(self) -> State {
        let withdrawn = || self.withdrawals().last().map(|last| last.outcome);
        match self.state() {
            state @ (State::Withdrawn | State::Pending) => withdrawn().unwrap_or(state),
            state => state,
        }
    }

    /// The time of the event that ended the result, on the optimizer's clock. Before a first result, this time is the
    /// start of the trial.
    pub fn ended_at(self) -> f64 {
        let other = self.extra().and_then(|extra| extra.ended_at);
        other.unwrap_or_else(|| self.table.times[self.stored.ended_by as usize])
    }
}

/// A result that was taken back.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Withdrawal {
    /// The state before the withdrawal: observed, failed or stopped.
    pub outcome: State,
    /// The value of an observed outcome, in the user's sign.
    pub value: Option<f64>,
    pub reason: Option<String>,
    /// The number of the event.
    pub by: u32,
}

/// What the ledger stores for a column of results.
#[derive(Debug, Clone, Default)]
pub(super) struct Column {
    /// The position of the outcome in each era. None if it was not declared.
    pub positions: Vec<Option<usize>>,
    /// The trials that were abandoned after the last value or failure, earliest first.
    pub abandoned: Vec<TrialNumber>,
    /// The number of values, without the trials that a revision left out.
    pub n_observed: usize,
    /// For each trial that a revision left out, or whose outcome a revision added: the number of the first event that
    /// strategies see, or `u32::MAX`. One number for each trial does not suffice: a revision may add an outcome, or
    /// change the direction of one, while other outcomes of the trial stay as they are.
    pub shown_from: BTreeMap<TrialNumber, u32>,
    /// The first era whose notes strategies read. Earlier notes are about another problem.
    pub notes_from: usize,
}

/// The earlier column from which a column of a new problem is made, and whether the results of this column are kept.
pub(super) type Source = (usize, bool);

/// A change of the success of a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct OfSuccess {
    pub event: u32,
    /// Observed, failed or withdrawn.
    pub state: State,
}
