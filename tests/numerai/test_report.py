"""The report: numbers as JSON, figures as PNG, and no trace in matplotlib's state."""

import json
import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest

from helpers.numerai.demo import Constant
from sklearn_era.cli._ui import Terminal
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.numerai import report, validation
from sklearn_era.numerai.blend import Blend, Part
from sklearn_era.numerai.score_table import EXAMPLE
from sklearn_era.numerai.store import read_record
from sklearn_era.numerai.validation import GAIN, MODEL, Validation

BENCHMARK = "v53_lgbm_amber20"
FIGURES = ["cumulative_corr", "corr_by_era", "feature_exposure", "split_agreement"]


@pytest.fixture(scope="module")
def own(demo, tmp_path_factory):
    return demo.copy(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def config(own):
    return own.config(validate={"compare_with_gain": True})


def validate(own, config):
    return Validation(config, own.workspace, config.models[0]).run()


@pytest.fixture(scope="module")
def results(own, config):
    return validate(own, config)


def sample_of(own, config):
    member = config.models[0].members[0]
    return report.read_training_sample(own.workspace, member, record(own))


def record(own):
    return read_record(own.workspace.model_dir("someone"), "model")


def rows_of(results):
    return {"someone" if k == MODEL else k: one for k, one in results.items()}


def write(own, config, results):
    of = Validation(config, own.workspace, config.models[0])
    paths = report.write_report(of, results)
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

    assert (document["format"], document["about"]["purge"]) == (2, 8)
    assert document["about"]["members"] == {"model": record(own).sha256}
    assert list(document["models"]) == [MODEL, GAIN, BENCHMARK, EXAMPLE]
    for name, model in document["models"].items():
        own_keys = vars(results[name])
        assert model.keys() == own_keys.keys()
        for key in ("target", "way", "n_rows", "summary", "skipped", "notes"):
            assert model[key] == own_keys[key]
        assert model["exposures"] == pytest.approx(own_keys["exposures"])
        fold = {"last_trained": "0030", "first": "0039", "last": "0050"}
        assert model["folds"] == [fold]
        for metric, columns in model["scores"].items():
            found = results[name].scores[metric]
            for key in ("eras", "scores", "n_samples"):
                assert columns[key] == getattr(found, key).tolist()


def test_the_table_fits_into_80_columns(config, results, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    Terminal().validated(config.models[0], results, [])
    lines = capsys.readouterr().out.splitlines()
    (row,) = [line.split() for line in lines if "example" in line]
    assert (row[:3], row[-1]) == (["example", "predictions", "corr"], "12")
    # A line a metric, none of which is folded.
    shown = [line for line in lines if line.endswith(" 12  ")]
    assert max(map(len, shown)) <= 80
    assert len(shown) == sum(len(result.summary) for result in results.values())


def test_constant_predictions_are_undefined_noted_null_and_drawn(own, monkeypatch):
    blend = Blend([Part(Constant(), own.features)])
    monkeypatch.setattr(validation, "load_blend", lambda *_: (blend, []))
    config = own.config(predict={"neutralize_proportion": 0.5})
    constant = validate(own, config)
    assert "corr is undefined in 12 of 12 eras (0039" in "".join(constant[MODEL].notes)
    model = write(own, config, constant)[0]["models"][MODEL]
    assert model["scores"]["corr"]["scores"] == [None] * 12
    summary = model["summary"]["corr"]
    assert (summary["mean"], summary["n_eras"]) == (None, 0)
    assert set(model["exposures"].values()) == {None}


def test_corr_is_drawn_by_era_and_summed_up_in_the_eras_of_all(results):
    rows = rows_of(results)
    total, by_era = report.corr_figures(rows)
    (ax,) = total.axes
    assert ax.get_title() == "Cumulative CORR, target_amber_20, hold-out"
    (legend,) = total.legends
    drawn = ax.get_lines(), legend.get_texts(), by_era.axes
    for (name, result), line, text, own_ax in zip(rows.items(), *drawn, strict=False):
        corr = result.scores["corr"].scores
        assert line.get_ydata() == pytest.approx(np.cumsum(corr))
        assert text.get_text() == f"{name}, mean {corr.mean():.4f}"
        assert [bar.get_height() for bar in own_ax.patches] == pytest.approx(corr)
        assert own_ax.get_title() == name
        assert own_ax.get_legend().get_texts()[1].get_text().startswith("mean: ")
    assert len(by_era.axes) == len(legend.get_texts()) == len(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "_MOST_BARS", 11)
        points = report.corr_figures(rows)[1].axes[0].get_lines()[0]
    assert points.get_ydata() == pytest.approx(results[MODEL].scores["corr"].scores)
    assert points.get_linestyle() == "None"
    # Beside the lines, and not over them.
    total.draw_without_rendering()
    assert legend.get_window_extent().x0 > ax.get_window_extent().x1


def test_exposures_are_the_largest_of_the_model_and_those_of_gain(results):
    figure = report.feature_exposure(rows_of(results))
    (ax,) = figure.axes
    largest = list(results[MODEL].exposures)
    assert [text.get_text() for text in ax.get_yticklabels()] == largest
    expected = [results[row].exposures[x] for row in (MODEL, GAIN) for x in largest]
    assert [bar.get_width() for bar in ax.patches] == pytest.approx(expected)
    title = "The 20 of 20 features with the largest exposure,\nsorted by the absolute "
    assert ax.get_title() == f"{title}exposure of someone"
    assert "correlation of ranked predictions with the feature" in ax.get_xlabel()


def test_split_agreement_is_of_a_sample_of_the_training(own, config, named):
    train, sample = own.frame("train"), sample_of(own, config)
    eras = sample.X.index.unique()
    assert (len(eras), sample.n_trained) == (24, 30)
    assert (eras[0], eras[-1]) == ("0001", "0030")
    rows = train[train["era"].isin(eras)]
    assert np.array_equal(sample.X, rows[own.features])
    assert np.array_equal(sample.y, rows[own.target])
    figure = report.split_agreement({"one": named, "two": named}, sample)
    assert "in 24 of 30 training eras" in figure.get_suptitle()
    assert "Each bubble is all splits of one" in figure.get_supxlabel()
    assert [ax.get_title() for ax in figure.axes] == ["one", "two"]
    assert figure.axes[0].get_ylabel() == "direction agreement of eras"
    few = sample_of(own, own.config(every_nth_era=3, era_offset=1))
    assert few.X.index.unique().tolist() == [f"{i:04d}" for i in range(2, 30, 3)]
    assert few.n_trained == 10
    model = HistGradientBoostingRegressor(max_iter=2, min_samples_leaf=10**6)
    model.fit(sample.X, sample.y)
    (ax,) = report.split_agreement({"none": model}, sample).axes
    assert [x.get_text() for x in ax.texts] == ["no split has a gain on these rows"]


def test_a_blend_is_drawn_with_its_first_member(own, monkeypatch):
    drawn, original = [], report.split_agreement

    def draw(estimators, sample):
        drawn.extend(estimators)
        return original(estimators, sample)

    monkeypatch.setattr(report, "split_agreement", draw)
    members = [{"name": "first"}, {"name": "second", "target": "target_birch_20"}]
    asked = {"validate": {"folds": 1, "compare_with_gain": True}}
    asked["files"] = ["train", "validation"]
    config = own.config(members=members, **asked)
    records, (model,) = own.fit(config), config.models
    validation = Validation(config, own.workspace, model)
    results = validation.run()
    assert results[MODEL].way == "walk-forward"
    assert list(results)[:2] == [MODEL, GAIN]
    report.write_report(validation, results)
    # No fit by plain gain has seen what the submitted one has.
    assert drawn == ["someone, member first"]
    assert report.report_is_current(config, own.workspace, model, records)
    # Whatever a member learns from, and weighs.
    for changes in ({"weight": 2.0}, {"random_state": 1}, {"last_era": "0029"}):
        asked["members"] = [members[0], members[1] | changes]
        other = own.config(**asked).models[0]
        assert not report.report_is_current(config, own.workspace, other, records)


def test_importing_needs_no_optional_package(tmp_path):
    modules = ("demo", "metrics", "validation", "report", "score_table")
    absent = "lightgbm matplotlib numerai_tools pandas pyarrow"
    code = f"import sys\nsys.modules.update(dict.fromkeys({absent!r}.split()))\n"
    code += "\n".join(f"import sklearn_era.numerai.{module}" for module in modules)
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)


def test_a_report_is_current_until_something_else_is_asked_for(own, results, config):
    def is_current(config=config, **changes):
        records = [record(own).model_copy(update=changes)]
        of = config, own.workspace, config.models[0]
        return report.report_is_current(*of, records)

    (path, *_) = write(own, config, results)[1]
    assert is_current()
    assert not is_current(sha256="0" * 64)
    asked = {"compare_with_gain": True}
    for changes in (
        {"validate": {}},
        {"validate": {**asked, "purge": 3}},
        {"validate": {**asked, "folds": 7}},
        {"validate": asked, "predict": {"neutralize_proportion": 0.5}},
        {"validate": asked, "target": "target_birch_20"},
    ):
        assert not is_current(own.config(**changes))
    text, old = path.read_text(), {"model_sha256": record(own).sha256}
    old = json.loads(text) | {"format": 1, "about": old}
    for damaged in (text[:100], "[]", json.dumps(old), '{"format": 99}'):
        path.write_text(damaged)
        assert not is_current()
    old["about"]["purge"] = 8
    path.write_text(json.dumps(old))
    assert is_current()
    path.unlink()
    assert not is_current()
