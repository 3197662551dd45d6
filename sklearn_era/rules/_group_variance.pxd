# The variance within a group after a rule has been added, from sums before it.
#
# Du et al. (2025), equations 5 and 6.


cdef inline double variance_of_loss(
    const double * totals,  # weight, sum of losses, sum of their squares
    double losses,          # of the rows covered
    double squares,
    double if_covered,      # factors of the losses: equation 5
    double if_not,
) noexcept nogil:
    """The variance of ``exp(-y F)`` in a group."""
    cdef:
        double mean = (
            if_covered * losses + if_not * (totals[1] - losses)
        ) / totals[0]
        double mean_square = (
            if_covered * if_covered * squares + if_not * if_not * (totals[2] - squares)
        ) / totals[0]
    return mean_square - mean * mean


cdef inline double variance_of_score(
    const double * totals,  # weight, sum of scores, sum of their squares
    double scores,          # of the rows covered
    double weight,
    double inside,          # the step of the rows covered
    double outside,         # and of all others
) noexcept nogil:
    """The variance of F in a group."""
    cdef:
        double other_scores = totals[1] - scores
        double other_weight = totals[0] - weight
        double mean = (
            totals[1] + inside * weight + outside * other_weight
        ) / totals[0]
        double mean_square = (
            totals[2]
            + 2.0 * (inside * scores + outside * other_scores)
            + inside * inside * weight + outside * outside * other_weight
        ) / totals[0]
    return mean_square - mean * mean
