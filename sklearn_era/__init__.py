"""Decision trees for data with eras: a patch of scikit-learn's histogram boosting.

Import the estimators from `sklearn_era.ensemble` in place of `sklearn.ensemble`, pass
``eras=`` to ``fit`` and choose a ``split_criterion``. With the default criterion the
fitted trees are bit-identical to scikit-learn's.
"""

import importlib as _importlib
import sys as _sys
from importlib.machinery import PathFinder as _PathFinder
from pathlib import Path as _Path
from types import ModuleType as _ModuleType

__version__ = "0.1.0"


def _find_installed() -> list[str]:
    """Return a list with the folder of the installed package; return an empty list if
    the package is found in this clone only.
    """
    clone = _Path(__file__).resolve().parents[1]
    entries = [entry for entry in _sys.path if _Path(entry or ".").resolve() != clone]
    spec = _PathFinder.find_spec(__name__, entries)
    return list(spec.submodule_search_locations or ()) if spec else []


# `python -m pytest` and the like find this folder, in a clone, before the installed
# package. It holds no compiled module, so use the installed ones.
if (_Path(__file__).resolve().parents[1] / "meson.build").is_file():
    __path__ = _find_installed() or __path__

# The public modules, imported when they are first asked for.
_MODULES = [
    "auto", "calibration", "causal", "criteria", "dask", "datasets", "effects",
    "ensemble", "environments", "inspection", "interop", "metrics", "model_files",
    "model_selection", "numerai", "preprocessing", "rules",
]  # fmt: skip


def __getattr__(name: str) -> _ModuleType:
    if name in _MODULES:
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return ["__version__", *_MODULES]
