//! Tests of the checks and the defaults of all settings.

use super::*;
use crate::error::Error;
use crate::strategy::bayes::settings::pending::{Censor, Liar, Lie};
use serde_json::Value;
use serde_json::json;

fn checked(settings: Value, width: usize, candidates: bool) -> Result<()> {
    let settings: Settings = serde_json::from_value(settings).unwrap();
    settings.check(width, candidates)
}

/// Creates settings that contain this search.
fn search(mut search: Value) -> Value {
    search["kind"] = json!("Search");
    json!({"search": search})
}

#[test]
fn each_bad_setting_is_refused_by_name() {
    let theory = |name: &str, x: f64| json!({"acquisition": {"kind": "UCB", "theory": {"kind": "Theory", name: x}}});
    let gp = |field: &str, value: Value| json!({"surrogate": {"kind": "GP", field: value}});
    let ucb = |field: &str, value: Value| json!({"acquisition": {"kind": "UCB", field: value}});
    let ts = |field: &str, value: Value| json!({"acquisition": {"kind": "ThompsonSampling", field: value}});
    let pending = |value: Value| json!({"pending": value});
    let many = MAX_COUNT + 1;
    for (name, settings) in [
        (
            "surrogate.lengthscale",
            gp("lengthscale", json!([1.0, 2.0])),
        ),
        ("surrogate.lengthscale", gp("lengthscale", json!(0.0))),
        ("surrogate.signal_std", gp("signal_std", json!(-1.0))),
        ("surrogate.noise_std", gp("noise_std", json!(1e200))),
        (
            "surrogate.initial_theta",
            gp("initial_theta", json!([1.0, 0.0, 1.0])),
        ),
        ("surrogate.n_restarts", gp("n_restarts", json!(0))),
        ("surrogate.n_restarts", gp("n_restarts", json!(many))),
        ("surrogate.refit_every", gp("refit_every", json!(0))),
        ("window", json!({"window": 0.0})),
        ("window", json!({"window": "auto"})),
        (
            "window",
            json!({"window": "auto", "pending": {"kind": "Ignore"}}),
        ),
        (
            "initial.n",
            json!({"initial": {"kind": "Initial", "n": usize::MAX}}),
        ),
        ("acquisition.beta", ucb("beta", json!(-1.0))),
        ("theory.rkhs_bound", theory("rkhs_bound", -1.0)),
        ("theory.noise_bound", theory("noise_bound", -1.0)),
        ("theory.value_bound", theory("value_bound", 0.0)),
        ("theory.delta", theory("delta", 1.0)),
        ("theory.regularization", theory("regularization", 1.0)),
        ("search.multistart", search(json!({"multistart": [0, 1]}))),
        (
            "search.multistart",
            search(json!({"multistart": [1, many]})),
        ),
        ("search.direct", search(json!({"direct": 0}))),
        ("search.effort", search(json!({"effort": 0.0}))),
        ("search.effort", search(json!({"effort": 1e9}))),
        ("search.direct", search(json!({"direct": many}))),
        (
            "search.direct",
            search(json!({"direct": 9, "multistart": [9, 9]})),
        ),
        (
            "acquisition.beta",
            json!({"acquisition": {"kind": "UCBPE", "beta": -1.0}}),
        ),
        (
            "pending",
            json!({"acquisition": {"kind": "UCBPE"}, "pending": {"kind": "Ignore"}}),
        ),
        ("acquisition.n_features", ts("n_features", json!(0))),
        ("acquisition.n_features", ts("n_features", json!(many))),
        (
            "pending.late",
            pending(json!({"kind": "Censor", "late": "discard"})),
        ),
        ("pending.k", pending(json!({"kind": "Nearest", "k": 0}))),
        (
            "pending.n",
            pending(json!({"kind": "Integrate", "n": many})),
        ),
        (
            "pending",
            json!({"pending": {"kind": "Integrate"}, "acquisition": {"kind": "ThompsonSampling"}}),
        ),
    ] {
        match checked(settings, 3, false) {
            Err(Error::InvalidSetting { name: found, .. }) => assert_eq!(found, name),
            other => panic!("{name}: {other:?}"),
        }
    }
    for (name, change) in [
        (
            "window",
            (|s| s.window = Some(Window::Length(f64::NAN))) as fn(&mut Settings),
        ),
        ("pending.floor", |s| {
            let floor = Some(f64::INFINITY);
            s.pending = Some(Pending::Censor(Censor {
                floor,
                ..Default::default()
            }));
        }),
        ("pending.value", |s| {
            let value = Lie::Number(f64::NAN);
            s.pending = Some(Pending::Liar(Liar { value }));
        }),
        ("surrogate.mean", |s| {
            let mean = PriorMean::Number(f64::NAN);
            s.surrogate = GP {
                mean,
                ..GP::default()
            };
        }),
    ] {
        let mut settings = Settings::default();
        change(&mut settings);
        match settings.check(3, false) {
            Err(Error::InvalidSetting { name: found, .. }) => assert_eq!(found, name),
            other => panic!("{name}: {other:?}"),
        }
    }
}

/// Settings to which the theorem behind `beta="theory"` applies.
fn theory(pending: Value, window: Value) -> Value {
    let constants =
        json!({"kind": "Theory", "rkhs_bound": 1.0, "noise_bound": 0.1, "value_bound": 2.0});
    json!({
        "acquisition": {"kind": "UCB", "beta": "theory", "theory": constants},
        "surrogate": {"kind": "GP", "kernel": "matern52", "lengthscale": 0.3, "signal_std": 1.0, "noise_std": 0.1,
                      "mean": -1.5, "targets": "raw"},
        "pending": pending,
        "window": window,
    })
}

#[test]
fn settings_without_the_conditions_of_the_theorem_are_refused_by_name() {
    let censor = json!({"kind": "Censor", "floor": -1.5, "late": "discard"});
    let accept = json!({"kind": "Censor", "floor": -1.5});
    let ignore = json!({"kind": "Ignore"});
    let mut explores = theory(Value::Null, Value::Null);
    explores["acquisition"]["kind"] = json!("UCBPE");
    for good in [
        explores,
        theory(censor.clone(), json!(5.0)),
        theory(accept.clone(), Value::Null),
        theory(ignore.clone(), json!(5.0)),
    ] {
        checked(good, 2, false).unwrap();
    }
    let standardized = json!("standardized");
    let number = |x: f64| json!(x);
    for (name, pending, window, at, value) in [
        (
            "theory.rkhs_bound",
            &ignore,
            5.0,
            "/acquisition/theory/rkhs_bound",
            Value::Null,
        ),
        (
            "theory.noise_bound",
            &ignore,
            5.0,
            "/acquisition/theory/noise_bound",
            Value::Null,
        ),
        (
            "surrogate.kernel",
            &ignore,
            5.0,
            "/surrogate/kernel",
            json!("auto"),
        ),
        (
            "surrogate.lengthscale",
            &ignore,
            5.0,
            "/surrogate/lengthscale",
            Value::Null,
        ),
        (
            "surrogate.signal_std",
            &ignore,
            5.0,
            "/surrogate/signal_std",
            Value::Null,
        ),
        (
            "surrogate.noise_std",
            &ignore,
            5.0,
            "/surrogate/noise_std",
            Value::Null,
        ),
        (
            "surrogate.targets",
            &ignore,
            5.0,
            "/surrogate/targets",
            json!("robust"),
        ),
        (
            "surrogate.targets",
            &ignore,
            5.0,
            "/surrogate/targets",
            standardized,
        ),
        (
            "surrogate.mean",
            &ignore,
            5.0,
            "/surrogate/mean",
            json!("median"),
        ),
        (
            "theory.value_bound",
            &censor,
            5.0,
            "/acquisition/theory/value_bound",
            Value::Null,
        ),
        ("pending.floor", &censor, 5.0, "/pending/floor", Value::Null),
        (
            "surrogate.mean",
            &censor,
            5.0,
            "/surrogate/mean",
            number(-1.0),
        ),
        (
            "surrogate.mean",
            &censor,
            5.0,
            "/surrogate/mean",
            json!("zero"),
        ),
        ("window", &censor, 5.0, "/window", json!("auto")),
        (
            "pending.late",
            &censor,
            5.0,
            "/pending/late",
            json!("accept"),
        ),
        (
            "pending",
            &ignore,
            5.0,
            "/pending",
            json!({"kind": "Hallucinate"}),
        ),
        ("pending", &ignore, 5.0, "/pending", json!({"kind": "Liar"})),
        ("pending", &ignore, 5.0, "/pending", Value::Null),
    ] {
        let mut settings = theory(pending.clone(), number(window));
        *settings.pointer_mut(at).unwrap() = value;
        match checked(settings, 2, false) {
            Err(Error::InvalidSetting { name: found, .. }) => assert_eq!(found, name),
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn settings_for_boxes_are_refused_on_candidates() {
    for settings in [
        json!({"acquisition": {"kind": "ThompsonSampling", "draws": "weight_space"}}),
        search(json!({"multistart": [10, 1]})),
        search(json!({"direct": 10})),
    ] {
        assert!(checked(settings.clone(), 3, true).is_err());
        assert!(checked(settings, 3, false).is_ok());
    }
}

#[test]
fn the_mean_is_estimated_on_request_or_in_many_dimensions() {
    let estimated = json!({"mean": "estimated"});
    let raw = json!({"mean": "estimated", "targets": "raw"});
    let censor = json!({"kind": "Censor"});
    for (fields, pending, d, expected) in [
        (estimated.clone(), Value::Null, 1, true),
        (json!({"mean": "auto"}), Value::Null, 4, false),
        (json!({"mean": "auto"}), Value::Null, 5, true),
        (json!({"mean": "zero"}), Value::Null, 9, false),
        (json!({"mean": 1.0}), Value::Null, 9, false),
        (raw, Value::Null, 9, false),
        (estimated, censor, 9, false),
    ] {
        let pending = serde_json::from_value(pending).unwrap();
        let settings = Settings {
            pending,
            surrogate: serde_json::from_value(fields.clone()).unwrap(),
            ..Settings::default()
        };
        assert_eq!(settings.estimates_mean(d), expected, "{fields} {d}");
    }
}
