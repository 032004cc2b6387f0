"""Give the figures of notebooks an alternative text, in place of the name of their file."""

from docutils import nodes
from sphinx.application import Sphinx


def describe(app: Sphinx, doctree: nodes.document, name: str) -> None:
    """Add a text to each image that does not have one."""
    for image in doctree.findall(nodes.image):
        image.setdefault("alt", "Figure drawn by the code above")


def setup(app: Sphinx) -> dict[str, bool]:
    """Change pages before they are written."""
    app.connect("doctree-resolved", describe)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
