"""Define the criteria, each with its formula and its source, and their base class."""

from dataclasses import dataclass, fields
from math import inf
from numbers import Real
from typing import Any, ClassVar, NamedTuple, cast

from sklearn.utils._param_validation import (
    Interval,
    InvalidParameterError,
    StrOptions,
)

from .._parameter_object import ParameterObject, parameter


class KernelTraits(NamedTuple):
    """Properties of a criterion's key, the value that ranks splits. The fields are
    those of `criterion_traits` in ensemble/_criteria/criterion.pxd.
    """

    reads_impurities: bool = False
    is_at_most_gain: bool = False
    worst_era_decides: bool = False


class SplitCriterion(ParameterObject):
    """The base class of criteria. A criterion has parameters, and properties of the key
    by which it ranks splits.
    """

    name: ClassVar[str]  # the string that stands for it
    traits: ClassVar[KernelTraits] = KernelTraits()
    asks_coverage: ClassVar[bool] = True  # whether splits must cover eras
    is_gain_of_one_era: ClassVar[bool] = True  # with one era, splits are the gain's

    @property
    def _parts(self) -> "dict[SplitCriterion, float]":
        """Return the criteria whose keys are summed, with their weights."""
        return {self: 1.0}

    @property
    def _is_plain_gain(self) -> bool:
        """Return whether splits are ranked by the gain alone, whatever the eras."""
        return False

    @property
    def _needs_target(self) -> bool:
        """Return whether eras are compared by the target instead of by gradients."""
        return False

    def _kernel_parameters(self) -> dict[str, Any]:
        """Return this criterion's arguments for the kernel's `Criterion`."""
        own_fields = fields(cast("Any", self))
        names = {x.name: x.metadata.get("kernel_name") for x in own_fields}
        return {known: getattr(self, own) for own, known in names.items() if known}


_ALPHA = [Interval(Real, None, None, closed="both")]
_AT_LEAST_0 = [Interval(Real, 0, None, closed="left")]
_SHARE = [Interval(Real, 0, 1, closed="both")]
_IMPURITIES = [StrOptions({"squared_error", "standard_deviation"})]
_STATISTICS = [StrOptions({"effect", "changing_rate", "ratio"})]


@dataclass(eq=False, repr=False)
class EraCriterion(SplitCriterion):
    """Base of criteria that compare eras; `rule` may ask splits to cover all eras."""

    rule: str | None = parameter(
        [StrOptions({"every_era"}), None], default=None, kw_only=True
    )


@dataclass(eq=False, repr=False)
class Gain(SplitCriterion):
    """The pooled gain, whatever the eras: scikit-learn's criterion.

    Parameters
    ----------
    splitter : {'sklearn', 'era'}, default='sklearn'
        The code that finds splits. 'sklearn' is scikit-learn's own code, which gives
        the same trees bit for bit. 'era' is the kernel of the other criteria, which
        takes a fraction of the time. The kernel rounds gradients to fixed points, with
        33 bits for the largest of 1,000,000 rows. So its trees are the same as
        scikit-learn's except for the last digits of gains and values, and for the
        choice among splits that are equally good for the training rows: the kernel
        takes the first feature and bin. Fits on several workers, and fits with a
        `feature_penalty`, always use the kernel.

    Examples
    --------
    >>> from sklearn_era.criteria import Gain
    >>> Gain(splitter="era")
    Gain(splitter='era')
    """

    splitter: str = parameter([StrOptions({"sklearn", "era"})], default="sklearn")
    name = "gain"
    asks_coverage = False
    _is_plain_gain = True


@dataclass(eq=False, repr=False)
class Era(EraCriterion):
    """Era splitting: the Boltzmann mean of the gains of the eras.

    Use it for data in which a few large eras would otherwise decide: a split must help
    in the eras one by one, and not only in their sum.

    The key, which is the value that ranks splits, is ``B_alpha(gain_1, ..., gain_M)``
    with ``B_alpha(x) = sum_j x_j exp(alpha x_j) / sum_j exp(alpha x_j)``, equation 36
    of [1]_. The gain of [1]_ has a factor 1/2, so that its alpha is twice ours. A split
    is valid if the key is positive. A split *covers* an era that has at least
    `min_samples_per_era` rows on each side; an era that is not covered has gain 0.

    Parameters
    ----------
    boltzmann_alpha : float, default=0.0
        The alpha of the mean. 0 gives the mean of the gains, ``-inf`` the gain of the
        worst era, ``inf`` that of the best one; other values interpolate smoothly. The
        unit of alpha is 1 / gain, which depends on the target's unit and the number of
        rows unless `normalize` is True.
    normalize : bool, default=False
        Whether to divide the gain of each era by its sum of hessians in the node and by
        the variance of the gradients (per unit of hessian) at the root of the tree.
        Then eras of all sizes weigh alike, and `boltzmann_alpha` is a pure number.
    rule : {'every_era'} or None, default=None
        'every_era' is the papers' rule: a split has to cover every era, with
        `min_samples_per_era` of the era's rows on each side, and the key alone ranks
        splits. The rule replaces the estimator's parameters by ``min_era_coverage=1.0``
        and ``min_gain_share=0.0``. None leaves both parameters as they are.

    See Also
    --------
    Directional : Ranks by the agreement of eras, then by their Boltzmann mean.

    References
    ----------
    .. [1] T. DeLise (2023), Era Splitting: Invariant Learning for Decision Trees.
       :arxiv:`2309.14496`

    Examples
    --------
    >>> from sklearn_era.criteria import Era
    >>> from sklearn_era.ensemble import HistGradientBoostingRegressor
    >>> model = HistGradientBoostingRegressor(split_criterion=Era(boltzmann_alpha=-1))
    >>> model.set_params(split_criterion__normalize=True).split_criterion
    Era(boltzmann_alpha=-1, normalize=True)
    """

    boltzmann_alpha: float = parameter(_ALPHA, "boltzmann_alpha", default=0.0)
    normalize: bool = parameter(["boolean"], "normalize_era_gain", default=False)
    name = "era"


@dataclass(eq=False, repr=False)
class Directional(EraCriterion):
    """Directional era splitting: the agreement of eras on a split's direction.

    Use it where the sign of effects matters more than their size: for shortcuts that
    change direction between eras, and for weak effects that persist.

    The key, which is the value that ranks splits, is the agreement
    ``D = |sum_j sign(v_Lj - v_Rj)| / M`` with ``v = -G / (H + l2)``, equation 39 of
    [1]_. Ties, which are common, go to the larger ``B_alpha`` of the gains (see
    :class:`Era`), within and across features. A split is valid if ``D > 0``,
    ``D >= min_agreement`` and ``B_alpha > 0``. An era that a split does not cover (see
    :class:`Era`) has direction 0.

    Parameters
    ----------
    min_agreement : float, default=0.0
        Minimum D of a valid split, in [0, 1]: 0 if half of the eras agree, 1 if all do.
        Splits chosen by gain (see `min_gain_share` of estimators) need no agreement.
    boltzmann_alpha, normalize, rule :
        As in :class:`Era`. The first two decide ties. In a blend, `boltzmann_alpha`
        must be 0.

    References
    ----------
    .. [1] T. DeLise (2023), Era Splitting: Invariant Learning for Decision Trees.
       :arxiv:`2309.14496`

    Examples
    --------
    >>> from sklearn_era.criteria import Directional
    >>> Directional(rule="every_era")
    Directional(rule='every_era')
    """

    min_agreement: float = parameter(_SHARE, "min_direction_agreement", default=0.0)
    boltzmann_alpha: float = parameter(_ALPHA, "boltzmann_alpha", default=0.0)
    normalize: bool = parameter(["boolean"], "normalize_era_gain", default=False)
    name = "directional"


@dataclass(eq=False, repr=False)
class TimeRobust(EraCriterion):
    """Time-robust splits: the smallest impurity in the worst era, or on average.

    Use it for data in which the worst period counts, and in which each period has many
    rows: the package of [1]_ requires 100 rows of each period on both sides.

    The key, which is the value that ranks splits, is ``-agg_j L_j``, equations 5.1 to
    5.4 of [1]_: agg is the `aggregation`, whose maximum is over the eras that the split
    covers (see :class:`Era`), and ``L_j`` is the impurity of era j after the split: by
    default, the mean squared deviation from the era's values on the two sides.

    Parameters
    ----------
    aggregation : {'max', 'mean'} or float, default='max'
        'max' is the impurity of the worst era, 'mean' the mean over eras. A number of 0
        or more lies between: it is the alpha of ``B_alpha`` (see :class:`Era`) over the
        eras that a split covers. 0 is 'mean' and ``inf`` is 'max'; the number's unit is
        1 / impurity, which depends on the target's unit.
    min_impurity_decrease : float, default=0.0
        For a valid split, ``agg_j n_j / N_j (L_before,j - L_j)`` exceeds this number:
        agg is the minimum over eras for 'max', the mean for 'mean', ``B_-alpha`` for a
        number; n_j and N_j are era j's numbers of rows in the node and in training.
    impurity : {'squared_error', 'standard_deviation'}, default='squared_error'
        With 'standard_deviation', ``L_j = (n_Lj s_Lj + n_Rj s_Rj) / n_j``, with the
        numbers n of rows and the standard deviations s of gradients on both sides:
        section 5.3 of [1]_, for regression, in the target's unit. Rows must not have
        weights, and boosters need a loss with hessians of 1, as 'squared_error'.
    rule : {'every_era'} or None, default=None
        As in :class:`Era`.

    References
    ----------
    .. [1] L. Moneda (2021), Domain Generalization, Invariance and the Time Robust
       Forest. University of Sao Paulo.

    Examples
    --------
    >>> from sklearn_era.criteria import TimeRobust
    >>> TimeRobust(aggregation="mean")
    TimeRobust(aggregation='mean')
    """

    aggregation: str | float = parameter(
        [StrOptions({"max", "mean"}), Interval(Real, 0, None, closed="both")],
        default="max",
    )
    min_impurity_decrease: float = parameter(
        _AT_LEAST_0, "min_impurity_decrease", default=0.0
    )
    impurity: str = parameter(_IMPURITIES, "impurity", default="squared_error")
    name = "time_robust"
    traits = KernelTraits(reads_impurities=True, worst_era_decides=True)
    is_gain_of_one_era = False  # impurities have no regularization

    def _kernel_parameters(self) -> dict[str, Any]:
        named: dict[Any, Any] = {"max": inf, "mean": 0.0}
        alpha = named.get(self.aggregation, self.aggregation)
        return super()._kernel_parameters() | {
            "takes_worst_era": alpha == inf,
            "boltzmann_alpha": 0.0 if alpha == inf else alpha,
        }


@dataclass(eq=False, repr=False)
class Invariant(EraCriterion):
    """Invariant-forest splits: the gain, less a penalty on effects that differ by era.

    Use it where the size of effects differs between eras: splits by such effects are
    postponed, and splits by effects that are the same in all eras come first.

    The key, which is the value that ranks splits, is the pooled gain, minus `penalty`
    times the node's sum of hessians times the statistic; equations 15 to 22 of [1]_. A
    split is valid if its pooled gain is positive. The statistic is over the eras that
    the split covers (see :class:`Era`).

    Parameters
    ----------
    penalty : float, default=1.0
        Weight of the statistic, 0 or more. With 0 the criterion is the plain gain.
    statistic : {'effect', 'changing_rate', 'ratio'}, default='effect'
        Statistic of the comparison between eras:

        - 'effect': the variance of ``v_Lj - v_Rj``, with ``v = -G / (H + l2)``;
        - 'changing_rate': the variance of ``v_Lj - v_j``, as in equations 20 to 22 of
          [1]_, where a split that sends nearly all rows to the left pays nothing;
        - 'ratio': ``max_j I_j / min_j I_j - 1``, where ``I_j`` is the share of the
          positive rows that pass to the left, divided by that of the negative rows,
          equations 16 to 19 of [1]_; for targets of 0 and 1 only, and in no blend.
    rule : {'every_era'} or None, default=None
        As in :class:`Era`.

    References
    ----------
    .. [1] Y. Liao, Q. Wu, X. Yan (2024), Invariant Random Forest: Tree-Based Model
       Solution for OOD Generalization. :arxiv:`2312.04273`

    Examples
    --------
    >>> from sklearn_era.criteria import Invariant
    >>> Invariant(penalty=10.0)
    Invariant(penalty=10.0)
    """

    penalty: float = parameter(_AT_LEAST_0, "invariance_penalty", default=1.0)
    statistic: str = parameter(_STATISTICS, "invariance_statistic", default="effect")
    name = "invariant"
    traits = KernelTraits(is_at_most_gain=True)

    @property
    def _is_plain_gain(self) -> bool:
        return self.penalty == 0

    @property
    def _needs_target(self) -> bool:
        return self.statistic == "ratio"


@dataclass(eq=False, repr=False)
class VREx(EraCriterion):
    """The mean of the gains of the eras, minus their standard deviation.

    The key, which is the value that ranks splits, is
    ``mean_j gain_j - penalty * std_j gain_j``, after the penalty of [1]_. A split is
    valid if its key is positive. An era that the split does not cover (see
    :class:`Era`) has gain 0.

    Parameters
    ----------
    penalty : float, default=1.0
        Weight of the standard deviation, 0 or more.
    normalize, rule :
        As in :class:`Era`.

    References
    ----------
    .. [1] D. Krueger et al. (2021), Out-of-Distribution Generalization via Risk
       Extrapolation (REx). :arxiv:`2003.00688`

    Examples
    --------
    >>> from sklearn_era.criteria import VREx
    >>> VREx(penalty=0.5)
    VREx(penalty=0.5)
    """

    penalty: float = parameter(_AT_LEAST_0, "vrex_penalty", default=1.0)
    normalize: bool = parameter(["boolean"], "normalize_era_gain", default=False)
    name = "vrex"


# In the order of the kernel's numbers.
CRITERIA: dict[str, type[SplitCriterion]] = {
    cls.name: cls for cls in (Gain, Era, Directional, TimeRobust, Invariant, VREx)
}


def refuse_removed(name: object) -> None:
    """Raise InvalidParameterError for a criterion that only earlier versions have."""
    if isinstance(name, str) and name in ("held_out", "HeldOut"):
        raise InvalidParameterError(
            f"{name!r} is no longer a criterion; use 'era' or a CustomCriterion."
        )
