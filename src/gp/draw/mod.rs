//! Draws from a posterior: exact at finitely many points, and approximate as functions on a box.
//!
//! * [`exact`]: joint draws at finitely many points
//! * [`path`]: a draw as a function, built from [`features`] of the kernel by [`pathwise`] conditioning or by a
//!   regression in [`weight_space`]

pub mod exact;
mod features;
pub mod path;
mod pathwise;
mod weight_space;
mod workspace;
