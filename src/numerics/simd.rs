//! Vectorised loops and triangular solves with the same bits on every machine.
//!
//! `#[multiversion]` compiles each function once per instruction set and selects one at run time. Without fused
//! multiply-add, and with each sum in eight interleaved parts, the bits are the same for every instruction set.

pub(crate) use multiversion::multiversion;

/// Returns Σ_i a_i b_i.
#[multiversion(targets = "simd")]
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (a8, a_rest) = a.as_chunks::<8>();
    let (b8, b_rest) = b.as_chunks::<8>();
    for (a, b) in a8.iter().zip(b8) {
        for i in 0..8 {
            sums[i] += a[i] * b[i];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f64>() + rest
}

/// Returns Σ_i a_i b_i for four vectors a, with the same bits as [`dot`], and reads b once.
#[multiversion(targets = "simd")]
pub fn dot_four(a: [&[f64]; 4], b: &[f64]) -> [f64; 4] {
    let mut sums = [[0.0; 8]; 4];
    let (b8, b_rest) = b.as_chunks::<8>();
    let (a0, a0_rest) = a[0].as_chunks::<8>();
    let (a1, a1_rest) = a[1].as_chunks::<8>();
    let (a2, a2_rest) = a[2].as_chunks::<8>();
    let (a3, a3_rest) = a[3].as_chunks::<8>();
    let vectors = a0.iter().zip(a1).zip(a2).zip(a3);
    for (b, (((a0, a1), a2), a3)) in b8.iter().zip(vectors) {
        for i in 0..8 {
            sums[0][i] += a0[i] * b[i];
            sums[1][i] += a1[i] * b[i];
            sums[2][i] += a2[i] * b[i];
            sums[3][i] += a3[i] * b[i];
        }
    }
    let mut totals = [0.0; 4];
    let rests = [a0_rest, a1_rest, a2_rest, a3_rest];
    for ((total, sums), rest) in totals.iter_mut().zip(sums).zip(rests) {
        let rest: f64 = rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
        *total = sums.iter().sum::<f64>() + rest;
    }
    totals
}

/// Returns Σ_i a_i.
#[multiversion(targets = "simd")]
pub fn sum(a: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (a8, a_rest) = a.as_chunks::<8>();
    for a in a8 {
        for i in 0..8 {
            sums[i] += a[i];
        }
    }
    sums.iter().sum::<f64>() + a_rest.iter().sum::<f64>()
}

/// Computes out_i += factor·x_i.
#[multiversion(targets = "simd")]
pub fn add_multiple(factor: f64, x: &[f64], out: &mut [f64]) {
    for (o, x) in out.iter_mut().zip(x) {
        *o += factor * x;
    }
}

/// Computes out_i *= x_i.
#[multiversion(targets = "simd")]
pub fn multiply(x: &[f64], out: &mut [f64]) {
    for (o, x) in out.iter_mut().zip(x) {
        *o *= x;
    }
}

/// Computes out_i += (a − x_i)².
#[multiversion(targets = "simd")]
pub fn add_squared_differences(a: f64, x: &[f64], out: &mut [f64]) {
    for (o, x) in out.iter_mut().zip(x) {
        *o += (a - x) * (a - x);
    }
}

/// Computes out_i = x_i − factor·y_i.
#[multiversion(targets = "simd")]
pub fn difference_to_multiple(x: &[f64], factor: f64, y: &[f64], out: &mut [f64]) {
    for ((o, y), x) in out.iter_mut().zip(y).zip(x) {
        *o = x - factor * y;
    }
}

/// Returns Σ_i v_i w_i (a − x_i).
#[multiversion(targets = "simd")]
pub fn weighted_differences(a: f64, x: &[f64], w: &[f64], v: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (x8, x_rest) = x.as_chunks::<8>();
    let (w8, w_rest) = w.as_chunks::<8>();
    let (v8, v_rest) = v.as_chunks::<8>();
    for ((x, w), v) in x8.iter().zip(w8).zip(v8) {
        for i in 0..8 {
            sums[i] += v[i] * w[i] * (a - x[i]);
        }
    }
    let rest = x_rest.iter().zip(w_rest).zip(v_rest);
    sums.iter().sum::<f64>() + rest.map(|((x, w), v)| v * w * (a - x)).sum::<f64>()
}

/// Returns Σ_i w_i (a − x_i)².
#[multiversion(targets = "simd")]
pub fn weighted_squared_differences(a: f64, x: &[f64], w: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (x8, x_rest) = x.as_chunks::<8>();
    let (w8, w_rest) = w.as_chunks::<8>();
    for (x, w) in x8.iter().zip(w8) {
        for i in 0..8 {
            let weighted = w[i] * (a - x[i]);
            sums[i] += weighted * (a - x[i]);
        }
    }
    let rest = x_rest.iter().zip(w_rest);
    sums.iter().sum::<f64>() + rest.map(|(x, w)| w * (a - x) * (a - x)).sum::<f64>()
}

/// The number of columns of L for which a substitution reads and writes the vector once.
const COLUMNS: usize = 4;

/// Replaces b by L⁻¹ b. The columns of L are stored with distance `stride`.
#[multiversion(targets = "simd")]
pub fn substitute_forward(l: &[f64], stride: usize, b: &mut [f64]) {
    let n = b.len();
    let whole = n - n % COLUMNS;
    for first in (0..whole).step_by(COLUMNS) {
        let [l0, l1, l2, l3] = four_columns(l, stride, first, n);
        let b = &mut b[first..];
        let b0 = b[0] * (1.0 / l0[0]);
        let b1 = (b[1] - l0[1] * b0) * (1.0 / l1[1]);
        let b2 = (b[2] - l0[2] * b0 - l1[2] * b1) * (1.0 / l2[2]);
        let b3 = (b[3] - l0[3] * b0 - l1[3] * b1 - l2[3] * b2) * (1.0 / l3[3]);
        b[..COLUMNS].copy_from_slice(&[b0, b1, b2, b3]);
        let columns = l0[4..].iter().zip(&l1[4..]).zip(&l2[4..]).zip(&l3[4..]);
        for (b, (((l0, l1), l2), l3)) in b[4..].iter_mut().zip(columns) {
            *b -= (l0 * b0 + l1 * b1) + (l2 * b2 + l3 * b3);
        }
    }
    for j in whole..n {
        let column = &l[j * stride..j * stride + n];
        b[j] /= column[j];
        let r = b[j];
        for (b, l) in b[j + 1..].iter_mut().zip(&column[j + 1..]) {
            *b -= r * l;
        }
    }
}

/// Replaces b by L⁻ᵀ b. The columns of L are stored with distance `stride`.
#[multiversion(targets = "simd")]
pub fn substitute_backward(l: &[f64], stride: usize, b: &mut [f64]) {
    let n = b.len();
    let whole = n - n % COLUMNS;
    for j in (whole..n).rev() {
        let column = &l[j * stride..j * stride + n];
        for i in j + 1..n {
            b[j] -= column[i] * b[i];
        }
        b[j] /= column[j];
    }
    for first in (0..whole).step_by(COLUMNS).rev() {
        let [l0, l1, l2, l3] = four_columns(l, stride, first, n);
        let b = &mut b[first..];
        let [s0, s1, s2, s3] = four_dots([&l0[4..], &l1[4..], &l2[4..], &l3[4..]], &b[4..]);
        let b3 = (b[3] - s3) * (1.0 / l3[3]);
        let b2 = (b[2] - s2 - l2[3] * b3) * (1.0 / l2[2]);
        let b1 = (b[1] - s1 - l1[3] * b3 - l1[2] * b2) * (1.0 / l1[1]);
        let b0 = (b[0] - s0 - l0[3] * b3 - l0[2] * b2 - l0[1] * b1) * (1.0 / l0[0]);
        b[..COLUMNS].copy_from_slice(&[b0, b1, b2, b3]);
    }
}

/// Returns Σ_i l_i b_i for four columns l, each in eight interleaved sums.
///
/// Closures would not be compiled for the caller's instruction set, so the function does not use closures.
#[inline(always)]
fn four_dots(l: [&[f64]; COLUMNS], b: &[f64]) -> [f64; COLUMNS] {
    let mut sums = [[0.0; 8]; COLUMNS];
    let (b8, b_rest) = b.as_chunks::<8>();
    let (l0, l0_rest) = l[0].as_chunks::<8>();
    let (l1, l1_rest) = l[1].as_chunks::<8>();
    let (l2, l2_rest) = l[2].as_chunks::<8>();
    let (l3, l3_rest) = l[3].as_chunks::<8>();
    let columns = l0.iter().zip(l1).zip(l2).zip(l3);
    for (b, (((l0, l1), l2), l3)) in b8.iter().zip(columns) {
        for i in 0..8 {
            sums[0][i] += l0[i] * b[i];
            sums[1][i] += l1[i] * b[i];
            sums[2][i] += l2[i] * b[i];
            sums[3][i] += l3[i] * b[i];
        }
    }
    let mut totals = [0.0; COLUMNS];
    let rests = l0_rest.iter().zip(l1_rest).zip(l2_rest).zip(l3_rest);
    for (b, (((l0, l1), l2), l3)) in b_rest.iter().zip(rests) {
        totals[0] += l0 * b;
        totals[1] += l1 * b;
        totals[2] += l2 * b;
        totals[3] += l3 * b;
    }
    for (total, sums) in totals.iter_mut().zip(sums) {
        for s in sums {
            *total += s;
        }
    }
    totals
}

/// Returns four columns of L from column `first` on, each from the diagonal block to row n.
#[inline(always)]
fn four_columns(l: &[f64], stride: usize, first: usize, n: usize) -> [&[f64]; COLUMNS] {
    let columns = &l[first * stride..];
    [
        &columns[first..n],
        &columns[stride + first..stride + n],
        &columns[2 * stride + first..2 * stride + n],
        &columns[3 * stride + first..3 * stride + n],
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_dot_products_equal_single_dot_products() {
        let vector = |k: usize, n: usize| -> Vec<f64> {
            (0..n).map(|i| ((7 * i + 31 * k) as f64).sin()).collect()
        };
        for n in [0, 5, 8, 131] {
            let a = [0, 1, 2, 3].map(|k| vector(k, n));
            let b = vector(4, n);
            let single = [0, 1, 2, 3].map(|k| dot(&a[k], &b));
            assert_eq!(dot_four([&a[0], &a[1], &a[2], &a[3]], &b), single);
        }
    }
}
