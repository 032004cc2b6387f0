//! Fidelity, the share of a full evaluation that a trial runs, with its cost and a bound on its bias.
//!
//! Notation: z ∈ [0, 1] is the fidelity, which is 1 for a full evaluation; a *value* is a fidelity in the user's units,
//! such as a number of epochs; λ(z) is the cost; ζ(z) is a bound on |f_z(x) − f(x)| at every x.

use serde::{Deserialize, Serialize};

use super::{Parameter, Real};
use crate::error::{Error, Result, refuse};

/// Fidelities that differ by at most this tolerance count as equal, as in the code of Wang et al. (2022).
pub const TOLERANCE: f64 = 1e-3;

/// The range of fidelities, and the declared properties of evaluations below full fidelity. An undeclared property is
/// None.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Saved")]
pub struct Fidelity {
    /// The possible values.
    pub axis: Parameter,
    /// The factor C > 0 in ζ(z) = C·(1 − z), in units of f.
    pub bias: Option<f64>,
    /// The cost of an evaluation at fidelity z.
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
            axis: Parameter::Real(Real::UNIT),
            bias: None,
            cost: None,
        }
    }
}

impl Fidelity {
    /// Creates a fidelity. Refuses an axis whose values are choices, an invalid bias, and an invalid cost.
    pub fn new(axis: Parameter, bias: Option<f64>, cost: Option<PowerCost>) -> Result<Self> {
        if !axis.kind().coordinate().is_ordered() {
            let text = "a fidelity is a number, not a choice; give a range of numbers";
            return Err(Error::InvalidSpace(text.to_string()));
        }
        let positive = |x: f64| x > 0.0 && x.is_finite();
        let refuse = |name, got: f64, expected| {
            let got = got.to_string();
            Err(refuse(name, got, expected))
        };
        if let Some(got) = bias.filter(|bias| !positive(*bias)) {
            return refuse("bias", got, "give a finite number above 0, or leave it out");
        }
        if let Some(got) = cost.map(|cost| cost.full).filter(|full| !positive(*full)) {
            return refuse("full", got, "give a finite cost above 0");
        }
        if let Some(cost) = cost.filter(|cost| !(0.0..=cost.full).contains(&cost.base)) {
            return refuse("base", cost.base, "give a cost from 0 to `full`");
        }
        if let Some(cost) = cost.filter(|cost| !positive(cost.exponent)) {
            return refuse("exponent", cost.exponent, "give a finite number above 0");
        }
        Ok(Self { axis, bias, cost })
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

    /// Converts a value in the user's units to the fidelity z.
    pub(crate) fn encode(&self, value: f64) -> f64 {
        let mut z = [0.0];
        self.axis.kind().encode(value, &mut z);
        z[0]
    }

    /// The value nearest to a fidelity z. On a continuous range, the value with the fewest decimal digits that encodes
    /// to z up to rounding.
    pub(crate) fn decode(&self, z: f64) -> f64 {
        let value = self.axis.kind().decode(&[z]);
        if self.axis.n_levels().is_some() {
            return value;
        }
        // Every float can be written as a decimal with at most 17 digits.
        let mut rounded = (0..17).filter_map(|digits| format!("{value:.digits$e}").parse().ok());
        let has_z = |&short: &f64| {
            self.check_value(short).is_ok() && (self.encode(short) - z).abs() <= f64::EPSILON
        };
        rounded.find(has_z).unwrap_or(value)
    }

    /// Of the encoded fidelities that can occur, the one nearest to z.
    pub(crate) fn nearest(&self, z: f64) -> f64 {
        let axis = self.axis.kind().coordinate();
        match axis.levels() {
            None => z,
            Some(_) => axis.position(axis.index(&[z])),
        }
    }
}

/// The fields in the saved form, which the constructor checks.
type Saved = (Parameter, Option<f64>, Option<PowerCost>);

impl TryFrom<Saved> for Fidelity {
    type Error = Error;

    fn try_from((axis, bias, cost): Saved) -> Result<Self> {
        Fidelity::new(axis, bias, cost)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Choices, Integer};
    use super::*;
    use proptest::prelude::*;

    fn integer(low: u32, high: u32, log: bool) -> Parameter {
        Parameter::Integer(Integer::new(low.into(), high.into(), log, None).unwrap())
    }

    proptest! {
        /// On a grid, the result is a grid value that is nearest to z. A possible value of z is returned unchanged.
        #[test]
        fn the_nearest_possible_value_is_found(low in 1..50u32, n in 1..50u32, z in 0.0..=1.0f64, log: bool) {
            let fidelity = Fidelity::new(integer(low, low + n, log), None, None).unwrap();
            let found = fidelity.nearest(z);
            let axis = fidelity.axis.kind().coordinate();
            let least = (0..=u64::from(n)).map(|i| (axis.position(i) - z).abs()).fold(1.0, f64::min);
            prop_assert!(((found - z).abs() - least).abs() < 1e-12);
            prop_assert_eq!(fidelity.nearest(found), found);
            prop_assert_eq!(Fidelity::default().nearest(z), z);
        }
    }

    fn with(bias: Option<f64>, cost: Option<(f64, f64, f64)>) -> Result<Fidelity> {
        let cost = cost.map(|(base, exponent, full)| PowerCost {
            base,
            exponent,
            full,
        });
        Fidelity::new(integer(1, 9, false), bias, cost)
    }

    #[test]
    fn invalid_biases_and_costs_are_refused() {
        for good in [
            with(None, None),
            with(Some(1e-300), None),
            with(None, Some((0.0, 0.5, 1.0))),
            with(None, Some((7.0, 1.0, 7.0))),
        ] {
            assert!(good.is_ok(), "{good:?}");
        }
        let choices = Choices::unordered(vec!["a".into(), "b".into()]);
        let refused = Fidelity::new(Parameter::Categorical(choices), None, None);
        assert!(
            matches!(refused, Err(Error::InvalidSpace(_))),
            "{refused:?}"
        );
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        let bias = |bias| with(Some(bias), None);
        let cost = |base, exponent, full| with(None, Some((base, exponent, full)));
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
            match bad {
                Err(Error::InvalidSetting { name, .. }) => assert_eq!(name, named),
                other => panic!("{named} gave {other:?}"),
            }
        }
    }

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
        // The fidelities z that strategies choose are decoded to values with few digits.
        for (low, high, z, value) in [
            (0.0, 3.0, 0.8, 2.4),
            (0.0, 3.0, 0.2, 0.6),
            (0.1, 1.0, 0.8, 0.82),
        ] {
            assert_eq!(continuous(low, high, false).decode(z), value);
        }
        // A value without a short decimal keeps its z, up to rounding.
        let fidelity = continuous(0.1, 1.0, false);
        let z = fidelity.encode(fidelity.decode(1.0 / 3.0));
        assert!((z - 1.0 / 3.0).abs() <= f64::EPSILON, "{z}");
    }
}
