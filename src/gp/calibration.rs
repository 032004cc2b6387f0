//! Leave-one-out predictions in fits to data with little noise. The signal variance is raised if the predictions are
//! overconfident ([`widened`]), and a model replaces another only if it predicts better ([`may_replace`]).

use crate::error::{Result, Stop, unless_numerical};
use crate::gp::GaussianProcess;
use crate::gp::evidence::Data;
use crate::gp::fit_settings::FitSettings;
use crate::gp::hyperparameters::Hyperparameters;
use crate::gp::kernel::KernelFamily;
use crate::gp::levels::Part;
use crate::gp::spread::{NEAR, spread_rows};

/// The number of pseudo-rows. The factor of the signal variance is a mean over rows and pseudo-rows, and the squared
/// error of a pseudo-row equals its predicted variance. Pseudo-rows shrink the factor towards 1, most strongly if there
/// are few rows.
const AGREEING: f64 = 2.0;

/// The largest noise variance at which leave-one-out predictions are used, in units of the targets. With more noise,
/// the noise dominates the leave-one-out errors.
const LITTLE_NOISE: f64 = 1e-3;

/// Returns θ with a calibrated signal variance, which is raised for data with little noise to match the leave-one-out
/// errors.
///
/// With little noise, crowded rows dominate the evidence, and the fitted model is overconfident far from the crowd.
/// Therefore only one row of each crowd is kept, and each kept row is predicted from the other kept rows. The factor of
/// the signal variance is the mean ratio of the squared error to the predicted variance, times sqrt(rows / kept rows).
/// The factor is at least 1. The square root was chosen by experiment. Intervals with a nominal coverage of 95 %
/// contain f at 87 % of random points without the square root, and at 90 % with the square root. A constant factor of 2
/// in place of the square root has the same effect on the intervals, but raises log10 of the regret by 0.14 on
/// Hartmann6, where few rows are crowded.
pub fn widened(
    family: KernelFamily,
    mut theta: Hyperparameters,
    data: Data,
    settings: &FitSettings,
    stop: &mut Stop,
) -> Result<Hyperparameters> {
    if settings.signal_variance.is_some() || theta.noise_variance > LITTLE_NOISE {
        return Ok(theta);
    }
    let n_rows = data.y.len() as f64;
    let Some(errors) = errors_left_out(data, family, &theta, settings, stop)? else {
        return Ok(theta);
    };
    let n = errors.len() as f64;
    let squares: f64 = errors.iter().map(|left| left.square()).sum();
    let mean_square = (AGREEING + squares) / (AGREEING + n);
    let factor = mean_square * (n_rows / n).sqrt();
    if factor > 1.0 && factor.is_finite() {
        theta.signal_variance *= factor;
    }
    Ok(theta)
}

/// The prediction of a row that was left out.
struct LeftOut {
    row: usize,
    /// y − mu
    error: f64,
    variance: f64,
}

impl LeftOut {
    /// The squared error in units of the predicted variance.
    fn square(&self) -> f64 {
        self.error * self.error / self.variance
    }
}

/// Keeps one row of each crowd, and predicts each kept row from the other kept rows. Returns `None` for numerical
/// reasons.
fn errors_left_out(
    data: Data,
    family: KernelFamily,
    theta: &Hyperparameters,
    settings: &FitSettings,
    stop: &mut Stop,
) -> Result<Option<Vec<LeftOut>>> {
    let rows: Vec<_> = (0..data.y.len()).collect();
    let rows = spread_rows(data.x, &rows, settings.dimensions, NEAR);
    let part = Part::of(data, &rows);
    let data = part.data();
    let mut gp = GaussianProcess::new(family, theta)?.with_categories(&settings.categories);
    let noise: Vec<_> = (0..data.y.len()).map(|i| data.row_noise(i)).collect();
    let mut moments = || {
        gp.append_noisy_rows(data.x, &noise)?;
        let mean = match data.about_mean {
            true => gp.set_targets_about_mean(data.y)?,
            false => {
                gp.set_targets(data.y)?;
                0.0
            }
        };
        let (means, variances) = gp.leave_one_out(stop)?;
        Ok((mean, means, variances))
    };
    let Some((mean, means, variances)) = unless_numerical(moments())? else {
        return Ok(None);
    };
    let left_out = rows.iter().enumerate().map(|(i, &row)| LeftOut {
        row,
        error: data.y[i] - mean - means[i],
        variance: variances[i],
    });
    Ok(Some(left_out.collect()))
}

/// A fitted model of values that may have been transformed by a function t(y).
pub(super) struct Fitted<'d, 'a> {
    data: Data<'d>,
    log_slope: &'a [f64],
    settings: &'a FitSettings,
    theta: Hyperparameters,
}

impl<'d, 'a> Fitted<'d, 'a> {
    /// The model with parameters p. `log_slope` contains log dt/dy of each row. An empty slice stands for zeros in all
    /// rows.
    pub(super) fn new(
        data: Data<'d>,
        log_slope: &'a [f64],
        settings: &'a FitSettings,
        p: &[f64],
    ) -> Self {
        Self {
            data,
            log_slope,
            settings,
            theta: settings.decode(p),
        }
    }

    /// The sum of the log densities of left-out values y, up to a constant. Each row that [`errors_left_out`] keeps is
    /// predicted from the other kept rows. The densities include log dt/dy, so models of different transforms can be
    /// compared. The result is −∞ if the predictions cannot be computed for numerical reasons.
    fn log_density(&self, stop: &mut Stop) -> Result<f64> {
        let (settings, theta) = (self.settings, &self.theta);
        let found = errors_left_out(self.data, settings.family, theta, settings, stop)?;
        let of_row = |left: &LeftOut| {
            let slope = self.log_slope.get(left.row).copied().unwrap_or(0.0);
            slope - 0.5 * (left.square() + left.variance.ln())
        };
        Ok(found.map_or(f64::NEG_INFINITY, |rows| rows.iter().map(of_row).sum()))
    }
}

/// Whether a model with a larger evidence may replace another model of the same values. If the new model has little
/// noise, crowded rows dominate the evidence, so the new model must also predict left-out values better.
pub(super) fn may_replace(new: &Fitted, old: &Fitted, stop: &mut Stop) -> Result<bool> {
    Ok(
        new.theta.noise_variance > LITTLE_NOISE
            || new.log_density(stop)? > old.log_density(stop)?,
    )
}
