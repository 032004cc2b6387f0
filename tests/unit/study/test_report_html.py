"""The report of a study: authors, revisions and forbidden trials, from other processes and on the command line."""

import multiprocessing

import pytest

import belated as bl
from belated.optimizers.tables import report_page
from belated.study.commands import StoreError
from tests.unit.optimizers.test_report_page import EVIL, Page

SPACE = {"T": (20.0, 120.0), "solvent": ["water", "ethanol"]}


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch):
    """Leave out the pictures, which take most of the time."""
    monkeypatch.setattr(report_page, "_pictures", lambda *_: "")


@pytest.fixture
def lab(tmp_path):
    """A study of Ann and Bob, in which 3 of 5 trials have results."""
    study = bl.Study("lab", f"sqlite:///{tmp_path / 'lab.db'}", bl.BayesOpt(SPACE, seed=0))
    ann, bob = study.as_user("Ann"), study.as_user(EVIL)
    trials = ann.suggest(5, expires_after=3600.0)
    for trial in trials[:3]:
        bob.observe(trial, trial.params["T"])
    return study


def events_of(study):
    return study._store.events(study._log.id, 0)


def test_changes_have_their_authors_in_order(lab):
    ann, bob = lab.as_user("Ann"), lab.as_user(EVIL)
    first = lab._log.n_events()
    values = [trial.value for trial in lab.trials[:3]]
    bob.observe(0, 500.0, amend=True)
    ann.withdraw(1, reason="contaminated")
    lab.note(2, "cloudy")
    ann.revise(space={"T": (20.0, 90.0), "solvent": ["water", "ethanol"], "hours": (1.0, 5.0)}, fill={"hours": 2.0})
    bob.observe(2, 71.5, amend=True)
    stored = events_of(lab)
    page = Page(lab.report_html(since=first))
    assert events_of(lab) == stored
    rows = page.rows("What changed")
    assert [(row["by"], row["trial"]) for row in rows] == [
        (EVIL, "0"),
        ("Ann", "1"),
        ("", "2"),
        ("Ann", ""),
        (EVIL, "2"),
    ]
    assert [row["change"] for row in rows[:3]] == [
        f"value {values[0]:.5g} amended to 500",
        f"value {values[1]:.5g} withdrawn; reason: contaminated",
        "remark: cloudy",
    ]
    assert rows[3]["change"].startswith("revision 2: ") and "fill={'hours': 2.0}" in rows[3]["change"]
    assert rows[4]["change"] == f"value {values[2]:.5g} amended to 71.5"
    assert page.rows("What came") == [] and len(Page(lab.report_html()).rows("What came")) == 3
    # The trials keep the authors of their starts and ends.
    assert all((row["started by"], row["by"]) == ("Ann", EVIL) for row in page.rows("All trials")[:3])


def test_a_revision_says_what_it_changed(lab):
    lab.revise(space=SPACE | {"T": (20.0, 90.0)})
    [row] = Page(lab.report_html()).rows("What changed")
    assert row["change"] == "revision 2: space['T'] was Real(20.0, 120.0) and is Real(20.0, 90.0)"


def test_forbidden_trials_have_their_reasons(lab):
    low = min(trial.params["T"] for trial in lab.pending)
    with pytest.warns(bl.BelatedWarning, match="must not be run"):
        lab.revise(space=SPACE | {"T": (low + 1e-6, 120.0)})
    page = Page(lab.report_html())
    rows = page.rows("Forbidden")
    assert {int(row["trial"]): row["do not run, because"] for row in rows} == lab.forbidden != {}
    out = {row["number"]: row["state"] for row in page.rows("Experiments in progress")}
    assert all("forbidden" in out[row["trial"]] and "outside the space" in out[row["trial"]] for row in rows)


def test_a_lease_is_the_time_when_a_trial_is_due(lab):
    rows, table = Page(lab.report_html()).rows("Experiments in progress"), lab.worklist()
    assert [int(row["number"]) for row in rows] == table["number"].tolist()
    assert [row["due"] for row in rows] == [f"{at:%Y-%m-%d %H:%M}" for at in table["due_utc"]]
    assert {row["due from"] for row in rows} == {"lease"}


def test_trials_whose_lease_has_ended_are_counted_apart(tmp_path):
    now = [1e9]
    study = bl.Study(
        "late", f"sqlite:///{tmp_path / 'late.db'}", bl.RandomSearch({"x": (0.0, 1.0)}, seed=0), time=lambda: now[0]
    )
    study.suggest(2, expires_after=60.0)
    study.suggest()
    now[0] += 3600.0
    page = Page(study.report_html())
    assert any("2 more were added, or their lease has ended" in text for text in page.texts)
    in_progress = [row["state"] for row in page.rows("Experiments in progress")]
    assert in_progress == ["pending, late", "pending, late", "pending"]


def test_values_and_positions_of_outcomes_are_read_across_revisions(tmp_path):
    goals = {"yield": "maximize", "purity": bl.Record()}
    study = bl.Study("goals", f"sqlite:///{tmp_path / 'goals.db'}", bl.RandomSearch(SPACE, outcomes=goals, seed=0))
    study.add({"T": 50.0, "solvent": "water"}, {"yield": 1.0, "purity": 0.5})
    study.revise(outcomes={"cost": bl.Record(), "purity": bl.Record(), "yield": "maximize"}, fill={"cost": 9.0})
    study.observe(0, {"yield": 2.0}, amend=True)
    study.observe(0, {"purity": 0.75, "cost": 8.0}, amend=True)
    changes = [row["change"] for row in Page(study.report_html()).rows("What changed")]
    assert changes[1] == "yield 1 amended to 2"
    assert set(changes[2].split("; ")) == {"purity 0.5 amended to 0.75", "cost 9 amended to 8"}


def test_a_hostile_name_is_a_text(tmp_path):
    study = bl.Study(EVIL, f"sqlite:///{tmp_path / 'evil.db'}", bl.RandomSearch({"x": [EVIL, "b"]}, seed=0))
    study.suggest()
    study.revise(space={"x": [EVIL, "<b>", "b"]})
    page = Page(study.report_html())
    assert page.texts.count(EVIL) >= 2 and EVIL in page.rows("What changed")[0]["change"].replace("\\'", "'")


def report(url, path):
    page = bl.Study.load("lab", url).report_html(path)
    assert page.startswith("<!DOCTYPE html>")


def test_another_process_writes_the_same_page(lab, tmp_path):
    lab.revise(space=SPACE | {"T": (20.0, 90.0)})
    path = tmp_path / "other.html"
    process = multiprocessing.get_context("spawn").Process(target=report, args=(lab.store, str(path)))
    process.start()
    process.join(60)
    assert process.exitcode == 0
    mine, other = Page(lab.report_html()).tables, Page(path.read_text(encoding="utf-8")).tables
    assert mine["All trials"] == other["All trials"] and len(mine) == len(other)


def test_an_earlier_revision_is_read(lab):
    lab.revise(space=SPACE | {"T": (20.0, 90.0)})
    lab.suggest()
    page = Page(bl.Study.load("lab", lab.store, revision=1).report_html())
    assert len(page.rows("All trials")) == 5 and page.rows("What changed") == []
    assert len(Page(lab.optimizer.report_html()).rows("All trials")) == 6


def test_the_command_writes_a_report(lab, tmp_path, capsys):
    from belated.cli import main

    path = tmp_path / "monday.html"
    assert main(["study", "report", lab.store, "lab", "--output", str(path)]) == 0
    assert len(Page(path.read_text(encoding="utf-8")).rows("All trials")) == 5
    assert main(["study", "report", lab.store, "lab", "--output", str(tmp_path / "monday.csv")]) == 1
    assert ".html" in capsys.readouterr().err
    assert main(["study", "report", lab.store, "none", "--output", str(path)]) == 1


def test_print_of_a_deleted_study_says_why(lab):
    assert str(lab).endswith(
        f"5 trials, 2 pending, best {lab.best_value_:.4g} (trial {lab.best_trial_.number}, "
        f"params={{'T': {lab.best_value_:.4g}, 'solvent': {lab.best_params_['solvent']!r}}})"
    )
    bl.Study.delete("lab", lab.store)
    settings, line = str(lab).rsplit("\n", 1)
    assert settings.startswith("Study('lab'") and "deleted" in line
    with pytest.raises(StoreError):
        lab.report_html()


def test_a_report_without_the_functions_of_constraints_says_so(tmp_path):
    def half(params):
        return params["a"] <= 0.5

    store = f"sqlite:///{tmp_path}/a.db"
    study = bl.Study("s", store, bl.BayesOpt({"a": (0.0, 1.0)}, constraints=[half], seed=0))
    text = "the constraints ['half'] were not passed"
    assert text not in " ".join(Page(study.report_html()).texts)
    assert text in " ".join(Page(bl.Study.load("s", store).report_html()).texts)
