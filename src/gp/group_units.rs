//! The offsets and scales of groups of rows, such as the rows of a batch of material, where the evidence for them is
//! strong.
//!
//! Notation: the rows of E (n, k) are one-hot: E_ic = 1 if row i belongs to group c. The model is y = E b + s z with the
//! offsets b ~ N(0, S²) and the scales log s ~ N(m, τ²), and z is a Gaussian process with noise: z ~ N(0, A), A = K + Λ.
//! A row belongs to one group of each category; its offset is the sum of the offsets of its groups. Scales are found only
//! if there is one category. w = 1/s.

use std::ops::{ControlFlow, Range};

use ndarray::{Array2, Axis, s};
use serde::{Deserialize, Serialize};

use super::RowNoise;
use super::contiguous;
use super::evidence::{Data, MIN_LOG_BAYES_FACTOR};
use super::fit_settings::FitSettings;
use super::hyperparameters::Hyperparameters;
use super::search::{COARSE, Problem, best};
use crate::error::{Result, Stop, check};
use crate::numerics::cholesky::{LowerFactor, factor_in_place};
use crate::numerics::simd::dot;

/// The largest number of rows that are compared. Small groups keep all rows.
const MAX_ROWS: usize = 50;

/// The searches with equal shapes of f in all groups start from this multiple of the usual lengthscale of the category.
const SHARED: f64 = 100.0;

/// Offsets and scales are not searched for if the offsets differ by less than this number of standard deviations of the
/// values in a group, and the scales by less than this factor.
const LIKE_OFFSETS: f64 = 0.2;
const LIKE_SCALES: f64 = 1.5;

/// τ, the prior standard deviation of log s.
const SCALE_STD: f64 = 1.5;

/// The units of the values of a group: a value is `offset` + `scale`·z, where z is a value that is comparable between
/// groups.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupUnits {
    pub offset: f64,
    pub scale: f64,
}

impl Default for GroupUnits {
    fn default() -> Self {
        Self {
            offset: 0.0,
            scale: 1.0,
        }
    }
}

impl GroupUnits {
    /// The comparable value of a value.
    pub fn comparable(&self, y: f64) -> f64 {
        (y - self.offset) / self.scale
    }

    /// The value of a comparable value.
    pub fn value(&self, z: f64) -> f64 {
        self.offset + self.scale * z
    }

    pub fn is_valid(&self) -> bool {
        self.offset.is_finite() && self.scale > 0.0 && self.scale.is_finite()
    }
}

/// The units of every group, one for each of the columns of the `categories`, or `None` if the evidence for different
/// units is not strong.
///
/// `data` are the data without groups, and the fits without groups start from `known`.
pub fn fit_group_units(
    data: Data,
    categories: &[Range<usize>],
    known: &[Hyperparameters],
    settings: &FitSettings,
    stop: &mut Stop,
) -> Result<Option<Vec<GroupUnits>>> {
    let columns: Vec<usize> = categories.iter().cloned().flatten().collect();
    let in_group = |column: usize, row: usize| data.x[[row, column]] > 0.5;
    let n_rows = |column: usize| (0..data.y.len()).filter(|&i| in_group(column, i)).count();
    let has_groups =
        |columns: &Range<usize>| columns.clone().filter(|&c| n_rows(c) > 0).count() > 1;
    if !categories.iter().any(has_groups) {
        return Ok(None);
    }
    let rows = chosen_rows(data, &columns);
    let x = data.x.select(Axis(0), &rows);
    let y: Vec<f64> = rows.iter().map(|&i| data.y[i]).collect();
    let noise: Vec<RowNoise> = rows.iter().map(|&i| data.row_noise(i)).collect();
    let plain = Data {
        x: x.view(),
        y: &y,
        noise: &noise,
        ..data
    };
    let starts: Vec<_> = known.iter().map(|theta| settings.encode(theta)).collect();
    let bounds = settings.bounds(&starts[0]);
    let problem = Problem {
        data: plain,
        settings,
        bounds: &bounds,
        tolerance: &COARSE,
    };
    let mut shared = starts[0].clone();
    for category in categories {
        shared[settings.groups[category.start]] += SHARED.ln();
    }
    let mut grouped = Grouped {
        data: plain,
        columns: &columns,
        offsets: vec![0.0; columns.len()],
        log_scales: vec![0.0; columns.len()],
        unit: 1.0,
        offset_std: 1.0,
    };
    let one_category = categories.len() == 1;
    // Searches take longer than this comparison, whose result is usually clear if the groups are alike.
    if grouped.start().is_none() || grouped.is_alike(settings, &shared, one_category) {
        return Ok(None);
    }
    let Some((_, least)) = best(problem.search_all(&starts, stop)?) else {
        return Ok(None);
    };
    let mut values = [f64::INFINITY; 2];
    let mut found = Vec::new();
    let n_rounds = 1 + usize::from(one_category);
    'rounds: for (round, value) in values.iter_mut().enumerate().take(n_rounds) {
        let (with_scales, mut p) = (round == 1, shared.clone());
        for is_searched in [false, true] {
            let Some(penalty) = grouped.update(settings, &p, with_scales) else {
                break 'rounds;
            };
            if with_scales && grouped.range(&grouped.log_scales) < LIKE_SCALES.ln() {
                break 'rounds;
            }
            let (z, noise) = (grouped.comparable(), grouped.noise());
            let problem = problem.on(Data {
                y: &z,
                noise: &noise,
                about_mean: false,
                ..plain
            });
            if is_searched {
                let mut cancelled = || stop() == ControlFlow::Break(());
                *value = problem.value(&p, &mut cancelled) + penalty;
                check(stop)?;
                found.push(grouped.units());
            } else if let Some((end, _)) = best(problem.search_all(&[p.clone()], stop)?) {
                p = end;
            }
        }
    }
    let with_offsets = values[0] < least - MIN_LOG_BAYES_FACTOR;
    let least = least.min(values[0]);
    let with_scales = values[1] < least - MIN_LOG_BAYES_FACTOR;
    Ok(match (with_scales, with_offsets) {
        (true, _) => found.pop(),
        (_, true) => Some(found.swap_remove(0)),
        _ => None,
    })
}

/// At most [`MAX_ROWS`] rows, evenly spread over the rows of every group. Small groups keep all rows.
fn chosen_rows(data: Data, columns: &[usize]) -> Vec<usize> {
    let n = data.y.len();
    if n <= MAX_ROWS {
        return (0..n).collect();
    }
    let mut groups = std::collections::BTreeMap::<Vec<bool>, Vec<usize>>::new();
    for row in 0..n {
        let key = columns.iter().map(|&c| data.x[[row, c]] > 0.5).collect();
        groups.entry(key).or_default().push(row);
    }
    let mut groups: Vec<Vec<usize>> = groups.into_values().collect();
    groups.sort_by_key(Vec::len);
    let (mut left, mut n_left) = (MAX_ROWS, groups.len());
    let mut rows = Vec::new();
    for group in groups {
        let count = group.len().min((left / n_left).max(1));
        rows.extend((0..count).map(|i| group[i * group.len() / count]));
        left = left.saturating_sub(count);
        n_left -= 1;
    }
    rows.sort_unstable();
    rows
}

/// The offsets and scales of the groups of some data.
struct Grouped<'a> {
    data: Data<'a>,
    columns: &'a [usize],
    offsets: Vec<f64>,
    /// log s of each group, without the unit.
    log_scales: Vec<f64>,
    /// The factor of all scales.
    unit: f64,
    /// S
    offset_std: f64,
}

impl Grouped<'_> {
    fn n(&self) -> usize {
        self.data.y.len()
    }

    /// Whether the offsets of all groups with rows differ little, and the scales too, for this p. The offsets are those
    /// for equal scales afterwards.
    fn is_alike(&mut self, settings: &FitSettings, p: &[f64], scales: bool) -> bool {
        let mut differs = scales
            && self.update(settings, p, true).is_some()
            && self.range(&self.log_scales) > LIKE_SCALES.ln();
        self.log_scales.fill(0.0);
        differs |= self.update(settings, p, false).is_none()
            || self.range(&self.offsets) > LIKE_OFFSETS * self.unit;
        !differs
    }

    /// The range of these numbers among the groups with rows.
    fn range(&self, of_groups: &[f64]) -> f64 {
        let has_rows = |column: usize| self.data.x.column(column).iter().any(|e| *e > 0.5);
        let numbers = self.columns.iter().zip(of_groups);
        let numbers = numbers
            .filter(|(c, _)| has_rows(**c))
            .map(|(_, number)| *number);
        let (low, high) = numbers
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), number| {
                (low.min(number), high.max(number))
            });
        high - low
    }

    fn scale(&self, row: usize) -> f64 {
        let logs = self.columns.iter().zip(&self.log_scales);
        let log: f64 = logs.map(|(&c, log)| self.data.x[[row, c]] * log).sum();
        self.unit * log.exp()
    }

    fn comparable(&self) -> Vec<f64> {
        let offset = |row: usize| -> f64 {
            let offsets = self.columns.iter().zip(&self.offsets);
            offsets.map(|(&c, b)| self.data.x[[row, c]] * b).sum()
        };
        let value = |row: usize| (self.data.y[row] - offset(row)) / self.scale(row);
        (0..self.n()).map(value).collect()
    }

    fn noise(&self) -> Vec<RowNoise> {
        let in_units = |row: usize| {
            let square = self.scale(row).powi(2);
            match self.data.row_noise(row) {
                RowNoise::Known(variance) => RowNoise::Known(variance / square),
                RowNoise::Added(variance) => RowNoise::Added(variance / square),
            }
        };
        (0..self.n()).map(in_units).collect()
    }

    /// The units of the groups. Groups without rows have the geometric mean of the other scales.
    fn units(&self) -> Vec<GroupUnits> {
        let has_rows = |&column: &usize| self.data.x.column(column).iter().any(|e| *e > 0.5);
        let has_rows: Vec<bool> = self.columns.iter().map(has_rows).collect();
        let with_rows = self
            .log_scales
            .iter()
            .zip(&has_rows)
            .filter(|(_, has)| **has);
        let n = with_rows.clone().count().max(1) as f64;
        let mean = with_rows.map(|(log, _)| log).sum::<f64>() / n;
        let units = self.offsets.iter().zip(&self.log_scales).zip(has_rows);
        let units = units.map(|((&offset, &log), has_rows)| GroupUnits {
            offset,
            scale: if has_rows { log } else { mean }.exp(),
        });
        units.collect()
    }

    /// Sets the offsets to the means of the groups, and the unit to the standard deviation about these means. S is the
    /// root mean square of the offsets, but at least 1. Returns `None` if there is no variation within the groups.
    fn start(&mut self) -> Option<()> {
        self.solve(&Array2::eye(self.n()))?;
        let n = self.n() as f64;
        let squares = self.comparable().iter().map(|z| z * z).sum::<f64>() / n;
        self.unit = squares.sqrt();
        let k = self.offsets.len() as f64;
        let of_offsets = self.offsets.iter().map(|b| b * b).sum::<f64>() / k;
        self.offset_std = of_offsets.sqrt().max(1.0);
        (self.unit > 1e-9).then_some(())
    }

    /// Replaces the offsets, and the scales if wanted, by their most probable values for the θ with parametrisation p.
    /// Returns the part of minus the log evidence that does not belong to z: the Jacobian and the priors, integrated
    /// over b and, in Laplace's approximation, over log s.
    fn update(&mut self, settings: &FitSettings, p: &[f64], scales: bool) -> Option<f64> {
        let theta = settings.decode(p);
        let mut a = settings.kernel(&theta).gram(self.data.x);
        for (i, noise) in self.noise().iter().enumerate() {
            a[[i, i]] += noise.variance(theta.noise_variance);
        }
        factor_in_place(&mut a).ok()?;
        let of_scales = match scales {
            true => self.solve_scales(&a)?,
            false => 0.0,
        };
        let half_log_det = self.solve(&a)?;
        let jacobian: f64 = (0..self.n()).map(|row| self.scale(row).ln()).sum();
        let squares: f64 = self.offsets.iter().map(|b| b * b).sum();
        let of_offsets = 0.5 * squares / self.offset_std.powi(2) + half_log_det;
        Some(jacobian + of_offsets + of_scales)
    }

    /// Sets b to its posterior mean for these scales, where `factor` is L with A = L Lᵀ. Returns ½ log det(I + S²G) with
    /// G = (E/s)ᵀA⁻¹(E/s).
    fn solve(&mut self, factor: &Array2<f64>) -> Option<f64> {
        let (n, k) = (self.n(), self.columns.len());
        let mut whitened = Array2::zeros((k + 1, n));
        for row in 0..n {
            let scale = self.scale(row);
            for (c, &column) in self.columns.iter().enumerate() {
                whitened[[c, row]] = self.data.x[[row, column]] / scale;
            }
            whitened[[k, row]] = self.data.y[row] / scale;
        }
        LowerFactor::of(factor).forward_substitution(whitened.view_mut());
        let groups = whitened.slice(s![..k, ..]);
        let variance = self.offset_std.powi(2);
        let mut precision = groups.dot(&groups.t());
        precision
            .diag_mut()
            .iter_mut()
            .for_each(|g| *g += 1.0 / variance);
        let right = groups.dot(&whitened.row(k));
        let b = solve(&mut precision, right.to_vec())?;
        self.offsets = b;
        let half_log_det: f64 = precision.diag().iter().map(|l| l.ln()).sum();
        Some(half_log_det + 0.5 * k as f64 * variance.ln())
    }

    /// Sets log s to the largest density for this L, maximised over b. Returns minus the log of the density of the prior
    /// at log s times the volume in Laplace's approximation.
    ///
    /// With w = 1/s, the largest −½|z|² over all offsets is −½ wᵀQw. A free offset takes one degree of freedom from the
    /// group, so the objective is −½ wᵀQw + Σ_c (n_c − 1) log w_c − ½ |log s|²/τ².
    fn solve_scales(&mut self, factor: &Array2<f64>) -> Option<f64> {
        let (n, k) = (self.n(), self.columns.len());
        let mut whitened = Array2::zeros((2 * k, n));
        let mut counts = vec![0.0; k];
        for row in 0..n {
            for (c, &column) in self.columns.iter().enumerate() {
                let e = self.data.x[[row, column]];
                counts[c] += e;
                whitened[[c, row]] = e / self.unit;
                // Any other offset has the same result, up to rounding errors.
                whitened[[k + c, row]] = e * (self.data.y[row] - self.offsets[c]) / self.unit;
            }
        }
        LowerFactor::of(factor).forward_substitution(whitened.view_mut());
        let (e, values) = whitened.view().split_at(Axis(0), k);
        let mut precision = e.dot(&e.t());
        let empty = precision.diag_mut().into_iter().zip(&counts);
        empty.for_each(|(g, n)| *g += f64::from(*n == 0.0));
        let cross = e.dot(&values.t());
        let mut q = values.dot(&values.t());
        factor_in_place(&mut precision).ok()?;
        let mut half = cross.t().as_standard_layout().to_owned();
        LowerFactor::of(&precision).forward_substitution(half.view_mut());
        q -= &half.dot(&half.t());
        let degrees: Vec<f64> = counts.iter().map(|n| (n - 1.0).max(0.0)).collect();
        let inverse_square = 1.0 / (SCALE_STD * SCALE_STD);
        let mut v: Vec<f64> = self.log_scales.iter().map(|log| -log).collect();
        let mut hessian = Array2::zeros((k, k));
        for _ in 0..50 {
            let w: Vec<f64> = v.iter().map(|v| v.exp()).collect();
            let mut gradient = Vec::with_capacity(k);
            for c in 0..k {
                let qw = dot(contiguous(q.row(c)), &w);
                gradient.push(degrees[c] - w[c] * qw - inverse_square * v[c]);
                for other in 0..k {
                    hessian[[c, other]] = w[c] * q[[c, other]] * w[other];
                }
                hessian[[c, c]] += degrees[c].max(w[c] * qw) + inverse_square;
            }
            let step = solve(&mut hessian.clone(), gradient)?;
            let largest = step.iter().fold(0.0, |m: f64, s| m.max(s.abs()));
            let factor = (1.0 / largest).min(1.0);
            v.iter_mut()
                .zip(&step)
                .for_each(|(v, step)| *v += factor * step);
            if largest < 1e-6 {
                break;
            }
        }
        self.log_scales = v.iter().map(|v| -v).collect();
        hessian *= SCALE_STD * SCALE_STD;
        factor_in_place(&mut hessian).ok()?;
        let half_log_det: f64 = hessian.diag().iter().map(|l| l.ln()).sum();
        Some(0.5 * inverse_square * dot(&v, &v) + half_log_det)
    }
}

/// Replaces the lower triangle of `matrix` by its Cholesky factor, and returns the solution for this right-hand side.
fn solve(matrix: &mut Array2<f64>, right: Vec<f64>) -> Option<Vec<f64>> {
    factor_in_place(matrix).ok()?;
    let mut x = super::as_row(right);
    LowerFactor::of(matrix).forward_substitution(x.view_mut());
    LowerFactor::of(matrix).backward_substitution(x.view_mut());
    let x = x.into_raw_vec_and_offset().0;
    x.iter().all(|x| x.is_finite()).then_some(x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gp::kernel::{Category, Kernel, KernelFamily};
    use crate::gp::{GaussianProcess, as_row};
    use crate::random::Rng;
    use rand::{RngExt, SeedableRng};

    fn settings() -> FitSettings {
        FitSettings {
            categories: vec![Category::from(1..4)],
            spreads: vec![1.0, 8f64.sqrt()],
            ..FitSettings::new(KernelFamily::Matern52, vec![0, 1, 1, 1], 4)
        }
    }

    /// Rows with a number and one of three choices. `counts` are the numbers of rows of the first two choices. The third
    /// choice does not have a row.
    fn rows(counts: [usize; 2], rng: &mut Rng) -> Array2<f64> {
        let mut x = Array2::zeros((counts[0] + counts[1], 4));
        for (i, mut row) in x.rows_mut().into_iter().enumerate() {
            row[0] = rng.random();
            row[1 + usize::from(i >= counts[0])] = 1.0;
        }
        x
    }

    /// Standardized values of f, where the second choice has this offset and scale.
    fn data(x: &Array2<f64>, offset: f64, scale: f64, noise: f64, rng: &mut Rng) -> Vec<f64> {
        let of_row = |row: ndarray::ArrayView1<f64>| {
            let z = (6.0 * row[0]).sin() + row[0] + noise * (rng.random::<f64>() - 0.5);
            z + row[2] * (offset + (scale - 1.0) * z)
        };
        let y: Vec<f64> = x.rows().into_iter().map(of_row).collect();
        let mean = y.iter().sum::<f64>() / y.len() as f64;
        let variance = y.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / y.len() as f64;
        y.iter().map(|y| (y - mean) / variance.sqrt()).collect()
    }

    fn found(x: &Array2<f64>, y: &[f64]) -> Option<Vec<GroupUnits>> {
        let data = Data {
            x: x.view(),
            y,
            noise: &[],
            about_mean: false,
        };
        let known = [settings().prior_mode()];
        let mut go_on = || ControlFlow::Continue(());
        fit_group_units(
            data,
            std::slice::from_ref(&(1..4)),
            &known,
            &settings(),
            &mut go_on,
        )
        .unwrap()
    }

    #[test]
    fn offsets_and_scales_are_found_where_they_differ() {
        let mut rng = Rng::seed_from_u64(1);
        for (counts, noise) in [([30, 12], 0.0), ([30, 12], 0.2), ([120, 10], 0.1)] {
            let x = rows(counts, &mut rng);
            for (offset, scale) in [(5.0, 1.0), (-100.0, 1.0), (0.0, 10.0), (20.0, 0.1)] {
                let y = data(&x, offset, scale, noise, &mut rng);
                let units = found(&x, &y).unwrap();
                // The comparable values of both groups are the same function of x, up to a common map.
                let z = |i: usize| units[usize::from(x[[i, 2]] > 0.5)].comparable(y[i]);
                let f = |i: usize| (6.0 * x[[i, 0]]).sin() + x[[i, 0]];
                let n = y.len() as f64;
                let [mz, mf] =
                    [&z as &dyn Fn(usize) -> f64, &f].map(|g| (0..y.len()).map(g).sum::<f64>() / n);
                let cov = |a: &dyn Fn(usize) -> f64, b: &dyn Fn(usize) -> f64| {
                    (0..y.len()).map(|i| a(i) * b(i)).sum::<f64>() / n
                };
                let (z, f) = (|i| z(i) - mz, |i| f(i) - mf);
                let correlation = cov(&z, &f) / (cov(&z, &z) * cov(&f, &f)).sqrt();
                assert!(
                    correlation > 0.99 - noise * 0.1,
                    "{counts:?} {noise} {offset} {scale}: {correlation}"
                );
            }
        }
    }

    #[test]
    fn equal_groups_and_groups_of_different_shapes_have_equal_units() {
        let mut rng = Rng::seed_from_u64(2);
        for counts in [[20, 20], [40, 3], [40, 1], [40, 0]] {
            let x = rows(counts, &mut rng);
            for noise in [0.0, 0.3] {
                let y = data(&x, 0.0, 1.0, noise, &mut rng);
                assert_eq!(found(&x, &y), None, "{counts:?} {noise}");
            }
        }
    }

    /// The evidence of the offsets, integrated over b, equals the evidence of a kernel with the additional term S²EEᵀ.
    #[test]
    fn offsets_are_integrated_out() {
        let mut rng = Rng::seed_from_u64(3);
        let x = rows([9, 5], &mut rng);
        let y = data(&x, 3.0, 1.0, 0.1, &mut rng);
        let plain = Data {
            x: x.view(),
            y: &y,
            noise: &[],
            about_mean: false,
        };
        let mut grouped = Grouped {
            data: plain,
            columns: &[1, 2, 3],
            offsets: vec![0.0; 3],
            log_scales: vec![0.0; 3],
            unit: 0.4,
            offset_std: 1.7,
        };
        let theta = Hyperparameters::new(vec![0.3, 2.0, 2.0, 2.0], 1.2, 0.02);
        let settings = settings();
        let p = settings.encode(&theta);
        let penalty = grouped.update(&settings, &p, false).unwrap();
        let kernel: Kernel = settings.kernel(&theta);
        let mut dense = kernel.gram(x.view()) * (grouped.unit * grouped.unit);
        let n = y.len();
        for i in 0..n {
            dense[[i, i]] += 0.02 * grouped.unit * grouped.unit;
            for j in 0..n {
                if x.row(i).slice(s![1..]) == x.row(j).slice(s![1..]) {
                    dense[[i, j]] += 1.7 * 1.7;
                }
            }
        }
        factor_in_place(&mut dense).unwrap();
        let mut z = as_row(y.clone());
        LowerFactor::of(&dense).forward_substitution(z.view_mut());
        let log_det: f64 = dense.diag().iter().map(|l| l.ln()).sum();
        let constant = 0.5 * n as f64 * (2.0 * std::f64::consts::PI).ln();
        let expected = 0.5 * z.iter().map(|z| z * z).sum::<f64>() + log_det + constant;
        let mut gp = GaussianProcess::new(KernelFamily::Matern52, &theta).unwrap();
        gp = gp.with_categories(&settings.categories);
        gp.append_rows(x.view()).unwrap();
        gp.set_targets(&grouped.comparable()).unwrap();
        let value = penalty - gp.log_marginal_likelihood();
        assert!((value - expected).abs() < 1e-8, "{value} {expected}");
    }
}
