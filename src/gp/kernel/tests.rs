//! Tests that compare kernels with textbook formulas, finite differences and spectral densities.

use super::*;
use ndarray::{Array2, arr2};
use proptest::prelude::{prop_assert, prop_assert_eq, prop_assume, proptest};
use rand::SeedableRng;

impl KernelFamily {
    /// All families.
    pub(crate) const ALL: [KernelFamily; 5] = [
        KernelFamily::SquaredExponential,
        KernelFamily::Matern52,
        KernelFamily::Matern32,
        KernelFamily::Matern12,
        KernelFamily::Linear,
    ];
}

fn kernel(family: KernelFamily) -> Kernel {
    Kernel {
        family,
        lengthscale: vec![0.3, 1.7],
        signal_variance: 2.5,
        input_warp: InputWarp::default(),
        categories: Vec::new(),
        descriptor_lengthscale: Vec::new(),
    }
}

#[test]
fn huge_points_have_distance_zero_from_themselves_and_a_large_distance_from_others() {
    for family in KernelFamily::ALL {
        if family == KernelFamily::Linear {
            continue;
        }
        let kernel = Kernel {
            family,
            lengthscale: vec![0.3, 1e-300],
            signal_variance: 2.5,
            input_warp: InputWarp::default(),
            categories: Vec::new(),
            descriptor_lengthscale: Vec::new(),
        };
        let x = arr2(&[[f64::MAX, 1e300], [0.5, f64::MIN], [1e300, 0.5]]);
        let points = kernel.scale(x.view());
        for i in 0..3 {
            let (mut k, mut g) = (vec![0.0; 3], vec![0.0; 3]);
            kernel.row_with_slope(&x.row(i).to_vec(), &points, &mut k, &mut g);
            for j in 0..3 {
                assert_eq!(k[j], if i == j { 2.5 } else { 0.0 });
                assert!(i == j || g[j] == 0.0);
            }
        }
    }
}

/// The textbook formula, with `exp` from the standard library.
fn direct(kernel: &Kernel, a: &[f64], b: &[f64]) -> f64 {
    let r2: f64 = (0..a.len())
        .map(|d| ((a[d] - b[d]) / kernel.lengthscale[d]).powi(2))
        .sum();
    match kernel.family {
        KernelFamily::SquaredExponential => kernel.signal_variance * (-0.5 * r2).exp(),
        KernelFamily::Matern52 => {
            let a = (5.0 * r2).sqrt();
            kernel.signal_variance * (1.0 + a + 5.0 / 3.0 * r2) * (-a).exp()
        }
        KernelFamily::Matern32 => {
            let a = (3.0 * r2).sqrt();
            kernel.signal_variance * (1.0 + a) * (-a).exp()
        }
        KernelFamily::Matern12 => kernel.signal_variance * (-r2.sqrt()).exp(),
        KernelFamily::Linear => {
            let l = &kernel.lengthscale;
            let products = (0..a.len()).map(|d| a[d] * b[d] / (l[d] * l[d]));
            kernel.signal_variance * (1.0 + products.sum::<f64>())
        }
    }
}

proptest! {
    #[test]
    fn blocks_follow_the_formula(seed in 0u64..1000, n in 1usize..20) {
        let x = Array2::from_shape_fn((n, 2), |(i, d)| ((seed as f64 + i as f64) * (1.3 + d as f64)).sin());
        for family in KernelFamily::ALL {
            let kernel = kernel(family);
            let gram = kernel.gram(x.view());
            for i in 0..n {
                for j in 0..n {
                    let expected = direct(&kernel, x.row(i).as_slice().unwrap(), x.row(j).as_slice().unwrap());
                    prop_assert!((gram[[i, j]] - expected).abs() <= 1e-13 * kernel.signal_variance);
                    prop_assert_eq!(gram[[i, j]], gram[[j, i]]);
                }
            }
        }
    }

    #[test]
    fn gradients_equal_finite_differences(a in -1.0f64..1.0, b in -1.0f64..1.0) {
        for family in KernelFamily::ALL {
            let kernel = kernel(family);
            let x = arr2(&[[0.1, -0.4], [0.5, 0.9], [a, b]]);
            let points = kernel.scale(x.view());
            // The last row equals z, where only Matérn 1/2 is not differentiable.
            let w = [0.7, -1.1, if family == KernelFamily::Matern12 { 0.0 } else { 0.4 }];
            let z = [a, b];
            let (mut k, mut g, mut gradient) = ([0.0; 3], [0.0; 3], [0.0; 2]);
            kernel.row_with_slope(&z, &points, &mut k, &mut g);
            kernel.contract_gradient(&z, &points, &g, &w, &mut gradient);
            for d in 0..2 {
                let value = |step: f64| {
                    let mut z = z;
                    z[d] += step;
                    (0..3).map(|j| w[j] * direct(&kernel, &z, x.row(j).as_slice().unwrap())).sum::<f64>()
                };
                // The finite differences are of fourth order, because Matérn 1/2 has large third derivatives near
                // r = 0.
                let h = 1e-5;
                let wide = value(2.0 * h) - value(-2.0 * h);
                let difference = (8.0 * (value(h) - value(-h)) - wide) / (12.0 * h);
                let near = (a - 0.1).hypot(b + 0.4).min((a - 0.5).hypot(b - 0.9));
                prop_assume!(near > 0.05 || family != KernelFamily::Matern12);
                prop_assert!((gradient[d] - difference).abs() < 1e-6);
            }
        }
    }
}

proptest! {
    #[test]
    fn a_warped_kernel_equals_the_plain_kernel_at_warped_points(a in 0.02..0.98f64, b in 0.02..0.98f64, exponent in 0.25..4.0f64) {
        let x = arr2(&[[0.1, 0.9], [0.6, 0.3], [a, 0.5]]);
        let z = [b, 0.7];
        for family in KernelFamily::ALL {
            if family == KernelFamily::Linear {
                continue;
            }
            let input_warp = InputWarp::new(vec![Kumaraswamy(1.0, exponent), Kumaraswamy::IDENTITY]);
            let warp = |u: f64| 1.0 - (1.0 - u).powf(exponent);
            let warped = Kernel { input_warp, ..kernel(family) };
            let weights = [0.7, -1.1, 0.4];
            let plain = |z: [f64; 2]| -> Vec<f64> {
                let z = [warp(z[0]), z[1]];
                x.rows().into_iter().map(|x| direct(&warped, &z, &[warp(x[0]), x[1]])).collect()
            };
            let points = warped.scale(x.view());
            let (mut k, mut g, mut gradient) = ([0.0; 3], [0.0; 3], [0.0; 2]);
            warped.row_with_slope(&z, &points, &mut k, &mut g);
            prop_assert!(k.iter().zip(plain(z)).all(|(k, direct)| (k - direct).abs() < 1e-12));
            warped.contract_gradient(&z, &points, &g, &weights, &mut gradient);
            // Matérn 1/2 is not differentiable at the last point.
            prop_assume!((a - b).abs() > 0.01 || family != KernelFamily::Matern12);
            for d in 0..2 {
                let value = |step: f64| -> f64 {
                    let mut z = z;
                    z[d] += step;
                    plain(z).iter().zip(weights).map(|(k, w)| k * w).sum()
                };
                let difference = (value(1e-6) - value(-1e-6)) / 2e-6;
                prop_assert!((gradient[d] - difference).abs() < 1e-6 * gradient[d].abs().max(1.0));
            }
        }
    }
}

#[test]
fn appended_points_equal_points_scaled_at_once() {
    let kernel = kernel(KernelFamily::Matern52);
    let x = Array2::from_shape_fn((50, 2), |(i, d)| (i * 2 + d) as f64);
    let mut grown = ScaledPoints::default();
    for row in x.rows() {
        grown.append(&kernel, row.insert_axis(ndarray::Axis(0)));
    }
    let whole = kernel.scale(x.view());
    assert!((0..2).all(|d| grown.column(d) == whole.column(d)));
}

/// Rows whose columns 1 to 3 and 5 to 6 are one-hot. In every fifth row, the one-hot columns are 0.
fn with_categories() -> (Vec<Category>, Array2<f64>) {
    let categories = vec![(1..4).into(), (5..7).into()];
    let x = Array2::from_shape_fn((30, 8), |(i, d)| match d {
        0 | 4 | 7 => (1.7 * i as f64 + 2.9 * d as f64).sin(),
        1..4 => f64::from(i % 5 != 0 && i % 3 == d - 1),
        _ => f64::from(i % 5 != 0 && i % 2 == d - 5),
    });
    (categories, x)
}

#[test]
fn categories_change_the_stored_columns_but_not_the_kernel() {
    let (categories, x) = with_categories();
    for family in KernelFamily::ALL {
        let plain = Kernel {
            family,
            lengthscale: vec![0.3, 1.7, 1.7, 1.7, 0.9, 0.6, 0.6, 2.0],
            signal_variance: 2.5,
            input_warp: InputWarp::default(),
            categories: Vec::new(),
            descriptor_lengthscale: Vec::new(),
        };
        let kernel = plain.clone().with_categories(&categories);
        let (gram, expected) = (kernel.gram(x.view()), plain.gram(x.view()));
        assert!((&gram - &expected).iter().all(|e| e.abs() < 1e-14));
        assert_eq!(gram, gram.t());
        // Gradients with respect to points agree in the numeric columns. Gradients with respect to lengthscales agree
        // if the columns of a category share a lengthscale.
        let (points, plain_points) = (kernel.scale(x.view()), plain.scale(x.view()));
        for i in 0..x.nrows() {
            let z = x.row(i).to_vec();
            let w: Vec<f64> = (0..30).map(|j| (0.7 * j as f64).cos()).collect();
            let gradient = |kernel: &Kernel, points| {
                let (mut k, mut g, mut out) = (vec![0.0; 30], vec![0.0; 30], vec![0.0; 8]);
                kernel.row_with_slope(&z, points, &mut k, &mut g);
                kernel.contract_gradient(&z, points, &g, &w, &mut out);
                let mut sums = vec![0.0; 8];
                kernel.add_lengthscale_sums(&z, points, i, &w[i..], &mut sums);
                (out, sums)
            };
            let (by_z, by_l) = gradient(&kernel, &points);
            let (plain_by_z, plain_by_l) = gradient(&plain, &plain_points);
            for d in [0, 4, 7] {
                assert!((by_z[d] - plain_by_z[d]).abs() < 1e-12);
                assert!((by_l[d] - plain_by_l[d]).abs() < 1e-12);
            }
            for category in &categories {
                let sum = |by: &[f64]| by[category.columns.clone()].iter().sum::<f64>();
                assert!((sum(&by_l) - sum(&plain_by_l)).abs() < 1e-12);
            }
        }
    }
}

/// A kernel on two numbers around a category of three choices with descriptors, and a category of two choices without.
fn with_descriptors(
    family: KernelFamily,
    own: f64,
    of_descriptors: f64,
) -> (Kernel, [[f64; 2]; 3]) {
    let z = [[0.3, -1.1], [0.9, 0.4], [-1.2, 0.7]];
    let mut described = Category::from(1..4);
    let vectors = z.iter().map(|z| z.to_vec()).collect();
    described.descriptors = Some(Descriptors::new(vectors).into());
    let kernel = Kernel {
        lengthscale: vec![0.8, own, own, own, 1.3, 0.6, 0.6, 2.0],
        descriptor_lengthscale: vec![of_descriptors],
        ..kernel(family)
    };
    (kernel.with_categories(&[described, (5..7).into()]), z)
}

/// The rows of `with_categories` with the vectors of their choices in two further columns. A row without a choice has
/// the vector 0.
fn embedded(x: &Array2<f64>, z: [[f64; 2]; 3]) -> Array2<f64> {
    let vector = |i: usize, k: usize| (0..3).map(|c| x[[i, 1 + c]] * z[c][k]).sum();
    Array2::from_shape_fn((x.nrows(), 10), |(i, d)| match d {
        8.. => vector(i, d - 8),
        _ => x[[i, d]],
    })
}

#[test]
fn descriptors_are_further_columns_of_the_textbook_formula() {
    let (_, x) = with_categories();
    for family in KernelFamily::ALL {
        if family == KernelFamily::Linear {
            continue;
        }
        for (own, of_descriptors) in [(1.7, 0.9), (1e150, 0.9), (1.7, 1e150)] {
            let (kernel, z) = with_descriptors(family, own, of_descriptors);
            let plain = Kernel {
                lengthscale: [&kernel.lengthscale[..], &[of_descriptors; 2]].concat(),
                categories: Vec::new(),
                descriptor_lengthscale: Vec::new(),
                ..kernel.clone()
            };
            let y = embedded(&x, z);
            let gram = kernel.gram(x.view());
            assert_eq!(gram, gram.t());
            for (i, j) in (0..30).flat_map(|i| (0..30).map(move |j| (i, j))) {
                let expected = direct(&plain, &y.row(i).to_vec(), &y.row(j).to_vec());
                assert!((gram[[i, j]] - expected).abs() < 1e-13);
            }
            let r2: f64 = (8..10)
                .map(|d| ((y[[1, d]] - y[[0, d]]) / of_descriptors).powi(2))
                .sum();
            assert!((kernel.descriptor_distance(x.row(1), x.row(0)) - r2).abs() < 1e-13);
            let rows = (kernel.scale(x.view()), plain.scale(y.view()));
            for i in 0..30 {
                let w: Vec<f64> = (i..30).map(|j| (0.7 * j as f64).cos()).collect();
                let (mut sums, mut expected) = ([0.0; 9], [0.0; 10]);
                kernel.add_lengthscale_sums(&x.row(i).to_vec(), &rows.0, i, &w, &mut sums);
                plain.add_lengthscale_sums(&y.row(i).to_vec(), &rows.1, i, &w, &mut expected);
                let own: f64 = expected[1..4].iter().sum();
                assert!((sums[1] - own).abs() < 1e-12);
                assert!((sums[8] - expected[8] - expected[9]).abs() < 1e-12);
                assert!((sums[0] - expected[0]).abs() < 1e-12 && sums[2..4] == [0.0; 2]);
            }
        }
        // With an infinite lengthscale, descriptors change nothing.
        let (kernel, _) = with_descriptors(family, 1.7, f64::INFINITY);
        let plain = Kernel {
            descriptor_lengthscale: Vec::new(),
            ..kernel.clone()
        };
        assert_eq!(kernel.gram(x.view()), plain.gram(x.view()));
    }
}

#[test]
fn appended_points_with_descriptors_equal_points_scaled_at_once() {
    let (_, x) = with_categories();
    let (kernel, _) = with_descriptors(KernelFamily::Matern52, 1.7, 0.9);
    let mut grown = ScaledPoints::default();
    for row in x.rows() {
        grown.append(&kernel, row.insert_axis(ndarray::Axis(0)));
    }
    let whole = kernel.scale(x.view());
    assert!((0..11).all(|d| grown.column(d) == whole.column(d)));
}

#[test]
fn spectral_draws_with_descriptors_average_to_the_kernel() {
    let mut rng = Rng::seed_from_u64(9);
    let (_, x) = with_categories();
    let (kernel, _) = with_descriptors(KernelFamily::Matern32, 1.7, 0.9);
    let gram = kernel.gram(x.view());
    let n = 20_000;
    // Rows 0, 5 and 10 do not have choices.
    for (i, j) in [(1, 2), (1, 0), (2, 3), (4, 10)] {
        let offset = &x.row(i) - &x.row(j);
        let cosine = |omega: Vec<f64>| {
            offset
                .iter()
                .zip(omega)
                .map(|(x, o)| x * o)
                .sum::<f64>()
                .cos()
        };
        let sum: f64 = (0..n)
            .map(|_| cosine(kernel.spectral_draw(&mut rng).unwrap()))
            .sum();
        let expected = gram[[i, j]] / kernel.signal_variance;
        assert!((sum / n as f64 - expected).abs() < 5.0 / (n as f64).sqrt());
    }
}

#[test]
fn columns_that_are_not_one_hot_count_as_the_nearest_choice() {
    let kernel = kernel(KernelFamily::SquaredExponential);
    let kernel = Kernel {
        lengthscale: vec![0.3; 3],
        ..kernel
    }
    .with_categories(&[Category::from(0..3)]);
    let x = arr2(&[
        [0.0, 1.0, 0.0],
        [0.0, 1.0f64.next_up(), 0.0],
        [0.1, 1e300, -1e300],
        [0.0, 0.0, 0.0],
        [0.4, -1e300, f64::MIN_POSITIVE],
    ]);
    let gram = kernel.gram(x.view());
    for (i, j) in (0..5).flat_map(|i| (0..5).map(move |j| (i, j))) {
        assert_eq!(
            gram[[i, j]],
            gram[[if i < 3 { 0 } else { 3 }, if j < 3 { 0 } else { 3 }]]
        );
    }
    assert!(gram[[0, 3]] < gram[[0, 0]]);
}

#[test]
fn spectral_draws_average_to_the_kernel() {
    let mut rng = Rng::seed_from_u64(7);
    for family in KernelFamily::ALL {
        let kernel = kernel(family);
        if family == KernelFamily::Linear {
            assert!(kernel.spectral_draw(&mut rng).is_none());
            continue;
        }
        let offset = [0.2, 0.8];
        let n = 40_000;
        let mean: f64 = (0..n)
            .map(|_| {
                let omega = kernel.spectral_draw(&mut rng).unwrap();
                (omega[0] * offset[0] + omega[1] * offset[1]).cos()
            })
            .sum::<f64>()
            / n as f64;
        let expected = direct(&kernel, &offset, &[0.0, 0.0]) / kernel.signal_variance;
        // The tolerance is 5 standard errors of a mean of cosines.
        assert!(
            (mean - expected).abs() < 5.0 / (n as f64).sqrt(),
            "{mean} {expected}"
        );
    }
}

#[test]
fn a_family_has_one_name_in_settings_logs_and_messages() {
    for family in KernelFamily::ALL {
        let json = serde_json::to_string(&family).unwrap();
        assert_eq!(json, format!("{:?}", family.name()));
        assert_eq!(serde_json::from_str::<KernelFamily>(&json).unwrap(), family);
        assert_eq!(KernelFamily::from_name(&family.name()), Some(family));
        assert!(KernelFamily::NAMES.contains(&json));
    }
    assert_eq!(KernelFamily::from_name("matern"), None);
}
