//! Tests of revisions.

use super::*;
use crate::ledger::revise::RevisedTrial;
use crate::problem::{Declaration, Direction, Role, Space};

/// A problem with one number from 0 to `high`.
fn up_to(high: f64, direction: Direction) -> Arc<Problem> {
    let axis = Parameter::Real(Real::new(0.0, high, false, None).unwrap());
    let declared = vec![Declaration::new("x", axis)];
    Arc::new(Problem {
        direction,
        ..Problem::new(Space::new(Role::Params, declared).unwrap())
    })
}

fn event() -> Event {
    Event {
        at: Some(5.0),
        by: None,
        now: 0.0,
        what: What::Revised(Revision {
            definition: "{}".to_string(),
            fill: None,
            map: None,
            keep: None,
            constrained: false,
            refused: vec![],
        }),
    }
}

/// Converts the trials to a problem: points that the problem lacks are left out.
fn converted(ledger: &Ledger, problem: &Problem) -> Vec<RevisedTrial> {
    let numbers = 0..ledger.trials().len();
    let known = |point: Option<Point>| point.filter(|point| problem.check_point(point).is_ok());
    let trial = |number| {
        let start = known(Some(ledger.started_point(number)));
        let run = known(ledger.run_point(number));
        let placed = match ledger.run_point(number) {
            Some(_) => run.is_some(),
            None => start.is_some(),
        };
        RevisedTrial {
            start,
            run,
            context: Some(vec![]),
            fidelity: None,
            left_out: (!placed).then(|| "outside".to_string()),
            has_fidelity: true,
        }
    };
    numbers.map(trial).collect()
}

fn revise(ledger: &mut Ledger, problem: &Arc<Problem>) {
    let trials = converted(ledger, problem);
    let queue = ledger.queued().iter();
    let queue = queue.map(|queued| (queued.point.clone(), queued.partial));
    let queue = queue.collect();
    ledger
        .revise(problem.clone(), &event(), trials, queue, true)
        .unwrap();
}

/// Logs a random action. Invalid actions have no effect.
fn random_step(ledger: &mut Ledger, kind: u8, number: usize, x: f64) {
    let now = ledger.now(None).unwrap();
    let run = Observation::new(x, None).run_at(point(x));
    let observed = |observation| Action::Observe {
        number,
        observation,
        again: Again::Amend,
    };
    let action = match kind {
        0 | 1 => return suggest(ledger, point(x), now, false),
        2 => Action::add(point(x), vec![], Some(x), None),
        3 => observed(Observation::new(x, None)),
        4 => observed(run),
        5 => Action::fail(number),
        6 => Action::abandon(number),
        _ => Action::Stop { number },
    };
    let _ = act(ledger, action, now);
}

/// The change, with 0 in place of the point where the trial was run.
fn without_run(mut changes: Vec<Change>) -> Vec<Change> {
    for change in &mut changes {
        if let Effect::Valued { run: Some(run), .. } = &mut change.effect {
            *run = point(0.0);
        }
    }
    changes
}

/// What strategies read of a trial.
fn view(ledger: &Ledger, number: TrialNumber) -> (State, Option<f64>, &[f64], Option<f64>) {
    let trial = ledger.view().of(number);
    (
        trial.state(),
        trial.value(),
        ledger.x(number),
        trial.delay(),
    )
}

proptest! {
    /// A revised log equals a log of the new problem with the same history, if the new problem has all points.
    #[test]
    fn a_revised_log_equals_a_log_of_the_new_problem(
        before in prop::collection::vec((0..8u8, 0..6usize, 0.0..1.0f64), 0..30),
        after in prop::collection::vec((0..8u8, 0..6usize, 0.0..2.0f64), 0..30),
        flip: bool,
    ) {
        let direction = if flip { Direction::Minimize } else { Direction::Maximize };
        let (small, large) = (up_to(1.0, Direction::Maximize), up_to(2.0, direction));
        let (mut ledger, mut fresh) = (Ledger::new(small), Ledger::new(large.clone()));
        for &(kind, number, x) in &before {
            random_step(&mut ledger, kind, number, x);
            random_step(&mut fresh, kind, number, x);
        }
        let n_before = ledger.len();
        revise(&mut ledger, &large);
        for &(kind, number, x) in &after {
            random_step(&mut ledger, kind, number, x);
            random_step(&mut fresh, kind, number, x);
        }
        prop_assert_eq!(ledger.len(), fresh.len() + 1);
        prop_assert_eq!(ledger.best(), fresh.best());
        prop_assert_eq!(ledger.view().n_observed(), fresh.view().n_observed());
        prop_assert!(ledger.view().pending().eq(fresh.view().pending()));
        prop_assert_eq!(ledger.n_chosen(), fresh.n_chosen());
        prop_assert_eq!(ledger.view().recently_abandoned(), fresh.view().recently_abandoned());
        for number in 0..fresh.trials().len() {
            prop_assert_eq!(view(&ledger, number), view(&fresh, number));
            prop_assert_eq!(ledger.value(number), fresh.value(number));
            prop_assert_eq!(ledger.point(number), fresh.point(number));
            prop_assert_eq!(ledger.left_out(number), None);
        }
        for i in 0..fresh.len() {
            // An earlier report of a point has the last point that was reported.
            let (mine, theirs) = (changes_by(&ledger, i + usize::from(i >= n_before)), changes_by(&fresh, i));
            prop_assert_eq!(without_run(mine), without_run(theirs));
        }
        prop_assert_eq!(changes_by(&ledger, n_before), []);
    }

    /// Trials outside keep their states and values, and strategies see neither their points nor their values. A second
    /// revision back to the first problem restores everything.
    #[test]
    fn trials_outside_are_left_out_until_the_problem_has_their_points(
        before in prop::collection::vec((0..8u8, 0..6usize, 0.0..1.0f64), 0..30),
        after in prop::collection::vec((0..8u8, 0..6usize, 0.0..0.5f64), 0..30),
    ) {
        let (large, small) = (up_to(1.0, Direction::Minimize), up_to(0.5, Direction::Minimize));
        let (mut ledger, mut whole) = (Ledger::new(large.clone()), Ledger::new(large.clone()));
        for &(kind, number, x) in &before {
            random_step(&mut ledger, kind, number, x);
            random_step(&mut whole, kind, number, x);
        }
        let n_before = ledger.trials().len();
        revise(&mut ledger, &small);
        for &(kind, number, x) in &after {
            random_step(&mut ledger, kind, number, x);
            random_step(&mut whole, kind, number, x);
        }
        let n = whole.trials().len();
        let inside = |number: &TrialNumber| small.check_point(&whole.point(*number)).is_ok();
        for number in 0..n {
            prop_assert_eq!(ledger.view().of(number).state(), whole.view().of(number).state());
            prop_assert_eq!(ledger.value(number), whole.value(number));
            prop_assert_eq!(ledger.left_out(number).is_none(), inside(&number));
            prop_assert_eq!(ledger.view().of(number).value().is_some(), inside(&number) && whole.value(number).is_some());
            prop_assert_eq!(ledger.x(number)[0].is_nan(), !inside(&number));
            prop_assert_eq!(ledger.view().of(number).delay(), whole.view().of(number).delay());
        }
        let pending: Vec<_> = whole.view().pending().collect();
        prop_assert_eq!(ledger.view().all_pending().collect::<Vec<_>>(), pending.clone());
        let placed: Vec<_> = pending.into_iter().filter(inside).collect();
        prop_assert_eq!(ledger.view().pending().collect::<Vec<_>>(), placed);
        prop_assert_eq!(ledger.best(), best_of_all(&ledger));
        prop_assert_eq!(ledger.view().arrivals(false), whole.view().arrivals(false));
        prop_assert_eq!(ledger.view().in_flight(99.0, None), whole.view().in_flight(99.0, None));
        // A strategy knows exactly the trials that are used, each from its start on.
        let mut known = BTreeSet::new();
        for change in (0..ledger.len()).flat_map(|i| changes_by(&ledger, i)) {
            match change.effect {
                Effect::Started { .. } => prop_assert!(known.insert(change.number)),
                _ => prop_assert!(known.contains(&change.number)),
            }
        }
        prop_assert_eq!(known, (0..n).filter(|number| ledger.left_out(*number).is_none()).collect::<BTreeSet<_>>());
        prop_assert!(n_before <= n);
        revise(&mut ledger, &large);
        for number in 0..n {
            prop_assert_eq!(view(&ledger, number), view(&whole, number));
        }
        prop_assert_eq!(ledger.best(), whole.best());
        prop_assert_eq!(ledger.n_chosen(), whole.n_chosen());
    }
}

#[test]
fn notes_stay_valid_only_for_an_equal_problem() {
    let note = |ledger: &Ledger| match changes_by(ledger, 0).remove(0).effect {
        Effect::Started { note, .. } => note,
        _ => None,
    };
    let mut ledger = Ledger::new(up_to(1.0, Direction::Maximize));
    let started = Event {
        at: None,
        by: None,
        now: 0.0,
        what: What::Suggested(Suggested {
            point: point(0.5),
            context: vec![],
            fidelity: None,
            note: Some("fit".to_string()),
            attrs: None,
            queued: false,
            expires_at: None,
        }),
    };
    ledger.append(started).unwrap();
    revise(&mut ledger, &up_to(1.0, Direction::Maximize));
    assert_eq!(note(&ledger), Some("fit".to_string()));
    revise(&mut ledger, &up_to(2.0, Direction::Maximize));
    assert_eq!(note(&ledger), None);
    revise(&mut ledger, &up_to(2.0, Direction::Maximize));
    assert_eq!(note(&ledger), None);
    assert_eq!((ledger.era(), ledger.last_revision()), (3, 3));
}

#[test]
fn a_revision_is_refused_among_other_events_and_with_other_points() {
    let mut ledger = started(Clock::Iterations, 1);
    assert!(matches!(ledger.append(event()), Err(Error::Corrupt(_))));
    let problem = up_to(1.0, Direction::Maximize);
    let refused = ledger
        .clone()
        .revise(problem.clone(), &event(), vec![], vec![], true);
    assert!(matches!(refused, Err(Error::Corrupt(_))));
    let of_two_numbers = RevisedTrial {
        start: Some(Point::at(&[0.5, 0.5])),
        context: Some(vec![]),
        has_fidelity: true,
        ..RevisedTrial::default()
    };
    let refused = ledger.revise(problem, &event(), vec![of_two_numbers], vec![], true);
    assert!(matches!(refused, Err(Error::InvalidPoint(_))));
}
