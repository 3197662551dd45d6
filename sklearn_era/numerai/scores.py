"""Live scores of models by round, and their means in validation."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Any, NamedTuple

from sklearn_era.numerai.api import Numerai, Query
from sklearn_era.numerai.config import Workspace
from sklearn_era.numerai.errors import DataError
from sklearn_era.numerai.report import REPORT_NAME, Report
from sklearn_era.numerai.validation import MODEL

# Names of scores, such as canon_corr, v2_corr20, mmc60 and fnc_v3.
_SCORE = re.compile(r"(canon_|v2_|)(corr|mmc|bmc|fnc)(?:_v3)?(\d*)")
_OFFICIAL = ("", "v2_", "canon_")
_HORIZON = 60  # business days, of the scores that Numerai pays for

_CALL = "submissionScores($modelId: ID! $tournament: Int $lastNRounds: Int)"
_NAMED = {"displayName": str, "roundNumber": int, "day": int | None}
_VALUE = {"value": float | None, "resolved": bool | None}
SCORES = Query("Looking up the scores", _CALL, [_NAMED | _VALUE], keys=False)


class RoundScore(NamedTuple):
    """The scores of a model in a round, None if not known yet."""

    round_number: int
    model: str
    resolved: bool
    corr: float | None = None
    mmc: float | None = None
    bmc: float | None = None
    fnc: float | None = None


def live_scores(
    client: Numerai,
    ids: Mapping[str, str],
    n_rounds: int,
    horizons: Mapping[str, int | None],
) -> list[RoundScore]:
    """Return the latest scores of models in their last rounds, by round and model. A
    score for the model's horizon, in business days, takes precedence.
    """
    rows = []
    for model, model_id in ids.items():
        horizon = str(horizons.get(model) or _HORIZON)
        found = []
        for score in client.ask(SCORES, model_id, n_rounds):
            match = _SCORE.fullmatch(score.displayName)
            if score.value is not None and match and match[3] in ("", horizon):
                rank = bool(match[3]), _OFFICIAL.index(match[1]), score.day or 0
                found.append((rank, match[2], score))
        rounds: dict[int, dict[str, Any]] = {}
        for _, metric, score in sorted(found, key=itemgetter(0)):
            rounds.setdefault(score.roundNumber, {})[metric] = score
        for number, best in sorted(rounds.items())[-n_rounds:]:
            resolved = all(score.resolved for score in best.values())
            values = {metric: score.value for metric, score in best.items()}
            rows.append(RoundScore(number, model, resolved, **values))
    return sorted(rows, key=itemgetter(0))


def promised_scores(
    workspace: Workspace, models: Sequence[str]
) -> dict[str, dict[str, float]]:
    """The mean validation scores by metric, by model with a report."""
    promised = {}
    for model in models:
        path = workspace.report_dir(model) / REPORT_NAME
        with suppress(DataError, AttributeError, LookupError, TypeError):  # damaged
            if report := Report.read(path, advice="Validate again."):
                summary = report.models[MODEL]["summary"].items()
                means = ((metric, values["mean"]) for metric, values in summary)
                promised[model] = {x: y for x, y in means if isinstance(y, float)}
    return promised
