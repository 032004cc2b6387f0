//! The fidelity in the user's units, such as a number of samples or epochs.

use serde::{Deserialize, Serialize};

use super::Parameter;
use crate::domain::{self, PowerCost};
use crate::error::{Error, Result};

/// The range of fidelities, and the declared properties of evaluations below full fidelity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Saved", into = "Saved")]
pub struct Fidelity {
    axis: Parameter,
    shares: domain::Fidelity,
}

impl Fidelity {
    /// Creates a fidelity. Refuses choices, and numbers that are not a valid bias or cost.
    pub fn new(axis: Parameter, bias: Option<f64>, cost: Option<PowerCost>) -> Result<Self> {
        let shares = domain::Fidelity {
            axis: axis.kind().coordinate().clone(),
            bias,
            cost,
        };
        shares.check()?;
        Ok(Self { axis, shares })
    }

    /// The fidelity in the form that strategies read, with z in [0, 1].
    pub(crate) fn shares(&self) -> &domain::Fidelity {
        &self.shares
    }

    /// Refuses a value out of range.
    pub(crate) fn check_value(&self, value: f64) -> Result<()> {
        match self.axis.kind().checked(value) == Some(value) {
            true => Ok(()),
            false => Err(Error::InvalidFidelity(format!(
                "the fidelity {value} is not in the declared range; give {}",
                self.axis.kind().expected()
            ))),
        }
    }

    /// The fidelity z of a value in the user's units.
    pub(crate) fn encode(&self, value: f64) -> f64 {
        let mut z = [0.0];
        self.axis.kind().encode(value, &mut z);
        z[0]
    }

    /// The value nearest to a fidelity z.
    pub(crate) fn decode(&self, z: f64) -> f64 {
        self.axis.kind().decode(&[z])
    }
}

/// The saved form of a fidelity.
#[derive(Clone, Serialize, Deserialize)]
struct Saved {
    axis: Parameter,
    bias: Option<f64>,
    cost: Option<PowerCost>,
}

impl TryFrom<Saved> for Fidelity {
    type Error = Error;

    fn try_from(saved: Saved) -> Result<Self> {
        Fidelity::new(saved.axis, saved.bias, saved.cost)
    }
}

impl From<Fidelity> for Saved {
    fn from(fidelity: Fidelity) -> Self {
        Self {
            axis: fidelity.axis,
            bias: fidelity.shares.bias,
            cost: fidelity.shares.cost,
        }
    }
}
