"""`BelatedSampler` with a learning curve: the intermediate values of Optuna's trials are the reports of its log."""

import functools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import belated as bl

optuna = pytest.importorskip("optuna")

from optuna.trial import TrialState  # noqa: E402

from belated._core import without_time  # noqa: E402
from belated.integrations.optuna import BelatedPruner  # noqa: E402
from belated.integrations.optuna_log import OptunaLog  # noqa: E402
from tests.system.integrations.optuna.studies import DISTRIBUTIONS, SPACE, events, f, sampler_of, study_of  # noqa: E402

CURVE = bl.Curve(6)


def log_of(study, **arguments):
    """Return the log from which a new sampler chooses the next point."""
    sampler = sampler_of(**{"curve": CURVE} | arguments)
    copy = optuna.create_study(direction=study.direction, sampler=sampler)
    copy.add_trials(study.trials)
    copy.ask(DISTRIBUTIONS)
    return sampler._log._core


def curves(study, **arguments):
    core = log_of(study, **arguments)
    return [(core.trial(number).state, dict(core.trial(number).curve)) for number in core.numbers(None)]


def run(study, trial, reports, state=None, value=None):
    for step, each in reports.items():
        trial.report(each, step)
    if state is not None or value is not None:
        study.tell(trial, value, state=state)


@pytest.mark.parametrize("first", [0, 1])
def test_points_and_events_equal_those_of_belateds_loop(first):
    own = bl.BayesOpt(SPACE, direction="minimize", seed=3, curve=CURVE)
    study = study_of(curve=CURVE)
    for k in range(20):
        mine, trial = own.suggest(), study.ask(DISTRIBUTIONS)
        assert trial.params == mine.params
        value = f(trial.params)
        for step in range(1, 7):
            mine.report(value + 1 / step, step)
            trial.report(value + 1 / step, step - 1 + first)
            if step == 3 and k % 4 == 1:
                own.stop(mine)
                study.tell(trial, state=TrialState.PRUNED)
                break
            if step == 2 and k % 4 == 2:
                own.fail(mine)
                study.tell(trial, state=TrialState.FAIL)
                break
        else:
            mine.observe(value)
            study.tell(trial, value)
    derived, expected = events(log_of(study)), events(own._log)
    assert derived == expected
    assert sum("Stopped" in str(event["what"]) for event in expected) == 5
    assert sum("Reported" in event["what"] for event in expected) == 5 * (6 + 3 + 2 + 6)


def test_trials_in_every_state_have_their_curves():
    study = study_of(curve=CURVE)
    trials = [study.ask(DISTRIBUTIONS) for _ in range(6)]
    run(study, trials[0], {1: 3.0, 2: math.nan, 4: 1.0}, value=0.5)
    run(study, trials[1], {1: 3.0, 2: 2.0}, TrialState.PRUNED)
    run(study, trials[2], {1: 3.0, 2: math.inf}, TrialState.PRUNED)
    run(study, trials[3], {}, TrialState.PRUNED)
    run(study, trials[4], {1: 4.0}, TrialState.FAIL)
    run(study, trials[5], {3: 2.0, 1: 4.0})
    found = curves(study)
    assert [state for state, _ in found] == ["observed", "stopped", "failed", "failed", "failed", "pending"]
    assert found[0][1] == pytest.approx({1: 3.0, 2: math.nan, 4: 1.0}, nan_ok=True)
    assert found[2][1] == pytest.approx({1: 3.0, 2: math.nan}, nan_ok=True)
    assert [found[k][1] for k in (1, 3, 4, 5)] == [{1: 3.0, 2: 2.0}, {}, {1: 4.0}, {1: 4.0, 3: 2.0}]
    # Without a curve the value of the pruned trial is estimated.
    assert [state for state, _ in curves(study, curve=None)][:2] == ["observed", "observed"]


def test_steps_begin_at_0_as_soon_as_a_trial_reports_step_0():
    study = study_of(curve=CURVE)
    run(study, study.ask(DISTRIBUTIONS), {1: 3.0, 5: 2.0}, value=1.0)
    assert curves(study) == [("observed", {1: 3.0, 5: 2.0})]
    trial = study.ask(DISTRIBUTIONS)
    run(study, trial, {0: 4.0})
    study.ask(DISTRIBUTIONS)  # the sampler of the earlier trials
    core = study.sampler._log._core
    assert [dict(core.trial(number).curve) for number in range(2)] == [{2: 3.0, 6: 2.0}, {1: 4.0}]


def test_reports_precede_the_suggestions_that_used_them():
    study = study_of(curve=CURVE)
    trials = [study.ask(DISTRIBUTIONS) for _ in range(2)]
    run(study, trials[0], {1: 3.0, 2: 2.0})
    trials.append(study.ask(DISTRIBUTIONS))  # at this suggestion two reports of trial 0 are known
    followed = study.sampler._log._core
    run(study, trials[1], {1: 5.0})
    run(study, trials[0], {3: 1.0, 4: 0.5}, TrialState.PRUNED)
    study.ask(DISTRIBUTIONS)
    told = [next(iter(each["what"].items())) for each in events(log_of(study))]
    order = [(kind, facts.get("trial"), facts.get("step")) for kind, facts in told]
    started, reported = ("Suggested", None, None), "Reported"
    assert order[2:9] == [
        *[(reported, 0, 1), (reported, 0, 2), started],
        *[(reported, 0, 3), (reported, 0, 4), ("Resulted", 0, None), (reported, 1, 1)],
    ]
    # The log was extended and not derived again.
    assert study.sampler._log._core is followed


@pytest.mark.parametrize("reports", [{7: 1.0}, {0: 1.0, 6: 1.0}])
def test_a_step_beyond_the_curve_is_refused(reports):
    study = study_of(curve=CURVE)
    run(study, study.ask(DISTRIBUTIONS), reports)
    first = min(1, *reports)
    message = f"trial 0 .* step {first + 6}, .* has the steps {first} to {first + 5}: pass"
    with pytest.raises(bl.errors.InvalidSetting, match=message):
        study.ask(DISTRIBUTIONS)


@pytest.mark.parametrize("rule", ["asha", "median"])
def test_another_process_continues_bit_for_bit(rule):
    def go_on(study, n):
        study.pruner, running = BelatedPruner(rule), []
        for trial in study.trials:
            if not trial.state.is_finished():
                running.append(optuna.Trial(study, trial._trial_id))
        for _ in range(n):
            trial = study.ask(DISTRIBUTIONS)
            running.append(trial)
            for each in list(running):
                value, step = f(each.params), len(study.trials[each.number].intermediate_values)
                each.report(value * (1 + 1 / (step + 1)), step)
                if each.should_prune():
                    study.tell(each, state=TrialState.PRUNED)
                elif step == 5:
                    study.tell(each, value)
                else:
                    continue
                running.remove(each)
        return [trial.params for trial in study.trials]

    storage = optuna.storages.InMemoryStorage()
    whole = study_of(curve=CURVE)
    for n in (7, 8, 1, 24):
        parts = go_on(study_of(storage, "parts", curve=CURVE), n)
    assert go_on(whole, 40) == parts
    # The present logs of the two samplers, and the log of a new sampler, have the same events.
    assert events(log_of(whole)) == events(log_of(study_of(storage, "parts", curve=CURVE)))
    assert sum(trial.state == TrialState.PRUNED for trial in whole.trials) >= 2


STEPS = st.sampled_from(["ask", "ask", "start", "sample", "report", "report", "report", "complete", "fail", "prune"])


@given(st.lists(st.tuples(STEPS, st.integers(0, 9), st.booleans()), max_size=30))
@settings(max_examples=40)
def test_a_log_updated_step_by_step_equals_one_derived_at_once(steps):
    """Trials of two processes start, sample, report and end in random order."""
    ends = {"complete": TrialState.COMPLETE, "fail": TrialState.FAIL, "prune": TrialState.PRUNED}
    arguments = {"curve": CURVE, "optimizer": functools.partial(bl.BayesOpt, initial=3)}
    study = study_of(**arguments)
    samplers = [study.sampler, sampler_of(**arguments)]
    started, sampled = [], []
    for step, i, other in [*steps, ("ask", 0, False), ("ask", 0, True)]:
        study.sampler = samplers[other]
        if step in ("ask", "start"):
            started.append(study.ask())
        if step == "ask" or (step == "sample" and started):
            trial = started.pop(-1 if step == "ask" else i % len(started))
            for name, distribution in DISTRIBUTIONS.items():
                trial._suggest(name, distribution)
            sampled.append(trial)
        elif step == "report" and sampled:
            trial = sampled[i % len(sampled)]
            n = len(study.trials[trial.number].intermediate_values)
            if n < 5:
                trial.report(math.nan if i == 9 else float(i), n + int(other or n > 0))
        elif step in ends and sampled:
            study.tell(sampled.pop(i % len(sampled)), float(i) if step == "complete" else None, state=ends[step])
    for sampler, last in zip(samplers, sampled[-2:], strict=True):
        before = [trial for trial in study.trials if trial.number < last.number]
        log = sampler._log
        whole = OptunaLog(log.optimizer)
        whole._follow(whole._derive(before, None))
        derived, expected = ([without_time(each) for each in core.events(0)] for core in (log._core, whole._core))
        assert derived == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"curve": 6}, "curve=6 is not usable: pass bl.Curve"),
        ({"curve": CURVE, "optimizer": bl.TreeSearch}, "TreeSearch does not support curves"),
        (
            {"curve": CURVE, "optimizer": lambda space, curve, **others: bl.BayesOpt(space, **others)},
            "optimizer has curve=None, and the sampler has curve=Curve\\(steps=6",
        ),
    ],
)
def test_curves_that_are_not_usable_are_refused(arguments, message):
    with pytest.raises(bl.errors.InvalidSetting, match=message):
        study_of(**arguments).ask(DISTRIBUTIONS)


def test_the_optimizer_may_declare_the_curve():
    study = study_of(optimizer=functools.partial(bl.BayesOpt, curve=CURVE))
    run(study, study.ask(DISTRIBUTIONS), {1: 3.0}, TrialState.PRUNED)
    study.ask(DISTRIBUTIONS)
    assert study.sampler._log._core.trial(0).state == "stopped"
