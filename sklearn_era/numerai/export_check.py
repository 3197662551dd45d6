"""Test a pickled model by a run under Numerai's conditions.

This file is also the program that runs the pickle. It needs Python 3.10 or later, and
only pandas, pyarrow and the model's packages: ``export_check.py MEMORY_LIMIT MODEL
LIVE`` writes predictions.csv, and report.json with the stage that failed, if any.
"""

import inspect
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas

# Numerai's limits for a model, which has one CPU.
MEMORY_LIMIT = 4 * 2**30
TIME_LIMIT = 600.0

_CLOSE = 0.75  # above this share of a limit, another machine may exceed it
_RESERVED = 2**30  # on top of the limit: libraries reserve memory that they never use
_PACKAGES = ("numpy", "pandas", "scikit-learn", "scipy", "lightgbm", "pyarrow")

# Inherited variables: a pickle is a program, and must not see API keys.
_INHERITED = ["HOME", "LANG", "LD_LIBRARY_PATH", "PATH", "SYSTEMROOT", "TEMP", "TMPDIR"]
_ONE_THREAD = {f"{x}_NUM_THREADS": "1" for x in ("MKL", "NUMEXPR", "OMP", "OPENBLAS")}

# Error messages by stage.
_EXPORT = "export the model with write_portable_model."
_FAILURES = {
    "start": "{python} cannot be started ({error}): pass a Python interpreter.",
    "time": "{model} exceeded the time limit of {seconds:g} seconds: fit fewer or "
    "smaller trees.",
    "memory": "{model} exceeded the memory limit of {limit:.2f} GiB: fit fewer or "
    "smaller trees, or use fewer features.",
    "end": "{model} crashed {python} ({error}). A segmentation fault, or exit status "
    f"139, means that compiled code is of another version: {_EXPORT}",
    "import": "{python} cannot read live data: {error}. Install the image's versions "
    "of pandas and pyarrow, or choose another Python.",
    "read": "{python} cannot read {model}: {error}. Install the packages of Numerai's "
    f"images; if that does not help, {_EXPORT}",
    "parameters": "{model} must be a function of one parameter, the live data: {error}."
    " A second one, the live benchmark models, is not supported by this check.",
    "live": "{python} cannot read the live data: {error}.",
    "predict": "{model} failed to predict the live data: {error}. Use live data of the "
    "version, and with the features, that it was trained on.",
    "predictions": "{model} must return a pandas.DataFrame with index 'id' and column "
    "'prediction' of numbers between 0 and 1 that are not all equal: {error}.",
}


@dataclass(frozen=True)
class PortableCheck:
    """The result of a successful test run: resources, versions and warnings."""

    rows: int
    seconds: float  # on one CPU of this machine, from the first import to the CSV
    peak_bytes: int  # 0 if unknown
    python: str
    versions: dict[str, str]  # of packages, ideally those of Numerai's image
    warnings: list[str]  # of the run, or about resources close to a limit


def check_portable_model(
    path: str | os.PathLike[str], live: "str | os.PathLike[str] | pandas.DataFrame", *,
    python: str | os.PathLike[str] | None = None, memory_limit: int = MEMORY_LIMIT,
    time_limit: float = TIME_LIMIT, output: str | os.PathLike[str] | None = None,
) -> PortableCheck:  # fmt: skip
    """Run a pickled model by the rules of Numerai's model upload.

    Another process reads the pickle, calls it with the live data, checks the result and
    writes the CSV. This process has one CPU, no sklearn_era, and few environment
    variables, since variables may hold keys. A pickle is a program: only run your own.

    Parameters
    ----------
    path : str or path-like
        The pickle of a function with the live data as its only parameter, as
        :func:`~sklearn_era.numerai.write_portable_model` writes it.
    live : str, path-like or pandas.DataFrame
        The live data with all columns; ``id`` is a column or the index.
    python : str or path-like, default=None
        The Python that runs the pickle, ideally in an environment like Numerai's image;
        by default this Python.
    memory_limit : int, default=4 GiB
        The most memory, in bytes, that the process may use.
    time_limit : float, default=600.0
        The most seconds that the process may take.
    output : str or path-like, default=None
        The file to write the predictions to, as CSV; by default none.

    Returns
    -------
    check : PortableCheck
        Rows, time, memory, versions and warnings.

    Raises
    ------
    ExportError
        If the model cannot be read or called, breaks a rule, or exceeds a limit.
    OSError
        If a file cannot be read or written.
    TypeError
        If `live` is neither a path nor a pandas data frame.
    """
    # Imported here: as a program, this file runs without the package.
    from sklearn_era.numerai.errors import ExportError

    path = Path(path).resolve(strict=True)
    python = os.fspath(python or sys.executable)
    # Absolute, since the run is in another folder; links of environments stay links.
    python = os.path.abspath(shutil.which(python) or python)
    with tempfile.TemporaryDirectory(prefix="sklearn-era-") as name:
        folder, data = Path(name), Path(name) / "live.parquet"
        if isinstance(live, str | os.PathLike):
            data = Path(live).resolve(strict=True)
        elif hasattr(live, "to_parquet"):
            live.to_parquet(data)
        else:
            raise TypeError(
                "live must be a path or a pandas.DataFrame; got "
                f"{type(live).__module__}.{type(live).__name__}."
            )
        command = [python, "-I", __file__, str(memory_limit), str(path), str(data)]
        report = _run(command, folder, time_limit)
        if (stage := report["stage"]) != "done":
            details = {"model": path.name, "python": python, **report}
            details |= {"seconds": time_limit, "limit": memory_limit / 2**30}
            raise ExportError(_FAILURES[stage].format(**details))
        if output is not None:
            Path(output).write_bytes((folder / "predictions.csv").read_bytes())
    check = PortableCheck(**report["check"])
    if check.seconds > _CLOSE * time_limit or check.peak_bytes > _CLOSE * memory_limit:
        check.warnings.append(
            f"It took {check.seconds:.0f} of {time_limit:.0f} seconds and used "
            f"{check.peak_bytes / 2**30:.2f} of {memory_limit / 2**30:.2f} GiB: "
            "Numerai's machine may be slower, and live data grow."
        )
    return check


def _run(command: list[str], folder: Path, time_limit: float) -> dict[str, Any]:
    """Run this file as a program; return its report, or a report of its failure."""
    inherited = {x: os.environ[x] for x in _INHERITED if x in os.environ}
    try:
        done = subprocess.run(
            command, cwd=folder, env=inherited | _ONE_THREAD, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace",
            timeout=time_limit,
        )  # fmt: skip
    except OSError as error:
        return {"stage": "start", "error": error.strerror}
    except subprocess.TimeoutExpired:
        return {"stage": "time"}
    with suppress(FileNotFoundError):
        report: dict[str, Any] = json.loads((folder / "report.json").read_bytes())
        return report
    lines = done.stdout.strip().splitlines() or ["no output"]
    how = f"exit status {done.returncode}"
    if done.returncode < 0:
        how = f"killed by {signal.Signals(-done.returncode).name}"
    return {"stage": "end", "error": f"{how}: {lines[-1]}"}


class RefusedError(Exception):
    """The model or its predictions violate a rule."""


def main(memory_limit: str, model: str, live: str) -> None:
    start = time.monotonic()
    sys.modules["sklearn_era"] = None  # type: ignore[assignment]  # as at Numerai
    if hasattr(os, "sched_setaffinity"):
        # One CPU, chosen at random: checks may run in parallel.
        os.sched_setaffinity(0, {random.choice(list(os.sched_getaffinity(0)))})
    with suppress(ImportError, OSError, ValueError):  # Windows, or a lower limit
        import resource

        most = int(memory_limit) + _RESERVED
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    report, rows = dict[str, Any](stage="import"), 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        # Deprecations concern libraries of fixed versions, not the user.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            rows = _predict(report, model, live)
        except MemoryError:
            report["stage"] = "memory"
        except RefusedError as error:
            report["error"] = str(error)
        except BaseException as error:
            report["error"] = f"{type(error).__name__}: {error}"
    # Not `ru_maxrss`, which may be the parent process's.
    status = Path("/proc/self/status")
    held = status.read_text() if status.is_file() else "VmHWM: 0"
    peak_bytes = 1024 * int(held.partition("VmHWM:")[2].split()[0])
    if report["stage"] == "done" and peak_bytes > int(memory_limit):
        report["stage"] = "memory"
    version = sys.version.split()[0]
    report["python"] = f"Python {version} ({sys.executable})"
    versions = {x.metadata["Name"]: x.version for x in distributions()}
    report["check"] = {
        "rows": rows, "seconds": time.monotonic() - start, "python": version,
        "peak_bytes": peak_bytes,
        "versions": {x: versions[x] for x in _PACKAGES if x in versions},
        "warnings": [f"{w.category.__name__}: {w.message}" for w in caught],
    }  # fmt: skip
    Path("report.json").write_text(json.dumps(report), encoding="utf-8")


def _predict(report: dict[str, Any], model: str, live: str) -> int:
    """Predict, write the CSV file, and return the number of rows. Before each step, put
    the step's name in ``report["stage"]``.
    """
    import pandas as pd
    import pyarrow.parquet  # noqa: F401 - pandas reads Parquet with it

    report["stage"] = "read"
    function = pd.read_pickle(model)
    report["stage"] = "parameters"
    names = [*inspect.signature(function).parameters]
    if len(names) != 1:
        raise RefusedError(f"it has {len(names)} ({', '.join(names)})")
    report["stage"] = "live"
    frame = pd.read_parquet(live)
    if "id" in frame.columns:
        frame = frame.set_index("id")
    if frame.index.name != "id":
        raise RefusedError("no index or column is named 'id'")
    report["stage"] = "predict"
    predictions = function(frame)
    report["stage"] = "predictions"
    check_predictions(predictions, frame.index)
    predictions.to_csv("predictions.csv")
    report["stage"] = "done"
    return len(predictions)


def check_predictions(predictions: Any, ids: Any) -> None:
    """Raise RefusedError if predictions break a rule of Numerai's."""
    import pandas as pd

    if not isinstance(predictions, pd.DataFrame):
        raise RefusedError(f"it returned a {type(predictions).__name__}")
    columns, index = predictions.columns.tolist(), predictions.index
    if columns != ["prediction"] or index.name != "id":
        raise RefusedError(f"the columns are {columns}, the index is {index.name!r}")
    if index.has_duplicates or len(ids.difference(index)):
        raise RefusedError("each live id must have exactly one prediction")
    values = predictions["prediction"]
    if not values.between(0, 1).all() or values.nunique() == 1:
        raise RefusedError(
            f"predictions range from {values.min()} to {values.max()}, and "
            f"{values.isna().sum():,} are NaN"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
