# A split criterion with its parameters, and what it ranks splits by.


# The names, in lower case, are those of `statistic` of `Invariant`.
cdef enum InvarianceStatistic:
    EFFECT = 0
    CHANGING_RATE = 1
    RATIO = 2


cdef enum:
    MAX_CRITERIA = 16
    MAX_STATISTICS = 6  # of a criterion


cdef struct criterion_traits:
    # Of a blend, what is true of any of its parts. They are `KernelTraits` of
    # sklearn_era/criteria.
    bint reads_impurities    # of eras before the split
    bint sees_all_eras       # each is judged beside the sums of all
    # Of a key, not of a blend's.
    bint is_at_most_gain     # the key is the pooled gain, or less
    bint worst_era_decides   # one era can be enough for a split to rank below another


cdef struct criterion_struct:
    # A criterion with its parameters.
    int name                      # see dispatch.pxd, as for the statistics
    int n_statistics
    int[MAX_STATISTICS] statistics
    int[MAX_CRITERIA] first_field  # of a criterion's sums, among those of a split
    int n_fields                  # sums of a split
    criterion_traits traits
    double boltzmann_alpha
    double min_direction_agreement
    unsigned int min_samples_per_era
    int min_covered_eras          # `min_era_coverage`, as a number of eras
    bint normalize_era_gain
    bint takes_worst_era          # `aggregation` of TIME_ROBUST: "max", or else "mean"
    double invariance_penalty
    double vrex_penalty
    InvarianceStatistic invariance_statistic
    double min_impurity_decrease  # of TIME_ROBUST; for others it is `min_gain`
    double min_gain_share         # 0: the gain of a node's other splits has no say
    bint breaks_ties              # DIRECTIONAL, by the eras' gains
    bint ranks_by_decrease        # TIME_ROBUST, for the unit of penalties
    double[MAX_CRITERIA] weights  # of a blend's keys
    # Of the tree, and set when one is started.
    double l2_regularization
    double min_gain               # a pooled gain has to exceed it, if it is not 0


cdef struct split_rank:
    # What decides between two admissible splits, compared in the order of the fields.
    double primary    # the criterion's key
    double secondary  # a second key, for criteria that compare pairs; else 0
    double gain       # pooled gain: what breaks ties of the keys
    # In place of `primary` where splits of different nodes are compared.
    double expansion
