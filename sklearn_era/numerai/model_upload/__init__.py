"""A model as a file that Numerai runs, and the run of it by their rules.

- ``portable``: a model as a pickle, which ``pickle_calls`` writes;
- ``portable_check``: runs it as Numerai does, by ``portable_runner`` in a process.
"""

from sklearn_era.numerai.model_upload.portable import (
    PortableModel,
    write_portable_model,
)
from sklearn_era.numerai.model_upload.portable_check import (
    PortableCheck,
    check_portable_model,
)

__all__ = [
    "PortableCheck",
    "PortableModel",
    "check_portable_model",
    "write_portable_model",
]
