"""Categories with descriptors in the model: predictions of an independent program, and the life of an optimizer."""

import pickle
import warnings

import numpy as np
import pytest

import belated as bl

NAMES = ["hexane", "toluene", "ether", "THF", "acetone", "DMF", "DMSO", "water"]
Z = np.array(
    [[3.9, 69.0], [2.7, 111.0], [0.9, 35.0], [0.5, 66.0], [-0.2, 56.0], [-1.0, 153.0], [-1.4, 189.0], [-1.4, 100.0]]
)
TABLE = {name: {"logP": z[0], "boiling": z[1]} for name, z in zip(NAMES, Z, strict=True)}
GP = bl.GP(kernel="matern52", targets="standardized", inputs="plain")
SPACE = {
    "T": (20.0, 80.0),
    "wet": [True, False],
    "solvent": bl.Categorical(NAMES, when={"wet": True}, descriptors=TABLE),
}
CONTEXT = {"washed": bl.Categorical(NAMES[2:], descriptors={name: TABLE[name] for name in NAMES[2:]})}


def value(params, context):
    wet = TABLE[params["solvent"]]["logP"] if params["wet"] else 1.5
    return np.sin(wet) + params["T"] / 60.0 + 0.3 * TABLE[context["washed"]]["boiling"] / 100.0


def filled(n=30, **kwargs):
    opt = bl.BayesOpt(SPACE, context=CONTEXT, seed=3, **{"surrogate": GP} | kwargs)
    rng = np.random.default_rng(0)
    for _ in range(n):
        context = {"washed": str(rng.choice(NAMES[2:]))}
        trial = opt.suggest(context=context)
        trial.observe(value(trial.params, context))
    return opt


def embedded(names, rows):
    """Return standardized descriptors (there are as many components as descriptors), and 0 for None."""
    z = np.array([Z[NAMES.index(name)] for name in names])
    z = (z - z.mean(axis=0)) / z.std(axis=0)
    z *= np.sqrt((1 - 1 / len(names)) / np.square(z).sum(axis=1).mean())
    return np.array([np.zeros(2) if name is None else z[names.index(name)] for name in rows])


def one_hot(names, rows):
    return np.array([[float(name == each) for name in names] for each in rows])


def test_predictions_equal_an_independent_program():
    opt = filled()
    model = opt.surrogate_
    assert set(model.descriptor_lengthscales) == {"solvent", "washed"}
    assert "descriptor_lengthscales={'solvent': " in repr(model) and "descriptors of washed" in model._repr_html_()

    def features(points, contexts):
        solvent, washed = [each.get("solvent") for each in points], [each["washed"] for each in contexts]
        names, descriptor = model.lengthscales, model.descriptor_lengthscales
        return np.hstack(
            [
                np.array([[each["T"]] for each in points]) / names["T"],
                one_hot([True, False], [each["wet"] for each in points]) / names["wet"],
                one_hot(NAMES, solvent) / names["solvent"],
                embedded(NAMES, solvent) / descriptor["solvent"],
                one_hot(NAMES[2:], washed) / names["washed"],
                embedded(NAMES[2:], washed) / descriptor["washed"],
            ]
        )

    def covariance(a, b):
        r = np.sqrt(5 * np.square(a[:, None] - b[None]).sum(axis=-1))
        return model.signal_std**2 * (1 + r + r**2 / 3) * np.exp(-r)

    x = features([trial.params for trial in opt.trials], [trial.context for trial in opt.trials])
    y = np.array([trial.value for trial in opt.trials])
    points = [{"T": 33.0, "wet": True, "solvent": name} for name in NAMES] + [{"T": 60.0, "wet": False}]
    context = {"washed": "DMF"}
    z = features(points, [context] * len(points))
    noisy = covariance(x, x) + model.noise_std**2 * np.eye(len(y))
    mean = model.mean + covariance(z, x) @ np.linalg.solve(noisy, y - model.mean)
    variance = model.signal_std**2 - np.einsum("ij,ji->i", covariance(z, x), np.linalg.solve(noisy, covariance(x, z)))
    found = opt.predict(points, context=context)
    np.testing.assert_allclose(found[0], mean, atol=1e-6)
    np.testing.assert_allclose(found[1], np.sqrt(variance), atol=1e-4)


def test_an_unseen_choice_is_predicted_from_its_neighbours():
    z = np.linspace(-2.0, 2.0, 15)
    errors = []
    for descriptors in (z[:, None], None):
        opt = bl.BayesOpt({"c": bl.Categorical(list(range(15)), descriptors=descriptors)}, seed=0)
        for c in set(range(15)) - {4, 9}:
            opt.add({"c": c}, np.sin(z[c]))
        errors.append(np.abs(opt.predict([{"c": 4}, {"c": 9}])[0] - np.sin(z[[4, 9]])).max())
    assert errors[0] < 0.05 < 0.3 < errors[1]


@pytest.mark.parametrize("surrogate", [bl.GP(kernel="linear"), bl.GP(lengthscale=0.7)], ids=["linear", "given"])
def test_models_that_do_not_use_descriptors_are_bit_equal_to_models_without(surrogate):
    points = []
    for table in (TABLE, None):
        opt = bl.BayesOpt({"s": bl.Categorical(NAMES, descriptors=table), "x": (0.0, 1.0)}, surrogate=surrogate, seed=1)
        for _ in range(14):
            trial = opt.suggest()
            trial.observe(len(trial.params["s"]) + trial.params["x"])
        points.append([trial.params for trial in opt.trials])
        assert opt.surrogate_.descriptor_lengthscales == {}
    assert points[0] == points[1]


@pytest.mark.parametrize("acquisition", ["thompson", "ucb"])
@pytest.mark.parametrize("finite", [True, False])
def test_draws_and_searches_accept_descriptors(acquisition, finite):
    space = {"s": bl.Categorical(NAMES, descriptors=TABLE), "x": bl.Ordinal([0, 1, 2]) if finite else (0.0, 2.0)}
    opt = bl.BayesOpt(space, acquisition=acquisition, seed=1)
    for _ in range(20):
        trial = opt.suggest()
        trial.observe(TABLE[trial.params["s"]]["logP"] - (trial.params["x"] - 1) ** 2)
    assert opt.best_params_["s"] == "hexane"
    assert opt.importances()["s"] > opt.importances()["x"]


def test_descriptors_survive_pickles_stores_copies_and_exports(tmp_path):
    opt = filled(14)
    bl.Study("s", f"sqlite:///{tmp_path}/s.db", optimizer=pickle.loads(pickle.dumps(opt)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = bl.Study.load("s", f"sqlite:///{tmp_path}/s.db")
    context = {"washed": "water"}
    expected = opt.suggest(n=2, context=context)
    assert [each.params for each in loaded.suggest(n=2, context=context)] == [each.params for each in expected]
    assert loaded.optimizer.domain["solvent"] == SPACE["solvent"]
    assert loaded.optimizer.context_space["washed"] == CONTEXT["washed"]


def test_a_revision_adds_and_removes_choices_with_their_descriptors(tmp_path):
    study = bl.Study(
        "s", f"sqlite:///{tmp_path}/s.db", bl.BayesOpt({"s": bl.Categorical(NAMES, descriptors=TABLE)}, seed=0)
    )
    for name in NAMES:
        study.add({"s": name}, TABLE[name]["logP"])
    more = TABLE | {"octane": {"logP": 5.2, "boiling": 126.0}}
    del more["DMSO"]
    with pytest.warns(bl.BelatedWarning, match="left out"):
        study.revise(space={"s": bl.Categorical(list(more), descriptors=more)}, drop=True)
    assert study.suggest().params == {"s": "octane"}
    fresh = bl.BayesOpt({"s": bl.Categorical(list(more), descriptors=more)}, seed=0)
    for name in set(NAMES) - {"DMSO"}:
        fresh.add({"s": name}, TABLE[name]["logP"])
    points = [{"s": name} for name in more]
    np.testing.assert_allclose(study.predict(points)[0], fresh.predict(points)[0], atol=1e-3)


def test_other_descriptors_are_another_problem(tmp_path):
    """Fits of earlier suggestions are not used after a revision that changes descriptors alone."""
    opt = bl.BayesOpt({"s": bl.Categorical(NAMES, descriptors=TABLE)}, seed=0)
    study = bl.Study("s", f"sqlite:///{tmp_path}/s.db", opt)
    for name in NAMES[:6]:
        study.add({"s": name}, TABLE[name]["logP"])
    study.suggest()
    study.revise(space={"s": bl.Categorical(NAMES, descriptors=np.sin(7 * Z))})
    plain = bl.BayesOpt({"s": bl.Categorical(NAMES, descriptors=np.sin(7 * Z))}, seed=0)
    for name in NAMES[:6]:
        plain.add({"s": name}, TABLE[name]["logP"])
    points = [{"s": name} for name in NAMES]
    np.testing.assert_allclose(study.predict(points)[0], plain.predict(points)[0], atol=1e-9)


def test_two_hundred_choices_are_searched():
    z = np.random.default_rng(0).normal(size=(200, 12))
    opt = bl.BayesOpt({"c": bl.Categorical(list(range(200)), descriptors=z)}, seed=0)
    for _ in range(30):
        trial = opt.suggest()
        trial.observe(-np.square(z[trial.params["c"], :2]).sum())
    assert opt.best_value_ > -0.5
