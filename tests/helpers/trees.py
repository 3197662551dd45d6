"""Comparisons of two fits, from every bit down to the splits."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal


def trees_of(model) -> list:
    """The trees of a model in the order in which they grew."""
    return [tree for trees in model._predictors for tree in trees]


def n_splits(model) -> int:
    return sum(len(tree.nodes) // 2 for tree in trees_of(model))


def rows_of_nodes(predictor, X) -> dict[int, np.ndarray]:
    """The rows in each node, by a walk from the root in Python; X has no categories."""
    rows = {0: np.arange(X.shape[0])}
    for index, node in enumerate(predictor.nodes):
        if node["is_leaf"]:
            continue
        values = X[rows[index], node["feature_idx"]]
        goes_left = values <= node["num_threshold"]
        goes_left[np.isnan(values)] = node["missing_go_to_left"]
        rows[int(node["left"])] = rows[index][goes_left]
        rows[int(node["right"])] = rows[index][~goes_left]
    return dict(sorted(rows.items()))


def gain_and_direction(gradients, hessians, sides, l2):
    """Those of a split by hand, of the rows on either side."""
    G, H = (np.array([a[side].sum() for side in sides]) for a in (gradients, hessians))
    gain = (G**2 / (H + l2)).sum() - G.sum() ** 2 / (H.sum() + l2)
    return gain, np.sign(G[1] / (H[1] + l2) - G[0] / (H[0] + l2))


def assert_same_bins(ours, theirs) -> None:
    thresholds = ours.bin_thresholds_, theirs.bin_thresholds_
    for our_values, their_values in zip(*thresholds, strict=True):
        assert our_values.dtype == their_values.dtype
        assert_array_equal(our_values, their_values)
    assert_array_equal(ours.n_bins_non_missing_, theirs.n_bins_non_missing_)


def assert_same_trees(ours, theirs) -> None:
    assert [len(t) for t in ours._predictors] == [len(t) for t in theirs._predictors]
    for our_tree, their_tree in zip(trees_of(ours), trees_of(theirs), strict=True):
        for name in ("nodes", "binned_left_cat_bitsets", "raw_left_cat_bitsets"):
            found, expected = (getattr(tree, name) for tree in (our_tree, their_tree))
            assert np.array_equal(found, expected), name


def assert_same_model(ours, theirs, X) -> None:
    assert ours.n_iter_ == theirs.n_iter_
    assert_array_equal(ours._baseline_prediction, theirs._baseline_prediction)
    assert_same_trees(ours, theirs)
    for name in ("train_score_", "validation_score_"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
    for method in ("predict", "predict_proba", "decision_function", "_raw_predict"):
        if hasattr(theirs, method):
            found, expected = (getattr(model, method)(X) for model in (ours, theirs))
            assert np.array_equal(found, expected), method


def assert_same_splits(a, b, rtol=1e-6, atol=1e-8) -> None:
    """Compare splits exactly and values up to rounding."""
    for one, other in zip(trees_of(a), trees_of(b), strict=True):
        for name in ("feature_idx", "bin_threshold", "missing_go_to_left", "count"):
            assert_array_equal(one.nodes[name], other.nodes[name])
        assert_array_equal(one.binned_left_cat_bitsets, other.binned_left_cat_bitsets)
        assert_allclose(one.nodes["value"], other.nodes["value"], rtol=rtol, atol=atol)
