"""Pickles that are nothing but calls of public functions and constructors, by name.

A usual pickle holds the state of objects, which belongs to the versions of Python and
of the libraries that wrote it. One of calls holds what a program would say to make the
objects, and is written without them being installed.
"""

import pickle
import struct
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Call", "Global", "Partial", "dump_calls", "method"]

_PROTOCOL = 4  # of Python 3.4; for strings of bytes beyond 4 GiB


@dataclass(frozen=True)
class Global:
    """A function or class, by the module and name under which it is public."""

    module: str
    name: str


@dataclass(frozen=True)
class Partial:
    """A callable with some of its keyword arguments, a ``functools.partial``."""

    function: Any
    keywords: dict[str, Any]


@dataclass(frozen=True)
class Call:
    """What a function returns for arguments, once the pickle is read."""

    function: Any
    arguments: tuple[Any, ...]
    keywords: dict[str, Any] = field(default_factory=dict)


def method(instance: Any, name: str) -> Call:
    """A bound method, written as ``pickle`` itself writes them."""
    return Call(Global("builtins", "getattr"), (instance, name))


def dump_calls(value: Any) -> bytes:
    """Pickle a value made of calls.

    Parameters
    ----------
    value : Call, Partial, Global, tuple, list, dict, str, bytes, int, float, bool, None
        What to pickle. Values in containers and arguments are of the same kinds.

    Returns
    -------
    pickled : bytes
        A pickle of protocol 4, which ``pickle.load`` reads.

    Raises
    ------
    TypeError
        If there is a value of another type.

    Examples
    --------
    >>> import pickle
    >>> from sklearn_era.numerai.model_upload.pickle_calls import (
    ...     Call, Global, dump_calls
    ... )
    >>> pickle.loads(dump_calls(Call(Global("builtins", "max"), (1, 3, 2))))
    3
    """
    parts = [pickle.PROTO, bytes([_PROTOCOL])]
    _write(value, parts)
    parts.append(pickle.STOP)
    return b"".join(parts)


def _write(value: Any, parts: list[bytes]) -> None:
    """Append the opcodes that leave a value on the stack."""
    match value:
        case None:
            parts.append(pickle.NONE)
        case bool():
            parts.append(pickle.NEWTRUE if value else pickle.NEWFALSE)
        case int():
            parts += [pickle.INT, b"%d\n" % value]
        case float():
            parts += [pickle.BINFLOAT, struct.pack(">d", value)]
        case str():
            encoded = value.encode()
            parts += [pickle.BINUNICODE, struct.pack("<I", len(encoded)), encoded]
        case bytes():
            parts += [pickle.BINBYTES8, struct.pack("<Q", len(value)), value]
        case tuple():
            parts.append(pickle.MARK)
            for item in value:
                _write(item, parts)
            parts.append(pickle.TUPLE)
        case list():
            parts += [pickle.EMPTY_LIST, pickle.MARK]
            for item in value:
                _write(item, parts)
            parts.append(pickle.APPENDS)
        case dict():
            parts += [pickle.EMPTY_DICT, pickle.MARK]
            for item in value.items():
                for key_or_value in item:
                    _write(key_or_value, parts)
            parts.append(pickle.SETITEMS)
        case Global():
            _write(value.module, parts)
            _write(value.name, parts)
            parts.append(pickle.STACK_GLOBAL)
        case Partial():
            # The state of a partial is a tuple that has not changed since Python 3.
            _write(Call(Global("functools", "partial"), (value.function,)), parts)
            _write((value.function, (), value.keywords, None), parts)
            parts.append(pickle.BUILD)
        case Call():
            function = value.function
            if value.keywords:
                function = Partial(function, value.keywords)
            _write(function, parts)
            _write(value.arguments, parts)
            parts.append(pickle.REDUCE)
        case _:
            raise TypeError(
                f"A {type(value).__module__}.{type(value).__qualname__} cannot be "
                "written as calls."
            )
