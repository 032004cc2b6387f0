"""Turn names in single backticks in docstrings into links to the API; other names are displayed as code."""

from docutils.nodes import Element, TextElement, document
from sphinx.addnodes import desc_signature, pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.roles import XRefRole


class Name(XRefRole):
    """The role of names in single backticks."""

    def process_link(
        self, env: BuildEnvironment, refnode: Element, has_explicit_title: bool, title: str, target: str
    ) -> tuple[str, str]:
        """Turn the reference into a reference to a Python object, within the class and the module of the docstring."""
        refnode.update_all_atts({"refdomain": "py", "reftype": "obj"}, replace=True)
        refnode["py:module"], refnode["py:class"] = env.ref_context.get("py:module"), env.ref_context.get("py:class")
        return title, target


def missing(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: TextElement) -> Element | None:
    """Look up a name in the package; return the name as code if the package does not have it."""
    if (node["refdomain"], node["reftype"]) != ("py", "obj"):
        return None
    python = env.get_domain("py")
    for module in ("belated", "belated.errors", "belated.papers"):
        target = f"{module}.{node['reftarget']}"
        found = python.resolve_xref(env, node["refdoc"], app.builder, "obj", target, node, content)
        if found is not None:
            return found
    return content


def add_anchors(app: Sphinx, doctree: document) -> None:
    """Add an anchor without `papers` to each name of `belated.papers`.

    A page with the source code links to all names of a file as names of one module.
    """
    for node in doctree.findall(desc_signature):
        node["ids"] += [each.replace(".papers.", ".") for each in node["ids"] if ".papers." in each]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the role, which conf.py makes the default."""
    app.add_role("name", Name())
    app.connect("missing-reference", missing)
    app.connect("doctree-read", add_anchors)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
