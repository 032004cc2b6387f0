//! The generator all randomness comes from; one stream for each suggestion.

pub use rand_pcg::Pcg64 as Rng;
