"""Make a scorer for the rows of one era."""

from typing import Any

from sklearn.metrics import check_scoring, make_scorer

from ..metrics import EraScorer
from ..metrics._metric import metric_name
from ..model_selection._search_scores import asks_for_eras, of_classes


def scorer_of_an_era(estimator: Any, scoring: Any) -> tuple[Any, str]:
    """Return a scorer to call with the rows of one era, and the name of the score."""
    if isinstance(scoring, EraScorer):
        metric = scoring._score_func
        name = metric_name(metric.metric).replace("_", " ")
        name = name if metric.greater_is_better else f"minus {name}"
        scorer = make_scorer(
            metric.metric, greater_is_better=metric.greater_is_better,
            response_method=scoring._response_method, **scoring._kwargs,
        )  # fmt: skip
        return of_classes(scorer), name
    if isinstance(scoring, (list, tuple, set, dict)):
        raise ValueError(
            f"scoring must be one scorer: one score an era is drawn; got {scoring!r}."
        )
    scorer = check_scoring(estimator, scoring)
    if asks_for_eras(scorer):
        raise ValueError(
            f"scoring={scoring!r} asks for eras, but each era is scored by itself: "
            "pass a scorer without a parameter eras."
        )
    return of_classes(scorer), scoring if isinstance(scoring, str) else "score"
