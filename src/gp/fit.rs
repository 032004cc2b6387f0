//! Hyperparameters by the evidence: priors on it, and a multi-start maximisation from coarse to fine.
//!
//! Notation: p = (log ℓ…, log v, log λ); with one shared lengthscale its first part is a single number.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use ndarray::{Array2, ArrayView2, Axis};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

use super::Hyperparameters;
use super::evidence::{Data, Evidence};
use crate::error::{Error, Result, Stop, check};
use crate::gp::kernel::KernelFamily;
use crate::numerics::lbfgsb::{Tolerance, minimize};
use crate::numerics::threads::{parallel_map, pool};
use crate::random::Rng;

/// Restarts run side by side from this many rows on; below, starting threads costs more than it gives.
const PARALLEL_FROM: usize = 100;

/// From this many rows on one look at the evidence keeps all threads busy, and takes as much memory as should be taken.
const ONE_AT_A_TIME_FROM: usize = 700;

/// Up to this many rows every start is run on all of them; above, starts compete on a part.
const ALL_ROWS: usize = 150;

/// A level has this many times the rows of the one below it, which has no fewer than `COARSEST`, or this many a column.
const REFINEMENT: usize = 2;
const COARSEST: usize = 100;
const COARSEST_PER_COLUMN: usize = 15;

/// For all but the last level: as far as it takes to see where a start leads.
const COARSE: Tolerance = Tolerance {
    projected_gradient: 1e-3,
    relative_reduction: 3e-4,
    max_iterations: 40,
};

/// For the winner where there are no more rows to refine it on.
const LAST: Tolerance = Tolerance {
    projected_gradient: 1e-4,
    relative_reduction: 1e-7,
    max_iterations: 200,
};

/// Nats by which a kernel has to be better than those before it in the list: strong evidence, after Kass & Raftery 1995.
const MIN_LOG_BAYES_FACTOR: f64 = 3.0;

/// For what refines the winner of a part on all rows. The next fit goes on from there.
const FINE: Tolerance = Tolerance {
    projected_gradient: 1e-3,
    relative_reduction: 1e-5,
    max_iterations: 15,
};

/// λ of data that are rather noisy.
const MUCH_NOISE: f64 = 0.05;

/// What is fitted, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct FitSettings {
    pub family: KernelFamily,
    /// One lengthscale per column; false shares one among all.
    pub ard: bool,
    /// Parts of θ that are given, not fitted.
    pub lengthscale: Option<Vec<f64>>,
    pub signal_variance: Option<f64>,
    pub noise_variance: Option<f64>,
    /// Adds the log density of [`priors`]: maximum a posteriori instead of maximum likelihood.
    pub priors: bool,
    /// L-BFGS-B runs: the first from `start`, the others from random draws.
    pub n_restarts: usize,
    /// Where those are drawn from without priors; with them from the priors.
    pub draws: Draws,
}

/// Where random starts come from where there are no priors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Draws {
    /// Softplus of a standard normal: as the literature's code does, all of order one.
    Unit,
    /// From fast functions without noise to slow ones in much of it.
    Wide,
}

/// A Gaussian prior on one entry of p: mean and standard deviation.
type LogNormalPrior = (f64, f64);

/// Priors on log ℓ, log v and log λ, for targets of unit scale.
///
/// ℓ ~ LogNormal(√2 + ½ log d, √3) grows with the dimension, because distances do (Hvarfner et al. 2024); the
/// log density over ℓ has its mode σ² lower on the log scale. log v ~ N(0, 1). log λ ~ N(−5, 3): a little noise as a rule,
/// but functions without any and values that are mostly noise are no surprise.
fn priors(d: usize) -> [LogNormalPrior; 3] {
    let lengthscale = std::f64::consts::SQRT_2 + 0.5 * (d as f64).ln();
    [(lengthscale - 3.0, 3f64.sqrt()), (0.0, 1.0), (-5.0, 3.0)]
}

/// Bounds on ℓ, v and λ, wide enough never to matter to data of unit scale in a unit cube.
const BOUNDS: [(f64, f64); 3] = [(1e-3, 1e3), (1e-6, 1e6), (1e-8, 1e4)];

/// Where ℓ, v and λ of such data usually are.
const USUAL: [(f64, f64); 3] = [(0.05, 5.0), (0.3, 3.0), (1e-5, 1.0)];

impl FitSettings {
    /// Whether nothing is left to fit; then θ is what was given.
    pub fn given(&self) -> Option<Hyperparameters> {
        Some(Hyperparameters {
            lengthscale: self.lengthscale.clone()?,
            signal_variance: self.signal_variance?,
            noise_variance: self.noise_variance?,
        })
    }

    /// θ before any data: the modes of the priors, or what was given.
    pub fn prior_mode(&self, d: usize) -> Hyperparameters {
        let [lengthscale, signal_variance, noise_variance] = priors(d).map(|(mean, _)| mean.exp());
        Hyperparameters {
            lengthscale: self
                .lengthscale
                .clone()
                .unwrap_or_else(|| vec![lengthscale; d]),
            signal_variance: self.signal_variance.unwrap_or(signal_variance),
            noise_variance: self.noise_variance.unwrap_or(noise_variance),
        }
    }

    fn n_lengthscales(&self, d: usize) -> usize {
        if self.ard || self.lengthscale.is_some() {
            d
        } else {
            1
        }
    }

    /// p of θ.
    fn encode(&self, theta: &Hyperparameters) -> Vec<f64> {
        let n = self.n_lengthscales(theta.lengthscale.len());
        let mut p: Vec<f64> = theta.lengthscale[..n].iter().map(|l| l.ln()).collect();
        p.extend([theta.signal_variance.ln(), theta.noise_variance.ln()]);
        p
    }

    /// θ of p, for d columns.
    fn decode(&self, p: &[f64], d: usize) -> Hyperparameters {
        let (lengthscale, rest) = p.split_at(p.len() - 2);
        Hyperparameters {
            lengthscale: (0..d)
                .map(|k| lengthscale[k.min(lengthscale.len() - 1)].exp())
                .collect(),
            signal_variance: rest[0].exp(),
            noise_variance: rest[1].exp(),
        }
    }

    /// Lower and upper bounds of p; a given part has both at its value.
    fn bounds(&self, start: &[f64], d: usize) -> (Vec<f64>, Vec<f64>) {
        let n = self.n_lengthscales(d);
        let free = [
            &self.lengthscale.as_ref().map(|_| ()),
            &self.signal_variance.map(|_| ()),
            &self.noise_variance.map(|_| ()),
        ]
        .map(Option::is_none);
        let side = |pick: fn((f64, f64)) -> f64| -> Vec<f64> {
            (0..n + 2)
                .map(|i| {
                    let kind = (i + 1).saturating_sub(n);
                    if free[kind] {
                        pick(BOUNDS[kind]).ln()
                    } else {
                        start[i]
                    }
                })
                .collect()
        };
        (side(|b| b.0), side(|b| b.1))
    }

    /// A random start.
    fn draw(&self, d: usize, rng: &mut Rng) -> Vec<f64> {
        let n = self.n_lengthscales(d);
        let priors = priors(d);
        (0..n + 2)
            .map(|i| {
                let kind = (i + 1).saturating_sub(n);
                if self.priors {
                    let (mean, sd) = priors[kind];
                    let u: f64 = StandardNormal.sample(rng);
                    mean + sd.min(1.0) * u
                } else if self.draws == Draws::Wide {
                    let (low, high) = USUAL[kind];
                    rng.random_range(low.ln()..high.ln())
                } else {
                    let u: f64 = StandardNormal.sample(rng);
                    u.exp().ln_1p().ln()
                }
            })
            .collect()
    }

    /// The log evidence, with the log prior if there is one, and its gradient with respect to p.
    fn value_and_gradient(
        &self,
        evidence: &mut Evidence,
        p: &[f64],
        d: usize,
        gradient: &mut [f64],
        cancelled: &mut dyn FnMut() -> bool,
    ) -> f64 {
        let theta = self.decode(p, d);
        let mut by_theta = vec![0.0; d + 2];
        let kernel = theta.kernel(self.family);
        let value =
            evidence.value_and_gradient(&kernel, theta.noise_variance, &mut by_theta, cancelled);
        gradient.fill(0.0);
        let n_lengthscales = p.len() - 2;
        for (c, g) in by_theta[..d].iter().enumerate() {
            gradient[c.min(n_lengthscales - 1)] += g;
        }
        gradient[n_lengthscales..].copy_from_slice(&by_theta[d..]);
        value + self.add_priors(p, d, gradient)
    }

    /// Adds the log prior density and its gradient.
    fn add_priors(&self, p: &[f64], d: usize, gradient: &mut [f64]) -> f64 {
        if !self.priors {
            return 0.0;
        }
        let n = p.len() - 2;
        let priors = priors(d);
        let mut log_density = 0.0;
        for i in 0..p.len() {
            let (mean, sd) = priors[(i + 1).saturating_sub(n)];
            let u = (p[i] - mean) / sd;
            log_density -= 0.5 * u * u;
            gradient[i] -= u / sd;
        }
        log_density
    }
}

/// θ of the largest evidence (times prior) that L-BFGS-B finds from `start` and from random draws.
///
/// From coarse to fine: with many rows the starts compete on a part of them, and only the winner and the first start see
/// more, unless θ of before is better there.
pub fn fit(
    x: ArrayView2<f64>,
    y: &[f64],
    start: &Hyperparameters,
    settings: &FitSettings,
    rng: &mut Rng,
    stop: &mut Stop,
) -> Result<Hyperparameters> {
    let data = Data {
        x,
        y,
        noise: &[],
        about_mean: false,
    };
    Ok(fit_families(data, start, settings, &[settings.family], rng, stop)?.1)
}

/// As `fit`, over several kernels as well: they compete where the starts do, on the coarsest part. The first runs from
/// every start, the others from where it ended and from the last start; they need strong evidence to replace it.
pub fn fit_families(
    data: Data,
    start: &Hyperparameters,
    settings: &FitSettings,
    shapes: &[KernelFamily],
    rng: &mut Rng,
    stop: &mut Stop,
) -> Result<(KernelFamily, Hyperparameters)> {
    let d = data.x.ncols();
    let mut settings = settings.clone();
    if let (Some(theta), &[family]) = (settings.given(), shapes) {
        return Ok((family, theta));
    }
    let mut first = settings.encode(start);
    for (value, given) in [
        (first.len() - 2, settings.signal_variance),
        (first.len() - 1, settings.noise_variance),
    ] {
        if let Some(given) = given {
            first[value] = given.ln();
        }
    }
    let bounds = settings.bounds(&first, d);
    let mut starts = vec![first.clone()];
    for _ in 1..settings.n_restarts.max(1) {
        starts.push(settings.draw(d, rng));
    }
    let levels = levels(data.y.len(), d);
    // Runs of the coarsest level, by kernel.
    let part = Part::of(data, levels[0]);
    let mut top: Option<(KernelFamily, End)> = None;
    for (i, &family) in shapes.iter().enumerate() {
        if let Some((_, (p, _))) = top.as_ref().filter(|_| i == 1) {
            // A fit with few starts has a good one among them: then the end of the first kernel is enough.
            let last = starts.pop().filter(|_| starts.len() > 1);
            starts = [p.clone()].into_iter().chain(last).collect();
        }
        let problem = Problem {
            data: part.data(),
            settings: &FitSettings {
                family,
                ..settings.clone()
            },
            bounds: &bounds,
            tolerance: &COARSE,
        };
        let winner = best(climb(&problem, &starts, stop)?);
        let better = |w: &End| {
            top.as_ref()
                .is_none_or(|(_, top)| w.1 < top.1 - MIN_LOG_BAYES_FACTOR)
        };
        if let Some(winner) = winner.filter(better) {
            top = Some((family, winner));
        }
    }
    // Where no start has a finite evidence they are all kept.
    if let Some((family, (p, _))) = top {
        (settings.family, starts) = (family, vec![p]);
    }
    // Then the winner on more and more rows, or once more on those there are.
    let (finer, last) = match levels[1..] {
        [] => (&levels[..], &LAST),
        ref finer => (finer, &FINE),
    };
    for (i, &n) in finer.iter().enumerate() {
        let (part, whole) = (Part::of(data, n), n == data.y.len());
        let problem = Problem {
            data: part.data(),
            settings: &settings,
            bounds: &bounds,
            tolerance: if whole { last } else { &COARSE },
        };
        if levels.len() > 1 {
            // A part may have missed what the rest shows: where the first start leads is seen beside it.
            if (i == 0 || whole) && starts[0] != first {
                starts.push(first.clone());
            }
            let seen = problem.with_more_noise(starts, stop)?;
            // One climb over all rows is dear; where nothing is finite it may as well begin anywhere.
            let top = best(seen.clone()).filter(|_| i > 0 && whole);
            starts = match top {
                Some((p, _)) => vec![p],
                None => seen.into_iter().map(|(p, _)| p).collect(),
            };
        }
        if let Some((p, _)) = best(climb(&problem, &starts, stop)?) {
            starts = vec![p];
        }
    }
    Ok((settings.family, settings.decode(&starts[0], d)))
}

/// Where a run ended: p, and minus the evidence.
type End = (Vec<f64>, f64);

/// The first of the ends with the largest evidence, if any of them is finite.
fn best(ends: Vec<End>) -> Option<End> {
    let finite = ends.into_iter().filter(|(_, value)| value.is_finite());
    finite.min_by(|a, b| a.1.total_cmp(&b.1))
}

/// Numbers of rows to fit to in turn, for d columns, ending with n.
fn levels(n: usize, d: usize) -> Vec<usize> {
    let coarsest = COARSEST.max(COARSEST_PER_COLUMN * d);
    let mut levels = vec![n];
    let mut rows = n;
    while rows > coarsest + ALL_ROWS / 3 {
        rows = (rows / REFINEMENT).max(coarsest);
        levels.push(rows);
    }
    levels.reverse();
    levels
}

/// Some of the rows.
struct Part {
    x: Array2<f64>,
    y: Vec<f64>,
    noise: Vec<Option<f64>>,
    about_mean: bool,
}

impl Part {
    /// n rows, evenly spread over the order of their arrival.
    fn of(data: Data, n: usize) -> Self {
        let picked: Vec<usize> = (0..n).map(|i| i * data.y.len() / n).collect();
        Self {
            x: data.x.select(Axis(0), &picked),
            y: picked.iter().map(|&i| data.y[i]).collect(),
            noise: match data.noise {
                [] => Vec::new(),
                noise => picked.iter().map(|&i| noise[i]).collect(),
            },
            about_mean: data.about_mean,
        }
    }

    fn data(&self) -> Data<'_> {
        Data {
            x: self.x.view(),
            y: &self.y,
            noise: &self.noise,
            about_mean: self.about_mean,
        }
    }
}

/// What one level of a fit climbs.
#[derive(Clone, Copy)]
struct Problem<'d, 'a> {
    data: Data<'d>,
    settings: &'a FitSettings,
    bounds: &'a (Vec<f64>, Vec<f64>),
    tolerance: &'a Tolerance,
}

impl Problem<'_, '_> {
    /// The starts, or what they are with more noise where that is better, and minus the evidence there.
    ///
    /// A few rows often look free of noise. From there it takes long to find it in many: d log p / d log λ goes with λ.
    fn with_more_noise(&self, starts: Vec<Vec<f64>>, stop: &mut Stop) -> Result<Vec<End>> {
        let last = self.bounds.0.len() - 1;
        let (low, high) = (self.bounds.0[last], self.bounds.1[last]);
        let mut looks = Vec::with_capacity(2 * starts.len());
        for (i, start) in starts.iter().enumerate() {
            looks.push((i, start.clone()));
            let noise = start[last].max(MUCH_NOISE.ln()).max(low).min(high);
            if noise != start[last] {
                let mut noisy = start.clone();
                noisy[last] = noise;
                looks.push((i, noisy));
            }
        }
        let (n, d) = self.data.x.dim();
        let look = |p: &[f64], cancelled: &mut dyn FnMut() -> bool| {
            let theta = self.settings.decode(p, d);
            let kernel = theta.kernel(self.settings.family);
            let value = Evidence::new(self.data).value(&kernel, theta.noise_variance, cancelled);
            -value - self.settings.add_priors(p, d, &mut vec![0.0; p.len()])
        };
        let mut better: Vec<End> = starts.into_iter().map(|p| (p, f64::INFINITY)).collect();
        let mut keep = |i: usize, p: Vec<f64>, value: f64| {
            if value < better[i].1 {
                better[i] = (p, value);
            }
        };
        if (PARALLEL_FROM..ONE_AT_A_TIME_FROM).contains(&n) {
            let values = parallel_map(looks, true, |(i, p)| {
                let value = look(&p, &mut || false);
                (i, p, value)
            });
            values
                .into_iter()
                .for_each(|(i, p, value)| keep(i, p, value));
        } else {
            for (i, p) in looks {
                let value = look(&p, &mut || stop() == ControlFlow::Break(()));
                check(stop)?;
                keep(i, p, value);
            }
        }
        check(stop)?;
        Ok(better)
    }

    /// The end of one run, and minus the evidence there; `cancelled` makes it end at once.
    fn run(&self, start: &[f64], cancelled: &mut dyn FnMut() -> bool) -> End {
        let mut evidence = Evidence::new(self.data);
        let d = self.data.x.ncols();
        // The evidence curves in proportion to the rows. In this unit the first step, which is as long as the gradient,
        // does not end on a far bound.
        let unit = 0.5 * self.data.y.len() as f64;
        let mut objective = |p: &[f64], gradient: &mut [f64]| {
            if cancelled() {
                gradient.fill(0.0);
                return f64::INFINITY;
            }
            let settings = self.settings;
            let value = settings.value_and_gradient(&mut evidence, p, d, gradient, cancelled);
            gradient.iter_mut().for_each(|g| *g /= -unit);
            value / -unit
        };
        let (lower, upper) = self.bounds;
        let (p, least) = minimize(&mut objective, start, lower, upper, self.tolerance);
        (p, least * unit)
    }
}

/// A run from every start, side by side where that pays; the same ends either way.
fn climb(problem: &Problem, starts: &[Vec<f64>], stop: &mut Stop) -> Result<Vec<End>> {
    let Some(pool) = pool().filter(|_| problem.data.y.len() >= PARALLEL_FROM) else {
        let mut ends = Vec::with_capacity(starts.len());
        for start in starts {
            let mut interrupted = false;
            ends.push(problem.run(start, &mut || {
                interrupted = interrupted || stop() == ControlFlow::Break(());
                interrupted
            }));
            check(stop)?;
        }
        return Ok(ends);
    };
    let cancelled = AtomicBool::new(false);
    let (sender, receiver) = mpsc::channel();
    let mut ends = vec![(Vec::new(), f64::INFINITY); starts.len()];
    pool.in_place_scope(|scope| {
        for (i, start) in starts.iter().enumerate() {
            let (sender, cancelled) = (sender.clone(), &cancelled);
            scope.spawn(move |_| {
                let end = problem.run(start, &mut || cancelled.load(Ordering::Relaxed));
                sender.send((i, end)).ok();
            });
        }
        drop(sender);
        // This thread waits, and asks now and then whether the caller still wants an answer.
        loop {
            match receiver.recv_timeout(Duration::from_millis(20)) {
                Ok((i, end)) => ends[i] = end,
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
            if stop() == ControlFlow::Break(()) {
                cancelled.store(true, Ordering::Relaxed);
            }
        }
    });
    if cancelled.load(Ordering::Relaxed) {
        return Err(Error::Interrupted);
    }
    Ok(ends)
}

#[cfg(test)]
mod tests {
    use super::super::GaussianProcess;
    use super::super::tests::{model, wave};
    use super::*;
    use rand::SeedableRng;

    fn settings(priors: bool) -> FitSettings {
        FitSettings {
            family: KernelFamily::Matern52,
            ard: true,
            lengthscale: None,
            signal_variance: None,
            noise_variance: None,
            priors,
            n_restarts: 4,
            draws: Draws::Wide,
        }
    }

    #[test]
    fn evidence_is_the_factor_s_and_its_gradient_the_finite_difference() {
        for family in KernelFamily::ALL {
            let plain = model(family, 25);
            let y = plain.targets();
            // Every third row has a noise of its own.
            let noise: Vec<_> = (0..25)
                .map(|i| (i % 3 == 0).then_some(0.02 * i as f64 + 0.013))
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
                    ard,
                    ..settings(priors)
                };
                let mut evidence = Evidence::new(data);
                let mut evidence = |p: &[f64], g: &mut [f64]| {
                    settings.value_and_gradient(&mut evidence, p, 2, g, &mut || false)
                };
                let p = settings.encode(&gp.hyperparameters());
                let mut gradient = vec![0.0; p.len()];
                let value = evidence(&p, &mut gradient);
                if ard && !priors && !about_mean {
                    assert!((value - gp.log_marginal_likelihood()).abs() < 1e-9);
                    let own = gp.log_marginal_likelihood_gradient();
                    let close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-8 * b.abs().max(1.0);
                    assert!(gradient.iter().zip(&own).all(close));
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
    fn fitting_does_not_lower_the_evidence_and_keeps_what_is_given() {
        for n in [30, PARALLEL_FROM + 10] {
            let x = wave(n, 2, 1.1);
            let y: Vec<f64> = x.rows().into_iter().map(|r| (3.0 * r[0]).sin()).collect();
            let settings = FitSettings {
                noise_variance: Some(1e-3),
                ..settings(false)
            };
            let start = settings.prior_mode(2);
            let mut rng = Rng::seed_from_u64(3);
            let mut go_on = || ControlFlow::Continue(());
            let theta = fit(x.view(), &y, &start, &settings, &mut rng, &mut go_on).unwrap();
            assert!((theta.noise_variance - 1e-3).abs() < 1e-15);
            let evidence = |theta: &Hyperparameters| {
                let mut gp = GaussianProcess::new(KernelFamily::Matern52, theta).unwrap();
                gp.append_rows(x.view()).unwrap();
                gp.set_targets(&y).unwrap();
                gp.log_marginal_likelihood()
            };
            assert!(evidence(&theta) > evidence(&start) + 1.0);
            // The second column does not matter to y.
            assert!(theta.lengthscale[1] > 3.0 * theta.lengthscale[0]);
        }
    }

    #[test]
    fn fitting_stops_when_asked_to() {
        for n in [20, PARALLEL_FROM] {
            let x = wave(n, 2, 1.1);
            let y: Vec<f64> = x.column(0).to_vec();
            let settings = settings(true);
            let mut rng = Rng::seed_from_u64(3);
            let result = fit(
                x.view(),
                &y,
                &settings.prior_mode(2),
                &settings,
                &mut rng,
                &mut || ControlFlow::Break(()),
            );
            assert_eq!(result, Err(Error::Interrupted));
        }
    }
}
