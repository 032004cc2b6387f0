"""Linear constraints and mixtures: uniform points, tolerances, contradictions, points outside, and definitions."""

import json
import pickle

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import linprog

import belated as bl
from belated.errors import BelatedError, InvalidPoint, InvalidSetting, InvalidSpace
from belated.papers import UCBPE, AEGiS, LocalPenalization, MaxVariance
from belated.store.memory import MemoryStore
from belated.study.definition import definition_of, optimizer_from

PARTS = {"a": (0.0, 1.0), "b": (0.0, 1.0), "c": (0.0, 1.0)}
TOTAL = bl.Mixture(["a", "b", "c"])


def wide(d):
    return {f"x{i}": (0.0, 1.0) for i in range(d)}


def draws(space, constraints, n, seed=0):
    """Return n suggestions of a random search, each of which has its own random stream and its own chain."""
    optimizer = bl.RandomSearch(space, constraints=constraints, seed=seed)
    return np.array([[*trial.params.values()] for trial in optimizer.suggest(n=n)])


def value(params):
    return -((params["a"] - 0.6) ** 2) - (params["b"] - 0.4) ** 2 - params["c"]


# Tiny parts.


MIXTURES = {
    "parts": (PARTS, [TOTAL]),
    "percent": (dict.fromkeys("abc", (0.0, 100.0)), [bl.Mixture(list("abc"), total=100.0)]),
    "lower bounds": ({"a": (0.1, 1.0), "b": (0.0, 0.7), "c": (0.0, 0.5)}, [TOTAL]),
    "linear": ({**PARTS, "d": 0.25}, [bl.Linear({name: 2.0 for name in "abcd"}, equals=2.0)]),
    "further": (PARTS, [TOTAL, bl.Linear({"a": 1, "b": 2}, at_most=1.1), bl.Linear({"a": 1, "c": -1}, at_least=-0.3)]),
    "function": (PARTS, [TOTAL, lambda p: p["c"] == 0 or p["c"] >= 0.05]),
    "steps": (PARTS, [bl.Mixture(list("abc"), step=0.05)]),
    "conditional": ({**PARTS, "k": ["u", "v"], "c": bl.Real(0.0, 1.0, when={"k": "u"})}, [TOTAL]),
}


@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize("make", [bl.BayesOpt, bl.RandomSearch])
def test_suggested_parts_are_zero_or_can_be_weighed(make, name):
    space, constraints = MIXTURES[name]
    scale = 100.0 if name == "percent" else 1.0
    total = 0.75 if name == "linear" else scale

    def check(params):
        parts = {part: params[part] for part in "abc" if part in params}
        assert all(each == 0 or each >= 1e-9 * total for each in parts.values()), params
        assert abs(sum(parts.values()) - total) <= 1e-11 * total
        for part, each in parts.items():
            low, high = space[part] if isinstance(space[part], tuple) else (0.0, 1.0)
            assert low <= each <= high
        assert all(limit(params) for limit in constraints if not isinstance(limit, (bl.Mixture, bl.Linear)))
        if name == "further":
            assert params["a"] + 2 * params["b"] <= 1.1 + 1e-12 and params["a"] - params["c"] >= -0.3 - 1e-12

    optimizer = make(space, constraints=constraints, context={"t": (0.0, 1.0)}, seed=0)
    for k, fixed in enumerate([{}, {}, {"b": 0.25 * scale}, {"a": (0.3 * scale, 0.5 * scale)}, {}, {"b": 0.0}]):
        for trial in optimizer.suggest(n=3, fixed=fixed, context={"t": k / 6}):
            check(trial.params)
            assert fixed.get("b") in (None, trial.params["b"])
            trial.observe((trial.params["a"] - 0.3 * trial.params["b"]) / scale)
        for each in optimizer.recommend(n=2, fixed=fixed, context={"t": k / 6}) if make is bl.BayesOpt else ():
            check(each)
    optimizer.enqueue({"b": 0.2 * scale})
    check(optimizer.suggest(context={"t": 0.5}).params)


def test_an_amount_that_a_user_fixes_is_not_changed():
    optimizer = bl.BayesOpt(PARTS, constraints=[TOTAL], seed=0)
    for trial in optimizer.suggest(n=6, fixed={"b": 1e-12}):
        assert trial.params["b"] == 1e-12 and abs(sum(trial.params.values()) - 1) <= 1e-15
        trial.observe(trial.params["a"])
    best = optimizer.suggest(fixed={"b": 1e-12}).params
    assert best == {"a": pytest.approx(1.0, abs=1e-11), "b": 1e-12, "c": 0.0}
    optimizer.add({"a": 0.5, "b": 0.5 - 1e-12, "c": 1e-12}, 2.0)
    assert optimizer.best_params_["c"] == 1e-12


# Uniformity.


@pytest.mark.parametrize("d", [2, 3, 6, 12])
def test_margins_of_simplex_are_beta(d):
    points = draws(wide(d), [bl.Mixture(list(wide(d)))], 1500)
    for i in range(d):
        assert stats.kstest(points[:, i], stats.beta(1, d - 1).cdf).pvalue > 1e-4
    # Sums of parts have the law Beta(k, d − k).
    if d > 2:
        assert stats.kstest(points[:, :2].sum(1), stats.beta(2, d - 2).cdf).pvalue > 1e-4


def test_sixty_parts_are_uniform():
    points = draws(wide(60), [bl.Mixture(list(wide(60)))], 1500)
    assert np.abs(points.sum(1) - 1).max() < 1e-12
    for i in (0, 17, 59):
        assert stats.kstest(points[:, i], stats.beta(1, 59).cdf).pvalue > 1e-4
    assert stats.kstest(points[:, ::2].sum(1), stats.beta(30, 30).cdf).pvalue > 1e-4
    assert stats.kstest(np.sort(points, 1)[:, -1], np.sort(rejected(60, 4000), 1)[:, -1]).pvalue > 1e-4


def rejected(d, n, keep=lambda x: np.ones(len(x), dtype=bool), seed=1):
    """Return uniform points of the simplex that are kept, from the gaps between sorted uniform numbers."""
    cuts = np.sort(np.random.default_rng(seed).uniform(size=(n, d - 1)), axis=1)
    points = np.diff(cuts, axis=1, prepend=0.0, append=1.0)
    return points[keep(points)]


@pytest.mark.parametrize(
    ("ranges", "more", "keep"),
    [
        # Lower bounds, upper bounds, both, and a sum that cuts the simplex.
        ([(0.1, 1), (0.2, 1), (0, 1), (0, 1)], [], lambda x: (x[:, 0] >= 0.1) & (x[:, 1] >= 0.2)),
        ([(0, 0.5), (0, 0.4), (0, 1), (0, 1)], [], lambda x: (x[:, 0] <= 0.5) & (x[:, 1] <= 0.4)),
        (
            [(0.1, 0.3), (0, 0.6), (0, 0.6), (0, 1)],
            [],
            lambda x: (np.abs(x[:, 0] - 0.2) <= 0.1) & (x[:, 1:3].max(1) <= 0.6),
        ),
        ([(0, 0.3)] * 4, [], lambda x: x.max(1) <= 0.3),
        ([(0, 1)] * 4, [({"x0": 1, "x1": 2}, 0.7)], lambda x: x[:, 0] + 2 * x[:, 1] <= 0.7),
        ([(0, 1)] * 4, [({"x0": 1, "x1": 1}, 0.02)], lambda x: x[:, 0] + x[:, 1] <= 0.02),
    ],
)
def test_bounded_mixtures_are_uniform(ranges, more, keep):
    space = {f"x{i}": (float(low), float(high)) for i, (low, high) in enumerate(ranges)}
    limits = [bl.Linear(terms, at_most=bound) for terms, bound in more]
    points = draws(space, [bl.Mixture(list(space)), *limits], 1200)
    expected = rejected(4, 400_000, keep)[:6000]
    assert np.abs(points.sum(1) - 1).max() < 1e-9 and len(expected) > 300
    for column in [*range(4), [0, 1], [1, 2]]:
        pair = (each[:, column].reshape(len(each), -1).sum(1) for each in (points, expected))
        assert stats.ks_2samp(*pair).pvalue > 1e-4


@pytest.mark.parametrize("weights", [[1, 1, 1, 1], [1, 2, -1, 3]])
@pytest.mark.parametrize("bounds", [(0.4, 0.9), (-np.inf, 0.6), (1.2, np.inf)])
def test_weighted_sums_are_uniform(weights, bounds):
    names = list(wide(4))
    limit = bl.Linear(
        dict(zip(names, weights, strict=True)),
        at_least=None if np.isinf(bounds[0]) else bounds[0],
        at_most=None if np.isinf(bounds[1]) else bounds[1],
    )
    points = draws(wide(4), [limit], 1200)
    box = np.random.default_rng(0).uniform(size=(200_000, 4))
    expected = box[(box @ weights >= bounds[0]) & (box @ weights <= bounds[1])][:6000]
    for direction in [*np.eye(4), weights]:
        assert stats.ks_2samp(points @ direction, expected @ direction).pvalue > 1e-4


def test_sums_with_common_parts_are_uniform():
    # The sum of all parts and a sum of some of them: the parts are two simplices.
    names = list(wide(10))
    whole = bl.Linear(dict.fromkeys(names, 1.0), equals=1.0)
    difference = bl.Linear({name: 1.0 if i < 5 else -1.0 for i, name in enumerate(names)}, equals=0.2)
    points = draws(wide(10), [whole, difference], 1500)
    for i in range(10):
        scaled = points[:, i] / (0.6 if i < 5 else 0.4)
        assert stats.kstest(scaled, stats.beta(1, 4).cdf).pvalue > 1e-4
    # Neighbouring draws are independent, although they start at stored points.
    assert abs(stats.spearmanr(points[1:, 0], points[:-1, 0]).statistic) < 0.11


def test_thin_bodies_are_uniform_along_and_across():
    slab = bl.Linear({"a": 1, "b": 1, "c": 1}, at_least=1 - 1e-6, at_most=1 + 1e-6)
    points = draws(PARTS, [slab], 1500)
    for i in range(3):
        assert stats.kstest(points[:, i], stats.beta(1, 2).cdf).pvalue > 1e-4
    across = (points.sum(1) - 1) / 1e-6
    assert stats.kstest(across, stats.uniform(-1, 2).cdf).pvalue > 1e-4


def test_rotated_thin_body_is_uniform():
    tilted = bl.Linear({"a": 1, "b": 2, "c": 3}, at_least=2 - 1e-6, at_most=2 + 1e-6)
    points = draws(PARTS, [tilted], 1500)
    # On the plane, (a, b) is uniform where c is within its bounds.
    rng = np.random.default_rng(0)
    a, b = rng.uniform(size=(2, 40000))
    c = (2 - a - 2 * b) / 3
    inside = (c >= 0) & (c <= 1)
    for column, expected in zip(points.T, (a, b, c), strict=True):
        assert stats.ks_2samp(column, expected[inside]).pvalue > 1e-4
    across = (points @ [1, 2, 3] - 2) / 1e-6
    assert stats.kstest(across, stats.uniform(-1, 2).cdf).pvalue > 1e-4


@pytest.mark.parametrize("large", [1e160, 1e300, 1.7e308])
@pytest.mark.parametrize("bound", [9661.0, 0.1, -1e300])
def test_coefficients_of_any_size_are_usable(large, bound):
    limit = bl.Linear({"a": 1, "b": 0.3, "c": -large if bound < 0 else large}, at_most=bound)
    for kind in (bl.RandomSearch, bl.BayesOpt):
        try:
            optimizer = kind(PARTS, constraints=[limit, bl.Linear({"a": 1, "b": 1}, at_most=1.5)], seed=0)
        except InvalidSpace:
            assert bound < 0 and large < 1e300
            continue
        for _ in range(8):
            trial = optimizer.suggest()
            c = trial.params["c"]
            assert c * large >= 1e300 * (1 - 1e-6) if bound < 0 else c <= 1e-8
            optimizer.observe(trial, c + trial.params["a"])


@pytest.mark.parametrize("limits", [[], [({"x0": 1, "x1": 1, "x30": 1}, 0.3)]])
def test_optimum_of_many_parts_is_found(limits):
    names = list(wide(40))
    constraints = [bl.Mixture(names), *(bl.Linear(terms, at_most=bound) for terms, bound in limits)]
    optimizer = bl.BayesOpt(wide(40), constraints=constraints, initial=bl.Initial(0), direction="minimize", seed=0)

    def f(params):
        pairs = zip(names, [0.5, 0.2, 0.3, *[0.0] * 37], strict=True)
        return sum((params[name] - target) ** 2 for name, target in pairs)

    rows = draws(wide(40), constraints, 40)
    points = [dict(zip(names, row.tolist(), strict=True)) for row in rows]
    optimizer.add(points, [f(each) for each in points])
    best = min(map(f, points))
    for _ in range(12):
        trial = optimizer.suggest()
        assert abs(sum(trial.params.values()) - 1) < 1e-9
        optimizer.observe(trial, f(trial.params))
    assert optimizer.best_value_ < (best if limits else best / 4)


def test_lattice_is_uniform_and_drawn_without_replacement():
    mixture = bl.Mixture(["a", "b", "c"], step=0.25)
    first = [tuple(draws(PARTS, [mixture], 1, seed)[0]) for seed in range(1500)]
    counts = np.unique(first, axis=0, return_counts=True)[1]
    assert len(counts) == 15
    assert stats.chisquare(counts).pvalue > 1e-4
    assert len(np.unique(draws(PARTS, [mixture], 15), axis=0)) == 15


# Suggestions.


systems = st.integers(2, 4).flatmap(
    lambda d: st.tuples(
        st.lists(st.lists(st.integers(-3, 3), min_size=d, max_size=d), min_size=1, max_size=3),
        st.lists(st.tuples(st.integers(-2, 3), st.sampled_from(["equals", "at_most", "at_least"])), min_size=3),
        st.lists(st.sampled_from([(0.0, 1.0), (-1.0, 3.0), (10.0, 1e3)]), min_size=d, max_size=d),
    )
)


@given(systems)
@settings(max_examples=60, deadline=None)
def test_feasible_systems_are_kept_and_infeasible_ones_refused(system):
    rows, bounds, ranges = system
    rows = [row for row in rows if any(row)]
    assume(rows)
    space = {f"x{i}": each for i, each in enumerate(ranges)}
    lower = np.array([low for low, _ in ranges])
    constraints, upper, equal = [], [], []
    for row, (bound, kind) in zip(rows, bounds, strict=False):
        # Bounds are relative to the lower corner, so that about half of the systems are feasible.
        bound = float(bound + np.dot(row, lower))
        terms = {f"x{i}": a for i, a in enumerate(row) if a}
        constraints.append(bl.Linear(terms, **{kind: bound}))
        sign = -1 if kind == "at_least" else 1
        (equal if kind == "equals" else upper).append((sign * np.array(row, dtype=float), sign * bound))
    arguments = {}
    for name, found in (("ub", upper), ("eq", equal)):
        if found:
            arguments |= {f"A_{name}": [a for a, _ in found], f"b_{name}": [b for _, b in found]}
    feasible = linprog(np.zeros(len(ranges)), bounds=ranges, **arguments).status == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("belated.optimizers.problem.warn", lambda message: None)
        if not feasible:
            with pytest.raises(InvalidSpace):
                bl.RandomSearch(space, constraints=constraints)
            return
        for kind, n in ((bl.RandomSearch, 3), (bl.BayesOpt, 9)):
            optimizer = kind(space, constraints=constraints, seed=0)
            for _ in range(n):
                trial = optimizer.suggest()
                x = np.array([*trial.params.values()])
                widths = np.array([high - low for low, high in ranges])
                for each in constraints:
                    a = np.array([each.coefficients.get(name, 0.0) for name in space])
                    slack = 1e-9 * np.abs(a) @ widths
                    low, high = each.core[1:3]
                    assert low is None or a @ x >= low - slack
                    assert high is None or a @ x <= high + slack
                trial.observe(float(np.sin(3 * x / widths).sum()))


def test_optimum_of_mixture_is_found_beside_choices_conditions_and_functions():
    space = PARTS | {"kind": ["u", "v"], "T": bl.Real(20.0, 100.0, when={"kind": "v"})}
    optimizer = bl.BayesOpt(space, constraints=[TOTAL, lambda p: p["a"] <= 0.5], seed=0)
    for _ in range(40):
        trial = optimizer.suggest()
        params = trial.params
        assert abs(params["a"] + params["b"] + params["c"] - 1) < 1e-8
        assert params["a"] <= 0.5
        trial.observe(value(params) + 0.1 * (params["kind"] == "v"))
    best = optimizer.recommend()
    # On a + b + c = 1 with a <= 0.5, the optimum is a = 0.5, b = 0.5.
    assert value(best) > -0.0225 and best["kind"] == "v"
    assert abs(best["a"] + best["b"] + best["c"] - 1) < 1e-8


@pytest.mark.parametrize(
    "arguments",
    [
        {"acquisition": bl.ThompsonSampling()},
        {"acquisition": bl.UCB(), "pending": bl.Hallucinate()},
        {"acquisition": MaxVariance()},
        {"acquisition": UCBPE()},
        {"acquisition": AEGiS()},
        {"acquisition": bl.UCB(), "pending": LocalPenalization()},
        {"initial": bl.Initial(4, how="uncertainty")},
    ],
)
def test_all_acquisitions_and_batches_stay_in_the_mixture(arguments):
    optimizer = bl.BayesOpt(PARTS, constraints=[TOTAL], seed=0, **arguments)
    waiting = []
    for _ in range(5):
        waiting.append(optimizer.suggest(n=4))
        for trial in waiting[-1]:
            assert abs(sum(trial.params.values()) - 1) < 1e-8
        if len(waiting) > 1:
            for trial in waiting[-2]:
                trial.observe(value(trial.params))
    assert abs(sum(optimizer.recommend().values()) - 1) < 1e-8


def test_initial_points_are_spread():
    def least(points):
        gaps = np.linalg.norm(points[:, None] - points[None], axis=2)
        return gaps[np.triu_indices(len(points), 1)].min()

    found = []
    for seed in range(20):
        optimizer = bl.BayesOpt(PARTS, constraints=[TOTAL], initial=bl.Initial(10), seed=seed)
        found.append(least(np.array([[*t.params.values()] for t in optimizer.suggest(n=10)])))
    uniform = [least(draws(PARTS, [TOTAL], 10, seed)) for seed in range(20)]
    assert np.median(found) > 2 * np.median(uniform)


def test_exact_lattice_is_searched_without_repeats():
    optimizer = bl.BayesOpt(PARTS, constraints=[bl.Mixture(["a", "b", "c"], step=0.2)], surrogate=bl.GP(noise_std=0.0))
    seen = set()
    for _ in range(21):
        trial = optimizer.suggest()
        assert all(abs(v * 5 - round(v * 5)) < 1e-12 for v in trial.params.values())
        seen.add(tuple(trial.params.values()))
        trial.observe(value(trial.params))
    assert len(seen) == 21


def test_inactive_part_counts_as_zero():
    space = {
        "a": (0.0, 1.0),
        "b": (0.0, 1.0),
        "third": [True, False],
        "c": bl.Real(0.0, 1.0, when={"third": True}),
    }
    for kind in (bl.RandomSearch, bl.BayesOpt):
        optimizer = kind(space, constraints=[TOTAL], seed=0)
        for _ in range(12):
            trial = optimizer.suggest()
            assert abs(sum(trial.params.get(name, 0.0) for name in "abc") - 1) < 1e-9
            trial.observe(trial.params["a"])
    # Without the third part, the sum of the others is at most 0.6.
    small = space | {"a": (0.0, 0.3), "b": (0.0, 0.3)}
    with pytest.raises(InvalidSpace, match="'c'"):
        bl.RandomSearch(small, constraints=[TOTAL])


# Points of users.


def test_points_outside_are_kept_as_measurements_and_not_enqueued():
    optimizer = bl.BayesOpt(PARTS, constraints=[TOTAL], seed=0)
    outside = optimizer.add({"a": 0.5, "b": 0.4, "c": 0.3}, value=9.0)
    inside = optimizer.add({"a": 0.5, "b": 0.4, "c": 0.1}, value=1.0)
    assert (outside.outside, inside.outside) == (True, False)
    assert abs(sum(optimizer.recommend().values()) - 1) < 1e-8
    with pytest.raises(InvalidPoint, match=r"a \+ b \+ c = 1.0: the sum is 1.2"):
        optimizer.enqueue({"a": 0.5, "b": 0.4, "c": 0.3})
    trial = optimizer.suggest()
    trial.observe(0.5, params={"a": 0.3, "b": 0.3, "c": 0.3})
    assert trial.outside
    # The tolerance is 1e-9 of the sum of the ranges.
    optimizer.enqueue({"a": 0.5, "b": 0.4, "c": 0.1 + 2.5e-9})
    with pytest.raises(InvalidPoint):
        optimizer.enqueue({"a": 0.5, "b": 0.4, "c": 0.1 + 4e-9})


@pytest.mark.parametrize("kind", [bl.BayesOpt, bl.RandomSearch])
@pytest.mark.parametrize("step", [None, 0.05])
@pytest.mark.parametrize(("tolerance", "inside"), [(None, [0.002, 0.0099]), (0.0, []), (0.003, [0.002])])
def test_weighed_parts_may_miss_the_total_by_the_tolerance(kind, step, tolerance, inside):
    space = {"a": (0.0, 1.0), "b": (0.0, 1.0), "c": (0.0, 1.0)}
    mixture = bl.Mixture(["a", "b", "c"], step=step, tolerance=tolerance)
    optimizer = kind(space, constraints=[mixture], seed=0)
    assert eval(repr(mixture), vars(bl)) == mixture
    for miss in (0.002, 0.0099, 0.011):
        weighed = {"a": 0.5, "b": 0.25 - miss, "c": 0.25}
        run = {"a": 0.25, "b": 0.25 + miss, "c": 0.5}
        added, trial = optimizer.add(weighed, 1.0 - miss), optimizer.suggest()
        trial.observe(0.5, params=run)
        assert added.params == weighed and trial.params_run == run
        assert added.outside == trial.outside == (miss not in inside)
        with pytest.raises(InvalidPoint, match="the sum is"):
            optimizer.enqueue(weighed)
    expected = {"a": 0.5, "b": 0.25 - inside[0], "c": 0.25} if inside else None
    assert optimizer.best_params_ == expected
    again = pickle.loads(pickle.dumps(optimizer))
    study = bl.Study("s", MemoryStore(), optimizer)
    for each in (optimizer, again, study.copy("copy")):
        assert [t.outside for t in each.trials] == [t.outside for t in study.trials]
        assert all(abs(sum(t.params.values()) - 1.0) < 1e-8 for t in each.suggest(n=3))
    with pytest.raises(InvalidSpace, match="tolerance"):
        bl.Mixture(["a", "b"], tolerance=-0.1)


def test_the_tolerance_of_a_mixture_is_a_share_of_its_total():
    space = {"a": (0.0, 100.0), "b": (0.0, 100.0), "c": 50.0}
    optimizer = bl.RandomSearch(space, constraints=[bl.Mixture(["a", "b", "c"], total=100.0)], seed=0)
    rows = [{"a": 20.0, "b": b} for b in (29.1, 30.9, 31.1)]
    assert [trial.outside for trial in optimizer.add(rows, [1.0, 2.0, 3.0])] == [False, False, True]


def test_missing_parts_of_enqueued_points_are_drawn():
    optimizer = bl.RandomSearch(PARTS | {"kind": ["u", "v"]}, constraints=[TOTAL], seed=0)
    optimizer.enqueue({"a": 0.25, "kind": "v"})
    optimizer.enqueue({"a": 0.25, "b": 0.5})
    first, second = optimizer.suggest(n=2)
    assert first.params["a"] == 0.25 and first.params["kind"] == "v"
    for params in (first.params, second.params):
        assert abs(params["a"] + params["b"] + params["c"] - 1) < 1e-9
    with pytest.raises(InvalidPoint):
        optimizer.enqueue({"a": 0.75, "b": 0.5})
    lattice = bl.RandomSearch(PARTS, constraints=[bl.Mixture(["a", "b", "c"], step=0.25)], seed=0)
    lattice.enqueue({"a": 0.5})
    assert sum(lattice.suggest().params.values()) == 1.0


@pytest.mark.parametrize("strategy", [bl.RandomSearch, bl.BayesOpt])
def test_parts_are_drawn_where_given_values_make_a_part_inactive(strategy):
    space = PARTS | {"kind": ["u", "v"], "c": bl.Real(0.0, 1.0, when={"kind": ["u"]})}
    for part in ({"kind": "v"}, {"kind": "v", "b": 0.25}):
        optimizer = strategy(space, constraints=[TOTAL], seed=0)
        optimizer.enqueue(part)
        params = optimizer.suggest().params
        assert params["kind"] == "v" and "c" not in params and params["b"] == part.get("b", params["b"])
        assert abs(params["a"] + params["b"] - 1) < 1e-9
        with pytest.raises(InvalidPoint):
            optimizer.enqueue(part | {"c": 0.5})


@pytest.mark.parametrize("n_observed", [0, 8])
@pytest.mark.parametrize("strategy", [bl.RandomSearch, bl.BayesOpt])
def test_choices_with_which_a_sum_cannot_hold_are_left_out(strategy, n_observed):
    """Without part c, which kind "w" does not have, a + b would have to be 1."""
    space = PARTS | {"kind": ["u", "v", "w"], "c": bl.Real(0.0, 1.0, when={"kind": ["u", "v"]})}
    optimizer = strategy(space, constraints=[TOTAL], seed=0)
    for trial in optimizer.suggest(n=n_observed):
        optimizer.observe(trial, trial.params["a"])
    optimizer.enqueue({"a": 0.3, "b": 0.3})
    for arguments in (
        {},
        {"fixed": {"a": 0.3, "b": 0.3}},
        {"fixed": {"a": (0.1, 0.2), "b": (0.1, 0.2)}},
        {"fixed": {"a": 0.3, "b": 0.3}, "shared": ["kind"]},
        {"fixed": {"b": 0.3}, "shared": ["a"]},
        {"shared": ["a", "b"]},
    ):
        for trial in optimizer.suggest(n=1 if not arguments else 3, **arguments):
            params = trial.params
            assert abs(params["a"] + params["b"] + params.get("c", 0.0) - 1) < 1e-9
            assert params["kind"] != "w" or params["a"] + params["b"] > 0.9
    with pytest.raises(InvalidPoint):
        optimizer.suggest(fixed={"a": 0.3, "b": 0.3, "kind": "w"})
    with pytest.raises(InvalidPoint):
        optimizer.suggest(fixed={"a": 0.7, "b": 0.7})


# Errors and warnings.


def test_contradictions_name_the_constraints_and_redundant_ones_are_warned_of():
    more = bl.Linear({"a": 1, "b": 2}, at_least=2.5)
    with pytest.raises(InvalidSpace, match=r"a \+ b \+ c = 1.0 and a \+ 2.0 b >= 2.5 contradict"):
        bl.BayesOpt(PARTS, constraints=[bl.Linear({"c": 1}, at_most=0.5), TOTAL, more])
    with pytest.warns(bl.BelatedWarning, match=r"\['a \+ b <= 1.5'\]"):
        bl.BayesOpt(PARTS, constraints=[TOTAL, bl.Linear({"a": 1, "b": 1}, at_most=1.5)])


@pytest.mark.parametrize(
    "space",
    [
        PARTS | {"c": bl.Real(0.1, 1.0, log=True)},
        PARTS | {"c": (0, 1)},
        PARTS | {"c": ["u", "v"]},
        PARTS | {"c": bl.Real(0.0, 1.0, step=0.1)},
        PARTS | {"c": "u"},
        {"a": (0.0, 1.0), "b": (0.0, 1.0)},
    ],
)
def test_parameters_of_other_kinds_are_refused_by_name(space):
    with pytest.raises(InvalidSpace, match='"c"'):
        bl.BayesOpt(space, constraints=[TOTAL])


@pytest.mark.parametrize(
    "make",
    [
        lambda: bl.Linear({}, equals=1.0),
        lambda: bl.Linear({"a": 1}),
        lambda: bl.Linear({"a": 1}, equals=1.0, at_most=2.0),
        lambda: bl.Linear({"a": float("nan")}, equals=1.0),
        lambda: bl.Linear({1: 1}, equals=1.0),
        lambda: bl.Mixture("ab"),
        lambda: bl.Mixture(["a"]),
        lambda: bl.Mixture(["a", "a"]),
        lambda: bl.Mixture(["a", "b"], step=0.0),
        lambda: bl.Mixture(["a", "b"], total="1"),
        lambda: bl.BayesOpt(PARTS, constraints=[bl.Linear({"a": 1}, at_least=0.8, at_most=0.2)]),
        lambda: bl.BayesOpt(PARTS, constraints=[bl.Mixture(["a", "b", "c"], step=0.3)]),
        lambda: bl.BayesOpt(PARTS, constraints=[bl.Mixture(["a", "b", "c"], total=4.0, step=0.5)]),
        lambda: bl.BayesOpt(
            PARTS, constraints=[bl.Mixture(["a", "b", "c"], step=0.5), bl.Linear({"a": 1, "b": 1}, at_most=-0.2)]
        ),
    ],
)
def test_unusable_constraints_are_refused(make):
    with pytest.raises(InvalidSpace):
        make()


def test_what_does_not_support_linear_constraints_refuses_them():
    with pytest.raises(BelatedError, match="linear constraints"):
        bl.TreeSearch(PARTS, constraints=[TOTAL])
    with pytest.raises(InvalidSetting):
        bl.BayesOpt(candidates=[[0.5, 0.5]], constraints=[TOTAL])
    with pytest.raises(InvalidSetting):
        bl.BayesOpt(PARTS, constraints=[TOTAL], search=bl.Search(how="multistart"))


def test_equation_as_a_function_is_answered_with_linear():
    optimizer = bl.RandomSearch(PARTS, constraints=[lambda p: p["a"] + p["b"] == 1], seed=0)
    with pytest.raises(InvalidSpace, match=r"bl\.Linear"):
        optimizer.suggest()


# Definitions.


def test_definition_travels():
    limits = [TOTAL, bl.Linear({"a": 1.0, "b": -2.0}, at_most=0.4, at_least=-1.5)]
    optimizer = bl.BayesOpt(PARTS, constraints=limits, seed=3)
    definition = json.loads(json.dumps(definition_of(optimizer)))
    read = optimizer_from(definition, None)
    copied = pickle.loads(pickle.dumps(optimizer))
    assert read.constraints == limits
    for other in (read, copied):
        for mine, theirs in zip(optimizer.suggest(n=2), other.suggest(n=2), strict=True):
            assert mine.params == theirs.params
        optimizer = bl.BayesOpt(PARTS, constraints=limits, seed=3)
    with pytest.raises(InvalidSetting, match="linear"):
        store = MemoryStore()
        bl.Study("s", store, optimizer)
        bl.Study("s", store, bl.BayesOpt(PARTS, constraints=[TOTAL], seed=3))


def test_studies_keep_linear_constraints_and_need_only_functions(tmp_path):
    url = f"sqlite:///{tmp_path / 'mixtures.db'}"
    study = bl.Study("m", url, bl.RandomSearch(PARTS, constraints=[TOTAL], seed=0))
    loaded = bl.Study.load("m", url)
    assert abs(sum(loaded.suggest().params.values()) - 1) < 1e-9
    assert abs(sum(pickle.loads(pickle.dumps(study)).suggest().params.values()) - 1) < 1e-9
    study.revise(constraints=[bl.Mixture(["a", "b", "c"], total=2.0)])
    assert abs(sum(loaded.suggest().params.values()) - 2) < 1e-9
    copied = study.copy("n", constraints=None)
    assert copied.optimizer.constraints is None
    both = bl.Study("f", url, bl.RandomSearch(PARTS, constraints=[TOTAL, small], seed=0))
    assert both.suggest().params["a"] <= 0.2
    again = bl.Study.load("f", url, constraints=[small])
    params = again.suggest().params
    assert params["a"] <= 0.2 and abs(sum(params.values()) - 1) < 1e-9


def small(params):
    return params["a"] <= 0.2


def test_definition_sent_to_a_server_may_have_linear_constraints():
    pytest.importorskip("anyio")
    from belated.serve.studies import read_definition

    space = [{"name": name, "kind": "Real", "low": 0, "high": 1} for name in "ab"]
    linear = [
        {"kind": "Mixture", "names": ["a", "b"]},
        {"kind": "Linear", "coefficients": [["a", 1]], "at_most": 0.3},
    ]
    definition = {"problem": {"space": space, "linear": linear}, "strategy": {"kind": "RandomSearch"}}
    params = read_definition(definition).suggest().params
    assert params["a"] <= 0.3 and abs(params["a"] + params["b"] - 1) < 1e-9
    for bad in ({"kind": "Mixture"}, {"kind": "Line", "names": ["a", "b"]}, {"kind": "Linear", "coefficients": 3}, 1):
        with pytest.raises(InvalidSetting):
            read_definition(definition | {"problem": {"space": space, "linear": [bad]}})


def test_constants_count_in_linear_constraints():
    space = {"a": (0.0, 1.0), "b": (0.0, 1.0), "c": 0.25, "d": bl.Real(0.5, 0.5), "kind": "x"}
    opt = bl.BayesOpt(space, constraints=[bl.Linear({"a": 1, "b": 1, "c": 2}, at_most=1.0)], seed=0)
    trials = opt.suggest(n=20)
    assert all(t.params["a"] + t.params["b"] <= 0.5 + 1e-8 for t in trials)
    assert max(t.params["a"] + t.params["b"] for t in trials) > 0.25
    mixed = bl.BayesOpt(space, constraints=[bl.Mixture(["a", "b", "c", "d"], total=1.0)], seed=0)
    for trial in mixed.suggest(n=4):
        assert sum(trial.params[name] for name in "abcd") == pytest.approx(1.0, abs=1e-8)
    stepped = bl.BayesOpt(space, constraints=[bl.Mixture(["a", "b", "c"], step=0.25)], seed=0)
    assert all(t.params["a"] + t.params["b"] == 0.75 for t in stepped.suggest(n=4))
    again = pickle.loads(pickle.dumps(opt))
    assert again.suggest().params == opt.suggest().params
    bl.BayesOpt(space, constraints=[bl.Linear({"c": 1, "d": 1}, equals=0.75)], seed=0).suggest()
    for refused in (bl.Linear({"c": 1, "d": 1}, at_most=0.7), bl.Linear({"a": 1, "kind": 1}, at_most=1.0)):
        with pytest.raises(bl.errors.InvalidSpace, match="all of its parameters are constants|not searched"):
            bl.BayesOpt(space, constraints=[refused], seed=0)


def test_a_part_of_a_mixture_becomes_a_constant(tmp_path):
    space = {"a": (0.0, 1.0), "b": (0.0, 1.0), "c": (0.0, 1.0)}
    opt = bl.BayesOpt(space, constraints=[bl.Mixture(["a", "b", "c"])], seed=0)
    study = bl.Study("s", f"sqlite:///{tmp_path}/s.db", opt)
    for trial in study.suggest(n=6):
        trial.observe(trial.params["a"])
    study.revise(space=space | {"c": 0.2})
    assert study.left_out == {}
    for trial in study.suggest(n=4):
        assert trial.params["c"] == 0.2 and trial.params["a"] + trial.params["b"] == pytest.approx(0.8, abs=1e-8)
    assert bl.Study.load("s", f"sqlite:///{tmp_path}/s.db").suggest().params["c"] == 0.2
