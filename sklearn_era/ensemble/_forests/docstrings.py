"""Make the docstrings of the forests, with parameters shared by the boosters."""

from .._parameter_table import PARAMETERS, document

_BEGINNING = """\
A forest of {kind} trees whose splits can compare eras.

Each tree is grown on its own draw of rows, with replacement, and the forest predicts
the mean over trees. Rows are binned once, for all trees, as in scikit-learn's histogram
gradient boosting: missing values and categorical features need no preparation, and the
cost of a tree hardly depends on the number of eras. To scikit-learn, and to tools that
read its models, a forest is a histogram gradient boosting model with one tree per
iteration; each leaf holds its mean divided by the number of trees.
{trees}
Parameters
----------
n_estimators : int, default=100
    Number of trees{per_class}.
split_criterion : str, dict or object, default='gain'
    Ranks the splits of a node: an object of :mod:`sklearn_era.criteria`, its name, or a
    dict, short for a :class:`~sklearn_era.criteria.Blend`. 'gain' is the decrease of
    the squared error{gini}, whatever the eras.
bootstrap : {{'rows', 'within_eras', 'whole_eras'}} or False, default='rows'
    The draw of each tree, with replacement:

    - 'rows': as many rows as there are, whatever their eras;
    - 'within_eras': as many rows of each era as it has, as in [2]_, so that eras keep
      their sizes;
    - 'whole_eras': as many whole eras as there are. The out-of-bag score is then for
      eras that trees have not seen. An era drawn twice counts as two. With few eras,
      some trees learn from a single era;
    - False: no draw. Every tree has all rows; trees differ by `max_features`, and by
      which of equally good splits they take.
max_samples : int or float, default=None
    Size of the draw: a share or a number of the rows ('rows'), of the rows of each era
    ('within_eras') or of the eras ('whole_eras'); with `random_segments`, of segments.
    None draws as many as there are.
max_features : {{'sqrt', 'log2'}}, int, float or None, default=1.0
    Number of features drawn for each split: a number, a share of the columns rounded
    down, or their root or logarithm; at least one. None and 1.0 are all of them. If no
    drawn feature can split a node's rows, more are drawn until a feature can (it has
    two numbers, or two categories of ten rows each), as in scikit-learn's forests.
max_depth : int or None, default=None
    Maximum number of edges from the root to a leaf.
max_leaf_nodes : int or None, default=None
    Maximum number of leaves of a tree, which is then grown best first.
min_samples_leaf : int, default=20
    Minimum number of rows in a leaf, counted as often as they were drawn. With 1, trees
    grow to full depth, as in scikit-learn's forests by default.
min_impurity_decrease : float, default=0.0
    Minimum pooled gain of a split, per unit of the weight of the tree's rows{twice}; 0
    is no minimum.
l2_regularization : float, default=0.0
    Shrinks leaves to the tree's mean, as rows at the mean of this total weight would.
max_bins : int, default=255
    Maximum number of bins of a feature, 2 to 255, without the bin of missing values.
categorical_features : array-like or 'from_dtype' or None, default='from_dtype'
    As in `HistGradientBoosting{suffix}`.
"""

_END = """\
random_segments : int or None, default=None
    With a number, each tree draws a number of segments, from 2 to `random_segments`.
    The tree merges consecutive eras, in the order of their labels, into as many
    segments of about equal size, and compares the segments. So some trees see time more
    finely than others. The idea is from the package of [1]_, which draws numbers from
    1, and cuts eras in two. None compares the eras as they are.
oob_score : bool or callable, default=False
    Whether to score each row by the trees that did not draw it: by {score} with the
    weights of the fit{class_weights},
    or by ``oob_score(y_true, y_pred)``, without weights.
warm_start : bool, default=False
    Whether ``fit`` keeps the existing trees and adds to them. Up to rounding, the
    forest is then as if all its trees had been grown in one fit.
n_jobs : int or None, default=None
    Maximum number of threads of ``fit`` and predictions; trees are grown in parallel.
    None is as many as there are cores, or as the environment variable
    ``OMP_NUM_THREADS``, a limit of threadpoolctl or a container's quota allow; -1 is
    the same, -2 all but one. Each thread holds a copy of the binned rows of its tree,
    one byte per value. The forest is the same with any number of threads, bit for bit.
random_state : int, RandomState instance or None, default=None
    Seeds the draws of rows, features and segments.
verbose : int, default=0
    How much progress to print.
{class_weight}
Attributes
----------
{classes}era_labels_ : ndarray of shape (n_eras,)
    Distinct labels of eras, sorted, if ``fit`` got any; if it got several columns, of
    the first column.
feature_importances_ : ndarray of shape (n_features,)
    Share of each feature in the pooled gains of the splits, averaged over trees. For
    its gains era by era see :func:`sklearn_era.inspection.era_feature_importances`.
{oob}oob_score_ : float
    Score of the out-of-bag predictions; with `oob_score`.
oob_era_scores_ : ndarray of shape (n_eras,)
    Score of the out-of-bag predictions in each era, in the order of `era_labels_`; NaN
    if an era has too few rows to score. With `oob_score` and eras.
n_features_in_ : int
    Number of columns of X.
feature_names_in_ : ndarray of shape (n_features,)
    Names of the columns of X, if they are all strings.
is_categorical_ : ndarray of shape (n_features,), dtype=bool, or None
    Which columns are categorical; None if none is.
n_iter_ : int
    Number of trees{per_class}.

See Also
--------
HistGradientBoosting{suffix} : Boosted trees with the same criteria.
TimeRobustForest{suffix}, InvariantForest{suffix} : Forests with the papers' defaults.

References
----------
.. [1] L. Moneda (2021), Domain Generalization, Invariance and the Time Robust Forest.
   University of Sao Paulo.
.. [2] Y. Liao, Q. Wu, X. Yan (2024), Invariant Random Forest: Tree-Based Model Solution
   for OOD Generalization. :arxiv:`2312.04273`

Examples
--------
>>> from sklearn_era.datasets import make_synthetic_memorization
>>> from sklearn_era.ensemble import EraForest{suffix}
>>> data = make_synthetic_memorization(random_state=0)
>>> forest = EraForest{suffix}(
...     n_estimators=40, split_criterion="directional", bootstrap="within_eras",
...     max_depth=6, oob_score=True, random_state=0
... )
>>> forest = forest.fit(data.X_train, data.y_train, eras=data.eras_train)
>>> forest.oob_era_scores_.shape
(16,)
"""

_CLASSIFIER = {
    "kind": "classification",
    "suffix": "Classifier",
    "trees": """
A tree predicts the proportion of a class in its leaf. It is grown on a target of 0 and
1 by the squared error, which is half the Gini impurity. With more than two classes,
each class has a tree of its own, against all other classes, and probabilities are
scaled to add up to 1.
""",
    "per_class": " (of each class, if there are more than two)",
    "gini": " (half of\n    that of the Gini impurity)",
    "twice": " (half\n    of that of scikit-learn's trees by the Gini impurity)",
    "score": "accuracy",
    "class_weights": " and of the classes",
    "class_weight": "class_weight : dict, 'balanced' or None, default=None\n"
    "    Weights of the classes, which multiply those of the rows.\n",
    "classes": "classes_ : ndarray of shape (n_classes,)\n    Labels of the classes.\n",
    "oob": "oob_decision_function_ : ndarray of shape (n_samples, n_classes)\n"
    "    Out-of-bag probabilities of each row of X, or of the rows that a\n"
    "    `BinnedDataset` was made of, in their order; NaN for rows that all trees\n"
    "    drew. With `oob_score`.\n",
}

_REGRESSOR = dict.fromkeys(_CLASSIFIER, "") | {
    "kind": "regression",
    "suffix": "Regressor",
    "score": "R²",
    "oob": "oob_prediction_ : ndarray of shape (n_samples,)\n"
    "    Out-of-bag prediction of each row of X, or of the rows that a\n"
    "    `BinnedDataset` was made of, in their order; NaN for rows that all trees\n"
    "    drew. With `oob_score`.\n",
}


def forest_docstring(kind: str) -> str:
    """Return the docstring of the forest of a `kind`: "regressor" or "classifier"."""
    words = _REGRESSOR if kind == "regressor" else _CLASSIFIER
    own = ("split_criterion", "min_impurity_decrease", "n_jobs")
    shared = [k for k, row in PARAMETERS.items() if row.is_of_forests and k not in own]
    return _BEGINNING.format(**words) + document(shared) + _END.format(**words)
