//! Property tests of the core through its public interface, with arbitrary input.
//!
//! * [`domains`]: generates random spaces and lists of candidates
//! * [`histories`]: generates random optimizers of every kind, and random histories
//! * [`settings`]: generates the settings of these optimizers
//! * [`hostile`]: tests that calls never panic or return NaN, and that every suggestion is in the domain
//! * [`interrupted`]: tests that an interruption at any moment does not change the optimizer
//! * [`saved`]: tests that saved optimizers are restored bit for bit, and that damaged bytes are refused

mod domains;
mod histories;
mod hostile;
mod interrupted;
mod saved;
mod settings;

use proptest::prelude::{Strategy, prop_oneof};
use proptest::sample::select;
use proptest::test_runner::Config;

/// Returns the configuration of a property test with `cases` cases, unless PROPTEST_CASES is set.
fn cases(cases: u32) -> Config {
    let asked = std::env::var_os("PROPTEST_CASES").is_some();
    let config = Config {
        // Shrinking is limited, because one case may take long.
        max_shrink_iters: 500,
        // Failing cases are written as named tests instead of files.
        failure_persistence: None,
        ..Config::default()
    };
    if asked {
        config
    } else {
        Config { cases, ..config }
    }
}

/// Generates numbers of ordinary size, and numbers near the limits of a double.
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
