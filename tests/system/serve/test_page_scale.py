"""The web page of large studies: it requests only what it shows, and shows how much it leaves out."""

import json

import numpy as np
import pytest

import belated as bl
from tests.system.serve.browser import complaints, log_in, shown, text, wait

N = 5000


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A server with a study of 5,000 trials, of which 10 are out, and a study of 300 trials that are out."""
    from campaigns import service

    reason = service.missing()
    if reason is not None:
        pytest.skip(reason)
    url = f"sqlite:///{tmp_path_factory.mktemp('large') / 'studies.db'}"
    study = bl.Study("large", url, bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))
    values = np.random.default_rng(0).normal(size=N)
    study.add([{"x": 0.5}] * N, values.tolist())
    study.suggest(n=10)
    wide = bl.Study("wide", url, bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))
    for start in range(0, 300, 100):
        wide.suggest(n=100, attrs=[{"well": f"W{299 - number}"} for number in range(start, start + 100)])
    with service.Service(url) as running:
        yield running, study, wide


def requests_of(browser):
    """Return (paths, bytes) of the requests that the page has sent."""
    entries = browser.execute_script(
        "return performance.getEntriesByType('resource').map(each => [each.name, each.encodedBodySize])"
    )
    return [name.partition("/v1/")[2] for name, _ in entries], sum(size for _, size in entries)


def idle(browser):
    """Wait until the page has shown everything and asks for the next time."""
    before = text(browser, "updated")
    wait(browser, lambda: text(browser, "updated") != before)


def test_the_page_requests_only_what_it_shows(browser, large):
    running, study, _ = large
    log_in(browser, running, fragment="#large")
    shown(browser)
    wait(
        browser,
        lambda: "1 to 50 of 5010" in text(browser, "all-page") and "values are drawn" in text(browser, "legend"),
    )
    assert len(browser.find_elements("css selector", "#worklist tbody tr")) == 10
    paths, size = requests_of(browser)
    assert len(paths) <= 14 and size < 400_000, paths
    assert sum("/trials" in path for path in paths) == 3 and browser.execute_script("return trials.size") == 10
    # Without a change, a refresh is one request or, with the names of the studies, two.
    idle(browser)
    browser.execute_script("performance.clearResourceTimings()")
    idle(browser)
    idle(browser)
    paths, size = requests_of(browser)
    assert len(paths) <= 5 and not any("trials" in path or "chart" in path for path in paths) and size < 10_000, paths
    # After a change, the page requests neither all trials nor more than before.
    browser.execute_script("performance.clearResourceTimings()")
    study.observe(N, 1.5)
    wait(browser, lambda: text(browser, "arrivals").splitlines()[1].startswith(f"{N} 1.5"))
    paths, size = requests_of(browser)
    assert sum("/trials" in path for path in paths) <= 3 and size < 400_000, paths
    assert browser.execute_script("return trials.size") <= 10
    assert text(browser, "all-changes") == "1 changed: refresh" and complaints(browser) == []


def test_rows_of_a_long_worklist_are_fetched_when_they_are_wanted(browser, large):
    from selenium.webdriver.support.ui import Select

    running, _, wide = large
    log_in(browser, running, fragment="#wide")
    shown(browser)

    def numbers():
        return browser.execute_script(
            "return [...document.querySelectorAll('#worklist td.number button')].map(each => Number(each.textContent))"
        )

    wait(browser, lambda: numbers() == list(range(200)))
    assert text(browser, "more") == "Show 100 of 100 more" and browser.execute_script("return trials.size") == 200
    # Sorting chooses among all trials, also among those that were not shown.
    Select(browser.find_element("id", "order")).select_by_visible_text("well")
    wait(browser, lambda: numbers() == list(range(299, 99, -1)))
    Select(browser.find_element("id", "order")).select_by_visible_text("x")
    browser.find_element("id", "down").click()
    x = [trial.params["x"] for trial in wide.trials]
    expected = sorted(range(300), key=lambda number: -x[number])
    wait(browser, lambda: numbers() == expected[:200])
    browser.find_element("id", "more").click()
    wait(browser, lambda: numbers() == expected)
    assert not browser.find_element("id", "more").is_displayed() and complaints(browser) == []


def test_a_long_list_is_saved_as_a_whole(browser, large, downloads):
    running, study, _ = large
    log_in(browser, running, fragment="#large")
    shown(browser)
    browser.find_element("id", "download").click()
    file = downloads / "large.csv"
    wait(browser, file.exists)
    rows = file.read_text(encoding="utf-8").splitlines()
    assert len(rows) == N + 11 and rows[1].startswith("0,observed,") and rows[-1].startswith(f"{N + 9},pending,")
    assert study.n_trials == N + 10


def test_the_points_of_a_chart_are_reached_by_pointer_and_keyboard(browser, large):
    from selenium.webdriver import ActionChains, Keys

    running, study, _ = large
    log_in(browser, running, fragment="#large")
    shown(browser)
    wait(browser, lambda: "values are drawn" in text(browser, "legend"))
    n_values = study.n_trials - len(study.pending)
    chart = json.loads(browser.execute_script("return JSON.stringify(lists.chart)"))
    assert text(browser, "legend").startswith(f"{len(chart['value'])} of {n_values} values are drawn")
    assert len(chart["value"]) <= 2000
    title = browser.find_element("id", "chart-title").get_attribute("textContent")
    assert f"after {n_values} values, {chart['n_best']} of them improvements" in title
    # The keyboard: the last point has the focus first, and arrow keys lead to its neighbours.
    browser.execute_script("document.getElementById('chart-log').focus()")
    ActionChains(browser).send_keys(Keys.TAB).perform()
    assert browser.switch_to.active_element.get_attribute("id") == "chart-points"

    def looked_at():
        return browser.execute_script("return lookedAt")

    order = browser.execute_script("return spots.map(each => each.number)")
    assert looked_at() == order[-1] and text(browser, "chart-point").startswith(f"Trial {order[-1]}: ")
    for key, expected in ((Keys.ARROW_LEFT, order[-2]), (Keys.HOME, order[0]), (Keys.ARROW_RIGHT, order[1])):
        ActionChains(browser).send_keys(key).perform()
        assert looked_at() == expected
        value = study.trial(expected).value
        assert text(browser, "chart-point").startswith(f"Trial {expected}: {float(f'{value:.15g}')!r}")
    # A new drawing of the chart keeps the point.
    idle(browser)
    assert looked_at() == order[1]
    ActionChains(browser).send_keys(Keys.ENTER).perform()
    wait(browser, lambda: text(browser, "dialog-title") == f"Trial {order[1]}")
    ActionChains(browser).send_keys(Keys.ESCAPE).perform()
    # The pointer: the nearest point is shown.
    spot = browser.execute_script("return spots[1500]")
    box = browser.execute_script(
        "const r = find('chart').getBoundingClientRect(); return [r.left, r.top, r.width, r.height]"
    )
    area = browser.find_element("id", "chart-points")
    offset = (round(spot["x"] - box[2] / 2), round(spot["y"] - box[3] / 2))
    ActionChains(browser).move_to_element_with_offset(area, *offset).perform()
    wait(browser, lambda: looked_at() is not None)
    near = browser.execute_script("return spots.find(each => each.number === lookedAt)")
    assert abs(near["x"] - spot["x"]) <= 2 and abs(near["y"] - spot["y"]) <= 2
    assert complaints(browser) == []


def test_a_chart_shows_an_outcome_by_number_with_its_bounds(browser, large):
    from selenium.webdriver.support.ui import Select

    running, other, _ = large
    outcomes = {"gain": "maximize", "cost": bl.AtMost(4.0)}
    study = bl.Study("bounds", other.store, bl.RandomSearch({"x": (0.0, 1.0)}, outcomes=outcomes, seed=0))
    study.suggest(n=5)
    for number in (3, 1, 4, 0):
        study.observe(number, {"gain": float(number), "cost": 2.0 + number})
    log_in(browser, running, fragment="#bounds")
    shown(browser)

    def title():
        return browser.find_element("id", "chart-title").get_attribute("textContent")

    wait(browser, lambda: title() == "Best value 1 after 4 values, 1 of them improvements")
    assert browser.find_elements("css selector", "#chart .bound") == []
    Select(browser.find_element("id", "chart-order")).select_by_visible_text("number")
    wait(browser, lambda: title() == "Best value 1 after 4 values, 2 of them improvements")
    assert "Number of the trial" in text(browser, "chart")
    Select(browser.find_element("id", "chart-outcome")).select_by_visible_text("cost")
    wait(browser, lambda: title() == "4 values of cost")
    [y] = browser.execute_script(
        "return [...document.querySelectorAll('#chart .bound')].map(each => each.y1.baseVal.value)"
    )
    assert "Dashed lines: bounds (4)." in text(browser, "legend")
    # The bound lies between the values on both of its sides, larger values above.
    heights = browser.execute_script("return spots.map(each => [each.number, each.y])")
    assert [number for number, height in heights if height < y - 0.5] == [3, 4]
    assert [number for number, height in heights if height > y + 0.5] == [0, 1] and complaints(browser) == []
