"""Encode values as JSON and plain .npy arrays, and decode them. A value whose kind JSON
lacks is an object with the kind as its key: ``{"tuple": [...]}``, or ``{"array": 3}``
for ``arrays/3.npy``.
"""

import io
import math
import zipfile
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray
from sklearn._loss import loss as losses
from sklearn.base import BaseEstimator
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import Bunch

from .._era_labels import OrderedLabels, in_order_of
from .._optional import import_optional
from ._estimators import rebuild, take_apart

_SEQUENCES: dict[str, Any] = {"tuple": tuple, "set": set, "frozenset": frozenset}
_CONTAINERS = _SEQUENCES | {"dict": dict, "bunch": lambda items: Bunch(**dict(items))}
_FROM_TEXT: dict[str, Any] = {
    "date": date.fromisoformat, "time": time.fromisoformat, "Decimal": Decimal,
}  # fmt: skip
_LOSSES = {
    "AbsoluteError", "HalfBinomialLoss", "HalfGammaLoss", "HalfMultinomialLoss",
    "HalfPoissonLoss", "HalfSquaredError", "PinballLoss",
}  # fmt: skip


class ValueWriter:
    """Encodes values as JSON, and writes their arrays to an archive."""

    def __init__(self, archive: zipfile.ZipFile):
        self._archive = archive
        self._n_arrays = 0

    def encode(self, value: Any) -> Any:
        """Return a value in a form that JSON has, and write the arrays in it to the
        model file. Raise TypeError for a type that model files cannot hold.
        """
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if kind is list:
            return [self.encode(item) for item in value]
        if kind in _SEQUENCES.values():
            return {kind.__name__: [self.encode(item) for item in value]}
        if isinstance(value, dict):
            name = "bunch" if kind is Bunch else "dict"
            return {name: [*map(self._encode_item, value.items())]}
        if isinstance(value, np.generic) and not value.dtype.hasobject:
            return {"scalar": self._add(np.asarray(value))}
        if kind is np.ma.MaskedArray:
            mask = np.ma.getmaskarray(value)
            return {"masked": [self.encode(value.data), self.encode(mask)]}
        if kind is OrderedLabels:
            labels = value.categories, np.asarray(value)
            return {"ordered": [*map(self.encode, labels)]}
        if kind in (np.ndarray, np.memmap):
            if value.dtype.hasobject:
                return {"objects": [self.encode([*value.flat]), list(value.shape)]}
            return {"array": self._add(value)}
        if isinstance(value, BaseEstimator | BaseCrossValidator):
            name, *parts = take_apart(value)
            return {"estimator": [name, *map(self.encode, parts)]}
        if kind.__name__ in _LOSSES and kind is getattr(losses, kind.__name__):
            arguments = {}
            if kind is losses.PinballLoss:
                arguments["quantile"] = value.closs.quantile
            if kind is losses.HalfMultinomialLoss:
                arguments["n_classes"] = value.n_classes
            return {"loss": [kind.__name__, arguments, value.constant_hessian]}
        if kind is np.random.RandomState:
            return {"random": self.encode(value.get_state(legacy=False))}
        if kind is np.random.Generator:
            return {"random": self.encode(value.bit_generator.state)}
        if kind in (date, time, Decimal):
            return {kind.__name__: str(value)}
        if kind is timedelta:
            return {"timedelta": [value.days, value.seconds, value.microseconds]}
        name = kind.__name__ if kind.__module__.startswith("pandas") else ""
        if kind is datetime or name in ("Timestamp", "NaTType"):
            which = "timestamp" if name else "datetime"
            return {which: [value.isoformat(), str(value.tzinfo)]}
        if name == "Period":
            return {"period": [value.ordinal, value.freqstr]}
        if name == "Timedelta":
            return {"duration": self.encode(value.to_timedelta64())}
        raise TypeError(f"{kind.__module__}.{kind.__qualname__}")

    def _encode_item(self, item: tuple[Any, Any]) -> list[Any]:
        """Return the encoded item of a dict; add its key as a note to a TypeError."""
        try:
            return [self.encode(x) for x in item]
        except TypeError as error:
            error.add_note(str(item[0]))
            raise

    def _add(self, array: NDArray[Any]) -> int:
        number = self._n_arrays
        self._n_arrays += 1
        with self._archive.open(_member(number), "w", force_zip64=True) as file:
            np.lib.format.write_array(file, array, (1, 0), allow_pickle=False)
        return number


class ValueReader:
    """Decodes values that `ValueWriter` wrote; invalid input may raise any error."""

    def __init__(self, archive: zipfile.ZipFile):
        self._archive = archive
        self._read: set[int] = set()

    def decode(self, node: object) -> Any:
        """Return the value that `ValueWriter.encode` turned into the JSON `node`."""
        if isinstance(node, list):
            return [self.decode(item) for item in node]
        if not isinstance(node, dict):
            return node
        ((kind, content),) = node.items()
        if kind == "float":
            return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[content]
        if kind in _CONTAINERS:
            return _CONTAINERS[kind](map(self.decode, content))
        if kind == "scalar":
            return self._array(content)[()]
        if kind == "array":
            return self._array(content)
        if kind == "objects":
            items, shape = self.decode(content)
            return np.fromiter(items, dtype=object).reshape(shape)
        if kind == "masked":
            return np.ma.MaskedArray(*self.decode(content))
        if kind == "estimator":
            name, parameters, attributes = content
            return rebuild(name, self.decode(parameters), self.decode(attributes))
        if kind == "loss":
            name, arguments, constant_hessian = content
            if name not in _LOSSES or type(constant_hessian) is not bool:
                raise ValueError(f"it has the unknown loss {name!r}")
            loss = getattr(losses, name)(**arguments)
            loss.constant_hessian = constant_hessian
            return loss
        if kind == "random":
            return _generator(self.decode(content))
        if kind == "ordered":
            return in_order_of(*map(self.decode, content))
        if kind in _FROM_TEXT:
            return _FROM_TEXT[kind](content)
        if kind == "timedelta":
            return timedelta(*content)
        if kind == "datetime":
            return _in_zone(datetime.fromisoformat(content[0]), content[1])
        if kind in ("timestamp", "period", "duration"):
            pandas = import_optional("pandas", extra="cli")
            if kind == "timestamp":
                return _in_zone(pandas.Timestamp(str(content[0])), content[1])
            if kind == "period":
                return pandas.Period(ordinal=int(content[0]), freq=str(content[1]))
            return pandas.Timedelta(self.decode(content))
        raise ValueError(f"it has a value of the unknown kind {kind!r}")

    def _array(self, number: int) -> NDArray[Any]:
        """Return the array of this number from the archive; raise ValueError if it was
        read before, holds objects, or has another size than its header states.
        """
        if number in self._read:
            raise ValueError("it uses an array twice")
        self._read.add(number)
        content = bytearray(self._archive.read(_member(number)))
        file = io.BytesIO(content)
        if np.lib.format.read_magic(file) != (1, 0):
            raise ValueError("an array is of another version")
        shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(file)
        is_node = dtype.names == PREDICTOR_RECORD_DTYPE.names and not dtype.hasobject
        if dtype.kind not in "biufcmMUS" and not is_node:
            raise ValueError(f"an array has the dtype {dtype}")
        if math.prod(shape) * dtype.itemsize != len(content) - file.tell():
            raise ValueError("an array has another length than its shape")
        flat = np.frombuffer(content, dtype, math.prod(shape), file.tell())
        array = flat.reshape(shape, order="F" if is_fortran else "C")
        return np.require(array, requirements="A")


def _member(number: int) -> str:
    return f"arrays/{int(number)}.npy"


def _in_zone(stamp: datetime, name: str) -> datetime:
    """Return a time in the named zone, or unchanged if the zone is unknown here."""
    with suppress(KeyError, ValueError):
        return stamp if name == "None" else stamp.astimezone(ZoneInfo(name))
    return stamp


def _generator(state: Any) -> Any:
    """Return a random generator with a state, after checks that NumPy leaves out."""
    if state["bit_generator"] == "MT19937":
        if not 0 <= state["state"]["pos"] <= 624:
            raise ValueError("a random state points outside its numbers")
        generator = np.random.RandomState()
        generator.set_state(state)
        return generator
    if state["bit_generator"] != "PCG64":
        raise ValueError("it has an unknown generator of random numbers")
    bits = np.random.PCG64()
    bits.state = state
    return np.random.Generator(bits)
