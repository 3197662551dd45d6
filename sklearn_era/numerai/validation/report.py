"""The report of a validation: the numbers as JSON, and figures."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from sklearn_era._optional import import_optional
from sklearn_era.metrics import EraScores
from sklearn_era.numerai.errors import ConfigError
from sklearn_era.numerai.files import write_atomically
from sklearn_era.numerai.validation.scoring import ValidationResult

REPORT_NAME = "report.json"
_FORMAT = 1


class TrainingSample(NamedTuple):
    """Rows that show how far eras agree on the splits of a model.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features)
        The features, in the order of the training.
    eras : ndarray of shape (n_rows,)
        Their eras.
    y : ndarray of shape (n_rows,)
        Their targets.
    """

    X: NDArray[Any]
    eras: NDArray[Any]
    y: NDArray[Any]


@dataclass(frozen=True)
class ReportFiles:
    """The files of a report.

    Attributes
    ----------
    json : Path
        The numbers.
    figures : dict of str to Path
        By name: "cumulative_corr", "corr_by_era", "feature_exposure", and
        "split_agreement" if there were rows to draw it of.
    """

    json: Path
    figures: dict[str, Path] = field(default_factory=dict)


def write_report(
    directory: Path,
    results: Mapping[str, ValidationResult],
    *,
    estimators: Mapping[str, Any] | None = None,
    sample: TrainingSample | tuple[Any, Any, Any] | None = None,
    about: Mapping[str, Any] | None = None,
) -> ReportFiles:
    """Write ``report.json`` and the figures, in place of those of a report before.

    ``report.json`` holds, with null for what is undefined::

        format                   1
        about                    what `about` says
        models.<name>
          target                 the target that it was scored on
          n_rows                 rows that were scored
          neutralize_proportion  of the predictions before scoring
          summary.<metric>       mean, std, sharpe, max_drawdown, n_eras
          eras.<metric>          era, score, n_rows: lists, one value an era
          skipped.<metric>       why the metric is not there
          notes                  sentences
          feature_exposure       the mean correlation with each feature, the largest
                                 in size first

    where a name is a key of `results`, and a metric one of
    :class:`~sklearn_era.numerai.validation.ValidationResult`'s.

    Parameters
    ----------
    directory : Path
        The folder, which is made if it is not there.

    results : dict of str to ValidationResult
        By name: "model", and "gain" for the plain model it is compared with. The first
        is the one whose bars are drawn.

    estimators : dict of str to estimator, default=None
        The models by the same names, for the agreement of eras on their splits.

    sample : tuple of (X, eras, y), default=None
        Rows of the training for it, some thousand of some ten eras at least; see
        :class:`TrainingSample`.

    about : mapping of str to str or number, default=None
        What the report is of: the model's digest for one.

    Returns
    -------
    files : ReportFiles

    Raises
    ------
    ConfigError
        If there are no results, only one of `estimators` and `sample` is given, or a
        name of `estimators` is not one of `results`.
    MissingPackageError
        If matplotlib is not installed.
    """
    if not results:
        raise ConfigError("results is empty: there is nothing to report.")
    if (estimators is None) != (sample is None):
        raise ConfigError(
            "estimators and sample go together: the one is drawn over the other."
        )
    unknown = set(estimators or ()) - set(results)
    if unknown:
        raise ConfigError(
            f"estimators has {sorted(unknown)[0]!r}, and results has only "
            f"{', '.join(map(repr, results))}."
        )
    import_optional("matplotlib", extra="plot")
    from sklearn_era.numerai.validation import report_figures

    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    document = {
        "format": _FORMAT,
        "about": dict(about or {}),
        "models": {name: _as_document(result) for name, result in results.items()},
    }
    figures = {
        "cumulative_corr": report_figures.cumulative_corr(results),
        "corr_by_era": report_figures.corr_by_era(results),
        "feature_exposure": report_figures.feature_exposure(results),
    }
    if estimators is not None and sample is not None:
        rows = TrainingSample(*sample)
        figures["split_agreement"] = report_figures.split_agreement(estimators, rows)
    paths = {name: directory / f"{name}.png" for name in figures}
    for name, figure in figures.items():
        write_atomically(paths[name], report_figures.as_png(figure))
    if "split_agreement" not in figures:
        # That of an older model would be taken for this one's.
        (directory / "split_agreement.png").unlink(missing_ok=True)
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    write_atomically(directory / REPORT_NAME, text.encode())
    return ReportFiles(directory / REPORT_NAME, paths)


def _as_document(result: ValidationResult) -> dict[str, Any]:
    return {
        "target": result.target,
        "n_rows": result.n_rows,
        "neutralize_proportion": result.neutralize_proportion,
        "summary": {
            metric: {key: _number(value) for key, value in summary.items()}
            for metric, summary in result.summary.items()
        },
        "eras": {metric: _columns(scores) for metric, scores in result.scores.items()},
        "skipped": dict(result.skipped),
        "notes": list(result.notes),
        "feature_exposure": {
            name: _number(value) for name, value in result.exposures.items()
        },
    }


def _columns(scores: EraScores) -> dict[str, list[Any]]:
    return {
        "era": [str(era) for era in scores.eras],
        "score": [_number(score) for score in scores.scores.tolist()],
        "n_rows": [int(count) for count in scores.n_samples],
    }


def _number(value: float | int | None) -> float | int | None:
    """JSON has no NaN."""
    if value is None or not math.isfinite(value):
        return None
    return value


__all__ = ["REPORT_NAME", "ReportFiles", "TrainingSample", "write_report"]
