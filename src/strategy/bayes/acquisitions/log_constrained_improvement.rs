//! The logarithm of noisy expected improvement where other outcomes must lie inside bounds (Letham et al. 2019; the
//! logarithm: Ament et al. 2023). Every outcome has a separate Gaussian process. All processes are conditioned on the
//! same noiseless rows, which are the baseline points and the points that are pending in any outcome, and the fantasies
//! of all processes are joined: fantasy i consists of fantasy i of every process. The outcomes are independent given
//! the data, because every process is fitted separately.
//!
//! Notation: f is the objective, and g_o is outcome o with the bounds low_o and high_o; m is the number of fantasies;
//! mu_i and sigma are the mean under fantasy i and the standard deviation of a process; P_oi(x) = P(low_o ≤ g_o(x) ≤
//! high_o) under fantasy i; f*_i is the incumbent of fantasy i; h, φ, Φ and R are as in [`super::log_ei`].

use multiversion::multiversion;
use ndarray::{Array2, ArrayView1, ArrayView2, s};
use rand::seq::SliceRandom;

use super::formula::{Block, Buffers, Formula, floored_std};
use super::incumbents::{rows_in_context, without};
use super::log_inside::{FRAC_1_SQRT_2_PI, LIMIT, inside};
use super::log_noisy_expected_improvement::{draw_fantasies, fantasies_of, moments, values};
use super::rule::Situation;
use crate::error::Result;
use crate::gp::fantasies::Fantasies;
use crate::gp::{Conditioned, GaussianProcess, Target, Workspace};
use crate::numerics::cholesky::sum;
use crate::numerics::special::{exp_nonpositive, mills_ratio};
use crate::problem::unit_sequence;
use crate::random::Rng;
use crate::strategy::Query;

/// The weight of a fantasy in which a point of the tail already lies inside all bounds, if f has no part. The weight is
/// positive, so that points can be compared if this holds in all fantasies.
const MET_WEIGHT: f64 = 1e-3;

/// A bounded outcome, and the posterior from which its fantasies are drawn.
pub struct BoundedSituation<'a> {
    /// The posterior given the noiseless rows, which are the rows of all other processes, in the same order.
    pub gp: Conditioned<&'a mut GaussianProcess>,
    /// The targets of pending trials in this outcome, whose rows are the last rows of the tail.
    pub pending: Vec<Target>,
    /// The bounds in the units of the targets of this outcome. One of the bounds may be infinite.
    pub low: f64,
    pub high: f64,
    /// The vectors v of all candidates, if they are kept. A block of solved points contains all candidates.
    pub solved: Option<ArrayView2<'a, f64>>,
}

/// A bounded outcome with its fantasies.
struct Bounded<'a> {
    gp: Conditioned<&'a mut GaussianProcess>,
    fantasies: Fantasies,
    low: f64,
    high: f64,
    solved: Option<ArrayView2<'a, f64>>,
}

/// The part of the acquisition that does not depend on the bounded outcomes.
enum Gain {
    /// The improvement of f over the incumbents f*_i.
    Improvement {
        fantasies: Fantasies,
        incumbents: Vec<f64>,
    },
    /// The weights w_i. The weight is 1 if no point of the tail lies inside all bounds in fantasy i.
    FirstInside { weights: Vec<f64> },
}

/// The acquisition log (1/m) Σ_i E max(0, f − f*_i) Π_o P_oi, or log (1/m) Σ_i w_i Π_o P_oi.
///
/// The average of Π_o P_oi over fantasies is the probability without fantasies, so it does not depend on pending points.
/// With the weights w_i, the sum is the probability that x lies inside all bounds and none of the pending points does.
pub struct LogConstrainedImprovement<'a> {
    gain: Gain,
    bounded: Vec<Bounded<'a>>,
}

impl<'a> LogConstrainedImprovement<'a> {
    /// Draws n joint fantasies at the noiseless rows of the tail. The fantasies of f are those of
    /// [`super::log_noisy_expected_improvement::LogNoisyExpectedImprovement`].
    ///
    /// The incumbent of a fantasy is the largest value of f among the points of the tail that lie inside all bounds. If
    /// there are none, it is the smallest value of f at the tail, or the smallest observed target if this is smaller.
    pub fn draw(
        situation: Situation,
        bounds: Vec<BoundedSituation<'a>>,
        n: usize,
        rng: &mut Rng,
    ) -> Result<Self> {
        let (fantasies, values) = draw_fantasies(&situation, n, rng)?;
        let (bounded, is_inside) = draw_bounded(bounds, n, situation.query, rng)?;
        let unranked = without(vec![0.0; situation.targets.len()], situation.unranked);
        let ranked = situation.targets.iter().zip(unranked);
        let smallest = |y: f64, z: &f64| y.min(*z);
        let least_target = ranked
            .filter_map(|(y, rank)| (rank == 0.0).then_some(y))
            .fold(f64::INFINITY, smallest);
        let incumbent = |(values, is_inside): (ArrayView1<f64>, ArrayView1<bool>)| {
            let inside = values.iter().zip(is_inside).filter(|(_, inside)| **inside);
            let largest = inside.map(|(f, _)| *f).fold(f64::NEG_INFINITY, f64::max);
            let least = values.iter().fold(least_target, smallest);
            // Without any value, the incumbent is the prior mean.
            match (largest > f64::NEG_INFINITY, least < f64::INFINITY) {
                (true, _) => largest,
                (_, true) => least,
                _ => 0.0,
            }
        };
        let rows = values.rows().into_iter().zip(is_inside.rows());
        Ok(Self {
            gain: Gain::Improvement {
                incumbents: rows.map(incumbent).collect(),
                fantasies,
            },
            bounded,
        })
    }

    /// The acquisition without f, for the time before a point inside all bounds is known. Draws n joint fantasies at
    /// the rows of the tail, which are the pending points.
    pub fn draw_first_inside(
        bounds: Vec<BoundedSituation<'a>>,
        n: usize,
        query: Query,
        rng: &mut Rng,
    ) -> Result<Self> {
        let (bounded, is_inside) = draw_bounded(bounds, n, query, rng)?;
        let weight = |is_inside: ArrayView1<bool>| match is_inside.iter().any(|inside| *inside) {
            true => MET_WEIGHT,
            false => 1.0,
        };
        Ok(Self {
            gain: Gain::FirstInside {
                weights: is_inside.rows().into_iter().map(weight).collect(),
            },
            bounded,
        })
    }

    /// The number of processes, including the process of f.
    fn n_processes(&self) -> usize {
        self.bounded.len() + usize::from(matches!(self.gain, Gain::Improvement { .. }))
    }

    fn n_fantasies(&self) -> usize {
        match &self.gain {
            Gain::Improvement { incumbents, .. } => incumbents.len(),
            Gain::FirstInside { weights } => weights.len(),
        }
    }

    /// Starts the terms with the part of f. Returns log sigma if f has a part. See [`improve`].
    fn start(&self, of_f: Option<(&mut [f64], f64)>, by_std: &mut [f64], terms: &mut Terms) -> f64 {
        terms.exponents.fill(0.0);
        match (&self.gain, of_f) {
            (Gain::Improvement { incumbents, .. }, Some((means, std))) => {
                improve(means, incumbents, 1.0 / std, by_std, terms);
                std.ln()
            }
            (Gain::FirstInside { weights }, None) => {
                terms.factors.copy_from_slice(weights);
                0.0
            }
            _ => unreachable!("only an improvement has means of f"),
        }
    }
}

/// Draws n fantasies of every bounded outcome, and computes whether the points of the tail, in the context of the query,
/// lie inside all bounds: (n fantasies, p).
///
/// All draws come from one sequence. The rows of the sequence are shuffled, because the fantasies of f come from another
/// sequence, whose steps may be the same.
fn draw_bounded<'a>(
    bounds: Vec<BoundedSituation<'a>>,
    n: usize,
    query: Query,
    rng: &mut Rng,
) -> Result<(Vec<Bounded<'a>>, Array2<bool>)> {
    let p = bounds.first().map_or(0, |first| first.gp.tail().nrows());
    debug_assert!(bounds.iter().all(|it| it.gp.tail() == bounds[0].gp.tail()));
    let mut order: Vec<usize> = (0..n).collect();
    let uniform = match bounds.is_empty() {
        true => Array2::zeros((n, 0)),
        false => {
            order.shuffle(rng);
            unit_sequence(n, p * bounds.len(), rng)
        }
    };
    let uniform = uniform.select(ndarray::Axis(0), &order);
    let mut is_inside = Array2::from_elem((n, p), true);
    let mut bounded = Vec::new();
    for (o, outcome) in bounds.into_iter().enumerate() {
        let BoundedSituation {
            gp,
            pending,
            low,
            high,
            solved,
        } = outcome;
        let draws = uniform.slice(s![.., o * p..(o + 1) * p]).to_owned();
        let fantasies = fantasies_of(&gp, draws, &pending)?;
        let points = rows_in_context(gp.tail(), query.context);
        let values = values(&gp, &fantasies, points.view());
        is_inside.zip_mut_with(&values, |all, g| *all &= low <= *g && *g <= high);
        bounded.push(Bounded {
            gp,
            fantasies,
            low,
            high,
            solved,
        });
    }
    Ok((bounded, is_inside))
}

/// The terms of the sum over fantasies: term i equals factor_i·exp(exponent_i). The exponents are at most 0.
struct Terms<'a> {
    factors: &'a mut [f64],
    exponents: &'a mut [f64],
}

impl Terms<'_> {
    /// Returns log (1/m) Σ_i term_i, and overwrites each factor with the share of its term in the sum.
    fn log_mean(&mut self) -> f64 {
        let m = self.factors.len() as f64;
        let reference = self
            .exponents
            .iter()
            .copied()
            .fold(f64::NEG_INFINITY, f64::max);
        scale(self.factors, self.exponents, reference);
        // Products of very small factors may round to 0.
        let total = sum(self.factors).max(f64::MIN_POSITIVE);
        self.factors.iter_mut().for_each(|share| *share /= total);
        reference + (total / m).ln()
    }
}

/// Computes factor_i *= exp(exponent_i − reference).
#[multiversion(targets = "simd")]
fn scale(factors: &mut [f64], exponents: &[f64], reference: f64) {
    for (factor, exponent) in factors.iter_mut().zip(exponents) {
        *factor *= exp_nonpositive(exponent - reference);
    }
}

/// Sets the factors and exponents to h(u_i). Overwrites the means with the derivatives of log sigma h(u_i) with respect
/// to the means, multiplied by sigma, and `by_std` with the derivatives with respect to sigma, multiplied by sigma.
///
/// For a = |u| and R = R(a): Φ(−a) = φ R and h(−a) = φ (1 − a R); for u > 0, Φ(a) = 1 − Φ(−a) and h(a) = a + h(−a).
/// d(sigma h)/d mu = Φ and d(sigma h)/d sigma = φ.
#[multiversion(targets = "simd")]
fn improve(
    means: &mut [f64],
    incumbents: &[f64],
    precision: f64,
    by_std: &mut [f64],
    terms: &mut Terms,
) {
    let m = means.len();
    let (incumbents, by_std) = (&incumbents[..m], &mut by_std[..m]);
    let (factors, exponents) = (&mut terms.factors[..m], &mut terms.exponents[..m]);
    for i in 0..m {
        let u = (means[i] - incumbents[i]) * precision;
        let a = if u.abs() < LIMIT { u.abs() } else { LIMIT };
        let lead = if u < 1e150 { u } else { 1e150 };
        let is_positive = u > 0.0;
        let (ratio, rest) = mills_ratio(a);
        let density = FRAC_1_SQRT_2_PI
            * if is_positive {
                exp_nonpositive(-0.5 * a * a)
            } else {
                1.0
            };
        let h = density * rest + if is_positive { lead } else { 0.0 };
        let below = density * ratio;
        let cdf = if is_positive { 1.0 - below } else { below };
        factors[i] = h;
        exponents[i] = if is_positive { 0.0 } else { -0.5 * a * a };
        means[i] = cdf / h;
        by_std[i] = density / h;
    }
}

/// Multiplies the terms by P_i. Overwrites the means with the derivatives of log P_i with respect to the means,
/// multiplied by sigma, and `by_std` with the derivatives with respect to sigma, multiplied by sigma.
#[multiversion(targets = "simd")]
fn restrict(
    means: &mut [f64],
    (low, high): (f64, f64),
    precision: f64,
    by_std: &mut [f64],
    terms: &mut Terms,
) {
    let m = means.len();
    let by_std = &mut by_std[..m];
    let (factors, exponents) = (&mut terms.factors[..m], &mut terms.exponents[..m]);
    for i in 0..m {
        let p = inside((low - means[i]) * precision, (high - means[i]) * precision);
        factors[i] *= p.factor;
        exponents[i] += p.exponent;
        means[i] = -p.by_shift;
        by_std[i] = -p.by_stretch;
    }
}

impl Formula for LogConstrainedImprovement<'_> {
    fn in_units_of_f(&self, value: f64, scale: f64, _value_of: &dyn Fn(f64) -> f64) -> f64 {
        match self.gain {
            Gain::Improvement { .. } => value + scale.ln(),
            Gain::FirstInside { .. } => value,
        }
    }

    fn values(&self, block: &Block, buffers: &mut Buffers, out: &mut [f64]) {
        let mut of_f = match &self.gain {
            Gain::Improvement { fantasies, .. } => Some(moments(fantasies, block)),
            Gain::FirstInside { .. } => None,
        };
        let mut of_bounded: Vec<_> = self
            .bounded
            .iter()
            .map(|outcome| {
                let block = Block {
                    gp: &outcome.gp,
                    rows: block.rows,
                    solved: block.solved.and(outcome.solved),
                };
                moments(&outcome.fantasies, &block)
            })
            .collect();
        let m = self.n_fantasies();
        buffers.scratch.resize(3 * m, 0.0);
        let (by_std, rest) = buffers.scratch.split_at_mut(m);
        let (factors, exponents) = rest.split_at_mut(m);
        let mut terms = Terms { factors, exponents };
        for (k, out) in out.iter_mut().enumerate() {
            let of_f = of_f.as_mut().map(|moments| row_of(moments, k));
            let log_std = self.start(of_f, by_std, &mut terms);
            for (outcome, moments) in self.bounded.iter().zip(&mut of_bounded) {
                let (means, std) = row_of(moments, k);
                let bounds = (outcome.low, outcome.high);
                restrict(means, bounds, 1.0 / std, by_std, &mut terms);
            }
            *out = log_std + terms.log_mean();
        }
    }

    fn value_and_gradient(
        &self,
        gp: &GaussianProcess,
        x: &[f64],
        buffers: &mut Buffers,
        gradient: &mut [f64],
    ) -> f64 {
        let (m, n) = (self.n_fantasies(), self.n_processes());
        let Buffers {
            workspaces,
            means,
            scratch,
            by_tail,
            partial,
            ..
        } = buffers;
        workspaces.resize_with(n, Workspace::default);
        means.resize(n * m, 0.0);
        scratch.resize((n + 2) * m, 0.0);
        partial.resize(gradient.len(), 0.0);
        // The processes, the process of f first.
        let of_f = match &self.gain {
            Gain::Improvement { fantasies, .. } => Some((gp, fantasies)),
            Gain::FirstInside { .. } => None,
        };
        let of_bounded = self.bounded.iter().map(|it| (&*it.gp, &it.fantasies));
        let processes: Vec<_> = of_f.into_iter().chain(of_bounded).collect();

        let (factors, rest) = scratch.split_at_mut(m);
        let (exponents, by_std) = rest.split_at_mut(m);
        let mut terms = Terms { factors, exponents };
        let mut stds = Vec::with_capacity(n);
        let buffers = workspaces.iter_mut().zip(means.chunks_mut(m));
        for ((gp, fantasies), (workspace, means)) in processes.iter().zip(buffers) {
            let (mean, variance) = gp.predict_at(x, workspace);
            fantasies.means_at(mean, workspace.whitened(), means);
            stds.push(floored_std(variance));
        }
        let mut slopes = means.chunks_mut(m).zip(by_std.chunks_mut(m)).zip(&stds);
        let log_std = match of_f {
            None => self.start(None, &mut [], &mut terms),
            Some(_) => {
                let ((means, by_std), std) = slopes.next().expect("f is the first process");
                self.start(Some((means, *std)), by_std, &mut terms)
            }
        };
        for (outcome, ((means, by_std), std)) in self.bounded.iter().zip(slopes) {
            let bounds = (outcome.low, outcome.high);
            restrict(means, bounds, 1.0 / std, by_std, &mut terms);
        }
        let value = log_std + terms.log_mean();

        gradient.fill(0.0);
        let slopes = means.chunks_mut(m).zip(by_std.chunks(m)).zip(stds);
        let buffers = workspaces.iter_mut().zip(slopes);
        for ((gp, fantasies), (workspace, ((by_means, by_std), std))) in
            processes.iter().zip(buffers)
        {
            let shares = &*terms.factors;
            by_means
                .iter_mut()
                .zip(shares)
                .for_each(|(slope, share)| *slope *= share / std);
            let by_std: f64 = by_std
                .iter()
                .zip(shares)
                .map(|(slope, share)| slope * share)
                .sum();
            fantasies.blend(by_means, by_tail);
            // ∇sigma = ∇var / (2 sigma)
            let by_variance = by_std / (2.0 * std * std);
            gp.gradient(x, sum(by_means), by_variance, by_tail, workspace, partial);
            gradient
                .iter_mut()
                .zip(&*partial)
                .for_each(|(g, part)| *g += part);
        }
        value
    }
}

/// The means under all fantasies and the standard deviation of point k.
fn row_of((means, variance): &mut (Array2<f64>, Vec<f64>), k: usize) -> (&mut [f64], f64) {
    let row = means.row_mut(k).into_slice();
    (
        row.expect("blocks have contiguous rows"),
        floored_std(variance[k]),
    )
}
