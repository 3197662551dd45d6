"""All data sets: the real one, the one that tempts to memorise, and Numerai's like."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils._param_validation import InvalidParameterError

from sklearn_era.criteria import Directional
from sklearn_era.datasets import load_bike_sharing, make_numerai_like
from sklearn_era.datasets import make_synthetic_memorization as make_spiral
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.numerai.metrics import numerai_corr


@pytest.mark.parametrize("make", [make_numerai_like, make_spiral])
def test_same_seed_same_data(make):
    small = {"n_eras": 8, "rows_per_era": 50, "n_fading_eras": 2}
    options = small if make is make_numerai_like else {}
    seeds = 3, 3, np.random.RandomState(3), 4
    first, second, state, other = (make(random_state=x, **options) for x in seeds)
    assert first.keys() == other.keys()
    for key, values in first.items():
        assert np.array_equal(values, second[key])
        assert np.array_equal(values, state[key])
        if key.startswith(("X", "y", "effects", "shortcut_anchors")):
            assert not np.array_equal(values, other[key])


@pytest.mark.parametrize(("make", "params", "message"), [
    (make_numerai_like, {"n_stable": 40, "n_unstable": 30},
     "n_stable=40 and n_unstable=30"),
    (make_numerai_like, {"n_fading_eras": 200},
     "n_fading_eras=200 are more eras than n_eras=140"),
    (make_numerai_like, {"rows_per_era": 4}, "'rows_per_era' .* Got 4"),
    (make_numerai_like, {"n_stable": -1}, "'n_stable' .* Got -1"),
    (make_spiral, {"n_eras": 0}, "'n_eras' .* Got 0"),
    (make_spiral, {"n_test_samples": -1}, "'n_test_samples' "),
    (make_spiral, {"n_rotations": 0}, "'n_rotations' .* Got 0"),
    (make_spiral, {"radial_noise": -0.1}, "'radial_noise' "),
    (make_spiral, {"random_state": "seed"}, "'random_state' "),
    (load_bike_sharing, {"as_frame": "yes"}, "'as_frame' "),
])  # fmt: skip
def test_parameters_out_of_range_are_named(make, params, message):
    with pytest.raises(ValueError, match=message) as caught:
        make(**params)
    assert isinstance(caught.value, InvalidParameterError) == message.startswith("'")


def residual_angle(X, y, n_rotations=3.0):
    """How far each point is from its class's arm, in radians."""
    radius = np.hypot(X[:, 0], X[:, 1])
    # The largest radius before scaling is 1, and the mean square is as it would be on
    # a full turn: both follow from E[x²] = 1.
    scale = np.sqrt((0.08**2 + 0.08 + 1 + 0.02**2) / 3 / 2)
    arm = 2 * np.pi * n_rotations * radius * scale + np.pi * y
    return np.angle(np.exp(1j * (np.arctan2(X[:, 1], X[:, 0]) - arm)))


@pytest.mark.parametrize("part", ["train", "test"])
def test_spiral_is_that_of_the_authors(part):
    # Measured on the arrays of the paper: radii from 0.15 to 2.42, angles off by 0.22.
    data = make_spiral(random_state=0)
    X, y = data[f"X_{part}"], data[f"y_{part}"]
    assert data.feature_names[:3] == ["spiral_x", "spiral_y", "shortcut_0"]
    assert (X.dtype, y.dtype) == (np.float64, np.int64)
    radius, residual = np.hypot(X[:, 0], X[:, 1]), residual_angle(X, y)
    assert 0.14 < radius.min() < 0.2
    assert 2.35 < radius.max() < 2.42
    quartiles = np.quantile(radius, [0.25, 0.5, 0.75])
    assert quartiles == pytest.approx([0.73, 1.27, 1.81], abs=0.05)
    assert X[:, :2].std(axis=0) == pytest.approx([1, 1], abs=0.03)
    assert residual.std() == pytest.approx(0.218, abs=0.01)
    assert np.abs(residual).max() < np.pi / 2  # no point nears the other arm
    assert y.mean() == pytest.approx(0.5, abs=0.05)


def test_shortcut_is_the_era_s_anchors_mirrored_by_class_and_noise_at_test():
    data = make_spiral(random_state=0)
    assert np.array_equal(data.eras_train, np.repeat(np.arange(16), 768))
    side = np.where(data.y_train == 0, 1, -1)
    positions = data.X_train[:, 2:] * side[:, np.newaxis]
    for era, anchors in enumerate(data.shortcut_anchors):
        own = positions[data.eras_train == era]
        used, counts = np.unique(own, axis=0, return_counts=True)
        dealt, n_times = np.unique(anchors, axis=0, return_counts=True)
        assert np.array_equal(used, dealt)
        assert np.array_equal(counts, 256 * n_times)
    anchors = data.shortcut_anchors.reshape(-1, 16)
    pool, n_dealt = np.unique(anchors, axis=0, return_counts=True)
    assert pool.shape == (16, 16)
    assert np.all(n_dealt == 3)
    assert pool.std() == pytest.approx(1, abs=0.15)
    shortcut = data.X_test[:, 2:]
    assert shortcut.mean(axis=0) == pytest.approx(np.zeros(16), abs=0.1)
    assert shortcut.std(axis=0) == pytest.approx(np.ones(16), abs=0.1)
    assert len(np.unique(shortcut, axis=0)) == 2000


@pytest.mark.parametrize("seed", range(10))
def test_each_shortcut_split_turns_round_in_some_era(seed):
    few = {"n_samples_per_era": 1, "n_test_samples": 0}
    anchors = make_spiral(random_state=seed, **few).shortcut_anchors
    for values in np.moveaxis(anchors, 2, 0):
        for threshold in np.unique([values, -values])[:-1]:
            class_0 = (values <= threshold).mean(axis=1)
            class_1 = (-values <= threshold).mean(axis=1)
            if np.all((class_0 + class_1 > 0) & (class_0 + class_1 < 2)):
                assert np.any(class_0 > class_1)
                assert np.any(class_0 < class_1)


@pytest.mark.parametrize("parameters", [
    {}, {"n_eras": 1}, {"n_eras": 2}, {"n_anchors_per_era": 1},
    {"n_anchors_per_era": 5, "n_samples_per_era": 7}, {"n_shortcut_features": 0},
    {"n_samples_per_era": 1}, {"n_test_samples": 0},
    {"n_rotations": 0.5, "radial_noise": 0.0},
])  # fmt: skip
def test_parameters_change_the_shapes(parameters):
    given = {
        "n_eras": 16, "n_samples_per_era": 768, "n_test_samples": 2000,
        "n_shortcut_features": 16, "n_anchors_per_era": 3, **parameters,
    }  # fmt: skip
    data = make_spiral(**parameters, random_state=0)
    n_eras, n_samples, n_test, n_features, n_anchors, *_ = given.values()
    assert data.X_train.shape == (n_eras * n_samples, 2 + n_features)
    assert data.X_test.shape == (n_test, 2 + n_features)
    assert data.shortcut_anchors.shape == (n_eras, n_anchors, n_features)
    assert len(data.feature_names) == 2 + n_features
    assert np.isfinite(data.X_train).all()


@given(
    n_eras=st.integers(1, 5), n_rows=st.integers(5, 60), n_features=st.integers(1, 6),
    n_live=st.integers(0, 3), n_targets=st.integers(1, 3), seed=st.integers(0, 99),
)  # fmt: skip
def test_each_era_has_equal_bins_and_the_target_its_masses(
    n_eras, n_rows, n_features, n_live, n_targets, seed
):
    data = make_numerai_like(
        n_eras, n_rows, n_features, n_fading_eras=0, n_live_eras=n_live, n_stable=1,
        n_unstable=n_features - 1, n_targets=n_targets, random_state=seed,
    )  # fmt: skip
    assert (data.X.dtype, data.y.dtype, data.eras.dtype) == ("i1", "f4", "i8")
    assert (len(data.X), len(data.X_live)) == (n_eras * n_rows, n_live * n_rows)
    eras = np.concatenate([data.eras, data.eras_live])
    assert np.array_equal(eras, np.repeat(1 + np.arange(n_eras + n_live), n_rows))
    X = np.concatenate([data.X, data.X_live]).reshape(-1, n_rows, n_features)
    y = np.concatenate([data.y, data.y_live]).reshape(-1, n_rows, n_targets)
    counts = np.stack([(value == X).sum(axis=1) for value in range(5)])
    assert np.ptp(counts, axis=0).max() <= 1
    shares = {0: 0.05, 0.25: 0.25, 0.5: 0.75, 0.75: 0.95, 1: 1}
    for value, share in shares.items():
        below = (y <= value).sum(axis=1)
        assert np.abs(below - share * n_rows).max() <= 0.5 + 1e-9


def test_stable_effects_are_constant_and_unstable_ones_are_as_documented():
    n, of = 4000, {"n_stable": 3, "n_unstable": 4, "random_state": 0}
    data = make_numerai_like(2 * n, 5, 10, n_fading_eras=n, n_live_eras=n, **of)
    stable, unstable = data.stable_features, data.unstable_features
    assert np.all(np.abs(data.effects[:, stable]) == 0.045)
    assert np.all(np.ptp(data.effects[:, stable], axis=0) == 0)
    assert not np.delete(data.effects, [*stable, *unstable], axis=1).any()
    parts = data.effects[:, unstable].reshape(3, n, 4)
    assert set(np.unique(parts)) == {-0.18, 0.0, 0.18}
    ones = 0.18 * np.sign(parts[0].mean(axis=0))
    for part, *shares in zip(parts, (0.3, 0.2, 0.1), (0.1, 0.2, 0.3), strict=True):
        for share, effect in zip(shares, (ones, -ones), strict=True):
            assert (part == effect).mean(axis=0) == pytest.approx(share, abs=0.03)


def test_targets_follow_the_effects():
    n_rows = 40_000  # so many that an era's regression finds each effect
    of = {"n_fading_eras": 3, "n_live_eras": 1, "n_stable": 2, "n_unstable": 3}
    data = make_numerai_like(4, n_rows, 8, random_state=1, **of)
    X = np.concatenate([data.X, data.X_live]).reshape(5, n_rows, 8)
    y = np.concatenate([data.y, data.y_live]).reshape(5, n_rows)
    for era, effects in enumerate(data.effects):
        slopes = np.linalg.lstsq((X[era] - 2) / np.sqrt(2), y[era] - 0.5)[0]
        # A target's spread is 0.224, and ranks of the latent return blur it a little.
        scale = np.sqrt(1 + effects @ effects) / 0.224
        assert slopes * scale == pytest.approx(effects * 0.96, abs=0.02)


@pytest.mark.slow
def test_targets_have_correlated_noise():
    options = {"n_stable": 0, "n_unstable": 0, "n_targets": 2, "random_state": 0}
    # 0.8 for returns, and less for their five values.
    found = np.corrcoef(make_numerai_like(**options).y.T)[0, 1]
    assert found == pytest.approx(0.714, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_directional_is_better_than_gain_when_unstable_effects_reverse(seed):
    pytest.importorskip("numerai_tools")
    data, live = make_numerai_like(random_state=seed), {}
    train = data.eras <= 100
    for criterion in ("gain", "era", Directional(min_agreement=0.35)):
        model = HistGradientBoostingRegressor(
            max_iter=300, learning_rate=0.05, max_depth=5, colsample_bytree=0.1,
            split_criterion=criterion, min_era_coverage=1.0, min_gain_share=0.0,
            early_stopping=False, random_state=seed,
        )  # fmt: skip
        model.fit(data.X[train], data.y[train, 0], eras=data.eras[train])
        predictions = model.predict(data.X_live)
        scores = numerai_corr(data.y_live[:, 0], predictions, eras=data.eras_live)
        live[getattr(criterion, "name", criterion)] = scores.scores.mean()
    assert live["directional"] > live["gain"] + 0.04
    assert live["directional"] > 0.04
    # Mean gains of eras ignore directions, as documented.
    assert live["era"] < live["gain"]


def test_bike_sharing_is_the_hours_of_two_years():
    bikes, framed = load_bike_sharing(), load_bike_sharing(as_frame=True)
    assert bikes.data.shape == (17379, len(bikes.feature_names))
    assert bikes.data.dtype == bikes.target.dtype == np.float64
    assert np.isfinite(bikes.data).all()
    months, counts = np.unique(bikes.eras, return_counts=True)
    assert [*months] == [f"{y}-{m:02}" for y, m in product((2011, 2012), range(1, 13))]
    assert counts.min() > 600
    assert np.all(np.diff(bikes.dates) >= np.timedelta64(0))
    # The totals of both years, by the publication.
    years = bikes.dates.astype("datetime64[Y]").astype(int) + 1970
    totals = [bikes.target[years == year].sum() for year in (2011, 2012)]
    assert totals == [1243103, 2049576]
    for key in ("data", "target", "eras", "dates"):
        np.testing.assert_array_equal(framed[key].to_numpy(), bikes[key])
    assert [*framed.frame] == ["date", "month", *bikes.feature_names, "count"]
