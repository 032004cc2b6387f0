//! The contexts whose rows do not predict the values in the present context.

use std::collections::BTreeMap;

use ndarray::Axis;

use crate::error::Result;
use crate::gp::GaussianProcess;
use crate::gp::levels::chosen;
use crate::ledger::View;
use crate::numerics::simd::dot;
use crate::strategy::bayes::columns::Columns;
use crate::strategy::bayes::model::training_set::TrainingSet;

/// Errors of predictions are small if they are at most this number, in units of the targets, whose standard deviation is
/// about 1, or if they are at most two predicted standard deviations. Large errors at the best points of other contexts
/// are small in these units.
const MAX_ERROR: f64 = 0.1;

/// The least correlation of values with predictions that have larger errors, for example because the contexts have
/// different scales.
const LEAST_CORRELATION: f64 = 0.7;

/// The largest number of rows of a context from which the values of another context are predicted.
const MAX_ROWS: usize = 200;

/// The categorical contexts, as in [`Columns::choices`], whose rows do not predict the values in this context. The result
/// is empty if there is no value in this context.
///
/// The values are predicted as if they belonged to the other context, because the correlation of the contexts is fitted
/// to few rows, and was large if all earlier contexts were alike.
pub fn unlike_contexts(
    training: &TrainingSet,
    columns: &Columns,
    log: View,
    context: &[f64],
) -> Vec<Vec<u64>> {
    let Some(fit) = training.fit() else {
        return Vec::new();
    };
    let numbers = &training.fold.rows;
    let is_here = |i: &usize| log.context(numbers[*i]) == context;
    let here: Vec<usize> = (0..numbers.len()).filter(is_here).collect();
    if here.is_empty() || columns.contexts.is_empty() {
        return Vec::new();
    }
    let mut others = BTreeMap::<Vec<u64>, Vec<usize>>::new();
    for (i, &number) in numbers.iter().enumerate() {
        let choices = columns.choices(log.context(number));
        others.entry(choices).or_default().push(i);
    }
    others.remove(&columns.choices(context));
    let x = training.encode(log, numbers);
    let targets = training.targets(log);
    let noise = training.row_noise(log, targets.units);
    let values = |rows: &[usize]| -> Vec<f64> { rows.iter().map(|&i| targets.values[i]).collect() };
    let variances = here
        .iter()
        .map(|&i| noise[i].variance(fit.theta.noise_variance));
    let noise_variance = variances.sum::<f64>() / here.len() as f64;
    let predicts = |rows: &[usize]| -> Result<bool> {
        let rows: Vec<usize> = chosen(rows.len(), rows.len().min(MAX_ROWS))
            .into_iter()
            .map(|i| rows[i])
            .collect();
        let mut moved = x.select(Axis(0), &here);
        for column in columns.contexts.iter().cloned().flatten() {
            moved.column_mut(column).fill(x[[rows[0], column]]);
        }
        let noise: Vec<_> = rows.iter().map(|&i| noise[i]).collect();
        let gp = GaussianProcess::new(fit.family, &fit.theta)?;
        let mut gp = gp.with_categories(&columns.categories);
        gp.append_noisy_rows(x.select(Axis(0), &rows).view(), &noise)?;
        gp.set_targets(&values(&rows))?;
        let (means, variances) = gp.predict(moved.view());
        let variance = noise_variance + variances.iter().sum::<f64>() / here.len() as f64;
        Ok(are_predicted(&values(&here), &means, variance))
    };
    let mut unlike = Vec::new();
    for (choices, rows) in others {
        // If the model fails for numerical reasons, the contexts count as alike.
        if !predicts(&rows).unwrap_or(true) {
            unlike.push(choices);
        }
    }
    unlike
}

/// Whether the errors of the predictions of the values y are small. If there are several predictions, the mean error is
/// subtracted. If there are three or more, the errors may be large if the predictions are correlated with the values,
/// and the predictions must not be smaller where the values are larger. `variance` is the mean predicted variance of a
/// value.
fn are_predicted(y: &[f64], means: &[f64], variance: f64) -> bool {
    let n = y.len() as f64;
    let largest = MAX_ERROR * MAX_ERROR + 4.0 * variance;
    if let (&[y], &[mean]) = (y, means) {
        return (y - mean).powi(2) <= largest;
    }
    let centred = |numbers: &[f64]| -> Vec<f64> {
        let mean = numbers.iter().sum::<f64>() / n;
        numbers.iter().map(|number| number - mean).collect()
    };
    let (y, means) = (centred(y), centred(means));
    let errors: Vec<f64> = y.iter().zip(&means).map(|(y, mean)| y - mean).collect();
    let is_small = dot(&errors, &errors) / (n - 1.0) <= largest;
    if y.len() == 2 {
        return is_small;
    }
    let covariance = dot(&y, &means);
    let correlation = covariance / (dot(&y, &y) * dot(&means, &means)).sqrt();
    correlation >= LEAST_CORRELATION || (is_small && covariance >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predictions_with_small_errors_or_a_high_correlation_are_good() {
        for (y, means, expected) in [
            (vec![1.0], vec![0.95], true),
            (vec![1.0], vec![0.8], false),
            // All values are larger by the same number.
            (vec![5.0, 7.0], vec![0.0, 2.05], true),
            (vec![5.0, 7.0], vec![2.0, 0.0], false),
            // All differences are larger by the same factor.
            (vec![0.0, 30.0, 50.0], vec![0.0, 2.0, 5.0], true),
            (vec![0.0, 0.02, 0.01], vec![0.01, -0.01, 0.0], false),
            (vec![0.0, 3.0, 1.0], vec![1.0, 0.0, 3.0], false),
        ] {
            assert_eq!(are_predicted(&y, &means, 0.0), expected, "{y:?} {means:?}");
        }
        assert!(are_predicted(&[1.9], &[0.0], 1.0) && !are_predicted(&[2.1], &[0.0], 1.0));
        // Without a correlation, the errors decide.
        assert!(are_predicted(&[2.0; 3], &[1.0; 3], 0.0));
        assert!(!are_predicted(&[0.0, 1.0, 4.0], &[1.0; 3], 0.0));
    }
}
