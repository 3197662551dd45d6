"""The instruction sets that the loops over lanes are compiled for, and the one in use.

Vectors of 512 and of 256 bits compare eight and four eras in an instruction; what every
x86-64 processor has, two. The results are the same, to the last bit.
"""

import importlib
import os
from types import ModuleType

from .cpu_levels import COMPILED, supports

# From the widest vectors to what runs everywhere; builds for other processors, and by
# compilers without these options, have the last one alone.
_LEVELS = ("v4", "v3", "")


def available_levels() -> list[str]:
    """Levels of x86-64 that were compiled and that this processor has; "" is any."""
    return [
        level
        for level in _LEVELS
        if level == "" or (level in COMPILED and supports(level))
    ]


def lane_module(name: str = f"{__package__}.kernels") -> ModuleType:
    """The best module of a name, or the one that SKLEARN_ERA_X86_LEVEL asks for."""
    levels = available_levels()
    level = os.environ.get("SKLEARN_ERA_X86_LEVEL", levels[0])
    if level not in levels:
        raise ValueError(
            f"SKLEARN_ERA_X86_LEVEL={level!r} is not available; use one of "
            f"{', '.join(map(repr, levels))}, or unset it."
        )
    return importlib.import_module(name + (f"_{level}" if level else ""))


__all__ = ["available_levels", "lane_module"]
