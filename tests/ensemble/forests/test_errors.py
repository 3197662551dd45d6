"""Forests refuse bad input in one sentence with the remedy."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from helpers.criteria import RATIO
from helpers.forests import classifier, make_classes, make_data, regressor
from sklearn_era.effects import GroupDRO

REFUSED_WITHOUT_ERAS = [
    ({"split_criterion": "era"}, r"^split_criterion='era' needs eras: pass fit\(X, y,"),
    ({"bootstrap": "whole_eras"}, r"^bootstrap='whole_eras' needs eras.*='rows'"),
    ({"random_segments": 3}, r"^random_segments=3 needs eras")]  # fmt: skip
REFUSED = [
    ({"random_segments": 4}, r"^random_segments=4 is more than the 3 .* finer eras\.$"),
    ({"split_criterion": "era", "min_samples_per_era": 60, "min_era_coverage": 1.0},
     r"^eras: a split has to leave min_samples_per_era=60 rows of every era on both"),
    ({"bootstrap": False, "oob_score": True}, "^oob_score=True .*; set bootstrap="),
    ({"bootstrap": False, "max_samples": 0.5}, "^max_samples=0.5 needs rows to be "),
    ({"max_samples": 241}, "^max_samples=241 is more than the 240 rows; lower it, or"),
    ({"bootstrap": "whole_eras", "max_samples": 4}, "^max_samples=4 .* than the 3 era"),
    ({"bootstrap": "within_eras", "max_samples": 200},
     r"^max_samples=200 is more than the \d+ rows of the largest era"),
    ({"bootstrap": "within_eras", "max_samples": 200, "random_segments": 3},
     r"^max_samples=200 is more than the 1\d+ rows of the largest segment of trees w"),
    ({"bootstrap": "whole_eras", "max_samples": 3, "random_segments": 3},
     "^max_samples=3 is more than the 2 segments of trees with two segments; lower it"),
    ({"max_features": 5}, "^max_features=5 is more than the 4 columns of X .*; lower"),
    ({"split_criterion": {"time_robust": 1, "era": 1}},
     r"^split_criterion: 'time_robust' cannot be part of a blend"),
    (RATIO, r"^Invariant\(statistic='ratio'\) needs a target of 0 and 1, .* but y h"),
    *(({name: value}, rf"^The '{name}' parameter of EraForestRegressor must be")
      for name, values in {
          "n_estimators": [0], "bootstrap": [True, "row"], "max_samples": [0, 1.5],
          "max_features": [0, "auto"], "random_segments": [1], "oob_score": ["r2"],
          "split_criterion": ["gini"], "era_weighting": [GroupDRO()],
          "max_bins": [256], "min_samples_leaf": [0], "n_jobs": [0],
      }.items() for value in values),
]  # fmt: skip
REFUSED_OF_TWO_LABELS = [
    ({"random_segments": 3}, r"^random_segments=3 is more than the 2 distinct eras"),
    ({"bootstrap": "whole_eras", "max_samples": 3}, "^max_samples=3 .* than the 2 era"),
]  # fmt: skip


@pytest.mark.parametrize(("spoil", "parameters", "message"), [
    *((lambda e: None, *case) for case in REFUSED_WITHOUT_ERAS),
    *((lambda e: e, *case) for case in REFUSED),
    *((lambda e: {"a": e, "b": e // 2}, *case) for case in REFUSED_OF_TWO_LABELS),
])  # fmt: skip
def test_refused(spoil, parameters, message):
    X, y, eras = make_data()
    forest = regressor(**parameters)
    before = set(vars(forest))
    with pytest.raises(ValueError, match=message) as caught:
        forest.fit(X, y, eras=spoil(eras))
    assert "\n" not in str(caught.value)
    assert set(vars(forest)) == before
    with pytest.raises(NotFittedError):
        forest.predict(X)


def test_weights_and_classes_are_checked():
    X, y, _ = make_data()
    with pytest.raises(ValueError, match="must contain at least one non-zero number"):
        regressor().fit(X, y, np.zeros(y.size))
    nothing = dict.fromkeys(["high", "low", "mid"], 0.0)
    with pytest.raises(ValueError, match=r"^sample_weight is 0 in all rows, which lea"):
        classifier(class_weight=nothing).fit(X, make_classes(y))
    with pytest.raises(ValueError, match="Negative values in data passed to `sample_w"):
        regressor().fit(X, y, -np.ones(y.size))
    message = r"^The classes, \['high', 'low', 'mid'\], are not in class_weight"
    with pytest.raises(ValueError, match=message):
        classifier(class_weight={"new": 1}).fit(X, make_classes(y))
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        classifier().fit(X, y)


def test_a_single_era_is_warned_of():
    X, y, eras = make_data()
    with pytest.warns(UserWarning, match="eras holds the single era 0 to train on, "):
        regressor(split_criterion="directional").fit(X, y, eras=eras * 0)
    regressor().fit(X, y, eras=eras * 0)  # a warning would be an error


@pytest.mark.parametrize("unit", [1e39, 1e300, 1e-45])
@pytest.mark.parametrize("split_criterion", ["gain", "era"])
def test_a_target_out_of_single_precision(split_criterion, unit):
    """Its gradients would be infinite or 0, and the trees stumps."""
    X, y, eras = make_data()
    forest = regressor(split_criterion=split_criterion)
    message = r"^y: the largest difference of two targets is .*; divide y by a const"
    with pytest.raises(ValueError, match=message):
        forest.fit(X, y * unit, eras=eras)
    weights = np.where(y > 55, 0.0, 1e-3)
    forest.fit(X, np.where(y > 55, 1e300, y), weights, eras=eras)  # of rows without any
    with pytest.raises(ValueError, match=r"two targets times the largest weight is"):
        forest.fit(X, y * 1e37, weights * 1e4, eras=eras)


@pytest.mark.parametrize("unit", [1e-300, 1e-46, 1e39])
def test_weights_out_of_single_precision(unit):
    X, y, _ = make_data()
    message = r"^sample_weight is up to 1e.*, out of th"
    for make, target in ((regressor, y), (classifier, make_classes(y))):
        with pytest.raises(ValueError, match=message):
            make().fit(X, target, np.full(y.size, unit))


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_a_target_in_single_precision_has_the_trees_of_any_unit(scale):
    X, y, eras = make_data()
    unit = 2.0 ** round(np.log2(scale))
    forest = regressor(split_criterion="era").fit(X, y, eras=eras)
    scaled = regressor(split_criterion="era").fit(X, y * unit, eras=eras)
    assert np.array_equal(scaled.predict(X), forest.predict(X) * unit)
