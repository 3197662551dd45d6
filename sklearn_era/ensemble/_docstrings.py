"""Make docstrings for estimators, from scikit-learn's own, and for predictions."""

import inspect
from collections.abc import Callable
from typing import TypeVar

from ._parameter_table import PARAMETERS, document

_Method = TypeVar("_Method", bound=Callable[..., object])

# Returned values of predictions.
CLASSES = "y : ndarray of shape (n_samples,)\n    The {}."
PROBABILITIES = """\
p : ndarray of shape (n_samples, n_classes)
    In the order of `classes_`."""

_SUMMARY = """\
scikit-learn's estimator of the same name, with split criteria that can compare
eras: weeks, hospitals, regions. With `split_criterion="gain"`, the default, the
fitted trees are bit-identical to scikit-learn's (but early stopping holds out whole
eras if ``fit`` gets any; see `validation_eras`). The text up to the era parameters
is scikit-learn's own documentation.
"""

_ATTRIBUTES = """\
feature_importances_ : ndarray of shape (n_features,)
    Share of each feature in the pooled gains of all splits.
validation_eras_ : ndarray of shape (n_held_out,)
    Labels of the eras that early stopping held out, sorted. Exists only if whole
    eras were held out (see `validation_eras`).
era_intercepts_ : dict
    Intercept of each training era, by its label: a float, or an array of shape
    (n_classes,) with more than two classes. Exists only with `era_effects`.
era_weights_ : dict
    By the label of each training era, an array of shape ``(n_iter_,)``: the factors of
    its rows' weights in each iteration. Exists only if `era_weighting` is not
    'rows'. After a warm start with other eras, earlier iterations have NaN.
"""

_END = """\
References
----------
.. [1] R. DerSimonian, N. Laird (1986), Meta-analysis in clinical trials. Controlled
   Clinical Trials 7, 177-188.
.. [2] B. Efron, C. Morris (1975), Data analysis using Stein's estimator and its
   generalizations. Journal of the American Statistical Association 70, 311-319.

Examples
--------
>>> from sklearn_era.datasets import make_synthetic_memorization
>>> from sklearn_era.ensemble import {name}
>>> data = make_synthetic_memorization(random_state=0)
>>> est = {name}(split_criterion="directional")
>>> est = est.fit(data.X_train, data.y_train, eras=data.eras_train)
>>> est.predict(data.X_test).shape
(2000,)
"""


def era_docstring(upstream: type) -> str | None:
    """Return scikit-learn's docstring with additions; None with ``python -OO``."""
    if upstream.__doc__ is None:
        return None
    # Without the indentation of the source, which Python 3.13 strips by itself.
    first_line, _, rest = inspect.cleandoc(upstream.__doc__).partition("\n")
    body, _, _ = rest.partition("Examples\n--------\n")
    title = "\nAttributes\n----------\n"
    body = body.replace(title, document(PARAMETERS) + title + _ATTRIBUTES, 1)
    body = body.replace(
        "For each categorical feature, there must be at most `max_bins` unique\n"
        "    categories.",
        "If there are more than `max_bins` categories, the most frequent ones have\n"
        "    a bin each, and others share a bin with categories of a similar effect\n"
        "    in other eras.",
    )
    end = _END.format(name=upstream.__name__)
    return f"{first_line}\n\n{_SUMMARY}{body}{end}"


def predicts(
    summary: str, returned: str, kind: str = "", eras: str = "",
    heading: str = "Returns",
) -> Callable[[_Method], _Method]:  # fmt: skip
    """Return a decorator that writes the docstring of a method that predicts. The
    docstring lists the parameter X and, if `kind` (the type of eras) is not empty, the
    parameter eras, which the text `eras` describes.
    """
    underline = "-" * len(heading)
    parameters = """\
X : array-like of shape (n_samples, n_features)
    The rows to predict."""
    if kind:
        parameters += f"\n\neras : {kind}, default=None\n    {eras}"

    def decorate(method: _Method) -> _Method:
        method.__doc__ = (
            f"{summary}\n\nParameters\n----------\n{parameters}\n\n"
            f"{heading}\n{underline}\n{returned}\n"
        )
        return method

    return decorate
