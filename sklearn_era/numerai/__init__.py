"""Numerai's tournament, from download to record: ``sklearn-era numerai``.

A module is a step, in the order of the work:

- ``config``, with ``numerai.toml``;
- ``api``, by ``http``: Numerai's API;
- ``download``, ``data``: the files of the data, and their eras;
- ``training``, with ``averages``, and ``store``: fits; ``blend``: several fits as one
  model, and what it predicts for the live era;
- ``submission``, ``submit``: the CSV of it, the upload;
- ``validation``, ``score_table``, ``report``, by ``metrics`` of ``era_rows``, and
  ``scores`` at Numerai: how models do;
- ``export``, ``export_check``, ``pickle_upload``: a model as a file that Numerai runs;
- ``steps``: each of these for one model; ``pipeline``: all of it, as far as it is not
  done; ``demo``: files made up like Numerai's.

``errors`` and ``files``, where the folders are, too, are what they share. Install
``sklearn-era[numerai]``.
"""

from typing import TYPE_CHECKING, Any

from sklearn_era._renamed import renamed

if TYPE_CHECKING:
    from sklearn_era.numerai.export import write_portable_model
    from sklearn_era.numerai.export_check import check_portable_model

__all__ = ["check_portable_model", "write_portable_model"]

_raise_for = renamed(__name__, {"train": "the command sklearn-era numerai train"})


def __getattr__(name: str) -> Any:
    """Import what is public when it is asked for: some modules need no extra."""
    if name not in __all__:
        _raise_for(name)
    from sklearn_era.numerai import export

    return getattr(export, name)
