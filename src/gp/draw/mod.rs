//! Draws from a posterior. Draws at points are exact, and draws as functions on a box are approximate.
//!
//! * [`exact`]: joint draws at finitely many points
//! * [`path`]: a draw as a function, from [`features`] of the kernel, by [`pathwise`] conditioning or in
//!   [`weight_space`]

pub mod exact;
mod features;
pub mod path;
mod pathwise;
mod weight_space;
mod workspace;
