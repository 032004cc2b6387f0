//! Policies for pending trials. A policy determines the target of a pending trial. Policies do not depend on the
//! kernel.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::gp::Target;
use crate::problem::Direction;
use crate::strategy::bayes::acquisitions::Acquisition;
use crate::strategy::checks::{VALUE_OF_F, check, check_count, check_given};
use crate::strategy::from_settings::as_json;

/// How pending trials enter the posterior.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", deny_unknown_fields)]
pub enum Pending {
    /// Pending trials are left out of the model (GP-UCB, asy-TS, asyUCB, asyEI).
    Ignore {},
    /// The variance at pending trials is removed, and the mean does not change (Desautels et al. 2014), as in GP-BUCB,
    /// GP-BTS and asyHTS.
    Hallucinate(Hallucinate),
    /// The assumed value of a pending trial is the floor, even after the window of the trial has passed. GP-UCB-SDF and
    /// GP-TS-SDF use this policy (Verma et al. 2022).
    Censor(Censor),
    /// The assumed value is the same for all pending trials (the constant liar of Ginsbourger et al. 2010).
    Liar(Liar),
    /// The assumed value of a pending trial is the average of the posterior mean over the k nearest observed points
    /// (Verma et al. 2022, footnote 3).
    Nearest(Nearest),
    /// The acquisition is averaged over quasi-random fantasies of pending trials (Snoek et al. 2012, section 3.2).
    Integrate(Integrate),
    /// Pending trials are left out of the model, and the acquisition is multiplied by penalties near pending trials
    /// (González et al. 2016).
    LocalPenalization {},
    /// As `LocalPenalization`, with the penalties of PLAyBOOK-HL (Alvi et al. 2019).
    PLAyBOOK {},
}

/// The form of local penalties. Notation: mu and sigma are the posterior mean and standard deviation given the observed
/// values; M is the best observed value; x_j are the points of pending trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Penalizer {
    /// Φ((‖x − x_j‖ − r_j)/s_j) with r_j = (M − mu(x_j))/L and s_j = sigma(x_j)/L. L is the largest slope of mu in the
    /// box (González et al. 2016).
    Soft,
    /// (1 + a⁻⁵)^(−1/5) with a = ‖x − x_j‖/(r_j + s_j), which is a smooth version of min(a, 1). r_j = |M −
    /// mu(x_j)|/L_j, s_j = sigma(x_j)/L_j, and L_j is the largest slope of mu within a lengthscale of x_j (PLAyBOOK-HL,
    /// Alvi et al. 2019).
    Hard,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Hallucinate {
    /// Whether a point in flight may be suggested again, as in the literature, even if a finite domain has untried
    /// points.
    pub repeats: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Censor {
    /// The known or assumed minimum of f. `None` means the worst observed value.
    pub floor: Option<f64>,
    pub late: Late,
    /// Whether points in flight may be suggested again, as in `Hallucinate`.
    pub repeats: bool,
}

/// The treatment of a value that arrives after the window of its trial. The log keeps the value, even if the model
/// discards it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Late {
    #[default]
    Accept,
    /// The value is discarded, and the trial stays at the floor, as in the experiments of Verma et al. 2022.
    Discard,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Liar {
    pub value: Lie,
}

/// The value that the constant liar uses for pending trials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(
    rename_all = "snake_case",
    expecting = "expected a value of f, \"min\", \"mean\" or \"max\""
)]
pub enum Lie {
    /// The smallest observed value.
    Min,
    /// The mean of the observed values.
    #[default]
    Mean,
    /// The largest observed value.
    Max,
    /// A value of f.
    #[serde(untagged)]
    Number(f64),
}

/// The settings of [`Pending::Nearest`]. The posterior computes the mean over the nearest points (`gp/tail.rs`).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Nearest {
    /// The number of nearest observed points.
    pub k: usize,
}

impl Default for Nearest {
    fn default() -> Self {
        Self { k: 3 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Integrate {
    /// The number of quasi-random fantasies over which the acquisition is averaged. In experiments, more fantasies than
    /// the default number did not improve suggestions.
    pub n: usize,
}

impl Default for Integrate {
    fn default() -> Self {
        Self { n: 32 }
    }
}

/// The floor, and the value that the constant liar uses, in the units of the model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Levels {
    /// The smallest value that f can take.
    pub floor: f64,
    /// The value that the constant liar uses for pending trials.
    pub lie: f64,
}

impl Pending {
    /// Every policy with its defaults.
    pub fn defaults() -> Vec<Self> {
        vec![
            Pending::Integrate(Integrate::default()),
            Pending::Hallucinate(Hallucinate::default()),
            Pending::Ignore {},
            Pending::Censor(Censor::default()),
            Pending::Liar(Liar::default()),
            Pending::Nearest(Nearest::default()),
            Pending::LocalPenalization {},
            Pending::PLAyBOOK {},
        ]
    }

    /// Returns an error if the policy does not suit the acquisition or if a setting is invalid. Some settings require a
    /// window.
    pub fn check(&self, acquisition: &Acquisition, has_window: bool) -> Result<()> {
        let rule = acquisition.rule();
        check(
            matches!(self, Pending::Hallucinate(_)) || !rule.traits().explores,
            "pending",
            self.kind(),
            "acquisition=\"ucb_pe\" explores by the variance given hallucinated values; give \"hallucinate\", or leave it out",
        )?;
        match self {
            Pending::Integrate(integrate) => {
                check_count("pending.n", integrate.n)?;
                check(
                    rule.traits().averages_fantasies,
                    "pending",
                    "integrate",
                    "it needs acquisition=\"log_ei\": for other acquisitions the average over outcomes equals \
                     \"hallucinate\" (bounds, variances) or \"ignore\" (draws)",
                )
            }
            Pending::Nearest(nearest) => check_count("pending.k", nearest.k),
            Pending::Liar(liar) => match liar.value {
                Lie::Number(lie) => check(lie.is_finite(), "pending.value", lie, VALUE_OF_F),
                _ => Ok(()),
            },
            Pending::Censor(censor) => {
                check_given(censor.floor, "pending.floor", f64::is_finite, VALUE_OF_F)?;
                check(
                    has_window || !self.discards_late(),
                    "pending.late",
                    "discard",
                    "it needs a window, after which a value is too late",
                )
            }
            Pending::LocalPenalization {} | Pending::PLAyBOOK {} => check(
                matches!(acquisition, Acquisition::LogEI(_) | Acquisition::UCB(_)),
                "pending",
                self.kind(),
                "its penalties multiply an expected improvement or a bound: use acquisition=\"ucb\" or \"log_ei\"",
            ),
            Pending::Ignore {} | Pending::Hallucinate(_) => Ok(()),
        }
    }

    /// Converts the settings that are values of f, so that larger values are better.
    pub fn oriented(mut self, direction: Direction) -> Self {
        let minimizes = direction == Direction::Minimize;
        match &mut self {
            Pending::Censor(censor) => {
                censor.floor = censor.floor.map(|floor| direction.oriented(floor));
            }
            Pending::Liar(Liar { value }) => {
                *value = match *value {
                    Lie::Number(lie) => Lie::Number(direction.oriented(lie)),
                    Lie::Min if minimizes => Lie::Max,
                    Lie::Max if minimizes => Lie::Min,
                    statistic => statistic,
                }
            }
            _ => {}
        }
        self
    }

    /// The public name of this policy.
    pub fn kind(&self) -> String {
        if let Pending::LocalPenalization {} = self {
            return "local_penalization".to_string();
        }
        let kind = &as_json(self)["kind"];
        kind.as_str().unwrap_or_default().to_lowercase()
    }

    pub fn is_censor(&self) -> bool {
        matches!(self, Pending::Censor(_))
    }

    /// The known or assumed minimum of f, if the policy has one.
    pub fn floor(&self) -> Option<f64> {
        match self {
            Pending::Censor(censor) => censor.floor,
            _ => None,
        }
    }

    /// Whether a point in flight may be suggested again, even if a finite domain has untried points.
    pub fn repeats(&self) -> bool {
        match self {
            Pending::Ignore {} | Pending::LocalPenalization {} | Pending::PLAyBOOK {} => true,
            Pending::Hallucinate(Hallucinate { repeats })
            | Pending::Censor(Censor { repeats, .. }) => *repeats,
            Pending::Liar(_) | Pending::Nearest(_) | Pending::Integrate(_) => false,
        }
    }

    /// Whether a value that arrives after the window of its trial is discarded.
    pub fn discards_late(&self) -> bool {
        matches!(self, Pending::Censor(censor) if censor.late == Late::Discard)
    }

    /// Whether pending trials are left out of the model.
    pub fn leaves_out(&self) -> bool {
        matches!(self, Pending::Ignore {}) || self.penalizer().is_some()
    }

    /// The penalties by which the acquisition is multiplied near pending trials, if any.
    pub fn penalizer(&self) -> Option<Penalizer> {
        match self {
            Pending::LocalPenalization {} => Some(Penalizer::Soft),
            Pending::PLAyBOOK {} => Some(Penalizer::Hard),
            _ => None,
        }
    }

    /// Whether reports of running trials are used.
    pub fn uses_curves(&self) -> bool {
        !self.is_censor() && !self.leaves_out()
    }

    /// The number of fantasies of pending trials over which the acquisition is averaged, or `None` if the policy
    /// does not average.
    pub fn n_fantasies(&self) -> Option<usize> {
        match self {
            Pending::Integrate(integrate) => Some(integrate.n),
            _ => None,
        }
    }

    /// The value that the constant liar uses, given the observed values. The result is `None` for all other policies,
    /// and if the value is a statistic and `observed` is empty.
    pub fn lie(&self, observed: &[f64]) -> Option<f64> {
        let Pending::Liar(liar) = self else {
            return None;
        };
        match liar.value {
            Lie::Number(value) => Some(value),
            Lie::Min => observed.iter().copied().reduce(f64::min),
            Lie::Max => observed.iter().copied().reduce(f64::max),
            Lie::Mean if observed.is_empty() => None,
            Lie::Mean => {
                // Divide before summing, because the sum may overflow. Rounding errors may still make the mean slightly
                // too large for a double, so the mean is clamped.
                let mean: f64 = observed.iter().map(|y| y / observed.len() as f64).sum();
                Some(mean.clamp(f64::MIN, f64::MAX))
            }
        }
    }

    /// The value of f that the policy assumes for pending trials, if this value does not depend on the model. Under
    /// `Censor`, the assumed value is `floor`.
    pub fn assumed_value(&self, floor: f64) -> Option<f64> {
        match self {
            Pending::Censor(_) => Some(floor),
            Pending::Liar(Liar {
                value: Lie::Number(lie),
            }) => Some(*lie),
            _ => None,
        }
    }

    /// The target of a pending trial, or `None` if the trial is left out of the model.
    ///
    /// A trial that is not `arriving` is left out, except under `Censor`, which keeps the trial at the floor.
    pub fn target(&self, arriving: bool, levels: Levels) -> Option<Target> {
        match self {
            Pending::Censor(_) => Some(Target::Value(levels.floor)),
            _ if !arriving => None,
            Pending::Ignore {} | Pending::LocalPenalization {} | Pending::PLAyBOOK {} => None,
            // `Hallucinate` and `Integrate` use the same tail, because fantasies are computed as deviations from the
            // posterior mean.
            Pending::Hallucinate(_) | Pending::Integrate(_) => Some(Target::PosteriorMean),
            Pending::Liar(_) => Some(Target::Value(levels.lie)),
            Pending::Nearest(nearest) => Some(Target::NearestMean(nearest.k)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_past_their_window_stay_at_the_floor_or_are_dropped() {
        let levels = Levels {
            floor: -1.5,
            lie: 0.25,
        };
        for (policy, target) in [
            (Pending::Ignore {}, None),
            (Pending::LocalPenalization {}, None),
            (Pending::PLAyBOOK {}, None),
            (
                Pending::Hallucinate(Hallucinate::default()),
                Some(Target::PosteriorMean),
            ),
            (
                Pending::Integrate(Integrate::default()),
                Some(Target::PosteriorMean),
            ),
            (Pending::Liar(Liar::default()), Some(Target::Value(0.25))),
            (
                Pending::Nearest(Nearest { k: 3 }),
                Some(Target::NearestMean(3)),
            ),
        ] {
            assert_eq!(policy.target(true, levels), target);
            assert_eq!(policy.target(false, levels), None);
        }
        for arriving in [false, true] {
            let target = Pending::Censor(Censor::default()).target(arriving, levels);
            assert_eq!(target, Some(Target::Value(-1.5)));
        }
    }
}
