# "directional": the agreement of eras on the side with the larger value. DeLise (2023),
# Era Splitting.

from libc.math cimport INFINITY, copysign, fabs

from .criterion cimport criterion_struct, split_rank
from .era cimport boltzmann
from .formulas cimport eras_struct


cdef inline double split_direction(double contrast) noexcept nogil:
    """Return sign(v_L - v_R): 1 if the left value is larger. DeLise (2023), eq. 38."""
    return copysign(1.0, contrast) if fabs(contrast) > 0.0 else 0.0


cdef inline double direction_agreement(
    double sum_directions, int n_eras
) noexcept nogil:
    """Return D = |sum_j sign(v_Lj - v_Rj)| / M, in [0, 1], with M the number of eras.
    DeLise (2023), equation 39.
    """
    return fabs(sum_directions) / n_eras


cdef inline bint rank_directional(
    const criterion_struct * criterion, const eras_struct * eras,
    double directions,     # sum over eras
    const double * gains,  # NULL: no ties to break
    split_rank * rank,
) noexcept nogil:
    """Set a split's key to the agreement of the eras' directions, and the second key,
    for ties, to the Boltzmann mean of `gains` (unless NULL). Return whether the split
    is valid.
    """
    rank.primary = direction_agreement(directions, eras.n_eras)
    if rank.primary == 0.0 or rank.primary < criterion.min_direction_agreement:
        return False
    if gains == NULL:
        return True
    rank.secondary = boltzmann(criterion.boltzmann_alpha, gains, eras.n_eras)
    return rank.secondary > 0.0
