"""Pages of trials in other orders than by number, and filters."""

import math
import random
import time

import pytest

import belated as bl
from tests.system.serve.test_api import ok, refused


def pages(client, path, limit, **query):
    """The numbers of all trials of a request, read in pages."""
    found, more = [], {}
    while True:
        page = ok(client.get(f"{path}/trials", params=query | more | {"limit": limit}))
        assert page["total"] >= len(page["trials"]) and page["next"] is None
        found += [trial["number"] for trial in page["trials"]]
        if page["after"] is None:
            assert page["total"] == len(page["trials"])
            return found
        assert len(page["trials"]) == limit
        more = {"after": page["after"]["number"]}
        if page["after"]["value"] is not None:
            more["after_value"] = page["after"]["value"]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_pages_by_value_have_each_trial_once(client, create, path, direction, descending):
    study = create(bl.RandomSearch({"x": (0.0, 1.0)}, direction=direction, seed=0))
    chance = random.Random(0)
    for trial in study.suggest(n=23):
        if chance.random() < 0.7:
            trial.observe(chance.choice([-1.5, 0.1, 1 / 3, 2.0, 1e300, -1e-300]))
        elif chance.random() < 0.5:
            trial.fail()
    sign = -1.0 if descending else 1.0
    values = [trial.value for trial in study.trials]
    expected = sorted(
        range(23), key=lambda number: (math.inf if values[number] is None else sign * values[number], number)
    )
    for limit in (1, 4, 23, 100):
        assert pages(client, path, limit, sort="value", descending=descending) == expected
    observed = [number for number in expected if values[number] is not None]
    assert pages(client, path, 3, sort="value", descending=descending, state="observed") == observed


def test_pages_by_an_outcome_and_by_the_last_change(client, create, path):
    outcomes = {"yield": "maximize", "cost": bl.Record()}
    study = create(bl.RandomSearch({"x": (0.0, 1.0)}, outcomes=outcomes, seed=0))
    study.suggest(n=5)
    for number, value in ((3, 2.0), (1, 1.0), (4, 3.0)):
        study.observe(number, {"cost": value})
    assert pages(client, path, 2, sort="value", outcome="cost") == [1, 3, 4, 0, 2]
    assert pages(client, path, 2, sort="value") == [0, 1, 2, 3, 4]
    assert pages(client, path, 2, sort="changed") == [0, 2, 3, 1, 4]
    assert pages(client, path, 2, sort="changed", descending=True) == [4, 1, 3, 2, 0]
    refused(client.get(f"{path}/trials", params={"sort": "value", "outcome": "colour"}), 422, "colour")
    refused(client.get(f"{path}/trials", params={"outcome": "cost"}), 422, "sort=")
    assert pages(client, path, 2, descending=True) == [4, 3, 2, 1, 0]
    refused(client.get(f"{path}/trials", params={"sort": "x"}), 422, "sort")


def test_a_page_goes_on_after_a_trial_that_changed(client, study, path):
    for i, trial in enumerate(study.suggest(n=6)):
        trial.observe(float(i))
    page = ok(client.get(f"{path}/trials", params={"sort": "value", "limit": 3}))
    assert page["after"] == {"number": 2, "value": 2.0}
    study.observe(2, 9.0, amend=True)
    query = {"sort": "value", "limit": 2, "after": 2, "after_value": 2.0}
    more = ok(client.get(f"{path}/trials", params=query))
    assert [trial["number"] for trial in more["trials"]] == [3, 4] and more["events"] == page["events"] + 1


def test_filters_of_trials(client, create, path):
    study = create(bl.BayesOpt({"x": (0.0, 1.0)}, seed=0))
    for trial in study.suggest(n=12):
        trial.observe(0.5 + 0.1 * trial.params["x"])
    with pytest.warns(bl.BelatedWarning):
        study.observe(study.suggest(), 57.0, check=True)
    study.suggest(expires_after=0.0)
    study.suggest(expires_after=3600.0)
    study.add({"x": 0.9})
    time.sleep(0.01)

    def numbers(**query):
        return [trial["number"] for trial in ok(client.get(f"{path}/trials", params=query))["trials"]]

    assert numbers(marked=True) == [12] and numbers(late=True) == [13]
    assert numbers(marked=True, late=True) == [] and numbers(state="pending") == [13, 14, 15]
    study.revise(space={"x": (0.0, 0.8)})
    forbidden = numbers(forbidden=True)
    assert 15 in forbidden and forbidden == sorted(bl.Study.load(study.name, study.store).forbidden)
    study.confirm(12)
    assert numbers(marked=True) == []
    page = ok(client.get(f"{path}/trials", params={"limit": 2}))
    assert (page["total"], page["next"], page["after"]) == (16, 2, None)


def numbers_of(client, path, **query):
    return [trial["number"] for trial in ok(client.get(f"{path}/trials", params=query))["trials"]]


def test_pages_by_columns(client, create, path):
    space = {"x": (0.0, 1.0), "rate": bl.Real(1e-4, 1.0, log=True), "kind": ["b", "a", "c"], "constant": 3}
    space["depth"] = bl.Integer(1, 9, when={"kind": "b"})
    study = create(bl.RandomSearch(space, context={"heat": (0.0, 1.0)}, seed=0))
    chance = random.Random(0)
    wells = [{"well": f"{row}{column}"} for row in "BA" for column in range(1, 13)] + [{"well": 7}, None]
    chance.shuffle(wells)
    for attrs in wells:
        study.suggest(context={"heat": chance.random()}, attrs=attrs)
    params = [trial.params for trial in study.trials]
    study.observe(4, 1.0, params=params[4] | {"x": 2.0})  # the trial was run beyond a bound
    params[4] = params[4] | {"x": 2.0}
    for name in ("x", "rate"):
        expected = sorted(range(26), key=lambda number: params[number][name])
        assert pages(client, path, 7, sort=f"params.{name}") == expected
        assert pages(client, path, 5, sort=f"params.{name}", descending=True) == expected[::-1]
    # Choices have the order of their declaration, and inactive parameters come last.
    assert pages(client, path, 3, sort="params.kind") == sorted(
        range(26), key=lambda number: ("bac".index(params[number]["kind"]), number)
    )
    assert pages(client, path, 4, sort="params.depth") == sorted(
        range(26), key=lambda number: (params[number].get("depth") or 10, number)
    )
    assert pages(client, path, 6, sort="params.constant") == list(range(26))
    heat = [trial.context["heat"] for trial in study.trials]
    assert pages(client, path, 4, sort="context.heat") == sorted(range(26), key=heat.__getitem__)
    # Numbers come before texts, A2 before A10, and trials without the attribute last.
    given = {(each or {}).get("well"): number for number, each in enumerate(wells)}
    ordered = [7, *(f"{row}{column}" for row in "AB" for column in range(1, 13)), None]
    assert pages(client, path, 5, sort="attrs.well") == [given[well] for well in ordered]
    refused(client.get(f"{path}/trials", params={"sort": "params.y"}), 422, "parameters")


def test_candidates_are_sorted_by_their_columns(client, create, path):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"size": [3.0, 1.0, 2.0], "kind": ["b", "a", "b"]})
    study = create(bl.RandomSearch(candidates=table, seed=0))
    study.suggest(n=3)
    sizes = [trial.params["size"] for trial in study.trials]
    assert pages(client, path, 2, sort="params.size") == sorted(range(3), key=sizes.__getitem__)


def test_authors_states_and_lists_of_numbers(client, create, path):
    outcomes = {"yield": "maximize", "cost": bl.Record()}
    study = create(bl.RandomSearch({"x": (0.0, 1.0)}, outcomes=outcomes, curve=bl.Curve(3), seed=0))
    study.as_user("anna").suggest(n=3)
    study.suggest(n=3, expires_after=0.0)
    study.suggest(expires_after=3600.0)
    study.as_user("tom").observe(0, {"yield": 1.0, "cost": 2.0})
    study.as_user("tom").fail(3, outcome="cost")
    study.as_user("tom").note(4, "a remark")
    study.report(5, 0.5, 1)
    time.sleep(0.01)
    assert numbers_of(client, path, by="anna") == [0, 1, 2] and numbers_of(client, path, by="tom") == [0]
    assert numbers_of(client, path, by="nobody") == []
    assert numbers_of(client, path, failed=True) == [3] and numbers_of(client, path, curve=True) == [5]
    assert numbers_of(client, path, ended=True) == [0]
    assert numbers_of(client, path, worklist=True) == [1, 2, 3, 4, 5, 6]
    assert numbers_of(client, path, worklist=True, sort="state") == [3, 4, 5, 6, 1, 2]
    assert numbers_of(client, path, numbers="5,0,99,5") == [0, 5]
    assert numbers_of(client, path, numbers="5,0", worklist=True) == [5]
    for wrong in ("", "1,", "a", "1;2", "-1"):
        refused(client.get(f"{path}/trials", params={"numbers": wrong}), 422, "numbers")


def test_the_first_page_of_many_trials_is_that_of_a_whole_sort(client, create, path):
    study = create(bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))
    chance = random.Random(1)
    study.add([{"x": chance.random()} for _ in range(300)], [float(chance.randrange(4)) for _ in range(300)])
    values = [trial.value for trial in study.trials]
    for descending in (False, True):
        sign = -1.0 if descending else 1.0
        expected = sorted(range(300), key=lambda number: (sign * values[number], number))
        for limit in (1, 50, 299, 300):
            assert pages(client, path, limit, sort="value", descending=descending) == expected
