"""Tables that `trials_dataframe` of Optuna returns, as they are and read from a file."""

import io
import math
import warnings
from datetime import timedelta

import pandas as pd
import pytest

import belated as bl
from belated.errors import InvalidPoint, InvalidValue
from belated.optimizers.tables.cells import seconds_in
from belated.study.from_optuna import optimizer_with_trials

optuna = pytest.importorskip("optuna")

SPACE = {"x": (0.0, 1.0), "n": (1, 9), "kind": ["a", None, True]}


def objective(trial):
    x, n = trial.suggest_float("x", 0, 1), trial.suggest_int("n", 1, 9)
    trial.suggest_categorical("kind", ["a", None, True])
    trial.set_user_attr("half", x / 2)
    if trial.number % 7 == 6:
        raise ValueError("broken")
    for step in range(3):
        trial.report(x, step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return x + n


@pytest.fixture(scope="module", params=["minimize", "maximize"])
def study(request):
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    made = optuna.create_study(
        direction=request.param,
        pruner=optuna.pruners.MedianPruner(n_startup_trials=2),
        sampler=optuna.samplers.RandomSampler(seed=0),
    )
    made.optimize(objective, n_trials=30, catch=ValueError)
    running = made.ask()
    running.suggest_float("x", 0, 1), running.suggest_int("n", 1, 9)
    running.suggest_categorical("kind", ["a", None, True])
    made.ask()  # without params
    made.enqueue_trial({"x": 0.5})
    states = [trial.state.name for trial in made.trials]
    assert {"COMPLETE", "PRUNED", "FAIL", "RUNNING", "WAITING"} == set(states)
    return made


def from_file(table):
    return pd.read_csv(io.StringIO(table.to_csv()))


def two_lines(study, **options):
    table = study.trials_dataframe(multi_index=True)
    return pd.read_csv(io.StringIO(table.to_csv(index="index_col" in options)), header=[0, 1], **options)


def tables(study):
    table = study.trials_dataframe()
    return {
        "lower case": table.assign(state=table.state.str.lower()),
        "objects": table.assign(state=pd.Series([trial.state for trial in study.trials], dtype=object)),
        "numbers": table.assign(state=[int(trial.state) for trial in study.trials]),
        "two lines": two_lines(study),
        "two lines and an index": two_lines(study, index_col=0),
        "as it is": study.trials_dataframe(),
        "multi_index": study.trials_dataframe(multi_index=True),
        "file": from_file(study.trials_dataframe()),
        "index": study.trials_dataframe().set_index("number", drop=False),
    }


def new(study):
    return bl.RandomSearch(SPACE, direction=study.direction.name.lower(), seed=0)


def facts(trials):
    # The import of a study drops the durations of failed trials.
    durations = [each.duration and round(each.duration, 6) if each.state == "observed" else None for each in trials]
    return [(t.params, t.state, t.value, duration, t.attrs) for t, duration in zip(trials, durations, strict=True)]


@pytest.mark.parametrize(
    "kind",
    [
        *("as it is", "multi_index", "file", "index"),
        *("lower case", "objects", "numbers", "two lines", "two lines and an index"),
    ],
)
@pytest.mark.parametrize("policies", [{}, {"on_error": "skip"}, {"missing": "skip", "on_error": "skip"}])
def test_a_table_equals_the_study_that_wrote_it(study, kind, policies):
    optimizer = new(study)
    added = optimizer.add(tables(study)[kind], **policies)
    # The other way: the trials of the study itself, with the space of its distributions.
    expected = optimizer_with_trials(study._storage, study.study_name, new(study))
    assert facts(optimizer.trials) == facts(expected.trials)
    assert optimizer.best_value_ == study.best_value == expected.best_value_
    states = [trial.state for trial in optimizer.trials]
    assert set(states) == {"observed", "abandoned", "failed", "pending"} and states.count("pending") == 1
    if "on_error" in policies:
        # The trials without params could not be added.
        assert [each.column for each in added.skipped] == ["params_x"] * 2
        assert len(added.trials) + 2 == len(study.trials)


def test_complete_rows_without_their_states(study):
    table = from_file(study.trials_dataframe())
    complete = table[table.state == "COMPLETE"].drop(columns="state")
    optimizer = new(study)
    with pytest.warns(bl.BelatedWarning, match="no column 'state', so all values are used; if trials were pruned, the"):
        optimizer.add(complete)
    assert [trial.state for trial in optimizer.trials] == ["observed"] * len(complete)
    assert optimizer.best_value_ == study.best_value


def test_values_of_unknown_states_are_not_used(study):
    table = from_file(study.trials_dataframe())[lambda rows: rows.params_x.notna()]
    assert table.value.isna().any()  # the rows were not selected by their states
    for columns in ("state", ["state", "duration"]):
        optimizer = new(study)
        with pytest.raises(InvalidValue, match="keep the column 'state'"):
            optimizer.add(table.drop(columns=columns))
        with pytest.warns(bl.BelatedWarning, match="keep the column 'state'; all values count as missing"):
            assert optimizer.add(table.drop(columns=columns), missing="skip") == []
        assert optimizer.n_trials == 0
        with pytest.warns(bl.BelatedWarning, match="missing"):
            added = optimizer.add(table.drop(columns=columns), missing="pending")
        assert {trial.state for trial in added} == {"pending"} and len(added) == len(table)


MARKED = [("value", "params", more) for more in ("duration", "datetime_start", "datetime_complete", "user_attrs")]


@pytest.mark.parametrize("attrs", [*MARKED, ("number", "value", "params", "duration")])
@pytest.mark.parametrize("read", [lambda table: table, from_file])
def test_some_columns_of_a_table_without_the_states(study, attrs, read):
    table = read(study.trials_dataframe(attrs=attrs))[lambda rows: rows.params_x.notna()]
    with pytest.raises(InvalidValue, match="the table of Optuna has trials without a value and no column 'state'"):
        new(study).add(table)
    optimizer = new(study)
    with pytest.warns(bl.BelatedWarning, match="all values count as missing"):
        assert optimizer.add(table, missing="skip") == []
    with pytest.warns(bl.BelatedWarning, match="no column 'state', so all values are used; if trials were pruned, the"):
        optimizer.add(table[table.value.notna()])
    assert [trial.value for trial in optimizer.trials] == table.value.dropna().tolist()


def test_trial_numbers_alone_give_a_warning(study):
    table = study.trials_dataframe(attrs=("number", "value", "params"))[lambda rows: rows.params_x.notna()]
    optimizer = new(study)
    with pytest.warns(bl.BelatedWarning, match="if it is a table of Optuna, and trials were pruned"):
        optimizer.add(table, missing="skip")
    assert [trial.value for trial in optimizer.trials] == table.value.dropna().tolist()


def test_one_line_of_two_is_named(study):
    file = io.StringIO(study.trials_dataframe(multi_index=True).to_csv())
    with pytest.raises(InvalidPoint, match="two lines of names .*multi_index=False"):
        new(study).add(pd.read_csv(file))


@pytest.mark.parametrize("dropped", [[], ["state"], ["state", "error", "suggested_at", "observed_at"]])
def test_tables_of_belated_are_not_of_optuna(dropped):
    optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
    for _ in range(3):
        optimizer.observe(optimizer.suggest(), 2.0, duration=60.0)
    optimizer.suggest()
    table = optimizer.trials_dataframe().drop(columns=dropped)
    again = bl.RandomSearch(optimizer.space, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again.add(table, missing="skip")
        again.add(table.iloc[:3].assign(duration=pd.to_timedelta([1, 2, 3], unit="s")))
        again.add(pd.DataFrame({"number": [1, 2], "value": [1.0, 2.0], "params_x": [0.25, 0.5]}))
        again.add(pd.DataFrame({"params_x": [0.25], "value": [1.0], "duration": ["0:01:30"], "lot": ["A"]}))
    assert sum(trial.state == "observed" for trial in again.trials) == 9


@pytest.fixture
def two(request):
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    made = optuna.create_study(directions=["minimize", "maximize"], sampler=optuna.samplers.RandomSampler(seed=0))

    def both(trial):
        x = trial.suggest_float("x", 0, 1)
        if trial.number == 2:
            raise ValueError
        return x, 1 - x

    made.optimize(both, n_trials=5, catch=ValueError)
    return made


def test_several_objectives_need_names(two):
    table = from_file(two.trials_dataframe())
    optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, outcomes={"loss": "minimize", "accuracy": bl.Record()}, seed=0)
    advice = r"2 objectives, \['values_0', 'values_1'\].*value=\{'loss': 'values_0', 'accuracy': 'values_1'\}"
    with pytest.raises(InvalidValue, match=advice):
        optimizer.add(table)
    optimizer.add(table, value={"loss": "values_0", "accuracy": "values_1"})
    x = [trial.params["x"] for trial in two.trials]
    expected = [{"loss": y, "accuracy": 1 - y} for y in x]
    expected[2] = {}
    assert [trial.values for trial in optimizer.trials] == expected
    assert [trial.state for trial in optimizer.trials] == ["observed"] * 2 + ["failed"] + ["observed"] * 2
    plain = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
    with pytest.raises(InvalidValue, match="value='values_0', or declare outcomes"):
        plain.add(table)
    plain.add(table, value="values_1")
    assert plain.best_value_ == 1 - min(x[:2] + x[3:])


def test_metrics_with_names(two):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names are experimental
        two.set_metric_names(["loss", "accuracy"])
    optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, outcomes={"loss": "minimize", "accuracy": bl.Record()}, seed=0)
    optimizer.add(from_file(two.trials_dataframe()))
    assert [set(trial.values) for trial in optimizer.trials] == [{"loss", "accuracy"}] * 2 + [set()] + [
        {"loss", "accuracy"}
    ] * 2
    one = optuna.create_study()
    one.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one.set_metric_names(["loss"])
    assert "value_loss" in one.trials_dataframe()
    plain = bl.RandomSearch({"x": (0.0, 1.0)}, direction="minimize", seed=0)
    plain.add(from_file(one.trials_dataframe()))
    assert plain.best_value_ == one.best_value


@pytest.mark.parametrize("read", [lambda table: table, from_file])
def test_trials_that_violate_a_constraint_and_infinite_values_failed(read):
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the argument is experimental
        sampler = optuna.samplers.TPESampler(seed=0, constraints_func=lambda trial: (-1e-05, trial.params["x"] - 0.5))
    made = optuna.create_study(sampler=sampler)
    made.optimize(lambda t: t.suggest_float("x", 0, 1) if t.number else math.inf + t.suggest_float("x", 0, 1), 12)
    optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, direction="minimize", seed=0)
    optimizer.add(read(made.trials_dataframe()))
    for trial in optimizer.trials:
        ok = trial.number > 0 and trial.params["x"] <= 0.5
        assert trial.state == ("observed" if ok else "failed")
        assert ok or ("infeasible" in trial.error.message or "inf" in trial.error.message)
    assert {trial.state for trial in optimizer.trials} == {"observed", "failed"}


def test_other_tables_are_not_of_optuna():
    optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
    table = pd.DataFrame({"x": [0.25, 0.5], "value": [1.0, 2.0], "state": ["COMPLETE", "done"]})
    with pytest.raises(InvalidValue, match="is not one of"):
        optimizer.add(table)
    # Without Optuna's columns of parameters, states and times, the table is not a table of Optuna.
    optimizer.add(table.drop(columns="state"))
    assert optimizer.best_value_ == 2.0


@pytest.mark.parametrize("seconds", [0.0, 1.5, 3.44e-4, 59.999999, 3600.0, 86399.0, 3 * 86400 + 5.25, -1.0, -86400.5])
def test_durations_are_read_as_pandas_and_python_write_them(seconds):
    assert seconds_in(str(pd.Timedelta(seconds=seconds))) == pytest.approx(seconds, abs=1e-9)
    assert seconds_in(str(timedelta(seconds=seconds))) == pytest.approx(seconds, abs=1e-9)


@pytest.mark.parametrize("cell", ["1.5", "soon", "00:61:00", "1 days", 3.0, None])
def test_other_cells_are_not_durations(cell):
    assert seconds_in(cell) is cell


def test_a_table_may_have_durations_as_text():
    optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
    table = pd.DataFrame({"x": [0.25, 0.5], "value": [1.0, 2.0], "time": ["0:01:30", "1 days 00:00:00.5"]})
    optimizer.add(table, duration="time")
    assert [trial.duration for trial in optimizer.trials] == [90.0, 86400.5]
