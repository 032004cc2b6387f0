//! Batches of suggestions: drafts with fixed values, and batches that share values.

use ndarray::ArrayView2;
use rand::RngExt;

use super::{Optimizer, Request};
use crate::error::{Error, Result, Stop, check, refuse};
use crate::ledger::{Event, Queued};
use crate::maximize::feasible::Feasible;
use crate::problem::{Fixed, Held, Member, Members, Point, Problem, Restriction};
use crate::random::{Call, Rng, SHARED, stream};
use crate::strategy::{Gain, Proposal, Query, Within, registry};

/// The values that all trials of a batch have in common.
#[derive(Debug, Clone, PartialEq)]
pub enum Shared {
    /// The values of these searched parameters, by their positions.
    Parameters(Vec<usize>),
    /// The values of some columns of candidates: the numbers of the candidates for each combination of values.
    Rows(Vec<Vec<usize>>),
}

/// The largest number of combinations of shared values that are all tried.
const MAX_COMBINATIONS: usize = 32;
/// The number of evenly spread combinations that are tried if there are more, and the largest number of single points
/// whose values are tried in addition.
const N_SPREAD: usize = 12;
const N_SINGLE: usize = 4;

/// The drafts of a batch that was removed from the log.
struct Batch {
    events: Vec<Event>,
    warnings: Vec<String>,
    /// The gains of the trials that a model chose.
    gains: Vec<Gain>,
}

impl Batch {
    /// The sum of the gains, or its logarithm if the gains are logarithms.
    fn total(&self) -> f64 {
        let (mut largest, mut linear) = (f64::NEG_INFINITY, 0.0);
        for gain in &self.gains {
            match gain {
                Gain::Log(log) => largest = largest.max(*log),
                Gain::Linear(value) => linear += value,
            }
        }
        let share = |gain: &Gain| match gain {
            Gain::Log(log) if largest.is_finite() => libm::exp(log - largest),
            _ => 0.0,
        };
        match self.gains.first() {
            None => f64::NEG_INFINITY,
            Some(Gain::Log(_)) if largest == f64::NEG_INFINITY => largest,
            Some(Gain::Log(_)) => largest + libm::log(self.gains.iter().map(share).sum::<f64>()),
            Some(Gain::Linear(_)) => linear,
        }
    }
}

impl Optimizer {
    /// Appends n suggestions to the log. If an error occurs, the log is unchanged.
    pub(super) fn draft(
        &mut self,
        n: usize,
        request: Request,
        stop: &mut Stop,
    ) -> Result<Vec<String>> {
        let problem = &self.definition.problem;
        problem.check_context(request.context)?;
        problem.check_fidelity(request.fidelity)?;
        self.check_constraints(request.feasible)?;
        if request.fixed.is_some() || request.shared.is_some() {
            let kind = registry::name_of(&self.definition.strategy);
            if !self.strategy.supports().restrictions {
                let what = if request.fixed.is_some() {
                    "fixed"
                } else {
                    "shared"
                };
                return Err(Error::Unsupported {
                    strategy: kind,
                    what,
                });
            }
        }
        let end = self.ledger.len();
        let drafted = match request.shared {
            Some(shared) if n > 0 => self.draft_shared(n, request, shared, stop),
            _ => self.draft_batch(n, request, request.fixed, self.definition.seed, false, stop),
        };
        match drafted {
            Ok(batch) => Ok(batch.warnings),
            Err(error) => {
                self.truncate(end);
                Err(error)
            }
        }
    }

    /// Appends n suggestions whose points agree with `fixed`.
    fn draft_batch(
        &mut self,
        n: usize,
        request: Request,
        fixed: Option<&Fixed>,
        seed: u64,
        wants_gain: bool,
        stop: &mut Stop,
    ) -> Result<Batch> {
        let problem = self.definition.problem.clone();
        let context = problem.encode_context(request.context);
        let restriction = fixed.map(|fixed| problem.restrict(fixed)).transpose()?;
        let mut batch = Batch {
            events: Vec::new(),
            warnings: Vec::new(),
            gains: Vec::new(),
        };
        for _ in 0..n {
            let within = fixed.zip(restriction.as_ref());
            let (warning, gain) =
                self.draft_one(request, within, &context, seed, wants_gain, stop)?;
            batch.warnings.extend(warning);
            batch.gains.extend(gain);
        }
        Ok(batch)
    }

    /// Drafts a batch as `draft_batch` does, and removes it from the log.
    fn try_batch(
        &mut self,
        n: usize,
        request: Request,
        fixed: Option<&Fixed>,
        seed: u64,
        stop: &mut Stop,
    ) -> Result<Batch> {
        let end = self.ledger.len();
        let drafted = self.draft_batch(n, request, fixed, seed, true, stop);
        let events = self.ledger.events(end).collect();
        self.truncate(end);
        Ok(Batch { events, ..drafted? })
    }

    fn draft_one(
        &mut self,
        request: Request,
        within: Option<(&Fixed, &Restriction)>,
        encoded_context: &[f64],
        seed: u64,
        wants_gain: bool,
        stop: &mut Stop,
    ) -> Result<(Option<String>, Option<Gain>)> {
        let (ledger, time, fidelity) = (&self.ledger, request.time, request.fidelity);
        let problem = self.definition.problem.clone();
        let now = ledger.now(time)?;
        let suggested = |point, fidelity, queued, note, attrs| Event::Suggested {
            point,
            context: request.context.to_vec(),
            fidelity,
            now,
            at: time,
            expires_at: time.zip(request.lease).map(|(time, lease)| time + lease),
            queued,
            note,
            attrs,
        };
        let queued = ledger.next_queued().cloned();
        let queued =
            queued.filter(|next| within.is_none_or(|within| agrees(next, within, &problem)));
        // The restriction that completes the enqueued point, if it is given in part.
        let completed = match &queued {
            Some(next) if self.strategy.supports().restrictions => {
                let fixed = next.completion(within.map(|within| within.0));
                fixed.map(|fixed| problem.restrict(&fixed)).transpose()?
            }
            _ => None,
        };
        let full = || problem.fidelity_at(1.0);
        let queued_fidelity = |next: &Queued| next.fidelity.or(fidelity).or_else(full);
        let (event, warning, gain) = match (queued, completed) {
            (Some(next), None) => {
                let fidelity = queued_fidelity(&next);
                let event = suggested(next.point, fidelity, true, None, next.attrs);
                (event, None, None)
            }
            (queued, completed) => {
                let restriction = completed.as_ref().or(within.map(|within| within.1));
                let requested = queued.as_ref().map_or(fidelity, queued_fidelity);
                let query = Query {
                    now,
                    wall_time: time,
                    context: encoded_context,
                    fidelity: problem.z(requested),
                    feasible: request.feasible,
                    within: None,
                    limit: request.limit,
                    wants_gain,
                    whole: None,
                };
                match (self.proposal(query, restriction, seed, stop), queued) {
                    (Ok(proposal), None) => {
                        // A requested fidelity is logged unchanged.
                        let z = proposal.fidelity;
                        let fidelity = match requested {
                            Some(requested) => Some(requested),
                            None => z.and_then(|z| problem.fidelity_at(z)),
                        };
                        let point = point_of(&proposal, restriction, &problem);
                        let event = suggested(point, fidelity, false, proposal.note, None);
                        (event, proposal.warning, proposal.gain)
                    }
                    (Ok(proposal), Some(next)) => {
                        let point = point_of(&proposal, restriction, &problem);
                        let event = suggested(point, requested, true, proposal.note, next.attrs);
                        (event, proposal.warning, proposal.gain)
                    }
                    // The search found no point that satisfies the constraints. The enqueued point satisfies them.
                    (Err(Error::NoFeasiblePoint { .. }), Some(next)) => {
                        let event = suggested(next.point, requested, true, None, next.attrs);
                        (event, None, None)
                    }
                    (Err(error), _) => return Err(error),
                }
            }
        };
        check(stop)?;
        self.ledger.append(event)?;
        Ok((warning, gain))
    }

    /// The strategy's proposal under a restriction.
    fn proposal(
        &mut self,
        query: Query,
        restriction: Option<&Restriction>,
        seed: u64,
        stop: &mut Stop,
    ) -> Result<Proposal> {
        let mut rng = stream(seed, self.ledger.trials().len() as u64);
        self.strategy.catch_up(&self.ledger)?;
        let call = &mut Call::new(&mut rng, stop);
        let Some(restriction) = restriction else {
            return self.strategy.propose(&self.ledger, query, call);
        };
        if let Some(only) = restriction.single() {
            if !query.feasible.holds(&only.x)? {
                return Err(Error::NoFeasiblePoint { tried: 1 });
            }
            let declared = self.definition.problem.fidelity.as_ref();
            return Ok(Proposal {
                fidelity: query.fidelity.or(declared.map(|_| 1.0)),
                ..Proposal::at(Member::default())
            });
        }
        let lifted = |rows: ArrayView2<f64>| {
            let rows = restriction.lift_rows(rows);
            query.feasible.of_rows(rows.view())
        };
        let feasible = match query.feasible.is_constrained() {
            true => Feasible::by(&lifted),
            false => query.feasible,
        };
        let within = Some(Within {
            restriction,
            feasible,
        });
        let query = Query { within, ..query };
        self.strategy.propose(&self.ledger, query, call)
    }

    /// Appends n suggestions that have the shared values in common.
    ///
    /// A batch is drafted for each of several combinations of the shared values, and the batch with the largest total
    /// gain is kept. If the acquisition is an expected improvement that accounts for pending trials, the gains of a
    /// batch x_1, …, x_n add up to the expected improvement of the best of its values: E max(0, max_k f(x_k) − f*) =
    /// Σ_k E max(0, f(x_k) − max(f*, f(x_1), …, f(x_{k−1}))).
    fn draft_shared(
        &mut self,
        n: usize,
        request: Request,
        shared: &Shared,
        stop: &mut Stop,
    ) -> Result<Batch> {
        let problem = self.definition.problem.clone();
        if let (Shared::Parameters(shared), Some(product)) = (shared, problem.domain().product())
            && let Some(k) = shared
                .iter()
                .find(|&&k| k >= product.len() || !product.conditions_of(k).is_empty())
        {
            return Err(refuse(
                "shared",
                format!("parameter {k}"),
                "a shared parameter must be declared without when=; share its parent",
            ));
        }
        let every = combinations(shared, request.fixed, &problem)?;
        // An enqueued point that gives a shared value determines the values of the batch.
        let gives = |next: &Queued| match (&next.given, shared) {
            (Some(given), Shared::Parameters(shared)) => given.iter().any(|k| shared.contains(k)),
            _ => true,
        };
        let is_given = self.ledger.next_queued().is_some_and(gives);
        let n_single = match every {
            None if !is_given => n.min(N_SINGLE),
            _ => 1,
        };
        // The random numbers of the shared values differ from those of the batch. Otherwise a free parameter would have
        // the same random number as a shared parameter.
        let seed = self.definition.seed;
        let own_seed = stream(seed, SHARED).random();
        let single = self.try_batch(n_single, request, request.fixed, own_seed, stop)?;
        let points: Vec<&Point> = single.events.iter().filter_map(Event::point).collect();
        let mut values: Vec<Fixed> = Vec::new();
        let mut add = |fixed: Fixed| {
            if !values.contains(&fixed) {
                values.push(fixed);
            }
        };
        match every {
            // Without a model, the batch has the values of the first single point.
            _ if is_first_queued(&single) && is_given || single.gains.len() < n_single => {
                add(values_at(points[0], shared, request.fixed, &problem))
            }
            Some(every) => every.into_iter().for_each(&mut add),
            None => {
                for point in points {
                    add(values_at(point, shared, request.fixed, &problem));
                }
                let mut rng = stream(own_seed, self.ledger.trials().len() as u64);
                for point in spread_points(request.fixed, &problem, &mut rng)? {
                    add(values_at(&point, shared, request.fixed, &problem));
                }
            }
        }
        let mut best: Option<(f64, Batch)> = None;
        let mut failure = None;
        for fixed in &values {
            check(stop)?;
            match self.try_batch(n, request, Some(fixed), seed, stop) {
                Ok(batch) => {
                    let total = batch.total();
                    if best.as_ref().is_none_or(|(most, _)| total > *most) {
                        best = Some((total, batch));
                    }
                }
                // Values that contradict linear constraints are not possible either.
                Err(error @ (Error::NoFeasiblePoint { .. } | Error::InvalidPoint(_))) => {
                    failure = Some(error)
                }
                Err(error) => return Err(error),
            }
        }
        match (best, failure) {
            (Some((_, batch)), _) => {
                for event in &batch.events {
                    self.ledger.append(event.clone())?;
                }
                Ok(batch)
            }
            (None, failure) => Err(failure.unwrap_or(Error::NoFeasiblePoint { tried: 0 })),
        }
    }
}

/// Evenly spread points that agree with the fixed values.
fn spread_points(fixed: Option<&Fixed>, problem: &Problem, rng: &mut Rng) -> Result<Vec<Point>> {
    if let Members::Candidates(list) = &problem.members {
        let rows = match fixed {
            Some(Fixed::Rows(rows)) => rows.clone(),
            _ => (0..list.n_rows()).collect(),
        };
        let drawn = rand::seq::index::sample(rng, rows.len(), N_SPREAD.min(rows.len()));
        return Ok(drawn
            .into_iter()
            .map(|i| Point::Candidate(rows[i]))
            .collect());
    }
    let every = Fixed::Parameters(vec![None; problem.n_numbers().0]);
    let restriction = problem.restrict(fixed.unwrap_or(&every))?;
    let spread = restriction.domain().quasi_random(N_SPREAD, rng);
    let points = spread.outer_iter().map(|x| {
        let proposal = Proposal::at(Member::new(x.to_vec(), None));
        point_of(&proposal, Some(&restriction), problem)
    });
    Ok(points.collect())
}

/// Whether the first trial of a batch has an enqueued point.
fn is_first_queued(batch: &Batch) -> bool {
    matches!(
        batch.events.first(),
        Some(Event::Suggested { queued: true, .. })
    )
}

/// Whether a point of the queue agrees with the fixed values.
fn agrees(next: &Queued, (fixed, restriction): (&Fixed, &Restriction), problem: &Problem) -> bool {
    match next.completion(Some(fixed)) {
        // A value that is not allowed makes the restriction empty.
        Some(both) => next.fits(fixed) && problem.restrict(&both).is_ok(),
        None => problem
            .encode(&next.point)
            .is_ok_and(|x| restriction.lower(&x, next.point.index()).is_some()),
    }
}

/// The proposed point in the user's units, with the fixed values unchanged.
fn point_of(proposal: &Proposal, restriction: Option<&Restriction>, problem: &Problem) -> Point {
    let Some(restriction) = restriction else {
        return problem.decode(&proposal.point.x, proposal.point.index);
    };
    let member = restriction.lift_member(proposal.point.clone());
    let mut point = problem.decode(&member.x, member.index);
    if let Point::Numbers(numbers) = &mut point {
        restriction.hold(numbers);
    }
    point
}

/// All combinations of the shared values that agree with `fixed`, or None if there are too many.
fn combinations(
    shared: &Shared,
    fixed: Option<&Fixed>,
    problem: &Problem,
) -> Result<Option<Vec<Fixed>>> {
    match (shared, &problem.members) {
        (Shared::Rows(groups), _) => {
            let is_allowed = |row: &usize| match fixed {
                Some(Fixed::Rows(rows)) => rows.binary_search(row).is_ok(),
                _ => true,
            };
            let groups = groups.iter().map(|group| {
                let rows = group.iter().copied().filter(is_allowed);
                Fixed::Rows(rows.collect())
            });
            let groups: Vec<Fixed> = groups
                .filter(|group| *group != Fixed::Rows(vec![]))
                .collect();
            Ok((groups.len() <= MAX_COMBINATIONS).then_some(groups))
        }
        (Shared::Parameters(shared), Members::Space(space)) => {
            let held = match fixed {
                Some(Fixed::Parameters(held)) => held.clone(),
                _ => vec![None; problem.n_numbers().0],
            };
            let mut all = vec![held.clone()];
            for &k in shared {
                let Some(numbers) = space.values_of(k, held[k].as_ref(), MAX_COMBINATIONS) else {
                    return Ok(None);
                };
                if all.len() * numbers.len() > MAX_COMBINATIONS {
                    return Ok(None);
                }
                let each = all.iter().flat_map(|before| {
                    numbers.iter().map(|&number| {
                        let mut own = before.clone();
                        own[k] = Some(Held::Values(vec![number]));
                        own
                    })
                });
                all = each.collect();
            }
            Ok(Some(all.into_iter().map(Fixed::Parameters).collect()))
        }
        (Shared::Parameters(_), Members::Candidates(_)) => Err(refuse(
            "shared",
            "parameters",
            "the shared values of candidates are given as groups of rows",
        )),
    }
}

/// The fixed values together with the shared values of a point.
fn values_at(point: &Point, shared: &Shared, fixed: Option<&Fixed>, problem: &Problem) -> Fixed {
    match (shared, point) {
        (Shared::Rows(groups), Point::Candidate(index)) => {
            let group = groups.iter().find(|group| group.contains(index));
            let rows = group.into_iter().flatten().copied();
            let is_allowed = |row: &usize| match fixed {
                Some(Fixed::Rows(rows)) => rows.binary_search(row).is_ok(),
                _ => true,
            };
            Fixed::Rows(rows.filter(is_allowed).collect())
        }
        (Shared::Parameters(shared), Point::Numbers(numbers)) => {
            let mut held = match fixed {
                Some(Fixed::Parameters(held)) => held.clone(),
                _ => vec![None; problem.n_numbers().0],
            };
            for &k in shared {
                held[k] = numbers[k].map(|number| Held::Values(vec![number]));
            }
            Fixed::Parameters(held)
        }
        _ => fixed.cloned().unwrap_or(Fixed::Rows(Vec::new())),
    }
}
