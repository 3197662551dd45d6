# The split criteria and their parameters.
#
# What an era says of a split is added up in split_sums.pxd; ranking.pxd ranks a
# split by what all eras have said.


# How a split criterion ranks its candidates. The names are those of the estimators'
# `split_criterion`, in lower case. BLEND is what a mapping of names to weights stands
# for, and "gain": of it alone.
cpdef enum SplitCriterion:
    ERA = 0
    DIRECTIONAL = 1
    TIME_ROBUST = 2
    INVARIANT = 3
    VREX = 4
    HELD_OUT = 5
    BLEND = 6


# The names, in lower case, are those of the estimators' `invariance_statistic`.
cpdef enum InvarianceStatistic:
    EFFECT = 0
    CHANGING_RATE = 1
    RATIO = 2


# What is summed up of the eras for a split; see lane_sums.pxd.
cdef enum statistic:
    DIRECTIONS
    DIRECTIONS_AND_GAINS  # with alpha = 0
    MEAN_GAINS      # B_alpha, by kinds of alpha
    SMOOTHED_GAINS
    EXTREME_GAINS
    GAIN_MOMENTS
    EFFECTS         # moments of each of these
    CHANGING_RATES
    RATIOS
    IMPURITIES
    HELD_OUT_GAINS


cdef enum:
    MAX_STATISTICS = 6  # of a criterion


cdef enum:
    N_CRITERIA = SplitCriterion.BLEND  # those that have a value below it


cdef struct criterion_traits:
    # What a criterion keeps of the eras; of a blend, what any of its parts keeps. The
    # table is `CRITERIA` in _criterion_table.py.
    bint compares_gains      # gains and directions are looked at
    bint aggregates_gains    # by B_alpha
    bint keeps_moments       # of the gains: of their mean and their deviation
    bint keeps_statistics    # those whose variation over eras is penalised
    bint keeps_impurities
    bint sees_all_eras       # each is judged beside the sums of all
    # What can be said of its key; not of a blend's.
    bint is_at_most_gain     # the key is the pooled gain, or less
    bint worst_era_decides   # one era can be enough for a split to rank below another


cdef struct criterion_struct:
    # A criterion with its parameters, as the estimators call them.
    SplitCriterion name
    bint is_gain                  # alone: it has nothing to ask the eras
    int n_statistics
    statistic[MAX_STATISTICS] statistics
    int n_fields                  # numbers that they are, of a split
    criterion_traits traits
    double boltzmann_alpha
    double min_direction_agreement
    unsigned int min_samples_per_era
    int min_covered_eras          # `min_era_coverage`, as a number of eras
    bint normalize_era_gain
    bint takes_worst_era          # `period_aggregation`: "max", or else "mean"
    double invariance_penalty
    InvarianceStatistic invariance_statistic
    double min_impurity_decrease  # of TIME_ROBUST; for others it is `min_gain`
    double min_gain_share         # 0: the gain of a node's other splits has no say
    bint ranks_by_decrease        # TIME_ROBUST, for the unit of penalties
    # Of BLEND, the weight of each key: of the gain, and by SplitCriterion.
    double weight_gain
    double[N_CRITERIA] weights
    # Of the tree, and set when one is started.
    double l2_regularization
    double min_gain               # a pooled gain has to exceed it, if it is not 0


cdef class Criterion:
    cdef criterion_struct params
