"""`durations_`: predictions of the durations of trials."""

import numpy as np
import pytest
from scipy.stats import t as student

import belated as bl
from belated.optimizers.durations import _student
from tests.clock import Clock

SPACE = {"x": (0.0, 1.0), "k": ["a", "b"]}


def points(n, seed=0):
    rng = np.random.default_rng(seed)
    return [{"x": float(x), "k": "ab"[int(k)]} for x, k in zip(rng.random(n), rng.integers(2, size=n), strict=True)]


def seconds(params):
    return float(np.exp(3 * params["x"] + (params["k"] == "b")))


def with_durations(params, durations, **arguments):
    """Return an optimizer with an observed trial at each point."""
    opt = bl.BayesOpt(SPACE, seed=0, **arguments)
    opt.add(params, [p["x"] for p in params], duration=list(durations))
    return opt


def logs(opt, params):
    """Return the medians and half widths of the intervals of predicted log durations."""
    median, low, high = np.log(opt.durations_.predict(params))
    assert np.allclose(median, (low + high) / 2, rtol=1e-9)
    return median, (high - low) / 2


def test_predictions_follow_the_durations():
    params = points(40)
    opt = with_durations(params, map(seconds, params))
    fresh = points(50, seed=1)
    median, low, high = opt.durations_.predict(fresh)
    assert median.shape == low.shape == high.shape == (50,)
    assert np.allclose(median, [seconds(p) for p in fresh], rtol=0.05)
    assert opt.durations_.predict(fresh[0]).median == pytest.approx(median[0], rel=1e-12)
    assert opt.durations_.n_known == 40 and opt.durations_.explained > 0.99 and opt.durations_.unknown is None


def test_the_unit_of_durations_is_the_unit_of_predictions():
    params = points(12)
    one, day = [with_durations(params, [unit * seconds(p) for p in params]) for unit in (1.0, 86400.0)]
    for a, b in zip(one.durations_.predict(params), day.durations_.predict(params), strict=True):
        assert np.allclose(86400 * a, b, rtol=1e-6)


def test_intervals_contain_about_80_percent_of_new_durations():
    covered = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        params, fresh = points(20, seed), points(100, 100 + seed)
        noisy = [seconds(p) * np.exp(0.4 * rng.standard_normal()) for p in params + fresh]
        _, low, high = with_durations(params, noisy[:20]).durations_.predict(fresh)
        covered.append(np.mean((low <= noisy[20:]) & (noisy[20:] <= high)))
    assert 0.7 < np.mean(covered) < 0.9


def test_the_quantile_is_the_quantile_of_student():
    for freedom in range(1, 40):
        assert _student(freedom) == pytest.approx(student.ppf(0.9, freedom), rel=0.01 if freedom > 1 else 0.04)


def test_with_few_durations_the_variance_has_the_errors_of_leaving_one_out():
    params, durations = points(4), np.array([1.0, 3.0, 2.0, 9.0])
    opt = with_durations(params, durations)
    # With fewer than 5 durations, the model is linear.
    numbers, known, left_out = opt.durations_._left_out()
    assert numbers == [0, 1, 2, 3] and known == pytest.approx(durations)
    for i in range(4):
        others = [j for j in range(4) if j != i]
        alone = with_durations([params[j] for j in others], durations[others])
        assert left_out.median[i] == pytest.approx(alone.durations_.predict(params[i]).median, rel=1e-9)
    _, half = logs(opt, params)
    errors = np.log(known / left_out.median)
    # On average, the variance of the left-out predictions equals their square error.
    stds = np.log(left_out.high / left_out.median) / _student(3)
    assert np.mean(stds**2) == pytest.approx(np.mean(errors**2))
    assert np.allclose(half, half[0]) and half[0] > 0


@pytest.mark.parametrize("per", ["trial", "time"])
def test_reading_durations_does_not_change_suggestions(per):
    def run(reads):
        opt = bl.BayesOpt(SPACE, seed=3, acquisition=bl.LogEI(per=per))
        chosen = []
        for i in range(18):
            trial = opt.suggest()
            if reads:
                opt.durations_.predict(points(3))
            if i % 6 == 4:
                trial.fail(duration=seconds(trial.params))
            elif i % 6 != 5:
                opt.observe(trial, trial.params["x"], duration=seconds(trial.params))
            if reads:
                opt.durations_.predict(points(3))
            chosen.append(trial.params)
        return chosen

    assert run(True) == run(False)


def test_predictions_depend_neither_on_the_acquisition_nor_on_earlier_calls():
    def run(acquisition, reads):
        opt = bl.BayesOpt(SPACE, seed=3, acquisition=acquisition, time=lambda: 5.0)
        for p in points(14):
            opt.add(p, p["x"], duration=seconds(p))
            if reads:
                opt.durations_.predict(p)
                opt.predict(p)
        opt.suggest()
        return np.array(opt.durations_.predict(points(4, seed=1))).tolist()

    expected = run(bl.LogEI(per="trial"), False)
    assert run(bl.LogEI(per="trial"), True) == run(bl.LogEI(per="time"), True) == run(bl.UCB(), False) == expected


def test_predictions_do_not_depend_on_the_times_of_earlier_calls():
    def run(reads):
        now = [0.0]
        opt = bl.BayesOpt(SPACE, seed=0, time=lambda: now[0])
        opt.add(points(14), [0.0] * 14, duration=[seconds(p) for p in points(14)])
        opt.suggest(n=3)
        if reads:
            for now[0] in (10.0, 1000.0):
                opt.durations_.predict(points(2))
        now[0] = 3000.0
        return np.array(opt.durations_.predict(points(4, seed=1))).tolist()

    assert run(True) == run(False)


def test_before_two_positive_durations_the_reason_is_given():
    opt = bl.BayesOpt(SPACE, seed=0)
    for duration, reason in ((None, "observe(duration=)"), (2.0, "(1 known)"), (0.0, "(2 known)"), (0.0, "(3 known)")):
        opt.add({"x": 0.2, "k": "a"}, 1.0, duration=duration)
        durations = opt.durations_
        assert reason in durations.unknown and durations.explained is None
        assert durations.predict({"x": 0.5, "k": "a"}) is None and durations._left_out() is None
    opt.add({"x": 0.7, "k": "b"}, 1.0, duration=5.0)
    assert opt.durations_.unknown is None and opt.durations_.n_known == 4
    with pytest.raises(bl.errors.InvalidPoint):
        opt.durations_.predict({"x": 7.0, "k": "a"})


def test_equal_durations_are_predicted_without_an_interval():
    opt = with_durations(points(8), [7.0] * 8)
    assert np.allclose(np.array(opt.durations_.predict(points(3, seed=1))), 7.0, rtol=1e-9)
    assert opt.durations_.explained == 0.0


@pytest.mark.parametrize(
    "durations", [[0.0, 1.0, 2.0], [0.0, 1e300, 1e-300, 5.0, 1.0, 1.0, 0.0], [1e-300, 1e-300], [1e9] * 5 + [1.0]]
)
def test_unusual_durations_give_ordered_predictions(durations):
    opt = with_durations(points(len(durations)), durations)
    median, low, high = opt.durations_.predict(points(20, seed=1))
    assert (low <= median * (1 + 1e-9)).all() and (median <= high * (1 + 1e-9)).all() and np.isfinite(median).all()


def test_failed_trials_count_and_running_trials_are_lower_bounds():
    now = 0.0
    opt = bl.BayesOpt(SPACE, seed=0, time=lambda: now)
    for p in points(15):
        opt.enqueue(p)
        trial = opt.suggest()
        if p["x"] < 0.3:
            trial.fail(duration=seconds(p))
        else:
            trial.observe(p["x"], duration=seconds(p))
    assert opt.durations_.n_known == 15
    running = opt.suggest().params
    medians = []
    for age in (0.0, 1000.0, 1e6):
        now = age
        medians.append(opt.durations_.predict(running).median)
    assert medians == sorted(medians) and medians[2] > 10 * medians[0]


def test_the_object_does_not_change():
    opt = with_durations(points(8), map(seconds, points(8)))
    durations = opt.durations_
    before = np.array(durations.predict(points(2)))
    opt.add({"x": 0.1, "k": "b"}, 1.0, duration=1e4)
    assert durations.n_known == 8 and np.array_equal(before, durations.predict(points(2)))
    assert opt.durations_.n_known == 9


def test_contexts_and_candidates():
    opt = bl.BayesOpt({"x": (0.0, 1.0)}, context={"c": (0.0, 1.0)}, seed=0)
    for c in np.linspace(0, 1, 12):
        opt.add({"x": 0.5}, 1.0, {"c": float(c)}, duration=float(np.exp(4 * c)))
    slow, fast = [opt.durations_.predict({"x": 0.5}, {"c": c}).median for c in (1.0, 0.0)]
    assert slow > 30 * fast
    rows = np.linspace(0, 1, 9)[:, None]
    opt = bl.BayesOpt(candidates=rows, seed=0)
    opt.add(range(9), [0.0] * 9, duration=list(np.exp(3 * rows[:, 0])))
    assert opt.durations_.predict().median.shape == (9,)


def test_a_run_records_durations():
    result = bl.maximize(lambda params: params["x"], SPACE, n_trials=6, seed=0)
    assert result.durations_.n_known == 6 and result.durations_.predict(points(2)).median.min() > 0


def test_optimizers_without_a_model_have_no_durations():
    with pytest.raises(bl.errors.InvalidSetting):
        bl.RandomSearch(SPACE).durations_  # noqa: B018


def with_reports(params, reported, end, setup=0.0, attempts=None):
    """Return an optimizer with 20 steps, in which trials report some steps on time and then end."""
    clock = Clock()
    opt = bl.BayesOpt(SPACE, seed=0, curve=bl.Curve(20), stopping=None, time=clock)
    for p, n in zip(params, reported, strict=True):
        clock.now += 7.0
        start, trial = clock.now, opt.add(p)
        for attempt in range(1 if attempts is None else attempts):
            for step in range(1, n + 1):
                clock.now += (setup if step == 1 else 0.0) + seconds(p) / 20
                opt.report(trial, p["x"], step, attempt=attempt)
        end(opt, trial, p, clock.now - start)
    return opt


def complete(opt, trial, p, elapsed):
    opt.observe(trial, p["x"], duration=elapsed)


def stop(opt, trial, p, elapsed):
    opt.stop(trial)


def fail(opt, trial, p, elapsed):
    opt.fail(trial, duration=elapsed)


@pytest.mark.parametrize("end", [stop, fail])
@pytest.mark.parametrize("setup", [0.0, 3.0])
def test_stopped_trials_have_the_durations_of_complete_evaluations(end, setup):
    params, fresh = points(30), points(10, seed=1)
    reported = [(3, 20, 2)[i % 3] for i in range(30)]

    def end_early(opt, trial, p, elapsed):
        (complete if len(trial.curve) == 20 else end)(opt, trial, p, elapsed)

    early = with_reports(params, reported, end_early, setup).durations_
    whole = with_reports(params, [20] * 30, complete, setup).durations_
    assert early.n_known == 30
    for a, b in zip(early.predict(fresh), whole.predict(fresh), strict=True):
        assert np.allclose(a, b, rtol=1e-6)


def test_a_stopped_trial_that_was_restarted_has_the_duration_of_its_last_attempt():
    params = points(12)
    restarted = with_reports(params, [5] * 12, stop, attempts=2).durations_
    once = with_reports(params, [5] * 12, stop).durations_
    for a, b in zip(restarted.predict(params), once.predict(params), strict=True):
        assert np.allclose(a, b, rtol=1e-6)


def test_reports_without_a_forecast_are_lower_bounds():
    # The second step arrives at the time of the first, so the time of the remaining steps is unknown.
    clock = Clock()
    opt = bl.BayesOpt({"x": (0.0, 1.0)}, seed=0, curve=bl.Curve(20), stopping=None, time=clock)
    for x in (0.1, 0.5, 0.9):
        opt.observe(opt.add({"x": x}), x, duration=8.0)
    trial = opt.add({"x": 0.3})
    clock.now = 5.0
    opt.report(trial, 0.1, 4)
    clock.now = 4.0
    opt.report(trial, 0.1, 8)
    opt.stop(trial)
    assert opt.durations_.n_known == 3


def test_a_copy_of_a_study_does_not_forecast_durations_from_its_reports(tmp_path):
    clock = Clock()
    opt = bl.BayesOpt({"x": (0.0, 1.0)}, seed=0, curve=bl.Curve(10), stopping=None, time=clock)
    study = bl.Study("s", tmp_path / "s.db", opt, time=clock)
    for x in (0.1, 0.5, 0.9):
        trial = study.add({"x": x})
        clock.now += 10.0
        study.report(trial, x, 1)
        clock.now += 1000.0
        study.stop(trial)
    assert np.allclose(study.durations_.predict([{"x": 0.3}]).median, 100.0)
    assert study.copy("t").durations_.n_known == 0
