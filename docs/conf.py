"""The guide: pages in Markdown, the reference from docstrings, figures from the examples (`make docs`)."""

import os
import re
import sys
from pathlib import Path

# Figures go into files; set before anything imports matplotlib.
os.environ["MPLBACKEND"] = "Agg"
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import bochner  # noqa: E402
import reference  # noqa: E402

project = "bochner"
author = "the authors of bochner"
version = release = bochner.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "_templates", "guide/which_map_tables.md"]
templates_path = ["_templates"]
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 2
myst_links_external_new_tab = True

html_theme = "furo"
html_title = f"bochner {version}"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["guide.css"]

autosummary_generate = True
napoleon_use_ivar = True  # attributes are pages of their own where they are properties
# Docstrings inherited from scikit-learn refer to its own pages.
suppress_warnings = ["ref.ref", "docutils"]
autodoc_typehints = "none"  # docstrings name the types
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False

sphinx_gallery_conf = {
    "within_subsection_order": "reference.ByTask",
    "examples_dirs": "../python/examples",
    "gallery_dirs": "generated/examples",
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"__init__",
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 60,
    "image_scrapers": ("matplotlib",),
    "remove_config_comments": True,
    # An example that fails, or warns, is a fault of the page.
    "abort_on_example_error": True,
}


def keep_underscores(app, what, name, thing, options, lines):
    """Names of fitted attributes end with an underscore, which would make them references."""
    for number, line in enumerate(lines):
        if line.startswith((":ivar", ":vartype", ":param", ":type")):
            lines[number] = re.sub(r"(?<=\w)_(?!\w)", r"\_", line)


def setup(app):
    # After napoleon, which makes fields of sections.
    app.connect("autodoc-process-docstring", keep_underscores, priority=600)
    generated = HERE / "generated"
    generated.mkdir(exist_ok=True)
    (generated / "api.md").write_text(reference.page(), encoding="utf-8")
