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
    pub fn shares(&self) -> &domain::Fidelity {
        &self.shares
    }

    /// Refuses a value out of range.
    pub fn check_value(&self, value: f64) -> Result<()> {
        match self.axis.kind().checked(value) == Some(value) {
            true => Ok(()),
            false => Err(Error::InvalidFidelity(format!(
                "the fidelity {value} is not in the declared range; give {}",
                self.axis.kind().expected()
            ))),
        }
    }

    /// The fidelity z of a value in the user's units.
    pub fn encode(&self, value: f64) -> f64 {
        let mut z = [0.0];
        self.axis.kind().encode(value, &mut z);
        z[0]
    }

    /// The value nearest to a fidelity z. On a continuous range, this is the value with the fewest decimal digits among
    /// the values with exactly this z.
    pub fn decode(&self, z: f64) -> f64 {
        let value = self.axis.kind().decode(&[z]);
        if self.axis.n_levels().is_some() {
            return value;
        }
        // Every float has a decimal of at most 17 digits.
        let mut rounded = (0..17).filter_map(|digits| format!("{value:.digits$e}").parse().ok());
        let is_exact = |&short: &f64| self.check_value(short).is_ok() && self.encode(short) == z;
        rounded.find(is_exact).unwrap_or(value)
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

#[cfg(test)]
mod tests {
    use super::super::Real;
    use super::*;

    fn continuous(low: f64, high: f64, log: bool) -> Fidelity {
        let axis = Parameter::Real(Real::new(low, high, log, None).unwrap());
        Fidelity::new(axis, None, None).unwrap()
    }

    #[test]
    fn short_values_are_decoded_from_their_encoding() {
        for (low, high, log) in [(0.1, 1.0, false), (0.0, 3.0, false), (0.01, 10.0, true)] {
            let fidelity = continuous(low, high, log);
            for value in [0.1, 0.2, 0.3, 0.6, 0.7, 0.75, 0.9, 1.0] {
                let z = fidelity.encode(value);
                assert_eq!(fidelity.decode(z), value, "{low} {high} {log}");
            }
            assert_eq!((fidelity.decode(0.0), fidelity.decode(1.0)), (low, high));
        }
        // A value without a short decimal keeps its z, up to rounding.
        let fidelity = continuous(0.1, 1.0, false);
        let z = fidelity.encode(fidelity.decode(1.0 / 3.0));
        assert!((z - 1.0 / 3.0).abs() <= f64::EPSILON, "{z}");
    }
}
