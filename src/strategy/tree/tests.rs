//! Tests that compare the tree, on random histories, with a plain tree that recomputes every node from the trials.

use std::ops::ControlFlow;
use std::sync::Arc;

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::error::Error;
use crate::ledger::{Action, Again, Data, Event, Observation, Suggested, What};
use crate::maximize::feasible::Feasible;
use crate::optimizer::{Definition, Optimizer, Request};
use crate::problem::{
    Choices, Declaration, Domain, Integer, Member, Parameter, Problem, Real, Role, Space,
};
use crate::random::Rng;
use crate::strategy::tree::note::{self, Step};

mod plain;

use plain::{Constants, Path, Plain};

/// The conditions of a parameter: each parent's name, and the parent's levels for which the parameter is active.
type When<'a> = &'a [(&'a str, &'a [u64])];

fn space(parameters: Vec<(Parameter, When)>) -> Space {
    let when = |own: When| {
        let named = own.iter();
        named
            .map(|(parent, levels)| (parent.to_string(), levels.to_vec()))
            .collect()
    };
    let named = parameters.into_iter().enumerate();
    let declared = named.map(|(i, (parameter, own))| Declaration {
        name: format!("x{i}"),
        parameter,
        when: when(own),
    });
    Space::new(Role::Params, declared.collect()).unwrap()
}

/// The unit cube.
fn cube(width: usize) -> Space {
    let real = || Parameter::Real(Real::new(0.0, 1.0, false, None).unwrap());
    space((0..width).map(|_| (real(), &[][..])).collect())
}

fn spaces() -> Vec<Space> {
    let integer = |low, high, log| Parameter::Integer(Integer::new(low, high, log, None).unwrap());
    let log = || Parameter::Real(Real::new(1e-3, 1e2, true, None).unwrap());
    let choice = || {
        let labels = ["'a'", "'b'", "'c'"].map(String::from).to_vec();
        Parameter::Categorical(Choices::unordered(labels))
    };
    vec![
        cube(2),
        space(vec![
            (integer(0.0, 2.0, false), &[]),
            (integer(1.0, 9.0, true), &[]),
        ]),
        space(vec![(choice(), &[]), (log(), &[])]),
        space(vec![
            (choice(), &[]),
            (integer(1.0, 4.0, false), &[("x0", &[1, 2])]),
            (log(), &[("x1", &[0, 3])]),
        ]),
        space(vec![(integer(5.0, 6.0, false), &[])]),
    ]
}

fn optimizer(space: &Space, strategy: Value, seed: u64) -> Optimizer {
    let problem = Arc::new(Problem::new(space.clone()));
    let definition = Definition {
        problem,
        seed,
        strategy,
        stopping: None,
    };
    Optimizer::new(definition).unwrap()
}

fn suggest(optimizer: &mut Optimizer) -> usize {
    let mut go_on = || ControlFlow::Continue(());
    let suggested = optimizer.suggest(1, Request::default(), &mut go_on);
    suggested.unwrap().0[0]
}

/// Compares every suggestion of a history with the plain tree.
fn check_history(seed: u64, exact: bool, given: bool, n_steps: usize) -> Result<(), String> {
    let mut rng = Rng::seed_from_u64(seed);
    let spaces = spaces();
    let space = &spaces[rng.random_range(0..spaces.len())];
    let domain = space.domain().as_ref();
    let kind = ["DUCB1", "DUCB1Sigma", "DUCBV"][rng.random_range(0..3)];
    let name = match kind {
        "DUCB1" => "range",
        "DUCB1Sigma" => "noise_std",
        _ => "b",
    };
    let refresh = if exact { "exact" } else { "frozen" };
    let mut strategy =
        json!({"kind": "TreeSearch", "bound": {"kind": kind, name: 0.3}, "refresh": refresh});
    if given {
        strategy["nu"] = json!(0.7);
        strategy["rho"] = json!(0.6);
    } else if kind != "DUCB1Sigma" {
        strategy["bound"] = json!({"kind": kind});
    }
    let Domain::Box(product) = domain else {
        unreachable!()
    };
    let mut opt = optimizer(space, strategy, seed);
    let mut plain = Plain::new(domain);
    let now = None;
    for _ in 0..n_steps {
        let n = opt.ledger().n_trials();
        let any = if n == 0 { 0 } else { rng.random_range(0..n) };
        let value = f64::from(rng.random_range(0..7)) / 4.0 + rng.random::<f64>() * 1e-3;
        let x = domain.sample_uniform(&mut rng).0;
        match rng.random_range(0..14) {
            0..6 => {
                let t = n as u64;
                let t = if exact {
                    t.max(1)
                } else {
                    t.max(1).next_power_of_two()
                };
                let log_t = (t as f64).ln();
                let constants = match given {
                    true => Constants {
                        kind,
                        spread: 0.3,
                        nu: 0.7,
                        rho: 0.6,
                        log_t,
                    },
                    false => Constants {
                        kind,
                        spread: match kind {
                            "DUCB1" => plain.scale,
                            "DUCB1Sigma" => 0.3,
                            _ => 0.3 * plain.scale,
                        },
                        nu: 0.1 * plain.scale,
                        rho: 0.25_f64.powf(1.0 / product.len() as f64),
                        log_t,
                    },
                };
                // With default settings, the front is used every second turn.
                let is_front_turn = !given && n % 2 == 1;
                let number = suggest(&mut opt);
                let steps = note::from_text(&opt.ledger().note(number).unwrap()).unwrap();
                let [Step::Turn(place)] = steps[..] else {
                    return Err(format!("{steps:?}"));
                };
                let path = match plain.created.is_empty() {
                    true => Path::new(),
                    false => plain.path_of(place),
                };
                if !(is_front_turn && plain.is_of_front(&path, &opt)) {
                    // The random depth may be smaller than the depth of every candidate of the front.
                    if is_front_turn && plain.open_mean(&Path::new(), &opt).is_some() {
                        return Err(format!("{path:?} is not a choice of the front"));
                    }
                    plain.is_best_leaf(&path, &opt, &constants)?;
                }
                // The suggested point must lie in the cell that the note names.
                let mut region = plain.space.whole();
                for side in &path {
                    let coordinate = plain.space.longest_side(&region).unwrap();
                    let found = plain
                        .space
                        .side_of(&region, coordinate, opt.ledger().x(number));
                    if found != *side {
                        return Err(format!("a point outside {path:?}"));
                    }
                    plain.space.halve(&mut region, coordinate, *side);
                }
                plain.visit(path.clone());
                plain.place(number, path);
            }
            6..10 if n > 0 => {
                let place = (rng.random_range(0..8) == 0).then_some(x);
                let action = Action::Observe {
                    number: any,
                    observation: Observation::new(value, None).with(Data {
                        point: place
                            .clone()
                            .map(|x| opt.definition().problem.decode(&Member::new(x, None), None)),
                        ..Data::default()
                    }),
                    again: Again::Amend,
                };
                opt.record(action, now).unwrap();
                if let Some(x) = place {
                    let path = plain.settle(&x);
                    plain.place(any, path);
                }
            }
            10 if n > 0 => drop(opt.record(Action::fail(any), now)),
            11 if n > 0 => drop(opt.record(Action::abandon(any), now)),
            12 => {
                let value = rng.random::<bool>().then_some(value);
                let near = Member::new(x.clone(), None);
                let point = opt.definition().problem.decode(&near, None);
                opt.record(Action::add(point, vec![], value, None), now)
                    .unwrap();
                let path = plain.settle(&x);
                plain.place(n, path);
            }
            13 => {
                // Removed drafts must not change the state.
                let mut go_on = || ControlFlow::Continue(());
                opt.propose(3, Request::default(), &mut go_on).unwrap();
            }
            _ => {}
        }
        plain.rescale(&opt);
    }
    Ok(())
}

#[test]
fn every_suggestion_agrees_with_the_plain_tree() {
    // Run all histories if the environment variable BELATED_FULL is set, and otherwise a sample.
    let n = match std::env::var_os("BELATED_FULL") {
        Some(_) => 10_000,
        None => 300,
    };
    for seed in 0..n {
        for (exact, given) in [(true, true), (false, true), (true, false), (false, false)] {
            if let Err(what) = check_history(seed, exact, given, 60) {
                panic!("history {seed}, exact {exact}, given {given}: {what}");
            }
        }
    }
}

/// Runs a history of suggestions whose results arrive in random order.
fn play(opt: &mut Optimizer, rng: &mut Rng, n_steps: usize, abandons: bool) {
    for _ in 0..n_steps {
        let n = opt.ledger().n_trials();
        if n == 0 || rng.random_range(0..5) < 3 {
            suggest(opt);
            continue;
        }
        let number = rng.random_range(0..n);
        let value = rng.random::<f64>();
        drop(match rng.random_range(0..8) {
            0 => opt.record(Action::fail(number), None),
            1 if abandons => opt.record(Action::abandon(number), None),
            _ => opt.record(Action::observe(number, value, None, true), None),
        });
    }
}

/// Returns the events of the next n suggestions, without logging them.
fn next(opt: &mut Optimizer, n: usize) -> Vec<Event> {
    let mut go_on = || ControlFlow::Continue(());
    let (drafts, _) = opt.propose(n, Request::default(), &mut go_on).unwrap();
    drafts.into_iter().map(|draft| draft.event).collect()
}

#[test]
fn removing_drafts_restores_the_depth_of_the_front() {
    // In this draft, an instance visits a deep cell that another instance created.
    let strategy = json!({"kind": "TreeSearch", "rho": [0.9, 0.7, 0.5], "front": true});
    let seed = 10_736_878_306_845_921_326;
    let mut opt = optimizer(&spaces()[0], strategy, seed);
    play(&mut opt, &mut Rng::seed_from_u64(seed), 33, true);
    let expected = next(&mut opt, 5);
    assert_eq!(next(&mut opt, 5), expected);
    let mut restored = Optimizer::from_bytes(&opt.to_bytes().unwrap()).unwrap();
    assert_eq!(next(&mut restored, 5), expected);
}

proptest! {
    #[test]
    fn a_tree_replayed_from_its_log_continues_bit_for_bit(
        seed: u64, which in 0..5usize, several: bool, exact: bool, front: Option<bool>, n_steps in 1..120usize,
    ) {
        let rho = if several { json!([0.9, 0.7, 0.5]) } else { json!(null) };
        let refresh = if exact { "exact" } else { "frozen" };
        let strategy = json!({"kind": "TreeSearch", "rho": rho, "refresh": refresh, "front": front});
        let mut opt = optimizer(&spaces()[which], strategy.clone(), seed);
        play(&mut opt, &mut Rng::seed_from_u64(seed), n_steps, true);
        let expected = next(&mut opt, 5);
        // Removed drafts must not change later suggestions.
        prop_assert_eq!(&next(&mut opt, 5), &expected);
        let mut restored = Optimizer::from_bytes(&opt.to_bytes().unwrap()).unwrap();
        prop_assert_eq!(&next(&mut restored, 5), &expected);
        let mut extended = optimizer(&spaces()[which], strategy, seed);
        extended.extend(opt.ledger().events(0).collect()).unwrap();
        prop_assert_eq!(&next(&mut extended, 5), &expected);
    }

    #[test]
    fn instances_share_every_evaluation(
        seed: u64, which in 0..4usize, front: bool, n_steps in 1..150usize,
    ) {
        let strategy = json!({"kind": "TreeSearch", "rho": [0.9, 0.7, 0.5], "front": front});
        let space = &spaces()[which];
        let mut opt = optimizer(space, strategy, seed);
        play(&mut opt, &mut Rng::seed_from_u64(seed), n_steps, false);
        let mut plain = Plain::new(space.domain());
        let mut evaluated: Vec<Path> = Vec::new();
        for number in 0..opt.ledger().n_trials() {
            let steps = note::from_text(&opt.ledger().note(number).unwrap()).unwrap();
            for (i, step) in steps.iter().enumerate() {
                let Step::Turn(place) = *step else { unreachable!() };
                let path = if plain.created.is_empty() { Path::new() } else { plain.path_of(place) };
                if i + 1 < steps.len() {
                    prop_assert!(evaluated.contains(&path));
                    continue;
                }
                let is_leaf = plain.space.longest_side(&plain.region(&path)).is_none();
                prop_assert!(is_leaf || !evaluated.contains(&path));
                plain.visit(path.clone());
                evaluated.push(path);
            }
        }
    }
}

#[test]
fn points_satisfy_the_constraints_and_empty_cells_are_skipped() {
    // The feasible set is a ring that covers about a twentieth of the square.
    let ring = |rows: ndarray::ArrayView2<f64>| {
        let radius = |row: ndarray::ArrayView1<f64>| (row[0] - 0.5).hypot(row[1] - 0.5);
        let inside = rows.rows().into_iter().map(|row| {
            let r = radius(row);
            (0.39..0.41).contains(&r)
        });
        Ok(inside.collect())
    };
    let square = cube(2);
    let mut opt = optimizer(&square, json!({"kind": "TreeSearch"}), 3);
    let mut go_on = || ControlFlow::Continue(());
    for _ in 0..300 {
        let (numbers, _) = opt
            .suggest(
                1,
                Request {
                    feasible: Feasible::by(&ring),
                    ..Request::default()
                },
                &mut go_on,
            )
            .unwrap();
        let x = opt.ledger().x(numbers[0]).to_vec();
        assert!((0.39..0.41).contains(&(x[0] - 0.5).hypot(x[1] - 0.5)));
        opt.record(Action::observe(numbers[0], x[0], None, false), None)
            .unwrap();
    }
    let mut restored = Optimizer::from_bytes(&opt.to_bytes().unwrap()).unwrap();
    let mut next = |opt: &mut Optimizer| {
        opt.suggest(
            5,
            Request {
                feasible: Feasible::by(&ring),
                ..Request::default()
            },
            &mut go_on,
        )
        .unwrap()
    };
    next(&mut opt);
    next(&mut restored);
    for number in 300..305 {
        assert_eq!(opt.ledger().point(number), restored.ledger().point(number));
    }
    // The largest x of any point on the ring is 0.91.
    let best = opt.ledger().best().unwrap();
    assert!(opt.ledger().value(best).unwrap() > 0.9);
}

#[test]
fn an_infeasible_domain_raises_an_error_and_leaves_the_log_unchanged() {
    let nowhere = |rows: ndarray::ArrayView2<f64>| Ok(vec![false; rows.nrows()]);
    let mut opt = optimizer(&cube(1), json!({"kind": "TreeSearch"}), 3);
    let mut go_on = || ControlFlow::Continue(());
    let refused = opt.suggest(
        1,
        Request {
            feasible: Feasible::by(&nowhere),
            ..Request::default()
        },
        &mut go_on,
    );
    assert!(matches!(refused, Err(Error::NoFeasiblePoint { .. })));
    assert!(opt.ledger().is_empty());
    assert_eq!(suggest(&mut opt), 0);
}

#[test]
fn invalid_notes_are_refused_and_the_log_is_unchanged() {
    let square = cube(2);
    let mut opt = optimizer(&square, json!({"kind": "TreeSearch"}), 3);
    play(&mut opt, &mut Rng::seed_from_u64(1), 30, true);
    let expected = next(&mut opt, 3);
    let Some(What::Suggested(Suggested { point, .. })) = expected.first().map(|it| &it.what) else {
        unreachable!()
    };
    let n = opt.ledger().len();
    for bad in ["", "x", "9999", "9999l", "0l", "-0 0", "-5"] {
        let event = Event {
            at: None,
            by: None,
            now: 100.0,
            what: What::Suggested(Suggested {
                point: point.clone(),
                context: vec![],
                fidelity: None,
                expires_at: None,
                queued: false,
                note: Some(bad.to_string()),
                attrs: None,
            }),
        };
        assert!(
            matches!(opt.extend(vec![event]), Err(Error::Corrupt(_))),
            "{bad}"
        );
        assert_eq!(opt.ledger().len(), n);
    }
    assert_eq!(next(&mut opt, 3), expected);
}

#[test]
fn the_front_finds_a_valley_that_crosses_cell_borders() {
    let square = cube(2);
    let worst = |front: bool| {
        let best = (0..8).map(|seed| {
            let strategy = json!({"kind": "TreeSearch", "front": front});
            let mut opt = optimizer(&square, strategy, seed);
            for _ in 0..4000 {
                let number = suggest(&mut opt);
                let x = opt.ledger().x(number);
                let (a, b) = (x[0] - 0.4999, x[1] - 0.2501);
                let value = -(a + b).powi(2) - 100.0 * (a - b).powi(2);
                opt.record(Action::observe(number, value, None, false), None)
                    .unwrap();
            }
            let best = opt.ledger().best().unwrap();
            opt.ledger().value(best).unwrap()
        });
        best.fold(0.0, f64::min)
    };
    assert!(worst(true) > -1e-6);
    // If the front is not used and ν is computed from the values, the search may get stuck far from the maximum.
    assert!(worst(false) < -0.1);
}
