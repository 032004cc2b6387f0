//! Acquisitions: their settings with all defaults, and the formulas that they stand for.
//!
//! A new one is a file with its settings and its [`Rule`], and a variant of [`Acquisition`]; its formula is a file of
//! [`crate::acquisition`].
//!
//! * [`rule`]: what an acquisition provides, and what it is given
//! * [`any`]: one value for all of them
//! * [`log_ei`], [`ucb`], [`ucb_pe`], [`thompson_sampling`], [`max_variance`]: one each
//! * [`bound`]: the multiplier of sigma without delays; [`box_search`]: what a search of a box spends;
//!   [`draws`]: how draws are made
//! * [`incumbents`]: what improvement is measured from

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

pub use any::Acquisition;
pub use rule::Rule;
