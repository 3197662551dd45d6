"""Convert our estimators to ONNX."""

import copy
from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from sklearn._loss.link import IdentityLink
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.utils.validation import check_is_fitted

from sklearn_era._optional import import_optional
from sklearn_era._trees.traversal import column_of_feature
from sklearn_era.auto import AutoEraClassifier, AutoEraRegressor
from sklearn_era.ensemble import (
    EraForestClassifier,
    EraForestRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn_era.ensemble._binning.read_columns import column_name
from sklearn_era.interop._categories import categories_of_features, listed_categories
from sklearn_era.interop._sklearn import as_vote, refuse_forest_classifier


def register_onnx_converters() -> None:
    """Register converters of our estimators with skl2onnx, alone or in a pipeline.

    skl2onnx looks up converters by the exact type of an estimator. Our estimators get
    those of scikit-learn's estimators. A split by categories becomes a chain of
    comparisons, so that missing and unknown categories go to the same side as in our
    estimators. The converters refuse models that would become a wrong graph: categories
    other than numbers that are exact in single precision (encode text in the pipeline),
    regressors with a log link (``"gamma"`` and ``"poisson"``), classifiers of one
    class, and `EraForestClassifier`. An average becomes a vote of its members.

    Raises
    ------
    MissingPackageError
        If skl2onnx is not installed; it comes with ``sklearn-era[interop]``.

    Examples
    --------
    >>> from sklearn_era.interop import register_onnx_converters
    >>> register_onnx_converters()  # doctest: +SKIP
    """
    skl2onnx = import_optional("skl2onnx", extra="interop")
    shapes = import_optional("skl2onnx.common.shape_calculator", extra="interop")
    inner = "skl2onnx.operator_converters"
    of_trees = import_optional(f"{inner}.random_forest", extra="interop")
    of_classes = {
        "zipmap": [True, False, "columns"], "raw_scores": [True, False],
        "output_class_labels": [False, True], "nocl": [True, False],
    }  # fmt: skip
    kinds: Any = (
        ("regressor", of_trees.convert_sklearn_random_forest_regressor_converter, None,
         (HistGradientBoostingRegressor, EraForestRegressor), AutoEraRegressor),
        ("classifier", of_trees.convert_sklearn_random_forest_classifier, of_classes,
         (HistGradientBoostingClassifier, EraForestClassifier), AutoEraClassifier),
    )  # fmt: skip
    for kind, convert, options, classes, average in kinds:
        vote = import_optional(f"{inner}.voting_{kind}", extra="interop")
        of_vote = partial(_convert_average, getattr(vote, f"convert_voting_{kind}"))
        converters = dict.fromkeys(classes, partial(_convert_model, convert))
        for estimator, converter in (converters | {average: of_vote}).items():
            skl2onnx.update_registered_converter(
                estimator, f"SklearnEra{estimator.__name__}",
                getattr(shapes, f"calculate_linear_{kind}_output_shapes"), converter,
                options=options,
            )  # fmt: skip


def _convert_average(
    convert: Callable[..., None], scope: Any, operator: Any, container: Any
) -> None:
    """Convert an average as a vote of its members, by the members' own converters."""
    average = operator.raw_operator
    operator.raw_operator = as_vote(average, copy.copy)
    try:
        convert(scope, operator, container)
    finally:
        operator.raw_operator = average


def _convert_model(
    convert: Callable[..., None], scope: Any, operator: Any, container: Any
) -> None:
    """Convert a model by skl2onnx's converter `convert`, and correct its trees. Raise
    an error for models that `convert` would get wrong.
    """
    estimator = operator.raw_operator
    check_is_fitted(estimator)
    refuse_forest_classifier(estimator)
    _check_categories(estimator)
    if is_classifier(estimator) and estimator.classes_.size == 1:
        raise NotImplementedError(
            "skl2onnx gives raw values for probabilities of the single class "
            f"{estimator.classes_.tolist()[0]!r}; use to_sklearn."
        )
    has_identity = isinstance(estimator._loss.link, IdentityLink)
    if is_regressor(estimator) and not has_identity:
        raise NotImplementedError(
            f"skl2onnx leaves out the log link of loss={estimator.loss!r}, and the "
            "graph would predict the logarithm; use treelite."
        )
    add_node = container.add_node

    def add_corrected(op_type: str, *arguments: Any, **attributes: Any) -> None:
        if op_type.startswith("TreeEnsemble"):  # the node that holds the trees
            _mend_nodes(estimator, attributes)
        add_node(op_type, *arguments, **attributes)

    container.add_node = add_corrected
    try:
        convert(scope, operator, container)
    finally:
        container.add_node = add_node


def _check_categories(model: BaseEstimator) -> None:
    """Raise NotImplementedError for categories that single precision cannot hold."""
    for i, (categories, _) in enumerate(categories_of_features(model)):
        if categories.dtype.kind in "biuf":
            wrong = categories[categories.astype(np.float32) != categories]
        else:
            wrong = categories
        if wrong.size:
            name = column_name(model, column_of_feature(model)[i])
            raise NotImplementedError(
                f"Feature {name} has categories such as {wrong.tolist()[0]!r}, "
                "and the graph compares numbers in single precision: fit a pipeline "
                "that first encodes them, by scikit-learn's OrdinalEncoder."
            )


def _mend_nodes(model: BaseEstimator, attributes: dict[str, Any]) -> None:
    """Correct, in `attributes` itself, the splits by categories, which skl2onnx exports
    as splits at a threshold. Each becomes a chain of equality tests: categories that
    pass a test go to one side, and all other values, missing and unknown ones included,
    to the other. Correct the numbers of columns, too.
    """
    trees = list(chain.from_iterable(model._predictors))
    columns, categories = column_of_feature(model), categories_of_features(model)
    keys = [key for key in attributes if key.startswith("nodes_")]
    nodes: list[dict[str, Any]] = []
    n_nodes = len(attributes["nodes_nodeids"])
    for row in zip(*(attributes[key] for key in keys), strict=True):
        node = dict(zip(keys, row, strict=True))
        # protobuf refuses booleans as integers from version 7 on.
        goes_left = int(node["nodes_missing_value_tracks_true"])
        node["nodes_missing_value_tracks_true"] = goes_left
        tree, number = trees[node["nodes_treeids"]], node["nodes_nodeids"]
        split = tree.nodes[number]
        node["nodes_featureids"] = columns[split["feature_idx"]]
        if not split["is_categorical"] or split["is_leaf"]:
            nodes.append(node)
            continue
        values, bins = categories[split["feature_idx"]]
        listed = values[listed_categories(tree, split, bins)].tolist() or [np.nan]
        sides = ("right", "left") if goes_left else ("left", "right")
        child, other = (split[side] for side in sides)
        new = range(n_nodes, n_nodes := n_nodes + len(listed) - 1)
        chained = zip(listed, [number, *new], [*new, other], strict=True)
        nodes += [
            node | {
                "nodes_modes": "BRANCH_EQ", "nodes_missing_value_tracks_true": 0,
                "nodes_values": value, "nodes_nodeids": number,
                "nodes_truenodeids": child, "nodes_falsenodeids": following,
            }
            for value, number, following in chained
        ]  # fmt: skip
    attributes |= {key: [node[key] for node in nodes] for key in keys}
    attributes["nodes_values"] = np.array(attributes["nodes_values"], dtype=np.float32)
