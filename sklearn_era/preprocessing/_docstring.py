"""The parts of docstrings that transformers share."""

SMOOTH = """smooth : float, default=10.0
        k, the rows that the training counts as in each era: its own statistics, of n
        rows, count ``n / (n + k)``, and those of the training ``k / (n + k)``."""
UNSEEN = """unseen : {'batch', 'train'}, default='batch'
        Where ``transform`` takes statistics from. 'batch': each era's from the rows
        that are passed, which should be all rows of the era. 'train': from ``fit``; the
        eras that it has seen keep their own, and others have those of the training."""
ATTRIBUTES = """era_labels_ : ndarray of shape (n_eras,)
        The eras of the training.
    n_features_in_, feature_names_in_ :
        As in scikit-learn's transformers."""
NOTES = """Notes
    -----
    Statistics of the training are the means of its eras' by weights ``n / (n + k)``, so
    that large eras count the same, and small ones by their rows. These are empirical
    Bayes estimates if the variance between eras is 1 / k of that within them.
    `sample_weight` counts as repeated rows, in ``fit`` alone. Missing values are left
    out, and stay missing."""
WITH = """with_centering, with_scaling : bool, default=True
        Whether to subtract the mean, and to divide by the standard deviation; by 1
        where there is none.
    robust : bool, default=False
        Whether these are the median and the interquartile range instead, as in
        :class:`~sklearn.preprocessing.RobustScaler`."""
CENTER = """center_, scale_ : ndarray of shape (n_features,)
        Those of the training."""
