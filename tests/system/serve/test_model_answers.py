"""The answers about a study's model over HTTP: forecasts of final values, and the importance of parameters."""

import numpy as np
import pytest

import belated as bl
from belated.optimizers.importance import total_effects

pytest.importorskip("pydantic")

from belated.serve import answers  # noqa: E402


def test_final_values_equal_predict_final(client, create, path):
    study = create(bl.BayesOpt({"x": (0.0, 1.0)}, curve=bl.Curve(4), stopping=None, seed=0))
    for number, trial in enumerate(study.suggest(n=8)):
        for step in range(1, 5 if number < 6 else 3):
            trial.report(trial.params["x"] - 1 / step, step)
        if number < 6:
            trial.observe(trial.params["x"] - 0.25)
    study.suggest()  # without a report
    found = client.get(f"{path}/finals").json()
    assert found["step"] == 4 and found["unknown"] is None
    pairs = {each["number"]: (each["mean"], each["std"]) for each in found["finals"]}
    assert pairs == {number: pytest.approx(study.predict_final(number)) for number in (6, 7)}


def test_studies_without_curves_or_a_model_have_no_final_values(client, create, path):
    study = create(bl.RandomSearch({"x": (0.0, 1.0)}, curve=bl.Curve(4), seed=0))
    study.suggest().report(0.5, 1)
    assert client.get(f"{path}/finals").json() == {"step": 4, "finals": [], "unknown": "RandomSearch has no model"}


def test_importance_is_ordered_and_leaves_out_constants(client, create, path):
    space = {"weak": (0.0, 1.0), "constant": 3, "strong": (0.0, 1.0)}
    study = create(bl.BayesOpt(space, seed=0))
    rng = np.random.default_rng(0)
    for trial in study.suggest(n=20):
        study.observe(trial, 3 * trial.params["strong"] + trial.params["weak"] + 0.1 * rng.normal())
    found = client.get(f"{path}/importance").json()
    assert [each["name"] for each in found["importance"]] == ["strong", "weak"]
    assert all(each["low"] <= each["middle"] <= each["high"] for each in found["importance"])
    assert found["context"] is None and found["unknown"] is None
    names, effects = total_effects(study, None, "importance")
    expected = dict(zip(names, np.median(effects, axis=0), strict=True))
    assert {each["name"]: each["middle"] for each in found["importance"]} == pytest.approx(expected)


def test_importance_uses_the_context_of_the_best_trial(client, create, path):
    study = create(bl.BayesOpt({"x": (0.0, 1.0)}, context={"heat": (0.0, 1.0)}, seed=0))
    for i, heat in enumerate((0.1, 0.9, 0.5)):
        trial = study.suggest(context={"heat": heat})
        study.observe(trial, float(i == 1) + 0.1 * trial.params["x"])
    found = client.get(f"{path}/importance").json()
    assert found["context"] == {"heat": pytest.approx(0.9)} and len(found["importance"]) == 1


def test_the_answer_has_the_reason_if_the_importance_is_not_known(client, create, path):
    study = create(bl.BayesOpt({"x": (0.0, 1.0)}, seed=0))
    assert client.get(f"{path}/importance").json() == {
        "importance": [],
        "context": None,
        "unknown": "no trial has a value",
    }
    assert client.get(f"{path}/finals").json()["unknown"] == "the study has no learning curves"
    study.observe(study.suggest(), 1.0)
    assert client.get(f"{path}/importance").json()["unknown"] is None


def test_candidates_have_no_importance(client, create, path):
    create(bl.BayesOpt(candidates=[[0.0], [1.0]], seed=0))
    assert client.get(f"{path}/importance").json()["unknown"] == "the study has candidates and no parameters"


def test_the_model_of_a_large_study_is_not_used(create, monkeypatch):
    study = create(bl.BayesOpt({"x": (0.0, 1.0)}, curve=bl.Curve(2), seed=0))
    study.add([{"x": 0.1}, {"x": 0.2}, {"x": 0.3}], [1.0, 2.0, 3.5])
    monkeypatch.setattr(answers, "MOST_VALUES", 2)
    monkeypatch.setattr(answers, "total_effects", None)
    reason = "the study has more than 2 values, and its model would take long"
    assert answers.importance_as_data(study)["unknown"] == reason == answers.finals_as_data(study)["unknown"]


def test_nested_params_of_a_request(client, create, path):
    groups = bl.Choice({"a": {"k": [(1, 2), (3, 4)]}, "b": {}})
    study = create(bl.RandomSearch({"model": groups, "z": {"y": (0.0, 1.0)}}, seed=0))
    [trial] = client.post(f"{path}/suggest", json={}).json()["trials"]
    assert set(trial["params"]) == {"model", "z"}
    run = {"model": {"a": {"k": [3, 4]}}, "z": {"y": 0.5}}
    answer = client.post(f"{path}/trials/{trial['number']}/observe", json={"value": 1.0, "params": run})
    assert answer.status_code == 200, answer.text
    study.sync()
    assert study.best_params_ == {"model": {"a": {"k": (3, 4)}}, "z": {"y": 0.5}}
    assert client.get(path).json()["choices"] == ["model"]
