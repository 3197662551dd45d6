"""The data that are shaped as Numerai's, and who falls for their unstable signals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_era.criteria import Directional
from sklearn_era.datasets import make_numerai_like
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.numerai.metrics import numerai_corr


def test_default_shapes_and_dtypes():
    data = make_numerai_like(random_state=0)
    assert (data.X.shape, data.X_live.shape) == ((140 * 400, 60), (20 * 400, 60))
    assert data.X.dtype == data.X_live.dtype == np.int8
    assert data.y.shape == (140 * 400, 1)
    assert data.y.dtype == data.y_live.dtype == np.float32
    assert np.array_equal(data.eras, np.repeat(np.arange(1, 141), 400))
    assert np.array_equal(data.eras_live, np.repeat(np.arange(141, 161), 400))
    assert data.eras.dtype == data.eras_live.dtype == np.int64
    assert data.effects.shape == (160, 60)
    assert (data.stable_features.shape, data.unstable_features.shape) == ((6,), (12,))
    assert not set(data.stable_features) & set(data.unstable_features)


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
    X = np.concatenate([data.X, data.X_live])
    y = np.concatenate([data.y, data.y_live])
    assert X.shape == ((n_eras + n_live) * n_rows, n_features)
    assert y.shape == ((n_eras + n_live) * n_rows, n_targets)
    # With no live era these are empty.
    assert data.X_live.shape == (n_live * n_rows, n_features)
    assert data.y_live.shape == (n_live * n_rows, n_targets)
    assert data.eras_live.shape == (n_live * n_rows,)
    for era in X.reshape(-1, n_rows, n_features):
        for column in era.T:
            counts = np.bincount(column, minlength=5)
            assert counts.size == 5
            assert np.ptp(counts) <= 1
    shares = np.array([0.05, 0.25, 0.75, 0.95, 1])
    for era in y.reshape(-1, n_rows, n_targets):
        for column in era.T:
            below = [np.count_nonzero(column <= v) for v in (0, 0.25, 0.5, 0.75, 1)]
            assert np.abs(np.array(below) - shares * n_rows).max() <= 0.5 + 1e-9


def test_stable_effects_are_constant_and_unstable_ones_are_as_documented():
    n = 4000
    data = make_numerai_like(
        2 * n, 5, 10, n_fading_eras=n, n_live_eras=n, n_stable=3, n_unstable=4,
        random_state=0,
    )  # fmt: skip
    stable = data.effects[:, data.stable_features]
    assert np.array_equal(np.abs(stable), np.full(stable.shape, 0.045))
    assert np.array_equal(stable, np.broadcast_to(stable[0], stable.shape))
    others = np.setdiff1d(
        np.arange(10), np.concatenate([data.stable_features, data.unstable_features])
    )
    assert not data.effects[:, others].any()
    unstable = data.effects[:, data.unstable_features]
    assert set(np.unique(unstable)) == {-0.18, 0.0, 0.18}
    sign = np.sign(unstable[:n].mean(axis=0))
    for part, (holds, is_reversed) in zip(
        (unstable[:n], unstable[n : 2 * n], unstable[2 * n :]),
        ((0.3, 0.1), (0.2, 0.2), (0.1, 0.3)),
        strict=True,
    ):
        assert (part == 0.18 * sign).mean(axis=0) == pytest.approx(holds, abs=0.03)
        assert (part == -0.18 * sign).mean(axis=0) == pytest.approx(
            is_reversed, abs=0.03
        )


def test_targets_follow_the_effects():
    # Many rows, so that an era's regression finds each effect.
    n_rows = 40_000
    data = make_numerai_like(
        6, n_rows, 8, n_fading_eras=3, n_live_eras=3, n_stable=2, n_unstable=3,
        random_state=1,
    )  # fmt: skip
    X = np.concatenate([data.X, data.X_live]).reshape(9, n_rows, 8)
    y = np.concatenate([data.y, data.y_live]).reshape(9, n_rows)
    for era in range(9):
        effects = data.effects[era]
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
    data = make_numerai_like(random_state=seed)
    train = data.eras <= 100
    live = {}
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
