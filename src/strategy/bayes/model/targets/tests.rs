//! Tests of the units of targets, and of the targets of pending trials.

use super::*;
use crate::strategy::bayes::settings::pending::{Censor, Liar, Lie, Pending};
use crate::strategy::bayes::settings::surrogate::GP;

/// Creates rows with these values. The window of a trial whose value is `None` has passed.
fn rows(values: &[Option<f64>]) -> Vec<RowValue> {
    let row = |value: &Option<f64>| match *value {
        Some(value) => RowValue::Observed { value, std: None },
        None => RowValue::Discarded,
    };
    values.iter().map(row).collect()
}

fn with(pending: Pending, gp: GP) -> Settings {
    Settings {
        pending: Some(pending),
        surrogate: gp,
        ..Settings::default()
    }
}

fn censor(floor: Option<f64>) -> Pending {
    Pending::Censor(Censor {
        floor,
        ..Censor::default()
    })
}

fn liar(value: Lie) -> Pending {
    Pending::Liar(Liar { value })
}

/// Computes the targets of these values. The window of every pending trial has passed.
fn of(values: &[Option<f64>], settings: &Settings) -> Targets {
    Targets::of(&rows(values), settings, None)
}

#[test]
fn standardised_targets_have_mean_zero_and_unit_spread() {
    let targets = of(&[Some(1.0), Some(3.0)], &Settings::default());
    assert_eq!(targets.values, [-1.0, 1.0]);
    assert_eq!((targets.units.center, targets.units.scale), (2.0, 1.0));
}

#[test]
fn changing_the_prior_mean_does_not_change_the_values_of_f() {
    let settings = with(liar(Lie::Max), GP::default());
    let mut targets = of(&[Some(0.0), Some(8.0)], &settings);
    let in_f = |targets: &Targets| {
        let levels = [targets.levels.floor, targets.levels.lie];
        let all = targets.values.iter().chain(&levels);
        all.map(|y| targets.units.value(*y)).collect::<Vec<_>>()
    };
    let before = in_f(&targets);
    let zero = targets.units.center;
    targets.move_center(0.5);
    assert_eq!(in_f(&targets), before);
    assert_eq!(targets.units.center, zero + 0.5 * targets.units.scale);
    assert_eq!(targets.values[0], -1.5);
}

#[test]
fn the_unit_is_the_spread_of_f_without_known_noise() {
    // The data are 400 values of f with noise. The standard deviation of f is 2, and the standard deviations of the
    // noise range from 0 to 6.
    let f = |i: usize| 2.0 * 3f64.sqrt() * (2.0 * ((i as f64 * 0.618_034).fract()) - 1.0);
    let stds: Vec<f64> = (0..400).map(|i| (i % 7) as f64).collect();
    let sign = |i: usize| if (i / 7).is_multiple_of(2) { 1.0 } else { -1.0 };
    let values: Vec<f64> = (0..400).map(|i| 10.0 + f(i) + sign(i) * stds[i]).collect();
    let (center, scale) = standardized(&values, &stds, None);
    assert!(
        (center - 10.0).abs() < 0.2 && (scale - 2.0).abs() < 0.2,
        "{center} {scale}"
    );
    // A value with very large noise has almost no weight. If all values are mostly noise, the noise determines the
    // unit.
    let with = |value: f64, std: f64| {
        let values: Vec<f64> = (0..400).map(f).chain([value]).collect();
        let stds: Vec<f64> = [0.0; 400].into_iter().chain([std]).collect();
        standardized(&values, &stds, None).1
    };
    assert!((with(1e6, 1e6) - 2.0).abs() < 0.01 && with(1e6, 1.0) > 1e4);
    let noise: Vec<f64> = (0..400).map(|i| 0.5 * sign(7 * i)).collect();
    assert_eq!(standardized(&noise, &[0.5; 400], None).1, 0.5);
}

#[test]
fn equal_values_without_known_noise_do_not_make_the_unit_zero() {
    let unit = |values: &[f64], stds: &[f64]| standardized(values, stds, None).1;
    // The unit is the smallest known standard deviation of the noise, or the spread of the values if the spread is
    // smaller.
    let found = unit(&[1.0, 1.4, 3.0], &[0.0, 0.5, 0.8]);
    assert!((0.5..0.9).contains(&found), "{found}");
    assert_eq!(unit(&[1.4, 1.5], &[0.0, 0.6]), unit(&[1.4, 1.5], &[]));
    assert_eq!(
        unit(&[1.4, 1.4, 1.5], &[0.0, 0.0, 0.6]),
        unit(&[1.4, 1.4, 1.5], &[])
    );
    // If the values without known noise differ from each other, the spread of these values determines the unit.
    let found = unit(&[1.4, 1.5, 1.6, 9.0], &[0.0, 0.0, 0.0, 20.0]);
    assert!((0.05..0.2).contains(&found), "{found}");
}

#[test]
fn units_differ_by_half_a_unit_or_a_factor_of_two() {
    let units = |center: f64, scale: f64| Units {
        center,
        scale,
        warp: None,
    };
    let fitted = units(3.0, 4.0);
    for (center, scale, expected) in [
        (4.9, 4.0, false),
        (5.1, 4.0, true),
        (0.9, 4.0, true),
        (3.0, 7.9, false),
        (3.0, 8.1, true),
        (3.0, 1.9, true),
        (3.0, f64::INFINITY, true),
    ] {
        assert_eq!(
            units(center, scale).differ_from(&fitted),
            expected,
            "{center} {scale}"
        );
    }
}

#[test]
fn the_median_is_the_middle_value() {
    for (values, expected) in [
        (vec![3.0], 3.0),
        (vec![8.0, 2.0], 5.0),
        (vec![9.0, 1.0, 2.0], 2.0),
        (vec![9.0, 2.0, 1.0, 4.0], 3.0),
        (vec![9.0, 2.0, 1.0, 4.0, -5.0], 2.0),
        (vec![f64::MAX, f64::MAX], f64::MAX),
    ] {
        assert_eq!(median(&values), expected);
    }
}

#[test]
fn censored_targets_are_distances_from_the_floor() {
    let settings = with(censor(Some(0.5)), GP::default());
    let targets = of(&[Some(1.0), Some(2.5)], &settings);
    assert_eq!(targets.values, [0.25, 1.0]);
    assert_eq!(targets.levels.floor, 0.0);
    let discarded = of(&[None, Some(2.5)], &settings);
    assert_eq!(discarded.values, [0.0, 1.0]);
}

#[test]
fn the_floor_is_the_given_floor_or_the_worst_value() {
    let settings = with(censor(Some(0.5)), GP::default());
    assert_eq!(of(&[Some(1.0), None], &settings).values, [1.0, 0.0]);
    let settings = with(censor(None), GP::default());
    assert_eq!(
        of(&[Some(1.0), Some(3.0), None], &settings).values,
        [0.0, 1.0, 0.0]
    );
}

#[test]
fn targets_above_a_floor_are_at_most_one_even_if_all_values_are_zero() {
    for (value, floor) in [(0.0, -100.0), (5.0, -100.0), (0.0, -1e-300), (0.0, 0.0)] {
        let settings = with(censor(Some(floor)), GP::default());
        let targets = of(&[Some(value), Some(value)], &settings);
        assert!(
            targets.values.iter().all(|y| (0.0..=1.0).contains(y)),
            "{targets:?}"
        );
    }
}

#[test]
fn the_value_of_the_liar_is_in_the_units_of_the_model() {
    for (lie, expected) in [
        (Lie::Min, -1.0),
        (Lie::Mean, 0.0),
        (Lie::Max, 1.0),
        (Lie::Number(4.0), 2.0),
    ] {
        let settings = with(liar(lie), GP::default());
        assert_eq!(of(&[Some(1.0), Some(3.0)], &settings).levels.lie, expected);
        assert!(of(&[], &settings).levels.lie.is_finite());
    }
}

#[test]
fn assumed_values_of_pending_trials_are_warped_like_observed_values() {
    let warp = Warp {
        knee: 2.0,
        width: 1.0,
        diverging: -100.0,
        limit: -30.0,
    };
    let rows = rows(&[0.0, 1.0, 2.0, 3.0, 4.0].map(Some));
    let of = |settings: &Settings| Targets::of(&rows, settings, Some(warp));
    let lied = of(&with(liar(Lie::Number(-1e15)), GP::default()));
    // The unit is computed only from the observed values. The lie is a diverging value, so the warp replaces the lie by
    // its limit.
    assert_eq!(lied.units, of(&Settings::default()).units);
    let lie = lied.units.center + lied.units.scale * lied.levels.lie;
    assert!((lie - (2.0 - 33f64.ln())).abs() < 1e-12, "{lie}");
}

#[test]
fn raw_targets_are_only_shifted_by_the_prior_mean() {
    let gp = GP {
        targets: TargetScale::Raw,
        mean: PriorMean::Median,
        ..GP::default()
    };
    let settings = with(Pending::Ignore {}, gp);
    assert_eq!(
        of(&[Some(1.0), Some(5.0), Some(2.0)], &settings).values,
        [-1.0, 3.0, 0.0]
    );
}

#[test]
fn a_prior_mean_far_from_all_values_becomes_the_unit() {
    for (values, mean, floor) in [
        (vec![Some(1e-300)], 1e300, None),
        (vec![Some(1.0), Some(2.0)], f64::MAX, Some(f64::MIN)),
        (vec![Some(0.0)], 0.0, Some(1e300)),
        (vec![Some(0.0)], 1e300, Some(-1e300)),
    ] {
        for pending in [
            Pending::Ignore {},
            censor(floor),
            liar(Lie::Number(floor.unwrap_or(7.0))),
        ] {
            let gp = GP {
                mean: PriorMean::Number(mean),
                ..GP::default()
            };
            let settings = with(pending, gp);
            let targets = of(&values, &settings);
            assert_eq!(targets.units.center, mean);
            assert!(targets.levels.lie.abs() <= 2.0);
            assert!(targets.values.iter().all(|y| y.abs() <= 2.0), "{targets:?}");
        }
    }
}

#[test]
fn extreme_and_constant_values_stay_finite() {
    for values in [
        vec![1e300, -1e300],
        vec![f64::MAX, f64::MIN],
        vec![1e-300, 2e-300],
        vec![5e-324, 0.0],
        vec![7.0, 7.0],
        vec![0.0, 0.0],
        vec![1e300, 1e300_f64.next_down()],
    ] {
        let values: Vec<_> = values.into_iter().map(Some).collect();
        for pending in [Pending::Ignore {}, censor(None)] {
            let settings = with(pending, GP::default());
            let targets = of(&values, &settings);
            assert!(
                targets.values.iter().all(|y| y.abs() < 10.0),
                "{values:?} {targets:?}"
            );
            assert!(targets.units.scale > 0.0);
        }
    }
}
