"""Choose between an average of members and a fallback, by losses in rows left out.

The average whose weights are from folds of eras is kept if it is better than the plain
model by more than a standard error over eras. The first fallback is the average whose
weights are from folds of rows; the last fallback is the plain model.
"""

import numpy as np

from ..metrics._mean_errors import mean_and_error
from ._candidates import PLAIN
from ._row_losses import Loss
from ._weights import (
    Array,
    LeftOut,
    Weighted,
    diverging,
    error_of_mean,
    predictions_at,
    weigh,
)

# The average by folds of rows is kept if its mean gain in rows is larger than so many
# standard errors.
_ERRORS_OF_ROWS = 2.0


def keep(
    eras: LeftOut, rows: LeftOut, loss: Loss, are_ordered: bool = False
) -> tuple[Weighted, Array]:
    """Return the members to keep, and the predictions of an average in eras left out.
    Keep all members if their average gains in these eras, or if the plain model
    diverges. Else, keep members with weights from folds of rows, if they gain in rows
    beyond doubt. Else, keep the plain model, and return the predictions of the average
    of all members.
    """

    def average_of(weighted: Weighted) -> tuple[Array, Array]:
        average = np.array(list(weighted.weights.values())) @ weighted.predicted
        gain = loss(eras.y, eras.predicted[PLAIN][-1]) - loss(eras.y, average)
        return average, gain

    found = weigh(eras, rows, loss, are_ordered)
    average, gains = average_of(found)
    gain_of_eras, error_of_eras = eras.gain_and_error(gains, are_ordered)
    if gain_of_eras > error_of_eras or PLAIN in diverging(eras, loss):
        return found, average
    # With few eras this error is large, where thousands of rows leave no doubt; but not
    # rows of folds of eras, as rows of an era resemble each other.
    if rows is not eras:
        of_rows = weigh(eras, rows, loss, are_ordered, share=0.0)
        other, gains = average_of(of_rows)
        names = [name for name, weight in of_rows.weights.items() if weight > 0]
        best = {name: int(rows.losses(name, loss).argmin()) for name in names}
        shares = np.array([of_rows.weights[name] for name in names])
        plain = loss(rows.y, rows.predicted[PLAIN][-1])
        gain = plain - loss(rows.y, shares @ predictions_at(rows, best))
        mean = rows.weights @ gain
        error = float(np.sqrt(rows.weights**2 @ (gain - mean) ** 2))
        if eras.groups is not None:  # rows are of later times
            error = error_of_mean(rows.by_era(gain), are_ordered)
        of_eras = mean_and_error(eras.by_era(gains))[0]
        if mean > _ERRORS_OF_ROWS * error and of_eras > 0:
            return of_rows, other
    predicted = found.predicted.copy()
    predicted[0] = eras.predicted[PLAIN][-1]
    weights = dict.fromkeys(found.weights, 0.0) | {PLAIN: 1.0}
    stages = found.stages | {PLAIN: eras.stages[PLAIN][-1]}
    return Weighted(stages, weights, predicted), average
