"""The API of `belated serve`. The tests compare answers over HTTP with the study in the store."""

import time

import pytest

import belated as bl
from belated.study.definition import definition_of
from campaigns import service

SPACE = {"x": bl.Real(1e-3, 10.0, log=True), "n": bl.Integer(1, 5), "kind": ["a", ("b", 1), None]}


def ok(answer, status=200):
    """The data of an answer."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    return answer.json()


def refused(answer, status, *words):
    """Check that the answer is a problem whose detail contains the given words; return the answer's data."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    found = answer.json()
    assert found["status"] == status and found["title"]
    assert all(word in found["detail"] for word in words), found
    return found


def synced(study):
    """Return the study after it has read the events that the server wrote."""
    study.sync()
    return study


def as_json(trial):
    """Return the data of a trial in the form of the API, without times."""
    error = trial.error
    return {
        "number": trial.number,
        "params": {name: list(value) if isinstance(value, tuple) else value for name, value in trial.params.items()},
        "context": trial.context,
        "fidelity": trial.fidelity,
        "state": trial.state,
        "value": trial.value,
        "std": trial.std,
        "cost": trial.cost,
        "duration": trial.duration,
        "attrs": trial.attrs,
        "error": error and {"type": error.type, "message": error.message, "traceback": error.traceback},
        "suggested_at": trial.suggested_at,
        "observed_at": trial.observed_at,
        "ended_at": trial.ended_at,
        "delay": trial.delay,
        "expires_at": trial.expires_at,
    }


def same(found, trial):
    """Return whether an answer describes a trial."""
    return {name: found[name] for name in as_json(trial)} == as_json(trial)


def test_trials_are_started_and_reported_as_with_a_study(client, create, path):
    study = create(bl.BayesOpt(SPACE, direction="minimize", seed=1))
    trials = ok(client.post(f"{path}/suggest", json={"n": 4}))["trials"]
    assert [trial["number"] for trial in trials] == [0, 1, 2, 3]
    assert all(same(found, synced(study).trial(i)) for i, found in enumerate(trials))
    report = {"value": 2.5, "std": 0.1, "cost": 3, "duration": 1.5, "attrs": {"by": ["Ada"]}}
    found = ok(client.post(f"{path}/trials/1/observe", json=report))
    assert found["state"] == "observed" and found["value"] == 2.5 and found["attrs"] == {"by": ["Ada"]}
    run = {"x": 0.5, "n": 2, "kind": ["b", 1]}
    found = ok(client.post(f"{path}/trials/0/observe", json={"value": 1.5, "params": run}))
    assert found["params_run"] == run and synced(study).trial(0).params_run == {"x": 0.5, "n": 2, "kind": ("b", 1)}
    found = ok(client.post(f"{path}/trials/2/fail", json={"error": "boom", "attrs": {"node": 7}}))
    assert found["state"] == "failed" and found["error"] == {"type": "", "message": "boom", "traceback": None}
    assert ok(client.post(f"{path}/trials/3/abandon"))["state"] == "abandoned"
    page = ok(client.get(f"{path}/trials"))
    assert len(page["trials"]) == 4 and page["next"] is None
    assert all(same(found, synced(study).trial(i)) for i, found in enumerate(page["trials"]))
    best = ok(client.get(f"{path}/best"))["trial"]
    assert same(best, study.best_trial_) and best["number"] == 0
    about = ok(client.get(path))
    assert (about["optimizer"], about["direction"], about["clock"]) == ("BayesOpt", "minimize", "iterations")
    counts = {"pending": 0, "observed": 2, "failed": 1, "abandoned": 1, "stopped": 0, "withdrawn": 0}
    assert about["counts"] == counts
    assert (about["trials"], about["events"], about["best"]) == (4, synced(study)._log.n_events(), best)
    assert ok(client.get(f"{path}/trials/1")) == page["trials"][1]
    # A late value is accepted in every state of the trial.
    for number in (2, 3):
        assert ok(client.post(f"{path}/trials/{number}/observe", json={"value": 9.0}))["state"] == "observed"
    assert [trial.value for trial in study.trials] == [1.5, 2.5, 9.0, 9.0]


def test_remarks_and_attributes_are_stored(client, create, path):
    create(bl.RandomSearch(SPACE, seed=0))
    client.post(f"{path}/suggest", json={"n": 1})
    before = time.time()
    ok(client.post(f"{path}/trials/0/note", json={"attrs": {"well": "A1"}}))
    for _ in range(2):  # the second request repeats the first one
        found = ok(client.post(f"{path}/trials/0/note", json={"remark": "cloudy", "attrs": {"lot": 3}}))
    assert found["attrs"] == {"well": "A1", "lot": 3}
    [remark] = found["remarks"]
    assert remark["text"] == "cloudy" and before <= remark["at"] <= time.time()
    refused(client.post(f"{path}/trials/4/note", json={"remark": "cloudy"}), 404, "trial 4 is unknown")


def test_the_answer_to_a_value_far_from_the_expected_ones_has_a_warning(client, create, path):
    create(bl.BayesOpt(SPACE, seed=0))
    ok(client.post(f"{path}/suggest", json={"n": 10}))
    for number in range(9):
        assert ok(client.post(f"{path}/trials/{number}/observe", json={"value": 0.6 + 0.02 * number}))["warnings"] == []
    for _ in range(2):  # a repeated report does not confirm the value
        [warning] = ok(client.post(f"{path}/trials/9/observe", json={"value": 79.1}))["warnings"]
    assert (warning["number"], warning["outcome"]) == (9, None)
    assert warning["low"] < 0.6 and 0.76 < warning["high"] < 79.1 and "79.1" in warning["text"]
    assert ok(client.post(f"{path}/trials/9/confirm"))["warnings"] == []


def test_requests_name_their_author(client, create, path):
    create(bl.RandomSearch(SPACE, seed=1))
    [trial] = ok(client.post(f"{path}/suggest", json={"by": "Ana"}))["trials"]
    assert (trial["started_by"], trial["finished_by"]) == ("Ana", None)
    ok(client.post(f"{path}/trials/0/note", json={"remark": "cloudy", "by": "Ben"}))
    found = ok(client.post(f"{path}/trials/0/observe", json={"value": 1.0, "by": "bench-2"}))
    assert found["finished_by"] == "bench-2" and [each["by"] for each in found["remarks"]] == ["Ben"]
    assert ok(client.post(f"{path}/suggest"))["trials"][0]["started_by"] is None
    for by in ("", "a" * 201, "two\nlines", 3):
        refused(client.post(f"{path}/trials/0/note", json={"remark": "x", "by": by}), 422)


def test_check_fits_the_model_and_returns_a_warning(client, create, path):
    study = create(bl.BayesOpt({"x": (0.0, 1.0)}, seed=1))
    xs = [(7 * i % 24) / 24 for i in range(24)]
    study.add([{"x": x} for x in xs], [0.5 + 0.3 * x for x in xs])
    ok(client.post(f"{path}/suggest", json={"fixed": {"x": 0.3}}))
    found = ok(client.post(f"{path}/trials/24/observe", json={"value": -0.59, "check": True}))
    assert [each["number"] for each in found["warnings"]] == [24]


def test_results_are_withdrawn_all_or_none(client, create, path):
    study = create(bl.RandomSearch(SPACE, seed=1))
    ok(client.post(f"{path}/suggest", json={"n": 4}))
    for number, value in enumerate([1.0, 54.0, 55.0]):
        ok(client.post(f"{path}/trials/{number}/observe", json={"value": value}))
    found = ok(client.post(f"{path}/trials/1/withdraw", json={"reason": "contaminated"}))
    assert (found["state"], found["value"]) == ("withdrawn", None)
    withdrawal = found["withdrawal"]
    assert (withdrawal["state"], withdrawal["value"], withdrawal["reason"]) == ("observed", 54.0, "contaminated")
    events = synced(study)._log.n_events()
    refused(client.post(f"{path}/trials/1/withdraw"), 422, "trial 1 is withdrawn and cannot be withdrawn")
    refused(client.post(f"{path}/withdraw", json={"numbers": [0, 2, 3]}), 422, "trial 3 is pending")
    refused(client.post(f"{path}/withdraw", json={"numbers": [0, 4]}), 404, "trial 4 is unknown")
    assert synced(study)._log.n_events() == events
    found = ok(client.post(f"{path}/withdraw", json={"numbers": [2, 0], "reason": "outage"}))
    assert [(trial["number"], trial["state"]) for trial in found["trials"]] == [(2, "withdrawn"), (0, "withdrawn")]
    about = ok(client.get(path))
    assert about["best"] is None and about["counts"]["withdrawn"] == 3


def test_outcomes_are_reported_apart(client, create, path):
    outcomes = {"error": "minimize", "memory": bl.AtMost(4.0), "note": bl.Record()}
    study = create(bl.RandomSearch(SPACE, outcomes=outcomes, seed=1))
    ok(client.post(f"{path}/suggest", json={"n": 2}))

    def report(number, what, status=200, **body):
        answer = client.post(f"{path}/trials/{number}/{what}", json=body)
        return ok(answer) if status == 200 else refused(answer, status)

    found = report(0, "observe", value={"error": 0.5}, std={"error": 0.1}, key="first")
    assert (found["state"], found["missing"], found["within_bounds"]) == ("pending", ["memory", "note"], False)
    assert found["outcomes"]["error"] == {"state": "observed", "value": 0.5, "std": 0.1, "withdrawal": None}
    events = synced(study)._log.n_events()
    report(0, "observe", value={"error": 0.5}, std={"error": 0.1}, key="first")
    report(0, "observe", 409, value={"memory": 3.0, "error": 0.25})
    for body in ({"value": 0.5}, {"value": {}}, {"value": {"errors": 1.0}}, {"value": {"memory": "3"}}):
        report(0, "observe", 422, **body)
    report(0, "fail", 422, outcome="errors")
    assert synced(study)._log.n_events() == events
    found = report(0, "observe", value={"memory": 3.0, "note": None}, std={"memory": None})
    assert found["value"] == 0.5 and found["within_bounds"] and ok(client.get(path))["best"]["number"] == 0
    assert report(0, "abandon", outcome="note")["state"] == "observed"
    found = report(0, "withdraw", outcome="memory", reason="wrong unit")
    assert found["outcomes"]["memory"]["withdrawal"].items() >= {"value": 3.0, "reason": "wrong unit"}.items()
    assert ok(client.get(path))["best"] is None
    assert report(1, "fail", outcome="memory", error="no space")["missing"] == ["error", "note"]
    assert [each["missing"] for each in ok(client.get(f"{path}/trials"))["trials"]] == [[], ["error", "note"]]
    for number in (0, 1):
        trial, found = synced(study).trial(number), ok(client.get(f"{path}/trials/{number}"))
        assert {name: each["state"] for name, each in found["outcomes"].items()} == {
            name: each.state for name, each in trial.outcomes.items()
        }
    found = ok(client.post(f"{path}/withdraw", json={"numbers": [0], "outcome": "error"}))
    assert found["trials"][0]["state"] == "withdrawn"


def test_answers_have_the_front_of_several_objectives(client, create, path):
    outcomes = {"yield": "maximize", "cost": bl.Minimize(at_most=9.0)}
    study = create(bl.BayesOpt(SPACE, outcomes=outcomes, seed=1))
    assert ok(client.get(path))["pareto"] == []
    ok(client.post(f"{path}/suggest", json={"n": 4}))
    for number, (produced, cost) in enumerate([(1.0, 2.0), (0.5, 3.0), (2.0, 5.0)]):
        found = ok(client.post(f"{path}/trials/{number}/observe", json={"value": {"yield": produced, "cost": cost}}))
        assert found["value"] is None and found["state"] == "observed"
    answer = ok(client.get(path))
    assert answer["best"] is None and answer["pareto"] == [0, 2]
    assert ok(client.get(f"{path}/best")) == {"trial": None, "pareto": [0, 2]}
    assert "several objectives" in ok(client.get(f"{path}/importance"))["unknown"]
    for what in ("definition", "forecast", "finals", "trials", "trials/3"):
        ok(client.get(f"{path}/{what}"))
    assert [trial.number for trial in synced(study).pareto_] == [0, 2]


def test_a_study_with_outcomes_can_be_created(client, path, request):
    made = bl.BayesOpt(SPACE, outcomes={"error": bl.Minimize(at_most=5.0), "purity": bl.Between(0.5, 1.0)}, seed=0)
    name = request.node.name
    ok(client.post("/v1/studies", json={"name": name, "definition": definition_of(made)}), 201)
    assert ok(client.get(f"{path}/definition"))["problem"]["outcomes"] == definition_of(made)["problem"]["outcomes"]
    ok(client.post(f"{path}/suggest", json={"n": 3}))
    for number, values in enumerate([{"purity": 0.75}, {"error": 1.0, "purity": 0.75}, {"error": 0.5, "purity": 0.25}]):
        ok(client.post(f"{path}/trials/{number}/observe", json={"value": values}))
    assert ok(client.get(path))["best"]["number"] == 1
    assert ok(client.get(f"{path}/importance"))["unknown"] is None


def test_steps_are_reported_and_the_answer_says_which_trials_stop(client, create, path):
    study = create(bl.RandomSearch({"x": (0.0, 1.0)}, curve=bl.Curve(5), stopping="asha", seed=1))
    ok(client.post(f"{path}/suggest", json={"n": 3}))
    found = ok(client.post(f"{path}/trials/0/report", json={"step": 1, "value": 2.0}))
    assert found["state"] == "pending" and found["curve"] == [[1, 2.0]]
    ok(client.post(f"{path}/trials/0/report", json={"step": 2, "value": None}))
    assert ok(client.get(f"{path}/trials/0"))["curve"] == [[1, 2.0], [2, None]]
    assert ok(client.post(f"{path}/trials/1/report", json={"step": 1, "value": 1.0}))["state"] == "stopped"
    # A repetition has no effect, and a later report is stored.
    assert ok(client.post(f"{path}/trials/1/report", json={"step": 1, "value": 1.0}))["state"] == "stopped"
    ok(client.post(f"{path}/trials/1/report", json={"step": 2, "value": 1.5}))
    assert ok(client.post(f"{path}/trials/2/stop"))["state"] == "stopped"
    assert client.post(f"{path}/trials/2/report", json={"step": 6, "value": 1.5}).status_code == 422
    assert [trial.state for trial in synced(study).trials] == ["pending", "stopped", "stopped"]
    assert synced(study).trial(1).curve == {1: 1.0, 2: 1.5}
    assert ok(client.get(path))["counts"]["stopped"] == 2


def test_an_answer_to_a_report_has_only_the_step_of_the_report(client, create, path):
    create(bl.RandomSearch({"x": (0.0, 1.0)}, seed=0, curve=bl.Curve(9)))
    ok(client.post(f"{path}/suggest"))
    reports = [(1, 0.5), (4, None), (2, 0.25), (1, 0.5)]
    for step, value in reports:
        answer = ok(client.post(f"{path}/trials/0/report", json={"step": step, "value": value}))
        assert answer["curve"] == [[step, value]]
    # A report of an earlier attempt is not a part of the curve.
    ok(client.post(f"{path}/trials/0/report", json={"step": 3, "value": 1.0, "attempt": 1}))
    assert ok(client.post(f"{path}/trials/0/report", json={"step": 5, "value": 9.0, "attempt": 0}))["curve"] == []
    assert ok(client.get(f"{path}/trials/0"))["curve"] == [[1, 0.5], [2, 0.25], [3, 1.0]]


@pytest.mark.parametrize("step", [1, 2**32, 2**64, 10**30])
def test_a_report_to_a_study_without_a_curve_is_422(client, study, path, step):
    ok(client.post(f"{path}/suggest"))
    refused(client.post(f"{path}/trials/0/report", json={"step": step, "value": 1.0}), 422, "curve is not declared")


def test_the_server_sees_changes_by_other_processes(client, study, path):
    assert ok(client.get(path))["trials"] == 0 and ok(client.get(f"{path}/best")) == {"trial": None, "pareto": None}
    trials = study.suggest(n=2)
    study.observe(trials[1], 0.5)
    about = ok(client.get(path))
    assert about["counts"]["pending"] == 1 and about["best"]["number"] == 1
    assert ok(client.post(f"{path}/suggest"))["trials"][0]["number"] == 2
    assert study.n_trials == 3


def test_forecasts(client, create, path):
    study = create(bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))
    assert ok(client.get(f"{path}/forecast"))["unknown"] == "there are no trials"
    for trial in study.suggest(n=6)[:3]:
        study.observe(trial, 0.5)
    found, forecast = ok(client.get(f"{path}/forecast")), study.forecast()
    assert found.pop("now") == study.delays_.now
    assert found == {name: getattr(forecast, name) for name in found} and found["n_pending"] == 3
    refused(client.get(f"{path}/forecast", params={"now": 5.0}), 422, "clock='iterations'")


def test_forecasts_at_a_given_time(client, create, path):
    now = 0.0
    study = create(bl.RandomSearch({"x": (0.0, 1.0)}, clock="seconds", time=lambda: now, seed=0))
    trials = ok(client.post(f"{path}/suggest", json={"n": 4, "now": 0.0}))["trials"]
    for trial in trials[:2]:
        ok(client.post(f"{path}/trials/{trial['number']}/observe", json={"value": 1.0, "now": 5.0}))
    now = 6.0
    found, forecast = ok(client.get(f"{path}/forecast", params={"now": now})), synced(study).forecast()
    assert found["now"] == now and found["by"] == pytest.approx(forecast.by)
    assert found["expected"] == pytest.approx(forecast.expected) and found["n_pending"] == 2
    for wrong in ("nan", "inf", "1e301", "noon"):
        refused(client.get(f"{path}/forecast", params={"now": wrong}), 422, "now")


def test_contexts_fidelities_and_leases(client, create, path):
    study = create(
        bl.RandomSearch({"x": (0.0, 1.0)}, context={"day": ["mo", ("tu", 2)]}, fidelity=bl.Fidelity(1, 81), seed=0)
    )
    body = {"context": {"day": ["tu", 2]}, "fidelity": 9, "expires_after": 3600}
    (trial,) = ok(client.post(f"{path}/suggest", json=body))["trials"]
    assert trial["context"] == {"day": ["tu", 2]} and trial["fidelity"] == 9
    assert trial["expires_at"] == synced(study).trial(0).expires_at
    assert 3590 < trial["expires_at"] - trial["started_at"] < 3610
    assert trial["lease_ends_at"] == trial["expires_at"] and trial["lease_ended"] is False
    refused(client.post(f"{path}/suggest"), 422, "context is missing")
    refused(client.post(f"{path}/suggest", json={"context": {"day": "we"}}), 422, "day")
    refused(client.post(f"{path}/suggest", json=body | {"fidelity": 82}), 422, "fidelity")
    refused(client.post(f"{path}/trials/0/observe", json={"value": 1.0, "fidelity": 27}), 422, "fidelity")
    assert study.n_trials == 1 and synced(study).trial(0).state == "pending"


def test_fixed_and_shared_values(client, create, path):
    study = create(bl.BayesOpt(SPACE, seed=0))

    def values(name, **body):
        return [trial["params"][name] for trial in ok(client.post(f"{path}/suggest", json=body))["trials"]]

    assert values("x", n=3, fixed={"x": 0.25, "n": [2, 3]}) == [0.25] * 3
    keyed = {"n": 3, "fixed": {"n": {"low": 4, "high": 5}}, "key": "a"}
    assert values("n", **keyed) == values("n", **keyed)
    refused(client.post(f"{path}/suggest", json=keyed | {"shared": ["n"]}), 422, "key='a' started 3 trials before")
    assert values("kind", n=2, fixed={"kind": [["b", 1]]}) == [["b", 1]] * 2
    assert values("kind", n=1, fixed={"kind": None}) == [None]
    assert len(set(values("n", n=4, shared=["n"]))) == 1
    n_trials = synced(study).n_trials
    for body in (
        {"fixed": {"x": 100.0}},
        {"fixed": {"y": 1.0}},
        {"fixed": {"x": {"low": 2, "high": 1}}},
        {"fixed": {"x": []}},
        {"fixed": [1]},
        {"fixed": {"x": {"a": 1}}},
        {"shared": "n"},
        {"shared": ["y"]},
        {"shared": [1]},
        {"fixed": {"n": 2}, "n": 3, "key": "a"},
    ):
        answer = client.post(f"{path}/suggest", json=body)
        assert answer.status_code == 422, body
    assert synced(study).n_trials == n_trials


def test_candidates_are_named_by_their_index_and_row(client, create, path):
    study = create(bl.RandomSearch(candidates=[[1, 5], [2, 6], [3, 7]], seed=0))
    (trial,) = ok(client.post(f"{path}/suggest"))["trials"]
    known = synced(study).trial(0)
    assert (trial["params"], trial["x"], trial["index"]) == (None, known.x.tolist(), known.index)
    other = (known.index + 1) % 3
    found = ok(client.post(f"{path}/trials/0/observe", json={"value": 1.0, "params": [other + 1, other + 5]}))
    assert found["index_run"] == other == synced(study).trial(0).index_run
    refused(client.post(f"{path}/trials/0/observe", json={"value": 2.0, "params": 3, "amend": True}), 422, "index")
    (fixed,) = ok(client.post(f"{path}/suggest", json={"fixed": {"1": 6}, "shared": ["0"]}))["trials"]
    assert fixed["index"] == 1
    refused(client.post(f"{path}/suggest", json={"fixed": {"2": 6}}), 422, "column")


def test_candidates_with_names_have_params(client, path):
    rows = [[1, "a", None], [2, "b", 0.5], [3, "a", 1.0]]
    candidates = {"names": ["n", "c", "gap"], "rows": rows}
    name = path.rsplit("/", 1)[1]
    definition = {"problem": {"candidates": candidates}, "strategy": {"kind": "BayesOpt"}, "seed": 0}
    assert client.post("/v1/studies", json={"name": name, "definition": definition}).status_code == 201
    assert ok(client.get(f"{path}/definition"))["problem"]["candidates"] == candidates
    (trial,) = ok(client.post(f"{path}/suggest"))["trials"]
    known = [
        {key: value for key, value in zip(["n", "c", "gap"], row, strict=True) if value is not None} for row in rows
    ]
    assert trial["params"] == known[trial["index"]] and trial["x"] is None
    other = (trial["index"] + 1) % 3
    found = ok(client.post(f"{path}/trials/0/observe", json={"value": 1.0, "params": known[other]}))
    assert found["params_run"] == known[other] and not found["outside"]
    wrong = {"value": 1.0, "params": known[0] | {"c": "z"}, "amend": True}
    refused(client.post(f"{path}/trials/0/observe", json=wrong), 422, "'c'")
    assert {each["name"] for each in ok(client.get(f"{path}/importance"))["importance"]} == {"n", "c", "gap"}


def test_the_time_may_be_given_if_the_clock_counts_seconds(client, create, path):
    study = create(bl.RandomSearch({"x": (0.0, 1.0)}, clock="seconds", seed=0))
    (trial,) = ok(client.post(f"{path}/suggest", json={"now": 100, "expires_after": 5}))["trials"]
    assert trial["suggested_at"] == 100.0 and trial["expires_at"] == 105.0
    # The lease takes five seconds by the server's clock, too.
    assert trial["lease_ends_at"] == trial["started_at"] + 5.0 and trial["lease_ended"] is False
    (short,) = ok(client.post(f"{path}/suggest", json={"now": 101, "expires_after": 0}))["trials"]
    assert ok(client.get(f"{path}/trials/{short['number']}"))["lease_ended"] is True
    found = ok(client.post(f"{path}/trials/0/observe", json={"value": 1.0, "now": 130.5}))
    assert found["delay"] == 30.5 == synced(study).trial(0).delay
    ok(client.post(f"{path}/suggest"))
    assert synced(study).trial(2).suggested_at > 1e9


def test_times_of_writing_come_from_the_server(client, create, path):
    study = create(bl.RandomSearch({"x": (0.0, 1.0)}, clock="seconds", seed=0))
    start = time.time()
    (trial,) = ok(client.post(f"{path}/suggest", json={"now": 100}))["trials"]
    found = ok(client.post(f"{path}/trials/0/observe", json={"value": 1.0, "now": 130.5}))
    assert start - 1 < trial["started_at"] <= found["changed_at"] < time.time() + 1
    # Another process, which opens the study without the server, passes the time of its own clock.
    bl.Study.load(study.name, study._store.url, time=lambda: 200.0).suggest()
    (_, other) = ok(client.get(f"{path}/trials"))["trials"]
    assert other["suggested_at"] == 200.0 and other["started_at"] > start - 1


@pytest.mark.parametrize("now", [1.7e308, -1.7e308])
def test_times_without_finite_differences_are_refused(client, create, path, now):
    study = create(bl.RandomSearch({"x": (0.0, 1.0)}, clock="seconds", seed=0))
    ok(client.post(f"{path}/suggest", json={"now": -now / 1e100}))
    refused(client.post(f"{path}/trials/0/observe", json={"value": 1.0, "now": now}), 422, "now")
    refused(client.post(f"{path}/suggest", json={"now": now}), 422, "now")
    refused(client.post(f"{path}/suggest", json={"expires_after": abs(now)}), 422, "expires_after")
    assert [trial.state for trial in synced(study).trials] == ["pending"]
    ok(client.get(path))


def test_a_log_with_an_infinite_delay_is_returned_as_json(client, create, path, monkeypatch):
    study = create(bl.BayesOpt({"x": (0.0, 1.0)}, clock="seconds", seed=0))
    times = iter([1.7e308, -1.7e308])
    monkeypatch.setattr(study._optimizer._problem, "wall_time", lambda: next(times))
    study.observe(study.suggest(), 1.0)
    assert ok(client.get(path))["best"]["delay"] is None
    assert ok(client.get(f"{path}/trials"))["trials"][0]["observed_at"] == -1.7e308
    assert ok(client.post(f"{path}/suggest"))["trials"][0]["number"] == 1


def test_the_time_is_refused_if_the_clock_counts_suggestions(client, study, path):
    refused(client.post(f"{path}/suggest", json={"now": 100}), 422, "now=100.0", "clock='iterations'")
    assert study.n_trials == 0


def test_pages_have_every_trial_once(client, study, path):
    trials = study.suggest(n=23)
    for trial in trials[::3]:
        study.observe(trial, 1.0)
    for state in (None, "pending", "observed", "failed"):
        found, start = [], 0
        while start is not None:
            asked = {"limit": 5, "start": start} | ({} if state is None else {"state": state})
            page = ok(client.get(f"{path}/trials", params=asked))
            found += [trial["number"] for trial in page["trials"]]
            start = page["next"]
        assert found == [trial.number for trial in trials if state in (None, trial.state)]


def test_pages_of_studies_have_every_name_once(tmp_path):
    url = f"sqlite:///{tmp_path / 'studies.db'}"
    names = [bl.Study(f"study {i}", url, bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)).name for i in range(7)]
    with service.Service(url) as running, running.client() as client:
        for limit in (1, 3, 7, 100):
            found, start = [], 0
            while start is not None:
                page = ok(client.get("/v1/studies", params={"limit": limit, "start": start}))
                assert 1 <= len(page["studies"]) <= limit
                found += [each["name"] for each in page["studies"]]
                start = page["next"]
            assert found == names
        assert ok(client.get("/v1/studies", params={"start": 7})) == {"studies": [], "next": None}
        refused(client.get("/v1/studies", params={"limit": 0}), 422, "limit")
        refused(client.get("/v1/studies", params={"after": "x"}), 422, "after")


def test_repeated_names_are_refused(client, running):
    x = {"name": "x", "kind": "Real", "low": 0.0, "high": 1.0}
    other = {"name": "y", "kind": "Real", "low": 0.0, "high": 1.0, "when": [["k", ["a"]], ["k", ["b"]]]}
    kinds = {"name": "k", "kind": "Categorical", "choices": ["a", "b"]}
    for space in ([x, x], [x, kinds, other]):
        definition = {"problem": {"space": space}, "strategy": {"kind": "RandomSearch"}}
        refused(client.post("/v1/studies", json={"name": "twice", "definition": definition}), 422, "twice")
    body = b'{"name": "twice", "definition": {"problem": {}, "seed": 1, "seed": 2}}'
    answer = client.post("/v1/studies", content=body, headers={"Content-Type": "application/json"})
    refused(answer, 422, "'seed'", "twice")
    refused(client.get("/v1/studies/twice"), 404)


def test_descriptors_are_a_mapping_or_a_list_in_the_order_of_the_choices(client, running):
    table = {"THF": {"logP": 0.5}, "DMF": {"logP": -1.0}, "water": {"logP": -1.4}}
    forms = {"mapping": dict(reversed(table.items())), "list": list(table.values())}
    for name, given in forms.items():
        solvent = {"name": "s", "kind": "Categorical", "choices": list(table), "descriptors": given}
        definition = {"problem": {"space": [solvent]}, "strategy": {"kind": "BayesOpt"}}
        ok(client.post("/v1/studies", json={"name": name, "definition": definition}), 201)
        study = bl.Study.load(name, running.url)
        assert study.optimizer.domain["s"] == bl.Categorical(list(table), descriptors=table)
    del forms["mapping"]["DMF"]
    definition["problem"]["space"][0]["descriptors"] = forms["mapping"]
    refused(client.post("/v1/studies", json={"name": "missing", "definition": definition}), 422, "'DMF'")


def test_an_encoded_nul_is_not_a_slash(client, running):
    bl.Study("with/slash", running.url, bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))
    ok(client.get("/v1/studies/with%2Fslash"))
    refused(client.get("/v1/studies/with%00slash"), 404)


def test_pages_have_the_changes_since_an_earlier_page(client, study, path):
    trials = study.suggest(n=5)
    events = ok(client.get(f"{path}/trials"))["events"]
    assert ok(client.get(f"{path}/trials", params={"since": events}))["trials"] == []
    study.observe(trials[3], 1.0)
    study.fail(trials[1])
    study.suggest()
    page = ok(client.get(f"{path}/trials", params={"since": events}))
    assert [trial["number"] for trial in page["trials"]] == [1, 3, 5]
    page = ok(client.get(f"{path}/trials", params={"since": events, "state": "failed"}))
    assert [trial["number"] for trial in page["trials"]] == [1]
    assert ok(client.get(f"{path}/trials", params={"since": 10**30}))["trials"] == []


def test_attrs_that_cannot_be_kept_do_not_prevent_a_report(client, study, path):
    study.suggest(n=2)
    body = b'{"value": 1.5, "attrs": {"a": 1' + b"0" * 400 + b', "c": 2}}'
    found = ok(client.post(f"{path}/trials/0/observe", content=body, headers={"content-type": "application/json"}))
    assert found["value"] == 1.5 and found["attrs"] == {"a": "1" + "0" * 400, "c": 2}
    found = ok(client.post(f"{path}/trials/1/fail", json={"error": "boom", "attrs": {"a": 10**400}}))
    assert found["state"] == "failed" and set(found["attrs"]) == {"a"}


def test_times_of_writing_equal_those_in_the_store(client, study, path):
    trial = study.suggest()
    study.observe(trial, 1.0)
    written = [record.at for record in study._store.events(study._log.id, 0)]
    found = ok(client.get(f"{path}/trials/0"))
    assert [found["started_at"], found["changed_at"]] == written


def test_a_call_with_a_key_takes_effect_once(client, study, path):
    body = {"n": 2, "key": "jöb 1"}
    first = ok(client.post(f"{path}/suggest", json=body))
    assert ok(client.post(f"{path}/suggest", json=body)) == first
    report = {"value": 1.0, "replicate": True, "key": "r"}
    told = ok(client.post(f"{path}/trials/0/observe", json=report))
    assert ok(client.post(f"{path}/trials/0/observe", json=report)) == told
    assert study.n_trials == 2 and synced(study)._log.n_events() == 3
    refused(client.post(f"{path}/suggest", json=body | {"n": 3}), 422, "key='jöb 1' started 2 trials before")
    refused(client.post(f"{path}/trials/0/observe", json=report | {"value": 2.0}), 422, "key='r'")
    refused(client.post(f"{path}/suggest", json={"key": "a\nb"}), 422, "printable")
    # Reports of failures do not need a key, because repeating them does not change the study.
    for kind in ("fail", "abandon"):
        assert ok(client.post(f"{path}/trials/1/{kind}")) == ok(client.post(f"{path}/trials/1/{kind}"))
    assert synced(study)._log.n_events() == 5


def test_unknown_studies_and_trials_are_404(client, study, path):
    study.suggest()
    for method, where in (
        ("GET", ""),
        ("GET", "/trials"),
        ("GET", "/best"),
        ("POST", "/suggest"),
        ("GET", "/definition"),
    ):
        found = refused(client.request(method, f"/v1/studies/none{where}"), 404, "there is no study 'none'")
        assert found["error"] == "UnknownStudy"
    for where in ("trials/7", "trials/99999999999999999999999"):
        refused(client.get(f"{path}/{where}"), 404, "there are 1 trials")
        refused(client.post(f"{path}/{where}/fail"), 404)
        refused(client.post(f"{path}/{where}/observe", json={"value": 1.0}), 404)
    refused(client.get("/v2/studies"), 404)
    refused(client.put(path), 405)


def test_a_second_value_is_409(client, create, path):
    study = create(bl.RandomSearch({"x": (0.0, 1.0)}, direction="minimize", seed=0))
    study.observe(study.suggest(), 1.0)
    ok(client.post(f"{path}/trials/0/observe", json={"value": 1.0}))
    found = refused(client.post(f"{path}/trials/0/observe", json={"value": 2.0}), 409, "the value 1.0 already", "amend")
    assert found["error"] == "AlreadyObserved"
    refused(client.post(f"{path}/trials/0/fail"), 409, "cannot fail")
    refused(client.post(f"{path}/trials/0/abandon"), 409)
    assert ok(client.post(f"{path}/trials/0/observe", json={"value": 2.0, "amend": True}))["value"] == 2.0
    refused(
        client.post(f"{path}/trials/0/observe", json={"value": 3, "amend": True, "replicate": True}), 422, "exclude"
    )


def test_a_horizon_that_is_reached_is_409(client, create, path):
    settings = {"lengthscale": 0.2, "noise_std": 0.01, "delay": "none"}
    create(bl.BPEDelay(candidates=[[i / 9] for i in range(10)], horizon=20, seed=0, **settings))
    for number in range(20):
        ok(client.post(f"{path}/suggest"))
        ok(client.post(f"{path}/trials/{number}/observe", json={"value": 0.5}))
    assert refused(client.post(f"{path}/suggest"), 409, "horizon")["error"] == "HorizonReached"


def test_constraints_are_functions_and_stay_in_python(client, create, path):
    study = create(bl.RandomSearch({"x": (0.0, 1.0)}, constraints=[lambda p: p["x"] < 0.5], seed=0))
    number = study.suggest().number
    refused(client.post(f"{path}/suggest"), 422, "constraints")
    assert ok(client.post(f"{path}/trials/{number}/observe", json={"value": 1.0}))["state"] == "observed"


@pytest.mark.parametrize("name", [".", ".."])
def test_names_that_clients_remove_from_paths_are_422(client, name):
    # Browsers and curl resolve these segments of a path, even if they are percent-encoded.
    body = {"name": name, "definition": definition_of(bl.BayesOpt(SPACE, seed=3))}
    refused(client.post("/v1/studies", json=body), 422, "URLs")
    assert {"name": name} not in ok(client.get("/v1/studies"))["studies"]


@pytest.mark.parametrize("name", ["a/b?c#d e%2F", "<img src=x onerror=alert(1)>", "ü", "...", "a/trials/0"])
def test_studies_with_any_name_can_be_created_and_read(client, running, name):
    from urllib.parse import quote

    definition = definition_of(bl.BayesOpt(SPACE, seed=3))
    body = {"name": name, "definition": definition}
    made = ok(client.post("/v1/studies", json=body), 201)
    assert made["name"] == name and made["trials"] == 0
    quoted = quote(name, safe="").replace(".", "%2E")
    url = f"{running.address}/v1/studies/{quoted}"
    import urllib.request

    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {running.token}"})
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 200
    assert {"name": name} in ok(client.get("/v1/studies"))["studies"]
    study = bl.Study.load(name, running.url)
    assert definition_of(study._optimizer) == definition
    # Posting the same definition again is accepted; posting a different definition is an error.
    assert ok(client.post("/v1/studies", json=body))["name"] == name
    other = definition | {"seed": 4}
    refused(client.post("/v1/studies", json={"name": name, "definition": other}), 409, "other settings", "seed")


def test_a_definition_may_leave_out_arguments_with_defaults(client, running, request, path):
    space = [{"name": "x", "kind": "Real", "low": 0, "high": 1}]
    definition = {"problem": {"space": space}, "strategy": {"kind": "BayesOpt"}}
    ok(client.post("/v1/studies", json={"name": request.node.name, "definition": definition}), 201)
    stored = ok(client.get(f"{path}/definition"))
    made = bl.BayesOpt({"x": bl.Real(0, 1)}, seed=stored["seed"])
    assert stored == definition_of(made)
    assert ok(client.post(f"{path}/suggest"))["trials"][0]["params"] == made.suggest().params


@pytest.mark.parametrize(
    ("definition", "words"),
    [
        ({}, "definition is not usable"),
        ({"problem": {}}, "definition is not usable"),
        ({"problem": [], "strategy": {"kind": "BayesOpt"}}, "definition is not usable"),
        ({"problem": {}, "strategy": "BayesOpt"}, "definition is not usable"),
        ({"problem": {}, "strategy": {"kind": "BayesOpt"}, "attrs": {}}, "definition is not usable"),
        ({"problem": {}, "strategy": {}}, "None"),
        ({"problem": {}, "strategy": {"kind": "Magic"}}, "Magic"),
        ({"problem": {}, "strategy": {"kind": ["BayesOpt"]}}, "BayesOpt"),
        ({"problem": {}, "strategy": {"kind": "BayesOpt"}}, "neither"),
        ({"problem": {"space": [{"name": "x", "kind": "Path"}]}, "strategy": {"kind": "BayesOpt"}}, "Path"),
        (
            {
                "problem": {"space": [{"name": "x", "kind": "Real", "low": 2, "high": 1}]},
                "strategy": {"kind": "BayesOpt"},
            },
            "low",
        ),
        ({"problem": {"space": "x"}, "strategy": {"kind": "BayesOpt"}}, "does not define an optimizer"),
        ({"problem": {"candidates": [[1]], "time": 3}, "strategy": {"kind": "RandomSearch"}}, "time"),
        ({"problem": {"candidates": [[1]]}, "strategy": {"kind": "RandomSearch", "seed": 3}}, "seed"),
        ({"problem": {"candidates": [[1]], "constraints": ["f"]}, "strategy": {"kind": "RandomSearch"}}, "functions"),
    ],
)
def test_an_invalid_definition_is_422(client, running, definition, words):
    refused(client.post("/v1/studies", json={"name": "refused", "definition": definition}), 422, words)
    assert {"name": "refused"} not in ok(client.get("/v1/studies"))["studies"]


@pytest.mark.parametrize(
    ("kind", "body", "words"),
    [
        ("suggest", {"n": 0}, "body.n"),
        ("suggest", {"n": 101}, "body.n"),
        ("suggest", {"n": 1.0}, "body.n"),
        ("suggest", {"n": True}, "body.n"),
        ("suggest", {"m": 1}, "body.m"),
        ("suggest", {"context": {"day": 1}}, "was not declared"),
        ("suggest", {"fidelity": 1}, "was not declared"),
        ("suggest", {"expires_after": -1}, "body.expires_after"),
        ("suggest", {"key": ""}, "body.key"),
        ("suggest", {"key": 3}, "body.key"),
        ("trials/0/observe", {}, "body.value"),
        ("trials/0/observe", {"value": None}, "body.value"),
        ("trials/0/observe", {"value": "1"}, "body.value"),
        ("trials/0/observe", {"value": 10**400}, "body.value"),
        ("trials/0/observe", {"value": 1, "valu": 1}, "body.valu"),
        ("trials/0/observe", {"value": 1, "std": -1}, "body.std"),
        ("trials/0/observe", {"value": 1, "params": {"y": 1}}, "params"),
        ("trials/0/observe", {"value": 1, "params": {"x": 10**400}}, "x"),
        ("trials/0/observe", {"value": 1, "amend": 1}, "body.amend"),
        ("trials/0/observe", {"value": 1, "attrs": [1]}, "body.attrs"),
        ("trials/0/fail", {"error": {"type": "E"}}, "body.error"),
        ("trials/0/abandon", {"why": "x"}, "body.why"),
        ("trials/-1/fail", {}, "path.number"),
        ("trials/one/fail", {}, "path.number"),
    ],
)
def test_a_body_that_cannot_be_used_is_422_and_changes_nothing(client, study, path, kind, body, words):
    study.suggest()
    refused(client.post(f"{path}/{kind}", json=body), 422, words)
    assert synced(study)._log.n_events() == 1


def test_a_page_ends_where_its_json_is_large(client, study, path):
    from belated.serve.answers import LARGEST_PAGE

    for trial in study.suggest(n=7):
        # The last trial but one has more data than fit on a page.
        n = LARGEST_PAGE + 1 if trial.number == 5 else LARGEST_PAGE // 3
        study.observe(trial, float(trial.number), attrs={"text": "x" * n})
    pages, start = [], 0
    while start is not None:
        answer = client.get(f"{path}/trials", params={"start": start})
        pages.append([trial["number"] for trial in ok(answer)["trials"]])
        start = ok(answer)["next"]
        assert len(answer.content) <= LARGEST_PAGE + 1000 or len(pages[-1]) == 1
    assert pages == [[0, 1], [2, 3], [4], [5], [6]]


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=1001", "start=-1", "start=x", "state=running", "sinc=3", "start=1_0"]
)
def test_a_query_that_cannot_be_used_is_422(client, study, path, query):
    refused(client.get(f"{path}/trials?{query}"), 422, f"query.{query.split('=')[0]}")


def test_the_number_of_a_trial_has_plain_digits(client, study, path):
    study.add([{"x": i / 20} for i in range(11)])
    assert ok(client.get(f"{path}/trials/10"))["number"] == 10
    refused(client.get(f"{path}/trials/1_0"), 422, "underscores")
    refused(client.post(f"{path}/trials/1_0/observe", json={"value": 1.0}), 422, "underscores")
    assert {trial.state for trial in synced(study).trials} == {"pending"}


def test_queries_accept_underscores_in_names_but_not_in_numbers(client, create, path):
    space = {"learning_rate": (0.0, 1.0)}
    study = create(bl.RandomSearch(space, outcomes={"y_1": "maximize", "n_2": bl.Record()}, clock="seconds"))
    study.as_user("a_b").suggest(attrs={"well_number": "a_1"})
    for query in (
        "trials?sort=value&outcome=y_1",
        "trials?by=a_b",
        "trials?sort=params.learning_rate",
        "trials?sort=attrs.well_number",
        "chart?outcome=n_2",
    ):
        ok(client.get(f"{path}/{query}"))
    description = ok(client.get("/openapi.json"))["paths"]
    n_numbers = 0
    for each in ("trials", "chart", "forecast"):
        for parameter in description[f"/v1/studies/{{name}}/{each}"]["get"]["parameters"]:
            kinds = {kind.get("type") for kind in parameter["schema"].get("anyOf", [parameter["schema"]])}
            if parameter["in"] == "query" and kinds & {"integer", "number"}:
                n_numbers += 1
                refused(client.get(f"{path}/{each}?{parameter['name']}=1_0"), 422, "underscores")
    assert n_numbers == 9
    for name in ("start", "limit"):
        refused(client.get(f"/v1/studies?{name}=1_0"), 422, "underscores")
    for each in ("", "/best", "/finals", "/importance", "/trials/0"):
        refused(client.get(f"{path}{each}?study_id=1_0"), 422, "underscores")


def test_contents_of_studies_round_trip(client, study, path):
    study.suggest(n=2)
    attrs = {"text": "ü\u2028\U0001f600<b>", "deep": [[[{"a": None}]]], "n": 2**63, "f": 5e-324, "t": True}
    assert ok(client.post(f"{path}/trials/0/observe", json={"value": -0.0, "attrs": attrs}))["attrs"] == attrs
    assert synced(study).trial(0).attrs == attrs
    message = ok(client.post(f"{path}/trials/1/fail", json={"error": "ü" * 5000 + "END"}))["error"]["message"]
    assert message.startswith("ü" * 500) and message.endswith("ü" * 100 + "END") and len(message.encode()) <= 2048
