"""All data sets, the real one, and the one that tempts to memorise."""

import numpy as np
import pytest
from sklearn.utils._param_validation import InvalidParameterError

from sklearn_era.datasets import (
    load_bike_sharing,
    make_numerai_like,
    make_synthetic_memorization,
)


@pytest.mark.parametrize("make", [make_numerai_like, make_synthetic_memorization])
def test_same_seed_same_data(make):
    small = {"n_eras": 8, "rows_per_era": 50, "n_fading_eras": 2}
    options = small if make is make_numerai_like else {}
    first, second, state, other = (
        make(random_state=seed, **options)
        for seed in (3, 3, np.random.RandomState(3), 4)
    )
    assert first.keys() == other.keys()
    for key, values in first.items():
        assert np.array_equal(values, second[key])
        assert np.array_equal(values, state[key])
        if key.startswith(("X", "y", "effects", "shortcut_anchors")):
            assert not np.array_equal(values, other[key])


BAD_PARAMETERS = {
    make_numerai_like: [
        ("rows_per_era", 4), ("n_stable", -1), ("random_state", "seed"),
    ],
    make_synthetic_memorization: [
        ("n_eras", 0), ("n_samples_per_era", 2.5), ("n_test_samples", -1),
        ("n_shortcut_features", -1), ("n_anchors_per_era", 0), ("n_rotations", 0),
        ("radial_noise", -0.1), ("random_state", "seed"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("make", "params", "message"),
    [
        (make_numerai_like, {"n_stable": 40, "n_unstable": 30},
         "n_stable=40 and n_unstable=30"),
        (make_numerai_like, {"n_fading_eras": 200},
         "n_fading_eras=200 are more eras than n_eras=140"),
    ],
)  # fmt: skip
def test_more_special_features_or_eras_than_there_are(make, params, message):
    with pytest.raises(ValueError, match=message):
        make(**params)


@pytest.mark.parametrize(
    ("make", "name", "value"),
    [(make, *pair) for make, pairs in BAD_PARAMETERS.items() for pair in pairs],
)
def test_parameters_out_of_range_are_named(make, name, value):
    message = f"The '{name}' parameter .* Got '?{value}"
    with pytest.raises(InvalidParameterError, match=message):
        make(**{name: value})


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
    assert (data.X_train.shape, data.X_test.shape) == ((12288, 18), (2000, 18))
    assert data.y_train.shape == data.eras_train.shape == (12288,)
    assert data.y_test.shape == (2000,)
    assert data.shortcut_anchors.shape == (16, 3, 16)
    assert data.X_train.dtype == data.X_test.dtype == np.float64
    assert data.y_train.dtype == data.y_test.dtype == data.eras_train.dtype == np.int64
    assert data.feature_names[:3] == ["spiral_x", "spiral_y", "shortcut_0"]
    assert len(data.feature_names) == 18
    assert np.array_equal(data.eras_train, np.repeat(np.arange(16), 768))


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


def test_shortcut_is_the_era_s_anchors_mirrored_by_class_and_noise_at_test():
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
    # At test it is noise.
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


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_eras": 1}, {"n_eras": 2}, {"n_anchors_per_era": 1},
        {"n_anchors_per_era": 5, "n_samples_per_era": 7}, {"n_shortcut_features": 0},
        {"n_samples_per_era": 1}, {"n_test_samples": 0},
        {"n_rotations": 0.5, "radial_noise": 0.0},
    ],
)  # fmt: skip
def test_parameters_change_the_shapes(parameters):
    given = {
        "n_eras": 16, "n_samples_per_era": 20, "n_test_samples": 30,
        "n_shortcut_features": 16, "n_anchors_per_era": 3, **parameters,
    }  # fmt: skip
    data = make_synthetic_memorization(**given, random_state=0)
    n_features = 2 + given["n_shortcut_features"]
    n_train = given["n_eras"] * given["n_samples_per_era"]
    assert data.X_train.shape == (n_train, n_features)
    assert data.X_test.shape == (given["n_test_samples"], n_features)
    shape = ("n_eras", "n_anchors_per_era", "n_shortcut_features")
    assert data.shortcut_anchors.shape == tuple(given[name] for name in shape)
    assert np.isfinite(data.X_train).all()


def test_bike_sharing_is_the_hours_of_two_years():
    bikes = load_bike_sharing()
    assert bikes.data.shape == (17379, len(bikes.feature_names))
    assert bikes.data.dtype == bikes.target.dtype == np.float64
    assert np.isfinite(bikes.data).all()
    months, counts = np.unique(bikes.eras, return_counts=True)
    assert (months[0], months[-1], months.size) == ("2011-01", "2012-12", 24)
    assert counts.sum() == 17379
    assert counts.min() > 600
    assert np.all(np.diff(bikes.dates) >= np.timedelta64(0))
    # The totals of both years, by the publication.
    years = bikes.dates.astype("datetime64[Y]").astype(int) + 1970
    assert [bikes.target[years == year].sum() for year in (2011, 2012)] == [
        1243103,
        2049576,
    ]


def test_bike_sharing_as_a_frame_is_the_same():
    bikes, framed = load_bike_sharing(), load_bike_sharing(as_frame=True)
    for key in ("data", "target", "eras", "dates"):
        np.testing.assert_array_equal(framed[key].to_numpy(), bikes[key])
    assert framed.frame.columns.tolist() == [
        "date",
        "month",
        *bikes.feature_names,
        "count",
    ]
    with pytest.raises(InvalidParameterError, match="as_frame"):
        load_bike_sharing(as_frame="yes")
