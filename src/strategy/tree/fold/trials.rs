//! Updates of the cells, the scale and the bias when the state of a trial changes.

use crate::ledger::{TrialNumber, View};
use crate::strategy::tree::bounds::scale_of;
use crate::strategy::tree::instance::Instance;

use super::{Change, Forest, NOWHERE, Placed, State};

/// The scale is recomputed when the number of values has increased by 1/8. More frequent updates would not improve the
/// search; at this frequency, updating all B values costs at most eight node updates per value on average.
const SCALE_SHARE: u64 = 8;

impl Forest {
    /// Adds a new trial to a cell.
    pub(super) fn start(&mut self, node: u32, z: f64) {
        self.trials.push(Placed {
            node,
            state: State::InFlight,
        });
        if node == NOWHERE {
            return;
        }
        let own = &mut self.partition.node_mut(node).own;
        self.changes.push(Change::Started { node, z: own.z });
        own.z = own.z.max(z as f32);
        own.n_in_flight += 1;
        self.update_in_flight(node);
    }

    /// Updates B values after the number of trials in flight in a cell has changed, which matters only in leaves that
    /// cannot be halved.
    pub(super) fn update_in_flight(&mut self, node: u32) {
        if self.partition.node(node).split().is_none() {
            self.update_from(node);
        }
    }

    pub(super) fn update_from(&mut self, node: u32) {
        for instance in &mut self.instances {
            instance.update_from(node, &self.partition);
        }
    }

    /// Sets the state of a trial.
    pub(super) fn set(&mut self, number: TrialNumber, state: State, log: View) {
        let Placed {
            node,
            state: before,
        } = self.trials[number];
        self.trials[number].state = state;
        if node == NOWHERE {
            return;
        }
        let trials = &self.trials;
        let measured = |number: u32| {
            let z = log.of(number as usize).z();
            match trials[number as usize].state {
                State::Observed(value) => (value, z),
                _ => (f64::NAN, z),
            }
        };
        if let (State::Observed(_), State::Observed(_)) = (before, state) {
            self.partition.update_values(node, measured);
        } else {
            match before {
                State::InFlight => self.partition.node_mut(node).own.n_in_flight -= 1,
                State::Failed => self.partition.node_mut(node).own.n_failed -= 1,
                State::Abandoned => {}
                State::Observed(_) => self.partition.remove_value(node, number, measured),
            }
            match state {
                State::InFlight => self.partition.node_mut(node).own.n_in_flight += 1,
                State::Failed => self.partition.node_mut(node).own.n_failed += 1,
                State::Abandoned => {}
                State::Observed(_) => self.partition.add_value(node, number, measured),
            }
        }
        self.count(before, state);
        match (before, state) {
            (State::InFlight, State::Abandoned) => self.update_in_flight(node),
            _ => self.update_from(node),
        }
        self.offer_changed(node);
    }

    /// Offers a cell to the front after its trials have changed, together with the failed cells inside that may be
    /// ranked by its mean.
    fn offer_changed(&mut self, node: u32) {
        let failed = self.partition.failed_inside(node);
        for instance in &mut self.instances {
            for changed in std::iter::once(node).chain(failed.iter().copied()) {
                instance.offer_changed(changed, &self.partition);
            }
        }
    }

    /// Updates the estimated bias constant with the value of a trial.
    pub(super) fn update_bias(&mut self, number: TrialNumber, log: View) {
        let node = self.trials[number].node;
        if node == NOWHERE {
            return;
        }
        let depth = self.partition.node(node).depth;
        let others = self.partition.values(node).filter(|other| *other != number);
        let widths = self.instances.iter().map(|instance| instance.width(depth));
        let width = widths.fold(0.0, f64::max);
        let measured = |number: TrialNumber| {
            let value = match self.trials[number] {
                Placed { node: NOWHERE, .. } => None,
                Placed {
                    state: State::Observed(value),
                    ..
                } => Some(value),
                _ => None,
            };
            (value, log.of(number).z())
        };
        self.bias.update(number, others, width, measured);
        for instance in &mut self.instances {
            if instance.bias != self.bias.constant() {
                instance.bias = self.bias.constant();
                instance.is_stale = true;
            }
        }
    }

    /// See `Bias::next_probe`.
    pub fn next_probe(&self) -> Option<f64> {
        self.bias.next_probe()
    }

    /// Updates the number of values and, after a sufficient increase, the scale.
    fn count(&mut self, before: State, state: State) {
        self.n_observed -= u64::from(matches!(before, State::Observed(_)));
        self.n_observed += u64::from(matches!(state, State::Observed(_)));
        if self.n_observed >= self.next_scale {
            self.next_scale = self.n_observed + (self.n_observed / SCALE_SHARE).max(1);
            self.update_scale();
        }
    }

    fn values(&self) -> impl Iterator<Item = f64> + '_ {
        let placed = self.trials.iter().filter(|trial| trial.node != NOWHERE);
        placed.filter_map(|trial| match trial.state {
            State::Observed(value) => Some(value),
            _ => None,
        })
    }

    /// Sets the scale to the best value minus the median of all values.
    fn update_scale(&mut self) {
        if !self.instances.iter().any(Instance::needs_scale) {
            return;
        }
        let Some(scale) = scale_of(&mut self.values().collect::<Vec<f64>>()) else {
            return;
        };
        for instance in &mut self.instances {
            instance.set_scale(scale);
        }
    }
}
