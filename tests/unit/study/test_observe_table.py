"""A worklist that was filled in is read back: each value reaches its trial, once, and refused cells are listed."""

import codecs
import os
import random
import shutil
import subprocess

import openpyxl
import pandas as pd
import pytest

import belated as bl
from belated import cli
from belated._core import BelatedWarning
from belated.errors import InvalidSetting, InvalidValue, TrialChanged
from belated.optimizers.tables.files import read_table
from belated.store.memory import MemoryStore

FULL = os.environ.get("BELATED_FULL") == "1"
SPACE = {"x": (0.0, 1.0), "T": bl.Real(20.0, 120.0), "k": (1, 999), "s": ["NA", "007", "TRUE", "=O"]}
OUTCOMES = {"a": "maximize", "b": bl.AtLeast(0.2)}

pytestmark = pytest.mark.filterwarnings("ignore:.*cells of the table were refused")


def new(name="plate", n=6, seed=0, store=None, space=SPACE, **settings):
    study = bl.Study(name, store or MemoryStore(), bl.RandomSearch(space, seed=seed, **settings))
    study.suggest(n)
    return study


def filled(study, values=None):
    table = study.worklist()
    table["value"] = [0.5 + 0.01 * n for n in table["number"]] if values is None else values
    return table


def values(study):
    return [trial.value for trial in study.trials]


def test_a_filled_worklist_is_read_once():
    study = new()
    table = filled(study, [0.1, None, 0.3, None, "failed", None]).assign(remarks=["cloudy", *[None] * 5])
    summary = study.observe(table)
    assert summary.new == [(0, None), (2, None), (4, None)] and summary.empty == [1, 3, 5] and summary.noted == [0]
    assert [trial.state for trial in study.trials] == [
        "observed",
        "pending",
        "observed",
        "pending",
        "failed",
        "pending",
    ]
    n_events = study._log.n_events()
    again = study.observe(table)
    assert again.unchanged == summary.new and not again.new and study._log.n_events() == n_events
    assert [remark.text for remark in study.trial(0).remarks] == ["cloudy"]
    assert all(trial.params_run == trial.params for trial in study.trials)


def test_other_values_need_amend_and_are_refused_if_they_changed_since():
    study = new(n=3)
    study.observe(0, 0.1)
    older = study.worklist()  # trial 0 is not on it
    study.observe(1, 0.25)
    table = pd.DataFrame({"number": [0, 1], "value": [0.2, 0.3]}).assign(
        study_id=older["study_id"][0], as_of=older["as_of"][0]
    )
    refused = study.observe(table).refused
    assert [(each.number, each.stored) for each in refused] == [(0, 0.1), (1, 0.25)]
    assert "amend=True" in refused[0].reason and "amend=[1]" in refused[1].reason
    assert study.observe(table, amend=True).corrected == [(0, None)] and values(study)[:2] == [0.2, 0.25]
    assert study.observe(table, amend=[1]).corrected == [(1, None)] and values(study)[:2] == [0.2, 0.3]


def test_a_withdrawn_value_is_not_restored():
    study = new(n=2)
    table = filled(study, [0.1, 0.2])
    study.observe(table)
    study.withdraw([0, 1])
    assert study.observe(table).unchanged == [(0, None), (1, None)]
    assert [trial.state for trial in study.trials] == ["withdrawn"] * 2
    [refused] = study.observe(table.assign(value=[0.1, 0.3]), amend=True).refused
    assert refused.number == 1 and "withdrawn" in refused.reason
    study.observe(table, amend=[0])
    assert values(study) == [0.1, None]


def test_cells_of_points():
    study = new(n=5)
    rounded = filled(study).assign(params_T=[float(f"{T:.3g}") for T in study.worklist()["params_T"]])
    rounded["params_x"] = rounded["params_x"].round(2)
    assert study.observe(rounded, dry_run=True).moved == [] and values(study) == [None] * 5
    edited = filled(study)
    edited["params_s"] = edited["params_s"].astype(object)
    edited.loc[1, "params_T"] = 33.0
    edited.loc[2, "params_s"] = None
    summary = study.observe(edited)
    assert summary.moved == [1] and study.trial(1).params_run == study.trial(1).params | {"T": 33.0}
    assert all(study.trial(n).params_run == study.trial(n).params for n in (0, 2, 3, 4))
    assert not study.observe(edited).refused


def test_shifted_and_sorted_tables_are_refused():
    study = new(n=6)
    table = filled(study)
    shifted = table.assign(number=[1, 2, 3, 4, 5, 0])
    summary = study.observe(shifted)
    assert len(summary.refused) == 6 and "point of trial 0 and the number 1" in summary.refused[0].reason
    for column in ("params_x", "params_T"):
        for cells in (sorted(table[column]), [*table[column][1:], None]):
            summary = study.observe(table.assign(**{column: cells}), dry_run=True)
            assert len(summary.refused) >= 3 and "sorted or shifted" in summary.refused[0].reason
            assert {number for number, _ in summary.new} <= {
                n for n in range(6) if cells[n] in (table[column][n], None)
            }
    assert values(study) == [None] * 6


def test_tables_of_other_studies_are_refused():
    study, other = new(), new("other", seed=0)
    assert len(study.observe(filled(other)).refused) == 6
    without_id = filled(new("third", seed=1)).drop(columns="study_id")
    with pytest.raises(InvalidValue, match="6 of the 6 rows without study_id have other points"):
        study.observe(without_id)
    with pytest.raises(InvalidValue, match="neither the column 'study_id' nor the points"):
        study.observe(pd.DataFrame({"number": [0], "value": [1.0]}))
    assert values(study) == [None] * 6
    assert len(study.observe(filled(study).drop(columns=["study_id", "as_of"])).new) == 6


def test_an_optimizer_reads_tables_with_numbers_and_points():
    optimizer = bl.RandomSearch(SPACE, seed=0)
    trials = optimizer.suggest(n=3)
    table = pd.DataFrame([trial.params | {"number": trial.number, "y": 0.5} for trial in trials])
    assert len(optimizer.observe(table, "y").new) == 3 and optimizer.pending == []
    with pytest.raises(InvalidValue, match="other points"):
        optimizer.observe(table.assign(x=0.25), "y")


def test_outcomes_arrive_in_several_tables():
    study = new(n=3, outcomes=OUTCOMES)
    first = study.worklist().assign(outcome_a=[1.0, 2.0, None])
    assert study.observe(first).new == [(0, "a"), (1, "a")]
    second = study.worklist().assign(outcome_b=[0.5, "failed", 0.25], std_a=[None, None, None])
    assert study.observe(second).new == [(0, "b"), (1, "b"), (2, "b")]
    assert study.observe(first).refused == [] and study.observe(second).refused == []
    assert [trial.values for trial in study.trials] == [{"a": 1.0, "b": 0.5}, {"a": 2.0}, {"b": 0.25}]


def test_tables_from_before_a_revision():
    study = new(n=3)
    table = filled(study)
    study.revise(space=SPACE | {"T": bl.Real(20.0, 90.0), "time": (1.0, 9.0)}, fill={"time": 2.0})
    table.loc[1, "params_T"] = 55.0
    assert len(study.observe(table).new) == 3
    assert study.trial(1).params_run["T"] == 55.0 and study.trial(1).params_run["time"] == 2.0


def test_tables_of_trials_that_revisions_left_out():
    study = new(n=6, space={"x": (0.0, 1.0), "s": ["a", "b", "c", "d"]})
    older = filled(study)
    study.revise(space={"x": (0.0, 1.0), "s": ["a", "b"]}, drop=True)
    plain = pd.DataFrame({"number": range(6), "x": 0.125, "s": "a", "value": 0.5})
    assert len(study.add(plain)) == 6
    with pytest.raises(InvalidValue, match="rows of the table are trials that are pending"):
        study.add(older.drop(columns="study_id"))
    study.revise(space={"x": (0.0, 1.0)}, keep={"s": "a"})
    assert study.left_out
    summary = study.observe(filled(study, [0.5] * len(study.pending)))
    assert len(summary.new) == 6 and not summary.refused and not study.pending


def test_remarks_of_rows_with_refused_values_are_stored():
    study = new(n=3)
    table = filled(study, [0.5, 0.5, "n.d."]).assign(remarks="seen", state=["failed", None, None])
    table.loc[1, "params_T"] = -1e400
    summary = study.observe(table)
    assert {each.number for each in summary.refused} == {0, 1, 2} and summary.new == []
    assert summary.noted == [0, 1, 2] and [trial.remarks[0].text for trial in study.trials] == ["seen"] * 3


def test_wrong_rows_are_listed():
    study = new(n=4)
    table = filled(study).astype(object)
    table.loc[4] = [None] * (len(table.columns) - 2) + [0.9, None]
    table.loc[0, "value"] = "n.d."
    table.loc[1, "number"] = 17
    table.loc[5] = table.loc[2]
    table.loc[5, "value"] = 0.125
    table["state"] = [None, None, None, "failed", None, None]
    summary = study.observe(table, dry_run=True)
    assert summary.new == [] and {each.row for each in summary.refused} == {0, 1, 2, 3, 4, 5}
    with pytest.raises(InvalidValue, match="6 cells of the table were refused|7 cells"):
        study.observe(table, on_error="raise")
    with pytest.warns(BelatedWarning, match="cells of the table were refused"):
        study.observe(table)
    assert values(study) == [None] * 4


def test_expected_refuses_trials_that_have_changed():
    study = new(n=3)
    table, n_events = filled(study), study._log.n_events()
    study.suggest()
    study.observe(table, expected=n_events, dry_run=True)
    study.observe(1, 0.7)
    with pytest.raises(TrialChanged, match="expected=3, and trial 1 of study .* changed since then") as error:
        study.observe(table, expected=n_events)
    assert error.value.numbers == [1]
    with pytest.raises(TrialChanged, match="only 5 events"):
        study.observe(table, expected=10**6)
    for wrong in (-1, 0.5, "3"):
        with pytest.raises(InvalidSetting, match="is not usable"):
            study.observe(table, expected=wrong)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"std": 0.1}, "std is for a single trial"),
        ({"key": "k"}, "key is for"),
        ({"replicate": True}, "replicate is for"),
    ],
)
def test_arguments_of_single_trials_are_refused(arguments, match):
    study = new(n=1)
    with pytest.raises(InvalidSetting, match=match):
        study.observe(study.worklist(), **arguments)
    with pytest.raises(InvalidSetting, match="are for tables"):
        study.observe(0, 1.0, dry_run=True)


def test_contradictory_rows_of_a_trial_are_refused():
    for cells in ([0.1, "failed"], ["failed", 0.1], [0.1, 0.2, 0.1], ["abandoned", "failed"]):
        study = new(n=2)
        table = pd.concat([filled(study, [0.5, 0.5]).iloc[[0]]] * len(cells)).assign(value=cells)
        assert len(study.observe(table).refused) == len(cells) and values(study) == [None, None]
    study = new(n=2)
    table = pd.concat([filled(study, [0.5, 0.5]).iloc[[0]]] * 2).assign(params_T=[33.0, 44.0])
    assert len(study.observe(table).refused) == 4 and values(study) == [None, None]


def test_a_wrong_number_is_found_if_cells_of_the_point_are_empty():
    space = {"x": (0.0, 1.0), "s": ["water", "oil"], "visc": bl.Real(1.0, 9.0, when={"s": "oil"})}
    study = new(n=8, space=space)
    table = filled(study)
    [water, *_] = [i for i, s in enumerate(table["params_s"]) if s == "water"]
    [oil, *_] = [i for i, s in enumerate(table["params_s"]) if s == "oil"]
    wrong = table.iloc[[water]].assign(number=table["number"][oil])
    [refused] = study.observe(wrong).refused
    assert f"point of trial {water} and the number {oil}" in refused.reason
    inactive = table.iloc[[water]].assign(params_visc=2.0)
    assert "is inactive" in study.observe(inactive).refused[0].reason and values(study) == [None] * 8


@pytest.mark.parametrize(
    "parameter",
    [[1.0, 1.001, 1.002], bl.Ordinal([100.0, 100.25, 100.5]), bl.Real(1000.0, 1010.0, step=1.0), ["7", "007"]],
)
def test_another_level_is_another_point(parameter):
    study = new(n=6, space={"x": (0.0, 1.0), "p": parameter})
    table = filled(study).astype(object)
    levels = list(dict.fromkeys(table["params_p"]))
    other = next(level for level in levels if level != table["params_p"][0])
    table.loc[0, "params_p"] = other
    summary = study.observe(table.iloc[[0]])
    if isinstance(other, str):  # the texts print alike in a file that pandas reads
        assert "may be any of the choices" in summary.refused[0].reason and values(study) == [None] * 6
    else:
        assert summary.moved == [0] and study.trial(0).params_run["p"] == other


def test_a_point_that_was_corrected_later_stays():
    study = new(n=2)
    table = filled(study).assign(params_T=[33.0, study.trial(1).params["T"]])
    study.observe(table)
    study.observe(0, 0.5, params=study.trial(0).params | {"T": 44.0}, amend=True)
    summary = study.observe(table, amend=True)
    assert "reported at another point after the table" in summary.refused[0].reason
    assert study.trial(0).params_run["T"] == 44.0
    study.observe(table, amend=[0])
    assert study.trial(0).params_run["T"] == 33.0


def test_a_point_is_moved_with_its_std():
    study = new(n=1)
    table = filled(study, [0.5]).assign(std=0.125)
    study.observe(table)
    assert study.observe(table.assign(params_T=33.0), amend=True).moved == [0]
    assert study.trial(0).std == 0.125 and study.trial(0).params_run["T"] == 33.0


def test_later_attrs_stay():
    study = new(n=1)
    table = filled(study, [0.5]).assign(attrs_lot="A")
    study.observe(table)
    study.note(0, attrs={"lot": "B"})
    assert study.observe(table).noted == [] and study.trial(0).attrs == {"lot": "B"}


def test_each_cell_is_listed():
    study = new(n=4)
    table = filled(study, [0.5, None, None, 0.5]).assign(cost=["abc", 2.0, None, 3.0], state=[None, None, "fail", None])
    summary = study.observe(table)
    assert [(each.number, each.column) for each in summary.refused] == [(0, "cost"), (1, "cost"), (2, "state")]
    assert summary.new == [(0, None), (3, None)] and study.trial(3).cost == 3.0
    # A cost that comes after the value needs amend.
    late = table.assign(cost=[1.5, None, None, 3.0], state=None)
    assert study.observe(late).refused[0].column == "cost"
    assert study.observe(late, amend=True).refused == [] and study.trial(0).cost == 1.5


def test_values_of_a_removed_outcome_are_refused():
    study = new(n=2, outcomes={"a": "maximize", "b": bl.AtLeast(0.2)})
    table = study.worklist().assign(outcome_a=[0.1, 0.2], outcome_b=[0.3, 0.4])
    study.revise(outcomes={"a": "maximize"})
    summary = study.observe(table)
    assert summary.new == [(0, "a"), (1, "a")] and [each.column for each in summary.refused] == ["outcome_b"] * 2


@pytest.mark.parametrize("has_id", [True, False])
@pytest.mark.parametrize("digits", [2, 3, 4])
def test_a_single_rounded_cell_needs_three_digits(digits, has_id):
    """In a single row, the number of decimals of the column cannot be told."""
    space = {"x": (0.0, 1.0), "T": bl.Real(1e3, 1e6, log=True), "o": bl.Ordinal([0.125, 0.5, 3.0625]), "k": (1, 9)}
    for seed in range(20):
        study = new(n=1, seed=seed, space=space)
        for column in ("params_x", "params_T"):
            table = filled(study)
            suggested = table[column][0]
            table[column] = [float(f"{suggested:.{digits}g}")]
            table = table if has_id else table.drop(columns=["study", "study_id", "as_of"])
            is_same = digits >= 3 or float(f"{suggested:.3g}") == table[column][0]
            summary = study.observe(table, dry_run=True, moved=not has_id)
            assert bool(summary.moved) != is_same and not summary.refused


def test_an_edited_cell_of_a_rounded_column():
    study = new(n=8)
    table = filled(study).assign(params_x=study.worklist()["params_x"].round(2))
    table.loc[3, "params_x"] = 0.625
    assert study.observe(table).moved == [3] and study.trial(3).params_run["x"] == 0.625


@pytest.mark.parametrize("name", ["value", "number", "state", "remarks", "study", "as_of", "late", "std", "due_from"])
def test_names_of_columns_may_be_names_of_parameters_and_contexts(name):
    study = new(n=2, space={name: (0.0, 1.0), "y": (0.0, 1.0)})
    assert len(study.observe(filled(study)).new) == 2
    with_context = bl.Study("c", MemoryStore(), bl.RandomSearch({"y": (0.0, 1.0)}, context={name: (0.0, 1.0)}, seed=0))
    with_context.suggest(2, context={name: 0.5})
    assert len(with_context.observe(filled(with_context)).new) == 2


def test_choices_that_look_like_decimals(tmp_path, capsys):
    store, file = tmp_path / "lab.db", tmp_path / "plate.csv"
    study = new(n=4, store=f"sqlite:///{store}", space={"x": (0.0, 1.0), "position": ["1,2", "1,3", "1,4"]})
    filled(study).to_csv(file, index=False)
    assert cli.main(["study", "observe", str(store), "plate", str(file)]) == cli.DONE
    assert "4 new" in capsys.readouterr().out


def test_a_damaged_workbook_is_refused(tmp_path):
    file = tmp_path / "plate.xlsx"
    new(n=2).worklist(file)
    file.write_bytes(file.read_bytes()[:-400])
    with pytest.raises(InvalidValue, match="cannot be read as an Excel file"):
        read_table(file)


def test_a_table_of_a_study_with_more_events_is_refused():
    study = new(n=2)
    summary = study.observe(filled(study).assign(as_of=1000))
    assert len(summary.refused) == 2 and "fewer events" in summary.refused[0].reason


def test_a_second_value_far_out_is_marked_beside_a_marked_one():
    study = bl.Study("plate", MemoryStore(), bl.BayesOpt({"x": (0.0, 1.0)}, seed=0))
    study.suggest(24)
    study.observe(filled(study, [0.6 + 0.2 * x for x in study.worklist()["params_x"]]))
    low, high = (study.suggest(fixed={"x": x}) for x in (0.125, 0.875))
    with pytest.warns(BelatedWarning, match="was expected"):
        study.observe(low, 62.5)
    assert [marked.number for marked in study.observe(filled(study, [77.5])).marked] == [high.number]


def test_marked_values_are_listed(tmp_path, capsys):
    store, file = tmp_path / "lab.db", tmp_path / "plate.csv"
    study = bl.Study("plate", f"sqlite:///{store}", bl.BayesOpt({"x": (0.0, 1.0)}, seed=0))
    study.suggest(24)
    table = filled(study, [0.6 + 0.01 * n for n in range(24)])
    study.observe(table)
    study.suggest(3)
    table = filled(study, [0.7, 71.0, 0.72])
    [marked] = study.observe(table, dry_run=True).marked
    assert marked.number == 25 and marked.value == 71.0 and marked.high < 2.0
    table.to_csv(file, index=False)
    assert cli.main(["study", "observe", str(store), "plate", str(file)]) == cli.DONE
    assert "trial 25 has the value 71.0" in capsys.readouterr().out
    assert list(study.trial(25).marks) == [None]
    study.confirm(25)
    assert study.trial(25).marks == {}


# Random worklists, compared with a model.


def changed(table, kind, draw):
    """Return a changed table, and whether its values reach their trials."""
    n = len(table)
    if kind == "shuffled":
        return table.sample(frac=1.0, random_state=draw.randrange(2**31)), True
    if kind == "numbers shifted":
        return table.assign(number=[*table["number"][1:], table["number"].iloc[0]]), False
    if kind == "column sorted":
        return table.assign(params_T=sorted(table["params_T"], reverse=draw.random() < 0.5)), None
    if kind == "column moved":
        return table.assign(params_x=[*table["params_x"][1:], None]), None
    if kind == "repeated rows":
        return pd.concat([table, table.iloc[: n // 2]]), True
    if kind == "other columns":
        return table.assign(well=[f"A{i}" for i in range(n)], volume=2.5).drop(
            columns=["study", "due_utc", "late"]
        ), True
    if kind == "rounded":
        return table.assign(params_x=table["params_x"].round(2), params_T=table["params_T"].round(2)), True
    if kind == "edited":
        edited = table.copy()
        edited.loc[edited.index[draw.randrange(n)], "params_T"] = 77.125
        return edited, True
    return table, True


KINDS = (
    *("plain", "shuffled", "numbers shifted", "column sorted", "column moved", "repeated rows", "other columns"),
    *("rounded", "edited", "another study", "recreated study"),
)


def check_random_worklist(seed, path):
    draw = random.Random(seed)
    url = f"sqlite:///{path}/{seed}.db" if seed % 4 == 0 else MemoryStore()
    outcomes = OUTCOMES if draw.random() < 0.4 else None
    settings = {} if outcomes is None else {"outcomes": outcomes}
    study = new("plate", draw.randrange(3, 9), seed, url, **settings)
    names = list(outcomes) if outcomes else [None]
    kind = draw.choice(KINDS)
    origin = study
    if kind == "another study":
        origin = new("other", study.n_trials, seed, url, **settings)
    known = {}
    for n in range(study.n_trials):
        if outcomes and draw.random() < 0.3:
            known[n, "a"] = draw.random()
            for each in {study, origin}:
                each.observe(n, {"a": known[n, "a"]})
    table = origin.worklist()
    if kind == "recreated study":
        n_trials = study.n_trials
        bl.Study.delete("plate", url)
        study, known = new("plate", n_trials, seed, url, **settings), {}
    typed = {}
    for i, n in zip(table.index, table["number"], strict=True):
        for name in names:
            column = "value" if name is None else f"outcome_{name}"
            if draw.random() < 0.7 and (n, name) not in known:
                typed[n, name] = draw.random()
                table.loc[i, column] = typed[n, name]
    given, arrives = changed(table, kind, draw)
    if kind in ("another study", "recreated study"):
        arrives = False
    # Others report, amend and withdraw after the table was written.
    for n in draw.sample(range(study.n_trials), k=min(3, study.n_trials)):
        name, value = names[0], draw.random()
        report = value if name is None else {name: value}
        action = draw.choice(("observe", "amend", "withdraw", "note", "revise", "suggest"))
        if action in ("observe", "amend", "withdraw"):
            study.observe(n, report, amend=True)
            known[n, name] = value
        if action == "withdraw":
            study.withdraw(n, outcome=name)
            known[n, name] = None
        if action == "note":
            study.note(n, "seen")
        if action == "revise":
            study.revise(space=SPACE | {"T": bl.Real(20.0, 120.0 + draw.random())})
        if action == "suggest":
            study.suggest()
    if draw.random() < 0.5:
        file = path / f"{seed}.csv"
        given.to_csv(file, index=False)
        given = read_table(file)
    wanted, reported, moved = dict(known), {n for n, _ in known}, set()
    if arrives is None:  # the rows whose cells have not changed may arrive
        column = "params_T" if kind == "column sorted" else "params_x"
        now = [
            cell if isinstance(cell, str) else None if cell is None or cell != cell else float(cell)
            for cell in given[column]
        ]
        before = list(table[column])
        moved = {
            n
            for n, cell, old in zip(table["number"], now, before, strict=True)
            if cell is not None and abs(float(cell) - old) > 1e-9
        }
    for (n, name), value in typed.items():
        if arrives is not False and n not in moved and (n, name) not in known:
            wanted[n, name] = value
    for each in (study, study if isinstance(url, MemoryStore) else bl.Study.load("plate", url)):
        each.observe(given)
        for n in range(study.n_trials):
            for name in names:
                trial = each.trial(n)
                found = trial.value if name is None else trial.values.get(name)
                expected = wanted.get((n, name))
                if kind == "edited" and trial.params_run == trial.params and found is None and n in reported:
                    continue  # another value was reported at the suggested point, so the edited point needs amend
                if len(moved) in (1, 2) and n in moved:  # too few cells to tell a sorted column from edited cells
                    assert found in (expected, typed.get((n, name)))
                    continue
                assert found == expected, (seed, kind, n, name)
            if kind != "edited" and n not in moved:
                assert study.trial(n).params_run == study.trial(n).params, (seed, kind, n)


@pytest.mark.parametrize("part", range(4))
def test_random_worklists_agree_with_a_model(part, tmp_path):
    for seed in range(part, 2000 if FULL else 120, 4):
        check_random_worklist(seed, tmp_path)


# Files.


def read_text(tmp_path, text, encoding="utf-8", mark=b"", **arguments):
    file = tmp_path / "t.csv"
    file.write_bytes(mark + text.encode(encoding))
    return read_table(file, **arguments).to_dict("list")


@pytest.mark.parametrize(
    ("encoding", "mark"),
    [("utf-8", b""), ("utf-8", codecs.BOM_UTF8), ("cp1252", b""), ("utf-16-le", codecs.BOM_UTF16_LE)],
)
@pytest.mark.parametrize("text", ["µ;y\n0,5;1\n", "sep=;\nµ;y\n0,5;1\n", "µ\ty\n0.5\t1\n", 'µ,y\n"0,5",1\n'])
def test_encodings_and_separators(text, encoding, mark, tmp_path):
    assert read_text(tmp_path, text, encoding, mark) == {"µ": ["0.5"], "y": ["1"]}


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("x;y\n0,5;0.25\n", "'0,5' in line 2, column 'x' and '0.25' in line 2, column 'y'"),
        ("x;y\n1,125;2\n3,250;1\n", "'1,125' in line 2, column 'x', in which ',' may separate decimals or thousands"),
        ("x;y\n1.125;0,5\n", "write all numbers with the same decimal"),
        ("x;y;x\n1;2;3\n", "column 'x' twice"),
        ("x;y\n1;2;3\n", "more cells than the first line"),
        ('x;y\n1;"2\n', "cannot be read as a table"),
    ],
)
def test_unclear_files_are_refused(text, match, tmp_path):
    with pytest.raises(InvalidValue, match=match):
        read_text(tmp_path, text)


def test_the_decimal_separator_may_be_given(tmp_path):
    assert read_text(tmp_path, "x;y\n1,125;2\n", decimal=",") == {"x": ["1.125"], "y": ["2"]}
    assert read_text(tmp_path, "x;y\n1,125;0,5\n") == {"x": ["1.125"], "y": ["0.5"]}
    with pytest.raises(InvalidValue, match="decimal=','"):
        read_text(tmp_path, "x;y\n0.5;2\n", decimal=",")


def test_cells_of_excel_without_values_are_refused(tmp_path):
    study, file = new(n=5), tmp_path / "plate.xlsx"
    study.worklist(file)
    book = openpyxl.load_workbook(file)
    sheet = book["worklist"]
    column = [cell.value for cell in sheet[1]].index("value") + 1
    for i, content in enumerate(["=0.5*2", "#DIV/0!", pd.Timestamp("2026-03-01"), 0.25, "0,75"], 2):
        sheet.cell(i, column).value = content
    book.create_sheet("notes")["A1"] = "do not read"
    book.save(file)
    summary = study.observe(read_table(file))
    assert [each.row for each in summary.refused] == [2, 3, 4]
    assert "formula" in summary.refused[0].reason and "error" in summary.refused[1].reason
    assert values(study) == [None, None, None, 0.25, 0.75]


@pytest.mark.skipif(shutil.which("soffice") is None, reason="LibreOffice is not installed")
def test_files_through_libreoffice(tmp_path):
    study = new(n=8)
    table = filled(study)
    summaries = []
    for kind in ("csv", "xlsx"):
        file, out = tmp_path / f"plate.{kind}", tmp_path / f"of_{kind}"
        study.worklist(file)
        frame = (
            pd.read_csv(file, keep_default_na=False) if kind == "csv" else pd.read_excel(file, keep_default_na=False)
        )
        frame["value"] = table["value"].tolist()
        (frame.to_csv if kind == "csv" else frame.to_excel)(file, index=False)
        for wanted in ("csv", "xlsx"):
            call = ["soffice", "--headless", "--convert-to", wanted, "--outdir", str(out), str(file)]
            subprocess.run(call, check=True, capture_output=True, timeout=120)
            summaries.append(study.observe(read_table(out / f"plate.{wanted}"), dry_run=True))
    assert [(len(each.new), each.moved, each.refused) for each in summaries] == [(8, [], [])] * 4


def test_the_command_reads_a_table(tmp_path, capsys):
    store, file = tmp_path / "lab.db", tmp_path / "plate.csv"
    study = new(n=3, store=f"sqlite:///{store}")
    filled(study, [0.5, None, "oops"]).to_csv(file, index=False)
    assert cli.main(["study", "observe", str(store), "plate", str(file), "--dry-run"]) == cli.FAILED
    assert values(study) == [None] * 3
    assert cli.main(["study", "observe", str(store), "plate", str(file)]) == cli.FAILED
    assert "row 4, trial 2, column 'value': 'oops'" in capsys.readouterr().out
    assert values(study) == [0.5, None, None]
    filled(study, [0.6, 0.7]).to_csv(file, index=False)
    assert cli.main(["study", "observe", str(store), "plate", str(file)]) == cli.DONE
    assert "2 new, 0 unchanged, 0 refused" in capsys.readouterr().out
    assert cli.main(["study", "observe", str(store), "plate", "x.pdf"]) == cli.FAILED
    assert cli.main(["study", "observe", str(store), "plate", "0", "--moved"]) == cli.FAILED
