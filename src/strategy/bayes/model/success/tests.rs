//! Tests of the model of success. The probabilities are compared with a direct solution of the linear system, and the
//! kept model is compared with a new model.

use super::*;
use crate::ledger::{Action, Event, Observation};
use crate::maximize::feasible::Feasible;
use crate::problem::{Clock, Point};
use crate::random::Rng;
use crate::strategy::bayes::BayesOpt;
use crate::strategy::bayes::bayes_opt::tests::on_square;
use crate::strategy::bayes::choose::addition::Addition;
use crate::strategy::{Query, Strategy};
use ndarray::{Array2, array};
use rand::SeedableRng;
use serde_json::{Value, json};
use std::ops::ControlFlow;

const QUERY: Query<'static> = Query {
    now: 0.0,
    wall_time: None,
    context: &[],
    fidelity: None,
    feasible: Feasible::EVERYWHERE,
    limit: None,
};

fn go_on() -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Settings in which θ of the surrogate is given. If θ is given, the lengthscales of the model of success are not
/// fitted either. Every lengthscale is then the shortest lengthscale that is allowed.
fn given() -> Value {
    let gp = json!({"kind": "GP", "kernel": "matern52", "lengthscale": 0.3, "signal_std": 1.0, "noise_std": 0.1});
    json!({"surrogate": gp, "initial": {"kind": "Initial", "n": 0}})
}

fn act(log: &mut Ledger, action: Action) {
    let event = log.validate(action, 0.0, None).unwrap().unwrap();
    log.append(event).unwrap();
}

/// Adds a trial at this point. If `succeeded`, the trial is observed; otherwise, the trial fails.
fn add(log: &mut Ledger, x: [f64; 2], succeeded: bool) {
    let value = succeeded.then_some(x[0]);
    let number = log.trials().len();
    act(log, Action::add(Point::at(&x), vec![], value, None));
    if !succeeded {
        act(log, Action::fail(number));
    }
}

fn log_of(trials: &[([f64; 2], bool)]) -> Ledger {
    let mut log = Ledger::in_unit_cube(Clock::Iterations, 2, 0);
    for (x, succeeded) in trials {
        add(&mut log, *x, *succeeded);
    }
    log
}

/// Returns P at these points, after the strategy has read the log.
fn probabilities(bayes: &mut BayesOpt, log: &Ledger, points: &Array2<f64>) -> Vec<f64> {
    bayes.catch_up(log).unwrap();
    let (kept, columns) = (&mut bayes.success, &bayes.columns);
    let success = Success::update(kept, &bayes.training, columns, log, &mut go_on);
    let success = success.unwrap().expect("some trial has failed");
    let mut out = vec![0.0; points.nrows()];
    let mut success = Addition::log_probability(success);
    success.scorer(&[]).values(points.view(), &mut out);
    let list = success.of_candidates(points, QUERY, &mut go_on).unwrap();
    // The tolerance is relative, because rounding errors are proportional to the large penalty.
    let is_near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-9 * b.abs().max(1.0);
    assert!(list.iter().zip(&out).all(is_near));
    out.into_iter().map(f64::exp).collect()
}

/// The lengthscale of the model of success, which is the smallest allowed value. In d = 2, the mode of the prior is
/// smaller than this value: exp(√2 + ½ log d − 3) = 0.29.
fn lengthscale() -> f64 {
    MIN_LENGTHSCALE
}

/// The failures are scattered: for two of the three failures, the nearest neighbour is a success.
#[test]
fn probabilities_equal_a_dense_solve() {
    let trials = [
        ([0.2, 0.3], true),
        ([0.25, 0.35], false),
        ([0.5, 0.8], true),
        ([0.55, 0.75], false),
        ([0.9, 0.1], false),
    ];
    let points = array![[0.42, 0.33], [0.2, 0.3], [0.9, 0.95], [0.7, 0.2]];
    let found = probabilities(&mut on_square(0, given()), &log_of(&trials), &points);
    let kernel = |a: &[f64], b: &[f64]| {
        let squares = a
            .iter()
            .zip(b)
            .map(|(a, b)| ((a - b) / lengthscale()).powi(2));
        let r = (5.0 * squares.sum::<f64>()).sqrt();
        (1.0 + r + r * r / 3.0) * (-r).exp()
    };
    for (x, found) in points.rows().into_iter().zip(found) {
        let x = x.to_vec();
        // The Gauss-Seidel method solves (K + I/3) w = k for the weights w of the labels. The noise variance is 1/3,
        // because there are three failures.
        let k: Vec<f64> = trials.iter().map(|(row, _)| kernel(row, &x)).collect();
        let mut w = vec![0.0; 5];
        for _ in 0..500 {
            for i in 0..5 {
                let others = (0..5).filter(|&j| j != i);
                let rest: f64 = others
                    .map(|j| kernel(&trials[i].0, &trials[j].0) * w[j])
                    .sum();
                w[i] = (k[i] - rest) / (1.0 + 1.0 / 3.0);
            }
        }
        let labels = trials.iter().map(|(_, ok)| if *ok { 0.0 } else { -2.0 });
        let mean = 1.0 + labels.zip(&w).map(|(y, w)| y * w).sum::<f64>();
        let variance = 1.0 - k.iter().zip(&w).map(|(k, w)| k * w).sum::<f64>();
        let u = mean / (variance + 0.01).sqrt();
        let expected = 0.5 * libm::erfc(-u / 2f64.sqrt());
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    }
}

#[test]
fn several_failures_exclude_a_region_and_nearby_successes_reopen_it() {
    let (at, half) = ([0.5, 0.5], [0.5 + 0.5 * lengthscale(), 0.5]);
    let points = array![at, half];
    let of = |trials: &[([f64; 2], bool)]| {
        probabilities(&mut on_square(0, given()), &log_of(trials), &points)
    };
    let one = of(&[(at, false)]);
    assert!((one[0] - 0.5).abs() < 1e-12 && one[1] > 0.5, "{one:?}");
    let several = of(&[(at, false); 4]);
    assert!(several[0] < 1e-3 && several[1] < 0.2, "{several:?}");
    let mut trials = vec![(at, false); 4];
    trials.extend([(half, true); 4]);
    let opened = of(&trials);
    assert!(opened[1] > 0.5, "{opened:?}");
}

/// Performs one step of a history that consists of fits, reports and suggestions.
fn step(bayes: &mut BayesOpt, log: &mut Ledger, number: usize) {
    let mut rng = Rng::seed_from_u64(number as u64);
    bayes.catch_up(log).unwrap();
    let proposal = bayes
        .propose(log, QUERY, &mut Call::new(&mut rng, &mut go_on))
        .unwrap();
    let x = proposal.point.x.clone();
    let event = Event::Suggested {
        point: log.problem().decode(&x, None),
        context: vec![],
        fidelity: None,
        now: 0.0,
        expires_at: None,
        queued: false,
        note: proposal.note,
        attrs: None,
        at: None,
    };
    log.append(event).unwrap();
    match number % 7 {
        // One failed trial is abandoned, another failed trial gets a value, and a third failed trial is reported to
        // have been run at another point.
        3 => act(log, Action::Abandon { number: number - 1 }),
        5 => {
            let again = crate::ledger::Again::Amend;
            let observation = Observation {
                point: Some(Point::at(&[0.5, 0.25])),
                ..Observation::new(0.5, None)
            };
            let number = number - 1;
            act(
                log,
                Action::Observe {
                    number,
                    observation,
                    again,
                },
            );
        }
        _ => {}
    }
    match x[0] > 0.6 || number % 7 == 2 || number % 7 == 4 {
        true => act(log, Action::fail(number)),
        false => act(
            log,
            Action::observe(number, (5.0 * x[0]).sin() + x[1], None, false),
        ),
    }
}

#[test]
fn the_kept_model_equals_a_new_model_bit_for_bit() {
    let settings = json!({"initial": {"kind": "Initial", "n": 2}});
    let (mut kept, mut log) = (
        on_square(0, settings.clone()),
        Ledger::in_unit_cube(Clock::Iterations, 2, 0),
    );
    let points = array![[0.42, 0.33], [0.2, 0.3], [0.9, 0.95], [0.7, 0.2]];
    let mut fits = 0;
    for number in 0..24 {
        step(&mut kept, &mut log, number);
        let note = log.trials()[number].note();
        if let Some(note) = note.filter(|note| note.contains("success")) {
            fits += 1;
            assert_eq!(kept.check_note(&log, note), Ok(()));
        }
        kept.catch_up(&log).unwrap();
        if number < 2 || kept.training.n_failed(&log) == 0 {
            continue;
        }
        let mut fresh = on_square(0, settings.clone());
        assert_eq!(
            probabilities(&mut kept, &log, &points),
            probabilities(&mut fresh, &log, &points),
        );
        // A proposal that is not logged does not change the state.
        let (mut one, mut other) = (Rng::seed_from_u64(99), Rng::seed_from_u64(99));
        let first = kept
            .propose(&log, QUERY, &mut Call::new(&mut one, &mut go_on))
            .unwrap();
        kept.rewind(&log);
        let again = fresh
            .propose(&log, QUERY, &mut Call::new(&mut other, &mut go_on))
            .unwrap();
        assert_eq!(first.point.x, again.point.x);
        assert_eq!(first.note, again.note);
    }
    assert!(fits > 3, "{fits}");
}

#[test]
fn the_recommended_point_lies_where_trials_succeed() {
    // Values increase towards x = 0.6. Every trial beyond x = 0.6 fails.
    let mut log = Ledger::in_unit_cube(Clock::Iterations, 2, 0);
    for i in 0..30 {
        let x = [(0.618 * i as f64).fract(), (0.755 * i as f64).fract()];
        add(&mut log, x, x[0] < 0.6);
    }
    let recommended = |settings: Value| {
        let mut bayes = on_square(0, settings);
        bayes.catch_up(&log).unwrap();
        let mut rng = Rng::seed_from_u64(3);
        let found = bayes.recommend(&log, QUERY, 1, &mut Call::new(&mut rng, &mut go_on));
        found.unwrap()[0].point.x[0]
    };
    let found = recommended(given());
    assert!(found > 0.4 && found < 0.65, "{found}");
}
