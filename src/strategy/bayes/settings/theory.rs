//! The conditions of the theorem behind `beta="theory"` (Verma et al. 2022, theorem 1). The bound fails without them, so
//! that other settings are refused.

use crate::error::Result;
use crate::strategy::bayes::settings::pending::Pending;
use crate::strategy::bayes::settings::surrogate::{KernelChoice, PriorMean, TargetScale};
use crate::strategy::bayes::settings::{Settings, Window};
use crate::strategy::checks::{check, refuse};

const KERNEL: &str = "beta=\"theory\" assumes a known kernel: give surrogate=bl.GP(…) with kernel, lengthscale, \
                      signal_std and noise_std";

impl Settings {
    /// If `beta="theory"`, returns an error if the theorem does not apply.
    pub(super) fn check_theory(&self) -> Result<()> {
        let bound = self.acquisition.rule().bound();
        let Some(bound) = bound.filter(|bound| bound.is_theory()) else {
            return Ok(());
        };
        let missing = |is_given: bool, name, expected| check(is_given, name, "None", expected);
        let constants = bound.constants;
        missing(
            constants.rkhs_bound.is_some(),
            "theory.rkhs_bound",
            "beta=\"theory\" needs a bound on the norm of f: give one, or a fixed beta",
        )?;
        missing(
            constants.noise_bound.is_some(),
            "theory.noise_bound",
            "beta=\"theory\" needs R: give the standard deviation of Gaussian noise, the largest absolute value of \
             bounded noise, or a fixed beta",
        )?;
        let gp = &self.surrogate;
        let is_auto = gp.kernel == KernelChoice::Auto;
        check(!is_auto, "surrogate.kernel", "auto", KERNEL)?;
        missing(gp.lengthscale.is_some(), "surrogate.lengthscale", KERNEL)?;
        missing(gp.signal_std.is_some(), "surrogate.signal_std", KERNEL)?;
        missing(gp.noise_std.is_some(), "surrogate.noise_std", KERNEL)?;
        let targets = match gp.targets {
            TargetScale::Raw => None,
            TargetScale::Standardized => Some("standardized"),
            TargetScale::Robust => Some("robust"),
        };
        check(
            targets.is_none(),
            "surrogate.targets",
            targets.unwrap_or_default(),
            "the bounds of beta=\"theory\" are in units of f: give \"raw\"",
        )?;
        let mean = match gp.mean {
            PriorMean::Number(mean) => Some(mean),
            PriorMean::Median => None,
            PriorMean::Zero | PriorMean::Estimated | PriorMean::Auto => Some(0.0),
        };
        check(
            mean.is_some(),
            "surrogate.mean",
            "median",
            "beta=\"theory\" assumes a known mean: give a number",
        )?;
        match self.pending() {
            Pending::Censor(censor) => {
                missing(
                    constants.value_bound.is_some(),
                    "theory.value_bound",
                    "with pending=\"censor\", beta=\"theory\" needs B_y: give the largest distance of a value from the \
                     floor",
                )?;
                missing(
                    censor.floor.is_some(),
                    "pending.floor",
                    "beta=\"theory\" needs a fixed floor: give the smallest value of f",
                )?;
                check(
                    mean == censor.floor,
                    "surrogate.mean",
                    mean.unwrap_or_default(),
                    "with pending=\"censor\", beta=\"theory\" needs the floor as the mean: give the same number as floor",
                )?;
                check(
                    self.window != Some(Window::Auto),
                    "window",
                    "auto",
                    "beta=\"theory\" assumes a fixed window: give a number, or leave it out",
                )?;
                check(
                    self.window.is_none() || self.pending().discards_late(),
                    "pending.late",
                    "accept",
                    "with a window, beta=\"theory\" assumes that late values are not used: give \"discard\"",
                )
            }
            Pending::Ignore {} => Ok(()),
            // Bounds of UCBPE use the standard deviation given the observed rows.
            _ if self.acquisition.rule().traits().explores => Ok(()),
            other => Err(refuse(
                "pending",
                other.kind(),
                "beta=\"theory\" is a bound for \"ignore\" and \"censor\": with assumed values at pending points it would \
                 need a factor exp(C), which is 100,000 for five distant points at noise variance 0.01",
            )),
        }
    }
}
