"""``numerai.toml``: all that a model is made and submitted by.

- ``sections``: the tables of the file; ``loading``: reads them, ``toml_text`` writes;
- ``messages``: what is wrong with a file, in a sentence.
"""

from sklearn_era.numerai.config.loading import (
    Config,
    Loaded,
    as_toml,
    load_config,
    write_config,
)
from sklearn_era.numerai.config.sections import DataSection

__all__ = [
    "Config",
    "DataSection",
    "Loaded",
    "as_toml",
    "load_config",
    "write_config",
]
