//! A thread pool that can be used after a fork. Each process has one pool, which is created on first use.
//!
//! A forked child inherits the pool of its parent, but not the threads of the pool. Without a new pool, the child would
//! wait for these threads forever. So the pool is stored with the process id. After a fork, the child leaks the
//! inherited pool and creates a new pool.

use std::sync::Mutex;

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use rayon::{ThreadPool, ThreadPoolBuilder};

/// The id of the process that owns the pool, and the pool. The inner option is None if threads cannot be started.
static POOL: Mutex<Option<(u32, Option<&'static ThreadPool>)>> = Mutex::new(None);

/// Returns the pool of this process. Returns None on a machine with one processor, or if threads cannot be started. The
/// caller then computes on the calling thread.
pub fn pool() -> Option<&'static ThreadPool> {
    let process = std::process::id();
    // Never wait for the lock. If the process forks while another thread holds the lock, the lock is never released in
    // the child.
    let mut slot = POOL.try_lock().ok()?;
    match *slot {
        Some((owner, pool)) if owner == process => pool,
        _ => {
            let n = std::thread::available_parallelism().map_or(1, |n| n.get());
            let build = || ThreadPoolBuilder::new().num_threads(n).build().ok();
            let pool = (n > 1)
                .then(build)
                .flatten()
                .map(|pool| &*Box::leak(Box::new(pool)));
            *slot = Some((process, pool));
            pool
        }
    }
}

/// Returns the results of `work` on each item, in the order of the items. `work` runs on the pool if `worthwhile` is
/// true, and otherwise on the calling thread.
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
