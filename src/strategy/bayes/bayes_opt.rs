//! Bayesian optimisation with pending trials: catch up with the log, refit, add the tail, maximise an acquisition.
//!
//! Notation follows Verma et al. 2022: m the window, nu_t the width of the bound, beta_t its part that does not come
//! from delays, B_y = 1 the bound on |y| in the model's units.

use std::sync::Arc;

use ndarray::{Array2, ArrayView2};

pub use crate::strategy::bayes::settings::Settings;

use crate::acquisition::{
    Acquisition, LogExpectedImprovement, MaxVariance, Scorer, UpperConfidenceBound,
};
use crate::domain::Domain;
use crate::error::{Error, Result, Stop, check};
use crate::gp::draw::path::Path;
use crate::gp::evidence::Data;
use crate::gp::fit::fit_families;
use crate::gp::{GaussianProcess, as_row};
use crate::ledger::{Fitted, Ledger, Point, State, TrialNumber};
use crate::maximize::excluded::Excluded;
use crate::maximize::{Maximizer, Objective, maximize};
use crate::random::Rng;
use crate::strategy::bayes::candidates::{MAX_EXACT, SolvedCandidates};
use crate::strategy::bayes::design::initial_design;
use crate::strategy::bayes::incumbents::{best_observed, incumbent, noisy_expected_improvement};
use crate::strategy::bayes::information::InformationGain;
use crate::strategy::bayes::model::{Model, Version, set_targets};
use crate::strategy::bayes::pending::{PendingPolicy, Target};
use crate::strategy::bayes::settings::{AcquisitionKind, Beta, BoxSearch, DrawMethod, FitRows};
use crate::strategy::bayes::spacing::enforce_separation;
use crate::strategy::{Proposal, Query, Recommendation, Strategy, Surrogate, uniform_point};

/// Starts of a fit that has one before it.
const WARM_RESTARTS: usize = 2;

/// The strategy: settings, and what is kept between suggestions.
pub struct BayesOpt {
    domain: Arc<Domain>,
    settings: Settings,
    /// The initial points, then some to go on with while nothing is known.
    design: Vec<Point>,
    n_initial: usize,
    model: Model,
    candidates: Option<SolvedCandidates>,
    information: Option<InformationGain>,
}

impl BayesOpt {
    /// `design` is the generator of the initial points.
    pub fn new(
        domain: Arc<Domain>,
        context_width: usize,
        settings: Settings,
        design: &mut Rng,
    ) -> Result<Self> {
        let width = domain.width() + context_width;
        let settings = settings.checked(width, matches!(domain.as_ref(), Domain::Candidates(_)))?;
        let n_initial = settings
            .n_initial
            .unwrap_or((2 * domain.width()).clamp(4, 20));
        Ok(Self {
            design: initial_design(&domain, n_initial, settings.initial, design),
            n_initial,
            model: Model::new(settings.clone(), width),
            settings,
            domain,
            candidates: None,
            information: None,
        })
    }

    /// A point of the initial design while it lasts, and while there is nothing to learn from.
    fn without_model(&self, log: &Ledger, rng: &mut Rng) -> Option<Point> {
        let number = log.trials().len();
        let informed = log.n_observed() > 0
            || (self.settings.pending == PendingPolicy::Censor && self.settings.floor.is_some());
        if informed && number >= self.n_initial {
            return None;
        }
        let designed = self.design.get(number).cloned();
        Some(designed.unwrap_or_else(|| uniform_point(&self.domain, rng)))
    }

    /// The proposal once there is something to learn from; θ goes to `fitted` as soon as it is found.
    fn with_model(
        &mut self,
        log: &Ledger,
        query: Query,
        fitted: &mut Option<Fitted>,
        rng: &mut Rng,
        stop: &mut Stop,
    ) -> Result<Point> {
        if self.model.refit_due(log) {
            let found = self.refit(log, query, rng, stop)?;
            self.model.adopt(&found);
            *fitted = Some(found);
        }
        check(stop)?;
        let settings = &self.settings;
        let mut targets = self.model.targets(log);
        self.model.update_posterior(log, &mut targets, stop)?;
        let (tail, tail_targets) = self.model.tail(log, query, targets.levels);
        let tail_rows = self.model.encode(log, &tail);
        let recent = self.model.encode(log, &recent(log, query.now, settings));
        let best_observed = best_observed(&self.domain, log, self.model.rows(), &targets.values);
        let rows = [self.model.rows(), &tail].concat();
        let (gp, version) = self.model.posterior().ok_or(Error::NotPositiveDefinite {
            pivot: 0,
            jitter: 0.0,
        })?;
        // Whoever integrates over pending points replaces the tail anyway.
        if !matches!(settings.pending, PendingPolicy::Integrate(_)) {
            gp.set_tail(tail_rows.view(), &tail_targets)?;
        }

        let gamma = match settings.beta {
            Beta::Theory { .. } => {
                let kept = &mut self.information;
                InformationGain::kept(kept, &self.domain, query.context.len(), gp)
                    .bound(log.trials().len(), stop)?
            }
            _ => 0.0,
        };
        let nu = width_of_bound(gp, log, &recent, gamma, settings);
        let acquisition = match settings.acquisition {
            AcquisitionKind::UpperConfidenceBound => {
                let noise = if settings.predictive_std {
                    gp.noise()
                } else {
                    0.0
                };
                Some(Acquisition::UpperConfidenceBound(UpperConfidenceBound {
                    multiplier: nu,
                    noise,
                }))
            }
            AcquisitionKind::LogExpectedImprovement => Some(match settings.pending {
                PendingPolicy::Integrate(n) => {
                    noisy_expected_improvement(gp, tail_rows.view(), n, query.context, rng)?
                }
                _ => Acquisition::LogExpectedImprovement(LogExpectedImprovement {
                    incumbent: incumbent(gp, query.context),
                }),
            }),
            AcquisitionKind::MaxVariance => Some(Acquisition::MaxVariance(MaxVariance)),
            AcquisitionKind::Thompson => None,
        };
        let gp = &*gp;
        // GP-TS-SDF draws from GP(mu, nu_t²·Sigma), the others from the posterior itself.
        let spread = match settings.pending {
            PendingPolicy::Censor if settings.scale_draws => nu,
            _ => 1.0,
        };
        let all = Maximizer::default();
        let list = match self.domain.as_ref() {
            Domain::Candidates(list) => Some(list),
            Domain::Box(_) => None,
        };
        match (list, acquisition) {
            (Some(list), Some(acquisition)) => {
                let solved = solved(&mut self.candidates, list, query, version, gp, stop)?;
                let mut scores = Listed::new(solved.score(gp, &acquisition));
                argmax(&mut scores, &self.domain, &best_observed, &all, rng, stop)
            }
            (Some(list), None) if list.nrows() <= MAX_EXACT => {
                let solved = solved(&mut self.candidates, list, query, version, gp, stop)?;
                let mut scores = Listed::new(solved.draw(gp, log, &rows, spread, rng)?);
                argmax(&mut scores, &self.domain, &best_observed, &all, rng, stop)
            }
            (_, acquisition) => {
                let acquisition = match acquisition {
                    Some(acquisition) => acquisition,
                    None => Acquisition::Thompson(Box::new(match settings.thompson {
                        DrawMethod::Pathwise => {
                            Path::pathwise(gp, spread, settings.n_features, rng, stop)?
                        }
                        DrawMethod::WeightSpace => {
                            Path::weight_space(gp, settings.n_features, rng, stop)?
                        }
                    })),
                };
                let maximizer = match settings.maximizer {
                    BoxSearch::Default => Maximizer::Default {
                        effort: acquisition.effort(gp.len()),
                    },
                    BoxSearch::Multistart { n_raw, n_starts } => {
                        Maximizer::Multistart { n_raw, n_starts }
                    }
                };
                let mut scorer = Scorer::new(gp, &acquisition, query.context);
                let best = argmax(
                    &mut scorer,
                    &self.domain,
                    &best_observed,
                    &maximizer,
                    rng,
                    stop,
                )?;
                // Policies that look at pending trials do not repeat them; the literature's search is left as it is.
                let repeats = settings.pending == PendingPolicy::Ignore
                    || settings.maximizer != BoxSearch::Default;
                Ok(if repeats {
                    best
                } else {
                    let out = points_out(&self.domain, log, &tail, query.context);
                    enforce_separation(&mut scorer, &self.domain, best, out.view(), rng)
                })
            }
        }
    }

    /// θ for the rows there are, and for the tail where it takes part in fits.
    fn refit(
        &mut self,
        log: &Ledger,
        query: Query,
        rng: &mut Rng,
        stop: &mut Stop,
    ) -> Result<Fitted> {
        let mut targets = self.model.targets(log);
        let with_tail = match self.settings.fit_rows {
            FitRows::Observed => false,
            FitRows::All => true,
            FitRows::Policy => self.settings.pending == PendingPolicy::Censor,
        };
        let mut numbers = self.model.rows().to_vec();
        let mut noise = self.model.row_noise(targets.scale);
        if with_tail {
            self.model.update_posterior(log, &mut targets, stop)?;
            let (tail, tail_targets) = self.model.tail(log, query, targets.levels);
            let tail_rows = self.model.encode(log, &tail);
            // Before any θ the posterior mean is that of the prior.
            let tail_means = match self.model.posterior() {
                Some((gp, _)) => gp.tail_means(tail_rows.view(), &tail_targets),
                None => tail_targets
                    .iter()
                    .map(|target| match target {
                        Target::Value(y) => *y,
                        Target::PosteriorMean | Target::NearestMean(_) => 0.0,
                    })
                    .collect(),
            };
            targets.values.extend(tail_means);
            numbers.extend(&tail);
            noise.resize(numbers.len(), None);
        }
        let x = self.model.encode(log, &numbers);
        let start = match self.model.theta() {
            Some(theta) => theta.clone(),
            None => self.settings.first_theta(x.ncols()),
        };
        let mut fit_settings = self.settings.fit_settings();
        if self.model.theta().is_some() {
            // The last θ is the best start there is; another one looks whether the data have changed their mind.
            fit_settings.n_restarts = fit_settings.n_restarts.min(WARM_RESTARTS);
        }
        // A fit needs two matrices of its own, and its end makes this factor useless as a rule.
        self.model.drop_factor();
        let data = Data {
            x: x.view(),
            y: &targets.values,
            noise: &noise,
            about_mean: self.settings.estimates_mean(x.ncols()),
        };
        let (family, theta) = fit_families(
            data,
            &start,
            &fit_settings,
            &self.settings.kernels,
            rng,
            stop,
        )?;
        Ok(Fitted {
            family,
            theta,
            rows: self.model.n_rows(),
            scale: targets.scale,
        })
    }
}

impl Strategy for BayesOpt {
    fn propose(
        &mut self,
        log: &Ledger,
        query: Query,
        rng: &mut Rng,
        stop: &mut Stop,
    ) -> Result<Proposal> {
        self.model.catch_up(log);
        self.model.before_suggestion(query.now);
        if let Some(point) = self.without_model(log, rng) {
            return Ok(Proposal {
                point,
                fitted: None,
                warning: None,
            });
        }
        let mut fitted = None;
        let (point, warning) = match self.with_model(log, query, &mut fitted, rng, stop) {
            Ok(point) => (point, None),
            // Suggesting never fails for numerical reasons.
            Err(error @ (Error::NotPositiveDefinite { .. } | Error::Overflow { .. })) => (
                uniform_point(&self.domain, rng),
                Some(format!("a random point is suggested, because {error}")),
            ),
            Err(error) => return Err(error),
        };
        Ok(Proposal {
            point,
            fitted,
            warning,
        })
    }

    fn recommend(
        &mut self,
        log: &Ledger,
        query: Query,
        rng: &mut Rng,
        stop: &mut Stop,
    ) -> Result<Option<Recommendation>> {
        if log.n_observed() == 0 {
            return Ok(None);
        }
        self.model.catch_up(log);
        let width = self.domain.width() + query.context.len();
        // Before the first refit there is still the prior's θ, or the one that was given.
        let unfitted = self.settings.first_theta(width);
        let mut targets = self.model.targets(log);
        let mut own = None;
        if !self.model.update_posterior(log, &mut targets, stop)? {
            let mut prior = GaussianProcess::new(self.model.family(), &unfitted)?;
            let rows = self.model.encode(log, self.model.rows());
            prior.append_noisy_rows(rows.view(), &self.model.row_noise(targets.scale))?;
            set_targets(&mut prior, &mut targets, &self.settings)?;
            own = Some(prior);
        }
        let best_observed = best_observed(&self.domain, log, self.model.rows(), &targets.values);
        let Some(gp) = own.as_mut().or(self.model.posterior().map(|(gp, _)| gp)) else {
            return Ok(None);
        };
        let mean = Acquisition::UpperConfidenceBound(UpperConfidenceBound {
            multiplier: 0.0,
            noise: 0.0,
        });
        let mut scorer = Scorer::new(gp, &mean, query.context);
        let maximizer = Maximizer::default();
        let point = argmax(
            &mut scorer,
            &self.domain,
            &best_observed,
            &maximizer,
            rng,
            stop,
        )?;
        let row = [point.x.as_slice(), query.context].concat();
        let (mean, variance) = gp.predict(as_row(row).view());
        Ok(Some(Recommendation {
            point,
            mean: mean[0] * targets.scale + targets.center,
            std: variance[0].sqrt() * targets.scale,
        }))
    }

    fn surrogate(
        &mut self,
        log: &Ledger,
        query: Query,
        pending: bool,
        stop: &mut Stop,
    ) -> Result<Option<Surrogate>> {
        self.model.catch_up(log);
        let mut targets = self.model.targets(log);
        self.model.update_posterior(log, &mut targets, stop)?;
        let (tail, tail_targets) = self.model.tail(log, query, targets.levels);
        let tail_rows = self.model.encode(log, &tail);
        let Some((gp, _)) = self.model.posterior() else {
            return Ok(None);
        };
        if pending {
            gp.set_tail(tail_rows.view(), &tail_targets)?;
        }
        Ok(Some(Surrogate {
            model: gp.clone(),
            center: targets.center,
            scale: targets.scale,
        }))
    }
}

/// The trials that nu_t sums over: those of the last m, observed or not (Algorithm 1 of Verma et al. 2022).
///
/// Without a window only pending ones: nothing else is censored, and a sum over all trials would grow for ever.
fn recent(log: &Ledger, now: f64, settings: &Settings) -> Vec<TrialNumber> {
    if settings.pending != PendingPolicy::Censor {
        return Vec::new();
    }
    let Some(window) = settings.window else {
        return log.pending().iter().copied().collect();
    };
    let counts = |(_, trial): &(usize, &crate::ledger::Trial)| {
        let age = now - trial.suggested_at;
        age <= window
            && (trial.suggested || trial.state == State::Pending)
            && trial.state != State::Abandoned
    };
    let trials = log.trials().iter().enumerate();
    trials.filter(counts).map(|(number, _)| number).collect()
}

/// nu_t = B_y·Σ_{s=max(1,t−m)}^{t−1} sigma_{t−1}(x_s) + beta_t under `Censor`, beta_t otherwise.
fn width_of_bound(
    gp: &GaussianProcess,
    log: &Ledger,
    recent: &Array2<f64>,
    gamma: f64,
    settings: &Settings,
) -> f64 {
    let (d, j) = (gp.kernel().width(), log.trials().len() + 1);
    let beta = settings.beta.width(d, j, gamma, gp.noise(), settings);
    let noise = if settings.predictive_std {
        gp.noise()
    } else {
        0.0
    };
    let (_, variance) = gp.predict(recent.view());
    beta + variance.iter().map(|v| (v + noise).sqrt()).sum::<f64>()
}

/// The points of these trials that are out in the same context.
fn points_out(
    domain: &Domain,
    log: &Ledger,
    numbers: &[TrialNumber],
    context: &[f64],
) -> Array2<f64> {
    let mut points = Array2::zeros((0, domain.width()));
    for trial in numbers.iter().map(|&number| &log.trials()[number]) {
        if trial.context == context {
            points
                .push_row(ndarray::ArrayView1::from(&trial.point.x))
                .expect("every trial has the width that it was checked for");
        }
    }
    points
}

/// The candidates solved against this posterior, from what was kept of them where that is still valid.
fn solved<'a>(
    kept: &'a mut Option<SolvedCandidates>,
    list: &Array2<f64>,
    query: Query,
    version: Version,
    gp: &GaussianProcess,
    stop: &mut Stop,
) -> Result<&'a mut SolvedCandidates> {
    let valid = kept
        .take()
        .filter(|kept| kept.is_for(query.context, version));
    let solved = kept.insert(
        valid.unwrap_or_else(|| SolvedCandidates::new(list.view(), query.context, version)),
    );
    solved.update(gp, stop)?;
    Ok(solved)
}

/// The best point of the domain; where no value is a number, a random one.
fn argmax(
    objective: &mut dyn Objective,
    domain: &Domain,
    best_observed: &Array2<f64>,
    maximizer: &Maximizer,
    rng: &mut Rng,
    stop: &mut Stop,
) -> Result<Point> {
    let best = maximize(
        objective,
        domain,
        best_observed.view(),
        maximizer,
        &Excluded::default(),
        rng,
        stop,
    )?;
    Ok(Point {
        x: best.point,
        index: best.index,
    })
}

/// Scores of a list of candidates computed beforehand, handed out block by block in the list's order.
struct Listed {
    scores: Vec<f64>,
    given: usize,
}

impl Listed {
    fn new(scores: Vec<f64>) -> Self {
        Self { scores, given: 0 }
    }
}

impl Objective for Listed {
    fn values(&mut self, points: ArrayView2<f64>, out: &mut [f64]) {
        out.copy_from_slice(&self.scores[self.given..self.given + points.nrows()]);
        self.given += points.nrows();
    }

    fn value_and_gradient(&mut self, _x: &[f64], _gradient: &mut [f64]) -> f64 {
        f64::NAN // a list has no slope
    }
}
