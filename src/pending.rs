//! What a pending trial means to the model: a policy answers with a target, and knows no kernel.

use serde::{Deserialize, Serialize};

/// How pending trials enter the posterior.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum PendingPolicy {
    /// They do not (GP-UCB, asy-TS, asyUCB, asyEI).
    Ignore,
    /// Their variance is removed, the mean stays (GP-BUCB, GP-BTS, asyHTS; Desautels et al. 2014).
    Hallucinate,
    /// They count as the floor, and go on doing so after their window (GP-UCB-SDF, GP-TS-SDF; Verma et al. 2022).
    Censor,
}

/// What the model takes a pending trial's value to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    /// A number, in the model's units.
    Value(f64),
    /// Whatever the posterior mean is at the point.
    PosteriorMean,
}

impl PendingPolicy {
    /// The target of a pending trial; None leaves it out of the model.
    ///
    /// `lapsed` trials no longer count as arriving; `floor` is the smallest value of f in the model's units.
    pub fn target(self, lapsed: bool, floor: f64) -> Option<Target> {
        match self {
            PendingPolicy::Ignore => None,
            PendingPolicy::Hallucinate => (!lapsed).then_some(Target::PosteriorMean),
            PendingPolicy::Censor => Some(Target::Value(floor)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lapsed_trials_stay_at_the_floor_or_leave() {
        let answer = |policy: PendingPolicy, lapsed| policy.target(lapsed, -1.5);
        assert_eq!(answer(PendingPolicy::Ignore, false), None);
        assert_eq!(
            answer(PendingPolicy::Hallucinate, false),
            Some(Target::PosteriorMean)
        );
        assert_eq!(answer(PendingPolicy::Hallucinate, true), None);
        assert_eq!(
            answer(PendingPolicy::Censor, true),
            Some(Target::Value(-1.5))
        );
    }
}
