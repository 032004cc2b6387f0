"""For arbitrary params, contexts and definitions, the server either stores them correctly or answers with an error of
belated."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import belated as bl
from belated.study.definition import definition_of

pytest.importorskip("fastapi")

from belated.serve.app import as_choices  # noqa: E402
from belated.serve.problems import status_of  # noqa: E402
from belated.serve.studies import read_definition  # noqa: E402

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
)
values = st.recursive(
    scalars | st.sampled_from(["a", "b", 1, 0.5, 10**400, -(2**63), 1e308]),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=3), each, max_size=3),
    max_leaves=6,
)
SPACE = {
    "x": bl.Real(1e-3, 10.0, log=True),
    "n": bl.Integer(1, 5),
    "size": bl.Ordinal([16, 32]),
    "kind": bl.Categorical(["a", ("b", 1), None]),
    "degree": bl.Integer(2, 4, when={"kind": "a"}),
}
RIGHT = {"x": 0.5, "n": 2, "size": 16, "kind": ["b", 1]}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A study that declares a context and has one trial."""
    url = f"sqlite:///{tmp_path_factory.mktemp('values') / 's.db'}"
    study = bl.Study("s", url, bl.RandomSearch(SPACE, context={"day": (0.0, 7.0)}, fidelity=bl.Fidelity(1, 9), seed=0))
    study.suggest(context={"day": 1.0})
    return study


@settings(max_examples=100)
@given(st.dictionaries(st.sampled_from([*SPACE, "y"]), values, max_size=3), values)
def test_params_and_contexts_are_accepted_or_an_error_of_belated(study, changes, day):
    n = study._log.n_events()
    try:
        study.observe(0, 1.0, params=as_choices(RIGHT | changes), amend=True)
    except bl.BelatedError as error:
        assert status_of(error) == 422 and study._log.n_events() == n
    n = study._log.n_events()
    try:
        study.suggest(context=as_choices({"day": day}))
    except bl.BelatedError as error:
        assert status_of(error) == 422 and study._log.n_events() == n


DEFINITIONS = [
    json.loads(json.dumps(definition_of(optimizer)))
    for optimizer in (
        bl.RandomSearch(SPACE, context={"day": (0.0, 7.0)}, fidelity=bl.Fidelity(1, 9), seed=0),
        bl.BayesOpt(candidates=[[1.0, 2.0], [3.0, 4.0]], seed=0),
        bl.BayesOpt(candidates=[{"x": 1.0, "c": "a", "on": True}, {"x": 2.0, "on": False}], seed=0),
        bl.TreeSearch({"x": (0.0, 1.0)}, seed=0),
    )
]


def places(data, path=()):
    """Yield the path of every element of JSON data."""
    yield path
    for key in data if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ():
        yield from places(data[key], (*path, key))


def replaced(data, path, value):
    """Return a copy of JSON data with another value at a path."""
    if not path:
        return value
    copy = data.copy()
    copy[path[0]] = replaced(data[path[0]], path[1:], value)
    return copy


@settings(max_examples=150)
@given(st.data())
def test_a_changed_definition_makes_an_optimizer_or_an_error_of_belated(data):
    definition = data.draw(st.sampled_from(DEFINITIONS))
    path = data.draw(st.sampled_from([path for path in places(definition) if path]))
    changed = replaced(definition, path, data.draw(values))
    try:
        definition_of(read_definition(changed))
    except bl.BelatedError as error:
        assert status_of(error) == 422
