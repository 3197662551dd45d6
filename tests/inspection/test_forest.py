"""`sklearn_era.inspection` of forests: no tree builds on another."""

import matplotlib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from helpers.forests import (
    classifier,
    drawn_rows,
    make_classes,
    make_data,
    regressor,
    rows_of_leaves,
)
from sklearn_era.inspection import (
    EraScoreDisplay,
    SplitAgreementDisplay,
    era_feature_importances,
    split_statistics,
)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [None, 2, 3])
@pytest.mark.parametrize("split_criterion", ["gain", "directional"])
def test_without_draws_a_tree_saw_these_numbers(split_criterion, n_classes, weighted):
    X, y, eras = make_data(missing=0.1)
    weights = np.random.default_rng(1).uniform(0.5, 2, y.size) if weighted else None
    parameters = {
        "bootstrap": False,
        "max_features": 2,
        "split_criterion": split_criterion,
        "min_samples_leaf": 5,
        "l2_regularization": 0.5,
    }
    if n_classes is None:
        forest, target = regressor(**parameters), y
    else:
        forest, target = classifier(**parameters), make_classes(y, n_classes)
    forest.fit(X, target, weights, eras=eras)
    splits = split_statistics(forest, X, target, eras=eras, sample_weight=weights)
    n_trees = 6 * (3 if n_classes == 3 else 1)
    assert_array_equal(np.unique(splits.tree), np.arange(n_trees))
    assert_array_equal(splits["count"], splits.count_in_fit)
    assert_allclose(splits.gain, splits.gain_in_fit, rtol=1e-4, atol=1e-6)
    if n_classes == 3:
        assert_array_equal(splits.class_label, forest.classes_[splits.tree % 3])
    if split_criterion == "directional":
        assert (splits.n_eras_covered == 3).all()


@pytest.mark.parametrize("kind", ["regressor", "binary", "multiclass"])
def test_gradients_are_taken_at_the_mean_of_each_tree(kind):
    """Gain and direction by era, worked out for each root from all rows given."""
    X, y, eras = make_data()
    other_X, other_y, other_eras = make_data(5)
    if kind == "regressor":
        forest, target, other_target = regressor(max_depth=1), y, other_y
        outputs = [other_y]
    else:
        n_classes = 2 if kind == "binary" else 3
        forest = classifier(max_depth=1)
        target = make_classes(y, n_classes)
        other_target = make_classes(other_y, n_classes)
        labels = np.unique(target)
        outputs = [other_target == label for label in labels[n_classes == 2 :]]
    forest.set_params(bootstrap="era", l2_regularization=2.0)
    forest.fit(X, target, eras=eras)
    splits = split_statistics(forest, other_X, other_target, eras=other_eras)
    row = 0
    for trees, drawn in zip(
        forest._predictors, drawn_rows(forest, X, eras), strict=True
    ):
        for output, tree in enumerate(trees):
            drawn_target = target if kind == "regressor" else None
            if drawn_target is None:
                label = forest.classes_[1 if kind == "binary" else output]
                drawn_target = (target == label).astype(float)
            gradients = np.mean(drawn_target[drawn.rows]) - outputs[output]
            sides = dict(rows_of_leaves(tree, other_X))
            left, right = (
                sides[int(tree.nodes[side][0])] for side in ("left", "right")
            )
            for era in range(3):
                G = [
                    gradients[side[other_eras[side] == era]].sum()
                    for side in (left, right)
                ]
                H = [np.sum(other_eras[side] == era) + 2.0 for side in (left, right)]
                gain = G[0] ** 2 / H[0] + G[1] ** 2 / H[1]
                gain -= sum(G) ** 2 / (sum(H) - 2)
                assert_allclose(splits.era_gains[row, era], gain, rtol=1e-4, atol=1e-3)
                direction = np.sign(G[1] / H[1] - G[0] / H[0])
                assert splits.era_directions[row, era] == direction
            assert splits["count"][row] == other_y.size
            assert splits.count_in_fit[row] == drawn.rows.size
            row += 1
    assert row == splits.gain.size


def test_the_order_of_trees_does_not_matter():
    """As it would if the trees before were taken away from the target."""
    X, y, eras = make_data()
    forest = regressor(bootstrap="era", max_depth=3).fit(X, y, eras=eras)
    before = split_statistics(forest, X, y, eras=eras)
    forest._predictors.reverse()
    after = split_statistics(forest, X, y, eras=eras)
    for name in ("gain", "era_gains", "era_directions"):
        for tree in range(6):
            assert_array_equal(
                before[name][before.tree == tree], after[name][after.tree == 5 - tree]
            )


def test_importances_by_era_are_the_sums_of_gains():
    X, y, eras = make_data()
    forest = regressor(split_criterion="era", min_samples_leaf=5)
    forest.fit(X, y, eras=eras)
    splits = split_statistics(forest, X, y, eras=eras)
    result = era_feature_importances(forest, X, y, eras=eras)
    for feature in range(4):
        rows = splits.feature == feature
        assert_allclose(
            result.importances[:, feature], splits.era_gains[rows].sum(axis=0)
        )
        assert_allclose(result.pooled[feature], splits.gain[rows].sum())
    assert result.importances[1].argmax() == 0  # there the second feature does nothing


def test_figures_take_forests():
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    X, y, eras = make_data()
    forest = regressor(split_criterion="directional").fit(X, y, eras=eras)
    splits = split_statistics(forest, X, y, eras=eras)
    display = SplitAgreementDisplay.from_estimator(forest, X, y, eras=eras)
    assert_array_equal(display.direction_agreement, splits.direction_agreement)
    EraScoreDisplay.from_estimator(forest, X, y, eras=eras, scoring="r2")
    plt.close("all")
