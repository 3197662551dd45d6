"""Numerai's API: the real client of it, with its failures told apart.

- ``client``: a method for each thing that a week's work asks for;
- ``api_calls``, ``submission_calls``: what they send; ``fetching``: files of the data;
- ``transport``: HTTP, bounded and told apart; ``credentials``: the API key.
"""

from sklearn_era.numerai.api.client import NumeraiClient, Round

__all__ = [
    "NumeraiClient",
    "Round",
]
