"""Find features that a causal graph shows to be invariant, and penalise all others.

After Du et al. (2025), "Beyond Discriminant Patterns", appendix A: environments differ
in the mechanisms of a few variables, and a causal graph implies on which features the
target depends equally in all environments.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from sklearn.metrics import mutual_info_score

from ._eras import check_eras, encode_eras
from ._optional import import_optional
from ._tables.checks import names_of_columns
from ._tables.columns import as_matrix, choose_columns, list_columns, read_columns
from ._tables.no_value import warn_of_no_value
from ._tables.target import are_classes
from ._typing import Table
from .ensemble._binning.dataset import check_max_bins
from .ensemble._binning.thresholds import bin_numbers
from .ensemble._parameters import did_you_mean

if TYPE_CHECKING:
    import networkx

__all__ = ["feature_penalties", "invariant_features", "mutual_information_ratios"]


def invariant_features(
    graph: networkx.DiGraph[Any], target: Hashable, manipulable: Collection[Hashable],
    *, features: Collection[Hashable] | None = None,
    hidden_causes: Collection[tuple[Hashable, Hashable]] = (),
) -> list[Any]:  # fmt: skip
    """Find the features on which the target depends equally in all environments.

    *Experimental*: it may change without a deprecation.

    For the returned features X', P(Y | X') stays the same if the mechanisms of the
    manipulable variables change, provided that these variables get no new causes.

    The *c-component* of a feature is the set of variables connected with it by hidden
    common causes. By theorem 1 of [1]_, a feature is invariant if its c-component has
    no manipulable variable, or has neither the target nor a descendant of the target.
    By the text below the theorem, features that the target reaches through a
    manipulable variable are variant.

    Parameters
    ----------
    graph : networkx.DiGraph
        The causal graph, a DAG with an edge from each variable to each variable that it
        affects. The graph is not modified.
    target : hashable
        The node of the target Y.
    manipulable : collection of nodes
        The variables A whose mechanisms may change between environments.
    features : collection of nodes, default=None
        The measured variables X, by default all nodes except the target.
    hidden_causes : collection of pairs of nodes, default=()
        The bidirected edges: pairs of variables with a common cause that is not in the
        graph and whose own mechanism does not change.

    Returns
    -------
    invariant : list of nodes
        The invariant features, in the order of the graph; empty if no set of features
        is invariant, for instance if the mechanism of the target itself changes.

    Raises
    ------
    ValueError
        If `graph` is not a DiGraph, has a cycle or lacks a given name, or if the target
        is among the features.
    ImportError
        If networkx is not installed; it comes with the extra ``causal``.

    See Also
    --------
    feature_penalties : Penalties that make estimators avoid the other features.

    Notes
    -----
    *Unmeasured nodes* are projected out [2]_: the measured variables that such a node
    reaches through unmeasured ones form a c-component, which is manipulable if the node
    is manipulable.

    *A manipulable cause of Y* that shares no hidden cause with Y is invariant: under
    this covariate shift, P(Y | A) stays. Algorithm 2 of [1]_ leaves A out; P(Y | X)
    would then change for a common effect X of A and Y.

    *Limits of the theorem.* For Y -> A -> X with A manipulable, {X} is a c-component
    without A, yet P(Y | X) changes: hence the text below the theorem. The theorem and
    the text are not sufficient either, for instance for A -> X with A manipulable and a
    hidden common cause of A and Y. So the result is checked: a variable E that acts on
    all manipulable variables represents the environment, and P(Y | X') stays if X'
    d-separates E from Y [3]_. Features are removed until X' d-separates E from Y,
    effects before causes. Then features that keep the separation are added again,
    causes first. If none is left, all features are tried, each with the measured causes
    of the target and of the chosen features, as some such set d-separates E from Y if
    any set does [4]_. Other sets may be invariant too.

    References
    ----------
    .. [1] X. Du, S. Ramamoorthy, W. Duivesteijn, J. Tian and M. Pechenizkiy, "Beyond
           Discriminant Patterns: On the Robustness of Decision Rule Ensembles", 2025.
    .. [2] T. Verma and J. Pearl, "Equivalence and Synthesis of Causal Models", 1990.
    .. [3] S. Magliacane et al., "Domain Adaptation by Using Causal Inference to Predict
           Invariant Conditional Distributions", 2018, arXiv:1707.06422.
    .. [4] B. van der Zander, M. Liskiewicz and J. Textor, "Separators and Adjustment
           Sets in Causal Graphs: Complete Criteria and an Algorithmic Framework", 2019.

    Examples
    --------
    Example 1 of [1]_, where A is not measured:

    >>> import networkx as nx
    >>> from sklearn_era.causal import invariant_features
    >>> graph = nx.DiGraph([("Y", "X1"), ("Y", "A"), ("A", "X2")])
    >>> invariant_features(graph, "Y", manipulable=["A"], features=["X1", "X2"])
    ['X1']
    """
    networkx = import_optional("networkx", extra="causal")
    _check_graph(networkx, graph, target, manipulable, features, hidden_causes)
    measured = set(graph) if features is None else {target, *features}

    # From here on, each hidden common cause is an unmeasured node.
    whole = networkx.DiGraph(graph)
    for pair in hidden_causes:
        cause = object()
        whole.add_edges_from((cause, effect) for effect in pair)
    affected = {target, *networkx.descendants(whole, target)}
    variant = _variant_by_theorem(networkx, whole, measured, manipulable, affected)
    for name in affected.intersection(manipulable):
        variant |= networkx.descendants(whole, name)
    candidates = measured - variant - {target}

    environment = object()
    whole.add_node(environment)
    whole.add_edges_from((environment, name) for name in manipulable)

    def is_invariant(names: Collection[Any]) -> bool:
        return networkx.is_d_separator(whole, {environment}, {target}, set(names))

    order = [*networkx.topological_sort(whole)]
    kept = [name for name in order if name in candidates]
    left_out = []
    while kept and not is_invariant(kept):
        left_out.append(kept.pop())
    for name in reversed(left_out):
        if is_invariant([*kept, name]):
            kept.append(name)
    found = set(kept)
    if not kept:  # the theorem is not necessary; those that tell of the target first
        rest = [name for name in order if name in measured - {target}]
        rest.sort(key=lambda x: networkx.is_d_separator(whole, {x}, {target}, set()))
        for name in rest:
            # If any set with these is invariant, so is the one of all their causes.
            wanted = {target, name, *found}
            wanted.update(*(networkx.ancestors(whole, x) for x in wanted))
            wanted &= measured - {target}
            if is_invariant(wanted):
                found = wanted
    return [name for name in graph if name in found]


def _check_graph(
    networkx: Any, graph: Any, target: object, manipulable: Iterable[Any],
    features: Any, hidden: Iterable[Any],
) -> None:  # fmt: skip
    """Raise ValueError unless `graph` is directed, has no cycle, and has all nodes that
    the other arguments name.
    """
    if not isinstance(graph, networkx.DiGraph):
        kind = type(graph).__name__
        raise ValueError(f"graph must be a networkx.DiGraph; got {kind}.")
    if not networkx.is_directed_acyclic_graph(graph):
        cycle = [edge[0] for edge in networkx.find_cycle(graph)]
        raise ValueError(
            f"graph has the cycle {' -> '.join(map(str, [*cycle, cycle[0]]))}; remove "
            "one of its edges, as no variable can be a cause of itself."
        )
    if not isinstance(hidden, Collection):
        raise ValueError(f"hidden_causes must be pairs; got {hidden!r}.")
    for pair in hidden:
        # A string would be a pair of letters.
        is_pair = isinstance(pair, Collection) and not isinstance(pair, str)
        if not is_pair or len(pair) != 2 or len(set(pair)) != 2:
            raise ValueError(
                f"hidden_causes must be pairs of two variables; got {pair!r} in it."
            )
    given = {
        "target": [target], "manipulable": manipulable,
        "features": () if features is None else features,
        "hidden_causes": [name for pair in hidden for name in pair],
    }  # fmt: skip
    nodes = [str(node) for node in graph]
    for argument, names in given.items():
        if isinstance(names, str) or not isinstance(names, Collection):
            raise ValueError(f"{argument} must be a list of names; got {names!r}.")
        for name in names:
            if name not in graph:
                raise ValueError(
                    f"{argument}: graph has no node {name!r}."
                    f"{did_you_mean(str(name), nodes)}"
                )
    if features is not None and target in features:
        raise ValueError(f"features has the target {target!r} in it; leave it out.")


def _variant_by_theorem(
    networkx: Any, whole: Any, measured: set[Any], manipulable: Iterable[Any],
    affected: set[Any],
) -> set[Any]:  # fmt: skip
    """Return the measured variables that are variant by theorem 1 of Du et al."""
    to_measured = networkx.DiGraph(whole)
    to_measured.remove_edges_from(list(whole.out_edges(measured)))

    def reached(name: Hashable) -> set[Any]:
        """Return the measured variables that `name` reaches through unmeasured ones."""
        return networkx.descendants(to_measured, name) & measured

    confounded = networkx.Graph()
    confounded.add_nodes_from(measured)
    for name in set(whole) - measured:
        networkx.add_path(confounded, reached(name))
    may_change = set(manipulable) & measured
    may_change.update(*map(reached, set(manipulable) - measured))
    components = networkx.connected_components(confounded)
    return set().union(*(x for x in components if x & may_change and x & affected))


def mutual_information_ratios(
    X: Table, y: ArrayLike, invariant: Sequence[Any] | NDArray[Any], *,
    max_bins: int = 16,
) -> NDArray[np.float64]:  # fmt: skip
    """Compare each column's information on the target with that of invariant columns.

    *Experimental*: it may change without a deprecation.

    The ratio of column s is ::

        I(X_s; Y) / mean of I(X_j; Y) over the invariant columns j

    If variant features have high ratios, models fail in new environments [1]_. I is the
    mutual information of the binned column and the binned target, in nats ::

        I = Σ_bc p_bc ln(p_bc / (p_b p_c)) - (B - 1) (C - 1) / (2 n)

    where p_bc is the share of the n rows that are in bin b of the column and bin c of
    the target, and B and C are the numbers of non-empty bins of the two. If the result
    is negative, I is 0. The second term is the bias of the first, after Miller and
    Madow [2]_: columns of noise get about 0.

    Parameters
    ----------
    X : array-like or data frame of shape (n_samples, n_features)
        The rows. Bins of numbers have about equal numbers of rows; in columns of a
        frame with category, string or object dtype, each category is a bin. Missing
        values are a bin, too.
    y : array-like of shape (n_samples,)
        The target: classes, or numbers, which are binned like those of X. At most
        `max_bins` distinct numbers are classes, too; pass more classes as text.
    invariant : sequence of {str, int, bool}
        The invariant columns: column names, indices or a mask.
    max_bins : int, default=16
        Number of bins of a numeric column, in [2, 255], or of its distinct values if
        there are fewer. Missing values have a bin of their own, and so has a value of
        more rows than a bin has on average.

    Returns
    -------
    ratios : ndarray of shape (n_features,), dtype=float64
        At least 0; the mean over the invariant columns is 1.

    Raises
    ------
    ValueError
        If `invariant` is empty, names a column that X lacks, or names only columns
        without information; if `y` has missing values; if `max_bins` is out of range.

    References
    ----------
    .. [1] X. Du, S. Ramamoorthy, W. Duivesteijn, J. Tian and M. Pechenizkiy, "Beyond
           Discriminant Patterns: On the Robustness of Decision Rule Ensembles", 2025.
    .. [2] G. A. Miller, "Note on the Bias of Information Estimates", 1955.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.causal import mutual_information_ratios
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, size=1000)
    >>> X = rng.normal(size=(1000, 3)) + np.outer(y, [0.8, 0.8, 2.0])
    >>> mutual_information_ratios(X, y, [0, 1]).round(1)
    array([1.1, 0.9, 4.5])
    """
    return _ratios(X, y, invariant, max_bins)[0]


def feature_penalties(
    X: Table, y: ArrayLike, invariant: Sequence[Any] | NDArray[Any], *,
    max_bins: int = 16,
) -> NDArray[np.float64]:  # fmt: skip
    """Penalise the columns that are not invariant, by their information on the target.

    *Experimental*: it may change without a deprecation.

    The penalty is 0 for invariant columns. For other columns it is the ratio of
    `mutual_information_ratios`, which is the centre of the soft mask of Du et al.
    (2025), "Beyond Discriminant Patterns", section III-B. Pass the penalties to
    estimators as `feature_penalty`: trees exclude columns with a penalty of 1 or more,
    and so do rules, up to the random noise of their mask.

    Parameters
    ----------
    X : array-like or data frame of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    invariant : sequence of {str, int, bool}
    max_bins : int, default=16
        The four parameters are as in `mutual_information_ratios`. The result of
        `invariant_features` can be passed as `invariant`.

    Returns
    -------
    penalties : ndarray of shape (n_features,), dtype=float64
        Numbers of 0 or more.

    Raises
    ------
    ValueError
        In the same cases as `mutual_information_ratios`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.causal import feature_penalties
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, size=1000)
    >>> X = rng.normal(size=(1000, 3)) + np.outer(y, [0.8, 0.8, 2.0])
    >>> feature_penalties(X, y, [0, 1]).round(2)
    array([0.  , 0.  , 4.48])
    """
    ratios, is_invariant = _ratios(X, y, invariant, max_bins)
    return np.where(is_invariant, 0.0, ratios)


def _ratios(
    X: Any, y: ArrayLike, invariant: Sequence[Any] | NDArray[Any], max_bins: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return (ratios, mask): each column's information on the target, divided by the
    mean of the invariant columns' information, and a mask of the invariant columns.
    """
    columns = read_columns(X)
    names = [column.name for column in columns]
    has_names = len(names_of_columns(X)) > 0
    is_invariant = choose_columns(invariant, names, has_names, name="invariant")
    if not is_invariant.any():
        raise ValueError("invariant has no column in it; name at least one.")
    check_max_bins(max_bins)
    if np.ndim(y) != 1:
        raise ValueError(f"y must be of shape (n_samples,); got {np.shape(y)}.")
    encoded = encode_eras(check_eras(y, X, name="y"))
    labels, classes = encoded.labels, encoded.codes.astype(np.intp)
    if labels.size > max_bins and not are_classes(labels):
        classes = _bins(labels.astype(np.float64)[classes], max_bins)
    matrix, n_categories = as_matrix(columns)
    is_missing = np.isnan(matrix)
    bins = np.where(is_missing, n_categories, matrix)
    for j in np.flatnonzero([not column.is_categorical for column in columns]):
        bins[:, j] = _bins(matrix[:, j], max_bins)
    empty = [names[j] for j in np.flatnonzero(is_missing.all(axis=0))]
    warn_of_no_value(empty, "the rows that bins are made from")
    information = np.array([_mutual_information(column, classes) for column in bins.T])
    mean = information[is_invariant].mean()
    if mean == 0:
        named = list_columns([names[j] for j in np.flatnonzero(is_invariant)])
        raise ValueError(
            f"invariant: column(s) {named} carry no information on the target, and no "
            "other can be compared with them; name other columns, or pass more rows."
        )
    return information / mean, is_invariant


def _bins(values: NDArray[np.float64], max_bins: int) -> NDArray[np.intp]:
    """Return the bin of each number; the quantiles are those of scikit-learn's bins."""
    return bin_numbers(values, max_bins, "averaged_inverted_cdf")


def _mutual_information(bins: NDArray[Any], classes: NDArray[Any]) -> float:
    """Return the mutual information in nats minus the Miller-Madow bias, at least 0."""
    rows, columns = (np.unique(x, return_inverse=True)[1] for x in (bins, classes))
    counts = coo_array((np.ones(bins.size, np.intp), (rows, columns))).tocsr()
    n_bins, n_classes = counts.shape
    bias = (n_bins - 1) * (n_classes - 1) / (2 * bins.size)
    return max(0.0, mutual_info_score(None, None, contingency=counts) - bias)
