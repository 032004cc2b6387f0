"""Errors as answers: RFC 9457 problems with a status, the error's class and its message."""

import json
from typing import Any

from belated._core import AlreadyObserved, BelatedError, HorizonReached, NumericalError, UnknownTrial
from belated.optimizers.read_access import NotFitted
from belated.store import StoreError

MEDIA_TYPE = "application/problem+json"

_TITLES = {
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    405: "Method Not Allowed",
    409: "Conflict",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    422: "Unprocessable Content",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


class UnknownStudy(BelatedError, KeyError):
    """No study of the store has this name."""

    __str__ = Exception.__str__


class StudyExists(BelatedError):
    """A study of this name exists with another definition."""


# The first class that matches an error decides its status. All other errors of belated are about the request's data.
_STATUSES: tuple[tuple[type[BelatedError], int], ...] = (
    (UnknownStudy, 404),
    (UnknownTrial, 404),
    (AlreadyObserved, 409),
    (StudyExists, 409),
    (HorizonReached, 409),
    (NotFitted, 409),
    (NumericalError, 409),
    (StoreError, 503),
)


def status_of(error: BelatedError) -> int:
    """Return the status of the answer to a request that raised this error."""
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 422)


def as_json(data: Any) -> bytes:
    """Return the JSON of an answer in ASCII, so that all strings of a study are readable."""
    return json.dumps(data, allow_nan=False, separators=(",", ":")).encode("ascii")


def problem(status: int, detail: str, error: str | None = None) -> bytes:
    """Return the body of an answer that describes a problem. `error` is the name of the error's class."""
    facts: dict[str, Any] = {"title": _TITLES.get(status, "Error"), "status": status, "detail": detail}
    return as_json(facts if error is None else facts | {"error": error})


def problem_of(error: BelatedError) -> tuple[int, bytes]:
    """Return the status and the body of the answer to a request that raised this error."""
    status = status_of(error)
    # A KeyError prints as the repr of its message.
    message = error.args[0] if error.args and isinstance(error.args[0], str) else str(error)
    return status, problem(status, message, type(error).__name__)
