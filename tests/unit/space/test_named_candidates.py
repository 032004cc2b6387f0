"""Candidates with named columns: which tables are read, what they mean, and which errors bad tables give."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

import belated as bl
from belated.space import Candidates, NamedCandidates, read_candidates

COLUMNS = {
    "T": [20, 40, 60, 60, 40],
    "conc": [0.1, 0.30000000000000004, 0.2, 0.2, 1.0],
    "solvent": ["water", "DMF", None, "DMF", "water"],
    "dry": [True, False, True, True, None],
    "Äq": [None, 0.5, 1.0, None, 2.0],
}
ROWS = [
    {name: column[i] for name, column in COLUMNS.items() if column[i] is not None} for i in range(len(COLUMNS["T"]))
]


class OtherTable:
    """A table that is not of pandas, with the methods of polars."""

    def __init__(self, columns):
        self._columns = columns

    @property
    def columns(self):
        return list(self._columns)

    def __getitem__(self, name):
        return self._columns[name]

    def to_dict(self):
        return self._columns


TABLES = {
    "mapping": COLUMNS,
    "mapping of arrays": {name: np.array(column, dtype=object) for name, column in COLUMNS.items()},
    "dicts": ROWS,
    "dicts with None": pd.DataFrame(COLUMNS).astype(object).to_dict("records"),
    "DataFrame": pd.DataFrame(COLUMNS),
    "DataFrame with pd.NA": pd.DataFrame(COLUMNS).convert_dtypes(),
    "DataFrame of categories": pd.DataFrame(COLUMNS).astype({"solvent": "category"}),
    "other table": OtherTable(COLUMNS),
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_all_forms_of_a_table_are_the_same_candidates(table):
    made = read_candidates(table)
    assert made == NamedCandidates(COLUMNS) and made.n_rows == 5
    assert [made.params_at(i) for i in range(5)] == ROWS
    types = [{name: type(value) for name, value in made.params_at(i).items()} for i in range(5)]
    assert types == [{name: type(value) for name, value in row.items()} for row in ROWS]
    assert [made.locate(row) for row in ROWS] == list(range(5))
    assert made["solvent"] == bl.Categorical(["water", "DMF"]) and made["dry"].choices == (True, False)
    for copied in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made), NamedCandidates(made.columns())):
        assert copied == made and copied.columns() == COLUMNS


def test_columns_are_encoded_as_the_parameters_of_a_space():
    made = NamedCandidates(COLUMNS)
    # In the space, a parent decides whether a parameter applies.
    own = {"has " + name: [True, False] for name in ("solvent", "dry", "Äq")}
    when = {name: {"has " + name: True} for name in ("solvent", "dry", "Äq")}
    space = bl.Space(
        {
            "T": bl.Real(20, 60),
            "conc": bl.Real(0.1, 1.0),
            "solvent": bl.Categorical(["water", "DMF"], when=when["solvent"]),
            "dry": bl.Categorical([True, False], when=when["dry"]),
            "Äq": bl.Real(0.5, 2.0, when=when["Äq"]),
            **own,
        }
    )
    for row in ROWS:
        expected = space.encode(row | {name: name.removeprefix("has ") in row for name in own})[: made.width]
        np.testing.assert_allclose(made.encode(row), expected, rtol=0, atol=1e-15)
    assert made.width == 7
    assert made.decode(made.encode(ROWS[3])) == ROWS[3]


def test_a_gap_differs_from_the_middle_of_the_range():
    made = NamedCandidates({"x": [0.0, 0.5, None, 1.0]})
    points = made.points(None).ravel()
    assert len(set(points)) == 4 and abs(points[2] - points[1]) < 1e-15


def test_tables_without_names_are_arrays():
    assert isinstance(read_candidates(pd.DataFrame([[1.0, 2.0], [3.0, 4.0]])), Candidates)
    assert isinstance(read_candidates([[1.0, 2.0], [3.0, 4.0]]), Candidates)


def test_params_are_matched_up_to_rounding():
    made = NamedCandidates(COLUMNS)
    assert made.locate({"T": 40.0, "conc": 0.3, "solvent": "DMF", "dry": False, "Äq": np.float32(0.5)}) == 1
    assert made.locate(pd.Series(ROWS[1])) == 1
    assert made.locate(ROWS[0] | {"Äq": float("nan")}) == 0
    assert made.locate(np.int64(4)) == 4
    assert made.locate(ROWS[1] | {"T": 41}, measured=True) == [41.0, 0.30000000000000004, 1.0, 1.0, 0.5]
    assert made.params_at([41.5, 0.2, 1.0, None, None]) == {"T": 41.5, "conc": 0.2, "solvent": "DMF"}


def test_columns_with_one_entry_may_be_left_out():
    made = NamedCandidates({"T": [20, 30], "gas": ["N2", "N2"], "p": [1.0, 1.0]})
    assert made.locate({"T": 30}) == 1 and made.params_at(0) == {"T": 20, "gas": "N2", "p": 1.0}
    assert made.searched == ["T"]


@pytest.mark.parametrize(
    "params, words",
    [
        ({"T": 61}, "misses ['conc']"),
        (
            ROWS[0] | {"T": 61},
            "params['T']=61.0 is not usable: no candidate has this value in column 'T'; the nearest is 60",
        ),
        (ROWS[0] | {"solvent": "THF"}, "params['solvent']='THF' is not usable: pass one of ['water', 'DMF']"),
        (ROWS[0] | {"T": 60}, "each value occurs in its column, but not all of them in one row"),
        (ROWS[0] | {"T": "hot"}, "params['T']='hot' is not usable: pass a finite number"),
        (ROWS[0] | {"T": None}, "params['T']=None is not usable: pass a finite number"),
        (ROWS[0] | {"dry": 1}, "params['dry']=1 is not usable: pass one of [True, False]"),
        (ROWS[0] | {"t": 60}, "has unknown ['t']"),
        (5, "params=5 is not the index of a candidate: pass one from 0 to 4"),
        (-1, "params=-1"),
        ("water", "pass a dict with the names"),
        (True, "pass a dict with the names"),
    ],
)
def test_params_that_are_not_a_row_are_refused(params, words):
    with pytest.raises(bl.errors.InvalidPoint) as error:
        NamedCandidates(COLUMNS).locate(params)
    assert words in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "table, words",
    [
        ({}, "is empty"),
        ({"T": []}, "is empty"),
        (pd.DataFrame(columns=["T"]), "is empty"),
        ([{}], "is empty"),
        ({"T": [1, 2], "c": ["a"]}, "candidates['c'] has 1 entries, and candidates['T'] has 2: pass one for each row"),
        (pd.DataFrame([[1, 2]], columns=["T", "T"]), "has the column 'T' twice"),
        (pd.DataFrame([[1, 2]], columns=["T", 5]), "has the column 5: names must be text"),
        ({1: [2]}, "has the column 1: names must be text"),
        ({"T": [1, "hot"]}, "candidates['T'] has numbers (1 in row 0) and text ('hot' in row 1): pass one kind"),
        ({"T": [1, True]}, "has numbers (1 in row 0) and booleans (True in row 1)"),
        ({"T": [1.0, float("inf")]}, "candidates['T'] has inf in row 1: pass finite numbers"),
        ({"T": [1, 2**53 + 1]}, "in row 1: pass finite numbers, integers within ±2**53"),
        ({"T": [1, 10**5000]}, "in row 1"),
        ({"T": [1, 2j]}, "candidates['T'] has 2j in row 1: pass numbers, booleans or text"),
        ({"T": [[1], [2]]}, "is not a column"),
        ({"T": [object()]}, "pass numbers, booleans or text"),
        ({"T": "abc"}, "candidates['T']='abc' is not a column"),
        ({"T": 3.0}, "candidates['T']=3.0 is not a column"),
        ({"T": (0.0, 1.0), "c": ["a", "b", "c"]}, "pass one for each row"),
        ([{"T": 1}, 2], "has 2 in a list of dicts"),
        (pd.DataFrame({"at": pd.to_datetime(["2026-01-01"])}), "candidates['at'] has Timestamp"),
        ({"id": [f"molecule {i}" for i in range(5000)]}, "column 'id' has 5000 different texts; leave it out"),
    ],
)
def test_bad_tables_are_refused(table, words):
    with pytest.raises(bl.errors.InvalidSpace) as error:
        bl.RandomSearch(candidates=table)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_other_bad_arguments_are_refused():
    made = bl.RandomSearch(candidates=COLUMNS)
    with pytest.raises(bl.errors.InvalidSpace, match="pass them as candidates="):
        bl.RandomSearch(made.domain)
    with pytest.raises(bl.errors.InvalidSpace, match="in both candidates and context"):
        bl.RandomSearch(candidates=COLUMNS, context={"T": (0.0, 1.0)})
    with pytest.raises(bl.errors.InvalidSetting, match="constraints are for spaces"):
        bl.BayesOpt(candidates=COLUMNS, constraints=[lambda params: True])
    assert bl.RandomSearch(candidates=made.domain, seed=0).domain == made.domain
