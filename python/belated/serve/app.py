"""The HTTP API: its paths, the functions that answer requests, and the answers for errors."""

import json
import logging
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cache, partial
from hashlib import sha256
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Depends, FastAPI, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException

from belated._core import AlreadyObserved, BelatedError, __version__
from belated.errors import InvalidSetting, TrialChanged
from belated.serve import answers, messages, roles
from belated.serve.connections import log_refusals_rarely
from belated.serve.description import description_page
from belated.serve.gate import SLASH, App, Gate
from belated.serve.page import live_page, security_policy
from belated.serve.problems import MEDIA_TYPE, Conflict, as_json, refusal, refusal_of
from belated.serve.studies import Estimate, OpenStudies, at
from belated.serve.tokens import Tokens
from belated.study.study import Sent, Study

_ABOUT = """Studies of belated: ask for points to evaluate, and report their results,
at any time and in any order. Every request needs the header `Authorization: Bearer TOKEN`. If an answer was lost,
repeat the request: with a `key`, a repetition changes nothing. A key belongs to one request of one user. In paths,
names are percent-encoded (`/` as `%2F`).
Errors are `application/problem+json`."""


def make_app(studies: OpenStudies, tokens: Tokens) -> Gate:
    """Return the ASGI application for the studies of a store, which requires one of the tokens."""

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
        # Without this URL, the framework does not add its own pages, which load scripts from another host.
        openapi_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    api.state.studies = studies
    api.add_exception_handler(BelatedError, _of_belated)
    api.add_exception_handler(Conflict, _of_conflict)
    api.add_exception_handler(RequestValidationError, _of_schema)
    api.add_exception_handler(HTTPException, _of_framework)
    api.add_exception_handler(Exception, _of_programs)
    api.include_router(router)
    return Gate(api, tokens, cache(lambda: _pages(api)))


# Errors as answers.


async def _of_belated(request: Request, error: Any) -> Response:
    answered = refusal_of(error)
    if answered.status_code >= 500:
        # The path is quoted, because it can contain line breaks.
        logging.getLogger("belated").error("%s %r: %s", request.method, request.url.path, error)
    return answered


async def _of_conflict(request: Request, error: Any) -> Response:
    return refusal_of(error.error, trials=error.trials)


async def _of_schema(request: Request, error: Any) -> Response:
    # Leave out the data of the request, because the data may be large or not JSON.
    found = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
    return refusal(422, "; ".join(text[:300] for text in found[:5]))


async def _of_framework(request: Request, error: Any) -> Response:
    return refusal(error.status_code, str(error.detail), headers=error.headers)


async def _of_programs(request: Request, error: Exception) -> Response:
    # The framework raises the error again after this answer, and the server then logs the error.
    return refusal(500, "an error in belated: the server's log has more")


def _pages(api: FastAPI) -> dict[str, App]:
    """Return the answers that do not need a token, which are made only once because anybody can request them."""
    description = api.openapi()
    pages: dict[str, App] = {"/": _html(live_page()), "/docs": _html(description_page(description))}
    return pages | {"/openapi.json": answer(description)}


def _html(page: str) -> Response:
    headers = {"content-security-policy": security_policy(page), "referrer-policy": "no-referrer"}
    return Response(page, media_type="text/html; charset=utf-8", headers=headers)


# The API's description of an answer that reports a problem.


def _problems(texts: dict[int, str]) -> dict[int | str, dict[str, Any]]:
    """Convert a dict of status → text to the API's descriptions of answers that report a problem."""
    content = {MEDIA_TYPE: {"schema": messages.Problem.model_json_schema()}}
    return {status: {"description": text, "content": content} for status, text in texts.items()}


_OTHER_ID = {409: "The study has another id than `study_id`."}
_NO_STUDY = _problems({404: "A study with this name does not exist."} | _OTHER_ID)
_NO_TRIAL = _problems({404: "The study or the trial does not exist."} | _OTHER_ID)
_REPORT = _NO_TRIAL | _problems({409: "The trial has a value already, or the study has another id than `study_id`."})


async def _check_role(request: Request) -> None:
    """Refuse a request for which the role of the user is not enough. The gate has checked the token and the body."""
    name = request.scope["route"].name
    depends_on_body = any(name == route for route, _ in roles.NEEDED_BY_FIELD)
    body = json.loads(await request.body() or "{}") if depends_on_body else {}
    problem = roles.refused(request.user, name, body)
    if problem is not None:
        raise HTTPException(403, problem)


router = APIRouter(
    prefix="/v1",
    # The first dependency only describes the token; the gate checks the token before anything else.
    dependencies=[
        Depends(HTTPBearer(auto_error=False, description="The token of --token-file or BELATED_TOKEN.")),
        Depends(_check_role),
    ],
    responses=_problems(
        {
            400: "The body is not JSON.",
            401: "The token is missing or wrong.",
            403: "The role of the token is not enough.",
            413: "The body is too large.",
            415: "The body is not declared as JSON.",
            422: "A part of the request cannot be used; nothing was changed.",
            503: "The store cannot be read or written, or the server ends; the request may have been carried out: send "
            "it again later, with the same key.",
        }
    ),
)


def _route(method: str, path: str, model: type[Any], summary: str, problems: Any = None, status_code: int = 200) -> Any:
    """Decorate the function that answers requests for a path; the other arguments describe its answers."""
    return router.api_route(
        path, methods=[method], response_model=model, summary=summary, responses=problems, status_code=status_code
    )


_get, _post = partial(_route, "GET"), partial(_route, "POST")


# The functions that answer requests are async, because the framework would call plain functions in a thread.


def answer(data: Any, status: int = 200) -> Response:
    """Return an answer that contains data as JSON; bytes are JSON already."""
    return Response(data if isinstance(data, bytes) else as_json(data), status, media_type="application/json")


async def _studies(request: Request) -> Any:
    return request.app.state.studies


Studies = Annotated[OpenStudies, Depends(_studies)]
Call: TypeAlias = Callable[..., Awaitable[Response]]


async def _call(
    request: Request,
    studies: Studies,
    name: Annotated[str, Path(description="The study's name.")],
    study_id: Annotated[messages.StudyId | None, Query()] = None,
) -> Call:
    """Return a function that calls a function with the study in the path, and answers with the result.

    `body` is the body of a request that writes, and `numbers` are the trials that it changes.
    """

    async def call(
        work: Callable[[Study], Any],
        body: messages.Timed | None = None,
        numbers: Sequence[int] = (),
        now: float | None = None,
    ) -> Response:
        by, sent = (None, Sent()) if body is None else _sent(body, request.user)

        def in_request(study: Study) -> Any:
            with at(study, now if body is None else body.now, by, sent) as here:
                try:
                    return work(here)
                except TrialChanged as error:
                    changed = error.numbers
                    raise Conflict(error, [answers.trial_as_data(study, number) for number in changed]) from None
                except AlreadyObserved as error:
                    known = [answers.trial_as_data(study, number) for number in numbers]
                    raise Conflict(error, known) from None

        return answer(await studies.call(name.replace(SLASH, "/"), in_request, study_id))

    return call


def _sent(body: messages.Timed, user: roles.User) -> tuple[str | None, Sent]:
    """Return the author of a request, and the other parts of its body that are not arguments of the study's method."""
    if user.name is not None and body.by not in (None, user.name):
        raise InvalidSetting(f"by={body.by!r} differs from the name of the token, {user.name!r}: leave it out")
    revision, expected, by = getattr(body, "revision", None), getattr(body, "expected", None), user.name or body.by
    key, digest = body.key, None
    if isinstance(body, messages.Table):
        key = None if body.dry_run else key  # a dry run changes nothing
        digest = key and sha256(as_json([by, body.model_dump(exclude=_OF_REQUEST)])).hexdigest()[:16]
    return by, Sent(revision, key, expected, digest)


# The fields of a body that are not arguments of the study's method.
_OF_REQUEST = {"now", "revision", "by", "key", "expected"}

InStudy = Annotated[Call, Depends(_call)]
Number = Annotated[int, messages.PLAIN, Path(ge=0, description="The trial's number.")]


async def _beside(
    studies: Studies,
    name: Annotated[str, Path(description="The study's name.")],
    study_id: Annotated[messages.StudyId | None, Query()] = None,
) -> Call:
    """Return a function that answers with an estimate for the study in the path; see `Estimate`."""

    async def ask(
        what: str | None, work: Callable[[Study], Any], version: Callable[[Study], Any], uses_model: bool = True
    ) -> Response:
        asked = Estimate(what, lambda study: as_json(work(study)), version, uses_model)
        found = await studies.estimate(name.replace(SLASH, "/"), asked, study_id)
        return answer(found)

    return ask


Beside = Annotated[Call, Depends(_beside)]


async def _report(call: InStudy, number: Number) -> Call:
    """Return a function that makes a report about the trial in the path, and answers with the changed trial."""

    async def report(body: messages.Timed, change: Callable[[Study, int], None], step: int | None = None) -> Response:
        def work(study: Study) -> dict[str, Any]:
            change(study, number)
            return answers.trial_as_data(study, number, step)

        return await call(work, body, [number])

    return report


OnTrial = Annotated[Call, Depends(_report)]


@_get("/user", messages.UserAnswer, "The name and the role of the token")
async def show_user(request: Request) -> Response:
    return answer(request.user._asdict())


@_get("/studies", messages.StudyNames, "List the studies")
async def list_studies(studies: Studies, page: Annotated[messages.StudiesPage, Query()]) -> Response:
    names, end = await studies.names(), page.start + page.limit
    found = [{"name": name} for name in names[page.start : end]]
    return answer({"studies": found, "next": end if end < len(names) else None})


@_post(
    "/studies",
    messages.StudyAnswer,
    "Create a study",
    {200: {"model": messages.StudyAnswer, "description": "It exists, with the same definition."}}
    | _problems({409: "It exists with another definition."}),
    status_code=201,
)
async def create_study(studies: Studies, body: messages.Create) -> Response:
    created, data = await studies.create(body.name, body.definition, answers.study_as_data)
    return answer(data, 201 if created else 200)


@_get("/studies/{name}", messages.StudyAnswer, "Counts and the best trial of a study", _NO_STUDY)
async def show_study(call: InStudy) -> Response:
    return await call(answers.study_as_data)


@_get(
    "/studies/{name}/definition",
    messages.DefinitionAnswer,
    "The optimizer's class and arguments, including the space",
    _NO_STUDY,
)
async def show_definition(call: InStudy) -> Response:
    return await call(answers.definition_as_data)


@_get("/studies/{name}/best", messages.Best, "The trial with the best value", _NO_STUDY)
async def show_best(call: InStudy) -> Response:
    return await call(answers.best_as_data)


@_get("/studies/{name}/forecast", messages.ForecastAnswer, "How many results arrive within the median delay", _NO_STUDY)
async def show_forecast(call: InStudy, ask: Beside, moment: Annotated[messages.Moment, Query()]) -> Response:
    if moment.now is not None:
        return await call(answers.forecast_as_data, now=moment.now)
    # Each event changes the forecast, and so does the time.
    return await ask("forecast", answers.forecast_as_data, lambda study: (_events(study), time.time() // 60), False)


@_get(
    "/studies/{name}/finals",
    messages.FinalsAnswer,
    "Forecasts of the values of running trials at the last step",
    _NO_STUDY,
)
async def show_finals(ask: Beside) -> Response:
    return await ask("finals", answers.finals_as_data, _of_model)


@_get("/studies/{name}/importance", messages.ImportanceAnswer, "The importance of each parameter", _NO_STUDY)
async def show_importance(ask: Beside) -> Response:
    return await ask("importance", answers.importance_as_data, _of_model)


@_get("/studies/{name}/chart", messages.ChartAnswer, "The values of a study, thinned for a chart", _NO_STUDY)
async def show_chart(ask: Beside, chart: Annotated[messages.Chart, Query()]) -> Response:
    name = f"chart {chart.order} {chart.outcome}"
    return await ask(name, lambda study: answers.chart_as_data(study, chart), _events, False)


def _events(study: Study) -> int:
    """Return the number of events of a study."""
    return study._current_log().n_events()


def _of_model(study: Study) -> int | None:
    """Return the number of events of a study whose model is used; None for another study."""
    return _events(study) if answers.no_model(study) is None else None


@_post(
    "/studies/{name}/suggest",
    messages.Trials,
    "Start trials",
    _NO_STUDY | _problems({409: "The horizon of the study is reached, or it has another id than `study_id`."}),
)
async def suggest(call: InStudy, body: messages.Suggest = messages.Suggest()) -> Response:  # noqa: B008
    arguments = body.model_dump(exclude=_OF_REQUEST)
    arguments["context"] = as_choices(body.context)
    if body.fixed is not None:
        # A list has the allowed values; only lists in it are choices that are tuples.
        arguments["fixed"] = {
            name: [as_choice(each) for each in value] if isinstance(value, list) else as_choices(value)
            for name, value in body.fixed.items()
        }
    start = lambda study: answers.trials_as_data(study, study.suggest(**arguments))  # noqa: E731
    return await call(start, body)


@_post("/studies/{name}/add", messages.TrialAnswer, "Add a trial at a point that was not suggested", _NO_STUDY)
async def add(call: InStudy, body: messages.Add) -> Response:
    arguments = body.model_dump(exclude=_OF_REQUEST)
    arguments |= {name: as_choices(arguments[name]) for name in ("params", "context")}

    def work(study: Study) -> dict[str, Any]:
        return answers.trial_as_data(study, study.add(**arguments).number)

    return await call(work, body)


@_get("/studies/{name}/trials", messages.TrialsPage, "List trials, in order of their numbers", _NO_STUDY)
async def list_trials(call: InStudy, page: Annotated[messages.Page, Query()]) -> Response:
    return await call(lambda study: answers.page_as_json(study, page))


@_get("/studies/{name}/trials/{number}", messages.TrialAnswer, "The current state of a trial", _NO_TRIAL)
async def show_trial(call: InStudy, number: Number) -> Response:
    return await call(lambda study: answers.trial_as_data(study, number))


@_get("/studies/{name}/trials/{number}/history", messages.HistoryAnswer, "The events of a trial", _NO_TRIAL)
async def show_history(call: InStudy, number: Number) -> Response:
    return await call(lambda study: answers.history_as_data(study, number))


@_post(
    "/studies/{name}/trials/{number}/check", messages.CheckAnswer, "Read a text as a value, and compare it", _NO_TRIAL
)
async def check(ask: Beside, number: Number, body: messages.Check) -> Response:
    return await ask(None, lambda study: answers.check_as_data(study, number, body.text, body.outcome), _of_model)


@_post(
    "/studies/{name}/table",
    messages.TableAnswer,
    "Report the values of a table",
    _REPORT | _problems({501: "The server cannot read tables."}),
)
async def table(call: InStudy, body: messages.Table) -> Response:
    try:
        return await call(lambda study: answers.table_as_data(study, body), body)
    except ImportError as error:  # pandas is not installed
        raise HTTPException(501, f"this server cannot read tables: {error}") from None


@_post("/studies/{name}/trials/{number}/observe", messages.TrialAnswer, "Report a trial's value, however late", _REPORT)
async def observe(report: OnTrial, body: messages.Observe) -> Response:
    facts = body.model_dump(exclude=_OF_REQUEST)
    facts["params"] = as_choices(facts["params"])
    return await report(body, lambda study, number: study.observe(number, **facts))


@_post("/studies/{name}/trials/{number}/fail", messages.TrialAnswer, "Report that a trial crashed", _REPORT)
async def fail(report: OnTrial, body: messages.Fail = messages.Fail()) -> Response:  # noqa: B008
    return await report(body, lambda study, number: study.fail(number, **body.model_dump(exclude=_OF_REQUEST)))


@_post(
    "/studies/{name}/trials/{number}/abandon",
    messages.TrialAnswer,
    "Abandon a trial without judging its point",
    _REPORT,
)
async def abandon(report: OnTrial, body: messages.Abandon = messages.Abandon()) -> Response:  # noqa: B008
    return await report(body, lambda study, number: study.abandon(number, outcome=body.outcome))


@_post("/studies/{name}/abandon", messages.Trials, "Abandon several trials", _REPORT)
async def abandon_all(call: InStudy, body: messages.AbandonAll) -> Response:
    return await _on_all(call, body, lambda study: study.abandon(body.numbers, outcome=body.outcome))


@_post(
    "/studies/{name}/trials/{number}/report",
    messages.TrialAnswer,
    "Report a step; the answer says if it stops",
    _REPORT,
)
async def report_step(report: OnTrial, body: messages.Report) -> Response:
    value = math.nan if body.value is None else body.value

    def record(study: Study, number: int) -> None:
        is_repeated = study._is_repeated("report")
        study.report(number, value, body.step, attempt=body.attempt)
        if not is_repeated:  # otherwise, reports of other trials could let the repetition stop this one
            study.should_stop(number)

    return await report(body, record, body.step)


@_post(
    "/studies/{name}/trials/{number}/stop", messages.TrialAnswer, "Stop a trial before the end of its curve", _REPORT
)
async def stop(report: OnTrial, body: messages.Stop = messages.Stop()) -> Response:  # noqa: B008
    return await report(body, Study.stop)


@_post(
    "/studies/{name}/trials/{number}/note", messages.TrialAnswer, "Store a remark or attributes of a trial", _NO_TRIAL
)
async def note(report: OnTrial, body: messages.Note = messages.Note()) -> Response:  # noqa: B008
    return await report(body, lambda study, number: study.note(number, body.remark, attrs=body.attrs))


@_post("/studies/{name}/trials/{number}/confirm", messages.TrialAnswer, "State that a marked value is right", _NO_TRIAL)
async def confirm(report: OnTrial, body: messages.Confirm = messages.Confirm()) -> Response:  # noqa: B008
    return await report(body, lambda study, number: study.confirm(number, outcome=body.outcome))


@_post(
    "/studies/{name}/trials/{number}/withdraw", messages.TrialAnswer, "Take back a trial's value or failure", _NO_TRIAL
)
async def withdraw(report: OnTrial, body: messages.Withdraw = messages.Withdraw()) -> Response:  # noqa: B008
    return await report(body, lambda study, number: study.withdraw(number, **_of(body)))


@_post("/studies/{name}/withdraw", messages.Trials, "Take back the values or failures of several trials", _NO_TRIAL)
async def withdraw_all(call: InStudy, body: messages.WithdrawAll) -> Response:
    return await _on_all(call, body, lambda study: study.withdraw(body.numbers, **_of(body)))


async def _on_all(call: Call, body: messages.OfSeveral, change: Callable[[Study], None]) -> Response:
    """Change several trials, and answer with them."""

    def work(study: Study) -> dict[str, Any]:
        change(study)
        return answers.trials_as_data(study, [study.trial(number) for number in body.numbers])

    return await call(work, body, body.numbers)


def _of(body: messages.Withdraw) -> dict[str, Any]:
    return {"reason": body.reason, "outcome": body.outcome}


def as_choice(value: Any) -> Any:
    """Return a value from JSON with tuples in place of lists."""
    return tuple(map(as_choice, value)) if isinstance(value, list) else as_choices(value)


def as_choices(params: Any) -> Any:
    """Return params from JSON with tuples in place of lists, because JSON has lists for choices that are tuples."""
    return {name: as_choice(value) for name, value in params.items()} if isinstance(params, dict) else params
