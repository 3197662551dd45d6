"""What PyInstaller collects for this package: its entry point ``pyinstaller40``."""

from pathlib import Path


def get_hook_dirs() -> list[str]:
    """Return the folder of the hook."""
    return [str(Path(__file__).parent)]
