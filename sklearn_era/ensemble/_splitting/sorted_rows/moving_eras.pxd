# The eras of a node, while its rows move from the right side of a split to the left.
#
# A row that moves is but noted, until a split is to be judged.

from libc.string cimport memset

from .node cimport hessian_of, row_sums, small_node
from ..tree_data cimport tree_data
from .node_rows cimport small_rows
from .keys cimport ROW_MASK
from ..._criteria.criterion cimport criterion_struct
from ..rows cimport impurity_sums, sum_squares
from ..._criteria.sides cimport (
    added, era_facts, era_sums, eras_struct, facts_of_era, is_covered, less, side_sums,
)
from ..._criteria.split_sums cimport add_era
from ..._criteria.criterion cimport split_rank
from ..._criteria.time_robust cimport era_rules_out, impurity


cdef struct moving_era:
    int era            # code
    era_sums total     # of its rows in the node
    era_sums left
    era_sums right
    bint has_moved     # some rows, since it was settled
    bint is_covered    # by the split, when it was
    era_facts facts


cdef struct moving_eras:
    const criterion_struct * criterion
    eras_struct pooled
    double * impurities      # (n_eras,), of the node; those of `pooled`
    row_sums sums            # what eras are compared by
    bint is_exact            # whether sums are, in any order
    int * codes              # (n_rows,), era of each row of the small node
    # Of the node.
    int n_present            # eras with rows
    int n_covered            # by the split, when they were settled
    int n_moved              # eras to be settled
    int worst                # place of the era that last ruled a split out
    moving_era * present     # (n_present,), ascending
    int * moved              # (n_present + 1,), places of those to be settled
    int * slots              # (n_rows,), of each row its era's place in `present`
    # Of the order in which rows move, where sums are not exact: of the era of each
    # row, what is right of it, summed from the far end. Taken from a total, a side
    # whose rows have no weight would have what rounding left over.
    double * gradients_right
    double * hessians_right


cdef inline void add_row(
    era_sums * side, double gradient, double hessian, double count
) noexcept nogil:
    side.gradients += gradient
    side.hessians += hessian
    side.count += count


cdef inline int find_eras(
    moving_eras * eras, const unsigned int * rows, int n_rows  # ascending
) noexcept nogil:
    """Find the eras of a node; return how many of them a split could cover."""
    cdef:
        double n_needed = 2.0 * eras.criterion.min_samples_per_era
        moving_era * era = NULL
        int n_coverable = 0
        int row, i
    eras.n_present = 0
    eras.worst = 0
    for i in range(n_rows):
        row = rows[i]
        if era == NULL or era.era != eras.codes[row]:
            era = &eras.present[eras.n_present]
            era.era = eras.codes[row]
            memset(&era.total, 0, sizeof(era_sums))
            eras.n_present += 1
        eras.slots[row] = eras.n_present - 1
        add_row(&era.total, eras.sums.gradients[row], hessian_of(&eras.sums, row), 1.0)
    for i in range(eras.n_present):
        n_coverable += eras.present[i].total.count >= n_needed
    return n_coverable


cdef inline void find_impurities(
    moving_eras * eras,          # of the node
    const small_rows * rows,
    const small_node * node,
    const tree_data * data,
) noexcept nogil:
    """Impurity of each era of a node, before any split."""
    cdef:
        impurity_sums total
        int stop = 0
        int start, i
    for i in range(node.stop - node.start):
        rows.scratch[i] = rows.samples[rows.rows[node.start + i]]
    for i in range(eras.n_present):
        start = stop
        stop += <int> eras.present[i].total.count
        total = sum_squares(data.gradients, data.hessians, rows.scratch, start, stop)
        eras.impurities[eras.present[i].era] = impurity(
            total.squares, total.gradients, total.hessians
        )


cdef inline void start_moves(
    moving_eras * eras, const unsigned int * keys, int n_rows  # as they will move
) noexcept nogil:
    """All rows on the right side."""
    cdef:
        moving_era * era
        int row, i
    eras.n_covered = 0
    eras.n_moved = 0
    for i in range(eras.n_present):
        era = &eras.present[i]
        memset(&era.left, 0, sizeof(era_sums))
        era.facts = facts_of_era(eras.criterion, &eras.pooled, era.era, era.total)
        era.right = era.total
        era.has_moved = False
        era.is_covered = False
    if eras.is_exact:
        return
    for i in range(eras.n_present):
        eras.present[i].right.gradients = 0.0
        eras.present[i].right.hessians = 0.0
    for i in range(n_rows - 1, -1, -1):
        row = keys[i] & ROW_MASK
        era = &eras.present[eras.slots[row]]
        eras.gradients_right[i] = era.right.gradients
        eras.hessians_right[i] = era.right.hessians
        add_row(
            &era.right, eras.sums.gradients[row], hessian_of(&eras.sums, row), 0.0
        )


cdef inline void move_row(
    moving_eras * eras, int row, int i  # the place of the row in the order
) noexcept nogil:
    """Move a row to the left side. Without a branch on what has moved before."""
    cdef moving_era * era = &eras.present[eras.slots[row]]
    add_row(&era.left, eras.sums.gradients[row], hessian_of(&eras.sums, row), 1.0)
    if not eras.is_exact:
        era.right.gradients = eras.gradients_right[i]
        era.right.hessians = eras.hessians_right[i]
    eras.moved[eras.n_moved] = eras.slots[row]
    eras.n_moved += not era.has_moved
    era.has_moved = True


cdef inline void settle(moving_eras * eras) noexcept nogil:
    """Find what the eras whose rows have moved have on the right, and who is covered.
    """
    cdef:
        moving_era * era
        int i
    for i in range(eras.n_moved):
        era = &eras.present[eras.moved[i]]
        if eras.is_exact:
            era.right = less(era.total, era.left)
        era.right.count = era.total.count - era.left.count
        era.has_moved = False
        eras.n_covered -= era.is_covered
        era.is_covered = (
            is_covered(era.left, era.right, eras.criterion.min_samples_per_era) > 0.0
        )
        eras.n_covered += era.is_covered
    eras.n_moved = 0


cdef inline bint is_ruled_out(
    moving_eras * eras,
    double cost,               # of the split's feature
    const split_rank * best,
) noexcept nogil:
    """Whether one of the eras alone has the split as it is rank below another."""
    cdef:
        moving_era * era
        int i, place
    if not eras.criterion.traits.worst_era_decides:
        return False
    # The era that ruled out the split before is the likeliest to do so again.
    for i in range(-1, eras.n_present):
        place = eras.worst if i < 0 else i
        era = &eras.present[place]
        if era_rules_out(
            eras.criterion, &era.facts, era.left, era.right, cost, best
        ):
            eras.worst = place
            return True
    return False


cdef inline void sum_eras(
    const moving_eras * eras, double * sums  # OUT
) noexcept nogil:
    """Add up the eras for the split as it is, in their order."""
    cdef:
        const moving_era * era
        side_sums of_all
        int i
    memset(sums, 0, eras.criterion.n_fields * sizeof(double))
    memset(&of_all, 0, sizeof(side_sums))
    for i in range(eras.n_present):
        of_all.left = added(of_all.left, eras.present[i].left)
        of_all.right = added(of_all.right, eras.present[i].right)
    for i in range(eras.n_present):
        era = &eras.present[i]
        add_era(eras.criterion, &era.facts, era.left, era.right, &of_all, sums)
