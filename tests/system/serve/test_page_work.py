"""Work with the web page: a person enters and corrects values in a browser, and nothing is lost or doubled."""

import json

import pytest

import belated as bl
from campaigns import service
from tests.system.serve.browser import complaints, log_in, overflow, set_width, text, wait

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
    # Enter leads to the box below, from the last row to the next outcome, and at the end to the button.
    assert browser.switch_to.active_element.get_attribute("id") == "send"
    wait(browser, lambda: text(browser, "send") == "Send 48 values")
    assert note(browser, 3, "purity") == "= 3.375" and len(study.pending) == 24
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    wait(browser, lambda: text(browser, "no-worklist") == "No trial is in flight.")
    assert [values_of(study, i) for i in range(24)] == [{"yield": i / 8, "purity": i / 8 + 3} for i in range(24)]
    assert {trial.finished_by for trial in study.trials} == {"anna"} and entries(browser) == []
    assert browser.switch_to.active_element.get_attribute("id") == "work-title"


def test_texts_that_are_not_numbers_are_not_sent(study, page):
    from selenium.webdriver import Keys

    study.suggest(n=3)
    browser = page(study)
    texts = ["1,234", "0,5", "NaN", "5 %", "<0.5", "12"]  # in the order of the boxes
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
    # The first answer is lost after the server has stored the value, the next one is cut, and then the server is down.
    browser.execute_script(
        "window.bodies = []; let checks = 0; const real = window.fetch; window.fetch = async (path, options) => {"
        "const found = await real(path, options), cut = new Response('{', {status: 200});"
        "if (path.includes('/check') && ++checks === 1) return cut; if (!path.includes('/observe')) return found;"
        "bodies.push(options.body); if (bodies.length === 1) throw new TypeError('lost');"
        "return bodies.length === 2 ? cut : found; }"
    )
    box(browser, 0, "yield").send_keys("0.25")
    browser.find_element("id", "work-title").click()
    wait(browser, lambda: note(browser, 0, "yield") == "= 0.25")
    browser.find_element("id", "send").click()
    wait(browser, lambda: len(browser.execute_script("return bodies")) == 2)
    assert values_of(study, 0)["yield"] == 0.25
    lab.kill()
    wait(browser, lambda: "It is sent again" in text(browser, "unsent"))
    assert not box(browser, 0, "yield").is_enabled() and box(browser, 1, "yield").is_enabled()
    study.observe(0, {"yield": 0.5}, amend=True)  # a correction by somebody else
    lab.start()
    wait(browser, lambda: not entries(browser))
    bodies = browser.execute_script("return bodies")
    assert len(bodies) >= 3 and len(set(bodies)) == 1
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


def test_a_remark_that_is_not_sent_is_kept_for_its_user(study, page):
    study.suggest(n=2)
    browser = page(study)
    write_remark(browser, 1, "cloudy, and")
    browser.execute_script("lastInput -= 8 * 3600e3")
    wait(browser, lambda: "nothing was typed for 8 hours" in text(browser, "message"))
    # Another user does not send it, and has a form without it.
    browser = page(study, "all")
    wait(browser, lambda: "1 value of another user is not sent" in text(browser, "unsent"))
    shown_trial(browser, 1)
    assert browser.find_element("css selector", "dialog textarea").get_attribute("value") == ""
    browser = page(study)
    wait(browser, lambda: "trial 1: remark cloudy, and" in text(browser, "unsent"))
    shown_trial(browser, 1)
    remark = browser.find_element("css selector", "dialog textarea")
    assert remark.is_displayed() and remark.get_attribute("value") == "cloudy, and"
    remark.send_keys(" yellow")
    press(browser, "Add the remark", "dialog")
    stored(browser, "remark cloudy, and yellow")
    study.sync()
    assert [(each.text, each.by) for each in study.trial(1).remarks] == [("cloudy, and yellow", "anna")]
    # A remark that is deleted again is not kept; one that is kept can be sent from the list.
    from selenium.webdriver import Keys

    write_remark(browser, 0, "x").send_keys(Keys.BACKSPACE)
    assert entries(browser) == []
    browser.find_element("css selector", "dialog textarea").send_keys("dry")
    close(browser)
    wait(browser, lambda: "remark dry" in text(browser, "unsent"))
    press(browser, "Send", "#unsent")
    stored(browser, "remark dry")
    study.sync()
    assert [each.text for each in study.trial(0).remarks] == ["dry"]


def test_a_remark_on_a_trial_that_changes_meanwhile_needs_a_decision(study, page):
    study.suggest(n=1)
    browser = page(study)
    write_remark(browser, 0, "cloudy")
    study.observe(0, {"purity": 0.5})
    press(browser, "Add the remark", "dialog")
    wait(browser, lambda: "The trial has changed since you saw it" in text(browser, "unsent"))
    press(browser, "Send anyway", "#unsent")
    stored(browser, "remark cloudy")
    study.sync()
    assert [each.text for each in study.trial(0).remarks] == ["cloudy"]


def write_remark(browser, number, what):
    """Type a remark on a trial, and return its field."""
    shown_trial(browser, number)
    for part in browser.find_elements("css selector", "dialog details"):
        if part.find_element("css selector", "summary").text == "Write a remark":
            part.find_element("css selector", "summary").click()
    remark = browser.find_element("css selector", "dialog textarea")
    remark.send_keys(what)
    return remark


def shown_trial(browser, number):
    """Open the dialog of a trial by its button in a table, and wait for its history."""
    selector = f"#study button[aria-label='Trial {number}']"
    wait(browser, lambda: browser.find_elements("css selector", selector))[0].click()
    wait(browser, lambda: "History" in text(browser, "dialog"))


def fill(browser, title, label, **fields):
    """Open a part of the dialog, fill its fields by their labels, and press its button."""
    for part in browser.find_elements("css selector", "dialog details"):
        if part.find_element("css selector", "summary").text == title:
            if part.get_attribute("open") is None:
                part.find_element("css selector", "summary").click()
            for control in part.find_elements("css selector", "input, textarea, select"):
                if control.accessible_name in fields:
                    control.send_keys(fields[control.accessible_name])
            press(browser, label, "dialog")
            return
    raise AssertionError(text(browser, "dialog"))


def stored(browser, what):
    """Wait until an entry is stored."""
    wait(browser, lambda: what in text(browser, "stored") and not entries(browser))


def test_a_trial_is_corrected_withdrawn_and_remarked(study, page):
    study.suggest(n=3)
    study.as_user("robot").observe(0, {"yield": 1.0, "purity": 2.0})
    browser = page(study)
    shown_trial(browser, 0)
    fill(browser, "Correct a value", "Read the value", Outcome="yield", Value="0,25")
    wait(browser, lambda: "Replace 1 by 0.25" in text(browser, "dialog"))
    press(browser, "Replace 1 by 0.25", "dialog")
    stored(browser, "trial 0: yield 0.25 in place of 1")
    shown_trial(browser, 0)
    fill(browser, "Write a remark", "Add the remark", Remark="cracked\ncolumn")
    stored(browser, "remark")
    shown_trial(browser, 0)
    fill(browser, "Withdraw the result", "Withdraw", Outcome="purity")
    assert "Write the reason." in text(browser, "dialog")
    fill(browser, "Withdraw the result", "Withdraw", Outcome="purity", Reason="wrong flask")
    stored(browser, "withdraw purity")
    assert values_of(study, 0) == {"yield": 0.25, "purity": None}
    assert study.trial(0).remarks[0].text == "cracked\ncolumn" and study.trial(0).remarks[0].by == "anna"
    shown_trial(browser, 1)
    fill(browser, "It failed", "Report the failure", **{"What went wrong": "spilled"})
    stored(browser, "trial 1: failed")
    assert study.trial(1).error.message == "spilled"
    shown_trial(browser, 2)
    fill(browser, "Abandon it", "Abandon", Outcome="purity")
    stored(browser, "abandon purity")
    assert study.trial(2).outcomes["purity"].state == "abandoned"
    # The history says who did what, and what was replaced.
    shown_trial(browser, 0)
    history = [each.text.partition(": ")[2] for each in browser.find_elements("css selector", ".history li")]
    assert history == [
        "suggested",
        "new yield 1; new purity 2",
        "amended yield 0.25 (before: 1)",
        "remark: cracked column",
        "withdrawn purity (before: 2); reason: wrong flask",
    ]
    assert ", robot: " in text(browser, "dialog") and ", anna: " in text(browser, "dialog")


def test_a_correction_that_another_client_races_is_not_lost(study, page):
    study.suggest()
    study.observe(0, {"yield": 1.0, "purity": 2.0})
    browser = page(study)
    shown_trial(browser, 0)
    study.as_user("robot").observe(0, {"yield": 0.5}, amend=True)
    fill(browser, "Correct a value", "Read the value", Value="0.25")
    wait(browser, lambda: "Replace 1 by 0.25" in text(browser, "dialog"))
    press(browser, "Replace 1 by 0.25", "dialog")
    wait(browser, lambda: "Trial 0 has now: yield 0.5, purity 2." in text(browser, "unsent"))
    assert values_of(study, 0)["yield"] == 0.5
    press(browser, "Send anyway", "#unsent")
    wait(browser, lambda: not entries(browser))
    assert values_of(study, 0)["yield"] == 0.25 and not browser.find_element("id", "unsent").is_displayed()


def test_several_trials_are_abandoned(study, page):
    study.suggest(n=4)
    browser = page(study)
    for number in (1, 3):
        browser.execute_script("rows.get(arguments[0]).tick.click()", number)
    press(browser, "Abandon 2 trials")
    press(browser, "Abandon", "dialog")
    stored(browser, "abandon trials 1, 3")
    assert [trial.state for trial in study.trials] == ["pending", "abandoned", "pending", "abandoned"]


def test_a_plate_is_started_printed_and_saved(study, page, downloads):
    pandas = pytest.importorskip("pandas")
    study.suggest()
    browser = page(study)
    browser.find_element("id", "next").click()
    wait(browser, lambda: "Number of trials" in text(browser, "dialog"))
    answers = {"Wells, such as A1-B12 or A1, A3 (may be empty)": "A1-B2, =C3", "T (20 to 120)": "60"}
    answers |= {"Results are expected within (may be empty)": "2"}
    for control in browser.find_elements("css selector", "dialog input, dialog textarea"):
        if control.accessible_name in answers and control.get_attribute("type") != "checkbox":
            control.send_keys(answers[control.accessible_name])
    press(browser, "Start the trials", "dialog")
    stored(browser, "5 new trials")
    new = study.trials[1:]
    assert [trial.attrs["well"] for trial in new] == ["A1", "A2", "B1", "B2", "=C3"]
    assert {trial.params["T"] for trial in new} == {60.0} and new[0].started_by == "anna"
    assert all(trial.expires_at - trial.started_at.timestamp() == pytest.approx(7200, abs=1) for trial in new)
    assert "The new trials 1 to 5 are selected" in text(browser, "plate")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    printed = [each.text for each in browser.find_elements("css selector", "#worklist tbody tr") if each.is_displayed()]
    assert len(printed) == 5 and all("60 " in each for each in printed)
    assert not browser.find_element("id", "best").is_displayed()
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    press(browser, "Download worklist (CSV)")
    file = downloads / f"{study.name} worklist.csv"
    wait(browser, file.exists)
    assert "'=C3" in file.read_text(encoding="utf-8")
    # The file is a worklist that `observe` reads.
    table = pandas.read_csv(file)
    table["outcome_yield"] = [0.5, 0.25, None, None, 1.0]
    assert study.observe(table).new == [(1, "yield"), (2, "yield"), (5, "yield")]


def test_fixed_values_and_fidelities_of_a_plate_are_checked(lab, page, request):
    space = {"T": (20.0, 120.0), "n": (1, 9), "flow": bl.Real(0.5, 2.0, step=0.25)}
    optimizer = bl.RandomSearch(space, fidelity=bl.Fidelity(3, 27), seed=0)
    study = bl.Study(request.node.name, lab.url, optimizer)
    study.suggest(fidelity=27)
    browser = page(study)
    browser.find_element("id", "next").click()
    wait(browser, lambda: "Number of trials" in text(browser, "dialog"))
    fields = {each.accessible_name: each for each in browser.find_elements("css selector", "dialog input")}
    wrong = [("T (20 to 120)", "130", "from 20 to 120"), ("T (20 to 120)", "warm", "write a number")]
    wrong += [("n (1 to 9)", "2.5", "whole number"), ("flow (0.5 to 2)", "0.4", "from 0.5 to 2")]
    wrong += [("flow (0.5 to 2)", "0.6", "0.5, 0.75, …, 2")]
    wrong += [("Fidelity (3 to 27), may be empty", "2", "from 3 to 27")]
    for name, given, reason in wrong:
        fields[name].send_keys(given)
        press(browser, "Start the trials", "dialog")
        wait(browser, lambda reason=reason: reason in text(browser, "dialog"))
        fields[name].clear()
    assert study.n_trials == 1 and entries(browser) == []
    fields["Fidelity (3 to 27), may be empty"].send_keys("9")
    fields["flow (0.5 to 2)"].send_keys("0.75")
    press(browser, "Start the trials", "dialog")
    stored(browser, "1 new trial")
    study.sync()
    assert (study.trial(1).fidelity, study.trial(1).params["flow"]) == (9, 0.75)
    # Without a fidelity, the study chooses it.
    browser.find_element("id", "next").click()
    wait(browser, lambda: "Number of trials" in text(browser, "dialog"))
    press(browser, "Start the trials", "dialog")
    stored(browser, "1 new trial")
    study.sync()
    assert 3 <= study.trial(2).fidelity <= 27


def test_an_experiment_that_was_not_planned_is_added(study, page):
    browser = page(study)
    browser.find_element("id", "off-plan").click()
    wait(browser, lambda: "solvent" in text(browser, "dialog"))
    for control in browser.find_elements("css selector", "dialog input, dialog select"):
        answer = {"T": "1e2", "solvent": "ethanol", "yield (may be empty)": "0,5"}.get(control.accessible_name)
        control.send_keys(answer or "")
    press(browser, "Add the experiment", "dialog")
    assert "yield: write a number" in text(browser, "dialog")
    [control] = [
        c for c in browser.find_elements("css selector", "dialog input") if c.accessible_name.startswith("yield")
    ]
    control.clear()
    control.send_keys("0.5")
    press(browser, "Add the experiment", "dialog")
    stored(browser, "experiment at T = 100, solvent = ethanol")
    assert study.trial(0).params == {"T": 100.0, "solvent": "ethanol"} and values_of(study, 0)["yield"] == 0.5


def test_an_experiment_outside_the_ranges_is_added_after_a_question(study, page):
    browser = page(study)
    browser.find_element("id", "off-plan").click()
    wait(browser, lambda: "solvent" in text(browser, "dialog"))
    [control] = [c for c in browser.find_elements("css selector", "dialog input") if c.accessible_name == "T"]
    for value in ("1e5", "1e6"):
        control.clear()
        control.send_keys(value)
        press(browser, "Add the experiment", "dialog")
        wait(browser, lambda: "T is not in the range from" in text(browser, "dialog"))
    study.sync()
    assert study.n_trials == 0
    press(browser, "Add the experiment", "dialog")
    stored(browser, "experiment at T = 1000000")
    study.sync()
    assert study.trial(0).params["T"] == 1e6


def paste(browser, target, content):
    """Paste a text into a box."""
    browser.execute_script(
        "const clipboardData = new DataTransfer(); clipboardData.setData('text/plain', arguments[1]);"
        "arguments[0].focus();"
        "arguments[0].dispatchEvent(new ClipboardEvent('paste', {clipboardData, bubbles: true, cancelable: true}))",
        target,
        content,
    )


def lines(browser):
    """Return the rows that a paste would fill in."""
    return [each.text for each in browser.find_elements("css selector", "dialog tbody tr")]


def test_cells_are_pasted_by_number_or_well(study, page):
    study.suggest(n=3, attrs=WELLS[:3])
    browser = page(study)
    paste(browser, box(browser, 0, "yield"), "well\tyield\tnotes\r\nA3\t0,5\tfine\r\nA1\t0.25\t\r\nD6\t1\t\r\n")
    wait(browser, lambda: lines(browser))
    assert lines(browser) == ["2 A3 yield 0,5", "0 A1 yield 0.25", "– D6 yield 1 left out: D6 is not in the worklist"]
    assert browser.execute_script("return [...rows.values()].every(each => each.boxes.get('yield').value === '')")
    press(browser, "Fill 2 boxes", "dialog")
    wait(browser, lambda: text(browser, "send") == "Send 2 values")
    # A block by number fills in several outcomes; a number that is there twice is not used twice.
    paste(browser, box(browser, 1, "purity"), "number\tpurity\toutcome_yield\n1\t9\t8\n0\t7\t\n1\t6\t5")
    wait(browser, lambda: lines(browser))
    assert lines(browser)[:3] == ["1 A2 purity 9", "1 A2 yield 8", "0 A1 purity 7"]
    assert [each.rpartition(" left out: ")[2] for each in lines(browser)[3:]] == ["it is there twice"] * 2
    press(browser, "Fill 3 boxes", "dialog")
    wait(browser, lambda: text(browser, "send") == "Send 5 values")
    send(browser)
    assert [values_of(study, i) for i in range(3)] == [
        {"yield": 0.25, "purity": 7.0},
        {"yield": 8.0, "purity": 9.0},
        {"yield": 0.5, "purity": None},
    ]


def test_a_single_column_must_have_the_length_of_the_worklist(study, page):
    study.suggest(n=3)
    browser = page(study)
    paste(browser, box(browser, 0, "purity"), "1\n2")
    wait(browser, lambda: "The column has 2 cells, and the worklist shows 3 rows" in text(browser, "dialog"))
    browser.find_element("id", "dialog-close").click()
    paste(browser, box(browser, 0, "purity"), "1\t2\n3\t4\n5\t6")
    wait(browser, lambda: "Copy the block with its first line" in text(browser, "dialog"))
    browser.find_element("id", "dialog-close").click()
    paste(browser, box(browser, 0, "purity"), "1\n2\n3\n")
    wait(browser, lambda: lines(browser))
    press(browser, "Fill 3 boxes", "dialog")
    wait(browser, lambda: note(browser, 2, "purity") == "= 3")  # notes move the button
    send(browser)
    assert [values_of(study, i)["purity"] for i in range(3)] == [1.0, 2.0, 3.0]


def test_the_end_of_a_dialog_does_not_answer_the_next_one(study, page):
    browser = page(study)
    answers = browser.execute_async_script(
        "const done = arguments[0], found = []; openDialog('first'); closeDialog();"
        "choose('second', [], [['Yes', true]]).then(value => found.push(value));"
        "setTimeout(() => { found.push('open'); find('dialog').querySelector('.buttons button').click(); }, 300);"
        "setTimeout(() => done(found), 600)"
    )
    assert answers == ["open", True]


def drop(browser, name, content):
    """Drop a file on the page."""
    browser.execute_script(
        "const data = new DataTransfer(); data.items.add(new File([new Uint8Array(arguments[1])], arguments[0]));"
        "document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true}))",
        name,
        list(content),
    )


def test_a_dropped_file_is_stored_after_one_confirmation(study, page):
    pytest.importorskip("pandas")
    study.suggest(n=4)
    table = study.worklist()
    table["outcome_yield"] = [0.5, 0.25, "12 %", None]
    content = table.to_csv(sep=";", index=False).encode("utf-16")
    browser = page(study)
    for name, start in (
        ("plate.xlsx", b"x"),
        ("plate.ODS", b"x"),
        ("plate.csv", b"PK\x03\x04"),
        ("plate.csv", b"\xd0\xcf"),
    ):
        drop(browser, name, start + b"x;y\n1;2\n")
        wait(browser, lambda: "save it as CSV" in text(browser, "dialog"))
        close(browser)
    drop(browser, "results<b>.csv", content)
    wait(browser, lambda: "12 %" in text(browser, "dialog"))
    assert "results<b>.csv" in text(browser, "dialog") and values_of(study, 0)["yield"] is None
    # A trial of the table changes before the confirmation: there is a new summary.
    study.note(1, "cracked")
    press(browser, "Store 2 values", "dialog")
    wait(browser, lambda: "have changed since the last summary" in text(browser, "dialog"))
    assert values_of(study, 0)["yield"] is None
    press(browser, "Store 2 values", "dialog")
    stored(browser, "2 values of results<b>.csv")
    assert [values_of(study, i)["yield"] for i in range(4)] == [0.5, 0.25, None, None]


def cells(browser, label):
    """Return the texts of the rows of a table in the dialog, by the name of the table."""
    rows = f"dialog [aria-label='{label}'] tbody tr"
    return [
        [cell.get_attribute("textContent") for cell in row.find_elements("css selector", "td")]
        for row in browser.find_elements("css selector", rows)
    ]


def test_the_summary_of_a_file_has_values_refusals_and_marks(lab, page, request):
    pytest.importorskip("pandas")
    outcomes = {"yield": "maximize", "purity": bl.Record()}
    study = bl.Study(request.node.name, lab.url, bl.BayesOpt({"x": (0.0, 1.0)}, outcomes=outcomes, seed=0))
    for trial in study.suggest(n=12):
        trial.observe({"yield": 0.5 + 0.1 * trial.params["x"]})
    study.suggest(n=3, attrs=[{"well": "A1"}, {"well": "<b>B2</b>"}, None])
    own = study.worklist()["study_id"][0]
    browser = page(study)
    head = "sep=;\nstudy_id;number;outcome_yield;outcome_purity;remarks;colour\n"
    rows = [f"{own};12;0,55;1;;red", "", f"{own};13;57,0;failed;late;", f"{own};14;5 %;;;", f"{own};0;0,75;;;"]
    drop(browser, "plate.csv", (head + "\n".join(rows)).encode())
    wait(browser, lambda: cells(browser, "Values to store"))
    found = {row[0] + row[2]: row[1:] for row in cells(browser, "Values to store")}
    assert found["12yield"] == ["A1", "yield", "–", "0.55", ""] and found["12purity"] == ["A1", "purity", "–", "1", ""]
    assert found["13purity"] == ["<b>B2</b>", "purity", "–", "failed", ""] and len(found) == 4
    assert found["13yield"][:-1] == ["<b>B2</b>", "yield", "–", "57"] and "marked: expected" in found["13yield"][-1]
    refused = {row[1]: row for row in cells(browser, "Cells that are refused")}
    # Rows are counted as spreadsheets count them, which leave out the line "sep=;" and not the empty line.
    assert refused["14"][:5] == ["5", "14", "outcome_yield", "5 %", "–"] and refused["14"][5]
    assert refused["0"][0] == "6" and "pass amend=True" in refused["0"][5] and len(refused) == 2
    shown = text(browser, "dialog")
    assert "New remarks or attributes, 1 trial: 13" in shown and "Columns that are not read: colour" in shown
    browser.find_element("css selector", "dialog input[type=checkbox]").click()  # replace earlier values
    wait(browser, lambda: len(cells(browser, "Values to store")) == 5)
    [row] = [row for row in cells(browser, "Values to store") if row[0] == "0"]
    assert row[2] == "yield" and row[4] == "0.75"
    assert float(row[3]) == pytest.approx(study.trial(0).values["yield"], rel=1e-14)
    assert study.trial(12).state == "pending"
    press(browser, "Store 5 values", "dialog")
    stored(browser, "5 values of plate.csv")
    assert study.trial(0).values["yield"] == 0.75 and study.trial(13).values["yield"] == 57.0


def test_a_file_of_more_than_a_megabyte_is_stored(study, page):
    pytest.importorskip("pandas")
    study.suggest(n=1200)
    own = study.worklist()["study_id"][0]
    rows = [f"{own},{i},{i / 8},{'x' * 1000}{i}," for i in range(1200)]
    browser = page(study)
    browser.execute_script(
        "openFile(latest.study, new File([arguments[0]], 'large.csv'))",
        "study_id,number,outcome_yield,remarks,empty\n" + "\n".join(rows),
    )
    wait(browser, lambda: "1200 new" in text(browser, "dialog"))
    press(browser, "Store 1200 values", "dialog")
    stored(browser, "1200 values of large.csv")
    assert [trial.values["yield"] for trial in study.trials] == [i / 8 for i in range(1200)]


@pytest.mark.parametrize("role", USERS)
def test_each_role_sees_what_it_may(study, page, role):
    study.suggest(n=2)
    study.observe(0, {"yield": 1.0, "purity": 1.0})
    browser = page(study, role)
    assert len(browser.find_elements("css selector", ".box")) == (0 if role == "read" else 2)
    for name in ("next", "off-plan", "open-file"):
        assert browser.find_element("id", name).is_displayed() == (role in ("work", "all"))
    shown_trial(browser, 0)
    titles = {each.text for each in browser.find_elements("css selector", "dialog summary")}
    expected = {"read": set(), "report": {"Write a remark"}}
    assert titles == expected.get(role, {"Correct a value", "Withdraw the result", "Write a remark"})
    if role == "read":  # the server refuses, and the text is kept with the reason
        browser.find_element("id", "dialog-close").click()
        browser.execute_script("user.role = 'work'; drawWorklist(latest.study, true)")
        box(browser, 1, "yield").send_keys("0.5")
        browser.find_element("id", "send").click()
        wait(browser, lambda: "has the role 'read'" in browser.find_element("tag name", "body").text)
        assert entries(browser)[0]["texts"] == {"yield": "0.5"} and values_of(study, 1)["yield"] is None


def test_hostile_texts_are_shown_as_text(lab, browser, page):
    evil = "<img src=x onerror='window.hit=1'>"
    turned, long = "\u202egnp.\u2069\u05d0", "a name of a parameter that is long " + "x" * 80
    optimizer = bl.RandomSearch(
        {evil: [turned, long], turned: (0.0, 1.0), long: (0.0, 1.0)}, outcomes={evil: "maximize"}, seed=0
    )
    study = bl.Study("hostile " + evil, lab.url, optimizer)
    study.suggest(n=2, attrs={"well": turned, evil: evil})
    study.as_user(evil).note(0, evil + turned)
    browser = page(study)
    assert evil in text(browser, "worklist")
    shown_trial(browser, 0)
    assert evil in text(browser, "dialog")
    # Text that changes the direction is isolated, so that it cannot reorder the text after it.
    history = browser.find_elements("css selector", ".history li")[-1].text
    assert history.endswith("\u2068" + evil + "\ufffdgnp.\ufffd\u05d0\u2069")
    browser.find_element("id", "dialog-close").click()
    box(browser, 1, evil).send_keys(evil)
    browser.find_element("id", "work-title").click()
    wait(browser, lambda: "cannot be sent yet" in text(browser, "open"))
    assert browser.execute_script("return window.hit") is None
    assert browser.find_elements("css selector", "main img, dialog img") == []
    for width in (360, 1280):
        set_width(browser, width)
        assert overflow(browser) == 0


def test_all_trials_are_shown_in_pages(study, page):
    from selenium.webdriver.support.ui import Select

    study.suggest(n=60)
    for number in range(55):
        study.observe(number, {"yield": number % 7 * 1e25, "purity": 1.0})  # the page has a URL with 1e+25
    browser = page(study)

    def numbers():
        return [int(row.split()[0]) for row in text(browser, "all").splitlines()[1:]]

    wait(browser, lambda: numbers() == list(range(50)) and text(browser, "all-page") == "1 to 50 of 60")
    browser.find_element("id", "all-next").click()
    wait(browser, lambda: numbers() == list(range(50, 60)) and text(browser, "all-page") == "51 to 60 of 60")
    assert not browser.find_element("id", "all-next").is_enabled()
    Select(browser.find_element("id", "all-kind")).select_by_visible_text("observed")
    Select(browser.find_element("id", "all-order")).select_by_visible_text("yield")
    browser.find_element("id", "all-down").click()
    expected = sorted(range(55), key=lambda number: (-(number % 7), number))
    wait(browser, lambda: numbers() == expected[:50])
    browser.find_element("id", "all-next").click()
    wait(browser, lambda: numbers() == expected[50:] and text(browser, "all-page") == "51 to 55 of 55")
    browser.find_element("id", "all-back").click()
    wait(browser, lambda: numbers() == expected[:50])
    # The rows stay when the study changes, until the person asks for the present state. The filter stays, too.
    study.fail(58)
    study.as_user("robot").observe(59, {"yield": 9e25, "purity": 1.0})
    wait(browser, lambda: text(browser, "all-changes") == "2 changed: refresh")
    assert numbers() == expected[:50]
    browser.find_element("id", "all-changes").click()
    wait(browser, lambda: numbers() == [59, *expected[:49]])
    assert not browser.find_element("id", "all-changes").is_displayed()
    # Entries of this page are shown at once.
    box(browser, 56, "yield").send_keys("8e25")
    send(browser)
    wait(
        browser,
        lambda: numbers() == [59, *expected[:49]] and not browser.find_element("id", "all-changes").is_displayed(),
    )
    browser.find_element("id", "all-by").send_keys("robot\t")
    wait(browser, lambda: numbers() == [59])
    browser.find_element("id", "all-by").clear()
    Select(browser.find_element("id", "all-order")).select_by_visible_text("T")
    temperatures = {number: study.trial(number).params["T"] for number in [*range(55), 59]}
    hottest = sorted(temperatures, key=temperatures.get, reverse=True)
    wait(browser, lambda: numbers() == hottest[:50])


def test_two_tabs_send_a_value_once(study, page, lab):
    study.suggest(n=2)
    browser = page(study)
    first = browser.current_window_handle
    box(browser, 0, "yield").send_keys("0.5")
    wait(browser, lambda: note(browser, 0, "yield") == "" and entries(browser))
    # A duplicated tab has the token and the entries.
    browser.execute_script("window.open(location.href)")
    [second] = set(browser.window_handles) - {first}
    browser.switch_to.window(second)
    wait(browser, lambda: box(browser, 0, "yield") and box(browser, 0, "yield").get_attribute("value") == "0.5")
    box(browser, 1, "yield").send_keys("0.75")
    browser.switch_to.window(first)
    wait(browser, lambda: box(browser, 1, "yield").get_attribute("value") == "0.75")
    for tab in (second, first):
        browser.switch_to.window(tab)
        browser.execute_script("find('send').click()")
    wait(browser, lambda: not entries(browser))
    browser.switch_to.window(second)
    browser.close()
    browser.switch_to.window(first)
    assert [values_of(study, i)["yield"] for i in range(2)] == [0.5, 0.75]
    assert len(study._log.history.events_of(0)) == len(study._log.history.events_of(1)) == 2
    wait(browser, lambda: not browser.find_element("id", "unsent").is_displayed())


def test_two_tabs_add_a_remark_once(study, page):
    study.suggest(n=1)
    browser = page(study)
    first = browser.current_window_handle
    write_remark(browser, 0, "cloudy")
    browser.execute_script("window.open(location.href)")
    [second] = set(browser.window_handles) - {first}
    browser.switch_to.window(second)
    wait(browser, lambda: "remark cloudy" in text(browser, "unsent"))
    press(browser, "Send", "#unsent")
    stored(browser, "remark cloudy")
    browser.close()
    # The first tab still shows the form with the text.
    browser.switch_to.window(first)
    press(browser, "Add the remark", "dialog")
    wait(browser, lambda: "The trial has changed since you saw it" in text(browser, "unsent"))
    press(browser, "Send anyway", "#unsent")
    stored(browser, "remark cloudy")
    study.sync()
    assert [each.text for each in study.trial(0).remarks] == ["cloudy"]


def test_an_abandonment_without_effect_whose_answer_is_lost_is_not_carried_out_later(study, page, lab):
    study.suggest(n=1)
    browser = page(study)
    shown_trial(browser, 0)
    study.abandon(0)  # another client is first
    fill(browser, "Abandon it", "Abandon")
    wait(browser, lambda: "The trial has changed since you saw it" in text(browser, "unsent"))
    browser.execute_script(
        "window.n = 0; const real = window.fetch; window.fetch = async (path, options) => {"
        "const found = await real(path, options);"
        "if (path.includes('/abandon') && ++n === 1) throw new TypeError('lost'); return found; }"
    )
    lab_events = study._log.n_events()
    press(browser, "Send anyway", "#unsent")
    wait(browser, lambda: browser.execute_script("return n") == 1 and study.sync() + study._log.n_events() > lab_events)
    lab.kill()
    study.observe(0, {"yield": 0.5, "purity": 1.0})
    study.withdraw(0, reason="spilled")
    before = repr(study.trial(0))
    lab.start()
    wait(browser, lambda: not entries(browser))
    browser.get_log("browser")  # the server was not there
    study.sync()
    assert repr(study.trial(0)) == before and study.trial(0).state != "abandoned"


def test_values_of_a_study_that_was_created_again_are_not_sent(study, page, lab):
    study.suggest()
    browser = page(study)
    box(browser, 0, "yield").send_keys("0.5")
    bl.Study.delete(study.name, lab.url)
    again = bl.Study(study.name, lab.url, bl.RandomSearch({"T": (20.0, 120.0)}, outcomes=OUTCOMES, seed=1))
    again.suggest()
    wait(browser, lambda: "trial 0: yield 0.5" in text(browser, "unsent"))
    assert box(browser, 0, "yield").get_attribute("value") == ""
    press(browser, "Send", "#unsent")
    wait(browser, lambda: "it was deleted and created again" in text(browser, "unsent"))
    press(browser, "Discard", "#unsent")
    assert entries(browser) == [] and again.trial(0).outcomes["yield"].value is None
    browser.get_log("browser")  # the study was not there for a moment


def test_a_study_of_candidates_without_outcomes(lab, browser, page, request):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"reagent": ["a", "b", "c"], "mass": [1.0, 2.0, 3.0]})
    study = bl.Study(request.node.name, lab.url, bl.RandomSearch(candidates=table, seed=0))
    study.suggest(fixed={"reagent": "a"})
    browser = page(study)
    box(browser, 0, "").send_keys("0.5")
    send(browser)
    assert study.trial(0).value == 0.5
    browser.find_element("id", "off-plan").click()
    wait(browser, lambda: "Candidate" in text(browser, "dialog"))
    for control in browser.find_elements("css selector", "dialog input, dialog select"):
        control.send_keys({"Candidate": "1: reagent = b, mass = 2"}.get(control.accessible_name, "0.75"))
    press(browser, "Add the experiment", "dialog")
    stored(browser, "experiment at candidate = 1")
    assert study.trial(1).params == {"reagent": "b", "mass": 2.0} and study.trial(1).value == 0.75
    browser.find_element("id", "next").click()
    wait(browser, lambda: "Number of trials" in text(browser, "dialog"))
    for control in browser.find_elements("css selector", "dialog fieldset select"):
        control.send_keys({"reagent": "c"}.get(control.accessible_name, ""))
    press(browser, "Start the trials", "dialog")
    stored(browser, "1 new trial")
    assert study.trial(2).params["reagent"] == "c"
    # Without outcomes, a withdrawn trial takes a new value.
    shown_trial(browser, 1)
    fill(browser, "Withdraw the result", "Withdraw", Reason="wrong flask")
    stored(browser, "trial 1: withdraw")
    shown_trial(browser, 1)
    fill(browser, "Enter a value", "Read the value", Value="0.25")
    wait(browser, lambda: "Send 0.25" in text(browser, "dialog"))
    press(browser, "Send 0.25", "dialog")
    stored(browser, "trial 1: value 0.25")
    assert study.trial(1).value == 0.25


def close(browser):
    browser.find_element("id", "dialog-close").click()


def test_a_column_with_empty_cells_is_not_shifted(study, page):
    study.suggest(n=4)
    browser = page(study)
    paste(browser, box(browser, 0, "yield"), "\r\n1\r\n\r\n2\r\n\r\n\r\n")
    wait(browser, lambda: lines(browser))
    assert lines(browser) == ["1 yield 1", "3 yield 2"]
    close(browser)
    # An empty line is a cell, so these columns have another length than the worklist.
    for content, n in (("1\r\n\r\n2\r\n", 3), ("1\n\n2\n3\n4", 5)):
        paste(browser, box(browser, 0, "yield"), content)
        wait(browser, lambda n=n: f"The column has {n} cells, and the worklist shows 4 rows" in text(browser, "dialog"))
        close(browser)
    paste(browser, box(browser, 0, "yield"), "\n\nnumber\tyield\n\n2\t5\n")
    wait(browser, lambda: lines(browser))
    assert lines(browser) == ["2 yield 5"]
    close(browser)


def test_pasted_rows_that_contradict_the_worklist_are_left_out(study, page):
    study.suggest(n=4, attrs=[{"well": "A1", "mass": 0.3125}, {"well": "A2"}, {"well": "=A3"}, {"well": "A4"}])
    [own] = set(study.worklist()["study_id"])
    browser = page(study)
    rows = [
        (own, 0, "A1", "0,31", 1),
        (own, 1, "A1", "", 2),
        (own, 2, "'=A3", "", 3),
        ("id-000000000001", 3, "A4", "", 4),
    ]
    table = "\n".join(
        "\t".join(map(str, row)) for row in [("study_id", "number", "attrs_well", "mass", "yield"), *rows]
    )
    paste(browser, box(browser, 0, "yield"), table)
    wait(browser, lambda: lines(browser))
    assert [each.partition(" left out: ")[2] for each in lines(browser)] == [
        "",
        "well is A1 in the block, and A2 in the worklist",
        "",
        "the row is of another study",
    ]
    press(browser, "Fill 2 boxes", "dialog")
    wait(browser, lambda: text(browser, "send") == "Send 2 values")
    send(browser)
    assert [values_of(study, i)["yield"] for i in range(4)] == [1.0, None, 3.0, None]


def test_an_attribute_with_the_name_of_the_number_is_not_taken_for_it(study, page):
    study.suggest(n=3, attrs=[{"trial": 2}, {"trial": 0}, {"trial": 1}])
    browser = page(study)
    paste(browser, box(browser, 0, "yield"), "trial\tyield\n2\t5\n0\t6\n")
    wait(browser, lambda: "may have numbers of trials or other values: call it attrs_trial" in text(browser, "dialog"))
    close(browser)
    for head, expected in (("attrs_trial", ["0 2 yield 5", "1 0 yield 6"]), ("Trial", ["2 1 yield 5", "0 2 yield 6"])):
        paste(browser, box(browser, 0, "yield"), f"{head}\tyield\n2\t5\n0\t6\n")
        wait(browser, lambda: lines(browser))
        assert lines(browser) == expected
        close(browser)


def test_rows_that_are_not_shown_are_not_called_missing(study, page):
    for _ in range(3):
        study.suggest(n=67, attrs={"plate": "P"})
    browser = page(study)
    paste(browser, box(browser, 0, "yield"), "number\tyield\n0\t1\n200\t2\n201\t3\n")
    wait(browser, lambda: lines(browser))
    assert "its row is not shown" in lines(browser)[1] and "201 is not in the worklist" in lines(browser)[2]
    close(browser)


def test_a_file_with_misplaced_quotation_marks_is_refused(study, page):
    study.suggest(n=3)
    [own] = set(study.worklist()["study_id"])
    browser = page(study)
    head = "study_id,number,outcome_yield,remarks\n"
    for rows, reason in (
        (f'{own},0,"1"5,\n', "Row 2 has text after a closing quotation mark"),
        (f'{own},0,1,\n{own},1,2,"bad\n{own},2,3,y\n', "Row 3 has no closing quotation mark"),
        (f"{own},0,0.5\r1,\n", "0.5"),  # not 0.51
    ):
        drop(browser, "plate.csv", (head + rows).encode())
        wait(browser, lambda reason=reason: reason in text(browser, "dialog"))
        assert "Store" not in [each.text for each in browser.find_elements("css selector", "dialog button")]
        assert "0.51" not in text(browser, "dialog")
        close(browser)
    paste(browser, box(browser, 0, "yield"), '"1"5\n2\n3\n')
    wait(browser, lambda: "Row 1 has text after a closing quotation mark" in text(browser, "dialog"))
    close(browser)
    drop(browser, "plate.csv", f'{head}\n{own},"0","1.5","a ""b""\r\nc"\r\n\r\n'.encode())
    wait(browser, lambda: "1 new" in text(browser, "dialog"))
    press(browser, "Store 1 value", "dialog")
    stored(browser, "1 value of plate.csv")
    assert values_of(study, 0)["yield"] == 1.5 and 'a "b"' in study.trial(0).remarks[0].text


def test_another_study_is_not_shown_in_place_of_a_deleted_one(study, page, lab):
    other = bl.Study("0 before others", lab.url, bl.RandomSearch({"T": (0.0, 1.0)}, outcomes=OUTCOMES, seed=0))
    other.suggest()
    study.suggest()
    browser = page(study)
    box(browser, 0, "yield").send_keys("0.5")
    bl.Study.delete(study.name, lab.url)
    wait(browser, lambda: f"The study {study.name} was deleted" in text(browser, "message"))
    assert browser.execute_script("return find('name').value") == study.name
    assert not browser.find_element("id", "study").is_displayed()
    label = f"{study.name} (a former study), trial 0: yield 0.5"
    assert label in text(browser, "unsent")
    again = bl.Study(study.name, lab.url, bl.RandomSearch({"T": (20.0, 120.0)}, outcomes=OUTCOMES, seed=1))
    again.suggest()
    wait(browser, lambda: "was created again while this page was open" in text(browser, "message"))
    assert box(browser, 0, "yield").get_attribute("value") == "" and label in text(browser, "unsent")
    browser.refresh()
    wait(browser, lambda: label in text(browser, "unsent"))
    press(browser, "Discard", "#unsent")
    browser.get_log("browser")  # the study was not there for a moment
    bl.Study.delete(other.name, lab.url)


def test_trials_become_late_in_the_table_without_an_event(study, page):
    from selenium.webdriver.support.ui import Select

    study.suggest(n=2, expires_after=4)
    browser = page(study)
    Select(browser.find_element("id", "all-kind")).select_by_visible_text("late")
    wait(browser, lambda: text(browser, "all-page") == "1 to 2 of 2")


def test_a_token_that_no_request_can_have_is_refused(lab, browser):
    log_in(browser, lab, "t\u00f6ken\u20ac-0123456789")
    wait(browser, lambda: "The token is wrong" in text(browser, "message"))
    assert browser.find_element("id", "login").is_displayed() and complaints(browser) == []


def test_what_another_tab_writes_meanwhile_is_not_lost(study, page):
    study.suggest(n=2)
    browser = page(study)
    first = browser.current_window_handle
    box(browser, 0, "yield").send_keys("0.5")
    browser.execute_script("window.open(location.href)")
    [second] = set(browser.window_handles) - {first}
    browser.switch_to.window(second)
    wait(browser, lambda: box(browser, 0, "yield") and text(browser, "figures"))
    # The second tab waits for the reading of a text while the first one writes another text of the same trial.
    browser.execute_script(
        "window.open_ = 0; window.isHeld = true; const real = window.fetch; window.fetch = async (path, options) => {"
        "const found = await real(path, options); if (!path.includes('/check')) return found;"
        "open_ += 1; while (isHeld) await new Promise(done => setTimeout(done, 50)); return found; };"
        "for (const entry of drafts()) entry.readings = bare(); readDrafts()"
    )
    wait(browser, lambda: browser.execute_script("return open_"))
    browser.switch_to.window(first)
    box(browser, 0, "purity").send_keys("99")
    browser.switch_to.window(second)
    browser.execute_script("isHeld = false")
    wait(browser, lambda: note(browser, 0, "yield") == "= 0.5")
    browser.close()
    browser.switch_to.window(first)
    wait(browser, lambda: note(browser, 0, "yield") == "= 0.5")
    assert entries(browser)[0]["texts"] == {"yield": "0.5", "purity": "99"}
    send(browser)
    assert values_of(study, 0) == {"yield": 0.5, "purity": 99.0}


def test_values_are_not_stored_under_another_name(study, page):
    study.suggest()
    browser = page(study)
    box(browser, 0, "yield").send_keys("0.5")
    browser.find_element("id", "work-title").click()
    wait(browser, lambda: note(browser, 0, "yield") == "= 0.5")
    # The page knows the token by a former name.
    browser.execute_script("user.name = 'zoe'; for (const each of entries.values()) keep({...each, user: 'zoe'})")
    browser.execute_script("find('send').click()")
    wait(browser, lambda: "1 value of another user is not sent" in text(browser, "unsent"))
    assert browser.execute_script("return user.name") == "anna" and len(entries(browser)) == 1
    assert values_of(study, 0)["yield"] is None


def test_trials_are_abandoned_as_they_were_when_the_question_was_asked(study, page, lab):
    study.suggest(n=2)
    browser = page(study)
    browser.execute_script("rows.get(0).tick.click()")
    press(browser, "Abandon 1 trial")
    before = browser.execute_script("return trials.get(0).event")
    study.as_user("robot").note(0, "the result arrives soon")
    wait(browser, lambda: browser.execute_script("return trials.get(0).event") > before)
    press(browser, "Abandon", "dialog")
    wait(browser, lambda: "The trial has changed" in text(browser, "unsent"))
    assert study.trial(0).state == "pending"
    press(browser, "Discard", "#unsent")
    # The study is created again during the question.
    browser.execute_script("selected.clear(); rows.get(1).tick.click()")
    press(browser, "Abandon 1 trial")
    bl.Study.delete(study.name, lab.url)
    again = bl.Study(study.name, lab.url, bl.RandomSearch({"T": (20.0, 120.0)}, outcomes=OUTCOMES, seed=1))
    again.suggest(n=2)
    wait(browser, lambda: browser.execute_script("return latest.study.study_id") == again._log.id)
    press(browser, "Abandon", "dialog")
    wait(browser, lambda: "it was deleted and created again" in text(browser, "unsent"))
    assert {trial.state for trial in again.trials} == {"pending"}
    browser.get_log("browser")


def test_entries_that_the_browser_cannot_store(study, page):
    study.suggest(n=2)
    browser = page(study)
    box(browser, 0, "yield").send_keys("1")
    browser.execute_script(
        "window.setItem = Storage.prototype.setItem;"
        "Storage.prototype.setItem = function (...item) {"
        "if (this === sessionStorage) return setItem.apply(this, item);"
        "throw new DOMException('full', 'QuotaExceededError'); }"
    )
    box(browser, 0, "yield").send_keys("25")
    # The text "1" must not come back after a reload.
    assert entries(browser) == [] and "not kept" in note(browser, 0, "yield")
    updated = text(browser, "updated")
    wait(browser, lambda: text(browser, "updated") != updated)
    assert "does not store entries" in text(browser, "unkept")
    assert box(browser, 0, "yield").get_attribute("value") == "125"
    # As soon as there is room, the entry is kept.
    browser.execute_script("Storage.prototype.setItem = setItem")
    wait(browser, lambda: text(browser, "unkept") == "" and entries(browser))
    assert entries(browser)[0]["texts"] == {"yield": "125"}
    send(browser)
    assert values_of(study, 0)["yield"] == 125.0


def test_a_text_that_changes_after_the_click_is_not_sent(study, page):
    study.suggest(n=3)
    browser = page(study)
    browser.execute_script(
        "window.isHeld = false; const real = window.fetch; window.fetch = async (path, options) => {"
        "while (isHeld && path.includes('/check')) await new Promise(done => setTimeout(done, 50));"
        "return real(path, options); };"
    )
    for number in range(3):
        box(browser, number, "yield").send_keys("5")
    browser.find_element("id", "work-title").click()
    wait(browser, lambda: note(browser, 2, "yield") == "= 5")
    # After the click, the person writes on in one box and only goes to another one.
    browser.execute_script(
        "isHeld = true; for (const entry of drafts()) entry.readings = bare(); drafts().forEach(keep);"
        "find('send').focus(); find('send').click()"
    )
    box(browser, 1, "yield").send_keys("6")
    box(browser, 2, "yield").click()
    browser.execute_script("isHeld = false")
    wait(browser, lambda: len(entries(browser)) == 2 and "Stored" in text(browser, "stored"))
    assert [values_of(study, i)["yield"] for i in range(3)] == [5.0, None, None]
    assert box(browser, 2, "yield") == browser.switch_to.active_element
    send(browser)
    assert [values_of(study, i)["yield"] for i in range(3)] == [5.0, 56.0, 5.0]


def test_changes_during_a_lost_answer_contradict_other_entries(study, page):
    study.suggest()
    browser = page(study)
    # The first answer is lost; the repetitions wait.
    browser.execute_script(
        "window.bodies = []; window.isHeld = true; const real = window.fetch; window.fetch = async (path, options) => {"
        "if (!path.includes('/observe')) return real(path, options); bodies.push(options.body);"
        "while (isHeld && bodies.length > 1) await new Promise(done => setTimeout(done, 50));"
        "const found = await real(path, options); if (bodies.length === 1) throw new TypeError('lost'); return found; }"
    )
    box(browser, 0, "yield").send_keys("0.5")
    browser.find_element("id", "send").click()
    wait(browser, lambda: len(browser.execute_script("return bodies")) == 2)
    box(browser, 0, "purity").send_keys("7")
    study.as_user("robot").note(0, "do not report the purity")
    browser.execute_script("isHeld = false")
    wait(browser, lambda: len(entries(browser)) == 1)
    browser.find_element("id", "send").click()
    wait(browser, lambda: "Trial 0 has now" in text(browser, "unsent"))
    assert values_of(study, 0) == {"yield": 0.5, "purity": None}


@pytest.mark.parametrize("name", ["constructor", "__proto__"])
def test_outcomes_and_parameters_with_names_of_javascript(lab, page, name):
    space = {name: (0.0, 1.0), "x": (0.0, 1.0)}
    study = bl.Study(
        f"named {name}", lab.url, bl.RandomSearch(space, outcomes={"y": "maximize", name: bl.Record()}, seed=0)
    )
    study.suggest(attrs={name: "A1"})
    study.suggest()
    browser = page(study)
    assert "function" not in text(browser, "worklist") and "A1" in text(browser, "worklist")
    box(browser, 0, "y").send_keys("3")
    assert box(browser, 0, name).get_attribute("value") == ""
    box(browser, 0, name).send_keys("7")
    browser.refresh()
    wait(browser, lambda: box(browser, 0, name) and box(browser, 0, name).get_attribute("value") == "7")
    send(browser)
    assert values_of(study, 0) == {"y": 3.0, name: 7.0}


def test_a_refusal_is_not_kept_as_the_reading_of_a_text(study, page):
    study.suggest(n=2)
    browser = page(study)
    browser.execute_script(
        "window.isRefused = true; const real = window.fetch; window.fetch = async (path, options) =>"
        "isRefused && path.includes('/check') ? new Response('{\"detail\": \"no right\"}', {status: 403})"
        ": real(path, options)"
    )
    box(browser, 0, "yield").send_keys("0.5")
    browser.find_element("id", "work-title").click()
    wait(browser, lambda: note(browser, 0, "yield") == "no right")
    browser.execute_script("isRefused = false")
    wait(browser, lambda: note(browser, 0, "yield") == "= 0.5")
    send(browser)


def test_a_reload_does_not_renew_the_eight_hours(study, page):
    browser = page(study)
    wait(browser, lambda: browser.execute_script("return sessionStorage.getItem(LAST)"))
    browser.execute_script("round += 1; sessionStorage.setItem(LAST, String(Date.now() - 9 * 3600e3))")
    browser.refresh()
    wait(browser, lambda: "nothing was typed for 8 hours" in text(browser, "message"))


def test_the_bar_does_not_cover_the_box_with_the_focus(study, page):
    from selenium.webdriver import Keys

    study.suggest(n=12)
    browser = page(study)
    set_width(browser, 360)
    box(browser, 0, "yield").send_keys("1")
    hidden = "const e = document.activeElement, r = e.getBoundingClientRect();"
    hidden += "return document.elementFromPoint(r.left + r.width / 2, r.top + r.height / 2) !== e"
    for key in [Keys.ENTER] * 23 + [Keys.SHIFT + Keys.ENTER] * 23:
        browser.switch_to.active_element.send_keys(key)
        assert not browser.execute_script(hidden)
    set_width(browser, 1280)
    browser.switch_to.active_element.send_keys(Keys.ENTER * 11)
    for _ in range(40):
        browser.switch_to.active_element.send_keys(Keys.SHIFT + Keys.TAB)
        assert not browser.execute_script(hidden)
