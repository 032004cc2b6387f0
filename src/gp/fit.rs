//! The fit of the hyperparameters. Local searches from several starts maximise the evidence (times prior), on
//! increasing numbers of rows.
//!
//! Notation: p = (log ℓ…, log σ_f², log λ).

use std::iter;
use std::ops::ControlFlow;

use ndarray::ArrayView2;

use super::calibration::{Fitted, may_replace};
use super::described::with_descriptors;
use super::evidence::{Data, MIN_LOG_BAYES_FACTOR};
use super::hyperparameters::{Hyperparameters, NOISELESS, is_noiseless};
use super::input_warps::best_input_warp;
use super::levels::{Part, chosen, levels};
use super::refine::refine;
use super::search::{COARSE, End, FINE, ONLY, Problem, best};
use super::spread::spread_rows;
use crate::error::{Result, Stop, check};
use crate::gp::kernel::KernelFamily;
use crate::random::Call;

pub use super::fit_settings::{Draws, FitSettings};

/// Two rows are crowded if their distance is smaller than this number, in the units of [`NEAR`](super::spread::NEAR).
const CROWDED: f64 = 0.03;

/// A race keeps the second end point if it differs from the first end point, and if its log evidence is smaller by at most
/// this number of nats.
const RACE_MARGIN: f64 = 10.0;

/// Two end points are equal if all entries of p differ by less than `NEAR_ENDS`, or if the log evidence differs by less
/// than `EQUAL_ENDS`.
const NEAR_ENDS: f64 = 0.5;
const EQUAL_ENDS: f64 = 0.1;

/// The θ with the largest evidence (times prior) that L-BFGS-B finds from `start` and from random draws.
///
/// If there are many rows, the starts are compared on a subset. Only the searches from the best start and from the
/// first start continue on more rows.
pub fn fit(
    x: ArrayView2<f64>,
    y: &[f64],
    start: &Hyperparameters,
    settings: &FitSettings,
    call: &mut Call,
) -> Result<Hyperparameters> {
    let data = Data {
        x,
        y,
        noise: &[],
        about_mean: false,
    };
    let variant = Variant {
        data,
        log_slope: &[],
    };
    let families = [settings.family];
    let starts = std::slice::from_ref(start);
    Ok(fit_best(&[variant], starts, settings, &families, call)?.theta)
}

/// Data for a fit, whose values were transformed by a function t(y).
#[derive(Debug, Clone, Copy)]
pub struct Variant<'a> {
    pub data: Data<'a>,
    /// log dt/dy of each row, up to a constant that all variants share. An empty slice stands for zeros in all rows.
    /// The log evidence plus the sum of the entries is a log density of y, so different transforms can be compared.
    pub log_slope: &'a [f64],
}

impl Variant<'_> {
    /// The sum of log dt/dy over these rows.
    fn log_slope(&self, rows: &[usize]) -> f64 {
        self.log_slopes(rows).iter().sum()
    }

    /// log dt/dy of these rows. An empty vector stands for zeros in all rows.
    fn log_slopes(&self, rows: &[usize]) -> Vec<f64> {
        match self.log_slope {
            [] => Vec::new(),
            slopes => rows.iter().map(|&i| slopes[i]).collect(),
        }
    }
}

/// The result of a fit over kernels and variants.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The number of the variant.
    pub variant: usize,
    pub family: KernelFamily,
    pub theta: Hyperparameters,
}

/// Fits θ as `fit` does, and also chooses a kernel and a variant of the values. Kernels, variants and starts are
/// compared on the coarsest level. With several levels, the starts are first compared on half of the coarsest level.
/// The kernels are compared first, on the first variant. A kernel replaces the kernels before it in the list only with
/// strong evidence. Then the other variants are compared under the best kernel. Finally, input warps of single columns
/// are compared under the best variant, and then descriptors of categories. If there is little noise, a kernel, variant
/// or input warp must also predict left-out values better than the one that it replaces ([`may_replace`]).
///
/// The first of the `known` θ is the main start, whose input warp is used until input warps are compared. Random starts
/// are added up to the number of starts in the settings. If the data are noiseless, only one row of each crowd is used,
/// because the evidence of crowded rows depends on the last digits of the values of these rows. If all crowded rows
/// were used, the evidence would often be largest for transforms that smooth f, or that shrink the range of f far from
/// the crowd.
pub fn fit_best(
    variants: &[Variant],
    known: &[Hyperparameters],
    settings: &FitSettings,
    families: &[KernelFamily],
    call: &mut Call,
) -> Result<Found> {
    let mut variant = 0;
    if let (Some(theta), &[family]) = (settings.given(), families) {
        return Ok(Found {
            variant,
            family,
            theta,
        });
    }
    let known_starts: Vec<_> = known.iter().map(|theta| settings.encode(theta)).collect();
    let mut first = known_starts[0].clone();
    let bounds = settings.bounds(&first);
    let mut bounds_of_all = bounds.clone();
    let mut bounds_of_part = bounds.clone();
    let mut starts = known_starts.clone();
    for _ in starts.len()..settings.n_restarts {
        starts.push(settings.random_start(call.rng));
    }
    let data = variants[0].data;
    let levels = levels(data.y.len(), settings.n_lengthscales());
    let mut rows = chosen(data.y.len(), levels[0]);
    let mut coarsest = Part::of(data, &rows);
    // The search starts with the input warp of the first θ.
    let settings = FitSettings {
        input_warp: known[0].input_warp.clone(),
        ..settings.clone()
    };
    let problem = Problem {
        data,
        settings: &settings,
        bounds: &bounds,
        tolerance: &COARSE,
    };
    let of_part = problem.on(coarsest.data());
    if levels.len() > 1 {
        starts = race(problem, &rows, starts, call.stop)?;
    }
    let mut winner = best_family(of_part, families, starts.clone(), call.stop)?;
    let end = winner.as_ref().map(|(_, (p, _))| p.clone());
    let mut of_all_rows = None;
    if let Some(p) = end.filter(|p| is_noiseless(p[p.len() - 1].exp())) {
        let spread = spread_rows(data.x, &rows, settings.dimensions, CROWDED);
        if spread.len() < rows.len() {
            rows = spread;
            coarsest = Part::of(data, &rows);
            of_all_rows = Some(p.clone());
            starts.insert(0, p);
            // Bound λ from above, because a fit to the kept rows alone could explain noiseless data by noise.
            if let Some(upper) = bounds_of_part.1.last_mut() {
                *upper = upper.min(NOISELESS.ln());
            }
            let of_part = Problem {
                bounds: &bounds_of_part,
                ..problem.on(coarsest.data())
            };
            winner = best_family(of_part, families, starts.clone(), call.stop)?;
        }
    }
    let mut chosen = settings.clone();
    // Keep all starts if the evidence is infinite from every start.
    if let Some((family, end)) = winner {
        chosen.family = family;
        let problem = Problem {
            settings: &chosen,
            bounds: &bounds_of_part,
            ..problem.on(coarsest.data())
        };
        let (best, p) = best_variant(problem, variants, &rows, (end, &known_starts), call.stop)?;
        let part = Part::of(variants[best].data, &rows);
        let problem = problem.on(part.data());
        let input_warp = best_input_warp(&problem, &p, call.stop)?;
        chosen.input_warp = input_warp;
        let problem = Problem {
            data: part.data(),
            settings: &chosen,
            bounds: &bounds_of_part,
            tolerance: &COARSE,
        };
        let described = with_descriptors(&problem, &p, known, call.stop)?;
        (variant, starts) = (best, vec![p]);
        // If there is nothing to compare on the kept rows, the end point on all rows is also a start.
        if variants.len() == 1 && families.len() == 1 {
            starts.extend(of_all_rows);
        }
        if let Some((settings, p)) = described {
            first = settings.with_entries(&first, 0.0, 0.0);
            bounds_of_all = settings.bounds(&first);
            (chosen, starts) = (settings, vec![p]);
        }
    }
    let problem = Problem {
        settings: &chosen,
        bounds: &bounds_of_all,
        ..problem.on(variants[variant].data)
    };
    let p = if let [_] = levels[..] {
        let problem = Problem {
            tolerance: &ONLY,
            ..problem
        };
        let end = best(problem.search_all(&starts, call.stop)?);
        end.map_or_else(|| starts.swap_remove(0), |(p, _)| p)
    } else {
        if starts[0] != first {
            starts.push(first);
        }
        refine(problem, &levels, &rows, starts, call.stop)?
    };
    Ok(Found {
        variant,
        family: chosen.family,
        theta: chosen.decode(&p),
    })
}

/// Whether a fit to n rows first compares kernels, variants and starts on fewer rows.
pub fn has_levels(n: usize, settings: &FitSettings) -> bool {
    levels(n, settings.n_lengthscales()).len() > 1
}

/// Fits θ again, to a few more rows than the `last` fit. One search on all rows starts from the last θ. The kernel and
/// the input warp do not change.
pub fn fit_again(
    data: Data,
    last: &Hyperparameters,
    settings: &FitSettings,
    stop: &mut Stop,
) -> Result<Found> {
    let found = |theta| Found {
        variant: 0,
        family: settings.family,
        theta,
    };
    if let Some(theta) = settings.given() {
        return Ok(found(theta));
    }
    let described = match last.descriptor_lengthscale.is_empty() {
        true => None,
        false => settings.with_descriptors(),
    };
    let settings = FitSettings {
        input_warp: last.input_warp.clone(),
        ..described.unwrap_or_else(|| settings.clone())
    };
    let start = settings.encode(last);
    let problem = Problem {
        data,
        settings: &settings,
        bounds: &settings.bounds(&start),
        tolerance: &FINE,
    };
    let n = data.y.len();
    let coarsest = levels(n, settings.n_lengthscales())[0];
    let rows = chosen(n, coarsest);
    let p = refine(problem, &[coarsest, n], &rows, vec![start], stop)?;
    Ok(found(settings.decode(&p)))
}

/// Searches from every start on half of these rows, and returns the best end points. Searches from all starts on all of
/// these rows would take longer than the rest of the fit.
///
/// Returns all starts if the data are noiseless or there are no priors, because the evidence on few rows is then
/// misleading.
fn race(
    problem: Problem,
    rows: &[usize],
    starts: Vec<Vec<f64>>,
    stop: &mut Stop,
) -> Result<Vec<Vec<f64>>> {
    if !problem.settings.priors {
        return Ok(starts);
    }
    let half: Vec<_> = rows.iter().copied().step_by(2).collect();
    let part = Part::of(problem.data, &half);
    let mut ends = problem.on(part.data()).search_all(&starts, stop)?;
    ends.retain(|(_, value)| value.is_finite());
    ends.sort_by(|a, b| a.1.total_cmp(&b.1));
    let Some((p, least)) = ends.first().cloned() else {
        return Ok(starts);
    };
    if is_noiseless(p[p.len() - 1].exp()) {
        return Ok(starts);
    }
    let second = ends.into_iter().skip(1).find(|(q, value)| {
        let near = p.iter().zip(q).all(|(a, b)| (a - b).abs() < NEAR_ENDS);
        !near && *value > least + EQUAL_ENDS && *value < least + RACE_MARGIN
    });
    Ok(iter::once(p).chain(second.map(|(q, _)| q)).collect())
}

/// The variant with the largest evidence on these rows, and its p. A variant replaces an earlier variant only if
/// [`may_replace`] allows it. The search of the first variant has ended at `(p, value)`. The searches of the other
/// variants start at this p, or at a known start with a larger evidence. Known starts are tried because a heavy tail of
/// the values may lead the first search to a poor θ.
fn best_variant(
    problem: Problem,
    variants: &[Variant],
    rows: &[usize],
    ((p, value), known_starts): (End, &[Vec<f64>]),
    stop: &mut Stop,
) -> Result<(usize, Vec<f64>)> {
    // Another variant replaces the first variant only if the evidence for the other variant is strong.
    let bound = value - variants[0].log_slope(rows) - MIN_LOG_BAYES_FACTOR;
    let (mut variant, mut least, mut top) = (0, bound, p.clone());
    for (i, other) in variants.iter().enumerate().skip(1) {
        let part = Part::of(other.data, rows);
        let problem = problem.on(part.data());
        let mut at = |p: &[f64]| problem.value(p, &mut || stop() == ControlFlow::Break(()));
        let starts = iter::once(&p).chain(known_starts);
        let starts = starts.map(|start| (start.clone(), at(start))).collect();
        check(stop)?;
        let start = best(starts).map_or_else(|| p.clone(), |(start, _)| start);
        let Some((p, value)) = best(problem.search_all(&[start], stop)?) else {
            continue;
        };
        let value = value - other.log_slope(rows);
        if value >= least {
            continue;
        }
        let old = Part::of(variants[variant].data, rows);
        let slopes = [i, variant].map(|i| variants[i].log_slopes(rows));
        let new = Fitted::new(part.data(), &slopes[0], problem.settings, &p);
        let old = Fitted::new(old.data(), &slopes[1], problem.settings, &top);
        if may_replace(&new, &old, stop)? {
            (variant, least, top) = (i, value, p);
        }
    }
    Ok((variant, top))
}

/// The family with the largest evidence on these rows, and the end point of the search of this family. A family
/// replaces an earlier family only with strong evidence, and if [`may_replace`] allows it. The result is `None` if the
/// evidence is infinite for every family.
///
/// The searches of the first family run from all starts. The searches of the other families run from the end point of
/// the first family, and from the last of three or more starts.
fn best_family(
    problem: Problem,
    families: &[KernelFamily],
    mut starts: Vec<Vec<f64>>,
    stop: &mut Stop,
) -> Result<Option<(KernelFamily, End)>> {
    let mut top: Option<(KernelFamily, End)> = None;
    for (i, &family) in families.iter().enumerate() {
        if let Some((_, (p, _))) = top.as_ref().filter(|_| i == 1) {
            // The last start is left out if there are at most two starts.
            let last = starts.pop().filter(|_| starts.len() > 1);
            starts = [p.clone()].into_iter().chain(last).collect();
        }
        let settings = FitSettings {
            family,
            ..problem.settings.clone()
        };
        let problem = Problem {
            settings: &settings,
            ..problem
        };
        let Some((p, value)) = best(problem.search_all(&starts, stop)?) else {
            continue;
        };
        if let Some((known, (other, least))) = &top {
            let others = FitSettings {
                family: *known,
                ..settings.clone()
            };
            let new = Fitted::new(problem.data, &[], &settings, &p);
            let old = Fitted::new(problem.data, &[], &others, other);
            if value >= least - MIN_LOG_BAYES_FACTOR || !may_replace(&new, &old, stop)? {
                continue;
            }
        }
        top = Some((family, (p, value)));
    }
    Ok(top)
}

#[cfg(test)]
mod tests {
    use super::super::{GaussianProcess, RowNoise};

    use super::super::evidence::Evidence;
    use super::super::search::PARALLEL_FROM;
    use super::super::tests::{model, wave};
    use super::*;
    use crate::error::Error;
    use crate::random::Rng;
    use rand::SeedableRng;

    fn settings(priors: bool) -> FitSettings {
        FitSettings {
            priors,
            draws: Draws::Wide,
            spreads: vec![1.0, 3.0],
            ..FitSettings::new(KernelFamily::Matern52, vec![0, 1], 4)
        }
    }

    #[test]
    fn evidence_equals_the_posterior_evidence_and_its_gradient_equals_finite_differences() {
        for family in KernelFamily::ALL {
            let plain = model(family, 25);
            let y = plain.targets();
            // The noise variance of a row is λ, a known variance, or λ plus a known variance.
            let noise: Vec<_> = (0..25)
                .map(|i| match i % 3 {
                    0 => RowNoise::Known(0.02 * i as f64 + 0.013),
                    1 => RowNoise::Added(0.01 * i as f64),
                    _ => RowNoise::default(),
                })
                .collect();
            let mut gp = GaussianProcess::new(family, &plain.hyperparameters()).unwrap();
            gp.append_noisy_rows(plain.rows(), &noise).unwrap();
            gp.set_targets(&y).unwrap();
            let data = Data {
                x: plain.rows(),
                y: &y,
                noise: &noise,
                about_mean: false,
            };
            for (ard, priors, about_mean) in [
                (true, false, false),
                (true, true, true),
                (false, true, false),
                (false, false, true),
            ] {
                let data = Data { about_mean, ..data };
                let settings = FitSettings {
                    family,
                    groups: vec![0, usize::from(ard)],
                    ..settings(priors)
                };
                let mut evidence = Evidence::new(data);
                let mut evidence = |p: &[f64], g: &mut [f64]| {
                    settings.value_and_gradient(&mut evidence, p, g, &mut || false)
                };
                let p = settings.encode(&gp.hyperparameters());
                let mut gradient = vec![0.0; p.len()];
                let value = evidence(&p, &mut gradient);
                if ard && !priors && !about_mean {
                    assert!((value - gp.log_marginal_likelihood()).abs() < 1e-9);
                }
                for i in 0..p.len() {
                    let mut at = |h: f64| {
                        let mut p = p.clone();
                        p[i] += h;
                        evidence(&p, &mut vec![0.0; p.len()])
                    };
                    let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
                    assert!((gradient[i] - slope).abs() < 1e-5 * slope.abs().max(1.0));
                }
            }
        }
    }

    #[test]
    fn fitting_keeps_given_hyperparameters_and_does_not_lower_the_evidence() {
        for n in [30, PARALLEL_FROM + 10] {
            let x = wave(n, 2, 1.1);
            let y: Vec<f64> = x.rows().into_iter().map(|r| (3.0 * r[0]).sin()).collect();
            let settings = FitSettings {
                noise_variance: Some(1e-3),
                ..settings(false)
            };
            let start = settings.prior_mode();
            let mut rng = Rng::seed_from_u64(3);
            let mut go_on = || ControlFlow::Continue(());
            let theta = fit(
                x.view(),
                &y,
                &start,
                &settings,
                &mut Call::new(&mut rng, &mut go_on),
            )
            .unwrap();
            assert!((theta.noise_variance - 1e-3).abs() < 1e-15);
            let evidence = |theta: &Hyperparameters| {
                let mut gp = GaussianProcess::new(KernelFamily::Matern52, theta).unwrap();
                gp.append_rows(x.view()).unwrap();
                gp.set_targets(&y).unwrap();
                gp.log_marginal_likelihood()
            };
            assert!(evidence(&theta) > evidence(&start) + 1.0);
            // y does not depend on the second column.
            assert!(theta.lengthscale[1] > 3.0 * theta.lengthscale[0]);
        }
    }

    #[test]
    fn a_cancelled_fit_stops() {
        for n in [20, PARALLEL_FROM] {
            let x = wave(n, 2, 1.1);
            let y: Vec<f64> = x.column(0).to_vec();
            let settings = settings(true);
            let mut rng = Rng::seed_from_u64(3);
            let result = fit(
                x.view(),
                &y,
                &settings.prior_mode(),
                &settings,
                &mut Call::new(&mut rng, &mut || ControlFlow::Break(())),
            );
            assert_eq!(result, Err(Error::Interrupted));
        }
    }
}
