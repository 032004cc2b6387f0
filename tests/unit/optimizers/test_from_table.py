"""`add` reads the table of `trials_dataframe`, in memory and from a CSV file."""

import io
import math

import numpy as np
import pandas as pd
import pytest

import belated as bl
from tests.unit.optimizers.problem import ROWS

SPACE = {
    "x": bl.Real(1e-4, 0.1, log=True),
    "n": (1, 8),
    "kernel": ["rbf", "01", None],
    "bias": [True, False],
    "size": [16, 32.5, "auto"],
    "shape": [(1, 2), (3,)],
}


def through_csv(table):
    return pd.read_csv(io.StringIO(table.to_csv(index=False)))


def facts(opt):
    return [(trial.state, trial.value, trial.std, trial.context) for trial in opt.trials]


@pytest.mark.parametrize("way", [lambda table: table, through_csv])
@pytest.mark.parametrize("kind", ["optimizer", "study"])
def test_a_table_restores_the_trials_in_their_states(kind, way, tmp_path):
    context = {"z": (0.0, 1.0), "lot": ["1", "B"]}
    space = {name: SPACE[name] for name in SPACE if kind == "optimizer" or name != "shape"}
    opt = bl.RandomSearch(space, context=context, direction="minimize", seed=0)
    for i in range(24):
        trial = opt.suggest(context={"z": i / 24, "lot": "1B"[i % 2]})
        if i % 4 == 1:
            trial.observe(float(i) / 7, duration=None if i == 1 else 0.5 * i)
        elif i % 4 == 2:
            trial.fail(duration=None if i == 2 else 0.25 * i)
        elif i % 4 == 3:
            trial.abandon()
    opt.observe(5, 1.5, std=0.25, amend=True)
    other = bl.RandomSearch(space, context=context, direction="minimize", seed=1)
    if kind == "study":
        other = bl.Study("s", f"sqlite:///{tmp_path}/s.db", other)
    added = other.add(way(opt.trials_dataframe(delays=True)))
    assert [trial.number for trial in added] == list(range(24))
    assert [trial.duration for trial in added] == [trial.duration for trial in opt.trials]
    found, expected = facts(other), facts(opt)
    for one, another in zip(found, expected, strict=True):
        assert one[0] == another[0] and one[2] == another[2]
        assert one[1] == (None if another[1] is None else pytest.approx(another[1], rel=1e-13))
        assert one[3] == {"z": pytest.approx(another[3]["z"], rel=1e-13), "lot": another[3]["lot"]}
    for one, another in zip(other.trials, opt.trials, strict=True):
        assert {name: repr(value) for name, value in one.params.items() if name != "x"} == {
            name: repr(value) for name, value in another.params.items() if name != "x"
        }
        assert one.params["x"] == pytest.approx(another.params["x"], rel=1e-13)


@pytest.mark.parametrize("way", [lambda table: table, through_csv])
def test_candidates_are_restored_by_their_index(way):
    opt = bl.RandomSearch(candidates=ROWS, seed=0)
    for i, trial in enumerate(opt.suggest(n=5)):
        if i % 2:
            trial.observe(float(i))
    other = bl.RandomSearch(candidates=ROWS, seed=0)
    other.add(way(opt.trials_dataframe()))
    assert [trial.index for trial in other.trials] == [trial.index for trial in opt.trials]
    assert [trial.value for trial in other.trials] == [trial.value for trial in opt.trials]


def test_bounds_survive_the_rounding_of_a_file():
    bounds = (0.1 + 0.2, 1e22 / 3)
    opt = bl.RandomSearch({"x": bounds}, seed=0)
    table = opt.add([{"x": bounds[0]}, {"x": bounds[1]}], [1.0, 2.0]) and opt.trials_dataframe()
    table["params_x"] = [np.nextafter(bounds[0], -1), np.nextafter(bounds[1], math.inf)]
    assert [trial.params["x"] for trial in opt.add(table)] == list(bounds)
    table["params_x"] = [bounds[0], bounds[1] * (1 + 1e-8)]
    assert [trial.outside for trial in opt.add(table)] == [False, True]


def table_of(space, **columns):
    n = len(next(iter(columns.values())))
    plain = {"number": range(n), "state": ["observed"] * n, "value": [1.0] * n}
    return bl.RandomSearch(space, seed=0), pd.DataFrame(plain | columns)


@pytest.mark.parametrize("choices", [["1", 1], [1.0, "1.0"], ["01", "1"], [None, ""], ["None", None], [True, "True"]])
def test_choices_that_print_alike_are_refused(choices):
    opt, table = table_of({"k": bl.Categorical([*choices, "other"])}, params_k=[choices[0], "other"])
    for given in (table, through_csv(table)):
        with pytest.raises(bl.errors.InvalidSpace, match="row 0, column 'params_k': .* which print alike: add the"):
            opt.add(given)
    assert opt.n_trials == 0


def test_a_table_with_only_parameters_is_read():
    opt = bl.RandomSearch({"number": (0.0, 1.0), "value": (0.0, 1.0)}, seed=0)
    opt.add(pd.DataFrame({"number": [0.5], "value": [0.25]}), [1.0])
    assert opt.trials[0].params == {"number": 0.5, "value": 0.25}


X = {"x": (0.0, 1.0)}
GOOD = {"params_x": [0.5, 0.25]}
REFUSED = [
    (
        X,
        GOOD | {"state": ["observed", "done"]},
        bl.errors.InvalidValue,
        r"row 1, column 'state': state='done' is not one of \['observed'",
    ),
    (
        X,
        GOOD | {"value": [1.0, math.nan]},
        bl.errors.InvalidValue,
        "row 1, column 'value': the value is missing: fill it in, or pass missing=",
    ),
    (
        X,
        GOOD | {"value": [1.0, math.inf]},
        bl.errors.InvalidValue,
        r"row 1, column 'value': value=inf for this row is not usable: pass a finite number",
    ),
    (
        X,
        GOOD | {"std": [0.1, "much"]},
        bl.errors.InvalidValue,
        r"row 1, column 'std': std='much' for this row is not usable: pass one finite number",
    ),
    (
        X,
        GOOD | {"std": [0.1, -1.0]},
        bl.errors.InvalidValue,
        r"row 1, column 'std': std=-1.0 for this row is not usable: pass a finite number >= 0",
    ),
    (
        X,
        {"params_y": [0.5, 0.5]},
        bl.errors.InvalidPoint,
        r"has unknown \['y'\]: pass exactly the names \['x'\]",
    ),
    (
        X,
        {"params_x": [0.5, math.nan]},
        bl.errors.InvalidPoint,
        r"row 1, column 'params_x': params misses \['x'\]",
    ),
    (
        X,
        {"params_x": [0.5, "a"]},
        bl.errors.InvalidPoint,
        r"row 1, column 'params_x': params\['x'\]='a' is not usable",
    ),
    (
        {"k": ["a", "b"]},
        {"params_k": ["a", "c"]},
        bl.errors.InvalidPoint,
        r"row 1, column 'params_k': params\['k'\]='c' is not usable",
    ),
]


@pytest.mark.parametrize(("space", "columns", "error", "message"), REFUSED)
def test_tables_that_cannot_be_read_are_refused_as_a_whole(space, columns, error, message):
    opt, table = table_of(space, **columns)
    with pytest.raises(error, match=message):
        opt.add(table)
    assert opt.n_trials == 0


def test_a_table_of_trials_allows_no_other_arguments():
    opt, table = table_of(X, **GOOD)
    for more in ({"value": [1.0, 2.0]}, {"context": {"z": 1}}, {"std": 0.1}):
        with pytest.raises(
            bl.errors.InvalidValue, match="a table of trials, which has values and contexts: pass it alone"
        ):
            opt.add(table, **more)
    with_context = bl.RandomSearch(X, context={"z": (0, 3)}, seed=0)
    with pytest.raises(bl.errors.InvalidContext, match=r"context misses \['z'\]"):
        with_context.add(table)
    with pytest.raises(bl.errors.InvalidPoint, match="params=None is not a candidate: pass its index"):
        bl.RandomSearch(candidates=ROWS, seed=0).add(table)
    assert opt.n_trials == with_context.n_trials == 0


@pytest.mark.parametrize("way", [lambda table: table, through_csv])
def test_reported_fields_are_restored(way):
    opt = bl.RandomSearch({"x": (0.0, 1.0), "n": bl.Integer(0, 9)}, seed=0)
    run, plain, failed, pending = opt.suggest(4)
    run.observe(1.0, std=0.5, cost=2.0, params={"x": 0.25, "n": 7}, attrs={"lab": "B", "n": 3})
    plain.observe(2.0, attrs={"ok": True})
    failed.fail(error=ValueError("no such file: a.csv"), attrs={"lab": "A"})
    other = bl.RandomSearch({"x": (0.0, 1.0), "n": bl.Integer(0, 9)}, seed=1)
    added = other.add(way(opt.trials_dataframe()))
    assert [trial.params for trial in added] == [run.params_run, plain.params, failed.params, pending.params]
    for one, another in zip(added, opt.trials, strict=True):
        for fact in ("state", "value", "std", "cost", "attrs"):
            assert getattr(one, fact) == getattr(another, fact)
    assert str(added[2].error) == "ValueError: no such file: a.csv" and added[3].error is None


@pytest.mark.parametrize("way", [lambda table: table, through_csv])
def test_candidates_that_were_run_elsewhere_are_restored(way):
    opt = bl.RandomSearch(candidates=ROWS, seed=0)
    first, second = opt.suggest(2)
    first.observe(1.0, params=(first.index + 1) % 12)
    second.observe(2.0)
    other = bl.RandomSearch(candidates=ROWS, seed=1)
    assert [trial.index for trial in other.add(way(opt.trials_dataframe()))] == [(first.index + 1) % 12, second.index]
    table = opt.trials_dataframe()
    table["index_run"] = [0.5, None]
    with pytest.raises(bl.errors.InvalidPoint):
        other.add(table)
    assert other.n_trials == 2


# The space has a parameter `run_x` or `run__x`, so the columns for the points that were run get another prefix.
NAMED_LIKE_RUNS = ({"x": (0.0, 1.0), "run_x": (1, 9)}, {"x": (0.0, 1.0), "run_x": (1, 9), "run__x": ["a", "b"]})


@pytest.mark.parametrize("way", [lambda table: table, through_csv])
@pytest.mark.parametrize(("space", "prefix"), zip(NAMED_LIKE_RUNS, ("params_run__", "params_run___"), strict=True))
def test_parameters_named_like_the_columns_of_runs_elsewhere(way, space, prefix):
    opt = bl.RandomSearch(space, seed=0)
    run, plain, pending = opt.suggest(3)
    run.observe(1.0, params=run.params | {"x": 0.25, "run_x": run.params["run_x"] % 9 + 1})
    plain.observe(2.0)
    table = opt.trials_dataframe()
    columns = [f"{each}{name}" for each in ("params_", prefix) for name in space]
    assert list(table)[-len(columns) :] == columns and table.columns.is_unique
    assert table["params_run_x"].to_list() == [trial.params["run_x"] for trial in opt.trials]
    assert table[f"{prefix}x"][0] == 0.25 and table[f"{prefix}run_x"][0] == run.params_run["run_x"]
    other = bl.RandomSearch(space, seed=1)
    added = other.add(way(table))
    for one, params in zip(added, (run.params_run, plain.params, pending.params), strict=True):
        assert one.params == params | {"x": pytest.approx(params["x"], rel=1e-13)}
    # If every trial was run at its suggested point, the table has no columns for the points that were run.
    assert [each for each in other.trials_dataframe() if each.startswith("params_")] == columns[: len(space)]


def test_columns_of_points_run_elsewhere_belong_to_the_space():
    opt, table = table_of(X, **GOOD, params_run_x=[0.125, None])
    assert [trial.params for trial in opt.add(table)] == [{"x": 0.125}, {"x": 0.25}]
    opt, table = table_of(X, **GOOD, params_run_y=[0.125, None])
    with pytest.raises(bl.errors.InvalidPoint, match=r"params has unknown \['run_y'\]"):
        opt.add(table)
    assert opt.n_trials == 0


CONDITIONAL = {
    "kernel": ["rbf", "poly", None],
    "degree": bl.Integer(1, 5, when={"kernel": "poly"}),
    "mode": bl.Categorical(["fast", None], when={"degree": [2, 3, 4, 5]}),
    "width": bl.Ordinal([16, 32, "64"]),
    "gamma": bl.Real(0.0, 1.0, step=0.125),
    "cache": 200,
}


@pytest.mark.parametrize("way", [lambda table: table, through_csv])
def test_parameters_that_are_not_active_are_empty(way):
    opt = bl.RandomSearch(CONDITIONAL, seed=0)
    for i, trial in enumerate(opt.suggest(40)):
        if i % 2:
            trial.observe(float(i))
    other = bl.RandomSearch(CONDITIONAL, seed=1)
    added = other.add(way(opt.trials_dataframe()))
    assert [trial.params for trial in added] == [trial.params for trial in opt.trials]
    assert {tuple(trial.params) for trial in added} == {
        ("kernel", "width", "gamma", "cache"),
        ("kernel", "degree", "width", "gamma", "cache"),
        ("kernel", "degree", "mode", "width", "gamma", "cache"),
    }


def test_a_value_of_a_parameter_that_is_not_active_is_refused():
    opt = bl.RandomSearch(CONDITIONAL, seed=0)
    opt.suggest(10)
    table = opt.trials_dataframe()
    table["params_degree"] = 2.0
    with pytest.raises(bl.errors.InvalidPoint, match=r"params\['degree'\]=2.* is inactive here: leave it out"):
        bl.RandomSearch(CONDITIONAL, seed=0).add(table)
