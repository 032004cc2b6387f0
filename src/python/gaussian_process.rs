//! `GaussianProcess` and `Acquisition` for numpy users.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ndarray::Axis;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use rand::SeedableRng;

use crate::acquisition::{
    Acquisition as Formula, LogExpectedImprovement, Scorer, UpperConfidenceBound,
};
use crate::error::{Error, Result, check};
use crate::gp::draw::path::Path;
use crate::gp::fit::{Draws, FitSettings, fit};
use crate::gp::kernel::KernelFamily;
use crate::gp::{BLOCK, GaussianProcess as Core, Hyperparameters, Workspace};
use crate::maximize::excluded::Excluded;
use crate::maximize::{Maximizer, Objective, maximize};
use crate::python::domain::Domain;
use crate::python::interrupt::detached;
use crate::python::{owned1, owned2};
use crate::random::Rng;
use crate::strategy::bayes::settings::MAX_COUNT;

type Vector<'py> = Bound<'py, PyArray1<f64>>;

/// A Gaussian process with zero prior mean.
#[pyclass(frozen, module = "belated._core")]
pub struct GaussianProcess {
    model: Mutex<Model>,
}

/// Hyperparameters until the width of the data is known, then the posterior.
#[derive(Clone)]
enum Model {
    Unfitted {
        family: KernelFamily,
        theta: Hyperparameters,
    },
    Fitted(Box<Core>),
}

impl Model {
    fn family(&self) -> KernelFamily {
        match self {
            Model::Unfitted { family, .. } => *family,
            Model::Fitted(gp) => gp.kernel().family,
        }
    }

    fn theta(&self) -> Hyperparameters {
        match self {
            Model::Unfitted { theta, .. } => theta.clone(),
            Model::Fitted(gp) => gp.hyperparameters(),
        }
    }

    /// θ for d columns: a single lengthscale serves them all.
    fn theta_for(&self, d: usize) -> Result<Hyperparameters> {
        if d == 0 {
            return Err(Error::Shape(
                "points have no columns; give at least one".to_string(),
            ));
        }
        let mut theta = self.theta();
        if theta.lengthscale.len() == 1 {
            theta.lengthscale = vec![theta.lengthscale[0]; d];
        }
        if theta.lengthscale.len() != d {
            return Err(Error::Shape(format!(
                "points of {d} columns for {} lengthscales; give one per column, or a single one",
                theta.lengthscale.len()
            )));
        }
        Ok(theta)
    }

    /// The posterior, with points checked against it; the prior where nothing has been fitted.
    fn posterior(&self, width: usize) -> Result<Core> {
        match self {
            Model::Fitted(gp) if gp.kernel().width() == width => Ok((**gp).clone()),
            Model::Fitted(gp) => Err(Error::Shape(format!(
                "points of {width} columns for a process fitted to {}",
                gp.kernel().width()
            ))),
            Model::Unfitted { family, .. } => Core::new(*family, &self.theta_for(width)?),
        }
    }
}

impl GaussianProcess {
    pub fn from_core(core: Core) -> Self {
        Self {
            model: Mutex::new(Model::Fitted(Box::new(core))),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fitted(&self) -> Result<Core> {
        match &*self.lock() {
            Model::Fitted(gp) => Ok((**gp).clone()),
            Model::Unfitted { .. } => Err(Error::Shape(
                "nothing has been fitted yet; call fit(x, y) first".to_string(),
            )),
        }
    }
}

fn check_finite<'a>(name: &str, mut values: impl Iterator<Item = &'a f64>) -> Result<()> {
    match values.find(|v| !v.is_finite()) {
        None => Ok(()),
        Some(bad) => Err(Error::InvalidPoint(format!(
            "{name} holds {bad}; all its entries must be finite"
        ))),
    }
}

#[pymethods]
impl GaussianProcess {
    #[new]
    #[pyo3(signature = (kernel=None, lengthscale=None, variance=1.0, noise=1e-6))]
    fn new(
        py: Python<'_>,
        kernel: Option<&Bound<'_, PyAny>>,
        lengthscale: Option<&Bound<'_, PyAny>>,
        variance: f64,
        noise: f64,
    ) -> PyResult<Self> {
        let family = match kernel {
            Some(kernel) => crate::python::settings::kernel(py, kernel)?,
            None => KernelFamily::Matern52,
        };
        let lengthscale = match lengthscale {
            None => vec![1.0],
            Some(given) => match given.extract::<f64>() {
                Ok(one) => vec![one],
                Err(_) => given.extract()?,
            },
        };
        let theta = Hyperparameters {
            lengthscale,
            variance,
            noise,
        };
        detached(py, |_| Core::new(family, &theta).map(|_| ()))?;
        Ok(Self {
            model: Mutex::new(Model::Unfitted { family, theta }),
        })
    }

    fn fit(
        &self,
        py: Python<'_>,
        x: PyReadonlyArray2<'_, f64>,
        y: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<()> {
        let (x, y) = (owned2(x), owned1(y));
        detached(py, |_| {
            check_finite("x", x.iter())?;
            check_finite("y", y.iter())?;
            let mut model = self.lock();
            let mut gp = Core::new(model.family(), &model.theta_for(x.ncols())?)?;
            gp.append_rows(x.view())?;
            gp.set_targets(&y.to_vec())?;
            *model = Model::Fitted(Box::new(gp));
            Ok(())
        })
    }

    fn append(
        &self,
        py: Python<'_>,
        x: PyReadonlyArray2<'_, f64>,
        y: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<()> {
        let (x, y) = (owned2(x), owned1(y));
        detached(py, |stop| {
            check_finite("x", x.iter())?;
            check_finite("y", y.iter())?;
            // Held all the while, so that no other thread's rows are lost.
            let mut model = self.lock();
            let mut gp = model.posterior(x.ncols())?;
            let mut targets = gp.targets();
            targets.truncate(gp.n_observed());
            targets.extend(&y);
            for row in x.rows() {
                check(stop)?;
                gp.append_rows(row.insert_axis(Axis(0)))?;
            }
            gp.set_targets(&targets)?;
            *model = Model::Fitted(Box::new(gp));
            Ok(())
        })
    }

    fn predict<'py>(
        &self,
        py: Python<'py>,
        z: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<(Vector<'py>, Vector<'py>)> {
        let z = owned2(z);
        let (mean, std) = detached(py, |stop| {
            check_finite("z", z.iter())?;
            let gp = self.lock().posterior(z.ncols())?;
            let (mut mean, mut std) = (Vec::with_capacity(z.nrows()), Vec::new());
            for block in z.axis_chunks_iter(Axis(0), BLOCK) {
                check(stop)?;
                let (block_mean, block_variance) = gp.predict(block);
                mean.extend(block_mean);
                std.extend(block_variance.into_iter().map(f64::sqrt));
            }
            Ok((mean, std))
        })?;
        Ok((mean.into_pyarray(py), std.into_pyarray(py)))
    }

    fn predict_gradient<'py>(
        &self,
        py: Python<'py>,
        z: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<(f64, f64, Vector<'py>, Vector<'py>)> {
        let z = owned1(z).to_vec();
        let (mut by_mean, mut by_std) = (vec![0.0; z.len()], vec![0.0; z.len()]);
        let (mean, std) = detached(py, |_| {
            check_finite("z", z.iter())?;
            let gp = self.lock().posterior(z.len())?;
            let mut workspace = Workspace::default();
            let (mean, variance) = gp.predict_at(&z, &mut workspace);
            let std = variance.sqrt();
            gp.gradient(&z, 1.0, 0.0, &[], &mut workspace, &mut by_mean);
            if std > 0.0 {
                let weight = 1.0 / (2.0 * std);
                gp.gradient(&z, 0.0, weight, &[], &mut workspace, &mut by_std);
            }
            Ok((mean, std))
        })?;
        Ok((mean, std, by_mean.into_pyarray(py), by_std.into_pyarray(py)))
    }

    fn sample<'py>(
        &self,
        py: Python<'py>,
        z: PyReadonlyArray2<'py, f64>,
        n: usize,
        seed: u64,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let z = owned2(z);
        let draws = detached(py, |_| {
            check_finite("z", z.iter())?;
            let gp = self.lock().posterior(z.ncols())?;
            gp.sample(z.view(), n, &mut Rng::seed_from_u64(seed))
        })?;
        Ok(draws.into_pyarray(py))
    }

    fn log_marginal_likelihood(&self, py: Python<'_>) -> PyResult<f64> {
        detached(py, |_| Ok(self.fitted()?.log_marginal_likelihood()))
    }

    fn log_marginal_likelihood_gradient<'py>(&self, py: Python<'py>) -> PyResult<Vector<'py>> {
        let gradient = detached(py, |_| {
            Ok(self.fitted()?.log_marginal_likelihood_gradient())
        })?;
        Ok(gradient.into_pyarray(py))
    }

    #[pyo3(signature = (n_restarts=8, seed=0, priors=true))]
    fn optimize(&self, py: Python<'_>, n_restarts: usize, seed: u64, priors: bool) -> PyResult<()> {
        detached(py, |stop| {
            if n_restarts == 0 {
                return Err(Error::InvalidSetting {
                    name: "n_restarts",
                    got: "0".to_string(),
                    expected: "give a number of 1 or above",
                });
            }
            let gp = self.fitted()?;
            let settings = FitSettings {
                family: gp.kernel().family,
                ard: true,
                lengthscale: None,
                variance: None,
                noise: None,
                priors,
                n_restarts,
                draws: Draws::Wide,
            };
            let (rows, targets, n) = (gp.rows(), gp.targets(), gp.n_observed());
            let x = rows.slice(ndarray::s![..n, ..]);
            let mut rng = Rng::seed_from_u64(seed);
            let start = gp.hyperparameters();
            let theta = fit(x, &targets[..n], &start, &settings, &mut rng, stop)?;
            let mut better = Core::new(settings.family, &theta)?;
            better.append_rows(x)?;
            better.set_targets(&targets[..n])?;
            *self.lock() = Model::Fitted(Box::new(better));
            Ok(())
        })
    }

    #[getter]
    fn kernel(&self, py: Python<'_>) -> &'static str {
        match py.detach(|| self.lock().family()) {
            KernelFamily::SquaredExponential => "squared_exponential",
            KernelFamily::Matern52 => "matern52",
            KernelFamily::Matern32 => "matern32",
            KernelFamily::Matern12 => "matern12",
            KernelFamily::Linear => "linear",
        }
    }

    #[getter]
    fn lengthscale<'py>(&self, py: Python<'py>) -> Vector<'py> {
        py.detach(|| self.lock().theta().lengthscale)
            .into_pyarray(py)
    }

    #[getter]
    fn variance(&self, py: Python<'_>) -> f64 {
        py.detach(|| self.lock().theta().variance)
    }

    #[getter]
    fn noise(&self, py: Python<'_>) -> f64 {
        py.detach(|| self.lock().theta().noise)
    }

    #[getter]
    fn jitter(&self, py: Python<'_>) -> PyResult<f64> {
        detached(py, |_| Ok(self.fitted()?.factor().jitter()))
    }

    #[getter]
    fn x<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let x = detached(py, |_| Ok(self.fitted()?.rows().to_owned()))?;
        Ok(x.into_pyarray(py))
    }

    #[getter]
    fn y<'py>(&self, py: Python<'py>) -> PyResult<Vector<'py>> {
        let y = detached(py, |_| Ok(self.fitted()?.targets()))?;
        Ok(y.into_pyarray(py))
    }

    #[getter]
    fn n_observed(&self, py: Python<'_>) -> PyResult<usize> {
        detached(py, |_| Ok(self.fitted()?.n_observed()))
    }
}

/// An acquisition on a fixed posterior.
#[pyclass(frozen, module = "belated._core")]
pub struct Acquisition {
    gp: Core,
    formula: Formula,
}

impl Acquisition {
    fn new(name: &'static str, given: f64, gp: Core, formula: Formula) -> Result<Self> {
        if given.is_finite() {
            return Ok(Self { gp, formula });
        }
        Err(Error::InvalidSetting {
            name,
            got: given.to_string(),
            expected: "give a finite number",
        })
    }

    fn check(&self, width: usize) -> Result<()> {
        let expected = self.gp.kernel().width();
        if width == expected {
            Ok(())
        } else {
            Err(Error::Shape(format!(
                "points of {width} columns for a process over {expected}"
            )))
        }
    }
}

#[pymethods]
impl Acquisition {
    #[staticmethod]
    fn upper_confidence_bound(py: Python<'_>, gp: &GaussianProcess, nu: f64) -> PyResult<Self> {
        let formula = Formula::UpperConfidenceBound(UpperConfidenceBound {
            multiplier: nu,
            noise: 0.0,
        });
        detached(py, |_| Self::new("nu", nu, gp.fitted()?, formula))
    }

    #[staticmethod]
    fn log_expected_improvement(
        py: Python<'_>,
        gp: &GaussianProcess,
        incumbent: f64,
    ) -> PyResult<Self> {
        let formula = Formula::LogExpectedImprovement(LogExpectedImprovement { incumbent });
        detached(py, |_| {
            Self::new("incumbent", incumbent, gp.fitted()?, formula)
        })
    }

    #[staticmethod]
    #[pyo3(signature = (gp, nu=1.0, n_features=1024, seed=0))]
    fn thompson(
        py: Python<'_>,
        gp: &GaussianProcess,
        nu: f64,
        n_features: usize,
        seed: u64,
    ) -> PyResult<Self> {
        detached(py, |stop| {
            if !(1..=MAX_COUNT).contains(&n_features) {
                return Err(Error::InvalidSetting {
                    name: "n_features",
                    got: n_features.to_string(),
                    expected: "give a number of 1 or above, and no more than 1,000,000",
                });
            }
            let gp = gp.fitted()?;
            let mut rng = Rng::seed_from_u64(seed);
            let path = Path::pathwise(&gp, nu, n_features, &mut rng, stop)?;
            Self::new("nu", nu, gp, Formula::Thompson(Box::new(path)))
        })
    }

    fn __call__<'py>(
        &self,
        py: Python<'py>,
        z: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Vector<'py>> {
        let z = owned2(z);
        let values = detached(py, |stop| {
            self.check(z.ncols())?;
            check_finite("z", z.iter())?;
            let mut values = vec![0.0; z.nrows()];
            let mut scorer = Scorer::new(&self.gp, &self.formula, &[]);
            let blocks = z.axis_chunks_iter(Axis(0), BLOCK);
            for (block, values) in blocks.zip(values.chunks_mut(BLOCK)) {
                check(stop)?;
                scorer.values(block, values);
            }
            Ok(values)
        })?;
        Ok(values.into_pyarray(py))
    }

    fn gradient<'py>(
        &self,
        py: Python<'py>,
        z: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<(f64, Vector<'py>)> {
        let z = owned1(z).to_vec();
        let (value, gradient) = detached(py, |_| {
            self.check(z.len())?;
            check_finite("z", z.iter())?;
            let mut gradient = vec![0.0; z.len()];
            let mut scorer = Scorer::new(&self.gp, &self.formula, &[]);
            let value = scorer.value_and_gradient(&z, &mut gradient);
            Ok((value, gradient))
        })?;
        Ok((value, gradient.into_pyarray(py)))
    }

    #[pyo3(signature = (domain, seed=0))]
    fn maximize<'py>(
        &self,
        py: Python<'py>,
        domain: &Domain,
        seed: u64,
    ) -> PyResult<(Vector<'py>, Option<usize>, f64)> {
        let best = detached(py, |stop| {
            self.check(domain.core.width())?;
            let mut scorer = Scorer::new(&self.gp, &self.formula, &[]);
            let n = self.gp.n_observed();
            let rows = self.gp.rows();
            let targets = self.gp.targets();
            let mut order: Vec<usize> = (0..n).collect();
            order.sort_by(|&a, &b| targets[b].total_cmp(&targets[a]));
            order.truncate(5);
            let incumbents = rows.select(Axis(0), &order);
            let mut rng = Rng::seed_from_u64(seed);
            maximize(
                &mut scorer,
                &domain.core,
                incumbents.view(),
                &Maximizer::Default {
                    effort: self.formula.effort(self.gp.len()),
                },
                &Excluded::default(),
                &mut rng,
                stop,
            )
        })?;
        Ok((best.point.into_pyarray(py), best.index, best.value))
    }
}
