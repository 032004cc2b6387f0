//! Tests of the first points, the recommendation and the notes of Bayesian optimisation.

use super::*;
use crate::ledger::{Action, Event, Ledger, Suggested, What};
use crate::maximize::feasible::Feasible;
use crate::problem::{Clock, Coordinate, Direction, Point};
use crate::random::Call;
use crate::strategy::from_settings::FromSettings;
use crate::strategy::units::Units;
use rand::SeedableRng;
use serde_json::json;
use std::ops::ControlFlow;

const QUERY: Query<'static> = Query {
    now: 0.0,
    wall_time: None,
    context: &[],
    fidelity: None,
    feasible: Feasible::EVERYWHERE,
    within: None,
    limit: None,
};

/// Creates a strategy on the unit square, with three initial points and given hyperparameters θ.
fn strategy(context_width: usize) -> BayesOpt {
    let gp = json!({"kind": "GP", "kernel": "matern52", "lengthscale": 0.3, "signal_std": 1.0, "noise_std": 0.1});
    let settings = json!({"surrogate": gp, "initial": {"kind": "Initial", "n": 3}});
    on_square(context_width, settings)
}

/// Creates a strategy on the unit square, with these settings.
pub(in crate::strategy::bayes) fn on_square(context_width: usize, settings: Value) -> BayesOpt {
    let setup = Setup {
        domain: Arc::new(Domain::new_box(vec![Coordinate::Continuous; 2]).unwrap()),
        context: vec![Coordinate::Continuous; context_width],
        descriptors: vec![],
        fidelity: None,
        clock: Clock::Iterations,
        direction: Direction::Maximize,
        outcomes: vec![],
    };
    let settings = serde_json::from_value(settings).unwrap();
    BayesOpt::new(&setup, settings, &mut Rng::seed_from_u64(1)).unwrap()
}

fn act(log: &mut Ledger, action: Action) {
    let event = log.validate(action, 0.0, None).unwrap().unwrap();
    log.append(event).unwrap();
}

/// Proposes a point and logs it.
fn suggest(strategy: &mut BayesOpt, log: &mut Ledger) -> Member {
    strategy.catch_up(log.view()).unwrap();
    let mut rng = Rng::seed_from_u64(log.n_trials() as u64);
    let proposal = strategy.propose(
        log.view(),
        QUERY,
        &mut Call::new(&mut rng, &mut || ControlFlow::Continue(())),
    );
    let Proposal { point, note, .. } = proposal.unwrap();
    log_suggestion(log, &point, note);
    point
}

fn log_suggestion(log: &mut Ledger, point: &Member, note: Option<String>) {
    let event = Event {
        at: None,
        by: None,
        now: 0.0,
        what: What::Suggested(Suggested {
            point: log.problem().decode(point, None),
            context: vec![],
            fidelity: None,
            expires_at: None,
            queued: false,
            note,
            attrs: None,
        }),
    };
    log.append(event).unwrap();
}

#[test]
fn designed_points_come_first_and_continue_until_the_first_observation() {
    let empty = || Ledger::in_unit_cube(Clock::Iterations, 2, 0);
    let (mut bayes, mut log) = (strategy(0), empty());
    let design = bayes.design.clone();
    assert!(design.len() > 5);
    for point in &design[..5] {
        assert_eq!(suggest(&mut bayes, &mut log), *point);
    }
    act(&mut log, Action::observe(0, 1.0, None, false));
    assert_ne!(suggest(&mut bayes, &mut log), design[5]);
    // Every trial is observed before the next suggestion, so the design ends after three points.
    let (mut bayes, mut log) = (strategy(0), empty());
    for (number, point) in design[..4].iter().enumerate() {
        assert_eq!(suggest(&mut bayes, &mut log) == *point, number < 3);
        act(
            &mut log,
            Action::observe(number, number as f64, None, false),
        );
    }
}

#[test]
fn a_recommendation_of_noisy_values_has_the_largest_bound_and_moments_in_units_of_f() {
    let mut bayes = strategy(0);
    let mut log = Ledger::in_unit_cube(Clock::Iterations, 2, 0);
    let mut rng = Rng::seed_from_u64(2);
    let mut go_on = || ControlFlow::Continue(());
    let nothing = bayes.recommend(log.view(), QUERY, 1, &mut Call::new(&mut rng, &mut go_on));
    assert!(nothing.unwrap().is_empty());
    let data = [
        ([0.2, 0.3], 150.0),
        ([0.7, 0.4], 210.0),
        ([0.5, 0.9], 120.0),
    ];
    for (x, value) in data {
        let point = Point::at(&x);
        act(
            &mut log,
            Action::add(point, vec![], Some(value), Some(10.0)),
        );
    }
    bayes.catch_up(log.view()).unwrap();
    let found = bayes.recommend(log.view(), QUERY, 5, &mut Call::new(&mut rng, &mut go_on));
    let found = found.unwrap();
    let surrogate = bayes.surrogate(
        log.view(),
        QUERY,
        false,
        None,
        &mut Call::new(&mut rng, &mut go_on),
    );
    let surrogate = surrogate.unwrap().unwrap();
    let mean_and_std = |x: Vec<f64>| {
        let (mean, variance) = surrogate.gp.predict(as_row(x).view());
        let Units { center, scale, .. } = surrogate.units;
        (center + scale * mean[0], scale * variance[0].sqrt())
    };
    for each in &found {
        let (mean, std) = mean_and_std(each.point.x.clone());
        assert!((each.mean - mean).abs() < 1e-9 && (each.std - std).abs() < 1e-9);
    }
    let bound = |each: &Recommendation| each.mean - 2.0 * each.std;
    assert!(found.is_sorted_by(|a, b| bound(a) >= bound(b)));
    // The points are the observed points and the point with the largest bound.
    let is_observed = |each: &&Recommendation| data.iter().any(|(x, _)| each.point.x == x[..]);
    assert_eq!(found.iter().filter(is_observed).count(), 3);
    assert_eq!(found.len(), 4);
    for i in 0..=20 {
        for j in 0..=20 {
            let x = vec![f64::from(i) / 20.0, f64::from(j) / 20.0];
            let (mean, std) = mean_and_std(x);
            assert!(mean - 2.0 * std <= bound(&found[0]) + 1e-6);
        }
    }
}

#[test]
fn a_note_has_one_lengthscale_for_every_column_of_point_and_context() {
    let log = Ledger::in_unit_cube(Clock::Iterations, 2, 1);
    let mut bayes = strategy(1);
    for n in 1..5 {
        let theta = bayes.settings.surrogate.first_theta(&Columns::plain(3));
        let mut fit = Fit::given(bayes.settings.surrogate.families(&bayes.columns)[0], theta);
        fit.theta.lengthscale = vec![0.5; n];
        let note = fit.to_note().unwrap();
        assert_eq!(bayes.check_note(log.view(), &note).is_ok(), n == 3);
    }
}

#[test]
fn initial_points_under_constraints_do_not_come_from_a_model() {
    let settings = json!({"initial": {"kind": "Initial", "n": 3, "how": "uniform"}});
    let mut bayes = on_square(0, settings);
    let left = |points: ndarray::ArrayView2<f64>| -> Result<Vec<bool>> {
        Ok(points.rows().into_iter().map(|x| x[0] < 0.5).collect())
    };
    let query = Query {
        feasible: Feasible::by(&left),
        ..QUERY
    };
    let mut log = Ledger::in_unit_cube(Clock::Iterations, 2, 0);
    for number in 0..4 {
        bayes.catch_up(log.view()).unwrap();
        let mut rng = Rng::seed_from_u64(number);
        let proposal = bayes.propose(
            log.view(),
            query,
            &mut Call::new(&mut rng, &mut || ControlFlow::Continue(())),
        );
        let proposal = proposal.unwrap();
        assert!(proposal.point.x[0] < 0.5 && proposal.warning.is_none());
        // Only a point that the model chose has a note, because the note contains the fit of the model.
        assert_eq!(proposal.note.is_some(), number == 3);
        log_suggestion(&mut log, &proposal.point, proposal.note);
        act(
            &mut log,
            Action::observe(number as usize, number as f64, None, false),
        );
    }
}
