"""Make PyInstaller collect the files of this package, by ``hook-sklearn_era``."""

from pathlib import Path


def get_hook_dirs() -> list[str]:
    """Return the folder of the hook."""
    return [str(Path(__file__).parent)]
