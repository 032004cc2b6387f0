"""In a browser, the charts, tables and files of the web page show the data of the study."""

import itertools
import re

import numpy as np
import pytest

import belated as bl
from belated.serve.answers import study_as_data
from campaigns import service
from tests.system.serve.browser import complaints, dots_of, log_in, overflow, set_width, shown, text, wait

SPACE = {"rate": bl.Real(0.001, 1.0, log=True), "kind": ["=a,b", '"c"']}


def curve(trial, step):
    """A learning curve that depends on the rate and on the kind."""
    return float(np.log10(trial.params["rate"]) / 3 + 2 - 1 / step + 0.3 * (trial.params["kind"] == "=a,b"))


@pytest.fixture(scope="module")
def curves(tmp_path_factory):
    """A server with a study of learning curves: 7 trials are observed, 1 is stopped, 1 failed and 2 are in flight."""
    reason = service.missing()
    if reason is not None:
        pytest.skip(reason)
    url = f"sqlite:///{tmp_path_factory.mktemp('curves') / 'studies.db'}"
    study = bl.Study("curves", url, bl.BayesOpt(SPACE, curve=bl.Curve(10), stopping=None, seed=0))
    trials = study.suggest(n=11)
    for trial in trials:
        for step in range(1, 11 if trial.number < 7 else 5):
            trial.report(curve(trial, step), step)
        if trial.number < 7:
            trial.observe(curve(trial, 10))
    trials[7].stop()
    try:
        raise ValueError("the loss is, as feared, not finite")
    except ValueError as error:
        trials[8].fail(error=error)
    with service.Service(url) as running:
        yield running, study


@pytest.fixture
def page(browser, curves):
    """The browser with the complete page of the study, including answers of the model, at a width of 1200 pixels."""
    log_in(browser, curves[0])
    shown(browser)
    set_width(browser, 1200)
    wait(browser, lambda: "rate" in text(browser, "importance"))
    yield browser
    assert complaints(browser) == []


def drawn(page, selector):
    """Return the attributes `d` of the paths that a selector finds in the chart of curves."""
    return [each.get_attribute("d") for each in page.find_elements("css selector", f"#curves {selector}")]


def axis_of(page, chart):
    """Return the heights of the lines of a chart, and the values in their labels."""
    lines = page.find_elements("css selector", f"#{chart} line.grid")
    labels = page.find_elements("css selector", f"#{chart} text")[: len(lines)]
    heights = [float(line.get_attribute("y1")) for line in lines]
    return np.array(heights), np.array([float(label.get_attribute("textContent")) for label in labels])


def values_at(page, chart, heights):
    """Return the values at some heights of a chart, according to its axis."""
    slope, start = np.polyfit(*axis_of(page, chart), 1)
    return [start + slope * float(height) for height in heights]


def test_curves_are_drawn_by_step_in_their_states(page, curves):
    _, study = curves
    paths = {state: drawn(page, f".curve.{state}") for state in ("observed", "stopped", "failed", "pending")}
    assert {state: len(found) for state, found in paths.items()} == {
        "observed": 7,
        "stopped": 1,
        "failed": 1,
        "pending": 2,
    }
    assert all(path.count("L") == 9 for path in paths["observed"]) and paths["stopped"][0].count("L") == 3
    assert len(page.find_elements("css selector", "#curves rect.mark.stopped")) == 1 == len(drawn(page, ".mark.failed"))
    [best] = page.find_elements("css selector", "#curves .curve.wide")
    assert int(best.get_attribute("data-trial")) == study.best_trial_.number
    # Read the values of the best curve from the chart.
    points = [part.split(" ") for part in best.get_attribute("d")[1:].split("L")]
    expected = list(study.best_trial_.curve.values())
    # The axis ends below the worst twentieth of the values.
    found = values_at(page, "curves", [y for _, y in points])
    assert np.allclose(found[1:], expected[1:], atol=0.02) and len({float(x) for x, _ in points}) == 10
    title = page.find_element("id", "curves-title").get_attribute("textContent")
    assert title == "Learning curves of 11 trials: 1 failed, 1 stopped, 2 in flight, 7 observed"


def test_forecasts_of_running_trials_equal_predict_final(page, curves):
    _, study = curves
    expected = [study.predict_final(trial) for trial in study.pending]
    ends = [path.split("L")[1].split(" ") for path in drawn(page, ".ahead")]
    found = values_at(page, "curves", [y for _, y in ends])
    assert len(found) == 2 and np.allclose(sorted(found), sorted(mean for mean, _ in expected), atol=0.02)
    # The forecasts are drawn at the last step, where complete curves end.
    last = {path.split("L")[-1].split(" ")[0] for path in drawn(page, ".curve.observed")}
    assert {x for x, _ in ends} == last and len(drawn(page, ".interval")) == 2


def test_importance_has_a_bar_and_figures_for_each_parameter(page, curves):
    _, study = curves
    low, middle, high = np.quantile(study._total_effects(None, "importance")[1], [0.05, 0.5, 0.95], axis=0)
    order = np.argsort(-middle)
    expected = [f"{list(SPACE)[i]} {middle[i]:.2f} ({low[i]:.2f} to {high[i]:.2f})" for i in order]
    rows = page.find_elements("css selector", "#importance tbody tr")
    assert [row.text.replace("\n", " ") for row in rows] == expected
    widths = [float(bar.get_attribute("width")) for bar in page.find_elements("css selector", "#importance .share")]
    assert np.isclose(widths[0] / widths[1], middle[order[0]] / middle[order[1]], rtol=0.01)


def test_failed_trials_have_their_error_and_traceback(page, curves):
    assert "ValueError: the loss is, as feared, not finite" in text(page, "failures")
    assert "Traceback" not in text(page, "failures")
    page.find_element("css selector", "#failures summary").click()
    wait(page, lambda: 'raise ValueError("the loss is' in text(page, "failures"))
    # The list of failures stays open at the next refresh of the page.
    updated = text(page, "updated")
    wait(page, lambda: text(page, "updated") != updated)
    assert "Traceback" in text(page, "failures")


def test_everything_fits_into_360_pixels(page, curves):
    for width in (360, 1200):
        set_width(page, width)
        wait(page, lambda: page.execute_script("return document.querySelector('#curves .tick') !== null"))
        assert overflow(page) == 0
        # Tables are not wider than their region, which would hide cells.
        for region in page.find_elements("css selector", ".scroll"):
            assert page.execute_script("return arguments[0].scrollWidth - arguments[0].clientWidth", region) == 0
    set_width(page, 360)
    page.get(f"{curves[0].address}/docs")
    assert overflow(page) == 0


def test_the_scale_of_values_can_be_logarithmic(page, curves):
    _, study = curves
    page.find_element("id", "chart-log").click()
    y, labels = axis_of(page, "chart")
    slope, start = np.polyfit(y, np.log(labels), 1)
    assert len(labels) > 2 and np.allclose(start + slope * y, np.log(labels), atol=1e-6)
    found = np.exp([start + slope * height for _, height in dots_of(page)])
    values = [trial.value for trial in study.trials if trial.value is not None]
    assert np.allclose(sorted(found)[1:], sorted(values)[1:], rtol=0.02)
    page.find_element("id", "chart-log").click()


def test_ticks_of_time_are_round(page):
    def labels(span):
        return [label for _, label in page.execute_script(f"return timeTicks({span}, 4)")]

    assert labels(0.03) == ["0", "10 ms", "20 ms", "30 ms"]
    assert labels(50) == ["0", "20 s", "40 s"]
    assert labels(119) == ["0", "30 s", "60 s", "90 s"]
    assert labels(5400) == ["0", "30 min", "60 min", "90 min"]
    assert labels(40000) == ["0", "3 h", "6 h", "9 h"]
    assert labels(40 * 86400) == ["0", "10 d", "20 d", "30 d", "40 d"]


def test_the_axis_of_time_ends_with_the_run(page):
    program = """
        const trial = {state: "observed", started_at: 100, changed_at: 160, lease_ends_at: null};
        const running = {...trial, state: "pending", started_at: 150, changed_at: 150};
        const leased = {...running, lease_ends_at: 165};
        return [[[trial], 1000], [[trial, running], 170], [[trial, running], 1000], [[trial, leased], 162],
            [[trial, leased], 1000]].map(([all, now]) => timesOf(all, now));
    """
    ended, running, killed, leased, expired = page.execute_script(program)
    assert ended == [100, 160] == expired
    assert running == [100, 170] and leased == [100, 162]
    # Trials in flight of a killed run must not extend the axis to the present time.
    assert killed == [100, 220]


def test_the_file_of_trials_can_be_added_to_a_study(page, curves, downloads):
    pandas = pytest.importorskip("pandas")
    _, study = curves
    page.find_element("id", "download").click()
    file = downloads / "curves.csv"
    wait(page, file.exists)
    rows = file.read_text(encoding="utf-8")
    assert rows.startswith("number,state,value,std,cost,duration,suggested_at,observed_at,ended_at,delay,expires_at,")
    # A spreadsheet would execute a text that begins with "=".
    assert '"\'=a,b"' in rows and not re.search('(^|[,"])=', rows, flags=re.MULTILINE)
    table = pandas.read_csv(file)
    assert table["error"].dropna().tolist() == ["ValueError: the loss is, as feared, not finite"]
    table["params_kind"] = table["params_kind"].str.removeprefix("'")
    other = bl.BayesOpt(SPACE, curve=bl.Curve(10), stopping=None, seed=0)
    other.add(table)

    def facts(trial):
        return trial.state, trial.value, trial.params["kind"], trial.curve

    assert list(map(facts, other.trials)) == list(map(facts, study.trials))
    assert [trial.params["rate"] for trial in other.trials] == pytest.approx([t.params["rate"] for t in study.trials])


def test_texts_of_a_file_are_not_formulas(page):
    parts = itertools.product(
        ["", "a", "\n", "\t", "\r", ";"], ["", ";", "\n", "\t", "\r\n"], ["=1+1", "+1", "-1+a", "@a"]
    )
    texts = [start + separator + formula for start, separator, formula in parts if start != "a" or separator]
    for cell in page.execute_script("return arguments[0].map(cellOf)", texts):
        # A spreadsheet may split the cell at separators, inside or outside of quotes.
        for shown_text in (cell, cell.strip('"')):
            assert not any(re.match("[=+@-]", part) for part in re.split("[;\t\r\n]", shown_text)), cell


def test_a_file_has_candidates_and_points_that_were_run(page):
    times = "started_at: 0, changed_at: 1.5, curve: [], error: null"
    found = page.execute_script(
        f"return csvOf([{{number: 0, params: null, index: 3, index_run: 4, value: -1e-7, {times}}},"
        f" {{number: 1, params: {{x: 1, run_x: 2}}, params_run: {{x: 5, run_x: 6}}, {times}}}])"
    )
    names, candidate, point = (line.split(",") for line in found.splitlines())
    expected = {"index": "3", "index_run": "4", "value": "-1e-7"}
    assert dict(zip(names, candidate, strict=True)).items() >= expected.items()
    expected = {"params_x": "1", "params_run_x": "2", "params_run__x": "5", "params_run__run_x": "6"}
    assert dict(zip(names, point, strict=True)).items() >= expected.items()
    assert candidate[names.index("changed_at")] == "1970-01-01T00:00:01.500Z"


def test_nested_params_have_the_names_of_tables(page):
    kernels = bl.Choice({"rbf": {"gamma": (0.1, 1.0)}, "linear": {}})
    groups = bl.Choice({"svm": {"C": (0.1, 10.0), "kernel": kernels}, "none": {}})
    opt = bl.RandomSearch({"model": groups, "scale": {"mean": [True, False]}}, seed=0)
    choices = ["model", "model.svm.kernel"]
    for trial in opt.suggest(n=20):
        flat = page.execute_script("return flat(arguments[0], arguments[1])", trial.params, choices)
        assert flat == opt.domain.flat(trial.params)
    assert page.execute_script("return flat({a: [1], b: {c: 2}}, null)") == {"a": [1], "b": {"c": 2}}


def test_the_service_names_the_choices_of_a_nested_space(tmp_path):
    nested = bl.BayesOpt({"model": bl.Choice({"a": {}, "b": {"x": (0, 1)}}), "y": (0.0, 1.0)})
    assert study_as_data(bl.Study("nested", tmp_path / "s.db", nested))["choices"] == ["model"]
    assert study_as_data(bl.Study("flat", tmp_path / "s.db", bl.BayesOpt({"y": (0.0, 1.0)})))["choices"] is None


def test_outcomes_have_columns(browser, curves, downloads):
    pandas = pytest.importorskip("pandas")
    running, other = curves
    outcomes = {"error": "minimize", "memory": bl.AtMost(4.0), "<b>": bl.Record()}
    optimizer = bl.RandomSearch(SPACE, outcomes=outcomes, seed=0)
    study = bl.Study("outcomes", other.store, optimizer)
    first, second, third, _ = study.suggest(n=4)
    first.observe({"error": 0.5, "memory": 3.0, "<b>": 1.0}, std={"memory": 0.25})
    second.observe({"error": 0.25, "memory": 5.0})
    second.fail(outcome="<b>", error="lost")
    third.observe({"memory": 2.0})
    log_in(browser, running, fragment="#outcomes")
    shown(browser)

    def cells(table):
        rows = (
            "[...find(arguments[0]).rows].map(row => [...row.cells].map(cell => cell.hidden ? '' : cell.textContent))"
        )
        return browser.execute_script(f"return {rows}", table)

    wait(browser, lambda: len(cells("arrivals")) == 3)
    worklist, arrivals = cells("worklist"), cells("arrivals")
    assert worklist[0] == ["Select", "Trial", "rate", "kind", "State", "error", "memory", "<b>"]
    assert [row[5:] for row in worklist[1:]] == [["", "2", ""], ["", "", ""]]
    assert len(browser.find_elements("css selector", ".box")) == 5
    assert [each for each in arrivals[0] if each] == ["Trial", "error", "memory", "<b>", "State", "When", "Point"]
    assert [row[:5] for row in arrivals[1:]] == [
        ["1", "0.25", "5", "failed", "observed"],
        ["0", "0.5", "3", "1", "observed"],
    ]
    assert "error\n0.5" in text(browser, "best")  # trial 1 is out of bounds
    wait(browser, lambda: [row[:1] for row in cells("failures")[1:]] == [["1"]])
    browser.find_element("id", "download").click()
    wait(browser, (downloads / "outcomes.csv").exists)
    again = bl.RandomSearch(SPACE, outcomes=outcomes, seed=0)
    table = pandas.read_csv(downloads / "outcomes.csv")
    table["params_kind"] = table["params_kind"].str.removeprefix("'")
    again.add(table)
    states = [[(each.state, each.value, each.std) for each in trial.outcomes.values()] for trial in study.trials]
    assert [
        [(each.state, each.value, each.std) for each in trial.outcomes.values()] for trial in again.trials
    ] == states
    # The columns change with the study.
    browser.execute_script("find('name').value = 'curves'; find('name').dispatchEvent(new Event('change'))")
    wait(browser, lambda: "Value" in cells("arrivals")[0])
    assert "memory" not in cells("worklist")[0] and complaints(browser) == []
    bl.Study.delete("outcomes", other.store)
