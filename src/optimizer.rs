//! The optimizer: a log, and the strategy that reads it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::domain::{Domain, MAX_COLUMNS};
use crate::error::{Error, Result, Stop, check};
use crate::ledger::{Action, Clock, Event, Fitted, Ledger, Point, TrialNumber};
use crate::random::Rng;
use crate::strategy::bayes::bayes_opt::{BayesOpt, Settings};
use crate::strategy::random_search::RandomSearch;
use crate::strategy::{Query, Recommendation, Strategy, Surrogate};

/// Which strategy, with its settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Method {
    RandomSearch,
    BayesOpt(Box<Settings>),
}

/// Everything about an optimizer that does not change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    pub domain: Arc<Domain>,
    /// Number of encoded columns of a context.
    pub context_width: usize,
    pub clock: Clock,
    pub seed: u64,
    pub method: Method,
}

impl Definition {
    fn strategy(&self) -> Result<Box<dyn Strategy>> {
        if self.context_width > MAX_COLUMNS {
            return Err(Error::InvalidContext(format!(
                "a context of {} columns is more than {MAX_COLUMNS}; merge some choices",
                self.context_width
            )));
        }
        Ok(match &self.method {
            Method::RandomSearch => Box::new(RandomSearch::new(self.domain.clone())),
            Method::BayesOpt(settings) => Box::new(BayesOpt::new(
                self.domain.clone(),
                self.context_width,
                (**settings).clone(),
                &mut self.stream(DESIGN),
            )?),
        })
    }

    /// The generator of suggestion k: a stream of its own, so that nothing else that is drawn shifts it.
    fn stream(&self, k: u64) -> Rng {
        // Streams of one state are correlated; a state of their own for each makes them independent.
        let mut state = self.seed ^ k.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut next = || {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^ (z >> 31)
        };
        let state = u128::from(next()) << 64 | u128::from(next());
        Rng::new(state, u128::from(k))
    }
}

/// A log and the strategy that reads it.
pub struct Optimizer {
    definition: Definition,
    ledger: Ledger,
    strategy: Box<dyn Strategy>,
    /// The last proposal, and the length of the log that it was made for.
    proposed: Option<(usize, Vec<Event>)>,
}

/// How long new trials count as arriving, by a clock on the wall.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Lease {
    /// The time; without it no trial expires.
    pub wall: Option<f64>,
    /// Seconds from then on.
    pub seconds: Option<f64>,
}

impl Lease {
    fn expires_at(self) -> Option<f64> {
        Some(self.wall? + self.seconds?)
    }
}

/// Streams of `recommend` and of initial designs, out of the way of the trials'.
const RECOMMENDATION: u64 = u64::MAX;
const DESIGN: u64 = u64::MAX - 1;

/// First bytes of a saved optimizer: a name and the version of the format. Eight bytes of checksum follow.
const HEADER: &[u8] = b"belated\x02";

/// FNV-1a in 64 bits: no change of a single byte goes unnoticed, and of more bytes one in 2⁶⁴.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

impl Optimizer {
    pub fn new(definition: Definition) -> Result<Self> {
        Self::with_ledger(definition.clone(), Ledger::new(definition.clock))
    }

    fn with_ledger(definition: Definition, ledger: Ledger) -> Result<Self> {
        let strategy = definition.strategy()?;
        Ok(Self {
            definition,
            ledger,
            strategy,
            proposed: None,
        })
    }

    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Starts n trials, each with the ones before it pending; their numbers, and warnings.
    ///
    /// Either all n are logged, or none: on an error, and when the caller stops it.
    pub fn suggest(
        &mut self,
        n: usize,
        context: &[f64],
        now: Option<f64>,
        stop: &mut Stop,
    ) -> Result<(Vec<TrialNumber>, Vec<String>)> {
        let (events, warnings) = self.propose(n, context, now, Lease::default(), stop)?;
        let first = self.ledger.trials().len();
        self.extend(events)?;
        Ok(((first..self.ledger.trials().len()).collect(), warnings))
    }

    /// The events that would start n trials, and warnings. Nothing is logged: that is for `extend`, unless
    /// somebody else's events come first.
    pub fn propose(
        &mut self,
        n: usize,
        context: &[f64],
        now: Option<f64>,
        lease: Lease,
        stop: &mut Stop,
    ) -> Result<(Vec<Event>, Vec<String>)> {
        self.check_context(context)?;
        self.ledger.now(now)?;
        self.rewind()?;
        let result = self.propose_each(n, context, now, lease, stop);
        match &result {
            Ok((events, _)) => self.proposed = Some((self.ledger.events().len(), events.clone())),
            // The strategy may have gone ahead of the log; a new one starts from the log alone.
            Err(_) => self.strategy = self.definition.strategy()?,
        }
        result
    }

    fn propose_each(
        &mut self,
        n: usize,
        context: &[f64],
        now: Option<f64>,
        lease: Lease,
        stop: &mut Stop,
    ) -> Result<(Vec<Event>, Vec<String>)> {
        let (mut events, mut warnings) = (Vec::new(), Vec::new());
        let mut draft: Option<Ledger> = None;
        for i in 0..n {
            let ledger = draft.as_ref().unwrap_or(&self.ledger);
            let now = ledger.now(now)?;
            let (point, fitted, queued) = match ledger.next_queued() {
                Some(point) => (point.clone(), None, true),
                None => {
                    let mut rng = self.definition.stream(ledger.trials().len() as u64);
                    let query = Query {
                        now,
                        wall: lease.wall,
                        context,
                    };
                    let proposal = self.strategy.propose(ledger, query, &mut rng, stop)?;
                    warnings.extend(proposal.warning);
                    (proposal.point, proposal.fitted, false)
                }
            };
            check(stop)?;
            let event = Event::Suggested {
                point,
                context: context.to_vec(),
                now,
                fitted,
                queued,
                expires_at: lease.expires_at(),
            };
            if i + 1 < n {
                draft
                    .get_or_insert_with(|| self.ledger.clone())
                    .append(event.clone())?;
            }
            events.push(event);
        }
        Ok((events, warnings))
    }

    /// Takes in events, own or another's, checked one by one; those before a bad one have been taken in.
    pub fn extend(&mut self, events: Vec<Event>) -> Result<()> {
        for event in events {
            self.check_event(&event)?;
            self.ledger.append(event)?;
        }
        Ok(())
    }

    /// As `extend`, for events out of a store, which anybody may have written.
    pub fn apply_untrusted(&mut self, events: Vec<Event>) -> Result<()> {
        for event in events {
            if let Event::Suggested { point, .. }
            | Event::Added { point, .. }
            | Event::Enqueued { point } = &event
            {
                self.check_origin(point)?;
            }
            self.extend(vec![event])?;
        }
        Ok(())
    }

    /// The event that an action amounts to; None where it changes nothing. Nothing is logged.
    pub fn draft(&self, action: Action, now: Option<f64>) -> Result<Option<Event>> {
        match &action {
            Action::Add { point, context, .. } => {
                self.check_point(point)?;
                self.check_context(context)?;
            }
            Action::Enqueue { point } => self.check_point(point)?,
            Action::Observe { .. } | Action::Fail { .. } | Action::Abandon { .. } => {}
        }
        self.ledger.draft(action, self.ledger.now(now)?)
    }

    /// Logs an action.
    pub fn act(&mut self, action: Action, now: Option<f64>) -> Result<()> {
        match self.draft(action, now)? {
            Some(event) => self.ledger.append(event),
            None => Ok(()),
        }
    }

    /// Forgets what the strategy learnt for a proposal that was not logged after all.
    fn rewind(&mut self) -> Result<()> {
        let Some((from, events)) = self.proposed.take() else {
            return Ok(());
        };
        if !self.ledger.events()[from..].starts_with(&events) {
            self.strategy = self.definition.strategy()?;
        }
        Ok(())
    }

    /// The best point by the strategy's belief; None while nothing is observed.
    pub fn recommend(
        &mut self,
        context: &[f64],
        now: Option<f64>,
        stop: &mut Stop,
    ) -> Result<Option<Recommendation>> {
        self.check_context(context)?;
        self.rewind()?;
        let now = self.ledger.now(now)?;
        let mut rng = self.definition.stream(RECOMMENDATION);
        let query = Query {
            now,
            wall: None,
            context,
        };
        self.strategy.recommend(&self.ledger, query, &mut rng, stop)
    }

    /// The model; with `pending`, as the next suggestion would see it, leases counted by a clock on the wall if there are any.
    pub fn surrogate(
        &mut self,
        now: Option<f64>,
        wall: Option<f64>,
        pending: bool,
        stop: &mut Stop,
    ) -> Result<Option<Surrogate>> {
        self.rewind()?;
        let now = self.ledger.now(now)?;
        let query = Query {
            now,
            wall,
            context: &[],
        };
        self.strategy.surrogate(&self.ledger, query, pending, stop)
    }

    /// Definition and log: all there is to know.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let state = (&self.definition, self.ledger.events());
        let body =
            postcard::to_stdvec(&state).map_err(|error| Error::Corrupt(error.to_string()))?;
        Ok([HEADER, &checksum(&body).to_le_bytes(), body.as_slice()].concat())
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let refuse = |what: &str| Error::Corrupt(what.to_string());
        let (sum, body) = bytes
            .strip_prefix(HEADER)
            .ok_or_else(|| refuse("it does not start as one of this version does"))?
            .split_first_chunk()
            .ok_or_else(|| refuse("it is cut off"))?;
        if checksum(body) != u64::from_le_bytes(*sum) {
            return Err(refuse("it was damaged on its way"));
        }
        let (definition, events): (Definition, Vec<Event>) =
            postcard::from_bytes(body).map_err(|error| Error::Corrupt(error.to_string()))?;
        let ledger = Ledger::replay(definition.clock, events)?;
        let optimizer = Self::with_ledger(definition, ledger)?;
        for event in optimizer.ledger.events() {
            optimizer.check_event(event)?;
        }
        Ok(optimizer)
    }

    fn check_event(&self, event: &Event) -> Result<()> {
        match event {
            Event::Suggested { point, context, .. } | Event::Added { point, context, .. } => {
                self.check_point(point)?;
                self.check_context(context)?;
            }
            Event::Enqueued { point } => self.check_point(point)?,
            _ => {}
        }
        if let Event::Suggested {
            fitted: Some(Fitted {
                theta, scale, rows, ..
            }),
            ..
        } = event
        {
            let width = self.definition.domain.width() + self.definition.context_width;
            let all = theta
                .lengthscale
                .iter()
                .chain([&theta.signal_variance, &theta.noise_variance]);
            if *rows > self.ledger.trials().len()
                || theta.lengthscale.len() != width
                || !(*scale > 0.0 && scale.is_finite())
                || !all.clone().all(|p| *p > 0.0 && p.is_finite())
            {
                return Err(Error::Corrupt(format!("{theta:?} was never fitted here")));
            }
        }
        Ok(())
    }

    fn check_point(&self, point: &Point) -> Result<()> {
        let domain = &self.definition.domain;
        if point.x.len() != domain.width() {
            return Err(Error::InvalidPoint(format!(
                "a point of {} columns for a domain of {}; encode it as the domain's rows are",
                point.x.len(),
                domain.width()
            )));
        }
        if point.x.iter().any(|x| !x.is_finite()) {
            return Err(Error::InvalidPoint(
                "a point with NaN or infinite coordinates; give finite ones".to_string(),
            ));
        }
        if let (Some(index), Domain::Candidates(list)) = (point.index, domain.as_ref())
            && index >= list.nrows()
        {
            return Err(Error::InvalidPoint(format!(
                "candidate {index} does not exist: there are {}",
                list.nrows()
            )));
        }
        Ok(())
    }

    /// As `check_point`, for points that somebody claims to have had from here: in a box, and none of a list.
    fn check_origin(&self, point: &Point) -> Result<()> {
        if matches!(self.definition.domain.as_ref(), Domain::Candidates(_)) {
            return Ok(());
        }
        if point.index.is_some() || !point.x.iter().all(|x| (0.0..=1.0).contains(x)) {
            return Err(Error::InvalidPoint(format!(
                "{point:?} is none of a box: its columns are from 0 to 1, and no index belongs to it"
            )));
        }
        Ok(())
    }

    fn check_context(&self, context: &[f64]) -> Result<()> {
        let width = self.definition.context_width;
        if context.len() != width {
            return Err(Error::InvalidContext(match (width, context.len()) {
                (0, _) => "a context was given, but none is declared; declare it with context="
                    .to_string(),
                (_, 0) => "a context is declared but none was given; pass context=".to_string(),
                (_, got) => format!("a context of {got} columns, where {width} are declared"),
            }));
        }
        if context.iter().any(|z| !z.is_finite()) {
            return Err(Error::InvalidContext(
                "a context with NaN or infinite entries; give finite ones".to_string(),
            ));
        }
        Ok(())
    }
}
