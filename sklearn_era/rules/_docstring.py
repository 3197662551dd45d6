"""Hold the docstring of `RuleEnsembleClassifier`."""

RULE_ENSEMBLE = """An ensemble of decision rules, with penalties for shortcuts.

    *Experimental*: it may change without a deprecation.

    A rule is a conjunction of conditions, each on one column: ``age > 40 and plan =
    basic``. Each round of boosting finds the best rule for the current residuals, by
    beam search, and adds it to the score ::

        F(x) = intercept + sum_m coefficient_m r_m(x),   P(y = 1 | x) = sigmoid(F(x))

    where r is 1 if x meets the conditions (the rule *covers* x), else -1; algorithm 1
    of [1]_. Two penalties of a rule's quality discourage shortcuts: on columns
    (`feature_penalty`, the graph term), and on the variance of loss or score within
    groups of rows that should be treated alike (`variance_penalty`). With two classes,
    rules describe the second, ``classes_[1]``; with more, each class has its own rules.

    Parameters
    ----------
    n_estimators : int, default=100
        Rounds of boosting. There may be fewer rules: a rule that is found again only
        changes its coefficient.
    max_depth : int, default=2
        The most conditions of a rule. Two conditions on a column are an interval.
    beam_width : int, default=30
        The number of rules of each size that are refined by one more condition.
    disjunctions : bool, default=False
        Whether rules may be conjunctions joined by *or*, with `max_depth` conditions in
        all.
    quality : {'youden', 'laplace', 'm_estimate'}, default='youden'
        The quality of a rule that covers the weight p of the class's rows, out of P in
        all, and the weight n of all other rows, out of N. A row's weight is its
        `sample_weight` times its absolute residual, ``|y - P(y = 1 | x)|``, scaled to
        the sum of `sample_weight`. Penalties are in the same units.

        - 'youden': ``p / P - n / N``, the true minus the false positive rate;
        - 'laplace': ``(p + 1) / (p + n + 2)``, equation 3 of [1]_, which favours rules
          of few rows and a single class;
        - 'm_estimate': ``(p + m P / (P + N)) / (p + n + m)``, between the two.
    m : float, default=2.0
        The weight of the prior of ``quality="m_estimate"``, in rows.
    learning_rate : float, default=0.3
        The factor of Newton's steps for the log loss: a rule takes one step for the
        rows that it covers, and one for all others. Each step is limited to 2 before it
        is multiplied. 1.0 learns fastest, but overfits few or noisy rows.
    l2_regularization : float, default=0.0
        A number added to the denominator of steps, a sum of second derivatives.
    min_samples_rule : int, default=1
        The fewest rows that a rule may cover.
    n_bins : int, default=32
        The most bins of a numeric column, in [2, 255]; conditions are at their edges. A
        column with fewer distinct values has a bin for each value.
    binning : {'quantile', 'uniform'}, default='quantile'
        Whether bins have about equal numbers of rows, or equal widths between the
        smallest and the largest finite value.
    categorical_features : array-like of bool, int or str, 'from_dtype' or None, \
default='from_dtype'
        As in :class:`~sklearn_era.ensemble.HistGradientBoostingClassifier`. Conditions
        are ``= category`` or ``!= category``. If there are more than 255 categories,
        the rarest count as one.
    feature_penalty : array-like of shape (n_features,) or dict, default=None
        The penalty mu of each column, at least 0, or a dict of mu by name or index, for
        example by :func:`sklearn_era.causal.feature_penalties`. A rule's quality loses
        ``feature_penalty_scale * sum_s beta_s`` over its columns, with
        ``beta_s = max(0, min(1, mu_s + N(0, feature_penalty_noise^2)))``, drawn in each
        round, and 0 where mu is 0.
    feature_penalty_scale : float, default=1.0
        The factor lambda of the penalty on columns. With 1 or more, rules of 'youden'
        never have a column whose mu exceeds 1 by more than the noise.
    feature_penalty_noise : float, default=0.1
        The standard deviation of the noise; 0 for none.
    variance_penalty : float, default=0.0
        The factor lambda of the variance term; a rule's quality loses lambda times ::

            C = mean over groups of Var(v within the group) ^ variance_power

        computed after the rule is added, equation 6 of [1]_. A group is the rows of a
        class with the same label, see `groups` in ``fit``. As a rule changes C by a
        single step, the term has less effect with a lower `learning_rate`.
    variance_of : {'loss', 'score', 'probability'}, default='loss'
        The variable v: the exponential loss ``exp(-y F)`` with y in {-1, 1}, the score
        F, or ``1 / (1 + exp(-F))``, as in appendix B of [1]_. 'probability' takes many
        times as long, since each rule tried takes a pass over the rows.
    variance_power : float, default=1.0
        The exponent nu: 0.5 for standard deviations.
    n_jobs : int, default=None
        The most threads, by default OpenMP's number. Results do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the noise of `feature_penalty`, and of the draw of 200,000 rows to
        estimate quantiles from, if there are more rows.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    rules_ : Bunch
        The table of rules for the training rows; see `rule_table`.
    intercept_ : ndarray of shape (n_classes,)
        The intercept of each class's score; 0 for the first of two classes.
    n_features_in_, feature_names_in_ : int, and ndarray of shape (n_features,)
        Number of columns, and their names, where all are strings.

    See Also
    --------
    sklearn_era.causal.invariant_features : Finds invariant columns by a causal graph.
    sklearn_era.ensemble.HistGradientBoostingClassifier : Boosted trees with the same
        `feature_penalty`.

    Notes
    -----
    The paper does not specify weights by residuals, steps, an intercept or ties (here:
    fewer conditions first, then lower columns and bins). The paper's quality is
    'laplace' or 'm_estimate', with which rules of few rows come first, and true
    positive rates are far below the paper's tables; 'youden', the limit of large m, has
    the rates of the tables. The paper's bins are ``binning="uniform", n_bins=8``.

    Missing values are on neither side of a threshold, and are not a category; where
    training values are missing, rules may have the condition ``is missing``. Categories
    unknown to ``fit`` count as missing.

    References
    ----------
    .. [1] X. Du, S. Ramamoorthy, W. Duivesteijn, J. Tian and M. Pechenizkiy, "Beyond
           Discriminant Patterns: On the Robustness of Decision Rule Ensembles", 2025.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.rules import RuleEnsembleClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(1000, 3)).round(2)
    >>> y = (X[:, 0] > 0.5) & (X[:, 1] <= 0.75)
    >>> est = RuleEnsembleClassifier(n_estimators=1, n_bins=4, binning="uniform")
    >>> est.fit(X, y).rules_.text.tolist()
    ['x0 > 0.5 and x1 <= 0.75']
"""
