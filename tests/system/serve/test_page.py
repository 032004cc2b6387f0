"""The web page of `belated serve` in a browser: its content is right, and scripts in stored texts do not run."""

import shutil
import time

import pytest

import belated as bl
from campaigns import service

EVIL = "<img src=x onerror='window.hit=1'>"
PATIENCE = 30


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium."""
    webdriver = pytest.importorskip("selenium.webdriver")
    program = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("chromium and chromedriver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield started
    started.quit()


@pytest.fixture
def served(tmp_path):
    """A server with two studies. In one of the studies every text contains HTML."""
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


def wait(browser, condition):
    """Wait until a JavaScript expression on the page is true; return its value."""
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end, browser.find_element("tag name", "body").text
        time.sleep(0.1)
    return found


def text(browser, name):
    """Return the visible text of an element."""
    return browser.find_element("id", name).text


def log_in(browser, running, token=None, fragment=""):
    """Open the page and enter the token."""
    browser.get("about:blank")  # a browser does not reload a page if only the URL's fragment changes
    browser.get(running.address + "/" + fragment)
    browser.find_element("id", "token").send_keys(token or running.token)
    browser.find_element("css selector", "#login button").click()


def forecast_of(study):
    """Return the forecast that the page shows for a study that counts suggestions."""
    found = study.forecast()
    never = "" if round(found.never) == 0 else f"; {found.never:.0f} probably never"
    counts = f"{found.expected:.0f} of {found.n_pending} results expected by suggestion {found.by:g}"
    return f"{counts} ({found.low:.0f} to {found.high:.0f}){never}."


def complaints(browser):
    """Return the errors in the browser's console, except failed requests such as 401."""
    return [entry["message"] for entry in browser.get_log("browser") if "status of 4" not in entry["message"]]


def test_the_page_shows_a_study_and_its_changes(browser, served):
    running, study = served
    log_in(browser, running)
    wait(browser, lambda: "Best value" in text(browser, "figures"))
    assert browser.find_element("id", "name").get_attribute("value") == "dose/finding"
    figures = dict(zip(*[iter(text(browser, "figures").splitlines())] * 2, strict=True))
    assert figures == {
        "Best value": "1",
        "In flight": "2",
        "Observed": "3",
        "Failed": "1",
        "Abandoned": "0",
        "Optimizer": "RandomSearch",
        "Direction": "minimize",
    }
    in_flight = text(browser, "flight").splitlines()
    assert in_flight[0] == "Trial Age Lease Point" and len(in_flight) == 3
    assert in_flight[1].startswith("4 ") and " min " in in_flight[1] and "left dose = " in in_flight[1]
    assert [line.split()[:3] for line in text(browser, "arrivals").splitlines()[1:]] == [
        ["3", "–", "failed"],
        ["2", "2", "observed"],
        ["1", "1", "observed"],
        ["0", "3", "observed"],
    ]
    title = browser.find_element("id", "chart-title").get_attribute("textContent")
    assert title == "Best value 1 after 3 values, 2 of them improvements"
    assert len(browser.find_elements("css selector", "#chart circle")) == 3
    # The curve of the best value falls or stays equal; y coordinates increase downwards.
    steps = browser.find_element("css selector", "#chart path").get_attribute("d")
    heights = [float(part.split("H")[0]) for part in steps.replace("V", " ").split(" ")[1:]]
    assert len(heights) == 2 and heights[0] < heights[1]
    # The page shows a result that another process reports, without a reload.
    assert text(browser, "forecast") == forecast_of(study)
    study.observe(4, 0.25)
    wait(browser, lambda: "0.25" in text(browser, "figures"))
    assert text(browser, "arrivals").splitlines()[1].startswith("4 0.25 observed")
    assert text(browser, "forecast") == forecast_of(study)
    assert len(text(browser, "flight").splitlines()) == 2
    assert complaints(browser) == []


def test_html_in_a_study_is_text(browser, served):
    from selenium.webdriver.support.ui import Select

    running, _ = served
    log_in(browser, running)
    wait(browser, lambda: "Best value" in text(browser, "figures"))
    Select(browser.find_element("id", "name")).select_by_visible_text(EVIL)
    wait(browser, lambda: EVIL in text(browser, "flight"))
    assert " of 1 results expected by suggestion " in text(browser, "forecast")
    assert "<b> = <script>window.hit=1</script>" in text(browser, "flight") and EVIL in text(browser, "arrivals")
    assert browser.title == f"{EVIL} – belated"
    assert browser.execute_script("return window.hit") is None
    assert browser.find_elements("css selector", "main img, main b, main script") == []
    # A script in HTML that is inserted into the page does not run either, because the page's policy allows only the
    # page's own script.
    browser.execute_script(f'document.getElementById("study").innerHTML = "{EVIL}"')
    wait(browser, lambda: any("Content Security Policy" in each for each in complaints(browser)))
    assert browser.execute_script("return window.hit") is None


def test_a_wrong_token_shows_an_error_and_tokens_are_not_stored(browser, served):
    running, _ = served
    log_in(browser, running, "not-the-token-0123")
    wait(browser, lambda: text(browser, "message") == "The token is wrong.")
    assert not browser.find_element("id", "study").is_displayed()
    log_in(browser, running)
    wait(browser, lambda: "Best value" in text(browser, "figures"))
    assert not browser.find_element("id", "login").is_displayed()
    stored = "return localStorage.length + sessionStorage.length + document.cookie.length"
    assert browser.execute_script(stored) == 0
    assert running.token not in browser.page_source and running.token not in browser.current_url
    browser.find_element("id", "forget").click()
    wait(browser, lambda: browser.find_element("id", "login").is_displayed())
    assert not browser.find_element("id", "study").is_displayed()
    log_in(browser, running)
    wait(browser, lambda: "Best value" in text(browser, "figures"))
    browser.refresh()
    assert browser.find_element("id", "login").is_displayed()
    assert "a reload asks for it again" in text(browser, "message")
    assert browser.execute_script(stored) == 0


def test_the_page_reconnects_to_a_restarted_server(browser, served):
    running, study = served
    log_in(browser, running)
    wait(browser, lambda: "Best value" in text(browser, "figures"))
    running.kill()
    wait(browser, lambda: "does not answer" in text(browser, "message"))
    study.observe(5, -1.0)
    running.start()
    wait(browser, lambda: "-1" in text(browser, "figures").splitlines())
    assert text(browser, "message") == ""


def test_an_address_without_a_study_shows_the_first_study(browser, served):
    running, _ = served
    log_in(browser, running, fragment="#%")
    wait(browser, lambda: "Best value" in text(browser, "figures"))
    assert browser.find_element("id", "name").get_attribute("value") == "dose/finding"
    assert text(browser, "message") == ""


def test_a_chart_of_many_values_is_drawn(browser, served):
    running, _ = served
    log_in(browser, running)
    wait(browser, lambda: "Best value" in text(browser, "figures"))
    # The study has more values than JavaScript allows as arguments of one call.
    program = (
        "const many = Array.from({length: 200000}, (_, i) => ({value: i % 7, changed_at: i, fidelity: i % 2 ? 9 : 1}));"
        "round += 1; drawChart({direction: 'minimize'}, many, 200001)"
    )
    browser.execute_script(program)
    title = browser.find_element("id", "chart-title").get_attribute("textContent")
    assert title == "Best value 0 after 200000 values, 2 of them improvements"


def test_a_chart_of_any_values_is_drawn_with_a_few_lines(browser, served):
    running, _ = served
    log_in(browser, running)
    wait(browser, lambda: "Best value" in text(browser, "figures"))
    pairs = ["[0.3, 0.1 + 0.2]", "[1e17, 1e17 + 16]", "[-0.3, -0.1 - 0.2]", "[5e-324, 0]", "[-1.7e308, 1.7e308]"]
    for pair in [*pairs, "[7, 7]", "[0, 0]", "[1e-300, 1]"]:
        browser.execute_script(
            f"const few = {pair}.map((value, i) => ({{value, changed_at: i, fidelity: null}}));"
            "round += 1; drawChart({direction: 'maximize'}, few, 3)"
        )
        of = "return [...document.querySelectorAll('#chart {}')].map(each => Number(each.getAttribute('{}')))"
        lines = browser.execute_script(of.format("line.grid", "y1"))
        assert 1 <= len(set(lines)) == len(lines) <= 12 and all(0 <= height <= 300 for height in lines), pair
        dots = browser.execute_script(of.format("circle", "cy"))
        assert len(dots) == 2 and all(0 <= height <= 300 for height in dots), pair


def test_every_input_has_a_label_and_every_region_a_name(browser, served):
    running, _ = served
    log_in(browser, running)
    wait(browser, lambda: "Best value" in text(browser, "figures"))
    names = browser.execute_script(
        "return [...document.querySelectorAll('input, select, button, [role]')].map(each => "
        "(each.labels?.[0] ?? each).textContent || each.getAttribute('aria-label') || each.getAttribute('role'))"
    )
    assert all(names)
    assert browser.execute_script("return document.documentElement.lang") == "en"
    wide = "return document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    for width in (1200, 400):
        browser.set_window_size(width, 800)
        assert browser.execute_script(wide), width


def test_the_page_sends_requests_only_to_its_server(served):
    import httpx

    running, _ = served
    page = httpx.get(running.address)
    assert page.headers["content-security-policy"].startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in page.headers["content-security-policy"]
    addresses = [word for word in page.text.split('"') if "://" in word]
    assert addresses == ["http://www.w3.org/2000/svg"]
