"""What tests of several folders share: the small demo, and figures that cost little."""

import pytest

from helpers.numerai.demo import SmallDemo, small_demo
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.numerai.validation import report_figures


@pytest.fixture(scope="session")
def demo(tmp_path_factory) -> SmallDemo:
    return small_demo(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="session", autouse=True)
def coarse_figures():
    """Figures of few pixels, which take less time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report_figures, "_DPI", 20)
        yield


@pytest.fixture
def changed(demo, tmp_path):
    """Write a file of the demo with a change."""

    def write(change, name="validation", **options):
        path = tmp_path / f"{name}_2.parquet"
        change(demo.frame(name)).to_parquet(path, **options)
        return path

    return write


@pytest.fixture(scope="session")
def named(demo) -> HistGradientBoostingRegressor:
    """A model fitted to a frame, whose columns it knows by name."""
    train = demo.frame("train")
    model = HistGradientBoostingRegressor(max_iter=5, early_stopping=False)
    return model.fit(train[demo.features], train[demo.data.target])
