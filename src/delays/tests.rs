//! Tests of the delay distribution.
