"""How much predictions follow single features, era by era."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_era.metrics import EraScores
from sklearn_era.numerai.metrics._era_rows import (
    EraRows,
    check_same_index,
    feature_blocks,
    predictions_by_era,
)


def feature_exposures(
    predictions: ArrayLike,
    features: ArrayLike,
    eras: ArrayLike | None = None,
    *,
    feature_names: Sequence[str] | None = None,
) -> NDArray[np.float64]:
    """Correlate predictions with each feature, era by era.

    The Pearson correlation of the predictions as they are, not of their ranks: pass
    ranks for the exposures of a submission.

    Parameters
    ----------
    predictions : array-like of shape (n_samples,)
        Finite numbers.

    features : array-like of shape (n_samples, n_features)
        Integers or finite floats, converted to float64 one era at a time.

    eras : array-like of shape (n_samples,), default=None
        Era of each row, in any order. None: all rows are one era.

    feature_names : sequence of str of length n_features, default=None
        What messages call the features. None: the columns of a data frame, or else
        their positions.

    Returns
    -------
    exposures : ndarray of shape (n_eras, n_features), dtype=float64
        Between -1 and 1, an era a row, in the order of the labels; without `eras`, of
        shape (n_features,). NaN where a feature or the predictions are constant.

    Raises
    ------
    ValueError
        If an argument has a bad type, shape or value, or predictions or features are
        NaN or infinite. The message names the eras, and the features.

    Examples
    --------
    >>> from sklearn_era.numerai.metrics import feature_exposures
    >>> features = [[0, 4, 2], [1, 2, 2], [2, 0, 2]]
    >>> feature_exposures([1, 2, 3], features).round(6).tolist()
    [1.0, -1.0, nan]
    """
    check_same_index(predictions=predictions, features=features, eras=eras)
    x, rows = predictions_by_era(predictions, eras)
    exposures = _exposures(x, features, feature_names, rows)
    return exposures[0] if rows.labels is None else exposures


def max_feature_exposure(
    predictions: ArrayLike,
    features: ArrayLike,
    eras: ArrayLike | None = None,
    *,
    feature_names: Sequence[str] | None = None,
) -> EraScores | float:
    r"""Compute the largest absolute correlation with a feature, era by era.

    .. math:: \max_j |\operatorname{pearson}(x, f_j)|

    over the features that are not constant in the era (numerai-tools 0.7.2,
    ``max_feature_correlation``; which feature it is, :func:`feature_exposures` tells).

    Parameters
    ----------
    predictions : array-like of shape (n_samples,)
        Finite numbers.

    features : array-like of shape (n_samples, n_features)
        Integers or finite floats, converted to float64 one era at a time.

    eras : array-like of shape (n_samples,), default=None
        Era of each row, in any order. None: all rows are one era.

    feature_names : sequence of str of length n_features, default=None
        What messages call the features. None: the columns of a data frame, or else
        their positions.

    Returns
    -------
    scores : EraScores or float
        Between 0 and 1; NaN in eras where the predictions are constant, or all
        features. The smaller, the better: pass ``greater_is_better=False`` to
        :func:`~sklearn_era.metrics.aggregate_era_scores`.

    Raises
    ------
    ValueError
        As :func:`feature_exposures`.

    Examples
    --------
    >>> from sklearn_era.numerai.metrics import max_feature_exposure
    >>> round(max_feature_exposure([1, 2, 3], [[0, 4], [1, 2], [2, 0]]), 6)
    1.0
    """
    check_same_index(predictions=predictions, features=features, eras=eras)
    x, rows = predictions_by_era(predictions, eras)
    sizes = np.abs(_exposures(x, features, feature_names, rows))
    # Of NaN alone, `fmax` makes NaN, and does not warn as `nanmax` does.
    return rows.result(np.fmax.reduce(sizes, axis=1))


def _exposures(
    x: NDArray[np.float64],
    features: ArrayLike,
    feature_names: Sequence[str] | None,
    rows: EraRows,
) -> NDArray[np.float64]:
    exposures = []
    for index, block in feature_blocks(features, feature_names, rows, x.size):
        own = x[index]
        constant = (block == block[0]).all(axis=0) | (own.min() == own.max())
        own = own - own.mean()
        centered = block - block.mean(axis=0, dtype=np.float64)
        norms = np.sqrt(np.einsum("ij,ij->j", centered, centered)) * np.sqrt(own @ own)
        norms[constant] = 1.0
        correlations = np.clip((own @ centered) / norms, -1.0, 1.0)
        correlations[constant] = np.nan
        exposures.append(correlations)
    return np.array(exposures)


__all__ = ["feature_exposures", "max_feature_exposure"]
