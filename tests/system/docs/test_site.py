"""The checks of the built site find each kind of fault. `.ci/run` builds the site and runs the checks."""

import importlib.util
import inspect

import pytest

import belated
from tests.system.docs.pages import DOCS

pytestmark = pytest.mark.skipif(not DOCS.exists(), reason="the installed package comes without its pages")


@pytest.fixture
def check():
    spec = importlib.util.spec_from_file_location("check_site", DOCS / "check_site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def site(check, tmp_path):
    """A site with the pages of all public names."""
    (tmp_path / "api").mkdir()
    papers = [f"papers.{name}" for name in belated.papers.__all__]
    errors = [f"errors.{name}" for name in belated.errors.__all__]
    for name in [*belated.__all__, *errors, *papers]:
        (tmp_path / "api" / f"belated.{name}.html").write_text("<p>text</p>")
    for name in check.OPTIMIZERS:
        arguments = inspect.signature(getattr(belated, name)).parameters
        text = "".join(f"<strong>{argument}</strong>" for argument in arguments)
        (tmp_path / "api" / f"belated.{name}.html").write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    "html",
    [
        '<a id="here" href="#here">a</a>',
        '<a href="https://example.org/paper">a link is not a request</a>',
        '<img src="data:image/png;base64,AAAA" alt="a curve">',
        '<a href="api/belated.Study.html">a</a>',
    ],
)
def test_a_page_without_faults(check, site, html):
    (site / "index.html").write_text(html)
    assert check.faults(site) == []


@pytest.mark.parametrize(
    ("html", "fault"),
    [
        ('<script src="https://example.org/math.js"></script>', "requests https://example.org/math.js"),
        ('<img src="//example.org/a.png" alt="a curve">', "requests //example.org/a.png"),
        ('<img src="a.png">', "has a.png without an alternative text"),
        ('<img src="a.png" alt="a.png">', "has a.png without an alternative text"),
        ('<link rel="stylesheet" href="https://example.org/a.css">', "requests https://example.org/a.css"),
        ('<a href="missing.html">a</a>', "links to missing.html, which does not exist"),
        ('<a href="#missing">a</a>', "links to #missing, but the page does not have this anchor"),
        ('<a href="api/belated.Study.html#missing">a</a>', "but the page does not have this anchor"),
    ],
)
def test_a_fault_is_found(check, site, html, fault):
    (site / "index.html").write_text(html)
    [found] = check.faults(site)
    assert fault in found


def test_fonts_of_other_hosts_are_found(check, site):
    (site / "a.css").write_text("@font-face { src: url('https://example.org/font.woff2') }")
    [found] = check.faults(site)
    assert "https://example.org/font.woff2" in found


def test_a_name_without_a_page_is_found(check, site):
    (site / "api" / "belated.Study.html").unlink()
    assert check.faults(site) == ["Study has no page"]


def test_an_argument_that_is_not_described_is_found(check, site):
    page = site / "api" / "belated.TreeSearch.html"
    page.write_text(page.read_text().replace("<strong>seed</strong>", "<strong>seed, time</strong>"))
    assert check.faults(site) == ["belated.TreeSearch.html lacks seed"]
