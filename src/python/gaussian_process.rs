//! The Python class `GaussianProcess`, on numpy arrays.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ndarray::{Axis, s};
use numpy::{IntoPyArray, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use rand::SeedableRng;

use crate::error::{Error, Result, check};
use crate::gp::fit::{Draws, FitSettings, fit};
use crate::gp::kernel::KernelFamily;
use crate::gp::{BLOCK, GaussianProcess as Core, Hyperparameters};
use crate::python::errors::raise;
use crate::python::interrupt::detached;
use crate::python::{Vector, check_finite, owned1, owned2};
use crate::random::Rng;

/// A Gaussian process with zero prior mean.
#[pyclass(frozen, module = "belated._core")]
pub struct GaussianProcess {
    model: Mutex<Model>,
}

/// The state of the model. It has only hyperparameters until the number of columns is known, and a posterior
/// afterwards.
///
/// Methods share the posterior. Each method clones the `Arc`, releases the lock and computes.
enum Model {
    Unfitted {
        family: KernelFamily,
        theta: Hyperparameters,
    },
    Fitted(Arc<Core>),
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

    /// Returns θ for d columns. A single lengthscale is used for all columns.
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

    /// Returns the posterior for points of this width. It is the prior before the first fit.
    fn posterior(&self, width: usize) -> Result<Arc<Core>> {
        match self {
            Model::Fitted(gp) => check_width(gp, width).map(|()| Arc::clone(gp)),
            Model::Unfitted { family, .. } => {
                let prior = Core::new(*family, &self.theta_for(width)?)?;
                Ok(Arc::new(prior))
            }
        }
    }
}

fn check_width(gp: &Core, width: usize) -> Result<()> {
    let fitted = gp.kernel().width();
    if width == fitted {
        return Ok(());
    }
    Err(Error::Shape(format!(
        "points of {width} columns for a process fitted to {fitted}"
    )))
}

impl GaussianProcess {
    pub fn from_core(core: Core) -> Self {
        Self {
            model: Mutex::new(Model::Fitted(Arc::new(core))),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current posterior.
    pub fn posterior(&self) -> Result<Arc<Core>> {
        match &*self.lock() {
            Model::Fitted(gp) => Ok(Arc::clone(gp)),
            Model::Unfitted { .. } => Err(Error::Shape(
                "nothing has been fitted yet; call fit(x, y) first".to_string(),
            )),
        }
    }
}

/// Returns the kernel family with the name in the argument `kernel`.
fn family(kernel: &Bound<'_, PyAny>) -> PyResult<KernelFamily> {
    let name: Option<String> = kernel.extract().ok();
    if let Some(family) = name.as_deref().and_then(KernelFamily::from_name) {
        return Ok(family);
    }
    let error = Error::InvalidSetting {
        name: "kernel",
        got: kernel.repr()?.to_string(),
        expected: KernelFamily::NAMES,
    };
    Err(raise(kernel.py(), error))
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
            Some(kernel) => family(kernel)?,
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
            signal_variance: variance,
            noise_variance: noise,
            input_warp: Default::default(),
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
            let (family, theta) = {
                let model = self.lock();
                (model.family(), model.theta_for(x.ncols())?)
            };
            let mut gp = Core::new(family, &theta)?;
            gp.append_rows(x.view())?;
            gp.set_targets(&y.to_vec())?;
            *self.lock() = Model::Fitted(Arc::new(gp));
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
        detached(py, |_| Ok(self.posterior()?.log_marginal_likelihood()))
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
            let gp = self.posterior()?;
            let settings = FitSettings {
                family: gp.kernel().family,
                groups: (0..gp.kernel().width()).collect(),
                categories: Vec::new(),
                lengthscale: None,
                signal_variance: None,
                noise_variance: None,
                priors,
                n_restarts,
                draws: Draws::Wide,
                dimensions: gp.kernel().width(),
                spreads: vec![1.0; gp.kernel().width()],
                input_warp: Default::default(),
                warpable: Vec::new(),
            };
            let (rows, targets, n) = (gp.rows(), gp.targets(), gp.n_observed());
            let mut rng = Rng::seed_from_u64(seed);
            let start = gp.hyperparameters();
            let x = rows.slice(s![..n, ..]);
            let theta = fit(x, &targets[..n], &start, &settings, &mut rng, stop)?;
            let mut better = Core::new(settings.family, &theta)?;
            better.append_rows(x)?;
            better.set_targets(&targets[..n])?;
            *self.lock() = Model::Fitted(Arc::new(better));
            Ok(())
        })
    }

    #[getter]
    fn kernel(&self, py: Python<'_>) -> &'static str {
        py.detach(|| self.lock().family()).name()
    }

    #[getter]
    fn lengthscale<'py>(&self, py: Python<'py>) -> Vector<'py> {
        py.detach(|| self.lock().theta().lengthscale)
            .into_pyarray(py)
    }

    #[getter]
    fn variance(&self, py: Python<'_>) -> f64 {
        py.detach(|| self.lock().theta().signal_variance)
    }

    #[getter]
    fn noise(&self, py: Python<'_>) -> f64 {
        py.detach(|| self.lock().theta().noise_variance)
    }

    #[getter]
    fn x<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let x = detached(py, |_| Ok(self.posterior()?.rows().to_owned()))?;
        Ok(x.into_pyarray(py))
    }

    #[getter]
    fn y<'py>(&self, py: Python<'py>) -> PyResult<Vector<'py>> {
        let y = detached(py, |_| Ok(self.posterior()?.targets()))?;
        Ok(y.into_pyarray(py))
    }

    #[getter]
    fn n_observed(&self, py: Python<'_>) -> PyResult<usize> {
        detached(py, |_| Ok(self.posterior()?.n_observed()))
    }
}
