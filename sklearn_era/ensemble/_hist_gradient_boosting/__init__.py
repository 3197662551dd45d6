"""Histogram gradient boosting: scikit-learn's, with the era seams and our own layer.

``grower`` and ``gradient_boosting`` are scikit-learn's own files with the series in
``patches/`` applied at build time; binning, histograms, the plain splitter and the
predictors are imported from the installed scikit-learn. In the order of the pipeline:

- ``eras``: checks era labels and encodes them as 0..n_eras-1;
- ``gradient_boosting`` (patched): ``fit``, which carries the eras to the grower;
- ``era_fit``: the hooks which that ``fit`` calls, mixed into the estimators;
- ``callbacks``: what scikit-learn's callbacks hear of a fit;
- ``era_validation``: the rows and eras of early stopping;
- ``era_criterion``: the criterion that an estimator's parameters stand for;
- ``grower`` (patched): grows a tree, asking the era splitter for each split;
- ``era_splitting``: the best split of a node, over all features;
- ``era_histogram``: sums of gradients and hessians by bin and era, for one feature;
- ``era_scan``: the best split of a feature, over its bins;
- ``category_order``: the order in which the scan takes categories;
- ``criteria``: how each criterion ranks a split, one function each, by the formulas of
  ``node_formulas`` (a node), ``era_statistics`` (one era of a split) and
  ``aggregation`` (over eras).
"""
