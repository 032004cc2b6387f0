//! Batched pure exploration with elimination: BPE (Li and Scarlett 2022) and BPE-Delay (Vakili et al. 2023).
//!
//! * [`settings`]: the settings and their checks
//! * [`schedule`]: the lengths of rounds; [`delays`]: delay statistics estimated from the log
//! * [`rounds`]: the rounds computed from the log; [`note`]: the note that begins a round
//! * [`exploration`]: the posterior variance that a round maximises
//! * [`bounds`]: the confidence bounds at the end of a round, and the elimination of points
//! * [`bpe_delay`]: the strategy
//!
//! Notation follows Vakili et al. 2023: r counts rounds from 1. Round r has t_r steps. With high probability, the
//! results of the first q_r steps arrive by the end of the round. T is the horizon, δ is the probability that a bound
//! fails, τ is a delay, and X_r is the set of points of round r. λ² in the paper is the noise variance of the model
//! here. By default, λ = σ, the standard deviation of the noise.

pub mod bounds;
pub mod bpe_delay;
pub mod delays;
pub mod exploration;
pub mod note;
pub mod rounds;
pub mod schedule;
pub mod settings;

pub use bpe_delay::BPEDelay;
