"""The instruction sets that the loops over lanes are compiled for, and the one in use.

Vectors of 512 and of 256 bits compare eight and four eras in an instruction; what every
x86-64 processor has, two. The results are the same, to the last bit.
"""

import importlib
import os

cdef extern from *:
    """
    #if defined(LANES_FOR_X86_LEVELS)
    static int has_v3(void) { return __builtin_cpu_supports("x86-64-v3"); }
    static int has_v4(void) { return __builtin_cpu_supports("x86-64-v4"); }
    #else
    static int has_v3(void) { return 0; }
    static int has_v4(void) { return 0; }
    #endif
    """
    int has_v3()
    int has_v4()


def available_levels():
    """Levels of x86-64 that were compiled and that this processor has; "" is any.

    From the widest vectors to what runs everywhere; builds for other processors, and by
    compilers without these options, have the last one alone.
    """
    return ["v4"] * bool(has_v4()) + ["v3"] * bool(has_v3()) + [""]


def lane_module(name=f"{__package__}.kernels"):
    """The best module of a name, or the one that SKLEARN_ERA_X86_LEVEL asks for."""
    levels = available_levels()
    level = os.environ.get("SKLEARN_ERA_X86_LEVEL", levels[0])
    if level not in levels:
        raise ValueError(
            f"SKLEARN_ERA_X86_LEVEL={level!r} is not available; use one of "
            f"{', '.join(map(repr, levels))}, or unset it."
        )
    return importlib.import_module(name + (f"_{level}" if level else ""))
