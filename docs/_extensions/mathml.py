"""Equations as MathML, which browsers display without scripts."""

import re

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util.logging import getLogger
from sphinx.writers.html5 import HTML5Translator

LOGGER = getLogger(__name__)


def mathml(node: nodes.math | nodes.math_block, display: str) -> str:
    """Return an equation as MathML, and warn if it has a command that latex2mathml does not know."""
    converted = convert(node.astext(), display=display)
    if unknown := re.findall(r"\\(?:\w+|.)", converted):
        LOGGER.warning("unknown commands in an equation: %s", ", ".join(unknown), location=node)
    return converted


def inline(translator: HTML5Translator, node: nodes.math) -> None:
    """Write an equation within a line."""
    translator.body.append(mathml(node, "inline"))
    raise nodes.SkipNode


def display(translator: HTML5Translator, node: nodes.math_block) -> None:
    """Write a displayed equation, which scrolls on narrow screens, also by the keyboard, as the theme's tables do."""
    box = '<div class="equation pst-scrollable-table-container">'
    translator.body.append(f"{box}{mathml(node, 'block')}</div>")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer; settings of Sphinx select it."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
