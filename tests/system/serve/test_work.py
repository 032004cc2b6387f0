"""Definitions that need too much work are refused over HTTP, before work is done for them."""

import functools

import pytest

pytest.importorskip("anyio")

import belated as bl  # noqa: E402
from belated.serve import answers, studies  # noqa: E402
from belated.study.definition import definition_of  # noqa: E402


def reals(n, **more):
    return [{"name": f"x{i}", "kind": "Real", "low": 0.0, "high": 1.0} | more for i in range(n)]


def choices(n, m):
    return [{"name": f"c{i}", "kind": "Categorical", "choices": list(range(m))} for i in range(n)]


def names(n):
    return [f"x{i}" for i in range(n)]


DOMAIN = ("space", "context", "candidates", "outcomes", "linear")


def definition(kind, arguments):
    """Return a definition; the domain belongs to its problem, and other arguments to its strategy."""
    problem = {name: data for name, data in arguments.items() if name in DOMAIN}
    settings = {name: data for name, data in arguments.items() if name not in problem}
    return {"problem": problem, "strategy": {"kind": kind} | settings}


LARGE = {
    "parameters": {"space": reals(1001)},
    "discrete": {"space": [{"name": f"i{i}", "kind": "Integer", "low": 0, "high": 3} for i in range(63)]},
    "ordinals": {"space": [{"name": f"o{i}", "kind": "Ordinal", "values": [1, 2]} for i in range(101)]},
    "steps": {"space": reals(63, step=0.1)},
    "conditions": {"space": [*choices(1, 2), *reals(250, when=[["c0", [1]]])]},
    "choices": {"space": choices(30, 40)},
    "contexts": {"space": reals(2), "context": reals(999)},
    "outcomes": {"space": reals(101), "outcomes": [[f"o{i}", {"kind": "Record"}] for i in range(10)]},
    "candidates": {"candidates": {"kind": "f", "rows": [[i / 7] for i in range(10_100)]}, "acquisition": "thompson"},
    "effort": {"space": reals(2), "search": {"kind": "Search", "effort": 30}},
    "multistart": {"space": reals(5), "search": {"kind": "Search", "multistart": [10, 10**6]}},
    "direct": {"space": reals(2), "search": {"kind": "Search", "direct": 10**6}},
    "integrate": {"space": reals(1), "pending": {"kind": "Integrate", "n": 10**6}},
    "features": {"space": reals(1), "acquisition": {"kind": "ThompsonSampling", "n_features": 10**6}},
    "thompson": {"space": reals(101), "acquisition": "thompson"},
    "max_variance": {"space": reals(101), "acquisition": {"kind": "MaxVariance"}},
    "restarts": {"space": reals(1), "surrogate": {"kind": "GP", "n_restarts": 10**6}},
    "initial": {"space": reals(2), "initial": 10**6},
    "initial design": {"space": reals(2), "initial": {"kind": "Initial", "n": 10**6}},
    "products": {
        "space": reals(10),
        "pending": {"kind": "Integrate", "n": 640},
        "search": {"kind": "Search", "effort": 6},
    },
    "linear": {"space": reals(60), "linear": [{"kind": "Mixture", "names": names(60)}] * 6},
    "sums": {
        "space": reals(64),
        "linear": [{"kind": "Linear", "coefficients": [[name, 1] for name in names(64)], "at_most": 9}] * 5,
    },
    "parts with a step": {"space": reals(60), "linear": [{"kind": "Mixture", "names": names(60), "step": 0.1}]},
    "few parts with a step": {"space": reals(200), "linear": [{"kind": "Mixture", "names": names(3), "step": 0.1}]},
    "conditional parts": {
        "space": [*choices(7, 2), *reals(4, when=[["c0", [1]]])],
        "linear": [{"kind": "Mixture", "names": names(4)}],
    },
    "huge": {"space": reals(1), "pending": {"kind": "Integrate", "n": 10**400}},
}


@pytest.mark.parametrize("arguments", LARGE.values(), ids=LARGE)
def test_too_much_work_is_refused_before_it_is_done(arguments, monkeypatch):
    monkeypatch.setattr(studies, "optimizer_from", lambda *_: pytest.fail("the optimizer is made"))
    with pytest.raises(bl.errors.InvalidSetting, match="units of work, and a server accepts 1,000"):
        studies.read_definition(definition("BayesOpt", arguments))


def test_points_of_rounds_count():
    arguments = {"space": reals(10), "horizon": 100, "lengthscale": 0.3, "noise_std": 0.1, "n_points": 10**6}
    with pytest.raises(bl.errors.InvalidSetting, match="units of work"):
        studies.read_definition(definition("BPEDelay", arguments))


@pytest.mark.parametrize(
    "optimizer",
    [
        bl.BayesOpt({f"x{i}": (0.0, 1.0) for i in range(1000)}),
        bl.BayesOpt(candidates=[[i / 7] for i in range(5000)], acquisition="thompson"),
        bl.BayesOpt({"x": (0.0, 1.0)}, search=bl.Search(10.0), pending=bl.Integrate(320)),
        bl.BayesOpt({name: (0.0, 1.0) for name in names(60)}, constraints=[bl.Mixture(names(60))]),
        bl.RandomSearch({f"x{i}": ["a", "b", "c"] for i in range(250)}),
        bl.TreeSearch({"x": (0.0, 1.0)}, horizon=10**6),
    ],
    ids=lambda optimizer: type(optimizer).__name__,
)
def test_ordinary_definitions_are_accepted(optimizer):
    studies.read_definition(definition_of(optimizer))


@pytest.mark.parametrize(
    "arguments",
    [
        {"space": 7},
        {"space": [7, None, {"kind": []}]},
        {"space": [{"choices": 5, "kind": {}}]},
        {"candidates": []},
        {"candidates": {"rows": 7}},
        {"search": {"kind": [], "effort": "x"}},
        {"search": {"kind": "Search", "effort": []}},
        {"search": {"kind": "Search", "effort": [None, {}]}},
    ],
)
@pytest.mark.parametrize("optimizer", ["BayesOpt", None, [], {}])
def test_malformed_definitions_are_invalid_settings(optimizer, arguments):
    with pytest.raises(bl.BelatedError):
        studies.read_definition(definition(optimizer, arguments))


@pytest.mark.parametrize("reduction", [1.0000000000000002, 1.009, 1])
def test_rungs_are_bounded(reduction):
    made = functools.partial(bl.RandomSearch, {"x": (0.0, 1.0)}, curve=bl.Curve(9))
    with pytest.raises(bl.errors.InvalidSetting, match=r"^stopping.reduction=1.* give a number of 1.01 or above"):
        made(stopping=bl.ASHA(reduction=reduction))
    made(stopping=bl.ASHA(reduction=1.01))


def test_the_importance_of_many_parameters_is_not_computed(create, client, path, monkeypatch):
    monkeypatch.setattr(bl.Study, "_total_effects", lambda *_: pytest.fail("the importance is computed"))
    study = create(bl.BayesOpt({f"x{i}": (0.0, 1.0) for i in range(answers.MOST_PARAMS + 1)}, seed=0))
    study.suggest().observe(1.0)
    assert "more than 200 parameters" in answers.importance_as_data(study)["unknown"]
    assert client.get(f"{path}/importance").json()["importance"] == []
