"""From the live file to a confirmed submission."""

from sklearn_era.numerai.submission.prediction import predict_live
from sklearn_era.numerai.submission.record import SubmissionRecord
from sklearn_era.numerai.submission.submission_file import (
    check_submission,
    make_submission,
    read_submission,
    write_submission,
)
from sklearn_era.numerai.submission.upload import submit

__all__ = [
    "SubmissionRecord",
    "check_submission",
    "make_submission",
    "predict_live",
    "read_submission",
    "submit",
    "write_submission",
]
