"""Runs the program's commands for the tests, and makes tables for them."""

from pathlib import Path

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from sklearn_era.cli._commands import app
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.model_files import save_model

N_ROWS = 600


def invoke(*arguments, app=app):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def run(*arguments):
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def fail(*arguments, exit_code=2, app=app):
    """Run the program; return the one sentence that it fails with."""
    result = invoke(*arguments, app=app)
    assert result.exit_code == exit_code, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("Error: ").rstrip("\n")


def read(path, **options):
    """Read a table, its numbers to the last bit."""
    path = Path(path)
    if path.suffix in (".parquet", ".feather"):
        return getattr(pd, f"read_{path.suffix[1:]}")(path)
    if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1):
        options["float_precision"] = "round_trip"
    return pd.read_csv(path, sep="\t" if ".tsv" in path.name else ",", **options)


def write(frame, path):
    """Write a table in the format of the file's name; return the name."""
    if path.endswith(".parquet"):
        frame.to_parquet(path, index=False)
    elif path.endswith(".feather"):
        frame.to_feather(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in path else ",")
    return path


def make_frame():
    """A table with columns of all kinds."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((N_ROWS, 4))
    y = X[:, 0] - X[:, 1] + rng.standard_normal(N_ROWS)
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    frame["sector"] = rng.choice(["energy", "tech", "health"], N_ROWS)
    frame["grade"] = rng.choice([1, 2, 30], N_ROWS)
    frame["week"] = rng.randint(1, 6, N_ROWS)
    frame["row"] = [f"{number:05}" for number in range(N_ROWS)]
    frame["y"] = y
    frame["up"] = (y > 0).astype(int)
    frame["class"] = np.array(["low", "mid", "high"])[np.digitize(y, [-1, 1])]
    return frame


def make_features(frame):
    """The features of `make_frame` as commands are to hand them to an estimator."""
    X = frame[["a", "b", "c", "d", "sector", "grade"]].copy()
    X["sector"] = pd.Categorical(X["sector"])
    X["grade"] = pd.Categorical(X["grade"].astype(str))
    return X


def shops_by_week():
    """Rows of 12 shops in 16 weeks, and those of the last one, of which two are new."""
    rng, (n_weeks, n_shops) = np.random.default_rng(0), (16, 12)
    week, shop, _ = map(np.ravel, np.indices((n_weeks, n_shops, 4)))
    dates = pd.date_range("2024-01-01", periods=n_weeks, freq="7D")[week]
    rows = pd.DataFrame({"a": rng.normal(size=week.size), "shop": 101 + shop})
    rows = rows.assign(shop=rows.shop.astype(str), week=dates.strftime("%Y-%m-%d"))
    rows["y"] = rows.a + rng.normal(size=n_shops)[shop] + 0.1 * week
    asked = rows[week == 15].reset_index(drop=True)
    is_new = asked.shop < "103"
    return rows, asked.assign(shop=np.where(is_new, "9" + asked.shop, asked.shop))


def make_small_folder(folder):
    """A table, ``d.csv``, and a model fitted on it, ``m.era``; return the table."""
    rng = np.random.RandomState(0)
    frame = pd.DataFrame(rng.standard_normal((60, 2)), columns=["alpha", "beta"])
    frame["sector"] = rng.choice(["energy", "tech"], 60)
    frame["week"] = np.arange(60) % 4
    frame["y"] = frame["alpha"] + rng.standard_normal(60)
    frame.to_csv(Path(folder) / "d.csv", index=False)
    estimator = HistGradientBoostingRegressor(max_iter=1)
    estimator.fit(frame[["alpha", "beta"]], frame["y"])
    save_model(estimator, Path(folder) / "m.era", target="y")
    return frame


def fit(data="d.csv", target="y", out="new.era", features=("alpha,beta",)):
    """The arguments of a fit on the small table, those that are given changed."""
    chosen = [argument for value in features for argument in ("--features", value)]
    return ["fit", data, "--target", target, "--out", out, *chosen]


def predict(model="m.era", data="d.csv", out="p.csv"):
    """The arguments of a prediction of the small table, those given changed."""
    return ["predict", model, data, "--out", out]


def params(**values):
    return [x for k, v in values.items() for x in ("--param", f"{k}={v}")]
