//! The strategy BPE-Delay, which works in rounds of pure exploration. Each round explores the points that the
//! confidence bounds at the end of the previous round did not eliminate.
//!
//! The state is computed from the log. A note marks the start of a round. When a round starts, the data of the previous
//! round become final. The set X_r and the posterior variances of a round are only cached.

use std::collections::HashSet;
use std::sync::Arc;

use ndarray::{Array2, ArrayView2, Axis};
use serde_json::{Value, json};

use crate::error::{Error, Result, Stop, refuse, unless_numerical};
use crate::gp::Hyperparameters;
use crate::gp::kernel::KernelFamily;
use crate::ledger::{TrialNumber, View};
use crate::maximize::excluded::key_of_row;
use crate::maximize::{as_rows, combinations};
use crate::numerics::order::best_first;
use crate::problem::{Clock, Domain, Member};
use crate::random::{Call, Rng};
use crate::strategy::elimination::bounds::{
    Arrived, Confidence, Cover, Width, posterior, surviving,
};
use crate::strategy::elimination::delays::estimate;
use crate::strategy::elimination::exploration::Exploration;
use crate::strategy::elimination::note::Note;
use crate::strategy::elimination::rounds::Rounds;
use crate::strategy::elimination::schedule::Schedule;
use crate::strategy::elimination::settings::{
    Beta, Delay, EstimatedDelay, Lengths, NoDelay, Settings, SubExponential,
};
use crate::strategy::from_settings::{FromSettings, as_json};
use crate::strategy::{Proposal, Query, Recommendation, Setup, Strategy, Supports, best_by_value};

/// The strategy BPE-Delay.
pub struct BPEDelay {
    domain: Arc<Domain>,
    settings: Settings,
    schedule: Schedule,
    clock: Clock,
    theta: Hyperparameters,
    /// The points that represent a box. If the domain is a list of candidates, the array is empty.
    discretization: Array2<f64>,
    /// The cover of the box, or `None` if every member of the domain is one of the points.
    cover: Option<Cover>,
    rounds: Rounds,
    /// The set X_r of each round that has begun, stored as indices of points. X_1 contains all points.
    sets: Vec<Arc<Vec<usize>>>,
    /// A cache for the next round: the length of the log when the cache was computed, and the set X_r.
    ahead: Option<(usize, Left)>,
    exploration: Option<Explored>,
}

/// The set X_{r+1}, and a warning if the set could not be computed.
#[derive(Debug, Clone)]
struct Left {
    set: Arc<Vec<usize>>,
    warning: Option<String>,
}

/// The posterior variances at the points that a round explores, which are the points of X_r.
struct Explored {
    round: usize,
    set: Arc<Vec<usize>>,
    exploration: Exploration,
}

impl BPEDelay {
    fn points(&self) -> ArrayView2<'_, f64> {
        match self.domain.as_ref() {
            Domain::Candidates(list) => list.view(),
            Domain::Box(_) => self.discretization.view(),
        }
    }

    fn family(&self) -> KernelFamily {
        self.settings.kernel
    }

    /// The delay model at time `now`, given in the settings or estimated from the log.
    fn delay(&self, log: View, now: f64) -> Option<SubExponential> {
        let known = self.settings.known_delay();
        known.or_else(|| estimate(log, now, self.clock, self.schedule.log_term()))
    }

    /// The delay model that determines the lengths of rounds before they begin. If delays are in seconds, these lengths
    /// depend on the times of the suggestions.
    fn planned_delay(&self) -> Option<SubExponential> {
        let known = self.settings.known_delay();
        known.filter(|delay| self.clock == Clock::Iterations || *delay == SubExponential::default())
    }

    /// The total number of steps in the rounds before the current round.
    fn steps_before(&self) -> usize {
        let last = self.rounds.all().last();
        self.rounds.steps() - last.map_or(0, |round| round.trials.len())
    }

    /// Whether the next suggestion begins a round. Returns an error if the horizon is reached.
    ///
    /// On the clock in iterations, a round has t_r suggestions. On the clock in seconds, a round ends when the bound on
    /// delays has passed since its suggestion q_r: the results of the first q_r suggestions have then arrived.
    fn begins_round(&self, log: View, now: f64, delay: Option<SubExponential>) -> Result<bool> {
        let (begun, steps) = (self.rounds.all().len(), self.rounds.steps());
        let own = steps - self.steps_before();
        let (q, before) = (self.schedule.explored(begun), self.steps_before());
        let has_arrived = |delay| match self.clock {
            Clock::Iterations => own as f64 >= self.schedule.length(begun, before, delay),
            Clock::Seconds => {
                let last = self.rounds.all()[begun - 1].trials[q - 1];
                let age = now - log.of(last).suggested_at;
                age >= self.schedule.wait(begun, before, delay)
            }
        };
        let is_over = begun == 0 || own >= q && delay.is_some_and(has_arrived);
        // In the paper, the last round ends at the horizon. In the code of the authors, the last round is completed
        // even if it exceeds the horizon.
        let cut = self.settings.lengths == Lengths::Paper;
        if begun > 0 && (cut || is_over) && self.schedule.is_last(begun, steps) {
            let horizon = self.schedule.horizon;
            return Err(Error::HorizonReached { horizon, steps });
        }
        Ok(is_over)
    }

    /// Computes the set X_r of every round that has begun.
    fn update_sets(&mut self, stop: &mut Stop) -> Result<()> {
        while self.sets.len() < self.rounds.all().len() {
            let round = self.sets.len();
            let begin = self.rounds.all()[round].begin;
            let found = self.ahead.take().filter(|(len, _)| *len == begin);
            let left = match found {
                Some((_, left)) => left,
                None => self.left_after(round - 1, stop)?,
            };
            self.sets.push(left.set);
        }
        Ok(())
    }

    /// The set X_r that the next round would have if the next round began now.
    fn left_now(&mut self, log: View, stop: &mut Stop) -> Result<Left> {
        if let Some((len, left)) = &self.ahead
            && *len == log.len()
        {
            return Ok(left.clone());
        }
        let left = match self.rounds.all().len() {
            0 => Left {
                set: self.sets[0].clone(),
                warning: None,
            },
            begun => self.left_after(begun - 1, stop)?,
        };
        self.ahead = Some((log.len(), left.clone()));
        Ok(left)
    }

    /// The points that remain after the elimination at the end of a round. The argument `round` is counted from 0.
    fn left_after(&self, round: usize, stop: &mut Stop) -> Result<Left> {
        let set = &self.sets[round];
        let points = self.points().select(Axis(0), set);
        let arrived = self.arrived(round)?;
        let width = self.width(round);
        let (family, theta) = (self.family(), &self.theta);
        let problem = match surviving(family, theta, &arrived, points.view(), width, stop) {
            Ok(rows) if !rows.is_empty() => {
                let rows = rows.into_iter().map(|row| set[row]);
                return Ok(Left {
                    set: Arc::new(rows.collect()),
                    warning: None,
                });
            }
            Ok(_) => "no bound is a number".to_string(),
            Err(error) if error.is_numerical() => error.to_string(),
            Err(error) => return Err(error),
        };
        Ok(Left {
            set: set.clone(),
            warning: Some(format!(
                "round {} eliminates nothing, because {problem}",
                round + 1
            )),
        })
    }

    /// The observations from which the bounds at the end of a round are computed.
    fn arrived(&self, round: usize) -> Result<Arrived> {
        let data = self.rounds.all()[round].data.values();
        self.observations(data.map(|datum| (&datum.x[..], datum.value, datum.std)))
    }

    /// Collects observations. For each observation, `data` contains the point, the value and the standard deviation of
    /// the noise.
    fn observations<'a>(
        &self,
        data: impl Iterator<Item = (&'a [f64], f64, Option<f64>)>,
    ) -> Result<Arrived> {
        let (mut x, mut y, mut noise) = (Vec::new(), Vec::new(), Vec::new());
        for (point, value, std) in data {
            x.extend_from_slice(point);
            y.push(value - self.settings.mean);
            let known = std.map(|std| self.settings.row_noise(std));
            noise.push(known.unwrap_or(self.theta.noise_variance));
        }
        let x = as_rows(x, self.domain.width())?;
        Ok(Arrived { x, y, noise })
    }

    /// The parameters of the bounds at the end of a round.
    fn width(&self, round: usize) -> Width {
        match (self.settings.beta, self.settings.theory.rkhs_bound) {
            (Beta::Fixed(multiplier), _) => Width {
                multiplier,
                slack: 0.0,
            },
            (Beta::Theory, rkhs_bound) => {
                let confidence = Confidence {
                    rkhs_bound: rkhs_bound.unwrap_or(f64::INFINITY),
                    delta: self.settings.theory.delta,
                    n_rounds: self.schedule.n_rounds(self.planned_delay()),
                    noise_std: self.settings.theory_noise(),
                    regularization: self.theta.noise_variance.sqrt(),
                };
                match self.cover {
                    None => confidence.on_points(self.sets[0].len()),
                    Some(cover) => {
                        let q = self.schedule.explored(round + 1);
                        confidence.on_a_box(cover, q)
                    }
                }
            }
        }
    }

    /// Updates the posterior variances at the points of a round, given the trials of the round so far.
    fn explore(
        &mut self,
        round: usize,
        set: &Arc<Vec<usize>>,
        log: View,
        stop: &mut Stop,
    ) -> Result<&Exploration> {
        let kept = self.exploration.take();
        let kept = kept.filter(|kept| kept.round == round && Arc::ptr_eq(&kept.set, set));
        let mut explored = kept.unwrap_or_else(|| {
            let points = self.points().select(Axis(0), set);
            let kernel = self.theta.kernel(self.family());
            Explored {
                round,
                set: set.clone(),
                exploration: Exploration::new(kernel, &self.theta, points.view()),
            }
        });
        let trials = self.rounds.explored(round, log);
        let exploration = &mut explored.exploration;
        let same = exploration.trials().iter().zip(&trials);
        let n = same.take_while(|(kept, trial)| kept == trial).count();
        exploration.keep(n);
        let added = trials[n..].iter().try_for_each(|&number: &TrialNumber| {
            // Use the suggested point and not the reported point, because the choice of points must not depend on
            // reports.
            exploration.push(number, &log.started_x(number)?, stop)
        });
        let kept = self.exploration.insert(explored);
        added.map(|()| &kept.exploration)
    }

    fn point(&self, row: usize) -> Member {
        let x = self.points().row(row).to_vec();
        let listed = matches!(*self.domain, Domain::Candidates(_));
        Member::new(x, listed.then_some(row))
    }
}

/// For a box and `beta="theory"`, returns an error if functions in the space of the kernel are not Lipschitz
/// continuous.
fn check_lipschitz(settings: &Settings) -> Result<()> {
    match settings.beta {
        Beta::Fixed(_) => Ok(()),
        Beta::Theory => Err(refuse(
            "kernel",
            settings.kernel.name(),
            "its functions are too rough for Theorem 6.2 (Assumption 4.2); give another kernel, candidates or \
                 a fixed beta",
        )),
    }
}

impl FromSettings for BPEDelay {
    type Settings = Settings;

    /// Creates a strategy for which no round has begun. `rng` draws the points that represent a box.
    fn new(setup: &Setup, mut settings: Settings, rng: &mut Rng) -> Result<Self> {
        let domain = setup.domain.clone();
        let (schedule, theta) = settings.check(domain.width(), setup.clock)?;
        settings.mean = setup.direction.oriented(settings.mean);
        let n_points = settings.n_points;
        let mut cover = None;
        let discretization = match domain.as_ref() {
            Domain::Candidates(_) => Array2::zeros((0, domain.width())),
            Domain::Box(product)
                if domain.is_finite() && domain.combinations() <= n_points as u64 =>
            {
                combinations(product, domain.width())
            }
            Domain::Box(_) => {
                cover = Cover::of(settings.kernel, &theta);
                if cover.is_none() {
                    check_lipschitz(&settings)?;
                }
                domain.quasi_random(n_points, rng)
            }
        };
        let n = match domain.as_ref() {
            Domain::Candidates(list) => list.nrows(),
            Domain::Box(_) => discretization.nrows(),
        };
        Ok(Self {
            rounds: Rounds::new(settings.keep_rounds),
            domain,
            settings,
            schedule,
            clock: setup.clock,
            theta,
            discretization,
            cover,
            sets: vec![Arc::new((0..n).collect())],
            ahead: None,
            exploration: None,
        })
    }

    fn values() -> Vec<Value> {
        vec![
            as_json(Delay::EstimatedDelay(EstimatedDelay {})),
            as_json(Delay::NoDelay(NoDelay {})),
            as_json(Delay::SubExponential(SubExponential::default())),
        ]
    }
}

impl Strategy for BPEDelay {
    fn supports(&self) -> Supports {
        // Contexts and fidelities are not supported, because the theory assumes a single function on a single set.
        Supports {
            outcomes: false,
            contexts: false,
            candidates: true,
            conditions: false,
            linear: false,
            fidelity: false,
            restrictions: false,
        }
    }

    fn check_revised(&self, _log: View) -> Result<()> {
        Err(refuse(
            "revise",
            "a study with BPEDelay",
            "its rounds are planned for one problem; create another study",
        ))
    }

    fn catch_up(&mut self, log: View) -> Result<()> {
        self.rounds.catch_up(log)
    }

    fn rewind(&mut self, log: View) {
        self.rounds.rewind(log);
        self.sets.truncate(self.rounds.all().len().max(1));
        self.ahead.take_if(|(len, _)| *len > log.len());
        if let Some(explored) = &mut self.exploration {
            let n_trials = log.n_trials();
            let trials = explored.exploration.trials().iter();
            let n = trials.take_while(|number| **number < n_trials).count();
            explored.exploration.keep(n);
        }
    }

    fn propose(&mut self, log: View, query: Query, call: &mut Call) -> Result<Proposal> {
        if query.feasible.is_constrained() {
            return Err(Error::Unsupported {
                strategy: "BPEDelay",
                what: "constraints",
            });
        }
        self.update_sets(call.stop)?;
        let delay = self.delay(log, query.now);
        let begun = self.rounds.all().len();
        let (mut note, mut warning) = (None, None);
        let (round, set) = match self.begins_round(log, query.now, delay)? {
            false => (begun - 1, self.sets[begun - 1].clone()),
            true => {
                let round = begun + 1;
                note = Some(Note { round, delay }.to_text()?);
                let left = self.left_now(log, call.stop)?;
                warning = left.warning;
                (begun, left.set)
            }
        };
        let row = match self.explore(round, &set, log, call.stop) {
            Ok(exploration) => exploration.most_uncertain(call.rng),
            // Suggesting never fails for numerical reasons.
            Err(error @ Error::NotPositiveDefinite { .. }) => {
                self.exploration = None;
                warning = Some(format!("a random point is suggested, because {error}"));
                rand::RngExt::random_range(call.rng, 0..set.len())
            }
            Err(error) => return Err(error),
        };
        Ok(Proposal {
            note,
            warning,
            ..Proposal::at(self.point(set[row]))
        })
    }

    fn check_note(&mut self, log: View, note: &str) -> Result<()> {
        Note::check(note, log)
    }

    /// The points of the current set X_r with the largest posterior means, given all values.
    fn recommend(
        &mut self,
        log: View,
        query: Query,
        n: usize,
        call: &mut Call,
    ) -> Result<Vec<Recommendation>> {
        if log.n_observed() == 0 {
            return Ok(Vec::new());
        }
        self.update_sets(call.stop)?;
        let observed = log.trials().enumerate();
        let arrived = self
            .observations(observed.filter_map(|(number, trial)| {
                Some((log.x(number), trial.value()?, trial.std()))
            }))?;
        let set = self.sets.last().cloned().unwrap_or_default();
        let points = self.points().select(Axis(0), &set);
        let (family, theta) = (self.family(), &self.theta);
        let moments = posterior(family, theta, &arrived, points.view(), call.stop);
        let Some((mean, variance)) = unless_numerical(moments)? else {
            return best_by_value(log, query, n, call.stop);
        };
        let mut seen = HashSet::new();
        let mut best = best_first(&mean);
        best.retain(|&row| seen.insert(key_of_row(points.row(row))));
        best.truncate(n);
        let recommendation = |row: usize| Recommendation {
            point: self.point(set[row]),
            mean: mean[row] + self.settings.mean,
            std: variance[row].sqrt(),
        };
        Ok(best.into_iter().map(recommendation).collect())
    }

    fn status(&mut self, log: View, now: f64, stop: &mut Stop) -> Result<Option<Value>> {
        self.update_sets(stop)?;
        let begun = self.rounds.all().len();
        let known = self.planned_delay();
        // `before` is the number of steps before a round, and `end` is the number of steps at the planned end of the
        // round.
        let (mut before, mut end) = (0, 0);
        let mut rounds = Vec::new();
        for (r, round) in self.rounds.all().iter().enumerate() {
            let (is_last, n_suggested) = (r + 1 == begun, round.trials.len());
            let planned = known.and_then(|delay| {
                let planned = self.schedule.plan(r + 1, before, delay);
                planned.first().map(|planned| planned.length)
            });
            rounds.push(json!({
                "number": r + 1,
                "n_explored": self.schedule.explored(r + 1),
                "length": if is_last { planned } else { Some(n_suggested) },
                "n_suggested": n_suggested,
                "n_arrived": round.data.len(),
                "n_surviving": self.sets[r].len(),
                "delay": if is_last { self.delay(log, now) } else { self.rounds.all()[r + 1].delay },
            }));
            end = before + planned.unwrap_or(0).max(n_suggested);
            before += n_suggested;
        }
        if let Some(delay) = known {
            let plan = self.schedule.plan(begun + 1, end, delay);
            for (i, planned) in plan.into_iter().enumerate() {
                rounds.push(json!({
                    "number": begun + 1 + i,
                    "n_explored": planned.explored,
                    "length": planned.length,
                    "n_suggested": 0,
                    "n_arrived": 0,
                    "n_surviving": null,
                    "delay": delay,
                }));
            }
        }
        let set = self.sets.last().cloned().unwrap_or_default();
        let points = match self.domain.as_ref() {
            Domain::Candidates(_) => None,
            Domain::Box(_) => Some(set.iter().map(|&row| self.point(row).x).collect::<Vec<_>>()),
        };
        Ok(Some(json!({
            "round": begun.max(1),
            "surviving": *set,
            "points": points,
            "rounds": rounds,
        })))
    }
}
