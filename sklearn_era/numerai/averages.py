"""Fits with ``estimator = "auto"``: weighted averages of models."""

from collections.abc import Mapping
from typing import Any

from sklearn_era.auto import AutoEraRegressor
from sklearn_era.model_selection import EraWalkForwardSplit
from sklearn_era.numerai.config import Model, TrainSection
from sklearn_era.numerai.errors import ConfigError, ExportError

_N_FOLDS = 3


def make_average(
    plain: Any, settings: TrainSection, n_eras: int, purge: int
) -> AutoEraRegressor:
    """Return an unfitted average of the plain model and others, for `n_eras` eras.

    Its folds walk forward through the last half of the eras, or of their groups, with
    a purge of `purge` weeks before each, as in a validation.
    """
    n_labels, n_weeks = settings.era_groups or n_eras, settings.every_nth_era
    # In eras of the fit: of `every_nth_era` weeks, one is taken.
    gap = -(-(purge + 1) // n_weeks) - 1
    gap = -(-gap // (n_eras // n_labels))
    if n_labels < gap + _N_FOLDS + 1:
        of = "eras" if n_labels == n_eras else f"groups of the {n_eras} eras"
        raise ConfigError(
            f"[train] estimator = 'auto' needs {gap + _N_FOLDS + 1} eras to learn from "
            f"some and leave others out, with a purge of {purge} weeks, and there are "
            f"{n_labels} {of}: use more eras, more era_groups, a lower every_nth_era "
            "or fewer [validate] folds, or set estimator = 'boosting'."
        )
    n_tested = max(1, min(n_labels // (2 * _N_FOLDS), (n_labels - gap) // 4))
    return AutoEraRegressor(
        plain,
        cv=EraWalkForwardSplit(_N_FOLDS, test_size=n_tested, gap=gap),
        time_budget=settings.time_budget or None,
        verbose=1,
        era_order="ordered",
    )


def with_splits(name: str, model: Any) -> tuple[str, Any]:
    """A fit and its name; for an average, those of its heaviest member with trees."""
    of: Mapping[str, float] = getattr(model, "weights_", {})
    for member in sorted(of, key=lambda x: -of[x]):  # by their weights
        if hasattr(found := model.members_.get(member), "_predictors"):
            return f"{name}, {member} ({of[member]:.0%} of the average)", found
    return name, model


def check_portable(model: Model) -> None:
    """Raise ExportError if a fit of the model is an average."""
    for member in model.members:
        if member.train.estimator == "auto":
            raise ExportError(
                f"estimator = 'auto' of {model.name!r} cannot be exported, as a "
                "portable model holds trees alone: submit its predictions with "
                "'sklearn-era numerai run', or set estimator = 'boosting'."
            )
