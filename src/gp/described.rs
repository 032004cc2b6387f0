//! The choice of a fit between categories with descriptors and plain categories.
//!
//! Notation: p = (log ℓ…, log ℓ₁…, log σ_f², log λ), where ℓ₁ is the lengthscale of the descriptors of a category, and
//! ℓ₀ the lengthscale of its columns. The p of the plain model does not have the entries of ℓ₁.

use std::ops::ControlFlow;

use super::calibration::{Fitted, may_replace};
use super::evidence::MIN_LOG_BAYES_FACTOR;
use super::fit_settings::FitSettings;
use super::hyperparameters::Hyperparameters;
use super::kernel::{Category, n_described};
use super::search::{Problem, best};
use crate::error::{Result, Stop, check};

/// The logarithm of the factor by which a lengthscale is too long to matter.
const FAR: f64 = 2.3;

impl FitSettings {
    /// The categories with descriptors.
    fn described(&self) -> impl Iterator<Item = &Category> {
        let categories = self.categories.iter();
        categories.filter(|category| category.descriptors.is_some())
    }

    /// The settings of a model that uses descriptors, or `None` if there are no descriptors, or if the lengthscales are
    /// given. If all columns share a lengthscale, all descriptors share ℓ₁. The vectors of descriptors are scaled such
    /// that ℓ₁ has the same prior as ℓ₀.
    pub(super) fn with_descriptors(&self) -> Option<Self> {
        let n = n_described(&self.categories);
        if n == 0 || self.lengthscale.is_some() || !self.family.is_stationary() {
            return None;
        }
        let groups = self.described().map(|c| self.groups[c.columns.start]);
        let mut spreads: Vec<f64> = groups.map(|k| self.spreads[k]).collect();
        let descriptor_groups = match self.n_lengthscales() {
            1 => vec![0; n],
            _ => (0..n).collect(),
        };
        spreads.truncate(descriptor_groups[n - 1] + 1);
        Some(Self {
            descriptor_groups,
            spreads: [&self.spreads[..], &spreads].concat(),
            ..self.clone()
        })
    }

    /// Adds the entries of ℓ₁ to the p of the plain model. For each category with descriptors, log ℓ₀ is raised by
    /// `own`, and log ℓ₁ is the plain log ℓ₀ plus `of_descriptors`.
    pub(super) fn with_entries(&self, plain: &[f64], own: f64, of_descriptors: f64) -> Vec<f64> {
        let n = plain.len() - 2;
        let mut p = plain[..n].to_vec();
        p.resize(self.n_lengthscales(), 0.0);
        for (category, group) in self.described().zip(&self.descriptor_groups) {
            let k = self.groups[category.columns.start];
            p[k] = plain[k] + own;
            p[n + group] = plain[k] + of_descriptors;
        }
        p.extend(&plain[n..]);
        p
    }
}

/// Fits a model that uses descriptors, and returns its settings and its p. Returns `None` if there is strong evidence
/// for the plain model, whose search has ended at `plain`. Without strong evidence, descriptors are used, because the
/// user has chosen them, and because a long ℓ₁ makes them harmless. The searches start from equal shares of both terms,
/// from descriptors alone, and from the `known` θ.
pub(super) fn with_descriptors(
    problem: &Problem,
    plain: &[f64],
    known: &[Hyperparameters],
    stop: &mut Stop,
) -> Result<Option<(FitSettings, Vec<f64>)>> {
    let Some(settings) = problem.settings.with_descriptors() else {
        return Ok(None);
    };
    let equal = 0.5 * 2f64.ln();
    let mut starts = vec![
        settings.with_entries(plain, equal, equal),
        settings.with_entries(plain, FAR, 0.0),
    ];
    let described = known
        .iter()
        .filter(|theta| !theta.descriptor_lengthscale.is_empty());
    starts.extend(described.map(|theta| settings.encode(theta)));
    let mut bounds = settings.bounds(&starts[0]);
    // λ keeps its bound.
    let last = starts[0].len() - 1;
    bounds.1[last] = problem.bounds.1[plain.len() - 1];
    let with = Problem {
        settings: &settings,
        bounds: &bounds,
        ..*problem
    };
    let least = problem.value(plain, &mut || stop() == ControlFlow::Break(()));
    check(stop)?;
    let end = best(with.search_all(&starts, stop)?);
    let Some((p, _)) = end.filter(|(_, value)| *value < least + MIN_LOG_BAYES_FACTOR) else {
        return Ok(None);
    };
    let new = Fitted::new(problem.data, &[], &settings, &p);
    let old = Fitted::new(problem.data, &[], problem.settings, plain);
    Ok(may_replace(&new, &old, stop)?.then_some((settings, p)))
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::gp::GaussianProcess;
    use crate::gp::evidence::{Data, Evidence};
    use crate::gp::fit::{Found, Variant, fit_again, fit_best};
    use crate::gp::kernel::{Descriptors, KernelFamily};
    use crate::random::{Call, Rng};

    const FAMILY: KernelFamily = KernelFamily::Matern32;

    /// The settings of a fit to rows of a number and two categories with n choices, whose vectors are the entries of z.
    fn settings(n: usize, z: impl Fn(usize) -> f64) -> FitSettings {
        let category = |start: usize| Category {
            columns: start..start + n,
            descriptors: Some(Descriptors::new((0..n).map(|c| vec![z(c)]).collect()).into()),
        };
        let groups = [vec![0], vec![1; n], vec![2; n]].concat();
        FitSettings {
            categories: vec![category(1), category(1 + n)],
            spreads: vec![1.0, 3.2, 3.2],
            ..FitSettings::new(FAMILY, groups, 4)
        }
    }

    /// Random rows, and the choices in their categories.
    fn rows(n_rows: usize, n: usize, rng: &mut Rng) -> (Array2<f64>, Vec<[usize; 2]>) {
        let mut x = Array2::zeros((n_rows, 1 + 2 * n));
        let mut choices = Vec::new();
        for mut row in x.rows_mut() {
            let own = [rng.random_range(0..n), rng.random_range(0..n)];
            row[0] = rng.random();
            row[1 + own[0]] = 1.0;
            row[1 + n + own[1]] = 1.0;
            choices.push(own);
        }
        (x, choices)
    }

    fn data<'a>(x: &'a Array2<f64>, y: &'a [f64]) -> Data<'a> {
        Data {
            x: x.view(),
            y,
            noise: &[],
            about_mean: false,
        }
    }

    fn fitted(data: Data, settings: &FitSettings, known: &[Hyperparameters]) -> Found {
        let variant = Variant {
            data,
            log_slope: &[],
        };
        let mut go_on = || ControlFlow::Continue(());
        let mut rng = Rng::seed_from_u64(5);
        let call = &mut Call::new(&mut rng, &mut go_on);
        fit_best(&[variant], known, settings, &[FAMILY], call).unwrap()
    }

    /// Values that follow the descriptors.
    fn smooth(choices: &[[usize; 2]], rng: &mut Rng) -> Vec<f64> {
        let value = |[a, b]: &[usize; 2]| (0.5 * *a as f64).sin() + (0.3 * *b as f64).cos();
        choices
            .iter()
            .map(|own| value(own) + 0.1 * rng.random::<f64>())
            .collect()
    }

    #[test]
    fn the_gradient_of_the_evidence_equals_finite_differences() {
        let mut rng = Rng::seed_from_u64(3);
        let (mut x, choices) = rows(25, 5, &mut rng);
        x.row_mut(3).fill(0.0);
        let y = smooth(&choices, &mut rng);
        let plain = settings(5, |c| (2.1 * c as f64).sin());
        let shared = FitSettings {
            groups: vec![0; 11],
            spreads: vec![2.0],
            ..plain.clone()
        };
        for (plain, n) in [(plain, 7), (shared, 4)] {
            let settings = plain.with_descriptors().unwrap();
            let mut p = settings.with_entries(&plain.encode(&plain.prior_mode()), 0.2, -0.3);
            assert_eq!((p.len(), settings.spreads.len()), (n, n - 2));
            p.iter_mut()
                .enumerate()
                .for_each(|(i, p)| *p += 0.1 * i as f64);
            assert!(
                p.iter()
                    .zip(settings.encode(&settings.decode(&p)))
                    .all(|(a, b)| (a - b).abs() < 1e-14)
            );
            let mut evidence = Evidence::new(data(&x, &y));
            let mut gradient = vec![0.0; n];
            settings.value_and_gradient(&mut evidence, &p, &mut gradient, &mut || false);
            for i in 0..n {
                let mut at = |h: f64| {
                    let mut p = p.clone();
                    p[i] += h;
                    settings.value(&mut evidence, &p, &mut || false)
                };
                let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
                assert!((gradient[i] - slope).abs() < 1e-5 * slope.abs().max(1.0));
            }
        }
    }

    #[test]
    fn descriptors_that_explain_the_values_are_used_and_predict_unseen_choices() {
        let mut rng = Rng::seed_from_u64(4);
        let n = 12;
        let settings = settings(n, |c| 0.2 * c as f64 - 1.1);
        let (x, choices) = rows(70, n, &mut rng);
        let seen: Vec<usize> = (0..70).filter(|&i| choices[i][0] != 6).collect();
        let y = smooth(&choices, &mut rng);
        let (x_seen, y_seen) = (
            x.select(ndarray::Axis(0), &seen),
            seen.iter().map(|&i| y[i]).collect::<Vec<_>>(),
        );
        let known = [settings.prior_mode()];
        let found = fitted(data(&x_seen, &y_seen), &settings, &known);
        assert_eq!(found.theta.descriptor_lengthscale.len(), 2);
        let error = |theta: &Hyperparameters| {
            let mut gp = GaussianProcess::new(FAMILY, theta)
                .unwrap()
                .with_categories(&settings.categories);
            gp.append_rows(x_seen.view()).unwrap();
            gp.set_targets(&y_seen).unwrap();
            let mean = gp.mean(x.view());
            let unseen = (0..70).filter(|i| !seen.contains(i));
            unseen.map(|i| (mean[i] - y[i]).powi(2)).sum::<f64>()
        };
        let plain = FitSettings {
            categories: vec![(1..13).into(), (13..25).into()],
            ..settings.clone()
        };
        let without = fitted(data(&x_seen, &y_seen), &plain, &known).theta;
        assert!(error(&found.theta) < 0.1 * error(&without));
        // A few more rows keep the model.
        let mut go_on = || ControlFlow::Continue(());
        let again = fit_again(data(&x, &y), &found.theta, &settings, &mut go_on).unwrap();
        assert_eq!(again.theta.descriptor_lengthscale.len(), 2);
    }

    /// Pairs of choices with almost equal descriptors have opposite values.
    #[test]
    fn a_fit_with_misleading_descriptors_equals_the_plain_fit_bit_for_bit() {
        let mut rng = Rng::seed_from_u64(6);
        let n = 8;
        let described = settings(n, |c| (c / 2) as f64);
        let plain = FitSettings {
            categories: vec![(1..9).into(), (9..17).into()],
            ..described.clone()
        };
        let (x, choices) = rows(60, n, &mut rng);
        let sign = |c: usize| if c.is_multiple_of(2) { 1.0 } else { -1.0 };
        let value = |[a, b]: &[usize; 2]| sign(*a) + 0.5 * sign(*b);
        let y: Vec<f64> = choices
            .iter()
            .map(|own| value(own) + 0.1 * rng.random::<f64>())
            .collect();
        let known = [plain.prior_mode()];
        let found = fitted(data(&x, &y), &described, &known);
        assert_eq!(found, fitted(data(&x, &y), &plain, &known));
    }

    #[test]
    fn given_lengthscales_and_the_linear_kernel_do_not_use_descriptors() {
        let settings = settings(4, |c| c as f64);
        let given = FitSettings {
            lengthscale: Some(vec![0.3; 9]),
            ..settings.clone()
        };
        let linear = FitSettings {
            family: KernelFamily::Linear,
            ..settings
        };
        assert!(given.with_descriptors().is_none() && linear.with_descriptors().is_none());
    }
}
