"""Docstrings of the estimators: scikit-learn's own, with what is ours put in.

All that scikit-learn documents holds word for word, and is read from the installed
version rather than repeated here.
"""

import inspect
import re
from textwrap import dedent

from .._criterion_table import CRITERIA

_SUMMARY = """\
    scikit-learn's estimator of the same name, whose split criterion can compare eras:
    weeks, hospitals, regions. With `split_criterion="gain"`, the default, the fitted
    trees are bit-identical to scikit-learn's (but early stopping holds out whole eras
    where ``fit`` is given any; see `validation_eras`). What follows up to the era
    parameters is scikit-learn's own documentation.
"""

ERA_PARAMETERS = """    split_criterion : {CRITERIA} or dict, default='gain'
        What a split is chosen by. With ``gain_j`` the gain of a split within era j, in
        the units of `gain`,
        ``G_Lj^2 / (H_Lj + l2) + G_Rj^2 / (H_Rj + l2) - G_j^2 / (H_j + l2)``,
        and M training eras:

        - 'gain': the gain over all rows, whatever their eras, by scikit-learn's code;
        - 'era': ``B_alpha(gain_1, ..., gain_M)``, where
          ``B_alpha(x) = sum_j x_j exp(alpha x_j) / sum_j exp(alpha x_j)`` and alpha is
          `boltzmann_alpha`; equation 36 of [1]_ (which has a factor 1/2 in the gain,
          so that its alpha is twice ours);
        - 'directional': the share of eras that agree in which side predicts more,
          ``|sum_j sign(v_Lj - v_Rj)| / M``, equation 39 of [1]_; ties, which are the
          rule, go to the larger ``B_alpha``, across features as within one;
        - 'time_robust': the least impurity after the split, in the worst era or on
          average over eras (see `period_aggregation`); equations 5.1 to 5.4 of [2]_;
        - 'invariant': the gain over all rows, less `invariance_penalty` times the
          node's sum of hessians times how much an effect of the split differs
          between eras (see `invariance_statistic`); equations 15 to 22 of [3]_;
        - 'vrex': ``mean_j gain_j - invariance_penalty * std_j gain_j``, after the
          penalty of [4]_;
        - 'held_out': what the split saves in each era if both sides predict what the
          rows of the other eras do, ``sum_j [q(G_j, H_j, v_(-j)) - q(G_Lj, H_Lj,
          v_L(-j)) - q(G_Rj, H_Rj, v_R(-j))]`` with ``q(G, H, v) = 2 G v + H v^2`` and
          ``v_L(-j) = -(G_L - G_Lj) / (H_L - H_Lj + l2)``. A side without rows of other
          eras predicts what they do for the whole node;
        - a dict such as ``{'era': 0.5, 'directional': 0.5}``: the weighted sum of
          the keys of some, of 'directional' its share of eras; 'time_robust' cannot
          be one of them. With one positive weight it is that criterion.

        A split is valid where ``B_alpha > 0`` ('era', 'directional'), the gain over all
        rows is positive ('gain', 'invariant'), the decrease of impurity suffices
        ('time_robust') or, with all others, the key is positive. Ties of the whole key
        go to the larger gain over all rows, then to the lower feature index and bin.
        `min_gain_share` says which splits of a node are compared. Where that is 0, as
        in the papers, nodes are expanded in the order of the key, for 'time_robust' of
        the decrease. The gain stored in the tree is that over all rows. All but 'gain'
        need `eras` in ``fit``.
    boltzmann_alpha : float, default=0.0
        Exponent of the Boltzmann operator, in [-inf, inf] and in units of 1 / gain (but
        see `normalize_era_gain`): 0 is the mean over eras, -inf the worst era, inf the
        best one. Used by 'era' and 'directional', and by a dict with 'era'.
    min_direction_agreement : float, default=0.0
        Least agreement of a valid split, in [0, 1]. 1 asks all eras to agree. Used by
        'directional', and by a dict with a weight for it; splits that are left to the
        gain (see `min_gain_share`) need none.
    min_samples_per_era : int, default=1
        Rows that a split has to leave on each side for an era to be covered, whatever
        their weights. Used by all criteria but 'gain' and 'held_out', to which an era
        counts as far as its rows go.
    min_era_coverage : float or 'auto', default='auto'
        Share of the training eras, in (0, 1], that a split has to cover. An era that it
        does not cover counts as gain 0 and direction 0 ('era', 'directional', 'vrex'),
        so that with ``boltzmann_alpha=-inf`` no split with one is valid. It has no part
        in the largest impurity of 'time_robust', nor in the variance or ratio of
        'invariant'. 1.0 is the papers' rule, under which trees end early where eras are
        small; 'auto' is 0.1, with a `min_gain_share` of 0.5. Used by all criteria but
        'gain' and 'held_out'.
    min_gain_share : float or None, default=None
        Share of the largest gain over all rows among the splits of a node, in [0, 1],
        that a split has to have: the criterion chooses among those that do. Where it
        admits none of them, the node takes the split of the largest gain, and nodes are
        expanded in the order of their gains. So no split gives up more than the rest,
        and trees grow as large as by 'gain'. 0 leaves all to the criterion, as the
        papers do, and 1 leaves it ties alone. None is 0.5 where `min_era_coverage` is
        'auto' and for 'held_out', else 0. Used by all criteria but 'gain'.
    normalize_era_gain : bool, default=False
        Whether to divide the gain of each era by the era's sum of hessians in the node
        and by the variance of the gradients (by unit of hessian) at the root of the
        tree. Eras of all sizes then weigh alike, and `boltzmann_alpha` is a pure number
        whatever the unit of the target. Used by 'era', 'directional', 'vrex',
        'held_out' (whose sum is a mean then) and dicts, whose gain over all rows is
        divided in the same way.
    period_aggregation : {'max', 'mean'}, default='max'
        Whether the impurity after a split is that of the worst era or the mean over
        eras. Used by 'time_robust'.
    invariance_penalty : float, default=1.0
        Weight of the differences between eras, 0 or more. With 0, 'invariant' is
        'gain', and asks nothing of eras. Used by 'invariant' and 'vrex'.
    invariance_statistic : {'effect', 'changing_rate', 'ratio'}, default='effect'
        What 'invariant' compares between eras:

        - 'effect': the variance of ``v_Lj - v_Rj``, with ``v = -G / (H + l2)``;
        - 'changing_rate': the variance of ``v_Lj - v_j``, as in equations 20 to 22 of
          [3]_, where a split that sends nearly all rows to the left pays nothing;
        - 'ratio': ``max_j I_j / min_j I_j - 1``, where ``I_j`` is the share of the
          positive rows that pass to the left over the share of the negative ones,
          equations 16 to 19 of [3]_; for targets of 0 and 1 only, and not in a dict.
    min_impurity_decrease : float, default=0.0
        For 'time_robust', what the decrease of impurity
        ``agg_j n_j / N_j (L_before,j - L_j)`` has to exceed, where agg is the minimum
        or the mean over eras. For every other criterion, 'gain' among them, and where
        there is a `min_gain_share`, the least gain over all rows by unit of the
        training set's sum of hessians, as in scikit-learn's trees; 0 asks nothing.
    validation_eras : {'last', 'random'} or None, default='last'
        What early stopping holds out where ``fit`` is given `eras` and no `X_val`:
        whole eras, the last ones in the order of their labels (text sorts as text:
        'era10' comes before 'era9') or random ones, or, with None, rows at random as in
        scikit-learn. `validation_fraction` is then the share of the eras, rounded up,
        or their number. A single era is never held out.
    era_weighting : {'rows', 'equal', 'recency', 'group_dro'}, default='rows'
        What an era weighs in all sums over rows: as much as its rows do, as much as any
        other, or, with 'recency', half as much with each half-life of its age. The last
        era in the order of the labels has age 0, the one before it 1. Such weights
        multiply `sample_weight`, and the sum of all weights stays the same: the model
        is the one that the product, passed as `sample_weight`, gives (but a
        `BinnedDataset` keeps the bins that it has). All but 'rows'
        need `eras` in ``fit``, and count those that early stopping holds out; of
        several columns of eras, a forest takes the first.

        With 'group_dro', which is for boosters, eras weigh the more the more they lose:
        algorithm 1 of [7]_, which is after the largest loss of an era. Before each
        iteration the weight of an era is multiplied by
        ``exp(group_dro_step_size * loss_j)`` and all are scaled to a mean of 1, where
        loss_j is the mean loss of the era's training rows, by `sample_weight`: half of
        the squared error or deviance, the log loss. Bins are those of `sample_weight`
        alone, and so are scores in training by a `scoring` other than 'loss'; by 'loss'
        they are of the rows as they were weighed last. Validation rows have no weights
        of eras. A warm start goes on with the weights it had.
    era_half_life : int or float, default=0.25
        The half-life of 'recency': an int of 1 or more is a number of eras, a float in
        (0, 1] a share of the number of eras.
    group_dro_step_size : float, default=0.1
        Step size of 'group_dro', in units of 1 / loss and so of the target, 0 or more.
        0 weighs all eras as their rows do, and is the plain fit.
    leaf_shrinkage : {'eras'} or None, default=None
        With 'eras', the value v of a leaf is multiplied by ``A / (A + var(v))``. The
        variance of v is by moments, from how much its values ``-G_j / H_j`` in each era
        differ [5]_; A is the variance of the values of the tree's leaves about 0, less
        the mean of var(v) [6]_. A leaf that means something else in each era comes
        close to 0. With monotonic constraints all leaves of a tree get the mean factor,
        which keeps their order; of a single era nothing is shrunk. Needs `eras` in
        ``fit``.
    era_effects : {'intercept'} or None, default=None
        With 'intercept', each training era has an intercept in the raw prediction, of
        each class where there are more than two, and trees are grown beside it. Before
        each iteration all intercepts take a Newton step, and are shrunk to 0 by how
        well their rows tell them [6]_. What is predicted for is the next era, by the
        forecast of its intercept (see `era_forecast`), or an era given to ``predict``.
        Needs `eras` in ``fit``.
    era_forecast : {'last', 'mean', 'exponential'}, default='last'
        What the intercept of an era that is not known is taken for: the mean of the
        last `n_forecast_eras` intercepts in the order of the labels, the mean of all,
        or a mean whose weights halve with each `n_forecast_eras` eras. Groups without
        an order, such as hospitals, need 'mean'. Used with `era_effects`.
    n_forecast_eras : int, default=3
        How many eras 'last' takes, or the half-life of 'exponential'. Used with
        `era_effects`.
    feature_penalty : array-like of shape (n_features,), mapping or None, default=None
        What the splits of each feature pay: numbers of 0 or more, by the columns of X,
        or a mapping from their names or places, in which all others have 0. The unit is
        the largest key K of the node's admissible splits: the gain over all rows
        ('gain'), ``B_alpha`` ('era'), the share of eras ('directional') or the key
        ('vrex', 'held_out' and dicts). Where a key may be negative, it is the largest
        gain over all rows ('invariant') or decrease of impurity ('time_robust'). A
        split of a feature with penalty p ranks by its key less ``p K``, and its node
        waits by that. It is valid where what has to be positive is so less ``p K``: the
        key, with 'invariant' the gain over all rows, and with 'time_robust' the
        decrease, which has to exceed `min_impurity_decrease`. So with 0.2, a feature
        splits a node where its key is larger than all others by a fifth of the largest.
        1 or more forbids a feature: all is as if X did not have it, draws of features
        too. With a `min_gain_share`, shares are of the largest gain that is left when
        each feature has paid p times the largest of all, and K is of the splits that
        have theirs. Nodes then wait by the gain that is left, which decides where the
        criterion admits no split.
        Splits of 'gain' are found by the kernel of the other criteria, where any
        penalty is positive. None or zeros change nothing.
    colsample_bytree : float, default=1.0
        Share of the features, in (0, 1], that is drawn at random for each tree, with
        every criterion: ``max(1, ceil(colsample_bytree * n_features))`` of them,
        without replacement. No histogram is built of the others, which is most of what
        a tree of many rows costs. `max_features` draws among the features of the tree,
        anew at each split. In multiclass classification, each tree of an iteration has
        features of its own.
    fast_gain : bool, default=False
        Whether the splits of 'gain' are found by the kernel of the other criteria, in a
        fraction of the time that scikit-learn's takes. Gradients are rounded to a fixed
        point, of 33 bits for the largest of 1,000,000 rows. So trees are scikit-learn's
        up to the last digits of gains and values, and to the choice between splits that
        are equally good for the training rows: of these, it is the one of the first
        feature and bin. The other criteria take this kernel in any case.
    n_jobs : int or None, default=None
        Most OpenMP threads that ``fit`` and the predictions use. None is scikit-learn's
        way: as many as there are cores, or as the environment variable
        ``OMP_NUM_THREADS``, a limit of threadpoolctl or a container's quota allow. An
        integer lowers their number and never raises it; -1 is all of them, and -2 all
        but one. The results are the same with any number of threads, bit for bit.
""".replace("CRITERIA", ", ".join(map(repr, CRITERIA)))

_ATTRIBUTES = """    feature_importances_ : ndarray of shape (n_features,)
        The share of each feature in the gains over all rows of all splits.
    validation_eras_ : ndarray of shape (n_held_out,)
        The labels of the eras that early stopping has held out, sorted. It exists only
        where it held out whole eras (see `validation_eras`).
    era_intercepts_ : dict
        The intercept of each training era, by its label: a float, or an array of shape
        (n_classes,) where there are more than two classes. It exists only with
        `era_effects`.
    era_weights_ : dict
        By the label of each training era, an array of shape (n_iter_,): what each
        iteration multiplied the weights of its rows by. It exists only with another
        `era_weighting` than 'rows'. After a warm start with 'equal' or 'recency' and
        other eras, earlier iterations have NaN.
"""

REFERENCES = """    References
    ----------
    .. [1] T. DeLise (2023), Era Splitting: Invariant Learning for Decision Trees.
       :arxiv:`2309.14496`
    .. [2] L. Moneda (2021), Domain Generalization, Invariance and the Time Robust
       Forest. University of Sao Paulo.
    .. [3] Y. Liao, Q. Wu, X. Yan (2024), Invariant Random Forest: Tree-Based Model
       Solution for OOD Generalization. :arxiv:`2312.04273`
    .. [4] D. Krueger et al. (2021), Out-of-Distribution Generalization via Risk
       Extrapolation (REx). :arxiv:`2003.00688`

"""

# Of what only boosters have.
_MORE_REFERENCES = """\
    .. [5] R. DerSimonian, N. Laird (1986), Meta-analysis in clinical trials. Controlled
       Clinical Trials 7, 177-188.
    .. [6] B. Efron, C. Morris (1975), Data analysis using Stein's estimator and its
       generalizations. Journal of the American Statistical Association 70, 311-319.
    .. [7] S. Sagawa, P. W. Koh, T. B. Hashimoto, P. Liang (2020), Distributionally
       Robust Neural Networks for Group Shifts. :arxiv:`1911.08731`

"""

_EXAMPLES = """    Examples
    --------
    >>> from sklearn_era.datasets import make_synthetic_memorization
    >>> from sklearn_era.ensemble import {name}
    >>> data = make_synthetic_memorization(random_state=0)
    >>> est = {name}(split_criterion="directional")
    >>> est = est.fit(data.X_train, data.y_train, eras=data.eras_train)
    >>> est.predict(data.X_test).shape
    (2000,)
"""


def era_docstring(upstream: type) -> str | None:
    """Return scikit-learn's docstring with era parameters; None with ``python -OO``."""
    if upstream.__doc__ is None:
        return None
    # Without the indentation of the source, which Python 3.13 takes off by itself.
    first_line, _, rest = inspect.cleandoc(upstream.__doc__).partition("\n")
    body, _, _ = rest.partition("Examples\n--------\n")
    body = re.sub(
        r"(?m)^\n(Attributes\n-+\n)",
        lambda match: dedent(ERA_PARAMETERS) + "\n" + match[1] + dedent(_ATTRIBUTES),
        body,
        count=1,
    )
    return (
        f"{first_line}\n\n"
        + dedent(_SUMMARY)
        + body
        + dedent(REFERENCES).rstrip("\n")
        + "\n"
        + dedent(_MORE_REFERENCES)
        + dedent(_EXAMPLES.format(name=upstream.__name__))
    )
