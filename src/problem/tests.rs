//! Tests of spaces with all kinds of parameters: encoding and decoding, conditions, and invalid input.

use proptest::prelude::*;

use std::sync::Arc;

use super::{
    Candidates, Choices, Clock, Declaration, Direction, Fidelity, Fixed, Held, Integer, Linear,
    Member, Members, Parameter, Point, Problem, Real, Role, Space,
};
use crate::error::Error;
use crate::ledger::{Action, Event, Ledger, Observation};
use crate::problem::Domain;
use crate::random::Rng;
use rand::SeedableRng;

fn labels(n: usize) -> Vec<String> {
    (0..n).map(|i| format!("'c{i}'")).collect()
}

fn real(low: f64, high: f64, log: bool, step: Option<f64>) -> Parameter {
    Parameter::Real(Real::new(low, high, log, step).unwrap())
}

fn integer(low: f64, high: f64, log: bool, step: Option<f64>) -> Parameter {
    Parameter::Integer(Integer::new(low, high, log, step).unwrap())
}

fn categorical(n: usize) -> Parameter {
    Parameter::Categorical(Choices::unordered(labels(n)))
}

fn declare(name: &str, parameter: Parameter, when: &[(&str, &[u64])]) -> Declaration {
    Declaration {
        name: name.into(),
        parameter,
        when: when
            .iter()
            .map(|(parent, levels)| (parent.to_string(), levels.to_vec()))
            .collect(),
    }
}

/// The parameter `degree` is active if kernel = 'c1', and `coef` is active if degree ∈ {2, 3}. The constant `cache`
/// depends on the kernel, too. C is always active.
fn svm() -> Space {
    let declared = vec![
        declare(
            "coef",
            real(0.0, 1.0, false, Some(0.1)),
            &[("degree", &[0, 1])],
        ),
        declare("kernel", categorical(3), &[]),
        declare(
            "degree",
            integer(2.0, 5.0, false, None),
            &[("kernel", &[1])],
        ),
        declare("cache", categorical(1), &[("kernel", &[0, 1])]),
        declare("C", real(1e-4, 100.0, true, None), &[]),
    ];
    Space::new(Role::Params, declared).unwrap()
}

fn refused(found: crate::error::Result<Vec<Option<f64>>>) -> String {
    match found {
        Err(Error::InvalidPoint(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_point_is_completed_encoded_and_decoded() {
    let space = svm();
    let point = [Some(0.3), Some(1.0), Some(2.0), None, Some(0.5)];
    let whole = space.complete(&point, &[]).unwrap();
    assert_eq!(
        whole,
        [Some(0.3), Some(1.0), Some(2.0), Some(0.0), Some(0.5)]
    );
    let x = space.encode(&whole);
    // Three parameters have one column each, and one parameter has a one-hot group.
    assert_eq!((x.len(), space.domain().width()), (6, 6));
    let back = space.decode(&x);
    assert_eq!(back[..4], whole[..4]);
    assert!((back[4].unwrap() / 0.5 - 1.0).abs() < 1e-14);
    // Inactive parameters have fixed columns, even if their parent is inactive.
    let whole = space
        .complete(&[None, Some(2.0), None, None, Some(1e-4)], &[])
        .unwrap();
    assert_eq!(whole, [None, Some(2.0), None, None, Some(1e-4)]);
    assert_eq!(space.encode(&whole), [0.5, 0.0, 0.0, 1.0, 0.5, 0.0]);
    assert_eq!(space.decode(&space.encode(&whole)), whole);
}

#[test]
fn invalid_points_are_refused() {
    let space = svm();
    let unknown = ["'depth'".to_string()];
    for (point, unknown, part) in [
        (
            [None, Some(0.0), Some(2.0), None, Some(1.0)],
            &[][..],
            "params['degree']=2 is inactive here",
        ),
        (
            [Some(0.1), Some(1.0), Some(5.0), None, Some(1.0)],
            &[],
            "as it needs degree in [2, 3]",
        ),
        (
            [None, Some(1.0), None, None, Some(1.0)],
            &[],
            "misses ['degree']: pass exactly",
        ),
        (
            [None, None, None, None, Some(1.0)],
            &[],
            "misses ['kernel']",
        ),
        (
            [Some(0.1), None, Some(2.0), None, None],
            &[],
            "misses ['kernel', 'C']",
        ),
        (
            [None, Some(0.0), None, None, Some(1.0)],
            &unknown,
            "has unknown ['depth']",
        ),
        // If an inactive parameter has an invalid value, the error says that the parameter is inactive.
        (
            [None, Some(0.0), Some(f64::NAN), None, Some(1.0)],
            &[],
            "params['degree'] is inactive here",
        ),
    ] {
        let text = refused(space.complete(&point, unknown));
        assert!(text.contains(part), "{text}");
    }
    let flat = vec![declare("x", real(0.0, 1.0, false, None), &[])];
    let context = Space::new(Role::Context, flat).unwrap();
    let error = context.complete(&[None], &[]).unwrap_err();
    assert!(matches!(error, Error::InvalidContext(text) if text.contains("context misses ['x']")));
}

#[test]
fn values_out_of_the_range_of_a_parameter_are_refused() {
    let inside = |parameter: &Parameter, number| parameter.kind().checked(number);
    let x = real(0.0, 1.0, false, None);
    assert_eq!(
        (inside(&x, 1.0), inside(&x, 1.1), inside(&x, f64::NAN)),
        (Some(1.0), None, None)
    );
    let stepped = real(0.0, 1.0, false, Some(0.1));
    assert_eq!(
        (inside(&stepped, 0.1 + 0.2), inside(&stepped, 0.25)),
        (Some(0.3), None)
    );
    assert_eq!(
        (inside(&stepped, 1.1), inside(&stepped, -0.1)),
        (None, None)
    );
    let n = integer(1.0, 9.0, false, Some(4.0));
    assert_eq!(
        (inside(&n, 5.0), inside(&n, 4.0), inside(&n, 13.0)),
        (Some(5.0), None, None)
    );
    assert_eq!((inside(&n, 5.5), inside(&n, f64::INFINITY)), (None, None));
    let choice = categorical(3);
    assert_eq!(
        (
            inside(&choice, 2.0),
            inside(&choice, 3.0),
            inside(&choice, 0.5)
        ),
        (Some(2.0), None, None)
    );
    assert_eq!(choice.kind().expected(), "one of ['c0', 'c1', 'c2']");
    assert_eq!(
        n.kind().expected(),
        "an integer in [1, 9] in steps of 4 from 1"
    );
}

#[test]
fn spaces_that_cannot_be_searched_are_refused() {
    let x = || real(0.0, 1.0, false, None);
    let k = || categorical(2);
    for (declared, part) in [
        (vec![declare("a", categorical(1), &[])], "constants alone"),
        (
            vec![declare("x", x(), &[]), declare("c", k(), &[("x", &[0])])],
            "continuous Real",
        ),
        (
            vec![declare("c", k(), &[("zzz", &[0])])],
            "is not a parameter of space",
        ),
        (
            vec![declare("c", k(), &[("c", &[0])])],
            "['c'] depend on each other in a circle",
        ),
        (
            vec![
                declare("a", k(), &[("b", &[0])]),
                declare("b", k(), &[("a", &[0])]),
                declare("d", k(), &[("a", &[1])]),
            ],
            "['a', 'b'] depend on each other",
        ),
        (
            vec![
                declare("k", k(), &[]),
                declare("one", categorical(1), &[("k", &[0])]),
                declare("b", k(), &[("one", &[0]), ("k", &[1])]),
            ],
            "can never be active: its conditions on 'k' exclude each other",
        ),
        (
            vec![declare("c", categorical(5000), &[])],
            "space['c'] has 5000",
        ),
        (
            vec![declare("x", x(), &[]), declare("c", categorical(0), &[])],
            "space['c'] has no values",
        ),
        (
            vec![declare("c", k(), &[]), declare("x", x(), &[("c", &[])])],
            "at no level",
        ),
        (
            vec![declare("c", k(), &[]), declare("x", x(), &[("c", &[2])])],
            "at level 2 of 2",
        ),
        (
            vec![
                declare("c", k(), &[]),
                declare("x", x(), &[("c", &[0]), ("c", &[1])]),
            ],
            "which it names twice",
        ),
    ] {
        match Space::new(Role::Params, declared) {
            Err(Error::InvalidSpace(text)) => assert!(text.contains(part), "{text}"),
            other => panic!("{other:?}"),
        }
    }
}

/// Random parameters of every kind and magnitude.
fn parameter() -> impl Strategy<Value = Parameter> {
    let magnitude = (-9.99..9.99f64, -290..290i32).prop_map(|(m, e)| m * 10f64.powi(e));
    let two = (magnitude.clone(), magnitude).prop_filter("equal", |(a, b)| a.abs() != b.abs());
    prop_oneof![
        two.clone()
            .prop_map(|(a, b)| real(a.min(b), a.max(b), false, None)),
        two.prop_map(|(a, b)| real(a.abs().min(b.abs()), a.abs().max(b.abs()), true, None)),
        (-50..50i32, 1..60u32).prop_map(|(low, n)| {
            let tenths = |k: i32| format!("{k}e-1").parse().unwrap();
            real(tenths(low), tenths(low + n as i32), false, Some(0.1))
        }),
        (1..1i64 << 39, 0..1i64 << 39, any::<bool>()).prop_map(|(low, n, log)| integer(
            low as f64,
            (low + n) as f64,
            log,
            None
        )),
        (-1000..1000i32, 1..50u32, 1..50u32).prop_map(|(low, step, n)| integer(
            low.into(),
            f64::from(low) + f64::from(step * n),
            false,
            Some(step.into())
        )),
        (1..6usize).prop_map(categorical),
        (2..9usize).prop_map(|n| Parameter::Ordinal(Choices::ordered(labels(n)))),
    ]
}

proptest! {
    #[test]
    fn numbers_are_encoded_and_decoded(parameters in prop::collection::vec(parameter(), 1..6), shares in prop::collection::vec(0.0..=1.0f64, 6), when in prop::collection::vec(0..4usize, 6)) {
        let name = |i: usize| format!("p{i}");
        let mut declared: Vec<Declaration> = Vec::new();
        for (i, parameter) in parameters.iter().enumerate() {
            // A parameter may have a condition on the previous parameter, if the previous parameter has several values.
            let parent = i.checked_sub(1).filter(|_| when[i] == 0);
            let parent = parent.filter(|&at| parameters[at].n_levels().is_some_and(|n| n > 1));
            let when = parent.map(|at| (name(at), vec![0]));
            declared.push(Declaration { name: name(i), parameter: parameter.clone(), when: when.into_iter().collect() });
        }
        let Ok(space) = Space::new(Role::Params, declared) else { return Ok(()) };
        let width = space.domain().width();
        let mut x: Vec<f64> = (0..width).map(|j| shares[j % shares.len()]).collect();
        let drawn = space.decode(&x);
        // A decoded point is complete, and its discrete numbers are encoded and decoded exactly.
        prop_assert_eq!(space.complete(&drawn, &[]).unwrap(), drawn.clone());
        let encoded = space.encode(&drawn);
        prop_assert!(space.domain().contains(&encoded));
        for (i, (before, after)) in drawn.iter().zip(space.decode(&encoded)).enumerate() {
            if let (Some(before), Some(_)) = (before, parameters[i].n_levels()) {
                prop_assert_eq!(Some(*before), after);
                prop_assert_eq!(parameters[i].kind().checked(*before), Some(*before));
            }
        }
        // A logged point and a saved problem are read back bit for bit.
        let point = Point::Numbers(space.only_searched(&drawn));
        let problem = Problem { direction: Direction::Minimize, ..Problem::new(space.clone()) };
        let bytes = postcard::to_stdvec(&problem).unwrap();
        prop_assert_eq!(&postcard::from_bytes::<Problem>(&bytes).unwrap(), &problem);
        let mut log = Ledger::new(Arc::new(problem));
        let add = Action::add(point.clone(), vec![], Some(shares[0]), None);
        let event = log.validate(add, 0.0, None).unwrap().unwrap();
        log.append(Event::from_json(&event.to_json().unwrap()).unwrap()).unwrap();
        prop_assert_eq!((log.event(0), log.point(0)), (event, point));
        prop_assert_eq!(log.x(0), &encoded[..]);
        // The encoded domain maps the drawn columns to the same columns, up to rounding.
        space.domain().snap(&mut x);
        let Domain::Box(_) = &**space.domain() else { unreachable!() };
        for (a, b) in x.iter().zip(&encoded) {
            prop_assert!((a - b).abs() <= 1e-12, "{} {}", a, b);
        }
    }
}

proptest! {
    /// The parts have lower bounds 0, far below 1e-9 of the total, or above it. One part is tiny, and its amount is at
    /// another part.
    #[test]
    fn parts_of_mixtures_are_zero_or_can_be_weighed(
        lows in prop::collection::vec(0..4usize, 2..6), seed: u64, exponent in 6.0..17.0f64, total in 0.1..200.0f64,
        coefficient in 0.5..2.0f64, is_bounded: bool, is_held: bool, at in 0..5usize, to in 0..5usize,
    ) {
        let n = lows.len();
        let at = at % n;
        let to = (at + 1 + to % (n - 1)) % n;
        let name = |i: usize| format!("p{i}");
        let low = |i: usize| [0.0, 0.0, 1e-12, 1e-3][lows[i]] * total;
        let declared = (0..n).map(|i| Declaration::new(&name(i), real(low(i), total, false, None)));
        let constraint = |terms: Vec<(String, f64)>, at_least, at_most| Linear {
            terms, at_least, at_most, step: None, tolerance: 0.0, counts: false,
        };
        let sum = Some(coefficient * total);
        let mut linear = vec![constraint((0..n).map(|i| (name(i), coefficient)).collect(), sum, sum)];
        if is_bounded {
            linear.push(constraint(vec![(name(0), 2.0), (name(n - 1), 1.0)], None, Some(0.9 * total)));
        }
        let Ok(space) = Space::new(Role::Params, declared.collect()).unwrap().with_linear(linear) else {
            return Ok(());
        };
        let mut rng = Rng::seed_from_u64(seed);
        let mut before = space.decode_exactly(&space.domain().sample_uniform(&mut rng).0);
        let tiny = total * 10f64.powf(-exponent);
        let moved = before[at].unwrap() - tiny;
        before[at] = Some(tiny);
        before[to] = before[to].map(|amount| amount + moved);
        prop_assume!(space.is_member(&before));
        let x = space.encode_searched(|k| before[k]);
        let before = space.decode_exactly(&x);
        let problem = Problem::new(space.clone());
        let held = |k: usize| (is_held && k == to).then(|| Held::Values(vec![before[k].unwrap()]));
        let fixed = Fixed::Parameters((0..n).map(held).collect());
        let Ok(restriction) = problem.restrict(&fixed) else { return Ok(()) };
        let Point::Numbers(after) = problem.decode(&Member::new(x, None), Some(&restriction)) else { unreachable!() };
        prop_assert!(space.is_member(&after));
        let off = |point: &[Option<f64>]| (point.iter().flatten().sum::<f64>() - total).abs();
        prop_assert!(off(&after) <= off(&before).max(1e-11 * total), "{:?} {:?}", before, after);
        for (k, (a, b)) in before.iter().zip(&after).enumerate() {
            let (a, b) = (a.unwrap(), b.unwrap());
            prop_assert!((a - b).abs() <= 1e-9 * n as f64 * total && (a == b || !is_held || k != to));
            let least = 1e-9 * total;
            let others = |i: &usize| *i != k && !(is_held && *i == to);
            let can_grow = |i: usize| {
                let mut point = after.clone();
                (point[k], point[i]) = (Some(0.0), Some(after[i].unwrap() + b));
                space.is_member(&point) && point[i].unwrap() >= least
            };
            let can_be_zero = !(is_held && k == to) && (0..n).filter(others).any(can_grow);
            prop_assert!(b == 0.0 || b >= least || !can_be_zero, "{:?} {:?}", before, after);
            // Without further limits, every small part becomes 0.
            let is_free = !is_bounded && !is_held && low(k) == 0.0;
            prop_assert!(b == 0.0 || b >= least || !is_free, "{:?} {:?}", before, after);
        }
    }
}

#[test]
fn numbers_that_are_not_a_point_of_the_problem_are_refused() {
    let space = svm();
    assert_eq!(space.searched().len(), 4);
    let problem = Problem {
        context: Problem::unit_cube(1, 1, Clock::Iterations).unwrap().context,
        fidelity: Some(Fidelity::new(integer(100.0, 500.0, false, None), None, None).unwrap()),
        ..Problem::new(space)
    };
    let numbers = |numbers: [Option<f64>; 4]| Point::Numbers(numbers.to_vec());
    let inside = numbers([Some(0.3), Some(1.0), Some(2.0), Some(1.0)]);
    assert_eq!(problem.check_point(&inside), Ok(()));
    for (point, part) in [
        (Point::at(&[1.0]), "has 1 numbers; give one for each of"),
        (Point::Candidate(0), "not a point of a space"),
        (
            numbers([Some(0.35), Some(1.0), Some(2.0), Some(1.0)]),
            "params['coef']=0.35 is not usable",
        ),
        (
            numbers([None, Some(3.0), None, Some(1.0)]),
            "params['kernel']=3.0 is not usable",
        ),
        (
            numbers([None, Some(1.0), None, Some(1.0)]),
            "a number for each active parameter",
        ),
        (
            numbers([Some(0.3), Some(0.0), None, Some(1.0)]),
            "none for inactive ones",
        ),
        (
            numbers([Some(0.3), Some(1.0), Some(2.0), Some(f64::NAN)]),
            "params['C']=NaN is not usable",
        ),
    ] {
        match problem.check_point(&point) {
            Err(Error::InvalidPoint(text)) => assert!(text.contains(part), "{text}"),
            other => panic!("{other:?}"),
        }
    }
    for context in [&[][..], &[0.5, 0.5], &[1.5], &[f64::NAN]] {
        let refused = problem.check_context(context);
        assert!(
            matches!(refused, Err(Error::InvalidContext(_))),
            "{refused:?}"
        );
    }
    for fidelity in [99.0, 501.0, 100.5, f64::NAN] {
        let refused = problem.check_fidelity(Some(fidelity));
        assert!(
            matches!(refused, Err(Error::InvalidFidelity(_))),
            "{refused:?}"
        );
    }
    assert_eq!(
        (problem.z(Some(500.0)), problem.fidelity_at(0.25)),
        (Some(1.0), Some(200.0))
    );
    let list = Candidates::new(ndarray::array![[10.0], [20.0], [40.0]]).unwrap();
    let problem = Problem {
        members: Members::Candidates(list),
        ..problem
    };
    assert_eq!(problem.check_point(&Point::Candidate(2)), Ok(()));
    for point in [Point::Candidate(3), Point::at(&[20.0])] {
        let refused = problem.check_point(&point);
        assert!(
            matches!(refused, Err(Error::InvalidPoint(_))),
            "{refused:?}"
        );
    }
    assert_eq!(problem.encode(&Point::Candidate(1)).unwrap(), [1.0 / 3.0]);
    assert_eq!(problem.encode(&Point::at(&[70.0])).unwrap(), [2.0]);
    for point in [
        Point::Candidate(3),
        Point::at(&[20.0, 1.0]),
        Point::at(&[f64::NAN]),
        Point::Numbers(vec![None]),
    ] {
        let refused = [
            problem.encode(&point).err(),
            problem.check_measured(&point).err(),
        ];
        assert!(
            refused
                .iter()
                .all(|it| matches!(it, Some(Error::InvalidPoint(_))))
        );
    }
    let near = Member::new(vec![0.3], None);
    assert_eq!(problem.decode(&near, None), Point::Candidate(1));
}

#[test]
fn the_smallest_value_is_the_best_if_f_is_minimized() {
    let problem = Problem {
        direction: Direction::Minimize,
        ..Problem::unit_cube(1, 0, Clock::Iterations).unwrap()
    };
    let mut log = Ledger::new(Arc::new(problem));
    for value in [0.5, -2.0, 3.0] {
        let add = Action::add(Point::at(&[0.5]), vec![], Some(value), None);
        let event = log.validate(add, 0.0, None).unwrap().unwrap();
        log.append(event).unwrap();
    }
    assert_eq!((log.best(), log.value(1)), (Some(1), Some(-2.0)));
    assert_eq!(log.view().of(1).value(), Some(2.0));
    let refused = log.validate(Action::observe(1, 7.0, None, false), 0.0, None);
    let expected = Error::AlreadyObserved {
        number: 1,
        value: -2.0,
    };
    assert_eq!(refused, Err(expected));
}

#[test]
fn negative_zeros_become_zeros() {
    let is_positive = |number: Option<f64>| number.is_some_and(|number| number.is_sign_positive());
    for parameter in [
        real(-1.0, 1.0, false, None),
        real(-1.0, -0.0, false, None),
        real(-0.0, 1.0, false, Some(0.5)),
        integer(-1.0, 1.0, false, None),
        categorical(2),
        Parameter::Ordinal(Choices::ordered(labels(2))),
    ] {
        assert!(is_positive(parameter.kind().checked(-0.0)), "{parameter:?}");
    }
    let x = || real(-0.0, 1.0, false, None);
    assert!(is_positive(Some(x().kind().decode(&[0.0]))));
    let space = |role| Space::new(role, vec![Declaration::new("x", x())]).unwrap();
    let problem = Problem {
        context: Some(space(Role::Context)),
        fidelity: Some(Fidelity::new(x(), None, None).unwrap()),
        ..Problem::new(space(Role::Params))
    };
    let mut log = Ledger::new(Arc::new(problem));
    let add = Action::Add {
        point: Point::at(&[-0.0]),
        context: vec![-0.0],
        fidelity: Some(-0.0),
        observation: Observation::default(),
        attrs: None,
    };
    let event = log.validate(add, 0.0, None).unwrap().unwrap();
    log.append(event).unwrap();
    let Point::Numbers(numbers) = log.point(0) else {
        panic!("not a point of a space")
    };
    assert!(is_positive(numbers[0]));
    assert!(is_positive(Some(log.context_numbers(0)[0])));
    assert!(is_positive(log.trials()[0].fidelity()));
}
