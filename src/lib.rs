//! Black-box optimisation when results come late, out of order, or never.
//!
//! ```
//! use std::ops::ControlFlow;
//! use std::sync::Arc;
//!
//! use belated::ledger::Action;
//! use belated::optimizer::{Definition, Optimizer, Request};
//! use belated::problem::{Declaration, Parameter, Point, Problem, Real, Role, Space};
//!
//! # fn main() -> belated::error::Result<()> {
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
//! The modules, from low level to high level:
//!
//! * [`error`]: the error type; [`random`]: the random generator of each suggestion; [`numerics`]: wrappers of
//!   numerical libraries
//! * [`problem`]: what is optimised, in the user's units, and the set of encoded points that can be suggested
//! * [`ledger`]: the append-only log of the events of trials
//! * [`gp`]: Gaussian processes (covariances, posteriors with pending trials, fits and draws)
//! * [`maximize`]: the maximisation of a function over a domain
//! * [`strategy`]: algorithms that propose the next trial from the log, with their acquisitions
//! * [`optimizer`]: a log together with its strategy; [`snapshot`]: saved optimizers
//! * `python`: the Python bindings, compiled with the feature `python`
//!
//! Strategies maximise. The log is the whole state of an optimizer. An optimizer that is restored from its events
//! suggests the same points, bit for bit.

// Module pages list their files, private ones included.
#![allow(rustdoc::private_intra_doc_links)]

pub mod error;
pub mod gp;
pub mod ledger;
pub mod maximize;
pub mod numerics;
pub mod optimizer;
pub mod problem;
#[cfg(feature = "python")]
mod python;
pub mod random;
pub mod snapshot;
pub mod strategy;
