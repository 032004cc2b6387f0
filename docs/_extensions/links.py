"""Replace links to files outside docs/ and links of notebooks, which work in the repository, by links of the site."""

import re

from sphinx.application import Sphinx

PAGES = {"../README.md": "start.md", "../notebooks/": "gallery/", "../docs/": "../"}


def rewrite(app: Sphinx, name: str, source: list[str]) -> None:
    """Replace the targets of links on the page `name`."""
    for target, page in PAGES.items():
        source[0] = re.sub(rf"\]\({re.escape(target)}", f"]({page}", source[0])
    # A number and its error stay on one line of a table.
    source[0] = re.sub(r"(\d) ± (\d)", "\\1\u00a0±\u00a0\\2", source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Rewrite pages before they are parsed."""
    app.connect("source-read", rewrite)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
