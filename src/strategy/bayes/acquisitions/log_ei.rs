//! The logarithm of the expected improvement over an incumbent (Ament et al. 2023).
//!
//! Notation: u = (mu − f*)/sigma; φ and Φ are the standard normal density and distribution; R(a) = Φ(−a)/φ(a) is Mills'
//! ratio; h(u) = φ(u) + u Φ(u) = E max(0, u + N(0, 1)). The expected improvement equals sigma h(u).

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use serde::{Deserialize, Serialize};

use crate::error::{Result, refuse};
use crate::gp::GaussianProcess;
use crate::numerics::special::mills_ratio;
use crate::random::Rng;
use crate::strategy::bayes::acquisitions::formula::{Moments, OfMoments};
use crate::strategy::bayes::acquisitions::incumbents::{
    incumbent, is_here, largest_feasible, without,
};
use crate::strategy::bayes::acquisitions::log_noisy_expected_improvement::{
    LogNoisyExpectedImprovement, baseline_points,
};
use crate::strategy::bayes::acquisitions::rule::{Maximand, Rule, Situation, TailKind, Traits};
use crate::strategy::checks::check;
use crate::strategy::{Query, Resource};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogEI {
    /// The incumbent. The setting `incumbent` is ignored if the improvement is averaged over fantasies of
    /// pending trials.
    pub incumbent: Incumbent,
    /// Improvement is maximised per unit of this resource.
    pub per: Per,
    /// The improvement is divided by the expected duration or cost to this power.
    pub power: Power,
}

/// Improvement is maximised per unit of this resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// The resource whose limit ends the run. If no such limit is given, the improvement per trial is maximised.
    #[default]
    Auto,
    Trial,
    Time,
    Cost,
}

/// An exponent of the expected duration or cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Power {
    /// The exponent is the share of the limit that is left, which falls from 1 to 0 (Lee et al. 2020, "EI cooling").
    Cooled,
    #[serde(untagged)]
    Number(f64),
}

impl Default for Power {
    fn default() -> Self {
        Power::Number(DEFAULT_POWER)
    }
}

/// The default exponent. The exponents from 0.7 to 2 are equally good (docs/compared.md).
const DEFAULT_POWER: f64 = 1.0;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Incumbent {
    /// The largest posterior mean at an observed point.
    #[default]
    PosteriorMean,
    /// The largest value observed in the context of the query, including noise (Kandasamy et al. 2017). Before the first
    /// value in this context, the values of all contexts count.
    BestValue,
}

impl Rule for LogEI {
    fn tail(
        &self,
        observed: &GaussianProcess,
        unranked: &[usize],
        n_fantasies: Option<usize>,
        query: Query,
    ) -> Result<TailKind> {
        if n_fantasies.is_none() {
            return Ok(TailKind::Policy);
        }
        let baseline = baseline_points(observed, unranked, query)?;
        Ok(TailKind::Noiseless { baseline })
    }

    fn maximand(&self, situation: Situation, rng: &mut Rng) -> Result<Maximand<'static>> {
        if let Some(n) = situation.n_fantasies {
            let formula = LogNoisyExpectedImprovement::draw(situation, n, rng)?;
            return Ok(Maximand::Formula(Box::new(formula)));
        }
        let Situation {
            gp,
            unranked,
            query,
            ..
        } = situation;
        let incumbent = match self.incumbent {
            Incumbent::PosteriorMean => incumbent(gp, unranked, query)?,
            Incumbent::BestValue => {
                let here = is_here(gp, query.context);
                let mut left_out = unranked.to_vec();
                if (0..here.len()).any(|row| here[row] && !unranked.contains(&row)) {
                    left_out.extend((0..here.len()).filter(|&row| !here[row]));
                }
                let targets = without(situation.targets.to_vec(), &left_out);
                largest_feasible(gp, &targets, query)?
            }
        };
        Ok(Maximand::Formula(Box::new(LogExpectedImprovement {
            incumbent,
        })))
    }

    fn asks_for(&self) -> Option<Resource> {
        match self.per {
            Per::Auto | Per::Trial => None,
            Per::Time => Some(Resource::Time),
            Per::Cost => Some(Resource::Cost),
        }
    }

    fn per(&self, query: Query) -> Result<Option<(Resource, f64)>> {
        let resource = match self.per {
            Per::Auto => query.limit.map(|limit| limit.of),
            Per::Trial | Per::Time | Per::Cost => self.asks_for(),
        };
        let Some(resource) = resource else {
            return Ok(None);
        };
        let power = match (self.power, query.limit) {
            (Power::Number(power), _) => power,
            (Power::Cooled, Some(limit)) if limit.of == resource => {
                (1.0 - limit.used).clamp(0.0, 1.0)
            }
            (Power::Cooled, _) => {
                return Err(refuse(
                    "acquisition.power",
                    "\"cooled\"",
                    "it falls with the time or cost that is left: run maximize with timeout= or budget=, or \
                               give a number",
                ));
            }
        };
        Ok(Some((resource, power)))
    }

    fn check(&self, _candidates: bool) -> Result<()> {
        match self.power {
            Power::Number(power) => {
                let valid = (0.0..=10.0).contains(&power);
                check(
                    valid,
                    "acquisition.power",
                    power,
                    "give a number from 0 to 10, or \"cooled\"",
                )
            }
            Power::Cooled => Ok(()),
        }
    }

    fn traits(&self) -> Traits {
        Traits {
            averages_fantasies: true,
            is_logarithm: true,
            ..Traits::default()
        }
    }
}

/// The acquisition log E max(0, f − f*).
#[derive(Debug, Clone)]
pub struct LogExpectedImprovement {
    /// The incumbent f*.
    pub incumbent: f64,
}

impl OfMoments for LogExpectedImprovement {
    fn in_units_of_f(&self, value: f64, scale: f64, _value_of: &dyn Fn(f64) -> f64) -> f64 {
        value + scale.ln()
    }

    // a = log sigma + log h(u)
    fn value(&self, at: Moments) -> f64 {
        let std = at.std();
        std.ln() + log_improvement((at.mean - self.incumbent) / std).0
    }

    // ∂a/∂mu = h'/h / sigma,  ∂a/∂sigma = (1 − h'/h·u) / sigma
    fn value_and_derivatives(&self, at: Moments) -> (f64, f64, f64) {
        let std = at.std();
        let u = (at.mean - self.incumbent) / std;
        let (log_h, slope) = log_improvement(u);
        (std.ln() + log_h, slope / std, (1.0 - slope * u) / std)
    }
}

/// Returns log h(u) and its derivative h'(u)/h(u) = Φ(u)/h(u).
///
/// For u < −1, h is computed as φ(u)(1 + u R(−u)), because the two terms of h nearly cancel.
pub fn log_improvement(u: f64) -> (f64, f64) {
    let log_density = -0.5 * u * u - 0.5 * (2.0 * PI).ln();
    if u > -1.0 {
        let cdf = 0.5 * libm::erfc(-u * FRAC_1_SQRT_2);
        let h = log_density.exp() + u * cdf;
        (h.ln(), cdf / h)
    } else {
        let (ratio, rest) = mills_ratio(-u);
        (log_density + rest.ln(), ratio / rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gp::kernel::KernelFamily;
    use crate::gp::tests::{model, wave};
    use crate::random::Rng;
    use crate::strategy::bayes::acquisitions::tests::value;
    use rand::SeedableRng;

    #[test]
    fn log_improvement_matches_high_precision_values() {
        // The expected values of log(φ(u) + u Φ(u)) were computed with 60 digits.
        for (u, expected) in [
            (5.0, 1.6094379231264314),
            (0.5, -0.3598276837450638),
            (-0.9, -2.2982829894596517),
            (-1.1, -2.679178382476053),
            (-5.0, -16.74430116266099),
            (-20.0, -206.9178385094251),
            (-38.0, -730.1961834021137),
            (-100.0, -5010.12957880025),
        ] {
            let (value, _) = log_improvement(u);
            assert!(
                (value - expected).abs() <= 1e-10 * expected.abs().max(1.0),
                "{u}: {value} {expected}"
            );
        }
    }

    #[test]
    fn log_improvement_has_its_derivative_everywhere() {
        for i in 0..2000 {
            let u = -60.0 + 0.0333 * i as f64;
            let h = 1e-6 * u.abs().max(1.0);
            let slope = (log_improvement(u + h).0 - log_improvement(u - h).0) / (2.0 * h);
            let derivative = log_improvement(u).1;
            assert!(
                (slope - derivative).abs() < 1e-5 * derivative.abs().max(1e-3),
                "{u}"
            );
        }
    }

    #[test]
    fn expected_improvement_equals_the_mean_over_draws() {
        let gp = model(KernelFamily::Matern52, 6);
        let x = wave(1, 2, 30.0);
        let incumbent = gp.mean(x.view())[0] - 0.2;
        let mut rng = Rng::seed_from_u64(2);
        let n = 200_000;
        let draws = gp.sample(x.view(), n, &mut rng).unwrap();
        let improvement = draws.iter().map(|f| (f - incumbent).max(0.0)).sum::<f64>() / n as f64;
        let log_ei = LogExpectedImprovement { incumbent };
        let log_ei = value(&gp, &log_ei, x.row(0).to_slice().unwrap());
        assert!((log_ei.exp() / improvement - 1.0).abs() < 0.02);
    }
}
