"""Measure and print the tables of speed and memory, in Markdown.

    python asv_benchmarks/table.py [--all] [--only REGEX] [--quick] [--large] ...

The rows of the README, or also those of the benchmarks page.

The table goes to standard output, each row once measured; seconds, which apply to this
machine only, go to standard error.
"""

import argparse
import platform
import re
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from comparisons.memory import LARGE_ROWS, MEMORY_ROWS
from comparisons.results import NotPossibleHere, Row, Settings
from comparisons.speed import HEADLINES, SPEED_ROWS

ROWS = (*SPEED_ROWS, *MEMORY_ROWS)


def positive_int(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return number


def share(text: str) -> float:
    number = float(text)
    if not 0 < number <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0, and 1 at most")
    return number


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Measure and print the tables of speed and memory."
    )
    add = parser.add_argument
    add("--all", action="store_true", help="all rows, not those of the README alone")
    add("--only", metavar="REGEX", default="", help="of all rows, whose case has this")
    add("--list", action="store_true", help="print the cases only")
    add("--large", action="store_true", help="with the row that needs gigabytes")
    add(
        "--quick",
        action="store_true",
        help="for a first impression: --scale 0.05 --trees 10 --repeats 2",
    )
    add("--repeats", type=positive_int, help="fits of which the best counts (5)")
    add("--threads", type=positive_int, default=2, help="of OpenMP (2)")
    add("--scale", type=share, help="share of each case's rows (1)")
    add("--trees", type=positive_int, help="of each fit (as the case has it)")
    return parser.parse_args(arguments)


def read_settings(options: argparse.Namespace) -> Settings:
    """Return the settings of a command; its options override `--quick`."""
    scale, trees, repeats = (0.05, 10, 2) if options.quick else (1.0, None, 5)
    return Settings(
        n_threads=options.threads,
        repeats=options.repeats or repeats,
        scale=options.scale or scale,
        n_trees=options.trees or trees,
    )


def measure(rows: Sequence[Row], settings: Settings) -> None:
    """Print a table for each kind of rows, and the conditions of measurement below."""
    columns = None
    for row in sorted(rows, key=lambda row: row.columns, reverse=True):
        case = row.case(settings)
        try:
            result = row.measure(settings)
        except NotPossibleHere as reason:
            print(f"{case}: left out, {reason}", file=sys.stderr)
            continue
        if row.columns != columns:
            rule = "---|" * (row.columns.count("|") + 1)
            print("\n" * (columns is not None) + f"| {row.columns} |\n|{rule}")
            columns = row.columns
        print(f"| {case} | {result.value} | {result.leaves} |", flush=True)
        print(f"{case}: {result.seconds}", file=sys.stderr)
    print(
        f"\nOpenMP threads: {settings.n_threads}; best of {settings.repeats}; "
        f"{processor()}; {', '.join(versions())}."
    )


def processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    names = re.findall(
        r"model name\s*: (.*)", cpuinfo.read_text() if cpuinfo.exists() else ""
    )
    return names[0] if names else platform.machine()


def versions() -> list[str]:
    found = []
    for package in ("sklearn-era", "scikit-learn", "lightgbm", "numpy"):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    settings = read_settings(options)
    rows: list[Row] = [*HEADLINES]
    if options.all or options.only or options.list:
        rows += ROWS
    if options.large:
        rows += LARGE_ROWS
    # Fewer rows have fewer eras; cases that differ in eras may become the same.
    cases = {row.case(settings): row for row in rows}
    rows = [row for case, row in cases.items() if re.search(options.only, case)]
    if not rows:
        print(f"No row's case has {options.only!r}; see --list.", file=sys.stderr)
        return 1
    if options.list:
        print("\n".join(row.case(settings) for row in rows))
    else:
        measure(rows, settings)
    return 0


if __name__ == "__main__":
    sys.exit(main())
