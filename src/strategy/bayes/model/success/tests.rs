//! Tests of the model of success. The probabilities are compared with a direct solution of the linear system, and the
//! kept model is compared with a new model.

use super::*;
use crate::ledger::{Action, Again, Event, Ledger, Observation, Suggested, View, What};
use crate::maximize::feasible::Feasible;
use crate::problem::{Clock, Point};
use crate::random::Rng;
use crate::strategy::bayes::BayesOpt;
use crate::strategy::bayes::bayes_opt::tests::on_square;
use crate::strategy::bayes::terms::Term;
use crate::strategy::bayes::terms::success::SuccessTerm;
use crate::strategy::{Query, Strategy};
use ndarray::{Array2, array};
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use std::ops::ControlFlow;

const QUERY: Query<'static> = Query {
    now: 0.0,
    wall_time: None,
    context: &[],
    fidelity: None,
    feasible: Feasible::EVERYWHERE,
    within: None,
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
    let number = log.n_trials();
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
fn probabilities(bayes: &mut BayesOpt, log: View, points: &Array2<f64>) -> Vec<f64> {
    bayes.catch_up(log).unwrap();
    let (kept, columns) = (&mut bayes.success, &bayes.columns);
    let success = Success::update(kept, &bayes.objective.training, columns, log, &mut go_on);
    let success = success.unwrap().expect("some trial has failed");
    let mut out = vec![0.0; points.nrows()];
    let mut success = SuccessTerm::log_probability(success);
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

/// Matern 3/2 with the shortest lengthscale.
fn kernel(a: &[f64], b: &[f64]) -> f64 {
    let squares = a
        .iter()
        .zip(b)
        .map(|(a, b)| ((a - b) / lengthscale()).powi(2));
    let r = (3.0 * squares.sum::<f64>()).sqrt();
    (1.0 + r) * (-r).exp()
}

/// P at x given trials, without accidents.
fn dense(trials: &[([f64; 2], bool)], x: &[f64]) -> f64 {
    let (mean, variance) = moments(trials, x, [0.0, -5.25], 1e-4);
    normal_cdf((1.0 + mean) / (variance + 0.01).sqrt())
}

fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x / 2f64.sqrt())
}

/// The mean and the variance at x given trials, and the targets of a success and of a failure. The linear system is
/// solved by Gaussian elimination.
fn moments(trials: &[([f64; 2], bool)], x: &[f64], targets: [f64; 2], noise: f64) -> (f64, f64) {
    let n = trials.len();
    let k: Vec<f64> = trials.iter().map(|(row, _)| kernel(row, x)).collect();
    let mut system: Vec<Vec<f64>> = (0..n)
        .map(|i| {
            let entry = |j: usize| kernel(&trials[i].0, &trials[j].0) + noise * f64::from(i == j);
            (0..n).map(entry).chain([k[i]]).collect()
        })
        .collect();
    for i in 0..n {
        let pivot = system[i].clone();
        for (_, row) in system.iter_mut().enumerate().filter(|(j, _)| *j != i) {
            let factor = row[i] / pivot[i];
            row.iter_mut()
                .zip(&pivot)
                .for_each(|(a, b)| *a -= factor * b);
        }
    }
    let w: Vec<f64> = (0..n).map(|i| system[i][n] / system[i][i]).collect();
    let labels = trials.iter().map(|(_, ok)| targets[usize::from(!ok)]);
    let mean = labels.zip(&w).map(|(y, w)| y * w).sum::<f64>();
    (
        mean,
        1.0 - k.iter().zip(&w).map(|(k, w)| k * w).sum::<f64>(),
    )
}

/// The evidence of a region with accidents, and the rates of success where less and where more successes than before
/// were predicted. The labels of each trial are standardised by the earlier trials.
fn dense_with_accidents(trials: &[([f64; 2], bool)]) -> (f64, [f64; 2]) {
    let rate = |trials: &mut dyn Iterator<Item = bool>, prior: f64| {
        let (n, ok) = trials.fold((0.0, 0.0), |(n, ok), it| (n + 1.0, ok + f64::from(it)));
        (ok + prior) / (n + 1.0)
    };
    let (mut evidence, mut seen) = (1.0, Vec::new());
    for (i, (x, ok)) in trials.iter().enumerate() {
        let earlier = &trials[..i];
        let q = rate(&mut earlier.iter().map(|trial| trial.1), 0.5);
        let (mean, std) = (2.0 * q - 1.0, (4.0 * q * (1.0 - q)).sqrt());
        let targets = [1.0, -1.0].map(|label| (label - mean) / std);
        let (mu, _) = moments(earlier, x, targets, 0.3);
        let has = |wanted: bool| earlier.iter().any(|(_, ok)| *ok == wanted);
        let p = match has(true) && has(false) {
            true => normal_cdf(normal_quantile(q) + mu).clamp(0.03, 0.97),
            false => q,
        };
        evidence *= if *ok { p } else { 1.0 - p };
        seen.push((mu >= 0.0, *ok));
    }
    let q = rate(&mut trials.iter().map(|trial| trial.1), 0.5);
    let of = |high: bool| {
        let found = seen.iter().filter(|(is_high, _)| *is_high == high);
        rate(&mut found.map(|(_, ok)| *ok), q)
    };
    (evidence, [of(false), of(true)])
}

/// The evidence of one rate: the integral of the likelihood over the prior Beta(½, ½), by a midpoint rule in the angle
/// for which the prior is uniform.
fn of_one_rate(failed: &[bool]) -> f64 {
    let n = 2000;
    let at = |i: usize| {
        let angle = (i as f64 + 0.5) / n as f64 * std::f64::consts::FRAC_PI_2;
        let rate = angle.sin().powi(2);
        let likelihood = failed.iter().map(|f| if *f { rate } else { 1.0 - rate });
        likelihood.product::<f64>()
    };
    (0..n).map(at).sum::<f64>() / n as f64
}

#[test]
fn the_evidence_of_changing_rates_equals_the_sum_over_all_moments_of_changes() {
    for failed in [
        vec![true],
        vec![true, true, false, true, false, false],
        vec![true, true, true, true, false, false, false, false, false],
    ] {
        let n = failed.len();
        let mut expected = 0.0;
        for changes in 0..1_usize << (n - 1) {
            let (mut weight, mut first) = (1.0, 0);
            for i in 1..n {
                if changes >> (i - 1) & 1 == 1 {
                    weight *= CHANGE * of_one_rate(&failed[first..i]);
                    first = i;
                } else {
                    weight *= 1.0 - CHANGE;
                }
            }
            expected += weight * of_one_rate(&failed[first..]);
        }
        let found = Rates::of(&failed, CHANGE).log_evidence;
        assert!((found - expected.ln()).abs() < 1e-6, "{found} {expected}");
        let constant = Rates::of(&failed, 0.0).log_evidence;
        assert!((constant - of_one_rate(&failed).ln()).abs() < 1e-6);
        let next = [failed.as_slice(), &[true]].concat();
        let next = Rates::of(&next, CHANGE).log_evidence - found;
        assert!((Rates::of(&failed, CHANGE).next.ln() - next).abs() < 1e-6);
    }
}

#[test]
fn probabilities_equal_dense_solves() {
    let trials = [
        ([0.2, 0.3], true),
        ([0.25, 0.35], false),
        ([0.5, 0.8], true),
        ([0.55, 0.75], false),
        ([0.9, 0.1], false),
        ([0.4, 0.1], true),
        ([0.1, 0.9], true),
    ];
    let points = array![[0.42, 0.33], [0.2, 0.3], [0.9, 0.95], [0.7, 0.2]];
    let found = probabilities(&mut on_square(0, given()), log_of(&trials).view(), &points);
    // Each trial is predicted from the earlier trials, and from the earlier trials with a similar prediction.
    let mut region = 1.0;
    let mut seen: Vec<(usize, bool)> = Vec::new();
    for (i, (x, ok)) in trials.iter().enumerate() {
        let p = dense(&trials[..i], x).clamp(0.1, 0.9);
        let level = [0.1, 0.5].iter().filter(|bound| **bound < p).count();
        let similar = seen.iter().filter(|(other, _)| *other == level);
        let agreeing = similar.clone().filter(|(_, other)| other == ok).count() as f64;
        let share = if *ok { p } else { 1.0 - p };
        region *= (share + agreeing) / (1.0 + similar.count() as f64);
        seen.push((level, *ok));
    }
    // The rates of success where failure and where success were predicted, with priors of 0.1 and 0.9.
    let rate = |is_high: bool, prior: f64| {
        let found = seen.iter().filter(|(level, _)| (*level == 2) == is_high);
        let good = found.clone().filter(|(_, ok)| *ok).count() as f64;
        (good + prior) / (found.count() as f64 + 1.0)
    };
    let (low, high) = (rate(false, 0.1), rate(true, 0.9));
    let failed: Vec<bool> = trials.iter().map(|(_, ok)| !ok).collect();
    let others = [0.0, CHANGE].map(|change| Rates::of(&failed, change));
    let elsewhere = others
        .iter()
        .map(|rate| rate.log_evidence.exp() * (1.0 - rate.next));
    // The probability of success is proportional to elsewhere + Σ region (low + (high − low) P) / 2.
    let (elsewhere, accidents) = (elsewhere.sum::<f64>(), dense_with_accidents(&trials));
    let total = |p: f64| {
        let of = |(region, [low, high]): (f64, [f64; 2])| {
            region * (high - (high - low).max(0.0) * (1.0 - p))
        };
        0.5 * (of((region, [low, high])) + of(accidents))
    };
    for (x, found) in points.rows().into_iter().zip(found) {
        let p = dense(&trials, &x.to_vec());
        let at = |p: f64| elsewhere + total(p);
        let expected = at(p) / at(1.0);
        assert!((found - expected).abs() < 1e-8, "{found} {expected}");
    }
}

/// Points that fill the unit square evenly.
fn spread(n: usize) -> impl Iterator<Item = [f64; 2]> {
    (0..n).map(|i| [(0.618 * i as f64).fract(), (0.755 * i as f64).fract()])
}

/// Returns the result of a function of the model of success after these trials.
fn of_success<T>(trials: &[([f64; 2], bool)], result: impl FnOnce(&mut Success) -> T) -> T {
    let (mut bayes, log) = (on_square(0, given()), log_of(trials));
    bayes.catch_up(log.view()).unwrap();
    let (kept, columns) = (&mut bayes.success, &bayes.columns);
    let success = Success::update(
        kept,
        &bayes.objective.training,
        columns,
        log.view(),
        &mut go_on,
    );
    result(success.unwrap().expect("some trial has failed"))
}

/// Whether points are excluded after these trials, and the probability that failures form a region.
fn explained(trials: &[([f64; 2], bool)]) -> (bool, f64) {
    let region = |success: &Success| {
        let Evidence {
            constant,
            changing,
            region,
        } = success.evidence;
        1.0 / (1.0 + (constant - region).exp() + (changing - region).exp())
    };
    of_success(trials, |success| (success.excludes, region(success)))
}

#[test]
fn a_region_where_some_trials_succeed_is_not_excluded() {
    let excluded = |rates: [f64; 2]| {
        let is_excluded = |seed: u64| {
            let mut rng = Rng::seed_from_u64(seed);
            let mut trial = |x: [f64; 2]| (x, !rng.random_bool(rates[usize::from(x[0] > 0.4)]));
            let trials: Vec<_> = spread(100).map(&mut trial).collect();
            explained(&trials).0
        };
        (0..20).filter(|seed| is_excluded(*seed)).count()
    };
    let found = [[0.99, 0.05], [0.99, 0.3], [0.6, 0.05], [0.5, 0.0]].map(excluded);
    assert!(
        found[0] == 20 && found[1] >= 18 && found[2] <= 2 && found[3] <= 5,
        "{found:?}"
    );
}

#[test]
fn failures_at_the_same_rate_everywhere_are_not_avoided() {
    // By chance, a region explains some of the sequences better than a constant rate.
    let (mut n_excluded, mut n_avoiding, mut shares) = (0, 0, 0.0);
    for (seed, rate) in (0..20).flat_map(|seed| [0.5, 0.7, 0.9].map(|rate| (seed, rate))) {
        let mut rng = Rng::seed_from_u64(seed);
        let trials: Vec<_> = spread(120).map(|x| (x, !rng.random_bool(rate))).collect();
        let (excludes, avoids, share) =
            of_success(&trials, |it| (it.excludes, it.avoids, it.share));
        n_excluded += usize::from(excludes);
        n_avoiding += usize::from(avoids);
        shares += share / 60.0;
    }
    let few = n_excluded <= 2 && n_avoiding <= 6 && shares < 0.05;
    assert!(few, "{n_excluded} {n_avoiding} {shares}");
    // Most of the box fails.
    let trials: Vec<_> = spread(200).map(|x| (x, x[0] < 0.1)).collect();
    assert_eq!(
        of_success(&trials, |success| (success.avoids, success.excludes)),
        (true, true)
    );
}

#[test]
fn a_region_is_excluded_beside_accidents_which_leave_no_holes() {
    let mut n_allowed = [0; 2];
    for seed in 0..4 {
        let mut rng = Rng::seed_from_u64(seed);
        let trials: Vec<_> = spread(80)
            .map(|x| (x, x[0] < 0.5 && !rng.random_bool(0.3)))
            .collect();
        let found = of_success(&trials, |success| (success.excludes, success.has_accidents));
        assert_eq!(found, (true, true), "{seed}");
        // Most points outside the region may be suggested, and fewer of them in the model without accidents.
        let x = |i: usize| [0.04 * (i / 10) as f64, 0.1 * (i % 10) as f64];
        let points = Array2::from_shape_fn((100, 2), |(i, j)| x(i)[j]);
        let found = probabilities(&mut on_square(0, given()), log_of(&trials).view(), &points);
        n_allowed[0] += found.iter().filter(|p| **p >= 0.5).count();
        n_allowed[1] += (0..100).filter(|i| dense(&trials, &x(*i)) >= 0.5).count();
    }
    assert!(n_allowed[0] >= 300 && n_allowed[1] <= 200, "{n_allowed:?}");
}

#[test]
fn an_outage_does_not_exclude_points() {
    for (first, length) in [(0, 5), (0, 12), (0, 20), (25, 20)] {
        let trials: Vec<_> = spread(first + length + 20)
            .enumerate()
            .map(|(i, x)| (x, !(first..first + length).contains(&i)))
            .collect();
        for n in first + 1..=trials.len() {
            assert!(!explained(&trials[..n]).0, "{first} {length} {n}");
        }
        assert!(explained(&trials).1 < 0.02);
    }
}

#[test]
fn failures_before_the_first_success_do_not_exclude_points() {
    for near in [false, true] {
        let at = |x: [f64; 2]| match near {
            true => [0.1 * x[0], 0.1 * x[1]],
            false => x,
        };
        let trials: Vec<_> = spread(30).map(|x| (at(x), false)).collect();
        for n in 1..=30 {
            assert!(!explained(&trials[..n]).0, "{n}");
        }
    }
}

#[test]
fn accidents_do_not_exclude_points() {
    for (seed, rate) in [(0, 0.05), (1, 0.1), (2, 0.2), (3, 0.2)] {
        let mut rng = Rng::seed_from_u64(seed);
        let trials: Vec<_> = spread(80).map(|x| (x, !rng.random_bool(rate))).collect();
        let (excludes, region) = explained(&trials);
        assert!(!excludes && region < 0.3, "{seed} {rate} {region}");
    }
}

#[test]
fn a_region_is_excluded_also_if_it_is_entered_late() {
    let is_good = |x: &[f64; 2]| x[0] < 0.6;
    let trials: Vec<_> = spread(40).map(|x| (x, is_good(&x))).collect();
    let (excludes, region) = explained(&trials);
    assert!(excludes && region > 0.99, "{region}");
    let good = spread(75).filter(is_good).take(30).map(|x| (x, true));
    let mixed = spread(60).skip(10).map(|x| (x, is_good(&x))).take(20);
    let late: Vec<_> = good.chain(mixed).collect();
    let (excludes, region) = explained(&late);
    assert!(excludes && region > 0.9, "{region}");
}

#[test]
fn a_series_of_failures_is_avoided_until_trials_succeed() {
    let mut trials: Vec<_> = spread(20).map(|x| (x, true)).collect();
    let at = [0.5, 0.5];
    trials.extend([(at, false); 4]);
    let points = array![[0.5, 0.5], [0.05, 0.05]];
    let of = |trials: &[([f64; 2], bool)]| {
        probabilities(&mut on_square(0, given()), log_of(trials).view(), &points)
    };
    let during = of(&trials);
    assert!(during[0] < 1e-3 && during[1] > 0.5, "{during:?}");
    trials.extend([(at, true); 4]);
    let after = of(&trials);
    assert!(after[0] > 0.3, "{after:?}");
}

/// The number of trials, of the next 100, that stay near successes if no point is excluded.
fn n_near_successes(trials: &[([f64; 2], bool)]) -> usize {
    let failed: Vec<bool> = trials.iter().map(|(_, succeeded)| !succeeded).collect();
    let next = trials.len()..trials.len() + 100;
    of_success(trials, |success| {
        let mut avoids = |number| {
            success.explain(&failed, number).unwrap();
            assert!(!success.excludes);
            success.avoids
        };
        next.filter(|number| avoids(*number)).count()
    })
}

#[test]
fn about_half_of_the_suggestions_stay_near_successes_in_an_outage() {
    // The successes and the failures lie everywhere.
    let trials: Vec<_> = (0..40).zip(spread(40)).map(|(i, x)| (x, i < 20)).collect();
    let n = n_near_successes(&trials);
    assert!((45..=55).contains(&n), "{n} of 100");
}

#[test]
fn suggestions_stay_near_the_first_successes_if_a_region_is_possible() {
    let one: Vec<_> = (0..12).zip(spread(12)).map(|(i, x)| (x, i == 6)).collect();
    let (_, region) = explained(&one);
    let (n, share) = (n_near_successes(&one), of_success(&one, |it| it.share));
    assert!(
        share < 0.1 && (0.2..0.5).contains(&region),
        "{share} {region}"
    );
    assert!(
        (n as f64 - 100.0 * region).abs() <= 2.0,
        "{n} of 100, {region}"
    );
    let scattered: Vec<_> = (0..40)
        .zip(spread(40))
        .map(|(i, x)| (x, i % 7 == 3))
        .collect();
    assert!(n_near_successes(&scattered) < 10);
}

/// Performs one step of a history that consists of fits, reports and suggestions.
fn step(bayes: &mut BayesOpt, log: &mut Ledger, number: usize) {
    let mut rng = Rng::seed_from_u64(number as u64);
    bayes.catch_up(log.view()).unwrap();
    let proposal = bayes
        .propose(log.view(), QUERY, &mut Call::new(&mut rng, &mut go_on))
        .unwrap();
    let x = proposal.point.x.clone();
    let event = Event {
        at: None,
        by: None,
        now: 0.0,
        what: What::Suggested(Suggested {
            point: log.problem().decode(&proposal.point, None),
            context: vec![],
            fidelity: None,
            expires_at: None,
            queued: false,
            note: proposal.note,
            attrs: None,
        }),
    };
    log.append(event).unwrap();
    match number % 7 {
        // One failed trial is abandoned, another failed trial gets a value, and a third failed trial is reported to
        // have been run at another point.
        3 => act(log, Action::abandon(number - 1)),
        5 => {
            let action = Action::Observe {
                number: number - 1,
                observation: Observation::new(0.5, None).run_at(Point::at(&[0.5, 0.25])),
                again: Again::Amend,
            };
            act(log, action);
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
        let note = log.note(number);
        if let Some(note) = note.filter(|note| note.contains("success")) {
            fits += 1;
            assert_eq!(kept.check_note(log.view(), &note), Ok(()));
        }
        kept.catch_up(log.view()).unwrap();
        if number < 2 || kept.objective.training.n_failed(log.view()) == 0 {
            continue;
        }
        let mut fresh = on_square(0, settings.clone());
        assert_eq!(
            probabilities(&mut kept, log.view(), &points),
            probabilities(&mut fresh, log.view(), &points),
        );
        // A proposal that is not logged does not change the state.
        let (mut one, mut other) = (Rng::seed_from_u64(99), Rng::seed_from_u64(99));
        let first = kept
            .propose(log.view(), QUERY, &mut Call::new(&mut one, &mut go_on))
            .unwrap();
        kept.rewind(log.view());
        let again = fresh
            .propose(log.view(), QUERY, &mut Call::new(&mut other, &mut go_on))
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
        bayes.catch_up(log.view()).unwrap();
        let mut rng = Rng::seed_from_u64(3);
        let found = bayes.recommend(log.view(), QUERY, 1, &mut Call::new(&mut rng, &mut go_on));
        found.unwrap()[0].point.x[0]
    };
    let found = recommended(given());
    assert!(found > 0.4 && found < 0.65, "{found}");
}
