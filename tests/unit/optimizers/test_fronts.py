"""Suggestions and recommendations for the front of several objectives."""

import itertools
import pickle

import numpy as np
import pytest

import belated as bl
import belated.papers
from belated.errors import InvalidSetting, NotFitted

SQUARE = {"r": (0.0, 1.0), "angle": (0.0, 1.0)}
BOTH = {"first": "maximize", "second": "maximize"}


def on_circle(params, n=2):
    """Return objectives that are largest on a circle, or on a sphere."""
    a = np.pi / 2 * params["angle"]
    found = {"first": params["r"] * np.cos(a), "second": params["r"] * np.sin(a)}
    if n == 3:
        found["third"] = params["r"] * np.cos(3 * a) ** 2
    return {name: float(value) for name, value in found.items()}


def hypervolume(points, reference):
    """Return the hypervolume of points of two objectives that are maximised."""
    volume, best = 0.0, reference[1]
    for first, second in sorted(map(tuple, points), reverse=True):
        if first > reference[0] and second > best:
            volume += (first - reference[0]) * (second - best)
            best = second
    return volume


def filled(n=20, delay=3, factors=(1.0, 1.0), **arguments):
    """Return an optimizer and its trials; the second objective arrives `delay` suggestions later."""
    optimizer = bl.BayesOpt(SQUARE, **({"outcomes": BOTH, "seed": 0} | arguments))
    started = []
    for i in range(n):
        started.append(optimizer.suggest())
        values = {
            name: value * factor
            for (name, value), factor in zip(on_circle(started[i].params).items(), factors, strict=True)
        }
        started[i].observe({"first": values["first"]})
        if i >= delay:
            late = started[i - delay]
            late.observe({"second": factors[1] * on_circle(late.params)["second"]})
    return optimizer, started


def test_suggestions_approach_the_front_although_one_objective_is_late():
    optimizer, trials = filled(40)
    points = [on_circle(trial.params).values() for trial in trials]
    random = bl.RandomSearch(SQUARE, seed=0).suggest(n=40)
    by_chance = [on_circle(trial.params).values() for trial in random]
    best = np.pi / 4
    assert best - hypervolume(points, (0.0, 0.0)) < 0.3 * (best - hypervolume(by_chance, (0.0, 0.0)))
    chosen = trials[10:]
    assert np.median([trial.params["r"] for trial in chosen]) > 0.95
    assert max(np.diff(sorted(trial.params["angle"] for trial in chosen))) < 0.25


def test_units_of_values_have_no_effect():
    plain = [trial.params for trial in filled()[1]]
    assert [trial.params for trial in filled(factors=(4.0, 2.0**-20))[1]] == plain
    for trial, other in zip(filled(factors=(3.0, 1e-5))[1], plain, strict=True):
        assert trial.params == pytest.approx(other, abs=1e-6)


def test_minimised_objectives_are_maximised_objectives_with_the_other_sign():
    mixed = bl.BayesOpt(SQUARE, outcomes={"first": "maximize", "second": bl.Minimize(at_most=0.0)}, seed=0)
    both = bl.BayesOpt(SQUARE, outcomes={"first": "maximize", "second": bl.Maximize(at_least=0.0)}, seed=0)
    for _ in range(12):
        trial, other = mixed.suggest(), both.suggest()
        assert trial.params == other.params
        values = on_circle(trial.params)
        other.observe(values)
        trial.observe({"first": values["first"], "second": -values["second"]})


def test_the_order_of_arrival_between_suggestions_has_no_effect():
    found = []
    for order in itertools.permutations(range(4)):
        optimizer = bl.BayesOpt(SQUARE, outcomes=BOTH, seed=0, surrogate=bl.GP(noise_std=0.01))
        trials = optimizer.suggest(n=8)
        for trial in trials[:6]:
            trial.observe(on_circle(trial.params))
        reports = [(trials[k], name) for k in (6, 7) for name in BOTH]
        for k in order:
            trial, name = reports[k]
            trial.observe({name: on_circle(trial.params)[name]})
        found.append(tuple(optimizer.suggest().params.values()))
    assert np.ptp(np.array(found), axis=0).max() < 1e-6


def test_pickled_optimizers_go_on_alike():
    optimizer, _ = filled()
    copied = pickle.loads(pickle.dumps(optimizer))
    assert [trial.params for trial in optimizer.suggest(n=3)] == [trial.params for trial in copied.suggest(n=3)]


@pytest.mark.parametrize("n_objectives", [2, 3])
def test_the_covered_region_is_worth_nothing(n_objectives):
    """40 points are on the front without noise, and the other points lie far inside the region that they dominate."""
    outcomes = dict.fromkeys(on_circle({"r": 1, "angle": 0}, n_objectives), "maximize")
    outcomes = {name: bl.Maximize(at_least=0.0) for name in outcomes}
    optimizer = bl.BayesOpt(SQUARE, outcomes=outcomes, seed=0, surrogate=bl.GP(noise_std=0.0))
    points = [{"r": 1.0, "angle": i / 39} for i in range(40)]
    points += [{"r": r, "angle": a} for r in (0.1, 0.5, 0.8) for a in np.linspace(0, 1, 7).tolist()]
    for params in points:
        optimizer.add(params, on_circle(params, n_objectives))
    rng = np.random.default_rng(0)
    covered = [{"r": r, "angle": a} for r, a in zip(rng.uniform(0.2, 0.9, 200), rng.random(200), strict=True)]
    grid = [{"r": r, "angle": a} for r in np.linspace(0.95, 1, 11).tolist() for a in np.linspace(0, 1, 300).tolist()]
    largest = optimizer.acquisition_at(grid).max()
    assert optimizer.acquisition_at(covered).max() <= largest + np.log(1e-3)


def test_recommended_points_are_nearly_the_best_subset():
    optimizer = bl.BayesOpt(SQUARE, outcomes={name: bl.Maximize(at_least=0.0) for name in BOTH}, seed=0)
    for params in [{"r": r, "angle": a} for r in (0.4, 0.7, 1.0) for a in np.linspace(0, 1, 9).tolist()]:
        optimizer.add(params, on_circle(params))
    for n in (1, 2, 3):
        found = optimizer.recommend(n=n)
        assert len(found) == n
        angles = np.linspace(0, 1, 41).tolist()
        subsets = itertools.combinations([tuple(on_circle({"r": 1, "angle": a}).values()) for a in angles], n)
        best = max(hypervolume(subset, (0.0, 0.0)) for subset in subsets)
        points = [on_circle(params).values() for params in found]
        # A greedy subset has at least 1 - 1/e of the best hypervolume.
        assert hypervolume(points, (0.0, 0.0)) >= (0.95 if n != 2 else 0.9) * best


def test_recommendations_lie_within_the_bounds_of_other_outcomes():
    outcomes = {name: bl.Maximize(at_least=0.0) for name in BOTH} | {"heat": bl.AtMost(0.5)}
    optimizer = bl.BayesOpt(SQUARE, outcomes=outcomes, seed=0)
    for _ in range(25):
        trial = optimizer.suggest()
        trial.observe(on_circle(trial.params) | {"heat": trial.params["angle"]})
    assert all(params["angle"] <= 0.55 for params in optimizer.recommend(n=5))
    assert np.mean([trial.params["angle"] <= 0.55 for trial in optimizer.trials[12:]]) > 0.7


HOSTILE = {
    "constant": lambda params: {"first": 1.0, "second": params["r"]},
    "identical": lambda params: {"first": params["r"], "second": params["r"]},
    "opposed": lambda params: {"first": params["r"], "second": -params["r"]},
    "scales": lambda params: {"first": 1e-9 * params["r"], "second": 1e9 * params["angle"]},
    "outliers": lambda params: {"first": params["r"], "second": -1e6 if params["angle"] > 0.8 else params["angle"]},
    "first never": lambda params: {"second": params["r"]},
    "second never": lambda params: {"first": params["r"]},
    "fails": lambda params: {"first": params["r"]} if params["angle"] < 0.3 else on_circle(params),
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("reference", [None, 1e12, -5.0], ids=["computed", "nothing reaches it", "far below"])
def test_hostile_values(kind, reference):
    outcomes = BOTH if reference is None else {name: bl.Maximize(at_least=reference) for name in BOTH}
    optimizer = bl.BayesOpt(SQUARE, outcomes=outcomes, seed=1)
    for _ in range(18):
        trial = optimizer.suggest()
        trial.observe(values := HOSTILE[kind](trial.params))
        if kind == "fails" and "second" not in values:
            trial.fail(outcome="second")
    assert all(0 <= value <= 1 for trial in optimizer.trials for value in trial.params.values())
    if "never" not in kind:
        optimizer.recommend(n=3) if reference != 1e12 else None


def test_many_pending_trials_and_few_points():
    optimizer, _ = filled(12)
    assert len({tuple(trial.params.values()) for trial in optimizer.suggest(n=60)}) == 60
    few = bl.BayesOpt(
        candidates=[{"r": r, "angle": a} for r in (0.2, 1.0) for a in np.linspace(0, 1, 6)], outcomes=BOTH, seed=0
    )
    for _ in range(16):
        trial = few.suggest()
        trial.observe(on_circle(trial.params))
    assert len({tuple(trial.params.values()) for trial in few.trials}) == 12
    assert {params["r"] for params in few.recommend(n=4)} == {1.0}


@pytest.mark.parametrize(
    "settings",
    [
        {"acquisition": bl.UCB()},
        {"acquisition": bl.ThompsonSampling()},
        {"acquisition": bl.papers.MaxVariance()},
        {"pending": bl.Hallucinate()},
        {"pending": bl.Ignore()},
        {"pending": bl.Liar("mean")},
    ],
    ids=str,
)
def test_other_acquisitions_and_policies_are_refused(settings):
    with pytest.raises(InvalidSetting, match="several objectives"):
        bl.BayesOpt(SQUARE, outcomes=BOTH, **settings)


def test_contexts_costs_fixed_and_shared_values():
    optimizer = bl.BayesOpt(
        SQUARE, outcomes=BOTH, seed=0, context={"batch": (0.0, 1.0)}, acquisition=bl.LogEI(per="cost")
    )
    for i in range(20):
        trial = optimizer.suggest(context={"batch": (i % 3) / 2})
        trial.observe(on_circle(trial.params), cost=1.0 + trial.params["r"])
    assert optimizer.suggest(context={"batch": 0.25}, fixed={"r": 0.5}).params["r"] == 0.5
    shared = optimizer.suggest(n=3, context={"batch": 0.5}, shared=["angle"])
    assert len({trial.params["angle"] for trial in shared}) == 1
    assert optimizer.recommend({"batch": 0.5}, n=2, fixed={"angle": 0.25})[0]["angle"] == 0.25


def test_models_of_all_objectives_and_recommendations_without_a_model():
    optimizer, trials = filled(16, delay=0)
    for name in BOTH:
        mean, _ = optimizer.predict(trials[3].params, outcome=name)
        assert mean == pytest.approx(trials[3].values[name], abs=0.05)
    random = bl.RandomSearch(SQUARE, outcomes=BOTH, seed=0)
    for trial in random.suggest(n=30):
        trial.observe(on_circle(trial.params))
    front = [trial.params for trial in random.pareto_]
    chosen = random.recommend(n=3)
    assert all(params in front for params in chosen) and len(chosen) == 3
    assert len(random.recommend(n=100)) == len(front)
    assert random.recommend() == chosen[0]


def test_a_front_that_is_short_at_first_is_extended():
    optimizer = bl.BayesOpt({"x": (0.0, 1.0), "y": (0.0, 1.0)}, outcomes={"a": "minimize", "b": "maximize"}, seed=0)
    for _ in range(40):
        trial = optimizer.suggest()
        x, y = trial.params["x"], trial.params["y"]
        trial.observe({"a": (x - 0.2) ** 2 + y, "b": -((x - 0.8) ** 2) - y})
    xs = [trial.params["x"] for trial in optimizer.pareto_]
    assert min(xs) < 0.25 and max(xs) > 0.75  # the front has x from 0.2 to 0.8


def test_bounds_without_values_and_references_that_nothing_reaches():
    goals = {name: bl.Maximize(at_least=5.0) for name in BOTH} | {"heat": bl.AtMost(0.5)}
    optimizer = bl.BayesOpt(SQUARE, outcomes=goals, seed=0)
    for _ in range(16):
        trial = optimizer.suggest()
        trial.observe(on_circle(trial.params))  # the outcome with a bound never comes
    assert np.median([trial.params["r"] for trial in optimizer.trials[8:]]) > 0.9
    with pytest.warns(bl.BelatedWarning, match="heat"):
        assert len(optimizer.recommend(n=3)) == 3


def test_recommended_points_are_distinct():
    optimizer = bl.BayesOpt({"i": (0, 3), "j": (0, 2)}, outcomes=BOTH, seed=0)
    for _ in range(10):
        trial = optimizer.suggest()
        trial.observe({"first": float(trial.params["i"]), "second": float(trial.params["j"] - trial.params["i"])})
    found = [tuple(params.values()) for params in optimizer.recommend(n=10)]
    assert len(set(found)) == len(found)


def test_errors_name_the_outcome_without_a_value():
    goals = {"first": bl.Maximize(at_least=-1.0), "second": bl.Maximize(at_least=-1.0), "heat": bl.AtMost(0.5)}
    optimizer = bl.BayesOpt(SQUARE, outcomes=goals, seed=0)
    trial = optimizer.suggest()
    trial.observe({"second": 1.0, "heat": 0.25})
    with pytest.raises(NotFitted, match="predict needs values of 'first'"):
        optimizer.predict(trial.params, outcome="first")
    with pytest.raises(NotFitted, match="surrogate_ needs values of 'first'"):
        optimizer.surrogate_  # noqa: B018
    with pytest.raises(NotFitted, match="importances needs values of 'first'"):
        optimizer.importances(outcome="first")
    assert np.isfinite(optimizer.predict(trial.params, outcome="second")).all()
    # The reference of the objective that did not come is not a bound.
    assert optimizer.predict_feasible(trial.params) > 0.5
