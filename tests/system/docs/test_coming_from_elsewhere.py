"""On the pages for users of other packages, the programs for belated run, and are not longer than the other packages'
programs."""

from itertools import groupby

import pytest

from tests.system.docs.pages import COMPARISONS, blocks, n_statements

pytestmark = pytest.mark.skipif(not COMPARISONS, reason="the installed package comes without its pages")

PAGES = {"optuna", "scikit_optimize", "bayesian_optimization", "ax", "baybe", "ray_tune", "hyperopt"}


def sections(page):
    """Return the blocks of a page, grouped by section."""
    return [list(group) for _, group in groupby(blocks(page), lambda block: block.heading)]


PAIRS = [section for page in COMPARISONS for section in sections(page)]
PROGRAMS = [block for page in COMPARISONS for block in blocks(page, ours=True)]


def test_there_is_a_page_for_each_package():
    assert {page.stem.removeprefix("from_") for page in COMPARISONS} == PAGES
    assert len(PROGRAMS) >= 30


def test_every_section_has_programs_for_both_packages():
    wrong = [str(pair[0]) for pair in PAIRS if [bool(block.package) for block in pair] != [True, False]]
    assert not wrong


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: str(pair[0]))
def test_programs_for_belated_do_not_have_more_statements(pair):
    theirs, ours = (n_statements(block.code) for block in pair)
    assert ours <= theirs


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_program_runs(program, tmp_path, monkeypatch):
    pytest.importorskip("sklearn")
    pytest.importorskip("pandas")
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    exec(compile(program.source, program.page, "exec"), {"__name__": "__main__"})
