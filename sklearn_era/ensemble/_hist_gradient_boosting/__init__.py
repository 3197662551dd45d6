"""Import scikit-learn's own ``gradient_boosting``, and patch it.

The patches are in ``patches/`` of the repository, and installed here. Binning,
histograms, the plain grower and the predictors are the installed scikit-learn's.
"""

import os
import sys
from importlib import resources
from importlib.abc import InspectLoader
from importlib.machinery import ModuleSpec
from importlib.util import cache_from_source, module_from_spec
from pathlib import Path

import sklearn

from ..._warnings import warn_user
from .patch_series import PatchError, patch_installed, read_pins, rename, sha256


class _Loader(InspectLoader):
    """Loads a module from patched text, and shows it in tracebacks and debuggers."""

    def __init__(self, text: str):
        self._text = text

    def get_source(self, fullname: str) -> str:
        return self._text


_FOLDER = resources.files(__name__)
# Releases of scikit-learn that the patches support, ascending.
RELEASES = [version for pin in read_pins(_FOLDER) for version in pin.versions]


def _keep(text: str, name: str) -> str:
    """Write a module's text to Python's bytecode folder if possible; return a path.

    The file is for breakpoints, coverage and editors alone. Python runs the text in
    memory, so that nobody who can write to the folder changes what runs.
    """
    origin = Path(__file__).with_name(f"{name}.py")
    try:
        folder = Path(cache_from_source(str(origin))).parent
        file = folder / f"{name}-{sha256(text)[:12]}.py"
        if file.is_file() and file.read_text(encoding="utf-8") == text:
            return str(file)
        if sys.dont_write_bytecode:
            return str(origin)
        folder.mkdir(parents=True, exist_ok=True)
        made = file.with_name(f"{file.name}.{os.getpid()}")
        made.write_text(text, encoding="utf-8", newline="\n")
        made.replace(file)
    except (OSError, NotImplementedError):  # read-only, or without a cache
        return str(origin)
    return str(file)


def _import_patched() -> None:
    site = Path(sklearn.__file__).parents[1]
    try:
        texts, is_known = patch_installed(_FOLDER, site, sklearn.__version__)
    except (PatchError, OSError) as error:
        raise ImportError(f"{error}.") from error
    if not is_known:
        warn_user(
            f"scikit-learn {sklearn.__version__} is none of those that this sklearn_era"
            f" was tested with ({', '.join(RELEASES)}), but all patches fit it. Install"
            " one of these, or a newer sklearn_era."
        )
    for path, text in rename(texts).items():
        name = Path(path).stem
        origin = _keep(text, name)
        spec = ModuleSpec(f"{__name__}.{name}", _Loader(text), origin=origin)
        spec.has_location = True
        module = module_from_spec(spec)
        sys.modules[spec.name] = module
        exec(compile(text, origin, "exec", dont_inherit=True), module.__dict__)
        globals()[name] = module


_import_patched()
