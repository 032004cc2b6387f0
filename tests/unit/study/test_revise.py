"""Revisions: a study goes on with another problem, and keeps its trials."""

import json
import math
import multiprocessing
import pickle
import warnings

import numpy as np
import pytest

import belated as bl
from belated import _core, cli
from belated.errors import InvalidPoint, InvalidSetting, InvalidSpace, StoreError
from belated.store import open_store
from belated.store.memory import MemoryStore
from tests.unit.optimizers.dense_posterior import DensePosterior

LAB = {"heat": (20.0, 120.0), "acid": (0.0, 1.0)}
#: A revision that removes a choice leaves trials out. A narrower bound keeps them as measurements outside.
SOLVENTS = LAB | {"solvent": ["water", "oil", "tea"]}
WITHOUT_OIL = LAB | {"solvent": ["water", "tea"]}


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request, tmp_path):
    if request.param == "postgresql":
        return request.getfixturevalue("postgres").url()
    return f"sqlite:///{tmp_path}/lab.db"


def still():
    return 0.0


def f(params):
    return -((params["heat"] - 90.0) ** 2) / 1000 + 0.1 * params["acid"]


def make(store, name="lab", n=8, kind=bl.BayesOpt, space=LAB, **arguments):
    """Return a study with n values."""
    study = bl.Study(name, store, kind(space, seed=1, **arguments), time=still)
    for _ in range(n):
        trial = study.suggest()
        trial.observe(f(trial.params))
    return study


def load(store, name="lab", **arguments):
    return bl.Study.load(name, store, time=still, **arguments)


def random_points(n):
    """Return points of the space."""
    numbers = np.random.default_rng(0).uniform([20, 0], [120, 1], (n, 2)).tolist()
    return [{"heat": heat, "acid": acid} for heat, acid in numbers]


def memory(space, points, values, **arguments):
    """Return a study in memory with added trials."""
    study = bl.Study("s", MemoryStore(), bl.RandomSearch(space, seed=0, **arguments))
    study.add(points, values)
    return study


def state(study):
    """Return everything that a refused revision must leave unchanged."""
    return study._log.events(0), study.domain, study.revision, study._optimizer.get_params(deep=False)


def replayed(study, converted):
    """Return a new optimizer of the study's present problem, to which the events before the revision are replayed.

    The points are replaced, and the notes of fits are left out.
    """
    old = study._optimizer
    fresh = type(old)(**old.get_params(deep=False) | {"seed": study.seed_, "time": None})
    for event in study._log.events(0, study._log.core.last_revision()):
        data = json.loads(event)
        [(kind, fields)] = data["what"].items()
        for place in (fields, fields.get("data") or {}):
            if "point" in place:
                place["point"] = {"numbers": converted(place["point"]["numbers"])}
        text = json.dumps(data)
        fresh._log.extend([_core.without_note(text) if kind == "Suggested" else text])
    return fresh


def go_on(studies, n=4):
    """Suggest and observe; the suggestions are equal."""
    for _ in range(n):
        trials = [study.suggest() for study in studies]
        assert all(trial.params == trials[0].params for trial in trials)
        for trial in trials:
            trial.observe(f(trial.params))


# Equal suggestions.


def test_a_constraint_and_a_bound_hold_for_all_handles(store):
    study = make(store)
    before = load(store)  # opened before the revision
    pending = study.suggest()
    study.revise(space=LAB | {"heat": (20.0, 150.0)}, constraints=[lambda p: p["heat"] < 140])
    assert study.suggest().params["heat"] < 140
    before.observe(pending.number, 0.5)
    study.sync()
    assert study.trial(pending.number).value == 0.5
    assert before.domain["heat"].high == 150.0 and before.n_trials == study.n_trials
    with pytest.raises(InvalidSetting, match="constraints"):
        before.suggest()
    later = load(store, constraints=[lambda p: p["heat"] < 140])
    assert later.suggest().params["heat"] < 140
    assert [trial.value for trial in later.trials] == [trial.value for trial in study.trials]


@pytest.mark.parametrize("kind", [bl.BayesOpt, bl.RandomSearch, bl.TreeSearch])
def test_a_revised_study_equals_a_new_study_to_which_its_history_is_replayed(store, kind):
    study = make(store, kind=kind)
    study.suggest().observe(0.0, params={"heat": 33.0, "acid": 0.75})
    study.add({"heat": 35.0, "acid": 0.5}, -3.0)
    study.suggest()
    study.fail(study.suggest())
    study.abandon(study.suggest())
    study.revise(space={"heat": (20.0, 150.0), "acid": (0.0, 1.0), "time": (1.0, 24.0)}, fill={"time": 12.0})
    fresh = replayed(study, lambda numbers: [*numbers, 12.0])
    go_on([study, fresh])
    go_on([load(store), fresh], n=1)


@pytest.mark.parametrize("kind", [bl.BayesOpt, bl.RandomSearch, bl.TreeSearch])
def test_the_same_problem_changes_no_suggestion(store, kind):
    study, other = make(store, kind=kind), make(store, "other", kind=kind)
    study.revise()
    study.revise(space={"heat": bl.Real(20.0, 120.0), "acid": bl.Real(0.0, 1.0)})
    assert study.revision == 3
    go_on([study, other])
    assert [trial._record.note for trial in study.trials] == [trial._record.note for trial in other.trials]
    go_on([load(store), other], n=1)


def test_renamed_choices_do_not_change_suggestions():
    def study(choices):
        made = bl.Study("s", MemoryStore(), bl.BayesOpt({"x": (0.0, 1.0), "solvent": choices}, seed=3))
        for _ in range(7):
            trial = made.suggest()
            trial.observe(trial.params["x"] + (trial.params["solvent"] == choices[0]))
        return made

    renamed, other = study(["Water ", "oil"]), study(["water", "oil"])
    renamed.revise(space=other.domain, map={"solvent": {"Water ": "water"}})
    for _ in range(3):
        mine, theirs = renamed.suggest(), other.suggest()
        assert mine.params == theirs.params and mine._record.note == theirs._record.note
        mine.observe(mine.params["x"])
        theirs.observe(theirs.params["x"])
    assert renamed.trials[0].params == other.trials[0].params


def test_other_settings_are_fitted_again(store):
    study = make(store)
    assert study.trials[-1]._record.note is not None
    study.revise(surrogate__kernel="matern32", direction="minimize")
    assert study.get_params()["surrogate__kernel"] == "matern32" and study.direction == "minimize"
    assert study.best_value_ == min(trial.value for trial in study.trials)
    assert study.surrogate_.kernel == "matern32"
    trial = study.suggest()
    assert '"kernel":"matern32"' in trial._record.note
    fresh = replayed(study, lambda numbers: numbers)
    assert fresh.suggest().params == trial.params


def test_two_revisions_equal_one(store):
    twice, once = make(store, "twice"), make(store, "once")
    wide, longer = LAB | {"heat": (0.0, 200.0)}, {"heat": (0.0, 200.0), "time": (1.0, 24.0), "acid": (0.0, 1.0)}
    twice.revise(space=wide)
    twice.revise(space=longer, fill={"time": 12.0})
    once.revise(space=longer, fill={"time": 12.0})
    assert [trial.params for trial in twice.trials] == [trial.params for trial in once.trials]
    go_on([twice, once])


# Trials that the new problem lacks.


def test_trials_that_the_new_problem_lacks_are_left_out_and_return():
    points = [
        {"heat": heat, "acid": acid, "solvent": solvent}
        for heat, acid, solvent in ((110.0, 0.5, "oil"), (30.0, 0.5, "tea"), (115.0, 0.1, "oil"))
    ]
    study = memory(SOLVENTS, points, [9.0, 1.0, None])
    with pytest.warns(bl.BelatedWarning, match=r"2 \(numbers 0, 2\) of the 3 trials"):
        study.revise(space=WITHOUT_OIL, drop=True)
    first, second, pending = study.trials
    oil = {"heat": 110.0, "acid": 0.5, "solvent": "oil"}
    assert (first.state, first.value, first.params) == ("observed", 9.0, oil)
    assert "'oil'" in first.left_out and second.left_out is None and [*study.left_out] == [0, 2]
    assert study.best_trial_ == second and study.pending == [pending]
    table = study.trials_dataframe()
    assert table["left_out"].notna().tolist() == [True, False, True] and table["value"][0] == 9.0
    assert study.recommend() == second.params
    pending.observe(20.0)
    assert pending.value == 20.0 and pending.state == "observed" and study.best_trial_ == second
    with pytest.raises(bl.errors.AlreadyObserved):
        pending.observe(21.0)
    pending.observe(20.0)
    # The trial was run at a point of the present space.
    pending.observe(21.0, params={"heat": 99.0, "acid": 0.0, "solvent": "tea"}, amend=True)
    assert study.best_trial_ == pending and pending.left_out is None and study.best_params_["heat"] == 99.0
    study.revise(space=SOLVENTS)
    assert study.left_out == {} and study.best_trial_ == pending and first.params == oil
    assert pending.params == oil | {"heat": 115.0, "acid": 0.1} and pending.params_run["heat"] == 99.0


@pytest.mark.parametrize("pending", [None, "ignore", bl.Censor(floor=-20.0), "liar", "nearest"])
def test_the_model_ignores_trials_that_are_left_out(store, pending):
    """The revision removes the choice of the pending trial."""
    study = make(store, n=10, space=SOLVENTS, pending=pending)
    lost, failed = study.suggest(), study.suggest()
    study.fail(failed)
    inside = [each for each in SOLVENTS["solvent"] if each != lost.params["solvent"]]
    with pytest.warns(bl.BelatedWarning):
        study.revise(space=LAB | {"solvent": inside}, drop=True)
    out = study.left_out
    assert lost.number in out and 1 < len(out) < 12
    rows = [row for row in study._leave_one_out()[0]]
    assert sorted(rows) == [n for n in range(10) if n not in out]
    go_on([study], n=2)
    assert all((trial.params["solvent"] in inside) == (trial.number not in out) for trial in study.trials)
    assert study.best_value_ == max(
        trial.value for trial in study.trials if trial.value is not None and not trial.left_out
    )
    lost.observe(f(lost.params))
    again = load(store)
    go_on([again], n=1)
    study.sync()
    assert study.suggest().params == load(store).trials[-1].params
    assert study.delays_.n_arrived == sum(trial.state == "observed" for trial in study.trials)


def test_the_model_with_trials_left_out_equals_the_model_of_the_others():
    points = [point | {"solvent": SOLVENTS["solvent"][i % 3]} for i, point in enumerate(random_points(14))]
    values = [f(point) for point in points]
    study = bl.Study("s", MemoryStore(), bl.BayesOpt(SOLVENTS, seed=2))
    study.add(points, values)
    with pytest.warns(bl.BelatedWarning):
        study.revise(space=WITHOUT_OIL, drop=True)
    left = [i for i in range(14) if points[i]["solvent"] != "oil"]
    assert [*study.left_out] == [1, 4, 7, 10, 13]
    other = bl.BayesOpt(WITHOUT_OIL, seed=2)
    other.add([points[i] for i in left], [values[i] for i in left])
    grid = [{"heat": heat, "acid": 0.5, "solvent": "tea"} for heat in (55.0, 80.0, 115.0)]
    for mine, theirs in zip(study.predict(grid), other.predict(grid), strict=True):
        assert mine.tolist() == theirs.tolist()


def test_removed_parameters_keep_one_value():
    space = {"x": (0.0, 1.0), "stirrer": ["A", "B"]}
    study = memory(space, [{"x": 0.5, "stirrer": "A"}, {"x": 0.6, "stirrer": "B"}], [1.0, 2.0])
    with pytest.warns(bl.BelatedWarning):
        study.revise(space={"x": (0.0, 1.0)}, keep={"stirrer": "A"})
    assert study.best_params_ == {"x": 0.5} and "'B'" in study.left_out[1]
    assert study.trial(1).params == {"x": 0.6, "stirrer": "B"}
    study.revise(space=space, fill={"stirrer": "A"})
    assert study.left_out == {} and [trial.params["stirrer"] for trial in study.trials] == ["A", "B"]


def test_constants_need_neither_fill_nor_keep():
    study = memory({"x": (0.0, 1.0), "time": 12.0, "unit": "mg"}, [{"x": 0.5}], [1.0])
    study.revise(space={"x": (0.0, 1.0), "time": (1.0, 24.0), "lab": "B"})
    assert study.trial(0).params == {"x": 0.5, "time": 12.0, "lab": "B"}


def test_conditions_of_the_new_space_hold():
    study = memory(
        {"kernel": ["rbf", "poly"], "x": (0.0, 1.0)}, [{"kernel": k, "x": 0.5} for k in ("rbf", "poly")], [1.0, 2.0]
    )
    poly = {"kernel": "poly"}
    study.revise(
        space={"kernel": ["rbf", "poly"], "x": (0.0, 1.0), "degree": bl.Integer(1, 5, when=poly)}, fill={"degree": 3}
    )
    assert [trial.params.get("degree") for trial in study.trials] == [None, 3]
    study.revise(
        space={"kernel": ["rbf", "poly"], "x": bl.Real(0.0, 1.0, when=poly), "degree": (1, 5)}, fill={"degree": 1}
    )
    assert [trial.params for trial in study.trials] == [
        {"kernel": "rbf", "degree": 1},
        {"kernel": "poly", "x": 0.5, "degree": 3},
    ]


def test_contexts_candidates_and_fidelities_can_be_revised():
    study = memory({"x": (0.0, 1.0)}, [{"x": 0.5}, {"x": 0.6}], [1.0, 2.0])
    study.revise(context={"air": ["dry", "wet"]}, fidelity=bl.Fidelity(1, 10), fill={"air": "dry"})
    assert [(trial.context, trial.fidelity) for trial in study.trials] == [({"air": "dry"}, 10)] * 2
    study.add({"x": 0.7}, 3.0, {"air": "wet"}, fidelity=4)
    study.add({"x": 0.8}, 4.0, {"air": "wet"})
    with pytest.warns(bl.BelatedWarning):
        study.revise(context=None, fidelity=None, keep={"air": "wet"})
    assert [*study.left_out] == [0, 1, 2] and "'dry'" in study.left_out[0] and "fidelity=4" in study.left_out[2]
    assert study.trial(2).fidelity == 4 and study.trial(3).fidelity is None and study.best_value_ == 4.0

    rows = [[10.0, 7.0], [20.0, 7.0], [30.0, 7.0]]
    study = bl.Study("c", MemoryStore(), bl.BayesOpt(candidates=rows, seed=0))
    study.add([0, 2], [1.0, 2.0])
    study.revise(candidates=[[40.0, 7.0], *rows[:2]])
    assert study.trial(0).index == 1 and study.trial(1).x.tolist() == rows[2] and study.trial(1).outside
    assert study.suggest().index in (0, 2)
    with pytest.warns(bl.BelatedWarning):
        study.revise(candidates=[[20.0], [40.0]])
    assert [*study.left_out] == [0, 1, 2] and "30.0" in study.left_out[1]


def test_pending_points_keys_leases_and_attrs_stay(store):
    study = bl.Study("lab", store, bl.BayesOpt(LAB, seed=1))
    trial = study.suggest(key="monday", expires_after=3600.0)
    study.add({"heat": 50.0, "acid": 0.1}, 1.0, attrs={"who": "Ada"}, std=0.1, cost=2.0)
    study.observe(trial, 1.0, params={"heat": 30.0, "acid": 0.2}, key="tuesday")
    lease = trial.expires_at
    study.revise(space=LAB | {"time": (1.0, 24.0)}, fill={"time": 12.0})
    assert study.suggest(key="monday") == trial and trial.expires_at == lease
    study.observe(trial, 1.0, params={"heat": 30.0, "acid": 0.2}, key="tuesday")
    assert study.trial(1).attrs == {"who": "Ada"} and study.trial(1).std == 0.1 and study.trial(1).cost == 2.0
    assert trial.params_run == {"heat": 30.0, "acid": 0.2, "time": 12.0}
    # Params in the form of the earlier problem.
    late = study.trials[0]
    load(store).observe(late.number, 2.0, params={"heat": 31.0, "acid": 0.2}, amend=True)
    study.sync()
    assert late.params_run == {"heat": 31.0, "acid": 0.2, "time": 12.0}
    assert study.suggest().number == 2


def test_enqueued_points_are_converted_or_refuse_the_call():
    study = memory(LAB, [{"heat": 50.0, "acid": 0.1}], [1.0])
    study.enqueue({"heat": 110.0, "acid": 0.5})
    before = state(study)
    with pytest.raises(InvalidSetting, match="an enqueued point is not a point of the new problem"):
        study.revise(space=LAB | {"heat": (20.0, 100.0)})
    with pytest.raises(InvalidPoint, match="an enqueued point.*violates"):
        study.revise(constraints=[lambda p: p["heat"] < 100])
    with pytest.raises(InvalidSetting, match="an enqueued point is not a point of the new problem: params violate"):
        study.revise(constraints=[bl.Linear({"heat": 1.0}, at_most=100.0)])
    assert state(study) == before
    study.revise(space=LAB | {"time": (1.0, 24.0)}, fill={"time": 12.0})
    assert study.suggest().params == {"heat": 110.0, "acid": 0.5, "time": 12.0}


def test_partial_points_stay_partial():
    study = memory(SOLVENTS, [{"heat": 50.0, "acid": 0.1, "solvent": "tea"}], [1.0])
    study.enqueue([{"solvent": "water"}, {"heat": 110.0}])
    before = state(study)
    with pytest.raises(InvalidSetting, match="an enqueued point is not a point of the new problem"):
        study.revise(space=SOLVENTS | {"heat": (20.0, 100.0)})
    assert state(study) == before
    study.revise(space=SOLVENTS | {"solvent": ["oil", "brine", "tea"]}, map={"solvent": {"water": "brine"}})
    # A parameter that the new space adds has the value of fill, as in trials.
    study.revise(space=SOLVENTS | {"solvent": ["oil", "brine", "tea"], "time": (1.0, 24.0)}, fill={"time": 12.0})
    first, second = study.suggest(n=2)
    assert first.params["solvent"] == "brine" and second.params["heat"] == 110.0
    assert first.params["time"] == second.params["time"] == 12.0
    assert {first.params["heat"], first.params["acid"], second.params["acid"]}.isdisjoint({50.0, 0.1})


@pytest.mark.parametrize(
    ("space", "part"),
    [
        ({"kind": ["a", "b"], "q": bl.Integer(1, 1000, when={"kind": "a"})}, {"q": 7}),
        ({"kind": bl.Choice({"a": {"q": bl.Integer(1, 1000)}, "b": {}})}, {"kind": {"a": {"q": 7}}}),
    ],
    ids=["condition", "choice"],
)
@pytest.mark.parametrize("changed", [{}, {"x": (0.0, 1.0)}], ids=["equal", "new parameter"])
def test_partial_points_keep_conditional_values(space, part, changed):
    study = bl.Study("lab", MemoryStore(), bl.RandomSearch(space, seed=0))
    study.enqueue([part] * 9)
    study.revise(space=space | changed, fill=dict.fromkeys(changed, 0.5))
    for trial in study.suggest(n=9):
        assert {name: value for name, value in trial.params.items() if name != "x"} in (part, {"kind": "a"} | part)


# Earlier revisions.


def test_an_earlier_revision_can_be_read(store):
    study = make(store, n=3)
    study.revise(space=LAB | {"time": (1.0, 24.0)}, fill={"time": 12.0})
    study.suggest().observe(1.0)
    first = load(store, revision=1)
    assert [*first.domain] == ["heat", "acid"] and first.n_trials == 3 and first.sync() == 0
    assert [*load(store, revision=2).domain] == ["heat", "acid", "time"]
    for write in (first.suggest, lambda: first.observe(0, 9.0), lambda: first.revise(), lambda: first.enqueue(LAB)):
        with pytest.raises((InvalidSetting, InvalidPoint)):
            write()
    assert load(store).n_trials == 4 and load(store, revision=1).n_trials == 3
    for number in (0, 3, True, 1.5):
        with pytest.raises(InvalidSetting, match="revision="):
            load(store, revision=number)
    reopened = first.copy("copied")
    assert reopened.n_trials == 3 and [*reopened.domain] == ["heat", "acid"]


def test_a_study_that_exists_is_compared_with_the_present_problem(store):
    make(store, n=1).revise(space=LAB | {"heat": (20.0, 150.0)})
    bl.Study("lab", store, bl.BayesOpt(LAB | {"heat": (20.0, 150.0)}, seed=1))
    with pytest.raises(InvalidSetting, match="study.revise"):
        bl.Study("lab", store, bl.BayesOpt(LAB, seed=1))


def test_copies_and_exports_have_the_present_problem(store, tmp_path, capsys):
    study = make(store, n=4, space=SOLVENTS)
    gone = study.trial(0).params["solvent"]
    with pytest.warns(bl.BelatedWarning):
        study.revise(space=LAB | {"solvent": [each for each in SOLVENTS["solvent"] if each != gone]}, drop=True)
    with pytest.warns(bl.BelatedWarning, match="do not belong"):
        copied = study.copy("copied")
    assert copied.n_trials == 4 - len(study.left_out)
    whole = study.copy("whole", SOLVENTS)
    assert [trial.params for trial in whole.trials] == [trial.params for trial in study.trials]
    file, other = tmp_path / "out.jsonl", f"sqlite:///{tmp_path}/other.db"
    assert cli.main(["study", "export", store]) == cli.DONE
    file.write_text(capsys.readouterr().out, encoding="utf-8")
    assert cli.main(["study", "import", str(file), other, "lab"]) == cli.DONE
    again = load(other)
    assert again.left_out == study.left_out and again.suggest().params == study.suggest().params


# Several processes.


def cool(params):
    return params["heat"] < 100


def test_a_pickled_study_has_the_present_problem_and_constraints(store):
    study = make(store, n=3)
    first = pickle.loads(pickle.dumps(load(store, revision=1)))
    study.revise(space=LAB | {"heat": (20.0, 150.0)}, constraints=[cool])
    again = pickle.loads(pickle.dumps(study))
    assert again.domain == study.domain and again.suggest().params["heat"] < 100
    assert pickle.loads(pickle.dumps(load(store, revision=1))).domain == first.domain != study.domain
    with pytest.raises(InvalidSetting):
        first.suggest()


def _revise_and_add(store, times):
    study = load(store)
    for i in range(times):
        study.revise(space=LAB | {"heat": (20.0, 121.0 + i)})
        study.suggest().observe(float(i))


@pytest.mark.parametrize("n", [2])
def test_processes_that_revise_and_write_lose_nothing(store, n):
    make(store, n=2, kind=bl.RandomSearch)
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=_revise_and_add, args=(store, 6)) for _ in range(n)]
    for other in others:
        other.start()
    mine = load(store)
    for i in range(10):
        mine.add({"heat": 50.0, "acid": 0.5}, float(i))
        mine.suggest().observe(1.0)
    for other in others:
        other.join()
        assert other.exitcode == 0
    mine.sync()
    found = load(store)
    assert found.revision == mine.revision == 1 + 6 * n
    assert found.n_trials == mine.n_trials == 2 + 6 * n + 20
    assert [trial.params for trial in found.trials] == [trial.params for trial in mine.trials]
    assert found.suggest().params == mine.trial(found.n_trials - 1).params


def test_a_call_whose_arguments_were_converted_before_a_revision_is_repeated(store, monkeypatch):
    study, other = make(store, n=2, kind=bl.RandomSearch), load(store)
    longer, fill = {"time": (1.0, 24.0)} | LAB, {"time": 12.0}
    write, done = type(study._log)._write, []

    def first_revise(log, *arguments):
        if not done:
            done.append(other.revise(space=longer, fill=fill))
        return write(log, *arguments)

    monkeypatch.setattr(
        type(study._log),
        "_write",
        lambda log, *arguments: (first_revise if log is study._log else write)(log, *arguments),
    )
    study.observe(0, 7.0, params={"acid": 0.25, "heat": 33.0}, amend=True)
    assert study.trial(0).params_run == {"time": 12.0, "heat": 33.0, "acid": 0.25}
    with pytest.raises(InvalidPoint, match="time"):
        study.add({"acid": 0.25, "heat": 33.0}, 1.0)
    done.clear()
    longer["acid"], fill = (0.0, 2.0), None
    study.add({"acid": 0.25, "heat": 33.0, "time": 2.0}, 1.0)
    assert load(store).trials[-1].params == {"time": 2.0, "heat": 33.0, "acid": 0.25}


def test_an_interrupted_revision_is_read_again(store, monkeypatch):
    study, other = make(store, n=3), load(store)
    other.revise(space=LAB | {"heat": (20.0, 150.0)})
    note = type(study._log)._note

    def interrupted(log, records, numbers):
        if any("Revised" in json.loads(record.body)["what"] for record in records):
            raise KeyboardInterrupt
        note(log, records, numbers)

    with monkeypatch.context() as patched:
        patched.setattr(type(study._log), "_note", interrupted)
        with pytest.raises(KeyboardInterrupt):
            study.sync()
    assert study.sync() == study._log.n_events() and study.revision == 2
    assert study.suggest().params == load(store).trials[-1].params


# Invalid arguments.


@pytest.mark.parametrize(
    ("arguments", "error", "named"),
    [
        ({"seed": 3}, InvalidSetting, "seed"),
        ({"clock": "seconds"}, InvalidSetting, "clock"),
        ({"time": None}, InvalidSetting, "time"),
        ({"spaces": {}}, InvalidSetting, "spaces"),
        ({"space": {"heat": (3.0, 2.0)}}, InvalidSpace, "heat"),
        ({"space": {**LAB, "time": (1.0, 24.0)}}, InvalidSetting, "fill misses ['time']"),
        ({"space": {**LAB, "time": (1.0, 24.0)}, "fill": {"time": "x"}}, InvalidSetting, "fill['time']='x'"),
        ({"space": {**LAB, "time": (1.0, 24.0)}, "fill": {"time": 25.0}}, InvalidSetting, "fill['time']=25.0"),
        ({"space": {**LAB, "time": (1.0, 24.0)}, "fill": {"time": math.nan}}, InvalidSetting, "fill['time']=nan"),
        ({"space": {**LAB, "time": (1.0, 24.0)}, "fill": {"tim": 2.0}}, InvalidSetting, "fill has 'tim'"),
        ({"space": {**LAB, "time": (1.0, 24.0)}, "fill": 12.0}, InvalidSetting, "fill=12.0"),
        ({"fill": {"heat": 30.0}}, InvalidSetting, "fill has 'heat'"),
        ({"space": {"heat": (20.0, 120.0), "acid": (0.0, 1.0)}}, InvalidSetting, "keep misses ['solvent']"),
        ({"space": {"heat": (20.0, 120.0), "acid": (0.0, 1.0)}, "keep": {"solvent": "tea"}}, InvalidSetting, "'tea'"),
        ({"keep": {"heat": 20.0}}, InvalidSetting, "keep has 'heat'"),
        ({"map": {"solvents": {"oil": "water"}}}, InvalidSetting, "map has 'solvents'"),
        ({"map": {"heat": {20.0: 30.0}}}, InvalidSetting, "map['heat']"),
        ({"map": {"solvent": {"tea": "oil"}}}, InvalidSetting, "'tea'"),
        ({"map": {"solvent": {"oil": "tea"}}}, InvalidSetting, "'tea'"),
        ({"map": {"solvent": "oil"}}, InvalidSetting, "map['solvent']='oil'"),
        ({"map": ["solvent"]}, InvalidSetting, "map=['solvent']"),
        ({"constraints": [lambda p: False]}, InvalidSetting, "constraints refuse every point"),
        ({"constraints": [lambda p: 1]}, InvalidSetting, "constraints[0]"),
        ({"constraints": [lambda p: p["x"] > 0]}, InvalidSetting, "constraints[0]"),
        ({"constraints": 3}, InvalidSetting, "constraints=3"),
        ({"space": None, "candidates": [[1.0], [2.0]]}, InvalidSetting, "candidates"),
        ({"candidates": [[1.0], [2.0]]}, InvalidSpace, "both"),
        ({"surrogate__kernel": "rbf"}, InvalidSetting, "kernel"),
    ],
    ids=lambda each: None if isinstance(each, type) else "",
)
def test_invalid_arguments_are_refused_in_one_line(arguments, error, named):
    study = bl.Study("s", MemoryStore(), bl.BayesOpt(LAB | {"solvent": ["water", "oil"]}, seed=0))
    study.add([{"heat": 50.0, "acid": 0.5, "solvent": "oil"}], [1.0])
    if "space" in arguments and isinstance(arguments["space"], dict) and "solvent" not in named and "tea" not in named:
        arguments = arguments | {"space": {**arguments["space"], "solvent": ["water", "oil"]}}
    before = state(study)
    with pytest.raises(error) as raised:
        study.revise(**arguments)
    assert named in str(raised.value) and "\n" not in str(raised.value)
    assert state(study) == before
    study.suggest().observe(1.0)


def test_an_empty_study_needs_neither_fill_nor_keep():
    study = bl.Study("s", MemoryStore(), bl.RandomSearch(LAB, seed=0))
    study.revise(space={"time": (1.0, 24.0)})
    assert study.suggest().params == bl.RandomSearch({"time": (1.0, 24.0)}, seed=0).suggest().params


def test_optimizers_that_cannot_be_revised_refuse():
    study = bl.Study(
        "b",
        MemoryStore(),
        bl.BPEDelay(candidates=np.linspace(0, 1, 9)[:, None], horizon=50, lengthscale=0.3, noise_std=0.1, seed=0),
    )
    study.suggest().observe(1.0)
    before = state(study)
    with pytest.raises(InvalidSetting, match="BPEDelay|rounds"):
        study.revise(candidates=np.linspace(0, 1, 5)[:, None])
    assert state(study)[0] == before[0] and study.suggest().number == 1
    study = make(MemoryStore(), n=6, kind=bl.TreeSearch)
    study.revise(space=LAB | {"time": (1.0, 24.0)}, fill={"time": 12.0})
    before = state(study)
    with pytest.raises(InvalidSetting, match="TreeSearch"):
        study.revise(space=LAB, keep={"time": 13.0})
    assert state(study) == before


def test_constraints_that_are_missing_must_be_passed(store):
    study = make(store, n=2, constraints=[cool])
    other = load(store)
    with pytest.raises(InvalidSetting, match="constraints"):
        other.revise(space=LAB | {"acid": (0.0, 2.0)})
    study.revise(space=LAB | {"acid": (0.0, 2.0)})
    assert study.suggest().params["heat"] < 100
    other.revise(constraints=None)
    assert other.suggest().number == 3 and study.suggest().number == 4


def test_a_damaged_revision_is_refused(store):
    study = make(store, n=2)
    study.revise(space=LAB | {"heat": (20.0, 150.0)})
    opened = open_store(store)
    for body in [
        '{"now":0.0,"what":{"Revised":{"constrained":false,"definition":"{}"}}}',
        '{"now":0.0,"what":{"Revised":{"constrained":false,"definition":"["}}}',
    ]:
        with pytest.raises(StoreError, match="revision"):
            log = load(store)._log
            record = opened.events(log.id, 0)[-1]
            log._apply_revision(record._replace(body=body))


def test_a_copy_takes_the_same_arguments():
    """The trials of a copy have the points, values and constraints of a revised study."""
    space = {"x": (0.0, 1.0), "solvent": ["Water ", "oil", "tea"], "stirrer": ["A", "B"]}
    points = [{"x": i / 8, "solvent": space["solvent"][i % 2], "stirrer": "AAAB"[i % 4]} for i in range(8)]
    points[6]["solvent"] = "tea"
    study = memory(space, points, [float(i) for i in range(8)])
    new = {"space": {"x": (0.0, 1.0), "solvent": ["water", "oil"], "time": (1.0, 24.0)}}
    new |= {"fill": {"time": 12.0}, "map": {"solvent": {"Water ": "water"}}, "keep": {"stirrer": "A"}}
    new |= {"constraints": [lambda params: params["x"] < 0.3], "direction": "minimize"}
    with pytest.warns(bl.BelatedWarning, match="do not belong to the space"):
        copied = study.copy("copy", **new, drop=True)
    with pytest.warns(bl.BelatedWarning, match="left out"):
        study.revise(**new, drop=True)
    kept = [trial for trial in study.trials if trial.left_out is None]
    assert [(trial.params, trial.value) for trial in copied.trials] == [(trial.params, trial.value) for trial in kept]
    assert len(kept) == 5 and copied.best_value_ == study.best_value_ == 0.0
    assert copied.suggest().params["x"] < 0.3
    for bad in ({"fill": {"tim": 1.0}}, {"seed": 3}, {"spaces": {}}, {"map": {"solvent": {"tea": "oil"}}}):
        with pytest.raises(InvalidSetting):
            study.copy("bad", **bad)


def test_a_log_that_is_read_again_keeps_revisions_and_constraints(store):
    """The log is read again if a server lost its last events."""
    study = make(store, n=4)
    study.revise(space=LAB | {"heat": (20.0, 150.0)})
    study.revise(constraints=[cool])
    study.revise(space=LAB | {"heat": (20.0, 160.0)})
    study.suggest().observe(1.0)
    before = state(study)[:3], [trial.params for trial in study.trials], study._optimizer.constraints
    log = study._log
    assert log._read_anew(lambda start: log.store.events(log.id, start)) == log.n_events()
    assert (state(study)[:3], [trial.params for trial in study.trials], study._optimizer.constraints) == before
    again = load(store, constraints=[cool])
    assert study.suggest().params == again.trial(study.n_trials - 1).params
    assert study.trials[-1].params["heat"] < 100


def test_tables_and_files_of_a_revised_study_are_read_back(tmp_path):
    """The trials that are not left out are restored bit for bit, also outside; the others are refused by row."""
    pandas = pytest.importorskip("pandas")
    points = [
        {"heat": heat, "acid": 0.1 + heat / 7e3, "solvent": solvent}
        for heat, solvent in ((50.0 / 3, "tea"), (90.0, "oil"), (35.5, "water"), (331.0 / 3, "tea"))
    ]
    study = memory(SOLVENTS | {"heat": (0.0, 120.0)}, points, [1.0 / 3, 2.0, None, 4.0 / 3])
    with pytest.warns(bl.BelatedWarning):
        study.revise(
            space={"time": (1.0, 24.0)} | WITHOUT_OIL | {"heat": (0.0, 100.0)},
            fill={"time": 12.3456789012345678},
            drop=True,
        )
    study.observe(2, 5.0, params={"time": 2.0, "acid": 0.3, "heat": 1.0 / 3, "solvent": "tea"})
    assert study.worklist().empty
    study.to_csv(tmp_path / "trials.csv")
    found = pandas.read_csv(tmp_path / "trials.csv")
    assert "'oil'" in found["left_out"][1] and found["outside"].tolist() == [False, False, False, True]
    other = bl.RandomSearch(study.domain, seed=0)
    added = other.add(found, on_error="skip")
    assert [each.row for each in added.skipped] == [1]
    assert [trial.params for trial in added.trials] == [
        study.trial(0).params,
        study.trial(2).params_run,
        study.trial(3).params,
    ]
    assert [trial.value for trial in added.trials] == [1.0 / 3, 5.0, 4.0 / 3]
    assert [trial.outside for trial in added.trials] == [False, False, True]


@pytest.mark.parametrize("domain", [{"space": {"x": (0.0, 1.0)}}, {"candidates": [[0.25], [0.5], [0.75]]}])
def test_a_trial_in_another_context_than_the_kept_one_does_not_return(domain):
    study = bl.Study("t", MemoryStore(), bl.BayesOpt(**domain, context={"air": ["dry", "wet"]}, seed=0))
    for air in ("dry", "wet"):
        study.suggest(context={"air": air})
    study.observe(1, 9.0)
    with pytest.warns(bl.BelatedWarning, match="1 \\(number 1\\)"):
        study.revise(context=None, keep={"air": "dry"})
    study.observe(0, 1.0)
    assert [*study.left_out] == [1] and study.best_value_ == 1.0
    params = {"x": 0.5} if "space" in domain else 1
    study.observe(1, 8.0, params=params, amend=True)
    assert [*study.left_out] == [1] and study.best_value_ == 1.0 and study.trial(1).value == 8.0
    study.revise(context={"air": ["dry", "wet"]}, fill={"air": "dry"})
    assert study.left_out == {} and [trial.context["air"] for trial in study.trials] == ["dry", "wet"]
    assert study.best_value_ == 8.0


@pytest.mark.parametrize("when", ["revise", "copy"])
def test_a_study_without_its_former_curve_is_copied(when):
    study = bl.Study("t", MemoryStore(), bl.BayesOpt({"x": (0.0, 1.0)}, curve=bl.Curve(5), seed=0))
    for trial, end in zip(study.suggest(n=3), ("observe", "stop", "withdraw"), strict=True):
        trial.report(1.0, 4)
        if end == "observe":
            trial.observe(2.0)
        else:
            trial.stop()
    study.withdraw(2)
    changes = {"curve": None, "stopping": None}
    if when == "revise":
        study.revise(**changes)
    copied = study.copy("copy", **({} if when == "revise" else changes))
    assert [(trial.state, trial.value) for trial in copied.trials] == [(t.state, t.value) for t in study.trials]
    assert study.trial(0).curve == {4: 1.0} and copied.trial(0).curve == {}


def test_tables_do_not_restore_trials_that_are_left_out_elsewhere(tmp_path):
    """A parameter, a context or a fidelity was removed, or candidates got another column."""
    pandas = pytest.importorskip("pandas")
    removed = memory({"x": (0.0, 1.0), "c": ["a", "b"]}, [{"x": 0.5, "c": "a"}, {"x": 0.6, "c": "b"}], [1.0, 2.0])
    contextual = bl.Study("t", MemoryStore(), bl.BayesOpt({"x": (0.0, 1.0)}, context={"air": ["dry", "wet"]}, seed=0))
    contextual.add([{"x": 0.5}, {"x": 0.6}], [1.0, 2.0], [{"air": "dry"}, {"air": "wet"}])
    cheap = memory({"x": (0.0, 1.0)}, {"x": 0.5}, 1.0, fidelity=bl.Fidelity(1, 10))
    cheap.add({"x": 0.6}, 2.0, fidelity=4)
    rows = bl.Study("c", MemoryStore(), bl.BayesOpt(candidates=[[1.0], [2.0], [3.0]], seed=0))
    rows.suggest(n=2)
    for study, changes in [
        (removed, {"space": {"x": (0.0, 1.0)}, "keep": {"c": "a"}}),
        (contextual, {"context": None, "keep": {"air": "dry"}}),
        (cheap, {"fidelity": None}),
        (rows, {"candidates": [[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]]}),
    ]:
        with pytest.warns(bl.BelatedWarning):
            study.revise(**changes)
        study.to_csv(tmp_path / "trials.csv")
        found = pandas.read_csv(tmp_path / "trials.csv")
        for other in (study, study.optimizer.__class__(**study.optimizer.get_params(deep=False))):
            before = other.n_trials
            with pytest.raises(InvalidPoint, match="column 'left_out'"):
                other.add(found)
            added = other.add(found, on_error="skip")
            assert [each.row for each in added.skipped] == [*study.left_out] and study.left_out
            assert other.n_trials == before + len(found) - len(study.left_out)
            assert all(trial.value in (None, 1.0) for trial in added.trials)
    # An index would name another candidate of the present list.
    table = rows.worklist()
    assert table["index"].isna().all() and table["x_0"].tolist() == [trial.x[0] for trial in rows.trials]


def test_points_measured_outside_stay_so_until_the_space_has_them(store):
    study = make(store, n=4)
    study.observe(0, 99.0, params={"heat": 125.0, "acid": 0.5}, amend=True)
    assert study.trial(0).outside and study.best_value_ < 99.0
    study.revise(space=LAB | {"time": (1.0, 24.0)}, fill={"time": 12.0})
    assert study.trial(0).outside and study.trial(0).left_out is None and study.best_value_ < 99.0
    study.suggest().observe(0.0)
    study.revise(space={"heat": (20.0, 130.0), "acid": (0.0, 1.0), "time": (1.0, 24.0)})
    assert not study.trial(0).outside and study.best_params_ == {"heat": 125.0, "acid": 0.5, "time": 12.0}
    again = load(store)
    assert again.best_value_ == 99.0
    assert [trial.params for trial in again.trials[:5]] == [trial.params for trial in study.trials[:5]]
    study = bl.Study("c", MemoryStore(), bl.BayesOpt(candidates=[[10.0], [20.0], [30.0]], seed=0))
    study.suggest().observe(3.0, params=[15.0])
    study.add(0, 1.0)
    study.revise(candidates=[[10.0], [20.0], [40.0]])
    assert study.trial(0).outside and study.left_out == {} and study.best_value_ == 1.0
    study.revise(candidates=[[10.0], [15.0]])
    assert study.trial(0).index_run == 1 and study.best_value_ == 3.0


# Trials outside a narrowed space.


@pytest.mark.parametrize("kind", [bl.BayesOpt, bl.RandomSearch])
def test_a_narrowed_bound_keeps_trials_as_measurements_outside(store, kind):
    study = bl.Study("lab", store, kind(LAB, seed=1), time=still)
    study.add(random_points(12), [f(point) for point in random_points(12)])
    study.add({"heat": 115.0, "acid": 0.5}, 9.0)
    pending = study.add({"heat": 25.0, "acid": 0.5})
    before = [(trial.state, trial.value, trial.params) for trial in study.trials]
    assert study.best_value_ == 9.0
    study.revise(space=LAB | {"heat": (60.0, 100.0)})
    assert [(trial.state, trial.value, trial.params) for trial in study.trials] == before and study.left_out == {}
    assert [trial.outside for trial in study.trials] == [not 60 <= each[2]["heat"] <= 100 for each in before]
    inside = [trial for trial in study.trials if trial.value is not None and not trial.outside]
    assert 1 < len(inside) < 12 and study.best_value_ == max(trial.value for trial in inside) < 9.0
    assert study.best_trial(outside=True).value == 9.0
    assert 60 <= study.recommend()["heat"] <= 100
    # A pending trial outside accepts a value, in a process that read the earlier problem, too.
    assert study.pending == [pending]
    pending.observe(10.0)
    load(store).observe(pending, 11.0, amend=True)
    study.sync()
    assert pending.value == 11.0 and pending.outside and study.best_value_ < 9.0
    for _ in range(3):
        trial = study.suggest()
        assert 60 <= trial.params["heat"] <= 100
        trial.observe(f(trial.params))
    for widened in (study, load(store)):
        if widened is study:
            study.revise(space=LAB)
        assert not any(trial.outside for trial in widened.trials) and widened.best_value_ == 11.0
        assert widened.best_params_ == {"heat": 25.0, "acid": 0.5}


@pytest.mark.parametrize(
    ("pending", "inputs"),
    [(None, "warped"), (None, "plain"), ("ignore", "warped"), (bl.Censor(floor=-20.0), "warped"), ("liar", "plain")],
)
def test_a_narrowed_study_equals_a_new_study_with_values_outside(pending, inputs):
    """Both studies fit at the next suggestion. The trials outside are observed, failed, pending and withdrawn."""
    points, narrow, studies = random_points(14), LAB | {"heat": (60.0, 100.0)}, []
    for space in (LAB, narrow):
        optimizer = bl.BayesOpt(space, seed=4, pending=pending, surrogate=bl.GP(inputs=inputs))
        study = bl.Study("s", MemoryStore(), optimizer, time=still)
        study.add(points, [f(point) for point in points[:-1]] + [None])
        study.fail(study.add({"heat": 21.0, "acid": 0.5}))
        study.withdraw(study.add({"heat": 22.0, "acid": 0.5}, 99.0))
        studies.append(study)
    revised, fresh = studies
    revised.revise(space=narrow)
    outside = [not 60 <= trial.params["heat"] <= 100 for trial in fresh.trials]
    assert [trial.outside for trial in revised.trials] == [trial.outside for trial in fresh.trials] == outside
    assert 5 < sum(outside) < 13 and outside[13]
    assert revised.best_trial_.number == fresh.best_trial_.number
    go_on(studies, n=2)
    for study in studies:
        study.observe(13, f(points[13]))
    go_on(studies, n=2)
    mine, theirs = ([trial._record.note for trial in study.trials] for study in studies)
    assert mine == theirs and mine[-1] is not None


def test_the_model_has_values_outside_a_narrowed_bound_where_they_were_measured():
    """The reference computes the posterior in the units of the new space."""
    points, theta = random_points(9), {"kernel": "matern52", "lengthscale": 0.3, "signal_std": 1.5, "noise_std": 0.1}
    values = [f(point) for point in points]
    surrogate = bl.GP(**theta, mean="zero", targets="raw")
    study = bl.Study("s", MemoryStore(), bl.BayesOpt(LAB, seed=4, surrogate=surrogate, initial=0))
    study.add(points, values)
    study.revise(space=LAB | {"heat": (60.0, 100.0)})
    assert 2 < sum(trial.outside for trial in study.trials) < 9

    def columns(points):
        return np.array([[(point["heat"] - 60) / 40, point["acid"]] for point in points])

    dense = DensePosterior(columns(points), values, 0.3, 1.5**2, 0.01)
    grid = [{"heat": heat, "acid": 0.5} for heat in (20.0, 55.0, 80.0, 101.0, 119.0)] + points
    mean, std = study.predict(grid)
    assert np.allclose(mean, dense.mean(columns(grid)), rtol=0, atol=1e-8)
    assert np.allclose(std**2, dense.variances(columns(grid)), rtol=0, atol=1e-8)


def test_rows_that_are_not_candidates_any_longer_are_measurements_outside(store):
    rows = np.linspace(0.0, 10.0, 11)[:, None]
    study = bl.Study("c", store, bl.BayesOpt(candidates=rows, seed=0), time=still)
    study.add([1, 4, 8], [1.0, 2.0, 9.0])
    pending = study.suggest()
    kept = [row for row in range(11) if row not in (8, pending.index)]
    study.revise(candidates=rows[kept])
    assert study.left_out == {} and [trial.outside for trial in study.trials] == [False, False, True, True]
    assert study.best_value_ == 2.0 and study.best_trial(outside=True).x.tolist() == [8.0]
    assert study.predict([[8.0]])[0][0] > study.predict([[4.0]])[0][0]
    pending.observe(10.0)
    assert pending.value == 10.0 and study.best_value_ == 2.0
    assert all(0 <= study.suggest().index < 9 for _ in range(4))
    study.revise(candidates=rows)
    assert not any(trial.outside for trial in study.trials) and study.best_trial_ == pending
    again = load(store, "c")
    assert again.trial(2).index == 8 and again.best_value_ == 10.0


def test_points_off_a_new_step_are_ordinary_observations():
    study = memory({"n": (0, 100)}, [{"n": 30}, {"n": 37}, {"n": 95}], [1.0, 2.0, 3.0])
    study.revise(space={"n": bl.Integer(0, 90, step=10)})
    assert [trial.outside for trial in study.trials] == [False, False, True] and study.left_out == {}
    assert study.best_params_ == {"n": 37} and study.suggest().params["n"] % 10 == 0


def test_a_copy_has_the_trials_outside_that_its_study_has():
    study = memory(LAB, [{"heat": 50.0, "acid": 0.1}, {"heat": 110.0, "acid": 0.2}], [1.0, 2.0])
    with pytest.warns(bl.BelatedWarning, match=r"1 \(number 1\) do not belong"):
        assert study.copy("narrow", LAB | {"heat": (20.0, 100.0)}).n_trials == 1
    study.revise(space=LAB | {"heat": (20.0, 100.0)})
    copied = study.copy("copied")
    assert [trial.outside for trial in copied.trials] == [False, True] and copied.best_value_ == 1.0


def test_trees_go_on_with_the_values_inside_a_narrowed_space(store):
    study = make(store, n=9, kind=bl.TreeSearch)
    lost = study.suggest()
    low = lost.params["heat"] + 1.0
    study.revise(space=LAB | {"heat": (low, 120.0)})
    assert lost.outside and study.left_out == {} and study.pending == [lost]
    lost.observe(99.0)
    for _ in range(6):
        trial = study.suggest()
        assert low <= trial.params["heat"] <= 120
        trial.observe(f(trial.params))
    assert study.best_value_ < 99.0
    assert load(store).suggest().params == study.trials[-1].params


@pytest.mark.parametrize(
    ("before", "value", "after", "found"),
    [
        ((-1.0, 1.0), 0.05, bl.Real(0.1, 10.0, log=True), "outside"),
        ((-1.0, 1.0), -0.5, bl.Real(0.1, 10.0, log=True), "left out"),
        ((-1.0, 1.0), 0.0, bl.Real(0.1, 10.0, log=True), "left out"),
        ((0, 9), 7, (0.0, 5.0), "outside"),
        ((0.0, 9.0), 7.0, (0, 5), "outside"),
        ((0.0, 9.0), 3.5, (0, 5), "left out"),
        ((0.0, 1.0), 0.2, bl.Categorical([0.5, 0.7]), "left out"),
        ((0.0, 1.0), 0.5, bl.Categorical([0.5, 0.7]), "inside"),
        (["a", "b"], "b", ["a", "c"], "outside"),
        ((0.0, 1.0), 0.5, 0.7, "outside"),
        ((0.0, 1.0), 0.5, 0.5, "inside"),
    ],
)
def test_trials_are_left_out_if_the_new_parameter_refuses_the_value(before, value, after, found):
    study = memory({"x": before, "y": (0.0, 1.0)}, [{"x": value, "y": 0.5}], [1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study.revise(space={"x": after, "y": (0.0, 1.0)})
    trial = study.trial(0)
    assert (trial.left_out is not None) == (found == "left out")
    assert trial.outside == (found == "outside")
    assert trial.value == 1.0 and trial.params == {"x": value, "y": 0.5}
    assert study.best_trial_ == (trial if found == "inside" else None)


def test_contexts_and_fidelities_outside_leave_trials_out():
    optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0, context={"age": (0.0, 9.0)}, fidelity=bl.Fidelity(1, 9))
    study = bl.Study("s", MemoryStore(), optimizer)
    for age, fidelity in ((8.0, 9), (2.0, 1), (2.0, 9)):
        study.add({"x": 0.5}, 1.0, {"age": age}, fidelity=fidelity)
    with pytest.warns(bl.BelatedWarning, match=r"2 \(numbers 0, 1\)"):
        study.revise(context={"age": (0.0, 5.0)}, fidelity=bl.Fidelity(3, 9))


def test_trials_that_a_new_constraint_refuses_inform_the_model_and_are_not_the_best():
    study = memory(LAB, [{"heat": 110.0, "acid": 0.1}], [1.0])
    study.revise(constraints=[cool])
    assert study.left_out == {} and not study.trial(0).outside and study.best_value_ is None
    assert study.best_trial(outside=True).value == 1.0


READS = {
    "direction": lambda study: study.direction,
    "domain": lambda study: list(study.domain),
    "context_space": lambda study: list(study.context_space or ()),
    "optimizer": lambda study: (study.optimizer.direction, list(study.optimizer.domain), study.optimizer.get_params()),
    "get_params": lambda study: study.get_params()["direction"],
    "repr": repr,
    "html": lambda study: study._repr_html_(),
}


@pytest.mark.parametrize("read", READS.values(), ids=list(READS))
def test_another_handle_reads_the_present_problem(read, store):
    study = make(store, n=2, kind=bl.RandomSearch)
    other = load(store)
    before = read(other)
    study.revise(
        space=LAB | {"salt": (0.0, 1.0)},
        fill={"salt": 0.5, "lot": 0.5},
        direction="minimize",
        context={"lot": (0.0, 1.0)},
    )
    study.suggest(context={"lot": 0.5})
    assert repr(read(other)) == repr(read(load(store))) != repr(before)


def test_a_deleted_study_has_a_repr(store):
    study = make(store, n=1, kind=bl.RandomSearch)
    bl.Study.delete("lab", store)
    assert "'lab'" in repr(study)
