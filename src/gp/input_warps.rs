//! The choice of the columns that a fit warps. A column is warped if there is strong evidence for a map of its values.

use std::ops::ControlFlow;

use super::calibration::{Fitted, may_replace};
use super::evidence::{Evidence, MIN_LOG_BAYES_FACTOR};
use super::fit_settings::FitSettings;
use super::kernel::{InputWarp, Kumaraswamy};
use super::search::Problem;
use crate::error::{Result, Stop, check};

/// A column is warped only if its values span at least this range. Values in a narrower range do not determine a map of
/// [0, 1].
const MIN_SPAN: f64 = 0.8;

/// The maps that are tried for each column. Each map uses a power to stretch the values near one end of [0, 1]. The
/// maps are listed in pairs of a mild map and a strong map. The strong map is tried only if the mild map is better than
/// the identity.
const MAPS: [[Kumaraswamy; 2]; 4] = [
    [Kumaraswamy(0.5, 1.0), Kumaraswamy(0.25, 1.0)],
    [Kumaraswamy(2.0, 1.0), Kumaraswamy(4.0, 1.0)],
    [Kumaraswamy(1.0, 0.5), Kumaraswamy(1.0, 0.25)],
    [Kumaraswamy(1.0, 2.0), Kumaraswamy(1.0, 4.0)],
];

/// Chooses an input warp. The choice starts from the input warp of the settings, and changes one column at a time with
/// p fixed.
///
/// A column is warped if the warp raises the log evidence by [`MIN_LOG_BAYES_FACTOR`] plus a penalty for the number of
/// maps. If there is little noise, the chosen maps must also predict left-out values better than unwarped columns
/// ([`may_replace`]). Otherwise all columns stay unwarped.
pub(super) fn best_input_warp(problem: &Problem, p: &[f64], stop: &mut Stop) -> Result<InputWarp> {
    let now = &problem.settings.input_warp;
    if problem.settings.warpable.is_empty() {
        return Ok(now.clone());
    }
    let mut evidence = Evidence::new(problem.data);
    let mut log_evidence = |maps: &[Kumaraswamy], stop: &mut Stop| -> Result<f64> {
        let settings = FitSettings {
            input_warp: InputWarp::new(maps.to_vec()),
            ..problem.settings.clone()
        };
        let theta = settings.decode(p);
        let kernel = settings.kernel(&theta);
        let mut cancelled = || stop() == ControlFlow::Break(());
        let value = evidence.value(&kernel, theta.noise_variance, &mut cancelled);
        check(stop)?;
        Ok(value)
    };
    // The maps have equal prior probabilities.
    let log_maps = (MAPS.as_flattened().len() as f64).ln();
    let needed = |map: Kumaraswamy| match map {
        Kumaraswamy::IDENTITY => 0.0,
        _ => MIN_LOG_BAYES_FACTOR + log_maps,
    };
    let mut maps: Vec<_> = (0..problem.data.x.ncols()).map(|d| now.map(d)).collect();
    let mut value = log_evidence(&maps, stop)?;
    let spanned = |d: &&usize| {
        let column = problem.data.x.column(**d);
        let ends = |(low, high): (f64, f64), u: &f64| (low.min(*u), high.max(*u));
        // Values outside [0, 1] do not determine the map.
        let inside = column.iter().filter(|u| (0.0..=1.0).contains(*u));
        let (low, high) = inside.fold((1.0, 0.0), ends);
        high - low >= MIN_SPAN
    };
    for &d in problem.settings.warpable.iter().filter(spanned) {
        let mut best = (maps[d], value);
        let mut value_with = |map: Kumaraswamy| -> Result<f64> {
            if map == best.0 {
                return Ok(best.1);
            }
            maps[d] = map;
            let value = log_evidence(&maps, stop)?;
            if value - needed(map) > best.1 - needed(best.0) {
                best = (map, value);
            }
            Ok(value)
        };
        let plain = value_with(Kumaraswamy::IDENTITY)?;
        for [mild, strong] in MAPS {
            if value_with(mild)? > plain {
                value_with(strong)?;
            }
        }
        (maps[d], value) = best;
    }
    let chosen = InputWarp::new(maps);
    if chosen.is_identity() {
        return Ok(chosen);
    }
    let [with, without] = [chosen, InputWarp::default()].map(|input_warp| FitSettings {
        input_warp,
        ..problem.settings.clone()
    });
    let new = Fitted::new(problem.data, &[], &with, p);
    let old = Fitted::new(problem.data, &[], &without, p);
    Ok(match may_replace(&new, &old, stop)? {
        true => with.input_warp,
        false => without.input_warp,
    })
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::error::Error;
    use crate::gp::evidence::Data;
    use crate::gp::fit::{Found, Variant, fit_best};
    use crate::gp::kernel::KernelFamily;
    use crate::gp::{GaussianProcess, Hyperparameters};
    use crate::random::{Call, Rng};

    const FAMILY: KernelFamily = KernelFamily::Matern52;

    fn settings() -> FitSettings {
        FitSettings {
            warpable: vec![0, 1],
            ..FitSettings::new(FAMILY, vec![0, 1], 4)
        }
    }

    fn fitted(
        x: &Array2<f64>,
        y: &[f64],
        start: &Hyperparameters,
        stop: &mut Stop,
    ) -> Result<Found> {
        let data = Data {
            x: x.view(),
            y,
            noise: &[],
            about_mean: false,
        };
        let variant = Variant {
            data,
            log_slope: &[],
        };
        let mut rng = Rng::seed_from_u64(5);
        fit_best(
            &[variant],
            std::slice::from_ref(start),
            &settings(),
            &[FAMILY],
            &mut Call::new(&mut rng, stop),
        )
    }

    /// A draw from the prior with these maps, at random points.
    fn draw(n: usize, maps: Vec<Kumaraswamy>, rng: &mut Rng) -> (Array2<f64>, Vec<f64>) {
        let theta = Hyperparameters {
            lengthscale: vec![0.15, 0.4],
            signal_variance: 1.0,
            noise_variance: 1e-4,
            descriptor_lengthscale: Vec::new(),
            input_warp: InputWarp::new(maps),
        };
        let gp = GaussianProcess::new(FAMILY, &theta).unwrap();
        let x = Array2::from_shape_fn((n, 2), |_| rng.random());
        let y = gp.sample(x.view(), 1, rng).unwrap();
        (x, y.into_raw_vec_and_offset().0)
    }

    #[test]
    fn stretched_columns_are_found_and_stay_warped() {
        let mut rng = Rng::seed_from_u64(8);
        let mut go_on = || ControlFlow::Continue(());
        for map in [Kumaraswamy(4.0, 1.0), Kumaraswamy(1.0, 0.25)] {
            let (x, y) = draw(60, vec![map, Kumaraswamy::IDENTITY], &mut rng);
            let found = fitted(&x, &y, &settings().prior_mode(), &mut go_on).unwrap();
            let warp = &found.theta.input_warp;
            assert_eq!((warp.map(0), warp.map(1)), (map, Kumaraswamy::IDENTITY));
            let again = fitted(&x, &y, &found.theta, &mut go_on).unwrap();
            assert_eq!(again.theta.input_warp, *warp);
        }
    }

    /// If 60 columns do not need a warp, only few of these columns are warped, although 8 maps are tried for each
    /// column.
    #[test]
    fn few_unstretched_columns_are_warped() {
        let mut rng = Rng::seed_from_u64(9);
        let mut go_on = || ControlFlow::Continue(());
        let warped: usize = (0..30)
            .map(|_| {
                let (x, y) = draw(30, vec![], &mut rng);
                let found = fitted(&x, &y, &settings().prior_mode(), &mut go_on).unwrap();
                let maps = (0..2).map(|d| found.theta.input_warp.map(d));
                maps.filter(|map| *map != Kumaraswamy::IDENTITY).count()
            })
            .sum();
        assert!(warped <= 3, "{warped}");
    }

    #[test]
    fn columns_with_a_narrow_range_are_not_warped() {
        let mut rng = Rng::seed_from_u64(8);
        let map = vec![Kumaraswamy(4.0, 1.0), Kumaraswamy::IDENTITY];
        let (x, y) = draw(150, map, &mut rng);
        let part: Vec<usize> = (0..150).filter(|&i| x[[i, 0]] > 0.25).take(60).collect();
        let y: Vec<f64> = part.iter().map(|&i| y[i]).collect();
        let x = x.select(ndarray::Axis(0), &part);
        let mut go_on = || ControlFlow::Continue(());
        let found = fitted(&x, &y, &settings().prior_mode(), &mut go_on).unwrap();
        assert_eq!(found.theta.input_warp.map(0), Kumaraswamy::IDENTITY);
    }

    #[test]
    fn a_cancelled_choice_of_warps_stops() {
        let (x, y) = draw(20, vec![], &mut Rng::seed_from_u64(1));
        let run = |allowed: usize| {
            let mut count = 0;
            let found = fitted(&x, &y, &settings().prior_mode(), &mut || {
                count += 1;
                match count > allowed {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            });
            (found, count)
        };
        let (found, checks) = run(usize::MAX);
        assert!(found.is_ok());
        for allowed in (0..checks).step_by(17) {
            assert_eq!(run(allowed).0, Err(Error::Interrupted));
        }
    }
}
