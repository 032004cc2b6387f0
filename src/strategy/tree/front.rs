//! The front, which contains the best cells of every size that can be halved. The choice among these cells does not
//! depend on ν, ρ or b.
//!
//! For a given smoothness of f, the best cell above a certain size should be halved. If the smoothness is unknown, the
//! best cells for every smoothness are halved in turn (Jones, Perttunen and Stuckman 1993; Munos 2011).

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// A cell, with its mean at the time when the cell was offered.
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

/// Candidates by depth. A candidate that reaches the top is dropped if it cannot be halved again. Otherwise its mean is
/// updated.
#[derive(Debug, Clone, Default)]
pub struct Front {
    depths: Vec<BinaryHeap<Candidate>>,
}

impl Front {
    /// The largest depth of all candidates so far, plus one.
    pub fn depth(&self) -> usize {
        self.depths.len()
    }

    /// Drops the candidates at `depth` and below, and restores the depth of the front.
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

    /// The candidate with the largest mean down to `depth`. Among equal means, the smallest depth is chosen. `mean`
    /// returns the current mean of a candidate. Candidates without a mean are dropped.
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
            // Dropped candidates stay dropped.
            for _ in 0..2 {
                prop_assert_eq!(front.best(depth, keep), expected);
            }
        }
    }
}
