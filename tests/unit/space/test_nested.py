"""Nested spaces: groups and choices between groups, compared with the same space written with conditions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import belated as bl
from belated.study.definition import definition_of, optimizer_from

NESTED = {
    "model": bl.Choice(
        {
            "svm": {
                "C": bl.Real(1e-2, 1e2, log=True),
                "kernel": ["rbf", "poly"],
                "degree": bl.Integer(2, 5, when={"kernel": "poly"}),
            },
            "forest": {"depth": (1, 9), "split": bl.Choice({"best": {}, "random": {"seed": (0, 3)}}), "jobs": 2},
            "dummy": {},
        }
    ),
    "scale": {"with_mean": [True, False]},
    "folds": (2, 5),
}
FLAT = {
    "model": bl.Categorical(["svm", "forest", "dummy"]),
    "model.svm.C": bl.Real(1e-2, 1e2, log=True, when={"model": "svm"}),
    "model.svm.kernel": bl.Categorical(["rbf", "poly"], when={"model": "svm"}),
    "model.svm.degree": bl.Integer(2, 5, when={"model": "svm", "model.svm.kernel": "poly"}),
    "model.forest.depth": bl.Integer(1, 9, when={"model": "forest"}),
    "model.forest.split": bl.Categorical(["best", "random"], when={"model": "forest"}),
    "model.forest.split.random.seed": bl.Integer(0, 3, when={"model.forest.split": "random"}),
    "model.forest.jobs": bl.Categorical([2], when={"model": "forest"}),
    "scale.with_mean": [True, False],
    "folds": (2, 5),
}


def flat(params):
    """Return flat names → values, computed without the package."""
    found = {}
    for name, value in params.items():
        if name in ("model", "split"):
            [(option, inner)] = value.items()
            found[name] = option
            found |= {f"{name}.{option}.{key}": each for key, each in flat(inner).items()}
        elif name == "scale":
            found |= {f"{name}.{key}": each for key, each in value.items()}
        else:
            found[name] = value
    return found


def points(seed, n=30):
    opt = bl.RandomSearch(NESTED, seed=seed)
    return [opt.suggest().params for _ in range(n)]


def test_a_nested_space_is_the_flat_space_with_conditions():
    assert dict(bl.Space(NESTED)) == dict(bl.Space(FLAT))
    flat_search = bl.RandomSearch(FLAT, seed=3)
    found = points(3)
    assert [flat(params) for params in found] == [flat_search.suggest().params for _ in range(30)]
    assert {next(iter(params["model"])) for params in found} == {"svm", "forest", "dummy"}


@given(st.integers(0, 1000))
def test_nested_and_flat_params_have_the_same_encoding(seed):
    nested, flat_space = bl.Space(NESTED), bl.Space(FLAT)
    for params in points(seed, 3):
        code = nested.encode(params)
        assert code.tolist() == nested.encode(flat(params)).tolist() == flat_space.encode(flat(params)).tolist()
        assert flat(nested.decode(code)) == flat_space.decode(code)


def test_a_function_and_a_constraint_receive_nested_params():
    seen = []

    def few_folds(params):
        seen.append(params)
        return params["folds"] < 5 or "svm" in params["model"]

    def f(params):
        [(model, arguments)] = params["model"].items()
        return {"svm": lambda: -arguments["C"], "forest": lambda: arguments["depth"], "dummy": lambda: 0}[model]()

    result = bl.maximize(f, NESTED, n_trials=25, seed=0, constraints=[few_folds])
    assert result.best_value_ == 9 and result.best_params_["model"]["forest"]["depth"] == 9
    assert all(few_folds(trial.params) for trial in result.trials)
    assert result.recommend() == flat_free(result.recommend())
    assert all(isinstance(params["model"], dict) for params in seen)


def flat_free(params):
    """Return the params after a conversion to flat names and back."""
    space = bl.Space(NESTED)
    return space.decode(space.encode(flat(params)))


def test_choices_may_be_named_without_their_params():
    opt = bl.BayesOpt(NESTED, seed=0)
    opt.enqueue({"model": "dummy"})
    opt.enqueue({"model": {"svm": {"kernel": "poly"}}})
    opt.enqueue({"scale": {"with_mean": False}})
    first, second, third = (opt.suggest().params for _ in range(3))
    assert first["model"] == {"dummy": {}}
    assert second["model"]["svm"]["kernel"] == "poly" and second["model"]["svm"]["degree"] in range(2, 6)
    assert third["scale"] == {"with_mean": False}
    opt.add({"model": {"dummy": {}}, "scale": {"with_mean": True}, "folds": 3}, 1.0)
    opt.add({"model": "dummy", "scale": {"with_mean": True}, "folds": 4}, 2.0)
    assert opt.best_params_["model"] == {"dummy": {}}


def test_tables_have_flat_names_and_can_be_added():
    opt = bl.RandomSearch(NESTED, seed=1)
    for i in range(20):
        opt.observe(opt.suggest(), float(i))
    table = opt.trials_dataframe()
    assert {"params_model", "params_model.svm.C", "params_scale.with_mean"} <= set(table.columns)
    again = bl.BayesOpt(NESTED, seed=0)
    again.add(table)
    assert [trial.params for trial in again.trials] == [trial.params for trial in opt.trials]


def test_studies_keep_the_nesting(tmp_path):
    study = bl.Study("s", tmp_path / "s.db", bl.BayesOpt(NESTED, seed=0, context={"day": {"hour": (0, 23)}}))
    trials = [study.suggest(context={"day": {"hour": hour}}) for hour in (1, 2, 3)]
    trials[0].observe(1.0)
    again = bl.Study("s", tmp_path / "s.db")
    assert [trial.params for trial in again.trials] == [trial.params for trial in trials]
    assert again.trials[1].context == {"day": {"hour": 2}}
    with pytest.raises(bl.BelatedError, match="names of space"):
        bl.Study("s", tmp_path / "s.db", bl.BayesOpt({"x": (0.0, 1.0)}))
    space, params = bl.Space(bl.Space(NESTED)), points(0, 1)[0]
    assert space.decode(space.encode(params)) == params


def test_copies_of_studies_with_nested_spaces(tmp_path):
    space = {"model": bl.Choice({"a": {"x": (0.0, 1.0)}, "b": {}}), "folds": (2, 9)}
    study = bl.Study("s", tmp_path / "s.db", bl.BayesOpt(space, seed=0))
    for trial in study.suggest(n=8):
        trial.observe(float(trial.params["folds"]))
    assert [trial.params for trial in study.copy("same").trials] == [trial.params for trial in study.trials]
    few = [trial.params for trial in study.trials if trial.params["folds"] < 6]
    with pytest.warns(bl.BelatedWarning, match="trials"):
        narrow = study.copy("narrow", space | {"folds": (2, 5)})
    assert [trial.params for trial in narrow.trials] == few and 0 < len(few) < 8


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({"a.b": (0, 1), "c": {"d": (0, 1)}}, "must not contain a dot"),
        ({"c": {3: (0, 1)}}, "names must be strings"),
        ({"c": {"min": 0.0, "max": 1.0}}, r"write bl.Real\(low, high\)"),
        ({"c": {"values": [1, 2]}}, "write bl"),
        ({"c": {"type": "range", "bounds": [0.0, 1.0]}}, "write bl"),
        ({"c": {"d": ()}}, r"space\['c.d'\]"),
        ({"c": [bl.Choice({"a": {}, "b": {}}), 1]}, r"space\['c'\] is a list of groups .* bl.Choice"),
        ({"c": [{"type": "svm", "C": bl.Real(0.0, 1.0)}]}, r"space\['c'\] is a list of groups .* bl.Choice"),
        ({"c": {"d": bl.Integer(0, 3, when={"e": 1}), "e": (0.0, 1.0)}}, "c.e"),
    ],
)
def test_invalid_nested_spaces(space, message):
    with pytest.raises(bl.errors.InvalidSpace, match=message):
        bl.Space(space)


@pytest.mark.parametrize("options", [{}, {"a": {}}, ["a", "b"], {"a": {}, "b": (0, 1)}, {1: {}, 2: {}}])
def test_invalid_choices(options):
    with pytest.raises(bl.errors.InvalidSpace, match="options"):
        bl.Choice(options)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"model": {"svm": {"C": 1.0, "kernel": "rbf"}}, "folds": 3}, "scale.with_mean"),
        ({"model": {"tree": {}}, "folds": 3, "scale": {"with_mean": True}}, "tree"),
        ({"model": {"svm": 3}, "folds": 3, "scale": {"with_mean": True}}, "model"),
        ({"model": {"dummy": {"C": 1.0}}, "folds": 3, "scale": {"with_mean": True}}, "model.dummy.C"),
        ({"model": {"dummy": {}, "svm": {}}, "folds": 3, "scale": {"with_mean": True}}, "model"),
        ({"model": {"dummy": {}}, "folds": 3, "scale": True}, "scale"),
    ],
)
def test_invalid_params(params, message):
    opt = bl.BayesOpt(NESTED, seed=0)
    with pytest.raises(bl.errors.InvalidPoint, match=message):
        opt.add(params, 1.0)
    assert len(opt.trials) == 0


def test_tables_and_plots_of_nested_spaces_have_flat_names():
    plt = pytest.importorskip("matplotlib.pyplot")
    opt = bl.BayesOpt(NESTED, seed=0)
    for i in range(24):
        trial = opt.suggest()
        trial.observe(float("svm" in trial.params["model"]) + trial.params["folds"] / 5 + i % 3)
    opt.suggest()
    names = {name for name, dimension in opt.domain.items() if dimension.width}
    assert set(opt.importances()) == names
    assert {each.get_xlabel() for each in bl.plotting.plot_slice(opt).flat if each.get_xlabel()} >= {"folds"}
    bl.plotting.plot_importance(opt)
    bl.plotting.plot_contour(opt, ["folds", "model.svm.C"])
    plt.close("all")
    assert "<th>model.svm.C</th>" in opt._repr_html_()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"model": {"svm": {}, "dummy": {}}}, r"params\['model'\]"),
        ({"model": {}}, r"params\['model'\]"),
        ({"scale": {"with_mean": True}, "scale.with_mean": False}, "twice"),
    ],
)
def test_ambiguous_params_are_refused(params, message):
    with pytest.raises(bl.errors.InvalidPoint, match=message):
        bl.BayesOpt(NESTED, seed=0).enqueue(params)


def test_a_parameter_of_an_option_does_not_depend_on_its_choice():
    choice = bl.Choice({"a": {"x": bl.Real(0.0, 1.0, when={"m": "b"})}, "b": {}})
    with pytest.raises(bl.errors.InvalidSpace, match="belongs to an option of 'm'"):
        bl.Space({"m": choice, "y": (0.0, 1.0)})


def test_spaces_with_other_params_are_different(tmp_path):
    nested, flat_space = {"g": {"a": (0.0, 1.0)}}, {"g.a": (0.0, 1.0)}
    assert bl.Space(nested) != bl.Space(flat_space) and bl.Space(nested) == bl.Space(nested)
    bl.Study("s", tmp_path / "s.db", bl.BayesOpt(nested, seed=0))
    with pytest.raises(bl.BelatedError, match="nesting of space"):
        bl.Study("s", tmp_path / "s.db", bl.BayesOpt(flat_space, seed=0))


@pytest.mark.parametrize("path", [[], ["y"], ["x", "y"], ["m"]])
def test_stored_paths_are_checked(path):
    opt = bl.BayesOpt({"m": bl.Choice({"a": {"x": (0.0, 1.0)}, "b": {}})}, seed=0)
    definition = definition_of(opt)
    definition["problem"]["space"][1]["path"] = path
    with pytest.raises(bl.errors.StoreError, match="path"):
        optimizer_from(definition, None)


def test_notebooks_show_nested_contexts():
    opt = bl.BayesOpt({"x": (0.0, 1.0)}, context={"env": {"t": (0, 9)}}, seed=0)
    opt.suggest(context={"env": {"t": 7}})
    assert "<td>7</td>" in opt._repr_html_()
