//! Covariance functions: values over blocks of points, and derivatives with respect to points and lengthscales.
//!
//! Notation: r² = Σ_d ((x_d − x'_d) / ℓ_d)², k = v·κ(r²), g = dk/d(r²). Points are rows; inside, they are
//! kept scaled by 1/ℓ and transposed, so that the inner loops run over contiguous points and vectorise.

use multiversion::multiversion;
use ndarray::{Array2, ArrayView2, ArrayViewMut2};
use rand_distr::{ChiSquared, Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use crate::domain::Rng;
use crate::elementary::exp_nonpositive;

/// The shape κ of a covariance function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum KernelShape {
    /// κ = exp(−r²/2); also called RBF.
    SquaredExponential,
    /// κ = (1 + √5 r + 5r²/3) exp(−√5 r).
    Matern52,
}

/// A stationary covariance function v·κ with one lengthscale per column (ARD).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kernel {
    pub shape: KernelShape,
    /// ℓ, one per column.
    pub lengthscale: Vec<f64>,
    /// v, the signal variance.
    pub variance: f64,
}

/// Points scaled by 1/ℓ and transposed: column d of point j at `values[d * capacity + j]`.
#[derive(Debug, Clone, Default)]
pub struct ScaledPoints {
    values: Vec<f64>,
    capacity: usize,
    n: usize,
}

impl Kernel {
    /// Number of columns of a point.
    pub fn width(&self) -> usize {
        self.lengthscale.len()
    }

    /// The points, scaled for this kernel.
    pub fn scale(&self, x: ArrayView2<f64>) -> ScaledPoints {
        let mut points = ScaledPoints::default();
        self.append_scaled(&mut points, x);
        points
    }

    /// Appends further points.
    pub fn append_scaled(&self, points: &mut ScaledPoints, x: ArrayView2<f64>) {
        let (d, n) = (self.width(), points.n + x.nrows());
        if n > points.capacity {
            let capacity = n + n / 4 + 8;
            let mut values = vec![0.0; d * capacity];
            for k in 0..d {
                let old = &points.values[k * points.capacity..k * points.capacity + points.n];
                values[k * capacity..k * capacity + points.n].copy_from_slice(old);
            }
            points.values = values;
            points.capacity = capacity;
        }
        for (j, row) in x.rows().into_iter().enumerate() {
            for k in 0..d {
                points.values[k * points.capacity + points.n + j] =
                    scaled(row[k], self.lengthscale[k]);
            }
        }
        points.n = n;
    }

    /// k(z, x_j) for every scaled point j.
    pub fn row(&self, z: &[f64], x: &ScaledPoints, out: &mut [f64]) {
        self.squared_distances(z, x, out);
        match self.shape {
            KernelShape::SquaredExponential => squared_exponential(self.variance, out),
            KernelShape::Matern52 => matern52(self.variance, out),
        }
    }

    /// k(z, x_j) and g(z, x_j) = dk/d(r²) for every scaled point j.
    pub fn row_with_slope(&self, z: &[f64], x: &ScaledPoints, out: &mut [f64], slope: &mut [f64]) {
        self.squared_distances(z, x, out);
        match self.shape {
            KernelShape::SquaredExponential => {
                squared_exponential(self.variance, out);
                // g = −k/2.
                for (g, k) in slope.iter_mut().zip(out.iter()) {
                    *g = -0.5 * k;
                }
            }
            KernelShape::Matern52 => matern52_with_slope(self.variance, out, slope),
        }
    }

    /// The cross-covariance matrix: `out[i, j]` = k(z_i, x_j).
    pub fn cross(&self, z: ArrayView2<f64>, x: &ScaledPoints, mut out: ArrayViewMut2<f64>) {
        let mut point = vec![0.0; self.width()];
        for (row, mut target) in z.rows().into_iter().zip(out.rows_mut()) {
            point.iter_mut().zip(row).for_each(|(p, v)| *p = *v);
            match target.as_slice_mut() {
                Some(target) => self.row(&point, x, target),
                None => unreachable!("covariance blocks have contiguous rows"),
            }
        }
    }

    /// The covariance matrix of points among themselves, exactly symmetric.
    pub fn gram(&self, x: ArrayView2<f64>) -> Array2<f64> {
        let mut out = Array2::zeros((x.nrows(), x.nrows()));
        self.cross(x, &self.scale(x), out.view_mut());
        out
    }

    /// dk(z, x_j)/dz_d = 2 g (z_d − x_jd)/ℓ_d², contracted: `out[d]` = Σ_j weight_j·dk(z, x_j)/dz_d.
    pub fn contract_gradient(
        &self,
        z: &[f64],
        x: &ScaledPoints,
        slope: &[f64],
        weight: &[f64],
        out: &mut [f64],
    ) {
        for (d, (z, l)) in z.iter().zip(&self.lengthscale).enumerate() {
            out[d] = 2.0 / l * weighted_offsets(scaled(*z, *l), x.column(d), slope, weight);
        }
    }

    /// A frequency ω of the spectral density, such that E cos(ωᵀ(x − x')) = κ.
    ///
    /// Squared exponential: Gaussian with sd 1/ℓ; Matérn ν = 5/2: Student t with 2ν = 5 degrees of freedom
    /// (Rasmussen & Williams 2006, eqs. 4.10 and 4.15).
    pub fn spectral_draw(&self, rng: &mut Rng) -> Vec<f64> {
        let spread: f64 = match self.shape {
            KernelShape::SquaredExponential => 1.0,
            KernelShape::Matern52 => {
                let chi_squared: f64 = ChiSquared::new(5.0)
                    .expect("5 degrees of freedom are a positive number")
                    .sample(rng);
                (5.0 / chi_squared).sqrt()
            }
        };
        let normal = |rng: &mut Rng| -> f64 { StandardNormal.sample(rng) };
        self.lengthscale
            .iter()
            .map(|l| spread * normal(rng) / l)
            .collect()
    }

    fn squared_distances(&self, z: &[f64], x: &ScaledPoints, out: &mut [f64]) {
        assert_eq!(out.len(), x.n);
        out.fill(0.0);
        for (d, (z, l)) in z.iter().zip(&self.lengthscale).enumerate() {
            add_squared_offsets(scaled(*z, *l), x.column(d), out);
        }
    }
}

impl ScaledPoints {
    pub fn len(&self) -> usize {
        self.n
    }

    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Forgets all points but the first n.
    pub fn truncate(&mut self, n: usize) {
        self.n = self.n.min(n);
    }

    /// Column d of all points.
    pub fn column(&self, d: usize) -> &[f64] {
        &self.values[d * self.capacity..d * self.capacity + self.n]
    }
}

// The loops below are compiled once per instruction set and chosen at run time. They use no fused
// multiply-add, so that every x86 level gives the same bits.

#[multiversion(targets(
    "x86_64+avx512f+avx512dq+avx512vl+avx2+fma",
    "x86_64+avx2+fma",
    "aarch64+neon"
))]
fn add_squared_offsets(z: f64, x: &[f64], out: &mut [f64]) {
    for (o, x) in out.iter_mut().zip(x) {
        *o += (z - x) * (z - x);
    }
}

#[multiversion(targets(
    "x86_64+avx512f+avx512dq+avx512vl+avx2+fma",
    "x86_64+avx2+fma",
    "aarch64+neon"
))]
fn squared_exponential(variance: f64, r2: &mut [f64]) {
    for k in r2 {
        *k = variance * exp_nonpositive(-0.5 * *k);
    }
}

#[multiversion(targets(
    "x86_64+avx512f+avx512dq+avx512vl+avx2+fma",
    "x86_64+avx2+fma",
    "aarch64+neon"
))]
fn matern52(variance: f64, r2: &mut [f64]) {
    for k in r2 {
        let a = capped((5.0 * *k).sqrt());
        *k = variance * (1.0 + a + a * a / 3.0) * exp_nonpositive(-a);
    }
}

#[multiversion(targets(
    "x86_64+avx512f+avx512dq+avx512vl+avx2+fma",
    "x86_64+avx2+fma",
    "aarch64+neon"
))]
fn matern52_with_slope(variance: f64, r2: &mut [f64], slope: &mut [f64]) {
    for (k, g) in r2.iter_mut().zip(slope) {
        let a = capped((5.0 * *k).sqrt());
        let e = variance * exp_nonpositive(-a);
        *k = (1.0 + a + a * a / 3.0) * e;
        // dk/d(r²) = −(5/6) v (1 + √5 r) exp(−√5 r): finite at r = 0, where dk/dr alone would divide by r.
        *g = -5.0 / 6.0 * (1.0 + a) * e;
    }
}

#[multiversion(targets(
    "x86_64+avx512f+avx512dq+avx512vl+avx2+fma",
    "x86_64+avx2+fma",
    "aarch64+neon"
))]
fn weighted_offsets(z: f64, x: &[f64], slope: &[f64], weight: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let chunks = x
        .chunks_exact(8)
        .zip(slope.chunks_exact(8))
        .zip(weight.chunks_exact(8));
    for ((x, g), w) in chunks {
        for i in 0..8 {
            sums[i] += w[i] * g[i] * (z - x[i]);
        }
    }
    let done = x.len() / 8 * 8;
    let rest = x[done..].iter().zip(&slope[done..]).zip(&weight[done..]);
    sums.iter().sum::<f64>() + rest.map(|((x, g), w)| w * g * (z - x)).sum::<f64>()
}

/// √5 r, cut off where exp(−√5 r) is 0 already: infinity times 0 would be no number.
#[inline(always)]
fn capped(a: f64) -> f64 {
    if a > 1e3 { 1e3 } else { a }
}

/// x/ℓ within the range of a double, so that a point is at distance 0 from itself whatever its size.
fn scaled(x: f64, lengthscale: f64) -> f64 {
    (x / lengthscale).clamp(f64::MIN, f64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
    use rand::SeedableRng;

    fn kernel(shape: KernelShape) -> Kernel {
        Kernel {
            shape,
            lengthscale: vec![0.3, 1.7],
            variance: 2.5,
        }
    }

    #[test]
    fn points_beyond_measure_are_far_from_others_and_at_no_distance_from_themselves() {
        for shape in [KernelShape::SquaredExponential, KernelShape::Matern52] {
            let kernel = Kernel {
                shape,
                lengthscale: vec![0.3, 1e-300],
                variance: 2.5,
            };
            let x = ndarray::arr2(&[[f64::MAX, 1e300], [0.5, f64::MIN], [1e300, 0.5]]);
            let points = kernel.scale(x.view());
            for i in 0..3 {
                let (mut k, mut g) = (vec![0.0; 3], vec![0.0; 3]);
                kernel.row_with_slope(&x.row(i).to_vec(), &points, &mut k, &mut g);
                for j in 0..3 {
                    assert_eq!(k[j], if i == j { 2.5 } else { 0.0 });
                    assert!(i == j || g[j] == 0.0);
                }
            }
        }
    }

    /// The textbook formula, with the standard library's exp.
    fn direct(kernel: &Kernel, a: &[f64], b: &[f64]) -> f64 {
        let r2: f64 = (0..a.len())
            .map(|d| ((a[d] - b[d]) / kernel.lengthscale[d]).powi(2))
            .sum();
        match kernel.shape {
            KernelShape::SquaredExponential => kernel.variance * (-0.5 * r2).exp(),
            KernelShape::Matern52 => {
                let a = (5.0 * r2).sqrt();
                kernel.variance * (1.0 + a + 5.0 / 3.0 * r2) * (-a).exp()
            }
        }
    }

    proptest! {
        #[test]
        fn blocks_follow_the_formula(seed in 0u64..1000, n in 1usize..20) {
            let x = Array2::from_shape_fn((n, 2), |(i, d)| ((seed as f64 + i as f64) * (1.3 + d as f64)).sin());
            for shape in [KernelShape::SquaredExponential, KernelShape::Matern52] {
                let kernel = kernel(shape);
                let gram = kernel.gram(x.view());
                for i in 0..n {
                    for j in 0..n {
                        let expected = direct(&kernel, x.row(i).as_slice().unwrap(), x.row(j).as_slice().unwrap());
                        prop_assert!((gram[[i, j]] - expected).abs() <= 1e-13 * kernel.variance);
                        prop_assert_eq!(gram[[i, j]], gram[[j, i]]);
                    }
                }
            }
        }

        #[test]
        fn gradients_are_finite_differences(a in -1.0f64..1.0, b in -1.0f64..1.0) {
            for shape in [KernelShape::SquaredExponential, KernelShape::Matern52] {
                let kernel = kernel(shape);
                let x = ndarray::arr2(&[[0.1, -0.4], [0.5, 0.9], [a, b]]);
                let points = kernel.scale(x.view());
                let (z, w) = ([a, b], [0.7, -1.1, 0.4]);
                let (mut k, mut g, mut gradient) = ([0.0; 3], [0.0; 3], [0.0; 2]);
                kernel.row_with_slope(&z, &points, &mut k, &mut g);
                kernel.contract_gradient(&z, &points, &g, &w, &mut gradient);
                for d in 0..2 {
                    let value = |step: f64| {
                        let mut z = z;
                        z[d] += step;
                        (0..3).map(|j| w[j] * direct(&kernel, &z, x.row(j).as_slice().unwrap())).sum::<f64>()
                    };
                    let h = 1e-5;
                    prop_assert!((gradient[d] - (value(h) - value(-h)) / (2.0 * h)).abs() < 1e-6);
                }
            }
        }
    }

    #[test]
    fn appended_points_equal_points_scaled_at_once() {
        let kernel = kernel(KernelShape::Matern52);
        let x = Array2::from_shape_fn((50, 2), |(i, d)| (i * 2 + d) as f64);
        let mut grown = ScaledPoints::default();
        for row in x.rows() {
            kernel.append_scaled(&mut grown, row.insert_axis(ndarray::Axis(0)));
        }
        let whole = kernel.scale(x.view());
        assert!((0..2).all(|d| grown.column(d) == whole.column(d)));
    }

    #[test]
    fn spectral_draws_average_to_the_kernel() {
        let mut rng = Rng::seed_from_u64(7);
        for shape in [KernelShape::SquaredExponential, KernelShape::Matern52] {
            let kernel = kernel(shape);
            let offset = [0.2, 0.8];
            let n = 40_000;
            let mean: f64 = (0..n)
                .map(|_| {
                    let omega = kernel.spectral_draw(&mut rng);
                    (omega[0] * offset[0] + omega[1] * offset[1]).cos()
                })
                .sum::<f64>()
                / n as f64;
            let expected = direct(&kernel, &offset, &[0.0, 0.0]) / kernel.variance;
            // 5 standard errors of a mean of cosines.
            assert!(
                (mean - expected).abs() < 5.0 / (n as f64).sqrt(),
                "{mean} {expected}"
            );
        }
    }
}
