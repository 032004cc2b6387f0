"""Revisions after which some values are not suggested any more, and models keep the trials with these values."""

import dataclasses
import pickle
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import belated as bl
from belated.store.memory import MemoryStore
from belated.study.definition import definition_of, differences

SOLVENTS = {"s": ["a", "b", "c"], "T": (20.0, 120.0)}
WITHOUT_A = SOLVENTS | {"s": ["b", "c"]}


def value(params):
    return -(((params["T"] - 47) / 40) ** 2) + {"a": 0.1, "b": 0.0, "c": -0.1, "d": 0.0}[params.get("s", "b")]


def filled(tmp_path, space, f=value, n=14, **settings):
    study = bl.Study("s", f"sqlite:///{tmp_path}/s.db", bl.BayesOpt(space, seed=0, **settings))
    for _ in range(n):
        trial = study.suggest()
        trial.observe(f(trial.params))
    return study


def test_a_choice_that_is_not_offered_stays_in_the_model(tmp_path):
    study = filled(tmp_path, SOLVENTS)
    waiting = study.suggest(fixed={"s": "a"})
    with pytest.warns(bl.BelatedWarning, match="must not be run any longer"):
        study.revise(space=WITHOUT_A)
    assert repr(study.domain["s"]) == "Categorical(['b', 'c', 'a'], offered=['b', 'c'])"
    assert study.left_out == {} and [*study.forbidden] == [waiting.number]
    assert {t.outside for t in study.trials if t.params["s"] == "a"} == {True}
    assert study.best_params_["s"] != "a" and study.recommend()["s"] != "a"
    new = [*study.suggest(n=6), *study.suggest(n=2, fixed={"T": (40.0, 50.0)}), *study.suggest(n=2, shared=["s"])]
    assert "a" not in {t.params["s"] for t in new}
    for refuse in (lambda: study.suggest(fixed={"s": "a"}), lambda: study.enqueue({"s": "a", "T": 30.0})):
        with pytest.raises(bl.errors.InvalidPoint, match=r"one of the offered values \['b', 'c'\]"):
            refuse()
    assert study.suggest(fixed={"s": ["b"]}).params["s"] == "b"
    waiting.observe(0.05)
    assert study.add({"s": "a", "T": 50.0}, 0.1).outside and waiting.outside
    mean, _ = study.predict([{"s": "a", "T": 50.0}, {"s": "b", "T": 50.0}])
    assert mean[0] > mean[1]


def test_trials_with_a_choice_that_is_not_offered_show_where_the_best_point_is(tmp_path):
    study = filled(tmp_path, SOLVENTS)
    study.revise(space=WITHOUT_A)
    assert study.suggest().params["T"] == pytest.approx(47, abs=1)


def test_other_processes_and_later_revisions_know_the_choice(tmp_path):
    study = filled(tmp_path, SOLVENTS)
    first = bl.Study.load("s", f"sqlite:///{tmp_path}/s.db")
    study.revise(space=WITHOUT_A)
    # The script names the present choices only.
    again = bl.Study("s", f"sqlite:///{tmp_path}/s.db", bl.BayesOpt(WITHOUT_A, seed=0))
    for opened in (again, bl.Study.load("s", f"sqlite:///{tmp_path}/s.db"), first):
        opened.sync()
        assert repr(opened.domain) == repr(study.domain) and opened.left_out == {}
    with pytest.raises(bl.errors.InvalidSetting, match=r"space\['s'\] is"):
        bl.Study("s", f"sqlite:///{tmp_path}/s.db", bl.BayesOpt(SOLVENTS | {"s": ["b", "a"]}, seed=0))
    study.revise(space=SOLVENTS | {"s": ["d", "b"]})
    assert study.domain["s"].offered == ["d", "b"] and {*study.domain["s"].options} == {"a", "b", "c", "d"}
    study.revise(surrogate__kernel="matern52")
    assert study.left_out == {} and {t.params["s"] for t in study.suggest(n=5)} <= {"b", "d"}
    study.revise(space=SOLVENTS | {"s": ["a", "b", "c", "d"]})
    assert study.domain["s"].offered is None and not any(t.outside for t in study.trials)
    study.revise(space={"s": ["b", "c", "d"], "T": (20.0, 120.0)}, map={"s": {"a": "b"}})
    assert study.domain["s"].offered is None and "a" not in {t.params["s"] for t in study.trials}


def test_trials_with_a_choice_that_was_removed_are_left_out_on_request(tmp_path):
    study = filled(tmp_path, SOLVENTS)
    n = sum(t.params["s"] == "a" for t in study.trials)
    with pytest.warns(bl.BelatedWarning, match="left out of the new problem"):
        study.revise(space=WITHOUT_A, drop=True)
    assert len(study.left_out) == n and study.domain["s"].options == ("b", "c")
    with pytest.raises(bl.errors.InvalidSetting, match="drop"):
        study.revise(space=WITHOUT_A, drop="yes")


def test_a_choice_that_no_trial_has_is_removed(tmp_path):
    study = filled(tmp_path, SOLVENTS | {"s": ["a", "b", "c", "wtaer"]}, n=0)
    study.add({"s": "a", "T": 50.0}, 1.0)
    study.revise(space=SOLVENTS)
    assert study.domain["s"].options == ("a", "b", "c")


@pytest.mark.parametrize(
    ("old", "new", "offered"),
    [
        ((1, 5), 3, [3]),
        ((1, 5), bl.Integer(3, 3), [3]),
        ((1.0, 5.0), 2.5, [2.5]),
        (bl.Real(1.0, 100.0, log=True), 10.0, [10.0]),
        (bl.Real(0.0, 1.0, step=0.25), 0.75, [0.75]),
        (bl.Ordinal([1, 2, 4, 8]), 4, [4]),
        (bl.Ordinal([1, 2, 4, 8]), bl.Ordinal([2, 8]), [2, 8]),
        ([1, 2, 4], 4, [4]),
    ],
)
def test_a_parameter_that_becomes_a_constant_keeps_its_trials(tmp_path, old, new, offered):
    study = filled(tmp_path, {"p": old, "x": (0.0, 1.0)}, lambda p: -((p["p"] - 3) ** 2) - (p["x"] - 0.37) ** 2)
    study.revise(space={"p": new, "x": (0.0, 1.0)})
    assert study.left_out == {} and study.domain["p"].offered == offered
    assert all(t.outside == (t.params["p"] not in offered) for t in study.trials)
    trials = study.suggest(n=4)
    assert all(t.params["p"] in offered for t in trials)
    assert study.recommend()["p"] in offered
    assert study.add({"x": 0.5, "p": offered[0]}, 0.0).outside is False
    study.enqueue({"x": 0.25})
    assert study.suggest().params == {"p": offered[0], "x": 0.25} or len(offered) > 1
    again = bl.Study("s", f"sqlite:///{tmp_path}/s.db", bl.BayesOpt({"p": new, "x": (0.0, 1.0)}, seed=0))
    assert again.left_out == {} and repr(again.domain) == repr(study.domain)
    study.revise(space={"p": old, "x": (0.0, 1.0)})
    assert study.domain["p"].offered is None and not any(t.outside for t in study.trials)


def test_all_parameters_may_become_constants_but_one(tmp_path):
    study = filled(tmp_path, SOLVENTS | {"k": (1, 3)})
    study.revise(space={"s": "b", "T": (20.0, 120.0), "k": 2})
    assert study.left_out == {}
    assert {(t.params["s"], t.params["k"]) for t in study.suggest(n=5)} == {("b", 2)}
    found = study.recommend()
    assert (found["s"], found["k"]) == ("b", 2) and abs(found["T"] - 47) < 5
    study.revise(space={"s": "b", "T": bl.Real(20.0, 120.0, offered=[47.0]), "k": 2})
    assert study.suggest().params == study.recommend() == {"s": "b", "T": 47.0, "k": 2}


def test_conditional_parameters_may_have_offered_values(tmp_path):
    def f(params):
        return params["h"] / 10 - abs(params.get("k", 2) - 2)

    space = {"net": ["one", "two"], "h": (0.0, 1.0), "k": bl.Categorical([1, 2, 3], when={"net": "two"})}
    study = filled(tmp_path, space, f)
    study.revise(space=space | {"k": bl.Categorical([2], when={"net": "two"})})
    assert study.left_out == {}
    params = [study.suggest().params for _ in range(12)]
    assert {p["net"] for p in params} == {"one", "two"}
    assert {p.get("k") for p in params} == {None, 2}


@pytest.mark.parametrize("kind", [bl.RandomSearch, bl.BayesOpt])
def test_offered_values_can_be_declared(kind):
    space = {"s": bl.Categorical(["a", "b", "c"], offered=["b", "c"]), "n": bl.Integer(1, 9, offered=[2, 3, 5])}
    opt = kind(space, seed=0)
    assert eval(repr(space["n"]), vars(bl)) == space["n"]
    opt.add([{"s": "a", "n": 9}, {"s": "b", "n": 2}], [3.0, 1.0])
    assert opt.best_params_ == {"s": "b", "n": 2} == opt.recommend()
    opt = pickle.loads(pickle.dumps(opt))
    trials = opt.suggest(n=5)
    seen = {(t.params["s"], t.params["n"]) for t in trials}
    assert len(seen) == 5 and seen <= {(s, n) for s in "bc" for n in (2, 3, 5)} - {("b", 2)}
    assert opt.suggest(fixed={"n": (3, 4)}).params["n"] == 3
    with pytest.raises(bl.errors.InvalidPoint, match=r"fixed\['n'\]"):
        opt.suggest(fixed={"n": (6, 9)})


@pytest.mark.parametrize("offered", [[], "b", ["d"], 3])
def test_offered_values_are_values_of_the_parameter(offered):
    with pytest.raises(bl.errors.InvalidSpace, match="offered="):
        bl.Categorical(["a", "b"], offered=offered)


def test_optimizers_without_fixed_values_leave_trials_out_or_refuse(tmp_path):
    with pytest.raises(bl.errors.InvalidSetting, match="offered"):
        bl.TreeSearch({"n": bl.Integer(1, 9, offered=[2]), "x": (0.0, 1.0)}, seed=0)
    study = bl.Study("s", f"sqlite:///{tmp_path}/s.db", bl.TreeSearch({"n": (1, 3), "x": (0.0, 1.0)}, seed=0))
    for trial in study.suggest(n=8):
        trial.observe(0.0)
    with pytest.raises(bl.errors.InvalidSetting, match="leaves out a trial"):
        study.revise(space={"n": 2, "x": (0.0, 1.0)})


def test_descriptors_of_the_other_choices_are_kept(tmp_path):
    logp = {"a": 1.0, "b": 2.0, "c": 4.0}
    described = {name: {"logP": logp[name]} for name in logp}
    space = {"s": bl.Categorical(["a", "b", "c"], descriptors=described), "T": (20.0, 120.0)}
    study = filled(tmp_path, space)
    new = bl.Categorical(["c", "b"], descriptors={name: described[name] for name in "cb"})
    study.revise(space=space | {"s": new})
    assert study.domain["s"].descriptors == [{"logP": 4.0}, {"logP": 2.0}, {"logP": 1.0}]
    assert study.left_out == {}
    other = bl.Categorical(["c", "b"], descriptors={"c": {"mass": 4.0}, "b": {"mass": 2.0}})
    with pytest.warns(bl.BelatedWarning, match="left out"):
        study.revise(space=space | {"s": other})


def test_no_warning_is_given_where_all_trials_stay(tmp_path):
    study = filled(tmp_path, SOLVENTS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study.revise(space=WITHOUT_A)


def test_importances_are_those_of_the_offered_values(tmp_path):
    study = filled(tmp_path, SOLVENTS | {"k": (1, 5)}, lambda params: value(params) - params["k"] / 5)
    study.revise(space=WITHOUT_A | {"k": 3})
    found = study.importances()
    assert found["k"] == 0.0 and found["T"] > found["s"]


def test_calls_that_were_made_before_the_revision(tmp_path):
    study = filled(tmp_path, SOLVENTS)
    waiting = study.suggest(fixed={"s": "b"})
    other = bl.Study.load("s", f"sqlite:///{tmp_path}/s.db")
    study.revise(space=WITHOUT_A)
    other.observe(waiting.number, 0.5, params={"s": "a", "T": 47.0})
    assert study.trial(waiting.number).outside and study.trial(waiting.number).params_run["s"] == "a"
    first = bl.Study.load("s", f"sqlite:///{tmp_path}/s.db", revision=1)
    assert first.domain["s"].options == ("a", "b", "c") and not any(t.outside for t in first.trials)
    study.revise(space=SOLVENTS)
    later = bl.Study.load("s", f"sqlite:///{tmp_path}/s.db")
    study.revise(space=WITHOUT_A)
    with pytest.raises(bl.errors.InvalidPoint, match="one of the offered values"):
        later.suggest(fixed={"s": "a"})
    assert later.suggest(fixed={"s": ["b", "c"]}).params["s"] != "a"


OWN = {
    "s": ["DMF", "MeCN", "THF"],
    "T": (20.0, 120.0),
    "w": bl.Real(0.0, 1.0, when={"s": "DMF"}),
    "k": bl.Categorical(["x", "y"], when={"s": ["DMF", "THF"]}),
    "d": bl.Integer(1, 9, when={"k": "x", "s": "DMF"}),
}
WITHOUT_DMF = {"s": ["MeCN", "THF"], "T": (20.0, 120.0), "k": bl.Categorical(["x", "y"], when={"s": "THF"})}


def of_own(params):
    return -(((params["T"] - 47) / 40) ** 2) + params.get("w", 0.0)


@pytest.mark.parametrize("kind", [bl.BayesOpt, bl.RandomSearch])
def test_a_removed_choice_keeps_its_parameters(tmp_path, kind):
    study = bl.Study("s", f"sqlite:///{tmp_path}/s.db", kind(OWN, seed=0))
    for trial in study.suggest(n=14):
        trial.observe(of_own(trial.params))
    params = [trial.params for trial in study.trials]
    assert {"w", "k", "d"} <= {name for each in params for name in each}
    study.revise(space=WITHOUT_DMF)
    assert study.left_out == {} and [trial.params for trial in study.trials] == params
    assert [trial.outside for trial in study.trials] == [each["s"] == "DMF" for each in params]
    for trial in [*study.suggest(n=4), study.suggest(fixed={"s": "THF"}), study.suggest(fixed={"w": None, "d": None})]:
        assert trial.params["s"] != "DMF" and not {"w", "d"} & trial.params.keys()
        assert ("k" in trial.params) == (trial.params["s"] == "THF")
    assert study.recommend()["s"] != "DMF"
    added = study.add({"s": "DMF", "T": 50.0, "w": 0.25, "k": "y"}, 0.1)
    assert added.outside and added.params["w"] == 0.25
    # A script that names the present space opens the study, and a later revision keeps the trials, too.
    again = bl.Study("s", f"sqlite:///{tmp_path}/s.db", kind(WITHOUT_DMF, seed=0))
    assert again.left_out == {} and repr(again.domain) == repr(study.domain)
    with pytest.raises(bl.errors.InvalidSetting, match="the names of space"):
        bl.Study("s", f"sqlite:///{tmp_path}/s.db", kind(WITHOUT_DMF | {"u": (0.0, 1.0)}, seed=0))
    study.revise(space=WITHOUT_DMF | {"T": (20.0, 130.0)})
    assert study.left_out == {} and [trial.params for trial in study.trials[:14]] == params
    study.revise(space=OWN)
    assert not any(trial.outside for trial in study.trials) and repr(study.domain) == repr(bl.Space(OWN))


def test_parameters_of_a_removed_choice_can_be_removed(tmp_path):
    study = filled(tmp_path, OWN, of_own)
    at_dmf = {trial.number for trial in study.trials if trial.params["s"] == "DMF"}
    with pytest.warns(bl.BelatedWarning, match="left out"):
        study.revise(space=WITHOUT_DMF, drop=True)
    assert {*study.left_out} == at_dmf
    other = filled(tmp_path / "..", OWN | {"w": bl.Categorical([1, 2], when={"s": "DMF"})}, lambda params: 0.0)
    rows = {trial.number for trial in other.trials if trial.params.get("w") == 2}
    with pytest.warns(bl.BelatedWarning, match="left out"):
        other.revise(space=WITHOUT_DMF, keep={"w": 1})
    assert {*other.left_out} == rows and other.domain["s"].options == ("MeCN", "THF", "DMF")


def test_a_removed_option_of_a_choice_between_groups_keeps_its_parameters(tmp_path):
    options = {"svm": {"C": (0.1, 10.0)}, "forest": {"depth": (1, 9), "how": bl.Choice({"a": {"q": (1, 3)}, "b": {}})}}
    space = {"m": bl.Choice(options | {"knn": {}}), "T": (20.0, 120.0)}
    study = filled(tmp_path, space, lambda params: params["T"], n=20)
    params = [trial.params for trial in study.trials]
    assert any("forest" in each["m"] and "a" in each["m"]["forest"]["how"] for each in params)
    study.revise(space={"m": bl.Choice({"svm": options["svm"], "knn": {}}), "T": (20.0, 120.0)})
    assert study.left_out == {} and [trial.params for trial in study.trials] == params
    assert {*(name for trial in study.suggest(n=6) for name in trial.params["m"])} <= {"svm", "knn"}
    again = bl.Study.load("s", f"sqlite:///{tmp_path}/s.db")
    assert [trial.params for trial in again.trials[:20]] == params


def test_a_removed_choice_is_renamed(tmp_path):
    study = filled(tmp_path, OWN, of_own)
    at_dmf = [trial.params for trial in study.trials if trial.params["s"] == "DMF"]
    study.revise(space=WITHOUT_DMF)
    study.revise(space=WITHOUT_DMF, map={"s": {"DMF": "dmf"}})
    assert study.domain["s"].options == ("MeCN", "THF", "dmf") and study.left_out == {}
    assert [t.params for t in study.trials if t.params["s"] == "dmf"] == [each | {"s": "dmf"} for each in at_dmf]
    with pytest.raises(bl.errors.InvalidSetting, match=r"map\['s'\]"):
        study.revise(space=WITHOUT_DMF, map={"s": {"DMF": "THF"}})
    for wrong in ("THF ", ["THF"], 1.5):
        with pytest.raises(bl.errors.InvalidSetting, match=r"map\['s'\]\['THF'\]"):
            study.revise(space=WITHOUT_DMF, map={"s": {"THF": wrong}})
    with pytest.raises(bl.errors.InvalidSetting, match="keep misses"):
        study.revise(space=WITHOUT_DMF, map={"s": {"dmf": "THF"}})  # w has a value in trials at THF
    study.revise(
        space=OWN
        | {"s": ["dmf", "MeCN", "THF"]}
        | {name: bl.Real(0.0, 1.0, when={"s": "dmf"}) for name in ("w", "d", "k")}
        | {
            "k": bl.Categorical(["x", "y"], when={"s": ["dmf", "THF"]}),
            "d": bl.Integer(1, 9, when={"s": "dmf", "k": "x"}),
        }
    )
    assert not any(trial.outside for trial in study.trials)


def test_an_ordinal_level_that_is_not_offered_is_renamed(tmp_path):
    levels = {"p": bl.Ordinal(["low", "mid", "high"]), "T": (20.0, 120.0)}
    study = filled(tmp_path, levels, lambda params: 0.0)
    n = sum(trial.params["p"] == "mid" for trial in study.trials)
    assert n
    study.revise(space=levels | {"p": bl.Ordinal(["low", "high"])})
    study.revise(space=levels | {"p": bl.Ordinal(["low", "high"])}, map={"p": {"mid": "medium"}})
    assert study.domain["p"].options == ("low", "medium", "high")
    assert sum(trial.params["p"] == "medium" for trial in study.trials) == n and study.left_out == {}


def test_a_removed_choice_is_the_value_that_a_removed_parameter_keeps(tmp_path):
    study = filled(tmp_path, SOLVENTS)
    at_a = {trial.number for trial in study.trials if trial.params["s"] == "a"}
    study.revise(space=WITHOUT_A)
    with pytest.raises(bl.errors.InvalidSetting, match="keep misses"):
        study.revise(space={"T": (20.0, 120.0)})
    with pytest.raises(bl.errors.InvalidSetting, match=r"keep\['s'\]='d' .*'a'"):
        study.revise(space={"T": (20.0, 120.0)}, keep={"s": "d"})
    study.revise(space={"T": (20.0, 120.0)}, keep={"s": "a"})
    assert {*range(14)} - {*study.left_out} == at_a


@pytest.mark.parametrize(("old", "constant"), [(["a", "b"], "b"), ((1, 5), 3), (bl.Ordinal([1, 2, 4]), 2)])
def test_a_parameter_that_became_a_constant_is_removed_without_keep(tmp_path, old, constant):
    study = filled(tmp_path, {"p": old, "T": (20.0, 120.0)}, lambda params: params["T"])
    study.add({"p": constant, "T": 30.0}, 1.0)
    at = {trial.number for trial in study.trials if trial.params["p"] == constant}
    study.revise(space={"p": constant, "T": (20.0, 120.0)})
    copied = study.copy("copied", {"T": (20.0, 120.0)})
    study.revise(space={"T": (20.0, 120.0)})
    assert {*range(15)} - {*study.left_out} == at and copied.n_trials == len(at)
    assert bl.Study.load("s", f"sqlite:///{tmp_path}/s.db").left_out == study.left_out


def test_copies_keep_trials_with_removed_choices_as_revise_does(tmp_path):
    study = filled(tmp_path, OWN, of_own)
    study.add({"s": "DMF", "T": 150.0, "w": 0.5, "k": "y"}, 0.0)  # beyond a bound
    study.add({"s": "MeCN", "T": 119.5}, 0.0)
    with pytest.warns(bl.BelatedWarning, match="has 15 of the 16 trials"):
        copied = study.copy("copied", WITHOUT_DMF | {"T": (20.0, 119.0)})
    study.revise(space=WITHOUT_DMF | {"T": (20.0, 119.0)})
    kept = [trial for trial in study.trials if trial.number != 15]
    assert repr(copied.domain) == repr(study.domain)
    facts = [(trial.params, trial.value, trial.outside) for trial in copied.trials]
    assert facts == [(trial.params, trial.value, trial.outside) for trial in kept]
    with pytest.warns(bl.BelatedWarning, match="do not belong to the space"):
        dropped = study.copy("dropped", WITHOUT_DMF, drop=True)
    assert "DMF" not in {trial.params["s"] for trial in dropped.trials} and dropped.domain["s"].offered is None


CHOICES = {"s": ["a", "b", "c", "d"], "r": ["u", "v", "w"]}


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_no_trial_is_left_out_wherever_choices_are_removed(data):
    """Trials keep all values that a user's smaller space, with the conditions that it can still have, allows."""

    def some(names, least=1):
        return data.draw(st.lists(st.sampled_from(names), min_size=least, unique=True))

    space = CHOICES | {"r": bl.Categorical(CHOICES["r"], when={"s": some(CHOICES["s"])})}
    for i in range(3):
        when = {name: some(CHOICES[name]) for name in some(["s", "r"])}
        space[f"p{i}"] = data.draw(st.sampled_from([bl.Real(0.0, 1.0, when=when), bl.Categorical([1, 2], when=when)]))
    study = bl.Study("s", MemoryStore(), bl.RandomSearch(space, seed=data.draw(st.integers(0, 99))))
    for trial in study.suggest(n=12):
        trial.observe(0.5)
    params = [trial.params for trial in study.trials]
    left = {name: some(CHOICES[name], 2) for name in CHOICES}
    smaller = dict(space) | {"s": left["s"]}
    for name in [*space][1:]:
        when = {parent: [v for v in values if v in left[parent]] for parent, values in space[name].when.items()}
        if all(when.values()) and all(parent in smaller for parent in when):
            own = {"choices": left["r"]} if name == "r" else {}
            smaller[name] = dataclasses.replace(space[name], when=when, **own)
        else:
            del smaller[name]
    removed = [name for name in space if name not in smaller]
    is_removed = [any(params[i].get(name, left[name][0]) not in left[name] for name in left) for i in range(12)]
    study.revise(space=smaller)
    assert study.left_out == {} and [trial.params for trial in study.trials] == params
    assert [trial.outside for trial in study.trials] == is_removed
    for trial in study.suggest(n=8):
        bl.Space(smaller).encode(trial.params)  # a point of the space that the user passed
        assert not trial.params.keys() & {*removed}
    assert differences(definition_of(study.optimizer), definition_of(bl.RandomSearch(smaller)) | {"seed": None}) == []
    assert [trial.params for trial in study.copy("copy").trials] == params
