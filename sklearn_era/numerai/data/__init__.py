"""Numerai's files: downloaded, checked, read.

- ``download``: fetches what is missing; ``locking``: one run at a time;
- ``dataset``: what the files hold, and whether they are whole;
- ``feature_blocks``: their features, an era at a time.
"""

from sklearn_era.numerai.data.dataset import (
    FeatureMetadata,
    ParquetSummary,
    check_parquet,
    era_number,
    read_columns,
    read_feature_metadata,
    read_ids,
)

__all__ = [
    "FeatureMetadata",
    "ParquetSummary",
    "check_parquet",
    "era_number",
    "read_columns",
    "read_feature_metadata",
    "read_ids",
]
