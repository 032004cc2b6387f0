"""Integers with more digits than Python converts to text raise an error and leave the optimizer unchanged."""

import pytest

import belated as bl

HUGE = 10**5000
SPACE = {"x": (0.0, 1.0), "kind": ["a", "b"]}


def refused(call):
    with pytest.raises(bl.BelatedError) as refusal:
        call()
    # Check that a message can be printed and does not contain thousands of digits.
    assert len(str(refusal.value)) < 1000


@pytest.mark.parametrize(
    "make",
    [
        lambda: bl.Real(0, HUGE),
        lambda: bl.Integer(-HUGE, 0),
        lambda: bl.Integer(0, 10, step=HUGE),
        lambda: bl.Ordinal([1, HUGE]),
        lambda: bl.Categorical([1, (2, HUGE)]),
        lambda: bl.Space({"x": (0, HUGE)}),
        lambda: bl.Space({"x": (0.0, 1.0), "constant": HUGE}),
        lambda: bl.Fidelity(1, HUGE),
        lambda: bl.RandomSearch(SPACE, seed=HUGE),
        lambda: bl.RandomSearch(candidates=[[1], [HUGE]]),
        lambda: bl.TreeSearch({"x": (0.0, 1.0)}, horizon=HUGE),
        lambda: bl.GP(noise_std=HUGE),
    ],
)
def test_definitions_with_huge_integers_are_refused(make):
    refused(make)


@pytest.mark.parametrize("number", [HUGE, -HUGE], ids=["positive", "negative"])
def test_reports_with_huge_integers_are_refused_and_change_nothing(number):
    optimizer = bl.RandomSearch(SPACE, seed=0)
    trial = optimizer.suggest()
    for facts in (
        {"value": number},
        {"std": number},
        {"cost": number},
        {"duration": number},
        {"params": {"x": number, "kind": "a"}},
        {"params": {"x": 0.5, "kind": number}},
    ):
        refused(lambda facts=facts: trial.observe(**({"value": 1.0} | facts)))
    refused(lambda: trial.fail(error=number))
    refused(lambda: optimizer.suggest(n=number))
    refused(lambda: optimizer.add({"x": 0.5, "kind": "a"}, number))
    refused(lambda: optimizer.enqueue({"x": number, "kind": "a"}))
    refused(lambda: optimizer.observe(number, 1.0))
    assert trial.state == "pending" and trial.attrs == {} and optimizer.n_trials == 1


@pytest.mark.parametrize("attrs", [{"a": [{"b": HUGE}]}, {HUGE: 1}])
@pytest.mark.parametrize("report", ["observe", "fail"])
def test_attributes_with_huge_integers_do_not_prevent_a_report(attrs, report):
    trial = bl.RandomSearch(SPACE, seed=0).suggest()
    with pytest.warns(bl.BelatedWarning) as warnings:
        trial.observe(1.0, attrs=attrs) if report == "observe" else trial.fail(attrs=attrs)
    assert trial.state != "pending" and len(trial.attrs) == 1
    assert all(len(str(each.message)) < 1000 for each in warnings)


@pytest.mark.filterwarnings("ignore::belated.BelatedWarning")
@pytest.mark.parametrize(
    "returned",
    [HUGE, (1.0, HUGE), {"value": HUGE}, {"value": 1.0, "attrs": {"a": HUGE}}, {"value": 1.0, HUGE: 1}, [1.0, HUGE]],
    ids=range(6),
)
def test_a_run_continues_after_a_huge_integer(returned):
    numbers = iter(range(4))
    result = bl.maximize(lambda p: returned if next(numbers) == 1 else p["x"], SPACE, n_trials=4, seed=0)
    # Attributes never prevent a report.
    state = "observed" if isinstance(returned, dict) and "attrs" in returned else "failed"
    assert [trial.state for trial in result.trials] == ["observed", state, "observed", "observed"]
