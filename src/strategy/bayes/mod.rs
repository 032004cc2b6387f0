//! Strategies that stand on a Gaussian process.
//!
//! * [`settings`]: what can be chosen, and what is refused
//! * [`targets`]: from observed values to the model's targets
//! * [`model`]: the log folded into rows, and the factor kept over them
//! * [`design`]: points before there is a model
//! * [`incumbents`]: the best observed points, and improvement on them
//! * [`candidates`]: a finite domain, solved against the factor once and kept
//! * [`information`]: the information gain that the theory's widths are made of
//! * [`spacing`]: proposals on top of pending trials move aside
//! * [`bayes_opt`]: the strategy itself

pub mod bayes_opt;
pub mod candidates;
pub mod design;
pub mod incumbents;
pub mod information;
pub mod model;
pub mod pending;
pub mod settings;
pub mod spacing;
pub mod targets;
