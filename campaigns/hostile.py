"""Check that stores with hostile content are refused and do not run code: python campaigns/hostile.py.

Each case changes an intact store by SQL statements. Hostile events get valid checksums. A process with limits on memory
and time then lists, shows, checks, exports and salvages the store. The process also opens the study, observes and
suggests. Every call must give the right data or raise StoreError; every command may also end with an error exit code.
Triggers must not have run. The program prints JSON.

With --serve 1, `belated serve` serves each changed store with TLS and users with roles, and a client with the role
"work" sends all requests that read, an observation and a request for a suggestion. Each answer must have the status 200
or be an error with a message, and none may have the status 500. The program then also needs fastapi, uvicorn, httpx and
OpenSSL.
"""

import json
import os
import resource
import signal
import sqlite3
import ssl
import sys
import time
import traceback
from contextlib import closing
from pathlib import Path

import harness
import service

import belated as bl
from belated import cli
from belated.store import checksums as events

MEMORY = 3 << 30  # bytes of address space that a reader may use
TIME = 60.0  # seconds

# Bodies that replace the body of event 3 (an observation of trial 0): valid text, but not valid events.
X = '{"numbers":[0.5,0.5]}'
BODIES = {
    "empty": "",
    "not JSON": "{Resulted",
    "null": "null",
    "number": "17",
    "string": '"Resulted"',
    "list": "[]",
    "no kind": "{}",
    "two kinds": '{"now":1.0,"what":{"Resulted":{"trial":0,"results":[[0,{"New":{"value":0.5}}]]},'
    '"Enqueued":{"point":{"numbers":[0.5,0.5]}}}}',
    "unknown kind": '{"now":1.0,"what":{"Exploded":{"trial":0}}}',
    "python object": '{"py/reduce":[{"py/type":"os.system"},{"py/tuple":["touch TRACE"]}]}',
    "class": '{"__class__":"os.system","args":["touch TRACE"]}',
    "no fields": '{"now":1.0,"what":{"Resulted":{}}}',
    "fields are a list": '{"now":1.0,"what":{"Resulted":[0,[[0,"Failed"]],{}]}}',
    "fields are null": '{"now":1.0,"what":{"Resulted":null}}',
    "number is text": '{"now":1.0,"what":{"Resulted":{"trial":"0","results":[[0,{"New":{"value":0.5}}]]}}}',
    "number is negative": '{"now":1.0,"what":{"Resulted":{"trial":-1,"results":[[0,{"New":{"value":0.5}}]]}}}',
    "number is a fraction": '{"now":1.0,"what":{"Resulted":{"trial":0.5,"results":[[0,{"New":{"value":0.5}}]]}}}',
    "number is unknown": '{"now":1.0,"what":{"Resulted":{"trial":999,"results":[[0,{"New":{"value":0.5}}]]}}}',
    "number is 2**64": '{"now":1.0,"what":{"Resulted":{"trial":18446744073709551616,"results":[[0,"Failed"]]}}}',
    "number has a million digits": '{"now":1.0,"what":{"Resulted":{"results":[[0,"Abandoned"]],"trial":'
    + "9" * 1_000_000
    + "}}}",
    "value is NaN": '{"now":1.0,"what":{"Resulted":{"trial":0,"results":[[0,{"New":{"value":NaN}}]]}}}',
    "value is infinite": '{"now":1.0,"what":{"Resulted":{"trial":0,"results":[[0,{"New":{"value":1e999}}]]}}}',
    "value is -Infinity": '{"now":1.0,"what":{"Resulted":{"trial":0,"results":[[0,{"New":{"value":-Infinity}}]]}}}',
    "value is null": '{"now":1.0,"what":{"Resulted":{"trial":0,"results":[[0,{"New":{"value":null}}]]}}}',
    "value is text": '{"now":1.0,"what":{"Resulted":{"trial":0,"results":[[0,{"New":{"value":"0.5"}}]]}}}',
    "value is true": '{"now":1.0,"what":{"Resulted":{"trial":0,"results":[[0,{"New":{"value":true}}]]}}}',
    "value is a list": '{"now":1.0,"what":{"Resulted":{"trial":0,"results":[[0,{"New":{"value":[0.5]}}]]}}}',
    "value has a million digits": '{"now":1.0,"what":{"Resulted":{"trial":0,"results":[[0,{"New":{"value":'
    + "9" * 1_000_000
    + "}}]]}}}",
    "now is NaN": '{"now":NaN,"what":{"Resulted":{"trial":0,"results":[[0,{"New":{"value":0.5}}]]}}}',
    "at is NaN": '{"now":1.0,"at":NaN,"what":{"Resulted":{"trial":0,"results":[[0,{"New":{"value":0.5}}]]}}}',
    "at is text": '{"now":1.0,"at":"noon","what":{"Resulted":{"trial":0,"results":[[0,{"New":{"value":0.5}}]]}}}',
    "value outside the results": '{"now":1.0,"what":{"Resulted":{"trial":0,"value":0.5,"results":[]}}}',
    "now is infinite": '{"now":1e999,"what":{"Resulted":{"trial":0,"results":[[0,{"New":{"value":0.5}}]]}}}',
    "nested lists": "[" * 200_000,
    "nested objects": '{"a":' * 200_000,
    "nested and closed": "[" * 100_000 + "]" * 100_000,
    "lone surrogate": '{"\\ud800":1}',
    "zero byte": '{"now":\x00}',
    "trailing text": '{"now":1.0,"what":{"Resulted":{"trial":0,"results":[[0,"Failed"]]}}} DROP TABLE events',
    "enqueued outside": '{"now":1.0,"what":{"Enqueued":{"point":{"numbers":[-3,0.5]}}}}',
}
DEEP = json.dumps('{"a":' + "[" * 200_000 + "]" * 200_000 + "}")
OBSERVED = '{"now":3.0,"what":{"Resulted":{"trial":0,"results":[[0,{"New":{"value":0.25}}]],"data":{%s}}}}'
BODIES["observed: std is negative"] = BODIES["value is NaN"].replace("NaN", '0.25,"std":-1.0')
BODIES |= {
    f"observed: {what}": OBSERVED % fields
    for what, fields in {
        "cost is negative": '"cost":-1.0',
        "cost is text": '"cost":"1"',
        "duration is negative": '"duration":-1.0',
        "duration is infinite": '"duration":1e999',
        "point is infinite": '"point":{"numbers":[0.5,1e999]}',
        "point too short": '"point":{"numbers":[0.5]}',
        "point has an index": '"point":{"candidate":3}',
        "point is NaN": '"point":{"numbers":[0.5,NaN]}',
        "point is a list": '"point":[0.5,0.5]',
        "point is empty": '"point":{}',
        "attrs are an object": '"attrs":{"a":1}',
        "attrs are a list": '"attrs":"[1]"',
        "attrs are null in text": '"attrs":"null"',
        "attrs are empty text": '"attrs":""',
        "attrs are not JSON": '"attrs":"{\'a\': 1}"',
        "attrs hold NaN": '"attrs":"{\\"a\\":NaN}"',
        "attrs hold a lone surrogate": '"attrs":"{\\"a\\":\\"\\\\ud800\\"}"',
        "attrs are nested": f'"attrs":{DEEP}',
        "value twice": '"value":0.5',
        "unknown field": '"replicate":true',
    }.items()
}
FAILED = '{"now":3.0,"what":{"Resulted":{"trial":0,"results":[[0,"Failed"]],"data":{%s}}}}'
BODIES |= {
    f"failed: {what}": FAILED % fields
    for what, fields in {
        "error is text": '"error":"ValueError"',
        "error is a list": '"error":["ValueError","bad",null]',
        "error has no message": '"error":{"type":"ValueError"}',
        "error has unknown fields": '"error":{"type":"ValueError","message":"","line":3}',
        "type is a number": '"error":{"type":3,"message":""}',
        "traceback is a list": '"error":{"type":"E","message":"","traceback":["a"]}',
        "attrs are a list": '"attrs":"[]"',
        "attrs are nested": f'"attrs":{DEEP}',
        "unknown field": '"std":1.0',
    }.items()
}
ADDED = '{"now":1.0,"what":{"Added":{"point":%s,"context":%s,"results":%s,"awaited":true}}}'
BODIES |= {
    f"added: {what}": ADDED % fields
    for what, fields in {
        "point too short": ('{"numbers":[0.5]}', "[]", '[[0,{"value":1.0}]]'),
        "point too long": ('{"numbers":[0.5,0.5,0.5]}', "[]", '[[0,{"value":1.0}]]'),
        "point is infinite": ('{"numbers":[0.5,1e999]}', "[]", '[[0,{"value":1.0}]]'),
        "point is null": ("null", "[]", '[[0,{"value":1.0}]]'),
        "point has an index": ('{"candidate":3}', "[]", '[[0,{"value":1.0}]]'),
        "context undeclared": (X, "[0.5]", '[[0,{"value":1.0}]]'),
        "results are a number": (X, "[]", "1.0"),
        "data have a point": (X, "[]", '[[0,{"value":1.0}]],"data":{"point":{"numbers":[0.5,0.5]}}'),
        "value is infinite": (X, "[]", '[[0,{"value":1e999}]]'),
        "value is text": (X, "[]", '[[0,{"value":"1.0"}]]'),
    }.items()
}
SUGGESTED = '{"now":%s,"what":{"Suggested":{"point":%s,"context":[],"note":%s,"queued":%s,"expires_at":%s}}}'


def note(lengthscale, variance, noise, rows, kernel="matern52", scale="1.0"):
    """Return the note of a fit as a JSON string."""
    return json.dumps(
        f'{{"kernel":"{kernel}","lengthscale":{lengthscale},"signal_variance":{variance},"noise_variance":{noise},'
        f'"rows":{rows},"scale":{scale}}}'
    )


BODIES |= {
    f"suggested: {what}": SUGGESTED % (now, point, *rest)
    for what, (point, now, *rest) in {
        "queued, but nothing was": (X, "3.0", "null", "true", "null"),
        "queued is a number": (X, "3.0", "null", "7", "null"),
        "lease is NaN": (X, "3.0", "null", "false", "NaN"),
        "lease is infinite": (X, "3.0", "null", "false", "1e999"),
        "lease is text": (X, "3.0", "null", "false", '"now"'),
        "now is text": (X, '"3"', "null", "false", "null"),
        "theta of the wrong width": (X, "3.0", note("[1.0]", 1.0, 0.1, 2), "false", "null"),
        "theta is negative": (X, "3.0", note("[-1.0,1.0]", 1.0, 0.1, 2), "false", "null"),
        "theta is zero": (X, "3.0", note("[0.0,0.0]", 0.0, 0.0, 2), "false", "null"),
        "theta is infinite": (X, "3.0", note("[1e999,1.0]", 1.0, 0.1, 2), "false", "null"),
        "theta is huge": (X, "3.0", note("[1e308,1e308]", "1e308", "1e308", 2), "false", "null"),
        "theta on more rows than there are": (X, "3.0", note("[1.0,1.0]", 1.0, 0.1, 10**18), "false", "null"),
        "theta on -1 rows": (X, "3.0", note("[1.0,1.0]", 1.0, 0.1, -1), "false", "null"),
        "note is a list": (X, "3.0", "[]", "false", "null"),
        "note is an object": (X, "3.0", "{}", "false", "null"),
        "note is empty": (X, "3.0", '""', "false", "null"),
        "note of a list": (X, "3.0", '"[]"', "false", "null"),
        "note of nested lists": (X, "3.0", json.dumps("[" * 200_000), "false", "null"),
        "kernel is unknown": (X, "3.0", note("[1.0,1.0]", 1.0, 0.1, 2, kernel="evil"), "false", "null"),
        "scale is zero": (X, "3.0", note("[1.0,1.0]", 1.0, 0.1, 2, scale="0.0"), "false", "null"),
    }.items()
}
# Each function takes a size in bytes and returns a body of about this size.
HUGE = {
    "spaces": lambda size: " " * size,
    "text": lambda size: '"' + "x" * size + '"',
    "numbers": lambda size: '{"what":{"Suggested":{"point":{"numbers":[' + "1," * (size // 2) + "1]}}}}",
    "fields": lambda size: '{"what":{"Resulted":[' + "1," * (size // 2) + "1]}}",
    "traceback of a list": lambda size: (
        '{"what":{"Resulted":{"data":{"error":{"traceback":[' + "1," * (size // 2) + "1]}}}}}"
    ),
}
# A study cannot have written these bodies, but they have the form of events, so the program accepts and counts them.
UNCHECKED = {"suggested: theta is huge"}

KEYS = {
    "empty": "",
    "no parts": "evil",
    "two parts": "suggest:0",
    "unknown call": "explode:0:key",
    "zero byte": "observe:0:\x00",
    "a million characters": "observe:0:" + "x" * 1_000_000,
    "SQL": "observe:0:'); DROP TABLE events; --",
}
NUMBERS = ["NULL", "'text'", "x'00ff'", "-1", "0.5", "9e999", "9223372036854775807", "zeroblob(%d)"]
SCHEMA = {
    # If this SQL code is executed, it writes to the table named trace.
    "trigger on insert": "CREATE TRIGGER t AFTER INSERT ON events BEGIN INSERT INTO trace VALUES ('ran'); END",
    "trigger before insert": "CREATE TRIGGER t BEFORE INSERT ON events BEGIN INSERT INTO trace VALUES ('ran'); END",
    "trigger that deletes": (
        "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM events; INSERT INTO trace VALUES ('ran'); END"
    ),
    "trigger that aborts": "CREATE TRIGGER t BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'no'); END",
    "trigger that ignores": "CREATE TRIGGER t BEFORE INSERT ON events BEGIN SELECT RAISE(IGNORE); END",
    "trigger on studies": "CREATE TRIGGER t AFTER UPDATE ON studies BEGIN INSERT INTO trace VALUES ('ran'); END",
    "trigger that loads a library": "CREATE TRIGGER t AFTER INSERT ON events BEGIN SELECT load_extension('TRACE'); END",
    "events is a view": "ALTER TABLE events RENAME TO real; CREATE VIEW events AS SELECT * FROM real",
    "events is an endless view": (
        "ALTER TABLE events RENAME TO real; CREATE VIEW events AS WITH RECURSIVE c(n) AS (SELECT 0 UNION "
        "ALL SELECT n + 1 FROM c) SELECT real.*, n FROM real, c"
    ),
    "view with a trigger": (
        "ALTER TABLE events RENAME TO real; CREATE VIEW events AS SELECT * FROM real; CREATE TRIGGER t "
        "INSTEAD OF INSERT ON events BEGIN INSERT INTO trace VALUES ('ran'); END"
    ),
    "studies is a view": "ALTER TABLE studies RENAME TO real; CREATE VIEW studies AS SELECT * FROM real",
    "studies is a view that loads": (
        "ALTER TABLE studies RENAME TO real; CREATE VIEW studies AS SELECT *, load_extension('TRACE') AS more FROM real"
    ),
    "events is virtual": (
        "DROP TABLE events; CREATE VIRTUAL TABLE events USING fts5(study, seq, body, key, at, version, checksum)"
    ),
    "events is missing": "DROP TABLE events",
    "studies is missing": "PRAGMA foreign_keys=OFF; DROP TABLE studies",
    "column is missing": "ALTER TABLE events RENAME COLUMN body TO corpse",
    "column is generated": "ALTER TABLE events ADD COLUMN more AS (hex(zeroblob(1000000)))",
    "index on an expression": "CREATE INDEX i ON events (hex(zeroblob(100000)))",
    "unknown collation": (
        "PRAGMA writable_schema=ON; UPDATE sqlite_master SET sql = replace(sql, 'body', 'body COLLATE "
        "evil') WHERE name = 'events'"
    ),
    "nonsense in the schema": (
        "PRAGMA writable_schema=ON; UPDATE sqlite_master SET sql = 'CREATE TABLE events(' WHERE name = 'events'"
    ),
    "no constraints, seq twice": (
        "CREATE TABLE copy AS SELECT * FROM events; DROP TABLE events; ALTER TABLE copy RENAME TO "
        "events; INSERT INTO events SELECT * FROM events WHERE seq = 2"
    ),
    "newer format": "PRAGMA user_version = 999999",
    "negative format": "PRAGMA user_version = -7",
    "another application's id": "PRAGMA application_id = 252006674",
    "hole in the sequence": "DELETE FROM events WHERE seq = 2",
    "the beginning is missing": "DELETE FROM events WHERE seq = 0",
    "the end is missing": "DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)",
    "two events exchanged": (
        "UPDATE events SET seq = -1 WHERE seq = 1; UPDATE events SET seq = 1 WHERE seq = 2; UPDATE "
        "events SET seq = 2 WHERE seq = -1"
    ),
    "events of nobody": "PRAGMA foreign_keys=OFF; UPDATE events SET study = 77",
    "value changed by hand": "UPDATE events SET body = replace(body, '0.25', '0.75')",
}
FILES = {
    "empty file": b"",
    "text": b"hello, this is not a database " * 100,
    "header alone": b"SQLite format 3\x00",
    "header and noise": b"SQLite format 3\x00" + bytes(range(256)) * 40,
    "pickle": b"cos\nsystem\n(S'touch TRACE'\ntR.",
}
DEFINITIONS = {
    "empty": "",
    "null": "null",
    "list": "[]",
    "no fields": "{}",
    "nested": "[" * 200_000,
    "NaN": '{"problem":{},"strategy":{"kind":"RandomSearch"},"stopping":null,"seed":NaN}',
    "not JSON": "RandomSearch()",
    "python": "__import__('os').system('touch TRACE')",
}


def make(path):
    """Write an intact store with one study. The study has events 0 to 5, and its strategy writes notes."""
    study = harness.bayes_study(path)
    study.suggest(n=3)
    study.observe(0, 0.25)
    study.suggest()
    study.observe(1, 0.5)
    harness.close(study)


def leaves(value, path=()):
    """Yield the path of every value in JSON data, including the empty path of the data themselves."""
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from leaves(child, (*path, key))


def altered(value, path, replacement):
    """Return a copy of JSON data in which the value at a path is replaced."""
    if not path:
        return replacement
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = altered(value[path[0]], path[1:], replacement)
    return copy


def every_case(base, size):
    """Return (name, function) for each case; the function takes the path of a store and changes the store."""

    def sql(script):
        def change(path):
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("CREATE TABLE trace(what)") if "trace" in script else None
                connection.executescript(script)
                connection.commit()

        return change

    def with_checksums(table, column, text, where="1"):
        def change(path):
            with closing(sqlite3.connect(path)) as connection:
                connection.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (text,))
                set_checksums(connection)
                connection.commit()

        return change

    for name, text in (BODIES | {name: text(size) for name, text in HUGE.items()}).items():
        yield f"body: {name}", with_checksums("events", "body", text, "seq = 3")
    for name, text in KEYS.items():
        yield f"key: {name}", with_checksums("events", "key", text, "seq = 3")
    yield "body: not text", with_checksums("events", "body", b"\xff\xfe", "seq = 3")
    for name, script in SCHEMA.items():
        yield f"schema: {name}", sql(script)
    with closing(sqlite3.connect(base)) as connection:
        for table in ("events", "studies", "heads"):
            for _, column, *_ in connection.execute(f"PRAGMA table_info({table})").fetchall():
                for number in (number.replace("%d", str(size)) for number in NUMBERS):
                    # The constraints of the table would refuse this change, so the table is first copied without its
                    # constraints.
                    yield (
                        f"column: {table}.{column} = {number}",
                        sql(
                            f"PRAGMA foreign_keys=OFF; CREATE TABLE copy AS SELECT * FROM {table}; DROP TABLE {table}; "
                            f"ALTER TABLE copy RENAME TO {table}; UPDATE {table} SET {column} = {number}"
                        ),
                    )
                    update = f"UPDATE OR IGNORE {table} SET {column} = {number}"
                    yield f"value: {table}.{column} = {number}", sql(update)
        (definition,) = connection.execute("SELECT definition FROM studies").fetchone()
    for name, text in (DEFINITIONS | {"huge": HUGE["text"](size)}).items():
        yield f"definition: {name}", with_checksums("studies", "definition", text)
    data = json.loads(definition)
    for path in leaves(data):
        for what in (None, True, -1, 1e999, 10**400, "os.system", [], {}, ["x"] * 3, {"x": [1, 2]}, [[[[]]]]):
            text = json.dumps(altered(data, path, what))
            yield (
                f"definition: {'.'.join(map(str, path))} = {str(what)[:20]}",
                with_checksums("studies", "definition", text),
            )
    for name, content in FILES.items():
        yield f"file: {name}", lambda path, content=content: Path(path).write_bytes(content)


def set_checksums(connection):
    """Write valid checksums for the present content of the study and its events."""
    facts = connection.execute("SELECT id, name, definition, at, version FROM studies").fetchone()
    connection.execute("UPDATE studies SET checksum = ?", (events._digest(*facts),))
    for seq, key, at, body in connection.execute("SELECT seq, key, at, body FROM events").fetchall():
        if isinstance(body, str):
            checksum = events.with_checksum(facts[0], seq, key, at, body).checksum
            connection.execute("UPDATE events SET checksum = ? WHERE seq = ?", (checksum, seq))


def trace(path):
    """Return whether code in the store was executed."""
    if any((Path(path).parent / name).exists() for name in ("TRACE", "TRACE.so")):
        return True
    try:
        with closing(sqlite3.connect(path)) as connection:
            return bool(connection.execute("SELECT count(*) FROM trace").fetchone()[0])
    except sqlite3.Error:
        return False


def use_store(path, truth):
    """Run every command and call on a changed store; return the result of each."""
    seen = {}
    for use in (["list"], ["show"], ["check"], ["export"], ["export", "--salvage"]):
        try:
            code, _, err = harness.command(*use, harness.url(path))
            seen[" ".join(use)] = code if code in (0, 1) else f"exit code {code}: {err[-200:]}"
        except BaseException:
            seen[" ".join(use)] = traceback.format_exc(limit=-3)
    try:
        study = bl.Study.load("study", harness.url(path))
        right = harness.state(study) == truth
        pending = [number for number, _, state, _ in truth if state == "pending"]
        study.observe(pending[0], 0.125)
        study.suggest()
        opened = bl.Study.load("study", harness.url(path))
        right = right and harness.state(opened)[pending[0]][2:] == ("observed", 0.125)
        seen["use"] = "right" if right and len(opened.trials) == len(truth) + 1 else "accepted"
    except bl.errors.StoreError:
        seen["use"] = "StoreError"
    except BaseException:
        seen["use"] = traceback.format_exc(limit=-3)
    return seen


def use_with_limits(path, truth, results):
    """Run `use` in a process with limited memory, and report the results."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    sys.stderr = open("/dev/null", "w")  # noqa: SIM115
    seen = use_store(path, truth)
    results.put((seen, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


READ = ("", "/definition", "/best", "/forecast", "/finals", "/importance", "/trials", "/trials/0", "/trials/0/history")


def serve_with_limits(arguments, output):
    """Run `belated serve` in a process with limited memory, and write its output to a file."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.environ["BELATED_TOKEN"] = service.TOKEN
    with open(output, "w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.exit(cli.main(["serve", *arguments]))


def wait_for(condition):
    """Wait until a condition is true, at most TIME; return whether it is true."""
    end = time.monotonic() + TIME
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    return condition()


def ask_served(address, certificate, truth, is_refused):
    """Send requests to a server with a changed store; return the statuses and what is wrong with the answers.

    `is_refused` says that the study must not be readable.
    """
    import httpx

    statuses, wrong = {}, []
    headers = {"Authorization": f"Bearer {service.TOKEN}"}
    context = ssl.create_default_context(cafile=str(certificate))
    with httpx.Client(base_url=address, headers=headers, verify=context, timeout=TIME) as client:
        pending = [number for number, _, state, _ in truth if state == "pending"]
        writes = {f"/trials/{pending[0]}/observe": {"value": 0.125}, "/suggest": {}}
        requests = [("GET", "/v1/user", None), ("GET", "/v1/studies", None)]
        requests += [("GET", f"/v1/studies/study{where}", None) for where in READ]
        requests += [("POST", f"/v1/studies/study{where}", body) for where, body in writes.items()]
        for method, where, body in requests:
            answer = client.request(method, where, json=body)
            statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
            if answer.status_code == 500 or (answer.status_code != 200 and not answer.json()["detail"]):
                wrong.append(f"{where}: {answer.status_code} {answer.text[:300]}")
            is_open = where.startswith("/v1/studies/study") and answer.status_code == 200
            if is_open and is_refused:
                wrong.append(f"{where}: {answer.status_code}, and not a problem")
    return statuses, wrong


def serve_cases(every, megabytes, failures, deadline):
    """Serve every `every`-th changed store; return the results."""
    context, statuses, cases, refused = harness.processes(), {}, 0, 0
    context.set_forkserver_preload(["belated", "belated.cli", "belated.serve.app", "uvicorn"])
    with harness.folder(memory=True) as folder:
        base, path, output = (Path(folder) / name for name in ("base.db", "store.db", "output.txt"))
        make(base)
        truth = harness.state(bl.Study.load("study", harness.url(base)))
        users = [("read", "display", f"{service.TOKEN}-read"), ("work", "anna", service.TOKEN)]
        certificate, key = service.certificate(folder)
        arguments = [harness.url(path), "--port", "0", "--token-file", str(service.token_file(folder, users))]
        arguments += ["--tls-cert", str(certificate), "--tls-key", str(key)]
        for index, (name, change) in enumerate(every_case(base, megabytes * 1_000_000)):
            if index % every or deadline.over():
                continue
            harness.copy_store(base, path)
            try:
                change(path)
            except sqlite3.Error:
                continue
            cases += 1
            output.write_text("")
            process = context.Process(target=serve_with_limits, args=(arguments, str(output)))
            process.start()
            wait_for(lambda process=process: " served at " in output.read_text() or not process.is_alive())
            if process.is_alive() and " served at " not in output.read_text():
                failures.note(f"{name}: the server did not start within {TIME} s")
                process.kill()
                process.join()
                continue
            if process.is_alive():
                address = output.read_text().split(" served at ")[1].split(",")[0]
                kind, what = name.split(": ", 1)
                is_refused = kind == "body" and what not in UNCHECKED
                try:
                    found, wrong = ask_served(address, certificate, truth, is_refused)
                except Exception as error:
                    found, wrong = {}, [f"{type(error).__name__}: {error}"]
                for status, n in found.items():
                    statuses[status] = statuses.get(status, 0) + n
                os.kill(process.pid, signal.SIGTERM)
                for each in wrong:
                    failures.note(f"{name}: {each}")
            else:
                refused += 1
            process.join(TIME)
            said = output.read_text()
            if process.exitcode not in (0, 1) or "Traceback" in said:
                failures.note(f"{name}: the server ended with {process.exitcode}: {said[-300:]}")
                process.kill()
            if trace(path):
                failures.note(f"{name}: code in the store ran")
    return {"cases": cases, "refused_at_the_start": refused, "statuses": dict(sorted(statuses.items()))}


def read_cases(every, megabytes, failures, deadline):
    """Use every `every`-th changed store in Python and by commands; return the results."""
    context, unchecked = harness.processes(), 0
    outcomes, cases, skipped, largest, slowest = {}, 0, [], (0.0, ""), (0.0, "")
    with harness.folder(memory=True) as folder:
        base, path = Path(folder) / "base.db", Path(folder) / "store.db"
        make(base)
        truth = harness.state(bl.Study.load("study", harness.url(base)))
        for index, (name, change) in enumerate(every_case(base, megabytes * 1_000_000)):
            if index % every:
                continue
            if deadline.over():
                break
            harness.copy_store(base, path)
            try:
                change(path)
            except sqlite3.Error as error:
                skipped.append(f"{name}: {error}")  # SQLite refuses to write this
                continue
            cases += 1
            results = context.SimpleQueue()
            process = context.Process(target=use_with_limits, args=(path, truth, results))
            process.start()
            start = time.monotonic()
            while results.empty() and process.is_alive() and time.monotonic() - start < TIME:
                time.sleep(0.002)
            if results.empty():
                failures.note(f"{name}: {'hung' if process.is_alive() else f'died with {process.exitcode}'}")
                process.kill()
                process.join()
                continue
            seen, memory = results.get()
            process.join()
            slowest = max(slowest, (round(time.monotonic() - start, 2), name))
            largest = max(largest, (round(memory), name))
            outcome = seen.pop("use")
            for use, code in seen.items():
                if code not in (0, 1):
                    failures.note(f"{name}: {use}: {code}")
            outcomes[outcome[:20]] = outcomes.get(outcome[:20], 0) + 1
            kind, what = name.split(": ", 1)
            allowed = ("StoreError",) if kind == "body" else ("StoreError", "right")
            if kind == "definition" or what in UNCHECKED:
                allowed += ("accepted",)  # a changed definition with a valid checksum may still be a valid definition
            unchecked += what in UNCHECKED and outcome == "accepted"
            if outcome not in allowed:
                failures.note(f"{name}: {outcome}")
            if trace(path):
                failures.note(f"{name}: code in the store ran")
    return {
        "cases": cases,
        "outcomes": outcomes,
        "impossible_but_accepted": unchecked,
        "refused_by_sqlite": len(skipped),
        "largest_mb": largest,
        "slowest_s": slowest,
    }


def run(every=1, megabytes=50, serve=0, limit=None):
    """Run every `every`-th case and return the results."""
    failures, deadline = harness.Failures(), harness.Deadline(limit)
    cases = serve_cases if serve else read_cases
    return cases(every, megabytes, failures, deadline) | failures.figures()


if __name__ == "__main__":
    sys.exit(harness.main(__doc__, run, every=1, megabytes=50, serve=0))
