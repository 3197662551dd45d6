# Pooled histograms of a node, from its rows or, exactly, as its parent's less its
# sibling's: sums are integers.

from cython.parallel cimport parallel, prange
from libc.string cimport memset

from .._arrays cimport X_BINNED_DTYPE_C

from .bundles cimport MAX_SPLIT_LANES, FeatureBundles, bundle_struct
from .fixed_points cimport summed_values, unpack
from .lanes.functions cimport lane_functions
from .nodes cimport tree_data
from .rows cimport MAX_BINS, EraRows, packed_rows
from .store cimport NodeHistograms

cdef enum:
    FILL_SIZE = 32768  # rows in a chunk
    SLICE_SIZE = 4096  # rows that a thread packs at a time
    AT_ONCE = 4        # columns that a pass over rows adds to
    FEW_ROWS = 128     # for which cells of all bins cost more than they save


cdef struct bin_sums:
    # The sums that rows are added to.
    const tree_data * tree
    packed_rows packed      # of the chunk
    long long * sums        # (n_planes, n_bins)
    Py_ssize_t n_bins       # of all features


cdef inline void fill(
    NodeHistograms histograms,  # OUT
    NodeHistograms parent,      # IN; OUT: the other child's; or None
    EraRows rows,               # of the node
    const tree_data * tree, FeatureBundles bundles, int n_threads,
) noexcept:
    """Sum up the rows of a node by bin, for all features of a tree."""
    cdef:
        const summed_values * values = &rows.of_gradients
        int size = min(FILL_SIZE, <int> rows.n_packed)
        int n_chunks = (rows.n_rows + size - 1) // size
        long long * of_parent = NULL
        bin_sums to
        int chunk, start, stop, first, n_bundles, i
    to.tree = tree
    to.packed = rows.packed(values, False)
    to.sums, to.n_bins = histograms.sums, histograms.n_bins
    if parent is not None:
        of_parent = parent.sums
    memset(to.sums, 0, histograms.n_planes * to.n_bins * sizeof(long long))
    with nogil, parallel(num_threads=n_threads):
        for chunk in range(n_chunks):
            start = chunk * size
            stop = min(start + size, rows.n_rows)
            for i in prange(
                (stop - start + SLICE_SIZE - 1) // SLICE_SIZE, schedule="static"
            ):
                rows.pack(
                    values, start + i * SLICE_SIZE,
                    min(start + (i + 1) * SLICE_SIZE, stop), i * SLICE_SIZE,
                )
            for i in prange(n_threads, schedule="static"):
                first = bundles.n_bundles * i // n_threads
                n_bundles = bundles.n_bundles * (i + 1) // n_threads - first
                add_bundles(
                    &to, &bundles.bundles[first], n_bundles, rows.pool_size, start, stop
                )
                if of_parent != NULL and chunk == n_chunks - 1:
                    subtract(
                        &bundles.bundles[first], n_bundles, to.sums,
                        histograms.n_planes, to.n_bins, of_parent,
                    )


cdef inline void fill_by_era(
    NodeHistograms histograms,  # OUT
    NodeHistograms parent,      # IN; OUT: the other child's; or None
    EraRows rows,               # of the node
    FeatureBundles bundles,     # all with masks
    const lane_functions * functions, int n_threads,
) noexcept:
    """Sum up the rows of a node by era and split, and by bin."""
    cdef:
        const summed_values * values = &rows.of_gradients
        packed_rows packed = rows.packed(values, False)
        Py_ssize_t stride = histograms.n_planes * <Py_ssize_t> rows.n_eras
        long long * by_era
        const bundle_struct * bundle
        int chunk, first, i
        Py_ssize_t j
    rows.list_eras(True, NULL)
    with nogil, parallel(num_threads=n_threads):
        for chunk in range(rows.n_chunks):
            first = rows.chunks[chunk]
            for i in prange(first, rows.chunks[chunk + 1], schedule="static"):
                rows.pack(
                    values, rows.blocks[i].start, rows.blocks[i].stop,
                    rows.blocks[i].first_word,
                )
            for i in prange(bundles.n_bundles, schedule="static"):
                bundle = &bundles.bundles[i]
                by_era = histograms.by_era + bundle.first_lane * stride
                if chunk == 0:
                    memset(by_era, 0, bundle.n_lanes * stride * sizeof(long long))
                functions.sum_bundle(
                    bundle, &packed, &rows.blocks[first],
                    rows.chunks[chunk + 1] - first, by_era,
                )
                if chunk < rows.n_chunks - 1:
                    continue
                pool_eras(bundle, by_era, rows.n_eras, histograms)
                if parent is not None:
                    for j in range(bundle.n_lanes * stride):
                        parent.by_era[bundle.first_lane * stride + j] -= by_era[j]
                    subtract(
                        bundle, 1, histograms.sums, histograms.n_planes,
                        histograms.n_bins, parent.sums,
                    )


cdef inline void pool_eras(
    const bundle_struct * bundle, const long long * by_era, int n_eras,
    NodeHistograms histograms,  # OUT, the bins of a bundle
) noexcept nogil:
    """Sum over the eras, and take differences of neighbouring splits for bins."""
    cdef:
        long long[MAX_SPLIT_LANES] left  # sides of splits
        long long * bins
        int n_lanes = bundle.n_lanes
        int plane, era, member, i
    for plane in range(histograms.n_planes):
        memset(left, 0, sizeof(left))
        for era in range(n_eras):
            for i in range(n_lanes):
                left[i] += by_era[(era * histograms.n_planes + plane) * n_lanes + i]
        bins = histograms.sums + plane * histograms.n_bins + bundle.first_bin
        for member in range(bundle.n_members):
            for i in range(bundle.n_codes[member]):
                bins[i] = left[bundle.n_splits]  # all rows
                if i < bundle.n_codes[member] - 1:
                    bins[i] = left[bundle.first_split[member] + i]
            for i in range(bundle.n_codes[member] - 1, 0, -1):
                bins[i] -= bins[i - 1]
            bins += bundle.n_codes[member]


cdef inline void subtract(
    const bundle_struct * bundles, int n_bundles, const long long * sums, int n_planes,
    Py_ssize_t n_bins, long long * of_parent,  # IN and OUT
) noexcept nogil:
    """Subtract a child's sums from its parent's, for some bundles."""
    cdef:
        Py_ssize_t first, stop, i
        int plane
    if n_bundles == 0:
        return
    stop = bundles[n_bundles - 1].first_bin + bundles[n_bundles - 1].n_bins
    for plane in range(n_planes):
        first = plane * n_bins
        for i in range(first + bundles[0].first_bin, first + stop):
            of_parent[i] -= sums[i]


cdef struct code_column:
    # A byte for each row: a feature's code, or a bundle's combination.
    const X_BINNED_DTYPE_C * codes
    const bundle_struct * bundle
    int member              # of the bundle; -1: joint
    Py_ssize_t first_bin


cdef inline void add_bundles(
    const bin_sums * to,    # IN and OUT
    const bundle_struct * bundles, int n_bundles,
    Py_ssize_t pool_size,   # maximum rows of a word
    int start,              # of the chunk, among the node's rows
    int stop,
) noexcept nogil:
    """Add the rows of a chunk to the bins of some bundles' features."""
    cdef:
        code_column[AT_ONCE] columns
        int n_columns, n_of_bundle, first, last, i, j
        bint joins
    first = start
    while first < stop:
        last = <int> min(first + pool_size, <Py_ssize_t> stop)
        n_columns = 0
        for i in range(n_bundles):
            joins = bundles[i].masks != NULL and last - first > max(
                FEW_ROWS, bundles[i].n_cells
            )
            n_of_bundle = 1 if joins else bundles[i].n_members
            for j in range(n_of_bundle):
                columns[n_columns] = column_of(to, &bundles[i], -1 if joins else j)
                n_columns += 1
                if n_columns == AT_ONCE:
                    add_columns(to, columns, n_columns, first - start, first, last)
                    n_columns = 0
        if n_columns > 0:
            add_columns(to, columns, n_columns, first - start, first, last)
        first = last


cdef inline code_column column_of(
    const bin_sums * to, const bundle_struct * bundle, int member
) noexcept nogil:
    """Return the column of a member, or of all jointly."""
    cdef:
        code_column column
        int j
    column.bundle = bundle
    column.member = member
    column.codes = bundle.codes
    column.first_bin = bundle.first_bin
    if member >= 0:
        column.codes = to.tree.X_binned + bundle.members[member] * to.tree.n_samples
        for j in range(member):
            column.first_bin += bundle.n_codes[j]
    return column


cdef inline void add_columns(
    const bin_sums * to,    # IN and OUT
    const code_column * columns,
    int n_columns,          # AT_ONCE or fewer
    int first_word,         # of the rows
    int start, int stop,
) noexcept nogil:
    """Add some rows to the bins of some columns, by cells that are sums of words."""
    cdef:
        const packed_rows * packed = &to.packed
        long long[AT_ONCE * MAX_BINS] cells
        int word, first, i
    for i in range(n_columns if stop - start < FEW_ROWS else 0):
        add_few(to, &columns[i], first_word, start, stop)
    for word in range(packed.n_words if stop - start >= FEW_ROWS else 0):
        memset(cells, 0, n_columns * MAX_BINS * sizeof(long long))
        first = 0
        if n_columns == AT_ONCE:
            first = AT_ONCE
            add_to_cells(AT_ONCE, columns, packed, word, first_word, start, stop, cells)
        elif n_columns > 1:
            first = 2
            add_to_cells(2, columns, packed, word, first_word, start, stop, cells)
        for i in range(first, n_columns):
            add_to_cells(
                1, columns + i, packed, word, first_word, start, stop,
                cells + i * MAX_BINS,
            )
        for i in range(n_columns):
            take_cells(to, &columns[i], word, cells + i * MAX_BINS)


cdef inline void add_few(
    const bin_sums * to, const code_column * column, int first_word, int start, int stop
) noexcept nogil:
    """Add rows to the bins of a feature one by one."""
    cdef:
        const unsigned int * rows = to.packed.indices
        const long long * words = to.packed.words + first_word - start
        long long * bins = to.sums + column.first_bin
        Py_ssize_t n_bins = to.n_bins
        # The last code stands for missing values, whose bin is larger.
        int last_code = column.bundle.n_codes[column.member] - 1
        int code, word
        Py_ssize_t i
    for i in range(start, stop):
        code = min(<int> column.codes[i if rows == NULL else rows[i]], last_code)
        bins[code] += 1
        bins[n_bins + code] += words[i] >> to.packed.count_bits
        for word in range(1, to.packed.n_words):
            bins[(word + 1) * n_bins + code] += words[word * to.packed.n_packed + i]


cdef inline void add_to_cells(
    int n_columns,          # a constant: AT_ONCE or fewer
    const code_column * columns, const packed_rows * packed, int word, int first_word,
    int start, int stop, long long * cells,  # IN and OUT, (n_columns, MAX_BINS)
) noexcept nogil:
    """Add a word of each row to the cell of its code: most of the time of a fit."""
    cdef:
        const long long * words = packed.words + word * packed.n_packed
        const unsigned int * rows = packed.indices
        const X_BINNED_DTYPE_C * codes[AT_ONCE]
        Py_ssize_t i, row
        int j
    words += first_word - start
    for j in range(n_columns):
        codes[j] = columns[j].codes
    for i in range(start, stop):
        row = i if rows == NULL else rows[i]
        for j in range(n_columns):
            cells[j * MAX_BINS + codes[j][row]] += words[i]


cdef inline void take_cells(
    const bin_sums * to,    # IN and OUT
    const code_column * column,
    int word,               # the cells are sums of it
    long long * cells,      # IN
) noexcept nogil:
    """Add the cells of a column to the bins of its features."""
    cdef:
        const bundle_struct * bundle = column.bundle
        long long * bins = to.sums + column.first_bin
        long long[MAX_BINS] totals
        int count_bits = to.packed.count_bits
        int n_before = 1, n_known, j
    if column.member >= 0:
        j = column.member
        n_known = to.tree.n_bins_non_missing[bundle.members[j]]
        if bundle.n_codes[j] > n_known:
            cells[n_known] = cells[to.tree.missing_values_bin_idx]
        unpack(cells, bundle.n_codes[j], word, count_bits, bins, to.n_bins)
        return
    for j in range(bundle.n_members):
        sum_member(cells, bundle.n_cells, n_before, bundle.n_codes[j], totals)
        unpack(totals, bundle.n_codes[j], word, count_bits, bins, to.n_bins)
        n_before *= bundle.n_codes[j]
        bins += bundle.n_codes[j]


cdef inline void sum_member(
    const long long * cells, int n_cells,
    int n_before,           # combinations of former members
    int n_codes, long long * totals,  # OUT
) noexcept nogil:
    """Sum up the combinations by the codes of a member."""
    cdef int group, code, i
    memset(totals, 0, n_codes * sizeof(long long))
    for group in range(n_cells // (n_before * n_codes)):
        for code in range(n_codes):
            for i in range(n_before):
                totals[code] += cells[(group * n_codes + code) * n_before + i]
