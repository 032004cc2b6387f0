//! The points that are suggested before the model has data.

use ndarray::{Array2, ArrayView1, ArrayView2};

use crate::error::Result;
use crate::gp::GaussianProcess;
use crate::ledger::{Ledger, State, TrialNumber};
use crate::maximize::constrained::Allowed;
use crate::maximize::{Maximizer, maximize};
use crate::problem::{Domain, Member};
use crate::random::{Call, Rng};
use crate::strategy::bayes::acquisitions::formula::{Formula, Scorer};
use crate::strategy::bayes::acquisitions::max_variance::MaxVariance;
use crate::strategy::bayes::settings::DesignMethod;
use crate::strategy::uniform_point;

/// The number of additional quasi-random points after the first n. The additional points are used for trials that start
/// before the first observation.
const N_EXTRA: usize = 128;

/// Returns the first n points. Candidates are drawn without replacement. Quasi-random points fill the domain evenly; in
/// this case, [`N_EXTRA`] more points are returned after the first n. For uncertainty sampling, the result is empty,
/// because each point depends on the earlier points.
pub fn initial_design(domain: &Domain, n: usize, how: DesignMethod, rng: &mut Rng) -> Vec<Member> {
    let of_box = |x: ArrayView1<f64>| Member::new(x.to_vec(), None);
    match (domain, how) {
        (_, DesignMethod::Uncertainty) => Vec::new(),
        (Domain::Candidates(list), _) => {
            rand::seq::index::sample(rng, list.nrows(), n.min(list.nrows()))
                .into_iter()
                .map(|i| Member::new(list.row(i).to_vec(), Some(i)))
                .collect()
        }
        (Domain::Box(_), DesignMethod::Uniform) => {
            (0..n).map(|_| uniform_point(domain, rng)).collect()
        }
        (Domain::Box(_), DesignMethod::QuasiRandom) => {
            let points = domain.quasi_random_and_more(n, N_EXTRA, rng);
            points.rows().into_iter().map(of_box).collect()
        }
    }
}

/// Uncertainty sampling (Kandasamy et al. 2017, proposition 2). Return the point with the largest variance in this
/// context, given the rows `before`. The variance depends on the points of the rows, and not on the observed values.
pub fn most_uncertain(
    mut prior: GaussianProcess,
    before: ArrayView2<f64>,
    (domain, context): (&Domain, &[f64]),
    allowed: Allowed,
    call: &mut Call,
) -> Result<Member> {
    prior.append_rows(before)?;
    prior.set_targets(&vec![0.0; before.nrows()])?;
    let variance = MaxVariance {};
    let maximizer = Maximizer::Default {
        effort: variance.effort(before.nrows()),
    };
    let mut scorer = Scorer::new(&prior, &variance, context);
    let nowhere = Array2::zeros((0, domain.width()));
    let around = nowhere.view();
    let best = maximize(&mut scorer, domain, around, &maximizer, allowed, call)?;
    Ok(best.member())
}

/// Returns the trials whose points should not be suggested next. The result contains every trial, except trials that
/// were abandoned before the last value or failure was reported.
pub fn standing(log: &Ledger) -> Vec<TrialNumber> {
    let recent = log.recently_abandoned();
    let stands = |number: &TrialNumber| {
        log.trials()[*number].state != State::Abandoned || recent.contains(number)
    };
    (0..log.trials().len()).filter(stands).collect()
}
