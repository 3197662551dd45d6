"""The report: numbers as JSON, figures as PNG, and no trace in matplotlib's state."""

import json
import subprocess
import sys
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from helpers.numerai.demo import Constant, SmallDemo, small_demo
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.numerai.errors import ConfigError
from sklearn_era.numerai.validation import report_figures
from sklearn_era.numerai.validation.report import TrainingSample, write_report
from sklearn_era.numerai.validation.scoring import ValidationResult, validate

FIGURES = ["cumulative_corr", "corr_by_era", "feature_exposure"]


@pytest.fixture(scope="module", autouse=True)
def coarse_figures():
    """Figures of few pixels, which take less time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report_figures, "_DPI", 20)
        yield


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


@pytest.fixture(scope="module")
def later(demo) -> ValidationResult:
    """A result of fewer eras."""
    return result_of(demo, demo.estimator, after_era="0035")


def models_in(files):
    def refuse(text):
        raise AssertionError(f"{text} is no JSON")

    document = json.loads(files.json.read_text(), parse_constant=refuse)
    assert document["format"] == 1
    return document["models"]


def test_a_report_is_numbers_and_figures(result, later, tmp_path):
    folder, before = tmp_path / "reports" / "someone", plt.get_fignums()
    files = write_report(folder, {"model": result, "gain": later})
    assert plt.get_fignums() == before
    assert files.json == folder / "report.json"
    assert files.figures == {name: folder / f"{name}.png" for name in FIGURES}
    assert {*folder.iterdir()} == {files.json, *files.figures.values()}
    for path in files.figures.values():
        assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"

    models = models_in(files)
    assert list(models) == ["model", "gain"]
    model = models["model"]
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


@pytest.mark.slow
def test_undefined_numbers_are_null_and_can_be_drawn(demo, tmp_path):
    constant = result_of(demo, Constant())
    files = write_report(tmp_path, {"model": constant, "gain": constant})
    assert all(path.is_file() for path in files.figures.values())
    model = models_in(files)["model"]
    assert model["eras"]["corr"]["score"] == [None] * 12
    assert model["summary"]["corr"]["mean"] is None
    assert set(model["feature_exposure"].values()) == {None}


def test_cumulative_corr_is_the_running_sum_at_its_eras(result, later):
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


def sample_of(demo) -> TrainingSample:
    train = demo.frame("train")
    return TrainingSample(
        train[demo.features].to_numpy(),
        train["era"].to_numpy(dtype=str),
        train[demo.data.target].to_numpy(),
    )


@pytest.mark.slow
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
    # A later report takes its place; without a sample, no figure of the model stays.
    changed = replace(result, notes=["something else"])
    files = write_report(tmp_path, {"model": changed})
    assert models_in(files)["model"]["notes"] == ["something else"]
    assert {*tmp_path.iterdir()} == {files.json, *files.figures.values()}


def test_model_without_splits_has_a_sentence(demo):
    sample = sample_of(demo)
    stump = HistGradientBoostingRegressor(
        max_iter=2, min_samples_leaf=10**6, early_stopping=False
    ).fit(sample.X, sample.y)
    (ax,) = report_figures.split_agreement({"model": stump}, sample).axes
    assert [text.get_text() for text in ax.texts] == [
        "no split has a gain on these rows"
    ]


def test_bad_arguments_are_named(demo, result, tmp_path):
    estimator, sample = demo.estimator, sample_of(demo)
    for results, options, message in (
        ({}, {}, "results is empty"),
        ({"model": result}, {"estimators": {"model": estimator}}, "go together"),
        (
            {"model": result},
            {"estimators": {"gain": estimator}, "sample": sample},
            "'gain', and results has only 'model'",
        ),
    ):
        with pytest.raises(ConfigError, match=message):
            write_report(tmp_path, results, **options)
    assert list(tmp_path.iterdir()) == []


def test_importing_needs_no_optional_package(tmp_path):
    code = (
        "import sys\n"
        "absent = 'lightgbm matplotlib numerai_tools numerapi pandas pyarrow'\n"
        "sys.modules.update(dict.fromkeys(absent.split()))\n"
        "import sklearn_era.numerai.metrics\n"
        "import sklearn_era.numerai.model_upload.portable\n"
        "import sklearn_era.numerai.validation.report\n"
        "import sklearn_era.numerai.validation.report_figures\n"
        "import sklearn_era.numerai.submission.prediction, sklearn_era.numerai.demo\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
