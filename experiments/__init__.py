"""The papers' tables, measured again: ``python -m experiments list`` names them."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# `python -m` searches the folder it is called from before the installed packages, and
# here that folder has the package's sources, uncompiled. Searched last, they hide
# nothing.
_ENTRIES = ("", str(ROOT))
sys.path[:] = [
    *(entry for entry in sys.path if entry not in _ENTRIES),
    *(entry for entry in sys.path if entry in _ENTRIES),
]
