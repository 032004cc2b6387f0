//! The choice of a point from the posterior.
//!
//! * [`multiplier`]: the multiplier of sigma
//! * [`best_observed`]: points around which searches start
//! * [`spacing`]: a minimum distance between proposals and pending trials; [`repeats`]: rules against suggesting the
//!   same point twice; [`recommendation`]: the points that are recommended for use;
//!   [`recommended_front`]: the points of a front
//! * [`measured`]: measured values at bounds; [`pareto`]: a random compromise between mean and uncertainty
//! * [`search`]: the search for the best point of the domain; [`design`]: the points suggested before the model has
//!   data; [`unlike_contexts`]: the contexts whose rows do not predict the
//!   values in the present context
//! * [`branches`]: the branches of a conditional space, each with a minimum share of the trials
//! * [`final_values`]: forecasts of the final values of running and stopped trials

pub mod best_observed;
pub mod branches;
pub mod design;
pub mod final_values;
pub mod measured;
pub mod multiplier;
pub mod pareto;
pub mod recommendation;
pub mod recommended_front;
pub mod repeats;
pub mod search;
pub mod spacing;
pub mod unlike_contexts;
