//! Bayesian optimisation with pending trials: catch up with the log, refit, add the tail, maximise an acquisition.
//!
//! Notation follows Verma et al. 2022: m the window, nu_t the multiplier of sigma, beta_t its part that does not come
//! from delays, B_y = 1 the bound on |y| in the model's units.

use std::sync::Arc;

use ndarray::{Array2, ArrayView2};

use crate::acquisition::{
    Acquisition, LogExpectedImprovement, MaxVariance, Scorer, UpperConfidenceBound,
};
use crate::domain::Domain;
use crate::error::{Error, Result, Stop, check};
use crate::gp::Target;
use crate::gp::draw::path::Path;
use crate::gp::evidence::Data;
use crate::gp::fit::fit_families;
use crate::gp::{GaussianProcess, as_row};
use crate::ledger::{Ledger, Point, State, TrialNumber};
use crate::maximize::{Maximizer, Objective, maximize};
use crate::random::Rng;
use crate::strategy::bayes::candidates::{MAX_EXACT, SolvedCandidates};
use crate::strategy::bayes::design::initial_design;
use crate::strategy::bayes::incumbents::{best_observed, incumbent, noisy_expected_improvement};
use crate::strategy::bayes::information::InformationGain;
use crate::strategy::bayes::note::Fit;
use crate::strategy::bayes::pending::Pending;
use crate::strategy::bayes::settings::{self, DrawMethod, FitRows, Multistart, Settings};
use crate::strategy::bayes::spacing::enforce_separation;
use crate::strategy::bayes::training_set::{Posterior, TrainingSet, Version, set_targets};
use crate::strategy::bayes::{ModelBased, Surrogate};
use crate::strategy::{Proposal, Query, Recommendation, Setup, Strategy, Supports, uniform_point};

/// Starts of a fit that has one before it.
const WARM_RESTARTS: usize = 2;

/// The strategy: settings, and what is kept between suggestions.
pub struct BayesOpt {
    domain: Arc<Domain>,
    settings: Settings,
    /// Columns of a context.
    context_width: usize,
    /// The initial points, then some to go on with while nothing is known.
    design: Vec<Point>,
    n_initial: usize,
    training: TrainingSet,
    candidates: Option<SolvedCandidates>,
    information: Option<InformationGain>,
}

impl BayesOpt {
    /// The generator is that of the initial points.
    pub fn new(setup: &Setup, settings: Settings, rng: &mut Rng) -> Result<Self> {
        let domain = setup.domain.clone();
        let context_width = setup.context_width();
        let width = domain.width() + context_width;
        settings.check(width, matches!(domain.as_ref(), Domain::Candidates(_)))?;
        let design = settings.design();
        let n_initial = design.n.unwrap_or((2 * domain.width()).clamp(4, 20));
        Ok(Self {
            design: initial_design(&domain, n_initial, design.how, rng),
            n_initial,
            training: TrainingSet::new(settings.clone(), width),
            settings,
            domain,
            context_width,
            candidates: None,
            information: None,
        })
    }

    /// A point of the initial design while it lasts, and while there is nothing to learn from.
    fn initial_point(&self, log: &Ledger, rng: &mut Rng) -> Option<Point> {
        let number = log.trials().len();
        let informed = log.n_observed() > 0 || self.settings.pending().floor().is_some();
        if informed && number >= self.n_initial {
            return None;
        }
        let designed = self.design.get(number).cloned();
        Some(designed.unwrap_or_else(|| uniform_point(&self.domain, rng)))
    }

    /// The proposal once there is something to learn from; the fit goes to `fitted` as soon as it is found.
    fn point_by_model(
        &mut self,
        log: &Ledger,
        query: Query,
        fitted: &mut Option<Arc<Fit>>,
        rng: &mut Rng,
        stop: &mut Stop,
    ) -> Result<Point> {
        if self.training.refit_due(log) {
            let fit = Arc::new(self.refit(log, query, rng, stop)?);
            self.training.adopt(fit.clone());
            *fitted = Some(fit);
        }
        check(stop)?;
        let settings = &self.settings;
        let recent = recent_trials(log, query.now, settings);
        let recent = self.training.encode(log, &recent);
        let mut posterior =
            self.training
                .posterior(log, query, stop)?
                .ok_or(Error::NotPositiveDefinite {
                    pivot: 0,
                    jitter: 0.0,
                })?;
        // Whoever integrates over pending points replaces the tail anyway.
        if !matches!(settings.pending(), Pending::Integrate(_)) {
            posterior.set_tail()?;
        }
        let nu = match settings.acquisition.bound() {
            None => 1.0,
            Some(bound) => {
                let gamma = if bound.is_theory() {
                    let context_width = query.context.len();
                    let kept = &mut self.information;
                    InformationGain::kept(kept, &self.domain, context_width, posterior.gp)
                        .bound(log.trials().len(), stop)?
                } else {
                    0.0
                };
                multiplier(posterior.gp, log, &recent, gamma, bound, settings)
            }
        };
        let chosen = acquisition(&mut posterior, nu, settings, query, rng)?;
        let best_observed =
            best_observed(&self.domain, log, posterior.rows, &posterior.targets.values);
        let mut search = Search {
            domain: &self.domain,
            settings,
            log,
            query,
            best_observed,
            nu,
            rng,
            stop,
        };
        match self.domain.as_ref() {
            Domain::Candidates(list) if chosen.is_some() || list.nrows() <= MAX_EXACT => {
                search.candidates(&mut self.candidates, list, &posterior, chosen)
            }
            _ => search.functions(&posterior, chosen),
        }
    }

    /// θ for the rows there are, and for the tail where it takes part in fits.
    fn refit(&mut self, log: &Ledger, query: Query, rng: &mut Rng, stop: &mut Stop) -> Result<Fit> {
        let gp_settings = self.settings.gp();
        let with_tail = match gp_settings.fit_rows {
            FitRows::Observed => false,
            FitRows::All => true,
            FitRows::Policy => self.settings.pending().is_censor(),
        };
        let mut targets = self.training.targets(log);
        let mut numbers = self.training.rows().to_vec();
        let mut noise = self.training.row_noise(targets.scale);
        if with_tail {
            let tail = match self.training.posterior(log, query, stop)? {
                Some(posterior) => {
                    targets = posterior.targets;
                    let means = posterior
                        .gp
                        .tail_means(posterior.tail.rows.view(), &posterior.tail.targets);
                    targets.values.extend(means);
                    posterior.tail
                }
                None => {
                    let tail = self.training.tail(log, query, targets.levels);
                    // Before any θ the posterior mean is that of the prior.
                    targets.values.extend(tail.targets.iter().map(prior_mean));
                    tail
                }
            };
            numbers.extend(&tail.trials);
            noise.resize(numbers.len(), None);
        }
        let x = self.training.encode(log, &numbers);
        let mut fit_settings = gp_settings.fit_settings(x.ncols());
        let start = match self.training.fit() {
            Some(fit) => {
                // The last θ is the best start there is; another one tries whether the data have changed their mind.
                fit_settings.n_restarts = fit_settings.n_restarts.min(WARM_RESTARTS);
                fit.theta.clone()
            }
            None => gp_settings.first_theta(x.ncols()),
        };
        // A fit needs two matrices of its own, and its end makes this factor useless as a rule.
        self.training.drop_factor();
        let data = Data {
            x: x.view(),
            y: &targets.values,
            noise: &noise,
            about_mean: self.settings.estimates_mean(x.ncols()),
        };
        let families = gp_settings.families();
        let (family, theta) = fit_families(data, &start, &fit_settings, &families, rng, stop)?;
        Ok(Fit {
            family,
            theta,
            rows: Some(self.training.rows().len()),
            scale: targets.scale,
        })
    }
}

/// A tail row's target before any θ.
fn prior_mean(target: &Target) -> f64 {
    match target {
        Target::Value(y) => *y,
        Target::PosteriorMean | Target::NearestMean(_) => 0.0,
    }
}

impl Strategy for BayesOpt {
    fn supports(&self) -> Supports {
        Supports::EVERYTHING
    }

    fn catch_up(&mut self, log: &Ledger) -> Result<()> {
        self.training.catch_up(log)
    }

    fn rewind(&mut self, log: &Ledger) {
        self.training.rewind(log);
    }

    fn propose(
        &mut self,
        log: &Ledger,
        query: Query,
        rng: &mut Rng,
        stop: &mut Stop,
    ) -> Result<Proposal> {
        self.training.before_suggestion(query.now);
        if let Some(point) = self.initial_point(log, rng) {
            return Ok(Proposal::at(point));
        }
        let mut fitted = None;
        let (point, warning) = match self.point_by_model(log, query, &mut fitted, rng, stop) {
            Ok(point) => (point, None),
            // Suggesting never fails for numerical reasons.
            Err(error @ (Error::NotPositiveDefinite { .. } | Error::Overflow { .. })) => (
                uniform_point(&self.domain, rng),
                Some(format!("a random point is suggested, because {error}")),
            ),
            Err(error) => return Err(error),
        };
        Ok(Proposal {
            note: fitted.map(|fit| fit.to_note()).transpose()?,
            warning,
            ..Proposal::at(point)
        })
    }

    fn check_note(&self, log: &Ledger, note: &str) -> Result<()> {
        let width = self.domain.width() + self.context_width;
        Fit::check_note(note, log.trials().len(), width)
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
        let rows = self.training.rows().to_vec();
        let mut prior;
        let (gp, targets) = match self.training.fit() {
            Some(_) => match self.training.posterior(log, query, stop)? {
                Some(posterior) => (&*posterior.gp, posterior.targets),
                None => return Ok(None),
            },
            // Before the first fit there is still the prior's θ, or the one that was given.
            None => {
                let gp_settings = self.settings.gp();
                let theta = gp_settings.first_theta(self.domain.width() + self.context_width);
                prior = GaussianProcess::new(gp_settings.families()[0], &theta)?;
                let mut targets = self.training.targets(log);
                let encoded = self.training.encode(log, &rows);
                prior.append_noisy_rows(encoded.view(), &self.training.row_noise(targets.scale))?;
                set_targets(&mut prior, &mut targets, &self.settings)?;
                (&prior, targets)
            }
        };
        let mean = Acquisition::UpperConfidenceBound(UpperConfidenceBound {
            multiplier: 0.0,
            noise: 0.0,
        });
        let best_observed = best_observed(&self.domain, log, &rows, &targets.values);
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

    fn model_based(&mut self) -> Option<&mut dyn ModelBased> {
        Some(self)
    }
}

impl ModelBased for BayesOpt {
    fn surrogate(
        &mut self,
        log: &Ledger,
        query: Query,
        pending: bool,
        stop: &mut Stop,
    ) -> Result<Option<Surrogate<'_>>> {
        let Some(mut posterior) = self.training.posterior(log, query, stop)? else {
            return Ok(None);
        };
        if pending {
            posterior.set_tail()?;
        }
        Ok(Some(Surrogate {
            gp: posterior.gp,
            center: posterior.targets.center,
            scale: posterior.targets.scale,
        }))
    }
}

/// The trials that nu_t sums over: those of the last m, observed or not (Algorithm 1 of Verma et al. 2022).
///
/// Without a window only pending ones: nothing else is censored, and a sum over all trials would grow for ever.
fn recent_trials(log: &Ledger, now: f64, settings: &Settings) -> Vec<TrialNumber> {
    if !settings.pending().is_censor() {
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
fn multiplier(
    gp: &GaussianProcess,
    log: &Ledger,
    recent: &Array2<f64>,
    gamma: f64,
    bound: settings::Bound,
    settings: &Settings,
) -> f64 {
    let (d, j) = (gp.kernel().width(), log.trials().len() + 1);
    let noise = gp.noise_variance();
    let beta = bound.multiplier(d, j, gamma, noise, settings.pending().is_censor());
    let noise = if bound.predictive_std { noise } else { 0.0 };
    let (_, variance) = gp.predict(recent.view());
    beta + variance.iter().map(|v| (v + noise).sqrt()).sum::<f64>()
}

/// The formula to maximise; None for Thompson sampling, whose draw depends on the domain.
fn acquisition(
    posterior: &mut Posterior,
    nu: f64,
    settings: &Settings,
    query: Query,
    rng: &mut Rng,
) -> Result<Option<Acquisition>> {
    let gp = &mut *posterior.gp;
    Ok(match &settings.acquisition {
        settings::Acquisition::UCB(ucb) => {
            let noise = if ucb.predictive_std {
                gp.noise_variance()
            } else {
                0.0
            };
            Some(Acquisition::UpperConfidenceBound(UpperConfidenceBound {
                multiplier: nu,
                noise,
            }))
        }
        settings::Acquisition::LogEI(_) => Some(match settings.pending() {
            Pending::Integrate(integrate) => {
                let tail = posterior.tail.rows.view();
                noisy_expected_improvement(gp, tail, integrate.n, query.context, rng)?
            }
            _ => Acquisition::LogExpectedImprovement(LogExpectedImprovement {
                incumbent: incumbent(gp, query.context),
            }),
        }),
        settings::Acquisition::MaxVariance(_) => Some(Acquisition::MaxVariance(MaxVariance)),
        settings::Acquisition::ThompsonSampling(_) => None,
    })
}

/// The maximisation of an acquisition, or of a draw, over the domain.
struct Search<'a, 's> {
    domain: &'a Domain,
    settings: &'a Settings,
    log: &'a Ledger,
    query: Query<'a>,
    best_observed: Array2<f64>,
    nu: f64,
    rng: &'a mut Rng,
    stop: &'a mut Stop<'s>,
}

impl Search<'_, '_> {
    /// How far draws deviate from the mean: GP-TS-SDF draws from GP(mu, nu_t²·Sigma), the others from the posterior.
    fn spread(&self) -> f64 {
        match &self.settings.acquisition {
            settings::Acquisition::ThompsonSampling(ts)
                if ts.widen && self.settings.pending().is_censor() =>
            {
                self.nu
            }
            _ => 1.0,
        }
    }

    /// Every candidate is scored, against what was kept of them where that is still valid.
    fn candidates(
        &mut self,
        kept: &mut Option<SolvedCandidates>,
        list: &Array2<f64>,
        posterior: &Posterior,
        acquisition: Option<Acquisition>,
    ) -> Result<Point> {
        let gp = &*posterior.gp;
        let solved = solved(kept, list, self.query, posterior.version, gp, self.stop)?;
        let scores = match acquisition {
            Some(acquisition) => solved.score(gp, &acquisition),
            None => {
                let rows = [posterior.rows, &posterior.tail.trials].concat();
                let spread = self.spread();
                solved.draw(gp, self.log, &rows, spread, self.rng)?
            }
        };
        argmax(
            &mut Listed::new(scores),
            self.domain,
            &self.best_observed,
            &Maximizer::default(),
            self.rng,
            self.stop,
        )
    }

    /// A search by values and gradients, in a box or over more candidates than can be drawn exactly.
    fn functions(
        &mut self,
        posterior: &Posterior,
        acquisition: Option<Acquisition>,
    ) -> Result<Point> {
        let gp = &*posterior.gp;
        let acquisition = match acquisition {
            Some(acquisition) => acquisition,
            None => Acquisition::Thompson(Box::new(self.draw(gp)?)),
        };
        let multistart = self.settings.acquisition.multistart();
        let maximizer = match multistart {
            None => Maximizer::Default {
                effort: acquisition.effort(gp.len()),
            },
            Some(Multistart(n_raw, n_starts)) => Maximizer::Multistart { n_raw, n_starts },
        };
        let mut scorer = Scorer::new(gp, &acquisition, self.query.context);
        let best = argmax(
            &mut scorer,
            self.domain,
            &self.best_observed,
            &maximizer,
            self.rng,
            self.stop,
        )?;
        // Policies that consider pending trials do not repeat them; the literature's search is left as it is.
        if self.settings.pending() == (Pending::Ignore {}) || multistart.is_some() {
            return Ok(best);
        }
        let tail = &posterior.tail.trials;
        let out = points_out(self.domain, self.log, tail, self.query.context);
        Ok(enforce_separation(
            &mut scorer,
            self.domain,
            best,
            out.view(),
            self.rng,
        ))
    }

    /// A draw from the posterior as a function.
    fn draw(&mut self, gp: &GaussianProcess) -> Result<Path> {
        let (method, n) = match &self.settings.acquisition {
            settings::Acquisition::ThompsonSampling(ts) => (ts.draws, ts.n_features),
            _ => (DrawMethod::Pathwise, 1),
        };
        let spread = self.spread();
        match method {
            DrawMethod::Pathwise => Path::pathwise(gp, spread, n, self.rng, self.stop),
            DrawMethod::WeightSpace => Path::weight_space(gp, n, self.rng, self.stop),
        }
    }
}

/// The points of these trials that are out in the same context.
fn points_out(
    domain: &Domain,
    log: &Ledger,
    numbers: &[TrialNumber],
    context: &[f64],
) -> Array2<f64> {
    let mut points = Array2::zeros((0, domain.width()));
    for &number in numbers {
        if log.context(number) == context {
            points
                .push_row(ndarray::ArrayView1::from(log.x(number)))
                .expect("every row of the log has this width");
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
        rng,
        stop,
    )?;
    Ok(Point::new(best.point, best.index))
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
