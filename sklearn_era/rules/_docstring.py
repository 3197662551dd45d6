"""The docstring of `RuleEnsembleClassifier`."""

RULE_ENSEMBLE = """An ensemble of decision rules, with penalties for what may not last.

    *Experimental*: it may change without a deprecation.

    A rule is a conjunction of conditions, each on one column: ``age > 40 and plan =
    basic``. Each round of boosting looks for the rule of the best quality among what
    the rules before it have left over, by beam search, and adds it to the score ::

        F(x) = intercept + sum_m coefficient_m r_m(x),   P(y = 1 | x) = sigmoid(F(x))

    where r is 1 where the rule covers x and -1 elsewhere; algorithm 1 of [1]_. Two
    penalties of a rule's quality keep away from it what holds in the training rows
    only: one on columns (`feature_penalty`, the graph term), and one on how much the
    loss or the score differs within groups of rows that should be alike
    (`variance_penalty`). Of more than two classes, each has rules of its own, against
    all others.

    Parameters
    ----------
    n_estimators : int, default=100
        Rounds of boosting. A rule that is found again adds to its coefficient, so there
        may be fewer rules.

    max_depth : int, default=2
        The most conditions of a rule. Two conditions on a column are an interval.

    beam_width : int, default=30
        How many rules of each number of conditions are refined by one more.

    disjunctions : bool, default=False
        Whether a rule may also be refined by *or*: conjunctions joined by *or*, with
        `max_depth` conditions in all.

    quality : {'youden', 'laplace', 'm_estimate'}, default='youden'
        What a rule is chosen by, of the weights p and n that it covers of the class and
        of all others, P and N in all. A row's weight is its `sample_weight` times the
        size of its residual, ``|y - P(y = 1 | x)|``, scaled to keep the sum of the
        former.

        - 'youden': ``p / P - n / N``, the true less the false positive rate, in
          [-1, 1];
        - 'laplace': ``(p + 1) / (p + n + 2)``, equation 3 of [1]_, in [0, 1]: rules of
          few rows and a single class;
        - 'm_estimate': ``(p + m P / (P + N)) / (p + n + m)``, in [0, 1], which lies
          between the two.

        Penalties are in the same units.
    m : float, default=2.0
        The weight of the prior of ``quality="m_estimate"``, in rows.

    learning_rate : float, default=0.3
        What steps are multiplied by. A step is Newton's for the log loss, of the rows
        covered and of all others, and 2 at most. 1.0 learns fastest; with few rows or
        much noise it learns too much.

    l2_regularization : float, default=0.0
        Added to the sum of second derivatives that a step is divided by.

    min_samples_rule : int, default=1
        The fewest rows that a rule covers.

    n_bins : int, default=32
        The most bins of a numeric column, in [2, 255]; conditions are at their ends. A
        column of no more distinct values has a bin for each.

    binning : {'quantile', 'uniform'}, default='quantile'
        Whether bins hold about as many rows each, or are of equal width between the
        least and the largest finite value.

    categorical_features : array-like of bool, int or str, 'from_dtype' or None, \
default='from_dtype'
        As in :class:`~sklearn_era.ensemble.HistGradientBoostingClassifier`. A rule asks
        whether such a column is one category, or is not; of more than 255, the rarest
        count as one.

    feature_penalty : array-like of shape (n_features,) or dict, default=None
        mu of each column, numbers of at least 0, or of some columns by name or index:
        such as :func:`sklearn_era.causal.feature_penalties` makes of a causal graph. In
        each round, a rule's quality loses ``feature_penalty_scale * sum_s beta_s`` over
        its columns, with ``beta_s = max(0, min(1, mu_s + N(0,
        feature_penalty_noise^2)))``, and 0 where mu is 0. The noise is drawn anew in
        each round.

    feature_penalty_scale : float, default=1.0
        lambda of the penalty on columns. From 1 on, a column of mu well above 1, which
        the noise does not bring below 1, is in no rule of 'youden'.

    feature_penalty_noise : float, default=0.1
        The standard deviation of the noise; 0 for none.

    variance_penalty : float, default=0.0
        lambda of the variance term; a rule's quality loses lambda times ::

            C = mean over groups of Var(v within the group) ^ variance_power

        of the score after the rule has been added, equation 6 of [1]_. A group is the
        rows of a class with the same label, see `groups` in ``fit``. As it sees a
        single step, it weighs less the smaller `learning_rate` is.

    variance_of : {'loss', 'score'}, default='loss'
        What v is: the exponential loss ``exp(-y F)`` with y in {-1, 1}, or F itself.

    variance_power : float, default=1.0
        The exponent nu: 0.5 for standard deviations.

    n_jobs : int, default=None
        The most threads; None for OpenMP's number. Results do not depend on it.

    random_state : int, RandomState instance or None, default=None
        Draws the noise of `feature_penalty`, and the rows that quantiles are estimated
        from where there are more than 200,000.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.

    rules_ : Bunch
        The rules as columns of a table, for the training rows; see `rule_table`.

    intercept_ : ndarray of shape (n_classes,)
        The intercept of each class's score; of two, the first has none.

    n_features_in_ : int
        Number of columns.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Their names, where X has names that are all strings.

    See Also
    --------
    RuleDisplay : Draws rules and their rates by era.
    sklearn_era.causal.invariant_features : Which columns a graph has last.
    sklearn_era.ensemble.HistGradientBoostingClassifier : Boosted trees, which take the
        same `feature_penalty`.

    Notes
    -----
    The paper leaves open what is chosen here: the weights by residuals, the steps, the
    intercept, and what breaks ties (fewer conditions, then lower columns and bins). Its
    quality is 'laplace' or 'm_estimate'. With those, rules of few rows come first, and
    their true positive rates are far below the ones in its tables; 'youden' is the
    limit of large m, and has the rates of the tables. The paper's bins are
    ``binning="uniform", n_bins=8``.

    A missing value is on neither side of a threshold, and no category; where training
    values are missing, rules may ask for that. Categories that ``fit`` has not seen
    count as missing.

    References
    ----------
    .. [1] X. Du, S. Ramamoorthy, W. Duivesteijn, J. Tian and M. Pechenizkiy, "Beyond
           Discriminant Patterns: On the Robustness of Decision Rule Ensembles", 2025.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.rules import RuleEnsembleClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(1000, 3))
    >>> y = (X[:, 0] > 0.5) & (X[:, 1] <= 0.75)
    >>> est = RuleEnsembleClassifier(n_estimators=1, n_bins=4, binning="uniform")
    >>> est.fit(X, y).rules_.text.tolist()
    ['x0 > 0.499566 and x1 <= 0.750608']
"""
