"""Run an exported model with the packages that Numerai's images have.

Each Python of the images that is found, such as ``python3.12``, gets a fresh virtual
environment with the versions of that image. There the pickles of a small model, and of
a blend of two with different features, predict live data, by the rules of Numerai's
model upload. The CSV files must be equal to the byte, and to our own predictions.

Requires sklearn_era with pandas and pyarrow, uv, and a package index. Arguments: a
folder for the environments, by default a temporary one, and the versions of Python to
try, by default all::

    python .ci/check_portable_model.py [FOLDER [3.12 ...]]
"""

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.numerai.export import write_blend
from sklearn_era.numerai.export_check import check_portable_model
from sklearn_era.numerai.store import Blend, WeightedFit

# The versions in the lock files of numerai/numerai-predict, at commit 19d1769.
IMAGES = {
    "3.10": {
        "numpy": "1.26.4",
        "pandas": "2.2.1",
        "scikit-learn": "1.6.1",
        "lightgbm": "4.0.0",
        "pyarrow": "14.0.1",
    },
    "3.11": {
        "numpy": "2.1.3",
        "pandas": "2.3.2",
        "scikit-learn": "1.6.1",
        "lightgbm": "4.6.0",
        "pyarrow": "21.0.0",
    },
    "3.12": {
        "numpy": "2.1.3",
        "pandas": "2.3.2",
        "scikit-learn": "1.6.1",
        "lightgbm": "4.5.0",
        "pyarrow": "18.1.0",
    },
    "3.13": {
        "numpy": "2.2.6",
        "pandas": "2.3.3",
        "scikit-learn": "1.6.1",
        "lightgbm": "4.5.0",
        "pyarrow": "18.1.0",
    },
}


def find_python(version: str) -> str | None:
    """Return a Python of the version that runs: pyenv's on PATH may not."""
    name = f"python{version}"
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates = [
        shutil.which(name),
        *map(str, sorted(pyenv.glob(f"versions/{version}.*/bin/{name}"))),
    ]
    program = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"
    for candidate in filter(None, candidates):
        done = subprocess.run(
            [candidate, "-I", "-c", program], capture_output=True, text=True
        )
        if done.returncode == 0 and done.stdout.strip() == version:
            return candidate
    return None


def make_environment(python: str, packages: dict[str, str], folder: Path) -> Path:
    """Return the Python of a new virtual environment with these packages."""
    made = folder / "bin" / "python"
    options = ["--quiet", "--only-binary=:all:", f"--python={made}"]
    requirements = [f"{name}=={version}" for name, version in packages.items()]
    subprocess.run(["uv", "venv", "--quiet", f"--python={python}", folder], check=True)
    # The constraints of this project's own environments have other versions.
    environ = {k: v for k, v in os.environ.items() if k != "UV_CONSTRAINT"}
    install = ["uv", "pip", "install", *options, *requirements]
    subprocess.run(install, check=True, env=environ)
    return made


def make_frame(n_rows: int, eras: list[str], seed: int) -> pd.DataFrame:
    """Return rows in Numerai's layout: ids, eras, small integers."""
    rng = np.random.default_rng(seed)
    names = [f"feature_{index}" for index in range(40)]
    frame = pd.DataFrame(
        rng.integers(0, 5, (n_rows, len(names)), dtype=np.int8), columns=names
    )
    frame.insert(0, "era", rng.choice(eras, n_rows))
    frame.insert(1, "data_type", "live")
    frame.index = pd.Index([f"n{i:015x}" for i in rng.permutation(n_rows)], name="id")
    return frame


def make_part(
    train: pd.DataFrame, names: list[str], seed: int, weight: float
) -> WeightedFit:
    """Return a model of some features, as a part of a blend."""
    noise = np.random.default_rng(seed).normal(size=len(train))
    target = train[names[0]] * 0.1 + train[names[1]] * 0.05 + noise
    model = HistGradientBoostingRegressor(
        max_iter=200, split_criterion="directional", early_stopping=False
    )
    model.fit(train[names], target, eras=train["era"])
    return WeightedFit(model, names, weight)


def expected_csv(blend: Blend, frame: pd.DataFrame) -> bytes:
    """Return our own predictions, one era at a time."""
    ranks = pd.Series(0.0, index=frame.index, name="prediction")
    for _, rows in frame.groupby("era"):
        ranks[rows.index] = blend.ranks(rows)
    return ranks.to_frame().to_csv().encode()


def main(folder: Path, versions: list[str]) -> bool:
    """Return whether all Pythons found predict the same."""
    train = make_frame(20_000, [f"{era:04d}" for era in range(1, 21)], seed=0)
    names = [name for name in train if name.startswith("feature_")]
    one, other = (
        make_part(train, names[:25], 1, 1.0),
        make_part(train, names[:14:-1], 2, 0.3),
    )
    blends = {"model": Blend([one]), "blend": Blend([one, other])}
    frames = {
        "live": make_frame(6_000, ["X"], seed=2),
        "eras": make_frame(6_000, ["0021", "0022", "0023"], seed=3),
    }
    for name, blend in blends.items():
        write_blend(blend, folder / f"{name}.pkl")
    for kind, frame in frames.items():
        frame.to_parquet(folder / f"{kind}.parquet")

    tried = {version: find_python(version) for version in versions}
    pythons: dict[str, Path] = {f"this {sys.version.split()[0]}": Path(sys.executable)}
    for version, python in tried.items():
        if python is None:
            print(f"Python {version}: not found, not checked")
            continue
        start = time.monotonic()
        pythons[version] = make_environment(python, IMAGES[version], folder / version)
        print(f"Python {version}: installed in {time.monotonic() - start:.0f} s")
    all_same = True
    output = folder / "predictions.csv"
    for (where, python), name, kind in itertools.product(
        pythons.items(), blends, frames
    ):
        check = check_portable_model(
            folder / f"{name}.pkl",
            folder / f"{kind}.parquet",
            python=python,
            output=output,
        )
        same = output.read_bytes() == expected_csv(blends[name], frames[kind])
        all_same &= same
        packages = " ".join(f"{package} {v}" for package, v in check.versions.items())
        print(
            f"Python {where}, {name}, {kind}: "
            f"{'same bytes' if same else 'OTHER PREDICTIONS'}; "
            f"{check.rows} rows, {check.seconds:.1f} s, "
            f"{check.peak_bytes / 2**20:.0f} MiB; {packages}",
            *check.warnings,
            sep="\n  ",
        )
    if len(pythons) == 1:
        print("None of the images' versions of Python was found.")
        return False
    return all_same


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else name).absolute()
        sys.exit(not main(folder, sys.argv[2:] or list(IMAGES)))
