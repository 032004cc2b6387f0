//! Tests of the log and its views.

use super::*;
use proptest::prelude::*;

/// The ledger that these events lead to.
fn replay(events: impl Iterator<Item = Event>) -> Result<Ledger> {
    let mut ledger = Ledger::new(Clock::Iterations, 1, 0);
    for event in events {
        ledger.append(event)?;
    }
    Ok(ledger)
}

/// The best trial, found among all of them.
fn best_of_all(ledger: &Ledger) -> Option<TrialNumber> {
    let mut best: Option<(TrialNumber, f64)> = None;
    for (number, trial) in ledger.trials().iter().enumerate() {
        if let Some(value) = trial.value
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
        .validate(action, now)?
        .map_or(Ok(()), |event| ledger.append(event))
}

fn observe(ledger: &mut Ledger, number: usize, value: f64, now: f64, amend: bool) -> Result<()> {
    act(ledger, Action::observe(number, value, None, amend), now)
}

fn suggest(ledger: &mut Ledger, point: Point, now: f64, queued: bool) {
    let event = Event::Suggested {
        point,
        context: vec![],
        now,
        fidelity: None,
        note: None,
        attrs: None,
        queued,
        expires_at: None,
    };
    ledger.append(event).unwrap();
}

fn started(clock: Clock, n: usize) -> Ledger {
    let mut ledger = Ledger::new(clock, 1, 0);
    for k in 0..n {
        let now = ledger.now(Some(10.0 * k as f64)).unwrap();
        suggest(&mut ledger, point(k as f64), now, false);
    }
    ledger
}

fn point(x: f64) -> Point {
    Point::new(vec![x], None)
}

#[test]
fn a_value_is_accepted_from_every_state() {
    let mut ledger = started(Clock::Iterations, 3);
    act(&mut ledger, Action::fail(1), 3.0).unwrap();
    act(&mut ledger, Action::Abandon { number: 2 }, 3.0).unwrap();
    for number in 0..3 {
        observe(&mut ledger, number, number as f64, 3.0, false).unwrap();
        assert_eq!(ledger.trial(number).unwrap().state, State::Observed);
    }
    assert_eq!(ledger.best(), Some(2));
    assert!(ledger.pending().is_empty());
}

#[test]
fn delays_count_suggestions_or_seconds() {
    let mut ledger = started(Clock::Iterations, 5);
    observe(&mut ledger, 4, 0.5, 5.0, false).unwrap();
    observe(&mut ledger, 1, 0.5, 5.0, false).unwrap();
    assert_eq!(ledger.trial(4).unwrap().delay(), Some(1.0));
    assert_eq!(ledger.trial(1).unwrap().delay(), Some(4.0));
    let mut ledger = started(Clock::Seconds, 2);
    observe(&mut ledger, 1, 0.5, 99.5, false).unwrap();
    assert_eq!(ledger.trial(1).unwrap().delay(), Some(89.5));
    assert!(matches!(ledger.now(None), Err(Error::InvalidTime { .. })));
}

#[test]
fn refusals_leave_the_ledger_as_it_was() {
    let mut ledger = started(Clock::Iterations, 2);
    observe(&mut ledger, 0, 1.0, 2.0, false).unwrap();
    let before = ledger.events(0).collect::<Vec<_>>();
    observe(&mut ledger, 0, 1.0, 7.0, false).unwrap(); // the same again: nothing happens
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
                number: 1,
                got: f64::INFINITY,
            },
        ),
        (
            act(&mut ledger, Action::Abandon { number: 2 }, 2.0),
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
    assert_eq!(ledger.trial(1).unwrap().state, State::Pending);
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

/// What comes with a value, by chance.
fn reports() -> impl Strategy<Value = Report> {
    let amount = || prop::option::weighted(0.2, 0u8..4);
    let place = prop::option::weighted(0.3, (0u8..4, any::<bool>()));
    let attrs = prop::option::weighted(0.3, "[a-c]");
    (amount(), amount(), amount(), place, attrs).prop_map(|(std, cost, duration, place, key)| {
        Report {
            std: std.map(f64::from),
            cost: cost.map(f64::from),
            duration: duration.map(f64::from),
            point: place.map(|(x, given)| Point {
                given: given.then(|| vec![f64::from(x)]),
                ..point(f64::from(x) / 4.0)
            }),
            attrs: key.map(|key| format!("{{\"{key}\":1}}")),
        }
    })
}

fn failure(text: &str) -> Failure {
    Failure {
        kind: "ValueError".to_string(),
        message: text.to_string(),
        traceback: None,
    }
}

proptest! {
    /// State = log: replaying the events gives the same views, and every trial is in exactly one state.
    #[test]
    fn replaying_the_log_gives_the_same_ledger(
        steps in prop::collection::vec((0u8..7, 0usize..12, -3i8..3, reports()), 0..80),
    ) {
        let mut ledger = Ledger::new(Clock::Iterations, 1, 0);
        let mut started: Vec<Point> = Vec::new();
        for (kind, number, value, report) in steps {
            let now = ledger.now(None).unwrap();
            let text = report.attrs.clone();
            match kind {
                0 => act(&mut ledger, Action::enqueue(point(value.into())), now).unwrap(),
                1 | 6 => {
                    let again = [Again::Refuse, Again::Amend, Again::Replicate][number % 3];
                    act(&mut ledger, Action::Observe { number, value: value.into(), report, again }, now).ok();
                }
                2 => {
                    let error = (value > 0).then(|| failure("bad"));
                    act(&mut ledger, Action::Fail { number, error, attrs: text }, now).ok();
                }
                3 => { act(&mut ledger, Action::Abandon { number }, now).ok(); }
                4 => {
                    let value = (value > 0).then_some(value.into());
                    let add = Action::Add { point: point(0.75), context: vec![], fidelity: None, value, report };
                    act(&mut ledger, add, now).unwrap();
                }
                _ => {
                    let queued = ledger.next_queued().map(|next| next.point.clone());
                    let (is_queued, at) = (queued.is_some(), queued.unwrap_or(point(0.5)));
                    suggest(&mut ledger, at, now, is_queued);
                }
            }
            // Wherever a trial was run, it stays on record where it was started.
            for number in started.len()..ledger.trials().len() {
                started.push(ledger.started_point(number));
            }
            for (number, at) in started.iter().enumerate() {
                prop_assert_eq!(&ledger.started_point(number), at);
                prop_assert!(ledger.run_point(number).is_none_or(|run| run == ledger.point(number)));
            }
        }
        let texts: Result<Vec<_>> = ledger.events(0).map(|event| event.to_json()).collect();
        let events: Result<Vec<_>> = texts.unwrap().iter().map(|text| Event::from_json(text)).collect();
        let again = replay(events.unwrap().into_iter()).unwrap();
        prop_assert!(again.entries() == ledger.entries() && again.rows == ledger.rows);
        prop_assert_eq!(again.trials(), ledger.trials());
        prop_assert_eq!(again.best(), ledger.best());
        prop_assert_eq!(again.best(), best_of_all(&again));
        prop_assert_eq!(again.next_queued(), ledger.next_queued());
        prop_assert_eq!(again.pending(), ledger.pending());
        for (number, trial) in ledger.trials().iter().enumerate() {
            prop_assert_eq!(trial.state == State::Pending, ledger.pending().contains(&number));
            prop_assert_eq!(trial.state == State::Observed, trial.value.is_some());
            prop_assert_eq!(trial.state == State::Pending, trial.ended_at.is_none());
        }
    }
}

#[test]
fn a_value_is_learnt_where_the_trial_was_run() {
    let mut ledger = started(Clock::Iterations, 2);
    let run = |x| Report {
        point: Some(point(x)),
        ..Report::default()
    };
    let report = |number, value, report, again| Action::Observe {
        number,
        value,
        report,
        again,
    };
    let (same, amend) = (Again::Refuse, Again::Amend);
    act(&mut ledger, report(0, 1.0, run(0.25), same), 2.0).unwrap();
    assert_eq!((ledger.x(0), ledger.x(1)), (&[0.25][..], &[1.0][..]));
    assert_eq!(ledger.started_point(0), point(0.0));
    assert_eq!(ledger.run_point(1), None);
    let n = ledger.len();
    // The same value there, or without saying where, changes nothing; elsewhere it is another report.
    act(&mut ledger, report(0, 1.0, run(0.25), same), 2.0).unwrap();
    observe(&mut ledger, 0, 1.0, 2.0, true).unwrap();
    let refused = act(&mut ledger, report(0, 1.0, run(0.5), same), 2.0);
    assert!(matches!(refused, Err(Error::AlreadyObserved { .. })));
    assert_eq!(ledger.len(), n);
    // Without a point an amended value stays there.
    observe(&mut ledger, 0, 3.0, 2.0, true).unwrap();
    assert_eq!(ledger.x(0), [0.25]);
    act(&mut ledger, report(0, 3.0, run(0.0), amend), 2.0).unwrap();
    assert_eq!(ledger.x(0), [0.0]);
    // A replicate is a trial of its own, where the first was run.
    act(&mut ledger, report(0, 3.0, run(0.75), amend), 2.0).unwrap();
    act(
        &mut ledger,
        report(0, 4.0, Report::default(), Again::Replicate),
        2.0,
    )
    .unwrap();
    act(&mut ledger, report(0, 5.0, run(0.5), Again::Replicate), 2.0).unwrap();
    assert_eq!((ledger.x(2), ledger.x(3)), (&[0.75][..], &[0.5][..]));
    assert_eq!(ledger.trials()[3].value, Some(5.0));
    assert_eq!(ledger.best(), Some(3));
}

#[test]
fn a_failure_keeps_its_error_whatever_comes_later() {
    let fail = |error: Option<&str>| Action::Fail {
        number: 0,
        error: error.map(failure),
        attrs: error.map(|text| format!("{{\"{text}\":1}}")),
    };
    let mut ledger = started(Clock::Iterations, 1);
    act(&mut ledger, fail(None), 1.0).unwrap();
    // What went wrong may become known later, once.
    act(&mut ledger, fail(Some("first")), 2.0).unwrap();
    act(&mut ledger, fail(Some("second")), 3.0).unwrap();
    assert_eq!(ledger.len(), 3);
    assert_eq!(ledger.trials()[0].ended_at, Some(1.0));
    act(&mut ledger, Action::Abandon { number: 0 }, 4.0).unwrap();
    act(&mut ledger, fail(Some("third")), 5.0).unwrap();
    observe(&mut ledger, 0, 1.0, 6.0, false).unwrap();
    let trial = &ledger.trials()[0];
    assert_eq!(trial.error(), Some(&failure("third")));
    let attrs: Vec<_> = trial.attrs().collect();
    assert_eq!(attrs, [r#"{"first":1}"#, r#"{"third":1}"#]);
    assert_eq!((trial.ended_at, trial.delay()), (Some(6.0), Some(6.0)));
}

#[test]
fn an_amended_value_has_its_own_noise_and_the_cost_stays() {
    let report = |value, std, cost, duration| Action::Observe {
        number: 0,
        value,
        report: Report {
            std,
            cost,
            duration,
            ..Report::default()
        },
        again: Again::Amend,
    };
    let mut ledger = started(Clock::Iterations, 1);
    act(
        &mut ledger,
        report(1.0, Some(0.5), Some(2.0), Some(3.0)),
        1.0,
    )
    .unwrap();
    act(&mut ledger, report(2.0, None, None, Some(4.0)), 1.0).unwrap();
    let trial = &ledger.trials()[0];
    assert_eq!(
        (trial.std(), trial.cost(), trial.duration()),
        (None, Some(2.0), Some(4.0))
    );
}

#[test]
fn what_comes_with_a_report_is_checked() {
    let mut ledger = started(Clock::Iterations, 1);
    let report = |change: fn(&mut Report)| {
        let mut report = Report::default();
        change(&mut report);
        report
    };
    let deep = || format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
    for (bad, check) in [
        (
            report(|r| r.std = Some(-1.0)),
            (|e| matches!(e, Error::InvalidDeviation { .. })) as fn(&Error) -> bool,
        ),
        (report(|r| r.cost = Some(-1.0)), |e| {
            matches!(e, Error::InvalidCost { .. })
        }),
        (report(|r| r.cost = Some(f64::NAN)), |e| {
            matches!(e, Error::InvalidCost { .. })
        }),
        (report(|r| r.duration = Some(f64::INFINITY)), |e| {
            matches!(e, Error::InvalidDuration { .. })
        }),
        (report(|r| r.attrs = Some("[]".to_string())), |e| {
            matches!(e, Error::InvalidAttrs(_))
        }),
        (report(|r| r.attrs = Some("{\"a\":NaN}".to_string())), |e| {
            matches!(e, Error::InvalidAttrs(_))
        }),
        (
            Report {
                attrs: Some(deep()),
                ..Report::default()
            },
            |e| matches!(e, Error::InvalidAttrs(_)),
        ),
    ] {
        let observe = Action::Observe {
            number: 0,
            value: 1.0,
            report: bad.clone(),
            again: Again::Refuse,
        };
        let add = Action::Add {
            point: point(0.5),
            context: vec![],
            fidelity: None,
            value: Some(1.0),
            report: bad,
        };
        for action in [observe, add] {
            let refused = act(&mut ledger, action, 1.0).unwrap_err();
            assert!(check(&refused), "{refused}");
        }
    }
    let fail = Action::Fail {
        number: 0,
        error: None,
        attrs: Some("null".to_string()),
    };
    assert!(matches!(
        act(&mut ledger, fail, 1.0),
        Err(Error::InvalidAttrs(_))
    ));
    assert_eq!(ledger.len(), 1);
}

#[test]
fn events_that_could_not_have_happened_are_refused() {
    let value = |number, value| Event::Observed {
        number,
        value,
        std: None,
        cost: None,
        duration: None,
        point: None,
        attrs: None,
        now: 2.0,
    };
    let with = |report: Report| Event::Observed {
        number: 1,
        value: 1.0,
        std: report.std,
        cost: report.cost,
        duration: report.duration,
        point: report.point,
        attrs: report.attrs,
        now: 2.0,
    };
    let plain = Report::default;
    let mut ledger = started(Clock::Iterations, 2);
    observe(&mut ledger, 0, 1.0, 2.0, false).unwrap();
    let possible = ledger.events(0).collect::<Vec<_>>();
    let replayed = |event| {
        let events = [possible.clone(), vec![event]].concat();
        replay(events.into_iter()).map(|_| ())
    };
    let amended = |number, std, point| Event::Amended {
        number,
        value: 1.0,
        std,
        cost: None,
        duration: None,
        point,
        attrs: None,
    };
    assert_eq!(replayed(value(1, 1.0)), Ok(()));
    for event in [
        value(0, 2.0),
        value(1, f64::NAN),
        amended(1, None, None),
        amended(0, Some(-1.0), None),
        amended(0, None, Some(Point::new(vec![0.5, 0.5], None))),
        with(Report {
            std: Some(f64::INFINITY),
            ..plain()
        }),
        with(Report {
            cost: Some(-1.0),
            ..plain()
        }),
        with(Report {
            duration: Some(-1.0),
            ..plain()
        }),
        with(Report {
            point: Some(Point::new(vec![], None)),
            ..plain()
        }),
        with(Report {
            attrs: Some("1".to_string()),
            ..plain()
        }),
        with(Report {
            attrs: Some(String::new()),
            ..plain()
        }),
        Event::Failed {
            number: 0,
            now: 2.0,
            error: None,
            attrs: None,
        },
        Event::Failed {
            number: 1,
            now: 2.0,
            error: None,
            attrs: Some("[]".to_string()),
        },
        Event::Suggested {
            point: point(0.0),
            context: vec![],
            now: 2.0,
            fidelity: None,
            note: None,
            attrs: None,
            queued: true,
            expires_at: None,
        },
        Event::Added {
            point: point(0.0),
            context: vec![],
            fidelity: None,
            attrs: None,
            value: None,
            std: None,
            cost: None,
            duration: None,
            now: f64::INFINITY,
        },
        Event::Added {
            point: point(0.0),
            context: vec![],
            fidelity: None,
            attrs: None,
            value: None,
            std: Some(1.0),
            cost: None,
            duration: None,
            now: 2.0,
        },
    ] {
        assert!(matches!(replayed(event), Err(Error::Corrupt(_))));
    }
    assert!(matches!(
        replayed(value(2, 1.0)),
        Err(Error::UnknownTrial { .. })
    ));
}

#[test]
fn truncated_drafts_leave_no_trace() {
    let mut ledger = started(Clock::Iterations, 3);
    observe(&mut ledger, 1, 0.5, 3.0, false).unwrap();
    act(&mut ledger, Action::enqueue(point(0.25)), 3.0).unwrap();
    let before = ledger.clone();
    let queued = ledger.next_queued().unwrap().point.clone();
    suggest(&mut ledger, queued, 3.0, true);
    suggest(&mut ledger, point(0.75), 4.0, false);
    assert_eq!(ledger.pending().len(), 4);
    ledger.truncate(before.len());
    assert_eq!(ledger.entries(), before.entries());
    assert_eq!(ledger.trials(), before.trials());
    assert_eq!(ledger.rows, before.rows);
    assert_eq!(ledger.pending(), before.pending());
    assert_eq!(ledger.next_queued(), before.next_queued());
    assert_eq!(ledger.now(None), before.now(None));
    // An observation is no draft.
    ledger.truncate(0);
    assert_eq!(ledger.len(), before.len());
}

#[test]
fn points_of_another_width_or_out_of_turn_are_refused() {
    let mut ledger = started(Clock::Iterations, 1);
    act(&mut ledger, Action::enqueue(point(0.25)), 1.0).unwrap();
    let note = Some("{}".to_string());
    for (at, context, queued, note) in [
        (Point::new(vec![0.1, 0.2], None), vec![], false, None),
        (point(0.5), vec![1.0], false, None),
        (point(0.5), vec![], true, None),
        (point(0.25), vec![], true, note),
        (Point::new(vec![0.1], Some(1 << 40)), vec![], false, None),
    ] {
        let event = Event::Suggested {
            point: at,
            context,
            fidelity: None,
            now: 1.0,
            expires_at: None,
            queued,
            note,
            attrs: None,
        };
        assert!(matches!(ledger.append(event), Err(Error::Corrupt(_))));
    }
}

#[test]
fn a_trial_fits_in_64_bytes_and_an_entry_in_32() {
    assert!(size_of::<Trial>() <= 64 && size_of::<Entry>() <= 32);
}
