"""Tables of trials with outcomes: columns of each outcome, which `add` reads."""

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import belated as bl
from belated.errors import InvalidValue
from tests.unit.optimizers.test_table_files import through_csv, through_excel

SPACE = {"x": (0.0, 1.0)}
# "error" and "cost" are the names of other columns, too.
OUTCOMES = {"error": "minimize", "memory": bl.AtMost(4.0), "cost": bl.Record()}


def make(kind=bl.RandomSearch, **arguments):
    return kind(**({"space": SPACE, "outcomes": OUTCOMES, "seed": 0} | arguments))


def through_frame(source):
    return source.trials_dataframe(curves=True)


WAYS = [through_csv, through_excel, through_frame]


def shown(number):
    """Round a number to 10 digits: Excel stores 16, and pandas may change the last digits."""
    return f"{number + 0.0:.10g}" if isinstance(number, float) else number


def facts(source):
    """Return what a table keeps of each trial."""
    found = []
    for trial in source.trials:
        outcomes = [(name, each.state, shown(each.value), shown(each.std)) for name, each in trial.outcomes.items()]
        # The withdrawn results of outcomes that are still withdrawn.
        lost = [each.withdrawal for each in trial.outcomes.values() if each.state == "withdrawn"]
        withdrawn = [(each.state, shown(each.value), each.reason) for each in lost]
        # The text of an error is kept while an outcome is failed.
        has_failed = "failed" in [each.state for each in trial.outcomes.values()]
        error = has_failed and trial.error and str(trial.error)
        # Durations are stored with results.
        has_result = {"observed", "failed", "withdrawn"} & {each.state for each in trial.outcomes.values()}
        point = (trial.index,) if trial.x is not None else trial.params_run.values()
        numbers = (trial.duration if has_result else None, *point, *trial.curve.values())
        others = ([*map(shown, numbers)], trial.attrs, list(trial.curve))
        found.append((trial.state, outcomes, withdrawn, error, *others))
    return found


floats = st.floats(-1e300, 1e300).map(lambda x: float(f"{x:.8g}"))
values = st.dictionaries(st.sampled_from(list(OUTCOMES)), floats, min_size=1)


@st.composite
def filled(draw):
    """Draw an optimizer with trials whose outcomes are in all states."""
    optimizer = make(curve=bl.Curve(3))
    for _ in range(draw(st.integers(0, 6))):
        trial = optimizer.suggest()
        for step in draw(st.sets(st.integers(1, 3), max_size=2)):
            trial.report(draw(floats), step)
        given_values = draw(st.just({}) | values)
        if given_values:
            std = draw(st.none() | floats.map(lambda x: min(abs(x), 1e9)) | st.just({next(iter(given_values)): 0.1}))
            duration = draw(st.none() | floats.map(lambda x: min(abs(x), 1e9)))
            trial.observe(given_values, std=std, duration=duration, attrs={"lot": "a"})
        for name in trial.missing:
            end = draw(st.sampled_from(["nothing", "fail", "abandon"]))
            if end == "fail":
                trial.fail(outcome=name, error=ValueError("no"))
            elif end == "abandon":
                trial.abandon(outcome=name)
        if trial.missing and draw(st.booleans()):
            trial.stop()
        for name, each in trial.outcomes.items():
            if each.state in ("observed", "failed") and draw(st.booleans()):
                trial.withdraw(outcome=name, reason=draw(st.sampled_from([None, "=no", "wrong file"])))
    return optimizer


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(optimizer=filled())
def test_tables_restore_outcomes(way, optimizer):
    other = make(curve=bl.Curve(3))
    other.add(way(optimizer))
    assert facts(other) == facts(optimizer)


@pytest.mark.parametrize("arguments", [{}, {"candidates": [[0.1, 1.0], [0.2, 1.0], [0.3, 2.0]], "space": None}])
def test_columns(arguments):
    optimizer = make(**arguments)
    first, second, third = optimizer.suggest(n=3)
    first.observe({"error": 0.5, "memory": 3.0}, std={"memory": 0.1})
    second.fail(outcome="memory", error="lost")
    table = optimizer.trials_dataframe()
    columns = [name for name in table if name.startswith(("outcome_", "std_", "state_", "withdrawn_"))]
    assert columns == ["outcome_error", "outcome_memory", "std_memory", "state_memory", "outcome_cost"]
    assert table["value"].tolist()[0] == table["outcome_error"].tolist()[0] == 0.5
    assert table["state_memory"].tolist() == ["observed", "failed", "pending"]
    study_free = make(**arguments)
    study_free.add(table)
    assert facts(study_free) == facts(optimizer)


def test_a_table_of_users_names_the_outcomes():
    optimizer = make()
    table = pd.DataFrame({"x": [0.1, 0.2, 0.3], "error": [0.5, None, None], "memory": ["3", "n.d.", "4"]})
    added = optimizer.add(table, on_error="skip")
    assert [(each.row, each.column) for each in added.skipped] == [(1, "memory")]
    assert [trial.values for trial in added.trials] == [{"error": 0.5, "memory": 3.0}, {"memory": 4.0}]
    assert [trial.missing for trial in added.trials] == [["cost"], ["error", "cost"]]


def test_columns_of_other_names():
    table = pd.DataFrame({"x": [0.1, 0.2], "loss": [0.5, 0.6], "GB": [3.0, 4.0], "state_memory": [None, None]})
    optimizer = make()
    by_dict = optimizer.add(table, value={"error": "loss", "memory": "GB"}, std=0.1)
    assert by_dict[1].values == {"error": 0.6, "memory": 4.0} and by_dict[1].outcomes["memory"].std == 0.1
    assert optimizer.add(table, value="loss")[0].values == {"error": 0.5}
    assert optimizer.add(table[["x"]], [{"memory": 1.0}, None])[0].values == {"memory": 1.0}
    prefixed = table[["x"]].rename(columns={"x": "params_x"}).assign(memory=9.0)
    assert optimizer.add(prefixed, [{"error": 1.0}, {"error": 2.0}])[1].values == {"error": 2.0}
    assert optimizer.add(table.rename(columns={"GB": 7}), value={"memory": 7})[0].values == {"memory": 3.0}
    several = bl.RandomSearch(SPACE, outcomes={"a": "minimize", "b": "minimize"})
    with pytest.raises(InvalidValue, match="'loss'"):
        several.add(table, value="loss")
    with pytest.raises(InvalidValue, match="'losses' is not a column"):
        optimizer.add(table, value={"error": "losses"})


@pytest.mark.parametrize(("missing", "states"), [("skip", ["pending"]), ("pending", ["pending"] * 2)])
def test_rows_without_any_value(missing, states):
    table = pd.DataFrame({"x": [0.1, 0.2], "memory": [None, 2.0]})
    optimizer = make()
    with pytest.raises(InvalidValue, match="row 0, column 'memory'"):
        optimizer.add(table)
    assert [trial.state for trial in optimizer.add(table, missing=missing)] == states


def test_states_of_whole_trials_close_what_is_missing():
    table = pd.DataFrame({"x": [0.1, 0.2], "memory": [1.0, None], "state": ["failed", "abandoned"]})
    first, second = make().add(table)
    assert [each.state for each in first.outcomes.values()] == ["failed", "observed", "failed"]
    assert second.state == "abandoned"


@pytest.mark.parametrize(
    ("change", "column"),
    [
        ({"memory": [1.0]}, None),  # beside outcome_memory
        ({"outcome_memory": ["many"]}, "outcome_memory"),
        ({"state_memory": ["lost"]}, "state_memory"),
        ({"state_memory": ["failed"]}, "outcome_memory"),
        ({"std_memory": [-1.0]}, "std_memory"),
        ({"outcome_error": [0.75]}, "outcome_error"),  # value is 0.5
    ],
)
def test_wrong_cells_are_named(change, column):
    optimizer = make()
    optimizer.suggest().observe({"error": 0.5, "memory": 3.0})
    table, other = optimizer.trials_dataframe().assign(**change), make()
    with pytest.raises(InvalidValue, match="keep one" if column is None else f"row 0, column '{column}'"):
        other.add(table)
    assert other.n_trials == 0


def test_values_that_were_filled_in():
    optimizer = make()
    optimizer.suggest(n=2)
    table = through_csv(optimizer)
    table["value"], table["outcome_memory"] = [0.5, None], [None, 2.0]
    assert [trial.values for trial in make().add(table)] == [{"error": 0.5}, {"memory": 2.0}]


def test_a_table_without_outcomes_has_values_of_the_objective():
    plain = bl.RandomSearch(SPACE, direction="minimize", seed=0)
    plain.add([{"x": 0.1}, {"x": 0.2}], [1.0, 2.0], std=0.1)
    added = make().add(through_csv(plain))
    assert [trial.values for trial in added] == [{"error": 1.0}, {"error": 2.0}]
    assert added[0].outcomes["error"].std == 0.1


def test_parameters_named_like_columns_of_outcomes():
    space = {"state_memory": ["on", "off"], "std_error": (0.0, 1.0), "memory": (0.0, 1.0)}
    table = pd.DataFrame({"state_memory": ["on"], "std_error": [0.5], "memory": [0.25], "error": [1.0]})
    optimizer = bl.RandomSearch(space, outcomes=OUTCOMES, seed=0)
    [trial] = optimizer.add(table)
    assert trial.params == {"state_memory": "on", "std_error": 0.5, "memory": 0.25} and trial.values == {"error": 1.0}
    trial.observe({"memory": 3.0}, std=0.5)
    trial.abandon()
    again = bl.RandomSearch(space, outcomes=OUTCOMES, seed=0)
    for way in WAYS:
        again.add(way(optimizer))
    assert facts(again) == facts(optimizer) * len(WAYS)


def test_rows_of_candidates_with_outcomes():
    rows = [[0.1, 1.0], [0.2, 1.0], [0.3, 2.0]]
    optimizer = bl.RandomSearch(candidates=rows, outcomes=OUTCOMES, seed=0)
    table = pd.DataFrame({"a": [0.2], "b": [1.0], "memory": [3.0], "std_memory": [0.1], "state_error": ["failed"]})
    [trial] = optimizer.add(table)
    assert trial.index == 1 and trial.values == {"memory": 3.0} and trial.outcomes["error"].state == "failed"


def test_studies_write_their_outcomes(tmp_path):
    study = bl.Study("s", f"sqlite:///{tmp_path}/s.db", make())
    first, second = study.suggest(n=2)
    first.observe({"error": 1 / 3})
    second.fail()
    other = bl.Study("t", study.store, make())
    other.add(through_csv(study))
    assert facts(other) == facts(study)
