//! Draws from a posterior. Draws at points are exact, and draws as functions on a box are approximate.
//!
//! * [`exact`]: joint draws at finitely many points
//! * [`path`]: a draw as a function. The function is built from [`features`] of the kernel, either by [`pathwise`]
//!   conditioning or by a regression in [`weight_space`]

pub mod exact;
mod features;
pub mod path;
mod pathwise;
mod weight_space;
mod workspace;
