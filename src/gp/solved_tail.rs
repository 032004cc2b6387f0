//! The solutions of tail rows, and their covariances. Both are kept between tails.
//!
//! Notation: L is the factor of the n observed rows, t_i is row i of the tail, and v_i = L⁻¹k(X, t_i). The Schur
//! complement of the tail has the entries k(t_i, t_j) − v_iᵀv_j.
//!
//! Usually, two successive tails differ by a few rows, and a few observed rows are appended between the two tails. The
//! solutions of the common rows then need only the entries of the new observed rows. The terms of v_iᵀv_j are
//! subtracted in chunks of observed rows, and the differences after the last complete chunk are kept.
//!
//! Every kept number is computed in a fixed order that depends only on the observed rows and on the two rows of the
//! tail. Therefore the kept numbers are the same, bit for bit, as numbers that are computed without earlier tails.

use std::ops::ControlFlow;

use ndarray::{Array2, ArrayView1, ArrayView2};

use super::kernel::{Kernel, ScaledPoints};
use crate::error::Result;
use crate::numerics::growing_cholesky::GrowingCholesky;
use crate::numerics::simd::{dot, dot_four};

/// The number of observed rows in a chunk.
const CHUNK: usize = 128;

/// The solutions and covariances of p rows.
#[derive(Debug, Clone, Default)]
pub(super) struct SolvedTail {
    rows: Vec<Vec<f64>>,
    /// The vectors v_i, each (n,).
    v: Vec<Vec<f64>>,
    /// For each row i, k(t_i, t_j) minus the terms of the first `n_subtracted` observed rows, for j = i, …, p − 1.
    covariances: Vec<Vec<f64>>,
    n_subtracted: usize,
}

impl SolvedTail {
    /// Replaces the rows by the rows of `x` (p, d). `observed` contains the n observed rows, and `factor` is their
    /// factor.
    pub fn update(
        &mut self,
        x: ArrayView2<f64>,
        kernel: &Kernel,
        observed: &ScaledPoints,
        factor: &GrowingCholesky,
    ) -> Result<()> {
        self.keep_common(x);
        let (first_new, n) = (self.rows.len(), factor.len());
        self.rows
            .extend(x.rows().into_iter().skip(first_new).map(|x| x.to_vec()));
        self.v.resize(x.nrows(), Vec::new());
        self.covariances.resize(x.nrows(), Vec::new());

        let scaled = kernel.scale(x);
        for (i, row) in self.rows.iter().enumerate() {
            let from = i.max(first_new);
            let covariances = &mut self.covariances[i];
            covariances.resize(x.nrows() - i, 0.0);
            kernel.row_from(row, &scaled, from, &mut covariances[from - i..]);
        }
        // The solutions of kept rows are shorter than the solutions of new rows, so the two groups are solved separately.
        let (kept, new) = self.v.split_at_mut(first_new);
        for (group, rows) in [
            (kept, &self.rows[..first_new]),
            (new, &self.rows[first_new..]),
        ] {
            let start = group.first().map_or(n, Vec::len);
            for (v, row) in group.iter_mut().zip(rows) {
                v.resize(n, 0.0);
                kernel.row_from(row, observed, start, &mut v[start..]);
            }
            let mut slices: Vec<&mut [f64]> = group.iter_mut().map(Vec::as_mut_slice).collect();
            let mut go_on = || ControlFlow::Continue(());
            factor.forward_substitution_singly(start, &mut slices, &mut go_on)?;
        }
        let complete = n - n % CHUNK;
        for start in (0..complete).step_by(CHUNK) {
            self.subtract_chunk(start, first_new);
        }
        self.n_subtracted = complete;
        Ok(())
    }

    /// Keeps the rows that equal the first rows of `x`, in the same order, and drops all others.
    fn keep_common(&mut self, x: ArrayView2<f64>) {
        let mut kept = 0;
        for i in 0..self.rows.len() {
            if kept < x.nrows() && x.row(kept) == ArrayView1::from(&self.rows[i]) {
                self.rows.swap(kept, i);
                self.v.swap(kept, i);
                self.covariances.swap(kept, i);
                kept += 1;
            } else {
                // Row i is dropped. Row j < i of the new order has its entry for row i at position `kept` − j.
                for (j, covariances) in self.covariances[..kept].iter_mut().enumerate() {
                    covariances.remove(kept - j);
                }
            }
        }
        self.rows.truncate(kept);
        self.v.truncate(kept);
        self.covariances.truncate(kept);
    }

    /// Subtracts the terms of one chunk from the covariances that do not contain these terms yet. Rows from `first_new`
    /// on are new.
    fn subtract_chunk(&mut self, start: usize, first_new: usize) {
        let v: Vec<&[f64]> = self.v.iter().map(|v| &v[start..start + CHUNK]).collect();
        let all = start >= self.n_subtracted;
        for (i, covariances) in self.covariances.iter_mut().enumerate() {
            let from = if all { i } else { i.max(first_new) };
            let (fours, rest) = v[from..].as_chunks::<4>();
            let (targets, last) = covariances[from - i..].as_chunks_mut::<4>();
            for (target, four) in targets.iter_mut().zip(fours) {
                let products = dot_four(*four, v[i]);
                target.iter_mut().zip(products).for_each(|(t, p)| *t -= p);
            }
            for (target, other) in last.iter_mut().zip(rest) {
                *target -= dot(other, v[i]);
            }
        }
    }

    /// The vectors v_i.
    pub fn solutions(&self) -> &[Vec<f64>] {
        &self.v
    }

    /// The kept covariances as entries [i, j] of an array (p, p) with j ≥ i, and the number of observed rows whose
    /// terms have been subtracted.
    pub fn covariances(&self) -> (Array2<f64>, usize) {
        let p = self.rows.len();
        let mut out = Array2::zeros((p, p));
        for (i, (mut row, covariances)) in out
            .rows_mut()
            .into_iter()
            .zip(&self.covariances)
            .enumerate()
        {
            let row = row
                .as_slice_mut()
                .expect("rows of a new array are contiguous");
            row[i..].copy_from_slice(covariances);
        }
        (out, self.n_subtracted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gp::kernel::KernelFamily;
    use crate::gp::tests::{model, wave};
    use crate::gp::{Conditioned, GaussianProcess, Target, as_row};
    use proptest::prelude::*;

    /// The bits of the factor, the jitters, α and z.
    fn bits(gp: &GaussianProcess) -> Vec<u64> {
        let n = gp.len();
        let factor = (0..n).flat_map(|i| (0..=i).map(move |j| (i, j)));
        let factor = factor.map(|(i, j)| gp.factor().at(i, j));
        let rest = [gp.factor().jitters(), gp.alpha(), gp.whitened_targets()];
        factor.chain(rest.concat()).map(f64::to_bits).collect()
    }

    /// The largest difference between an entry of L Lᵀ and the covariance of the two rows.
    fn error(gp: &GaussianProcess) -> f64 {
        let mut covariances = gp.kernel().gram(gp.rows());
        let added = gp.row_noise().iter().zip(gp.factor().jitters());
        let diagonal = covariances.diag_mut().into_iter().zip(added);
        diagonal.for_each(|(k, (noise, jitter))| *k += noise + jitter);
        let l = Array2::from_shape_fn((gp.len(), gp.len()), |(i, j)| {
            if i >= j { gp.factor().at(i, j) } else { 0.0 }
        });
        (l.dot(&l.t()) - covariances).fold(0.0, |m: f64, e| m.max(e.abs()))
    }

    #[test]
    fn a_tail_without_a_factor_is_dropped() {
        let mut gp = model(KernelFamily::Matern52, 12);
        let (baseline, points) = (wave(2, 2, 8.8), wave(4, 2, 3.3));
        let before = gp.predict(points.view());
        let bad = Array2::from_elem((1, 2), f64::NAN);
        assert!(Conditioned::on_noiseless(&mut gp, baseline.view(), bad.view()).is_err());
        assert_eq!(gp.len(), 12);
        assert_eq!(gp.predict(points.view()), before);
        let gp = Conditioned::on_noiseless(gp, baseline.view(), points.view()).unwrap();
        assert!(error(&gp) < 1e-10);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        /// The steps suggest a trial, observe a pending trial, let a pending trial fail, or observe another trial.
        #[test]
        fn kept_solutions_have_the_bits_of_new_ones_and_tails_leave_no_trace(
            n in (CHUNK - 6)..(CHUNK + 3),
            steps in prop::collection::vec((0usize..5, 0usize..64, prop::bool::ANY), 1..16),
            family in prop::sample::select(KernelFamily::ALL.to_vec()),
        ) {
            let mut gp = model(family, n);
            let points = wave(64, 2, 7.3);
            let mut pending: Vec<usize> = (0..6).collect();
            let mut next = pending.len();
            for (step, which, noiseless) in steps {
                let chosen = (!pending.is_empty()).then(|| which % pending.len());
                let observed = match (step, chosen) {
                    (0, Some(i)) => Some(pending.remove(i)),
                    (1, Some(i)) => {
                        pending.remove(i);
                        None
                    }
                    (2, _) => Some(which),
                    _ => {
                        pending.push(next % 64);
                        next += 1;
                        None
                    }
                };
                if let Some(i) = observed {
                    gp.append_rows(as_row(points.row(i).to_vec()).view()).unwrap();
                    let y: Vec<f64> = (0..gp.n_observed()).map(|i| (i as f64).sin()).collect();
                    gp.set_targets(&y).unwrap();
                }
                let tail = points.select(ndarray::Axis(0), &pending);
                let baseline = gp.rows().slice(ndarray::s![..which % 4, ..]).to_owned();
                let values = vec![Target::Value(0.3); pending.len()];
                let condition = |gp| match noiseless {
                    true => Conditioned::on_noiseless(gp, baseline.view(), tail.view()).unwrap(),
                    false => Conditioned::on(gp, tail.view(), &values).unwrap(),
                };
                let (before, mut new) = (bits(&gp), gp.clone());
                new.solved_tail = SolvedTail::default();
                let kept = condition(&mut gp);
                prop_assert!(bits(&kept) == bits(&condition(&mut new)));
                prop_assert!(error(&kept) < 1e-10);
                drop(kept);
                prop_assert!(bits(&gp) == before);
                prop_assert!(gp.rows().nrows() == gp.len() && gp.row_noise().len() == gp.len());
            }
        }
    }
}
