"""The report as JSON and PNG without a trace in pyplot; live scores beside it."""

import json
import math
import subprocess
import sys
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest

from helpers.numerai.server import MODEL_ID
from sklearn_era.cli._ui import Terminal
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.numerai import report, store
from sklearn_era.numerai.config import Workspace
from sklearn_era.numerai.score_table import EXAMPLE
from sklearn_era.numerai.store import Blend, WeightedFit, load_fit, read_record
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
def results(own, config, quick_scores):
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
    constant = SimpleNamespace(predict=lambda X: np.full(len(X), 0.5))
    blend = Blend([WeightedFit(constant, own.features)])
    monkeypatch.setattr(store, "load_blend", lambda *_: (blend, []))
    config = own.config(predict={"neutralize_proportion": 0.5})
    results = validate(own, config)
    assert "corr is undefined in 12 of 12 eras (0039" in "".join(results[MODEL].notes)
    model = write(own, config, results)[0]["models"][MODEL]
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


@pytest.mark.parametrize("name", ["gain", BENCHMARK, "model"])
def test_a_model_named_like_another_row_is_drawn(
    own, config, results, name, monkeypatch, capsys
):
    drawn = {}
    for figure in ("split_agreement", "corr_figures", "feature_exposure"):

        def draw(of, *_, figure=figure):
            drawn[figure] = [*of]
            return ["one", "two"] if figure == "corr_figures" else figure

        monkeypatch.setattr(report, figure, draw)
    monkeypatch.setattr(report, "as_png", str.encode)
    model = config.models[0].model_copy(update={"name": name})
    monkeypatch.setattr(Workspace, "model_dir", lambda x, _: x.root / "models/someone")
    report.write_report(Validation(config, own.workspace, model), results)
    shown = name if name == "model" else f"{name} (model)"
    rows = [shown, *[*results][1:]]
    both = {"corr_figures": rows, "feature_exposure": rows}
    assert drawn == both | {"split_agreement": [shown, GAIN]}
    Terminal().validated(model, results, [])
    assert f" {shown} " in capsys.readouterr().out


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


def test_split_agreement_is_of_a_sample_of_the_training(own, config):
    train, (X, y, n_trained) = own.frame("train"), sample_of(own, config)
    eras = X.index.unique()
    assert ((len(eras), n_trained), (eras[0], eras[-1])) == ((24, 30), ("0001", "0030"))
    rows = train[train["era"].isin(eras)]
    assert np.array_equal(X, rows[own.features])
    assert np.array_equal(y, rows[own.target])
    fit, _ = load_fit(own.workspace.model_dir("someone"), "model")
    figure = report.split_agreement({"one": fit, "two": fit}, X, y, n_trained)
    assert "in 24 of 30 training eras" in figure.get_suptitle()
    assert "Each bubble is all splits of one" in figure.get_supxlabel()
    assert [ax.get_title() for ax in figure.axes] == ["one", "two"]
    assert figure.axes[0].get_ylabel() == "direction agreement of eras"
    few, _, n_trained = sample_of(own, own.config(every_nth_era=3, era_offset=1))
    assert few.index.unique().tolist() == [f"{i:04d}" for i in range(2, 30, 3)]
    assert n_trained == 10
    model = HistGradientBoostingRegressor(max_iter=2, min_samples_leaf=10**6)
    model.fit(X, y)
    (ax,) = report.split_agreement({"none": model}, X, y, n_trained).axes
    assert [x.get_text() for x in ax.texts] == ["no split has a gain on these rows"]


def test_a_blend_is_drawn_with_its_first_member(own, monkeypatch):
    drawn, original = [], report.split_agreement

    def draw(estimators, *sample):
        drawn.extend(estimators)
        return original(estimators, *sample)

    monkeypatch.setattr(report, "split_agreement", draw)
    members = [{"name": "first"}, {"name": "second", "target": "target_birch_20"}]
    asked = {"validate": {"folds": 1, "compare_with_gain": True}}
    asked["files"] = ["train", "validation"]
    config = own.config(members=members, **asked)
    records, (model,) = own.fit(config), config.models
    validation = Validation(config, own.workspace, model)
    results = validation.run()
    assert (results[MODEL].way, list(results)[:2]) == ("walk-forward", [MODEL, GAIN])
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
    absent = "lightgbm matplotlib numerai_tools pandas pyarrow pydantic"
    code = f"import sys\nsys.modules.update(dict.fromkeys({absent!r}.split()))\n"
    code += "import sklearn_era.numerai.metrics"
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
    for validate in ({}, asked | {"purge": 3}, asked | {"folds": 7}):
        assert not is_current(own.config(validate=validate))
    neutral = {"predict": {"neutralize_proportion": 0.5}}
    for changes in (neutral, {"target": "target_birch_20"}):
        assert not is_current(own.config(validate=asked, **changes))
    newer = own.change("meta_model", lambda x: x)
    assert not is_current()
    newer.unlink()
    assert is_current()
    # The settings are those of the fit.
    other = own.config(validate=asked, parameters={"max_iter": 7})
    (train,) = write(own, other, results)[0]["about"]["train"]
    assert train["parameters"]["max_iter"] == 20
    write(own, config, results)
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


def test_scores_are_the_latest_of_the_horizon_that_was_asked_for(server, client):
    server.add_score(1398, canon_corr=0.5)
    server.add_score(1399, corr20=0.1, v2_corr20=0.2, canon_corr=0.3, fnc_v3=0.4)
    server.add_score(1400, False, corr60=0.1, mmc60=0.2, bmc=0.3, canon_mmc=0.9)
    server.add_score(1400, False, corj60=9.0, season_score=9.0, canon_corr=0.7)
    early = [{**score, "day": 3, "value": 8.0} for score in server.scores]
    server.scores = [*early[:5], *server.scores, *early[5:]]
    server.add_score(1401, False, bmc=None)
    mine = {"a": MODEL_ID}
    assert report.live_scores(client, mine, 3, {"a": 60}) == [
        report.RoundScore(1399, "a", True, corr=0.3, fnc=0.4),
        report.RoundScore(1400, "a", False, corr=0.1, mmc=0.2, bmc=0.3),
    ]
    first, second, _ = report.live_scores(client, mine, 4, {"a": 20})
    assert (first, second.corr) == (report.RoundScore(1398, "a", True, corr=0.5), 0.2)
    # Rounds come before models, whose order is that of the call.
    server.scores += [{**score, "modelId": "22222222"} for score in server.scores]
    rows = report.live_scores(client, {"b": "22222222", **mine}, 3, {"a": 20})
    expected = [(1399, "b", 0.3), (1399, "a", 0.2), (1400, "b", 0.1), (1400, "a", 0.7)]
    assert [(row.round_number, row.model, row.corr) for row in rows] == expected


def report_of(summary):
    models = {"model": {"summary": summary}, "gain": {}}
    return json.dumps({"format": 2, "about": {}, "models": models})


def test_a_report_that_is_damaged_promises_nothing(tmp_path):
    workspace = Workspace(tmp_path, "v5.3")
    path = workspace.report_dir("mine") / "report.json"
    assert report.promised_scores(workspace, ["mine"]) == {}
    path.parent.mkdir(parents=True)
    usual = report_of({"corr": {"mean": 0.02}, "mmc": {"mean": None}})
    bad = "", "[]", '{"models": {}}', '{"models": 3}', "[" * 9999, "\udcff"
    bad = [*bad, report_of({"corr": 3}), report_of([]), usual.replace('"model"', '"x"')]
    expected = {usual: {"mine": {"corr": 0.02}}, report_of({}): {"mine": {}}}
    for content in (*expected, *bad):
        path.write_text(content, "utf-8", errors="surrogateescape")
        assert report.promised_scores(workspace, ["mine"]) == expected.get(content, {})


def test_corr_and_mmc_are_drawn_a_line_a_model():
    rows = (1398, "a", True, 0.1), (1398, "b", True, 0.3, 0.2)
    rows = [report.RoundScore(*row) for row in (*rows, (1400, "a", False, 0.2, 0.1))]
    promised = {"corr": 0.15, "mmc": 0.05, "fnc": 1.0}
    figure = report.draw_live_scores(rows, {"a": promised})
    top, bottom = figure.axes
    assert [ax.get_title() for ax in (top, bottom)] == ["CORR by round", "MMC by round"]
    drawn = {line.get_label(): line for line in bottom.get_lines()}
    assert drawn["a"].get_xdata().tolist() == [1398, 1400]
    assert drawn["a"].get_ydata() == pytest.approx([math.nan, 0.1], nan_ok=True)
    dashed = [x.get_ydata() for x in bottom.get_lines() if x.get_linestyle() == "--"]
    assert dashed == [[0.05, 0.05]]
    (legend,) = figure.legends
    told = [text.get_text() for text in legend.get_texts()]
    assert told == ["a", "b", "mean in validation", "not final"]
    # Many models are told apart.
    rows = [report.RoundScore(1, f"model_{i}", True, 0.1, 0.1) for i in range(12)]
    top, _ = report.draw_live_scores(rows, {}).axes
    lines = [x for x in top.get_lines() if x.get_label().startswith("model_")]
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 12
