//! Tests of the log.

mod drafts;
mod fidelities;
mod late;
mod marks;
mod outcomes;
mod possible;
mod reported;
mod revised;

use super::*;
use crate::problem::{Fidelity, Parameter, Real};
use proptest::prelude::*;

impl Ledger {
    /// Creates an empty log of trials in a unit cube, with contexts in another unit cube and fidelities in [0, 1].
    pub(crate) fn in_unit_cube(clock: Clock, width: usize, context_width: usize) -> Self {
        let axis = Parameter::Real(Real::new(0.0, 1.0, false, None).unwrap());
        let problem = Problem {
            fidelity: Some(Fidelity::new(axis, None, None).unwrap()),
            ..Problem::unit_cube(width, context_width, clock).unwrap()
        };
        Self::new(Arc::new(problem))
    }
}

/// Returns the ledger after these events.
fn replay(events: impl Iterator<Item = Event>) -> Result<Ledger> {
    let mut ledger = Ledger::in_unit_cube(Clock::Iterations, 1, 0);
    for event in events {
        ledger.append(event)?;
    }
    Ok(ledger)
}

/// Returns the best trial within 1e-3 of the highest fidelity observed. The function searches all trials.
fn best_of_all(ledger: &Ledger) -> Option<TrialNumber> {
    let trials = ledger.view().trials();
    let with_values = trials.clone().filter(|trial| trial.value().is_some());
    let highest = with_values.map(|trial| trial.z()).fold(0.0, f64::max);
    let mut best: Option<(TrialNumber, f64)> = None;
    for (number, trial) in trials.enumerate() {
        if let Some(value) = trial.value()
            && trial.z() >= highest - 1e-3
            && best.is_none_or(|(_, top)| value > top)
        {
            best = Some((number, value));
        }
    }
    best.map(|(number, _)| number)
}

/// Logs an action, as the optimizer does.
fn act(ledger: &mut Ledger, action: Action, now: f64) -> Result<()> {
    ledger
        .validate(action, now, None)?
        .map_or(Ok(()), |event| ledger.append(event))
}

fn observe(ledger: &mut Ledger, number: usize, value: f64, now: f64, amend: bool) -> Result<()> {
    act(ledger, Action::observe(number, value, None, amend), now)
}

fn suggest(ledger: &mut Ledger, point: Point, now: f64, queued: bool) {
    let event = Event {
        at: None,
        by: None,
        now,
        what: What::Suggested(Suggested {
            point,
            context: vec![],
            fidelity: None,
            note: None,
            attrs: None,
            queued,
            expires_at: None,
        }),
    };
    ledger.append(event).unwrap();
}

fn started(clock: Clock, n: usize) -> Ledger {
    let mut ledger = Ledger::in_unit_cube(clock, 1, 0);
    for k in 0..n {
        let now = ledger.now(Some(10.0 * k as f64)).unwrap();
        suggest(&mut ledger, point(k as f64 / 8.0), now, false);
    }
    ledger
}

fn point(x: f64) -> Point {
    Point::at(&[x])
}

#[test]
fn a_value_is_accepted_in_every_state() {
    let mut ledger = started(Clock::Iterations, 3);
    act(&mut ledger, Action::fail(1), 3.0).unwrap();
    act(&mut ledger, Action::abandon(2), 3.0).unwrap();
    for number in 0..3 {
        observe(&mut ledger, number, number as f64, 3.0, false).unwrap();
        assert_eq!(ledger.view().of(number).state(), State::Observed);
    }
    assert_eq!(ledger.best(), Some(2));
    assert_eq!(ledger.view().pending().count(), 0);
}

#[test]
fn delays_count_suggestions_or_seconds() {
    let mut ledger = started(Clock::Iterations, 5);
    observe(&mut ledger, 4, 0.5, 5.0, false).unwrap();
    observe(&mut ledger, 1, 0.5, 5.0, false).unwrap();
    assert_eq!(ledger.view().of(4).delay(), Some(1.0));
    assert_eq!(ledger.view().of(1).delay(), Some(4.0));
    let mut ledger = started(Clock::Seconds, 2);
    observe(&mut ledger, 1, 0.5, 99.5, false).unwrap();
    assert_eq!(ledger.view().of(1).delay(), Some(89.5));
    assert!(matches!(ledger.now(None), Err(Error::InvalidTime { .. })));
}

#[test]
fn times_that_are_not_finite_are_refused() {
    let ledger = started(Clock::Seconds, 1);
    assert_eq!(ledger.now(Some(-2.5)), Ok(-2.5));
    for seconds in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
        let refused = ledger.now(Some(seconds));
        assert!(matches!(refused, Err(Error::InvalidTime { .. })));
    }
    let ledger = started(Clock::Iterations, 1);
    assert_eq!(ledger.now(Some(3.5)), Ok(1.0));
    let refused = ledger.now(Some(f64::INFINITY));
    assert!(matches!(refused, Err(Error::InvalidTime { .. })));
}

#[test]
fn all_data_of_a_started_trial_are_read_back() {
    let point = r#""point":{"numbers":[0.5]}"#;
    let rest = r#""fidelity":0.25,"attrs":"{\"a\":1}""#;
    let start = r#""context":[0.25],"expires_at":9.0"#;
    let texts = [
        format!(r#"{{"Enqueued":{{{point},{rest}}}}}"#),
        format!(r#"{{"Suggested":{{{point},{rest},{start},"queued":true}}}}"#),
        format!(r#"{{"Suggested":{{{point},{rest},{start},"queued":false,"note":"written"}}}}"#),
    ];
    let event = |text: String| Event::from_json(&format!(r#"{{"now":0.0,"what":{text}}}"#));
    let events = texts.map(|text| event(text).unwrap());
    let mut ledger = Ledger::in_unit_cube(Clock::Iterations, 1, 1);
    for event in &events {
        ledger.append(event.clone()).unwrap();
    }
    assert_eq!(ledger.events(0).collect::<Vec<_>>(), events);
    for (number, note) in [(0, None), (1, Some("written"))] {
        let trial = ledger.view().of(number);
        assert_eq!(
            (trial.fidelity(), trial.expires_at(), ledger.note(number)),
            (Some(0.25), Some(9.0), note.map(str::to_string))
        );
        assert_eq!(ledger.attrs(number), [r#"{"a":1}"#]);
        let row = (ledger.x(number), ledger.context(number));
        assert_eq!(row, (&[0.5][..], &[0.25][..]));
    }
    assert_eq!(
        (ledger.view().n_observed(), ledger.next_queued()),
        (0, None)
    );
    for number in [1, 0] {
        observe(&mut ledger, number, 1.0, 1.0, false).unwrap();
    }
    assert_eq!((ledger.view().n_observed(), ledger.best()), (2, Some(0)));
}

#[test]
fn refused_actions_leave_the_ledger_unchanged() {
    let mut ledger = started(Clock::Iterations, 2);
    observe(&mut ledger, 0, 1.0, 2.0, false).unwrap();
    let before = ledger.events(0).collect::<Vec<_>>();
    observe(&mut ledger, 0, 1.0, 7.0, false).unwrap(); // the same value has no effect
    for (result, expected) in [
        (
            observe(&mut ledger, 0, 2.0, 2.0, false),
            Error::AlreadyObserved {
                number: 0,
                value: 1.0,
            },
        ),
        (
            act(&mut ledger, Action::fail(0), 2.0),
            Error::AlreadyObserved {
                number: 0,
                value: 1.0,
            },
        ),
        (
            observe(&mut ledger, 1, f64::INFINITY, 2.0, false),
            Error::InvalidValue {
                name: "value",
                got: "inf".to_string(),
                what: "trial 1".to_string(),
                expected: "a finite number, or report a crash with fail".to_string(),
            },
        ),
        (
            act(&mut ledger, Action::abandon(2), 2.0),
            Error::UnknownTrial {
                number: 2,
                known: 2,
            },
        ),
    ] {
        assert_eq!(result, Err(expected));
    }
    assert!(
        act(
            &mut ledger,
            Action::add(point(0.0), vec![], Some(f64::NAN), None),
            2.0
        )
        .is_err()
    );
    assert_eq!(ledger.events(0).collect::<Vec<_>>(), before);
    assert_eq!(ledger.view().of(1).state(), State::Pending);
}

/// Returns the state, the value, the standard deviation and the arrival of a trial.
fn facts(ledger: &Ledger, number: usize) -> (State, Option<f64>, Option<f64>, Option<f64>) {
    let trial = ledger.view().of(number);
    (
        trial.state(),
        trial.value(),
        trial.std(),
        trial.observed_at(),
    )
}

#[test]
fn a_withdrawn_value_is_repeated_without_effect_and_replaced_by_another() {
    let mut ledger = started(Clock::Iterations, 2);
    let first = Action::observe(0, 54.0, Some(0.5), false);
    act(&mut ledger, first.clone(), 3.0).unwrap();
    observe(&mut ledger, 1, 1.0, 3.0, false).unwrap();
    act(&mut ledger, Action::withdraw(0), 7.0).unwrap();
    let withdrawn = (State::Withdrawn, None, None, Some(3.0));
    assert_eq!(facts(&ledger, 0), withdrawn);
    assert_eq!((ledger.view().n_observed(), ledger.best()), (1, Some(1)));
    // Reports that repeat the withdrawn value, and reports without a value, change nothing.
    for action in [
        first,
        Action::observe(0, 54.0, None, false),
        Action::abandon(0),
    ] {
        act(&mut ledger, action, 8.0).unwrap();
        assert_eq!(facts(&ledger, 0), withdrawn);
    }
    // Another value is accepted. It keeps the arrival of the first value, as an amended value does.
    observe(&mut ledger, 0, 2.0, 9.0, false).unwrap();
    assert_eq!(
        facts(&ledger, 0),
        (State::Observed, Some(2.0), None, Some(3.0))
    );
    assert_eq!((ledger.view().n_observed(), ledger.best()), (2, Some(0)));
    // The first value is still known as withdrawn, and can be restored.
    act(&mut ledger, Action::withdraw(0), 10.0).unwrap();
    observe(&mut ledger, 0, 54.0, 11.0, false).unwrap();
    assert_eq!(facts(&ledger, 0), withdrawn);
    observe(&mut ledger, 0, 54.0, 11.0, true).unwrap();
    assert_eq!(ledger.value(0), Some(54.0));
}

#[test]
fn a_withdrawn_failure_is_repeated_without_effect() {
    let mut ledger = started(Clock::Iterations, 2);
    let fail = |text| Action::Fail {
        outcome: None,
        number: 0,
        error: Some(failure(text)),
        duration: None,
        attrs: None,
    };
    act(&mut ledger, fail("power cut"), 3.0).unwrap();
    act(&mut ledger, Action::withdraw(0), 4.0).unwrap();
    for repeated in [fail("power cut"), Action::fail(0)] {
        act(&mut ledger, repeated, 5.0).unwrap();
        assert_eq!(ledger.view().of(0).state(), State::Withdrawn);
    }
    act(&mut ledger, fail("bad point"), 6.0).unwrap();
    assert_eq!(ledger.view().of(0).state(), State::Failed);
    // The value of a trial that failed before arrives now.
    act(&mut ledger, Action::withdraw(0), 7.0).unwrap();
    observe(&mut ledger, 0, 1.0, 8.0, false).unwrap();
    assert_eq!(
        facts(&ledger, 0),
        (State::Observed, Some(1.0), None, Some(8.0))
    );
}

#[test]
fn only_ended_trials_with_a_result_can_be_withdrawn() {
    let mut ledger = started(Clock::Iterations, 4);
    act(&mut ledger, Action::abandon(1), 2.0).unwrap();
    act(&mut ledger, Action::Stop { number: 2 }, 2.0).unwrap();
    act(&mut ledger, Action::withdraw(2), 2.0).unwrap();
    let before = ledger.len();
    for (number, state) in [(0, "pending"), (1, "abandoned"), (2, "withdrawn")] {
        let refused = act(&mut ledger, Action::withdraw(number), 3.0);
        assert_eq!(refused, Err(Error::NotWithdrawable { number, state }));
    }
    let unknown = act(&mut ledger, Action::withdraw(4), 3.0);
    assert_eq!(
        unknown,
        Err(Error::UnknownTrial {
            number: 4,
            known: 4
        })
    );
    assert_eq!(ledger.len(), before);
}

#[test]
fn amending_the_best_value_finds_the_new_best() {
    let mut ledger = started(Clock::Iterations, 3);
    for (number, value) in [(0, 1.0), (1, 3.0), (2, 2.0)] {
        observe(&mut ledger, number, value, 3.0, false).unwrap();
    }
    observe(&mut ledger, 1, 0.0, 3.0, true).unwrap();
    assert_eq!(ledger.best(), Some(2));
}

#[test]
fn the_first_of_equal_values_is_the_best_and_signed_zeros_are_equal() {
    let mut ledger = started(Clock::Iterations, 2);
    observe(&mut ledger, 0, -0.0, 2.0, false).unwrap();
    observe(&mut ledger, 1, 0.0, 2.0, false).unwrap();
    assert_eq!(ledger.best(), Some(0));
}

/// Random observations.
fn observations() -> impl Strategy<Value = Observation> {
    let amount = || prop::option::weighted(0.2, 0u8..4);
    let place = prop::option::weighted(0.3, 0u8..4);
    let attrs = prop::option::weighted(0.3, "[a-c]");
    let data = (-3i8..3, amount(), amount(), amount(), place, attrs);
    data.prop_map(|(value, std, cost, duration, place, key)| {
        Observation::new(value.into(), std.map(f64::from)).with(Data {
            cost: cost.map(f64::from),
            duration: duration.map(f64::from),
            point: place.map(|x| point(f64::from(x) / 4.0)),
            attrs: key.map(|key| format!("{{\"{key}\":1}}")),
            ..Data::default()
        })
    })
}

fn failure(text: &str) -> Failure {
    Failure {
        kind: "ValueError".to_string(),
        message: text.to_string(),
        traceback: None,
    }
}

/// The changes of whole trials by event number i.
fn changes_by(ledger: &Ledger, i: usize) -> Vec<Change> {
    ledger.view().changes(i).collect()
}

/// Whether two logs have equal results. A missing value is NaN.
fn same_entries(one: &Ledger, other: &Ledger) -> bool {
    format!("{:?}", one.results) == format!("{:?}", other.results)
}

/// The state, value, standard deviation and run point of a trial.
type Folded = (State, Option<f64>, Option<f64>, Option<Point>);

/// Returns the trials, computed from the changes alone.
fn folded(ledger: &Ledger) -> Vec<Folded> {
    let mut trials: Vec<Folded> = Vec::new();
    for Change { number, effect } in (0..ledger.len()).flat_map(|i| ledger.view().changes(i)) {
        if let Effect::Started { .. } = effect {
            assert_eq!(number, trials.len());
            trials.push((State::Pending, None, None, None));
        }
        let trial = &mut trials[number];
        match effect {
            Effect::Started { reading, .. } => {
                if let Some(Reading { value, std }) = reading {
                    *trial = (State::Observed, Some(value), std, None);
                }
            }
            Effect::Valued { reading, run } => {
                let run = run.or(trial.3.take());
                *trial = (State::Observed, Some(reading.value), reading.std, run);
            }
            Effect::Failed => trial.0 = State::Failed,
            Effect::Stopped => trial.0 = State::Stopped,
            Effect::Dropped => trial.0 = State::Abandoned,
            Effect::Withdrawn => *trial = (State::Withdrawn, None, None, trial.3.take()),
            Effect::Moved | Effect::Reported => {}
        }
    }
    trials
}

proptest! {
    /// The log that is replayed from the events equals the original log, and every trial is in exactly one state.
    #[test]
    fn replaying_the_log_gives_the_same_ledger(
        steps in prop::collection::vec((0u8..9, 0usize..12, observations()), 0..80),
    ) {
        let mut ledger = Ledger::in_unit_cube(Clock::Iterations, 1, 0);
        let mut started: Vec<Point> = Vec::new();
        let mut changes = Vec::new();
        for (kind, number, observation) in steps {
            let now = ledger.now(None).unwrap();
            let (reading, data) = (observation.readings[0].1, observation.data.clone());
            let (value, duration, attrs) = (reading.value, data.duration, data.attrs);
            match kind {
                0 => act(&mut ledger, Action::enqueue(point(value.abs() / 4.0)), now).unwrap(),
                1 | 6 => {
                    let again = [Again::Refuse, Again::Amend, Again::Replicate][number % 3];
                    act(&mut ledger, Action::Observe { number, observation, again }, now).ok();
                }
                2 => {
                    let error = (value > 0.0).then(|| failure("bad"));
                    act(&mut ledger, Action::Fail { outcome: None, number, error, duration, attrs }, now).ok();
                }
                3 => { act(&mut ledger, Action::abandon(number), now).ok(); }
                7 => { act(&mut ledger, Action::Stop { number }, now).ok(); }
                8 => { act(&mut ledger, Action::Withdraw { outcome: None, number, reason: attrs }, now).ok(); }
                4 => {
                    let observation = (value > 0.0).then_some(observation);
                    let add = Action::Add { point: point(0.75), context: vec![], fidelity: None, observation: observation.unwrap_or_default(), attrs };
                    act(&mut ledger, add, now).unwrap();
                }
                _ => {
                    let queued = ledger.next_queued().map(|next| next.point.clone());
                    let (is_queued, at) = (queued.is_some(), queued.unwrap_or(point(0.5)));
                    suggest(&mut ledger, at, now, is_queued);
                }
            }
            changes.extend((changes.len()..ledger.len()).map(|i| changes_by(&ledger, i)));
            // If a trial was run at another point, the start point of the trial is kept.
            for number in started.len()..ledger.trials().len() {
                started.push(ledger.started_point(number));
            }
            for (number, at) in started.iter().enumerate() {
                prop_assert_eq!(&ledger.started_point(number), at);
                prop_assert!(ledger.run_point(number).is_none_or(|run| run == ledger.point(number)));
            }
        }
        // Later events do not alter the change by an event.
        prop_assert_eq!(changes, (0..ledger.len()).map(|i| changes_by(&ledger, i)).collect::<Vec<_>>());
        for (number, folded) in folded(&ledger).into_iter().enumerate() {
            let trial = ledger.view().of(number);
            prop_assert_eq!(folded, (trial.state(), trial.value(), trial.std(), ledger.run_point(number)));
        }
        let texts: Result<Vec<_>> = ledger.events(0).map(|event| event.to_json()).collect();
        let events: Result<Vec<_>> = texts.unwrap().iter().map(|text| Event::from_json(text)).collect();
        let again = replay(events.unwrap().into_iter()).unwrap();
        prop_assert!(again.events == ledger.events && again.rows == ledger.rows);
        prop_assert!(again.trials() == ledger.trials() && same_entries(&again, &ledger));
        prop_assert_eq!(again.best(), ledger.best());
        prop_assert_eq!(again.best(), best_of_all(&again));
        prop_assert_eq!(again.next_queued(), ledger.next_queued());
        let pending: BTreeSet<_> = ledger.view().pending().collect();
        prop_assert!(again.view().pending().eq(pending.iter().copied()));
        for (number, trial) in ledger.view().trials().enumerate() {
            prop_assert_eq!(trial.state() == State::Pending, pending.contains(&number));
            prop_assert_eq!(trial.state() == State::Observed, trial.value().is_some());
            prop_assert_eq!(trial.state() == State::Pending, trial.ended_at().is_none());
        }
    }
}

#[test]
fn suggestions_with_invalid_points_contexts_or_notes_are_refused() {
    let mut ledger = started(Clock::Iterations, 1);
    act(&mut ledger, Action::enqueue(point(0.25)), 1.0).unwrap();
    let note = Some("{}".to_string());
    for (at, context, queued, note) in [
        (Point::at(&[0.1, 0.2]), vec![], false, None),
        (point(0.5), vec![1.0], false, None),
        (point(0.5), vec![], true, None),
        (point(0.25), vec![], true, note),
        (Point::Candidate(0), vec![], false, None),
        (point(1.5), vec![], false, None),
        (Point::Numbers(vec![None]), vec![], false, None),
    ] {
        let event = Event {
            at: None,
            by: None,
            now: 1.0,
            what: What::Suggested(Suggested {
                point: at,
                context,
                fidelity: None,
                expires_at: None,
                queued,
                note,
                attrs: None,
            }),
        };
        let refused = ledger.append(event);
        assert!(matches!(
            refused,
            Err(Error::Corrupt(_) | Error::InvalidPoint(_) | Error::InvalidContext(_))
        ));
    }
}

#[test]
fn a_trial_fits_in_64_bytes() {
    assert!(size_of::<Trial>() + size_of::<super::results::Stored>() <= 64);
}

#[test]
fn notes_add_attributes_and_remarks_that_are_not_known() {
    let mut ledger = Ledger::new(Arc::new(
        Problem::unit_cube(1, 0, Clock::Iterations).unwrap(),
    ));
    act(
        &mut ledger,
        Action::add(point(0.5), vec![], None, None),
        0.0,
    )
    .unwrap();
    let note = |attrs: Option<&str>, remark: Option<&str>| {
        Action::Note(Noted {
            trial: 0,
            attrs: attrs.map(str::to_string),
            remark: remark.map(str::to_string),
            confirms: None,
        })
    };
    let mut n_events = ledger.len();
    for (attrs, remark, is_news) in [
        (Some(r#"{"a":1,"b":[2]}"#), None, true),
        (Some(r#"{"b":[2]}"#), None, false),
        (Some(r#"{"b":[3]}"#), Some("cloudy"), true),
        (Some("{}"), Some("cloudy"), false),
        (None, Some("clear"), true),
        (None, Some("cloudy"), true),
        (None, None, false),
    ] {
        act(&mut ledger, note(attrs, remark), 1.0).unwrap();
        n_events += usize::from(is_news);
        assert_eq!(ledger.len(), n_events, "{attrs:?} {remark:?}");
    }
    assert_eq!(ledger.attrs(0), [r#"{"a":1,"b":[2]}"#, r#"{"b":[3]}"#]);
    let texts: Vec<String> = ledger.remarks(0).into_iter().map(|it| it.0).collect();
    assert_eq!(texts, ["cloudy", "clear", "cloudy"]);
    assert!(act(&mut ledger, note(Some("[1]"), None), 1.0).is_err());
    // An acknowledgement is a note that changes nothing, and is valid in stored logs.
    let acknowledge = Action::Acknowledge { number: 0 };
    act(&mut ledger, acknowledge, 1.0).unwrap();
    assert_eq!(ledger.len(), n_events + 1);
    assert!(ledger.has_attrs(0, r#"{"a":1,"b":[3]}"#) && ledger.remarks(0).len() == 3);
    let unknown = Action::Acknowledge { number: 1 };
    assert!(matches!(
        act(&mut ledger, unknown, 1.0),
        Err(Error::UnknownTrial { .. })
    ));
    let empty = Event {
        at: None,
        by: None,
        now: 1.0,
        what: What::Noted(Noted {
            trial: 0,
            attrs: None,
            remark: None,
            confirms: None,
        }),
    };
    assert!(matches!(ledger.append(empty), Err(Error::Corrupt(_))));
}
