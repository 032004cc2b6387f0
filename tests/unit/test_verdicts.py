"""Verdicts of replays: the rule, by simulation and against scipy's own test."""

import numpy as np
import pytest

pytest.importorskip("scipy")
from scipy.stats import false_discovery_control, wilcoxon

from belated.replays.verdicts import BETTER, UNDECIDED, WORSE, comparisons, holm, p_value, table, verdicts


def test_a_clear_difference_is_better_or_worse_and_none_is_undecided():
    rng = np.random.default_rng(0)
    regrets = rng.random(30)
    others = {"lower": regrets - 0.3 * rng.random(30), "higher": regrets + 0.3 * rng.random(30), "equal": regrets}
    found = verdicts({name: (regrets, other) for name, other in others.items()})
    assert found == {"lower": WORSE, "higher": BETTER, "equal": UNDECIDED}


def test_equal_methods_seldom_get_a_verdict():
    rng = np.random.default_rng(1)
    decided = 0
    for _ in range(200):
        pairs = {i: rng.standard_normal((2, 20)) for i in range(10)}
        decided += any(verdict != UNDECIDED for verdict in verdicts(pairs).values())
    # At most 5 % of the families, by four standard errors.
    assert decided <= 200 * 0.05 + 4 * np.sqrt(200 * 0.05 * 0.95)


def test_corrected_probabilities_of_holm():
    p = np.array([0.001, 0.04, 0.012, 0.5, 0.012])
    corrected = np.array(list(holm(dict(enumerate(p))).values()))
    assert corrected == pytest.approx([0.005, 0.08, 0.048, 0.5, 0.048])
    assert (corrected <= np.minimum(5 * p, 1)).all() and (corrected >= false_discovery_control(p) - 1e-12).all()


def test_runs_without_a_value_do_not_count():
    first, second = np.arange(12.0), np.arange(12.0) + np.linspace(1, 2, 12)
    second[3] = np.nan
    assert verdicts({"": (first, second)}) == {"": BETTER}
    assert p_value(np.zeros(5)) == 1.0
    assert p_value(first - np.linspace(1, 2, 12)) == wilcoxon(first - np.linspace(1, 2, 12)).pvalue


def test_settings_are_compared_where_their_names_agree():
    values = np.random.default_rng(2).random(20)
    settings = [
        {"function": "a", "algorithm": "ours", "values": values},
        {"function": "a", "algorithm": "rival", "values": values[:12] - 0.1},
        {"function": "b", "algorithm": "ours", "values": values},
        {"function": "b", "algorithm": "rival", "values": values + 0.1},
        {"function": "b", "algorithm": "other", "values": values},
    ]
    found = comparisons(settings, ("function",), [("ours", "rival"), ("ours", "other")])
    assert [tuple(each.values()) for each in found] == [
        ("a", "ours", "rival", BETTER),
        ("b", "ours", "rival", WORSE),
        ("b", "ours", "other", UNDECIDED),
    ]
    assert [line.split() for line in table(found).splitlines()[3:]] == [list(each.values()) for each in found]
