# Pooled histograms of a node, from its rows or, exactly, as its parent's less its
# sibling's: sums are integers. Where words have the capacity for all rows of the node,
# the sums are of words, counts included: so a bin takes half of the memory and work.

from libc.string cimport memset

from .._arrays cimport X_BINNED_DTYPE_C

from .bundles cimport MAX_SPLIT_LANES, FeatureBundles, bundle_struct
from .fixed_points cimport summed_values, unpack
from .lanes.functions cimport lane_functions
from .nodes cimport tree_data
from .rows cimport MAX_BINS, EraRows, packed_rows, row_block
from .store cimport NodeHistograms, child_sums
from .threads cimport first_of, stop_of, thread_team, wait_for_team

cdef enum:
    FILL_SIZE = 32768  # rows in a chunk
    AT_ONCE = 4        # columns that a pass over rows adds to
    FEW_ROWS = 128     # for which combinations cost more than they save


cdef struct bin_sums:
    # The sums by bin to which the rows of a chunk are added.
    const tree_data * tree
    packed_rows packed      # of the chunk
    bint are_words
    long long * sums        # (n_planes, n_bins)
    Py_ssize_t n_bins       # of all features


cdef inline child_sums describe_child(
    NodeHistograms child,   # OUT
    NodeHistograms parent,  # IN; OUT: the other child's; or None
    EraRows rows,           # of the child
    bint is_alone,
) noexcept nogil:
    """Choose how to store a child's or the root's sums; return format and addresses."""
    cdef child_sums sums
    if child.by_era != NULL:
        rows.list_eras(True, NULL)
    elif is_alone and rows.n_rows <= rows.pool_size:
        child.count_bits = rows.count_bits
    sums.sums, sums.n_bins = child.sums, child.n_bins
    sums.n_planes = child.n_planes - (child.count_bits > 0)
    sums.of_parent = NULL
    sums.joins = False
    sums.count_bits = 0
    if parent is None:
        return sums
    sums.of_parent = parent.sums
    if child.count_bits > 0 and parent.count_bits == 0:
        sums.count_bits = child.count_bits
    if child.count_bits > 0 and parent.n_rows - rows.n_rows <= rows.pool_size:
        parent.count_bits = rows.count_bits
        sums.joins = sums.count_bits > 0
    return sums


cdef inline void fill(
    NodeHistograms histograms,  # OUT
    const child_sums * child, EraRows rows, const tree_data * tree,
    FeatureBundles bundles, thread_team team,
) noexcept nogil:
    """Sum up the rows of a node by bin, for all features of a tree; subtract the sums
    from the parent's, if there is a parent.
    """
    cdef:
        const summed_values * values = &rows.of_gradients
        int place = first_of(team, bundles.n_bundles)
        int n_bundles = stop_of(team, bundles.n_bundles) - place
        const bundle_struct * first = &bundles.bundles[place]
        int size = min(FILL_SIZE, <int> rows.n_packed)
        int start = 0, stop, n_bins = 0, i
        bin_sums to
    to.tree = tree
    to.packed = rows.packed(values, False)
    to.are_words = histograms.count_bits > 0
    to.sums, to.n_bins = histograms.sums, histograms.n_bins
    for i in range(n_bundles):
        n_bins += first[i].n_bins
    for i in range(histograms.n_planes - to.are_words if n_bundles > 0 else 0):
        memset(
            to.sums + i * to.n_bins + first.first_bin, 0, n_bins * sizeof(long long)
        )
    while start < rows.n_rows:
        stop = min(start + size, rows.n_rows)
        i = first_of(team, stop - start)
        rows.pack(values, start + i, start + stop_of(team, stop - start), i)
        wait_for_team(team)
        add_bundles(&to, first, n_bundles, rows.pool_size, start, stop)
        start = stop
        if start < rows.n_rows:
            wait_for_team(team)
    if child.of_parent != NULL:
        subtract(child, first, n_bundles)


cdef inline void fill_by_era(
    NodeHistograms histograms,  # OUT
    NodeHistograms parent,      # IN; OUT: the other child's; or None
    const child_sums * child,
    EraRows rows,               # of the node, all eras listed
    FeatureBundles bundles,     # all with masks
    const lane_functions * functions, thread_team team,
) noexcept nogil:
    """Sum up a node's rows by era and split, and by bin; subtract the sums from the
    sums of `parent`.
    """
    cdef:
        const summed_values * values = &rows.of_gradients
        packed_rows packed = rows.packed(values, False)
        Py_ssize_t stride = histograms.n_planes * <Py_ssize_t> rows.n_eras
        long long * by_era
        const bundle_struct * bundle
        const row_block * block
        int chunk, first, n_blocks, i
        Py_ssize_t j
    for chunk in range(rows.n_chunks):
        first = rows.chunks[chunk]
        n_blocks = rows.chunks[chunk + 1] - first
        for i in range(first_of(team, n_blocks), stop_of(team, n_blocks)):
            block = &rows.blocks[first + i]
            rows.pack(values, block.start, block.stop, block.first_word)
        wait_for_team(team)
        for i in range(
            first_of(team, bundles.n_bundles), stop_of(team, bundles.n_bundles)
        ):
            bundle = &bundles.bundles[i]
            by_era = histograms.by_era + bundle.first_lane * stride
            if chunk == 0:
                memset(by_era, 0, bundle.n_lanes * stride * sizeof(long long))
            functions.sum_bundle(
                bundle, &packed, &rows.blocks[first], n_blocks, by_era
            )
            if chunk < rows.n_chunks - 1:
                continue
            pool_eras(bundle, by_era, rows.n_eras, histograms)
            if parent is not None:
                for j in range(bundle.n_lanes * stride):
                    parent.by_era[bundle.first_lane * stride + j] -= by_era[j]
                subtract(child, bundle, 1)
        if rows.n_chunks > 1:
            wait_for_team(team)


cdef inline void pool_eras(
    const bundle_struct * bundle, const long long * by_era, int n_eras,
    NodeHistograms histograms,  # OUT, the bins of a bundle
) noexcept nogil:
    """Set a bundle's sums by bin, from sums by era on the left side of each split."""
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
    const child_sums * child, const bundle_struct * bundles, int n_bundles
) noexcept nogil:
    """Subtract a child's sums from its parent's sums, for the bins of some bundles."""
    cdef:
        Py_ssize_t n = child.n_bins
        long long one = 1
        long long mask = (one << child.count_bits) - 1
        const long long * sums
        long long * of_parent
        Py_ssize_t first, stop, i
        int plane
    if n_bundles == 0:
        return
    first = bundles[0].first_bin
    stop = bundles[n_bundles - 1].first_bin + bundles[n_bundles - 1].n_bins
    for plane in range(child.n_planes):
        sums = child.sums + plane * n
        of_parent = child.of_parent + plane * n
        if child.count_bits == 0:
            for i in range(first, stop):
                of_parent[i] -= sums[i]
        elif child.joins and plane == 0:
            for i in range(first, stop):
                of_parent[i] += of_parent[n + i] * (mask + 1) - sums[i]
        elif child.joins:
            for i in range(first, stop):
                of_parent[i] = of_parent[n + i] - sums[i]
        elif plane == 0:
            for i in range(first, stop):
                of_parent[i] -= sums[i] & mask
                of_parent[n + i] -= sums[i] >> child.count_bits
        else:
            for i in range(first, stop):
                of_parent[n + i] -= sums[i]


cdef struct code_column:
    # One byte for each row: a feature's code, or a bundle's combination of codes.
    const X_BINNED_DTYPE_C * codes
    const bundle_struct * bundle
    int member              # of the bundle; -1: joint
    int last_code           # of missing values, whose codes are larger; or MAX_BINS - 1
    Py_ssize_t first_bin


cdef inline void add_bundles(
    const bin_sums * to,    # IN and OUT
    const bundle_struct * bundles, int n_bundles,
    Py_ssize_t pool_size,   # maximum rows of a word
    int start,              # of the chunk, among the node's rows
    int stop,
) noexcept nogil:
    """Add the rows of a chunk to the sums by bin of some bundles of features."""
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
    """Return the codes of a bundle's feature `member`; joint codes if it is -1."""
    cdef:
        code_column column
        int j
    column.bundle = bundle
    column.member = member
    column.codes = bundle.codes
    column.first_bin = bundle.first_bin
    column.last_code = MAX_BINS - 1
    if member >= 0:
        column.codes = to.tree.X_binned + bundle.members[member] * to.tree.n_samples
        if bundle.n_codes[member] > <int> (
            to.tree.n_bins_non_missing[bundle.members[member]]
        ):
            column.last_code = bundle.n_codes[member] - 1
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
    """Sum up words (packed values) of rows by code; add the sums to columns' bins."""
    cdef:
        const packed_rows * packed = &to.packed
        long long[AT_ONCE * MAX_BINS] scratch
        long long * cells[AT_ONCE]
        bint are_bins[AT_ONCE]
        bint have_missing = False
        int word, i
    for i in range(n_columns):
        are_bins[i] = to.are_words and columns[i].member >= 0
        have_missing |= columns[i].last_code < MAX_BINS - 1
    for word in range(packed.n_words):
        for i in range(n_columns):
            cells[i] = to.sums + word * to.n_bins + columns[i].first_bin
            if not are_bins[i]:
                cells[i] = scratch + i * MAX_BINS
                memset(cells[i], 0, MAX_BINS * sizeof(long long))
        if n_columns < AT_ONCE:
            for i in range(n_columns):
                add_to_cells(
                    1, True, columns + i, packed, word, first_word, start, stop,
                    &cells[i],
                )
        elif have_missing:
            add_to_cells(
                AT_ONCE, True, columns, packed, word, first_word, start, stop, cells
            )
        else:
            add_to_cells(
                AT_ONCE, False, columns, packed, word, first_word, start, stop, cells
            )
        for i in range(n_columns):
            if not are_bins[i]:
                take_cells(to, &columns[i], word, cells[i])


cdef inline void add_to_cells(
    int n_columns,          # a constant: AT_ONCE or fewer
    bint have_missing,      # a constant: codes of missing values are larger than bins
    const code_column * columns, const packed_rows * packed, int word, int first_word,
    int start, int stop, long long ** cells,  # IN and OUT, by column
) noexcept nogil:
    """Add each row's word to the cell of the row's code. Fits spend most time here."""
    cdef:
        const long long * words = packed.words + word * packed.n_packed
        const unsigned int * rows = packed.indices
        const X_BINNED_DTYPE_C * codes[AT_ONCE]
        long long * sums[AT_ONCE]
        int last_code[AT_ONCE]
        long long summand
        Py_ssize_t i, row
        int code, j
    words += first_word - start
    for j in range(n_columns):
        codes[j] = columns[j].codes
        sums[j] = cells[j]
        last_code[j] = columns[j].last_code
    for i in range(start, stop):
        row = i if rows == NULL else rows[i]
        summand = words[i]  # once: compilers cannot know that no cell is a word
        for j in range(n_columns):
            code = codes[j][row]
            if have_missing:
                code = min(code, last_code[j])
            sums[j][code] += summand


cdef inline void take_cells(
    const bin_sums * to,    # IN and OUT
    const code_column * column,
    int word,               # the cells are sums of it
    const long long * cells,
) noexcept nogil:
    """Add the sums in a column's cells (sums by code) to the bins of its features."""
    cdef:
        const bundle_struct * bundle = column.bundle
        long long * bins = to.sums + column.first_bin
        long long[MAX_BINS] totals
        int n_before = 1, j
    if column.member >= 0:
        add_to_bins(to, cells, bundle.n_codes[column.member], word, bins)
        return
    for j in range(bundle.n_members):
        sum_member(cells, bundle.n_cells, n_before, bundle.n_codes[j], totals)
        add_to_bins(to, totals, bundle.n_codes[j], word, bins)
        n_before *= bundle.n_codes[j]
        bins += bundle.n_codes[j]


cdef inline void add_to_bins(
    const bin_sums * to, const long long * cells, int n_cells, int word,
    long long * bins,       # IN and OUT
) noexcept nogil:
    cdef int i
    if not to.are_words:
        unpack(cells, n_cells, word, to.packed.count_bits, bins, to.n_bins)
        return
    for i in range(n_cells):
        bins[word * to.n_bins + i] += cells[i]


cdef inline void sum_member(
    const long long * cells, int n_cells,
    int n_before,           # combinations of former members
    int n_codes, long long * totals,  # OUT
) noexcept nogil:
    """Set `totals` to one feature's sums by code, from sums by combination of codes."""
    cdef int group, code, i
    memset(totals, 0, n_codes * sizeof(long long))
    for group in range(n_cells // (n_before * n_codes)):
        for code in range(n_codes):
            for i in range(n_before):
                totals[code] += cells[(group * n_codes + code) * n_before + i]
