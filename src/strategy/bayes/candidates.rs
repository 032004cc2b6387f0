//! A finite domain solved against the factor once and kept: a new row costs O(nN), a suggestion little more.
//!
//! Notation: N candidates, V (N, n) with rows v_i = L⁻¹k(X, x_i). Then mu_i = v_iᵀz, var_i = v − |v_i|², and a draw is
//! mu_i + ν·(g_i − v_iᵀL⁻¹(g(X) + ε)) with g an exact draw from the prior (Matheron's rule).
//!
//! V and the prior's factor grow as the factor of the rows does: the base at once, later rows singly, and a tail
//! that is dropped again. So their bits follow from the rows alone, not from when they were asked for.

use ndarray::{Array2, Axis, s};

use crate::acquisition::Acquisition;
use crate::error::{Result, Stop, check};
use crate::gp::draw::exact::PriorFactor;
use crate::gp::{BLOCK, GaussianProcess};
use crate::ledger::{Ledger, TrialNumber};
use crate::numerics::cholesky::dot;
use crate::random::Rng;
use crate::strategy::bayes::training_set::Version;

/// Up to this many candidates draws are exact; their prior covariance is factorised once, at O(N³).
pub const MAX_EXACT: usize = 4096;

/// V for one θ and one context, and the prior's factor if draws are wanted.
pub struct SolvedCandidates {
    version: Version,
    context: Vec<f64>,
    /// Candidates with the context's columns appended.
    points: Array2<f64>,
    /// V in rows with room to grow; the first `solved` columns are those of observed rows.
    v: Array2<f64>,
    solved: usize,
    prior: Option<Prior>,
    /// The prior's factor in another context.
    earlier_factor: Option<PriorFactor>,
}

/// A factor of the prior covariance of the candidates, then of rows that lie elsewhere.
struct Prior {
    factor: PriorFactor,
    /// Where each row so far stands among the points of the factor.
    places: Vec<usize>,
}

impl SolvedCandidates {
    /// Nothing solved yet, for this factor and the candidates' rows in this context; of those in another context, the
    /// prior's factor may still serve.
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

    /// Brings V up to date with the posterior's rows, tail included; what is known of observed rows is kept.
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
            self.v.slice_mut(s![.., ..n]),
            stop,
        )?;
        self.solved = gp.n_observed();
        Ok(())
    }

    /// The acquisition at every candidate.
    pub fn score(&self, gp: &GaussianProcess, acquisition: &Acquisition) -> Vec<f64> {
        let v = self.v.slice(s![.., ..gp.len()]);
        acquisition.values_of_solved(gp, self.points.view(), v)
    }

    /// One draw from GP(mu, ν²·Σ) at every candidate; `rows` are the trials of the posterior's rows.
    pub fn draw(
        &mut self,
        gp: &GaussianProcess,
        log: &Ledger,
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
        // v_iᵀz + ν(g_i − v_iᵀw) = ν g_i + v_iᵀ(z − ν w)
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

    /// Gives every row of the posterior its place among the points of the prior's factor.
    fn place(
        &self,
        prior: &mut Prior,
        gp: &GaussianProcess,
        log: &Ledger,
        rows: &[TrialNumber],
    ) -> Result<()> {
        while prior.places.len() < rows.len() {
            let first = prior.places.len();
            let next = self.version.base.max(first + 1);
            let mut elsewhere = Vec::new();
            for (row, &number) in (first..next).zip(&rows[first..]) {
                let index = log.trials()[number].index.map(|index| index as usize);
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
    /// Forgets the rows after the observed ones, and those of their points that are no candidates.
    fn forget_tail(&mut self, observed: usize, candidates: usize) {
        self.places.truncate(observed);
        let elsewhere = self.places.iter().filter(|place| **place >= candidates);
        self.factor.truncate(candidates + elsewhere.count());
    }
}
