//! The logarithm of noisy expected improvement where other outcomes must lie inside bounds (Letham et al. 2019; the
//! logarithm: Ament et al. 2023). With several objectives, it is the improvement of the hypervolume of their front
//! (Daulton et al. 2021). Every outcome has a separate Gaussian process. All processes are conditioned on the
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

use super::formula::{Block, Buffers, Formula, default_effort, floored_std};
use super::incumbents::{best_elsewhere, is_here, rows_in_context, without};
use super::log_hypervolume_improvement::log_improvements;
use super::log_inside::inside;
use super::log_noisy_expected_improvement::{
    draw_fantasies, fantasies_of, incumbent_points, moments, values,
};
use super::log_sum::{Terms, improve};
use super::rule::Situation;
use crate::error::Result;
use crate::gp::fantasies::Fantasies;
use crate::gp::{Conditioned, GaussianProcess, Workspace, contiguous};
use crate::numerics::cholesky::sum;
use crate::numerics::hypervolume::Cells;
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
    /// The bounds in the units of the targets of this outcome. One of the bounds may be infinite.
    pub low: f64,
    pub high: f64,
}

/// A bounded outcome with its fantasies.
struct Bounded<'a> {
    gp: Conditioned<&'a mut GaussianProcess>,
    fantasies: Fantasies,
    low: f64,
    high: f64,
}

/// The part of the acquisition that does not depend on the bounded outcomes.
enum Gain {
    /// The improvement of the hypervolume over the fronts of the fantasies.
    Front {
        /// The fantasies of the first objective.
        fantasies: Fantasies,
        /// The region above the reference that the front of each fantasy does not dominate.
        cells: Vec<Cells>,
        /// The standard deviation of all objectives, in place of the posterior standard deviations.
        std: Option<f64>,
    },
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
/// The average of Π_o P_oi over fantasies is the probability without fantasies, so it does not depend on pending
/// points. With the weights w_i, the sum is the probability that x lies inside all bounds and none of the pending
/// points does.
pub struct LogConstrainedImprovement<'a> {
    gain: Gain,
    /// The further objectives of a front, whose bounds are infinite.
    objectives: Vec<Bounded<'a>>,
    bounded: Vec<Bounded<'a>>,
}

impl<'a> LogConstrainedImprovement<'a> {
    /// Draws n joint fantasies at the noiseless rows of the tail. The fantasies of f are drawn as in
    /// [`super::log_noisy_expected_improvement::LogNoisyExpectedImprovement`].
    ///
    /// The incumbent of a fantasy is the largest value of f among the points of the tail that lie inside all bounds, or
    /// the largest lower bound on f at a point observed in another context where every outcome lies inside its bounds with
    /// a margin of 2 sigma. If there are none, it is the smallest of these values and of the observed targets.
    pub fn draw(
        situation: Situation,
        bounds: Vec<BoundedSituation<'a>>,
        n: usize,
        rng: &mut Rng,
    ) -> Result<Self> {
        let (gp, query) = (situation.gp, situation.query);
        let fantasies = draw_fantasies(&situation, n, rng)?;
        let means_inside = means_inside(gp, &bounds, query);
        let admits = |row: usize| means_inside[row];
        let (_, elsewhere) = best_elsewhere(gp, situation.unranked, query, admits)?;
        let points = incumbent_points(gp, &elsewhere, query);
        let (mut values, margins) = values(gp, &fantasies, points.view());
        values -= &ArrayView1::from(&margins);
        let (bounded, is_inside) = draw_bounded(bounds, n, points.view(), rng)?;
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
            objectives: Vec::new(),
            bounded,
        })
    }

    /// The acquisition of a front: log (1/m) Σ_i E HVI_i Π_o P_oi, where HVI_i is the improvement of the hypervolume over
    /// the points of the tail that lie inside all bounds in fantasy i. Draws n joint fantasies of all outcomes.
    ///
    /// `objectives` are the further objectives, without bounds. `reference` has the reference of each objective in the
    /// units of its targets.
    pub fn draw_front(
        situation: Situation,
        mut objectives: Vec<BoundedSituation<'a>>,
        bounds: Vec<BoundedSituation<'a>>,
        reference: &[f64],
        n: usize,
        rng: &mut Rng,
    ) -> Result<Self> {
        let gp = situation.gp;
        let fantasies = draw_fantasies(&situation, n, rng)?;
        let points = rows_in_context(gp.tail(), situation.query.context);
        let n_further = objectives.len();
        objectives.extend(bounds);
        let (mut objectives, is_inside) = draw_bounded(objectives, n, points.view(), rng)?;
        let bounded = objectives.split_off(n_further);
        let lower = |gp: &Conditioned<&mut GaussianProcess>, fantasies: &Fantasies| {
            let (mut values, margins) = values(gp, fantasies, points.view());
            values -= &ArrayView1::from(&margins);
            values
        };
        let further = objectives.iter().map(|it| lower(&it.gp, &it.fantasies));
        let all: Vec<_> = std::iter::once(lower(gp, &fantasies))
            .chain(further)
            .collect();
        let cells = |i: usize| {
            let is_inside = |&k: &usize| is_inside[[i, k]];
            let kept: Vec<usize> = (0..points.nrows()).filter(is_inside).collect();
            let shape = (kept.len(), all.len());
            let front = Array2::from_shape_fn(shape, |(k, o)| all[o][[i, kept[k]]]);
            Cells::new(front.view(), reference)
        };
        Ok(Self {
            gain: Gain::Front {
                cells: (0..n).map(cells).collect(),
                fantasies,
                std: None,
            },
            objectives,
            bounded,
        })
    }

    /// The improvement of the hypervolume of `front` (p, M) by the posterior means, which are uncertain by a small `std`.
    /// The acquisition must come from [`Self::draw_front`] with one fantasy.
    pub fn set_front(&mut self, front: ArrayView2<f64>, reference: &[f64], std: f64) {
        if let Gain::Front {
            cells, std: of_all, ..
        } = &mut self.gain
        {
            *cells = vec![Cells::new(front, reference)];
            *of_all = Some(std);
        }
    }

    /// The acquisition without f, for the time before a point inside all bounds is known. Draws n joint fantasies at
    /// the rows of the tail, which are the pending points.
    pub fn draw_first_inside(
        bounds: Vec<BoundedSituation<'a>>,
        n: usize,
        query: Query,
        rng: &mut Rng,
    ) -> Result<Self> {
        let tail = bounds.first().map(|first| first.gp.tail());
        let points = tail.map(|tail| rows_in_context(tail, query.context));
        let points = points.unwrap_or_default();
        let (bounded, is_inside) = draw_bounded(bounds, n, points.view(), rng)?;
        let weight = |is_inside: ArrayView1<bool>| match is_inside.iter().any(|inside| *inside) {
            true => MET_WEIGHT,
            false => 1.0,
        };
        Ok(Self {
            gain: Gain::FirstInside {
                weights: is_inside.rows().into_iter().map(weight).collect(),
            },
            objectives: Vec::new(),
            bounded,
        })
    }

    /// The posterior means of the objectives at a row (1, d). `gp` is the process of the first objective.
    pub fn posterior_means(&self, gp: &GaussianProcess, row: ArrayView2<f64>) -> Vec<f64> {
        let gps = self.processes(gp).into_iter().take(self.n_objectives());
        gps.map(|(gp, _)| gp.mean(row)[0]).collect()
    }

    /// The number of objectives.
    fn n_objectives(&self) -> usize {
        let has_first = !matches!(self.gain, Gain::FirstInside { .. });
        self.objectives.len() + usize::from(has_first)
    }

    fn n_fantasies(&self) -> usize {
        match &self.gain {
            Gain::Front { cells, .. } => cells.len(),
            Gain::Improvement { incumbents, .. } => incumbents.len(),
            Gain::FirstInside { weights } => weights.len(),
        }
    }

    /// The standard deviation of the objectives that replaces the posterior standard deviations.
    fn fixed_std(&self) -> Option<f64> {
        match self.gain {
            Gain::Front { std, .. } => std,
            _ => None,
        }
    }

    /// All processes with their fantasies: first of the objectives, then of the bounded outcomes. `gp` is the process
    /// of the first objective.
    fn processes<'b>(
        &'b self,
        gp: &'b GaussianProcess,
    ) -> Vec<(&'b GaussianProcess, &'b Fantasies)> {
        let first = match &self.gain {
            Gain::Front { fantasies, .. } | Gain::Improvement { fantasies, .. } => {
                Some((gp, fantasies))
            }
            Gain::FirstInside { .. } => None,
        };
        let others = self.objectives.iter().chain(&self.bounded);
        let others = others.map(|it| (&*it.gp, &it.fantasies));
        first.into_iter().chain(others).collect()
    }

    /// Returns the acquisition, given the means (n processes, m) and standard deviations (n,). Overwrites the means with
    /// the derivatives of log terms with respect to the means, multiplied by sigma, `by_std` with the derivatives with
    /// respect to sigma, multiplied by sigma, and the factors with the shares of the terms in their sum.
    fn value_of(
        &self,
        means: &mut [f64],
        stds: &[f64],
        by_std: &mut [f64],
        terms: &mut Terms,
        of_cells: &mut Vec<f64>,
    ) -> f64 {
        let (m, n) = (self.n_fantasies(), self.n_objectives());
        terms.exponents.fill(0.0);
        let (of_objectives, of_bounded) = means.split_at_mut(n * m);
        let (by_std, by_std_of_bounded) = by_std.split_at_mut(n * m);
        match &self.gain {
            Gain::Front { cells, .. } => {
                log_improvements(of_objectives, &stds[..n], cells, by_std, terms, of_cells);
            }
            Gain::Improvement { incumbents, .. } => {
                improve(of_objectives, incumbents, 1.0 / stds[0], by_std, terms);
            }
            Gain::FirstInside { weights } => terms.factors.copy_from_slice(weights),
        }
        let slopes = of_bounded
            .chunks_mut(m)
            .zip(by_std_of_bounded.chunks_mut(m));
        for (outcome, ((means, by_std), std)) in self.bounded.iter().zip(slopes.zip(&stds[n..])) {
            let bounds = (outcome.low, outcome.high);
            restrict(means, bounds, 1.0 / std, by_std, terms);
        }
        let log_stds: f64 = stds[..n].iter().map(|std| std.ln()).sum();
        log_stds + terms.log_mean()
    }
}

/// Whether the posterior means of all bounded outcomes lie inside the bounds, at the point of each observed row of f in
/// the context of the query.
fn means_inside(gp: &GaussianProcess, bounds: &[BoundedSituation], query: Query) -> Vec<bool> {
    let observed = gp.rows().slice_move(s![..gp.n_observed(), ..]);
    let mut all = vec![true; observed.nrows()];
    if is_here(gp, query.context).contains(&false) {
        let points = rows_in_context(observed, query.context);
        for BoundedSituation { gp, low, high } in bounds {
            let means = gp.mean(points.view());
            let inside = all.iter_mut().zip(means);
            inside.for_each(|(all, mean)| *all &= *low <= mean && mean <= *high);
        }
    }
    all
}

/// Draws n fantasies of every bounded outcome, and computes whether the points, which are the points of the tail in the
/// context of the query followed by other points, lie inside all bounds: (n fantasies, p). A point whose value a fantasy
/// does not contain must lie inside with a margin of 2 sigma.
///
/// All draws come from one sequence. The rows of the sequence are shuffled, because the fantasies of f come from
/// another sequence, whose steps may be the same.
fn draw_bounded<'a>(
    bounds: Vec<BoundedSituation<'a>>,
    n: usize,
    points: ArrayView2<f64>,
    rng: &mut Rng,
) -> Result<(Vec<Bounded<'a>>, Array2<bool>)> {
    debug_assert!(bounds.iter().all(|it| it.gp.tail() == bounds[0].gp.tail()));
    let p = bounds.first().map_or(0, |first| first.gp.tail().nrows());
    let mut order: Vec<usize> = (0..n).collect();
    let uniform = match bounds.is_empty() {
        true => Array2::zeros((n, 0)),
        false => {
            order.shuffle(rng);
            unit_sequence(n, p * bounds.len(), rng)
        }
    };
    let uniform = uniform.select(ndarray::Axis(0), &order);
    let mut is_inside = Array2::from_elem((n, points.nrows()), true);
    let mut bounded = Vec::new();
    for (o, outcome) in bounds.into_iter().enumerate() {
        let BoundedSituation { gp, low, high } = outcome;
        let draws = uniform.slice(s![.., o * p..(o + 1) * p]).to_owned();
        let fantasies = fantasies_of(&gp, draws, &[])?;
        let (values, margins) = values(&gp, &fantasies, points);
        for (mut all, g) in is_inside.rows_mut().into_iter().zip(values.rows()) {
            for ((all, g), margin) in all.iter_mut().zip(g).zip(&margins) {
                *all &= low <= g - margin && g + margin <= high;
            }
        }
        bounded.push(Bounded {
            gp,
            fantasies,
            low,
            high,
        });
    }
    Ok((bounded, is_inside))
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
            // The hypervolume is measured in the units of all targets.
            Gain::Front { .. } | Gain::FirstInside { .. } => value,
        }
    }

    /// An evaluation needs every process, so the search evaluates fewer points than for one process.
    fn effort(&self, n: usize) -> f64 {
        let n_processes = self.n_objectives() + self.bounded.len();
        default_effort(n) / (n_processes as f64).sqrt()
    }

    fn values(&self, block: &Block, buffers: &mut Buffers, out: &mut [f64]) {
        let has_first = self.n_objectives() > 0;
        let processes = self.processes(block.gp).into_iter().enumerate();
        let moments: Vec<_> = processes
            .map(|(i, (gp, fantasies))| {
                let block = Block {
                    gp,
                    rows: block.rows,
                    solved: block.solved.filter(|_| i == 0 && has_first),
                };
                moments(fantasies, &block)
            })
            .collect();
        let (m, n) = (self.n_fantasies(), moments.len());
        let Buffers {
            means,
            scratch,
            of_cells,
            ..
        } = buffers;
        means.resize(n * m, 0.0);
        scratch.resize((n + 2) * m, 0.0);
        let (factors, rest) = scratch.split_at_mut(m);
        let (exponents, by_std) = rest.split_at_mut(m);
        let mut terms = Terms { factors, exponents };
        let mut stds = vec![0.0; n];
        for (k, out) in out.iter_mut().enumerate() {
            for (i, (of_process, variance)) in moments.iter().enumerate() {
                let row = of_process.row(k);
                means[i * m..(i + 1) * m].copy_from_slice(contiguous(row));
                stds[i] = floored_std(variance[k]);
            }
            if let Some(std) = self.fixed_std() {
                stds[..self.n_objectives()].fill(std);
            }
            *out = self.value_of(means, &stds, by_std, &mut terms, of_cells);
        }
    }

    fn value_and_gradient(
        &self,
        gp: &GaussianProcess,
        x: &[f64],
        buffers: &mut Buffers,
        gradient: &mut [f64],
    ) -> f64 {
        let processes = self.processes(gp);
        let (m, n) = (self.n_fantasies(), processes.len());
        let Buffers {
            workspaces,
            means,
            scratch,
            by_tail,
            partial,
            of_cells,
            ..
        } = buffers;
        workspaces.resize_with(n, Workspace::default);
        means.resize(n * m, 0.0);
        scratch.resize((n + 2) * m, 0.0);
        partial.resize(gradient.len(), 0.0);
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
        let n_fixed = match self.fixed_std() {
            Some(std) => {
                stds[..self.n_objectives()].fill(std);
                self.n_objectives()
            }
            None => 0,
        };
        let value = self.value_of(means, &stds, by_std, &mut terms, of_cells);

        gradient.fill(0.0);
        let slopes = means.chunks_mut(m).zip(by_std.chunks(m)).zip(stds);
        let buffers = workspaces.iter_mut().zip(slopes);
        for (i, ((gp, fantasies), (workspace, ((by_means, by_std), std)))) in
            processes.iter().zip(buffers).enumerate()
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
            let by_variance = match i < n_fixed {
                true => 0.0,
                false => by_std / (2.0 * std * std),
            };
            gp.gradient(x, sum(by_means), by_variance, by_tail, workspace, partial);
            gradient
                .iter_mut()
                .zip(&*partial)
                .for_each(|(g, part)| *g += part);
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gp::Target;
    use crate::gp::kernel::KernelFamily;
    use crate::gp::tests::{model, wave};
    use crate::maximize::feasible::Feasible;
    use crate::problem::Objective;
    use crate::strategy::bayes::acquisitions::formula::{
        Moments, OfMoments, Scorer, values_of_solved,
    };
    use crate::strategy::bayes::acquisitions::log_inside::LogProbabilityInside;
    use crate::strategy::bayes::acquisitions::log_noisy_expected_improvement::LogNoisyExpectedImprovement;
    use crate::strategy::bayes::acquisitions::tests::{outcome, query, value};
    use ndarray::{Array1, ArrayView2, Axis, array, concatenate};
    use rand::{RngExt, SeedableRng};
    use rand_distr::StandardNormal;

    const INFINITY: f64 = f64::INFINITY;
    const NEG_INFINITY: f64 = f64::NEG_INFINITY;

    /// Takes the conditioned process of f, and the acquisitions with and without bounds.
    type Check<'a> =
        dyn FnMut(&GaussianProcess, &LogConstrainedImprovement, &LogNoisyExpectedImprovement) + 'a;

    /// Takes f at the tail and at a point, whether each point of the tail lies inside all bounds, and whether the point
    /// does.
    type Gained<'a> = dyn Fn(ArrayView1<f64>, &[bool], bool) -> f64 + 'a;

    /// The processes of f and of two outcomes that are bounded, and the rows of a tail.
    struct Case {
        f: GaussianProcess,
        outcomes: [GaussianProcess; 2],
        bounds: Vec<(f64, f64)>,
        /// The baseline points, followed by the pending points.
        tail: Array2<f64>,
        n_baseline: usize,
        targets: Vec<f64>,
    }

    impl Case {
        fn new(bounds: &[(f64, f64)], (n_baseline, n_pending): (usize, usize)) -> Self {
            let f = model(KernelFamily::Matern52, 15);
            Self {
                targets: f.targets(),
                f,
                outcomes: [outcome(9), outcome(4)],
                bounds: bounds.to_vec(),
                tail: wave(n_baseline + n_pending, 2, 5.0),
                n_baseline,
            }
        }

        /// Calls `check` with the conditioned process of f and the acquisitions with and without bounds, or without f.
        fn draw(&mut self, n: usize, context: &[f64], first_inside: bool, check: &mut Check) {
            let query = Query {
                context,
                ..query(Feasible::EVERYWHERE)
            };
            let (baseline, pending) = self.tail.view().split_at(Axis(0), self.n_baseline);
            let targets = vec![Target::PosteriorMean; pending.nrows()];
            let f = Conditioned::on_noiseless(&mut self.f, baseline, pending).unwrap();
            let outcomes = self.outcomes.iter_mut().zip(&self.bounds);
            let bounds: Vec<_> = outcomes
                .map(|(gp, &(low, high))| BoundedSituation {
                    gp: Conditioned::on_noiseless(gp, baseline, pending).unwrap(),
                    low,
                    high,
                })
                .collect();
            let situation = || Situation {
                gp: &f,
                targets: &self.targets,
                unranked: &[1],
                pending: &targets,
                n_fantasies: Some(n),
                nu: 1.0,
                lower_bound: None,
                query,
            };
            let rng = || Rng::seed_from_u64(4);
            let plain = LogNoisyExpectedImprovement::draw(situation(), n, &mut rng()).unwrap();
            let constrained = match first_inside {
                true => LogConstrainedImprovement::draw_first_inside(bounds, n, query, &mut rng()),
                false => LogConstrainedImprovement::draw(situation(), bounds, n, &mut rng()),
            };
            check(&f, &constrained.unwrap(), &plain);
        }
    }

    fn incumbents<'a>(acquisition: &'a LogConstrainedImprovement) -> &'a [f64] {
        match &acquisition.gain {
            Gain::Improvement { incumbents, .. } => incumbents,
            _ => panic!("there is not one incumbent for each fantasy"),
        }
    }

    /// Calls `check` with the process of the first objective, and the acquisition of a front of two or three objectives
    /// where a further outcome is at least `low`. Two of five points of the tail are pending.
    fn with_front(
        n_objectives: usize,
        low: f64,
        n: usize,
        check: &mut dyn FnMut(&GaussianProcess, &LogConstrainedImprovement),
    ) {
        let mut gps = [
            model(KernelFamily::Matern52, 15),
            outcome(9),
            outcome(4),
            outcome(7),
        ];
        let tail = wave(5, 2, 5.0);
        let (baseline, pending) = tail.view().split_at(Axis(0), 3);
        let targets = vec![Target::PosteriorMean; pending.nrows()];
        let [first, others @ ..] = &mut gps;
        let observed = first.targets();
        let first = Conditioned::on_noiseless(first, baseline, pending).unwrap();
        let mut situations: Vec<_> = others
            .iter_mut()
            .map(|gp| BoundedSituation {
                gp: Conditioned::on_noiseless(gp, baseline, pending).unwrap(),
                low: f64::NEG_INFINITY,
                high: f64::INFINITY,
            })
            .collect();
        let mut bounds = situations.split_off(2);
        bounds[0].low = low;
        situations.truncate(n_objectives - 1);
        let situation = Situation {
            gp: &first,
            targets: &observed,
            unranked: &[],
            pending: &targets,
            n_fantasies: Some(n),
            nu: 1.0,
            lower_bound: None,
            query: query(Feasible::EVERYWHERE),
        };
        let reference = vec![-0.5; n_objectives];
        let rng = &mut Rng::seed_from_u64(4);
        let formula = LogConstrainedImprovement::draw_front(
            situation, situations, bounds, &reference, n, rng,
        );
        check(&first, &formula.unwrap());
    }

    #[test]
    fn gradients_of_fronts_equal_finite_differences() {
        for n_objectives in [2, 3] {
            for low in [NEG_INFINITY, -0.2] {
                with_front(n_objectives, low, 8, &mut |gp, formula| {
                    let mut scorer = Scorer::new(gp, formula, &[]);
                    for x in [[0.13, -0.41], [-0.7, 0.9], [0.98, 0.95]] {
                        let mut gradient = [0.0; 2];
                        let value = scorer.value_and_gradient(&x, &mut gradient);
                        let mut at = |x: &[f64]| {
                            let mut out = [0.0];
                            let rows = ArrayView2::from_shape((1, 2), x).unwrap();
                            scorer.values(rows, &mut out);
                            out[0]
                        };
                        assert!((value - at(&x)).abs() < 1e-9 * value.abs().max(1.0));
                        for d in 0..2 {
                            let (mut up, mut down) = (x, x);
                            up[d] += 1e-5;
                            down[d] -= 1e-5;
                            let slope = (at(&up) - at(&down)) / 2e-5;
                            let error = (gradient[d] - slope).abs();
                            assert!(error < 1e-4 * slope.abs().max(1.0), "{slope} {gradient:?}");
                        }
                    }
                });
            }
        }
    }

    #[test]
    fn the_acquisition_of_a_front_is_the_mean_improvement_of_the_hypervolume() {
        // The improvement of the drawn values over the cells of each fantasy, at a point with many draws.
        for n_objectives in [2, 3] {
            with_front(n_objectives, NEG_INFINITY, 16, &mut |gp, formula| {
                let Gain::Front { cells, .. } = &formula.gain else {
                    panic!("the acquisition improves a front");
                };
                let row = array![[0.13, -0.41]];
                let moments: Vec<_> = formula
                    .processes(gp)
                    .into_iter()
                    .take(n_objectives)
                    .map(|(gp, fantasies)| fantasies.predict(gp, row.view()))
                    .collect();
                let n_draws = 100_000;
                let mut rng = Rng::seed_from_u64(1);
                let (mut total, mut squares) = (0.0, 0.0);
                for _ in 0..n_draws {
                    let z: Vec<f64> = (0..n_objectives)
                        .map(|_| rng.sample(StandardNormal))
                        .collect();
                    let mut mean = 0.0;
                    for (i, cells) in cells.iter().enumerate() {
                        let values = moments.iter().zip(&z);
                        let values = values
                            .map(|((means, variance), z)| means[[0, i]] + z * variance[0].sqrt());
                        let values: Array1<f64> = values.collect();
                        mean += cells.improvement(values.view()) / 16.0;
                    }
                    total += mean;
                    squares += mean * mean;
                }
                let expected = total / f64::from(n_draws);
                let variance = squares / f64::from(n_draws) - expected * expected;
                let error = (variance / f64::from(n_draws)).sqrt();
                let found = value(gp, formula, &[0.13, -0.41]).exp();
                assert!(
                    (found - expected).abs() < 4.0 * error,
                    "{found} {expected} {error}"
                );
            });
        }
    }

    #[test]
    fn gradients_equal_finite_differences() {
        for bounds in [
            &[(NEG_INFINITY, 0.2)][..],
            &[(-0.4, INFINITY), (-0.3, 0.4)],
            &[(7.0, INFINITY), (-90.0, -89.9)],
        ] {
            for first_inside in [false, true] {
                for context in [&[][..], &[0.2]] {
                    let check =
                        &mut |gp: &GaussianProcess, formula: &LogConstrainedImprovement, _: &_| {
                            let mut scorer = Scorer::new(gp, formula, context);
                            for x in [[0.13, -0.41], [-0.7, 0.9], [0.98, 0.95]] {
                                let x = &x[..2 - context.len()];
                                let mut gradient = vec![0.0; x.len()];
                                let value = scorer.value_and_gradient(x, &mut gradient);
                                let mut at = |x: &[f64]| {
                                    let mut out = [0.0];
                                    scorer.values(
                                        ArrayView2::from_shape((1, x.len()), x).unwrap(),
                                        &mut out,
                                    );
                                    out[0]
                                };
                                assert!((value - at(x)).abs() < 1e-9 * value.abs().max(1.0));
                                for d in 0..x.len() {
                                    let (mut up, mut down) = (x.to_vec(), x.to_vec());
                                    up[d] += 1e-5;
                                    down[d] -= 1e-5;
                                    let slope = (at(&up) - at(&down)) / 2e-5;
                                    let error = (gradient[d] - slope).abs();
                                    assert!(
                                        error < 1e-4 * slope.abs().max(1.0),
                                        "{slope} {}",
                                        gradient[d]
                                    );
                                }
                            }
                        };
                    Case::new(bounds, (3, 2)).draw(8, context, first_inside, check);
                }
            }
        }
    }

    #[test]
    fn blocks_and_solved_blocks_give_the_values_of_single_points() {
        let mut case = Case::new(&[(NEG_INFINITY, 0.2), (-0.3, 0.4)], (3, 2));
        let rows = wave(300, 2, 7.7);
        for pass in 0..2 {
            let check = &mut |gp: &GaussianProcess, formula: &LogConstrainedImprovement, _: &_| {
                let mut block = vec![0.0; 300];
                Scorer::new(gp, formula, &[]).values(rows.view(), &mut block);
                for (x, found) in rows.rows().into_iter().zip(&block) {
                    let expected = value(gp, formula, x.to_slice().unwrap());
                    assert!((found - expected).abs() < 1e-9 * expected.abs().max(1.0));
                }
                let mut v = Array2::zeros((0, gp.len()));
                gp.predict_with(rows.view(), &mut |block| v.append(Axis(0), block).unwrap());
                let found = values_of_solved(formula, gp, rows.view(), v.view());
                assert_eq!(found, block);
            };
            case.draw(8, &[], pass == 1, check);
        }
    }

    #[test]
    fn bounds_that_are_always_met_leave_noisy_improvement() {
        for bounds in [
            &[][..],
            &[(NEG_INFINITY, INFINITY)],
            &[(-1e3, INFINITY), (-1e3, 1e3)],
        ] {
            for context in [&[][..], &[0.2]] {
                let check =
                    &mut |gp: &GaussianProcess,
                          constrained: &LogConstrainedImprovement,
                          plain: &LogNoisyExpectedImprovement| {
                        assert_eq!(incumbents(constrained), plain.incumbents);
                        for x in wave(50, 2, 7.7).rows() {
                            let x = x.to_slice().unwrap();
                            let expected = value(gp, plain, x);
                            let found = value(gp, constrained, x);
                            assert!((found - expected).abs() < 1e-11 * expected.abs().max(1.0));
                            let (mut a, mut b) = ([0.0; 2], [0.0; 2]);
                            Scorer::new(gp, plain, &[]).value_and_gradient(x, &mut a);
                            Scorer::new(gp, constrained, &[]).value_and_gradient(x, &mut b);
                            for (a, b) in a.into_iter().zip(b) {
                                assert!((a - b).abs() < 1e-8 * a.abs().max(1.0));
                            }
                        }
                    };
                Case::new(bounds, (3, 2)).draw(32, context, false, check);
            }
        }
    }

    #[test]
    fn incumbents_are_the_largest_values_inside_the_bounds_of_the_same_fantasy() {
        let (mut n_none, mut n_some) = (0, 0);
        for high in [-1.0, 0.0, 0.5] {
            for context in [&[][..], &[0.2]] {
                let mut case = Case::new(&[(NEG_INFINITY, high), (-0.5, 1.0)], (3, 2));
                let tail = rows_in_context(case.tail.view(), context);
                let observed = case.targets.iter().enumerate().filter(|(i, _)| *i != 1);
                let least = observed.map(|(_, y)| *y).fold(INFINITY, f64::min);
                // In another context, the observed points whose outcomes have means inside the bounds count, too.
                let here = rows_in_context(case.f.rows(), context);
                let (g, h) = (&case.outcomes[0], &case.outcomes[1]);
                let (g, h) = (g.mean(here.view()), h.mean(here.view()));
                let is_inside = |&row: &usize| g[row] <= high && h[row] >= -0.5 && h[row] <= 1.0;
                let others = (0..here.nrows()).filter(|row| *row != 1 && !context.is_empty());
                let others: Vec<usize> = others.filter(is_inside).collect();
                let points = concatenate![Axis(0), tail, here.select(Axis(0), &others)];
                let sigmas = match context.is_empty() {
                    true => 0.0,
                    false => 2.0,
                };
                let check =
                    &mut |gp: &GaussianProcess,
                          constrained: &LogConstrainedImprovement,
                          plain: &LogNoisyExpectedImprovement| {
                        let margin = |variance: Vec<f64>| -> Vec<f64> {
                            variance.iter().map(|v| sigmas * v.sqrt()).collect()
                        };
                        let (f, variance) = plain.fantasies.predict(gp, points.view());
                        let margins = margin(variance);
                        let mut inside = f.mapv(|_| true);
                        for outcome in &constrained.bounded {
                            let (g, variance) =
                                outcome.fantasies.predict(&outcome.gp, points.view());
                            let margins = margin(variance);
                            for ((k, i), g) in g.indexed_iter() {
                                inside[[k, i]] &= *g - margins[k] >= outcome.low
                                    && *g + margins[k] <= outcome.high;
                            }
                        }
                        let n = points.nrows();
                        for (i, found) in incumbents(constrained).iter().enumerate() {
                            let lower = |k: usize| f[[k, i]] - margins[k];
                            let rows = || (0..n).filter(|&k| inside[[k, i]]);
                            let largest = rows().map(lower).fold(NEG_INFINITY, f64::max);
                            let expected = match rows().count() {
                                0 => (0..n).map(lower).fold(least, f64::min),
                                _ => largest,
                            };
                            n_none += usize::from(rows().count() == 0);
                            n_some += usize::from(rows().count() > 0 && rows().count() < n);
                            assert!((found - expected).abs() < 1e-9, "{found} {expected}");
                        }
                    };
                case.draw(64, context, false, check);
            }
        }
        assert!(n_none > 50 && n_some > 50, "{n_none} {n_some}");
    }

    #[test]
    fn a_point_that_is_surely_outside_does_not_count() {
        // The pending point has a value of the outcome that is surely above the bound, so the incumbents are the values
        // at the baseline point alone.
        let mut case = Case::new(&[(NEG_INFINITY, 1.0)], (1, 1));
        case.tail = ndarray::array![[-0.6, -0.5], [0.9, 0.95]];
        let theta = crate::gp::Hyperparameters::new(vec![0.5, 0.5], 1.0, 1e-8);
        let mut gp = GaussianProcess::new(KernelFamily::Matern52, &theta).unwrap();
        gp.append_rows(case.tail.view()).unwrap();
        gp.set_targets(&[0.0, 3.0]).unwrap();
        case.outcomes[0] = gp;
        let check = &mut |gp: &GaussianProcess,
                          constrained: &LogConstrainedImprovement,
                          plain: &LogNoisyExpectedImprovement| {
            let (f, _) = plain
                .fantasies
                .predict(gp, ndarray::array![[-0.6, -0.5]].view());
            for (found, expected) in incumbents(constrained).iter().zip(f.row(0)) {
                assert!((found - expected).abs() < 1e-9);
            }
            assert_ne!(incumbents(constrained), plain.incumbents);
            let outside = value(gp, constrained, &[0.9, 0.95]);
            assert!(outside.is_finite() && outside < -1e6, "{outside}");
        };
        case.draw(32, &[], false, check);
    }

    /// The mean of `gain` over joint draws.
    fn monte_carlo(case: &Case, x: &[f64], gain: &Gained) -> f64 {
        let n = 100_000;
        let row = ArrayView2::from_shape((1, 2), x).unwrap();
        let points = concatenate![Axis(0), case.tail, row];
        let mut rng = Rng::seed_from_u64(9);
        let f = case.f.sample(points.view(), n, &mut rng).unwrap();
        let mut inside = Array2::from_elem(f.dim(), true);
        for (gp, (low, high)) in case.outcomes.iter().zip(&case.bounds) {
            let g = gp.sample(points.view(), n, &mut rng).unwrap();
            inside.zip_mut_with(&g, |all, g| *all = *all && low <= g && g <= high);
        }
        let p = case.tail.nrows();
        let rows = f.rows().into_iter().zip(inside.rows());
        let gains = rows.map(|(f, inside)| gain(f, &inside.to_vec()[..p], inside[p]));
        gains.sum::<f64>() / n as f64
    }

    #[test]
    fn values_equal_the_mean_over_joint_draws() {
        for (bounds, tail) in [
            // With one row, the sequences of f and of the outcome have the same steps.
            (&[(NEG_INFINITY, 0.2)][..], (0, 1)),
            (&[(-0.4, 0.5)], (1, 1)),
            (&[(NEG_INFINITY, 0.3), (-0.4, 0.6)], (2, 2)),
        ] {
            for first_inside in [false, true] {
                let mut case = Case::new(bounds, tail);
                case.tail.mapv_inplace(|x| 1.3 * x);
                let n_rows = case.tail.nrows();
                let observed = case.targets.iter().enumerate().filter(|(i, _)| *i != 1);
                let least = observed.map(|(_, y)| *y).fold(INFINITY, f64::min);
                let gain = |f: ArrayView1<f64>, inside: &[bool], here: bool| {
                    let any = inside.iter().any(|inside| *inside);
                    if !here {
                        return 0.0;
                    }
                    if first_inside {
                        return if any { MET_WEIGHT } else { 1.0 };
                    }
                    let incumbent = match any {
                        true => (0..n_rows)
                            .filter(|&k| inside[k])
                            .map(|k| f[k])
                            .fold(NEG_INFINITY, f64::max),
                        false => f.iter().take(n_rows).copied().fold(least, f64::min),
                    };
                    (f[n_rows] - incumbent).max(0.0)
                };
                let points = [[0.5, -0.9], [1.2, -1.2], [-0.2, 0.3]];
                let expected = points.map(|x| monte_carlo(&case, &x, &gain));
                let check =
                    &mut |gp: &GaussianProcess, formula: &LogConstrainedImprovement, _: &_| {
                        for (x, expected) in points.iter().zip(expected) {
                            let found = value(gp, formula, x).exp();
                            let error = (found - expected).abs();
                            assert!(
                                error < 0.03 * expected + 2e-3,
                                "{tail:?} {found} {expected}"
                            );
                        }
                    };
                case.draw(8192, &[], first_inside, check);
            }
        }
    }

    #[test]
    fn without_pending_points_the_acquisition_without_f_is_the_probability() {
        let bounds = [(NEG_INFINITY, 0.3), (-0.4, 0.6)];
        let check = &mut |gp: &GaussianProcess, formula: &LogConstrainedImprovement, _: &_| {
            for x in wave(50, 2, 7.7).rows() {
                let mut expected = 0.0;
                for (outcome, (low, high)) in formula.bounded.iter().zip(bounds) {
                    let (mean, variance) = outcome.gp.predict(x.insert_axis(Axis(0)));
                    let at = Moments {
                        mean: mean[0],
                        variance: variance[0],
                    };
                    expected += LogProbabilityInside { low, high }.value(at);
                }
                let found = value(gp, formula, x.to_slice().unwrap());
                assert!((found - expected).abs() < 1e-10 * expected.abs().max(1.0));
            }
        };
        Case::new(&bounds, (0, 0)).draw(16, &[], true, check);
    }

    #[test]
    fn values_and_gradients_are_finite_at_the_rows_and_for_every_bound() {
        for bounds in [
            [(NEG_INFINITY, -1e9), (1e9, INFINITY)],
            [(1e150, INFINITY), (-1e-300, 1e-300)],
            [(0.3, 0.3 + 1e-15), (NEG_INFINITY, 1e300)],
        ] {
            for first_inside in [false, true] {
                let check =
                    &mut |gp: &GaussianProcess, formula: &LogConstrainedImprovement, _: &_| {
                        for x in concatenate![Axis(0), gp.rows(), wave(9, 2, 3.1)].rows() {
                            let mut gradient = [0.0; 2];
                            let x = x.to_slice().unwrap();
                            let found =
                                Scorer::new(gp, formula, &[]).value_and_gradient(x, &mut gradient);
                            assert!(
                                found.is_finite() && gradient.iter().all(|g| g.is_finite()),
                                "{bounds:?}"
                            );
                            assert!(value(gp, formula, x).is_finite());
                        }
                    };
                Case::new(&bounds, (3, 2)).draw(8, &[], first_inside, check);
            }
        }
    }
}
