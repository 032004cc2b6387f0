//! Covariance functions: values over blocks of points, and derivatives with respect to points and lengthscales.
//!
//! Notation: x̃ = x/ℓ, q = |x̃ − x̃'|² = r² for stationary shapes and x̃ᵀx̃' for the linear one, k = v·κ(q), g = dk/dq.
//! Points are rows; inside, they are kept scaled and transposed, so that the inner loops run over contiguous points
//! and vectorise.

use multiversion::multiversion;
use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut2};
use rand_distr::{ChiSquared, Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use crate::numerics::cholesky::dot;
use crate::numerics::special::exp_nonpositive;
use crate::random::Rng;

/// The shape κ of a covariance function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KernelFamily {
    /// κ = exp(−r²/2); also called RBF.
    SquaredExponential,
    /// κ = (1 + √5 r + 5r²/3) exp(−√5 r).
    Matern52,
    /// κ = (1 + √3 r) exp(−√3 r).
    Matern32,
    /// κ = exp(−r); also called Ornstein–Uhlenbeck.
    Matern12,
    /// κ = 1 + x̃ᵀx̃': functions that are straight in x, with a constant.
    Linear,
}

impl KernelFamily {
    /// All of them.
    pub const ALL: [KernelFamily; 5] = [
        KernelFamily::SquaredExponential,
        KernelFamily::Matern52,
        KernelFamily::Matern32,
        KernelFamily::Matern12,
        KernelFamily::Linear,
    ];
}

/// A covariance function v·κ with one lengthscale per column (ARD).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kernel {
    pub family: KernelFamily,
    /// ℓ, one per column.
    pub lengthscale: Vec<f64>,
    /// v, the signal variance.
    pub signal_variance: f64,
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
                    self.scaled(row[k], self.lengthscale[k]);
            }
        }
        points.n = n;
    }

    /// k(z, x_j) for every scaled point j.
    pub fn row(&self, z: &[f64], x: &ScaledPoints, out: &mut [f64]) {
        self.row_from(z, x, 0, out);
    }

    /// k(z, x_j) for every scaled point j from the given one on.
    pub fn row_from(&self, z: &[f64], x: &ScaledPoints, from: usize, out: &mut [f64]) {
        self.arguments(z, x, from, out);
        match self.family {
            KernelFamily::SquaredExponential => squared_exponential(self.signal_variance, out),
            KernelFamily::Matern52 => matern52(self.signal_variance, out),
            KernelFamily::Matern32 => matern32(self.signal_variance, out),
            KernelFamily::Matern12 => matern12(self.signal_variance, out),
            KernelFamily::Linear => linear(self.signal_variance, out),
        }
    }

    /// k(z, x_j) and g(z, x_j) for every scaled point j.
    pub fn row_with_slope(&self, z: &[f64], x: &ScaledPoints, out: &mut [f64], slope: &mut [f64]) {
        self.row_with_slope_from(z, x, 0, out, slope);
    }

    /// k(z, x_j) and g(z, x_j) for every scaled point j from the given one on.
    pub fn row_with_slope_from(
        &self,
        z: &[f64],
        x: &ScaledPoints,
        from: usize,
        out: &mut [f64],
        slope: &mut [f64],
    ) {
        self.arguments(z, x, from, out);
        match self.family {
            KernelFamily::SquaredExponential => {
                squared_exponential(self.signal_variance, out);
                // g = −k/2.
                for (g, k) in slope.iter_mut().zip(out.iter()) {
                    *g = -0.5 * k;
                }
            }
            KernelFamily::Matern52 => matern52_with_slope(self.signal_variance, out, slope),
            KernelFamily::Matern32 => matern32_with_slope(self.signal_variance, out, slope),
            KernelFamily::Matern12 => matern12_with_slope(self.signal_variance, out, slope),
            KernelFamily::Linear => {
                linear(self.signal_variance, out);
                slope.fill(self.signal_variance);
            }
        }
    }

    /// k(z, z): v, but for the linear shape.
    pub fn prior_variance(&self, z: ArrayView1<f64>) -> f64 {
        match self.family {
            KernelFamily::Linear => {
                let squares = z.iter().zip(&self.lengthscale);
                let squares = squares.map(|(z, l)| self.scaled(*z, *l).powi(2));
                self.signal_variance * (1.0 + squares.sum::<f64>())
            }
            _ => self.signal_variance,
        }
    }

    /// Adds `weight`·dk(z, z)/dz, which is 0 where k depends on differences alone.
    pub fn add_prior_gradient(&self, z: &[f64], weight: f64, gradient: &mut [f64]) {
        if self.family == KernelFamily::Linear {
            for ((g, z), l) in gradient.iter_mut().zip(z).zip(&self.lengthscale) {
                *g += weight * 2.0 * self.signal_variance * self.scaled(*z, *l) / l;
            }
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

    /// `out[d]` = Σ_j weight_j·dk(z, x_j)/dz_d, with dk/dz_d = 2 g (z̃_d − x̃_jd)/ℓ_d, or g x̃_jd/ℓ_d if linear.
    pub fn contract_gradient(
        &self,
        z: &[f64],
        x: &ScaledPoints,
        slope: &[f64],
        weight: &[f64],
        out: &mut [f64],
    ) {
        for (d, (z, l)) in z.iter().zip(&self.lengthscale).enumerate() {
            out[d] = match self.family {
                KernelFamily::Linear => -weighted_offsets(0.0, x.column(d), slope, weight) / l,
                _ => 2.0 / l * weighted_offsets(self.scaled(*z, *l), x.column(d), slope, weight),
            };
        }
    }

    /// −½ Σ_j weight_j·dk(x_0, x_j)/d log ℓ_d over the entries of one column d, with w_j = weight_j·g(x_0, x_j) given:
    /// dk/d log ℓ_d = −2 g (x̃_0d − x̃_jd)², or −2 g x̃_0d x̃_jd if linear.
    pub fn contract_lengthscale(&self, column: &[f64], w: &[f64]) -> f64 {
        match self.family {
            KernelFamily::Linear => column[0] * dot(column, w),
            _ => weighted_squares(column[0], column, w),
        }
    }

    /// A frequency ω of the spectral density, such that E cos(ωᵀ(x − x')) = κ.
    ///
    /// Squared exponential: Gaussian with sd 1/ℓ; Matérn ν: Student t with 2ν degrees of freedom
    /// (Rasmussen & Williams 2006, eqs. 4.10 and 4.15). The linear kernel has none.
    pub fn spectral_draw(&self, rng: &mut Rng) -> Option<Vec<f64>> {
        let student = |freedom: f64, rng: &mut Rng| {
            let chi_squared = ChiSquared::new(freedom)
                .expect("degrees of freedom are a positive number")
                .sample(rng);
            (freedom / chi_squared).sqrt()
        };
        let spread = match self.family {
            KernelFamily::SquaredExponential => 1.0,
            KernelFamily::Matern52 => student(5.0, rng),
            KernelFamily::Matern32 => student(3.0, rng),
            KernelFamily::Matern12 => student(1.0, rng),
            KernelFamily::Linear => return None,
        };
        let normal = |rng: &mut Rng| -> f64 { StandardNormal.sample(rng) };
        let omega = self.lengthscale.iter().map(|l| spread * normal(rng) / l);
        Some(omega.collect())
    }

    /// x/ℓ within the range of a double, so that a point is at distance 0 from itself whatever its size, and
    /// products of the linear kernel stay finite.
    fn scaled(&self, x: f64, lengthscale: f64) -> f64 {
        let most = match self.family {
            KernelFamily::Linear => 1e100,
            _ => f64::MAX,
        };
        (x / lengthscale).clamp(-most, most)
    }

    /// q(z, x_j) for every scaled point j from the given one on.
    fn arguments(&self, z: &[f64], x: &ScaledPoints, from: usize, out: &mut [f64]) {
        assert_eq!(from + out.len(), x.n);
        out.fill(0.0);
        for (d, (z, l)) in z.iter().zip(&self.lengthscale).enumerate() {
            match self.family {
                KernelFamily::Linear => {
                    add_multiple(self.scaled(*z, *l), &x.column(d)[from..], out)
                }
                _ => add_squared_offsets(self.scaled(*z, *l), &x.column(d)[from..], out),
            }
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
fn matern32(variance: f64, r2: &mut [f64]) {
    for k in r2 {
        let a = capped((3.0 * *k).sqrt());
        *k = variance * (1.0 + a) * exp_nonpositive(-a);
    }
}

#[multiversion(targets(
    "x86_64+avx512f+avx512dq+avx512vl+avx2+fma",
    "x86_64+avx2+fma",
    "aarch64+neon"
))]
fn matern32_with_slope(variance: f64, r2: &mut [f64], slope: &mut [f64]) {
    for (k, g) in r2.iter_mut().zip(slope) {
        let a = capped((3.0 * *k).sqrt());
        let e = variance * exp_nonpositive(-a);
        *k = (1.0 + a) * e;
        // dk/d(r²) = −(3/2) v exp(−√3 r)
        *g = -1.5 * e;
    }
}

#[multiversion(targets(
    "x86_64+avx512f+avx512dq+avx512vl+avx2+fma",
    "x86_64+avx2+fma",
    "aarch64+neon"
))]
fn matern12(variance: f64, r2: &mut [f64]) {
    for k in r2 {
        *k = variance * exp_nonpositive(-capped(k.sqrt()));
    }
}

#[multiversion(targets(
    "x86_64+avx512f+avx512dq+avx512vl+avx2+fma",
    "x86_64+avx2+fma",
    "aarch64+neon"
))]
fn matern12_with_slope(variance: f64, r2: &mut [f64], slope: &mut [f64]) {
    for (k, g) in r2.iter_mut().zip(slope) {
        let r = capped(k.sqrt());
        *k = variance * exp_nonpositive(-r);
        // dk/d(r²) = −k/(2r). The kernel has a kink at r = 0; what multiplies this is 0 there, and must stay so.
        *g = -0.5 * *k / if r > 1e-30 { r } else { 1e-30 };
    }
}

#[multiversion(targets(
    "x86_64+avx512f+avx512dq+avx512vl+avx2+fma",
    "x86_64+avx2+fma",
    "aarch64+neon"
))]
fn linear(variance: f64, products: &mut [f64]) {
    for k in products {
        *k = variance * (1.0 + *k);
    }
}

/// out += z·x.
#[multiversion(targets(
    "x86_64+avx512f+avx512dq+avx512vl+avx2+fma",
    "x86_64+avx2+fma",
    "aarch64+neon"
))]
pub(crate) fn add_multiple(z: f64, x: &[f64], out: &mut [f64]) {
    for (o, x) in out.iter_mut().zip(x) {
        *o += z * x;
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

/// Σ_j w_j (a − x_j)².
#[multiversion(targets(
    "x86_64+avx512f+avx512dq+avx512vl+avx2+fma",
    "x86_64+avx2+fma",
    "aarch64+neon"
))]
fn weighted_squares(a: f64, x: &[f64], w: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let ((x8, x_rest), (w8, w_rest)) = (x.as_chunks::<8>(), w.as_chunks::<8>());
    for (x, w) in x8.iter().zip(w8) {
        for i in 0..8 {
            sums[i] += w[i] * (a - x[i]) * (a - x[i]);
        }
    }
    let rest = x_rest.iter().zip(w_rest);
    sums.iter().sum::<f64>() + rest.map(|(x, w)| w * (a - x) * (a - x)).sum::<f64>()
}

/// r and its multiples, cut off where their exponential is 0 already: infinity times 0 would be no number.
#[inline(always)]
fn capped(a: f64) -> f64 {
    if a > 1e3 { 1e3 } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert, prop_assert_eq, prop_assume, proptest};
    use rand::SeedableRng;

    fn kernel(family: KernelFamily) -> Kernel {
        Kernel {
            family,
            lengthscale: vec![0.3, 1.7],
            signal_variance: 2.5,
        }
    }

    #[test]
    fn points_beyond_measure_are_far_from_others_and_at_no_distance_from_themselves() {
        for family in KernelFamily::ALL {
            if family == KernelFamily::Linear {
                continue;
            }
            let kernel = Kernel {
                family,
                lengthscale: vec![0.3, 1e-300],
                signal_variance: 2.5,
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
        match kernel.family {
            KernelFamily::SquaredExponential => kernel.signal_variance * (-0.5 * r2).exp(),
            KernelFamily::Matern52 => {
                let a = (5.0 * r2).sqrt();
                kernel.signal_variance * (1.0 + a + 5.0 / 3.0 * r2) * (-a).exp()
            }
            KernelFamily::Matern32 => {
                let a = (3.0 * r2).sqrt();
                kernel.signal_variance * (1.0 + a) * (-a).exp()
            }
            KernelFamily::Matern12 => kernel.signal_variance * (-r2.sqrt()).exp(),
            KernelFamily::Linear => {
                let l = &kernel.lengthscale;
                let products = (0..a.len()).map(|d| a[d] * b[d] / (l[d] * l[d]));
                kernel.signal_variance * (1.0 + products.sum::<f64>())
            }
        }
    }

    proptest! {
        #[test]
        fn blocks_follow_the_formula(seed in 0u64..1000, n in 1usize..20) {
            let x = Array2::from_shape_fn((n, 2), |(i, d)| ((seed as f64 + i as f64) * (1.3 + d as f64)).sin());
            for family in KernelFamily::ALL {
                let kernel = kernel(family);
                let gram = kernel.gram(x.view());
                for i in 0..n {
                    for j in 0..n {
                        let expected = direct(&kernel, x.row(i).as_slice().unwrap(), x.row(j).as_slice().unwrap());
                        prop_assert!((gram[[i, j]] - expected).abs() <= 1e-13 * kernel.signal_variance);
                        prop_assert_eq!(gram[[i, j]], gram[[j, i]]);
                    }
                }
            }
        }

        #[test]
        fn gradients_are_finite_differences(a in -1.0f64..1.0, b in -1.0f64..1.0) {
            for family in KernelFamily::ALL {
                let kernel = kernel(family);
                let x = ndarray::arr2(&[[0.1, -0.4], [0.5, 0.9], [a, b]]);
                let points = kernel.scale(x.view());
                // The last row is at z: no kernel but the roughest has a kink there.
                let w = [0.7, -1.1, if family == KernelFamily::Matern12 { 0.0 } else { 0.4 }];
                let z = [a, b];
                let (mut k, mut g, mut gradient) = ([0.0; 3], [0.0; 3], [0.0; 2]);
                kernel.row_with_slope(&z, &points, &mut k, &mut g);
                kernel.contract_gradient(&z, &points, &g, &w, &mut gradient);
                for d in 0..2 {
                    let value = |step: f64| {
                        let mut z = z;
                        z[d] += step;
                        (0..3).map(|j| w[j] * direct(&kernel, &z, x.row(j).as_slice().unwrap())).sum::<f64>()
                    };
                    // Of fourth order: near its kink the roughest kernel has large third derivatives.
                    let h = 1e-5;
                    let wide = value(2.0 * h) - value(-2.0 * h);
                    let difference = (8.0 * (value(h) - value(-h)) - wide) / (12.0 * h);
                    let near = (a - 0.1).hypot(b + 0.4).min((a - 0.5).hypot(b - 0.9));
                    prop_assume!(near > 0.05 || family != KernelFamily::Matern12);
                    prop_assert!((gradient[d] - difference).abs() < 1e-6);
                }
            }
        }
    }

    #[test]
    fn appended_points_equal_points_scaled_at_once() {
        let kernel = kernel(KernelFamily::Matern52);
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
        for family in KernelFamily::ALL {
            let kernel = kernel(family);
            if family == KernelFamily::Linear {
                assert!(kernel.spectral_draw(&mut rng).is_none());
                continue;
            }
            let offset = [0.2, 0.8];
            let n = 40_000;
            let mean: f64 = (0..n)
                .map(|_| {
                    let omega = kernel.spectral_draw(&mut rng).unwrap();
                    (omega[0] * offset[0] + omega[1] * offset[1]).cos()
                })
                .sum::<f64>()
                / n as f64;
            let expected = direct(&kernel, &offset, &[0.0, 0.0]) / kernel.signal_variance;
            // 5 standard errors of a mean of cosines.
            assert!(
                (mean - expected).abs() < 5.0 / (n as f64).sqrt(),
                "{mean} {expected}"
            );
        }
    }
}
