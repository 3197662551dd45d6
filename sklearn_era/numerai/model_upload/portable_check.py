"""Run a pickled model as Numerai's machines do, before it is uploaded."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn_era._optional import import_optional
from sklearn_era.numerai.errors import PortableModelError
from sklearn_era.numerai.model_upload import portable_runner

if TYPE_CHECKING:
    import pandas

__all__ = ["PortableCheck", "check_portable_model"]

# What a model has on Numerai's machines, beside a single CPU.
MEMORY_LIMIT = 4 * 2**30
TIME_LIMIT = 600.0

# Above this share of a limit, machines may differ by enough to break it.
_CLOSE = 0.75

# What the runner inherits. A pickle is a program, which needs no keys of an API.
_ENVIRONMENT = (
    "HOME",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "PATH",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "TMPDIR",
)
_ONE_THREAD = (
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
)


@dataclass(frozen=True)
class PortableCheck:
    """A run of a model that kept the rules.

    Attributes
    ----------
    rows : int
        How many rows it predicted.
    seconds : float
        How long it took on one CPU of this machine, from the start of Python to the
        CSV, but for the interpreter itself.
    peak_bytes : int
        The most memory that the process held, libraries and live data among it.
    python : str
        The version of the Python that ran it.
    versions : dict of str to str
        Those of numpy, pandas, scikit-learn, lightgbm and pyarrow there. A check says
        most where they are those of the image that is to be chosen.
    warnings : tuple of str
        What was warned of in the run; and, if so, that time or memory is close to the
        limit.
    """

    rows: int
    seconds: float
    peak_bytes: int
    python: str
    versions: dict[str, str]
    warnings: tuple[str, ...]


def check_portable_model(
    path: str | os.PathLike[str],
    live: "str | os.PathLike[str] | pandas.DataFrame",
    *,
    python: str | os.PathLike[str] | None = None,
    benchmark_models: "str | os.PathLike[str] | pandas.DataFrame | None" = None,
    memory_limit: int = MEMORY_LIMIT,
    time_limit: float = TIME_LIMIT,
    output: str | os.PathLike[str] | None = None,
) -> PortableCheck:
    """Run a pickled model by the rules of Numerai's model upload.

    Another process reads the pickle with pandas, looks at how many parameters the
    function has, calls it with the live data, checks what it returns and writes the
    CSV: on one CPU, with one thread, without sklearn_era and without the variables of
    this process's environment, in which there may be keys. A pickle is a program: check
    your own.

    Parameters
    ----------
    path : str or path-like
        The pickle, such as
        :func:`~sklearn_era.numerai.model_upload.write_portable_model` writes.

    live : str, path-like or pandas.DataFrame
        The live data: a Parquet file, or a data frame with all of its columns and the
        index, or a column, ``id``.

    python : str or path-like, default=None
        The Python to run it with, by default this one. Best is that of a virtual
        environment with the version of Python, and the versions of packages, of the
        image that the model is to run in.

    benchmark_models : str, path-like or pandas.DataFrame, default=None
        Predictions of Numerai's benchmark models, for a function of two parameters.

    memory_limit : int, default=4 GiB
        Bytes that it may hold. On Linux, it is stopped when it takes more.

    time_limit : float, default=600.0
        Seconds after which it is stopped.

    output : str or path-like, default=None
        Where to write the predictions, as CSV.

    Returns
    -------
    check : PortableCheck
        Rows, time, memory, versions and warnings.

    Raises
    ------
    PortableModelError
        If the pickle cannot be read or called, breaks a rule, or takes more time or
        memory than it may.
    MissingPackageError
        If `live` is a data frame and pyarrow is not installed.
    OSError
        If a file cannot be read or written.
    """
    path = Path(path)
    path.stat()  # the error of a missing file is better than that of another process
    executable = str(python or sys.executable)
    if os.sep in executable:  # and no mere name, to be found on PATH
        executable = os.path.abspath(executable)
    with tempfile.TemporaryDirectory(prefix="sklearn-era-") as name:
        folder = Path(name)
        arguments = [
            path.absolute(),
            _as_parquet(live, folder / "live.parquet"),
            ""
            if benchmark_models is None
            else _as_parquet(benchmark_models, folder / "benchmark_models.parquet"),
            folder / "predictions.csv",
            folder / "report.json",
        ]
        command = [executable, "-I", portable_runner.__file__, *map(str, arguments)]
        status = _run(command, folder, path, memory_limit, time_limit)
        report = _read_report(folder / "report.json")
        if report is None:
            raise PortableModelError(
                _explain_death(status, path, executable, (folder / "log").read_text())
            )
        if report["stage"] is not None:
            raise PortableModelError(_explain_failure(report, path, executable))
        if report["peak_bytes"] > memory_limit:
            raise PortableModelError(
                _explain_memory(path, report["peak_bytes"], memory_limit)
            )
        if output is not None:
            Path(output).write_bytes((folder / "predictions.csv").read_bytes())
    return PortableCheck(
        rows=report["rows"],
        seconds=report["seconds"],
        peak_bytes=report["peak_bytes"],
        python=report["python"],
        versions=report["versions"],
        warnings=(
            *report["warnings"],
            *_close_to_limits(report, memory_limit, time_limit),
        ),
    )


def _as_parquet(data: Any, path: Path) -> Path:
    """The absolute path of a Parquet file with the data."""
    if isinstance(data, str | os.PathLike):
        given = Path(data).absolute()
        given.stat()
        return given
    import_optional("pyarrow", extra="numerai")
    data.to_parquet(path)
    return path


def _run(
    command: list[str],
    folder: Path,
    model: Path,
    memory_limit: int,
    time_limit: float,
) -> int:
    """Run the command in the folder, and watch its time and memory."""
    environment = {
        name: os.environ[name] for name in _ENVIRONMENT if name in os.environ
    }
    environment |= dict.fromkeys(_ONE_THREAD, "1")
    with (folder / "log").open("w") as log:
        try:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        except OSError as error:
            raise PortableModelError(
                f"python={command[0]!r} cannot be started ({error.strerror}): pass the "
                "path of a Python executable."
            ) from error
        start = time.monotonic()
        try:
            while True:
                try:
                    return process.wait(timeout=0.05)
                except subprocess.TimeoutExpired:
                    pass
                held = _resident_bytes(process.pid)
                if held > memory_limit:
                    raise PortableModelError(_explain_memory(model, held, memory_limit))
                if time.monotonic() - start > time_limit:
                    raise PortableModelError(
                        f"{model} was stopped after {time_limit:g} seconds, which is "
                        "the time it may take: fit fewer trees, or smaller ones."
                    )
        finally:
            process.kill()
            process.wait()


def _resident_bytes(pid: int) -> int:
    """The memory that a process holds; 0 where that cannot be read."""
    try:
        pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):  # no Linux, or the process has ended
        return 0


def _read_report(path: Path) -> dict[str, Any] | None:
    """What the runner reported; None if it died before it could."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None


def _explain_death(status: int, path: Path, executable: str, log: str) -> str:
    if status == -signal.SIGSEGV:
        return (
            f"{path} crashed {executable} (segmentation fault, exit status 139 on "
            "Numerai's machines): it holds compiled code of another version of Python "
            "or of a package. Export the model with write_portable_model, or pickle it "
            "with the versions of the image."
        )
    end = log.strip().splitlines()[-1:] or ["nothing was printed"]
    how = (
        f"killed by {signal.Signals(-status).name}"
        if status < 0
        else f"exit status {status}"
    )
    return (
        f"{path} could not be run by {executable}, which ended without a report "
        f"({how}): {end[0]}."
    )


def _explain_failure(report: dict[str, Any], path: Path, executable: str) -> str:
    """What failed, by the stage that the runner had come to, and what to do."""
    error = report["error"]
    where = f"Python {report['python']} ({executable})"
    match report["stage"]:
        case "import":
            return (
                f"{where} cannot read the live data: {error}. Install pandas and "
                "pyarrow there, in the versions of the image, or pass another python=."
            )
        case "read" if report.get("missing_module") == "lightgbm":
            return (
                f"{path} needs lightgbm, which Numerai's images have and {where} does "
                "not: install it there to check the model, or pass another python=."
            )
        case "read" if report.get("missing_module"):
            return (
                f"{path} cannot be read by {where}: {error}. What Numerai's images do "
                "not have must not be in the pickle: export the model with "
                "write_portable_model."
            )
        case "read":
            return (
                f"{path} cannot be read by {where}: {error}. It is no pickle, or one "
                "for other versions: export the model with write_portable_model."
            )
        case "signature":
            return (
                f"{path} does not hold a function that Numerai can call: {error}. It "
                "has to take the live data, or those and the benchmark models."
            )
        case "live":
            return f"The live data cannot be read by {where}: {error}."
        case "predict":
            return (
                f"{path} failed to predict the live data: {error}. They have to be of "
                "the version of the data, and with the features, that it was trained "
                "on."
            )
        case _:
            return (
                f"{path} does not return a submission: {error}. It has to return a "
                "pandas.DataFrame with index 'id' and the column 'prediction', of "
                "different numbers between 0 and 1."
            )


def _explain_memory(path: str | Path, held: int, limit: int) -> str:
    return (
        f"{path} needs more memory than the {limit / 2**30:.2f} GiB that it may have "
        f"(it held {held / 2**30:.2f} GiB): fit fewer trees, smaller ones, or to fewer "
        "features."
    )


def _close_to_limits(
    report: dict[str, Any], memory_limit: int, time_limit: float
) -> list[str]:
    close = []
    if report["seconds"] > _CLOSE * time_limit:
        close.append(
            f"It took {report['seconds']:.0f} of {time_limit:.0f} seconds; Numerai's "
            "machine may be slower than this one."
        )
    if report["peak_bytes"] > _CLOSE * memory_limit:
        close.append(
            f"It held {report['peak_bytes'] / 2**30:.2f} of "
            f"{memory_limit / 2**30:.2f} GiB; live data grow with new versions."
        )
    return close
