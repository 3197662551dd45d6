"""Decision trees for data with eras: a patch of scikit-learn's histogram boosting.

Import the estimators from `sklearn_era.ensemble` in place of `sklearn.ensemble`, pass
``eras=`` to ``fit`` and choose a ``split_criterion``. With the default criterion the
fitted trees are bit-identical to scikit-learn's.
"""

import sys
from importlib.machinery import PathFinder
from pathlib import Path

__version__ = "0.1.0"


def _find_installed() -> list[str]:
    """Return where pip put the package, unless it is this folder."""
    clone = Path(__file__).resolve().parents[1]
    entries = [entry for entry in sys.path if Path(entry or ".").resolve() != clone]
    spec = PathFinder.find_spec(__name__, entries)
    return list(spec.submodule_search_locations or ()) if spec else []


# `python -m pytest` and the like find this folder, in a clone, before the installed
# package. It holds no compiled module, so use the installed ones.
if (Path(__file__).resolve().parents[1] / "meson.build").is_file():
    __path__ = _find_installed() or __path__
