# "held_out": the gain of a split in each era at the values of the other eras.

from libc.math cimport fabs

from .criterion cimport criterion_struct, split_rank
from .formulas cimport REL_TOL, added, era_sums, eras_struct, node_value, side_sums


cdef inline double value_of_others(
    era_sums of_all, era_sums of_era, double fallback, double l2_regularization
) noexcept nogil:
    """v_(-j): the value by the rows of the other eras.

    The fallback without such rows, or if weight or difference may be rounding errors.
    """
    cdef:
        double hessians = of_all.hessians - of_era.hessians
        double has_others = 1.0 if of_all.count > of_era.count else 0.0
        double has_weight = 1.0 if hessians > REL_TOL * of_all.hessians else 0.0
        double weight = hessians if has_others * has_weight > 0.0 else 1.0
        double value = node_value(
            of_all.gradients - of_era.gradients, weight, l2_regularization
        )
        double size = fabs(value) if fabs(value) > fabs(fallback) else fabs(fallback)
        double differs = 0.0 if fabs(value - fallback) <= REL_TOL * size else 1.0
    return value if has_others * has_weight * differs > 0.0 else fallback


cdef inline double held_out_gain(
    era_sums left, era_sums right, const side_sums * of_all, double l2_regularization
) noexcept nogil:
    """Return the gain of a split in an era at the values of the other eras.

    q(G_j, H_j, v_(-j)) - q(G_Lj, H_Lj, v_L(-j)) - q(G_Rj, H_Rj, v_R(-j)) with
    q(G, H, v) = 2 G v + H v², the loss of rows with prediction v; as differences of
    squares, which are exactly 0 if v stays the same.
    """
    cdef:
        double value = value_of_others(
            added(of_all.left, of_all.right), added(left, right), 0.0, l2_regularization
        )
        double value_left = value_of_others(of_all.left, left, value, l2_regularization)
        double value_right = value_of_others(
            of_all.right, right, value, l2_regularization
        )
    return (value - value_left) * (
        2.0 * left.gradients + left.hessians * (value + value_left)
    ) + (value - value_right) * (
        2.0 * right.gradients + right.hessians * (value + value_right)
    )


cdef inline bint rank_held_out(
    const criterion_struct * criterion, const eras_struct * eras,
    double gains,             # sum over eras
    split_rank * rank,
) noexcept nogil:
    """sum_j of `held_out_gain` in era j; the mean of normalised gains."""
    rank.primary = gains
    if criterion.normalize_era_gain:
        rank.primary /= eras.n_eras
    return rank.primary > 0.0
