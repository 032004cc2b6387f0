//! The partition and the instances, computed from the log. Changes by suggestions that are dropped from the log can be
//! undone.
//!
//! The state depends only on the changes in the log and their order, so replaying a log gives the same tree. The
//! moments of a cell are merged from the moments of its halves. Therefore the moments do not depend on the order in
//! which values arrive.
//!
//! B values, scales and the estimated bias depend on earlier values. After a withdrawal, the whole log is therefore
//! folded again without the withdrawn results. Cells do not depend on values, so every note stays valid.

mod trials;

use crate::error::{Error, Result};
use crate::ledger::{self, Effect, View};
use crate::problem::{Point, Position};
use crate::strategy::tree::bias::Bias;
use crate::strategy::tree::bounds::{Frozen, next_power};
use crate::strategy::tree::instance::Instance;
use crate::strategy::tree::note::{self, Place, Step};
use crate::strategy::tree::partition::{Partition, ROOT};
use crate::strategy::tree::settings::Refresh;

/// The cell of a trial that was run outside the domain. No cell counts such a trial.
const NOWHERE: u32 = u32::MAX;

/// The cell and the state of a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Placed {
    /// The cell to which the trial belongs, or [`NOWHERE`].
    node: u32,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    InFlight,
    Failed,
    Abandoned,
    Observed(f64),
}

/// A change made by a suggestion, recorded so that it can be undone.
#[derive(Debug, Clone, PartialEq)]
enum Change {
    /// A trial was started in cell `node`, where the highest fidelity of earlier trials was `z`.
    Started {
        node: u32,
        z: f32,
    },
    /// A marker that precedes the changes made by a suggestion.
    Begin {
        n_turns: u64,
    },
    Created,
    /// The depth of the front increased from `depth`.
    FrontDeepened {
        instance: usize,
        depth: usize,
    },
    Visited {
        instance: usize,
        node: u32,
    },
    /// An instance made a step. `frozen`: the frozen quantities before the step.
    Stepped {
        instance: usize,
        frozen: Frozen,
    },
    Empty {
        parent: u32,
        side: usize,
    },
}

/// The tree, computed from the events that have been processed.
pub struct Forest {
    pub partition: Partition,
    pub instances: Vec<Instance>,
    refresh: Refresh,
    trials: Vec<Placed>,
    n_observed: u64,
    /// The number of values at which the scale is computed again.
    next_scale: u64,
    bias: Bias,
    /// The number of turns so far. The instances take turns in a fixed order; in its turn, an instance visits a cell.
    n_turns: u64,
    /// The changes made by the suggestions at the end of the log.
    changes: Vec<Change>,
    folded: usize,
    /// The partition, the instances and the bias of an empty log.
    origin: (Partition, Vec<Instance>, Bias),
}

impl Forest {
    pub fn new(
        partition: Partition,
        mut instances: Vec<Instance>,
        refresh: Refresh,
        bias: Bias,
    ) -> Self {
        for instance in &mut instances {
            instance.bias = bias.constant();
        }
        let origin = (partition.clone(), instances.clone(), bias.clone());
        Self {
            origin,
            partition,
            instances,
            bias,
            refresh,
            trials: Vec::new(),
            n_observed: 0,
            next_scale: 2,
            n_turns: 0,
            changes: Vec::new(),
            folded: 0,
        }
    }

    /// The index of the instance that takes the next turn.
    pub fn next_instance(&self) -> usize {
        (self.n_turns % self.instances.len() as u64) as usize
    }

    /// Updates the tree with the new events of the log.
    pub fn catch_up(&mut self, log: View) -> Result<()> {
        if log
            .last_withdrawal()
            .is_some_and(|event| event >= self.folded)
        {
            let (partition, instances, bias) = self.origin.clone();
            *self = Self::new(partition, instances, self.refresh, bias);
        }
        for i in self.folded.min(log.len())..log.len() {
            for change in log.changes(i) {
                let is_withdrawn = log.is_withdrawn_later(change.number, i);
                self.fold(change, is_withdrawn, log)?;
            }
            self.folded = i + 1;
        }
        Ok(())
    }

    /// Updates the tree with a change. If `is_withdrawn`, the result of the change is left out.
    fn fold(&mut self, change: ledger::Change, is_withdrawn: bool, log: View) -> Result<()> {
        let number = change.number;
        let z = log.of(number).z();
        if !matches!(
            change.effect,
            Effect::Started {
                suggested: true,
                ..
            }
        ) {
            self.changes.clear();
        }
        match change.effect {
            Effect::Started {
                suggested,
                note,
                reading,
            } => {
                let steps = note.as_deref().map(note::from_text).transpose()?;
                if suggested {
                    self.begin();
                }
                let node = match &steps {
                    Some(steps) => self.apply(steps)?,
                    None if self.is_outside(&log.started_here(number), log) => NOWHERE,
                    None => self.settle_new(&log.started_x(number)?),
                };
                self.start(node, z);
                if steps.is_some() {
                    self.bias.start(number);
                }
                if let Some(reading) = reading.filter(|_| !is_withdrawn) {
                    self.set(number, State::Observed(reading.value), log);
                }
            }
            Effect::Valued { reading, run } => {
                let before = self.trials[number].state;
                let has_moved = run.is_some();
                if let Some(point) = run {
                    self.set(number, State::Abandoned, log);
                    self.trials[number].node = match self.is_outside(&point, log) {
                        true => NOWHERE,
                        false => self.settle(&log.problem().encode(&point)?),
                    };
                }
                if !is_withdrawn {
                    self.set(number, State::Observed(reading.value), log);
                    self.update_bias(number, log);
                } else if has_moved {
                    self.set(number, before, log);
                }
            }
            Effect::Failed | Effect::Stopped if is_withdrawn => {}
            Effect::Failed => self.set(number, State::Failed, log),
            Effect::Dropped | Effect::Stopped | Effect::Withdrawn => {
                self.set(number, State::Abandoned, log)
            }
            Effect::Moved | Effect::Reported => {}
        }
        Ok(())
    }

    fn is_outside(&self, point: &Point, log: View) -> bool {
        log.problem().position(point) == Position::Outside
    }

    /// Applies the steps of a suggestion, and returns the cell of the suggestion.
    fn apply(&mut self, steps: &[Step]) -> Result<u32> {
        let mut last = ROOT;
        for step in steps {
            match *step {
                Step::Turn(place) => last = self.turn(place)?,
                Step::Empty(place) => self.mark_empty(place)?,
            }
        }
        Ok(last)
    }

    /// Returns an error if these steps are not valid for the next suggestion.
    pub fn check(&mut self, steps: &[Step]) -> Result<()> {
        self.begin();
        let applied = self.apply(steps);
        self.undo();
        applied.map(drop)
    }

    /// Performs the turn of the next instance, which visits the cell at `place`.
    pub fn turn(&mut self, place: Place) -> Result<u32> {
        let instance = self.next_instance();
        let node = self.node_at(place)?;
        let parent = self.partition.node(node).parent();
        if parent.is_some_and(|parent| !self.instances[instance].is_visited(parent)) {
            return Err(Error::Corrupt(format!(
                "cell {node} of the tree is visited before its parent"
            )));
        }
        self.n_turns += 1;
        self.visit(instance, node);
        self.step(instance);
        Ok(node)
    }

    /// Finds the cell of a new trial whose point was not chosen by an instance. Every instance counts the trial as a
    /// step.
    fn settle_new(&mut self, x: &[f64]) -> u32 {
        let node = self.settle(x);
        (0..self.instances.len()).for_each(|i| self.step(i));
        node
    }

    /// Finds the cell of a point that was not chosen by an instance. All instances that have visited the parent visit
    /// the cell.
    fn settle(&mut self, x: &[f64]) -> u32 {
        let is_visited = self.instances.iter().any(|it| it.is_visited(ROOT));
        let place = match is_visited {
            true => self.partition.find(x),
            false => Place::Old(ROOT),
        };
        let node = match place {
            Place::Old(node) => node,
            Place::New { parent, side } => self.create(parent, side),
        };
        for i in 0..self.instances.len() {
            let parent = self.partition.node(node).parent();
            if parent.is_none_or(|parent| self.instances[i].is_visited(parent)) {
                self.visit(i, node);
            }
        }
        node
    }

    fn node_at(&mut self, place: Place) -> Result<u32> {
        match place {
            Place::Old(node) if (node as usize) < self.partition.len() => Ok(node),
            Place::New { parent, side }
                if (parent as usize) < self.partition.len()
                    && self.partition.can_halve(parent)
                    && self.partition.node(parent).child(side).is_none() =>
            {
                Ok(self.create(parent, side))
            }
            _ => Err(note::wrong(&note::to_text(&[Step::Turn(place)]))),
        }
    }

    fn create(&mut self, parent: u32, side: usize) -> u32 {
        let node = self.partition.create(parent, side);
        let depth = self.partition.node(node).depth;
        for instance in &mut self.instances {
            instance.push(depth);
        }
        self.changes.push(Change::Created);
        node
    }

    fn visit(&mut self, i: usize, node: u32) {
        let instance = &mut self.instances[i];
        if !instance.is_visited(node) {
            self.changes.push(Change::Visited { instance: i, node });
            instance.visit(node);
            if self.partition.node(node).own.has_trial() {
                instance.update_from(node, &self.partition);
            }
            let depth = instance.front_depth();
            instance.offer(node, &self.partition);
            if instance.front_depth() > depth {
                self.changes
                    .push(Change::FrontDeepened { instance: i, depth });
            }
        }
    }

    fn step(&mut self, i: usize) {
        let instance = &mut self.instances[i];
        self.changes.push(Change::Stepped {
            instance: i,
            frozen: instance.frozen,
        });
        instance.t += 1;
        if next_power(instance.t) != next_power(instance.t - 1) {
            self.freeze(i);
        }
    }

    /// Marks a cell as empty: a feasible point was not found in the cell, and its points are not suggested.
    pub fn mark_empty(&mut self, place: Place) -> Result<()> {
        let partition = &self.partition;
        let exists = |node: u32| (node as usize) < partition.len();
        let half = match place {
            Place::Old(node) if exists(node) => {
                let parent = partition.node(node).parent();
                parent.map(|parent| (parent, partition.side(node)))
            }
            Place::New { parent, side } if exists(parent) && partition.can_halve(parent) => {
                Some((parent, side))
            }
            _ => None,
        };
        let wrong = || note::wrong(&note::to_text(&[Step::Empty(place)]));
        let (parent, side) = half.ok_or_else(wrong)?;
        if !self.partition.node(parent).empty[side] {
            self.changes.push(Change::Empty { parent, side });
            self.set_empty(parent, side, true);
        }
        Ok(())
    }

    fn set_empty(&mut self, parent: u32, side: usize, is_empty: bool) {
        self.partition.node_mut(parent).empty[side] = is_empty;
        for instance in &mut self.instances {
            instance.set_slot(parent, side, f64::INFINITY, &self.partition);
            let child = self.partition.node(parent).child(side);
            let from = child.filter(|child| instance.is_visited(*child));
            instance.update_from(from.unwrap_or(parent), &self.partition);
            instance.offer(parent, &self.partition);
        }
    }

    /// Stores the current log t⁺ for the bounds of the instance.
    fn freeze(&mut self, i: usize) {
        let t = match self.refresh {
            Refresh::Frozen => next_power(self.instances[i].t),
            Refresh::Exact => self.instances[i].t.max(1),
        };
        let instance = &mut self.instances[i];
        instance.frozen.log_t = libm::log(t as f64);
        instance.is_stale = true;
    }

    /// Updates the B values of all instances.
    pub fn update_bounds(&mut self) {
        for i in 0..self.instances.len() {
            if self.refresh == Refresh::Exact {
                self.freeze(i);
            }
            if self.instances[i].is_stale {
                self.instances[i].update_bounds(&self.partition);
            }
        }
    }

    /// Marks the beginning of the changes made by a suggestion.
    pub fn begin(&mut self) {
        self.changes.push(Change::Begin {
            n_turns: self.n_turns,
        });
    }

    /// Undoes the changes made by the last suggestion.
    pub fn undo(&mut self) {
        while let Some(change) = self.changes.pop() {
            match change {
                Change::Begin { n_turns } => {
                    self.n_turns = n_turns;
                    return;
                }
                Change::Started { node, z } => {
                    let own = &mut self.partition.node_mut(node).own;
                    own.z = z;
                    own.n_in_flight -= 1;
                    self.trials.pop();
                    self.update_in_flight(node);
                }
                Change::Created => {
                    self.partition.pop();
                    self.instances.iter_mut().for_each(Instance::pop);
                }
                Change::Visited { instance, node } => {
                    self.instances[instance].leave(node, &self.partition);
                }
                Change::FrontDeepened { instance, depth } => {
                    self.instances[instance].truncate_front(depth);
                }
                Change::Stepped { instance, frozen } => {
                    let instance = &mut self.instances[instance];
                    instance.t -= 1;
                    if instance.frozen != frozen {
                        instance.frozen = frozen;
                        instance.is_stale = true;
                    }
                }
                Change::Empty { parent, side } => self.set_empty(parent, side, false),
            }
        }
    }

    /// Undoes the changes made by suggestions that are no longer in the log.
    pub fn rewind(&mut self, log: View) {
        self.folded = self.folded.min(log.len());
        while self.trials.len() > log.n_trials() && !self.changes.is_empty() {
            self.undo();
        }
        self.bias.rewind(log);
    }
}
