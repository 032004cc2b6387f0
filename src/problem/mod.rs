//! The problem in the user's units: parameters with names, ranges and conditions. They are checked, encoded and decoded
//! here.
//!
//! * [`parameter`]: one file per kind of parameter; [`space`]: named parameters and their conditions

pub mod parameter;
pub mod space;

pub use parameter::{Choices, Integer, Kind, Parameter, Real};
pub use space::{Declaration, Role, Space};
