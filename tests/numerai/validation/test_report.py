"""The report: numbers as JSON, figures as PNG, and no trace in matplotlib's state."""

import json
import subprocess
import sys
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest

from helpers.numerai.demo import Constant
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.numerai.errors import ConfigError
from sklearn_era.numerai.validation import report_figures
from sklearn_era.numerai.validation.report import TrainingSample, write_report
from sklearn_era.numerai.validation.scoring import ValidationResult, validate

FIGURES = ["cumulative_corr", "corr_by_era", "feature_exposure"]


def result_of(demo, estimator, after_era="0030") -> ValidationResult:
    read = {"features": demo.features, "target": demo.data.target}
    files = {name: demo.path(name) for name in ("validation", "meta_model")}
    return validate(estimator, after_era=after_era, purge=8, **read, **files)


@pytest.fixture(scope="module")
def result(demo) -> ValidationResult:
    return result_of(demo, demo.estimator)


@pytest.fixture(scope="module")
def later(demo) -> ValidationResult:
    """A result of fewer eras."""
    return result_of(demo, demo.estimator, after_era="0035")


def models_in(files):
    document = json.loads(files.json.read_text(), parse_constant=pytest.fail)
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
    same = ["target", "n_rows", "neutralize_proportion", "summary", "skipped", "notes"]
    assert model.keys() == {*same, "eras", "feature_exposure"}
    assert [model[name] for name in same] == [getattr(result, name) for name in same]
    assert model["target"] == "target_amber_20"
    assert model["feature_exposure"] == pytest.approx(result.exposures)
    assert set(model["eras"]) == {"corr", "mmc", "max_feature_exposure"}
    for metric, columns in model["eras"].items():
        lists = [column.tolist() for column in result.scores[metric]]
        assert [columns[name] for name in ("era", "score", "n_rows")] == lists


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
    for line, one, first in zip(ax.get_lines(), (result, later), (0, 5), strict=False):
        assert line.get_xdata() == pytest.approx(range(first, 12))
        assert line.get_ydata() == pytest.approx(np.cumsum(one.scores["corr"].scores))
    label = ax.get_legend().get_texts()[0].get_text()
    assert label == f"model, mean {result.summary['corr']['mean']:.4f}"


def test_bars_are_the_corr_of_the_first_model_and_its_largest_exposures(result):
    (ax,) = report_figures.corr_by_era({"model": result, "gain": result}).axes
    expected = pytest.approx(result.scores["corr"].scores)
    assert [bar.get_height() for bar in ax.patches] == expected
    assert ax.get_lines()[1].get_ydata() == expected
    (ax,) = report_figures.feature_exposure({"model": result}).axes
    names = [text.get_text() for text in ax.get_yticklabels()]
    widths = [bar.get_width() for bar in ax.patches]
    largest = dict([*result.exposures.items()][:20])
    assert dict(zip(names, widths, strict=True)) == pytest.approx(largest)
    assert names == [*largest]


@pytest.fixture(scope="module")
def sample(demo) -> TrainingSample:
    train = demo.frame("train")
    columns = (train[demo.features], train["era"].astype(str), train[demo.data.target])
    return TrainingSample(*(column.to_numpy() for column in columns))


@pytest.mark.slow
def test_split_agreement_is_drawn_of_the_sample(demo, result, named, sample, tmp_path):
    results = {"model": result, "gain": result}
    estimators = {"model": demo.estimator, "gain": named}
    files = write_report(tmp_path, results, estimators=estimators, sample=tuple(sample))
    assert list(files.figures) == [*FIGURES, "split_agreement"]
    (ax,) = report_figures.split_agreement({"model": demo.estimator}, sample).axes
    assert ax.get_title() == "model"
    assert ax.get_ylabel() == "direction agreement of eras"
    # A later report takes its place; without a sample, no figure of the model stays.
    changed = replace(result, notes=["something else"])
    files = write_report(tmp_path, {"model": changed})
    assert models_in(files)["model"]["notes"] == ["something else"]
    assert {*tmp_path.iterdir()} == {files.json, *files.figures.values()}


def test_model_without_splits_has_a_sentence(sample):
    model = HistGradientBoostingRegressor(max_iter=2, min_samples_leaf=10**6)
    model.fit(sample.X, sample.y)
    (ax,) = report_figures.split_agreement({"model": model}, sample).axes
    (text,) = ax.texts
    assert text.get_text() == "no split has a gain on these rows"


def test_bad_arguments_are_named(demo, result, sample, tmp_path):
    model, gain = ({name: demo.estimator} for name in ("model", "gain"))
    other = {"estimators": gain, "sample": sample}
    for results, options, message in (
        ({}, {}, "results is empty"),
        ({"model": result}, {"estimators": model}, "go together"),
        ({"model": result}, other, "'gain', and results has only 'model'"),
    ):
        with pytest.raises(ConfigError, match=message):
            write_report(tmp_path, results, **options)
    assert list(tmp_path.iterdir()) == []


def test_importing_needs_no_optional_package(tmp_path):
    modules = (
        "demo", "metrics", "model_upload.portable", "submission.prediction",
        "validation.report", "validation.report_figures",
    )  # fmt: skip
    absent = "lightgbm matplotlib numerai_tools numerapi pandas pyarrow"
    code = f"import sys\nsys.modules.update(dict.fromkeys({absent!r}.split()))\n"
    code += "\n".join(f"import sklearn_era.numerai.{module}" for module in modules)
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
