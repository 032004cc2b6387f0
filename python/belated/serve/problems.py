"""Errors as answers: RFC 9457 problems with a status, the error's class and its message."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from belated._core import BelatedError
from belated.errors import (
    AlreadyObserved,
    HorizonReached,
    NotFitted,
    NumericalError,
    StoreError,
    TrialChanged,
    UnknownTrial,
)

MEDIA_TYPE = "application/problem+json"

# Titles that `HTTPStatus` has from Python 3.13 on.
_TITLES = {413: "Content Too Large", 422: "Unprocessable Content"}


class UnknownStudy(BelatedError, KeyError):
    """No study of the store has this name."""

    __str__ = Exception.__str__


class OtherStudy(BelatedError):
    """The id in the request belongs to another study, perhaps a deleted study of the same name."""


class StudyExists(BelatedError):
    """A study with this name exists, but its definition is different."""


class Conflict(Exception):
    """An error about trials, which the answer has as they are."""

    def __init__(self, error: BelatedError, trials: list[dict[str, Any]]) -> None:
        super().__init__(str(error))
        self.error, self.trials = error, trials


_CONFLICTS = (AlreadyObserved, OtherStudy, StudyExists, TrialChanged, HorizonReached, NotFitted, NumericalError)


def status_of(error: BelatedError) -> int:
    """Return the status of the answer to a request that raised this error."""
    if isinstance(error, (UnknownStudy, UnknownTrial)):
        return 404
    if isinstance(error, _CONFLICTS):
        return 409
    # All other errors of belated, except errors of the store, are caused by the data of the request.
    return 503 if isinstance(error, StoreError) else 422


def as_json(data: Any) -> bytes:
    """Return the JSON of an answer in ASCII, so that every string of a study can be sent."""
    return json.dumps(data, allow_nan=False, separators=(",", ":")).encode("ascii")


def refusal(status: int, detail: str, *, headers: Mapping[str, str] | None = None, **more: Any) -> Response:
    """Return an answer that describes a problem; `more` may have the name of the error's class, and trials."""
    title = _TITLES.get(status) or HTTPStatus(status).phrase
    facts: dict[str, Any] = {"title": title, "status": status, "detail": detail}
    return Response(as_json(facts | more), status, headers, MEDIA_TYPE)


def refusal_of(error: BelatedError, trials: list[dict[str, Any]] | None = None) -> Response:
    """Return the answer to a request that raised this error; it may have the trials."""
    more: dict[str, Any] = {} if trials is None else {"trials": trials}
    return refusal(status_of(error), str(error), error=type(error).__name__, **more)
