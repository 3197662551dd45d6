"""Import optional packages, which the extras of this package install."""

from importlib import import_module
from types import ModuleType


class MissingPackageError(ImportError):
    """Raised if an optional package, which an extra installs, is missing."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"{package} is not installed, and this needs it: pip install "
            f"'sklearn-era[{extra}]', or '.[{extra}]' in a clone",
            name=package,
        )


def import_optional(module: str, *, extra: str) -> ModuleType:
    """Import a module of an optional package. If the package is missing, raise
    MissingPackageError, which names the extra; other errors are passed on.
    """
    package = module.partition(".")[0]
    try:
        import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise MissingPackageError(package, extra) from error
    return import_module(module)
