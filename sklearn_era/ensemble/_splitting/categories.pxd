# The order in which the categories of a feature are tried, for one node.
#
# It is scikit-learn's: sorted by their pooled G / H, as for a squared error the best of
# all subsets is then a split between neighbours (Fisher 1958, On Grouping for Maximum
# Homogeneity). The order is the same for every criterion, which then judges the splits.

from libc.stdlib cimport qsort

from sklearn.ensemble._hist_gradient_boosting.common cimport (
    X_BINNED_DTYPE_C,
    hist_struct,
)

# A category with less hessian mass than this, in units of the node's mean hessian,
# stays on the right side; and the mass that smooths the statistic of the others. The
# value is scikit-learn's; LightGBM calls it cat_smooth.
cdef enum:
    MIN_CATEGORY_SUPPORT = 10


cdef struct category_struct:
    X_BINNED_DTYPE_C bin_idx
    double value


cdef inline int compare_categories(const void * a, const void * b) noexcept nogil:
    """By value, then by bin, so that equal categories have one order everywhere."""
    cdef:
        const category_struct * x = <const category_struct *> a
        const category_struct * y = <const category_struct *> b
    if x.value != y.value:
        return -1 if x.value < y.value else 1
    return (x.bin_idx > y.bin_idx) - (x.bin_idx < y.bin_idx)


cdef inline int order_categories(
    const hist_struct * pooled,  # IN, shape (n_bins,), of the feature
    int n_bins_non_missing,
    bint has_missing,            # as the bin after the others; else not a category
    double support_factor,       # rows of the node by unit of its hessian mass
    X_BINNED_DTYPE_C * order,    # OUT
) noexcept nogil:
    """Write all categories to `order`; return how many of them take part in a split.

    Those come first, in ascending order, and the ones with too little support last.
    """
    cdef:
        category_struct [256] categories
        double sum_hessians
        int n_used = 0
        int n_all = n_bins_non_missing + has_missing
        int n_unused = 0
        int i

    for i in range(n_all):
        sum_hessians = pooled[i].sum_hessians
        if sum_hessians * support_factor >= MIN_CATEGORY_SUPPORT:
            categories[n_used].bin_idx = i
            categories[n_used].value = (
                pooled[i].sum_gradients / (sum_hessians + MIN_CATEGORY_SUPPORT)
            )
            n_used += 1
        else:
            n_unused += 1
            order[n_all - n_unused] = i
    qsort(categories, n_used, sizeof(category_struct), compare_categories)
    for i in range(n_used):
        order[i] = categories[i].bin_idx
    return n_used
