"""Declarations of spaces: shorthand, errors with advice, warnings for ambiguous declarations, and the repr."""

import copy
import pickle
import types
import warnings

import numpy as np
import pytest

import belated as bl
from belated import BelatedWarning, Categorical, Integer, Ordinal, Real, Space
from belated.errors import InvalidSpace
from belated.space import ContextSpace


def test_pairs_of_numbers_are_called_x0_x1():
    assert dict(Space([(-2.0, 2.0), (0, 5.0)])) == {"x0": Real(-2.0, 2.0), "x1": Real(0.0, 5.0)}
    assert dict(Space([(1, 9), (0, 2)])) == {"x0": Integer(1, 9), "x1": Integer(0, 2)}
    assert dict(Space(((0.0, 1.0),))) == {"x0": Real(0.0, 1.0)}
    assert dict(Space(zip("ab", [(0.0, 1.0), ["u", "v"]], strict=True))) == {
        "a": Real(0.0, 1.0),
        "b": Categorical(["u", "v"]),
    }
    opt = bl.BayesOpt([(-2.0, 2.0)], seed=0)
    assert list(opt.suggest().params) == ["x0"]


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        (range(5), r"write bl.Integer\(0, 4\)"),
        (range(0, 10, 3), r"write bl.Integer\(0, 9, step=3\)"),
        (range(4, 0, -1), r"write bl.Integer\(1, 4\)"),
        (range(0), "at least two values"),
        (("rbf", "poly"), r"write choices as a list, \['rbf', 'poly'\]"),
        ((1e-6, 0.1, "log-uniform"), r"write bl.Real\(1e-06, 0.1, log=True\)"),
        ((1, 100, "log-uniform"), r"write bl.Integer\(1, 100, log=True\)"),
        ((0.0, 1.0, "uniform"), r"write bl.Real\(0.0, 1.0\)"),
        ((0, 10, 2), r"write bl.Integer\(0, 10, step=2\), or the choices as a list, \[0, 10, 2\]"),
        ((0.0, 1.0, 0.1), r"bl.Real\(0.0, 1.0, step=0.1\)"),
        ((1.0,), "a range \\(low, high\\) of two numbers"),
        ({"b", "a"}, r"write the choices as a list, \['a', 'b'\]"),
        (np.array([1, 2]), r"write bl.Ordinal\(\[1, 2\]\).*bl.Categorical\(\[1, 2\]\)"),
        (np.ones((2, 2)), "rows of points are candidates="),
        ({"low": 0, "high": 1}, r"write bl.Real\(low, high\)"),
        (Real, r"write bl.Real\(low, high\)"),
    ],
)
def test_unknown_dimensions_are_refused_with_advice(given, advice):
    with pytest.raises(InvalidSpace, match=r"space\['p'\]=.* is not a dimension: .*" + advice):
        Space({"p": given, "x": (0.0, 1.0)})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((0.0, 1.0), "pass a dict of name → dimension"),
        ([[0.0, 1.0], [0.0, 2.0]], "has lists for bounds: write tuples"),
        ([Real(0, 1), Real(0, 2)], "pass a dict of name → dimension"),
        (["ab", "cd"], "pass a dict"),
        ("ab", "pass a dict"),
        (np.array([[0.0, 1.0]]), r"is an array.*bounds as \[\(low, high\), …\]"),
        ([("a", (0.0, 1.0), 3)], "pass a dict"),
    ],
)
def test_unknown_spaces_are_refused_with_advice(given, message):
    with pytest.raises(InvalidSpace, match=f"space.*{message}"):
        Space(given)


def peer(module, kind, **attributes):
    """An object of another package's class."""
    made = type(kind, (), {"__module__": module})()
    vars(made).update(attributes)
    return made


def node(name, *arguments):
    """A node of hyperopt's graphs."""
    literals = [
        each if hasattr(each, "pos_args") else peer("hyperopt.pyll.base", "Literal", obj=each) for each in arguments
    ]
    for literal in literals:
        vars(literal).setdefault("name", "literal")
        vars(literal).setdefault("pos_args", [])
    return peer("hyperopt.pyll.base", "Apply", name=name, pos_args=literals)


def ray(kind, sampler, **attributes):
    return peer("ray.tune.search.sample", kind, get_sampler=lambda: sampler, **attributes)


LOG_UNIFORM, UNIFORM = type("_LogUniform", (), {})(), type("_Uniform", (), {})()
PEERS = [
    (
        peer("optuna.distributions", "FloatDistribution", low=1e-5, high=0.1, log=True, step=None),
        "bl.Real(1e-05, 0.1, log=True)",
    ),
    (
        peer("optuna.distributions", "FloatDistribution", low=0.0, high=1.0, log=False, step=0.25),
        "bl.Real(0.0, 1.0, step=0.25)",
    ),
    (peer("optuna.distributions", "IntDistribution", low=1, high=9, log=False, step=1), "bl.Integer(1, 9)"),
    (peer("optuna.distributions", "CategoricalDistribution", choices=("a", "b")), "bl.Categorical(['a', 'b'])"),
    (peer("skopt.space.space", "Real", low=1e-6, high=0.1, prior="log-uniform"), "bl.Real(1e-06, 0.1, log=True)"),
    (peer("skopt.space.space", "Integer", low=1, high=9, prior="uniform"), "bl.Integer(1, 9)"),
    (peer("skopt.space.space", "Categorical", categories=("a", "b"), prior=None), "bl.Categorical(['a', 'b'])"),
    (ray("Float", LOG_UNIFORM, lower=1e-4, upper=1e-1), "bl.Real(0.0001, 0.1, log=True)"),
    (ray("Integer", UNIFORM, lower=1, upper=10), "bl.Integer(1, 9)"),
    (ray("Integer", types.SimpleNamespace(q=3, sampler=UNIFORM), lower=0, upper=9), "bl.Integer(0, 9, step=3)"),
    (ray("Categorical", UNIFORM, categories=[1, 2]), "bl.Categorical([1, 2])"),
    (node("float", node("hyperopt_param", "x", node("uniform", -1.0, 2.0))), "bl.Real(-1.0, 2.0)"),
    (
        node("float", node("hyperopt_param", "x", node("loguniform", np.log(1e-3), np.log(10.0)))),
        "bl.Real(0.001, 10.0, log=True)",
    ),
    (node("switch", node("hyperopt_param", "x", node("randint", 2)), "a", "b"), "bl.Categorical(['a', 'b'])"),
    (node("hyperopt_param", "x", node("randint", 5)), "bl.Integer(0, 4)"),
    (peer("optuna.distributions", "Unheard"), "bl.Real, bl.Integer or bl.Categorical"),
]


@pytest.mark.parametrize(("given", "written"), PEERS)
def test_dimensions_of_other_packages_are_refused_with_their_equivalent(given, written):
    package = type(given).__module__.partition(".")[0]
    with pytest.raises(InvalidSpace) as error:
        Space({"p": given})
    assert f"it is one of {package}'s; write {written}" in str(error.value)


def test_frozen_distributions_of_scipy_are_refused_with_their_equivalent():
    stats = pytest.importorskip("scipy.stats")
    for given, written in [
        (stats.uniform(1, 2), "bl.Real(1.0, 3.0)"),
        (stats.loguniform(1e-3, 10), "bl.Real(0.001, 10.0, log=True)"),
        (stats.randint(1, 10), "bl.Integer(1, 9)"),
        (stats.norm(0, 1), "bl.Real, bl.Integer or bl.Categorical"),
    ]:
        with pytest.raises(InvalidSpace) as error:
            Space({"p": given})
        assert f"write {written}" in str(error.value)


MISREAD = [
    ({"x": [0.0, 1.0], "y": (0.0, 1.0)}, r"space\['x'\]=\[0.0, 1.0\] is a choice.*write \(0.0, 1.0\).*bl.Categorical"),
    ({"x": [1, 100]}, r"space\['x'\]=\[1, 100\] is a choice.*write \(1, 100\).*bl.Categorical\(\[1, 100\]\)"),
    ({"x": [0, 0.5]}, r"write \(0, 0.5\)"),
]
SILENT = [
    {"x": Categorical([0.0, 1.0]), "y": (0.0, 1.0)},
    {"x": Integer(0, 1), "y": (0.0, 1.0)},
    {"x": (0, 1), "y": Real(0.0, 1.0), "z": (2, 5)},
    {"x": [0.0, 0.5, 1.0]},
    {"x": [1, 0]},
    {"x": [False, True], "y": [1, "2"], "z": [1, None]},
    {"n_layers": (1, 4), "momentum": (0.0, 0.99)},
    [(0, 1), (-2.0, 2.0)],
]


@pytest.mark.parametrize(("given", "message"), MISREAD)
def test_ambiguous_dimensions_warn_at_the_line_of_the_space(given, message):
    for make in (Space, bl.BayesOpt, bl.RandomSearch):
        with pytest.warns(BelatedWarning, match=message) as caught:
            make(given)
        assert [each.filename for each in caught] == [__file__]
    with pytest.warns(BelatedWarning, match=r"context\['x'\]"):
        ContextSpace({"x": [0.0, 1.0]})


@pytest.mark.parametrize("given", SILENT)
def test_explicit_dimensions_do_not_warn(given):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Space(given)


def test_ambiguous_dimensions_warn_once(tmp_path):
    with pytest.warns(BelatedWarning):
        opt = bl.BayesOpt({"x": [0.0, 1.0], "y": (0.0, 1.0)}, context={"z": [0.0, 1.0]}, seed=0)
    store = f"sqlite:///{tmp_path}/s.db"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        copy.deepcopy(opt)
        pickle.loads(pickle.dumps(opt))
        Space(opt.domain)
        opt.set_params(surrogate__kernel="matern52")
        assert opt.get_params()["space"] == {"x": [0.0, 1.0], "y": (0.0, 1.0)} and opt.context == {"z": [0.0, 1.0]}
        bl.Study("s", store, opt)
        bl.Study.load("s", store)
    with pytest.warns(BelatedWarning):
        opt.set_params(space={"u": [0.0, 1.0]})
    assert list(opt.domain) == ["u"]


def test_the_repr_of_a_space_shows_how_it_was_read():
    space = Space(
        {
            "x": (0, 1.5),
            "n": Integer(1, 5),
            "c": ["a", None],
            "k": "adam",
            "s": Real(0.0, 1.0, step=0.25),
            "l": Integer(1, 9, log=True, when={"c": "a"}),
            "o": Ordinal([16, 32], when={"c": ["a", None], "n": range(2, 4)}),
        }
    )
    text = (
        "Space({'x': Real(0.0, 1.5), 'n': Integer(1, 5), 'c': Categorical(['a', None]), 'k': Categorical(['adam']), "
        "'s': Real(0.0, 1.0, step=0.25), 'l': Integer(1, 9, log=True, when={'c': 'a'}), "
        "'o': Ordinal([16, 32], when={'c': ['a', None], 'n': [2, 3]})})"
    )
    assert repr(space) == text
    again = eval(text, {kind.__name__: kind for kind in (Space, Real, Integer, Ordinal, Categorical)})
    assert dict(again) == dict(space) and repr(again) == text


def test_too_many_columns_name_the_parameter_that_has_most():
    with pytest.raises(InvalidSpace, match=r"5001 columns.* space\['word'\] has 5000.*bl.Ordinal"):
        bl.RandomSearch({"x": (0.0, 1.0), "word": [str(i) for i in range(5000)]})
