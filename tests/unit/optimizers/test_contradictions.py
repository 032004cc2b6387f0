"""A warning names two trials at the same point whose values differ although both were reported as exact."""

import warnings

import numpy as np
import pandas as pd
import pytest

import belated as bl

SPACE = {"x": (0.0, 1.0), "kind": ["a", "b"]}
POINT = {"x": 0.25, "kind": "b"}


@pytest.fixture(params=["optimizer", "study"])
def make(request, tmp_path):
    def made(space=SPACE, **arguments):
        optimizer = bl.RandomSearch(space, seed=0, **arguments)
        return optimizer if request.param == "optimizer" else bl.Study("a", f"sqlite:///{tmp_path}/s.db", optimizer)

    return made


def warned(call):
    """The messages of the warnings of a call."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [str(each.message) for each in found]


def by_replicate(search):
    trial = search.suggest()
    trial.observe(1.0, std=0.0)
    trial.observe(2.0, std=0.0, replicate=True)


def by_params(search):
    for trial, value in zip(search.suggest(n=2), (1.0, 2.0), strict=True):
        trial.observe(value, std=0.0, params=POINT)


def by_replicate_elsewhere(search):
    search.add(POINT, 1.0, std=0.0)
    trial = search.suggest()
    trial.observe(1.0, std=0.0)
    trial.observe(2.0, std=0.0, params=POINT, replicate=True)


def by_list(search):
    search.add([POINT, {"x": 0.5, "kind": "a"}, POINT], [1.0, 2.0, 2.0], std=[0.0, 0.0, 0.0])


def by_table(search):
    search.add(pd.DataFrame({"x": [0.25, 0.25], "kind": ["b", "b"], "value": [1.0, 2.0], "std": [0.0, 0.0]}))


def by_amendment(search):
    first, second = search.add([POINT, POINT], [1.0, 2.0], std=[0.0, 0.5])
    second.observe(2.0, std=0.0, amend=True)


def by_enqueued_points(search):
    search.enqueue([POINT, POINT])
    for trial, value in zip(search.suggest(n=2), (1.0, 2.0), strict=True):
        trial.observe(value, std=0.0)


@pytest.mark.parametrize(
    "report",
    [by_replicate, by_params, by_replicate_elsewhere, by_list, by_table, by_amendment, by_enqueued_points],
)
def test_two_exact_values_at_a_point_give_one_warning(make, report):
    search = make()
    [message] = warned(lambda: report(search))
    pairs = {by_replicate_elsewhere: "trials 0 and 2", by_list: "trials 0 and 2"}
    assert message.startswith(pairs.get(report, "trials 0 and 1")) and "the values 1.0 and 2.0, both with" in message
    assert "amend them without std" in message and "withdraw" in message
    # Once for each optimizer.
    assert warned(lambda: search.add([{"x": 0.75, "kind": "a"}] * 2, [3.0, 4.0], std=0.0)) == []


def test_the_advice_is_sufficient():
    optimizer = bl.RandomSearch(SPACE, seed=0)
    first, second = optimizer.add([POINT, POINT], [1.0, 1.0], std=0.0)
    second.observe(2.0, amend=True)
    assert (second.value, second.std) == (2.0, None)


def other_value(search):
    search.add([POINT, POINT], [1.0, 1.0], std=0.0)


def other_std(search):
    search.add([POINT, POINT, POINT], [1.0, 2.0, 3.0], std=[0.0, 1e-9, None])


def other_point(search):
    search.add([POINT, POINT | {"x": np.nextafter(0.25, 1)}, POINT | {"kind": "a"}], [1.0, 2.0, 3.0], std=0.0)


def without_result(search):
    first, second = search.suggest(n=2)
    first.observe(1.0, std=0.0, params=POINT)
    first.withdraw()
    second.observe(2.0, std=0.0, params=POINT)
    search.add(POINT).fail()


@pytest.mark.parametrize("report", [other_value, other_std, other_point, without_result])
def test_other_reports_do_not_contradict(make, report):
    assert warned(lambda: report(make())) == []


def test_contexts_fidelities_and_candidates_separate_points(make):
    search = make({"x": (0.0, 1.0)}, context={"lot": ["A", "B"]}, fidelity=bl.Fidelity(1, 9))

    def add(lots, fidelities):
        n = len(lots)
        context = [{"lot": lot} for lot in lots]
        search.add([{"x": 0.25}] * n, list(np.arange(n) / 2), context, std=0.0, fidelity=fidelities)

    assert warned(lambda: add("AB", [9, 9])) == []
    [message] = warned(lambda: add("AA", [3, 3]))
    assert message.startswith("trials 2 and 3")


def test_trials_of_the_same_candidate_contradict():
    optimizer = bl.RandomSearch(candidates=np.array([[0.0], [1.0], [2.0]]), seed=0)
    assert warned(lambda: optimizer.add([0, 1], [1.0, 2.0], std=0.0)) == []
    [message] = warned(lambda: optimizer.add([1], [3.0], std=0.0))
    assert message.startswith("trials 1 and 2")


def test_outcomes_contradict_one_by_one(make):
    search = make(outcomes={"yield": "maximize", "purity": bl.AtLeast(0.5)})
    first, second = search.add([POINT, POINT], [{"yield": 1.0}, {"yield": 1.0}], std=0.0)
    assert warned(lambda: first.observe({"purity": 0.5}, std={"purity": 0.0})) == []
    [message] = warned(lambda: second.observe({"purity": 0.75}, std={"purity": 0.0}))
    assert "trials 0 and 1" in message and "0.5 and 0.75 of 'purity'" in message


def test_the_values_have_the_sign_of_the_user():
    optimizer = bl.RandomSearch(SPACE, direction="minimize", seed=0)
    [message] = warned(lambda: optimizer.add([POINT, POINT], [1.0, -2.0], std=0.0))
    assert "1.0 and -2.0" in message


def test_a_second_handle_finds_a_contradiction(tmp_path):
    url = f"sqlite:///{tmp_path}/s.db"
    first = bl.Study("a", url, bl.RandomSearch(SPACE, seed=0))
    second = bl.Study("a", url)
    first.add(POINT, 1.0, std=0.0)
    [message] = warned(lambda: second.add(POINT, 2.0, std=0.0))
    assert message.startswith("trials 0 and 1")


def test_a_run_warns():
    optimizer = bl.RandomSearch(SPACE, seed=0)
    optimizer.enqueue([POINT, POINT])
    values = iter([1.0, 2.0])
    [message] = warned(
        lambda: bl.maximize(lambda p: {"value": next(values), "std": 0.0}, optimizer=optimizer, n_trials=2)
    )
    assert message.startswith("trials 0 and 1")
