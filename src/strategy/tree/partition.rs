//! The partition of the domain into cells, with the observations in each cell. The cells are the nodes of a binary tree
//! in one array, in which every parent precedes its children.

use std::collections::HashMap;

use crate::ledger::TrialNumber;
use crate::problem::fidelity::TOLERANCE;
use crate::strategy::tree::moments::Moments;
use crate::strategy::tree::note::Place;
use crate::strategy::tree::region::{Region, Side, Space};

/// The number that marks a missing node or trial.
const NONE: u32 = u32::MAX;
/// The value of `split` for a cell that cannot be halved.
const WHOLE: u16 = u16::MAX;
/// The front ranks a failed cell by the mean of an enclosing cell, or as −∞ if more than this number of nested cells
/// have failed. Experiments: docs/tree_search_figures.md.
const MAX_FAILED: u32 = 4;
/// The number of the cell that contains the whole box.
pub const ROOT: u32 = 0;

/// A cell, whose halves are created when they receive their first trials.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    parent: u32,
    children: [u32; 2],
    pub depth: u32,
    /// The coordinate along which the cell is halved.
    split: u16,
    /// Whether each half is marked as empty, because a feasible point was not found in it.
    pub empty: [bool; 2],
    pub own: Own,
}

/// The trials that belong to the cell itself, and not to its halves.
#[derive(Debug, Clone, PartialEq)]
pub struct Own {
    pub moments: Moments,
    pub n_failed: u32,
    pub n_in_flight: u32,
    /// The highest fidelity among the trials that belong to the cell.
    pub z: f32,
    /// The first trial that has a value.
    first: u32,
}

/// The value and the fidelity of a trial.
pub type Measured = (f64, f64);

impl Own {
    /// Whether the cell has at least one trial that is observed, failed or in flight.
    pub fn has_trial(&self) -> bool {
        self.first != NONE || self.n_failed > 0 || self.n_in_flight > 0
    }
}

impl Node {
    /// The parent, or `None` for the root.
    pub fn parent(&self) -> Option<u32> {
        (self.parent != NONE).then_some(self.parent)
    }

    /// The half on this side, or `None` if this half does not exist.
    pub fn child(&self, side: Side) -> Option<u32> {
        (self.children[side] != NONE).then_some(self.children[side])
    }

    /// The coordinate along which the cell is halved, or `None` if the cell cannot be halved.
    pub fn split(&self) -> Option<usize> {
        let is_closed = self.split == WHOLE || self.empty == [true, true];
        (!is_closed).then_some(self.split as usize)
    }
}

/// All cells.
#[derive(Debug, Clone)]
pub struct Partition {
    space: Space,
    nodes: Vec<Node>,
    /// For each cell with more than one observed trial, the observed trials in order of arrival.
    repeats: HashMap<u32, Vec<u32>>,
    /// The half that will most likely be created next, stored when it is chosen, because its region is known then.
    next: Option<Next>,
}

/// A half that does not exist yet, and the coordinate along which it would be halved.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Next {
    parent: u32,
    side: Side,
    split: Option<usize>,
}

impl Partition {
    /// Creates a partition whose only cell is the whole box.
    pub fn new(space: Space) -> Self {
        let mut partition = Self {
            nodes: Vec::new(),
            repeats: HashMap::new(),
            next: None,
            space,
        };
        let split = partition.space.longest_side(&partition.space.whole());
        partition.push(NONE, 0, split);
        partition
    }

    pub fn space(&self) -> &Space {
        &self.space
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    pub fn node_mut(&mut self, node: u32) -> &mut Node {
        &mut self.nodes[node as usize]
    }

    /// The side of a node: whether the node is the lower or the upper half of its parent.
    pub fn side(&self, node: u32) -> Side {
        let parent = self.node(node).parent;
        usize::from(parent != NONE && self.node(parent).children[1] == node)
    }

    fn push(&mut self, parent: u32, depth: u32, split: Option<usize>) -> u32 {
        self.nodes.push(Node {
            parent,
            children: [NONE; 2],
            depth,
            split: split.map_or(WHOLE, |coordinate| coordinate as u16),
            empty: [false; 2],
            own: Own {
                moments: Moments::default(),
                n_failed: 0,
                n_in_flight: 0,
                z: 0.0,
                first: NONE,
            },
        });
        self.nodes.len() as u32 - 1
    }

    /// Whether a cell can be halved, even if its halves are marked as empty.
    pub fn can_halve(&self, node: u32) -> bool {
        self.node(node).split != WHOLE
    }

    /// Creates one half of a cell that can be halved.
    pub fn create(&mut self, parent: u32, side: Side) -> u32 {
        let known = self.next.take();
        let split = match known.filter(|next| (next.parent, next.side) == (parent, side)) {
            Some(next) => next.split,
            None => {
                let mut region = self.region(parent);
                let coordinate = self.node(parent).split as usize;
                self.space.halve(&mut region, coordinate, side);
                self.space.longest_side(&region)
            }
        };
        let node = self.push(parent, self.node(parent).depth + 1, split);
        self.nodes[parent as usize].children[side] = node;
        node
    }

    /// Stores the coordinate along which a half that does not exist yet would be halved.
    pub fn expect(&mut self, place: Place, region: &Region) {
        if let Place::New { parent, side } = place {
            let split = self.space.longest_side(region);
            self.next = Some(Next {
                parent,
                side,
                split,
            });
        }
    }

    /// The mean that the front uses to rank a cell, or `None` before the cell has a result.
    ///
    /// A failed cell is ranked by the mean of the smallest enclosing cell that has values. The result is −∞ if more
    /// than [`MAX_FAILED`] nested cells have failed.
    pub fn worth(&self, node: u32) -> Option<f64> {
        let mut own = &self.node(node).own;
        if own.moments.count == 0 && own.n_failed == 0 {
            return None;
        }
        let (mut at, mut n_failed) = (node, 0);
        while own.moments.count == 0 {
            n_failed += u32::from(own.n_failed > 0);
            match self.node(at).parent() {
                Some(parent) if n_failed <= MAX_FAILED => at = parent,
                _ => return Some(f64::NEG_INFINITY),
            }
            own = &self.node(at).own;
        }
        Some(own.moments.mean)
    }

    /// Returns the failed cells inside this cell that the front may rank by the mean of this cell.
    pub fn failed_inside(&self, node: u32) -> Vec<u32> {
        let (mut found, mut left) = (Vec::new(), vec![(node, 0)]);
        while let Some((at, n_failed)) = left.pop() {
            for half in self
                .node(at)
                .children
                .into_iter()
                .filter(|half| *half != NONE)
            {
                let own = &self.node(half).own;
                let n_failed = n_failed + u32::from(own.n_failed > 0);
                if own.moments.count > 0 || n_failed > MAX_FAILED {
                    continue;
                }
                if own.n_failed > 0 {
                    found.push(half);
                }
                left.push((half, n_failed));
            }
        }
        found
    }

    /// Removes the cell that was created last.
    pub fn pop(&mut self) {
        let last = self.nodes.len() as u32 - 1;
        let side = self.side(last);
        if let Some(parent) = self.nodes.pop().and_then(|node| node.parent()) {
            self.nodes[parent as usize].children[side] = NONE;
        }
    }

    /// Computes the region of a cell.
    pub fn region(&self, node: u32) -> Region {
        let mut path = Vec::with_capacity(self.node(node).depth as usize);
        let mut at = node;
        while let Some(parent) = self.node(at).parent() {
            path.push((self.nodes[parent as usize].split, self.side(at)));
            at = parent;
        }
        let mut region = self.space.whole();
        for (coordinate, side) in path.into_iter().rev() {
            self.space.halve(&mut region, coordinate as usize, side);
        }
        region
    }

    /// Finds the cell of a new trial at x: the first cell on the path to x that does not exist yet, or else the leaf.
    pub fn find(&self, x: &[f64]) -> Place {
        let (mut at, mut region) = (ROOT, self.space.whole());
        loop {
            let node = self.node(at);
            if node.split == WHOLE {
                return Place::Old(at);
            }
            let coordinate = node.split as usize;
            let side = self.space.side_of(&region, coordinate, x);
            let Some(child) = node.child(side) else {
                return Place::New { parent: at, side };
            };
            self.space.halve(&mut region, coordinate, side);
            at = child;
        }
    }

    /// Adds a trial to the observed trials of a cell. `measured` returns the value and fidelity of a trial.
    pub fn add_value(
        &mut self,
        node: u32,
        number: TrialNumber,
        measured: impl Fn(u32) -> Measured,
    ) {
        let own = &mut self.nodes[node as usize].own;
        if own.first == NONE {
            own.first = number as u32;
            own.moments = Moments::of_equal(1, measured(number as u32).0);
            return;
        }
        let repeats = self.repeats.entry(node);
        let repeats = repeats.or_insert_with(|| vec![own.first]);
        let (value, z) = measured(number as u32);
        let is_level = (z - measured(repeats[0]).1).abs() <= TOLERANCE;
        let all_counted = own.moments.count as usize == repeats.len();
        repeats.push(number as u32);
        match is_level && all_counted {
            true => own.moments = own.moments.merge(Moments::of_equal(1, value)),
            false => self.update_values(node, measured),
        }
    }

    /// Removes a trial from the observed trials of a cell.
    pub fn remove_value(
        &mut self,
        node: u32,
        number: TrialNumber,
        measured: impl Fn(u32) -> Measured,
    ) {
        if let Some(repeats) = self.repeats.get_mut(&node) {
            repeats.retain(|other| *other as usize != number);
            if let [only] = repeats[..] {
                self.nodes[node as usize].own.first = only;
                self.repeats.remove(&node);
            }
            self.update_values(node, measured);
        } else {
            let own = &mut self.nodes[node as usize].own;
            own.moments = Moments::default();
            own.first = NONE;
        }
    }

    /// Computes the moments of a cell. Only values at the highest fidelity in the cell are used.
    pub fn update_values(&mut self, node: u32, measured: impl Fn(u32) -> Measured) {
        let all = || self.values(node).map(|number| measured(number as u32));
        let highest = all().map(|(_, z)| z).fold(0.0, f64::max);
        let counted = all().filter(|(_, z)| *z >= highest - TOLERANCE);
        let each = counted.map(|(value, _)| Moments::of_equal(1, value));
        let moments = each.fold(Moments::default(), Moments::merge);
        self.nodes[node as usize].own.moments = moments;
    }

    /// The observed trials of a cell, in order of arrival.
    pub fn values(&self, node: u32) -> impl Iterator<Item = TrialNumber> + '_ {
        let first = self.node(node).own.first;
        let repeats = self.repeats.get(&node).map(Vec::as_slice);
        let single = (first != NONE && repeats.is_none()).then_some(first);
        let all = repeats.unwrap_or_default().iter().copied().chain(single);
        all.map(|number| number as usize)
    }
}
