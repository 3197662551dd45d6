"""`sklearn_era.inspection` of forests: no tree builds on another."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from helpers import forests
from helpers.criteria import COVER_ALL
from helpers.forests import make_data
from helpers.trees import gain_and_direction
from sklearn_era.inspection import split_statistics


def make_forest(n_classes, y, **parameters):
    """A forest of regressors or classifiers, and its target."""
    if n_classes is None:
        return forests.regressor(**parameters), y
    return forests.classifier(**parameters), forests.make_classes(y, n_classes)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [None, 2, 3])
@pytest.mark.parametrize("split_criterion", ["gain", "directional"])
def test_without_draws_a_tree_saw_these_numbers(split_criterion, n_classes, weighted):
    X, y, eras = make_data(missing=0.1)
    weights = np.random.default_rng(1).uniform(0.5, 2, y.size) if weighted else None
    own = {"split_criterion": split_criterion, "min_samples_leaf": 5} | COVER_ALL
    own |= {"bootstrap": False, "max_features": 2, "l2_regularization": 0.5}
    forest, target = make_forest(n_classes, y, **own)
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


@pytest.mark.parametrize("n_classes", [None, 2, 3])
def test_gradients_are_taken_at_the_mean_of_each_tree(n_classes):
    """Gain and direction by era, worked out for each root from all rows given."""
    X, y, eras = make_data()
    other_X, other_y, other_eras = make_data(5)
    parameters = {"max_depth": 1, "bootstrap": "within_eras", "l2_regularization": 2.0}
    forest, target = make_forest(n_classes, y, **parameters)
    other_target = make_forest(n_classes, other_y)[1]
    forest.fit(X, target, eras=eras)
    outputs = [(target, other_target)]
    if n_classes is not None:
        labels = forest.classes_[n_classes == 2 :]
        outputs = [(target == label, other_target == label) for label in labels]
    splits = split_statistics(forest, other_X, other_target, eras=other_eras)
    row, draws = 0, forests.drawn_rows(forest, X, eras)
    for trees, drawn in zip(forest._predictors, draws, strict=True):
        for (output, other_output), tree in zip(outputs, trees, strict=True):
            gradients = np.mean(output[drawn.rows]) - other_output
            sides = dict(forests.rows_of_leaves(tree, other_X))
            both = [sides[int(tree.nodes[name][0])] for name in ("left", "right")]
            for era in range(3):
                rows = [side[other_eras[side] == era] for side in both]
                ones = np.ones(other_y.size)
                gain, direction = gain_and_direction(gradients, ones, rows, 2.0)
                assert_allclose(splits.era_gains[row, era], gain, rtol=1e-4, atol=1e-3)
                assert splits.era_directions[row, era] == direction
            assert splits["count"][row] == other_y.size
            assert splits.count_in_fit[row] == drawn.rows.size
            row += 1
    assert row == splits.gain.size
