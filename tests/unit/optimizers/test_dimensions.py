"""d counts named parameters: a choice of 50 is one dimension with 50 columns."""

import json
import math

import pytest

import belated as bl

CHOICES = [f"c{i}" for i in range(50)]


@pytest.mark.parametrize(("space", "n"), [({"c": CHOICES}, 4), ({"c": CHOICES, "x": (0.0, 1.0), "y": (0.0, 1.0)}, 6)])
def test_the_initial_design_counts_parameters(space, n):
    opt = bl.BayesOpt(space, seed=0)
    for _ in range(n):
        opt.suggest().observe(0.5)
    assert all(opt._log.trial(i).note is None for i in range(n))
    assert opt._log.trial(opt.suggest().number).note is not None


def test_the_schedule_of_kandasamy_counts_parameters():
    """With the right d, the bound mu + sqrt(0.2 d log(2j + 1)) sigma is largest at the suggested point."""
    space = {"c": ["p", "q"], "k": bl.Integer(0, 30)}
    gp = bl.GP(kernel="matern52", lengthscale=0.3, signal_std=1.0, noise_std=0.1, mean="zero", targets="raw")
    opt = bl.BayesOpt(space, acquisition=bl.UCB("kandasamy"), surrogate=gp, initial=0, seed=0)
    opt.add([{"c": "p", "k": 3}, {"c": "q", "k": 22}, {"c": "p", "k": 17}], [0.4, 0.9, 0.2])
    everywhere = [{"c": c, "k": k} for c in ("p", "q") for k in range(31)]
    mean, std = opt.predict(everywhere)
    beta = math.sqrt(0.2 * 2 * math.log(2 * 4 + 1))  # the suggestion number is j = 4, and d = 2
    bound = mean + beta * std
    best = everywhere[int(bound.argmax())]
    assert opt.suggest().params == best
    by_columns = mean + math.sqrt(0.2 * 3 * math.log(2 * 4 + 1)) * std
    assert by_columns.argmax() == bound.argmax() or everywhere[int(by_columns.argmax())] != best


def test_a_constant_is_estimated_from_five_parameters_on():
    """With one choice that has many columns, the prior mean is still the mean of the observed values."""
    for n, estimated in ((1, False), (5, True)):
        space = {f"c{i}": CHOICES[:6] for i in range(n)}
        opt = bl.BayesOpt(space, surrogate=bl.GP(kernel="matern52"), seed=1)
        for k in range(12):
            trial = opt.suggest()
            trial.observe(float(k % 5) ** 2)
        opt.suggest()  # targets are expressed in the unit of the last fit
        _, center, *_ = opt._log.surrogate(None, False)
        values = [trial.value for trial in opt.trials if trial.value is not None]
        mean = sum(values) / len(values)
        assert (abs(center - mean) > 1e-9) == estimated


def test_notes_have_one_lengthscale_for_each_column():
    opt = bl.BayesOpt({"c": CHOICES}, context={"z": (0.0, 1.0)}, seed=0)
    for k in range(6):
        opt.suggest(context={"z": 0.5}).observe(float(k))
    notes = [opt._log.trial(i).note for i in range(6)]
    fits = [json.loads(note) for note in notes if note is not None]
    assert fits and all(len(fit["lengthscale"]) == 51 for fit in fits)
