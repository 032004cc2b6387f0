//! Tests of the data reported with values and failures.

use super::*;

#[test]
fn a_value_belongs_to_the_point_where_the_trial_was_run() {
    let mut ledger = started(Clock::Iterations, 2);
    let plain = |value| Observation::new(value, None);
    let run = |value, x| plain(value).run_at(point(x));
    let report = |number, observation, again| Action::Observe {
        number,
        observation,
        again,
    };
    let (same, amend) = (Again::Refuse, Again::Amend);
    act(&mut ledger, report(0, run(1.0, 0.25), same), 2.0).unwrap();
    assert_eq!((ledger.x(0), ledger.x(1)), (&[0.25][..], &[0.125][..]));
    assert_eq!(ledger.started_point(0), point(0.0));
    assert_eq!(ledger.run_point(1), None);
    let n = ledger.len();
    // The same value has no effect if it is reported at the same point or without a point. At another point, the same
    // value is a new report.
    act(&mut ledger, report(0, run(1.0, 0.25), same), 2.0).unwrap();
    observe(&mut ledger, 0, 1.0, 2.0, true).unwrap();
    let refused = act(&mut ledger, report(0, run(1.0, 0.5), same), 2.0);
    assert!(matches!(refused, Err(Error::AlreadyObserved { .. })));
    assert_eq!(ledger.len(), n);
    // An amendment without a point keeps the earlier point.
    observe(&mut ledger, 0, 3.0, 2.0, true).unwrap();
    assert_eq!(ledger.x(0), [0.25]);
    act(&mut ledger, report(0, run(3.0, 0.0), amend), 2.0).unwrap();
    assert_eq!(ledger.x(0), [0.0]);
    // A replicate is a new trial at the point where the original trial was run.
    act(&mut ledger, report(0, run(3.0, 0.75), amend), 2.0).unwrap();
    act(&mut ledger, report(0, plain(4.0), Again::Replicate), 2.0).unwrap();
    act(&mut ledger, report(0, run(5.0, 0.5), Again::Replicate), 2.0).unwrap();
    assert_eq!((ledger.x(2), ledger.x(3)), (&[0.75][..], &[0.5][..]));
    assert_eq!(ledger.view().of(3).value(), Some(5.0));
    assert_eq!(ledger.best(), Some(3));
}

#[test]
fn a_failure_keeps_its_error_after_later_events() {
    let fail = |error: Option<&str>| Action::Fail {
        outcome: None,
        duration: None,
        number: 0,
        error: error.map(failure),
        attrs: error.map(|text| format!("{{\"{text}\":1}}")),
    };
    let mut ledger = started(Clock::Iterations, 1);
    act(&mut ledger, fail(None), 1.0).unwrap();
    // The error may be reported once after the failure.
    act(&mut ledger, fail(Some("first")), 2.0).unwrap();
    // Only the attributes of a later error are stored.
    act(&mut ledger, fail(Some("second")), 3.0).unwrap();
    assert_eq!(ledger.len(), 4);
    assert_eq!(ledger.view().of(0).error(), Some(&failure("first")));
    assert_eq!(ledger.view().of(0).ended_at(), Some(1.0));
    act(&mut ledger, Action::abandon(0), 4.0).unwrap();
    act(&mut ledger, fail(Some("third")), 5.0).unwrap();
    observe(&mut ledger, 0, 1.0, 6.0, false).unwrap();
    let trial = ledger.view().of(0);
    assert_eq!(trial.error(), Some(&failure("third")));
    let attrs = ledger.attrs(0);
    assert_eq!(
        attrs,
        ["first", "second", "third"].map(|text| format!("{{\"{text}\":1}}"))
    );
    assert_eq!((trial.ended_at(), trial.delay()), (Some(6.0), Some(6.0)));
}

#[test]
fn amending_a_value_replaces_the_noise_and_keeps_the_cost() {
    let report = |value, std, cost, duration| Action::Observe {
        number: 0,
        observation: Observation::new(value, std).with(Data {
            cost,
            duration,
            ..Data::default()
        }),
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
    let trial = ledger.view().of(0);
    assert_eq!(
        (trial.std(), trial.cost(), trial.duration()),
        (None, Some(2.0), Some(4.0))
    );
}

#[test]
fn the_fields_of_a_report_are_checked() {
    let mut ledger = started(Clock::Iterations, 1);
    let report = |change: fn(&mut Observation)| {
        let mut report = Observation::new(1.0, None);
        change(&mut report);
        report
    };
    let deep = || format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
    for (bad, check) in [
        (
            report(|r| r.readings[0].1.std = Some(-1.0)),
            (|e| matches!(e, Error::InvalidValue { name: "std", .. })) as fn(&Error) -> bool,
        ),
        (report(|r| r.data.cost = Some(-1.0)), |e| {
            matches!(e, Error::InvalidValue { name: "cost", .. })
        }),
        (report(|r| r.data.cost = Some(f64::NAN)), |e| {
            matches!(e, Error::InvalidValue { name: "cost", .. })
        }),
        (report(|r| r.data.duration = Some(f64::INFINITY)), |e| {
            matches!(
                e,
                Error::InvalidValue {
                    name: "duration",
                    ..
                }
            )
        }),
        (report(|r| r.data.attrs = Some("[]".to_string())), |e| {
            matches!(e, Error::InvalidAttrs(_))
        }),
        (
            report(|r| r.data.attrs = Some("{\"a\":NaN}".to_string())),
            |e| matches!(e, Error::InvalidAttrs(_)),
        ),
        (
            Observation::new(0.0, None).with(Data {
                attrs: Some(deep()),
                ..Data::default()
            }),
            |e| matches!(e, Error::InvalidAttrs(_)),
        ),
    ] {
        let observe = Action::Observe {
            number: 0,
            observation: bad.clone(),
            again: Again::Refuse,
        };
        let add = Action::Add {
            point: point(0.5),
            context: vec![],
            fidelity: None,
            observation: bad,
            attrs: None,
        };
        for action in [observe, add] {
            let refused = act(&mut ledger, action, 1.0).unwrap_err();
            assert!(check(&refused), "{refused}");
        }
    }
    let fail = Action::Fail {
        outcome: None,
        duration: None,
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
fn the_same_value_with_different_data_is_a_new_report() {
    let known = Observation::new(1.0, Some(0.5)).with(Data {
        cost: Some(2.0),
        duration: Some(3.0),
        point: Some(point(0.25)),
        ..Data::default()
    });
    let report = |change: fn(&mut Observation)| {
        let mut report = known.clone();
        change(&mut report);
        report
    };
    let mut ledger = started(Clock::Iterations, 1);
    let observe = |observation, again| Action::Observe {
        number: 0,
        observation,
        again,
    };
    act(&mut ledger, observe(known.clone(), Again::Refuse), 1.0).unwrap();
    let n = ledger.len();
    // Repeating a report, a part of it, or its attributes has no effect.
    for repeated in [
        known.clone(),
        Observation::new(1.0, None),
        report(|r| r.readings[0].1.std = None),
        report(|r| r.data.cost = None),
        report(|r| r.data.duration = None),
        report(|r| r.data.point = None),
        report(|r| r.data.attrs = Some("{}".to_string())),
    ] {
        for again in [Again::Refuse, Again::Amend] {
            act(&mut ledger, observe(repeated.clone(), again), 1.0).unwrap();
        }
    }
    assert_eq!(ledger.len(), n);
    for other in [
        report(|r| r.readings[0].1.std = Some(0.25)),
        report(|r| r.data.cost = Some(0.0)),
        report(|r| r.data.duration = Some(0.0)),
        report(|r| r.data.point = Some(point(0.5))),
    ] {
        let refused = act(&mut ledger, observe(other, Again::Refuse), 1.0);
        assert!(matches!(refused, Err(Error::AlreadyObserved { .. })));
    }
}

#[test]
fn a_run_point_changes_neither_the_context_nor_other_trials() {
    let mut ledger = Ledger::in_unit_cube(Clock::Iterations, 2, 1);
    for number in 0..3 {
        let x = f64::from(number) / 4.0;
        let add = Action::add(Point::at(&[x, x + 0.25]), vec![x], None, None);
        act(&mut ledger, add, 0.0).unwrap();
    }
    let moved = Action::Observe {
        number: 1,
        observation: Observation::new(1.0, None).run_at(Point::at(&[0.0, 1.0])),
        again: Again::Refuse,
    };
    act(&mut ledger, moved, 1.0).unwrap();
    let rows: Vec<_> = (0..3).map(|number| ledger.row(number).to_vec()).collect();
    assert_eq!(rows, [[0.0, 0.25, 0.0], [0.0, 1.0, 0.25], [0.5, 0.75, 0.5]]);
    assert_eq!(ledger.started_point(1), Point::at(&[0.25, 0.5]));
    assert_eq!(ledger.started_x(1).unwrap()[..], [0.25, 0.5]);
    assert_eq!(ledger.run_point(1), Some(Point::at(&[0.0, 1.0])));
}

#[test]
fn an_added_trial_keeps_its_observation_at_the_point_where_it_was_run() {
    let full = Observation::new(1.0, Some(0.5)).with(Data {
        cost: Some(2.0),
        duration: Some(3.0),
        point: Some(point(0.75)),
        attrs: Some(r#"{"b":2}"#.to_string()),
        ..Data::default()
    });
    let mut ledger = Ledger::in_unit_cube(Clock::Iterations, 1, 0);
    for observation in [Some(full.clone()), None] {
        let add = Action::Add {
            point: point(0.25),
            context: vec![],
            fidelity: Some(0.125),
            observation: observation.unwrap_or_default(),
            attrs: Some(r#"{"a":1}"#.to_string()),
        };
        act(&mut ledger, add, 0.0).unwrap();
    }
    let data = |number: usize| {
        let trial = ledger.view().of(number);
        (trial.std(), trial.cost(), trial.duration())
    };
    assert_eq!(
        data(0),
        (full.readings[0].1.std, full.data.cost, full.data.duration)
    );
    assert_eq!(data(1), (None, None, None));
    let attrs = |number: usize| ledger.attrs(number);
    assert_eq!(attrs(0), [r#"{"a":1}"#, r#"{"b":2}"#]);
    assert_eq!(attrs(1), [r#"{"a":1}"#]);
    assert_eq!((ledger.x(0), ledger.x(1)), (&[0.75][..], &[0.25][..]));
    assert_eq!(ledger.run_point(0), None);
    assert!(
        ledger
            .trials()
            .iter()
            .all(|trial| trial.fidelity() == Some(0.125))
    );
}

#[test]
fn trials_have_the_wall_clock_times_of_their_events() {
    let mut ledger = started(Clock::Iterations, 1);
    let steps = [
        (Action::add(point(0.5), vec![], None, None), Some(10.0)),
        (Action::fail(1), Some(12.0)),
        (Action::observe(1, 1.0, None, false), Some(15.0)),
        (Action::observe(1, 2.0, None, true), Some(19.0)),
        (Action::observe(0, 1.0, None, false), None),
    ];
    for (action, at) in steps {
        let event = ledger.validate(action, 1.0, at).unwrap().unwrap();
        assert_eq!(event.at, at);
        ledger.append(event).unwrap();
    }
    let times = |number| (ledger.started_at(number), ledger.view().finished_at(number));
    assert_eq!(times(1), (Some(10.0), Some(15.0)));
    assert_eq!(times(0), (None, None));
    let all: Vec<_> = ledger.events(0).map(|event| event.at).collect();
    let expected = [None, Some(10.0), Some(12.0), Some(15.0), Some(19.0), None];
    assert_eq!(all, expected);
    assert_eq!(replay(ledger.events(0)).unwrap().trials(), ledger.trials());
}
