//! An instance: a search of the tree with one pair ν, ρ, its visited cells, and the moments and B values of subtrees.

use crate::problem::fidelity::TOLERANCE;
use crate::strategy::tree::bounds::{Frozen, success_bound};
use crate::strategy::tree::front::{Candidate, Front};
use crate::strategy::tree::moments::Moments;
use crate::strategy::tree::partition::{Partition, ROOT};
use crate::strategy::tree::region::Side;
use crate::strategy::tree::settings::Bound;

/// The default of ν for full evaluations, as a multiple of the scale. Experiments: docs/tree_search_figures.md.
const NU_SHARE: f64 = 0.1;

/// The front is used once every `FRONT_EVERY` turns. Experiments: docs/tree_search_figures.md.
const FRONT_EVERY: u64 = 2;

/// The data that an instance stores for a cell of the partition.
#[derive(Debug, Clone, PartialEq)]
struct Subtree {
    /// The moments of all observations in the visited cells of the subtree.
    moments: Moments,
    n_failed: u32,
    is_visited: bool,
    /// Whether the front contains the cell with its current mean.
    is_offered: bool,
    /// The B values of the two halves: +∞ if not visited, −∞ if the points of the half cannot be suggested, and the
    /// odds of [`Instance::b_value`] if the half does not have values.
    slots: [f64; 2],
}

impl Subtree {
    const UNVISITED: Subtree = Subtree {
        moments: Moments {
            count: 0,
            mean: 0.0,
            m2: 0.0,
        },
        n_failed: 0,
        is_visited: false,
        is_offered: false,
        slots: [f64::INFINITY; 2],
    };
}

/// The source of ν.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Nu {
    Given(f64),
    /// A fixed multiple of the current scale, which decreases as the search converges.
    Scale,
    /// The largest scale so far, which never decreases, so that the search uses low fidelities until cells are small.
    Spread(f64),
}

/// A search of the tree with one pair of smoothness parameters ν and ρ.
#[derive(Debug, Clone)]
pub struct Instance {
    nu: Nu,
    rho: f64,
    bound: Bound,
    /// The number t of visits to cells, repeated visits included.
    pub t: u64,
    pub frozen: Frozen,
    /// Whether all B values need to be recomputed.
    pub is_stale: bool,
    /// The constant C of ζ(z) = C·(1 − z), if trials have a fidelity and C is known.
    pub bias: Option<f64>,
    subtrees: Vec<Subtree>,
    /// The front, if it is used.
    front: Option<Front>,
    /// ρ^h for every depth h from 0 to the depth of the deepest cell plus one.
    powers: Vec<f64>,
}

impl Instance {
    pub fn new(nu: Nu, rho: f64, bound: Bound) -> Self {
        Self {
            nu,
            rho,
            bound,
            t: 0,
            frozen: Frozen {
                log_t: 0.0,
                scale: 1.0,
            },
            is_stale: false,
            bias: None,
            front: None,
            subtrees: vec![Subtree::UNVISITED],
            powers: vec![1.0, rho],
        }
    }

    /// Adds a front to the instance, to be used every [`FRONT_EVERY`] turns.
    pub fn with_front(mut self) -> Self {
        self.front = Some(Front::default());
        self
    }

    /// Whether ν or a constant of the bound is computed from the observed values.
    pub fn needs_scale(&self) -> bool {
        !matches!(self.nu, Nu::Given(_)) || self.bound.needs_scale()
    }

    /// Sets a new scale.
    pub fn set_scale(&mut self, scale: f64) {
        self.frozen.scale = scale;
        self.is_stale = true;
        if let Nu::Spread(largest) = &mut self.nu {
            *largest = largest.max(scale);
        }
    }

    /// ν in units of f.
    pub fn nu(&self) -> f64 {
        match self.nu {
            Nu::Given(nu) => nu,
            Nu::Scale => NU_SHARE * self.frozen.scale,
            Nu::Spread(0.0) => self.frozen.scale,
            Nu::Spread(largest) => largest,
        }
    }

    pub fn rho(&self) -> f64 {
        self.rho
    }

    /// The bound ν·ρ^h on the variation of f in a cell at this depth.
    pub fn width(&self, depth: u32) -> f64 {
        self.nu() * self.powers[depth as usize]
    }

    /// The fidelity z_h = 1 − ν·ρ^h/C, at which the bias is at most the bound on the variation of f in the cell.
    pub fn fidelity(&self, depth: u32) -> f64 {
        self.bias.map_or(1.0, |bias| {
            (1.0 - self.width(depth) / bias).clamp(TOLERANCE, 1.0)
        })
    }

    /// ν·ρ^h + ζ(z_h), which bounds the difference between f at a point of a cell and the mean of the values in this
    /// cell.
    pub fn slack(&self, depth: u32) -> f64 {
        let zeta = self
            .bias
            .map_or(0.0, |bias| bias * (1.0 - self.fidelity(depth)));
        self.width(depth) + zeta
    }

    pub fn is_visited(&self, node: u32) -> bool {
        self.subtrees[node as usize].is_visited
    }

    /// The B values of the two halves of a cell, computed from the stored odds for a half without values.
    pub fn slots(&self, node: u32, partition: &Partition) -> [f64; 2] {
        let Subtree { moments, slots, .. } = self.subtrees[node as usize];
        [0, 1].map(|side| {
            let child = partition.node(node).child(side);
            let has_values = child.is_some_and(|child| self.moments(child).count > 0);
            // A slot is +∞ until a trial in the half has ended, and −∞ if its points cannot be suggested.
            if moments.count == 0 || has_values || slots[side].is_infinite() {
                return slots[side];
            }
            let optimism = self.upper(node, partition) - moments.mean;
            moments.mean + slots[side] * optimism
        })
    }

    pub fn moments(&self, node: u32) -> Moments {
        self.subtrees[node as usize].moments
    }

    /// Adds an entry for a new cell at this depth.
    pub fn push(&mut self, depth: u32) {
        self.subtrees.push(Subtree::UNVISITED);
        // The power for the next depth is stored, too, because the width of the halves is needed before they are
        // created.
        while self.powers.len() <= depth as usize + 1 {
            self.powers
                .push(self.powers[self.powers.len() - 1] * self.rho);
        }
    }

    pub fn pop(&mut self) {
        self.subtrees.pop();
    }

    /// Marks a cell as visited. Call [`Self::update_from`] afterwards.
    pub fn visit(&mut self, node: u32) {
        self.subtrees[node as usize].is_visited = true;
    }

    /// Undoes the visit of a leaf.
    pub fn leave(&mut self, node: u32, partition: &Partition) {
        let subtree = &mut self.subtrees[node as usize];
        subtree.is_visited = false;
        subtree.is_offered = false;
        subtree.moments = Moments::default();
        subtree.n_failed = 0;
        if let Some(parent) = partition.node(node).parent() {
            self.set_slot(parent, partition.side(node), f64::INFINITY, partition);
            self.update_from(parent, partition);
            self.offer(parent, partition);
        }
    }

    /// Sets the B value of one half of a cell, or −∞ if the half is marked as empty.
    pub fn set_slot(&mut self, node: u32, side: Side, b: f64, partition: &Partition) {
        let b = match partition.node(node).empty[side] {
            true => f64::NEG_INFINITY,
            false => b,
        };
        self.subtrees[node as usize].slots[side] = b;
    }

    /// Offers a cell to the front, unless it is a candidate already or cannot be halved.
    pub fn offer(&mut self, node: u32, partition: &Partition) {
        if !self.subtrees[node as usize].is_offered {
            self.offer_changed(node, partition);
        }
    }

    /// Offers a cell to the front after its mean has changed, unless it cannot be halved.
    pub fn offer_changed(&mut self, node: u32, partition: &Partition) {
        let mean = partition
            .worth(node)
            .filter(|_| self.can_be_halved(node, partition));
        if let (Some(front), Some(mean)) = (&mut self.front, mean) {
            front.offer(partition.node(node).depth, Candidate { mean, node });
            self.subtrees[node as usize].is_offered = true;
        } else {
            self.subtrees[node as usize].is_offered = false;
        }
    }

    /// Whether a cell was visited and at least one of its halves is open.
    fn can_be_halved(&self, node: u32, partition: &Partition) -> bool {
        self.is_visited(node) && self.open_halves(node, partition) != [false; 2]
    }

    /// Whether each half of a cell is open: neither marked as empty nor visited.
    pub fn open_halves(&self, node: u32, partition: &Partition) -> [bool; 2] {
        let cell = partition.node(node);
        [0, 1].map(|side| {
            let child = cell.child(side);
            let is_visited = child.is_some_and(|child| self.is_visited(child));
            cell.split().is_some() && !cell.empty[side] && !is_visited
        })
    }

    /// The largest depth of any candidate of the front so far, plus one.
    pub fn front_depth(&self) -> usize {
        self.front.as_ref().map_or(0, Front::depth)
    }

    /// Drops all candidates of the front at depth `depth` or deeper.
    pub fn truncate_front(&mut self, depth: usize) {
        if let Some(front) = &mut self.front {
            front.truncate(depth);
        }
    }

    /// The largest depth of any candidate plus one, or `None` if the front is not used in this turn.
    pub fn front_turn(&self) -> Option<usize> {
        let depth = self.front_depth();
        (depth > 0 && self.t % FRONT_EVERY == FRONT_EVERY - 1).then_some(depth)
    }

    /// Returns the best cell of the front down to `depth` that can be halved.
    pub fn best_down_to(&mut self, depth: usize, partition: &Partition) -> Option<u32> {
        let mut front = self.front.take()?;
        let best = front.best(depth, |candidate| {
            let node = candidate.node;
            let worth = partition.worth(node);
            let can_be_halved = self.can_be_halved(node, partition);
            if !can_be_halved {
                self.subtrees[node as usize].is_offered = false;
            }
            worth.filter(|_| can_be_halved)
        });
        self.front = Some(front);
        best
    }

    /// Updates the moments and B values on the path from a visited cell to the root.
    pub fn update_from(&mut self, node: u32, partition: &Partition) {
        let mut at = node;
        while self.is_visited(at) {
            self.update_moments(at, partition);
            let b = self.b_value(at, partition);
            let Some(parent) = partition.node(at).parent() else {
                break;
            };
            self.set_slot(parent, partition.side(at), b, partition);
            at = parent;
        }
    }

    /// Updates all B values. Children are updated before their parents.
    pub fn update_bounds(&mut self, partition: &Partition) {
        for node in (ROOT + 1..partition.len() as u32).rev() {
            if self.is_visited(node)
                && let Some(parent) = partition.node(node).parent()
            {
                let b = self.b_value(node, partition);
                self.set_slot(parent, partition.side(node), b, partition);
            }
        }
        self.is_stale = false;
    }

    fn update_moments(&mut self, node: u32, partition: &Partition) {
        let own = &partition.node(node).own;
        let (mut moments, mut n_failed) = (own.moments, own.n_failed);
        for side in 0..2 {
            if let Some(child) = partition.node(node).child(side) {
                let subtree = &self.subtrees[child as usize];
                moments = moments.merge(subtree.moments);
                n_failed += subtree.n_failed;
            }
        }
        let subtree = &mut self.subtrees[node as usize];
        subtree.moments = moments;
        subtree.n_failed = n_failed;
    }

    /// The bound U + ν·ρ^h + ζ(z_h) of a cell that has values. Failures are ignored.
    fn upper(&self, node: u32, partition: &Partition) -> f64 {
        let moments = self.subtrees[node as usize].moments;
        self.bound.upper(moments, self.frozen) + self.slack(partition.node(node).depth)
    }

    /// B(h, l) = min{ U + ν·ρ^h + ζ(z_h), max over both halves of B }. For a leaf that cannot be halved, B is the first
    /// term of the minimum.
    ///
    /// The difference U + ν·ρ^h + ζ(z_h) − mean is the *optimism* of the cell. If trials in the cell have failed, the
    /// optimism is multiplied by p⁺, the upper bound on the rate of success. A subtree without values has the mean of
    /// the smallest enclosing cell that has values, and the optimism of that cell times the odds p⁺/(1 − p⁺), which are
    /// +∞ before the first failure. For such a subtree, this method returns the odds, and [`Self::slots`] converts them
    /// to a B value.
    fn b_value(&self, node: u32, partition: &Partition) -> f64 {
        let Subtree {
            moments, n_failed, ..
        } = self.subtrees[node as usize];
        let p = success_bound(moments.count, n_failed);
        let upper = match (moments.count, n_failed) {
            (0, _) => p / (1.0 - p),
            (_, 0) => self.upper(node, partition),
            _ => moments.mean + p * (self.upper(node, partition) - moments.mean),
        };
        let cell = partition.node(node);
        match cell.split() {
            Some(_) => {
                let [first, second] = self.slots(node, partition);
                upper.min(first.max(second))
            }
            // The only distinct point of this cell is in flight, so the cell should not be chosen.
            None if cell.own.n_in_flight > 0 => f64::NEG_INFINITY,
            None => upper,
        }
    }
}
