"""Trees of a criterion that compares eras: what they may depend on, and what not."""

import numpy as np
import pandas as pd
import pytest

from helpers.criteria import CRITERIA, RATIO
from helpers.data import N_SAMPLES, make_data
from helpers.estimators import ours
from helpers.grids import grid, slow
from helpers.trees import assert_same_model, assert_same_splits, n_splits

CRITERIA = CRITERIA | {
    "half of the eras": {
        "split_criterion": "directional", "min_samples_per_era": 6,
        "min_era_coverage": 0.5, "min_gain_share": 0.0,
    }
}  # fmt: skip
ON_TARGETS = [
    *grid(CRITERIA, ["real", "binary"], every=2),
    pytest.param(RATIO, "binary", id="ratio"),
]

WORDS = np.array(["a", "b", "ba", "c"])
RENAMINGS = {
    "int8": lambda eras: (eras * 7 - 11).astype(np.int8),
    "float": lambda eras: eras + 0.5,
    "str": lambda eras: WORDS[eras],
    "list": lambda eras: WORDS[eras].tolist(),
    "object": lambda eras: WORDS.astype(object)[eras],
    "string_dtype": lambda eras: WORDS.astype(np.dtypes.StringDType())[eras],
    "tuples": lambda eras: pd.Series([(2024, int(era)) for era in eras]),
    "datetime64": lambda eras: (
        np.datetime64("2024-01-01") + np.timedelta64(7, "D") * eras
    ),
    "pandas_datetime": lambda eras: pd.Series(
        pd.Timestamp("2024-01-01", tz="UTC") + pd.to_timedelta(eras, unit="D")
    ),
    "pandas_period": lambda eras: pd.PeriodIndex.from_ordinals(eras, freq="M"),
    "pandas_ordered": lambda eras: pd.Categorical.from_codes(
        eras, list("jkxy"), ordered=True
    ),
    "pandas_category": lambda eras: pd.Series(WORDS[eras]).astype("category"),
    "pandas_int": lambda eras: pd.Series(eras, dtype="Int64", index=eras[::-1]),
    "pandas_string": lambda eras: pd.Series(WORDS[eras], dtype="string"),
    "pyarrow": lambda eras: pd.Series(WORDS[eras], dtype="string[pyarrow]"),
}


def fit(data, criterion, target="real", **params):
    """Fit with leaves so large that no two features part the rows of a node alike.

    Their keys would be equal up to the rounding, which the order of additions decides.
    """
    X, y, weights, eras = data
    params = {"min_samples_leaf": 25, "max_iter": 4} | params
    model = ours(target, **criterion, **params).fit(X, y, weights, eras=eras)
    assert n_splits(model) > 0
    return model


@pytest.mark.parametrize(
    ("rename", "criterion"),
    grid(RENAMINGS, [CRITERIA["era, worst"], CRITERIA["directional"]], every=2),
)
def test_labels_matter_by_their_order_only(rename, criterion):
    X, y, weights, eras = make_data()
    X = X[:, 1:3]
    expected = fit((X, y, weights, eras), criterion, max_iter=2)
    renamed = fit((X, y, weights, rename(eras)), criterion, max_iter=2)
    assert_same_model(renamed, expected, X)


EXACT = {
    "max_iter": 1, "min_samples_leaf": 2, "max_leaf_nodes": None,
    "categorical_features": [3],
}  # fmt: skip


def exact_data(target, seed=0):
    """Data whose sums are exact in any order, as long as there is a single tree.

    Gradients and weights are small integers or halves, because what the target weighs
    is as often positive as negative.
    """
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, size=(N_SAMPLES, 4)).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    eras = rng.integers(0, 4, N_SAMPLES)
    y = np.repeat([1.0, -1.0], N_SAMPLES // 2)
    weights = np.tile(rng.choice([0.0, 0.5, 1.0, 2.0], N_SAMPLES // 2), 2)
    if target == "real":
        y *= np.tile(rng.integers(0, 4, N_SAMPLES // 2), 2)
        # An effect to find: rows of large X change places with rows of small X.
        order = np.argsort(np.argsort(np.nan_to_num(X[:, 0] + X[:, 1] * eras)))
        order = np.argsort(y, kind="stable")[order]
        y, weights = y[order], weights[order]
    else:
        y = y > 0
    return X, y, weights, eras


@pytest.mark.parametrize(("criterion", "target"), ON_TARGETS)
def test_order_of_rows_does_not_matter_to_the_last_bit(criterion, target):
    data = exact_data(target)
    expected = fit(data, criterion, target, **EXACT)
    for seed in range(2):
        order = np.random.default_rng(seed).permutation(N_SAMPLES)
        shuffled = fit([values[order] for values in data], criterion, target, **EXACT)
        assert_same_model(shuffled, expected, data[0])


# The unit of weights.


def has_unit(criterion) -> bool:
    """Whether a gain enters a criterion otherwise than by comparison with gains."""
    key = criterion["split_criterion"]
    alpha = getattr(key, "boltzmann_alpha", 0.0)
    return alpha not in (0.0, -np.inf) and not key.normalize


UNITLESS = [
    *grid(
        {name: c for name, c in CRITERIA.items() if not has_unit(c)},
        ["real", "binary"],
        every=4,
    ),
    ON_TARGETS[-1],
]


@pytest.mark.parametrize("factor", [0.25, slow(1024.0)])
@pytest.mark.parametrize(("criterion", "target"), UNITLESS)
def test_scale_of_weights_does_not_matter(criterion, target, factor):
    X, y, weights, eras = make_data(target)
    expected = fit((X, y, weights, eras), criterion, target)
    assert_same_splits(fit((X, y, weights * factor, eras), criterion, target), expected)
