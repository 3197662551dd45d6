"""Draw docs/packages.svg: the packages, and their imports of each other.

    python docs/packages.py

Packages, their descriptions and imports are read from the sources. No picture is drawn
while modules or folders import each other in a circle.
"""

import ast
import re
from graphlib import CycleError, TopologicalSorter
from html import escape
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1] / "sklearn_era"
PICTURE = Path(__file__).with_suffix(".svg")

# From top to bottom. A package's imports should be above it; others are red.
LAYERS = {
    "Beneath all": (
        "#8290a6",
        "_typing _scikit_learn _optional _files _plotting _progress _warnings _threads "
        "_fit_attributes _parameter_object effects _era_labels _era_calendar "
        "_label_columns _eras _era_axes _era_columns _era_arguments _era_routing "
        "_target_statistics _tables _trees",
    ),
    "Rows become bytes": ("#0d9488", "_binning"),
    "What a split is worth": ("#8b5cf6", "criteria _criteria"),
    "Plan, accumulate, merge, rank": ("#3b82f6", "_exchange _splitting"),
    "Prediction": ("#0891b2", "_prediction"),
    "Boosters and forests": (
        "#16a34a",
        "_criterion_plan _parameter_table _parameters _feature_penalty _docstrings "
        "_warm_start _fit_state _callbacks _estimator _hist_gradient_boosting "
        "_boosters _forests",
    ),
    "What uses these": (
        "#ca8a04",
        "datasets environments metrics model_selection preprocessing calibration auto "
        "_just_train_twice causal rules inspection interop model_files numerai dask "
        "cli _pyinstaller __main__",
    ),
}
PACKAGES = [name for _, names in LAYERS.values() for name in names.split()]

# Imports within functions count, since they tie modules all the same. Those for types
# alone, in `if TYPE_CHECKING`, do not: they are not run.
NOT_RUN = re.compile(r"#.*|\\\n|^if TYPE_CHECKING:\n(?: .*\n|\n)*", re.M)
INCLUDE = re.compile(r"^include +[\"'](\w+)\.pxi[\"']", re.M)
IMPORT = re.compile(r"^ *(?:from +(\.*)([\w.]*) +)?c?import\b *(\([^)]*\)|.+)", re.M)
PACKAGE = re.compile(r"\bsklearn_era\.(?:ensemble\.)?(\w+)")
RED = "#e11d48"
STYLE = """
text { font: 12px system-ui, Helvetica, Arial, sans-serif; fill: #475569 }
.page { fill: #ffffff } .box { fill: #f1f5f9 } .name { font-weight: 600; fill: #0f172a }
.row { stroke: #cbd5e1; shape-rendering: crispEdges }
.line { fill: none; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
  .page { fill: #0f172a } .box { fill: #1e293b } .name { fill: #f8fafc }
  .row { stroke: #475569 } text { fill: #cbd5e1 }
}
"""


def imported_names(path, folder):
    """Yield the full names that a file of a folder imports."""
    text = INCLUDE.sub(r"from . cimport \1", NOT_RUN.sub(" ", path.read_text()))
    for dots, module, names in IMPORT.findall(text):
        parents = folder[: len(folder) + 1 - len(dots)] if dots else ()
        source = [*parents, module] if module else parents
        for name in names.strip("()").split(","):
            if name.strip():
                yield ".".join([*source, name.split()[0]])


def read_imports(root=ROOT):
    """Return the full names that each module imports; a .pxd and its .pyx are one."""
    imports = {}
    for path in sorted(root.rglob("*")):
        if path.suffix in (".py", ".pyx", ".pxd", ".pxi"):
            *folder, name = path.relative_to(root.parent).with_suffix("").parts
            module = ".".join(folder if name == "__init__" else [*folder, name])
            imports.setdefault(module, set()).update(imported_names(path, folder))
    return imports


def check_circles(imports):
    """Raise ValueError if modules and folders beside each other import in a circle.

    An import of a.b.x by a.c.y is one of a.b by a.c. The __init__ of a is beside a.b.
    """
    sorter = TopologicalSorter()
    for module, names in imports.items():
        for name in sorted(names):
            while name and name not in imports:
                name = name.rpartition(".")[0]
            both = module.split("."), name.split(".")
            for n, (one, other) in enumerate(zip_longest(*both), 1):
                if one != other:
                    sorter.add(*(".".join(parts[:n]) for parts in both))
                    break
    try:
        sorter.prepare()
    except CycleError as error:
        circle = " -> ".join(reversed(error.args[1]))
        raise ValueError(f"Imports in a circle: {circle}") from None


def read_packages(modules):
    """Return the path of each package, and the packages that it imports."""
    children = [*ROOT.iterdir(), *(ROOT / "ensemble").iterdir()]
    paths = {p.stem: p for p in children if p.suffix == ".py" or any(p.glob("*.py"))}
    if missing := paths.keys() - {"__init__", "ensemble", *PACKAGES}:
        raise ValueError(f"Put {sorted(missing)} into a layer of docs/packages.py.")
    public = {  # names of a package that `from sklearn_era.ensemble` imports
        f"sklearn_era.ensemble.{name.rpartition('.')[2]}": name
        for name in modules["sklearn_era.ensemble"]
    }
    imports = {package: set() for package in PACKAGES}
    for module, names in modules.items():
        full = " ".join(public.get(name, name) for name in names)
        for package in {*PACKAGE.findall(module)} & {*PACKAGES}:
            imports[package] |= {*PACKAGE.findall(full)} & {*PACKAGES} - {package}
    return paths, imports


def draw(paths, imports):
    """Draw a box for each package, a line to it, and a dot for each import of it."""
    boxes, lines, dots = [], [], []
    imported = [p for p in PACKAGES if any(p in names for names in imports.values())]
    x = {package: 880 - 13 * track for track, package in enumerate(imported)}
    y, colours, top = {}, {}, 4
    for layer, (colour, packages) in LAYERS.items():
        boxes.append(f'<text x="16" y="{top + 20}">{layer}</text>')
        top += 26
        for package in packages.split():
            y[package], colours[package], path = top + 17, colour, paths[package]
            source = path / "__init__.py" if path.is_dir() else path
            summary = ast.get_docstring(ast.parse(source.read_text())).splitlines()[0]
            inner = ", ".join(sorted(p.parent.name for p in path.glob("*/__init__.py")))
            inner = f" with {inner}" if inner and package[0] == "_" else ""
            boxes.append(
                f'<rect class="box" x="16" y="{top}" width="510" height="34"/>'
                f'<rect x="16" y="{top}" width="4" height="34" fill="{colour}"/>'
                f'<text x="30" y="{top + 14}"><tspan class="name">{package}</tspan>'
                f'{inner}</text><text x="30" y="{top + 29}">'
                f"{escape(summary.replace('`', ''))}</text>"
            )
            top += 38
    for package, other in (
        (p, o) for p in PACKAGES for o in PACKAGES if o in imports[p]
    ):
        start, end, is_red = y[other] - 6, y[package] + 6, y[package] < y[other]
        colour = RED if is_red else colours[other]
        lines += [
            f'<path class="row" d="M526 {end}H{x[other]}"/>',
            f'<path class="line" stroke="{colour}" d="M532 {start}H{x[other] - 6}'
            f'q6 0 6 {-6 if is_red else 6}V{end}"/>',
            f'<path fill="{colour}" d="M528 {start}l8 -4v8z"/>',
        ]
        dots.append(f'<circle cx="{x[other]}" cy="{end}" r="4" fill="{colour}"/>')
    lines.sort(key=lambda line: 'class="row"' not in line)  # these are below the others
    size = f'width="900" height="{top + 34}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 {top + 34}" {size}>',
        f'<style>{STYLE}</style><rect class="page" {size} rx="8"/>',
        *boxes, *lines, *dots,
        f'<text x="16" y="{top + 18}">A dot in the row of a package: it imports the '
        "package to which the line leads. Red: against the order.</text>\n</svg>\n",
    ]  # fmt: skip
    return "\n".join(parts)


def picture():
    """Return the text of docs/packages.svg."""
    imports = read_imports()
    check_circles(imports)
    return draw(*read_packages(imports))


if __name__ == "__main__":
    PICTURE.write_text(picture())
