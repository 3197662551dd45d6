"""Numerai's API: the real client of it, with its failures told apart."""

from sklearn_era.numerai.api.client import NumeraiClient, Round

__all__ = [
    "NumeraiClient",
    "Round",
]
