"""Replicates are repeated measurements of one point, each with independent noise."""

import pytest

import belated as bl


@pytest.fixture
def study(tmp_path):
    return bl.Study("s", f"sqlite:///{tmp_path / 'studies.db'}", bl.RandomSearch({"x": (0.0, 1.0)}, seed=1))


@pytest.mark.parametrize("keys", [(None, None, None), ("a", "b", "c")])
def test_each_replicate_keeps_its_std(study, keys):
    trial = study.suggest()
    for value, std, key in zip((1.0, 2.0, 3.0), (0.25, None, 0.5), keys, strict=True):
        study.observe(trial, value, std=std, replicate=True, key=key)
    for known in (study, bl.Study.load("s", study.store)):
        facts = [(t.params, t.value, t.std) for t in known.trials]
        assert facts == [(trial.params, value, std) for value, std in ((1.0, 0.25), (2.0, None), (3.0, 0.5))]


def test_a_replicate_with_another_std_needs_another_key(study):
    trial = study.suggest()
    study.observe(trial, 1.0)
    for _ in range(2):
        study.observe(trial, 2.0, std=0.5, replicate=True, key="again")
    with pytest.raises(bl.errors.InvalidSetting, match="again"):
        study.observe(trial, 2.0, std=0.25, replicate=True, key="again")
    assert [t.std for t in study.trials] == [None, 0.5]
