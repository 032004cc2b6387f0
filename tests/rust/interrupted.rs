//! An interruption at any moment logs nothing, and does not change later suggestions.

use std::ops::ControlFlow;

use belated::error::Error;
use belated::ledger::Action;
use belated::optimizer::{Optimizer, Request};
use belated::problem::{Clock, Point};
use belated::strategy::bayes::acquisitions::Acquisition;
use belated::strategy::bayes::acquisitions::log_ei::LogEI;
use belated::strategy::bayes::acquisitions::thompson_sampling::ThompsonSampling;
use belated::strategy::bayes::acquisitions::ucb::UCB;
use belated::strategy::bayes::settings::pending::{Hallucinate, Pending};
use belated::strategy::bayes::settings::{Initial, InitialDesign, Settings};
use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

use crate::cases;
use crate::histories::{Step, case, cube, definition, go_on};

/// Continues `n` times, then always asks to stop.
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
            // Only these two may take long, and call `stop`.
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

/// With more rows, where the searches of a fit run on other threads.
#[test]
fn a_fit_on_several_threads_stops_without_a_trace() {
    for acquisition in [
        Acquisition::UCB(UCB::default()),
        Acquisition::LogEI(LogEI::default()),
        Acquisition::ThompsonSampling(ThompsonSampling::default()),
    ] {
        let settings = Settings {
            acquisition,
            pending: Some(Pending::Hallucinate(Hallucinate::default())),
            initial: Initial::Initial(InitialDesign {
                n: Some(0),
                ..InitialDesign::default()
            }),
            ..Settings::default()
        };
        let definition = definition(cube(3), 0, Clock::Iterations, 7, Some(&settings));
        let mut stopped = Optimizer::new(definition.unwrap()).unwrap();
        let rows = stopped
            .definition()
            .problem
            .domain()
            .quasi_random(220, &mut rand::SeedableRng::seed_from_u64(1));
        for row in rows.rows() {
            let point = Point::at(&row.to_vec());
            let value = row.iter().map(|x| (7.0 * x).sin()).sum();
            let add = Action::add(point, vec![], Some(value), None);
            stopped.record(add, None).unwrap();
        }
        let before = stopped.to_bytes().unwrap();
        let mut twin = Optimizer::from_bytes(&before).unwrap();
        twin.suggest(2, Request::default(), &mut go_on()).unwrap();
        for n in [0, 1, 2, 3, 5, 10, 40] {
            match stopped.suggest(2, Request::default(), &mut after(n)) {
                Err(Error::Interrupted) => assert!(stopped.to_bytes().unwrap() == before),
                // A fast machine may finish before the stop.
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
