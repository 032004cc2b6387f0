//! Generates random domains for the property tests: spaces and lists of candidates.

use std::sync::Arc;

use belated::{
    Candidates, Choices, Clock, Declaration, Definition, Error, Integer, Members, Optimizer,
    Parameter, Point, Problem, Real, Request, Role, Space,
};
use ndarray::Array2;
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde_json::json;

use crate::histories::go_on;

fn parameter() -> impl Strategy<Value = Parameter> {
    let real = |low, high, log| Parameter::Real(Real::new(low, high, log, None).unwrap());
    let steps = |n: u8| {
        let made = Real::new(-1.0, -1.0 + 0.1 * f64::from(n), false, Some(0.1));
        Parameter::Real(made.unwrap())
    };
    let integer = |low: i64, n: i64, log| {
        let made = Integer::new(low as f64, (low + n) as f64, log, None);
        Parameter::Integer(made.unwrap())
    };
    let multiples = |low: i64, n: i64| {
        let made = Integer::new(7.0 * low as f64, 7.0 * (low + n) as f64, true, Some(7.0));
        Parameter::Integer(made.unwrap())
    };
    let labels = |n: usize| (0..n).map(|i| format!("'c{i}'")).collect();
    prop_oneof![
        2 => Just(real(0.0, 1.0, false)),
        1 => Just(real(1e-5, 1e3, true)),
        1 => (2..20u8).prop_map(steps),
        1 => (1..5usize).prop_map(move |n| Parameter::Categorical(Choices::unordered(labels(n)))),
        1 => (1..5usize).prop_map(move |n| Parameter::Ordinal(Choices::ordered(labels(n)))),
        1 => (-50..50i64, 0..60i64).prop_map(move |(low, n)| integer(low, n, false)),
        1 => (1..50i64, 0..100_000i64).prop_map(move |(low, n)| integer(low, n, true)),
        1 => (1..50i64, 1..1000i64).prop_map(move |(low, n)| multiples(low, n)),
    ]
}

/// Returns a space of these parameters, named x0, x1, ….
pub fn space(parameters: Vec<Parameter>) -> Result<Space, Error> {
    let named = parameters.into_iter().enumerate();
    let declared = named.map(|(i, parameter)| Declaration {
        name: format!("x{i}"),
        parameter,
        when: Vec::new(),
    });
    Space::new(Role::Params, declared.collect())
}

/// Returns the unit cube.
pub fn cube(width: usize) -> Members {
    let problem = Problem::unit_cube(width, 0, Clock::Iterations).unwrap();
    problem.members
}

/// Generates lists of candidates, which may be spread out, repeated, almost equal, on a line or all at the same point,
/// with coordinates that may be very small or very large.
fn candidates() -> impl Strategy<Value = Members> {
    let count = prop_oneof![8 => 1..30usize, 1 => Just(300)];
    (count, 1..4usize, 0..7, any::<u64>()).prop_map(|(n, d, kind, seed)| {
        let mut rng = Pcg64::seed_from_u64(seed);
        let rows = Array2::from_shape_fn((n, d), |(i, k)| {
            let u: f64 = rng.random();
            match kind {
                0 => u,
                1 => f64::from(u < 0.5), // at most 2^d different rows
                2 => [0.3, 0.3_f64.next_up(), 0.3_f64.next_down()][i % 3],
                3 if k == 0 => u,
                3 => 0.25,
                4 => 0.7,
                5 => u * 1e-300,
                _ => [u, 1e300 * u, f64::MAX, f64::MIN, 1e-300 * u][(u * 1e6) as usize % 5],
            }
        });
        Members::Candidates(Candidates::new(rows).unwrap())
    })
}

pub fn members() -> impl Strategy<Value = Members> {
    // Spaces of constants only are refused, and not generated.
    let space = |parameters| space(parameters).ok().map(Members::Space);
    prop_oneof![
        1 => candidates(),
        1 => vec(parameter(), 1..5).prop_filter_map("constants alone", space),
    ]
}

/// Returns a uniformly random point of the problem, which is the first suggestion of random search.
pub fn uniform_point(problem: &Problem, seed: u64) -> Point {
    let definition = Definition {
        problem: Arc::new(Problem {
            context: None,
            fidelity: None,
            clock: Clock::Iterations,
            ..problem.clone()
        }),
        seed,
        strategy: json!({"kind": "RandomSearch"}),
        stopping: None,
    };
    let mut search = Optimizer::new(definition).unwrap();
    search.suggest(1, Request::default(), &mut go_on()).unwrap();
    search.ledger().point(0)
}
