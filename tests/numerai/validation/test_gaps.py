"""Validation where an era lacks targets, or the other model, in some of its rows."""

import numpy as np
import pytest
from scipy.stats import norm, rankdata

pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

from helpers.numerai.demo import SmallDemo, small_demo  # noqa: E402
from sklearn_era.numerai.errors import DataError  # noqa: E402
from sklearn_era.numerai.validation import validate  # noqa: E402

META_MODEL = "numerai_meta_model"


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> SmallDemo:
    return small_demo(tmp_path_factory.mktemp("demo"))


def write_with(demo, folder, name, column, value, n_rows):
    """A file of the demo with some numbers replaced, so many rows of each era."""
    rng = np.random.default_rng(len(column))  # other rows of each column
    frame = demo.frame(name)
    for era, n in n_rows.items():
        rows = frame.index[frame["era"] == era]
        frame.loc[rng.permutation(rows)[:n], column] = value
    path = folder / f"{name}_2.parquet"
    frame.to_parquet(path)
    return path


def run(demo, **changes):
    parameters = {
        "validation": demo.path("validation"),
        "features": demo.features,
        "target": demo.data.target,
        "after_era": demo.record.last_era,
        "purge": demo.record.purge,
    }
    return validate(demo.estimator, **(parameters | changes))


def scores_of_an_era(scoring, prediction, meta, targets, features):
    """Those of numerai-tools, but for those that it refuses for too few rows."""
    scores = {}
    for metric, function, *others in (
        ("corr", scoring.numerai_corr, targets),
        ("mmc", scoring.correlation_contribution, meta, targets),
        ("fnc", scoring.feature_neutral_corr, features, targets),
    ):
        try:
            scores[metric] = float(np.ravel(function(prediction, *others))[0])
        except AssertionError:
            continue
    return scores


@pytest.mark.filterwarnings("ignore")  # of numerai-tools' own
@pytest.mark.parametrize("proportion", [0.0, 0.5])
def test_rows_without_a_target_count_as_in_numerai_tools(demo, tmp_path, proportion):
    """In ranks and regressions they do, and a fifth of the rows may lack something."""
    scoring = pytest.importorskip("numerai_tools.scoring")
    few, target = demo.features[:5], demo.data.target
    n_targets = {"0040": 9, "0041": 12, "0042": 3, "0043": 13}
    n_meta = {"0040": 9, "0042": 3, "0044": 12, "0045": 13}
    path = write_with(demo, tmp_path, "validation", target, np.nan, n_targets)
    meta_path = write_with(demo, tmp_path, "meta_model", META_MODEL, np.nan, n_meta)
    result = run(
        demo,
        validation=path,
        meta_model=meta_path,
        fnc_features=few,
        neutralize_proportion=proportion,
        neutralize_features=few[:2],
    )

    frame, meta = pd.read_parquet(path), pd.read_parquet(meta_path)[META_MODEL]
    frame = frame[(frame["era"] >= "0039") & (frame["era"] <= "0050")]
    expected: dict = {"corr": {}, "mmc": {}, "fnc": {}}
    n_rows: dict = {}
    for era, unsorted in frame.groupby("era"):
        one = unsorted.sort_index()  # as numerai-tools requires
        targets = one[target].astype("float64").rename("target")
        predicted = demo.estimator.predict(one[demo.features].to_numpy())
        ranks = norm.ppf((rankdata(predicted) - 0.5) / len(one))
        submitted = pd.DataFrame({"prediction": ranks}, index=one.index)
        if proportion:
            neutralizers = one[few[:2]].astype("float64")
            submitted = scoring.neutralize(submitted, neutralizers, proportion)
        other = meta.reindex(one.index)
        features = one[few].astype("float64")
        scores = scores_of_an_era(scoring, submitted, other, targets, features)
        for metric, score in scores.items():
            expected[metric][era] = score
        n_rows[era] = int((other.notna() & targets.notna()).sum())

    assert sorted(n_rows.keys() - expected["corr"].keys()) == ["0043"]
    assert sorted(n_rows.keys() - expected["mmc"].keys()) == ["0040", "0043", "0045"]
    for metric, by_era in expected.items():
        found = result.scores[metric]
        assert found.eras.tolist() == list(by_era)
        assert found.scores == pytest.approx(list(by_era.values()), abs=1e-9)
    mmc, corr = result.scores["mmc"], result.scores["corr"]
    assert mmc.n_samples.tolist() == [n_rows[era] for era in mmc.eras]
    assert corr.n_samples.tolist() == [60 - n_targets.get(x, 0) for x in corr.eras]
    assert result.n_rows == corr.n_samples.sum()


def test_infinite_numbers_are_refused_with_their_file(demo, tmp_path):
    spoiled = {"0045": 7}
    target = demo.data.target
    path = write_with(demo, tmp_path, "validation", target, np.inf, spoiled)
    with pytest.raises(DataError, match=r"validation_2\..* is infinite in 7 rows"):
        run(demo, validation=path)
    path = write_with(demo, tmp_path, "meta_model", META_MODEL, np.inf, spoiled)
    with pytest.raises(DataError, match=r"meta_model_2\..* is infinite in era 0045"):
        run(demo, meta_model=path)
