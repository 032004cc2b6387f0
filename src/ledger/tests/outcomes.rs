//! Tests of trials with several outcomes.

use super::*;
use crate::problem::{Direction, Goal, Interval, Outcome};

/// A log of trials with an objective that is minimised, an outcome with an upper bound, and a recorded outcome.
fn empty() -> Ledger {
    let outcome = |name: &str, goal| Outcome {
        name: name.to_string(),
        goal,
        plausible: crate::problem::Interval::default(),
    };
    let bounds = Interval {
        low: None,
        high: Some(1.0),
    };
    let outcomes = vec![
        outcome("bounded", Goal::Within(bounds)),
        outcome(
            "objective",
            Goal::Objective(Direction::Minimize, Interval::default()),
        ),
        outcome("recorded", Goal::Record),
    ];
    let cube = Problem::unit_cube(1, 0, Clock::Iterations).unwrap();
    Ledger::new(Arc::new(cube.with_outcomes(outcomes).unwrap()))
}

fn views(ledger: &Ledger) -> Vec<View<'_>> {
    let outcomes = (0..3).map(|outcome| ledger.outcome(outcome));
    outcomes.chain([ledger.view(), ledger.success()]).collect()
}

fn changes_of(ledger: &Ledger, i: usize) -> Vec<Vec<Change>> {
    let views = views(ledger).into_iter();
    views.map(|view| view.changes(i).collect()).collect()
}

/// Logs a random action. Invalid actions have no effect.
fn random_step(ledger: &mut Ledger, (kind, number, outcome, observation): Step4) {
    let now = ledger.now(None).unwrap();
    let Observation {
        mut readings, data, ..
    } = observation;
    readings[0].0 = outcome as u32;
    if kind % 2 == 1 {
        let value = readings[0].1.value + 1.0;
        readings.push(((outcome as u32 + 1) % 3, Reading { value, std: None }));
    }
    let observation = Observation {
        readings,
        data,
        marks: None,
    };
    let outcome = Some(outcome).filter(|_| kind < 18);
    let end = match kind / 2 % 3 {
        0 => Action::Fail {
            number,
            outcome,
            error: None,
            duration: None,
            attrs: None,
        },
        1 => Action::Abandon { number, outcome },
        _ => Action::Withdraw {
            number,
            outcome,
            reason: None,
        },
    };
    let action = match kind {
        0..4 => {
            suggest(ledger, point(0.5), now, false);
            return;
        }
        4..10 => Action::Observe {
            number,
            observation,
            again: [Again::Refuse, Again::Amend, Again::Replicate][usize::from(kind) % 3],
        },
        10..12 => Action::Add {
            point: point(0.25),
            context: vec![],
            fidelity: None,
            observation,
            attrs: None,
        },
        12..24 => end,
        _ => Action::Stop { number },
    };
    let _ = act(ledger, action, now);
}

type Step4 = (u8, usize, usize, Observation);

proptest! {
    /// The changes of each view give its states and values, and later events do not alter them. A log that is read from
    /// its events equals the log. The state of a trial follows from its results.
    #[test]
    fn views_are_folded_from_their_changes(
        steps in prop::collection::vec((0u8..26, 0usize..6, 0usize..3, observations()), 0..60),
    ) {
        let (mut ledger, mut changes) = (empty(), Vec::new());
        for step in steps {
            random_step(&mut ledger, step);
            changes.extend((changes.len()..ledger.len()).map(|i| changes_of(&ledger, i)));
        }
        prop_assert_eq!(&changes, &(0..ledger.len()).map(|i| changes_of(&ledger, i)).collect::<Vec<_>>());
        let mut again = empty();
        for event in ledger.events(0) {
            again.append(Event::from_json(&event.to_json().unwrap()).unwrap()).unwrap();
        }
        prop_assert!(same_entries(&again, &ledger) && again.rows == ledger.rows);
        prop_assert_eq!(again.trials(), ledger.trials());
        for (k, view) in views(&ledger).into_iter().enumerate() {
            let mut states = vec![(State::Pending, None); ledger.n_trials()];
            for Change { number, effect } in changes.iter().flat_map(|all| &all[k]) {
                states[*number] = match effect {
                    Effect::Started { reading, .. } => match reading {
                        Some(reading) => (State::Observed, Some(reading.value)),
                        None => (State::Pending, None),
                    },
                    Effect::Valued { reading, .. } => (State::Observed, Some(reading.value)),
                    Effect::Failed => (State::Failed, None),
                    Effect::Stopped => (State::Stopped, None),
                    Effect::Dropped => (State::Abandoned, None),
                    Effect::Withdrawn => (State::Withdrawn, None),
                    Effect::Moved | Effect::Reported => states[*number],
                };
            }
            for (number, (state, value)) in states.into_iter().enumerate() {
                let trial = view.of(number);
                let is_reopened = state == State::Withdrawn && trial.state() == State::Pending;
                if k < 3 {
                    prop_assert!(is_reopened || (state, value) == (trial.state(), trial.value()), "{k} {number}");
                } else if k == 4 {
                    prop_assert_eq!(state, trial.state());
                }
            }
            let pending = (0..ledger.n_trials()).filter(|number| view.of(*number).state() == State::Pending);
            prop_assert!(view.all_pending().eq(pending));
        }
        for number in 0..ledger.n_trials() {
            let states: Vec<State> = (0..3).map(|outcome| ledger.outcome(outcome).of(number).state()).collect();
            let has = |state: State| states.contains(&state);
            let expected = if has(State::Pending) {
                State::Pending
            } else if has(State::Observed) {
                State::Observed
            } else if has(State::Stopped) {
                State::Stopped
            } else if has(State::Withdrawn) {
                State::Withdrawn
            } else if has(State::Failed) {
                State::Failed
            } else {
                State::Abandoned
            };
            prop_assert_eq!(ledger.view().of(number).state(), expected);
            let affecting = &states[..2];
            let success = ledger.success().of(number).state();
            prop_assert_eq!(success == State::Failed, affecting.contains(&State::Failed));
            let succeeded = affecting.contains(&State::Observed) && !affecting.contains(&State::Failed);
            prop_assert_eq!(success == State::Observed, succeeded);
        }
    }
}

#[test]
fn an_event_lists_every_outcome_that_it_concerns() {
    let mut ledger = empty();
    for _ in 0..3 {
        suggest(&mut ledger, point(0.5), 0.0, false);
    }
    let reading = |value| Reading { value, std: None };
    let value = |outcome, value| (outcome, reading(value));
    let observe = |number, readings| Action::Observe {
        number,
        observation: Observation {
            readings,
            ..Observation::default()
        },
        again: Again::Refuse,
    };
    let mut results_of = |action| {
        act(&mut ledger, action, 1.0).unwrap();
        match ledger.event(ledger.len() - 1).what {
            What::Resulted(it) => it.results,
            what => unreachable!("{what:?}"),
        }
    };
    let new = |value| Happened::New(reading(value));
    let both = observe(0, vec![value(1, 3.0), value(0, 0.5)]);
    assert_eq!(results_of(both), [(1, new(3.0)), (0, new(0.5))]);
    // The failure of the trial concerns the missing outcome. The trial has the position after the outcomes.
    let failed = Happened::Failed;
    assert_eq!(results_of(Action::fail(0)), [(2, failed), (3, failed)]);
    let withdrawn = Happened::Withdrawn { awaited: false };
    let all: Vec<_> = (0..4).map(|i| (i, withdrawn)).collect();
    assert_eq!(results_of(Action::withdraw(0)), all);
    assert_eq!(results_of(observe(1, vec![value(0, 0.5)])), [(0, new(0.5))]);
    // Other outcomes are missing, so another value is expected.
    let awaited = Happened::Withdrawn { awaited: true };
    let of_trial = [(0, awaited), (3, awaited)];
    assert_eq!(results_of(Action::withdraw(1)), of_trial);
    assert_eq!(
        results_of(observe(1, vec![value(0, 0.25)])),
        [(0, new(0.25))]
    );
    // The values that are known belong to the point where the trial was run.
    let readings = vec![value(1, 2.0)];
    let moved = Action::Observe {
        number: 1,
        observation: Observation {
            readings,
            ..Observation::default()
        }
        .run_at(point(0.25)),
        again: Again::Amend,
    };
    let expected = [(1, new(2.0)), (0, Happened::Amended(reading(0.25)))];
    assert_eq!(results_of(moved), expected);
    let stopped = [(2, Happened::Abandoned), (3, Happened::Stopped)];
    assert_eq!(results_of(Action::Stop { number: 1 }), stopped);
    let of_outcome = Action::Abandon {
        number: 2,
        outcome: Some(0),
    };
    assert_eq!(results_of(of_outcome), [(0, Happened::Abandoned)]);
    let effects = (ledger.len() - 2..ledger.len()).flat_map(|i| ledger.view().changes(i));
    let effects: Vec<Effect> = effects.map(|change| change.effect).collect();
    assert_eq!(effects, [Effect::Stopped, Effect::Reported]);
}

#[test]
fn a_report_about_the_trial_agrees_with_its_outcomes() {
    let (failed, abandoned) = (Happened::Failed, Happened::Abandoned);
    let all = |whole| vec![(0, failed), (1, failed), (2, failed), (3, whole)];
    for (results, is_valid) in [
        (all(failed), true),
        (all(abandoned), false),
        (all(Happened::Stopped), false),
        (all(Happened::New(Reading::default())), false),
        (vec![(3, failed)], false),
        (vec![(3, failed), (0, failed)], false),
        (vec![(0, failed), (4, failed)], false),
        (
            vec![
                (1, Happened::Stopped),
                (0, abandoned),
                (3, Happened::Stopped),
            ],
            true,
        ),
    ] {
        let mut ledger = empty();
        suggest(&mut ledger, point(0.5), 0.0, false);
        let trial = 0;
        let data = None;
        let refused = format!("{results:?}");
        let what = What::Resulted(Resulted {
            trial,
            results,
            data,
        });
        let event = Event {
            at: None,
            by: None,
            now: 1.0,
            what,
        };
        assert_eq!(ledger.append(event).is_ok(), is_valid, "{refused}");
    }
}
