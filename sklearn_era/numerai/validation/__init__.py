"""How a model does in eras it has not seen, and the report of it."""

from sklearn_era.numerai.validation.report import (
    ReportFiles,
    TrainingSample,
    write_report,
)
from sklearn_era.numerai.validation.scoring import ValidationResult, validate
from sklearn_era.numerai.validation.training_sample import read_training_sample

__all__ = [
    "ReportFiles",
    "TrainingSample",
    "ValidationResult",
    "read_training_sample",
    "validate",
    "write_report",
]
