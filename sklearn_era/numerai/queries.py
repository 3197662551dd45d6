"""What is asked of Numerai's API, and the shapes of its answers.

Names and types are those of the API's schema, or the ones that numerapi sends.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from types import GenericAlias
from typing import Annotated, Any, NamedTuple

import pydantic

from sklearn_era.numerai.http import HttpFailure

CLASSIC = 8  # Numerai's number of the tournament
_SAME_FOR_ALL = {"tournament": CLASSIC, "source": "sklearn-era"}


class Listed(NamedTuple):
    """A submission as Numerai lists it, with what it says of its fate, if anything."""

    id: str
    filename: str | None = None
    inserted: datetime | None = None
    round_number: int | None = None
    status: str | None = None


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

    def body(self, *given: Any) -> dict[str, Any]:
        """What is sent, with values for all arguments but those that never change."""
        root, bracket, rest = self.call.partition("(")
        declared = bracket + rest
        passed = re.sub(r"\$(\w+): [\w!]+", r"\1: $\1", declared)
        asked = f"{self.kind}{declared} {{ {root}{passed}{_parts(self.shape)[0]} }}"
        names, values = re.findall(r"\$(\w+)", declared), iter(given)
        variables = {x: _SAME_FOR_ALL.get(x) or next(values) for x in names}
        return {"query": asked, "variables": variables}

    def read(self, data: Mapping[str, Any]) -> Any:
        """The value of the field, if it has the shape; its fields are attributes."""
        root = self.call.partition("(")[0]
        try:
            adapter = pydantic.TypeAdapter(_parts(self.shape)[1])
            return adapter.validate_python(data.get(root))
        except pydantic.ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, (root, *first["loc"])))
        told = f"answered in an unknown format ({where}: {first['msg']})"
        told = f"{self.step}: Numerai's API {told}: upgrade sklearn-era."
        # Numerai may have done all the same what it was asked for.
        raise HttpFailure(told, 200, unclear=True)


def _parts(shape: Any) -> tuple[str, Any]:
    """What asks for a shape in GraphQL, and its type for pydantic."""
    if isinstance(shape, list):
        text, kind = _parts(shape[0])
        return text, Annotated[GenericAlias(list, kind), _NO_NULLS]
    if not isinstance(shape, dict):
        return "", shape
    parts = {name: _parts(part) for name, part in shape.items()}
    text = " ".join(name + part for name, (part, _) in parts.items())
    fields: Any = {name: (kind, ...) for name, (_, kind) in parts.items()}
    return f" {{ {text} }}", pydantic.create_model("Answer", **fields)


# A list of GraphQL may be null, and hold some; a time is in UTC if it does not say.
_NO_NULLS = pydantic.BeforeValidator(
    lambda x: [y for y in x or [] if y is not None] if isinstance(x, list | None) else x
)
_UTC = pydantic.AfterValidator(lambda x: x and x.replace(tzinfo=x.tzinfo or UTC))
_TIME = Annotated[datetime | None, _UTC]
_open = partial(Query, keys=False)  # to everybody
_change = partial(Query, kind="mutation")
_STR, _INT = str | None, int | None
_CREATED, _GRANT = {"id": str}, {"filename": str, "url": str}
_IMAGES = [{"id": str, "name": str, "default": bool | None}]
_MODEL = {"id": str, "name": str, "tournament": _INT}
_ROUND = {"number": int, "openTime": _TIME, "closeStakingTime": _TIME}
_SENT = {"id": str, "filename": _STR, "insertedAt": _TIME}
_FATE = {"id": _STR, "filename": _STR, "roundNumber": _INT, "status": _STR}
_SCORE = {
    "roundNumber": int, "displayName": str, "value": float | None, "day": _INT,
    "resolved": bool | None,
}  # fmt: skip
_FATES = {"id": str, "latestSubmissions": [_FATE]}
_FILE = "$filename: String! $tournament: Int! $modelId"

MODELS = Query("Listing the models", "account", {"models": [_MODEL]})
LATEST = Query("Listing the latest submissions", "account", {"models": [_FATES]})
DATASETS = _open("Listing the data", "listDatasets($tournament: Int)", [str])
DATASET = _open(
    "Downloading", "dataset($filename: String! $round: Int $tournament: Int)", _STR
)
ROUNDS = _open(
    "Looking up the rounds", "rounds($tournament: Int! $number: Int)", [_ROUND]
)
SUBMISSIONS = Query("Listing the submissions", "submissions($modelId: String)", [_SENT])
DOWNLOAD_AUTH = Query(
    "Downloading the submission", "submissionDownloadAuth($id: String)", _GRANT
)
UPLOAD_AUTH = Query("Uploading", f"submission_upload_auth({_FILE}: String)", _GRANT)
CREATE = _change(
    "Creating the submission",
    f"create_submission({_FILE}: String $triggerId: String $source: String)",
    _CREATED,
)
SCORES = _open(
    "Looking up the scores",
    "submissionScores($modelId: ID! $tournament: Int $lastNRounds: Int)",
    [_SCORE],
)
IMAGES = Query("Listing the container images", "computePickleDockerImages", _IMAGES)
DATA_VERSIONS = Query(
    "Listing the versions of the data", "computePickleDataVersions", _IMAGES
)
PICKLE_AUTH = Query(
    "Uploading the model",
    "computePickleUploadAuth($filename: String $modelId: ID)",
    _GRANT,
)
CREATE_PICKLE = _change(
    "Uploading the model",
    f"createComputePickleUpload({_FILE}: ID $dataVersionId: ID $dockerImageId: ID "
    "$source: String)",
    _CREATED,
)
ASSIGN_PICKLE = _change(
    "Assigning the uploaded model",
    "assignPickleToModel($pickleId: ID $modelId: String)",
    Any,
)
PICKLES = Query(
    "Looking up the uploaded model",
    "computePickles($id: ID)",
    [{"validationStatus": _STR, "triggers": [{"statuses": [{"description": _STR}]}]}],
)
