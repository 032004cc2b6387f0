//! The settings of the search for the maximum of an acquisition in a box: the effort of the default search, or a search
//! from the literature.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::maximize::Maximizer;
use crate::strategy::checks::{COUNT_OR_NONE, MAX_COUNT, check, check_count};

/// The smallest and largest effort. With less than the smallest effort, the search does not find a maximum. With more
/// than the largest effort, the result does not improve.
const MIN_EFFORT: f64 = 0.01;
const MAX_EFFORT: f64 = 100.0;

/// A search from the literature, for boxes: evaluations at uniformly random points, and then runs of L-BFGS-B from
/// other uniformly random points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Multistart(
    /// The number of uniformly random points.
    pub usize,
    /// The number of runs of L-BFGS-B.
    pub usize,
);

/// The settings of the search.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", deny_unknown_fields, default)]
pub struct Search {
    /// The effort of the default search, 1 by default.
    pub effort: f64,
    pub multistart: Option<Multistart>,
    /// If `direct` is given, the box is searched with DIRECT, which is also a method from the literature. `direct` is
    /// the approximate number of points that DIRECT evaluates.
    pub direct: Option<usize>,
}

impl Default for Search {
    fn default() -> Self {
        Self {
            effort: 1.0,
            multistart: None,
            direct: None,
        }
    }
}

impl Search {
    /// Returns an error if a setting is invalid.
    pub fn check(&self, candidates: bool) -> Result<()> {
        check(
            (MIN_EFFORT..=MAX_EFFORT).contains(&self.effort),
            "search.effort",
            self.effort,
            "give a number from 0.01 to 100; 1 is the default, and time is proportional to it",
        )?;
        let for_boxes = "it is for boxes; candidates are all scored";
        if let Some(Multistart(n_raw, n_starts)) = self.multistart {
            let name = "search.multistart";
            check_count(name, n_raw)?;
            check(n_starts <= MAX_COUNT, name, n_starts, COUNT_OR_NONE)?;
            let got = format!("({n_raw}, {n_starts})");
            check(!candidates, name, got, for_boxes)?;
        }
        if let Some(n_evaluations) = self.direct {
            let name = "search.direct";
            check_count(name, n_evaluations)?;
            check(!candidates, name, n_evaluations, for_boxes)?;
            let expected = "one search is enough; leave multistart or direct out";
            check(self.multistart.is_none(), name, n_evaluations, expected)?;
        }
        Ok(())
    }

    /// Returns the search for an acquisition. `effort` is the effort for this acquisition, which the setting
    /// `effort` multiplies.
    pub fn maximizer(&self, effort: f64) -> Maximizer {
        match (self.multistart, self.direct) {
            (Some(Multistart(n_raw, n_starts)), _) => Maximizer::Multistart { n_raw, n_starts },
            (None, Some(n_evaluations)) => Maximizer::Direct { n_evaluations },
            (None, None) => Maximizer::Default {
                effort: effort * self.effort,
            },
        }
    }

    /// Whether the search method comes from the literature.
    pub fn is_literature(&self) -> bool {
        self.multistart.is_some() || self.direct.is_some()
    }
}
