"""Test `belated serve` with valid and invalid requests, and with a server that is killed: python campaigns/serve.py.

First, schemathesis generates valid and invalid requests from the OpenAPI description. No answer may have a status of
5xx, and each answer must agree with the description. Then clients suggest, observe, fail and abandon in one study while
the server is killed with SIGKILL and started again. If the answer to a request is lost, the client repeats the request
with the same key. At the end, the study must contain each acknowledged call exactly once, and must not contain any
other call. With --store postgresql, the studies are stored in PostgreSQL. The program needs fastapi, uvicorn, httpx and
schemathesis, and prints JSON.

With --pages, this number of persons also type values into the web page, in headless Chromium, and the clients report
values for the same trials, each with a token and a name. Each value that was acknowledged to a client, and each value
that a page shows as stored, must be in the study exactly once, at its trial and under the name of its user. Each
refusal must say why. These kills are all SIGKILL. The program then also needs selenium, Chromium and chromedriver.
"""

import random
import sys
import threading
import time
from collections import Counter

import harness
import persons
import service

import belated as bl

STUDIES = ("random", "bayes", "candidates", "seconds")


def some_studies(url):
    """Create studies with different optimizers; each study has a few trials."""
    space = {"x": (0.0, 1.0), "n": bl.Integer(1, 9), "kind": ["a", ("b", 1), None]}
    made = [
        bl.RandomSearch(space, seed=0, context={"day": (0.0, 7.0)}),
        bl.BayesOpt(space, seed=1, direction="minimize"),
        bl.BayesOpt(candidates=[[i, i % 3] for i in range(30)], seed=2, initial=bl.Initial(n=3)),
        bl.RandomSearch(space, seed=3, clock="seconds", fidelity=bl.Fidelity(1, 81, log=True)),
    ]
    for name, optimizer in zip(STUDIES, made, strict=True):
        study = bl.Study(name, url, optimizer)
        context = {"day": 1.0} if name == "random" else None
        for trial in study.suggest(n=6, context=context)[:3]:
            study.observe(trial, float(trial.number))


def ask_everything(running, requests, failures, seed=0, deadline=None):
    """Send requests generated from the OpenAPI description; return how often each status occurred."""
    import requests as http
    import schemathesis
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded
    from hypothesis import strategies as st
    from schemathesis.checks import not_a_server_error
    from schemathesis.core.failures import FailureGroup
    from schemathesis.generation import GenerationMode
    from schemathesis.specs.openapi import checks

    held = [not_a_server_error, checks.status_code_conformance, checks.content_type_conformance]
    held += [checks.response_schema_conformance, checks.negative_data_rejection]
    schema = schemathesis.openapi.from_url(f"{running.address}/openapi.json")
    operations = [each.ok() for each in schema.get_all_operations()]
    statuses, session = Counter(), http.Session()
    session.headers["Authorization"] = f"Bearer {running.token}"
    known = {"name": st.sampled_from(STUDIES), "number": st.integers(0, 8)}
    share = -(-requests // (2 * len(operations)))
    for operation in operations:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            if deadline is not None and deadline.over():
                return statuses

            @seeded(seed)
            @settings(
                max_examples=share,
                database=None,
                deadline=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(operation.as_strategy(generation_mode=mode), st.data())
            def ask(case, data):
                # Names of existing studies and numbers of existing trials are inserted into the requests, because
                # random names and numbers would hardly ever match.
                if sum(statuses.values()) >= requests:
                    return
                # An empty list in the query is not sent, so a request with an invalid list may be valid.
                checked = held[:-1] if [] in (case.query or {}).values() else held
                for place in case.path_parameters or {}:
                    if data.draw(st.integers(0, 4)) > 0:
                        case.path_parameters[place] = data.draw(known[place])
                        checked = held[:-1]
                answer = case.call(session=session)
                statuses[answer.status_code] += 1
                try:
                    case.validate_response(answer, checks=checked)
                except (FailureGroup, AssertionError) as error:
                    failures.note(f"{case.method} {case.formatted_path} {case.query} {case.body!r}: {error}")

            try:
                ask()
            except Exception as error:
                # schemathesis raises this error, for example, if every request for an operation is valid.
                if "Unsatisfiable" not in type(error).__name__ and "generate" not in str(error):
                    raise
    return statuses


def work(running, slot, calls, seed, done, errors, end):
    """Send calls, repeat each call until it is answered, and report the answered calls."""
    chance, pending, repeated = random.Random(seed), [], 0
    path = "/v1/studies/study"
    try:
        with running.client() as client:
            for call in range(calls):
                kind = chance.choice(["suggest"] * 5 + (["observe"] * 4 + ["fail", "abandon"] if pending else []))
                body = {"key": f"{slot}-{call}"}
                where, number = f"{path}/suggest", None
                if kind == "suggest":
                    body["n"] = chance.choice([1, 1, 1, 3])
                else:
                    number = pending.pop(chance.randrange(len(pending)))
                    where = f"{path}/trials/{number}/{kind}"
                    if kind == "observe":
                        body |= {"value": chance.random(), "replicate": True}
                answer, attempts = service.answered(client, where, body, end)
                repeated += attempts > 1
                if answer.status_code != 200:
                    errors.append(f"{kind} {body}: {answer.status_code} {answer.text}")
                    continue
                if kind == "suggest":
                    trials = answer.json()["trials"]
                    pending += [trial["number"] for trial in trials]
                    done += [("suggest", trial["number"], trial["params"]) for trial in trials]
                else:
                    done.append((kind, number, body.get("value")))
    except Exception as error:
        errors.append(f"client {slot} ended with {type(error).__name__}: {error}")
    done.append(("repeated", slot, repeated))


def compare(study, done, failures):
    """Compare the acknowledged calls with the study."""
    state = {number: (params, state, value) for number, params, state, value in harness.state(study)}
    started = [number for kind, number, _ in done if kind == "suggest"]
    if sorted(started) != sorted(state):
        failures.note(
            f"{len(started)} trials were given out, {len(set(started))} of them different, {len(state)} stored"
        )
    ends = {"observe": "observed", "fail": "failed", "abandon": "abandoned"}
    for kind, number, what in done:
        params, found, value = state.get(number, (None, None, None))
        if kind == "suggest" and params != what:
            failures.note(f"trial {number} was {what}, and is {params}")
        if kind in ends and (found != ends[kind] or value != what):
            failures.note(f"trial {number} was reported {kind} {what}, and is {found} {value}")
    # Each key must have exactly one event, and every event must have been acknowledged.
    written = study._log.n_events()
    reported = sum(kind in ends for kind, _, _ in done)
    if written != len(started) + reported:
        failures.note(f"{len(started)} starts and {reported} reports were acknowledged, {written} events are stored")
    return written


def restart(running, kills, clients, calls, seed, failures, deadline, place):
    """Repeatedly kill and restart the server while clients send requests."""
    chance = random.Random(seed)
    harness.random_study(place)
    done, errors, end = [], [], time.monotonic() + 3600
    crowd = [
        threading.Thread(target=work, args=(running, slot, calls, chance.randrange(2**32), done, errors, end))
        for slot in range(clients)
    ]
    for thread in crowd:
        thread.start()
    killed = 0
    while killed < kills and any(thread.is_alive() for thread in crowd) and not deadline.over():
        # The server is killed after a random number of answered calls and not after a time, so that every kill
        # interrupts calls, on fast and on slow machines.
        wanted = len(done) + chance.randint(clients, max(clients, clients * calls // (kills + 1)))
        while len(done) < wanted and any(thread.is_alive() for thread in crowd):
            time.sleep(0.005)
        if killed % 5 == 4:
            code, said = running.stop()
            if code != 0:
                failures.note(f"SIGTERM: the server ended with {code}: {said}")
        else:
            running.kill()
        killed += 1
        running.start()
    for thread in crowd:
        thread.join()
    for error in errors:
        failures.note(error)
    # The server has the study open in another process.
    events = compare(bl.Study.load("study", harness.url(place)), done, failures)
    repeated = sum(what for kind, _, what in done if kind == "repeated")
    return {"stops": killed, "clients": clients, "events": events, "requests_repeated": repeated}


def with_pages(folder, place, kills, clients, pages, seed, failures, deadline):
    """Kill and restart the server while persons and programs work; return the results."""
    users = [f"person-{i}" for i in range(1, pages + 1)] + [f"program-{i}" for i in range(1, clients + 1)]
    tokens = {user: f"token-of-{user}-0123456789" for user in users}
    # The first person may report values, and the others may also replace them.
    roles = {user: "report" if user == "person-1" else "work" for user in users}
    file = service.token_file(folder, [(roles[user], user, token) for user, token in tokens.items()])
    with service.Service(harness.url(place), "--token-file", str(file)) as running:
        found = persons.work(running, tokens, place, kills, seed, failures, deadline)
    return {"pages": pages, "clients": clients} | found


def run(requests=10_000, kills=50, clients=8, calls=400, pages=0, seed=0, store="sqlite", limit=None):
    """Return all results."""
    failures, deadline = harness.Failures(), harness.Deadline(limit)
    figures = {}
    with harness.folder() as folder, harness.place(store, folder) as place:
        url = harness.url(place)
        some_studies(url)
        with service.Service(url) as running:
            if requests:
                statuses = ask_everything(running, requests, failures, seed, deadline)
                figures["requests"] = sum(statuses.values())
                figures["statuses"] = dict(sorted(statuses.items()))
                code, said = running.stop()
                if code != 0 or "Traceback" in said:
                    failures.note(f"the server ended with {code}: {said}")
                running.start()
            if (kills or clients) and not pages:
                figures |= restart(running, kills, clients, calls, seed, failures, deadline, place)
        if pages:
            figures |= with_pages(folder, place, kills, clients, pages, seed, failures, deadline)
        for problem in harness.audit(place):
            failures.note(problem)
    return figures | failures.figures()


if __name__ == "__main__":
    sys.exit(
        harness.main(__doc__, run, requests=10_000, kills=50, clients=8, calls=400, pages=0, seed=0, store="sqlite")
    )
