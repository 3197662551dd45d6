"""The file that is submitted: rules, and the files of any model."""

from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numerai_tools import submissions as tools

from sklearn_era.numerai.errors import DataError, SubmissionError
from sklearn_era.numerai.submission import (
    check_submission,
    make_submission,
    parse_predictions,
    read_predictions,
    submission_csv,
)

IDS = [f"n{number:015x}" for number in range(8)]
VALUES = np.linspace(0.1, 0.9, 8)
FRAME = make_submission(pd.Series(VALUES, IDS))


def refusal(call, *arguments, error=SubmissionError):
    with pytest.raises(error) as caught:
        call(*arguments)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


def test_a_good_submission_passes_with_no_word():
    for good in (FRAME, FRAME.sample(frac=1, random_state=0)):
        assert check_submission(good, IDS) is None
    for edge in (0.0, 1.0, 1 + 1e-9, -1e-9):
        check_submission(FRAME.assign(prediction=[edge, *VALUES[1:]]), IDS)


def first(**values):
    """A change of the id or the prediction in the first row."""
    ((column, value),) = values.items()
    return lambda frame: frame.assign(**{column: [value, *frame[column][1:]]})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: f[:-2], f"file of this round. The first is {IDS[6]!r}"),
        (lambda f: pd.concat([f, f[:1]]), "1 of 9 ids are duplicates. The"),
        (first(id=None), "1 of 8 rows have no id. The first is"),
        (first(id=""), "1 of 8 rows have no id"),
        (first(prediction=np.nan), "1 of 8 predictions are not"),
        (first(prediction=np.inf), "not finite. The first is 'n0000"),
        (first(prediction=1.5), "1 of 8 predictions are not between 0 and 1 (they"),
        (
            first(prediction=-2.0),
            "rank them, for example with predictions.rank(pct=True)",
        ),
        (lambda f: f.assign(prediction=0.5), "8 of 8 predictions are equal (0.5): the"),
        (lambda f: f.assign(prediction=0.5 + VALUES * 1e-12), "tools rejects it: inv"),
        (lambda f: f[:0], "8 of 8 live ids have no prediction"),
    ],
)
def test_a_broken_rule_is_named(change, said):
    broken = change(FRAME)
    assert said in refusal(check_submission, broken, IDS)
    with pytest.raises((AssertionError, TypeError)):
        tools.validate_submission_numerai(pd.Series(IDS), broken)


def test_other_ids_are_warned_of():
    with pytest.warns(UserWarning, match="3 ids of the submission are not live"):
        check_submission(FRAME, IDS[3:])


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


@given(values=npst.arrays(np.float64, 8, elements=st.floats(0, 1)))
def test_a_file_holds_every_digit(values, tmp_path_factory):
    path = tmp_path_factory.mktemp("csv") / "predictions.csv"
    frame = FRAME.assign(prediction=values)
    path.write_bytes(submission_csv(frame))
    read = read_predictions(path)
    pd.testing.assert_frame_equal(read, frame, check_exact=True, check_dtype=False)
    # Its bytes are those that are sent.
    assert submission_csv(read) == path.read_bytes()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize(
    "change",
    [
        lambda f: f,
        lambda f: f.rename(columns={"prediction": "probability"}),
        lambda f: f.set_index("id"),
        lambda f: f.set_index("id").rename_axis(None),
        lambda f: f.assign(era="X")[["era", "prediction", "id"]],
    ],
    ids=["usual", "probability", "index", "unnamed", "others"],
)
def test_the_file_of_any_model_is_read(change, suffix, tmp_path):
    path = tmp_path / f"mine.{suffix}"
    frame = change(FRAME)
    if suffix == "csv":
        frame.to_csv(path, index=not isinstance(frame.index, pd.RangeIndex))
    else:
        frame.to_parquet(path)
    pd.testing.assert_frame_equal(read_predictions(path), FRAME, check_dtype=False)


def test_ids_are_texts_whatever_they_say():
    content = b"id,prediction\nNA,0.1\n001,0.2\n1e5,0.3\nNone,nan\n"
    frame = parse_predictions(content, "mine.csv")
    assert frame["id"].tolist() == ["NA", "001", "1e5", "None"]
    assert "not finite. The first is 'None'" in refusal(
        check_submission, frame, frame["id"]
    )


@pytest.mark.parametrize(
    ("content", "error", "said"),
    [
        (b"", DataError, "mine.csv cannot be read as CSV: No columns to parse"),
        (b"id,prediction\n\xff,0.5\n", DataError, "read as CSV: 'utf-8' codec"),
        (b'id,prediction\n"a,0.5\n', DataError, "cannot be read as CSV"),
        (b"PAR1 and so on", DataError, "magic bytes not found"),
        (b"ID,prediction\na,0.5\n", SubmissionError, "column 'id', but has 'ID', 'p"),
        (b"id;prediction\na;0.5\n", SubmissionError, "but has 'id;prediction'"),
        (b"id,x,y\na,1,2\n", SubmissionError, "on' or 'probability', but has 'x"),
        (b"id,prediction,probability\na,1,2\n", SubmissionError, "but has both"),
        (b"id,prediction\na,high\n", SubmissionError, "'prediction' is not numeric"),
        (None, DataError, "cannot be read: No such file"),
    ],
)
def test_a_damaged_file_is_told_in_a_sentence(content, error, said, tmp_path):
    path = tmp_path / "mine.csv"
    if content is not None:
        path.write_bytes(content)
    message = refusal(read_predictions, path, error=error)
    assert said in message
    assert str(path) in message


def test_a_parquet_file_without_its_magic_bytes_is_called_damaged(tmp_path):
    path = tmp_path / "mine.parquet"
    FRAME.to_parquet(path)
    content = path.read_bytes()
    for broken in (b"XXXX" + content[4:], content[:-4] + b"XXXX", b"\xff" * 9, b""):
        path.write_bytes(broken)
        message = refusal(read_predictions, path, error=DataError)
        assert message.startswith(f"{path} is damaged (Parquet ")
