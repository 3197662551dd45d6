# A split criterion with its parameters, and the rank of a split.


# The names in lower case are the values of `Invariant.statistic`.
cdef enum InvarianceStatistic:
    EFFECT = 0
    CHANGING_RATE = 1
    RATIO = 2


cdef enum:
    MAX_CRITERIA = 16
    MAX_STATISTICS = 6  # of a criterion


cdef struct criterion_traits:
    # The same as `KernelTraits` of sklearn_era/criteria; none for a blend.
    bint reads_impurities    # of eras before the split
    bint is_at_most_gain     # the key is the pooled gain, or less
    bint worst_era_decides   # one era can rank a split below another


cdef struct criterion_struct:
    # A criterion with its parameters.
    int name                      # and statistics: see dispatch.pxd
    int n_statistics
    int[MAX_STATISTICS] statistics
    int[MAX_CRITERIA] first_field  # of each criterion, among the sums of a split
    int n_fields                  # number of sums of a split
    criterion_traits traits
    double boltzmann_alpha        # TIME_ROBUST: 0 for an `aggregation` by name
    double min_direction_agreement
    # Below 1, a share: `SplitterState` makes it the largest of all eras' minima.
    double min_samples_per_era
    int min_covered_eras          # `min_era_coverage`, as a number of eras
    bint normalize_era_gain
    bint takes_worst_era          # TIME_ROBUST: `aggregation` is "max"
    bint keeps_sides              # of all eras of a split, for CUSTOM
    bint takes_deviation          # TIME_ROBUST: hessians are squares of gradients
    double invariance_penalty
    double vrex_penalty
    InvarianceStatistic invariance_statistic
    double min_impurity_decrease  # TIME_ROBUST; others use `min_gain`
    double min_gain_share         # 0: independent of the node's other splits
    bint breaks_ties              # DIRECTIONAL: by the eras' gains
    bint ranks_by_decrease        # TIME_ROBUST: for the unit of penalties
    double[MAX_CRITERIA] weights  # of a blend's keys
    # Set at the start of each tree.
    double l2_regularization
    double least_variance         # `takes_deviation`: a smaller one is rounding
    double min_gain               # pooled gains must exceed it, unless it is 0


cdef enum:  # the sums of a criterion in Python, set once all eras are known
    PRIMARY
    SECONDARY
    PRIORITY
    N_KEY_FIELDS


cdef struct split_rank:
    # The order of admissible splits, compared field by field.
    double primary    # the criterion's key
    double secondary  # a second key, for criteria that compare pairs; else 0
    double gain       # pooled gain, which breaks ties of the keys
    # The priority, in place of `primary`, between splits of different nodes.
    double priority
