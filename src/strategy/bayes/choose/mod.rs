//! The choice of a point from the posterior.
//!
//! * [`multiplier`]: the multiplier of sigma
//! * [`best_observed`]: points around which searches start; [`addition`]: the term that the model of success adds to
//!   an acquisition
//! * [`spacing`]: a minimum distance between proposals and pending trials; [`repeats`]: rules against suggesting the
//!   same point twice; [`recommendation`]: the points that are recommended for use
//! * [`bounds`]: the terms of outcomes with bounds; [`measured`]: measured values at bounds
//! * [`local_penalty`]: penalties near pending trials; [`pareto`]: a random compromise between mean and uncertainty
//! * [`search`]: the search for the best point of the domain; [`design`]: the points suggested before the model has
//!   data
//! * [`final_values`]: forecasts of the final values of running and stopped trials

pub mod addition;
pub mod best_observed;
pub mod bounds;
pub mod design;
pub mod final_values;
pub mod local_penalty;
pub mod measured;
pub mod multiplier;
pub mod pareto;
pub mod recommendation;
pub mod repeats;
pub mod search;
pub mod spacing;
