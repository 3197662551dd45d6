"""Splits by time, by groups and by both are those of the definition."""

import pickle
from datetime import timedelta

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal, assert_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score

from helpers.grids import slow
from sklearn_era.auto import AutoEraRegressor
from sklearn_era.calibration import EraConformalRegressor
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.model_selection import EraSearchCV, EraSplit, EraWalkForwardSplit

START = np.datetime64("2023-11-20")
DAYS = {
    "M8": lambda days: START + days,
    "ns": lambda days: pd.Series(START + days).astype("M8[ns]"),
    "dates": lambda days: (START + days).astype(object),
    "YYYYMMDD": lambda days: np.array(
        [int(str(day).replace("-", "")) for day in START + days]
    ),
    "zone": lambda days: pd.Series(START + days).dt.tz_localize("UTC"),
}  # fmt: skip
SIZES = ("test_size", "max_train_size", "horizon", "gap", "purge")


def draw_size(rng, low, high):
    """A number of eras, or a duration of some days."""
    size = int(rng.integers(low, high))
    if size == 0 or rng.random() < 0.6:
        return size
    hours = np.timedelta64(24 * size, "h")
    return [f"{size}D", f"{size} days", timedelta(size), hours][rng.integers(4)]


def draw(rng):
    """Parameters, and the days and groups of rows in no order."""
    n_eras, n_groups = int(rng.integers(5, 19)), int(rng.integers(2, 7))
    days = np.cumsum(rng.choice([1, 1, 1, 2, 5], n_eras))
    rows = rng.integers(0, n_eras, 120), rng.integers(0, n_groups, 120)
    if rng.random() < 0.3:  # groups come and go
        is_there = rows[0] % n_groups != rows[1]
        rows = [x[is_there] for x in rows]
    sizes = {"test_size": draw_size(rng, 1, 4), "max_train_size": draw_size(rng, 1, 6),
             "horizon": draw_size(rng, 1, 4), "gap": draw_size(rng, 0, 3),
             "purge": draw_size(rng, 0, 3)}  # fmt: skip
    if rng.random() < 0.5:
        sizes["max_train_size"] = None
    counts = {"n_splits": int(rng.integers(1, 4)), "n_group_folds": 2}
    if n_groups > 2:
        counts["n_group_folds"] = int(rng.integers(2, n_groups))
    group = "new" if rng.random() < 0.6 else "known"
    return {**counts, **sizes, "group": group}, days[rows[0]], rows[1]


def naive_blocks(days, n_splits, test_size, max_train_size, horizon, gap, purge):
    """The days to train and to test on, by the definition; None without any."""
    eras = sorted({*days.tolist()})

    def length(size):
        return size.days if isinstance(size, timedelta) else int(size.split("D")[0])

    def before(day, size):
        if day is None:
            return None
        if isinstance(size, int):
            place = eras.index(day) - size
            return eras[place] if place >= 0 else None
        return max((x for x in eras if x <= day - length(size)), default=None)

    blocks = []
    for k in range(n_splits, 0, -1):
        if isinstance(test_size, int):
            test = [x for i, x in enumerate(eras[::-1]) if i // test_size == k - 1]
        else:
            ago = [(eras[-1] - x) // length(test_size) for x in eras]
            test = [x for x, n in zip(eras, ago, strict=True) if n == k - 1]
        last = before(before(before(min(test, default=None), horizon), gap), purge)
        train = [x for x in eras if last is not None and x <= last]
        if isinstance(max_train_size, int):
            train = train[-max_train_size:]
        elif max_train_size is not None:
            train = [x for x in train if x > last - length(max_train_size)]
        blocks.append((train, test))
    return blocks


def naive_splits(days, groups, group, n_group_folds, **parameters):
    """Row by row; None if a split has no rows."""
    folds = GroupKFold(n_group_folds).split(groups, groups=groups)
    left_out, splits = [{*groups[test].tolist()} for _, test in folds], []
    for train_days, test_days in naive_blocks(days, **parameters):
        for out in left_out:
            rows = [*enumerate(zip(days.tolist(), groups.tolist(), strict=True))]
            train = [i for i, (x, g) in rows if x in train_days and g not in out]
            asked = out if group == "new" else {groups[i] for i in train}
            test = [i for i, (x, g) in rows if x in test_days and g in asked]
            if not (train and test):
                return None
            splits.append((train, test))
    return splits


def as_days(size):
    """The durations of `draw_size`, as the definition reads them."""
    if isinstance(size, np.timedelta64):
        return size.astype("m8[D]").item()
    return size.replace(" days", "D") if isinstance(size, str) else size


@pytest.mark.parametrize("part", [0, *map(slow, range(1, 5))])
def test_splits_are_those_of_the_definition(part):
    rng, n_refused = np.random.default_rng(part), 0
    for number in range(400):
        parameters, days, groups = draw(rng)
        kind = [*DAYS][number % len(DAYS)]
        times, names = DAYS[kind](days), np.array(list("abcdefg"))[groups]
        eras = (times, names) if number % 2 else pd.DataFrame({"t": times, "g": names})
        cv = EraSplit(**parameters)
        by_days = {**parameters, **{x: as_days(parameters[x]) for x in SIZES}}
        expected = naive_splits(days, groups, **by_days)
        if expected is None:
            n_refused += 1
            message = r"^groups(:| has) .*: .*(lower|Lower)"
            with pytest.raises(ValueError, match=message):
                list(cv.split(days, groups=eras))
            continue
        splits = list(cv.split(days, groups=eras))
        assert cv.get_n_splits(None, None, eras) == len(splits)
        for (train, test), rows in zip(splits, expected, strict=True):
            assert_array_equal(train, rows[0])
            assert_array_equal(test, rows[1])
            assert days[train].max() < days[test].min()
            are_left_out = np.isin(groups[test], groups[train], invert=True)
            assert are_left_out.all() if cv.group == "new" else not are_left_out.any()
    assert n_refused < 200


@pytest.mark.parametrize("parameters", [
    {}, {"gap": 2}, {"gap": 1, "purge": 2}, {"horizon": 3}, {"test_size": 2},
    {"max_train_size": 3, "horizon": 2, "gap": 1}])  # fmt: skip
def test_one_column_is_split_as_by_the_splitters_of_one_axis(parameters):
    rng = np.random.default_rng(0)
    eras, shops = rng.integers(0, 20, 300), rng.integers(0, 9, 300).astype(str)
    gap = sum(parameters.get(name, 0) for name in ("gap", "purge"))
    gap += parameters.get("horizon", 1) - 1
    sizes = {name: parameters.get(name) for name in ("test_size", "max_train_size")}
    walk = EraWalkForwardSplit(3, gap=gap, **sizes)
    cv = EraSplit(**parameters, era_order="unordered")
    for own, labels, other in (
        (EraSplit(**parameters), eras, walk), (cv, shops, GroupKFold(3)),
        (cv, pd.DataFrame({"shop": shops}), GroupKFold(3))):  # fmt: skip
        assert own.get_n_splits(groups=labels) == 3
        codes = np.ravel(labels)
        expected = [*other.split(eras, groups=codes)]
        assert_equal([*own.split(eras, groups=labels)], expected)


@pytest.mark.parametrize(("group", "horizon", "question"), [
    ("new", 1, "new group, next era"), ("new", 3, "new group, later era"),
    ("known", 1, "known group, next era"), ("known", "7D", "known group, later era"),
    ("new", np.timedelta64(1, "D"), "new group, later era"),
])  # fmt: skip
def test_the_four_questions_have_names(group, horizon, question):
    assert EraSplit(group=group, horizon=horizon).question == question


@pytest.mark.parametrize("kind", [
    "periods", "YYYYMM", "text", "times of day", "categories", "UTC"])  # fmt: skip
def test_durations_are_of_all_labels_that_hold_dates(kind):
    months = pd.date_range("2023-06-01", periods=12, freq="MS")
    labels = {
        "periods": months.to_period("M"), "YYYYMM": months.strftime("%Y%m").astype(int),
        "text": months.strftime("%Y-%m"), "UTC": months.tz_localize("UTC"),
        "times of day": months.strftime("%Y-%m-%d %H:%M"),
        "categories": pd.Categorical(months, months, ordered=True)}[kind]  # fmt: skip
    cv = EraSplit(1, test_size="31D", horizon="62D", era_order="ordered")
    [(train, test)] = cv.split(months, groups=labels)
    # From the first of April the first of February is 60 days away.
    assert (train.max(), test.tolist()) == (7, [10, 11])


WEEKS = pd.date_range("2024-01-01", periods=12, freq="7D")
SHOPS, ROWS = np.tile(np.arange(6), 12), np.repeat(np.arange(12), 6)
FRAME = pd.DataFrame({"week": WEEKS[ROWS], "shop": SHOPS})
PAIR = ("ordered", "unordered")


@pytest.mark.parametrize(("eras", "era_order"), [
    (FRAME, "auto"), (FRAME[["shop", "week"]], "auto"), (pl.DataFrame(FRAME), "auto"),
    (FRAME.to_numpy(), "auto"), ((FRAME.week, SHOPS), "auto"),
    ((FRAME.shop, FRAME.week), ("unordered", "ordered")), (FRAME, list(PAIR)),
    ({"week": FRAME.week, "shop": SHOPS}, "auto"),
    (np.column_stack([ROWS, SHOPS]), PAIR),
    (np.column_stack([SHOPS, ROWS]), PAIR[::-1]),
    ((ROWS, SHOPS.astype(str)), "auto"), ((ROWS, SHOPS > 2), "auto"),
    ((FRAME.week.dt.to_period("W"), [f"shop {i}" for i in SHOPS]), "auto"),
    ((pd.Categorical.from_codes(ROWS, [*"lkjihgfedcba"], ordered=True),
      SHOPS.astype(str)), "auto"),
])  # fmt: skip
def test_columns_are_told_apart(eras, era_order):
    cv = EraSplit(1, 2, test_size=1, era_order=era_order)
    splits = list(cv.split(ROWS, groups=eras))
    assert len(splits) == 2
    for train, test in splits:
        assert ({*ROWS[test]}, ROWS[train].max()) == ({11}, 10)
        assert not {*SHOPS[test]} & {*SHOPS[train]}


@pytest.mark.parametrize(("eras", "parameters", "message"), [
    (None, {}, "groups is missing: pass the times"),
    ((ROWS, SHOPS), {}, "groups: labels such as 0 and 0 do not tell which column is "),
    ((ROWS.astype(str), [f"0{i}" for i in SHOPS]), {}, "labels such as '0' and "),
    (np.column_stack([ROWS, SHOPS, SHOPS]), {}, "groups has 3 columns, and EraSplit"),
    (FRAME, {"era_order": "ordered"}, "era_order='ordered' does not fit groups of 2"),
    (FRAME.week, {"era_order": PAIR}, r"does not fit groups of 1 column\(s\)"),
    (FRAME.week, {"group": "known"}, "group='known' is for two columns"),
    (FRAME, {"n_group_folds": 7}, r"groups has 6 group\(s\), of which 7 folds"),
    (FRAME, {"n_splits": 12, "test_size": 1}, "groups has 12 eras, and block 1 of"),
    (FRAME, {"test_size": "1 hour"}, "would have none to test on"),
    ((ROWS, SHOPS.astype(str)), {"gap": "7D"}, "gap is a duration, and labels such as "
     "0 are no dates in their order: pass a number of eras"),
    ((202401 + ROWS % 9, SHOPS.astype(str)), {"purge": "7D"},
     "labels such as 202401 are months or weeks"),
    ((FRAME.week, SHOPS[1:]), {}, r"groups\[1\] has 71 labels, but X has 72 rows"),
    (FRAME.assign(shop=None), {}, r"groups\['shop'\] has 72 missing label"),
    ((FRAME.week.dt.strftime("%d %b"), SHOPS > 2), {}, "do not tell which"),
    (FRAME.week.dt.strftime("%B"), {}, "depends on its order"),
    ((FRAME.week.dt.strftime("%Y-%V").str.replace("-0", "-"), SHOPS), {},
     "is not that of its dates: fill numbers up"),
    (np.where(ROWS % 2, "2023-01", "Jan 2024"), {}, "fill numbers up .* all as '2024"),
])  # fmt: skip
def test_labels_are_checked(eras, parameters, message):
    with pytest.raises(ValueError, match=message):
        list(EraSplit(**parameters).split(ROWS, groups=eras))


@pytest.mark.parametrize(("name", "value"), [
    ("n_splits", 0), ("n_group_folds", 1), ("group", "old"), ("test_size", 0),
    ("max_train_size", 0.5), ("horizon", 0), ("gap", -1), ("purge", True),
    ("gap", "1 month"), ("gap", "28"), ("horizon", "0D"), ("test_size", timedelta(0)),
    ("gap", np.timedelta64(1, "M")), ("gap", np.timedelta64(1)), ("era_order", "time"),
    ("era_order", ("ordered", "ordered")), ("n_group_folds", True),
])  # fmt: skip
def test_parameters_are_checked(name, value):
    with pytest.raises(ValueError, match=rf"{name}\b.* must be"):
        EraSplit(**{name: value})


def test_splitters_are_scikit_learns_kind():
    own, walk = EraSplit(2, gap="14D", era_order=PAIR), EraWalkForwardSplit(3, gap=2)
    for cv in (own, walk):
        for copy in (cv, pickle.loads(pickle.dumps(cv)), clone(cv, safe=False)):
            assert repr(copy) == repr(cv)
    assert "n_splits=2" in repr(own)
    assert "gap=2, max_train_size=None, n_splits=3" in repr(walk)
    assert walk.get_n_splits() == 3


def make_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS.size, 3))
    return X, X[:, 0] + ROWS / 9 + rng.normal(size=ROWS.size)


@pytest.mark.parametrize("routing", [False, True])
def test_groups_of_one_and_two_columns_reach_the_splitters(routing):
    (X, y), walk = make_rows(), EraWalkForwardSplit(3, test_size=2, gap=1)
    own = EraSplit(2, 2, test_size=2, gap="7D")
    for cv, eras, n_splits in (own, FRAME, 4), (walk, ROWS, 3):
        with config_context(enable_metadata_routing=routing):
            arguments = {"params": {"groups": eras}} if routing else {"groups": eras}
            scores = cross_val_score(Ridge(), X, y, cv=cv, **arguments)
            search = GridSearchCV(Ridge(), {"alpha": [1.0, 9.0]}, cv=cv)
            search.fit(X, y, groups=eras)
        rows = [(X[i], y[i], X[j], y[j]) for i, j in cv.split(X, groups=eras)]
        assert_array_equal(scores, [Ridge().fit(*x[:2]).score(*x[2:]) for x in rows])
        assert search.n_splits_ == n_splits


@pytest.mark.parametrize("name", ["search", "conformal", "average"])
def test_estimators_hand_both_columns_on(name, monkeypatch):
    """And dates, of which durations are."""
    X, y = make_rows()
    cv = EraSplit(2, 2, test_size=2, gap="7D", group="known")
    expected, asked = list(cv.split(X, groups=FRAME)), []
    monkeypatch.setattr(EraSplit, "split", lambda self, X, y=None, groups=None: (
        asked.append(groups) or iter(expected)))  # fmt: skip
    order, booster = {"era_order": "ordered", "cv": cv}, Regressor(max_iter=2)
    model = {
        "search": lambda: EraSearchCV(Ridge(), {"alpha": [1.0, 9.0]}, **order),
        "conformal": lambda: EraConformalRegressor(LinearRegression(), **order),
        "average": lambda: AutoEraRegressor(booster, members=["linear"], **order),
    }[name]()
    model.fit(X, y, eras=FRAME)
    monkeypatch.undo()
    for groups in asked:
        assert_equal([*cv.split(X, groups=groups)], expected)
    assert asked


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_searches_hand_the_order_of_categories_over(kind):
    months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug"]
    month, shop = np.repeat(months, 30), np.tile([*"abcdef"], 40)
    if kind == "pandas":
        time = pd.Categorical(month, categories=months, ordered=True)
        eras = pd.DataFrame({"month": time, "shop": shop})
    else:
        time = pl.Series(month, dtype=pl.Enum(months))
        eras = pl.DataFrame({"month": time, "shop": shop})
    X = np.random.default_rng(0).normal(size=(240, 2))
    y, cv = X[:, 0], EraSplit(1, 2, test_size=2, era_order=("ordered", "unordered"))
    plain = Regressor(max_iter=2)
    search = EraSearchCV(plain, {"max_depth": [2]}, cv=cv, era_order="unordered")
    average = AutoEraRegressor(plain, members=[], cv=cv, era_order="unordered")
    for model in (search, average):
        tested = model.fit(X, y, eras=eras).era_labels_
        assert {str(label[0]) for label in tested} == {"Jul", "Aug"}


def test_no_gap_may_be_a_duration_and_lazy_frames_are_refused():
    weeks, X = pd.date_range("2024-01-01", periods=8, freq="7D"), np.zeros((8, 1))
    with_none = list(EraSplit(2, gap="0D", purge="0D").split(X, groups=weeks))
    assert_equal(with_none, [*EraSplit(2).split(X, groups=weeks)])
    lazy = pl.DataFrame({"a": weeks, "b": [*"abababab"]}).lazy()
    with pytest.raises(ValueError, match=r"groups is a lazy frame.*collect"):
        list(EraSplit(2).split(X, groups=lazy))
