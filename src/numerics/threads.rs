//! A thread pool that can be used after a fork. Each process has one pool, which is created on first use.
//!
//! A forked child inherits the pool of its parent without the pool's threads, and would wait for these threads forever.
//! So the pool is stored with the process id, and a child leaks the inherited pool and creates a new pool.
//!
//! The number of threads is the environment variable `BELATED_NUM_THREADS` or, if not set, the number of processors
//! minus the number of busy workers, but at least 1.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::{Result, refuse};

/// The environment variable with the number of threads, and its largest value.
const VARIABLE: &str = "BELATED_NUM_THREADS";
const MAX_THREADS: usize = 1024;

/// The number in the environment variable, or 0 if not set.
static SETTING: AtomicUsize = AtomicUsize::new(0);

/// The number of workers that evaluate functions on this machine while a trial is chosen.
static BUSY_WORKERS: AtomicUsize = AtomicUsize::new(0);

/// A pool, and the values that it was created for: the process id, the setting and the number of busy workers.
struct Slot {
    created_for: (u32, usize, usize),
    /// None if there is only one thread, or if threads cannot be started.
    pool: Option<Arc<ThreadPool>>,
}

static SLOT: Mutex<Option<Slot>> = Mutex::new(None);

/// Reads the number of threads from the environment variable.
pub fn read_setting() -> Result<()> {
    let number = match std::env::var_os(VARIABLE) {
        None => 0,
        Some(text) => {
            let number = text.to_str().and_then(|text| text.parse().ok());
            number
                .filter(|number| (1..=MAX_THREADS).contains(number))
                .ok_or_else(|| {
                    refuse(
                        VARIABLE,
                        format!("{text:?}"),
                        "set this environment variable to an integer from 1 to 1024, or unset it",
                    )
                })?
        }
    };
    SETTING.store(number, Ordering::Relaxed);
    Ok(())
}

/// Adds `change`, which may be negative, to the number of busy workers.
pub fn add_busy_workers(change: isize) {
    BUSY_WORKERS.fetch_add(change as usize, Ordering::Relaxed); // two's complement
}

/// Returns the pool of this process, or None if there is only one thread or threads cannot be started. Without a pool,
/// the caller computes on its own thread.
pub fn pool() -> Option<Arc<ThreadPool>> {
    let setting = SETTING.load(Ordering::Relaxed);
    let busy = BUSY_WORKERS.load(Ordering::Relaxed);
    let process = std::process::id();
    // Never wait for the lock: if the process forks while another thread holds the lock, it is never released in the
    // child.
    let mut slot = SLOT.try_lock().ok()?;
    if let Some(found) = &*slot
        && found.created_for == (process, setting, busy)
    {
        return found.pool.clone();
    }
    if let Some(old) = slot.take()
        && old.created_for.0 != process
    {
        std::mem::forget(old);
    }
    let processors = || std::thread::available_parallelism().map_or(1, |n| n.get());
    let n = match setting {
        0 => processors().saturating_sub(busy),
        given => given,
    };
    let build = || ThreadPoolBuilder::new().num_threads(n).build().ok();
    let pool = (n > 1).then(build).flatten().map(Arc::new);
    *slot = Some(Slot {
        created_for: (process, setting, busy),
        pool: pool.clone(),
    });
    pool
}

/// Returns the results of `work` on each item, in order. `work` runs on the pool if `worthwhile`, and otherwise on the
/// calling thread.
pub fn parallel_map<T: Send, R: Send>(
    items: Vec<T>,
    worthwhile: bool,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    match pool().filter(|_| worthwhile) {
        Some(pool) => pool.install(|| {
            let items = items.into_par_iter().with_max_len(1);
            items.map(&work).collect()
        }),
        None => items.into_iter().map(work).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_the_items() {
        let squares: Vec<usize> = (0..1000).map(|i| i * i).collect();
        for worthwhile in [false, true] {
            assert_eq!(
                parallel_map((0..1000).collect(), worthwhile, |i: usize| i * i),
                squares
            );
        }
    }
}
