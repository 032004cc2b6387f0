"""A report's cost, duration, attributes and errors are stored and copied if they are valid; otherwise an error is
raised."""

import json
import math
import pickle
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import belated as bl
from belated._core import Action
from belated.optimizers.report import TrialError
from tests.unit.optimizers.problem import BOX, ROWS, both

# Text that UTF-8 cannot encode raises an error.
TEXT = st.text(st.characters(codec="utf-8"))
PLAIN = st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False)
DATA = st.recursive(
    PLAIN | TEXT, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=8
)
ATTRS = st.dictionaries(TEXT, DATA, max_size=3)


def one(kind=bl.RandomSearch, **arguments):
    opt = kind(BOX, seed=0, **arguments)
    return opt, opt.suggest()


def exactly(value):
    """Convert data to text, in which 1, 1.0 and True differ."""
    return json.dumps(value)


@given(st.lists(ATTRS, max_size=3), ATTRS)
def test_attrs_are_kept_exactly_and_merged(reports, last):
    opt, trial = one()
    expected = {}
    for k, attrs in enumerate([*reports, last]):
        expected |= attrs
        trial.observe(float(k), attrs=attrs, amend=k > 0)
    assert exactly(trial.attrs) == exactly(expected)
    trial.attrs["mine"] = 1
    assert exactly(opt.trial(0).attrs) == exactly(expected)


def test_numpy_scalars_and_tuples_in_attrs_become_plain_values():
    _, trial = one()
    trial.observe(1.0, attrs={"a": np.float32(0.5), "b": np.int64(3), "c": np.bool_(True), "d": (1, np.array(2.0))})
    assert exactly(trial.attrs) == '{"a": 0.5, "b": 3, "c": true, "d": [1, 2.0]}'


def nested(depth):
    data = 1
    for _ in range(depth):
        data = [data]
    return data


endless = {}
endless["self"] = endless


class Hostile:
    """An object whose text cannot be computed."""

    def __str__(self):
        raise ZeroDivisionError

    __repr__ = __str__


class Unreadable(dict):
    """A mapping whose entries cannot be read."""

    def items(self):
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("attrs", "named", "kept"),
    [
        (3, r"=3 is not a mapping", {}),
        ([("a", 1)], r"=.* is not a mapping", {}),
        ("a", r"='a' is not a mapping", {}),
        ({1: 2}, r" has the key 1: pass a string", {"1": 2}),
        ({"a": {None: 2}, "b": 3}, r"\['a'\] has the key None", {"a": {"None": 2}, "b": 3}),
        ({"a": math.nan, "b": True}, r"\['a'\]=nan is not JSON data", {"a": None, "b": True}),
        ({"a": [0, math.inf]}, r"\['a'\]\[1\]=inf", {"a": [0, None]}),
        ({"a": {"b": 1j}}, r"\['a'\]\['b'\]=1j", {"a": {"b": "1j"}}),
        ({"a": np.zeros(2)}, r"\['a'\]=array.*tolist", {"a": [0.0, 0.0]}),
        ({"a": {1}}, r"\['a'\]=\{1\}", {"a": "{1}"}),
        ({"a": datetime(2026, 1, 2)}, r"\['a'\]=datetime", {"a": "2026-01-02 00:00:00"}),
        ({"a": Path("b/c")}, r"\['a'\]=", {"a": str(Path("b/c"))}),
        ({"a": b"x" * 9000}, r"\['a'\]=b'xx", None),
        ({"a": 10**400}, r"\['a'\]=1000", {"a": str(10**400)}),
        ({"a": 10**5000}, r"\['a'\]=", {"a": "(its text raised ValueError)"}),
        ({"a": "\ud800"}, r"\['a'\]=", {"a": "\\ud800"}),
        ({"\ud800": 1}, r" has the key", {"\\ud800": 1}),
        ({"a": nested(200), "b": 1}, r".* levels deep", {"a": str(nested(200)), "b": 1}),
        (endless, r".* levels deep", {"self": str(endless)}),
        ({"a": Hostile(), "b": 1}, r"\['a'\]=<Hostile", {"a": "(its text raised ZeroDivisionError)", "b": 1}),
        (Unreadable(a=1), r" cannot be read \(ZeroDivisionError\)", {}),
    ],
)
def test_attrs_that_are_not_json_never_prevent_a_report(attrs, named, kept):
    opt, observed = one()
    failed = opt.suggest()
    for report in (
        lambda: observed.observe(1.0, attrs=attrs),
        lambda: failed.fail(error="broken", attrs=attrs),
        lambda: opt.add([{"x": 0.5, "n": 1}] * 2, [1.0, 2.0], attrs=[{}, attrs]),
    ):
        with pytest.warns(bl.BelatedWarning, match=rf"^attrs(\[1\])?{named}(.|\n)*; the report is stored") as warned:
            report()
        assert len(warned) == 1
    assert [trial.value for trial in opt.trials] == [1.0, None, 1.0, 2.0] and str(failed.error) == "broken"
    for trial in (observed, failed, opt.trial(3)):
        if kept is None:
            assert len(trial.attrs["a"]) <= 2048 and trial.attrs["a"].startswith("b'xx")
        else:
            assert trial.attrs == kept


@pytest.mark.parametrize("name", ["cost", "duration"])
@pytest.mark.parametrize("amount", [-1.0, math.inf, "0.1", 1j, True, [0.1, 0.2]])
def test_unusable_costs_and_durations_are_refused(name, amount):
    opt, trial = one()
    before = pickle.dumps(opt)
    with pytest.raises(bl.errors.InvalidValue, match=f"^{name}=.* for trial 0 is not usable: pass .* number"):
        trial.observe(1.0, **{name: amount})
    if name == "cost":
        with pytest.raises(bl.errors.InvalidValue, match="cost"):
            opt.add([{"x": 0.5, "n": 1}] * 3, [1.0] * 3, cost=amount)
    assert pickle.dumps(opt) == before


@both
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_cost_and_duration_are_kept(kind, direction):
    opt, trial = one(kind, direction=direction)
    trial.observe(-1.5, cost=np.float64(2.5), duration=3)
    assert (trial.value, trial.cost, trial.duration) == (-1.5, 2.5, 3.0)
    trial.observe(-1.5)
    trial.observe(-1.5, cost=2.5)
    for change in ({"cost": 3.0}, {"duration": 4.0}):
        with pytest.raises(bl.errors.AlreadyObserved, match=f"{next(iter(change))}=.*amend=True"):
            trial.observe(-1.5, **change)
    trial.observe(-2.0, amend=True, duration=1.0)
    assert (trial.value, trial.cost, trial.duration) == (-2.0, 2.5, 1.0)
    assert "<td>2.5</td>" in trial._repr_html_() and "duration" in trial._repr_html_()


def test_add_accepts_one_cost_for_all_points_or_one_for_each():
    opt = bl.RandomSearch({"x": (0.0, 1.0)})
    points = [{"x": 0.1}, {"x": 0.2}]
    for cost, attrs in ((2.0, {"a": 1}), ([2.0, 2.0], [{"a": 1}, {"a": 1}])):
        for trial in opt.add(points, [1.0, 2.0], cost=cost, attrs=attrs):
            assert (trial.cost, trial.attrs) == (2.0, {"a": 1})
    first, second = opt.add(points, [1.0, None], cost=[None, 3.0], attrs=[None, {"b": 1}])
    assert (first.cost, first.attrs, second.cost, second.attrs) == (None, {}, None, {"b": 1})
    second.observe(1.0, attrs={"c": 2})
    assert second.attrs == {"b": 1, "c": 2}
    assert opt.add({"x": 0.3}, attrs={"a": 1}).attrs == {"a": 1}
    n = opt.n_trials
    for wrong in ({"cost": [1.0]}, {"attrs": [{}] * 3}, {"std": [1.0] * 3}):
        with pytest.raises(bl.errors.InvalidValue, match=f"^{next(iter(wrong))} has . entries for 2 points"):
            opt.add(points, [1.0, 2.0], **wrong)
    assert opt.n_trials == n


def raised(error):
    """Return an error that has been raised and therefore has a traceback."""
    try:
        raise error
    except type(error) as caught:
        return caught


@both
def test_a_failed_trial_keeps_its_error(kind):
    opt, trial = one(kind)
    assert trial.error is None and trial.ended_at is None
    trial.fail(error=raised(ValueError("no such kernel: <b>")), attrs={"worker": 3})
    assert isinstance(trial.error, TrialError) and trial.state == "failed"
    assert (trial.error.type, trial.error.message) == ("ValueError", "no such kernel: <b>")
    assert "in raised" in trial.error.traceback and trial.error.traceback.startswith("Traceback")
    assert str(trial.error) == "ValueError: no such kernel: <b>"
    assert "error='ValueError: no such kernel: <b>', attrs={'worker': 3}" in repr(trial)
    for page in (trial._repr_html_(), opt._repr_html_()):
        assert "ValueError: no such kernel: &lt;b&gt;" in page and "<b>" not in page
    trial.observe(1.0, attrs={"worker": 4})
    assert trial.state == "observed" and trial.error.type == "ValueError" and trial.attrs == {"worker": 4}


def test_errors_of_every_kind_are_kept():
    opt = bl.RandomSearch(BOX, seed=0)

    def kept(error):
        trial = opt.suggest()
        trial.fail(error=error)
        return trial.error

    assert kept(None) is None
    assert kept("diverged") == TrialError("", "diverged") and str(kept("diverged")) == "diverged"
    assert kept(KeyError("lr")) == TrialError("KeyError", "'lr'")
    assert str(kept(TimeoutError())) == "TimeoutError"
    assert kept(TrialError("E", "m", "t")) == TrialError("E", "m", "t")
    assert kept(KeyboardInterrupt()).type == "KeyboardInterrupt"
    # The text is what os.listdir returns for a file name that is not UTF-8.
    assert kept(OSError("\udcff.csv")).message == "\\udcff.csv"

    class Mute(Exception):
        def __str__(self):
            raise RuntimeError

    assert kept(Mute()) == TrialError("Mute", "(its message raised RuntimeError)")
    assert kept(raised(Mute())).traceback is not None
    cause = raised(ZeroDivisionError("first"))
    error = ValueError("second")
    error.__cause__ = cause
    assert "ZeroDivisionError: first" in kept(error).traceback
    n = opt.n_trials
    trial = opt.trial(0)
    for wrong in (3, b"bytes", ValueError, ["a"]):
        with pytest.raises(bl.errors.InvalidValue, match=r"^error=.*pass the exception, or a string"):
            opt.fail(trial, error=wrong)
    assert opt.n_trials == n and trial.error is None


@pytest.mark.parametrize("letter", ["x", "é", "𝄞"])
def test_long_errors_are_cut(letter):
    _, trial = one()
    text = letter * 30_000 + "END"
    trial.fail(error=TrialError("ValueError", text, f"{text}\n"))
    message, trace = trial.error.message, trial.error.traceback
    assert 2000 < len(message.encode()) <= 2048 and message.startswith(letter * 370)
    assert message.endswith(letter * 100 + "END")
    assert 8000 < len(trace.encode()) <= 8192 and trace.endswith("END\n") and trace.startswith("(only the end is kept)")
    assert "�" not in message + trace
    assert len(repr(trial)) < 300


def test_an_error_may_be_added_to_a_failed_trial_once():
    opt, trial = one()
    trial.fail()
    trial.fail(error="diverged")
    before = pickle.dumps(opt)
    trial.fail()
    trial.fail(error="something else")
    assert pickle.dumps(opt) == before and trial.error.message == "diverged"


def test_ended_at_is_the_time_when_a_trial_ended():
    now = [10.0]
    opt = bl.RandomSearch(BOX, clock="seconds", time=lambda: now[0], seed=0)
    failed, abandoned, observed = opt.suggest(n=3)
    for seconds, end in ((11.0, failed.fail), (12.0, abandoned.abandon), (13.0, lambda: observed.observe(1.0))):
        now[0] = seconds
        end()
    assert [t.ended_at for t in (failed, abandoned, observed)] == [11.0, 12.0, 13.0]
    assert [t.observed_at for t in (failed, abandoned, observed)] == [None, None, 13.0]
    now[0] = 14.0
    failed.observe(2.0)
    observed.observe(3.0, amend=True)
    assert (failed.ended_at, failed.delay, observed.ended_at) == (14.0, 4.0, 13.0)
    assert failed.expires_at is None


def test_trials_have_wall_clock_times_on_any_clock():
    now = [1e9]
    opt = bl.RandomSearch(BOX, time=lambda: now[0], seed=0)
    first, second = opt.suggest(n=2)
    now[0] += 1.5
    first.observe(1.0)
    start = datetime(2001, 9, 9, 1, 46, 40, tzinfo=timezone.utc)
    end = start + timedelta(seconds=1.5)
    assert [(t.started_at, t.finished_at) for t in opt.trials] == [(start, end), (start, None)]
    table = opt.trials_dataframe()
    assert table.started_at.tolist() == [start, start]
    assert (table.finished_at[0], table.finished_at.isna().tolist()) == (end, [False, True])
    opt._log.record(Action.add([0.5, 1.0], None, None), None)  # the time of this trial is not known
    assert opt.trial(2).started_at is None
    now[0] = 1e300  # Python's calendar does not contain this year
    second.fail()
    assert (second.finished_at, second.state) == (None, "failed")
    again = pickle.loads(pickle.dumps(opt._log))
    assert [again.trial(i).finished_at for i in range(3)] == [1e9 + 1.5, 1e300, None]


@both
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_a_replicate_is_a_separate_trial(kind, direction):
    opt, trial = one(kind, direction=direction)
    trial.observe(1.0, replicate=True)
    trial.observe(1.0, replicate=True, std=0.5, attrs={"run": 2})
    opt.observe(0, 3.0, replicate=True, params={"x": 0.5, "n": 2})
    assert [(t.params, t.value, t.std) for t in opt.trials] == [
        (trial.params, 1.0, None),
        (trial.params, 1.0, 0.5),
        ({"x": 0.5, "n": 2}, 3.0, None),
    ]
    assert opt.trial(1).attrs == {"run": 2} and not opt.pending
    before = pickle.dumps(opt)
    for report in (trial.observe, lambda *a, **k: opt.observe(trial, *a, **k)):
        with pytest.raises(bl.errors.InvalidSetting, match="amend and replicate exclude each other"):
            report(2.0, amend=True, replicate=True)
    with pytest.raises(bl.errors.AlreadyObserved):
        trial.observe(2.0)
    assert pickle.dumps(opt) == before


def test_a_replicate_has_the_context_of_its_trial():
    opt = bl.BayesOpt(BOX, context={"age": (0, 9)}, seed=0)
    trial = opt.suggest(context={"age": 7})
    trial.observe(1.0)
    trial.observe(2.0, replicate=True)
    assert opt.trial(1).context == {"age": 7}


def test_dataframe_has_all_fields():
    opt = bl.RandomSearch({"x": (0.0, 1.0)}, context={"age": (0, 9)}, direction="minimize", seed=0)
    first, second = opt.suggest(n=2, context={"age": 1})
    facts = ["number", "state", "value", "std", "cost", "duration", "suggested_at", "observed_at", "delay"]
    facts += ["started_at", "finished_at", "error"]
    assert list(opt.trials_dataframe()) == [*facts, "params_x", "context_age"]
    first.observe(1.5, std=0.5, cost=2.0, duration=3.0, params={"x": 0.25}, attrs={"a": "u", "b": [1]})
    second.fail(error=ValueError("bad"), attrs={"c": 7})
    table = opt.trials_dataframe()
    assert list(table) == [*facts, "params_x", "params_run_x", "context_age", "attrs_a", "attrs_b", "attrs_c"]
    assert list(table.loc[0, ["value", "std", "cost", "duration"]]) == [1.5, 0.5, 2.0, 3.0]
    assert table["error"][1] == "ValueError: bad" and table["error"].isna()[0]
    assert (table["params_x"][0], table["params_run_x"][0]) == (first.params["x"], 0.25)
    assert table["attrs_a"][0] == "u" and table["attrs_b"][0] == [1] and table["attrs_c"][1] == 7
    assert list(table["attrs_a"].isna()) == [False, True] and list(table["attrs_c"].isna()) == [True, False]


def test_dataframe_of_candidates():
    opt = bl.RandomSearch(candidates=ROWS, seed=0)
    trial = opt.suggest()
    other = 1 if trial.index == 0 else 0
    assert "index_run" not in opt.trials_dataframe()
    trial.observe(1.0, params=other)
    table = opt.trials_dataframe()
    assert (table["index"][0], table["index_run"][0]) == (trial.index, other)
