"""Check the trees of a fitted model by brute force.

`check_fit` grows every tree once more, from the gradients that it was fitted to, by
following the fitted nodes: each of them must be a split that no admissible one beats
(`splits` judges them), made in best-first order, and no leaf may have been
left unsplit without a reason.
"""

import math
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from numpy.testing import assert_allclose

from oracle.problems import fitted_trees
from oracle.splits import MIN_HESSIAN_TO_SPLIT, Candidate, Node, Problem, candidates


@dataclass
class Report:
    """How much was checked, so that tests can assert that it was not nothing."""

    n_splits: int = 0
    n_candidates: int = 0
    n_leaves: int = 0
    n_unexpanded: int = 0
    n_undecided: int = 0  # checks that rounding made void

    def __add__(self, other: "Report") -> "Report":
        return Report(*map(sum, zip(astuple(self), astuple(other), strict=True)))


def check_fit(est: Any, X, y, eras=None, sample_weight=None) -> Report:
    """Check all trees of a model fitted to these data without early stopping."""
    report = Report()
    for problem, predictor in fitted_trees(est, X, y, eras, sample_weight):
        growth = _Growth(problem, predictor, report)
        growth.check()
        if growth.order_is_ambiguous and est.max_features < 1:
            # Nodes draw their features in the order of their making.
            report.n_undecided += 1
            break
    return report


class _Growth:
    """One tree, grown once more along the fitted nodes."""

    def __init__(self, problem: Problem, predictor: Any, report: Report):
        self.problem = problem
        self.nodes = predictor.nodes
        self.bitsets = predictor.binned_left_cat_bitsets
        self.report = report
        self.waiting: list[Node] = []  # splittable, and not split yet
        self.n_leaves = 1
        self.is_full = self.nodes["is_leaf"].sum() == problem.max_leaf_nodes
        self.order_is_ambiguous = False

    def check(self) -> None:
        """Expand the fitted tree best first."""
        problem = self.problem
        rows = np.ones(len(problem.X), dtype=bool)
        root = Node(0, rows, 0, 0.0, -math.inf, math.inf, problem.interaction_cst)
        assert self.nodes[0]["count"] == rows.sum()
        # scikit-learn gives the root the value 0, in the tree and in its gain.
        if problem.root_hessian < MIN_HESSIAN_TO_SPLIT:
            self._check_stopped(root)
        else:
            self._enter(root)
        while internal := [w for w in self.waiting if w.chosen is not None]:
            first = [w for w in internal if not self._is_outranked(w)]
            if not first:
                assert self.order_is_ambiguous, "a node with a lesser key was expanded"
                self.report.n_undecided += 1
                return
            # Which of two equals came first shows nowhere in the tree.
            self.order_is_ambiguous |= len(first) > 1
            if self.order_is_ambiguous and self.problem.draws_features:
                return
            self.waiting.remove(first[0])
            self._expand(first[0])
        for leaf in self.waiting:
            told = f"leaf {leaf.index} has admissible splits: {leaf.rivals}"
            assert self.n_leaves == problem.max_leaf_nodes, told
            self._check_leaf_value(leaf)
            self._check_gain_of_leaf(leaf)
            self.report.n_unexpanded += 1

    def _check_gain_of_leaf(self, leaf: Node) -> None:
        """That of the best split, or the largest where splits need a share of it."""
        gain, rules = self.nodes[leaf.index]["gain"], self.problem.rules
        shares = rules.gain_share > 0 and not rules.is_gain
        if leaf.has_uncertain_rivals:
            return
        rivals = [c.pooled_gain for c in (leaf.found if shares else leaf.rivals)]
        assert any(_lies_in(gain, rival) for rival in rivals)
        if shares and self.problem.penalties is None:
            sure = [c.pooled_gain.low for c in leaf.found if c.gains and c.certain]
            assert gain >= max(sure, default=0.0) * (1 - 1e-9)

    def _is_outranked(self, node: Node) -> bool:
        return any(
            all(rival.surely_precedes(node.chosen) for rival in _best_keys(other))
            for other in self.waiting
            if other is not node and not other.has_uncertain_rivals
        )

    def _enter(self, node: Node) -> None:
        """Decide what should become of a node; compare it with what did."""
        problem, fitted = self.problem, self.nodes[node.index]
        is_small = node.rows.sum() < 2 * problem.min_samples_leaf
        if node.depth == problem.max_depth or is_small:
            self._check_stopped(node)
            return
        found, uncertain_features = candidates(problem, node)
        self.report.n_candidates += len(found)
        possible = [c for c in found if c.valid is not False]
        certain = [c for c in possible if c.valid and c.certain]
        node.found, node.has_uncertain_rivals = found, bool(uncertain_features)
        node.rivals = [
            c for c in possible if not any(other.surely_beats(c) for other in certain)
        ]
        if fitted["is_leaf"] and fitted["gain"] == -1:
            # Nothing was found. (Who was found waits until the leaves run out.)
            may_be_last = self.order_is_ambiguous and self.is_full
            assert may_be_last or not certain, f"{node.index} splits: {certain[0]}"
            self.report.n_undecided += bool(possible)
            self._check_leaf_value(node)
            return
        if fitted["is_leaf"]:
            assert possible or uncertain_features, f"leaf {node.index} has no split"
            self.waiting.append(node)
            return
        chosen = [c for c in found if self._is_chosen(c, node)]
        if not chosen and fitted["feature_idx"] in uncertain_features:
            # Equal categories in another order: expand it, whatever its key.
            self.report.n_undecided += 1
            self.order_is_ambiguous = True
            self._expand(node)
            return
        assert chosen, f"split of node {node.index} is not admissible: {fitted}"
        node.chosen = chosen[0]
        self._check_best(node, found, certain)
        self.waiting.append(node)
        self.report.n_splits += 1

    def _is_chosen(self, candidate: Candidate, node: Node) -> bool:
        fitted = self.nodes[node.index]
        if candidate.feature != fitted["feature_idx"]:
            return False
        if candidate.categories is not None:
            return candidate.categories == self._left_categories(node)
        if candidate.bin != fitted["bin_threshold"]:
            return False
        if not self.problem.has_missing[candidate.feature]:
            return True  # the flag then marks the child with more rows
        return candidate.missing_left == fitted["missing_go_to_left"]

    def _left_categories(self, node: Node) -> frozenset[int]:
        words = self.bitsets[self.nodes[node.index]["bitset_idx"]]
        return frozenset(b for b in range(256) if words[b // 32] >> (b % 32) & 1)

    def _check_best(self, node: Node, found: list, certain: list) -> None:
        chosen, where = node.chosen, f"node {node.index}"
        assert chosen.valid is not False, f"{where} has a split that is not valid"
        for other in certain:
            assert not other.surely_beats(chosen), f"{where}: {other} beats {chosen}"
            if other.has_the_very_key_of(chosen):
                told = f"{where}: {other} has the key of {chosen} and gains more"
                assert other.pooled_gain.low <= chosen.pooled_gain.high, told
        # Empty bins make splits that differ in nothing: the first of them it is.
        # (scikit-learn's own splitter takes the last one where it scans leftwards.)
        if self.problem.sums_are_exact and not self.problem.rules.is_gain:
            same = [c for c in found if c.feature == chosen.feature]
            same = [c for c in same if not (node.rows & (c.left ^ chosen.left)).any()]
            assert chosen is same[0], f"{where}: {same[0]} comes before {chosen}"
        # Undecided: another split is as good, as far as the reference can see.
        self.report.n_undecided += any(
            (node.rows & (c.left ^ chosen.left)).any()
            for c in node.rivals
            if not c.has_the_very_key_of(chosen)
            or c.pooled_gain.high >= chosen.pooled_gain.low
        )

    def _expand(self, node: Node) -> None:
        problem, fitted = self.problem, self.nodes[node.index]
        x = problem.X[:, fitted["feature_idx"]]
        if fitted["is_categorical"]:
            left = np.isin(x, sorted(self._left_categories(node)))
        else:
            left = (x <= fitted["bin_threshold"]) & (x != problem.missing_bin)
            if fitted["missing_go_to_left"]:
                left |= x == problem.missing_bin
        sides = [node.rows & left, node.rows & ~left]
        values = [max(self._newton_value(x), node.lower) for x in sides]
        values = [min(value, node.upper) for value in values]
        G, G_L, G_R = (math.fsum(problem.gradients[r]) for r in (node.rows, *sides))
        gain = math.fsum((G * node.value, -G_L * values[0], -G_R * values[1]))
        size = math.fsum(abs(problem.gradients[node.rows]))
        scale = size * max(map(abs, (node.value, *values)))
        assert_allclose(fitted["gain"], gain, rtol=1e-9, atol=1e-9 * scale)

        bounds = [(node.lower, node.upper)] * 2
        if problem.monotonic_cst[fitted["feature_idx"]]:
            middle = (values[0] + values[1]) / 2
            bounds = [(node.lower, middle), (middle, node.upper)]
            if problem.monotonic_cst[fitted["feature_idx"]] < 0:
                bounds = [(middle, node.upper), (node.lower, middle)]
        sets = node.interaction_sets
        if sets is not None:
            sets = [s for s in sets if fitted["feature_idx"] in s]
        self.n_leaves += 1
        children = zip(fitted[["left", "right"]], sides, values, bounds, strict=True)
        for number, rows, value, bound in children:
            child = Node(int(number), rows, node.depth + 1, value, *bound, sets)
            found = self.nodes[child.index]
            assert (found["count"], found["depth"]) == (rows.sum(), child.depth)
            if not found["is_leaf"]:
                assert_allclose(found["value"], value, rtol=1e-9, atol=1e-12)
            if self.n_leaves == problem.max_leaf_nodes:
                self._check_stopped(child)
            else:
                self._enter(child)

    def _newton_value(self, rows: np.ndarray) -> float:
        G = math.fsum(self.problem.gradients[rows])
        H = math.fsum(self.problem.hessians[rows]) + self.problem.l2
        return -G / H if H > 0 else 0.0

    def _check_stopped(self, node: Node) -> None:
        """A limit was reached: the node must be a leaf that was never judged."""
        assert self.nodes[node.index]["is_leaf"], f"node {node.index} passes a limit"
        assert self.order_is_ambiguous or self.nodes[node.index]["gain"] == -1
        self._check_leaf_value(node)

    def _check_leaf_value(self, node: Node) -> None:
        value = self.nodes[node.index]["value"]
        expected = self.problem.leaf_value(node.rows, node.value)
        assert_allclose(value, expected, rtol=1e-9, atol=1e-12)
        self.report.n_leaves += 1


def _best_keys(node: Node) -> list[Candidate]:
    return node.rivals if node.chosen is None else [node.chosen]


def _lies_in(value: float, interval) -> bool:
    slack = 1e-9 * max(abs(interval.low), abs(interval.high))
    return interval.low - slack <= value <= interval.high + slack
