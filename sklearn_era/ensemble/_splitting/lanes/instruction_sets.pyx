"""Choose one of the instruction sets that loops over vectors are compiled for. No
operation is contracted or reordered, so results are the same, to the last bit.
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
    """Return the compiled x86-64 levels that run here, best first; "" runs anywhere."""
    return ["v4"] * bool(has_v4()) + ["v3"] * bool(has_v3()) + [""]


def lane_module(name=f"{__package__}.kernels"):
    """Return the best compiled module `name` or, if the environment variable
    SKLEARN_ERA_X86_LEVEL is set, the module of this level. Raise ValueError if the
    level is unavailable.
    """
    levels = available_levels()
    level = os.environ.get("SKLEARN_ERA_X86_LEVEL", levels[0])
    if level not in levels:
        raise ValueError(
            f"SKLEARN_ERA_X86_LEVEL={level!r} is not available; use one of "
            f"{', '.join(map(repr, levels))}, or unset it."
        )
    return importlib.import_module(name + (f"_{level}" if level else ""))
