//! The defaults of every setting.

use pyo3::prelude::*;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::error::Error;
use crate::python::errors::raise;
use crate::strategy::bayes::pending::{Censor, Hallucinate, Integrate, Liar, Nearest, Pending};
use crate::strategy::bayes::settings::{
    Acquisition, Initial, InitialDesign, LogEI, MaxVariance, Settings, Surrogate, ThompsonSampling,
    UCB,
};
use crate::strategy::{random_search, registry};

/// Every value by the name of its Python class, with all its defaults, as JSON.
#[pyfunction]
pub fn defaults(py: Python<'_>) -> PyResult<String> {
    let mut all = Map::new();
    let mut add = |value: Value| {
        if let Some(kind) = value.get("kind").and_then(Value::as_str) {
            all.insert(kind.to_string(), value.clone());
        }
    };
    fn json(value: impl Serialize) -> Value {
        serde_json::to_value(value).unwrap_or_default()
    }
    add(registry::definition(
        "RandomSearch",
        random_search::Settings::default(),
    ));
    add(registry::definition("BayesOpt", Settings::default()));
    add(json(Acquisition::LogEI(LogEI::default())));
    add(json(Acquisition::UCB(UCB::default())));
    add(json(Acquisition::ThompsonSampling(
        ThompsonSampling::default(),
    )));
    add(json(Acquisition::MaxVariance(MaxVariance::default())));
    add(json(Pending::Integrate(Integrate::default())));
    add(json(Pending::Hallucinate(Hallucinate::default())));
    add(json(Pending::Ignore {}));
    add(json(Pending::Censor(Censor::default())));
    add(json(Pending::Liar(Liar::default())));
    add(json(Pending::Nearest(Nearest::default())));
    add(json(Surrogate::default()));
    add(json(Initial::Initial(InitialDesign::default())));
    serde_json::to_string(&all).map_err(|error| raise(py, Error::Corrupt(error.to_string())))
}
