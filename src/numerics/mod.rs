//! Wrappers of numerical libraries, and vectorised loops.
//!
//! * [`cholesky`], [`growing_cholesky`]: factors and triangular solves (faer); [`lbfgsb`], [`direct`]:
//!   minimisation over a box (basin); [`slsqp`]: minimisation under linear constraints (basin)
//! * [`projected_gradient`]: minimisation over a convex set with a fast projection
//! * [`linear_program`]: small linear programs
//! * [`hypervolume`]: the hypervolume of points, and the region that they do not dominate
//! * [`special`]: elementary and special functions; [`simd`]: loops over vectors (multiversion)
//! * [`order`]: the order of values
//! * [`warp`]: a transformation that shortens a tail of low values
//! * [`threads`]: a thread pool that can be used after a fork (rayon)

pub mod cholesky;
pub mod direct;
pub mod growing_cholesky;
pub mod hypervolume;
pub mod lbfgsb;
pub mod linear_program;
pub mod order;
pub mod projected_gradient;
pub mod simd;
pub mod slsqp;
pub(crate) mod special;
pub mod threads;
pub mod warp;
