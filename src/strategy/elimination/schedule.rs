//! The lengths of rounds.
//!
//! q_0 = 1, q_r = ⌈√(T q_{r−1})⌉ (Algorithm 1). A round has more than q_r steps, so that the results of the first q_r
//! steps can arrive before the round ends. With probability 1 − δ/2, these results arrive in time in every round.

use serde::{Deserialize, Serialize};

/// A sub-exponential delay model: E exp(η(τ − E τ)) ≤ exp(η²ξ²/2) for all |η| ≤ 1/b (Assumption 3.3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SubExponential {
    /// The mean delay E τ, in units of the clock.
    pub mean: f64,
    pub xi: f64,
    pub b: f64,
}

/// Which of the two terms in Eq. 6 is used as the bound on delays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tail {
    /// The larger term, which is a valid bound.
    Max,
    /// The smaller term, as printed in the paper, which is not a valid bound.
    Min,
}

/// The rule for the lengths of rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lengths {
    /// t_r = ⌈q_r + u_T(δ)⌉, and the last round ends at the horizon.
    Paper,
    /// t_r = ⌊q_r + E τ + 2b·log(3s/2δ)⌋, as in the code of the authors. Here, s is q_r plus the number of steps before
    /// the round. Rounds are added until Σ q_r ≥ T, and the last round is completed.
    Code,
}

/// The parameters that determine the lengths of rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    /// The horizon T.
    pub horizon: usize,
    /// δ, the probability that a bound fails.
    pub delta: f64,
    pub tail: Tail,
    pub lengths: Lengths,
}

/// A planned round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planned {
    /// q_r.
    pub explored: usize,
    /// t_r.
    pub length: usize,
}

impl Schedule {
    /// Returns q_r for round r.
    pub fn explored(&self, round: usize) -> usize {
        let mut q = 1.0_f64;
        for _ in 0..round {
            let next = (self.horizon as f64 * q).sqrt().ceil();
            if next <= q {
                break;
            }
            q = next;
        }
        q as usize
    }

    /// Returns the length t_r of a round that starts after `before` steps. The planned end of the round may exceed the
    /// horizon.
    pub fn length(&self, round: usize, before: usize, delay: SubExponential) -> f64 {
        let length = self.explored(round) as f64 + self.wait(round, before, delay);
        match self.lengths {
            Lengths::Paper => length.ceil(),
            Lengths::Code => length.floor(),
        }
    }

    /// Returns the time that a round waits for results after its suggestion q_r, in units of the clock.
    pub fn wait(&self, round: usize, before: usize, delay: SubExponential) -> f64 {
        match self.lengths {
            Lengths::Paper => self.longest_delay(delay),
            Lengths::Code if delay == SubExponential::default() => 0.0,
            Lengths::Code => {
                let s = (before + self.explored(round)) as f64;
                delay.mean + 2.0 * delay.b * (1.5 * s / self.delta).ln()
            }
        }
    }

    /// u_T(δ) = E τ + ψ_T(δ/2) (Eq. 6). ψ_t(δ) is the larger of √(2ξ² log(3t/2δ)) and 2b log(3t/2δ). The formula
    /// printed in the paper takes the smaller of these two terms.
    pub fn longest_delay(&self, delay: SubExponential) -> f64 {
        let log = self.log_term();
        let gaussian = delay.xi * (2.0 * log).sqrt();
        let exponential = 2.0 * delay.b * log;
        delay.mean
            + match self.tail {
                Tail::Max => gaussian.max(exponential),
                Tail::Min => gaussian.min(exponential),
            }
    }

    /// log(3T/2δ') with δ' = δ/2. The logarithm is above 1, because δ < 1 and T ≥ 1.
    pub fn log_term(&self) -> f64 {
        (3.0 * self.horizon as f64 / self.delta).ln()
    }

    /// Whether this round is the last round, if the round ends after `steps` steps.
    pub fn is_last(&self, round: usize, steps: usize) -> bool {
        match self.lengths {
            Lengths::Paper => steps >= self.horizon,
            Lengths::Code => {
                let explored = (1..=round).map(|r| self.explored(r));
                explored.sum::<usize>() >= self.horizon
            }
        }
    }

    /// Plans the rounds under this delay model. The first planned round is round `first`, which starts after `before`
    /// steps.
    pub fn plan(&self, first: usize, before: usize, delay: SubExponential) -> Vec<Planned> {
        let mut planned = Vec::new();
        let mut steps = before;
        for round in first.. {
            if round > 1 && self.is_last(round - 1, steps) {
                break;
            }
            let length = self.length(round, steps, delay);
            let length = match self.lengths {
                Lengths::Paper => length.min((self.horizon - steps) as f64),
                Lengths::Code => length,
            };
            planned.push(Planned {
                explored: self.explored(round),
                length: length as usize,
            });
            steps += length as usize;
        }
        planned
    }

    /// The number of rounds R. If the delay model is not given, this method returns the number of rounds that would be
    /// needed without delays, which is an upper bound on R.
    pub fn n_rounds(&self, delay: Option<SubExponential>) -> usize {
        self.plan(1, 0, delay.unwrap_or_default()).len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POISSON_50: SubExponential = SubExponential {
        mean: 50.0,
        xi: 9.0,
        b: 1.0,
    };

    fn lengths(horizon: usize, tail: Tail, lengths: Lengths, mean: f64) -> Vec<usize> {
        let schedule = Schedule {
            horizon,
            delta: 0.01,
            tail,
            lengths,
        };
        let delay = SubExponential { mean, ..POISSON_50 };
        let planned = schedule.plan(1, 0, delay);
        planned.iter().map(|round| round.length).collect()
    }

    #[test]
    fn lengths_of_rounds_equal_the_lengths_in_the_paper_and_in_its_code() {
        let (paper, code) = (Lengths::Paper, Lengths::Code);
        assert_eq!(lengths(1000, Tail::Min, paper, 50.0), [108, 255, 500, 137]);
        assert_eq!(lengths(1000, Tail::Max, paper, 50.0), [128, 275, 520, 77]);
        assert_eq!(lengths(1000, Tail::Min, code, 50.0), [98, 250, 497, 726]);
        let whole = |horizon, mean| {
            lengths(horizon, Tail::Min, code, mean)
                .iter()
                .sum::<usize>()
        };
        assert_eq!(whole(1000, 25.0), 1471);
        assert_eq!((whole(200, 25.0), whole(200, 50.0)), (497, 597));
    }

    #[test]
    fn rounds_without_delays_equal_the_rounds_of_bpe() {
        let schedule = |horizon| Schedule {
            horizon,
            delta: 0.1,
            tail: Tail::Max,
            lengths: Lengths::Paper,
        };
        let none = SubExponential::default();
        let lengths = |horizon: usize| {
            let planned = schedule(horizon).plan(1, 0, none);
            planned.iter().map(|round| round.length).collect::<Vec<_>>()
        };
        assert_eq!(lengths(1000), [32, 179, 424, 365]);
        for horizon in [1, 2, 3, 10, 1_000_000] {
            assert_eq!(lengths(horizon).iter().sum::<usize>(), horizon);
        }
    }
}
