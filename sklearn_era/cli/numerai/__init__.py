"""``sklearn-era numerai``: the weekly submission to Numerai's tournament.

``_app`` is the group of commands: ``_init``, ``_download``, ``_train``, ``_validate``,
``_predict``, ``_submit``, ``_export`` and, for all of a round, ``_weekly``, with its
``_weekly_demo``. ``_common`` is what they share.
"""

from sklearn_era.cli.numerai._app import numerai

__all__ = ["numerai"]
