//! Tests of forecasts, and of invalid or degenerate records.

use std::ops::ControlFlow;

use proptest::prelude::*;

use super::{Arrived, Censored, Failed, fit, simulate};
use crate::delays::draws::Draw;
use crate::delays::fit::Options;
use crate::delays::records::Resolution;
use crate::delays::{DelayDistribution, Ending, Unknown};
use crate::error::Error;

#[test]
fn neither_the_order_nor_the_unit_of_time_matters() {
    let (ages, outcomes) = simulate(50, 2);
    let base = fit(&ages, &outcomes);
    let (mut backwards, mut reversed) = (ages.clone(), outcomes.clone());
    backwards.reverse();
    reversed.reverse();
    let other = fit(&backwards, &reversed);
    assert_eq!(
        base.arrival_probability(10.0, 20.0, 0.8).unwrap(),
        other.arrival_probability(10.0, 20.0, 0.8).unwrap()
    );
    assert_eq!(base.mean(0.8).unwrap(), other.mean(0.8).unwrap());
    for unit in [1e-9, 1e-3, 1e9] {
        let scaled: Vec<f64> = ages.iter().map(|a| a * unit).collect();
        let other = fit(&scaled, &outcomes);
        let close = |a: f64, b: f64| (a - b).abs() < 1e-7 * b.abs();
        let (p, q) = (
            base.arrival_probability(10.0, 20.0, 0.8).unwrap(),
            other
                .arrival_probability(10.0 * unit, 20.0 * unit, 0.8)
                .unwrap(),
        );
        assert!(close(p.value, q.value) && close(p.low, q.low) && close(p.high, q.high));
        let (p, q) = (
            base.remaining(5.0, 0.8).unwrap(),
            other.remaining(5.0 * unit, 0.8).unwrap(),
        );
        assert!(close(p.value * unit, q.value) && close(p.high * unit, q.high));
    }
}

#[test]
fn forecasts_agree_with_each_other() {
    let (ages, outcomes) = simulate(60, 4);
    let fitted = fit(&ages, &outcomes);
    let value = |age: f64, within: f64| fitted.arrival_probability(age, within, 0.8).unwrap();
    // An arrival within a long time is an arrival.
    let ever = fitted.arrives_ever(30.0, 0.8).unwrap();
    assert!((value(30.0, 1e12).value - ever.value).abs() < 1e-6);
    assert!(!value(1.0, 5.0).extrapolated && value(1.0, 1e4).extrapolated);
    // In half of the draws, more than half of the arrivals come before the median.
    let median = fitted.quantile(0.5, 0.8).unwrap();
    let later = |d: &&Draw| {
        d.arrives.later(median.value / fitted.scale) < 0.5 * d.arrives.probability * (1.0 - 1e-9)
    };
    let share: f64 = fitted.draws.iter().filter(later).map(|d| d.weight).sum();
    let largest = fitted.draws.iter().map(|d| d.weight).fold(0.0, f64::max);
    assert!(share <= 0.5 && share > 0.5 - 2.0 * largest, "{share}");
    assert!((fitted.remaining(0.0, 0.8).unwrap().value / median.value - 1.0).abs() < 1e-6);
    // P(arrives) + P(fails) + P(never ends) = 1.
    let failed = fitted.failure_probability(0.0, 1e12, 0.8).unwrap().value;
    let never: f64 = fitted.draws.iter().map(|d| d.weight * d.never).sum();
    let arrives = fitted.arrives_ever(0.0, 0.8).unwrap().value;
    assert!((arrives + failed + never - 1.0).abs() < 1e-6);
    assert!(ever.low < ever.value && ever.value < ever.high);
}

#[test]
fn counts_equal_the_enumeration_of_all_outcomes() {
    let (ages, outcomes) = simulate(60, 8);
    let fitted = fit(&ages, &outcomes);
    let flying = [0.0, 1.0, 10.0, 10.0, 40.0, 200.0];
    let stop = &mut || ControlFlow::Continue(());
    let counts = fitted.count_distribution(&flying, 15.0, stop).unwrap();
    let mut expected = vec![0.0; flying.len() + 1];
    for draw in &fitted.draws {
        let p = flying.map(|age| {
            let (a, b) = (age / fitted.scale, (age + 15.0) / fitted.scale);
            let silent = draw.never + draw.arrives.later(a) + draw.fails.later(a);
            (draw.arrives.later(a) - draw.arrives.later(b)) / silent
        });
        for subset in 0u32..1 << flying.len() {
            let factor = |i: usize| {
                if subset >> i & 1 == 1 {
                    p[i]
                } else {
                    1.0 - p[i]
                }
            };
            let probability: f64 = (0..flying.len()).map(factor).product();
            expected[subset.count_ones() as usize] += draw.weight * probability;
        }
    }
    for (a, b) in counts.iter().zip(&expected) {
        assert!((a - b).abs() < 1e-12);
    }
    let forecast = fitted.count(&flying, 15.0, 0.8, stop).unwrap();
    let sum: f64 = flying
        .iter()
        .map(|&a| fitted.arrival_probability(a, 15.0, 0.8).unwrap().value)
        .sum();
    assert!((forecast.value - sum).abs() < 1e-9);
    assert_eq!(fitted.count(&[], 15.0, 0.8, stop).unwrap().high, 0.0);
    // Entries are dropped from the distribution of many trials.
    let many = vec![5.0; 3000];
    let forecast = fitted.count(&many, 30.0, 0.8, stop).unwrap();
    let single = fitted.arrival_probability(5.0, 30.0, 0.8).unwrap().value;
    assert!((forecast.value / (3000.0 * single) - 1.0).abs() < 1e-9);
}

#[test]
fn invalid_arguments_are_refused_and_missing_arrivals_have_a_reason() {
    let stop = &mut || ControlFlow::Continue(());
    let options = Options::default();
    let mut run = |ages: &[f64], outcomes: &[Ending], resolution| {
        DelayDistribution::fit(ages, outcomes, resolution, &options, stop)
    };
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        let refused = run(&[1.0, bad], &[Arrived; 2], Resolution::Exact);
        assert!(matches!(
            refused,
            Err(Error::InvalidSetting { name: "ages", .. })
        ));
    }
    let refused = run(&[1.5], &[Arrived], Resolution::Iterations);
    assert!(matches!(
        refused,
        Err(Error::InvalidSetting { name: "ages", .. })
    ));
    let refused = run(&[1.5], &[Arrived], Resolution::Rounded(0.0));
    assert!(matches!(
        refused,
        Err(Error::InvalidSetting {
            name: "resolution",
            ..
        })
    ));
    assert!(matches!(
        run(&[1.0], &[], Resolution::Exact),
        Err(Error::Shape(_))
    ));
    let unknown = |ages: &[f64], outcomes: &[Ending]| {
        let stop = &mut || ControlFlow::Continue(());
        DelayDistribution::fit(ages, outcomes, Resolution::Exact, &Options::default(), stop)
            .unwrap()
            .err()
    };
    assert_eq!(unknown(&[], &[]), Some(Unknown::NoRecords));
    assert_eq!(
        unknown(&[1.0, 2.0], &[Censored, Failed]),
        Some(Unknown::NoArrivals)
    );
    let fitted = fit(&[1.0], &[Arrived]);
    let refused = fitted.arrival_probability(-1.0, 1.0, 0.8);
    assert!(matches!(
        refused,
        Err(Error::InvalidSetting { name: "age", .. })
    ));
    let refused = fitted.quantile(1.0, 0.8);
    assert!(matches!(
        refused,
        Err(Error::InvalidSetting { name: "q", .. })
    ));
    let mut interrupted = || ControlFlow::Break(());
    let result = DelayDistribution::fit(
        &[1.0],
        &[Arrived],
        Resolution::Exact,
        &Options::default(),
        &mut interrupted,
    );
    assert!(matches!(result, Err(Error::Interrupted)));
}

/// All forecasts are ordered and free of NaN.
fn check_sane(ages: &[f64], outcomes: &[Ending], resolution: Resolution, options: &Options) {
    let stop = &mut || ControlFlow::Continue(());
    let Ok(fitted) = DelayDistribution::fit(ages, outcomes, resolution, options, stop).unwrap()
    else {
        return;
    };
    let typical = ages.iter().copied().fold(0.0, f64::max).max(1e-12);
    let mut forecasts = vec![
        fitted.quantile(0.5, 0.8).unwrap(),
        fitted.quantile(0.99, 0.8).unwrap(),
    ];
    for age in [0.0, 0.5 * typical, typical, 1e6 * typical] {
        let within = 0.7 * typical;
        let remaining = fitted.remaining(age, 0.8).unwrap();
        assert!(remaining.high.is_finite(), "{remaining:?}");
        forecasts.push(remaining);
        for probability in [
            fitted.arrival_probability(age, within, 0.8).unwrap(),
            fitted.failure_probability(age, within, 0.8).unwrap(),
            fitted.arrives_ever(age, 0.8).unwrap(),
        ] {
            assert!(probability.high <= 1.0 && probability.value <= 1.0 + 1e-9);
            forecasts.push(probability);
        }
        forecasts.push(fitted.count(&[age, 0.0], within, 0.8, stop).unwrap());
    }
    let mean = fitted.mean(0.8).unwrap();
    assert!(!mean.value.is_nan() && mean.low <= mean.high);
    for forecast in forecasts {
        assert!(
            forecast.value >= 0.0 && forecast.value.is_finite(),
            "{forecast:?}"
        );
        assert!(forecast.low <= forecast.high, "{forecast:?}");
    }
}

#[test]
fn degenerate_records_give_finite_forecasts() {
    let options = [
        Options::default(),
        Options {
            priors: false,
            ..Options::default()
        },
        Options {
            priors: false,
            cure: false,
            ..Options::default()
        },
    ];
    let many = vec![2.0; 1000];
    for resolution in [
        Resolution::Exact,
        Resolution::Rounded(1.0),
        Resolution::Iterations,
    ] {
        for options in &options {
            for unit in [1e-9, 1.0, 1e9] {
                let run = |ages: &[f64], outcomes: &[Ending]| {
                    let ages: Vec<f64> = ages.iter().map(|a| a * unit).collect();
                    if resolution != Resolution::Iterations || unit >= 1.0 {
                        check_sane(&ages, outcomes, resolution, options);
                    }
                };
                run(&[0.0], &[Arrived]);
                run(&[0.0, 0.0, 0.0], &[Arrived, Failed, Censored]);
                run(&[3.0], &[Arrived]);
                run(&[0.0, 0.0, 5.0, 1.0], &[Arrived, Arrived, Censored, Failed]);
                run(&many, &vec![Arrived; 1000]);
                run(
                    &[1.0, 1e6, 1e6, 1e6],
                    &[Arrived, Censored, Censored, Failed],
                );
                run(&[1.0, 2.0, 1e9], &[Arrived, Arrived, Arrived]);
                run(&[1e9, 1.0, 1.0, 0.0], &[Arrived, Censored, Failed, Arrived]);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn random_records_give_finite_forecasts(
        trials in prop::collection::vec((-20f64..20.0, 0usize..3), 1..12),
        rounded in any::<bool>(),
        cure in any::<bool>(),
    ) {
        let ages: Vec<f64> = trials.iter().map(|t| t.0.exp()).collect();
        let outcomes: Vec<Ending> =
            trials.iter().map(|t| [Arrived, Failed, Censored][t.1]).collect();
        let resolution = if rounded { Resolution::Rounded(0.1) } else { Resolution::Exact };
        let options = Options { cure, ..Options::default() };
        check_sane(&ages, &outcomes, resolution, &options);
    }
}
