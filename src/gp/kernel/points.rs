//! Points scaled by 1/ℓ and transposed, so that the inner loops run over contiguous memory and are vectorised.
//!
//! Notation: s_k = 1/ℓ_k, e_k is the unit vector of column k, and |·|_C is the norm over the columns of a category C.

use ndarray::ArrayView2;

use super::Kernel;

/// Scaled points: `values[d * capacity + j]` is entry d of point j. Outside categories, the entry is x̃_jd. In a
/// category C, the entry is |s_d e_d − x̃_j|²_C, the contribution to r² if the other point has choice d. One further
/// column per category contains |x̃_j|²_C, the contribution if the other point does not have a choice. In both
/// formulas, the entries of x̃_j in C are replaced by the nearest choice, or by 0 if 0 is nearer. If the kernel uses
/// the descriptors of C, the entries include their contribution to r², and one further column contains the number of
/// the choice of point j.
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

    /// Keeps the first n points.
    pub fn truncate(&mut self, n: usize) {
        self.n = self.n.min(n);
    }

    /// The stored column d of all points.
    pub fn column(&self, d: usize) -> &[f64] {
        &self.values[d * self.capacity..d * self.capacity + self.n]
    }

    /// Appends further points, scaled for this kernel.
    pub fn append(&mut self, kernel: &Kernel, x: ArrayView2<f64>) {
        let width = kernel.width();
        let n_categories = kernel.categories.len();
        let d = width + n_categories + kernel.descriptor_lengthscale.len();
        let n = self.n + x.nrows();
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
                for k in category.columns.clone() {
                    self.values[at(k)] = match own {
                        Some(own) if own == k => 0.0,
                        Some(own) => unit(k) + unit(own),
                        None => unit(k),
                    };
                }
            }
            for (i, (c, descriptors, l)) in kernel.described().enumerate() {
                let (start, own) = (
                    kernel.categories[c].columns.start,
                    kernel.choice_number(row, c),
                );
                let columns = kernel.categories[c].columns.len();
                for k in 0..columns {
                    self.values[at(start + k)] += descriptors.square(k, own) / (l * l);
                }
                self.values[at(width + c)] += descriptors.square(columns, own) / (l * l);
                self.values[at(width + n_categories + i)] = own as f64;
            }
        }
        self.n = n;
    }
}
