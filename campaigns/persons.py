"""Persons who type values into the web page of `belated serve`, and programs that report values for the same trials.

Each person has a Chromium, and each person and program has a token with a name. A person types values into boxes of the
worklist, sends them, sometimes reloads the page, and answers the page's questions until each value is stored or
discarded. A program reads the trials, and sends a request with `expected` and a key until it is answered. All values
are different, so that the events of the study show which value was stored where, how often, and under which name.
"""

import json
import random
import re
import threading
import time
from collections import Counter, defaultdict

import chromium
import harness
import service

import belated as bl

OUTCOMES = {"yield": "maximize", "purity": bl.Record()}
STUDY = "/v1/studies/study"
FEWEST = 30  # trials in flight
PATIENCE = 300.0  # seconds until the page must have stored or refused a value, although the server is killed meanwhile

LOOK = """
return {
  open: [...rows.values()].flatMap(row => [...row.boxes.values()])
    .filter(box => box.isConnected && !box.disabled && box.value === "").map(box => [box.trial.number, box.outcome]),
  entries: [...entries.values()].map(({id, number, texts, status, reason}) => ({id, number, texts, status, reason})),
  listed: [...document.querySelectorAll("#entries > li")].map(each =>
    [each.innerText, [...each.querySelectorAll(".reason")].map(reason => reason.innerText)]),
}
"""
BOX = "return rows.get(arguments[0])?.boxes.get(arguments[1])"


class Journal:
    """What persons and programs have sent, and how the server has answered."""

    def __init__(self):
        self.values = {}  # value → (user, trial, outcome, time of the answer), of the values that were acknowledged
        self.started = []  # numbers of the trials that programs were given
        self.others = {}  # key → (user, trial), of the acknowledged requests that report no value
        self.attempts = Counter()  # key → how often the request was sent
        self.by_page = set()  # keys of the requests of pages
        self.refused = Counter()  # reason → how often
        self.discarded = 0
        self.errors = []
        self.sending = threading.Event()  # a person has clicked on "Send"

    def refuse(self, who, error, reason):
        """Count a refusal, which must say why."""
        if not reason:
            self.errors.append(f"{who}: a refusal {error} without a reason")
        self.refused[f"{who}: {error}"] += 1


def study(place):
    """Create the study of persons and programs."""
    return bl.Study("study", harness.url(place), bl.RandomSearch(harness.BOX, outcomes=OUTCOMES, seed=0))


def value_of(slot, counter):
    """Return the text of a value that nobody else sends."""
    return f"{slot}.{counter:06d}"


class Program(threading.Thread):
    """A program that starts trials, and reports, replaces and takes back values."""

    def __init__(self, running, slot, user, token, seed, journal, ended):
        super().__init__(daemon=True)
        self.chance, self.journal, self.ended = random.Random(seed), journal, ended
        self.slot, self.user, self.counter, self.own = slot, user, 0, {}
        self.client = running.client(token)

    def run(self):
        try:
            with self.client:
                while not self.ended.is_set():
                    self.act()
        except Exception as error:
            self.journal.errors.append(f"{self.user} ended with {type(error).__name__}: {error}")

    def ask(self, path, body=None):
        """Send a request until it is answered. Return its answer, or None if it was refused."""
        answer, attempts = service.answered(self.client, f"{STUDY}{path}", body, time.monotonic() + 600)
        if body is not None:
            self.journal.attempts[body["key"]] += attempts
        if answer.status_code == 200:
            return answer.json()
        problem = answer.json()
        if answer.status_code != 409 or not problem["trials"]:
            self.journal.errors.append(f"{self.user} {path} {body}: {answer.status_code} {answer.text}")
        self.journal.refuse("programs", problem.get("error"), problem["detail"])
        return None

    def act(self):
        """Send one request."""
        self.counter += 1
        body, kind = {"key": f"{self.user}-{self.counter}"}, self.chance.random()
        pending = self.ask("/trials?state=pending&limit=1000")["trials"]
        if len(pending) < FEWEST:
            n = self.chance.randint(1, 4)
            self.journal.started += [trial["number"] for trial in self.ask("/suggest", body | {"n": n})["trials"]]
            return
        if kind < 0.2 and self.own:
            number, outcome = self.chance.choice(sorted(self.own))
            trial = self.ask(f"/trials/{number}")
        else:
            trial = self.chance.choice(pending)
            number, outcome = trial["number"], self.chance.choice(trial["missing"])
        time.sleep(self.chance.uniform(0, 0.3))  # others may change the trial meanwhile
        body["expected"] = trial["event"]
        if kind < 0.05 and trial["outcomes"][outcome]["value"] is not None:
            if self.ask(f"/trials/{number}/withdraw", body | {"outcome": outcome, "reason": "repeated"}):
                self.journal.others[body["key"]] = (self.user, number)
        elif 0.05 <= kind < 0.1:
            if self.ask(f"/trials/{number}/note", body | {"remark": body["key"]}):
                self.journal.others[body["key"]] = (self.user, number)
        else:
            value = float(value_of(self.slot, self.counter))
            body |= {"value": {outcome: value}, "amend": kind < 0.2}
            if self.ask(f"/trials/{number}/observe", body):
                self.journal.values[value] = (self.user, number, outcome, time.time())
                self.own[number, outcome] = value


class Person(threading.Thread):
    """A person who types values into the page."""

    def __init__(self, running, slot, user, token, seed, journal, ended):
        super().__init__(daemon=True)
        self.chance, self.journal, self.ended = random.Random(seed), journal, ended
        self.slot, self.user, self.token, self.counter, self.n_stored = slot, user, token, 0, 0
        self.address, self.typed = running.address, {}

    def run(self):
        browser = self.browser = chromium.browser(logs=("browser", "performance"))
        try:
            browser.set_window_size(1280, 900)
            browser.get(f"{self.address}/#study")
            browser.find_element("id", "token").send_keys(self.token)
            browser.find_element("css selector", "#login button").click()
            while not self.ended.is_set():
                self.type()
                self.settle()
        except Exception as error:
            self.journal.errors.append(f"{self.user} ended with {type(error).__name__}: {error}")
        finally:
            browser.quit()

    def look(self):
        """Return what the page shows: its empty boxes, its entries and the list of those that are not sent."""
        return self.browser.execute_script(LOOK)

    def reload(self):
        """Reload the page sometimes, until the server answers."""
        if self.chance.random() > 0.15:
            return
        self.drain()
        self.browser.refresh()
        # The server may be down, or may have been killed while it sent the page.
        while not self.browser.execute_script("return typeof refresh === 'function' && typeof isFormer === 'function'"):
            time.sleep(0.2)
            self.browser.refresh()
            self.browser.get_log("browser")  # the errors of a page that was not sent to its end

    def type(self):
        """Type values into up to three boxes."""
        from selenium.common.exceptions import WebDriverException
        from selenium.webdriver import Keys

        boxes = self.look()["open"][:FEWEST]
        if not boxes:
            time.sleep(0.2)
        for number, outcome in self.chance.sample(boxes, min(len(boxes), self.chance.randint(1, 3))):
            self.counter += 1
            text = value_of(self.slot, self.counter)
            try:
                box = self.browser.execute_script(BOX, number, outcome)
                box.click()
                box.send_keys(text, Keys.ENTER)
            except (WebDriverException, AttributeError):
                pass  # the box has gone meanwhile
        # These are the values that the page has taken over.
        for entry in self.look()["entries"]:
            self.typed |= {(entry["number"], outcome): text for outcome, text in entry["texts"].items()}
        self.reload()

    def settle(self):
        """Send the values, and answer the questions of the page until each value is stored or discarded."""
        end, discarded = time.monotonic() + PATIENCE, set()
        while self.typed:
            look = self.look()
            kept = {(entry["number"], outcome): entry for entry in look["entries"] for outcome in entry["texts"]}
            for place, text in list(self.typed.items()):
                if place in kept:
                    continue
                del self.typed[place]
                if place in discarded:
                    self.journal.discarded += 1
                    continue
                # The page says that the value is stored.
                self.journal.values[float(text)] = (self.user, *place, time.time())
                self.n_stored += 1
            listed = [each for each in look["entries"] if each["status"] != "waiting"]
            for entry in listed:
                reasons = [each for text, each in look["listed"] if f"trial {entry['number']}:" in text]
                if entry["status"] == "draft" and not reasons:
                    if self.click("#send"):
                        self.reload()
                elif reasons:
                    reason = re.sub(r"\d[\d.]*", "N", entry["reason"] or "the trial has a value")
                    is_told = any(f"Trial {entry['number']} has now: " in each for each in reasons[0])
                    if entry["status"] != "refused" and not is_told:
                        break  # the page has not requested the present values of the trial yet
                    self.journal.refuse("pages", reason, entry["reason"] if entry["status"] == "refused" else is_told)
                    if self.decide(entry["number"]):
                        discarded |= {place for place, each in kept.items() if each["id"] == entry["id"]}
                break
            if time.monotonic() > end:
                self.journal.errors.append(f"{self.user}: {self.typed} was not settled: {look}")
                self.typed.clear()
            time.sleep(0.1)
        self.drain()

    def click(self, selector):
        """Click on an element, if it is there; return whether it is."""
        from selenium.common.exceptions import WebDriverException

        try:
            self.browser.find_element("css selector", selector).click()
        except WebDriverException:
            time.sleep(0.2)
            return False
        self.journal.sending.set()
        return True

    def decide(self, number):
        """Press a button of an entry that was not stored. Return whether the entry was discarded."""
        from selenium.common.exceptions import WebDriverException

        try:
            for item in self.browser.find_elements("css selector", "#entries > li"):
                if f"trial {number}:" in item.text:
                    buttons = [each for each in item.find_elements("tag name", "button") if "Show" not in each.text]
                    button = self.chance.choice(buttons)
                    label = button.text
                    button.click()
                    return label == "Discard"
        except WebDriverException:
            pass  # the list was drawn again meanwhile
        return False

    def drain(self):
        """Read the browser's messages: requests of the page, and errors."""
        for line in self.browser.get_log("performance"):
            message = json.loads(line["message"])["message"]
            request = message["params"].get("request", {})
            if message["method"] != "Network.requestWillBeSent" or request["url"].startswith("data:"):
                continue
            if not request["url"].startswith(f"{self.address}/"):
                self.journal.errors.append(f"the page has requested {request['url']}")
            key = json.loads(request.get("postData") or "{}").get("key")
            if key is not None:
                self.journal.attempts[key] += 1
                self.journal.by_page.add(key)
        # Chromium reports requests without an answer, and a second reload without a click before it.
        for line in self.browser.get_log("browser"):
            if not re.search("Failed to load resource|'beforeunload' confirmation", line["message"]):
                self.journal.errors.append(f"{self.user}: console: {line['message']}")


def compare(place, journal, kills, failures):
    """Compare the study with what was acknowledged; return the results. `kills` has the times of the kills."""
    rows, names = [row for row in harness.rows(place) if row[0] == "study"], list(OUTCOMES)
    stored, started, other, present, lost = defaultdict(list), [], {}, {}, 0
    for _, seq, key, body in rows:
        event = json.loads(body)
        [(kind, facts)] = event["what"].items()
        if kind == "Suggested":
            started.append(len(started))
            continue
        has_value = False
        for index, what in facts.get("results", ()):
            if "Withdrawn" in what:
                present[facts["trial"], names[index]] = None
            for fields in (what.get("New"), what.get("Amended")):
                if fields is None:
                    continue
                has_value = True
                present[facts["trial"], names[index]] = value = fields["value"]
                stored[value].append((event.get("by"), facts["trial"], names[index]))
                user, _, _, answered = journal.values.get(value, (None, None, None, 0))
                is_repeated = journal.attempts[key] > 1
                lost += is_repeated and any(event["at"] < kill < answered for kill in kills)
        if not has_value:
            if key in other:
                failures.note(f"event {seq} is there twice: {body}")
            other[key] = (event.get("by"), facts["trial"])
    if sorted(journal.started) != started:
        failures.note(f"{len(journal.started)} trials were given out, and {len(started)} are stored")
    for value, (user, number, outcome, _) in journal.values.items():
        if stored[value] != [(user, number, outcome)]:
            failures.note(f"{value} of {user} for {outcome} of trial {number} is stored as {stored[value]}")
    for value, places in stored.items():
        if places and value not in journal.values:
            failures.note(f"{value} is stored as {places}, and was not acknowledged")
    if other != journal.others:
        failures.note(f"withdrawals and remarks differ: {set(other.items()) ^ set(journal.others.items())}")
    opened = bl.Study.load("study", harness.url(place))
    for (number, outcome), value in present.items():
        if opened.trial(number).outcomes[outcome].value != value:
            failures.note(f"{outcome} of trial {number} is not {value}")
    persons = sum(user.startswith("person") for user, *_ in journal.values.values())
    repeated = {key for key, attempts in journal.attempts.items() if attempts > 1}
    return {
        "events": len(rows),
        "requests": len(journal.attempts),
        "values_of_programs": len(journal.values) - persons,
        "values_of_pages": persons,
        "requests_repeated_by_programs": len(repeated - journal.by_page),
        "requests_repeated_by_pages": len(repeated & journal.by_page),
        "values_stored_before_a_lost_answer": lost,
        "refused": dict(sorted(journal.refused.items())),
        "discarded": journal.discarded,
    }


def work(running, tokens, place, kills, seed, failures, deadline):
    """Let persons and programs work while the server is killed and started again; return the results.

    `tokens` has the token of each user.
    """
    chance, journal, ended = random.Random(seed), Journal(), threading.Event()
    study(place)
    crowd = [
        (Person if user.startswith("person") else Program)(
            running, slot, user, token, chance.randrange(2**32), journal, ended
        )
        for slot, (user, token) in enumerate(tokens.items(), 1)
    ]
    for thread in crowd:
        thread.start()
    persons, times = [each for each in crowd if isinstance(each, Person)], []
    while len(times) < kills and not deadline.over() and not journal.errors:
        # After each start, a page must store a value before the next kill.
        before, end = sum(each.n_stored for each in persons), time.monotonic() + PATIENCE
        while sum(each.n_stored for each in persons) == before and not journal.errors:
            if time.monotonic() > end:
                journal.errors.append(f"after kill {len(times)}, no page has stored a value for {PATIENCE} s")
            time.sleep(0.05)
        if chance.random() < 0.7:  # kill the server while it answers the page
            journal.sending.clear()
            journal.sending.wait(20)
            time.sleep(chance.uniform(0, 0.1))
        else:
            time.sleep(chance.uniform(0, 2))
        times.append(time.time())
        said = running.kill()
        if "Traceback" in said:
            failures.note(f"the server said {said}")
        running.start()
    ended.set()
    for thread in crowd:
        thread.join()
    for error in dict.fromkeys(journal.errors):
        failures.note(error)
    return {"kills": len(times)} | compare(place, journal, times, failures)
