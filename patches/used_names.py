"""The names of scikit-learn that our modules use, compared with another release.

A release is the folder that contains its `sklearn`. Names are found in the text, and
count only if the pinned release has them, so that wrong guesses do no harm.
"""

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from patch_series import PatchError, read_text

_IMPORT = re.compile(
    r"^ *from (sklearn(?:\.[\w.]+)?) import (\([^)]*\)|.*)", re.MULTILINE
)
# A definition of a private member, with its parameters if it is a function.
_MEMBER = re.compile(
    r"(?:def |self\.|^ +)(_[a-z]\w*) *(?:(\([^)]*\))|[:=])", re.MULTILINE
)
BY_RELEASE = "_scikit_learn.py"  # has alternatives for names that a release lacks
_HIST = "sklearn.ensemble._hist_gradient_boosting"  # the base classes of ours

# Prints the parameters of importable names, if they have any, and null for the rest.
_PROBE = """
import inspect, json, sys, sklearn
def look(module, name):
    name, *attributes = name.split(".")
    try:
        exec(f"from {module} import {name} as value", scope := {})
        for attribute in attributes:
            scope["value"] = getattr(scope["value"], attribute)
    except Exception:
        return None
    try:
        return str(inspect.signature(scope["value"]))
    except (TypeError, ValueError):
        return ""
json.dump([look(*use) for use in json.load(sys.stdin)], sys.stdout)
"""

# A module and a name in it, with dots before attributes. Members may be of any module,
# or of our base classes' modules if we define one of that name.
Use = tuple[str, str]
Users = defaultdict[Use, set[str]]  # the files that use it
Found = dict[Use, str]  # the parameters, if known


def compare(package: Path, pinned: Path, release: Path) -> tuple[list[str], list[str]]:
    """List names that `package` uses, and a release lacks or defines differently."""
    missing, changed = {}, {}  # keys in order, once each
    for look, users in zip((_import, _defined), _read_uses(package), strict=True):
        had, has = look(pinned, users), look(release, users)
        for use in sorted(users.keys() & had):
            first, *more = sorted(users[use])
            where = f"{first} and {len(more)} more" if more else first
            line = f"{'.'.join(filter(None, use))}: {where}"
            if use not in has:
                missing[line] = None
            elif had[use] != has[use]:
                changed[line] = None
    return list(missing), list(changed)


def _read_uses(package: Path) -> tuple[Users, Users]:
    """Find imports, and private members of any object."""
    imports, members = defaultdict(set), defaultdict(set)
    private: defaultdict[str, set[str]] = defaultdict(set)
    own: set[str] = set()
    for file in package.rglob("*.p*"):
        if file.suffix not in (".py", ".pyx", ".pxd") or file.name == BY_RELEASE:
            continue
        where = file.relative_to(package).as_posix()
        text = re.sub("#.*", "", read_text(file))
        for module, names in _IMPORT.findall(text):
            for name, alias in re.findall(r"(\w+)(?: +as +(\w+))?", names):
                attributes = re.findall(rf"(?<![\w.]){alias or name}\.(\w+)", text)
                for use in (name, *(f"{name}.{attribute}" for attribute in attributes)):
                    imports[module, use].add(where)
        code = re.sub(r"^ *(?:from|c?import) .*", "", text, flags=re.MULTILINE)
        own.update(name for name, _ in _MEMBER.findall(code))
        for name in re.findall(r"(?:\.|def )(_[a-z]\w*)", code):
            private[name].add(where)
    for name, files in private.items():
        members[_HIST if name in own else "", name] = files
    return imports, members


def _import(release: Path, uses: Iterable[Use]) -> Found:
    """Import names in a process that finds the release before the installed one."""
    uses = list(uses)
    done = subprocess.run(
        [sys.executable, "-c", _PROBE],
        env={**os.environ, "PYTHONPATH": str(release)},
        input=json.dumps(uses),
        capture_output=True,
        encoding="utf-8",
    )
    if done.returncode:
        reason = done.stderr.strip().rpartition("\n")[2]
        raise PatchError(f"{release}: sklearn cannot be imported: {reason}")
    found = zip(uses, json.loads(done.stdout), strict=True)
    return {use: parameters for use, parameters in found if parameters is not None}


def _defined(release: Path, uses: Iterable[Use]) -> Found:
    """Look for private functions, methods and attributes outside of tests."""
    found: defaultdict[Use, set[str]] = defaultdict(set)
    for file in (release / "sklearn").rglob("*.py"):
        if "tests" in file.parts:
            continue
        in_hist = _HIST.replace(".", "/") in file.as_posix()
        for name, parameters in _MEMBER.findall(read_text(file)):
            found["", name] |= set()  # Many classes have methods of one name.
            if in_hist:
                found[_HIST, name].add("".join(parameters.split()))
    return {use: " ".join(sorted(found[use])) for use in uses if use in found}
