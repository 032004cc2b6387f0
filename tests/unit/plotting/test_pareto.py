"""Plots of searches with several objectives."""

import numpy as np
import pytest

import belated as bl
from belated import plotting
from belated.errors import InvalidSetting, InvalidValue
from tests.unit.plotting.searches import drawn, labels

pytest.importorskip("matplotlib").use("Agg")

SPACE = {"x": (0.0, 1.0)}
OUTCOMES = {"yield": "maximize", "cost": bl.Minimize(at_most=9.0), "purity": bl.AtLeast(0.5)}
POINTS = [(1.0, 2.0), (4.0, 5.0), (3.0, 6.0), (4.0, 7.0), (2.0, 3.0)]


def search(outcomes=OUTCOMES, points=POINTS):
    optimizer = bl.RandomSearch(SPACE, outcomes=outcomes, seed=0)
    for trial, (a, b) in zip(optimizer.suggest(n=len(points)), points, strict=True):
        trial.observe({"yield": a, "cost": b, "purity": 1.0})
    return optimizer


def test_trials_and_the_front_are_drawn_as_a_staircase():
    optimizer = search()
    impure, only_yield, only_cost, _ = optimizer.suggest(n=4)
    impure.observe({"yield": 9.0, "cost": 1.0, "purity": 0.0})
    only_yield.observe({"yield": 3.5})
    only_cost.observe({"cost": 4.5})
    [ax] = plotting.plot_pareto(optimizer)
    lines = drawn(ax)
    assert labels(ax) == ("yield\n(maximized)", "cost\n(minimized)")
    assert sorted(zip(*lines["observed"].get_data(), strict=True)) == sorted(POINTS)
    assert sorted(zip(*lines["front"].get_data(), strict=True)) == [(1.0, 2.0), (2.0, 3.0), (4.0, 5.0)]
    assert lines["does not count"].get_data()[0].tolist() == [9.0]
    assert list(lines["reference"].get_ydata()) == [9.0, 9.0]
    known = [line for line in ax.lines if line.get_label() == "only one value known"]
    assert [list(line.get_xdata()) for line in known] == [[3.5, 3.5], [0, 1]]
    assert list(known[1].get_ydata()) == [4.5, 4.5]
    # A value lies on the worse side of the staircase if and only if a trial of the front dominates it.
    [steps] = [line.get_xydata() for line in ax.lines if len(line.get_xdata()) == 7]
    assert all((a == b).any() for a, b in zip(steps, steps[1:], strict=False))
    for x, y in np.random.default_rng(0).uniform((0.0, 1.0), (5.0, 8.0), (200, 2)):
        dominated = any(a >= x and b <= y for a, b in POINTS)
        heights = [min(q[1], p[1]) for p, q in zip(steps[1:], steps[2:], strict=False) if q[0] <= x <= p[0]]
        assert dominated == (x <= 4.0 and y >= min(heights, default=steps[-1][1]))


def test_three_objectives_have_an_axes_for_each_pair():
    optimizer = search({"yield": "maximize", "cost": "minimize", "purity": "maximize"})
    axes = plotting.plot_pareto(optimizer)
    assert [labels(ax) for ax in axes] == [
        ("yield\n(maximized)", "cost\n(minimized)"),
        ("yield\n(maximized)", "purity\n(maximized)"),
        ("cost\n(minimized)", "purity\n(maximized)"),
    ]
    assert plotting.plot_pareto(optimizer, axes).tolist() == axes.tolist()
    with pytest.raises(InvalidSetting, match="3 are needed"):
        plotting.plot_pareto(optimizer, axes[:2])


@pytest.mark.parametrize(("points", "note"), [([], "no trials"), ([(1.0, 2.0)], None)])
def test_few_trials_can_be_drawn(points, note):
    [ax] = plotting.plot_pareto(search(points=points))
    assert [text.get_text() for text in ax.texts] == ([note] if note else [])
    ax.figure.draw_without_rendering()


def test_computed_references_give_the_hypervolume():
    optimizer = search({"yield": "maximize", "cost": "minimize", "purity": bl.AtLeast(0.5)})
    [ax] = plotting.plot_pareto(optimizer)
    x, y = (line for line in ax.lines if line.get_label() == "computed reference")
    reference = {"yield": x.get_xdata()[0], "cost": y.get_ydata()[0]}
    assert optimizer.hypervolume(reference) == optimizer.hypervolume() != optimizer.hypervolume({"yield": 0.0})
    assert "reference" not in drawn(ax)


def predictions(ax):
    """Return the means of both objectives and their bars, (points, objective), (points, objective, 2)."""
    [found] = [each for each in ax.containers if each.get_label() == "predicted ± 2 std"]
    points, _, bars = found.lines
    ends = [np.array([bar[:, i] for bar in each.get_segments()]) for i, each in enumerate(bars)]
    return points.get_xydata(), np.stack(ends, axis=1)


@pytest.mark.parametrize("context", [None, {"oven": "b"}])
def test_the_predicted_front_is_drawn_with_its_uncertainty(context):
    goals = {"yield": "maximize", "cost": "minimize", "purity": bl.AtLeast(0.5)}
    space = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
    optimizer = bl.BayesOpt(space, outcomes=goals, context=context and {"oven": ["a", "b"]}, seed=0)
    rng = np.random.default_rng(0)
    for _ in range(15):
        trial = optimizer.suggest(context=context)
        x, y = trial.params.values()
        noise = rng.normal(0.0, 0.05, 2)
        trial.observe({"yield": x + noise[0], "cost": x**2 + y + noise[1], "purity": 1.0 - y})
    [ax] = plotting.plot_pareto(optimizer, context=context)
    means, bars = predictions(ax)
    points = optimizer.recommend(context, n=20)
    for i, name in enumerate(("yield", "cost")):
        mean, std = optimizer.predict(points, context, outcome=name)
        assert means[:, i] == pytest.approx(mean)
        assert bars[:, i] == pytest.approx(np.stack([mean - 2 * std, mean + 2 * std], axis=1))
    assert len(means) > 5
    better = (means[:, None, 0] >= means[:, 0]) & (means[:, None, 1] <= means[:, 1])
    assert (better == np.eye(len(means), dtype=bool)).all()
    if context:
        [ax] = plotting.plot_pareto(optimizer)
        assert not ax.containers
        with pytest.raises(bl.errors.InvalidContext):
            plotting.plot_pareto(optimizer, context={"oven": "c"})


def test_without_values_of_all_objectives_no_front_is_predicted():
    assert not plotting.plot_pareto(search())[0].containers  # RandomSearch does not have a model
    optimizer = bl.BayesOpt(SPACE, outcomes={"yield": "maximize", "cost": "minimize"}, seed=0)
    trial = optimizer.suggest()
    assert not plotting.plot_pareto(optimizer)[0].containers
    trial.observe({"cost": 1.0})
    assert not plotting.plot_pareto(optimizer)[0].containers
    trial.observe({"yield": 1.0})
    assert len(predictions(plotting.plot_pareto(optimizer)[0])[0]) == 1


def test_no_front_is_predicted_outside_the_bounds():
    optimizer = bl.BayesOpt(SPACE, outcomes=OUTCOMES, seed=0)
    for trial in optimizer.suggest(n=6):
        trial.observe({"yield": trial.params["x"], "cost": trial.params["x"], "purity": 0.1})
    with pytest.warns(bl.BelatedWarning, match="probability 0"):
        [ax] = plotting.plot_pareto(optimizer)
    assert not ax.containers and "does not count" in drawn(ax)


def test_studies_without_the_functions_of_their_constraints_are_drawn(tmp_path):
    store = f"sqlite:///{tmp_path / 'front.db'}"
    outcomes = {"yield": "maximize", "cost": "minimize"}
    optimizer = bl.BayesOpt(SPACE, outcomes=outcomes, constraints=[lambda params: params["x"] < 0.9], seed=0)
    study = bl.Study("front", store, optimizer)
    for trial in study.suggest(n=6):
        trial.observe({"yield": trial.params["x"], "cost": trial.params["x"] ** 2})
    assert plotting.plot_pareto(study)[0].containers
    [ax] = plotting.plot_pareto(bl.Study.load("front", store))
    assert not ax.containers and "front" in drawn(ax)


def test_one_objective_is_refused():
    with pytest.raises(InvalidSetting, match="plot_convergence"):
        plotting.plot_pareto(bl.RandomSearch(SPACE))
    with pytest.raises(InvalidSetting, match="optimizer"):
        plotting.plot_pareto("search")


def test_convergence_shows_the_hypervolume():
    optimizer = search()
    ax = plotting.plot_convergence(optimizer)
    _, heights = drawn(ax)["best so far"].get_data()
    assert ax.get_ylabel() == "Hypervolume" and "observed" not in drawn(ax)
    assert heights[-1] == pytest.approx(optimizer.hypervolume()) and (np.diff(heights) >= 0).all()
    reference = {"yield": 1.0 - 0.1 * 3.0}
    expected = [search(points=POINTS[: i + 1]).hypervolume(reference) for i in range(len(POINTS))]
    assert list(heights) == pytest.approx(expected)
    plotting.plot_convergence({"a": [optimizer, search()], "b": search()})
    for wrong in ({"a": optimizer, "b": bl.RandomSearch(SPACE)}, [optimizer, bl.RandomSearch(SPACE)]):
        with pytest.raises(InvalidSetting):
            plotting.plot_convergence(wrong)
    with pytest.raises(InvalidSetting, match="optimum"):
        plotting.plot_convergence(optimizer, optimum=1.0)


def test_other_plots_need_the_name_of_an_outcome():
    optimizer = search()
    for plot in (plotting.plot_slice, plotting.plot_parallel_coordinates):
        with pytest.raises(InvalidValue, match="outcome is missing"):
            plot(optimizer)
    [ax] = plotting.plot_slice(optimizer, outcome="cost")
    assert ax.figure.get_supylabel() == "cost (minimized)"
    lines = plotting.plot_parallel_coordinates(optimizer, outcome="cost").lines
    assert len([line for line in lines if line.get_label() == "front"]) == len(optimizer.pareto_)
    plotting.plot_trials(optimizer)
