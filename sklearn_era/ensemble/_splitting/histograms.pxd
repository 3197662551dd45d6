from .bundles cimport FeatureBundles
from .lanes.functions cimport lane_functions
from .rows cimport EraRows
from .store cimport NodeHistograms
from .tree_data cimport tree_data


cdef void fill(
    NodeHistograms histograms,
    NodeHistograms parent,
    EraRows rows,
    const tree_data * tree,
    FeatureBundles bundles,
    int n_threads,
) noexcept
cdef void fill_by_era(
    NodeHistograms histograms,
    NodeHistograms parent,
    EraRows rows,
    FeatureBundles bundles,
    const lane_functions * functions,
    int n_threads,
) noexcept
cdef bint are_sums_of(
    NodeHistograms histograms, FeatureBundles bundles, EraRows rows
) noexcept
cdef bint are_sums_of_eras(
    NodeHistograms histograms, FeatureBundles bundles, int n_eras
) noexcept
