//! The delay distribution: when trials arrive, whether they arrive, and forecasts for trials in flight.
//!
//! * [`records`]: the data, sorted and grouped; [`incidence`]: the Aalen–Johansen estimate, without a family
//! * [`family`]: families of distributions; [`likelihood`]: the log-posterior with its derivatives; [`fit`]: its maximum
//! * [`draws`]: an approximation of the posterior by weighted draws; [`forecast`]: forecasts; [`counts`]: the number of
//!   arrivals
//!
//! The model is a mixture of three (a mixture cure model with a competing cause; Maller and Zhou 1996). A trial arrives
//! with probability π_A after a delay of distribution G_A, fails with probability π_F after a delay of distribution
//! G_F, or never ends, with probability π_N = 1 − π_A − π_F. A trial that is in flight at age a contributes
//! S(a) = π_N + π_A (1 − G_A(a)) + π_F (1 − G_F(a)) to the likelihood.

pub mod counts;
pub mod draws;
pub mod family;
pub mod fit;
pub mod forecast;
pub mod incidence;
pub mod likelihood;
pub mod records;

#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};

use crate::error::{Result, Stop};
use draws::Draw;
use fit::{Fit, Options};
use incidence::Incidence;
pub use records::{Ending, Unknown};
use records::{Records, Resolution};

/// The delays and ages of trials, with their distribution.
pub struct Delays {
    pub ages: Vec<f64>,
    pub endings: Vec<Ending>,
    resolution: Resolution,
    /// The distribution, once it has been fitted.
    fitted: OnceLock<Arc<Fitted>>,
}

/// A delay distribution, or the reason for which it is unknown.
pub type Fitted = std::result::Result<DelayDistribution, Unknown>;

impl Delays {
    /// Creates delays whose distribution has not been fitted.
    pub fn new(ages: Vec<f64>, endings: Vec<Ending>, resolution: Resolution) -> Self {
        Self {
            ages,
            endings,
            resolution,
            fitted: OnceLock::new(),
        }
    }

    /// Fits the distribution, or returns the distribution of an earlier call.
    pub fn distribution(&self, options: &Options, stop: &mut Stop) -> Result<Arc<Fitted>> {
        if let Some(known) = self.fitted.get() {
            return Ok(known.clone());
        }
        let (ages, endings) = (&self.ages, &self.endings);
        let found = DelayDistribution::fit(ages, endings, self.resolution, options, stop)?;
        Ok(self.fitted.get_or_init(|| Arc::new(found)).clone())
    }
}

/// The posterior of the delay distribution, as weighted draws. Arguments and results are in units of the clock.
/// Internal times are in units of `scale`.
pub struct DelayDistribution {
    incidence: Incidence,
    fits: Vec<Fit>,
    draws: Vec<Draw>,
    /// The unit of time, a typical delay, in units of the clock.
    scale: f64,
    /// The largest age of a record. Probabilities at later ages are extrapolated.
    follow_up: f64,
    resolution: Resolution,
}

impl DelayDistribution {
    /// Fits the families to records. The order of the records does not change the result.
    pub fn fit(
        ages: &[f64],
        endings: &[Ending],
        resolution: Resolution,
        options: &Options,
        stop: &mut Stop,
    ) -> Result<std::result::Result<Self, Unknown>> {
        let mut records = match Records::new(ages, endings, resolution)? {
            Ok(records) => records,
            Err(unknown) => return Ok(Err(unknown)),
        };
        let incidence = Incidence::of(&records);
        records.early = incidence.early(&records);
        let fits = fit::fit_families(&records, options, stop)?;
        let draws = draws::draws(&fits, &records, options, stop)?;
        Ok(Ok(Self {
            incidence,
            fits,
            draws,
            scale: records.scale,
            follow_up: records.follow_up,
            resolution,
        }))
    }

    /// The Aalen–Johansen estimate.
    pub fn incidence(&self) -> &Incidence {
        &self.incidence
    }

    /// The fitted families, with their weights.
    pub fn fits(&self) -> &[Fit] {
        &self.fits
    }

    /// Returns (location, σ) of a fit: the location and the scale of the log of the delay, in units of the clock.
    pub fn location_and_spread(&self, fit: &Fit) -> (f64, f64) {
        let location = fit.theta[likelihood::LOCATION] + self.scale.ln();
        (location, fit.theta[likelihood::SPREAD].exp())
    }

    /// The largest age of a record.
    pub fn follow_up(&self) -> f64 {
        self.follow_up
    }
}
