"""Converters to ONNX."""

from collections.abc import Callable
from typing import Any

from sklearn._loss.link import IdentityLink
from sklearn.base import is_regressor

from sklearn_era._optional import import_optional
from sklearn_era.ensemble import (
    EraForestClassifier,
    EraForestRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn_era.interop._sklearn import refuse_forest_classifier


def register_onnx_converters() -> None:
    """Register converters of our estimators with skl2onnx, alone or in a pipeline.

    skl2onnx looks up converters by the exact type of an estimator. Those of
    scikit-learn's estimators serve ours, except for models that they silently convert
    to a wrong graph. These are refused: models with categorical features, regressors
    with a log link (``"gamma"`` and ``"poisson"``), and `EraForestClassifier`.

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
    random_forest = import_optional(
        "skl2onnx.operator_converters.random_forest", extra="interop"
    )
    of_regressors: Any = (
        shapes.calculate_linear_regressor_output_shapes,
        random_forest.convert_sklearn_random_forest_regressor_converter, {},
    )  # fmt: skip
    of_classifiers = (
        shapes.calculate_linear_classifier_output_shapes,
        random_forest.convert_sklearn_random_forest_classifier,
        {"zipmap": [True, False, "columns"], "raw_scores": [True, False],
         "output_class_labels": [False, True], "nocl": [True, False]},
    )  # fmt: skip
    for estimator, (output_shapes, convert, options) in {
        HistGradientBoostingRegressor: of_regressors, EraForestRegressor: of_regressors,
        HistGradientBoostingClassifier: of_classifiers,
        EraForestClassifier: of_classifiers,
    }.items():  # fmt: skip
        skl2onnx.update_registered_converter(
            estimator, f"SklearnEra{estimator.__name__}", output_shapes,
            _refuse_wrong_graphs(convert), options=options or None,
        )  # fmt: skip


def _refuse_wrong_graphs(convert: Callable[..., None]) -> Callable[..., None]:
    """Wrap a converter of skl2onnx to refuse models with a wrong graph."""

    def convert_or_refuse(scope: Any, operator: Any, container: Any) -> None:
        estimator = operator.raw_operator
        refuse_forest_classifier(estimator)
        if estimator.is_categorical_ is not None:
            raise NotImplementedError(
                "skl2onnx takes the splits of categorical features for thresholds, and "
                "the graph would predict something else; encode them as numbers "
                "before the estimator, or use treelite."
            )
        has_identity = isinstance(estimator._loss.link, IdentityLink)
        if is_regressor(estimator) and not has_identity:
            raise NotImplementedError(
                f"skl2onnx leaves out the log link of loss={estimator.loss!r}, and the "
                "graph would predict the logarithm; use treelite."
            )
        convert(scope, operator, container)

    return convert_or_refuse
