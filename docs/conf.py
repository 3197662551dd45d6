"""The configuration of Sphinx: a site of the pages, the examples and the docstrings.

The root of the repository is the source folder, so that links between files are the
same in the repository and on the site. From there:

    python -m sphinx -W -n -c docs . build/site
"""

import re
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version as version_of
from pathlib import Path

from docutils import nodes

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

# An absolute path: autosummary starts from the source folder, all else from this one.
templates_path = [str(Path(__file__).parent / "templates")]
exclude_patterns = ["docs/templates/**", "docs/site_root/**"]
root_doc = "docs/index"
include_patterns = ["README.md", "CHANGELOG.md", "docs/**", "experiments/README.md"]

html_theme = "pydata_sphinx_theme"
html_title = project
html_extra_path = ["site_root"]  # index.html, which leads to that of docs/
html_show_sourcelink = False
html_static_path = ["site.css"]
html_css_files = ["site.css"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4  # links to headings, as in the repository

extlinks = {"arxiv": ("https://arxiv.org/abs/%s", "arXiv:%s")}
autosummary_generate = True
autosummary_ignore_module_all = False  # public names are in __all__
autosummary_imported_members = True
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # types are in the docstrings
numpydoc_show_class_members = False
# scikit-learn's docstrings, contained in ours, refer to its manual and glossary.
suppress_warnings = ["ref.ref", "ref.term"]

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "docs/auto_examples",
    "filename_pattern": r"/plot_",
    "doc_module": ("sklearn_era",),
    "reference_url": {"sklearn_era": None},
    "backreferences_dir": "docs/api/backreferences",
    "show_memory": False,
    "capture_repr": (),  # titles of figures and the like
    "write_computation_times": False,
}

# The manuals of other packages. Their inventories are not downloaded, so that the site
# builds without a network: a name is linked if it can be imported.
_MANUALS = {
    "sklearn": "https://scikit-learn.org/1.9/modules/generated/{}.html",
    "dask": "https://docs.dask.org/en/stable/search.html?q={}",
    "joblib": "https://joblib.readthedocs.io/en/stable/generated/{}.html",
    "matplotlib": "https://matplotlib.org/stable/search.html?q={}",
    "narwhals": "https://narwhals-dev.github.io/narwhals/search.html?q={}",
    "numpy": "https://numpy.org/doc/stable/reference/generated/{}.html",
    "pandas": "https://pandas.pydata.org/docs/reference/api/{}.html",
    "scipy": "https://docs.scipy.org/doc/scipy/reference/generated/{}.html",
}


def _link_other_packages(app, env, node, contnode):
    """Link a name of another package to its manual; None leaves it unresolved."""
    name = node.get("reftarget", "")
    if "." not in name:  # in scikit-learn's own docstrings
        name = f"sklearn.ensemble.{name}"
    package = name.partition(".")[0]
    if package not in _MANUALS or not _exists(name):
        return None
    target = _MANUALS[package].format(name)
    return nodes.reference("", "", contnode, internal=False, refuri=target)


def _exists(name: str) -> bool:
    """Whether a dotted name is a module, or an attribute of what precedes it."""
    owner, _, attribute = name.rpartition(".")
    try:
        return hasattr(import_module(owner), attribute)
    except ImportError:
        return bool(owner) and _exists(owner)


def _write_command_line(app):
    """Write the reference of the commands from their ``--help``."""
    page = Path(__file__).parent / "api" / "command-line.md"
    page.parent.mkdir(exist_ok=True)
    command = [
        sys.executable,
        "-P",
        "-m",
        "typer",
        "sklearn_era.cli._commands",
        "utils",
    ]
    command += ["docs", "--name", "sklearn-era", "--title", "Command line"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True)
    page.write_text(printed.stdout, encoding="utf-8")


def _write_names(app):
    """Write a table of each package's public names, with their first sentences."""
    page = Path(__file__).parent / "api.md"
    tables = []
    for package in re.findall(r"^   (sklearn_era\.[\w.]+)$", page.read_text(), re.M):
        names = [f"   {x}" for x in sorted(import_module(package).__all__)]
        tables += [f".. rubric:: {package}", "", f".. currentmodule:: {package}", ""]
        tables += [".. autosummary::"]
        tables += ["   :nosignatures:", "", *names, ""]
    (page.parent / "api" / "names.inc").write_text("\n".join(tables), encoding="utf-8")


def _for_readers(app, what, name, obj, options, lines):
    """Remove private modules, and scikit-learn's references to its own site.

    Its labels lead to missing pages, and its versions are not this package's.
    """
    text = "\n".join(lines)
    if what == "module":
        paragraphs = text.split("\n\n")
        text = "\n\n".join(x for x in paragraphs if not re.search(r"``_\w", x))
    if what == "class" and "HistGradientBoosting" in name:
        text = re.sub(
            r"\n( *)\.\. version(?:added|changed):: .*(?:\n\1 +.*)*\n", "\n", text
        )
        guide = "https://scikit-learn.org/stable/modules/ensemble.html"
        text = re.sub(r":ref:`([^`<]*?)\s*<[^`]*>`", rf"`\1 <{guide}>`__", text)
        text = re.sub(r":ref:`[^`]*`", f"`scikit-learn's guide <{guide}>`__", text)
    lines[:] = [*text.split("\n"), ""]


def setup(app):
    app.connect("autodoc-process-docstring", _for_readers, priority=400)
    app.connect("builder-inited", _write_command_line)
    app.connect("builder-inited", _write_names)
    app.connect("missing-reference", _link_other_packages)
