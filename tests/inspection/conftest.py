"""Figures without windows."""

import matplotlib
import pytest
from matplotlib.figure import Figure


@pytest.fixture(autouse=True)
def pyplot():
    """A backend without windows, and no figure left behind."""
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


@pytest.fixture
def ax():
    return Figure().subplots()
