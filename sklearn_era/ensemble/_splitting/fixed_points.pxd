# What is summed up of rows, and which integers stand for it.

from libc.math cimport llrint

from sklearn.ensemble._hist_gradient_boosting.common cimport G_H_DTYPE_C


cdef inline long long fixed_point(G_H_DTYPE_C value, double scale) noexcept nogil:
    """A gradient or a hessian as an integer."""
    return llrint(value * scale)


cdef struct summed_values:
    # What is summed up of each row: a gradient and a hessian of the tree, or weights of
    # the target in their place.
    const G_H_DTYPE_C * gradients
    const G_H_DTYPE_C * hessians     # NULL where they are 1
    bint are_integers                # in sums
    double scale                     # from gradients to integers
    double unit                      # and back
    double hessian_scale
    double hessian_unit


cdef fix_points(
    summed_values * values,
    int n_samples,
    int packed_bits,
    int plain_bits,
    bint has_weights,
    int n_threads,
    exchange,
)
cdef double sum_all(
    const G_H_DTYPE_C * values, int n_samples, double scale, int n_threads
) noexcept nogil
