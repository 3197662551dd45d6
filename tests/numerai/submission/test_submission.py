"""The file that is submitted: ranks, rules, and bytes."""

import hashlib
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numerai_tools import submissions as tools

from sklearn_era.numerai.errors import DataError, SubmissionError
from sklearn_era.numerai.metrics import rank_normalize
from sklearn_era.numerai.submission.submission_file import (
    check_submission,
    make_submission,
    read_submission,
    write_submission,
)

IDS = [f"n{number:015x}" for number in range(8)]
VALUES = np.linspace(0.1, 0.9, 8)


@pytest.fixture
def frame():
    return make_submission(IDS, VALUES)


def refusal(frame, ids=IDS):
    with pytest.raises(SubmissionError) as caught:
        check_submission(frame, ids)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


def test_a_good_submission_passes_with_no_word(frame):
    shuffled = frame.sample(frac=1, random_state=0)
    renamed = frame.rename(columns={"prediction": "probability"})
    for good in (frame, shuffled, renamed):
        assert check_submission(good, IDS) is None
    for edge in (0.0, 1.0, 1 + 1e-9, -1e-9):
        frame.loc[3, "prediction"] = edge
        check_submission(frame, IDS)


def first(**values):
    """A change of the id or the prediction in the first row."""
    ((column, value),) = values.items()
    return lambda frame: frame.assign(**{column: [value, *frame[column][1:]]})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: f.set_index("id"), "these are 'prediction'. The ids are its index"),
        (lambda f: f[["prediction", "id"]], "these are 'prediction', 'id'"),
        (lambda f: f.assign(era="X"), "these are 'id', 'prediction', 'era'"),
        (lambda f: f.rename(columns={"id": "ID"}), "these are 'ID', 'prediction'"),
        (lambda f: f[:-2], f"2 of 8 live ids have no prediction (first: {IDS[6]}"),
        (lambda f: pd.concat([f, f[:1]]), "1 ids are there more than once (first: n0"),
        (first(id=None), "1 rows have no id"),
        (first(id=""), "1 rows have no id"),
        (first(prediction=np.nan), "1 of 8 predictions are not"),
        (first(prediction=np.inf), "not finite (first: n0000"),
        (first(prediction=1.5), "not between 0 and 1 (first: 1.5"),
        (first(prediction=-2.0), "not between 0 and 1"),
        (lambda f: f.assign(prediction=0.5), "All predictions are equal (0.5); the mo"),
        (lambda f: f.assign(prediction=0.5 + VALUES * 1e-12), "numerai-tools refuses"),
        (lambda f: f.assign(prediction="high"), "'prediction' is not of numbers"),
        (lambda f: f[:0], "8 of 8 live ids have no prediction"),
    ],
)
def test_a_broken_rule_is_named(frame, change, said):
    broken = change(frame)
    assert said in refusal(broken)
    with pytest.raises((AssertionError, TypeError)):
        tools.validate_submission_numerai(pd.Series(IDS), broken)


def test_other_ids_are_warned_of(frame):
    with pytest.warns(UserWarning, match="3 ids of the submission are not live"):
        check_submission(frame, IDS[3:])
    assert "live_ids is empty" in refusal(frame, [])


@given(
    values=npst.arrays(
        np.float64, 8, elements=st.floats(-0.5, 1.5, width=32) | st.just(np.nan)
    ),
    ids=st.lists(st.sampled_from([*IDS, "other"]), min_size=8, max_size=8)
    | st.just(IDS),
)
@pytest.mark.filterwarnings("ignore:.*ids of the submission are not live")
def test_what_passes_here_passes_at_numerai(values, ids):
    frame = pd.DataFrame({"id": ids, "prediction": values})
    refused = nullcontext()
    try:
        check_submission(frame, IDS)
    except SubmissionError:
        refused = pytest.raises(AssertionError)
    with refused:
        tools.validate_submission_numerai(pd.Series(IDS), frame)


NUMBERS = st.floats(-1e6, 1e6)


@given(npst.arrays(float, st.integers(2, 30), elements=NUMBERS, unique=True))
def test_ranks_of_any_predictions_can_be_submitted(values):
    ids = [f"n{number:015x}" for number in range(len(values))]
    check_submission(make_submission(ids, rank_normalize(values)), ids)


def test_a_submission_is_made_by_position_or_by_index(frame):
    series = pd.Series(VALUES, index=pd.Index(IDS, name="id"))
    pd.testing.assert_frame_equal(make_submission(series.index, series), frame)
    pd.testing.assert_frame_equal(make_submission(IDS, VALUES.tolist()), frame)
    pd.testing.assert_frame_equal(make_submission(IDS, pd.Series(VALUES)), frame)
    with pytest.raises(SubmissionError, match="index of the predictions is not ids: 8"):
        make_submission(IDS[1:] + IDS[:1], series)
    with pytest.raises(SubmissionError, match="8 ids, and predictions of shape"):
        make_submission(IDS, VALUES[1:])


@given(values=npst.arrays(np.float64, 8, elements=st.floats(0, 1)))
def test_a_file_holds_every_digit(values, tmp_path_factory):
    path = tmp_path_factory.mktemp("csv") / "predictions.csv"
    sha256 = write_submission(make_submission(IDS, values), path)
    assert sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    read = read_submission(path)
    assert list(read.columns) == ["id", "prediction"]
    assert read["id"].tolist() == IDS
    assert np.array_equal(read["prediction"].to_numpy(dtype=float), values)


def test_a_file_has_a_header_and_no_index_and_ids_are_texts(tmp_path):
    ids, path = ["NA", "001", "1e5", "None"], tmp_path / "new" / "predictions.csv"
    write_submission(make_submission(ids, [0.1, 0.2, 0.3, 0.4]), path)
    assert path.read_bytes().startswith(b"id,prediction\nNA,0.1\n001,0.2\n")
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    frame = read_submission(path)
    assert frame["id"].tolist() == ids
    check_submission(frame, ids)


def test_a_file_with_a_gap_or_none_at_all_is_refused(tmp_path):
    path = tmp_path / "predictions.csv"
    path.write_text("id,prediction\na,\nb,0.5\nc,0.7\n")
    assert "not finite (first: a)" in refusal(read_submission(path), ["a", "b", "c"])
    for content in (b"", b"id,prediction\n\xff,0.5\n", b'id,prediction\n"a,0.5\n'):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"predictions\.csv cannot be read as CSV"):
            read_submission(path)
    with pytest.raises(DataError, match="No such file"):
        read_submission(tmp_path / "none.csv")
