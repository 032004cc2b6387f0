//! Minimises a function under a known constraint. The constraint is a predicate over the parameter values in the user's
//! units.

use std::ops::ControlFlow;
use std::sync::Arc;

use belated::{
    Action, Declaration, Definition, Direction, Feasible, Integer, Optimizer, Parameter, Point,
    Problem, Real, Request, Result, Role, Space,
};

/// The maximum number of neurons, summed over all layers.
const MOST_NEURONS: f64 = 600.0;

/// The error of a network. The unconstrained minimum violates the constraint.
fn error(rate: f64, layers: f64, width: f64) -> f64 {
    (rate / 3e-3).ln().powi(2) + (layers - 4.0).powi(2) + (width / 256.0 - 1.0).powi(2)
}

fn main() -> Result<()> {
    let space = Space::new(
        Role::Params,
        vec![
            Declaration::new("rate", Parameter::Real(Real::new(1e-5, 1.0, true, None)?)),
            Declaration::new(
                "layers",
                Parameter::Integer(Integer::new(1.0, 8.0, false, None)?),
            ),
            Declaration::new(
                "width",
                Parameter::Integer(Integer::new(8.0, 512.0, true, None)?),
            ),
        ],
    )?;
    let problem = Arc::new(Problem {
        direction: Direction::Minimize,
        ..Problem::new(space)
    });
    let fits = problem.constraint(|numbers| match numbers {
        [_, Some(layers), Some(width)] => layers * width <= MOST_NEURONS,
        _ => false,
    });
    let definition = Definition::from_json(problem.clone(), 0, r#"{"kind": "BayesOpt"}"#)?;
    let mut optimizer = Optimizer::new(definition)?;
    for _ in 0..40 {
        let request = Request {
            feasible: Feasible::by(&fits),
            ..Request::default()
        };
        let (numbers, _warnings) =
            optimizer.suggest(1, request, &mut || ControlFlow::Continue(()))?;
        let Point::Numbers(point) = optimizer.ledger().point(numbers[0]) else {
            continue;
        };
        if let [Some(rate), Some(layers), Some(width)] = point[..] {
            assert!(layers * width <= MOST_NEURONS);
            let value = error(rate, layers, width);
            optimizer.record(Action::observe(numbers[0], value, None, false), None)?;
        }
    }
    if let Some(best) = optimizer.ledger().best() {
        let (point, value) = (
            optimizer.ledger().point(best),
            optimizer.ledger().value(best),
        );
        println!("rate, layers, width: {point:?}, error {value:?}");
        // The smallest feasible error is 0.171, with 4 layers of 150 neurons and a learning rate of 0.003.
        assert!(value < Some(0.25));
    }
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
