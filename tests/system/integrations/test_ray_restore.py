"""`BelatedSearch` saved and restored: its files, and Tune's table of trials."""

import json
from types import SimpleNamespace

import pytest

pytest.importorskip("ray", reason="Ray is not installed")
tune = pytest.importorskip("ray.tune", reason="Ray Tune is not installed")

from ray import cloudpickle  # noqa: E402

import belated as bl  # noqa: E402
from belated.integrations.ray import BelatedSearch  # noqa: E402
from belated.integrations.ray.checkpoint import VERSION  # noqa: E402
from tests.system.integrations.test_ray_search import PARAM_SPACE, searched, states  # noqa: E402

# Files.


def going_on(search, n=3):
    """Continue a search; return its next suggestions and results."""
    found = []
    for i in range(n):
        found.append(search.suggest(f"next {i}"))
        search.on_trial_complete(f"next {i}", {"loss": float(i)})
    return found, states(search)


def used(search):
    for i in range(8):
        search.suggest(str(i))
        if i % 3:
            search.on_trial_complete(str(i), {"loss": (i - 4.0) ** 2}, error=i == 5)
    return search


@pytest.mark.parametrize("make", [bl.BayesOpt, bl.RandomSearch, bl.TreeSearch])
def test_a_restored_search_continues_like_the_saved_search(make, tmp_path):
    search = used(searched(optimizer=make))
    path = str(tmp_path / "search")
    search.save(path)
    assert b"cloudpickle" not in (tmp_path / "search").read_bytes()
    json.loads((tmp_path / "search").read_bytes())
    # One search gets its space after the restore, as in Tuner.restore without param_space, the other before the
    # restore.
    restored = [BelatedSearch(optimizer=make), searched(optimizer=make)]
    restored[1] = BelatedSearch(optimizer=make)
    restored[1].set_search_properties("loss", "min", PARAM_SPACE)
    for each in restored:
        each.restore(path)
    assert restored[0].set_search_properties("loss", "min", PARAM_SPACE)
    pickled = cloudpickle.loads(cloudpickle.dumps(search))
    expected = going_on(search)
    assert [going_on(each) for each in (*restored, pickled)] == [expected] * 3
    # A late result.
    for each in (search, *restored):
        each.on_trial_complete("0", {"loss": 0.125})
        assert states(each)[0] == ("observed", 0.125)


def test_a_given_optimizer_is_restored_with_its_points_and_without_its_seed(tmp_path):
    def made():
        opt = bl.BayesOpt({"x": (0.0, 1.0)}, constraints=[lambda p: p["x"] > 0.25])
        opt.enqueue({"x": 0.5})
        return BelatedSearch(optimizer=opt, metric="loss")

    search, path = used(made()), str(tmp_path / "search")
    search.save(path)
    restored = made()
    restored.restore(path)
    assert going_on(restored) == going_on(search)


def test_files_that_do_not_fit(tmp_path):
    search, path = used(searched()), tmp_path / "search"
    search.save(str(path))

    def refused(match, search, content=None):
        other = tmp_path / "other"
        other.write_bytes(path.read_bytes() if content is None else content)
        before = cloudpickle.dumps(vars(search))
        with pytest.raises(bl.errors.InvalidSetting, match=match):
            search.restore(str(other))
        assert cloudpickle.dumps(vars(search)) == before

    refused("metric is loss there and score here", BelatedSearch(metric="score"))
    refused("mode is min there and max here", BelatedSearch(mode="max"))
    refused("optimizer is BayesOpt there and RandomSearch here", BelatedSearch(optimizer=bl.RandomSearch))
    refused("the names of space is", BelatedSearch({"x": (0.0, 1.0)}))
    deeper = {name: PARAM_SPACE[name] for name in ("optim", "layers", "units")} | {"layers": tune.randint(1, 5)}
    refused("space\\['layers'\\] is", BelatedSearch(deeper))
    refused("already has trials or points", ahead())
    refused("is not the file of a BelatedSearch, or is damaged", BelatedSearch(), path.read_bytes()[:-100])
    refused("is not the file of a BelatedSearch", BelatedSearch(), cloudpickle.dumps({"a": 1}))
    for content in (b"[]", b"null", b"", b"\xff\xfe\xff", b"[" * 200_000, b'{"format": ' * 200_000):
        refused("is not the file of a BelatedSearch", BelatedSearch(), content)
    data = json.loads(path.read_bytes())
    for version in (VERSION - 1, VERSION + 1):
        text = json.dumps(data | {"version": version}).encode()
        refused(f"has version {version}, and this belated reads {VERSION}", BelatedSearch(), text)
    data["events"][3:5] = []
    refused("an event that cannot have happened", BelatedSearch(), json.dumps(data).encode())


def ahead():
    search = used(searched())
    search.suggest("one more")
    search.on_trial_complete("one more", {"loss": 0.0})
    return search


# The next tests restore a search from its own file and from Tune's table of trials. In each test, one of the two files
# is older than the other.


def write_table(folder, rows, name="experiment_state-2026.json", **state):
    """Write a table of trials in Tune's format, given (id, status, config, last result) of each trial."""
    trials = [
        [
            json.dumps({"trial_id": trial_id, "status": status, "config": config, "evaluated_params": {}} | state),
            json.dumps({"last_result": result}),
        ]
        for trial_id, status, config, result in rows
    ]
    (folder / name).write_text(json.dumps({"trial_data": trials}))


def test_trials_only_in_the_table_of_tune_are_taken_over(tmp_path):
    search = searched()
    configs = {trial_id: search.suggest(trial_id) for trial_id in "ab"}
    search.save_to_dir(str(tmp_path), "1")
    configs |= {trial_id: search.suggest(trial_id) for trial_id in "cdef"}
    rows = [
        ("a", "TERMINATED", configs["a"], {"loss": 1.0, "time_total_s": 3.0}),
        ("b", "RUNNING", configs["b"], {"loss": 9.0}),
        ("c", "TERMINATED", configs["c"], {"loss": 2.0}),
        ("d", "ERROR", configs["d"], {"loss": 2.0}),
        ("e", "PENDING", configs["e"], {}),
        ("f", "TERMINATED", configs["f"], {}),
    ]
    write_table(tmp_path, rows)
    restored = BelatedSearch()
    restored.set_max_concurrency(3)
    restored.restore_from_dir(str(tmp_path))
    expected = [
        ("observed", 1.0),
        ("pending", None),
        ("observed", 2.0),
        ("failed", None),
        ("pending", None),
        ("abandoned", None),
    ]
    assert states(restored) == expected
    assert [restored.suggest(trial_id) for trial_id in "abcdef"] == list(configs.values())
    # Two trials are running and three are allowed, so one more may start.
    new = restored.suggest("g")
    assert new not in configs.values() and restored.suggest("h") is None
    for trial_id, value in (("b", 4.0), ("e", 5.0)):
        restored.on_trial_complete(trial_id, {"loss": value})
    assert states(restored)[1] == ("observed", 4.0) and states(restored)[4] == ("observed", 5.0)
    # If a trial was stopped while it was paused, the trial gets the last value in the table.
    other = BelatedSearch()
    other.restore_from_dir(str(tmp_path))
    other.on_trial_complete("b")
    assert states(other)[1] == ("observed", 9.0)


def test_points_to_begin_with_are_not_suggested_twice(tmp_path):
    points = [{"x": 0.25}, {"x": 0.5}, {"x": 0.75}]

    def made():
        return BelatedSearch({"x": (0.0, 1.0)}, metric="loss", mode="min", points_to_evaluate=points, seed=0)

    search = made()
    search.suggest("a")
    search.save_to_dir(str(tmp_path), "1")
    search.suggest("b")
    rows = [("a", "RUNNING", points[0], {}), ("b", "RUNNING", points[1], {})]
    write_table(tmp_path, rows)
    restored = made()
    restored.restore_from_dir(str(tmp_path))
    assert [restored.suggest(trial_id) for trial_id in "abc"] == points
    assert restored.suggest("d") not in points


@pytest.mark.parametrize("is_older", [False, True], ids=["same history", "another history"])
def test_partial_points_are_not_suggested_twice(is_older, tmp_path):
    def made():
        optimizer = bl.RandomSearch({"x": (0.0, 1.0), "y": (0.0, 1.0)}, direction="minimize", seed=0)
        return BelatedSearch(optimizer=optimizer, metric="loss", mode="min")

    search = made()
    search.optimizer_.enqueue([{"x": 0.25}, {"x": 0.75}])
    search.save_to_dir(str(tmp_path), "1")
    if is_older:
        search.optimizer_.add({"x": 0.5, "y": 0.5})
    config = search.suggest("a")
    write_table(tmp_path, [("a", "RUNNING", config, {})])
    restored = made()
    restored.restore_from_dir(str(tmp_path))
    assert restored.suggest("a") == config
    assert restored.suggest("b")["x"] == 0.75 and restored.suggest("c")["x"] not in (0.25, 0.75)


def test_points_of_trials_that_tune_lost_are_suggested_again(tmp_path):
    search = searched()
    configs = {trial_id: search.suggest(trial_id) for trial_id in "abcd"}
    search.on_trial_complete("b", {"loss": 1.0})
    search.save_to_dir(str(tmp_path), "1")
    write_table(tmp_path, [("a", "RUNNING", configs["a"], {})])
    restored = BelatedSearch()
    restored.restore_from_dir(str(tmp_path))
    assert [restored.suggest(trial_id) for trial_id in "xy"] == [configs["c"], configs["d"]]
    assert restored.suggest("z") not in configs.values()
    for value, trial_id in enumerate("axy"):
        restored.on_trial_complete(trial_id, {"loss": float(value)})
    assert states(restored)[:4] == [("observed", 0.0), ("observed", 1.0), ("observed", 1.0), ("observed", 2.0)]


def test_points_of_trials_that_tune_lost_are_suggested_again_after_a_second_restore(tmp_path):
    search = searched()
    configs = {trial_id: search.suggest(trial_id) for trial_id in "abc"}
    search.on_trial_complete("a", {"loss": 1.0})
    write_table(tmp_path, [("a", "TERMINATED", configs["a"], {"loss": 1.0})])
    # The search is saved again before it has suggested these points.
    for session in "123":
        search.save_to_dir(str(tmp_path), session)
        search = BelatedSearch()
        search.restore_from_dir(str(tmp_path))
    assert [search.suggest(trial_id) for trial_id in "xy"] == [configs["b"], configs["c"]]
    assert len(states(search)) == 3 and search.suggest("z") not in configs.values()


def test_a_point_that_was_suggested_again_is_known_to_an_older_file(tmp_path):
    search = searched()
    configs = {trial_id: search.suggest(trial_id) for trial_id in "abc"}
    search.save_to_dir(str(tmp_path), "1")
    write_table(tmp_path, [("a", "RUNNING", configs["a"], {})])
    search = BelatedSearch()
    search.restore_from_dir(str(tmp_path))
    assert search.suggest("x") == configs["b"]
    # The process was killed after it had saved the table, but before it had saved the search.
    write_table(tmp_path, [("a", "RUNNING", configs["a"], {}), ("x", "TERMINATED", configs["b"], {"loss": 2.0})])
    search = BelatedSearch()
    search.restore_from_dir(str(tmp_path))
    assert states(search) == [("pending", None), ("observed", 2.0), ("pending", None)]
    assert search.suggest("y") == configs["c"]
    assert search.suggest("z") not in configs.values() and len(states(search)) == 4


def test_trials_of_the_optimizer_unknown_to_tune_are_not_suggested(tmp_path):
    def made():
        opt = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
        own = opt.suggest().params
        return BelatedSearch(optimizer=opt, metric="loss"), own

    search, own = made()
    search.suggest("a")
    search.save_to_dir(str(tmp_path), "1")
    restored, _ = made()
    restored.restore_from_dir(str(tmp_path))
    assert restored.suggest("b") != own and [state for state, _ in states(restored)] == ["pending"] * 3


def test_a_table_that_is_not_in_the_storage_is_ignored(tmp_path):
    fs = pytest.importorskip("pyarrow.fs")
    storage, copy = tmp_path / "storage", tmp_path / "copy"
    storage.mkdir()
    copy.mkdir()
    there = SimpleNamespace(storage_filesystem=fs.LocalFileSystem(), experiment_fs_path=str(storage))
    pickled = {"storage": {"_type": "CLOUDPICKLE_FALLBACK", "value": cloudpickle.dumps(there).hex()}}
    search = searched()
    configs = {trial_id: search.suggest(trial_id) for trial_id in "ab"}
    rows = [(trial_id, "RUNNING", config, {}) for trial_id, config in configs.items()]
    write_table(storage, rows[:1], "experiment_state-1.json", **pickled)
    write_table(copy, rows[:1], "experiment_state-1.json", **pickled)
    write_table(copy, rows, "experiment_state-2.json", **pickled)
    search.save_to_dir(str(copy), "2")
    restored = BelatedSearch()
    restored.restore_from_dir(str(copy))
    assert restored.suggest("c") == configs["b"]


def test_the_table_is_used_where_no_file_is_intact(tmp_path):
    search = searched()
    configs = {trial_id: search.suggest(trial_id) for trial_id in "ab"}
    search.save_to_dir(str(tmp_path), "1")
    (tmp_path / "searcher-state-2.json").write_text('{"format": "sea')
    rows = [("a", "TERMINATED", configs["a"], {"loss": 1.0}), ("b", "RUNNING", configs["b"], {})]
    write_table(tmp_path, rows)
    for expected_warnings in (1, 2):
        restored = BelatedSearch()
        restored.set_search_properties("loss", "min", PARAM_SPACE)
        with pytest.warns(bl.BelatedWarning, match="an earlier file, or Tune's table of trials, is used") as caught:
            restored.restore_from_dir(str(tmp_path))
        assert len(caught) == expected_warnings
        assert states(restored) == [("observed", 1.0), ("pending", None)]
        assert [restored.suggest(trial_id) for trial_id in "ab"] == list(configs.values())
        (tmp_path / "searcher-state-1.json").write_text("")
    # If the space is unknown, the search must not start the experiment from the beginning, as Tune would do.
    restored = BelatedSearch()
    with (
        pytest.warns(bl.BelatedWarning),
        pytest.raises(bl.errors.InvalidSetting, match="give Tuner.restore the param_space"),
    ):
        restored.restore_from_dir(str(tmp_path))
    restored.set_search_properties("loss", "min", PARAM_SPACE)
    with pytest.raises(bl.errors.InvalidSetting, match="could not be restored: .*nothing is suggested"):
        restored.suggest("a")


@pytest.mark.parametrize("content", [{}, {"version": VERSION}, {"version": VERSION, "metric": "loss"}, "[" * 200_000])
def test_incomplete_files_are_skipped(content, tmp_path):
    search = searched()
    config = search.suggest("a")
    search.save_to_dir(str(tmp_path), "1")
    if isinstance(content, dict):
        content = json.dumps({"format": "search of belated for Ray Tune"} | content)
    (tmp_path / "searcher-state-2.json").write_text(content)
    restored = BelatedSearch()
    with pytest.warns(bl.BelatedWarning, match="or is damaged: .*an earlier file"):
        restored.restore_from_dir(str(tmp_path))
    assert restored.suggest("a") == config


class Unreadable:
    """An object that raises an error when its pickle is read."""

    def __init__(self, error):
        self.error = error

    def __reduce__(self):
        return raise_it, (self.error,)


def raise_it(error):
    raise error


@pytest.mark.parametrize("error", [ImportError, TypeError, ValueError])
def test_a_storage_that_cannot_be_read_does_not_end_the_restore(error, tmp_path):
    search = searched()
    config = search.suggest("a")
    search.save_to_dir(str(tmp_path), "1")
    pickled = {"_type": "CLOUDPICKLE_FALLBACK", "value": cloudpickle.dumps(Unreadable(error("no"))).hex()}
    # The search reads only one of the two unreadable fields, the storage.
    write_table(tmp_path, [("a", "RUNNING", config, {})], storage=pickled, other=pickled)
    restored = BelatedSearch()
    restored.restore_from_dir(str(tmp_path))
    assert restored.suggest("a") == config


def test_an_unknown_trial_replaces_a_trial_that_ended(tmp_path):
    points = [{"k": "p"}] * 3
    search = BelatedSearch({"k": ["p", "q"]}, metric="loss", mode="min", points_to_evaluate=points)
    for trial_id in "abc":
        search.suggest(trial_id)
    # All three trials are running.
    search.on_trial_complete("unknown", {"loss": 0.0, "config/k": "p"})
    assert states(search) == [("pending", None)] * 3
    search.on_trial_complete("b", {}, error=True)
    search.on_trial_complete("b again", {"loss": 2.0, "config/k": "p"})
    for trial_id, value in (("a", 1.0), ("c", 3.0)):
        search.on_trial_complete(trial_id, {"loss": value, "config/k": "p"})
    assert states(search) == [("observed", 1.0), ("observed", 2.0), ("observed", 3.0)]


def flat_of(search, number):
    return search.optimizer_.trials[number].params.items()


def test_a_trial_restarted_under_another_id_is_recognised_by_its_config(tmp_path):
    search = searched()
    config = search.suggest("a")
    search.suggest("b")
    search.on_trial_complete("a", error=True)
    flat = {"config/optim/lr": config["optim"]["lr"], "config/optim/momentum": config["optim"]["momentum"]}
    flat |= {"config/layers": config["layers"], "config/units": config["units"], "config/epochs": 10}
    search.on_trial_result("again", {"loss": 1.0} | flat)
    search.on_trial_complete("again", {"loss": 0.5} | flat)
    assert states(search) == [("observed", 0.5), ("pending", None)]
    search.on_trial_complete("unheard of", {"loss": 0.0})
    assert states(search) == [("observed", 0.5), ("pending", None)]
    # The search also recognises trials that have another id in Tune.
    search.on_trial_result("b again", {"loss": 1.0} | {f"config/{name}": value for name, value in flat_of(search, 1)})
    search.save_to_dir(str(tmp_path), "1")
    write_table(tmp_path, [("again", "TERMINATED", config, {"loss": 0.5}), ("b again", "RUNNING", {}, {})])
    restored = BelatedSearch()
    restored.set_max_concurrency(2)
    restored.restore_from_dir(str(tmp_path))
    assert len(states(restored)) == 2 and restored.suggest("c") and restored.suggest("d") is None
    assert len(states(restored)) == 3
