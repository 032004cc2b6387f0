//! Tests of drafts, which are suggestions at the end of the log that can be removed.

use super::*;

#[test]
fn truncating_drafts_restores_the_ledger() {
    let mut ledger = started(Clock::Iterations, 3);
    observe(&mut ledger, 1, 0.5, 3.0, false).unwrap();
    act(&mut ledger, Action::enqueue(point(0.25)), 3.0).unwrap();
    let before = ledger.clone();
    let queued = ledger.next_queued().unwrap().point.clone();
    suggest(&mut ledger, queued, 3.0, true);
    suggest(&mut ledger, point(0.75), 4.0, false);
    assert_eq!(ledger.view().pending().count(), 4);
    ledger.truncate(before.len());
    assert_eq!(ledger.events, before.events);
    assert_eq!(ledger.trials(), before.trials());
    assert_eq!(ledger.rows, before.rows);
    assert!(ledger.view().pending().eq(before.view().pending()));
    assert_eq!(ledger.next_queued(), before.next_queued());
    assert_eq!(ledger.now(None), before.now(None));
    // `truncate` stops at the enqueued point, because it removes only suggestions.
    ledger.truncate(0);
    assert_eq!(ledger.len(), before.len());
}

#[test]
fn truncating_drafts_removes_their_rows() {
    for (width, context_width) in [(1, 2), (3, 1), (2, 0)] {
        let mut ledger = Ledger::in_unit_cube(Clock::Iterations, width, context_width);
        let mut before = Vec::new();
        for number in 0..4 {
            before.push((ledger.len(), ledger.rows.clone(), ledger.events.clone()));
            let at = Point::at(&vec![number as f64 / 4.0; width]);
            let add = Action::add(at.clone(), vec![0.5; context_width], None, None);
            let event = ledger.validate(add, 0.0, None).unwrap().unwrap();
            let What::Added(Added { point, context, .. }) = event.what else {
                unreachable!("an addition is logged as an added trial")
            };
            let event = Event {
                at: None,
                by: None,
                now: 0.0,
                what: What::Suggested(Suggested {
                    point,
                    context,
                    fidelity: None,
                    note: None,
                    attrs: None,
                    queued: false,
                    expires_at: None,
                }),
            };
            ledger.append(event).unwrap();
            assert_eq!(ledger.x(number), vec![number as f64 / 4.0; width]);
        }
        for (len, rows, events) in before.into_iter().rev() {
            ledger.truncate(len);
            assert_eq!((ledger.len(), &ledger.rows), (len, &rows));
            assert_eq!(ledger.events, events);
        }
    }
}
