"""How Sphinx makes a site of the pages, the examples and the docstrings.

The root of the repository is the source folder, so that a link from one file to another
is the same in the repository and on the site. From there:

    python -m sphinx -W -c docs . build/site
"""

from importlib.metadata import version as version_of
from pathlib import Path

project = "sklearn_era"
author = "the sklearn_era developers"
project_copyright = f"2026, {author}"
release = version = version_of("sklearn-era")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.extlinks",
    "sphinx_gallery.gen_gallery",
]

# In full, since autosummary looks from the source folder, and all else from this one.
templates_path = [str(Path(__file__).parent / "templates")]
exclude_patterns = ["docs/templates/**", "docs/site_root/**"]
root_doc = "docs/index"
include_patterns = ["README.md", "CHANGELOG.md", "docs/**", "experiments/README.md"]

html_theme = "pydata_sphinx_theme"
html_title = project
html_extra_path = ["site_root"]  # index.html, which leads to that of docs/
html_show_sourcelink = False

myst_heading_anchors = 4  # links to headings, as in the repository

extlinks = {"arxiv": ("https://arxiv.org/abs/%s", "arXiv:%s")}
autosummary_generate = True
autosummary_ignore_module_all = False  # what is public is in __all__
autosummary_imported_members = True
autodoc_typehints = "none"  # types are in the docstrings
numpydoc_show_class_members = False
# scikit-learn's own docstrings, which ours contain, refer to its manual and glossary.
suppress_warnings = ["ref.ref", "ref.term"]

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "docs/auto_examples",
    "filename_pattern": r"/plot_",
    "doc_module": ("sklearn_era",),
    "reference_url": {"sklearn_era": None},
    "backreferences_dir": "docs/api/backreferences",
    "show_memory": False,
    "write_computation_times": False,
}
