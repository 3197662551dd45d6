"""The parameters that are ours: defaults, values, documentation, and who has them.

Signatures spell them out, as scikit-learn and editors read them there; a test holds
them to this table.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any, NamedTuple, ParamSpec

from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions

from .._parameter_object import ParameterObject
from .._renamed import did_you_mean, refuse_moved
from .._threads import N_JOBS_CONSTRAINTS
from ..criteria._base import SplitCriterion
from ..criteria._criteria import CRITERIA
from ..effects import GroupDRO, Intercepts, Recency

_P = ParamSpec("_P")


class Parameter(NamedTuple):
    """A parameter of the boosters, and perhaps of the forests."""

    default: Any
    constraints: list[Any]
    kind: str  # as numpydoc has it
    text: str
    is_of_forests: bool = True


PARAMETERS = {
    "split_criterion": Parameter(
        "gain",
        [StrOptions(set(CRITERIA)), dict, SplitCriterion],
        f"{{{', '.join(map(repr, CRITERIA))}}}, dict or object",
        """
        What a split is chosen by: an object of :mod:`sklearn_era.criteria`, where the
        formulas are, its name, or a dict such as ``{'era': 1, 'directional': 0.5}``,
        which stands for a :class:`~sklearn_era.criteria.Blend`. All but 'gain' need
        `eras` in ``fit``. In a grid, ``split_criterion__min_agreement`` and the like
        are the parameters of the criterion.
        """,
    ),
    "min_samples_per_era": Parameter(
        1,
        [Interval(Integral, 1, None, closed="left")],
        "int",
        """
        Rows that a split has to leave on each side for an era to be covered, whatever
        their weights. 'gain' and 'held_out' do not ask.
        """,
    ),
    "min_era_coverage": Parameter(
        0.1,
        [Interval(Real, 0, 1, closed="right")],
        "float",
        """
        Share of the training eras, in (0, 1], that a split has to cover. The papers'
        rule is ``min_era_coverage=1.0, min_gain_share=0.0``, under which trees end
        early where eras are small; the defaults were chosen on public data. 'gain' and
        'held_out' do not ask.
        """,
    ),
    "min_gain_share": Parameter(
        0.5,
        [Interval(Real, 0, 1, closed="both")],
        "float",
        """
        Share of the largest gain over all rows among the splits of a node, in [0, 1],
        that a split has to have: the criterion chooses among those that do. Where it
        admits none of them, the node takes the split of the largest gain, and nodes are
        expanded in the order of their gains. So no split gives up more than the rest,
        and trees grow as large as by 'gain'. 0 leaves all to the criterion, and 1
        leaves it ties alone.
        """,
    ),
    "min_impurity_decrease": Parameter(
        0.0,
        [Interval(Real, 0, None, closed="left")],
        "float",
        """
        The least gain of a split over all rows, by unit of the training set's sum of
        hessians, as in scikit-learn's trees; 0 asks nothing.
        """,
    ),
    "era_order": Parameter(
        "auto",
        [StrOptions({"auto", "ordered", "unordered"})],
        "{'auto', 'ordered', 'unordered'}",
        """
        Whether eras follow each other, where a parameter depends on it. With 'auto',
        numbers, dates, periods and ordered categoricals do (the latter in the order of
        their categories), and so does text that is numbers or dates of one form
        (``"0001"``, ``"2024-01"``, ``"2024-W07"``), with a warning; booleans do not,
        and other text raises. With 'ordered', text is taken in its own order.
        """,
    ),
    "validation_eras": Parameter(
        "auto",
        [StrOptions({"auto", "last", "random"}), None],
        "{'auto', 'last', 'random'} or None",
        """
        What early stopping holds out where ``fit`` is given `eras` and no `X_val`:
        whole eras, the last ones or random ones, or, with None, rows at random as in
        scikit-learn. 'auto' is the last ones where eras follow each other (see
        `era_order`), and random ones where not. `validation_fraction` is then the share
        of the eras, rounded up, or their number. A single era is never held out.
        """,
        is_of_forests=False,
    ),
    "era_weighting": Parameter(
        "rows",
        [StrOptions({"rows", "equal"}), Recency, GroupDRO],
        "{'rows', 'equal'} or object",
        """
        What an era weighs in all sums over rows: as much as its rows do, as much as any
        other, or as :class:`~sklearn_era.effects.Recency` and, for boosters,
        :class:`~sklearn_era.effects.GroupDRO` describe. Such weights multiply
        `sample_weight`, and the sum of all weights stays the same: the model is the one
        that the product, passed as `sample_weight`, gives (but a `BinnedDataset` keeps
        the bins that it has). All but 'rows' need `eras` in ``fit``, and count those
        that early stopping holds out; of several columns of eras, a forest takes the
        first.
        """,
    ),
    "leaf_shrinkage": Parameter(
        None,
        [StrOptions({"eras"}), None],
        "{'eras'} or None",
        """
        With 'eras', the value v of a leaf is multiplied by ``A / (A + var(v))``. The
        variance of v is by moments, from how much its values ``-G_j / H_j`` in each era
        differ [1]_; A is the variance of the values of the tree's leaves about 0, less
        the mean of var(v) [2]_. A leaf that means something else in each era comes
        close to 0. With monotonic constraints all leaves of a tree get the mean factor,
        which keeps their order; of a single era nothing is shrunk. Needs `eras` in
        ``fit``.
        """,
        is_of_forests=False,
    ),
    "era_effects": Parameter(
        None,
        [StrOptions({"intercept"}), Intercepts, None],
        "{'intercept'}, object or None",
        """
        With 'intercept', which stands for :class:`~sklearn_era.effects.Intercepts`,
        each training era has an intercept in the raw prediction, and trees are grown
        beside it. What is predicted for is the next era, by the forecast of its
        intercept, or an era given to ``predict``. Needs `eras` in ``fit``.
        """,
        is_of_forests=False,
    ),
    "feature_penalty": Parameter(
        None,
        ["array-like", Mapping, None],
        "array-like of shape (n_features,), mapping or None",
        """
        What the splits of each feature pay: numbers of 0 or more, by the columns of X,
        or a mapping from their names or places, in which all others have 0. The unit is
        the largest key K of the node's admissible splits: the gain over all rows
        ('gain'), ``B_alpha`` ('era'), the share of eras ('directional') or the key
        ('vrex', 'held_out' and blends). Where a key may be negative, it is the largest
        gain over all rows ('invariant') or decrease of impurity ('time_robust'). A
        split of a feature with penalty p ranks by its key less ``p K``, and its node
        waits by that. It is valid where what has to be positive is so less ``p K``: the
        key, with 'invariant' the gain over all rows, and with 'time_robust' the
        decrease, which has to exceed the criterion's `min_impurity_decrease`. So with
        0.2, a feature splits a node where its key is larger than all others by a fifth
        of the largest. 1 or more forbids a feature: all is as if X did not have it,
        draws of features too. With a `min_gain_share`, shares are of the largest gain
        that is left when each feature has paid p times the largest of all, and K is of
        the splits that have theirs. Nodes then wait by the gain that is left, which
        decides where the criterion admits no split. Splits of 'gain' are found by the
        kernel of the other criteria, where any penalty is positive. None or zeros
        change nothing.
        """,
    ),
    "colsample_bytree": Parameter(
        1.0,
        [Interval(Real, 0, 1, closed="right")],
        "float",
        """
        Share of the features, in (0, 1], that is drawn at random for each tree, with
        every criterion: ``max(1, ceil(colsample_bytree * n_features))`` of them,
        without replacement. No histogram is built of the others, which is most of what
        a tree of many rows costs. `max_features` draws among the features of the tree,
        anew at each split. In multiclass classification, each tree of an iteration has
        features of its own.
        """,
        is_of_forests=False,
    ),
    "n_jobs": Parameter(
        None,
        N_JOBS_CONSTRAINTS,
        "int or None",
        """
        Most OpenMP threads that ``fit`` and the predictions use. None is scikit-learn's
        way: as many as there are cores, or as the environment variable
        ``OMP_NUM_THREADS``, a limit of threadpoolctl or a container's quota allow. An
        integer lowers their number and never raises it; -1 is all of them, and -2 all
        but one. The results are the same with any number of threads, bit for bit.
        """,
    ),
}

CONSTRAINTS = {name: row.constraints for name, row in PARAMETERS.items()} | {
    # At most what a C unsigned int holds.
    "min_samples_leaf": [Interval(Integral, 1, 2**32 - 1, closed="both")],
}

# Names that there were before criteria and effects were objects.
MOVED = {
    "boltzmann_alpha": "split_criterion=Era(boltzmann_alpha=...)",
    "min_direction_agreement": "split_criterion=Directional(min_agreement=...)",
    "normalize_era_gain": "split_criterion=Era(normalize=...), or that of another one",
    "period_aggregation": "split_criterion=TimeRobust(aggregation=...)",
    "invariance_penalty": "split_criterion=Invariant(penalty=...) or VREx(penalty=...)",
    "invariance_statistic": "split_criterion=Invariant(statistic=...)",
    "fast_gain": 'split_criterion=Gain(splitter="era")',
    "era_half_life": "era_weighting=Recency(half_life=...), in eras",
    "group_dro_step_size": "era_weighting=GroupDRO(step_size=...)",
    "era_forecast": "era_effects=Intercepts(forecast=...)",
    "n_forecast_eras": "era_effects=Intercepts(n_eras=...)",
}
MOVED_VALUES = {
    ("min_era_coverage", "auto"): "0.1, with min_gain_share=0.5",
    ("era_weighting", "recency"): "Recency(half_life=...), of sklearn_era.effects",
    ("era_weighting", "group_dro"): "GroupDRO(), of sklearn_era.effects",
    ("bootstrap", "era"): "'within_eras'",
    ("bootstrap", "eras"): "'whole_eras'",
}
for _name, _new in MOVED.items():
    _module = "effects" if _new.startswith("era") else "criteria"
    MOVED[_name] = f"{_new}, of sklearn_era.{_module}"


def stores_parameters(
    init: Callable[_P, None], defaults: Mapping[str, Any] = MappingProxyType({})
) -> Callable[_P, None]:
    """Make attributes of the arguments of a constructor, and of its defaults, in place
    of which there may be others.
    """
    known = signature(init)
    known = known.replace(
        parameters=[
            each.replace(default=defaults.get(name, each.default))
            for name, each in known.parameters.items()
        ]
    )

    @wraps(init)
    def __init__(*args: _P.args, **kwargs: _P.kwargs) -> None:
        refuse_moved(MOVED, kwargs, "the estimators")
        try:
            bound = known.bind(*args, **kwargs)
        except TypeError as error:
            unknown = [name for name in kwargs if name not in known.parameters]
            hint = did_you_mean(unknown[0], known.parameters) if unknown else ""
            raise TypeError(f"{type(args[0]).__name__}: {error}.{hint}") from None
        given = {*bound.arguments}
        bound.apply_defaults()
        estimator = bound.arguments.pop("self")
        for name, value in bound.arguments.items():
            # A default that is an object is not to be shared.
            is_shared = name not in given and isinstance(value, ParameterObject)
            vars(estimator)[name] = clone(value) if is_shared else value

    __init__.__signature__ = known  # type: ignore[attr-defined]
    return __init__


def document(names: Any) -> str:
    """Return the numpydoc entries of parameters."""
    return "".join(
        f"    {name} : {row.kind}, default={row.default!r}\n"
        f"{row.text.strip(chr(10)).rstrip()}\n"
        for name in names
        for row in (PARAMETERS[name],)
    )
