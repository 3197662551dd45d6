"""Hold the docstring that AutoEraRegressor and AutoEraClassifier share."""

DOC = """The average of models for {task}, weighted by their losses in eras left out.

    The members of the average are a *plain model* (`estimator`), other boosters
    (larger, smaller, additive, or using eras) and a linear model. They are fitted in
    three folds of whole eras; members that use no eras are also fitted to two thirds of
    the rows. Let p_k be the predictions of member k for rows left out. Folds of eras
    and folds of rows each give weights (a super learner, [1]_)

        w = 3/4 argmin_v loss(sum_k v_k p_k) + 1/4 u,

    where v is at least 0 and adds up to 1, u gives equal weights to those of the best
    three members that are within a standard error of the best one, and the loss is the
    plain model's, with the same weight for each era. Folds of rows give less noisy
    weights, but do not test new eras. So the weights are ``s w_eras + (1 - s) w_rows``:
    s is 0 if, in eras left out, the loss with w_eras is at most one standard error
    below the loss with w_rows; s is 1 from three standard errors on, and rises linearly
    between. Numbers of trees are chosen by the losses in both kinds of folds, mixed
    with the same s, and scaled up to the number of all rows. The plain model keeps all
    the weight, unless it diverges, with two exceptions: the average is better than the
    plain model by more than a standard error in eras left out; or the average with
    w_rows is better by more than two standard errors in rows left out, and better on
    average in eras left out.
    All members with weight are then fitted to all rows.

    Folds are cheap: in folds, boosters have half of their trees at twice the rate, and
    stop after a fifth of their trees without gain. All members are fitted in the last
    fold of eras. In the other folds of eras, only the plain and the linear member and
    three others are fitted, members with weight first. Members with weight are also
    fitted in one fold of rows. All this takes the time of ten to fifteen fits of
    scikit-learn's booster.

    Parameters
    ----------
    estimator : {kind}, default=None
        The plain model. All boosters share its parameters, except those that define a
        member, and find splits by ``Gain(splitter="era")`` where it has
        ``split_criterion="gain"``. None is a ``{kind}`` by this criterion, with the
        average's `random_state`.{class_weight}
    members : 'default' or list, default='default'
        Models beside the plain one: names of default members, 'default' for all default
        members, 'catboost' and 'lightgbm', whose packages must be installed, and pairs
        of a name and an estimator: ``["default", "catboost", ("mine", model)]``.
        Default members are 'linear', 'additive', 'symmetric', 'level', 'large',
        'leaves_4' and 'last_levels'. There is at most one default member for each 50
        rows. With fewer than six eras, no default member uses eras; with losses whose
        best prediction is not the mean, there is no linear model. The plain model is
        always a member, whether 'plain' is in the list or not. Boosters of CatBoost and
        LightGBM get categories and weights as other boosters do, and the number of
        trees that is best in folds; a model file cannot hold them, but pickle can.
        Columns of text are categories to members, except to models of pairs that have
        no ``categorical_features="from_dtype"``, such as pipelines.
    time_budget : float, default=None
        Seconds that the fit may take. Members for which there is no time are left out
        with a warning, beginning with the last one. The plain model and one other
        member (with effects of groups if ``group="known"``) are fitted in all cases.
    random_state : int, RandomState instance or None, default=None
        Seed of the plain model, and of members like it, if `estimator` has none.
    verbose : int, default=0
        1 prints a line per member, and the time left, with a bar if rich is installed
        and the output is a terminal; 2 also prints lines of :class:`joblib.Parallel`.
    horizon : int or duration, default=1
        How far ahead the model predicts, in eras or as a duration such as "28D" (see
        :class:`~sklearn_era.model_selection.EraSplit`). In folds, training eras precede
        test eras by this much; levels for rows without an era are forecast as far
        ahead.
    group : {{'new', 'known'}}, default='new'
        With two columns of eras, times and groups, whether the model is for groups that
        it has not seen, or for groups of the training, whose intercepts it knows. Pass
        times and groups to ``predict(X, eras=...)``. Losses are computed for each time;
        their standard errors allow for times and groups.
    encode_categories : 'auto' or bool, default='auto'
        Whether default members also get the categories encoded by targets in earlier
        eras: the columns of an :class:`~sklearn_era.preprocessing.EraTargetEncoder`
        with counts. The plain model, models that are passed, and boosters of CatBoost
        and LightGBM do not get them, nor does any model if `estimator` has constraints
        on columns. 'auto' encodes if there are six or more ordered eras, at most ten
        classes, and a column of more than 20 categories. In folds, the encoder is
        fitted to training rows. Text in a data frame is always read as categories,
        unless `estimator` sets `categorical_features`.
    cv, n_jobs, era_order :
        As in :class:`~sklearn_era.model_selection.EraSearchCV`. Eras with numbers as
        names (hospitals, shops) need ``era_order="unordered"``. Targets that span
        several eras need an :class:`~sklearn_era.model_selection.EraWalkForwardSplit`
        with a ``gap``, or an :class:`~sklearn_era.model_selection.EraSplit` with a
        ``purge``, as `cv`; there are then no folds of rows, as these would leak.

    Attributes
    ----------
    weights_ : dict of str to float
        Weights of all members that were fitted in folds; they add up to 1. The plain
        model comes first, and members that were not fitted in all folds come last.
    members_ : dict of str to object
        The members that have weight, fitted to all rows.
    encoder_ : EraTargetEncoder or None
        The encoder of the columns that members get after the columns of X; None if no
        member gets any.
    cv_results_ : dict of str to array-like of shape (n_members + 1,)
        For each member, and last for their average: its name as ``member``; the number
        of trees of a fit to all rows as ``stage``, 0 where there was no choice;
        ``mean_era_score`` and ``worst_era_score`` over the eras of its folds;
        ``mean_difference`` and ``se_difference`` to the plain model; ``weight``, and
        the ``fit_time`` of all folds in seconds.
    era_scores_ : ndarray of shape (n_members + 1, n_test_eras)
        Negative losses in each era left out: a row for each member, and a last row for
        the average. A member's loss is NaN in folds in which it was not fitted.
    era_labels_ : ndarray of shape (n_test_eras,)
        Labels of the eras left out.
    era_order_ : {{'ordered', 'unordered'}}
        Whether eras were taken in the order of their labels.
    update_log_ : list of dict
        A dict for each ``update``: the labels of new ``eras``; the average's ``loss``
        in these eras, all with levels forecast for `horizon` eras ahead if eras are one
        column; the loss ``expected`` from eras left out before; the ``error`` of the
        difference of these losses, and the ``p_value`` of a larger loss; whether there
        was a ``refit``; and the ``weights`` after the update.
{classes}
    n_features_in_ : int
        Number of columns of X.

    See Also
    --------
    sklearn_era.model_selection.EraSearchCV : A search with candidates of one's own.
    {kind} : The plain model.

    References
    ----------
    .. [1] M. J. van der Laan, E. C. Polley, A. E. Hubbard (2007), Super Learner.
       Statistical Applications in Genetics and Molecular Biology 6 (1).

    Examples
    --------
    >>> from sklearn_era.auto import AutoEra{suffix}
    >>> from sklearn_era.datasets import make_synthetic_memorization
    >>> data = make_synthetic_memorization(random_state=0)
    >>> est = AutoEra{suffix}(era_order="unordered", cv=2)
    >>> est = est.fit(data.X_train, data.y_train, eras=data.eras_train)
    >>> est.predict(data.X_test).shape
    (2000,)
    """
