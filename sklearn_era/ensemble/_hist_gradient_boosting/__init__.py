"""scikit-learn's own ``gradient_boosting`` and ``grower``, patched at build time.

The patches are in ``patches/`` of the repository. Binning, histograms, the plain
splitter and the predictors are imported from the installed scikit-learn.
"""
