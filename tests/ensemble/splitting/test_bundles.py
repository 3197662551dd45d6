"""Bundles of features, and the masks of their splits."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sklearn_era.ensemble._splitting.bundles import bundle_features, masks_of_splits

MOST_CODES = 256  # of a feature: 255 bins and missing values


def no_flags(n_codes):
    """No missing values, and no categories."""
    return [False] * len(n_codes), [False] * len(n_codes)


@settings(max_examples=4 * settings().max_examples)
@given(
    st.lists(
        st.one_of(st.integers(1, 6), st.integers(1, MOST_CODES), st.just(1)),
        max_size=60,
    )
)
@example([1] * 60)
@example([2] * 9)
@example([MOST_CODES] * 3)
@example([1, MOST_CODES, 1])
@example([16, 16, 2])
def test_bundles_fit_into_a_byte_and_leave_no_feature_out(n_codes):
    bundles = bundle_features(n_codes, *no_flags(n_codes))
    features = [i for b in bundles for i in range(b.start, b.stop)]
    assert features == list(range(len(n_codes)))
    for bundle in bundles:
        codes = n_codes[bundle]
        assert math.prod(codes) <= 256
        assert 1 <= len(codes) <= 8
        assert len(codes) == 1 or max(codes) <= 16
    # No bundle could have taken in its neighbour.
    for bundle in bundles[:-1]:
        codes = n_codes[bundle.start : bundle.stop + 1]
        assert math.prod(codes) > 256 or max(codes) > 16 or len(codes) > 8


@pytest.mark.parametrize(
    ("n_codes", "sizes"),
    [
        ([5] * 7, [3, 3, 1]), ([2] * 9, [8, 1]), ([255, 1], [1, 1]), ([256, 1], [1, 1]),
        ([1] * 9, [8, 1]), ([16, 16, 1], [3]), ([17, 16], [1, 1]), ([], []),
    ],
)  # fmt: skip
def test_neighbours_are_bundled(n_codes, sizes):
    assert [
        b.stop - b.start for b in bundle_features(n_codes, *no_flags(n_codes))
    ] == sizes


@pytest.mark.parametrize("missing", [(False, False), (True, False), (True, True)])
def test_masks_say_which_codes_are_left_of_which_split(missing):
    n_codes = [4, 3]
    masks = masks_of_splits(n_codes, missing)
    lanes = iter(masks.T)
    for j in range(2):
        codes = np.arange(12) % 4 if j == 0 else np.arange(12) // 4
        last = n_codes[j] - 1
        for split in range(last):  # missing values, or the last bin, on the right
            np.testing.assert_array_equal(next(lanes), -(codes <= split).astype(int))
        for split in range(last - 1 if missing[j] else 0):
            is_left = (codes <= split) | (codes == last)
            np.testing.assert_array_equal(next(lanes), -is_left.astype(int))
    np.testing.assert_array_equal(next(lanes), -1)  # all rows
    assert masks.shape[1] % 8 == 0
    assert not any(lane.any() for lane in lanes)
