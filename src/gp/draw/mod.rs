//! Draws from a posterior: exact ones at points, and functions on a box.

pub mod exact;
pub mod path;
