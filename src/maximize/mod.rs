//! The argmax of an acquisition over a domain.
//!
//! * [`maximizer`]: the available methods; [`argmax`]: the result of a search
//! * [`exhaustive`]: the search that scores every member of a finite domain
//! * [`default_search`]: the default search in a box: [`local_search`] from [`starting_points`], alternating with a
//!   [`sweep`]; [`scoring`]: the state of the search
//! * [`multistart`], [`direct`]: searches in a box that reproduce experiments of the literature
//! * [`constrained`]: the search in a box under constraints; [`feasible`]: the check of constraints, and feasible
//!   members
//! * [`excluded`]: members that a search does not return while other members are left
//!
//! Notation: a(x) is the objective, which is maximised; d is the number of coordinates. Points are rows of the domain's
//! columns.

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
pub use maximizer::{Maximizer, maximize};
pub(crate) use sweep::as_rows;

#[cfg(test)]
mod tests;
