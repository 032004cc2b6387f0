"""How runs end. A run of zero trials ends at once; other runs end when all processes together reach a total, or when a
stopper ends them. The tests also check the messages that a run logs."""

import html
import itertools
import logging
import multiprocessing
import os
import re
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest

import belated as bl
from belated.run import total
from belated.run.result import Result
from belated.store.memory import MemoryStore
from tests.unit.run.runs import SECONDS, SPACE, by_params, f, forks, states

# Runs of zero trials.


@pytest.mark.parametrize("arguments", [{"n_trials": 0}, {"n_trials_total": 0}, {"n_trials": 0, "timeout": SECONDS}])
def test_a_run_of_zero_trials_returns_at_once(arguments):
    def never(params):
        raise AssertionError

    best = bl.maximize(never, SPACE, n_workers=2, **arguments)
    assert best.trials == [] and best.stop_reason == "n_trials" and best.best_value_ is None


# A total.

total_names_pending = pytest.mark.filterwarnings(
    "ignore:these trials were pending before this run:belated.BelatedWarning"
)


@total_names_pending
def test_a_total_counts_suggested_trials_that_are_not_abandoned():
    opt = bl.RandomSearch(SPACE, seed=0)
    opt.add({"x": 0.5, "n": 1}, 1.0)
    opt.add({"x": 0.5, "n": 1}).abandon()
    first, second, third, fourth = opt.suggest(n=4)
    first.observe(1.0)
    second.fail()
    third.abandon()
    opt.enqueue({"x": 0.25, "n": 2})
    best = bl.maximize(f, optimizer=opt, n_trials_total=8)
    # Three of the four earlier trials count toward the total. The run evaluates the enqueued point.
    assert len(best.trials) == 5 and best.trials[0].params == {"x": 0.25, "n": 2} and best.stop_reason == "n_trials"
    assert bl.maximize(f, optimizer=opt, n_trials_total=8).trials == []
    assert bl.maximize(f, optimizer=opt, n_trials_total=3).trials == []
    fourth.abandon()
    assert len(bl.maximize(f, optimizer=opt, n_trials_total=8).trials) == 1
    assert len(bl.maximize(f, optimizer=opt, n_trials_total=20, n_trials=2).trials) == 2
    assert len(bl.maximize(f, optimizer=opt, n_trials_total=11, n_trials=5).trials) == 1


@total_names_pending
@pytest.mark.parametrize("abandoned", [0, 1, 2, 3])
def test_abandoned_suggestions_do_not_count_towards_a_total(abandoned):
    opt = bl.RandomSearch(SPACE, seed=0)
    opt.suggest(n=3)
    opt.add({"x": 0.5, "n": 1}, 1.0)
    opt.abandon(abandoned) if abandoned < 3 else opt.add({"x": 0.5, "n": 2}).abandon()
    assert len(bl.maximize(f, optimizer=opt, n_trials_total=4).trials) == (2 if abandoned < 3 else 1)


def suggested(optimizer):
    return sum(trial.state != "abandoned" for trial in optimizer.trials)


def open_optimizer(kind, tmp_path):
    opt = bl.RandomSearch(SPACE, seed=0)
    return opt if kind == "optimizer" else bl.Study("s", f"sqlite:///{tmp_path / 'studies.db'}", opt)


@pytest.mark.parametrize("kind", ["optimizer", "study"])
def test_runs_in_threads_never_exceed_a_total(kind, tmp_path):
    opt = open_optimizer(kind, tmp_path)
    together = threading.Barrier(4)

    def run(_):
        together.wait(SECONDS)
        return len(bl.maximize(f, optimizer=opt, n_trials_total=30, n_workers=2).trials)

    with ThreadPoolExecutor(4) as pool:
        counts = list(pool.map(run, range(4)))
    assert sum(counts) == suggested(opt) == 30


class Core:
    """A core that makes a call before each proposal."""

    def __init__(self, core, before):
        self.core, self.before = core, before

    def propose(self, *arguments, **keywords):
        self.before()
        return self.core.propose(*arguments, **keywords)

    def __getattr__(self, name):
        return getattr(self.core, name)

    def __len__(self):
        return len(self.core)


def slow_proposals(study):
    """A study whose suggestions take long; they are first computed without the lock, so other processes can write
    meanwhile."""
    study._log.core = Core(study._log.core, lambda: threading.Event().wait(0.005))
    return study


# Pairs (start method of the processes, whether suggestions are slow).
METHODS_AND_SPEEDS = [
    pair for pair in (("fork", False), ("spawn", True)) if pair[0] in multiprocessing.get_all_start_methods()
]


def to_the_total(store, slow, barrier):
    study = bl.Study.load("s", store)
    if slow:
        slow_proposals(study)
    barrier.wait(SECONDS)
    return len(bl.maximize(f, optimizer=study, n_trials_total=25).trials)


@pytest.mark.parametrize(("method", "slow"), METHODS_AND_SPEEDS)
@forks
def test_processes_never_exceed_a_total(method, slow, tmp_path):
    study = open_optimizer("study", tmp_path)
    study.suggest(n=2)
    context = multiprocessing.get_context(method)
    with context.Manager() as manager, ProcessPoolExecutor(3, context) as pool:
        barrier = manager.Barrier(3)
        counts = [pool.submit(to_the_total, study.store, slow, barrier) for _ in range(3)]
        assert sum(count.result(SECONDS) for count in counts) == 23
    assert study.n_trials == suggested(study) == 25


def test_trials_are_not_suggested_after_another_process_reached_the_total(tmp_path):
    study = open_optimizer("study", tmp_path)
    other = bl.Study.load("s", study.store)
    before = study._log.core.n_events()

    core = study._log.core
    study._log.core = Core(core, other.suggest)
    best = bl.maximize(f, optimizer=study, n_trials_total=1)
    assert best.trials == [] and best.stop_reason == "n_trials" and other.n_trials == 1
    assert core.n_events() == before + 1
    study._log.core = core
    assert study.suggest().number == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@forks
def test_a_fork_while_another_thread_suggests_leaves_a_usable_child():
    holds, done = threading.Event(), threading.Event()

    def hold():
        with total._lock:
            holds.set()
            done.wait(SECONDS)

    thread = threading.Thread(target=hold)
    thread.start()
    holds.wait(SECONDS)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 2 - len(bl.maximize(f, SPACE, n_trials_total=2).trials)
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    done.set()
    thread.join()


# Runs with failures only.


@pytest.mark.filterwarnings("ignore::belated.BelatedWarning")
def test_a_run_that_the_user_ends_may_have_only_failures():
    def stop(optimizer, trial):
        if trial.number == 1:
            raise bl.StopRun

    best = bl.maximize(lambda params: None, SPACE, n_trials=9, callbacks=[stop])
    assert best.stop_reason == "stopped" and states(best) == ["failed", "failed"]
    with pytest.raises(
        bl.errors.RunError, match="^none of 2 trials succeeded, and 2 failed: the last time f returned None: "
    ):
        bl.maximize(lambda params: None, SPACE, n_trials=2)


# Results.


def test_a_result_shows_its_own_trials_and_the_best_of_all():
    opt = bl.RandomSearch(SPACE, seed=0)
    opt.add({"x": 0.5, "n": 2}, 3.0)
    trials = opt.suggest(n=4)
    trials[0].observe(1.0)
    trials[1].fail()
    best = Result(opt, trials, "timeout", 1.23456)
    shown = {
        "n_trials": "4",
        "best_value_": "3.0",
        "best_params_": "{'x': 0.5, 'n': 2}",
        "n_failed": "1",
        "n_pending": "2",
        "stop_reason": "'timeout'",
        "seconds": "1.23",
    }
    assert repr(best) == f"Result({', '.join(f'{name}={value}' for name, value in shown.items())})"
    text = " ".join(html.unescape(re.sub("<[^>]*>", " ", best._repr_html_())).split())
    shown |= {"best_value_": "3", "stop_reason": "timeout"}
    assert text.startswith(" ".join(["Result", *(f"{name} {value}" for name, value in shown.items())]))
    assert "Run: 4 trials, 2 pending, best 3" in text and text.endswith("0 0.5 2 observed, best 3")
    assert best.pending == trials[2:] and best.trials_dataframe()["number"].tolist() == [1, 2, 3, 4]
    assert best != Result(opt, trials, "timeout", 1.23456)
    with pytest.raises(AttributeError):
        best.stop_reason = "bored"


@pytest.mark.parametrize("n_own", [0, 1, 2])
@pytest.mark.parametrize("owner", ["optimizer", "study"])
def test_every_view_of_a_result_counts_the_same_pending_trials(n_own, owner, tmp_path):
    opt = bl.RandomSearch(SPACE, seed=0)
    opt = opt if owner == "optimizer" else bl.Study("s", f"sqlite:///{tmp_path}/s.db", opt)
    opt.suggest(n=3)  # trials from before the run
    own = opt.suggest(n=4)
    for trial in own[n_own:]:
        trial.observe(1.0)
    result = Result(opt, own, "n_trials", 1.0)
    text = " ".join(re.sub("<[^>]*>", " ", result._repr_html_()).split())
    assert result.n_pending == len(result.pending) == n_own and len(opt.pending) == n_own + 3
    assert f"n_pending={n_own}," in repr(result)
    assert f"n_pending {n_own} " in text and f"Run: 4 trials, {n_own} pending" in text
    assert (result.trials_dataframe()["state"] == "pending").sum() == n_own


# Stoppers.


def run_values(values, stop, direction="maximize", n_trials=None, **arguments):
    run = bl.maximize if direction == "maximize" else bl.minimize
    given = iter(values)
    return run(lambda params: next(given), SPACE, n_trials=n_trials or len(values), callbacks=[stop], **arguments)


@pytest.mark.parametrize(
    ("values", "n", "length"),
    [
        ([0.0, 0.0, 0.0, 0.0], 2, 3),
        ([0.0, 0.0, 1.0, 0.5, 1.0, 2.0], 2, 5),
        ([0.0, 1.0, 2.0, 3.0], 1, 4),
        ([0.0, -1.0, 2.0, 3.0], 1, 2),
        ([0.0, -1.0, 2.0, 3.0], 2, 4),
    ],
)
def test_no_improvement(values, n, length):
    stop = bl.NoImprovement(n)
    for direction, sign in (("maximize", 1), ("minimize", -1)):
        # In the second run, the stopper counts from zero again.
        best = run_values([sign * value for value in values], stop, direction)
        assert len(best.trials) == length
        assert best.stop_reason == ("stopped" if length < len(values) or values[-1] != max(values) else "n_trials")


@pytest.mark.filterwarnings("ignore::belated.BelatedWarning")
def test_no_improvement_ignores_failed_trials():
    best = run_values([1.0, None, None, None, 0.5, None, 0.5, 0.0], bl.NoImprovement(2))
    assert states(best) == ["observed", *["failed"] * 3, "observed", "failed", "observed"]


def test_no_improvement_counts_values_from_before_the_run():
    opt = bl.RandomSearch(SPACE)
    opt.add({"x": 0.5, "n": 1}, 100.0)
    assert len(bl.maximize(f, optimizer=opt, n_trials=9, callbacks=[bl.NoImprovement(3)]).trials) == 3
    opt = bl.RandomSearch(SPACE)
    opt.add({"x": 0.5, "n": 1}, -100.0)
    first = bl.maximize(f, optimizer=opt, n_trials=9, callbacks=[bl.NoImprovement(1)])
    assert len(first.trials) >= 2


def test_value_reached():
    assert len(run_values([0.0, 1.0, 2.0, 3.0], bl.ValueReached(1.5)).trials) == 3
    assert len(run_values([0.0, 1.0, 2.0, 3.0], bl.ValueReached(2)).trials) == 3
    assert len(run_values([0.0, -1.0, -2.0], bl.ValueReached(-1), "minimize").trials) == 2
    assert run_values([0.0, 1.0], bl.ValueReached(2)).stop_reason == "n_trials"


@pytest.mark.parametrize("run", [bl.maximize, bl.minimize])
@pytest.mark.filterwarnings("ignore::belated.BelatedWarning")
def test_value_reached_waits_while_all_trials_fail(run):
    given = iter([None, None, 5.0, 5.0])
    assert len(run(lambda params: next(given), SPACE, n_trials=4, callbacks=[bl.ValueReached(5)]).trials) == 3


def test_a_value_that_another_process_found_counts(tmp_path):
    study = open_optimizer("study", tmp_path)

    def meanwhile(optimizer, trial):
        if trial.number == 2:
            bl.Study.load("s", study.store).add({"x": 0.5, "n": 1}, 7.0)

    best = bl.maximize(lambda p: 0.0, optimizer=study, n_trials=9, callbacks=[meanwhile, bl.ValueReached(7.0)])
    assert best.stop_reason == "stopped" and len(best.trials) == 3


def test_stoppers_with_studies_and_workers(tmp_path):
    study = open_optimizer("study", tmp_path)
    best = bl.maximize(lambda p: 0.0, optimizer=study, n_trials=50, n_workers=3, callbacks=[bl.NoImprovement(4)])
    assert best.stop_reason == "stopped" and 5 <= len(best.trials) <= 8


@pytest.mark.parametrize("n", [0, -1, 1.5, "3", None, True])
def test_invalid_n_is_refused(n):
    with pytest.raises(bl.errors.InvalidSetting, match="^n=.*an integer >= 1"):
        bl.NoImprovement(n)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "1", None])
def test_invalid_value_is_refused(value):
    with pytest.raises(bl.errors.InvalidSetting, match="^value=.*a finite number"):
        bl.ValueReached(value)


# Logging.


def test_runs_log_results_and_warnings(caplog):
    caplog.set_level(logging.INFO, "belated")
    opt = bl.RandomSearch(SPACE, seed=0)
    opt.enqueue([{"x": 0.5, "n": n} for n in (1, 8)])
    with pytest.warns(bl.BelatedWarning):
        bl.maximize(by_params, optimizer=opt, n_trials=2)
    lines = [(record.levelname, record.getMessage()) for record in caplog.records if record.name == "belated"]
    assert [level for level, _ in lines] == ["INFO", "INFO", "WARNING", "INFO"]
    assert lines[0][1].startswith("trial 0 observed: value=0.5, duration=") and "best_value_=0.5" in lines[0][1]
    assert lines[1][1].startswith("trial 1 failed: f raised OSError") and "no such level" in lines[1][1]
    assert all(f"params={{'x': 0.5, 'n': {n}}}" in lines[i][1] for i, n in enumerate((1, 8)))
    assert lines[2][1].startswith("trial 1 failed: ") and lines[2][1].endswith("further ones do not warn")
    assert lines[3][1].startswith("the run ended by n_trials: Result(n_trials=2")


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        (bl.NoImprovement(2), "no improvement for 2 results"),
        (bl.ValueReached(0.5), "the value 0.5 reached 0.5"),
    ],
)
def test_the_reason_of_a_stopper_is_logged(caplog, stop, reason):
    caplog.set_level(logging.INFO, "belated")
    run_values([0.5, 0.5, 0.5, 0.5], stop)
    lines = [record.getMessage() for record in caplog.records]
    assert lines[-2] == f"a callback ended the run: {reason}" and lines[-1].startswith("the run ended by stopped: ")


def test_std_and_cost_are_logged_with_a_value(caplog):
    caplog.set_level(logging.INFO, "belated")
    bl.maximize(lambda params: {"value": 2.0, "std": 0.25, "cost": 3.0}, SPACE, n_trials=1)
    message = caplog.records[0].getMessage()
    assert message.startswith("trial 0 observed: value=2.0, std=0.25, cost=3.0, duration=")
    assert message.endswith(", best_value_=2.0")
    caplog.clear()
    caplog.set_level(logging.WARNING, "belated")
    bl.maximize(f, SPACE, n_trials=1)
    assert not caplog.records


def test_the_logger_is_quiet_by_default(capsys):
    logger = logging.getLogger("belated")
    assert logger.level == logging.NOTSET and any(isinstance(each, logging.NullHandler) for each in logger.handlers)
    with pytest.warns(bl.BelatedWarning):
        bl.maximize(by_params, SPACE, n_trials=12, seed=0)
    assert capsys.readouterr() == ("", "")


# A trial that cannot be started.


def slow_second(params, trial):
    """The second evaluation is still running when the third trial cannot be started."""
    started, revised = (os.path.join(os.environ["BELATED_TEST_FOLDER"], name) for name in ("started", "revised"))
    if trial.number == 1:
        open(started, "w").close()
    while not os.path.exists(revised if trial.number == 1 else started):
        time.sleep(0.01)
    time.sleep(0.2 * trial.number)
    return params["x"]


REVISIONS = {
    "context": ({"context": {"lot": ["a", "b"]}, "fill": {"lot": "a"}}, "lot"),
    "constraint": ({"constraints": [lambda params: params["x"] < 0.9]}, "not stored"),
}


@forks
@pytest.mark.parametrize(
    ("kind", "revision", "limit"),
    [
        *[("threads", *each) for each in itertools.product(REVISIONS, ("n_trials", "n_trials_total", "budget"))],
        ("pool", "constraint", "n_trials"),
        ("processes", "context", "n_trials"),
    ],
)
def test_running_evaluations_are_stored_if_a_trial_cannot_be_started(tmp_path, monkeypatch, kind, revision, limit):
    changes, message = REVISIONS[revision]
    monkeypatch.setenv("BELATED_TEST_FOLDER", str(tmp_path))
    store = f"sqlite:///{tmp_path}/study.db"
    study = bl.Study("s", store, bl.RandomSearch(SPACE, seed=0))

    def revise(optimizer, trial):
        if trial.number == 0:
            bl.Study.load("s", store).revise(**changes)
            (tmp_path / "revised").touch()

    pool = ProcessPoolExecutor(2) if kind == "pool" else None
    workers = {"pool": {"executor": pool}, "processes": {"processes": True, "n_workers": 2}}.get(kind, {"n_workers": 2})
    with pytest.raises(bl.errors.BelatedError, match=message) as raised:
        bl.maximize(slow_second, optimizer=study, callbacks=[revise], **{limit: 9}, **workers)
    if pool is not None:
        pool.shutdown()
    trials = bl.Study.load("s", store).trials
    assert [trial.value for trial in trials] == [trial.params["x"] for trial in trials] and len(trials) in (2, 3)
    assert len(raised.value.result.trials) == len(trials) and raised.value.result.stop_reason == "error"


def test_a_run_that_cannot_start_its_first_trial_raises():
    store = MemoryStore()
    bl.Study("s", store, bl.RandomSearch(SPACE, constraints=[lambda params: params["x"] < 0.9], seed=0))
    with pytest.raises(bl.errors.InvalidSetting, match="not stored") as raised:
        bl.maximize(f, optimizer=bl.Study.load("s", store), n_trials=9, n_workers=2)
    assert raised.value.result.trials == []


def test_a_run_that_cannot_start_a_trial_ends_at_its_timeout(monkeypatch):
    opt, released = bl.RandomSearch(SPACE, seed=0), threading.Event()
    started = iter([opt.suggest()])

    def waits(params):
        assert released.wait(SECONDS)

    def suggest():
        for trial in started:
            return trial
        raise bl.errors.InvalidSetting("no further trial")

    monkeypatch.setattr(opt, "suggest", suggest)
    with pytest.raises(bl.errors.InvalidSetting, match="no further trial") as raised:
        bl.maximize(waits, optimizer=opt, n_trials=9, n_workers=2, timeout=0.2)
    released.set()
    assert states(raised.value.result) == ["pending"]
