"""List the package's own parameters, with their defaults, valid values, documentation
and estimators. Signatures repeat the defaults, since scikit-learn reads defaults from
signatures; a test compares the two.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import signature
from numbers import Integral, Real
from textwrap import dedent, indent
from types import MappingProxyType
from typing import Any, NamedTuple, ParamSpec

from sklearn.base import clone
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from .._parameter_object import ParameterObject
from .._threads import N_JOBS_CONSTRAINTS
from .._warnings import did_you_mean, refuse_moved
from ..criteria._criteria import CRITERIA, SplitCriterion
from ..effects import GroupDRO, Intercepts, Recency

_P = ParamSpec("_P")


class Parameter(NamedTuple):
    """A parameter of the boosters and, if `is_of_forests`, of the forests."""

    default: Any
    constraints: list[Any]
    kind: str  # as numpydoc has it
    text: str
    is_of_forests: bool = True


PARAMETERS = {
    "split_criterion": Parameter(
        "gain", [StrOptions(set(CRITERIA)), dict, SplitCriterion],
        f"{{{', '.join(map(repr, CRITERIA))}}}, dict or object", """
        Ranks the splits of a node: an object of :mod:`sklearn_era.criteria`, which has
        the formulas; its name; or a dict such as ``{'era': 1, 'directional': 0.5}``,
        short for a :class:`~sklearn_era.criteria.Blend`. All but 'gain' need `eras` in
        ``fit``. In a grid, ``split_criterion__min_agreement`` and the like set the
        parameters of the criterion.
        """),
    "min_samples_per_era": Parameter(
        1, [Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 0.5, closed="right")], "int or float", """
        Minimum number of rows on each side of a split for an era to be covered,
        whatever their weights; or, in (0, 0.5], the share of the era's training rows
        (in a forest, of its rows in the tree), rounded up. 'gain' ignores it.
        """),
    "min_era_coverage": Parameter(
        0.1, [Interval(Real, 0, 1, closed="right")], "float", """
        Minimum share of the training eras, in (0, 1], that a split must cover. The
        defaults of this parameter and of `min_gain_share` were chosen on public data. A
        criterion can have the papers' rule, with which trees end early where eras are
        small: ``split_criterion=Directional(rule="every_era")`` replaces the two
        parameters by 1 and 0. 'gain' ignores `min_era_coverage`.
        """),
    "min_gain_share": Parameter(
        0.5, [Interval(Real, 0, 1, closed="both")], "float", """
        Restricts the criterion to splits whose pooled gain (over all rows) is at least
        this share, in [0, 1], of the largest in the node. If the criterion admits none
        of them, the node takes the split with the largest gain. So no split gives up
        more than ``1 - min_gain_share`` of the gain, and trees grow as large as with
        'gain'; nodes are expanded in the order of their pooled gains. 0 leaves the
        choice to the criterion, as in the papers; with 1, it only breaks ties.
        """),
    "min_impurity_decrease": Parameter(
        0.0, [Interval(Real, 0, None, closed="left")], "float", """
        Minimum pooled gain of a split, per unit of the training set's sum of hessians,
        as in scikit-learn's trees; 0 is no minimum.
        """),
    "era_order": Parameter(
        "auto", [StrOptions({"auto", "ordered", "unordered"}), tuple, list],
        "{'auto', 'ordered', 'unordered'} or tuple of two", """
        Whether eras follow each other, for parameters that depend on it. With 'auto',
        numbers, dates, periods and ordered categoricals (by their categories) do; so
        does text that is numbers or dates of one form (``"0001"``, ``"2024-01"``,
        ``"2024-W07"``); booleans do not, and other text raises an error. With
        'ordered', text is in its own order. With two columns of eras, ``("ordered",
        "unordered")`` marks times and groups: eras are then the times, and groups have
        intercepts, too. With a single word, combinations of columns are the eras.
        """),
    "validation_eras": Parameter(
        "auto", [StrOptions({"auto", "last", "random"}), None],
        "{'auto', 'last', 'random'} or None", """
        Eras that early stopping holds out if ``fit`` gets `eras` and no `X_val`: the
        last ones, or random ones. 'auto' takes the last ones if eras follow each other
        (see `era_order`), else random ones. `validation_fraction` is then the share of
        the eras, rounded up, or their number; a single era is never held out. None
        holds out random rows, as in scikit-learn.
        """, is_of_forests=False),
    "era_weighting": Parameter(
        "rows", [StrOptions({"rows", "equal"}), Recency, GroupDRO],
        "{'rows', 'equal'} or object", """
        Weight of an era in all sums over rows: the weight of its rows ('rows'), the
        same for all eras ('equal'), or as in :class:`~sklearn_era.effects.Recency` and,
        for boosters, :class:`~sklearn_era.effects.GroupDRO`. All but 'rows' need `eras`
        in ``fit``. The weights multiply `sample_weight` and keep the sum of all
        weights: the model is that of a fit with the product as `sample_weight` (but a
        `BinnedDataset` keeps its bins). All eras count, also eras held out by early
        stopping; in a dict of labels, a forest takes the first.
        """),
    "leaf_shrinkage": Parameter(
        None, [StrOptions({"eras"}), None], "{'eras'} or None", """
        With 'eras', shrinks the value v of a leaf towards 0, the more it differs
        between eras. Needs `eras` in ``fit``. With monotonic constraints all leaves of
        a tree are shrunk by the mean factor, which keeps their order; with a single era
        no leaf is shrunk. The factor is ``A / (A + var(v))``: var(v) is estimated by
        moments from the values ``-G_j / H_j`` of the eras [1]_, and A is the variance
        about 0 of the values of the tree's leaves, less the mean of var(v) [2]_.
        """, is_of_forests=False),
    "era_effects": Parameter(
        None, [StrOptions({"intercept"}), Intercepts, None],
        "{'intercept'}, object or None", """
        With 'intercept', short for :class:`~sklearn_era.effects.Intercepts`, each
        training era has an intercept in the raw prediction, estimated along with the
        trees. Predictions are for the next era, by a forecast of its intercept, or for
        an era passed to ``predict``. Needs `eras` in ``fit``.
        """, is_of_forests=False),
    "feature_penalty": Parameter(
        None, ["array-like", Mapping, None],
        "array-like of shape (n_features,), mapping or None", """
        Penalises the splits of features: a number of 0 or more for each column of X, or
        a mapping, such as a Series, from names or indices of columns; other columns
        have 0. With 0.2, a feature splits a node only if its key exceeds all other keys
        by a fifth of the largest; 1 or more excludes the feature as if X did not have
        it, from draws of features too. None or zeros change nothing. With any positive
        penalty, 'gain' uses the kernel of the other criteria.

        The key of a split with penalty p is lowered by ``p K``, and so is the priority
        of its node. K is the largest key of the node's admissible splits: the pooled
        gain ('gain'), ``B_alpha`` ('era'), the agreement ('directional') or the key
        ('vrex' and blends); where keys may be negative, the largest pooled
        gain ('invariant') or decrease of impurity ('time_robust'). The split is valid
        if its key minus ``p K`` is positive; for 'invariant', its pooled gain minus
        ``p K``; for 'time_robust', if its decrease minus ``p K`` exceeds the
        criterion's `min_impurity_decrease`. With a `min_gain_share`, the net gain of a
        split is its pooled gain minus p times the largest pooled gain. The criterion
        only ranks splits whose pooled gain is at least this share of the largest net
        gain, and K is the largest key of these splits. The net gain is the priority of
        the node and, if the criterion admits no split, chooses the split.
        """),
    "colsample_bytree": Parameter(
        1.0, [Interval(Real, 0, 1, closed="right")], "float", """
        Share of the features, in (0, 1], drawn at random for each tree, with every
        criterion: ``max(1, ceil(colsample_bytree * n_features))`` of them, without
        replacement. No histogram is built for other features, which saves most of the
        time of a tree of many rows. `max_features` draws among the features of the
        tree, anew at each split. In multiclass classification, each tree of an
        iteration draws its own.
        """, is_of_forests=False),
    "n_jobs": Parameter(
        None, N_JOBS_CONSTRAINTS, "int or None", """
        Maximum number of OpenMP threads of ``fit`` and predictions. None is
        scikit-learn's choice: as many as there are cores, or as the environment
        variable ``OMP_NUM_THREADS``, a limit of threadpoolctl or a container's quota
        allow. An integer lowers this number and never raises it; -1 is all threads, -2
        all but one. Results are the same with any number of threads, bit for bit.
        """),
}  # fmt: skip

CONSTRAINTS = {name: row.constraints for name, row in PARAMETERS.items()} | {
    # At most what a C unsigned int holds.
    "min_samples_leaf": [Interval(Integral, 1, 2**32 - 1, closed="both")]
}

# Former names, from before criteria and effects were objects.
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


_OF_LIGHTGBM = {
    "n_estimators": "max_iter", "num_leaves": "max_leaf_nodes", "max_bin": "max_bins",
    "min_child_samples": "min_samples_leaf", "reg_lambda": "l2_regularization",
    "min_split_gain": "min_impurity_decrease", "objective": "loss",
    "feature_fraction_bynode": "max_features", "monotone_constraints": "monotonic_cst",
    "interaction_constraints": "interaction_cst",
    "early_stopping_round": "n_iter_no_change",
    "early_stopping_rounds": "n_iter_no_change",
}  # fmt: skip


def stores_parameters(
    init: Callable[_P, None], defaults: Mapping[str, Any] = MappingProxyType({})
) -> Callable[_P, None]:
    """Return a constructor with the parameters of `init`, some with new `defaults`,
    that stores its arguments as attributes.
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
            if unknown and (name := _OF_LIGHTGBM.get(unknown[0])) in known.parameters:
                hint = f" It is {name} here."
            raise TypeError(f"{type(args[0]).__name__}: {error}.{hint}") from None
        given = {*bound.arguments}
        bound.apply_defaults()
        estimator = bound.arguments.pop("self")
        for name, value in bound.arguments.items():
            # Objects that are defaults are not shared between estimators.
            is_shared = name not in given and isinstance(value, ParameterObject)
            vars(estimator)[name] = clone(value) if is_shared else value

    __init__.__signature__ = known  # type: ignore[attr-defined]
    return __init__


def document(names: Iterable[Any]) -> str:
    """Return the numpydoc entries of the named parameters, as one text."""
    entries = ""
    for name in names:
        row = PARAMETERS[name]
        text = indent(dedent(row.text).strip(), "    ")
        entries += f"{name} : {row.kind}, default={row.default!r}\n{text}\n"
    return entries
