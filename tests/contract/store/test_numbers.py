"""In every column, numbers are read from a store with the same bits with which they were written."""

import itertools
import math
import struct

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import belated as bl
from belated import store
from belated.store import checksums
from belated.study.commands import event_line, header_line
from belated.study.exported import read_exported

LARGEST = 1.7976931348623157e308
NUMBERS = st.sampled_from([-0.0, 0.0, 5e-324, -5e-324, 1e-310, 1e308, -LARGEST, 2.0**53 + 2, -(2.0**63), 1 / 3])
NUMBERS |= st.floats(allow_nan=False, allow_infinity=False)
INTEGERS = st.sampled_from([2**53 + 1, -(2**63), 2**64 + 1, 10**30, 0]) | st.integers()
NAMES = map("study {}".format, itertools.count())


@pytest.fixture(params=["sqlite", "postgresql"])
def stores(request, tmp_path, monkeypatch):
    """The URLs of two empty stores of one kind."""
    if request.param == "sqlite":
        return [store.open_store(tmp_path / name) for name in ("one.db", "other.db")]
    return [store.open_store(request.getfixturevalue("postgres").url()), store.open_store(tmp_path / "other.db")]


def bits(value):
    """Convert data so that floats are equal only if they have the same bits; 0.0 and -0.0 differ."""
    if isinstance(value, dict):
        return {name: bits(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [bits(each) for each in value]
    return struct.pack("d", value).hex() if isinstance(value, float) else value


def facts(study):
    """Return all data of a study's trials; floats are given by their bits."""
    names = ["params", "params_run", "state", "value", "std", "cost", "duration", "attrs", "suggested_at", "ended_at"]
    return bits([[getattr(trial, name) for name in names] for trial in study.trials])


def lines_of(opened, name):
    """Return the lines of a study as `belated study export` prints them."""
    header = opened.header(name)
    checksums.read_header(header)
    records = checksums.verified(name, header.id, 0, opened.events(header.id, 0))
    return [header_line(header, len(records), 1), *(event_line(name, header.id, record) for record in records)]


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(time=NUMBERS, value=NUMBERS, amount=NUMBERS.map(abs), whole=INTEGERS, bound=NUMBERS, kind=st.integers(0, 2))
@example(time=-0.0, value=-0.0, amount=-0.0, whole=2**53 + 1, bound=-0.0, kind=1)
def test_any_numbers_survive_reading_export_and_import(stores, time, value, amount, whole, bound, kind):
    opened, other = stores
    name = next(NAMES)
    high = max(bound, -1e307) + max(1.0, abs(bound) / 8)
    choices = [whole, value, "a"] if whole != value else [whole, "a", "b"]
    space = {"x": bl.Real(min(bound, 1e307), min(high, 1e308)), "kind": choices}
    clock = time if abs(time) < 1e300 else math.copysign(1e300, time)
    optimizer = bl.RandomSearch(space, clock="seconds", seed=0)
    study = bl.Study(name, opened, optimizer, time=lambda: clock)
    first = study.suggest(n=2)[0]
    report = {"std": amount, "cost": amount, "duration": amount, "attrs": {"a": [whole, value, {"b": amount}]}}
    study.observe(first, value, params={"x": min(bound, 1e307), "kind": choices[kind]}, **report)
    again = bl.Study.load(name, store.open_store(opened.url), time=lambda: clock)
    assert facts(again) == facts(study)
    trial = again.trial(0)
    expected = [value, amount, amount, amount, [whole, value, {"b": amount}]]
    assert bits([trial.value, trial.std, trial.cost, trial.duration, trial.attrs["a"]]) == bits(expected)
    assert repr(again.domain) == repr(optimizer.domain)
    lines = lines_of(opened, name)
    assert other.create_all(read_exported(lines, None, other)) == []
    assert lines_of(other, name) == lines
    assert facts(bl.Study.load(name, other)) == facts(study)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=NUMBERS)
@example(at=-0.0)
def test_records_of_any_time_are_intact_when_they_are_read(stores, at):
    opened, name = stores[0], next(NAMES)
    id = int(name.split()[1])
    header = checksums.header(id, name, {"problem": {}, "strategy": {"kind": "none"}, "stopping": None, "seed": 0}, at)
    opened.create(header, [checksums.with_checksum(id, 0, None, at, "{}")])
    with opened.writing(id) as log:
        log.append([checksums.with_checksum(id, seq, None, at, "{}") for seq in (1, 2)])
    again = store.open_store(opened.url)
    assert checksums.read_header(again.header(name))
    found = checksums.verified(name, id, 0, again.events(id, 0))
    assert [bits(record.at + 0.0) for record in found] == [bits(at + 0.0)] * 3
