//! The optimizer: a log, the strategy that reads it, and the checks before an event is logged.

mod checks;

use std::sync::Arc;

use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::{Coordinate, Domain, Fidelity, MAX_COLUMNS};
use crate::error::{Error, Result, Stop, check};
use crate::ledger::{Action, Clock, Event, Ledger, TrialNumber};
use crate::maximize::feasible::Feasible;
use crate::random::{RECOMMENDATION, SETUP, stream};
use crate::strategy::bayes::Surrogate;
use crate::strategy::registry;
use crate::strategy::{Proposal, Query, Recommendation, Setup, Strategy};

/// The definition of an optimizer, which does not change.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    pub domain: Arc<Domain>,
    pub settings: Settings,
}

/// The definition without the domain, as in JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The coordinates of the context; empty if none is declared.
    #[serde(default)]
    pub context: Vec<Coordinate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fidelity: Option<Fidelity>,
    pub clock: Clock,
    pub seed: u64,
    /// The strategy in JSON: `{"kind": name, …settings}`.
    pub strategy: Value,
}

impl Settings {
    /// The settings as JSON.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|error| Error::Corrupt(error.to_string()))
    }

    /// The settings of a JSON text. Unknown fields are refused with [`Error::InvalidDefinition`].
    pub fn from_json(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|error| Error::InvalidDefinition {
            got: text.to_string(),
            expected: error.to_string(),
        })
    }
}

impl Definition {
    /// The problem that a strategy is made for.
    pub fn setup(&self) -> Setup {
        Setup {
            domain: self.domain.clone(),
            context: self.settings.context.clone(),
            fidelity: self.settings.fidelity.clone(),
            clock: self.settings.clock,
        }
    }

    fn strategy(&self) -> Result<Box<dyn Strategy>> {
        let context = &self.settings.context;
        let columns = context.iter().map(Coordinate::width);
        let width = columns.fold(0, usize::saturating_add);
        if width > MAX_COLUMNS {
            return Err(Error::InvalidContext(format!(
                "the context has {width} columns, more than {MAX_COLUMNS}; merge some choices",
            )));
        }
        if !context.is_empty() {
            Domain::new_box(context.clone())?;
        }
        if let Some(fidelity) = &self.settings.fidelity {
            fidelity.check()?;
        }
        let mut rng = stream(self.settings.seed, SETUP);
        registry::make(&self.settings.strategy, &self.setup(), &mut rng)
    }
}

/// The lease of new trials: the wall-clock time for which they count as arriving.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Lease {
    /// The current wall-clock time in seconds; if None, trials do not expire.
    pub wall_time: Option<f64>,
    /// The length of the lease in seconds.
    pub seconds: Option<f64>,
}

impl Lease {
    fn expires_at(self) -> Option<f64> {
        Some(self.wall_time? + self.seconds?)
    }
}

/// The request for a suggestion.
#[derive(Debug, Clone, Copy, Default)]
pub struct Request<'a> {
    /// The encoded context; empty if none is declared.
    pub context: &'a [f64],
    /// The fidelity in [0, 1]. None lets the strategy choose; it must be None if no fidelity is declared.
    pub fidelity: Option<f64>,
    /// The time in seconds, if the clock counts seconds.
    pub now: Option<f64>,
    pub lease: Lease,
    /// The constraints. Enqueued points are not checked.
    pub feasible: Feasible<'a>,
}

/// A log and the strategy that reads it.
pub struct Optimizer {
    definition: Definition,
    ledger: Ledger,
    strategy: Box<dyn Strategy>,
}

impl Optimizer {
    /// An optimizer with an empty log. Invalid settings are refused; each kind has an [`Error`] variant.
    pub fn new(definition: Definition) -> Result<Self> {
        let strategy = definition.strategy()?;
        let width = definition.domain.width();
        let context_width = definition.setup().context_width();
        Ok(Self {
            ledger: Ledger::new(definition.settings.clock, width, context_width),
            definition,
            strategy,
        })
    }

    /// The definition.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// The log.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Starts n trials, one after another, so each is chosen with the earlier ones pending. Returns their numbers and
    /// warnings.
    ///
    /// On an error, or if the caller stops it, no trial is logged.
    pub fn suggest(
        &mut self,
        n: usize,
        request: Request,
        stop: &mut Stop,
    ) -> Result<(Vec<TrialNumber>, Vec<String>)> {
        let first = self.ledger.trials().len();
        let warnings = self.draft(n, request, stop)?;
        Ok(((first..self.ledger.trials().len()).collect(), warnings))
    }

    /// Returns the events that would start n trials, and warnings. The events are not logged. The caller passes them
    /// to `extend`, unless another process has logged other events first.
    pub fn propose(
        &mut self,
        n: usize,
        request: Request,
        stop: &mut Stop,
    ) -> Result<(Vec<Event>, Vec<String>)> {
        let end = self.ledger.len();
        let warnings = self.draft(n, request, stop)?;
        let events = self.ledger.events(end).collect();
        self.truncate(end);
        Ok((events, warnings))
    }

    /// Appends n suggestions to the log, or none on an error.
    fn draft(&mut self, n: usize, request: Request, stop: &mut Stop) -> Result<Vec<String>> {
        self.check_context(request.context)?;
        self.check_fidelity(request.fidelity)?;
        self.check_constraints(request.feasible)?;
        let end = self.ledger.len();
        let mut warnings = Vec::new();
        for _ in 0..n {
            match self.draft_one(request, stop) {
                Ok(warning) => warnings.extend(warning),
                Err(error) => {
                    self.truncate(end);
                    return Err(error);
                }
            }
        }
        Ok(warnings)
    }

    fn draft_one(&mut self, request: Request, stop: &mut Stop) -> Result<Option<String>> {
        let Request {
            context,
            fidelity,
            lease,
            feasible,
            ..
        } = request;
        let ledger = &self.ledger;
        let declared = &self.definition.settings.fidelity;
        let now = ledger.now(request.now)?;
        let queued = ledger.next_queued().cloned();
        let is_queued = queued.is_some();
        let (proposal, attrs) = match queued {
            Some(queued) => {
                let full = declared.as_ref().map(|_| 1.0);
                let proposal = Proposal {
                    fidelity: queued.fidelity.or(fidelity).or(full),
                    ..Proposal::at(queued.point)
                };
                (proposal, queued.attrs)
            }
            None => {
                let mut rng = stream(self.definition.settings.seed, ledger.trials().len() as u64);
                let query = Query {
                    now,
                    wall_time: lease.wall_time,
                    context,
                    fidelity,
                    feasible,
                };
                self.strategy.catch_up(ledger)?;
                let mut proposal = self.strategy.propose(ledger, query, &mut rng, stop)?;
                if let (Some(declared), Some(z)) = (declared, &mut proposal.fidelity) {
                    *z = declared.nearest(*z);
                }
                (proposal, None)
            }
        };
        check(stop)?;
        self.ledger.append(Event::Suggested {
            point: proposal.point,
            context: context.to_vec(),
            fidelity: proposal.fidelity,
            now,
            expires_at: lease.expires_at(),
            queued: is_queued,
            note: proposal.note,
            attrs,
        })?;
        Ok(proposal.warning)
    }

    /// Removes the drafted suggestions after the first `len` events.
    fn truncate(&mut self, len: usize) {
        self.ledger.truncate(len);
        self.strategy.rewind(&self.ledger);
    }

    /// Checks and logs events from any source, one by one. The events before an invalid one are logged.
    ///
    /// Returns the number of the trial of each event; None for an enqueued point.
    pub fn extend(&mut self, events: Vec<Event>) -> Result<Vec<Option<TrialNumber>>> {
        let mut numbers = Vec::with_capacity(events.len());
        for event in events {
            if let Some(point) = event.point() {
                self.check_origin(point)?;
            }
            numbers.push(event.trial_number(self.ledger.trials().len()));
            self.append(event)?;
        }
        Ok(numbers)
    }

    pub(crate) fn reserve(&mut self, n_events: usize) {
        self.ledger.reserve(n_events);
    }

    /// Logs an event after the checks that need the definition or the strategy.
    pub(crate) fn append(&mut self, event: Event) -> Result<()> {
        if let Some(point) = event.point() {
            self.check_point(point)?;
        }
        if let Some(context) = event.context() {
            self.check_context(context)?;
        }
        self.check_fidelity(event.fidelity())?;
        if let Event::Suggested {
            note: Some(note), ..
        } = &event
        {
            self.strategy.check_note(&self.ledger, note)?;
        }
        self.ledger.append(event)
    }

    /// The event of an action; None if the action changes nothing. The log is not changed.
    pub fn validate(&self, action: Action, now: Option<f64>) -> Result<Option<Event>> {
        match &action {
            Action::Add {
                point,
                context,
                fidelity,
                ..
            } => {
                self.check_point(point)?;
                self.check_context(context)?;
                self.check_fidelity(*fidelity)?;
            }
            Action::Enqueue {
                point, fidelity, ..
            } => {
                self.check_point(point)?;
                self.check_fidelity(*fidelity)?;
            }
            Action::Observe { report, .. } => report
                .point
                .as_ref()
                .map_or(Ok(()), |point| self.check_point(point))?,
            Action::Fail { .. } | Action::Abandon { .. } => {}
        }
        // The time of an enqueued point is not used.
        let now = match action {
            Action::Enqueue { .. } => 0.0,
            _ => self.ledger.now(now)?,
        };
        self.ledger.validate(action, now)
    }

    /// Logs an action. Returns the number of its trial; None for an enqueued point or if nothing is logged.
    pub fn record(&mut self, action: Action, now: Option<f64>) -> Result<Option<TrialNumber>> {
        let Some(event) = self.validate(action, now)? else {
            return Ok(None);
        };
        let number = event.trial_number(self.ledger.trials().len());
        self.ledger.append(event)?;
        Ok(number)
    }

    /// The recommended point; None before the first observation.
    pub fn recommend(
        &mut self,
        context: &[f64],
        now: Option<f64>,
        feasible: Feasible,
        stop: &mut Stop,
    ) -> Result<Option<Recommendation>> {
        self.check_context(context)?;
        self.check_constraints(feasible)?;
        let now = self.ledger.now(now)?;
        let mut rng = stream(self.definition.settings.seed, RECOMMENDATION);
        let query = Query {
            now,
            wall_time: None,
            context,
            fidelity: None,
            feasible,
        };
        self.strategy.catch_up(&self.ledger)?;
        self.strategy.recommend(&self.ledger, query, &mut rng, stop)
    }

    /// The posterior, for strategies with a model. With `pending`, it is the posterior of the next suggestion;
    /// `wall_time` decides which leases have ended.
    pub fn surrogate(
        &mut self,
        now: Option<f64>,
        wall_time: Option<f64>,
        pending: bool,
        stop: &mut Stop,
    ) -> Result<Option<Surrogate<'_>>> {
        let now = self.ledger.now(now)?;
        let query = Query {
            now,
            wall_time,
            context: &[],
            fidelity: None,
            feasible: Feasible::EVERYWHERE,
        };
        self.strategy.catch_up(&self.ledger)?;
        match self.strategy.model_based() {
            Some(strategy) => {
                let mut rng = stream(self.definition.settings.seed, RECOMMENDATION);
                strategy.surrogate(&self.ledger, query, pending, &mut rng, stop)
            }
            None => Ok(None),
        }
    }

    /// The acquisition of the next suggestion, in units of f, at points of the domain (feasible or not). None without
    /// a model and before the first observation. The call does not change later suggestions.
    pub fn acquisition(
        &mut self,
        points: ArrayView2<f64>,
        context: &[f64],
        now: Option<f64>,
        wall_time: Option<f64>,
        feasible: Feasible,
        stop: &mut Stop,
    ) -> Result<Option<Vec<f64>>> {
        self.check_context(context)?;
        self.check_constraints(feasible)?;
        let (width, _) = self.ledger.widths();
        if points.ncols() != width || points.iter().any(|x| !x.is_finite()) {
            return Err(Error::Shape(format!(
                "points of {} columns; give {width} finite ones, as the domain encodes them",
                points.ncols()
            )));
        }
        let query = Query {
            now: self.ledger.now(now)?,
            wall_time,
            context,
            fidelity: None,
            feasible,
        };
        self.strategy.catch_up(&self.ledger)?;
        let Some(strategy) = self.strategy.model_based() else {
            return Ok(None);
        };
        let next = self.ledger.trials().len() as u64;
        let mut rng = stream(self.definition.settings.seed, next);
        let values = strategy.acquisition(&self.ledger, query, points, &mut rng, stop);
        self.strategy.rewind(&self.ledger);
        values
    }

    /// The status of a strategy that works in rounds, as JSON; None for other strategies.
    pub fn status(&mut self, stop: &mut Stop) -> Result<Option<Value>> {
        self.strategy.catch_up(&self.ledger)?;
        self.strategy.status(&self.ledger, stop)
    }
}
