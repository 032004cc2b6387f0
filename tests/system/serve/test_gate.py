"""The server refuses requests with a wrong token, with a large body, or with a body that is not JSON."""

import asyncio
import json
import socket
import sys

import pytest

pytest.importorskip("starlette")

from belated.serve import app, gate  # noqa: E402
from belated.serve.tokens import one_token  # noqa: E402
from tests.system.serve.test_api import ok, refused, synced  # noqa: E402

PATHS = ["/v1/studies", "/v1/studies/none", "/v1/studies/none/trials", "/v1", "/docs/x", "/%2e%2e/v1/studies"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS"])
def test_every_path_is_401_without_the_token(running, client, method, path):
    for headers in ({}, {"Authorization": f"Bearer {running.token}x"}):
        answer = client.request(method, path, headers={"Authorization": ""} | headers)
        assert answer.status_code == 401 and answer.headers["www-authenticate"] == "Bearer"
        assert method == "HEAD" or running.token not in answer.text


@pytest.mark.parametrize(
    "header",
    [
        "{token}",
        "Basic {token}",
        "Bearer",
        "Bearer {token} {token}",
        "Bearer {token}x",
        "Bearer {start}",
        "Bearer x{token}",
        "Bearer ÿ",
        "Bearer {upper}",
    ],
)
def test_a_wrong_token_is_401(running, client, header):
    token = running.token
    value = header.format(token=token, start=token[:-1], upper=token.upper())
    refused(client.get("/v1/studies", headers={"Authorization": value.encode("latin-1")}), 401, "Authorization: Bearer")


def test_the_token_is_accepted_in_the_usual_forms(running, client):
    for header in ("Bearer {}", "bearer {}", "Bearer  {}"):
        ok(client.get("/v1/studies", headers={"Authorization": header.format(running.token)}))


def test_the_token_is_not_stored_or_shown(running):
    made = gate.Gate(None, one_token("a-secret-of-sixteen"))
    shown = repr(made) + repr(vars(made)) + repr(vars(made._tokens))
    assert "secret" not in shown
    assert running.token not in " ".join(running.process.args)


def test_two_tokens_are_refused(running):
    request = (
        "GET /v1/studies HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        f"Authorization: Bearer {running.token}\r\nAuthorization: Bearer {running.token}\r\n\r\n"
    )
    assert b" 401 " in raw(running, request.encode())


def raw(running, data):
    """Send the given bytes; return the first bytes of the server's answer."""
    with socket.create_connection(("127.0.0.1", running.port), timeout=30) as connection:
        connection.sendall(data)
        return connection.recv(4096)


def test_pages_of_other_origins_are_not_allowed(running, client):
    origin = {"Origin": "http://evil.example"}
    answer = client.get("/v1/studies", headers=origin)
    assert not any(name.startswith("access-control") for name in answer.headers)
    ask = origin | {"Access-Control-Request-Method": "POST", "Authorization": ""}
    assert client.options("/v1/studies", headers=ask).status_code == 401


def test_a_body_of_the_largest_size_is_read_and_a_larger_one_is_413(client, study, path):
    study.suggest()
    frame = len(json.dumps({"error": ""}))
    largest = json.dumps({"error": "x" * (gate.LARGEST_BODY - frame)})
    assert len(largest) == gate.LARGEST_BODY
    headers = {"Content-Type": "application/json"}
    refused(client.post(f"{path}/trials/0/fail", content=largest + " ", headers=headers), 413, str(gate.LARGEST_BODY))
    # The body is sent in chunks, without a header for its length.
    pieces = (largest.encode()[i : i + 65536] for i in range(0, len(largest), 65536))
    refused(client.post(f"{path}/trials/0/fail", content=[*pieces, b"  "], headers=headers), 413)
    assert synced(study).trial(0).state == "pending"
    ok(client.post(f"{path}/trials/0/fail", content=largest, headers=headers))
    assert synced(study).trial(0).state == "failed"


@pytest.mark.parametrize("length", ["99999999999999999999999", str(gate.LARGEST_BODY + 1)])
def test_a_length_that_is_too_large_is_refused_before_anything_is_read(running, path, length):
    request = (
        f"POST {path}/suggest HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {running.token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    )
    assert raw(running, request.encode()).split()[1] in (b"413", b"400")


def test_a_table_may_be_larger_than_other_bodies(client, study, path):
    pytest.importorskip("pandas")
    study.suggest(n=2)
    body = {"columns": ["number", "value", "remarks"], "rows": [["0", "0.5", "x" * (3 << 19)]], "moved": True}
    assert ok(client.post(f"{path}/table", json=body | {"dry_run": True}))["new"] == [[0, None]]
    headers = {"Content-Type": "application/json"}
    text = json.dumps(body | {"dry_run": True}).encode()
    # Without its length, a body has the limit of other bodies.
    refused(client.post(f"{path}/table", content=iter([text]), headers=headers), 413, str(gate.LARGEST_BODY))
    padded = text + b" " * (gate.LARGEST_TABLE - len(text))
    ok(client.post(f"{path}/table", content=padded, headers=headers))
    refused(client.post(f"{path}/table", content=padded + b" ", headers=headers), 413, str(gate.LARGEST_TABLE))
    refused(client.post(f"{path}/table/", content=padded, headers=headers), 413, str(gate.LARGEST_BODY))
    many = {"columns": ["number"], "rows": [["0"]] * 20_001}
    refused(client.post(f"{path}/table", json=many), 422, "20000")
    refused(client.post(f"{path}/table", json={"columns": ["x"] * 1001, "rows": []}), 422, "1000")
    wide = {"columns": [f"x{i}" for i in range(1000)], "rows": [["0"]] * 501}
    refused(client.post(f"{path}/table", json=wide), 422, "500,000 cells")
    nested = b'{"columns": [], "rows": [' + b"[]," * 600_000 + b"[]]}"
    refused(client.post(f"{path}/table", content=nested, headers=headers), 413, "1,000,000 commas")
    assert synced(study).trial(0).state == "pending"
    assert ok(client.post(f"{path}/table", json=body))["noted"] == [0]


def test_large_tables_of_several_clients_are_stored_one_after_another(running, client, study, path):
    pytest.importorskip("pandas")
    from concurrent.futures import ThreadPoolExecutor

    study.suggest(n=8)

    def store(number):
        rows = [[str(number), str(number / 8), "x" * (3 << 19)]]
        body = {"columns": ["number", "value", "remarks"], "rows": rows, "moved": True, "key": f"table {number}"}
        with running.client() as own:
            return own.post(f"{path}/table", json=body).status_code

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(store, range(8))) == {200}
    assert [trial.value for trial in synced(study).trials] == [i / 8 for i in range(8)]


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("suggest", {f"k{i}": 1 for i in range(60_000)}),
        ("suggest", {"shared": [3] * 200_000}),
        ("suggest", {"attrs": [3] * 200_000}),
        ("trials/0/observe", {"value": {f"k{i}": "x" for i in range(60_000)}}),
        ("table", {"columns": ["number"], "rows": [[{}] * 100_000]}),
    ],
)
def test_a_request_with_many_errors_is_refused_with_their_number(client, study, path, route, body):
    from time import thread_time

    from belated.serve import messages

    study.suggest()
    answer = client.post(f"{path}/{route}", json=body)
    refused(answer, 422, "fields or values are unknown or of a wrong type")
    assert len(answer.content) < 2000 and synced(study).n_trials == 1 and study.trial(0).state == "pending"
    # A description of every error would take seconds, in which the server does not answer other requests.
    kind = {"suggest": messages.Suggest, "table": messages.Table}.get(route, messages.Observe)
    with pytest.raises(ValueError) as caught:
        kind.model_validate(body)
    started = thread_time()
    assert len(caught.value.errors()) == 1 and thread_time() - started < 0.1


@pytest.mark.parametrize("content", [b"PK\x03\x04", b"\xd0\xcf\x11\xe0"])
def test_workbooks_are_415(client, study, path, content):
    for kind in ("application/json", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"):
        answer = client.post(f"{path}/table", content=content + b"x" * 100, headers={"Content-Type": kind})
        refused(answer, 415, "save the workbook as CSV")


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""])
def test_bodies_not_declared_as_json_are_415(client, study, path, kind):
    headers = {} if kind is None else {"Content-Type": kind}
    refused(client.post(f"{path}/suggest", content=b"{}", headers=headers), 415, "application/json")
    assert study.n_trials == 0


def test_json_may_have_a_charset_and_a_body_may_be_absent(client, study, path):
    ok(client.post(f"{path}/suggest", content=b"{}", headers={"Content-Type": "Application/JSON; charset=utf-8"}))
    ok(client.post(f"{path}/suggest"))
    assert study.n_trials == 2


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"value": NaN}', 400),
        (b'{"value": Infinity}', 400),
        (b'{"value": -Infinity}', 400),
        (b'{"value": 1e999}', 400),
        (b'{"value": 1, "attrs": {"a": NaN}}', 400),
        (b'{"value": ' + b"1" * 5000 + b"}", 400),
        (b'{"value": 1', 400),
        (b"\xff\xfe", 400),
        (b'{"value": 1}{}', 400),
        (b"\xef\xbb\xbf{}", 400),
        (b"null", 422),
        (b"[]", 422),
        (b'"text"', 422),
        (b"[" * 200_000, 422),
        (b'{"value": 1, "attrs": ' + b'{"a":' * 150 + b"1" + b"}" * 151, 422),
        (b'{"value": 1, "params": {"x": ' + b"[" * 900 + b"]" * 900 + b"}}", 422),
        (b'{"value": 1, "params": {"x": ' + b"[" * 20_000 + b"]" * 20_000 + b"}}", 422),
        (b'{"value": 1, "attrs": {"a": "\\ud800"}}', 422),
        (b'{"value": 1, "\\udc00": 1}', 422),
        (b'{"value": 1, "attrs": {"\\ud800": 1}}', 422),
    ],
)
def test_malformed_requests_are_refused_and_change_nothing(client, study, path, body, status):
    study.suggest()
    headers = {"Content-Type": "application/json"}
    answer = client.post(f"{path}/trials/0/observe", content=body, headers=headers)
    refused(answer, status)
    assert len(answer.content) < 2000
    assert synced(study).trial(0).state == "pending"


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_the_depth_of_a_body_is_bounded(opening, closing):
    def body(levels):
        return b'{"a": 1, "b": ' + opening * (levels - 1) + b"1" + closing * (levels - 1) + b"}"

    gate.check_json(body(1))
    gate.check_json(body(gate.DEEPEST_BODY))
    for levels in (gate.DEEPEST_BODY + 1, 500, 5000, 100_000):
        with pytest.raises(gate.Refused, match="nested too deeply") as refusal:
            gate.check_json(body(levels))
        assert refusal.value.status == 422


def test_a_pair_of_surrogates_is_a_character(client, study, path):
    study.suggest()
    body = b'{"value": 1, "attrs": {"a": "\\ud83d\\ude00"}}'
    found = ok(client.post(f"{path}/trials/0/observe", content=body, headers={"Content-Type": "application/json"}))
    assert found["attrs"] == {"a": "\U0001f600"}


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (b"/v1/studies/a%2Fb/trials", "/v1/studies/a\0b/trials"),
        (b"/v1/studies/%2e%2e/trials", "/v1/studies/../trials"),
        (b"/v1/studies/%C3%BC%ff", "/v1/studies/ü\ufffd"),
        (b"/v1/studies/a%252Fb", "/v1/studies/a%2Fb"),
        (b"/", "/"),
    ],
)
def test_an_encoded_slash_stays_in_its_segment(sent, read):
    assert gate.path_of({"raw_path": sent, "path": "unused"}) == read


def test_an_interrupted_request_leaves_the_study_unchanged(running, study, path):
    body = b'{"n": 3}'
    request = (
        f"POST {path}/suggest HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {running.token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", running.port), timeout=30) as connection:
        connection.sendall(request.encode() + body[:3])
    with running.client() as client:
        ok(client.get(path))
    assert study.n_trials == 0


def test_a_body_is_given_to_the_application_once():
    messages = iter([{"type": "http.disconnect"}])

    async def receive():
        return next(messages)

    async def both():
        again = gate.replaying(b"{}", receive)
        return [await again(), await again()]

    first, second = asyncio.run(both())
    assert (first["body"], first["more_body"], second["type"]) == (b"{}", False, "http.disconnect")


@pytest.mark.parametrize(("closing", "started"), [(True, False), (True, True), (False, False)])
def test_calls_cancelled_at_the_end_are_503(closing, started):
    sent = []

    async def app(scope, receive, send):
        if started:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        raise asyncio.CancelledError

    async def send(message):
        sent.append(message)

    made = gate.Gate(app, one_token("token-0123456789"))
    made.closing = lambda: closing
    call = made(scope_of(b"/v1/studies", "token-0123456789"), None, send)
    if started or not closing:
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(call)
        assert [message.get("status") for message in sent] == [200] * started
    else:
        asyncio.run(call)
        assert [message.get("status") for message in sent] == [503, None]
        assert "may have been carried out" in json.loads(sent[1]["body"])["detail"]


def scope_of(path, token=None, method="GET"):
    """The scope of a request."""
    headers = [] if token is None else [(b"authorization", f"Bearer {token}".encode())]
    return {"type": "http", "method": method, "raw_path": path, "headers": headers, "query_string": b""}


@pytest.mark.parametrize("closing", [False, True])
def test_connections_are_closed_after_their_answer_once_the_server_stops(closing):
    sent, token = [], "token-0123456789"

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    async def send(message):
        sent.append(message)

    made = gate.Gate(app, one_token(token), lambda: {"/": app})
    made.closing = lambda: closing
    for path, method, given, status in [
        (b"/v1", "GET", token, 200),
        (b"/v1/%00", "GET", token, 404),
        (b"/v1", "GET", None, 401),
        (b"/v1", "POST", "another", 401),
        (b"/", "GET", None, 200),
        (b"/", "GET", token, 200),
        (b"/", "POST", token, 405),
    ]:
        sent.clear()
        asyncio.run(made(scope_of(path, given, method), None, send))
        # Without the token, each answer closes the connection.
        is_closed = closing or path == b"/" or given != token
        assert sent[0]["status"] == status and ((b"connection", b"close") in sent[0]["headers"]) == is_closed


def test_answers_without_a_token_cost_no_more_than_a_refusal():
    made, calls = app.make_app(None, one_token("token-0123456789")), []

    async def send(message):
        pass

    def n_calls(path):
        calls.clear()
        call = made(scope_of(path), None, send)
        sys.setprofile(lambda frame, event, _: event == "call" and calls.append(frame.f_code.co_name))
        try:
            with pytest.raises(StopIteration):
                call.send(None)
        finally:
            sys.setprofile(None)
        return len(calls)

    refused, open_paths = n_calls(b"/v1/studies"), [path.encode() for path in sorted(gate.OPEN_PATHS)]
    for path in open_paths:
        n_calls(path)  # the first request makes the answer
    assert max(map(n_calls, open_paths)) <= refused


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("header", [(b"content-length", b"7"), (b"transfer-encoding", b"chunked")])
def test_requests_that_read_have_no_body(method, header):
    sent, token = [], "token-0123456789"

    async def send(message):
        sent.append(message)

    # Neither the application nor the body is reached.
    made, scope = gate.Gate(None, one_token(token)), scope_of(b"/v1/user", token, method)
    scope["headers"].append(header)
    asyncio.run(made(scope, None, send))
    assert sent[0]["status"] == 400 and (b"connection", b"close") in sent[0]["headers"]


@pytest.mark.parametrize("size", [0, 1, 2, 3])
def test_large_answers_are_sent_in_parts(size):
    from starlette.responses import Response

    body = bytes(range(251)) * (size * gate.LARGEST_PART // 250 + 1)
    for exact in (body, body[: size * gate.LARGEST_PART]):
        sent = []

        async def send(message, sent=sent):
            sent.append(message)

        async def receive():
            return {"type": "http.request", "body": b"", "more_body": False}

        made = gate.Gate(Response(exact), one_token("a-secret-of-sixteen"))
        headers = [(b"authorization", b"Bearer a-secret-of-sixteen")]
        scope = {"type": "http", "method": "GET", "raw_path": b"/v1/studies", "path": "/v1/studies", "headers": headers}
        asyncio.run(made(scope, receive, send))
        start, *parts = sent
        assert (b"content-length", str(len(exact)).encode()) in start["headers"]
        assert b"".join(each["body"] for each in parts) == exact
        assert max(len(each["body"]) for each in parts) <= gate.LARGEST_PART
        assert [each.get("more_body", False) for each in parts] == [True] * (len(parts) - 1) + [False]
