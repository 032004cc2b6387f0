//! The set of points of a unit cube that satisfy linear constraints, and uniform draws from it.
//!
//! Notation: x ∈ [0, 1]^d. Rows aᵀx = b and aᵀx ≤ b have unit length |a| = 1. The affine hull of the set is {c + N u},
//! where c is the Chebyshev centre and the k columns of N are orthonormal. Its rows are the constraints whose slack is
//! zero at every point (implicit equalities). The *rounding* T maps the ball to an ellipsoid inside the body, so that
//! the chain also mixes in thin bodies.

use std::collections::BTreeSet;

use rand::{RngExt, SeedableRng};
use rand_distr::StandardNormal;

use super::band::{Band, ROUNDING, TOLERANCE, length};
use super::simplices::Simplices;
use crate::numerics::linear_program::{Program, Row, maximize};
use crate::random::Rng;

/// A vector counts as linearly dependent if its component across the others is at most this long.
const DEPENDENT: f64 = 1e-9;
/// A step is parallel to a row if it changes the slack by at most this share of its length.
const PARALLEL: f64 = 1e-10;
/// The largest number of visits to bands in a projection.
const MAX_VISITS: usize = 100;
/// With more bands, projections take longer than the quadratic programs of SLSQP.
const MAX_FAST: usize = 3;
/// The number of sweeps of the chain from the centre to the first stored point, per dimension, and between two points
/// of a chain.
const SWEEPS_TO_FIRST: usize = 12;
const SWEEPS_BETWEEN: usize = 6;
/// The number of stored points at which chains start.
const N_STARTS: usize = 32;

/// A bounded set of linear constraints within a unit cube.
#[derive(Clone, Debug, PartialEq)]
pub struct Polytope {
    centre: Vec<f64>,
    /// The rows of the hull, orthonormal.
    hull: Vec<Vec<f64>>,
    /// The rows of the body within the hull: the component of a along the hull, scaled to unit length, and the slack at
    /// the centre.
    body: Vec<Row>,
    /// The inequalities that are not bounds of the cube, as they are given.
    at_most: Vec<Row>,
    /// The columns of N·T.
    steps: Vec<Vec<f64>>,
    /// The bands that no point of the others violates.
    redundant: Vec<usize>,
    /// The bands that are not redundant.
    bands: Vec<Band>,
    /// Whether each coordinate occurs in at most one of these bands.
    is_separate: bool,
    draws: Draws,
}

/// How uniform points are drawn.
#[derive(Clone, Debug, PartialEq)]
enum Draws {
    /// Exact draws.
    Exact(Simplices),
    /// A chain. `rates[j]` has the changes of the slacks of all rows along column j of N·T; `starts` are points of one
    /// long chain, in terms of these columns.
    Chain {
        rates: Vec<Vec<f64>>,
        starts: Vec<Vec<f64>>,
    },
}

impl Polytope {
    /// Creates the set of the points of the unit cube in all bands. If there are none, the error contains the numbers
    /// of bands that contradict each other: the set without any one of them is not empty.
    pub fn new(d: usize, bands: &[Band]) -> Result<Self, Vec<usize>> {
        let normalised: Vec<Band> = bands.iter().map(Band::normalised).collect();
        let mut used: Vec<usize> = (0..bands.len()).collect();
        let is_empty = |used: &[usize]| {
            let (at_most, equal) = rows(d, &normalised, used);
            maximize(&vec![0.0; d], &at_most, &equal).is_none()
        };
        if is_empty(&used) {
            for i in 0..bands.len() {
                let others: Vec<usize> = used.iter().copied().filter(|&j| j != i).collect();
                if is_empty(&others) {
                    used = others;
                }
            }
            return Err(used);
        }
        let redundant = redundant(d, &normalised);
        let (all, mut equal) = rows(d, &normalised, &used);
        let slacks = largest_slacks(d, &all, &equal);
        // The first rows are the bounds of the cube, so their slacks are the ranges of the coordinates.
        let ranges = (0..d).map(|i| {
            let low = (1.0 - slacks[2 * i]).clamp(0.0, 1.0);
            (low, slacks[2 * i + 1].clamp(low, 1.0))
        });
        let ranges: Vec<(f64, f64)> = ranges.collect();
        let (mut at_most, mut flat): (Vec<Row>, Vec<Row>) = (Vec::new(), Vec::new());
        for (row, slack) in all.into_iter().zip(slacks) {
            match slack <= TOLERANCE {
                true => flat.push(row),
                false => at_most.push(row),
            }
        }
        equal.extend(flat);
        let equal_rows: Vec<Vec<f64>> = equal.iter().map(|(a, _)| a.clone()).collect();
        let hull = orthonormal(&[], &equal_rows);
        let axes: Vec<Vec<f64>> = (0..d).map(|i| axis(d, i)).collect();
        let basis = orthonormal(&hull, &axes);
        let along = |a: &[f64]| length(&without(a, &hull));
        at_most.retain(|(a, _)| along(a) > DEPENDENT);
        // The Chebyshev centre: the largest r for which aᵀx + r |Nᵀa| ≤ b at all rows.
        let mut with_radius: Vec<Row> = at_most.clone();
        for (a, _) in &mut with_radius {
            a.push(along(a));
        }
        let mut exact = equal.clone();
        exact.iter_mut().for_each(|(a, _)| a.push(0.0));
        let mut radius = vec![0.0; d + 1];
        radius[d] = 1.0;
        with_radius.push((radius.clone(), 2.0));
        let centre = maximize(&radius, &with_radius, &exact);
        let mut centre = centre.unwrap_or_else(|| vec![0.0; d + 1]);
        centre.truncate(d);
        let body = |(a, b): &Row| {
            let (own, size) = (without(a, &hull), along(a));
            let slack = ((b - dot(a, &centre)) / size).max(0.0);
            (own.iter().map(|v| v / size).collect(), slack)
        };
        let body: Vec<Row> = at_most.iter().map(body).collect();
        let steps = rounded(&basis, &body);
        let cube = rows(d, &[], &[]).0;
        at_most.retain(|row| !cube.contains(row));
        let bands = (0..bands.len()).filter(|i| !redundant.contains(i));
        let bands: Vec<Band> = bands.map(|i| normalised[i].clone()).collect();
        let draws = match Simplices::new(&ranges, &bands, steps.len()) {
            Some(simplices) => Draws::Exact(simplices),
            None => Draws::of_chain(&body, &steps),
        };
        Ok(Self {
            centre,
            hull,
            body,
            at_most,
            steps,
            redundant,
            is_separate: is_separate(&bands),
            bands,
            draws,
        })
    }

    /// The bands without which the set would be the same.
    pub fn redundant(&self) -> &[usize] {
        &self.redundant
    }

    /// k, the dimension of the hull.
    pub fn dimension(&self) -> usize {
        self.steps.len()
    }

    /// The rows of the hull, orthonormal, and the inequalities that are not bounds of the cube.
    pub fn constraints(&self) -> (Vec<Row>, &[Row]) {
        let hull = self.hull.iter();
        let equal = hull.map(|a| (a.clone(), dot(a, &self.centre)));
        (equal.collect(), &self.at_most)
    }

    /// Replaces z by the nearest point of the set. Points of the set are not changed.
    ///
    /// The nearest point is clip(z − Σ_j t_j a_j), where the t_j maximise the dual problem. They are found one by one,
    /// in sweeps over the bands (Hildreth 1957). If the sweeps converge slowly, the active-set method is used.
    pub fn project(&self, z: &mut [f64]) {
        let mut moved = z.to_vec();
        let mut shifts = vec![0.0; self.bands.len()];
        let n_sweeps = match self.is_separate {
            true => 1,
            false => MAX_VISITS / self.bands.len(),
        };
        for _ in 0..n_sweeps {
            let mut change = 0.0_f64;
            for (band, shift) in self.bands.iter().zip(&mut shifts) {
                band.add(*shift, &mut moved);
                let next = band.shift(&moved);
                band.add(-next, &mut moved);
                change = change.max((next - *shift).abs());
                *shift = next;
            }
            if self.is_separate || change <= ROUNDING {
                z.iter_mut()
                    .zip(moved)
                    .for_each(|(z, m)| *z = m.clamp(0.0, 1.0));
                return;
            }
        }
        self.project_by_active_set(z);
    }

    /// The active-set method: from the centre, steps towards z in the subspace of the active rows end at the next row,
    /// and rows with a negative multiplier are dropped (Nocedal and Wright 2006, algorithm 16.3).
    fn project_by_active_set(&self, z: &mut [f64]) {
        let offset: Vec<f64> = z.iter().zip(&self.centre).map(|(z, c)| z - c).collect();
        let target = without(&offset, &self.hull);
        let off = offset.iter().zip(&target).map(|(a, b)| (a - b).abs());
        let off = off.fold(0.0, f64::max);
        let beyond = self.body.iter().map(|(a, s)| dot(a, &target) - s);
        if off <= ROUNDING && beyond.fold(0.0, f64::max) <= ROUNDING {
            z.iter_mut().for_each(|z| *z = z.clamp(0.0, 1.0));
            return;
        }
        let mut v = vec![0.0; z.len()];
        let mut active: Vec<usize> = Vec::new();
        // An orthonormal basis of the active rows.
        let mut basis: Vec<Vec<f64>> = Vec::new();
        for _ in 0..20 * (self.body.len() + 1) {
            let rest: Vec<f64> = target.iter().zip(&v).map(|(t, v)| t - v).collect();
            let step = without(&rest, &basis);
            if length(&step) <= ROUNDING {
                // The multipliers of the active rows; a negative one pulls away from its row.
                let normals = active.iter().map(|&j| self.body[j].0.clone());
                let normals: Vec<Vec<f64>> = normals.collect();
                let multipliers = multipliers(&normals, &rest);
                let least =
                    (0..active.len()).min_by(|&i, &j| multipliers[i].total_cmp(&multipliers[j]));
                match least.filter(|&i| multipliers[i] < -ROUNDING) {
                    Some(i) => active.remove(i),
                    None => break,
                };
                let normals = active.iter().map(|&j| self.body[j].0.clone());
                basis = orthonormal(&[], &normals.collect::<Vec<_>>());
                continue;
            }
            let (mut share, mut next) = (1.0, None);
            for (j, (a, slack)) in self.body.iter().enumerate() {
                let rate = dot(a, &step);
                if rate > PARALLEL * length(&step) && !active.contains(&j) {
                    let to = ((slack - dot(a, &v)) / rate).max(0.0);
                    if to < share {
                        (share, next) = (to, Some(j));
                    }
                }
            }
            v.iter_mut().zip(&step).for_each(|(v, s)| *v += share * s);
            if let Some(j) = next {
                active.push(j);
                basis.extend(orthonormal(&basis, std::slice::from_ref(&self.body[j].0)));
            }
        }
        self.write(&v, z);
    }

    /// Writes c + v, within the cube.
    fn write(&self, v: &[f64], x: &mut [f64]) {
        for ((x, c), v) in x.iter_mut().zip(&self.centre).zip(v) {
            *x = (c + v).clamp(0.0, 1.0);
        }
    }

    /// Draws n uniform points. If they are not exact, they are points of a chain: their law is nearly uniform, and
    /// nearby points are correlated.
    pub fn sample(&self, n: usize, rng: &mut Rng) -> Vec<Vec<f64>> {
        let mut points = match &self.draws {
            Draws::Exact(simplices) => (0..n).map(|_| simplices.sample(rng)).collect(),
            Draws::Chain { rates, starts } => {
                let start = &starts[rng.random_range(0..starts.len())];
                self.chain(n, rates, start, rng)
            }
        };
        points.iter_mut().for_each(|x| self.project(x));
        points
    }

    /// Draws n points of a chain.
    fn chain(&self, n: usize, rates: &[Vec<f64>], start: &[f64], rng: &mut Rng) -> Vec<Vec<f64>> {
        let mut chain = Chain::new(&self.body, rates, start);
        let point = |_| {
            chain.run(SWEEPS_BETWEEN, rng);
            let mut v = vec![0.0; self.centre.len()];
            for (step, y) in self.steps.iter().zip(&chain.y) {
                v.iter_mut().zip(step).for_each(|(v, s)| *v += y * s);
            }
            let mut x = vec![0.0; v.len()];
            self.write(&v, &mut x);
            x
        };
        (0..n).map(point).collect()
    }

    /// Whether projections are fast.
    pub fn projects_fast(&self) -> bool {
        self.is_separate || self.bands.len() <= MAX_FAST
    }

    /// Moves a point away from the centre, by twice its distance, and replaces it by the nearest point of the set,
    /// which is often on a face.
    pub fn push_outwards(&self, x: &mut [f64]) {
        x.iter_mut()
            .zip(&self.centre)
            .for_each(|(x, c)| *x += *x - c);
        self.project(x);
    }

    /// Vertices that are farthest in random directions.
    pub fn vertices(&self) -> Vertices<'_> {
        // In terms of x, the rows of the body are aᵀx ≤ aᵀc + slack.
        let program = || {
            let body = self.body.iter();
            let at_most = body.map(|(a, slack)| (a.clone(), dot(a, &self.centre) + slack));
            let at_most: Vec<Row> = at_most.collect();
            Program::new(self.centre.len(), &at_most, &self.constraints().0)
        };
        Vertices {
            program: match self.is_separate {
                true => None,
                false => program(),
            },
            body: self,
        }
    }
}

/// Vertices of a set, each of which is farthest in a random direction.
pub struct Vertices<'a> {
    body: &'a Polytope,
    /// The linear program of a set whose bands are not separate. Each solution starts at the solution before.
    program: Option<Program>,
}

impl Vertices<'_> {
    pub fn draw(&mut self, rng: &mut Rng) -> Vec<f64> {
        let d = self.body.centre.len();
        let direction: Vec<f64> = (0..d).map(|_| rng.sample(StandardNormal)).collect();
        let mut x = match &mut self.program {
            Some(program) => program.maximize(&direction),
            None => {
                let upper = |c: &f64| f64::from(u8::from(*c > 0.0));
                let mut x: Vec<f64> = direction.iter().map(upper).collect();
                let bands = &self.body.bands;
                bands
                    .iter()
                    .for_each(|band| band.move_to_vertex(&direction, &mut x));
                x
            }
        };
        self.body.project(&mut x);
        x
    }
}

impl Draws {
    /// Points of a chain, and how to continue it. The points are the same for equal sets.
    fn of_chain(body: &[Row], steps: &[Vec<f64>]) -> Self {
        let rates = steps
            .iter()
            .map(|step| body.iter().map(|(a, _)| dot(a, step)).collect());
        let rates: Vec<Vec<f64>> = rates.collect();
        let mut rng = Rng::seed_from_u64(0);
        let mut chain = Chain::new(body, &rates, &vec![0.0; steps.len()]);
        chain.run(SWEEPS_TO_FIRST * (steps.len() + 8), &mut rng);
        let start = |_| {
            chain.run(SWEEPS_BETWEEN, &mut rng);
            chain.y.clone()
        };
        let starts = (0..N_STARTS).map(start).collect();
        Draws::Chain { rates, starts }
    }
}

/// A Markov chain whose law tends to the uniform law of a body: each step goes to a uniform point of the chord along
/// one column of N·T, and a sweep takes all columns in turn (Gibbs sampling; Smith 1984).
struct Chain<'a> {
    rates: &'a [Vec<f64>],
    /// The point, in terms of the columns of N·T.
    y: Vec<f64>,
    slacks: Vec<f64>,
}

impl<'a> Chain<'a> {
    fn new(body: &[Row], rates: &'a [Vec<f64>], start: &[f64]) -> Self {
        let mut slacks: Vec<f64> = body.iter().map(|(_, slack)| *slack).collect();
        for (rates, y) in rates.iter().zip(start) {
            slacks
                .iter_mut()
                .zip(rates)
                .for_each(|(slack, rate)| *slack -= rate * y);
        }
        slacks.iter_mut().for_each(|slack| *slack = slack.max(0.0));
        Self {
            rates,
            y: start.to_vec(),
            slacks,
        }
    }

    fn run(&mut self, n_sweeps: usize, rng: &mut Rng) {
        for _ in 0..n_sweeps {
            for (y, rates) in self.y.iter_mut().zip(self.rates) {
                let (mut back, mut ahead) = (f64::NEG_INFINITY, f64::INFINITY);
                for (rate, slack) in rates.iter().zip(&self.slacks) {
                    if *rate > 0.0 {
                        ahead = ahead.min(slack / rate);
                    } else if *rate < 0.0 {
                        back = back.max(slack / rate);
                    }
                }
                let t = back + (ahead - back) * rng.random::<f64>();
                if t.is_finite() {
                    *y += t;
                    for (slack, rate) in self.slacks.iter_mut().zip(rates) {
                        *slack = (*slack - t * rate).max(0.0);
                    }
                }
            }
        }
    }
}

/// Whether no two bands have a coordinate in common.
fn is_separate(bands: &[Band]) -> bool {
    let mut used = BTreeSet::new();
    bands
        .iter()
        .flat_map(Band::terms)
        .all(|(i, _)| used.insert(i))
}

/// The inequalities, with the bounds x ≥ 0 and x ≤ 1, and the equalities of the bands in `used`.
fn rows(d: usize, bands: &[Band], used: &[usize]) -> (Vec<Row>, Vec<Row>) {
    let bounds = (0..d).flat_map(|i| {
        let minus = axis(d, i).iter().map(|v| -v).collect();
        [(axis(d, i), 1.0), (minus, 0.0)]
    });
    let (mut at_most, mut equal): (Vec<Row>, Vec<Row>) = (bounds.collect(), Vec::new());
    for band in used.iter().map(|&i| &bands[i]) {
        let a = &band.coefficients;
        if band.is_equality() {
            equal.push((a.clone(), band.high));
            continue;
        }
        if band.high < f64::INFINITY {
            at_most.push((a.clone(), band.high));
        }
        if band.low > f64::NEG_INFINITY {
            at_most.push((a.iter().map(|v| -v).collect(), -band.low));
        }
    }
    (at_most, equal)
}

/// The largest slack b − aᵀx of each row.
fn largest_slacks(d: usize, at_most: &[Row], equal: &[Row]) -> Vec<f64> {
    let Some(mut program) = Program::new(d, at_most, equal) else {
        return vec![0.0; at_most.len()];
    };
    let mut slack = |(a, b): &Row| {
        let minus: Vec<f64> = a.iter().map(|v| -v).collect();
        b - dot(a, &program.maximize(&minus))
    };
    at_most.iter().map(&mut slack).collect()
}

/// The bands that hold at every point of the other bands. Of several equal bands, the first is kept.
fn redundant(d: usize, bands: &[Band]) -> Vec<usize> {
    let mut used: Vec<usize> = (0..bands.len()).collect();
    for i in (0..bands.len()).rev() {
        let others: Vec<usize> = used.iter().copied().filter(|&j| j != i).collect();
        let (at_most, equal) = rows(d, bands, &others);
        let band = &bands[i];
        let minus: Vec<f64> = band.coefficients.iter().map(|v| -v).collect();
        let largest = |c: &[f64]| maximize(c, &at_most, &equal).map(|x| dot(c, &x));
        let holds = largest(&band.coefficients).is_some_and(|most| most <= band.high + TOLERANCE)
            && largest(&minus).is_some_and(|most| -most >= band.low - TOLERANCE);
        if holds {
            used = others;
        }
    }
    (0..bands.len()).filter(|i| !used.contains(i)).collect()
}

/// Returns the columns of N·T, where T Tᵀ is the inverse Hessian of the logarithmic barrier −Σ log(slack) at its
/// minimum. The ellipsoid around this point lies in the body, and the body lies in the ellipsoid enlarged by the number
/// of rows (Boyd and Vandenberghe 2004, section 8.5.3).
fn rounded(basis: &[Vec<f64>], body: &[Row]) -> Vec<Vec<f64>> {
    let k = basis.len();
    let normals = |(a, _): &Row| basis.iter().map(|n| dot(a, n)).collect();
    let normals: Vec<Vec<f64>> = body.iter().map(normals).collect();
    let mut slacks: Vec<f64> = body.iter().map(|(_, slack)| *slack).collect();
    let mut factor = vec![vec![0.0; k]; k];
    for _ in 0..100 {
        let mut gradient = vec![0.0; k];
        let mut hessian = vec![vec![0.0; k]; k];
        for (a, slack) in normals.iter().zip(&slacks) {
            let both = gradient.iter_mut().zip(&mut hessian).enumerate();
            for (i, (sum, row)) in both {
                *sum += a[i] / slack;
                for (entry, b) in row.iter_mut().zip(a).take(i + 1) {
                    *entry += (a[i] / slack) * (b / slack);
                }
            }
        }
        factor = cholesky(hessian);
        let step: Vec<f64> = backward(&factor, forward(&factor, gradient.clone()));
        let decrement = dot(&step, &gradient).max(0.0).sqrt();
        if decrement <= 1e-3 || decrement.is_nan() {
            break;
        }
        // The damped Newton step stays within the body.
        let share = 1.0 / (1.0 + decrement);
        for (a, slack) in normals.iter().zip(&mut slacks) {
            *slack += share * dot(a, &step);
        }
    }
    // T = L⁻ᵀ, where L is the factor of the Hessian.
    let column = |i: usize| backward(&factor, axis(k, i));
    let to_x = |t: Vec<f64>| {
        let mut x = vec![0.0; basis[0].len()];
        for (n, t) in basis.iter().zip(t) {
            x.iter_mut().zip(n).for_each(|(x, n)| *x += t * n);
        }
        x
    };
    (0..k).map(|i| to_x(column(i))).collect()
}

/// The lower factor of a symmetric positive definite matrix, of which only the lower triangle is read.
fn cholesky(mut a: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    for i in 0..a.len() {
        for j in 0..=i {
            let known: f64 = (0..j).map(|m| a[i][m] * a[j][m]).sum();
            let rest = a[i][j] - known;
            a[i][j] = match i == j {
                true => rest.max(f64::MIN_POSITIVE).sqrt(),
                false => rest / a[j][j],
            };
        }
    }
    a
}

fn forward(l: &[Vec<f64>], mut b: Vec<f64>) -> Vec<f64> {
    for (i, row) in l.iter().enumerate() {
        let known: f64 = row.iter().zip(&b).take(i).map(|(l, b)| l * b).sum();
        b[i] = (b[i] - known) / row[i];
    }
    b
}

fn backward(l: &[Vec<f64>], mut b: Vec<f64>) -> Vec<f64> {
    for i in (0..b.len()).rev() {
        let known: f64 = (i + 1..b.len()).map(|j| l[j][i] * b[j]).sum();
        b[i] = (b[i] - known) / l[i][i];
    }
    b
}

/// Solves the normal equations Gᵀμ = r for linearly independent rows of G.
fn multipliers(normals: &[Vec<f64>], r: &[f64]) -> Vec<f64> {
    let gram = |a: &Vec<f64>| normals.iter().map(|b| dot(a, b)).collect();
    let factor = cholesky(normals.iter().map(gram).collect());
    let right = normals.iter().map(|a| dot(a, r)).collect();
    backward(&factor, forward(&factor, right))
}

/// Extends the orthonormal list `before` by the vectors in `rows`, and returns the new vectors (modified Gram–Schmidt,
/// twice; of the rows, the row with the longest remainder comes first).
fn orthonormal(before: &[Vec<f64>], rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut left: Vec<Vec<f64>> = rows.iter().map(|row| without(row, before)).collect();
    let mut found: Vec<Vec<f64>> = Vec::new();
    loop {
        let longest = left.iter().max_by(|a, b| length(a).total_cmp(&length(b)));
        let Some(next) = longest.filter(|row| length(row) > DEPENDENT) else {
            return found;
        };
        let size = length(next);
        let scaled: Vec<f64> = next.iter().map(|v| v / size).collect();
        let again = without(&without(&scaled, before), &found);
        let size = length(&again);
        let unit: Vec<f64> = again.iter().map(|v| v / size).collect();
        for row in &mut left {
            *row = without(row, std::slice::from_ref(&unit));
        }
        found.push(unit);
    }
}

/// The component of a across an orthonormal list.
fn without(a: &[f64], list: &[Vec<f64>]) -> Vec<f64> {
    let mut rest = a.to_vec();
    for unit in list {
        let along = dot(unit, &rest);
        rest.iter_mut().zip(unit).for_each(|(r, u)| *r -= along * u);
    }
    rest
}

fn axis(d: usize, i: usize) -> Vec<f64> {
    (0..d).map(|j| f64::from(u8::from(i == j))).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::{Band, Polytope, dot, maximize, rows};
    use crate::random::Rng;
    use proptest::prelude::*;
    // Imported by name, because proptest's prelude has another `Rng`.
    use rand::{RngExt, SeedableRng};
    use rand_distr::StandardNormal;

    fn band(coefficients: &[f64], low: f64, high: f64) -> Band {
        Band {
            coefficients: coefficients.to_vec(),
            low,
            high,
        }
    }

    #[test]
    fn contradictions_and_redundant_bands_are_named() {
        let total = band(&[1.0, 1.0, 0.0], 1.0, 1.0);
        let free = band(&[0.0, 0.0, 1.0], 0.1, 0.9);
        let more = band(&[2.0, 2.0, 0.0], 3.0, f64::INFINITY);
        let loose = band(&[1.0, 1.0, 1.0], f64::NEG_INFINITY, 2.5);
        let found = Polytope::new(3, &[free.clone(), total.clone(), more]);
        assert_eq!(found, Err(vec![1, 2]));
        let body = Polytope::new(3, &[total.clone(), loose, free, total]).unwrap();
        assert_eq!((body.redundant(), body.dimension()), (&[1, 3][..], 2));
        let alone = Polytope::new(1, &[band(&[1.0], 2.0, 3.0)]);
        assert_eq!(alone, Err(vec![0]));
    }

    #[test]
    fn implicit_equalities_leave_a_point_or_a_segment() {
        // The sum of two parts is at most 0 and at least 0 by the bounds, and a third one is free.
        let body = Polytope::new(3, &[band(&[1.0, 1.0, 0.0], f64::NEG_INFINITY, 0.0)]).unwrap();
        assert_eq!(body.dimension(), 1);
        let x = body.sample(1, &mut Rng::seed_from_u64(0)).swap_remove(0);
        assert_eq!(x[..2], [0.0, 0.0]);
        let point = Polytope::new(2, &[band(&[1.0, 1.0], 2.0, 2.0)]).unwrap();
        assert_eq!(point.dimension(), 0);
        assert_eq!(point.sample(1, &mut Rng::seed_from_u64(0)), [[1.0, 1.0]]);
    }

    proptest! {
        /// Draws, projections and vertices are in the set, and a projection z → p satisfies (z − p)ᵀ(x − p) ≤ 0 for
        /// every x of the set (the variational inequality of the nearest point).
        #[test]
        fn points_satisfy_the_bands(
            entries in prop::collection::vec((prop::collection::vec(-3..=3i32, 4), -2..=3i32, 0..=2i32), 1..4),
            seed: u64, thin: bool,
        ) {
            let bands: Vec<Band> = entries.iter().map(|(a, low, width)| Band {
                coefficients: a.iter().map(|a| f64::from(*a)).collect(),
                low: f64::from(*low),
                high: f64::from(*low) + f64::from(*width) * if thin { 1e-6 } else { 1.0 },
            }).collect();
            let Ok(body) = Polytope::new(4, &bands) else { return Ok(()) };
            let mut rng = Rng::seed_from_u64(seed);
            let inside = |x: &[f64]| {
                let holds = |each: &Band| {
                    let sum = dot(&each.coefficients, x);
                    sum >= each.low - 1e-9 && sum <= each.high + 1e-9
                };
                bands.iter().all(holds) && x.iter().all(|x| (0.0..=1.0).contains(x))
            };
            let draws = body.sample(4, &mut rng);
            let mut vertices = body.vertices();
            let normalised: Vec<Band> = bands.iter().map(Band::normalised).collect();
            let (at_most, equal) = rows(4, &normalised, &(0..bands.len()).collect::<Vec<_>>());
            let mut corners = Vec::new();
            for _ in 0..4 {
                // No point is farther in the direction that was drawn.
                let mut twin = rng.clone();
                let direction: Vec<f64> = (0..4).map(|_| twin.sample(StandardNormal)).collect();
                let corner = vertices.draw(&mut rng);
                let farthest = maximize(&direction, &at_most, &equal).unwrap();
                let missing = dot(&direction, &farthest) - dot(&direction, &corner);
                prop_assert!(missing.abs() <= 1e-7, "{:?} {}", bands, missing);
                corners.push(corner);
            }
            let z: Vec<f64> = (0..4).map(|_| 4.0 * rng.random::<f64>() - 1.5).collect();
            let mut p = z.clone();
            body.project(&mut p);
            for x in draws.iter().chain(&corners).chain([&p]) {
                prop_assert!(inside(x), "{:?} {:?}", bands, x);
                let to_z: Vec<f64> = z.iter().zip(&p).map(|(z, p)| z - p).collect();
                let to_x: Vec<f64> = x.iter().zip(&p).map(|(x, p)| x - p).collect();
                prop_assert!(dot(&to_z, &to_x) <= 1e-8);
            }
        }
    }
}
