"""The replays that solve a sequence of tasks, tested on small generated data, invalid data and the published tables."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("scipy")

import belated as bl
from belated import replays
from belated.replays import svm, verma, verma_contexts
from belated.replays.runner import MissingData, Options

DATA = Path(os.environ["BELATED_DATA"]) if "BELATED_DATA" in os.environ else None
needs_data = pytest.mark.skipif(DATA is None, reason="BELATED_DATA does not name the data folder")

REPLAYS = replays.found()
HEADER = ["task", "accuracy", *verma_contexts.HYPERPARAMETERS, *verma_contexts.META_FEATURES]


def a_table(n_tasks=3, n_configurations=12):
    """Return the rows of a file of tasks. The best configuration of a task depends on its first meta-feature."""
    rng = np.random.default_rng(0)
    x = rng.random((n_configurations, 6))
    rows = [HEADER]
    for k in range(n_tasks):
        features = [k / n_tasks, 0.5, 0.0, 1.0, 0.25, 0.75]
        accuracy = 0.9 - 0.5 * np.abs(x[:, 3] - features[0])
        rows += [[f"t{k}", a, *row, *features] for a, row in zip(accuracy, x, strict=True)]
    return rows


def write(folder, rows):
    verma_contexts.benchmark.cache_clear()
    with gzip.open(folder / verma_contexts.DATA_FILE, "wt", encoding="utf-8") as file:
        file.writelines(",".join(map(str, row)) + "\n" for row in rows)
    return folder


def test_the_table_is_read_by_task(tmp_path):
    rows = a_table()
    tasks = verma_contexts.benchmark(write(tmp_path, rows))
    assert tasks.names == ["t0", "t1", "t2"]
    assert tasks.features[:, 0] == pytest.approx([0, 1 / 3, 2 / 3])
    assert tasks.configurations.shape == (12, 6)
    for k, i in [(0, 0), (1, 7), (2, 11)]:
        row = rows[1 + 12 * k + i]
        assert (tasks.accuracy[k, i], *tasks.configurations[i]) == (row[1], *row[2:8])


def changed(rows, row, column, value):
    return [[*each[:column], value, *each[column + 1 :]] if i == row else each for i, each in enumerate(rows)]


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        (changed(a_table(), 0, 3, "polynomial"), "no column 'poly'"),
        (changed(a_table(), 5, 1, "good"), "could not convert"),
        (changed(a_table(), 5, 1, "nan"), r"t0 has accuracies or meta-features outside \[0, 1\]"),
        (changed(a_table(), 5, 1, 75.0), r"t0 has accuracies or meta-features outside \[0, 1\]"),
        (changed(a_table(), 20, 4, 0.5), "t1 has other configurations"),
        (changed(a_table(), 20, 8, 0.5), "t1 has meta-features that change"),
        ([row[:-1] for row in a_table()], "no column 'meta6'"),
        (a_table(n_configurations=4), "too few"),
        ([HEADER], "no rows"),
        ([*a_table(), ["t9"]], "is not the table"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(rows, what, tmp_path):
    with pytest.raises(MissingData, match=what) as error:
        REPLAYS["multitask"].run(Options(data=write(tmp_path, rows)))
    assert "--data" in str(error.value)


def test_error_for_missing_data_names_the_file(tmp_path):
    for folder, what in [(None, "no folder was given"), (tmp_path, "there is no .*tst_svm.csv.gz")]:
        with pytest.raises(MissingData, match=rf"{what}.*multitask --data"):
            REPLAYS["multitask"].run(Options(data=folder))
    with pytest.raises(MissingData, match=r"pima_diabetes\.csv"):
        REPLAYS["nonstationary"].run(Options(data=tmp_path))
    (tmp_path / verma_contexts.DATA_FILE).write_bytes(b"task,accuracy\n")
    with pytest.raises(MissingData, match="cannot be read"):
        REPLAYS["multitask"].run(Options(data=tmp_path))


@pytest.mark.parametrize("faithful", [False, True])
def test_the_regret_of_tasks_in_sequence_equals_a_direct_computation(faithful, tmp_path, monkeypatch):
    monkeypatch.setattr(verma_contexts, "ITERATIONS_PER_TASK", 4)
    logs = []
    made = bl.algorithm
    monkeypatch.setattr(bl, "algorithm", lambda *args, **kwargs: logs.append(made(*args, **kwargs)) or logs[-1])
    folder = write(tmp_path, a_table())
    tasks = verma_contexts.benchmark(folder)
    report = REPLAYS["multitask"].run(Options(runs=1, workers=0, faithful=faithful, data=folder))
    assert [setting["algorithm"] for setting in report["settings"]] == list(verma.ALGORITHMS)
    for optimizer, setting in zip(logs, report["settings"], strict=True):
        trials = optimizer.trials
        assert len(trials) == verma.N_INITIAL + 12
        task = [0] * (verma.N_INITIAL + 4) + [1] * 4 + [2] * 4
        assert [trial.context["meta1"] for trial in trials] == [k / 3 for k in task]
        regret = [
            tasks.accuracy[k].max() - tasks.accuracy[k, trial.index] for k, trial in zip(task, trials, strict=True)
        ]
        expected = np.cumsum([0.0, *regret[verma.N_INITIAL :]])
        np.testing.assert_allclose(setting["curve_mean"], expected, atol=1e-12)
        for k, trial in zip(task, trials, strict=True):
            least = 0.0 if faithful else tasks.accuracy[k].min()
            assert trial.value is None or trial.value == tasks.accuracy[k, trial.index] - least
    text = verma_contexts.table_multitask(report)
    assert text.startswith("3 tasks, Poisson(3), m = 6: cumulative regret, mean of 1 runs")
    assert "GP-TS-SDF" in text and "Ranking" in text


def test_algorithms_share_initial_points_and_delays_and_the_sequence_may_be_cut(tmp_path, monkeypatch):
    made, simulated = set(), []

    def noted(optimizer, f, n_trials, delays, *, initial, contexts):
        simulated.append((n_trials, tuple(delays), tuple(initial)))
        return simulate(optimizer, f, n_trials, delays, initial=initial, contexts=contexts)

    def random_search(algorithm, seed, window, **settings):
        made.add(seed)
        return bl.RandomSearch(candidates=settings["candidates"], context=settings["context"], seed=seed)

    simulate = verma_contexts.simulate
    monkeypatch.setattr(bl, "algorithm", random_search)
    monkeypatch.setattr(verma_contexts, "simulate", noted)
    folder = write(tmp_path, a_table(n_tasks=4))
    REPLAYS["multitask"].run(Options(seed=3, runs=2, data=folder, workers=0))
    assert len(made) == len(simulated) == 12
    assert {n_trials for n_trials, _, _ in simulated} == {verma.N_INITIAL + 120}
    assert len({delays for _, delays, _ in simulated}) == len({initial for _, _, initial in simulated}) == 2
    assert np.mean(simulated[0][1]) == pytest.approx(3.0, abs=0.6)
    assert verma_contexts.n_iterations(Options(iterations=50), 4) == 50
    assert verma_contexts.n_iterations(Options(iterations=500), 4) == 120


def some_patients(folder, n=240):
    """Write a file in the format of the Pima data, in which the first feature determines the class."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(n, 8))
    label = (x[:, 0] > 0).astype(int)
    lines = [",".join([*(f"{v:.4f}" for v in row), str(y)]) for row, y in zip(x, label, strict=True)]
    (folder / svm.DATA_FILE).write_text("\n".join(["header", *lines]) + "\n")
    svm.pima_diabetes.cache_clear()
    return folder


def test_prefixes_grow_up_to_all_data(tmp_path):
    folder = some_patients(tmp_path)
    whole = svm.pima_diabetes(folder)
    sizes = []
    for k in range(verma_contexts.N_PREFIXES):
        parts = verma_contexts.prefix(folder, k)
        assert all((part == full[: len(part)]).all() for part, full in zip(parts, whole, strict=True))
        assert len(parts[0]) == len(parts[1]) and len(parts[2]) == len(parts[3]) > 0
        sizes.append(len(parts[0]))
    assert (np.diff(sizes) > 0).all() and sizes[-1] == len(whole[0])
    last, C, gamma = verma_contexts.N_PREFIXES - 1, 1.0, 0.1
    assert verma_contexts.accuracy_of_prefix(folder, last, C, gamma) == svm.accuracy(folder, C, gamma)


def test_the_nonstationary_replay_end_to_end(tmp_path, monkeypatch):
    monkeypatch.setattr(verma_contexts, "N_GRID", 4)
    folder = some_patients(tmp_path)
    report = REPLAYS["nonstationary"].run(Options(runs=1, iterations=64, workers=0, data=folder))
    assert len(report["best"]) == 3
    for setting in report["settings"]:
        assert setting["curve_mean"].shape == (65,)
        # No evaluated point is better than the best known point.
        assert (np.diff(setting["curve_mean"]) >= 0).all()
    grid = [verma_contexts.best_of_grid(folder, k) for k in range(3)]
    assert (report["best"] >= grid).all()
    pytest.importorskip("matplotlib")
    REPLAYS["nonstationary"].draw(report, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_the_authors_settings_are_used_on_a_box_with_contexts(tmp_path, monkeypatch):
    monkeypatch.setattr(verma, "FAITHFUL_BOX", {"search__multistart": (50, 2)})
    monkeypatch.setattr(verma_contexts, "N_GRID", 2)
    folder = some_patients(tmp_path)
    report = REPLAYS["nonstationary"].run(Options(runs=1, iterations=32, workers=0, data=folder, faithful=True))
    assert report["faithful"]
    assert all(np.isfinite(setting["curve_mean"]).all() for setting in report["settings"])
    assert len({str(setting["curve_mean"]) for setting in report["settings"]}) > 1


def test_results_do_not_depend_on_the_number_of_processes(tmp_path):
    folder = write(tmp_path, a_table())
    options = [Options(runs=1, iterations=8, workers=workers, data=folder) for workers in (0, 2)]
    reports = [REPLAYS["multitask"].run(each) for each in options]
    curves = [np.array([setting["curve_mean"] for setting in report["settings"]]) for report in reports]
    np.testing.assert_array_equal(*curves)


@needs_data
def test_the_published_table_has_fifty_tasks_on_one_set_of_configurations():
    verma_contexts.benchmark.cache_clear()
    tasks = verma_contexts.benchmark(DATA)
    assert tasks.accuracy.shape == (50, 288)
    assert (tasks.configurations[:, :3].sum(axis=1) == 1).all()  # one kernel for each study
    assert len(np.unique(tasks.features, axis=0)) == 48
    report = REPLAYS["multitask"].run(Options(runs=1, iterations=35, workers=2, data=DATA))
    assert all(0 < setting["regret_per_run"]["35"][0] < 35 for setting in report["settings"])


@needs_data
def test_the_last_prefix_is_the_svm_replay():
    parts = verma_contexts.prefix(DATA, verma_contexts.N_PREFIXES - 1)
    assert all((ours == theirs).all() for ours, theirs in zip(parts, svm.pima_diabetes(DATA), strict=True))
    assert [len(part) for part in verma_contexts.prefix(DATA, 0)] == [27, 27, 12, 12]
