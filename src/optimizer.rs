//! The optimizer, which consists of a log and a strategy, and checks events before they are logged.

mod batch;
mod checks;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use ndarray::ArrayView2;
use serde_json::Value;

use crate::delays::Delays;
use crate::error::{Error, Result, Stop};
use crate::ledger::delays::LastDelays;
use crate::ledger::revise::RevisedTrial;
use crate::ledger::{Action, Event, Ledger, Mark, Reading, Suggested, TrialNumber, View, What};
use crate::maximize::feasible::Feasible;
use crate::numerics::threads;
use crate::problem::{Fixed, Point, Problem, Restriction};
use crate::random::Call;
use crate::random::{RECOMMENDATION, SETUP, stream};
use crate::stopping::{Stopping, divergence};
use crate::strategy::model_based::{Durations, Forecast, Further, ModelBased, Surrogate};
use crate::strategy::registry;
use crate::strategy::{Limit, Query, Recommendation, Setup, Strategy};

pub use batch::Shared;

/// The definition of an optimizer. Only a revision replaces it.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// What is optimised.
    pub problem: Arc<Problem>,
    /// The seed of all random numbers. Two optimizers with equal definitions and events suggest the same points.
    pub seed: u64,
    /// The strategy in JSON: `{"kind": name, …settings}`.
    pub strategy: Value,
    /// The rule that stops trials before the last step of their curves.
    pub stopping: Option<Stopping>,
}

impl Definition {
    /// Creates a definition from a strategy in JSON, without a rule that stops trials.
    pub fn from_json(problem: Arc<Problem>, seed: u64, strategy: &str) -> Result<Self> {
        let strategy =
            serde_json::from_str(strategy).map_err(|error| Error::InvalidDefinition {
                got: strategy.to_string(),
                expected: error.to_string(),
            })?;
        Ok(Self {
            problem,
            seed,
            strategy,
            stopping: None,
        })
    }

    /// Returns the properties of the problem that a strategy depends on.
    pub(crate) fn setup(&self) -> Setup {
        Setup::of(&self.problem)
    }

    fn strategy(&self) -> Result<Box<dyn Strategy>> {
        let mut rng = stream(self.seed, SETUP);
        registry::make(&self.strategy, &self.setup(), &mut rng)
    }
}

/// The arguments of a suggestion.
#[derive(Debug, Clone, Copy, Default)]
pub struct Request<'a> {
    /// The context, with one number for each searched parameter. The list is empty if the problem does not have a
    /// context.
    pub context: &'a [f64],
    /// The fidelity in the user's units, or None if the strategy should choose the fidelity. Must be None if the
    /// problem does not declare a fidelity.
    pub fidelity: Option<f64>,
    /// The wall-clock time in seconds, which is required if the clock counts seconds. Without a time, leases do not
    /// end.
    pub time: Option<f64>,
    /// The lease in seconds. The strategy expects the result of a new trial for this many seconds of wall-clock time
    /// after the start of the trial. A lease requires `time`.
    pub lease: Option<f64>,
    /// The constraints. Enqueued points are not checked against the constraints.
    pub feasible: Feasible<'a>,
    /// The limit on time or cost that ends the run, if any.
    pub limit: Option<Limit>,
    /// The values that the suggested points must have. The next enqueued point is used if it has these values.
    pub fixed: Option<&'a Fixed>,
    /// What the points of one call have in common.
    pub shared: Option<&'a Shared>,
}

/// The recommended point, and the posterior of f at this point.
#[derive(Debug, Clone, PartialEq)]
pub struct Recommended {
    /// The point to use.
    pub point: Point,
    /// The posterior mean of f, in the user's units and sign. Strategies without a model return the observed value.
    pub mean: f64,
    /// The posterior standard deviation of f, without the noise of observations. The value is NaN if the strategy does
    /// not have a model.
    pub std: f64,
}

/// An event that was checked for a place in the log, and is not logged yet.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub event: Event,
    /// The number of the event.
    at: usize,
}

/// A log and the strategy that reads it.
pub struct Optimizer {
    definition: Definition,
    ledger: Ledger,
    strategy: Box<dyn Strategy>,
    delays: Option<LastDelays>,
    /// The definition before the first revision, if the problem was revised.
    original: Option<Definition>,
}

impl Optimizer {
    /// Creates an optimizer with an empty log. Returns an error if a setting is invalid, or the number of threads in
    /// the environment variable `BELATED_NUM_THREADS`.
    pub fn new(definition: Definition) -> Result<Self> {
        threads::read_setting()?;
        let strategy = definition.strategy()?;
        definition.stopping.map_or(Ok(()), |rule| rule.check())?;
        if let Some(offered) = definition.problem.fixed_or_offered(None) {
            if !strategy.supports().restrictions {
                let strategy = registry::name_of(&definition.strategy);
                let what = "values that are not offered";
                return Err(Error::Unsupported { strategy, what });
            }
            definition.problem.restrict(&offered)?;
        }
        Ok(Self {
            ledger: Ledger::new(definition.problem.clone()),
            definition,
            strategy,
            delays: None,
            original: None,
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

    /// Starts n trials and returns their numbers and warnings. The trials are chosen one after another, so each is
    /// pending when the next is chosen.
    ///
    /// If an error occurs or the caller stops the call, the log is unchanged.
    pub fn suggest(
        &mut self,
        n: usize,
        request: Request,
        stop: &mut Stop,
    ) -> Result<(Vec<TrialNumber>, Vec<String>)> {
        let first = self.ledger.n_trials();
        let warnings = self.draft(n, request, stop)?;
        Ok(((first..self.ledger.n_trials()).collect(), warnings))
    }

    /// Returns warnings and the events that would start n trials, without logging the events. The caller passes them to
    /// `commit`, unless another process has logged other events in the meantime.
    pub(crate) fn propose(
        &mut self,
        n: usize,
        request: Request,
        stop: &mut Stop,
    ) -> Result<(Vec<Draft>, Vec<String>)> {
        let end = self.ledger.len();
        let warnings = self.draft(n, request, stop)?;
        let events = self.ledger.events(end).zip(end..);
        let drafts = events.map(|(event, at)| Draft { event, at }).collect();
        self.truncate(end);
        Ok((drafts, warnings))
    }

    /// Logs drafts, and returns the number of the trial of each. Only a draft for another place in the log is checked
    /// again.
    pub(crate) fn commit(&mut self, drafts: Vec<Draft>) -> Result<Vec<Option<TrialNumber>>> {
        let mut numbers = Vec::with_capacity(drafts.len());
        for Draft { event, at } in drafts {
            numbers.push(event.trial_number(self.ledger.n_trials()));
            match at == self.ledger.len() {
                true => self.ledger.push(event)?,
                false => self.append(event)?,
            }
        }
        Ok(numbers)
    }

    /// Removes the drafted suggestions that follow the first `len` events.
    fn truncate(&mut self, len: usize) {
        self.ledger.truncate(len);
        self.strategy.rewind(self.ledger.view());
    }

    /// Checks and logs events from any source, one by one. If an event is invalid, the events before it are still
    /// logged. The call stops before the event of a revision, which [`Optimizer::revised`] logs.
    ///
    /// Returns one entry per event: the number of its trial, or None for an enqueued point.
    pub(crate) fn extend(&mut self, events: Vec<Event>) -> Result<Vec<Option<TrialNumber>>> {
        let mut numbers = Vec::with_capacity(events.len());
        for event in events {
            if matches!(event.what, What::Revised(_)) {
                break;
            }
            numbers.push(event.trial_number(self.ledger.n_trials()));
            self.append(event)?;
        }
        Ok(numbers)
    }

    /// Returns this optimizer with another problem and other settings of the strategy, after the event of the revision.
    /// The other arguments are as for [`Ledger::revise`].
    pub(crate) fn revised(
        &self,
        definition: Definition,
        event: &Event,
        trials: Vec<RevisedTrial>,
        queue: Vec<(Point, bool)>,
    ) -> Result<Self> {
        let mut strategy = definition.strategy()?;
        definition.stopping.map_or(Ok(()), |rule| rule.check())?;
        let mut ledger = self.ledger.clone();
        let same_strategy = definition.strategy == self.definition.strategy;
        let problem = definition.problem.clone();
        ledger.revise(problem, event, trials, queue, same_strategy)?;
        strategy.check_revised(ledger.view())?;
        strategy.catch_up(ledger.view())?;
        let original = self.original.as_ref().unwrap_or(&self.definition);
        Ok(Self {
            original: Some(original.clone()),
            definition,
            ledger,
            strategy,
            delays: None,
        })
    }

    /// Returns an optimizer with the definition before the first revision, and without events.
    pub(crate) fn emptied(&self) -> Result<Self> {
        Self::new(self.original.as_ref().unwrap_or(&self.definition).clone())
    }

    pub(crate) fn reserve(&mut self, n_events: usize, n_bytes: usize) {
        self.ledger.reserve(n_events, n_bytes);
    }

    /// Logs an event after checking it against the log and the strategy.
    fn append(&mut self, event: Event) -> Result<()> {
        self.check_note(&event)?;
        self.ledger.append(event)
    }

    /// As `append`, for an event whose bytes are known.
    pub(crate) fn append_written(&mut self, event: &Event, written: &[u8]) -> Result<()> {
        self.check_note(event)?;
        self.ledger.append_written(event, written)
    }

    fn check_note(&mut self, event: &Event) -> Result<()> {
        match &event.what {
            What::Suggested(Suggested {
                note: Some(note), ..
            }) => self.strategy.check_note(self.ledger.view(), note),
            _ => Ok(()),
        }
    }

    /// Returns the event that an action at this wall-clock time would log, or None if the action would have no effect.
    /// The log is not changed. Values that are far from what the model expects are marked, unless the action has marks.
    /// If `fits`, the model is fitted if necessary; otherwise, only a model that is at hand is used.
    pub(crate) fn validate(
        &mut self,
        action: Action,
        time: Option<f64>,
        fits: bool,
        stop: &mut Stop,
    ) -> Result<Option<Draft>> {
        let now = self.ledger.now(time)?;
        let at = self.ledger.len();
        let given = match &action {
            Action::Observe { observation, .. } | Action::Add { observation, .. } => {
                observation.marks.clone()
            }
            _ => None,
        };
        let Some(mut event) = self.ledger.validate(action, now, time)? else {
            return Ok(None);
        };
        let marks = match given {
            Some(marks) => marks,
            None => self.marks_of(&event, time, fits, stop)?,
        };
        event.mark(marks);
        Ok(Some(Draft { event, at }))
    }

    /// The marks of the new and amended values of an event.
    fn marks_of(
        &mut self,
        event: &Event,
        time: Option<f64>,
        fits: bool,
        stop: &mut Stop,
    ) -> Result<Vec<Mark>> {
        let readings = event.readings();
        if readings.is_empty() || self.strategy.model_based().is_none() {
            return Ok(Vec::new());
        }
        let (point, context) = match &event.what {
            What::Added(it) => (
                Some(&it.point),
                self.ledger.problem().encode_context(&it.context),
            ),
            What::Resulted(it) if self.ledger.left_out(it.trial).is_none() => {
                (event.point(), self.ledger.context(it.trial).to_vec())
            }
            _ => return Ok(Vec::new()),
        };
        let mut row = match (point, event.trial_number(self.ledger.n_trials())) {
            (Some(point), _) => self.ledger.problem().encode(point)?,
            (None, Some(number)) => self.ledger.x(number).to_vec(),
            (None, None) => return Ok(Vec::new()),
        };
        row.extend(context);
        let mut marks = Vec::new();
        for (outcome, Reading { value, std }) in readings {
            let known = match &event.what {
                What::Resulted(it) => self.ledger.value_of(it.trial, outcome as usize),
                _ => None,
            };
            if known == Some(value) {
                continue; // another noise or another point of a value that was judged
            }
            let number = event.trial_number(self.ledger.n_trials());
            let further = Further {
                outcome: outcome as usize,
                replaces: number.filter(|_| known.is_some()),
                row: &row,
                std,
            };
            let interval = self.with_model(time, stop, |model, log, query, call| {
                model.expected(log, further, query, fits, call)
            });
            match interval {
                Ok(Some((low, high))) if !(low..=high).contains(&value) => {
                    marks.push(Mark { outcome, low, high });
                }
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                // A value is stored, whether or not the model can predict it.
                Ok(_) | Err(_) => {}
            }
        }
        Ok(marks)
    }

    /// Returns the interval in which a value of an outcome of a trial without this value is expected, or None if too
    /// little is known. If `fits`, the model is fitted if necessary.
    pub(crate) fn expected(
        &mut self,
        number: TrialNumber,
        outcome: usize,
        time: Option<f64>,
        fits: bool,
        stop: &mut Stop,
    ) -> Result<Option<(f64, f64)>> {
        self.ledger.trial(number)?;
        if self.ledger.left_out(number).is_some() {
            return Ok(None);
        }
        let row = self.ledger.row(number).to_vec();
        let further = Further {
            outcome,
            replaces: None,
            row: &row,
            std: None,
        };
        self.with_model(time, stop, |model, log, query, call| {
            model.expected(log, further, query, fits, call)
        })
    }

    /// Logs an action at this wall-clock time, and returns the number of its trial. Returns None for an enqueued point,
    /// or if the action has no effect.
    pub fn record(&mut self, action: Action, time: Option<f64>) -> Result<Option<TrialNumber>> {
        let draft = self.validate(action, time, false, &mut || ControlFlow::Continue(()))?;
        let numbers = self.commit(draft.into_iter().collect())?;
        Ok(numbers.into_iter().next().flatten())
    }

    /// Returns up to `n` distinct recommended points with the fixed values of the request, best first. Before the first
    /// observation, the list is empty. The fidelity, the limit and the shared values of the request have no effect.
    pub fn recommend(
        &mut self,
        n: usize,
        request: Request,
        stop: &mut Stop,
    ) -> Result<Vec<Recommended>> {
        let problem = self.definition.problem.clone();
        problem.check_context(request.context)?;
        self.check_constraints(request.feasible)?;
        self.check_restrictions(request)?;
        let fixed = problem.fixed_or_offered(request.fixed);
        let restriction = fixed.map(|fixed| problem.restrict(&fixed)).transpose()?;
        let mut query = Query {
            now: self.ledger.now(request.time)?,
            context: &problem.encode_context(request.context),
            feasible: request.feasible,
            ..Query::default()
        };
        if let Some(only) = restriction.as_ref().and_then(Restriction::single) {
            if !query.feasible.holds(&only.x)? {
                return Ok(Vec::new());
            }
            query.feasible = Feasible::EVERYWHERE;
        }
        self.strategy.catch_up(self.ledger.view())?;
        let mut rng = stream(self.definition.seed, RECOMMENDATION);
        let call = &mut Call::new(&mut rng, stop);
        let log = self.ledger.view();
        let found = match &restriction {
            None => self.strategy.recommend(log, query, n, call)?,
            Some(restriction) => query.under(restriction, |query| {
                self.strategy.recommend(log, query, n, call)
            })?,
        };
        let recommended = |best: Recommendation| Recommended {
            point: match self.ledger.between_steps(&best.point.x) {
                // The nearest member was not measured.
                Some(number) => self.ledger.point(number),
                None => problem.decode(&best.point, restriction.as_ref()),
            },
            mean: problem.direction.oriented(best.mean),
            std: best.std,
        };
        Ok(found.into_iter().map(recommended).collect())
    }

    /// Calls a function with the model at a wall-clock time. Returns None if the strategy does not have a model.
    fn with_model<'a, T>(
        &'a mut self,
        time: Option<f64>,
        stop: &mut Stop,
        ask: impl FnOnce(&'a mut dyn ModelBased, View<'a>, Query, &mut Call) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let query = Query {
            now: self.ledger.now(time)?,
            wall_time: time,
            ..Query::default()
        };
        self.strategy.catch_up(self.ledger.view())?;
        let Some(model) = self.strategy.model_based() else {
            return Ok(None);
        };
        let mut rng = stream(self.definition.seed, RECOMMENDATION);
        ask(
            model,
            self.ledger.view(),
            query,
            &mut Call::new(&mut rng, stop),
        )
    }

    /// Returns the posterior if the strategy has a model. With `pending`, the posterior includes pending trials in the
    /// same way as for the next suggestion. The wall-clock time determines which leases have ended. `outcome` is the
    /// position of a declared outcome; None means the objective.
    pub fn surrogate(
        &mut self,
        time: Option<f64>,
        pending: bool,
        outcome: Option<usize>,
        stop: &mut Stop,
    ) -> Result<Option<Surrogate<'_>>> {
        self.with_model(time, stop, |model, log, query, call| {
            model.surrogate(log, query, pending, outcome, call)
        })
    }

    /// Returns the probability that all outcomes lie within their bounds at rows with a point and a context, or None if
    /// the strategy does not have a model.
    pub(crate) fn feasibility(
        &mut self,
        rows: ArrayView2<f64>,
        time: Option<f64>,
        stop: &mut Stop,
    ) -> Result<Option<Vec<f64>>> {
        self.check_rows(rows)?;
        let log_p = self.with_model(time, stop, |model, log, query, call| {
            model.log_feasibility(log, query, rows, call).map(Some)
        })?;
        Ok(log_p.map(|log_p| log_p.into_iter().map(f64::exp).collect()))
    }

    /// Returns the model of durations if the strategy has a model and two positive durations are known. The wall-clock
    /// time determines the ages of the trials that are still running. The call does not change later suggestions.
    pub(crate) fn durations(
        &mut self,
        time: Option<f64>,
        stop: &mut Stop,
    ) -> Result<Option<Durations>> {
        self.with_model(time, stop, |model, log, query, call| {
            model.durations(log, query, call)
        })
    }

    /// Returns the forecast of a running or stopped trial from its curve, in units of the maximised function. Returns None
    /// if the curve lacks usable reports. The call does not change later suggestions.
    pub(crate) fn forecast(
        &mut self,
        number: TrialNumber,
        time: Option<f64>,
        stop: &mut Stop,
    ) -> Result<Option<Forecast>> {
        self.ledger.trial(number)?;
        self.with_model(time, stop, |model, log, query, call| {
            model.forecast(log, number, query, call)
        })
    }

    /// Returns the action that ends the evaluation of a trial after its last report, or None if the trial continues. A
    /// trial whose curve diverged fails, and the rule of the definition stops other trials. The call does not change
    /// later suggestions.
    pub fn ending(
        &mut self,
        number: TrialNumber,
        time: Option<f64>,
        stop: &mut Stop,
    ) -> Result<Option<Action>> {
        let Some(rule) = self.definition.stopping else {
            return Ok(None);
        };
        if let Some(failure) = divergence(self.ledger.objective(), number)? {
            return Ok(Some(failure));
        }
        let forecast = match rule.needs_forecast(self.ledger.objective(), number)? {
            true => self.forecast(number, time, stop)?,
            false => None,
        };
        let stops = rule.stops(self.ledger.objective(), number, forecast)?;
        Ok(stops.then_some(Action::Stop { number }))
    }

    /// Returns the values, in units of f, that the acquisition of the next suggestion has at the given points. The
    /// points must be in the domain, but need not be feasible. Returns None before the first observation, or if the
    /// strategy does not have a model. The call does not change later suggestions.
    pub(crate) fn acquisition(
        &mut self,
        points: ArrayView2<f64>,
        context: &[f64],
        time: Option<f64>,
        feasible: Feasible,
        stop: &mut Stop,
    ) -> Result<Option<Vec<f64>>> {
        self.definition.problem.check_context(context)?;
        self.check_constraints(feasible)?;
        let context = &self.definition.problem.encode_context(context);
        let (width, _) = self.ledger.widths();
        if points.ncols() != width || points.iter().any(|x| !x.is_finite()) {
            return Err(Error::Shape(format!(
                "points of {} columns; give {width} finite ones, as the domain encodes them",
                points.ncols()
            )));
        }
        let query = Query {
            now: self.ledger.now(time)?,
            wall_time: time,
            context,
            feasible,
            ..Query::default()
        };
        self.strategy.catch_up(self.ledger.view())?;
        let Some(strategy) = self.strategy.model_based() else {
            return Ok(None);
        };
        let next = self.ledger.n_trials() as u64;
        let mut rng = stream(self.definition.seed, next);
        let call = &mut Call::new(&mut rng, stop);
        let values = strategy.acquisition(self.ledger.view(), query, points, call);
        self.strategy.rewind(self.ledger.view());
        values
    }

    /// Returns the time on the clock, the delays of the suggested trials, and the ages of the trials in flight. Calls
    /// share the delays until they change. If the position of an outcome is given, the delays and ages of this
    /// outcome are returned; otherwise a trial is in flight until all its outcomes are known.
    pub(crate) fn delays(
        &mut self,
        time: Option<f64>,
        outcome: Option<usize>,
    ) -> Result<(f64, Arc<Delays>, BTreeMap<TrialNumber, f64>)> {
        let now = self.ledger.now(time)?;
        if let Some(outcome) = outcome {
            let view = self.ledger.declared(outcome)?;
            let found = view.delays_in_steps(None, now, time);
            return Ok((now, found.delays, view.in_flight(now, time)));
        }
        let found = self
            .ledger
            .view()
            .delays_in_steps(self.delays.take(), now, time);
        let delays = self.delays.insert(found).delays.clone();
        Ok((now, delays, self.ledger.view().in_flight(now, time)))
    }

    /// As `delays`, in wall-clock time.
    pub(crate) fn wall_delays(
        &self,
        time: f64,
        outcome: Option<usize>,
    ) -> Result<(f64, Arc<Delays>, BTreeMap<TrialNumber, f64>)> {
        self.ledger.now(Some(time))?; // checks the time
        let view = match outcome {
            Some(outcome) => self.ledger.declared(outcome)?,
            None => self.ledger.view(),
        };
        let delays = Arc::new(view.wall_delays(time));
        Ok((time, delays, view.in_flight_in_wall_time(time)))
    }

    /// Returns the time for which a pending trial counts as arriving, on the clock, or None without a limit.
    pub(crate) fn window(&mut self) -> Result<Option<f64>> {
        self.strategy.catch_up(self.ledger.view())?;
        let strategy = self.strategy.model_based();
        Ok(strategy.and_then(|strategy| strategy.window()))
    }

    /// Returns the status as JSON if the strategy works in rounds. Returns None for other strategies.
    pub(crate) fn status(&mut self, time: Option<f64>, stop: &mut Stop) -> Result<Option<Value>> {
        self.strategy.catch_up(self.ledger.view())?;
        let now = self.ledger.now(time)?;
        self.strategy.status(self.ledger.view(), now, stop)
    }
}
