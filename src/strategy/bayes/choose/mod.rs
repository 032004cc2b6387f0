//! From a posterior to a point.
//!
//! * [`information`]: the information gain in the theory's multipliers; [`multiplier`]: the multiplier of sigma
//! * [`best_observed`]: where searches start; [`addition`]: what the model of success adds to an acquisition
//! * [`spacing`]: proposals near pending trials are moved; [`repeats`]: points that are not suggested twice
//! * [`search`]: the best point of the domain; [`design`]: points before there is a model

pub mod addition;
pub mod best_observed;
pub mod design;
pub mod information;
pub mod multiplier;
pub mod repeats;
pub mod search;
pub mod spacing;
