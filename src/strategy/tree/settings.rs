//! The settings of tree search, their defaults and their checks. The fields have their names in JSON.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::strategy::checks::{check, check_given, is_not_negative, refuse};

/// The largest number of instances that share one partition.
const MAX_INSTANCES: usize = 256;

/// The default of ρ_max, the largest ρ of POO, as in the experiments of Wang et al. 2022.
const MAX_RHO: f64 = 0.95;

/// The defaults of ρ^d, for full evaluations and if a fidelity is declared. When every side of a cell is halved once,
/// the bound on the variation of f is multiplied by ρ^d. Experiments: docs/tree_search_figures.md.
const DECAY: f64 = 0.25;
const DECAY_WITH_FIDELITY: f64 = 0.7;

/// The settings of tree search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    pub bound: Bound,
    /// ν in units of f. If `None`, ν is computed from the observed values.
    pub nu: Option<f64>,
    /// One value of ρ per instance. If `None`, a single ρ is computed from the number of dimensions.
    pub rho: Option<Rho>,
    /// The total number of trials. If given, the search is POO, whose instances use ρ_max and smaller values of ρ.
    pub horizon: Option<u64>,
    pub sample: Sample,
    pub recommendation: Recommended,
    pub refresh: Refresh,
    /// Whether the front is used every second turn. If `None`, the front is used unless ν, ρ, a horizon or a fidelity
    /// is given.
    pub front: Option<bool>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            bound: Bound::DUCBV(DUCBV::default()),
            nu: None,
            rho: None,
            horizon: None,
            sample: Sample::Uniform,
            recommendation: Recommended::LowerBound,
            refresh: Refresh::Frozen,
            front: None,
        }
    }
}

/// The upper confidence bound of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", deny_unknown_fields)]
pub enum Bound {
    DUCB1(DUCB1),
    DUCB1Sigma(DUCB1Sigma),
    DUCBV(DUCBV),
}

/// The bound DUCB1, for values in a known range.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DUCB1 {
    /// R, the range of the values in units of f. If `None`, the observed range is used.
    pub range: Option<f64>,
}

/// The bound DUCB1σ, for noise with a known standard deviation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DUCB1Sigma {
    pub noise_std: Option<f64>,
}

/// The bound DUCBV, which uses the variance of the observed values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DUCBV {
    /// b, a bound on the values in units of f. If `None`, b is computed from the observed values.
    pub b: Option<f64>,
}

/// The ρ of a single instance, or of each instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number or a list of numbers for rho")]
pub enum Rho {
    One(f64),
    Several(Vec<f64>),
}

impl Rho {
    fn all(&self) -> &[f64] {
        match self {
            Rho::One(rho) => std::slice::from_ref(rho),
            Rho::Several(all) => all,
        }
    }
}

/// How to choose the suggested point in a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sample {
    Uniform,
    Centre,
}

/// How to choose the leaf from which a point is recommended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recommended {
    /// The leaf with the largest mean − ν·ρ^h.
    LowerBound,
    /// The leaf with the largest mean.
    Mean,
}

/// How often the bounds update log t.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refresh {
    /// The bounds use log t⁺, where t⁺ is the next power of two, so that they change only when t exceeds a power of
    /// two.
    Frozen,
    /// The bounds of all cells use the current log t at every suggestion.
    Exact,
}

impl Settings {
    /// Returns the ρ of each instance. With a horizon T, POO (Grill, Valko and Munos 2015) has ρ_i = ρ_max^(N/(N − i)),
    /// where N = ½·D·log(T/log T) and D = log 2/log(1/ρ_max).
    pub fn rhos(&self, d: usize, has_fidelity: bool) -> Vec<f64> {
        let decay = match has_fidelity {
            true => DECAY_WITH_FIDELITY,
            false => DECAY,
        };
        let rho_max = match (&self.rho, self.horizon) {
            (Some(rho), Some(_)) => rho.all()[0],
            (Some(rho), None) => return rho.all().to_vec(),
            (None, Some(_)) => MAX_RHO,
            (None, None) => return vec![decay.powf(1.0 / d as f64)],
        };
        let horizon = self.horizon.unwrap_or(1);
        let t = horizon as f64;
        let d_max = 2.0_f64.ln() / (1.0 / rho_max).ln();
        let n = (0.5 * d_max * (t / t.ln().max(1.0)).ln()).ceil();
        let n = n.clamp(1.0, MAX_INSTANCES as f64) as usize;
        let power = |i: usize| n as f64 / (n - i) as f64;
        (0..n).map(|i| rho_max.powf(power(i))).collect()
    }

    /// Whether the front is used every second turn.
    pub fn has_front(&self, has_fidelity: bool) -> bool {
        let is_given = self.nu.is_some() || self.rho.is_some() || self.horizon.is_some();
        self.front.unwrap_or(!is_given && !has_fidelity)
    }

    /// Returns an error if a setting is invalid.
    pub fn check(&self) -> Result<()> {
        let rhos = self.rho.as_ref().map_or(&[MAX_RHO][..], Rho::all);
        let list = || format!("a list of {}", rhos.len());
        let expected = "give a number between 0 and 1, or a list of 1 to 256";
        let holds = (1..=MAX_INSTANCES).contains(&rhos.len());
        check(holds, "rho", list(), expected)?;
        let expected = "give the total number of trials, or None";
        check(self.horizon != Some(0), "horizon", 0, expected)?;
        let expected =
            "with a horizon the values follow from the largest one: give that, or no horizon";
        let holds = self.horizon.is_none() || rhos.len() == 1;
        check(holds, "rho", list(), expected)?;
        let expected = "give a number between 0 and 1: cells shrink by it at each halving";
        for rho in rhos {
            check(*rho > 0.0 && *rho < 1.0, "rho", rho, expected)?;
        }
        let (positive, not_negative) = (|x: f64| x > 0.0, |x: f64| x >= 0.0);
        let expected = "give a number above 0, in units of f, or None";
        check_given(self.nu, "nu", positive, expected)?;
        match self.bound {
            Bound::DUCB1(bound) => {
                let expected = "give the range of f, a number above 0, or None";
                check_given(bound.range, "bound.range", positive, expected)
            }
            Bound::DUCB1Sigma(bound) => {
                let expected =
                    "give the standard deviation of the noise, 0 or above, in units of f";
                let Some(std) = bound.noise_std else {
                    return Err(refuse("bound.noise_std", "None", expected));
                };
                check(is_not_negative(std), "bound.noise_std", std, expected)
            }
            Bound::DUCBV(bound) => {
                let expected = "give a number of 0 or above, in units of f, or None";
                check_given(bound.b, "bound.b", not_negative, expected)
            }
        }
    }
}
