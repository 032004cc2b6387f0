"""Calls of processes that have not read a revision: the arguments belong to the problem that the process knows."""

import threading
import warnings
from concurrent.futures import Executor, Future
from functools import partial

import numpy as np
import pytest

import belated as bl
from belated.errors import InvalidContext, InvalidFidelity, InvalidPoint, InvalidSetting, InvalidValue

GOALS = {"yield": "maximize", "purity": bl.AtLeast(0.5), "cost": bl.AtMost(50.0)}
TURNED = {name: GOALS[name] for name in ("cost", "yield", "purity")}
BOX = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
LAB = {"x": (0.0, 1.0), "solvent": ["tea", "oil", "water"]}
SWAPPED = {"space": LAB, "map": {"solvent": {"tea": "oil", "oil": "tea"}}}
ROWS = [[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]]
TABLE = [{"ligand": "B", "load": 1.0}, {"ligand": "P", "load": 2.0}, {"ligand": "X", "load": 3.0}]


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request, tmp_path):
    if request.param == "postgresql":
        return request.getfixturevalue("postgres").url()
    return f"sqlite:///{tmp_path}/lab.db"


@pytest.fixture
def asleep(store):
    """A function that creates a study with two trials and revises it. It returns handles that have not read that."""

    def make(domain, revisions, n=1, context=None, **arguments):
        name = "candidates" if isinstance(domain, list) else "space"
        given = arguments if context is None else arguments | {"context": context[0]}
        study = bl.Study("s", store, bl.RandomSearch(**{name: domain}, seed=0, **given))
        study.suggest(2, None if context is None else context[1])
        handles = [bl.Study.load("s", store) for _ in range(n)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bl.BelatedWarning)
            for changes in revisions:
                study.revise(**changes)
        return handles

    return make


@pytest.fixture
def fresh(store):
    return lambda: bl.Study.load("s", store)


# Points: the domain, the revisions, the given point, and the point in the present problem.
POINTS = {
    "parameters in another order": (BOX, [{"space": dict(reversed(BOX.items()))}], {"x": 0.25, "y": 0.75}, None),
    "choices in another order": (
        LAB,
        [{"space": LAB | {"solvent": ["water", "oil", "tea"]}}],
        {"x": 0.25, "solvent": "tea"},
        None,
    ),
    "names swapped": (LAB, [SWAPPED], {"x": 0.25, "solvent": "tea"}, {"x": 0.25, "solvent": "oil"}),
    "names swapped three times": (LAB, [SWAPPED] * 3, {"x": 0.25, "solvent": "oil"}, {"x": 0.25, "solvent": "tea"}),
    "a parameter filled": (
        BOX,
        [{"space": BOX | {"z": (0.0, 9.0)}, "fill": {"z": 4.0}}],
        {"x": 0.25, "y": 0.75},
        {"x": 0.25, "y": 0.75, "z": 4.0},
    ),
    "a name with another meaning": (
        BOX,
        [
            {"space": {"x": (0.0, 1.0)}, "keep": {"y": 0.75}},
            {"space": {"y": (5.0, 9.0), "x": (0.0, 1.0)}, "fill": {"y": 6.0}},
        ],
        {"x": 0.25, "y": 0.75},
        {"x": 0.25, "y": 6.0},
    ),
    "beyond the new bound": (BOX, [{"space": BOX | {"x": (0.5, 1.0)}}], {"x": 0.25, "y": 0.75}, None),
    "a row that another one precedes": (ROWS, [{"candidates": [[0.0, 5.0], *ROWS]}], 1, [2.0, 20.0]),
    "a row that is sorted elsewhere": (ROWS, [{"candidates": ROWS[::-1]}], [1.0, 10.0], None),
    "a row that is removed": (ROWS, [{"candidates": ROWS[:2]}], 2, [3.0, 30.0]),
    "a named row by its index": (TABLE, [{"candidates": [{"ligand": "A", "load": 0.5}, *TABLE]}], 1, TABLE[1]),
    "a named row by its params": (TABLE, [{"candidates": TABLE[::-1]}], TABLE[0], None),
}


@pytest.mark.parametrize("case", POINTS)
def test_points_are_the_given_ones(asleep, fresh, case):
    domain, revisions, given, expected = POINTS[case]
    reporting, adding = asleep(domain, revisions, n=2)
    expected = given if expected is None else expected
    reporting.observe(0, 1.0, params=given)
    assert np.array_equal(fresh().trial(0).params_run, expected) and fresh().trial(0).value == 1.0
    adding.add([given], [2.0])
    assert np.array_equal(fresh().trial(2).params, expected) and fresh().trial(2).value == 2.0


def test_tables_are_read_in_the_problem_that_was_known(asleep, fresh):
    pandas = pytest.importorskip("pandas")
    turned = {"outcomes": TURNED, "space": dict(reversed(LAB.items())), "map": SWAPPED["map"]}
    [study] = asleep(LAB, [turned], outcomes=GOALS)
    table = pandas.DataFrame(
        {
            "params_x": [0.25, 0.5],
            "params_solvent": ["tea", "water"],
            "outcome_yield": [1.0, 2.0],
            "outcome_purity": [None, 0.75],
            "state_purity": ["failed", None],
            "outcome_cost": [None, 3.0],
            "state_cost": ["pending", "withdrawn"],
            "withdrawn_value_cost": [None, 9.0],
            "number": [0, 1],
            "state": ["pending", "observed"],
            "value": [1.0, 2.0],
        }
    )
    table.loc[1, "outcome_cost"] = None
    study.add(table)
    first, second = fresh().trials[2:]
    assert first.params == {"x": 0.25, "solvent": "oil"} and second.params == {"x": 0.5, "solvent": "water"}
    assert first.values == {"yield": 1.0} and first.outcomes["purity"].state == "failed"
    assert second.values == {"yield": 2.0, "purity": 0.75} and second.outcomes["cost"].withdrawal.value == 9.0


def test_points_that_cannot_be_carried_are_refused_with_the_revision(asleep, fresh):
    revisions = [{"space": LAB}, {"space": {"x": (0.0, 1.0)}, "keep": {"solvent": "tea"}}]
    oil = {"x": 0.5, "solvent": "oil"}
    calls = [
        lambda study: study.observe(0, 1.0, params=oil),
        lambda study: study.add(oil, 1.0),
        lambda study: study.enqueue([{"x": 0.5, "solvent": "tea"}, oil]),
        lambda study: study.enqueue({"solvent": "oil"}),
        lambda study: study.suggest(fixed={"solvent": ["oil", "water"]}),
    ]
    *handles, last = asleep(LAB, revisions, n=len(calls) + 1)
    n_events = fresh()._log.n_events()
    for call, study in zip(calls, handles, strict=True):
        with pytest.raises(InvalidPoint, match="the parameter 'solvent' was removed by revision 3"):
            call(study)
    assert fresh()._log.n_events() == n_events
    last.observe(0, 1.0, params={"x": 0.5, "solvent": "tea"})
    assert fresh().trial(0).params_run == {"x": 0.5}


def test_a_choice_that_was_removed_names_its_revision(asleep):
    revisions = [{"space": LAB | {"solvent": names}} for names in (["water", "tea"], ["tea", "water"])]
    for call, study in zip(
        (
            lambda study: study.observe(0, 1.0, params={"x": 0.5, "solvent": "oil"}),
            lambda study: study.suggest(fixed={"solvent": "oil"}),
            lambda study: study.enqueue({"solvent": "oil"}),
        ),
        asleep(LAB, revisions, n=3),
        strict=True,
    ):
        with pytest.raises(InvalidPoint, match="'oil'.*revision [23]"):
            call(study)


def test_a_trial_that_was_left_out_is_reported_as_it_was_suggested(asleep, fresh):
    [study] = asleep(LAB, [{"space": {"x": (0.0, 1.0)}, "keep": {"solvent": "water"}}])
    trial = next(trial for trial in (bl.Trial(study, 0), bl.Trial(study, 1)) if trial.params["solvent"] != "water")
    params = trial.params
    trial.observe(1.0, params=params)
    found = fresh().trial(trial.number)
    assert found.value == 1.0 and found.params_run == params and found.left_out is not None


def test_a_parameter_that_moved_between_space_and_context(asleep, fresh):
    context = ({"day": (0.0, 9.0)}, {"day": 3.0})
    [study] = asleep(BOX, [{"space": BOX | {"day": (0.0, 9.0)}, "context": None}], context=context)
    study.observe(0, 1.0, params={"x": 0.25, "y": 0.5})
    assert fresh().trial(0).params_run == {"x": 0.25, "y": 0.5, "day": 3.0}
    with pytest.raises(InvalidContext, match="'day'"):
        bl.Study.load("s", study.store).suggest(context={"day": 1.0})


# Outcomes.


@pytest.mark.parametrize("revisions", [[TURNED], [TURNED, GOALS, TURNED], [{"note": bl.Record(), **TURNED}]])
def test_outcomes_are_found_by_their_names(asleep, fresh, revisions):
    handles = iter(asleep(BOX, [{"outcomes": goals} for goals in revisions], n=5, outcomes=GOALS))
    next(handles).observe(0, {"purity": 0.75, "yield": 3.0}, std={"purity": 0.125})
    found = fresh().trial(0)
    assert found.values == {"yield": 3.0, "purity": 0.75} and found.outcomes["purity"].std == 0.125
    next(handles).fail(1, outcome="cost")
    next(handles).abandon(1, outcome="purity")
    next(handles).withdraw([0], outcome="purity")
    states = [{name: each.state for name, each in trial.outcomes.items() if name in GOALS} for trial in fresh().trials]
    assert states == [
        {"yield": "observed", "purity": "pending", "cost": "pending"},
        {"yield": "pending", "purity": "abandoned", "cost": "failed"},
    ]
    next(handles).add([{"x": 0.5, "y": 0.5}], [{"cost": 2.0, "yield": 1.0}])
    assert fresh().trials[2].values == {"cost": 2.0, "yield": 1.0}


def test_values_of_removed_outcomes_are_left_out_with_a_warning(asleep, fresh):
    goals = {"cost": GOALS["cost"], "yield": "maximize"}
    first, second, third = asleep(BOX, [{"outcomes": goals}], n=3, outcomes=GOALS)
    with pytest.warns(bl.BelatedWarning, match="'purity' was removed by revision 2"):
        first.observe(0, {"yield": 3.0, "purity": 0.75}, cost=2.0)
    assert fresh().trial(0).values == {"yield": 3.0} and fresh().trial(0).cost == 2.0
    with pytest.raises(InvalidValue, match="'purity' was removed by revision 2"):
        second.observe(1, {"purity": 0.75})
    with pytest.raises(InvalidValue, match="'purity' was removed by revision 2"):
        third.fail(1, outcome="purity")
    assert fresh().trial(1).state == "pending"


def test_an_outcome_that_was_removed_and_declared_again_is_another_one(asleep, fresh):
    without = {name: goal for name, goal in GOALS.items() if name != "purity"}
    [study] = asleep(BOX, [{"outcomes": without}, {"outcomes": GOALS}], outcomes=GOALS)
    with pytest.warns(bl.BelatedWarning, match="removed by revision 2"):
        study.observe(0, {"yield": 3.0, "purity": 0.75})
    assert fresh().trial(0).values == {"yield": 3.0}


def test_a_number_becomes_the_objective(asleep, fresh):
    revisions = [{"outcomes": {"purity": bl.AtLeast(0.5), "yield": "maximize"}}]
    reporting, adding = asleep(BOX, revisions, n=2)
    reporting.observe(0, 3.0, std=0.5, cost=2.0)
    adding.add([{"x": 0.5, "y": 0.5}], [4.0])
    assert [trial.values for trial in fresh().trials] == [{"yield": 3.0}, {}, {"yield": 4.0}]
    assert fresh().trial(0).outcomes["yield"].std == 0.5 and fresh().trial(0).cost == 2.0


def test_a_number_is_refused_if_no_outcome_is_the_objective(asleep, fresh):
    [study] = asleep(BOX, [{"outcomes": {"purity": bl.Record()}}])
    advice = "revision 2 declared outcomes without an objective, .* call sync, and pass the values as a dict"
    with pytest.raises(InvalidValue, match=advice):
        study.observe(0, 3.0)
    study.sync()
    study.observe(0, {"purity": 3.0})
    assert fresh().trial(0).values == {"purity": 3.0}


def test_a_context_that_was_added_and_removed_is_no_part_of_a_queued_point(asleep, fresh):
    revisions = [{"context": {"site": ["a", "b"]}, "fill": {"site": "a"}}, {"context": None, "keep": {"site": "b"}}]
    [study] = asleep(BOX, revisions)
    study.enqueue({"x": 0.25})
    study.enqueue({"x": 0.25, "y": 0.75})
    assert [trial.params["x"] for trial in fresh().suggest(2)] == [0.25, 0.25]


def test_trials_of_a_context_that_was_added_and_removed_are_refused(asleep, fresh):
    revisions = [{"context": {"site": ["a", "b"]}, "fill": {"site": "a"}}, {"context": None, "keep": {"site": "b"}}]
    suggesting, adding = asleep(BOX, revisions, n=2)
    with pytest.raises(InvalidContext, match="removed by revision 3"):
        suggesting.suggest()
    with pytest.raises(InvalidContext, match="removed by revision 3"):
        adding.add({"x": 0.5, "y": 0.5}, 1.0)
    assert len(fresh().trials) == 2


def test_the_direction_does_not_change_values(asleep, fresh):
    [study] = asleep(BOX, [{"direction": "minimize"}])
    study.observe(0, 3.0)
    assert fresh().trial(0).value == 3.0 and fresh().direction == "minimize"


def test_queries_about_an_outcome_use_the_present_outcomes(store):
    study = bl.Study("s", store, bl.BayesOpt(BOX, outcomes=GOALS, seed=0))
    for i in range(10):
        x, y = (i + 0.5) / 10, (7 * i % 10 + 0.5) / 10
        study.add({"x": x, "y": y}, {"yield": x, "purity": 0.9 * x, "cost": 30.0 + 10.0 * y})
    first, second, third = (bl.Study.load("s", store) for _ in range(3))
    study.revise(outcomes=TURNED)
    expected = study.importances(outcome="cost")
    assert expected["y"] > 0.9 and first.importances(outcome="cost") == expected
    point = {"x": 0.5, "y": 0.5}
    assert second.predict(point, outcome="cost") == study.predict(point, outcome="cost")
    assert np.array_equal(third._leave_one_out("cost")[1], study._leave_one_out("cost")[1])


# Requests, contexts, fidelities and the queue.


def test_requests_are_carried(asleep, fresh):
    space = {"solvent": ["oil", "tea", "water"], "x": (0.0, 1.0), "z": (0.0, 1.0)}
    first, second, third, fourth = asleep(LAB, [SWAPPED, {"space": space, "fill": {"z": 0.5}}], n=4)
    trials = first.suggest(4, fixed={"solvent": "tea"}, shared=["x"])
    assert {trial.params["solvent"] for trial in trials} == {"oil"}
    assert len({trial.params["x"] for trial in trials}) == 1
    trials = second.suggest(6, fixed={"solvent": ["tea", "water"], "x": (0.25, 0.5)})
    assert {trial.params["solvent"] for trial in trials} <= {"oil", "water"}
    assert all(0.25 <= trial.params["x"] <= 0.5 for trial in trials)
    third.enqueue([{"x": 0.25, "solvent": "oil"}, {"solvent": "tea"}])
    whole, part = fresh().suggest(2)
    assert whole.params == {"x": 0.25, "solvent": "tea", "z": 0.5} and part.params["solvent"] == "oil"
    with pytest.raises(InvalidPoint, match="fixed has 'z'"):
        fourth.suggest(fixed={"z": 0.5})


def test_a_fixed_parameter_that_was_removed_must_have_its_present_value(asleep):
    keep = {"space": {"x": (0.0, 1.0)}, "keep": {"solvent": "tea"}}
    first, second = asleep(LAB, [keep], n=2)
    assert {*first.suggest(fixed={"solvent": ["oil", "tea"]}).params} == {"x"}
    assert {*second.suggest(fixed={"solvent": "tea"}, shared=["solvent"]).params} == {"x"}


@pytest.mark.parametrize(
    ("revision", "fixed"),
    [
        ({"space": BOX | {"x": (0.0, 0.15)}}, {"x": (0.1, 0.2)}),
        ({"space": BOX | {"x": (0.5, 1.0)}}, {"x": 0.25}),
        ({"space": BOX | {"x": bl.Real(0.0, 1.0, step=0.25)}}, {"x": 0.3}),
        ({"constraints": [bl.Mixture(["x", "y"], total=0.5)]}, {"x": 0.75}),
        ({"constraints": [bl.Linear({"x": 1.0, "y": 1.0}, at_most=0.5)]}, {"x": 0.75, "y": (0.5, 1.0)}),
        ({"constraints": [bl.Mixture(["x", "y"], total=0.5)]}, {"x": (0.6, 0.7)}),
    ],
)
@pytest.mark.parametrize("n", [1, 3])
def test_fixed_values_that_a_revision_excludes_name_the_revision(asleep, fresh, revision, fixed, n):
    (handle,) = asleep(BOX, [revision])
    with pytest.raises(InvalidPoint, match=r"^fixed.* \(the arguments belong to revision 1, and revision 2"):
        handle.suggest(n, fixed=fixed)
    with pytest.raises(InvalidPoint, match="^fixed") as present:
        fresh().suggest(n, fixed=fixed)
    assert "revision" not in str(present.value) and fresh().n_trials == 2


def test_queued_candidates_are_the_given_rows(asleep, fresh):
    for rows, index in ((ROWS, 2), (TABLE, 2)):
        [study] = asleep(rows, [{"candidates": rows[::-1]}])
        study.enqueue(index)
        assert np.array_equal(fresh().suggest().params, rows[2])
        bl.Study.delete("s", study.store)


def test_contexts_and_fidelities_are_carried(asleep, fresh):
    context = ({"day": (0.0, 9.0), "air": ["dry", "wet"]}, {"day": 1.0, "air": "dry"})
    changes = {"context": {"air": ["wet", "dry"], "day": (0.0, 5.0)}, "fidelity": bl.Fidelity(1, 81)}
    handles = asleep(BOX, [changes], n=4, context=context, fidelity=bl.Fidelity(1, 27))
    trial = handles[0].suggest(context={"day": 3.0, "air": "wet"}, fidelity=27)
    assert (trial.context, trial.fidelity) == ({"day": 3.0, "air": "wet"}, 27)
    handles[1].add({"x": 0.5, "y": 0.25}, 1.0, {"day": 4.0, "air": "dry"})
    added = fresh().trials[-1]
    assert (added.context, added.fidelity) == ({"day": 4.0, "air": "dry"}, 27)
    with pytest.raises(InvalidContext, match="day.*revision 2"):
        handles[2].suggest(context={"day": 7.0, "air": "wet"})
    number = trial.number
    handles[3].sync()
    with pytest.raises(InvalidFidelity):
        handles[3].observe(number, 1.0, fidelity=81)
    handles[3].observe(number, 1.0, fidelity=27)


def test_fidelities_are_carried_at_each_revision(asleep, fresh):
    revisions = [{"fidelity": None}, {"fidelity": bl.Fidelity(1, 81)}]
    first, second, third = asleep(BOX, revisions, n=3, fidelity=bl.Fidelity(1, 27))
    first.observe(0, 1.0, fidelity=27)
    assert fresh().trial(0).value == 1.0 and fresh().trial(0).fidelity in (81, None)
    assert second.suggest(fidelity=27).fidelity == 81
    third.add({"x": 0.5, "y": 0.5}, 1.0, fidelity=27)
    assert fresh().trials[-1].fidelity == 81


def test_a_context_that_was_added_is_no_part_of_a_queued_point(asleep, fresh):
    [study] = asleep(BOX, [{"context": {"site": ["a", "b"]}, "fill": {"site": "b"}}])
    study.enqueue([{}, {"x": 0.25}])
    assert fresh().suggest(2, context={"site": "a"})[1].params["x"] == 0.25


def test_ranges_are_equal_in_python_and_over_http(asleep):
    [study] = asleep(BOX, [])
    trial = study.suggest(fixed={"x": (0.25, 0.5)}, key="k")
    assert study.suggest(fixed={"x": {"low": 0.25, "high": 0.5}}, key="k") == trial


# Single handles: points of earlier problems in the core.


def test_a_trial_that_is_left_out_takes_values_and_the_study_can_be_read(store):
    space = {"x": (0.0, 1.0), "t": (10.0, 90.0)}
    goals = {"f": "maximize", "p": bl.Record()}
    study = bl.Study("s", store, bl.RandomSearch(space, seed=1, outcomes=goals))
    study.suggest()
    study.observe(0, {"p": 7.0}, params={"x": 0.9, "t": 87.0})
    with pytest.warns(bl.BelatedWarning):
        study.revise(space={"x": (0.0, 1.0)}, keep={"t": 59.0})
    study.observe(0, {"f": 12.0})
    assert bl.Study.load("s", store).trial(0).values == {"f": 12.0, "p": 7.0}


def test_a_trial_that_was_run_outside_after_its_start_was_removed(store):
    space = {"y": (0.0, 1.0), "t": (10.0, 90.0), "c": ["a", "b", "c"]}
    rest = {name: space[name] for name in ("t", "c")}
    study = bl.Study("s", store, bl.RandomSearch(space, seed=1))
    trial = study.add({"y": 0.716, "t": 27.3, "c": "b"})
    with pytest.warns(bl.BelatedWarning):
        study.revise(space=rest, keep={"y": 0.318})
    study.observe(trial, 23.0, params={"t": 91.0, "c": "c"})
    study.revise(space=rest | {"x": (0.0, 1.0)}, fill={"x": 0.5})
    assert study.suggest(fixed={"t": 57.0, "x": 0.2}).params["t"] == 57.0


def test_steps_of_a_curve_that_was_removed_are_refused(asleep, fresh):
    first, second = asleep(BOX, [{"curve": bl.Curve(3)}, {"curve": None, "stopping": None}], n=2, curve=bl.Curve(9))
    with pytest.raises(InvalidValue, match="removed by revision 3"):
        first.report(0, 0.5, 2)
    assert not second.should_stop(0) and fresh().trial(0).curve == {}


# Keys.


def test_a_repeated_call_is_the_same_call_whatever_was_revised(asleep, fresh):
    first, second = asleep(BOX, [], n=2, outcomes=GOALS)
    report = {"value": {"yield": 1.0, "cost": 2.0}, "params": {"x": 0.5, "y": 0.25}, "std": 0.5, "key": "report"}
    request = {"n": 3, "fixed": {"x": (0.25, 0.5)}, "shared": ["y"], "key": "request"}
    first.observe(0, **report)
    trials = first.suggest(**request)
    space = {"z": (0.0, 1.0), "y": (0.0, 1.0), "x": (0.0, 1.0)}
    fresh().revise(outcomes=TURNED, space=space, fill={"z": 0.5})
    n_events = fresh()._log.n_events()
    for study in (first, second, fresh()):
        study.observe(0, **report)
        assert [trial.number for trial in study.suggest(**request)] == [trial.number for trial in trials]
        for other in ({"value": {"yield": 1.0}}, {"params": None}, {"std": 0.25}, {"amend": True}):
            with pytest.raises(InvalidSetting, match="key='report'"):
                study.observe(0, **(report | other))
        for other in ({"shared": None}, {"shared": ["x"]}, {"fixed": None}, {"n": 2}):
            with pytest.raises(InvalidSetting, match="key='request'"):
                study.suggest(**(request | other))
    assert fresh()._log.n_events() == n_events


# Runs.


@pytest.mark.parametrize(
    ("before", "after", "stored"),
    [
        (GOALS, {"cost": GOALS["cost"], "yield": "maximize"}, {"yield", "cost"}),
        (GOALS, TURNED, {"yield", "cost", "purity"}),
        (None, {"purity": bl.Record(), "yield": "maximize"}, {"yield"}),
    ],
)
def test_a_run_stores_what_still_exists(store, before, after, stored):
    study = bl.Study("s", store, bl.RandomSearch(BOX, outcomes=before, seed=0))
    together, revised = threading.Barrier(3), []

    def f(params):
        if len(revised) < 3 and together.wait(20) == 0:
            bl.Study.load("s", store).revise(outcomes=after)
        if len(revised) < 3:
            together.wait(20)
            revised.append(1)
        return params["x"] if before is None else {"yield": params["x"], "purity": 0.75, "cost": 2.0}

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        bl.maximize(f, optimizer=study, n_trials=6, n_workers=3, progress=False)
    assert sum("removed by revision 2" in str(each.message) for each in caught) == (stored == {"yield", "cost"})
    trials = bl.Study.load("s", store).trials
    assert [trial.values.get("yield") for trial in trials] == [trial.params["x"] for trial in trials]
    assert all({*trial.values} == stored for trial in trials)


ADDED = [
    # The outcomes before and after, the result of f, and the values that are stored.
    ({"yield": "maximize"}, {"q": bl.Record()}, {"yield": 0.5, "q": 7.0}, {"yield": 0.5, "q": 7.0}),
    ({"yield": "maximize"}, {"q": bl.AtLeast(1.0)}, {"value": {"yield": 0.5, "q": 7.0}, "std": 0.1}, None),
    ({"yield": "maximize"}, {"q": bl.AtLeast(1.0)}, {"value": 0.5, "q": 7.0, "cost": 2.0}, None),
    (None, {"q": bl.Record()}, {"value": 0.5, "q": 7.0, "std": 0.1}, None),
    ({"yield": "maximize"}, {"q": bl.Record(), "r": bl.Record()}, {"yield": 0.5, "q": 7.0, "r": "n.d."}, None),
    (GOALS, {"q": bl.Record()}, {"yield": 0.5, "purity": 0.75, "cost": 2.0, "q": 7.0}, None),
    ({"yield": "maximize"}, {"q": bl.Record()}, {"yield": 0.5}, {"yield": 0.5}),
]


@pytest.mark.parametrize(("before", "added", "returned", "stored"), ADDED)
@pytest.mark.parametrize("processes", [False, True])
def test_a_run_stores_outcomes_that_are_added_while_it_runs(store, before, added, returned, stored, processes):
    """A revision that only adds outcomes: trials that end later have them, also if they were started earlier."""
    if processes and (returned != ADDED[0][2] or "sqlite" not in store):
        pytest.skip("the reports of processes and threads are the same")
    study = bl.Study("s", store, bl.RandomSearch(BOX, outcomes=before, seed=0))

    def revise(optimizer, trial):
        if trial.number == 1:
            bl.Study.load("s", store).revise(outcomes={"yield": "maximize"} | added)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        workers = {"processes": True, "n_workers": 1} if processes else {}
        f = partial(constant, returned=returned)
        bl.maximize(f, optimizer=study, n_trials=5, callbacks=[revise], progress=False, **workers)
    trials = bl.Study.load("s", store).trials
    expected = stored or {"yield": 0.5, "q": 7.0}
    assert [trial.values.get("yield") for trial in trials] == [0.5] * 5
    assert [trial.values for trial in trials[2:]] == [expected] * 3
    missing = [name for name in added if name not in expected]
    assert [trial.missing for trial in trials[2:]] == [missing] * 3
    pending = [str(each.message) for each in caught if "3 trials of this run are pending" in str(each.message)]
    assert len(pending) == bool(missing) and all(repr(name) in text for name in missing for text in pending)


def constant(params, returned):
    return returned


def test_a_run_stores_an_added_outcome_of_running_trials(store):
    """All four trials were started before the outcome was added."""
    study = bl.Study("s", store, bl.RandomSearch(BOX, outcomes={"yield": "maximize"}, seed=0))

    def f(params, trial):
        if trial.number == 0:
            bl.Study.load("s", store).revise(outcomes={"yield": "maximize", "q": bl.AtLeast(0.0)})
        return {"yield": params["x"], "q": params["y"]}

    with pytest.warns(bl.BelatedWarning, match="also returned 'q'"):
        bl.maximize(f, optimizer=study, n_trials=4, n_workers=4, executor=Together(), progress=False)
    trials = bl.Study.load("s", store).trials
    assert [trial.values for trial in trials] == [{"yield": t.params["x"], "q": t.params["y"]} for t in trials]
    assert study.best_value_ == max(trial.params["x"] for trial in trials)


def test_a_failed_outcome_may_have_been_removed(store):
    study = bl.Study("s", store, bl.RandomSearch(BOX, outcomes=GOALS, seed=0))

    def f(params, trial):
        if trial.number == 0:
            bl.Study.load("s", store).revise(outcomes={"yield": "maximize", "cost": GOALS["cost"]})
        return {"yield": params["x"], "purity": float("inf"), "cost": "n.d."}

    with pytest.warns(bl.BelatedWarning, match="purity=inf"):
        bl.maximize(f, optimizer=study, n_trials=2, progress=False)
    trials = bl.Study.load("s", store).trials
    assert [trial.values for trial in trials] == [{"yield": trial.params["x"]} for trial in trials]
    assert [trial.outcomes["cost"].state for trial in trials] == ["failed"] * 2


class Together(Executor):
    """An executor that evaluates four trials as soon as all are submitted, in this order."""

    def __init__(self):
        self.waiting = []

    def submit(self, function, *arguments):
        future = Future()
        self.waiting.append((future, function, arguments))
        if len(self.waiting) == 4:
            for each, call, given in self.waiting:
                each.set_running_or_notify_cancel()
                each.set_result(call(*given))
        return future


def test_finished_evaluations_are_stored_before_a_run_ends(store):
    """The first evaluation has only an outcome that was removed, and ends the run."""
    study = bl.Study("s", store, bl.RandomSearch(BOX, outcomes=GOALS, seed=0))

    def f(params, trial):
        if trial.number == 0:
            bl.Study.load("s", store).revise(outcomes={"yield": "maximize"})
            return {"purity": 0.75}
        return {"yield": params["x"]}

    with pytest.raises(InvalidValue, match="'purity' was removed by revision 2"):
        bl.maximize(f, optimizer=study, n_trials=4, n_workers=4, executor=Together(), progress=False)
    trials = bl.Study.load("s", store).trials
    assert trials[0].state == "pending"
    assert [trial.values for trial in trials[1:]] == [{"yield": trial.params["x"]} for trial in trials[1:]]


def test_evaluations_go_on_without_the_steps_of_a_removed_curve(store):
    study = bl.Study("s", store, bl.RandomSearch(BOX, curve=bl.Curve(5), seed=0))

    def f(params, trial):
        trial.report(0.5, 1)
        if trial.number == 0:
            bl.Study.load("s", store).revise(curve=None, stopping=None)
        trial.report(0.75, 2)
        return params["x"]

    bl.maximize(f, optimizer=study, n_trials=2, progress=False)
    assert [trial.value for trial in bl.Study.load("s", store).trials] == [t.params["x"] for t in study.trials]
