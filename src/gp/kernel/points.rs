//! Points scaled by 1/ℓ and transposed, so that the inner loops run over contiguous points and vectorise.

use ndarray::ArrayView2;

use super::Kernel;

/// Column d of point j at `values[d * capacity + j]`.
#[derive(Debug, Clone, Default)]
pub struct ScaledPoints {
    values: Vec<f64>,
    capacity: usize,
    n: usize,
}

impl ScaledPoints {
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

    /// Column d of all points.
    pub fn column(&self, d: usize) -> &[f64] {
        &self.values[d * self.capacity..d * self.capacity + self.n]
    }

    /// Appends further points, scaled for this kernel.
    pub fn append(&mut self, kernel: &Kernel, x: ArrayView2<f64>) {
        let (d, n) = (kernel.width(), self.n + x.nrows());
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
            for k in 0..d {
                self.values[k * self.capacity + self.n + j] = kernel.scaled(row[k], k);
            }
        }
        self.n = n;
    }
}
