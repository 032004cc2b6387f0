//! Tests that an interruption at any moment changes neither the log nor later suggestions.

use std::ops::ControlFlow;

use belated::{Action, Clock, Error, Optimizer, Point, Request};
use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde_json::json;

use crate::cases;
use crate::domains::cube;
use crate::histories::{Step, case, definition, go_on};

/// Returns a stop callback that answers "continue" `n` times, and then "stop".
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
    fn a_stop_changes_nothing(case in case(30), stops in proptest::collection::vec(0..60usize, 30)) {
        let mut stopped = Optimizer::new(case.definition.clone()).unwrap();
        let mut twin = Optimizer::new(case.definition).unwrap();
        for (step, n) in case.steps.iter().zip(stops.iter().cycle()) {
            // Only suggestions and recommendations may take long, so only these steps call `stop`.
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
            prop_assert!(same, "{step:?} differs after a stop");
        }
    }
}

/// Tests a model with so many rows that a fit runs searches on other threads.
#[test]
fn a_stopped_fit_on_several_threads_changes_nothing() {
    for acquisition in ["UCB", "LogEI", "ThompsonSampling"] {
        let settings = json!({
            "kind": "BayesOpt",
            "acquisition": {"kind": acquisition},
            "pending": {"kind": "Hallucinate"},
            "initial": {"kind": "Initial", "n": 0},
        });
        let definition = definition(cube(3), 0, Clock::Iterations, 7, Some(&settings));
        let mut stopped = Optimizer::new(definition.unwrap()).unwrap();
        let mut rng = Pcg64::seed_from_u64(1);
        for _ in 0..220 {
            let x: [f64; 3] = rng.random();
            let point = Point::at(&x);
            let value = x.iter().map(|x| (7.0 * x).sin()).sum();
            let add = Action::add(point, vec![], Some(value), None);
            stopped.record(add, None).unwrap();
        }
        let before = stopped.to_bytes().unwrap();
        let mut twin = Optimizer::from_bytes(&before).unwrap();
        twin.suggest(2, Request::default(), &mut go_on()).unwrap();
        for n in [0, 1, 2, 3, 5, 10, 40] {
            match stopped.suggest(2, Request::default(), &mut after(n)) {
                Err(Error::Interrupted) => assert!(stopped.to_bytes().unwrap() == before),
                // On a fast machine, the call may finish before the stop is requested.
                done => {
                    done.unwrap();
                    stopped = Optimizer::from_bytes(&before).unwrap();
                }
            }
        }
        stopped
            .suggest(2, Request::default(), &mut go_on())
            .unwrap();
        assert!(stopped.to_bytes().unwrap() == twin.to_bytes().unwrap());
    }
}
