//! Tests of the rules for valid events, and of the trial number and the point of an event.

use super::*;

#[test]
fn an_event_that_violates_one_condition_is_refused() {
    let start =
        r#"{"Suggested":{"point":{"numbers":[0.5]},"context":[0.25],"now":0.0,"queued":false}}"#;
    let value = r#"{"Observed":{"number":0,"observation":{"reading":{"value":1.0}},"now":1.0}}"#;
    let mut ledger = Ledger::in_unit_cube(Clock::Iterations, 1, 1);
    for text in [start, value, start] {
        ledger.append(Event::from_json(text).unwrap()).unwrap();
    }
    let before = ledger.events(0).collect::<Vec<_>>();
    let (nan, bad) = (Some(f64::NAN), || Some("1".to_string()));
    let wide = || Point::at(&[0.5, 0.5]);
    let (at, context) = (|| point(0.5), || vec![0.25]);
    let suggested = |point, context, fidelity, now, expires_at, attrs| Event::Suggested {
        point,
        context,
        fidelity,
        now,
        expires_at,
        queued: false,
        note: None,
        attrs,
        at: None,
    };
    let added = |point, context, fidelity, observation, now, attrs| Event::Added {
        point,
        context,
        fidelity,
        observation,
        now,
        at: None,
        attrs,
    };
    let observed = |number, observation, now, at| Event::Observed {
        number,
        observation,
        now,
        at,
    };
    let amended = |number, observation| Event::Amended {
        number,
        observation,
        at: None,
    };
    let failed = |number, now, attrs| Event::Failed {
        duration: None,
        number,
        now,
        error: None,
        attrs,
        at: None,
    };
    let observation = |change: fn(&mut Observation)| {
        let mut observation = Observation::new(1.0, None);
        change(&mut observation);
        observation
    };
    let wrong = [
        observation(|o| o.reading.value = f64::NAN),
        observation(|o| o.reading.std = Some(-1.0)),
        observation(|o| o.cost = Some(f64::INFINITY)),
        observation(|o| o.duration = Some(-1.0)),
        observation(|o| o.attrs = Some("1".to_string())),
        observation(|o| o.point = Some(Point::at(&[0.5, 0.5]))),
    ];
    let plain = || observation(|_| {});
    let mut refused = vec![
        suggested(wide(), context(), None, 0.0, None, None),
        suggested(at(), vec![], None, 0.0, None, None),
        suggested(at(), context(), nan, 0.0, None, None),
        suggested(at(), context(), None, f64::NAN, None, None),
        suggested(at(), context(), None, 0.0, nan, None),
        suggested(at(), context(), None, 0.0, None, bad()),
        added(wide(), context(), None, None, 0.0, None),
        added(at(), vec![], None, None, 0.0, None),
        added(at(), context(), nan, None, 0.0, None),
        added(at(), context(), None, None, 0.0, bad()),
        added(at(), context(), None, Some(plain()), f64::NAN, None),
        observed(0, plain(), 2.0, None),
        observed(1, plain(), f64::NAN, None),
        observed(1, plain(), 2.0, nan),
        amended(1, plain()),
        failed(0, 2.0, None),
        failed(1, f64::NAN, None),
        failed(1, 2.0, bad()),
        Event::Abandoned {
            number: 0,
            now: 2.0,
            at: None,
        },
        Event::Abandoned {
            number: 1,
            now: f64::NAN,
            at: None,
        },
        Event::Withdrawn {
            number: 1,
            reason: None,
            now: 2.0,
            at: None,
        },
        Event::Withdrawn {
            number: 0,
            reason: None,
            now: f64::NAN,
            at: None,
        },
    ];
    for (point, fidelity, attrs) in [(wide(), None, None), (at(), nan, None), (at(), None, bad())] {
        refused.push(Event::Enqueued {
            point,
            given: None,
            fidelity,
            attrs,
            at: None,
        });
    }
    for observation in wrong {
        refused.push(observed(1, observation.clone(), 2.0, None));
        refused.push(amended(0, observation.clone()));
        refused.push(added(at(), context(), None, Some(observation), 2.0, None));
    }
    for event in refused {
        let text = format!("{event:?}");
        let result = ledger.append(event);
        assert!(
            matches!(
                result,
                Err(Error::Corrupt(_)
                    | Error::InvalidPoint(_)
                    | Error::InvalidContext(_)
                    | Error::InvalidFidelity(_))
            ),
            "{text}"
        );
    }
    assert_eq!(ledger.len(), before.len());
    // An event that meets all conditions is accepted.
    let full = observation(|o| {
        (o.reading.std, o.cost, o.duration) = (Some(0.0), Some(0.0), Some(0.0));
        o.attrs = Some("{}".to_string());
    });
    for event in [
        suggested(
            at(),
            context(),
            Some(0.5),
            0.0,
            Some(9.0),
            full.attrs.clone(),
        ),
        added(
            at(),
            context(),
            Some(0.5),
            Some(full.clone()),
            0.0,
            full.attrs.clone(),
        ),
        added(at(), context(), None, None, 0.0, None),
        observed(1, full.clone(), 2.0, Some(0.0)),
        amended(0, full),
        failed(2, 2.0, Some("{}".to_string())),
        Event::Abandoned {
            number: 2,
            now: 2.0,
            at: None,
        },
        Event::Withdrawn {
            number: 0,
            reason: Some(String::new()),
            now: 2.0,
            at: Some(0.0),
        },
    ] {
        ledger.append(event).unwrap();
    }
}

#[test]
fn an_event_returns_its_trial_point_and_context() {
    let mut ledger = Ledger::in_unit_cube(Clock::Iterations, 1, 1);
    let context = || vec![0.25];
    let run = Observation {
        point: Some(point(0.25)),
        ..Observation::default()
    };
    let observe = |observation, again| Action::Observe {
        number: 0,
        observation,
        again,
    };
    for action in [
        Action::add(point(0.5), context(), None, None),
        Action::enqueue(point(0.75)),
        observe(Observation::default(), Again::Refuse),
        observe(run, Again::Amend),
        Action::add(point(0.5), context(), None, None),
        Action::fail(1),
        Action::Abandon { number: 1 },
    ] {
        act(&mut ledger, action, 1.0).unwrap();
    }
    let mut known = Vec::new();
    for event in ledger.events(0) {
        let at = event.point().cloned();
        let context = event.context().map(<[f64]>::to_vec);
        known.push((event.trial_number(9), at, context));
    }
    let expected = [
        (Some(9), Some(point(0.5)), Some(context())),
        (None, Some(point(0.75)), None),
        (Some(0), None, None),
        (Some(0), Some(point(0.25)), None),
        (Some(9), Some(point(0.5)), Some(context())),
        (Some(1), None, None),
        (Some(1), None, None),
    ];
    assert_eq!(known, expected);
}
