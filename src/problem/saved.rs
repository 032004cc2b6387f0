//! The saved form of the problem: declarations in the user's units. Reading calls the constructors, which check them.

use ndarray::Array2;
use serde::{Deserialize, Serialize};

use super::parameter::{Choices, Integer, Parameter, Real};
use super::{Candidates, Declaration, Role, Space};
use crate::error::{Error, Result};

#[derive(Clone, Serialize, Deserialize)]
pub(super) enum SavedParameter {
    Real(f64, f64, bool, Option<f64>),
    Integer(f64, f64, bool, Option<f64>),
    Ordinal(Vec<String>),
    Categorical(Vec<String>),
}

impl TryFrom<SavedParameter> for Parameter {
    type Error = Error;

    fn try_from(saved: SavedParameter) -> Result<Self> {
        Ok(match saved {
            SavedParameter::Real(low, high, log, step) => {
                Parameter::Real(Real::new(low, high, log, step)?)
            }
            SavedParameter::Integer(low, high, log, step) => {
                Parameter::Integer(Integer::new(low, high, log, step)?)
            }
            SavedParameter::Ordinal(labels) => Parameter::Ordinal(Choices::ordered(labels)),
            SavedParameter::Categorical(labels) => {
                Parameter::Categorical(Choices::unordered(labels))
            }
        })
    }
}

impl From<Parameter> for SavedParameter {
    fn from(parameter: Parameter) -> Self {
        match parameter {
            Parameter::Real(real) => {
                let (low, high, log, step) = real.declared();
                SavedParameter::Real(low, high, log, step)
            }
            Parameter::Integer(integer) => {
                let (low, high, log, step) = integer.declared();
                SavedParameter::Integer(low, high, log, step)
            }
            Parameter::Ordinal(choices) => SavedParameter::Ordinal(choices.labels().to_vec()),
            Parameter::Categorical(choices) => {
                SavedParameter::Categorical(choices.labels().to_vec())
            }
        }
    }
}

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct SavedSpace {
    role: Role,
    declared: Vec<Declaration>,
}

impl TryFrom<SavedSpace> for Space {
    type Error = Error;

    fn try_from(saved: SavedSpace) -> Result<Self> {
        Space::new(saved.role, saved.declared)
    }
}

impl From<Space> for SavedSpace {
    fn from(space: Space) -> Self {
        Self {
            role: space.role(),
            declared: space.declared(),
        }
    }
}

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct SavedCandidates {
    width: usize,
    entries: Vec<f64>,
}

impl TryFrom<SavedCandidates> for Candidates {
    type Error = Error;

    fn try_from(saved: SavedCandidates) -> Result<Self> {
        let SavedCandidates { width, entries } = saved;
        let rows = entries.len().checked_div(width).unwrap_or(0);
        let points = Array2::from_shape_vec((rows, width), entries)
            .map_err(|error| Error::Corrupt(format!("candidates: {error}")))?;
        Candidates::new(points)
    }
}

impl From<Candidates> for SavedCandidates {
    fn from(candidates: Candidates) -> Self {
        let points = candidates.points();
        Self {
            width: points.ncols(),
            entries: points.iter().copied().collect(),
        }
    }
}
