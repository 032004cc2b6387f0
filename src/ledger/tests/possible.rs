//! Tests of the rules for valid events, and of the trial number and the point of an event.

use super::*;

fn event(now: f64, at: Option<f64>, what: What) -> Event {
    Event {
        at,
        by: None,
        now,
        what,
    }
}

fn resulted(trial: usize, happened: Happened, data: Data) -> What {
    What::Resulted(Resulted {
        trial,
        results: vec![(0, happened)],
        data: data.boxed(),
    })
}

fn data(change: fn(&mut Data)) -> Data {
    let mut data = Data::default();
    change(&mut data);
    data
}

#[test]
fn an_event_that_violates_one_condition_is_refused() {
    let reading = Reading {
        value: 1.0,
        std: None,
    };
    let (new, amended) = (Happened::New(reading), Happened::Amended(reading));
    let plain = Data::default;
    let at = |what| event(2.0, None, what);
    let suggested = |change: fn(&mut Suggested)| {
        let mut suggested = Suggested {
            point: point(0.5),
            context: vec![0.25],
            fidelity: None,
            expires_at: None,
            queued: false,
            note: None,
            attrs: None,
        };
        change(&mut suggested);
        What::Suggested(suggested)
    };
    let added = |change: fn(&mut Added)| {
        let mut added = Added {
            point: point(0.5),
            context: vec![0.25],
            fidelity: None,
            attrs: None,
            results: vec![],
            awaited: true,
            data: None,
        };
        change(&mut added);
        What::Added(added)
    };
    let queued = |change: fn(&mut Queued)| {
        let mut queued = Queued {
            point: point(0.5),
            partial: false,
            fidelity: None,
            attrs: None,
        };
        change(&mut queued);
        What::Enqueued(queued)
    };
    let start = || suggested(|_| {});
    let mut ledger = Ledger::in_unit_cube(Clock::Iterations, 1, 1);
    for what in [start(), resulted(0, new, plain()), start()] {
        ledger.append(at(what)).unwrap();
    }
    let before = ledger.len();
    let known = Reading {
        value: 1.0,
        std: None,
    };
    let mut refused = vec![
        event(f64::NAN, None, start()),
        event(2.0, Some(f64::NAN), start()),
        event(f64::INFINITY, None, resulted(1, new, plain())),
        at(suggested(|it| it.point = Point::at(&[0.5, 0.5]))),
        at(suggested(|it| it.context = vec![])),
        at(suggested(|it| it.fidelity = Some(f64::NAN))),
        at(suggested(|it| it.expires_at = Some(f64::NAN))),
        at(suggested(|it| it.attrs = Some("1".to_string()))),
        at(suggested(|it| it.queued = true)),
        at(added(|it| it.point = Point::at(&[0.5, 0.5]))),
        at(added(|it| it.context = vec![])),
        at(added(|it| it.fidelity = Some(f64::NAN))),
        at(added(|it| it.attrs = Some("1".to_string()))),
        at(added(|it| it.awaited = false)),
        at(added(|it| it.data.get_or_insert_default().cost = Some(1.0))),
        at(added(|it| it.results = vec![(1, Reading::default())])),
        at(added(|it| it.results = vec![(0, Reading::default()); 2])),
        at(added(|it| {
            it.results = vec![(0, Reading::default())];
            // An added trial has a single point.
            it.data.get_or_insert_default().point = Some(point(0.5));
        })),
        at(queued(|it| it.point = Point::at(&[0.5, 0.5]))),
        at(queued(|it| it.fidelity = Some(f64::NAN))),
        at(queued(|it| it.attrs = Some("1".to_string()))),
        // A value that is known is amended, another is new, and every event has an effect.
        at(resulted(0, new, plain())),
        at(resulted(1, amended, plain())),
        at(resulted(0, Happened::Amended(known), plain())),
        at(resulted(0, Happened::Failed, plain())),
        at(resulted(0, Happened::Abandoned, plain())),
        at(resulted(0, Happened::Stopped, plain())),
        at(resulted(1, Happened::Withdrawn { awaited: false }, plain())),
        at(resulted(0, Happened::Withdrawn { awaited: true }, plain())),
        at(resulted(
            1,
            Happened::Failed,
            data(|it| it.cost = Some(1.0)),
        )),
        at(resulted(1, new, data(|it| it.error = Some(failure("bad"))))),
        at(resulted(
            1,
            new,
            data(|it| it.reason = Some("bad".to_string())),
        )),
    ];
    for change in [
        (|it| it.cost = Some(f64::INFINITY)) as fn(&mut Data),
        |it| it.duration = Some(-1.0),
        |it| it.attrs = Some("1".to_string()),
        |it| it.attrs = Some(String::new()),
        |it| it.point = Some(Point::at(&[0.5, 0.5])),
    ] {
        refused.push(at(resulted(1, new, data(change))));
        refused.push(at(resulted(0, amended, data(change))));
    }
    for (value, std) in [
        (f64::NAN, None),
        (1.0, Some(-1.0)),
        (1.0, Some(f64::INFINITY)),
    ] {
        let reading = Reading { value, std };
        refused.push(at(resulted(1, Happened::New(reading), plain())));
        refused.push(at(resulted(0, Happened::Amended(reading), plain())));
        let What::Added(it) = added(|_| {}) else {
            unreachable!()
        };
        let results = vec![(0, reading)];
        refused.push(at(What::Added(Added { results, ..it })));
    }
    for results in [vec![], vec![(1, new)], vec![(0, new), (0, new)]] {
        let data = None;
        let trial = 1;
        refused.push(at(What::Resulted(Resulted {
            trial,
            results,
            data,
        })));
    }
    for event in refused {
        let text = format!("{event:?}");
        assert!(ledger.append(event).is_err(), "{text}");
    }
    let unknown = ledger.append(at(resulted(2, new, plain())));
    assert!(matches!(unknown, Err(Error::UnknownTrial { .. })));
    assert_eq!(ledger.len(), before);
    // An event that meets all conditions is accepted.
    let full = || {
        data(|it| {
            (it.cost, it.duration) = (Some(0.0), Some(0.0));
            it.attrs = Some("{}".to_string());
        })
    };
    let exact = Reading {
        value: 1.0,
        std: Some(0.0),
    };
    for what in [
        suggested(|it| {
            (it.fidelity, it.expires_at) = (Some(0.5), Some(9.0));
            it.attrs = Some("{}".to_string());
        }),
        added(|it| {
            it.results = vec![(0, Reading::default())];
            it.data.get_or_insert_default().cost = Some(1.0);
        }),
        added(|_| {}),
        resulted(1, Happened::New(exact), full()),
        resulted(0, Happened::Amended(exact), full()),
        resulted(
            2,
            Happened::Failed,
            data(|it| it.attrs = Some("{}".to_string())),
        ),
        resulted(2, Happened::Abandoned, plain()),
        resulted(
            0,
            Happened::Withdrawn { awaited: false },
            data(|it| it.reason = Some(String::new())),
        ),
    ] {
        ledger.append(at(what)).unwrap();
    }
}

#[test]
fn an_event_returns_its_trial_and_point() {
    let mut ledger = Ledger::in_unit_cube(Clock::Iterations, 1, 1);
    let context = || vec![0.25];
    let run = Observation::new(0.0, None).run_at(point(0.25));
    let observe = |observation, again| Action::Observe {
        number: 0,
        observation,
        again,
    };
    for action in [
        Action::add(point(0.5), context(), None, None),
        Action::enqueue(point(0.75)),
        observe(Observation::new(0.0, None), Again::Refuse),
        observe(run, Again::Amend),
        Action::add(point(0.5), context(), None, None),
        Action::fail(1),
        Action::abandon(1),
    ] {
        act(&mut ledger, action, 1.0).unwrap();
    }
    let events = ledger.events(0);
    let known: Vec<_> = events
        .map(|event| (event.trial_number(9), event.point().cloned()))
        .collect();
    let expected = [
        (Some(9), Some(point(0.5))),
        (None, Some(point(0.75))),
        (Some(0), None),
        (Some(0), Some(point(0.25))),
        (Some(9), Some(point(0.5))),
        (Some(1), None),
        (Some(1), None),
    ];
    assert_eq!(known, expected);
}
