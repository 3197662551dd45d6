from libc.string cimport memset

from .._arrays cimport G_H_DTYPE_C

from .fixed_points cimport summed_values


cdef enum:
    CHUNK_SIZE = 65536   # rows to hold in the cache at a time; one era may have more
    MAX_BINS = 256       # of a feature, missing values included, or of a bundle
    BITSET_SIZE = 8      # words of 32 bits, for a set of bins


cdef inline void * zeros(list owners, Py_ssize_t n_bytes) except NULL:
    """Memory of zeros, for as long as one of its owners lives."""
    cdef bytearray memory = bytearray(n_bytes)
    owners.append(memory)
    return <char *> memory


cdef extern from *:
    """
    typedef struct {
        int era;
        int start;         /* among the node's rows */
        int stop;
        int first_word;    /* of its rows, among the chunk's words */
        int place;         /* of the era, among those that are listed */
        long long doubt;   /* contrasts up to which rounding may hide a tie */
    } row_block;
    """
    ctypedef struct row_block:
        # Some rows of a node, all of one era, whose sums one word can hold.
        int era, start, stop, first_word, place
        long long doubt


cdef struct packed_rows:
    # Rows of a node as words: the number of rows in the low bits of the first word.
    const unsigned int * indices     # NULL: all rows, as they are
    const long long * words          # (n_words, n_packed)
    const long long * contrasts      # (n_packed,), where directions are all; or NULL
    Py_ssize_t n_packed              # words from plane to plane
    int n_words                      # of a row
    int count_bits


cdef struct impurity_sums:
    # Over rows: of g^2 / h, g and h.
    double squares
    double gradients
    double hessians


cdef inline void add_squares(
    impurity_sums * total, double gradient, double hessian
) noexcept nogil:
    """Add a row to the sums that an impurity is made of."""
    total.gradients += gradient
    total.hessians += hessian
    if hessian > 0.0:  # a row without weight has no part in it
        total.squares += gradient * (gradient / hessian)


cdef inline impurity_sums sum_squares(
    const G_H_DTYPE_C * gradients,
    const G_H_DTYPE_C * hessians,   # NULL where they are 1
    const unsigned int * rows,      # NULL: all, as they are
    int start,
    int stop,
) noexcept nogil:
    """The sums that the impurity of some rows is made of."""
    cdef:
        impurity_sums total
        unsigned int row
        int i
    memset(&total, 0, sizeof(total))
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
        const int [::1] era_codes        # (n_samples,), of each row
        const int [::1] era_counts       # (n_eras,), training rows
        readonly object order            # (n_samples,), rows by era; or None

        # What is summed up: gradients and hessians of the tree, or weights of targets.
        summed_values of_gradients
        summed_values of_targets
        bint compares_targets            # by era, in place of gradients
        const G_H_DTYPE_C [::1] positive_weights
        const G_H_DTYPE_C [::1] weights
        tuple arrays                     # gradients and hessians, to keep them alive
        list owners                      # of other memory that is pointed at
        Py_ssize_t block_size            # the most rows of a block
        Py_ssize_t pool_size             # the most rows of a word, of any eras
        int count_bits                   # of a word, for the number of rows
        int sum_bits                     # of an integer whose sum is a double
        int packed_bits                  # of the largest integer beside a count
        int plain_bits                   # and of one without
        bint has_weights                 # of rows, in gradients and hessians

        # Of the node.
        const unsigned int * sample_indices  # NULL: all rows, as they are
        int n_rows
        # Its eras that are listed: of as many rows as it takes to compare them.
        int n_listed
        int n_coverable                  # eras with rows for both sides of a split
        int n_blocks
        row_block * blocks               # (capacity,)
        impurity_sums * block_sums       # (capacity,)
        int n_chunks
        int * chunks                     # (n_chunks + 1,), first block of each chunk

        long long [::1] words            # of a chunk: (MAX_WORDS, n_packed)
        Py_ssize_t n_packed

    cdef const summed_values * values_to_compare(self) noexcept nogil
    cdef void start_node(self, const unsigned int [::1] sample_indices) noexcept
    cdef void list_eras(self, long long min_rows, long long n_needed) noexcept
    cdef void pack_contrasts(
        self, const summed_values * values, row_block * block, int count_bits
    ) noexcept nogil
    cdef int count_bits_of_contrasts(self) noexcept
    cdef void pack(
        self, const summed_values * values, int start, int stop, int first_word
    ) noexcept nogil
    cdef packed_rows packed(
        self, const summed_values * values, bint wants_contrasts
    ) noexcept nogil
    cdef void measure_impurities(self, double [::1] impurities) noexcept
