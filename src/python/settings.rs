//! Keyword arguments of Bayesian optimisation, as the core's settings.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{Error, Result};
use crate::gp::kernel::KernelFamily;
use crate::ledger::Clock;
use crate::python::errors::raise;
use crate::strategy::bayes::pending::{Lie, PendingPolicy};
use crate::strategy::bayes::settings::{
    AcquisitionKind, Beta, BoxSearch, DrawMethod, FANTASIES, FitRows, Initial, Late, PriorMean,
    RefitClock, Settings, TargetScale,
};

/// Settings from a dict; absent keys and None keep their defaults.
pub fn settings(dict: &Bound<'_, PyDict>) -> PyResult<Settings> {
    let py = dict.py();
    let mut settings = Settings::default();
    let mut search = (None, 10_000, 100);
    let (mut beta, mut rkhs, mut chance) = (None, 1.0, 0.1);
    let (mut pending, mut lie, mut n_nearest, mut n_fantasies) = (None, Lie::Mean, 3, FANTASIES);
    for (key, value) in dict {
        let key: String = key.extract()?;
        if value.is_none() {
            continue;
        }
        let name = |name| word(py, &value, name);
        match key.as_str() {
            "kernel" => {
                settings.kernels = match value.extract::<&str>() {
                    Ok("auto") => vec![KernelFamily::Matern52, KernelFamily::SquaredExponential],
                    _ => vec![kernel(py, &value)?],
                };
            }
            "ard" => settings.ard = value.extract()?,
            "lengthscale" => {
                settings.lengthscale = Some(match value.extract::<f64>() {
                    Ok(one) => vec![one],
                    Err(_) => value.extract()?,
                });
            }
            "variance" => settings.variance = Some(value.extract()?),
            "noise" => settings.noise = Some(value.extract()?),
            "priors" => settings.priors = value.extract()?,
            "n_restarts" => settings.n_restarts = value.extract()?,
            "refit_every" => settings.refit_every = value.extract()?,
            "refit_clock" => {
                settings.refit_clock = name("refit_clock")?.one_of(
                    "\"observations\" or \"trials\"",
                    &[
                        ("observations", RefitClock::Observations),
                        ("trials", RefitClock::Trials),
                    ],
                )?;
            }
            "fit_rows" => {
                settings.fit_rows = name("fit_rows")?.one_of(
                    "\"policy\", \"observed\" or \"all\"",
                    &[
                        ("policy", FitRows::Policy),
                        ("observed", FitRows::Observed),
                        ("all", FitRows::All),
                    ],
                )?;
            }
            "initial_theta" => settings.initial_theta = Some(value.extract()?),
            "acquisition" => {
                settings.acquisition = name("acquisition")?.one_of(
                    "\"ucb\", \"log_ei\", \"thompson\" or \"max_variance\"",
                    &[
                        ("ucb", AcquisitionKind::UpperConfidenceBound),
                        ("log_ei", AcquisitionKind::LogExpectedImprovement),
                        ("thompson", AcquisitionKind::Thompson),
                        ("max_variance", AcquisitionKind::MaxVariance),
                    ],
                )?;
            }
            "beta" => {
                beta = Some(match value.extract::<f64>() {
                    Ok(width) => Beta::Constant(width),
                    Err(_) => name("beta")?.one_of(
                        "a number, \"kandasamy\" or \"theory\"",
                        &[
                            ("kandasamy", Beta::Kandasamy),
                            (
                                "theory",
                                Beta::Theory {
                                    rkhs_bound: 1.0,
                                    delta: 0.1,
                                },
                            ),
                        ],
                    )?,
                });
            }
            "rkhs_bound" => rkhs = value.extract()?,
            "delta" => chance = value.extract()?,
            "pending" => pending = Some(value.extract()?),
            "lie" => {
                lie = match value.extract::<f64>() {
                    Ok(value) => Lie::Number(value),
                    Err(_) => name("lie")?.one_of(
                        "\"min\", \"mean\", \"max\" or a number",
                        &[("min", Lie::Min), ("mean", Lie::Mean), ("max", Lie::Max)],
                    )?,
                };
            }
            "n_nearest" => n_nearest = value.extract()?,
            "n_fantasies" => n_fantasies = value.extract()?,
            "window" => settings.window = Some(value.extract()?),
            "floor" => settings.floor = Some(value.extract()?),
            "late" => {
                settings.late = name("late")?.one_of(
                    "\"accept\" or \"discard\"",
                    &[("accept", Late::Accept), ("discard", Late::Discard)],
                )?;
            }
            "n_initial" => settings.n_initial = Some(value.extract()?),
            "initial" => {
                settings.initial = name("initial")?.one_of(
                    "\"quasi_random\" or \"uniform\"",
                    &[
                        ("quasi_random", Initial::QuasiRandom),
                        ("uniform", Initial::Uniform),
                    ],
                )?;
            }
            "mean" => {
                settings.mean = match value.extract::<f64>() {
                    Ok(mean) => PriorMean::Number(mean),
                    Err(_) => name("mean")?.one_of(
                        "\"auto\", \"estimated\", \"zero\", \"median\" or a number",
                        &[
                            ("auto", PriorMean::Auto),
                            ("estimated", PriorMean::Estimated),
                            ("zero", PriorMean::Zero),
                            ("median", PriorMean::Median),
                        ],
                    )?,
                };
            }
            "targets" => {
                settings.targets = name("targets")?.one_of(
                    "\"standardized\" or \"raw\"",
                    &[
                        ("standardized", TargetScale::Standardized),
                        ("raw", TargetScale::Raw),
                    ],
                )?;
            }
            "predictive_std" => settings.predictive_std = value.extract()?,
            "scale_draws" => settings.scale_draws = value.extract()?,
            "thompson" => {
                settings.thompson = name("thompson")?.one_of(
                    "\"pathwise\" or \"weight_space\"",
                    &[
                        ("pathwise", DrawMethod::Pathwise),
                        ("weight_space", DrawMethod::WeightSpace),
                    ],
                )?;
            }
            "n_features" => settings.n_features = value.extract()?,
            "maximizer" => {
                search.0 = Some(name("maximizer")?.one_of(
                    "\"default\" or \"multistart\"",
                    &[("default", false), ("multistart", true)],
                )?);
            }
            "n_raw" => search.1 = value.extract()?,
            "n_starts" => search.2 = value.extract()?,
            _ => {
                let error = Error::InvalidSetting {
                    name: "settings",
                    got: key,
                    expected: "there is no setting of this name",
                };
                return Err(raise(py, error));
            }
        }
    }
    if let Some(beta) = beta {
        settings.beta = match beta {
            Beta::Theory { .. } => Beta::Theory {
                rkhs_bound: rkhs,
                delta: chance,
            },
            other => other,
        };
    }
    if let Some(pending) = pending {
        let word = Word {
            py,
            name: "pending",
            value: pending,
        };
        settings.pending = word.one_of(
            "\"hallucinate\", \"integrate\", \"ignore\", \"censor\", \"liar\" or \"nearest\"",
            &[
                ("hallucinate", PendingPolicy::Hallucinate),
                ("integrate", PendingPolicy::Integrate(n_fantasies)),
                ("ignore", PendingPolicy::Ignore),
                ("censor", PendingPolicy::Censor),
                ("liar", PendingPolicy::Liar(lie)),
                ("nearest", PendingPolicy::Nearest(n_nearest)),
            ],
        )?;
    } else {
        // Averaged over outcomes, a bound is the hallucinated one; and draws that ignore what is out go where it is.
        settings.pending = match settings.acquisition {
            AcquisitionKind::LogExpectedImprovement => PendingPolicy::Integrate(n_fantasies),
            _ => PendingPolicy::Hallucinate,
        };
    }
    if let (Some(true), n_raw, n_starts) = search {
        settings.maximizer = BoxSearch::Multistart { n_raw, n_starts };
    }
    Ok(settings)
}

pub fn kernel(py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<KernelFamily> {
    word(py, value, "kernel")?.one_of(
        "\"matern12\", \"matern32\", \"matern52\", \"squared_exponential\" or \"linear\"",
        &[
            ("matern12", KernelFamily::Matern12),
            ("matern32", KernelFamily::Matern32),
            ("matern52", KernelFamily::Matern52),
            ("linear", KernelFamily::Linear),
            ("squared_exponential", KernelFamily::SquaredExponential),
        ],
    )
}

pub fn clock(py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Clock> {
    word(py, value, "clock")?.one_of(
        "\"iterations\" or \"seconds\"",
        &[
            ("iterations", Clock::Iterations),
            ("seconds", Clock::Seconds),
        ],
    )
}

/// The value of an argument that is one of a few words.
struct Word<'py> {
    py: Python<'py>,
    name: &'static str,
    value: String,
}

fn word<'py>(
    py: Python<'py>,
    value: &Bound<'py, PyAny>,
    name: &'static str,
) -> PyResult<Word<'py>> {
    Ok(Word {
        py,
        name,
        value: match value.extract() {
            Ok(word) => word,
            Err(_) => value.repr()?.to_string(), // none of the words, but good for the message
        },
    })
}

impl Word<'_> {
    fn one_of<T: Copy>(self, expected: &'static str, choices: &[(&str, T)]) -> PyResult<T> {
        let found = choices.iter().find(|(word, _)| *word == self.value);
        let answer: Result<T> = found
            .map(|(_, meaning)| *meaning)
            .ok_or(Error::InvalidSetting {
                name: self.name,
                got: format!("{:?}", self.value),
                expected,
            });
        answer.map_err(|error| raise(self.py, error))
    }
}
