"""The web page and its dialogs have no serious findings of axe-core, in both themes, on narrow and wide windows."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

import belated as bl
from campaigns import service
from tests.system.serve.browser import complaints, log_in, set_width, text, wait

SERIOUS = {"serious", "critical"}
RUN = "const done = arguments[0]; axe.run({resultTypes: ['violations']}).then(found => done(found.violations))"
TOKENS = {"anna": "token-of-anna-0123456789", "rita": "token-of-rita-0123456789"}


@pytest.fixture(scope="module")
def axe():
    """The text of axe-core's script. The package that has it is not a dependency of the tests, because it needs
    Playwright, which has 40 MB; its script needs no other file."""
    spec = find_spec("axe_playwright_python")
    if spec is None or spec.origin is None:
        missing = pytest.fail if os.environ.get("CI") else pytest.skip
        missing("axe-core is not installed: pip install --no-deps axe-playwright-python==0.1.8")
    return Path(spec.origin).with_name("axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server with a study that has trials in every state."""
    reason = service.missing()
    if reason is not None:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("accessible")
    tokens = folder / "tokens.txt"
    tokens.touch(0o600)
    tokens.write_text(f"work anna {TOKENS['anna']}\nread rita {TOKENS['rita']}\n")
    url = f"sqlite:///{folder / 'studies.db'}"
    optimizer = bl.BayesOpt(
        {"T": (20.0, 120.0), "solvent": ["water", "ethanol"]},
        outcomes={"yield": "maximize", "purity": bl.Record()},
        curve=bl.Curve(9),
        seed=0,
    )
    study = bl.Study("plate", url, optimizer)
    for trial in study.suggest(n=12):
        study.report(trial, trial.params["T"], step=3)
        study.observe(trial, {"yield": trial.params["T"], "purity": 1.0})
    with pytest.warns(bl.BelatedWarning, match="expected"):
        study.observe(study.suggest(), {"yield": -5e4, "purity": 1.0})
    study.fail(study.suggest(), error="spilled")
    study.withdraw(0, reason="wrong flask")
    study.note(1, "cracked")
    study.suggest(n=6, attrs=[{"well": f"A{i}"} for i in range(1, 7)], expires_after=3600)
    study.suggest(expires_after=1e-3)
    with service.Service(url, "--token-file", str(tokens), token=TOKENS["anna"]) as running:
        yield running, study


def press(browser, label, within="body"):
    """Press the button with a label."""
    [button] = [each for each in browser.find_elements("css selector", f"{within} button") if each.text == label]
    button.click()


def states_of(browser, running, study):
    """Show the page in all its states, one after another; yield the name of each."""
    wait(browser, lambda: "Observed" in text(browser, "figures") and text(browser, "forecast"))
    yield "the page"
    pending = browser.execute_script("return [...rows.keys()]")[1:]
    boxes = browser.find_elements("css selector", ".box")
    for box, written in zip(boxes, ("1,234", "5 %", "12", "9e9"), strict=False):
        box.send_keys(written)
    browser.find_element("id", "work-title").click()
    wait(browser, lambda: "cannot be sent yet" in text(browser, "open"))
    study.note(pending[1], f"remark {len(study.trial(pending[1]).remarks)}")  # an equal remark would change nothing
    wait(browser, lambda: "changed: refresh" in text(browser, "changes"))
    yield "texts that are read"
    browser.find_element("id", "send").click()
    wait(browser, lambda: text(browser, "unsent"))
    yield "values that are not sent"
    browser.execute_script("for (const each of entries.values()) drop(each); document.activeElement.blur()")
    browser.execute_script("drawEntries(); drawWorklist(latest.study, true)")
    for number in (0, 1, 12, pending[-1]):
        browser.execute_script("showTrial(latest.study, arguments[0])", number)
        wait(browser, lambda: "History" in text(browser, "dialog"))
        browser.execute_script("for (const each of find('dialog').querySelectorAll('details')) each.open = true")
        yield f"the dialog of trial {number}"
        browser.find_element("id", "dialog-close").click()
    for button, content in (("next", "Number of trials"), ("off-plan", "solvent")):
        browser.find_element("id", button).click()
        wait(browser, lambda content=content: content in text(browser, "dialog"))
        yield f"the dialog of {button}"
        browser.find_element("id", "dialog-close").click()
    browser.execute_script(
        "const clipboardData = new DataTransfer(), box = document.querySelector('.box');"
        "clipboardData.setData('text/plain', 'well\\tyield\\nA2\\t1\\nD9\\t2\\n'); box.focus();"
        "box.dispatchEvent(new ClipboardEvent('paste', {clipboardData, bubbles: true, cancelable: true}))"
    )
    wait(browser, lambda: "D9" in text(browser, "dialog"))
    yield "the dialog of a paste"
    browser.find_element("id", "dialog-close").click()
    table = study.worklist()
    table["outcome_yield"] = ["0.5", "12 %", *[None] * (len(table) - 2)]
    browser.execute_script(
        "const data = new DataTransfer(); data.items.add(new File([arguments[0]], 'plate.csv'));"
        "document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true}))",
        table.to_csv(index=False),
    )
    wait(browser, lambda: "12 %" in text(browser, "dialog"))
    yield "the dialog of a file"
    browser.find_element("id", "dialog-close").click()
    browser.execute_script("rows.get(arguments[0]).tick.click()", pending[-1])
    press(browser, "Abandon 1 trial")
    wait(browser, lambda: "Abandon trial" in text(browser, "dialog"))
    yield "the question before trials are abandoned"
    browser.find_element("id", "dialog-close").click()
    running.kill()
    wait(browser, lambda: "does not answer" in text(browser, "message"))
    yield "without a server"
    running.start()


def findings(browser, axe):
    """Return a line for each serious finding on the page as it is now."""
    # The devtools execute the script, which the policy of the page does not allow.
    browser.execute_script(f"if (typeof axe === 'undefined') {{ {axe} }}")
    found = []
    for each in browser.execute_async_script(RUN):
        for node in each["nodes"] if each["impact"] in SERIOUS else []:
            why = " ".join(node["failureSummary"].split())
            found.append(f"{each['impact']} {each['id']}: {node['html'][:200]} {why[:300]}")
    return found


def test_axe_finds_an_image_without_a_text(browser, served, axe):
    running, _ = served
    browser.get(running.address)
    browser.execute_script("document.body.append(new Image(9, 9))")
    assert [each.split(": ")[0] for each in findings(browser, axe)] == ["critical image-alt"]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_axe_has_no_serious_findings(browser, served, axe, theme, width):
    pytest.importorskip("pandas")
    running, study = served
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    set_width(browser, width)
    browser.get(running.address)
    found = {"the login": findings(browser, axe)}
    log_in(browser, running, TOKENS["anna"], "#plate")
    for state in states_of(browser, running, study):
        found[state] = findings(browser, axe)
    log_in(browser, running, TOKENS["rita"], "#plate")
    wait(browser, lambda: "Observed" in text(browser, "figures"))
    found["the page of a reader"] = findings(browser, axe)
    assert len(found) == 15 and not any(found.values()), found
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    browser.get(running.address + "/no-such-page")
    browser.execute_script("localStorage.clear()")
    assert [each for each in complaints(browser) if "CONNECTION_REFUSED" not in each] == []
