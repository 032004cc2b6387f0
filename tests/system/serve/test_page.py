"""The web page of `belated serve` in a browser: its content is right, and scripts in stored texts do not run."""

import itertools
import math

import pytest

import belated as bl
from campaigns import service
from tests.system.serve.browser import (
    complaints,
    dots_of,
    log_in,
    open_page,
    overflow,
    paths_of,
    set_width,
    shown,
    text,
    wait,
)

EVIL = "<img src=x onerror='window.hit=1'>"


@pytest.fixture
def served(tmp_path):
    """A server with two studies. Every text in one of them contains HTML."""
    reason = service.missing()
    if reason is not None:
        pytest.skip(reason)
    url = f"sqlite:///{tmp_path / 'studies.db'}"
    study = bl.Study("dose/finding", url, bl.RandomSearch({"dose": (0.0, 10.0)}, direction="minimize", seed=0))
    trials = study.suggest(n=6, expires_after=3600)
    for trial, value in zip(trials, (3.0, 1.0, 2.0), strict=False):
        study.observe(trial, value)
    study.fail(trials[3], error="boom")
    evil = bl.Study(EVIL, url, bl.RandomSearch({EVIL: [EVIL, "b"], "<b>": ["<script>window.hit=1</script>"]}, seed=0))
    evil.observe(evil.suggest(), 1.0, attrs={EVIL: EVIL})
    evil.fail(evil.suggest(), error=EVIL)
    evil.suggest()
    with service.Service(url) as running:
        yield running, study


def forecast_of(study):
    """Return the forecast that the page shows for a study that counts suggestions."""
    found = study.forecast()
    never = "" if round(found.never) == 0 else f"; {found.never:.0f} probably never"
    counts = f"{found.expected:.0f} of {found.n_pending} results expected by suggestion {found.by:g}"
    return f"{counts} ({found.low:.0f} to {found.high:.0f}){never}."


def test_the_page_shows_a_study_and_its_changes(browser, served):
    running, study = served
    log_in(browser, running)
    shown(browser)
    assert browser.find_element("id", "name").get_attribute("value") == "dose/finding"
    figures = dict(zip(*[iter(text(browser, "figures").splitlines())] * 2, strict=True))
    assert figures == {
        "In flight": "2",
        "Observed": "3",
        "Failed": "1",
        "Abandoned": "0",
        "Optimizer": "RandomSearch",
        "Direction": "minimize",
    }
    dose = f"{study.best_params_['dose']:.6g}"
    assert text(browser, "best").splitlines() == ["Value", "1", "Trial", "1", "dose", dose]
    in_flight = text(browser, "worklist").splitlines()
    assert in_flight[0] == "Select Trial dose State value" and len(in_flight) == 3
    assert in_flight[1].startswith("4 ") and "due in 60 min, out for " in in_flight[1]
    wait(browser, lambda: text(browser, "arrivals") and text(browser, "forecast"))
    assert [line.split()[:3] for line in text(browser, "arrivals").splitlines()[1:]] == [
        ["3", "–", "failed"],
        ["2", "2", "observed"],
        ["1", "1", "observed"],
        ["0", "3", "observed"],
    ]
    title = browser.find_element("id", "chart-title").get_attribute("textContent")
    assert title == "Best value 1 after 3 values, 2 of them improvements"
    assert len(dots_of(browser)) == 3
    # The curve of the best value falls or stays equal; y coordinates increase downwards.
    [steps] = paths_of(browser, "#chart .best")
    heights = [float(part.split("H")[0]) for part in steps.replace("V", " ").split(" ")[1:]]
    assert len(heights) == 2 and heights[0] < heights[1]
    # The page shows a result that another process reports, without a reload.
    assert text(browser, "forecast") == forecast_of(study)
    study.observe(4, 0.25)
    wait(browser, lambda: "0.25" in text(browser, "best"))
    wait(browser, lambda: text(browser, "arrivals").splitlines()[1].startswith("4 0.25 observed"))
    wait(browser, lambda: text(browser, "forecast") == forecast_of(study))
    assert len(text(browser, "worklist").splitlines()) == 2
    assert complaints(browser) == []


def test_html_in_a_study_is_text(browser, served):
    from selenium.common.exceptions import JavascriptException
    from selenium.webdriver.support.ui import Select

    running, _ = served
    log_in(browser, running)
    shown(browser)
    Select(browser.find_element("id", "name")).select_by_visible_text(EVIL)
    wait(browser, lambda: EVIL in text(browser, "worklist"))
    wait(browser, lambda: " of 1 results expected by suggestion " in text(browser, "forecast"))
    assert "<script>window.hit=1</script>" in text(browser, "worklist") and EVIL in text(browser, "arrivals")
    assert browser.title == f"{EVIL} – belated"
    assert browser.execute_script("return window.hit") is None
    assert browser.find_elements("css selector", "main img, main b, main script") == []
    browser.find_element("css selector", "#arrivals button").click()
    wait(browser, lambda: "History" in text(browser, "dialog"))
    # The page has not tried to insert HTML, because the browser reports each attempt, also if the script continues.
    assert complaints(browser) == []
    attempts = ("element.innerHTML = html", "element.insertAdjacentHTML('beforeend', html)", "document.write(html)")
    for attempt in attempts:
        browser.execute_script(
            f"const element = document.getElementById('study'), html = arguments[0]; try {{ {attempt} }} catch {{}}",
            EVIL,
        )
        assert len(complaints(browser)) == 1, attempt
    with pytest.raises(JavascriptException, match="TrustedHTML"):
        browser.execute_script(f'document.getElementById("study").innerHTML = "{EVIL}"')
    assert browser.find_elements("css selector", "main img, main script") == []
    complaints(browser)


def test_a_wrong_token_shows_an_error_and_is_not_kept(browser, served):
    running, _ = served
    log_in(browser, running, "not-the-token-0123")
    wait(browser, lambda: text(browser, "message") == "The token is wrong.")
    assert not browser.find_element("id", "study").is_displayed()
    browser.refresh()
    assert browser.find_element("id", "login").is_displayed()


def test_the_token_is_kept_for_the_session_of_the_tab_only(browser, served):
    running, _ = served
    log_in(browser, running)
    shown(browser)
    browser.refresh()
    shown(browser)
    assert not browser.find_element("id", "login").is_displayed()
    assert browser.execute_script("return localStorage.length + document.cookie.length") == 0
    assert running.token not in browser.page_source
    # A token in a URL would be in the history of the browser and in the logs of proxies.
    addresses = browser.execute_script("return performance.getEntries().map(each => each.name)")
    assert len(addresses) > 3 and not any(running.token in each for each in [*addresses, browser.current_url])
    tab = browser.current_window_handle
    browser.switch_to.new_window("tab")
    open_page(browser, running)
    assert browser.find_element("id", "login").is_displayed() and "This tab keeps it" in text(browser, "message")
    browser.close()
    browser.switch_to.window(tab)
    browser.find_element("id", "forget").click()
    wait(browser, lambda: browser.find_element("id", "login").is_displayed())
    assert not browser.find_element("id", "study").is_displayed()
    browser.refresh()
    assert browser.find_element("id", "login").is_displayed()
    assert browser.execute_script("return sessionStorage.length") == 0


def test_the_page_reconnects_to_a_restarted_server(browser, served):
    running, study = served
    log_in(browser, running)
    shown(browser)
    running.kill()
    wait(browser, lambda: "does not answer" in text(browser, "message"))
    study.observe(5, -1.0)
    running.start()
    wait(browser, lambda: "-1" in text(browser, "best").splitlines())
    assert text(browser, "message") == ""


def test_an_address_without_a_study_shows_the_first_study(browser, served):
    running, _ = served
    log_in(browser, running, fragment="#%")
    shown(browser)
    assert browser.find_element("id", "name").get_attribute("value") == "dose/finding"
    wait(browser, lambda: text(browser, "message") == "")


def test_dots_lie_where_the_labels_of_the_axis_say(browser, served):
    running, _ = served
    log_in(browser, running)
    shown(browser)
    pairs = [(0.3, 0.1 + 0.2), (1e17, 1e17 + 16), (-0.3, -0.1 - 0.2), (5e-324, 0), (-1.7e308, 1.7e308)]
    pairs += [(7, 7), (0, 0), (1e-300, 1), (-1, 100), (1, 100), (0.7, 0.9)]
    compared = set()
    for pair, log in itertools.product(pairs, (False, True)):
        lines = browser.execute_script(
            "const few = {outcome: null, low: null, high: null, total: 2, n_best: 0, order: 'changed', number: [0, 1],"
            " value: arguments[0], changed_at: [0, 1], kind: [0, 0], best: [false, false]};"
            "round += 1; drawChart({direction: 'maximize'}, few, 0, 3, arguments[1]);"
            "return [...document.querySelectorAll('#chart line.grid')]"
            ".map(each => [each.nextSibling.textContent, Number(each.getAttribute('y1'))])",
            pair,
            log,
        )
        heights = [height for _, height in lines]
        assert heights and heights == sorted(set(heights), reverse=True), pair
        dots = [height for _, height in dots_of(browser)]
        assert all(0 <= height <= 300 for height in (*heights, *dots)), pair
        scale = math.log10 if log and min(pair) > 0 else float
        labels = [scale(float(label)) for label, _ in lines]
        # Some labels have too few digits. Some values lie outside the axis and are drawn at its edge.
        inside = max(pair) < 1e300 and (min(pair) > 0 or not log)
        if len(set(labels)) == len(labels) > 1 and inside:
            slope = (heights[-1] - heights[0]) / (labels[-1] - labels[0])
            expected = [heights[0] + slope * (scale(value) - labels[0]) for value in pair]
            assert dots == pytest.approx(expected, abs=1), pair
            compared.add((pair, log))
    assert {((-1, 100), False), ((1, 100), False), ((1, 100), True), ((0.7, 0.9), True)} <= compared


def outlines_of(browser, selector):
    """Return the number of outlines in the chart of values, of one kind."""
    return sum(path.count("M") for path in paths_of(browser, f"#chart {selector}"))


def test_values_beyond_a_bound_and_marked_values_are_hollow_and_named(browser, tmp_path):
    reason = service.missing()
    if reason is not None:
        pytest.skip(reason)
    url = f"sqlite:///{tmp_path / 'hollow.db'}"
    study = bl.Study("hollow", url, bl.BayesOpt({"dose": (0.0, 10.0)}, seed=0))
    for trial in study.suggest(n=10):
        study.observe(trial, trial.params["dose"])
    beyond = study.suggest()
    study.observe(beyond, 99.0, params={"dose": 10.5})
    typo = study.suggest()
    with pytest.warns(bl.BelatedWarning, match="was expected"):
        study.observe(typo, -5000.0, check=True)
    with service.Service(url) as running:
        log_in(browser, running)
        shown(browser)
        wait(browser, lambda: "Diamonds" in text(browser, "legend"))
        assert f"not the best (trial {beyond.number})" in text(browser, "legend")
        assert f"nobody has confirmed (trial {typo.number})" in text(browser, "legend")
        assert outlines_of(browser, ".hollow:not(.marked)") == outlines_of(browser, ".hollow.marked") == 1
        assert len(dots_of(browser)) <= 10
        # The line of the best value ignores the value beyond the bound.
        title = browser.find_element("id", "chart-title").get_attribute("textContent")
        assert title.startswith(f"Best value {float(f'{study.best_value_:.6g}'):g} after 12 values")
        study.confirm(typo)
        wait(browser, lambda: "Diamonds" not in text(browser, "legend"))
        assert len(dots_of(browser)) <= 11 and outlines_of(browser, ".hollow.marked") == 0


def test_every_input_has_a_label_and_every_region_a_name(browser, served):
    running, _ = served
    log_in(browser, running)
    shown(browser)
    controls = browser.find_elements("css selector", "input, select, button, [role=region], [role=img]")
    names = [each.accessible_name for each in controls if each.is_displayed()]
    assert all(names) and len(names) > 20 and "value of trial 4" in names
    assert browser.execute_script("return document.documentElement.lang") == "en"
    for width in (1200, 360):
        set_width(browser, width)
        wait(browser, lambda: overflow(browser) == 0)
        assert browser.find_element("id", "best").is_displayed()


def test_every_control_is_reached_by_the_keyboard(browser, served):
    from selenium.webdriver import ActionChains, Keys

    running, _ = served
    log_in(browser, running)
    shown(browser)
    set_width(browser, 1200)
    browser.execute_script("document.activeElement.blur()")
    reached = set()
    for _ in range(40):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        reached.add(browser.execute_script("return document.activeElement.id || document.activeElement.ariaLabel"))
    assert {
        "name",
        "download",
        "forget",
        "next",
        "order",
        "chart-log",
        "value of trial 4",
        "Trials that failed",
    } <= reached


def test_the_pages_send_requests_only_to_their_server(browser, served):
    import httpx

    running, _ = served
    for path in ("/", "/docs"):
        page = httpx.get(running.address + path)
        policy = page.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src '") and "unsafe" not in policy
        assert "src=" not in page.text and 'rel="stylesheet"' not in page.text
    log_in(browser, running)
    shown(browser)
    names = "return performance.getEntriesByType('resource').map(each => each.name)"
    requested = browser.execute_script(names)
    assert len(requested) >= 4 and all(each.startswith(f"{running.address}/v1/") for each in requested)
    browser.get(f"{running.address}/docs")
    assert browser.execute_script(names) == [] and complaints(browser) == []


def test_the_worklist_follows_the_study_without_the_charts(browser, served):
    running, study = served
    log_in(browser, running)
    shown(browser)
    wait(browser, lambda: len(dots_of(browser)) == 3)
    # From now on, requests for the chart fail.
    browser.execute_script(
        "window.send = window.fetch;"
        "window.fetch = (url, ...rest) => !String(url).includes('/chart?') ? window.send(url, ...rest)"
        ': Promise.resolve(new Response(\'{"detail": "no charts today"}\', {status: 503}))'
    )
    number = study.suggest().number
    wait(browser, lambda: f"\n{number} " in text(browser, "worklist"))
    fault = "charts and the lists below the worklist are not up to date: no charts today"
    wait(browser, lambda: fault in text(browser, "message"))
    # Values are still sent.
    browser.execute_script("return rows.get(arguments[0]).boxes.values().next().value", number).send_keys("7.5")
    browser.find_element("id", "send").click()
    wait(browser, lambda: "Stored: trial" in text(browser, "stored"))
    study.sync()
    assert study.trials[number].value == 7.5
    # Another study does not show the chart of this one.
    title = browser.find_element("id", "chart-title")
    choose(browser, EVIL)
    wait(browser, lambda: text(browser, "arrivals") and fault in text(browser, "message"))
    assert title.get_attribute("textContent") == "The values are not known yet"
    assert browser.execute_script("return spots.length") == 0 and text(browser, "legend") == ""
    # The chart comes, and the message ends, without an event of the study.
    browser.execute_script("window.fetch = window.send")
    wait(browser, lambda: title.get_attribute("textContent").startswith("Best value 1 after 1 values"))
    wait(browser, lambda: "not up to date" not in text(browser, "message"))


def choose(browser, name):
    """Choose a study."""
    browser.execute_script(
        "find('name').value = arguments[0]; find('name').dispatchEvent(new Event('change', {bubbles: true}))", name
    )
