//! The problem in the user's units: parameters with names, ranges and conditions, or a list of candidates. They are
//! checked, encoded and decoded here.
//!
//! * [`parameter`]: one file per kind of parameter; [`space`]: named parameters and their conditions; [`candidates`]:
//!   finite lists

pub mod candidates;
pub mod parameter;
pub mod space;
#[cfg(test)]
mod tests;

pub use candidates::Candidates;
pub use parameter::{Choices, Integer, Kind, Parameter, Real};
pub use space::{Declaration, Role, Space};
