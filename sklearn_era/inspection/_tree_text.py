"""Write a tree as text or for Graphviz, with the agreement of eras on splits."""

import json
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from .._trees.traversal import column_of_feature, threshold_text
from .._typing import Eras, Table
from ..ensemble._forests.fit import ForestFitMixin
from ._features import feature_names, left_categories
from ._replay import check_hist_gradient_boosting
from ._split_statistics import split_statistics

CUT = "(...)"  # in place of a split that is too deep


class Node(NamedTuple):
    """A node of a tree, in words; a leaf has no children."""

    depth: int
    value: str  # of a leaf
    children: tuple[int, ...] = ()
    left: str = ""  # the condition of its rows
    right: str = ""
    facts: tuple[str, ...] = ()  # rows, gain, and the agreement of eras
    # By era, with the sign of its direction: the root of the gain per row.
    effects: NDArray[np.float64] | None = None


def describe_tree(
    estimator: BaseEstimator, X: Table, y: ArrayLike, eras: Eras | None,
    weights: ArrayLike | None, tree: int, max_depth: float, all_digits: bool = True,
) -> list[Node]:  # fmt: skip
    """Return a list of a tree's nodes in words, in the order of the tree. Splits deeper
    than `max_depth` are cut off. Thresholds have all digits or, without `all_digits`,
    as many as tell the tree's thresholds of a feature apart. If X, y and eras are
    given, splits have the directions of eras.
    """
    check_hist_gradient_boosting(estimator)
    trees = [tree for trees in estimator._predictors for tree in trees]
    if not isinstance(tree, Integral) or not 0 <= tree < len(trees):
        raise ValueError(
            f"tree must be an integer from 0 to {len(trees) - 1}; got {tree!r}."
        )
    if not isinstance(max_depth, Real):
        raise ValueError(f"max_depth must be a number; got {max_depth!r}.")
    if len({X is None, y is None, eras is None}) > 1:
        raise ValueError("X, y and eras are of the same rows: pass all three, or none.")
    table, rows = None, {}
    if X is not None:
        table = split_statistics(estimator, X, y, eras=eras, sample_weight=weights)
        rows = {int(table.node[i]): i for i in np.flatnonzero(table.tree == tree)}
    names = feature_names(estimator)[column_of_feature(estimator)]
    # All values of a forest are divided by the number of trees.
    scale = estimator.n_iter_ if isinstance(estimator, ForestFitMixin) else 1
    nodes, splits = [], trees[tree].nodes[trees[tree].nodes["is_leaf"] == 0]
    for i, node in enumerate(trees[tree].nodes):
        depth, value = int(node["depth"]), f"{node['value'] * scale:.6g}"
        if node["is_leaf"] or depth > max_depth:
            nodes.append(Node(depth, value if node["is_leaf"] else CUT))
            continue
        feature = node["feature_idx"]
        categories = left_categories(estimator, trees[tree], i)
        of_feature = splits["num_threshold"][splits["feature_idx"] == feature]
        text = threshold_text(node["num_threshold"], None if all_digits else of_feature)
        sides = _sides(names[feature], node, text, categories)
        children = int(node["left"]), int(node["right"])
        count, gain, more, effects = node["count"], node["gain"], (), None
        if table is not None:
            row = rows[i]
            count, gain = table["count"][row], table.gain[row]
            signs = table.era_directions[row]
            means = table.era_gains[row] / np.maximum(table.era_counts[row], 1)
            effects = signs * np.sqrt(np.maximum(means, 0))
            left, right = (signs > 0).sum(), (signs < 0).sum()
            more = (f"more on the left in {left}, right in {right}",)
        facts = (f"{count:,} rows, gain {gain:.4g}", *more)
        nodes.append(Node(depth, value, children, *sides, facts, effects))
    return nodes


def _sides(
    name: str, node: Any, threshold: str, categories: tuple[Any, ...] | None
) -> tuple[str, str]:
    """Return (left, right), as texts: the conditions for a row to go to each side."""
    missing, known = f"{name} is missing", f"{name} is not missing"
    if categories == ():
        return missing, known
    if categories is not None:
        listed = ", ".join(map(str, categories))
        left, right = f"{name} in {{{listed}}}", f"{name} not in {{{listed}}}"
    elif np.isinf(node["num_threshold"]):
        return known, missing
    else:
        left, right = f"{name} <= {threshold}", f"{name} > {threshold}"
    if node["missing_go_to_left"]:
        return f"{left} or missing", right
    return left, f"{right} or missing"


def export_text(
    estimator: BaseEstimator, X: Any = None, y: Any = None, *, eras: Any = None,
    sample_weight: Any = None, tree: int = 0, max_depth: int = 10,
) -> str:  # fmt: skip
    """Return a tree of a booster or forest as text, with the agreement of eras.

    The format is that of :func:`sklearn.tree.export_text`, with categories and missing
    values. A split has its number of rows and its gain, both from the fit or, if `X` is
    given, from `X`. It then also has the number of eras in which the left side predicts
    more, and the number in which the right side does.

    Parameters
    ----------
    estimator, X, y, eras, sample_weight :
        As in `split_statistics`; or None for `X`, `y` and `eras` together.
    tree : int, default=0
        The number of the tree, as in `split_statistics`.
    max_depth : int, default=10
        The depth of the deepest splits to show, where the root has depth 0.

    Returns
    -------
    text : str
        Lines, the left side of a split before the right side. The value of a leaf is
        added to raw predictions in a booster, and is the tree's prediction in a forest.

    Raises
    ------
    ValueError
        As `split_statistics`, or if `tree` is unknown, or if only some of X, y and eras
        are given.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.ensemble import HistGradientBoostingRegressor
    >>> from sklearn_era.inspection import export_text
    >>> X, eras = np.arange(200.0)[:, np.newaxis], np.arange(200) % 4
    >>> y = np.where(X[:, 0] < 100, 0.0, np.where(eras == 3, -0.5, 1.0))
    >>> model = HistGradientBoostingRegressor(max_iter=1, max_depth=1).fit(X, y)
    >>> print(export_text(model, X, y, eras=eras))
    |--- x0 <= 99.5  [200 rows, gain 19.53; more on the left in 1, right in 3]
    |   |--- value: -0.03125
    |--- x0 > 99.5 or missing
    |   |--- value: 0.03125
    """
    nodes = describe_tree(estimator, X, y, eras, sample_weight, tree, max_depth)

    def lines(i: int) -> Iterator[str]:
        node, bars = nodes[i], "|   " * nodes[i].depth + "|--- "
        if not node.children:
            yield bars + ("" if node.value == CUT else "value: ") + node.value
            return
        yield f"{bars}{node.left}  [{'; '.join(node.facts)}]"
        yield from lines(node.children[0])
        yield f"{bars}{node.right}"
        yield from lines(node.children[1])

    return "\n".join(lines(0))


def export_graphviz(
    estimator: BaseEstimator, X: Any = None, y: Any = None, *, eras: Any = None,
    sample_weight: Any = None, tree: int = 0,
) -> str:  # fmt: skip
    """Return a tree of a booster or forest in the DOT language of Graphviz.

    Parameters
    ----------
    estimator, X, y, eras, sample_weight, tree :
        As in `export_text`.

    Returns
    -------
    dot : str
        The graph, for ``graphviz.Source(dot)`` or the program ``dot``. Texts, and the
        errors raised, are those of `export_text`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.ensemble import HistGradientBoostingRegressor
    >>> from sklearn_era.inspection import export_graphviz
    >>> X = np.arange(200.0)[:, np.newaxis]
    >>> model = HistGradientBoostingRegressor(max_iter=1, max_depth=1).fit(X, X[:, 0])
    >>> print(export_graphviz(model)[:14])
    digraph Tree {
    """
    lines = ["digraph Tree {", "node [shape=box];"]
    nodes = describe_tree(estimator, X, y, eras, sample_weight, tree, np.inf)
    for i, node in enumerate(nodes):
        text = "\n".join([node.left, *node.facts] if node.children else [node.value])
        lines.append(f"{i} [label={json.dumps(text, ensure_ascii=False)}];")
        for child, answer in zip(node.children, ("yes", "no"), strict=False):
            lines.append(f"{i} -> {child} [label={answer}];")
    return "\n".join([*lines, "}"])
