"""The replays pcts-svm, pcts-xgb and pcts-nn: the clock, the data, and small replays from end to end."""

import json
import math
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import belated as bl
from belated import replays
from belated.replays import images, pcts_tuning, runner, tuning_data, verdicts, wang
from belated.replays.pcts_tuning import EXPERIMENTS
from belated.replays.runner import MissingData, Options
from tests.system.replays.digits import folder_of_digits

pytest.importorskip("sklearn")
pytest.importorskip("tqdm")

LINE = {"x": (0.0, 1.0)}


@pytest.fixture(autouse=True)
def nothing_kept():
    tuning_data.read.cache_clear()
    images.mnist.cache_clear()


@pytest.fixture
def no_network(monkeypatch):
    def fail(*names, **settings):
        raise OSError("no network here")

    monkeypatch.setattr("sklearn.datasets.fetch_20newsgroups", fail)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", fail)


# The clock.


class Diary:
    """A random search that records its values and their arrival times; `now` is the number of suggestions so far."""

    def __init__(self, fidelity=None):
        self.inner, self.events = bl.RandomSearch(LINE, fidelity=fidelity, seed=0), []

    def suggest(self):
        trial = self.inner.suggest() if self.inner.fidelity is None else self.inner.suggest(fidelity=25)
        self.events.append(("suggest", trial.number))
        return trial

    def observe(self, trial, value):
        self.events.append(("observe", trial.number))
        self.inner.observe(trial, value)

    def fail(self, trial):
        self.events.append(("fail", trial.number))
        self.inner.fail(trial)

    def __getattr__(self, name):
        return getattr(self.inner, name)


def searched(optimizer, f=lambda params, n: params["x"], *, evaluation=1, delay=3, times=(0, 5, 10), waits=False):
    times = np.array(times, dtype=float)
    return pcts_tuning.search(optimizer, f, 100, evaluation=evaluation, delay=delay, times=times, waits=waits)


def test_a_result_arrives_after_the_evaluation_and_the_delay():
    diary = Diary()
    found = searched(diary)
    assert (found.n_evaluations, found.n_observed, found.cost) == (10, 7, 10.0)
    for number in range(6):  # trial k starts at time k, ends at k + 1, and is known at k + 4
        assert diary.events.index(("observe", number)) < diary.events.index(("suggest", number + 4))
        assert diary.events.index(("observe", number)) > diary.events.index(("suggest", number + 3))
    assert diary.events[-1] == ("observe", 6)  # a result that arrives at time 10, the end of the run, counts


def test_wait_and_act_has_one_evaluation_in_flight():
    diary = Diary()
    found = searched(diary, waits=True)
    assert diary.events == [(what, number) for number in range(2) for what in ("suggest", "observe")] + [("suggest", 2)]
    assert (found.n_evaluations, found.n_observed) == (3, 2)


def test_a_long_evaluation_delays_its_result_and_the_next_evaluation():
    found = searched(Diary(), evaluation=4, delay=1, times=(0, 4.5, 10))
    # The trials start at 0, 4 and 8, and the results arrive at 5 and 9.
    assert (found.n_evaluations, found.n_observed, found.recommended[1]) == (3, 2, None)
    waiting = searched(Diary(), evaluation=4, delay=1, times=(0, 10), waits=True)
    assert (waiting.n_evaluations, waiting.n_observed) == (2, 2)


def test_a_quarter_of_the_samples_takes_a_quarter_of_the_time():
    found = searched(Diary(bl.Fidelity(10, 100)))
    assert (found.n_evaluations, found.cost) == (40, 10.0)
    assert found.n_observed == 28  # the starts are at 0, 1/4, …, 6 3/4


def test_recommendations_follow_arrived_results():
    values = {}
    found = searched(Diary(), lambda params, n: values.setdefault(len(values), params)["x"], times=(0, 3, 4, 10))
    assert found.recommended[:2] == [None, None]
    assert found.recommended[2] == values[0]
    assert found.recommended[3] == max((values[i] for i in range(7)), key=lambda params: params["x"])


def test_a_training_that_fails_is_a_failed_trial():
    diary = Diary()
    found = searched(diary, lambda params, n: math.nan)
    assert (found.n_failed, found.n_observed) == (7, 0)
    assert found.recommended == [None] * 3
    assert ("fail", 0) in diary.events


def test_evaluations_whose_results_would_come_too_late_are_not_computed():
    computed = []
    searched(Diary(), lambda params, n: computed.append(n) or 0.5)
    assert len(computed) == 7


def test_a_tree_that_does_not_wait_has_more_results_and_less_regret():
    def f(params, n):
        return -((params["x"] - 0.3) ** 2) - (params["y"] - 0.7) ** 2

    found = {False: [], True: []}
    for waits, searches in found.items():
        for seed in range(10):
            tree = bl.TreeSearch(
                {"x": (0.0, 1.0), "y": (0.0, 1.0)}, bound=bl.papers.DUCBV(b=0.02), nu=1.0, rho=0.5, seed=seed
            )
            searches.append(searched(tree, f, times=(0, 100), waits=waits))
    assert all(each.n_observed == 97 for each in found[False]) and all(each.n_observed == 25 for each in found[True])
    reached = {waits: np.median([f(each.recommended[-1], 1) for each in searches]) for waits, searches in found.items()}
    assert reached[False] > reached[True]


# Evaluations, constants.


def test_stored_evaluations_are_continued(tmp_path):
    file, computed = tmp_path / "kept.jsonl", []

    def f(params, n):
        computed.append((params, n))
        return math.nan if n == 3 else params["x"] / n

    first = pcts_tuning.Evaluations(f, file)
    assert first({"x": 0.1}, 2) == first({"x": 0.1}, 2) == 0.05
    assert math.isnan(first({"x": 0.1, "kind": "a"}, 3))
    file.write_text(file.read_text() + '[{"x": 0.2}, 2, 0.')  # as if the process had ended during a write
    again = pcts_tuning.Evaluations(f, file)
    assert again({"x": 0.1}, 2) == 0.05 and math.isnan(again({"kind": "a", "x": 0.1}, 3))
    assert len(computed) == 2
    assert again({"x": 0.2}, 2) == 0.1 and len(computed) == 3
    assert pcts_tuning.Evaluations(f, file)({"x": 0.2}, 2) == 0.1 and len(computed) == 3


def test_a_file_of_evaluations_that_is_damaged_is_refused(tmp_path):
    file = tmp_path / "kept.jsonl"
    file.write_text("no JSON\n")
    with pytest.raises(bl.errors.InvalidSetting, match="delete it"):
        pcts_tuning.Evaluations(lambda params, n: 0.0, file)


def test_the_bias_constant_is_exact_for_a_bias_that_is_linear():
    space = {"x": (0.0, 4.0), "n": bl.Integer(1, 9)}

    def f(params, n):
        assert params == {"x": 2.0, "n": 5}
        return 0.9 - 0.3 * (1000 - n) / 900

    assert pcts_tuning.bias_constant(space, f, 100, 1000) == pytest.approx(math.sqrt(2) * 0.3, rel=1e-9)
    assert pcts_tuning.bias_constant(space, lambda params, n: 0.5, 100, 1000) == pcts_tuning.MIN_BIAS
    assert pcts_tuning.bias_constant(space, lambda params, n: math.nan, 100, 1000) == pcts_tuning.MIN_BIAS


def test_the_range_of_samples_shrinks_with_the_rows():
    experiment = EXPERIMENTS["svm"]
    assert experiment.range(11_314) == (100, 7000)
    assert experiment.range(1797) == (100, 1797)
    assert EXPERIMENTS["nn"].range(30_000) == (500, 30_000)
    assert EXPERIMENTS["nn"].range(1797) == (180, 1797)


def test_published_medians_belong_to_the_task(tmp_path):
    rows = [
        {"task": task, "algorithm": "PCTS + DUCBV", "optimum": None, "max": 0.9, "median": median, "std": 0.1}
        for task, median in (("NewsGroup-SVM", 0.8), ("MNIST-NN", 0.7))
    ]
    (tmp_path / wang.DATA_FILE).write_text(json.dumps({"hyperparameter_tuning": rows}))
    assert pcts_tuning.published(tmp_path, "MNIST-NN")["PCTS + DUCBV"]["median"] == 0.7
    assert pcts_tuning.published(None, "MNIST-NN") == {}


def test_the_trees_have_the_settings_of_the_paper():
    def tree(algorithm, faithful=False):
        def f(params, n):
            return 0.9 - 0.2 * (1797 - n) / 1697

        return pcts_tuning.make_optimizer(EXPERIMENTS["svm"].space, algorithm, f, (100, 1797), 0, faithful)

    bias = pytest.approx(math.sqrt(2) * 0.2, rel=1e-3)
    for algorithm in ("PCTS+DUCBV", "wait-and-act+DUCBV"):
        optimizer = tree(algorithm)
        assert (optimizer.bound, optimizer.nu, optimizer.rho) == (bl.papers.DUCBV(b=0.02), bias, 0.95)
        assert (optimizer.fidelity.low, optimizer.fidelity.high, optimizer.fidelity.bias) == (100, 1797, bias)
        assert optimizer.fidelity.cost_of(100) == pytest.approx(100 / 1797)
    assert tree("PCTS+DUCBV", faithful=True).bound == bl.papers.DUCBV(b=1.0)
    assert tree("PCTS+DUCB1-sigma").bound.noise_std ** 2 == pytest.approx(0.02)
    assert tree("PCTS+DUCBV, full").fidelity is None


def test_the_table_has_the_best_so_far_and_the_published_medians():
    def result(curve, params):
        return {"curve": curve, "value": curve[-1], "params": params, "n_evaluations": 9, "cost": 5.5, "n_failed": 0}

    runs = [result([math.nan, 0.9, 0.6], {"C": 1.0}), result([math.nan, 0.7, 0.8], {"C": 2.0})]
    known = {"PCTS + DUCBV": {"max": 0.93, "median": 0.92, "std": 0.01}}
    settings = [pcts_tuning.describe(name, runs, known) for name in ("PCTS+DUCBV", "BayesOpt")]
    assert settings[0]["median"] == pytest.approx(0.7) and settings[0]["best"] == pytest.approx(0.85)
    assert settings[0]["params"] == {"C": 2.0}
    np.testing.assert_allclose(settings[0]["curve_best_median"], [math.nan, 0.8, 0.85])
    report = {"data": "MNIST", "samples": (1, 2), "evaluation": 1, "delay": 4, "duration": 9, "runs": 2}
    report["settings"] = settings
    report["verdicts"] = verdicts.comparisons(settings, (), pcts_tuning.pairs())
    lines = pcts_tuning.table(report).splitlines()
    assert lines[3].endswith("published median     std")
    median = ["0.7", "(0.65", "to", "0.75)"]
    assert lines[5].split() == ["PCTS+DUCBV", "0.8000", *median, "0.1000", "0.8500", "9", "5.5", "0.9200", "0.0100"]
    assert lines[6].split()[-1] == "5.5"
    # Both algorithms have the same accuracies.
    assert "PCTS+DUCBV  BayesOpt  undecided" in lines


def test_xgboost_is_named_with_its_extra(monkeypatch):
    monkeypatch.setattr(runner, "find_spec", lambda name: None if name == "xgboost" else find_spec(name))
    with pytest.raises(runner.MissingExtra, match=r"pip install 'belated\[xgboost\]'"):
        runner.require(*replays.found()["pcts-xgb"].needs)


# Data.


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60))
def test_every_prefix_of_the_order_has_balanced_classes(classes):
    y = np.array(classes)
    order = tuning_data.fair_order(y)
    assert sorted(order) == list(range(len(y)))
    present, totals = np.unique(y, return_counts=True)
    for n in range(1, len(y) + 1):
        counts = np.array([np.sum(y[order[:n]] == each) for each in present])
        unfinished = counts < totals
        # Classes alternate: while a class has unused rows, it has at most two rows fewer than any other class.
        assert not unfinished.any() or counts.max() - counts[unfinished].min() <= 1


def test_bundled_digits_stand_in_without_a_network(no_network):
    for wanted, name in (("newsgroups", "20 newsgroups"), ("mnist", "MNIST")):
        source = tuning_data.find(wanted, None)
        assert source.is_stand_in
        assert source.words.startswith("scikit-learn's 1,797 bundled digits, which stand in for " + name)
        assert "no network here" in source.words
    x, y = tuning_data.read(source.kind, source.folder)
    assert x.shape == (1797, 64) and x.min() == 0 and x.max() == 1 and set(y) == set(range(10))


def test_digits_of_a_folder_stand_in_before_the_bundled_ones(no_network, tmp_path):
    source = tuning_data.find("newsgroups", folder_of_digits(tmp_path, 50))
    assert source.is_stand_in and source.words.startswith("MNIST's 50 digits")
    x, y = tuning_data.read(source.kind, source.folder)
    assert x.shape == (50, 784) and x.max() <= 1 and np.all(np.bincount(y[:20]) == 2)
    assert tuning_data.find("mnist", tmp_path, bundled=True).words == "scikit-learn's 1,797 bundled digits"


def test_a_damaged_file_of_digits_is_an_error(no_network, tmp_path):
    (folder_of_digits(tmp_path, 50) / f"{images.OTHER_DIGITS[0]}.gz").write_bytes(b"no gzip")
    with pytest.raises(MissingData, match="get it again"):
        tuning_data.find("mnist", tmp_path)


def test_newsgroups_are_read_by_the_loader(monkeypatch, tmp_path):
    asked = []

    def loader(**settings):
        asked.append(settings)
        found = type("Bunch", (), {})()
        found.data, found.target = ["apples and pears", "pears", "stars and planets", "planets"], [0, 0, 1, 1]
        return found

    monkeypatch.setattr("sklearn.datasets.fetch_20newsgroups", loader)
    source = tuning_data.find("newsgroups", tmp_path)
    assert (source.words, source.is_stand_in) == ("20 newsgroups, 4 rows", False)
    x, y = tuning_data.read(source.kind, source.folder)
    assert x.shape == (4, 5) and set(y[:2]) == {0, 1}
    np.testing.assert_allclose(np.asarray(x.multiply(x).sum(axis=1)).ravel(), 1.0, rtol=1e-6)
    assert asked[-1]["data_home"] is None and asked[-1]["download_if_missing"]
    (tmp_path / tuning_data.NEWSGROUPS_FILE).write_bytes(b"")
    tuning_data.find("newsgroups", tmp_path)
    assert asked[-1]["data_home"] == tmp_path and not asked[-1]["download_if_missing"]


# The replays.


def test_the_accuracy_is_scikit_learns():
    from sklearn.model_selection import cross_val_score
    from sklearn.svm import SVC

    x, y = tuning_data.read("digits", None)
    ours = EXPERIMENTS["svm"].accuracy({"C": 10.0, "gamma": 0.1}, x[:100], y[:100], False)
    assert ours == pytest.approx(cross_val_score(SVC(C=10.0, gamma=0.1), x[:100], y[:100], cv=5).mean())


def test_only_solvers_with_a_learning_rate_have_the_parameter():
    optimizer = bl.RandomSearch(pcts_tuning.NN_SPACE, seed=0)
    for trial in optimizer.suggest(n=60):
        has_rate = trial.params["solver"] != "lbfgs"
        assert ("learning_rate_init" in trial.params, "early_stopping" in trial.params) == (has_rate, has_rate)


def test_weights_that_overflow_are_a_failed_training_and_other_errors_are_not(monkeypatch):
    problem = {"is": "Solver produced non-finite parameter weights. The input data may contain large values"}

    def raises(*arguments, **settings):
        raise ValueError(problem["is"])

    monkeypatch.setattr("sklearn.model_selection.cross_val_score", raises)
    params = {"layer_1": 32, "layer_2": 128, "layer_3": 256, "solver": "lbfgs", "activation": "relu"}
    assert math.isnan(EXPERIMENTS["nn"].accuracy(params, None, None, True))
    problem["is"] = "another one"
    with pytest.raises(ValueError, match="another one"):
        EXPERIMENTS["nn"].accuracy(params, None, None, True)


NEEDS_XGBOOST = pytest.mark.skipif(
    find_spec("xgboost") is None, reason="xgboost is not installed: pip install 'belated[xgboost]'"
)
SMALL = {
    "svm": {"samples": (50, 100), "min_samples": 50, "quick_samples": 60, "evaluation": 1, "delay": 3},
    "xgb": {
        "samples": (50, 100),
        "min_samples": 50,
        "quick_samples": 60,
        "evaluation": 1,
        "delay": 3,
        "space": pcts_tuning.XGB_SPACE | {"n_estimators": bl.Integer(2, 10)},
    },
    "nn": {"quick_samples": 200, "evaluation": 1, "delay": 3},
}


@pytest.mark.parametrize("name", ["svm", "nn", pytest.param("xgb", marks=NEEDS_XGBOOST)])
def test_a_small_replay_from_end_to_end(name, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    replay = replays.found()[f"pcts-{name}"]
    monkeypatch.setitem(EXPERIMENTS, name, replace(EXPERIMENTS[name], **SMALL[name]))
    if name != "svm":  # trainings take longer
        monkeypatch.setattr(pcts_tuning, "ALGORITHMS", ("PCTS+DUCBV", "PCTS+DUCBV, full", "wait-and-act+DUCBV"))
        monkeypatch.setattr(pcts_tuning, "QUICK_MAX_ITER", 1)
    options = Options(runs=1, iterations=7, workers=0, quick=True, keep=tmp_path / "kept")
    report = replay.run(options)
    low, high = report["samples"]
    assert high == SMALL[name]["quick_samples"] and low < high
    for setting in report["settings"]:
        assert 0 < setting["median"] <= 1 and len(setting["curve_median"]) == len(report["times"])
        waits, is_full = "wait" in setting["algorithm"], "full" in setting["algorithm"]
        assert setting["n_evaluations"] == 2 if waits else setting["n_evaluations"] >= 7
        assert setting["cost"] == 7 if is_full else setting["cost"] > 0
    text = replay.table(report)
    assert text.startswith("scikit-learn's 1,797 bundled digits.") and "wait-and-act+DUCBV" in text
    replay.draw(report, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    # The replay does not repeat stored runs, and uses the stored evaluations of a run that was removed.
    failing = replace(EXPERIMENTS[name], classifier=lambda *arguments: pytest.fail("computed again"))
    monkeypatch.setitem(EXPERIMENTS, name, failing)
    next((tmp_path / "kept").glob("*PCTS+DUCBV_*.json")).unlink()
    np.testing.assert_equal(replay.run(options), report)
