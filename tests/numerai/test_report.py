"""The report: numbers as JSON, figures as PNG, and no trace in matplotlib's state."""

import json
import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest

from helpers.numerai.demo import Constant
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.numerai import figures, validation
from sklearn_era.numerai.blend import Blend, Part
from sklearn_era.numerai.report import read_training_sample, write_report
from sklearn_era.numerai.score_table import EXAMPLE
from sklearn_era.numerai.store import read_record
from sklearn_era.numerai.validation import GAIN, MODEL, validate

BENCHMARK = "v53_lgbm_amber20"
FIGURES = ["cumulative_corr", "corr_by_era", "feature_exposure", "split_agreement"]


@pytest.fixture(scope="module")
def own(demo, tmp_path_factory):
    return demo.copy(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def config(own):
    return own.config(validate={"compare_with_gain": True})


@pytest.fixture(scope="module")
def results(own, config):
    return validate(config, own.workspace, config.models[0])


@pytest.fixture(scope="module")
def sample(own, config):
    return sample_of(own, config)


def sample_of(own, config):
    return read_training_sample(own.workspace, config.models[0].members[0], record(own))


def record(own):
    return read_record(own.workspace.model_dir("someone"), "model")


def rows_of(results):
    return [("someone" if k == MODEL else k, one) for k, one in results.items()]


def write(own, config, results):
    model = config.models[0]
    paths = write_report(config, own.workspace, model, [record(own)], results)
    return json.loads(paths[0].read_text(), parse_constant=pytest.fail), paths


def test_a_report_is_numbers_and_figures(own, config, results):
    folder, before = own.workspace.report_dir("someone"), plt.get_fignums()
    document, paths = write(own, config, results)
    assert plt.get_fignums() == before
    names = ["report.json", *(f"{name}.png" for name in FIGURES)]
    assert paths == [folder / name for name in names]
    assert {*folder.iterdir()} == {*paths}
    for path in paths[1:]:
        assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"

    assert document["format"] == 2
    about = document["about"]
    assert about["members"] == {"model": record(own).sha256}
    assert about["purge"] == 8
    assert list(document["models"]) == [MODEL, GAIN, BENCHMARK, EXAMPLE]
    for name, model in document["models"].items():
        result = results[name]
        assert model.keys() == vars(result).keys()
        same = ["target", "way", "n_rows", "summary", "skipped", "notes"]
        assert [model[key] for key in same] == [getattr(result, key) for key in same]
        assert model["exposures"] == pytest.approx(result.exposures)
        assert model["folds"] == [
            {"last_trained": "0030", "first": "0039", "last": "0050"}
        ]
        for metric, columns in model["scores"].items():
            lists = [column.tolist() for column in result.scores[metric]]
            assert [columns[key] for key in ("eras", "scores", "n_samples")] == lists


@pytest.mark.slow
def test_undefined_numbers_are_null_and_can_be_drawn(own, monkeypatch):
    blend = Blend([Part(Constant(), own.features)])
    monkeypatch.setattr(validation, "load_blend", lambda *_: (blend, []))
    config = own.config()
    constant = validate(config, own.workspace, config.models[0])
    model = write(own, config, constant)[0]["models"][MODEL]
    assert model["scores"]["corr"]["scores"] == [None] * 12
    assert model["summary"]["corr"]["mean"] is None
    assert set(model["exposures"].values()) == {None}


def test_cumulative_corr_is_the_running_sum_in_the_eras_of_all(results):
    figure = figures.cumulative_corr(rows_of(results))
    (ax,) = figure.axes
    assert ax.get_title() == "Cumulative CORR by era, target_amber_20, hold-out"
    lines = ax.get_lines()[1:]
    (legend,) = figure.legends
    texts = [text.get_text() for text in legend.get_texts()]
    rows = rows_of(results)
    for line, text, (name, result) in zip(lines, texts, rows, strict=True):
        corr = result.scores["corr"].scores
        assert line.get_ydata() == pytest.approx(np.cumsum(corr))
        assert text == f"{name}, mean {result.summary['corr']['mean']:.4f}"
    assert texts[0].startswith("someone, ")


def test_corr_by_era_has_bars_points_and_a_mean_of_each(results):
    figure = figures.corr_by_era(rows_of(results))
    (ax,) = figure.axes
    corr = [result.scores["corr"].scores for result in results.values()]
    assert [bar.get_height() for bar in ax.patches] == pytest.approx(corr[0])
    lines = ax.get_lines()[1:]
    means = [line.get_ydata()[0] for line in lines if line.get_linestyle() == "--"]
    assert means == pytest.approx([one.mean() for one in corr])
    points = [line.get_ydata() for line in lines if line.get_marker() == "."]
    assert points == [pytest.approx(one) for one in corr[1:]]
    # Beside the bars, and not over them.
    figure.draw_without_rendering()
    (legend,) = figure.legends
    names = [text.get_text().split(",")[0] for text in legend.get_texts()]
    assert names == ["someone", GAIN, BENCHMARK, EXAMPLE]
    assert legend.get_window_extent().x0 > ax.get_window_extent().x1


def test_exposures_are_the_largest_of_the_model_and_those_of_gain(results):
    figure = figures.feature_exposure(rows_of(results))
    (ax,) = figure.axes
    largest = list(results[MODEL].exposures)
    assert [text.get_text() for text in ax.get_yticklabels()] == largest
    expected = [results[row].exposures[x] for row in (MODEL, GAIN) for x in largest]
    assert [bar.get_width() for bar in ax.patches] == pytest.approx(expected)
    assert ax.get_title() == "The 20 features (of 20) with the largest exposure"


def test_split_agreement_is_of_a_sample_of_the_training(own, sample, named):
    train = own.frame("train")
    assert (sample.n_eras, sample.n_all) == (24, 30)
    eras = np.unique(sample.eras)
    assert len(eras) == 24
    assert (eras[0], eras[-1]) == ("0001", "0030")
    rows = train[train["era"].isin(eras)]
    assert np.array_equal(sample.X, rows[own.features])
    assert np.array_equal(sample.y, rows[own.target])
    figure = figures.split_agreement([("one", named), ("two", named)], sample)
    assert "over 24 of 30 training eras" in figure.get_suptitle()
    assert [ax.get_title() for ax in figure.axes] == ["one", "two"]
    assert figure.axes[0].get_ylabel() == "direction agreement of eras"
    few = sample_of(own, own.config(every_nth_era=3, era_offset=1))
    assert np.unique(few.eras).tolist() == [f"{i:04d}" for i in range(2, 30, 3)]
    assert (few.n_eras, few.n_all) == (10, 10)


def test_a_blend_is_drawn_with_its_first_member(own, monkeypatch):
    drawn, original = [], figures.split_agreement

    def draw(estimators, sample):
        drawn.extend(name for name, _ in estimators)
        return original(estimators, sample)

    monkeypatch.setattr(figures, "split_agreement", draw)
    members = [{"name": "first"}, {"name": "second", "target": "target_birch_20"}]
    validation_of = {"folds": 1, "compare_with_gain": True}
    files = ["train", "validation"]
    config = own.config(members=members, files=files, validate=validation_of)
    records, (model,) = own.fit(config), config.models
    results = validate(config, own.workspace, model)
    assert results[MODEL].way == "walk-forward"
    assert list(results)[:2] == [MODEL, GAIN]
    write_report(config, own.workspace, model, records, results)
    # No fit by plain gain has seen what the submitted one has.
    assert drawn == ["someone, member first"]
    assert validation.report_is_current(config, own.workspace, model, records)


def test_a_model_without_splits_has_a_sentence(sample):
    model = HistGradientBoostingRegressor(max_iter=2, min_samples_leaf=10**6)
    model.fit(sample.X, sample.y)
    (ax,) = figures.split_agreement([("none", model)], sample).axes
    (text,) = ax.texts
    assert text.get_text() == "no split has a gain on these rows"


def test_importing_needs_no_optional_package(tmp_path):
    modules = ("demo", "metrics", "validation", "report", "figures", "score_table")
    absent = "lightgbm matplotlib numerai_tools pandas pyarrow"
    code = f"import sys\nsys.modules.update(dict.fromkeys({absent!r}.split()))\n"
    code += "\n".join(f"import sklearn_era.numerai.{module}" for module in modules)
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
