"""Numerai's tournament, from download to record: ``sklearn-era numerai``.

Modules in the order of the work:

- ``config``: ``numerai.toml``;
- ``http``, ``api``: the client of Numerai's API;
- ``download``, ``data``: Numerai's files, their eras, and files of predictions;
- ``out_of_date``: differences by which a fit has to be trained again;
- ``training``, ``store``: fits, blends of them, and live predictions; ``submit``: the
  upload;
- ``validation``, ``score_table``, ``report``, with ``metrics`` over ``rows_by_era``:
  scores on unseen eras, and live scores;
- ``export``, ``export_check``: a model as a file that Numerai runs;
- ``steps``: these steps for one model, which a ``reporter`` shows; ``pipeline``: all
  steps of a round.

``errors`` and ``files`` (folders, records, locks) are shared. Install
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
    """Import and return a public function, only here: some modules need no extra."""
    if name not in __all__:
        _raise_for(name)
    from sklearn_era.numerai import export

    return getattr(export, name)
