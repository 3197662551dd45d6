"""Update levels, weights and trees of an average by eras whose targets arrive later."""

from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as t_distribution
from sklearn import config_context
from sklearn.base import BaseEstimator, is_classifier
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import indexable
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import (
    _num_samples,
    check_consistent_length,
    check_is_fitted,
)

from .._era_labels import as_objects, find, join, label_texts, ranks
from .._era_routing import question_of, take_fitted_columns
from .._fit_attributes import restores_on_failure
from .._scikit_learn import check_sample_weight, names_checked_once
from .._tables.checks import check_table
from .._tables.target import check_y
from .._typing import Eras
from .._warnings import listed, warn_user, warned_once
from ..model_selection._out_of_era import folds_warned_once
from ._categories import columns_of
from ._member_search import Rows, respond
from ._row_losses import Loss, loss_of
from ._weights import LeftOut, equal_eras, update_weights

# With less, the loss in new eras is larger than chance explains.
_LEAST_P_VALUE = 0.05
# Models around others; those of this package have `_hands_eras_on`.
_OUTER = TransformedTargetRegressor, BaseSearchCV
_INNER = "regressor_", "best_estimator_", "estimator_"


class TakesInEras:
    """Adds the method `update` to averages, for eras whose targets became known."""

    _as_target: Any  # a vector of targets
    _weights_of: Any  # rows' weights, with those of their classes
    _plain_model: Any

    def _fitted_plain(self) -> Any:
        """Return the plain model of the fit: `estimator` may be another one by now."""
        kept = vars(self).get("_plain")  # models of before have none
        return self._plain_model() if kept is None else kept

    @restores_on_failure
    def update(
        self, X: Any, y: Any, *, eras: Eras | None = None, sample_weight: Any = None
    ) -> Self:
        """Update the average by rows of eras whose targets became known since the fit.

        Members with intercepts, also those in pipelines, searches and other models that
        hand eras on, estimate the levels of eras anew, and keep their trees. The levels
        of an ``EraTargetTransformer`` stay. The weights of members move towards the
        weights that are best in the eras left out before and the new eras together: the
        clearer the gain, the further. A t-test at 5 % checks whether the loss of the
        average is larger in new eras than in eras left out before. If eras are one
        column, the levels of new eras are forecasts for `horizon` eras ahead in this
        test, as in ``predict`` without eras. If the loss is larger, and if `X` has the
        rows of all earlier eras too, the members are fitted to all rows of `X`; without
        these rows, a warning asks for them. A dict is added to `update_log_`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of new eras, and of all earlier eras to allow for a refit.
        y, eras : array-like of shape (n_samples,)
            Targets and eras of the rows. `eras` may name a column of X; times and
            groups are two names, a frame of two columns, or a tuple of two arrays.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of rows.

        Returns
        -------
        self : object
            The model, updated.

        Raises
        ------
        ValueError
            If `y` or `eras` is missing, or `X` has no rows; if all eras were seen
            before; if eras are ordered and a new era precedes the last known one; if
            new eras have no weight; or if `y` has a class that the fit lacks.
        """
        check_is_fitted(self)
        if eras is None or y is None:
            raise ValueError("update needs targets and eras: pass X, y and eras=...")
        check_table(X)
        if _num_samples(X) == 0:
            raise ValueError("X has no rows: pass the rows of an era that is new.")
        X, eras = take_fitted_columns(self, X, eras)
        X, y = indexable(X, self._as_target(y))
        sample_weight = self._weights_of(X, y, sample_weight)
        log = self.__dict__.get("update_log_", [])
        loss = loss_of(self._fitted_plain())
        routing = config_context(enable_metadata_routing=False)
        with routing, names_checked_once(self, X):
            entry = _update_average(self, X, y, eras, sample_weight, loss)
        self.update_log_ = [*log, entry]
        return self


def _update_average(
    model: BaseEstimator, X: Any, y: Any, eras: Any, sample_weight: Any, loss: Loss
) -> dict[str, Any]:
    """Update an average's intercepts and weights with rows of new eras, and its trees
    if the loss is larger than expected. Return the entry for `update_log_`.
    """
    check_consistent_length(X, y)
    known = model._known_eras
    eras, encoded = model._read(eras, X)
    y = check_y(y, model)
    weights = check_sample_weight(sample_weight, X, dtype=np.float64)
    given, kept = encoded.labels, encoded.rows_with_weight(weights)  # as in the fit
    every = Rows(X, y, eras, sample_weight, encoded).take(kept)
    encoded, labels = every.encoded, every.encoded.labels
    is_new = find(known, labels) < 0
    rows = np.flatnonzero(is_new[encoded.codes])
    new = every._replace(sample_weight=weights[kept]).take(rows)
    _check_new(model, given, labels[is_new], every.y)
    before, asked, groups = LeftOut(**model._left_out), new, None
    group = question_of(model)["group"]
    if encoded.groups is not None:
        found, known_groups = encoded.groups.labels, model._known_groups
        n_known = known_groups.size
        known_groups = join(known_groups, found[find(known_groups, found) < 0])
        groups = find(known_groups, found)[encoded.groups.codes[rows]]
        # Others have another loss than the groups that the model is for.
        own = np.flatnonzero((groups < n_known) == (group == "known"))
        asked, groups = new.take(own), groups[own]
    after, tells = before, asked.sample_weight.any()
    if tells:
        after = _with_new_eras(model, before, asked, groups)
    shares = np.array([model.weights_[name] for name in before.predicted])
    losses = after.by_era(loss(after.y, shares @ after.at_end()))
    entry: dict[str, Any] = {"eras": as_objects(labels[is_new])}
    entry |= _compare(losses, np.unique(before.codes).size)
    refit, X_of = False, model._columns_of(new.X)
    if entry["p_value"] < _LEAST_P_VALUE:
        refit = {*range(known.size)} <= {*find(known, given).tolist()}
        if not refit:
            warn_user(
                f"The loss in {len(entry['eras'])} new eras, {entry['loss']:.4g}, is "
                f"larger than expected, {entry['expected']:.4g} ± "
                f"{entry['error']:.2g}: pass update the rows of all earlier eras, too, "
                "for a refit."
            )
    entry["refit"] = refit
    members = dict(model.members_)
    if not refit:
        new_rows = new.y, new.eras, new.sample_weight
        for name, member in members.items():
            members[name] = _with_levels(member, X_of(name), *new_rows)
    if tells:
        found = update_weights(after, shares, loss, model.era_order_ == "ordered")
        new_weights = zip(before.predicted, found.tolist(), strict=True)
        model.weights_ = model.weights_ | dict(new_weights)
    else:
        warn_user(
            f"No row of the {len(entry['eras'])} new era(s) is of a {group} "
            f"group, which the model is for (group={group!r}): their loss is "
            "unknown, NaN in update_log_, and weights stay as they are."
        )
    entry["weights"] = {name: w for name, w in model.weights_.items() if w > 0}
    if refit:
        # Models of before have no encoder.
        is_encoded = vars(model).get("encoder_") is not None
        is_ordered = model.era_order_ == "ordered"
        given = model._fitted_plain(), model.members, every, is_ordered, is_encoded
        with warned_once(), folds_warned_once(model.n_jobs, "the rows of all eras"):
            model._fit_members(members, columns_of(*given)[1], every)
    else:
        model.members_ = members
    model._left_out = after.parts()
    model._known_eras = join(known, labels[is_new])
    if encoded.groups is not None:
        model._known_groups = known_groups
    return entry


def _with_levels(
    member: Any, X: Any, y: NDArray[Any], eras: Any, weights: NDArray[np.float64]
) -> Any:
    """Return a copy of a fitted member. In the copy, boosters with intercepts, also
    inside other models, have estimated the levels of the rows' eras. Return a member
    without such boosters itself: its transformers need not take the rows' targets.
    """
    if not _has_levels(member):
        return member
    model, rows = copy(member), (y, eras, weights)
    if isinstance(model, FrozenEstimator):
        model.estimator = _with_levels(model.estimator, X, *rows)
    elif hasattr(model, "steps"):
        *steps, (name, last) = model.steps
        with config_context(enable_metadata_routing=True):
            for _, step in steps:
                is_by_era = get_routing_for_object(step).consumes("transform", ["eras"])
                if hasattr(step, "transform"):
                    known = {"eras": eras} if is_by_era else {}
                    X = step.transform(X, **known)
        model.steps = [*steps, (name, _with_levels(last, X, *rows))]
    elif getattr(model, "era_effects", None) is not None:
        model._update_intercepts(X, *rows)
    elif hasattr(model, "members_"):
        X_of, inner = model._columns_of(X), model.members_.items()
        model.members_ = {x: _with_levels(one, X_of(x), *rows) for x, one in inner}
    elif isinstance(model, _OUTER) or hasattr(model, "_hands_eras_on"):
        if hasattr(model, "transformer_"):
            known = {"eras": eras} if hasattr(model, "_hands_eras_on") else {}
            y = model.transformer_.transform(y[:, np.newaxis], **known)[:, 0]
        for name in _INNER:
            if (inner := vars(model).get(name)) is not None:
                setattr(model, name, _with_levels(inner, X, y, eras, weights))
    return model


def _has_levels(model: Any) -> bool:
    """Return whether a model, or one inside it, is a booster with intercepts."""
    inner: list[Any] = []
    if isinstance(model, FrozenEstimator):
        inner = [model.estimator]
    elif hasattr(model, "steps"):
        inner = [model.steps[-1][1]]
    elif hasattr(model, "members_"):
        inner = [*model.members_.values()]
    elif isinstance(model, _OUTER) or hasattr(model, "_hands_eras_on"):
        inner = [vars(model).get(name) for name in _INNER]
    elif getattr(model, "era_effects", None) is not None:
        return True
    return any(map(_has_levels, inner))


def _check_new(
    model: BaseEstimator, given: NDArray[Any], new: NDArray[Any], y: Any
) -> None:
    """Raise ValueError if all eras in `given` are known, if `new` is empty (no new era
    has weight), if eras are ordered and a new era precedes the last known one, or if
    `y` has an unknown class.
    """
    if (find(model._known_eras, given) >= 0).all():
        raise ValueError(
            f"eras holds {given.size} era(s), all of which the model has seen "
            f"({listed(label_texts(given))}); pass rows of an era that is new, or call "
            "fit."
        )
    if not new.size:
        raise ValueError(
            "sample_weight is 0 in all new eras, so that they show nothing; pass "
            "weights above 0."
        )
    if model.era_order_ == "ordered":
        known = model._known_eras
        of_known, of_new = ranks(known, new)
        if (first := min(of_new)) < of_known[-1]:
            early = new[of_new.index(first)]
            raise ValueError(
                f"eras holds {early}, which is new but lies before the last known era, "
                f"{known[-1]}: levels go on from the last one, so call fit with all "
                "rows."
            )
    if is_classifier(model) and (unseen := {*y.tolist()} - {*model.classes_.tolist()}):
        raise ValueError(
            f"y holds the class {sorted(unseen, key=repr)[0]!r}, which the fit has not "
            "seen: call fit with all rows."
        )


def _with_new_eras(
    model: BaseEstimator, before: LeftOut, new: Rows, groups: ArrayLike | None
) -> LeftOut:
    """Return `before`, extended by the rows of new eras and members' predictions of
    these rows. Members have not seen the new eras: as in `before`, all predictions are
    for rows left out of the fits.
    """
    X, y, eras, weights, encoded = new
    n_eras = np.unique(before.codes).size
    # All eras count the same.
    added = equal_eras(encoded.codes, weights)
    weights = np.concatenate([before.weights * n_eras, added])
    predicted, X_of = dict(before.predicted), model._columns_of(X)
    for name, values in predicted.items():
        of_new = respond(model.members_[name], X_of(name), y, [0], eras)
        predicted[name] = np.concatenate([values, of_new], axis=1)
    y = np.concatenate([before.y, np.zeros(len(y)) if is_classifier(model) else y])
    codes = np.concatenate([before.codes, n_eras + encoded.codes])
    if groups is not None:
        groups = np.concatenate([before.groups, groups])
    weights /= weights.sum()
    return LeftOut(predicted, before.stages, y, weights, codes, groups)


def _compare(losses: NDArray[np.float64], n_before: int) -> dict[str, Any]:
    """Return a dict that compares losses of eras: the mean `loss` of new eras, the loss
    `expected` from the first `n_before` eras, the `error` of their difference, and the
    `p_value` of a larger loss in new eras.
    """
    of_before, of_new = (x[np.isfinite(x)] for x in np.split(losses, [n_before]))
    n, expected = of_before.size, float(of_before.mean())
    loss, error, p_value = float("nan"), float("nan"), 1.0
    if of_new.size:  # some group that the model is for
        loss = float(of_new.mean())
        if n > 1:
            error = float(of_before.std(ddof=1) * np.sqrt(1 / n + 1 / of_new.size))
        if error > 0:
            p_value = float(t_distribution.sf((loss - expected) / error, n - 1))
    return {"loss": loss, "expected": expected, "error": error, "p_value": p_value}
