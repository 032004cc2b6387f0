//! Tests of the rules for valid events, and of the trial and point of an event.

use super::*;

#[test]
fn an_event_that_violates_one_condition_is_refused() {
    let start =
        r#"{"Suggested":{"point":{"numbers":[0.5]},"context":[0.25],"now":0.0,"queued":false}}"#;
    let value = r#"{"Observed":{"number":0,"value":1.0,"now":1.0}}"#;
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
    };
    let added = |point, context, fidelity, value, report: Report, now| Event::Added {
        point,
        context,
        fidelity,
        value,
        std: report.std,
        cost: report.cost,
        duration: report.duration,
        now,
        attrs: report.attrs,
    };
    let observed = |number, value, report: Report, now| Event::Observed {
        number,
        value,
        std: report.std,
        cost: report.cost,
        duration: report.duration,
        point: report.point,
        attrs: report.attrs,
        now,
    };
    let amended = |number, value, report: Report| Event::Amended {
        number,
        value,
        std: report.std,
        cost: report.cost,
        duration: report.duration,
        point: report.point,
        attrs: report.attrs,
    };
    let failed = |number, now, attrs| Event::Failed {
        number,
        now,
        error: None,
        attrs,
    };
    let report = |change: fn(&mut Report)| {
        let mut report = Report::default();
        change(&mut report);
        report
    };
    let reports = [
        report(|r| r.std = Some(-1.0)),
        report(|r| r.cost = Some(f64::INFINITY)),
        report(|r| r.duration = Some(-1.0)),
        report(|r| r.attrs = Some("1".to_string())),
        report(|r| r.point = Some(Point::at(&[0.5, 0.5]))),
    ];
    let plain = Report::default;
    let mut refused = vec![
        suggested(wide(), context(), None, 0.0, None, None),
        suggested(at(), vec![], None, 0.0, None, None),
        suggested(at(), context(), nan, 0.0, None, None),
        suggested(at(), context(), None, f64::NAN, None, None),
        suggested(at(), context(), None, 0.0, nan, None),
        suggested(at(), context(), None, 0.0, None, bad()),
        added(wide(), context(), None, None, plain(), 0.0),
        added(at(), vec![], None, None, plain(), 0.0),
        added(at(), context(), nan, None, plain(), 0.0),
        added(at(), context(), None, nan, plain(), 0.0),
        added(at(), context(), None, Some(1.0), plain(), f64::NAN),
        observed(0, 1.0, plain(), 2.0),
        observed(1, f64::NAN, plain(), 2.0),
        observed(1, 1.0, plain(), f64::NAN),
        amended(1, 1.0, plain()),
        amended(0, f64::NAN, plain()),
        failed(0, 2.0, None),
        failed(1, f64::NAN, None),
        failed(1, 2.0, bad()),
        Event::Abandoned {
            number: 0,
            now: 2.0,
        },
        Event::Abandoned {
            number: 1,
            now: f64::NAN,
        },
    ];
    for (point, fidelity, attrs) in [(wide(), None, None), (at(), nan, None), (at(), None, bad())] {
        refused.push(Event::Enqueued {
            point,
            fidelity,
            attrs,
        });
    }
    for report in reports {
        refused.push(observed(1, 1.0, report.clone(), 2.0));
        refused.push(amended(0, 1.0, report.clone()));
        if report.point.is_none() {
            refused.push(added(at(), context(), None, Some(1.0), report, 2.0));
        }
    }
    // A report without a value is invalid.
    for report in [
        report(|r| r.std = Some(1.0)),
        report(|r| r.cost = Some(1.0)),
        report(|r| r.duration = Some(1.0)),
    ] {
        refused.push(added(at(), context(), None, None, report, 2.0));
    }
    for event in refused {
        let text = format!("{event:?}");
        let result = ledger.append(event);
        assert!(matches!(result, Err(Error::Corrupt(_))), "{text}");
    }
    assert_eq!(ledger.len(), before.len());
    // An event that meets all conditions is accepted.
    let full = report(|r| {
        (r.std, r.cost, r.duration) = (Some(0.0), Some(0.0), Some(0.0));
        r.attrs = Some("{}".to_string());
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
        added(at(), context(), Some(0.5), Some(1.0), full.clone(), 0.0),
        added(at(), context(), None, None, plain(), 0.0),
        observed(1, 1.0, full.clone(), 2.0),
        amended(0, 1.0, full),
        failed(2, 2.0, Some("{}".to_string())),
        Event::Abandoned {
            number: 2,
            now: 2.0,
        },
    ] {
        ledger.append(event).unwrap();
    }
}

#[test]
fn an_event_returns_its_trial_point_and_context() {
    let mut ledger = Ledger::in_unit_cube(Clock::Iterations, 1, 1);
    let context = || vec![0.25];
    let run = Report {
        point: Some(point(0.25)),
        ..Report::default()
    };
    let observe = |report, again| Action::Observe {
        number: 0,
        value: 1.0,
        report,
        again,
    };
    for action in [
        Action::add(point(0.5), context(), None, None),
        Action::enqueue(point(0.75)),
        observe(Report::default(), Again::Refuse),
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
