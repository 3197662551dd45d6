"""Check the contents of an sdist and its wheels: ``check_distributions.py DIR``.

None may contain a source of scikit-learn, all must contain the licences, and a wheel
must contain the patches, the type marker and no files for builds only.
"""

import sys
import tarfile
import zipfile
from pathlib import Path

NOTICES = ("LICENSE", "LICENSES/scikit-learn-COPYING.txt")
UPSTREAM = (
    "_hist_gradient_boosting/grower.py",
    "_hist_gradient_boosting/gradient_boosting.py",
)
NEEDED = (
    *NOTICES,
    "sklearn_era/py.typed",
    "_hist_gradient_boosting/UPSTREAM",
    "_hist_gradient_boosting/series",
    "_hist_gradient_boosting/gradient-boosting-make-growers.patch",
)


def problems(folder: Path) -> list[str]:
    (sdist,) = folder.glob("*.tar.gz")
    wheels = sorted(folder.glob("*.whl"))
    with tarfile.open(sdist) as archive:
        in_sdist = archive.getnames()

    def lacks(names: list[str], suffix: str) -> bool:
        return not any(name.endswith(suffix) for name in names)

    found = [] if wheels else [f"{folder} holds no wheel"]
    found += [f"sdist lacks {name}" for name in NOTICES if lacks(in_sdist, name)]
    held = {sdist.name: in_sdist}
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            in_wheel = held[wheel.name] = archive.namelist()
        found += [
            f"{wheel.name} lacks {name}" for name in NEEDED if lacks(in_wheel, name)
        ]
        found += [
            f"{wheel.name} holds {name}"
            for name in in_wheel
            if name.startswith(("patches/", "tests/")) or name.endswith((".pyx", ".c"))
        ]
    found += [
        f"{file} holds upstream's {name}"
        for file, names in held.items()
        for name in UPSTREAM
        if not lacks(names, name)
    ]
    return found


if __name__ == "__main__":
    found = problems(Path(sys.argv[1]))
    print("\n".join(found) or "distributions hold what they should")
    sys.exit(bool(found))
