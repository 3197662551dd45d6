"""Shared by the experiments: data files, seeds, summaries, tables and figures."""

import sys
import warnings
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Memory, Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import has_fit_parameter
from threadpoolctl import threadpool_limits

from sklearn_era._optional import import_optional

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# Splits cover all eras, however much of the gain they have.
RULE_OF_PAPERS: dict[str, Any] = {"min_era_coverage": 1.0, "min_gain_share": 0.0}


class ExperimentError(Exception):
    """An experiment lacks something it needs. The message is one sentence."""


def coverage_of_papers(criterion: str) -> dict[str, Any]:
    """The rule that splits cover all eras, for the criteria that look at eras."""
    return {} if criterion == "gain" else dict(RULE_OF_PAPERS)


def kind_of(module: ModuleType, name: str, is_class: bool) -> Any:
    """The classifier or the regressor of a name, such as ``RandomForest``."""
    return getattr(module, f"{name}{'Classifier' if is_class else 'Regressor'}")


def fit_by_eras(model: Any, X: Any, y: Any, eras: Any) -> Any:
    """Fit a model, with the eras if it takes them."""
    known = {"eras": eras} if has_fit_parameter(model, "eras") else {}
    return model.fit(X, y, **known)


def respond(model: Any, X: Any) -> NDArray[np.float64]:
    """Predict numbers, or a classifier's probabilities of the second class."""
    return model.predict_proba(X)[:, 1] if is_classifier(model) else model.predict(X)


def make_autoregressive(values: NDArray[np.float64], rho: float) -> None:
    """Turn independent values, along the last axis, into an AR(1) of their variance."""
    for era in range(1, values.shape[-1]):
        values[..., era] *= np.sqrt(1 - rho**2)
        values[..., era] += rho * values[..., era - 1]


def find_data_file(name: str, data_dir: Path | None) -> Path:
    """A data file in the folder of ``--data``, or a subfolder; an error names both."""
    for folder in [] if data_dir is None else [data_dir, *data_dir.glob("*/")]:
        if (folder / name).is_file():
            return folder / name
    lacks = f"{data_dir} lacks" if data_dir else "No folder was named, and this needs"
    raise ExperimentError(
        f"{lacks} the file {name}: name a folder that has it by --data DIR "
        "(experiments/README.md says what it is, and how to make it)."
    )


def parts_of(
    frame: "pd.DataFrame", *left_out: str
) -> tuple["pd.DataFrame", NDArray[Any], NDArray[Any]]:
    """The features of a table, of which texts are categories, target and eras."""
    X = frame.drop(columns=["target", "era", *left_out])
    for column in X.select_dtypes(exclude=["number", "bool"]).columns:
        text = X[column].astype(object).fillna("missing").astype(str)
        X[column] = text.astype("category")
    return X, frame["target"].to_numpy(np.float64), frame["era"].to_numpy()


def seed_of(*parts: str | int) -> int:
    """A seed for each purpose and run, such as ``seed_of("data", run)``. No two draws
    share their numbers; the same parts give the same seed everywhere.
    """
    words = [zlib.crc32(p.encode()) if isinstance(p, str) else p for p in parts]
    return int(np.random.SeedSequence(words).generate_state(1)[0])


def rows_of(values: Mapping[Any, Any], column: str, **case: Any) -> list[dict]:
    """A row of a case for each value, whose name is in a column."""
    return [{**case, column: name, "value": value} for name, value in values.items()]


def summarize(
    runs: "pd.DataFrame",
    *,
    by: Sequence[str],
    value: str = "value",
    paper: Mapping[Any, float] | None = None,
    paper_by: Sequence[str] | None = None,
    show_runs: bool = False,
) -> "pd.DataFrame":
    """Summarise runs to a row for each cell: the columns `by`, in order of appearance.
    It adds `n_runs`, `mean`, `std` (with n - 1), `paper`, the number of the cell's name
    or tuple of names, those of all columns or of `paper_by`, or NaN, and with
    `show_runs` the values of all runs as text.
    """
    groups = runs.groupby(list(by), sort=False, dropna=False)[value]
    table = groups.agg(n_runs="size", mean="mean", std="std").reset_index()
    cells = table[list(paper_by or by)].itertuples(index=False, name=None)
    keys = [cell if len(cell) > 1 else cell[0] for cell in cells]
    table["paper"] = [(paper or {}).get(key, float("nan")) for key in keys]
    if show_runs:
        texts = groups.agg(lambda values: " ".join(f"{x:.4g}" for x in values))
        table["runs"] = texts.to_numpy()
    return table


def summarize_beside(
    runs: "pd.DataFrame",
    *,
    by: Sequence[str],
    reference: str,
    paper: Mapping[Any, float] | None = None,
) -> "pd.DataFrame":
    """Summarise runs, and each model's distance to the model `reference`, by run. All
    models of a run have the same data, so that `minus_gain`, the mean difference,
    varies less than they do; `minus_gain_se` is its standard error. The model is the
    first column of `by`.
    """
    table = summarize(runs, by=by, paper=paper, show_runs=True)
    case = ["run", *by[1:]]
    is_reference = runs[by[0]] == reference
    others = runs[is_reference].set_index(case)["value"]
    beside = runs.join(others.rename("reference"), on=case)
    differences = (beside["value"] - beside["reference"]).where(~is_reference)
    groups = differences.groupby([runs[name] for name in by], sort=False)
    name = f"minus_{reference}"
    table.insert(table.shape[1] - 1, name, groups.mean().to_numpy())
    table.insert(table.shape[1] - 1, f"{name}_se", groups.sem().to_numpy())
    return table


def measure_cells(
    measure: Callable[..., list[dict]],
    cells: Iterable[dict[str, Any]],
    *,
    cache: Path | None = None,
    n_jobs: int | None = None,
    **shared: Any,
) -> "pd.DataFrame":
    """The rows that `measure` has of each cell, which it gets beside what is `shared`.
    Each fit has one thread. A cell that lacks its data is left out, with a line on
    standard error. What the folder `cache` has is not measured again.
    """
    known = Memory(cache, verbose=0).cache(measure, ignore=[*shared])
    calls = (delayed(_measure_cell)(known, cell, shared) for cell in cells)
    found = Parallel(n_jobs)(calls)
    for text in sorted({text for text in found if isinstance(text, str)}):
        print(text, file=sys.stderr)
    rows = [row for rows in found if not isinstance(rows, str) for row in rows]
    if not rows:
        raise ExperimentError("None of the scenarios has its data.")
    return import_optional("pandas", extra="cli").DataFrame(rows)


def _measure_cell(
    measure: Callable[..., list[dict]], cell: dict[str, Any], shared: dict[str, Any]
) -> list[dict] | str:
    """The rows of a cell with its names, or why there are none."""
    with threadpool_limits(1), warnings.catch_warnings():
        # Trees that end early, and eras without an effect.
        warnings.simplefilter("ignore", UserWarning)
        try:
            return [{**cell, **row} for row in measure(**cell, **shared)]
        except ExperimentError as error:
            return f"{cell['scenario']} is left out. {error}"


def markdown(lines: Sequence[Sequence[Any]]) -> str:
    """Lines of cells as a table of Markdown, the first one above the others."""
    head, *others = lines
    texts = [map(str, line) for line in (head, ["---"] * len(head), *others)]
    return "\n".join(f"| {' | '.join(text)} |" for text in texts)


def format_table(frame: "pd.DataFrame") -> str:
    """A table as text: four digits, and nothing where there is no number."""
    return frame.to_string(
        index=False, na_rep="", float_format=lambda number: f"{number:.4g}"
    )


def write_results(
    frame: "pd.DataFrame", figure: "Figure", out_dir: Path, name: str
) -> tuple[Path, Path]:
    """Write a table, all digits, and its figure to ``NAME.csv`` and ``NAME.png``."""
    csv, png = out_dir / f"{name}.csv", out_dir / f"{name}.png"
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
        frame.to_csv(csv, index=False)
        figure.savefig(png, dpi=150)
    except OSError as error:
        text = f"The results cannot be written to {out_dir}, the folder of --out: "
        raise ExperimentError(f"{text}{error.strerror}.") from error
    return csv, png


def bars(
    label: str, group: str | None = None, panel: str | None = None, **only: Any
) -> "Callable[[pd.DataFrame, Figure], None]":
    """A function that draws a bar for each cell, with its deviation and the paper's.
    `label` names the places of the horizontal axis, `group` the bars of each place, and
    `panel` the axes. Drawn are the cells that have values of `only`, one or several.
    """

    def draw(frame: "pd.DataFrame", figure: "Figure") -> None:
        for name, values in only.items():
            frame = frame[frame[name].isin(np.atleast_1d(values))]
        parts = list(frame.groupby(panel, sort=False)) if panel else [("", frame)]
        figure.set_size_inches(8, 1 + 3 * len(parts))
        panels = figure.subplots(len(parts), squeeze=False).ravel()
        for axes, (title, rows) in zip(panels, parts, strict=True):
            cells = rows.set_index([label, group] if group else [label])
            cells = cells.reindex(columns=["mean", "std", "paper"])
            means, errors, paper = (
                cells[name].unstack(sort=False) if group else cells[[name]]
                for name in cells.columns
            )
            means.plot.bar(ax=axes, title=title, legend=bool(group))
            # Bars come group by group.
            places = [bar.get_x() + bar.get_width() / 2 for bar in axes.patches]
            height, error, published = (
                x.to_numpy().ravel("F") for x in (means, errors, paper)
            )
            axes.errorbar(places, height, error, fmt="none", color="0.3")
            axes.plot(places, published, "D", color="black", markerfacecolor="white")

    return draw
