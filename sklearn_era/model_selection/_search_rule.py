"""Choose a search's best candidate, or the best beyond one standard error.

The error is the standard error of a mean over test eras; eras of a fold share a model.
"""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..metrics._mean_errors import error_of_neighbours, mean_and_error


def compare_candidates(
    scores: NDArray[np.float64], rule: str, is_ordered: bool
) -> dict[str, NDArray[Any]]:
    """Return the columns of `cv_results_` by which the rule chooses a candidate, from
    scores by candidate, fold and era. By the rule "one_standard_error", a candidate
    qualifies if it is better than the first one, the plain model, by more than the
    standard error of the difference.
    """
    by_era = mean_over_folds(scores)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of candidates that failed in all eras
        results = {
            "mean_era_score": np.nanmean(by_era, axis=1),
            "worst_era_score": np.nanmin(by_era, axis=1, initial=np.inf),
            "qualifies": np.full(by_era.shape[0], True),
        }
    # Also where there is no era at all.
    results["worst_era_score"][np.isnan(by_era).all(axis=1)] = np.nan
    if rule == "one_standard_error":
        mean, error = mean_and_safe_error(scores - scores[0], is_ordered)
        results |= {"mean_difference": mean, "se_difference": error}
        results["qualifies"] = mean > error
    return results


def best_index(results: dict[str, Any], choose_by: str) -> int:
    """Return the index of a qualifying candidate: the one with the highest mean over
    eras or the highest worst era. Return 0, the plain model, if no candidate qualifies.
    """
    scores = results[f"{choose_by}_era_score"]
    return int(np.argmax(np.where(results["qualifies"], scores, -np.inf)))


def mean_and_safe_error(
    differences: NDArray[np.float64], are_ordered: bool
) -> tuple[Any, Any]:
    """Return means over eras of `differences`, of shape (..., n_folds, n_eras) with NaN
    in eras that a fold does not test, and standard errors of the means. Each error is
    the larger of two: one is for independent eras or, if `are_ordered`, for related
    neighbours; the other is for eras of a fold, which share a model.
    """
    by_era = mean_over_folds(differences)
    mean, error = mean_and_error(by_era)
    if are_ordered:
        rows = by_era.reshape(error.size, by_era.shape[-1])
        error = np.reshape([error_of_neighbours(row)[0] for row in rows], error.shape)
    return mean, np.fmax(error, _error_of_folds(differences))


def mean_over_folds(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each era's score, the mean over folds that test the era (mostly one)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an era without a score
        return np.nanmean(scores, axis=-2)


def _error_of_folds(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard error of the mean of all differences, which may depend on
    each other within folds. For folds of equal size, this is the error of the mean of
    fold means. It is NaN for a single fold.
    """
    is_known = np.isfinite(differences)
    n_known = np.maximum(is_known.sum(axis=(-2, -1)), 1)
    total = np.where(is_known, differences, 0.0).sum(axis=(-2, -1))
    residuals = differences - (total / n_known)[..., np.newaxis, np.newaxis]
    of_folds = np.where(is_known, residuals, 0.0).sum(axis=-1)
    n_folds = is_known.any(axis=-1).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.where(n_folds > 1, n_folds / (n_folds - 1), np.nan)
    return np.sqrt(scale * (of_folds**2).sum(axis=-1)) / n_known
