"""Execution of tasks on the workers of joblib. The next task may depend on the results so far."""

from collections.abc import Callable, Generator
from itertools import islice
from typing import Any, TypeAlias

import joblib

# A function, its arguments and its keywords, as returned by `joblib.delayed`.
Task: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]


class _OpenParallel(joblib.Parallel):  # type: ignore[misc]
    """A `Parallel` whose generator continues after all present tasks are done if more tasks may come.

    joblib can also take tasks from a generator. However, it then takes `n_jobs` tasks at a time, in the thread that
    reports the end of a task and before the caller can read the result of this task.
    """

    more_may_come = True

    def _wait_retrieval(self) -> bool:
        return self.more_may_come or bool(super()._wait_retrieval())


def completed(next_task: Callable[[], Task | None], n_jobs: int | None, n_in_flight: int) -> Generator[Any, None, None]:
    """Yield results in the order in which they arrive.

    At most `n_in_flight` tasks are submitted to the workers at a time. When the caller asks for another result,
    `next_task` is called in the caller's thread and returns a further task, or None when there are no more tasks. If
    there is only one worker, tasks run in the caller's thread, one at a time.

    Raises
    ------
    Exception
        An error of a task; the other tasks are then cancelled.

    Examples
    --------
    >>> from joblib import delayed
    >>> from belated.integrations.joblib_tasks import completed
    >>> tasks, seen = iter([delayed(abs)(x) for x in (-1, -2, -3)]), []
    >>> for result in completed(lambda: next(tasks, None), n_jobs=1, n_in_flight=1):
    ...     seen.append(result)
    >>> seen
    [1, 2, 3]
    """
    if joblib.effective_n_jobs(n_jobs) == 1:
        while (task := next_task()) is not None:
            function, arguments, keywords = task
            yield function(*arguments, **keywords)
        return
    first = list(islice(iter(next_task, None), n_in_flight))
    parallel = _OpenParallel(n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch="all", batch_size=1)
    results = parallel(first)
    try:
        running = len(first)
        while running:
            yield next(results)
            running -= 1
            while running < n_in_flight and (task := next_task()) is not None:
                parallel.dispatch_one_batch(iter([task]))
                running += 1
        parallel.more_may_come = False
        for _ in results:
            raise AssertionError("a task has two results")
    finally:
        results.close()
