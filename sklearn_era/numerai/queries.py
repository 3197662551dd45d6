"""What is asked of Numerai's API, and the shapes of its answers.

Names and types are those of the API's schema, or the ones that numerapi sends.
"""

import re
from datetime import UTC, datetime
from types import GenericAlias
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, BeforeValidator, TypeAdapter, create_model

CLASSIC = 8  # Numerai's number of the tournament
SOURCE = "sklearn-era"


class Listed(NamedTuple):
    """A submission as Numerai lists it, with what it says of its fate, if anything."""

    id: str
    filename: str | None = None
    inserted: datetime | None = None
    round_number: int | None = None
    status: str | None = None


class Image(NamedTuple):
    """What runs an uploaded model: a container image, or a version of the data."""

    id: str
    name: str
    default: bool | None = None


class Query(NamedTuple):
    """A call of one field: what for, with which arguments, the shape of the answer.

    A shape is a type, a list of one shape, or a dictionary of shapes by field: both
    what is asked for and what an answer is checked against.
    """

    step: str
    call: str
    shape: Any
    keys: bool = True
    kind: str = "query"

    @property
    def root(self) -> str:
        return self.call.partition("(")[0]

    def body(self, *given: Any) -> dict[str, Any]:
        """What is sent, with values for all arguments but the tournament."""
        declared = self.call.removeprefix(self.root)
        names, values = re.findall(r"\w+(?=:)", declared), iter(given)
        head = re.sub(r"(?=\b\w+:)", "$", declared)
        passed = re.sub(r"(\w+): [\w!]+", r"\1: $\1", declared)
        asked = f"{self.kind}{head} {{ {self.root}{passed}{_fields(self.shape)} }}"
        variables = {x: CLASSIC if x == "tournament" else next(values) for x in names}
        return {"query": asked, "variables": variables}

    def checked(self, answer: Any) -> Any:
        """An answer, if it has the shape: what are fields there are attributes here."""
        return TypeAdapter(_type(self.shape)).validate_python(answer)


def _fields(shape: Any) -> str:
    """The part of a query that asks for a shape."""
    shape = shape[0] if isinstance(shape, list) else shape
    if not isinstance(shape, dict):
        return ""
    return f" {{ {' '.join(name + _fields(kind) for name, kind in shape.items())} }}"


def _type(shape: Any) -> Any:
    """The type of a shape, for pydantic."""
    if isinstance(shape, list):
        return Annotated[GenericAlias(list, _type(shape[0])), _NO_NULLS]
    if not isinstance(shape, dict):
        return shape
    fields: Any = {name: (_type(kind), ...) for name, kind in shape.items()}
    return create_model("Answer", **fields)


def _without_nulls(found: Any) -> Any:
    """A list of GraphQL, which may be null, and hold some."""
    found = [] if found is None else found
    return [x for x in found if x is not None] if isinstance(found, list) else found


def _in_utc(time: datetime | None) -> datetime | None:
    """A time of the API, which is in UTC where it does not say."""
    return time if time is None or time.tzinfo else time.replace(tzinfo=UTC)


_NO_NULLS = BeforeValidator(_without_nulls)
_TIME = Annotated[datetime | None, AfterValidator(_in_utc)]
_OPEN = False  # to everybody, without a key
_STR, _INT = str | None, int | None
_CREATED, _GRANT = {"id": str}, {"filename": str, "url": str}
_IMAGES = [{"id": str, "name": str, "default": bool | None}]
_MODEL = {"id": str, "name": str, "tournament": _INT}
_ROUND = {"number": int, "openTime": _TIME, "closeStakingTime": _TIME}
_SENT = {"id": str, "filename": _STR, "insertedAt": _TIME}
_FATE = {"id": _STR, "filename": _STR, "roundNumber": _INT, "status": _STR}
_SCORE = {"roundNumber": int, "displayName": str, "value": float | None, "day": _INT}

MODELS = Query("Listing the models", "account", {"models": [_MODEL]})
LATEST = Query(
    "Listing the latest submissions",
    "account",
    {"models": [{"id": str, "latestSubmissions": [_FATE]}]},
)
DATASETS = Query("Listing the data", "listDatasets(tournament: Int)", [str], _OPEN)
DATASET = Query(
    "Downloading", "dataset(filename: String! round: Int tournament: Int)", _STR, _OPEN
)
ROUNDS = Query(
    "Looking up the rounds", "rounds(tournament: Int! number: Int)", [_ROUND], _OPEN
)
SUBMISSIONS = Query("Listing the submissions", "submissions(modelId: String)", [_SENT])
DOWNLOAD_AUTH = Query(
    "Downloading the submission", "submissionDownloadAuth(id: String)", _GRANT
)
UPLOAD_AUTH = Query(
    "Uploading",
    "submission_upload_auth(filename: String! tournament: Int! modelId: String)",
    _GRANT,
)
CREATE = Query(
    "Making the submission",
    "create_submission(filename: String! tournament: Int! modelId: String "
    "triggerId: String source: String)",
    _CREATED,
    kind="mutation",
)
SCORES = Query(
    "Looking up the scores",
    "submissionScores(modelId: ID! tournament: Int lastNRounds: Int)",
    [{**_SCORE, "resolved": bool | None}],
    _OPEN,
)
IMAGES = Query("Listing the container images", "computePickleDockerImages", _IMAGES)
DATA_VERSIONS = Query(
    "Listing the versions of the data", "computePickleDataVersions", _IMAGES
)
PICKLE_AUTH = Query(
    "Uploading the model",
    "computePickleUploadAuth(filename: String modelId: ID)",
    _GRANT,
)
CREATE_PICKLE = Query(
    "Uploading the model",
    "createComputePickleUpload(filename: String! tournament: Int! modelId: ID "
    "dataVersionId: ID dockerImageId: ID source: String)",
    _CREATED,
    kind="mutation",
)
ASSIGN_PICKLE = Query(
    "Assigning the uploaded model",
    "assignPickleToModel(pickleId: ID modelId: String)",
    Any,
    kind="mutation",
)
PICKLES = Query(
    "Looking up the uploaded model",
    "computePickles(id: ID)",
    [{"validationStatus": _STR, "triggers": [{"statuses": [{"description": _STR}]}]}],
)
