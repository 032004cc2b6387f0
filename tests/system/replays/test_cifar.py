"""The replay cifar. The tests of the replay's workers do not need torch; the small replays need torch."""

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import belated as bl
from belated import replays
from belated.replays import cifar, images
from belated.replays.runner import Options
from tests.system.replays.digits import folder_of_digits

pytest.importorskip("tqdm")

REPLAY = replays.found()["cifar"]


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A folder with a few digits, and settings for networks with few filters."""
    pytest.importorskip("torch", reason="torch is not installed: pip install 'belated[torch]'")
    images.cifar_or_digits.cache_clear()
    monkeypatch.setattr(cifar, "N_INITIAL", 2)
    monkeypatch.setattr(cifar, "FILTERS", (2, 6))
    return folder_of_digits(tmp_path, 40)


class Diary:
    """Return an objective that records when each trial starts and ends; trial 0 may wait for an event."""

    def __init__(self, first_waits_for=None):
        self.events, self.lock, self.first_waits_for = [], threading.Lock(), first_waits_for

    def __call__(self, params, trial=None, **kwargs):
        number = -1 if trial is None else trial.number
        with self.lock:
            self.events.append(("start", number))
        if number == 0 and self.first_waits_for is not None:
            assert self.first_waits_for.wait(timeout=60)
        with self.lock:
            self.events.append(("end", number))
            if self.first_waits_for is not None and len(self.events) >= 16:
                self.first_waits_for.set()
        return 0.5 - 0.01 * abs(number - 2)


def random_search():
    return bl.RandomSearch(cifar.space(), seed=0)


def test_synchronous_workers_wait_for_the_slowest():
    diary = Diary()
    with ThreadPoolExecutor(3) as pool:
        found = cifar.search(random_search(), diary, pool, 3, 60.0, 7)
    for batch in ({0, 1, 2}, {3, 4, 5}, {6}):
        events, diary.events = diary.events[: 2 * len(batch)], diary.events[2 * len(batch) :]
        assert {number for _, number in events} == batch
    assert diary.events == [("start", -1), ("end", -1)]  # the best network is trained longer afterwards
    assert sorted(found.values) == pytest.approx(sorted(0.5 - 0.01 * abs(n - 2) for n in range(7)))


def test_asynchronous_workers_start_at_once():
    diary = Diary(first_waits_for=threading.Event())
    with ThreadPoolExecutor(3) as pool:
        found = cifar.search(random_search(), diary, pool, None, 60.0, 12)
    ends = [number for what, number in diary.events if what == "end" and number >= 0]
    assert ends.index(0) >= 7  # two workers continued while trial 0 was in flight on the third worker
    assert len(found.values) == 12 and found.arrivals == sorted(found.arrivals)


@pytest.mark.parametrize("batch", [None, 2])
def test_a_search_ends_when_its_time_is_up(batch):
    optimizer, diary = random_search(), Diary()
    with ThreadPoolExecutor(2) as pool:
        found = cifar.search(optimizer, diary, pool, batch, 0.2, None)
    assert 0 < len(found.values) == sum(trial.value is not None for trial in optimizer.trials)


def test_ctrl_c_ends_the_replay_and_not_one_run_of_it():
    def interrupted(params, trial=None):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cifar.search(random_search(), interrupted, None, None, 60.0, 3)


def test_a_curve_is_the_best_of_the_arrived_results():
    runs = [
        cifar.Search(0.0, [1.0, 2.0, 4.0], [0.2, 0.5, 0.4], [1.0, 1.0, 2.0], 0.6),
        cifar.Search(0.0, [3.0], [0.3], [3.0], 0.8),
    ]
    setting = cifar.summarise("asyTS", runs, np.arange(5.0))
    np.testing.assert_allclose(setting["curve_mean"], [np.nan, np.nan, np.nan, 40.0, 40.0])
    assert setting["validation_mean"] == pytest.approx(40.0)
    assert setting["validation_stderr"] == pytest.approx(10 / 2**0.5)
    assert (setting["test_mean"], setting["evaluations"]) == (pytest.approx(70.0), [3, 1])


def test_the_table_is_empty_for_methods_without_a_finished_network():
    ready = cifar.Search(0.0, [1.0], [0.5], [1.0], 0.6)
    times = np.arange(3.0)
    settings = [
        cifar.summarise(*each, times) for each in (("synTS", [cifar.Search(0.0, [], [], [])]), ("asyTS", [ready]))
    ]
    report = {"settings": settings, "times": times, "workers": 4, "runs": 1, "images": "digits"}
    *_, none, some = cifar.table(report).splitlines()
    assert none.split() == ["synTS", "0", "-", "0"]
    assert some.split()[-3:] == ["60.00", "±", "0.00"]


def test_the_cifar_replay_end_to_end(small, tmp_path):
    pytest.importorskip("matplotlib")
    report = REPLAY.run(Options(runs=1, iterations=2, workers=0, data=small))
    text = cifar.table(report)
    assert text.startswith("MNIST's 40 test digits, which stand in for CIFAR-10")
    assert all(f"\n{algorithm} " in text for algorithm in cifar.ALGORITHMS)
    assert [setting["evaluations"] for setting in report["settings"]] == [[4]] * 6
    REPLAY.draw(report, tmp_path / "cifar.png")
    assert (tmp_path / "cifar.png").read_bytes().startswith(b"\x89PNG")


def test_real_processes_train_real_networks(small, monkeypatch):
    monkeypatch.setattr(cifar, "ALGORITHMS", ("asyRAND",))
    report = REPLAY.run(Options(runs=1, iterations=1, workers=2, data=small))
    (setting,) = report["settings"]
    assert setting["evaluations"] == [3]
    # The same networks are trained in this process, because the values do not depend on the process.
    train = partial(cifar.evaluate, data=small, scale=cifar.SMALL, seed=cifar.seed_of(0, "training", 0))
    first = cifar.initial_points(np.random.default_rng(cifar.seed_of(0, "initial", 0)))[0]
    here = train(first, bl.RunningTrial(0, first))
    assert any(value == pytest.approx(here) for value in setting["accuracy_per_run"][0])
