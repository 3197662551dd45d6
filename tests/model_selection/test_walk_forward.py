"""The walk-forward splitter keeps its distances."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal, assert_equal

from sklearn_era.model_selection import EraSplit, EraWalkForwardSplit


@st.composite
def walks(draw):
    """Parameters, the eras that they need, more eras, and rows in no order."""
    parameters = {
        "n_splits": draw(st.integers(1, 4)), "test_size": draw(st.integers(1, 3)),
        "max_train_size": draw(st.none() | st.integers(1, 4)),
        "gap": draw(st.integers(0, 4))}  # fmt: skip
    needed = parameters["n_splits"] * parameters["test_size"] + 1 + parameters["gap"]
    n_eras = needed + draw(st.integers(0, 5))
    extra = draw(st.lists(st.integers(0, n_eras - 1), max_size=20))
    codes = draw(st.permutations([*range(n_eras), *extra]))
    return parameters, needed, n_eras, np.array(codes)


def naive_walk(codes, n_eras, n_splits, test_size, max_train_size, gap):
    """Row by row, by the definition."""
    splits = []
    for split in range(n_splits):
        start = n_eras - (n_splits - split) * test_size
        train, test = [], []
        for row, code in enumerate(codes):
            if start <= code < start + test_size:
                test.append(row)
            distance = start - code - 1  # eras between this one and the test
            if gap <= distance < gap + (max_train_size or n_eras):
                train.append(row)
        splits.append((train, test))
    return splits


@given(walks())
def test_walk_equals_the_naive_loop_and_needs_so_many_eras(walk):
    parameters, needed, n_eras, codes = walk
    cv = EraWalkForwardSplit(**parameters)
    splits = [*cv.split(codes, groups=codes)]
    assert_equal(splits, naive_walk(codes, n_eras, **parameters))
    assert len(list(cv.split_eras(np.arange(needed)))) == parameters["n_splits"]
    message = f"^{needed - 1} eras are too few .*takes {needed}:"
    with pytest.raises(ValueError, match=message):
        list(cv.split_eras(np.arange(needed - 1)))


@given(walks())
def test_labels_decide_by_their_order_alone(walk):
    parameters, _, n_eras, codes = walk
    cv = EraWalkForwardSplit(**parameters, era_order="ordered")
    by_code = list(cv.split(codes, groups=codes))
    for labels in (
        np.array([f"{i:04d}" for i in range(n_eras)]),
        np.datetime64("2024-01-05") + np.timedelta64(7, "D") * np.arange(n_eras),
        np.arange(n_eras) * 2.5 - 3,
    ):
        of_rows = cv.split(codes, groups=labels[codes])
        of_eras = cv.split_eras(labels[codes])
        for expected, split, eras in zip(by_code, of_rows, of_eras, strict=True):
            for rows, found, found_eras in zip(expected, split, eras, strict=True):
                assert_array_equal(found, rows)
                assert_array_equal(found_eras, np.unique(labels[codes[rows]]))


@pytest.mark.parametrize(("parameters", "test_size", "first_train_size"), [
    ({}, 4, 4), ({"gap": 5}, 3, 3), ({"max_train_size": 6}, 4, 4),
    ({"max_train_size": 2, "gap": 3}, 3, 2)])  # fmt: skip
def test_default_test_size(parameters, test_size, first_train_size):
    train, test = next(EraWalkForwardSplit(4, **parameters).split_eras(np.arange(20)))
    assert (train.size, test.size) == (first_train_size, test_size)


@pytest.mark.parametrize(("name", "value"), [
    ("n_splits", 0), ("n_splits", 2.5), ("test_size", 0), ("max_train_size", 0),
    ("gap", -1), ("gap", 0.1)])  # fmt: skip
def test_splitter_parameters_are_checked(name, value):
    with pytest.raises(ValueError, match=f"'{name}'"):
        EraWalkForwardSplit(**{name: value})
    with pytest.raises(ValueError, match=f"{name} must be an integer; got True"):
        EraWalkForwardSplit(**{name: True})


@pytest.mark.parametrize("Splitter", [EraWalkForwardSplit, EraSplit])
def test_a_subclass_may_first_set_attributes_of_its_own(Splitter):
    class Own(Splitter):
        def __init__(self, n_splits=2, is_mine=True):
            self.is_mine = is_mine
            super().__init__(n_splits)

    splitter, groups = Own(), np.arange(9)
    assert splitter.is_mine
    other = Splitter(2).split(groups, groups=groups)
    assert_equal([*splitter.split(groups, groups=groups)], [*other])


def test_splitter_labels_are_checked():
    cv = EraWalkForwardSplit(2)
    with pytest.raises(ValueError, match="eras is missing: pass the era of each row"):
        list(cv.split_eras(None))
    for groups, message in (
        (None, "is missing"), ([1, 2, 3], "has 3 labels, but X has 4 rows"),
        ([1, np.nan, 3, 3], "has 1 missing label")):  # fmt: skip
        with pytest.raises(ValueError, match=f"groups {message}"):
            next(cv.split(np.zeros(4), groups=groups))
