//! Points scaled by 1/ℓ and transposed, so that the inner loops run over contiguous points and vectorise.
//!
//! Notation: s_k = 1/ℓ_k; e_k the unit vector of column k; |·|_C the norm over the columns of a category C.

use ndarray::ArrayView2;

use super::Kernel;

/// Scaled points: `values[d * capacity + j]` is x̃_jd. In the columns of categories it is |s_d e_d − x̃_j|²_C instead,
/// the contribution of choice d to r². Behind the columns of the points there is one column per category with
/// |x̃_j|²_C, the contribution of a point without a choice. In both formulas, x̃_j is replaced by the nearest choice,
/// or by no choice if that is nearer.
#[derive(Debug, Clone, Default)]
pub struct ScaledPoints {
    values: Vec<f64>,
    capacity: usize,
    n: usize,
}

impl ScaledPoints {
    /// The number of points.
    pub fn len(&self) -> usize {
        self.n
    }

    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Keeps the first n points.
    pub fn truncate(&mut self, n: usize) {
        self.n = self.n.min(n);
    }

    /// Stored column d of all points.
    pub fn column(&self, d: usize) -> &[f64] {
        &self.values[d * self.capacity..d * self.capacity + self.n]
    }

    /// Appends further points, scaled for this kernel.
    pub fn append(&mut self, kernel: &Kernel, x: ArrayView2<f64>) {
        let width = kernel.width();
        let (d, n) = (width + kernel.categories.len(), self.n + x.nrows());
        if n > self.capacity {
            let capacity = n + n / 4 + 8;
            let mut values = vec![0.0; d * capacity];
            for k in 0..d {
                let old = &self.values[k * self.capacity..k * self.capacity + self.n];
                values[k * capacity..k * capacity + self.n].copy_from_slice(old);
            }
            self.values = values;
            self.capacity = capacity;
        }
        for (j, row) in x.rows().into_iter().enumerate() {
            let at = |k: usize| k * self.capacity + self.n + j;
            for k in 0..width {
                self.values[at(k)] = kernel.scaled(row[k], k);
            }
            for (c, category) in kernel.categories.iter().enumerate() {
                let unit = |k: usize| kernel.scaled(1.0, k).powi(2);
                let own = kernel.choice(row, c);
                self.values[at(width + c)] = own.map_or(0.0, unit);
                for k in category.clone() {
                    self.values[at(k)] = match own {
                        Some(own) if own == k => 0.0,
                        Some(own) => unit(k) + unit(own),
                        None => unit(k),
                    };
                }
            }
        }
        self.n = n;
    }
}
