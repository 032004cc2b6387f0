"""Descriptors of choices: forms of tables, warnings, vectors, and errors."""

import pickle
import warnings

import numpy as np
import pytest

import belated as bl
from belated.space.descriptors import vectors

NAMES = ["DMF", "THF", "water"]
TABLE = {"DMF": {"logP": -1.0, "bp": 153.0}, "THF": {"logP": 0.5, "bp": 66.0}, "water": {"logP": -1.4, "bp": 100.0}}
ROWS = [TABLE[name] for name in NAMES]


class Frame:
    """A DataFrame, as far as descriptors read one."""

    def __init__(self, index, columns, rows):
        self.index, self.columns, self._rows = index, columns, np.array(rows, dtype=object)

    def to_dict(self):
        raise AssertionError("not called")

    def to_numpy(self, dtype):
        return self._rows.astype(dtype)


@pytest.mark.parametrize(
    "given",
    [
        TABLE,
        dict(reversed(TABLE.items())),
        ROWS,
        Frame(["water", "DMF", "THF"], ["logP", "bp"], [[-1.4, 100], [-1, 153], [0.5, 66]]),
    ],
    ids=["mapping", "reversed", "list", "frame"],
)
def test_tables_in_any_form_and_order_are_read_alike(given):
    made = bl.Categorical(NAMES, descriptors=given)
    assert made.descriptors == ROWS and made == bl.Categorical(NAMES, descriptors=TABLE)
    assert pickle.loads(pickle.dumps(made)) == made and eval(repr(made), {"Categorical": bl.Categorical}) == made
    assert made != bl.Categorical(NAMES) and hash(made) == hash(bl.Categorical(NAMES))


def test_a_frame_of_pandas_is_read():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(TABLE).T[["logP", "bp"]]
    assert bl.Categorical(NAMES, descriptors=frame).descriptors == ROWS
    frame["n"] = pd.array([1, None, 3], dtype="Int64")
    with pytest.warns(bl.BelatedWarning):
        assert bl.Categorical(NAMES, descriptors=frame).descriptors[1] == ROWS[1] | {"n": 2.0}


def test_columns_of_an_array_are_numbered():
    made = bl.Categorical(NAMES, descriptors=np.array([[1, 2], [3, 4], [4, 3]]))
    assert made.descriptors == [{"0": 1.0, "1": 2.0}, {"0": 3.0, "1": 4.0}, {"0": 4.0, "1": 3.0}]


def test_one_warning_names_what_is_dropped_and_filled():
    rows = [
        {"bp": 1.0, "name": "a", "one": 2.0, "none": None, "flag": True},
        {"bp": np.nan, "name": "b", "one": 2.0, "none": np.nan, "flag": False},
        {"bp": 4.0, "name": 3.0, "one": None, "flag": False},
    ]
    with pytest.warns(bl.BelatedWarning) as caught:
        made = bl.Categorical(NAMES, descriptors=rows)
    assert [str(each.message) for each in caught] == [
        "descriptors of Categorical(['DMF', 'THF', 'water']): 3 of 5 columns are dropped, because ['name'] do not "
        "contain numbers and ['one'] are equal for all choices and ['none'] are empty; missing entries of ['bp'] "
        "are replaced by the mean"
    ]
    assert made.descriptors == [{"bp": 1.0, "flag": 1.0}, {"bp": 2.5, "flag": 0.0}, {"bp": 4.0, "flag": 0.0}]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pickle.loads(pickle.dumps(made)) == made


def test_descriptors_that_are_equal_for_every_choice_leave_a_plain_category():
    with pytest.warns(bl.BelatedWarning, match="treated as without descriptors"):
        made = bl.Categorical(NAMES, descriptors={name: {"homo": -0.46, "lumo": 1e9} for name in NAMES})
    assert made.descriptors == [{}, {}, {}] and not made.uses_descriptors
    assert pickle.loads(pickle.dumps(made)) == made


@pytest.mark.parametrize("names", [["a"], ["a", "b"]])
def test_one_or_two_choices_do_not_need_descriptors(names):
    made = bl.Categorical(names, descriptors=np.arange(len(names))[:, None])
    assert not made.uses_descriptors


@pytest.mark.parametrize(
    "given", [{}, "abc", 3, [1, 2, 3], [[1], [2]], [[1], [2, 3], [4]], [["a"], "b", [1]], [{}, [1], {}]]
)
def test_invalid_tables_are_refused(given):
    with pytest.raises(bl.errors.InvalidSpace):
        bl.Categorical(NAMES, descriptors=given)


def test_messages_name_the_choice_or_the_column():
    for changed, expected in [
        ({"DMF": {"bp": 1.0}}, r"miss \['THF', 'water'\]: give numbers for every choice"),
        (TABLE | {"hexane": {"bp": 1.0}}, "have 'hexane', which is not one of the choices"),
        (TABLE | {"THF": {"bp": np.inf}}, "have 'bp' = inf for 'THF': pass finite numbers"),
        (Frame(["DMF", "DMF", "THF"], ["bp"], [[1], [2], [3]]), "have 'DMF' twice"),
        (Frame(NAMES, ["bp", "bp"], [[1, 2]] * 3), "have the column 'bp' twice"),
        (type("Frame", (), {"columns": ["bp"], "to_dict": None})(), "without an index of choices"),
        (np.ones((2, 3)), "with 2 rows for 3 choices: pass a mapping"),
        ([[1], [2, 3], [4]], "have 1 numbers for one choice and 2 for another"),
    ]:
        with pytest.raises(bl.errors.InvalidSpace, match=expected) as caught:
            bl.Categorical(NAMES, descriptors=changed)
        assert "\n" not in str(caught.value)


def squared_distances(z):
    return np.square(z[:, None] - z[None]).sum(axis=-1)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9, 1e300])
def test_vectors_are_principal_components_in_the_units_of_one_hot_columns(scale):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(9, 8)) + 4.0
    x[4] = x[5]
    units = np.array([scale, 1.0, 1.0, 1e-9, 1e9, 1.0, 1.0, 1e-300])
    made = bl.Categorical(list(range(9)), descriptors=x * units)
    z = vectors(made.descriptors)
    assert z.shape == (9, 5)
    # The components come from the eigenvectors of the correlation matrix.
    standardized = (x - x.mean(axis=0)) / x.std(axis=0)
    _, directions = np.linalg.eigh(np.corrcoef(x.T))
    expected = squared_distances(standardized @ directions[:, -5:])
    expected *= (2 - 2 / 9) / expected.mean()
    np.testing.assert_allclose(squared_distances(z), expected, atol=1e-9)
    assert squared_distances(z)[4, 5] < 1e-20


def test_equal_and_collinear_columns_do_not_add_components():
    x = np.array([1.0, 2.0, 4.0, 7.0])
    z = vectors(bl.Categorical(list("abcd"), descriptors=np.stack([x, x, 3 - 2 * x], axis=1)).descriptors)
    assert z.shape == (4, 1)


def test_a_table_of_many_numbers_is_shown_by_its_size():
    made = bl.Categorical(list(range(200)), descriptors=np.random.default_rng(0).normal(size=(200, 30)))
    assert repr(made).endswith("descriptors=<30 numbers for each of 200 choices>)") and made.uses_descriptors
