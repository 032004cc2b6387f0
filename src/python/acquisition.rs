//! The Python class `Acquisition`, on numpy arrays.

use std::sync::Arc;

use ndarray::Axis;
use numpy::{IntoPyArray, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use rand::SeedableRng;

use crate::error::{Error, Result, check, refuse};
use crate::gp::draw::path::Path;
use crate::gp::{BLOCK, Conditioned, GaussianProcess as Core};
use crate::maximize::constrained::Allowed;
use crate::maximize::excluded::Excluded;
use crate::maximize::{Maximizer, maximize};
use crate::numerics::order::best_first;
use crate::problem::Objective;
use crate::python::domain::Domain;
use crate::python::gaussian_process::GaussianProcess;
use crate::python::interrupt::detached;
use crate::python::{Vector, check_finite, owned1, owned2};
use crate::random::{Call, Rng};
use crate::strategy::bayes::acquisitions::formula::{Formula, Scorer};
use crate::strategy::bayes::acquisitions::log_ei::LogExpectedImprovement;
use crate::strategy::bayes::acquisitions::ucb::UpperConfidenceBound;
use crate::strategy::checks::MAX_COUNT;

/// An acquisition on a fixed posterior.
#[pyclass(frozen, module = "belated._core")]
pub struct Acquisition {
    gp: Arc<Conditioned<Core>>,
    formula: Box<dyn Formula>,
}

impl Acquisition {
    fn new(
        name: &'static str,
        given: f64,
        gp: Arc<Conditioned<Core>>,
        formula: Box<dyn Formula>,
    ) -> Result<Self> {
        if given.is_finite() {
            return Ok(Self { gp, formula });
        }
        Err(refuse(name, given, "give a finite number"))
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
        let formula = Box::new(UpperConfidenceBound {
            multiplier: nu,
            noise: 0.0,
        });
        detached(py, |_| Self::new("nu", nu, gp.posterior()?, formula))
    }

    #[staticmethod]
    fn log_expected_improvement(
        py: Python<'_>,
        gp: &GaussianProcess,
        incumbent: f64,
    ) -> PyResult<Self> {
        let formula = Box::new(LogExpectedImprovement { incumbent });
        detached(py, |_| {
            Self::new("incumbent", incumbent, gp.posterior()?, formula)
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
                return Err(refuse(
                    "n_features",
                    n_features,
                    "give a number of 1 or above, and no more than 1,000,000",
                ));
            }
            let gp = gp.posterior()?;
            let mut rng = Rng::seed_from_u64(seed);
            let path = Path::pathwise(&gp, nu, n_features, &mut Call::new(&mut rng, stop))?;
            Self::new("nu", nu, gp, Box::new(path))
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
            let mut scorer = Scorer::new(&self.gp, self.formula.as_ref(), &[]);
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
            let mut scorer = Scorer::new(&self.gp, self.formula.as_ref(), &[]);
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
            let mut scorer = Scorer::new(&self.gp, self.formula.as_ref(), &[]);
            let n = self.gp.n_observed();
            let rows = self.gp.rows();
            let targets = self.gp.targets();
            let mut order = best_first(&targets[..n]);
            order.truncate(5);
            let incumbents = rows.select(Axis(0), &order);
            let mut rng = Rng::seed_from_u64(seed);
            let effort = self.formula.effort(self.gp.len());
            let maximizer = Maximizer::Default { effort };
            let (none, call) = (Excluded::default(), &mut Call::new(&mut rng, stop));
            let around = incumbents.view();
            let allowed = Allowed::except(&none);
            maximize(&mut scorer, &domain.core, around, &maximizer, allowed, call)
        })?;
        Ok((best.point.into_pyarray(py), best.index, best.value))
    }
}
