//! Tests with arbitrary values in arbitrary order. A panic or a NaN never occurs, and every suggestion is in the
//! domain.

use std::ops::ControlFlow;

use belated::error::Error;
use belated::ledger::Event;
use belated::maximize::feasible::Feasible;
use belated::optimizer::{Optimizer, Request};
use belated::problem::Clock;
use belated::strategy::bayes::acquisitions::Acquisition;
use belated::strategy::bayes::acquisitions::thompson_sampling::ThompsonSampling;
use belated::strategy::bayes::model::note::Fit;
use belated::strategy::bayes::settings::surrogate::{GP, Surrogate};
use belated::strategy::bayes::settings::{Initial, InitialDesign, Settings};
use belated::strategy::elimination::note::Note;
use ndarray::Array2;
use proptest::prelude::{TestCaseError, prop_assert, prop_assert_eq, proptest};
use rand::SeedableRng;

use crate::cases;
use crate::histories::{Step, case, cube, definition, go_on, is_consistent, is_numerical};
use crate::settings::fitted;

/// Checks that every proposed point and its encoded row are members of the domain, and that every note can be read. A
/// note belongs to a fit with a valid θ or to a round. The notes of tree search are not checked here.
fn check_log(optimizer: &Optimizer) -> Result<(), TestCaseError> {
    let problem = &optimizer.definition().problem;
    let strategy = &optimizer.definition().strategy["kind"];
    for event in optimizer.ledger().events(0) {
        let Event::Suggested {
            point,
            note,
            queued: false,
            ..
        } = event
        else {
            continue;
        };
        prop_assert!(problem.check_point(&point).is_ok(), "{point:?}");
        prop_assert!(
            problem.domain().contains(&problem.encode(&point).unwrap()),
            "{point:?}"
        );
        if let Some(note) = note {
            // Reading a note refuses values that are not finite or not above 0.
            let rows = match strategy.as_str() {
                Some("BayesOpt") => Fit::from_note(&note).map(|fit| fit.rows),
                Some("BPEDelay") => Note::from_text(&note).map(|note| Some(note.round)),
                _ => continue,
            };
            let rows = rows.map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert!(rows.is_some());
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn suggestions_stay_in_the_domain(case in case(40), probe: u64) {
        let mut optimizer = Optimizer::new(case.definition.clone()).unwrap();
        for step in &case.steps {
            match (step, step.take(&mut optimizer, &mut go_on())) {
                (_, Ok(_)) => {}
                // A suggestion never returns a numerical error, but these calls may return a numerical error.
                (Step::Recommend(_) | Step::Surrogate { .. }, Err(error)) if is_numerical(&error) => {}
                (_, Err(error)) => return Err(TestCaseError::fail(format!("{step:?}: {error}"))),
            }
        }
        check_log(&optimizer)?;
        prop_assert!(is_consistent(&optimizer));

        let mut rng = belated::random::Rng::seed_from_u64(probe);
        let domain = case.definition.problem.domain().clone();
        let context = vec![0.5; optimizer.ledger().widths().1];
        let rows = (0..5).flat_map(|_| [domain.sample_uniform(&mut rng).0, context.clone()].concat());
        let rows = Array2::from_shape_vec((5, domain.width() + context.len()), rows.collect()).unwrap();
        for pending in [false, true] {
            if let Ok(Some(surrogate)) = optimizer.surrogate(Some(0.0), pending, &mut go_on()) {
                let (mean, variance) = surrogate.gp.predict(rows.view());
                prop_assert!(mean.iter().chain(&variance).all(|v| !v.is_nan()), "{mean:?} {variance:?}");
                prop_assert!(!surrogate.units.center.is_nan() && surrogate.units.scale > 0.0);
            }
        }
        match optimizer.recommend(&context, Some(0.0), Feasible::EVERYWHERE, &mut go_on()) {
            Ok(None) => prop_assert_eq!(optimizer.ledger().n_observed(), 0),
            Ok(Some(best)) => {
                prop_assert!(case.definition.problem.check_point(&best.point).is_ok());
                prop_assert!(!best.mean.is_nan(), "{best:?}");
            }
            Err(error) => prop_assert!(is_numerical(&error), "{error}"),
        }
    }

    #[test]
    fn fitted_models_suggest_without_random_points(case in case(40)) {
        let old = &case.definition;
        let (problem, seed) = (&old.problem, old.seed);
        let settings = case.settings.clone().map(fitted);
        let (_, width) = problem.widths();
        let all = definition(problem.members.clone(), width, problem.clock, seed, settings.as_ref()).unwrap();
        let mut optimizer = Optimizer::new(all).unwrap();
        for step in &case.steps {
            let warnings = step.take(&mut optimizer, &mut go_on()).map_err(|error| {
                TestCaseError::fail(format!("{step:?}: {error}"))
            })?;
            // A domain whose points were all observed has a different warning.
            let random = warnings.iter().any(|warning| warning.contains("random point"));
            prop_assert!(!random, "{warnings:?}");
        }
    }
}

#[test]
fn huge_sizes_are_refused_before_memory_is_allocated() {
    let made = |context_width, settings: Settings| {
        let clock = Clock::Iterations;
        let all = definition(cube(1), context_width, clock, 0, Some(&settings))?;
        Optimizer::new(all)
    };
    let huge = usize::MAX;
    let initial = Initial::Initial(InitialDesign {
        n: Some(huge),
        ..InitialDesign::default()
    });
    let surrogate = Surrogate::GP(GP {
        n_restarts: huge,
        ..GP::default()
    });
    let acquisition = Acquisition::ThompsonSampling(ThompsonSampling {
        n_features: huge,
        ..ThompsonSampling::default()
    });
    let plain = Settings::default;
    for (context_width, settings) in [
        (1 << 20, plain()),
        (0, Settings { initial, ..plain() }),
        (
            0,
            Settings {
                surrogate,
                ..plain()
            },
        ),
        (
            0,
            Settings {
                acquisition,
                ..plain()
            },
        ),
    ] {
        assert!(made(context_width, settings).is_err());
    }
    // This call is stopped at once. Memory is not reserved for trials before they are created.
    let mut optimizer = made(0, plain()).unwrap();
    let stopped = optimizer.suggest(usize::MAX, Request::default(), &mut || {
        ControlFlow::Break(())
    });
    assert_eq!(stopped, Err(Error::Interrupted));
}
