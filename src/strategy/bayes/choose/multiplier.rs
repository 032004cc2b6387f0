//! The multiplier of sigma in upper confidence bounds and in widened draws, including the term that accounts for
//! delays.
//!
//! Notation follows Verma et al. 2022: m is the window, nu_t is the multiplier, and beta_t is the multiplier before the
//! term for delays is added. B_y is the bound on |y| in the units of the model.

use ndarray::Array2;

use crate::gp::GaussianProcess;
use crate::ledger::delays::is_beyond;
use crate::ledger::{State, TrialNumber, View, Viewed};
use crate::strategy::Query;
use crate::strategy::bayes::acquisitions::bound::Bound;
use crate::strategy::bayes::settings::Settings;

/// The trials over which the formula of nu_t sums. In Algorithm 1 of Verma et al. 2022, the sum includes the last m
/// trials, whether observed or pending. With `beta="theory"`, the sum includes only the trials that are pending and whose
/// result may still arrive within the window: the difference that the sum bounds is 0 for all other trials.
///
/// If there is no window, the sum includes only pending trials, because only pending trials are censored, and a sum over
/// all trials would grow without bound. A pending trial is included as long as the trial counts as arriving.
pub fn recent_trials(
    log: View,
    query: Query,
    settings: &Settings,
    window: Option<f64>,
) -> Vec<TrialNumber> {
    if !settings.pending().is_censor() {
        return Vec::new();
    }
    let bound = settings.acquisition.rule().bound();
    if bound.is_some_and(Bound::is_theory) {
        let counts = |number: &TrialNumber| {
            let age = query.now - log.of(*number).suggested_at;
            !is_beyond(age, window)
        };
        return log.pending().filter(counts).collect();
    }
    let counts = |(_, trial): &(usize, Viewed)| match trial.state() {
        _ if trial.left_out => false,
        State::Pending => trial.is_arriving(query.now, query.wall_time, window),
        State::Abandoned | State::Stopped | State::Withdrawn => false,
        State::Observed | State::Failed => {
            let age = query.now - trial.suggested_at;
            trial.suggested && window.is_some() && !is_beyond(age, window)
        }
    };
    let trials = log.trials().enumerate();
    trials.filter(counts).map(|(number, _)| number).collect()
}

/// The multiplier nu_t in d dimensions. Under `Censor`, nu_t = B_y·Σ_{s=max(1,t−m)}^{t−1} sigma_{t−1}(x_s) + beta_t.
/// Otherwise nu_t = beta_t. With `beta="theory"`, B_y/λ replaces B_y: the paper omits the division, because it assumes
/// λ > 1.
pub fn multiplier(
    gp: &GaussianProcess,
    d: usize,
    log: View,
    recent: &Array2<f64>,
    bound: Bound,
    settings: &Settings,
) -> f64 {
    let in_flight = match bound.per_batch {
        true => log.pending().count(),
        false => 0,
    };
    let j = log.n_trials() - in_flight + 1;
    let b_y = bound.constants.value_bound.unwrap_or(1.0);
    let is_censor = settings.pending().is_censor();
    let (information, lambda) = match bound.is_theory() {
        // The rows of pending trials are targets only under `Censor`.
        true if is_censor => information(gp, gp.len()),
        true => information(gp, gp.n_observed()),
        false => (0.0, 1.0),
    };
    let beta = bound.multiplier(d, j, information, lambda, is_censor.then_some(b_y));
    let noise = if bound.predictive_std {
        gp.noise_variance()
    } else {
        0.0
    };
    let (_, variance) = gp.predict(recent.view());
    beta + b_y / lambda * variance.iter().map(|v| (v + noise).sqrt()).sum::<f64>()
}

/// The information I = ½ log det(1 + K/λ) of the first n rows, from the factor, and λ.
///
/// If values have different noise variances Λ, I = ½ log det(1 + Λ^{−½} K Λ^{−½}) and λ is the least noise variance: the
/// theorem then holds for the rows divided by the root of Λ, whose noise is R/√λ-sub-Gaussian.
fn information(gp: &GaussianProcess, n: usize) -> (f64, f64) {
    let noise = &gp.row_noise()[..n];
    let terms = noise.iter().enumerate();
    let information = terms.map(|(i, noise)| gp.factor().at(i, i).ln() - 0.5 * noise.ln());
    let least = noise.iter().copied().fold(gp.noise_variance(), f64::min);
    (information.sum(), least)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gp::kernel::KernelFamily;
    use crate::gp::tests::{model, wave};
    use crate::gp::{Hyperparameters, RowNoise};
    use crate::ledger::{Action, Event, Ledger, Suggested, What};
    use crate::problem::{Clock, Point};
    use crate::strategy::bayes::acquisitions::bound::Beta;
    use crate::strategy::theory::Theory;
    use serde_json::{Value, json};

    fn settings(pending: Value, window: Option<f64>) -> Settings {
        let acquisition = json!({"kind": "UCB"});
        let settings = json!({"acquisition": acquisition, "pending": pending, "window": window});
        serde_json::from_value(settings).unwrap()
    }

    fn query(wall_time: Option<f64>) -> Query<'static> {
        Query {
            now: 7.0,
            wall_time,
            ..Query::default()
        }
    }

    /// A log with one trial suggested at each of these times, and one added trial.
    fn log(times: &[f64]) -> Ledger {
        let mut log = Ledger::in_unit_cube(Clock::Seconds, 1, 0);
        for (number, &now) in times.iter().enumerate() {
            let event = Event {
                at: None,
                by: None,
                now,
                what: What::Suggested(Suggested {
                    point: Point::at(&[0.5]),
                    context: vec![],
                    fidelity: None,
                    expires_at: (number == 6).then_some(10.0),
                    queued: false,
                    note: None,
                    attrs: None,
                }),
            };
            log.append(event).unwrap();
        }
        let added = Action::add(Point::at(&[0.5]), vec![], Some(1.0), None);
        for action in [
            Action::observe(2, 1.0, None, false),
            Action::observe(3, 1.0, None, false),
            Action::fail(4),
            Action::abandon(5),
            added,
        ] {
            let event = log.validate(action, 6.0, None).unwrap().unwrap();
            log.append(event).unwrap();
        }
        log
    }

    #[test]
    fn the_sum_is_over_trials_in_the_window_and_arriving_trials() {
        let log = log(&[1.75, 2.0, 1.75, 2.0, 3.0, 3.0, 3.0]);
        let censor = json!({"kind": "Censor"});
        let windowed = settings(censor.clone(), Some(5.0));
        // A trial still counts at the exact time when the lease ends. A trial whose age is exactly m is in the window.
        for (wall_time, expected) in [
            (None, vec![1, 3, 4, 6]),
            (Some(9.0), vec![1, 3, 4, 6]),
            (Some(10.0), vec![1, 3, 4, 6]),
            (Some(10.5), vec![1, 3, 4]),
        ] {
            let found = recent_trials(log.view(), query(wall_time), &windowed, Some(5.0));
            assert_eq!(found, expected);
        }
        let open = settings(censor, None);
        assert_eq!(
            recent_trials(log.view(), query(None), &open, None),
            [0, 1, 6]
        );
        let other = settings(json!({"kind": "Hallucinate"}), Some(5.0));
        assert!(recent_trials(log.view(), query(None), &other, Some(5.0)).is_empty());
        // The theorem needs the trials in flight only, even if their leases have ended.
        let mut theory = windowed;
        theory.acquisition =
            serde_json::from_value(json!({"kind": "UCB", "beta": "theory"})).unwrap();
        assert_eq!(
            recent_trials(log.view(), query(Some(10.5)), &theory, Some(5.0)),
            [1, 6]
        );
        assert_eq!(
            recent_trials(log.view(), query(Some(10.5)), &theory, None),
            [0, 1, 6]
        );
    }

    fn bound(beta: Beta, draws: bool) -> Bound {
        Bound {
            beta,
            constants: Theory {
                rkhs_bound: Some(0.5),
                noise_bound: Some(0.2),
                ..Theory::default()
            },
            predictive_std: false,
            per_batch: false,
            draws,
        }
    }

    #[test]
    fn multipliers_equal_the_formulas_of_the_papers() {
        let (kandasamy, theory) = (Beta::Kandasamy, Beta::Theory);
        for (schedule, draws, b_y, expected) in [
            // sqrt(0.2·3·ln 9)
            (kandasamy, false, Some(1.0), 1.1481875919908435),
            // 0.5 + (0.2 + B_y)/0.4·sqrt(2(3 + ln(c/0.1))). If trials are not censored, B_y is 0 and c is 1
            // for bounds and 2 for draws. Under `Censor`, B_y is 1, and c is 2 for bounds and 4 for draws.
            (theory, false, None, 2.1282790137126444),
            (theory, true, None, 2.2314347047396836),
            (theory, false, Some(1.0), 10.8886082284381),
            (theory, true, Some(1.0), 11.472685640901721),
        ] {
            let bound = bound(schedule, draws);
            let got = bound.multiplier(3, 4, 3.0, 0.16, b_y);
            assert!((got - expected).abs() < 1e-12, "{schedule:?}: {got}");
            assert_eq!(bound.is_theory(), schedule == theory);
        }
    }

    #[test]
    fn delays_add_the_standard_deviations_at_pending_trials() {
        let gp = model(KernelFamily::Matern52, 15);
        let recent = wave(3, 2, 4.0);
        let log = log(&[1.0, 2.0, 1.0, 2.0, 3.0, 3.0]);
        let settings = settings(json!({"kind": "Censor"}), Some(5.0));
        let schedule = Beta::Kandasamy;
        // There are seven trials so far, so the next trial has j = 8.
        for (beta, first) in [
            (Beta::Constant(1.5), 1.5),
            (schedule, (0.4 * 17.0_f64.ln()).sqrt()),
        ] {
            for predictive_std in [false, true] {
                let bound = Bound {
                    predictive_std,
                    ..bound(beta, false)
                };
                let mut expected = first;
                for row in recent.rows() {
                    let (_, variance) = gp.predict(row.insert_axis(ndarray::Axis(0)));
                    let noise = if predictive_std {
                        gp.noise_variance()
                    } else {
                        0.0
                    };
                    expected += (variance[0] + noise).sqrt();
                }
                let got = multiplier(&gp, 2, log.view(), &recent, bound, &settings);
                assert!((got - expected).abs() < 1e-12, "{got} {expected}");
            }
        }
    }

    #[test]
    fn the_bound_on_values_multiplies_the_term_of_delays() {
        let gp = model(KernelFamily::Matern52, 15);
        let recent = wave(3, 2, 4.0);
        let log = log(&[1.0, 2.0, 1.0, 2.0, 3.0, 3.0]);
        let settings = settings(json!({"kind": "Censor"}), Some(5.0));
        let nu = |value_bound| {
            let mut bound = bound(Beta::Constant(1.0), false);
            bound.constants.value_bound = value_bound;
            multiplier(&gp, 2, log.view(), &recent, bound, &settings)
        };
        assert!((nu(Some(3.0)) - 1.0 - 3.0 * (nu(None) - 1.0)).abs() < 1e-12);
    }

    #[test]
    fn the_bound_of_the_theorem_uses_the_rows_and_their_noise() {
        // Two rows with noise variances 0.5 and 0.25. I = ½ log det(1 + D K D) with D = diag(noise)^{-1/2}.
        let theta = Hyperparameters::new(vec![0.4, 0.4], 1.3, 0.5);
        let mut gp = GaussianProcess::new(KernelFamily::Matern52, &theta).unwrap();
        let rows = wave(2, 2, 0.9);
        let noise = [RowNoise::default(), RowNoise::Known(0.25)];
        gp.append_noisy_rows(rows.view(), &noise).unwrap();
        let k = gp.kernel().gram(rows.view());
        let determinant = (1.0 + k[[0, 0]] / 0.5) * (1.0 + k[[1, 1]] / 0.25)
            - k[[0, 1]] * k[[0, 1]] / (0.5 * 0.25);
        let (found, lambda) = information(&gp, 2);
        assert!((found - 0.5 * determinant.ln()).abs() < 1e-12);
        assert_eq!(lambda, 0.25);
        assert!((information(&gp, 1).0 - 0.5 * (1.0 + k[[0, 0]] / 0.5).ln()).abs() < 1e-12);
        assert_eq!(information(&gp, 1).1, 0.5);
        // Draws are widened by log(4/δ), bounds by log(2/δ), and the pending trials count B_y/λ times.
        gp.set_targets(&[0.0, 0.0]).unwrap();
        let log = log(&[1.0, 2.0, 1.0, 2.0, 3.0, 3.0]);
        let settings = settings(json!({"kind": "Censor"}), Some(5.0));
        let pending = wave(1, 2, 4.0);
        let (_, variance) = gp.predict(pending.view());
        for (draws, events) in [(false, 20.0_f64), (true, 40.0)] {
            let bound = bound(Beta::Theory, draws);
            let nu = multiplier(&gp, 2, log.view(), &pending, bound, &settings);
            let exponent: f64 = 2.0 * (found + events.ln());
            let expected = 0.5 + 1.2 / 0.5 * exponent.sqrt() + 4.0 * variance[0].sqrt();
            assert!((nu - expected).abs() < 1e-12, "{nu} {expected}");
        }
    }
}
