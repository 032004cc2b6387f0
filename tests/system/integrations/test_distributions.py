"""Spaces made from scikit-learn's distributions. Uniform draws from these spaces follow the given distributions."""

import numpy as np
import pytest

import belated as bl

stats = pytest.importorskip("scipy.stats")

from belated.integrations.distributions import DistributionSpace  # noqa: E402

N = 2000
CONTINUOUS = {
    "uniform": stats.uniform(-2, 5),
    "loguniform": stats.loguniform(1e-4, 1e2),
    "shifted loguniform": stats.loguniform(1e-2, 1e2, loc=1),
    "norm": stats.norm(3, 2),
    "expon": stats.expon(scale=0.3),
    "beta": stats.beta(0.5, 2.0),
    "lognorm": stats.lognorm(1.5),
}
DISCRETE = {
    "randint": stats.randint(2, 9),
    "poisson": stats.poisson(4),
    "geom": stats.geom(0.3),
    "binom": stats.binom(10, 0.4),
    "custom": stats.rv_discrete(values=([1, 2, 8], [0.2, 0.5, 0.3])),
}


def drawn(distribution):
    space = DistributionSpace({"x": distribution})
    optimizer = bl.RandomSearch(space.space, seed=0)
    return [space.values(trial.params)["x"] for trial in optimizer.suggest(n=N)]


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions_keep_their_law(name):
    values = drawn(CONTINUOUS[name])
    assert {type(value) for value in values} == {float}
    assert stats.kstest(values, CONTINUOUS[name].cdf).pvalue > 0.01


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distributions_keep_their_law(name):
    values, distribution = drawn(DISCRETE[name]), DISCRETE[name]
    assert {type(value) for value in values} == {int}
    assert (distribution.pmf(values) > 0).all()
    counts = np.array([values.count(k) for k in range(max(values) + 1)])
    expected = N * distribution.pmf(np.arange(len(counts)))
    often = expected >= 5
    rest = [N - counts[often].sum()], [N - expected[often].sum()]
    counts, expected = np.append(counts[often], rest[0]), np.append(expected[often], rest[1])
    kept = expected > 1e-9
    chi2 = ((counts[kept] - expected[kept]) ** 2 / expected[kept]).sum()
    assert stats.chi2(kept.sum() - 1).sf(chi2) > 0.01


def test_uniform_distributions_become_dimensions():
    given = {
        "u": stats.uniform(1, 2),
        "l": stats.loguniform(0.1, 10),
        "i": stats.randint(1, 5),
        "c": stats.randint(3, 4),
    }
    space = DistributionSpace(given).space
    assert [space[name] for name in given] == [
        bl.Real(1.0, 3.0),
        bl.Real(0.1, 10.0, log=True),
        bl.Integer(1, 4),
        bl.Categorical([3]),
    ]


@pytest.mark.filterwarnings("error")
def test_lists_are_choices_and_arrays_may_be_ordered():
    space = DistributionSpace(
        {
            "list": [0.0, 1.0],
            "rising": np.array([1, 10, 100]),
            "falling": range(5, 0, -2),
            "mixed": np.array([1.0, 3.0, 2.0]),
            "words": np.array(["a", "b"]),
            "one": np.array([7]),
            "tuple": (0.0, 1.0),
            "constant": 3,
            "real": bl.Real(0.0, 2.0),
        }
    ).space
    assert dict(space) == {
        "list": bl.Categorical([0.0, 1.0]),
        "rising": bl.Ordinal([1, 10, 100]),
        "falling": bl.Ordinal([5, 3, 1]),
        "mixed": bl.Categorical([1.0, 3.0, 2.0]),
        "words": bl.Categorical(["a", "b"]),
        "one": bl.Categorical([7]),
        "tuple": bl.Real(0.0, 1.0),
        "constant": bl.Categorical([3]),
        "real": bl.Real(0.0, 2.0),
    }


def test_a_space_is_not_changed():
    given = bl.Space({"x": (0.0, 1.0)})
    assert DistributionSpace(given).space is given


class DrawnOnly:
    def rvs(self, random_state=None):
        return 0.5


@pytest.mark.parametrize(
    "given, message",
    [
        (3, "pass a dict of parameter's name"),
        ({"model": {"C": (0.1, 1.0)}}, "names of scikit-learn are flat"),
        ({"x": DrawnOnly()}, "space\\['x'\\].*no quantile function ppf"),
        ({"x": np.array([1, 1])}, "space\\['x'\\]: .*twice"),
        ({"x": []}, "space\\['x'\\]: .*too few"),
        ({"x": {1, 2}}, "write the choices as a list"),
        ({"x": stats.norm(0, -1)}, "space\\['x'\\].*no finite quantiles"),
    ],
)
def test_unsupported_distributions_are_refused(given, message):
    with pytest.raises(bl.errors.InvalidSpace, match=message):
        DistributionSpace(given)
