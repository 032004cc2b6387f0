//! The doors to numerical libraries, and the loops of our own that vectorise.
//!
//! * [`cholesky`]: factorisations and triangular solves (faer); [`lbfgsb`]: bounded minimisation (basin)
//! * [`special`]: special functions (libm, puruspe); [`simd`]: sums and substitutions (multiversion)
//! * [`threads`]: a thread pool that survives a fork (rayon)

pub mod cholesky;
pub mod lbfgsb;
pub mod simd;
pub(crate) mod special;
pub mod threads;
