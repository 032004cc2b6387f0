//! Batched pure exploration with elimination: BPE (Li and Scarlett 2022) and BPE-Delay (Vakili et al. 2023).
//!
//! * [`settings`]: what can be chosen, and what is refused
//! * [`schedule`]: how long rounds are; [`delays`]: what their lengths are made of, estimated from the log
//! * [`rounds`]: the log folded into rounds; [`note`]: the begin of a round, as the log keeps it
//! * [`exploration`]: the variance that a round explores by, kept point by point
//! * [`bounds`]: the confidence bounds at a round's end, and the points that survive them
//! * [`bpe_delay`]: the strategy itself
//!
//! Notation follows Vakili et al. 2023: r counts rounds from 1, of t_r steps each, of which the first q_r are those whose
//! results are waited for; T is the horizon, δ the probability of failure, τ a delay, X_r the set of points that round r
//! suggests. Their λ² is the noise variance here, with λ = σ, the standard deviation of the noise.

pub mod bounds;
pub mod bpe_delay;
pub mod delays;
pub mod exploration;
pub mod note;
pub mod rounds;
pub mod schedule;
pub mod settings;

pub use bpe_delay::BPEDelay;
