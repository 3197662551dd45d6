"""Marks of tests, and grids of cases, of which the default tier runs a part."""

import itertools

import pytest

from sklearn_era._scikit_learn import BINS_ARE_WEIGHTED

from_1_9 = pytest.mark.skipif(
    not BINS_ARE_WEIGHTED,
    reason="scikit-learn bins, checks or reads data frames in another way before 1.9",
)


# Whether grids have their slow cases at all: most of the tests that there are.
with_slow = True


def slow(*case):
    """A case that the default tier leaves out."""
    return pytest.param(*case, marks=pytest.mark.slow)


def grid(*axes, every: int = 1) -> list:
    """All combinations of the axes' values; all but one in `every` of them are slow.
    The others are spread evenly: each value of an axis is among them where another axis
    has `every` values. An axis is a list, or a dict whose keys name the cases.
    """
    named = [
        axis.items() if isinstance(axis, dict)
        else [(getattr(value, "__name__", str(value)), value) for value in axis]
        for axis in axes
    ]  # fmt: skip
    return [
        pytest.param(
            *(value for _, (_, value) in cell),
            id="-".join(name for _, (name, _) in cell),
            marks=[pytest.mark.slow] if sum(i for i, _ in cell) % every else [],
        )
        for cell in itertools.product(*map(enumerate, named))
        if with_slow or sum(i for i, _ in cell) % every == 0
    ]


def on_grid(names: str, *axes, every: int = 1):
    """Parametrise a test by a grid; `names` are separated by spaces."""
    return pytest.mark.parametrize(names.split(), grid(*axes, every=every))
