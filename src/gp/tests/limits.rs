//! Tests of the posterior for rows, targets and hyperparameters at the limits of a double.

use std::ops::{ControlFlow, Range};

use ndarray::{Array2, s};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, TestCaseError, prop_assert, prop_oneof, proptest};
use proptest::sample::select;
use proptest::test_runner::Config;
use rand::SeedableRng;

use crate::error::Error;
use crate::gp::fit::{FitSettings, fit};
use crate::gp::kernel::KernelFamily;
use crate::gp::{Conditioned, GaussianProcess, Hyperparameters, Target, Workspace};
use crate::random::{Call, Rng};

/// Returns a configuration with `cases` cases. The environment variable PROPTEST_CASES overrides this number.
fn cases(cases: u32) -> Config {
    let config = Config {
        // A single case may take a long time, so the number of shrinking steps is limited.
        max_shrink_iters: 500,
        failure_persistence: None,
        ..Config::default()
    };
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => config,
        None => Config { cases, ..config },
    }
}

/// Returns a configuration with `few` cases by default, for tests whose cases take a hundred times as long as the cases
/// of other tests.
fn heavy(few: u32) -> Config {
    let config = cases(few);
    Config {
        cases: few.max(config.cases / 100),
        ..config
    }
}

/// Random numbers of ordinary size, and numbers at the limits of a double.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => -1.0..1.0,
        2 => select(vec![
            0.0, -0.0, 1.0, 1.0_f64.next_up(), 1e300, 1e300_f64.next_down(), -1e300, 1e-300, -1e-300,
            f64::MIN_POSITIVE, 5e-324, f64::MAX, f64::MIN,
        ]),
        1 => -1e6..1e6,
    ]
}

#[derive(Debug, Clone)]
struct Data {
    family: KernelFamily,
    theta: Hyperparameters,
    rows: Array2<f64>,
    y: Vec<f64>,
    tail: usize,
}

/// Random coordinates that are repeated, differ by one ulp, or are far apart.
fn coordinate() -> impl Strategy<Value = f64> {
    prop_oneof![
        3 => 0.0..1.0,
        3 => select(vec![0.0, -0.0, 0.5, 0.5_f64.next_up(), 0.5_f64.next_down(), 1.0]),
        1 => number(),
    ]
}

fn size(usual: f64) -> impl Strategy<Value = f64> {
    prop_oneof![
        5 => (0.1..10.0).prop_map(move |factor| usual * factor),
        1 => select(vec![1e-300, 1e-8, 1e8, 1e300]),
    ]
}

fn data(n: Range<usize>) -> impl Strategy<Value = Data> {
    (1..4usize, n).prop_flat_map(|(d, n)| {
        let unit = select(vec![1e-300, 5e-324, 1e-6, 1.0, 1e6, 1e300, f64::MAX]);
        let y = prop_oneof![
            unit.prop_flat_map(move |unit| vec((-1.0..1.0f64).prop_map(move |y| y * unit), n)),
            number().prop_map(move |y| vec![y; n]),
            vec(number(), n),
        ];
        let family = prop_oneof![
            Just(KernelFamily::Matern52),
            Just(KernelFamily::SquaredExponential)
        ];
        let noise = prop_oneof![3 => size(1e-3), 1 => Just(0.0)];
        (
            family,
            vec(size(0.3), d),
            size(1.0),
            noise,
            vec(coordinate(), n * d),
            y,
            0..n,
        )
            .prop_map(
                move |(family, lengthscale, variance, noise, rows, y, tail)| Data {
                    family,
                    theta: Hyperparameters::new(lengthscale, variance, noise),
                    rows: Array2::from_shape_vec((n, d), rows).unwrap(),
                    y,
                    tail,
                },
            )
    })
}

/// Returns the posterior of the data, where the last `tail` rows are pending. Every second pending row is hallucinated.
/// For all other pending rows, the target is the value in the data.
fn posterior(data: &Data) -> Result<Conditioned<GaussianProcess>, Error> {
    let mut gp = GaussianProcess::new(data.family, &data.theta)?;
    let n = data.y.len() - data.tail;
    gp.append_rows(data.rows.slice(s![..n / 2, ..]))?;
    for i in n / 2..n {
        gp.append_rows(data.rows.slice(s![i..i + 1, ..]))?;
    }
    gp.set_targets(&data.y[..n])?;
    let targets: Vec<Target> = (n..data.y.len())
        .map(|i| match i % 2 {
            0 => Target::PosteriorMean,
            _ => Target::Value(data.y[i]),
        })
        .collect();
    Conditioned::on(gp, data.rows.slice(s![n.., ..]), &targets)
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn a_posterior_is_finite_or_refused(data in data(1..25), probe in vec(coordinate(), 3), seed: u64) {
        let gp = match posterior(&data) {
            Ok(gp) => gp,
            Err(error) if error.is_numerical() => return Ok(()),
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        let d = data.rows.ncols();
        let (mean, variance) = gp.predict(data.rows.view());
        prop_assert!(mean.iter().all(|m| m.is_finite()), "{mean:?}");
        let v = data.theta.signal_variance;
        let possible = |s: &f64| *s >= 0.0 && *s <= v;
        prop_assert!(variance.iter().all(possible), "{variance:?}");
        let (mean, variance) = gp.predict_at(&probe[..d], &mut Workspace::default());
        prop_assert!(mean.is_finite() && possible(&variance), "{mean} {variance}");
        prop_assert!(!gp.log_marginal_likelihood().is_nan());
        let mut rng = Rng::seed_from_u64(seed);
        match gp.sample(data.rows.view(), 2, &mut rng) {
            Ok(draws) => prop_assert!(draws.iter().all(|f| !f.is_nan()), "{draws:?}"),
            Err(error) => prop_assert!(error.is_numerical(), "{error}"),
        }
    }

    #[test]
    fn a_fit_ends_with_usable_hyperparameters(data in data(1..25), priors: bool, seed: u64) {
        check_fit(&data, priors, seed)?;
    }
}

proptest! {
    #![proptest_config(heavy(20))]

    /// A subset of the rows is fitted first, on several threads.
    #[test]
    fn a_fit_of_many_rows_ends_with_usable_hyperparameters(data in data(100..260), priors: bool, seed: u64) {
        check_fit(&data, priors, seed)?;
    }
}

fn check_fit(data: &Data, priors: bool, seed: u64) -> Result<(), TestCaseError> {
    let d = data.rows.ncols();
    // Each column has a separate lengthscale, or all columns share one lengthscale.
    let n_groups = if seed.is_multiple_of(2) { d } else { 1 };
    let groups = (0..d).map(|c| c.min(n_groups - 1)).collect();
    let settings = FitSettings {
        priors,
        dimensions: d,
        ..FitSettings::new(data.family, groups, 2)
    };
    let start = settings.prior_mode();
    let mut rng = Rng::seed_from_u64(seed);
    let theta = fit(
        data.rows.view(),
        &data.y,
        &start,
        &settings,
        &mut Call::new(&mut rng, &mut || ControlFlow::Continue(())),
    )
    .unwrap();
    let all = theta
        .lengthscale
        .iter()
        .chain([&theta.signal_variance, &theta.noise_variance]);
    prop_assert!(all.clone().all(|p| *p > 0.0 && p.is_finite()), "{theta:?}");
    prop_assert!(GaussianProcess::new(data.family, &theta).is_ok());
    Ok(())
}
