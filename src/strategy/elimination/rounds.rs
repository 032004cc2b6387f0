//! The rounds, computed from the log. Each round contains its trials, and the values that had arrived at the end of the
//! round.
//!
//! Only trials that the strategy proposed belong to a round; enqueued and added trials do not. The data of a round are
//! final when the next round begins. Later events about trials in the round are ignored.
//! The current round forgets a value that is withdrawn.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::ledger::{Change, Effect, Reading, State, TrialNumber, View};
use crate::problem::Point;
use crate::strategy::elimination::note::Note;
use crate::strategy::elimination::settings::SubExponential;

/// An observed value.
#[derive(Debug, Clone, PartialEq)]
pub struct Datum {
    pub value: f64,
    /// The reported standard deviation of the noise, if any.
    pub std: Option<f64>,
    /// The point at which the trial was actually run.
    pub x: Vec<f64>,
}

/// A round that has begun.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Round {
    /// The number of the event that begins the round.
    pub begin: usize,
    /// The trials of the round in order. Each step of the round is one trial.
    pub trials: Vec<TrialNumber>,
    /// The delay model when the round began.
    pub delay: Option<SubExponential>,
    /// For each trial, the value that is used at the end of the round. Depending on the settings, the values come from this
    /// round only or from all rounds so far.
    pub data: BTreeMap<TrialNumber, Datum>,
}

/// All rounds, computed from the events of the log that have been processed so far.
#[derive(Debug, Clone, Default)]
pub struct Rounds {
    keep: bool,
    all: Vec<Round>,
    /// For each failed trial, the number of suggestions in all rounds when the trial failed.
    failed: BTreeMap<TrialNumber, usize>,
    /// The number of events of the log that have been processed.
    folded: usize,
}

impl Rounds {
    /// Creates the state for an empty log. If `keep` is true, later rounds also use the data of earlier rounds.
    pub fn new(keep: bool) -> Self {
        Self {
            keep,
            ..Self::default()
        }
    }

    /// The rounds that have begun.
    pub fn all(&self) -> &[Round] {
        &self.all
    }

    /// The total number of suggestions in all rounds.
    pub fn steps(&self) -> usize {
        self.all.iter().map(|round| round.trials.len()).sum()
    }

    /// The trials whose points count as explored in a round. The point of a failed trial counts as explored until the
    /// point should be tried again. The point of a withdrawn trial does not count.
    pub fn explored(&self, round: usize, log: View) -> Vec<TrialNumber> {
        let first = if self.keep { 0 } else { round };
        let rounds = self.all.iter().take(round + 1).skip(first);
        rounds
            .flat_map(|round| round.trials.iter().copied())
            .filter(|number| !self.is_tried_again(*number, log))
            .filter(|number| log.of(*number).state() != State::Withdrawn)
            .collect()
    }

    /// Whether the point of a failed trial should be tried again. A point is tried again 2 steps after the first
    /// failure at this point, 4 steps after the second failure, 8 steps after the third failure, and so on.
    fn is_tried_again(&self, number: TrialNumber, log: View) -> bool {
        if !self.failed.contains_key(&number) {
            return false;
        }
        let x = log.started_here(number);
        let here = self.failed.iter();
        let here = here.filter(|(other, _)| log.started_here(**other) == x);
        let (n_failures, last) =
            here.fold((0u32, 0), |(n, last), (_, steps)| (n + 1, last.max(*steps)));
        self.steps() >= last.saturating_add(1usize << n_failures.min(62))
    }

    /// Updates the rounds with the new events of the log.
    pub fn catch_up(&mut self, log: View) -> Result<()> {
        for i in self.folded..log.len() {
            for Change { number, effect } in log.changes(i) {
                match effect {
                    Effect::Started { note, .. } => {
                        if log.of(number).is_chosen() {
                            self.step(i, number, note.as_deref())?;
                        }
                    }
                    Effect::Valued { reading, run } => self.observe(number, reading, run, log)?,
                    Effect::Failed => {
                        self.failed.insert(number, self.steps());
                    }
                    Effect::Dropped | Effect::Stopped => {
                        self.failed.remove(&number);
                    }
                    Effect::Withdrawn => {
                        self.failed.remove(&number);
                        // The data of earlier rounds are final.
                        if let Some(round) = self.all.last_mut() {
                            round.data.remove(&number);
                        }
                    }
                    Effect::Moved | Effect::Reported => {}
                }
            }
            self.folded = i + 1;
        }
        Ok(())
    }

    fn step(&mut self, event: usize, number: TrialNumber, note: Option<&str>) -> Result<()> {
        let note = note.map(Note::from_text).transpose()?;
        if note.is_some() || self.all.is_empty() {
            let data = match self.all.last() {
                Some(last) if self.keep => last.data.clone(),
                _ => BTreeMap::new(),
            };
            self.all.push(Round {
                begin: event,
                trials: Vec::new(),
                delay: note.and_then(|note| note.delay),
                data,
            });
        }
        if let Some(round) = self.all.last_mut() {
            round.trials.push(number);
        }
        Ok(())
    }

    fn observe(
        &mut self,
        number: TrialNumber,
        reading: Reading,
        run: Option<Point>,
        log: View,
    ) -> Result<()> {
        self.failed.remove(&number);
        let counts = |round: &Round| round.trials.binary_search(&number).is_ok();
        let belongs = match self.keep {
            true => self.all.iter().any(counts),
            false => self.all.last().is_some_and(counts),
        };
        let Some(round) = self.all.last_mut().filter(|_| belongs) else {
            return Ok(());
        };
        // If the observation does not contain a point, keep the earlier point.
        let before = round.data.remove(&number).map(|datum| datum.x);
        let x = match (run, before) {
            (Some(point), _) => log.problem().encode(&point)?,
            (None, Some(before)) => before,
            (None, None) => log.started_x(number)?.into_owned(),
        };
        let datum = Datum {
            value: reading.value,
            std: reading.std,
            x,
        };
        round.data.insert(number, datum);
        Ok(())
    }

    /// Removes suggestions that are no longer in the log.
    pub fn rewind(&mut self, log: View) {
        self.folded = self.folded.min(log.len());
        let n_trials = log.n_trials();
        while let Some(round) = self.all.last_mut() {
            round.trials.retain(|number| *number < n_trials);
            if !round.trials.is_empty() {
                break;
            }
            self.all.pop();
        }
    }
}
