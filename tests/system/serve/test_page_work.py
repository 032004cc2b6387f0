"""Work with the web page: a person enters, corrects and withdraws values in a browser, and nothing is lost or doubled."""

import json
import time

import pytest

import belated as bl
from campaigns import service
from tests.system.serve.browser import complaints, log_in, overflow, set_width, shown, text, wait

USERS = {"read": "rita", "report": "tom", "work": "anna", "all": "bob"}
TOKENS = {role: f"token-of-{role}-0123456789" for role in USERS}
OUTCOMES = {"yield": "maximize", "purity": bl.Record()}
WELLS = [{"well": f"{row}{column}"} for row in "ABCD" for column in range(1, 7)]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A server with a user of each role."""
    reason = service.missing()
    if reason is not None:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("lab")
    tokens = folder / "tokens.txt"
    tokens.touch(0o600)
    tokens.write_text("".join(f"{role} {name} {TOKENS[role]}\n" for role, name in USERS.items()), encoding="utf-8")
    url = f"sqlite:///{folder / 'studies.db'}"
    with service.Service(url, "--token-file", str(tokens), token=TOKENS["work"]) as running:
        yield running


@pytest.fixture
def study(lab, request):
    """A study of two outcomes, with the name of the test."""
    optimizer = bl.RandomSearch({"T": (20.0, 120.0), "solvent": ["water", "ethanol"]}, outcomes=OUTCOMES, seed=0)
    return bl.Study(request.node.name, lab.url, optimizer)


@pytest.fixture
def page(browser, lab):
    """Return a function that shows a study to a user of a role."""

    def show(study, role="work"):
        set_width(browser, 1280)
        log_in(browser, lab, TOKENS[role], f"#{study.name}")
        wait(browser, lambda: study.name in browser.title and text(browser, "figures"))
        return browser

    yield show
    assert complaints(browser) == []
    browser.get(lab.address + "/no-such-page")
    browser.execute_script("localStorage.clear()")


def box(browser, number, name):
    """Return the box of an outcome of a trial."""
    return browser.execute_script("return rows.get(arguments[0])?.boxes.get(arguments[1])", number, name)


def note(browser, number, name):
    """Return the text below a box."""
    return browser.execute_script(
        "return rows.get(arguments[0])?.boxes.get(arguments[1])?.note.textContent", number, name
    )


def entries(browser):
    """Return the entries in the storage of the browser."""
    found = browser.execute_script("return Object.entries(localStorage)")
    return [json.loads(value) for key, value in found if key.startswith("belated-entry-")]


def press(browser, label, within="body"):
    """Press the button with a label."""
    found = [each for each in browser.find_elements("css selector", f"{within} button") if each.text == label]
    assert found, (label, browser.find_element("css selector", within).text)
    found[0].click()


def values_of(study, number):
    return {name: outcome.value for name, outcome in study.trial(number).outcomes.items()}


def send(browser):
    """Send what was typed, and wait until it is stored."""
    browser.find_element("id", "send").click()
    wait(browser, lambda: text(browser, "stored") and not entries(browser))


def test_a_plate_is_entered_with_the_keyboard(study, page):
    from selenium.webdriver import Keys

    study.suggest(n=24, attrs=WELLS)
    browser = page(study)
    assert len(browser.find_elements("css selector", "#worklist tbody tr")) == 24
    # Boxes have no prediction, and each has a name that tells the trial.
    labels = [each.accessible_name for each in browser.find_elements("css selector", ".box")]
    assert len(set(labels)) == 48 and labels[0] == "yield of trial 0, well A1"
    box(browser, 0, "yield").click()
    for i in range(48):
        browser.switch_to.active_element.send_keys(f"{i / 8}", Keys.ENTER)
    # Enter leads to the next box, and at the end to the button.
    assert browser.switch_to.active_element.get_attribute("id") == "send"
    wait(browser, lambda: text(browser, "send") == "Send 48 values")
    assert note(browser, 3, "purity") == "= 0.875" and len(study.pending) == 24
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    wait(browser, lambda: text(browser, "no-worklist") == "No trial is in flight.")
    assert [values_of(study, i) for i in range(24)] == [{"yield": i / 4, "purity": i / 4 + 0.125} for i in range(24)]
    assert {trial.finished_by for trial in study.trials} == {"anna"} and entries(browser) == []
    assert browser.switch_to.active_element.get_attribute("id") == "work-title"


def test_texts_that_are_not_numbers_are_not_sent(study, page):
    from selenium.webdriver import Keys

    study.suggest(n=3)
    browser = page(study)
    texts = ["1,234", "5 %", "0,5", "<0.5", "NaN", "12"]
    box(browser, 0, "yield").click()
    for each in texts:
        browser.switch_to.active_element.send_keys(each, Keys.ENTER)
    wait(browser, lambda: text(browser, "send") == "Send 2 values")
    assert "percent" in note(browser, 0, "purity") and "bound" in note(browser, 1, "purity")
    assert note(browser, 1, "yield") == "= 0.5" and "finite" in note(browser, 2, "yield")
    assert note(browser, 0, "yield").startswith("1.234 or 1234?")
    assert "4 of 6 values cannot be sent yet" in text(browser, "open")
    press(browser, "1234", "#worklist")
    wait(browser, lambda: text(browser, "send") == "Send 3 values")
    browser.find_element("id", "send").click()
    wait(browser, lambda: len(entries(browser)) == 3 and "Stored" in text(browser, "stored"))
    assert [values_of(study, i) for i in range(3)] == [
        {"yield": 1234.0, "purity": None},
        {"yield": 0.5, "purity": None},
        {"yield": None, "purity": 12.0},
    ]
    # The other texts are still in their boxes, and a reload of the page keeps them.
    assert box(browser, 2, "yield").get_attribute("value") == "NaN"
    browser.refresh()
    wait(browser, lambda: box(browser, 2, "yield") and box(browser, 2, "yield").get_attribute("value") == "NaN")
    box(browser, 2, "yield").clear()
    box(browser, 2, "yield").send_keys("7")
    box(browser, 0, "purity").clear()
    box(browser, 1, "purity").clear()
    wait(browser, lambda: len(entries(browser)) == 1)
    send(browser)
    assert values_of(study, 2) == {"yield": 7.0, "purity": 12.0}


def test_rows_stay_while_someone_types(study, page):
    study.suggest(n=4, expires_after=3)
    browser = page(study)
    box(browser, 2, "yield").send_keys("0.25")
    # Meanwhile trials arrive, are reported, are withdrawn and become late.
    study.suggest()
    study.observe(0, {"yield": 1.0, "purity": 2.0})
    study.observe(1, {"yield": 1.0})
    study.withdraw(1, reason="wrong flask", outcome="yield")
    wait(browser, lambda: "3 changed: refresh" in text(browser, "changes"))
    wait(browser, lambda: "late" in text(browser, "worklist"))
    assert browser.execute_script("return [...rows.keys()]") == [0, 1, 2, 3]
    assert box(browser, 2, "yield").get_attribute("value") == "0.25"
    browser.find_element("id", "changes").click()
    assert browser.execute_script("return [...rows.keys()]") == [1, 2, 3, 4]
    assert box(browser, 2, "yield").get_attribute("value") == "0.25"
    send(browser)
    assert values_of(study, 2)["yield"] == 0.25 and values_of(study, 0)["yield"] == 1.0


def test_a_value_that_another_client_reported_first_is_shown(study, page):
    study.suggest(n=2)
    browser = page(study)
    box(browser, 0, "yield").send_keys("0.25")
    study.as_user("robot").observe(0, {"yield": 1.0})
    browser.find_element("id", "send").click()
    wait(browser, lambda: "Trial 0 has now: yield 1, purity missing" in text(browser, "unsent"))
    assert values_of(study, 0)["yield"] == 1.0 and len(entries(browser)) == 1
    press(browser, "Replace the present value", "#unsent")
    wait(browser, lambda: not entries(browser))
    assert values_of(study, 0)["yield"] == 0.25
    # A change of another outcome is shown, too; the value is then sent.
    box(browser, 1, "yield").send_keys("0.75")
    study.note(1, "cracked")
    browser.find_element("id", "send").click()
    wait(browser, lambda: "Trial 1 has now" in text(browser, "unsent"))
    press(browser, "Send anyway", "#unsent")
    wait(browser, lambda: not entries(browser))
    assert values_of(study, 1)["yield"] == 0.75


def test_an_entry_whose_answer_is_lost_is_sent_again_with_its_key(study, page, lab):
    study.suggest(n=2)
    browser = page(study)
    # The first answer is lost after the server has stored the value, and then the server is down.
    browser.execute_script(
        "window.bodies = []; const real = window.fetch; window.fetch = async (path, options) => {"
        "if (!path.includes('/observe')) return real(path, options); bodies.push(options.body);"
        "const found = await real(path, options); if (bodies.length === 1) throw new TypeError('lost'); return found; }"
    )
    box(browser, 0, "yield").send_keys("0.25")
    browser.find_element("id", "send").click()
    wait(browser, lambda: values_of(study, 0)["yield"] == 0.25)
    lab.kill()
    wait(browser, lambda: "It is sent again" in text(browser, "unsent"))
    assert not box(browser, 0, "yield").is_enabled() and box(browser, 1, "yield").is_enabled()
    study.observe(0, {"yield": 0.5}, amend=True)  # a correction by somebody else
    lab.start()
    wait(browser, lambda: not entries(browser))
    bodies = browser.execute_script("return bodies")
    assert len(bodies) >= 2 and len(set(bodies)) == 1
    browser.get_log("browser")  # the server was not there
    # The repetition does not undo the correction.
    assert values_of(study, 0)["yield"] == 0.5


def test_values_of_another_user_are_not_sent(study, page):
    study.suggest(n=2)
    browser = page(study)
    box(browser, 0, "yield").send_keys("0.25")
    box(browser, 0, "purity").send_keys("9")
    browser.find_element("id", "forget").click()
    wait(browser, lambda: "2 values are not sent" in text(browser, "dialog"))
    press(browser, "Cancel", "dialog")
    assert browser.find_element("id", "study").is_displayed()
    browser.find_element("id", "forget").click()
    press(browser, "Forget token", "dialog")
    wait(browser, lambda: browser.find_element("id", "login").is_displayed())
    browser.find_element("id", "token").send_keys(TOKENS["report"])
    browser.find_element("css selector", "#login button").click()
    wait(browser, lambda: "2 values of another user are not sent" in text(browser, "unsent"))
    assert box(browser, 0, "yield").get_attribute("value") == ""
    press(browser, "Show", "#unsent")
    assert "anna, test_values_of_another_user_are_not_sent: trial 0: yield 0.25, purity 9" in text(browser, "unsent")
    box(browser, 1, "yield").send_keys("0.75")
    browser.find_element("id", "send").click()
    wait(browser, lambda: len(entries(browser)) == 1)
    assert study.trial(1).outcomes["yield"].value == 0.75 and values_of(study, 0)["yield"] is None
    # The first user gets them back.
    page(study)
    wait(browser, lambda: box(browser, 0, "purity").get_attribute("value") == "9")
    send(browser)
    assert values_of(study, 0) == {"yield": 0.25, "purity": 9.0}


def test_a_token_is_forgotten_after_eight_hours_without_input(study, page):
    browser = page(study)
    browser.execute_script("lastInput -= 8 * 3600e3")
    wait(browser, lambda: "nothing was typed for 8 hours" in text(browser, "message"))
    assert browser.execute_script("return sessionStorage.length") == 0
