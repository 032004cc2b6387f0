"""`to_csv` and `to_excel` write trials, and `add` reads the files with pandas."""

import io
from datetime import datetime, timezone

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import belated as bl
from tests.unit.optimizers.problem import ROWS


def through_csv(source):
    return pd.read_csv(io.StringIO(source.to_csv()))


def through_excel(source):
    pytest.importorskip("openpyxl", reason="Excel files need openpyxl")
    file = io.BytesIO()
    source.to_excel(file)
    return pd.read_excel(file)


WAYS = [through_csv, through_excel]


def shorter(value):
    """Round a number to 10 digits: Excel stores 16, and pandas may change the last digits."""
    return f"{value + 0.0:.10g}" if isinstance(value, float) else repr(value)


def facts(source):
    """Return what a file keeps of each trial."""
    found = []
    for trial in source.trials:
        numbers = (trial.value, trial.std, trial.cost, trial.duration, trial.fidelity)
        point = (trial.index_run,) if trial.x is not None else sorted(trial.params_run.items())
        numbers += (*point, *sorted((trial.context or {}).items()), *trial.curve.items())
        shown = [tuple(map(shorter, each)) if isinstance(each, tuple) else shorter(each) for each in numbers]
        found.append((trial.state, shown, trial.attrs, trial.error and str(trial.error)))
    return found


# Choices that look like numbers, formulas or missing values, or have spaces; each prints differently.
CHOICES = ["01", "NA", "true", "Water", "Water ", " a", "=1+1", "-OMe", "a\r\nb", "é;,\"'", "\x01"]
CHOICES += [0.1, 0.30000000000000004, False, (1, 2), ("a",), 10**20]

floats = st.floats(-1e300, 1e300).map(lambda x: float(f"{x:.8g}"))
shares = st.floats(0.0, 1.0).map(lambda x: round(x, 8))
amounts = floats.map(abs)


@st.composite
def filled(draw):
    """Draw a space and an optimizer with trials in all states; return it with a copy that has no trials."""
    options = draw(st.lists(st.sampled_from(CHOICES), min_size=2, max_size=6, unique_by=lambda c: (type(c) is bool, c)))
    conditional = draw(st.lists(st.sampled_from(CHOICES), min_size=2, max_size=3, unique_by=lambda c: (type(c), c)))
    space = {
        "T": draw(st.sampled_from([(0.1, 0.7), (-1e22 / 3, 1e22 / 3), bl.Real(1e-9, 1e3, log=True), (1, 30)])),
        "run_T": bl.Ordinal([16, 32, "a"]),
        "lot": bl.Categorical(options),
        "inner": bl.Categorical(conditional, when={"lot": options[: draw(st.integers(1, len(options)))]}),
        "depth": bl.Integer(1, 4, when={"lot": options[0]}),
        "unit": "mg",
    }

    def new():
        more = {"context": {"z": (0.0, 1.0), "day": ["01", 2, "Mo"]}, "fidelity": bl.Fidelity(1.0, 7.0)}
        return bl.RandomSearch(space, **more, curve=bl.Curve(4), direction="minimize", seed=0)

    opt = new()
    for _ in range(draw(st.integers(0, 8))):
        context = {"z": draw(shares), "day": draw(st.sampled_from(["01", 2, "Mo"]))}
        trial = opt.suggest(context=context, fidelity=1.0 + 6.0 * draw(shares))
        attrs = draw(st.dictionaries(st.sampled_from("abc"), st.sampled_from(["x", "-OMe", "'a'"]), max_size=3))
        for step in draw(st.sets(st.integers(1, 4))):
            trial.report(draw(floats), step)
        match draw(st.sampled_from(["observed", "elsewhere", "failed", "abandoned", "stopped", "pending"])):
            case "observed":
                trial.observe(draw(floats), std=draw(amounts), cost=draw(st.none() | amounts), attrs=attrs)
            case "elsewhere":
                trial.observe(draw(floats), duration=draw(amounts), params=opt.domain.decode([0.5] * opt.domain.width))
            case "failed":
                error = draw(st.sampled_from([None, "=no", ValueError("too hot")]))
                trial.fail(error=error, duration=draw(st.none() | amounts), attrs=attrs)
            case "abandoned":
                trial.abandon()
            case "stopped":
                trial.stop()
    return opt, new()


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(both=filled())
def test_files_restore_trials(way, both):
    opt, other = both
    other.add(way(opt))
    assert facts(other) == facts(opt)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "pair",
    [("1", 1), ("1", "01"), ("NA", None), ("", None), (True, "true"), (1, True), (0, False), ("=a", "'=a")]
    + [("\x01", "\ufffd"), ("a\rb", "a\nb"), (0.3, 0.30000000000000004)],
    ids=repr,
)
def test_choices_that_print_alike_are_refused_or_restored(way, pair):
    """No cell is read as another choice, in spaces and contexts. The choice "b" is always restored."""
    choices = [*pair, "b"]
    space = {"lot": bl.Categorical(choices), "x": (0.0, 1.0)}
    opt, other = (bl.RandomSearch(space, context={"day": choices}, seed=0) for _ in range(2))
    for lot in choices:
        for day in choices:
            opt.add({"lot": lot, "x": 0.5}, 1.0, context={"day": day})
    table = way(opt)
    trials, skipped = other.add(table, on_error="skip")
    assert {each.column for each in skipped} <= {"params_lot", "context_day"}
    kept = [i for i in range(len(table)) if i not in {each.row for each in skipped}]
    assert [(repr(t.params), repr(t.context)) for t in trials] == [
        (repr(opt.trials[i].params), repr(opt.trials[i].context)) for i in kept
    ]
    assert 8 in kept
    if skipped:
        with pytest.raises(bl.errors.InvalidSpace, match="print alike"):
            other.add(table)


@pytest.mark.parametrize("way", WAYS)
def test_candidates_and_studies(way, tmp_path):
    opt = bl.RandomSearch(candidates=ROWS, seed=0)
    first, second, _ = opt.suggest(3)
    first.observe(1 / 3, params=(first.index + 1) % 12)
    second.fail(error="spilled")
    study = bl.Study("s", f"sqlite:///{tmp_path}/s.db", bl.RandomSearch(candidates=ROWS, seed=0))
    study.add(way(opt))
    assert facts(study) == facts(opt)
    assert facts(bl.Study.load("s", study.store)) == facts(opt)
    third = bl.RandomSearch(candidates=ROWS, seed=0)
    third.add(way(study))
    assert facts(third) == facts(opt)


def test_parameters_may_have_the_names_of_columns():
    space = dict.fromkeys(["outside", "left_out", "withdrawn_value", "number"], (0.0, 1.0))
    optimizer = bl.RandomSearch(space, seed=0)
    first, second = optimizer.suggest(n=2)
    optimizer.observe(first, 1.0, params=first.params | {"outside": 1.5})
    optimizer.observe(second, 2.0)
    optimizer.withdraw(second)
    again = bl.RandomSearch(space, seed=1).add(through_csv(optimizer))
    assert [trial.params for trial in again] == [first.params_run, second.params]
    assert [(trial.outside, trial.state) for trial in again] == [(True, "observed"), (False, "withdrawn")]


def edited():
    opt = bl.RandomSearch({"T": (0.0, 100.0), "lot": ["a", "b"]}, seed=0)
    opt.add([{"T": 100 / 3, "lot": "b"}, {"T": 200 / 3, "lot": "a"}], [1 / 3, None])
    return opt, through_csv(opt)


def test_edited_cells_count():
    opt, table = edited()
    table["params_T"] = [33.3, 200 / 3]
    table["value"] = [1 / 3, 0.25]
    other = bl.RandomSearch(opt.domain, seed=0)
    other.add(table)
    assert [trial.params for trial in other.trials] == [{"T": 33.3, "lot": "b"}, {"T": 200 / 3, "lot": "a"}]
    # A value was filled in for the pending trial.
    assert [(trial.state, trial.value) for trial in other.trials] == [("observed", 1 / 3), ("observed", 0.25)]


def test_a_column_with_a_large_integer_and_empty_cells():
    space = {"lot": ["a", "b"], "inner": bl.Categorical([10**20, "1.0"], when={"lot": "a"})}
    opt = bl.RandomSearch(space, seed=0)
    opt.add([{"lot": "b"}, {"lot": "a", "inner": 10**20}, {"lot": "a", "inner": "1.0"}], [1.0, 2.0, 3.0])
    other = bl.RandomSearch(space, seed=0)
    other.add(through_csv(opt))  # pandas reads the empty cell as an empty text
    assert facts(other) == facts(opt)


def test_times_of_excel_are_utc_without_a_zone():
    opt = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
    opt.suggest().observe(1.0)
    opt.suggest()
    table = through_excel(opt)
    for i, trial in enumerate(opt.trials):
        found = table["started_at_utc"][i].to_pydatetime()
        assert found.tzinfo is None
        assert abs(found.replace(tzinfo=timezone.utc) - trial.started_at).total_seconds() < 0.002
    assert table["finished_at_utc"].isna().tolist() == [False, True]
    early = bl.RandomSearch({"x": (0.0, 1.0)}, time=lambda: -3e9, seed=0)
    early.suggest()
    assert datetime.fromisoformat(through_excel(early)["started_at_utc"][0]).year == 1874


def test_data_that_a_cell_of_excel_cannot_hold():
    opt = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
    opt.add({"x": 0.5}, 1.0, attrs={"log": "x" * 40_000})
    other = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
    other.add(through_csv(opt))
    assert facts(other) == facts(opt)
    with pytest.raises(bl.errors.InvalidValue, match="trial 0 has a text of .* 'attrs_log'.* use to_csv"):
        through_excel(opt)


def test_formulas_are_texts(tmp_path):
    opt = bl.RandomSearch({"R": ["-OMe", "+CF3", "=O", "-1", "\uff1d1+1"], "x": (0.0, 1.0)}, seed=0)
    opt.add([{"R": each, "x": 0.5} for each in opt.domain["R"].choices], [1.0, 2.0, 3.0, 4.0, 5.0])
    for way in WAYS:
        table = way(opt)
        assert table["params_R"].tolist() == ["'-OMe", "'+CF3", "'=O", "-1", "'\uff1d1+1"]
        other = bl.RandomSearch(opt.domain, seed=0)
        other.add(table)
        assert facts(other) == facts(opt)


def test_results_of_runs_write_their_trials(tmp_path):
    result = bl.minimize(lambda params: params["x"] / 3, {"x": (0.0, 1.0)}, n_trials=3, progress=False)
    result.to_csv(tmp_path / "trials.csv")
    other = bl.RandomSearch({"x": (0.0, 1.0)}, direction="minimize", seed=0)
    other.add(pd.read_csv(tmp_path / "trials.csv"))
    assert [trial.value for trial in other.trials] == pytest.approx([trial.value for trial in result.trials])


@pytest.mark.parametrize(("package", "call"), [("pandas", "to_csv"), ("pandas", "to_excel"), ("openpyxl", "to_excel")])
def test_missing_packages_are_named(package, call, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(ImportError, match=f"{call} needs {package}: pip install"):
        getattr(bl.RandomSearch({"x": (0.0, 1.0)}), call)("trials.xlsx")
