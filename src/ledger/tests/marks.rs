//! Tests of marks: values that are far from what was expected.

use super::*;

fn mark(outcome: u32, low: f64, high: f64) -> Mark {
    Mark { outcome, low, high }
}

/// A log with one pending trial.
fn pending() -> Ledger {
    let mut ledger = Ledger::in_unit_cube(Clock::Iterations, 1, 0);
    suggest(&mut ledger, point(0.5), 0.0, false);
    ledger
}

/// The event of the first value of trial 0, with marks.
fn reported(ledger: &Ledger, value: f64, marks: Option<Vec<Mark>>) -> Event {
    let action = Action::observe(0, value, None, false);
    let mut event = ledger.validate(action, 1.0, None).unwrap().unwrap();
    if let What::Resulted(it) = &mut event.what {
        it.data.get_or_insert_default().marks = marks;
    }
    event
}

/// A log whose trial 0 has a marked value.
fn marked() -> Ledger {
    let mut ledger = pending();
    let event = reported(&ledger, 7.0, Some(vec![mark(0, 0.0, 1.0)]));
    ledger.append(event).unwrap();
    ledger
}

fn confirm(ledger: &mut Ledger) {
    let action = Action::Confirm {
        number: 0,
        outcome: None,
    };
    act(ledger, action, 2.0).unwrap();
}

#[test]
fn a_mark_stays_until_the_value_is_replaced_withdrawn_or_confirmed() {
    let repeated = Action::observe(0, 7.0, None, false);
    let other_cost = Action::Observe {
        number: 0,
        observation: Observation::new(7.0, None).with(Data {
            cost: Some(3.0),
            ..Data::default()
        }),
        again: Again::Amend,
    };
    for (action, stays) in [
        (repeated, true),
        (other_cost, true),
        (Action::observe(0, 0.7, None, true), false),
        (Action::withdraw(0), false),
    ] {
        let mut ledger = marked();
        assert_eq!(ledger.marks(0), [mark(0, 0.0, 1.0)]);
        act(&mut ledger, action.clone(), 2.0).unwrap();
        assert_eq!(ledger.marks(0).len(), usize::from(stays), "{action:?}");
    }
    let mut ledger = marked();
    confirm(&mut ledger);
    assert!(ledger.marks(0).is_empty());
    let n_events = ledger.len();
    confirm(&mut ledger);
    assert_eq!(ledger.len(), n_events);
    assert_eq!(ledger.value(0), Some(7.0));
}

#[test]
fn a_replayed_log_has_the_same_marks() {
    let mut ledger = marked();
    for _ in 0..2 {
        let texts: Vec<String> = ledger.events(0).map(|it| it.to_json().unwrap()).collect();
        let events = texts.iter().map(|text| Event::from_json(text).unwrap());
        assert_eq!(replay(events).unwrap().marks(0), ledger.marks(0));
        confirm(&mut ledger);
    }
}

#[test]
fn marks_of_other_values_and_confirmations_without_marks_are_refused() {
    for marks in [
        vec![],
        vec![mark(1, 0.0, 1.0)],
        vec![mark(0, 0.0, 7.0)],
        vec![mark(0, 1.0, 0.0)],
        vec![mark(0, f64::NEG_INFINITY, 1.0)],
        vec![mark(0, f64::NAN, 1.0)],
        vec![mark(0, 0.0, 1.0), mark(0, 0.0, 1.0)],
    ] {
        let mut ledger = pending();
        let event = reported(&ledger, 7.0, Some(marks.clone()));
        assert!(
            matches!(ledger.append(event), Err(Error::Corrupt(_))),
            "{marks:?}"
        );
    }
    for confirms in [vec![], vec![0, 0], vec![1]] {
        let mut ledger = marked();
        let event = Event {
            at: None,
            by: None,
            now: 2.0,
            what: What::Noted(Noted {
                trial: 0,
                attrs: None,
                remark: None,
                confirms: Some(confirms.clone()),
            }),
        };
        let refused = ledger.append(event);
        assert!(matches!(refused, Err(Error::Corrupt(_))), "{confirms:?}");
    }
}

#[test]
fn views_do_not_depend_on_marks() {
    let (with, mut without) = (marked(), pending());
    let event = reported(&without, 7.0, None);
    without.append(event).unwrap();
    let changes = |ledger: &Ledger| -> Vec<Vec<Change>> {
        let events = 0..ledger.len();
        events
            .map(|i| ledger.objective().changes(i).collect())
            .collect()
    };
    assert_eq!(changes(&with), changes(&without));
}
