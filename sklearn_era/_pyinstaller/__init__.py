"""Entry point for PyInstaller, which collects files by the hook in this folder."""

from pathlib import Path


def get_hook_dirs() -> list[str]:
    """Return the folder of the hook."""
    return [str(Path(__file__).parent)]
