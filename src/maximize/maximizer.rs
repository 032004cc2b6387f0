//! The methods that search for the argmax, and the functions that run them.

use ndarray::{ArrayView1, ArrayView2};

use super::argmax::Argmax;
use super::constrained::{self, Allowed};
use super::excluded::Excluded;
use super::scoring::Search;
use super::starting_points::starting_points;
use super::{default_search, direct, exhaustive, multistart};
use crate::error::{Error, Result, refuse};
use crate::problem::{Coordinate, Domain, Objective};
use crate::random::Call;

/// The method used to search a box. Candidates are always enumerated.
#[derive(Clone, Debug, PartialEq)]
pub enum Maximizer {
    /// The search of [`super::default_search`]. `effort` scales the numbers of points and searches; 1 takes about 15 ms
    /// at d = 6.
    Default { effort: f64 },
    /// L-BFGS-B from random points, as in the literature. `n_raw` uniform points are evaluated, and then `n_starts`
    /// runs start from other uniform points. For boxes only; the best observed points are not used.
    Multistart { n_raw: usize, n_starts: usize },
    /// About `n_evaluations` evaluations by DIRECT, without gradients or randomness. For boxes only.
    Direct { n_evaluations: usize },
}

/// In a continuous box with best observed points, near which the best starts usually are, the number of evenly spread
/// points is divided by this number.
const EVEN_DIVISOR: usize = 4;

impl Default for Maximizer {
    fn default() -> Maximizer {
        Maximizer::Default { effort: 1.0 }
    }
}

/// Returns the best member of `domain` that the search finds and that satisfies the constraints.
///
/// `best_observed` (N, width) contains good observed points, best first, and may be empty. An excluded member is
/// returned only if all members are excluded. `Multistart` and `Direct` ignore excluded members and do not support
/// constraints. NaN counts as the smallest value. If all values of `objective` are NaN, a random member with value NaN
/// is returned. Errors: [`Error::Shape`], [`Error::InvalidSetting`], [`Error::Interrupted`].
pub fn maximize(
    objective: &mut dyn Objective,
    domain: &Domain,
    best_observed: ArrayView2<f64>,
    maximizer: &Maximizer,
    allowed: Allowed,
    call: &mut Call,
) -> Result<Argmax> {
    if let Some(pool) = allowed.pool {
        let Maximizer::Default { effort } = maximizer else {
            return Err(refuse(
                "maximizer",
                format!("{maximizer:?}"),
                "multistart and direct do not support constraints; use the default search",
            ));
        };
        let allowed = (allowed, pool);
        return constrained::best_feasible(
            objective,
            domain,
            best_observed,
            *effort,
            allowed,
            call,
        );
    }
    if best_observed.nrows() > 0 && best_observed.ncols() != domain.width() {
        return Err(Error::Shape(format!(
            "the best observed points have {} columns, the domain has {}; pass rows of the domain",
            best_observed.ncols(),
            domain.width()
        )));
    }
    let none = Excluded::default();
    let excluded = match allowed.excluded.is_all_of(domain) {
        true => &none,
        false => allowed.excluded,
    };
    let found = match (domain, maximizer) {
        (Domain::Candidates(points), Maximizer::Default { .. }) => {
            let skip = |row: ArrayView1<f64>| excluded.contains_row(row);
            exhaustive::best_row(objective, points.view(), &skip, call)?
        }
        (Domain::Candidates(_), literature) => {
            return Err(refuse(
                "maximizer",
                format!("{literature:?}"),
                "candidates are always enumerated; use the default maximizer, or a box",
            ));
        }
        (Domain::Box(product), Maximizer::Default { .. })
            if !product.contains(&Coordinate::Continuous)
                && exhaustive::can_be_enumerated(product) =>
        {
            let all = exhaustive::combinations(product, domain.width());
            let skip = |row: ArrayView1<f64>| excluded.contains_member(product, &row.to_vec());
            exhaustive::best_row(objective, all.view(), &skip, call)?
        }
        (Domain::Box(product), Maximizer::Default { effort }) => {
            let mut plan = default_search::Plan::new(product, *effort, true)?;
            if best_observed.nrows() > 0 && plan.n_combinations == 0 {
                plan.n_even = plan.n_even.div_ceil(EVEN_DIVISOR);
            }
            let start = starting_points(domain, product, best_observed, &plan, call.rng);
            Search::new(objective, product, excluded, call.stop).run(&start, &plan, call.rng)?
        }
        (Domain::Box(product), Maximizer::Multistart { n_raw, n_starts }) => {
            let counts = (*n_raw, *n_starts);
            multistart::best_of_starts(objective, domain, product, counts, call)?
        }
        (Domain::Box(_), Maximizer::Direct { n_evaluations }) => {
            direct::best_centre(objective, domain, *n_evaluations, call.stop)?
        }
    };
    let mut argmax = found.unwrap_or_else(|| {
        let (point, index) = excluded.sample_left(domain, call.rng);
        Argmax {
            point,
            index,
            value: f64::NAN,
        }
    });
    // Only a candidate has a row number.
    if let Domain::Box(product) = domain {
        argmax.index = None;
        product.snap(&mut argmax.point);
    }
    Ok(argmax)
}
