"""What PyInstaller collects for this package: ``hook-sklearn_era``, by an entry point."""

from pathlib import Path


def get_hook_dirs() -> list[str]:
    """Return the folder of the hook."""
    return [str(Path(__file__).parent)]
