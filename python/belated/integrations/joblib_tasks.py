"""Tasks on the workers of joblib, where the next task depends on the results so far."""

from collections.abc import Callable, Generator
from itertools import islice
from typing import Any, TypeAlias

import joblib

# A function, its arguments and its keywords, as `joblib.delayed` makes it.
Task: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]


class _OpenParallel(joblib.Parallel):  # type: ignore[misc]
    """A `Parallel` whose generator goes on when all tasks so far are done, as long as more may come.

    joblib would take tasks from a generator as they are needed, too. But it takes `n_jobs` of them at a time, in the
    thread that says that a task is done, and before the result of that task can be seen.
    """

    more_may_come = True

    def _wait_retrieval(self) -> bool:
        return self.more_may_come or bool(super()._wait_retrieval())


def completed(next_task: Callable[[], Task | None], n_jobs: int | None, n_in_flight: int) -> Generator[Any, None, None]:
    """Results in the order in which they come.

    Up to `n_in_flight` tasks are with the workers at a time. For each further one `next_task` is called, in this
    thread, once the caller has seen a result and asks for the next one; it returns None when there are no more.
    With one worker tasks are run in this thread, one at a time.

    Raises
    ------
    Exception
        What a task raises; the others are then given up.

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
