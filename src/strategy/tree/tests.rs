//! The tree against a plain recomputation of every node from the values, over random histories.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::domain::{Condition, Coordinate, Domain};
use crate::error::Error;
use crate::ledger::{Action, Again, Clock, Event, Point, Report, State};
use crate::maximize::feasible::Feasible;
use crate::optimizer::{Definition, Optimizer, Request, Settings};
use crate::random::Rng;
use crate::strategy::tree::note::{self, Place, Step};
use crate::strategy::tree::region::{Region, Space};

/// The halves on the way from the root to a cell.
type Path = Vec<usize>;

/// A tree that is computed from nothing but the trials of each cell.
struct Plain {
    space: Space,
    /// Every cell visited, in the order of the visits, and by path the trials that count in it.
    created: Vec<Path>,
    trials: BTreeMap<Path, Vec<usize>>,
    homes: Vec<Path>,
}

/// What the bounds are made of.
struct Constants {
    kind: &'static str,
    /// R, σ or b.
    spread: f64,
    nu: f64,
    rho: f64,
    log_t: f64,
}

impl Plain {
    fn new(domain: &Domain) -> Self {
        let Domain::Box(product) = domain else {
            unreachable!()
        };
        Self {
            space: Space::new(product),
            created: Vec::new(),
            trials: BTreeMap::new(),
            homes: Vec::new(),
        }
    }

    fn region(&self, path: &[usize]) -> Region {
        let mut region = self.space.whole();
        for &side in path {
            let coordinate = self.space.longest_side(&region).unwrap();
            self.space.halve(&mut region, coordinate, side);
        }
        region
    }

    fn visit(&mut self, path: Path) {
        if !self.trials.contains_key(&path) {
            self.created.push(path.clone());
        }
        self.trials.entry(path).or_default();
    }

    /// The cell that the point x belongs to, after it was visited.
    fn settle(&mut self, x: &[f64]) -> Path {
        let (mut path, mut region) = (Path::new(), self.space.whole());
        while self.trials.contains_key(&path) {
            let Some(coordinate) = self.space.longest_side(&region) else {
                break;
            };
            let side = self.space.side_of(&region, coordinate, x);
            self.space.halve(&mut region, coordinate, side);
            path.push(side);
        }
        self.visit(path.clone());
        path
    }

    /// A trial starts in a cell, or is moved there.
    fn place(&mut self, number: usize, path: Path) {
        if let Some(home) = self.homes.get(number) {
            let others = self.trials.get_mut(home).unwrap();
            others.retain(|other| *other != number);
            self.homes[number] = path.clone();
        } else {
            self.homes.push(path.clone());
        }
        self.trials.get_mut(&path).unwrap().push(number);
    }

    fn path_of(&self, place: Place) -> Path {
        match place {
            Place::Old(node) => self.created[node as usize].clone(),
            Place::New { parent, side } => {
                let mut path = self.created[parent as usize].clone();
                path.push(side);
                path
            }
        }
    }

    /// B of a cell, from the values in its subtree.
    fn b_value(&self, path: &Path, optimizer: &Optimizer, constants: &Constants) -> f64 {
        let Some(own) = self.trials.get(path) else {
            return f64::INFINITY;
        };
        let known = optimizer.ledger().trials();
        let all = known.iter().filter_map(|trial| trial.value);
        let worst = all.reduce(f64::min);
        let below = self.trials.range(path.clone()..);
        let below = below.take_while(|(other, _)| other.starts_with(path));
        let numbers = below.flat_map(|(_, numbers)| numbers);
        let values: Vec<f64> = numbers
            .filter_map(|&number| match known[number].state {
                State::Failed => worst,
                _ => known[number].value,
            })
            .collect();
        let s = values.len() as f64;
        let mean = values.iter().sum::<f64>() / s;
        let variance = values.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / s;
        let log_t = constants.log_t;
        let bonus = match constants.kind {
            "DUCB1" | "DUCB1Sigma" => constants.spread * (2.0 * log_t / s).sqrt(),
            _ => (2.0 * variance * log_t / s).sqrt() + 3.0 * constants.spread * log_t / s,
        };
        let width = constants.nu * constants.rho.powi(path.len() as i32);
        let upper = match values.len() {
            0 => f64::INFINITY,
            _ => mean + bonus + width,
        };
        if self.space.longest_side(&self.region(path)).is_some() {
            let half = |side| {
                let mut path = path.clone();
                path.push(side);
                self.b_value(&path, optimizer, constants)
            };
            return upper.min(half(0).max(half(1)));
        }
        let in_flight = |number: &usize| known[*number].state == State::Pending;
        match own.iter().any(in_flight) {
            true => f64::NEG_INFINITY,
            false => upper,
        }
    }

    /// Whether every half on the way to a cell has the larger B value, and the cell is a leaf.
    fn is_best_leaf(
        &self,
        path: &Path,
        optimizer: &Optimizer,
        constants: &Constants,
    ) -> Result<(), String> {
        for (depth, &side) in path.iter().enumerate() {
            let half = |side| {
                let mut half = path[..depth].to_vec();
                half.push(side);
                self.b_value(&half, optimizer, constants)
            };
            let (chosen, other) = (half(side), half(1 - side));
            let room = 1e-9 * other.abs().max(1.0);
            if !(chosen == other || chosen >= other - room) {
                return Err(format!(
                    "{path:?} at {depth}: B {chosen} where {other} is larger"
                ));
            }
        }
        let is_new = !self.trials.contains_key(path);
        match is_new || self.space.longest_side(&self.region(path)).is_none() {
            true => Ok(()),
            false => Err(format!("{path:?} is no leaf")),
        }
    }
}

fn domains() -> Vec<Domain> {
    let integer = |low, high, log| Coordinate::Integer { low, high, log };
    let conditional = vec![
        Coordinate::Categorical { n: 3 },
        integer(1, 4, false),
        Coordinate::Continuous,
    ];
    let when = vec![
        vec![],
        vec![Condition(0, vec![1, 2])],
        vec![Condition(1, vec![0, 3])],
    ];
    vec![
        Domain::new_box(vec![Coordinate::Continuous; 2]).unwrap(),
        Domain::new_box(vec![integer(0, 2, false), integer(1, 9, true)]).unwrap(),
        Domain::new_box(vec![
            Coordinate::Categorical { n: 3 },
            Coordinate::Continuous,
        ])
        .unwrap(),
        Domain::conditional_box(conditional, when).unwrap(),
        Domain::new_box(vec![integer(5, 5, false)]).unwrap(),
    ]
}

fn optimizer(domain: &Domain, strategy: Value, seed: u64) -> Optimizer {
    let settings = Settings {
        context: vec![],
        fidelity: None,
        clock: Clock::Iterations,
        seed,
        strategy,
    };
    let domain = domain.clone().into();
    Optimizer::new(Definition { domain, settings }).unwrap()
}

fn suggest(optimizer: &mut Optimizer) -> usize {
    let mut go_on = || ControlFlow::Continue(());
    let suggested = optimizer.suggest(1, Request::default(), &mut go_on);
    suggested.unwrap().0[0]
}

/// One history, every suggestion of which is held against the plain tree.
fn check_history(seed: u64, exact: bool, n_steps: usize) -> Result<(), String> {
    let mut rng = Rng::seed_from_u64(seed);
    let domains = domains();
    let domain = &domains[rng.random_range(0..domains.len())];
    let kind = ["DUCB1", "DUCB1Sigma", "DUCBV"][rng.random_range(0..3)];
    let (spread, nu, rho) = (0.3, 0.7, 0.6);
    let name = match kind {
        "DUCB1" => "range",
        "DUCB1Sigma" => "noise_std",
        _ => "b",
    };
    let refresh = if exact { "exact" } else { "frozen" };
    let strategy = json!({"kind": "TreeSearch", "bound": {"kind": kind, name: spread}, "nu": nu, "rho": rho,
                          "refresh": refresh});
    let mut opt = optimizer(domain, strategy, seed);
    let mut plain = Plain::new(domain);
    let now = None;
    for _ in 0..n_steps {
        let n = opt.ledger().trials().len();
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
                let constants = Constants {
                    kind,
                    spread,
                    nu,
                    rho,
                    log_t,
                };
                let number = suggest(&mut opt);
                let steps = note::from_text(opt.ledger().trials()[number].note().unwrap()).unwrap();
                let [Step::Turn(place)] = steps[..] else {
                    return Err(format!("{steps:?}"));
                };
                let path = match plain.created.is_empty() {
                    true => Path::new(),
                    false => plain.path_of(place),
                };
                plain.is_best_leaf(&path, &opt, &constants)?;
                // The point lies in its cell.
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
                    value,
                    report: Report {
                        point: place.clone().map(|x| Point::new(x, None)),
                        ..Report::default()
                    },
                    again: Again::Amend,
                };
                opt.record(action, now).unwrap();
                if let Some(x) = place {
                    let path = plain.settle(&x);
                    plain.place(any, path);
                }
            }
            10 if n > 0 => drop(opt.record(Action::fail(any), now)),
            11 if n > 0 => drop(opt.record(Action::Abandon { number: any }, now)),
            12 => {
                let value = rng.random::<bool>().then_some(value);
                let point = Point::new(x.clone(), None);
                opt.record(Action::add(point, vec![], value, None), now)
                    .unwrap();
                let path = plain.settle(&x);
                plain.place(n, path);
            }
            13 => {
                // Drafts that are taken back leave nothing.
                let mut go_on = || ControlFlow::Continue(());
                opt.propose(3, Request::default(), &mut go_on).unwrap();
            }
            _ => {}
        }
    }
    Ok(())
}

#[test]
fn every_choice_is_that_of_a_plain_recomputation() {
    // So many as the full count asks for, or a sample of them.
    let n = match std::env::var_os("BELATED_FULL") {
        Some(_) => 10_000,
        None => 300,
    };
    for seed in 0..n {
        for exact in [true, false] {
            if let Err(what) = check_history(seed, exact, 60) {
                panic!("history {seed}, exact {exact}: {what}");
            }
        }
    }
}

/// A history of suggestions with results in random order, for any settings.
fn play(opt: &mut Optimizer, rng: &mut Rng, n_steps: usize, abandons: bool) {
    for _ in 0..n_steps {
        let n = opt.ledger().trials().len();
        if n == 0 || rng.random_range(0..5) < 3 {
            suggest(opt);
            continue;
        }
        let number = rng.random_range(0..n);
        let value = rng.random::<f64>();
        drop(match rng.random_range(0..8) {
            0 => opt.record(Action::fail(number), None),
            1 if abandons => opt.record(Action::Abandon { number }, None),
            _ => opt.record(Action::observe(number, value, None, true), None),
        });
    }
}

/// The events of the next suggestions, which are not logged.
fn next(opt: &mut Optimizer, n: usize) -> Vec<Event> {
    let mut go_on = || ControlFlow::Continue(());
    let proposed = opt.propose(n, Request::default(), &mut go_on);
    proposed.unwrap().0
}

proptest! {
    #[test]
    fn a_tree_read_from_its_log_goes_on_bit_for_bit(
        seed: u64, which in 0..5usize, several: bool, exact: bool, n_steps in 1..120usize,
    ) {
        let rho = if several { json!([0.9, 0.7, 0.5]) } else { json!(0.6) };
        let refresh = if exact { "exact" } else { "frozen" };
        let strategy = json!({"kind": "TreeSearch", "rho": rho, "refresh": refresh});
        let mut opt = optimizer(&domains()[which], strategy.clone(), seed);
        play(&mut opt, &mut Rng::seed_from_u64(seed), n_steps, true);
        let expected = next(&mut opt, 5);
        // Drafts that were taken back change nothing.
        prop_assert_eq!(&next(&mut opt, 5), &expected);
        let mut restored = Optimizer::from_bytes(&opt.to_bytes().unwrap()).unwrap();
        prop_assert_eq!(&next(&mut restored, 5), &expected);
        let mut extended = optimizer(&domains()[which], strategy, seed);
        extended.extend(opt.ledger().events(0).collect()).unwrap();
        prop_assert_eq!(&next(&mut extended, 5), &expected);
    }

    #[test]
    fn instances_share_every_evaluation(seed: u64, which in 0..4usize, n_steps in 1..150usize) {
        let strategy = json!({"kind": "TreeSearch", "rho": [0.9, 0.7, 0.5]});
        let domain = &domains()[which];
        let mut opt = optimizer(domain, strategy, seed);
        play(&mut opt, &mut Rng::seed_from_u64(seed), n_steps, false);
        let mut plain = Plain::new(domain);
        let mut evaluated: Vec<Path> = Vec::new();
        for trial in opt.ledger().trials() {
            let steps = note::from_text(trial.note().unwrap()).unwrap();
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
fn points_satisfy_the_constraints_and_empty_cells_are_left() {
    // A ring: about a twentieth of the square.
    let ring = |rows: ndarray::ArrayView2<f64>| {
        let radius = |row: ndarray::ArrayView1<f64>| (row[0] - 0.5).hypot(row[1] - 0.5);
        let inside = rows.rows().into_iter().map(|row| {
            let r = radius(row);
            (0.39..0.41).contains(&r)
        });
        Ok(inside.collect())
    };
    let domain = Domain::new_box(vec![Coordinate::Continuous; 2]).unwrap();
    let mut opt = optimizer(&domain, json!({"kind": "TreeSearch"}), 3);
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
    // The largest x on the ring is 0.91.
    let best = opt.ledger().best().unwrap();
    assert!(opt.ledger().trials()[best].value.unwrap() > 0.9);
}

#[test]
fn without_any_feasible_point_there_is_an_error_and_nothing_is_logged() {
    let nowhere = |rows: ndarray::ArrayView2<f64>| Ok(vec![false; rows.nrows()]);
    let domain = Domain::new_box(vec![Coordinate::Continuous]).unwrap();
    let mut opt = optimizer(&domain, json!({"kind": "TreeSearch"}), 3);
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
fn notes_of_no_tree_are_refused_and_the_log_is_unchanged() {
    let domain = Domain::new_box(vec![Coordinate::Continuous; 2]).unwrap();
    let mut opt = optimizer(&domain, json!({"kind": "TreeSearch"}), 3);
    play(&mut opt, &mut Rng::seed_from_u64(1), 30, true);
    let expected = next(&mut opt, 3);
    let Some(Event::Suggested { point, .. }) = expected.first() else {
        unreachable!()
    };
    let n = opt.ledger().len();
    for bad in ["", "x", "9999", "9999l", "0l", "-0 0", "-5"] {
        let event = Event::Suggested {
            point: point.clone(),
            context: vec![],
            fidelity: None,
            now: 100.0,
            expires_at: None,
            queued: false,
            note: Some(bad.to_string()),
            attrs: None,
        };
        assert!(
            matches!(opt.extend(vec![event]), Err(Error::Corrupt(_))),
            "{bad}"
        );
        assert_eq!(opt.ledger().len(), n);
    }
    assert_eq!(next(&mut opt, 3), expected);
}
