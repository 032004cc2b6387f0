"""The events that a study has read are replaced all at once; after an interrupted call, the study reads its events
again."""

import gc

import pytest

import belated as bl
from belated._core import Action, Observation
from belated.study import shared_log
from belated.study.history import History
from belated.study.shared_log import SharedLog


def test_a_log_is_replaced_completely_or_not_at_all():
    core, other = (bl.RandomSearch({"x": (0.0, 1.0)}, seed=seed)._log for seed in (0, 1))
    core.suggest(2, None, None)
    other.suggest(3, None, None)
    events, others = core.events(0), other.events(0)
    with pytest.raises(bl.BelatedError):
        core.replace([*others, others[0].replace('"Suggested"', '"Resulted"')])
    assert core.events(0) == events
    assert core.replace(others) == [0, 1, 2] and core.events(0) == others and len(core) == 3


def test_the_log_is_read_again_after_an_interrupt_between_core_and_notes(tmp_path, monkeypatch):
    store = f"sqlite:///{tmp_path / 's.db'}"
    study = bl.Study("s", store, bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))
    other = bl.Study.load("s", store)
    other.observe(other.suggest(key="first"), 0.5, key="value")
    note, interrupted = History.note, []

    def interrupt(history, records, numbers):
        if not interrupted:
            interrupted.append(1)
            raise KeyboardInterrupt
        note(history, records, numbers)

    monkeypatch.setattr(History, "note", interrupt)
    with pytest.raises(KeyboardInterrupt):
        study.sync()
    assert study._log.core.n_events() == 2
    assert study.suggest(key="first").number == 0 and study.n_trials == 1
    study.observe(0, 0.5, key="value")
    assert study._log.n_events() == 2 and study._log.history.changed(1) == [0]


def test_a_log_last_read_long_ago_is_read_before_the_write_lock(tmp_path, monkeypatch):
    store = f"sqlite:///{tmp_path / 's.db'}"
    study = bl.Study("s", store, bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))
    other = bl.Study.load("s", store)
    trial = study.suggest()
    other.suggest(n=5)
    read = []
    apply_new = SharedLog._apply_new

    def note(log, read_from):
        read.append(apply_new(log, read_from))
        return read[-1]

    monkeypatch.setattr(SharedLog, "_apply_new", note)
    monkeypatch.setattr(shared_log, "_LONG_AGO", -1.0)
    study._log.submit(lambda *_: [Action.observe(trial.number, Observation(0.5), False, False)], None)
    assert read == [5, 0]


def test_known_events_are_not_tracked_by_the_garbage_collector(tmp_path):
    store = f"sqlite:///{tmp_path / 's.db'}"
    study = bl.Study("s", store, bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))
    other = bl.Study.load("s", store)
    gc.collect()
    before = len(gc.get_objects())
    for call in range(20):
        other.suggest(n=10, key=f"suggest {call}")
        other.observe(10 * call, 0.5, key=f"observe {call}")
    study.sync()
    gc.collect()
    assert study._log.n_events() == 220 and len(gc.get_objects()) < before + 50
