//! The core from outside: laws that hold between its parts, whatever it is given.
//!
//! * [`histories`]: optimizers of every kind, and histories of what may happen to them
//! * [`settings`]: settings of every kind for these optimizers
//! * [`hostile`]: nothing panics, nothing is NaN, every suggestion is in the domain
//! * [`models`]: the same for the posterior by itself
//! * [`interrupted`]: a stop at any moment leaves no trace
//! * [`saved`]: what is saved comes back bit for bit, and what is damaged is refused

mod histories;
mod hostile;
mod interrupted;
mod models;
mod saved;
mod settings;

use proptest::prelude::{Strategy, prop_oneof};
use proptest::sample::select;
use proptest::test_runner::Config;

/// `cases`, or as many as the environment variable PROPTEST_CASES asks for.
fn cases(cases: u32) -> Config {
    let asked = std::env::var_os("PROPTEST_CASES").is_some();
    let config = Config {
        // A case may take long, and a smaller one is only a convenience.
        max_shrink_iters: 500,
        // What was found once becomes a test with a name.
        failure_persistence: None,
        ..Config::default()
    };
    if asked {
        config
    } else {
        Config { cases, ..config }
    }
}

/// As `cases`, for what takes a hundred times as long.
fn heavy(few: u32) -> Config {
    let config = cases(few);
    Config {
        cases: few.max(config.cases / 100),
        ..config
    }
}

/// Numbers at the ends of what a double can hold, and ordinary ones.
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
