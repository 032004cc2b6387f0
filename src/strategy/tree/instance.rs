//! One search of the tree with its own ν and ρ: what it has visited, the moments of subtrees, and their B values.

use crate::domain::fidelity::TOLERANCE;
use crate::strategy::tree::bounds::Frozen;
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
    /// B of both halves: +∞ where one was not visited, −∞ where nothing can be suggested.
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
    /// What a failed trial counts as: the worst value observed.
    pub worst: Option<f64>,
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
            worst: None,
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

    /// B of both halves of a cell.
    pub fn slots(&self, node: u32) -> [f64; 2] {
        self.subtrees[node as usize].slots
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

    /// Makes a cell whose own values changed a candidate of the front, if it can be halved further.
    pub fn offer_changed(&mut self, node: u32, partition: &Partition) {
        let cell = partition.node(node);
        let mean = cell.own.moments.mean;
        let candidate = Candidate { mean, node };
        let is_candidate = self.front.is_some() && self.is_candidate(candidate, partition);
        if let Some(front) = self.front.as_mut().filter(|_| is_candidate) {
            front.offer(cell.depth, candidate);
        }
        self.subtrees[node as usize].is_offered = is_candidate;
    }

    /// Whether a cell has this mean, and a half that was not visited.
    fn is_candidate(&self, candidate: Candidate, partition: &Partition) -> bool {
        let moments = partition.node(candidate.node).own.moments;
        moments.count > 0
            && moments.mean == candidate.mean
            && self.is_visited(candidate.node)
            && self.open_halves(candidate.node, partition) != [false; 2]
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
            let is_candidate = self.is_candidate(candidate, partition);
            if !is_candidate && partition.node(candidate.node).own.moments.mean == candidate.mean {
                self.subtrees[candidate.node as usize].is_offered = false;
            }
            is_candidate
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

    /// B(h, l) = min{ U + ν·ρ^h + ζ(z_h), max over both halves of B }, of a leaf that cannot be halved its first part.
    fn b_value(&self, node: u32, partition: &Partition) -> f64 {
        let Subtree {
            moments,
            n_failed,
            slots,
            ..
        } = self.subtrees[node as usize];
        let cell = partition.node(node);
        let moments = match self.worst {
            Some(worst) => moments.merge(Moments::of_equal(n_failed, worst)),
            None => moments,
        };
        let upper = match moments.count {
            0 => f64::INFINITY,
            _ => self.bound.upper(moments, self.frozen) + self.slack(cell.depth),
        };
        match cell.split() {
            Some(_) => upper.min(slots[0].max(slots[1])),
            // Its only points are in flight already.
            None if cell.own.n_in_flight > 0 => f64::NEG_INFINITY,
            None => upper,
        }
    }
}
