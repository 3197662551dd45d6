"""Docstrings of the forests: what they share, and the boosters' era parameters."""

from textwrap import dedent

from .._parameter_table import PARAMETERS, document

_BEGINNING = """\
A forest of {kind} trees whose splits can compare eras.

Each tree is grown on rows of its own, drawn with replacement, and the forest predicts
the mean over trees. Rows are binned once, for all trees, as scikit-learn's histogram
gradient boosting does it: missing values and categorical features need no treatment,
and a tree's cost hardly depends on the number of eras. To scikit-learn and to tools
that read its models, a forest is a histogram gradient boosting model that has a tree an
iteration; each leaf holds its mean divided by the number of trees.
{trees}
Parameters
----------
n_estimators : int, default=100
    The number of trees{per_class}.
split_criterion : str, dict or object, default='gain'
    What a split is chosen by: an object of :mod:`sklearn_era.criteria`, its name, or a
    dict that stands for a :class:`~sklearn_era.criteria.Blend`. 'gain' is the decrease
    of the squared error{gini}, in which eras have no part.
bootstrap : {{'rows', 'within_eras', 'whole_eras'}} or False, default='rows'
    What is drawn for a tree, with replacement:

    - 'rows': as many rows as there are, whatever their eras;
    - 'within_eras': within each era as many rows as it has, as in [2]_, so that the
      eras keep their sizes;
    - 'whole_eras': as many whole eras as there are. The out-of-bag score is then one of
      eras that trees have not seen. An era drawn twice counts as two. With few eras,
      some trees have a single one to learn from;
    - False: nothing; every tree has all rows, and trees differ by `max_features`, and
      by which of the splits that are equally good they have.
max_samples : int or float, default=None
    How many to draw: a share of the rows ('rows'), of those of each era
    ('within_eras') or of the eras ('whole_eras'), or their number. None draws as many
    as there are.
max_features : {{'sqrt', 'log2'}}, int, float or None, default=1.0
    How many features a split looks at, drawn anew for each: a number, a share of the
    columns rounded down, their root or logarithm; None and 1.0 are all of them. One at
    least. Where none of these can part a node's rows, more are drawn until one can, as
    in scikit-learn's forests: a number of two values, or two categories of ten rows.
max_depth : int or None, default=None
    Edges from the root to the deepest leaf.
max_leaf_nodes : int or None, default=None
    Leaves of a tree, which is then grown best first.
min_samples_leaf : int, default=20
    Rows of a leaf, drawn ones counted as often as they were. With 1, trees are grown to
    full depth, as those of scikit-learn's forests are by default.
min_impurity_decrease : float, default=0.0
    The least gain of a split over all rows, by unit of the weight of the tree's
    rows{twice}; 0 asks nothing.
l2_regularization : float, default=0.0
    Weight of l2 rows at the tree's mean that are added to each leaf.
max_bins : int, default=255
    Bins of a feature that are not for missing values, 2 to 255.
categorical_features : array-like or 'from_dtype' or None, default='from_dtype'
    As in `HistGradientBoosting{suffix}`.
"""

_END = """\
random_segments : int or None, default=None
    With a number, each tree merges consecutive eras, in the order of their labels, into
    as many segments of about equal size as it draws from 2 to that number, and compares
    these: trees that see time more and less finely, an idea of the package of [1]_,
    which draws from 1, and cuts eras in two. None compares the eras as they are.
oob_score : bool or callable, default=False
    Whether to score each row by the trees that have not drawn it, by {score} with the
    weights of the fit{class_weights},
    or by ``oob_score(y_true, y_pred)`` without.
warm_start : bool, default=False
    Whether ``fit`` keeps the trees there are and adds to them. The forest is then that
    of one fit of as many trees to the same rows, but for rounding.
n_jobs : int or None, default=None
    Most threads that ``fit`` and the predictions use; trees are grown side by side.
    None is as many as there are cores, or as the environment variable
    ``OMP_NUM_THREADS``, a limit of threadpoolctl or a container's quota allow; -1 is
    all of them too, and -2 all but one. Each thread holds a copy of the binned rows of
    its tree, a byte a value. The forest is the same with any number, bit for bit.
random_state : int, RandomState instance or None, default=None
    Draws rows, features and segments.
verbose : int, default=0
    How much progress to print.
{class_weight}
Attributes
----------
{classes}era_labels_ : ndarray of shape (n_eras,)
    The distinct labels of eras, sorted, where ``fit`` got any; of several columns,
    those of the first.
feature_importances_ : ndarray of shape (n_features,)
    The share of each feature in the gains of the splits over all rows, averaged over
    trees. For a feature's gains era by era see
    :func:`sklearn_era.inspection.era_feature_importances`.
{oob}oob_score_ : float
    Score of the out-of-bag predictions; with `oob_score`.
oob_era_scores_ : ndarray of shape (n_eras,)
    The same in each era, in the order of `era_labels_`; NaN of an era with too few rows
    to score. With `oob_score` and eras.
n_features_in_ : int
    Number of columns of X.
feature_names_in_ : ndarray of shape (n_features,)
    Their names, where X has names that are all strings.
is_categorical_ : ndarray of shape (n_features,), dtype=bool, or None
    Which columns are categorical; None if none is.
n_iter_ : int
    The number of trees{per_class}.

See Also
--------
HistGradientBoosting{suffix} : Boosted trees with the same criteria.
TimeRobustForest{suffix}, InvariantForest{suffix} : Forests as the papers have them.

"""

_REGRESSOR = {
    "kind": "regression",
    "suffix": "Regressor",
    "trees": "",
    "per_class": "",
    "gini": "",
    "twice": "",
    "class_weights": "",
    "class_weight": "",
    "classes": "",
    "score": "R²",
    "oob": "oob_prediction_ : ndarray of shape (n_samples,)\n"
    "    Out-of-bag prediction of each row; NaN for one that all trees have drawn.\n"
    "    With `oob_score`.\n",
}

_CLASSIFIER = {
    "kind": "classification",
    "suffix": "Classifier",
    "trees": """
A tree predicts the proportion of a class in its leaf. It is grown on a target of 0 and
1 by the squared error, which is half the Gini impurity. With more than two classes
there is a tree for each, against the rest, and probabilities are scaled to add up to 1.
""",
    "per_class": " (of each class, if there are more than two)",
    "gini": " (half of\n    that of the Gini impurity)",
    "twice": " (half of what\n    scikit-learn's trees of the Gini impurity call so)",
    "score": "accuracy",
    "class_weights": " and of the classes",
    "class_weight": "class_weight : dict, 'balanced' or None, default=None\n"
    "    Weights of the classes, which multiply those of the rows.\n",
    "classes": "classes_ : ndarray of shape (n_classes,)\n"
    "    The labels of the classes.\n",
    "oob": "oob_decision_function_ : ndarray of shape (n_samples, n_classes)\n"
    "    Out-of-bag probabilities of each row; NaN for one that all trees have\n"
    "    drawn. With `oob_score`.\n",
}

_REFERENCES = """\
References
----------
.. [1] L. Moneda (2021), Domain Generalization, Invariance and the Time Robust Forest.
   University of Sao Paulo.
.. [2] Y. Liao, Q. Wu, X. Yan (2024), Invariant Random Forest: Tree-Based Model Solution
   for OOD Generalization. :arxiv:`2312.04273`

"""

_EXAMPLES = """\
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


def forest_docstring(kind: str) -> str:
    """The docstring of a forest."""
    words = _REGRESSOR if kind == "regressor" else _CLASSIFIER
    own = ("split_criterion", "min_impurity_decrease", "n_jobs")
    shared = [k for k, row in PARAMETERS.items() if row.is_of_forests and k not in own]
    return (
        _BEGINNING.format(**words)
        + dedent(document(shared))
        + _END.format(**words)
        + _REFERENCES
        + _EXAMPLES.format(**words)
    )


__all__ = ["forest_docstring"]
