//! Generates the settings of optimizers for random histories, as JSON.

use std::sync::Arc;

use belated::{Clock, Definition, Optimizer, Problem};
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use serde_json::{Value, json};

use crate::number;

const KERNELS: [&str; 5] = [
    "squared_exponential",
    "matern52",
    "matern32",
    "matern12",
    "linear",
];

/// Generates settings of Bayesian optimisation, in combinations that are allowed.
pub fn settings(candidates: bool, floors: f64) -> impl Strategy<Value = Value> {
    let lengths = [1e-300, 1.0, 3.5, 20.0, f64::MAX].map(Value::from);
    let windows = [&lengths[..], &[json!("auto")]].concat();
    let window = option::weighted(0.6, select(windows));
    let how = select(vec!["quasi_random", "uniform", "uncertainty"]);
    let design = (option::weighted(0.9, 0..3usize), how);
    (
        gp(),
        acquisition(),
        search(candidates),
        pending(floors),
        window,
        design,
    )
        .prop_map(
            move |(gp, mut acquisition, search, mut pending, mut window, (n, how))| {
                if acquisition["kind"] == "UCBPE" {
                    pending = json!({"kind": "Hallucinate", "repeats": false});
                } else if pending["kind"] == "Censor" && window.is_none() {
                    pending["late"] = "accept".into();
                } else if pending["kind"] == "Integrate" {
                    acquisition = json!({"kind": "LogEI"});
                }
                if window == Some(json!("auto")) && pending["kind"] != "Censor" {
                    window = Some(json!(10.0));
                }
                if acquisition["kind"] == "ThompsonSampling" && candidates {
                    acquisition["draws"] = "pathwise".into();
                }
                let settings = json!({
                    "kind": "BayesOpt",
                    "surrogate": gp,
                    "acquisition": acquisition,
                    "search": search,
                    "pending": pending,
                    "initial": {"kind": "Initial", "n": n, "how": how},
                    "window": window,
                });
                with_theory(settings)
            },
        )
}

/// Changes the beta of settings to which the theorem of `beta="theory"` does not apply, and gives its constants to
/// others.
fn with_theory(mut settings: Value) -> Value {
    if settings["acquisition"]["beta"] == "theory" {
        settings["acquisition"]["theory"] =
            json!({"kind": "Theory", "rkhs_bound": 1.0, "noise_bound": 0.1, "value_bound": 2.0});
        settings["surrogate"]["targets"] = "raw".into();
        settings["surrogate"]["mean"] = match settings["pending"]["floor"].as_f64() {
            Some(floor) => floor.into(),
            None => "zero".into(),
        };
        if !is_valid(&settings) {
            settings["acquisition"]["beta"] = 2.0.into();
        }
    }
    settings
}

/// Changes the settings to settings with local penalties or AEGiS, which need a box of continuous parameters.
pub fn of_rivals(mut settings: Value, which: u8) -> Value {
    let acquisition = settings["acquisition"]["kind"].clone();
    match which {
        0 | 1 => {
            let kind = ["LocalPenalization", "PLAyBOOK"][usize::from(which)];
            settings["pending"] = json!({"kind": kind});
            let is_theory = settings["acquisition"]["beta"] == "theory";
            if is_theory || (acquisition != "UCB" && acquisition != "LogEI") {
                settings["acquisition"] = json!({"kind": "UCB"});
            }
            if settings["window"] == "auto" {
                settings["window"] = json!(10.0);
            }
        }
        _ => {
            settings["acquisition"] = json!({"kind": "AEGiS"});
            if settings["pending"]["kind"] == "Integrate" {
                settings["pending"] = json!({"kind": "Ignore"});
            }
        }
    }
    settings
}

/// Generates settings of tree search with every kind of bound and up to three instances.
pub fn tree_search() -> impl Strategy<Value = Value> {
    let constant = || option::weighted(0.5, positive(0.3));
    let bound = (
        select(vec!["DUCB1", "DUCB1Sigma", "DUCBV"]),
        constant(),
        positive(0.1),
    );
    let bound = bound.prop_map(|(kind, constant, noise)| match kind {
        "DUCB1" => json!({"kind": kind, "range": constant}),
        "DUCB1Sigma" => json!({"kind": kind, "noise_std": noise}),
        _ => json!({"kind": kind, "b": constant}),
    });
    let rho = select(vec![
        json!(null),
        json!(0.5),
        json!(1.0 - 1e-16),
        json!([0.9, 0.5, 1e-300]),
    ]);
    let choices = (
        select(vec!["uniform", "centre"]),
        select(vec!["lower_bound", "mean"]),
        select(vec!["frozen", "exact"]),
        option::of(any::<bool>()),
    );
    (bound, constant(), rho, choices).prop_map(|(bound, nu, rho, choices)| {
        let (sample, recommendation, refresh, front) = choices;
        json!({"kind": "TreeSearch", "bound": bound, "nu": nu, "rho": rho, "sample": sample,
               "recommendation": recommendation, "refresh": refresh, "front": front})
    })
}

/// Generates settings of BPE-Delay with short and long horizons. Delays that are too long for the horizon are replaced.
pub fn bpe_delay(candidates: bool) -> impl Strategy<Value = Value> {
    let known = (0.0..20.0, 0.0..5.0, 0.0..2.0).prop_map(
        |(mean, xi, b)| json!({"kind": "SubExponential", "mean": mean, "xi": xi, "b": b}),
    );
    let delay = prop_oneof![
        2 => Just(json!({"kind": "EstimatedDelay"})),
        1 => Just(json!({"kind": "NoDelay"})),
        2 => known,
    ];
    let beta = prop_oneof![
        3 => (0.0..6.0).prop_map(|beta| json!(beta)),
        1 => Just(json!("theory")),
    ];
    let noise = prop_oneof![3 => positive(1e-3), 1 => Just(0.0)];
    let model = (
        positive(0.3),
        positive(1.0),
        noise,
        number(),
        select(KERNELS.to_vec()),
    );
    let rounds = (
        select(vec![1usize, 4, 20, 300]),
        any::<bool>(),
        select(vec!["max", "min"]),
        select(vec!["paper", "code"]),
    );
    (model, rounds, delay, beta).prop_map(move |(model, rounds, delay, beta)| {
        let (lengthscale, signal, noise, mean, kernel) = model;
        let (horizon, keep_rounds, tail, lengths) = rounds;
        // On a box, `beta="theory"` is refused for the kernel `matern12`, because functions in its RKHS are not
        // Lipschitz continuous.
        let beta = match kernel {
            "matern12" if !candidates => json!(2.0),
            _ => beta,
        };
        let mut settings = json!({
            "kind": "BPEDelay",
            "horizon": horizon,
            "lengthscale": lengthscale,
            // The generator draws variances, but the settings are standard deviations.
            "signal_std": signal.sqrt(),
            "noise_std": noise.sqrt(),
            "kernel": kernel,
            "mean": mean,
            "delay": delay,
            "beta": beta,
            "theory": {"kind": "Theory", "rkhs_bound": 1.0},
            "n_points": 40,
            "keep_rounds": keep_rounds,
            "tail": tail,
            "lengths": lengths,
        });
        if !is_valid(&settings) {
            settings["delay"] = json!({"kind": "NoDelay"});
        }
        settings
    })
}

/// Returns whether an optimizer with one parameter accepts these settings.
fn is_valid(settings: &Value) -> bool {
    let definition = Definition {
        problem: Arc::new(Problem::unit_cube(1, 0, Clock::Iterations).unwrap()),
        seed: 0,
        strategy: settings.clone(),
        stopping: None,
    };
    Optimizer::new(definition).is_ok()
}

/// Changes the settings so that all hyperparameters are fitted, targets are standardized and covariances are bounded.
/// The linear kernel is replaced, because its covariances overflow for very large points.
pub fn fitted(mut settings: Value) -> Value {
    let gp = &mut settings["surrogate"];
    if gp["kernel"] == "linear" {
        gp["kernel"] = "matern52".into();
    }
    for given in ["lengthscale", "signal_std", "noise_std", "initial_theta"] {
        gp[given] = Value::Null;
    }
    gp["mean"] = "auto".into();
    gp["targets"] = "standardized".into();
    if settings["acquisition"]["beta"] == "theory" {
        settings["acquisition"]["beta"] = 2.0.into();
    }
    settings
}

/// Generates positive numbers, most of the usual size and some extreme.
fn positive(usual: f64) -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => (0.1..10.0f64).prop_map(move |factor| usual * factor),
        1 => select(vec![1e-300, 1e-12, 1e-6, 1e6, 1e300]),
    ]
}

fn gp() -> impl Strategy<Value = Value> {
    let kernel = prop_oneof![4 => select(KERNELS.to_vec()), 1 => Just("auto")];
    let given = prop_oneof![
        (
            option::weighted(0.2, positive(0.3)),
            option::weighted(0.2, positive(1.0)),
            option::weighted(0.2, positive(1e-3))
        ),
        (positive(0.3), positive(1.0), positive(1e-3)).prop_map(|(l, signal, noise)| (
            Some(l),
            Some(signal),
            Some(noise)
        )),
    ];
    let mean = prop_oneof![
        4 => select(vec!["zero", "estimated", "auto", "median"]).prop_map(Value::from),
        1 => number().prop_map(Value::from)
    ];
    let targets = select(vec!["robust", "standardized", "raw"]);
    let inputs = select(vec!["warped", "plain"]);
    let refits = (
        1..4usize,
        prop_oneof![Just(1usize), Just(3), Just(10), Just(usize::MAX)],
        select(vec!["observations", "trials"]),
        select(vec!["policy", "observed", "all"]),
        option::weighted(0.2, [positive(0.3), positive(1.0), positive(0.01)]),
    );
    let model = (
        kernel,
        any::<bool>(),
        given,
        any::<bool>(),
        mean,
        (targets, inputs),
    );
    (model, refits).prop_map(|(model, refits)| {
        let (kernel, ard, (lengthscale, signal, noise), priors, mean, (targets, inputs)) = model;
        let (n_restarts, refit_every, refit_clock, fit_rows, initial_theta) = refits;
        // The variances are drawn, so that they reach the limits of a double. The settings are standard deviations.
        let std = |variance: f64| variance.sqrt();
        json!({
            "kind": "GP",
            "kernel": kernel,
            "ard": ard,
            "lengthscale": lengthscale,
            "signal_std": signal.map(std),
            "noise_std": noise.map(std),
            "mean": mean,
            "priors": priors,
            "targets": targets,
            "inputs": inputs,
            "n_restarts": n_restarts,
            "n_refit_restarts": n_restarts.min(2),
            "refit_every": refit_every,
            "refit_clock": refit_clock,
            "fit_rows": fit_rows,
            "initial_theta": initial_theta.map(|[l, signal, noise]| [l, std(signal), std(noise)]),
        })
    })
}

/// Generates settings for the search that maximises the acquisition. For candidates, only the effort may differ from
/// its default.
fn search(candidates: bool) -> impl Strategy<Value = Value> {
    let literature = prop_oneof![
        4 => Just(None),
        1 => [1..40usize, 0..4usize].prop_map(|counts| Some(("multistart", json!(counts)))),
        1 => (1..60usize).prop_map(|n| Some(("direct", json!(n)))),
    ];
    let effort = select(vec![0.5, 1.0]);
    (effort, literature).prop_map(move |(effort, literature)| {
        let mut search = json!({"kind": "Search", "effort": effort});
        if let Some((name, value)) = literature.filter(|_| !candidates) {
            search[name] = value;
        }
        search
    })
}

fn acquisition() -> impl Strategy<Value = Value> {
    let beta = prop_oneof![
        (0.0..3.0).prop_map(|beta| json!(beta)),
        Just(json!(1e300)),
        Just(json!("kandasamy")),
        Just(json!("kandasamy_code")),
        Just(json!("theory")),
    ];
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (0..5u8, beta, flags, 1..40usize).prop_map(
        |(kind, beta, (predictive_std, widen, weights), n_features)| match kind {
            0 => json!({
                "kind": "LogEI",
                "incumbent": if widen { "posterior_mean" } else { "best_value" },
            }),
            1 => json!({"kind": "MaxVariance"}),
            2 => json!({
                "kind": "UCB",
                "beta": beta,
                "predictive_std": predictive_std,
                "per_batch": widen,
            }),
            3 => json!({
                "kind": "ThompsonSampling",
                "beta": beta,
                "draws": if weights { "weight_space" } else { "pathwise" },
                "n_features": n_features,
                "widen": widen,
                "predictive_std": predictive_std,
            }),
            _ => json!({"kind": "UCBPE", "beta": beta}),
        },
    )
}

fn pending(floors: f64) -> impl Strategy<Value = Value> {
    let floor = option::weighted(0.5, prop_oneof![Just(floors), number()]);
    let late = select(vec!["accept", "discard"]);
    prop_oneof![
        1 => Just(json!({"kind": "Ignore"})),
        2 => any::<bool>().prop_map(|repeats| json!({"kind": "Hallucinate", "repeats": repeats})),
        2 => (floor, late, any::<bool>()).prop_map(|(floor, late, repeats)| {
            json!({"kind": "Censor", "floor": floor, "late": late, "repeats": repeats})
        }),
        1 => (1..9usize).prop_map(|k| json!({"kind": "Nearest", "k": k})),
        2 => (1..9usize).prop_map(|n| json!({"kind": "Integrate", "n": n})),
        1 => select(vec!["min", "mean", "max"]).prop_map(|value| json!({"kind": "Liar", "value": value})),
        1 => number().prop_map(|value| json!({"kind": "Liar", "value": value})),
    ]
}
