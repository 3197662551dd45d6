"""Write the patched scikit-learn files into the build folder; Meson runs this.

``vendor.py --list`` prints the names of the files, one per line, if the scikit-learn
that is installed is the one to patch.
``vendor.py --out DIR --depfile FILE`` writes those whose bytes changed, and a depfile
that names everything they were made from.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import patch_series
import unified_diff


def main(argv: Sequence[str] | None = None, folder: Path = patch_series.FOLDER) -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="print the file names only")
    parser.add_argument("--out", type=Path, help="folder to write the files to")
    parser.add_argument("--depfile", type=Path, help="depfile to write, for Ninja")
    arguments = parser.parse_args(argv)
    if not arguments.list and None in (arguments.out, arguments.depfile):
        parser.error("either --list or both --out and --depfile are needed")
    try:
        if arguments.list:
            # As this runs first of all, nothing is compiled against other bytes.
            for path in patch_series.read_upstream(patch_series.read_pin(folder)):
                print(Path(path).name)
        else:
            vendor(folder, arguments.out, arguments.depfile)
    except (unified_diff.PatchError, OSError) as error:
        print(f"error: cannot patch scikit-learn: {error}", file=sys.stderr)
        return 1
    return 0


def vendor(folder: Path, out: Path, depfile: Path) -> None:
    """Patch and rename the pinned files in memory, then write those that changed.

    `out` is spelled as Ninja spells it, since the depfile repeats it.
    """
    pin = patch_series.read_pin(folder)
    patches = patch_series.read_series(folder)
    texts = patch_series.read_upstream(pin)
    for patch in patches:
        texts = unified_diff.apply(patch, texts)
    out.mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        target, data = out / Path(path).name, pin.rename(text).encode("utf-8")
        # Ninja compiles again what has a new modification time.
        if not target.is_file() or target.read_bytes() != data:
            target.write_bytes(data)
    names = ("UPSTREAM", "series", *(patch.name for patch in patches))
    scripts = (__file__, patch_series.__file__, unified_diff.__file__)
    inputs = [*(folder / name for name in names), *map(Path, scripts)]
    inputs += patch_series.locate_upstream(pin).values()
    targets = " ".join(_escape(out / Path(path).name) for path in texts)
    sources = " \\\n  ".join(_escape(path.resolve()) for path in inputs)
    depfile.write_text(f"{targets}: \\\n  {sources}\n", encoding="utf-8")


def _escape(path: Path) -> str:
    """Spell a path as Ninja's depfile parser reads it."""
    text = path.as_posix().replace("$", "$$")
    return text.replace("#", "\\#").replace(" ", "\\ ")


if __name__ == "__main__":
    sys.exit(main())
