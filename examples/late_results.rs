//! Eight evaluations are in flight at a time, and their results arrive in random order. The optimizer is saved and
//! restored during the run.

use std::ops::ControlFlow;
use std::sync::Arc;

use belated::{Action, Clock, Definition, Optimizer, Point, Problem, Request, Result};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// A function on the unit square. The maximum of the function is 0, at (0.3, 0.7).
fn f(point: &Point) -> f64 {
    match point {
        Point::Numbers(numbers) => {
            let target = [0.3, 0.7];
            let squares = numbers
                .iter()
                .flatten()
                .zip(target)
                .map(|(x, t)| (x - t).powi(2));
            -squares.sum::<f64>()
        }
        Point::Candidate(_) => f64::NEG_INFINITY,
    }
}

fn main() -> Result<()> {
    let problem = Arc::new(Problem::unit_cube(2, 0, Clock::Iterations)?);
    let definition = Definition::from_json(problem, 1, r#"{"kind": "BayesOpt"}"#)?;
    let mut optimizer = Optimizer::new(definition)?;
    let mut rng = Pcg64::seed_from_u64(0);
    let mut in_flight = Vec::new();
    for step in 0..60 {
        let (numbers, _warnings) =
            optimizer.suggest(1, Request::default(), &mut || ControlFlow::Continue(()))?;
        in_flight.extend(numbers);
        if in_flight.len() > 8 {
            let number = in_flight.swap_remove(rng.random_range(0..in_flight.len()));
            let action = match rng.random_range(0..20) {
                0 => Action::fail(number),
                _ => Action::observe(number, f(&optimizer.ledger().point(number)), None, false),
            };
            optimizer.record(action, None)?;
        }
        if step == 30 {
            // The restored optimizer makes the same suggestions bit for bit, even while trials are in flight.
            optimizer = Optimizer::from_bytes(&optimizer.to_bytes()?)?;
        }
    }
    if let Some(best) = optimizer.ledger().best() {
        let (point, value) = (
            optimizer.ledger().point(best),
            optimizer.ledger().value(best),
        );
        println!("{point:?}, value {value:?}");
        assert!(value > Some(-1e-2));
    }
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
