//! AEGiS: the maximum of the posterior mean, a draw from the posterior, or a random compromise between mean and standard
//! deviation (De Ath et al. 2021).

use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::random::Rng;
use crate::strategy::bayes::acquisitions::draws::{DrawMethod, Draws};
use crate::strategy::bayes::acquisitions::rule::{Maximand, Rule, Situation, Traits};
use crate::strategy::bayes::acquisitions::ucb::UpperConfidenceBound;

/// The number of random features of a draw.
const N_FEATURES: usize = 1024;

/// AEGiS in d dimensions, with ε = 1/√max(d, 4). The point is the maximum of mu with probability 1 − 2ε, the maximum of
/// a draw with probability ε, and a random point of the Pareto set of (mu, sigma) with probability ε.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AEGiS {}

impl Rule for AEGiS {
    fn maximand(&self, situation: Situation, rng: &mut Rng) -> Result<Maximand<'static>> {
        let d = situation.gp.kernel().width();
        let epsilon = 1.0 / (d.max(4) as f64).sqrt();
        let u: f64 = rng.random();
        Ok(if u < epsilon {
            Maximand::Draw(Draws {
                method: DrawMethod::Pathwise,
                n_features: N_FEATURES,
                widen: false,
            })
        } else if u < 2.0 * epsilon {
            Maximand::ParetoSet
        } else {
            Maximand::Formula(Box::new(UpperConfidenceBound {
                multiplier: 0.0,
                noise: 0.0,
            }))
        })
    }

    fn traits(&self) -> Traits {
        Traits {
            is_random: true,
            ..Traits::default()
        }
    }
}
