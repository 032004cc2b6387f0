//! Linear constraints on the parameters of a space, and their form in the columns of a box.
//!
//! Notation: low ≤ Σ a_i p_i ≤ high, where p_i = l_i + r_i x_i is the parameter with column x_i. Inactive parameters
//! count as 0.

use serde::{Deserialize, Serialize};

use super::band::Band;
use super::lattice::Lattice;
use super::polytope::Polytope;
use crate::random::Rng;

/// A point satisfies a constraint if the sum exceeds its bounds by at most this share of Σ |a_i| r_i.
pub const TOLERANCE: f64 = 1e-9;

/// A linear constraint on named parameters: at_least ≤ Σ a_i p_i ≤ at_most. A *count* constrains the number of the
/// parameters that are not zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Linear {
    /// The names of the parameters with their coefficients a_i or, in a count, with the numbers that count as zero.
    pub terms: Vec<(String, f64)>,
    pub at_least: Option<f64>,
    pub at_most: Option<f64>,
    /// The step of the parameters, for a mixture whose parts are multiples of a step.
    pub step: Option<f64>,
    /// By how much the sum of a measured point may exceed the bounds. Suggested points keep to the bounds.
    pub tolerance: f64,
    /// Whether the parameters that are not zero are counted.
    pub counts: bool,
}

impl Linear {
    /// The constraint as a formula, such as: a + 2.0 b <= 1.0.
    pub fn formula(&self) -> String {
        if self.counts {
            let names = self.terms.iter().map(|term| &term.0[..]);
            let count = format!("nonzero({})", names.collect::<Vec<_>>().join(", "));
            return self.between(count, |bound| bound.to_string());
        }
        let mut sum = String::new();
        for (i, (name, a)) in self.terms.iter().enumerate() {
            let sign = match (i, *a < 0.0) {
                (0, false) => "",
                (0, true) => "-",
                (_, false) => " + ",
                (_, true) => " - ",
            };
            let size = match a.abs() {
                1.0 => String::new(),
                size => format!("{size:?} "),
            };
            sum += &format!("{sign}{size}{name}");
        }
        self.between(sum, |bound| format!("{bound:?}"))
    }

    /// The sum of the parts, if the constraint is a mixture of real parts: equal coefficients, and a fixed sum.
    pub(super) fn total(&self) -> Option<f64> {
        let a = self.terms.first()?.1;
        let is_mixture = self.at_least == self.at_most && self.terms.iter().all(|term| term.1 == a);
        let sum = self.at_least.filter(|_| is_mixture)?;
        (!self.counts && self.step.is_none()).then_some(sum / a)
    }

    /// A sum with its bounds.
    fn between(&self, sum: String, text: impl Fn(f64) -> String) -> String {
        match (self.at_least.map(&text), self.at_most.map(&text)) {
            (Some(low), Some(high)) if low == high => format!("{sum} = {high}"),
            (Some(low), Some(high)) => format!("{low} <= {sum} <= {high}"),
            (Some(low), None) => format!("{sum} >= {low}"),
            (None, Some(high)) => format!("{sum} <= {high}"),
            (None, None) => sum,
        }
    }
}

/// A constraint in terms of coordinates: each has its number, its coefficient a_i r_i, and a_i l_i.
#[derive(Clone, Debug, PartialEq)]
pub struct Weighted {
    pub terms: Vec<(usize, f64, f64)>,
    pub low: f64,
    pub high: f64,
}

/// The constraints of a box.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct LinearSet {
    weighted: Vec<Weighted>,
    /// The coordinates with constraints, and their columns.
    coordinates: Vec<usize>,
    columns: Vec<usize>,
    /// The points that satisfy the constraints, for each set of active coordinates.
    bodies: Vec<(Vec<bool>, Polytope)>,
    /// Constraints on discrete coordinates. A coordinate is in at most one of the lattices.
    pub lattices: Vec<Lattice>,
}

impl LinearSet {
    /// Creates the set. `column` has the column of each coordinate, and `patterns` the sets of coordinates that are
    /// active together. If the constraints contradict each other, the error contains the numbers of these constraints,
    /// and the set of active coordinates.
    pub fn new(
        weighted: Vec<Weighted>,
        lattices: Vec<Lattice>,
        column: &[usize],
        patterns: &[Vec<bool>],
    ) -> Result<Self, (Vec<usize>, Vec<bool>)> {
        let terms = weighted.iter().flat_map(|each| &each.terms);
        let mut coordinates: Vec<usize> = terms.map(|term| term.0).collect();
        coordinates.sort_unstable();
        coordinates.dedup();
        let mut bodies: Vec<(Vec<bool>, Polytope)> = Vec::new();
        for pattern in patterns {
            let active: Vec<bool> = coordinates.iter().map(|&i| pattern[i]).collect();
            if coordinates.is_empty() || bodies.iter().any(|(known, _)| *known == active) {
                continue;
            }
            let here: Vec<usize> = coordinates
                .iter()
                .copied()
                .filter(|&i| pattern[i])
                .collect();
            let bands: Vec<Band> = weighted.iter().map(|each| each.band(&here)).collect();
            let body = Polytope::new(here.len(), &bands);
            bodies.push((active, body.map_err(|bands| (bands, pattern.clone()))?));
        }
        Ok(Self {
            columns: coordinates.iter().map(|&i| column[i]).collect(),
            coordinates,
            weighted,
            bodies,
            lattices,
        })
    }

    /// The constraints, to which further constraints can be added.
    pub fn weighted(&self) -> &[Weighted] {
        &self.weighted
    }

    /// The constraints that hold wherever the others hold.
    pub fn redundant(&self) -> Vec<usize> {
        let is_redundant = |i: &usize| {
            self.bodies
                .iter()
                .all(|(_, body)| body.redundant().contains(i))
        };
        (0..self.weighted.len()).filter(is_redundant).collect()
    }

    /// The lattice that contains this column.
    pub fn lattice_of(&self, column: usize) -> Option<&Lattice> {
        self.lattices
            .iter()
            .find(|each| each.columns.contains(&column))
    }

    /// The lattices between whose points a search cannot move continuously.
    pub fn rigid(&self) -> impl Iterator<Item = &Lattice> {
        self.lattices.iter().filter(|each| !each.can_be_relaxed())
    }

    /// Whether a continuous coordinate with this column has constraints.
    pub fn is_constrained(&self, column: usize) -> bool {
        self.columns.contains(&column)
    }

    /// The number of the body where these coordinates are active; None stands for all coordinates.
    pub fn body(&self, active: Option<&[bool]>) -> usize {
        let of = |&i: &usize| active.is_none_or(|active| active[i]);
        let own: Vec<bool> = self.coordinates.iter().map(of).collect();
        let found = self.bodies.iter().position(|(known, _)| *known == own);
        found.unwrap_or(0)
    }

    /// A body and the columns of its coordinates. None if all constraints are on discrete coordinates.
    pub fn columns_of(&self, body: usize) -> Option<(Vec<usize>, &Polytope)> {
        let (active, body) = self.bodies.get(body)?;
        let columns = self.columns.iter().zip(active);
        let columns = columns.filter(|(_, active)| **active);
        Some((columns.map(|(&column, _)| column).collect(), body))
    }

    /// Replaces the columns of the constrained coordinates by the nearest point that satisfies the constraints.
    pub fn snap(&self, body: usize, x: &mut [f64]) {
        if let Some((columns, body)) = self.columns_of(body) {
            let mut own: Vec<f64> = columns.iter().map(|&c| x[c]).collect();
            body.project(&mut own);
            columns.iter().zip(own).for_each(|(&c, v)| x[c] = v);
        }
    }

    /// Works as `snap`, and replaces the parts of relaxed lattices by the nearest parts with the same sum.
    pub fn snap_relaxed(&self, body: usize, x: &mut [f64]) {
        self.snap(body, x);
        self.lattices.iter().for_each(|each| each.snap_relaxed(x));
    }

    /// Returns n rows with uniform points in the constrained columns. The other columns are 0.
    pub fn sample(&self, body: usize, n: usize, width: usize, rng: &mut Rng) -> Vec<Vec<f64>> {
        let mut rows = vec![vec![0.0; width]; n];
        if let Some((columns, body)) = self.columns_of(body) {
            for (row, point) in rows.iter_mut().zip(body.sample(n, rng)) {
                columns.iter().zip(point).for_each(|(&c, v)| row[c] = v);
            }
        }
        for row in &mut rows {
            self.lattices.iter().for_each(|each| each.sample(row, rng));
        }
        rows
    }

    /// Copies the constrained columns of a row that `sample` returned.
    pub fn copy(&self, body: usize, from: &[f64], to: &mut [f64]) {
        let own = self.columns_of(body).map(|(columns, _)| columns);
        let lattices = self.lattices.iter().flat_map(|each| &each.columns);
        for &column in own.iter().flatten().chain(lattices) {
            to[column] = from[column];
        }
    }
}

impl Weighted {
    /// The constraint on the coordinates `here`; other coordinates count as 0.
    fn band(&self, here: &[usize]) -> Band {
        let mut coefficients = vec![0.0; here.len()];
        let mut constant = 0.0;
        for (i, a, at_low) in &self.terms {
            if let Ok(k) = here.binary_search(i) {
                coefficients[k] = *a;
                constant += at_low;
            }
        }
        Band {
            coefficients,
            low: self.low - constant,
            high: self.high - constant,
        }
    }
}
