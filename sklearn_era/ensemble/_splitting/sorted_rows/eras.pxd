# The eras of a small node, on both sides of a candidate.

from libc.string cimport memset

from .node cimport MAX_ROWS, row_of, small_rows
from ..nodes cimport tree_data, tree_node
from ..rows cimport add_squares, impurity_sums
from ..._criteria.criterion cimport criterion_struct
from ..._criteria.dispatch cimport can_reach
from ..._criteria.formulas cimport (
    era_facts, era_sums, eras_struct, facts_of_era, is_covered,
)
from ..._criteria.split_sums cimport add_absent_eras, add_era, counts_uncovered_eras
from ..._criteria.time_robust cimport impurity


cdef struct present_era:
    int code
    era_sums total            # over its rows in the node
    impurity_sums squares
    era_facts facts
    era_sums left             # sides of the split
    era_sums right
    bint is_covered           # by the split


cdef struct small_eras:
    eras_struct of_node
    double * impurities       # (n_eras,), of the node; also in `of_node`
    # By row of the small node: its era, and the values that eras are compared by.
    int[MAX_ROWS] codes
    double[MAX_ROWS] gradients
    double[MAX_ROWS] hessians
    # The node.
    int n_present             # eras with rows
    present_era[MAX_ROWS] present   # ascending
    int[MAX_ROWS] places      # of each row's era, in `present`
    # The order in which rows move to the left side.
    int n_moved
    int n_covered             # eras
    int decisive              # place of the era that last excluded a split
    era_sums[MAX_ROWS] right_of     # the era's sums after each place


cdef inline void add_row(
    const small_eras * eras, int row, era_sums * side
) noexcept nogil:
    side.gradients += eras.gradients[row]
    side.hessians += eras.hessians[row]
    side.count += 1.0


cdef inline int find_eras(
    small_eras * eras, const criterion_struct * criterion, const small_rows * rows,
    const tree_data * tree, const tree_node * node,
) noexcept nogil:
    """List the eras with rows in a node; return how many of them have enough rows for
    both sides of a split.
    """
    cdef:
        present_era * era = NULL
        int n_coverable = 0, row, i
    eras.n_present = 0
    eras.decisive = 0
    for i in range(<int> node.pooled.n_samples):
        row = rows.rows[node.start + i]
        if era == NULL or era.code != eras.codes[row]:
            era = &eras.present[eras.n_present]
            memset(era, 0, sizeof(present_era))
            era.code = eras.codes[row]
            eras.n_present += 1
        eras.places[row] = eras.n_present - 1
        add_row(eras, row, &era.total)
        if criterion.traits.reads_impurities:
            add_squares(
                &era.squares, tree.gradients[rows.samples[row]], rows.hessians[row]
            )
    for i in range(eras.n_present):
        era = &eras.present[i]
        eras.impurities[era.code] = impurity(
            era.squares.squares, era.squares.gradients, era.squares.hessians
        )
        era.facts = facts_of_era(criterion, &eras.of_node, era.code, era.total)
        n_coverable += era.total.count >= 2.0 * era.facts.min_samples
    return n_coverable


cdef inline void start_order(
    small_eras * eras, const unsigned int * keys, int n_rows
) noexcept nogil:
    """Put all rows on the right side, and sum them up from the far end, because
    differences from a total would leave rounding errors on a side without weight.
    """
    cdef:
        present_era * era
        int i
    eras.n_covered = 0
    for i in range(eras.n_present):
        era = &eras.present[i]
        memset(&era.left, 0, sizeof(era_sums))
        memset(&era.right, 0, sizeof(era_sums))
        era.is_covered = False
    for i in range(n_rows - 1, -1, -1):
        era = &eras.present[eras.places[row_of(keys[i])]]
        eras.right_of[i] = era.right
        add_row(eras, row_of(keys[i]), &era.right)


cdef inline void move_rows(
    small_eras * eras, const unsigned int * keys, int n_left
) noexcept nogil:
    """Move further rows to the left side, until `n_left` are there."""
    cdef:
        present_era * era
        int i
    for i in range(eras.n_moved, n_left):
        era = &eras.present[eras.places[row_of(keys[i])]]
        add_row(eras, row_of(keys[i]), &era.left)
        era.right = eras.right_of[i]
        eras.n_covered -= era.is_covered
        era.is_covered = 0.0 < is_covered(
            era.left, era.right, era.facts.min_samples
        )
        eras.n_covered += era.is_covered
    eras.n_moved = n_left


cdef inline bint sum_eras(
    small_eras * eras, const criterion_struct * criterion,
    double gain,                 # pooled
    double min_key, double * sums,  # OUT
) noexcept nogil:
    """Sum up a split's eras; return False once the key cannot reach `min_key`."""
    cdef:
        bint counts_all = counts_uncovered_eras(criterion)
        int n_present = eras.n_present
        const present_era * era
        int i, place
    # The era that excluded the split before is the likeliest to exclude this one.
    for i in range(-1 if criterion.traits.worst_era_decides else 0, n_present):
        place = i if i >= 0 else eras.decisive
        era = &eras.present[place]
        if i <= 0:
            memset(sums, 0, criterion.n_fields * sizeof(double))
        if not (era.is_covered or counts_all):
            continue
        add_era(criterion, &era.facts, era.left, era.right, sums)
        if not can_reach(
            criterion, sums, 1, gain, eras.of_node.n_eras, n_present - 1 - max(i, 0),
            min_key,
        ):
            eras.decisive = place
            return False
    add_absent_eras(criterion, eras.of_node.n_eras - n_present, sums)
    return True
