//! The argmax of an acquisition over a domain.
//!
//! * [`maximizer`]: the methods of the search; [`argmax`]: its result
//! * [`exhaustive`]: every member of a finite domain is scored
//! * [`default_search`]: the search of a box: [`starting_points`], then [`local_search`] alternating with a [`sweep`];
//!   [`scoring`]: its state
//! * [`multistart`], [`direct`]: searches of a box as in the literature, for replays
//! * [`constrained`]: the search of a box under constraints; [`feasible`]: the check of constraints, and feasible
//!   members
//! * [`excluded`]: members that a search must not return while other members are left
//!
//! Notation: a(x) the objective, larger is better; d coordinates; points are rows of the domain's columns.

mod argmax;
pub mod constrained;
mod default_search;
mod direct;
pub mod excluded;
mod exhaustive;
pub mod feasible;
mod local_search;
mod maximizer;
mod multistart;
mod scoring;
mod starting_points;
mod sweep;

pub use argmax::Argmax;
pub(crate) use exhaustive::combinations;
pub use maximizer::{Maximizer, maximize, maximize_allowed};

#[cfg(test)]
mod conditional_tests;
#[cfg(test)]
mod discrete_tests;
#[cfg(test)]
mod excluded_tests;
#[cfg(test)]
mod tests;
