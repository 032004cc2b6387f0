"""Values that were measured beyond a bound, between steps, or at a row that is not a candidate."""

import numpy as np
import pytest

import belated as bl
from tests.unit.optimizers.definitions import REQUIRED
from tests.unit.optimizers.dense_posterior import DensePosterior

BOX = {"T": (20.0, 120.0), "c": (0.0, 1.0)}
# θ is given, and the posterior is computed without a warp, a trend or a change of the targets.
GIVEN = {
    "surrogate": bl.GP(kernel="matern52", lengthscale=0.3, signal_std=1.5, noise_std=0.1, mean="zero", targets="raw"),
    "initial": 0,
}


def columns(points):
    return np.array([[(p["T"] - 20) / 100, p["c"]] for p in points])


def test_the_model_has_the_value_where_it_was_measured():
    opt = bl.BayesOpt(BOX, seed=0, **GIVEN)
    added = [{"T": 50.0, "c": 0.2}, {"T": 121.0, "c": 0.5}, {"T": -30.0, "c": 1.25}]
    opt.add(added, [0.5, 2.0, -1.0])
    trial = opt.suggest()
    run = {"T": 120.2, "c": 0.5}
    trial.observe(1.0, params=run)
    dense = DensePosterior(columns([*added, run]), [0.5, 2.0, -1.0, 1.0], 0.3, 1.5**2, 0.01)
    grid = [{"T": t, "c": c} for t in (-50.0, 20.0, 119.0, 121.0, 140.0) for c in (0.0, 0.5, 1.5)]
    mean, std = opt.predict(grid)
    assert np.allclose(mean, dense.mean(columns(grid)), rtol=0, atol=1e-8)
    assert np.allclose(std**2, dense.variances(columns(grid)), rtol=0, atol=1e-8)
    assert [each.outside for each in opt.trials] == [False, True, True, True]
    assert trial.params_run == run and trial.params != run


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_the_best_trial_is_inside_unless_asked(direction):
    sign = 1 if direction == "maximize" else -1
    opt = bl.BayesOpt(BOX, direction=direction, seed=0)
    trial = opt.suggest()
    trial.observe(3.0 * sign, params={"T": 120.2, "c": 0.5})
    assert opt.best_trial_ is None and opt.best_params_ is None and opt.best_trial(outside=True) == trial
    inside = opt.add({"T": 119.0, "c": 0.5}, 1.0 * sign)
    assert opt.best_trial_ == opt.best_trial() == inside and opt.best_trial(outside=True) == trial
    assert opt.recommend().keys() == BOX.keys() and 20 <= opt.recommend()["T"] <= 120
    # An amendment moves the trials into and out of the bounds.
    trial.observe(3.0 * sign, params={"T": 120.0, "c": 0.5}, amend=True)
    assert opt.best_trial_ == trial and not trial.outside
    trial.observe(3.0 * sign, params={"T": 120.1, "c": 0.5}, amend=True)
    assert opt.best_trial_ == inside and trial.outside


def fitted(space=BOX, **arguments):
    """Return an optimizer with values that increase towards the upper bound of T."""
    opt = bl.BayesOpt(space, seed=1, **arguments)
    rng = np.random.default_rng(2)
    points = [{"T": float(t), "c": float(rng.random())} for t in range(20, 121, 10)]
    opt.add(points, [(p["T"] / 120) ** 4 + 0.01 * p["c"] for p in points])
    return opt


def test_means_continue_beyond_a_bound():
    opt = fitted()
    opt.add([{"T": 125.0, "c": 0.5}, {"T": 150.0, "c": 0.5}], [1.25, 3.0])
    near, far = opt.predict([{"T": 121.0, "c": 0.5}, {"T": 140.0, "c": 0.5}])[0]
    assert abs(near - far) > 0.1
    assert all(20 <= trial.params["T"] <= 120 for trial in opt.suggest(n=5))


STEPS = {"T": bl.Real(20.0, 120.0, step=10.0), "n": bl.Integer(1, 10, step=3)}


@pytest.mark.parametrize("kind", [bl.BayesOpt, bl.RandomSearch, bl.TreeSearch, bl.BPEDelay])
def test_values_between_steps_are_ordinary_observations(kind):
    opt = kind(STEPS, seed=0, **REQUIRED.get(kind.__name__, {}))
    first, second = opt.suggest(n=2)
    run = {"T": 89.7, "n": 6}
    first.observe(2.0, params=run)
    second.observe(1.0)
    assert opt.best_trial_ == first and opt.best_params_ == run and not first.outside
    if kind in (bl.BayesOpt, bl.RandomSearch):
        assert opt.recommend() == run
    for _ in range(6):
        trial = opt.suggest()
        assert (trial.params["T"] - 20) % 10 == 0 and trial.params["n"] in (1, 4, 7, 10)
        trial.observe(0.0, params={"T": trial.params["T"] + 0.3, "n": trial.params["n"]})


def test_a_parent_between_steps_counts_as_the_nearest_step():
    space = {"a": bl.Real(0.0, 1.0, step=0.5), "b": bl.Real(0.0, 1.0, when={"a": [0.5, 1.0]})}
    opt = bl.BayesOpt(space, seed=0)
    opt.add([{"a": 0.4, "b": 0.5}, {"a": 0.2}, {"a": 7.0, "b": 0.5}, {"a": -7.0}], [1.0, 2.0, 3.0, 4.0])
    assert [trial.outside for trial in opt.trials] == [False, False, True, True]
    for params in ({"a": 0.2, "b": 0.5}, {"a": 0.4}, {"a": 7.0}):
        with pytest.raises(bl.errors.InvalidPoint):
            opt.add(params, 1.0)
    assert opt.n_trials == 4


@pytest.mark.parametrize("kind", [bl.BayesOpt, bl.RandomSearch])
def test_the_suggested_point_counts_as_tried(kind):
    opt = kind({"n": (0, 9)}, seed=0, **({"surrogate": bl.GP(noise_std=0.0)} if kind is bl.BayesOpt else {}))
    tried = []
    for k in range(10):
        trial = opt.suggest()
        tried.append(trial.params["n"])
        trial.observe(np.sin(k), params={"n": trial.params["n"] + 20})
    assert sorted(tried) == list(range(10))


@pytest.mark.parametrize("kind", [bl.BayesOpt, bl.RandomSearch, bl.BPEDelay])
def test_a_measured_point_need_not_be_a_candidate(kind):
    rows = np.array([[10.0, 1.0], [20.0, 1.0], [30.0, 2.0], [40.0, 2.0]])
    opt = kind(candidates=rows, seed=0, **REQUIRED.get(kind.__name__, {}))
    trial = opt.suggest()
    trial.observe(5.0, params=[44.5, 2.0])
    assert trial.outside and list(trial.params_run) == [44.5, 2.0] and trial.index_run is None
    assert list(trial.params) == list(rows[trial.index]) and opt.best_trial_ is None
    added = opt.add([[15.0, 1.5], [20.0, 1.0]], [7.0, 1.0])
    assert [each.index for each in added] == [None, 1] and [each.outside for each in added] == [True, False]
    assert list(added[0].x) == [15.0, 1.5] and "15" in repr(added[0]) and "44.5" in repr(trial)
    assert opt.best_trial_ == added[1] and opt.best_trial(outside=True) == added[0]
    for params in ([15.0, np.nan], [15.0], "x", 4):
        with pytest.raises(bl.errors.InvalidPoint):
            opt.add(params, 1.0)
    with pytest.raises(bl.errors.InvalidPoint):
        opt.enqueue([15.0, 1.5])
    if kind is not bl.BPEDelay:
        assert list(opt.recommend()) in rows.tolist()
    assert all(each.index in range(4) for each in opt.suggest(n=3))
    if kind is bl.BayesOpt:
        assert opt.predict([[44.5, 2.0]])[0] > opt.predict([[10.0, 1.0]])[0]


@pytest.mark.parametrize("source", ["space", "candidates"])
def test_tables_show_and_restore_points_outside(source, tmp_path):
    pandas = pytest.importorskip("pandas")
    arguments = {"space": BOX} if source == "space" else {"candidates": [[20.0, 0.0], [120.0, 1.0]]}
    opt = bl.RandomSearch(**arguments, seed=0)
    runs = [{"T": 120.5, "c": 0.25}, {"T": 30.0, "c": 0.5}] if source == "space" else [[120.5, 0.25], 1]
    opt.add(runs, [2.0, 1.0])
    first, second = opt.suggest(n=2)
    first.observe(3.0, params=runs[0])
    second.observe(1.0)
    table = opt.trials_dataframe()
    assert list(table["outside"]) == [True, False, True, False]
    table.to_csv(tmp_path / "trials.csv", index=False)
    again = bl.RandomSearch(**arguments, seed=0)
    again.add(pandas.read_csv(tmp_path / "trials.csv"))
    pairs = zip(opt.trials, again.trials, strict=True)
    assert all(np.all(a.params_run == b.params_run) and a.outside == b.outside for a, b in pairs)


def test_points_outside_are_not_enqueued():
    opt = bl.BayesOpt(STEPS, seed=0)
    for params in ({"T": 130.0, "n": 1}, {"T": 25.0, "n": 1}, {"T": 20.0, "n": 2}):
        with pytest.raises(bl.errors.InvalidPoint):
            opt.enqueue(params)
    assert opt.suggest().number == 0


def test_trees_leave_out_values_beyond_a_bound():
    opt, twin = (bl.TreeSearch(BOX, sample="centre", seed=0) for _ in range(2))
    for k in range(20):
        trial, same = opt.suggest(), twin.suggest()
        assert trial.params == same.params
        if k % 4 == 1:
            trial.observe(100.0, params={"T": 500.0, "c": 0.5})
            same.abandon()
        else:
            trial.observe(-abs(trial.params["T"] - 70))
            same.observe(-abs(trial.params["T"] - 70))
    assert opt.best_trial_.params == twin.best_trial_.params and opt.recommend() == twin.recommend()
    # A value that is moved back into the bounds belongs to a cell.
    for trial in opt.trials:
        if trial.outside:
            inside = trial.params | {"c": trial.params["c"] / 2}
            trial.observe(0.5, params=inside, amend=True)
            twin.trial(trial.number).observe(0.5, params=inside)
    assert [opt.suggest().params for _ in range(5)] == [twin.suggest().params for _ in range(5)]


def test_the_first_cell_of_a_tree_is_the_whole_space_after_values_beyond_a_bound():
    opt = bl.TreeSearch(BOX, sample="centre", seed=0)
    opt.add([{"T": 500.0, "c": 0.5}, {"T": 60.0, "c": -0.5}], [100.0, 50.0])
    opt.add({"T": 130.0, "c": 0.5}).fail()
    assert opt.suggest().params == {"T": 70.0, "c": 0.5}
    with pytest.raises(bl.errors.NotFitted):
        opt.recommend()


def test_a_history_with_values_outside_is_restored(tmp_path):
    study = bl.Study("oven", f"sqlite:///{tmp_path / 'studies.db'}", fitted())
    trial = study.suggest()
    trial.observe(9.0, params={"T": 120.2, "c": 0.5})
    again = bl.Study.load("oven", study.store)
    assert again.trial(trial.number).outside and again.best_trial_ == again.trial(study.best_trial_.number)
    copy = study.copy("copy")
    assert copy.n_trials == study.n_trials and copy.best_trial(outside=True).value == 9.0


@pytest.mark.parametrize(
    "levels", [[25.0, 40.0, 60.0, 100.0], [100.0, 60.0, 40.0, 25.0], [25, 40, 60, 100], [0, -30, -40]]
)
def test_an_ordinal_may_be_measured_between_two_levels(tmp_path, levels):
    sign = -1 if levels[0] == 0 else 1
    bath = sign * 39.7
    opt = bl.BayesOpt({"T": bl.Ordinal(levels), "x": (0.0, 1.0)}, seed=0, initial=4)
    study = bl.Study("s", f"sqlite:///{tmp_path}/s.db", opt)
    trial = study.suggest()
    trial.observe(1.0, params={"T": bath, "x": 0.5})
    added = study.add([{"T": sign * 33.3333333333, "x": 0.25}, {"T": levels[1], "x": 0.5}], [0.5, 0.0])
    for each in (study, bl.Study.load("s", f"sqlite:///{tmp_path}/s.db")):
        assert each.trial(0).params_run == {"T": bath, "x": 0.5} and each.trial(0).outside is False
        assert [each.trial(t.number).params["T"] for t in added] == [sign * 33.3333333333, levels[1]]
        assert each.best_params_["T"] == bath
    assert all(t.params["T"] in levels for t in study.suggest(n=8))
    mean = [study.predict({"T": sign * t, "x": 0.5})[0] for t in (35.0, 39.7)]
    assert mean[0] != mean[1]
    for wrong in (sign * 101.0, "warm", sign * -3.0):
        with pytest.raises(bl.errors.InvalidPoint, match="one of"):
            study.add({"T": wrong, "x": 0.5}, 1.0)
    with pytest.raises(bl.errors.InvalidPoint, match="one of"):
        study.enqueue({"T": bath, "x": 0.5})
    study.to_csv(tmp_path / "t.csv")
    other = bl.BayesOpt({"T": bl.Ordinal(levels), "x": (0.0, 1.0)}, seed=0)
    table = pytest.importorskip("pandas").read_csv(tmp_path / "t.csv")
    assert other.add(table[table.state == "observed"], value="value")[0].params["T"] == bath


def test_ordinals_of_texts_have_no_values_between():
    opt = bl.BayesOpt({"T": bl.Ordinal(["low", "high"]), "x": (0.0, 1.0)}, seed=0)
    with pytest.raises(bl.errors.InvalidPoint, match="one of"):
        opt.add({"T": 0.5, "x": 0.5}, 1.0)
