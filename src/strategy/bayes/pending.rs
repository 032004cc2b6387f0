//! What a pending trial means to the model: a policy answers with a target, and knows no kernel.

use serde::{Deserialize, Serialize};

pub use crate::gp::Target;

/// How pending trials enter the posterior.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum PendingPolicy {
    /// They do not (GP-UCB, asy-TS, asyUCB, asyEI).
    Ignore,
    /// Their variance is removed, the mean stays (GP-BUCB, GP-BTS, asyHTS; Desautels et al. 2014).
    Hallucinate,
    /// They count as the floor, and go on doing so after their window (GP-UCB-SDF, GP-TS-SDF; Verma et al. 2022).
    Censor,
    /// They count as one and the same value (the constant liar of Ginsbourger et al. 2010).
    Liar(Lie),
    /// Each counts as the mean of the posterior means at the k nearest observed points (Verma et al. 2022, footnote 3).
    Nearest(usize),
    /// The acquisition is averaged over this many quasi-random values of theirs (Snoek et al. 2012, section 3.2).
    Integrate(usize),
}

/// What the constant liar says.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Lie {
    /// The smallest, mean or largest observed value.
    Min,
    Mean,
    Max,
    /// A value of f.
    Number(f64),
}

/// Values that policies refer to, in the model's units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Levels {
    /// The smallest value that f can take.
    pub floor: f64,
    /// What the constant liar says.
    pub lie: f64,
}

impl PendingPolicy {
    /// The target of a pending trial; None leaves it out of the model.
    ///
    /// `window_passed` trials no longer count as arriving, which Censor alone holds against them.
    pub fn target(self, window_passed: bool, levels: Levels) -> Option<Target> {
        match self {
            PendingPolicy::Censor => Some(Target::Value(levels.floor)),
            _ if window_passed => None,
            PendingPolicy::Ignore => None,
            // A fantasy is a deviation from the mean: the tail is the same.
            PendingPolicy::Hallucinate | PendingPolicy::Integrate(_) => Some(Target::PosteriorMean),
            PendingPolicy::Liar(_) => Some(Target::Value(levels.lie)),
            PendingPolicy::Nearest(k) => Some(Target::NearestMean(k)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lapsed_trials_stay_at_the_floor_or_leave() {
        let levels = Levels {
            floor: -1.5,
            lie: 0.25,
        };
        for (policy, target) in [
            (PendingPolicy::Ignore, None),
            (PendingPolicy::Hallucinate, Some(Target::PosteriorMean)),
            (PendingPolicy::Integrate(8), Some(Target::PosteriorMean)),
            (PendingPolicy::Liar(Lie::Mean), Some(Target::Value(0.25))),
            (PendingPolicy::Nearest(3), Some(Target::NearestMean(3))),
        ] {
            assert_eq!(policy.target(false, levels), target);
            assert_eq!(policy.target(true, levels), None);
        }
        for window_passed in [false, true] {
            let target = PendingPolicy::Censor.target(window_passed, levels);
            assert_eq!(target, Some(Target::Value(-1.5)));
        }
    }
}
