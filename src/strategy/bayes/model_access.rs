//! Access to the posterior between suggestions, and to the acquisition at given points.

use ndarray::{ArrayView2, s};

use crate::error::{Result, refuse};
use crate::ledger::{TrialNumber, View};
use crate::problem::Objective;
use crate::random::Call;
use crate::strategy::Query;
use crate::strategy::bayes::BayesOpt;
use crate::strategy::bayes::acquisitions::formula::Scorer;
use crate::strategy::bayes::acquisitions::rule::Maximand;
use crate::strategy::bayes::choose::final_values::forecast;
use crate::strategy::bayes::choose::measured::Measured;
use crate::strategy::bayes::model::expense::durations::durations;
use crate::strategy::bayes::model::fit_purpose::FitPurpose;
use crate::strategy::bayes::terms::bounds::BoundedOutcome;
use crate::strategy::model_based::{Durations, Forecast, Further, ModelBased, Surrogate};

impl ModelBased for BayesOpt {
    fn surrogate(
        &mut self,
        log: View,
        query: Query,
        pending: bool,
        outcome: Option<usize>,
        call: &mut Call,
    ) -> Result<Option<Surrogate<'_>>> {
        if let Some(outcome) = outcome
            && self.objective.outcome != Some(outcome)
        {
            let mut modelled = self.others.iter_mut();
            let Some(model) = modelled.find(|it| it.outcome == Some(outcome)) else {
                return Err(refuse(
                    "outcome",
                    "an outcome that is only recorded",
                    "it has no model: give the outcome bounds, or name another outcome",
                ));
            };
            return model.surrogate(&self.columns, None, log.log, (query, pending), call);
        }
        let failures = self.failures.as_mut();
        let model = &mut self.objective;
        model.surrogate(&self.columns, failures, log.log, (query, pending), call)
    }

    fn acquisition(
        &mut self,
        log: View,
        query: Query,
        points: ArrayView2<f64>,
        call: &mut Call,
    ) -> Result<Option<Vec<f64>>> {
        let log = log.log.objective();
        if log.n_observed() == 0 {
            return Ok(None);
        }
        self.before_suggestion(query.now);
        self.update_pool(query, call.stop)?;
        self.fit_all(FitPurpose::Suggest, log.log, query, &mut Vec::new(), call)?;
        let setting = &self.settings.acquisition;
        let (kind, is_random) = (setting.kind(), setting.rule().traits().is_random);
        let prepared = self.prepare(log, query, call)?;
        let (gp, units) = (
            &*prepared.posterior.gp,
            prepared.posterior.units(query.context),
        );
        let (false, Maximand::Formula(acquisition)) = (is_random, prepared.maximand) else {
            return Err(refuse(
                "acquisition",
                kind,
                "it maximises a new draw at each suggestion, which has no value beforehand; \
                           use predict, or another acquisition",
            ));
        };
        let mut values = vec![0.0; points.nrows()];
        let context = query.context;
        Scorer::new(gp, acquisition.as_ref(), context).values(points, &mut values);
        for value in &mut values {
            *value = acquisition.in_units_of_f(*value, units.scale(), &|t| units.value(t));
        }
        for mut term in prepared.terms {
            let mut added = vec![0.0; points.nrows()];
            term.scorer(context).values(points, &mut added);
            for (value, added) in values.iter_mut().zip(added) {
                *value += match term.excludes(added) {
                    true => f64::NEG_INFINITY,
                    false => added,
                };
            }
        }
        Ok(Some(values))
    }

    fn log_feasibility(
        &mut self,
        log: View,
        query: Query,
        rows: ArrayView2<f64>,
        call: &mut Call,
    ) -> Result<Vec<f64>> {
        let log = log.log.objective();
        self.fit_all(FitPurpose::Predict, log.log, query, &mut Vec::new(), call)?;
        let measured =
            (!self.others.is_empty()).then(|| Measured::of(&self.others, log.log, &self.domain));
        // The bounds in units of the targets depend on the context, so the rows of each context are predicted together.
        let context_of = |row: usize| rows.row(row).slice_move(s![self.domain.width()..]);
        let mut sums = vec![0.0; rows.nrows()];
        let mut from = 0;
        while from < rows.nrows() {
            let same = |row: &usize| context_of(*row) == context_of(from);
            let to = (from + 1..rows.nrows())
                .take_while(same)
                .last()
                .unwrap_or(from)
                + 1;
            let context = context_of(from).to_vec();
            let query = Query {
                context: &context,
                ..query
            };
            let bounded = BoundedOutcome::all(&mut self.others, log, query, call.stop)?;
            for bound in &BoundedOutcome::log_probabilities(bounded) {
                let mut log_p = vec![0.0; to - from];
                let part = rows.slice_move(s![from..to, ..]);
                bound.scorer(&[]).values(part, &mut log_p);
                let sums = sums[from..to].iter_mut().zip(log_p);
                sums.for_each(|(sum, log_p)| *sum += log_p);
            }
            from = to;
        }
        if let Some(measured) = measured {
            for (sum, row) in sums.iter_mut().zip(rows.rows()) {
                *sum = match measured.exactly_inside(&row.to_vec()) {
                    Some(true) => 0.0,
                    Some(false) => f64::NEG_INFINITY,
                    None => *sum,
                };
            }
        }
        Ok(sums)
    }

    fn forecast(
        &mut self,
        log: View,
        number: TrialNumber,
        query: Query,
        call: &mut Call,
    ) -> Result<Option<Forecast>> {
        let log = log.log.objective();
        forecast(self, log, number, query, call)
    }

    fn expected(
        &mut self,
        log: View,
        further: Further,
        query: Query,
        fits: bool,
        call: &mut Call,
    ) -> Result<Option<(f64, f64)>> {
        self.expected_interval(log, further, query, fits, call)
    }

    fn window(&self) -> Option<f64> {
        // Before the first choice, a window that is chosen from delays is infinite.
        self.objective
            .training
            .window()
            .filter(|window| window.is_finite())
    }

    fn durations(&mut self, log: View, query: Query, call: &mut Call) -> Result<Option<Durations>> {
        let log = log.log.objective();
        let log = log.log.objective();
        let (kept, training) = (&mut self.duration_fit, &self.objective.training);
        durations(kept, &self.columns, training, log, query, call)
    }
}
