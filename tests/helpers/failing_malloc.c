/* A preloaded allocator whose n-th call fails, of those that the package makes itself.

Which those are, the file tells to which a call returns: an extension module of
sklearn_era. NumPy's own are left out: it does not survive all of them. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);

static long n_left = -1; /* counts down to the call that fails; < 0: none does */
static long n_seen = 0;

void fail_after(long n) { n_left = n; n_seen = 0; }
long calls_seen(void) { return n_seen; }

static int fails(const void *caller)
{
    Dl_info info;
    if (n_left < 0 || !dladdr(caller, &info) || !info.dli_fname)
        return 0;
    if (!strstr(info.dli_fname, "/sklearn_era/ensemble/")
        && !strstr(info.dli_fname, "/sklearn_era/rules/"))
        return 0;
    return __atomic_fetch_add(&n_seen, 1, __ATOMIC_RELAXED) == n_left;
}

void *malloc(size_t size)
{
    if (fails(__builtin_return_address(0)))
        return NULL;
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    if (fails(__builtin_return_address(0)))
        return NULL;
    return __libc_calloc(n, size);
}
