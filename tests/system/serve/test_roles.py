"""Roles of tokens: which requests each role may make, and the file with roles, names and tokens."""

import itertools
import time

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

import belated as bl  # noqa: E402
from belated.errors import InvalidSetting  # noqa: E402
from belated.serve import roles, tokens, watched  # noqa: E402
from belated.serve.roles import NEEDED, NEEDED_BY_FIELD, ROLES, User  # noqa: E402
from campaigns import service  # noqa: E402
from tests.system.serve.test_api import ok, refused  # noqa: E402

TOKENS = {role: f"{role}-token-0123456789" for role in ROLES}

# The rights as the guide lists them, written down apart from the table of the server.
REPORTS = ("observe", "fail", "abandon", "report", "note", "confirm", "check")
WORKS = ("suggest", "add", "table", "withdraw")

FLAGS = [
    {},
    {"amend": True},
    {"amend": False},
    {"replicate": True},
    {"params": {"x": 0.5}},
    {"params": 0},
    {"params": None},
    {"amend": True, "params": {"x": 0.5}},
]


def text_of(users):
    """The file of users (role, name, token)."""
    return "# Users of the laboratory\n\n" + "".join(" ".join(user) + "\n" for user in users)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server whose users have all roles, and a study with trials."""
    if service.missing() is not None:
        pytest.skip(service.missing())
    folder = tmp_path_factory.mktemp("roles")
    url = f"sqlite:///{folder / 'studies.db'}"
    study = bl.Study("s", url, bl.RandomSearch({"x": (0.0, 1.0)}, curve=bl.Curve(3), seed=0))
    study.suggest(n=3)
    file = folder / "tokens.txt"
    file.write_text(text_of((role, f"user-{role}", token) for role, token in TOKENS.items()))
    file.chmod(0o600)
    with service.Service(url, "--token-file", str(file)) as running:
        yield running, file
        code, said = running.stop()
        assert code == 0 and "Traceback" not in said and not any(token in said for token in TOKENS.values())


def least(method, path, flags):
    """The role that a request needs, by the rules of the guide."""
    if method == "get":
        return "read"
    last = path.rpartition("/")[2]
    if last in ("studies", "stop"):
        return "all"
    if last in WORKS:
        return "work"
    assert last in REPORTS, path
    # The number of a candidate may be 0.
    has_params = flags.get("params") is not None
    is_changed = last == "observe" and (flags.get("amend") or flags.get("replicate") or has_params)
    return "work" if is_changed else "report"


def test_every_route_and_flag_has_its_role(served):
    import httpx

    running, _ = served
    paths = httpx.get(f"{running.address}/openapi.json").json()["paths"]
    routes = [(method, path) for path, methods in paths.items() for method in methods]
    assert len(routes) == len(NEEDED)
    for role, token in TOKENS.items():
        with running.client(token=token) as client:
            for (method, path), flags in itertools.product(routes, FLAGS):
                # The study does not exist, so an allowed request changes nothing.
                where = path.replace("{name}", "none").replace("{number}", "0")
                sent = {} if method == "get" else {"json": flags}
                answer = client.request(method, where, **sent)
                needed = least(method, path, flags)
                is_allowed = ROLES.index(role) >= ROLES.index(needed)
                assert (answer.status_code != 403) == is_allowed, (role, method, path, flags, answer.text)
                if not is_allowed:
                    refused(answer, 403, f"'user-{role}' has the role {role!r}", f"needs {needed!r}")
                    assert token not in answer.text
            assert ok(client.get("/v1/user")) == {"name": f"user-{role}", "role": role}
            # Paths that do not exist are not found, for every role.
            assert client.get("/v1/nothing").status_code == 404


def test_a_route_that_is_not_in_the_table_is_refused_for_every_role():
    for role in ROLES:
        assert "not open" in roles.refused(User(role), "delete_everything", {})
    assert {name for name, _ in NEEDED_BY_FIELD} <= set(NEEDED)


def test_refused_requests_change_nothing(served):
    running, _ = served
    study = bl.Study.load("s", running.url)
    before = study._log.n_events()
    with running.client(token=TOKENS["read"]) as client:
        for where, body in (("suggest", {}), ("trials/0/observe", {"value": 1.0}), ("withdraw", {"numbers": [0]})):
            refused(client.post(f"/v1/studies/s/{where}", json=body), 403)
    with running.client(token=TOKENS["report"]) as client:
        refused(client.post("/v1/studies/s/trials/0/observe", json={"value": 1.0, "amend": True}), 403, "with amend")
        refused(client.post("/v1/studies/s/trials/0/stop"), 403)
    study.sync()
    assert study._log.n_events() == before


METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "COPY")
BODIES = {
    "studies": {"name": "stolen", "optimizer": "RandomSearch", "space": {"x": {"type": "Real", "low": 0, "high": 1}}},
    "suggest": {"n": 1},
    "add": {"params": {"x": 0.5}, "value": 1.0},
    "table": {"columns": ["number", "value"], "rows": [[0, 1.0]], "moved": True},
    "observe": {"value": 1.0},
    "report": {"step": 1, "value": 1.0},
    "note": {"remark": "stolen"},
    "check": {"text": "1"},
    "withdraw": {"numbers": [0], "reason": "stolen"},
    "abandon": {"numbers": [0]},
}
TRICKS = [
    {},
    {"X-HTTP-Method-Override": "POST"},
    {"X-Forwarded-For": "127.0.0.1", "X-Forwarded-User": "user-all", "X-Remote-User": "user-all"},
    {"Cookie": f"token={TOKENS['all']}; Authorization=Bearer {TOKENS['all']}"},
    {"Proxy-Authorization": f"Bearer {TOKENS['all']}", "X-Authorization": f"Bearer {TOKENS['all']}"},
]


def test_a_stolen_token_of_a_reader_only_reads(served):
    running, _ = served
    with running.client() as client:
        description = client.get("/openapi.json").json()
    before, asked = bl.Study.load("s", running.url)._log.n_events(), 0
    with running.client(token=TOKENS["read"]) as client:
        for (path, documented), method, tricks in itertools.product(description["paths"].items(), METHODS, TRICKS):
            where, last = path.replace("{name}", "s").replace("{number}", "0"), path.rpartition("/")[2]
            query = {"token": TOKENS["all"], "access_token": TOKENS["all"], "role": "all", "by": "user-all"}
            for params in ({}, query):
                sent = {} if method in ("GET", "HEAD") else {"json": BODIES.get(last, {}) | {"key": f"key-{asked}"}}
                answer = client.request(method, where, headers=tricks, params=params, **sent)
                asked += 1
                if method == "GET" and "get" in documented:
                    assert answer.status_code in (200, 409, 422), (path, answer.text)
                    if last == "user":
                        assert answer.json() == {"name": "user-read", "role": "read"}
                elif method == "POST" and "post" in documented:
                    refused(answer, 403, "has the role 'read'")
                else:
                    assert answer.status_code == 405, (method, path, answer.status_code)
    assert asked > 2000 and bl.Study.load("s", running.url)._log.n_events() == before
    assert [each.name for each in bl.Study.list(running.url)] == ["s"]


def test_the_author_is_the_name_of_the_token(served):
    running, _ = served
    with running.client(token=TOKENS["work"]) as client:
        found = ok(client.post("/v1/studies/s/suggest"))["trials"][0]
        assert found["started_by"] == "user-work"
        where = f"/v1/studies/s/trials/{found['number']}"
        problem = refused(client.post(f"{where}/observe", json={"value": 1.0, "by": "another"}), 422, "'user-work'")
        assert "leave it out" in problem["detail"]
        found = ok(client.post(f"{where}/observe", json={"value": 1.0, "by": "user-work"}))
        assert found["finished_by"] == "user-work"
        ok(client.post(f"{where}/withdraw", json={"reason": "contaminated"}))
        assert [each["by"] for each in ok(client.get(f"{where}/history"))["events"]] == ["user-work"] * 3


def test_a_key_belongs_to_one_user(served):
    running, _ = served
    with running.client(token=TOKENS["work"]) as mine, running.client(token=TOKENS["all"]) as theirs:
        number = ok(mine.post("/v1/studies/s/suggest", json={"key": "plate"}))["trials"][0]["number"]
        refused(theirs.post("/v1/studies/s/suggest", json={"key": "plate"}), 422, "key='plate'")
        where, body = f"/v1/studies/s/trials/{number}", {"value": 1.0, "key": "value"}
        ok(mine.post(f"{where}/observe", json=body))
        refused(theirs.post(f"{where}/observe", json=body), 422, "key='value'")
        ok(mine.post(f"{where}/observe", json=body))


def test_a_changed_file_is_read_while_the_server_runs(served, tmp_path):
    running, file = served
    before = file.read_text()

    def status(token):
        with running.client(token=token) as client:
            return client.get("/v1/user").status_code

    def until(token, expected):
        end = time.monotonic() + 20
        while status(token) != expected and time.monotonic() < end:
            time.sleep(0.1)
        return status(token) == expected

    try:
        file.write_text(before + "read guest guest-token-0123456789\n")
        assert until("guest-token-0123456789", 200)
        file.write_text("\n".join(line for line in before.splitlines() if not line.startswith("work")))
        assert until("guest-token-0123456789", 401) and status(TOKENS["work"]) == 401 and status(TOKENS["all"]) == 200
        # A file that is not usable leaves the earlier tokens.
        for wrong in ("owner x short\n", "", "all"):
            file.write_text(wrong)
            time.sleep(1.2)
            assert status(TOKENS["all"]) == 200 and status(TOKENS["work"]) == 401
        file.unlink()
        time.sleep(1.2)
        assert status(TOKENS["all"]) == 200
    finally:
        file.write_text(before)
        file.chmod(0o600)
    assert until(TOKENS["work"], 200)


def test_the_file_is_looked_at_once_a_second_and_errors_are_logged_once(tmp_path, monkeypatch, caplog):
    file, clock, looks = tmp_path / "tokens", [0.0], []
    file.write_text(f"all ana {TOKENS['all']}\n")
    monkeypatch.setattr(watched.time, "monotonic", lambda: clock[0])
    seen = watched._state
    monkeypatch.setattr(watched, "_state", lambda file: looks.append(clock[0]) or seen(file))
    found = tokens.read_tokens(file)
    for clock[0] in (0.1, 0.5, 0.9, 1.0, 1.5, 1.9, 2.0):
        assert found.user(TOKENS["all"].encode()) == User("all", "ana")
    assert looks == [0.0, 1.0, 2.0]
    file.write_text("all ana secret-secret-secret secret\n")
    for clock[0] in (3.0, 4.0, 5.0):
        assert found.user(TOKENS["all"].encode()) == User("all", "ana")
    assert len(caplog.records) == 1 and "line 1" in caplog.text and "secret" not in caplog.text
    file.write_text(f"read ana {TOKENS['all']}\n")
    assert found.user(TOKENS["all"].encode()) == User("all", "ana")
    clock[0] = 6.0
    assert found.user(TOKENS["all"].encode()) == User("read", "ana") and len(caplog.records) == 1


LONG = "0123456789abcdef"
WRONG = [
    (f"owner ana {LONG}", "the first word of line 1"),
    (f"Read ana {LONG}", "the first word of line 1"),
    (f"read ana {LONG[:-1]}", "the token in line 1"),
    (f"read ana {LONG[:-1]}é", "the token in line 1"),
    (f"read a\u202ena {LONG}", "the name in line 1"),
    (f"read a\x07na {LONG}", "the name in line 1"),
    (f"read {'a' * 201} {LONG}", "the name in line 1"),
    (f"read ana {LONG}\n\n# more\nwork ben {LONG}", "the token in line 4 of .* is also in line 1"),
    (f"read ana {LONG}\nwork ana {LONG}x", "the name in line 2 of .* is also in line 1"),
    (f"read Ana {LONG}\nwork ana {LONG}x", "the name in line 2 of .* is also in line 1"),
    (f"read ana {LONG}\n{LONG}x", "line 2 of .* has 1 words"),
    (f"{LONG}\n{LONG}x", "line 1 of .* has 1 words"),
    (f"ana {LONG}", "line 1 of .* has 2 words"),
    (f"read ana lee {LONG}", "line 1 of .* has 4 words"),
    (f"read ana {LONG} # a note", "line 1 of .* has 6 words"),
    ("# nobody\n", "every request needs a token"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_a_file_that_is_not_usable_is_refused_by_line(tmp_path, text, message):
    file = tmp_path / "tokens"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidSetting, match=message) as error:
        tokens.read_tokens(file)
    assert LONG[:-1] not in str(error.value)


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_lines_comments_and_marks_of_editors_are_read(tmp_path, ends):
    file = tmp_path / "tokens"
    lines = ["\ufeff# Users", "", f"  read\tAnaïs   {LONG} ", f"work bench-2 {LONG}x", ""]
    file.write_bytes(ends.join(lines).encode())
    found = tokens.read_tokens(file)
    assert found.user(LONG.encode()) == User("read", "Anaïs")
    assert found.user(f"{LONG}x".encode()) == User("work", "bench-2") and found.user(b"") is None


def test_a_server_with_one_token_has_no_names(running, client):
    assert ok(client.get("/v1/user")) == {"name": None, "role": "all"}


@pytest.mark.skipif(service.missing() is not None, reason="the framework is not installed")
def test_an_address_of_the_network_needs_permission(tmp_path, monkeypatch, capsys):
    from belated import cli

    monkeypatch.setenv("BELATED_TOKEN", LONG)
    url = f"sqlite:///{tmp_path / 's.db'}"
    assert cli.main(["serve", url, "--host", "0.0.0.0", "--port", "0"]) == cli.FAILED
    assert "--allow-unencrypted" in capsys.readouterr().err
    with service.Service(url, "--host", "0.0.0.0", "--allow-unencrypted", token=LONG) as running:
        with running.client() as client:
            client.base_url = f"http://127.0.0.1:{running.port}"
            ok(client.get("/v1/studies"))
        code, said = running.stop()
    assert code == 0 and "tokens are sent unencrypted" in said


def test_the_role_is_looked_up_for_each_request_of_a_connection(served):
    running, file = served
    before = file.read_text()
    with running.client(token=TOKENS["work"]) as client:
        ok(client.post("/v1/studies/s/suggest"))
        try:
            file.write_text(before.replace("work user-work", "read user-work"))
            time.sleep(1.2)
            client.get("/v1/user")
            refused(client.post("/v1/studies/s/suggest"), 403)
        finally:
            file.write_text(before)
            file.chmod(0o600)
            time.sleep(1.2)
