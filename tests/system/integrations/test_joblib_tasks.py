"""Tasks that depend on earlier results, in threads and in processes. Every task is carried out, and no task starts
before the results that it needs are available."""

import pytest

joblib = pytest.importorskip("joblib")

from belated.integrations.joblib_tasks import completed  # noqa: E402


def square(x):
    return x, x * x


def fail(x):
    raise RuntimeError(f"task {x}")


def run(n, n_jobs, n_in_flight, function=square):
    """Run n tasks; return their results, and the number of tasks in progress at each request for another task."""
    asked, seen, under_way = 0, [], []

    def next_task():
        nonlocal asked
        under_way.append(asked - len(seen))
        if asked == n:
            return None
        asked += 1
        return function, (asked - 1,), {}

    for result in completed(next_task, n_jobs, n_in_flight):
        seen.append(result)
    return seen, under_way


@pytest.mark.parametrize("n_jobs, n_in_flight", [(1, 1), (2, 1), (2, 2), (2, 3), (3, 7)])
@pytest.mark.parametrize("n", [0, 1, 2, 40])
def test_all_tasks_are_done_and_each_is_requested_when_a_worker_is_free(n, n_jobs, n_in_flight):
    with joblib.parallel_config(backend="threading"):
        seen, under_way = run(n, n_jobs, n_in_flight)
    # All tasks in flight may end before the next task is requested, which would end a `Parallel` of joblib.
    assert sorted(seen) == [(x, x * x) for x in range(n)]
    assert max(under_way) < n_in_flight


def test_processes_give_the_same_results():
    seen, _ = run(20, 2, 3)
    assert sorted(seen) == [(x, x * x) for x in range(20)]


def test_one_worker_works_in_order():
    seen, under_way = run(5, 1, 4)
    assert seen == [(x, x * x) for x in range(5)]
    assert set(under_way) == {0}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_exception_of_a_task_is_raised(n_jobs):
    with joblib.parallel_config(backend="threading"), pytest.raises(RuntimeError, match="task 0"):
        run(1, n_jobs, 2, fail)


@pytest.mark.filterwarnings("ignore:.*unconsumed|.*still being processed")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_source_of_tasks_may_stop(n_jobs):
    with joblib.parallel_config(backend="threading"):
        results = completed(lambda: (square, (1,), {}), n_jobs, n_jobs)
        assert [next(results) for _ in range(5)] == [(1, 1)] * 5
        results.close()
        assert list(results) == []
