"""Runs with a budget, and functions that are evaluated at several fidelities."""

import math
import threading
from concurrent.futures import ProcessPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import belated as bl
from belated.store.memory import MemoryStore
from tests.unit.run.runs import SECONDS, SPACE, ManualExecutor, f, failures_expected, states

SAMPLES = bl.Fidelity(100, 7000, cost=bl.PowerCost(0.02))


def search(fidelity=SAMPLES, **arguments):
    return bl.RandomSearch(SPACE, fidelity=fidelity, seed=0, **arguments)


def at_fidelity(params, trial):
    return trial.fidelity / 1000


def costing(*costs):
    """Return an objective that reports these costs, one after the other; None means no report."""
    left = list(costs)

    def evaluated(params, trial):
        cost = left.pop(0)
        return {"value": params["x"]} | ({} if cost is None else {"cost": cost})

    return evaluated


def queued(fidelities, fidelity=SAMPLES):
    """Return an optimizer whose next trials have these fidelities."""
    opt = search(fidelity)
    opt.enqueue([{"x": 0.0, "n": 1}] * len(fidelities), fidelity=list(fidelities))
    return opt


# The fidelity of a trial.


def test_functions_get_the_fidelity():
    opt = queued([100, 500, 7000])
    result = bl.maximize(at_fidelity, optimizer=opt, n_trials=4)
    assert [trial.value for trial in result.trials] == [0.1, 0.5, 7.0, 7.0]
    assert bl.RunningTrial(3, {}).fidelity is None
    seen = []
    bl.maximize(lambda params, trial: seen.append(trial.fidelity) or 0.0, SPACE, n_trials=2, seed=0)
    assert seen == [None, None]


def test_functions_in_other_processes_get_the_fidelity():
    with ProcessPoolExecutor(1) as pool:
        result = bl.maximize(at_fidelity, optimizer=queued([100]), n_trials=2, executor=pool)
    assert [trial.value for trial in result.trials] == [0.1, 7.0]


def test_functions_that_do_not_take_the_trial_are_refused():
    opt = search()
    message = r"^f=<function f.* does not take the trial, and so not its fidelity: write f\(params, trial\), and read"
    with pytest.raises(bl.errors.InvalidSetting, match=message):
        bl.maximize(f, optimizer=opt, n_trials=1)
    assert opt.n_trials == 0
    for takes in (lambda trial: 1.0, lambda trial, params: 1.0, lambda params, *, trial: 1.0):
        bl.maximize(takes, optimizer=opt, n_trials=1)
    assert states(bl.maximize(at_fidelity, optimizer=opt, n_trials=2)) == ["observed"] * 2


# Charged costs.


@pytest.mark.parametrize(("budget", "n"), [(3, 3), (3.5, 3), (1, 1), (0.3, 0), (2.9999, 2)])
def test_an_evaluation_costs_one_by_default(budget, n):
    for opt in (search(None), search(bl.Fidelity(1, 3))):
        result = bl.maximize(lambda params, trial: 0.0, optimizer=opt, budget=budget)
        assert (len(result.trials), result.stop_reason, opt.n_trials) == (n, "budget", n)


def test_reported_costs_are_charged():
    result = bl.maximize(costing(0.5, 0.25, None, 0.0, 1.0, 9.0), SPACE, budget=3.0, seed=0)
    # The first four trials cost 0.5 + 0.25 + 1 + 0, so one more trial of cost 1 fits into the budget.
    assert [trial.cost for trial in result.trials] == [0.5, 0.25, None, 0.0, 1.0] and result.stop_reason == "budget"
    assert result.cost == 2.75
    # Only after an evaluation does the run know that its cost exceeded the declared cost.
    assert len(bl.maximize(costing(7.0), SPACE, budget=3.0, seed=0).trials) == 1


def test_declared_costs_are_charged():
    tenth = round(100 + 6900 * (0.1 - 0.02) / 0.98)
    cost = SAMPLES.cost_of(tenth)
    opt = queued([tenth] * 50)
    assert cost == pytest.approx(0.1, abs=1e-4)
    assert len(bl.maximize(at_fidelity, optimizer=opt, budget=20 * cost).trials) == 20
    assert len(bl.maximize(at_fidelity, optimizer=opt, budget=10 * cost, n_trials=7).trials) == 7
    # A full evaluation does not fit into the budget. The enqueued trial fits into the budget and remains in the queue.
    more = bl.maximize(at_fidelity, optimizer=opt, budget=0.9)
    assert len(more.trials) == 9 and opt.suggest().fidelity == tenth


def test_functions_of_the_fidelity_are_charged():
    opt = queued([100, 200, 400, 7000], bl.Fidelity(100, 7000, cost=lambda v: v / 100))
    result = bl.maximize(at_fidelity, optimizer=opt, budget=8)
    assert [trial.fidelity for trial in result.trials] == [100, 200, 400] and result.stop_reason == "budget"
    assert opt.suggest().fidelity == 7000 == SAMPLES.high and opt.n_trials == 4
    broken = queued([200], bl.Fidelity(100, 7000, cost=lambda v: math.nan if v == 200 else 1.0))
    with pytest.raises(bl.errors.InvalidSetting):
        bl.maximize(at_fidelity, optimizer=broken, budget=8)
    assert broken.best_trial_ is None


def test_ten_costs_of_a_tenth_fill_a_budget_of_one():
    result = bl.maximize(costing(*[0.1] * 20), SPACE, budget=1.9, seed=0)
    # The declared cost is 1, so after nine trials of cost 0.1 one more trial fits.
    assert len(result.trials) == 10
    opt = queued([1] * 20, bl.Fidelity(1, 2, cost=bl.PowerCost(0.1)))
    for budget, n in ((0.3, 3), (0.7, 7), (0.29, 2)):
        assert len(bl.maximize(at_fidelity, optimizer=opt, budget=budget).trials) == n


@failures_expected
def test_failures_are_charged_their_declared_cost():
    def fails(params, trial):
        if trial.number:
            raise ValueError(trial.number)
        return 0.0

    result = bl.maximize(fails, optimizer=queued([7000, 100]), budget=2.5)
    assert states(result) == ["observed", "failed", "failed"] and result.cost == 2.02
    with pytest.raises(bl.errors.RunError) as raised:
        bl.maximize(lambda p: "no", SPACE, budget=2, seed=0)
    assert states(raised.value.result) == ["failed"] * 2


def test_stopped_trials_are_charged():
    def f(params):
        for _ in range(9):
            yield params["x"]

    opt = bl.RandomSearch(SPACE, curve=bl.Curve(9), stopping="asha", seed=0)
    result = bl.maximize(f, optimizer=opt, budget=12)
    assert "stopped" in states(result) and result.n_trials == result.cost == 12


# Several evaluations at a time.


def test_running_trials_count_with_their_declared_cost():
    pool = ManualExecutor({2: [0, 1, 2], 3: [3]})
    result = bl.maximize(costing(0.5, 0.5, 0.5, 1.0), SPACE, budget=3, n_workers=8, executor=pool, seed=0)
    # Three trials of declared cost 1 are started, but they cost only 1.5 together, so one more trial fits into the
    # budget.
    assert len(pool.calls) == len(result.trials) == 4 and result.stop_reason == "budget"


def test_a_budget_ends_waiting_at_the_timeout():
    released = threading.Event()

    def waits(params):
        released.wait(SECONDS)
        return 0.0

    try:
        with pytest.warns(bl.BelatedWarning):
            result = bl.maximize(waits, SPACE, budget=2, n_workers=4, timeout=0.2, seed=0)
    finally:
        released.set()
    assert states(result) == ["pending", "pending"] and result.stop_reason == "timeout" and result.cost == 0


@given(
    fidelities=st.lists(st.integers(100, 7000), max_size=12),
    budget=st.floats(0.01, 5),
    n_workers=st.integers(1, 4),
)
@settings(deadline=None, max_examples=50)
def test_declared_costs_never_exceed_the_budget(fidelities, budget, n_workers):
    opt = queued(fidelities)
    result = bl.maximize(at_fidelity, optimizer=opt, budget=budget, n_workers=n_workers)
    spent = math.fsum(SAMPLES.cost_of(trial.fidelity) for trial in result.trials)
    assert result.cost == spent <= budget * (1 + 1e-9) and all(state == "observed" for state in states(result))
    # The next trial does not fit into the budget.
    assert spent + SAMPLES.cost_of(opt.suggest().fidelity) > budget * (1 - 1e-9)


# The next tests combine a budget with other conditions that end a run, and with studies.


def test_a_budget_applies_to_one_run():
    opt = search()
    opt.add({"x": 0.5, "n": 1}, 1.0, cost=100.0)
    for n in (2, 4):
        assert len(bl.maximize(at_fidelity, optimizer=opt, budget=2.5).trials) == 2
        assert opt.n_trials == n + 1
    assert len(bl.maximize(at_fidelity, optimizer=opt, budget=9.0, n_trials_total=6).trials) == 2
    assert bl.maximize(at_fidelity, optimizer=opt, budget=9.0, n_trials=3).stop_reason == "n_trials"


def test_runs_of_a_study_have_budgets(tmp_path):
    store = f"sqlite:///{tmp_path / 'studies.db'}"
    study = bl.Study("s", store, queued([100, 3000, 7000, 7000]))
    result = bl.maximize(at_fidelity, optimizer=study, budget=1.0, n_trials_total=10)
    assert [trial.fidelity for trial in result.trials] == [100, 3000] and result.stop_reason == "budget"
    # The check whether the next trial fits does not change suggestions.
    opt = queued([100, 3000, 7000, 7000])
    opt.suggest(n=2)
    assert study.suggest(n=4) == study.trials[2:] and [t.params for t in opt.suggest(n=4)] == [
        trial.params for trial in study.trials[2:]
    ]


@pytest.mark.parametrize(("before", "after"), [(SAMPLES, None), (None, SAMPLES), (SAMPLES, bl.Fidelity(100, 7000))])
def test_a_revision_of_the_fidelity_changes_the_declared_costs(before, after):
    study, costs = bl.Study("s", MemoryStore(), search(before)), []

    def g(params, trial):
        if trial.number == 2:
            study.revise(fidelity=after)
        declared = before if trial.number < 2 else after
        costs.append(1.0 if None in (declared, trial.fidelity) else declared.cost_of(trial.fidelity))
        return params["x"]

    result = bl.maximize(g, optimizer=study, budget=8.0, n_trials=30)
    assert set(states(result)) == {"observed"} and len(result.trials) > 3
    assert len(result.trials) == 30 or 7.0 - 1e-9 < sum(costs) <= 8.0 + 1e-9
