"""What the processor can do, and what was compiled for it."""


cdef extern from *:
    """
    #if defined(LANES_FOR_X86_LEVELS)
    static int has_v3(void) { return __builtin_cpu_supports("x86-64-v3"); }
    static int has_v4(void) { return __builtin_cpu_supports("x86-64-v4"); }
    #define HAS_LEVELS 1
    #else
    static int has_v3(void) { return 0; }
    static int has_v4(void) { return 0; }
    #define HAS_LEVELS 0
    #endif
    """
    int has_v3()
    int has_v4()
    int HAS_LEVELS

COMPILED = ("v3", "v4") if HAS_LEVELS else ()


def supports(level):
    """Whether the processor has the instructions of "v3" or "v4" of x86-64."""
    return bool(has_v4() if level == "v4" else has_v3())
