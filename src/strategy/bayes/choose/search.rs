//! The search for the point of the domain that maximises an acquisition or a draw from the posterior.

use ndarray::{Array2, ArrayView2, Axis, concatenate};

use crate::error::Result;
use crate::gp::draw::path::Path;
use crate::gp::{GaussianProcess, as_row};
use crate::ledger::{TrialNumber, View};
use crate::maximize::constrained::Allowed;
use crate::maximize::excluded::Excluded;
use crate::maximize::feasible::Pool;
use crate::maximize::{Argmax, Maximizer, maximize};
use crate::problem::{Domain, Member, Objective};
use crate::random::Call;
use crate::strategy::Query;
use crate::strategy::bayes::acquisitions::draws::{DrawMethod, Draws};
use crate::strategy::bayes::acquisitions::formula::{Formula, Scorer, Sum};
use crate::strategy::bayes::acquisitions::max_variance::MaxVariance;
use crate::strategy::bayes::acquisitions::rule::Maximand;
use crate::strategy::bayes::acquisitions::ucb::UpperConfidenceBound;
use crate::strategy::bayes::choose::best_observed::best_observed;
use crate::strategy::bayes::choose::repeats::{least_std, repeats_exact_value};
use crate::strategy::bayes::choose::spacing::enforce_separation;
use crate::strategy::bayes::model::candidates::{SolvedCandidates, solved};
use crate::strategy::bayes::model::training_set::{ConditionedPosterior, Posterior};
use crate::strategy::bayes::settings::Settings;
use crate::strategy::bayes::terms::Terms;
use crate::strategy::bayes::terms::bounds::BoundTerm;
use crate::strategy::bayes::terms::success::SuccessTerm;

/// The posterior mean as an acquisition.
pub const MEAN: UpperConfidenceBound = UpperConfidenceBound {
    multiplier: 0.0,
    noise: 0.0,
};

/// The number of quasi-random points among which the search looks for a point far from all rows.
const SPREAD: usize = 64;

/// The domain that is searched, and the settings of the search.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// The searched domain.
    pub domain: &'a Domain,
    /// The domain of the problem.
    pub full: &'a Domain,
    pub settings: &'a Settings,
    /// The pool of feasible points, if there are constraints.
    pub pool: Option<&'a Pool>,
}

/// A search for the point of the domain that maximises an acquisition or a draw from the posterior.
pub struct Search<'a, 'c> {
    pub scope: Scope<'a>,
    pub log: View<'a>,
    pub query: Query<'a>,
    pub best_observed: Array2<f64>,
    pub excluded: Excluded,
    pub nu: f64,
    pub call: &'a mut Call<'c>,
}

impl<'a, 'c> Search<'a, 'c> {
    /// Creates a search that also starts around the best rows of a posterior. Initially, no points are excluded, and ν
    /// is 0.
    pub fn new<G>(
        scope: Scope<'a>,
        posterior: &Posterior<G>,
        log: View<'a>,
        query: Query<'a>,
        call: &'a mut Call<'c>,
    ) -> Result<Self> {
        let (rows, targets) = (posterior.rows, &posterior.targets.values);
        Ok(Self {
            best_observed: best_observed(scope.domain, log, rows, targets, query)?,
            scope,
            log,
            query,
            excluded: Excluded::default(),
            nu: 0.0,
            call,
        })
    }

    /// The best point of the domain, and the value at this point. The point is random if every value is NaN.
    pub(super) fn best(
        &mut self,
        objective: &mut dyn Objective,
        maximizer: &Maximizer,
    ) -> Result<Argmax> {
        let allowed = Allowed {
            excluded: &self.excluded,
            feasible: self.query.feasible_members(),
            pool: self.scope.pool,
        };
        let (domain, around) = (self.scope.domain, self.best_observed.view());
        match self.query.restriction() {
            None => maximize(objective, domain, around, maximizer, allowed, self.call),
            Some(restriction) => {
                let objective = &mut restriction.lifted(objective);
                maximize(objective, domain, around, maximizer, allowed, self.call)
            }
        }
    }

    /// The best point or, in a box, another good point if pending points are too near the best point.
    fn best_separated(
        &mut self,
        objective: &mut dyn Objective,
        maximizer: &Maximizer,
        pending: ArrayView2<f64>,
    ) -> Result<Member> {
        let best = self.best(objective, maximizer)?.member();
        let (domain, feasible) = (self.scope.domain, self.query.feasible_members());
        let rng = &mut *self.call.rng;
        match self.query.restriction() {
            None => enforce_separation(objective, domain, best, pending, feasible, rng),
            Some(restriction) => {
                let objective = &mut restriction.lifted(objective);
                enforce_separation(objective, domain, best, pending, feasible, rng)
            }
        }
    }

    /// The factor that scales the deviation of a draw from the posterior mean. GP-TS-SDF draws from GP(mu,
    /// nu_t²·Sigma). All other algorithms draw from the posterior.
    fn draw_scale(&self, draws: Draws) -> f64 {
        match draws.widen && self.scope.settings.pending().is_censor() {
            true => self.nu,
            false => 1.0,
        }
    }

    /// Computes the scores of all candidates, and returns the candidate with the best score. The solutions in `kept`
    /// are reused if they are still valid.
    pub fn candidates(
        &mut self,
        kept: &mut Option<SolvedCandidates>,
        list: &Array2<f64>,
        posterior: &ConditionedPosterior,
        maximand: Maximand,
        terms: Terms,
    ) -> Result<Member> {
        let gp = &*posterior.gp;
        let solved = solved(
            kept,
            list,
            self.query,
            posterior.version,
            gp,
            self.call.stop,
        )?;
        let mut scores = match maximand {
            Maximand::Formula(acquisition) => solved.score(gp, acquisition.as_ref()),
            Maximand::Draw(draws) => {
                let rows = [posterior.rows, &posterior.tail.trials].concat();
                let scale = self.draw_scale(draws);
                solved.draw(gp, self.log, &rows, scale, self.call.rng)?
            }
            Maximand::ParetoSet => unreachable!("AEGiS is refused for candidates"),
        };
        for mut term in terms {
            let added = term.of_candidates(list, self.query, self.call.stop)?;
            let both = scores.iter_mut().zip(added);
            both.for_each(|(score, added)| *score += added);
        }
        if let Some(rows) = self.query.restriction().and_then(|it| it.rows()) {
            scores = rows.iter().map(|&row| scores[row]).collect();
        }
        let best = self.best(&mut Scores::new(scores), &Maximizer::default())?;
        Ok(best.member())
    }

    /// Searches with an objective that computes values and gradients. The domain is a box, or a list of candidates that
    /// is too long for keeping the solutions of all candidates.
    pub fn functions(
        &mut self,
        posterior: &ConditionedPosterior,
        maximand: Maximand,
        mut terms: Terms,
    ) -> Result<Member> {
        let gp = &*posterior.gp;
        let search = self.scope.settings.search;
        let acquisition = match maximand {
            Maximand::Formula(acquisition) => acquisition,
            Maximand::Draw(draws) => Box::new(self.draw(gp, draws)?),
            Maximand::ParetoSet => {
                let maximizer = search.maximizer(MEAN.effort(gp.len()));
                let abandoned = self.log.recently_abandoned();
                let abandoned = points_out(self.scope.domain, self.log, &abandoned, self.query);
                return self.point_of_pareto_set(gp, &mut terms, &maximizer, abandoned.view());
            }
        };
        let maximizer = search.maximizer(acquisition.effort(gp.len()));
        let context = self.query.context;
        let ignores = self.scope.settings.pending().leaves_out();
        let mut avoided = self.log.recently_abandoned();
        if !ignores {
            avoided.extend(&posterior.tail.trials);
        }
        let out = points_out(self.scope.domain, self.log, &avoided, self.query);
        let added = terms.iter_mut().map(|term| term.scorer(context));
        let scorer = Scorer::new(gp, acquisition.as_ref(), context);
        let mut scorer = Sum::of(scorer, added.collect());
        // The result of a search from the literature is returned unchanged.
        if search.is_literature() {
            return Ok(self.best(&mut scorer, &maximizer)?.member());
        }
        let point = self.best_separated(&mut scorer, &maximizer, out.view())?;
        drop(scorer);
        if !ignores && self.is_repeat(gp, &point.x) {
            return self.most_uncertain(gp, terms, &maximizer, out.view());
        }
        Ok(point)
    }

    /// Whether a point has an active continuous coordinate and repeats an exact value.
    fn is_repeat(&self, gp: &GaussianProcess, x: &[f64]) -> bool {
        let Domain::Box(product) = self.scope.domain else {
            return false;
        };
        let row = as_row([&self.query.lift(x)[..], self.query.context].concat());
        product.has_active_continuous(x)
            && repeats_exact_value(gp, row.view(), self.log, self.scope.settings)
    }

    /// The point with the largest variance. If this point also repeats an exact value, return a point far from all
    /// rows.
    fn most_uncertain(
        &mut self,
        gp: &GaussianProcess,
        mut terms: Terms,
        maximizer: &Maximizer,
        out: ArrayView2<f64>,
    ) -> Result<Member> {
        let context = self.query.context;
        let variance = MaxVariance {};
        terms.retain_mut(|term| term.prepare_for_variance(gp));
        let added = terms.iter_mut().map(|term| term.scorer(context));
        let mut scorer = Sum::of(Scorer::new(gp, &variance, context), added.collect());
        let best = self.best_separated(&mut scorer, maximizer, out)?;
        if !self.is_repeat(gp, &best.x) {
            return Ok(best);
        }
        // If the best point is a repeat, the variance is zero everywhere, up to rounding errors.
        let spread = self.scope.domain.quasi_random(SPREAD, self.call.rng);
        let pool = match self.scope.pool {
            Some(pool) => pool.points(),
            None => {
                ArrayView2::from_shape((0, self.scope.domain.width()), &[]).expect("no entries")
            }
        };
        let points = concatenate![Axis(0), spread, pool];
        let order: Vec<usize> = (0..points.nrows()).collect();
        let mut farthest = (best, 0.0);
        for i in self
            .query
            .feasible_members()
            .first(order.len(), &order, points.view())?
        {
            let x = points.row(i).to_vec();
            let row = as_row([&self.query.lift(&x)[..], context].concat());
            let std = least_std(gp, row.view(), std::iter::repeat(true));
            if std > farthest.1 && !self.excluded.contains(self.scope.domain, &x) {
                farthest = (Member::new(x, None), std);
            }
        }
        Ok(farthest.0)
    }

    /// The largest mu(x) − nu·sigma(x) among points where trials succeed. Because mu(x) − nu·sigma(x) is a lower bound
    /// on f(x), the result is a lower bound on the maximum of f.
    pub fn largest_lower_bound(
        &mut self,
        gp: &GaussianProcess,
        success: Option<SuccessTerm>,
    ) -> Result<f64> {
        let lower_bound = UpperConfidenceBound {
            multiplier: -self.nu,
            noise: 0.0,
        };
        let effort = lower_bound.effort(gp.len());
        let context = self.query.context;
        let success = success.iter().map(|success| success.scorer(context));
        let scorer = Scorer::new(gp, &lower_bound, context);
        let mut scorer = Sum::of(scorer, success.collect());
        let maximizer = self.scope.settings.search.maximizer(effort);
        Ok(self.best(&mut scorer, &maximizer)?.value)
    }

    /// The point with the largest mu(x) − multiplier·sigma(x) among points where trials succeed.
    pub fn best_bounded(
        &mut self,
        gp: &GaussianProcess,
        multiplier: f64,
        success: Option<&SuccessTerm>,
        bounds: &[BoundTerm],
    ) -> Result<Member> {
        let lower_bound = UpperConfidenceBound {
            multiplier: -multiplier,
            noise: 0.0,
        };
        let context = self.query.context;
        let success = success.into_iter().map(|success| success.scorer(context));
        let bounds = bounds.iter().map(|bound| bound.scorer(context));
        let shortfall = success.chain(bounds).collect();
        let mut objective: Box<dyn Objective> = match self.scope.domain {
            Domain::Candidates(list) => {
                let mut scores = vec![0.0; list.nrows()];
                let scorer = Scorer::new(gp, &lower_bound, context);
                Sum::of(scorer, shortfall).values(list.view(), &mut scores);
                Box::new(Scores::new(scores))
            }
            Domain::Box(_) => Box::new(Sum::of(Scorer::new(gp, &lower_bound, context), shortfall)),
        };
        let best = self.best(objective.as_mut(), &Maximizer::default())?;
        Ok(best.member())
    }

    /// Draws a function from the posterior.
    fn draw(&mut self, gp: &GaussianProcess, draws: Draws) -> Result<Path> {
        let (scale, n) = (self.draw_scale(draws), draws.n_features);
        match draws.method {
            DrawMethod::Pathwise => Path::pathwise(gp, scale, n, self.call),
            DrawMethod::WeightSpace => Path::weight_space(gp, n, self.call),
        }
    }
}

/// The points of the trials in `numbers` that have the context of the query, in the searched domain.
fn points_out(domain: &Domain, log: View, numbers: &[TrialNumber], query: Query) -> Array2<f64> {
    let mut points = Array2::zeros((0, domain.width()));
    for &number in numbers {
        if log.context(number) == query.context
            && let Some((x, _)) = query.lower(log.x(number), log.member(number).index)
        {
            points
                .push_row(ndarray::ArrayView1::from(&x))
                .expect("every row of the searched domain has this width");
        }
    }
    points
}

/// An objective that returns the precomputed scores of a list of candidates. Each call returns the scores of the next
/// block in the list.
pub struct Scores {
    scores: Vec<f64>,
    given: usize,
}

impl Scores {
    pub fn new(scores: Vec<f64>) -> Self {
        Self { scores, given: 0 }
    }
}

impl Objective for Scores {
    fn values(&mut self, points: ArrayView2<f64>, out: &mut [f64]) {
        out.copy_from_slice(&self.scores[self.given..self.given + points.nrows()]);
        self.given += points.nrows();
    }

    fn value_and_gradient(&mut self, _x: &[f64], _gradient: &mut [f64]) -> f64 {
        f64::NAN // a list does not have a slope
    }
}
