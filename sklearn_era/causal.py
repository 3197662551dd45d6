"""Which features a causal graph calls invariant, and penalties for all others.

After Du et al. (2025), "Beyond Discriminant Patterns", appendix A: environments differ
in the mechanisms of a few variables, and a causal graph says on which features the
target depends alike in all of them. The module is *experimental*: it may change without
a deprecation.
"""

from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import mutual_info_score
from sklearn.utils.multiclass import type_of_target

from ._eras import check_eras, encode_eras
from ._optional import import_optional
from ._tables.columns import (
    as_matrix,
    choose_columns,
    is_data_frame,
    list_columns,
    read_columns,
)
from .ensemble._binning.dataset import make_bin_mapper
from .ensemble._binning.floats import fit_float_mapper
from .ensemble._parameters import did_you_mean

if TYPE_CHECKING:
    import networkx

__all__ = ["feature_penalties", "invariant_features", "mutual_information_ratios"]


def invariant_features(
    graph: "networkx.DiGraph[Any]",
    target: Hashable,
    manipulable: Collection[Hashable],
    *,
    features: Collection[Hashable] | None = None,
    hidden_causes: Collection[tuple[Hashable, Hashable]] = (),
) -> list[Any]:
    """Find the features on which the target depends alike in all environments.

    *Experimental*: it may change without a deprecation.

    For the features X' that are returned, P(Y | X') is the same whatever the mechanisms
    of the manipulable variables become, as long as they take no new causes.

    Theorem 1 of [1]_ parts features and target into *c-components*, sets connected by
    hidden common causes. A feature is invariant if its c-component has no manipulable
    variable, or no descendant of the target, which counts as its own. Features to which
    a directed path leads from the target through a manipulable variable are variant all
    the same (the text below the theorem). See Notes for what is checked beyond that.

    Parameters
    ----------
    graph : networkx.DiGraph
        The causal graph, without cycles: an edge from each variable to each that it
        acts upon. It is not changed.

    target : hashable
        The node of the target Y.

    manipulable : collection of nodes
        The variables A whose mechanisms may change between environments.

    features : collection of nodes, default=None
        The variables X that are measured. Nodes that are neither among them nor the
        target are unmeasured. By default all nodes but the target are features.

    hidden_causes : collection of pairs of nodes, default=()
        Pairs of variables with a common cause that is not in the graph, and whose own
        mechanism does not change: the bidirected edges.

    Returns
    -------
    invariant : list of nodes
        The invariant features, in the order of the graph. Empty if there are none, as
        when the mechanism of the target itself changes.

    Raises
    ------
    ValueError
        If `graph` is no DiGraph or has a cycle, a name is not in it, or the target is
        among the features.
    ImportError
        If networkx is not installed, which the extra ``causal`` brings.

    See Also
    --------
    feature_penalties : What estimators take to keep off the other features.

    Notes
    -----
    *Unmeasured nodes* are projected out [2]_: the measured variables that one reaches
    through unmeasured ones are in one c-component, and manipulable if it is.

    *The target is its own descendant*: with a hidden common cause of Y and a
    manipulable A, P(Y | A) changes with the mechanism of A. A manipulable cause of Y
    that shares no hidden cause with Y is invariant: the covariates shift, P(Y | A)
    stays. Algorithm 2 of [1]_ leaves such a cause out, the theorem does not, and nor
    does this function. Without it, P(Y | X) would change for a common effect X of A and
    Y.

    *Where the theorem falls short.* For Y -> A -> X with A manipulable it calls X
    invariant, since {X} is a c-component without A; yet P(Y | X) changes. By the text
    below the theorem X is variant. Both together are not enough either. The smallest
    graph to show it where Y's own mechanism stays is A -> X with A manipulable and a
    hidden common cause of A and Y: P(Y | X) changes. So what both let pass is checked.
    A variable E that acts on all manipulable ones stands for the environment, and
    P(Y | X') stays if X' d-separates E from Y [3]_. Where it does not, features are
    left out, effects before causes, until it does; then those are taken back in, causes
    first, that do no harm. The rules are sufficient, not necessary: other sets may be
    invariant too.

    References
    ----------
    .. [1] X. Du, S. Ramamoorthy, W. Duivesteijn, J. Tian and M. Pechenizkiy, "Beyond
           Discriminant Patterns: On the Robustness of Decision Rule Ensembles", 2025.
    .. [2] T. Verma and J. Pearl, "Equivalence and Synthesis of Causal Models", 1990.
    .. [3] S. Magliacane et al., "Domain Adaptation by Using Causal Inference to Predict
           Invariant Conditional Distributions", 2018, arXiv:1707.06422.

    Examples
    --------
    Example 1 of [1]_, whose A is not measured:

    >>> import networkx as nx
    >>> from sklearn_era.causal import invariant_features
    >>> graph = nx.DiGraph([("Y", "X1"), ("Y", "A"), ("A", "X2")])
    >>> invariant_features(graph, "Y", manipulable=["A"], features=["X1", "X2"])
    ['X1']
    """
    networkx = import_optional("networkx", extra="causal")
    _check_graph(networkx, graph, target, manipulable, features, hidden_causes)
    pairs = [tuple(pair) for pair in hidden_causes]
    measured = set(graph) if features is None else {target, *features}

    # Each hidden common cause is an unmeasured node from here on.
    whole = networkx.DiGraph(graph)
    for pair in pairs:
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

    def is_invariant(names: list[Any]) -> bool:
        return networkx.is_d_separator(whole, {environment}, {target}, set(names))

    kept = [name for name in networkx.topological_sort(whole) if name in candidates]
    left_out = []
    while kept and not is_invariant(kept):
        left_out.append(kept.pop())
    for name in reversed(left_out):
        if is_invariant([*kept, name]):
            kept.append(name)
    return [name for name in graph if name in kept]


def _check_graph(
    networkx: Any,
    graph: Any,
    target: Hashable,
    manipulable: Any,
    features: Any,
    hidden_causes: Any,
) -> None:
    """Raise ValueError for a graph that is none, or names that are not in it."""
    if not isinstance(graph, networkx.DiGraph):
        kind = type(graph).__name__
        raise ValueError(f"graph must be a networkx.DiGraph; got {kind}.")
    if not networkx.is_directed_acyclic_graph(graph):
        cycle = [edge[0] for edge in networkx.find_cycle(graph)]
        raise ValueError(
            f"graph has the cycle {' -> '.join(map(str, [*cycle, cycle[0]]))}; remove "
            "one of its edges, as no variable can be a cause of itself."
        )
    if not isinstance(hidden_causes, Collection):
        raise ValueError(f"hidden_causes must be pairs; got {hidden_causes!r}.")
    for pair in hidden_causes:
        # Of text, each letter would be a variable.
        is_pair = isinstance(pair, Collection) and not isinstance(pair, str)
        if not is_pair or len(pair) != 2 or len(set(pair)) != 2:
            raise ValueError(
                f"hidden_causes must be pairs of two variables; got {pair!r} in it."
            )
    given: dict[str, Iterable[Any]] = {
        "target": [target],
        "manipulable": manipulable,
        "features": () if features is None else features,
        "hidden_causes": [name for pair in hidden_causes for name in pair],
    }
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
    networkx: Any,
    whole: Any,
    measured: set[Any],
    manipulable: Collection[Hashable],
    affected: set[Any],
) -> set[Any]:
    """Return the measured variables that are not invariant by theorem 1 of Du et al.;
    the target and its descendants are `affected`.
    """
    to_measured = networkx.DiGraph(whole)
    to_measured.remove_edges_from(list(whole.out_edges(measured)))

    def reached(name: Hashable) -> set[Any]:
        """The measured variables that an unmeasured one reaches through such."""
        return networkx.descendants(to_measured, name) & measured

    confounded = networkx.Graph()
    confounded.add_nodes_from(measured)
    for name in set(whole) - measured:
        networkx.add_path(confounded, reached(name))
    may_change = set(manipulable) & measured
    may_change.update(*map(reached, set(manipulable) - measured))
    variant: set[Any] = set()
    for component in networkx.connected_components(confounded):
        if component & may_change and component & affected:
            variant |= component
    return variant


def mutual_information_ratios(
    X: Any,
    y: ArrayLike,
    invariant: Sequence[Any] | NDArray[Any],
    *,
    max_bins: int = 16,
) -> NDArray[np.float64]:
    """Compare what each column says of the target with what the invariant ones say.

    *Experimental*: it may change without a deprecation.

    The ratio of column s is ::

        I(X_s; Y) / mean of I(X_j; Y) over the invariant columns j

    Models fail in new environments where variant features have high ratios [1]_. I is
    the mutual information of the binned column and the binned target, in nats ::

        I = Σ_bc p_bc ln(p_bc / (p_b p_c)) - (B - 1) (C - 1) / (2 n)

    with B and C the numbers of bins that have rows. The second term is the bias of the
    first, of Miller and Madow [2]_: columns of noise come near 0. Less than 0 is 0.

    Parameters
    ----------
    X : array-like or data frame of shape (n_samples, n_features)
        The rows. Numbers are put into bins of about as many rows each; each category
        of a frame's columns of category, string or object dtype is a bin, and so are
        missing values.

    y : array-like of shape (n_samples,)
        The target. Numbers are binned as those of X where they are continuous to
        :func:`sklearn.utils.multiclass.type_of_target`; other values, whole numbers
        among them, are classes.

    invariant : sequence of {str, int, bool}
        The invariant columns: names of a frame, indices or a mask.

    max_bins : int, default=16
        Most bins of a column of numbers, in [2, 255], without that of missing values.

    Returns
    -------
    ratios : ndarray of shape (n_features,), dtype=float64
        At least 0; their mean over the invariant columns is 1.

    Raises
    ------
    ValueError
        If no column is invariant, one is not in X, they say nothing of the target, `y`
        misses some values, or `max_bins` is out of range.

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
    X: Any,
    y: ArrayLike,
    invariant: Sequence[Any] | NDArray[Any],
    *,
    max_bins: int = 16,
) -> NDArray[np.float64]:
    """Penalise the columns that are not invariant, by how much they tempt.

    *Experimental*: it may change without a deprecation.

    The penalty is 0 for invariant columns, and for the others what
    `mutual_information_ratios` gives: the centre of the soft mask of Du et al. (2025),
    "Beyond Discriminant Patterns", section III-B. It is what `feature_penalty` of the
    estimators takes. Trees do without columns of 1 or more, which say as much of the
    target as the invariant ones do; rules do so too, but for the noise of their mask.

    Parameters
    ----------
    X : array-like or data frame of shape (n_samples, n_features)
        The rows; all parameters are as in `mutual_information_ratios`.

    y : array-like of shape (n_samples,)
        The target.

    invariant : sequence of {str, int, bool}
        The invariant columns, as `invariant_features` returns them.

    max_bins : int, default=16
        Most bins of a column of numbers.

    Returns
    -------
    penalties : ndarray of shape (n_features,), dtype=float64
        Numbers of 0 or more.

    Raises
    ------
    ValueError
        As `mutual_information_ratios`.

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
    X: Any, y: ArrayLike, invariant: Any, max_bins: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The ratios of all columns, and which of them are invariant."""
    columns = read_columns(X)
    names = [column.name for column in columns]
    is_invariant = choose_columns(invariant, names, is_data_frame(X), name="invariant")
    if not is_invariant.any():
        raise ValueError("invariant has no column in it; name at least one.")
    mapper = make_bin_mapper(max_bins, 0)  # draws some rows of many, the same ones
    labels = check_eras(y, X, name="y")
    if type_of_target(labels) == "continuous":
        classes = mapper.fit_transform(labels.astype(np.float64)[:, np.newaxis])[:, 0]
    else:
        classes = encode_eras(labels).codes
    matrix, n_categories = as_matrix(columns)
    is_missing = np.isnan(matrix)
    bins = np.where(is_missing, n_categories, matrix)
    numbers = np.flatnonzero([not column.is_categorical for column in columns])
    if numbers.size:
        values = matrix[:, numbers]
        fit_float_mapper(mapper, values, None, [names[j] for j in numbers])
        bins[:, numbers] = mapper.transform(values)
    information = np.array([_mutual_information(column, classes) for column in bins.T])
    mean = information[is_invariant].mean()
    if mean == 0:
        named = list_columns([names[j] for j in np.flatnonzero(is_invariant)])
        raise ValueError(
            f"invariant: column(s) {named} say nothing of the target, and no other can "
            "be compared with them; name other columns, or pass more rows."
        )
    return information / mean, is_invariant


def _mutual_information(bins: NDArray[Any], classes: NDArray[Any]) -> float:
    """What a binned column says of the classes, in nats, less the Miller-Madow bias."""
    n_classes = int(classes.max()) + 1
    counts = np.bincount(bins.astype(np.intp) * n_classes + classes)
    counts.resize(int(bins.max()) + 1, n_classes)
    counts = counts[counts.any(axis=1)][:, counts.any(axis=0)]
    n_bins, n_classes = counts.shape
    bias = (n_bins - 1) * (n_classes - 1) / (2 * bins.size)
    return max(0.0, mutual_info_score(None, None, contingency=counts) - bias)
