"""Studies are listed, copied and deleted, and have attributes, in every store."""

import json
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from datetime import datetime, timezone

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import belated as bl
from belated import cli, store
from tests.contract.store.test_contract import header, record
from tests.unit.study.forks import suggests_in_a_fork


def random_search(**arguments):
    return bl.RandomSearch({"x": (0.0, 1.0)}, seed=0, **arguments)


# Headers and deletion in the store.


def test_a_header_is_replaced_if_it_is_unchanged(url):
    opened, other = store.open_store(url), store.open_store(url)
    opened.create_all([(header(), [record(0)]), (header("t", 8), [])])
    new = header()._replace(definition="{}", checksum=b"n" * 16)
    assert opened.replace_header(header(), new) and not other.replace_header(header(), new)
    assert not opened.replace_header(header("u", 9), header("u", 9))
    assert other.header("s") == new and other.header("t") == header("t", 8)
    assert other.names() == ["s", "t"] and other.events(7, 0) == [record(0)]


def test_a_deleted_study_leaves_other_studies_unchanged(url):
    opened, other = store.open_store(url), store.open_store(url)
    opened.create_all([(header(), [record(0), record(1)]), (header("t", 8), [record(0, study=8)])])
    assert other.events(7, 1) == [record(1)]
    assert opened.delete(7) and not opened.delete(7) and not other.delete(7)
    assert other.names() == ["t"] and other.header("s") is opened.header("s") is None
    assert other.events(8, 0) == [record(0, study=8)]
    other.check()
    for each in (opened, other):
        with pytest.raises(bl.errors.StoreError):
            each.events(7, 0)
    # Operations on the id of the deleted study do not affect a study with the same name.
    assert other.create(header(id=9), [record(0, study=9)]) and opened.header("s") == header(id=9)
    assert not opened.delete(7) and not opened.replace_header(header(), header()._replace(definition="{}"))
    opened.flush(7)
    with pytest.raises(bl.errors.StoreError), opened.writing(7) as log:
        log.append([record(len(log.events(0)))])
    assert other.header("s") == header(id=9) and opened.events(9, 0) == [record(0, study=9)]
    other.check()


# Deletion of studies that are in use.


@pytest.mark.parametrize("again", [False, True], ids=["deleted", "created again"])
@pytest.mark.parametrize("n", [0, 3])
def test_a_study_that_was_deleted_elsewhere_raises_errors(url, again, n):
    study = bl.Study("s", url, random_search())
    trials = study.suggest(n=n)
    bl.Study.delete("s", url)
    if again:
        other = bl.Study("s", url, random_search())
        other.suggest(n=n)
    # The first call reads the header of the new study with this name.
    calls = [lambda: study.attrs, lambda: study.n_trials, study.suggest, lambda: study.add({"x": 0.5}, 1.0)]
    calls += [lambda: study.set_attrs({"a": 1}), lambda: study.copy("t"), lambda: study.report(0, 0.5, 1)]
    calls += [lambda: trials[0].observe(1.0)] * (n > 0)
    for call in calls:
        with pytest.raises(bl.errors.StoreError):
            call()
    if again:
        assert bl.Study.load("s", url).n_trials == n and other.attrs == {}
        other.suggest().observe(0.5)
        assert bl.Study.load("s", url).best_value_ == 0.5 and cli.main(["study", "check", url]) == cli.DONE
    else:
        for call in (bl.Study.load, bl.Study.delete):
            with pytest.raises(bl.errors.StoreError):
                call("s", url)
        assert "s" not in [each.name for each in bl.Study.list(url)]


def test_a_study_is_deleted_while_threads_write_to_it(url):
    bl.Study("s", url, random_search())
    kept = bl.Study("kept", url, random_search())
    written = threading.Barrier(4)

    def write(_):
        study = bl.Study.load("s", url)
        study.suggest().observe(0.5)
        written.wait()
        with pytest.raises(bl.errors.StoreError):
            for _ in range(10_000):
                study.suggest().observe(0.5)

    with ThreadPoolExecutor(3) as pool:
        done = pool.map(write, range(3))
        written.wait()
        bl.Study.delete("s", url)
        list(done)
    opened = store.open_store(url)
    opened.check()
    assert opened.names() == ["kept"] and kept.suggest().number == 0


@pytest.mark.parametrize("name", ["other", "", 3, None, "\0", "\ud800"])
def test_the_error_for_an_unknown_study_names_the_studies(url, name):
    bl.Study("s", url, random_search())
    with pytest.raises(bl.errors.StoreError, match=r"there is no study .* which has \['s'\]"):
        bl.Study.delete(name, url)


def test_a_pickle_of_a_deleted_study_is_not_a_study_of_the_same_name(url):
    for constraints in (None, [positive]):
        study = bl.Study("s", url, random_search(constraints=constraints))
        pickled = pickle.dumps(study)
        assert pickle.loads(pickled)._log.id == deepcopy(study)._log.id == study._log.id
        bl.Study.delete("s", url)
        with pytest.raises(bl.errors.StoreError):
            pickle.loads(pickled)
        bl.Study("s", url, random_search(constraints=constraints))
        with pytest.raises(bl.errors.StoreError, match="study 's' was deleted from .*, and another has its name now"):
            pickle.loads(pickled)
        bl.Study.delete("s", url)


def positive(params):
    return params["x"] > 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_fork_of_a_deleted_study_does_not_use_a_study_of_the_same_name(url):
    if url.startswith("memory"):
        pytest.skip("a forked process has a copy of a store in memory")
    study = bl.Study("s", url, random_search())
    bl.Study.delete("s", url)
    new = bl.Study("s", url, random_search())
    for locks in ([], [study._log.lock]):
        assert not suggests_in_a_fork(study, *locks)
    assert new.n_trials == 0


# Lists.


def test_studies_are_listed_with_their_trials_and_times(url):
    first = bl.Study("b", url, bl.BayesOpt({"x": (0.0, 1.0)}, direction="minimize", seed=0), time=lambda: 86400.0)
    first.set_attrs({"data": "v1"})
    for value in (3.0, 1.0):
        first.suggest().observe(value)
    first.suggest().fail()
    first.suggest(n=2)
    bl.Study("a", url, random_search(), time=lambda: 90000.0)
    one, two = bl.Study.list(url)
    assert (one.name, two.name) == ("b", "a") and (one.optimizer, two.optimizer) == ("BayesOpt", "RandomSearch")
    assert one.n_by_state == {"observed": 2, "failed": 1, "pending": 2} and one.n_trials == 5
    assert (one.direction, one.best_value, one.best_params) == ("minimize", 1.0, first.trial(1).params)
    assert one.attrs == {"data": "v1"} and one.created_at == datetime(1970, 1, 2, tzinfo=timezone.utc)
    assert one.last_event_at == datetime.fromtimestamp(
        store.open_store(url).events(first._log.id, 0)[-1].at, timezone.utc
    )
    assert (two.n_trials, two.n_by_state, two.best_value, two.best_params, two.attrs) == (0, {}, None, None, {})
    assert two.created_at == two.last_event_at == datetime(1970, 1, 2, 1, tzinfo=timezone.utc)


def test_a_store_without_studies(url):
    bl.Study("s", url, random_search())
    bl.Study.delete("s", url)
    assert bl.Study.list(url) == []


READS = {
    "list": lambda place: [each.name for each in bl.Study.list(place)],
    "command list": lambda place: cli.main(["study", "list", place]),
    "show": lambda place: cli.main(["study", "show", place]),
    "check": lambda place: cli.main(["study", "check", place]),
    "export": lambda place: cli.main(["study", "export", place]),
}


@pytest.mark.parametrize("kind", READS)
@pytest.mark.parametrize("again", [False, True], ids=["deleted", "created again"])
@pytest.mark.parametrize("moment", ["names", "header", "events"])
def test_reading_all_studies_leaves_out_those_that_are_deleted_meanwhile(
    url, kind, again, moment, monkeypatch, capsys, tmp_path
):
    for name in "abc":
        bl.Study(name, url, random_search()).add({"x": 0.5}, 1.0)
    number, opened = store.open_store(url).header("b").id, store.open_store(url)
    real = getattr(type(opened), moment)

    def then_deleted(self, *arguments):
        """Another process deletes study b after the names, after the header or before the events are read."""
        if moment == "events" and arguments[0] == number:
            delete()
        found = real(self, *arguments)
        if moment == "names" or (moment == "header" and arguments == ("b",)):
            delete()
        return found

    def delete():
        monkeypatch.setattr(type(opened), moment, real)
        bl.Study.delete("b", url)
        if again:
            bl.Study("b", url, random_search()).add({"x": 0.25}, 2.0)

    monkeypatch.setattr(type(opened), moment, then_deleted)
    found = READS[kind](url)
    said = capsys.readouterr().out
    if kind == "list":
        assert sorted(found) == (["a", "b", "c"] if again else ["a", "c"])
        return
    assert found == cli.DONE and "StoreError" not in said and "damaged" not in said
    assert ("best 2.0" in said) == (again and kind == "command list")
    if kind == "export":
        (tmp_path / "file").write_text(said, encoding="utf-8")
        copy = str(tmp_path / "copy.db")
        assert cli.main(["study", "import", str(tmp_path / "file"), f"sqlite:///{copy}"]) == cli.DONE
        assert [each.best_value for each in bl.Study.list(f"sqlite:///{copy}") if each.name == "b"] == [2.0] * again


# Attributes.


def test_attributes_are_merged_and_kept(url, capsys):
    study = bl.Study("s", url, random_search())
    other = bl.Study.load("s", url)
    assert study.attrs == {}
    # Studies of earlier versions do not have these keys.
    assert set(json.loads(store.open_store(url).header("s").definition)) == {"problem", "strategy", "stopping", "seed"}
    study.set_attrs({})
    study.set_attrs({"a": 1, "ü": [10**30, 0.1, None, {"b": -0.0}]})
    other.set_attrs({"a": True})
    study.attrs["lost"] = 1
    study.suggest().observe(0.5)
    expected = {"a": True, "ü": [10**30, 0.1, None, {"b": 0.0}]}
    for each in (study, other, bl.Study.load("s", url), bl.Study("s", url, random_search())):
        assert json.dumps(each.attrs) == json.dumps(expected).replace("0.0", "-0.0")
    assert other.n_trials == 1 and cli.main(["study", "check", url]) == cli.DONE
    capsys.readouterr()
    assert cli.main(["study", "export", url]) == cli.DONE
    assert json.loads(capsys.readouterr().out.splitlines()[0])["definition"]["attrs"] == expected


def test_attributes_of_many_writers_are_all_kept(url):
    bl.Study("s", url, random_search())

    def write(i):
        study = bl.Study.load("s", url)
        for k in range(5):
            study.set_attrs({f"{i} {k}": k})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert bl.Study.load("s", url).attrs == {f"{i} {k}": k for i in range(4) for k in range(5)}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(), values, max_size=3),
    max_leaves=5,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(attrs=st.lists(st.dictionaries(st.text(), JSON, max_size=3), max_size=3))
def test_any_json_data_are_kept(url, attrs):
    if store.open_store(url).header("s") is not None:
        bl.Study.delete("s", url)
    study, expected = bl.Study("s", url, random_search()), {}
    for each in attrs:
        try:
            study.set_attrs(each)
        except bl.errors.InvalidValue:
            with pytest.raises(UnicodeEncodeError):
                json.dumps(each, ensure_ascii=False).encode()
        else:
            expected |= each
    assert json.dumps(bl.Study.load("s", url).attrs) == json.dumps(expected)


@pytest.mark.parametrize("attrs", [{"a": float("nan")}, {1: 2}, [1], "a", {"a": object()}, {"\ud800": 1}])
def test_data_that_are_not_json_are_refused(url, attrs):
    study = bl.Study("s", url, random_search())
    study.set_attrs({"a": 0})
    with pytest.raises(bl.errors.InvalidValue, match=r"attrs.*nothing was changed"):
        study.set_attrs(attrs)
    assert study.attrs == {"a": 0}


# Copies.


def full(url, **arguments):
    """Return a study whose trials have all kinds of data, and the numbers of its finished trials."""
    space = {"x": (0.0, 1.0), "kind": ["a", "b"], "depth": bl.Integer(1, 9, when={"kind": "b"}), "unit": "mg"}
    optimizer = bl.BayesOpt(space, direction="minimize", curve=bl.Curve(3), stopping=None, seed=3, **arguments)
    study = bl.Study("s", url, optimizer, time=lambda: 100.0)
    trials = study.suggest(n=6)
    points = [{"kind": "a"}, {"kind": "b", "depth": 2}, {"kind": "b", "depth": 7}, {"kind": "a"}]
    study.enqueue([{"x": 0.25} | each for each in points])
    trials += study.suggest(n=4)
    study._time = study._optimizer._problem.time = lambda: 200.0
    trials[0].observe(1 / 3, std=0.1, cost=2.5, duration=0.7, params={"x": 0.5, "kind": "a"}, attrs={"ü": [10**30]})
    trials[1].fail(error=ValueError("no such\nkernel"), attrs={"worker": 3}, duration=2.0)
    trials[2].abandon()
    trials[3].report(2.0, 1, attempt=0)
    trials[3].report(3.0, 1, attempt=1)
    trials[3].report(float("nan"), 2)
    trials[3].stop()
    trials[4].report(1.0, 1)
    trials[5].report(1.0, 2)
    trials[5].observe(0.9)
    trials[5].observe(0.8, amend=True)
    for trial in trials[6:9]:
        trial.observe(2.0)
    study.enqueue({"x": 0.5})
    study.set_attrs({"data": "v3"})
    return study


FACTS = ["params", "context", "state", "value", "std", "cost", "duration", "attrs", "fidelity", "started_at"]


def facts(trial):
    curve = {step: repr(value) for step, value in trial.curve.items()}
    return [getattr(trial, name) for name in FACTS] + [curve, trial.finished_at, repr(trial.error)]


@pytest.mark.parametrize("clock", ["iterations", "seconds"])
def test_a_copy_has_all_finished_trials(url, clock, tmp_path):
    study = full(url, clock=clock)
    before = store.open_store(url).events(study._log.id, 0)
    with pytest.warns(bl.BelatedWarning, match=r"has 8 of the 10 trials of 's': 2 \(numbers 4, 9\) are pending$"):
        copy = study.copy("copy")
    expected = [facts(trial) for trial in study.trials if trial.state != "pending"]
    expected[0][0] = study.trial(0).params_run
    assert [facts(trial) for trial in copy.trials] == expected
    assert {trial.state for trial in copy.trials} == {"observed", "failed", "abandoned", "stopped"}
    assert copy.attrs == {"data": "v3"} and copy.best_params_ == study.best_params_
    assert copy.get_params() == study.get_params() | {"space": copy.get_params()["space"]}
    assert repr(copy.domain) == repr(study.domain) and copy._optimizer.seed_ == 3
    # The copy is independent of the study.
    copy.suggest().observe(0.0)
    copy.set_attrs({"data": "v4"})
    assert store.open_store(url).events(study._log.id, 0) == before and study.attrs == {"data": "v3"}
    with pytest.warns(bl.BelatedWarning):
        elsewhere = study.copy("s", store=tmp_path / "other.db")
    again = bl.Study.load("s", elsewhere.store)
    assert [facts(trial) for trial in again.trials] == expected and again.attrs == {"data": "v3"}


def test_a_copy_is_created_in_one_transaction(url, monkeypatch):
    study = bl.Study("s", url, random_search())
    study.add({"x": 0.5}, 1.0)
    study.set_attrs({"data": "v3"})
    opened = type(store.open_store(url))

    def killed(*_):
        raise KeyboardInterrupt

    # Nothing is written after the creation, which has all trials and attributes.
    with monkeypatch.context() as patch:
        patch.setattr(opened, "replace_header", killed)
        patch.setattr(opened, "writing", killed)
        copy = study.copy("copy")
    assert copy.attrs == {"data": "v3"} and copy.n_trials == 1
    copy.set_attrs({"data": "v4", "more": 1})
    assert bl.Study.load("copy", url).attrs == {"data": "v4", "more": 1} and study.attrs == {"data": "v3"}
    # Another process creates a study of this name after the name was found to be free.
    real = opened.header

    def overtaken(self, name):
        found = real(self, name)
        if name == "late":
            monkeypatch.setattr(opened, "header", real)
            bl.Study("late", url, random_search())
        return found

    monkeypatch.setattr(opened, "header", overtaken)
    with pytest.raises(bl.errors.InvalidSetting, match="study 'late' exists already in .*: pass another name"):
        study.copy("late")
    assert bl.Study.load("late", url).n_trials == 0 and bl.Study.load("late", url).attrs == {}


def test_trials_outside_the_new_space_are_left_out(url):
    study = full(url)
    space = {"x": (0.2, 3.0), "kind": ["b", "a", "c"], "depth": bl.Integer(1, 5, when={"kind": "b"}), "new": 7}
    with pytest.warns(bl.BelatedWarning) as warned:
        copy = study.copy("copy", space)
    fitting = [
        trial.number
        for trial in study.trials
        if trial.state != "pending" and trial.params_run["x"] >= 0.2 and trial.params_run.get("depth", 1) <= 5
    ]
    outside = [trial.number for trial in study.trials if trial.state != "pending" and trial.number not in fitting]
    assert fitting and outside
    numbers = f"number{'s' * (len(outside) > 1)} {', '.join(map(str, outside))}"
    assert f"{len(outside)} ({numbers}) do not belong to the space" in str(warned[0].message)
    old = [{name: value for name, value in study.trial(i).params_run.items() if name != "unit"} for i in fitting]
    assert [trial.params for trial in copy.trials] == [
        {name: params[name] for name in ("x", "kind", "depth") if name in params} | {"new": 7} for params in old
    ]
    assert [trial.value for trial in copy.trials] == [study.trial(i).value for i in fitting]
    assert copy.predict([{"x": 2.9, "kind": "c"}])[0].shape == (1,)


@pytest.mark.parametrize(
    ("space", "n"),
    [
        ({"x": (0.0, 1.0)}, 0),  # y is missing, and was not a constant
        ({"x": (0.0, 1.0), "y": (0, 9), "z": (0.0, 1.0)}, 0),  # the value of z is not known
        ({"x": (0.0, 1.0), "y": bl.Integer(3, 9)}, 2),
        ({"x": (0.0, 1.0), "y": 4}, 1),
        ({"x": bl.Real(0.3, 1.0, log=True), "y": (0, 9)}, 1),
    ],
)
def test_which_points_belong_to_a_space(space, n):
    memory = store.memory.MemoryStore()
    study = bl.Study("s", memory, bl.RandomSearch({"x": (0.0, 1.0), "y": (0, 9)}, seed=0))
    study.add([{"x": 0.1, "y": 2}, {"x": 0.2, "y": 3}, {"x": 0.3, "y": 4}], [1.0, 2.0, 3.0])
    with pytest.warns(bl.BelatedWarning, match=f"'t' has {n} of the 3 trials of 's'"):
        assert study.copy("t", space, drop=True).n_trials == n


def test_many_trials_that_are_left_out_are_not_all_named():
    study = bl.Study("s", store.memory.MemoryStore(), random_search())
    study.suggest(n=30)
    with pytest.warns(bl.BelatedWarning, match=r"30 \(numbers 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …\) are pending"):
        study.copy("t")


def test_copies_of_candidates_contexts_and_fidelities(url):
    optimizer = bl.RandomSearch(
        candidates=[[1.0], [2.0], [4.0]], context={"t": (0.0, 1.0)}, fidelity=bl.Fidelity(1, 9, log=True), seed=0
    )
    study = bl.Study("s", url, optimizer)
    study.suggest(context={"t": 0.5}, fidelity=3).observe(2.0, params=1)
    study.add([2, 0], [1.0, 5.0], context={"t": 0.25}, fidelity=[9, 1])
    copy = study.copy("copy")
    assert [facts(trial)[1:] for trial in copy.trials] == [facts(trial)[1:] for trial in study.trials]
    assert [trial.index for trial in copy.trials] == [1, 2, 0] and copy.best_value_ == study.best_value_ == 1.0
    with pytest.raises(bl.errors.InvalidSpace):
        study.copy("other", {"x": (0.0, 1.0)})


@pytest.mark.parametrize("kind", ["BPEDelay", "TreeSearch"])
def test_copies_of_other_optimizers(kind):
    arguments = {"horizon": 20, "lengthscale": 0.3, "noise_std": 0.1, "n_points": 9, "delay": "none"}
    optimizer = getattr(bl, kind)({"x": (0.0, 1.0)}, seed=0, **(arguments if kind == "BPEDelay" else {}))
    study = bl.Study("s", store.memory.MemoryStore(), optimizer)
    for trial in study.suggest(n=4):
        trial.observe(trial.params["x"])
    copy = study.copy("copy")
    assert [trial.params for trial in copy.trials] == [trial.params for trial in study.trials]
    assert copy.suggest().number == 4


def test_copies_that_are_refused(url):
    study = bl.Study("s", url, random_search(constraints=[lambda params: params["x"] < 0.5]))
    study.add({"x": 0.25}, 1.0)
    for name in ("s", "", 3, "a\n", "\ud800"):
        with pytest.raises(bl.errors.InvalidSetting):
            study.copy(name)
    assert [each.name for each in bl.Study.list(url)] == ["s"] and study.n_trials == 1
    with pytest.raises(bl.errors.InvalidSpace, match="space"):
        study.copy("t", {"x": (1.0, 0.0)})
    with pytest.raises(bl.errors.InvalidSetting, match="store="):
        study.copy("t", store="mysql:///x")
    with pytest.raises(bl.errors.InvalidSetting, match=r"copy has to keep to them: open it with Study.load"):
        bl.Study.load("s", url).copy("t")
    assert store.open_store(url).names() == ["s"]
    copy = study.copy("t")
    assert all(trial.params["x"] < 0.5 for trial in copy.suggest(n=5))
    with pytest.raises(bl.errors.InvalidSetting, match="constraints"):
        bl.Study.load("t", url).suggest()


def test_delete_command(url, capsys):
    for name in ("a", "b"):
        bl.Study(name, url, random_search())
    assert cli.main(["study", "delete", url, "a"]) == cli.DONE
    assert capsys.readouterr().out == "a: deleted\n" and store.open_store(url).names() == ["b"]
    assert cli.main(["study", "delete", url, "a"]) == cli.FAILED
    assert "there is no study 'a'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["study", "delete", url])
