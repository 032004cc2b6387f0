//! Generates random optimizers of every kind, and random histories of steps, for the property tests.

use std::ops::ControlFlow;
use std::sync::Arc;

use belated::{
    Action, Again, Clock, Curve, CurveValue, Data, Definition, Direction, Error, Failure, Fidelity,
    Members, Observation, Optimizer, Parameter, Point, Problem, Queued, Real, Request, State, Stop,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use proptest::strategy::Union;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde_json::{Value, json};

use crate::domains::{cube, members, uniform_point};
use crate::number;
use crate::settings::{bpe_delay, of_rivals, settings, tree_search};

/// An optimizer and its history.
#[derive(Debug, Clone)]
pub struct Case {
    pub definition: Definition,
    /// The settings of Bayesian optimisation, or None if the optimizer is random search, BPE-Delay or tree search.
    pub settings: Option<Value>,
    pub steps: Vec<Step>,
}

/// A step of a history. The number of a trial is taken modulo the number of trials.
#[derive(Debug, Clone)]
pub enum Step {
    Suggest {
        n: usize,
        place: Place,
    },
    Observe {
        which: usize,
        value: f64,
        again: Again,
        /// The point where the trial was actually run.
        place: Option<Place>,
    },
    Fail(usize),
    Abandon(usize),
    Report {
        which: usize,
        value: f64,
    },
    Stop(usize),
    Withdraw(usize),
    Add {
        place: Place,
        value: Option<f64>,
    },
    /// With true, only the first number of a point is given.
    Enqueue(Place, bool),
    Recommend(Place),
    Surrogate {
        pending: bool,
    },
    /// The optimizer is saved and restored.
    Restore,
}

/// A recipe for a point or a context: its kind, and the seed of the coordinates.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    kind: PlaceKind,
    seed: u64,
}

#[derive(Debug, Clone, Copy)]
enum PlaceKind {
    /// A uniform draw from the domain.
    Inside,
    /// The point of an earlier trial.
    Repeated,
    /// The point of an earlier trial, with every real number changed by one unit in the last place.
    Adjacent,
}

pub fn go_on() -> impl FnMut() -> ControlFlow<()> {
    || ControlFlow::Continue(())
}

/// Returns whether an error is numerical. Numerical errors are allowed if the numbers are extreme.
pub fn is_numerical(error: &Error) -> bool {
    matches!(
        error,
        Error::NotPositiveDefinite { .. } | Error::Overflow { .. }
    )
}

/// Generates the values of one history: all equal, almost equal, all of one extreme size, or arbitrary.
fn values() -> impl Strategy<Value = Union<proptest::strategy::BoxedStrategy<f64>>> {
    let size = select(vec![1.0, -7.5, 1e300, 1e-300, 5e-324]);
    let near = size.clone().prop_map(|v: f64| {
        let all = vec![v, v.next_up(), v.next_down(), v.next_up().next_up()];
        Union::new([select(all).boxed()])
    });
    let equal =
        prop_oneof![size, Just(0.0), Just(f64::MAX)].prop_map(|v| Union::new([Just(v).boxed()]));
    let sized = select(vec![1e300, 1e-300, 1e-310, 1.0])
        .prop_map(|size| Union::new([(-1.0..1.0f64).prop_map(move |v| v * size).boxed()]));
    prop_oneof![
        3 => Just(()).prop_map(|()| Union::new([(-1.0..1.0f64).boxed()])),
        1 => near,
        1 => equal,
        1 => sized,
        2 => Just(()).prop_map(|()| Union::new([number().boxed()])),
    ]
}

fn place() -> impl Strategy<Value = Place> {
    let kind = prop_oneof![
        3 => Just(PlaceKind::Inside),
        2 => Just(PlaceKind::Repeated),
        2 => Just(PlaceKind::Adjacent),
    ];
    (kind, any::<u64>()).prop_map(|(kind, seed)| Place { kind, seed })
}

fn step(value: impl Strategy<Value = f64> + Clone + 'static) -> impl Strategy<Value = Step> {
    let which = any::<usize>();
    let again = select(vec![
        Again::Refuse,
        Again::Amend,
        Again::Amend,
        Again::Replicate,
    ]);
    prop_oneof![
        6 => (1..4usize, place()).prop_map(|(n, place)| Step::Suggest { n, place }),
        8 => (which, value.clone(), again, option::weighted(0.2, place()))
            .prop_map(|(which, value, again, place)| Step::Observe { which, value, again, place }),
        1 => which.prop_map(Step::Fail),
        1 => which.prop_map(Step::Abandon),
        2 => (which, value.clone()).prop_map(|(which, value)| Step::Report { which, value }),
        1 => which.prop_map(Step::Stop),
        2 => which.prop_map(Step::Withdraw),
        2 => (place(), option::of(value)).prop_map(|(place, value)| Step::Add { place, value }),
        1 => (place(), any::<bool>()).prop_map(|(place, partial)| Step::Enqueue(place, partial)),
        1 => place().prop_map(Step::Recommend),
        1 => any::<bool>().prop_map(|pending| Step::Surrogate { pending }),
        1 => Just(Step::Restore),
    ]
}

/// Returns the definition of an optimizer with these settings; None is random search. Contexts are points in a unit
/// cube.
pub fn definition(
    members: Members,
    context_width: usize,
    clock: Clock,
    seed: u64,
    settings: Option<&Value>,
) -> Result<Definition, Error> {
    let share = Parameter::Real(Real::new(0.0, 1.0, false, None)?);
    // BayesOpt does not support a fidelity.
    let has_fidelity = settings.is_none() && seed % 2 == 1;
    let problem = Problem {
        members,
        context: Problem::unit_cube(1, context_width, clock)?.context,
        fidelity: has_fidelity
            .then(|| Fidelity::new(share, None, None))
            .transpose()?,
        curve: Some(Curve {
            steps: 9,
            value: CurveValue::Last,
        }),
        direction: match seed % 4 < 2 {
            true => Direction::Maximize,
            false => Direction::Minimize,
        },
        clock,
        outcomes: Vec::new(),
    };
    let strategy = match settings {
        Some(settings) => settings.clone(),
        None => json!({"kind": "RandomSearch"}),
    };
    Ok(Definition {
        problem: Arc::new(problem),
        seed,
        strategy,
        stopping: None,
    })
}

/// Generates an optimizer on a small domain, and a history of at most `most` steps that ends with a suggestion.
pub fn case(most: usize) -> impl Strategy<Value = Case> {
    (
        members(),
        0..3usize,
        any::<bool>(),
        any::<u64>(),
        values(),
        number(),
        0..17u8,
    )
        .prop_flat_map(
            move |(members, context_width, seconds, seed, values, floor, kind)| {
                let of_box = kind > 13;
                let (members, context_width) = match of_box {
                    true => (cube(1 + seed as usize % 4), 0),
                    false => (members, context_width),
                };
                let candidates = matches!(members, Members::Candidates(_));
                let clock = if seconds {
                    Clock::Seconds
                } else {
                    Clock::Iterations
                };
                (
                    (settings(candidates, floor), 0..3u8),
                    (bpe_delay(candidates), tree_search()),
                    vec(step(values), 0..most),
                    place(),
                )
                    .prop_map(
                        move |((settings, which), (of_rounds, of_tree), mut steps, place)| {
                            let settings = match of_box {
                                true => of_rivals(settings, which),
                                false => settings,
                            };
                            steps.push(Step::Suggest { n: 1, place });
                            let settings = (kind > 4).then_some(settings);
                            let mut definition = definition(
                                members.clone(),
                                context_width,
                                clock,
                                seed,
                                settings.as_ref(),
                            )
                            .unwrap();
                            let problem = Arc::make_mut(&mut definition.problem);
                            if matches!(kind, 1 | 2) {
                                // BPE-Delay does not support contexts, the clock in seconds or fidelities.
                                problem.context = None;
                                problem.fidelity = None;
                                problem.clock = Clock::Iterations;
                                definition.strategy = of_rounds;
                            } else if matches!(kind, 3 | 4) && !candidates {
                                problem.context = None;
                                definition.strategy = of_tree;
                            }
                            Case {
                                definition,
                                settings,
                                steps,
                            }
                        },
                    )
            },
        )
}

impl Place {
    pub fn point(self, optimizer: &Optimizer) -> Point {
        let problem = &optimizer.definition().problem;
        let ledger = optimizer.ledger();
        let earlier = (!ledger.trials().is_empty())
            .then(|| ledger.point(self.seed as usize % ledger.trials().len()));
        let adjacent = |point: &Point| match point {
            Point::Numbers(numbers) => {
                let up = |number: &Option<f64>| number.map(f64::next_up);
                Point::Numbers(numbers.iter().map(up).collect())
            }
            Point::Candidate(index) => Point::Candidate(*index),
        };
        let earlier = earlier.filter(|point| problem.check_point(point).is_ok());
        match (self.kind, earlier) {
            (PlaceKind::Repeated, Some(point)) => point,
            (PlaceKind::Adjacent, Some(point)) => Some(adjacent(&point))
                .filter(|adjacent| problem.check_point(adjacent).is_ok())
                .unwrap_or(point),
            _ => uniform_point(problem, self.seed),
        }
    }

    /// Returns a point where a trial may have been run. Some points are beyond a bound, between steps, or not candidates.
    fn measured(self, optimizer: &Optimizer) -> Point {
        let problem = &optimizer.definition().problem;
        let mut rng = Pcg64::seed_from_u64(self.seed);
        let point = self.point(optimizer);
        if !self.seed.is_multiple_of(3) {
            return point;
        }
        let mut far = || [-1.5, 0.1, 1.0, 1e3, f64::MAX][rng.random_range(0..5)];
        let mut numbers = match point {
            Point::Candidate(row) => {
                let columns = problem.encode(&Point::Candidate(row)).unwrap();
                return Point::Numbers(columns.iter().map(|_| Some(far())).collect());
            }
            Point::Numbers(numbers) => numbers,
        };
        for k in 0..numbers.len() {
            let before = numbers[k];
            numbers[k] = before.map(|number| number + far());
            // A choice cannot be moved, and inactive parameters stay inactive.
            if problem
                .check_measured(&Point::Numbers(numbers.clone()))
                .is_err()
            {
                numbers[k] = before;
            }
        }
        Point::Numbers(numbers)
    }

    /// If fidelities are declared, returns None, a low fidelity or the full fidelity, and otherwise None.
    fn fidelity(self, optimizer: &Optimizer) -> Option<f64> {
        let declared = optimizer.definition().problem.fidelity.is_some();
        [None, Some(0.25), Some(1.0)][self.seed as usize % 3].filter(|_| declared)
    }

    pub fn context(self, optimizer: &Optimizer) -> Vec<f64> {
        let mut rng = Pcg64::seed_from_u64(self.seed);
        let ledger = optimizer.ledger();
        let (_, width) = optimizer.definition().problem.n_numbers();
        let fresh: Vec<f64> = (0..width)
            .map(|_| f64::from(rng.random_range(0..3u8)) / 2.0)
            .collect();
        let last = ledger.trials().len().checked_sub(1);
        match (self.kind, last.map(|last| ledger.context_numbers(last))) {
            (PlaceKind::Repeated, Some(context)) => context.to_vec(),
            (PlaceKind::Adjacent, Some(context)) => {
                let down = |z: &f64| z.next_down().max(0.0);
                context.iter().map(down).collect()
            }
            _ => fresh,
        }
    }

    /// Returns a time in seconds. Times increase in most steps.
    pub fn now(self, optimizer: &Optimizer) -> Option<f64> {
        let n = optimizer.ledger().len() as f64;
        Some(match self.seed % 8 {
            0 => -n,
            1 => 1e300,
            _ => n,
        })
    }
}

/// Chooses the trial of a step, which is usually pending.
fn pick(which: usize, optimizer: &Optimizer) -> Option<usize> {
    let ledger = optimizer.ledger();
    let pending: Vec<usize> = ledger.view().pending().collect();
    let all = ledger.trials().len();
    match (which % 4, pending.len()) {
        (0, _) | (_, 0) => which.checked_rem(all),
        (_, n) => Some(pending[which / 4 % n]),
    }
}

impl Step {
    /// Performs the step on an optimizer, and returns the warnings. The errors "already observed" and "horizon reached"
    /// are ignored.
    pub fn take(&self, optimizer: &mut Optimizer, stop: &mut Stop) -> Result<Vec<String>, Error> {
        let later = Some(optimizer.ledger().len() as f64);
        let mut report =
            |which, report: &dyn Fn(&mut Optimizer, usize) -> Result<(), Error>| match pick(
                which, optimizer,
            )
            .map(|number| report(optimizer, number))
            {
                Some(Err(Error::AlreadyObserved { .. } | Error::AlreadyReported { .. })) => Ok(()),
                Some(Err(error)) => Err(error),
                _ => Ok(()),
            };
        match *self {
            Step::Suggest { n, place } => {
                let (context, now) = (place.context(optimizer), place.now(optimizer));
                let request = Request {
                    context: &context,
                    fidelity: place.fidelity(optimizer),
                    time: now,
                    ..Request::default()
                };
                return match optimizer.suggest(n, request, stop) {
                    Err(Error::HorizonReached { .. }) => Ok(Vec::new()),
                    suggested => suggested.map(|(_, warnings)| warnings),
                };
            }
            Step::Observe {
                which,
                value,
                again,
                place,
            } => {
                let one_in = |n: usize| which.is_multiple_of(n);
                report(which, &|optimizer, number| {
                    let mut observation =
                        Observation::new(value, one_in(3).then_some(value.abs() / 4.0));
                    observation.data = Data {
                        cost: one_in(5).then_some(number as f64),
                        duration: one_in(7).then_some(0.5),
                        point: place.map(|place| place.measured(optimizer)),
                        attrs: one_in(4).then(|| format!("{{\"which\":{which}}}")),
                        ..Data::default()
                    };
                    let action = Action::Observe {
                        number,
                        observation,
                        again,
                    };
                    optimizer.record(action, later).map(drop)
                })?;
            }
            Step::Fail(which) => report(which, &|optimizer, number| {
                let action = Action::Fail {
                    outcome: None,
                    duration: None,
                    number,
                    error: which.is_multiple_of(2).then(|| Failure {
                        kind: "ValueError".to_string(),
                        message: which.to_string(),
                        traceback: which.is_multiple_of(4).then(String::new),
                    }),
                    attrs: which.is_multiple_of(3).then(|| "{}".to_string()),
                };
                optimizer.record(action, later).map(drop)
            })?,
            Step::Abandon(which) => report(which, &|optimizer, number| {
                optimizer.record(Action::abandon(number), later).map(drop)
            })?,
            Step::Report { which, value } => report(which, &|optimizer, number| {
                let action = Action::Report {
                    number,
                    step: (which % 9) as u32 + 1,
                    value: if which.is_multiple_of(8) {
                        f64::NAN
                    } else {
                        value
                    },
                    attempt: u32::from(which.is_multiple_of(5)),
                };
                optimizer.record(action, later).map(drop)
            })?,
            Step::Stop(which) => report(which, &|optimizer, number| {
                optimizer.record(Action::Stop { number }, later).map(drop)
            })?,
            Step::Withdraw(which) => report(which, &|optimizer, number| match optimizer
                .record(Action::withdraw(number), later)
            {
                Err(Error::NotWithdrawable { .. }) => Ok(()),
                result => result.map(drop),
            })?,
            Step::Add { place, value } => {
                let (point, context) = (place.measured(optimizer), place.context(optimizer));
                let add = Action::Add {
                    point,
                    context,
                    fidelity: place.fidelity(optimizer),
                    observation: value
                        .map(|y| Observation::new(y, Some(y).filter(|y| *y > 0.5)))
                        .unwrap_or_default(),
                    attrs: None,
                };
                optimizer.record(add, later)?;
            }
            Step::Enqueue(place, partial) => {
                let (point, partial) = match place.point(optimizer) {
                    Point::Numbers(numbers) if partial => {
                        let given = numbers.into_iter().enumerate();
                        let given = given.map(|(k, number)| number.filter(|_| k == 0));
                        (Point::Numbers(given.collect()), true)
                    }
                    point => (point, false),
                };
                let enqueue = Action::Enqueue(Queued {
                    point,
                    partial,
                    fidelity: place.fidelity(optimizer),
                    attrs: None,
                });
                optimizer.record(enqueue, later)?;
            }
            Step::Recommend(place) => {
                let context = place.context(optimizer);
                let request = Request {
                    context: &context,
                    time: later,
                    ..Request::default()
                };
                optimizer.recommend(1, request, stop)?;
            }
            Step::Surrogate { pending } => {
                optimizer.surrogate(later, pending, None, stop)?;
            }
            Step::Restore => *optimizer = Optimizer::from_bytes(&optimizer.to_bytes()?)?,
        }
        Ok(Vec::new())
    }
}

/// Returns whether the pending trials and the values in the log agree with the states of the trials.
pub fn is_consistent(optimizer: &Optimizer) -> bool {
    let ledger = optimizer.ledger();
    let pending: Vec<usize> = ledger.view().pending().collect();
    ledger.view().trials().enumerate().all(|(number, trial)| {
        (trial.state() == State::Pending) == pending.contains(&number)
            && (trial.state() == State::Observed) == ledger.value(number).is_some()
    })
}
