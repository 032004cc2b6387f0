"""Answers that take long: charts are thinned, models are used beside the study's turn and in a share of the time."""

import threading
import time

import anyio
import numpy as np
import pytest

import belated as bl
from tests.system.serve.test_api import ok, refused

pytest.importorskip("fastapi")

from belated.serve import answers, studies  # noqa: E402
from belated.serve.messages import Chart  # noqa: E402
from belated.store import open_store  # noqa: E402


def chart_of(client, path, **query):
    """The points of a chart, by the number of their trial."""
    chart = ok(client.get(f"{path}/chart", params=query))
    columns = [chart[name] for name in ("number", "value", "kind", "best")]
    return chart, {number: tuple(rest) for number, *rest in zip(*columns, strict=True)}


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_chart_has_the_best_values_so_far(client, create, path, direction):
    study = create(bl.RandomSearch({"x": (0.0, 1.0)}, direction=direction, seed=0))
    study.suggest(n=6)
    arrivals = [(4, 2.0), (1, 3.0), (5, 1.0), (0, 3.0), (2, 0.5)]
    for number, value in arrivals:
        study.observe(number, value)
    best = {"minimize": {4, 5, 2}, "maximize": {4, 1}}[direction]
    chart, points = chart_of(client, path)
    assert list(points) == [number for number, _ in arrivals]
    assert points == {number: (value, 0, number in best) for number, value in arrivals}
    assert (chart["total"], chart["n_best"], chart["order"]) == (5, len(best), "changed")
    assert chart["events"] == study._log.n_events() and chart["low"] is chart["high"] is chart["outcome"] is None
    # By number, other values are the best so far.
    best = {"minimize": {0, 2}, "maximize": {0}}[direction]
    chart, points = chart_of(client, path, order="number")
    assert list(points) == [0, 1, 2, 4, 5] and {number for number, each in points.items() if each[2]} == best
    refused(client.get(f"{path}/chart", params={"order": "x"}), 422, "order")
    refused(client.get(f"{path}/chart", params={"outcome": "x"}), 422, "outcome")


def test_a_chart_of_an_outcome_has_its_bounds(client, create, path):
    outcomes = {"yield": "maximize", "cost": bl.AtMost(4.0)}
    study = create(bl.RandomSearch({"x": (0.0, 1.0)}, outcomes=outcomes, seed=0))
    for trial, (gain, cost) in zip(study.suggest(n=4), [(1.0, 3.0), (9.0, 5.0), (2.0, 4.0), (3.0, None)], strict=True):
        trial.observe({"yield": gain, "cost": cost})
    study.observe(study.suggest(), {"yield": 99.0, "cost": 1.0}, params={"x": 1.5})
    chart, points = chart_of(client, path)
    assert chart["outcome"] == "yield" and {number for number, each in points.items() if each[2]} == {0, 2}
    assert points[4] == (99.0, 1, False) and points[3] == (3.0, 0, False)
    chart, points = chart_of(client, path, outcome="cost")
    assert (chart["low"], chart["high"], chart["n_best"]) == (None, 4.0, 0) and list(points) == [0, 1, 2, 4]


def test_a_thinned_chart_keeps_what_matters(tmp_path, monkeypatch):
    study = bl.Study("s", tmp_path / "s.db", bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))
    values = np.random.default_rng(0).normal(size=3000)
    values[1234], values[2345] = -100.0, 100.0
    study.add([{"x": 0.5}] * 3000, values.tolist())
    study.observe(study.suggest(), 5.0, params={"x": 1.5})
    whole = answers.chart_as_data(study, Chart())
    assert len(whole["value"]) <= answers.MOST_POINTS == 2000 and whole["total"] == 3001
    monkeypatch.setattr(answers, "MOST_POINTS", 100)
    chart = answers.chart_as_data(study, Chart())
    assert 90 <= len(chart["value"]) <= 100 and chart["total"] == 3001
    assert {0, 1234, 2345, 3000} <= set(chart["number"]) and chart["kind"][-1] == 1
    steps = [value for value, best in zip(chart["value"], chart["best"], strict=True) if best]
    expected = np.unique(np.maximum.accumulate(values))
    assert steps == expected.tolist() and chart["n_best"] == len(steps)
    assert chart["number"] == sorted(chart["number"])
    # With more steps than points, the first and the last remain.
    rising = bl.Study("r", tmp_path / "s.db", bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))
    rising.add([{"x": 0.5}] * 1000, np.arange(1000.0).tolist())
    chart = answers.chart_as_data(rising, Chart())
    assert len(chart["value"]) <= 100 and chart["n_best"] == 1000 and chart["number"][0] == 0
    assert chart["number"][-1] == 999 and chart["best"][-1]


def test_a_share_of_the_time_is_kept(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(studies.time, "monotonic", lambda: now[0])
    share = studies.Share(0.05)
    assert share.is_free()
    with share.used():
        assert not share.is_free()
        now[0] += 2.0
    used, total = 2.0, 2.0
    for _ in range(50):
        while not share.is_free():
            now[0] += 0.25
        with share.used():
            now[0] += 0.5
        used += 0.5
    assert 0.045 <= used / now[0] <= 0.0525 + total / now[0]
    # Calls that do not wait for the share are paid for later.
    start = now[0]
    for _ in range(3):
        with share.used():
            now[0] += 1.0
    while not share.is_free():
        now[0] += 0.25
    assert now[0] - start == pytest.approx(60, abs=12)


@pytest.fixture
def opened(tmp_path):
    """A study, and an object that serves its store."""
    url = f"sqlite:///{tmp_path / 's.db'}"
    study = bl.Study("s", url, bl.BayesOpt({"x": (0.0, 1.0)}, seed=0))
    study.observe(study.suggest(), 1.0)
    return study, studies.OpenStudies(open_store(url))


def events(study):
    return study._current_log().n_events()


def test_an_estimate_is_computed_again_after_a_change_if_there_is_time(opened):
    study, served = opened
    calls = []

    def work(given):
        given.sync()
        calls.append(given)
        return str(events(given)).encode()

    async def ask(name="a"):
        return await served.estimate("s", studies.Estimate(name, work, events))

    async def steps():
        first = await ask()
        assert await ask() == first and len(calls) == 1
        study.suggest()
        now = time.monotonic()
        share = served._shares[True]
        share._free_at = now + 1000
        assert await ask() == first and len(calls) == 1
        # An estimate that does not change does not wait for the share, and one that does waits for a short time.
        share._free_at = now + studies.LONGEST_WAIT - 0.1
        assert await ask("b") == await ask("b") and len(calls) == 2
        start = time.monotonic()
        share._free_at = start + 0.2
        second = await ask()
        assert second != first and len(calls) == 3 and time.monotonic() >= start + 0.2
        study.suggest()
        share._free_at = time.monotonic() + 1000
        assert await ask() == second and len(calls) == 3
        # The first estimate of another kind does not wait.
        await ask("c")
        assert len(calls) == 4
        share._free_at = now
        assert await ask() != second and len(calls) == 5
        # A call without a name is made each time.
        await ask(None)
        await ask(None)
        assert len(calls) == 7

    anyio.run(steps)
    # The model belongs to a copy of the study, which reads the same log.
    assert len({id(each) for each in calls}) == 1 and calls[0] is not served._open["s"].study


def test_reports_do_not_wait_for_estimates(opened):
    _, served = opened
    computing, reported = threading.Event(), threading.Event()

    def work(given):
        computing.set()
        assert reported.wait(30)
        return b"x"

    async def report():
        while not computing.is_set():
            await anyio.sleep(0.01)
        await served.call("s", lambda study: study.observe(study.suggest(), 2.0))
        # Another request gets the last answer, or waits for the first.
        reported.set()

    async def steps():
        async with anyio.create_task_group() as group:
            group.start_soon(report)
            assert await served.estimate("s", studies.Estimate("a", work, events)) == b"x"

    anyio.run(steps)


def test_a_study_that_was_created_again_has_new_estimates(opened):
    study, served = opened

    async def ask():
        work = studies.Estimate("a", lambda given: str(given._log.id).encode(), events)
        return await served.estimate("s", work)

    assert anyio.run(ask) == str(study._log.id).encode()
    bl.Study.delete("s", study.store)
    again = bl.Study("s", study.store, bl.BayesOpt({"x": (0.0, 1.0)}, seed=0))
    served._open.clear()
    assert anyio.run(ask) == str(again._log.id).encode()


def test_an_estimate_contains_the_events_of_the_time_in_which_it_waited(opened):
    study, served = opened

    async def ask():
        work = studies.Estimate("a", lambda given: str((given.sync(), events(given))[1]).encode(), events)
        return await served.estimate("s", work)

    async def steps():
        await ask()
        study.suggest()
        served._shares[True]._free_at = time.monotonic() + 0.3
        async with anyio.create_task_group() as group:

            async def report():
                await anyio.sleep(0.1)
                await anyio.to_thread.run_sync(study.suggest)

            group.start_soon(report)
            assert await ask() == str(events(study)).encode()
        # The answer belongs to the events that it contains.
        share = served._shares[True]
        share._free_at = time.monotonic() + 1000
        assert served._open["s"].estimates["a"][0][1] == events(study)

    anyio.run(steps)


def test_a_study_that_is_deleted_while_an_estimate_waits_is_unknown(opened):
    study, served = opened
    asked = studies.Estimate("a", lambda given: b"x", events)

    async def steps():
        await served.estimate("s", asked)
        study.suggest()
        served._shares[True]._free_at = time.monotonic() + 0.3
        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:

                async def delete():
                    await anyio.sleep(0.1)
                    await anyio.to_thread.run_sync(bl.Study.delete, "s", study.store)

                group.start_soon(delete)
                with pytest.raises(studies.UnknownStudy):
                    await served.estimate("s", asked)

    anyio.run(steps)


def test_short_estimates_are_made_in_the_turn(opened):
    _, served = opened

    async def ask():
        work = studies.Estimate("a", lambda given: str(given is served._open["s"].study).encode(), lambda _: None)
        return await served.estimate("s", work)

    assert anyio.run(ask) == b"True" and served._open["s"].copy is None
