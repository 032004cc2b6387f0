//! From observed values to the targets of the model: center, scale, and what discarded trials count as.
//!
//! A target is (t(y) − center)/scale, where t is the identity or a [`Warp`]. The prior mean of the model is 0, so the center
//! is the prior mean of t(f).

use crate::ledger::Trial;
use crate::strategy::bayes::pending::Levels;
use crate::strategy::bayes::settings::{NamedMean, PriorMean, Settings, TargetScale};
use crate::strategy::bayes::warp::Warp;

/// What targets are measured in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Units {
    pub center: f64,
    pub scale: f64,
    pub warp: Option<Warp>,
}

impl Units {
    /// The value of f that has this target.
    pub fn value(&self, target: f64) -> f64 {
        let t = self.center + self.scale * target;
        self.warp.map_or(t, |warp| warp.invert(t))
    }

    /// Mean and standard deviation of f where those of the target are given. Under a warp f is not normal: then the median,
    /// and half of the range between the quantiles of one standard deviation below and above it.
    pub fn moments(&self, mean: f64, std: f64) -> (f64, f64) {
        match self.warp {
            None => (self.value(mean), self.scale * std),
            Some(_) => {
                let half = 0.5 * self.value(mean + std) - 0.5 * self.value(mean - std);
                (self.value(mean), half)
            }
        }
    }

    /// log d target/dy.
    pub fn log_slope(&self, y: f64) -> f64 {
        self.warp.map_or(0.0, |warp| warp.log_slope(y)) - self.scale.ln()
    }

    /// The standard deviation of a target whose value y has this one.
    pub fn std_of_target(&self, y: f64, std: f64) -> f64 {
        let slope = self.warp.map_or(1.0, |warp| warp.log_slope(y).exp());
        std / self.scale * slope
    }
}

/// The targets of rows, and the units they are in.
#[derive(Debug, Clone, PartialEq)]
pub struct Targets {
    pub values: Vec<f64>,
    pub units: Units,
    pub levels: Levels,
}

impl Targets {
    /// Targets of trials in this order. `discarded` trials count as the floor.
    pub fn of<'a>(
        trials: impl Iterator<Item = (&'a Trial, bool)> + Clone,
        settings: &Settings,
        warp: Option<Warp>,
    ) -> Self {
        let warped = |y: f64| warp.map_or(y, |warp| warp.apply(y));
        let values: Vec<f64> = trials
            .clone()
            .filter(|(_, discarded)| !discarded)
            .filter_map(|(trial, _)| trial.value)
            .collect();
        let lie = settings.pending().lie(&values).map(warped);
        let observed: Vec<f64> = values.into_iter().map(warped).collect();
        let worst = observed.iter().copied().reduce(f64::min);
        let floor = settings
            .pending()
            .floor()
            .map(warped)
            .or(worst)
            .unwrap_or(0.0);
        let (center, scale) = center_and_scale(&observed, floor, settings, &warped);
        // Divided one by one: the difference of two large numbers may overflow, that of their quotients not.
        let target = |y: f64| y / scale - center / scale;
        let values = trials
            .map(|(trial, discarded)| match discarded {
                true => target(floor),
                false => target(trial.value.map_or(floor, warped)),
            })
            .collect();
        Self {
            values,
            units: Units {
                center,
                scale,
                warp,
            },
            levels: Levels {
                floor: target(floor),
                lie: lie.map_or(0.0, target),
            },
        }
    }
}

impl Targets {
    /// The same about another prior mean, which lies at `mean` in the units of now.
    pub fn move_center(&mut self, mean: f64) {
        self.units.center += mean * self.units.scale;
        self.values.iter_mut().for_each(|y| *y -= mean);
        self.levels.floor -= mean;
        self.levels.lie -= mean;
    }
}

/// The prior mean and the unit of the model, of values that are `warped` already.
fn center_and_scale(
    observed: &[f64],
    floor: f64,
    settings: &Settings,
    warped: &dyn Fn(f64) -> f64,
) -> (f64, f64) {
    let pending = settings.pending();
    let gp = settings.gp();
    let (mut center, scale) = if gp.targets == TargetScale::Raw {
        (0.0, 1.0)
    } else {
        standardized(observed, pending.is_censor().then_some(floor))
    };
    match gp.mean {
        PriorMean::Number(mean) => center = warped(mean),
        PriorMean::Named(NamedMean::Median) if !observed.is_empty() => center = median(observed),
        PriorMean::Named(_) => {}
    }
    if gp.targets == TargetScale::Raw {
        return (center, scale);
    }
    let assumed = pending.assumed_value(floor).map(warped);
    // So far from the prior mean nothing of a unit would survive rounding. In halves, which do not overflow.
    let half_reach = observed
        .iter()
        .chain(&assumed)
        .map(|y| (0.5 * y - 0.5 * center).abs())
        .fold(0.0, f64::max);
    if half_reach > 1e12 * scale {
        (center, half_reach)
    } else {
        (center, scale)
    }
}

/// Mean and standard deviation of the observed; with a floor, that and the largest distance from it.
fn standardized(observed: &[f64], floor: Option<f64>) -> (f64, f64) {
    let largest = observed
        .iter()
        .chain(&floor)
        .fold(0.0, |m: f64, y| m.max(y.abs()));
    if observed.is_empty() || largest == 0.0 {
        return (floor.unwrap_or(0.0), 1.0);
    }
    match floor {
        // Moments of y / max|y|, which neither over- nor underflow.
        None => {
            let n = observed.len() as f64;
            let mean = observed.iter().map(|y| y / largest).sum::<f64>() / n;
            let squares = observed.iter().map(|y| (y / largest - mean).powi(2));
            let variance = squares.sum::<f64>() / n;
            (mean * largest, usable_scale(variance.sqrt(), largest))
        }
        // Standardising by the observed alone would put the floor of an accuracy tens of standard deviations away.
        Some(floor) => {
            let reach = observed
                .iter()
                .map(|y| (y / largest - floor / largest).abs())
                .fold(0.0, f64::max);
            (floor, usable_scale(reach, largest))
        }
    }
}

/// spread·largest, or the size of the values themselves where they are equal up to rounding.
fn usable_scale(spread: f64, largest: f64) -> f64 {
    let scale = spread * largest;
    if spread > 1e-12 && scale.is_normal() {
        scale
    } else if largest.is_normal() {
        largest
    } else {
        1.0
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    0.5 * low + 0.5 * high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{Action, Clock, Ledger, Point};
    use crate::strategy::bayes::pending::{Censor, Liar, Lie, Pending, Statistic};
    use crate::strategy::bayes::settings::{GP, Surrogate};

    /// Trials with these values; those without one are pending.
    fn trials(values: &[Option<f64>]) -> Vec<Trial> {
        let mut ledger = Ledger::new(Clock::Iterations, 1, 0);
        for &value in values {
            let add = Action::add(Point::new(vec![0.0], None), vec![], value, None);
            let event = ledger.validate(add, 0.0).unwrap().unwrap();
            ledger.append(event).unwrap();
        }
        ledger.trials().to_vec()
    }

    fn with(pending: Pending, gp: GP) -> Settings {
        Settings {
            pending: Some(pending),
            surrogate: Surrogate::GP(gp),
            ..Settings::default()
        }
    }

    fn censor(floor: Option<f64>) -> Pending {
        Pending::Censor(Censor {
            floor,
            ..Censor::default()
        })
    }

    fn liar(value: Lie) -> Pending {
        Pending::Liar(Liar { value })
    }

    /// Pending trials are past their window.
    fn of(values: &[Option<f64>], settings: &Settings) -> Targets {
        let trials = trials(values);
        let rows = trials.iter().map(|t| (t, t.value.is_none()));
        Targets::of(rows, settings, None)
    }

    #[test]
    fn standardised_targets_have_mean_zero_and_unit_spread() {
        let targets = of(&[Some(1.0), Some(3.0)], &Settings::default());
        assert_eq!(targets.values, [-1.0, 1.0]);
        assert_eq!((targets.units.center, targets.units.scale), (2.0, 1.0));
    }

    #[test]
    fn another_prior_mean_leaves_the_values_of_f_as_they_are() {
        let settings = with(liar(Lie::Of(Statistic::Max)), GP::default());
        let mut targets = of(&[Some(0.0), Some(8.0)], &settings);
        let in_f = |targets: &Targets| {
            let levels = [targets.levels.floor, targets.levels.lie];
            let all = targets.values.iter().chain(&levels);
            all.map(|y| targets.units.value(*y)).collect::<Vec<_>>()
        };
        let before = in_f(&targets);
        let zero = targets.units.center;
        targets.move_center(0.5);
        assert_eq!(in_f(&targets), before);
        assert_eq!(targets.units.center, zero + 0.5 * targets.units.scale);
        assert_eq!(targets.values[0], -1.5);
    }

    #[test]
    fn a_median_lies_in_the_middle() {
        for (values, expected) in [
            (vec![3.0], 3.0),
            (vec![8.0, 2.0], 5.0),
            (vec![9.0, 1.0, 2.0], 2.0),
            (vec![9.0, 2.0, 1.0, 4.0], 3.0),
            (vec![9.0, 2.0, 1.0, 4.0, -5.0], 2.0),
            (vec![f64::MAX, f64::MAX], f64::MAX),
        ] {
            assert_eq!(median(&values), expected);
        }
    }

    #[test]
    fn censored_targets_are_measured_from_the_floor() {
        let settings = with(censor(Some(0.5)), GP::default());
        let targets = of(&[Some(1.0), Some(2.5)], &settings);
        assert_eq!(targets.values, [0.25, 1.0]);
        assert_eq!(targets.levels.floor, 0.0);
        let trials = trials(&[Some(1.0), Some(2.5)]);
        let discarded = Targets::of(trials.iter().zip([true, false]), &settings, None);
        assert_eq!(discarded.values, [0.0, 1.0]);
    }

    #[test]
    fn the_floor_is_the_given_one_or_the_worst_value() {
        let settings = with(censor(Some(0.5)), GP::default());
        assert_eq!(of(&[Some(1.0), None], &settings).values, [1.0, 0.0]);
        let settings = with(censor(None), GP::default());
        assert_eq!(
            of(&[Some(1.0), Some(3.0), None], &settings).values,
            [0.0, 1.0, 0.0]
        );
    }

    #[test]
    fn targets_above_a_floor_are_at_most_one_even_where_all_values_are_zero() {
        for (value, floor) in [(0.0, -100.0), (5.0, -100.0), (0.0, -1e-300), (0.0, 0.0)] {
            let settings = with(censor(Some(floor)), GP::default());
            let targets = of(&[Some(value), Some(value)], &settings);
            assert!(
                targets.values.iter().all(|y| (0.0..=1.0).contains(y)),
                "{targets:?}"
            );
        }
    }

    #[test]
    fn the_liar_speaks_in_the_model_s_units() {
        for (lie, expected) in [
            (Lie::Of(Statistic::Min), -1.0),
            (Lie::Of(Statistic::Mean), 0.0),
            (Lie::Of(Statistic::Max), 1.0),
            (Lie::Number(4.0), 2.0),
        ] {
            let settings = with(liar(lie), GP::default());
            assert_eq!(of(&[Some(1.0), Some(3.0)], &settings).levels.lie, expected);
            assert!(of(&[], &settings).levels.lie.is_finite());
        }
    }

    #[test]
    fn what_is_assumed_of_pending_trials_is_warped_as_values_are() {
        let warp = Warp {
            knee: 2.0,
            width: 1.0,
            limit: -30.0,
        };
        let trials = trials(&[0.0, 1.0, 2.0, 3.0, 4.0].map(Some));
        let of = |settings: &Settings| {
            Targets::of(trials.iter().map(|t| (t, false)), settings, Some(warp))
        };
        let lied = of(&with(liar(Lie::Number(-1e15)), GP::default()));
        // The unit is that of the values: the lie counts as the limit.
        assert_eq!(lied.units, of(&Settings::default()).units);
        let lie = lied.units.center + lied.units.scale * lied.levels.lie;
        assert!((lie - (2.0 - 33f64.ln())).abs() < 1e-12, "{lie}");
    }

    #[test]
    fn raw_targets_move_only_by_the_prior_mean() {
        let gp = GP {
            targets: TargetScale::Raw,
            mean: PriorMean::Named(NamedMean::Median),
            ..GP::default()
        };
        let settings = with(Pending::Ignore {}, gp);
        assert_eq!(
            of(&[Some(1.0), Some(5.0), Some(2.0)], &settings).values,
            [-1.0, 3.0, 0.0]
        );
    }

    #[test]
    fn a_prior_mean_out_of_all_proportion_becomes_the_unit() {
        for (values, mean, floor) in [
            (vec![Some(1e-300)], 1e300, None),
            (vec![Some(1.0), Some(2.0)], f64::MAX, Some(f64::MIN)),
            (vec![Some(0.0)], 0.0, Some(1e300)),
            (vec![Some(0.0)], 1e300, Some(-1e300)),
        ] {
            for pending in [
                Pending::Ignore {},
                censor(floor),
                liar(Lie::Number(floor.unwrap_or(7.0))),
            ] {
                let gp = GP {
                    mean: PriorMean::Number(mean),
                    ..GP::default()
                };
                let settings = with(pending, gp);
                let targets = of(&values, &settings);
                assert_eq!(targets.units.center, mean);
                assert!(targets.levels.lie.abs() <= 2.0);
                assert!(targets.values.iter().all(|y| y.abs() <= 2.0), "{targets:?}");
            }
        }
    }

    #[test]
    fn extreme_and_constant_values_stay_finite() {
        for values in [
            vec![1e300, -1e300],
            vec![f64::MAX, f64::MIN],
            vec![1e-300, 2e-300],
            vec![5e-324, 0.0],
            vec![7.0, 7.0],
            vec![0.0, 0.0],
            vec![1e300, 1e300_f64.next_down()],
        ] {
            let values: Vec<_> = values.into_iter().map(Some).collect();
            for pending in [Pending::Ignore {}, censor(None)] {
                let settings = with(pending, GP::default());
                let targets = of(&values, &settings);
                assert!(
                    targets.values.iter().all(|y| y.abs() < 10.0),
                    "{values:?} {targets:?}"
                );
                assert!(targets.units.scale > 0.0);
            }
        }
    }
}
