//! Tests of the rule for late trials.

use super::*;
use crate::delays::fit::Options;
use crate::delays::records::Resolution;
use crate::delays::{Delays, Ending};
use std::ops::ControlFlow;

/// Starts a trial at a wall-clock time, with a lease.
fn start(ledger: &mut Ledger, at: Option<f64>, expires_at: Option<f64>) {
    let event = Event {
        at,
        by: None,
        now: ledger.now(None).unwrap(),
        what: What::Suggested(Suggested {
            point: point(0.5),
            context: vec![],
            fidelity: None,
            note: None,
            attrs: None,
            queued: false,
            expires_at,
        }),
    };
    ledger.append(event).unwrap();
}

fn act_at(ledger: &mut Ledger, action: Action, at: f64) {
    let now = ledger.now(None).unwrap();
    let event = ledger.validate(action, now, Some(at)).unwrap();
    ledger.append(event.unwrap()).unwrap();
}

/// The delays and the late trials of a random log equal the results of a reference, which reads its own table of trials.
#[test]
fn late_trials_equal_a_reference() {
    proptest!(ProptestConfig::with_cases(40), |(
        trials in prop::collection::vec((0..6u8, 0.0..50.0f64, 0.0..20.0f64, prop::option::of(0.0..30.0f64)), 0..25),
        now in 40.0..80.0f64,
    )| {
        let mut ledger = Ledger::in_unit_cube(Clock::Iterations, 1, 0);
        let (mut records, mut waits) = (vec![], vec![]);
        for (number, &(kind, at, delay, lease)) in trials.iter().enumerate() {
            let known = kind != 5;
            let lease = lease.map(|length| at + length);
            start(&mut ledger, Some(at).filter(|_| known), lease);
            let end = at + delay;
            let observed = Action::observe(number, 0.5, None, false);
            match kind {
                1 => act_at(&mut ledger, observed, end),
                2 => act_at(&mut ledger, Action::fail(number), end),
                3 => act_at(&mut ledger, Action::abandon(number), end),
                4 => {
                    act_at(&mut ledger, observed, end);
                    act_at(&mut ledger, Action::withdraw(number), end + 100.0);
                }
                _ => {}
            }
            let outcome = [Ending::Censored, Ending::Arrived, Ending::Failed, Ending::Censored, Ending::Arrived];
            let (age, until) = match kind {
                0 => (lease.map_or(now, |lease| lease.min(now)) - at, Some(now)),
                5 => (f64::NAN, Some(now)),
                1 => (delay, Some(end)),
                _ => (delay, None),
            };
            if known {
                records.push((age.max(0.0), outcome[kind as usize]));
            }
            waits.push((at, until, lease, known));
        }
        let (ages, outcomes): (Vec<f64>, Vec<Ending>) = records.into_iter().unzip();
        let found = ledger.view().wall_delays(now);
        prop_assert_eq!(&found.endings, &outcomes);
        for (age, expected) in found.ages.iter().zip(&ages) {
            prop_assert!((age - expected).abs() < 1e-9);
        }
        let stop = &mut || ControlFlow::Continue(());
        let reference = Delays::new(ages, outcomes, Resolution::Exact);
        let fitted = reference.distribution(&Options::default(), stop).unwrap();
        let limit = fitted.as_ref().as_ref().ok().map(|it| it.quantile(0.95, 0.5).unwrap().value);
        let late: Vec<usize> = (0..waits.len()).filter(|i| match waits[*i] {
            (_, None, ..) => false,
            (_, Some(until), Some(lease), _) => until >= lease,
            (at, Some(until), None, known) => known && limit.is_some_and(|limit| until - at > limit),
        }).collect();
        let delays = found.distribution(&Options::default(), stop).unwrap();
        prop_assert_eq!(ledger.view().late(now, delays.as_ref().as_ref().ok()).unwrap(), late);
    });
}
