//! Known constraints: checks of members of a box, and feasible members by rejection sampling.

use ndarray::{Array2, ArrayView1, ArrayView2, Axis, concatenate};
use rand::RngExt;
use rand::seq::SliceRandom;

use super::excluded::Excluded;
use super::exhaustive::{can_be_enumerated, combinations};
use crate::error::{Error, Result, check};
use crate::problem::Domain;
use crate::random::Call;

/// The largest number of points that are tried in the search for a feasible point.
pub const MAX_TRIES: usize = 10_000;
/// The size of a full pool, and of each batch of points that are tried for the pool.
const POOL: usize = 512;
const BATCH: usize = 500;
/// The sizes of the first and of the largest batch of random points.
const BATCHES: (usize, usize) = (4, 512);

/// A function that takes encoded points as rows, and returns whether each point satisfies the constraints.
pub type Check<'a> = dyn Fn(ArrayView2<f64>) -> Result<Vec<bool>> + 'a;

/// Optional constraints. Checks are slow, because they call functions of the user.
#[derive(Clone, Copy, Default)]
pub struct Feasible<'a>(Option<&'a Check<'a>>);

impl std::fmt::Debug for Feasible<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "Feasible(constrained: {})", self.is_constrained())
    }
}

impl<'a> Feasible<'a> {
    /// No constraints.
    pub const EVERYWHERE: Feasible<'static> = Feasible(None);

    /// Creates constraints from a function that checks rows.
    pub fn by(check: &'a Check<'a>) -> Self {
        Self(Some(check))
    }

    /// Whether there are constraints.
    pub(crate) fn is_constrained(self) -> bool {
        self.0.is_some()
    }

    /// Whether each row satisfies the constraints.
    pub(crate) fn of_rows(self, rows: ArrayView2<f64>) -> Result<Vec<bool>> {
        let Some(check) = self.0 else {
            return Ok(vec![true; rows.nrows()]);
        };
        if rows.nrows() == 0 {
            return Ok(Vec::new());
        }
        let found = check(rows)?;
        if found.len() != rows.nrows() {
            return Err(Error::Shape(format!(
                "the constraints gave {} answers for {} points; give one for each",
                found.len(),
                rows.nrows()
            )));
        }
        Ok(found)
    }

    /// Whether the point `x` satisfies the constraints.
    pub(crate) fn holds(self, x: &[f64]) -> Result<bool> {
        let rows = ArrayView1::from(x).insert_axis(Axis(0));
        Ok(self.of_rows(rows)?.first() == Some(&true))
    }

    /// Returns the first `count` rows of `order` that satisfy the constraints. Later rows are not checked.
    pub(crate) fn first(
        self,
        count: usize,
        order: &[usize],
        rows: ArrayView2<f64>,
    ) -> Result<Vec<usize>> {
        if !self.is_constrained() {
            return Ok(order[..order.len().min(count)].to_vec());
        }
        let mut found = Vec::new();
        for some in order.chunks(count.max(8)) {
            let checked = self.of_rows(rows.select(Axis(0), some).view())?;
            let passed = some.iter().zip(checked).filter(|(_, passed)| *passed);
            found.extend(passed.map(|(&i, _)| i));
            if found.len() >= count {
                break;
            }
        }
        found.truncate(count);
        Ok(found)
    }
}

/// Returns all members of a box, or None if the box has too many members to enumerate.
fn all_members(domain: &Domain) -> Option<Array2<f64>> {
    match domain {
        Domain::Box(coordinates) if domain.is_finite() && can_be_enumerated(coordinates) => {
            Some(combinations(coordinates, domain.width()))
        }
        _ => None,
    }
}

/// Draws uniformly from the feasible members that are not excluded, or sparsely, or returns None if all tries fail.
fn sample(
    domain: &Domain,
    sparse: bool,
    feasible: Feasible,
    excluded: &Excluded,
    call: &mut Call,
) -> Result<Option<Vec<f64>>> {
    let (mut tried, (mut batch, largest)) = (0, BATCHES);
    while tried < MAX_TRIES {
        check(call.stop)?;
        let mut rows = Array2::zeros((batch.min(MAX_TRIES - tried), domain.width()));
        for mut row in rows.rows_mut() {
            let x = match sparse {
                true => domain.sample_sparse(call.rng),
                false => domain.sample_uniform(call.rng).0,
            };
            row.assign(&ArrayView1::from(&x));
        }
        for (row, passed) in rows.rows().into_iter().zip(feasible.of_rows(rows.view())?) {
            let x = row.to_vec();
            if passed && !excluded.contains(domain, &x) {
                return Ok(Some(x));
            }
        }
        tried += rows.nrows();
        batch = (2 * batch).min(largest);
    }
    let Some(all) = all_members(domain) else {
        return Ok(None);
    };
    let passed = feasible.of_rows(all.view())?;
    let members = all.rows().into_iter().zip(passed);
    let members = members.filter(|(_, passed)| *passed);
    let left: Vec<Vec<f64>> = members
        .map(|(row, _)| row.to_vec())
        .filter(|x| !excluded.contains(domain, x))
        .collect();
    Ok(match left.len() {
        0 => None,
        n => Some(left[call.rng.random_range(0..n)].clone()),
    })
}

/// A pool of feasible members of a box, created once, because finding them at every suggestion would be too slow under
/// tight constraints.
#[derive(Debug, Clone)]
pub struct Pool {
    points: Array2<f64>,
    /// Whether the pool contains every feasible member.
    complete: bool,
    /// Whether evenly spread points are infeasible, so that the members are sparse.
    sparse: bool,
    tried: usize,
}

impl Pool {
    /// Creates a pool of all feasible members if the box can be enumerated, and otherwise of the first feasible points
    /// of an evenly spread sequence. If there are none, the pool consists of feasible points of
    /// [`Domain::sample_sparse`].
    pub fn new(domain: &Domain, feasible: Feasible, call: &mut Call) -> Result<Self> {
        let keep = |rows: &Array2<f64>| -> Result<Array2<f64>> {
            let passed = feasible.of_rows(rows.view())?;
            let kept: Vec<usize> = (0..rows.nrows()).filter(|&i| passed[i]).collect();
            Ok(rows.select(Axis(0), &kept))
        };
        if let Some(all) = all_members(domain) {
            let members = keep(&all)?;
            // Shuffling spreads the first points of the pool over the domain.
            let mut order: Vec<usize> = (0..members.nrows()).collect();
            order.shuffle(call.rng);
            return Ok(Self {
                points: members.select(Axis(0), &order),
                complete: true,
                sparse: false,
                tried: all.nrows(),
            });
        }
        let mut points = Array2::zeros((0, domain.width()));
        let mut tried = 0;
        while tried < MAX_TRIES && points.nrows() < POOL {
            check(call.stop)?;
            let found = keep(&domain.quasi_random(BATCH, call.rng))?;
            points = concatenate![Axis(0), points, found];
            tried += BATCH;
        }
        let sparse = points.is_empty();
        while sparse && tried < 2 * MAX_TRIES && points.nrows() < POOL {
            check(call.stop)?;
            let mut rows = Array2::zeros((BATCH, domain.width()));
            for mut row in rows.rows_mut() {
                row.assign(&ArrayView1::from(&domain.sample_sparse(call.rng)));
            }
            points = concatenate![Axis(0), points, keep(&rows)?];
            tried += BATCH;
        }
        Ok(Self {
            points,
            complete: false,
            sparse,
            tried,
        })
    }

    /// The feasible members (n, width).
    pub fn points(&self) -> ArrayView2<'_, f64> {
        self.points.view()
    }

    /// The share of the tried points that satisfied the constraints.
    pub fn share(&self) -> f64 {
        self.points.nrows() as f64 / self.tried as f64
    }

    /// Whether the pool contains every feasible member of the box.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Returns a random feasible member that is not excluded, or any feasible member if all feasible members are
    /// excluded.
    pub fn sample_left(
        &self,
        domain: &Domain,
        feasible: Feasible,
        excluded: &Excluded,
        call: &mut Call,
    ) -> Result<Vec<f64>> {
        if !self.complete
            && let Some(x) = sample(domain, self.sparse, feasible, excluded, call)?
        {
            return Ok(x);
        }
        let members = || self.points.rows().into_iter().map(|row| row.to_vec());
        let mut left: Vec<Vec<f64>> = members()
            .filter(|x| !excluded.contains(domain, x))
            .collect();
        if left.is_empty() {
            left = members().collect();
        }
        if left.is_empty() {
            return Err(Error::NoFeasiblePoint { tried: self.tried });
        }
        Ok(left.swap_remove(call.rng.random_range(0..left.len())))
    }
}
