"""Candidates with named columns, on every surface on which spaces have names."""

import pickle

import numpy as np
import pandas as pd
import pytest

import belated as bl
from belated import cli
from belated.space import NamedCandidates
from belated.store.memory import MemoryStore

RNG = np.random.default_rng(3)
N = 60
TABLE = pd.DataFrame(
    {
        "T": RNG.choice([20, 40, 60, 80], N),
        "conc": RNG.choice([0.1, 0.1 + 0.2, 1 / 3], N),
        "solvent": RNG.choice(["DMF", "water", "MeCN"], N),
        "dry": RNG.choice([True, False], N),
        "salt": RNG.choice(["NaCl", "NA", None, "01"], N),
    }
)
TABLE["equivalents"] = np.where(TABLE["salt"].isna(), np.nan, RNG.choice([1.0, 2.0], N))
QUICK = {"surrogate": bl.GP(n_restarts=1, n_refit_restarts=1)}


def yield_of(params):
    best = 60 + 10 * (params["solvent"] == "MeCN")
    salt = 0.1 * params.get("equivalents", 0.0) * (params.get("salt") == "NaCl")
    return 1.0 - (params["T"] - best) ** 2 / 1000 + params["conc"] + 0.3 * params["dry"] + salt


def a_run(n=14):
    opt = bl.BayesOpt(candidates=TABLE, seed=0)
    for trial in opt.suggest(n=4):
        trial.observe(yield_of(trial.params))
    for _ in range(n - 4):
        trial = opt.suggest()
        trial.observe(yield_of(trial.params))
    return opt


@pytest.fixture(scope="module")
def searched():
    return a_run()


def row(index):
    return {name: value for name, value in TABLE.iloc[index].items() if not pd.isna(value)}


@pytest.mark.parametrize(
    "make",
    [
        lambda **domain: bl.BayesOpt(**domain, seed=1),
        lambda **domain: bl.BayesOpt(**domain, acquisition="thompson", pending="hallucinate", seed=1),
        lambda **domain: bl.RandomSearch(**domain, seed=1),
        lambda **domain: bl.algorithm("GP-UCB-SDF", **domain, window=6, seed=1),
        lambda **domain: bl.BPEDelay(**domain, horizon=40, lengthscale=0.3, noise_std=0.1, delay="none", seed=1),
    ],
    ids=["BayesOpt", "Thompson", "RandomSearch", "GP-UCB-SDF", "BPEDelay"],
)
def test_a_table_of_numbers_gives_the_suggestions_of_the_array(make):
    x = np.random.default_rng(0).normal(size=(80, 3)) * [1.0, 1e3, 1e-5]
    x[7] = x[3]
    x[:, 2] = x[0, 2]
    array, table = make(candidates=x), make(candidates=dict(zip("abc", x.T, strict=True)))
    for k in range(14):
        trials = [opt.suggest() for opt in (array, table)]
        assert trials[0].index == trials[1].index
        assert list(trials[1].params.values()) == trials[0].params.tolist()
        for trial in trials:
            if k % 3:
                trial.observe(-abs(trials[0].params[0] - 0.2))
    assert list(array._log.trial(13).context) == list(table._log.trial(13).context)


def test_params_are_rows_of_the_table(searched):
    assert all(trial.params == row(trial.index) == trial.params_run for trial in searched.trials)
    assert {type(trial.params["T"]) for trial in searched.trials} == {int}
    assert {type(trial.params["dry"]) for trial in searched.trials} == {bool}
    best = searched.best_trial_
    assert searched.best_params_ == row(best.index) and searched.recommend() == searched.recommend(n=3)[0]
    assert searched.best_value_ >= sorted(yield_of(row(i)) for i in range(N))[-5]


def test_points_are_given_by_params_or_index(searched):
    rows = [row(i) for i in (5, 0, 5)]
    expected = searched.predict()
    for given in (rows, [5, 0, 5], np.array([5, 0, 5]), TABLE.iloc[[5, 0, 5]], [rows[0], 0, 5]):
        mean, std = searched.predict(given)
        np.testing.assert_allclose(mean, expected[0][[5, 0, 5]], rtol=1e-12)
        np.testing.assert_allclose(std, expected[1][[5, 0, 5]], rtol=1e-12)
    assert searched.predict(5) == searched.predict(rows[0]) == pytest.approx((expected[0][5], expected[1][5]))
    assert searched.acquisition_at(rows[0]) == pytest.approx(searched.acquisition_at()[5])
    assert np.isfinite(searched.predict(rows[0] | {"T": 47.5})[0])  # between rows


def test_enqueue_completes_params_by_a_row():
    opt = bl.RandomSearch(candidates=TABLE, seed=0)
    opt.enqueue([{"solvent": "DMF", "T": 60}, row(7), 9])
    drawn = opt.suggest(n=3)
    assert {"solvent": "DMF", "T": 60}.items() <= drawn[0].params.items()
    assert drawn[1].params == row(7) and drawn[2].index == 9
    n_events = opt._log.n_events()
    for bad in ({"T": 61}, {"salt": "NaCl", "equivalents": None}, {"t": 60}, N, row(3) | {"T": 61}):
        with pytest.raises(bl.errors.InvalidPoint):
            opt.enqueue(bad)
    with pytest.raises(bl.errors.InvalidPoint, match="misses"):
        opt.add({"T": 60, "salt": None}, 1.0)
    assert opt._log.n_events() == n_events


def test_measurements_off_the_rows_are_outside():
    opt = bl.BayesOpt(candidates=TABLE, seed=0, **QUICK)
    trial = opt.suggest()
    moved = trial.params | {"T": 47.5}
    trial.observe(1.0, params=moved)
    assert trial.outside and trial.params_run == moved and opt.best_trial_ is None
    other = opt.suggest()
    other.observe(2.0, params=other.params)
    assert not other.outside and opt.best_params_ == other.params
    added = opt.add({"T": 10, "conc": 0.1, "solvent": "DMF", "dry": True}, 3.0)
    assert added.outside and added.params == {"T": 10, "conc": 0.1, "solvent": "DMF", "dry": True}
    with pytest.raises(bl.errors.InvalidPoint):
        opt.add(added.params | {"solvent": "THF"}, 1.0)


@pytest.mark.parametrize("form", ["DataFrame", "csv", "xlsx"])
def test_tables_of_trials_are_read_back(searched, form, tmp_path):
    opt = pickle.loads(pickle.dumps(searched))
    for index in np.flatnonzero(TABLE["salt"] == "NA")[:2]:
        opt.add(int(index), 0.5)
    trial = opt.suggest()
    trial.observe(0.1, params=trial.params | {"T": 47.123456789012345})
    opt.suggest()
    if form == "DataFrame":
        table = opt.trials_dataframe()
        assert "index" not in table and {f"params_{name}" for name in TABLE} <= {*table.columns}
    elif form == "csv":
        opt.to_csv(tmp_path / "trials.csv")
        table = pd.read_csv(tmp_path / "trials.csv")
    else:
        opt.to_excel(tmp_path / "trials.xlsx")
        table = pd.read_excel(tmp_path / "trials.xlsx")
    other = bl.BayesOpt(candidates=TABLE, seed=0)
    trials, skipped = other.add(table, on_error="skip")
    # An empty cell of a file may be a gap or the choice "NA".
    unclear = [i for i, trial in enumerate(opt.trials) if trial.params_run.get("salt", "NA") == "NA"]
    assert [each.row for each in skipped] == ([] if form == "DataFrame" else unclear)
    assert {each.column for each in skipped} <= {"params_salt", "params_run_salt"}
    kept = [trial for i, trial in enumerate(opt.trials) if i not in {each.row for each in skipped}]
    # Excel stores 16 digits of a number, and pandas may change the last digits.
    values, before = (np.array([trial.value for trial in each], dtype=float) for each in (trials, kept))
    np.testing.assert_allclose(values, before, rtol=1e-14)  # the values of pending trials are NaN
    for trial, before in zip(trials, kept, strict=True):
        assert trial.params_run == before.params_run | {"T": pytest.approx(before.params_run["T"], rel=1e-14)}


def test_tables_of_users_are_matched_with_the_rows():
    opt = bl.RandomSearch(candidates=TABLE, seed=0)
    table = TABLE.iloc[[3, 11, 20]].assign(yielded=[0.1, 0.2, 0.3])
    trials = opt.add(table, "yielded")
    assert [trial.params for trial in trials] == [row(3), row(11), row(20)]
    table.loc[table.index[1], "solvent"] = "THF"
    with pytest.raises(bl.errors.InvalidPoint, match="row 11, column 'solvent'"):
        opt.add(table, "yielded")
    with pytest.raises(bl.errors.InvalidPoint, match=r"lacks columns of params \['conc'\]"):
        opt.add(table.drop(columns="conc"), "yielded")
    assert opt.n_trials == 3


def test_the_table_is_copied():
    table = TABLE.copy()
    opt = bl.BayesOpt(candidates=table, seed=0)
    table["T"] = 0
    assert opt.get_params()["candidates"] == opt.domain == NamedCandidates(TABLE)
    opt.set_params(acquisition="ucb")
    assert opt.domain == NamedCandidates(TABLE)
    assert bl.BayesOpt(**opt.get_params(deep=False)).suggest().params == opt.suggest().params


def test_the_model_has_names(searched):
    assert list(searched.surrogate_.lengthscales) == list(TABLE)
    importances = searched.importances()
    assert set(importances) == set(TABLE) and sum(importances.values()) == pytest.approx(1.0)
    assert importances["T"] == max(importances.values())


def test_importances_are_the_total_effects_over_the_columns():
    # f = 3a + [c = "u"] over independent columns: the total effects are 9 Var(a) and Var([c = "u"]).
    rng = np.random.default_rng(0)
    table = {"a": rng.choice([0.0, 0.1, 1.0], 300), "c": rng.choice(["u", "v", "w"], 300).tolist(), "k": ["k"] * 300}
    opt = bl.BayesOpt(candidates=table, seed=0)
    f = 3 * table["a"] + (np.array(table["c"]) == "u")
    opt.add(list(range(60)), f[:60].tolist())
    effects = {"a": 9 * np.var(table["a"]), "c": np.var(np.array(table["c"]) == "u")}
    expected = {name: effect / sum(effects.values()) for name, effect in effects.items()}
    assert opt.importances() == pytest.approx(expected, abs=0.02)


def test_a_column_with_one_text_and_gaps_is_searched():
    table = {"x": np.linspace(0, 1, 20).round(2).tolist() * 2, "salt": ["NaCl"] * 20 + [None] * 20}
    opt = bl.BayesOpt(candidates=table, seed=0)
    for _ in range(12):
        trial = opt.suggest()
        trial.observe(-((trial.params["x"] - 0.3) ** 2) + ("salt" not in trial.params))
    assert "salt" not in opt.best_params_ and opt.importances()["salt"] > 0.5


def test_categories_have_the_kernel_of_a_space():
    """In a full grid, the posterior equals the posterior in the space of the same parameters."""
    space = {"x": bl.Real(0.0, 1.0), "c": ["u", "v", "w"]}
    grid = [{"x": x, "c": c} for x in np.linspace(0, 1, 5).tolist() for c in "uvw"]
    settings = {"kernel": "matern52", "noise_std": 0.1, "inputs": "plain", "targets": "standardized"}
    for given in ({"lengthscale": 0.7, "signal_std": 1.0}, {}):
        found = []
        for domain in ({"space": space}, {"candidates": grid}):
            opt = bl.BayesOpt(**domain, surrogate=bl.GP(**settings, **given), seed=0)
            opt.add(grid[::2], [float(np.sin(5 * p["x"]) + (p["c"] == "v")) for p in grid[::2]])
            found.append(opt.predict(grid))
        np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


@pytest.mark.parametrize("kind", [bl.BayesOpt, bl.RandomSearch])
def test_equal_rows_are_one_point_and_every_row_is_tried_before_one_is_repeated(kind):
    distinct = [{"c": c, "x": x} if x is not None else {"c": c} for c in "uv" for x in (0.0, 0.5, 1.0, None)]
    opt = kind(candidates=distinct + distinct[::-1], seed=0)
    trials = opt.suggest(n=8)
    seen = [trial.params for trial in trials]
    assert all(params in seen for params in distinct)
    for trial in trials:
        trial.observe(0.0 if trial.params["c"] == "u" else 1.0)
    assert opt.suggest().params in distinct


@pytest.mark.parametrize(
    "table",
    [
        {"c": ["only"]},
        {"x": [1.0]},
        {"x": [None, None, None], "y": [1, 2, 3]},
        {"x": [None], "y": [None]},
        {"k": [1, 1, 1], "t": ["a", "a", "a"], "y": [0.5, 0.25, 1.0]},
        {"c": [f"reagent {i}" for i in range(100)]},
        {"größe": [1, 2], "": ["a", "b"], "a.b": [True, False]},
        {"value": [1, 2, 3], "state": ["a", "b", None], "run_value": [1, 1, 2]},
    ],
    ids=["one text", "one number", "only gaps", "one row of gaps", "constants", "100 choices", "names", "known names"],
)
def test_unusual_tables(table):
    opt = bl.BayesOpt(candidates=table, seed=0, **QUICK)
    n = len(next(iter(table.values())))
    for _ in range(min(n, 6) + 2):
        trial = opt.suggest()
        assert trial.params == opt.domain.params_at(trial.index)
        trial.observe(float(trial.index))
    opt.predict()
    assert pickle.loads(pickle.dumps(opt)).suggest().params == opt.suggest().params
    other = bl.BayesOpt(candidates=table, seed=0)
    other.add(opt.trials_dataframe())
    assert [trial.params for trial in other.trials] == [trial.params for trial in opt.trials]
    assert "trials" in opt._repr_html_()


def test_runs_and_results_have_names():
    result = bl.maximize(yield_of, candidates=TABLE, n_trials=6, seed=0)
    assert result.best_params_ == row(result.best_trial_.index)
    with pytest.raises(bl.errors.InvalidSetting, match="by the names of the space"):
        bl.maximize(lambda T, conc: T, candidates=TABLE, n_trials=1)


def test_bpe_delay_and_algorithms_take_tables():
    opt = bl.BPEDelay(candidates=TABLE, horizon=20, lengthscale=0.5, noise_std=0.1, delay="none", seed=0)
    for _ in range(20):
        trial = opt.suggest()
        trial.observe(yield_of(trial.params))
    assert opt.surviving_.dtype == np.int64
    trial = bl.algorithm("GP-EI", candidates=TABLE, seed=0).suggest()
    assert trial.params == row(trial.index)
    with pytest.raises(bl.errors.BelatedError, match="candidates"):
        bl.TreeSearch(candidates=TABLE)


# Studies.


def the_study(store, name="lab", table=TABLE):
    return bl.Study(name, store, bl.BayesOpt(candidates=table, seed=0, **QUICK))


def test_studies_store_the_table(tmp_path, capsys):
    path = f"sqlite:///{tmp_path}/lab.db"
    one = the_study(path)
    for trial in one.suggest(n=3):
        trial.observe(yield_of(trial.params))
    other = bl.Study.load("lab", path)
    assert other.domain == NamedCandidates(TABLE)
    trial = other.suggest()
    assert one.trial(trial.number).params == trial.params == row(trial.index)
    one.observe(trial.number, 0.5, params=trial.params | {"T": 50.0})
    measured = one.trial(trial.number)
    assert measured.outside and measured.params_run["T"] == 50.0
    assert one.suggest().params == other.trial(4).params
    assert the_study(path).n_trials == 5  # the same definition
    with pytest.raises(bl.errors.InvalidSetting, match="candidates"):
        the_study(path, table=TABLE.iloc[1:])
    assert {f"params_{name}" for name in TABLE} <= {*one.worklist().columns}
    assert "MeCN" in one.worklist_html() or "DMF" in one.worklist_html() or "water" in one.worklist_html()
    (tmp_path / "lab.jsonl").write_text(output(capsys, "export", path, "lab"), encoding="utf-8")
    other_path = f"sqlite:///{tmp_path}/other.db"
    output(capsys, "import", str(tmp_path / "lab.jsonl"), other_path)
    read = bl.Study.load("lab", other_path)
    assert [trial.params for trial in read.trials] == [trial.params for trial in one.trials]
    copied = read.copy("copy")
    ended = [trial.params_run for trial in read.trials if trial.state == "observed"]
    assert [trial.params for trial in copied.trials] == ended
    with pytest.warns(bl.BelatedWarning, match="do not belong"):
        read.copy("narrow", candidates=TABLE[TABLE["solvent"] == "DMF"])


def output(capsys, *words):
    assert cli.main(["study", *words]) == 0
    return capsys.readouterr().out


def test_revisions_match_rows_by_their_params():
    study = the_study(MemoryStore())
    trials = [study.add(index, float(index)) for index in range(8)]
    before = [trial.params for trial in trials]
    # The rows are in another order, two are removed, and there are new ones with a new text.
    new = pd.concat([TABLE.iloc[:1:-1], pd.DataFrame([row(5) | {"solvent": "THF", "T": 100}])])
    study.revise(candidates=new)
    assert [trial.params for trial in study.trials] == before
    rows = [{k: v for k, v in each.items() if not pd.isna(v)} for each in new.to_dict("records")]
    removed = [params not in rows for params in before]
    assert [trial.outside for trial in study.trials] == removed and study.left_out == {}
    assert study.suggest().params in rows
    study.enqueue({"solvent": "THF"})
    assert study.suggest().params["T"] == 100


def test_revisions_change_columns_and_texts():
    table = {"x": [1.0, 2.0, 3.0, 4.0], "c": ["u", "v", "u", "w"], "k": ["a", "b", "a", "a"]}
    study = the_study(MemoryStore(), table=table)
    trials = [study.add(index, float(index)) for index in range(4)]
    new = {"x": [1.0, 2.0, 5.0], "c": ["U", "v", "U"], "p": [7, 7, 8], "gap": [None, 1.0, None]}
    with pytest.raises(bl.errors.InvalidSetting, match="fill misses"):
        study.revise(candidates=new, keep={"k": "a"})
    with pytest.raises(bl.errors.InvalidSetting, match="keep misses"):
        study.revise(candidates=new, fill={"p": 7})
    with pytest.warns(bl.BelatedWarning, match="left out"):
        study.revise(candidates=new, fill={"p": 7}, keep={"k": "a"}, map={"c": {"u": "U"}})
    assert trials[0].params == {"x": 1.0, "c": "U", "p": 7} and trials[0].index == 0
    assert set(study.left_out) == {1, 3}  # another value than `keep`; a text that was removed
    assert trials[2].outside and trials[2].params == {"x": 3.0, "c": "U", "p": 7}
    for arguments in ({"candidates": [[1.0], [2.0]]}, {"candidates": None, "space": {"x": (0.0, 1.0)}}):
        with pytest.raises(bl.errors.InvalidSetting, match="create another study"):
            study.revise(**arguments)


# Columns that describe the choices of another column.

LOGP = {"DMF": -1.0, "water": -1.4, "MeCN": -0.3, "EtOH": -0.2, "DMSO": -1.2, "THF": 0.5, "toluene": 2.7, "DCM": 1.2}


def described():
    table = TABLE[["T", "conc"]].assign(solvent=RNG.choice(list(LOGP), N))
    return table.assign(logP=table["solvent"].map(LOGP), mass=table["solvent"].map(len))


def test_describing_columns_give_the_model_of_a_box_with_descriptors():
    table = described()
    descriptors = {name: {"logP": LOGP[name], "mass": len(name)} for name in table["solvent"].unique()}
    box = {
        "T": (20.0, 80.0),
        "conc": (0.1, 1 / 3),
        "solvent": bl.Categorical(list(descriptors), descriptors=descriptors),
    }
    plain = bl.GP(inputs="plain")
    candidates = NamedCandidates(table, descriptors={"solvent": ["logP", "mass"]})
    optimizers = [
        bl.BayesOpt(candidates=candidates, surrogate=plain, seed=0),
        bl.BayesOpt(box, surrogate=plain, seed=0),
    ]
    rows = table[["T", "conc", "solvent"]].to_dict("records")
    for optimizer in optimizers:
        for row in rows[:25]:
            optimizer.add(row, np.sin(row["T"]) + 3 * LOGP[row["solvent"]])
    for ours, theirs in zip(*(optimizer.predict(rows) for optimizer in optimizers), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    assert optimizers[0].surrogate_.descriptor_lengthscales == optimizers[1].surrogate_.descriptor_lengthscales != {}


def test_describing_columns_are_not_parameters(tmp_path):
    table = described()
    candidates = NamedCandidates(table, descriptors={"solvent": ["logP", "mass"]})
    study = bl.Study("s", store=f"sqlite:///{tmp_path}/s.db", optimizer=bl.BayesOpt(candidates=candidates, seed=0))
    assert set(study.suggest().params) == {"T", "conc", "solvent"}
    study.add(table.head(9).assign(value=range(9)))
    study.enqueue(table.iloc[20].to_dict())
    study.add(table.iloc[[30, 31]])
    again = bl.Study.load("s", store=f"sqlite:///{tmp_path}/s.db")
    assert again.optimizer.domain == candidates and again.optimizer.domain.describing == {"logP", "mass"}
    copied = pickle.loads(pickle.dumps(candidates))
    assert copied == candidates and copied.describing == candidates.describing
    assert copied["solvent"].descriptors == candidates["solvent"].descriptors
    assert again.suggest().params == {name: table.iloc[20][name] for name in ("T", "conc", "solvent")}


@pytest.mark.parametrize(
    "descriptors",
    [
        {"solvent": ["nope"]},
        {"solvent": ["T"]},
        {"solvent": ["solvent"]},
        {"solvent": []},
        {"solvent": ["label"]},
        {"T": [[1.0]]},
        {"T": ["logP"]},
        {"lists": ["logP"]},
        {"nope": ["logP"]},
        3,
    ],
)
def test_invalid_describing_columns_are_refused(descriptors):
    with pytest.raises(bl.errors.InvalidSpace) as error:
        table = described().assign(label=[str(i) for i in range(N)], lists=[[i] for i in range(N)])
        NamedCandidates(table, descriptors=descriptors)
    assert "\n" not in str(error.value)
