//! The error type of the core. Each kind of error is a variant, and each message says how to correct the error.

use thiserror::Error;

/// An error of the core. The Python bindings map each variant to one exception class.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Error {
    /// A domain that is empty, has inverted bounds or non-finite entries, or does not have columns.
    #[error("{0}")]
    InvalidSpace(String),

    /// A setting outside its documented range, or two settings that contradict each other.
    #[error("{name}={got} is not usable: {expected}")]
    InvalidSetting {
        /// The setting.
        name: &'static str,
        /// Its value.
        got: String,
        /// What to give instead.
        expected: &'static str,
    },

    /// JSON that does not define an optimizer.
    #[error("{got} does not define an optimizer: {expected}")]
    InvalidDefinition {
        /// The JSON.
        got: String,
        /// The error of the parser.
        expected: String,
    },

    /// A reported number outside its range.
    #[error("{name}={got} for {what} is not usable: pass {expected} (nothing was changed)")]
    InvalidValue {
        /// The argument.
        name: &'static str,
        /// Its value.
        got: String,
        /// The trial or the point to which the number belongs.
        what: String,
        /// The values that can be passed.
        expected: String,
    },

    /// A report of an optimizer that does not declare a learning curve.
    #[error(
        "trial {number} cannot have reports, because a curve is not declared; pass curve=bl.Curve(steps) to the optimizer"
    )]
    NoCurve {
        /// The trial.
        number: usize,
    },

    /// A step that has another value already.
    #[error(
        "step {step} of trial {number} has the value {value} already; a restarted evaluation reports with a larger attempt="
    )]
    AlreadyReported {
        /// The trial.
        number: usize,
        /// The step.
        step: u32,
        /// The known value.
        value: f64,
    },

    /// Attributes that are not a JSON object.
    #[error(
        "attrs={0} is not a JSON object; give names and values, nested no deeper than 127 levels"
    )]
    InvalidAttrs(String),

    /// A point that does not belong to the domain.
    #[error("{0}")]
    InvalidPoint(String),

    /// A context with the wrong number of columns or with a non-finite entry.
    #[error("{0}")]
    InvalidContext(String),

    /// A fidelity outside [0, 1], or any fidelity if the optimizer does not declare a range of fidelities.
    #[error("{0}")]
    InvalidFidelity(String),

    /// A time that is not finite, or a missing time although the clock needs a time.
    #[error("now={got} is not usable: {expected}")]
    InvalidTime {
        /// The time, or NaN if it is missing.
        got: f64,
        /// What to give instead.
        expected: &'static str,
    },

    /// Constraints for which no feasible point was found.
    #[error(
        "none of {tried} points tried satisfies the constraints; loosen them or narrow the space, write an equation \
         (==) as bl.Linear or bl.Mixture, or add the value of a point that satisfies them"
    )]
    NoFeasiblePoint {
        /// The number of points that were checked.
        tried: usize,
    },

    /// Arrays whose shapes do not match.
    #[error("{0}")]
    Shape(String),

    /// A trial number that does not exist.
    #[error(
        "trial {number} is unknown: this optimizer has {known} trials, numbered from 0; pass a trial that its suggest or add returned"
    )]
    UnknownTrial {
        /// The number that was given.
        number: usize,
        /// The number of trials of the log.
        known: usize,
    },

    /// A report that contradicts the value of an observed trial: a different value, or a failure.
    #[error(
        "trial {number} has the value {value} already; pass amend=True to replace it, or replicate=True to keep both"
    )]
    AlreadyObserved {
        /// The trial.
        number: usize,
        /// Its value.
        value: f64,
    },

    /// A different value for an outcome that has a value.
    #[error(
        "outcome {outcome:?} of trial {number} has the value {value} already; pass amend=True to replace it, or replicate=True to keep both"
    )]
    OutcomeAlreadyObserved {
        /// The trial.
        number: usize,
        /// The outcome.
        outcome: String,
        /// Its value.
        value: f64,
    },

    /// A report at another point than the point of the values that are known.
    #[error(
        "trial {number} has values, which were measured at another point; pass amend=True to move them, or report the value with replicate=True"
    )]
    RunElsewhere {
        /// The trial.
        number: usize,
    },

    /// A withdrawal of a trial without a result: pending, abandoned, or withdrawn already.
    #[error(
        "trial {number} is {state} and cannot be withdrawn: withdraw takes back the result of an observed, failed or stopped trial"
    )]
    NotWithdrawable {
        /// The trial.
        number: usize,
        /// The name of its state.
        state: &'static str,
    },

    /// A covariance matrix that is not positive definite after adding the largest jitter.
    #[error(
        "the covariance matrix is not positive definite (pivot {pivot}), even with jitter {jitter:e}; raise the noise"
    )]
    NotPositiveDefinite {
        /// The row of the first pivot that is not positive.
        pivot: usize,
        /// The largest number that was added to the diagonal.
        jitter: f64,
    },

    /// Targets that are so large that the weights of the posterior overflow.
    #[error(
        "targets as large as {largest:e} overflow in the posterior; scale the values down (targets=\"standardized\" does)"
    )]
    Overflow {
        /// The largest absolute value of a target.
        largest: f64,
    },

    /// A feature that the strategy does not support.
    #[error("{strategy} does not support {what}: leave it out, or use {}", supporting(.what))]
    Unsupported {
        /// The strategy.
        strategy: &'static str,
        /// The feature.
        what: &'static str,
    },

    /// A suggestion beyond the horizon of the strategy.
    #[error(
        "the horizon of {horizon} suggestions is reached after {steps} suggestions: ask for fewer at once, or make an optimizer with a longer horizon"
    )]
    HorizonReached {
        /// The horizon: the number of suggestions for which the strategy was created.
        horizon: usize,
        /// The number of suggestions so far.
        steps: usize,
    },

    /// Saved bytes in another version of the format.
    #[error(
        "the saved optimizer has format {found}, but this version of belated reads format {known}: use the version that wrote it"
    )]
    UnknownFormat {
        /// The format of the bytes.
        found: u8,
        /// The format that this version of belated reads.
        known: u8,
    },

    /// Saved bytes that cannot be decoded.
    #[error("the saved state cannot be read: {0}")]
    Corrupt(String),

    /// The caller asked to stop (Ctrl-C). The state is unchanged.
    #[error("interrupted; nothing was changed")]
    Interrupted,
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Error::Corrupt(error.to_string())
    }
}

/// The error for a setting or an argument, whose public name is `name`.
pub(crate) fn refuse(name: &'static str, got: impl ToString, expected: &'static str) -> Error {
    Error::InvalidSetting {
        name,
        got: got.to_string(),
        expected,
    }
}

/// The result of a fallible function of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A callback that long computations call repeatedly. If it returns `Break`, the computation returns
/// [`Error::Interrupted`].
pub type Stop<'a> = dyn FnMut() -> std::ops::ControlFlow<()> + 'a;

impl Error {
    /// Whether linear algebra failed: a matrix lacks a factor, or numbers overflow.
    pub fn is_numerical(&self) -> bool {
        matches!(
            self,
            Error::NotPositiveDefinite { .. } | Error::Overflow { .. }
        )
    }
}

/// Returns [`Error::Interrupted`] if the caller asked to stop.
pub fn check(stop: &mut Stop) -> Result<()> {
    match stop() {
        std::ops::ControlFlow::Continue(()) => Ok(()),
        std::ops::ControlFlow::Break(()) => Err(Error::Interrupted),
    }
}

/// Returns `None` instead of a numerical error.
pub fn unless_numerical<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Err(error) if error.is_numerical() => Ok(None),
        found => found.map(Some),
    }
}

/// The names of the strategies that support the feature `what`, for error messages.
fn supporting(what: &str) -> &'static str {
    match what {
        "a context" => "BayesOpt or RandomSearch",
        "a fidelity" => "RandomSearch or TreeSearch",
        "fixed" | "shared" | "linear constraints" | "outcomes" => "BayesOpt or RandomSearch",
        "candidates" => "BayesOpt, BPEDelay or RandomSearch",
        _ => "BayesOpt, RandomSearch or TreeSearch",
    }
}
