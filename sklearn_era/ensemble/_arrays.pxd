"""Declare the element types of scikit-learn's arrays.

All releases of scikit-learn in `patches/UPSTREAM` have the same types. The types are
declared here, not cimported from scikit-learn, so that one build serves all these
releases. Wherever Cython takes an array, it compares the struct with the array's dtype.
"""

from libc.stdint cimport uint8_t, uint32_t

ctypedef Py_ssize_t intp_t
ctypedef uint8_t X_BINNED_DTYPE_C
ctypedef float G_H_DTYPE_C
# A set of bins, one bit each.
ctypedef uint32_t[8] BITSET_DTYPE_C

cdef enum:
    NO_CST = 0  # no monotonic constraint


cdef packed struct hist_struct:
    double sum_gradients
    double sum_hessians
    unsigned int count


cdef packed struct node_struct:
    double value
    unsigned int count
    intp_t feature_idx
    double num_threshold
    uint8_t missing_go_to_left
    unsigned int left
    unsigned int right
    double gain
    unsigned int depth
    uint8_t is_leaf
    X_BINNED_DTYPE_C bin_threshold
    uint8_t is_categorical
    unsigned int bitset_idx  # the row of the bitsets, of a split by categories


cdef inline void init_bitset(BITSET_DTYPE_C bitset) noexcept nogil:
    cdef int i
    for i in range(8):
        bitset[i] = 0


cdef inline void set_bitset(BITSET_DTYPE_C bitset, uint8_t bin) noexcept nogil:
    bitset[bin >> 5] |= (<uint32_t> 1) << (bin & 31)


cdef inline bint in_bitset(const uint32_t * bitset, uint8_t bin) noexcept nogil:
    return (bitset[bin >> 5] >> (bin & 31)) & 1


cdef extern from *:
    """
    #ifdef _OPENMP
        #include <omp.h>
    #else
        #define omp_get_thread_num() 0
        #define omp_get_num_threads() 1
    #endif
    static inline void omp_barrier(void)
    {
    #ifdef _OPENMP
        #pragma omp barrier
    #endif
    }
    """
    int omp_get_thread_num() noexcept nogil
    int omp_get_num_threads() noexcept nogil
    void omp_barrier() noexcept nogil  # of the innermost parallel block
