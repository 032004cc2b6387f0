//! The note that Bayesian optimisation logs with a suggestion: the fit that was made for the suggestion.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::gp::Hyperparameters;
use crate::gp::group_units::GroupUnits;
use crate::gp::kernel::{InputWarp, KernelFamily, n_described};
use crate::numerics::warp::Warp;
use crate::strategy::Resource;
use crate::strategy::bayes::columns::Columns;
use crate::strategy::bayes::model::window::ChosenWindow;
use crate::strategy::units::Units;

/// A fit: the kernel, θ, and a description of the fitted data.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    pub family: KernelFamily,
    pub theta: Hyperparameters,
    /// The number of rows in the fit, or `None` if θ was given.
    pub rows: Option<usize>,
    /// The units of the targets in the fit.
    pub units: Units,
    /// The units of f for each column of the categorical contexts, or none if all contexts have equal units.
    pub contexts: Vec<GroupUnits>,
    /// The fit of the model of success, if any trial had failed before the fit.
    pub success: Option<SuccessFit>,
    /// The fit of the model of durations or costs, if choices depend on durations or costs.
    pub expense: Option<ExpenseFit>,
    /// The window that is in force, if it is chosen from delays.
    pub window: Option<ChosenWindow>,
    /// The model of the probability that the outcome lies within its bounds, unless it is the model of its values.
    pub inside: Option<InsideFit>,
}

/// The fit of the Gaussian process in the model of expenses. The rows are the ended trials whose expense is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpenseFit {
    pub per: Resource,
    pub lengthscale: Vec<f64>,
    pub signal_variance: f64,
    pub noise_variance: f64,
    /// The share of the variance of log d that the model explains, from 0 to 1.
    pub explained: f64,
    pub rows: usize,
}

impl ExpenseFit {
    pub fn theta(&self) -> Hyperparameters {
        Hyperparameters::new(
            self.lengthscale.clone(),
            self.signal_variance,
            self.noise_variance,
        )
    }
}

/// The log evidence of three explanations of failed trials: a constant rate of failures, a rate that changes in time,
/// and a region of the space.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    pub constant: f64,
    pub changing: f64,
    pub region: f64,
}

/// The fit of the model of success: one lengthscale per column, and the number of rows in the fit. The rows are the
/// observed and the failed trials. The evidence is kept for the reader, and suggestions do not depend on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuccessFit {
    pub lengthscale: Vec<f64>,
    pub rows: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
}

/// A model of the probability that an outcome lies within its bounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum InsideFit {
    /// The model of values, in which values that equal a bound are censored.
    Censored,
    /// A model of labels, which are inside and outside.
    Labels(LabelsFit),
}

impl InsideFit {
    /// The fit of the model of labels.
    pub fn labels(&self) -> Option<&LabelsFit> {
        match self {
            InsideFit::Censored => None,
            InsideFit::Labels(fit) => Some(fit),
        }
    }
}

/// The fit of a model of labels: one lengthscale per column, and the number of rows in the fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelsFit {
    pub lengthscale: Vec<f64>,
    pub rows: usize,
}

/// The JSON form of a fit.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    kernel: KernelFamily,
    lengthscale: Vec<f64>,
    signal_variance: f64,
    noise_variance: f64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    descriptor_lengthscale: Vec<f64>,
    #[serde(default, skip_serializing_if = "InputWarp::is_identity")]
    input_warp: InputWarp,
    rows: usize,
    center: f64,
    scale: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    warp: Option<Warp>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    contexts: Vec<GroupUnits>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    success: Option<SuccessFit>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expense: Option<ExpenseFit>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    window: Option<ChosenWindow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    inside: Option<InsideFit>,
}

impl Fit {
    /// A fit for a given θ.
    pub fn given(family: KernelFamily, theta: Hyperparameters) -> Self {
        Self {
            family,
            theta,
            rows: None,
            units: Units {
                center: 0.0,
                scale: 1.0,
                warp: None,
            },
            contexts: Vec::new(),
            success: None,
            expense: None,
            window: None,
            inside: None,
        }
    }

    pub fn to_note(&self) -> Result<String> {
        let note = Note {
            kernel: self.family,
            lengthscale: self.theta.lengthscale.clone(),
            signal_variance: self.theta.signal_variance,
            noise_variance: self.theta.noise_variance,
            descriptor_lengthscale: self.theta.descriptor_lengthscale.clone(),
            input_warp: self.theta.input_warp.clone(),
            rows: self.rows.unwrap_or(0),
            center: self.units.center,
            scale: self.units.scale,
            warp: self.units.warp,
            contexts: self.contexts.clone(),
            success: self.success.clone(),
            expense: self.expense.clone(),
            window: self.window,
            inside: self.inside.clone(),
        };
        Ok(serde_json::to_string(&note)?)
    }

    /// Reads a note. Returns an error if the text is not a note or if the hyperparameters are invalid.
    pub fn from_note(text: &str) -> Result<Self> {
        let note: Note = serde_json::from_str(text)?;
        let rest = [note.signal_variance, note.noise_variance, note.scale];
        let success = note.success.iter().flat_map(|fit| &fit.lengthscale);
        let labels = note.inside.iter().flat_map(InsideFit::labels);
        let labels = labels.flat_map(|fit| &fit.lengthscale);
        let expense = note.expense.iter().flat_map(|fit| {
            let variances = [&fit.signal_variance, &fit.noise_variance];
            fit.lengthscale.iter().chain(variances)
        });
        let mut all = note
            .lengthscale
            .iter()
            .chain(&note.descriptor_lengthscale)
            .chain(&rest)
            .chain(success)
            .chain(labels)
            .chain(expense)
            .chain(note.window.iter().map(|window| &window.length));
        let positive = all.all(|p| *p > 0.0 && p.is_finite());
        drop(all);
        let evidence = note.success.iter().filter_map(|fit| fit.evidence);
        let mut evidence = evidence.flat_map(|its| [its.constant, its.changing, its.region]);
        let explained = note.expense.as_ref().map_or(0.0, |fit| fit.explained);
        if note.lengthscale.is_empty()
            || !(0.0..=1.0).contains(&explained)
            || !positive
            || !evidence.all(f64::is_finite)
            || !note.center.is_finite()
            || note.warp.is_some_and(|warp| !warp.is_valid())
            || note.contexts.iter().any(|units| !units.is_valid())
            || !note.input_warp.is_valid(note.lengthscale.len())
        {
            return Err(Error::Corrupt(format!("the note {text} is of no fit")));
        }
        Ok(Self {
            family: note.kernel,
            theta: Hyperparameters {
                lengthscale: note.lengthscale,
                signal_variance: note.signal_variance,
                noise_variance: note.noise_variance,
                descriptor_lengthscale: note.descriptor_lengthscale,
                input_warp: note.input_warp,
            },
            rows: Some(note.rows),
            units: Units {
                center: note.center,
                scale: note.scale,
                warp: note.warp,
            },
            contexts: note.contexts,
            success: note.success,
            expense: note.expense,
            window: note.window,
            inside: note.inside,
        })
    }

    /// Returns an error if the note cannot belong to a model with these columns after `n_trials` trials.
    pub fn check_note(text: &str, n_trials: usize, columns: &Columns) -> Result<()> {
        let (fit, width) = (Self::from_note(text)?, columns.width());
        let n = fit.theta.descriptor_lengthscale.len();
        let n_contexts = columns.contexts.iter().map(ExactSizeIterator::len).sum();
        let is_other = |rows: usize, lengthscale: &[f64]| {
            rows == 0 || rows > n_trials || lengthscale.len() != width
        };
        let success = fit.success.as_ref();
        let labels = fit.inside.as_ref().and_then(InsideFit::labels);
        let expense = fit.expense.as_ref();
        if fit.rows > Some(n_trials)
            || fit.theta.lengthscale.len() != width
            || ![0, n_described(&columns.categories)].contains(&n)
            || ![0, n_contexts].contains(&fit.contexts.len())
            || success.is_some_and(|fit| is_other(fit.rows, &fit.lengthscale))
            || labels.is_some_and(|fit| is_other(fit.rows, &fit.lengthscale))
            || expense.is_some_and(|fit| is_other(fit.rows, &fit.lengthscale))
            || fit.window.is_some_and(|window| window.arrivals > n_trials)
        {
            return Err(Error::Corrupt(format!(
                "the note {text} is of a fit to other rows"
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gp::kernel::Kumaraswamy;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn notes_keep_every_bit(
            lengthscale in prop::collection::vec(f64::MIN_POSITIVE..1e300, 1..5), variance in 5e-324..1e300, rows: usize,
            warp in prop::option::of((-1e300..1e300, f64::MIN_POSITIVE..1e300)), a in f64::MIN_POSITIVE..1e300,
        ) {
            let input_warp = InputWarp::new(vec![Kumaraswamy(a, 1.0); lengthscale.len()]);
            let (descriptor_lengthscale, noise_variance) = (vec![a], 1e-300);
            let theta = Hyperparameters {
                lengthscale, signal_variance: variance, noise_variance, descriptor_lengthscale, input_warp,
            };
            let warp = warp.map(|(knee, width)| Warp { knee, width, diverging: f64::MIN, limit: f64::MIN });
            let units = Units { center: -a, scale: variance, warp };
            let fit = Fit { family: KernelFamily::Matern32, theta, rows: Some(rows), units, contexts: Vec::new(), success: None, expense: None, window: None, inside: None };
            prop_assert_eq!(Fit::from_note(&fit.to_note().unwrap()).unwrap(), fit.clone());
            let evidence = Some(Evidence { constant: -a, changing: -variance, region: 0.25 });
            let success = Some(SuccessFit { lengthscale: fit.theta.lengthscale.clone(), rows, evidence });
            let lengthscale = fit.theta.lengthscale.clone();
            let expense = Some(ExpenseFit { per: Resource::Cost, lengthscale, signal_variance: a, noise_variance: variance, explained: 0.25, rows });
            let window = Some(ChosenWindow { length: a, arrivals: rows });
            let contexts = vec![GroupUnits { offset: -a, scale: variance }, GroupUnits::default()];
            let inside = Some(InsideFit::Labels(LabelsFit { lengthscale: fit.theta.lengthscale.clone(), rows }));
            let fit = Fit { contexts, success, expense, window, inside, ..fit };
            prop_assert_eq!(Fit::from_note(&fit.to_note().unwrap()).unwrap(), fit);
        }
    }

    #[test]
    fn invalid_notes_are_refused() {
        let good = r#"{"kernel":"matern52","lengthscale":[0.5,1.0],"signal_variance":1.0,"noise_variance":0.1,"rows":4,"center":-1.0,"scale":2.0}"#;
        assert!(Fit::check_note(good, 4, &Columns::plain(2)).is_ok());
        assert!(Fit::check_note(good, 3, &Columns::plain(2)).is_err());
        assert!(Fit::check_note(good, 4, &Columns::plain(3)).is_err());
        for (from, to) in [
            ("matern52", "matern"),
            ("0.5", "0.0"),
            ("0.1", "-0.1"),
            ("2.0", "1e999"),
            ("-1.0", "1e999"),
            ("\"center\":-1.0,", ""),
            ("\"rows\":4", "\"rows\":-1"),
            ("\"rows\":4,", ""),
            ("{", "{\"extra\":1,"),
            ("[0.5,1.0]", "[]"),
            (
                "2.0}",
                "2.0,\"warp\":{\"knee\":1.0,\"width\":0.0,\"diverging\":0.0,\"limit\":0.0}}",
            ),
            (
                "2.0}",
                "2.0,\"warp\":{\"knee\":1e999,\"width\":1.0,\"diverging\":0.0,\"limit\":0.0}}",
            ),
            (
                "2.0}",
                "2.0,\"warp\":{\"knee\":1.0,\"width\":1.0,\"diverging\":0.0,\"limit\":1.0}}",
            ),
            ("2.0}", "2.0,\"warp\":{\"knee\":1.0}}"),
            ("2.0}", "2.0,\"input_warp\":[[0.5,1.0]]}"),
            ("2.0}", "2.0,\"input_warp\":[[0.5,1.0],[1.0,0.0]]}"),
            ("2.0}", "2.0,\"input_warp\":[[0.5,1.0],[1e999,1.0]]}"),
        ] {
            let bad = good.replacen(from, to, 1);
            assert!(Fit::from_note(&bad).is_err(), "{bad}");
        }
        let windowed = |window: &str| good.replace('}', &format!(r#","window":{window}}}"#));
        let good_window = windowed(r#"{"length":7.5,"arrivals":4}"#);
        assert!(Fit::check_note(&good_window, 4, &Columns::plain(2)).is_ok());
        for window in [
            r#"{"length":0.0,"arrivals":4}"#,
            r#"{"length":1e999,"arrivals":4}"#,
            r#"{"length":7.5,"arrivals":5}"#,
            r#"{"length":7.5}"#,
        ] {
            assert!(
                Fit::check_note(&windowed(window), 4, &Columns::plain(2)).is_err(),
                "{window}"
            );
        }
        let failures = |success: &str| good.replace('}', &format!(r#","success":{success}}}"#));
        let good = failures(r#"{"lengthscale":[0.25,3.0],"rows":6}"#);
        assert!(Fit::check_note(&good, 6, &Columns::plain(2)).is_ok());
        assert!(Fit::check_note(&good, 5, &Columns::plain(2)).is_err());
        for success in [
            r#"{"lengthscale":[0.25],"rows":6}"#,
            r#"{"lengthscale":[0.25,0.0],"rows":6}"#,
            r#"{"lengthscale":[0.25,1e999],"rows":6}"#,
            r#"{"lengthscale":[0.25,3.0],"rows":0}"#,
            r#"{"lengthscale":[0.25,3.0]}"#,
            r#"{"rows":6}"#,
            r#"{"lengthscale":[0.25,3.0],"rows":6,"noise":1.0}"#,
            r#"{"lengthscale":[0.25,3.0],"rows":6,"evidence":{"constant":-1.0,"changing":-2.0}}"#,
            r#"{"lengthscale":[0.25,3.0],"rows":6,"evidence":{"constant":-1.0,"changing":-2.0,"region":-1e999}}"#,
        ] {
            assert!(
                Fit::check_note(&failures(success), 6, &Columns::plain(2)).is_err(),
                "{success}"
            );
        }
    }
}
