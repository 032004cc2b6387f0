//! Acquisitions, with their settings, defaults and formulas.
//!
//! To add an acquisition, write a file with its settings and its [`rule::Rule`], add a variant to [`any::Acquisition`],
//! and put its formula into a file of [`crate::acquisition`].
//!
//! * [`rule`]: the interface of an acquisition
//! * [`any`]: one type that contains all acquisitions
//! * [`log_ei`], [`ucb`], [`ucb_pe`], [`thompson_sampling`], [`max_variance`]: one acquisition each
//! * [`bound`]: the multiplier of sigma without delays; [`box_search`]: the effort of a search of a box; [`draws`]:
//!   settings of draws from the posterior
//! * [`incumbents`]: the values from which improvement is measured

pub mod any;
pub mod bound;
pub mod box_search;
pub mod draws;
pub mod incumbents;
pub mod log_ei;
pub mod max_variance;
pub mod rule;
pub mod thompson_sampling;
pub mod ucb;
pub mod ucb_pe;
