//! The front: for each size, the best cells that can be halved. The choice of a cell from the front does not depend on
//! ν, ρ or b.
//!
//! If the smoothness of f is known, the best cell above a certain size should be halved. If the smoothness is unknown,
//! the best cells for every possible smoothness are halved in turn (Jones, Perttunen and Stuckman 1993, Munos 2011).

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// A cell, and its mean at the time when it was offered to the front.
#[derive(Debug, Clone, Copy)]
pub struct Candidate {
    pub mean: f64,
    pub node: u32,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_mean = self.mean.total_cmp(&other.mean);
        by_mean.then(Reverse(self.node).cmp(&Reverse(other.node)))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Candidate {}

/// The front: one heap of candidates for each depth. At the top of its heap, a candidate is dropped if its cell can no
/// longer be halved, and otherwise its mean is updated.
#[derive(Debug, Clone, Default)]
pub struct Front {
    depths: Vec<BinaryHeap<Candidate>>,
}

impl Front {
    /// The largest depth of any candidate so far, plus one.
    pub fn depth(&self) -> usize {
        self.depths.len()
    }

    /// Drops all candidates at depth `depth` or deeper.
    pub fn truncate(&mut self, depth: usize) {
        self.depths.truncate(depth);
    }

    /// Adds a candidate at this depth.
    pub fn offer(&mut self, depth: u32, candidate: Candidate) {
        let depth = depth as usize;
        if self.depths.len() <= depth {
            self.depths.resize_with(depth + 1, BinaryHeap::new);
        }
        self.depths[depth].push(candidate);
    }

    /// Returns the cell with the largest mean among the candidates down to `depth`, of equal means the least deep.
    /// `mean` returns the current mean of a candidate, or `None` if the candidate should be dropped.
    pub fn best(
        &mut self,
        depth: usize,
        mut mean: impl FnMut(Candidate) -> Option<f64>,
    ) -> Option<u32> {
        let mut best: Option<Candidate> = None;
        for heap in &mut self.depths[..=depth] {
            while let Some(&top) = heap.peek()
                && best.is_none_or(|best| top.mean > best.mean)
            {
                let mean = mean(top);
                if mean == Some(top.mean) {
                    best = Some(top);
                    break;
                }
                heap.pop();
                if let Some(mean) = mean {
                    heap.push(Candidate { mean, ..top });
                }
            }
        }
        best.map(|best| best.node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_best_candidate_equals_a_brute_force_search(
            all in prop::collection::vec((0..6u32, 0..5i32, any::<bool>()), 1..40), depth in 0..6usize,
        ) {
            let mut front = Front::default();
            front.offer(5, Candidate { mean: -9.0, node: 99 });
            for (node, (at, mean, _)) in all.iter().enumerate() {
                front.offer(*at, Candidate { mean: f64::from(*mean), node: node as u32 });
            }
            let kept = all.iter().enumerate().filter(|(_, (at, _, kept))| *kept && *at as usize <= depth);
            let best = kept.min_by_key(|(node, (at, mean, _))| (-mean, *at, *node));
            let expected = best.map(|(node, _)| node as u32).or((depth == 5).then_some(99));
            let keep = |candidate: Candidate| all.get(candidate.node as usize).is_none_or(|(_, _, kept)| *kept);
            let keep = |candidate: Candidate| keep(candidate).then_some(candidate.mean);
            // The second search gives the same result: dropped candidates do not return.
            for _ in 0..2 {
                prop_assert_eq!(front.best(depth, keep), expected);
            }
        }
    }
}
