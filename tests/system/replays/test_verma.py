"""The replays of Verma et al. 2022: figures recomputed from the published runs, the tasks, and small replays from end
to end."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")

import belated as bl
from belated import plotting, replays
from belated.replays import lr, sdf_synthetic, svm, verma
from belated.replays.report import mean_stderr
from belated.replays.runner import Options, Replay, execute, parallel_map, seed_of
from belated.simulate import History, arrival_steps, best_converted

REPLAYS = replays.found()
DATA = Path(os.environ["BELATED_DATA"]) if "BELATED_DATA" in os.environ else None
needs_data = pytest.mark.skipif(DATA is None, reason="BELATED_DATA does not name the data folder")

# The values in Figure 2 (a)-(d) of Verma et al. 2022, taken from the authors' runs at iterations 20, 30, 50, 80, 99.
PUBLISHED = {
    ("GP-UCB-SDF", "poisson10"): "31.52±1.59 27.06±1.52 24.76±1.11 24.33±0.75 24.29±0.71",
    ("GP-UCB", "poisson10"): "34.85±0.21 33.12±0.73 29.18±1.39 29.00±1.45 29.00±1.45",
    ("GP-BUCB", "poisson10"): "32.86±1.40 28.79±1.64 27.75±1.55 27.75±1.55 26.67±1.37",
    ("GP-TS-SDF", "poisson10"): "26.06±1.42 23.77±0.04 23.64±0.16 23.29±0.25 23.29±0.25",
    ("asy-TS", "poisson10"): "30.56±1.74 26.06±1.42 24.94±1.07 24.42±1.14 24.24±1.16",
    ("GP-BTS", "poisson10"): "29.74±1.69 25.32±1.04 23.81±0.00 23.77±0.04 23.20±0.27",
    ("GP-UCB-SDF", "fixed10"): "32.94±1.34 27.40±1.59 24.07±0.19 23.72±0.13 23.59±0.14",
    ("GP-UCB", "fixed10"): "35.06±0.00 33.38±1.14 30.65±1.42 29.05±1.57 28.53±1.63",
    ("GP-BUCB", "fixed10"): "34.98±0.08 32.03±1.37 27.97±1.64 27.84±1.67 27.84±1.67",
    ("GP-TS-SDF", "fixed10"): "29.61±1.73 27.32±1.61 23.64±0.16 23.25±0.27 23.25±0.27",
    ("asy-TS", "fixed10"): "31.52±1.73 26.80±1.73 25.63±1.52 24.50±1.15 23.16±0.29",
    ("GP-BTS", "fixed10"): "33.90±1.11 25.41±1.12 24.07±0.50 23.90±0.54 23.90±0.54",
}


def recorded(run: dict, accuracy: np.ndarray) -> History:
    """Return a published run as a history. The published file does not contain the accuracies of the initial points."""
    delays = np.array(run["delay"], dtype=float)
    unknown = np.full(len(delays), np.nan)
    return History([], accuracy, accuracy, delays, np.arange(len(delays)), arrival_steps(delays), unknown)


@needs_data
@pytest.mark.parametrize("setting", PUBLISHED)
def test_the_published_table_follows_from_the_published_runs(setting):
    mean, stderr = mean_stderr(svm.published_errors(svm.published_runs(DATA), *setting))
    printed = " ".join(f"{mean[i]:.2f}±{stderr[i]:.2f}" for i in verma.REPORTED)
    assert printed == PUBLISHED[setting]


@needs_data
def test_best_converted_agrees_with_the_authors():
    for run in svm.published_runs(DATA).values():
        initial = [svm.accuracy(DATA, *svm.to_params(row).values()) for row in run["init"]]
        history = recorded(run, np.array([*initial, *run["accuracy"]]))
        longest = verma.DELAYS[run["delays"]].window if verma.is_sdf(run["algorithm"]) else np.inf
        ours = best_converted(history, longest=longest)[verma.N_INITIAL : verma.N_INITIAL + 101]
        np.testing.assert_allclose(ours, np.array(run["best_converted"], dtype=float), atol=1e-6)


@needs_data
def test_our_training_gives_the_recorded_accuracies():
    runs = svm.published_runs(DATA)
    point_and_accuracy = [
        (row, accuracy)
        for key in [("GP-TS-SDF", "poisson10", 0), ("GP-BUCB", "fixed10", 3)]
        for row, accuracy in zip(runs[key]["points"], runs[key]["accuracy"], strict=True)
    ]
    same = [
        abs(svm.accuracy(DATA, *svm.to_params(row).values()) - accuracy) < 1e-6 for row, accuracy in point_and_accuracy
    ]
    assert np.mean(same) >= 0.98  # the file rounds its points


@needs_data
def test_runs_use_their_published_initial_points():
    runs = svm.published_runs(DATA)
    options = Options(data=DATA, iterations=verma.ITERATIONS)
    assert len(verma.SETTINGS) == 12
    for setting, run in itertools.product(verma.SETTINGS, range(11)):
        initial, delay = svm.start(setting, run, options)
        assert len(initial) == verma.N_INITIAL
        assert len(delay) == verma.N_INITIAL + verma.ITERATIONS
        if run < 10:
            published = runs[(*setting, run)]
            assert list(delay) == published["delay"]
            assert initial[0] == svm.to_params(published["init"][0])


def test_algorithms_share_initial_points_and_delays_and_no_optimizer_seed(monkeypatch):
    seeds = set()
    monkeypatch.setattr(bl, "algorithm", lambda *args, seed, **settings: seeds.add(seed) or bl.RandomSearch(lr.space()))
    options, starts, delays = Options(seed=5, iterations=2), set(), set()
    for setting, run in itertools.product(verma.SETTINGS, range(3)):
        started = verma.start(setting, run, options, lr.initial_points)
        starts.add((run, str(started[0])))
        delays.add((setting[1], run, *started[1]))
        verma.run_task(setting, run, options, started, lr.space(), lambda params: 0.5)
    assert len(starts) == 3
    assert len(delays) == 6
    assert len(seeds) == 3 * len(verma.SETTINGS)


def test_error_of_the_svm_replay_without_data_names_the_files(tmp_path, monkeypatch):
    with pytest.raises(bl.BelatedError, match=r"pima_diabetes\.csv.*--data"):
        svm.pima_diabetes(tmp_path)
    (tmp_path / svm.DATA_FILE).write_text("a,b\n1,2\n")
    with pytest.raises(bl.BelatedError, match="not the table"):
        svm.pima_diabetes(tmp_path)

    def no_network(**kwargs):
        raise OSError("no route to host")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", no_network)
    with pytest.raises(bl.BelatedError, match=r"no route to host.*--data"):
        svm.pima_diabetes(None)


def test_errors_are_compared_with_the_published_runs_of_the_same_number():
    rng = np.random.default_rng(0)
    published = {("GP-UCB", "fixed10", run): {"best_converted": [0.7 + 0.001 * run] * 101} for run in range(10)}
    theirs = 100 * (0.3 - 0.001 * np.arange(10))
    setting = {
        "algorithm": "GP-UCB",
        "delays": "fixed10",
        "iteration": [20, 50, 99],
        "error_per_run": np.stack([theirs, theirs - 0.01, theirs + rng.permutation([-0.1, 0.1] * 5)], axis=1),
    }
    svm.compare(setting, published)
    assert setting["published_mean"] == pytest.approx([theirs.mean()] * 3)
    assert [(each["iteration"], each["verdict"]) for each in svm.against_published([setting])] == [
        (50, "better"),
        (99, "undecided"),
    ]


def test_each_algorithm_of_the_paper_is_compared_with_its_rivals():
    rng = np.random.default_rng(0)
    errors = {name: 20 + rng.random((10, 2)) for name in verma.ALGORITHMS}
    errors["GP-BUCB"] = errors["GP-UCB-SDF"] + 0.1
    errors["asy-TS"] = errors["GP-TS-SDF"] - 0.1
    settings = [
        {"algorithm": name, "delays": delays, "iteration": [20, 99], "error_per_run": errors[name]}
        for delays, name in itertools.product(verma.DELAYS, verma.ALGORITHMS)
    ]
    found = verma.of_tasks(settings)
    assert len(found) == 8 and {each["iteration"] for each in found} == {99}
    decided = {(each["algorithm"], each["rival"]): each["verdict"] for each in found if each["verdict"] != "undecided"}
    assert decided == {("GP-UCB-SDF", "GP-BUCB"): "better", ("GP-TS-SDF", "asy-TS"): "worse"}
    assert verma.in_words(found).count("GP-UCB-SDF against GP-BUCB: better") == 2


def test_logistic_regression_is_really_trained():
    good = lr.accuracy({"batch_size": 32, "learning_rate": 0.1, "decay": 1e-3}, seed=0)
    untrained = np.mean(
        [lr.accuracy({"batch_size": 32, "learning_rate": 1e-6, "decay": 1e-3}, seed=seed) for seed in range(5)]
    )
    assert good > 0.95 > untrained


def test_one_step_of_training_follows_the_gradient_of_the_logistic_loss(monkeypatch):
    monkeypatch.setattr(lr, "EPOCHS", 1)
    x, y, _, _ = lr.breast_cancer()
    start = lr.train(x, y, len(y), 0.0, 0.0, np.random.default_rng(4))
    end = lr.train(x, y, len(y), 0.5, 0.0, np.random.default_rng(4))

    def loss(w, b):
        z = x @ w + b
        return np.mean(np.logaddexp(0, z) - y * z)

    h = 1e-6
    for j in range(3):
        e = np.zeros(x.shape[1])
        e[j] = h
        slope = (loss(start[0] + e, start[1]) - loss(start[0] - e, start[1])) / (2 * h)
        assert end[0][j] - start[0][j] == pytest.approx(-0.5 * slope, rel=1e-5)


def test_synthetic_functions_and_delays_are_shared_and_comparable():
    f = sdf_synthetic.sample(1)
    assert (f.min(), f.max()) == (0.0, 1.0)
    # SE kernel: E (f(x + h) − f(x))² = 2·(1 − exp(−h²/2ℓ²))·var, which is 0.787·var at h = ℓ.
    ratios = []
    for seed in range(30):
        f = sdf_synthetic.sample(seed)
        ratios.append([np.mean((f[20:] - f[:-20]) ** 2), f.var()])
    ratio = np.divide(*np.mean(ratios, axis=0))
    assert ratio == pytest.approx(2 * (1 - np.exp(-0.5)), rel=0.15)
    u = np.random.default_rng(0).random(200)
    short, long = (sdf_synthetic.delays(sdf_synthetic.sdf(mu, 2 * mu), u) for mu in (5, 30))
    assert (short <= long).all()


def test_wilcoxon_test_detects_the_larger_regret():
    rng = np.random.default_rng(0)
    a = rng.random(40)
    assert verma.worse(a + 0.1 + 0.01 * rng.random(40), a)["holds"]
    assert not verma.worse(a, a + 0.1)["holds"]
    assert verma.worse(a, a)["p"] == 1.0


def test_seeds_differ_by_purpose_and_run_and_do_not_change():
    seeds = {seed_of(s, what, run) for s in range(3) for what in ("f", "delays") for run in range(3)}
    assert len(seeds) == 18
    assert seed_of(0, "f", 1) == seed_of(0, "f", 1)


def test_parallel_map_keeps_the_order_and_reports_failures():
    tasks = [3, -1, 2, -7, 5]
    assert parallel_map(abs, tasks, 0, "") == parallel_map(abs, tasks, 2, "") == [3, 1, 2, 7, 5]
    with pytest.raises(ValueError, match="invalid literal"):
        parallel_map(int, ["1", "x", "3"], 2, "")


@pytest.mark.parametrize("algorithm", verma.ALGORITHMS)
@pytest.mark.parametrize("where", ["box", "candidates"])
def test_the_faithful_settings_are_settings(algorithm, where):
    on_a_box = where == "box"
    settings = verma.settings_of(algorithm, True, on_a_box=on_a_box)
    settings |= {"search__multistart": (200, 3)} if on_a_box else {}
    domain = {"space": svm.space()} if on_a_box else {"candidates": np.linspace(0, 1, 50).reshape(-1, 1)}
    optimizer = bl.algorithm(algorithm, **domain, window=3, seed=0, **settings)
    trials = [optimizer.suggest() for _ in range(6)]
    for trial in trials[:4]:
        optimizer.observe(trial, 0.65 + 0.01 * trial.number)
    assert [optimizer.suggest().number for _ in range(3)] == [6, 7, 8]


@pytest.mark.parametrize("faithful", [False, True])
def test_a_replay_is_the_same_with_any_number_of_workers(faithful):
    options = [Options(runs=1, iterations=8, workers=workers, faithful=faithful) for workers in (0, 2)]
    reports = [REPLAYS["lr"].run(each) for each in options]
    curves = [np.array([setting["curve_mean"] for setting in report["settings"]]) for report in reports]
    assert curves[0].shape == (12, 9)
    np.testing.assert_array_equal(*curves)


def test_the_synthetic_replay_end_to_end():
    report = REPLAYS["sdf-synthetic"].run(Options(runs=2, iterations=12, workers=2))
    text = sdf_synthetic.table(report)
    assert all(f"Figure {panel}" in text for panel in sdf_synthetic.PANELS)
    assert all(len(order) == 6 for at in report["ranking"].values() for order in at.values())
    assert len(report["settings"]) == 20
    for setting in report["settings"]:
        assert setting["curve_mean"].shape == (13,)
        assert (np.diff(setting["curve_mean"]) <= 0).all()


def test_delays_that_depend_on_the_point_and_the_nearest_points():
    report = REPLAYS["sdf-by-point"].run(Options(runs=2, iterations=12, workers=0))
    assert len(report["settings"]) == 9 and report["settings"][0]["curve_mean"].shape == (13,)
    # Six pairs and ten pairs of algorithms, at one iteration.
    assert len(report["verdicts"]) == 16
    text = sdf_synthetic.table_by_point(report)
    assert "Poisson(20x): simple regret" in text and "GP-UCB-SDF, m = 40 against 3 nearest" in text
    curves = {(s["law"], s["algorithm"], s["window"]): s["curve_mean"] for s in report["settings"]}
    assert not np.array_equal(curves["poisson", "3 nearest", 20], curves["poisson", "GP-BUCB", 20])
    assert [sdf_synthetic.delay_at(np.array([x])).mean for x in (0.0, 0.25, 1.0)] == [0.0, 5.0, 20.0]
    pytest.importorskip("matplotlib")
    assert len(sdf_synthetic.figure_by_point(report).axes) == 2


def test_with_the_kernel_given_nothing_is_fitted_and_censoring_wins():
    report = REPLAYS["sdf-synthetic"].run(Options(runs=4, iterations=40, workers=0, given=True))
    assert report["given"]
    chosen = [each for each in report["rivals"] if (each["delays"], each["iteration"]) == ("constant 10, m = 10", 40)]
    assert [(each["algorithm"], each["rival"]) for each in chosen] == [
        ("GP-UCB-SDF", "GP-UCB"),
        ("GP-UCB-SDF", "GP-BUCB"),
        ("GP-TS-SDF", "asy-TS"),
        ("GP-TS-SDF", "GP-BTS"),
    ]
    for rival in ("GP-UCB", "GP-BUCB"):
        ours, theirs = (
            sdf_synthetic.find(report["settings"], sdf_synthetic.Setting(name, "constant", 10, 10))
            for name in ("GP-UCB-SDF", rival)
        )
        assert ours["mean"][-1] < theirs["mean"][-1]
    # The panel of mean delays is drawn and tested with k(x, x) = 1.
    longer = report["tests"]["wilcoxon"]["mu=30 worse than mu=5, k(x, x) = 1"]
    regrets = {
        s["mu"]: np.mean(s["regret_per_run"]["40"])
        for s in report["settings"]
        if (s["algorithm"], s["signal_std"], s["window"]) == ("GP-UCB-SDF", 1.0, 2 * s["mu"])
    }
    assert longer["mean"] == regrets[30] > regrets[5] == longer["mean_of_the_other"]
    pytest.importorskip("matplotlib")
    panel = sdf_synthetic.figure(report).axes[0]
    assert panel.get_title().startswith("1(a), k(x, x) = 1")
    ends = {line.get_label(): line.get_ydata()[-1] for line in panel.lines if line.get_label()[0] != "_"}
    assert ends == {f"μ = {mu}, m = {2 * mu}": pytest.approx(regret) for mu, regret in regrets.items()}
    optimizer = bl.algorithm("GP-UCB", candidates=sdf_synthetic.grid().reshape(-1, 1), seed=0, **sdf_synthetic.GIVEN)
    for trial in optimizer.suggest(n=30):
        trial.observe(0.9)
    optimizer.suggest()
    model = optimizer.surrogate_
    assert model.lengthscales == {"x0": pytest.approx(0.02)}
    assert (model.signal_std**2, model.noise_std, model.mean) == pytest.approx((0.05, 0.01, 0.0))


def test_given_excludes_faithful_and_is_an_option_of_one_replay():
    with pytest.raises(bl.errors.InvalidSetting, match="--given and --faithful"):
        execute(REPLAYS["sdf-synthetic"], Options(given=True, faithful=True))
    with pytest.raises(bl.errors.InvalidSetting, match="--given is not an option of the replay lr"):
        execute(REPLAYS["lr"], Options(given=True))


@needs_data
def test_the_svm_replay_end_to_end():
    report = REPLAYS["svm"].run(Options(runs=1, iterations=6, workers=2, data=DATA))
    text = svm.table(report)
    assert text.count("  published") == 12
    assert {setting["delays"] for setting in report["settings"]} == {"poisson10", "fixed10"}


def test_replays_are_listed_by_name():
    assert list(REPLAYS) == sorted(REPLAYS) and len(REPLAYS) == 19
    assert all(isinstance(replay, Replay) and replay.name == name for name, replay in REPLAYS.items())
    assert all(replay.description[0].isupper() and len(replay.description) < 120 for replay in REPLAYS.values())


def test_a_replay_is_found_by_its_file(tmp_path, monkeypatch):
    (tmp_path / "new_replay.py").write_text(
        '"""A paper, Figure 9: one line.\n\nMore."""\n\nfrom belated.replays.runner import Replay\n\n'
        'REPLAYS = [Replay("new", __doc__, dict, str, str, 3, 50, quick_runs=1)]\n'
    )
    monkeypatch.setattr(replays, "__path__", [*replays.__path__, str(tmp_path)])
    found = replays.found()
    assert list(found) == sorted([*REPLAYS, "new"])
    assert found["new"].description == "A paper, Figure 9: one line"


def test_defaults_are_filled_in():
    asked = []
    replay = Replay("new", None, lambda options: asked.append(options) or {"made": 1}, str, str, 3, 50, quick_runs=1)
    report = replay.run(Options(seed=4))
    assert (report["runs"], report["seed"], report["faithful"], report["made"]) == (3, 4, False, 1)
    replay.run(Options(quick=True))
    replay.run(Options(quick=True, runs=7, iterations=8))
    assert [(each.runs, each.iterations) for each in asked] == [(3, 50), (1, 50), (7, 8)]


CONVERGENCE = [("maximize", [1, 3, 3]), ("minimize", [1, 1, 0])]


def plotted(search):
    ax = plotting.plot_convergence(search, pytest.importorskip("matplotlib.figure").Figure().subplots())
    points, line = ax.lines[:2]  # the other lines are marks of trials without a value
    assert list(points.get_xdata()) == list(line.get_xdata())
    return [list(data) for data in (line.get_xdata(), points.get_ydata(), line.get_ydata())]


def with_late_values(search):
    """Return an optimizer or a study whose first three trials were observed in the order 2, 0, 1."""
    a, b, c, _ = (search.suggest() for _ in range(4))
    for trial, value in [(c, 1.0), (a, 3.0), (b, 0.0)]:
        search.observe(trial, value)
        search.suggest()
    return search


@pytest.mark.parametrize("kind", ["optimizer", "study"])
@pytest.mark.parametrize(("direction", "best"), CONVERGENCE)
def test_convergence_is_drawn_in_the_order_of_arrival(direction, best, kind, tmp_path):
    search = bl.RandomSearch({"x": bl.Real(0.0, 1.0)}, direction=direction, seed=0)
    if kind == "study":
        search = bl.Study("s", f"sqlite:///{tmp_path}/s.db", search)
    assert plotted(with_late_values(search)) == [[4, 5, 6], [1, 3, 0], best]


@pytest.mark.parametrize("kind", ["optimizer", "study"])
@pytest.mark.parametrize(("direction", "best"), CONVERGENCE)
def test_convergence_of_a_run_shows_its_trials_only(direction, best, kind, tmp_path):
    search = bl.RandomSearch({"x": bl.Real(0.0, 1.0)}, direction=direction, seed=0)
    if kind == "study":
        search = bl.Study("s", f"sqlite:///{tmp_path}/s.db", search)
    search.add({"x": 0.5}, 2.0)
    values = iter([1.0, 3.0, 0.0])
    run = bl.maximize if direction == "maximize" else bl.minimize
    assert plotted(run(lambda params: next(values), optimizer=search, n_trials=3)) == [[1, 2, 3], [1, 3, 0], best]


def test_the_window_may_be_chosen_from_the_delays():
    """Every result counts, because the window changes. The first window is chosen after ten results."""
    options = Options(iterations=40, given=True)
    chosen, open_ = (sdf_synthetic.run_task(sdf_synthetic.sdf(5, window), 0, options) for window in ("auto", 1000))
    assert np.array_equal(chosen["regret"], chosen["regret_late_too"])
    assert np.array_equal(chosen["regret"][:10], open_["regret"][:10])
