//! The points that are recommended for use after the search for a front: each increases the hypervolume of the posterior
//! means of the points before it by as much as possible.
//!
//! Every point is the best of the observed points that may belong to the front, and of the point of the domain where the
//! acquisition of a front is largest if the means are uncertain by a small standard deviation.

use ndarray::{Array2, ArrayView1, ArrayView2, Axis, concatenate};

use crate::error::Result;
use crate::gp::{GaussianProcess, as_row};
use crate::ledger::View;
use crate::maximize::Maximizer;
use crate::numerics::hypervolume::Cells;
use crate::problem::{Domain, Member, Objective};
use crate::random::Rng;
use crate::strategy::Query;
use crate::strategy::bayes::acquisitions::formula::{Scorer, Sum};
use crate::strategy::bayes::acquisitions::log_constrained_improvement::LogConstrainedImprovement;
use crate::strategy::bayes::acquisitions::rule::Situation;
use crate::strategy::bayes::choose::measured::Measured;
use crate::strategy::bayes::choose::recommendation::penalties_at;
use crate::strategy::bayes::choose::search::{Scores, Search};
use crate::strategy::bayes::model::training_set::ConditionedPosterior;
use crate::strategy::bayes::terms::bounds::BoundTerm;
use crate::strategy::bayes::terms::front::Front;
use crate::strategy::bayes::terms::success::SuccessTerm;

/// The standard deviation of the means, in units of the targets.
const STD: f64 = 0.05;

/// A point that increases the hypervolume by a smaller share does not count.
const SMALLEST_SHARE: f64 = 1e-6;

/// The front of the posterior means: its acquisition with one fantasy, the observed points that may belong to it, the
/// means at these points (p, M), and the reference.
pub struct FrontOfMeans<'a> {
    formula: LogConstrainedImprovement<'a>,
    observed: Vec<Member>,
    means: Array2<f64>,
    reference: Vec<f64>,
}

impl<'a> FrontOfMeans<'a> {
    /// `first` is the posterior of the first objective, without a tail.
    pub fn new(
        front: Front<'a>,
        first: &ConditionedPosterior,
        (log, query): (View, Query),
        rng: &mut Rng,
    ) -> Result<Self> {
        let situation = Situation {
            gp: &first.gp,
            targets: &first.targets.values,
            unranked: &first.unranked,
            pending: &[],
            n_fantasies: None,
            nu: 0.0,
            lower_bound: None,
            query,
        };
        let observed = front.trials.iter().map(|it| log.member(*it)).collect();
        let (means, reference) = (front.means.clone(), front.reference.clone());
        let others = front.situations(&first.gp.tail().to_owned())?;
        let formula = LogConstrainedImprovement::draw_front(
            situation,
            others,
            Vec::new(),
            &reference,
            1,
            rng,
        )?;
        Ok(Self {
            formula,
            observed,
            means,
            reference,
        })
    }
}

/// Returns up to `n` distinct points. `gp` is the process of the first objective. Points with a penalty are left out.
pub fn recommended_front(
    search: &mut Search,
    gp: &GaussianProcess,
    front_of_means: FrontOfMeans,
    terms: (Option<&SuccessTerm>, &[BoundTerm], Option<&Measured>),
    n: usize,
) -> Result<Vec<Member>> {
    let FrontOfMeans {
        mut formula,
        observed,
        means: observed_means,
        reference,
    } = front_of_means;
    let mut left = penalties_at(search, &observed, terms)
        .iter()
        .map(|penalty| *penalty >= 0.0)
        .collect::<Vec<bool>>();
    let mut chosen: Vec<Member> = Vec::new();
    let mut front = Array2::zeros((0, reference.len()));
    while chosen.len() < n {
        let cells = Cells::new(front.view(), &reference);
        let increase = |means: ArrayView1<f64>| cells.improvement(means);
        let least = SMALLEST_SHARE * cells.hypervolume();
        let mut best: Option<(f64, Member, Vec<f64>)> = None;
        let mut take = |gain: f64, point: Member, means: Vec<f64>| {
            if gain > best.as_ref().map_or(least, |best| best.0) {
                best = Some((gain, point, means));
            }
        };
        for (k, means) in observed_means.rows().into_iter().enumerate() {
            if left[k] {
                take(increase(means), observed[k].clone(), means.to_vec());
            }
        }
        formula.set_front(front.view(), &reference, STD);
        let point = largest(search, gp, &formula, terms)?;
        let row = as_row([point.x.as_slice(), search.query.context].concat());
        let means = formula.posterior_means(gp, row.view());
        let allowed = search.query.feasible.holds(&point.x)?;
        let is_new = chosen.iter().all(|other| other.x != point.x);
        if allowed && is_new && penalties_at(search, std::slice::from_ref(&point), terms)[0] >= 0.0
        {
            take(increase(ArrayView1::from(&means)), point, means);
        }
        let Some((_, point, means)) = best else {
            break;
        };
        for (k, other) in observed.iter().enumerate() {
            left[k] &= other.x != point.x;
        }
        let means = ArrayView2::from_shape((1, means.len()), &means).expect("a row of means");
        front = concatenate![Axis(0), front, means];
        chosen.push(point);
    }
    Ok(chosen)
}

/// The point of the domain with the largest value of the acquisition and its penalties.
fn largest(
    search: &mut Search,
    gp: &GaussianProcess,
    formula: &LogConstrainedImprovement,
    (failures, bounds, _): (Option<&SuccessTerm>, &[BoundTerm], Option<&Measured>),
) -> Result<Member> {
    let context = search.query.context;
    let failures = failures.map(|failures| failures.scorer(context));
    let bounds = bounds.iter().map(|bound| bound.scorer(context));
    let penalties = failures.into_iter().chain(bounds).collect();
    let mut objective = Sum::of(Scorer::new(gp, formula, context), penalties);
    let best = match search.scope.domain {
        Domain::Candidates(list) => {
            let mut scores = vec![0.0; list.nrows()];
            objective.values(list.view(), &mut scores);
            search.best(&mut Scores::new(scores), &Maximizer::default())?
        }
        Domain::Box(_) => search.best(&mut objective, &Maximizer::default())?,
    };
    Ok(match search.query.restriction() {
        Some(restriction) => restriction.lift_member(best.member()),
        None => best.member(),
    })
}
