//! Black-box optimisation when results come late, out of order, or never.
//!
//! ```
//! use std::ops::ControlFlow;
//! use std::sync::Arc;
//!
//! use belated::{
//!     Action, Declaration, Definition, Optimizer, Parameter, Point, Problem, Real, Request, Role, Space,
//! };
//!
//! # fn main() -> belated::Result<()> {
//! let x = Parameter::Real(Real::new(-2.0, 3.0, false, None)?);
//! let space = Space::new(Role::Params, vec![Declaration::new("x", x)])?;
//! let strategy = r#"{"kind": "BayesOpt"}"#;
//! let definition = Definition::from_json(Arc::new(Problem::new(space)), 0, strategy)?;
//! let mut optimizer = Optimizer::new(definition)?;
//! for _ in 0..15 {
//!     let mut go_on = || ControlFlow::Continue(());
//!     let (numbers, _warnings) = optimizer.suggest(1, Request::default(), &mut go_on)?;
//!     if let Point::Numbers(point) = optimizer.ledger().point(numbers[0])
//!         && let Some(x) = point[0]
//!     {
//!         let value = -(x - 0.5) * (x - 0.5);
//!         optimizer.record(Action::observe(numbers[0], value, None, false), None)?;
//!     }
//! }
//! let best = optimizer.ledger().best().expect("15 values were observed");
//! assert!(optimizer.ledger().value(best) > Some(-1e-3));
//! # Ok(())
//! # }
//! ```
//!
//! * A [`Problem`] declares the points in the user's units: points of a [`Space`] of parameters, or rows of a list of
//!   [`Candidates`].
//! * A [`Definition`] is a problem with a seed and a strategy. The strategy is a JSON object whose field `kind` is
//!   `"BayesOpt"`, `"BPEDelay"`, `"TreeSearch"` or `"RandomSearch"`, the name of a class in the Python package. The
//!   other fields are the settings of this class, with the same names, values and defaults.
//! * An [`Optimizer`] suggests trials and records [`Action`]s: a value, a failure, or a trial that was started
//!   elsewhere. Results are accepted at any time and in any order.
//! * The [`Ledger`] is the log of an optimizer, with its [`Trial`]s. The log is the whole state: an optimizer that is
//!   restored from [bytes](Optimizer::from_bytes) suggests the same points, bit for bit.
//! * The [`Surrogate`] is the posterior of a strategy with a model.

#![warn(missing_docs)]
// Some items are used only by the Python bindings.
#![cfg_attr(not(feature = "python"), allow(dead_code, unused_imports))]

mod curves;
mod delays;
mod error;
mod gp;
mod ledger;
mod maximize;
mod numerics;
mod optimizer;
mod problem;
#[cfg(feature = "python")]
mod python;
mod random;
mod snapshot;
mod stopping;
// Settings have the same names as the Python classes.
#[allow(clippy::upper_case_acronyms)]
mod strategy;

pub use error::{Error, Result, Stop};
pub use gp::{Conditioned, GaussianProcess};
pub use ledger::{
    Action, Again, Data, Failure, Ledger, Observation, Queued, Reading, State, Trial, TrialNumber,
    View, Viewed,
};
pub use maximize::feasible::Feasible;
pub use optimizer::{Definition, Optimizer, Recommended, Request, Shared};
pub use problem::{
    Candidates, Choices, Clock, Curve, CurveValue, Declaration, Described, Direction, Fidelity,
    Fixed, Held, Integer, Members, Parameter, Point, PowerCost, Problem, Real, Role, Space,
};
pub use stopping::Stopping;
pub use strategy::model_based::Surrogate;
pub use strategy::units::Units;
