"""Hostile texts stay texts at all places of the page and of requests: markup, formulas, escapes, right-to-left marks,
and names of JavaScript's members."""

import csv
import json

import pytest

import belated as bl
from campaigns import chromium, service
from tests.system.serve.browser import complaints, log_in, open_page, text, wait

TEXTS = [
    "<img src=//evil.example/x onerror='window.hit=1'>",
    "</script><script>window.hit=1</script>",
    "\"'><svg onload=window.hit=1>",
    "javascript:window.hit=1",
    "${window.hit=1}{{window.hit=1}}`",
    '=HYPERLINK("http://evil.example";"x")',
    "@SUM(A1)",
    "+1;=2",
    "&lt;b&gt;%3Cb%3E\\u003cb\\x3cb",
    "url(//evil.example/x)",
    "__proto__",
    "constructor",
    "toString",
    "hasOwnProperty",
    "then",
    "\u05d0\u05d1",
]
TURNED = "\u202egnp.\u2066<i>"  # names must be printable, and this text is not
NAME = "<img/src=//evil.example/x/onerror=window.hit=1>"
TOKENS = {NAME: "token-of-the-image-0123456789", "__proto__": "token-of-the-member-0123456789"}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server with hostile names of users and studies. Each text is the name of a parameter and of an outcome."""
    reason = service.missing()
    if reason is not None:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("hostile")
    tokens = folder / "tokens.txt"
    tokens.touch(0o600)
    lines = "".join(f"work {name} {token}\n" for name, token in TOKENS.items())
    tokens.write_text(lines + "read \u05d0\u05d1 token-of-the-letters-0123456789\n", encoding="utf-8")
    url = f"sqlite:///{folder / 'studies.db'}"
    for i, name in list(enumerate(TEXTS))[::2]:
        others = [TEXTS[i - 1], TEXTS[i - 2]]
        optimizer = bl.RandomSearch(
            {name: TEXTS, others[0]: (0.0, 1.0), others[1]: [TURNED, name]},
            outcomes={name: "maximize", others[0]: bl.Record()},
            context={others[1] + " ": (0.0, 1.0)},
            curve=bl.Curve(9),
            seed=i,
        )
        study = bl.Study(name, url, optimizer).as_user(name)
        attrs = {key: value for key in TEXTS for value in (TURNED + key,)}
        trials = study.suggest(n=6, attrs=attrs | {"well": name}, context={others[1] + " ": 0.5})
        study.report(trials[0], 1.0, step=3)
        study.observe(trials[0], {name: 1.0, others[0]: 2.0}, attrs={others[0]: TURNED})
        study.note(trials[0], f"{name}\n{TURNED}")
        study.fail(trials[1], error=f"{name}\x1b[31m{TURNED}")
        study.observe(trials[2], {name: 1.0})
        study.withdraw(trials[2], reason=f"{TURNED}{name}", outcome=name)
    with service.Service(url, "--token-file", str(tokens), token=TOKENS[NAME]) as running:
        yield running
        code, said = running.stop()
        assert code == 0 and "Traceback" not in said and "evil" not in said and "\x1b" not in said, said


@pytest.fixture(scope="module")
def watched(tmp_path_factory, browser):
    """A browser that records the requests of pages. (The browser of other tests shows that one can be started.)"""
    started = chromium.browser(downloads=tmp_path_factory.mktemp("downloads"), logs=("browser", "performance"))
    yield started
    started.quit()


def addresses_of(browser):
    """Return the addresses that were requested since the last call."""
    messages = [json.loads(line["message"])["message"] for line in browser.get_log("performance")]
    sent = [each["params"] for each in messages if each["method"] == "Network.requestWillBeSent"]
    return [each["request"]["url"] for each in sent if each["documentURL"] != "data:,"]


def check_no_script_ran(browser):
    """Check that no text has become markup, a script or a property of all objects."""
    assert browser.execute_script("return window.hit") is None
    inside = ", ".join(f"{outer} :is(img, b, i, script, [onload], [onerror])" for outer in ("header", "main", "dialog"))
    markup = browser.execute_script(f"return [...document.querySelectorAll('{inside}')].map(each => each.outerHTML)")
    assert markup == []
    members = "Object.keys(Object.prototype).concat(Object.keys(Function.prototype))"
    assert browser.execute_script(f"return {members}") == []


def close(browser):
    browser.find_element("id", "dialog-close").click()


def show_study(browser, name):
    """Choose a study."""
    browser.execute_script(
        "find('name').value = arguments[0]; find('name').dispatchEvent(new Event('change', {bubbles: true}))", name
    )
    wait(browser, lambda: browser.title == f"{name} – belated")


def show_dialogs(browser, name):
    """Open the dialogs of a study: trials, the next plate, an experiment, a paste and a file."""
    for number in (0, 1, 2, 3):
        browser.execute_script("showTrial(latest.study, arguments[0])", number)
        wait(browser, lambda: "History" in text(browser, "dialog"))
        browser.execute_script("for (const each of document.querySelectorAll('details')) each.open = true")
        check_no_script_ran(browser)
        close(browser)
    for button in ("next", "off-plan"):
        browser.find_element("id", button).click()
        wait(browser, lambda: name in text(browser, "dialog"))
        check_no_script_ran(browser)
        close(browser)
    browser.execute_script(
        "const clipboardData = new DataTransfer(), box = document.querySelector('.box'), [name] = arguments;"
        "const table = [['number', `outcome_${name}`, name], ['3', name, 'x'], [name, '1', '2']];"
        "clipboardData.setData('text/plain', table.map(row => row.join('\\t')).join('\\n'));"
        "box.focus(); box.dispatchEvent(new ClipboardEvent('paste', {clipboardData, bubbles: true, cancelable: true}))",
        name,
    )
    wait(browser, lambda: browser.find_element("id", "dialog").is_displayed())
    check_no_script_ran(browser)
    close(browser)
    browser.execute_script(
        'const data = new DataTransfer(), [name] = arguments, cell = `"${name.replaceAll(\'"\', \'""\')}"`;'
        "data.items.add(new File([`number,study_id,${cell},__proto__\\n3,${cell},${cell},1\\n`], `${name}.csv`));"
        "document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true}))",
        name,
    )
    wait(browser, lambda: name in text(browser, "dialog"))
    check_no_script_ran(browser)
    close(browser)


def test_hostile_texts_stay_texts_on_the_page(watched, served):
    pytest.importorskip("pandas")
    browser = watched
    log_in(browser, served)
    for name in TEXTS[::2]:
        show_study(browser, name)
        wait(browser, lambda name=name: name in text(browser, "worklist") and text(browser, "figures"))
        check_no_script_ran(browser)
        show_dialogs(browser, name)
        box = browser.execute_script("return [...rows.values()].at(-1).boxes.get(arguments[0])", name)
        box.send_keys(name)
        browser.find_element("id", "work-title").click()
        wait(browser, lambda: "cannot be sent yet" in text(browser, "open"))
        check_no_script_ran(browser)
        # No cell of the files is a formula.
        for file in ("csvOf([...trials.values()])", "worklistCsv(latest.study, chosenTrials())"):
            content = browser.execute_script(f"return {file}")
            cells = [cell for row in csv.reader(content.splitlines()) for cell in row]
            assert not [each for each in cells if each[:1] in tuple("=+@")]
    # Entries of a user are listed for another one by the user's name.
    open_page(browser, served)
    browser.find_element("id", "forget").click()
    wait(browser, lambda: "are not sent" in text(browser, "dialog"))
    browser.find_element("css selector", "#dialog-content button").click()
    log_in(browser, served, TOKENS["__proto__"], "#__proto__")
    wait(browser, lambda: f"{len(TEXTS[::2])} values of another user" in text(browser, "unsent"))
    browser.find_element("css selector", "#unsent button").click()
    assert f"{NAME}, {TEXTS[0]}: trial 5: {TEXTS[0]} {TEXTS[0]}" in text(browser, "unsent")
    check_no_script_ran(browser)
    # The user "__proto__" reports a value.
    wait(browser, lambda: browser.find_elements("css selector", ".box") and text(browser, "figures"))
    number = browser.execute_script("return [...rows.keys()][0]")
    browser.execute_script("return rows.get(arguments[0]).boxes.get('__proto__')", number).send_keys("0.5")
    browser.find_element("id", "send").click()
    wait(browser, lambda: "Stored: trial" in text(browser, "stored"))
    with served.client() as client:
        past = client.get(f"/v1/studies/__proto__/trials/{number}/history").json()["events"]
    assert past[-1]["by"] == "__proto__"
    assert past[-1]["results"] == [{"outcome": "__proto__", "what": "new", "value": 0.5, "std": None, "replaced": None}]
    assert complaints(browser) == []
    addresses = addresses_of(browser)
    assert len(addresses) > 100
    assert {each for each in addresses if not each.startswith((f"{served.address}/", "data:", "about:"))} == set()


HEADERS = [
    ("Host", "evil.example"),
    ("Origin", "http://evil.example"),
    ("Referer", "http://evil.example/<script>"),
    ("X-Forwarded-Host", "evil.example"),
    ("X-Forwarded-Proto", "evil"),
    ("User-Agent", TEXTS[0]),
    ("Accept", "text/html, evil/*"),
    ("Accept-Language", TEXTS[1]),
    ("Cookie", "token=evil; belated-token=evil"),
    ("Content-Type", "text/html; evil"),
    ("X-HTTP-Method-Override", "DELETE"),
    ("evil", "\u05d0".encode()),
]


@pytest.mark.parametrize(("name", "value"), HEADERS, ids=range(len(HEADERS)))
def test_headers_change_no_answer(served, name, value):
    import httpx

    def answers(headers):
        token = {"Authorization": f"Bearer {served.token}"}
        for path in ("/", "/docs", "/openapi.json", "/v1/studies", "/v1/none", "/v1/studies/none/trials/x"):
            for more in ({}, token):
                answer = httpx.get(f"{served.address}{path}", headers=more | headers, timeout=60)
                kept = {key: each for key, each in answer.headers.items() if key != "date"}
                yield answer.status_code, kept, answer.content

    found = list(answers({name: value}))
    assert found == list(answers({}))
    for _, headers, content in found:
        assert b"evil" not in content.replace(TEXTS[0].encode(), b"") or b'"studies":' in content
        assert not [key for key in headers if key.startswith("access-control") or key == "set-cookie"]
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("given", [*TEXTS, TURNED], ids=range(len(TEXTS) + 1))
def test_texts_in_refusals_are_data(served, given):
    from urllib.parse import quote

    place = quote(given, safe="")
    with served.client() as client:
        answers = [
            client.get(f"/v1/studies/{place}none/trials"),
            client.get(f"/v1/studies/none/trials/{place}"),
            client.get("/v1/studies/then/trials", params={"sort": given, "state": given, given: given}),
            client.post("/v1/studies/then/suggest", json={given: given, "key": given}),
            client.post("/v1/studies/then/suggest", json={"fixed": {given: given}}),
            client.post("/v1/studies/then/trials/3/observe", json={"value": {given + "x": 1.0}}),
            client.post("/v1/studies/then/trials/3/observe", json={"value": given}),
            client.post("/v1/studies/then/trials/3/note", json={"remark": given, "by": given}),
            client.post("/v1/studies/then/table", json={"columns": [given], "rows": [[given]]}),
        ]
        for answer in answers:
            assert 400 <= answer.status_code < 500, (answer.status_code, answer.text)
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.content.isascii() and b"\x1b" not in answer.content
