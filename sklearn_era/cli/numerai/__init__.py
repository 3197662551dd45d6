"""``sklearn-era numerai``: a round of Numerai's tournament, from data to submission.

- ``_commands``: the commands; ``_common``: what they begin with;
- ``_terminal``: what they print; ``_demo``: ``run --demo``.
"""

from sklearn_era.cli.numerai._commands import numerai

__all__ = ["numerai"]
