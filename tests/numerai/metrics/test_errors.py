"""What Numerai's scores refuse, in a sentence that names it."""

import numpy as np
import pandas as pd
import pytest

from sklearn_era.numerai.metrics import (
    churn,
    correlation_contribution,
    feature_exposures,
    feature_neutral_corr,
    gaussianize,
    match_ids,
    numerai_corr,
    rank_normalize,
)
from sklearn_era.numerai.metrics.neutralization import neutralize

X = np.array([3.0, 1.0, 2.0, 4.0, 6.0, 5.0])
Y = np.array([0.0, 0.5, 1.0, 1.0, 0.5, 0.0])
ERAS = np.array(["a", "a", "a", "b", "b", "b"])
NAN_X = np.where(np.arange(6) == 4, np.nan, X)
INF_Y = np.where(np.arange(6) == 1, np.inf, Y)
NAN_Y = np.where(ERAS == "b", np.nan, Y)
F = np.array([[0, 1], [1, 0], [2, 2], [0, 0], [1, 3], [2, 1]])
NAN_F = np.where(F == 3, np.nan, F)
SERIES = pd.Series(X)

BAD = {
    "NaN predictions": (
        lambda: numerai_corr(NAN_X, Y, ERAS),
        r"^predictions is NaN or infinite in 1 of 6 rows \(1 of era b\): mend",
    ),
    "NaN predictions of one era": (
        lambda: churn(X, NAN_X),
        r"^others is NaN or infinite in 1 of 6 rows: mend",
    ),
    "NaN ranks": (
        lambda: rank_normalize(NAN_X, ERAS),
        r"^x is NaN or infinite in 1 of 6 rows \(1 of era b\)",
    ),
    "infinite targets": (
        lambda: numerai_corr(X, INF_Y, ERAS),
        r"^targets is infinite in 1 of 6 rows \(1 of era a\)",
    ),
    "infinite meta model": (
        lambda: correlation_contribution(X, INF_Y, Y),
        r"^meta_model is infinite in 1 of 6 rows: mend",
    ),
    "era without targets": (
        lambda: numerai_corr(X, NAN_Y, ERAS),
        r"^targets: 3 of 3 rows of era b \(100\.0%\) are NaN, and at most 20% may be\.",
    ),
    "all eras without targets": (
        lambda: feature_neutral_corr(X, np.full(6, np.nan), F, ERAS),
        r"^targets: 3 of 3 rows of era a .* may be; 1 more of 2 eras lack too many\.",
    ),
    "era without meta model": (
        lambda: correlation_contribution(X, NAN_Y, Y, ERAS),
        r"^meta_model and targets: 3 of 3 rows of era b",
    ),
    "lengths": (
        lambda: numerai_corr(X, Y[:5], ERAS),
        r"^targets has 5 rows, but predictions has 6; pass",
    ),
    "length of features": (
        lambda: feature_exposures(X, F[:5]),
        r"^features has 5 rows, but predictions has 6; pass",
    ),
    "length of eras": (
        lambda: numerai_corr(X, Y, ERAS[:5]),
        r"^eras has 5 labels, but predictions has 6 rows",
    ),
    "two columns": (
        lambda: numerai_corr(F, Y),
        r"^predictions must be one-dimensional.* shape \(6, 2\)",
    ),
    "one column of features": (
        lambda: feature_exposures(X, F[:, 0]),
        r"^features must be two-dimensional.* shape \(6,\)",
    ),
    "no features": (
        lambda: neutralize(X, F[:, :0]),
        r"^neutralizers must be two-dimensional, with one column at least",
    ),
    "texts": (
        lambda: numerai_corr(ERAS, Y),
        r"^predictions must be numbers, .* got dtype <U1",
    ),
    "masked": (
        lambda: numerai_corr(np.ma.masked_equal(X, 3.0), Y),
        r"^predictions is masked: set",
    ),
    "no rows": (lambda: numerai_corr([], []), r"^predictions has no rows"),
    "share": (
        lambda: numerai_corr(X, Y, max_missing_share=1),
        r"^max_missing_share must be at least 0 and less than 1; got 1\.",
    ),
    "proportion": (
        lambda: neutralize(X, F, 1.5),
        r"^proportion must be between 0 and 1; got 1\.5",
    ),
    "NaN features": (
        lambda: feature_neutral_corr(X, Y, NAN_F, ERAS, feature_names=["f", "g"]),
        r"^features is NaN or infinite in 1 of 2 columns in rows of era b: 'g'\. Fill",
    ),
    "NaN neutralizers in a frame": (
        lambda: neutralize(X, pd.DataFrame(NAN_F, columns=["f", "g"])),
        r"^neutralizers is NaN or infinite in 1 of 2 columns in rows: 'g'\. Fill",
    ),
    "names": (
        lambda: neutralize(X, F, neutralizer_names=["f"]),
        r"^neutralizer_names has 1 names, but there are 2 columns",
    ),
    "constant predictions": (
        lambda: neutralize(np.where(ERAS == "b", 0.5, X), F[:, :1], eras=ERAS),
        r"^predictions of era b are all equal \(0\.5\): there is nothing",
    ),
    "ranks of 0": (
        lambda: gaussianize([0.5, 0.0]),
        r"^ranks must be strictly between 0 and 1.* 1 are not, the first 0\.0 at row 1",
    ),
    "other index": (
        lambda: numerai_corr(SERIES, SERIES[::-1]),
        r"^targets and predictions have different indexes.*match_ids",
    ),
    "duplicate ids": (
        lambda: match_ids(SERIES, pd.concat([SERIES, SERIES[:1]])),
        r"^targets has 1 duplicate ids, the first 0: an id is one row",
    ),
    "missing id": (
        lambda: match_ids(pd.Series([1.0, 2.0], ["n1", None]), SERIES),
        r"^predictions has a missing id",
    ),
    "ids without an era": (
        lambda: match_ids(SERIES, SERIES, eras=pd.Series(ERAS)[:4]),
        r"^eras lacks 2 of 6 ids of predictions, the first 4: give",
    ),
    "ids of another era": (
        lambda: match_ids(SERIES[:3], SERIES, eras=pd.Series(ERAS)),
        r"^targets: 0 of 3 ids of era b \(0\.0%\) match predictions, and at least 80%",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_named(what):
    call, message = BAD[what]
    with pytest.raises(ValueError, match=message):
        call()


def test_ids_are_of_series():
    with pytest.raises(TypeError, match=r"^targets must be a pandas Series .*ndarray"):
        match_ids(SERIES, Y)
