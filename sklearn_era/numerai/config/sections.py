"""The tables of ``numerai.toml``.

The fields below are the one definition of what the file may hold: its defaults, its
checks, and the comments of the file that ``sklearn-era numerai init`` makes.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from sklearn_era.numerai.config.messages import BAD_TABLE, BAD_VALUE

# For a weekly regression on features of five values; the sizes are those of the
# example models that Numerai publishes.
_PARAMETERS: dict[str, Any] = {
    "split_criterion": "directional",
    "min_direction_agreement": 0.0,
    # Features that an era lacks have one value in it, and cannot be split there.
    "min_era_coverage": 0.5,
    "max_iter": 2000,
    "learning_rate": 0.01,
    "max_depth": 5,
    "max_leaf_nodes": 32,
    "min_samples_leaf": 100,
    "colsample_bytree": 0.1,
    "l2_regularization": 0.0,
}


class Section(BaseModel):
    """A table, all of whose keys are known and of the right type."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False
    )


def _matching(pattern: str, demand: str) -> AfterValidator:
    """Check that a text is of a form, which the message tells in words."""

    def check(text: str) -> str:
        if re.fullmatch(pattern, text) is None:
            raise PydanticCustomError(BAD_VALUE, demand)
        return text

    return AfterValidator(check)


def _check_purge(value: Any) -> Any:
    # True is an int to Python, and not to TOML.
    if value == "auto" or (type(value) is int and value >= 0):
        return value
    raise PydanticCustomError(
        BAD_VALUE, "must be 'auto' or a whole number of 0 or more"
    )


def _check_different(names: list[Any]) -> list[Any]:
    for name in names:
        if names.count(name) > 1:
            raise PydanticCustomError(
                BAD_VALUE,
                "names '{name}' twice, and its rows would count twice",
                {"name": name},
            )
    return names


_Era = Annotated[
    str, _matching(r"(\d{4})?", "must be the four digits of an era, such as '0157'")
]


class DataSection(Section):
    """Which files of Numerai's data to use."""

    version: Annotated[
        str,
        _matching(r"v\d+\.\d+", "must be a v and two numbers, such as 'v5.3'"),
        Field(description="Version of Numerai's data."),
    ] = "v5.3"
    files: Annotated[
        list[str],
        Field(
            min_length=1,
            description="Files to download, as Numerai calls them. features and live "
            "are needed to predict, the files of [train] to train, and validation to "
            "validate; meta_model and validation_benchmark_models for MMC and BMC, "
            "live_example_preds and live_benchmark_models to compare the submission "
            "with.",
        ),
    ] = [
        "features",
        "train",
        "validation",
        "live",
        "live_example_preds",
        "live_benchmark_models",
        "meta_model",
        "validation_benchmark_models",
    ]
    refresh: Annotated[
        list[str],
        Field(
            description="Of these, which to download anew each round, beside those of "
            "live data, which always are. The others are downloaded once."
        ),
    ] = []

    @model_validator(mode="after")
    def _check_refresh(self) -> "DataSection":
        for name in self.refresh:
            if name not in self.files:
                raise PydanticCustomError(
                    BAD_TABLE,
                    "refresh names '{name}', which is not among the files to download",
                    {"name": name},
                )
        return self


class ModelSection(Section):
    """The model at Numerai."""

    name: Annotated[
        str,
        _matching(
            r"[A-Za-z0-9_][A-Za-z0-9_.-]*",
            "must be the model's name at Numerai, of letters, digits, '_', '-' and '.'",
        ),
        Field(description="Name of your model in the Classic tournament."),
    ]


class TrainSection(Section):
    """What the model learns from."""

    target: Annotated[
        str,
        Field(
            description="Target, by its full name: Numerai changes what the alias "
            "'target' stands for."
        ),
    ]
    feature_set: Annotated[
        str, Field(min_length=1, description="Feature set, as features.json names it.")
    ] = "medium"
    files: Annotated[
        list[Literal["train", "validation"]],
        AfterValidator(_check_different),
        Field(
            min_length=1,
            description="Files to train on, 'train' and 'validation'. With both, set "
            "last_era, or no era is left to validate on.",
        ),
    ] = ["train"]
    first_era: Annotated[
        _Era, Field(description="First era to train on; '' is the first of the files.")
    ] = ""
    last_era: Annotated[
        _Era, Field(description="Last era to train on; '' is the last of the files.")
    ] = ""
    every_nth_era: Annotated[
        int,
        Field(
            ge=1,
            description="1: every era. 4: every fourth, a quarter of the rows, whose "
            "targets of 20 days hardly overlap.",
        ),
    ] = 1
    era_groups: Annotated[
        int,
        Field(
            ge=0,
            description="How many groups of consecutive eras the split criterion "
            "compares; 0: the eras themselves.",
        ),
    ] = 0
    purge: Annotated[
        int | Literal["auto"],
        PlainValidator(_check_purge),
        Field(
            description="Eras left out after training, before the first to validate "
            "on; 'auto': 8 for targets of 20 days, 16 for 60."
        ),
    ] = "auto"
    random_state: Annotated[
        int, Field(ge=0, lt=2**32, description="Seed of the model.")
    ] = 0
    checkpoint_every: Annotated[
        int,
        Field(
            ge=1,
            description="Trees between checkpoints, from which an interrupted training "
            "goes on.",
        ),
    ] = 100
    compare_with_gain: Annotated[
        bool,
        Field(
            description="Train the same model with split_criterion = 'gain' as well, "
            "for the report."
        ),
    ] = False
    parameters: Annotated[
        dict[str, Any],
        Field(
            description="Parameters of HistGradientBoostingRegressor. Those left out "
            "have the defaults of that class, not the values that 'init' writes."
        ),
    ] = _PARAMETERS

    @model_validator(mode="after")
    def _check_bounds(self) -> "TrainSection":
        if self.first_era and self.last_era and self.first_era > self.last_era:
            raise PydanticCustomError(
                BAD_TABLE,
                "first_era = '{first}' is after last_era = '{last}'",
                {"first": self.first_era, "last": self.last_era},
            )
        return self


class ValidateSection(Section):
    """How the model is judged."""

    fnc_feature_set: Annotated[
        str,
        Field(
            description="Feature set that FNC neutralises by; 'auto': fncv3_features "
            "if there is one, else the model's own; '' leaves FNC out."
        ),
    ] = "auto"
    benchmark: Annotated[
        str,
        Field(
            description="Benchmark model for BMC; 'auto': Numerai's model for the "
            "same target and version; '' leaves BMC out."
        ),
    ] = "auto"


class PredictSection(Section):
    """What becomes of predictions, of live data and in validation."""

    neutralize_proportion: Annotated[
        float,
        Field(
            ge=0,
            le=1,
            description="Share of the linear exposure to features to take out of the "
            "predictions, from 0 to 1.",
        ),
    ] = 0.0
    neutralize_feature_set: Annotated[
        str, Field(description="Features to neutralise by; '': the model's own.")
    ] = ""


class SubmitSection(Section):
    """How the submission is sent."""

    require_open: Annotated[
        bool,
        Field(
            description="Refuse to submit once the round has closed; else Numerai "
            "queues the submission for the next."
        ),
    ] = False
    timeout: Annotated[
        float,
        Field(
            gt=0,
            le=86_400,
            description="Seconds to wait for a connection, and for each part of an "
            "answer.",
        ),
    ] = 60.0
    retries: Annotated[
        int,
        Field(
            ge=0,
            le=100,
            description="How often to repeat a call that failed for a reason that may "
            "pass, after 1, 2, 4 and so on up to 64 seconds.",
        ),
    ] = 3


class ExportSection(Section):
    """The model as a file for Numerai's model upload."""

    weekly: Annotated[
        bool,
        Field(
            description="Export the model whenever 'weekly' has trained it; not with "
            "neutralize_proportion above 0."
        ),
    ] = True


__all__ = [
    "DataSection",
    "ExportSection",
    "ModelSection",
    "PredictSection",
    "Section",
    "SubmitSection",
    "TrainSection",
    "ValidateSection",
]
