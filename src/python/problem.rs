//! The Python classes `Problem`, `Space`, `Candidates` and `Parameter`: the problem in the user's units.

use std::sync::Arc;

use ndarray::ArrayView1;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::error::{Error, Result};
use crate::problem::{
    self, Choices, Clock, Column, Curve, CurveValue, Declaration, Described, Direction, Goal,
    Integer, Interval, Linear, Members, Offered, Outcome, Point, PowerCost, Real, Role,
};
use crate::python::domain::Domain;
use crate::python::owned2;
use crate::python::trial::TrialRecord;

/// A parameter of any kind. Every value is a number. A choice is represented by its position in the list.
#[pyclass(frozen, module = "belated._core")]
pub struct Parameter {
    core: problem::Parameter,
}

impl Parameter {
    fn new(core: problem::Parameter) -> Self {
        Self { core }
    }
}

/// Returns an error if the number of columns is not the expected number.
fn check_width(found: usize, expected: usize) -> Result<()> {
    match found == expected {
        true => Ok(()),
        false => Err(Error::Shape(format!(
            "{found} columns for a parameter with {expected}; give one number for each"
        ))),
    }
}

#[pymethods]
impl Parameter {
    #[staticmethod]
    fn real(low: f64, high: f64, log: bool, step: Option<f64>) -> PyResult<Self> {
        let made = Real::new(low, high, log, step)?;
        Ok(Self::new(problem::Parameter::Real(made)))
    }

    #[staticmethod]
    fn integer(low: f64, high: f64, log: bool, step: Option<f64>) -> PyResult<Self> {
        let made = Integer::new(low, high, log, step)?;
        Ok(Self::new(problem::Parameter::Integer(made)))
    }

    #[staticmethod]
    fn ordinal(labels: Vec<String>) -> Self {
        Self::new(problem::Parameter::Ordinal(Choices::ordered(labels)))
    }

    #[staticmethod]
    fn categorical(labels: Vec<String>) -> Self {
        Self::new(problem::Parameter::Categorical(Choices::unordered(labels)))
    }

    #[staticmethod]
    fn described(labels: Vec<String>, vectors: Vec<Vec<f64>>) -> PyResult<Self> {
        let made = Described::new(labels, vectors)?;
        Ok(Self::new(problem::Parameter::Described(made)))
    }

    fn offered(&self, numbers: Vec<f64>) -> PyResult<Self> {
        let made = Offered::new(self.core.clone(), numbers)?;
        Ok(Self::new(problem::Parameter::Offered(made)))
    }

    #[getter]
    fn width(&self) -> usize {
        self.core.width()
    }

    #[getter]
    fn n_levels(&self) -> Option<u64> {
        self.core.n_levels()
    }

    #[getter]
    fn expected(&self) -> String {
        self.core.kind().expected()
    }

    #[getter]
    fn expected_measured(&self) -> String {
        self.core.kind().expected_measured()
    }

    fn checked(&self, number: f64) -> Option<f64> {
        self.core.kind().checked(number)
    }

    fn known(&self, number: f64) -> Option<f64> {
        self.core.whole().kind().checked(number)
    }

    fn measured(&self, number: f64) -> Option<f64> {
        self.core.kind().measured(number)
    }

    fn level(&self, number: f64) -> u64 {
        self.core.kind().level(number)
    }

    fn member(&self, level: u64) -> f64 {
        self.core.kind().member(level)
    }

    fn encode<'py>(&self, py: Python<'py>, number: f64) -> Bound<'py, PyArray1<f64>> {
        let mut columns = vec![0.0; self.core.width()];
        if !columns.is_empty() {
            self.core.kind().encode(number, &mut columns);
        }
        columns.into_pyarray(py)
    }

    fn decode(&self, columns: Vec<f64>) -> PyResult<f64> {
        if self.core.is_constant() {
            return Ok(self.core.kind().member(0));
        }
        check_width(columns.len(), self.core.width())?;
        Ok(self.core.kind().decode(&columns))
    }
}

/// The points, contexts and fidelities of an optimizer, and which values are better.
#[pyclass(frozen, module = "belated._core")]
pub struct Problem {
    pub core: Arc<problem::Problem>,
}

/// The points of a problem.
#[derive(FromPyObject)]
enum MembersOf<'py> {
    Space(Bound<'py, Space>),
    Candidates(Bound<'py, Candidates>),
}

/// A declared fidelity: the range of fidelities, the bound on the bias, and (base, exponent, full) of the cost.
type DeclaredFidelity<'py> = (Bound<'py, Parameter>, Option<f64>, Option<(f64, f64, f64)>);

/// The name of an outcome, "minimize", "maximize", "within" or "record", and its lower and upper bounds, and
/// the smallest and the largest plausible value.
type DeclaredOutcome = (String, String, Option<f64>, Option<f64>, Option<(f64, f64)>);

fn outcome((name, goal, low, high, plausible): DeclaredOutcome) -> Outcome {
    let bounds = Interval { low, high };
    let goal = match goal.as_str() {
        "minimize" => Goal::Objective(Direction::Minimize, bounds),
        "maximize" => Goal::Objective(Direction::Maximize, bounds),
        "within" => Goal::Within(bounds),
        _ => Goal::Record,
    };
    Outcome {
        name,
        goal,
        plausible: plausible.map_or(Interval::default(), |(low, high)| Interval {
            low: Some(low),
            high: Some(high),
        }),
    }
}

#[pymethods]
impl Problem {
    #[new]
    #[pyo3(signature = (members, context=None, fidelity=None, minimize=false, seconds=false, curve=None, outcomes=vec![]))]
    fn new(
        members: MembersOf<'_>,
        context: Option<Bound<'_, Space>>,
        fidelity: Option<DeclaredFidelity<'_>>,
        minimize: bool,
        seconds: bool,
        curve: Option<(u32, bool)>,
        outcomes: Vec<DeclaredOutcome>,
    ) -> PyResult<Self> {
        let fidelity = fidelity.map(|(axis, bias, cost)| {
            let cost = cost.map(|(base, exponent, full)| PowerCost {
                base,
                exponent,
                full,
            });
            problem::Fidelity::new(axis.get().core.clone(), bias, cost)
        });
        let core = problem::Problem {
            members: match members {
                MembersOf::Space(space) => Members::Space(space.get().core.clone()),
                MembersOf::Candidates(list) => Members::Candidates(list.get().core.clone()),
            },
            context: context.map(|space| space.get().core.clone()),
            fidelity: fidelity.transpose()?,
            curve: curve.map(|(steps, best)| Curve {
                steps,
                value: match best {
                    true => CurveValue::Best,
                    false => CurveValue::Last,
                },
            }),
            direction: match minimize {
                true => Direction::Minimize,
                false => Direction::Maximize,
            },
            clock: match seconds {
                true => Clock::Seconds,
                false => Clock::Iterations,
            },
            outcomes: Vec::new(),
        };
        let core = core.with_outcomes(outcomes.into_iter().map(outcome).collect())?;
        Ok(Self {
            core: Arc::new(core),
        })
    }
}

/// A list of candidates in the user's units.
#[pyclass(frozen, module = "belated._core")]
pub struct Candidates {
    core: problem::Candidates,
}

#[pymethods]
impl Candidates {
    #[new]
    #[pyo3(signature = (points, columns=None))]
    fn new(
        points: PyReadonlyArray2<'_, f64>,
        columns: Option<Vec<(String, Option<PyRef<'_, Parameter>>)>>,
    ) -> PyResult<Self> {
        let points = owned2(points);
        let core = match columns {
            None => problem::Candidates::new(points)?,
            Some(columns) => {
                let declared = columns.into_iter().map(|(name, category)| Column {
                    name,
                    category: category.map(|category| category.core.clone()),
                });
                problem::Candidates::named(points, declared.collect())?
            }
        };
        Ok(Self { core })
    }

    #[getter]
    fn width(&self) -> usize {
        self.core.domain().width()
    }

    fn far_rows(&self) -> Vec<(usize, usize, (f64, f64))> {
        self.core.far_rows()
    }

    fn domain(&self) -> Domain {
        Domain {
            core: self.core.domain().clone(),
        }
    }

    fn encode<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        check_width(rows.as_array().ncols(), self.core.domain().dimensions())?;
        Ok(self.core.encode(rows.as_array()).into_pyarray(py))
    }

    fn check_known(&self, unknown: Vec<String>) -> PyResult<()> {
        let all = vec![Some(0.0); self.core.domain().dimensions()];
        Ok(self.core.check_names(&all, &unknown)?)
    }

    fn complete(
        &self,
        numbers: Vec<Option<f64>>,
        unknown: Vec<String>,
    ) -> PyResult<Vec<Option<f64>>> {
        self.core.check_names(&numbers, &unknown)?;
        Ok(numbers)
    }

    fn find(&self, row: Vec<f64>) -> Option<usize> {
        self.core.find(ArrayView1::from(&row))
    }
}

/// Named parameters and their conditions. A point is a list of numbers, with None for a missing or inactive parameter.
#[pyclass(frozen, module = "belated._core")]
pub struct Space {
    core: problem::Space,
}

/// The name of a parameter, the parameter, and the levels of its parents at which the parameter is active.
type Declared<'py> = (String, Bound<'py, Parameter>, Vec<(String, Vec<u64>)>);

/// The terms, the lower and the upper bound of a linear constraint, the step and the tolerance of a mixture, and whether
/// nonzero parameters are counted.
type DeclaredLinear = (
    Vec<(String, f64)>,
    Option<f64>,
    Option<f64>,
    Option<f64>,
    f64,
    bool,
);

#[pymethods]
impl Space {
    #[new]
    #[pyo3(signature = (declared, is_context, linear=vec![]))]
    fn new(
        declared: Vec<Declared<'_>>,
        is_context: bool,
        linear: Vec<DeclaredLinear>,
    ) -> PyResult<Self> {
        let declared = declared
            .into_iter()
            .map(|(name, parameter, when)| Declaration {
                name,
                parameter: parameter.get().core.clone(),
                when,
            });
        let role = match is_context {
            true => Role::Context,
            false => Role::Params,
        };
        let linear = linear.into_iter().map(
            |(terms, at_least, at_most, step, tolerance, counts)| Linear {
                terms,
                at_least,
                at_most,
                step,
                tolerance,
                counts,
            },
        );
        let core = problem::Space::new(role, declared.collect())?.with_linear(linear.collect())?;
        Ok(Self { core })
    }

    #[getter]
    fn redundant(&self) -> Vec<String> {
        self.core.redundant()
    }

    fn check_part(&self, searched: Vec<Option<f64>>) -> PyResult<()> {
        Ok(self.core.check_part(&searched)?)
    }

    fn check_linear(&self, searched: Vec<Option<f64>>) -> PyResult<()> {
        Ok(self.core.check_linear(&searched)?)
    }

    #[getter]
    fn width(&self) -> usize {
        self.core.domain().width()
    }

    #[getter]
    fn searched(&self) -> Vec<usize> {
        self.core.searched().to_vec()
    }

    fn domain(&self) -> Domain {
        Domain {
            core: self.core.domain().clone(),
        }
    }

    fn active(&self, numbers: Vec<Option<f64>>) -> Vec<bool> {
        self.core.active(&numbers)
    }

    fn check_known(&self, unknown: Vec<String>) -> PyResult<()> {
        Ok(self.core.check_known(&unknown)?)
    }

    fn complete(
        &self,
        numbers: Vec<Option<f64>>,
        unknown: Vec<String>,
    ) -> PyResult<Vec<Option<f64>>> {
        Ok(self.core.complete(&numbers, &unknown)?)
    }

    fn encode<'py>(&self, py: Python<'py>, numbers: Vec<Option<f64>>) -> Bound<'py, PyArray1<f64>> {
        self.core.encode(&numbers).into_pyarray(py)
    }

    fn decode(&self, columns: Vec<f64>) -> PyResult<Vec<Option<f64>>> {
        check_width(columns.len(), self.core.domain().width())?;
        Ok(self.core.decode(&columns))
    }

    /// Returns the numbers of all parameters at the point where a trial was started.
    fn numbers(&self, record: &TrialRecord) -> Vec<Option<f64>> {
        match &record.place {
            Point::Numbers(searched) => self.core.spread(searched),
            Point::Candidate(_) => Vec::new(),
        }
    }

    fn spread(&self, searched: Vec<Option<f64>>) -> Vec<Option<f64>> {
        self.core.spread(&searched)
    }

    fn only_searched(&self, numbers: Vec<Option<f64>>) -> PyResult<Vec<Option<f64>>> {
        check_width(numbers.len(), self.core.n_parameters())?;
        Ok(self.core.only_searched(&numbers))
    }
}
