"""Settings of Sphinx for the documentation site: ``sphinx-build -W --keep-going docs site``."""

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import belated

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_extensions"))
# The kernels of notebooks run in other processes.
os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)

project = "belated"
author = "The belated authors"
copyright = author
version = release = belated.__version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "arguments",
    "images",
    "mathml",
    "links",
    "names",
]
# autosummary writes pages in the first of these formats.
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb", ".ipynb": "myst-nb"}
nitpicky = True
exclude_patterns = ["_extensions"]
templates_path = ["_templates"]
default_role = "name"

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 3
nb_execution_mode = "auto"
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_timeout = 120
nb_output_stderr = "remove"  # progress bars
nb_merge_streams = True

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings state the types
autodoc_member_order = "groupwise"
autodoc_mock_imports = [name for name in ("lightgbm", "ray", "xgboost") if not find_spec(name)]
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
toc_object_entries_show_parents = "hide"

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "belated"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(DOCS / "_static" / "scorer.js")
html_favicon = "_static/favicon.svg"
html_sidebars = {page: [] for page in ("index", "start", "questions", "architecture")}
html_show_sourcelink = False
html_copy_source = False
html_context = {"default_mode": "auto"}
html_theme_options = {
    "header_links_before_dropdown": 9,
    "navbar_persistent": ["search-button"],
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["licence.html"],
    "footer_end": [],
}

# Sphinx reads only files in docs/, so the notebooks are copied. Copies of notebooks that were removed are deleted.
NOTEBOOKS = DOCS / "gallery"
shutil.rmtree(NOTEBOOKS, ignore_errors=True)
NOTEBOOKS.mkdir()
for notebook in sorted((DOCS.parent / "notebooks").glob("*.ipynb")):
    shutil.copyfile(notebook, NOTEBOOKS / notebook.name)
if not find_spec("torch"):
    nb_execution_excludepatterns = ["gallery/pytorch.ipynb"]
