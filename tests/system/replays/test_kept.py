"""Replays that train networks, and store their finished runs. The tests replace the training by a function, so they do
not need torch."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from belated import replays
from belated.replays import cifar, cnn, runner
from belated.replays.images import Images
from belated.replays.report import write_json
from belated.replays.runner import Options, kept_map, kept_name

pytest.importorskip("tqdm")

REPLAYS = [replays.found()[name] for name in ("cnn", "cifar")]


@pytest.fixture
def trained(monkeypatch):
    """A list that collects the params of every training, in both replays."""
    listed = []
    digits = Images(np.zeros((30, 1, 28, 28), np.uint8), np.zeros(30, np.int64))

    def accuracy_of(params):
        listed.append(params)
        return 0.5 + 0.4 * math.sin(sum(params.values()))

    monkeypatch.setattr(cnn, "mnist", lambda data: (digits, digits, "MNIST"))
    monkeypatch.setattr(cnn, "accuracy", lambda data, seed, **params: accuracy_of(params))
    monkeypatch.setattr(cifar, "cifar_or_digits", lambda data, sizes: (digits, digits, digits, "MNIST"))
    monkeypatch.setattr(cifar, "evaluate", lambda params, trial=None, **settings: accuracy_of(params))
    monkeypatch.setattr(cifar, "N_INITIAL", 2)
    return listed


def untimed(report):
    """Return a report as JSON data without the entries that depend on the speed of the machine."""
    timed = ("times", "seconds_per_suggestion", "seconds_per_evaluation", "curve_mean", "curve_stderr")
    timed += ("arrival_per_run",)
    settings = [{k: v for k, v in setting.items() if k not in timed} for setting in report["settings"]]
    return {k: v for k, v in report.items() if k not in timed} | {"settings": settings}


@pytest.mark.parametrize("replay", REPLAYS, ids=lambda replay: replay.name)
def test_kept_runs_are_not_computed_again(replay, trained, tmp_path):
    options = Options(runs=2, iterations=2, workers=0, keep=tmp_path / "kept")
    report = replay.run(options)
    n_trained, n_files = len(trained), len(list(options.keep.iterdir()))
    assert n_files == 2 * (12 if replay.name == "cnn" else 6)
    again = replay.run(options)
    assert len(trained) == n_trained
    np.testing.assert_equal(again, report)
    # Apart from times, this report equals the report of a replay that does not store its runs.
    np.testing.assert_equal(untimed(replay.run(replace(options, keep=None))), untimed(report))


@pytest.mark.parametrize("replay", REPLAYS, ids=lambda replay: replay.name)
def test_a_replay_continues_with_the_missing_runs(replay, trained, tmp_path):
    options = Options(runs=1, iterations=2, workers=0, keep=tmp_path)
    replay.run(options)
    first = {file.name: file.read_text() for file in tmp_path.iterdir()}
    per_run = len(trained) // len(first)
    lost = sorted(first)[3]
    (tmp_path / lost).unlink()
    trained.clear()
    replay.run(replace(options, runs=2))
    assert len(trained) == per_run * (1 + len(first))
    assert all((tmp_path / name).read_text() == text for name, text in first.items() if name != lost)


@pytest.mark.parametrize("replay", REPLAYS, ids=lambda replay: replay.name)
def test_all_settings_make_their_first_run_before_any_makes_its_second(replay, trained, monkeypatch):
    made = []

    def noted(function, tasks, *others):
        made.extend(tasks)
        return kept_map(function, tasks, *others)

    monkeypatch.setattr(runner, "kept_map", noted)
    replay.run(Options(runs=2, iterations=1, workers=0))
    runs = [name.rpartition("_run")[2] for name in made]
    assert runs == sorted(runs) and set(runs) == {"0", "1"}


def test_names_of_kept_runs_tell_them_apart():
    setting, options = ("asyTS", "branin"), Options(iterations=3)
    names = [kept_name(setting, 0, options), kept_name(setting, 1, options), kept_name(("asyEI", "branin"), 0, options)]
    names += [kept_name(setting, 0, replace(options, **{k: 4})) for k in ("seed", "iterations", "faithful")]
    names += [kept_name(setting, 0, options, ["n30"]), kept_name(setting, 0, options, ["n40"])]
    assert len(set(names)) == 8


@pytest.mark.parametrize("replay", REPLAYS, ids=lambda replay: replay.name)
def test_names_of_kept_runs_identify_the_images(replay, trained, tmp_path):
    replay.run(Options(runs=1, iterations=1, workers=0, keep=tmp_path))
    assert all("30" in file.name for file in tmp_path.iterdir())


def test_stored_runs_keep_nan_and_none(tmp_path):
    nothing = cifar.Search(7.0, [], [], [])
    some = cifar.Search(7.0, [1.0, 2.5], [0.5, 0.1], [1.0, math.nan], 0.25)
    for found in (nothing, some):
        write_json(found.result(), tmp_path / "kept.json")
        kept = cifar.Search.from_result(json.loads((tmp_path / "kept.json").read_text()))
        np.testing.assert_equal(vars(kept), vars(replace(found, started=0.0)))
