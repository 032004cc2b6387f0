//! Categories: one-hot groups of columns, whose choices may have descriptors.
//!
//! Notation: ℓ₀ is the lengthscale of the columns, ℓ₁ the lengthscale of the descriptors, and z_c the vector of choice
//! c. A category contributes 2·1{c ≠ c'}/ℓ₀² + |z_c − z_c'|²/ℓ₁² to r². With the one-hot columns x of two points and
//! the matrix Z of all vectors, this is |x − x'|²/ℓ₀² + |Zᵀ(x − x')|²/ℓ₁². So a point without a choice has z = 0.

use std::ops::Range;
use std::sync::Arc;

use ndarray::Array2;
use rand_distr::{Distribution, StandardNormal};

use crate::numerics::simd::dot;
use crate::random::Rng;

/// A one-hot group of columns, which share the lengthscale ℓ₀.
#[derive(Debug, Clone, PartialEq)]
pub struct Category {
    pub columns: Range<usize>,
    /// The descriptors of the choices, if any. A kernel uses them if it has a lengthscale ℓ₁ for them.
    pub descriptors: Option<Arc<Descriptors>>,
}

impl From<Range<usize>> for Category {
    /// A category without descriptors.
    fn from(columns: Range<usize>) -> Self {
        Self {
            columns,
            descriptors: None,
        }
    }
}

/// The vectors z_c of the n choices of a category.
#[derive(Debug, PartialEq)]
pub struct Descriptors {
    /// The vectors, as rows.
    z: Vec<Vec<f64>>,
    /// The squared distances (n + 1, n + 1) between vectors. The last row and column belong to z = 0.
    squares: Array2<f64>,
}

impl Descriptors {
    pub fn new(z: Vec<Vec<f64>>) -> Self {
        let none = vec![0.0; z.first().map_or(0, Vec::len)];
        let at = |c: usize| z.get(c).unwrap_or(&none);
        let squares = Array2::from_shape_fn((z.len() + 1, z.len() + 1), |(a, b)| {
            let differences = at(a).iter().zip(at(b)).map(|(a, b)| a - b);
            differences.map(|d| d * d).sum()
        });
        Self { z, squares }
    }

    /// |z_a − z_b|². The number of choices stands for a point without a choice.
    pub(super) fn square(&self, a: usize, b: usize) -> f64 {
        self.squares[[a, b]]
    }

    /// Z·η for a standard normal vector η.
    pub(super) fn normal_draw(&self, rng: &mut Rng) -> Vec<f64> {
        let width = self.z.first().map_or(0, Vec::len);
        let eta: Vec<f64> = (0..width).map(|_| StandardNormal.sample(rng)).collect();
        self.z.iter().map(|z| dot(z, &eta)).collect()
    }
}

/// The number of categories with descriptors.
pub fn n_described(categories: &[Category]) -> usize {
    let described = categories.iter().filter(|each| each.descriptors.is_some());
    described.count()
}
