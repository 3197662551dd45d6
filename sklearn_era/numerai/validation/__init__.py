"""How a model does in eras it has not seen, and the report of it.

- ``eras``: those that are scored; ``scoring``: how the model does in them;
- ``report``: the numbers, with ``report_figures``; ``training_sample``: rows that show
  how far eras agree on splits.
"""

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
