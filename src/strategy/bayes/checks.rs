//! Refusals: which settings cannot be meant, each by the name that users know it by.

use crate::error::{Error, Result};
use crate::strategy::bayes::settings::{
    Acquisition, Beta, DrawMethod, GP, Lengthscale, Multistart, PriorMean, Settings,
};

/// Counts above this are taken for mistakes: memory would run out before anything else.
pub const MAX_COUNT: usize = 1_000_000;

/// Beyond these a search finds nothing, or nothing more.
const MIN_EFFORT: f64 = 0.01;
const MAX_EFFORT: f64 = 100.0;

const COUNT: &str = "give a number of 1 or above, and no more than 1,000,000";
const COUNT_OR_NONE: &str = "give a number from 0 to 1,000,000";
const POSITIVE: &str = "give a finite number above 0";
const NOT_NEGATIVE: &str = "give a finite number, 0 or above";
pub(super) const VALUE_OF_F: &str = "give a finite value of f";

fn refuse(name: &'static str, got: impl ToString, expected: &'static str) -> Result<()> {
    Err(Error::InvalidSetting {
        name,
        got: got.to_string(),
        expected,
    })
}

pub(super) fn check(
    holds: bool,
    name: &'static str,
    got: impl ToString,
    expected: &'static str,
) -> Result<()> {
    if holds {
        Ok(())
    } else {
        refuse(name, got, expected)
    }
}

pub(super) fn check_count(name: &'static str, count: usize) -> Result<()> {
    check((1..=MAX_COUNT).contains(&count), name, count, COUNT)
}

fn is_positive(x: f64) -> bool {
    x > 0.0 && x.is_finite()
}

/// Whether it and its square, the variance, are finite and above 0.
fn is_std(x: f64) -> bool {
    x > 0.0 && is_positive(x * x)
}

impl Settings {
    /// Refuses settings that cannot be meant, for rows of so many columns.
    pub fn check(&self, width: usize, candidates: bool) -> Result<()> {
        self.gp().check(width)?;
        self.check_acquisition(candidates)?;
        self.pending().check(self)?;
        if let Some(window) = self.window {
            check(window > 0.0, "window", window, "give a number above 0")?;
        }
        let n = self.design().n.unwrap_or(0);
        check(n <= MAX_COUNT, "initial.n", n, COUNT_OR_NONE)
    }

    fn check_acquisition(&self, candidates: bool) -> Result<()> {
        if let Some(bound) = self.acquisition.bound() {
            if let Beta::Constant(beta) = bound.beta {
                let holds = beta >= 0.0 && beta.is_finite();
                check(holds, "acquisition.beta", beta, NOT_NEGATIVE)?;
            }
            let rkhs_bound = bound.rkhs_bound;
            let holds = rkhs_bound >= 0.0 && rkhs_bound.is_finite();
            check(holds, "acquisition.rkhs_bound", rkhs_bound, NOT_NEGATIVE)?;
            if let Some(b_y) = bound.value_bound {
                let holds = b_y > 0.0 && b_y.is_finite();
                let expected = "give a number above 0, or None";
                check(holds, "acquisition.value_bound", b_y, expected)?;
            }
            let delta = bound.delta;
            let expected = "give a number between 0 and 1";
            check(
                delta > 0.0 && delta < 1.0,
                "acquisition.delta",
                delta,
                expected,
            )?;
        }
        if let Acquisition::ThompsonSampling(ts) = &self.acquisition {
            check_count("acquisition.n_features", ts.n_features)?;
            check(
                !candidates || ts.draws == DrawMethod::Pathwise,
                "acquisition.draws",
                "weight_space",
                "draws on candidates are exact; weight-space draws are for boxes",
            )?;
        }
        let effort = self.acquisition.effort();
        check(
            (MIN_EFFORT..=MAX_EFFORT).contains(&effort),
            "acquisition.effort",
            effort,
            "give a number from 0.01 to 100; 1 is the default, and time is proportional to it",
        )?;
        let (multistart, direct) = self.acquisition.literature_search();
        let for_boxes = "it is for boxes; candidates are all scored";
        if let Some(Multistart(n_raw, n_starts)) = multistart {
            let name = "acquisition.multistart";
            check_count(name, n_raw)?;
            check(n_starts <= MAX_COUNT, name, n_starts, COUNT_OR_NONE)?;
            let got = format!("({n_raw}, {n_starts})");
            check(!candidates, name, got, for_boxes)?;
        }
        if let Some(n_evaluations) = direct {
            let name = "acquisition.direct";
            check_count(name, n_evaluations)?;
            check(!candidates, name, n_evaluations, for_boxes)?;
            let expected = "one search is enough; leave multistart or direct out";
            check(multistart.is_none(), name, n_evaluations, expected)?;
        }
        Ok(())
    }
}

impl GP {
    fn check(&self, width: usize) -> Result<()> {
        if let Some(lengthscale) = &self.lengthscale {
            let each = match lengthscale {
                Lengthscale::Shared(l) => std::slice::from_ref(l),
                Lengthscale::PerColumn(each) => each,
            };
            let fits = each.len() == 1 || each.len() == width;
            check(
                fits && each.iter().all(|l| is_positive(*l)),
                "surrogate.lengthscale",
                format!("{each:?}"),
                "give one finite number above 0, or one for every encoded column of point and context",
            )?;
        }
        if let Some(std) = self.signal_std {
            check(is_std(std), "surrogate.signal_std", std, POSITIVE)?;
        }
        if let Some(std) = self.noise_std {
            let holds = std == 0.0 || is_std(std);
            check(holds, "surrogate.noise_std", std, NOT_NEGATIVE)?;
        }
        if let Some(theta) = self.initial_theta {
            check(
                is_positive(theta[0]) && theta[1..].iter().all(|x| is_std(*x)),
                "surrogate.initial_theta",
                format!("{theta:?}"),
                "give (lengthscale, signal_std, noise_std), each finite and above 0",
            )?;
        }
        if let PriorMean::Number(mean) = self.mean {
            check(mean.is_finite(), "surrogate.mean", mean, VALUE_OF_F)?;
        }
        check_count("surrogate.n_restarts", self.n_restarts)?;
        check_count("surrogate.n_refit_restarts", self.n_refit_restarts)?;
        check_count("surrogate.refit_every", self.refit_every.min(MAX_COUNT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::bayes::pending::{Lie, Pending};
    use serde_json::{Value, json};

    fn checked(settings: Value, width: usize, candidates: bool) -> Result<()> {
        let settings: Settings = serde_json::from_value(settings).unwrap();
        settings.check(width, candidates)
    }

    #[test]
    fn each_bad_setting_is_refused_by_name() {
        let gp = |field: &str, value: Value| json!({"surrogate": {"kind": "GP", field: value}});
        let ucb = |field: &str, value: Value| json!({"acquisition": {"kind": "UCB", field: value}});
        let ts = |field: &str, value: Value| json!({"acquisition": {"kind": "ThompsonSampling", field: value}});
        let pending = |value: Value| json!({"pending": value});
        let many = MAX_COUNT + 1;
        for (name, settings) in [
            (
                "surrogate.lengthscale",
                gp("lengthscale", json!([1.0, 2.0])),
            ),
            ("surrogate.lengthscale", gp("lengthscale", json!(0.0))),
            ("surrogate.signal_std", gp("signal_std", json!(-1.0))),
            ("surrogate.noise_std", gp("noise_std", json!(1e200))),
            (
                "surrogate.initial_theta",
                gp("initial_theta", json!([1.0, 0.0, 1.0])),
            ),
            ("surrogate.n_restarts", gp("n_restarts", json!(0))),
            ("surrogate.n_restarts", gp("n_restarts", json!(many))),
            ("surrogate.refit_every", gp("refit_every", json!(0))),
            ("window", json!({"window": 0.0})),
            (
                "initial.n",
                json!({"initial": {"kind": "Initial", "n": usize::MAX}}),
            ),
            ("acquisition.beta", ucb("beta", json!(-1.0))),
            ("acquisition.rkhs_bound", ucb("rkhs_bound", json!(-1.0))),
            ("acquisition.value_bound", ucb("value_bound", json!(0.0))),
            ("acquisition.delta", ucb("delta", json!(1.0))),
            ("acquisition.multistart", ucb("multistart", json!([0, 1]))),
            (
                "acquisition.multistart",
                ucb("multistart", json!([1, many])),
            ),
            ("acquisition.direct", ucb("direct", json!(0))),
            ("acquisition.effort", ucb("effort", json!(0.0))),
            ("acquisition.effort", ts("effort", json!(1e9))),
            ("acquisition.direct", ucb("direct", json!(many))),
            (
                "acquisition.direct",
                json!({"acquisition": {"kind": "UCB", "direct": 9, "multistart": [9, 9]}}),
            ),
            (
                "acquisition.beta",
                json!({"acquisition": {"kind": "UCBPE", "beta": -1.0}}),
            ),
            (
                "pending",
                json!({"acquisition": {"kind": "UCBPE"}, "pending": {"kind": "Ignore"}}),
            ),
            ("acquisition.n_features", ts("n_features", json!(0))),
            ("acquisition.n_features", ts("n_features", json!(many))),
            (
                "pending.late",
                pending(json!({"kind": "Censor", "late": "discard"})),
            ),
            ("pending.k", pending(json!({"kind": "Nearest", "k": 0}))),
            (
                "pending.n",
                pending(json!({"kind": "Integrate", "n": many})),
            ),
            (
                "pending",
                json!({"pending": {"kind": "Integrate"}, "acquisition": {"kind": "ThompsonSampling"}}),
            ),
        ] {
            match checked(settings, 3, false) {
                Err(Error::InvalidSetting { name: found, .. }) => assert_eq!(found, name),
                other => panic!("{name}: {other:?}"),
            }
        }
        for (name, change) in [
            (
                "window",
                (|s| s.window = Some(f64::NAN)) as fn(&mut Settings),
            ),
            ("pending.floor", |s| {
                let floor = Some(f64::INFINITY);
                s.pending = Some(Pending::Censor(super::super::pending::Censor {
                    floor,
                    ..Default::default()
                }));
            }),
            ("pending.value", |s| {
                let value = Lie::Number(f64::NAN);
                s.pending = Some(Pending::Liar(super::super::pending::Liar { value }));
            }),
            ("surrogate.mean", |s| {
                let mean = PriorMean::Number(f64::NAN);
                s.surrogate = super::super::settings::Surrogate::GP(GP {
                    mean,
                    ..GP::default()
                });
            }),
        ] {
            let mut settings = Settings::default();
            change(&mut settings);
            match settings.check(3, false) {
                Err(Error::InvalidSetting { name: found, .. }) => assert_eq!(found, name),
                other => panic!("{name}: {other:?}"),
            }
        }
    }

    #[test]
    fn what_is_for_boxes_is_refused_on_candidates() {
        for settings in [
            json!({"acquisition": {"kind": "ThompsonSampling", "draws": "weight_space"}}),
            json!({"acquisition": {"kind": "LogEI", "multistart": [10, 1]}}),
            json!({"acquisition": {"kind": "MaxVariance", "direct": 10}}),
        ] {
            assert!(checked(settings.clone(), 3, true).is_err());
            assert!(checked(settings, 3, false).is_ok());
        }
    }

    #[test]
    fn refits_are_dense_at_first_and_sparse_later() {
        use crate::strategy::bayes::settings::RefitClock;
        let gp = GP::default();
        assert!(gp.refit_due(None, 3, 3));
        for (fitted, rows, due) in [
            (5, 5, false),
            (5, 6, true),
            (100, 109, false),
            (100, 110, true),
            (1000, 1049, false),
            (1000, 1050, true),
        ] {
            assert_eq!(gp.refit_due(Some(fitted), rows, 0), due);
        }
        let by_trials = GP {
            refit_clock: RefitClock::Trials,
            ..gp
        };
        assert!(by_trials.refit_due(Some(7), 7, 20) && !by_trials.refit_due(Some(7), 9, 21));
    }
}
