"""Docstrings of the estimators: scikit-learn's own, with the era parameters inserted.

scikit-learn's text is read from the installed version, and holds word for word.
"""

import inspect
import re
from textwrap import dedent

from ._parameter_table import PARAMETERS, document

_SUMMARY = """\
    scikit-learn's estimator of the same name, with split criteria that can compare
    eras: weeks, hospitals, regions. With `split_criterion="gain"`, the default, the
    fitted trees are bit-identical to scikit-learn's (but early stopping holds out whole
    eras if ``fit`` gets any; see `validation_eras`). The text up to the era parameters
    is scikit-learn's own documentation.
"""

_ATTRIBUTES = """    feature_importances_ : ndarray of shape (n_features,)
        Share of each feature in the pooled gains of all splits.
    validation_eras_ : ndarray of shape (n_held_out,)
        Labels of the eras that early stopping held out, sorted. Exists only if it held
        out whole eras (see `validation_eras`).
    era_intercepts_ : dict
        Intercept of each training era, by its label: a float, or an array of shape
        (n_classes,) with more than two classes. Exists only with `era_effects`.
    era_weights_ : dict
        By the label of each training era, an array of shape (n_iter_,): the factors of
        its rows' weights in each iteration. Exists only if `era_weighting` is not
        'rows'. After a warm start with other eras, earlier iterations have NaN.
"""

_REFERENCES = """    References
    ----------
    .. [1] R. DerSimonian, N. Laird (1986), Meta-analysis in clinical trials. Controlled
       Clinical Trials 7, 177-188.
    .. [2] B. Efron, C. Morris (1975), Data analysis using Stein's estimator and its
       generalizations. Journal of the American Statistical Association 70, 311-319.

"""

_EXAMPLES = """    Examples
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
    """Return scikit-learn's docstring with era parameters; None with ``python -OO``."""
    if upstream.__doc__ is None:
        return None
    # Without the indentation of the source, which Python 3.13 strips by itself.
    first_line, _, rest = inspect.cleandoc(upstream.__doc__).partition("\n")
    body, _, _ = rest.partition("Examples\n--------\n")
    body = re.sub(
        r"(?m)^\n(Attributes\n-+\n)",
        lambda match: (
            dedent(document(PARAMETERS)) + "\n" + match[1] + dedent(_ATTRIBUTES)
        ),
        body,
        count=1,
    )
    body = body.replace(
        "For each categorical feature, there must be at most `max_bins` unique\n"
        "    categories.",
        "If there are more than `max_bins` categories, the most frequent ones have\n"
        "    a bin each, and all others share one.",
    )
    return (
        f"{first_line}\n\n"
        + dedent(_SUMMARY)
        + body
        + dedent(_REFERENCES)
        + dedent(_EXAMPLES.format(name=upstream.__name__))
    )
