//! Tests of trials at several fidelities.

use super::*;

fn add(ledger: &mut Ledger, fidelity: Option<f64>, value: Option<f64>) {
    let action = Action::Add {
        point: point(0.5),
        context: vec![],
        fidelity,
        observation: value
            .map(|value| Observation::new(value, None))
            .unwrap_or_default(),
        attrs: None,
    };
    act(ledger, action, 0.0).unwrap();
}

#[test]
fn the_best_trial_has_the_highest_fidelity_observed() {
    let mut ledger = started(Clock::Iterations, 0);
    let mut best_after = |fidelity, value| {
        add(&mut ledger, fidelity, value);
        ledger.best()
    };
    assert_eq!(best_after(Some(0.25), Some(9.0)), Some(0));
    assert_eq!(best_after(Some(0.75), None), Some(0)); // pending, without a value
    assert_eq!(best_after(Some(0.5), Some(1.0)), Some(2));
    assert_eq!(best_after(Some(0.25), Some(99.0)), Some(2));
    assert_eq!(best_after(Some(0.4995), Some(2.0)), Some(4)); // equal up to the tolerance
    assert_eq!(best_after(None, Some(-5.0)), Some(5)); // a full evaluation
    assert_eq!(best_after(Some(0.998), Some(0.0)), Some(5));
    assert_eq!(best_after(Some(1.0), Some(-4.0)), Some(7));
    // A value at a lower fidelity can be amended.
    observe(&mut ledger, 0, 1e6, 0.0, true).unwrap();
    observe(&mut ledger, 1, 1e6, 0.0, false).unwrap();
    assert_eq!(ledger.best(), Some(7));
    observe(&mut ledger, 7, -6.0, 0.0, true).unwrap();
    assert_eq!(ledger.best(), Some(5));
}

#[test]
fn a_queued_point_keeps_the_fidelity_it_was_given() {
    let mut ledger = started(Clock::Iterations, 0);
    let enqueue = |fidelity| {
        Action::Enqueue(Queued {
            point: point(0.5),
            partial: false,
            fidelity,
            attrs: None,
        })
    };
    act(&mut ledger, enqueue(Some(0.25)), 0.0).unwrap();
    act(&mut ledger, enqueue(None), 0.0).unwrap();
    let mut suggest_at = |fidelity| {
        ledger.append(Event {
            at: None,
            by: None,
            now: 0.0,
            what: What::Suggested(Suggested {
                point: point(0.5),
                context: vec![],
                fidelity,
                note: None,
                attrs: None,
                queued: true,
                expires_at: None,
            }),
        })
    };
    for other in [None, Some(0.5)] {
        assert!(matches!(suggest_at(other), Err(Error::Corrupt(_))));
    }
    assert_eq!(suggest_at(Some(0.25)), Ok(()));
    // The second enqueued point does not have a fidelity, so its suggestion may have any fidelity.
    assert_eq!(suggest_at(Some(0.5)), Ok(()));
}

proptest! {
    /// For any order of values, fidelities, amendments and withdrawals, the log returns the correct best trial.
    #[test]
    fn the_best_trial_equals_the_result_of_a_full_search(
        steps in prop::collection::vec((0u8..6, -3i8..3, 0usize..12, any::<bool>()), 0..60),
    ) {
        let mut ledger = started(Clock::Iterations, 0);
        for (kind, value, number, amend) in steps {
            let fidelity = [Some(0.1), Some(0.5), Some(0.5008), Some(0.9995), None, None][kind as usize];
            match amend {
                _ if kind == 5 => { act(&mut ledger, Action::withdraw(number), 0.0).ok(); }
                true => { observe(&mut ledger, number, value.into(), 0.0, true).ok(); }
                false => add(&mut ledger, fidelity, (number > 2).then_some(value.into())),
            }
            prop_assert_eq!(ledger.best(), best_of_all(&ledger));
        }
        let again = replay(ledger.events(0)).unwrap();
        prop_assert_eq!(again.trials(), ledger.trials());
    }
}
