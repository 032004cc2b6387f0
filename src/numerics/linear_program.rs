//! Small dense linear programs, by the two-phase simplex method with a tableau (Dantzig 1963; Bland 1977).
//!
//! The crate `microlp` meets constraints within 1e-7, and within 1e-10 at best. Bodies with an inner radius of 1e-6
//! have to be told apart from flat ones here, and the programs have at most some dozens of rows, for which a tableau is
//! exact up to rounding.
//!
//! Notation: maximise cᵀx subject to x ≥ 0, rows aᵀx ≤ b, and rows aᵀx = b.

/// A row: the coefficients a and the bound b.
pub type Row = (Vec<f64>, f64);

/// The largest sum of violations at which rows count as feasible.
const FEASIBLE: f64 = 1e-10;
/// Reduced costs and pivots that are smaller count as zero.
const ZERO: f64 = 1e-11;
/// After this number of pivots per row, Bland's rule prevents cycles.
const DANTZIG_PIVOTS: usize = 8;

/// Returns a vertex at which cᵀx is largest, or None if no x satisfies the rows. The rows must bound cᵀx.
pub fn maximize(c: &[f64], at_most: &[Row], equal: &[Row]) -> Option<Vec<f64>> {
    Program::new(c.len(), at_most, equal).map(|mut program| program.maximize(c))
}

/// The rows of linear programs that differ in c. Each search starts at the vertex at which the search before ended.
pub struct Program(Tableau);

impl Program {
    /// Finds a vertex of the rows of n variables. None if no x satisfies them.
    pub fn new(n: usize, at_most: &[Row], equal: &[Row]) -> Option<Self> {
        let mut tableau = Tableau::new(n, at_most, equal);
        let n_real = tableau.n_real;
        if tableau.n_columns > n_real {
            let costs = (0..tableau.n_columns).map(|j| if j < n_real { 0.0 } else { -1.0 });
            tableau.solve(&costs.collect::<Vec<f64>>());
            let violations = tableau.rows.iter().zip(&tableau.basis);
            let violations = violations.filter(|(_, j)| **j >= n_real);
            if violations
                .map(|(row, _)| row[tableau.n_columns])
                .sum::<f64>()
                > FEASIBLE
            {
                return None;
            }
            tableau.drop_artificial();
        }
        Some(Self(tableau))
    }

    /// Returns a vertex at which cᵀx is largest. The rows must bound cᵀx.
    pub fn maximize(&mut self, c: &[f64]) -> Vec<f64> {
        let tableau = &mut self.0;
        let mut costs = vec![0.0; tableau.n_columns];
        costs[..c.len()].copy_from_slice(c);
        tableau.solve(&costs);
        let mut x = vec![0.0; c.len()];
        for (row, &j) in tableau.rows.iter().zip(&tableau.basis) {
            if j < c.len() {
                x[j] = row[tableau.n_columns].max(0.0);
            }
        }
        x
    }
}

/// The rows in terms of the basis: each row is solved for its basic column. The last entry of a row is the right side.
struct Tableau {
    rows: Vec<Vec<f64>>,
    basis: Vec<usize>,
    /// The number of variables and slacks. The artificial columns follow.
    n_real: usize,
    n_columns: usize,
}

impl Tableau {
    fn new(n: usize, at_most: &[Row], equal: &[Row]) -> Self {
        let n_real = n + at_most.len();
        let all = || at_most.iter().chain(equal);
        let needs = |i: usize, b: f64| i >= at_most.len() || b < 0.0;
        let n_artificial = all()
            .enumerate()
            .filter(|(i, row)| needs(*i, row.1))
            .count();
        let n_columns = n_real + n_artificial;
        let (mut rows, mut basis, mut next) = (Vec::new(), Vec::new(), n_real);
        for (i, (a, b)) in all().enumerate() {
            let sign = if *b < 0.0 { -1.0 } else { 1.0 };
            let mut row = vec![0.0; n_columns + 1];
            for (entry, a) in row.iter_mut().zip(a) {
                *entry = sign * a;
            }
            row[n_columns] = sign * b;
            if i < at_most.len() {
                row[n + i] = sign;
            }
            if needs(i, *b) {
                row[next] = 1.0;
                basis.push(next);
                next += 1;
            } else {
                basis.push(n + i);
            }
            rows.push(row);
        }
        Self {
            rows,
            basis,
            n_real,
            n_columns,
        }
    }

    /// Pivots until no column increases the objective.
    fn solve(&mut self, costs: &[f64]) {
        let n_dantzig = DANTZIG_PIVOTS * (self.rows.len() + 1);
        for n_pivots in 0..50 * n_dantzig {
            let reduced = |j: usize| {
                let basic = self.rows.iter().zip(&self.basis);
                costs[j] - basic.map(|(row, &k)| costs[k] * row[j]).sum::<f64>()
            };
            let gains = (0..self.n_columns).map(|j| (j, reduced(j)));
            let mut gains = gains.filter(|(_, gain)| *gain > ZERO);
            let entering = match n_pivots < n_dantzig {
                true => gains.max_by(|a, b| a.1.total_cmp(&b.1)),
                false => gains.next(),
            };
            let Some((entering, _)) = entering else {
                return;
            };
            let ratio = |i: usize| self.rows[i][self.n_columns] / self.rows[i][entering];
            let leaving = (0..self.rows.len()).filter(|&i| self.rows[i][entering] > ZERO);
            let order = |&i: &usize, &k: &usize| {
                ratio(i)
                    .total_cmp(&ratio(k))
                    .then(self.basis[i].cmp(&self.basis[k]))
            };
            let Some(leaving) = leaving.min_by(order) else {
                return; // the objective is not bounded
            };
            self.pivot(leaving, entering);
        }
    }

    fn pivot(&mut self, leaving: usize, entering: usize) {
        let by = self.rows[leaving][entering];
        self.rows[leaving].iter_mut().for_each(|v| *v /= by);
        let pivot = self.rows[leaving].clone();
        for (i, row) in self.rows.iter_mut().enumerate() {
            let factor = row[entering];
            if i != leaving && factor != 0.0 {
                row.iter_mut()
                    .zip(&pivot)
                    .for_each(|(v, p)| *v -= factor * p);
                row[entering] = 0.0;
            }
        }
        self.basis[leaving] = entering;
    }

    /// Removes the artificial columns. Rows that are sums of other rows are removed with them.
    fn drop_artificial(&mut self) {
        for i in (0..self.rows.len()).rev() {
            if self.basis[i] < self.n_real {
                continue;
            }
            let size = |j: &usize| self.rows[i][*j].abs();
            let largest = (0..self.n_real).max_by(|j, k| size(j).total_cmp(&size(k)));
            match largest.filter(|j| size(j) > 1e-9) {
                Some(j) => self.pivot(i, j),
                None => {
                    self.rows.remove(i);
                    self.basis.remove(i);
                }
            }
        }
        for row in &mut self.rows {
            let right = row[self.n_columns];
            row.truncate(self.n_real);
            row.push(right);
        }
        self.n_columns = self.n_real;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The largest cᵀx over all vertices, which are the feasible solutions of n of the rows and of the bounds, by
    /// Cramer's rule in the plane.
    fn best_of_vertices(c: [f64; 2], rows: &[Row]) -> Option<f64> {
        let bounds = [(vec![-1.0, 0.0], 0.0), (vec![0.0, -1.0], 0.0)];
        let all: Vec<&Row> = rows.iter().chain(&bounds).collect();
        let mut best: Option<f64> = None;
        for (i, (a, b)) in all.iter().enumerate() {
            for (d, e) in &all[..i] {
                let determinant = a[0] * d[1] - a[1] * d[0];
                if determinant.abs() < 1e-9 {
                    continue;
                }
                let x = (b * d[1] - a[1] * e) / determinant;
                let y = (a[0] * e - b * d[0]) / determinant;
                if all.iter().all(|(a, b)| a[0] * x + a[1] * y <= b + 1e-9) {
                    let value = c[0] * x + c[1] * y;
                    best = Some(best.map_or(value, |best| best.max(value)));
                }
            }
        }
        best
    }

    proptest! {
        #[test]
        fn maximum_is_the_best_vertex(
            entries in prop::collection::vec((-9..=9i32, -9..=9i32, -6..=9i32), 0..6), c in (-9..=9i32, -9..=9i32),
        ) {
            let mut rows: Vec<Row> = entries.iter()
                .map(|(a, d, b)| (vec![f64::from(*a), f64::from(*d)], f64::from(*b)))
                .collect();
            rows.push((vec![1.0, 0.0], 2.0));
            rows.push((vec![0.0, 1.0], 2.0));
            prop_assume!(rows.iter().all(|(a, _)| a[0] != 0.0 || a[1] != 0.0));
            let c = [f64::from(c.0), f64::from(c.1)];
            let found = maximize(&c, &rows, &[]).map(|x| c[0] * x[0] + c[1] * x[1]);
            match (found, best_of_vertices(c, &rows)) {
                (Some(found), Some(expected)) => prop_assert!((found - expected).abs() < 1e-8),
                (found, expected) => prop_assert_eq!(found, expected),
            }
        }
    }

    #[test]
    fn equalities_may_be_redundant_or_contradict() {
        let cap: Vec<Row> = (0..3)
            .map(|i| ((0..3).map(|j| f64::from(u8::from(i == j))).collect(), 1.0))
            .collect();
        let sum = (vec![1.0; 3], 1.0);
        let twice = (vec![2.0; 3], 2.0);
        let found = maximize(&[1.0, 2.0, 0.0], &cap, &[sum.clone(), twice]);
        assert_eq!(found, Some(vec![0.0, 1.0, 0.0]));
        assert_eq!(maximize(&[0.0; 3], &cap, &[sum, (vec![1.0; 3], 1.5)]), None);
        assert_eq!(maximize(&[0.0; 3], &cap, &[(vec![1.0; 3], 3.5)]), None);
    }
}
