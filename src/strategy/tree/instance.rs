//! One search of the tree with its own ν and ρ: what it has visited, the moments of subtrees, and their B values.

use crate::domain::fidelity::TOLERANCE;
use crate::strategy::tree::bounds::{Frozen, success_bound};
use crate::strategy::tree::front::{Candidate, Front};
use crate::strategy::tree::moments::Moments;
use crate::strategy::tree::partition::{Partition, ROOT};
use crate::strategy::tree::region::Side;
use crate::strategy::tree::settings::Bound;

/// ν in units of the scale, where it is not given and every trial is a full evaluation. Measured, see
/// docs/tree_search.md.
const NU_SHARE: f64 = 0.1;

/// Every so many turns one is that of the front. Measured, see docs/tree_search.md.
const FRONT_EVERY: u64 = 2;

/// What an instance knows of a cell of the partition.
#[derive(Debug, Clone, PartialEq)]
struct Subtree {
    /// Of all observations in the visited cells of its subtree.
    moments: Moments,
    n_failed: u32,
    is_visited: bool,
    /// Whether it is among the candidates of the front, with the mean that it has.
    is_offered: bool,
    /// B of both halves: +∞ where one was not visited, −∞ where nothing can be suggested. Of a half without values a
    /// factor, see [`Instance::b_value`].
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

/// How ν is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Nu {
    Given(f64),
    /// A share of the scale, which shrinks as the search closes in.
    Scale,
    /// The largest scale so far: with fidelities cells are to stay cheap until they are small.
    Spread(f64),
}

/// A search with its own smoothness parameters.
#[derive(Debug, Clone)]
pub struct Instance {
    nu: Nu,
    rho: f64,
    bound: Bound,
    /// How many cells it visited, repeated visits counted.
    pub t: u64,
    pub frozen: Frozen,
    /// Whether all B values are to be found anew.
    pub is_stale: bool,
    /// C of ζ(z) = C·(1 − z), where trials have a fidelity and it is known.
    pub bias: Option<f64>,
    subtrees: Vec<Subtree>,
    /// Where every other turn is that of the best cells of every size.
    front: Option<Front>,
    /// ρ^h by depth, up to one beyond the deepest cell.
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

    /// Gives every other turn to the best cells of every size.
    pub fn with_front(mut self) -> Self {
        self.front = Some(Front::default());
        self
    }

    /// Whether anything follows from the values observed that is not given.
    pub fn needs_scale(&self) -> bool {
        !matches!(self.nu, Nu::Given(_)) || self.bound.needs_scale()
    }

    /// The scale has changed.
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

    /// ν·ρ^h.
    pub fn width(&self, depth: u32) -> f64 {
        self.nu() * self.powers[depth as usize]
    }

    /// z_h = 1 − ν·ρ^h/C, at which the bias of a value is no more than how f varies in the cell.
    pub fn fidelity(&self, depth: u32) -> f64 {
        self.bias.map_or(1.0, |bias| {
            (1.0 - self.width(depth) / bias).clamp(TOLERANCE, 1.0)
        })
    }

    /// How far from f a mean over the cell may be: ν·ρ^h + ζ(z_h).
    pub fn slack(&self, depth: u32) -> f64 {
        let zeta = self
            .bias
            .map_or(0.0, |bias| bias * (1.0 - self.fidelity(depth)));
        self.width(depth) + zeta
    }

    pub fn is_visited(&self, node: u32) -> bool {
        self.subtrees[node as usize].is_visited
    }

    /// B of both halves of a cell. In a subtree without values these are factors of the optimism around it.
    pub fn slots(&self, node: u32, partition: &Partition) -> [f64; 2] {
        let Subtree { moments, slots, .. } = self.subtrees[node as usize];
        [0, 1].map(|side| {
            let child = partition.node(node).child(side);
            let has_values = child.is_some_and(|child| self.moments(child).count > 0);
            // +∞ where nothing has finished, −∞ where nothing can be suggested.
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

    /// Makes room for a cell that was created at this depth.
    pub fn push(&mut self, depth: u32) {
        self.subtrees.push(Subtree::UNVISITED);
        // The halves of the cell are asked for before they exist.
        while self.powers.len() <= depth as usize + 1 {
            self.powers
                .push(self.powers[self.powers.len() - 1] * self.rho);
        }
    }

    pub fn pop(&mut self) {
        self.subtrees.pop();
    }

    /// Takes a cell in; [`Self::update_from`] has to follow.
    pub fn visit(&mut self, node: u32) {
        self.subtrees[node as usize].is_visited = true;
    }

    /// Forgets a visit of a leaf.
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

    /// Gives a half of a cell its B value, unless nothing can be suggested there.
    pub fn set_slot(&mut self, node: u32, side: Side, b: f64, partition: &Partition) {
        let b = match partition.node(node).empty[side] {
            true => f64::NEG_INFINITY,
            false => b,
        };
        self.subtrees[node as usize].slots[side] = b;
    }

    /// Makes a cell a candidate of the front again, if it is none and can be halved further.
    pub fn offer(&mut self, node: u32, partition: &Partition) {
        if !self.subtrees[node as usize].is_offered {
            self.offer_changed(node, partition);
        }
    }

    /// Makes a cell whose worth changed a candidate of the front, if it can be halved further.
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

    /// Whether a cell was visited, and has a half that was not.
    fn can_be_halved(&self, node: u32, partition: &Partition) -> bool {
        self.is_visited(node) && self.open_halves(node, partition) != [false; 2]
    }

    /// Which halves of a cell may be visited, and were not.
    pub fn open_halves(&self, node: u32, partition: &Partition) -> [bool; 2] {
        let cell = partition.node(node);
        [0, 1].map(|side| {
            let child = cell.child(side);
            let is_visited = child.is_some_and(|child| self.is_visited(child));
            cell.split().is_some() && !cell.empty[side] && !is_visited
        })
    }

    /// One beyond the largest depth of a candidate of the front.
    pub fn front_depth(&self) -> usize {
        self.front.as_ref().map_or(0, Front::depth)
    }

    /// Drops the candidates of the front from a depth on.
    pub fn truncate_front(&mut self, depth: usize) {
        if let Some(front) = &mut self.front {
            front.truncate(depth);
        }
    }

    /// Down to which depth this turn is that of the front, if it is; one beyond it.
    pub fn front_turn(&self) -> Option<usize> {
        let depth = self.front_depth();
        (depth > 0 && self.t % FRONT_EVERY == FRONT_EVERY - 1).then_some(depth)
    }

    /// The best cell of those no deeper than this that can be halved further.
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

    /// Finds the moments and B values from a visited cell to the root anew.
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

    /// Finds all B values anew, children before their parents.
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

    /// U + ν·ρ^h + ζ(z_h) of a cell with values. Failures are left out.
    fn upper(&self, node: u32, partition: &Partition) -> f64 {
        let moments = self.subtrees[node as usize].moments;
        self.bound.upper(moments, self.frozen) + self.slack(partition.node(node).depth)
    }

    /// B(h, l) = min{ U + ν·ρ^h + ζ(z_h), max over both halves of B }. A leaf that cannot be halved has the first part.
    ///
    /// Failures do not change the mean. They multiply the optimism, U + ν·ρ^h + ζ(z_h) − mean, by p⁺, the bound on the
    /// rate of success. A subtree without values has no mean: it takes mean and optimism of the smallest cell around
    /// it that has values, and multiplies the optimism by the odds p⁺/(1 − p⁺), which are +∞ before the first failure.
    /// Its B value here is this factor; [`Self::slots`] converts it.
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
            // Its only points are in flight already.
            None if cell.own.n_in_flight > 0 => f64::NEG_INFINITY,
            None => upper,
        }
    }
}
