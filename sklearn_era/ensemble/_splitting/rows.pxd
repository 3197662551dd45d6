from .._arrays cimport G_H_DTYPE_C

from .fixed_points cimport summed_values


cdef enum:
    CACHE_LINE = 64
    CHUNK_SIZE = 65536   # rows that stay in the cache; an era may have more
    MAX_BINS = 256       # of a feature with missing values, or combinations of a bundle
    BITSET_SIZE = 8      # words of 32 bits: a set of bins


cdef inline void * alloc_zeros(list owners, Py_ssize_t n_bytes) except NULL:
    """Return zeroed memory, aligned to cache lines, that `owners` keeps alive."""
    cdef bytearray memory = bytearray(n_bytes + CACHE_LINE)
    owners.append(memory)
    return <void *> ((<size_t> <char *> memory // CACHE_LINE + 1) * CACHE_LINE)


cdef extern from *:
    """
    typedef struct {
        int era;
        int start;         /* among the node's rows */
        int stop;
        int first_word;    /* of its rows, in the chunk */
        int place;         /* of the era, among those listed */
        long long doubt;   /* contrasts up to it may be ties but for rounding */
    } row_block;
    """
    ctypedef struct row_block:
        # Rows of a node, all of one era, and so few that one word holds their sum.
        int era, start, stop, first_word, place
        long long doubt


cdef struct packed_rows:
    # Packed rows of a node: one plane for each word of a row; the first word of a row
    # has the row count, 1, in its low bits.
    const unsigned int * indices     # NULL: all rows, in order
    const long long * words          # (n_words, n_packed)
    const long long * contrasts      # (n_packed,), if only directions count; or NULL
    Py_ssize_t n_packed              # rows of a plane
    int n_words                      # of a row
    int count_bits


cdef struct impurity_sums:
    # Sums of g^2 / h, g and h over rows.
    double squares
    double gradients
    double hessians


cdef inline void add_squares(
    impurity_sums * total, double gradient, double hessian
) noexcept nogil:
    total.gradients += gradient
    total.hessians += hessian
    if hessian > 0.0:  # rows without weight have no impurity
        total.squares += gradient * (gradient / hessian)


cdef inline impurity_sums sum_squares(
    const G_H_DTYPE_C * gradients,
    const G_H_DTYPE_C * hessians,   # NULL if they are 1
    const unsigned int * rows,      # NULL: all, in order
    int start, int stop,
) noexcept nogil:
    cdef:
        impurity_sums total = impurity_sums(0.0, 0.0, 0.0)
        unsigned int row
        int i
    for i in range(start, stop):
        row = i if rows == NULL else rows[i]
        add_squares(&total, gradients[row], 1.0 if hessians == NULL else hessians[row])
    return total


cdef class EraRows:
    cdef:
        readonly int n_eras
        object exchange
        int n_samples
        readonly double n_samples_of_all
        int n_threads
        const int [::1] era_codes        # (n_samples,)
        const int [::1] era_counts       # (n_eras,), training rows
        readonly object order            # (n_samples,), rows by era; or None

        # The values to sum up: the tree's gradients and hessians; targets' weights, or
        # gradients and their squares.
        summed_values of_gradients
        summed_values of_others
        bint compares_others             # by era, in place of gradients
        const G_H_DTYPE_C [::1] positive_weights
        const G_H_DTYPE_C [::1] weights
        tuple arrays                     # owners of gradients and hessians
        list owners                      # of other memory that pointers refer to
        Py_ssize_t block_size            # maximum rows of a block
        Py_ssize_t pool_size             # maximum rows of a word, across eras
        int count_bits                   # of a word, for the row count
        int sum_bits                     # of an integer whose sum is exact as a double
        int packed_bits                  # of the largest integer beside a row count
        int plain_bits                   # and of one alone
        bint has_weights                 # in gradients and hessians

        # The node.
        const unsigned int * sample_indices  # NULL: all rows, in order
        int n_rows
        # Its listed eras: those with enough rows to be compared.
        int n_listed
        int n_coverable                  # eras with enough rows for both sides
        int n_blocks
        row_block * blocks               # (capacity,)
        impurity_sums * block_sums       # (capacity,)
        int n_chunks
        int * chunks                     # (n_chunks + 1,), first block of each chunk

        long long [::1] words            # of a chunk: (MAX_WORDS, n_packed)
        Py_ssize_t n_packed

    cdef take_values(self, EraRows other)
    cdef const summed_values * values_to_compare(self) noexcept nogil
    cdef void start_node(
        self, const unsigned int * sample_indices, int n_rows
    ) noexcept nogil
    cdef void list_eras(
        self, bint lists_all, const double * min_samples
    ) noexcept nogil
    cdef void pack_contrasts(
        self, const summed_values * values, row_block * block, int count_bits
    ) noexcept nogil
    cdef int count_bits_of_contrasts(self) noexcept nogil
    cdef void pack(
        self, const summed_values * values, int start, int stop, int first_word
    ) noexcept nogil
    cdef packed_rows packed(
        self, const summed_values * values, bint wants_contrasts
    ) noexcept nogil
    cdef void measure_impurities(self, double * impurities) noexcept nogil
