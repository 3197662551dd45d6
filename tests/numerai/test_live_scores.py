"""Live scores, in rows and a figure, beside what the validation promised."""

import json
import math

import pytest

from helpers.numerai.server import MODEL_ID
from sklearn_era.numerai.config import Workspace
from sklearn_era.numerai.report import (
    RoundScore,
    draw_live_scores,
    live_scores,
    promised_scores,
)

IDS = {"my_model": MODEL_ID, "other": "22222222"}


def test_rows_are_by_round_and_model(server, client):
    server.add_score(1400, False, corr60=0.1, mmc60=0.2, canon_bmc=0.3)
    server.add_score(1399, v2_corr20=0.5, fnc_v3=0.4)
    server.scores += [{**score, "modelId": "22222222"} for score in server.scores]
    assert live_scores(client, IDS, 2, {}) == [
        RoundScore(1399, "my_model", True, fnc=0.4),
        RoundScore(1399, "other", True, fnc=0.4),
        RoundScore(1400, "my_model", False, 0.1, 0.2, 0.3),
        RoundScore(1400, "other", False, 0.1, 0.2, 0.3),
    ]
    rows = live_scores(client, IDS, 2, {"my_model": 20, "other": None})
    assert [row.corr for row in rows] == [0.5, None, None, 0.1]
    assert {row.round_number for row in live_scores(client, IDS, 1, {})} == {1400}


def test_scores_are_the_latest_of_the_horizon_that_was_asked_for(server, client):
    server.add_score(1398, canon_corr=0.5)
    server.add_score(1399, corr20=0.1, v2_corr20=0.2, canon_corr=0.3, fnc_v3=0.4)
    server.add_score(1400, False, corr60=0.1, mmc60=0.2, bmc=0.3, canon_mmc=0.9)
    server.add_score(1400, False, corj60=9.0, season_score=9.0, canon_corr=0.7)
    early = [{**score, "day": 3, "value": 8.0} for score in server.scores]
    server.scores = [*early[:5], *server.scores, *early[5:]]
    server.add_score(1401, False, bmc=None)
    mine = {"a": MODEL_ID}
    assert live_scores(client, mine, 3, {"a": 60}) == [
        RoundScore(1399, "a", True, corr=0.3, fnc=0.4),
        RoundScore(1400, "a", False, corr=0.1, mmc=0.2, bmc=0.3),
    ]
    first, second, _ = live_scores(client, mine, 4, {"a": 20})
    assert first == RoundScore(1398, "a", True, corr=0.5)
    assert second.corr == 0.2
    assert live_scores(client, {"a": "22222222"}, 3, {}) == []


def report(summary):
    models = {"model": {"summary": summary}, "gain": {}}
    return json.dumps({"format": 2, "about": {}, "models": models})


def test_a_report_that_is_damaged_promises_nothing(tmp_path):
    workspace = Workspace(tmp_path, "v5.3")
    path = workspace.report_dir("mine") / "report.json"
    assert promised_scores(workspace, ["mine"]) == {}
    path.parent.mkdir(parents=True)
    usual = report({"corr": {"mean": 0.02}, "mmc": {"mean": None}})
    bad = "", "[]", '{"models": {}}', '{"models": 3}', "[" * 9999, "\udcff"
    bad = [*bad, report({"corr": 3}), report([]), usual.replace('"model"', '"x"')]
    expected = {usual: {"mine": {"corr": 0.02}}, report({}): {"mine": {}}}
    for content in (*expected, *bad):
        path.write_text(content, "utf-8", errors="surrogateescape")
        assert promised_scores(workspace, ["mine"]) == expected.get(content, {})


def test_corr_and_mmc_are_drawn_a_line_a_model():
    rows = [
        RoundScore(1398, "a", True, 0.1),
        RoundScore(1398, "b", True, 0.3, 0.2),
        RoundScore(1400, "a", False, 0.2, 0.1),
    ]
    figure = draw_live_scores(rows, {"a": {"corr": 0.15, "mmc": 0.05, "fnc": 1.0}})
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
    # It stands outside of the axes.
    figure.draw_without_rendering()
    right = max(ax.get_window_extent().x1 for ax in figure.axes)
    assert legend.get_window_extent().x0 > right


def test_many_models_are_told_apart():
    rows = [RoundScore(1, f"model_{i}", True, 0.1, 0.1) for i in range(12)]
    top, _ = draw_live_scores(rows, {}).axes
    lines = [x for x in top.get_lines() if x.get_label().startswith("model_")]
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 12
