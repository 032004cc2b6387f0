"""mypy in strict mode accepts the programs in docs/ and reports wrong keywords and attributes."""

import pytest

from tests.system.docs.pages import COMPARISONS, GUIDES, blocks, source_of

pytestmark = pytest.mark.skipif(not COMPARISONS, reason="the installed package comes without its pages")

WRONG = 'import belated as bl\n\nbl.minimize(lambda p: p["x"], {"x": (0.0, 1.0)}, n_trails=3)\n'

# The best trial can be used without a check for None, and mypy still checks its attributes.
BEST = """
import belated as bl


def f(params: bl.Params) -> dict[str, object]:
    return {"value": float(params["x"]), "attrs": {"half": params["x"] / 2}}


result = bl.maximize(f, {"x": (0.0, 1.0), "kernel": ["rbf", "poly"]}, n_trials=3)
attrs: dict[str, object] = result.best_trial_.attrs
params: bl.Params = result.best_trial_.params
if result.optimizer.best_trial_ is not None:
    half: float = result.best_value_ / 2
"""
WRONG_ATTRIBUTE = "import belated as bl\n\nbl.RandomSearch({'x': (0.0, 1.0)}).best_trial_.atrs\n"


@pytest.fixture(scope="module")
def complaints(tmp_path_factory, mypy):
    """The lines that mypy prints for all programs of the pages, and for three further programs, of which two have an
    error."""
    folder = tmp_path_factory.mktemp("programs")
    programs = {f"{page.stem}_{block.line}": block.source for page in COMPARISONS for block in blocks(page, ours=True)}
    programs |= {f"{page.stem}_page": "".join(map(source_of, blocks(page))) for page in GUIDES}
    programs |= {"best": BEST, "wrong_keyword": WRONG, "wrong_attribute": WRONG_ATTRIBUTE}
    for name, code in programs.items():
        (folder / f"{name}.py").write_text(code, encoding="utf-8")
    return mypy(folder)[:-1]


def test_programs_of_the_pages_have_no_type_errors(complaints):
    assert [line for line in complaints if not line.startswith("wrong_")] == []


def test_a_wrong_keyword_is_an_error(complaints):
    assert any(line.startswith("wrong_keyword") and "n_trails" in line for line in complaints)


def test_a_wrong_attribute_of_the_best_trial_is_an_error(complaints):
    assert any(line.startswith("wrong_attribute") and "atrs" in line for line in complaints)
