"""The report: numbers as JSON, figures as PNG, and no trace in matplotlib's state."""

import json
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pytest.importorskip("matplotlib")

from helpers.numerai.demo import Constant, SmallDemo, small_demo  # noqa: E402
from sklearn_era.ensemble import HistGradientBoostingRegressor  # noqa: E402
from sklearn_era.numerai.errors import ConfigError  # noqa: E402
from sklearn_era.numerai.validation import report_figures  # noqa: E402
from sklearn_era.numerai.validation.report import TrainingSample, write_report  # noqa: E402
from sklearn_era.numerai.validation.scoring import ValidationResult, validate  # noqa: E402

FIGURES = ["cumulative_corr", "corr_by_era", "feature_exposure"]


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> SmallDemo:
    return small_demo(tmp_path_factory.mktemp("demo"))


def result_of(demo, estimator, after_era="0030") -> ValidationResult:
    return validate(
        estimator,
        validation=demo.path("validation"),
        features=demo.features,
        target=demo.data.target,
        after_era=after_era,
        purge=8,
        meta_model=demo.path("meta_model"),
    )


@pytest.fixture(scope="module")
def result(demo) -> ValidationResult:
    return result_of(demo, demo.estimator)


def read(files):
    def refuse(text):
        raise AssertionError(f"{text} is no JSON")

    return json.loads(files.json.read_text(), parse_constant=refuse)


def test_json_has_the_numbers_of_the_result(result, tmp_path):
    files = write_report(tmp_path / "reports" / "someone", {"model": result})
    document = read(files)
    assert files.json == tmp_path / "reports" / "someone" / "report.json"
    assert document["format"] == 1
    assert list(document["models"]) == ["model"]
    model = document["models"]["model"]
    assert list(model) == [
        "target", "n_rows", "neutralize_proportion", "summary", "eras", "skipped",
        "notes", "feature_exposure",
    ]  # fmt: skip
    assert model["target"] == "target_amber_20"
    assert model["n_rows"] == result.n_rows
    assert model["summary"] == result.summary
    assert model["skipped"] == result.skipped
    assert model["feature_exposure"] == pytest.approx(result.exposures)
    assert set(model["eras"]) == {"corr", "mmc", "max_feature_exposure"}
    for metric, columns in model["eras"].items():
        scores = result.scores[metric]
        assert columns["era"] == scores.eras.tolist()
        assert columns["score"] == scores.scores.tolist()
        assert columns["n_rows"] == scores.n_samples.tolist()


def test_undefined_numbers_are_null(demo, tmp_path):
    constant = result_of(demo, Constant())
    model = read(write_report(tmp_path, {"model": constant}))["models"]["model"]
    assert model["eras"]["corr"]["score"] == [None] * 12
    assert model["summary"]["corr"]["mean"] is None
    assert set(model["feature_exposure"].values()) == {None}


def test_figures_are_png(demo, result, tmp_path):
    other = result_of(demo, demo.estimator, after_era="0035")  # of fewer eras
    files = write_report(tmp_path, {"model": result, "gain": other})
    assert list(files.figures) == FIGURES
    for name, path in files.figures.items():
        assert path == tmp_path / f"{name}.png"
        assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert sorted(x.name for x in tmp_path.iterdir()) == sorted(
        ["report.json", *(f"{name}.png" for name in FIGURES)]
    )


def test_cumulative_corr_is_the_running_sum_at_its_eras(demo, result):
    later = result_of(demo, demo.estimator, after_era="0035")
    (ax,) = report_figures.cumulative_corr({"model": result, "gain": later}).axes
    model, gain = ax.get_lines()[:2]
    assert model.get_xdata() == pytest.approx(range(12))
    assert model.get_ydata() == pytest.approx(np.cumsum(result.scores["corr"].scores))
    assert gain.get_xdata() == pytest.approx(range(5, 12))
    assert gain.get_ydata() == pytest.approx(np.cumsum(later.scores["corr"].scores))
    mean = result.summary["corr"]["mean"]
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels[0] == f"model, mean {mean:.4f}"


def test_bars_are_the_corr_of_the_first_model(result):
    (ax,) = report_figures.corr_by_era({"model": result, "gain": result}).axes
    heights = [bar.get_height() for bar in ax.patches]
    assert heights == pytest.approx(result.scores["corr"].scores)
    points = ax.get_lines()[1]
    assert points.get_ydata() == pytest.approx(result.scores["corr"].scores)


def test_exposure_figure_has_the_largest_ones(result):
    (ax,) = report_figures.feature_exposure({"model": result}).axes
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == list(result.exposures)[:20]
    widths = [bar.get_width() for bar in ax.patches]
    assert widths == pytest.approx(list(result.exposures.values())[:20])


def test_figures_of_undefined_scores_can_be_drawn(demo, tmp_path):
    constant = result_of(demo, Constant())
    files = write_report(tmp_path, {"model": constant, "gain": constant})
    assert all(path.is_file() for path in files.figures.values())


def sample_of(demo) -> TrainingSample:
    train = demo.frame("train")
    return TrainingSample(
        train[demo.features].to_numpy(),
        train["era"].to_numpy(dtype=str),
        train[demo.data.target].to_numpy(),
    )


def test_split_agreement_is_drawn_of_the_sample(demo, result, tmp_path):
    sample = sample_of(demo)
    named = HistGradientBoostingRegressor(max_iter=3, early_stopping=False)
    named.fit(pd.DataFrame(sample.X, columns=demo.features), sample.y)
    files = write_report(
        tmp_path,
        {"model": result, "gain": result},
        estimators={"model": demo.estimator, "gain": named},
        sample=tuple(sample),
    )
    assert list(files.figures) == [*FIGURES, "split_agreement"]
    figure = report_figures.split_agreement({"model": demo.estimator}, sample)
    (ax,) = figure.axes
    assert ax.get_title() == "model"
    assert ax.get_ylabel() == "direction agreement of eras"
    # A later report without a sample leaves no figure of the model before.
    write_report(tmp_path, {"model": result})
    assert not (tmp_path / "split_agreement.png").exists()


def test_model_without_splits_has_a_sentence(demo):
    sample = sample_of(demo)
    stump = HistGradientBoostingRegressor(
        max_iter=2, min_samples_leaf=10**6, early_stopping=False
    ).fit(sample.X, sample.y)
    (ax,) = report_figures.split_agreement({"model": stump}, sample).axes
    assert [text.get_text() for text in ax.texts] == [
        "no split has a gain on these rows"
    ]


def test_report_takes_the_place_of_the_one_before(result, tmp_path):
    write_report(tmp_path, {"model": result})
    changed = replace(result, notes=["something else"])
    document = read(write_report(tmp_path, {"model": changed}))
    assert document["models"]["model"]["notes"] == ["something else"]
    assert not list(tmp_path.glob("*.partial"))


def test_bad_arguments_are_named(demo, result, tmp_path):
    with pytest.raises(ConfigError, match="results is empty"):
        write_report(tmp_path, {})
    with pytest.raises(ConfigError, match="go together"):
        write_report(tmp_path, {"model": result}, estimators={"model": demo.estimator})
    with pytest.raises(ConfigError, match="'gain', and results has only 'model'"):
        write_report(
            tmp_path,
            {"model": result},
            estimators={"gain": demo.estimator},
            sample=sample_of(demo),
        )
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_in_pyplot(result, tmp_path):
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_report(tmp_path, {"model": result})
    assert plt.get_fignums() == before


def test_importing_needs_no_matplotlib_pandas_or_pyarrow(tmp_path):
    code = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(['matplotlib', 'pandas', 'pyarrow']))\n"
        "import sklearn_era.numerai.validation.report\n"
        "import sklearn_era.numerai.validation.report_figures\n"
        "import sklearn_era.numerai.submission.prediction, sklearn_era.numerai.demo\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
