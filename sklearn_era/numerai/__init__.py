"""Take part in Numerai's tournament, by the command ``sklearn-era numerai``.

These are the modules, in the order of the work:

- ``config``: ``numerai.toml``;
- ``http``, ``api``: the client of Numerai's API;
- ``download``, ``data``: Numerai's files, their eras, and files of predictions;
- ``out_of_date``: differences by which a fit has to be trained again;
- ``training``, ``store``: fits, blends of fits, and live predictions; ``submit``: the
  upload;
- ``validation``, ``score_table``, ``report``: scores on unseen eras, and live scores;
  they use ``metrics``, which group rows with ``rows_by_era``;
- ``export``, ``export_check``: a model as a file that Numerai runs;
- ``steps``: each of these steps for one model, with messages to a ``reporter``;
  ``pipeline``: all steps of a round for all models.

All modules share ``errors`` and ``files`` (folders, records, locks). Install
``sklearn-era[numerai]``.
"""

from typing import TYPE_CHECKING, Any

from sklearn_era._warnings import renamed

if TYPE_CHECKING:
    from sklearn_era.numerai.export import write_portable_model
    from sklearn_era.numerai.export_check import check_portable_model

__all__ = ["check_portable_model", "write_portable_model"]

_raise_for = renamed(__name__, {"train": "the command sklearn-era numerai train"})


def __getattr__(name: str) -> Any:
    """Import a public function when it is first used, and return it. An earlier import
    would need the extra's packages, without which some modules work.
    """
    if name not in __all__:
        _raise_for(name)
    from sklearn_era.numerai import export

    return getattr(export, name)
