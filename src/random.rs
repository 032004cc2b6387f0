//! The random generator of the crate, with a separate stream for each suggestion.

pub use rand_pcg::Pcg64 as Rng;

use crate::error::Stop;

/// The random generator and the stop callback of one call of the optimizer.
pub struct Call<'a> {
    pub rng: &'a mut Rng,
    pub stop: &'a mut Stop<'a>,
}

impl<'a> Call<'a> {
    pub fn new(rng: &'a mut Rng, stop: &'a mut Stop) -> Self {
        Self { rng, stop }
    }
}

/// The streams for calls of `recommend`, and for draws that a strategy makes once. Suggestions use other streams.
pub const RECOMMENDATION: u64 = u64::MAX;
pub const SETUP: u64 = u64::MAX - 1;

/// The generator of suggestion k, whose stream does not depend on other draws.
///
/// Streams that share one state would be correlated, so SplitMix64 (Steele, Lea and Flood 2014) gives each stream a
/// separate state.
pub fn stream(seed: u64, k: u64) -> Rng {
    let mut state = seed ^ k.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    };
    let state = u128::from(next()) << 64 | u128::from(next());
    Rng::new(state, u128::from(k))
}
