"""The API: its paths, the calls that they make, and errors as answers."""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Annotated, Any, TypeVar

from fastapi import Depends, FastAPI, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException

from belated._core import BelatedError, __version__
from belated.serve import answers, messages
from belated.serve.connections import log_refusals_rarely
from belated.serve.gate import SLASH, Gate
from belated.serve.page import security_policy
from belated.serve.problems import MEDIA_TYPE, as_json, problem, problem_of
from belated.serve.studies import OpenStudies, at_time
from belated.study.study import Study

T = TypeVar("T")

_ABOUT = """Studies of [belated](https://pypi.org/project/belated): ask for points to try, and report what came of them,
at any time and in any order. Every request needs the header `Authorization: Bearer TOKEN`. A request that is repeated
because its answer was lost changes nothing where it has a `key`. In paths, names are percent-encoded (`/` as `%2F`).
Errors are `application/problem+json`."""

_PROBLEM = {"content": {MEDIA_TYPE: {"schema": messages.Problem.model_json_schema()}}}


# Problems that any path may answer, by status.
_EVERYWHERE = {
    400: "The body is not JSON.",
    401: "The token is missing or wrong.",
    413: "The body is too large.",
    415: "The body is not declared as JSON.",
    422: "A part of the request cannot be used; nothing was changed.",
    503: "The store cannot be read or written, or the server ends; the request may have been carried out: send it "
    "again later, with the same key.",
}


def _problems(here: dict[int, str] | None = None) -> dict[int | str, dict[str, Any]]:
    """Return the descriptions of answers that are problems, on all paths or on this path."""
    return {status: {"description": text, **_PROBLEM} for status, text in sorted((_EVERYWHERE | (here or {})).items())}


_NO_STUDY = "There is no such study."
_NO_TRIAL = "There is no such study, or no such trial."
_HAS_VALUE = "The trial has a value already."

_NameInPath = Annotated[str, Path(description="The study's name.")]
Number = Annotated[int, Path(ge=0, description="The trial's number.")]


# Async, because the framework would call a plain function in a thread.
async def _name(name: _NameInPath) -> str:
    return name.replace(SLASH, "/")


Name = Annotated[str, Depends(_name)]


def answer(data: Any, status: int = 200) -> Response:
    """Return an answer that contains JSON."""
    return Response(as_json(data), status, media_type="application/json")


def make_app(studies: OpenStudies, token: str) -> Gate:
    """Return the ASGI application for the studies of a store, which requires a token."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        log_refusals_rarely()
        yield
        studies.close()

    api = FastAPI(
        title="belated",
        version=__version__,
        description=_ABOUT,
        lifespan=lifespan,
        redoc_url=None,
        swagger_ui_oauth2_redirect_url=None,
        redirect_slashes=False,
    )
    _add_handlers(api)
    _add_page(api)
    _add_studies(api, studies)
    _add_trials(api, studies)
    return Gate(api, token)


def _add_handlers(api: FastAPI) -> None:
    def refusal(status: int, body: bytes, headers: Any = None) -> Response:
        return Response(body, status, media_type=MEDIA_TYPE, headers=headers)

    @api.exception_handler(BelatedError)
    async def of_belated(request: Request, error: BelatedError) -> Response:
        status, body = problem_of(error)
        if status >= 500:
            # The path is quoted, because it can contain line breaks.
            logging.getLogger("belated").error("%s %r: %s", request.method, request.url.path, error)
        return refusal(status, body)

    @api.exception_handler(RequestValidationError)
    async def of_schema(request: Request, error: RequestValidationError) -> Response:
        # The request's data is left out, because it may be large or not JSON.
        found = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
        return refusal(422, problem(422, "; ".join(text[:300] for text in found[:5])))

    @api.exception_handler(HTTPException)
    async def of_framework(request: Request, error: HTTPException) -> Response:
        return refusal(error.status_code, problem(error.status_code, str(error.detail)), error.headers)

    @api.exception_handler(Exception)
    async def of_programs(request: Request, error: Exception) -> Response:
        # The framework raises the error again after this answer, and the server then logs it.
        return refusal(500, problem(500, "an error of belated itself: the server's log has more"))


def _add_page(api: FastAPI) -> None:
    page = files("belated.serve").joinpath("page.html").read_bytes()
    headers = {"content-security-policy": security_policy(page.decode()), "referrer-policy": "no-referrer"}

    @api.get("/", include_in_schema=False)
    async def show_page() -> Response:
        return Response(page, media_type="text/html; charset=utf-8", headers=headers)


# Only for the description: the gate checks the token before anything else.
_BEARER = [Depends(HTTPBearer(auto_error=False, description="The token of --token-file or BELATED_TOKEN."))]


def _add_studies(api: FastAPI, studies: OpenStudies) -> None:
    @api.get(
        "/v1/studies",
        response_model=messages.StudyNames,
        responses=_problems(),
        dependencies=_BEARER,
        operation_id="list_studies",
        summary="List the studies",
    )
    async def list_studies(page: Annotated[messages.StudiesPage, Query()]) -> Response:
        names, end = await studies.names(), page.start + page.limit
        found = [{"name": name} for name in names[page.start : end]]
        return answer({"studies": found, "next": end if end < len(names) else None})

    @api.post(
        "/v1/studies",
        status_code=201,
        response_model=messages.StudyAnswer,
        responses={
            200: {"model": messages.StudyAnswer, "description": "It exists, with the same definition."},
            **_problems({409: "It exists with another definition."}),
        },
        dependencies=_BEARER,
        operation_id="create_study",
        summary="Create a study",
    )
    async def create_study(body: messages.Create) -> Response:
        created, data = await studies.create(body.name, body.definition, answers.study_as_data)
        return answer(data, 201 if created else 200)

    @api.get(
        "/v1/studies/{name}",
        response_model=messages.StudyAnswer,
        responses=_problems({404: _NO_STUDY}),
        dependencies=_BEARER,
        operation_id="show_study",
        summary="Counts and the best trial of a study",
    )
    async def show_study(name: Name) -> Response:
        return answer(await studies.call(name, answers.study_as_data))

    @api.get(
        "/v1/studies/{name}/definition",
        response_model=messages.DefinitionAnswer,
        responses=_problems({404: _NO_STUDY}),
        dependencies=_BEARER,
        operation_id="show_definition",
        summary="The optimizer's class and arguments, including the space",
    )
    async def show_definition(name: Name) -> Response:
        return answer(await studies.call(name, answers.definition_as_data))

    @api.get(
        "/v1/studies/{name}/best",
        response_model=messages.Best,
        responses=_problems({404: _NO_STUDY}),
        dependencies=_BEARER,
        operation_id="show_best",
        summary="The trial with the best value",
    )
    async def show_best(name: Name) -> Response:
        return answer(await studies.call(name, answers.best_as_data))

    @api.post(
        "/v1/studies/{name}/suggest",
        response_model=messages.Trials,
        responses=_problems({404: _NO_STUDY, 409: "The horizon of the study is reached."}),
        dependencies=_BEARER,
        operation_id="suggest",
        summary="Start trials",
    )
    async def suggest(name: Name, body: messages.Suggest = messages.Suggest()) -> Response:  # noqa: B008
        def work(study: Study) -> dict[str, Any]:
            with at_time(study, body.now):
                context = None if body.context is None else as_choices(body.context)
                settings: dict[str, Any] = {
                    "fidelity": body.fidelity,
                    "key": body.key,
                    "expires_after": body.expires_after,
                }
                return answers.trials_as_data(study, study.suggest(body.n, context, **settings))

        return answer(await studies.call(name, work))


def _add_trials(api: FastAPI, studies: OpenStudies) -> None:
    async def reported(name: str, number: int, now: float | None, report: Callable[[Study], None]) -> Response:
        """Make a report and answer with the trial after it."""

        def work(study: Study) -> dict[str, Any]:
            with at_time(study, now):
                report(study)
            return answers.trial_as_data(study, number)

        return answer(await studies.call(name, work))

    @api.get(
        "/v1/studies/{name}/trials",
        response_model=messages.TrialsPage,
        responses=_problems({404: _NO_STUDY}),
        dependencies=_BEARER,
        operation_id="list_trials",
        summary="List trials, in order of their numbers",
    )
    async def list_trials(name: Name, page: Annotated[messages.Page, Query()]) -> Response:
        def work(study: Study) -> dict[str, Any]:
            return answers.page_as_data(study, page.state, page.start, page.limit, page.since)

        return answer(await studies.call(name, work))

    @api.get(
        "/v1/studies/{name}/trials/{number}",
        response_model=messages.TrialAnswer,
        responses=_problems({404: _NO_TRIAL}),
        dependencies=_BEARER,
        operation_id="show_trial",
        summary="The current state of a trial",
    )
    async def show_trial(name: Name, number: Number) -> Response:
        return answer(await studies.call(name, lambda study: answers.trial_as_data(study, number)))

    @api.post(
        "/v1/studies/{name}/trials/{number}/observe",
        response_model=messages.TrialAnswer,
        responses=_problems({404: _NO_TRIAL, 409: _HAS_VALUE}),
        dependencies=_BEARER,
        operation_id="observe",
        summary="Report a trial's value, however late",
    )
    async def observe(name: Name, number: Number, body: messages.Observe) -> Response:
        facts = body.model_dump(exclude={"value", "now"})
        facts["params"] = as_choices(facts["params"])
        return await reported(name, number, body.now, lambda study: study.observe(number, body.value, **facts))

    @api.post(
        "/v1/studies/{name}/trials/{number}/fail",
        response_model=messages.TrialAnswer,
        responses=_problems({404: _NO_TRIAL, 409: _HAS_VALUE}),
        dependencies=_BEARER,
        operation_id="fail",
        summary="Report that a trial crashed",
    )
    async def fail(name: Name, number: Number, body: messages.Fail = messages.Fail()) -> Response:  # noqa: B008
        def report(study: Study) -> None:
            study.fail(number, error=body.error, attrs=body.attrs)

        return await reported(name, number, body.now, report)

    @api.post(
        "/v1/studies/{name}/trials/{number}/abandon",
        response_model=messages.TrialAnswer,
        responses=_problems({404: _NO_TRIAL, 409: _HAS_VALUE}),
        dependencies=_BEARER,
        operation_id="abandon",
        summary="Abandon a trial without judging its point",
    )
    async def abandon(name: Name, number: Number, body: messages.Abandon = messages.Abandon()) -> Response:  # noqa: B008
        return await reported(name, number, body.now, lambda study: study.abandon(number))


def as_choices(params: Any) -> Any:
    """Return params from JSON with tuples in place of lists, because JSON has lists for choices that are tuples."""

    def choice(value: Any) -> Any:
        return tuple(map(choice, value)) if isinstance(value, list) else value

    return {name: choice(value) for name, value in params.items()} if isinstance(params, dict) else params
