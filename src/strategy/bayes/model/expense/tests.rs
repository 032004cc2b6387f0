//! Tests of the model of expenses: gradients against finite differences, the kept model against a new model, and
//! censored ages against the known durations.

use super::*;
use crate::ledger::{Action, Data, Event, Ledger, Observation, Suggested, View, What};
use crate::problem::{Clock, Point};
use crate::random::Rng;
use crate::strategy::bayes::BayesOpt;
use crate::strategy::bayes::bayes_opt::tests::on_square;
use crate::strategy::{Proposal, Strategy};
use rand::{RngExt, SeedableRng};
use serde_json::json;
use std::ops::ControlFlow;

fn go_on() -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn strategy(context_width: usize) -> BayesOpt {
    let acquisition = json!({"kind": "LogEI", "per": "time"});
    let settings = json!({"acquisition": acquisition, "initial": {"kind": "Initial", "n": 2}});
    on_square(context_width, settings)
}

fn act(log: &mut Ledger, action: Action) {
    let event = log.validate(action, 0.0, Some(0.0)).unwrap().unwrap();
    log.append(event).unwrap();
}

/// A duration that is log-linear in x_0, with a bend.
fn duration(x: &[f64]) -> f64 {
    (3.0 * x[0] + (5.0 * x[1]).sin()).exp()
}

/// Adds an observed trial with its duration at this point.
fn add(log: &mut Ledger, x: [f64; 2], context: &[f64], duration: f64) {
    let observation = Observation::new((x[0] - 0.3).powi(2) + x[1], None).with(Data {
        duration: Some(duration),
        ..Data::default()
    });
    let action = Action::Add {
        point: Point::at(&x),
        context: context.to_vec(),
        fidelity: None,
        observation,
        attrs: None,
    };
    act(log, action);
}

/// A log with n observed trials at random points.
fn log_of(n: usize, context_width: usize) -> Ledger {
    let mut log = Ledger::in_unit_cube(Clock::Iterations, 2, context_width);
    let mut rng = Rng::seed_from_u64(4);
    for _ in 0..n {
        let x = [rng.random(), rng.random()];
        let context: Vec<f64> = (0..context_width).map(|_| rng.random()).collect();
        add(&mut log, x, &context, duration(&x));
    }
    log
}

/// Proposes a point and logs it.
fn suggest(bayes: &mut BayesOpt, log: &mut Ledger, context: &[f64]) -> Vec<f64> {
    bayes.catch_up(log.view()).unwrap();
    let mut rng = Rng::seed_from_u64(log.n_trials() as u64);
    let query = Query {
        context,
        wall_time: Some(0.0),
        ..Query::default()
    };
    let proposal = bayes.propose(log.view(), query, &mut Call::new(&mut rng, &mut go_on));
    let Proposal { point, note, .. } = proposal.unwrap();
    let event = Event {
        at: Some(0.0),
        by: None,
        now: 0.0,
        what: What::Suggested(Suggested {
            point: log.problem().decode(&point, None),
            context: context.to_vec(),
            fidelity: None,
            expires_at: None,
            queued: false,
            note,
            attrs: None,
        }),
    };
    log.append(event).unwrap();
    point.x
}

/// The term of a strategy that has read the log.
fn term<'a>(bayes: &'a mut BayesOpt, log: View, query: Query) -> ExpenseTerm<'a> {
    bayes.catch_up(log).unwrap();
    let (columns, training) = (&bayes.columns, &bayes.objective.training);
    let kept = &mut bayes.expense;
    let term = ExpenseTerm::update(kept, columns, training, log, query, &mut go_on);
    term.unwrap().expect("durations are known")
}

#[test]
fn the_gradient_equals_finite_differences() {
    let (mut bayes, mut log) = (strategy(1), log_of(30, 1));
    // The first two points are initial points, because the added trials have other contexts.
    for _ in 0..3 {
        suggest(&mut bayes, &mut log, &[0.5]);
    }
    let query = Query {
        context: &[0.25],
        ..Query::default()
    };
    let mut term = term(&mut bayes, log.view(), query);
    assert!(term.residuals.is_some());
    let x = [0.4, 0.7];
    let mut gradient = [0.0; 2];
    let value = term.value_and_gradient(&x, &mut gradient);
    let mut at = |x: [f64; 2]| {
        let mut out = [0.0];
        term.values(ndarray::arr2(&[x]).view(), &mut out);
        out[0]
    };
    assert!((at(x) - value).abs() < 1e-12);
    let h = 1e-5;
    let slopes = [
        (at([x[0] + h, x[1]]) - at([x[0] - h, x[1]])) / (2.0 * h),
        (at([x[0], x[1] + h]) - at([x[0], x[1] - h])) / (2.0 * h),
    ];
    for (slope, derivative) in slopes.iter().zip(gradient) {
        assert!((slope - derivative).abs() < 1e-6, "{slopes:?} {gradient:?}");
    }
}

#[test]
fn expected_log_durations_approach_the_log_durations() {
    let (mut bayes, mut log) = (strategy(0), log_of(60, 0));
    suggest(&mut bayes, &mut log, &[]);
    let mut term = term(&mut bayes, log.view(), Query::default());
    for x in [[0.2, 0.3], [0.7, 0.5], [0.5, 0.9]] {
        term.row.copy_from_slice(&x);
        let found = term.mean();
        assert!((found - duration(&x).ln()).abs() < 0.1, "{x:?} {found}");
    }
}

#[test]
fn a_kept_model_gives_the_same_suggestions_as_a_new_model() {
    check_kept_model(12, 25);
}

#[test]
fn a_kept_model_that_does_not_use_all_rows_gives_the_same_suggestions_as_a_new_model() {
    check_kept_model(MAX_ROWS + 10, 4);
}

fn check_kept_model(rows: usize, suggestions: usize) {
    let (mut bayes, mut log) = (strategy(0), log_of(rows, 0));
    for i in 0..suggestions {
        let x = suggest(&mut bayes, &mut log, &[]);
        let mut shorter = Ledger::in_unit_cube(Clock::Iterations, 2, 0);
        let events: Vec<Event> = log.events(0).collect();
        for event in &events[..events.len() - 1] {
            shorter.append(event.clone()).unwrap();
        }
        let mut new = strategy(0);
        assert_eq!(suggest(&mut new, &mut shorter, &[]), x, "{i}");
        let number = log.n_trials() - 1;
        match i % 5 {
            0 => act(&mut log, Action::fail(number)),
            1 => {}
            _ => {
                let observation = Observation::new(x[0], None).with(Data {
                    duration: Some(duration(&x)),
                    ..Data::default()
                });
                let action = Action::Observe {
                    number,
                    observation,
                    again: crate::ledger::Again::Refuse,
                };
                act(&mut log, action);
            }
        }
    }
}

#[test]
fn a_trial_that_runs_for_long_raises_the_expected_duration() {
    let (mut bayes, mut log) = (strategy(0), log_of(20, 0));
    let x = suggest(&mut bayes, &mut log, &[]);
    let mut means = [0.0, 3.0, 6.0].map(|log_age: f64| {
        let query = Query {
            wall_time: Some(log_age.exp() * duration(&x)),
            ..Query::default()
        };
        let mut term = term(&mut bayes, log.view(), query);
        term.row.copy_from_slice(&x);
        term.mean()
    });
    assert!(means.is_sorted(), "{means:?}");
    assert!(means[2] > means[0] + 3.0, "{means:?}");
    means.reverse();
}

#[test]
fn few_or_equal_durations_give_no_term_or_a_constant_term() {
    for (durations, known) in [
        (&[][..], false),
        (&[1.0], false),
        (&[0.0, 0.0, 0.0], false),
        (&[2.0; 8], true),
        (&[0.0, 1e300, 1e-300, 5.0, 1.0, 1.0, 0.0], true),
    ] {
        let (mut bayes, mut log) = (strategy(0), Ledger::in_unit_cube(Clock::Iterations, 2, 0));
        for (i, d) in durations.iter().enumerate() {
            add(&mut log, [0.1 * i as f64, 0.9 - 0.1 * i as f64], &[], *d);
        }
        add(&mut log, [0.5, 0.5], &[], 1.0);
        let known = known || durations.iter().any(|d| *d > 0.0);
        suggest(&mut bayes, &mut log, &[]);
        bayes.catch_up(log.view()).unwrap();
        let (columns, training) = (&bayes.columns, &bayes.objective.training);
        let query = Query::default();
        let kept = &mut bayes.expense;
        let term =
            ExpenseTerm::update(kept, columns, training, log.view(), query, &mut go_on).unwrap();
        assert_eq!(term.is_some(), known, "{durations:?}");
        let mut out = [0.0];
        if let Some(mut term) = term {
            term.values(ndarray::arr2(&[[0.3, 0.3]]).view(), &mut out);
        }
        assert!(out[0].is_finite());
    }
}

#[test]
fn the_mean_above_a_bound_equals_an_integral() {
    for (mean, std, bound) in [(0.0, 1.0, -3.0), (1.0, 2.0, 1.5), (-1.0, 0.5, 2.0)] {
        let (mut mass, mut sum) = (0.0, 0.0);
        for i in 0..200_000 {
            let y = bound + 1e-4 * std * (f64::from(i) + 0.5);
            let z: f64 = (y - mean) / std;
            let density = (-0.5 * z * z).exp();
            mass += density;
            sum += density * y;
        }
        let found = mean_above(mean, std, bound);
        assert!((found - sum / mass).abs() < 1e-6, "{found} {}", sum / mass);
    }
    assert_eq!(mean_above(1.0, 0.0, 3.0), 3.0);
}
