"""Take estimators apart for model files, and rebuild them with checks. The inputs of
compiled code (preprocessor, bins and trees) are made from checked numbers.
"""

from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import ensemble as stock
from sklearn._loss.loss import BaseLoss
from sklearn.base import BaseEstimator, is_classifier
from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper
from sklearn.metrics import check_scoring
from sklearn.preprocessing import LabelEncoder, OrdinalEncoder
from sklearn.utils._encode import _unique
from sklearn.utils._missing import is_scalar_nan

from .. import auto, calibration, ensemble, model_selection, preprocessing, rules
from ..auto._linear import LinearClassifier, LinearRegressor
from ..auto._weights import LeftOut
from ..calibration._recalibration import RandomEffects
from ..criteria import Blend
from ..criteria._blend import as_criterion
from ..criteria._criteria import CRITERIA, refuse_removed
from ..effects import GroupDRO, Intercepts, Recency
from ..ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from ..ensemble._binning import rare_categories as shared_bins
from ..ensemble._boosters.estimators import SymmetricClassifier, SymmetricRegressor
from ..model_selection import EraSearchCV, EraSplit, EraWalkForwardSplit
from ..rules._beam import Rule
from ..rules._prediction import WeightedRule
from ._trees import pack_trees, unpack_trees

CLASSES: dict[str, Any] = {
    name: cls
    for module in (auto, calibration, ensemble, model_selection, preprocessing, rules)
    for name, cls in vars(module).items()
    if name in module.__all__ and hasattr(cls, "fit")
}
# Objects inside these: parameters, and members that are not models on their own.
_OBJECTS = {
    cls.__name__: cls
    for cls in (
        *(*CRITERIA.values(), Blend, Recency, GroupDRO, Intercepts),
        *(EraSplit, EraWalkForwardSplit, LinearRegressor, LinearClassifier),
        *(SymmetricRegressor, SymmetricClassifier),
    )
}

# Attributes that only a fit needs, or that are rebuilt from others.
_DROPPED = {
    "_scorer", "scorer_", "_raw_predict", "_skl_callbacks", "_label_encoder",
    "_is_categorical_remapped",
}  # fmt: skip
_FITTED: dict[str, Any] = {
    name: kind
    for kind, names in (
        (int, "n_features_in_ n_trees_per_iteration_ _n_features _forest_seed"),
        (int, "best_index_ n_splits_"), (int | np.integer, "_random_seed"),
        (float | np.floating, "oob_score_ best_score_ refit_time_ _power"),
        (bool, "do_early_stopping_ _use_validation_data _fitted_with_sw multimetric_"),
        (str, "era_order_ target_type_ _draws"), (Intercepts, "_era_effects"),
        (np.ndarray, "feature_names_in_ classes_ era_labels_ validation_eras_"),
        (np.ndarray, "_baseline_prediction train_score_ validation_score_ intercept_"),
        (np.ndarray, "_era_labels _era_intercepts _era_forecast is_upweighted_"),
        (np.ndarray, "_era_series _era_columns _era_patterns _era_level _known_eras"),
        (np.ndarray, "_weighted_eras _era_weights _era_log_weights oob_era_scores_"),
        (np.ndarray, "oob_prediction_ oob_decision_function_"),
        (np.ndarray, "_intercepts _coefficients _range conformity_scores_ _masses"),
        (np.ndarray, "_folds _pairs _folds_of_eras effects_ mean_effects_"),
        (np.ndarray, "spread_effects_ center_ scale_ coef_ _era_noise _group_noise"),
        (np.ndarray | None, "is_categorical_"), (np.ndarray | dict, "era_scores_"),
        (dict, "_bin_mapper _predictors cv_results_ best_params_ rules_ members_"),
        (dict, "weights_ _left_out _calibrators _class_weights _before_held_out"),
        (np.ndarray, "_known_groups _group_labels _group_intercepts _group_series"),
        (tuple, "_typical _pair"), (list | None, "_preprocessor"),
        (list, "update_log_ _rules _codings estimators_ _of_eras _columns"),
        (list, "categories_ encodings_ _cells _encoded _relative"),
        (BaseEstimator | None, "encoder_ _plain"), (np.ndarray | list, "_training"),
        (str | float | int | np.generic, "_smooth _robust _variation _count"),
        (BaseEstimator, "estimator_ identification_estimator_ best_estimator_"),
        (BaseEstimator, "regressor_ transformer_"), (str | list | None, "_era_column"),
        (np.random.Generator, "_feature_subsample_rng"), (BaseLoss, "_loss"),
    )
    for name in names.split()
}  # fmt: skip


def take_apart(estimator: BaseEstimator) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return the name of an estimator's class, its parameters and its attributes."""
    if hasattr(estimator, "to_local"):  # a Dask estimator
        estimator = estimator.to_local()
    cls = type(estimator)
    if (CLASSES | _OBJECTS).get(cls.__name__) is not cls:
        raise TypeError(f"{cls.__module__}.{cls.__qualname__}")
    names = {*getattr(cls, "_get_param_names", vars(estimator).keys)()}
    parameters = {k: v for k, v in vars(estimator).items() if k in names}
    attributes = {
        name: _PARTS[name](value) if name in _PARTS else value
        for name, value in vars(estimator).items()
        if name not in names | _DROPPED
    }
    _check_attributes(attributes)
    return cls.__name__, parameters, attributes


def rebuild(name: str, parameters: dict[str, Any], attributes: dict[str, Any]) -> Any:
    """Return the estimator made of these parts; raise an error if a part is invalid."""
    refuse_removed(name)
    if (cls := (CLASSES | _OBJECTS).get(name)) is None:
        raise ValueError(f"it has an object of the unknown class {name!r}")
    estimator = cls(**parameters)
    _check_attributes(attributes)
    if not attributes:
        return estimator
    if "split_criterion" in parameters:
        as_criterion(estimator.split_criterion)
    vars(estimator).update(attributes)
    n_features = estimator.n_features_in_
    if (names := attributes.get("feature_names_in_")) is not None:
        _need(names.shape == (n_features,) and names.dtype == object, "names")
        _need(all(type(name) is str for name in names), "names")
    if is_classifier(estimator):
        _need(estimator.classes_.ndim == 1 and estimator.classes_.size > 0, "classes")
    if not hasattr(estimator, "_preprocess_X"):
        n_encoded = 0
        if attributes.get("_encoded"):
            n_encoded = estimator.encoder_.get_feature_names_out().size
        for model in inner_models(estimator):
            classes: list[Any] = [getattr(x, "classes_", 0) for x in (model, estimator)]
            _need(
                model.n_features_in_ in (n_features, n_features + n_encoded), "features"
            )
            _need(np.array_equal(*classes), "classes")
        if isinstance(estimator, EraSearchCV):
            estimator.scorer_, _ = estimator._get_scorers(by_era=False)
        if hasattr(estimator, "members_"):
            _check_average(estimator.weights_, estimator.members_, estimator._left_out)
        if hasattr(estimator, "_codings"):
            _check_linear(estimator)
        for model in attributes.get("estimators_", ()):
            _need(model.n_features_in_ == n_features, "features")
        if hasattr(estimator, "_calibrators"):
            fits = estimator._calibrators.items()
            estimator._calibrators = {i: RandomEffects(*fit) for i, fit in fits}
        return estimator
    bins = estimator._bin_mapper
    _need(bins["n_thresholds"].shape == (n_features,), "bins")
    _restore_preprocessor(estimator)
    is_rules = name == "RuleEnsembleClassifier"
    kept = "is_categorical_" if is_rules else "_is_categorical_remapped"
    if (is_categorical := getattr(estimator, kept)) is None:
        is_categorical = np.zeros(n_features, dtype=bool)
    estimator._bin_mapper = _bin_mapper(is_categorical, **bins)
    for i, n_bins in enumerate(bins["n_thresholds"][is_categorical]):
        codes = shared_bins.codes_of_categories(shared_bins.encoder_of(estimator), i)
        _need(codes.max(initial=-1) + 1 == n_bins, "categories")
    if is_rules:
        _restore_rules(estimator)
    else:
        _restore_trees(estimator, is_categorical)
    if getattr(estimator, "do_early_stopping_", False) and estimator.scoring != "loss":
        estimator._scorer = check_scoring(estimator, estimator.scoring)
    return estimator


def inner_models(estimator: BaseEstimator) -> list[Any]:
    """Return a list of the fitted models inside an estimator."""
    for name in ("estimator_", "best_estimator_", "regressor_"):
        if hasattr(estimator, name):
            return [getattr(estimator, name)]
    return list(getattr(estimator, "members_", {}).values())


def first_booster(estimator: BaseEstimator) -> Any:
    """Return the innermost model: of several, the first that is not linear, if any."""
    while inner := inner_models(estimator):
        estimator = next((x for x in inner if not hasattr(x, "_codings")), inner[0])
    return estimator


def _check_average(
    weights: dict[str, float], members: dict[str, Any], parts: dict[str, Any]
) -> None:
    """Raise ValueError unless weights, members and the rows left out are consistent."""
    _need({*members} <= {*weights}, "members and weights")
    _need(all(type(x) is str for x in weights), "names of members")
    _need(all(type(x) is float and x >= 0 for x in weights.values()), "weights")
    _need({name for name, x in weights.items() if x > 0} <= {*members}, "weights")
    _need(np.isclose(sum(weights.values()), 1), "weights")
    left_out = LeftOut(**parts)
    arrays = [left_out.y, left_out.weights, left_out.codes]
    n_rows, codes = left_out.y.size, np.unique(left_out.codes)
    _need(all(array.shape == (n_rows,) for array in arrays), "rows left out")
    _need(np.array_equal(codes, np.arange(codes.size)), "rows left out")
    _need({*left_out.predicted} == {*left_out.stages} <= {*members}, "rows left out")
    arrays += left_out.predicted.values()
    _need(all(array.dtype.kind in "iuf" for array in arrays[1:]), "rows left out")
    _need(all(x.shape == (1, n_rows) for x in arrays[3:]), "rows left out")


def _check_linear(model: BaseEstimator) -> None:
    """Raise ValueError unless a linear model's codings (one for each column) and its
    coefficients are valid, and fit the model's columns, classes and penalties.
    """
    is_category = [type(coding) is list for coding in model._codings]
    _need(np.array_equal(model.is_categorical_, is_category), "codings")
    for coding in model._codings:
        if type(coding) is not list:
            _need(type(coding) is tuple, "codings")
            _need([*map(type, coding)] == [float, float, bool], "codings")
            _need(not np.isnan(coding[0]) and coding[1] > 0, "codings")
        else:
            _need(len({*coding}) == len(coding), "codings")
    arrays = [model._intercepts, model._coefficients]
    if not is_classifier(model):
        arrays.append(model._range)
        _need(model._range.shape == (2,), "range")
    _need(all(array.dtype == np.float64 for array in arrays), "coefficients")
    _need(model.check(), "coefficients")


def _check_attributes(attributes: dict[str, Any]) -> None:
    for name, value in attributes.items():
        if name not in _FITTED or not isinstance(value, _FITTED[name]):
            raise TypeError(f"the attribute {name!r} of {type(value).__qualname__}")


def _need(holds: object, what: str) -> None:
    if not holds:
        raise ValueError(f"its {what} do not fit the rest of it")


def _categories(preprocessor: Any) -> list[Any] | None:
    """Return each column's categories, paired with their bins if some share a bin."""
    if preprocessor is None:
        return None
    encoder: Any = getattr(preprocessor, "named_transformers_", {}).get("encoder")
    if type(encoder) is not OrdinalEncoder:
        raise TypeError(f"the preprocessor {type(preprocessor).__qualname__}")
    parts: list[Any] = list(encoder.categories_)
    for i, known in enumerate(parts):
        bins = shared_bins.codes_of_categories(encoder, i)
        parts[i] = [known, bins] if (bins != np.arange(bins.size)).any() else known
    return parts


def _restore_preprocessor(estimator: BaseEstimator) -> None:
    """Fit the estimator's preprocessor to a dummy row; set its stored categories."""
    is_categorical, parts = estimator.is_categorical_, estimator._preprocessor
    estimator._is_categorical_remapped = None
    if is_categorical is None:
        _need(parts is None, "categories")
        return
    none = np.array([], dtype=np.int64)
    pairs = [part if type(part) is list else [part, none] for part in parts]
    categories, bins = zip(*pairs, strict=True)
    n_features = estimator.n_features_in_
    _need(is_categorical.shape == (n_features,), "categories")
    _need(is_categorical.dtype == bool and is_categorical.any(), "categories")
    _need(len(categories) == is_categorical.sum(), "categories")
    for known in categories:
        _need(type(known) is np.ndarray and known.ndim == 1, "categories")
        _need(known.dtype.kind in "OUSbiufmM", "categories")
        _need(_unique(known).size == known.size, "categories")
    fitted = HistGradientBoostingRegressor(categorical_features=is_categorical)
    row = np.zeros((1, n_features))
    stock.HistGradientBoostingRegressor._preprocess_X(fitted, row, reset=True)
    estimator._preprocessor = preprocessor = fitted._preprocessor
    estimator._is_categorical_remapped = fitted._is_categorical_remapped
    encoder = preprocessor.named_transformers_["encoder"]
    encoder.categories_ = list(categories)
    encoder._missing_indices = {
        i: known.size - 1
        for i, known in enumerate(categories)
        if any(map(is_scalar_nan, known[-1:]))
    }
    _restore_bins(encoder, bins)
    if hasattr(estimator, "feature_names_in_"):
        names = estimator.feature_names_in_
        numbers = preprocessor.named_transformers_["numerical"]
        preprocessor.feature_names_in_ = names
        encoder.feature_names_in_ = names[is_categorical]
        numbers.feature_names_in_ = names[~is_categorical]


def _restore_bins(encoder: OrdinalEncoder, bins: tuple[Any, ...]) -> None:
    """Set the bins of categories; old files list only categories in the last bin."""
    sizes = shared_bins.numbers_of_categories(encoder).tolist()
    for i, (size, given) in enumerate(zip(sizes, bins, strict=True)):
        if 0 < given.size < size and np.all(np.diff(given) > 0):
            # Of files before: those which share the last bin.
            is_rare = np.isin(np.arange(size), given)
            given = np.where(is_rare, size - given.size, np.cumsum(~is_rare) - 1)
        if given.size:
            _need(given.dtype == np.int64 and given.shape == (size,), "categories")
            _need(given.min() >= 0 and given.max() < size, "categories")
            shared_bins.set_bins(encoder, i, given)


def _bins(mapper: _BinMapper) -> dict[str, Any]:
    """Return the parts from which `_bin_mapper` makes the bin mapper again."""
    if type(mapper) is not _BinMapper:
        raise TypeError(f"the bin mapper {type(mapper).__qualname__}")
    known = vars(_BinMapper()).keys() | {x for x in vars(mapper) if x[-1] == "_"}
    if unknown := sorted(vars(mapper).keys() - known):
        raise TypeError(f"the attribute {unknown[0]!r} of a bin mapper")
    thresholds = mapper.bin_thresholds_
    return {
        "n_thresholds": np.array([each.size for each in thresholds], dtype=np.int64),
        "thresholds": np.concatenate(thresholds),
        "missing_bin": int(mapper.missing_values_bin_idx_),
        "n_bins": int(mapper.n_bins),
    }


def _bin_mapper(
    is_categorical: NDArray[np.bool_], n_thresholds: NDArray[np.int64],
    thresholds: NDArray[np.float64], missing_bin: int, n_bins: int,
) -> _BinMapper:  # fmt: skip
    """Return a fitted bin mapper; raise ValueError if its bins are invalid."""
    _need(n_thresholds.dtype == np.int64 and thresholds.dtype == np.float64, "bins")
    used = n_thresholds + ~is_categorical
    _need(thresholds.ndim == 1 and n_thresholds.min() >= 0, "bins")
    _need(used.max() <= missing_bin <= 255 and type(n_bins) is int, "bins")
    _need(n_thresholds.sum() == thresholds.size, "bins")
    cut = np.split(thresholds, np.cumsum(n_thresholds)[:-1])
    pairs = list(zip(cut, is_categorical, strict=True))
    for each, is_category in pairs:
        # The last quantile between infinities is scikit-learn's NaN.
        _need(not (np.any(each[1:] < each[:-1]) or np.isnan(each[:-1]).any()), "bins")
        if is_category:
            _need(np.isin(each, np.arange(256)).all(), "bins")
    known = [x if is_category else None for x, is_category in pairs]
    mapper = _BinMapper(n_bins, is_categorical=is_categorical, known_categories=known)
    mapper.is_categorical_ = is_categorical.astype(np.uint8)
    mapper.bin_thresholds_ = cut
    mapper.n_bins_non_missing_ = used.astype(np.uint32)
    mapper.missing_values_bin_idx_ = missing_bin
    return mapper


def _restore_trees(estimator: BaseEstimator, is_categorical: NDArray[np.bool_]) -> None:
    n_outputs = 1
    if is_classifier(estimator):
        estimator._label_encoder = LabelEncoder()
        estimator._label_encoder.classes_ = estimator.classes_
        if estimator.classes_.size > 2:
            n_outputs = estimator.classes_.size
    _need(estimator.n_trees_per_iteration_ == n_outputs, "classes")
    loss = estimator._loss
    _need(not loss.is_multiclass or loss.n_classes == n_outputs > 1, "classes")
    if isinstance(estimator, HistGradientBoostingClassifier):
        _need(hasattr(loss, "predict_proba"), "loss and classes")
    _check_attributes(before := getattr(estimator, "_before_held_out", {}))
    for attributes in (vars(estimator), vars(estimator) | before):
        n_eras = len(attributes.get("_era_labels", ()))
        n_groups = len(attributes.get("_group_labels", ()))
        for name, shape in (
            ("_baseline_prediction", (1, n_outputs)), ("_era_forecast", (n_outputs,)),
            ("_era_intercepts", (n_eras, n_outputs)), ("_era_level", (n_outputs, 8)),
            ("_era_series", (2, n_eras, n_outputs)), ("_group_noise", (2, n_outputs)),
            ("_group_intercepts", (n_groups, n_outputs)),
            ("_group_series", (2, n_groups, n_outputs)), ("_era_noise", (2, n_outputs)),
        ):  # fmt: skip
            if name == "_baseline_prediction" or name in attributes:
                value = attributes[name]
                _need(value.shape == shape and value.dtype == np.float64, "predictions")
    estimator._predictors = unpack_trees(
        estimator._predictors, is_categorical, n_outputs
    )


def _restore_rules(estimator: BaseEstimator) -> None:
    n_features, classes = estimator.n_features_in_, estimator.classes_
    intercept, shape = estimator.intercept_, classes.shape
    _need(intercept.shape == shape and intercept.dtype == np.float64, "classes")
    rules = []
    for others, last, text, class_index, coefficient in estimator._rules:
        rule = Rule(others, last)
        for column, bins in chain.from_iterable(rule.conjunctions):
            _need(type(column) is type(bins) is int, "rules")
            _need(0 <= column < n_features and 0 <= bins < 2**256, "rules")
        _need(type(class_index) is int and type(text) is str, "rules")
        _need(0 <= class_index < classes.size, "rules")
        rules.append(WeightedRule(rule, text, class_index, float(coefficient)))
    estimator._rules = rules


_PARTS: dict[str, Any] = {
    "_calibrators": lambda fits: {i: tuple(fit) for i, fit in fits.items()},
    "_preprocessor": _categories,
    "_bin_mapper": _bins,
    "_predictors": pack_trees,
    "_rules": lambda rules: [
        (x.rule.others, x.rule.last, x.text, int(x.class_index), float(x.coefficient))
        for x in rules
    ],
}
