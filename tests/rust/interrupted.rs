//! A stop at any moment: nothing is logged, and what follows is what would have followed anyway.

use std::ops::ControlFlow;
use std::sync::Arc;

use belated::domain::{Coordinate, Domain};
use belated::error::Error;
use belated::ledger::{Action, Clock};
use belated::optimizer::{Definition, Method, Optimizer};
use belated::strategy::bayes::pending::PendingPolicy;
use belated::strategy::bayes::settings::{AcquisitionKind, Settings};
use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

use crate::cases;
use crate::play::{Step, case, go_on};

/// Goes on `n` times, then asks to stop, for good.
fn after(n: usize) -> impl FnMut() -> ControlFlow<()> {
    let mut left = n;
    move || match left {
        0 => ControlFlow::Break(()),
        _ => {
            left -= 1;
            ControlFlow::Continue(())
        }
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn a_stop_leaves_no_trace(case in case(30), stops in proptest::collection::vec(0..60usize, 30)) {
        let mut stopped = Optimizer::new(case.definition.clone()).unwrap();
        let mut twin = Optimizer::new(case.definition).unwrap();
        for (step, n) in case.steps.iter().zip(stops.iter().cycle()) {
            // Only these two may take long, and ask.
            if matches!(step, Step::Suggest { .. } | Step::Recommend(_)) {
                let before = stopped.to_bytes().unwrap();
                match step.take(&mut stopped, &mut after(*n)) {
                    Err(Error::Interrupted) => {
                        prop_assert!(stopped.to_bytes().unwrap() == before, "the log has changed");
                        let again = step.take(&mut stopped, &mut go_on());
                        prop_assert_eq!(again, step.take(&mut twin, &mut go_on()));
                    }
                    through => prop_assert_eq!(through, step.take(&mut twin, &mut go_on())),
                }
            } else {
                prop_assert_eq!(step.take(&mut stopped, &mut go_on()), step.take(&mut twin, &mut go_on()));
            }
            let same = stopped.to_bytes().unwrap() == twin.to_bytes().unwrap();
            prop_assert!(same, "{step:?} after a stop went another way");
        }
    }
}

/// With more rows, where restarts of a fit run side by side and the calling thread only looks on.
#[test]
fn a_fit_on_several_threads_stops_without_a_trace() {
    for acquisition in [
        AcquisitionKind::UpperConfidenceBound,
        AcquisitionKind::LogExpectedImprovement,
        AcquisitionKind::Thompson,
    ] {
        let settings = Settings {
            acquisition,
            pending: PendingPolicy::Hallucinate,
            n_initial: Some(0),
            ..Settings::default()
        };
        let definition = Definition {
            domain: Arc::new(Domain::new_box(vec![Coordinate::Continuous; 3]).unwrap()),
            context_width: 0,
            clock: Clock::Iterations,
            seed: 7,
            method: Method::BayesOpt(Box::new(settings)),
        };
        let mut stopped = Optimizer::new(definition).unwrap();
        let rows = stopped
            .definition()
            .domain
            .quasi_random(220, &mut rand::SeedableRng::seed_from_u64(1));
        for row in rows.rows() {
            let point = belated::ledger::Point {
                x: row.to_vec(),
                index: None,
            };
            let value = row.iter().map(|x| (7.0 * x).sin()).sum();
            let (context, value) = (vec![], Some(value));
            stopped
                .act(
                    Action::Add {
                        point,
                        context,
                        value,
                        std: None,
                    },
                    None,
                )
                .unwrap();
        }
        let before = stopped.to_bytes().unwrap();
        let mut twin = Optimizer::from_bytes(&before).unwrap();
        twin.suggest(2, &[], None, &mut go_on()).unwrap();
        for n in [0, 1, 2, 3, 5, 10, 40] {
            match stopped.suggest(2, &[], None, &mut after(n)) {
                Err(Error::Interrupted) => assert!(stopped.to_bytes().unwrap() == before),
                // A fast machine may be through by then.
                done => {
                    done.unwrap();
                    stopped = Optimizer::from_bytes(&before).unwrap();
                }
            }
        }
        stopped.suggest(2, &[], None, &mut go_on()).unwrap();
        assert!(stopped.to_bytes().unwrap() == twin.to_bytes().unwrap());
    }
}
