"""The generated data sets, and that they show what they were made to show."""

import numpy as np
import pytest

from sklearn_era.datasets import make_synthetic_memorization
from sklearn_era.ensemble import HistGradientBoostingRegressor


def residual_angle(X, y, n_rotations=3.0):
    """How far each point is from its class's arm, in radians."""
    radius = np.hypot(X[:, 0], X[:, 1])
    # The largest radius before scaling is 1, and the mean square is as it would be on
    # a full turn: both follow from E[x²] = 1.
    scale = np.sqrt((0.08**2 + 0.08 + 1 + 0.02**2) / 3 / 2)
    arm = 2 * np.pi * n_rotations * radius * scale + np.pi * y
    return np.angle(np.exp(1j * (np.arctan2(X[:, 1], X[:, 0]) - arm)))


def test_default_shapes_and_dtypes():
    data = make_synthetic_memorization(random_state=0)
    assert data.X_train.shape == (12288, 18)
    assert data.y_train.shape == data.eras_train.shape == (12288,)
    assert data.X_test.shape == (2000, 18)
    assert data.y_test.shape == (2000,)
    assert data.shortcut_anchors.shape == (16, 3, 16)
    assert data.X_train.dtype == data.X_test.dtype == np.float64
    assert data.y_train.dtype == data.y_test.dtype == data.eras_train.dtype == np.int64
    assert data.feature_names[:3] == ["spiral_x", "spiral_y", "shortcut_0"]
    assert len(data.feature_names) == 18
    assert np.array_equal(data.eras_train, np.repeat(np.arange(16), 768))


def test_same_seed_same_data():
    first = make_synthetic_memorization(random_state=3, n_samples_per_era=40)
    second = make_synthetic_memorization(random_state=3, n_samples_per_era=40)
    other = make_synthetic_memorization(random_state=4, n_samples_per_era=40)
    for key in ("X_train", "y_train", "X_test", "y_test", "shortcut_anchors"):
        assert np.array_equal(first[key], second[key])
        assert not np.array_equal(first[key], other[key])


@pytest.mark.parametrize("part", ["train", "test"])
def test_spiral_is_that_of_the_authors(part):
    # Measured on the arrays of the paper: radii from 0.15 to 2.42, angles off by 0.22.
    data = make_synthetic_memorization(random_state=0)
    X, y = data[f"X_{part}"], data[f"y_{part}"]
    radius = np.hypot(X[:, 0], X[:, 1])
    residual = residual_angle(X, y)
    assert 0.14 < radius.min() < 0.2
    assert 2.35 < radius.max() < 2.42
    assert np.quantile(radius, [0.25, 0.5, 0.75]) == pytest.approx(
        [0.73, 1.27, 1.81], abs=0.05
    )
    assert X[:, :2].std(axis=0) == pytest.approx([1, 1], abs=0.03)
    assert residual.std() == pytest.approx(0.218, abs=0.01)
    assert np.abs(residual).max() < np.pi / 2  # no point nears the other arm
    assert y.mean() == pytest.approx(0.5, abs=0.05)


def test_shortcut_is_the_era_s_anchors_mirrored_by_class():
    data = make_synthetic_memorization(random_state=0)
    side = np.where(data.y_train == 0, 1, -1)
    positions = data.X_train[:, 2:] * side[:, np.newaxis]
    for era, anchors in enumerate(data.shortcut_anchors):
        used, counts = np.unique(
            positions[data.eras_train == era], axis=0, return_counts=True
        )
        dealt, n_times = np.unique(anchors, axis=0, return_counts=True)
        assert np.array_equal(used, dealt)
        assert np.array_equal(counts, 256 * n_times)
    pool, n_dealt = np.unique(
        data.shortcut_anchors.reshape(-1, 16), axis=0, return_counts=True
    )
    assert pool.shape == (16, 16)
    assert np.all(n_dealt == 3)
    assert pool.std() == pytest.approx(1, abs=0.15)


def test_shortcut_is_noise_at_test():
    data = make_synthetic_memorization(random_state=0)
    shortcut = data.X_test[:, 2:]
    assert shortcut.mean(axis=0) == pytest.approx(np.zeros(16), abs=0.1)
    assert shortcut.std(axis=0) == pytest.approx(np.ones(16), abs=0.1)
    assert len(np.unique(shortcut, axis=0)) == 2000


@pytest.mark.parametrize("seed", range(20))
def test_each_shortcut_split_turns_round_in_some_era(seed):
    anchors = make_synthetic_memorization(
        random_state=seed, n_samples_per_era=1, n_test_samples=0
    ).shortcut_anchors
    for feature in range(anchors.shape[2]):
        values = anchors[:, :, feature]
        for threshold in np.unique([values, -values])[:-1]:
            class_0 = (values <= threshold).mean(axis=1)
            class_1 = (-values <= threshold).mean(axis=1)
            if np.all((class_0 + class_1 > 0) & (class_0 + class_1 < 2)):
                assert np.any(class_0 > class_1)
                assert np.any(class_0 < class_1)


@pytest.mark.parametrize("random_state", [0, 1])
def test_gain_memorises_and_directional_does_not(random_state):
    data = make_synthetic_memorization(random_state=random_state)

    def accuracy_on_test_set(split_criterion):
        estimator = HistGradientBoostingRegressor(
            max_iter=50,
            max_depth=10,
            learning_rate=1,
            max_leaf_nodes=32,
            early_stopping=False,
            split_criterion=split_criterion,
        ).fit(data.X_train, data.y_train, eras=data.eras_train)
        return np.mean((estimator.predict(data.X_test) > 0.5) == data.y_test)

    assert accuracy_on_test_set("gain") == pytest.approx(0.5, abs=0.05)
    assert accuracy_on_test_set("directional") >= 0.98


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_eras": 1},
        {"n_eras": 2},
        {"n_anchors_per_era": 1},
        {"n_anchors_per_era": 5, "n_samples_per_era": 7},
        {"n_shortcut_features": 0},
        {"n_samples_per_era": 1},
        {"n_test_samples": 0},
        {"n_rotations": 0.5, "radial_noise": 0.0},
    ],
)
def test_parameters_change_the_shapes(parameters):
    given = {
        "n_eras": 16,
        "n_samples_per_era": 20,
        "n_test_samples": 30,
        "n_shortcut_features": 16,
        "n_anchors_per_era": 3,
        **parameters,
    }
    data = make_synthetic_memorization(**given, random_state=0)
    n_features = 2 + given["n_shortcut_features"]
    n_train = given["n_eras"] * given["n_samples_per_era"]
    assert data.X_train.shape == (n_train, n_features)
    assert data.X_test.shape == (given["n_test_samples"], n_features)
    assert data.shortcut_anchors.shape == (
        given["n_eras"],
        given["n_anchors_per_era"],
        given["n_shortcut_features"],
    )
    assert np.isfinite(data.X_train).all()


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_eras": 0},
        {"n_samples_per_era": 2.5},
        {"n_test_samples": -1},
        {"n_shortcut_features": -1},
        {"n_anchors_per_era": 0},
        {"n_rotations": 0},
        {"radial_noise": -0.1},
        {"random_state": "seed"},
    ],
)
def test_bad_parameters_are_named(parameters):
    (name,) = parameters
    with pytest.raises(ValueError, match=f"The '{name}' parameter"):
        make_synthetic_memorization(**parameters)
