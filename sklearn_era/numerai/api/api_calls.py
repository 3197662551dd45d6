"""Calls of Numerai's API: GraphQL of our own and methods of numerapi's, one transport.

numerapi's transport is not used: a call may hang, an HTTP status becomes
``KeyError: 'data'``, and making its client sets up logging for the whole program.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from sklearn_era._optional import import_optional
from sklearn_era.numerai.api.credentials import Keys
from sklearn_era.numerai.api.transport import Transport, check_api_url
from sklearn_era.numerai.errors import ApiError

# Numerai's number of the Classic tournament.
CLASSIC = 8


class ApiCalls:
    """Makes calls with a key, where one is needed.

    Parameters
    ----------
    keys : Keys
        The key, whose halves may be missing until a call needs them.
    transport : Transport
        What sends the calls.
    api_url : str or None
        The API's address; None for that of numerapi, as it is at the time of a call.
    """

    def __init__(self, keys: Keys, transport: Transport, api_url: str | None) -> None:
        self.keys = keys
        self.transport = transport
        self._api_url = None if api_url is None else check_api_url(api_url)

    def query(
        self,
        step: str,
        query: str,
        variables: Mapping[str, Any] | None = None,
        *,
        keys: bool = False,
        retry: bool = True,
    ) -> dict[str, Any]:
        """Send a query; return the data of the answer.

        Parameters
        ----------
        step : str
            What the call is for, which messages begin with.
        query : str
            GraphQL.
        variables : mapping, default=None
            Its variables.
        keys : bool, default=False
            Whether to send the key.
        retry : bool, default=True
            Whether to repeat the call after a failure that may pass.

        Raises
        ------
        HttpFailure
            If it fails.
        ConfigError
            If it needs a key and there is none.
        """
        token = self.keys.token().reveal() if keys else None
        url = self._api_url or check_api_url(_numerapi_url())
        body = {"query": query, "variables": variables}

        def attempt() -> dict[str, Any]:
            return self.transport.post_json(step, url, body, token)

        return self.transport.retry(attempt) if retry else attempt()

    def numerapi(self, step: str, method: str, *arguments: object) -> Any:
        """Call a method of numerapi's.

        Raises
        ------
        HttpFailure, ConfigError
            As for :meth:`query`.
        ApiError
            If numerapi cannot make sense of the answer.
        """

        def raw_query(
            query: str, variables: Mapping[str, Any] | None, keys: bool
        ) -> dict[str, Any]:
            return {"data": self.query(step, query, variables, keys=keys)}

        try:
            return getattr(_api_class()(raw_query), method)(*arguments)
        except (AttributeError, IndexError, KeyError, TypeError) as error:
            reason = type(error).__name__
        raise unknown_answer(step, reason)


def unknown_answer(step: str, reason: str) -> ApiError:
    """The error for data of another form than they had."""
    version = import_optional("numerapi", extra="numerai").__version__
    return ApiError(
        f"{step}: Numerai's API answers in a form that is not known here ({reason}): "
        f"update sklearn-era, and numerapi, which is {version}."
    )


def _numerapi_url() -> str:
    base = import_optional("numerapi.base_api", extra="numerai")
    return str(base.API_TOURNAMENT_URL)


@cache
def _api_class() -> Any:
    numerapi = import_optional("numerapi", extra="numerai")

    class Api(numerapi.NumerAPI):  # type: ignore[name-defined]
        """numerapi's methods, without its keys, transport, logging and progress."""

        # Instead of numerapi's, which would set up the program's logging.
        def __init__(self, raw_query: Callable[..., dict[str, Any]]) -> None:
            self._raw_query = raw_query
            self.tournament_id = CLASSIC

        def raw_query(
            self,
            query: str,
            variables: Mapping[str, Any] | None = None,
            authorization: bool = False,
            **_: object,
        ) -> dict[str, Any]:
            return self._raw_query(query, variables, authorization)

    return Api


__all__ = ["CLASSIC", "ApiCalls", "unknown_answer"]
