//! A thread pool that survives a fork: one per process, made when it is first needed.
//!
//! A forked child inherits its parent's pool without the threads in it, and would wait for them forever. So the pool is
//! keyed by the process id; after a fork the inherited one is leaked, not joined.

use std::sync::Mutex;

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use rayon::{ThreadPool, ThreadPoolBuilder};

/// The process that the pool belongs to, and the pool; the inner None where threads cannot be started.
static POOL: Mutex<Option<(u32, Option<&'static ThreadPool>)>> = Mutex::new(None);

/// This process's pool; None on one processor, or where no thread can be started: then work on the calling thread.
pub fn pool() -> Option<&'static ThreadPool> {
    let process = std::process::id();
    // A fork while another thread held the lock leaves it locked forever in the child: never wait for it.
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

/// The results of `work` on each item, in their order: on this process's pool if `worthwhile`, else on this thread.
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
