"""`delays_`, `forecast` and `overdue` of optimizers and studies."""

import math
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest

import belated as bl
from belated._core import DelayDistribution
from tests.clock import Clock

SPACE = {"x": (0.0, 1.0)}


def in_seconds(clock=None):
    clock = clock or Clock(1_700_000_000.0)
    return bl.RandomSearch(SPACE, clock="seconds", time=clock, seed=0), clock


def with_delays(delays):
    """Return an optimizer whose trials arrived after these delays in seconds, and its clock."""
    opt, clock = in_seconds()
    start = clock.now
    trials = opt.suggest(n=len(delays))
    for trial, delay in zip(trials, delays, strict=True):
        clock.now = start + delay
        trial.observe(0.5)
    return opt, clock


def numbers(estimate):
    return (estimate.estimate, estimate.low, estimate.high)


def test_the_fit_uses_the_delays_failures_and_ages_of_suggested_trials():
    opt, clock = in_seconds()
    opt.add({"x": 0.5}, 1.0)
    opt.add({"x": 0.6})
    start = clock.now
    trials = opt.suggest(n=6)
    for trial, age, report in zip(trials, (1, 2, 4, 5, 7), ("observe",) * 3 + ("fail", "abandon"), strict=False):
        clock.now = start + age
        getattr(trial, report)(*([0.5] if report == "observe" else []))
    delays = opt.delays_
    assert (delays.n_arrived, delays.n_failed, delays.n_pending, delays.n_abandoned) == (3, 1, 1, 1)
    expected = DelayDistribution(np.array([1.0, 2, 4, 5, 7, 7]), np.array([1, 1, 1, 2, 0, 0]))
    assert tuple(delays.quantile(0.5)) == expected.quantile(0.5)
    assert tuple(delays.mean()) == expected.mean()
    assert tuple(delays.arrival_probability(trials[5])) == expected.arrives_ever(7.0)
    assert tuple(delays.arrival_probability(trials[5], within=3)) == expected.arrival_probability(7.0, 3.0)
    assert delays.arrival_probability(trials[5], timedelta(seconds=3)) == delays.arrival_probability(trials[5], 3)
    assert tuple(delays.expected_remaining(trials[5])) == expected.remaining(7.0)


def test_ages_on_the_clock_of_iterations_are_counts_of_suggestions():
    opt = bl.RandomSearch(SPACE, seed=0)
    trials = opt.suggest(n=4)  # suggested at 0, 1, 2 and 3; the clock shows 4
    trials[0].observe(0.5)
    trials[3].observe(0.5)
    expected = DelayDistribution(np.array([4.0, 3, 2, 1]), np.array([1, 0, 0, 1]), clock="iterations")
    assert tuple(opt.delays_.quantile(0.7)) == expected.quantile(0.7)
    forecast = opt.forecast(by=6)
    count = expected.count(np.array([3.0, 2.0]), 2.0)
    assert (forecast.expected, forecast.low, forecast.high) == count[:3]
    never = sum(1 - expected.arrives_ever(age)[0] for age in (3.0, 2.0))
    assert forecast.never == pytest.approx(never, rel=1e-12)


def test_a_lapsed_lease_counts_as_abandoned_at_its_end(tmp_path):
    clock = Clock(1_700_000_000.0)
    opt = bl.RandomSearch(SPACE, clock="seconds", time=clock, seed=0)
    study = bl.Study("s", f"sqlite:///{tmp_path}/s.db", opt, time=clock)
    lapses = study.suggest(expires_after=5.0)
    study.suggest()
    clock.now += 2
    study.suggest().observe(0.5)
    clock.now += 2
    assert study.delays_.n_pending == 2
    clock.now += 100
    delays = study.delays_
    assert (delays.n_pending, delays.n_abandoned, delays.unknown) == (1, 1, None)
    with pytest.raises(bl.errors.InvalidValue, match="is not in flight"):
        delays.arrival_probability(lapses)
    assert study.forecast().n_pending == 1


@pytest.mark.parametrize("clock", ["iterations", "seconds"])
@pytest.mark.parametrize("seed", range(8))
def test_delays_of_random_histories_equal_those_of_the_table(clock, seed, tmp_path):
    """Compute the ages from the table of trials, and from the leases and ends that this test notes itself."""
    pytest.importorskip("pandas")
    rng, time = np.random.default_rng(seed), Clock(1_700_000_000.0)
    opt = bl.RandomSearch(SPACE, clock=clock, time=time, seed=0)
    study = bl.Study("s", f"sqlite:///{tmp_path}/s.db", opt, time=time)
    started, leases, ends, n_suggested = {}, {}, {}, 0

    def now():
        return n_suggested if clock == "iterations" else time.now

    for _ in range(60):
        time.now += round(float(rng.exponential(4.0)), 3)
        running = [trial for trial in study.trials if trial.state == "pending"]
        kind = rng.choice(
            ["suggest", "observe", "fail", "abandon", "late", "add"], p=[0.5, 0.25, 0.08, 0.07, 0.05, 0.05]
        )
        if kind == "suggest":
            lease = float(rng.uniform(0, 40)) if rng.random() < 0.5 else None
            trial = study.suggest(expires_after=lease)
            n_suggested += 1
            started[trial.number] = time.now
            leases[trial.number] = math.inf if lease is None else time.now + lease
        elif kind == "add":
            study.add({"x": 0.5}, [None, 1.0][rng.integers(2)])
        elif kind == "late" and any(trial.state == "abandoned" for trial in study.trials):
            trial = next(trial for trial in study.trials if trial.state == "abandoned")
            trial.observe(0.5)
            ends[trial.number] = now()
        elif running and kind in ("observe", "fail", "abandon"):
            trial = running[rng.integers(len(running))]
            getattr(trial, kind)(*([0.5] if kind == "observe" else []))
            ends[trial.number] = now()

        table = study.trials_dataframe().set_index("number").loc[list(started)]
        delays = np.array([ends.get(number, 0) - row.suggested_at for number, row in table.iterrows()])
        observed = (table.state == "observed").to_numpy()
        latest = max([*table.suggested_at, *(ends[number] for number in started if number in ends)], default=now())
        step = 0.1 * np.median(delays[observed]) if clock == "seconds" and observed.any() else 0.0
        at = latest + step * ((now() - latest) // step) if step > 0 else now()
        records, in_flight = [], {}
        for number, row in table.iterrows():
            end = ends.get(number)
            if end is None and leases[number] < time.now:
                n_before = sum(start <= leases[number] for start in started.values())
                at_lease = max(n_before, row.suggested_at + 1) if clock == "iterations" else leases[number]
                end = min(at, at_lease)
            elif end is None:
                end, in_flight[number] = at, now() - row.suggested_at
            records.append((end - row.suggested_at, {"observed": 1, "failed": 2}.get(row.state, 0)))
        found = study.delays_
        ages, outcomes = found._distribution.records()
        assert list(zip(ages, outcomes, strict=True)) == records
        assert (found.n_pending, found.now) == (len(in_flight), now())
        ages = study.trials_dataframe(delays=True).set_index("number")["age"].dropna()
        assert ages.to_dict() == in_flight


def test_before_the_first_result_the_reason_is_given():
    opt = bl.RandomSearch(SPACE, seed=0)
    assert opt.delays_.unknown == "there are no trials"
    assert str(opt.forecast()) == "no results are pending"
    trial = opt.suggest()
    delays, forecast = opt.delays_, opt.forecast(by=9)
    assert delays.unknown == forecast.unknown == "no trial has arrived"
    assert [delays.mean(), delays.quantile(0.5), delays.arrival_probability(trial), opt.overdue()] == [None] * 3 + [[]]
    assert delays.expected_remaining(trial) is None and forecast.expected is None and forecast.n_pending == 1


def test_times_are_numbers_datetimes_and_timedeltas():
    opt, clock = with_delays([60.0, 120.0, 240.0, 600.0])
    opt.suggest(n=5)
    by = datetime.fromtimestamp(clock.now, timezone.utc) + timedelta(minutes=5)
    first, *others = [opt.forecast(by), opt.forecast(timedelta(minutes=5)), opt.forecast(clock.now + 300)]
    assert all(other[:6] == first[:6] for other in others)
    assert f" of 5 results by {by:%Y-%m-%d %H:%M} (" in str(first)
    assert opt.forecast().by == clock.now + opt.delays_.quantile(0.5).estimate


@pytest.mark.parametrize("by", [math.nan, math.inf, "noon", True, 0, None, -1.0, datetime(2000, 1, 1), datetime.min])
def test_times_that_are_not_times_on_the_clock_are_refused(by):
    opt, _ = with_delays([1.0, 2.0])
    opt.suggest()
    if by is None:
        by = timedelta(seconds=-1)
    with pytest.raises(bl.errors.InvalidValue, match="by=.* is not usable: pass a"):
        opt.forecast(by)


def test_delays_on_the_clock_of_iterations_refuse_datetimes():
    opt = bl.RandomSearch(SPACE, seed=0)
    for by in (datetime(2100, 1, 1), timedelta(1)):
        with pytest.raises(bl.errors.InvalidValue, match="counted in suggestions; forecast of the optimizer takes"):
            opt.delays_.forecast(by)
    for q in (0, 1, math.nan, "half"):
        with pytest.raises(bl.errors.InvalidValue, match="is not a share"):
            opt.delays_.quantile(q)
    trial = opt.suggest()
    for within in (-1, math.nan, timedelta(1)):
        with pytest.raises(bl.errors.InvalidValue, match="within=.* is not usable"):
            opt.delays_.arrival_probability(trial, within)


def test_overdue_trials_are_sorted_by_their_probability():
    opt, clock = in_seconds()
    oldest = opt.suggest()
    clock.now += 50
    older = opt.suggest()
    for k in range(40):
        trial = opt.suggest()
        clock.now += 1 + k % 3
        trial.observe(0.5)
    recent = opt.suggest()
    late = opt.overdue()
    assert [each.trial for each in late] == [oldest, older] and recent in opt.pending
    assert late[0].arrives.estimate <= late[1].arrives.estimate < 0.5
    assert [each.age for each in late] == [clock.now - each.trial.suggested_at for each in late]


def test_late_trials_that_may_still_arrive_are_not_overdue():
    opt, clock = with_delays(np.linspace(1, 9, 8))
    trial = opt.suggest()
    clock.now += 27
    arrives = opt.delays_.arrival_probability(trial)
    assert opt.delays_.quantile(0.95).estimate < 27 and arrives.estimate < 0.5 < arrives.high
    assert opt.overdue() == []
    clock.now += 150
    assert [each.trial for each in opt.overdue()] == [trial]


@pytest.mark.parametrize(
    "delays", [[3.0], [3.0] * 50, [0.0] * 5, [-5.0, 2.0], [1e-9, 1e9], [1e290], list(np.linspace(1, 2, 3000))]
)
def test_unusual_delays_give_finite_answers(delays):
    opt, clock = with_delays(delays)
    trial = opt.suggest()
    for wait in (0.0, 1.0, 1e6):
        clock.now += wait
        got, forecast = opt.delays_, opt.forecast()
        assert all(np.isfinite(numbers(got.quantile(0.9)))) and not any(np.isnan(numbers(got.mean())))
        assert 0 <= got.arrival_probability(trial).estimate <= 1 and got.expected_remaining(trial).estimate >= 0
        assert 0 <= forecast.expected <= 1 and 0 <= forecast.never <= 1 and isinstance(str(forecast), str)
        assert len(opt.overdue()) <= 1


def test_a_clock_that_runs_backwards_gives_ages_of_zero():
    opt, clock = with_delays([1.0, 2.0, 3.0])
    trial = opt.suggest()
    before = opt.delays_.arrival_probability(trial)
    clock.now -= 1000
    assert opt.delays_.arrival_probability(trial) == before


def test_waiting_lowers_the_probability_of_arrival():
    opt, clock = with_delays(np.linspace(1, 9, 30))
    trial = opt.suggest()
    found = []
    for _ in range(4):
        clock.now += 10
        found.append(opt.delays_.arrival_probability(trial).estimate)
    assert found == sorted(found, reverse=True) and found[-1] < found[0]


def test_the_distribution_does_not_depend_on_earlier_calls():
    (opt, clock), (other, other_clock) = with_delays([1.0, 3.0, 7.0]), with_delays([1.0, 3.0, 7.0])
    opt.suggest(n=2)
    other.suggest(n=2)
    for _ in range(20):
        clock.now += 0.17
        opt.forecast()
    other_clock.now = clock.now
    assert opt.delays_ == other.delays_ and opt.forecast() == other.forecast()


def test_delays_have_value_semantics():
    opt, clock = with_delays([1.0, 3.0, 7.0])
    trial = opt.suggest()
    delays = opt.delays_
    assert opt.delays_ == delays and hash(opt.delays_) == hash(delays)
    trial.observe(0.5)
    assert delays.n_pending == 1 and opt.delays_.n_pending == 0 and opt.delays_ != delays


def test_the_table_of_trials_has_ages_and_forecasts_of_trials_in_flight():
    pytest.importorskip("pandas")
    opt, clock = with_delays([60.0, 120.0, 240.0, 600.0])
    opt.add({"x": 0.5})  # added trials are not in flight
    first = opt.suggest()
    clock.now += 30
    second = opt.suggest()
    plain, table = opt.trials_dataframe(), opt.trials_dataframe(delays=True)
    new = [name for name in table if name not in plain]
    assert new == ["age", "expected_remaining", "arrival_probability"]
    assert table[list(plain)].equals(plain) and table[new].isna().all(axis=1).tolist() == [True] * 5 + [False] * 2
    for trial, age in ((first, 30.0), (second, 0.0)):
        row, delays = table.loc[trial.number], opt.delays_
        assert row["age"] == age
        assert row["expected_remaining"] == delays.expected_remaining(trial).estimate
        assert row["arrival_probability"] == delays.arrival_probability(trial).estimate

    opt = bl.RandomSearch(SPACE, seed=0)
    opt.suggest(n=2)
    table = opt.trials_dataframe(delays=True)
    assert table["age"].tolist() == [2.0, 1.0] and table["arrival_probability"].isna().all()
    assert list(bl.RandomSearch(SPACE).trials_dataframe(delays=True)["age"]) == []


def test_forecasts_in_days_of_a_study_whose_clock_counts_suggestions():
    day = 86400.0
    now = [1e9]
    opt = bl.RandomSearch(SPACE, time=lambda: now[0], seed=0)
    other = bl.RandomSearch(SPACE, clock="seconds", time=lambda: now[0], seed=0)
    for _ in range(30):
        for each in (opt, other):
            lost = each.suggest() if len(each.trials) == 0 else None
            trial = each.suggest()
            assert lost is None or trial.number == 1
        now[0] += day
        opt.observe(opt.trials[-1], 1.0)
        other.observe(other.trials[-1], 1.0)
    opt.suggest(n=4), other.suggest(n=4)
    for by in (timedelta(days=2), datetime.fromtimestamp(now[0] + day / 2, timezone.utc)):
        assert opt.forecast(by=by) == other.forecast(by=by)
    assert opt.forecast(by=timedelta(days=2)).expected == pytest.approx(4, abs=0.5)
    assert opt.forecast(by=40).when == "suggestion 40"
    assert [(late.trial.number, late.age) for late in opt.overdue(wall_time=True)] == [(0, 30 * day)]
    assert opt.overdue()[0].age == 35.0 and other.overdue() == other.overdue(wall_time=True)
    with pytest.raises(bl.errors.InvalidValue, match="by="):
        opt.forecast(by=timedelta(days=-1))
