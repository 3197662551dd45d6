"""Trees drawn and as text, against walks down their nodes and sums in NumPy."""

import re
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pytest
import sklearn.ensemble
from matplotlib.quiver import Quiver
from numpy.testing import assert_allclose
from sklearn.linear_model import LinearRegression

from helpers.data import make_mixed_frame
from helpers.grids import on_grid
from helpers.trees import trees_of
from sklearn_era import ensemble, inspection
from sklearn_era.inspection import export_graphviz, export_text, plot_tree


def fit(kind="booster", target="real", **parameters):
    frame, y, eras = make_mixed_frame(target)
    if kind == "forest":
        model = ensemble.EraForestRegressor(3, min_samples_leaf=20, random_state=0)
    else:
        module = sklearn.ensemble if kind == "stock" else ensemble
        suffix = "Regressor" if target == "real" else "Classifier"
        options = {"max_iter": 3, "max_leaf_nodes": 8, "learning_rate": 0.3}
        options["categorical_features"] = "from_dtype"
        model = getattr(module, f"HistGradientBoosting{suffix}")(**options)
    return model.set_params(**parameters).fit(frame, y), frame, y, eras


def meets(frame, condition):
    """The rows of a condition as it reads."""
    condition, or_missing, _ = condition.partition(" or missing")
    form = r"(\w+) (<=|>|in|not in|is) (.*)"
    name, word, value = re.fullmatch(form, condition).groups()
    column = frame[name]
    if word == "is":
        return column.isna() if value == "missing" else column.notna()
    if word in ("<=", ">"):
        rows = column <= float(value) if word == "<=" else column > float(value)
    else:
        rows = column.isin(value.strip("{}").split(", ")) == (word == "in")
    return rows.mask(column.isna(), bool(or_missing)).astype(bool)


def read_text(text, frame):
    """The rows and values of leaves, and the rows, condition and facts of splits."""
    rows, leaves, splits = [np.ones(len(frame), dtype=bool)], [], []
    for line in text.split("\n"):
        bars, _, content = line.partition("|--- ")
        depth = len(bars) // 4
        content, _, facts = content.partition("  [")
        if content.startswith("value: "):
            leaves.append((rows[depth], float(content[7:])))
            continue
        own = rows[depth] & meets(frame, content)
        if facts:
            splits.append((rows[depth], own, facts))
        rows[depth + 1 :] = [own]
    return leaves, splits


@pytest.mark.parametrize(("kind", "target", "tree"), [
    ("booster", "real", 0), ("stock", "real", 0), ("forest", "real", 2),
    ("booster", "multiclass", 1),
])  # fmt: skip
def test_text_leads_each_row_to_its_prediction(kind, target, tree):
    model, frame, y, eras = fit(kind, target)
    text = export_text(model, frame, y, eras=eras, tree=tree)
    leaves, splits = read_text(text, frame)
    assert (" in {" in text) == (target == "real")
    found = sum(rows * value for rows, value in leaves)
    # The tree alone, without what comes before it.
    predictor = trees_of(model)[tree]
    known = model._bin_mapper.make_known_categories_bitsets()
    X = model._preprocess_X(frame, reset=False)
    expected = predictor.predict(X, *known, n_threads=1)
    assert_allclose(found, expected * (3 if kind == "forest" else 1), rtol=1e-5)
    table = inspection.split_statistics(model, frame, y, eras=eras)
    directions = table.era_directions[table.tree == tree]
    for (rows, own, facts), node in zip(splits, directions, strict=True):
        assert 0 < own.sum() < rows.sum()
        assert facts.startswith(f"{rows.sum():,} rows, gain ")
        left, right = (node > 0).sum(), (node < 0).sum()
        assert facts.endswith(f"; more on the left in {left}, right in {right}]")


def test_splits_of_missing_values_and_depth():
    X = np.full((100, 1), np.nan)
    X[:50, 0] = np.arange(50)
    model = ensemble.HistGradientBoostingRegressor(max_iter=1, max_leaf_nodes=3)
    lines = export_text(model.fit(X, np.isnan(X[:, 0]) * 9.0)).split("\n")
    assert lines[0].startswith("|--- x0 is not missing  [100 rows, gain ")
    assert "|--- x0 is missing" in lines
    text = export_text(fit()[0], max_depth=0)
    assert (text.count("|--- (...)"), text.count("\n")) == (2, 3)
    with pytest.raises(ValueError, match="max_depth must be a number; got None"):
        export_text(model, max_depth=None)
    constant = model.fit(X, np.full(100, 2.0))
    assert export_text(constant) == "|--- value: 0"
    assert '0 [label="0"];' in export_graphviz(constant)


@pytest.mark.parametrize("scale", [1, 2e-12, 20240115])
def test_thresholds_are_told_apart_and_exact(scale):
    X = scale * (1 + 1e-9 * np.arange(200.0))[:, None]
    model = ensemble.HistGradientBoostingRegressor(max_iter=1).fit(X, X[:, 0] / scale)
    text = export_text(model)
    found = re.findall("x0 <= (.*?)  ", text)
    assert len({*found}) == len(found) == text.count("x0 > ") > 5
    splits = model._predictors[0][0].nodes["is_leaf"] == 0
    thresholds = model._predictors[0][0].nodes["num_threshold"][splits]
    assert [*map(float, found)] == thresholds.tolist()
    ax = plot_tree(model, X, X[:, 0], eras=np.arange(200) % 4, max_depth=9)
    drawn = [x.get_text().split("\n")[0] for x in ax.texts if "<=" in x.get_text()]
    plt.close(ax.figure)
    assert len({*drawn}) == len(drawn) == len(found)


def test_graphviz_has_the_texts_and_edges():
    model, frame, y, eras = fit()
    frame = frame.rename(columns={"s": 'a "b" \\c'})
    model.fit(frame, y)
    dot = export_graphviz(model, frame, y, eras=eras)
    nodes = model._predictors[0][0].nodes
    assert dot.count("->") == nodes.size - 1
    for i, node in enumerate(nodes):
        if node["is_leaf"]:
            assert f'{i} [label="{node["value"]:.6g}"];' in dot
        else:
            assert f"{i} -> {node['left']} [label=yes];" in dot
    assert re.search(r'label="a \\"b\\" \\\\c <= [-.\d]+( or missing)?\\n\d+ rows', dot)


@pytest.mark.parametrize("n_eras", [4, 40])
def test_arrows_have_the_direction_and_effect_of_eras(n_eras):
    model, frame, y, _ = fit()
    eras = np.arange(y.size) % n_eras
    ax = plot_tree(model, frame, y, eras=eras, max_depth=1)
    table = inspection.split_statistics(model, frame, y, eras=eras)
    shown = np.flatnonzero((table.tree == 0) & (table.depth <= 1))
    means = table.era_gains / np.maximum(table.era_counts, 1)
    effects = table.era_directions * np.sqrt(means)
    expected = [-0.4 * effects[i] / abs(effects[i]).max() for i in shown]
    arrows = [x.U for x in ax.get_children() if isinstance(x, Quiver)]
    if n_eras == 4:
        assert_allclose(sorted(map(list, arrows)), sorted(map(list, expected)))
    else:
        assert not arrows
        bars = np.reshape([bar.get_height() for bar in ax.patches], (-1, 20))
        shares = bars[:, :10].sum(axis=1) / bars.sum(axis=1)
        of_left = [(x < 0).sum() / (x != 0).sum() for x in expected]
        assert_allclose(sorted(shares), sorted(of_left))


@on_grid(
    "style n_letters size", ["default", "dark_background"], [1, 60], [None, (5, 5)],
    every=2,
)  # fmt: skip
def test_texts_do_not_overlap_and_are_seen_in_both_styles(style, n_letters, size):
    model, frame, y, eras = fit()
    frame.columns = [name * n_letters for name in frame]
    with plt.style.context(style):
        ax = None if size is None else plt.subplots(figsize=size)[1]
        ax = plot_tree(model.fit(frame, y), frame, y, eras=eras, ax=ax)
        ax.figure.canvas.draw()
        color = plt.matplotlib.colors.to_rgb(plt.rcParams["text.color"])
    boxes = [text.get_window_extent() for text in ax.texts]
    assert len(boxes) > 6
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    for text in ax.texts:
        assert plt.matplotlib.colors.to_rgb(text.get_color()) == color
        assert text.get_bbox_patch().get_edgecolor()[:3] == color


@pytest.mark.parametrize(("changed", "message"), [
    ({"tree": 3}, "tree must be an integer from 0 to 2; got 3"),
    ({"tree": -1}, "tree must be an integer from 0 to 2; got -1"),
    ({"y": None}, "all three"), ({"eras": None}, "all three"),
    ({"estimator": LinearRegression()}, "estimator must be a HistGradientBoosting"),
])  # fmt: skip
def test_what_is_no_tree_is_refused(changed, message):
    options = dict(zip(("estimator", "X", "y", "eras"), fit(), strict=True)) | changed
    for draw in (export_text, export_graphviz, plot_tree):
        with pytest.raises(ValueError, match=message):
            draw(**options)
