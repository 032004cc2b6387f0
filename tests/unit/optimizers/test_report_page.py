"""The page of a search to print, compared with the trials: a parser of HTML reads its tables."""

import builtins
import pickle
import sys
from datetime import datetime, timedelta, timezone
from html.parser import HTMLParser

import numpy as np
import pytest

import belated as bl
from belated.errors import InvalidSetting
from belated.optimizers.tables import report_page

SPACE = {"x": (0.0, 1.0), "y": (0.0, 100.0)}
EVIL = "<script>alert('\"&')</script>"

# The tags of a page. A page without scripts and links has no others.
TAGS = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "div", "figure", "figcaption", "img"}
TAGS |= {"table", "thead", "tbody", "tr", "th", "td"}


class Page(HTMLParser):
    """The tables by the titles of their sections, each with its head and rows, and all texts."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.texts, self.images, self.tags, self.open = {}, [], [], set(), []
        self.feed(text)
        assert not self.open and self.tags <= TAGS

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        assert {name for name, _ in attrs} <= {"lang", "charset", "class", "style", "alt", "src"}
        if tag == "img":
            self.images.append(dict(attrs)["src"])
        if tag not in ("meta", "img"):
            self.open.append(tag)
        if tag in ("h1", "h2"):
            self.title = ""
        if tag == "table":
            self.tables[self.title] = []
        if tag == "tr":
            self.tables[self.title].append([])
        if tag in ("td", "th"):
            self.tables[self.title][-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)
        if self.open[-1:] and self.open[-1] in ("h1", "h2"):
            self.title += data
        if self.open[-1:] and self.open[-1] in ("td", "th"):
            self.tables[self.title][-1][-1] += data

    def rows(self, section):
        """The rows of a table as dicts."""
        [found] = [rows for title, rows in self.tables.items() if title.startswith(section)] or [[[]]]
        return [dict(zip(found[0], row, strict=True)) for row in found[1:]]


@pytest.fixture
def pictures():
    """The pages of a test have pictures."""
    pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def few_pictures(request, monkeypatch):
    """Leave out the pictures, which take most of the time, unless a test needs them."""
    if "pictures" not in request.fixturenames:
        monkeypatch.setattr(report_page, "_pictures", lambda *_: "")


def page_of(search, **options):
    before = search._log.events(0)
    page = Page(search.report_html(**options))
    assert search._log.events(0) == before
    assert all(image.startswith("data:image/png;base64,") for image in page.images)
    return page


def observed(optimizer, n, value, **options):
    for trial in optimizer.suggest(n=n, **options):
        optimizer.observe(trial, value(trial))
    return optimizer


def failed():
    optimizer = bl.BayesOpt(SPACE, seed=0)
    for trial in optimizer.suggest(n=3):
        trial.fail(error=EVIL)
    return optimizer


def pending():
    optimizer = bl.BayesOpt(SPACE, seed=0)
    optimizer.suggest(n=3)
    return optimizer


def contexts():
    optimizer = bl.BayesOpt(SPACE, context={"lot": ["A", EVIL]}, seed=0)
    for lot in ("A", EVIL, "A", EVIL):
        trial = optimizer.suggest(context={"lot": lot})
        trial.observe(trial.params["x"])
    return optimizer


def several_outcomes():
    goals = {"yield": "maximize", "purity": bl.AtLeast(0.5), EVIL: bl.Record()}
    optimizer = bl.BayesOpt(SPACE, outcomes=goals, seed=0)
    for trial in optimizer.suggest(n=8):
        trial.observe({"yield": trial.params["x"], **({"purity": trial.params["y"] / 100} if trial.number % 2 else {})})
    return optimizer


def front(n):
    optimizer = bl.BayesOpt(SPACE, outcomes=dict.fromkeys("abc"[:n], "maximize"), seed=0)
    goals = ("x", 1.0), ("x", -1.0), ("y", 0.01)
    for trial in optimizer.suggest(n=8):
        trial.observe({name: trial.params[key] * sign for name, (key, sign) in zip("abc"[:n], goals, strict=False)})
    return optimizer


CASES = {
    "no trials": lambda: bl.BayesOpt(SPACE, seed=0),
    "all failed": failed,
    "only pending": pending,
    "BayesOpt": lambda: observed(bl.BayesOpt(SPACE, seed=0), 8, lambda trial: trial.params["x"]),
    "RandomSearch": lambda: observed(bl.RandomSearch(SPACE, seed=0), 8, lambda trial: trial.params["x"]),
    "TreeSearch": lambda: observed(bl.TreeSearch(SPACE, seed=0), 8, lambda trial: trial.params["x"]),
    "contexts": contexts,
    "outcomes": several_outcomes,
    "front of two": lambda: front(2),
    "front of three": lambda: front(3),
    "mixture": lambda: observed(
        bl.BayesOpt(dict.fromkeys("abc", (0.0, 1.0)), constraints=[bl.Mixture(["a", "b", "c"])], seed=0),
        6,
        lambda trial: trial.params["a"],
    ),
    "rows": lambda: observed(bl.BayesOpt(candidates=np.eye(5), seed=0), 3, lambda trial: float(trial.x[0])),
    "named rows": lambda: observed(
        bl.BayesOpt(candidates=[{"T": 1.5 * i, "s": EVIL} for i in range(5)], seed=0), 3, lambda t: t.params["T"]
    ),
    "fidelity": lambda: observed(
        bl.RandomSearch(SPACE, fidelity=bl.Fidelity(1, 9), seed=0), 3, lambda trial: trial.params["x"]
    ),
    "seconds": lambda: observed(bl.BayesOpt(SPACE, clock="seconds", seed=0), 3, lambda trial: trial.params["x"]),
    "one parameter": lambda: observed(bl.BayesOpt({"x": (0.0, 1.0)}, seed=0), 3, lambda trial: trial.params["x"]),
    "many parameters": lambda: observed(
        bl.RandomSearch({f"p{i}": (0.0, 1.0) for i in range(40)}, seed=0), 3, lambda trial: trial.params["p0"]
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_page_has_the_numbers_of_all_trials(name, pictures):
    search = CASES[name]()
    page, trials = page_of(search), {str(trial.number): trial for trial in search.trials}
    rows = page.rows("All trials")
    assert [row["number"] for row in rows] == [*trials]
    best = {str(trial.number) for trial in search._best_trials()}
    for row in rows:
        trial = trials[row["number"]]
        assert row["state"].split(", ")[0] == trial.state
        assert not (trial.outcomes and {"value", "std"} & row.keys())
        assert bool({"best", "front"} & {*row["state"].split(", ")}) == (row["number"] in best)
        known = trial.values or {"value": trial.value}
        assert all(
            float(row[key]) == pytest.approx(value, rel=1e-4) for key, value in known.items() if value is not None
        )
        params = trial.params if isinstance(trial.params, dict) else {}
        if len(params) <= 10:
            assert all(
                float(row[key]) == pytest.approx(value, abs=0.05) for key, value in params.items() if key in "xyabcT"
            )
        else:
            assert row["point"].split("; ")[39] == f"p39: {params['p39']:.3f}"
        assert row.get("lot") == (trial.context or {}).get("lot")
        assert row.get("fidelity") == (None if trial.fidelity is None else f"{trial.fidelity:.5g}")
    front = "Front" if search._problem.front else "Best"
    assert {row["number"] for row in page.rows(front)} == best
    in_progress = {row["number"] for row in page.rows("Experiments in progress")}
    assert in_progress == {str(trial.number) for trial in search.pending}
    came = {
        str(trial.number)
        for trial in search.trials
        if trial.state == "failed" or trial.values or trial.value is not None
    }
    assert {row["number"] for row in page.rows("What came")} == came
    if "missing" in (rows[0] if rows else ()):
        assert all(row["missing"] == ", ".join(trials[row["number"]].missing) for row in rows)
    no_model = name in (
        "no trials",
        "all failed",
        "only pending",
        "RandomSearch",
        "TreeSearch",
        "fidelity",
        "many parameters",
    )
    assert len(page.images) == (2 if name == "rows" else 3 if no_model else 4)


@pytest.mark.parametrize("name", ["BayesOpt", "outcomes", "TreeSearch"])
def test_a_page_changes_nothing(name, pictures):
    search, twin = CASES[name](), CASES[name]()
    search.report_html()
    assert [trial.params for trial in search.suggest(n=3)] == [trial.params for trial in twin.suggest(n=3)]


def test_numbers_have_the_digits_of_their_range():
    space = {"b": (0.0, 1.0), "T": (20.0, 1200.0), "lr": bl.Real(1e-5, 1, log=True), "n": (1, 9)}
    optimizer = bl.RandomSearch(space, seed=0)
    optimizer.add({"b": 2.857e-15, "T": 333.3333333, "lr": 0.000123456, "n": 3}, 82.123456789)
    optimizer.add({"b": 1.0, "T": 20.0, "lr": 1.0, "n": 9}, -1.0)
    row, other = page_of(optimizer).rows("All trials")
    assert [row[name] for name in ("b", "T", "lr", "n", "value")] == ["0.000", "333", "0.0001235", "3", "82.123"]
    assert [other[name] for name in ("b", "T", "lr", "n", "value")] == ["1.000", "20", "1", "9", "-1"]


def test_points_that_were_run_replace_suggested_points():
    optimizer = bl.RandomSearch({"x": (0.0, 1.0), "run_x": (0.0, 1.0)}, seed=0)
    first, second = optimizer.suggest(n=2)
    first.observe(1.0, params={"x": 0.25, "run_x": 1.5})
    second.observe(0.5)
    moved, same = page_of(optimizer).rows("All trials")
    assert (moved["x"], moved["run_x"], moved["state"]) == ("0.250", "1.500", "observed, moved, outside the space")
    assert (same["x"], same["run_x"]) == (f"{second.params['x']:.3f}", f"{second.params['run_x']:.3f}")


def test_hostile_texts_are_texts(pictures):
    optimizer = bl.BayesOpt({EVIL: [EVIL, "b"], "$_{<script>$": (0.0, 1.0), "\u202ex": (0.0, 1.0)}, seed=0)
    for trial in optimizer.suggest(n=4):
        trial.observe(float(trial.number), attrs={EVIL: EVIL, "nested": {"<b>": [EVIL]}})
    optimizer.note(0, EVIL + "\nsecond line")
    optimizer.withdraw(1, reason=EVIL)
    optimizer.fail(optimizer.suggest(), error=ValueError(EVIL))
    page = page_of(optimizer)
    # matplotlib reads two dollar signs as a formula, so that two pictures are not drawn.
    assert len(page.images) == 2 and any("Not drawn" in text and "<script>" in text for text in page.texts)
    rows = page.rows("All trials")
    assert rows[0][EVIL] == optimizer.trial(0).params[EVIL]
    assert f"{EVIL}: {EVIL}" in rows[0]["notes"] and f"remarks: {EVIL} second line" in rows[0]["notes"]
    assert f"withdrawn_reason: {EVIL}" in rows[1]["notes"] and f"ValueError: {EVIL}" in rows[4]["notes"]
    assert "\\u202ex" in rows[0]
    changes = [row["change"] for row in page.rows("What changed")]
    assert changes == [f"remark: {EVIL} second line", f"value 1 withdrawn; reason: {EVIL}"]


def test_long_texts_are_cut_and_points_are_not():
    optimizer = bl.RandomSearch({f"a long name of a parameter {i}": (0.0, 1.0) for i in range(50)}, seed=0)
    optimizer.observe(optimizer.suggest(), 1.0, attrs={"log": "x" * 10_000})
    [row] = page_of(optimizer).rows("All trials")
    assert row["notes"].endswith("x…") and len(row["notes"]) < 400
    assert row["point"].count("a long name") == 50


def test_since_is_a_time_a_duration_or_a_number_of_events():
    now = [1e9]
    optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0, time=lambda: now[0])
    for day in range(20):
        now[0] = 1e9 + 86400 * day
        optimizer.suggest().observe(float(day))

    def came(**options):
        return sorted(int(row["number"]) for row in page_of(optimizer, **options).rows("What came"))

    assert came() == [*range(12, 20)]
    assert came(since=timedelta(days=2)) == came(since=np.timedelta64(2, "D")) == [17, 18, 19]
    assert came(since=datetime.fromtimestamp(1e9 + 86400 * 18, timezone.utc)) == [18, 19]
    assert came(since=datetime.fromtimestamp(1e9 + 86400 * 18)) == [18, 19]
    assert came(since=30) == [*range(15, 20)]  # each trial has two events
    assert came(since=0) == came(since=timedelta(days=20_000_000)) == [*range(20)]
    assert came(since=40) == []
    assert "the best trial is new." in optimizer.report_html()
    assert "the best trial is not new." in optimizer.report_html(since=40)
    pandas = pytest.importorskip("pandas")
    future = datetime.fromtimestamp(1e9 + 86400 * 30, timezone.utc)
    for wrong in (-1, 41, True, "Monday", None, 1.5, timedelta(days=-1), future, pandas.NaT):
        with pytest.raises(InvalidSetting, match="since="):
            optimizer.report_html(since=wrong)


def test_values_of_added_trials_came_and_their_amendments_are_changes():
    optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, outcomes={"a": "maximize", "b": bl.Record()}, seed=0)
    optimizer.add({"x": 0.5}, {"a": 1.0, "b": 2.0})
    optimizer.observe(0, {"a": 3.0}, amend=True)
    optimizer.withdraw(0, outcome="b")
    optimizer.observe(0, {"b": 5.0})
    optimizer.abandon(optimizer.suggest())
    page = page_of(optimizer)
    assert [row["number"] for row in page.rows("What came")] == ["0"]
    changes = [row["change"] for row in page.rows("What changed")]
    assert changes[:2] == ["a 1 amended to 3", "b 2 withdrawn"] and changes[2].startswith("a abandoned")


def test_an_amendment_has_the_value_before_it():
    optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
    optimizer.add({"x": 0.5}, 1.0)
    optimizer.observe(0, 2.0, amend=True)
    optimizer.observe(0, 3.0, amend=True)
    optimizer.observe(0, 3.0, params={"x": 0.75}, amend=True)  # only the point was wrong
    optimizer.withdraw(0)
    optimizer.observe(0, 4.0)
    optimizer.observe(0, 5.0, amend=True)
    changes = [row["change"] for row in page_of(optimizer).rows("What changed")]
    said = ["1 amended to 2", "2 amended to 3", "3 amended", "3 withdrawn", "4 amended to 5"]
    assert changes == [f"value {each}" for each in said]


def test_marked_and_late_trials_are_named():
    now = [1e9]
    optimizer = bl.BayesOpt({"x": (0.0, 1.0)}, seed=0, time=lambda: now[0])
    late = optimizer.suggest()
    for _ in range(12):
        trial = optimizer.suggest()
        now[0] += 3600.0
        trial.observe(trial.params["x"])
    optimizer.predict([{"x": 0.5}])
    with pytest.warns(bl.BelatedWarning, match="was expected"):
        optimizer.suggest().observe(-900.0)
    now[0] += 86400.0
    page = page_of(optimizer)
    [row] = page.rows("Experiments in progress")
    assert (row["number"], row["state"], row["age (days)"]) == (str(late.number), "pending, late", "1.5")
    [marked] = page.rows("Unusual values")
    assert "trial 13 has the value -900.0" in marked["marked values"]
    assert page.rows("All trials")[13]["state"] == "observed, marked"
    assert any("Forecast: 0 of 1 results" in text or "Forecast: 1 of 1 results" in text for text in page.texts)


def test_the_page_is_written_without_matplotlib(monkeypatch, pictures):
    search = CASES["BayesOpt"]()
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    page = page_of(search)
    assert page.images == [] and len(page.rows("All trials")) == 8
    assert any("because matplotlib is not installed" in text for text in page.texts)


def test_pictures_do_not_use_pyplot(pictures):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    before = pyplot.get_fignums()
    CASES["BayesOpt"]().report_html()
    assert pyplot.get_fignums() == before and "matplotlib.pyplot" in sys.modules


def test_a_page_is_written_to_a_file(tmp_path):
    search = CASES["contexts"]()
    written = search.report_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == written
    assert len(Page(written).rows("All trials")) == 4


def test_a_page_of_an_unpickled_optimizer_is_the_same():
    search = CASES["outcomes"]()
    pages = [Page(each.report_html(since=0)).tables for each in (search, pickle.loads(pickle.dumps(search)))]
    assert [rows[1:] for rows in pages[0].values()] == [rows[1:] for rows in pages[1].values()]


@pytest.mark.parametrize("name", CASES)
def test_print_says_trials_pending_and_best(name):
    search = CASES[name]()
    settings, line = str(search).rsplit("\n", 1)
    assert settings == repr(search)
    assert line.startswith(f"{search.n_trials} trials, {len(search.pending)} pending, ")
    best = search._best_trials()
    if search._problem.front:
        assert line.endswith(f"front of {len(best)} trials")
    elif best:
        assert f"best {best[0].value:.4g} (trial {best[0].number}, params=" in line
    else:
        assert line.endswith("best None")
