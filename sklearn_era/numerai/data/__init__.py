"""Numerai's files: downloaded, checked, read."""

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
