"""Choices of every kind in each store: a study stores values that JSON has, and refuses all others."""

import json

import numpy as np
import pytest

import belated as bl
from belated import store

KEPT = [None, True, 3, "a", 2.5, (1, "b")]
GIVEN = [None, np.bool_(True), np.int64(3), np.str_("a"), np.float32(2.5), (np.int8(1), np.str_("b"))]


def test_values_that_json_knows_are_kept(url):
    space = {
        "kind": GIVEN,
        "size": bl.Ordinal(np.array([8, 16], dtype=np.int16)),
        "low": (np.float32(0.5), np.float64(1.5)),
        "fixed": np.array(4),
        "x": bl.Real(0.0, 1.0, when={"kind": np.int64(3)}),
    }
    study = bl.Study("s", url, bl.RandomSearch(space, seed=np.int64(0)))
    for i, value in enumerate(GIVEN):
        params = {"kind": value, "size": np.int64(16), "low": np.float32(1.0)} | ({"x": 0.5} if i == 2 else {})
        study.add(params, np.float32(i))
    study.suggest(n=np.int64(3))
    loaded = bl.Study.load("s", url)
    assert repr([trial.params["kind"] for trial in loaded.trials[:6]]) == repr(KEPT)
    assert loaded.domain == study.domain == bl.Space(space)
    for mine, theirs in zip(study.trials, loaded.trials, strict=True):
        assert json.dumps(mine.params) == json.dumps(theirs.params)
    assert bl.Study("s", url, bl.RandomSearch(space, seed=0)).n_trials == 9  # the definition is the same


@pytest.mark.parametrize(
    "value",
    [[16], {"a": 1}, {1, 2}, float("nan"), np.float32("nan"), float("inf"), (1, [2]), np.array([1, 2]), print, b"a"],
    ids=repr,
)
def test_other_values_are_refused_by_name(url, value):
    bl.Study("other", url, bl.RandomSearch({"x": (0.0, 1.0)}))
    with pytest.raises(bl.errors.InvalidSpace, match=r"^space\['kind'\]=.* cannot be stored: a study keeps strings"):
        bl.Study("s", url, bl.RandomSearch({"kind": [value, "a"]}, seed=0))
    assert store.open_store(url).names() == ["other"]
