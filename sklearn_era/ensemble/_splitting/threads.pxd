# How threads share the work on nodes: even parts, or one piece after another.

from .._arrays cimport omp_barrier


cdef enum:
    FEW_ADDITIONS = 4_000
    PATIENCE = 1_000  # pauses: some dozen microseconds


cdef inline int threads_for(int n_threads, double n_additions) noexcept nogil:
    """Return how many threads to use: all if the work outweighs waking them, else 1."""
    return n_threads if n_additions > FEW_ADDITIONS else 1


cdef struct thread_team:
    # Threads that call the same functions for a node. They share loops out; all else is
    # done by each thread, to the same result, or by the first thread alone.
    int rank    # of this thread, from 0
    int size


cdef inline void wait_for_team(thread_team team) noexcept nogil:
    """Wait until all threads of a team arrive; then they see each other's writes."""
    if team.size > 1:
        omp_barrier()


cdef inline int first_of(thread_team team, int n) noexcept nogil:
    """Return the first step of this thread's part, if `n` steps are divided evenly."""
    return <int> (<long long> n * team.rank // team.size)


cdef inline int stop_of(thread_team team, int n) noexcept nogil:
    """Return the step after the last of this thread's part; see `first_of`."""
    return <int> (<long long> n * (team.rank + 1) // team.size)


ctypedef long long counter  # that threads share

cdef extern from *:
    """
    #if defined(_MSC_VER)
    #include <intrin.h>
    __declspec(dllimport) int __stdcall SwitchToThread(void);
    #define count_one(n) _InterlockedExchangeAdd64(n, 1)
    #define read_count(n) _InterlockedCompareExchange64(n, 0, 0)
    #define set_count(n, value) ((void) _InterlockedExchange64(n, value))
    #define let_others_run() ((void) SwitchToThread())
    #else
    #include <sched.h>
    #define count_one(n) __atomic_fetch_add(n, 1, __ATOMIC_ACQ_REL)
    #define read_count(n) __atomic_load_n(n, __ATOMIC_ACQUIRE)
    #define set_count(n, value) __atomic_store_n(n, value, __ATOMIC_RELEASE)
    #define let_others_run() ((void) sched_yield())
    #endif
    #if defined(_MSC_VER) && defined(_M_X64)
    #define rest() _mm_pause()
    #elif defined(__GNUC__) && defined(__x86_64__)
    #define rest() __builtin_ia32_pause()
    #elif defined(__GNUC__) && defined(__aarch64__)
    #define rest() __asm__ volatile("isb")
    #else
    #define rest() ((void) 0)
    #endif
    """
    # Who reads a value of a counter sees what was written before it was set.
    long long count_one(counter * n) noexcept nogil  # returns it as it was
    long long read_count(counter * n) noexcept nogil
    void set_count(counter * n, long long value) noexcept nogil
    void let_others_run() noexcept nogil
    void rest() noexcept nogil  # for some dozen cycles or more


cdef inline void pause(int n) noexcept nogil:
    """Pause for the n-th time in a row. After `PATIENCE` pauses, let other threads run
    on this core, as the thread that this one waits for may need the core.
    """
    if n < PATIENCE:
        rest()
    else:
        let_others_run()
