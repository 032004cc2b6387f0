"""`worklist` shows what is out, since when, and when it is due; the commands read and write tables."""

import csv
import html.parser
import json

import numpy as np
import pandas as pd
import pytest

import belated as bl
from belated import cli
from belated._core import DelayDistribution
from belated.errors import InvalidPoint, InvalidSetting, InvalidValue
from belated.plotting.trials import fates_of
from belated.store.memory import MemoryStore
from tests.clock import Clock

DAY = 86400.0


@pytest.fixture
def clock():
    return Clock(1.75e9)


def study_of(time, **settings):
    space = {"T": (20.0, 100.0), "lot": ["<b>", True]}
    return bl.Study("lab <1>", MemoryStore(), bl.RandomSearch(space, seed=0, **settings), time=time)


def seconds(time):
    return time.tz_localize("UTC").timestamp()


@pytest.mark.parametrize("name", ["iterations", "seconds"])
def test_the_list_shows_pending_trials_and_when_they_are_due(clock, name):
    study = study_of(clock, clock=name)
    assert len(study.worklist()) == 0
    for _ in range(30):
        trial, start = study.suggest(), clock.now
        clock.now += 2 * DAY
        trial.observe(1.0)
    start = clock.now
    plain, leased, lapsed = study.suggest(), study.suggest(expires_after=30 * DAY), study.suggest(expires_after=3600.0)
    own = study.add({"T": 50.0, "lot": True})
    clock.now += DAY
    table = study.worklist()
    assert table["number"].tolist() == [lapsed.number, plain.number, leased.number, own.number]
    assert table["due_from"].tolist()[:3] == ["lease", "delays", "lease"] and pd.isna(table["due_from"][3])
    assert table["late"].tolist() == [True, False, False, False]
    assert [seconds(each) for each in table["since_utc"]] == [start] * 4
    due = [seconds(each) for each in table["due_utc"][:3]]
    assert (due[0], due[2]) == (start + 3600.0, start + 30 * DAY) and pd.isna(table["due_utc"][3])
    assert abs(due[1] - (start + 2 * DAY)) < 0.2 * DAY  # every delay was two days
    assert table["params_T"].tolist() == [trial.params["T"] for trial in (lapsed, plain, leased, own)]
    clock.now += 20 * DAY
    late = study.worklist().set_index("number")["late"]
    assert late[plain.number] and not late[leased.number]
    for trial in (plain, leased, lapsed, own):
        trial.observe(1.0)
    assert len(study.worklist()) == 0


def test_the_list_of_candidates_contexts_and_fidelities(clock):
    optimizer = bl.RandomSearch(
        candidates=np.arange(6.0).reshape(3, 2), context={"day": ["Mo", "Tu"]}, fidelity=bl.Fidelity(1, 9), seed=0
    )
    study = bl.Study("s", MemoryStore(), optimizer, time=clock)
    trial = study.suggest(context={"day": "Tu"}, fidelity=3)
    [row] = study.worklist().to_dict("records")
    assert (row["number"], row["index"], row["context_day"], row["fidelity"]) == (0, trial.index, "Tu", 3)
    assert pd.isna(row["due_utc"])  # no result has arrived


class Cells(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.rows, self.inside = [], False

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            self.inside = True

    def handle_endtag(self, tag):
        self.inside = self.inside and tag not in ("td", "th")

    def handle_data(self, data):
        if self.inside:
            self.rows[-1][-1] += data


def test_the_page_has_every_trial_and_cells_to_fill_in(clock, tmp_path):
    study = study_of(clock)
    study.add([{"T": 100 / 3, "lot": "<b>"}, {"T": 25.0, "lot": True}])
    page = study.worklist_html(tmp_path / "list.html")
    assert (tmp_path / "list.html").read_text(encoding="utf-8") == page and "<b>" not in page and "lab <1>" not in page
    parser = Cells()
    parser.feed(page)
    head, first, second = parser.rows
    assert head[:3] == ["number", "T", "lot"] and head[-2:] == ["value", "remarks"]
    assert first[:3] == ["0", "33.3333", "<b>"] and second[:3] == ["1", "25", "True"]
    assert len(first) == len(head) and first[-2:] == ["", ""]


def test_what_is_missing_of_each_trial(clock):
    outcomes = {"yield": "maximize", "purity": bl.AtLeast(0.9), "colour": bl.Record()}
    study = bl.Study("lab", MemoryStore(), bl.RandomSearch({"T": (20.0, 100.0)}, outcomes=outcomes, seed=0))
    first, second = study.suggest(2)
    first.observe({"yield": 0.5})
    first.abandon(outcome="colour")
    table = study.worklist()
    assert table["missing"].tolist() == ["purity", "yield, purity, colour"]
    assert table["outcome_yield"].tolist()[0] == 0.5 and table["outcome_purity"].isna().all()
    parser = Cells()
    parser.feed(study.worklist_html())
    head, *rows = parser.rows
    assert head[-4:] == ["yield", "purity", "colour", "remarks"]
    assert [row[-4:] for row in rows] == [["0.5", "", "", ""], ["", "", "", ""]]
    first.observe({"purity": 0.95})
    assert study.worklist()["number"].tolist() == [second.number]


def run(capsys, *arguments):
    code = cli.main(["study", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_commands_export_and_import_tables(suffix, tmp_path, capsys):
    if suffix == ".xlsx":
        pytest.importorskip("openpyxl", reason="Excel files need openpyxl")
    space, file = {"T": (20.0, 100.0), "lot": ["a", "01"]}, tmp_path / f"trials{suffix}"
    path = tmp_path / "lab.db"
    first = bl.Study("first", f"sqlite:///{path}", bl.RandomSearch(space, seed=0))
    second = bl.Study("second", f"sqlite:///{path}", bl.RandomSearch(space, seed=1))
    for trial in first.suggest(n=4)[:3]:
        trial.observe(trial.params["T"] / 3)
    assert run(capsys, "export", path, "first", "--table", file) == (0, "")
    assert run(capsys, "import", file, path, "second") == (0, "second: 4 trials added\n")
    for found, written in zip(second.trials, first.trials, strict=True):
        # The last digits may change.
        assert found.params == written.params | {"T": pytest.approx(written.params["T"])}
        assert found.value == pytest.approx(written.value)
    output = tmp_path / f"list{suffix}"
    assert run(capsys, "worklist", path, "first", "--output", output) == (0, "")
    listed = pd.read_csv(output) if suffix == ".csv" else pd.read_excel(output)
    assert listed["number"].tolist() == [3]
    assert run(capsys, "worklist", path, "first", "--output", tmp_path / "list.html")[0] == 0
    assert "3" in run(capsys, "worklist", path, "first")[1]


def test_commands_know_outcomes(tmp_path, capsys):
    path, outcomes = tmp_path / "lab.db", {"yield": "maximize", "purity": bl.AtLeast(0.9)}
    first, second = (
        bl.Study(name, f"sqlite:///{path}", bl.RandomSearch({"T": (20.0, 100.0)}, outcomes=outcomes, seed=0))
        for name in ("first", "second")
    )
    one, two = first.suggest(2)
    one.observe({"yield": 1 / 3, "purity": 0.95})
    two.observe({"purity": 0.5})
    assert "values={'purity': 0.5}, missing=['yield']" in run(capsys, "show", path, "first")[1]
    assert run(capsys, "export", path, "first", "--table", tmp_path / "trials.csv") == (0, "")
    assert run(capsys, "import", tmp_path / "trials.csv", path, "second") == (0, "second: 2 trials added\n")
    assert [trial.values for trial in second.trials] == [one.values, two.values]
    assert run(capsys, "withdraw", path, "first", 0, "--outcome", "purity")[0] == 0
    first.sync()
    assert one.outcomes["purity"].state == "withdrawn" and one.values == {"yield": 1 / 3}
    assert "yield" in run(capsys, "worklist", path, "first")[1]


def test_commands_name_the_lines_of_a_table(tmp_path, capsys):
    path, file = tmp_path / "lab.db", tmp_path / "old.csv"
    study = bl.Study("s", f"sqlite:///{path}", bl.RandomSearch({"T": (20.0, 100.0)}, seed=0))
    file.write_text("day,T,yield\nMo,30,1.5\nTu,hot,2.5\nWe,40,\n", encoding="utf-8")
    code, text = run(capsys, "import", file, path, "s", "--value", "yield")
    assert code == 1 and "row 3, column 'T': params['T']='hot'" in text and study.n_trials == 0
    code, text = run(capsys, "import", file, path, "s", "--value", "yield", "--skip", "--missing", "pending")
    assert code == 1 and "line 3, column 'T'" in text and "s: 2 trials added, 1 rows not added" in text
    assert [(trial.params["T"], trial.value) for trial in study.trials] == [(30.0, 1.5), (40.0, None)]
    broken = tmp_path / "broken.xlsx"
    broken.write_bytes(b"PK")
    assert run(capsys, "import", broken, path, "s")[0] == run(capsys, "import", file, path)[0] == 1
    assert run(capsys, "export", path, "--table", file)[0] == 1
    assert run(capsys, "export", path, "s", "--table", tmp_path / "trials.txt")[0] == 1
    assert study.n_trials == 2


@pytest.mark.parametrize("line", ["25,50,2.0,", "25,50,2.0,3.0,4.0", "25,50,2.0,a remark"])
def test_a_line_with_more_cells_than_names_is_refused(line, tmp_path, capsys):
    """pandas would read T=50 and yield=2 from columns of other names."""
    path, file = tmp_path / "lab.db", tmp_path / "old.csv"
    study = bl.Study("s", f"sqlite:///{path}", bl.RandomSearch({"T": (20.0, 100.0)}, seed=0))
    file.write_text(f"T,pressure,yield\n{line}\n", encoding="utf-8")
    code, text = run(capsys, "import", file, path, "s", "--value", "yield", "--missing", "pending")
    assert code == 1 and "more cells" in text and study.n_trials == 0
    file.write_text("T,pressure,yield\n", encoding="utf-8")
    assert run(capsys, "import", file, path, "s", "--value", "yield") == (0, "s: 0 trials added\n")


def test_the_arrival_of_a_withdrawn_result_counts_in_the_due_times():
    def due(withdraws):
        now = [1e9]
        study = bl.Study("s", MemoryStore(), bl.RandomSearch({"x": (0.0, 1.0)}, seed=0), time=lambda: now[0])
        for _ in range(5):
            trial = study.suggest()
            now[0] += 100.0
            trial.observe(1.0)
            if withdraws:
                trial.withdraw()
        study.suggest()
        return study.worklist()["due_utc"][0]

    assert due(True) == due(False)


@pytest.mark.filterwarnings("ignore::belated.BelatedWarning")
@pytest.mark.parametrize("outcomes", [None, {"a": "maximize", "b": bl.Record()}])
@pytest.mark.parametrize("name", ["iterations", "seconds"])
def test_worklists_and_plots_agree_on_late_trials(clock, name, outcomes, tmp_path):
    """The delays of the reference are read from the trials."""
    optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0, clock=name, **({"outcomes": outcomes} if outcomes else {}))
    study = bl.Study("s", tmp_path / "a.db", optimizer, time=clock)
    value = {"a": 1.0, "b": 2.0} if outcomes else 1.0
    lost, leased, part = study.suggest(), study.suggest(expires_after=900 * DAY), study.suggest()
    lapsed, own = study.suggest(expires_after=DAY), study.add({"x": 0.9})
    delays = []
    for i in range(24):
        trial, days = study.suggest(), 1 + i % 4
        clock.now += days * DAY
        delays.append((days * DAY, 2 if i == 5 else 1))
        if i == 5:
            trial.fail()
        else:
            trial.observe(value)
        if i % 6 == 1:
            trial.withdraw()
    if outcomes:
        # One outcome arrived, and was withdrawn later.
        part.observe({"a": 1.0})
        part.abandon(outcome="b")
        delays.append((sum(delay for delay, _ in delays), 1))
        part.withdraw(outcome="a")
    fresh = study.suggest()
    clock.now += DAY / 2
    for _ in ("before a revision", "after a revision"):
        table = study.worklist().set_index("number")
        out = {trial.number for trial in study.trials if trial.state == "pending"}
        old = [lost] if outcomes else [lost, part]
        ages = {trial.number: clock.now - seconds(table["since_utc"][trial.number]) for trial in [*old, fresh]}
        records = [*delays, *((age, 0) for age in ages.values()), (DAY, 0)]
        records.append((clock.now - seconds(table["since_utc"][leased.number]), 0))
        given, states = np.array(records).T
        reference = DelayDistribution(given, states.astype(np.int64), clock="seconds")
        limit = reference.quantile(0.95)[0]
        late = {number for number, age in ages.items() if age > limit} | {lapsed.number}
        assert set(table.index) == out and own.number in out and lost.number in late and fresh.number not in late
        assert set(table.index[table["late"]]) == late
        for number, age in ages.items():
            due = clock.now + reference.remaining(age)[0]
            assert abs(seconds(table["due_utc"][number]) - due) <= 1.0
        drawn = fates_of(study, [study.trial(number) for number in sorted(out)])
        assert {number for number, fate in zip(sorted(out), drawn, strict=True) if fate == "late"} == late
        study.revise(space={"x": (0.0, 0.2)})  # most trials are left out


def test_trials_without_known_times_are_late_only_by_their_lease(clock):
    optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0, time=clock)
    for _ in range(9):
        trial = optimizer.suggest()
        clock.now += DAY
        trial.observe(1.0)
    optimizer.suggest()
    optimizer.suggest()
    events = [json.loads(event) for event in optimizer._log.events(0)]
    for event in events[-2:]:
        event["at"] = None
    events[-1]["what"]["Suggested"]["expires_at"] = clock.now + DAY
    optimizer._log.replace([json.dumps(event) for event in events])
    delays, late = optimizer._log.lateness(clock.now + 99 * DAY)
    assert late == [10] and list(delays.counts) == [0, 9, 0]


FORMULAS = ["=O", "-OMe", "+NH3", "@home", "\t=1", "\r=2", '=HYPERLINK("http://x","y")', "1,5", "-1"]


@pytest.mark.parametrize("by_command", [False, True])
def test_files_mark_texts_that_a_spreadsheet_would_execute(by_command, tmp_path, capsys):
    space = {"=x": (-9.0, -1.0), "group": FORMULAS}
    optimizer = bl.RandomSearch(space, seed=0, context={"=lot": ["=A", "B"]})
    study = bl.Study("w", tmp_path / "a.db", optimizer)
    for group in FORMULAS:
        study.add({"=x": -2.5, "group": group}, context={"=lot": "=A"})
    for kind in ("csv", "xlsx"):
        file = str(tmp_path / f"w.{kind}")
        if by_command:
            assert cli.main(["study", "worklist", str(tmp_path / "a.db"), "w", "--output", file]) == cli.DONE
        else:
            study.worklist(file)
    sheet = pytest.importorskip("openpyxl").load_workbook(tmp_path / "w.xlsx").active
    assert "f" not in {cell.data_type for row in sheet.iter_rows() for cell in row}
    with open(tmp_path / "w.csv", newline="") as file:
        head, *rows = csv.reader(file)
    assert len(rows) == len(FORMULAS)
    for row in rows:
        cells = dict(zip(head, row, strict=True))
        assert float(cells["params_=x"]) == -2.5  # numbers stay numbers
        assert not any(cell[0] in "=+-@\t\r" for cell in row if cell not in ("", "-1", "-2.5"))
        assert cells["context_=lot"] == "'=A"
    marked = {row[head.index("params_group")] for row in rows}
    assert marked >= {"'=O", "'-OMe", "'+NH3", "'@home", "1,5", "-1"}


def test_a_worklist_refuses_files_of_other_kinds(clock, tmp_path):
    with pytest.raises(InvalidSetting, match="csv"):
        study_of(clock).worklist(tmp_path / "w.txt")


def test_commands_do_not_print_control_characters(tmp_path, capsys):
    evil = "\x1b]0;title\x07\x1b[2J\x9b1m\u202e\n"
    space = {f"k{evil}": [f"a{evil}", f"b{evil}"], "x": (0.0, 1.0)}
    optimizer = bl.RandomSearch(space, seed=0, outcomes={f"y{evil}": "maximize"})
    study = bl.Study("s", tmp_path / "a.db", optimizer)
    study.suggest(3)
    study.observe(0, {f"y{evil}": 1.0})
    study.fail(1, error=f"lost {evil}")
    (tmp_path / "t.csv").write_text(f"x,k\n1,{evil}")
    store = str(tmp_path / "a.db")
    calls = [["worklist", store, "s"], ["show", store, "s"], ["list", store], ["check", store]]
    calls += [["withdraw", store, "s", "1"], ["show", store, f"s{evil}"], ["import", f"{tmp_path}/t.csv", store, "s"]]
    shown = 0
    for call in calls:
        cli.main(["study", *call])
        printed = capsys.readouterr()
        text = (printed.out + printed.err).replace("\n", "")
        assert text.isprintable(), call
        shown += "title" in text
    assert shown >= 4
    page = study.worklist_html()
    assert "title" in page and not set(page) & set("\x1b\x07\x9b\u202e")


def import_table(rows, kind, folder, capsys, value="yield", space=None):
    """Import a table by the command; return the exit code, the text, and the values of the study."""
    file, path = folder / f"t.{kind}", folder / "lab.db"
    study = bl.Study("s", f"sqlite:///{path}", bl.RandomSearch(space or {"T": (20.0, 100.0)}, seed=0))
    if kind == "csv":
        with open(file, "w", newline="", encoding="utf-8-sig") as lines:
            csv.writer(lines).writerows(rows)
    else:
        book = pytest.importorskip("openpyxl").Workbook()
        for row in rows:
            book.active.append(row)
        book.save(file)
    code, text = run(capsys, "import", file, path, "s", "--value", value)
    return code, text, [trial.value for trial in study.trials]


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
@pytest.mark.parametrize(
    "head",
    [
        ["T", "yield", "yield"],
        ["yield", "T", "yield "],
        ["T", "T", "yield"],
        ["yield.1", "T", "yield", "yield"],
        ["yield", "yield", "T", "yield"],
        ["T", "yield", 7, 7],
        ["T", "yield", "yield.1"],
    ],
)
def test_a_column_that_a_file_has_twice_is_refused(head, kind, tmp_path, capsys):
    code, text, values = import_table([head, [30.0] * len(head)], kind, tmp_path, capsys)
    assert code == 1 and "twice" in text and values == []


@pytest.mark.parametrize(
    "text",
    [
        "T;yield\n30;61\n",
        "T;yield\n30,5;61,5\n",
        "T;yield\n30,5;61\n31,5;62,5\n",
        '"T";"yield"\n30,5;61,5\n',
        "T;yield;remark, in words\n30;61;a\n",
        "T\tyield\n30\t61\n",
    ],
)
def test_files_with_other_separators_are_read(text, tmp_path, capsys):
    path, file = tmp_path / "lab.db", tmp_path / "t.csv"
    study = bl.Study("s", f"sqlite:///{path}", bl.RandomSearch({"T": (20.0, 100.0)}, seed=0))
    file.write_text(text)
    code, printed = run(capsys, "import", file, path, "s", "--value", "yield")
    wanted = {30.0: [61.0], 30.5: [61.0, 61.5], 31.5: [62.5]}
    assert code == 0 and study.n_trials == text.count("\n") - 1
    assert all(trial.value in wanted[trial.params["T"]] for trial in study.trials)
    if text.count(",") == 0:
        with pytest.raises(InvalidPoint, match="separated by"):
            study.add(pd.read_csv(file), value="yield")


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
@pytest.mark.parametrize("cell", ["1_000", "٣٠", "3٠", "1_0.5"])
def test_only_plain_digits_are_numbers(cell, kind, tmp_path, capsys):
    for rows in ([["T", "yield"], [30.0, cell]], [["T", "yield"], [cell, 1.0]]):
        code, text, values = import_table(rows, kind, tmp_path, capsys, space={"T": (0.0, 2000.0)})
        assert code == 1 and cell in text and values == []
    with pytest.raises(SystemExit):
        run(capsys, "withdraw", tmp_path / "lab.db", "s", cell)


def test_a_trial_is_late_beyond_the_quantile_of_95_percent(clock):
    study = study_of(clock)
    delays = [2.0 ** (i % 8) * DAY for i in range(40)]
    for delay in delays:
        trial = study.suggest()
        clock.now += delay
        trial.observe(1.0)
    pending, start, found = study.suggest(), clock.now, []
    states = np.array([1] * len(delays) + [0])
    for age in np.geomspace(max(delays) / 4, 40 * max(delays), 60):
        clock.now = start + age
        reference = DelayDistribution(np.array([*delays, age]), states, clock="seconds")
        sooner, limit = (reference.quantile(q)[0] for q in (0.9, 0.95))
        assert (study._log.lateness(clock.now)[1] == [pending.number]) == (age > limit)
        found.append((age > sooner, age > limit))
    assert {(False, False), (True, False), (True, True)} == {*found}


@pytest.mark.parametrize("name", ["iterations", "seconds"])
def test_a_lapsed_lease_ages_until_its_end(clock, name):
    """The delays are the same at any later time, on both clocks."""
    study = study_of(clock, clock=name)
    study.suggest(expires_after=5 * DAY)
    for i in range(20):
        trial = study.suggest()
        clock.now += (1 + i % 4) * DAY
        trial.observe(1.0)
    found = []
    for _ in range(2):
        delays = study._log.lateness(clock.now)[0]
        found.append((study.delays_.quantile(0.9), delays.quantile(0.9)))
        clock.now += 1000 * DAY
    assert found[0] == found[1]


def test_a_worklist_is_not_added(clock):
    study = study_of(clock)
    study.suggest(n=3)
    table = study.worklist()
    table["value"] = [0.1, 0.2, 0.3]
    for each in (table, table.drop(columns=["study", "study_id"])):
        with pytest.raises(
            InvalidValue, match=r"3 rows of the table are trials that are pending here.*observe\(table\)"
        ):
            study.add(each)
    assert study.n_trials == 3
    # Rows with other points were not planned here.
    moved = table.drop(columns=["study", "study_id", "late", "forbidden", "remarks"]).assign(
        params_T=[25.0, 35.0, 45.0]
    )
    assert len(study.add(moved)) == 3
