//! Tests of the settings of the surrogate.

use super::*;
use serde_json::{Value, json};

fn gp(fields: Value) -> GP {
    serde_json::from_value(fields).unwrap()
}

#[test]
fn hyperparameters_are_fitted_unless_all_are_given() {
    let given =
        json!({"kernel": "matern52", "lengthscale": 0.3, "signal_std": 2.0, "noise_std": 0.5});
    assert!(!gp(given.clone()).fits() && GP::default().fits());
    for (field, value) in [
        ("kernel", json!("auto")),
        ("lengthscale", Value::Null),
        ("signal_std", Value::Null),
        ("noise_std", Value::Null),
    ] {
        let mut fields = given.clone();
        fields[field] = value;
        assert!(gp(fields).fits(), "{field}");
    }
}

#[test]
fn standard_deviations_are_squared_and_zero_noise_is_replaced_by_the_least_noise() {
    let fields = json!({"lengthscale": [0.3], "signal_std": 3.0, "noise_std": 0.5});
    let fit = gp(fields.clone()).fit_settings(&Columns::plain(2));
    assert_eq!(fit.lengthscale, Some(vec![0.3; 2]));
    assert_eq!(
        (fit.signal_variance, fit.noise_variance),
        (Some(9.0), Some(0.25))
    );
    let noiseless =
        gp(json!({"noise_std": 0.0, "lengthscale": [0.3, 0.4]})).fit_settings(&Columns::plain(2));
    assert_eq!(noiseless.noise_variance, Some(MIN_NOISE));
    assert_eq!(noiseless.lengthscale, Some(vec![0.3, 0.4]));
    // If a hyperparameter is given, it is used instead of the value in `initial_theta`.
    let mut fields = fields;
    fields["initial_theta"] = json!([0.5, 2.0, 0.25]);
    let theta = gp(fields).first_theta(&Columns::plain(2));
    assert_eq!((theta.signal_variance, theta.noise_variance), (9.0, 0.25));
    assert_eq!(theta.lengthscale, [0.3; 2]);
    let theta = gp(json!({"initial_theta": [0.5, 2.0, 0.25]})).first_theta(&Columns::plain(2));
    assert_eq!((theta.signal_variance, theta.noise_variance), (4.0, 0.0625));
    assert_eq!(theta.lengthscale, [0.5; 2]);
}

#[test]
fn refits_become_less_frequent_with_more_observations() {
    let gp = GP::default(); // refit_every = 10
    assert!(gp.refit_due(None, 0, 0));
    // A refit is due when the number of rows has grown by a tenth or by 10, whichever is smaller. With many rows, a
    // refit is due when the number of rows has grown by a twentieth.
    for (fitted, interval) in [(0, 1), (5, 1), (50, 5), (150, 10), (400, 20)] {
        for more in 0..2 * interval {
            let due = gp.refit_due(Some(fitted), fitted + more, 1);
            assert_eq!(due, more >= interval, "{fitted} {more}");
        }
    }
    let by_trials = GP {
        refit_clock: RefitClock::Trials,
        ..gp
    };
    let due: Vec<usize> = (1..25)
        .filter(|&t| by_trials.refit_due(Some(5), 90, t))
        .collect();
    assert_eq!(due, [10, 20]);
}

#[test]
fn refits_are_frequent_at_first_and_rare_later() {
    let gp = GP::default();
    assert!(gp.refit_due(None, 3, 3));
    for (fitted, rows, due) in [
        (5, 5, false),
        (5, 6, true),
        (100, 109, false),
        (100, 110, true),
        (1000, 1049, false),
        (1000, 1050, true),
    ] {
        assert_eq!(gp.refit_due(Some(fitted), rows, 0), due);
    }
    let by_trials = GP {
        refit_clock: RefitClock::Trials,
        ..gp
    };
    assert!(by_trials.refit_due(Some(7), 7, 20) && !by_trials.refit_due(Some(7), 9, 21));
}
