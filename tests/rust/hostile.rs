//! Tests with arbitrary values that arrive in arbitrary order. Calls must not panic or return NaN, and every suggestion
//! must be in the domain.

use std::ops::ControlFlow;

use belated::{Clock, Error, Optimizer, Request};
use ndarray::Array2;
use proptest::prelude::{TestCaseError, prop_assert, prop_assert_eq, proptest};
use serde_json::{Value, json};

use crate::cases;
use crate::domains::{cube, uniform_point};
use crate::histories::{Step, case, definition, go_on, is_consistent, is_numerical};
use crate::settings::fitted;

/// Checks that every suggested point is in the domain, and that a new optimizer accepts every note of the log.
fn check_log(optimizer: &Optimizer) -> Result<(), TestCaseError> {
    let problem = &optimizer.definition().problem;
    let ledger = optimizer.ledger();
    for number in (0..ledger.trials().len()).filter(|&number| ledger.trials()[number].suggested) {
        let point = ledger.started_point(number);
        prop_assert!(problem.check_point(&point).is_ok(), "{point:?}");
    }
    let restored = Optimizer::from_bytes(&optimizer.to_bytes().unwrap()).map(drop);
    prop_assert_eq!(restored, Ok(()));
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
                // Recommendations and surrogates may fail with a numerical error, but suggestions must not.
                (Step::Recommend(_) | Step::Surrogate { .. }, Err(error)) if is_numerical(&error) => {}
                (_, Err(error)) => return Err(TestCaseError::fail(format!("{step:?}: {error}"))),
            }
        }
        check_log(&optimizer)?;
        prop_assert!(is_consistent(&optimizer));

        let problem = &case.definition.problem;
        let context = vec![0.5; problem.n_numbers().1];
        let encoded = problem.encode_context(&context);
        let row = |i: u64| {
            let point = uniform_point(problem, probe.wrapping_add(i));
            [problem.encode(&point).unwrap(), encoded.clone()].concat()
        };
        let rows: Vec<_> = (0..5).map(row).collect();
        let rows = Array2::from_shape_vec((5, rows[0].len()), rows.concat()).unwrap();
        for pending in [false, true] {
            if let Ok(Some(surrogate)) = optimizer.surrogate(Some(0.0), pending, None, &mut go_on()) {
                let (mean, variance) = surrogate.gp.predict(rows.view());
                prop_assert!(mean.iter().chain(&variance).all(|v| !v.is_nan()), "{mean:?} {variance:?}");
                prop_assert!(!surrogate.units.center.is_nan() && surrogate.units.scale > 0.0);
            }
        }
        match optimizer.recommend(2, Request { context: &context, time: Some(0.0), ..Request::default() }, &mut go_on()) {
            Ok(found) => {
                let ledger = optimizer.ledger();
                prop_assert!(found.is_empty() || ledger.view().n_observed() > 0);
                prop_assert!(!found.is_empty() || ledger.best().is_none());
                for best in found {
                    prop_assert!(case.definition.problem.check_measured(&best.point).is_ok());
                    prop_assert!(!best.mean.is_nan(), "{best:?}");
                }
            }
            Err(error) => prop_assert!(is_numerical(&error), "{error}"),
        }
    }

    #[test]
    fn fitted_models_suggest_without_random_points(case in case(40)) {
        let old = &case.definition;
        let (problem, seed) = (&old.problem, old.seed);
        let settings = case.settings.clone().map(fitted);
        let (_, width) = problem.n_numbers();
        let all = definition(problem.members.clone(), width, problem.clock, seed, settings.as_ref()).unwrap();
        let mut optimizer = Optimizer::new(all).unwrap();
        for step in &case.steps {
            let warnings = step.take(&mut optimizer, &mut go_on()).map_err(|error| {
                TestCaseError::fail(format!("{step:?}: {error}"))
            })?;
            // A random point must not be suggested. Other warnings, such as about a domain whose points are all
            // observed, are allowed.
            let random = warnings.iter().any(|warning| warning.contains("random point"));
            prop_assert!(!random, "{warnings:?}");
        }
    }
}

#[test]
fn huge_sizes_are_refused_before_memory_is_allocated() {
    let made = |context_width, settings: Value| {
        let clock = Clock::Iterations;
        let all = definition(cube(1), context_width, clock, 0, Some(&settings))?;
        Optimizer::new(all)
    };
    let huge = usize::MAX;
    let plain = json!({"kind": "BayesOpt"});
    for (context_width, name, value) in [
        (1 << 20, "window", json!(null)),
        (0, "initial", json!({"kind": "Initial", "n": huge})),
        (0, "surrogate", json!({"kind": "GP", "n_restarts": huge})),
        (
            0,
            "acquisition",
            json!({"kind": "ThompsonSampling", "n_features": huge}),
        ),
    ] {
        let mut settings = plain.clone();
        settings[name] = value;
        let refused = made(context_width, settings).map(drop).unwrap_err();
        assert!(
            !matches!(refused, Error::InvalidDefinition { .. }),
            "{refused}"
        );
    }
    // A huge batch that is stopped at once must not reserve memory for trials that do not exist yet.
    let mut optimizer = made(0, plain).unwrap();
    let stopped = optimizer.suggest(usize::MAX, Request::default(), &mut || {
        ControlFlow::Break(())
    });
    assert_eq!(stopped, Err(Error::Interrupted));
}
