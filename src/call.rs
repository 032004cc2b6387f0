//! The two arguments that every search takes: the random generator, and the callback that can stop it.

use crate::error::Stop;
use crate::random::Rng;

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
