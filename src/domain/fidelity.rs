//! Fidelity, the share of a full evaluation that a trial runs. A fidelity has a cost and a bound on its bias.
//!
//! Notation: z ∈ [0, 1] is the fidelity, which is 1 for a full evaluation; λ(z) is the cost; ζ(z) is a bound on |f_z(x)
//! − f(x)| at every x.

use serde::{Deserialize, Serialize};

use crate::domain::{Coordinate, Domain};
use crate::error::{Error, Result};

/// Fidelities that differ by at most this tolerance count as equal. The code of Wang et al. (2022) reuses values in the
/// same way.
pub const TOLERANCE: f64 = 1e-3;

/// The declared properties of evaluations below full fidelity. An undeclared property is None.
#[derive(Debug, Clone, PartialEq)]
pub struct Fidelity {
    /// The possible values of z, either all of [0, 1] or the positions of integers.
    pub axis: Coordinate,
    /// The factor C > 0 in ζ(z) = C·(1 − z), in units of f.
    pub bias: Option<f64>,
    pub cost: Option<PowerCost>,
}

/// The cost λ(z) = base + (full − base)·z^exponent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerCost {
    /// The cost at z = 0, with 0 ≤ base ≤ full.
    pub base: f64,
    /// The exponent, which is above 0.
    pub exponent: f64,
    /// The cost at z = 1, which is above 0.
    pub full: f64,
}

impl Default for Fidelity {
    fn default() -> Self {
        Self {
            axis: Coordinate::Continuous,
            bias: None,
            cost: None,
        }
    }
}

impl Fidelity {
    /// Refuses numbers that are not a valid bias or cost.
    pub fn check(&self) -> Result<()> {
        let positive = |x: f64| x > 0.0 && x.is_finite();
        let refuse = |name, got: f64, expected| {
            Err(Error::InvalidSetting {
                name,
                got: got.to_string(),
                expected,
            })
        };
        if let Some(got) = self.bias.filter(|bias| !positive(*bias)) {
            return refuse("bias", got, "give a finite number above 0, or leave it out");
        }
        if matches!(self.axis, Coordinate::Categorical { .. }) {
            let text = "a fidelity is a number, not a choice; give a range of numbers";
            return Err(Error::InvalidSpace(text.to_string()));
        }
        Domain::new_box(vec![self.axis.clone()])?;
        let Some(cost) = self.cost else { return Ok(()) };
        if !positive(cost.full) {
            return refuse("full", cost.full, "give a finite cost above 0");
        }
        if !(0.0..=cost.full).contains(&cost.base) {
            return refuse("base", cost.base, "give a cost from 0 to `full`");
        }
        if !positive(cost.exponent) {
            return refuse("exponent", cost.exponent, "give a finite number above 0");
        }
        Ok(())
    }

    /// The possible value of z nearest to this value.
    pub fn nearest(&self, z: f64) -> f64 {
        match self.axis {
            Coordinate::Continuous => z,
            _ => self.axis.position(self.axis.index(&[z])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::integer;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// On a grid, the result is a nearest grid value. A possible value of z is returned unchanged.
        #[test]
        fn the_nearest_possible_value_is_found(low in 1..50i64, n in 1..50i64, z in 0.0..=1.0f64, log: bool) {
            let axis = integer(low, low + n, log);
            let found = on(axis.clone()).nearest(z);
            let least = (0..=n as u64).map(|i| (axis.position(i) - z).abs()).fold(1.0, f64::min);
            prop_assert!(((found - z).abs() - least).abs() < 1e-12);
            prop_assert_eq!(on(axis).nearest(found), found);
            prop_assert_eq!(Fidelity::default().nearest(z), z);
        }
    }

    fn cost(base: f64, exponent: f64, full: f64) -> Fidelity {
        let cost = Some(PowerCost {
            base,
            exponent,
            full,
        });
        Fidelity {
            cost,
            ..Fidelity::default()
        }
    }

    fn on(axis: Coordinate) -> Fidelity {
        Fidelity {
            axis,
            ..Fidelity::default()
        }
    }

    fn bias(bias: f64) -> Fidelity {
        Fidelity {
            bias: Some(bias),
            ..Fidelity::default()
        }
    }

    #[test]
    fn invalid_biases_and_costs_are_refused() {
        for good in [
            Fidelity::default(),
            bias(1e-300),
            cost(0.0, 0.5, 1.0),
            cost(7.0, 1.0, 7.0),
        ] {
            assert_eq!(good.check(), Ok(()));
        }
        for axis in [
            Coordinate::Categorical { n: 2 },
            integer(5, 4, false),
            integer(0, 4, true),
        ] {
            let refused = on(axis).check();
            assert!(
                matches!(refused, Err(Error::InvalidSpace(_))),
                "{refused:?}"
            );
        }
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        for (bad, named) in [
            (bias(0.0), "bias"),
            (bias(-1.0), "bias"),
            (bias(nan), "bias"),
            (bias(inf), "bias"),
            (cost(0.0, 1.0, 0.0), "full"),
            (cost(0.0, 1.0, inf), "full"),
            (cost(-0.5, 1.0, 1.0), "base"),
            (cost(1.5, 1.0, 1.0), "base"),
            (cost(nan, 1.0, 1.0), "base"),
            (cost(0.5, 0.0, 1.0), "exponent"),
            (cost(0.5, nan, 1.0), "exponent"),
        ] {
            match bad.check() {
                Err(Error::InvalidSetting { name, .. }) => assert_eq!(name, named),
                other => panic!("{bad:?} gave {other:?}"),
            }
        }
    }
}
