//! A Cholesky factor that can be extended by rows and truncated to its first rows.
//!
//! Notation: A = L Lᵀ is n × n. A *block of right-hand sides* is an array with one row per right-hand side, shape (N,
//! n).

use ndarray::{Array2, ArrayView2, ArrayViewMut2, s};

use super::cholesky::{LowerFactor, factor_in_place, subtract_gram_of_rows};
use super::simd::{dot, dot_four, substitute_backward, substitute_forward};
use crate::error::{Error, Result, Stop, check};

/// The jitters, as multiples of the mean diagonal entry, in the order in which they are tried.
const JITTERS: [f64; 6] = [0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4];

/// A pivot below this multiple of the mean diagonal entry counts as a rounding error. Solves with a smaller pivot may
/// return very large entries, so appending the next row would fail even with the largest jitter.
const MIN_PIVOT: f64 = 1e-13;

/// The number of rows of L per tile. A tile fits in the cache while many right-hand sides are solved.
const TILE: usize = 32;

/// The number of rows that are transposed together.
const TRANSPOSED: usize = 8;

/// The number of right-hand sides between two checks of `stop`.
const STOP_INTERVAL: usize = 256;

/// Returns the index of the first pivot of L that counts as a rounding error. `scale` is the mean diagonal entry of L
/// Lᵀ.
pub(crate) fn tiny_pivot(l: &Array2<f64>, scale: f64) -> Option<usize> {
    l.diag().iter().position(|l| l * l < MIN_PIVOT * scale)
}

/// The rows of a block as slices.
pub(crate) fn slices(block: ArrayViewMut2<'_, f64>) -> Vec<&mut [f64]> {
    let rows = block.into_outer_iter_mut().map(|row| row.into_slice());
    rows.map(|row| row.expect("blocks have contiguous rows"))
        .collect()
}

/// The lower factor L of A = L Lᵀ, stored column-major in a buffer with spare capacity.
#[derive(Debug, Clone, Default)]
pub struct GrowingCholesky {
    buffer: Vec<f64>,
    capacity: usize,
    n: usize,
    /// The jitter that was added to the diagonal entry of each row.
    jitter: Vec<f64>,
}

impl GrowingCholesky {
    /// Creates a factor without rows.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of rows n.
    pub fn len(&self) -> usize {
        self.n
    }

    /// The largest jitter of all rows, which is 0 if all rows are well-conditioned.
    pub fn jitter(&self) -> f64 {
        self.jitter.iter().copied().fold(0.0, f64::max)
    }

    /// The jitter that was added to the diagonal entry of each row.
    pub fn jitters(&self) -> &[f64] {
        &self.jitter
    }

    /// Returns L[i, j] for i ≥ j.
    pub fn at(&self, i: usize, j: usize) -> f64 {
        self.buffer[i + j * self.capacity]
    }

    /// Keeps the first n rows, which are the factor of the leading block of A.
    pub fn truncate(&mut self, n: usize) {
        self.n = self.n.min(n);
        self.jitter.truncate(n);
    }

    /// Appends m rows, given `cross` (m, n) = A[new, old] and `block` (m, m) = A[new, new]. `block` is consumed.
    ///
    /// The new rows of the factor are [L21 L22], where L21 = (L11⁻¹ A12)ᵀ and L22 L22ᵀ = A22 − L21 L21ᵀ. If the Schur
    /// complement A22 − L21 L21ᵀ is not positive definite, increasing jitter is added to its diagonal. If the largest
    /// jitter also fails, an error is returned and the factor is unchanged.
    pub fn extend(&mut self, cross: ArrayView2<f64>, block: Array2<f64>) -> Result<()> {
        let scale = block.diag().iter().map(|a| a.abs()).sum::<f64>() / block.nrows() as f64;
        self.extend_scaled(cross, block, scale)
    }

    /// Appends rows as [`Self::extend`] does, but with `scale` as the unit of the jitter.
    pub fn extend_scaled(
        &mut self,
        cross: ArrayView2<f64>,
        block: Array2<f64>,
        scale: f64,
    ) -> Result<()> {
        let (m, n) = (block.nrows(), self.n);
        if cross.dim() != (m, n) || block.ncols() != m {
            return Err(Error::Shape(format!(
                "extending a factor of {n} rows by {m} needs arrays of shape ({m}, {n}) and ({m}, {m}), got {:?} and {:?}",
                cross.dim(),
                block.dim()
            )));
        }
        if m == 0 {
            return Ok(());
        }
        let mut l21 = cross.as_standard_layout().into_owned();
        self.forward_substitution(l21.view_mut());
        let mut schur = block;
        if n > 0 {
            subtract_gram_of_rows(l21.view(), schur.view_mut());
        }
        self.extend_solved(l21.view(), schur, scale)
    }

    /// Appends rows as [`Self::extend_scaled`] does, given `l21` (m, n) and the Schur complement (m, m). Only the
    /// entries [i, j] of the Schur complement with j ≥ i are read.
    pub fn extend_solved(
        &mut self,
        l21: ArrayView2<f64>,
        mut schur: Array2<f64>,
        scale: f64,
    ) -> Result<()> {
        let (m, n) = (schur.nrows(), self.n);
        assert_eq!(
            l21.dim(),
            (m, n),
            "one row per new row, one column per old row"
        );
        let entries = l21.to_slice().expect("rows are contiguous");
        self.reserve(n + m);
        // The new corner of the buffer holds the Schur complement while a copy is factorised, and then the factor.
        self.write_corner(n, &schur);
        let jitter = self.factor_with_jitter(n, &mut schur, scale)?;
        self.write_corner(n, &schur);
        // Groups of rows are transposed together, so that every read and write uses whole cache lines.
        for first in (0..m).step_by(TRANSPOSED) {
            let last = m.min(first + TRANSPOSED);
            for j in 0..n {
                let start = n + j * self.capacity;
                let targets = &mut self.buffer[start + first..start + last];
                for (target, i) in targets.iter_mut().zip(first..) {
                    *target = entries[i * n + j];
                }
            }
        }
        self.n = n + m;
        self.jitter.resize(self.n, jitter);
        Ok(())
    }

    /// Writes the lower triangle of a column-major matrix after the first n rows and columns.
    ///
    /// The upper triangle is neither read nor written, so that its memory pages are not allocated.
    fn write_corner(&mut self, n: usize, a: &Array2<f64>) {
        for j in 0..a.nrows() {
            let start = (n + j) * self.capacity + n;
            let target = &mut self.buffer[start + j..start + a.nrows()];
            let source = a.slice(s![j, j..]);
            target.copy_from_slice(source.as_slice().expect("rows are contiguous"));
        }
    }

    /// Replaces `a` by its factor and returns the jitter. The buffer holds a copy of `a` after the first n rows and
    /// columns.
    fn factor_with_jitter(&self, n: usize, a: &mut Array2<f64>, scale: f64) -> Result<f64> {
        let mut failed = Error::NotPositiveDefinite {
            pivot: 0,
            jitter: 0.0,
        };
        for (attempt, factor) in JITTERS.into_iter().enumerate() {
            let jitter = factor * scale;
            if attempt > 0 {
                for (j, mut column) in a.rows_mut().into_iter().enumerate() {
                    let start = (n + j) * self.capacity + n;
                    let source = &self.buffer[start + j..start + column.len()];
                    column
                        .iter_mut()
                        .skip(j)
                        .zip(source)
                        .for_each(|(t, v)| *t = *v);
                }
            }
            a.diag_mut().iter_mut().for_each(|d| *d += jitter);
            let factored = factor_in_place(a);
            match factored.and_then(|()| tiny_pivot(a, scale).map_or(Ok(()), Err)) {
                Ok(()) => return Ok(jitter),
                Err(pivot) => failed = Error::NotPositiveDefinite { pivot, jitter },
            }
        }
        Err(failed)
    }

    /// Replaces every row r of the block by L⁻¹ r.
    pub fn forward_substitution(&self, block: ArrayViewMut2<f64>) {
        assert_eq!(block.ncols(), self.n, "one column per row of the factor");
        self.forward_substitution_leading(block);
    }

    /// Replaces every row r of the block by L⁻¹ r, where L is the leading block of the factor with as many rows as r
    /// has entries.
    pub fn forward_substitution_leading(&self, mut block: ArrayViewMut2<f64>) {
        let n = block.ncols();
        assert!(n <= self.n, "at most one column per row of the factor");
        if n == 0 || block.nrows() == 0 {
            return;
        }
        if block.nrows() == 1
            && let Some(row) = block.row_mut(0).as_slice_mut()
        {
            return substitute_forward(&self.buffer, self.capacity, row);
        }
        self.leading_factor(n).forward_substitution(block);
    }

    /// Replaces the vector b by L⁻¹ b.
    pub fn forward_substitution_vector(&self, b: &mut [f64]) {
        assert_eq!(b.len(), self.n, "one entry per row of the factor");
        substitute_forward(&self.buffer, self.capacity, b);
    }

    /// Replaces the vector b by L⁻ᵀ b.
    pub fn backward_substitution_vector(&self, b: &mut [f64]) {
        assert_eq!(b.len(), self.n, "one entry per row of the factor");
        substitute_backward(&self.buffer, self.capacity, b);
    }

    /// Completes `forward_substitution_leading` if the first `start` entries of each row are already solved. The other
    /// entries are solved one by one, so that the bits of a row depend neither on the number of calls nor on other
    /// rows.
    pub fn forward_substitution_singly(
        &self,
        start: usize,
        rows: &mut [&mut [f64]],
        stop: &mut Stop,
    ) -> Result<()> {
        let end = rows.first().map_or(start, |row| row.len());
        assert!(end <= self.n, "at most one column per row of the factor");
        let mut tile: Vec<Vec<f64>> = Vec::new();
        for first in (start..end).step_by(TILE) {
            let entries = first..end.min(first + TILE);
            // b_i = (b_i − Σ_{j<i} L_ij b_j) / L_ii, with row i of L copied to contiguous memory.
            tile.clear();
            tile.extend(entries.map(|i| (0..=i).map(|j| self.at(i, j)).collect()));
            for (k, rows) in rows.chunks_mut(4).enumerate() {
                if (4 * k).is_multiple_of(STOP_INTERVAL) {
                    check(stop)?;
                }
                for (i, l) in (first..).zip(&tile) {
                    if let [b0, b1, b2, b3] = rows {
                        let sums = dot_four([&b0[..i], &b1[..i], &b2[..i], &b3[..i]], &l[..i]);
                        for (b, sum) in rows.iter_mut().zip(sums) {
                            b[i] = (b[i] - sum) / l[i];
                        }
                    } else {
                        for b in rows.iter_mut() {
                            b[i] = (b[i] - dot(&l[..i], &b[..i])) / l[i];
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Replaces every row r of the block by L⁻ᵀ r.
    pub fn backward_substitution(&self, mut block: ArrayViewMut2<f64>) {
        assert_eq!(block.ncols(), self.n, "one column per row of the factor");
        if self.n == 0 || block.nrows() == 0 {
            return;
        }
        if block.nrows() == 1
            && let Some(row) = block.row_mut(0).as_slice_mut()
        {
            return self.backward_substitution_vector(row);
        }
        self.leading_factor(self.n).backward_substitution(block);
    }

    /// Returns L ξ, where L contains the first ξ.len() rows of the factor.
    pub fn multiply(&self, xi: &[f64]) -> Vec<f64> {
        self.multiply_from(0, xi)
    }

    /// Returns the entries of L ξ from entry `first`, where L contains the first ξ.len() rows of the factor.
    pub fn multiply_from(&self, first: usize, xi: &[f64]) -> Vec<f64> {
        let m = xi.len();
        let mut out = vec![0.0; m - first];
        // Many entries of ξ are 0 if the last rows are hallucinated.
        for (j, &x) in xi.iter().enumerate().filter(|(_, x)| **x != 0.0) {
            let start = j.max(first);
            let column = &self.buffer[j * self.capacity + start..j * self.capacity + m];
            for (o, l) in out[start - first..].iter_mut().zip(column) {
                *o += l * x;
            }
        }
        out
    }

    /// Returns log det A.
    pub fn log_det(&self) -> f64 {
        2.0 * (0..self.n).map(|i| self.at(i, i).ln()).sum::<f64>()
    }

    /// Returns a view of the block of L whose rows and columns start at `first`. `first` must be less than n.
    pub(crate) fn trailing_factor(&self, first: usize) -> LowerFactor<'_> {
        let corner = &self.buffer[first * self.capacity + first..];
        LowerFactor::in_columns(corner, self.n - first, self.capacity)
    }

    /// Returns a view of the first n rows of the factor.
    fn leading_factor(&self, n: usize) -> LowerFactor<'_> {
        LowerFactor::in_columns(&self.buffer, n, self.capacity)
    }

    fn reserve(&mut self, n: usize) {
        if n <= self.capacity {
            return;
        }
        // Only a few rows are usually appended after the first block, so a small spare capacity suffices.
        let capacity = if self.capacity == 0 {
            n + n / 8 + 8
        } else {
            n.max(self.capacity + self.capacity / 8 + 8)
        };
        let mut buffer = vec![0.0; capacity * capacity];
        for j in 0..self.n {
            let old = &self.buffer[j * self.capacity..j * self.capacity + self.n];
            buffer[j * capacity..j * capacity + self.n].copy_from_slice(old);
        }
        self.buffer = buffer;
        self.capacity = capacity;
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use ndarray::s;
    use proptest::prelude::*;

    /// Returns the symmetric positive definite matrix B Bᵀ + I, with pseudo-random entries of B.
    pub fn positive_definite(n: usize, seed: u64) -> Array2<f64> {
        let b = Array2::from_shape_fn((n, n), |(i, j)| {
            (((i * 31 + j * 17) as f64 + seed as f64) * 1.37).sin()
        });
        b.dot(&b.t()) + Array2::<f64>::eye(n)
    }

    fn fresh(a: &Array2<f64>) -> GrowingCholesky {
        let mut l = GrowingCholesky::new();
        l.extend(Array2::zeros((a.nrows(), 0)).view(), a.clone())
            .unwrap();
        l
    }

    proptest! {
        #[test]
        fn extended_factor_equals_fresh_factor(n in 1usize..40, cut in 0usize..40, seed in 0u64..1000) {
            let a = positive_definite(n, seed);
            let cut = cut.min(n);
            let mut grown = fresh(&a.slice(s![..cut, ..cut]).to_owned());
            for i in cut..n {
                grown.extend(a.slice(s![i..i + 1, ..i]), a.slice(s![i..i + 1, i..i + 1]).to_owned()).unwrap();
            }
            let whole = fresh(&a);
            let mut in_block = whole.clone();
            in_block.truncate(cut);
            in_block.extend(a.slice(s![cut.., ..cut]), a.slice(s![cut.., cut..]).to_owned()).unwrap();
            for i in 0..n {
                for j in 0..=i {
                    prop_assert!((grown.at(i, j) - whole.at(i, j)).abs() < 1e-10 * n as f64);
                    prop_assert!((in_block.at(i, j) - whole.at(i, j)).abs() < 1e-10 * n as f64);
                    let product: f64 = (0..=j).map(|k| whole.at(i, k) * whole.at(j, k)).sum();
                    prop_assert!((product - a[[i, j]]).abs() < 1e-10 * n as f64);
                }
            }
        }

        #[test]
        fn solves_invert_the_matrix(n in 1usize..80, rows in 1usize..5, seed in 0u64..1000) {
            let a = positive_definite(n, seed);
            let l = fresh(&a);
            let b = Array2::from_shape_fn((rows, n), |(i, j)| ((i + 2 * j) as f64).cos());
            let mut x = b.clone();
            l.forward_substitution(x.view_mut());
            l.backward_substitution(x.view_mut());
            prop_assert!((x.dot(&a) - &b).iter().all(|e| e.abs() < 1e-9));
            let mut go_on = || std::ops::ControlFlow::Continue(());
            let start = n / 2;
            let mut head = b.clone();
            l.forward_substitution_leading(head.slice_mut(s![.., ..start]));
            let (mut together, mut one_by_one) = (head.clone(), head);
            l.forward_substitution_singly(start, &mut slices(together.view_mut()), &mut go_on).unwrap();
            for mut row in one_by_one.rows_mut() {
                for i in start..n {
                    let row = row.slice_mut(s![..=i]).into_slice().unwrap();
                    l.forward_substitution_singly(i, &mut [row], &mut go_on).unwrap();
                }
            }
            prop_assert_eq!(&together, &one_by_one);
            let mut at_once = b;
            l.forward_substitution(at_once.view_mut());
            prop_assert!((together - at_once).iter().all(|e| e.abs() < 1e-9));
        }
    }

    #[test]
    fn the_factor_with_jitter_equals_the_factor_of_the_matrix_plus_jitter() {
        for n in [3, 90] {
            let l = fresh(&Array2::from_elem((n, n), 1.0));
            let mut raised = Array2::from_elem((n, n), 1.0);
            raised.diag_mut().iter_mut().for_each(|d| *d += l.jitter());
            factor_in_place(&mut raised).unwrap();
            assert!(l.jitter() > 0.0);
            for i in 0..n {
                for j in 0..=i {
                    assert_eq!(l.at(i, j), raised[[j, i]]);
                }
            }
        }
    }

    #[test]
    fn products_with_the_last_rows_equal_sums_over_entries() {
        let (n, first) = (70, 30);
        let l = fresh(&positive_definite(n, 3));
        let xi: Vec<f64> = (0..n).map(|j| (j as f64).sin()).collect();
        let row = |i: usize, start: usize| (start..=i).map(|j| l.at(i, j) * xi[j]).sum::<f64>();
        for (i, product) in (first..).zip(l.multiply_from(first, &xi)) {
            assert!((product - row(i, 0)).abs() < 1e-10);
        }
        let block = Array2::from_shape_fn((3, n - first), |(k, j)| k as f64 * xi[first + j]);
        let mut out = Array2::from_elem(block.dim(), f64::NAN);
        l.trailing_factor(first)
            .multiply(block.view(), out.view_mut());
        for ((k, i), product) in out.indexed_iter() {
            assert!((product - k as f64 * row(first + i, first)).abs() < 1e-10);
        }
    }

    #[test]
    fn log_det_is_the_sum_over_pivots_of_a_known_matrix() {
        let l = fresh(&ndarray::arr2(&[[4.0, 2.0], [2.0, 5.0]]));
        assert!((l.log_det() - 16f64.ln()).abs() < 1e-14);
    }

    /// If two points are equal up to rounding, a pivot is 0 or a rounding error. Appending further rows must still
    /// succeed.
    #[test]
    fn rows_that_repeat_up_to_rounding_can_always_be_appended() {
        for seed in 0..3000u64 {
            let entry = |i: usize, j: usize| {
                let bits = (seed * 100 + (1 + i * j + (i + j) * 8) as u64)
                    .wrapping_mul(0x9E37_79B9_7F4A_7C15);
                let v = 0.1 + 1e-3 * seed as f64;
                if i != j && bits >> 63 == 1 {
                    v.next_down()
                } else {
                    v
                }
            };
            let n = 2 + (seed % 7) as usize;
            let mut l = fresh(&Array2::from_shape_fn((n, n), |(i, j)| entry(i, j)));
            for n in n..n + 4 {
                let cross = Array2::from_shape_fn((1, n), |(_, j)| entry(n, j));
                let corner = Array2::from_elem((1, 1), entry(n, n));
                l.extend(cross.view(), corner).unwrap();
            }
        }
    }

    #[test]
    fn jitter_is_added_to_singular_matrices_and_indefinite_matrices_are_errors() {
        let ones = Array2::from_elem((3, 3), 1.0);
        assert!(fresh(&ones).jitter() > 0.0);
        let mut l = fresh(&Array2::eye(2));
        for bad in [f64::NAN, f64::INFINITY, -1.0] {
            let error = l.extend(Array2::zeros((1, 2)).view(), ndarray::arr2(&[[bad]]));
            assert!(matches!(error, Err(Error::NotPositiveDefinite { .. })));
            assert_eq!(l.len(), 2);
        }
        assert!(matches!(
            l.extend(Array2::zeros((1, 3)).view(), Array2::eye(1)),
            Err(Error::Shape(_))
        ));
    }
}
