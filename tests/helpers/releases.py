"""Releases of scikit-learn that a test is for."""

import pytest

from sklearn_era._scikit_learn import BINS_ARE_WEIGHTED

from_1_9 = pytest.mark.skipif(
    not BINS_ARE_WEIGHTED,
    reason="scikit-learn bins, checks or reads data frames in another way before 1.9",
)
