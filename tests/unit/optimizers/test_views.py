"""The best trial, the table of trials, the repr and the HTML of an optimizer."""

import re

import pytest

import belated as bl
from tests.unit.optimizers.problem import BOX, ROWS, both


@both
def test_views_of_a_new_optimizer(kind):
    opt = kind(BOX, seed=0)
    assert (opt.best_trial_, opt.best_params_, opt.best_value_) == (None, None, None)
    assert (opt.trials, opt.pending, opt.n_trials) == ([], [], 0)
    with pytest.raises(bl.errors.NotFitted):
        opt.recommend()


def test_dataframe_without_pandas(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        bl.RandomSearch(BOX).trials_dataframe()


def test_repr():
    assert repr(bl.RandomSearch({"x": (0, 1)}, seed=1)) == "RandomSearch(space={'x': (0, 1)}, seed=1)"
    assert repr(bl.BayesOpt(candidates=ROWS, window=5)) == "BayesOpt(window=5, candidates=<12 candidates of 2 columns>)"


def test_html_shows_the_latest_trials():
    opt = bl.RandomSearch(BOX, seed=0)
    opt.add({"x": 0.5, "n": 1}, 0.0)
    opt.suggest(n=15)
    page = opt._repr_html_()
    assert "16 trials, 15 pending, best 0<" in page
    assert "<tr><td>15</td>" in page and "<tr><td>5</td>" not in page
    # The best trial is not one of the latest ten; its row is the last.
    assert page.endswith(
        '<tr style="font-weight: bold"><td>0</td><td>0.5</td><td>1</td><td>observed, best</td><td>0</td><td></td></tr>'
        "</tbody></table>"
    )
    assert page.count("font-weight") == 1


def test_html_has_a_column_for_each_parameter_and_four_digits():
    space = {"kind": ["a", "b"], "C": bl.Real(0, 1, when={"kind": "a"}), "x": (0.0, 1.0)}
    opt = bl.RandomSearch(space, context={"age": (0.0, 9.0)}, seed=0)
    opt.add({"kind": "a", "C": 0.123456, "x": 1 / 3}, 2.0, context={"age": 2 / 3})
    opt.add({"kind": "b", "x": 0.25}, context={"age": 4.0})
    page = opt._repr_html_()
    heads = re.findall("<th>(.*?)</th>", page)
    assert heads == ["number", "kind", "C", "x", "age", "state", "value", "error"]
    rows = [re.findall("<td>(.*?)</td>", row) for row in page.split("</tr>")[1:3]]
    assert rows == [
        ["1", "b", "", "0.25", "4", "pending", "", ""],
        ["0", "a", "0.1235", "0.3333", "0.6667", "observed, best", "2", ""],
    ]
    # The table of a trial has a row for each parameter.
    assert "<tr><td>params C</td><td>0.1235</td></tr>" in opt.trial(0)._repr_html_()
