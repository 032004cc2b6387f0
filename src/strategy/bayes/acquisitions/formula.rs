//! The trait for formulas of acquisitions, and objectives that let a search maximise a formula.
//!
//! An acquisition measures how useful an evaluation at a point would be, given the posterior. [`Scorer`] is the
//! objective that a search maximises for one acquisition; [`Sum`] is the objective for an acquisition plus terms.
//!
//! Notation: x is a point followed by its context; the matrix X has the n rows of the model; mu and sigma are the
//! posterior mean and standard deviation of the noise-free value f(x); v = L⁻¹k(X, x); a(x) is the acquisition; f* is
//! the incumbent.

use ndarray::{Array2, ArrayView2, Axis, s};

use crate::gp::draw::path;
use crate::gp::{BLOCK, GaussianProcess, Workspace, dot_row, variance_left};
use crate::problem::Objective;

/// The formula of an acquisition.
pub trait Formula: Send + Sync {
    /// Computes a(x) for every row x of the block, and writes the values to `out`.
    fn values(&self, block: &Block, buffers: &mut Buffers, out: &mut [f64]);

    /// Returns a(x) and writes da/dx to `gradient`.
    fn value_and_gradient(
        &self,
        gp: &GaussianProcess,
        x: &[f64],
        buffers: &mut Buffers,
        gradient: &mut [f64],
    ) -> f64;

    /// Converts a value of the acquisition from the units of the targets to the units of f. `scale` is the size of one
    /// unit of the targets, measured in units of f, and `value_of` maps a target to a value of f.
    fn in_units_of_f(&self, value: f64, scale: f64, value_of: &dyn Fn(f64) -> f64) -> f64;

    /// The effort of the search in a box for a model with n rows, as a multiple of the default effort.
    fn effort(&self, n: usize) -> f64 {
        default_effort(n)
    }
}

/// The effort of the search for a formula of one process. It is small, because an evaluation of the acquisition costs
/// O(n²) and the surface is smooth. If the model has many rows, an evaluation also needs more memory than the
/// processor's cache provides.
pub(super) fn default_effort(n: usize) -> f64 {
    (250.0 / n as f64).clamp(0.1, 0.4)
}

/// Returns a(x) for every row x of `rows` (N, d). `v` (N, n) contains the precomputed v(x) of every row.
pub fn values_of_solved(
    formula: &dyn Formula,
    gp: &GaussianProcess,
    rows: ArrayView2<f64>,
    v: ArrayView2<f64>,
) -> Vec<f64> {
    let mut values = vec![0.0; rows.nrows()];
    let block = Block {
        gp,
        rows,
        solved: Some(v),
    };
    formula.values(&block, &mut Buffers::default(), &mut values);
    values
}

/// Points to score, and the v of each point if v is already computed.
pub struct Block<'a> {
    pub(super) gp: &'a GaussianProcess,
    pub(super) rows: ArrayView2<'a, f64>,
    pub(super) solved: Option<ArrayView2<'a, f64>>,
}

impl Block<'_> {
    /// Returns mu = vᵀz and sigma² = k(x, x) − |v|² at every row.
    pub(super) fn moments(&self) -> (Vec<f64>, Vec<f64>) {
        let Some(v) = self.solved else {
            return self.gp.predict(self.rows);
        };
        let z = self.gp.whitened_targets();
        let prior = |x| self.gp.kernel().prior_variance(x);
        v.rows()
            .into_iter()
            .zip(self.rows.rows())
            .map(|(v, x)| (dot_row(v, z), variance_left(prior(x), v)))
            .unzip()
    }
}

/// Buffers that evaluations of a formula reuse.
#[derive(Default)]
pub struct Buffers {
    pub(super) workspace: Workspace,
    pub(super) path: path::Workspace,
    /// The buffer `means` has one mean per fantasy and process, and `scratch` has further numbers per fantasy.
    pub(super) means: Vec<f64>,
    pub(super) scratch: Vec<f64>,
    /// Derivatives with respect to the v of the pending rows.
    pub(super) by_tail: Vec<f64>,
    /// One workspace per process, and the part of one process in a gradient, for formulas of several processes.
    pub(super) workspaces: Vec<Workspace>,
    /// Numbers per box of the region that a front does not dominate.
    pub(super) of_cells: Vec<f64>,
    pub(super) partial: Vec<f64>,
}

/// The posterior mean and variance of f(x).
#[derive(Debug, Clone, Copy)]
pub struct Moments {
    pub mean: f64,
    pub variance: f64,
}

impl Moments {
    /// Returns sigma, or 1e-12 if sigma is smaller. At sigma = 0, the logarithm and the derivatives of sigma do not
    /// exist.
    pub fn std(self) -> f64 {
        floored_std(self.variance)
    }
}

/// Returns sqrt(variance), or 1e-12 if the square root is smaller.
pub fn floored_std(variance: f64) -> f64 {
    variance.max(1e-24).sqrt()
}

/// An acquisition that depends only on the moments at x.
pub trait OfMoments: Send + Sync {
    /// Converts a value to the units of f, as [`Formula::in_units_of_f`] does.
    fn in_units_of_f(&self, value: f64, scale: f64, value_of: &dyn Fn(f64) -> f64) -> f64;

    /// Returns a(x).
    fn value(&self, at: Moments) -> f64;

    /// Returns a(x), ∂a/∂mu and ∂a/∂sigma.
    fn value_and_derivatives(&self, at: Moments) -> (f64, f64, f64);
}

impl<F: OfMoments> Formula for F {
    fn in_units_of_f(&self, value: f64, scale: f64, value_of: &dyn Fn(f64) -> f64) -> f64 {
        OfMoments::in_units_of_f(self, value, scale, value_of)
    }

    fn values(&self, block: &Block, _buffers: &mut Buffers, out: &mut [f64]) {
        let (mean, variance) = block.moments();
        for ((mean, variance), out) in mean.into_iter().zip(variance).zip(out) {
            *out = self.value(Moments { mean, variance });
        }
    }

    fn value_and_gradient(
        &self,
        gp: &GaussianProcess,
        x: &[f64],
        buffers: &mut Buffers,
        gradient: &mut [f64],
    ) -> f64 {
        let (mean, variance) = gp.predict_at(x, &mut buffers.workspace);
        let at = Moments { mean, variance };
        let (value, by_mean, by_std) = self.value_and_derivatives(at);
        // ∇sigma = ∇var / (2 sigma)
        let by_variance = by_std / (2.0 * at.std());
        let workspace = &mut buffers.workspace;
        gp.gradient(x, by_mean, by_variance, &[], workspace, gradient);
        value
    }
}

/// The objective of a search that maximises an acquisition over the domain. The posterior and the context are fixed.
pub struct Scorer<'a> {
    gp: &'a GaussianProcess,
    formula: &'a dyn Formula,
    /// The values of the context columns. In a row of the model, the context columns follow the columns of the domain.
    context: &'a [f64],
    /// Buffers for rows of the model, which already contain the context.
    rows: Array2<f64>,
    row: Vec<f64>,
    gradient: Vec<f64>,
    buffers: Buffers,
}

impl<'a> Scorer<'a> {
    /// Creates the objective of `formula` on `gp`. A row of `gp` contains the columns of the domain followed by
    /// `context`.
    pub fn new(gp: &'a GaussianProcess, formula: &'a dyn Formula, context: &'a [f64]) -> Self {
        let width = gp.kernel().width();
        let mut row = vec![0.0; width];
        row[width - context.len()..].copy_from_slice(context);
        Self {
            gp,
            formula,
            context,
            rows: Array2::zeros((0, width)),
            row,
            gradient: vec![0.0; width],
            buffers: Buffers::default(),
        }
    }
}

impl Objective for Scorer<'_> {
    fn values(&mut self, points: ArrayView2<f64>, out: &mut [f64]) {
        let width = points.ncols();
        if self.rows.nrows() < points.nrows().min(BLOCK) {
            let n = points.nrows().min(BLOCK);
            self.rows = Array2::zeros((n, width + self.context.len()));
            for (k, c) in self.context.iter().enumerate() {
                self.rows.column_mut(width + k).fill(*c);
            }
        }
        let chunks = points.axis_chunks_iter(Axis(0), BLOCK);
        for (chunk, out) in chunks.zip(out.chunks_mut(BLOCK)) {
            self.rows
                .slice_mut(s![..chunk.nrows(), ..width])
                .assign(&chunk);
            let block = Block {
                gp: self.gp,
                rows: self.rows.slice(s![..chunk.nrows(), ..]),
                solved: None,
            };
            self.formula.values(&block, &mut self.buffers, out);
        }
    }

    fn value_and_gradient(&mut self, x: &[f64], gradient: &mut [f64]) -> f64 {
        self.row[..x.len()].copy_from_slice(x);
        let (buffers, whole) = (&mut self.buffers, &mut self.gradient);
        let value = self
            .formula
            .value_and_gradient(self.gp, &self.row, buffers, whole);
        gradient.copy_from_slice(&whole[..x.len()]);
        value
    }

    fn lengthscales(&self) -> Option<&[f64]> {
        let all = &self.gp.kernel().lengthscale;
        Some(&all[..all.len() - self.context.len()])
    }
}

/// The sum of an acquisition and further terms.
pub struct Sum<'a> {
    first: Scorer<'a>,
    terms: Vec<Box<dyn Objective + 'a>>,
    /// Values of a term.
    buffer: Vec<f64>,
}

impl<'a> Sum<'a> {
    pub fn of(first: Scorer<'a>, terms: Vec<Box<dyn Objective + 'a>>) -> Self {
        Self {
            first,
            terms,
            buffer: Vec::new(),
        }
    }
}

impl Objective for Sum<'_> {
    fn values(&mut self, points: ArrayView2<f64>, out: &mut [f64]) {
        self.first.values(points, out);
        for term in &mut self.terms {
            self.buffer.resize(out.len(), 0.0);
            term.values(points, &mut self.buffer);
            out.iter_mut().zip(&self.buffer).for_each(|(a, b)| *a += b);
        }
    }

    fn value_and_gradient(&mut self, x: &[f64], gradient: &mut [f64]) -> f64 {
        let mut value = self.first.value_and_gradient(x, gradient);
        for term in &mut self.terms {
            self.buffer.resize(x.len(), 0.0);
            value += term.value_and_gradient(x, &mut self.buffer);
            gradient
                .iter_mut()
                .zip(&self.buffer)
                .for_each(|(a, b)| *a += b);
        }
        value
    }

    fn lengthscales(&self) -> Option<&[f64]> {
        self.first.lengthscales()
    }
}
