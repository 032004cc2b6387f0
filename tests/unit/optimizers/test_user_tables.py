"""`add` reads tables that users wrote: columns by name, missing values, and all errors at once."""

import io
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import belated as bl
from belated.errors import InvalidContext, InvalidPoint, InvalidSetting, InvalidSpace, InvalidValue
from belated.store.memory import MemoryStore
from belated.warn import BelatedWarning

SPACE = {"T": (20.0, 100.0), "solvent": ["water", "Water ", "DMF"], "n": (1, 5)}


def new(**settings):
    return bl.RandomSearch(SPACE, seed=0, **settings)


def table_of(n=4, **columns):
    plain = {
        "day": [f"day {i}" for i in range(n)],
        "solvent": [["water", "Water ", "DMF"][i % 3] for i in range(n)],
        "T": np.linspace(30.0, 90.0, n),
        "n": [1 + i % 5 for i in range(n)],
        "yield": np.linspace(0.1, 0.9, n),
    }
    return pd.DataFrame(plain | columns)


@pytest.mark.parametrize("prefix", ["", "params_"])
@pytest.mark.parametrize("numbered", [False, True])
@pytest.mark.parametrize("kind", ["optimizer", "study"])
def test_columns_are_found_by_name_with_and_without_prefix(prefix, numbered, kind):
    table = table_of().rename(columns={name: f"{prefix}{name}" for name in SPACE})
    if numbered:
        table.insert(0, "number", [7, 3, 1, 99])
    opt = new() if kind == "optimizer" else bl.Study("s", MemoryStore(), new())
    added = opt.add(table, value="yield", std="yield", attrs="day")
    listed = new()
    points = table_of()[list(SPACE)].to_dict("records")
    listed.add(points, table["yield"].tolist(), std=table["yield"].tolist())
    assert [trial.number for trial in added] == [0, 1, 2, 3]
    assert [(t.params, t.value, t.std) for t in added] == [(t.params, t.value, t.std) for t in listed.trials]
    assert [trial.attrs for trial in added] == [{"day": f"day {i}"} for i in range(4)]


def test_a_table_with_a_column_value_needs_no_argument():
    opt = new()
    opt.add(table_of().rename(columns={"yield": "value"}))
    assert [trial.value for trial in opt.trials] == table_of()["yield"].tolist()
    assert opt.trials_dataframe()["value"].tolist() == table_of()["yield"].tolist()


def test_the_columns_of_trials_dataframe_without_their_prefix():
    opt = new(context={"lot": ["A", "B"]})
    first, second, third, fourth = (opt.suggest(context={"lot": lot}) for lot in "ABAB")
    first.observe(1.0, std=0.5, attrs={"by": "Ada"})
    second.fail(error="spilled")
    third.abandon()
    table = opt.trials_dataframe().rename(columns=lambda name: name.removeprefix("params_").removeprefix("context_"))
    other = new(context={"lot": ["A", "B"]})
    other.add(table.drop(columns="number"))
    for one, another in zip(opt.trials, other.trials, strict=True):
        for fact in ("params", "context", "state", "value", "std", "attrs"):
            assert getattr(one, fact) == getattr(another, fact)
    assert str(other.trial(1).error) == "spilled" and fourth.state == "pending"


@pytest.mark.parametrize(("missing", "states"), [("skip", ["observed"] * 2), ("pending", ["observed", "pending"] * 2)])
@pytest.mark.parametrize("empty", [None, np.nan, pd.NA])
def test_rows_without_a_value(missing, states, empty):
    column = pd.Series([0.5, empty, 0.75, empty], dtype=object)
    table, opt = table_of(**{"yield": column}), new()
    with pytest.raises(InvalidValue, match=r"row 1, column 'yield': the value is missing: .*other rows with errors: 3"):
        opt.add(table, value="yield")
    assert opt.n_trials == 0
    assert [trial.state for trial in opt.add(table, value="yield", missing=missing)] == states
    added = new().add(table, value="yield", missing=missing, on_error="skip")
    assert [each.row for each in added.skipped] == ([1, 3] if missing == "skip" else [])


BAD = {
    "T": [("T", None), ("T", "warm"), ("T", True)],
    "solvent": [("solvent", "ether"), ("solvent", None)],
    "n": [("n", "many"), ("n", None)],
    "yield": [("yield", "n.d."), ("yield", None), ("yield", float("inf"))],
    "sd": [("sd", -1.0), ("sd", "?")],
}


@settings(max_examples=60, deadline=None)
@given(
    wrong=st.dictionaries(st.integers(0, 19), st.sampled_from([each for listed in BAD.values() for each in listed])),
    as_file=st.booleans(),
)
def test_good_rows_are_added_and_all_others_are_listed(wrong, as_file):
    table = table_of(20, sd=0.1).astype(object)
    table.index = [f"run {i}" for i in range(20)]
    for i, (column, cell) in wrong.items():
        table.loc[f"run {i}", column] = cell
    if as_file:
        # One text makes pandas read all numbers of a column as texts.
        table = pd.read_csv(io.StringIO(table.to_csv()), index_col=0)
    opt = new()
    trials, skipped = opt.add(table, value="yield", std="sd", on_error="skip")
    assert [(each.row, each.column) for each in skipped] == [(f"run {i}", wrong[i][0]) for i in sorted(wrong)]
    good = [i for i in range(20) if i not in wrong]
    expected = table_of(20)
    assert [trial.value for trial in trials] == expected["yield"][good].tolist()
    assert [trial.params["T"] for trial in trials] == expected["T"][good].tolist()
    assert opt.n_trials == len(good)
    if wrong:
        before = opt.n_trials
        with pytest.raises((InvalidPoint, InvalidValue)) as caught:
            opt.add(table, value="yield", std="sd")
        first = min(wrong)
        assert str(caught.value).startswith(f"row 'run {first}', column {wrong[first][0]!r}: ")
        assert opt.n_trials == before


def test_a_parameter_is_added_to_a_table_with_columns_of_runs():
    old = bl.RandomSearch({"T": (20.0, 100.0), "s": ["a", "b"]}, seed=0)
    for trial in old.suggest(n=3):
        trial.observe(trial.params["T"])
    old.observe(old.suggest(), 5.0, params={"T": 33.0, "s": "a"})
    table = old.trials_dataframe()
    table["params_time"] = [12.0, 12.0, 6.0, 3.0]
    new_space = bl.RandomSearch({"T": (20.0, 100.0), "s": ["a", "b"], "time": (1.0, 24.0)}, seed=0)
    added = new_space.add(table)
    expected = [
        trial.params_run | {"time": hours} for trial, hours in zip(old.trials, table["params_time"], strict=True)
    ]
    assert [trial.params for trial in added] == expected
    # The same with a column of this name without the prefix, as in a spreadsheet.
    assert [trial.params for trial in new_space.add(table.rename(columns={"params_time": "time"}))] == expected
    with pytest.raises(InvalidPoint, match=r"the table lacks columns of params \['time'\]"):
        new_space.add(table.drop(columns="params_time"))


def test_contexts_and_candidates():
    opt = bl.RandomSearch({"T": (20.0, 100.0)}, context={"lot": ["A", "B"]}, seed=0)
    table = pd.DataFrame({"T": [30.0, 40.0], "lot": ["A", "B"], "yield": [1.0, 2.0]})
    assert [trial.context for trial in opt.add(table, value="yield")] == [{"lot": "A"}, {"lot": "B"}]
    given_context = opt.add(table.drop(columns="lot"), context={"lot": "B"}, value="yield")
    assert [trial.context for trial in given_context] == [{"lot": "B"}] * 2
    with pytest.raises(InvalidContext, match=r"row 1, column 'lot': context\['lot'\]='C'"):
        opt.add(table.assign(lot=["A", "C"]), value="yield")
    rows = bl.RandomSearch(candidates=[[1.0, 2.0], [3.0, 4.0]], seed=0)
    by_row = pd.DataFrame({"eq": [3, 1], "t": [4, 2], "yield": [5.0, 6.0]})
    assert [trial.index for trial in rows.add(by_row, value="yield")] == [1, 0]
    with pytest.raises(InvalidPoint, match="row 1, column 'index': params=7 is not the index"):
        rows.add(pd.DataFrame({"index": [0, 7], "yield": [5.0, 6.0]}), value="yield")
    assert rows.n_trials == 2


WRONG = [
    ({"value": "yeild"}, InvalidValue, "value='yeild' is not a column of the table: did you mean 'yield'"),
    ({"value": "yield", "std": "sd"}, InvalidValue, "std='sd' is not a column"),
    ({"value": "yield", "attrs": ["day", "by"]}, InvalidValue, "attrs='by' is not a column"),
    ({"value": "yield", "missing": "drop"}, InvalidSetting, "missing='drop' is not usable"),
    ({"value": "yield", "on_error": "ignore"}, InvalidSetting, "on_error='ignore' is not usable"),
    ({"value": [1.0] * 3}, InvalidValue, "value has 3 entries for 4 points"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), WRONG)
def test_wrong_arguments_are_refused(arguments, error, message):
    opt = new()
    with pytest.raises(error, match=message):
        opt.add(table_of(), **arguments)
    with pytest.raises(InvalidSetting, match="missing, on_error and duplicates are for tables"):
        opt.add({"T": 50.0, "solvent": "water", "n": 1}, 1.0, on_error="skip")
    assert opt.n_trials == 0


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda t: t.rename(columns={"solvent": "Solvent"}), InvalidPoint, "did you mean the column 'Solvent'"),
        (lambda t: t.assign(params_T=1.0), InvalidPoint, "has the columns 'params_T' and 'T'"),
        (lambda t: pd.concat([t, t["T"]], axis=1), InvalidValue, "has the column 'T' twice"),
        (lambda t: t.assign(state="solid"), InvalidValue, "row 0, column 'state': state='solid'"),
        (lambda t: t.assign(curve_2=1.0), InvalidValue, "'curve_2', and no learning curve was declared"),
    ],
)
def test_wrong_tables_are_refused(change, error, message):
    opt = new()
    with pytest.raises(error, match=message):
        opt.add(change(table_of()), value="yield")
    assert opt.n_trials == 0


@pytest.mark.parametrize("again", ["{}.1", "{}.2", "{} ", " {}", "\xa0{}", "\ufeff{}", "{} .1", "{}.1.1"])
@pytest.mark.parametrize("name", ["T", "yield", "std", "cost", "day", "lot"])
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_a_second_column_of_a_name_is_refused(name, again, on_error):
    opt = new(context={"lot": (0.0, 10.0)})
    table = table_of(std=0.1, cost=2.0, lot=1.0)
    table[again.format(name)] = table[name]
    with pytest.raises(InvalidValue, match=r"has the columns .*same name twice: rename or remove one"):
        opt.add(table, value="yield", attrs=["day"], on_error=on_error)
    assert opt.n_trials == 0


@pytest.mark.parametrize("value", ["yield", {"yield": "measured"}])
def test_pandas_renames_the_second_column_of_a_name(value):
    name = value if isinstance(value, str) else value["yield"]
    file = io.StringIO(f"T,solvent,n,{name},{name}\n30,DMF,1,1.5,61\n40,DMF,2,2.5,70\n")
    opt = new() if isinstance(value, str) else new(outcomes={"yield": "maximize", "purity": bl.Record()})
    with pytest.raises(InvalidValue, match=rf"the columns '{name}' and '{name}\.1'"):
        opt.add(pd.read_csv(file), value=value)
    assert opt.n_trials == 0


@pytest.mark.parametrize("other", ["t", "Yield", "DAY", "yield.N", "Std.1"])
def test_a_column_with_a_name_in_another_case_is_ignored_with_a_warning(other):
    opt = new()
    table = table_of(std=0.1) if other == "Std.1" else table_of()
    table[other] = 99.0
    if other == "yield.N":
        opt.add(table, value="yield", attrs=["day"])  # without a warning
    else:
        with pytest.warns(bl.BelatedWarning, match=f"'{other}', which is ignored"):
            opt.add(table, value="yield", attrs=["day"])
    assert [trial.value for trial in opt.trials] == table_of()["yield"].tolist()


def test_columns_that_are_both_read_may_have_almost_equal_names():
    opt = bl.RandomSearch({name: (0.0, 1.0) for name in ("x", "X", "x.1")}, seed=0)
    opt.add(pd.DataFrame({"x": [0.1], "X": [0.2], "x.1": [0.3], "value": [1.0]}), attrs={"Value": 1})
    opt.observe(opt.suggest(), 2.0, attrs={"value": 1, "value.1": 2})
    again = bl.RandomSearch(opt.space, seed=0)
    again.add(opt.trials_dataframe())
    assert [trial.params for trial in again.trials] == [trial.params for trial in opt.trials]
    # Trials that a revision left out have parameters of the earlier space.
    study = bl.Study("s", MemoryStore(), bl.RandomSearch({"x": (0.0, 1.0), "c": ["a", "b"]}, seed=0))
    study.add([{"x": 0.5, "c": "a"}, {"x": 0.5, "c": "b"}], [1.0, 2.0])
    with pytest.warns(bl.BelatedWarning, match="left out"):
        study.revise(space={"x": (0.0, 1.0), "C": (0.0, 1.0)}, keep={"c": "b"}, fill={"C": 0.5})
    with pytest.raises(InvalidPoint, match="left out by a revision"):
        bl.RandomSearch(study.domain, seed=0).add(study.trials_dataframe())


def test_dates_are_stored_as_text():
    table = table_of(2, day=pd.to_datetime(["2026-05-02 00:00", "2026-05-03 14:30"]))
    days = [trial.attrs["day"] for trial in new().add(table, value="yield", attrs="day")]
    assert days == ["2026-05-02T00:00:00", "2026-05-03T14:30:00"]


def test_states_and_values_that_contradict_each_other():
    table = table_of(state=["observed", "pending", None, "failed"])
    opt = new()
    trials, skipped = opt.add(table, value="yield", on_error="skip")
    assert [trial.state for trial in trials] == ["observed"] * 3
    assert [each[:2] for each in skipped] == [(3, "yield")]


def test_choices_that_print_alike_are_named_by_row():
    opt = bl.RandomSearch({"k": ["1", 1, "a"]}, seed=0)
    trials, skipped = opt.add(pd.DataFrame({"k": ["a", 1], "value": [1.0, 2.0]}), on_error="skip")
    assert len(trials) == 1 and [each[:2] for each in skipped] == [(1, "k")]
    # A table that has only parameters contains the objects themselves.
    assert [t.params["k"] for t in opt.add(pd.DataFrame({"k": ["1", 1]}), [1.0, 2.0])] == ["1", 1]
    with pytest.raises(InvalidSpace):
        opt.add(pd.DataFrame({"k": ["1"], "value": [1.0]}))
    with_context = bl.RandomSearch({"x": (0.0, 1.0)}, context={"lot": ["1", 1]}, seed=0)
    with pytest.raises(InvalidSpace, match=r"row 0, column 'lot': context\['lot'\]=1 may be any of the choices"):
        with_context.add(pd.DataFrame({"x": [0.5], "lot": [1], "value": [1.0]}))


def test_rows_that_are_added_again_are_named():
    optimizer, table = new(), table_of(6)
    optimizer.add(table[:3], value="yield")
    with pytest.warns(BelatedWarning, match=r"3 rows equal earlier trials .* are added again: .*\(rows 0, 1, 2\)"):
        optimizer.add(table, value="yield")
    assert len(optimizer.trials) == 9
    with pytest.warns(BelatedWarning, match=r"6 rows equal earlier trials .* are left out"):
        assert optimizer.add(table, value="yield", duplicates="skip") == []
    assert len(optimizer.trials) == 9


@pytest.mark.parametrize("outcomes", [None, {"yield": "maximize", "purity": bl.AtLeast(0.9)}])
def test_a_table_that_is_added_again_does_not_restore_a_withdrawn_value(outcomes):
    optimizer = bl.BayesOpt({"x": (0.0, 1.0)}, outcomes=outcomes, seed=0)
    table = pd.DataFrame({"x": [0.25, 0.75], "yield": [1.0, 2.0], "purity": [0.95, 0.97]})
    value = None if outcomes else "yield"
    optimizer.add(table, value=value)
    optimizer.withdraw(1, outcome="yield" if outcomes else None, reason="contaminated")
    with pytest.warns(BelatedWarning, match=r"2 rows equal earlier trials"):
        assert optimizer.add(table, value=value, duplicates="skip") == []
    assert optimizer.n_trials == 2
    # Another value is a new measurement.
    with pytest.warns(BelatedWarning, match=r"1 rows equal earlier trials .*\(rows 0\)"):
        (new,) = optimizer.add(table.assign(**{"yield": [1.0, 3.0]}), value=value, duplicates="skip")
    assert new.number == 2


@pytest.mark.parametrize("change", [{"T": 31.0}, {"yield": 0.5}, {"n": 5}, {"solvent": "DMF"}, {"well": "B2"}])
def test_a_row_that_differs_from_earlier_trials_is_not_named(change):
    optimizer, table = new(), table_of(1, well="A1")
    optimizer.add(table, value="yield", attrs=["well"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.add(table.assign(**change), value="yield", attrs=["well"])
        # Rows of one table may be equal, and so may trials without values.
        optimizer.add(pd.concat([table_of(1, well="C3")] * 2), value="yield", attrs=["well"])
        for _ in range(2):
            optimizer.add(table_of(1).drop(columns="yield").drop(columns="day"))


def test_values_of_outcomes_that_are_added_again_are_named():
    optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, outcomes={"a": "maximize", "b": bl.AtMost(1.0)}, seed=0)
    table = pd.DataFrame({"x": [0.25, 0.5], "a": [1.0, 2.0], "b": [None, 0.5]})
    optimizer.add(table)
    with pytest.warns(BelatedWarning, match=r"1 rows equal earlier trials .*\(rows 1\)"):
        optimizer.add(table.assign(b=[0.75, 0.5]))
