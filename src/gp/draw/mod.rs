//! Draws from a posterior: exact draws at points, and approximate draws as functions on a box.
//!
//! * [`exact`]: joint draws at finitely many points
//! * [`path`]: a draw as a function, by [`pathwise`] conditioning or in [`weight_space`], from [`features`] of the
//!   kernel

pub mod exact;
mod features;
pub mod path;
mod pathwise;
mod weight_space;
mod workspace;
