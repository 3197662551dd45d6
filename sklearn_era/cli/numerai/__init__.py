"""``sklearn-era numerai``: the weekly submission to Numerai's tournament."""

from sklearn_era.cli.numerai._app import numerai

__all__ = ["numerai"]
