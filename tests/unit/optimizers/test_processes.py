"""An optimizer works after a copy to another process, after a fork, and with several threads."""

import multiprocessing
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import belated as bl

ROWS = np.random.default_rng(0).random((200, 3))
KINDS = [bl.RandomSearch, bl.BayesOpt]
SECONDS = 120  # a child that waits for threads of its parent would never end

METHODS = pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())


def objective(row):
    return float(np.sin(5 * row).sum())


def observed(n):
    """Return an optimizer with n observations; its next suggestion fits the model on several threads."""
    opt = bl.BayesOpt({"a": (0.0, 1.0), "b": (0.0, 1.0), "c": (0.0, 1.0)}, seed=1, initial=0)
    add(opt, ROWS[:n])
    return opt


def add(opt, rows):
    opt.add([dict(zip("abc", row, strict=True)) for row in rows], [objective(row) for row in rows])


@METHODS
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_children_suggest_after_the_parent_suggested(method):
    opt = observed(160)
    opt.suggest()  # starts the threads
    add(opt, ROWS[160:])  # with these data the next suggestion fits again
    with multiprocessing.get_context(method).Pool(2) as pool:
        results = [pool.apply_async(opt.suggest) for _ in range(2)]
        suggested = [result.get(timeout=SECONDS) for result in results]
    expected = opt.suggest()
    for trial in suggested:
        assert trial == expected and trial.params == expected.params
        opt.observe(trial, 1.0)  # the optimizer accepts a trial that was pickled


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_continues_with_the_inherited_optimizer():
    opt = observed(160)
    opt.suggest()
    add(opt, ROWS[160:])
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    child = context.Process(target=lambda: there.send([trial.params for trial in opt.suggest(n=2)]))
    child.start()
    try:
        assert here.poll(SECONDS), "the child never answered"
        assert here.recv() == [trial.params for trial in opt.suggest(n=2)]
    finally:
        child.kill()
        child.join()


@pytest.mark.parametrize("kind", KINDS)
def test_threads_share_an_optimizer(kind):
    opt = kind({"x": (0.0, 1.0), "n": (1, 5)}, seed=0)
    n_threads, rounds = 8, 12
    start = threading.Barrier(n_threads)

    def work(worker):
        start.wait(timeout=SECONDS)
        numbers = []
        for i in range(rounds):
            trials = opt.suggest(n=2) if i % 3 == 0 else [opt.suggest()]
            numbers += [trial.number for trial in trials]
            for trial in trials:
                if (trial.number + worker) % 7 == 0:
                    trial.fail()
                elif i % 4:
                    trial.observe(-((trial.params["x"] - 0.5) ** 2))
                    trial.observe(trial.value)
            assert len(opt.pending) <= opt.n_trials
        return numbers

    with ThreadPoolExecutor(n_threads) as executor:
        numbers = [number for result in executor.map(work, range(n_threads)) for number in result]
    assert sorted(numbers) == list(range(n_threads * (rounds + rounds // 3)))
    assert [trial.number for trial in opt.trials] == sorted(numbers)
    by_state = {state: sum(trial.state == state for trial in opt.trials) for state in ("pending", "observed", "failed")}
    assert sum(by_state.values()) == opt.n_trials and all(by_state.values())
    # The log contains the threads' calls in their order, and this log determines the next suggestions.
    assert pickle.loads(pickle.dumps(opt)).suggest().params == opt.suggest().params


def test_threads_may_have_separate_optimizers():
    def search(seed):
        opt = observed(110)
        add(opt, ROWS[110 : 110 + seed])
        return [opt.suggest().params for _ in range(3)]

    alone = [search(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as executor:
        assert list(executor.map(search, range(4))) == alone
