"""A search with late results for the tests of plots, and readers of the artists."""

import math

import belated as bl

SPACE = {"x": (-2.0, 2.0), "C": bl.Real(1e-3, 10.0, log=True), "k": ["a", "b", None]}


def f(params):
    return params["x"] ** 2 + math.log10(params["C"])


def late(search, n=14, lag=3):
    """Run n trials and observe each of them `lag` suggestions later; trial 2 fails, and trial 4 is abandoned."""
    for i in range(n):
        search.suggest()
        if i >= lag:
            trial = search.trial(i - lag)
            if trial.number == 2:
                trial.fail()
            elif trial.number == 4:
                trial.abandon()
            else:
                trial.observe(f(trial.params), duration=1.0 + trial.number % 5)
    return search


def drawn(ax):
    """Return a dict of the axes' lines by label."""
    return {line.get_label(): line for line in ax.lines}


def labels(ax):
    return ax.get_xlabel(), ax.get_ylabel()
