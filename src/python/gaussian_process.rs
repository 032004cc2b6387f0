//! The Python class `GaussianProcess`, on numpy arrays.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ndarray::{ArrayView2, Axis, s};
use numpy::{IntoPyArray, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use rand::SeedableRng;

use crate::error::{Error, Result, Stop, check, refuse};
use crate::gp::fit::{Draws, FitSettings, fit};
use crate::gp::kernel::KernelFamily;
use crate::gp::{BLOCK, Conditioned, GaussianProcess as Core, Hyperparameters};
use crate::python::interrupt::detached;
use crate::python::{Vector, check_finite, owned1, owned2};
use crate::random::{Call, Rng};

/// A Gaussian process with zero prior mean.
#[pyclass(frozen, module = "belated._core")]
pub struct GaussianProcess {
    model: Mutex<Model>,
}

/// The state of the model. The posterior exists after the first fit, when the number of columns is known.
///
/// Methods share the posterior. Each method clones the `Arc`, releases the lock and computes.
struct Model {
    family: KernelFamily,
    theta: Hyperparameters,
    posterior: Option<Arc<Conditioned<Core>>>,
}

impl Model {
    fn fitted(core: Conditioned<Core>) -> Self {
        Self {
            family: core.kernel().family,
            theta: core.hyperparameters(),
            posterior: Some(Arc::new(core)),
        }
    }

    /// Returns θ for d columns. A single lengthscale is used for all columns.
    fn theta_for(&self, d: usize) -> Result<Hyperparameters> {
        if d == 0 {
            return Err(Error::Shape(
                "points have no columns; give at least one".to_string(),
            ));
        }
        let mut theta = self.theta.clone();
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

    /// Returns the posterior for points of this width. Before the first fit, the posterior is the prior.
    fn posterior(&self, width: usize) -> Result<Arc<Conditioned<Core>>> {
        let Some(gp) = &self.posterior else {
            let prior = Core::new(self.family, &self.theta_for(width)?)?;
            return Ok(Arc::new(Conditioned::on_nothing(prior)));
        };
        let fitted = gp.kernel().width();
        match width == fitted {
            true => Ok(gp.clone()),
            false => Err(Error::Shape(format!(
                "points of {width} columns for a process fitted to {fitted}"
            ))),
        }
    }
}

/// Posterior means and variances at the rows of `points`. The computation can be interrupted between two blocks.
pub(super) fn predict_in_blocks(
    gp: &Core,
    points: ArrayView2<f64>,
    stop: &mut Stop,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let (mut mean, mut variance) = (Vec::with_capacity(points.nrows()), Vec::new());
    for block in points.axis_chunks_iter(Axis(0), BLOCK) {
        check(stop)?;
        let (block_mean, block_variance) = gp.predict(block);
        mean.extend(block_mean);
        variance.extend(block_variance);
    }
    Ok((mean, variance))
}

impl GaussianProcess {
    pub fn from_core(core: Conditioned<Core>) -> Self {
        Self {
            model: Mutex::new(Model::fitted(core)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current posterior.
    pub fn posterior(&self) -> Result<Arc<Conditioned<Core>>> {
        let posterior = self.lock().posterior.clone();
        posterior.ok_or_else(|| {
            Error::Shape("nothing has been fitted yet; call fit(x, y) first".to_string())
        })
    }
}

/// Returns the kernel family with the name in the argument `kernel`.
fn family(kernel: &Bound<'_, PyAny>) -> PyResult<KernelFamily> {
    let name: Option<String> = kernel.extract().ok();
    if let Some(family) = name.as_deref().and_then(KernelFamily::from_name) {
        return Ok(family);
    }
    Err(PyErr::from(refuse(
        "kernel",
        kernel.repr()?,
        KernelFamily::NAMES,
    )))
}

#[pymethods]
impl GaussianProcess {
    #[new]
    #[pyo3(signature = (kernel=None, lengthscale=None, variance=1.0, noise=1e-6))]
    fn new(
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
        let theta = Hyperparameters::new(lengthscale, variance, noise);
        Core::new(family, &theta)?;
        let model = Model {
            family,
            theta,
            posterior: None,
        };
        Ok(Self {
            model: Mutex::new(model),
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
                (model.family, model.theta_for(x.ncols())?)
            };
            let mut gp = Core::new(family, &theta)?;
            gp.append_rows(x.view())?;
            gp.set_targets(&y.to_vec())?;
            *self.lock() = Model::fitted(Conditioned::on_nothing(gp));
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
            let (mean, variance) = predict_in_blocks(&gp, z.view(), stop)?;
            Ok((
                mean,
                variance.into_iter().map(f64::sqrt).collect::<Vec<_>>(),
            ))
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
                return Err(refuse("n_restarts", "0", "give a number of 1 or above"));
            }
            let gp = self.posterior()?;
            let groups = (0..gp.kernel().width()).collect();
            let settings = FitSettings {
                priors,
                draws: Draws::Wide,
                ..FitSettings::new(gp.kernel().family, groups, n_restarts)
            };
            let (rows, targets, n) = (gp.rows(), gp.targets(), gp.n_observed());
            let mut rng = Rng::seed_from_u64(seed);
            let start = gp.hyperparameters();
            let x = rows.slice(s![..n, ..]);
            let call = &mut Call::new(&mut rng, stop);
            let theta = fit(x, &targets[..n], &start, &settings, call)?;
            let mut better = Core::new(settings.family, &theta)?;
            better.append_rows(x)?;
            better.set_targets(&targets[..n])?;
            *self.lock() = Model::fitted(Conditioned::on_nothing(better));
            Ok(())
        })
    }

    #[getter]
    fn kernel(&self, py: Python<'_>) -> String {
        py.detach(|| self.lock().family).name()
    }

    #[getter]
    fn lengthscale<'py>(&self, py: Python<'py>) -> Vector<'py> {
        let lengthscale = py.detach(|| self.lock().theta.lengthscale.clone());
        lengthscale.into_pyarray(py)
    }

    #[getter]
    fn descriptor_lengthscale<'py>(&self, py: Python<'py>) -> Vector<'py> {
        let lengthscale = py.detach(|| self.lock().theta.descriptor_lengthscale.clone());
        lengthscale.into_pyarray(py)
    }

    #[getter]
    fn variance(&self, py: Python<'_>) -> f64 {
        py.detach(|| self.lock().theta.signal_variance)
    }

    #[getter]
    fn noise(&self, py: Python<'_>) -> f64 {
        py.detach(|| self.lock().theta.noise_variance)
    }

    #[getter]
    fn x<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let gp = py.detach(|| self.posterior())?;
        Ok(gp.rows().to_owned().into_pyarray(py))
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
