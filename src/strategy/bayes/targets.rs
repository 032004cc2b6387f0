//! From observed values to the targets of the model: center, scale, and what discarded trials count as.
//!
//! A target is (t(y) − center)/scale, where t is the identity or a [`Warp`]. The prior mean of the model is 0, so the center
//! is the prior mean of t(f). A fit chooses these units, and they stay until the next fit: θ is in the same units.

use crate::ledger::Trial;
use crate::strategy::bayes::settings::Settings;
use crate::strategy::bayes::settings::pending::Levels;
use crate::strategy::bayes::settings::surrogate::{NamedMean, PriorMean, TargetScale};
use crate::strategy::bayes::warp::Warp;

/// What targets are measured in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Units {
    pub center: f64,
    pub scale: f64,
    pub warp: Option<Warp>,
}

/// By how much the prior mean may move, in units of the targets: half of the standard deviation of f in its prior.
const MAX_MOVE: f64 = 0.5;

/// By how much the unit may change: a factor of 2 in it is 1.4 standard deviations of the prior on log σ_f².
const MAX_FACTOR: f64 = 2.0;

/// 95 % of a normal lie within so many standard deviations.
const NORMAL: f64 = 1.96;

impl Units {
    /// The target of a value.
    pub fn target(&self, y: f64) -> f64 {
        let t = self.warp.map_or(y, |warp| warp.apply(y));
        // Divided one by one: the difference of two large numbers may overflow, that of their quotients not.
        t / self.scale - self.center / self.scale
    }

    /// Whether these are so far from other units that θ, which was fitted in them, does not hold in these.
    pub fn differ_from(&self, fitted: &Units) -> bool {
        let moved = (self.center / fitted.scale - fitted.center / fitted.scale).abs();
        let factor = self.scale / fitted.scale;
        let factors = 1.0 / MAX_FACTOR..=MAX_FACTOR;
        moved.is_nan() || moved > MAX_MOVE || !factors.contains(&factor)
    }

    /// Whether the targets of two values are further apart than the prior mean may move.
    pub fn are_apart(&self, one: f64, other: f64) -> bool {
        (self.target(one) - self.target(other)).abs() > MAX_MOVE
    }

    /// The value of f that has this target.
    pub fn value(&self, target: f64) -> f64 {
        let t = self.center + self.scale * target;
        self.warp.map_or(t, |warp| warp.invert(t))
    }

    /// Mean and standard deviation of f where those of the target are given. Under a warp f is not normal: then the median,
    /// and the half width of the central interval of 95 %, in units of that of a normal.
    pub fn moments(&self, mean: f64, std: f64) -> (f64, f64) {
        match self.warp {
            None => (self.value(mean), self.scale * std),
            Some(_) => {
                let [low, high] = [-NORMAL, NORMAL].map(|z| self.value(mean + z * std));
                (self.value(mean), (0.5 * high - 0.5 * low) / NORMAL)
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
    /// Targets of trials in this order, in the units that suit their values under a warp.
    pub fn of<'a>(
        trials: impl Iterator<Item = (&'a Trial, bool)> + Clone,
        settings: &Settings,
        warp: Option<Warp>,
    ) -> Self {
        let warped = |y: f64| warp.map_or(y, |warp| warp.apply(y));
        let (mut observed, mut stds) = (Vec::new(), Vec::new());
        for (trial, _) in trials.clone().filter(|(_, discarded)| !discarded) {
            if let Some(y) = trial.value {
                let slope = warp.map_or(1.0, |warp| warp.log_slope(y).exp());
                observed.push(warped(y));
                stds.push(trial.std().unwrap_or(0.0) * slope);
            }
        }
        let worst = observed.iter().copied().reduce(f64::min);
        let floor = settings.pending().floor().map(warped).or(worst);
        let floor = floor.unwrap_or(0.0);
        let (center, scale) = center_and_scale(&observed, &stds, floor, settings, &warped);
        let units = Units {
            center,
            scale,
            warp,
        };
        Self::in_units(trials, settings, units)
    }

    /// Targets of trials in this order, `discarded` ones at the floor.
    pub fn in_units<'a>(
        trials: impl Iterator<Item = (&'a Trial, bool)> + Clone,
        settings: &Settings,
        units: Units,
    ) -> Self {
        let values: Vec<f64> = trials
            .clone()
            .filter(|(_, discarded)| !discarded)
            .filter_map(|(trial, _)| trial.value)
            .collect();
        let lie = settings.pending().lie(&values);
        let worst = values.into_iter().reduce(f64::min);
        let target = |y: f64| units.target(y);
        let floor = settings.pending().floor().or(worst);
        // Without values this is the prior mean of no unit: 0 as it stands.
        let floor = floor.map_or(-units.center / units.scale, target);
        let values = trials
            .map(|(trial, discarded)| match discarded {
                true => floor,
                false => trial.value.map_or(floor, target),
            })
            .collect();
        Self {
            values,
            units,
            levels: Levels {
                floor,
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

/// The prior mean and the unit of the model, of values that are `warped` already, with the standard deviation of the
/// noise of each, 0 where it is unknown.
fn center_and_scale(
    observed: &[f64],
    stds: &[f64],
    floor: f64,
    settings: &Settings,
    warped: &dyn Fn(f64) -> f64,
) -> (f64, f64) {
    let pending = settings.pending();
    let gp = settings.gp();
    let (mut center, scale) = if gp.targets == TargetScale::Raw {
        (0.0, 1.0)
    } else {
        standardized(observed, stds, pending.is_censor().then_some(floor))
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

/// Mean and standard deviation of f among the observed; with a floor, that and the largest distance from it.
fn standardized(observed: &[f64], stds: &[f64], floor: Option<f64>) -> (f64, f64) {
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
            let (mean, spread) = match stds.iter().any(|std| *std > 0.0) {
                true => without_noise(observed, stds, largest, (mean, variance.sqrt())),
                false => (mean, variance.sqrt()),
            };
            (mean * largest, usable_scale(spread, largest))
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

/// Mean and standard deviation S of f among values with noise of known standard deviations σ, in units of the largest.
///
/// With weights 1/(S² + σ²), c the weighted mean, S solves Σ (y − c)²/(S² + σ²) = n: a value that is nothing but noise does
/// not count. S is at least the smallest σ, because a smaller unit would make everything noise, and at most the `plain`
/// standard deviation.
fn without_noise(observed: &[f64], stds: &[f64], largest: f64, plain: (f64, f64)) -> (f64, f64) {
    let values = || {
        observed
            .iter()
            .zip(stds)
            .map(|(y, std)| (y / largest, std / largest))
    };
    let about = |s: f64| {
        let weight = |std: f64| 1.0 / (s * s + std * std);
        let total: f64 = values().map(|(_, std)| weight(std)).sum();
        let mean = values().map(|(y, std)| y * weight(std)).sum::<f64>() / total;
        let squares = values().map(|(y, std)| (y - mean).powi(2) * weight(std));
        (mean, squares.sum::<f64>())
    };
    let least = stds.iter().copied().fold(f64::INFINITY, f64::min) / largest;
    // In these bounds no square under- or overflows, and the weights have a sum.
    let (mut low, mut high) = (least.max(1e-12), plain.1.min(1e100));
    if low >= high {
        return plain;
    }
    // The sum decreases in S, and at the plain standard deviation is at most n. A part in a thousand is enough of a unit.
    while high > 1.001 * low {
        let middle = (low * high).sqrt();
        if about(middle).1 > observed.len() as f64 {
            low = middle;
        } else {
            high = middle;
        }
    }
    (about(high).0, high)
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
    use crate::strategy::bayes::settings::pending::{Censor, Liar, Lie, Pending, Statistic};
    use crate::strategy::bayes::settings::surrogate::{GP, Surrogate};

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
    fn the_unit_is_the_spread_of_f_without_known_noise() {
        // 400 values of f with standard deviation 2, and noise of standard deviations 0 to 6.
        let f = |i: usize| 2.0 * 3f64.sqrt() * (2.0 * ((i as f64 * 0.618_034).fract()) - 1.0);
        let stds: Vec<f64> = (0..400).map(|i| (i % 7) as f64).collect();
        let sign = |i: usize| if (i / 7).is_multiple_of(2) { 1.0 } else { -1.0 };
        let values: Vec<f64> = (0..400).map(|i| 10.0 + f(i) + sign(i) * stds[i]).collect();
        let (center, scale) = standardized(&values, &stds, None);
        assert!(
            (center - 10.0).abs() < 0.2 && (scale - 2.0).abs() < 0.2,
            "{center} {scale}"
        );
        // A value that is nothing but noise does not count, and noise alone is the unit.
        let with = |value: f64, std: f64| {
            let values: Vec<f64> = (0..400).map(f).chain([value]).collect();
            let stds: Vec<f64> = [0.0; 400].into_iter().chain([std]).collect();
            standardized(&values, &stds, None).1
        };
        assert!((with(1e6, 1e6) - 2.0).abs() < 0.01 && with(1e6, 1.0) > 1e4);
        let noise: Vec<f64> = (0..400).map(|i| 0.5 * sign(7 * i)).collect();
        assert_eq!(standardized(&noise, &[0.5; 400], None).1, 0.5);
    }

    #[test]
    fn units_differ_by_half_a_unit_or_a_factor_of_two() {
        let units = |center: f64, scale: f64| Units {
            center,
            scale,
            warp: None,
        };
        let fitted = units(3.0, 4.0);
        for (center, scale, expected) in [
            (4.9, 4.0, false),
            (5.1, 4.0, true),
            (0.9, 4.0, true),
            (3.0, 7.9, false),
            (3.0, 8.1, true),
            (3.0, 1.9, true),
            (3.0, f64::INFINITY, true),
        ] {
            assert_eq!(
                units(center, scale).differ_from(&fitted),
                expected,
                "{center} {scale}"
            );
        }
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
            diverging: -100.0,
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
