//! The Python class `DelayDistribution`, on numpy arrays.

use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::delays::family::Family;
use crate::delays::fit::Options;
use crate::delays::forecast::Forecast;
use crate::delays::records::Resolution;
use crate::delays::{DelayDistribution as Core, Delays, Ending, Fitted};
use crate::error::{Result, refuse};
use crate::python::interrupt::detached;
use crate::python::{Vector, owned1};

/// (value, low, high, extrapolated).
type Numbers = (f64, f64, f64, bool);

/// A fitted family: (name, weight, log-likelihood, location, spread, (arrives, fails, never)).
type FitNumbers = (&'static str, f64, f64, f64, f64, [f64; 3]);

/// The distribution of delays, with the probabilities that a trial arrives, fails or never ends.
#[pyclass(frozen, module = "belated._core")]
pub struct DelayDistribution {
    delays: Arc<Delays>,
    core: Arc<Fitted>,
}

impl DelayDistribution {
    /// Fits a distribution, unless it was fitted before.
    pub fn of(py: Python<'_>, delays: Arc<Delays>, options: &Options) -> PyResult<Self> {
        let core = detached(py, |stop| delays.distribution(options, stop))?;
        Ok(Self { delays, core })
    }

    /// The distribution, if known.
    pub fn known(&self) -> Option<&Core> {
        self.core.as_ref().as_ref().ok()
    }

    fn forecast(
        &self,
        py: Python<'_>,
        compute: impl FnOnce(&Core) -> Result<Forecast> + Send,
    ) -> PyResult<Option<Numbers>> {
        let Ok(core) = &*self.core else {
            return Ok(None);
        };
        let forecast = detached(py, |_| compute(core))?;
        Ok(Some(numbers(forecast)))
    }
}

fn numbers(forecast: Forecast) -> Numbers {
    (
        forecast.value,
        forecast.low,
        forecast.high,
        forecast.extrapolated,
    )
}

/// The endings, in the order of their integer codes in Python.
const ENDINGS: [Ending; 3] = [Ending::Censored, Ending::Arrived, Ending::Failed];

fn ending(code: &i64) -> Result<Ending> {
    let found = usize::try_from(*code)
        .ok()
        .and_then(|code| ENDINGS.get(code));
    let expected = "give 0 (in flight or abandoned), 1 (arrived) or 2 (failed)";
    found
        .copied()
        .ok_or_else(|| refuse("outcomes", code, expected))
}

fn resolution(clock: &str, step: Option<f64>) -> Result<Resolution> {
    match (clock, step) {
        ("seconds", None) => Ok(Resolution::Exact),
        ("seconds", Some(step)) => Ok(Resolution::Rounded(step)),
        ("iterations", None) => Ok(Resolution::Iterations),
        ("iterations", Some(step)) => Err(refuse(
            "resolution",
            step,
            "leave it out if the clock counts iterations",
        )),
        _ => Err(refuse(
            "clock",
            format!("{clock:?}"),
            "give \"seconds\" or \"iterations\"",
        )),
    }
}

fn families(names: Option<Vec<String>>) -> Result<Vec<Family>> {
    let Some(names) = names else {
        return Ok(Family::ALL.to_vec());
    };
    let named = |name: &String| Family::ALL.into_iter().find(|f| f.name() == name);
    match names.iter().map(named).collect::<Option<Vec<Family>>>() {
        Some(families) if !families.is_empty() => Ok(families),
        _ => Err(refuse(
            "families",
            format!("{names:?}"),
            "give a list of \"exponential\", \"weibull\", \"log-normal\" or \"log-logistic\"",
        )),
    }
}

#[pymethods]
impl DelayDistribution {
    #[new]
    #[pyo3(signature = (ages, outcomes, *, clock="seconds", resolution=None, families=None, priors=true, cure=true))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        ages: PyReadonlyArray1<'_, f64>,
        outcomes: PyReadonlyArray1<'_, i64>,
        clock: &str,
        resolution: Option<f64>,
        families: Option<Vec<String>>,
        priors: bool,
        cure: bool,
    ) -> PyResult<Self> {
        let resolution = self::resolution(clock, resolution)?;
        let options = Options {
            families: self::families(families)?,
            priors,
            cure,
        };
        let endings: Result<Vec<Ending>> = outcomes.as_array().iter().map(ending).collect();
        let delays = Delays::new(owned1(ages).to_vec(), endings?, resolution);
        Self::of(py, Arc::new(delays), &options)
    }

    /// The ages and outcomes, in the form that the constructor takes.
    fn records<'py>(&self, py: Python<'py>) -> (Vector<'py>, Bound<'py, PyArray1<i64>>) {
        let endings = self.delays.endings.iter();
        let code = |ending| ENDINGS.iter().position(|each| each == ending).unwrap_or(0) as i64;
        let codes: Vec<i64> = endings.map(code).collect();
        (
            self.delays.ages.clone().into_pyarray(py),
            codes.into_pyarray(py),
        )
    }

    /// The number of trials with each outcome.
    #[getter]
    fn counts(&self) -> [usize; 3] {
        ENDINGS.map(|ending| {
            self.delays
                .endings
                .iter()
                .filter(|each| **each == ending)
                .count()
        })
    }

    #[getter]
    fn unknown(&self) -> Option<&'static str> {
        self.core
            .as_ref()
            .as_ref()
            .err()
            .map(|unknown| unknown.reason())
    }

    #[getter]
    fn follow_up(&self) -> Option<f64> {
        self.known().map(Core::follow_up)
    }

    #[getter]
    fn fits(&self) -> Vec<FitNumbers> {
        let Ok(core) = &*self.core else {
            return Vec::new();
        };
        let describe = |fit| {
            let (location, spread) = core.location_and_spread(fit);
            let name = fit.family.name();
            let probabilities = fit.probabilities();
            (
                name,
                fit.weight,
                fit.log_likelihood,
                location,
                spread,
                probabilities,
            )
        };
        core.fits().iter().map(describe).collect()
    }

    fn incidence<'py>(&self, py: Python<'py>) -> Option<[Vector<'py>; 5]> {
        let estimate = self.known()?.incidence();
        let columns = [
            &estimate.times,
            &estimate.survival,
            &estimate.survival_variance,
            &estimate.arrived,
            &estimate.arrived_variance,
        ];
        Some(columns.map(|column| column.clone().into_pyarray(py)))
    }

    #[pyo3(signature = (age, within, level=0.8))]
    fn arrival_probability(
        &self,
        py: Python<'_>,
        age: f64,
        within: f64,
        level: f64,
    ) -> PyResult<Option<Numbers>> {
        self.forecast(py, |core| core.arrival_probability(age, within, level))
    }

    #[pyo3(signature = (age, within, level=0.8))]
    fn failure_probability(
        &self,
        py: Python<'_>,
        age: f64,
        within: f64,
        level: f64,
    ) -> PyResult<Option<Numbers>> {
        self.forecast(py, |core| core.failure_probability(age, within, level))
    }

    #[pyo3(signature = (age=0.0, level=0.8))]
    fn arrives_ever(&self, py: Python<'_>, age: f64, level: f64) -> PyResult<Option<Numbers>> {
        self.forecast(py, |core| core.arrives_ever(age, level))
    }

    #[pyo3(signature = (age=0.0, level=0.8))]
    fn remaining(&self, py: Python<'_>, age: f64, level: f64) -> PyResult<Option<Numbers>> {
        self.forecast(py, |core| core.remaining(age, level))
    }

    #[pyo3(signature = (q, level=0.8))]
    fn quantile(&self, py: Python<'_>, q: f64, level: f64) -> PyResult<Option<Numbers>> {
        self.forecast(py, |core| core.quantile(q, level))
    }

    #[pyo3(signature = (level=0.8))]
    fn mean(&self, py: Python<'_>, level: f64) -> PyResult<Option<Numbers>> {
        self.forecast(py, |core| core.mean(level))
    }

    #[pyo3(signature = (ages, within, level=0.8))]
    fn count(
        &self,
        py: Python<'_>,
        ages: PyReadonlyArray1<'_, f64>,
        within: f64,
        level: f64,
    ) -> PyResult<Option<Numbers>> {
        let Ok(core) = &*self.core else {
            return Ok(None);
        };
        let ages = owned1(ages).to_vec();
        let forecast = detached(py, |stop| core.count(&ages, within, level, stop))?;
        Ok(Some(numbers(forecast)))
    }

    fn count_distribution<'py>(
        &self,
        py: Python<'py>,
        ages: PyReadonlyArray1<'_, f64>,
        within: f64,
    ) -> PyResult<Option<Vector<'py>>> {
        let Ok(core) = &*self.core else {
            return Ok(None);
        };
        let ages = owned1(ages).to_vec();
        let probabilities = detached(py, |stop| core.count_distribution(&ages, within, stop))?;
        Ok(Some(probabilities.into_pyarray(py)))
    }
}
