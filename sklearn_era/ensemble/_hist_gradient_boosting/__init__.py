"""Histogram gradient boosting: scikit-learn's, with the era seams and our own layer.

``grower`` and ``gradient_boosting`` are scikit-learn's own files with the series in
``patches/`` applied at build time; binning, histograms, the plain splitter and the
predictors are imported from the installed scikit-learn. In the order of the pipeline:

A fit begins
    - ``gradient_boosting`` (patched): ``fit``, which carries the eras to the grower;
    - ``era_fit``: the hooks which that ``fit`` calls, mixed into the estimators;
    - ``eras``: checks era labels and encodes them as 0..n_eras-1;
    - ``threads``: the number of OpenMP threads, of fits and of predictions;
    - ``column_errors``: errors about the values of X that name the column.

Rows and bins
    - ``integer_binning``: bins small integers by table, with ``integer_columns`` (X as
      such columns) and ``integer_codes`` (the loops over them);
    - ``binned_dataset``: rows binned once, with ``float_binning`` (any X),
      ``parquet_binning`` and ``parquet_columns`` (files); ``binned_fit``: a fit to it;
    - ``era_validation``: the rows and eras of early stopping, ``era_scoring``: their
      scores;
    - ``callbacks``: what scikit-learn's callbacks hear of a fit.

Trees
    - ``era_criterion``: the criterion that an estimator's parameters stand for;
    - ``criteria``: criteria and their parameters, as Python objects too;
    - ``tree_features``: the features drawn for a tree;
    - ``grower`` (patched): grows a tree, asking the era splitter for each split.

The split of a node
    - ``era_splitting``: the best split over all features, and what a node keeps;
    - ``era_rows``: the node's rows era by era, as words to add up;
    - ``feature_bundles``: features of few bins that are summed up jointly;
    - ``cost_rules``: which of two ways to the same sums is cheaper;
    - ``era_histogram``: sums by bin, of an era and a bundle;
    - ``node_histograms``: such sums that a node keeps, within a budget;
    - ``era_scan``: the candidate splits of a bundle; ``category_order``: the order in
      which it takes categories;
    - ``era_table``: the sums of several eras, one in each lane of a vector;
    - ``lane_scan``: the loops over lanes, by way of ``lane_functions``, compiled for
      the ``instruction_sets`` that ``cpu_levels`` says the processor has;
    - ``split_sums``: what the eras say of a candidate split, added up;
    - ``split_ranking``: how each criterion ranks it by that, one function each;
    - formulas: ``node_formulas`` (a node), ``era_statistics`` (an era of a split) and
      ``aggregation`` (over eras).

Afterwards
    - ``block_prediction``: predicts in blocks of rows;
    - ``partial_dependence``: averages predictions by a walk down the trees.
"""
