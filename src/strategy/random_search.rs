//! Random search. Points are uniformly random. In finite domains, points are drawn without replacement.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, check};
use crate::ledger::{State, TrialNumber, View};
use crate::maximize::excluded::{Excluded, Key, key_of_row};
use crate::maximize::feasible::Pool;
use crate::problem::{Domain, Member};
use crate::random::{Call, Rng};
use crate::strategy::from_settings::FromSettings;
use crate::strategy::{Proposal, Query, Setup, Strategy, Supports};

/// The settings of random search, which are empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {}

/// Points are drawn without replacement if the domain has at most this number of members. In larger domains, repeated
/// points are rare, and avoiding repeated points would be expensive.
const MAX_MEMBERS: u64 = 100_000;

/// Random search on a domain. In a finite domain, points are drawn from the members that have not been tried.
pub struct RandomSearch {
    domain: Arc<Domain>,
    /// The random generator of the pool.
    pool_rng: Rng,
    /// The pool of feasible points, which is computed at the first suggestion under constraints.
    pool: Option<Pool>,
    /// The default fidelity of trials: 1 if a fidelity is declared, and `None` otherwise.
    fidelity: Option<f64>,
    tried: Tried,
}

/// The points that count as tried, computed from the log event by event. The point of an abandoned trial counts as
/// tried until the next result arrives. The point of a withdrawn trial does not count.
#[derive(Default)]
struct Tried {
    n_folded: usize,
    /// The tried points in each context. The map is empty if the domain is too large to draw points without
    /// replacement.
    by_context: HashMap<Key, Excluded>,
    /// For each trial, the context and the member under which the trial is counted in `by_context`.
    counted: Vec<Option<(Key, Key)>>,
    /// The trials that were abandoned after the last result.
    abandoned: BTreeSet<TrialNumber>,
    /// An empty set, which is used for a context without trials.
    none: Excluded,
}

impl Tried {
    fn catch_up(&mut self, domain: &Domain, log: View) {
        self.rewind(log);
        let changes = (self.n_folded..log.len()).flat_map(|i| log.changes(i));
        let mut changed: Vec<TrialNumber> = changes.map(|change| change.number).collect();
        let abandoned = log.recently_abandoned().into_iter().collect();
        let released = std::mem::replace(&mut self.abandoned, abandoned);
        changed.extend(released.difference(&self.abandoned));
        self.n_folded = log.len();
        self.counted.resize(log.n_trials(), None);
        for number in changed {
            self.count(number, domain, log);
        }
    }

    /// If the point that a trial tried counts as tried, adds this point to the tried points.
    fn count(&mut self, number: TrialNumber, domain: &Domain, log: View) {
        let trial = log.of(number);
        let is_tried = match trial.state() {
            State::Withdrawn => false,
            State::Abandoned => self.abandoned.contains(&number),
            _ => true,
        };
        let tried = log.tried(number).filter(|_| is_tried);
        let key = tried.and_then(|(x, row)| Excluded::key(domain, &x, row));
        let counted = key.map(|key| (key_of_row(log.context(number).into()), key));
        if let Some((context, key)) = &counted {
            let own = self.by_context.entry(context.clone()).or_default();
            own.insert(key.clone());
        }
        let before = std::mem::replace(&mut self.counted[number], counted);
        self.remove(before);
    }

    fn remove(&mut self, counted: Option<(Key, Key)>) {
        if let Some((context, key)) = counted
            && let Some(own) = self.by_context.get_mut(&context)
        {
            own.remove(key);
        }
    }

    fn rewind(&mut self, log: View) {
        self.n_folded = self.n_folded.min(log.len());
        while self.counted.len() > log.n_trials() {
            let last = self.counted.pop().flatten();
            self.remove(last);
        }
    }

    fn in_context(&self, context: &[f64]) -> &Excluded {
        let found = self.by_context.get(&key_of_row(context.into()));
        found.unwrap_or(&self.none)
    }
}

impl FromSettings for RandomSearch {
    type Settings = Settings;

    fn new(setup: &Setup, _settings: Settings, rng: &mut Rng) -> Result<Self> {
        Ok(Self {
            pool_rng: rng.clone(),
            pool: None,
            domain: setup.domain.clone(),
            fidelity: setup.fidelity.as_ref().map(|_| 1.0),
            tried: Tried::default(),
        })
    }
}

impl RandomSearch {
    /// The members of the searched domain that count as tried in the context of the query.
    fn excluded<'a>(
        tried: &'a Tried,
        domain: &Domain,
        log: View,
        query: Query,
    ) -> Cow<'a, Excluded> {
        if query.within.is_none() {
            return Cow::Borrowed(tried.in_context(query.context));
        }
        let mut excluded = Excluded::default();
        if !domain.is_finite() || domain.combinations() > MAX_MEMBERS {
            return Cow::Owned(excluded);
        }
        let recently_abandoned = log.recently_abandoned();
        for (number, trial) in log.trials().enumerate() {
            if log.context(number) == query.context
                && (!trial.is_dropped() || recently_abandoned.contains(&number))
                && let Some((x, index)) = log.tried(number)
                && let Some((x, index)) = query.lower(&x, index)
                && let Some(key) = Excluded::key(domain, &x, index)
            {
                excluded.insert(key);
            }
        }
        Cow::Owned(excluded)
    }

    /// Returns a random feasible point: a new draw, a point of the pool, or the point of an earlier trial.
    fn feasible_point(&mut self, log: View, query: Query, call: &mut Call) -> Result<Vec<f64>> {
        let domain = query.searched(&self.domain);
        let feasible = query.feasible_members();
        let excluded = Self::excluded(&self.tried, domain, log, query);
        let excluded = excluded.as_ref();
        let mut own = None;
        let pool = match (&mut self.pool, query.within) {
            (Some(pool), None) => pool,
            (pool, within) => {
                let pool = if within.is_some() { &mut own } else { pool };
                let mut own = self.pool_rng.clone();
                pool.insert(Pool::new(
                    domain,
                    feasible,
                    &mut Call::new(&mut own, call.stop),
                )?)
            }
        };
        let found = pool.sample_left(domain, feasible, excluded, call);
        if let Err(Error::NoFeasiblePoint { .. }) = found {
            for number in (0..log.n_trials()).rev() {
                check(call.stop)?;
                if let Some((x, index)) = log.tried(number)
                    && let Some((x, _)) = query.lower(&x, index)
                    && feasible.holds(&x)?
                {
                    return Ok(x);
                }
            }
        }
        found
    }
}

impl Strategy for RandomSearch {
    fn supports(&self) -> Supports {
        Supports::EVERYTHING
    }

    fn catch_up(&mut self, log: View) -> Result<()> {
        if self.domain.is_finite() && self.domain.combinations() <= MAX_MEMBERS {
            self.tried.catch_up(&self.domain, log);
        }
        Ok(())
    }

    fn rewind(&mut self, log: View) {
        self.tried.rewind(log);
    }

    fn propose(&mut self, log: View, query: Query, call: &mut Call) -> Result<Proposal> {
        let point = if query.feasible.is_constrained() {
            let x = self.feasible_point(log, query, call)?;
            Member::new(x, None)
        } else {
            let domain = query.searched(&self.domain);
            let excluded = Self::excluded(&self.tried, domain, log, query);
            let (x, index) = excluded.sample_left(domain, call.rng);
            Member::new(x, index)
        };
        Ok(Proposal {
            fidelity: query.fidelity.or(self.fidelity),
            ..Proposal::at(point)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{
        Action, Again, Data, Event, Ledger, Observation, Reading, Suggested, View, What,
    };
    use crate::problem::{
        Candidates, Clock, Direction, Goal, Interval, Members, Outcome, Point, Problem,
    };
    use proptest::prelude::{any, prop, prop_assert_eq, proptest};
    use rand::SeedableRng;

    /// The points that count as tried in a context, computed from the whole log.
    fn tried_of(domain: &Domain, log: View, context: &[f64]) -> Excluded {
        let trials = log.trials().enumerate();
        let tried = trials.filter(|(_, trial)| !trial.is_dropped());
        let tried = tried.map(|(number, _)| number);
        let points = tried
            .chain(log.recently_abandoned())
            .filter(|&number| log.context(number) == context)
            .map(|number| {
                let index = log.of(number).index;
                (log.x(number), index.map(|i| i as usize))
            });
        Excluded::new(domain, points)
    }

    proptest! {
        /// After every kind of event, and after a rewind, the points updated event by event equal the points computed
        /// from the whole log.
        #[test]
        fn tried_points_are_folded(has_outcomes in any::<bool>(), steps in prop::collection::vec((0..6u8, 0..8usize, 0..5usize, 0..2u8), 1..60)) {
            let list = Candidates::new(ndarray::arr2(&[[0.0], [1.0], [1.0], [2.0], [3.0]])).unwrap();
            let cube = Problem::unit_cube(1, 1, Clock::Iterations).unwrap();
            let problem = Problem { members: Members::Candidates(list), ..cube };
            let outcome = |name: &str, goal| Outcome { name: name.to_string(), goal, plausible: crate::problem::Interval::default() };
            let objective = Goal::Objective(Direction::Maximize, Interval::default());
            let outcomes = vec![outcome("objective", objective), outcome("other", Goal::Record)];
            let problem = Arc::new(if has_outcomes { problem.with_outcomes(outcomes).unwrap() } else { problem });
            let domain = problem.domain().clone();
            let setup = Setup::of(&problem);
            let mut search = RandomSearch::new(&setup, Settings {}, &mut Rng::seed_from_u64(0)).unwrap();
            let mut log = Ledger::new(problem);
            for (kind, number, row, context) in steps {
                let suggested = |row| Event { at: None, by: None, now: 0.0, what: What::Suggested(Suggested { point: Point::Candidate(row), context: vec![f64::from(context)], fidelity: None, expires_at: None, queued: false, note: None, attrs: None }) };
                let moved = (number % 2 == 0).then_some(Point::Candidate(row));
                let action = match kind {
                    0 | 1 => {
                        log.append(suggested(row)).unwrap();
                        None
                    }
                    2 => {
                        let end = log.len();
                        log.append(suggested(row)).unwrap();
                        search.catch_up(log.view()).unwrap();
                        log.truncate(end);
                        search.rewind(log.view());
                        None
                    }
                    3 => Some(Action::abandon(number)),
                    4 => Some(Action::Fail { outcome: None, number, error: None, duration: None, attrs: None }),
                    _ => Some(Action::Observe {
                        number,
                        observation: Observation {
                            readings: vec![(u32::from(has_outcomes && row % 2 == 1), Reading { value: row as f64, std: None })],
                            data: Data { point: moved, ..Data::default() },
                            marks: None,
                        },
                        again: Again::Amend,
                    }),
                };
                if let Some(Ok(Some(event))) = action.map(|action| log.validate(action, 0.0, None)) {
                    log.append(event).unwrap();
                }
                if row > 0 {
                    search.catch_up(log.view()).unwrap();
                    for context in [0.0, 1.0] {
                        let expected = tried_of(&domain, log.view(), &[context]);
                        prop_assert_eq!(search.tried.in_context(&[context]), &expected);
                    }
                }
            }
        }
    }
}
