"""Runs a pickled model as Numerai's machines do, and reports what became of it.

A program of its own, for the Python that is to run the model: from 3.10 up, with
nothing but pandas, pyarrow and what the model needs. `check_portable_model` starts it:

    python -I portable_runner.py MODEL LIVE BENCHMARK PREDICTIONS REPORT

BENCHMARK may be empty. REPORT is a JSON file, with the stage that failed, if one did.
"""

import importlib
import importlib.metadata
import inspect
import json
import os
import random
import sys
import time
import warnings
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

_PACKAGES = ("numpy", "pandas", "scikit-learn", "lightgbm", "pyarrow")


class _Absent(MetaPathFinder):
    """Takes care that sklearn_era is not found, as on Numerai's machines."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        if fullname.partition(".")[0] == "sklearn_era":
            raise ModuleNotFoundError(
                f"No module named {fullname!r}", name="sklearn_era"
            )


class _RefusedError(Exception):
    """The model or its predictions break a rule."""


def main() -> None:
    start = time.monotonic()
    model_path, live_path, benchmark_path, predictions_path, report_path = sys.argv[1:]
    sys.meta_path.insert(0, _Absent())
    if hasattr(os, "sched_setaffinity"):
        # One CPU, and not always the same one: checks may run side by side.
        os.sched_setaffinity(0, {random.choice(list(os.sched_getaffinity(0)))})
    report: dict[str, Any] = {"python": sys.version.split()[0], "stage": "import"}
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            # Between libraries of fixed versions, of no concern to a user of theirs.
            warnings.simplefilter("ignore", DeprecationWarning)
            rows = _run(model_path, live_path, benchmark_path, predictions_path, report)
        report.update(
            stage=None,
            rows=rows,
            warnings=[f"{w.category.__name__}: {w.message}" for w in caught],
        )
    except _RefusedError as error:
        report["error"] = str(error)
    except BaseException as error:
        report["error"] = f"{type(error).__name__}: {error}"
        report["missing_module"] = (
            error.name if isinstance(error, ModuleNotFoundError) else None
        )
    report["seconds"] = time.monotonic() - start
    report["peak_bytes"] = _peak_bytes()
    report["versions"] = _versions()
    Path(report_path).write_text(json.dumps(report), encoding="utf-8")


def _run(
    model_path: str,
    live_path: str,
    benchmark_path: str,
    predictions_path: str,
    report: dict[str, Any],
) -> int:
    """Predict and write the CSV; `report` is told of each stage as it begins."""
    import pandas as pd

    importlib.import_module("pyarrow.parquet")  # pandas reads Parquet with it

    report["stage"] = "read"
    function = pd.read_pickle(model_path)

    report["stage"] = "signature"
    n_parameters = len(inspect.signature(function).parameters)
    if n_parameters not in (1, 2):
        raise _RefusedError(f"it takes {n_parameters} parameters")
    if n_parameters == 2 and not benchmark_path:
        raise _RefusedError("it takes 2 parameters, and benchmark_models is None")

    report["stage"] = "live"
    paths = [live_path, benchmark_path][:n_parameters]
    frames = [pd.read_parquet(path) for path in paths]
    frames = [
        frame.set_index("id") if "id" in frame.columns else frame for frame in frames
    ]
    if frames[0].index.name != "id":
        raise _RefusedError("it has neither an index nor a column 'id'")

    report["stage"] = "predict"
    predictions = function(*frames)

    report["stage"] = "predictions"
    _check(predictions, frames[0].index)
    predictions.to_csv(predictions_path)
    return len(predictions)


def _check(predictions: Any, ids: Any) -> None:
    """Numerai's rules for what a model returns, and those for its submission."""
    import pandas as pd

    if not isinstance(predictions, pd.DataFrame):
        raise _RefusedError(
            f"a {type(predictions).__name__}, and no pandas.DataFrame was returned"
        )
    if predictions.empty:
        raise _RefusedError("the data frame is empty")
    if predictions.columns.tolist() != ["prediction"] or predictions.index.name != "id":
        raise _RefusedError(
            f"the columns are {predictions.columns.tolist()} and the index is named "
            f"{predictions.index.name!r}, not ['prediction'] and 'id'"
        )
    values = predictions["prediction"]
    if values.isna().any():
        raise _RefusedError(f"{int(values.isna().sum()):,} predictions are NaN")
    if not values.between(0, 1).all():
        raise _RefusedError(
            f"predictions are between {values.min()} and {values.max()}, which is not "
            "between 0 and 1"
        )
    if predictions.index.has_duplicates or len(ids.difference(predictions.index)):
        raise _RefusedError("not every id of the live data has exactly one prediction")
    if values.nunique() == 1:
        raise _RefusedError(f"all predictions are {values.iloc[0]}")


def _peak_bytes() -> int:
    """The most memory that this process held.

    Linux's `ru_maxrss` would not do: it may be that of the process that started it.
    """
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return 1024 * int(line.split()[1])
    except OSError:
        pass
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def _versions() -> dict[str, str]:
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


if __name__ == "__main__":
    main()
