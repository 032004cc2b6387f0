//! Tests of the rows computed from the log, and of the kept posterior.

use super::*;
use crate::gp::Hyperparameters;
use crate::gp::kernel::KernelFamily;
use crate::gp::tests::wave;
use crate::ledger::{Action, Again, Event, Ledger, Observation, Suggested, View, What};
use crate::problem::{Clock, Point};
use crate::strategy::bayes::model::fit_purpose::FitPurpose;
use crate::strategy::bayes::model::training_set::fold::discarded;
use serde_json::{Value, json};
use std::ops::ControlFlow;

fn query(now: f64) -> Query<'static> {
    Query {
        now,
        ..Query::default()
    }
}

fn settings(fields: Value) -> Settings {
    serde_json::from_value(fields).unwrap()
}

/// Settings with a given θ, so that θ is not fitted.
fn given() -> Settings {
    let gp = json!({"kind": "GP", "kernel": "matern52", "lengthscale": 0.3, "signal_std": 1.0, "noise_std": 0.1});
    settings(json!({"acquisition": {"kind": "UCB"}, "surrogate": gp}))
}

/// A log of n suggestions at times 0, 1, 2, …
fn started(n: usize, note: Option<&str>) -> Ledger {
    let mut log = Ledger::in_unit_cube(Clock::Seconds, 1, 0);
    for number in 0..n {
        suggest(&mut log, number as f64, note);
    }
    log
}

fn suggest(log: &mut Ledger, now: f64, note: Option<&str>) {
    let x = (now * 0.618).fract();
    let event = Event {
        at: None,
        by: None,
        now,
        what: What::Suggested(Suggested {
            point: Point::at(&[x]),
            context: vec![],
            fidelity: None,
            expires_at: None,
            queued: false,
            note: note.map(str::to_string),
            attrs: None,
        }),
    };
    log.append(event).unwrap();
}

fn act(log: &mut Ledger, action: Action, now: f64) {
    let event = log.validate(action, now, None).unwrap().unwrap();
    log.append(event).unwrap();
}

fn observe(log: &mut Ledger, number: TrialNumber, value: f64, now: f64) {
    act(log, Action::observe(number, value, None, false), now);
}

fn amend(log: &mut Ledger, number: TrialNumber, observation: Observation) {
    let again = Again::Amend;
    let action = Action::Observe {
        number,
        observation,
        again,
    };
    act(log, action, 9.0);
}

#[test]
fn rows_are_the_observed_trials_in_the_order_of_their_ends() {
    let mut set = TrainingSet::new(given(), &Columns::plain(1));
    let units = Units {
        center: 0.0,
        scale: 0.25,
        warp: None,
    };
    let mut log = started(5, None);
    observe(&mut log, 2, 1.0, 5.0);
    act(&mut log, Action::fail(0), 5.0);
    set.catch_up(log.view()).unwrap();
    assert_eq!(
        (&set.fold.rows[..], &set.fold.ended[..]),
        (&[2][..], &[2, 0][..])
    );
    observe(&mut log, 1, 1.0, 6.0);
    act(&mut log, Action::abandon(3), 6.0);
    let pending = Action::add(Point::at(&[0.5]), vec![], None, None);
    let known = Action::add(Point::at(&[0.5]), vec![], Some(2.0), Some(0.5));
    act(&mut log, pending, 6.0);
    act(&mut log, known, 6.0);
    set.catch_up(log.view()).unwrap();
    assert_eq!(set.fold.rows, [2, 1, 6]);
    assert_eq!(set.fold.ended, [2, 0, 1, 6]);
    // If a failed trial is abandoned, the trial is removed from `ended`. If an abandoned trial gets a value, the trial
    // becomes a row.
    act(&mut log, Action::abandon(0), 7.0);
    set.catch_up(log.view()).unwrap();
    assert_eq!(
        (&set.fold.rows[..], &set.fold.ended[..]),
        (&[2, 1, 6][..], &[2, 1, 6][..])
    );
    let noise = [
        RowNoise::default(),
        RowNoise::default(),
        RowNoise::Known(4.0),
    ];
    assert_eq!(set.row_noise(log.view(), units), noise);
    observe(&mut log, 0, 1.0, 7.0);
    set.catch_up(log.view()).unwrap();
    assert_eq!(set.fold.rows, [2, 1, 6, 0]);
}

#[test]
fn late_values_are_discarded_but_added_and_failed_trials_are_kept() {
    let censor = json!({"kind": "Censor", "late": "discard", "floor": 0.0});
    let settings =
        settings(json!({"acquisition": {"kind": "UCB"}, "pending": censor, "window": 5.0}));
    let mut log = started(4, None);
    observe(&mut log, 0, 1.0, 5.0);
    observe(&mut log, 1, 1.0, 6.5);
    act(&mut log, Action::fail(2), 99.0);
    let added = Action::add(Point::at(&[0.5]), vec![], None, None);
    act(&mut log, added, 0.0);
    observe(&mut log, 4, 1.0, 99.0);
    let all: Vec<bool> = log
        .view()
        .trials()
        .map(|trial| discarded(trial, &settings, Some(5.0)))
        .collect();
    assert_eq!(all, [false, true, false, true, false]);
    // After the window of a pending trial has passed, the next suggestion adds a row for the trial. The value of the
    // row is the floor. Undoing the suggestion removes the row.
    let mut set = TrainingSet::new(settings, &Columns::plain(1));
    set.catch_up(log.view()).unwrap();
    assert_eq!(set.fold.rows, [0, 1, 4]);
    suggest(&mut log, 8.0, None);
    set.catch_up(log.view()).unwrap();
    assert_eq!(set.fold.rows, [0, 1, 4]);
    let len = log.len();
    suggest(&mut log, 8.5, None);
    set.catch_up(log.view()).unwrap();
    assert_eq!(set.fold.rows, [0, 1, 4, 3]);
    assert_eq!(set.targets(log.view()).values, [1.0, 0.0, 1.0, 0.0]);
    log.truncate(len);
    set.fold.rewind(log.view());
    assert_eq!(set.fold.rows, [0, 1, 4]);
    suggest(&mut log, 8.5, None);
    set.catch_up(log.view()).unwrap();
    assert_eq!(set.fold.rows, [0, 1, 4, 3]);
    // If the trial fails, it is no longer pending, and its row is removed.
    act(&mut log, Action::fail(3), 9.0);
    set.catch_up(log.view()).unwrap();
    assert_eq!(set.fold.rows, [0, 1, 4]);
}

#[test]
fn a_preview_is_dropped_at_the_next_event() {
    let mut set = TrainingSet::new(Settings::default(), &Columns::plain(1));
    let mut log = started(2, None);
    observe(&mut log, 0, 1.0, 2.0);
    set.catch_up(log.view()).unwrap();
    let mut go_on = || ControlFlow::Continue(());
    let purposes = [FitPurpose::Suggest, FitPurpose::Predict, FitPurpose::Decide];
    let mut are_due = |set: &mut TrainingSet| {
        purposes.map(|purpose| purpose.is_due(set, None, log.view(), &mut go_on).unwrap())
    };
    assert!(set.fit().is_none() && are_due(&mut set) == [true; 3]);
    let theta = Settings::default()
        .surrogate
        .first_theta(&Columns::plain(1));
    let fit = Fit {
        rows: Some(1),
        units: set.warped_targets(log.view(), None).units,
        ..Fit::given(KernelFamily::Matern52, theta)
    };
    set.fold.preview(Arc::new(fit.clone()), 0);
    assert_eq!(set.fit(), Some(&fit));
    assert_eq!(are_due(&mut set), [false; 3]);
    set.catch_up(log.view()).unwrap();
    assert!(set.fit().is_none());
}

#[test]
fn a_scheduled_fit_waits_while_later_rows_are_predicted_well() {
    let columns = Columns::plain(1);
    let mut log = started(212, None);
    for number in 0..212 {
        // Values without structure: their quantiles are spread evenly.
        let value = ((number * 89 % 212) as f64 / 212.0 - 0.5) * 12f64.sqrt();
        observe(&mut log, number, value, 300.0 + number as f64);
    }
    // All values are noise, so a correct θ has the noise variance 1 in the units of the targets.
    for (fitted, noise_variance, due) in [
        (200, 1.0, false),
        (200, 0.3, true),
        (200, 12.0, true),
        (201, 0.3, true),
        (205, 0.3, false),
        (100, 1.0, true),
        (160, 1.0, true),
    ] {
        let mut set = TrainingSet::new(Settings::default(), &columns);
        set.catch_up(log.view()).unwrap();
        let theta = Hyperparameters::new(vec![0.3], 1e-3, noise_variance);
        let units = set.warped_targets(log.view(), None).units;
        let fit = Fit {
            rows: Some(fitted),
            units,
            ..Fit::given(KernelFamily::Matern52, theta)
        };
        set.fold.preview(Arc::new(fit), 0);
        let mut go_on = || ControlFlow::Continue(());
        let found = FitPurpose::Suggest
            .is_due(&mut set, None, log.view(), &mut go_on)
            .unwrap();
        assert_eq!(found, due, "{fitted} {noise_variance}");
    }
}

/// The posterior mean and variance at some points, without the tail.
fn moments(set: &mut TrainingSet, log: View) -> (Vec<f64>, Vec<f64>) {
    set.catch_up(log).unwrap();
    let posterior = set.posterior(log, query(99.0), &mut || ControlFlow::Continue(()));
    posterior
        .unwrap()
        .unwrap()
        .gp
        .predict(wave(7, 1, 0.3).view())
}

/// Compares the kept training set with a new training set after each step of a history. `rebuilt` lists the steps after
/// which the factor must be rebuilt.
fn compare(settings: &Settings, note: Option<&str>, rebuilt: &[usize]) {
    let fresh = || TrainingSet::new(settings.clone(), &Columns::plain(1));
    let mut kept = fresh();
    let mut log = started(6, note);
    let with_std = |std| Observation::new(2.0, Some(std));
    let moved = || Observation::new(0.0, None).run_at(Point::at(&[0.875]));
    let mut before = None;
    for step in 0..10 {
        match step {
            0 => observe(&mut log, 3, 1.0, 6.0),
            1 => observe(&mut log, 0, -0.5, 6.0),
            2 => amend(&mut log, 3, with_std(0.75)),
            3 => act(&mut log, Action::fail(1), 6.0),
            4 => observe(&mut log, 5, 0.25, 6.0),
            5 => amend(&mut log, 3, with_std(0.5)),
            6 => amend(&mut log, 0, moved()),
            7 => act(&mut log, Action::abandon(1), 7.0),
            8 => observe(&mut log, 4, 0.75, 7.0),
            _ => amend(&mut log, 5, Observation::new(0.5, None)),
        }
        for suggested in [false, true] {
            if suggested {
                suggest(&mut log, 6.0 + step as f64, None);
            }
            let generation = kept.generation;
            let now = moments(&mut kept, log.view());
            assert_eq!(now, moments(&mut fresh(), log.view()), "{step} {suggested}");
            let is_new = !suggested && rebuilt.contains(&step);
            assert_eq!(kept.generation > generation, is_new, "{step} {suggested}");
            // A failure does not change the model of f. Abandoning the failed trial does not change the model either.
            let is_same = suggested || [3, 7].contains(&step);
            assert_eq!(before == Some(now.clone()), is_same, "{step} {suggested}");
            before = Some(now);
        }
    }
}

#[test]
fn another_fit_in_a_note_replaces_the_kept_posterior() {
    let gp = json!({"kind": "GP", "kernel": "matern52", "lengthscale": 0.3, "signal_std": 1.0});
    let settings = settings(json!({"acquisition": {"kind": "UCB"}, "surrogate": gp}));
    let mut fit = Fit::given(
        KernelFamily::Matern52,
        settings.surrogate.first_theta(&Columns::plain(1)),
    );
    let mut kept = TrainingSet::new(settings.clone(), &Columns::plain(1));
    let mut log = started(2, Some(&fit.to_note().unwrap()));
    observe(&mut log, 0, 1.0, 2.0);
    let mut before = moments(&mut kept, log.view());
    let changes: [fn(&mut Fit); 3] = [
        |fit| fit.theta.noise_variance *= 4.0,
        |fit| fit.theta.lengthscale[0] *= 2.0,
        |fit| fit.family = KernelFamily::SquaredExponential,
    ];
    for (k, change) in changes.into_iter().enumerate() {
        change(&mut fit);
        let note = fit.to_note().unwrap();
        suggest(&mut log, 3.0 + k as f64, Some(&note));
        let now = moments(&mut kept, log.view());
        assert_eq!(kept.fit().unwrap().theta, fit.theta);
        let fresh = moments(
            &mut TrainingSet::new(settings.clone(), &Columns::plain(1)),
            log.view(),
        );
        assert!(now == fresh && now != before);
        before = now;
    }
}

#[test]
fn a_kept_posterior_equals_the_posterior_of_a_fresh_fold_bit_for_bit() {
    let gp = json!({"kind": "GP", "kernel": "matern52", "lengthscale": 0.3, "signal_std": 1.0});
    let fitted = settings(json!({"acquisition": {"kind": "UCB"}, "surrogate": gp}));
    let fit = Fit::given(
        KernelFamily::Matern52,
        fitted.surrogate.first_theta(&Columns::plain(1)),
    );
    let note = fit.to_note().unwrap();
    // If the noise or the point of a row changes, all rows are factorised again. A new row is appended. A changed value
    // alone does not change the factor.
    compare(&fitted, Some(&note), &[0, 2, 5, 6]);
    // If θ is not fitted, the unit of the noise changes with every value. Therefore, if the noise of any value is
    // declared, the factor is rebuilt after every value.
    compare(&given(), None, &[0, 2, 4, 5, 6, 8, 9]);
}

#[test]
fn a_row_at_the_floor_moves_to_the_reported_point_of_its_trial() {
    let gp = json!({"kind": "GP", "kernel": "matern52", "lengthscale": 0.3, "signal_std": 1.0, "noise_std": 0.1});
    let censor = json!({"kind": "Censor", "late": "discard", "floor": 0.0});
    let settings = settings(
        json!({"acquisition": {"kind": "UCB"}, "surrogate": gp, "pending": censor, "window": 1.0}),
    );
    let fresh = || TrainingSet::new(settings.clone(), &Columns::plain(1));
    let (mut kept, mut log) = (fresh(), started(4, None));
    observe(&mut log, 3, 1.0, 3.5);
    suggest(&mut log, 4.0, None);
    let before = moments(&mut kept, log.view());
    assert_eq!(kept.fold.rows, [0, 1, 3, 2]);
    // The trial ends long after the trial became a row.
    let observation = Observation::new(2.0, None).run_at(Point::at(&[0.875]));
    let (number, again) = (1, Again::Refuse);
    let action = Action::Observe {
        number,
        observation,
        again,
    };
    act(&mut log, action, 5.0);
    suggest(&mut log, 5.0, None);
    let now = moments(&mut kept, log.view());
    assert!(now != before && now == moments(&mut fresh(), log.view()));
}

#[test]
fn trials_keep_their_windows_and_undoing_a_suggestion_undoes_its_window() {
    let censor = json!({"kind": "Censor", "late": "discard", "floor": 0.0});
    let settings =
        settings(json!({"acquisition": {"kind": "UCB"}, "pending": censor, "window": "auto"}));
    let mut set = TrainingSet::new(settings, &Columns::plain(1));
    let mut log = started(1, None);
    let note = |length: f64| {
        let theta = set.settings.surrogate.first_theta(&Columns::plain(1));
        let window = Some(ChosenWindow {
            length,
            arrivals: 0,
        });
        let fit = Fit {
            window,
            ..Fit::given(KernelFamily::Matern52, theta)
        };
        fit.to_note().unwrap()
    };
    let (short, long) = (note(2.0), note(8.0));
    suggest(&mut log, 1.0, Some(&short));
    suggest(&mut log, 2.0, None);
    let len = log.len();
    suggest(&mut log, 3.0, Some(&long));
    set.catch_up(log.view()).unwrap();
    let windows = |set: &TrainingSet| [0, 1, 2, 3].map(|n| set.fold.window_of(n, &set.settings));
    let (open, short, long) = (Some(f64::INFINITY), Some(2.0), Some(8.0));
    assert_eq!(windows(&set), [open, short, short, long]);
    assert_eq!(set.window(), long);
    log.truncate(len);
    set.fold.rewind(log.view());
    assert_eq!(windows(&set), [open, short, short, short]);
    // At time 20, all windows have passed, except the window of the trial that started before the first choice.
    suggest(&mut log, 20.0, None);
    set.catch_up(log.view()).unwrap();
    assert_eq!(set.fold.rows, [1, 2]);
}
