//! Solutions for the candidates of a finite domain: L⁻¹k(X, x_i) is computed once for every candidate x_i, and kept.
//! When a row is added to the model, updating the solutions costs O(nN). A suggestion costs only slightly more than
//! this update.
//!
//! Notation: N is the number of candidates, and V (N, n) has the rows v_i = L⁻¹k(X, x_i). Then mu_i = v_iᵀz and var_i =
//! k(x_i, x_i) − |v_i|². A draw from the posterior is mu_i + ν·(g_i − v_iᵀL⁻¹(g(X) + ε)), where g is an exact draw from
//! the prior (Matheron's rule).
//!
//! V and the factor of the prior grow in the same steps as the factor of the rows. First, the base is added, which
//! contains the rows that are factorised together. Later rows are added one by one. Finally, a tail is added, and
//! dropped again afterwards. Therefore V and the factor of the prior depend, bit for bit, only on the rows, and not on
//! the order of suggestions and predictions.

use ndarray::{Array2, Axis, s};

use crate::error::{Result, Stop, check};
use crate::gp::draw::exact::PriorFactor;
use crate::gp::{BLOCK, GaussianProcess};
use crate::ledger::{TrialNumber, View};
use crate::numerics::cholesky::dot;
use crate::numerics::growing_cholesky::slices;
use crate::random::Rng;
use crate::strategy::Query;
use crate::strategy::bayes::acquisitions::formula::{Formula, values_of_solved};
use crate::strategy::bayes::model::kept_process::Version;

/// The largest number of candidates for which draws are exact. Exact draws require factorising the prior covariance of
/// the candidates after every fit. The factorisation costs O(N³), and takes about 0.2 s for this number of candidates.
pub const MAX_EXACT: usize = 1500;

/// The maximum memory for kept solutions, in bytes. For lists of candidates that need more memory, solutions are
/// computed block by block and not kept.
const MAX_SOLVED_BYTES: usize = 1 << 30;

/// Whether the solutions of all candidates can be kept, for a model with n rows. `draws` is true if draws are needed.
pub fn can_be_kept(list: &Array2<f64>, n: usize, draws: bool) -> bool {
    let bytes = (list.nrows() * (n + n / 4 + 8)).saturating_mul(size_of::<f64>());
    bytes <= MAX_SOLVED_BYTES && (!draws || list.nrows() <= MAX_EXACT)
}

/// Returns the rows of the model for the candidates in a context.
pub fn in_context(list: &Array2<f64>, context: &[f64]) -> Array2<f64> {
    let (n, width) = list.dim();
    let mut rows = Array2::zeros((n, width + context.len()));
    rows.slice_mut(s![.., ..width]).assign(list);
    for (k, z) in context.iter().enumerate() {
        rows.column_mut(width + k).fill(*z);
    }
    rows
}

/// The solutions V of all candidates, for one θ and one context. If draws are needed, the factor of the prior is also
/// stored.
pub struct SolvedCandidates {
    version: Version,
    context: Vec<f64>,
    /// The candidates, with the columns of the context appended.
    points: Array2<f64>,
    /// V, followed by unused columns. The first `solved` columns belong to observed rows.
    v: Array2<f64>,
    solved: usize,
    prior: Option<Prior>,
    /// A factor of the prior that was computed in another context.
    earlier_factor: Option<PriorFactor>,
}

/// The Cholesky factor of the prior covariance matrix of the candidates and of the rows that are not candidates.
struct Prior {
    factor: PriorFactor,
    /// For each row of the model, the index of the row's point among the points of the factor.
    places: Vec<usize>,
}

impl SolvedCandidates {
    /// Creates an object that does not contain any solutions yet. `rows` contains the candidates in this context. The
    /// factor of the prior is taken from `previous`, which may belong to another context.
    pub fn new(
        rows: Array2<f64>,
        context: &[f64],
        version: Version,
        previous: Option<Self>,
    ) -> Self {
        Self {
            version,
            context: context.to_vec(),
            v: Array2::zeros((rows.nrows(), 0)),
            points: rows,
            solved: 0,
            prior: None,
            earlier_factor: previous.and_then(|old| match old.prior {
                Some(prior) => Some(prior.factor),
                None => old.earlier_factor,
            }),
        }
    }

    pub fn is_for(&self, context: &[f64], version: Version) -> bool {
        self.version == version && self.context == context
    }

    /// Computes the columns of V that belong to new rows or to the tail of the posterior. Columns that were already
    /// computed for observed rows are kept.
    pub fn update(&mut self, gp: &GaussianProcess, stop: &mut Stop) -> Result<()> {
        let n = gp.len();
        if n > self.v.ncols() {
            let mut wider = Array2::zeros((self.points.nrows(), n + n / 4 + 8));
            wider
                .slice_mut(s![.., ..self.solved])
                .assign(&self.v.slice(s![.., ..self.solved]));
            self.v = wider;
        }
        let fresh = gp.kernel().scale(gp.rows().slice(s![self.solved.., ..]));
        let base = self.version.base;
        let points = self.points.axis_chunks_iter(Axis(0), BLOCK);
        for (points, mut v) in points.zip(self.v.axis_chunks_iter_mut(Axis(0), BLOCK)) {
            check(stop)?;
            let columns = v.slice_mut(s![.., self.solved..n]);
            gp.kernel().cross(points, &fresh, columns);
            if self.solved < base {
                gp.factor()
                    .forward_substitution_leading(v.slice_mut(s![.., ..base]));
            }
        }
        gp.factor().forward_substitution_singly(
            self.solved.max(base),
            &mut slices(self.v.slice_mut(s![.., ..n])),
            stop,
        )?;
        self.solved = gp.n_observed();
        Ok(())
    }

    /// Computes the acquisition at every candidate.
    pub fn score(&self, gp: &GaussianProcess, formula: &dyn Formula) -> Vec<f64> {
        let v = self.v.slice(s![.., ..gp.len()]);
        values_of_solved(formula, gp, self.points.view(), v)
    }

    /// Makes one draw from GP(mu, ν²·Σ), evaluated at every candidate. `rows` contains the trial of each row of the
    /// posterior.
    pub fn draw(
        &mut self,
        gp: &GaussianProcess,
        log: View,
        rows: &[TrialNumber],
        nu: f64,
        rng: &mut Rng,
    ) -> Result<Vec<f64>> {
        let mut prior = match self.prior.take() {
            Some(prior) => prior,
            None => Prior {
                factor: PriorFactor::reuse(
                    self.earlier_factor.take(),
                    gp.kernel(),
                    self.points.clone(),
                )?,
                places: Vec::new(),
            },
        };
        self.place(&mut prior, gp, log, rows)?;
        let g = prior.factor.draw(rng);
        let at_rows: Vec<f64> = prior.places.iter().map(|&place| g[place]).collect();
        prior.forget_tail(gp.n_observed(), self.points.nrows());
        self.prior = Some(prior);
        let w = gp.whitened_prior(&at_rows, rng);
        // The draw v_iᵀz + ν(g_i − v_iᵀw) is computed as ν g_i + v_iᵀ(z − ν w).
        let combined: Vec<f64> = gp
            .whitened_targets()
            .iter()
            .zip(&w)
            .map(|(z, w)| z - nu * w)
            .collect();
        let v = self.v.slice(s![.., ..gp.len()]);
        Ok(v.rows()
            .into_iter()
            .zip(&g)
            .map(|(v, g)| nu * g + v.to_slice().map_or(f64::NAN, |v| dot(v, &combined)))
            .collect())
    }

    /// For each row of the posterior, finds the index of the row's point in the factor of the prior.
    fn place(
        &self,
        prior: &mut Prior,
        gp: &GaussianProcess,
        log: View,
        rows: &[TrialNumber],
    ) -> Result<()> {
        while prior.places.len() < rows.len() {
            let first = prior.places.len();
            let next = self.version.base.max(first + 1);
            let mut elsewhere = Vec::new();
            for (row, &number) in (first..next).zip(&rows[first..]) {
                let index = log.of(number).index.map(|index| index as usize);
                let listed = index.filter(|_| log.context(number) == self.context);
                prior.places.push(listed.unwrap_or_else(|| {
                    elsewhere.push(row);
                    prior.factor.len() + elsewhere.len() - 1
                }));
            }
            if !elsewhere.is_empty() {
                let points = gp.rows().select(Axis(0), &elsewhere);
                prior.factor.include(points.view())?;
            }
        }
        Ok(())
    }
}

impl Prior {
    /// Drops the rows of the tail, which follow the observed rows. Points of the tail that are not candidates are also
    /// dropped from the factor.
    fn forget_tail(&mut self, observed: usize, candidates: usize) {
        self.places.truncate(observed);
        let elsewhere = self.places.iter().filter(|place| **place >= candidates);
        self.factor.truncate(candidates + elsewhere.count());
    }
}

/// Returns the solutions of all candidates for this posterior. The kept solutions are reused if they are still valid.
pub fn solved<'a>(
    kept: &'a mut Option<SolvedCandidates>,
    list: &Array2<f64>,
    query: Query,
    version: Version,
    gp: &GaussianProcess,
    stop: &mut Stop,
) -> Result<&'a mut SolvedCandidates> {
    let solved = match kept.take() {
        Some(solved) if solved.is_for(query.context, version) => solved,
        previous => {
            let rows = in_context(list, query.context);
            SolvedCandidates::new(rows, query.context, version, previous)
        }
    };
    let solved = kept.insert(solved);
    solved.update(gp, stop)?;
    Ok(solved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gp::kernel::KernelFamily;
    use crate::gp::{Conditioned, Hyperparameters, Target};
    use crate::ledger::Action;
    use crate::ledger::Ledger;
    use crate::problem::{self, Clock, Members, Objective, Point, Problem};
    use crate::strategy::bayes::acquisitions::formula::Scorer;
    use crate::strategy::bayes::acquisitions::max_variance::MaxVariance;
    use rand::SeedableRng;
    use std::ops::ControlFlow;
    use std::sync::Arc;

    /// The candidate and the context of each row. Rows in a context other than `HERE` do not count as candidates.
    const ROWS: [(usize, f64); 4] = [(3, HERE), (2, 0.75), (0, HERE), (1, 0.75)];
    const HERE: f64 = 0.5;
    const N_OBSERVED: usize = 2;

    fn candidates() -> Array2<f64> {
        Array2::from_shape_fn((6, 1), |(i, _)| i as f64 / 5.0)
    }

    fn log() -> Ledger {
        let problem = Problem {
            members: Members::Candidates(problem::Candidates::new(candidates()).unwrap()),
            ..Problem::unit_cube(1, 1, Clock::Iterations).unwrap()
        };
        let mut log = Ledger::new(Arc::new(problem));
        for (index, z) in ROWS {
            let add = Action::add(Point::Candidate(index), vec![z], None, None);
            let event = log.validate(add, 0.0, None).unwrap().unwrap();
            log.append(event).unwrap();
        }
        log
    }

    fn rows(numbers: &[usize]) -> Array2<f64> {
        Array2::from_shape_fn((numbers.len(), 2), |(i, column)| match ROWS[numbers[i]] {
            (index, _) if column == 0 => index as f64 / 5.0,
            (_, z) => z,
        })
    }

    fn observed() -> GaussianProcess {
        let theta = Hyperparameters::new(vec![0.5, 1.0], 1.5, 0.05);
        let mut gp = GaussianProcess::new(KernelFamily::Matern52, &theta).unwrap();
        gp.append_rows(rows(&[0, 1]).view()).unwrap();
        gp.set_targets(&[1.0, -0.5]).unwrap();
        gp
    }

    /// The moments of draws equal the moments of the posterior. The test adds tails in different orders. The rows
    /// include candidates and other points.
    #[test]
    fn draws_have_the_moments_of_the_posterior_with_every_tail() {
        let (mut observed, log) = (observed(), log());
        let list = in_context(&candidates(), &[HERE]);
        let version = Version {
            generation: 1,
            base: N_OBSERVED,
        };
        let mut solved = SolvedCandidates::new(list.clone(), &[HERE], version, None);
        let mut rng = Rng::seed_from_u64(3);
        let (n, nu) = (4000, 1.5);
        for tail in [vec![], vec![2, 3], vec![3], vec![3, 2], vec![2]] {
            let targets = vec![Target::PosteriorMean; tail.len()];
            let gp = Conditioned::on(&mut observed, rows(&tail).view(), &targets).unwrap();
            solved
                .update(&gp, &mut || ControlFlow::Continue(()))
                .unwrap();
            let numbers = [vec![0, 1], tail].concat();
            let (mean, variance) = gp.predict(list.view());
            let scored = solved.score(&gp, &MaxVariance {});
            let mut expected = vec![0.0; 6];
            Scorer::new(&gp, &MaxVariance {}, &[]).values(list.view(), &mut expected);
            let mut sums = [[0.0; 2]; 6];
            for _ in 0..n {
                let draw = solved
                    .draw(&gp, log.view(), &numbers, nu, &mut rng)
                    .unwrap();
                for ((sum, y), mean) in sums.iter_mut().zip(draw).zip(&mean) {
                    sum[0] += (y - mean) / n as f64;
                    sum[1] += (y - mean).powi(2) / n as f64;
                }
            }
            for i in 0..6 {
                assert!((scored[i] - expected[i]).abs() < 1e-9);
                let spread = nu * variance[i].sqrt();
                // Each tolerance is five standard errors: first for the mean, then for the variance.
                assert!(sums[i][0].abs() < 5.0 * spread / f64::sqrt(n as f64));
                let excess = sums[i][1] / spread.powi(2) - 1.0;
                assert!(excess.abs() < 5.0 * f64::sqrt(2.0 / n as f64), "{excess}");
            }
        }
    }

    #[test]
    fn candidates_are_kept_up_to_a_gibibyte_and_for_draws_up_to_a_maximum_number() {
        // V of N candidates needs 8·N·(n + n/4 + 8) bytes, including spare columns.
        let list = Array2::zeros((1 << 20, 1));
        assert!(can_be_kept(&list, 96, false)); // 128 columns, 2^30 bytes
        assert!(!can_be_kept(&list, 97, false));
        for (n, draws, kept) in [
            (MAX_EXACT, true, true),
            (MAX_EXACT + 1, true, false),
            (MAX_EXACT + 1, false, true),
        ] {
            assert_eq!(can_be_kept(&Array2::zeros((n, 1)), 96, draws), kept);
        }
    }

    #[test]
    fn the_columns_of_a_context_follow_the_columns_of_the_candidates() {
        let list = Array2::from_shape_fn((3, 2), |(i, k)| (10 * i + k) as f64);
        let rows = in_context(&list, &[7.0, 8.0, 9.0]);
        for (i, row) in rows.rows().into_iter().enumerate() {
            let first = 10.0 * i as f64;
            assert_eq!(row.to_vec(), [first, first + 1.0, 7.0, 8.0, 9.0]);
        }
    }
}
