"""Packages that only an extra brings along."""

from importlib import import_module
from types import ModuleType


class MissingPackageError(ImportError):
    """A package is not installed that only an extra brings along."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"{package} is not installed, and this needs it: pip install "
            f"'sklearn-era[{extra}]', or '.[{extra}]' in a clone",
            name=package,
        )


def import_optional(module: str, *, extra: str) -> ModuleType:
    """Import a module of an optional package. A MissingPackageError names the extra if
    it is not installed; an import that fails further down is left as it is.
    """
    package = module.partition(".")[0]
    try:
        import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise MissingPackageError(package, extra) from error
    return import_module(module)
