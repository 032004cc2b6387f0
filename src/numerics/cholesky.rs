//! Dense linear algebra with the crate `faer`: Cholesky factors, triangular solves, inverses and products.
//!
//! Notation: A = L Lᵀ is n × n. A *block of right-hand sides* is an array with one row per right-hand side, shape (N,
//! n). The rows of such a row-major array are contiguous columns for faer. Large factors and inverses are computed on
//! the thread pool of the process, all else on the calling thread. The bits do not depend on the number of threads.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::{factor, inverse};
use faer::linalg::matmul::{matmul, triangular};
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place, solve_upper_triangular_in_place,
};
use faer::{Accum, MatMut, MatRef, Par};
use ndarray::{Array2, ArrayView2, ArrayViewMut2};

use crate::numerics::threads::pool;

pub use super::simd::{dot, sum};

/// The smallest number of rows for which a factor or an inverse is computed on several threads.
const FACTOR_THREADS_FROM: usize = 700;
const INVERSE_THREADS_FROM: usize = 300;

/// Replaces the lower triangle of a column-major A (the upper triangle of a row-major A) by L. An error is the index of
/// the failed pivot.
pub(crate) fn factor_in_place(a: &mut Array2<f64>) -> Result<(), usize> {
    let n = a.nrows();
    assert_eq!(n, a.ncols(), "faer accepts other shapes without an error");
    with_threads(n >= FACTOR_THREADS_FROM, |par| {
        let scratch = factor::cholesky_in_place_scratch::<f64>(n, par, Default::default());
        factor::cholesky_in_place(
            as_columns_mut(a.view_mut()),
            Default::default(),
            par,
            MemStack::new(&mut MemBuffer::new(scratch)),
            Default::default(),
        )
        .map(|_| ())
        .map_err(|factor::LltError::NonPositivePivot { index }| index)
    })
}

/// A view of a factor L.
#[derive(Clone, Copy)]
pub(crate) struct LowerFactor<'a>(MatRef<'a, f64>);

impl<'a> LowerFactor<'a> {
    /// Returns a view of the factor that `factor_in_place` stored in an array.
    pub fn of(factored: &'a Array2<f64>) -> Self {
        Self(as_columns(factored.view()))
    }

    /// Returns a view of L (n, n), which is stored in columns with distance `stride`.
    pub fn in_columns(buffer: &'a [f64], n: usize, stride: usize) -> Self {
        Self(MatRef::from_column_major_slice_with_stride(
            buffer, n, n, stride,
        ))
    }

    /// Replaces every row r of the block by L⁻¹ r.
    pub fn forward_substitution(self, block: ArrayViewMut2<f64>) {
        solve_lower_triangular_in_place(self.0, as_columns_mut(block), Par::Seq);
    }

    /// Replaces every row r of the block by L⁻ᵀ r.
    pub fn backward_substitution(self, block: ArrayViewMut2<f64>) {
        solve_upper_triangular_in_place(self.0.transpose(), as_columns_mut(block), Par::Seq);
    }

    /// Replaces every row r of `out` by L r, where r is the same row of `block`. Both have shape (N, n).
    pub fn multiply(self, block: ArrayView2<f64>, mut out: ArrayViewMut2<f64>) {
        triangular::matmul(
            as_columns_mut(out.view_mut()),
            triangular::BlockStructure::Rectangular,
            Accum::Replace,
            self.0,
            triangular::BlockStructure::TriangularLower,
            as_columns(block),
            triangular::BlockStructure::Rectangular,
            1.0,
            Par::Seq,
        );
    }

    /// Writes the entries [i, j] of A⁻¹ with j ≥ i to `out`, and leaves the other entries unchanged.
    pub fn invert_half(self, out: &mut Array2<f64>) {
        let n = self.0.nrows();
        if n == 0 {
            return;
        }
        with_threads(n >= INVERSE_THREADS_FROM, |par| {
            let mut memory = MemBuffer::new(inverse::inverse_scratch::<f64>(n, par));
            let columns = as_columns_mut(out.view_mut());
            inverse::inverse(columns, self.0, par, MemStack::new(&mut memory));
        });
    }
}

/// Computes `out` (N, M) = left rightᵀ, where left has shape (N, k) and right has shape (M, k).
pub fn multiply_transposed(
    left: ArrayView2<f64>,
    right: ArrayView2<f64>,
    mut out: ArrayViewMut2<f64>,
) {
    matmul(
        as_columns_mut(out.view_mut()),
        Accum::Replace,
        as_columns(right).transpose(),
        as_columns(left),
        1.0,
        Par::Seq,
    );
}

/// Subtracts `rows` `rows`ᵀ, where `rows` has shape (m, n), from the entries [i, j] of `out` (m, m) with j ≥ i. The
/// other entries are unchanged.
pub(crate) fn subtract_gram_of_rows(rows: ArrayView2<f64>, mut out: ArrayViewMut2<f64>) {
    let rows = as_columns(rows);
    triangular::matmul(
        as_columns_mut(out.view_mut()),
        triangular::BlockStructure::TriangularLower,
        Accum::Add,
        rows.transpose(),
        triangular::BlockStructure::Rectangular,
        rows,
        triangular::BlockStructure::Rectangular,
        -1.0,
        Par::Seq,
    );
}

/// Returns the Gram matrix leftᵀ left of the columns of `left` (N, k), as a symmetric (k, k) array.
pub fn gram(left: ArrayView2<f64>) -> Array2<f64> {
    let k = left.ncols();
    let mut out = Array2::zeros((k, k));
    let columns = as_columns(left);
    triangular::matmul(
        as_columns_mut(out.view_mut()),
        triangular::BlockStructure::TriangularLower,
        Accum::Replace,
        columns,
        triangular::BlockStructure::Rectangular,
        columns.transpose(),
        triangular::BlockStructure::Rectangular,
        1.0,
        Par::Seq,
    );
    for i in 0..k {
        for j in 0..i {
            out[[i, j]] = out[[j, i]];
        }
    }
    out
}

/// Runs a computation on several threads if `worthwhile`, and otherwise on one.
fn with_threads<T: Send>(worthwhile: bool, run: impl FnOnce(Par) -> T + Send) -> T {
    match pool().filter(|_| worthwhile) {
        Some(pool) => pool.install(|| run(Par::rayon(0))),
        None => run(Par::Seq),
    }
}

/// Returns the rows of a view as the columns of a faer matrix. There may be gaps between the rows in memory.
fn as_columns(a: ArrayView2<'_, f64>) -> MatRef<'_, f64> {
    let (rows, width) = a.dim();
    let [row_stride, column_stride] = [a.strides()[0], a.strides()[1]];
    // SAFETY: an ndarray view is valid for exactly this shape and these strides.
    unsafe { MatRef::from_raw_parts(a.as_ptr(), width, rows, column_stride, row_stride) }
}

fn as_columns_mut(mut a: ArrayViewMut2<'_, f64>) -> MatMut<'_, f64> {
    let (rows, width) = a.dim();
    let [row_stride, column_stride] = [a.strides()[0], a.strides()[1]];
    // SAFETY: as in `as_columns`; the view is also exclusive for this lifetime.
    unsafe { MatMut::from_raw_parts_mut(a.as_mut_ptr(), width, rows, column_stride, row_stride) }
}

#[cfg(test)]
mod tests {
    use super::super::growing_cholesky::tests::positive_definite;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_inverse_times_the_matrix_is_the_identity(n in 1usize..80, seed in 0u64..1000) {
            let a = positive_definite(n, seed);
            let (mut l, mut inverse) = (a.clone(), Array2::zeros((n, n)));
            factor_in_place(&mut l).unwrap();
            LowerFactor::of(&l).invert_half(&mut inverse);
            for i in 0..n {
                for j in 0..i {
                    inverse[[i, j]] = inverse[[j, i]];
                }
            }
            prop_assert!((inverse.dot(&a) - Array2::<f64>::eye(n)).iter().all(|e| e.abs() < 1e-9));
        }
    }

    #[test]
    fn the_number_of_threads_does_not_change_a_bit() {
        for n in [INVERSE_THREADS_FROM + 37, FACTOR_THREADS_FROM + 37] {
            let a = positive_definite(n, 5);
            let alone = |par: Par| {
                let (mut l, mut inverse) = (a.clone(), Array2::zeros((n, n)));
                let scratch = factor::cholesky_in_place_scratch::<f64>(n, par, Default::default())
                    .or(inverse::inverse_scratch::<f64>(n, par));
                let mut memory = MemBuffer::new(scratch);
                let stack = MemStack::new(&mut memory);
                let columns = as_columns_mut(l.view_mut());
                factor::cholesky_in_place(
                    columns,
                    Default::default(),
                    par,
                    stack,
                    Default::default(),
                )
                .unwrap();
                let columns = as_columns_mut(inverse.view_mut());
                inverse::inverse(columns, as_columns(l.view()), par, stack);
                (l, inverse)
            };
            let (l, inverse) = alone(Par::Seq);
            assert!((l, inverse) == alone(Par::rayon(2)));
        }
    }
}
