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
    refused(client.get(f"{path}/trials", params={"descending": True}), 422, "sort=")
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
