//! Batches of suggestions: drafts with fixed values, and batches that share values.

use super::{Optimizer, Request};
use crate::error::{Error, Result, Stop, check, refuse};
use crate::ledger::{Event, Queued, Suggested, What};
use crate::maximize::feasible::Feasible;
use crate::problem::{Fixed, Held, Member, Point, Problem, Restriction};
use crate::random::{Call, Rng, stream};
use crate::strategy::{Proposal, Query, registry};

/// The warning for an enqueued point without a completion that satisfies the constraints.
const VIOLATES: &str = "no values were found with which the enqueued point satisfies the constraints: the suggested point \
                        violates them; evaluate it, or abandon the trial";

/// The values that all trials of a batch have in common.
#[derive(Debug, Clone, PartialEq)]
pub enum Shared {
    /// The values of these searched parameters, by their positions.
    Parameters(Vec<usize>),
    /// The values of some columns of candidates. For each combination of these values, the numbers of the candidates that
    /// have it.
    Rows(Vec<Vec<usize>>),
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
        self.check_restrictions(request)?;
        let fixed = self.definition.problem.fixed_or_offered(request.fixed);
        let request = Request {
            fixed: fixed.as_ref(),
            ..request
        };
        let end = self.ledger.len();
        let drafted = match request.shared {
            Some(shared) if n > 0 => self.draft_shared(n, request, shared, stop),
            _ => self.draft_batch(n, request, request.fixed, stop),
        };
        if drafted.is_err() {
            self.truncate(end);
        }
        drafted
    }

    /// Refuses fixed and shared values if the strategy does not support them.
    pub(super) fn check_restrictions(&self, request: Request) -> Result<()> {
        let what = match (request.fixed, request.shared) {
            (Some(_), _) => "fixed",
            (None, Some(_)) => "shared",
            (None, None) => return Ok(()),
        };
        match self.strategy.supports().restrictions {
            true => Ok(()),
            false => Err(Error::Unsupported {
                strategy: registry::name_of(&self.definition.strategy),
                what,
            }),
        }
    }

    /// Appends n suggestions whose points agree with `fixed`.
    fn draft_batch(
        &mut self,
        n: usize,
        request: Request,
        fixed: Option<&Fixed>,
        stop: &mut Stop,
    ) -> Result<Vec<String>> {
        let problem = self.definition.problem.clone();
        let context = problem.encode_context(request.context);
        let restriction = fixed.map(|fixed| problem.restrict(fixed)).transpose()?;
        let mut warnings = Vec::new();
        for _ in 0..n {
            let within = fixed.zip(restriction.as_ref());
            warnings.extend(self.draft_one(request, within, &context, stop)?);
        }
        Ok(warnings)
    }

    fn draft_one(
        &mut self,
        request: Request,
        within: Option<(&Fixed, &Restriction)>,
        encoded_context: &[f64],
        stop: &mut Stop,
    ) -> Result<Option<String>> {
        let (ledger, time, fidelity) = (&self.ledger, request.time, request.fidelity);
        let problem = self.definition.problem.clone();
        let now = ledger.now(time)?;
        let suggested = |point, fidelity, queued, note, attrs| Suggested {
            point,
            context: request.context.to_vec(),
            fidelity,
            expires_at: time.zip(request.lease).map(|(time, lease)| time + lease),
            queued,
            note,
            attrs,
        };
        let queued = ledger.next_queued().cloned();
        let queued =
            queued.filter(|next| within.is_none_or(|within| agrees(next, within, &problem)));
        // The restriction that completes the enqueued point, if it is given in part.
        let fixed = queued
            .as_ref()
            .and_then(|next| next.completion(within.map(|within| within.0)));
        let completed = fixed.map(|fixed| problem.restrict(&fixed)).transpose()?;
        let full = || problem.fidelity_at(1.0);
        let queued_fidelity = |next: &Queued| next.fidelity.or(fidelity).or_else(full);
        let (event, warning) = match (queued, completed) {
            (Some(next), None) => {
                let fidelity = queued_fidelity(&next);
                let event = suggested(next.point, fidelity, true, None, next.attrs);
                (event, None)
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
                };
                let proposal = match queued {
                    Some(_) => self.completed(query, restriction, stop)?,
                    None => self.proposal(query, restriction, stop)?,
                };
                // A requested fidelity is logged unchanged.
                let z = proposal.fidelity.filter(|_| queued.is_none());
                let fidelity = requested.or_else(|| z.and_then(|z| problem.fidelity_at(z)));
                let member = match restriction {
                    None => proposal.point,
                    Some(restriction) => restriction.lift_member(proposal.point),
                };
                let point = problem.decode(&member, restriction);
                let (is_queued, attrs) = (queued.is_some(), queued.and_then(|next| next.attrs));
                let event = suggested(point, fidelity, is_queued, proposal.note, attrs);
                (event, proposal.warning)
            }
        };
        check(stop)?;
        self.ledger.append(Event {
            at: time,
            by: None,
            now,
            what: What::Suggested(event),
        })?;
        Ok(warning)
    }

    /// The point that completes an enqueued point: the strategy's proposal if it finds one, otherwise a random point.
    fn completed(
        &mut self,
        query: Query,
        restriction: Option<&Restriction>,
        stop: &mut Stop,
    ) -> Result<Proposal> {
        let is_proposed = self.strategy.supports().restrictions;
        if is_proposed {
            match self.proposal(query, restriction, stop) {
                Err(Error::NoFeasiblePoint { .. }) => {}
                found => return found,
            }
        }
        let random = serde_json::json!({"kind": "RandomSearch"});
        let random = registry::make(&random, &self.definition.setup(), &mut self.stream())?;
        let own = std::mem::replace(&mut self.strategy, random);
        let mut found = self.proposal(query, restriction, stop);
        if let Err(Error::NoFeasiblePoint { .. }) = found {
            let anywhere = Query {
                feasible: Feasible::EVERYWHERE,
                ..query
            };
            found = self
                .proposal(anywhere, restriction, stop)
                .map(|found| Proposal {
                    warning: Some(VIOLATES.to_string()),
                    ..found
                });
        }
        self.strategy = own;
        found
    }

    /// The random numbers of the next trial.
    fn stream(&self) -> Rng {
        stream(self.definition.seed, self.ledger.n_trials() as u64)
    }

    /// The strategy's proposal under a restriction.
    fn proposal(
        &mut self,
        query: Query,
        restriction: Option<&Restriction>,
        stop: &mut Stop,
    ) -> Result<Proposal> {
        let mut rng = self.stream();
        self.strategy.catch_up(self.ledger.view())?;
        let call = &mut Call::new(&mut rng, stop);
        let Some(restriction) = restriction else {
            return self.strategy.propose(self.ledger.view(), query, call);
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
        query.under(restriction, |query| {
            self.strategy.propose(self.ledger.view(), query, call)
        })
    }

    /// Appends n suggestions that have the shared values in common: the values of the first suggestion.
    fn draft_shared(
        &mut self,
        n: usize,
        request: Request,
        shared: &Shared,
        stop: &mut Stop,
    ) -> Result<Vec<String>> {
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
        let first = self.ledger.len();
        let mut warnings = self.draft_batch(1, request, request.fixed, stop)?;
        if n > 1 {
            let event = self.ledger.events(first).next();
            let point = event.as_ref().and_then(Event::point);
            let fixed = point.map(|point| values_at(point, shared, request.fixed, &problem));
            warnings.extend(self.draft_batch(n - 1, request, fixed.transpose()?.as_ref(), stop)?);
        }
        Ok(warnings)
    }
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

/// The fixed values together with the shared values of a point.
fn values_at(
    point: &Point,
    shared: &Shared,
    fixed: Option<&Fixed>,
    problem: &Problem,
) -> Result<Fixed> {
    match (shared, point) {
        (Shared::Rows(groups), Point::Candidate(index)) => {
            let group = groups.iter().find(|group| group.contains(index));
            let rows = group.into_iter().flatten().copied();
            let is_allowed = |row: &usize| match fixed {
                Some(Fixed::Rows(rows)) => rows.binary_search(row).is_ok(),
                _ => true,
            };
            Ok(Fixed::Rows(rows.filter(is_allowed).collect()))
        }
        (Shared::Parameters(shared), Point::Numbers(numbers)) => {
            let mut held = match fixed {
                Some(Fixed::Parameters(held)) => held.clone(),
                _ => vec![None; problem.n_numbers().0],
            };
            for &k in shared {
                held[k] = numbers[k].map(|number| Held::Values(vec![number]));
            }
            Ok(Fixed::Parameters(held))
        }
        _ => Err(refuse(
            "shared",
            "parameters",
            "the shared values of candidates are given as groups of rows",
        )),
    }
}
