//! Blocks of the covariance function, and its derivatives with respect to points and lengthscales.
//!
//! Notation as in the parent module: x̃ = w(x)/ℓ, q is r² or x̃ᵀx̃', k = σ_f² κ(q), g = dk/dq. Points are rows.

use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut2};
use rand_distr::{Distribution, StandardNormal};

use super::category::{Category, Descriptors};
use super::{InputWarp, KernelFamily, ScaledPoints, linear};
use crate::numerics::simd::{
    add_multiple, add_squared_differences, dot, weighted_differences, weighted_squared_differences,
};
use crate::random::Rng;

/// A covariance function σ_f²·κ with one lengthscale per column (ARD) and an optional input warp.
#[derive(Debug, Clone, PartialEq)]
pub struct Kernel {
    pub family: KernelFamily,
    /// The lengthscale ℓ of each column.
    pub lengthscale: Vec<f64>,
    /// The signal variance σ_f².
    pub signal_variance: f64,
    /// The input warp w, which is the identity for the linear family.
    pub input_warp: InputWarp,
    /// The columns of each category, a one-hot group that shares a lengthscale. The list is empty for the linear
    /// family. [`ScaledPoints`] stores the contribution of a category to r², so that a category is as cheap as one
    /// column.
    pub categories: Vec<Category>,
    /// The lengthscale ℓ₁ of each category with descriptors. If the list is empty, descriptors are not used.
    pub descriptor_lengthscale: Vec<f64>,
}

impl Kernel {
    /// Sets the columns of each category. The linear family ignores categories.
    pub fn with_categories(mut self, categories: &[Category]) -> Self {
        if self.family.is_stationary() {
            self.categories = categories.to_vec();
        }
        self
    }

    /// The number of columns of a point.
    pub fn width(&self) -> usize {
        self.lengthscale.len()
    }

    /// The points (n, d), scaled for this kernel.
    pub fn scale(&self, x: ArrayView2<f64>) -> ScaledPoints {
        let mut points = ScaledPoints::default();
        points.append(self, x);
        points
    }

    /// k(z, x_j) for every scaled point j.
    pub fn row(&self, z: &[f64], x: &ScaledPoints, out: &mut [f64]) {
        self.row_from(z, x, 0, out);
    }

    /// k(z, x_j) for every scaled point j ≥ `from`.
    pub fn row_from(&self, z: &[f64], x: &ScaledPoints, from: usize, out: &mut [f64]) {
        self.arguments(z, x, from, out);
        match self.family.stationary() {
            Some(family) => (family.values)(self.signal_variance, out),
            None => linear::values(self.signal_variance, out),
        }
    }

    /// k(z, x_j) and g(z, x_j) for every scaled point j.
    pub fn row_with_slope(&self, z: &[f64], x: &ScaledPoints, out: &mut [f64], slope: &mut [f64]) {
        self.row_with_slope_from(z, x, 0, out, slope);
    }

    /// k(z, x_j) and g(z, x_j) for every scaled point j ≥ `from`.
    pub fn row_with_slope_from(
        &self,
        z: &[f64],
        x: &ScaledPoints,
        from: usize,
        out: &mut [f64],
        slope: &mut [f64],
    ) {
        self.arguments(z, x, from, out);
        match self.family.stationary() {
            Some(family) => (family.values_and_slopes)(self.signal_variance, out, slope),
            None => {
                linear::values(self.signal_variance, out);
                slope.fill(self.signal_variance);
            }
        }
    }

    /// The prior variance k(z, z): σ_f² for stationary kernels, and σ_f² (1 + |z̃|²) for the linear kernel.
    pub fn prior_variance(&self, z: ArrayView1<f64>) -> f64 {
        if self.family.is_stationary() {
            return self.signal_variance;
        }
        let squares = z
            .iter()
            .enumerate()
            .map(|(d, z)| self.scaled(*z, d).powi(2));
        self.signal_variance * (1.0 + squares.sum::<f64>())
    }

    /// Adds `weight`·dk(z, z)/dz, where the derivative is 0 for stationary kernels, and 2 σ_f² z̃/ℓ for the linear
    /// kernel.
    pub fn add_prior_gradient(&self, z: &[f64], weight: f64, gradient: &mut [f64]) {
        if self.family.is_stationary() {
            return;
        }
        for (d, (z, l)) in z.iter().zip(&self.lengthscale).enumerate() {
            gradient[d] += weight * 2.0 * self.signal_variance * self.scaled(*z, d) / l;
        }
    }

    /// Writes the cross-covariance matrix `out[i, j]` = k(z_i, x_j).
    pub fn cross(&self, z: ArrayView2<f64>, x: &ScaledPoints, mut out: ArrayViewMut2<f64>) {
        let z = z.as_standard_layout();
        for (row, mut target) in z.rows().into_iter().zip(out.rows_mut()) {
            match (row.to_slice(), target.as_slice_mut()) {
                (Some(row), Some(target)) => self.row(row, x, target),
                _ => unreachable!("points and covariance blocks have contiguous rows"),
            }
        }
    }

    /// The exactly symmetric covariance matrix (n, n) of the points.
    pub fn gram(&self, x: ArrayView2<f64>) -> Array2<f64> {
        let mut out = Array2::zeros((x.nrows(), x.nrows()));
        self.cross(x, &self.scale(x), out.view_mut());
        out
    }

    /// Writes `out[d]` = Σ_j weight_j·dk(z, x_j)/dz_d. For stationary kernels, dk/dz_d = 2 g (z̃_d −
    /// x̃_jd)·w_d'(z_d)/ℓ_d. For the linear kernel, dk/dz_d = g x̃_jd/ℓ_d. The derivative is set to 0 in the columns of
    /// categories, which are not continuous.
    pub fn contract_gradient(
        &self,
        z: &[f64],
        x: &ScaledPoints,
        slope: &[f64],
        weight: &[f64],
        out: &mut [f64],
    ) {
        let stationary = self.family.is_stationary();
        out.fill(0.0);
        for d in self.plain_columns() {
            let (z, l, column) = (z[d], self.lengthscale[d], x.column(d));
            out[d] = if stationary {
                let by_z = 2.0 * self.input_warp.slope(z, d) / l;
                by_z * weighted_differences(self.scaled(z, d), column, slope, weight)
            } else {
                -weighted_differences(0.0, column, slope, weight) / l
            };
        }
    }

    /// Adds Σ_{j ≥ i} w_j·D_jd to entry d, where dk(x_i, x_j)/d log ℓ_d = −g·D_jd. D_jd is 2 (x̃_id − x̃_jd)² for
    /// stationary kernels, and 2 x̃_id x̃_jd for the linear kernel. The sum of a category is added to its first column.
    /// `x_i` contains the columns of point i. The sums of ℓ₁ follow the sums of the columns.
    pub fn add_lengthscale_sums(
        &self,
        x_i: &[f64],
        x: &ScaledPoints,
        i: usize,
        w: &[f64],
        sums: &mut [f64],
    ) {
        for d in self.plain_columns() {
            let column = &x.column(d)[i..];
            sums[d] += 2.0
                * if self.family.is_stationary() {
                    weighted_squared_differences(column[0], column, w)
                } else {
                    column[0] * dot(column, w)
                };
        }
        for (c, category) in self.categories.iter().enumerate() {
            let column = &x.column(self.category_column(x_i, c))[i..];
            sums[category.columns.start] += 2.0 * dot(column, w);
        }
        for (k, (c, descriptors, l)) in self.described().enumerate() {
            let own = x.column(self.width() + self.categories.len() + k);
            let squares = own[i..]
                .iter()
                .zip(w)
                .map(|(&other, w)| w * descriptors.square(own[i] as usize, other as usize));
            let by_descriptors = 2.0 * squares.sum::<f64>() / (l * l);
            sums[self.categories[c].columns.start] -= by_descriptors;
            sums[self.width() + k] += by_descriptors;
        }
    }

    /// The categories whose descriptors are used: the number, the descriptors, and ℓ₁.
    pub(super) fn described(&self) -> impl Iterator<Item = (usize, &Descriptors, f64)> {
        let all = self.categories.iter().enumerate();
        let all = all.filter_map(|(c, each)| Some((c, each.descriptors.as_deref()?)));
        let with_lengthscale = all.zip(&self.descriptor_lengthscale);
        with_lengthscale.map(|((c, descriptors), l)| (c, descriptors, *l))
    }

    /// The contribution of descriptors to r².
    pub(crate) fn descriptor_distance(&self, a: ArrayView1<f64>, b: ArrayView1<f64>) -> f64 {
        let of_category = |(c, descriptors, l): (usize, &Descriptors, f64)| {
            descriptors.square(self.choice_number(a, c), self.choice_number(b, c)) / (l * l)
        };
        self.described().map(of_category).sum()
    }

    /// The columns that do not belong to a category.
    pub fn plain_columns(&self) -> impl Iterator<Item = usize> {
        let starts = self
            .categories
            .iter()
            .map(|category| category.columns.start);
        let ends = self.categories.iter().map(|category| category.columns.end);
        let (first, last) = (std::iter::once(0), std::iter::once(self.width()));
        first
            .chain(ends)
            .zip(starts.chain(last))
            .flat_map(|(from, to)| from..to)
    }

    /// The column of `ScaledPoints` with the contribution of category c to r² at point z: the column of the choice of
    /// z, or `width + c` if z does not have a choice.
    fn category_column(&self, z: &[f64], c: usize) -> usize {
        self.choice(ArrayView1::from(z), c)
            .unwrap_or(self.width() + c)
    }

    /// The column of the choice of a point in category c, or `None` if the point does not have a choice. If entries are
    /// not one-hot, the first entry of at least ½ is the choice.
    pub(super) fn choice(&self, z: ArrayView1<f64>, c: usize) -> Option<usize> {
        self.categories[c].columns.clone().find(|&d| z[d] >= 0.5)
    }

    /// The number of the choice of a point in category c. The number of choices stands for a point without a choice.
    pub(super) fn choice_number(&self, z: ArrayView1<f64>, c: usize) -> usize {
        let columns = &self.categories[c].columns;
        self.choice(z, c)
            .map_or(columns.len(), |column| column - columns.start)
    }

    /// A random frequency ω from the spectral density, such that E cos(ωᵀ(w(x) − w(x'))) = κ, or `None` for the linear
    /// kernel.
    pub fn spectral_draw(&self, rng: &mut Rng) -> Option<Vec<f64>> {
        let factor = (self.family.stationary()?.spectral_factor)(rng);
        let normal = |rng: &mut Rng| -> f64 { StandardNormal.sample(rng) };
        let omega = self.lengthscale.iter().map(|l| factor * normal(rng) / l);
        let mut omega: Vec<f64> = omega.collect();
        for (c, descriptors, l) in self.described() {
            let draw = descriptors.normal_draw(rng);
            let columns = self.categories[c].columns.clone();
            for (omega, z) in omega[columns].iter_mut().zip(draw) {
                *omega += factor * z / l;
            }
        }
        Some(omega)
    }

    /// w_d(x)/ℓ_d, limited to finite values, so that the distance between a point and itself is 0, and products of the
    /// linear kernel are finite.
    pub(super) fn scaled(&self, x: f64, d: usize) -> f64 {
        let limit = if self.family.is_stationary() {
            f64::MAX
        } else {
            linear::MAX_SCALED
        };
        (self.input_warp.value(x, d) / self.lengthscale[d]).clamp(-limit, limit)
    }

    /// q(z, x_j) for every scaled point j ≥ `from`.
    fn arguments(&self, z: &[f64], x: &ScaledPoints, from: usize, out: &mut [f64]) {
        assert_eq!(from + out.len(), x.len());
        out.fill(0.0);
        let stationary = self.family.is_stationary();
        for c in 0..self.categories.len() {
            let column = &x.column(self.category_column(z, c))[from..];
            add_multiple(1.0, column, out);
        }
        for d in self.plain_columns() {
            let (z, column) = (self.scaled(z[d], d), &x.column(d)[from..]);
            if stationary {
                add_squared_differences(z, column, out);
            } else {
                add_multiple(z, column, out);
            }
        }
    }
}
