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
