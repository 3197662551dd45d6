/* OpenMP without an OpenMP runtime of our own.
 *
 * The extension is compiled with -fopenmp and linked without it. What GCC then leaves
 * undefined for `#pragma omp parallel for schedule(static)` and for the omp_* functions
 * that Cython uses is defined here, hidden, and forwarded to the runtime which
 * scikit-learn has loaded. Its wheel carries a libgomp under a mangled name: dlsym() on
 * scikit-learn's own extension finds it, as it searches the libraries that an object
 * was linked with. Without OpenMP there, a parallel region runs on the calling thread.
 *
 * A test asserts that no GOMP_* or omp_* symbol is undefined, and that a process has
 * one runtime: what else a schedule or construct needs must be forwarded here too.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

#define HIDDEN __attribute__((visibility("hidden")))

static struct {
    void (*parallel)(void (*)(void *), void *, unsigned, unsigned);
    void (*barrier)(void);
    int (*thread_num)(void), (*num_threads)(void), (*max_threads)(void);
} runtime;

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* dl_iterate_phdr callback: copy the path of the loaded object that is scikit-learn's.
 * To open it here would deadlock with a thread that opens another library: the lock
 * which the loader holds during the walk is the second one that dlopen() takes. */
static int find_sklearn(struct dl_phdr_info *info, size_t size, void *path)
{
    (void)size;
    if (info->dlpi_name == NULL || strlen(info->dlpi_name) >= PATH_MAX ||
        strstr(info->dlpi_name, "/sklearn/utils/_openmp_helpers.") == NULL)
        return 0;
    strcpy(path, info->dlpi_name);
    return 1;
}

static void load_runtime(void)
{
    char path[PATH_MAX];
    void *handle;

    if (!dl_iterate_phdr(find_sklearn, path) ||
        (handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD)) == NULL)
        return;
    /* ISO C has no cast from dlsym()'s result to a function: a detour by addresses. */
    *(void **)&runtime.parallel = dlsym(handle, "GOMP_parallel");
    *(void **)&runtime.barrier = dlsym(handle, "GOMP_barrier");
    *(void **)&runtime.thread_num = dlsym(handle, "omp_get_thread_num");
    *(void **)&runtime.num_threads = dlsym(handle, "omp_get_num_threads");
    *(void **)&runtime.max_threads = dlsym(handle, "omp_get_max_threads");
}

static bool has_runtime(void)
{
    pthread_once(&once, load_runtime);
    return runtime.parallel && runtime.barrier && runtime.thread_num &&
           runtime.num_threads && runtime.max_threads;
}

HIDDEN void GOMP_parallel(void (*fn)(void *), void *data, unsigned num_threads,
                          unsigned flags)
{
    if (has_runtime())
        runtime.parallel(fn, data, num_threads, flags);
    else
        fn(data);
}

HIDDEN void GOMP_barrier(void)
{
    if (has_runtime())
        runtime.barrier();
}

#define FORWARD(name, without)                                                         \
    HIDDEN int omp_get_##name(void)                                                    \
    {                                                                                  \
        return has_runtime() ? runtime.name() : without;                               \
    }
FORWARD(thread_num, 0)
FORWARD(num_threads, 1)
FORWARD(max_threads, 1)
