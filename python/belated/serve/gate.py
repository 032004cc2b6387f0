"""ASGI middleware that checks the token and the body of each request; a body is empty, or JSON of bounded size."""

import asyncio
import json
import math
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import unquote_to_bytes

from belated.serve.problems import refusal
from belated.serve.roles import User, refused
from belated.serve.tokens import Tokens
from belated.short_repr import short_repr

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

#: Maximum number of bytes of a body.
LARGEST_BODY = 1 << 20

#: Maximum number of bytes of a table, and of commas and brackets in it, which limit the memory that reading needs. Of
#: the tables above `LARGEST_BODY`, four are received at a time, and one is read and stored at a time.
LARGEST_TABLE = 8 << 20
MOST_MARKS = 1_000_000
_RECEIVED = 4

# The path to which tables are sent.
_TABLE = re.compile("/v1/studies/[^/]+/table")

#: Maximum nesting of lists and objects in a body. The core's own reader allows slightly deeper nesting.
DEEPEST_BODY = 100

#: Maximum number of bytes that are sent at once. An encrypted connection keeps a buffer for the largest part.
LARGEST_PART = 1 << 14

#: Paths whose answers do not contain data of studies. Browsers request these paths before they have a token.
OPEN_PATHS = frozenset({"/", "/docs", "/openapi.json"})

#: Replacement of "/" in a segment of a path. Names of studies are printable, so they do not contain this character.
SLASH = "\0"

# Browsers and proxies must not cache answers, and must not guess other types than the given types.
_HEADERS = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]


class Refused(Exception):
    """A request is refused; the answer is a problem with this status, detail and headers."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.answer = status, refusal(status, detail, headers=headers)


class Gate:
    """An application that requires a token of `--token-file` or BELATED_TOKEN. The scope of a request has its user.

    `pages` returns the answers for `OPEN_PATHS`. An answer to a request without the token closes its connection, so
    that only clients with the token keep connections.

    Once `closing` is True, each connection is closed after its answer. The server waits until all connections have
    ended, but does not ask a connection to close if it was accepted during this wait. If the server cancels a call, the
    answer has the status 503, but the thread of the call continues.
    """

    def __init__(self, app: App, tokens: Tokens, pages: Callable[[], Mapping[str, App]] = dict) -> None:
        self._app, self._pages, self._tokens = app, pages, tokens
        self._receiving, self._reading = asyncio.Semaphore(_RECEIVED), asyncio.Lock()
        self.closing: Callable[[], bool] = lambda: False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        app, started, has_token = self._app, False, False

        async def answer(message: Message) -> None:
            nonlocal started
            started = True
            if message["type"] == "http.response.start":
                closing = [] if has_token and not self.closing() else [(b"connection", b"close")]
                message["headers"] = [*message.get("headers", ()), *_HEADERS, *closing]
            body = message.get("body", b"")
            last = max(0, len(body) - 1) // LARGEST_PART * LARGEST_PART
            for start in range(0, last, LARGEST_PART):
                await send({**message, "body": body[start : start + LARGEST_PART], "more_body": True})
            await send({**message, "body": body[last:]} if last else message)

        async with AsyncExitStack() as until_answered:
            try:
                scope["path"] = path_of(scope)
                if scope["path"] not in OPEN_PATHS:
                    scope["user"] = self._user_of(scope)
                    has_token = True
                elif scope["method"] not in ("GET", "HEAD"):
                    raise Refused(405, f"{scope['path']} can only be read: send GET", {"allow": "GET"})
                else:
                    app = self._pages()[scope["path"]]
                if b"%00" in scope["raw_path"].split(b"?")[0]:
                    raise Refused(404, "the path has the character NUL, which is not in the name of any study")
                if scope["method"] in ("GET", "HEAD"):
                    check_no_body(scope)
                elif length_of(scope) > LARGEST_BODY and _TABLE.fullmatch(scope["path"]):
                    receive = replaying(await self._large_table(scope, receive, until_answered), receive)
                else:
                    body = await received_body(scope, receive)
                    check_body(scope, body)
                    receive = replaying(body, receive)
                await app(scope, receive, answer)
            except Refused as problem:
                await problem.answer(scope, receive, answer)
            except asyncio.CancelledError:
                if started or not self.closing():
                    raise
                await refusal(503, _ENDED)(scope, receive, answer)

    async def _large_table(self, scope: Scope, receive: Receive, until_answered: AsyncExitStack) -> bytes:
        """Return the checked body of a table; others wait for their turn until this request is answered."""
        problem = refused(scope["user"], "table", {})
        if problem is not None:
            raise Refused(403, problem, {"connection": "close"})
        if length_of(scope) > LARGEST_TABLE:  # before the request waits
            raise _too_large(LARGEST_TABLE)
        await until_answered.enter_async_context(self._receiving)
        body = await received_body(scope, receive, LARGEST_TABLE)
        await until_answered.enter_async_context(self._reading)
        if sum(map(body.count, (b",", b"[", b"{"))) > MOST_MARKS:
            raise Refused(413, f"the table has more than {MOST_MARKS:,} commas and brackets: send less rows at once")
        await asyncio.to_thread(check_body, scope, body)
        return body

    def _user_of(self, scope: Scope) -> User:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        kind, _, token = (given[0] if len(given) == 1 else b"").partition(b" ")
        user = self._tokens.user(token.strip())
        if kind.lower() != b"bearer" or user is None:
            raise Refused(
                401,
                "the token is missing or wrong: send the header Authorization: Bearer TOKEN",
                {"www-authenticate": "Bearer"},
            )
        return user


_ENDED = "the server ends, and the request may have been carried out or not: send it again, with its key"


def path_of(scope: Scope) -> str:
    """Return the decoded path. An encoded slash stays within its segment."""
    segments = scope["raw_path"].split(b"?")[0].split(b"/")
    return "/".join(unquote_to_bytes(part).decode(errors="replace").replace("/", SLASH) for part in segments)


def check_no_body(scope: Scope) -> None:
    """Raise Refused if a request that only reads has a body, which nobody would check."""
    headers = dict(scope["headers"])
    if headers.get(b"content-length", b"0").strip(b"0") or b"transfer-encoding" in headers:
        raise Refused(400, f"{scope['method']} has no body: leave it out", {"connection": "close"})


def length_of(scope: Scope) -> float:
    """Return the declared number of bytes of a body: 0 if it is not declared, and infinity if it is not usable."""
    length = dict(scope["headers"]).get(b"content-length", b"0")
    return int(length) if length.isdigit() and len(length) <= 18 else math.inf


def _too_large(largest: int) -> Refused:
    return Refused(413, f"the body is larger than {largest} bytes: send less at once", {"connection": "close"})


async def received_body(scope: Scope, receive: Receive, largest: int = LARGEST_BODY) -> bytes:
    """Return the whole body of a request. Raise Refused if the body is too large."""
    if length_of(scope) > largest:
        raise _too_large(largest)
    body = bytearray()
    more = True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise Refused(400, "the client went away")
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > largest:
            raise _too_large(largest)
    return bytes(body)


def check_body(scope: Scope, body: bytes) -> None:
    """Refuse a body that is neither empty nor a JSON object."""
    if body:
        if body.startswith((b"PK", b"\xd0\xcf\x11\xe0")):
            raise Refused(
                415, "the body is a workbook or an archive: save the workbook as CSV, and send its cells as JSON"
            )
        kind = dict(scope["headers"]).get(b"content-type", b"").split(b";")[0].strip().lower()
        if kind != b"application/json":
            raise Refused(415, "the body is not JSON: send it with the header Content-Type: application/json")
        check_json(body)


def check_json(body: bytes) -> None:
    """Refuse a body that is not a JSON object. Also refuse NaN, infinity and lone surrogates.

    Raises
    ------
    Refused
        The status is 400 if the body is not JSON, and 422 if the body is JSON that cannot be a request.
    """
    too_deep = Refused(422, f"the body is nested too deeply: send at most {DEEPEST_BODY} levels of lists and objects")
    try:
        data = json.loads(
            body.decode(), parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_with_different_names
        )
    except RecursionError:
        raise too_deep from None
    except ValueError as error:
        # This error may also be about an integer with thousands of digits.
        raise Refused(400, f"the body is not JSON: {str(error).splitlines()[0][:200]}") from None
    if not isinstance(data, dict):
        raise Refused(422, "the body is not a JSON object: send names and values, as in {}")
    if _is_deeper(data, DEEPEST_BODY):
        raise too_deep
    if b"\\u" in body:
        try:
            json.dumps(data, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise Refused(422, "the body has half of a surrogate pair, which is not a character") from None


def _is_deeper(data: Any, depth: int) -> bool:
    """Return whether data has more than `depth` levels. Check level by level, because Python limits recursion."""
    level = [data]
    for _ in range(depth + 1):
        # The contents of each list or object of this level.
        inner = [each.values() if isinstance(each, dict) else each for each in level if isinstance(each, (dict, list))]
        if not inner:
            return False
        level = [value for values in inner for value in values]
    return True


def _with_different_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for name, value in pairs:
        if name in data:
            raise Refused(422, f"the body has the name {short_repr(name)} twice in an object: give each once")
        data[name] = value
    return data


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is not a number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is larger than any float")
    return number


def replaying(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that first returns the body that was already read."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return first.pop() if first else await receive()

    return again
