"""The server uses the revisions that other processes make."""

import pytest

import belated as bl
from tests.system.serve.test_api import ok, refused


def test_the_server_reads_a_revision_of_another_process(client, study, path):
    first, second = ok(client.post(f"{path}/suggest", json={"n": 2}))["trials"]
    ok(client.post(f"{path}/trials/0/observe", json={"value": 1.0}))
    study.revise(space={"x": (0.0, 2.0), "time": (1.0, 24.0)}, fill={"time": 12.0})
    found = ok(client.get(f"{path}/trials/0"))
    assert found["params"] == first["params"] | {"time": 12.0} and found["left_out"] is None
    assert [each["name"] for each in ok(client.get(f"{path}/definition"))["problem"]["space"]] == ["x", "time"]
    # A page with later events has all trials, because their params changed.
    page = ok(client.get(f"{path}/trials", params={"since": 3}))
    assert [trial["number"] for trial in page["trials"]] == [0, 1]
    ok(client.post(f"{path}/trials/1/observe", json={"value": 2.0}))
    [third] = ok(client.post(f"{path}/suggest", json={}))["trials"]
    assert {*third["params"]} == {"x", "time"}
    refused(client.post(f"{path}/trials/2/observe", json={"value": 2.0, "params": {"x": 0.5}}), 422, "time")
    study.sync()
    assert study.trial(1).value == 2.0 and study.trial(2).params == third["params"]

    with pytest.warns(bl.BelatedWarning):
        study.revise(space={"x": (0.0, 2.0)}, keep={"time": 12.0})
    ok(client.post(f"{path}/trials/2/observe", json={"value": 9.0}))
    found = ok(client.get(f"{path}/trials/2"))
    assert found["value"] == 9.0 and found["params"] == third["params"] and "time" in found["left_out"]
    assert ok(client.get(f"{path}/best"))["trial"]["number"] == 1


def test_a_trial_at_earlier_candidates_has_its_row_and_no_index(client, create, path):
    study = create(bl.BayesOpt(candidates=[[1.0], [2.0], [3.0]], seed=0))
    first, second = ok(client.post(f"{path}/suggest", json={"n": 2}))["trials"]
    ok(client.post(f"{path}/trials/1/observe", json={"value": 1.0, "params": first["index"]}))
    with pytest.warns(bl.BelatedWarning):
        study.revise(candidates=[[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]])
    found = ok(client.get(f"{path}/trials/1"))
    assert (found["index"], found["x"], found["index_run"], found["x_run"]) == (None, second["x"], None, first["x"])
    ok(client.post(f"{path}/trials/0/observe", json={"value": 2.0, "params": 2}))
    found = ok(client.get(f"{path}/trials/0"))
    assert (found["index"], found["x"], found["index_run"], found["x_run"]) == (None, first["x"], 2, None)
    assert study.trial(0).x.tolist() == first["x"]


def test_the_server_cannot_suggest_under_constraints_of_another_process(client, study, path):
    study.revise(constraints=[lambda params: params["x"] < 0.5])
    refused(client.post(f"{path}/suggest", json={}), 422, "constraints")
    study.suggest()
    assert ok(client.post(f"{path}/trials/0/observe", json={"value": 1.0}))["state"] == "observed"


SWAPPED = {"solvent": {"tea": "oil", "oil": "tea"}}
GOALS = {"yield": "maximize", "purity": bl.AtLeast(0.5), "cost": bl.Record()}


def test_swapped_names_are_those_of_the_revision_in_the_request(client, create, path):
    study = create(bl.RandomSearch({"x": (0.0, 1.0), "solvent": ["tea", "oil"]}, seed=0))
    known = ok(client.post(f"{path}/suggest", json={"n": 2}))["revision"]
    study.revise(map=SWAPPED)
    given = {"value": 1.0, "params": {"x": 0.25, "solvent": "tea"}}
    ok(client.post(f"{path}/trials/0/observe", json=given | {"revision": known}))
    ok(client.post(f"{path}/trials/1/observe", json=given))  # without a revision, the present names
    assert [trial.params_run["solvent"] for trial in bl.Study.load(study.name, study.store).trials] == ["oil", "tea"]
    for revision, solvent in ((known, "oil"), (2, "tea"), (None, "tea")):
        body = {"fixed": {"solvent": "tea"}} | ({} if revision is None else {"revision": revision})
        answer = ok(client.post(f"{path}/suggest", json=body))
        assert (answer["trials"][0]["params"]["solvent"], answer["revision"]) == (solvent, 2)


def test_an_index_is_that_of_the_revision_in_the_request(client, create, path):
    study = create(bl.RandomSearch(candidates=[[1.0], [2.0]], seed=0))
    known = ok(client.post(f"{path}/suggest", json={"n": 2}))["revision"]
    study.revise(candidates=[[9.0], [1.0], [2.0]])
    ok(client.post(f"{path}/trials/0/observe", json={"value": 1.0, "params": 0, "revision": known}))
    ok(client.post(f"{path}/trials/1/observe", json={"value": 1.0, "params": 0}))
    assert [trial.params_run.tolist() for trial in bl.Study.load(study.name, study.store).trials] == [[1.0], [9.0]]


def test_outcomes_are_found_by_their_names_of_the_revision_in_the_request(client, create, path):
    study = create(bl.RandomSearch({"x": (0.0, 1.0)}, seed=0, outcomes=GOALS))
    known = ok(client.post(f"{path}/suggest", json={"n": 3}))["revision"]
    study.revise(outcomes={name: GOALS[name] for name in ("purity", "yield")})
    values = {"yield": 1.0, "purity": 0.75, "cost": 3.0}
    ok(client.post(f"{path}/trials/0/observe", json={"value": values, "std": {"purity": 0.125}, "revision": known}))
    ok(client.post(f"{path}/trials/1/fail", json={"outcome": "purity", "revision": known}))
    ok(client.post(f"{path}/trials/0/withdraw", json={"outcome": "yield", "revision": known}))
    trials = bl.Study.load(study.name, study.store).trials
    assert {name: (each.state, each.std) for name, each in trials[0].outcomes.items()} == {
        "purity": ("observed", 0.125),
        "yield": ("withdrawn", None),
    }
    assert {name: each.state for name, each in trials[1].outcomes.items()} == {"purity": "failed", "yield": "pending"}
    # The removed outcome is unknown without the revision, and nothing of such a request is stored.
    refused(client.post(f"{path}/trials/2/observe", json={"value": values}), 422, "cost")
    assert study.trial(2).values == {}


def test_a_request_that_cannot_be_carried_names_the_change(client, create, path):
    study = create(bl.RandomSearch({"x": (0.0, 1.0), "solvent": ["tea", "oil"]}, seed=0, outcomes=GOALS))
    known = ok(client.post(f"{path}/suggest", json={"n": 2}))["revision"]
    study.revise(outcomes={name: GOALS[name] for name in ("purity", "yield")})
    with pytest.warns(bl.BelatedWarning):
        study.revise(space={"x": (0.0, 1.0)}, keep={"solvent": "oil"})
    n_events = ok(client.get(path))["events"]
    at = {"revision": known}
    tea = at | {"value": {"yield": 1.0}, "params": {"x": 0.5, "solvent": "tea"}}
    refused(client.post(f"{path}/trials/0/observe", json=tea), 422, "removed by revision 3")
    refused(client.post(f"{path}/suggest", json=at | {"fixed": {"solvent": "tea"}}), 422, "removed by revision 3")
    cost = at | {"value": {"cost": 1.0}}
    refused(client.post(f"{path}/trials/0/observe", json=cost), 422, "'cost' was removed by revision 2")
    refused(client.post(f"{path}/trials/0/fail", json=at | {"outcome": "cost"}), 422, "removed by revision 2")
    assert ok(client.get(path))["events"] == n_events
    oil = tea | {"params": {"x": 0.5, "solvent": "oil"}}
    ok(client.post(f"{path}/trials/0/observe", json=oil))
    assert bl.Study.load(study.name, study.store).trial(0).params_run == {"x": 0.5}


@pytest.mark.parametrize("revision", [0, 3, -1, 1.5, "one"])
def test_a_revision_that_does_not_exist_is_refused(client, study, path, revision):
    ok(client.post(f"{path}/suggest", json={}))
    study.revise(space={"x": (0.0, 2.0)})
    for request, body in (("suggest", {}), ("trials/0/observe", {"value": 1.0}), ("trials/0/fail", {})):
        refused(client.post(f"{path}/{request}", json=body | {"revision": revision}), 422, "revision")
    assert [trial.state for trial in bl.Study.load(study.name, study.store).trials] == ["pending"]
