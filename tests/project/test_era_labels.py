"""Labels of any kind, wherever labels are read: the results are those of integers."""

import functools
from itertools import permutations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import mean_squared_error, r2_score

from helpers.cli import params
from helpers.cli import run as run_command
from helpers.era_labels import AHEAD, KINDS, NAMES, OTHERS, REFUSED, RIGHT, N
from helpers.grids import on_grid
from sklearn_era import calibration, ensemble, inspection, preprocessing
from sklearn_era._era_labels import join, merged_categories
from sklearn_era._eras import encode_eras, read_eras
from sklearn_era._tables.parquet import ParquetColumns
from sklearn_era.auto import AutoEraRegressor
from sklearn_era.effects import GroupDRO, Intercepts
from sklearn_era.ensemble import BinnedDataset, EraForestRegressor
from sklearn_era.environments import time_blocks
from sklearn_era.metrics import EraScoreForecast, era_scores, make_era_scorer
from sklearn_era.model_files import load_model, save_model
from sklearn_era.model_selection import EraSearchCV, EraWalkForwardSplit
from sklearn_era.rules import RuleEnsembleClassifier

RNG = np.random.default_rng(0)
CODES = RNG.permutation(np.repeat(np.arange(N), 12))
LEVELS = np.cumsum(1 + RNG.normal(size=AHEAD) / 4)
X = RNG.normal(size=(CODES.size, 2))
Y = X[:, 0] + LEVELS[CODES] + RNG.normal(size=CODES.size) / 4
ASKED = np.array([N + 5, 3, N - 1, N, N + 2])
SMALL = {"max_iter": 3, "max_leaf_nodes": 4, "min_samples_leaf": 3, "random_state": 0}
ORDERED = {"era_order": "ordered"}


def booster(**parameters):
    return ensemble.HistGradientBoostingRegressor(**SMALL | ORDERED | parameters)


def with_intercepts():
    return booster(era_effects=Intercepts(forecast="auto"))


def predictions(train, ask):
    model = with_intercepts().fit(X, Y, eras=train(CODES))
    return model.predict(X[:5], eras=ask(ASKED))


def warm_starts(train, ask):
    model = with_intercepts().set_params(warm_start=True).fit(X, Y, eras=train(CODES))
    return model.set_params(max_iter=5).fit(X, Y, eras=ask(CODES)).predict(X[:5])


def updates(train, ask):
    auto = AutoEraRegressor(booster(), members=["level"], cv=2, **ORDERED)
    known = CODES < N - 3
    auto.fit(X[known], Y[known], eras=train(CODES[known]))
    auto.update(X[~known], Y[~known], eras=ask(CODES[~known]))
    with pytest.raises(ValueError, match="all of which the model has seen"):
        auto.update(X, Y, eras=ask(CODES))
    return auto.predict(X[:5], eras=ask(ASKED))


def averages(train, ask):
    auto = AutoEraRegressor(booster(), members=["level"], cv=2, **ORDERED)
    return auto.fit(X, Y, eras=train(CODES)).predict(X[:5], eras=ask(ASKED))


def updates_with_a_refit(train, ask):
    auto = AutoEraRegressor(booster(), members=["level"], cv=2, **ORDERED)
    known, far = CODES < N - 3, Y + 9 * (CODES >= N - 3)
    auto.fit(X[known], far[known], eras=train(CODES[known]))
    auto.update(X, far, eras=ask(CODES))
    assert auto.update_log_[0]["refit"]
    return auto.predict(X[:5], eras=ask(ASKED))


def earlier_eras(train, ask):
    auto = AutoEraRegressor(booster(), members=["level"], cv=2, **ORDERED)
    later = CODES >= 4
    auto.fit(X[later], Y[later], eras=train(CODES[later]))
    with pytest.raises(ValueError, match="lies before the last known era"):
        auto.update(X[~later], Y[~later], eras=ask(CODES[~later]))
    return 0.0


def transformers(train, ask):
    scaler = preprocessing.EraStandardScaler(unseen="train")
    target = preprocessing.EraTargetRegressor(LinearRegression())
    return (
        scaler.fit(Y[:, None], eras=train(CODES)).transform(X[:5, :1], eras=ask(ASKED)),
        target.fit(X, Y, eras=train(CODES)).predict(X[:5], eras=ask(ASKED)),
    )


def probabilities(train, ask):
    model = calibration.EraCalibratedClassifier(LogisticRegression(), cv=2, **ORDERED)
    model.fit(X, LEVELS[CODES] < Y, eras=train(CODES))
    return model.predict_proba(X[:5], eras=ask(ASKED))


def intervals(train, ask):
    model = calibration.EraConformalRegressor(LinearRegression(), cv=3, **ORDERED)
    return model.fit(X, Y, eras=train(CODES)).predict_interval(X[:5], 0.6)


def forecasts(train, ask):
    search = EraSearchCV(LinearRegression(), {"fit_intercept": [True, False]},
                         scoring="r2", **ORDERED)  # fmt: skip
    search.fit(X, Y, eras=train(CODES))
    scores = era_scores(Y, X[:, 0], eras=train(CODES), metric=mean_squared_error)
    again = dict(zip(search.era_labels_.tolist(), search.era_scores_[0], strict=True))
    return (
        EraScoreForecast().fit(search).interval(horizon=3),
        EraScoreForecast().fit(scores).interval(horizon=3),
        EraScoreForecast().fit([*again.values()], eras=search.era_labels_).interval(),
        era_scores(
            Y, X[:, 0], eras=train(CODES), metric=lambda y, p: np.cos(9 * y[0]),
            greater_is_better=True,
        ).aggregate("max_drawdown"),
    )  # fmt: skip


def splits(train, ask):
    cv = EraWalkForwardSplit(2, test_size=2, **ORDERED)
    return [test for _, test in cv.split(X, groups=train(CODES))]


def early_stopping(train, ask):
    drawdown = make_era_scorer(r2_score, aggregation="max_drawdown")
    model = booster(early_stopping=True, scoring=drawdown, validation_fraction=0.3,
                    era_weighting=GroupDRO(), warm_start=True,
                    n_iter_no_change=9)  # fmt: skip
    model.fit(X, Y, eras=train(CODES))
    return model.set_params(max_iter=5).fit(X, Y, eras=ask(CODES)).validation_score_


def stability(train, ask):
    found = inspection.era_stability(
        X, Y, estimator=LinearRegression(), eras=train(CODES), random_state=0, **ORDERED
    )
    return found.effects


def binned_data(train, ask):
    data = BinnedDataset.from_arrays(X, Y, eras=train(CODES))
    return with_intercepts().fit(data).predict(X[:5], eras=ask(ASKED))


def model_files(train, ask, folder):
    model = with_intercepts().fit(X, Y, eras=train(CODES))
    save_model(model, folder / "model.era")
    loaded, _ = load_model(folder / "model.era")
    assert type(loaded._era_labels) is type(model._era_labels)
    return loaded.predict(X[:5], eras=ask(ASKED))


def write_parquet(train, folder):
    labels = train(CODES)
    if isinstance(labels, pl.Series):
        labels = labels.to_arrow()
    elif not isinstance(labels, pa.ChunkedArray):
        labels = pa.Array.from_pandas(pd.Series(labels))
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "y": Y, "era": labels})
    pa.parquet.write_table(table, folder / "rows.parquet", row_group_size=50)
    return str(folder / "rows.parquet")


def parquet(train, ask, folder):
    path = write_parquet(train, folder)
    data = BinnedDataset.from_parquet(path, target="y", era="era")
    asked = pd.DataFrame(X[:5], columns=["a", "b"])
    return with_intercepts().fit(data).predict(asked, eras=ask(ASKED))


def command_line(train, ask, folder):
    path, model = write_parquet(train, folder), folder / "model.era"
    few = {name: SMALL[name] for name in SMALL if name != "random_state"}
    options = [*params(**few, era_effects="intercept")]
    options += ["--era-order", ORDERED.get("era_order", "auto")]
    arguments = ["fit", path, "--target", "y", "--era", "era", "--out", model]
    assert "14 eras" in run_command(*arguments, *options)
    asked = pd.DataFrame(X[:5], columns=["a", "b"])
    return load_model(model)[0].predict(asked, eras=ask(ASKED))


def blocks(train, ask):
    return time_blocks(train(CODES), 3)


def rest(train, ask):
    forest = EraForestRegressor(20, bootstrap="whole_eras", oob_score=True)
    rules = RuleEnsembleClassifier(2, beam_width=4, n_bins=8, random_state=0)
    rules.fit(X, LEVELS[CODES] < Y, eras=train(CODES))
    return (
        forest.set_params(random_state=0).fit(X, Y, eras=train(CODES)).oob_era_scores_,
        rules.predict_proba(X[:5])[:, 1],
    )


PLACES = [
    predictions, updates, updates_with_a_refit, earlier_eras, transformers,
    probabilities, intervals, forecasts, splits, early_stopping, stability, binned_data,
    model_files, parquet, command_line, blocks, rest, warm_starts]  # fmt: skip
PERIODS = {"periods", "quarters"}  # which no Parquet file has
NAMED = {"numbered text"}  # which may be names, and has to be called ordered
LEFT_OUT = {"parquet": PERIODS, "command_line": PERIODS | {"bytes"}, "blocks": NAMED,
            "forecasts": NAMED}  # fmt: skip


@functools.cache
def right(place, folder):
    return run(place, KINDS["integers"], KINDS["integers"], folder)


def run(place, train, ask, folder):
    takes_folder = place in (model_files, parquet, command_line)
    found = place(train, ask, folder) if takes_folder else place(train, ask)
    parts = found if isinstance(found, tuple) else (found,)
    return np.concatenate([np.ravel(part) for part in parts])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


def case(place, i, name):
    """A few kinds are tried at each place by default, others at the next."""
    every = len(KINDS) if place.__name__.startswith(("updates", "earlier")) else 10
    is_slow = (i + PLACES.index(place)) % every != 0 or place is updates_with_a_refit
    marks = [pytest.mark.slow] if is_slow else []
    return pytest.param(place, name, id=f"{place.__name__}-{name}", marks=marks)


@pytest.mark.parametrize(("place", "kind"), [
    case(place, i, name) for place in PLACES for i, name in enumerate(KINDS)
    if name not in LEFT_OUT.get(place.__name__, ())
])  # fmt: skip
def test_labels_of_each_kind_give_what_integers_give(place, kind, folder):
    train = KINDS[kind]
    for ask in (train, OTHERS.get(kind, train)):
        found = run(place, train, ask, folder)
        assert_allclose(found, right(place, folder), rtol=1e-12)


@pytest.mark.parametrize("place", [
    predictions, warm_starts, updates,
    pytest.param(updates_with_a_refit, marks=pytest.mark.slow)])  # fmt: skip
def test_text_is_in_the_order_of_known_categories(place, folder):
    found = run(place, KINDS["polars Enum"], lambda x: [NAMES[i] for i in x], folder)
    assert_allclose(found, right(place, folder), rtol=1e-12)


def dictionary(categories):
    return pa.DictionaryArray.from_arrays(
        np.arange(len(categories)), [*categories], ordered=True
    )


def chunks(parts, folder):
    return read_eras(pa.chunked_array(parts), range(sum(map(len, parts)))).labels


def files(parts, folder):
    paths = [folder / f"{i}.parquet" for i in range(len(parts))]
    for part, path in zip(parts, paths, strict=True):
        pa.parquet.write_table(pa.table({"era": part}), path)
    return encode_eras(ParquetColumns(paths).read_distinct("era")[0]).labels


def joined(parts, folder):
    labels = functools.reduce(join, [read_eras(x, x).labels for x in parts])
    return encode_eras(labels).labels


@on_grid("place orders", [chunks, files], [
    (["ac", "abc"], "abc"), (["ac", "ac", "abc"], "abc"), (["ab", "bc", "cd"], "abcd"),
    (["ab", "ba"], None), (["ab", "bcd", "da"], None),
])  # fmt: skip
def test_parts_agree_in_the_order_of_categories(place, orders, folder):
    """In whatever order they come, or they are refused."""
    parts, expected = orders
    for some in permutations(map(dictionary, parts)):
        if expected is None:
            with pytest.raises(ValueError, match=r"'[a-d]' before '[a-d]'"):
                place(some, folder)
        else:
            assert place(some, folder).tolist() == [*expected]


def test_parts_that_contradict_are_told_by_their_labels():
    days = np.array(["2024-05-01", "2024-05-02"], "M8[D]")
    with pytest.raises(ValueError, match=r"'2024-05-01'\) before .*'2024-05-02'\)"):
        merged_categories([days, days[::-1]])


def test_categories_that_no_part_compares_come_part_by_part(folder):
    for place in (chunks, files, joined):
        found = place([dictionary(x) for x in ("ma", "bc", "xc")], folder)
        assert found.tolist() == [*"mabxc"]


@pytest.mark.parametrize("new", [np.array([2**60 + 5], "u8"), np.array([1.5]), [3]])
@pytest.mark.parametrize("known", [np.array([2**60 + 1, 2**60 + 3]), np.arange(2)])
def test_joined_numbers_keep_their_digits(known, new, folder):
    new = np.asarray(new)
    for labels in (join(known, new), join(new, known)[[1, 2, 0]]):
        assert labels.tolist() == [*known.tolist(), *new.tolist()]
    model = booster(era_effects=Intercepts()).fit(X, Y, eras=labels[CODES % 3])
    save_model(model, folder / "digits.era")
    loaded, _ = load_model(folder / "digits.era")
    assert loaded._era_labels.tolist() == sorted(labels.tolist())


@pytest.mark.parametrize("letter", [b"m", b"\xff"], ids=["UTF-8", "none"])
def test_bytes_are_text_in_any_encoding(letter):
    eras = np.array([letter + b"9", letter + b"10"])[CODES % 2]
    with pytest.warns(UserWarning, match=r"^era_effects=.* which are text: '.*10' com"):
        booster(era_effects="intercept").fit(X, Y, eras=eras)
    with pytest.raises(ValueError, match=r"^Labels are text such as '.*10', and"):
        EraSearchCV(LinearRegression(), {}, cv=2).fit(X, Y, eras=eras)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_a_matrix_has_a_column_of_labels():
    assert read_eras(np.asmatrix(CODES).T, X).codes.tolist() == CODES.tolist()


BY_CALENDAR = [splits, predictions, forecasts, averages, intervals, command_line]


@on_grid("place kind", BY_CALENDAR, [*RIGHT, *REFUSED], every=4)
def test_calendar_labels_are_right_or_refused(place, kind, folder, monkeypatch):
    """By default, whatever the labels; none is so many eras ahead by its digits."""
    expected = right(place, folder)
    monkeypatch.delitem(ORDERED, "era_order")
    labels = (RIGHT | REFUSED)[kind]
    if place is command_line and kind in (*PERIODS, "weekly periods"):
        pytest.skip("no Parquet file has periods")
    if kind in REFUSED:
        with pytest.raises((ValueError, AssertionError), match="Labels are text such"):
            run(place, labels, labels, folder)
    else:
        assert_allclose(run(place, labels, labels, folder), expected, rtol=1e-12)
