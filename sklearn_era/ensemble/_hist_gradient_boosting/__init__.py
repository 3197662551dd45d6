"""scikit-learn's own ``gradient_boosting``, patched at import.

The patches are in ``patches/`` of the repository, and installed here. Binning,
histograms, the plain grower and the predictors are the installed scikit-learn's.
"""

import sys
from importlib import resources
from importlib.abc import InspectLoader
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path

import sklearn

from .patch_series import (
    PatchError,
    apply,
    read_pins,
    read_series,
    read_upstream,
    rename,
)


class _Loader(InspectLoader):
    """Loader of a patched text, with the source for tracebacks and debuggers."""

    def __init__(self, text: str):
        self._text = text

    def get_source(self, fullname: str) -> str:
        return self._text


_FOLDER = resources.files(__name__)
# Releases of scikit-learn that the patches support, ascending.
RELEASES = [version for pin in read_pins(_FOLDER) for version in pin.versions]


def _import_patched() -> None:
    try:
        site = Path(sklearn.__file__).parents[1]
        texts = read_upstream(read_pins(_FOLDER), site, sklearn.__version__)
        for patch in read_series(_FOLDER):
            texts = apply(patch, texts)
    except (PatchError, OSError) as error:
        raise ImportError(f"{error}.") from error
    for path, text in rename(texts).items():
        name = Path(path).stem
        origin = str(Path(__file__).with_name(f"{name}.py"))
        spec = ModuleSpec(f"{__name__}.{name}", _Loader(text), origin=origin)
        spec.has_location = True  # although the file does not exist
        module = module_from_spec(spec)
        sys.modules[spec.name] = module
        exec(compile(text, origin, "exec", dont_inherit=True), module.__dict__)
        globals()[name] = module


_import_patched()
