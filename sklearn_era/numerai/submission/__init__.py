"""From the live file to a confirmed submission.

- ``prediction``: of the live era; ``submission_file``: the file that Numerai takes;
- ``upload``: to confirmed; ``record``: what was sent, and how far it came.
"""

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
